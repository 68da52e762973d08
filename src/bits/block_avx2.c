/*
 * block_avx2.c - eight bits of a line at once on x86-64 since 2013.
 *
 *     x x x x x x x x        broadcast
 *   * odd[0] ... odd[7]      one 32-bit multiplication per lane
 *   >> 26                    eight bit numbers 0..63
 *     1 << each              two registers of four 64-bit masks
 *
 * A test is "line has all of mask" (vptest), an add is "line |= mask". Filters
 * rougher than 3 % set fewer bits per line; those take the portable path, which
 * has little to do then.
 */
#include "bits/block.h"

#if defined(__x86_64__)

#include "base/cpu.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

struct mask {
    __m256i low, high; /* words 0-3, words 4-7 */
};

AVX2 SEEN_INLINE struct mask mask_of(uint32_t x)
{
    const __m256i odd = _mm256_loadu_si256((const __m256i *)seen_line_odd);
    const __m256i one = _mm256_set1_epi64x(1);
    __m256i bit = _mm256_srli_epi32(
        _mm256_mullo_epi32(_mm256_set1_epi32((int)x), odd), 26);
    __m256i low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(bit));
    __m256i high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(bit, 1));
    return (struct mask){_mm256_sllv_epi64(one, low),
                         _mm256_sllv_epi64(one, high)};
}

AVX2 SEEN_INLINE bool covers(__m256i low, __m256i high, struct mask m)
{
    __m256i missing = _mm256_or_si256(_mm256_andnot_si256(low, m.low),
                                      _mm256_andnot_si256(high, m.high));
    return _mm256_testz_si256(missing, missing);
}

AVX2 SEEN_INLINE bool avx2_line_maybe(const uint64_t *line, uint32_t x,
                                      uint32_t log_w)
{
    if (log_w != 3) return seen_line_maybe(line, x, log_w);
    __m256i low = _mm256_load_si256((const __m256i *)line);
    __m256i high = _mm256_load_si256((const __m256i *)(line + 4));
    return covers(low, high, mask_of(x));
}

AVX2 SEEN_INLINE bool avx2_line_visit(uint64_t *line, uint32_t x,
                                      uint32_t log_w)
{
    if (log_w != 3) return seen_line_visit(line, x, log_w);
    struct mask m = mask_of(x);
    __m256i low = _mm256_load_si256((const __m256i *)line);
    __m256i high = _mm256_load_si256((const __m256i *)(line + 4));
    _mm256_store_si256((__m256i *)line, _mm256_or_si256(low, m.low));
    _mm256_store_si256((__m256i *)(line + 4), _mm256_or_si256(high, m.high));
    return covers(low, high, m);
}

SEEN_DEFINE_KERNEL(avx2, seen_cpu_has_avx2, AVX2, avx2_line_maybe,
                   avx2_line_visit);

#else
typedef int seen_no_avx2; /* ISO C wants something in every file */
#endif
