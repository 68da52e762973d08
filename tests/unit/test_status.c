/* test_status.c - every status has a sentence of its own. */
#include "seen.h"

#include "helpers/harness.h"

#include <string.h>

static const seen_status all[] = {
    SEEN_OK,     SEEN_NOMEM,    SEEN_INVALID,  SEEN_FULL,  SEEN_UNSUPPORTED,
    SEEN_ABSENT, SEEN_CORRUPT,  SEEN_NEWER,    SEEN_SHORT, SEEN_IO,
    SEEN_BUSY,   SEEN_MISMATCH, SEEN_NO_SECRET};

#define COUNT (sizeof all / sizeof *all)

static void every_status_has_its_own_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        const char *text = seen_strerror(all[i]);
        assert_non_null(text);
        assert_true(strlen(text) > 5);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(text, seen_strerror(all[j]));
    }
}

static void numbers_run_from_zero_downwards_without_a_gap(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(all[i], -(int)i);
}

static void unknown_status_has_a_sentence_too(void **state)
{
    (void)state;
    for (int i = -100; i < 100; i++)
        assert_non_null(seen_strerror((seen_status)i));
    assert_string_equal(seen_strerror((seen_status)1),
                        seen_strerror((seen_status)-99));
}

static void library_and_header_are_of_one_version(void **state)
{
    (void)state;
    assert_string_equal(seen_version(), SEEN_VERSION);
    assert_int_equal(seen_version_number(), SEEN_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_sentence),
        cmocka_unit_test(numbers_run_from_zero_downwards_without_a_gap),
        cmocka_unit_test(unknown_status_has_a_sentence_too),
        cmocka_unit_test(library_and_header_are_of_one_version),
    };
    test_announce("status");
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
