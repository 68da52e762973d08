/*
 * packed.h - numbers of any width up to 32 bits, packed without gaps: number i
 * of width w lies at bits i*w .. i*w + w-1 of a little-endian stream of bytes.
 *
 *     w = 13    |0000000000000|1111111111111|2222222222222|...
 *     bytes     |       |       |       |       |       |
 *
 * Reads and writes take the eight bytes around a number, so an array has eight
 * bytes of slack at its end.
 */
#ifndef SEEN_PACKED_H
#define SEEN_PACKED_H

#include "base/bytes.h"

#define SEEN_PACKED_SLACK 8

/* Bytes for n numbers of a width, slack included. */
SEEN_INLINE uint64_t seen_packed_bytes(uint64_t n, uint32_t width)
{
    return (n * width + 7) / 8 + SEEN_PACKED_SLACK;
}

/* At least 57 bits from bit `at` on. */
SEEN_INLINE uint64_t seen_packed_bits(const uint8_t *bytes, uint64_t at)
{
    return seen_get_le64(bytes + at / 8) >> (at % 8);
}

SEEN_INLINE uint32_t seen_packed_get(const uint8_t *bytes, uint32_t width,
                                     uint64_t i)
{
    uint64_t mask = ((uint64_t)1 << width) - 1;
    return (uint32_t)(seen_packed_bits(bytes, i * width) & mask);
}

SEEN_INLINE void seen_packed_set(uint8_t *bytes, uint32_t width, uint64_t i,
                                 uint32_t value)
{
    uint64_t at = i * width, mask = ((uint64_t)1 << width) - 1;
    uint8_t *p = bytes + at / 8;
    uint64_t word = seen_get_le64(p) & ~(mask << (at % 8));
    seen_put_le64(p, word | (uint64_t)value << (at % 8));
}

/* Nothing but zeros behind the last of so many bits. */
SEEN_INLINE bool seen_packed_tail_ok(const uint8_t *bytes, uint64_t bits)
{
    uint64_t whole = (bits + 7) / 8;
    if (bits % 8 && bytes[whole - 1] >> (bits % 8)) return false;
    return seen_get_le64(bytes + whole) == 0;
}

#endif
