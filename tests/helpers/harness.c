/* harness.c - seed, scale, random numbers and checks of floating point. */
#include "helpers/harness.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Read once by test_announce(), before there are threads. */
static struct {
    uint64_t seed, scale;
} run = {20240917, 1};

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

void test_announce(const char *name)
{
    run.seed = number_from("SEEN_TEST_SEED", run.seed);
    run.scale = number_from("SEEN_TEST_SCALE", run.scale);
    if (run.scale == 0) run.scale = 1;
    const char *cpu = getenv("SEEN_CPU");
    printf("%s: SEEN_TEST_SEED=%" PRIu64 " SEEN_TEST_SCALE=%" PRIu64
           " SEEN_CPU=%s\n",
           name, run.seed, run.scale, cpu ? cpu : "");
    fflush(stdout);
}

void test_tried(uint64_t n, const char *what)
{
    print_message("tried %" PRIu64 " %s\n", n, what);
}

uint64_t test_seed(void)
{
    return run.seed;
}

uint64_t test_scale(void)
{
    return run.scale;
}

/* The mixer of splitmix64 in the constants of David Stafford's variant 13. */
uint64_t test_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct test_rng test_rng(uint64_t stream)
{
    return (struct test_rng){test_mix(test_seed() + test_mix(stream))};
}

uint64_t test_next(struct test_rng *r)
{
    return test_mix(r->state += 0x9e3779b97f4a7c15u);
}

uint64_t test_below(struct test_rng *r, uint64_t n)
{
    return test_next(r) % n; /* the bias is far below what a test can see */
}

double test_unit(struct test_rng *r)
{
    return (double)(test_next(r) >> 11) * 0x1p-53;
}

void test_check_close(double actual, double expected, double tolerance,
                      const char *file, int line)
{
    if (fabs(actual - expected) <= tolerance * fabs(expected)) return;
    print_error("%.17g is not %.17g within a factor of %g\n", actual, expected,
                tolerance);
    _fail(file, line);
}

void test_check_between(double x, double low, double high, const char *file,
                        int line)
{
    if (x >= low && x <= high) return;
    print_error("%.17g is not between %.17g and %.17g\n", x, low, high);
    _fail(file, line);
}
