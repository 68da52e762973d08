/*
 * binomial.c - tails of the binomial distribution, summed term by term.
 *
 * Weights are taken relative to the peak: w(j+1) / w(j) = (n-j)/(j+1) p/(1-p).
 * No factorial, no overflow; the sum of all weights is the unit.
 */
#include "helpers/binomial.h"

#include <inttypes.h>
#include <math.h>

#define TINY 1e-25

struct walk {
    double odds, n;
};

static double up(const struct walk *w, double j)
{
    return (w->n - j) / (j + 1) * w->odds;
}

/* The weight of everything from the peak on, in one direction. */
static double weigh(const struct walk *w, double peak, bool upwards)
{
    double weight = 1, sum = 0;
    for (double j = peak; weight > TINY;) {
        sum += weight;
        if (upwards) {
            weight *= up(w, j);
            j++;
        } else {
            if (j == 0) break;
            j--;
            weight /= up(w, j);
        }
    }
    return sum;
}

/* How far from the peak until what lies beyond weighs no more than `tail`. */
static double reach(const struct walk *w, double peak, bool upwards,
                    double side, double tail)
{
    double weight = 1, beyond = side, j = peak;
    for (;;) {
        beyond -= weight;
        if (beyond <= tail || weight <= TINY) return j;
        if (upwards) {
            weight *= up(w, j);
            j++;
        } else {
            if (j == 0) return j;
            j--;
            weight /= up(w, j);
        }
    }
}

struct test_interval test_binomial(uint64_t n, double p)
{
    if (p <= 0) return (struct test_interval){0, 0};
    if (p >= 1) return (struct test_interval){n, n};
    struct walk w = {.odds = p / (1 - p), .n = (double)n};
    double peak = fmin(floor((w.n + 1) * p), w.n);
    double above = weigh(&w, peak, true), below = weigh(&w, peak, false);
    double tail = TEST_FLAKE_RATE / 2 * (above + below - 1);
    return (struct test_interval){(uint64_t)reach(&w, peak, false, below, tail),
                                  (uint64_t)reach(&w, peak, true, above, tail)};
}

void test_check_binomial(uint64_t count, uint64_t n, double p, const char *file,
                         int line)
{
    struct test_interval i = test_binomial(n, p);
    if (count >= i.low && count <= i.high) return;
    print_error("%" PRIu64 " of %" PRIu64 " is outside %" PRIu64 "..%" PRIu64
                ", the interval for p = %g\n",
                count, n, i.low, i.high, p);
    _fail(file, line);
}

double test_chi_square_limit(double freedom)
{
    const double z = 4.7534; /* the normal quantile of 1 - 1e-6 */
    double c = 2 / (9 * freedom);
    double root = 1 - c + z * sqrt(c);
    return freedom * root * root * root;
}
