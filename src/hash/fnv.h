/* fnv.h - Fowler, Noll and Vo, as other systems use it. */
#ifndef SEEN_FNV_H
#define SEEN_FNV_H

#include "base/base.h"

/* FNV-1: multiply, then xor. FNV-1a: xor, then multiply. */
uint64_t seen_fnv1_64(const void *key, size_t len);
uint64_t seen_fnv1a_64(const void *key, size_t len);

/* FNV-1a of 32 bits from offset ^ seed, then a mix: that of bloomfilter.js. */
uint32_t seen_fnv1a_32_mixed(const void *key, size_t len, uint32_t seed);

#endif
