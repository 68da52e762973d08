/*
 * sort.c - sort by counting, a byte at a time from the lowest.
 *
 * Each pass deals the numbers into 256 heaps by one byte and puts the heaps one
 * behind the other; heaps keep the order of the pass before, so after the pass
 * over the highest byte all are in order. For hashes, which have no pattern a
 * comparing sort could use, this is several times as fast. Few numbers are gone
 * sooner than 8 times 256 heaps: each is put into its place among those before.
 */
#include "base/sort.h"

#define FEW 48

static void sort_few(uint64_t *values, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        uint64_t value = values[i], at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

void seen_sort64(uint64_t *values, uint64_t *spare, uint64_t n)
{
    if (n <= FEW) {
        sort_few(values, n);
        return;
    }
    for (uint32_t shift = 0; shift < 64; shift += 8) {
        uint64_t start[257] = {0};
        for (uint64_t i = 0; i < n; i++)
            start[(values[i] >> shift & 255) + 1]++;
        for (uint32_t b = 0; b < 256; b++)
            start[b + 1] += start[b];
        for (uint64_t i = 0; i < n; i++)
            spare[start[values[i] >> shift & 255]++] = values[i];
        uint64_t *sorted = spare; /* an even number of passes: ends in values */
        spare = values;
        values = sorted;
    }
}

uint64_t seen_distinct64(uint64_t *sorted, uint64_t n)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || sorted[i] != sorted[i - 1]) sorted[kept++] = sorted[i];
    return kept;
}
