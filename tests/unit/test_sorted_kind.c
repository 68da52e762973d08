/* test_sorted_kind.c - the static filter of few keys: its size at every n, its
 * rate, and what it does not do. bits/sorted.c is in test_sorted.c. */
#include "seen.h"

#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <math.h>
#include <stdlib.h>

static seen_filter *build(uint64_t n, seen_spec spec)
{
    struct test_batch b = test_batch_new(0, n ? (size_t)n : 1);
    seen_filter *f = NULL;
    spec.kind = SEEN_SORTED;
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(b.keys, (size_t)n), NULL), SEEN_OK);
    test_batch_free(&b);
    return f;
}

static void every_key_is_there_at_every_size(void **state)
{
    (void)state;
    static const double rates[] = {0.6, 0.05, 0.001, 1e-8};
    for (size_t r = 0; r < 4; r++)
        for (uint64_t n = 1; n < 200000; n = n < 600 ? n + 1 : n * 3) {
            seen_filter *f = build(n, (seen_spec){.fpp = rates[r]});
            assert_int_equal(test_count_maybe(f, 0, n), n);
            for (uint64_t i = 0; i < n && i < 100; i++)
                assert_true(seen_maybe_u64(f, test_key(i)));
            assert_int_equal(test_info(f).items, n);
            assert_true(test_info(f).fpp <= rates[r]);
            seen_free(f);
        }
}

static void of_nothing_everything_is_never(void **state)
{
    (void)state;
    seen_filter *f = build(0, (seen_spec){.fpp = 0.01});
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    assert_true(test_info(f).fpp_now == 0);
    seen_free(f);
    f = build(1000, (seen_spec){.fpp = 0.01});
    seen_clear(f);
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    assert_int_equal(test_info(f).items, 0);
    seen_free(f);
}

/* Ten bits a key keep 0.4 % and a little; a whole byte or two are lost on very
 * few keys, a sixteenth of a bit on samples. */
static void ten_bits_are_worth_the_same_at_every_size(void **state)
{
    (void)state;
    for (uint64_t n = 32; n < 3000000; n = n < 700 ? n + 1 : n * 2) {
        seen_plan plan = {.size = sizeof plan};
        seen_spec spec = {.kind = SEEN_SORTED, .items = n, .bits = 10 * n};
        assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
        assert_true(plan.bits <= 10 * n);
        assert_between(plan.fpp, 0.0038,
                       n < 100   ? 0.0048
                       : n < 512 ? 0.0043
                                 : 0.00413);
    }
    /* The essay's example. */
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_SORTED, .items = 35, .bits = 44 * 8};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    assert_close(plan.fpp, 35.0 / 9472, 0.003);
}

/* Small and large, rough and fine: the count of wrong answers is what the
 * fingerprints that are there make it. */
static void the_rate_is_what_it_says(void **state)
{
    (void)state;
    static const double rates[] = {0.3, 0.01, 0.001};
    static const uint64_t sizes[] = {1, 5, 35, 600, 100000};
    const uint64_t probes = 400000 * test_scale();
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            seen_filter *f = build(sizes[i], (seen_spec){.fpp = rates[r]});
            double now = test_info(f).fpp_now;
            /* Of n fingerprints some are equal: then it is below the plan. */
            assert_true(now <= (double)sizes[i] * rates[r] * 2);
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                            now);
            seen_free(f);
        }
}

/* And over many filters, the expected rate: a filter of one key at 1 % has 100
 * fingerprints to choose from, and strangers meet it once in 100. */
static void the_plan_is_the_mean_of_many_filters(void **state)
{
    (void)state;
    enum {
        filters = 4000,
        asked = 100,
        n = 12
    };
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_SORTED, .items = n, .fpp = 0.2};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < filters; i++) {
        struct test_batch b = test_batch_new(i * n, n);
        seen_filter *f = NULL;
        assert_int_equal(seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL),
                         SEEN_OK);
        wrong += test_count_maybe(f, TEST_STRANGERS + i * asked, asked);
        seen_free(f);
        test_batch_free(&b);
    }
    assert_binomial(wrong, filters * asked, plan.fpp);
}

static void plans_go_both_ways(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 7, 100, 511, 512, 5000, 1000000};
    static const double rates[] = {0.9, 0.1, 0.004, 1e-4, 1e-8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            seen_plan there = {.size = sizeof there},
                      back = {.size = sizeof back};
            seen_spec spec = {
                .kind = SEEN_SORTED, .items = sizes[i], .fpp = rates[r]};
            assert_int_equal(seen_plan_for(&spec, &there, NULL), SEEN_OK);
            assert_true(there.fpp <= rates[r]);
            assert_true(seen_plan_fpp(&there, sizes[i]) == there.fpp);
            assert_true(seen_plan_fpp(&there, 0) == 0);
            assert_true(isnan(seen_plan_fpp(&there, sizes[i] + 1)));
            /* Its bits are enough, and one byte less is not. */
            spec.bits = there.bits;
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_int_equal(back.bits, there.bits);
            spec.fpp = 0;
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_int_equal(back.bits, there.bits);
            assert_true(back.fpp == there.fpp);
            spec.fpp = rates[r], spec.items = 0;
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_true(back.items >= sizes[i]);
            assert_true(back.bits <= there.bits);
            spec.items = sizes[i], spec.bits = there.bits - 8;
            if (spec.bits == 0) continue; /* would mean that none are given */
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_INVALID);
            assert_non_null(strstr(test_wrong_spec(&spec), "bits"));
        }
}

static void impossible_wishes_are_refused(void **state)
{
    (void)state;
    static const struct {
        seen_spec spec;
        const char *word;
    } rows[] = {
        {{.items = 10}, "fpp"},
        {{.items = 10, .fpp = 0.1, .hashes = 2}, "hashes"},
        {{.items = ((uint64_t)1 << 30) + 1, .fpp = 0.1}, "items"},
        {{.items = 1000, .fpp = 1e-12}, "fpp"},
        {{.items = 1, .fpp = 5e-324}, "fpp"},
        {{.items = 1000, .bits = 1999}, "bits"},
        {{.items = 1000, .bits = 1}, "bits"},
        {{.fpp = 0.1, .bits = 7}, "bits"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        seen_spec spec = rows[i].spec;
        seen_plan plan = {.size = sizeof plan};
        spec.kind = SEEN_SORTED;
        assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_INVALID);
        const char *problem = test_wrong_spec(&spec);
        if (!problem || !strstr(problem, rows[i].word))
            fail_msg("row %zu: %s", i, problem ? problem : "nothing wrong");
    }
    seen_spec spec = {
        .kind = SEEN_SORTED, .items = 10, .fpp = 0.1, .flags = SEEN_CONCURRENT};
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_UNSUPPORTED);
}

static void duplicates_count_once(void **state)
{
    (void)state;
    enum {
        n = 3000
    };
    struct test_batch b = test_batch_new(0, n);
    for (size_t i = 0; i < n; i++)
        b.keys[i] = b.keys[i % 100];
    seen_spec spec = {.kind = SEEN_SORTED, .fpp = 0.001};
    seen_filter *f = NULL, *once = build(100, spec);
    assert_int_equal(seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL),
                     SEEN_OK);
    assert_int_equal(test_info(f).items, 100);
    assert_true(seen_equal(f, once));
    seen_free(f);
    seen_free(once);
    test_batch_free(&b);
}

static void it_takes_no_more(void **state)
{
    (void)state;
    seen_filter *f = build(100, (seen_spec){.fpp = 0.01}), *copy = NULL;
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
    seen_spec spec = {.kind = SEEN_SORTED, .items = 10, .fpp = 0.01};
    seen_filter *none = NULL;
    assert_int_equal(seen_new(&none, &spec, NULL), SEEN_UNSUPPORTED);
    assert_null(none);
    assert_true(seen_kind_built(SEEN_SORTED) && seen_kind_built(SEEN_RIBBON));
    assert_false(seen_kind_built(SEEN_BLOCKED) || seen_kind_built(SEEN_ANY));
    seen_free(f);
    seen_free(copy);
}

/* What a checksum would find is found without it, too, where it can matter: in a
 * copy of a view. */
static void every_damaged_bit_is_found(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 9, 40, 600};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen_filter *f = build(sizes[i], (seen_spec){.fpp = 0.01});
        uint64_t bits = test_info(f).bits;
        size_t len;
        assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
        uint8_t *bytes = aligned_alloc(64, len);
        assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
        uint8_t *payload = bytes + len - (bits / 8 + 63) / 64 * 64;
        for (uint64_t bit = 0; bit < bits; bit++) {
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
            seen_filter *view = NULL, *copy = NULL;
            /* A view looks at no payload: it answers, and cannot be copied if
             * the bytes are none that could have been written. */
            assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
            test_count_maybe(view, 0, sizes[i] < 50 ? sizes[i] : 50);
            if (seen_copy(&copy, view, NULL) == SEEN_OK) {
                assert_false(seen_equal(copy, f));
                seen_free(copy);
            }
            seen_free(view);
            seen_filter *loaded = NULL;
            assert_int_equal(seen_load(&loaded, bytes, len, NULL, NULL, NULL),
                             SEEN_CORRUPT);
            payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(bytes);
        seen_free(f);
    }
}

static void out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    struct test_batch b = test_batch_new(0, 3000);
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        struct test_alloc a;
        test_alloc_init(&a);
        a.fail_at = nth;
        seen_filter *f = NULL;
        seen_spec spec = {.kind = SEEN_SORTED, .fpp = 0.01, .allocator = &a.as};
        seen_status status =
            seen_build(&f, &spec, seen_keys_of(b.keys, b.n), NULL);
        done = status == SEEN_OK;
        if (done) {
            assert_true(nth > 4);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_there_at_every_size),
        cmocka_unit_test(of_nothing_everything_is_never),
        cmocka_unit_test(ten_bits_are_worth_the_same_at_every_size),
        cmocka_unit_test(the_rate_is_what_it_says),
        cmocka_unit_test(the_plan_is_the_mean_of_many_filters),
        cmocka_unit_test(plans_go_both_ways),
        cmocka_unit_test(impossible_wishes_are_refused),
        cmocka_unit_test(duplicates_count_once),
        cmocka_unit_test(it_takes_no_more),
        cmocka_unit_test(every_damaged_bit_is_found),
        cmocka_unit_test(out_of_memory_leaves_nothing_behind),
    };
    test_announce("sorted_kind");
    return cmocka_run_group_tests_name("sorted_kind", tests, NULL, NULL);
}
