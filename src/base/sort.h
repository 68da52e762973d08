/* sort.h - many 64-bit numbers into order, by counting. */
#ifndef SEEN_SORT_H
#define SEEN_SORT_H

#include <stdint.h>

/* Ascending; `spare` is as long and comes back as garbage. Time is the same
 * whatever the order was: eight passes. */
void seen_sort64(uint64_t *values, uint64_t *spare, uint64_t n);

/* Drop repeats from sorted values; how many are left. */
uint64_t seen_distinct64(uint64_t *sorted, uint64_t n);

#endif
