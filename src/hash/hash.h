/*
 * hash.h - key bytes to 64 or 128 bits.
 *
 * One file per hash; those of our own filters have a row in hashes.def. A hash reads a 16-byte key (secret
 * or seed) and the bytes; a 64-bit hash leaves `hi` at 0.
 */
#ifndef SEEN_HASH_H
#define SEEN_HASH_H

#include "seen.h"

#include "base/base.h"
#include "base/bytes.h"

struct seen_hash_fn {
    const char *name;
    uint32_t bits; /* 64 or 128 */
    bool keyed;    /* safe against whoever chooses keys but not the secret */
    bool plain;    /* the key itself: neither uniform nor seeded, for kinds that
                      ask for it by name */
    seen_hash (*one)(const uint8_t secret[16], const void *key, size_t len);
    void (*many)(const uint8_t secret[16], const seen_key *keys, size_t n,
                 seen_hash *out);
    /* 64-bit integers in the machine's byte order, aligned or not; each is the
     * key of its 8 bytes, lowest first. */
    void (*integers)(const uint8_t secret[16], const void *integers, size_t n,
                     seen_hash *out);
};

/* Integer i of such an array, as a number and as the bytes of its key. */
SEEN_INLINE uint64_t seen_integer_at(const void *integers, size_t i)
{
    uint64_t x;
    memcpy(&x, (const char *)integers + i * sizeof x, sizeof x);
    return x;
}

SEEN_INLINE uint64_t seen_integer_key(const void *integers, size_t i)
{
    const uint64_t x = seen_integer_at(integers, i);
    return SEEN_LITTLE_ENDIAN ? x : __builtin_bswap64(x);
}

#define HASH(constant) extern const struct seen_hash_fn constant;
#include "hash/hashes.def"
#undef HASH
SEEN_PRIVATE extern const struct seen_hash_fn seen_hash_siphash13;

/* Row `index` of the table, NULL past its end. */
const struct seen_hash_fn *seen_hash_at(size_t index);

/* The default for filters: keyed or not, 64 bits enough or not. */
const struct seen_hash_fn *seen_hash_choose(bool keyed, uint32_t bits);

/* Bytes that nobody but the owner of the secret can make: tells whether a
 * secret given later is the right one. */
uint64_t seen_secret_check(const uint8_t secret[16]);

#endif
