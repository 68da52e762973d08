/* test_cuckoo.c - the multiset of fingerprints: what it promises beyond the laws
 * of all kinds. */
#include "seen.h"

#include "helpers/binomial.h"
#include "helpers/keys.h"

static seen_filter *new_cuckoo(uint64_t n, double fpp)
{
    return test_filter(
        (seen_spec){.kind = SEEN_CUCKOO, .items = n, .fpp = fpp});
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info;
}

/* Add keys from 0 on until it is full; how many went in. */
static uint64_t fill_up(seen_filter *f)
{
    uint64_t n = 0;
    seen_status status;
    while ((status = seen_add_u64(f, test_key(n))) == SEEN_OK)
        n++;
    assert_int_equal(status, SEEN_FULL);
    return n;
}

static void full_means_at_least_94_percent_and_nothing_lost(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 5, 20, 100, 1000, 10000, 300000};
    static const double rates[] = {0.3, 0.01, 0.001, 1e-6, 1e-8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof rates / sizeof *rates; j++) {
            seen_filter *f = new_cuckoo(sizes[i], rates[j]);
            uint64_t n = fill_up(f);
            assert_true(n >= sizes[i]); /* as planned, at least */
            seen_info info = info_of(f);
            assert_int_equal(info.items, n);
            if (sizes[i] >= 1000)
                assert_true((double)info.bits_set >= 0.94 * (double)info.bits);
            /* The failed add changed nothing. */
            for (uint64_t k = 0; k < n; k++)
                assert_true(seen_maybe_u64(f, test_key(k)));
            seen_filter *again = new_cuckoo(sizes[i], rates[j]);
            for (uint64_t k = 0; k < n; k++)
                assert_int_equal(seen_add_u64(again, test_key(k)), SEEN_OK);
            assert_true(seen_equal(f, again));
            seen_free(again);
            seen_free(f);
        }
}

static void removed_keys_are_gone_and_others_stay(void **state)
{
    (void)state;
    const uint64_t n = 100000;
    seen_filter *f = new_cuckoo(n, 1e-8);
    test_add_members(f, 0, n);
    for (uint64_t i = 0; i < n; i += 2) {
        uint64_t key = test_key(i);
        assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
    }
    assert_int_equal(info_of(f).items, n / 2);
    uint64_t there = 0;
    for (uint64_t i = 0; i < n; i++) {
        bool maybe = seen_maybe_u64(f, test_key(i));
        if (i % 2) assert_true(maybe);
        there += maybe;
    }
    assert_between((double)there, (double)n / 2, (double)n / 2 + 2);
    uint64_t stranger = test_key(TEST_STRANGERS);
    assert_int_equal(seen_remove(f, &stranger, 8), SEEN_ABSENT);
    assert_int_equal(info_of(f).items, n / 2);
    seen_free(f);
}

static void a_key_counts_as_often_as_it_was_added(void **state)
{
    (void)state;
    seen_filter *f = new_cuckoo(1000, 1e-6);
    for (uint32_t times = 1; times <= 8; times++) {
        assert_int_equal(seen_add_str(f, "again"), SEEN_OK);
        assert_int_equal(seen_count(f, "again", 5), times);
    }
    /* Two buckets of four: no ninth copy, and nothing else is disturbed. */
    assert_int_equal(seen_add_str(f, "again"), SEEN_FULL);
    assert_int_equal(seen_count(f, "again", 5), 8);
    bool before = false;
    assert_int_equal(seen_visit(f, "again", 5, &before), SEEN_OK);
    assert_true(before);
    assert_int_equal(seen_count(f, "again", 5), 8);
    for (uint32_t times = 8; times-- > 0;) {
        assert_int_equal(seen_remove(f, "again", 5), SEEN_OK);
        assert_int_equal(seen_count(f, "again", 5), times);
    }
    assert_false(seen_maybe_str(f, "again"));
    assert_int_equal(seen_remove(f, "again", 5), SEEN_ABSENT);
    seen_free(f);
}

/* Random adds and removes of few keys against plain counters. */
static void building_from_repeated_keys_keeps_one_of_each(void **state)
{
    (void)state;
    seen_key keys[600];
    for (size_t i = 0; i < 600; i++)
        keys[i] = (seen_key){i < 300 ? "again" : "and again", i < 300 ? 5 : 9};
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_CUCKOO, .fpp = 0.001};
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(keys, 600), NULL),
                     SEEN_OK);
    assert_int_equal(seen_count(f, "again", 5), 1);
    assert_int_equal(seen_count(f, "and again", 9), 1);
    seen_free(f);
}

static void counts_agree_with_a_model(void **state)
{
    (void)state;
    enum {
        keys = 400
    };
    uint8_t model[keys] = {0};
    struct test_rng r = test_rng(81);
    seen_filter *f = new_cuckoo(keys * 4, 1e-8);
    for (uint64_t round = 0; round < 200000 * test_scale(); round++) {
        uint64_t k = test_below(&r, keys), key = test_key(k);
        if (test_below(&r, 2) && model[k] < 4) {
            if (seen_add(f, &key, 8) == SEEN_OK) model[k]++;
        } else if (model[k] > 0) {
            assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
            model[k]--;
        }
        assert_int_equal(seen_count(f, &key, 8), model[k]);
    }
    test_tried(200000 * test_scale(), "operations");
    for (uint64_t k = 0; k < keys; k++) {
        uint64_t key = test_key(k);
        assert_int_equal(seen_count(f, &key, 8), model[k]);
    }
    seen_free(f);
}

static void the_rate_is_what_the_load_predicts(void **state)
{
    (void)state;
    static const double rates[] = {0.1, 0.01, 0.001, 1e-4};
    const uint64_t n = 200000, probes = 1000000;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        seen_filter *f = new_cuckoo(n, rates[i]);
        test_add_members(f, 0, n);
        seen_info info = info_of(f);
        assert_true(info.fpp_now <= rates[i]);
        assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                        info.fpp_now);
        seen_free(f);
    }
}

static void thirteen_bits_make_a_thousandth(void **state)
{
    (void)state;
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_CUCKOO, .items = 1000000, .fpp = 0.001};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_int_equal(plan.width, 13);
    assert_true((double)plan.bits / 1e6 <= 13.9);
    /* And back from the bits. */
    spec = (seen_spec){.kind = SEEN_CUCKOO, .bits = plan.bits, .fpp = 0.001};
    seen_plan back = {.size = sizeof back};
    assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
    assert_between((double)back.items, 0.99e6, 1.01e6);
}

static void unions_add_up_or_change_nothing(void **state)
{
    (void)state;
    seen_filter *a = new_cuckoo(3000, 1e-6), *b = new_cuckoo(3000, 1e-6);
    seen_filter *all = new_cuckoo(3000, 1e-6), *before = NULL;
    test_add_members(a, 0, 1000);
    test_add_members(b, 500, 1000); /* 500 of them are in both */
    test_add_members(all, 0, 1000);
    test_add_members(all, 500, 1000);
    assert_int_equal(seen_merge(a, b, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(a, all));
    assert_int_equal(info_of(a).items, 2000);

    assert_int_equal(seen_copy(&before, a, NULL), SEEN_OK);
    assert_int_equal(seen_merge(a, all, SEEN_UNION, NULL), SEEN_FULL);
    assert_true(seen_equal(a, before));
    assert_int_equal(seen_merge(a, a, SEEN_UNION, NULL), SEEN_FULL);
    assert_true(seen_equal(a, before));
    assert_int_equal(seen_merge(a, b, SEEN_INTERSECTION, NULL),
                     SEEN_UNSUPPORTED);
    seen_free(a);
    seen_free(b);
    seen_free(all);
    seen_free(before);
}

static void order_does_not_matter_to_equality(void **state)
{
    (void)state;
    const uint64_t n = 20000;
    seen_filter *up = new_cuckoo(n, 0.001), *down = new_cuckoo(n, 0.001);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(seen_add_u64(up, test_key(i)), SEEN_OK);
        assert_int_equal(seen_add_u64(down, test_key(n - 1 - i)), SEEN_OK);
    }
    assert_true(seen_equal(up, down));
    assert_int_equal(seen_add_u64(down, test_key(n)), SEEN_OK);
    assert_false(seen_equal(up, down));
    seen_free(up);
    seen_free(down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_means_at_least_94_percent_and_nothing_lost),
        cmocka_unit_test(removed_keys_are_gone_and_others_stay),
        cmocka_unit_test(a_key_counts_as_often_as_it_was_added),
        cmocka_unit_test(building_from_repeated_keys_keeps_one_of_each),
        cmocka_unit_test(counts_agree_with_a_model),
        cmocka_unit_test(the_rate_is_what_the_load_predicts),
        cmocka_unit_test(thirteen_bits_make_a_thousandth),
        cmocka_unit_test(unions_add_up_or_change_nothing),
        cmocka_unit_test(order_does_not_matter_to_equality),
    };
    test_announce("cuckoo");
    return cmocka_run_group_tests_name("cuckoo", tests, NULL, NULL);
}
