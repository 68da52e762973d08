/*
 * line.h - one 512-bit line of a blocked filter: a cache line, eight words.
 *
 * The 32 bits of a key's hash that are kept for the line become one position
 * in each of w equal groups of it, w = 8, 4, 2 or 1:
 *
 *     w = 8   | word 0 | word 1 | ...   | word 7 |    a bit in every word
 *     w = 4   |  words 0-1  | 2-3 | 4-5 | 6-7    |    a bit in every pair
 *
 * Position in group g: the top log2(512 / w) bits of x * odd[g], a 32-bit
 * product. For w = 8 that is one SIMD multiplication, one shift by 26 and one
 * variable shift for all eight words at once. One bit per word instead of eight
 * bits anywhere costs 2 % more memory at 1 % (10.10 against 9.90 bits/key) and
 * is what makes the whole test branch-free.
 *
 * Worked example: x = 1, w = 8. odd[0] = 9e3779b1, its top 6 bits are 100111,
 * so bit 39 of word 0 is set; odd[1] = 85ebca6b gives bit 33 of word 1; ...
 *
 * This file is the specification; the SIMD kernels must agree with it bit for
 * bit (tests/unit/test_kernels.c).
 */
#ifndef SEEN_LINE_H
#define SEEN_LINE_H

#include "base/base.h"

#define SEEN_LINE_BITS  512
#define SEEN_LINE_WORDS 8

/* Odd numbers with no pattern in them, of the sort that 32-bit hashes have
 * used for decades. What matters is measured: fpp_within_bound, for each w. */
static const uint32_t seen_line_odd[SEEN_LINE_WORDS] = {
    0x9e3779b1u, 0x85ebca6bu, 0xc2b2ae35u, 0x27d4eb2fu,
    0x165667b5u, 0xd6e8feb9u, 0xa3b195edu, 0x6c8e944bu,
};

/* Where probe g of x lies in the line: 0 .. 511. w = 1 << log_w. */
SEEN_INLINE uint32_t seen_line_bit(uint32_t x, uint32_t g, uint32_t log_w)
{
    uint32_t in_group = (x * seen_line_odd[g]) >> (23 + log_w);
    return (g << (9 - log_w)) + in_group;
}

SEEN_INLINE bool seen_line_maybe(const uint64_t *line, uint32_t x,
                                 uint32_t log_w)
{
    uint64_t all = 1;
    for (uint32_t g = 0; g < 1u << log_w; g++) {
        uint32_t bit = seen_line_bit(x, g, log_w);
        all &= line[bit / 64] >> (bit % 64);
    }
    return all & 1;
}

/* Set the bits; were they all set before? */
SEEN_INLINE bool seen_line_visit(uint64_t *line, uint32_t x, uint32_t log_w)
{
    uint64_t missing = 0;
    for (uint32_t g = 0; g < 1u << log_w; g++) {
        uint32_t bit = seen_line_bit(x, g, log_w);
        uint64_t mask = (uint64_t)1 << (bit % 64), old = line[bit / 64];
        missing |= mask & ~old;
        line[bit / 64] = old | mask;
    }
    return missing == 0;
}

#endif
