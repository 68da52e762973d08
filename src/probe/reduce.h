/*
 * reduce.h - from a 64-bit hash to a number below n.
 *
 * Multiply-shift (Lemire 2016): floor(hash * n / 2^64). One multiplication
 * where modulo takes a division of 25 to 40 cycles, any n, no power of two, a
 * bias of at most n / 2^64. It reads the high bits of the hash first, so that
 * low bits stay free for other uses, and it keeps order: a larger hash never
 * lands on a smaller number.
 */
#ifndef SEEN_REDUCE_H
#define SEEN_REDUCE_H

#include "base/base.h"

SEEN_INLINE uint64_t seen_reduce(uint64_t hash, uint64_t n)
{
    return (uint64_t)(((seen_u128)hash * n) >> 64);
}

#endif
