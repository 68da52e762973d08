/*
 * seen_bitmap.h - an exact set of integers below a bound, one bit each.
 *
 * Where ids are small integers, nothing beats a bitmap: no hash, no false
 * positive, 1/8 byte per possible id. The contract of seen.h holds here too:
 * status codes, ownership, threads (calls taking a const bitmap may run at
 * once, others run alone), hostile bytes.
 *
 * An index at or beyond the bound is SEEN_INVALID where something would change
 * and simply not in the set where something is asked.
 */
#ifndef SEEN_BITMAP_H
#define SEEN_BITMAP_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEEN_BITMAP_MAX ((uint64_t)1 << 40) /* largest bound: 128 GiB */
#define SEEN_NO_BIT     UINT64_MAX          /* "there is none" */

typedef struct seen_bitmap seen_bitmap;

/* The empty set of integers 0 .. bits-1; 1 <= bits <= SEEN_BITMAP_MAX. */
SEEN_API seen_status seen_bitmap_new(seen_bitmap **b, uint64_t bits,
                                     const seen_allocator *allocator,
                                     seen_error *error);
SEEN_API void seen_bitmap_free(seen_bitmap *b);
SEEN_API uint64_t seen_bitmap_bits(const seen_bitmap *b);

/* ---- One integer -------------------------------------------------------- */

SEEN_API bool seen_bitmap_has(const seen_bitmap *b, uint64_t bit);
SEEN_API seen_status seen_bitmap_set(seen_bitmap *b, uint64_t bit);
SEEN_API seen_status seen_bitmap_clear(seen_bitmap *b, uint64_t bit);

/* ---- Ranges: from inclusive, to exclusive; from <= to <= bits ------------ */

SEEN_API seen_status seen_bitmap_set_range(seen_bitmap *b, uint64_t from,
                                           uint64_t to);
SEEN_API seen_status seen_bitmap_clear_range(seen_bitmap *b, uint64_t from,
                                             uint64_t to);

SEEN_API uint64_t seen_bitmap_count(const seen_bitmap *b);

/* How many of from .. to-1 are set; `to` beyond the bound means the bound. */
SEEN_API uint64_t seen_bitmap_count_range(const seen_bitmap *b, uint64_t from,
                                          uint64_t to);

/*
 * The first set (clear) integer at or after `from`, or SEEN_NO_BIT. To visit
 * every member:
 *
 *     for (uint64_t i = seen_bitmap_next_set(b, 0); i != SEEN_NO_BIT;
 *          i = seen_bitmap_next_set(b, i + 1)) ...
 */
SEEN_API uint64_t seen_bitmap_next_set(const seen_bitmap *b, uint64_t from);
SEEN_API uint64_t seen_bitmap_next_clear(const seen_bitmap *b, uint64_t from);

/* The same by callback, faster for dense sets; stops when visit gives false. */
SEEN_API void seen_bitmap_each(const seen_bitmap *b,
                               bool (*visit)(void *ctx, uint64_t bit),
                               void *ctx);

/* ---- Two bitmaps: a = a op b; SEEN_MISMATCH unless their bounds agree ---- */

SEEN_API seen_status seen_bitmap_or(seen_bitmap *a, const seen_bitmap *b);
SEEN_API seen_status seen_bitmap_and(seen_bitmap *a, const seen_bitmap *b);
SEEN_API seen_status seen_bitmap_andnot(seen_bitmap *a, const seen_bitmap *b);
SEEN_API seen_status seen_bitmap_xor(seen_bitmap *a, const seen_bitmap *b);
SEEN_API bool seen_bitmap_equal(const seen_bitmap *a, const seen_bitmap *b);

/* ---- Bytes: the format of docs/FORMAT.md --------------------------------- */

/* *len is written on SEEN_OK and on SEEN_SHORT, so cap 0 measures. */
SEEN_API seen_status seen_bitmap_save(const seen_bitmap *b, void *buf,
                                      size_t cap, size_t *len);

/* Copies, after checking every checksum. */
SEEN_API seen_status seen_bitmap_load(seen_bitmap **b, const void *buf,
                                      size_t len,
                                      const seen_allocator *allocator,
                                      seen_error *error);

/* Borrows buf (8-byte aligned, SEEN_INVALID otherwise) until
 * seen_bitmap_free(), and checks the header only, so it takes the same short
 * time for any size. A view cannot be changed: SEEN_UNSUPPORTED. */
SEEN_API seen_status seen_bitmap_view(seen_bitmap **b, const void *buf,
                                      size_t len, seen_error *error);

/* Compares the payload of a saved bitmap with its checksums. */
SEEN_API seen_status seen_bitmap_verify(const void *buf, size_t len,
                                        seen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_BITMAP_H */
