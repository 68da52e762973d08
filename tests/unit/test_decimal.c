/* test_decimal.c - fractions as text are the same in every locale. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "redis/decimal.h"

#include "helpers/harness.h"
#include "helpers/scratch.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_text(double x, const char *expected)
{
    char text[SEEN_DECIMAL];
    double back = -1;
    seen_decimal_put(x, text);
    if (expected) assert_string_equal(text, expected);
    assert_true(seen_decimal_get(text, &back));
    assert_memory_equal(&back, &x, sizeof x);
}

static void assert_number(const char *text, double expected)
{
    double x = -1;
    assert_true(seen_decimal_get(text, &x));
    assert_memory_equal(&x, &expected, sizeof x);
}

static void check_numbers(void)
{
    struct test_rng rng = test_rng(1);
    assert_text(0.5, "0.5");
    assert_text(0.01, "0.01");
    assert_text(0.001, "0.001");
    assert_text(1e-9, "1.0000000000000001e-09");
    assert_text(1, "1");
    assert_text(0, "0");
    assert_text(DBL_MAX, NULL);
    assert_text(DBL_MIN, NULL);
    assert_text(4.9406564584124654e-324, NULL);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_next(&rng) >> 1;
        double x;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) assert_text(x, NULL);
        assert_text(test_unit(&rng), NULL);
    }
    assert_number("0.001", 0.001);
    assert_number("1e-3", 0.001);
    assert_number("0.25E-3", 0.00025);
    assert_number("12.5e+2", 1250);
    assert_number("007", 7);
    static const char *const bad[] = {"",
                                      ".",
                                      ".5",
                                      "5.",
                                      "0,5",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1e",
                                      "1e+",
                                      "0x1p3",
                                      "inf",
                                      "nan",
                                      "1e99999999999999999999",
                                      "1.5.2",
                                      "0.00000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double x;
        assert_false(seen_decimal_get(bad[i], &x));
    }
}

static void numbers_go_and_come(void **state)
{
    (void)state;
    check_numbers();
}

/* One with a comma: of those that are there, or made for the occasion. */
static bool choose_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8",
                                        "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i])) return true;
    char command[600];
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1",
             test_scratch());
    if (system(command) != 0) return false;
    setenv("LOCPATH", test_scratch(), 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

static void a_comma_changes_nothing(void **state)
{
    (void)state;
    char text[16];
    if (!choose_comma()) {
        print_message(
            "no locale with a comma here, and localedef makes none\n");
        skip();
    }
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
    check_numbers();
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_go_and_come),
        cmocka_unit_test(a_comma_changes_nothing),
    };
    test_announce("decimal");
    return cmocka_run_group_tests_name("decimal", tests, test_scratch_begin,
                                       test_scratch_end);
}
