/*
 * ribbon.h - a layer of a bumped ribbon: a system of linear equations whose
 * solution is kept, and the kernels that look a key up in it.
 *
 * Every key x, a 64-bit hash, has a start p among the slots of a layer, a row of
 * 64 coefficients, the first of which is 1, and a fingerprint of r bits. A slot
 * holds r bits, and the slots are such that, for each key of the set and each bit
 * j of its fingerprint,
 *
 *     xor of bit j of slot p + i, for all i where the row has a 1  =  bit j
 *
 *     slots    . . . . 0 1 1 0 1 0 ... 1 . . . .
 *     row              1 0 1 1 0 0 ... 1            64 of them, from p on
 *
 * Equations of 64 neighbours are solved in one pass over the keys in order of
 * their starts (ribbon.c), and where there are more keys than slots some have no
 * solution. Those are bumped: not in this layer, ask the next. Which they are must
 * be known to a question. So the starts are cut into buckets of 256, and in each
 * bucket all keys are bumped whose start lies in its first so many eights: the
 * threshold t, 4 bits a bucket. t = 15 bumps the whole bucket.
 *
 *     bucket   |........|........|........| ... |........| 256 starts
 *     t = 2     bumped   bumped   stay
 *
 * In memory 16 slots make a group: r words of 16 bits, word j having bit j of all
 * of them. The 64 slots of a key are in 5 groups, 10 r bytes in a row, where words
 * of 64 bits would spread them over 16 r bytes.
 *
 *     group of slots 0 .. 15     | bit 0 of all | bit 1 of all | ... | bit r-1 |
 *     group of slots 16 .. 31    | bit 0 of all | ...
 *
 * 65536 starts make a segment, with 64 slots of its own behind the last start, so
 * no equation reaches from one into the next: each is solved by itself, in a
 * megabyte of memory, whatever the size of the layer.
 *
 *     | groups of segment 0 | groups of segment 1 | ... | thresholds | zeros |
 *
 * The zeros make room to read a group in units of 16 bytes: roundup(2 r, 16) - 2 r
 * of them.
 *
 * Worked example, r = 7, 1000 starts: 1000 + 64 slots are 66.5 groups, so 1008
 * starts are taken: 67 groups of 14 bytes, 4 thresholds in 2 bytes, 2 zeros: 942
 * bytes. A key with start 700: bucket 2, offset 188, so it is bumped if t = 15.
 * Groups 43 to 47, from the 12th bit on: its row is shifted left by 12.
 *
 * Dillinger, Hübschle-Schneider, Sanders, Walzer: Fast Succinct Retrieval and
 * Approximate Membership using Ribbon, 2022 (arXiv 2109.01892).
 */
#ifndef SEEN_RIBBON_H
#define SEEN_RIBBON_H

#include "seen.h"

#include "base/bytes.h"
#include "base/rng.h"
#include "probe/reduce.h"

#define SEEN_RIBBON_WIDTH_MAX  32
#define SEEN_RIBBON_LAYERS_MAX 8
#define SEEN_RIBBON_STARTS_MAX ((uint64_t)1 << 41)

#define SEEN_RIBBON_GROUP   16 /* slots */
#define SEEN_RIBBON_ROW     64 /* coefficients of a key */
#define SEEN_RIBBON_BUCKET  256
#define SEEN_RIBBON_SEGMENT 65536
#define SEEN_RIBBON_RING    16 /* keys in flight; 8 measure alike, 24 are slower */

struct seen_ribbon_layer {
    uint8_t *groups;     /* then thresholds, then zeros */
    uint8_t *thresholds; /* two to a byte, the even bucket in the low half */
    uint64_t starts;     /* a multiple of 16 */
    uint64_t seed;       /* 0: hashes are taken as they come */
};

struct seen_ribbon {
    struct seen_ribbon_layer layer[SEEN_RIBBON_LAYERS_MAX];
    uint32_t layers;
    uint32_t width;  /* r */
    uint8_t *list;   /* what no layer took: hashes as the last one had them, in
                        ascending order, 8 bytes each */
    uint64_t listed; /* how many */
    bool ring;       /* too large for the cache: prefetch pays */
};

struct seen_ribbon_work;

struct seen_ribbon_kernel {
    const char *name;
    bool (*maybe)(const struct seen_ribbon *b, uint64_t hash);
    /* `ahead` more hashes lie behind the n; see bits/lines.h. */
    void (*maybe_many)(const struct seen_ribbon *b, const seen_hash *h,
                       size_t n, size_t ahead, bool *answers);
    void (*prefetch)(const struct seen_ribbon *b, const seen_hash *h, size_t n);
    /* Write the groups of so many slots from their equations. */
    void (*substitute)(const struct seen_ribbon_work *work, uint64_t slots,
                       uint32_t width, uint8_t *groups);
};

extern const struct seen_ribbon_kernel seen_ribbon_portable;
#if defined(__x86_64__)
extern const struct seen_ribbon_kernel seen_ribbon_avx2;
#endif
#if defined(__aarch64__)
extern const struct seen_ribbon_kernel seen_ribbon_neon;
#endif

/* The one that goes with seen_kernel_best() of bits/lines.h; and the one of that
 * name, NULL if there is none. */
const struct seen_ribbon_kernel *seen_ribbon_best(void);
const struct seen_ribbon_kernel *seen_ribbon_named(const char *name);

/* ---- Sizes -------------------------------------------------------------- */

SEEN_INLINE uint64_t seen_ribbon_slots(uint64_t starts)
{
    uint64_t segments =
        (starts + SEEN_RIBBON_SEGMENT - 1) / SEEN_RIBBON_SEGMENT;
    return starts + segments * SEEN_RIBBON_ROW;
}

SEEN_INLINE uint64_t seen_ribbon_group_bytes(uint64_t starts, uint32_t width)
{
    return seen_ribbon_slots(starts) / SEEN_RIBBON_GROUP * 2 * width;
}

SEEN_INLINE uint64_t seen_ribbon_threshold_bytes(uint64_t starts)
{
    return (starts + 2 * SEEN_RIBBON_BUCKET - 1) / (2 * SEEN_RIBBON_BUCKET);
}

/* All of a layer. */
SEEN_INLINE uint64_t seen_ribbon_bytes(uint64_t starts, uint32_t width)
{
    uint32_t zeros = (16 - 2 * width % 16) % 16;
    return seen_ribbon_group_bytes(starts, width) +
           seen_ribbon_threshold_bytes(starts) + zeros;
}

/* ---- From a hash to its equation ---------------------------------------- */

/* What layer `l` takes for the hash of a key that came to the one before as x. */
SEEN_INLINE uint64_t seen_ribbon_hash(const struct seen_ribbon_layer *l,
                                      uint64_t x)
{
    return l->seed ? seen_mix64(x + l->seed) : x;
}

struct seen_ribbon_row {
    uint64_t row;   /* bit i: coefficient i; bit 0 is 1 */
    uint64_t value; /* bit 2 j + 1: bit j of the fingerprint */
};

/* Two products: the row of one, the fingerprint of the other, so that neither
 * follows from the other by exclusive ors; then every stranger would fit. */
SEEN_INLINE struct seen_ribbon_row seen_ribbon_row_of(uint64_t x)
{
    uint64_t y = x * 0xc2b2ae3d27d4eb4fu;
    y ^= y >> 32;
    uint64_t z = y * 0xff51afd7ed558ccdu;
    return (struct seen_ribbon_row){y | 1, z >> 32 | z << 32};
}

/* Is a key with this start bumped? */
SEEN_INLINE bool seen_ribbon_bumped(const struct seen_ribbon_layer *l,
                                    uint64_t start)
{
    uint64_t bucket = start / SEEN_RIBBON_BUCKET;
    uint32_t t = l->thresholds[bucket / 2] >> (4 * (bucket % 2)) & 15;
    uint32_t eighth = start % SEEN_RIBBON_BUCKET / 8;
    return (eighth < 14 ? eighth : 14) < t;
}

/* The first of the five groups of a start. */
SEEN_INLINE const uint8_t *seen_ribbon_at(const struct seen_ribbon_layer *l,
                                          uint64_t start, uint32_t width)
{
    uint64_t group =
        start / SEEN_RIBBON_GROUP +
        start / SEEN_RIBBON_SEGMENT * (SEEN_RIBBON_ROW / SEEN_RIBBON_GROUP);
    return l->groups + group * (2 * width);
}

/* A row over the five groups: 16 coefficients for each. */
struct seen_ribbon_mask {
    uint64_t low, high; /* groups 0 to 3; group 4 */
};

SEEN_INLINE struct seen_ribbon_mask seen_ribbon_mask_of(uint64_t row,
                                                        uint64_t start)
{
    uint32_t by = start % SEEN_RIBBON_GROUP;
    return (struct seen_ribbon_mask){row << by, row >> 1 >> (63 - by)};
}

/* The bits of a value that a fingerprint of this width has. */
SEEN_INLINE uint64_t seen_ribbon_bits(uint32_t width)
{
    return 0xaaaaaaaaaaaaaaaau >> (64 - 2 * width);
}

/* Is it among what no layer took? */
bool seen_ribbon_listed(const struct seen_ribbon *b, uint64_t x);

/* ---- Solve -------------------------------------------------------------- */

/* The equations of a segment: that of slot i is the one that begins there. */
struct seen_ribbon_work {
    uint64_t row[SEEN_RIBBON_SEGMENT + SEEN_RIBBON_ROW]; /* 0: none does */
    uint64_t value[SEEN_RIBBON_SEGMENT + SEEN_RIBBON_ROW];
};

/*
 * Write the groups and the thresholds of one segment, all of them zero before,
 * from its n keys in ascending order, as this layer hashes them. Bumped keys go to
 * `bumped`, in ascending order, which may begin where the keys do; returns how
 * many.
 */
uint64_t seen_ribbon_solve(const struct seen_ribbon_kernel *k,
                           const struct seen_ribbon_layer *l, uint32_t width,
                           uint64_t segment, const uint64_t *keys, uint64_t n,
                           uint64_t *bumped, struct seen_ribbon_work *work);

#endif
