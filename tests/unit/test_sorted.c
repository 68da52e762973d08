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

struct hits {
    uint64_t n;
    uint64_t at[MOST];
};

static void collect(void *ctx, uint64_t value)
{
    struct hits *h = ctx;
    h->at[h->n++] = value;
}

static void lists_come_back_and_answer(void **state)
{
    (void)state;
    struct test_rng r = test_rng(400);
    static struct hits hits;
    static uint8_t sieve[SEEN_SIEVE_SIZE];
    for (uint64_t round = 0; round < 3000 * test_scale(); round++) {
        uint64_t below = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 39));
        uint64_t n = 1 + test_below(&r, (uint64_t)1 << test_below(&r, 11));
        n = random_set(&r, n < below ? n : below, below);
        uint64_t len;
        uint8_t *bytes = encode(n, below, &len);
        struct seen_sorted s = {bytes, n, below};
        assert_true(seen_sorted_ok(&s));
        seen_sorted_decode(&s, again);
        assert_memory_equal(values, again, n * sizeof *values);

        for (int i = 0; i < 20; i++) {
            uint64_t value = test_below(&r, 2) ? values[test_below(&r, n)]
                                               : test_below(&r, below);
            assert_int_equal(seen_sorted_has(&s, value), member(n, value));
        }
        assert_false(seen_sorted_has(&s, below));

        uint32_t low = seen_sorted_low(n, below);
        if (low > SEEN_SIEVE_LOG) low = SEEN_SIEVE_LOG;
        uint64_t mask = ((uint64_t)1 << low) - 1, expected = 0;
        for (size_t i = 0; i < SEEN_SIEVE_SIZE; i++)
            sieve[i] = test_below(&r, 4) == 0;
        hits.n = 0;
        seen_sorted_each(&s, sieve, collect, &hits);
        for (uint64_t i = 0; i < n; i++) {
            if (!sieve[values[i] & mask]) continue;
            assert_true(expected < hits.n && hits.at[expected] == values[i]);
            expected++;
        }
        assert_int_equal(hits.n, expected);
        free(bytes);
    }
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
        uint64_t below = 2 + test_below(&r, (uint64_t)2 << test_below(&r, 39));
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
    static struct hits hits;
    static uint8_t all[SEEN_SIEVE_SIZE];
    memset(all, 1, sizeof all);
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
        hits.n = 0;
        seen_sorted_each(&s, all, collect, &hits);
        seen_sorted_has(&s, test_below(&r, below));
        if (seen_sorted_ok(&s)) { /* then it is a list, and the only form */
            seen_sorted_decode(&s, values);
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
        cmocka_unit_test(a_thousand_take_what_the_essay_says),
        cmocka_unit_test(sizes_hardly_fall_behind),
        cmocka_unit_test(any_bytes_come_back),
    };
    test_announce("sorted");
    return cmocka_run_group_tests_name("sorted", tests, NULL, NULL);
}
