/*
 * xxh3.c - XXH3 of Yann Collet, from libxxhash's header, compiled in.
 *
 * The default for keys that nobody hostile chooses: 4 to 9 ns for a key of 16
 * to 40 bytes, all bits good. Its seed is not a secret: published pairs of keys
 * collide for one seed in 1,500, so an attacker needs no knowledge of it. For
 * chosen keys there is siphash.c.
 *
 * Seed: the first 8 bytes of the key, little-endian.
 */
#include "hash/hash.h"

#include "base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static seen_hash xxh3_64_one(const uint8_t secret[16], const void *key,
                             size_t len)
{
    uint64_t seed = seen_get_le64(secret);
    return (seen_hash){XXH3_64bits_withSeed(key, len, seed), 0};
}

static void xxh3_64_many(const uint8_t secret[16], const seen_key *keys,
                         size_t n, seen_hash *out)
{
    uint64_t seed = seen_get_le64(secret);
    for (size_t i = 0; i < n; i++) {
        out[i].lo = XXH3_64bits_withSeed(keys[i].data, keys[i].len, seed);
        out[i].hi = 0;
    }
}

/* The length is a constant here: all that is left of XXH3 is two products. */
static void xxh3_64_integers(const uint8_t secret[16], const void *integers,
                             size_t n, seen_hash *out)
{
    uint64_t seed = seen_get_le64(secret);
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = seen_integer_key(integers, i);
        out[i] = (seen_hash){XXH3_64bits_withSeed(&key, 8, seed), 0};
    }
}

static seen_hash xxh3_128_one(const uint8_t secret[16], const void *key,
                              size_t len)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(key, len, seen_get_le64(secret));
    return (seen_hash){h.low64, h.high64};
}

static void xxh3_128_many(const uint8_t secret[16], const seen_key *keys,
                          size_t n, seen_hash *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = xxh3_128_one(secret, keys[i].data, keys[i].len);
}

static void xxh3_128_integers(const uint8_t secret[16], const void *integers,
                              size_t n, seen_hash *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = seen_integer_key(integers, i);
        out[i] = xxh3_128_one(secret, &key, 8);
    }
}

const struct seen_hash_fn seen_hash_xxh3_64 = {.name = "xxh3-64",
                                               .bits = 64,
                                               .one = xxh3_64_one,
                                               .many = xxh3_64_many,
                                               .integers = xxh3_64_integers};
const struct seen_hash_fn seen_hash_xxh3_128 = {.name = "xxh3-128",
                                                .bits = 128,
                                                .one = xxh3_128_one,
                                                .many = xxh3_128_many,
                                                .integers = xxh3_128_integers};
