/*
 * rng.h - splitmix64 (Steele, Lea, Flood 2014): a counter and a mixer. For
 * seeds, tests and everywhere a few good bits are wanted; never for secrets.
 */
#ifndef SEEN_RNG_H
#define SEEN_RNG_H

#include "base/base.h"

/* 2^64 / golden ratio, odd: the counter's step. */
#define SEEN_GOLDEN 0x9e3779b97f4a7c15u

/* A bijection of 64 bits in which every input bit moves every output bit. */
SEEN_INLINE uint64_t seen_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

SEEN_INLINE uint64_t seen_rng_next(uint64_t *state)
{
    return seen_mix64(*state += SEEN_GOLDEN);
}

#endif
