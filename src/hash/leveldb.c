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

static uint32_t widen(uint8_t byte, bool with_sign)
{
    return with_sign && byte >= 0x80 ? byte - 256u : byte;
}

uint32_t seen_leveldb_hash(const void *key, size_t len, uint32_t seed,
                           bool signed_tail)
{
    const uint8_t *p = key;
    uint32_t h = seed ^ ((uint32_t)len * M);
    for (; len >= 4; p += 4, len -= 4) {
        h = (h + seen_get_le32(p)) * M;
        h ^= h >> 16;
    }
    if (len == 0) return h;
    for (size_t i = len; i-- > 0;)
        h += widen(p[i], signed_tail) << (8 * i);
    h *= M;
    return h ^ h >> 24;
}
