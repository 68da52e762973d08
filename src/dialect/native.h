/*
 * dialect/native.h - our own container: a checked header, checksums, words.
 * docs/FORMAT.md is the specification.
 *
 *     header | second header | checksums | state | listed | pad | payload
 *
 * What lies before the payload is the head. It is small, so it is made in
 * memory; the payload is written from where it is.
 */
#ifndef SEEN_NATIVE_H
#define SEEN_NATIVE_H

#include "filter/filter.h"

#define SEEN_HEADER_SIZE   256
#define SEEN_HEADER_STRIDE 512 /* the second one lies in another sector */
#define SEEN_PAGE_SIZE     65536
#define SEEN_MAX_PARTS     64

/* Header flags. */
#define SEEN_NATIVE_KEYED     1u /* the hash has a secret */
#define SEEN_NATIVE_APART     2u /* which is not in the file */
#define SEEN_NATIVE_TWO       4u /* there are two headers: a filter file */
#define SEEN_NATIVE_JOURNALED 8u /* not all is here: read the journal, too */
#define SEEN_NATIVE_FLAGS     15u

/* A header, in memory. */
struct seen_native {
    seen_plan plan;
    uint32_t flags;
    const struct seen_hash_fn *hash;
    uint64_t items;
    uint8_t secret[16]; /* or seed; zeros if kept apart */
    uint64_t secret_check;
    uint32_t state_len, listed_len;
    uint32_t listed_rule;
    uint32_t key_form;
    uint64_t payload_offset, payload_len;
    uint64_t id, epoch, sequence; /* of a filter file; 0 otherwise */
    uint64_t table_offset;
    uint32_t table_crc, extra_crc; /* extra: state and listed */
    uint32_t slot;                 /* which header was taken */
};

/* What is not in the header, when writing. */
struct seen_native_body {
    const uint8_t *state, *listed; /* as long as the header says */
    const struct seen_part *parts;
    uint32_t count;
};

/* How many checksums a payload has; how far parts reach in it. */
SEEN_PRIVATE uint64_t seen_native_pages(uint64_t payload_len);
SEEN_PRIVATE uint64_t seen_part_room(const struct seen_part *part);

/* Fill in table_offset, payload_offset and payload_len from the flags and the
 * other lengths; false if the whole fits no memory. */
bool seen_native_layout(struct seen_native *h,
                        const struct seen_native_body *b);

/* The head, payload_offset bytes, with all checksums. */
SEEN_PRIVATE void seen_native_head(struct seen_native *h,
                                   const struct seen_native_body *b,
                                   uint8_t *head);

/* The header alone, SEEN_HEADER_SIZE bytes. */
SEEN_PRIVATE void seen_native_put(const struct seen_native *h, uint8_t *to);

/* `len` bytes, from `from` on, of a part as it goes into the file, zeros behind
 * it included; words may be changing meanwhile, each at once. */
void seen_native_put_part(const struct seen_part *part, uint64_t from,
                          uint8_t *to, uint64_t len);
void seen_native_get_part(const struct seen_part *part, const uint8_t *from);

/* A header that is whole and makes sense, `len` bytes being there. The bytes
 * behind it have not been looked at. */
SEEN_PRIVATE seen_status seen_native_get(const uint8_t *from, size_t len,
                                         struct seen_native *h, seen_error *e);

/* The better header of a whole container, whose lengths must add up. */
SEEN_PRIVATE seen_status seen_native_read(const uint8_t *buf, size_t len,
                                          struct seen_native *h, seen_error *e);

/* State and list; then the payload: after seen_native_read(). The error names the
 * first bad page. */
seen_status seen_native_check_extra(const uint8_t *buf,
                                    const struct seen_native *h, seen_error *e);
seen_status seen_native_verify(const uint8_t *buf, const struct seen_native *h,
                               seen_error *e);

#endif
