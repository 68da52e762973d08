/*
 * bitmap.h - plain arrays of 64-bit words taken as bits; bit i is bit i % 64 of
 * word i / 64. Used by the bitmap, the classic filter and every merge.
 *
 * Callers keep the bits past the end of the last word zero.
 */
#ifndef SEEN_BITS_BITMAP_H
#define SEEN_BITS_BITMAP_H

#include "seen_bitmap.h"

#include "base/base.h"

SEEN_INLINE uint64_t seen_words_for(uint64_t bits)
{
    return bits / 64 + (bits % 64 != 0);
}

SEEN_INLINE bool seen_bit_test(const uint64_t *words, uint64_t bit)
{
    return words[bit / 64] >> (bit % 64) & 1;
}

SEEN_INLINE void seen_bit_set(uint64_t *words, uint64_t bit)
{
    words[bit / 64] |= (uint64_t)1 << (bit % 64);
}

SEEN_INLINE void seen_bit_clear(uint64_t *words, uint64_t bit)
{
    words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

/* Set or clear from .. to-1. */
void seen_bits_fill(uint64_t *words, uint64_t from, uint64_t to, bool value);

uint64_t seen_bits_count(const uint64_t *words, uint64_t nwords);
uint64_t seen_bits_count_range(const uint64_t *words, uint64_t from,
                               uint64_t to);

/* The first bit of the given value at or after `from` and below `bits`, or
 * SEEN_NO_BIT. */
uint64_t seen_bits_next(const uint64_t *words, uint64_t bits, uint64_t from,
                        bool value);

void seen_bits_or(uint64_t *a, const uint64_t *b, uint64_t nwords);
void seen_bits_and(uint64_t *a, const uint64_t *b, uint64_t nwords);
void seen_bits_andnot(uint64_t *a, const uint64_t *b, uint64_t nwords);
void seen_bits_xor(uint64_t *a, const uint64_t *b, uint64_t nwords);

/* No bits past the end: words of others may have some. */
SEEN_INLINE void seen_bits_trim(uint64_t *words, uint64_t bits)
{
    if (bits % 64) words[bits / 64] &= ((uint64_t)1 << bits % 64) - 1;
}

/* Safe beside concurrent seen_atomic_or(). */
void seen_bits_copy(uint64_t *to, const uint64_t *from, uint64_t nwords);
bool seen_bits_equal(const uint64_t *a, const uint64_t *b, uint64_t nwords);

#endif
