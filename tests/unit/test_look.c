/* test_look.c - what a filter is: at once, measured, and from saved bytes. */
#include "seen.h"

#include "helpers/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t secret[16] = "sixteen secrets";

static size_t save(uint32_t flags, uint32_t how, uint8_t *to, size_t cap)
{
    seen_filter *f;
    size_t len;
    seen_spec spec = {
        .items = 100, .fpp = 0.01, .flags = flags, .secret = secret};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    assert_int_equal(seen_add_str(f, "key"), SEEN_OK);
    assert_int_equal(seen_save(f, how, to, cap, &len), SEEN_OK);
    seen_free(f);
    return len;
}

/* ---- Laws of all kinds --------------------------------------------------- */

#define ITEMS 3000

/* Fields that the three calls must agree in. */
static void assert_same_filter(const seen_info *a, const seen_info *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_string_equal(a->hash, b->hash);
    assert_true(!a->dialect == !b->dialect &&
                (!a->dialect || strcmp(a->dialect, b->dialect) == 0));
    assert_int_equal(a->key_form, b->key_form);
    assert_int_equal(a->hashes, b->hashes);
    assert_int_equal(a->lines, b->lines);
    assert_int_equal(a->layers, b->layers);
    assert_int_equal(a->growth, b->growth);
    assert_int_equal(a->grows, b->grows);
    assert_int_equal(a->capacity, b->capacity);
    assert_true(a->fpp == b->fpp);
    assert_int_equal(a->bits, b->bits);
    assert_int_equal(a->bytes, b->bytes);
}

/* What only saved bytes have. */
static void assert_not_saved(const seen_info *info)
{
    assert_false(info->secret_apart || info->journaled);
    assert_true(info->saved_bytes == 0 && info->id == 0 && info->epoch == 0);
}

static void check_laws(seen_filter *f)
{
    seen_info once, all, saved;
    seen_plan plan, looked;
    size_t len;
    memset(&once, 0xa5, sizeof once); /* every field is written */
    memset(&all, 0xa5, sizeof all);
    memset(&saved, 0xa5, sizeof saved);
    once.size = all.size = saved.size = sizeof once;
    plan.size = looked.size = sizeof plan;
    assert_int_equal(seen_info_of(f, &once), SEEN_OK);
    assert_int_equal(seen_measure(f, &all), SEEN_OK);
    assert_int_equal(seen_plan_of(f, &plan), SEEN_OK);
    seen_save(f, 0, NULL, 0, &len);
    uint8_t *bytes = malloc(len);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    assert_int_equal(seen_look(bytes, len, &saved, &looked, NULL), SEEN_OK);

    assert_same_filter(&once, &all);
    assert_int_equal(once.flags, all.flags);
    assert_int_equal(once.counted, all.counted);
    if (once.counted) assert_int_equal(once.items, all.items);
    assert_not_saved(&once);
    assert_not_saved(&all);
    assert_true(once.bits_set == 0 && isnan(once.fpp_now));
    assert_true(all.items > 0 && all.bits_set > 0 && all.fpp_now >= 0);

    assert_same_filter(&once, &saved);
    assert_int_equal(saved.flags, once.flags & ~SEEN_CONCURRENT);
    assert_true(saved.bits_set == 0 && isnan(saved.fpp_now));
    assert_int_equal(saved.saved_bytes, len);
    if (once.counted) assert_int_equal(saved.items, once.items);
    assert_memory_equal(
        (char *)&plan + sizeof plan.size, (char *)&looked + sizeof plan.size,
        offsetof(seen_plan, line) + sizeof plan.line - sizeof plan.size);
    free(bytes);
    seen_free(f);
}

static void the_three_calls_agree_about_every_kind(void **state)
{
    (void)state;
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++) {
        seen_spec spec = test_spec_for(seen_kind_at(i), ITEMS);
        check_laws(test_filled(spec, 0, ITEMS));
        if (!test_kind_can(spec.kind, SEEN_CONCURRENT)) continue;
        spec.flags = SEEN_CONCURRENT;
        check_laws(test_filled(spec, 0, ITEMS));
    }
}

static void the_three_calls_agree_about_what_has_grown(void **state)
{
    (void)state;
    seen_spec spec = test_spec_for(SEEN_SCALABLE, ITEMS / 30);
    seen_filter *f = test_filled(spec, 0, ITEMS);
    seen_info info = {.size = sizeof info};
    seen_plan plan = {.size = sizeof plan}, planned = {.size = sizeof planned};
    seen_info_of(f, &info);
    seen_plan_of(f, &plan);
    seen_plan_for(&spec, &planned, NULL);
    assert_true(info.grows && info.layers > 1 && info.capacity >= ITEMS);
    assert_int_equal(plan.items, ITEMS / 30); /* as it was made */
    assert_int_equal(plan.bits, planned.bits);
    assert_true(info.bits > plan.bits);
    check_laws(f);
}

static void the_three_calls_agree_about_other_systems(void **state)
{
    (void)state;
    static const char *const names[] = {"guava", "redisbloom", "leveldb",
                                        "redisbloom-cf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        seen_spec spec = {.dialect = names[i], .items = 1000, .fpp = 0.01};
        if (i == 2) spec.bits_per_key = 10, spec.fpp = 0;
        seen_filter *f = test_filter(spec);
        test_add_members(f, 0, i == 3 ? 900 : ITEMS);
        check_laws(f);
    }
}

/* ---- Saved bytes --------------------------------------------------------- */

static void look_tells_kind_parameters_and_items(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    size_t len = save(0, 0, bytes, sizeof bytes);
    seen_info info = {.size = sizeof info};
    seen_plan plan = {.size = sizeof plan}, looked = {.size = sizeof looked};
    seen_plan_for(&(seen_spec){.items = 100, .fpp = 0.01}, &plan, NULL);
    assert_int_equal(seen_look(bytes, len, &info, &looked, NULL), SEEN_OK);
    assert_int_equal(info.kind, SEEN_BLOCKED);
    assert_int_equal(info.capacity, 100);
    assert_int_equal(looked.items, 100);
    assert_int_equal(looked.bits, plan.bits);
    assert_int_equal(looked.bytes, plan.bytes);
    assert_int_equal(info.items, 1);
    assert_int_equal(info.saved_bytes, len);
    assert_string_equal(info.hash, "xxh3-64");
    assert_false(info.flags || info.secret_apart || info.journaled);
}

static void look_needs_no_secret(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    seen_info info = {.size = sizeof info};
    seen_filter *f;
    size_t len = save(SEEN_KEYED, SEEN_SECRET_APART, bytes, sizeof bytes);
    assert_int_equal(seen_load(&f, bytes, len, NULL, NULL, NULL),
                     SEEN_NO_SECRET);
    assert_int_equal(seen_look(bytes, len, &info, NULL, NULL), SEEN_OK);
    assert_true(info.flags == SEEN_KEYED && info.secret_apart);
    assert_int_equal(info.items, 1);
    len = save(SEEN_KEYED, 0, bytes, sizeof bytes);
    assert_int_equal(seen_look(bytes, len, &info, NULL, NULL), SEEN_OK);
    assert_true(info.flags == SEEN_KEYED && !info.secret_apart);
}

static void look_refuses_what_is_no_filter(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    seen_info info = {.size = sizeof info, .items = 7};
    seen_plan plan = {.size = sizeof plan, .items = 7};
    seen_error e;
    size_t len = save(0, 0, bytes, sizeof bytes);
    assert_int_equal(seen_look(bytes, len, NULL, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_look(bytes, len - 1, &info, &plan, NULL),
                     SEEN_CORRUPT);
    assert_int_equal(seen_look(bytes, 0, &info, &plan, NULL), SEEN_CORRUPT);
    bytes[30] ^= 1;
    assert_int_equal(seen_look(bytes, len, &info, &plan, NULL), SEEN_CORRUPT);
    assert_int_equal(seen_look(NULL, len, &info, &plan, NULL), SEEN_INVALID);
    assert_true(info.items == 7 && plan.items == 7);
    bytes[30] ^= 1;
    plan.size = 8; /* wrong: the other is not written either */
    assert_int_equal(seen_look(bytes, len, &info, &plan, &e), SEEN_INVALID);
    assert_string_equal(e.field, "plan");
    assert_true(info.items == 7 && plan.items == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_calls_agree_about_every_kind),
        cmocka_unit_test(the_three_calls_agree_about_what_has_grown),
        cmocka_unit_test(the_three_calls_agree_about_other_systems),
        cmocka_unit_test(look_tells_kind_parameters_and_items),
        cmocka_unit_test(look_needs_no_secret),
        cmocka_unit_test(look_refuses_what_is_no_filter),
    };
    test_announce("look");
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
