/*
 * dialect/native.h - our own container: a checked header, then words.
 * docs/FORMAT.md is the specification.
 */
#ifndef SEEN_NATIVE_H
#define SEEN_NATIVE_H

#include "seen.h"

enum seen_native_kind {
    SEEN_NATIVE_BITMAP = 8 /* as SEEN_BITMAP will be among the kinds */
};

struct seen_native {
    uint32_t kind;
    uint64_t bits;           /* of payload that mean something */
    uint64_t payload_offset; /* in the buffer; a multiple of 64 */
    uint64_t payload_len;    /* bytes: whole 64-bit words */
};

/* How long the container of `bits` bits is; false if it fits no memory. */
bool seen_native_measure(uint64_t bits, uint64_t *len);

/* `buf` has room for what seen_native_measure() said. */
void seen_native_write(uint32_t kind, const uint64_t *words, uint64_t bits,
                       uint8_t *buf);

/* Check everything but the payload's checksums. */
seen_status seen_native_read(const uint8_t *buf, size_t len,
                             struct seen_native *out);

/* Check the payload's checksums, after seen_native_read(). */
seen_status seen_native_verify(const uint8_t *buf,
                               const struct seen_native *header);

#endif
