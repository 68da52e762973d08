/* murmur2.h - MurmurHash64A. */
#ifndef SEEN_MURMUR2_H
#define SEEN_MURMUR2_H

#include "base/base.h"

uint64_t seen_murmur64a(const void *key, size_t len, uint64_t seed);

#endif
