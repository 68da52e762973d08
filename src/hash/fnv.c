/*
 * fnv.c - FNV-1 and FNV-1a (Fowler, Noll, Vo 1991): a byte and a
 * multiplication, again and again.
 *
 * The two differ in the order of those steps only, so for one key they are
 * strongly related, and the shorter the keys the more: filters that take both as
 * if they were independent (go-bloom) see five times the false positives that
 * they promise. Neither has a secret, and keys that collide are easily made.
 */
#include "hash/fnv.h"

#define OFFSET_64 0xcbf29ce484222325u
#define PRIME_64  0x100000001b3u
#define OFFSET_32 0x811c9dc5u
#define PRIME_32  0x01000193u

uint64_t seen_fnv1_64(const void *key, size_t len)
{
    const uint8_t *p = key;
    uint64_t h = OFFSET_64;
    for (size_t i = 0; i < len; i++)
        h = h * PRIME_64 ^ p[i];
    return h;
}

uint64_t seen_fnv1a_64(const void *key, size_t len)
{
    const uint8_t *p = key;
    uint64_t h = OFFSET_64;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * PRIME_64;
    return h;
}

uint32_t seen_fnv1a_32_mixed(const void *key, size_t len, uint32_t seed)
{
    const uint8_t *p = key;
    uint32_t h = OFFSET_32 ^ seed;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * PRIME_32;
    h += h << 13;
    h ^= h >> 7;
    h += h << 3;
    h ^= h >> 17;
    return h + (h << 5);
}
