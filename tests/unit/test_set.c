/* test_set.c - the growing set: growth, collisions at the edge, set algebra. */
#include "seen.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"
#include "helpers/model.h"

#include <stdlib.h>

static seen_filter *new_set(uint64_t expected, const seen_allocator *a)
{
    return test_filter(
        (seen_spec){.kind = SEEN_SET, .items = expected, .allocator = a});
}

static void a_million_keys_fit_and_none_is_confused(void **state)
{
    (void)state;
    const uint64_t n = 1000000;
    struct test_alloc a;
    test_alloc_init(&a);
    seen_filter *f = new_set(0, &a.as);
    test_add_members(f, 0, n);
    assert_int_equal(test_info(f).items, n);
    assert_int_equal(test_count_maybe(f, 0, n), n);
    /* 2e6 questions of 2^64: no chance in practice. */
    assert_int_equal(test_count_maybe(f, TEST_STRANGERS, n), 0);
    /* What the file's essay promises; an allocator of the user's keeps the
     * old table until the new one is full. */
    assert_between((double)test_info(f).bytes / (double)n, 10, 20.1);
    assert_between((double)a.peak / (double)n, 10, 30.1);
    assert_true(test_info(f).bytes >= a.bytes - 64 * a.blocks);
    assert_int_equal(test_info(f).capacity, 0);
    seen_free(f);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
}

static void a_planned_set_does_not_grow(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 99, 100, 101, 5000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct test_alloc a;
        test_alloc_init(&a);
        seen_filter *f = new_set(sizes[i], &a.as);
        uint64_t calls = a.calls;
        test_add_members(f, 0, sizes[i]);
        assert_int_equal(a.calls, calls);
        assert_int_equal(test_info(f).items, sizes[i]);
        seen_free(f);
    }
}

static void a_set_at_its_limit_is_full_and_unchanged(void **state)
{
    (void)state;
    const uint64_t limit = 100000;
    seen_filter *f = test_filter((seen_spec){.kind = SEEN_SET, .limit = limit});
    uint64_t n = 0;
    seen_status status;
    while ((status = seen_add_u64(f, n)) == SEEN_OK)
        n++;
    assert_int_equal(status, SEEN_FULL);
    /* All but the last line of the limit is in use, to four fifths. */
    assert_between((double)n, 0.79 * limit / 8, 0.81 * limit / 8);
    assert_true(test_info(f).bytes <= limit);
    assert_int_equal(test_info(f).items, n);
    assert_int_equal(seen_reserve(f, 2 * n), SEEN_FULL);
    bool before = true; /* written on success only */
    assert_int_equal(seen_visit_u64(f, n, &before), SEEN_FULL);
    assert_true(before);
    for (uint64_t i = 0; i < n; i++)
        assert_true(seen_maybe_u64(f, i));
    assert_false(seen_maybe_u64(f, n));
    assert_int_equal(seen_add_u64(f, 0), SEEN_OK); /* it is there already */
    seen_free(f);
}

static void reserved_room_is_neither_short_nor_wasteful(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    seen_filter *f = new_set(0, &a.as);
    test_add_members(f, 0, 1000);
    assert_int_equal(seen_reserve(f, 500), SEEN_OK); /* there already */
    assert_int_equal(seen_reserve(f, 0), SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 1000), 1000);
    assert_int_equal(seen_reserve(f, 300000), SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 1000), 1000);
    assert_int_equal(test_info(f).items, 1000);
    assert_between((double)test_info(f).bytes / 300000, 10, 10.1);
    uint64_t calls = a.calls, bytes = test_info(f).bytes;
    test_add_members(f, 1000, 299000);
    assert_int_equal(a.calls, calls);
    assert_int_equal(test_info(f).bytes, bytes);
    test_add_members(f, 300000, 1000); /* and grows on when it must */
    assert_int_equal(test_count_maybe(f, 0, 301000), 301000);

    assert_int_equal(seen_reserve(f, UINT64_MAX), SEEN_INVALID);
    assert_int_equal(test_count_maybe(f, 0, 301000), 301000);
    seen_free(f);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
}

/* Tables above 2 MiB come from the kernel and go back to it in pieces while
 * they are being moved; nothing may be lost on the way. */
static void a_large_set_survives_being_moved(void **state)
{
    (void)state;
    const uint64_t n = 3000000;
    seen_filter *f = new_set(0, NULL);
    for (uint64_t i = 0; i < n; i += n / 4)
        test_add_members(f, i, n / 4);
    assert_int_equal(seen_reserve(f, 2 * n), SEEN_OK);
    assert_int_equal(test_info(f).items, n);
    assert_int_equal(test_count_maybe(f, 0, n), n);
    assert_int_equal(test_count_maybe(f, TEST_STRANGERS, 100000), 0);
    seen_free(f);
}

/* Hashes brought by the caller: crowded at 0, at the top, in one line. */
static void check_against_model(uint64_t mask, uint64_t offset, int rounds)
{
    struct test_rng r = test_rng(30 + mask);
    seen_filter *f = new_set(0, NULL);
    struct model_set m = model_set_new();
    for (int i = 0; i < rounds; i++) {
        uint64_t x = (test_next(&r) & mask) + offset;
        if (x == 0 || x == 1) continue; /* those two share a slot */
        seen_hash h = {x, test_next(&r)};
        bool before = false;
        bool expected = model_set_has(&m, x);
        assert_int_equal(seen_maybe_hashed(f, h), expected);
        assert_int_equal(seen_visit_hashed(f, h, &before), SEEN_OK);
        assert_int_equal(before, expected);
        model_set_add(&m, x);
        seen_hash other = {(test_next(&r) & mask) + offset, 0};
        if (other.lo > 1)
            assert_int_equal(seen_maybe_hashed(f, other),
                             model_set_has(&m, other.lo));
    }
    assert_int_equal(test_info(f).items, model_set_count(&m));
    seen_free(f);
    model_set_free(&m);
}

static void crowds_at_the_ends_survive_growth(void **state)
{
    (void)state;
    /* Hashes that crowd at the end of the table and run over into its front,
     * at the front, and in the middle, among three million others: enough for
     * tables that hand memory on to the next. */
    const uint64_t crowd = 3000, others = 3000000;
    const uint64_t crowds[] = {UINT64_MAX, crowd + 10, UINT64_MAX / 2,
                               UINT64_MAX / 3 * 2};
    seen_filter *f = new_set(0, NULL);
    for (size_t c = 0; c < sizeof crowds / sizeof *crowds; c++)
        for (uint64_t i = 1; i <= crowd; i++)
            assert_int_equal(seen_add_hashed(f, (seen_hash){crowds[c] - i, 0}),
                             SEEN_OK);
    for (uint64_t i = 0; i < others; i++)
        assert_int_equal(seen_add_hashed(f, (seen_hash){test_key(i), 0}),
                         SEEN_OK);
    assert_int_equal(test_info(f).items, 4 * crowd + others);
    for (size_t c = 0; c < sizeof crowds / sizeof *crowds; c++) {
        for (uint64_t i = 1; i <= crowd; i++)
            assert_true(seen_maybe_hashed(f, (seen_hash){crowds[c] - i, 0}));
        assert_false(
            seen_maybe_hashed(f, (seen_hash){crowds[c] - crowd - 1, 0}));
    }
    for (uint64_t i = 0; i < others; i++)
        assert_true(seen_maybe_hashed(f, (seen_hash){test_key(i), 0}));
    seen_free(f);
}

static void answers_are_those_of_an_exact_set(void **state)
{
    (void)state;
    check_against_model(UINT64_MAX, 0, 200000);
    check_against_model(0xfff, 0, 20000);
    check_against_model(0x3ff, UINT64_MAX - 0x3ff, 10000); /* wraps around */
    check_against_model(0x3ff, (uint64_t)1 << 63, 10000);
}

static void a_key_whose_hash_is_zero_is_a_key(void **state)
{
    (void)state;
    seen_filter *f = new_set(0, NULL);
    const seen_hash zero = {0, 0};
    bool before = true;
    assert_false(seen_maybe_hashed(f, zero));
    assert_int_equal(seen_visit_hashed(f, zero, &before), SEEN_OK);
    assert_false(before);
    assert_true(seen_maybe_hashed(f, zero));
    assert_int_equal(seen_visit_hashed(f, zero, &before), SEEN_OK);
    assert_true(before);
    assert_int_equal(test_info(f).items, 1);
    test_add_members(f, 0, 10000); /* and stays one while the table grows */
    assert_true(seen_maybe_hashed(f, zero));
    seen_free(f);
}

static void hi_does_not_matter(void **state)
{
    (void)state;
    seen_filter *f = new_set(0, NULL);
    seen_add_hashed(f, (seen_hash){12345, 1});
    assert_true(seen_maybe_hashed(f, (seen_hash){12345, 2}));
    assert_false(seen_maybe_hashed(f, (seen_hash){12346, 1}));
    seen_free(f);
}

static void sets_of_different_sizes_unite(void **state)
{
    (void)state;
    static const uint64_t sizes[][2] = {{0, 0},        {0, 5000},  {5000, 0},
                                        {10, 9000},    {9000, 10}, {90, 90},
                                        {70000, 60000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t na = sizes[i][0], nb = sizes[i][1], common = na / 2;
        seen_filter *a = new_set(0, NULL), *b = new_set(nb, NULL);
        seen_filter *all = new_set(0, NULL);
        test_add_members(a, 0, na);
        test_add_members(b, na - common, nb);
        test_add_members(all, 0, na);
        test_add_members(all, na - common, nb);
        uint64_t total = nb > common ? na + nb - common : na;
        assert_int_equal(test_info(all).items, total);

        assert_int_equal(seen_merge(a, b, SEEN_UNION, NULL), SEEN_OK);
        assert_true(seen_equal(a, all));
        assert_int_equal(test_info(a).items, total);
        assert_int_equal(test_count_maybe(a, 0, total), total);
        assert_int_equal(test_count_maybe(a, total, 10000), 0);
        seen_free(a);
        seen_free(b);
        seen_free(all);
    }
}

static void sets_of_different_sizes_intersect(void **state)
{
    (void)state;
    static const uint64_t sizes[][2] = {{0, 0},     {0, 5000},  {5000, 0},
                                        {10, 9000}, {9000, 10}, {60000, 50000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t na = sizes[i][0], nb = sizes[i][1], first = na / 2;
        uint64_t common = na - first < nb ? na - first : nb;
        seen_filter *a = new_set(0, NULL), *b = new_set(0, NULL);
        seen_filter *expected = new_set(0, NULL);
        test_add_members(a, 0, na);
        test_add_members(b, first, nb);
        test_add_members(expected, first, common);
        assert_int_equal(seen_merge(a, b, SEEN_INTERSECTION, NULL), SEEN_OK);
        assert_int_equal(test_info(a).items, common);
        assert_true(seen_equal(a, expected));
        assert_true(seen_equal(expected, a));
        assert_int_equal(test_count_maybe(a, first, common), common);
        assert_int_equal(test_count_maybe(a, 0, first), 0);
        test_add_members(a, 0, na); /* still a working set */
        assert_int_equal(test_count_maybe(a, 0, na), na);
        seen_free(a);
        seen_free(b);
        seen_free(expected);
    }
}

/* The header of a view says what it likes. */
static void
a_view_that_lies_about_its_items_is_merged_whole_or_not(void **state)
{
    (void)state;
    seen_filter *f = new_set(0, NULL), *view = NULL;
    test_add_members(f, 0, 5000);
    size_t len;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    uint8_t *bytes = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    static const uint64_t lies[] = {0, 4999, 5001, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        seen_put_le64(bytes + 56, lies[i]);
        seen_put_le32(bytes + 252, seen_crc32c(0, bytes, 252));
        if (seen_view(&view, bytes, len, NULL, NULL) != SEEN_OK) continue;
        seen_filter *into =
            test_filter((seen_spec){.kind = SEEN_SET, .limit = 1 << 14});
        test_add_members(into, 7000, 10);
        uint64_t size = test_info(into).bytes;
        assert_int_equal(seen_merge(into, view, SEEN_UNION, NULL), SEEN_FULL);
        assert_int_equal(test_info(into).items, 10);
        assert_int_equal(test_info(into).bytes, size);
        seen_free(into);
        seen_free(view);
    }
    free(bytes);
    seen_free(f);
}

static void a_grown_set_is_copied_whole(void **state)
{
    (void)state;
    seen_filter *f = new_set(0, NULL), *copy = NULL;
    test_add_members(f, 0, 50000);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    assert_true(seen_equal(f, copy));
    assert_int_equal(test_info(copy).bytes, test_info(f).bytes);
    test_add_members(copy, 50000, 50000);
    assert_int_equal(test_info(copy).items, 100000);
    assert_int_equal(test_info(f).items, 50000);
    seen_free(f);
    seen_free(copy);
}

static void size_is_no_part_of_equality(void **state)
{
    (void)state;
    seen_filter *small = new_set(0, NULL), *large = new_set(100000, NULL);
    test_add_members(small, 0, 500);
    test_add_members(large, 0, 500);
    assert_true(seen_equal(small, large));
    assert_true(seen_equal(large, small));
    test_add_members(large, 500, 1);
    assert_false(seen_equal(small, large));
    test_add_members(small, 501, 1); /* as many, but another */
    assert_false(seen_equal(small, large));
    assert_false(seen_equal(large, small));
    seen_clear(small);
    seen_clear(large);
    assert_true(seen_equal(small, large));
    seen_free(small);
    seen_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_keys_fit_and_none_is_confused),
        cmocka_unit_test(a_planned_set_does_not_grow),
        cmocka_unit_test(a_set_at_its_limit_is_full_and_unchanged),
        cmocka_unit_test(reserved_room_is_neither_short_nor_wasteful),
        cmocka_unit_test(a_large_set_survives_being_moved),
        cmocka_unit_test(crowds_at_the_ends_survive_growth),
        cmocka_unit_test(answers_are_those_of_an_exact_set),
        cmocka_unit_test(a_key_whose_hash_is_zero_is_a_key),
        cmocka_unit_test(hi_does_not_matter),
        cmocka_unit_test(sets_of_different_sizes_unite),
        cmocka_unit_test(sets_of_different_sizes_intersect),
        cmocka_unit_test(
            a_view_that_lies_about_its_items_is_merged_whole_or_not),
        cmocka_unit_test(a_grown_set_is_copied_whole),
        cmocka_unit_test(size_is_no_part_of_equality),
    };
    test_announce("set");
    return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
