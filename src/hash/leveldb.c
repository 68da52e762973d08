/*
 * leveldb.c - LevelDB's hash: like Austin Appleby's first MurmurHash, 32 bits,
 * without its finish.
 *
 *     h = seed ^ (len * m)
 *     4 bytes, little-endian:   h += word;  h *= m;  h ^= h >> 16
 *     1 to 3 bytes left:        h += bytes; h *= m;  h ^= h >> 24
 *
 * RocksDB's copy takes the bytes that are left as signed numbers: a byte of 0x80
 * and more is added as itself less 256. Only keys that end in such bytes, and
 * whose length is no multiple of 4, show the difference; hence the tests with
 * bytes above 0x7f at every length.
 *
 * 32 bits are few: at a million keys one absent key in 4,300 agrees with one of
 * them in all of its probes, whatever the size of the filter.
 */
#include "hash/leveldb.h"

#include "base/bytes.h"

#define M 0xc6a4a793u

/* The 1 to 3 bytes at p as one number. `before`: there are 4 bytes before their
 * end, which are read at once and shifted, for a loop over so few bytes is a guess
 * that the processor gets wrong. */
SEEN_INLINE uint32_t get_tail(const uint8_t *p, size_t n, bool before)
{
    if (before) return seen_get_le32(p + n - 4) >> (32 - 8 * n);
    uint32_t tail = 0;
    for (size_t i = 0; i < n; i++)
        tail |= (uint32_t)p[i] << (8 * i);
    return tail;
}

uint32_t seen_leveldb_hash(const void *key, size_t len, uint32_t seed,
                           bool signed_tail)
{
    const uint8_t *p = key;
    uint32_t h = seed ^ ((uint32_t)len * M);
    size_t rest = len % 4;
    for (size_t i = len / 4; i > 0; i--, p += 4) {
        h = (h + seen_get_le32(p)) * M;
        h ^= h >> 16;
    }
    if (rest == 0) return h;
    uint32_t tail = get_tail(p, rest, len >= 4);
    /* Bytes of 0x80 and more count 256 less. */
    if (signed_tail) tail -= (tail & 0x808080) << 1;
    h = (h + tail) * M;
    return h ^ h >> 24;
}
