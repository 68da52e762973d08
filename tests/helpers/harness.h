/*
 * harness.h - cmocka, with the headers it wants before it, and what every test
 * shares: a seed, a scale and a random number generator.
 *
 * SEEN_TEST_SEED   any 64-bit number; the default is fixed, so that a run that
 *                  fails fails again. Printed at the start of every test.
 * SEEN_TEST_SCALE  how much work, 1 by default: the fast form. The numbers of
 *                  operations in the tests are multiplied by it.
 */
#ifndef SEEN_TEST_HARNESS_H
#define SEEN_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Read and print seed and scale; the first thing a test's main() does. */
void test_announce(const char *name);

/* Say how much of something was tried: script/soak adds these lines up. */
void test_tried(uint64_t n, const char *what);

uint64_t test_seed(void);
uint64_t test_scale(void);

/* A stream of random numbers. Each test starts its own from a number of its
 * own, so that leaving one out changes nothing for the others. */
struct test_rng {
    uint64_t state;
};

struct test_rng test_rng(uint64_t stream);
uint64_t test_next(struct test_rng *r);
uint64_t test_below(struct test_rng *r, uint64_t n); /* 0 .. n-1 */
double test_unit(struct test_rng *r);                /* 0 <= x < 1 */

/* A bijection of 64 bits. */
uint64_t test_mix(uint64_t x);

/* |actual - expected| <= tolerance * |expected| */
#define assert_close(actual, expected, tolerance)                              \
    test_check_close((actual), (expected), (tolerance), __FILE__, __LINE__)

/* low <= x <= high, and not NaN */
#define assert_between(x, low, high)                                           \
    test_check_between((x), (low), (high), __FILE__, __LINE__)

void test_check_close(double actual, double expected, double tolerance,
                      const char *file, int line);
void test_check_between(double x, double low, double high, const char *file,
                        int line);

#endif
