/* test_sorted.c - Elias-Fano lists against plain arrays. */
#include "bits/sorted.h"

#include "base/sort.h"
#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

#define MOST 3000

static uint64_t values[MOST], spare[MOST], again[MOST];

/* n different numbers below a bound, ascending. */
static uint64_t random_set(struct test_rng *r, uint64_t n, uint64_t below)
{
    for (uint64_t i = 0; i < n; i++)
        values[i] = test_below(r, below);
    seen_sort64(values, spare, n);
    return seen_distinct64(values, n);
}

static bool member(uint64_t n, uint64_t value)
{
    for (uint64_t i = 0; i < n; i++)
        if (values[i] == value) return true;
    return false;
}

/* Exactly as long as it is, so that a sanitizer sees one byte too many. */
static uint8_t *encode(uint64_t n, uint64_t below, uint64_t *len)
{
    *len = seen_sorted_size(n, below);
    uint8_t *bytes = malloc(*len);
    assert_non_null(bytes);
    seen_sorted_encode(values, n, below, bytes);
    return bytes;
}

#define ASKED 20

static uint32_t index_room[3 * MOST + 100];

static uint32_t *room_for_index(const struct seen_sorted *s)
{
    assert_true(seen_sorted_index_size(s->n, s->below) <=
                sizeof index_room / sizeof *index_room);
    return index_room;
}

/* Half of them from the list. */
static void ask_some(struct test_rng *r, const struct seen_sorted *s)
{
    uint64_t asked[ASKED];
    bool there[ASKED] = {0};
    for (int i = 0; i < ASKED; i++)
        asked[i] = test_below(r, 2) ? values[test_below(r, s->n)]
                                    : test_below(r, s->below);
    seen_sorted_find_many(s, asked, ASKED, room_for_index(s), there);
    for (int i = 0; i < ASKED; i++)
        assert_int_equal(there[i], member(s->n, asked[i]));
    seen_sort64(asked, spare, ASKED);
    memset(there, 0, sizeof there);
    seen_sorted_find(s, asked, ASKED, there);
    for (int i = 0; i < ASKED; i++)
        assert_int_equal(there[i], member(s->n, asked[i]));
    memset(there, 1, sizeof there);
    seen_sorted_find_many(s, asked, ASKED, room_for_index(s), there);
    seen_sorted_find(s, asked, ASKED, there);
    for (int i = 0; i < ASKED; i++)
        assert_true(there[i]);
}

static void lists_come_back_and_answer(void **state)
{
    (void)state;
    struct test_rng r = test_rng(400);
    for (uint64_t round = 0; round < 3000 * test_scale(); round++) {
        uint64_t below = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 47));
        uint64_t n = 1 + test_below(&r, (uint64_t)1 << test_below(&r, 11));
        n = random_set(&r, n < below ? n : below, below);
        uint64_t len;
        uint8_t *bytes = encode(n, below, &len);
        struct seen_sorted s = {bytes, n, below};
        assert_true(seen_sorted_ok(&s));
        assert_true(seen_sorted_decode(&s, again));
        assert_memory_equal(values, again, n * sizeof *values);

        ask_some(&r, &s);
        free(bytes);
    }
}

/* The one question, with samples and without, also where numbers repeat. */
static void one_number_is_found_as_many_are(void **state)
{
    (void)state;
    struct test_rng r = test_rng(403);
    for (uint64_t round = 0; round < 2000 * test_scale(); round++) {
        uint64_t below = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 47));
        uint64_t n = 1 + test_below(&r, (uint64_t)1 << test_below(&r, 12));
        if (n > below) n = below;
        if (n > MOST) n = MOST;
        for (uint64_t i = 0; i < n; i++)
            values[i] = test_below(&r, below);
        seen_sort64(values, spare, n);
        uint64_t len, samples_len = seen_sorted_samples_size(n);
        uint8_t *bytes = encode(n, below, &len), *samples = malloc(samples_len);
        struct seen_sorted s = {bytes, n, below};
        seen_sorted_sample(&s, samples);
        assert_true(seen_sorted_samples_ok(&s, samples));

        uint64_t different = 1;
        for (uint64_t i = 1; i < n; i++)
            different += values[i] != values[i - 1];
        assert_int_equal(seen_sorted_different(&s), different);
        assert_int_equal(seen_sorted_ok(&s), different == n);
        for (int i = 0; i < ASKED; i++) {
            uint64_t asked = test_below(&r, 2) ? values[test_below(&r, n)]
                                               : test_below(&r, below);
            assert_int_equal(seen_sorted_has(&s, NULL, asked),
                             member(n, asked));
            assert_int_equal(seen_sorted_has(&s, samples, asked),
                             member(n, asked));
        }
        if (samples_len) {
            samples[test_below(&r, samples_len)] ^= 1;
            assert_false(seen_sorted_samples_ok(&s, samples));
            seen_sorted_has(&s, samples, test_below(&r, below));
        }
        free(samples);
        free(bytes);
    }
}

/* The largest bound fits; one more does not. */
static void bytes_are_filled_to_the_last_bit(void **state)
{
    (void)state;
    struct test_rng r = test_rng(404);
    for (uint64_t round = 0; round < 300000; round++) {
        uint64_t n = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 20));
        uint64_t bytes = test_below(&r, 7 * n + 9);
        uint64_t below = seen_sorted_below(n, bytes);
        if (below == 0) {
            assert_true(seen_sorted_size(n, n) > bytes);
            continue;
        }
        assert_true(below >= n && below <= SEEN_SORTED_MAX);
        uint64_t size = seen_sorted_size(n, below);
        assert_true(size <= bytes);
        assert_int_equal(seen_sorted_below(n, size), below);
        if (below == SEEN_SORTED_MAX) continue;
        assert_true(seen_sorted_size(n, below + 1) > bytes);
        for (uint64_t i = 2; i < 40; i++) {
            uint64_t more = below + 1 + below * i / 20;
            if (more <= SEEN_SORTED_MAX)
                assert_true(seen_sorted_size(n, more) > bytes);
        }
    }
    assert_int_equal(seen_sorted_below(0, 100), 0);
    assert_int_equal(seen_sorted_below(1, 0), 0);
    assert_int_equal(seen_sorted_below(SEEN_SORTED_LONGEST + 1, UINT64_MAX), 0);
    assert_int_equal(seen_sorted_below(1, UINT64_MAX), SEEN_SORTED_MAX);
}

static void a_thousand_take_what_the_essay_says(void **state)
{
    (void)state;
    assert_int_equal(seen_sorted_size(1000, 5000000), 1500 + 278);
    assert_int_equal(seen_sorted_size(7, 24), 1 + 3);
}

/* Fewer numbers take less, but for the rounding; two lists less than both: what
 * exposure/change.c makes room by. */
static void sizes_hardly_fall_behind(void **state)
{
    (void)state;
    struct test_rng r = test_rng(402);
    for (uint64_t round = 0; round < 300000; round++) {
        uint64_t below = 2 + test_below(&r, (uint64_t)2 << test_below(&r, 47));
        uint64_t n = 2 + test_below(&r, (uint64_t)2 << test_below(&r, 20));
        if (n > below) n = below;
        uint64_t fewer = 1 + test_below(&r, n),
                 whole = seen_sorted_size(n, below);
        assert_true(seen_sorted_size(fewer, below) <= whole + 8);
        if (fewer < n)
            assert_true(whole <= seen_sorted_size(fewer, below) +
                                     seen_sorted_size(n - fewer, below) + 8);
    }
}

/* Whatever the bytes: an end, and nothing read that is not there. */
static void any_bytes_come_back(void **state)
{
    (void)state;
    struct test_rng r = test_rng(401);
    for (uint64_t round = 0; round < 20000 * test_scale(); round++) {
        uint64_t below = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 30));
        uint64_t n = 1 + test_below(&r, 100);
        if (n > below) n = below;
        n = random_set(&r, n, below);
        uint64_t len = seen_sorted_size(n, below);
        uint8_t *bytes = malloc(len);
        assert_non_null(bytes);
        if (test_below(&r, 2)) { /* nearly right */
            seen_sorted_encode(values, n, below, bytes);
            bytes[test_below(&r, len)] ^= (uint8_t)(1u << test_below(&r, 8));
        } else {
            for (uint64_t i = 0; i < len; i++)
                bytes[i] = (uint8_t)test_next(&r);
        }
        struct seen_sorted s = {bytes, n, below};
        bool there[3] = {0};
        uint64_t asked[3] = {0, test_below(&r, below), below - 1};
        seen_sorted_find(&s, asked, 3, there);
        seen_sorted_find_many(&s, asked, 3, room_for_index(&s), there);
        for (int i = 0; i < 3; i++)
            seen_sorted_has(&s, NULL, asked[i]);
        seen_sorted_samples_ok(&s, bytes); /* few numbers have none */
        assert_true(seen_sorted_different(&s) <= n);
        bool ok = seen_sorted_ok(&s);
        assert_int_equal(seen_sorted_decode(&s, values), ok);
        if (ok) { /* then it is a list, and the only form */
            uint8_t *same = malloc(len);
            seen_sorted_encode(values, n, below, same);
            assert_memory_equal(bytes, same, len);
            free(same);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_come_back_and_answer),
        cmocka_unit_test(one_number_is_found_as_many_are),
        cmocka_unit_test(bytes_are_filled_to_the_last_bit),
        cmocka_unit_test(a_thousand_take_what_the_essay_says),
        cmocka_unit_test(sizes_hardly_fall_behind),
        cmocka_unit_test(any_bytes_come_back),
    };
    test_announce("sorted");
    return cmocka_run_group_tests_name("sorted", tests, NULL, NULL);
}
