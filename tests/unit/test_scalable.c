/* test_scalable.c - the filter that grows: the promise at every size, layers
 * that open when they must, and nothing lost on the way. */
#include "seen.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "filter/filter.h"
#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static seen_spec spec_of(uint64_t first, double fpp)
{
    return (seen_spec){.kind = SEEN_SCALABLE, .items = first, .fpp = fpp};
}

/* By the other schedule. */
static seen_spec guess_of(uint64_t first, double fpp)
{
    seen_spec spec = spec_of(first, fpp);
    spec.flags = SEEN_GUESS;
    return spec;
}

/* By one of the two: i is 0 or 1. */
static seen_spec either_of(int i, uint64_t first, double fpp)
{
    return i == 0 ? spec_of(first, fpp) : guess_of(first, fpp);
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info;
}

/* Add members from *next on, one by one, until the filter takes more memory;
 * the key that made it grow is in. */
static void add_until_grown(seen_filter *f, uint64_t *next)
{
    uint64_t bits = info_of(f).bits;
    while (info_of(f).bits == bits)
        assert_int_equal(seen_add_u64(f, test_key((*next)++)), SEEN_OK);
}

static seen_filter *copy_of(const seen_filter *f)
{
    seen_filter *copy = NULL;
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    return copy;
}

/* ---- The promise -------------------------------------------------------- */

/* Conditioned on the bits as they are, and never above the promise. */
static void measure(const seen_filter *f, uint64_t n, double fpp)
{
    const uint64_t probes = 1000000;
    double now = info_of(f).fpp_now;
    assert_true(now <= fpp);
    assert_int_equal(test_count_maybe(f, 0, n), n);
    assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes, now);
}

static void the_promise_holds_at_every_size(void **state)
{
    (void)state;
    static const double rates[] = {0.01, 0.001, 1e-6};
    static const uint64_t times[] = {1, 3, 17, 128};
    const uint64_t first = 20000;
    for (size_t r = 0; r < 6; r++) {
        const double rate = rates[r % 3];
        seen_spec spec = either_of(r / 3, first, rate);
        seen_plan plan = {.size = sizeof plan};
        assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
        seen_filter *f = test_filter(spec);
        uint64_t n = 0;
        for (size_t i = 0; i < 4; i++) {
            test_add_members(f, n, times[i] * first - n);
            n = times[i] * first;
            measure(f, n, rate);
            /* The plan foresaw it; layers scatter, this first one by 4 %. */
            assert_close(info_of(f).fpp_now, seen_plan_fpp(&plan, n), 0.25);
        }
        assert_true(info_of(f).fpp == rate);
        assert_true(info_of(f).grows && info_of(f).capacity >= n);
        assert_between((double)info_of(f).items, 0.99 * (double)n, (double)n);
        seen_free(f);
    }
}

static void the_promise_holds_for_every_plan(void **state)
{
    (void)state;
    for (double fpp = 0.9; fpp > 1e-18; fpp /= 7)
        for (uint64_t i = 0, first = 1; first < (uint64_t)1 << 36;
             first *= ++i % 2 ? 1 : 97) {
            seen_spec spec = either_of(i % 2, first, fpp);
            seen_plan plan = {.size = sizeof plan};
            assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
            double last = 0;
            for (uint64_t n = 1; n < (uint64_t)1 << 38; n = n * 5 + 1) {
                double now = seen_plan_fpp(&plan, n);
                assert_true(now >= last && now <= fpp * (1 + 1e-9));
                last = now;
            }
        }
}

/* One capacity after the other, where the sum is largest. */
static void the_promise_holds_when_every_layer_is_full(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        seen_filter *f = test_filter(either_of(i, 100, 0.02));
        uint64_t next = 0;
        for (int layers = 1; layers < 9; layers++) {
            add_until_grown(f, &next);
            double now = info_of(f).fpp_now;
            assert_true(now <= 0.02 * 1.1); /* small layers scatter */
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, 1000000),
                            1000000, now);
            assert_int_equal(test_count_maybe(f, 0, next), next);
        }
        seen_free(f);
    }
}

/* ---- What it costs ------------------------------------------------------ */

static double presized(uint64_t n, double fpp)
{
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.items = n, .fpp = fpp};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    return (double)plan.bits;
}

static void growing_128_times_costs_what_the_documents_say(void **state)
{
    (void)state;
    static const double rates[] = {0.01, 0.001, 1e-6};
    static const double full[] = {1.5, 1.45, 1.25}, grown[] = {2.7, 2.6, 2.3};
    for (size_t r = 0; r < 3; r++) {
        const uint64_t first = 4000;
        seen_filter *f = test_filter(guess_of(first, rates[r]));
        test_add_members(f, 0, 128 * first);
        seen_info info = info_of(f);
        assert_true((double)info.bits <=
                    full[r] * presized(128 * first, rates[r]));
        /* The first key too many. */
        uint64_t next = 128 * first;
        while (info_of(f).bits == info.bits) {
            test_add_members(f, next, 50);
            next += 50;
        }
        assert_true((double)info_of(f).bits <=
                    grown[r] * presized(next, rates[r]));
        assert_true(next < 129 * first);
        seen_free(f);
    }
}

/* RedisBloom's chain for so many keys, by its formulas (docs/DIALECTS.md): each
 * link is twice as large as the one before and keeps half of its rate, the first
 * half of what was asked for. */
static double redisbloom(uint64_t first, uint64_t n, double fpp)
{
    double bits = 0, rate = fpp / 2;
    uint64_t room = 0;
    for (uint64_t link = first; room < n; link *= 2, rate /= 2) {
        bits += ceil(trunc((double)link * -log(rate) / 0.480453013918201) / 64);
        room += link;
    }
    return 64 * bits;
}

/* What whoever named a capacity is promised: size and rate at 1x, 2x, 10x and 100x
 * of it. */
static void a_capacity_that_was_named_is_meant(void **state)
{
    (void)state;
    static const struct {
        double fpp, at_first, at_last;
    } rates[] = {{0.01, 11.0, 2.3}, {0.001, 16.6, 1.9}};
    static const uint64_t times[] = {1, 2, 10, 100};
    const uint64_t most = test_scale() > 1 ? 10000000 : 1000000;
    print_message("bits a key (and over a presized filter); RedisBloom's\n"
                  "%10s %6s %6s %7s %15s %15s\n",
                  "capacity", "rate", "times", "layers", "seen", "redisbloom");
    for (size_t r = 0; r < 2; r++)
        for (uint64_t first = 1000; first <= 10000000; first *= 10) {
            const double fpp = rates[r].fpp;
            seen_filter *f = test_filter(spec_of(first, fpp));
            for (size_t i = 0, n = 0; i < 4; i++) {
                const size_t wanted = times[i] * first;
                if (wanted > most && times[i] > 1) break;
                test_add_members(f, n, wanted - n);
                n = wanted;
                const double keys = (double)n, ideal = presized(n, fpp);
                const double bits = (double)info_of(f).bits;
                const double theirs = redisbloom(first, n, fpp);
                seen_info size = {.size = sizeof size};
                seen_info_of(f, &size);
                print_message("%10" PRIu64 " %5g%% %5" PRIu64 "x %7" PRIu32
                              " %6.2f (%4.2f) %6.2f (%4.2f)\n",
                              first, fpp * 100, times[i], size.layers,
                              bits / keys, bits / ideal, theirs / keys,
                              theirs / ideal);
                if (times[i] == 1)
                    assert_true(bits <= rates[r].at_first * keys);
                if (times[i] == 100)
                    assert_true(bits <= rates[r].at_last * ideal);
                assert_true(info_of(f).fpp_now <= fpp * 1.05); /* scatter */
            }
            seen_free(f);
        }
}

/* As many as fit beside each other count most. */
static void a_small_filter_is_small(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    seen_spec spec = spec_of(30, 0.01);
    spec.allocator = &a.as;
    seen_filter *f = test_filter(spec);
    test_add_members(f, 0, 30);
    print_message("30 keys at 1%%: %" PRIu64 " bytes\n", a.bytes);
    assert_true(a.bytes <= 400);
    assert_int_equal(a.blocks, 2);
    seen_free(f);
}

/* ---- Growing ------------------------------------------------------------ */

static void layers_open(seen_spec spec, const uint64_t sizes[5])
{
    seen_filter *f = test_filter(spec);
    uint64_t next = 0;
    for (size_t i = 0; i < 5; i++) {
        test_add_members(f, next, sizes[i] - next);
        next = sizes[i];
        /* None was hidden, at one in a million; or it grows a key later. */
        uint64_t items = info_of(f).items, bits = info_of(f).bits;
        assert_true(items + 2 >= sizes[i]);
        assert_int_equal(info_of(f).lines - i, info_of(f).hashes / 8);
        assert_int_equal(info_of(f).layers, i + 1);
        assert_int_equal(info_of(f).capacity, sizes[i]);
        /* Keys it has make nothing grow. */
        bool before = false;
        for (uint64_t j = 0; j < 1000; j++) {
            assert_int_equal(seen_visit_u64(f, test_key(j), &before), SEEN_OK);
            assert_true(before);
        }
        test_add_members(f, 0, next);
        assert_int_equal(info_of(f).bits, bits);
        assert_int_equal(info_of(f).items, items);
        add_until_grown(f, &next);
        assert_true(next <= sizes[i] + 3);
    }
    seen_free(f);
}

static void a_layer_opens_when_the_one_before_is_full(void **state)
{
    (void)state;
    static const uint64_t guess[] = {1000, 4000, 16000, 64000, 128000};
    static const uint64_t sized[] = {1000, 2200, 4840, 10648, 23425};
    layers_open(guess_of(1000, 1e-6), guess);
    layers_open(spec_of(1000, 1e-6), sized);
}

static void one_key_is_a_capacity_too(void **state)
{
    (void)state;
    seen_filter *f = test_filter(spec_of(1, 0.001));
    test_add_members(f, 0, 5000);
    assert_int_equal(test_count_maybe(f, 0, 5000), 5000);
    assert_true(info_of(f).fpp_now <= 0.001);
    seen_free(f);
}

static void a_batch_is_as_many_single_calls_also_where_it_grows(void **state)
{
    (void)state;
    enum {
        n = 3000
    };
    struct test_rng r = test_rng(160);
    static const double rates[] = {0.2, 0.01, 1e-4, 1e-9};
    for (uint64_t round = 0; round < 40 * test_scale(); round++) {
        seen_spec spec =
            either_of(round / 4 % 2, 1 + test_below(&r, 300), rates[round % 4]);
        seen_filter *single = test_filter(spec), *batch = test_filter(spec);
        struct test_batch b = test_batch_new(0, n);
        for (uint64_t first = 0; first < 4 * n; first += b.n) {
            test_batch_fill(&b, first, 1 + (size_t)test_below(&r, n - 1));
            for (size_t i = 0; i < b.n; i++)
                if (test_below(&r, 3) == 0)
                    b.keys[i] = b.keys[test_below(&r, i + 1)];
            bool expected[n];
            for (size_t i = 0; i < b.n; i++)
                expected[i] = seen_maybe(batch, b.keys[i].data, 8);
            seen_maybe_many(batch, seen_keys_of(b.keys, b.n), b.answers);
            assert_memory_equal(b.answers, expected, b.n);
            for (size_t i = 0; i < b.n; i++)
                assert_int_equal(
                    seen_visit(single, b.keys[i].data, 8, &expected[i]),
                    SEEN_OK);
            size_t done = 0;
            assert_int_equal(seen_visit_many(batch, seen_keys_of(b.keys, b.n),
                                             b.answers, &done),
                             SEEN_OK);
            assert_int_equal(done, b.n);
            assert_memory_equal(b.answers, expected, b.n);
            assert_true(seen_equal(single, batch));
        }
        test_batch_free(&b);
        seen_free(single);
        seen_free(batch);
    }
}

/* Large enough for prefetching in some layers and not in others. */
static void large_batches_answer_like_single_calls(void **state)
{
    (void)state;
    static const double rates[] = {0.01, 1e-6};
    for (size_t r = 0; r < 2; r++) {
        seen_filter *f = test_filter(spec_of(5000, rates[r]));
        test_add_members(f, 0, 700000);
        struct test_batch b = test_batch_new(699000, 9000);
        seen_maybe_many(f, seen_keys_of(b.keys, b.n), b.answers);
        for (size_t i = 0; i < b.n; i++)
            assert_int_equal(b.answers[i], seen_maybe(f, b.keys[i].data, 8));
        assert_int_equal(test_count_maybe(f, 0, 700000), 700000);
        test_batch_free(&b);
        seen_free(f);
    }
}

static void the_same_keys_in_the_same_order_are_the_same_filter(void **state)
{
    (void)state;
    seen_filter *a = test_filter(spec_of(50, 0.01));
    seen_filter *b = test_filter(spec_of(50, 0.01));
    test_add_members(a, 0, 9000);
    for (uint64_t i = 0; i < 9000; i++)
        assert_int_equal(seen_add_u64(b, test_key(i)), SEEN_OK);
    assert_true(seen_equal(a, b));
    assert_int_equal(info_of(a).items, info_of(b).items);
    seen_add_u64(b, test_key(TEST_STRANGERS));
    seen_add_u64(b, test_key(TEST_STRANGERS + 1));
    assert_false(seen_equal(a, b));
    seen_free(a);
    seen_free(b);
}

/* ---- What stops it ------------------------------------------------------ */

static void assert_same(const seen_filter *f, const seen_filter *before)
{
    assert_true(seen_equal(f, before));
    assert_int_equal(info_of(f).items, info_of(before).items);
    assert_int_equal(info_of(f).bytes, info_of(before).bytes);
}

static void at_its_limit_it_is_full_and_as_it_was(void **state)
{
    (void)state;
    seen_spec spec = guess_of(500, 1e-6);
    spec.limit = 40000;
    seen_filter *f = test_filter(spec);
    struct test_batch b = test_batch_new(0, 9000);
    size_t done = 0;
    assert_int_equal(
        seen_visit_many(f, seen_keys_of(b.keys, 9000), b.answers, &done),
        SEEN_FULL);
    assert_true(done >= 2000 && done < 9000);
    assert_true(info_of(f).bytes <= spec.limit);
    for (size_t i = 0; i < done; i++)
        assert_true(seen_maybe(f, b.keys[i].data, 8));
    assert_false(seen_maybe(f, b.keys[done].data, 8));

    seen_filter *before = copy_of(f);
    bool told = true;
    assert_int_equal(seen_visit(f, b.keys[done].data, 8, &told), SEEN_FULL);
    assert_int_equal(seen_add(f, b.keys[done].data, 8), SEEN_FULL);
    assert_int_equal(seen_reserve(f, 100000), SEEN_FULL);
    assert_same(f, before);
    /* What it has, it still takes. */
    assert_int_equal(seen_add_many(f, seen_keys_of(b.keys, done), &done),
                     SEEN_OK);
    assert_same(f, before);
    seen_free(f);
    seen_free(before);
    test_batch_free(&b);
}

static void without_memory_for_a_layer_nothing_changes(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    seen_spec spec = guess_of(100, 1e-6);
    spec.allocator = &a.as;
    seen_filter *f = test_filter(spec);
    test_add_members(f, 0, 1590); /* nearly full: 100 + 300 + 1200 */
    struct test_batch b = test_batch_new(1500, 500);
    seen_filter *before = NULL;
    size_t done = 0;
    test_alloc_arm(&a, 1, true);
    assert_int_equal(
        seen_visit_many(f, seen_keys_of(b.keys, 500), b.answers, &done),
        SEEN_NOMEM);
    assert_between((double)done, 100, 103);
    before = copy_of(f);
    assert_int_equal(seen_add(f, b.keys[done].data, 8), SEEN_NOMEM);
    assert_int_equal(seen_reserve(f, 10000), SEEN_NOMEM);
    assert_same(f, before);
    test_alloc_arm(&a, 0, false);
    assert_int_equal(seen_add_many(f, seen_keys_of(b.keys, 500), &done),
                     SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 2000), 2000);
    seen_free(f);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
    seen_free(before);
    test_batch_free(&b);
}

/* ---- Reserving ---------------------------------------------------------- */

static void reserving_makes_room_at_once(void **state)
{
    (void)state;
    for (uint64_t there = 0; there < 3000; there = there * 3 + 1) {
        seen_filter *f = test_filter(spec_of(100, 1e-6));
        test_add_members(f, 0, there);
        seen_filter *before = copy_of(f);
        assert_int_equal(seen_reserve(f, 50000), SEEN_OK);
        assert_true(seen_equal(f, before));
        assert_int_equal(info_of(f).items, there);
        uint64_t bits = info_of(f).bits;
        assert_int_equal(seen_reserve(f, 50000), SEEN_OK);
        test_add_members(f, there, 50000 - there);
        assert_int_equal(info_of(f).bits, bits);
        assert_int_equal(test_count_maybe(f, 0, 50000), 50000);
        assert_true(info_of(f).fpp_now <= 1e-6);
        test_add_members(f, 50000, 1000);
        assert_true(info_of(f).bits > bits);
        seen_free(f);
        seen_free(before);
    }
    seen_filter *f = test_filter(spec_of(100, 1e-6));
    assert_int_equal(seen_reserve(f, UINT64_MAX), SEEN_INVALID);
    assert_int_equal(seen_reserve(f, 0), SEEN_OK);
    assert_int_equal(seen_reserve(f, 100), SEEN_OK);
    seen_clear(f);
    seen_free(f);
}

/* ---- Whole filters ------------------------------------------------------ */

static void clearing_goes_back_to_the_first_layer(void **state)
{
    (void)state;
    seen_filter *f = test_filter(spec_of(100, 0.01));
    seen_filter *empty = copy_of(f), *fresh = test_filter(spec_of(100, 0.01));
    test_add_members(f, 0, 5000);
    seen_clear(f);
    assert_same(f, empty);
    assert_int_equal(test_count_maybe(f, 0, 5000), 0);
    test_add_members(f, 7, 5000);
    test_add_members(fresh, 7, 5000);
    assert_same(f, fresh);
    seen_free(f);
    seen_free(fresh);
    seen_free(empty);
}

static void a_union_has_the_keys_of_both(void **state)
{
    (void)state;
    for (int larger = 0; larger < 2; larger++) {
        seen_spec spec = spec_of(100, 1e-4);
        seen_filter *a = test_filter(spec), *b = test_filter(spec);
        uint64_t of_a = larger ? 300 : 9000, of_b = larger ? 9000 : 300;
        test_add_members(a, 0, of_a);
        test_add_members(b, 10000, of_b);
        seen_filter *both = copy_of(a), *turned = copy_of(b);
        assert_int_equal(seen_merge(both, b, SEEN_UNION, NULL), SEEN_OK);
        assert_int_equal(seen_merge(turned, a, SEEN_UNION, NULL), SEEN_OK);
        assert_true(seen_equal(both, turned));
        assert_int_equal(test_count_maybe(both, 0, of_a), of_a);
        assert_int_equal(test_count_maybe(both, 10000, of_b), of_b);
        assert_between((double)info_of(both).items, 8700, 9900);
        double now = info_of(both).fpp_now;
        assert_binomial(test_count_maybe(both, TEST_STRANGERS, 1000000),
                        1000000, now);
        /* With itself: nothing new. */
        seen_filter *again = copy_of(both);
        assert_int_equal(seen_merge(again, again, SEEN_UNION, NULL), SEEN_OK);
        assert_int_equal(seen_merge(again, a, SEEN_UNION, NULL), SEEN_OK);
        assert_true(seen_equal(again, both));
        /* It goes on growing, with layers that are overfull. */
        test_add_members(both, 20000, 30000);
        assert_int_equal(test_count_maybe(both, 20000, 30000), 30000);
        assert_int_equal(test_count_maybe(both, 10000, of_b), of_b);

        assert_int_equal(seen_merge(a, b, SEEN_INTERSECTION, NULL),
                         SEEN_UNSUPPORTED);
        seen_free(a);
        seen_free(b);
        seen_free(both);
        seen_free(turned);
        seen_free(again);
    }
}

static void other_layers_do_not_merge(void **state)
{
    (void)state;
    seen_filter *a = test_filter(spec_of(100, 0.01));
    seen_filter *capacity = test_filter(spec_of(101, 0.01));
    seen_filter *rate = test_filter(spec_of(100, 0.011));
    seen_filter *reserved = test_filter(spec_of(100, 0.01));
    assert_int_equal(seen_reserve(reserved, 1000), SEEN_OK);
    seen_filter *guessed = test_filter(guess_of(100, 0.01));
    seen_filter *others[] = {capacity, rate, reserved, guessed};
    test_add_members(a, 0, 50);
    for (size_t i = 0; i < 4; i++) {
        seen_filter *before = copy_of(a);
        test_add_members(others[i], 0, 50);
        assert_int_equal(seen_merge(a, others[i], SEEN_UNION, NULL),
                         SEEN_MISMATCH);
        assert_false(seen_equal(a, others[i]));
        assert_same(a, before);
        seen_free(before);
        seen_free(others[i]);
    }
    seen_free(a);
}

static void a_union_that_cannot_be_paid_changes_nothing(void **state)
{
    (void)state;
    seen_spec spec = spec_of(100, 0.01);
    seen_filter *large = test_filter(spec);
    test_add_members(large, 0, 9000);
    spec.limit = info_of(large).bytes - 1;
    seen_filter *limited = test_filter(spec);
    struct test_alloc a;
    test_alloc_init(&a);
    spec.limit = 0, spec.allocator = &a.as;
    seen_filter *poor = test_filter(spec);
    seen_filter *empty = copy_of(poor);
    assert_int_equal(seen_merge(limited, large, SEEN_UNION, NULL), SEEN_FULL);
    assert_same(limited, empty);
    for (uint64_t nth = 1; nth <= 4; nth++) {
        test_alloc_arm(&a, nth, false);
        assert_int_equal(seen_merge(poor, large, SEEN_UNION, NULL), SEEN_NOMEM);
        assert_same(poor, empty);
    }
    test_alloc_arm(&a, 0, false);
    assert_int_equal(seen_merge(poor, large, SEEN_UNION, NULL), SEEN_OK);
    assert_true(seen_equal(poor, large));
    seen_free(poor);
    assert_int_equal(a.blocks, 0);
    seen_free(large);
    seen_free(limited);
    seen_free(empty);
}

static void a_keyed_filter_grows_too(void **state)
{
    (void)state;
    seen_spec spec = spec_of(100, 0.001);
    spec.flags = SEEN_KEYED;
    spec.secret = test_secret;
    seen_filter *f = test_filter(spec);
    test_add_members(f, 0, 20000);
    measure(f, 20000, 0.001);
    assert_string_equal(info_of(f).hash, "siphash-1-3-128");
    seen_free(f);
}

/* ---- Saved state -------------------------------------------------------- */

/* What a reader of files does: the plan, the state, then the parts. NULL: it
 * was refused. */
static seen_filter *load(const seen_filter *from, const uint8_t *state,
                         size_t len, uint64_t items)
{
    const struct seen_filter_ops *ops = from->ops;
    seen_filter *f = seen_state_open(ops, &from->allocator);
    assert_non_null(f);
    memcpy(f, from, sizeof *f);
    seen_plan plan = {.size = sizeof plan,
                      .kind = from->plan.kind,
                      .hashes = from->plan.hashes,
                      .items = from->plan.items,
                      .bits = from->plan.bits,
                      .hash_bits = from->plan.hash_bits,
                      .fpp = from->plan.fpp};
    assert_true(ops->plan_read(&plan));
    assert_int_equal(plan.bytes, from->plan.bytes);
    assert_int_equal(plan.lines, from->plan.lines);
    f->plan = plan;
    f->items = items;
    ops->shape(f);
    if (ops->load_state(f, state, len) == SEEN_OK) return f;
    seen_state_close(f);
    return NULL;
}

static void a_saved_filter_comes_back(void **state)
{
    (void)state;
    static uint8_t bytes[SEEN_STATE_MAX];
    uint64_t reserves[] = {0, 300, 40000};
    for (size_t r = 0; r < 3; r++)
        for (uint64_t n = 0; n < 30000; n = n * 3 + 40) {
            seen_filter *f = test_filter(either_of(n % 2, 100, 1e-4));
            assert_int_equal(seen_reserve(f, reserves[r]), SEEN_OK);
            test_add_members(f, 0, n);
            size_t len = f->ops->save_state(f, bytes);
            assert_true(len <= SEEN_STATE_MAX);
            seen_filter *loaded = load(f, bytes, len, f->items);
            assert_non_null(loaded);
            struct seen_part a, b;
            uint32_t parts = 0;
            for (; f->ops->part(f, parts, &a); parts++) {
                assert_true(f->ops->part(loaded, parts, &b));
                assert_int_equal(a.len, b.len);
                f->ops->place(loaded, parts, a.at);
            }
            assert_false(f->ops->part(loaded, parts, &b));
            assert_true(seen_equal(f, loaded));
            assert_int_equal(test_count_maybe(loaded, 0, n), n);
            static uint8_t again[SEEN_STATE_MAX];
            assert_int_equal(f->ops->save_state(loaded, again), len);
            assert_memory_equal(bytes, again, len);
            seen_state_close(loaded); /* its parts are those of f */
            seen_free(f);
        }
}

/* Every number of the state at every bad value, and every length. */
static void hostile_state_is_refused_or_harmless(void **state)
{
    (void)state;
    static uint8_t bytes[SEEN_STATE_MAX + 64];
    seen_filter *f = test_filter(spec_of(100, 0.01));
    test_add_members(f, 0, 5000);
    const size_t len = f->ops->save_state(f, bytes);
    const uint64_t items = f->items;
    for (size_t cut = 0; cut <= len + 32; cut++)
        if (cut != len) assert_null(load(f, bytes, cut, items));
    assert_null(load(f, bytes, len, items + 1));
    assert_null(load(f, bytes, len, UINT64_MAX));

    const uint64_t bad[] = {0,
                            1,
                            2,
                            49,
                            UINT32_MAX,
                            (uint64_t)1 << 32,
                            (uint64_t)1 << 40,
                            ((uint64_t)1 << 40) + 1,
                            (uint64_t)1 << 58,
                            (uint64_t)1 << 59,
                            (uint64_t)1 << 63,
                            UINT64_MAX};
    size_t refused = 0, taken = 0;
    for (size_t at = 0; at < len; at += 8) {
        uint64_t good = seen_get_le64(bytes + at);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            if (bad[i] == good) continue;
            seen_put_le64(bytes + at, bad[i]);
            seen_filter *loaded = load(f, bytes, len, items);
            refused += !loaded;
            if (!loaded) continue;
            taken++;
            /* Then it is one that could be: sizes that add up. */
            struct seen_part part;
            uint64_t sum = 0;
            for (uint32_t p = 0; f->ops->part(loaded, p, &part); p++) {
                assert_true(part.len >= 64 && part.len <= (uint64_t)1 << 45);
                sum += part.len;
            }
            assert_true(sum <= (uint64_t)1 << 45);
            seen_state_close(loaded);
        }
        seen_put_le64(bytes + at, good);
    }
    print_message("%zu refused, %zu taken\n", refused, taken);
    assert_true(refused > 5 * taken);

    /* Shares go by the schedule, and there are two of them. */
    for (uint32_t schedule = 0; schedule < 3; schedule++) {
        seen_put_le32(bytes + 4, schedule);
        seen_filter *loaded = load(f, bytes, len, items);
        assert_int_equal(loaded != NULL, schedule == 1);
        if (loaded) seen_state_close(loaded);
    }
    seen_put_le32(bytes + 4, 1);

    /* Layers of 4 TiB fit each for itself, and six together. */
    seen_put_le64(bytes + 16, items);
    for (uint64_t layers = 7; layers <= 11; layers += 4) {
        seen_put_le32(bytes, (uint32_t)layers);
        for (uint64_t i = 1; i < layers; i++) {
            uint8_t *at = bytes + 8 + 32 * i;
            seen_put_le64(at, 100);
            seen_put_le64(at + 8, 0);
            seen_put_le64(at + 16, UINT32_MAX);
            seen_put_le64(at + 24, 16);
        }
        seen_filter *loaded = load(f, bytes, 8 + 32 * layers, items);
        assert_int_equal(loaded != NULL, layers == 7);
        if (loaded) seen_state_close(loaded);
    }
    seen_free(f);
}

static void hostile_plans_are_refused(void **state)
{
    (void)state;
    const struct seen_filter_ops *ops = seen_kinds_find(SEEN_SCALABLE);
    seen_plan good = {.size = sizeof good};
    seen_spec spec = spec_of(100, 0.01);
    assert_int_equal(seen_plan_for(&spec, &good, NULL), SEEN_OK);
    seen_plan p = good;
    assert_true(ops->plan_read(&p));
    static const uint32_t ks[] = {0, 1, 4, 7, 9, 136, UINT32_MAX, 0xfffffff8};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        p = good, p.hashes = ks[i];
        assert_false(ops->plan_read(&p));
    }
    const uint64_t ms[] = {0,
                           1,
                           good.bits + 1,
                           good.bits - 512 + 64,
                           ((uint64_t)1 << 48) + 512,
                           UINT64_MAX,
                           UINT64_MAX - 511};
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        p = good, p.bits = ms[i];
        assert_false(ops->plan_read(&p));
    }
    const double rates[] = {0, -1, 1, 2, NAN, INFINITY, 1e-5, 1e-300};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        p = good, p.fpp = rates[i];
        assert_false(ops->plan_read(&p));
    }
    p = good, p.items = 0;
    assert_false(ops->plan_read(&p));
    p = good, p.items = UINT64_MAX;
    assert_false(ops->plan_read(&p));
    p = good, p.bits = (uint64_t)512 << 33; /* too many lines for 64 bits */
    assert_false(ops->plan_read(&p));
    p.hash_bits = 128;
    assert_true(ops->plan_read(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_promise_holds_at_every_size),
        cmocka_unit_test(the_promise_holds_for_every_plan),
        cmocka_unit_test(the_promise_holds_when_every_layer_is_full),
        cmocka_unit_test(growing_128_times_costs_what_the_documents_say),
        cmocka_unit_test(a_capacity_that_was_named_is_meant),
        cmocka_unit_test(a_small_filter_is_small),
        cmocka_unit_test(a_layer_opens_when_the_one_before_is_full),
        cmocka_unit_test(one_key_is_a_capacity_too),
        cmocka_unit_test(a_batch_is_as_many_single_calls_also_where_it_grows),
        cmocka_unit_test(large_batches_answer_like_single_calls),
        cmocka_unit_test(the_same_keys_in_the_same_order_are_the_same_filter),
        cmocka_unit_test(at_its_limit_it_is_full_and_as_it_was),
        cmocka_unit_test(without_memory_for_a_layer_nothing_changes),
        cmocka_unit_test(reserving_makes_room_at_once),
        cmocka_unit_test(clearing_goes_back_to_the_first_layer),
        cmocka_unit_test(a_union_has_the_keys_of_both),
        cmocka_unit_test(other_layers_do_not_merge),
        cmocka_unit_test(a_union_that_cannot_be_paid_changes_nothing),
        cmocka_unit_test(a_keyed_filter_grows_too),
        cmocka_unit_test(a_saved_filter_comes_back),
        cmocka_unit_test(hostile_state_is_refused_or_harmless),
        cmocka_unit_test(hostile_plans_are_refused),
    };
    test_announce("scalable");
    return cmocka_run_group_tests_name("scalable", tests, NULL, NULL);
}
