/*
 * prop_order_independent.c - a filter is a set: the order of keys, how they are
 * cut into batches, how often they come and over how many filters they were
 * spread before a union does not matter. And it only ever grows. The kinds for
 * which the first is not true still must obey the second.
 */
#include "seen.h"

#include "helpers/keys.h"

#include <stdlib.h>

#define MOST 4000

static uint64_t order[MOST];

static void shuffle(struct test_rng *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)test_below(r, i);
        uint64_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

/* Add order[from .. to) in pieces of random length, some keys twice. */
static void add_shuffled(seen_filter *f, struct test_rng *r, size_t from,
                         size_t to)
{
    static uint64_t bytes[2 * MOST];
    static seen_key keys[2 * MOST];
    while (from < to) {
        size_t left = to - from, n = 0;
        size_t piece = 1 + (size_t)test_below(r, left < 600 ? left : 600);
        for (size_t i = from; i < from + piece; i++) {
            size_t times = test_below(r, 10) ? 1 : 2;
            for (; times > 0; times--, n++) {
                bytes[n] = test_key(order[i]);
                keys[n] = (seen_key){&bytes[n], 8};
            }
        }
        if (test_below(r, 2)) {
            assert_int_equal(seen_add_many(f, seen_keys_of(keys, n), NULL),
                             SEEN_OK);
        } else {
            for (size_t i = 0; i < n; i++)
                assert_int_equal(seen_add(f, keys[i].data, 8), SEEN_OK);
        }
        from += piece;
    }
}

static seen_spec random_spec(struct test_rng *r, seen_kind kind, size_t n)
{
    static const double rates[] = {0.3, 0.1, 0.01, 1e-4, 1e-8};
    seen_spec spec = {.items = n / (1 + test_below(r, 3)) + 1,
                      .fpp = rates[test_below(r, 5)],
                      .kind = kind,
                      .flags = (uint32_t)test_below(r, 4),
                      .secret = test_secret};
    if (!test_kind_can(kind, spec.flags)) spec.flags = 0;
    return spec;
}

static void check_order(struct test_rng *r, seen_kind kind)
{
    size_t n = 1 + (size_t)test_below(r, MOST);
    seen_spec spec = random_spec(r, kind, n);
    seen_filter *expected = test_filter(spec), *any = test_filter(spec);
    seen_filter *parts[3];
    for (size_t i = 0; i < n; i++)
        assert_int_equal(seen_add_u64(expected, test_key(i)), SEEN_OK);

    shuffle(r, n);
    add_shuffled(any, r, 0, n);
    assert_true(seen_equal(expected, any));
    seen_info a = {.size = sizeof a}, b = {.size = sizeof b};
    seen_measure(expected, &a);
    seen_measure(any, &b);
    assert_int_equal(a.bits_set, b.bits_set);
    assert_true(a.fpp_now == b.fpp_now || kind == SEEN_SET);

    /* Three parts that overlap, united in another order. */
    for (int i = 0; i < 3; i++) {
        parts[i] = test_filter(spec);
        size_t from = i == 0 ? 0 : (size_t)test_below(r, i * n / 3 + 1);
        size_t to = i == 2 ? n : (i + 1) * n / 3;
        add_shuffled(parts[i], r, from, to);
    }
    assert_int_equal(seen_merge(parts[2], parts[0], SEEN_UNION, NULL), SEEN_OK);
    assert_int_equal(seen_merge(parts[2], parts[1], SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(parts[2], expected));
    for (int i = 0; i < 3; i++)
        seen_free(parts[i]);
    seen_free(expected);
    seen_free(any);
}

static void order_batching_and_splitting_do_not_matter(void **state)
{
    (void)state;
    struct test_rng r = test_rng(70);
    seen_kind kind;
    for (uint64_t round = 0; round < 60 * test_scale(); round++)
        for (size_t i = 0; (kind = test_set_kind_at(i)) != SEEN_ANY; i++)
            check_order(&r, kind);
}

static void adding_again_changes_nothing(void **state)
{
    (void)state;
    struct test_rng r = test_rng(71);
    seen_kind kind;
    for (uint64_t round = 0; round < 20 * test_scale(); round++)
        for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
            if (test_kind_counts(kind) || test_kind_forgets(kind)) continue;
            size_t n = 1 + (size_t)test_below(&r, MOST);
            seen_filter *f = test_filter(random_spec(&r, kind, n));
            seen_filter *before = NULL;
            shuffle(&r, n);
            add_shuffled(f, &r, 0, n);
            assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
            add_shuffled(f, &r, 0, n);
            assert_true(seen_equal(f, before));
            seen_info a = {.size = sizeof a}, b = {.size = sizeof b};
            seen_measure(f, &a);
            seen_measure(before, &b);
            assert_int_equal(a.items, b.items);
            seen_free(f);
            seen_free(before);
        }
}

/* What was "maybe" once is "maybe" for good. */
static void answers_only_ever_turn_to_maybe(void **state)
{
    (void)state;
    enum {
        ASKED = 2000
    };
    struct test_rng r = test_rng(72);
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        if (test_kind_counts(kind) || test_kind_forgets(kind)) continue;
        seen_filter *f = test_filter(random_spec(&r, kind, 1000));
        bool maybe[ASKED] = {false};
        uint64_t set_before = 0;
        for (uint64_t added = 0; added < 3000; added += 50) {
            test_add_members(f, added, 50);
            for (uint64_t j = 0; j < ASKED; j++) {
                bool now = seen_maybe_u64(f, test_key(TEST_STRANGERS + j));
                assert_true(now || !maybe[j]);
                maybe[j] = now;
            }
            seen_info info = {.size = sizeof info};
            seen_measure(f, &info);
            assert_true(info.bits_set >= set_before);
            set_before = info.bits_set;
        }
        seen_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_batching_and_splitting_do_not_matter),
        cmocka_unit_test(adding_again_changes_nothing),
        cmocka_unit_test(answers_only_ever_turn_to_maybe),
    };
    test_announce("order_independent");
    return cmocka_run_group_tests_name("order_independent", tests, NULL, NULL);
}
