/* test_fuse.c - the static filter: all keys in, few bits, nothing after. */
#define _POSIX_C_SOURCE 200809L

#include "seen.h"

#include "api/make.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "base/sort.h"
#include "filter/filter.h"

#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static seen_filter *build(uint64_t n, double fpp, uint32_t places)
{
    struct test_batch b = test_batch_new(0, (size_t)n);
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_FUSE, .fpp = fpp, .hashes = places};
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(b.keys, (size_t)n), NULL), SEEN_OK);
    test_batch_free(&b);
    return f;
}

static void every_key_is_there_at_every_size(void **state)
{
    (void)state;
    static const double rates[] = {0.05, 0.001, 2.5e-10};
    for (size_t r = 0; r < 3; r++)
        for (uint32_t places = 3; places <= 4; places++)
            for (uint64_t n = 1; n < 200000; n = n < 50 ? n + 1 : n * 3) {
                seen_filter *f = build(n, rates[r], places);
                assert_int_equal(test_count_maybe(f, 0, n), n);
                for (uint64_t i = 0; i < n && i < 100; i++)
                    assert_true(seen_maybe_u64(f, test_key(i)));
                assert_int_equal(test_info(f).items, n);
                seen_free(f);
            }
}

static void of_nothing_everything_is_never(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_FUSE, .fpp = 0.01};
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(NULL, 0), NULL),
                     SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    assert_true(test_info(f).fpp_now == 0);
    seen_free(f);
    f = build(1000, 0.01, 3);
    seen_clear(f);
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    seen_free(f);
}

static void duplicates_count_once(void **state)
{
    (void)state;
    enum {
        n = 30000
    };
    struct test_batch b = test_batch_new(0, n);
    for (size_t i = 0; i < n; i++)
        b.keys[i] = b.keys[i % 1000];
    seen_filter *f = NULL, *once = build(1000, 0.001, 3);
    seen_spec spec = {.kind = SEEN_FUSE, .fpp = 0.001};
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL),
                     SEEN_OK);
    assert_int_equal(test_info(f).items, 1000);
    assert_int_equal(test_count_maybe(f, 0, 1000), 1000);
    assert_int_equal(test_info(once).items, 1000);
    seen_free(f);
    seen_free(once);
    test_batch_free(&b);
}

static void the_rate_is_two_to_the_minus_bits(void **state)
{
    (void)state;
    static const double rates[] = {0.0625, 0.01, 0.001, 1.0 / 256};
    const uint64_t probes = 1000000;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (uint32_t places = 3; places <= 4; places++) {
            seen_filter *f = build(100000, rates[r], places);
            assert_true(test_info(f).fpp_now <= rates[r]);
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                            test_info(f).fpp_now);
            seen_free(f);
        }
}

static void a_million_keys_cost_what_the_documents_say(void **state)
{
    (void)state;
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_FUSE, .items = 1000000, .fpp = 0.001};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_int_equal(plan.width, 10);
    assert_true((double)plan.bits / 1e6 <= 11.5);
    spec.fpp = 1.0 / 256 * 1.0001;
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_true((double)plan.bits / 1e6 <= 9.1);
    spec.hashes = 4;
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_true((double)plan.bits / 1e6 <= 8.7);
    /* And back from the bits. */
    spec.bits = plan.bits, spec.items = 0;
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_between((double)plan.items, 0.95e6, 1.05e6);
}

static void it_takes_no_more(void **state)
{
    (void)state;
    seen_filter *f = build(100, 0.01, 3), *copy = NULL;
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    bool before = true;
    size_t done = 7;
    seen_key key = {"x", 1};
    assert_int_equal(seen_add_str(f, "x"), SEEN_UNSUPPORTED);
    assert_int_equal(seen_visit(f, "x", 1, &before), SEEN_UNSUPPORTED);
    assert_int_equal(seen_add_many(f, seen_keys_of(&key, 1), &done),
                     SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    assert_int_equal(seen_remove(f, "x", 1), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(f, copy, SEEN_UNION, NULL), SEEN_UNSUPPORTED);
    assert_true(seen_equal(f, copy));
    seen_spec spec = {.kind = SEEN_FUSE, .items = 10, .fpp = 0.01};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_UNSUPPORTED);
    seen_free(f);
    seen_free(copy);
}

static void other_kinds_are_built_too(void **state)
{
    (void)state;
    enum {
        n = 5000
    };
    struct test_batch b = test_batch_new(0, n);
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        seen_filter *f = NULL;
        seen_spec spec = {
            .kind = kind, .fpp = 0.01, .items = 1, .last = test_last(kind, n)};
        if (kind == SEEN_BITMAP) continue; /* not of these keys */
        assert_int_equal(seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL),
                         SEEN_OK);
        assert_int_equal(test_count_maybe(f, 0, n), n);
        assert_true(test_info(f).fpp_now <= 0.012);
        seen_free(f);
    }
    test_batch_free(&b);
}

static void out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    enum {
        n = 3000
    };
    struct test_batch b = test_batch_new(0, n);
    struct test_alloc a;
    for (uint64_t nth = 1; nth < 20; nth++) {
        test_alloc_init(&a);
        a.fail_at = nth;
        seen_filter *f = NULL;
        seen_spec spec = {.kind = SEEN_FUSE, .fpp = 0.01, .allocator = &a.as};
        seen_status status =
            seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL);
        if (status == SEEN_OK) {
            assert_true(nth > 5); /* as many allocations were tried */
            seen_free(f);
        } else {
            assert_int_equal(status, SEEN_NOMEM);
            assert_null(f);
        }
        assert_int_equal(a.blocks, 0);
        assert_int_equal(a.violations, 0);
    }
    test_batch_free(&b);
}

/* ---- Keys that have no solution ----------------------------------------- */

#define ATTEMPTS 100 /* as the essay of fuse.c has it */

/* An empty filter made for so many keys, to be built by ourselves. */
static seen_filter *made_for(uint64_t items, uint32_t places,
                             struct test_alloc *a)
{
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_FUSE,
                      .items = items,
                      .fpp = 0.001,
                      .hashes = places,
                      .allocator = &a->as};
    assert_int_equal(seen_make(&f, &spec, true, NULL), SEEN_OK);
    return f;
}

static uint64_t seed_of(const seen_filter *f)
{
    uint8_t state[SEEN_STATE_MAX];
    f->ops->save_state(f, state);
    return seen_get_le64(state);
}

/* Every seed is tried, the last one in vain; then the filter is as empty as it
 * was, nothing else is left, and keys that have a solution can still have it. */
static void assert_no_solution(uint64_t items, uint32_t places,
                               const uint64_t *hashes, uint64_t n)
{
    struct test_alloc a;
    test_alloc_init(&a);
    seen_filter *f = made_for(items, places, &a);
    uint64_t *spare = calloc(n + items, sizeof *spare);
    if (!spare) abort();
    uint64_t blocks = a.blocks, bytes = a.bytes;
    assert_int_equal(f->ops->build(f, hashes, n, spare), SEEN_FULL);
    assert_int_equal(seed_of(f), seen_mix64(ATTEMPTS - 1));
    assert_int_equal(a.blocks, blocks);
    assert_int_equal(a.bytes, bytes);
    assert_int_equal(test_info(f).items, 0);
    assert_int_equal(test_count_maybe(f, 0, 1000), 0);
    for (uint64_t i = 0; i < n; i++)
        assert_false(seen_maybe_hashed(f, (seen_hash){.lo = hashes[i]}));

    uint64_t good[16];
    uint64_t few = items < 16 ? items : 16;
    for (uint64_t i = 0; i < few; i++)
        good[i] = test_key(i);
    seen_sort64(good, spare, few);
    assert_int_equal(f->ops->build(f, good, few, spare), SEEN_OK);
    for (uint64_t i = 0; i < few; i++)
        assert_true(seen_maybe_hashed(f, (seen_hash){.lo = good[i]}));
    seen_free(f);
    free(spare);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
}

/* The builder lets no such keys through: equal hashes are one, and the filter is
 * made for as many as there are. So they go to the build itself, which must not
 * rely on that to come to an end. */
static void what_has_no_solution_is_given_up(void **state)
{
    (void)state;
    enum {
        most = 20000
    };
    static uint64_t hashes[most], spare[most];
    struct test_alloc a;
    uint64_t builds = 0;
    test_alloc_init(&a);
    alarm(300); /* without a bound it would never end */
    for (uint32_t places = 3; places <= 4; places++)
        for (uint64_t items = 2; items <= 2000; items *= 10) {
            seen_filter *f = made_for(items, places, &a);
            uint64_t slots = f->plan.bits / f->plan.width;
            seen_free(f);

            /* 1. Different hashes, but one more than there are places, where
             * each needs one of its own. */
            assert_true(slots < most);
            for (uint64_t i = 0; i <= slots; i++)
                hashes[i] = test_key(i);
            seen_sort64(hashes, spare, slots + 1);
            assert_no_solution(items, places, hashes, slots + 1);

            /* 2. Two that have all their places in common, under any seed. */
            hashes[items - 1] = hashes[items - 2];
            assert_no_solution(items, places, hashes, items);

            /* 3. A crowd: more at one place than its counter can count. */
            for (uint64_t i = 0; i < most; i++)
                hashes[i] = hashes[0];
            assert_no_solution(items, places, hashes, most);
            builds += 3;
        }
    alarm(0);
    assert_int_equal(a.blocks, 0);
    test_tried(builds * ATTEMPTS, "seeds in vain");
}

/* ---- Keys that come one after the other --------------------------------- */

static seen_spec one_in_a_thousand(void)
{
    return (seen_spec){.kind = SEEN_FUSE, .fpp = 0.001};
}

static void a_stream_gives_what_an_array_gives(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 100, 5000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        seen_spec spec = one_in_a_thousand();
        struct test_batch b = test_batch_new(0, n ? n : 1);
        seen_filter *whole = NULL, *streamed = NULL;
        seen_builder *builder = NULL;
        assert_int_equal(
            seen_build(&whole, &spec, seen_keys_of(b.keys, n), NULL), SEEN_OK);
        assert_int_equal(seen_builder_new(&builder, &spec, NULL), SEEN_OK);
        /* In pieces, and every third key twice: sized for different keys. */
        for (size_t at = 0; at < n; at += 777) {
            size_t now = n - at < 777 ? n - at : 777;
            assert_int_equal(
                seen_builder_add_many(builder, seen_keys_of(b.keys + at, now)),
                SEEN_OK);
            assert_int_equal(seen_builder_add_many(
                                 builder, seen_keys_of(b.keys + at, now / 3)),
                             SEEN_OK);
        }
        assert_int_equal(seen_builder_finish(builder, &streamed, NULL),
                         SEEN_OK);
        assert_true(seen_equal(whole, streamed));
        seen_free(streamed);

        /* More keys, a larger filter. */
        struct test_batch more = test_batch_new(n, 1000);
        assert_int_equal(
            seen_builder_add_many(builder, seen_keys_of(more.keys, 1000)),
            SEEN_OK);
        assert_int_equal(seen_builder_finish(builder, &streamed, NULL),
                         SEEN_OK);
        assert_int_equal(test_count_maybe(streamed, 0, n + 1000), n + 1000);
        seen_free(streamed);
        seen_free(whole);
        seen_builder_free(builder);
        test_batch_free(&more);
        test_batch_free(&b);
    }
}

static void a_builder_says_what_it_cannot_do(void **state)
{
    (void)state;
    seen_builder *b = NULL;
    seen_spec spec = one_in_a_thousand();
    assert_int_equal(seen_builder_new(NULL, &spec, NULL), SEEN_INVALID);
    assert_int_equal(seen_builder_new(&b, NULL, NULL), SEEN_INVALID);
    spec.fpp = 2;
    assert_int_equal(seen_builder_new(&b, &spec, NULL), SEEN_INVALID);
    spec = (seen_spec){.kind = SEEN_BLOCKED, .fpp = 0.01};
    assert_int_equal(seen_builder_new(&b, &spec, NULL), SEEN_UNSUPPORTED);
    assert_null(b);
    seen_builder_free(NULL);
}

/* A secret and an allocator are kept by the builder, not borrowed. */
static void a_builder_fails_cleanly_without_memory(void **state)
{
    (void)state;
    struct test_batch batch = test_batch_new(0, 20000);
    for (uint64_t fail_at = 1;; fail_at++) {
        struct test_alloc a;
        test_alloc_init(&a);
        test_alloc_arm(&a, fail_at, false);
        uint8_t secret[16];
        memcpy(secret, test_secret, 16);
        seen_spec spec = one_in_a_thousand();
        spec.flags = SEEN_KEYED;
        spec.secret = secret;
        spec.allocator = &a.as;
        seen_builder *b = NULL;
        seen_filter *f = NULL;
        seen_status status = seen_builder_new(&b, &spec, NULL);
        memset(secret, 0, 16);
        if (status == SEEN_OK)
            status =
                seen_builder_add_many(b, seen_keys_of(batch.keys, batch.n));
        if (status == SEEN_OK) status = seen_builder_finish(b, &f, NULL);
        if (status == SEEN_OK)
            assert_int_equal(test_count_maybe(f, 0, batch.n), batch.n);
        else
            assert_int_equal(status, SEEN_NOMEM);
        seen_builder_free(b);
        seen_free(f);
        assert_int_equal(a.blocks, 0);
        assert_int_equal(a.violations, 0);
        if (status == SEEN_OK) break;
    }
    test_batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_gives_what_an_array_gives),
        cmocka_unit_test(a_builder_says_what_it_cannot_do),
        cmocka_unit_test(a_builder_fails_cleanly_without_memory),
        cmocka_unit_test(every_key_is_there_at_every_size),
        cmocka_unit_test(of_nothing_everything_is_never),
        cmocka_unit_test(duplicates_count_once),
        cmocka_unit_test(the_rate_is_two_to_the_minus_bits),
        cmocka_unit_test(a_million_keys_cost_what_the_documents_say),
        cmocka_unit_test(it_takes_no_more),
        cmocka_unit_test(other_kinds_are_built_too),
        cmocka_unit_test(out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(what_has_no_solution_is_given_up),
    };
    test_announce("fuse");
    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
