/* test_filter.c - the calls of seen.h on every kind there is. */
#include "seen.h"

#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

#define KEYS 3000

/* Run a check on every kind, with every set of flags the kind takes. */
typedef void check(seen_spec spec);

static void on_every_kind(check *one)
{
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++)
        for (uint32_t flags = 0; flags <= (SEEN_CONCURRENT | SEEN_KEYED);
             flags++) {
            if (!test_kind_can(kind, flags)) continue;
            /* What counts must have room for all that a check adds. */
            one((seen_spec){.items = test_kind_counts(kind) ? 9 * KEYS : KEYS,
                            .fpp = 1e-6,
                            .kind = kind,
                            .last = test_last(kind, KEYS),
                            .flags = flags,
                            .secret = flags & SEEN_KEYED ? test_secret : NULL});
        }
}

/* Large enough that a stranger is never there by chance. */
static bool absent(const seen_filter *f, const void *key, size_t len)
{
    return !seen_maybe(f, key, len);
}

static uint64_t items(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info.items;
}

/* ---- Keys --------------------------------------------------------------- */

static void check_odd_keys(seen_spec spec)
{
    static const seen_key odd[] = {
        {NULL, 0},         {"\0", 1},
        {"\0\0", 2},       {"a", 1},
        {"a\0", 2},        {"a\0b", 3},
        {"a\0c", 3},       {"\xff\xfe", 2},
        {"\x80\0\0\0", 4}, {"a longer key, of more than sixteen bytes", 40}};
    const size_t n = sizeof odd / sizeof *odd;
    for (size_t i = 0; i < n; i++) {
        seen_filter *f = test_filter(spec);
        for (size_t j = 0; j < n; j++)
            assert_true(absent(f, odd[j].data, odd[j].len));
        assert_int_equal(seen_add(f, odd[i].data, odd[i].len), SEEN_OK);
        for (size_t j = 0; j < n; j++)
            assert_int_equal(seen_maybe(f, odd[j].data, odd[j].len), i == j);
        seen_free(f);
    }
    /* (NULL, 0) and ("", 0) are the same key. */
    seen_filter *f = test_filter(spec);
    assert_int_equal(seen_add(f, NULL, 0), SEEN_OK);
    assert_true(seen_maybe(f, "", 0));
    assert_true(seen_maybe_str(f, ""));
    seen_free(f);
}

static void nul_and_empty_are_keys_like_any_other(void **state)
{
    (void)state;
    on_every_kind(check_odd_keys);
}

static void check_helpers(seen_spec spec)
{
    seen_filter *f = test_filter(spec);
    const uint64_t number = 0x0102030405060788u;
    const uint8_t bytes[8] = {0x88, 7, 6, 5, 4, 3, 2, 1};
    assert_false(seen_maybe_u64(f, number));
    assert_int_equal(seen_add_u64(f, number), SEEN_OK);
    assert_true(seen_maybe(f, bytes, 8));
    assert_true(seen_maybe_u64(f, number));
    bool before = false;
    assert_int_equal(seen_visit_u64(f, number, &before), SEEN_OK);
    assert_true(before);
    assert_int_equal(seen_visit_u64(f, number + 1, &before), SEEN_OK);
    assert_false(before);

    assert_false(seen_maybe_str(f, "alice"));
    assert_int_equal(seen_add_str(f, "alice"), SEEN_OK);
    assert_true(seen_maybe_str(f, "alice"));
    assert_true(seen_maybe(f, "alice", 5));
    assert_true(absent(f, "alice", 6));
    seen_free(f);
}

static void integers_are_8_bytes_and_strings_lack_their_nul(void **state)
{
    (void)state;
    on_every_kind(check_helpers);
}

static void check_visit(seen_spec spec)
{
    seen_filter *f = test_filter(spec);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = test_key(i);
        bool maybe = seen_maybe(f, &key, 8), before = !maybe;
        assert_int_equal(seen_visit(f, &key, 8, &before), SEEN_OK);
        assert_int_equal(before, maybe);
        assert_true(seen_maybe(f, &key, 8));
        assert_int_equal(seen_visit(f, &key, 8, &before), SEEN_OK);
        assert_true(before);
    }
    seen_free(f);
}

static void visit_says_what_maybe_would_have_said(void **state)
{
    (void)state;
    on_every_kind(check_visit);
}

static void check_hashed(seen_spec spec)
{
    seen_filter *plain = test_filter(spec), *hashed = test_filter(spec);
    struct test_batch b = test_batch_new(0, KEYS);
    seen_hash *many = calloc(KEYS, sizeof *many);
    assert_non_null(many);
    seen_hash_many(plain, seen_keys_of(b.keys, KEYS), many);
    for (size_t i = 0; i < KEYS; i++) {
        seen_hash h = seen_hash_key(hashed, b.keys[i].data, b.keys[i].len);
        assert_true(h.lo == many[i].lo && h.hi == many[i].hi);
        seen_add(plain, b.keys[i].data, b.keys[i].len);
        bool before = true;
        if (i % 2)
            seen_visit_hashed(hashed, h, &before);
        else
            seen_add_hashed(hashed, h);
        assert_true(i % 2 == 0 || !before);
        assert_true(seen_maybe_hashed(plain, h));
    }
    assert_true(seen_equal(plain, hashed));

    seen_clear(hashed);
    size_t added = 0;
    assert_int_equal(
        seen_add_many(hashed, seen_keys_hashes(many, KEYS), &added), SEEN_OK);
    assert_int_equal(added, KEYS);
    assert_true(seen_equal(plain, hashed));
    memset(b.answers, 0, KEYS);
    seen_maybe_many(hashed, seen_keys_hashes(many, KEYS), b.answers);
    for (size_t i = 0; i < KEYS; i++)
        assert_true(b.answers[i]);

    seen_clear(hashed);
    assert_int_equal(
        seen_visit_many(hashed, seen_keys_hashes(many, KEYS), b.answers, NULL),
        SEEN_OK);
    for (size_t i = 0; i < KEYS; i++)
        assert_false(b.answers[i]);
    assert_int_equal(seen_visit_many(hashed, seen_keys_hashes(many, KEYS),
                                     b.answers, &added),
                     SEEN_OK);
    assert_int_equal(added, KEYS);
    for (size_t i = 0; i < KEYS; i++)
        assert_true(b.answers[i]);
    assert_true(seen_equal(plain, hashed));
    free(many);
    test_batch_free(&b);
    seen_free(plain);
    seen_free(hashed);
}

static void hashed_calls_do_what_the_others_do(void **state)
{
    (void)state;
    on_every_kind(check_hashed);
}

/* Batches of every length around the size of the pieces they are cut into,
 * with duplicates near and far. */
static void check_batches(seen_spec spec)
{
    static const size_t lengths[] = {0,   1,   2,   31,  32,  33,  63,  64,
                                     255, 256, 257, 287, 288, 289, 290, 511,
                                     512, 513, 544, 545, 800, 2900};
    struct test_rng r = test_rng(25);
    seen_filter *single = test_filter(spec), *batch = test_filter(spec);
    seen_filter *adds = test_filter(spec);
    struct test_batch b = test_batch_new(0, KEYS);
    uint64_t next = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i];
        test_batch_fill(&b, next, n);
        next += n;
        for (size_t j = 1; j < n; j++)
            if (test_below(&r, 5) == 0) b.keys[j] = b.keys[test_below(&r, j)];

        bool *expected = calloc(n + 1, sizeof *expected);
        assert_non_null(expected);
        for (size_t j = 0; j < n; j++)
            expected[j] = seen_maybe(batch, b.keys[j].data, b.keys[j].len);
        seen_maybe_many(batch, seen_keys_of(b.keys, n), b.answers);
        assert_memory_equal(b.answers, expected, n);

        for (size_t j = 0; j < n; j++)
            seen_visit(single, b.keys[j].data, b.keys[j].len, &expected[j]);
        size_t visited = 99999, added = 99999;
        assert_int_equal(seen_visit_many(batch, seen_keys_of(b.keys, n),
                                         b.answers, &visited),
                         SEEN_OK);
        assert_int_equal(visited, n);
        assert_memory_equal(b.answers, expected, n);
        assert_true(seen_equal(single, batch));
        assert_int_equal(items(single), items(batch));

        free(expected);
        if (test_kind_counts(spec.kind)) continue;
        assert_int_equal(
            seen_add_many(adds, seen_keys_of(b.keys, n), i % 2 ? &added : NULL),
            SEEN_OK);
        assert_int_equal(added, i % 2 ? n : 99999);
        assert_true(seen_equal(single, adds));
    }
    /* Nothing at all, from nowhere. */
    size_t none = 7;
    seen_maybe_many(batch, seen_keys_of(NULL, 0), NULL);
    assert_int_equal(seen_add_many(batch, seen_keys_of(NULL, 0), &none),
                     SEEN_OK);
    assert_int_equal(none, 0);
    assert_int_equal(seen_visit_many(batch, seen_keys_of(NULL, 0), NULL, NULL),
                     SEEN_OK);
    seen_maybe_many(batch, seen_keys_hashes(NULL, 0), NULL);
    assert_int_equal(seen_add_many(batch, seen_keys_hashes(NULL, 0), NULL),
                     SEEN_OK);
    assert_true(seen_equal(single, batch));
    test_batch_free(&b);
    seen_free(single);
    seen_free(batch);
    seen_free(adds);
}

static void a_batch_is_as_many_single_calls(void **state)
{
    (void)state;
    on_every_kind(check_batches);
}

/* The same where the filter is large enough for prefetching. */
static void a_batch_on_a_large_filter_is_as_many_single_calls(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 1000000,
                          .fpp = 1e-4,
                          .kind = kind,
                          .last = test_last(kind, 1000000)};
        check_batches(spec);
        if (test_kind_counts(kind)) continue; /* has no such rate */
        spec.fpp = 1e-13;
        check_batches(spec);
    }
}

/* ---- Whole filters ------------------------------------------------------ */

static void check_whole(seen_spec spec)
{
    seen_filter *f = test_filter(spec), *empty = test_filter(spec);
    seen_filter *copy = NULL;
    test_add_members(f, 0, KEYS);
    assert_false(seen_equal(f, empty));

    /* A copy is equal, and lives a life of its own. */
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    assert_true(seen_equal(f, copy));
    assert_int_equal(items(copy), items(f));
    assert_int_equal(test_count_maybe(copy, 0, KEYS), KEYS);
    test_add_members(copy, KEYS, 1);
    assert_false(seen_equal(f, copy));
    assert_int_equal(test_count_maybe(f, KEYS, 1), 0);
    seen_free(copy);

    struct test_alloc a;
    test_alloc_init(&a);
    assert_int_equal(seen_copy(&copy, f, &a.as), SEEN_OK);
    assert_true(seen_equal(f, copy));
    assert_true(a.blocks > 0);
    seen_free(copy);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);

    /* Clear forgets everything and keeps working. */
    seen_clear(f);
    assert_true(seen_equal(f, empty));
    assert_int_equal(items(f), 0);
    assert_int_equal(test_count_maybe(f, 0, KEYS), 0);
    test_add_members(f, 0, KEYS);
    assert_int_equal(test_count_maybe(f, 0, KEYS), KEYS);

    assert_int_equal(seen_copy(NULL, f, NULL), SEEN_INVALID);
    assert_int_equal(seen_copy(&copy, NULL, NULL), SEEN_INVALID);
    const seen_allocator half = {0};
    assert_int_equal(seen_copy(&copy, f, &half), SEEN_INVALID);
    seen_free(f);
    seen_free(empty);
    seen_free(NULL);
}

static void copy_clear_and_equal_mean_what_they_say(void **state)
{
    (void)state;
    on_every_kind(check_whole);
}

static void check_merge(seen_spec spec)
{
    /* test_cuckoo.c and test_scalable.c have the laws of the others. */
    if (!test_kind_is_set(spec.kind)) return;
    /* a has 0..2/3, b has 1/3..1; both agree in the middle third. */
    const uint64_t third = KEYS / 3;
    seen_filter *a = test_filter(spec), *b = test_filter(spec);
    seen_filter *all = test_filter(spec), *copy = NULL, *other = NULL;
    test_add_members(a, 0, 2 * third);
    test_add_members(b, third, 2 * third);
    test_add_members(all, 0, 3 * third);

    assert_int_equal(seen_copy(&copy, a, NULL), SEEN_OK);
    assert_int_equal(seen_merge(copy, b, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, all));
    assert_between((double)items(copy), 0.93 * KEYS, 1.07 * KEYS);
    assert_int_equal(seen_copy(&other, b, NULL), SEEN_OK);
    assert_int_equal(seen_merge(other, a, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, other)); /* commutes */
    assert_int_equal(seen_merge(copy, b, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, all)); /* idempotent */
    assert_int_equal(seen_merge(copy, copy, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, all));

    /* Absorption: a AND (a OR b) = a. */
    assert_int_equal(seen_merge(copy, a, SEEN_INTERSECTION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, a));
    assert_int_equal(seen_merge(copy, copy, SEEN_INTERSECTION, NULL), SEEN_OK);
    assert_true(seen_equal(copy, a));

    assert_int_equal(seen_merge(copy, b, SEEN_INTERSECTION, NULL), SEEN_OK);
    assert_int_equal(test_count_maybe(copy, third, third), third);
    assert_true(test_count_maybe(copy, 0, third) < third / 10);
    assert_true(test_count_maybe(copy, 2 * third, third) < third / 10);

    assert_int_equal(seen_merge(copy, b, (seen_merge_op)2, NULL), SEEN_INVALID);
    assert_int_equal(seen_merge(NULL, b, SEEN_UNION, NULL), SEEN_INVALID);
    assert_int_equal(seen_merge(copy, NULL, SEEN_UNION, NULL), SEEN_INVALID);
    seen_free(a);
    seen_free(b);
    seen_free(all);
    seen_free(copy);
    seen_free(other);
}

static void merging_obeys_the_laws_of_sets(void **state)
{
    (void)state;
    on_every_kind(check_merge);
}

static void mismatched(seen_spec a, seen_spec b)
{
    seen_filter *into = test_filter(a), *from = test_filter(b);
    seen_filter *before = NULL;
    test_add_members(into, 0, 100);
    test_add_members(from, 100, 100);
    assert_int_equal(seen_copy(&before, into, NULL), SEEN_OK);
    assert_int_equal(seen_merge(into, from, SEEN_UNION, NULL), SEEN_MISMATCH);
    assert_int_equal(seen_merge(into, from, SEEN_INTERSECTION, NULL),
                     SEEN_MISMATCH);
    assert_true(seen_equal(into, before));
    assert_int_equal(items(into), items(before));
    assert_false(seen_equal(into, from));
    assert_false(seen_equal(from, into));
    seen_free(into);
    seen_free(from);
    seen_free(before);
}

static void unlike_filters_do_not_merge(void **state)
{
    (void)state;
    static const uint8_t seed[16] = {1}, tail[16] = {[8] = 1};
    const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {
            .items = 1000, .bits = 20480, .hashes = 8, .kind = kinds[i]};
        seen_spec other = spec;
        other.bits = 20480 + 512;
        mismatched(spec, other);
        other = spec, other.hashes = 4;
        mismatched(spec, other);
        other = spec, other.kind = kinds[1 - i];
        mismatched(spec, other);
        /* The same rate asks for a wider hash when more keys come. */
        other = spec, other.fpp = 0, other.bits = 0;
        other.items = 1000, other.fpp = 1e-17, other.hashes = 0;
        mismatched(spec, other);
    }
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 1000,
                          .fpp = 0.01,
                          .kind = kind,
                          .last = test_last(kind, 1000)};
        seen_spec seeded = spec, keyed = spec, rekeyed = spec;
        seeded.seed = 1;
        mismatched(spec, seeded);
        keyed.flags = rekeyed.flags = SEEN_KEYED;
        keyed.secret = seed;
        mismatched(spec, keyed);
        mismatched(seeded, keyed);
        rekeyed.secret = test_secret;
        mismatched(keyed, rekeyed);
        rekeyed.secret = tail; /* all 16 bytes of a secret count */
        static const uint8_t zero[16] = {0};
        keyed.secret = zero;
        mismatched(keyed, rekeyed);
    }
    mismatched((seen_spec){.items = 1000, .fpp = 0.01},
               (seen_spec){.kind = SEEN_SET});
}

/* Without SEEN_KEYED a secret is not read, with it the seed is not. */
static void what_is_not_read_does_not_count(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 1000,
                          .fpp = 0.01,
                          .kind = kind,
                          .last = test_last(kind, 1000),
                          .seed = 0x030201};
        seen_filter *f = test_filter(spec);
        spec.secret = test_secret;
        seen_filter *g = test_filter(spec);
        test_add_members(f, 0, 100);
        test_add_members(g, 0, 100);
        assert_true(seen_equal(f, g));
        if (!test_kind_forgets(kind))
            assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_OK);
        seen_free(f);
        seen_free(g);
    }
}

static void concurrency_is_no_part_of_the_contents(void **state)
{
    (void)state;
    const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {.items = KEYS, .fpp = 0.01, .kind = kinds[i]};
        seen_filter *plain = test_filter(spec);
        spec.flags = SEEN_CONCURRENT;
        seen_filter *shared = test_filter(spec);
        test_add_members(plain, 0, KEYS);
        test_add_members(shared, 0, KEYS);
        assert_true(seen_equal(plain, shared));
        assert_int_equal(seen_merge(plain, shared, SEEN_UNION, NULL), SEEN_OK);
        assert_true(seen_equal(plain, shared));
        seen_free(plain);
        seen_free(shared);
    }
}

/* Reserving changes nothing that can be asked for, whatever the kind. */
static void check_reserve(seen_spec spec)
{
    seen_filter *f = test_filter(spec), *before = NULL;
    test_add_members(f, 0, KEYS);
    assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
    assert_int_equal(seen_reserve(f, 10 * KEYS), SEEN_OK);
    assert_int_equal(seen_reserve(f, 0), SEEN_OK);
    assert_true(seen_equal(f, before));
    assert_int_equal(items(f), items(before));
    seen_free(f);
    seen_free(before);
}

static void reserving_room_changes_no_answer(void **state)
{
    (void)state;
    on_every_kind(check_reserve);
}

/* ---- Information -------------------------------------------------------- */

static void check_info(seen_spec spec)
{
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    seen_filter *f = test_filter(spec);
    seen_info info = {.size = sizeof info};
    test_add_members(f, 0, KEYS);
    if (!test_kind_counts(spec.kind) && !test_kind_forgets(spec.kind))
        test_add_members(f, 0, KEYS); /* again: nothing new */
    memset(&info, 0xff, sizeof info);
    info.size = sizeof info;
    assert_int_equal(seen_measure(f, &info), SEEN_OK);
    assert_int_equal(info.kind, spec.kind);
    assert_int_equal(info.grows,
                     spec.kind == SEEN_SCALABLE || spec.kind == SEEN_SET);
    assert_int_equal(info.layers, 1);
    assert_int_equal(info.flags, spec.flags);
    assert_int_equal(info.hashes, plan.hashes);
    assert_int_equal(info.lines, plan.lines);
    if (spec.flags & SEEN_KEYED)
        assert_string_equal(info.hash, "siphash-1-3-128");
    else
        assert_string_equal(info.hash,
                            plan.hash_bits == 64 ? "xxh3-64" : "xxh3-128");
    if (spec.flags & SEEN_CONCURRENT)
        assert_between((double)info.items, 0.95 * KEYS, 1.05 * KEYS);
    else
        assert_int_equal(info.items, KEYS);
    if (spec.kind == SEEN_SET) {
        assert_int_equal(info.capacity, 0);
        assert_int_equal(info.bits_set, 64 * KEYS);
        assert_true(info.fpp_now == KEYS * 0x1p-64);
    } else if (plan.width) {
        assert_int_equal(info.capacity, spec.items);
        assert_int_equal(info.bits_set, (uint64_t)KEYS * plan.width);
        assert_true(info.fpp_now == seen_plan_fpp(&plan, KEYS));
    } else {
        const double expected = seen_plan_fpp(&plan, KEYS);
        assert_int_equal(info.capacity, KEYS);
        assert_true(info.fpp == plan.fpp);
        assert_true(info.bits_set <= (uint64_t)KEYS * plan.hashes);
        assert_between(info.fpp_now, expected * 0.5, expected * 1.5);
    }
    assert_true(info.bits_set > 0 && info.bits_set < info.bits);
    assert_true(info.bytes >= info.bits / 8);
    seen_free(f);
}

static void info_tells_what_is_there(void **state)
{
    (void)state;
    on_every_kind(check_info);
}

/* ---- Seeds and secrets -------------------------------------------------- */

static void check_seeds(seen_spec spec)
{
    static const uint8_t seeds[3][16] = {{0}, {1}, {0x80, 0xff, 3}};
    seen_filter *f[3];
    seen_hash h[3];
    for (int i = 0; i < 3; i++) {
        spec.secret = seeds[i];
        spec.seed = i == 2 ? 0x03ff80 : (uint64_t)i;
        f[i] = test_filter(spec);
        test_add_members(f[i], 0, KEYS);
        assert_int_equal(test_count_maybe(f[i], 0, KEYS), KEYS);
        h[i] = seen_hash_key(f[i], "key", 3);
        for (int j = 0; j < i; j++) {
            assert_true(h[i].lo != h[j].lo);
            assert_false(seen_equal(f[i], f[j]));
        }
    }
    /* The secret was read, not kept. */
    uint8_t mine[16] = {1};
    spec.secret = mine;
    spec.seed = 1;
    seen_filter *g = test_filter(spec);
    memset(mine, 0xee, sizeof mine);
    test_add_members(g, 0, KEYS);
    assert_true(seen_equal(g, f[1]));
    seen_free(g);
    for (int i = 0; i < 3; i++)
        seen_free(f[i]);
}

static void seeds_and_secrets_change_every_hash(void **state)
{
    (void)state;
    on_every_kind(check_seeds);
}

static void no_key_is_seed_zero(void **state)
{
    (void)state;
    static const uint8_t zero[16] = {0};
    seen_spec spec = {.items = KEYS, .fpp = 0.01};
    seen_filter *f = test_filter(spec);
    spec.secret = zero;
    seen_filter *g = test_filter(spec);
    test_add_members(f, 0, 100);
    test_add_members(g, 0, 100);
    assert_true(seen_equal(f, g));
    seen_free(f);
    seen_free(g);
}

/* Whose false positives these are depends on the seed. */
static void false_positives_move_with_the_seed(void **state)
{
    (void)state;
    seen_spec spec = {.items = 1000, .fpp = 0.1};
    seen_filter *f = test_filter(spec);
    spec.seed = 77;
    seen_filter *g = test_filter(spec);
    test_add_members(f, 0, 1000);
    test_add_members(g, 0, 1000);
    int both = 0, either = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t key = test_key(TEST_STRANGERS + i);
        bool a = seen_maybe_u64(f, key), b = seen_maybe_u64(g, key);
        both += a && b;
        either += a || b;
    }
    assert_between(either, 1500, 2300);
    assert_between(both, 40, 200); /* 1 % of 10,000 */
    seen_free(f);
    seen_free(g);
}

/* ---- Memory ------------------------------------------------------------- */

static void check_allocator(seen_spec spec)
{
    struct test_alloc a;
    test_alloc_init(&a);
    a.offset = 8;
    spec.allocator = &a.as;
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    seen_filter *f = test_filter(spec);
    assert_true(a.blocks > 0);
    /* The plan's figure is honest: all memory but the alignment. */
    assert_between((double)a.bytes, (double)plan.bytes,
                   (double)plan.bytes + 64.0 * (double)a.blocks);
    test_add_members(f, 0, KEYS);
    assert_int_equal(test_count_maybe(f, 0, KEYS), KEYS);
    seen_free(f);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.bytes, 0);
    assert_int_equal(a.violations, 0);
}

static void all_memory_comes_from_the_given_allocator(void **state)
{
    (void)state;
    on_every_kind(check_allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nul_and_empty_are_keys_like_any_other),
        cmocka_unit_test(integers_are_8_bytes_and_strings_lack_their_nul),
        cmocka_unit_test(visit_says_what_maybe_would_have_said),
        cmocka_unit_test(hashed_calls_do_what_the_others_do),
        cmocka_unit_test(a_batch_is_as_many_single_calls),
        cmocka_unit_test(a_batch_on_a_large_filter_is_as_many_single_calls),
        cmocka_unit_test(copy_clear_and_equal_mean_what_they_say),
        cmocka_unit_test(merging_obeys_the_laws_of_sets),
        cmocka_unit_test(unlike_filters_do_not_merge),
        cmocka_unit_test(what_is_not_read_does_not_count),
        cmocka_unit_test(concurrency_is_no_part_of_the_contents),
        cmocka_unit_test(reserving_room_changes_no_answer),
        cmocka_unit_test(info_tells_what_is_there),
        cmocka_unit_test(seeds_and_secrets_change_every_hash),
        cmocka_unit_test(no_key_is_seed_zero),
        cmocka_unit_test(false_positives_move_with_the_seed),
        cmocka_unit_test(all_memory_comes_from_the_given_allocator),
    };
    test_announce("filter");
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
