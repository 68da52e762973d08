/*
 * murmur3.c - MurmurHash3_x64_128 of Austin Appleby (2011, public domain).
 *
 *     16 bytes = k1, k2   two halves of the state take one each, mixed by
 *                         multiplications and rotations, and each other
 *     0 to 15 bytes left  the same, with zeros behind them, without the last step
 *     the end             length into both, and every bit into every other
 *
 * go-zero, Guava, bits-and-blooms, Cassandra and many more use it. It has no
 * secret that would help: keys that collide for every seed can be written down,
 * so whoever chooses keys chooses what such a filter answers.
 */
#include "hash/murmur3.h"

#include "base/base.h"
#include "base/bytes.h"

#define C1 0x87c37b91114253d5u
#define C2 0x4cf5ad432745937fu

SEEN_INLINE uint64_t rotl(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

SEEN_INLINE uint64_t mix1(uint64_t k)
{
    return rotl(k * C1, 31) * C2;
}

SEEN_INLINE uint64_t mix2(uint64_t k)
{
    return rotl(k * C2, 33) * C1;
}

SEEN_INLINE uint64_t finish(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

SEEN_INLINE void block(uint64_t *h1, uint64_t *h2, const uint8_t *p)
{
    *h1 ^= mix1(seen_get_le64(p));
    *h1 = (rotl(*h1, 27) + *h2) * 5 + 0x52dce729;
    *h2 ^= mix2(seen_get_le64(p + 8));
    *h2 = (rotl(*h2, 31) + *h1) * 5 + 0x38495ab5;
}

/* Zeros mixed in change nothing, so it does not matter how long the tail is. */
SEEN_INLINE seen_hash end(uint64_t h1, uint64_t h2, const uint8_t tail[16],
                          uint64_t len)
{
    h1 ^= mix1(seen_get_le64(tail)) ^ len;
    h2 ^= mix2(seen_get_le64(tail + 8)) ^ len;
    h1 += h2;
    h2 += h1;
    h1 = finish(h1);
    h2 = finish(h2);
    h1 += h2;
    return (seen_hash){h1, h2 + h1};
}

void seen_murmur3_begin(struct seen_murmur3 *s, const void *key, size_t len,
                        uint64_t seed)
{
    const uint8_t *p = key;
    *s = (struct seen_murmur3){.h1 = seed, .h2 = seed, .len = len};
    for (; len >= 16; p += 16, len -= 16)
        block(&s->h1, &s->h2, p);
    if (len > 0) memcpy(s->tail, p, len);
}

seen_hash seen_murmur3_end(const struct seen_murmur3 *s)
{
    return end(s->h1, s->h2, s->tail, s->len);
}

seen_hash seen_murmur3_end_with(const struct seen_murmur3 *s, uint8_t byte)
{
    static const uint8_t nothing[16];
    uint64_t h1 = s->h1, h2 = s->h2;
    uint8_t tail[16];
    memcpy(tail, s->tail, sizeof tail);
    tail[s->len % 16] = byte;
    if (s->len % 16 < 15) return end(h1, h2, tail, s->len + 1);
    block(&h1, &h2, tail);
    return end(h1, h2, nothing, s->len + 1);
}

seen_hash seen_murmur3_128(const void *key, size_t len, uint64_t seed)
{
    struct seen_murmur3 s;
    seen_murmur3_begin(&s, key, len, seed);
    return seen_murmur3_end(&s);
}
