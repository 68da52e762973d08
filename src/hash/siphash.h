/* siphash.h - what hash.h does not offer of SipHash. */
#ifndef SEEN_SIPHASH_H
#define SEEN_SIPHASH_H

#include "hash/hash.h"

#include "base/bytes.h"

/* The routine with its rounds open, so that tests can run the published vectors
 * of SipHash-2-4 through the very code that filters use. */
seen_hash seen_siphash128(const uint8_t secret[16], const void *key, size_t len,
                          uint32_t block_rounds, uint32_t final_rounds);

/* `lo` of seen_hash_siphash13 alone, for those who need no more: five rounds for
 * a short key instead of eight. */
void seen_siphash13_low(const uint8_t secret[16], const seen_key *keys,
                        size_t n, uint64_t *out);

/* ---- Kernels ------------------------------------------------------------ */

struct seen_siphash13 {
    void (*many)(const uint8_t secret[16], const seen_key *keys, size_t n,
                 seen_hash *out);
    void (*low)(const uint8_t secret[16], const seen_key *keys, size_t n,
                uint64_t *out);
    void (*integers)(const uint8_t secret[16], const void *integers, size_t n,
                     seen_hash *out);
};

extern const struct seen_siphash13 seen_siphash13_portable,
    seen_siphash13_avx2; /* x86-64 only */

/* What is left behind the whole blocks of a key, and its length. */
SEEN_INLINE uint64_t seen_siphash_last(const uint8_t *key, size_t len)
{
    const size_t rest = len % 8;
    uint64_t last = (uint64_t)len << 56;
    if (len >= 8) /* the last eight bytes; by 64 nothing can be shifted */
        return last | seen_get_le64(key + len - 8) >> 8 >> (56 - 8 * rest);
    for (size_t i = 0; i < rest; i++)
        last |= (uint64_t)key[i] << (8 * i);
    return last;
}

/* The function of 64 bits, which is another one. `sized`: the length of the key,
 * 8 bytes little-endian, is hashed before it, as Rust does with slices. */
uint64_t seen_siphash64(const uint8_t secret[16], bool sized, const void *key,
                        size_t len, uint32_t block_rounds,
                        uint32_t final_rounds);

#endif
