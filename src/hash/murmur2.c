/*
 * murmur2.c - MurmurHash64A, MurmurHash2 for 64-bit machines (Austin Appleby,
 * 2008, public domain).
 *
 *     h = seed ^ (len * m)
 *     8 bytes, little-endian:  k *= m; k ^= k >> 47; k *= m;  h ^= k; h *= m
 *     1 to 7 bytes left:       h ^= bytes; h *= m
 *     the end:                 h ^= h >> 47; h *= m; h ^= h >> 47
 *
 * RedisBloom's hash. Two blocks that collide do so for every seed, so a second
 * hash with another seed, as RedisBloom has it, is no help against crafted keys.
 */
#include "hash/murmur2.h"

#include "base/bytes.h"

#define M 0xc6a4a7935bd1e995u

uint64_t seen_murmur64a(const void *key, size_t len, uint64_t seed)
{
    const uint8_t *p = key;
    uint64_t h = seed ^ len * M;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t k = seen_get_le64(p) * M;
        k ^= k >> 47;
        h = (h ^ k * M) * M;
    }
    if (len > 0) {
        uint64_t rest = 0;
        for (size_t i = 0; i < len; i++)
            rest |= (uint64_t)p[i] << (8 * i);
        h = (h ^ rest) * M;
    }
    h = (h ^ h >> 47) * M;
    return h ^ h >> 47;
}
