/*
 * test_bitmap_kind.c - SEEN_BITMAP, whose keys are integers below a bound: the
 * laws that other tests hold all kinds to, with keys that fit; and what only it
 * can do.
 */
#include "seen.h"
#include "seen_bitmap.h"

#include "base/bytes.h"
#include "filter/filter.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"
#include "helpers/model.h"

#include <stdlib.h>
#include <string.h>

static seen_filter *new_bitmap(uint64_t bound)
{
    return test_filter((seen_spec){.kind = SEEN_BITMAP, .bits = bound});
}

static seen_status remove_u64(seen_filter *f, uint64_t key)
{
    uint8_t bytes[8];
    seen_put_le64(bytes, key);
    return seen_remove(f, bytes, 8);
}

/* Chosen integers for the batch calls. */
struct numbers {
    seen_key keys[3000];
    uint8_t bytes[3000][8];
    bool answers[3000];
};

static struct numbers batch;

static void put_number(size_t i, uint64_t x)
{
    seen_put_le64(batch.bytes[i], x);
    batch.keys[i] = (seen_key){batch.bytes[i], 8};
}

/* A filter, and the members of the model that the same calls would give. */
static void assert_same(const seen_filter *f, const struct model_bits *m)
{
    for (uint64_t i = 0; i < m->n; i++)
        assert_int_equal(seen_maybe_u64(f, i), m->bit[i]);
    seen_info info = test_info(f);
    assert_int_equal(info.items, model_count(m, 0, m->n));
    assert_int_equal(info.bits_set, info.items);
    assert_int_equal(info.bits, m->n);
}

/* ---- Keys --------------------------------------------------------------- */

static void every_bound_is_exact(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 2, 63, 64, 65, 127, 128, 129, 1000};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t n = bounds[i];
        seen_filter *f = new_bitmap(n);
        for (uint64_t k = 0; k < n; k++) {
            for (uint64_t j = 0; j < n; j++)
                assert_int_equal(seen_maybe_u64(f, j), j < k);
            bool before = true;
            assert_int_equal(seen_visit_u64(f, k, &before), SEEN_OK);
            assert_false(before);
            assert_int_equal(seen_visit_u64(f, k, &before), SEEN_OK);
            assert_true(before);
        }
        assert_int_equal(test_info(f).items, n);
        assert_true(test_info(f).fpp_now == 0 && test_info(f).fpp == 0);
        assert_string_equal(test_info(f).hash, "u64");
        seen_free(f);
    }
}

static void beyond_the_bound_nothing_is_added_or_there(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 64, 100, 128};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t n = bounds[i];
        const uint64_t far[] = {n,
                                n + 1,
                                n + 63,
                                SEEN_BITMAP_MAX,
                                (uint64_t)1 << 63,
                                UINT64_MAX - 1,
                                UINT64_MAX};
        seen_filter *f = new_bitmap(n), *before = NULL;
        assert_int_equal(seen_add_u64(f, n - 1), SEEN_OK);
        assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
        for (size_t j = 0; j < sizeof far / sizeof *far; j++) {
            bool told = true;
            uint8_t bytes[8];
            seen_put_le64(bytes, far[j]);
            seen_hash h = seen_hash_key(f, bytes, 8);
            assert_true(h.lo == far[j] && h.hi == 0);
            assert_false(seen_maybe_u64(f, far[j]));
            assert_int_equal(seen_count(f, bytes, 8), 0);
            assert_int_equal(seen_add_u64(f, far[j]), SEEN_INVALID);
            assert_int_equal(seen_visit_u64(f, far[j], &told), SEEN_INVALID);
            assert_true(told);
            assert_int_equal(seen_remove(f, bytes, 8), SEEN_ABSENT);
            assert_int_equal(seen_add_hashed(f, h), SEEN_INVALID);
            assert_false(seen_maybe_hashed(f, h));
            assert_true(seen_equal(f, before));
            assert_int_equal(test_info(f).items, 1);
        }
        seen_free(f);
        seen_free(before);
    }
}

static void keys_that_are_no_integers_are_refused(void **state)
{
    (void)state;
    static const seen_key odd[] = {{NULL, 0},
                                   {"\0", 1},
                                   {"\1\0\0\0\0\0\0", 7},
                                   {"\1\0\0\0\0\0\0\0\0", 9},
                                   {"a key of more than sixteen bytes", 32}};
    seen_filter *f = new_bitmap(SEEN_BITMAP_MAX / 1024);
    assert_int_equal(seen_add_u64(f, 0), SEEN_OK);
    assert_int_equal(seen_add_u64(f, 1), SEEN_OK);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        bool told;
        size_t added = 9;
        assert_int_equal(seen_add(f, odd[i].data, odd[i].len), SEEN_INVALID);
        assert_int_equal(seen_visit(f, odd[i].data, odd[i].len, &told),
                         SEEN_INVALID);
        assert_int_equal(seen_add_many(f, seen_keys_of(&odd[i], 1), &added),
                         SEEN_INVALID);
        assert_int_equal(added, 0);
        assert_int_equal(seen_remove(f, odd[i].data, odd[i].len), SEEN_ABSENT);
        assert_false(seen_maybe(f, odd[i].data, odd[i].len));
        bool answer = true;
        seen_maybe_many(f, seen_keys_of(&odd[i], 1), &answer);
        assert_false(answer);
    }
    assert_int_equal(test_info(f).items, 2);
    seen_free(f);
}

static void it_agrees_with_a_plain_array(void **state)
{
    (void)state;
    struct test_rng r = test_rng(140);
    for (uint64_t round = 0; round < 30 * test_scale(); round++) {
        uint64_t n = 1 + test_below(&r, 500);
        seen_filter *f = new_bitmap(n);
        struct model_bits m = model_bits_new(n);
        for (int step = 0; step < 2000; step++) {
            uint64_t key = test_below(&r, n + n / 8 + 1);
            bool in = key < n, was = in && m.bit[key], told = !was;
            switch (test_below(&r, 4)) {
            case 0:
                assert_int_equal(seen_add_u64(f, key),
                                 in ? SEEN_OK : SEEN_INVALID);
                if (in) m.bit[key] = true;
                break;
            case 1:
                assert_int_equal(seen_visit_u64(f, key, &told),
                                 in ? SEEN_OK : SEEN_INVALID);
                assert_int_equal(told, in ? was : !was);
                if (in) m.bit[key] = true;
                break;
            case 2:
                assert_int_equal(remove_u64(f, key),
                                 was ? SEEN_OK : SEEN_ABSENT);
                if (in) m.bit[key] = false;
                break;
            default:
                assert_int_equal(seen_maybe_u64(f, key), was);
                break;
            }
        }
        assert_same(f, &m);
        seen_clear(f);
        model_fill(&m, 0, n, false);
        assert_same(f, &m);
        model_bits_free(&m);
        seen_free(f);
    }
    test_tried(30 * test_scale() * 2000, "operations");
}

static void removal_is_exact(void **state)
{
    (void)state;
    seen_filter *f = new_bitmap(1000);
    for (uint64_t i = 0; i < 1000; i += 3)
        assert_int_equal(seen_add_u64(f, i), SEEN_OK);
    for (uint64_t i = 0; i < 1000; i++)
        if (i % 6 == 0 || i % 3)
            assert_int_equal(remove_u64(f, i), i % 3 ? SEEN_ABSENT : SEEN_OK);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(seen_maybe_u64(f, i), i % 6 == 3);
    /* Added twice, it is there once. */
    assert_int_equal(seen_add_u64(f, 3), SEEN_OK);
    assert_int_equal(seen_count(f, "\3\0\0\0\0\0\0\0", 8), 1);
    assert_int_equal(remove_u64(f, 3), SEEN_OK);
    assert_int_equal(remove_u64(f, 3), SEEN_ABSENT);
    seen_free(f);
}

/* ---- Batches ------------------------------------------------------------ */

static void check_batches(uint64_t bound, uint64_t stream)
{
    static const size_t lengths[] = {0,   1,   31,  32,  33,  255, 256,
                                     257, 287, 288, 289, 545, 2900};
    struct test_rng r = test_rng(stream);
    seen_filter *single = new_bitmap(bound), *many = new_bitmap(bound);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i];
        for (size_t j = 0; j < n; j++)
            put_number(j, test_below(&r, j % 7 ? bound : 100));
        static bool expected[3000];
        for (size_t j = 0; j < n; j++)
            expected[j] = seen_maybe(many, batch.keys[j].data, 8);
        seen_maybe_many(many, seen_keys_of(batch.keys, n), batch.answers);
        assert_memory_equal(batch.answers, expected, n);

        for (size_t j = 0; j < n; j++)
            assert_int_equal(
                seen_visit(single, batch.keys[j].data, 8, &expected[j]),
                SEEN_OK);
        size_t visited = 99999;
        assert_int_equal(seen_visit_many(many, seen_keys_of(batch.keys, n),
                                         batch.answers, &visited),
                         SEEN_OK);
        assert_int_equal(visited, n);
        assert_memory_equal(batch.answers, expected, n);
        assert_true(seen_equal(single, many));
        assert_int_equal(test_info(single).items, test_info(many).items);
    }
    seen_free(single);
    seen_free(many);
}

static void a_batch_is_as_many_single_calls(void **state)
{
    (void)state;
    check_batches(1000, 141);
    check_batches(100000000, 142); /* with prefetching */
}

/* One that does not fit, anywhere in a batch of any length: those before it
 * are in, the rest is not. */
static void a_batch_stops_at_the_first_that_does_not_fit(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 32, 256, 257, 300, 600};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t bad = 0; bad < lengths[i]; bad += 1 + bad / 5) {
            size_t n = lengths[i], done = 99999;
            for (size_t j = 0; j < n; j++)
                put_number(j, j == bad ? 5000 + j : j);
            seen_filter *f = new_bitmap(5000);
            memset(batch.answers, 2, n);
            seen_status status =
                bad % 2 ? seen_add_many(f, seen_keys_of(batch.keys, n), &done)
                        : seen_visit_many(f, seen_keys_of(batch.keys, n),
                                          batch.answers, &done);
            assert_int_equal(status, SEEN_INVALID);
            assert_int_equal(done, bad);
            assert_int_equal(test_info(f).items, bad);
            for (size_t j = 0; j < n; j++)
                assert_int_equal(seen_maybe_u64(f, j), j < bad);
            seen_maybe_many(f, seen_keys_of(batch.keys, n), batch.answers);
            for (size_t j = 0; j < n; j++)
                assert_int_equal(batch.answers[j], j < bad);
            seen_free(f);
        }
}

static void a_bitmap_is_built_within_its_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        put_number(i, 7 * i % 1000);
    put_number(1000, 999);
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_BITMAP, .bits = 1000, .items = 5};
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(batch.keys, 1001), NULL), SEEN_OK);
    assert_int_equal(test_info(f).items, 1000);
    seen_free(f);
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(NULL, 0), NULL),
                     SEEN_OK);
    assert_int_equal(test_info(f).items, 0);
    seen_free(f);
    f = NULL;
    spec.bits = 999;
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(batch.keys, 1001), NULL),
        SEEN_INVALID);
    spec.bits = 0;
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(batch.keys, 1001), NULL),
        SEEN_INVALID);
    assert_null(f);
}

/* ---- Whole bitmaps ------------------------------------------------------ */

static seen_filter *multiples(uint64_t of, uint64_t bound)
{
    seen_filter *f = new_bitmap(bound);
    for (uint64_t i = 0; i < bound; i += of)
        assert_int_equal(seen_add_u64(f, i), SEEN_OK);
    return f;
}

static void merging_obeys_the_laws_of_sets(void **state)
{
    (void)state;
    const uint64_t n = 1003;
    seen_filter *a = multiples(2, n), *b = multiples(3, n), *both = NULL;
    seen_filter *other = NULL;
    assert_int_equal(seen_copy(&both, a, NULL), SEEN_OK);
    assert_int_equal(seen_merge(both, b, SEEN_UNION, NULL), SEEN_OK);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(seen_maybe_u64(both, i), i % 2 == 0 || i % 3 == 0);
    assert_int_equal(test_info(both).items, 502 + 335 - 168); /* exactly */
    assert_int_equal(seen_copy(&other, b, NULL), SEEN_OK);
    assert_int_equal(seen_merge(other, a, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(both, other));
    assert_int_equal(seen_merge(both, both, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(both, other));
    assert_int_equal(seen_merge(both, a, SEEN_INTERSECTION, NULL), SEEN_OK);
    assert_true(seen_equal(both, a)); /* absorption */
    assert_int_equal(seen_merge(both, b, SEEN_INTERSECTION, NULL), SEEN_OK);
    seen_filter *sixes = multiples(6, n);
    assert_true(seen_equal(both, sixes));
    assert_int_equal(test_info(both).items, test_info(sixes).items);
    assert_false(seen_equal(both, a));
    seen_free(a);
    seen_free(b);
    seen_free(both);
    seen_free(other);
    seen_free(sixes);
}

static void other_bounds_and_kinds_do_not_merge(void **state)
{
    (void)state;
    seen_filter *f = multiples(5, 1000), *before = NULL;
    assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
    seen_filter *others[] = {
        new_bitmap(999), new_bitmap(1001), new_bitmap(64),
        test_filter((seen_spec){
            .kind = SEEN_BLOOM, .bits = 1000, .hashes = 1, .items = 10}),
        test_filter((seen_spec){.kind = SEEN_SET})};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(seen_add_u64(others[i], 1), SEEN_OK);
        for (seen_merge_op op = SEEN_UNION; op <= SEEN_INTERSECTION; op++)
            assert_int_equal(seen_merge(f, others[i], op, NULL), SEEN_MISMATCH);
        assert_true(seen_equal(f, before));
        assert_false(seen_equal(f, others[i]));
        assert_false(seen_equal(others[i], f));
        seen_free(others[i]);
    }
    seen_free(f);
    seen_free(before);
}

/* It hashes nothing, so no seed can make two of them differ. */
static void a_seed_means_nothing(void **state)
{
    (void)state;
    seen_filter *f = test_filter(
        (seen_spec){.kind = SEEN_BITMAP, .bits = 1000, .secret = test_secret});
    seen_filter *g = new_bitmap(1000);
    assert_int_equal(seen_add_u64(f, 77), SEEN_OK);
    assert_int_equal(seen_merge(g, f, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(f, g));
    seen_free(f);
    seen_free(g);
}

/* ---- Growth ------------------------------------------------------------- */

static void reserving_raises_the_bound(void **state)
{
    (void)state;
    struct test_rng r = test_rng(143);
    seen_filter *f = new_bitmap(1);
    struct model_bits m = model_bits_new(1);
    for (uint64_t bound = 1; bound < 20000;
         bound += 1 + test_below(&r, bound)) {
        assert_int_equal(seen_add_u64(f, bound),
                         bound < m.n ? SEEN_OK : SEEN_INVALID);
        assert_int_equal(seen_reserve(f, bound), SEEN_OK);
        struct model_bits next = model_bits_new(bound);
        memcpy(next.bit, m.bit, m.n);
        model_bits_free(&m);
        m = next;
        assert_same(f, &m);
        assert_int_equal(test_info(f).capacity, bound);
        seen_filter *fresh = new_bitmap(bound);
        assert_int_equal(test_info(f).bytes, test_info(fresh).bytes);
        seen_free(fresh);

        /* Never down again. */
        assert_int_equal(seen_reserve(f, 0), SEEN_OK);
        assert_int_equal(seen_reserve(f, bound - 1), SEEN_OK);
        assert_int_equal(test_info(f).bits, bound);

        assert_int_equal(seen_add_u64(f, bound - 1), SEEN_OK);
        assert_int_equal(seen_add_u64(f, bound), SEEN_INVALID);
        m.bit[bound - 1] = true;
    }
    assert_int_equal(seen_reserve(f, SEEN_BITMAP_MAX + 1), SEEN_INVALID);
    assert_same(f, &m);
    model_bits_free(&m);

    /* Of another bound, it is another bitmap until the other one follows. */
    seen_filter *g = NULL;
    assert_int_equal(seen_copy(&g, f, NULL), SEEN_OK);
    assert_int_equal(seen_reserve(f, 30000), SEEN_OK);
    assert_false(seen_equal(f, g));
    assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_MISMATCH);
    assert_int_equal(seen_reserve(g, 30000), SEEN_OK);
    assert_true(seen_equal(f, g));
    assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_OK);
    seen_free(f);
    seen_free(g);
}

static void the_limit_ends_growth(void **state)
{
    (void)state;
    seen_spec spec = {.kind = SEEN_BITMAP, .bits = 10000};
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    spec.limit = plan.bytes, spec.bits = 100;
    seen_filter *f = test_filter(spec);
    assert_int_equal(seen_add_u64(f, 99), SEEN_OK);
    assert_int_equal(seen_reserve(f, 10049), SEEN_FULL);
    assert_int_equal(test_info(f).bits, 100);
    assert_int_equal(seen_reserve(f, 10000), SEEN_OK);
    assert_int_equal(test_info(f).bytes, plan.bytes);
    assert_true(seen_maybe_u64(f, 99));
    assert_int_equal(seen_add_u64(f, 9999), SEEN_OK);
    seen_free(f);
}

static void memory_comes_from_the_given_allocator_and_goes_back(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    a.offset = 8;
    seen_spec spec = {.kind = SEEN_BITMAP, .bits = 5000, .allocator = &a.as};
    seen_filter *f = test_filter(spec);
    for (uint64_t bound = 5000; bound < 100000; bound = bound * 3 / 2) {
        assert_int_equal(seen_reserve(f, bound), SEEN_OK);
        assert_int_equal(seen_add_u64(f, bound - 1), SEEN_OK);
        assert_between((double)a.bytes, (double)test_info(f).bytes,
                       (double)test_info(f).bytes + 64.0 * (double)a.blocks);
    }
    seen_filter *before = NULL;
    assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
    test_alloc_arm(&a, 1, true);
    assert_int_equal(seen_reserve(f, 200000), SEEN_NOMEM);
    assert_true(seen_equal(f, before));
    test_alloc_arm(&a, 0, false);
    assert_int_equal(seen_reserve(f, 200000), SEEN_OK);
    seen_free(before);
    seen_free(f);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
}

/* ---- From outside ------------------------------------------------------- */

static void plans_from_outside_are_checked(void **state)
{
    (void)state;
    const struct seen_filter_ops *ops = seen_kinds_find(SEEN_BITMAP);
    seen_plan good = {.size = sizeof good};
    const seen_spec spec = {.kind = SEEN_BITMAP, .bits = 777};
    assert_int_equal(seen_plan_for(&spec, &good, NULL), SEEN_OK);
    const seen_plan read = {.kind = SEEN_BITMAP,
                            .bits = 777,
                            .items = 777,
                            .hashes = 1,
                            .hash_bits = 64};
    seen_plan p = read;
    assert_true(ops->plan_read(&p));
    assert_int_equal(p.bytes, good.bytes);
    assert_int_equal(p.lines, good.lines);
    p = read, p.bits = p.items = 0;
    assert_false(ops->plan_read(&p));
    p = read, p.bits = p.items = SEEN_BITMAP_MAX + 1;
    assert_false(ops->plan_read(&p));
    p = read, p.items = 776;
    assert_false(ops->plan_read(&p));
    p = read, p.hashes = 2;
    assert_false(ops->plan_read(&p));
    p = read, p.width = 1;
    assert_false(ops->plan_read(&p));
    p = read, p.hash_bits = 128;
    assert_false(ops->plan_read(&p));
}

static void bits_past_the_bound_are_corrupt(void **state)
{
    (void)state;
    for (uint64_t bound = 1; bound <= 130; bound++) {
        seen_filter *f = new_bitmap(bound);
        assert_int_equal(seen_add_u64(f, bound - 1), SEEN_OK);
        struct seen_part part;
        assert_true(f->ops->part(f, 0, &part));
        assert_int_equal(part.len, (bound + 63) / 64 * 8);
        assert_true(part.words);
        uint64_t *words = part.at;
        assert_true(f->ops->parts_ok(f));
        for (uint64_t i = bound; i < part.len * 8; i++) {
            words[i / 64] ^= (uint64_t)1 << i % 64;
            assert_false(f->ops->parts_ok(f));
            words[i / 64] ^= (uint64_t)1 << i % 64;
        }
        f->items = 0; /* fewer than are there */
        assert_false(f->ops->parts_ok(f));
        f->items = 2;
        assert_false(f->ops->parts_ok(f));
        f->items = 1;
        assert_true(f->ops->parts_ok(f));
        assert_false(f->ops->part(f, 1, &part));
        seen_free(f);
    }
}

/* Memory of somebody else cannot be exchanged for more. */
static void a_borrowed_bitmap_does_not_grow(void **state)
{
    (void)state;
    seen_filter *f = new_bitmap(64);
    f->borrowed = true;
    assert_int_equal(seen_reserve(f, 64), SEEN_OK);
    assert_int_equal(seen_reserve(f, 65), SEEN_UNSUPPORTED);
    assert_int_equal(test_info(f).bits, 64);
    f->borrowed = false;
    seen_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bound_is_exact),
        cmocka_unit_test(beyond_the_bound_nothing_is_added_or_there),
        cmocka_unit_test(keys_that_are_no_integers_are_refused),
        cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(removal_is_exact),
        cmocka_unit_test(a_batch_is_as_many_single_calls),
        cmocka_unit_test(a_batch_stops_at_the_first_that_does_not_fit),
        cmocka_unit_test(a_bitmap_is_built_within_its_bound),
        cmocka_unit_test(merging_obeys_the_laws_of_sets),
        cmocka_unit_test(other_bounds_and_kinds_do_not_merge),
        cmocka_unit_test(a_seed_means_nothing),
        cmocka_unit_test(reserving_raises_the_bound),
        cmocka_unit_test(the_limit_ends_growth),
        cmocka_unit_test(memory_comes_from_the_given_allocator_and_goes_back),
        cmocka_unit_test(plans_from_outside_are_checked),
        cmocka_unit_test(bits_past_the_bound_are_corrupt),
        cmocka_unit_test(a_borrowed_bitmap_does_not_grow),
    };
    test_announce("bitmap kind");
    return cmocka_run_group_tests_name("bitmap_kind", tests, NULL, NULL);
}
