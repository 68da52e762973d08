/*
 * ribbon_portable.c - the reference kernel for ribbons: plain C, always built.
 *
 * Four columns at a time, 16 bits of each side by side in a word of 64:
 *
 *     group 0   | column j | j + 1 | j + 2 | j + 3 |  and the first 16 of the row
 *     group 1   | column j | j + 1 | j + 2 | j + 3 |  and the next 16, four times
 *     ...                                             xor
 *
 * Then every 16 bits fold into their highest, which is their parity.
 */
#include "bits/ribbon.h"

#define FOUR    0x0001000100010001u
#define HIGHEST (FOUR << 15)

/* 16 bits of a row, four times. */
SEEN_INLINE uint64_t spread(uint64_t row, uint32_t group)
{
    return (row >> 16 * group & 0xffff) * FOUR;
}

/* Four bits of a fingerprint, bits 1, 3, 5 and 7, to the highest of each 16. */
SEEN_INLINE uint64_t spread_value(uint64_t value)
{
    return (value & 0xaa) * ((uint64_t)1 << 14 | (uint64_t)1 << 28 |
                             (uint64_t)1 << 42 | (uint64_t)1 << 56);
}

SEEN_INLINE bool portable_test(const uint8_t *at, struct seen_ribbon_mask m,
                               uint64_t value, uint32_t width, uint32_t units)
{
    const uint64_t row[5] = {spread(m.low, 0), spread(m.low, 1),
                             spread(m.low, 2), spread(m.low, 3),
                             spread(m.high, 0)};
    uint64_t wrong = 0;
    (void)units;
    for (uint32_t j = 0; j < width; j += 4, at += 8, value >>= 8) {
        uint64_t x = 0;
        for (uint32_t i = 0; i < 5; i++)
            x ^= seen_get_le64(at + (uint64_t)i * 2 * width) & row[i];
        x ^= x << 8;
        x ^= x << 4;
        x ^= x << 2;
        x ^= x << 1;
        x = (x ^ spread_value(value)) & HIGHEST;
        if (width - j < 4) x &= ((uint64_t)1 << 16 * (width - j)) - 1;
        wrong |= x;
    }
    return wrong == 0;
}

#define KERNEL seen_ribbon_portable
#define NAME   "portable"
#define TARGET
#define TEST portable_test
#include "bits/ribbon_kernel.h"
