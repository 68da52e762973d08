/*
 * test_sizing.c - the arithmetic against numbers that people know by heart,
 * against exact enumeration, and against experiment.
 */
#include "plan/sizing.h"

#include "helpers/harness.h"

#include <math.h>
#include <string.h>

/* ---- Classic ------------------------------------------------------------ */

static void bits_per_key_are_those_of_the_textbook(void **state)
{
    (void)state;
    static const struct {
        double fpp, bits;
        uint32_t k;
    } rows[] = {{0.5, 1.44, 1},    {0.1, 4.79, 3},      {0.05, 6.235, 4},
                {0.01, 9.585, 7},  {0.001, 14.377, 10}, {1e-4, 19.17, 13},
                {1e-6, 28.755, 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ideal = -log(rows[i].fpp) / (log(2) * log(2));
        assert_close(ideal, rows[i].bits, 0.002);
        uint32_t k = 0;
        double bits = seen_bits_for(1, rows[i].fpp, &k);
        assert_int_equal(k, rows[i].k);
        /* A whole k costs something, never more than 1 %. */
        assert_between(bits, ideal * (1 - 1e-9), ideal * 1.01);
    }
}

static void eight_bits_a_key_give_about_two_percent(void **state)
{
    (void)state;
    uint32_t k = seen_hashes_for(1e6, 8e6);
    assert_true(k == 5 || k == 6);
    assert_between(seen_fpp_bloom(1e6, 8e6, k), 0.021, 0.022);
}

static void k_is_the_best_of_all(void **state)
{
    (void)state;
    for (double per_key = 0.5; per_key < 60; per_key += 0.37) {
        uint32_t k = seen_hashes_for(1000, 1000 * per_key);
        double fpp = seen_fpp_bloom(1000, 1000 * per_key, k);
        for (uint32_t other = 1; other < 80; other++)
            assert_true(fpp <= seen_fpp_bloom(1000, 1000 * per_key, other));
    }
    assert_int_equal(seen_hashes_for(1, 1e9), SEEN_MAX_HASHES);
    assert_int_equal(seen_hashes_for(1e9, 1), 1);
}

static void bits_and_capacity_invert_the_rate(void **state)
{
    (void)state;
    struct test_rng r = test_rng(20);
    for (int i = 0; i < 2000; i++) {
        double p = pow(10, -12 * test_unit(&r)) * 0.9;
        double n = 1 + floor(1e9 * test_unit(&r));
        uint32_t k = i % 2 ? 0 : 1 + (uint32_t)test_below(&r, 40);
        double m = seen_bits_for(n, p, &k);
        assert_close(seen_fpp_bloom(n, m, k), p, 1e-9);
        assert_close(seen_capacity_for(m, p, &k), n, 1e-9);
    }
}

/* The distribution of set bits after `balls` balls, one ball at a time. */
static double enumerated_fpp(uint32_t n, uint32_t m, uint32_t k)
{
    static double with[4097];
    memset(with, 0, sizeof with);
    with[0] = 1;
    for (uint32_t ball = 0; ball < n * k; ball++) {
        for (uint32_t set = m; set > 0; set--)
            with[set] = with[set] * set / m + with[set - 1] * (m - set + 1) / m;
        with[0] = 0;
    }
    double p = 0;
    for (uint32_t set = 0; set <= m; set++)
        p += with[set] * pow((double)set / m, k);
    return p;
}

static void exact_rate_is_that_of_enumeration(void **state)
{
    (void)state;
    for (uint32_t m = 1; m <= 40; m++)
        for (uint32_t n = 0; n <= 12; n++)
            for (uint32_t k = 1; k <= 9; k++)
                assert_between(seen_fpp_exact(n, m, k) -
                                   enumerated_fpp(n, m, k),
                               -1e-12, 1e-12);
    static const uint32_t larger[][3] = {{10, 100, 7},
                                         {100, 1000, 7},
                                         {100, 2048, 14},
                                         {30, 64, 64},
                                         {1, 13, 7}};
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++) {
        const uint32_t *c = larger[i];
        assert_close(seen_fpp_exact(c[0], c[1], c[2]),
                     enumerated_fpp(c[0], c[1], c[2]), 1e-9);
    }
}

static void exact_rate_is_that_of_experiment(void **state)
{
    (void)state;
    enum {
        N = 100,
        M = 2048,
        K = 14,
        TRIALS = 4000
    };
    struct test_rng r = test_rng(21);
    double sum = 0, squares = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        uint64_t words[M / 64] = {0};
        for (int ball = 0; ball < N * K; ball++) {
            uint64_t pos = test_next(&r) % M;
            words[pos / 64] |= (uint64_t)1 << pos % 64;
        }
        int set = 0;
        for (int i = 0; i < M; i++)
            set += words[i / 64] >> i % 64 & 1;
        double p = pow((double)set / M, K);
        sum += p;
        squares += p * p;
    }
    double mean = sum / TRIALS;
    double error = sqrt((squares / TRIALS - mean * mean) / TRIALS);
    double exact = seen_fpp_exact(N, M, K);
    assert_between(exact, mean - 5 * error, mean + 5 * error);
    /* The textbook is too low here by more than the experiment's error. */
    assert_true(seen_fpp_bloom(N, M, K) < exact);
}

static void exact_rate_is_above_the_textbook_and_meets_it(void **state)
{
    (void)state;
    double gap = 1;
    for (uint64_t m = 64; m <= (uint64_t)1 << 32; m *= 4) {
        uint64_t n = m / 10;
        double exact = seen_fpp_exact(n, m, 7);
        double textbook = seen_fpp_bloom((double)n, (double)m, 7);
        /* Each of the kn steps rounds once. */
        double rounding = 7 * (double)n * 0x1p-52;
        assert_true(exact >= textbook * (1 - rounding));
        assert_true(exact / textbook - 1 < gap + rounding);
        gap = exact / textbook - 1;
    }
    assert_between(gap, -1e-6, 1e-6);
}

static void nonsense_gives_nan_and_no_keys_give_zero(void **state)
{
    (void)state;
    assert_true(isnan(seen_fpp_bloom(10, 0, 3)));
    assert_true(isnan(seen_fpp_bloom(10, 100, 0)));
    assert_true(isnan(seen_fpp_exact(10, 0, 3)));
    assert_true(isnan(seen_fpp_exact(10, 100, 0)));
    assert_true(isnan(seen_fpp_blocked(10, 0, 1, 8)));
    assert_true(isnan(seen_fpp_blocked(10, 8, 0, 8)));
    assert_true(isnan(seen_fpp_blocked(10, 1, 2, 8)));
    assert_true(isnan(seen_fpp_blocked(10, 8, 1, 3)));
    assert_true(isnan(seen_fpp_blocked(10, 8, 1, 16)));
    assert_true(seen_fpp_bloom(0, 100, 3) == 0);
    assert_true(seen_fpp_exact(0, 100, 3) == 0);
    assert_true(seen_fpp_blocked(0, 10, 1, 8) == 0);
    /* Overfull beyond all reason is 1, not a number above it. */
    assert_true(seen_fpp_bloom(1e18, 100, 3) == 1);
    assert_close(seen_fpp_exact(UINT64_MAX / 4, 100, 3), 1, 1e-12);
    assert_true(seen_fpp_blocked(UINT64_MAX, 10, 1, 8) == 1);
}

/* ---- Blocked ------------------------------------------------------------ */

/* n keys into random lines, one random bit in each group; then the rate of the
 * bits as they are, averaged over many filters. */
static void check_blocked(uint32_t n, uint32_t lines, uint32_t w, int trials)
{
    struct test_rng r = test_rng(22);
    static uint64_t words[64 * 8];
    double sum = 0, squares = 0;
    for (int trial = 0; trial < trials; trial++) {
        memset(words, 0, sizeof words);
        for (uint32_t key = 0; key < n; key++) {
            uint64_t line = test_below(&r, lines);
            for (uint32_t g = 0; g < w; g++) {
                uint64_t bit =
                    line * 512 + g * (512 / w) + test_below(&r, 512 / w);
                words[bit / 64] |= (uint64_t)1 << bit % 64;
            }
        }
        double p = 0;
        for (uint32_t line = 0; line < lines; line++) {
            double wrong = 1;
            for (uint32_t g = 0; g < w; g++) {
                uint32_t set = 0;
                for (uint32_t i = 0; i < 512 / w; i++) {
                    uint32_t bit = line * 512 + g * (512 / w) + i;
                    set += words[bit / 64] >> bit % 64 & 1;
                }
                wrong *= (double)set * w / 512;
            }
            p += wrong / lines;
        }
        sum += p;
        squares += p * p;
    }
    double mean = sum / trials;
    double error = sqrt((squares / trials - mean * mean) / trials);
    double formula = seen_fpp_blocked(n, lines, 1, w);
    assert_between(formula, mean - 5 * error, mean + 5 * error);
    /* Regions are independent copies of this. */
    assert_close(seen_fpp_blocked(n, 3 * lines, 3, w), pow(formula, 3), 1e-9);
}

static void blocked_rate_is_that_of_experiment(void **state)
{
    (void)state;
    check_blocked(50, 1, 8, 2000);
    check_blocked(500, 10, 8, 500);
    check_blocked(1600, 32, 8, 200);
    check_blocked(300, 10, 4, 500);
    check_blocked(300, 10, 2, 500);
    check_blocked(100, 10, 1, 500);
    check_blocked(3, 20, 2, 4000);
}

static void blocked_rate_grows_with_keys_and_falls_with_lines(void **state)
{
    (void)state;
    for (uint32_t w = 1; w <= 8; w *= 2) {
        double before = 0;
        for (uint64_t n = 1; n < 10000000; n = n * 5 / 4 + 1) {
            double fpp = seen_fpp_blocked(n, 1000, 1, w);
            assert_true(fpp >= before && fpp <= 1);
            before = fpp;
        }
        before = 1;
        for (uint64_t lines = 1; lines < 10000000; lines = lines * 5 / 4 + 1) {
            double fpp = seen_fpp_blocked(100000, lines, 1, w);
            assert_true(fpp <= before && fpp > 0);
            before = fpp;
        }
    }
}

static const double promises[] = {0.2,  0.1,  0.05, 0.03,  0.02,  0.01,
                                  3e-3, 1e-3, 3e-4, 1e-4,  1e-5,  1e-6,
                                  1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12};
static const uint64_t amounts[] = {1, 2, 10, 100, 10000, 1000000, 1000000000};

#define PROMISES (sizeof promises / sizeof *promises)
#define AMOUNTS  (sizeof amounts / sizeof *amounts)

static void blocked_rate_knows_that_a_line_sees_32_bits(void **state)
{
    (void)state;
    /* A line of one key answers wrongly where 32 hash bits agree, however
     * unlikely its eight bits are by chance. */
    double one_key = seen_fpp_blocked(1, 1, 1, 8);
    assert_between(one_key, 0x1p-32, 1.1 * 0x1p-32);
    /* So one line cannot keep 1e-12, and the planner says so. */
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_BLOCKED, .items = 100, .fpp = 1e-12};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_true(plan.lines > 1);
}

/* The lines that some larger rate takes: no lower one may take fewer. */
static uint64_t lines_of_larger_rates(uint64_t n, double p)
{
    uint64_t most = 0;
    for (double larger = p; larger < 0.5; larger *= 1.01) {
        struct seen_line_layout l;
        assert_true(seen_line_layout_for(n, larger, 0, &l));
        if (l.regions * l.count > most && larger > p)
            most = l.regions * l.count;
    }
    return most;
}

static void layout_keeps_the_promise_and_wastes_no_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROMISES; i++)
        for (size_t j = 0; j < AMOUNTS; j++) {
            double p = promises[i];
            uint64_t n = amounts[j];
            struct seen_line_layout l;
            assert_true(seen_line_layout_for(n, p, 0, &l));
            assert_true(l.regions >= 1 && l.regions <= SEEN_MAX_REGIONS);
            double fpp =
                seen_fpp_blocked(n, l.count * l.regions, l.regions, l.per_line);
            if (!(fpp <= p)) fail_msg("n %zu, p %g", (size_t)n, p);
            if (l.count == 1) continue;
            fpp = seen_fpp_blocked(n, (l.count - 1) * l.regions, l.regions,
                                   l.per_line);
            if (!(fpp > p) &&
                lines_of_larger_rates(n, p) <= (l.count - 1) * l.regions)
                fail_msg("n %zu, p %g: wasteful", (size_t)n, p);
        }
}

/* The lines of so many bits a key, of which each region has 8; 0: too many. */
static double lines_with(uint64_t n, double p, uint32_t hashes)
{
    struct seen_line_layout l;
    if (!seen_line_layout_for(n, p, hashes, &l)) return 0;
    return (double)(l.count * l.regions);
}

/* More bits in a line may cost a fiftieth, each time that they are doubled. */
static void assert_few_bits_would_not_do(uint64_t n, double p, double lines)
{
    for (uint32_t hashes = 1; hashes <= 8; hashes *= 2) {
        double others = lines_with(n, p, hashes);
        if (others && lines > 1.07 * others)
            fail_msg("p %g: %g lines, %u bits of a key take %g", p, lines,
                     hashes, others);
    }
}

/* One region more saves what it must, one further would not. The table of rates
 * is rounded: a hundredth is for that. */
static void regions_pay_and_no_further_one_would(void **state)
{
    (void)state;
    static const double saves[] = {
        [SEEN_SAVES_TWENTIETH] = 0.95, [SEEN_SAVES_TENTH] = 0.9};
    const uint64_t n = 1000000;
    uint32_t most = 0;
    for (int s = 0; s < 2; s++)
        for (double e = 0.31; e < 15; e += 0.01) {
            struct seen_line_layout l;
            const double p = pow(10, -e), worth = saves[s];
            assert_true(
                seen_line_layout_paying(n, p, (enum seen_saves)s, 1, &l));
            const uint32_t r = l.regions;
            const double fewer = lines_with(n, p, 8 * (r - 1));
            const double these =
                r == 1 ? (double)l.count : lines_with(n, p, 8 * r);
            const double more = lines_with(n, p, 8 * (r + 1));
            if (r == 1) assert_few_bits_would_not_do(n, p, these);
            if (r > 1 && fewer && these > 1.01 * worth * fewer)
                fail_msg("p %g: %u regions do not pay", p, r);
            if (more && more < 0.99 * worth * these)
                fail_msg("p %g: %u regions would pay", p, r + 1);
            if (r > most) most = r;
        }
    assert_true(most >= 3);
}

static void layout_for_given_hashes_keeps_the_promise_too(void **state)
{
    (void)state;
    static const uint32_t hashes[] = {1, 2, 4, 8, 16, 24, 32, 64, 128};
    for (size_t h = 0; h < sizeof hashes / sizeof *hashes; h++)
        for (size_t i = 0; i < PROMISES; i++) {
            struct seen_line_layout l;
            if (!seen_line_layout_for(10000, promises[i], hashes[h], &l))
                continue;
            assert_int_equal(l.regions * l.per_line, hashes[h]);
            assert_true(seen_fpp_blocked(10000, l.count * l.regions, l.regions,
                                         l.per_line) <= promises[i]);
        }
    struct seen_line_layout l;
    assert_false(seen_line_layout_for(10000, 0.01, 3, &l));
    assert_false(seen_line_layout_for(10000, 0.01, 136, &l));
}

static void layout_costs_what_the_documents_say(void **state)
{
    (void)state;
    static const struct {
        double fpp, most;
    } rows[] = {{0.1, 6.1},   {0.01, 10.2}, {0.001, 15.8},
                {1e-4, 20.6}, {1e-5, 25.8}, {1e-6, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seen_line_layout l;
        assert_true(seen_line_layout_for(1000000, rows[i].fpp, 0, &l));
        double bits = (double)(l.count * l.regions) * 512 / 1e6;
        assert_between(bits, -log2(rows[i].fpp) * 1.44, rows[i].most);
    }
}

static void capacity_of_a_layout_is_the_last_that_keeps_the_rate(void **state)
{
    (void)state;
    for (uint64_t lines = 1; lines < 1000000; lines = lines * 3 + 1)
        for (size_t i = 0; i < PROMISES; i++) {
            struct seen_line_layout l;
            uint64_t guess = lines * 512 / 10 + 1;
            assert_true(seen_line_layout_within(guess, lines, 0, &l));
            uint64_t all = l.count * l.regions;
            assert_true(all <= lines);
            uint64_t n = seen_line_layout_capacity(&l, promises[i]);
            assert_true(n == 0 || seen_fpp_blocked(n, all, l.regions,
                                                   l.per_line) <= promises[i]);
            assert_true(seen_fpp_blocked(n + 1, all, l.regions, l.per_line) >
                        promises[i]);
        }
}

/* ---- All kinds ---------------------------------------------------------- */

static void five_filters_of_a_thousandth_make_half_a_percent(void **state)
{
    (void)state;
    const double five[5] = {0.001, 0.001, 0.001, 0.001, 0.001};
    assert_close(seen_fpp_combined(five, 5), 0.00499001, 1e-6);
    assert_true(seen_fpp_combined(five, 0) == 0);
    const double certain[2] = {0.5, 1};
    assert_true(seen_fpp_combined(certain, 2) == 1);
    const double tiny[2] = {1e-18, 2e-18}; /* 1 - (1-p)(1-q) would give 0 */
    assert_close(seen_fpp_combined(tiny, 2), 3e-18, 1e-9);
}

static void items_follow_from_the_fill(void **state)
{
    (void)state;
    static const double m[] = {512, 10000, 1e6, 1e12};
    for (size_t i = 0; i < sizeof m / sizeof *m; i++)
        for (double k = 1; k <= 20; k++)
            for (double load = 0.001; load < 3; load *= 2) {
                double n = load * m[i] / k;
                double set = -m[i] * expm1(k * n * log1p(-1 / m[i]));
                /* At a high fill the last digits of `set` decide. */
                assert_close(seen_items_from_fill(set, m[i], k), n, 1e-5);
            }
    assert_true(seen_items_from_fill(0, 100, 7) == 0);
    assert_true(isinf(seen_items_from_fill(100, 100, 7)));
    seen_plan plan = {.size = sizeof plan, .bits = 100, .hashes = 7};
    assert_true(seen_plan_items(&plan, 100) == UINT64_MAX);
    assert_true(seen_plan_items(&plan, 0) == 0);
}

static void hash_is_wide_where_64_bits_would_cost_a_thousandth(void **state)
{
    (void)state;
    const seen_spec plain = {.fpp = 0.5},
                    keyed = {.fpp = 0.5, .flags = SEEN_KEYED};
    double n = 1e6, edge = n * 1000 * 0x1p-64;
    assert_int_equal(seen_hash_bits_for(n, edge, &plain), 64);
    assert_int_equal(seen_hash_bits_for(n, edge * 0.999, &plain), 128);
    assert_int_equal(seen_hash_bits_for(n, 0.5, &keyed), 128);
    double last = n * 1000 * 0x1p-127;
    assert_int_equal(seen_hash_bits_for(n, last, &plain), 128);
    assert_int_equal(seen_hash_bits_for(n, last * 0.999, &plain), 0);
    assert_int_equal(seen_hash_bits_for(n, last * 0.999, &keyed), 0);
    /* Nobody insists on a rate: the best there is will do. */
    const seen_spec open = {.items = 1000000, .bits = 1};
    assert_int_equal(seen_hash_bits_for(n, last * 0.999, &open), 128);

    assert_close(seen_hash_fpp(1000000, 64), 1e6 * 0x1p-64, 1e-12);
    assert_close(seen_hash_fpp(1000000, 128), 1e6 * 0x1p-127, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_per_key_are_those_of_the_textbook),
        cmocka_unit_test(eight_bits_a_key_give_about_two_percent),
        cmocka_unit_test(k_is_the_best_of_all),
        cmocka_unit_test(bits_and_capacity_invert_the_rate),
        cmocka_unit_test(exact_rate_is_that_of_enumeration),
        cmocka_unit_test(exact_rate_is_that_of_experiment),
        cmocka_unit_test(exact_rate_is_above_the_textbook_and_meets_it),
        cmocka_unit_test(nonsense_gives_nan_and_no_keys_give_zero),
        cmocka_unit_test(blocked_rate_is_that_of_experiment),
        cmocka_unit_test(blocked_rate_grows_with_keys_and_falls_with_lines),
        cmocka_unit_test(blocked_rate_knows_that_a_line_sees_32_bits),
        cmocka_unit_test(layout_keeps_the_promise_and_wastes_no_line),
        cmocka_unit_test(regions_pay_and_no_further_one_would),
        cmocka_unit_test(layout_for_given_hashes_keeps_the_promise_too),
        cmocka_unit_test(layout_costs_what_the_documents_say),
        cmocka_unit_test(capacity_of_a_layout_is_the_last_that_keeps_the_rate),
        cmocka_unit_test(five_filters_of_a_thousandth_make_half_a_percent),
        cmocka_unit_test(items_follow_from_the_fill),
        cmocka_unit_test(hash_is_wide_where_64_bits_would_cost_a_thousandth),
    };
    test_announce("sizing");
    return cmocka_run_group_tests_name("sizing", tests, NULL, NULL);
}
