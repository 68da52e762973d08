/*
 * lines_avx2.c - eight bits of a line at once on x86-64 since 2013.
 *
 *     x       x       ...  x       x          broadcast
 *   * odd[0]  odd[4]  ...  odd[3]  odd[7]     32-bit products, side by side
 *
 * Seen as four 64-bit lanes, bits 26..31 of each are the bit number for words
 * 0-3 and bits 58..63 that for words 4-7: two shifts and no shuffle give both
 * registers of numbers, and 1 << number the masks. A test is "the line has all
 * of the mask", an add is "line |= mask". Filters rougher than 2 % set fewer
 * bits per line; those take the portable path, which has little to do then.
 */
#include "bits/lines.h"

#if defined(__x86_64__)

#include "base/cpu.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

struct mask {
    __m256i low, high; /* words 0-3, words 4-7 */
};

AVX2 SEEN_INLINE struct mask mask_of(uint32_t x)
{
    /* The odd numbers with their halves interleaved; a constant by the time
     * the compiler is done. */
    const uint32_t *odd = seen_line_odd;
    const __m256i paired =
        _mm256_setr_epi32((int)odd[0], (int)odd[4], (int)odd[1], (int)odd[5],
                          (int)odd[2], (int)odd[6], (int)odd[3], (int)odd[7]);
    const __m256i one = _mm256_set1_epi64x(1),
                  six_bits = _mm256_set1_epi64x(63);
    __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)x), paired);
    __m256i low = _mm256_and_si256(_mm256_srli_epi64(product, 26), six_bits);
    __m256i high = _mm256_srli_epi64(product, 58);
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

AVX2 SEEN_INLINE uint64_t avx2_run_maybe(const uint64_t *run, uint32_t n,
                                         uint32_t x, uint32_t log_w)
{
    if (log_w != 3) return seen_run_maybe(run, n, x, log_w);
    struct mask m = mask_of(x);
    uint64_t found = 0;
    while (n-- > 0) {
        const uint64_t *line = run + n * SEEN_LINE_WORDS;
        __m256i low = _mm256_load_si256((const __m256i *)line);
        __m256i high = _mm256_load_si256((const __m256i *)(line + 4));
        found = found * 2 + covers(low, high, m);
    }
    return found;
}

#define KERNEL   seen_kernel_avx2
#define NAME     "avx2"
#define USABLE   seen_cpu_has_avx2
#define TARGET   AVX2
#define TEST     avx2_line_maybe
#define CHANGE   avx2_line_visit
#define RUN_TEST avx2_run_maybe
#include "bits/lines_kernel.h"

#else
typedef int seen_no_avx2; /* ISO C wants something in every file */
#endif
