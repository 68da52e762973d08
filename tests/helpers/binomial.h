/*
 * binomial.h - what a count of random events may be before something is wrong.
 *
 * n trials with probability p give a count inside low .. high, except in one
 * run of a million. Two-sided: a rate far below the formula is as wrong as one
 * above it, it means that the filter is larger than it should be.
 */
#ifndef SEEN_TEST_BINOMIAL_H
#define SEEN_TEST_BINOMIAL_H

#include "helpers/harness.h"

#define TEST_FLAKE_RATE 1e-6

struct test_interval {
    uint64_t low, high;
};

struct test_interval test_binomial(uint64_t n, double p);

#define assert_binomial(count, n, p)                                           \
    test_check_binomial((count), (n), (p), __FILE__, __LINE__)

void test_check_binomial(uint64_t count, uint64_t n, double p, const char *file,
                         int line);

/*
 * Is a chi-square statistic of `freedom` degrees too large to be chance, once
 * in a million? By the cube-root approximation of Wilson and Hilferty, good to
 * three digits from 10 degrees up.
 */
double test_chi_square_limit(double freedom);

#endif
