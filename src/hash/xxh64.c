/* xxh64.c - XXH64 of Yann Collet, from libxxhash's header, compiled in: the hash
 * of Parquet's filters. */
#include "hash/xxh64.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t seen_xxh64(const void *key, size_t len, uint64_t seed)
{
    return XXH64(key, len, seed);
}
