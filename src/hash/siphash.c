/*
 * siphash.c - SipHash-1-3 with 128-bit output (Aumasson, Bernstein 2012).
 *
 * A keyed hash for keys that an attacker chooses. Without the 16-byte secret
 * nobody can predict which keys share bits, so nobody can craft keys that read
 * "maybe", fill a bucket or delete somebody else's entry. 20 to 30 ns for a key
 * of 16 to 40 bytes, three to six times XXH3.
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

SEEN_INLINE struct state start(const uint8_t secret[16])
{
    uint64_t k0 = seen_get_le64(secret), k1 = seen_get_le64(secret + 8);
    return (struct state){k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                          k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
}

SEEN_INLINE void take_block(struct state *s, uint64_t block, uint32_t c)
{
    s->v3 ^= block;
    rounds(s, c);
    s->v0 ^= block;
}

/* All of the key, and the length of everything that was hashed. */
SEEN_INLINE void take_key(struct state *s, const uint8_t *p, size_t len,
                          uint64_t total, uint32_t c)
{
    uint64_t last = total << 56;
    for (; len >= 8; p += 8, len -= 8)
        take_block(s, seen_get_le64(p), c);
    for (size_t i = 0; i < len; i++)
        last |= (uint64_t)p[i] << (8 * i);
    take_block(s, last, c);
}

SEEN_INLINE seen_hash siphash(const uint8_t secret[16], const uint8_t *p,
                              size_t len, uint32_t c, uint32_t d)
{
    struct state s = start(secret);
    s.v1 ^= 0xee; /* the 128-bit variant is another function altogether */
    take_key(&s, p, len, len, c);

    s.v2 ^= 0xee;
    rounds(&s, d);
    uint64_t lo = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    s.v1 ^= 0xdd;
    rounds(&s, d);
    return (seen_hash){lo, s.v0 ^ s.v1 ^ s.v2 ^ s.v3};
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
    struct state s = start(secret);
    if (sized) take_block(&s, len, block_rounds);
    take_key(&s, key, len, len + (sized ? 8 : 0), block_rounds);
    s.v2 ^= 0xff;
    rounds(&s, final_rounds);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static seen_hash siphash13_one(const uint8_t secret[16], const void *key,
                               size_t len)
{
    return siphash(secret, key, len, 1, 3);
}

static void siphash13_many(const uint8_t secret[16], const seen_key *keys,
                           size_t n, seen_hash *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = siphash(secret, keys[i].data, keys[i].len, 1, 3);
}

const struct seen_hash_fn seen_hash_siphash13 = {.name = "siphash-1-3-128",
                                                 .bits = 128,
                                                 .keyed = true,
                                                 .one = siphash13_one,
                                                 .many = siphash13_many};
