/*
 * scheme.h - how another system finds the bits of a key.
 *
 *     key ──► digest ──► positions ──► bits
 *             once       k, or a few    order ^ position
 *
 * What sets one system's Bloom filter apart from another's is not its array of
 * bits, it is the scheme: which hash, how k positions come out of it, and in
 * which order bits lie in bytes. A scheme is a constant struct in the file of
 * its dialect.
 *
 * Bits stay as the original lays them down, so that a filter can be used where
 * it lies. The orders in use differ by a fixed pattern only, an xor of the
 * position, after which bit p is bit p % 8 of byte p / 8:
 *
 *     low bit of a byte first       0    LevelDB, RedisBloom, DCSO ...
 *     high bit of a byte first      7    Redis SETBIT: go-zero, Redisson
 *     32-bit words, big-endian     24    bloomfilter.js and its Go port
 *     64-bit words, big-endian     56    Guava, bits-and-blooms
 *
 * Example: bit 3 of a big-endian 64-bit word lies in its last byte, byte 7, at
 * value 8: position 3 ^ 56 = 59 = 7 * 8 + 3.
 */
#ifndef SEEN_SCHEME_H
#define SEEN_SCHEME_H

#include "probe/modulo.h"

#define SEEN_ORDER_LOW_FIRST  0u
#define SEEN_ORDER_HIGH_FIRST 7u
#define SEEN_ORDER_BIG_32     24u
#define SEEN_ORDER_BIG_64     56u

#define SEEN_POSITIONS_MAX 255 /* k that we go along with */

/* What a scheme keeps of a key; each uses it as it likes. */
struct seen_digest {
    uint64_t h[4];
    uint8_t tail[16];
};

/* The bits that positions are for. */
struct seen_place {
    uint64_t bits;   /* m */
    uint32_t hashes; /* k */
    uint32_t line;   /* bits of a line, where a key keeps to one; or 0 */
    struct seen_modulo modulo; /* by m, or by the number of lines */
};

struct seen_scheme {
    const char *hash;   /* its name */
    uint32_t hash_bits; /* that positions come from */
    uint32_t order;

    void (*digest)(const uint8_t seed[32], const void *key, size_t len,
                   struct seen_digest *d);
    /* Positions from .. to-1 of a key. They are asked for in order, each once;
     * what has to be carried along is carried in the digest. */
    void (*positions)(const struct seen_place *p, struct seen_digest *d,
                      uint32_t from, uint32_t to, uint64_t *positions);
    /* All of it for one key and one array of bits: probe/fused.h; NULL: the calls
     * above will do. */
    bool (*maybe)(const uint8_t seed[32], const struct seen_place *p,
                  const uint8_t *bits, const void *key, size_t len);
};

/* Double hashing: position i is h[0] + i * h[1], in 64 bits that wrap, mod m. */
SEEN_INLINE void seen_double_hashing(const struct seen_place *p,
                                     struct seen_digest *d, uint32_t from,
                                     uint32_t to, uint64_t *pos)
{
    for (; from < to; from++)
        *pos++ = seen_modulo(d->h[0] + from * d->h[1], &p->modulo);
}

SEEN_INLINE struct seen_place seen_place_of(uint64_t bits, uint32_t hashes,
                                            uint32_t line)
{
    return (struct seen_place){.bits = bits,
                               .hashes = hashes,
                               .line = line,
                               .modulo =
                                   seen_modulo_of(line ? bits / line : bits)};
}

#endif
