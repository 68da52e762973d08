/*
 * prop_fpp_within_bound.c - the measured rate is the promised one: inside a
 * two-sided binomial interval around the rate of the bits as they are, and that
 * within a few percent of what the plan expected.
 *
 * A million strangers for each filter, times SEEN_TEST_SCALE up to 100.
 */
#include "seen.h"

#include "helpers/binomial.h"
#include "helpers/keys.h"

#include <math.h>

static uint64_t probes(void)
{
    uint64_t scale = test_scale() < 100 ? test_scale() : 100;
    return 1000000 * scale;
}

/* Fill as planned, then measure. */
static void measure(seen_spec spec, uint64_t n, double tolerance)
{
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    seen_filter *f = test_filter(spec);
    test_add_members(f, 0, n);
    assert_int_equal(test_count_maybe(f, 0, n), n);

    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    uint64_t wrong = test_count_maybe(f, TEST_STRANGERS, probes());
    print_message("%-8s n %8zu  k %3u  %7.3f bits/key  planned %.4g  now %.4g "
                  " measured %.4g\n",
                  seen_kind_name(plan.kind), (size_t)n, plan.hashes,
                  (double)plan.bits / (double)n, plan.fpp, info.fpp_now,
                  (double)wrong / (double)probes());
    test_tried(probes(), "probes");
    assert_binomial(wrong, probes(), info.fpp_now);
    if (tolerance > 0)
        assert_close(info.fpp_now, seen_plan_fpp(&plan, n), tolerance);
    seen_free(f);
}

static const double rates[] = {0.1, 0.03, 0.01, 0.001, 1e-4};

static void all_rates(seen_kind kind)
{
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        measure((seen_spec){.items = 200000, .fpp = rates[i], .kind = kind},
                200000, 0.05);
}

static void classic_filters_keep_their_rate(void **state)
{
    (void)state;
    all_rates(SEEN_BLOOM);
}

static void blocked_filters_keep_their_rate(void **state)
{
    (void)state;
    all_rates(SEEN_BLOCKED);
}

static void a_million_keys_meet_the_plan_within_a_percent(void **state)
{
    (void)state;
    measure((seen_spec){.items = 1000000, .fpp = 0.01, .kind = SEEN_BLOOM},
            1000000, 0.01);
    measure((seen_spec){.items = 1000000, .fpp = 0.01, .kind = SEEN_BLOCKED},
            1000000, 0.01);
}

/* n = 100, m = 2048, k = 14: where plain double hashing gives 12 times the
 * rate of the formula. Many filters, since one has a fill of its own. */
static void small_filters_keep_their_rate(void **state)
{
    (void)state;
    enum {
        ROUNDS = 200
    };
    const uint64_t each = probes() / 20;
    static const struct {
        seen_spec spec;
        uint64_t n;
    } small[] = {
        {{.items = 100, .bits = 2048, .hashes = 14, .kind = SEEN_BLOOM}, 100},
        {{.items = 100, .fpp = 0.01, .kind = SEEN_BLOOM}, 100},
        {{.items = 100, .fpp = 0.01, .kind = SEEN_BLOCKED}, 100},
        {{.items = 100, .fpp = 1e-3, .kind = SEEN_BLOCKED}, 100},
        {{.items = 1, .fpp = 0.01, .kind = SEEN_BLOOM}, 1},
        {{.items = 1, .fpp = 0.01, .kind = SEEN_BLOCKED}, 1},
        {{.items = 2, .fpp = 0.1, .kind = SEEN_BLOOM}, 2},
    };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        seen_plan plan = {.size = sizeof plan};
        assert_int_equal(seen_plan_for(&small[i].spec, &plan, NULL), SEEN_OK);
        uint64_t wrong = 0, total = 0;
        double expected = 0;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            seen_filter *f = test_filter(small[i].spec);
            test_add_members(f, round * 1000, small[i].n);
            seen_info info = {.size = sizeof info};
            seen_measure(f, &info);
            expected += info.fpp_now / ROUNDS;
            wrong += test_count_maybe(f, TEST_STRANGERS + total, each);
            total += each;
            seen_free(f);
        }
        print_message("%-8s n %3zu  k %2u  m %5zu  planned %.4g  now %.4g  "
                      "measured %.4g\n",
                      seen_kind_name(plan.kind), (size_t)small[i].n,
                      plan.hashes, (size_t)plan.bits, plan.fpp, expected,
                      (double)wrong / (double)total);
        test_tried(total, "probes");
        assert_binomial(wrong, total, expected);
        /* Two hundred fills scatter around their mean. */
        assert_close(expected, plan.fpp, 0.35);
    }
}

/* Fewer bits in a line for rough filters, more lines for fine ones: each shape
 * by itself, overfilled until there is a rate to measure. */
static void every_shape_of_a_blocked_filter_keeps_its_rate(void **state)
{
    (void)state;
    static const uint32_t shapes[] = {1, 2, 4, 8, 16, 24, 32};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t n = 100000;
        uint64_t bits = n * (shapes[i] + 3);
        measure((seen_spec){.items = n,
                            .bits = bits,
                            .hashes = shapes[i],
                            .kind = SEEN_BLOCKED},
                n, 0.05);
    }
}

/* 128-bit hashes and secrets are expanded another way. */
static void wide_and_keyed_hashes_keep_the_rate(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++) {
        measure((seen_spec){.items = 100000,
                            .fpp = 0.01,
                            .kind = kinds[i],
                            .flags = SEEN_KEYED,
                            .secret = test_secret},
                100000, 0.05);
        /* Planned for 1e-13, filled until it errs now and then. */
        seen_spec fine = {.items = 10000, .fpp = 1e-13, .kind = kinds[i]};
        seen_plan plan = {.size = sizeof plan};
        assert_int_equal(seen_plan_for(&fine, &plan, NULL), SEEN_OK);
        assert_int_equal(plan.hash_bits, 128);
        measure(fine, 60000, 0.1);
    }
}

static void overfull_filters_are_as_bad_as_predicted(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++)
        for (uint64_t n = 50000; n <= 800000; n *= 4)
            measure((seen_spec){.items = 100000, .fpp = 0.01, .kind = kinds[i]},
                    n, 0.1);
}

/* Beyond 2^32 bits a position no longer fits 32 bits. One bit a key, so that
 * a million keys leave a rate that can be measured: 1e6 / 2^32. */
static void filters_over_two_to_the_32_bits_work(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    const uint64_t n = 1000000, bits = ((uint64_t)1 << 32) + 512 * 98765;
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {
            .items = n, .bits = bits, .hashes = 1, .kind = kinds[i]};
        seen_filter *f = NULL;
        seen_status status = seen_new(&f, &spec, NULL);
        if (status == SEEN_NOMEM) {
            print_message("no memory for %zu bits\n", (size_t)bits);
            skip();
        }
        assert_int_equal(status, SEEN_OK);
        test_add_members(f, 0, n);
        assert_int_equal(test_count_maybe(f, 0, n), n);
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        assert_true(info.bits > (uint64_t)1 << 32);
        /* As many bits as balls, less the few that met. */
        assert_between((double)info.bits_set,
                       (double)n - 1.3 * (double)n * (double)n / 0x1p33,
                       (double)n - 0.7 * (double)n * (double)n / 0x1p33);
        uint64_t wrong = test_count_maybe(f, TEST_STRANGERS, probes());
        assert_binomial(wrong, probes(), info.fpp_now);
        assert_close(info.fpp_now, (double)n / (double)bits, 0.01);
        seen_free(f);
    }
}

/* 2^36 bits, 8 GiB of addresses of which a few pages are touched. Hashes are
 * brought along, so that a position cut to 32 bits would meet another one's:
 * the top 27 bits choose 512 bits, the rest stays the same. */
static void positions_that_agree_modulo_two_to_the_32_differ(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    const uint64_t lines = (uint64_t)1 << 27, wrap = (uint64_t)1 << 23;
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {.items = 1000,
                          .bits = (uint64_t)1 << 36,
                          .hashes = 1,
                          .kind = kinds[i]};
        seen_filter *f = NULL;
        seen_status status = seen_new(&f, &spec, NULL);
        if (status == SEEN_NOMEM) skip();
        assert_int_equal(status, SEEN_OK);
        const uint64_t low = 0x9abcdef0;
        for (uint64_t line = 3; line < lines; line += 2 * wrap) {
            seen_hash there = {line << 37 | low, 1};
            seen_hash above = {(line + wrap) << 37 | low, 1};
            seen_hash below = {(line - wrap) % lines << 37 | low, 1};
            assert_false(seen_maybe_hashed(f, there));
            assert_int_equal(seen_add_hashed(f, there), SEEN_OK);
            assert_true(seen_maybe_hashed(f, there));
            assert_false(seen_maybe_hashed(f, above));
            assert_false(seen_maybe_hashed(f, below));
        }
        seen_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classic_filters_keep_their_rate),
        cmocka_unit_test(blocked_filters_keep_their_rate),
        cmocka_unit_test(a_million_keys_meet_the_plan_within_a_percent),
        cmocka_unit_test(small_filters_keep_their_rate),
        cmocka_unit_test(every_shape_of_a_blocked_filter_keeps_its_rate),
        cmocka_unit_test(wide_and_keyed_hashes_keep_the_rate),
        cmocka_unit_test(overfull_filters_are_as_bad_as_predicted),
        cmocka_unit_test(positions_that_agree_modulo_two_to_the_32_differ),
        cmocka_unit_test(filters_over_two_to_the_32_bits_work),
    };
    test_announce("fpp_within_bound");
    return cmocka_run_group_tests_name("fpp_within_bound", tests, NULL, NULL);
}
