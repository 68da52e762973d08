/* test_cuckoo.c - the multiset of fingerprints: what it promises beyond the laws
 * of all kinds. */
#include "seen.h"

#include "helpers/binomial.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

static seen_filter *new_cuckoo(uint64_t n, double fpp)
{
    return test_filter(
        (seen_spec){.kind = SEEN_CUCKOO, .items = n, .fpp = fpp});
}

static seen_plan plan_for(seen_spec spec)
{
    seen_plan plan = {.size = sizeof plan};
    spec.kind = SEEN_CUCKOO;
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    return plan;
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info;
}

/* As docs/FORMAT.md has it: bits are slots and the lines of a table. */
static uint64_t lines_of(uint64_t bits)
{
    uint64_t lines = 4 + (bits >> 17);
    return lines < 8192 ? lines : 8192;
}

static uint64_t slots_of(const seen_plan *plan)
{
    return (plan->bits - 512 * lines_of(plan->bits)) / plan->width;
}

/* How many keys can have copies in the table. */
static uint64_t table_of(const seen_plan *plan)
{
    return 4 * lines_of(plan->bits) - 1;
}

struct saved {
    uint8_t *at;
    size_t len;
};

static struct saved save(const seen_filter *f)
{
    struct saved s = {0};
    assert_int_equal(seen_save(f, 0, NULL, 0, &s.len), SEEN_SHORT);
    s.at = malloc(s.len);
    assert_non_null(s.at);
    assert_int_equal(seen_save(f, 0, s.at, s.len, &s.len), SEEN_OK);
    return s;
}

static bool saves_as(const seen_filter *f, struct saved expected)
{
    struct saved s = save(f);
    bool same = s.len == expected.len && memcmp(s.at, expected.at, s.len) == 0;
    free(s.at);
    return same;
}

/* Add keys from 0 on until it is full; how many went in. */
static uint64_t fill_up(seen_filter *f)
{
    uint64_t n = 0;
    seen_status status;
    while ((status = seen_add_u64(f, test_key(n))) == SEEN_OK)
        n++;
    assert_int_equal(status, SEEN_FULL);
    return n;
}

/* ---- Size, load, rate ---------------------------------------------------- */

static void full_means_at_least_94_percent_and_nothing_lost(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 5, 20, 100, 1000, 10000, 300000};
    static const double rates[] = {0.3, 0.01, 0.001, 1e-6, 1e-9};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof rates / sizeof *rates; j++) {
            seen_filter *f = new_cuckoo(sizes[i], rates[j]);
            seen_plan plan =
                plan_for((seen_spec){.items = sizes[i], .fpp = rates[j]});
            uint64_t n = fill_up(f);
            assert_true(n >= sizes[i]); /* as planned, at least */
            seen_info info = info_of(f);
            assert_int_equal(info.items, n);
            if (sizes[i] >= 1000)
                assert_true((double)(info.bits_set / plan.width) >=
                            0.94 * (double)slots_of(&plan));
            /* A failed add changes nothing. */
            struct saved before = save(f);
            assert_int_equal(seen_add_u64(f, test_key(n)), SEEN_FULL);
            assert_true(saves_as(f, before));
            for (uint64_t k = 0; k < n; k++)
                assert_true(seen_maybe_u64(f, test_key(k)));
            /* The same adds make the same bytes. */
            seen_filter *again = new_cuckoo(sizes[i], rates[j]);
            for (uint64_t k = 0; k < n; k++)
                assert_int_equal(seen_add_u64(again, test_key(k)), SEEN_OK);
            assert_true(saves_as(again, before));
            free(before.at);
            seen_free(again);
            seen_free(f);
        }
}

/* As narrow as slots can be, for those who insist on so few bits. */
static void narrow_slots_fill_as_well(void **state)
{
    (void)state;
    for (uint32_t width = 6; width <= 7; width++) {
        seen_spec spec = {.items = 50000, .bits = width * 53700 + 5120};
        seen_plan plan = plan_for(spec);
        assert_int_equal(plan.width, width);
        assert_true(plan.bits <= spec.bits);
        spec.kind = SEEN_CUCKOO;
        seen_filter *f = test_filter(spec);
        uint64_t n = fill_up(f);
        assert_true((double)n >= 0.94 * (double)slots_of(&plan));
        seen_free(f);
    }
    seen_spec spec = {.kind = SEEN_CUCKOO, .items = 50000, .bits = 6 * 53000};
    assert_int_equal(
        seen_plan_for(&spec, &(seen_plan){.size = sizeof(seen_plan)}, NULL),
        SEEN_INVALID);
}

/*
 * Filters of so many keys, each with keys of its own: at most one in a million
 * refuses one of them. What cannot be placed depends on chance in small filters
 * only: src/filter/cuckoo.c has the reasons.
 */
static void planned_keys_fit(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {
        2,   3,   4,   5,   6,   8,   10,  13,  17,  22,  30,   40,   55,  75,
        100, 140, 190, 250, 300, 350, 400, 500, 700, 999, 1400, 2000, 5000};
    static const double rates[] = {0.02, 0.01, 0.001};
    uint64_t filters = 0, refused = 0;
    struct test_rng r = test_rng(91);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < 3; j++) {
            seen_filter *f = new_cuckoo(sizes[i], rates[j]);
            uint64_t some = (40000 / sizes[i] + 1) * test_scale();
            for (uint64_t k = 0; k < some; k++) {
                bool all = true;
                for (uint64_t n = 0; n < sizes[i]; n++) {
                    seen_hash h = {test_next(&r), 0};
                    all &= seen_add_hashed(f, h) == SEEN_OK;
                }
                refused += !all;
                seen_clear(f);
            }
            filters += some;
            seen_free(f);
        }
    test_tried(filters, "small cuckoo filters");
    assert_true(refused <= 1 + filters / 1000000);
}

static void the_rate_is_what_the_load_predicts(void **state)
{
    (void)state;
    static const double rates[] = {0.1, 0.01, 0.001, 1e-4};
    static const uint64_t sizes[] = {100, 3000, 200000};
    const uint64_t probes = 1000000;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        seen_filter *f = new_cuckoo(sizes[2], rates[i]);
        seen_plan plan =
            plan_for((seen_spec){.items = sizes[2], .fpp = rates[i]});
        test_add_members(f, 0, sizes[2]);
        seen_info info = info_of(f);
        assert_true(info.fpp_now <= rates[i]);
        assert_close(info.fpp_now, plan.fpp, 1e-6);
        assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                        plan.fpp);
        seen_free(f);
    }
    /* Small ones vary from filter to filter: on the average. */
    for (size_t i = 0; i < 2; i++) {
        uint64_t wrong = 0, filters = 400000 / sizes[i];
        double fpp = 0;
        for (uint64_t k = 0; k < filters; k++) {
            seen_filter *f = new_cuckoo(sizes[i], 0.01);
            test_add_members(f, k * sizes[i], sizes[i]);
            wrong += test_count_maybe(f, TEST_STRANGERS + k * 1000, 1000);
            fpp = info_of(f).fpp_now;
            seen_free(f);
        }
        assert_binomial(wrong, filters * 1000, fpp);
    }
}

static double bits_a_key(uint64_t n, double fpp)
{
    return (double)plan_for((seen_spec){.items = n, .fpp = fpp}).bytes * 8 /
           (double)n;
}

static void twelve_bits_make_a_thousandth(void **state)
{
    (void)state;
    seen_plan plan = plan_for((seen_spec){.items = 1000000, .fpp = 0.001});
    assert_int_equal(plan.width, 12);
    assert_int_equal(plan.hashes, 4);
    assert_int_equal(plan_for((seen_spec){.items = 1000, .fpp = 0.01}).width,
                     9);
    for (uint64_t n = 1000000; n <= 20000000; n += 19000000) {
        assert_true(bits_a_key(n, 0.01) <= 9.65); /* everything counted */
        assert_true(bits_a_key(n, 0.001) <= 12.85);
    }
    /* And back from the bits. */
    seen_plan back = plan_for((seen_spec){.bits = plan.bits, .fpp = 0.001});
    assert_between((double)back.items, 1e6, 1e6 + 2);
    assert_int_equal(back.bits, plan.bits);
    back = plan_for((seen_spec){.bits = plan.bits, .items = 1000000});
    assert_int_equal(back.width, 12);
    assert_int_equal(back.bits, plan.bits);
}

/* All the bits are used: for speed where there are more than the rate needs. */
static void more_bits_lower_the_load(void **state)
{
    (void)state;
    const seen_spec few = {.items = 100000, .fpp = 0.01};
    seen_spec many = few;
    many.bits = 1006000;
    seen_plan a = plan_for(few), b = plan_for(many);
    assert_int_equal(a.width, b.width);
    assert_between((double)few.items / (double)slots_of(&b), 0.895, 0.905);
    assert_true(b.bits <= many.bits && b.bits + b.width * 2 > many.bits);
    assert_true(b.fpp < a.fpp);
    assert_int_equal(b.items, few.items);
    /* Far more: narrower slots keep the rate as well. */
    many.bits = 2000000;
    b = plan_for(many);
    assert_int_equal(b.width, 8);
    assert_true(b.fpp <= few.fpp && b.bits + b.width * 2 > many.bits);
    many.bits = a.bits - 1;
    many.kind = SEEN_CUCKOO;
    assert_non_null(test_wrong_spec(&many));
}

/* ---- Copies -------------------------------------------------------------- */

static void removed_keys_are_gone_and_others_stay(void **state)
{
    (void)state;
    const uint64_t n = 100000;
    seen_filter *f = new_cuckoo(n, 1e-8);
    test_add_members(f, 0, n);
    for (uint64_t i = 0; i < n; i += 2) {
        uint64_t key = test_key(i);
        assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
    }
    assert_int_equal(info_of(f).items, n / 2);
    uint64_t there = 0;
    for (uint64_t i = 0; i < n; i++) {
        bool maybe = seen_maybe_u64(f, test_key(i));
        if (i % 2) assert_true(maybe);
        there += maybe;
    }
    assert_between((double)there, (double)n / 2, (double)n / 2 + 2);
    uint64_t stranger = test_key(TEST_STRANGERS);
    assert_int_equal(seen_remove(f, &stranger, 8), SEEN_ABSENT);
    assert_int_equal(info_of(f).items, n / 2);
    seen_free(f);
}

static void a_key_counts_as_often_as_it_was_added(void **state)
{
    (void)state;
    const uint32_t most = 70000;
    seen_filter *f = new_cuckoo(1000, 1e-6);
    test_add_members(f, 0, 500);
    double fpp = 0;
    for (uint32_t times = 1; times <= most; times++) {
        assert_int_equal(seen_add_str(f, "again"), SEEN_OK);
        assert_int_equal(seen_count(f, "again", 5), times);
        if (times == 4) fpp = info_of(f).fpp_now;
    }
    /* They fill the filter no further than four do. */
    assert_int_equal(info_of(f).items, 500 + most);
    assert_true(info_of(f).fpp_now == fpp);
    test_add_members(f, 500, 496);
    bool before = false;
    assert_int_equal(seen_visit(f, "again", 5, &before), SEEN_OK);
    assert_true(before);
    for (uint32_t times = most; times-- > 0;) {
        assert_int_equal(seen_count(f, "again", 5), times + 1);
        assert_int_equal(seen_remove(f, "again", 5), SEEN_OK);
    }
    assert_false(seen_maybe_str(f, "again"));
    assert_int_equal(seen_remove(f, "again", 5), SEEN_ABSENT);
    assert_int_equal(test_count_maybe(f, 0, 996), 996);
    seen_free(f);
}

/* As many keys as the table has room for may have a fifth copy; then it is full,
 * and nothing has changed, until one of them goes. */
static void copies_are_bounded(void **state)
{
    (void)state;
    const seen_spec spec = {.items = 20000, .fpp = 1e-6};
    seen_plan plan = plan_for(spec);
    const uint64_t room = table_of(&plan);
    assert_true(room > 10);
    seen_filter *f = new_cuckoo(spec.items, spec.fpp);
    struct saved before = {0};
    for (uint64_t k = 0; k <= room; k++) {
        for (int times = 0; times < 4; times++)
            assert_int_equal(seen_add_u64(f, test_key(k)), SEEN_OK);
        if (k == room) before = save(f);
        assert_int_equal(seen_add_u64(f, test_key(k)),
                         k < room ? SEEN_OK : SEEN_FULL);
    }
    assert_true(saves_as(f, before));
    free(before.at);
    for (uint64_t k = 0; k < room; k++) /* more of what is there fits */
        assert_int_equal(seen_add_u64(f, test_key(k)), SEEN_OK);
    assert_int_equal(seen_add_u64(f, test_key(room + 1)), SEEN_OK);
    uint64_t one = test_key(room / 2), last = test_key(room);
    for (int times = 0; times < 2; times++)
        assert_int_equal(seen_remove(f, &one, 8), SEEN_OK);
    assert_int_equal(seen_count(f, &one, 8), 4);
    assert_int_equal(seen_add_u64(f, last), SEEN_OK);
    assert_int_equal(seen_count(f, &last, 8), 5);
    for (uint64_t k = 0; k <= room; k++) {
        uint64_t key = test_key(k);
        assert_int_equal(seen_count(f, &key, 8), k == room       ? 5
                                                 : k == room / 2 ? 4
                                                                 : 6);
    }
    seen_free(f);
}

/* Another copy of a key fits where no other key does. */
static void a_full_filter_takes_copies(void **state)
{
    (void)state;
    seen_filter *f = new_cuckoo(3000, 1e-6);
    uint64_t n = fill_up(f), copied = 0, key = test_key(7);
    while (copied < 1000 && seen_add_u64(f, key) == SEEN_OK)
        copied++;
    assert_int_equal(copied, 1000);
    assert_int_equal(seen_count(f, &key, 8), 1001);
    assert_int_equal(info_of(f).items, n + 1000);
    for (; copied > 0; copied--)
        assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, n), n);
    seen_free(f);
}

static void building_from_repeated_keys_keeps_one_of_each(void **state)
{
    (void)state;
    seen_key keys[600];
    for (size_t i = 0; i < 600; i++)
        keys[i] = (seen_key){i < 300 ? "again" : "and again", i < 300 ? 5 : 9};
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_CUCKOO, .fpp = 0.001};
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(keys, 600), NULL),
                     SEEN_OK);
    assert_int_equal(seen_count(f, "again", 5), 1);
    assert_int_equal(seen_count(f, "and again", 9), 1);
    seen_free(f);
}

/* ---- Against a model ----------------------------------------------------- */

/* Saved, loaded, copied and compared: the same. */
static void check_whole(const seen_filter *f)
{
    struct saved s = save(f);
    seen_filter *loaded = NULL, *copy = NULL;
    assert_int_equal(seen_load(&loaded, s.at, s.len, NULL, NULL, NULL),
                     SEEN_OK);
    assert_true(seen_equal(f, loaded) && seen_equal(loaded, f));
    assert_true(saves_as(loaded, s));
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    assert_true(saves_as(copy, s));
    seen_free(copy);
    seen_free(loaded);
    free(s.at);
}

/* Random adds and removes against plain counters: few keys with many copies, many
 * keys with few, at loads up to full. Counts are exact where nobody looks like
 * another; where they do, they are upper bounds, and no key is ever lost. */
static void check_model(uint64_t keys, uint32_t most, seen_spec spec,
                        bool exact, uint64_t stream)
{
    const uint64_t rounds = 200000 * test_scale();
    uint32_t *model = calloc(keys, sizeof *model);
    assert_non_null(model);
    struct test_rng r = test_rng(stream);
    seen_filter *f = test_filter(spec);
    uint64_t items = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t k = test_below(&r, keys), key = test_key(k);
        /* It fills and empties again, some 20 times. */
        bool adding = test_below(&r, 100) < (round * 40 / rounds % 2 ? 30 : 75);
        if (adding && model[k] < most) {
            bool added = seen_add(f, &key, 8) == SEEN_OK;
            model[k] += added;
            items += added;
        } else if (model[k] > 0) {
            assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
            model[k]--;
            items--;
        }
        uint32_t count = seen_count(f, &key, 8);
        assert_true(exact ? count == model[k] : count >= model[k]);
        assert_int_equal(seen_maybe(f, &key, 8), count > 0);
        if (round % (rounds / 8) == 0) check_whole(f);
    }
    test_tried(rounds, "operations");
    assert_int_equal(info_of(f).items, items);
    for (uint64_t k = 0; k < keys; k++)
        for (uint64_t key = test_key(k); model[k] > 0; model[k]--) {
            assert_true(seen_count(f, &key, 8) >= model[k]);
            assert_int_equal(seen_remove(f, &key, 8), SEEN_OK);
        }
    assert_int_equal(info_of(f).items, 0);
    seen_filter *empty = test_filter(spec);
    struct saved s = save(empty);
    assert_true(saves_as(f, s)); /* nothing is left behind */
    free(s.at);
    seen_free(empty);
    seen_free(f);
    free(model);
}

static void counts_agree_with_a_model(void **state)
{
    (void)state;
    const seen_kind kind = SEEN_CUCKOO;
    check_model(400, 4, (seen_spec){.kind = kind, .items = 1600, .fpp = 1e-8},
                true, 81);
    check_model(12, 300, (seen_spec){.kind = kind, .items = 50, .fpp = 1e-9},
                true, 82);
    check_model(5000, 3, (seen_spec){.kind = kind, .items = 4000, .fpp = 1e-9},
                true, 83);
    check_model(3000, 3, (seen_spec){.kind = kind, .items = 3000, .fpp = 0.02},
                false, 84);
    check_model(40, 9, (seen_spec){.kind = kind, .items = 60, .bits = 2900},
                false, 85);
}

/* ---- Whole filters ------------------------------------------------------- */

static void unions_add_up_or_change_nothing(void **state)
{
    (void)state;
    seen_filter *a = new_cuckoo(3000, 1e-6), *b = new_cuckoo(3000, 1e-6);
    seen_filter *all = new_cuckoo(3000, 1e-6), *before = NULL;
    test_add_members(a, 0, 1000);
    test_add_members(b, 500, 1000); /* 500 of them are in both */
    test_add_members(all, 0, 1000);
    test_add_members(all, 500, 1000);
    for (uint64_t i = 0; i < 9; i++) { /* one has many copies in either */
        assert_int_equal(seen_add_u64(i < 3 ? a : b, test_key(700)), SEEN_OK);
        assert_int_equal(seen_add_u64(all, test_key(700)), SEEN_OK);
    }
    assert_int_equal(seen_merge(a, b, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(a, all) && seen_equal(all, a));
    assert_int_equal(info_of(a).items, 2009);
    uint64_t key = test_key(700);
    assert_int_equal(seen_count(a, &key, 8), 11);

    assert_int_equal(seen_copy(&before, a, NULL), SEEN_OK);
    struct saved bytes = save(a);
    assert_int_equal(seen_merge(a, all, SEEN_UNION, NULL), SEEN_FULL);
    assert_true(saves_as(a, bytes));
    assert_int_equal(seen_merge(a, a, SEEN_UNION, NULL), SEEN_FULL);
    assert_true(saves_as(a, bytes) && seen_equal(a, before));
    assert_int_equal(seen_merge(a, b, SEEN_INTERSECTION, NULL),
                     SEEN_UNSUPPORTED);
    free(bytes.at);
    seen_free(a);
    seen_free(b);
    seen_free(all);
    seen_free(before);
}

/* Of two filters whose tables are full of different keys. */
static void a_union_needs_room_in_the_table(void **state)
{
    (void)state;
    const seen_spec spec = {.items = 1000, .fpp = 1e-6};
    seen_plan plan = plan_for(spec);
    const uint64_t half = table_of(&plan) / 2 + 1;
    seen_filter *a = new_cuckoo(spec.items, spec.fpp);
    seen_filter *b = new_cuckoo(spec.items, spec.fpp), *copy = NULL;
    for (uint64_t k = 0; k < half; k++)
        for (int times = 0; times < 9; times++) {
            assert_int_equal(seen_add_u64(a, test_key(k)), SEEN_OK);
            assert_int_equal(seen_add_u64(b, test_key(k + half)), SEEN_OK);
        }
    assert_int_equal(seen_copy(&copy, a, NULL), SEEN_OK);
    struct saved before = save(a);
    assert_int_equal(seen_merge(a, b, SEEN_UNION, NULL), SEEN_FULL);
    assert_true(saves_as(a, before));
    /* With itself: the same keys, and so no more room. */
    assert_int_equal(seen_merge(a, a, SEEN_UNION, NULL), SEEN_OK);
    assert_int_equal(seen_merge(copy, copy, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(a, copy));
    for (uint64_t k = 0; k < half; k++) {
        uint64_t key = test_key(k);
        assert_int_equal(seen_count(a, &key, 8), 18);
    }
    free(before.at);
    seen_free(copy);
    seen_free(b);
    seen_free(a);
}

static void order_does_not_matter_to_equality(void **state)
{
    (void)state;
    const uint64_t n = 20000;
    seen_filter *up = new_cuckoo(n, 0.001), *down = new_cuckoo(n, 0.001);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(seen_add_u64(up, test_key(i)), SEEN_OK);
        assert_int_equal(seen_add_u64(down, test_key(n - 1 - i)), SEEN_OK);
    }
    assert_true(seen_equal(up, down));
    /* Copies count, and which key they are of. */
    for (int times = 0; times < 7; times++) {
        assert_int_equal(seen_add_u64(up, test_key(3)), SEEN_OK);
        assert_int_equal(seen_add_u64(down, test_key(3 + (times == 6))),
                         SEEN_OK);
    }
    assert_int_equal(info_of(up).items, info_of(down).items);
    assert_false(seen_equal(up, down) || seen_equal(down, up));
    assert_int_equal(seen_add_u64(up, test_key(4)), SEEN_OK);
    assert_false(seen_equal(up, down));
    assert_int_equal(seen_add_u64(down, test_key(3)), SEEN_OK);
    assert_true(seen_equal(up, down) && seen_equal(down, up));
    seen_free(up);
    seen_free(down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_means_at_least_94_percent_and_nothing_lost),
        cmocka_unit_test(narrow_slots_fill_as_well),
        cmocka_unit_test(planned_keys_fit),
        cmocka_unit_test(the_rate_is_what_the_load_predicts),
        cmocka_unit_test(twelve_bits_make_a_thousandth),
        cmocka_unit_test(more_bits_lower_the_load),
        cmocka_unit_test(removed_keys_are_gone_and_others_stay),
        cmocka_unit_test(a_key_counts_as_often_as_it_was_added),
        cmocka_unit_test(copies_are_bounded),
        cmocka_unit_test(a_full_filter_takes_copies),
        cmocka_unit_test(building_from_repeated_keys_keeps_one_of_each),
        cmocka_unit_test(counts_agree_with_a_model),
        cmocka_unit_test(unions_add_up_or_change_nothing),
        cmocka_unit_test(a_union_needs_room_in_the_table),
        cmocka_unit_test(order_does_not_matter_to_equality),
    };
    test_announce("cuckoo");
    return cmocka_run_group_tests_name("cuckoo", tests, NULL, NULL);
}
