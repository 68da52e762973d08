/* xxh64.h - XXH64, and the form of XXH3 that RocksDB froze before it was done. */
#ifndef SEEN_XXH64_H
#define SEEN_XXH64_H

#include "base/base.h"

uint64_t seen_xxh64(const void *key, size_t len, uint64_t seed);

/* "XXPH3": 64 bits, seed 0. */
uint64_t seen_xxph3(const void *key, size_t len);

#endif
