/*
 * siphash.c - SipHash-1-3 with 128-bit output (Aumasson, Bernstein 2012).
 *
 * A keyed hash for keys that an attacker chooses. Without the 16-byte secret
 * nobody can predict which keys share bits, so nobody can craft keys that read
 * "maybe", fill a bucket or delete somebody else's entry. 13 to 20 ns for a key
 * of 14 to 40 bytes, about three times XXH3; in batches siphash_avx2.c takes half
 * of that.
 *
 * Four 64-bit words start as secret xor "somepseudorandomlygeneratedbytes".
 * Each 8 bytes of input go in like this, c rounds a block, d rounds at the end:
 *
 *     v3 ^= block;  c x round;  v0 ^= block
 *
 * The last block holds the remaining bytes and, in its top byte, the length
 * modulo 256. 1-3 means c = 1, d = 3, the choice of Rust, Python and Ruby for
 * hash tables; 2-4 is the original, whose published vectors the tests use.
 */
#include "hash/siphash.h"

#include "base/base.h"
#include "base/bytes.h"
#include "base/cpu.h"

#include <stdatomic.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

SEEN_INLINE uint64_t rotl(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

SEEN_INLINE void rounds(struct state *s, uint32_t n)
{
    while (n-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotl(s->v1, 13) ^ s->v0;
        s->v3 = rotl(s->v3, 16) ^ s->v2;
        s->v0 = rotl(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotl(s->v1, 17) ^ s->v2;
        s->v3 = rotl(s->v3, 21) ^ s->v0;
        s->v2 = rotl(s->v2, 32);
    }
}

SEEN_INLINE struct state begin(const uint8_t secret[16])
{
    uint64_t k0 = seen_get_le64(secret), k1 = seen_get_le64(secret + 8);
    return (struct state){k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                          k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
}

SEEN_INLINE void take(struct state *s, uint64_t block, uint32_t c)
{
    s->v3 ^= block;
    rounds(s, c);
    s->v0 ^= block;
}

/* All of the key; `last` as seen_siphash_last() makes it. */
SEEN_INLINE void take_key(struct state *s, const uint8_t *p, size_t len,
                          uint64_t last, uint32_t c)
{
    for (; len >= 8; p += 8, len -= 8)
        take(s, seen_get_le64(p), c);
    take(s, last, c);
}

/* All of the key, and the mark of the 128-bit variant: another function
 * altogether. */
SEEN_INLINE struct state absorb(const uint8_t secret[16], const uint8_t *p,
                                size_t len, uint32_t c)
{
    struct state s = begin(secret);
    s.v1 ^= 0xee;
    take_key(&s, p, len, seen_siphash_last(p, len), c);
    s.v2 ^= 0xee;
    return s;
}

SEEN_INLINE uint64_t squeeze(struct state *s, uint32_t d)
{
    rounds(s, d);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

SEEN_INLINE seen_hash siphash(const uint8_t secret[16], const uint8_t *p,
                              size_t len, uint32_t c, uint32_t d)
{
    struct state s = absorb(secret, p, len, c);
    uint64_t lo = squeeze(&s, d);
    s.v1 ^= 0xdd;
    return (seen_hash){lo, squeeze(&s, d)};
}

seen_hash seen_siphash128(const uint8_t secret[16], const void *key, size_t len,
                          uint32_t block_rounds, uint32_t final_rounds)
{
    return siphash(secret, key, len, block_rounds, final_rounds);
}

uint64_t seen_siphash64(const uint8_t secret[16], bool sized, const void *key,
                        size_t len, uint32_t block_rounds,
                        uint32_t final_rounds)
{
    struct state s = begin(secret);
    uint64_t last = seen_siphash_last(key, len);
    if (sized) { /* 8 bytes more, which its top byte counts, modulo 256 */
        take(&s, len, block_rounds);
        last += (uint64_t)8 << 56;
    }
    take_key(&s, key, len, last, block_rounds);
    s.v2 ^= 0xff;
    return squeeze(&s, final_rounds);
}

static seen_hash siphash13_one(const uint8_t secret[16], const void *key,
                               size_t len)
{
    return siphash(secret, key, len, 1, 3);
}

/* ---- Many --------------------------------------------------------------- */

static void portable_many(const uint8_t secret[16], const seen_key *keys,
                          size_t n, seen_hash *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = siphash(secret, keys[i].data, keys[i].len, 1, 3);
}

static void portable_low(const uint8_t secret[16], const seen_key *keys,
                         size_t n, uint64_t *out)
{
    for (size_t i = 0; i < n; i++) {
        struct state s = absorb(secret, keys[i].data, keys[i].len, 1);
        out[i] = squeeze(&s, 3);
    }
}

static void portable_integers(const uint8_t secret[16], const void *integers,
                              size_t n, seen_hash *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = seen_integer_key(integers, i);
        out[i] = siphash(secret, (const uint8_t *)&key, 8, 1, 3);
    }
}

const struct seen_siphash13 seen_siphash13_portable = {
    portable_many, portable_low, portable_integers};

static const struct seen_siphash13 *kernel(void)
{
#if defined(__x86_64__)
    if (seen_cpu_use_avx2()) return &seen_siphash13_avx2;
#endif
    return &seen_siphash13_portable;
}

static void siphash13_many(const uint8_t secret[16], const seen_key *keys,
                           size_t n, seen_hash *out)
{
    kernel()->many(secret, keys, n, out);
}

static void siphash13_integers(const uint8_t secret[16], const void *integers,
                               size_t n, seen_hash *out)
{
    kernel()->integers(secret, integers, n, out);
}

void seen_siphash13_low(const uint8_t secret[16], const seen_key *keys,
                        size_t n, uint64_t *out)
{
    kernel()->low(secret, keys, n, out);
}

const struct seen_hash_fn seen_hash_siphash13 = {.name = "siphash-1-3-128",
                                                 .bits = 128,
                                                 .keyed = true,
                                                 .one = siphash13_one,
                                                 .many = siphash13_many,
                                                 .integers =
                                                     siphash13_integers};
