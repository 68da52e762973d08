/* test_checked.c - sums and products at the edge of 64 bits. */
#include "base/checked.h"

#include "helpers/harness.h"

static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 3,
                                 UINT32_MAX - 1,
                                 UINT32_MAX,
                                 (uint64_t)1 << 32,
                                 ((uint64_t)1 << 32) + 1,
                                 (uint64_t)1 << 63,
                                 UINT64_MAX / 3,
                                 UINT64_MAX / 2,
                                 UINT64_MAX - 1,
                                 UINT64_MAX};

#define EDGES (sizeof edges / sizeof *edges)

static void check(uint64_t a, uint64_t b)
{
    uint64_t out = 0x1234;
    seen_u128 sum = (seen_u128)a + b, product = (seen_u128)a * b;
    bool fits = sum <= UINT64_MAX;
    assert_int_equal(seen_add_fits(a, b, &out), fits);
    assert_true(out == (fits ? (uint64_t)sum : 0x1234));

    out = 0x1234;
    fits = product <= UINT64_MAX;
    assert_int_equal(seen_mul_fits(a, b, &out), fits);
    assert_true(out == (fits ? (uint64_t)product : 0x1234));
}

static void overflow_is_reported_and_leaves_the_result_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < EDGES; i++)
        for (size_t j = 0; j < EDGES; j++)
            check(edges[i], edges[j]);
    struct test_rng r = test_rng(3);
    for (int i = 0; i < 100000; i++)
        check(test_next(&r) >> test_below(&r, 64),
              test_next(&r) >> test_below(&r, 64));
}

static void objects_end_at_half_the_address_space(void **state)
{
    (void)state;
    assert_true(seen_size_fits(0));
    assert_true(seen_size_fits(PTRDIFF_MAX));
    assert_false(seen_size_fits((uint64_t)PTRDIFF_MAX + 1));
    assert_false(seen_size_fits(UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_reported_and_leaves_the_result_alone),
        cmocka_unit_test(objects_end_at_half_the_address_space),
    };
    test_announce("checked");
    return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
