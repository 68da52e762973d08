/*
 * murmur3.h - MurmurHash3 for 64-bit machines, 128 bits, in two steps: the
 * blocks of a key, then its end, which may have a byte more. Some systems hash a
 * key again and again with another last byte; the blocks need it only once.
 */
#ifndef SEEN_MURMUR3_H
#define SEEN_MURMUR3_H

#include "seen.h"

#include "base/base.h"

/* A key whose full blocks are in. */
struct seen_murmur3 {
    uint64_t h1, h2;
    uint64_t len;
    uint8_t tail[16]; /* len % 16 bytes, then zeros */
};

SEEN_PRIVATE void seen_murmur3_begin(struct seen_murmur3 *s, const void *key,
                                     size_t len, uint64_t seed);

/* lo is the first half, h1. */
seen_hash seen_murmur3_end(const struct seen_murmur3 *s);
SEEN_PRIVATE seen_hash seen_murmur3_end_with(const struct seen_murmur3 *s,
                                             uint8_t byte);

seen_hash seen_murmur3_128(const void *key, size_t len, uint64_t seed);

#endif
