/*
 * prop_round_trip.c - bytes: saving, loading and saving again is the identity,
 * and damaged bytes give an error or an equal object, never anything else: for
 * bitmaps, then for filters of all kinds.
 */
#include "seen_bitmap.h"

#include "helpers/keys.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t *at; /* aligned for a view */
    size_t len;
};

static struct bytes room(size_t len)
{
    struct bytes b = {aligned_alloc(64, (len + 63) / 64 * 64 + 64), len};
    assert_non_null(b.at);
    return b;
}

static struct bytes save(const seen_bitmap *b)
{
    size_t len = 0;
    assert_int_equal(seen_bitmap_save(b, NULL, 0, &len), SEEN_SHORT);
    struct bytes out = room(len);
    assert_int_equal(seen_bitmap_save(b, out.at, len, &len), SEEN_OK);
    assert_int_equal(len, out.len);
    return out;
}

static seen_bitmap *random_bitmap(struct test_rng *r, uint64_t n)
{
    seen_bitmap *b = NULL;
    assert_int_equal(seen_bitmap_new(&b, n, NULL, NULL), SEEN_OK);
    uint64_t members = test_below(r, 3) ? test_below(r, n + 1) / 2 : 0;
    for (uint64_t i = 0; i < members && i < 5000; i++)
        seen_bitmap_set(b, test_below(r, n));
    if (test_below(r, 4) == 0) seen_bitmap_set_range(b, n / 3, n);
    return b;
}

static void save_load_save_is_byte_equal(void **state)
{
    (void)state;
    struct test_rng r = test_rng(80);
    for (uint64_t i = 0; i < 2000 * test_scale(); i++) {
        uint64_t n = 1 + test_below(&r, (uint64_t)2 << test_below(&r, 20));
        seen_bitmap *b = random_bitmap(&r, n), *loaded = NULL, *view = NULL;
        struct bytes first = save(b);
        assert_int_equal(seen_bitmap_verify(first.at, first.len, NULL),
                         SEEN_OK);
        assert_int_equal(
            seen_bitmap_load(&loaded, first.at, first.len, NULL, NULL),
            SEEN_OK);
        assert_int_equal(seen_bitmap_view(&view, first.at, first.len, NULL),
                         SEEN_OK);
        assert_true(seen_bitmap_equal(b, loaded));
        assert_true(seen_bitmap_equal(b, view));
        struct bytes second = save(loaded), third = save(view);
        assert_int_equal(second.len, first.len);
        assert_int_equal(third.len, first.len);
        assert_memory_equal(second.at, first.at, first.len);
        assert_memory_equal(third.at, first.at, first.len);
        free(first.at);
        free(second.at);
        free(third.at);
        seen_bitmap_free(b);
        seen_bitmap_free(loaded);
        seen_bitmap_free(view);
    }
}

/* Use every question; the answers hardly matter, coming back does. */
static void use(const seen_bitmap *b)
{
    uint64_t n = seen_bitmap_bits(b), members = 0;
    assert_true(n >= 1 && n <= SEEN_BITMAP_MAX);
    for (uint64_t i = seen_bitmap_next_set(b, 0); i != SEEN_NO_BIT;
         i = seen_bitmap_next_set(b, i + 1)) {
        assert_true(i < n && seen_bitmap_has(b, i));
        members++;
    }
    assert_int_equal(seen_bitmap_count(b), members);
}

/*
 * Bytes that somebody may have damaged. A load gives an error or the original;
 * a view, which reads no checksum of the payload, gives an error or a bitmap
 * that works, and then verify knows better.
 */
static void check_damaged(const struct bytes *d, const seen_bitmap *original)
{
    seen_bitmap *b = NULL;
    seen_status loaded = seen_bitmap_load(&b, d->at, d->len, NULL, NULL);
    seen_status verified = seen_bitmap_verify(d->at, d->len, NULL);
    assert_true(loaded == verified);
    if (loaded == SEEN_OK) {
        assert_true(seen_bitmap_equal(b, original));
        seen_bitmap_free(b);
    } else {
        assert_null(b);
        assert_true(loaded == SEEN_CORRUPT || loaded == SEEN_NEWER ||
                    loaded == SEEN_UNSUPPORTED);
    }
    if (seen_bitmap_view(&b, d->at, d->len, NULL) == SEEN_OK) {
        use(b);
        assert_true(loaded == SEEN_OK || loaded == SEEN_CORRUPT);
        seen_bitmap_free(b);
    }
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 63, 64, 65, 200, 5000};
    struct test_rng r = test_rng(81);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen_bitmap *b = random_bitmap(&r, sizes[i]), *none = NULL;
        struct bytes good = save(b);
        for (size_t bit = 0; bit < 8 * good.len; bit++) {
            good.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_not_equal(
                seen_bitmap_load(&none, good.at, good.len, NULL, NULL),
                SEEN_OK);
            check_damaged(&good, b);
            good.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        check_damaged(&good, b);
        free(good.at);
        seen_bitmap_free(b);
    }
}

static void every_truncation_and_extension_is_refused(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 65, 200, 5000};
    struct test_rng r = test_rng(82);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen_bitmap *b = random_bitmap(&r, sizes[i]), *none = NULL;
        struct bytes good = save(b);
        for (size_t len = 0; len < good.len + 64; len++) {
            if (len == good.len) continue;
            /* A block of exactly this length, for the address sanitizer. */
            uint8_t *cut = calloc(1, len ? len : 1);
            assert_non_null(cut);
            memcpy(cut, good.at, len < good.len ? len : good.len);
            assert_int_equal(seen_bitmap_load(&none, cut, len, NULL, NULL),
                             SEEN_CORRUPT);
            assert_int_equal(seen_bitmap_verify(cut, len, NULL), SEEN_CORRUPT);
            assert_int_equal(seen_bitmap_view(&none, cut, len, NULL),
                             SEEN_CORRUPT);
            free(cut);
        }
        assert_null(none);
        free(good.at);
        seen_bitmap_free(b);
    }
}

static void a_later_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    struct test_rng r = test_rng(83);
    seen_bitmap *b = random_bitmap(&r, 1000), *none = NULL;
    struct bytes good = save(b);
    for (int version = 2; version < 65536; version += 97) {
        good.at[8] = (uint8_t)version;
        good.at[9] = (uint8_t)(version >> 8);
        assert_int_equal(seen_bitmap_load(&none, good.at, good.len, NULL, NULL),
                         SEEN_NEWER);
        assert_int_equal(seen_bitmap_view(&none, good.at, good.len, NULL),
                         SEEN_NEWER);
        assert_int_equal(seen_bitmap_verify(good.at, good.len, NULL),
                         SEEN_NEWER);
    }
    good.at[8] = good.at[9] = 0; /* there never was a version 0 */
    assert_int_equal(seen_bitmap_load(&none, good.at, good.len, NULL, NULL),
                     SEEN_CORRUPT);
    assert_null(none);
    free(good.at);
    seen_bitmap_free(b);
}

static void random_damage_is_survived(void **state)
{
    (void)state;
    struct test_rng r = test_rng(84);
    for (uint64_t i = 0; i < 20000 * test_scale(); i++) {
        seen_bitmap *b = random_bitmap(&r, 1 + test_below(&r, 3000));
        struct bytes d = save(b);
        uint64_t wounds = 1 + test_below(&r, 4);
        for (uint64_t j = 0; j < wounds; j++) {
            uint64_t at = test_below(&r, test_below(&r, 2) ? 256 : d.len);
            static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
            d.at[at] = test_below(&r, 2) ? (uint8_t)test_next(&r)
                                         : edges[test_below(&r, 5)];
        }
        if (test_below(&r, 4) == 0) d.len = (size_t)test_below(&r, d.len + 1);
        check_damaged(&d, b);
        free(d.at);
        seen_bitmap_free(b);
    }
}

static void noise_is_no_bitmap(void **state)
{
    (void)state;
    struct test_rng r = test_rng(85);
    seen_bitmap *none = NULL;
    for (uint64_t i = 0; i < 20000 * test_scale(); i++) {
        struct bytes d = room((size_t)test_below(&r, 400));
        for (size_t j = 0; j < d.len; j++)
            d.at[j] = (uint8_t)test_next(&r);
        assert_int_equal(seen_bitmap_load(&none, d.at, d.len, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_bitmap_view(&none, d.at, d.len, NULL),
                         SEEN_CORRUPT);
        free(d.at);
    }
    assert_null(none);
}

/* ---- Filters of all kinds ----------------------------------------------- */

/* Sizes from 1 up, rates from one half down, seeds and secrets. */
static seen_spec random_spec(struct test_rng *r, seen_kind kind,
                             const uint8_t *key)
{
    uint64_t items = 1 + test_below(r, (uint64_t)2 << test_below(r, 11));
    seen_spec plain = test_spec_for(kind, items), spec = plain;
    if (spec.fpp > 0) spec.fpp = pow(10, -0.3 - 8 * test_unit(r));
    if (test_below(r, 2)) spec.seed = test_next(r);
    if (test_below(r, 3) == 0) spec.flags |= SEEN_KEYED;
    if (spec.flags & SEEN_KEYED) spec.secret = key;
    return test_wrong_spec(&spec) ? plain : spec;
}

/* Some keys of its plan; a few are removed by kinds that can. */
static seen_filter *random_filter(struct test_rng *r)
{
    size_t kinds = 0;
    while (seen_kind_at(kinds) != SEEN_ANY)
        kinds++;
    seen_kind kind = seen_kind_at((size_t)test_below(r, kinds));
    uint8_t key[16];
    for (size_t i = 0; i < 16; i++)
        key[i] = (uint8_t)test_next(r);
    seen_spec spec = random_spec(r, kind, key);
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    uint64_t most = plan.items / (spec.items ? 1 : 4);
    size_t n = (size_t)test_below(r, most + 1);
    bool grows = kind == SEEN_SET || kind == SEEN_SCALABLE;
    if (grows && test_below(r, 2)) n += 3000;
    seen_filter *f = test_filled(spec, 0, n);
    for (uint64_t i = 0; i < n; i += 1 + test_below(r, 20)) {
        uint64_t number = test_key_for(kind, i);
        uint8_t bytes[8];
        for (int b = 0; b < 8; b++)
            bytes[b] = (uint8_t)(number >> (8 * b));
        seen_remove(f, bytes, 8);
    }
    return f;
}

static struct bytes save_filter(const seen_filter *f)
{
    size_t len = 0;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    struct bytes out = room(len);
    assert_int_equal(seen_save(f, 0, out.at, len, &len), SEEN_OK);
    assert_int_equal(len, out.len);
    return out;
}

static void assert_is_saved_as(seen_filter *f, const seen_filter *original,
                               struct bytes expected)
{
    struct bytes again = save_filter(f);
    assert_true(seen_equal(f, original) && seen_equal(original, f));
    assert_int_equal(again.len, expected.len);
    assert_memory_equal(again.at, expected.at, again.len);
    free(again.at);
    seen_free(f);
}

static void filters_are_saved_as_they_were_loaded(void **state)
{
    (void)state;
    struct test_rng r = test_rng(86);
    for (uint64_t i = 0; i < 3000 * test_scale(); i++) {
        seen_filter *f = random_filter(&r), *loaded = NULL, *view = NULL;
        struct bytes saved = save_filter(f);
        assert_int_equal(seen_verify(saved.at, saved.len, NULL), SEEN_OK);
        assert_int_equal(
            seen_load(&loaded, saved.at, saved.len, NULL, NULL, NULL), SEEN_OK);
        assert_int_equal(seen_view(&view, saved.at, saved.len, NULL, NULL),
                         SEEN_OK);
        assert_is_saved_as(loaded, f, saved);
        assert_is_saved_as(view, f, saved);
        free(saved.at);
        seen_free(f);
    }
}

/* A load gives an error or the original, a view at least one that answers. */
static void check_damaged_filter(struct bytes d, const seen_filter *original)
{
    seen_filter *f = NULL;
    seen_status loaded = seen_load(&f, d.at, d.len, NULL, NULL, NULL);
    assert_int_equal(seen_verify(d.at, d.len, NULL), loaded);
    if (loaded == SEEN_OK) {
        assert_true(seen_equal(f, original));
        seen_free(f);
    } else {
        assert_null(f);
        assert_true(loaded == SEEN_CORRUPT || loaded == SEEN_NEWER);
    }
    if (seen_view(&f, d.at, d.len, NULL, NULL) != SEEN_OK) return;
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    for (uint64_t i = 0; i < 20; i++) {
        seen_hash h = {test_mix(i), test_mix(i + 100)};
        assert_int_equal(seen_maybe_hashed(f, h), seen_count_hashed(f, h) > 0);
    }
    seen_free(f);
}

static void damaged_filters_are_refused_or_equal(void **state)
{
    (void)state;
    test_tried(20 * 1000 * test_scale(), "damaged filters");
    struct test_rng r = test_rng(87);
    for (uint64_t i = 0; i < 1000 * test_scale(); i++) {
        seen_filter *f = random_filter(&r);
        struct bytes good = save_filter(f);
        for (int j = 0; j < 20; j++) {
            struct bytes d = room(good.len);
            memcpy(d.at, good.at, good.len);
            uint64_t wounds = 1 + test_below(&r, 4);
            for (uint64_t k = 0; k < wounds; k++)
                d.at[test_below(&r, test_below(&r, 2) ? 256 : d.len)] ^=
                    (uint8_t)(1u << test_below(&r, 8));
            if (test_below(&r, 4) == 0)
                d.len = (size_t)test_below(&r, d.len + 1);
            check_damaged_filter(d, f);
            free(d.at);
        }
        free(good.at);
        seen_free(f);
    }
}

static void noise_is_no_filter(void **state)
{
    (void)state;
    struct test_rng r = test_rng(88);
    seen_filter *none = NULL;
    for (uint64_t i = 0; i < 20000 * test_scale(); i++) {
        struct bytes d = room((size_t)test_below(&r, 1500));
        for (size_t j = 0; j < d.len; j++)
            d.at[j] = (uint8_t)test_next(&r);
        assert_int_equal(seen_load(&none, d.at, d.len, NULL, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_view(&none, d.at, d.len, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_verify(d.at, d.len, NULL), SEEN_CORRUPT);
        free(d.at);
    }
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(save_load_save_is_byte_equal),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(every_truncation_and_extension_is_refused),
        cmocka_unit_test(a_later_version_is_told_apart_from_damage),
        cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(noise_is_no_bitmap),
        cmocka_unit_test(filters_are_saved_as_they_were_loaded),
        cmocka_unit_test(damaged_filters_are_refused_or_equal),
        cmocka_unit_test(noise_is_no_filter),
    };
    test_announce("round_trip");
    return cmocka_run_group_tests_name("round_trip", tests, NULL, NULL);
}
