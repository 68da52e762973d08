/*
 * xxph3.c - the preview of XXH3 that RocksDB froze in 2019 and calls XXPH3.
 *
 * XXH3 was still changing when RocksDB needed a hash for its filters, so it kept
 * a copy of what there was. It has the final one's constants and its secret, and
 * agrees with it nowhere: other mixers for short keys, another accumulator for
 * long ones (a lane takes its own input, not its neighbour's), another end.
 *
 *     0          a constant
 *     1 to 3     one 32-bit word of three bytes and the length
 *     4 to 8     first and last 4 bytes
 *     9 to 16    first and last 8 bytes, and their product
 *     17 to 128  16-byte pieces from both ends towards the middle
 *     129 to 240 16-byte pieces from the front, and the last one
 *     more       eight lanes over stripes of 64 bytes, stirred every 1024
 *
 * fold(a, b) is the product of 128 bits, its halves xored. All reads little-endian.
 *
 * Source: RocksDB 7.8.3 util/xxph3.h, as described; checked against the filters
 * that it wrote and the known answers in the tests.
 */
#include "hash/xxh64.h"

#include "base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define P32_1 0x9e3779b1u
#define P32_2 0x85ebca77u
#define P32_3 0xc2b2ae3du
#define P64_1 0x9e3779b185ebca87u
#define P64_2 0xc2b2ae3d27d4eb4fu
#define P64_3 0x165667b19e3779f9u
#define P64_4 0x85ebca77c2b2ae63u
#define P64_5 0x27d4eb2f165667c5u

#define STRIPE  64
#define STRIPES 16 /* in a block: the secret is used from 0, 8 ... 120 */

/* The secret that final XXH3 has, too. */
SEEN_INLINE uint64_t secret64(size_t at)
{
    return seen_get_le64(XXH3_kSecret + at);
}

SEEN_INLINE uint64_t fold(uint64_t a, uint64_t b)
{
    seen_u128 product = (seen_u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

SEEN_INLINE uint64_t avalanche(uint64_t h)
{
    h = (h ^ h >> 37) * P64_3;
    return h ^ h >> 32;
}

SEEN_INLINE uint64_t mix16(const uint8_t *p, size_t secret)
{
    return fold(seen_get_le64(p) ^ secret64(secret),
                seen_get_le64(p + 8) ^ secret64(secret + 8));
}

static uint64_t hash_16(const uint8_t *p, size_t len)
{
    if (len == 0) return fold(secret64(0), P64_2);
    if (len <= 3) {
        uint32_t c = p[0] | (uint32_t)p[len >> 1] << 8 |
                     (uint32_t)p[len - 1] << 16 | (uint32_t)len << 24;
        return avalanche((uint64_t)(c ^ (uint32_t)secret64(0)) * P64_1);
    }
    if (len <= 8) {
        uint64_t v = seen_get_le32(p) | (uint64_t)seen_get_le32(p + len - 4)
                                            << 32;
        uint64_t k = v ^ secret64(0);
        uint64_t x = len + (k ^ k >> 51) * P32_1;
        return avalanche((x ^ x >> 47) * P64_2);
    }
    uint64_t lo = seen_get_le64(p) ^ secret64(0);
    uint64_t hi = seen_get_le64(p + len - 8) ^ secret64(8);
    return avalanche(len + lo + hi + fold(lo, hi));
}

/* Pairs of pieces, the outermost last. */
static uint64_t hash_128(const uint8_t *p, size_t len)
{
    uint64_t acc = len * P64_1;
    for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
        acc += mix16(p + 16 * i, 32 * i) +
               mix16(p + len - 16 * (i + 1), 32 * i + 16);
    return avalanche(acc);
}

static uint64_t hash_240(const uint8_t *p, size_t len)
{
    uint64_t acc = len * P64_1;
    for (size_t i = 0; i < 8; i++)
        acc += mix16(p + 16 * i, 16 * i);
    acc = avalanche(acc);
    for (size_t i = 8; i < len / 16; i++)
        acc += mix16(p + 16 * i, 16 * (i - 8) + 3);
    return avalanche(acc + mix16(p + len - 16, 119));
}

static void stripe(uint64_t acc[8], const uint8_t *p, size_t secret)
{
    for (size_t i = 0; i < 8; i++) {
        uint64_t v = seen_get_le64(p + 8 * i), k = v ^ secret64(secret + 8 * i);
        acc[i] += v + (k & 0xffffffff) * (k >> 32);
    }
}

static void scramble(uint64_t acc[8])
{
    for (size_t i = 0; i < 8; i++)
        acc[i] = (acc[i] ^ acc[i] >> 47 ^ secret64(128 + 8 * i)) * P32_1;
}

static uint64_t hash_long(const uint8_t *p, size_t len)
{
    uint64_t acc[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
    const uint8_t *end = p + len;
    size_t stripes = len / STRIPE;
    for (size_t i = 0; i < stripes; i++, p += STRIPE) {
        stripe(acc, p, 8 * (i % STRIPES));
        if (i % STRIPES == STRIPES - 1) scramble(acc);
    }
    if (len % STRIPE) stripe(acc, end - STRIPE, 121);
    uint64_t h = len * P64_1;
    for (size_t i = 0; i < 4; i++)
        h += fold(acc[2 * i] ^ secret64(11 + 16 * i),
                  acc[2 * i + 1] ^ secret64(19 + 16 * i));
    return avalanche(h);
}

uint64_t seen_xxph3(const void *key, size_t len)
{
    if (len <= 16) return hash_16(key, len);
    if (len <= 128) return hash_128(key, len);
    return len <= 240 ? hash_240(key, len) : hash_long(key, len);
}
