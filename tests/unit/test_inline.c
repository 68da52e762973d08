/*
 * test_inline.c - seen_inline.h answers as the library does, bit for bit. It is
 * compiled twice, without and with -mavx2: then it asks for itself.
 */
#include "seen_inline.h"

#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

#define KEYS 4000

/* Members and others, given as hashes. */
static void assert_alike(const seen_inline *in, const seen_filter *f)
{
    struct test_rng r = test_rng(2);
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t key = test_key(i);
        seen_hash h[2] = {seen_hash_key(f, &key, 8),
                          {test_next(&r), test_next(&r)}};
        for (size_t j = 0; j < 2; j++)
            assert_int_equal(seen_inline_maybe_hashed(in, h[j]),
                             seen_maybe_hashed(f, h[j]));
    }
}

static void add_members(seen_filter *f)
{
    for (uint64_t i = 0; i < KEYS; i += 2) {
        const uint64_t key = test_key(i);
        assert_int_equal(seen_add(f, &key, 8), SEEN_OK);
    }
}

static void the_usual_filter_is_asked_inline(void **state)
{
    (void)state;
    /* From a line or two to more than the cache has, half full or far too. */
    const uint64_t items[] = {1, 50, 1000, KEYS, 30000, 1000000, 20000000};
    const double fpp[] = {0.01, 0.001, 0.015};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (size_t p = 0; p < 3; p++) {
            seen_filter *f =
                test_filter((seen_spec){.items = items[i], .fpp = fpp[p]});
            seen_inline in;
            assert_int_equal(seen_inline_of(&in, f), SEEN_OK);
            assert_alike(&in, f);
            add_members(f);
            assert_alike(&in, f);
            seen_free(f);
        }
}

static void a_snapshot_lasts_as_long_as_its_filter(void **state)
{
    (void)state;
    const seen_spec spec = {.items = KEYS, .fpp = 0.01};
    seen_filter *f = test_filter(spec), *g = test_filter(spec);
    const uint64_t key = test_key(0);
    const seen_hash h = seen_hash_key(f, &key, 8);
    seen_inline in;
    assert_int_equal(seen_inline_of(&in, f), SEEN_OK);
    assert_false(seen_inline_maybe_hashed(&in, h));
    add_members(g);
    assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_inline_maybe_hashed(&in, h));
    assert_alike(&in, f);
    assert_int_equal(seen_reserve(f, 10 * KEYS), SEEN_OK);
    assert_alike(&in, f);
    seen_clear(f);
    assert_false(seen_inline_maybe_hashed(&in, h));
    add_members(f);
    assert_alike(&in, f);

    /* If the lines were elsewhere, the library would be asked. */
    static uint64_t gone[8] __attribute__((aligned(64)));
    in.words = gone;
    in.lines = 1;
    assert_true(seen_inline_maybe_hashed(&in, h));
    assert_alike(&in, f);
    seen_free(f);
    seen_free(g);
}

static void views_are_asked_inline(void **state)
{
    (void)state;
    seen_filter *f = test_filter((seen_spec){.items = KEYS, .fpp = 0.01}), *v;
    size_t len;
    add_members(f);
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    void *buf = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_non_null(buf);
    assert_int_equal(seen_save(f, 0, buf, len, &len), SEEN_OK);
    assert_int_equal(seen_view(&v, buf, len, NULL, NULL), SEEN_OK);
    seen_inline in;
    assert_int_equal(seen_inline_of(&in, v), SEEN_OK);
    assert_alike(&in, f);
    seen_free(v);
    free(buf);
    seen_free(f);
}

static void all_other_filters_are_asked_through_the_library(void **state)
{
    (void)state;
    seen_spec specs[64] = {
        {.items = KEYS, .fpp = 0.01, .flags = SEEN_CONCURRENT},
        {.items = KEYS,
         .fpp = 0.01,
         .flags = SEEN_KEYED,
         .secret = test_secret},
        {.items = KEYS, .fpp = 0.1},
        {.items = KEYS, .fpp = 1e-5},
        {.items = KEYS, .fpp = 1e-15},
        {.items = KEYS, .fpp = 0.01, .dialect = "guava"}};
    size_t n = 6;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        if (kind != SEEN_BLOCKED) specs[n++] = test_spec_for(kind, KEYS);
    for (size_t i = 0; i < n; i++) {
        seen_filter *f = specs[i].dialect ? test_filter(specs[i])
                                          : test_filled(specs[i], 0, KEYS / 2);
        seen_inline in;
        assert_int_equal(seen_inline_of(&in, f), SEEN_UNSUPPORTED);
        assert_alike(&in, f);
        seen_free(f);
    }
}

static void sizes_and_layouts_to_come_are_refused(void **state)
{
    (void)state;
    seen_filter *f = test_filter((seen_spec){.items = KEYS, .fpp = 0.01});
    seen_inline in = {.size = sizeof in};
    assert_int_equal(seen_inline_take(f, 2, &in), SEEN_UNSUPPORTED);
    assert_alike(&in, f);
    assert_int_equal(seen_inline_take(NULL, 1, &in), SEEN_INVALID);
    assert_int_equal(seen_inline_take(f, 1, NULL), SEEN_INVALID);
    in.size = 8;
    assert_int_equal(seen_inline_take(f, 1, &in), SEEN_INVALID);
    in.size = 1 << 20;
    assert_int_equal(seen_inline_take(f, 1, &in), SEEN_INVALID);
    seen_free(f);
}

int main(void)
{
    test_announce("test_inline");
#if defined(__AVX2__)
    if (!__builtin_cpu_supports("avx2")) return 77; /* skipped */
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_filter_is_asked_inline),
        cmocka_unit_test(a_snapshot_lasts_as_long_as_its_filter),
        cmocka_unit_test(views_are_asked_inline),
        cmocka_unit_test(all_other_filters_are_asked_through_the_library),
        cmocka_unit_test(sizes_and_layouts_to_come_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
