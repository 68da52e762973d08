/*
 * ribbon_avx2.c - up to 16 columns of a ribbon at once on x86-64 since 2013.
 *
 *     column   0     1     2    ...             16 bits each, one register a group
 *     row      0-15  0-15  0-15 ...             and one shuffle to repeat its part
 *
 * Five groups, each and its part of the row, xored; then every 16 bits fold into
 * their highest, and the highest bits of all bytes are gathered: bit 2 j + 1 is
 * column j, which is where a value has its fingerprint. Widths up to 8 take half a
 * register. A group is read in units of 16 bytes, beyond its end: what comes from
 * there is no bit of the fingerprint.
 */
#include "bits/ribbon.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Shuffles that repeat bytes 2 i and 2 i + 1, the 16 bits of group i. */
#define BYTES_OF(i) ((short)((2 * (i) + 1) << 8 | 2 * (i)))

/* The columns of one unit: 8. */
AVX2 SEEN_INLINE uint64_t parities8(const uint8_t *at, __m128i row,
                                    uint64_t stride)
{
    __m128i x = _mm_setzero_si128();
    for (int i = 0; i < 5; i++) {
        __m128i group = _mm_loadu_si128((const __m128i *)(at + i * stride));
        __m128i part = _mm_shuffle_epi8(row, _mm_set1_epi16(BYTES_OF(i)));
        x = _mm_xor_si128(x, _mm_and_si128(group, part));
    }
    x = _mm_xor_si128(x, _mm_slli_epi16(x, 8));
    x = _mm_xor_si128(x, _mm_slli_epi16(x, 4));
    x = _mm_xor_si128(x, _mm_slli_epi16(x, 2));
    x = _mm_xor_si128(x, _mm_slli_epi16(x, 1));
    return (uint32_t)_mm_movemask_epi8(x);
}

/* Of two: 16. */
AVX2 SEEN_INLINE uint64_t parities16(const uint8_t *at, __m128i row,
                                     uint64_t stride)
{
    const __m256i twice = _mm256_broadcastsi128_si256(row);
    __m256i x = _mm256_setzero_si256();
    for (int i = 0; i < 5; i++) {
        __m256i group = _mm256_loadu_si256((const __m256i *)(at + i * stride));
        __m256i part =
            _mm256_shuffle_epi8(twice, _mm256_set1_epi16(BYTES_OF(i)));
        x = _mm256_xor_si256(x, _mm256_and_si256(group, part));
    }
    x = _mm256_xor_si256(x, _mm256_slli_epi16(x, 8));
    x = _mm256_xor_si256(x, _mm256_slli_epi16(x, 4));
    x = _mm256_xor_si256(x, _mm256_slli_epi16(x, 2));
    x = _mm256_xor_si256(x, _mm256_slli_epi16(x, 1));
    return (uint32_t)_mm256_movemask_epi8(x);
}

AVX2 SEEN_INLINE bool avx2_test(const uint8_t *at, struct seen_ribbon_mask m,
                                uint64_t value, uint32_t width, uint32_t units)
{
    const uint64_t stride = 2 * width;
    __m128i row = _mm_set_epi64x((long long)m.high, (long long)m.low);
    uint64_t x =
        units == 1 ? parities8(at, row, stride) : parities16(at, row, stride);
    if (units == 3) x |= parities8(at + 32, row, stride) << 32;
    if (units == 4) x |= parities16(at + 32, row, stride) << 32;
    return ((x ^ value) & seen_ribbon_bits(width)) == 0;
}

#define KERNEL seen_ribbon_avx2
#define NAME   "avx2"
#define TARGET AVX2
#define TEST   avx2_test
#include "bits/ribbon_kernel.h"

#else
typedef int seen_no_ribbon_avx2; /* ISO C wants something in every file */
#endif
