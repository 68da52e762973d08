/* test_reduce.c - from a hash to a number below n. */
#include "probe/modulo.h"
#include "probe/reduce.h"

#include "helpers/binomial.h"

static void results_are_below_n(void **state)
{
    (void)state;
    struct test_rng r = test_rng(7);
    for (int i = 0; i < 100000; i++) {
        uint64_t n = test_next(&r) >> test_below(&r, 64);
        if (n == 0) n = 1;
        assert_true(seen_reduce(test_next(&r), n) < n);
        assert_true(seen_reduce(UINT64_MAX, n) == n - 1);
        assert_true(seen_reduce(0, n) == 0);
    }
    assert_true(seen_reduce(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
}

static void order_is_kept(void **state)
{
    (void)state;
    struct test_rng r = test_rng(8);
    for (int i = 0; i < 100000; i++) {
        uint64_t n = (test_next(&r) >> test_below(&r, 64)) | 1;
        uint64_t a = test_next(&r), b = test_next(&r);
        if (a > b) {
            uint64_t c = a;
            a = b;
            b = c;
        }
        assert_true(seen_reduce(a, n) <= seen_reduce(b, n));
    }
}

static void a_power_of_two_takes_the_top_bits(void **state)
{
    (void)state;
    struct test_rng r = test_rng(9);
    for (uint32_t log = 1; log < 64; log++) {
        uint64_t h = test_next(&r);
        assert_true(seen_reduce(h, (uint64_t)1 << log) == h >> (64 - log));
    }
}

/* Every number below n owns floor(2^64 / n) or one more of the 2^64 hashes: the
 * first hash that reaches r is ceil(r 2^64 / n). */
static void shares_differ_by_one_hash_at_most(void **state)
{
    (void)state;
    const uint64_t n = 1000;
    const seen_u128 all = (seen_u128)1 << 64;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t first = (uint64_t)((all * i + n - 1) / n);
        assert_true(seen_reduce(first, n) == i);
        assert_true(seen_reduce(first - 1, n) == i - 1);
    }
}

static void choice_among_1000_is_unbiased(void **state)
{
    (void)state;
    enum {
        LINES = 1000,
        PER_LINE = 1000
    };
    static uint32_t hits[LINES];
    struct test_rng r = test_rng(10);
    for (int i = 0; i < LINES * PER_LINE; i++)
        hits[seen_reduce(test_next(&r), LINES)]++;
    double chi = 0;
    for (int i = 0; i < LINES; i++) {
        double d = (double)hits[i] - PER_LINE;
        chi += d * d / PER_LINE;
    }
    assert_between(chi, 800, test_chi_square_limit(LINES - 1));
}

static void remainders_are_exact(void **state)
{
    (void)state;
    struct test_rng r = test_rng(10);
    static const uint64_t edges[] = {1,
                                     2,
                                     3,
                                     64,
                                     0x7fffffff,
                                     0x80000000u,
                                     0xffffffffu,
                                     INT64_MAX,
                                     (uint64_t)1 << 63,
                                     UINT64_MAX,
                                     UINT64_MAX - 58,
                                     ((uint64_t)1 << 63) + 1};
    const size_t n_edges = sizeof edges / sizeof *edges;
    for (int i = 0; i < 100000; i++) {
        uint64_t d = (test_next(&r) >> test_below(&r, 64)) | 1;
        if ((size_t)i < n_edges) d = edges[i];
        struct seen_modulo m = seen_modulo_of(d);
        for (size_t j = 0; j < n_edges; j++)
            assert_true(seen_modulo(edges[j], &m) == edges[j] % d &&
                        seen_modulo32((uint32_t)edges[j], &m) ==
                            (uint32_t)edges[j] % d);
        for (int j = 0; j < 8; j++) {
            uint64_t n = test_next(&r);
            assert_true(seen_modulo(n, &m) == n % d);
            n -= n % d; /* a multiple, and the number before it */
            assert_true(seen_modulo(n, &m) == 0);
            assert_true(seen_modulo(n - 1, &m) == (n - 1) % d);
            assert_true(seen_modulo32((uint32_t)n, &m) == (uint32_t)n % d);
        }
        assert_true(seen_modulo(0, &m) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_below_n),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(a_power_of_two_takes_the_top_bits),
        cmocka_unit_test(shares_differ_by_one_hash_at_most),
        cmocka_unit_test(choice_among_1000_is_unbiased),
        cmocka_unit_test(remainders_are_exact),
    };
    test_announce("reduce");
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
