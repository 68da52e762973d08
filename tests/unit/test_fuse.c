/* test_fuse.c - the static filter: all keys in, few bits, nothing after. */
#include "seen.h"

#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

static seen_filter *build(uint64_t n, double fpp, uint32_t places)
{
    struct test_batch b = test_batch_new(0, (size_t)n);
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_FUSE, .fpp = fpp, .hashes = places};
    assert_int_equal(seen_build(&f, &spec, b.keys, (size_t)n), SEEN_OK);
    test_batch_free(&b);
    return f;
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info;
    seen_info_of(f, &info);
    return info;
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
                assert_int_equal(info_of(f).items, n);
                seen_free(f);
            }
}

static void of_nothing_everything_is_never(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_FUSE, .fpp = 0.01};
    assert_int_equal(seen_build(&f, &spec, NULL, 0), SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    assert_true(info_of(f).fpp_now == 0);
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
    assert_int_equal(seen_build(&f, &spec, b.keys, n), SEEN_OK);
    assert_int_equal(info_of(f).items, 1000);
    assert_int_equal(test_count_maybe(f, 0, 1000), 1000);
    assert_int_equal(info_of(once).items, 1000);
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
            assert_true(info_of(f).fpp_now <= rates[r]);
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                            info_of(f).fpp_now);
            seen_free(f);
        }
}

static void a_million_keys_cost_what_the_documents_say(void **state)
{
    (void)state;
    seen_plan plan;
    seen_spec spec = {.kind = SEEN_FUSE, .items = 1000000, .fpp = 0.001};
    assert_int_equal(seen_plan_for(&spec, &plan), SEEN_OK);
    assert_int_equal(plan.width, 10);
    assert_true((double)plan.bits / 1e6 <= 11.5);
    spec.fpp = 1.0 / 256 * 1.0001;
    assert_int_equal(seen_plan_for(&spec, &plan), SEEN_OK);
    assert_true((double)plan.bits / 1e6 <= 9.1);
    spec.hashes = 4;
    assert_int_equal(seen_plan_for(&spec, &plan), SEEN_OK);
    assert_true((double)plan.bits / 1e6 <= 8.7);
    /* And back from the bits. */
    spec.bits = plan.bits, spec.items = 0;
    assert_int_equal(seen_plan_for(&spec, &plan), SEEN_OK);
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
    assert_int_equal(seen_add_many(f, &key, 1, &done), SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    assert_int_equal(seen_remove(f, "x", 1), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(f, copy, SEEN_UNION), SEEN_UNSUPPORTED);
    assert_true(seen_equal(f, copy));
    seen_spec spec = {.kind = SEEN_FUSE, .items = 10, .fpp = 0.01};
    assert_int_equal(seen_new(&f, &spec), SEEN_UNSUPPORTED);
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
        assert_int_equal(seen_build(&f, &spec, b.keys, n), SEEN_OK);
        assert_int_equal(test_count_maybe(f, 0, n), n);
        assert_true(info_of(f).fpp_now <= 0.012);
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
        seen_status status = seen_build(&f, &spec, b.keys, n);
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
        assert_int_equal(seen_build(&whole, &spec, b.keys, n), SEEN_OK);
        assert_int_equal(seen_builder_new(&builder, &spec), SEEN_OK);
        /* In pieces, and every third key twice: sized for different keys. */
        for (size_t at = 0; at < n; at += 777) {
            size_t now = n - at < 777 ? n - at : 777;
            assert_int_equal(seen_builder_add_many(builder, b.keys + at, now),
                             SEEN_OK);
            assert_int_equal(
                seen_builder_add_many(builder, b.keys + at, now / 3), SEEN_OK);
        }
        assert_int_equal(seen_builder_finish(builder, &streamed), SEEN_OK);
        assert_true(seen_equal(whole, streamed));
        seen_free(streamed);

        /* More keys, a larger filter. */
        struct test_batch more = test_batch_new(n, 1000);
        assert_int_equal(seen_builder_add_many(builder, more.keys, 1000),
                         SEEN_OK);
        assert_int_equal(seen_builder_finish(builder, &streamed), SEEN_OK);
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
    assert_int_equal(seen_builder_new(NULL, &spec), SEEN_INVALID);
    assert_int_equal(seen_builder_new(&b, NULL), SEEN_INVALID);
    spec.fpp = 2;
    assert_int_equal(seen_builder_new(&b, &spec), SEEN_INVALID);
    spec = (seen_spec){.kind = SEEN_BLOCKED, .fpp = 0.01};
    assert_int_equal(seen_builder_new(&b, &spec), SEEN_UNSUPPORTED);
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
        spec.key = secret;
        spec.allocator = &a.as;
        seen_builder *b = NULL;
        seen_filter *f = NULL;
        seen_status status = seen_builder_new(&b, &spec);
        memset(secret, 0, 16);
        if (status == SEEN_OK)
            status = seen_builder_add_many(b, batch.keys, batch.n);
        if (status == SEEN_OK) status = seen_builder_finish(b, &f);
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
    };
    test_announce("fuse");
    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
