/*
 * bitmap.c - words in bulk. The loops are written so that the compiler makes
 * vectors of them (this file is built with -O3); they run at the speed of
 * memory, so nothing cleverer pays.
 */
#include "bits/bitmap.h"

/* Bits from .. 63 of a word; from < 64. */
static uint64_t from_bit(uint64_t from)
{
    return UINT64_MAX << from;
}

/* Bits 0 .. to-1 of a word; 0 < to <= 64. */
static uint64_t below_bit(uint64_t to)
{
    return UINT64_MAX >> (64 - to);
}

static void apply(uint64_t *word, uint64_t mask, bool value)
{
    *word = value ? *word | mask : *word & ~mask;
}

void seen_bits_fill(uint64_t *words, uint64_t from, uint64_t to, bool value)
{
    if (from >= to) return;
    uint64_t first = from / 64, last = (to - 1) / 64;
    uint64_t head = from_bit(from % 64), tail = below_bit((to - 1) % 64 + 1);
    if (first == last) {
        apply(&words[first], head & tail, value);
        return;
    }
    apply(&words[first], head, value);
    for (uint64_t i = first + 1; i < last; i++)
        words[i] = value ? UINT64_MAX : 0;
    apply(&words[last], tail, value);
}

uint64_t seen_bits_count(const uint64_t *words, uint64_t nwords)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < nwords; i++)
        sum += seen_popcount64(words[i]);
    return sum;
}

uint64_t seen_bits_count_range(const uint64_t *words, uint64_t from,
                               uint64_t to)
{
    if (from >= to) return 0;
    uint64_t first = from / 64, last = (to - 1) / 64;
    uint64_t head = from_bit(from % 64), tail = below_bit((to - 1) % 64 + 1);
    if (first == last) return seen_popcount64(words[first] & head & tail);
    return seen_popcount64(words[first] & head) +
           seen_bits_count(words + first + 1, last - first - 1) +
           seen_popcount64(words[last] & tail);
}

uint64_t seen_bits_next(const uint64_t *words, uint64_t bits, uint64_t from,
                        bool value)
{
    if (from >= bits) return SEEN_NO_BIT;
    uint64_t flip = value ? 0 : UINT64_MAX;
    uint64_t nwords = seen_words_for(bits);
    uint64_t i = from / 64;
    uint64_t word = (words[i] ^ flip) & from_bit(from % 64);
    while (word == 0) {
        if (++i == nwords) return SEEN_NO_BIT;
        word = words[i] ^ flip;
    }
    uint64_t bit = i * 64 + seen_ctz64(word);
    return bit < bits ? bit : SEEN_NO_BIT;
}

void seen_bits_or(uint64_t *a, const uint64_t *b, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        a[i] |= b[i];
}

void seen_bits_and(uint64_t *a, const uint64_t *b, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        a[i] &= b[i];
}

void seen_bits_andnot(uint64_t *a, const uint64_t *b, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        a[i] &= ~b[i];
}

void seen_bits_xor(uint64_t *a, const uint64_t *b, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        a[i] ^= b[i];
}

void seen_bits_copy(uint64_t *to, const uint64_t *from, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        to[i] = seen_atomic_load(&from[i]);
}

bool seen_bits_equal(const uint64_t *a, const uint64_t *b, uint64_t nwords)
{
    for (uint64_t i = 0; i < nwords; i++)
        if (seen_atomic_load(&a[i]) != seen_atomic_load(&b[i])) return false;
    return true;
}
