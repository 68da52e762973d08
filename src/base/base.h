/*
 * base.h - the compiler, under our own names: extensions live in base/, and in
 * bits/ and its users where they are SIMD.
 */
#ifndef SEEN_BASE_H
#define SEEN_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What libseen_store and libseen_remote need of the libraries left of them: shown,
 * but under a version that is theirs alone (src/libseen.map). */
#define SEEN_PRIVATE __attribute__((visibility("default")))

#define SEEN_INLINE    static inline __attribute__((always_inline))
#define SEEN_NOINLINE  __attribute__((noinline))
#define SEEN_LINE_SIZE 64 /* bytes in a cache line on every machine we run on */

/* -Wpedantic would complain about the plain name. */
__extension__ typedef unsigned __int128 seen_u128;

SEEN_INLINE uint64_t seen_min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

SEEN_INLINE size_t seen_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

SEEN_INLINE void seen_prefetch_read(const void *p)
{
    __builtin_prefetch(p, 0, 3);
}

/* Index of the lowest set bit; x != 0. */
SEEN_INLINE uint32_t seen_ctz64(uint64_t x)
{
    return (uint32_t)__builtin_ctzll(x);
}

/* Zeros above the highest set bit; x != 0. */
SEEN_INLINE uint32_t seen_clz64(uint64_t x)
{
    return (uint32_t)__builtin_clzll(x);
}

/*
 * Set bits of a word by parallel sums (Wegner 1960, in the form everyone
 * uses). Without -mpopcnt the builtin is a table look-up behind a call; this
 * one the compiler turns into SSE2 in a loop.
 */
SEEN_INLINE uint64_t seen_popcount64(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (x * 0x0101010101010101u) >> 56;
}

/*
 * Words that several threads touch. Relaxed order is enough everywhere we use
 * it: a filter bit publishes nothing but itself.
 */
SEEN_INLINE uint64_t seen_atomic_load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

SEEN_INLINE uint64_t seen_atomic_or(uint64_t *p, uint64_t bits)
{
    return __atomic_fetch_or(p, bits, __ATOMIC_RELAXED);
}

#endif
