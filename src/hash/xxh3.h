/*
 * xxh3.h - XXH3 of a short key, inlined: for the one call that is on the way of
 * every single question (api/filter.c). All others go through hash.h.
 */
#ifndef SEEN_XXH3_H
#define SEEN_XXH3_H

#include "hash/hash.h"

#include "base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SEEN_XXH3_SHORT 64 /* bytes: from here on the call does not matter */

/* As seen_hash_xxh3_64.one(), for len up to SEEN_XXH3_SHORT. What is left of XXH3
 * below that length needs no register that its caller wants to keep. */
SEEN_INLINE seen_hash seen_xxh3_short(const uint8_t secret[16], const void *key,
                                      size_t len)
{
    if (len > SEEN_XXH3_SHORT) __builtin_unreachable();
    return (seen_hash){XXH3_64bits_withSeed(key, len, seen_get_le64(secret)),
                       0};
}

#endif
