/*
 * ribbon_neon.c - eight columns of a ribbon at once on arm64; see ribbon_avx2.c for
 * the picture. Here bits can be counted: an odd count is a parity of 1.
 */
#include "bits/ribbon.h"

#if defined(__aarch64__)

#include <arm_neon.h>

/* Eight columns of `value`, bits 1, 3, ... 15, one to a lane: those that differ. */
SEEN_INLINE uint16x8_t differ8(const uint8_t *at, struct seen_ribbon_mask m,
                               uint64_t stride, uint64_t value)
{
    static const uint16_t bit[8] = {1u << 1, 1u << 3,  1u << 5,  1u << 7,
                                    1u << 9, 1u << 11, 1u << 13, 1u << 15};
    uint8x16_t x = vdupq_n_u8(0);
    for (uint32_t i = 0; i < 5; i++) {
        uint16_t part = (uint16_t)(i < 4 ? m.low >> 16 * i : m.high);
        uint8x16_t row = vreinterpretq_u8_u16(vdupq_n_u16(part));
        x = veorq_u8(x, vandq_u8(vld1q_u8(at + i * stride), row));
    }
    uint16x8_t count = vpaddlq_u8(vcntq_u8(x));
    uint16x8_t odd = vtstq_u16(count, vdupq_n_u16(1));
    uint16x8_t print = vtstq_u16(vdupq_n_u16((uint16_t)value), vld1q_u16(bit));
    return veorq_u16(odd, print);
}

/* Lanes that are columns of this width; the others say nothing. */
SEEN_INLINE uint16x8_t lanes_of(uint32_t columns)
{
    static const uint16_t lane[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return vcltq_u16(vld1q_u16(lane), vdupq_n_u16((uint16_t)columns));
}

SEEN_INLINE bool neon_test(const uint8_t *at, struct seen_ribbon_mask m,
                           uint64_t value, uint32_t width, uint32_t units)
{
    const uint64_t stride = 2 * width;
    uint16x8_t wrong = vdupq_n_u16(0);
    for (uint32_t i = 0; i < units; i++) {
        uint16x8_t x = differ8(at + 16 * i, m, stride, value >> 16 * i);
        wrong = vorrq_u16(wrong, vandq_u16(x, lanes_of(width - 8 * i)));
    }
    return vmaxvq_u16(wrong) == 0;
}

#define KERNEL seen_ribbon_neon
#define NAME   "neon"
#define TARGET
#define TEST neon_test
#include "bits/ribbon_kernel.h"

#else
typedef int seen_no_ribbon_neon; /* ISO C wants something in every file */
#endif
