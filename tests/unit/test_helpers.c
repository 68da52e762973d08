/* test_helpers.c - the tests' own tools, tested first: a wrong interval would
 * make every measured rate look right. */
#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"
#include "helpers/model.h"

static void near_interval(uint64_t n, double p, uint64_t low, uint64_t high)
{
    struct test_interval i = test_binomial(n, p);
    assert_in_range(i.low, low - 1, low + 1);
    assert_in_range(i.high, high - 1, high + 1);
}

/* Computed once more with log-gamma sums in another language. */
static void binomial_interval_matches_known_ranges(void **state)
{
    (void)state;
    near_interval(1000000, 0.01, 9517, 10490);
    near_interval(10000000, 0.01, 98465, 101543);
    near_interval(1000000, 0.001, 849, 1158);
    near_interval(10000000, 0.001, 9515, 10493);
    near_interval(10000000, 0.0001, 849, 1158);
}

/* Ten throws of a fair coin: 2^-10 each for none and for all ten. */
static void binomial_interval_is_exact_for_few_trials(void **state)
{
    (void)state;
    struct test_interval i = test_binomial(10, 0.5);
    assert_int_equal(i.low, 0);
    assert_int_equal(i.high, 10);
    i = test_binomial(30, 0.5);
    /* P(X <= 2) = 466 / 2^30 = 4.3e-7, P(X <= 3) = 4526 / 2^30 = 4.2e-6 */
    assert_int_equal(i.low, 3);
    assert_int_equal(i.high, 27);
    i = test_binomial(1000, 0);
    assert_int_equal(i.high, 0);
    i = test_binomial(1000, 1);
    assert_int_equal(i.low, 1000);
    i = test_binomial(1000000, 1e-9); /* P(X >= 2) = 5e-7 */
    assert_int_equal(i.low, 0);
    assert_int_equal(i.high, 1);
}

static void keys_do_not_repeat(void **state)
{
    (void)state;
    struct model_set s = model_set_new();
    for (uint64_t i = 0; i < 100000; i++) {
        assert_false(model_set_add(&s, test_key(i)));
        assert_false(model_set_add(&s, test_key(TEST_STRANGERS + i)));
    }
    assert_int_equal(model_set_count(&s), 200000);
    assert_true(model_set_has(&s, test_key(7)));
    assert_false(model_set_has(&s, test_key(100000)));
    model_set_free(&s);
}

static void failing_allocator_fails_when_told(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    test_alloc_arm(&a, 2, false);
    void *first = a.as.alloc(a.as.ctx, 100);
    assert_non_null(first);
    assert_null(a.as.alloc(a.as.ctx, 100));
    void *third = a.as.alloc(a.as.ctx, 100);
    assert_non_null(third);
    assert_int_equal(a.blocks, 2);
    assert_int_equal(a.failed, 1);

    test_alloc_arm(&a, 1, true);
    assert_null(a.as.alloc(a.as.ctx, 1));
    assert_null(a.as.alloc(a.as.ctx, 1));

    a.as.release(a.as.ctx, first, 99);
    assert_int_equal(a.violations, 1);
    a.as.release(a.as.ctx, first, 100);
    a.as.release(a.as.ctx, third, 100);
    assert_int_equal(a.violations, 1);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.bytes, 0);
    assert_int_equal(a.peak, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binomial_interval_matches_known_ranges),
        cmocka_unit_test(binomial_interval_is_exact_for_few_trials),
        cmocka_unit_test(keys_do_not_repeat),
        cmocka_unit_test(failing_allocator_fails_when_told),
    };
    test_announce("helpers");
    return cmocka_run_group_tests_name("helpers", tests, NULL, NULL);
}
