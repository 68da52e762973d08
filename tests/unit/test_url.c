/* test_url.c - URLs of servers, and the slots of keys. */
#include "redis/client.h"
#include "redis/url.h"

#include "helpers/harness.h"

#include <string.h>

static seen_status parse(const char *text, struct seen_url *url)
{
    seen_error error = {0};
    seen_status status = seen_url_parse(text, url, &error);
    if (status != SEEN_OK) assert_string_not_equal(error.text, "");
    return status;
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    struct seen_url u;
    assert_int_equal(parse("//localhost", &u), SEEN_OK);
    assert_string_equal(u.host, "localhost");
    assert_int_equal(u.port, 6379);
    assert_string_equal(u.path, "");

    assert_int_equal(parse("//me:p%40ss@[::1]:7000/3?prefix=a%3A&bits=12", &u),
                     SEEN_OK);
    assert_string_equal(u.user, "me");
    assert_string_equal(u.password, "p@ss");
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 7000);
    assert_string_equal(u.path, "3");
    assert_string_equal(seen_url_param(&u, "prefix"), "a:");
    seen_error error = {0};
    assert_int_equal(seen_url_done(&u, &error), SEEN_INVALID);
    assert_non_null(strstr(error.text, "bits"));
    uint64_t bits;
    assert_int_equal(seen_url_number(&u, "bits", 100, 1, &bits, &error),
                     SEEN_OK);
    assert_int_equal(bits, 12);
    assert_int_equal(seen_url_number(&u, "bits", 11, 1, &bits, &error),
                     SEEN_INVALID);
    assert_int_equal(seen_url_number(&u, "none", 11, 7, &bits, &error),
                     SEEN_OK);
    assert_int_equal(bits, 7);
    assert_int_equal(seen_url_done(&u, &error), SEEN_OK);
    assert_null(seen_url_param(&u, "none"));

    assert_int_equal(parse("//secret@host/a/b", &u), SEEN_OK);
    assert_string_equal(u.password, "secret");
    assert_string_equal(u.user, "");
    assert_string_equal(u.path, "a/b");
}

/* What may be part of a password is not repeated. */
static void slips_are_named_without_passwords(void **state)
{
    (void)state;
    struct seen_url u;
    seen_error error = {0};
    assert_int_equal(seen_url_parse("//h?bits=1&n=2&bits=3", &u, &error),
                     SEEN_INVALID);
    assert_string_equal(error.text, "URL: bits is given twice");
    assert_string_equal(error.field, "url");
    error = (seen_error){0};
    assert_int_equal(seen_url_parse("//ann:12/34@h/0", &u, &error),
                     SEEN_INVALID);
    assert_null(strstr(error.text, "34"));
    assert_non_null(strstr(error.text, "%2F"));
    assert_int_equal(parse("//ann:12%2F34@h/a%40b", &u), SEEN_OK);
    assert_string_equal(u.password, "12/34");
    assert_string_equal(u.path, "a@b");
}

static void bad_urls_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",          "localhost", "//",      "//:1",      "//h:0",
        "//h:65536", "//h:12x",   "//h:",    "//[::1",    "//[::1]x",
        "//h/%4",    "//h/%zz",   "//h/%00", "//h?x",     "//h?a=%1",
        "//%@h",     "//u:%@h",   "//h:-1",  "//h?a=1&b", "//h: 1",
    };
    struct seen_url u;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(parse(bad[i], &u), SEEN_INVALID);
    char many[400] = "//h?";
    for (int i = 0; i < SEEN_URL_PARAMS + 1; i++)
        strcat(many, "a=1&");
    assert_int_equal(parse(many, &u), SEEN_INVALID);
    char longest[2000] = "//";
    memset(longest + 2, 'h', 1000);
    assert_int_equal(parse(longest, &u), SEEN_INVALID);
}

/* Slots as a cluster's CLUSTER KEYSLOT tells them. */
static void slots_are_those_of_a_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint16_t slot;
    } known[] = {
        {"", 0},         {"123456789", 12739}, {"foo", 12182},
        {"bar", 5061},   {"{foo}bar", 12182},  {"a{foo}b{bar}", 12182},
        {"{}foo", 9500}, {"foo{}{bar}", 8363}, {"foo{{bar}}zap", 4015},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(seen_redis_slot(known[i].key, strlen(known[i].key)),
                         known[i].slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(slips_are_named_without_passwords),
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(slots_are_those_of_a_cluster),
    };
    test_announce("test_url");
    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
