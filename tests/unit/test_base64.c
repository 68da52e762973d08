/* test_base64.c - the vectors of RFC 4648, and everything that is none. */
#include "base/base64.h"

#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

static void vectors_of_the_rfc_come_out(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t len = strlen(pairs[i][0]), letters = strlen(pairs[i][1]), bytes;
        char text[9] = {0};
        uint8_t back[8] = {0};
        assert_int_equal(seen_base64_letters(len), letters);
        seen_base64_encode((const uint8_t *)pairs[i][0], len, false, text);
        assert_string_equal(text, pairs[i][1]);
        assert_true(seen_base64_check(text, letters, false, &bytes));
        assert_int_equal(bytes, len);
        seen_base64_decode(text, letters, false, back);
        assert_memory_equal(back, pairs[i][0], len);
    }
}

static void alphabets_differ_in_two_letters(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0xfb, 0xff, 0xfe};
    char plain[5] = {0}, url[5] = {0};
    size_t n;
    seen_base64_encode(bytes, 3, false, plain);
    seen_base64_encode(bytes, 3, true, url);
    assert_string_equal(plain, "+//+");
    assert_string_equal(url, "-__-");
    assert_true(seen_base64_check(url, 4, true, &n));
    assert_false(seen_base64_check(url, 4, false, &n));
    assert_false(seen_base64_check(plain, 4, true, &n));
}

static void nothing_else_is_base64(void **state)
{
    (void)state;
    static const char *const bad[] = {"Zg",   "Zg=",  "Zg=a", "=Zg=", "Z===",
                                      "====", "Zh==", "Zm9=", "Zm 9", "Zm9v\n"};
    size_t n;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(seen_base64_check(bad[i], strlen(bad[i]), false, &n));
}

static void what_is_encoded_is_decoded(void **state)
{
    (void)state;
    struct test_rng r = test_rng(1);
    for (size_t len = 0; len <= 200; len++) {
        uint8_t bytes[200], back[200];
        char text[272];
        size_t letters = (size_t)seen_base64_letters(len), n;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)test_next(&r);
        bool url = len % 2;
        seen_base64_encode(bytes, len, url, text);
        assert_true(seen_base64_check(text, letters, url, &n));
        assert_int_equal(n, len);
        seen_base64_decode(text, letters, url, back);
        assert_memory_equal(bytes, back, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_the_rfc_come_out),
        cmocka_unit_test(alphabets_differ_in_two_letters),
        cmocka_unit_test(nothing_else_is_base64),
        cmocka_unit_test(what_is_encoded_is_decoded),
    };
    test_announce("base64");
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
