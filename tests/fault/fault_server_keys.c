/*
 * fault_server_keys.c - keys of filters on a server in all layouts, and in none.
 * Argument: the port of a server with our module (tests/server/with_server.py starts
 * both).
 *
 * The same keys get the same answers, however they lie. A description that is wrong
 * is refused before anything is sent, and so is a struct of no known size.
 */
#include "seen_remote.h"

#include "helpers/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N     35000 /* more than one pipeline of any */
#define FEW   2000  /* the same, but of a BF key */
#define BOUND 80000

static const char *port;
static uint64_t number[N];
static seen_key pair[N];
static uint32_t offset32[N + 1];
static uint64_t offset64[N + 1];
static uint8_t bytes[8 * N + 1]; /* little-endian, at an odd place */

static const struct {
    const char *scheme, *rest;
    size_t keys;
} filters[] = {
    {"redis", "?key=keys", N},
    {"redis+plain", "/keys:p", FEW},
    {"redis+gozero", "/keys:g?bits=80000", FEW},
    {"redis+bitmap", "/keys:b?bits=80000", FEW},
};

#define FILTERS (sizeof filters / sizeof *filters)

static seen_remote *opened(size_t i)
{
    static const seen_spec spec = {.items = N, .fpp = 0.000001};
    char url[100];
    seen_remote *m = NULL;
    seen_error error;
    snprintf(url, sizeof url, "%s://127.0.0.1:%s%s", filters[i].scheme, port,
             filters[i].rest);
    if (seen_remote_open(&m, url, &spec, NULL, &error) != SEEN_OK)
        print_message("%s: %s\n", url, error.text);
    assert_non_null(m);
    return m;
}

/* Numbers first, first + 1 and so on, in all of the arrays. */
static void fill(uint64_t first, uint64_t step)
{
    for (size_t i = 0; i < N; i++) {
        number[i] = first + step * i;
        for (int b = 0; b < 8; b++)
            bytes[1 + 8 * i + (size_t)b] = (uint8_t)(number[i] >> 8 * b);
        pair[i] = (seen_key){bytes + 1 + 8 * i, 8};
        offset32[i + 1] = (uint32_t)(8 * (i + 1));
        offset64[i + 1] = 8 * (i + 1);
    }
}

static void layouts_agree(void **state)
{
    (void)state;
    static bool fresh[N], there[N];
    for (size_t i = 0; i < FILTERS; i++) {
        seen_remote *m = opened(i);
        const size_t keys = filters[i].keys;
        seen_error error;
        fill(0, 2);
        const seen_keys layouts[] = {
            seen_keys_u64(number, keys),
            seen_keys_of(pair, keys),
            seen_keys_rows(bytes + 1, keys, 8, 8),
            seen_keys_offsets32(bytes + 1, 8 * keys, offset32, keys),
            seen_keys_offsets64(bytes + 1, 8 * keys, offset64, keys),
        };
        const size_t n = sizeof layouts / sizeof *layouts;
        for (size_t at = 0; at < n; at++) { /* each adds a fifth */
            seen_keys some = layouts[at];
            const size_t from = at * (keys / n);
            if (some.offsets)
                some.offsets = (const char *)some.offsets +
                               from * (some.layout == SEEN_OFFSETS32 ? 4 : 8);
            else
                some.data =
                    (const char *)some.data +
                    from * (some.layout == SEEN_PAIRS ? sizeof *pair : 8);
            some.n = keys / n;
            assert_int_equal(
                seen_remote_add_many(m, some, fresh + from, &error), SEEN_OK);
        }
        uint64_t new = 0;
        for (size_t k = 0; k < keys; k++)
            new += fresh[k];
        assert_true(new > keys - 100); /* but for false positives */
        for (uint64_t odd = 0; odd < 2; odd++) {
            uint64_t count[8] = {0};
            fill(odd, 2);
            for (size_t at = 0; at < n; at++) {
                assert_int_equal(
                    seen_remote_maybe_many(m, layouts[at], there, &error),
                    SEEN_OK);
                for (size_t k = 0; k < keys; k++)
                    count[at] += there[k];
                assert_int_equal(count[at], count[0]);
            }
            if (odd)
                assert_true(count[0] < 100);
            else
                assert_int_equal(count[0], keys);
        }
        seen_remote_close(m);
    }
}

static void numbers_leave_a_bitmap_again(void **state)
{
    (void)state;
    static bool removed[FEW];
    seen_remote *m = opened(FILTERS - 1);
    seen_error error;
    seen_remote_info info = {.size = sizeof info};
    fill(0, 1);
    assert_int_equal(
        seen_remote_add_many(m, seen_keys_u64(number, FEW), NULL, &error),
        SEEN_OK);
    assert_int_equal(
        seen_remote_remove_many(m, seen_keys_u64(number, FEW), removed, &error),
        SEEN_OK);
    for (size_t k = 0; k < FEW; k++)
        assert_true(removed[k]);
    assert_int_equal(seen_remote_info_of(m, &info, &error), SEEN_OK);
    assert_int_equal(info.items, FEW / 2); /* the even ones above */
    seen_remote_close(m);
}

static void refused(seen_status status, seen_status expected,
                    const seen_error *error, const char *field)
{
    assert_int_equal(status, expected);
    assert_int_equal(error->status, expected);
    assert_string_equal(error->field, field);
    assert_string_not_equal(error->text, "");
}

static void bad_keys_are_refused(void **state)
{
    (void)state;
    static const seen_hash hash;
    static const uint64_t hash64;
    static const uint32_t backwards[] = {0, 8, 4};
    static const uint64_t beyond[] = {0, 8, 17};
    const seen_key nowhere = {NULL, 8};
    seen_keys unknown = seen_keys_of(pair, 2), later = unknown;
    unknown.layout = (seen_layout)99;
    later.reserved[1] = 1;
    const struct {
        seen_keys keys;
        seen_status status;
    } bad[] = {
        {seen_keys_hashes(&hash, 1), SEEN_UNSUPPORTED},
        {seen_keys_hashes64(&hash64, 1), SEEN_UNSUPPORTED},
        {seen_keys_rows(bytes, 2, 8, 0), SEEN_INVALID},
        {seen_keys_offsets32(bytes, 16, backwards, 2), SEEN_INVALID},
        {seen_keys_offsets64(bytes, 16, beyond, 2), SEEN_INVALID},
        {seen_keys_of(NULL, 1), SEEN_INVALID},
        {seen_keys_of(&nowhere, 1), SEEN_INVALID},
        {seen_keys_u64(NULL, 1), SEEN_INVALID},
        {unknown, SEEN_INVALID},
        {later, SEEN_INVALID},
    };
    for (size_t i = 0; i < FILTERS; i++) {
        seen_remote *m = opened(i);
        seen_error e;
        seen_remote_info before = {.size = sizeof before}, after = before;
        bool answers[2] = {false};
        assert_int_equal(seen_remote_info_of(m, &before, &e), SEEN_OK);
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            const seen_keys k = bad[b].keys;
            const seen_status s = bad[b].status;
            refused(seen_remote_maybe_many(m, k, answers, &e), s, &e, "keys");
            refused(seen_remote_add_many(m, k, answers, &e), s, &e, "keys");
            refused(seen_remote_remove_many(m, k, answers, &e), s, &e, "keys");
            assert_int_equal(seen_remote_add_many(m, k, answers, NULL), s);
        }
        refused(seen_remote_maybe_many(m, seen_keys_of(pair, 1), NULL, &e),
                SEEN_INVALID, &e, "answers");
        assert_int_equal(
            seen_remote_maybe_many(m, seen_keys_of(NULL, 0), NULL, &e),
            SEEN_OK);
        assert_int_equal(seen_remote_info_of(m, &after, &e), SEEN_OK);
        assert_int_equal(after.items, before.items);
        seen_remote_close(m);
    }
}

/* An older program has less room, a newer one more. */
static void structs_of_other_sizes_are_filled(void **state)
{
    (void)state;
    struct {
        seen_remote_info info;
        uint64_t more[2];
    } now = {.info.size = sizeof now.info}, x;
    seen_remote *m = opened(FILTERS - 1);
    seen_error e;
    assert_int_equal(seen_remote_info_of(m, &now.info, &e), SEEN_OK);
    assert_int_equal(now.info.capacity, BOUND);

    memset(&x, 0xee, sizeof x);
    x.info.size = offsetof(seen_remote_info, items);
    assert_int_equal(seen_remote_info_of(m, &x.info, &e), SEEN_OK);
    assert_int_equal(x.info.capacity, BOUND);
    assert_int_equal(x.info.items, 0xeeeeeeeeeeeeeeee);

    x.info.size = sizeof x;
    assert_int_equal(seen_remote_info_of(m, &x.info, &e), SEEN_OK);
    assert_int_equal(x.info.items, now.info.items);
    assert_int_equal(x.more[0] | x.more[1], 0);

    x.info.size = 0;
    refused(seen_remote_info_of(m, &x.info, &e), SEEN_INVALID, &e, "info.size");
    refused(seen_remote_info_of(m, NULL, &e), SEEN_INVALID, &e, "info");
    refused(seen_remote_info_of(NULL, &x.info, &e), SEEN_INVALID, &e, "m");
    refused(seen_remote_expire(m, 0, NULL, &e), SEEN_INVALID, &e, "ttl_ms");
    seen_remote_close(m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_agree),
        cmocka_unit_test(numbers_leave_a_bitmap_again),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(structs_of_other_sizes_are_filled),
    };
    test_announce("fault_server_keys");
    if (argc != 2) {
        fprintf(stderr, "usage: fault_server_keys PORT\n");
        return 2;
    }
    port = argv[1];
    return cmocka_run_group_tests_name("fault_server_keys", tests, NULL, NULL);
}
