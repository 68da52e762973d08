/*
 * sorted.h - an ascending list of different numbers in little more than the
 * information it holds: Elias-Fano coding.
 *
 * Of n numbers below u, the low l bits of each, l = floor(log2(u / n)), are
 * written out one behind the other. What is left of the numbers, their high
 * parts, ascends slowly from 0 to u >> l, about n: it is written in unary, a 1
 * for each number and a 0 for each step up:
 *
 *     numbers  3, 4, 7, 13, 14, 15, 21   u = 24, n = 7, l = 1
 *     low      1  0  1   1   0   1   1
 *     high     1  2  3   6   7   7  10
 *     unary    0 1 0 1 0 1 0 0 0 1 0 1 1 0 0 0 1 0 0
 *
 * That is l + 2 to l + 2.5 bits a number, half a bit above what any code needs
 * for a random set (log2(u / n) + 1.44): 14.2 bits for 1000 numbers below five
 * million, which would take 23 by themselves. The i-th 1 stands at place
 * high(i) + i, so a number can be found without decoding the others: those with
 * high part h lie between the h-th and the next 0.
 *
 * Elias: Efficient storage and retrieval by content and address of static
 * files, 1974; Fano, 1971.
 *
 * Bytes: the low parts, packed as in packed.h, up to a whole byte; then the
 * unary part, lowest bit first, n + ((u - 1) >> l) + 1 bits, up to a whole
 * byte. Spare bits are 0. Nothing behind the last byte is ever read.
 *
 * Numbers may repeat, which costs nothing but their place: a run of 1s and equal
 * low parts. Exposure records refuse it, static filters rely on it, for they have
 * to know n before they know which of their fingerprints are equal.
 *
 * To find the h-th 0 of a long list, 0s have to be counted from its beginning, or
 * from the sample before: how many numbers have a high part below 1024, below
 * 2048, and so on, 4 bytes each, a sixteenth of a bit a number. Lists of less than
 * 512 have none.
 */
#ifndef SEEN_SORTED_H
#define SEEN_SORTED_H

#include "base/base.h"

#define SEEN_SORTED_MAX     ((uint64_t)1 << 48) /* bound of u */
#define SEEN_SORTED_LONGEST ((uint64_t)1 << 30) /* bound of n */

struct seen_sorted {
    const uint8_t *bytes;
    uint64_t n;     /* at least 1, at most u and 2^30 */
    uint64_t below; /* u: every number is smaller */
};

uint64_t seen_sorted_size(uint64_t n, uint64_t below);

/* The largest u for n numbers in so many bytes; 0: they do not fit at all, where
 * u is at least n. */
uint64_t seen_sorted_below(uint64_t n, uint64_t bytes);

/* `values` ascend and are below `below`; seen_sorted_size() bytes. */
void seen_sorted_encode(const uint64_t *values, uint64_t n, uint64_t below,
                        uint8_t *out);

/* False: the encoder could not have written these bytes from numbers that differ,
 * and nothing in `out` is good for anything. */
bool seen_sorted_decode(const struct seen_sorted *s, uint64_t *out);
bool seen_sorted_ok(const struct seen_sorted *s);

/* How many different numbers there are; 0: the encoder could not have written
 * these bytes. */
uint64_t seen_sorted_different(const struct seen_sorted *s);

/* The samples of a list: how many bytes, which may be 0, and what is in them. */
uint64_t seen_sorted_samples_size(uint64_t n);
void seen_sorted_sample(const struct seen_sorted *s, uint8_t *out);
bool seen_sorted_samples_ok(const struct seen_sorted *s, const uint8_t *there);

/* Is this number, below s->below, in the list? `there`: its samples, or NULL. */
bool seen_sorted_has(const struct seen_sorted *s, const uint8_t *there,
                     uint64_t value);

/* there[i] becomes true if number i of these, all below s->below, is in the list,
 * and stays what it was if not. The first wants them to ascend; the second makes
 * an index of the list first and is faster from about 16 up. */
void seen_sorted_find(const struct seen_sorted *s, const uint64_t *values,
                      size_t n, bool *there);
void seen_sorted_find_many(const struct seen_sorted *s, const uint64_t *values,
                           size_t n, uint32_t *index, bool *there);
uint64_t seen_sorted_index_size(uint64_t n, uint64_t below); /* in uint32_t */

#endif
