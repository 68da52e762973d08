/*
 * slots.h - a cache line of eight 64-bit slots, filled from the left, where 0
 * is empty: the piece that the fingerprint set (filter/set.c) is made of.
 *
 * The one question is where a value is or, if it is not there, where it would
 * go: the first slot that holds it or is empty. Looking at all eight at once
 * takes no branch; on x86-64 with AVX2 it takes a dozen instructions.
 */
#ifndef SEEN_SLOTS_H
#define SEEN_SLOTS_H

#include "base/base.h"

#define SEEN_SLOTS 8

/* 0..7, or 8: the line is full of other values. */
SEEN_INLINE uint32_t seen_slot_find(const uint64_t *line, uint64_t value)
{
    uint32_t stops = 1u << SEEN_SLOTS;
    for (uint32_t i = 0; i < SEEN_SLOTS; i++)
        stops |= (uint32_t)((line[i] == value) | (line[i] == 0)) << i;
    return seen_ctz64(stops);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define SEEN_SLOTS_AVX2 __attribute__((target("avx2")))

SEEN_SLOTS_AVX2 SEEN_INLINE uint32_t seen_slot_stops_avx2(const uint64_t *four,
                                                          __m256i value)
{
    __m256i slots = _mm256_load_si256((const __m256i *)four);
    __m256i stop =
        _mm256_or_si256(_mm256_cmpeq_epi64(slots, value),
                        _mm256_cmpeq_epi64(slots, _mm256_setzero_si256()));
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(stop));
}

SEEN_SLOTS_AVX2 SEEN_INLINE uint32_t seen_slot_find_avx2(const uint64_t *line,
                                                         uint64_t value)
{
    __m256i all = _mm256_set1_epi64x((long long)value);
    uint32_t stops = seen_slot_stops_avx2(line, all) |
                     seen_slot_stops_avx2(line + 4, all) << 4 |
                     1u << SEEN_SLOTS;
    return seen_ctz64(stops);
}
#endif

#endif
