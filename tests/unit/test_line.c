/* test_line.c - one 512-bit line: where bits lie and what a visit says. */
#include "bits/line.h"

#include "helpers/binomial.h"

#include <string.h>

static uint64_t count(const uint64_t line[SEEN_LINE_WORDS])
{
    uint64_t sum = 0;
    for (int i = 0; i < SEEN_LINE_WORDS; i++)
        sum += seen_popcount64(line[i]);
    return sum;
}

/* The worked example at the top of line.h. */
static void worked_example_holds(void **state)
{
    (void)state;
    assert_int_equal(seen_line_bit(1, 0, 3), 39);
    assert_int_equal(seen_line_bit(1, 1, 3), 64 + 33);
}

static void a_key_sets_one_bit_in_each_group(void **state)
{
    (void)state;
    struct test_rng r = test_rng(13);
    for (uint32_t log_w = 0; log_w <= 3; log_w++)
        for (int round = 0; round < 2000; round++) {
            uint64_t line[SEEN_LINE_WORDS] = {0};
            uint32_t x = (uint32_t)test_next(&r);
            assert_false(seen_line_maybe(line, x, log_w));
            assert_false(seen_line_visit(line, x, log_w));
            assert_true(seen_line_maybe(line, x, log_w));
            assert_int_equal(count(line), 1u << log_w);
            uint32_t words = SEEN_LINE_WORDS >> log_w;
            for (uint32_t g = 0; g < 1u << log_w; g++) {
                uint64_t in_group = 0;
                for (uint32_t i = 0; i < words; i++)
                    in_group += seen_popcount64(line[g * words + i]);
                assert_int_equal(in_group, 1);
            }
        }
}

static void a_second_visit_is_told_so_and_changes_nothing(void **state)
{
    (void)state;
    struct test_rng r = test_rng(14);
    for (uint32_t log_w = 0; log_w <= 3; log_w++) {
        uint64_t line[SEEN_LINE_WORDS] = {0}, copy[SEEN_LINE_WORDS];
        for (int round = 0; round < 40; round++) {
            uint32_t x = (uint32_t)test_next(&r);
            bool maybe = seen_line_maybe(line, x, log_w);
            assert_int_equal(seen_line_visit(line, x, log_w), maybe);
            memcpy(copy, line, sizeof copy);
            assert_true(seen_line_visit(line, x, log_w));
            assert_memory_equal(copy, line, sizeof copy);
        }
    }
}

static void one_missing_bit_is_noticed(void **state)
{
    (void)state;
    struct test_rng r = test_rng(15);
    for (uint32_t log_w = 0; log_w <= 3; log_w++)
        for (int round = 0; round < 500; round++) {
            uint32_t x = (uint32_t)test_next(&r);
            for (uint32_t g = 0; g < 1u << log_w; g++) {
                uint64_t line[SEEN_LINE_WORDS];
                memset(line, 0xff, sizeof line);
                assert_true(seen_line_maybe(line, x, log_w));
                uint32_t bit = seen_line_bit(x, g, log_w);
                line[bit / 64] &= ~((uint64_t)1 << bit % 64);
                assert_false(seen_line_maybe(line, x, log_w));
                assert_false(seen_line_visit(line, x, log_w));
                assert_int_equal(count(line), 512);
            }
        }
}

static void all_512_bits_are_chosen_alike(void **state)
{
    (void)state;
    enum {
        KEYS = 500000
    };
    struct test_rng r = test_rng(16);
    for (uint32_t log_w = 0; log_w <= 3; log_w++) {
        uint32_t hits[SEEN_LINE_BITS] = {0};
        for (int i = 0; i < KEYS; i++) {
            uint32_t x = (uint32_t)test_next(&r);
            for (uint32_t g = 0; g < 1u << log_w; g++)
                hits[seen_line_bit(x, g, log_w)]++;
        }
        double expected = KEYS * (double)(1u << log_w) / SEEN_LINE_BITS;
        double chi = 0;
        for (int i = 0; i < SEEN_LINE_BITS; i++) {
            double d = (double)hits[i] - expected;
            chi += d * d / expected;
        }
        assert_between(chi, 350, test_chi_square_limit(511));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example_holds),
        cmocka_unit_test(a_key_sets_one_bit_in_each_group),
        cmocka_unit_test(a_second_visit_is_told_so_and_changes_nothing),
        cmocka_unit_test(one_missing_bit_is_noticed),
        cmocka_unit_test(all_512_bits_are_chosen_alike),
    };
    test_announce("line");
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
