/* test_ribbon.c - the static filter: all keys in, hardly more bits than the rate
 * takes, nothing after; its kernels; and the builder, whose main kind it is. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "seen.h"

#include "api/make.h"
#include "base/sort.h"
#include "bits/lines.h"
#include "bits/ribbon.h"
#include "filter/filter.h"

#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WIDTH_MAX SEEN_RIBBON_WIDTH_MAX

/* The rate that a width just keeps, with the hash's own share. */
static double rate_of(uint32_t width)
{
    return ldexp(1, -(int)width) * 1.0001;
}

static seen_filter *build(uint64_t n, double fpp)
{
    struct test_batch b = test_batch_new(0, n ? (size_t)n : 1);
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_RIBBON, .fpp = fpp};
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(b.keys, (size_t)n), NULL), SEEN_OK);
    test_batch_free(&b);
    return f;
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info;
}

static seen_plan plan_of(uint64_t n, double fpp)
{
    seen_plan plan = {.size = sizeof plan};
    seen_spec spec = {.kind = SEEN_RIBBON, .items = n, .fpp = fpp};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    return plan;
}

/* Every key is there, single and in a batch, and the filter is what the plan said
 * or a little smaller. */
static void check_built(uint64_t n, uint32_t width)
{
    seen_filter *f = build(n, rate_of(width));
    assert_int_equal(test_count_maybe(f, 0, n), n);
    for (uint64_t i = 0; i < n && i < 100; i++)
        assert_true(seen_maybe_u64(f, test_key(i)));
    assert_int_equal(info_of(f).items, n);
    if (n > 0) {
        seen_plan plan = plan_of(n, rate_of(width));
        assert_int_equal(plan.width, width);
        if (info_of(f).bits > plan.bits)
            fail_msg("%llu keys of %u bits: planned %llu, takes %llu",
                     (unsigned long long)n, width,
                     (unsigned long long)plan.bits,
                     (unsigned long long)info_of(f).bits);
        assert_true((double)info_of(f).bits >=
                    0.98 * (double)plan.bits - 1000 * width);
        assert_true(info_of(f).fpp_now <= plan.fpp * 1.0001);
    }
    seen_free(f);
}

static void every_key_is_there_at_every_size(void **state)
{
    (void)state;
    for (uint64_t n = 0; n <= 5000; n++)
        check_built(n, 1 + (uint32_t)n % WIDTH_MAX);
    for (uint64_t n = 5001; n < 300000; n = n * 5 / 4)
        check_built(n, 1 + (uint32_t)n % WIDTH_MAX);
    check_built(1000000, 7);
}

/* Listed, one small layer, some layers, several segments. */
static void every_key_is_there_at_every_width(void **state)
{
    (void)state;
    for (uint32_t width = 1; width <= WIDTH_MAX; width++) {
        check_built(3, width);
        check_built(200, width);
        check_built(1500, width);
        check_built(140000, width);
    }
}

static void of_nothing_everything_is_never(void **state)
{
    (void)state;
    seen_filter *f = build(0, 0.01);
    assert_int_equal(test_count_maybe(f, 0, 10000), 0);
    assert_true(info_of(f).fpp_now == 0);
    assert_int_equal(info_of(f).bits, 64);
    seen_free(f);
    for (uint64_t n = 3; n < 4000; n *= 30) {
        f = build(n, 0.01);
        seen_clear(f);
        assert_int_equal(test_count_maybe(f, 0, 10000), 0);
        assert_false(seen_maybe_u64(f, test_key(0)));
        assert_true(info_of(f).fpp_now == 0);
        seen_free(f);
    }
}

static uint8_t *saved(const seen_filter *f, size_t *len)
{
    assert_int_equal(seen_save(f, 0, NULL, 0, len), SEEN_SHORT);
    uint8_t *bytes = aligned_alloc(64, (*len + 63) / 64 * 64);
    assert_non_null(bytes);
    assert_int_equal(seen_save(f, 0, bytes, *len, len), SEEN_OK);
    return bytes;
}

/* In any order, and as often as they like: the same bytes. */
static void the_same_keys_give_the_same_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 5, 100, 1499, 1500, 30000};
    struct test_rng r = test_rng(3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i], len, len2;
        struct test_batch b = test_batch_new(0, 3 * n);
        for (size_t j = n; j < 3 * n; j++)
            b.keys[j] = b.keys[test_below(&r, n)];
        for (size_t j = 3 * n; j > 1; j--) {
            size_t other = (size_t)test_below(&r, j);
            seen_key key = b.keys[other];
            b.keys[other] = b.keys[j - 1];
            b.keys[j - 1] = key;
        }
        seen_filter *f = NULL, *once = build(n, 0.001);
        seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.001};
        assert_int_equal(
            seen_build(&f, &spec, seen_keys_of(b.keys, 3 * n), NULL), SEEN_OK);
        assert_int_equal(info_of(f).items, n);
        assert_true(seen_equal(f, once));
        uint8_t *bytes = saved(f, &len), *bytes2 = saved(once, &len2);
        assert_int_equal(len, len2);
        assert_memory_equal(bytes, bytes2, len);
        free(bytes);
        free(bytes2);
        seen_free(f);
        seen_free(once);
        test_batch_free(&b);
    }
}

/* With what a few listed keys and bumped strangers change: exactly. */
static void the_rate_is_two_to_the_minus_bits(void **state)
{
    (void)state;
    static const uint32_t widths[] = {1, 2, 4, 7, 8, 10};
    static const uint64_t sizes[] = {1, 100, 1000, 10000, 100000};
    const uint64_t probes = 400000 * test_scale();
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            double fpp = rate_of(widths[w]);
            seen_filter *f = build(sizes[i], fpp);
            double now = info_of(f).fpp_now;
            assert_true(now <= fpp);
            if (sizes[i] > 1) assert_close(now, fpp, 0.0002);
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, probes), probes,
                            now);
            seen_free(f);
        }
}

/* All parts counted, and whatever the plan says, the filter is no larger. */
static void it_costs_what_the_documents_say(void **state)
{
    (void)state;
    static const struct {
        uint64_t items;
        double fpp, planned, built;
    } rows[] = {{100, 0.01, 8.1, 8.1},         {1000, 0.01, 7.25, 7.25},
                {1000, 0.001, 10.4, 10.4},     {10000, 0.01, 7.15, 7.1},
                {100000, 0.01, 7.1, 7.04},     {100000, 0.001, 10.1, 10.05},
                {1000000, 0.01, 7.05, 7.04},   {1000000, 0.001, 10.06, 10.05},
                {1000000000, 0.01, 7.04, 0},   {1000000000, 0.001, 10.05, 0},
                {1000000, 1.0 / 256, 9.1, 9.1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        seen_plan plan = plan_of(rows[i].items, rows[i].fpp);
        double n = (double)rows[i].items;
        assert_between((double)plan.bits / n, plan.width, rows[i].planned);
        if (rows[i].built == 0) continue;
        seen_filter *f = build(rows[i].items, rows[i].fpp);
        assert_between((double)info_of(f).bits / n, plan.width, rows[i].built);
        size_t len;
        free(saved(f, &len)); /* header and checksums, and nothing else */
        assert_between((double)(8 * len) - (double)info_of(f).bits, 2048,
                       8 * (512 + 64 * 9) + (double)info_of(f).bits / 16384);
        seen_free(f);
    }
}

static void plans_go_both_ways(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,    2,    7,     100,    1499,
                                     1500, 5000, 70000, 1000000};
    static const double rates[] = {0.9, 0.1, 0.004, 1e-4, 1e-9};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            seen_plan there = plan_of(sizes[i], rates[r]),
                      back = {.size = sizeof back};
            assert_true(there.fpp <= rates[r]);
            assert_true(seen_plan_fpp(&there, sizes[i]) == there.fpp);
            assert_true(seen_plan_fpp(&there, 0) == 0);
            assert_true(isnan(seen_plan_fpp(&there, sizes[i] + 1)));
            /* Its bits are enough, and one less is not. */
            seen_spec spec = {.kind = SEEN_RIBBON,
                              .items = sizes[i],
                              .fpp = rates[r],
                              .bits = there.bits};
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_int_equal(back.bits, there.bits);
            spec.fpp = 0;
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_true(back.bits <= there.bits && back.fpp <= there.fpp);
            spec.fpp = rates[r], spec.items = 0;
            assert_int_equal(seen_plan_for(&spec, &back, NULL), SEEN_OK);
            assert_true(back.items >= sizes[i]);
            assert_true(back.bits <= there.bits);
            spec.items = sizes[i], spec.bits = there.bits - 1;
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
        {{.items = ((uint64_t)1 << 40) + 1, .fpp = 0.1}, "items"},
        {{.items = 1000, .fpp = 1e-12}, "fpp"},
        {{.items = 1000, .bits = 999}, "bits"},
        {{.items = 1, .bits = 63}, "bits"},
        {{.fpp = 0.1, .bits = 7}, "bits"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        seen_spec spec = rows[i].spec;
        seen_plan plan = {.size = sizeof plan};
        spec.kind = SEEN_RIBBON;
        assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_INVALID);
        const char *problem = test_wrong_spec(&spec);
        if (!problem || !strstr(problem, rows[i].word))
            fail_msg("row %zu: %s", i, problem ? problem : "nothing wrong");
    }
    seen_spec spec = {
        .kind = SEEN_RIBBON, .items = 10, .fpp = 0.1, .flags = SEEN_CONCURRENT};
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_UNSUPPORTED);
}

static void it_takes_no_more(void **state)
{
    (void)state;
    seen_filter *f = build(3000, 0.01), *copy = NULL;
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
    seen_filter *other = build(3001, 0.01), *none = NULL;
    assert_false(seen_equal(f, other));
    seen_spec spec = {.kind = SEEN_RIBBON, .items = 10, .fpp = 0.01};
    assert_int_equal(seen_new(&none, &spec, NULL), SEEN_UNSUPPORTED);
    assert_null(none);
    seen_free(other);
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
        assert_true(info_of(f).fpp_now <= 0.012);
        seen_free(f);
    }
    test_batch_free(&b);
}

/* 3000 keys are two layers, the memory to sort the second, and no list. */
static void out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    static const size_t sizes[] = {3, 3000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct test_batch b = test_batch_new(0, sizes[i]);
        bool done = false;
        for (uint64_t nth = 1; !done; nth++) {
            struct test_alloc a;
            test_alloc_init(&a);
            a.fail_at = nth;
            seen_filter *f = NULL;
            seen_spec spec = {
                .kind = SEEN_RIBBON, .fpp = 0.01, .allocator = &a.as};
            seen_status status =
                seen_build(&f, &spec, seen_keys_of(b.keys, b.n), NULL);
            done = status == SEEN_OK;
            if (done) {
                assert_true(nth > 6);
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
}

/* ---- Hashes that are none ------------------------------------------------ */

/* Whoever brings such hashes gets a filter all the same: what the first layer
 * cannot take, the others can, which mix them. */
static void hashes_of_any_sort_have_a_filter(void **state)
{
    (void)state;
    enum {
        most = 50000
    };
    static uint64_t hashes[most];
    static bool answers[most];
    static const uint64_t sizes[] = {2, 50, 1000, 2000, most};
    struct test_rng r = test_rng(8);
    for (int sort = 0; sort < 5; sort++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            uint64_t n = sizes[s];
            for (uint64_t i = 0; i < n; i++)
                hashes[i] = sort == 0   ? i
                            : sort == 1 ? UINT64_MAX - i
                            : sort == 2 ? i << 48 /* repeats */
                            : sort == 3 ? (i % 2 ? i << 32 : ~(i << 32))
                                        : test_next(&r) >> 40;
            seen_filter *f = NULL;
            seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.01};
            assert_int_equal(
                seen_build(&f, &spec, seen_keys_hashes64(hashes, n), NULL),
                SEEN_OK);
            assert_int_equal(
                seen_maybe_many(f, seen_keys_hashes64(hashes, n), answers),
                SEEN_OK);
            for (uint64_t i = 0; i < n; i++)
                assert_true(answers[i]);
            assert_binomial(test_count_maybe(f, TEST_STRANGERS, 100000), 100000,
                            info_of(f).fpp_now);
            seen_free(f);
        }
}

/* ---- Layers -------------------------------------------------------------- */

/* A ribbon made by hand: all starts of all layers but the last are bumped, with
 * what is left of the payload at random; behind them a list. */
#define HAND_STARTS 1040 /* a bucket that is cut off at its end */

struct hand {
    struct seen_ribbon ribbon;
    uint8_t *pages[SEEN_RIBBON_LAYERS_MAX];
    size_t mapped[SEEN_RIBBON_LAYERS_MAX];
    uint8_t list[8 * 5];
    uint64_t listed[5]; /* hashes of keys that come there */
};

/* The bytes of a layer, and behind them memory that must not be touched. */
static uint8_t *at_the_edge(struct hand *h, uint32_t i, uint64_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t len = ((size_t)bytes + page - 1) / page * page;
    uint8_t *at = mmap(NULL, len + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + len, page, PROT_NONE), 0);
    h->pages[i] = at;
    h->mapped[i] = len + page;
    return at + len - bytes;
}

static uint64_t chained(const struct seen_ribbon *b, uint64_t hash,
                        uint32_t layers)
{
    for (uint32_t i = 0; i < layers; i++)
        hash = seen_ribbon_hash(&b->layer[i], hash);
    return hash;
}

static void make_by_hand(struct hand *h, uint32_t width, uint32_t layers,
                         uint32_t bumping, bool ring, struct test_rng *r)
{
    *h = (struct hand){
        .ribbon = {.width = width, .layers = layers, .ring = ring}};
    for (uint32_t i = 0; i < layers; i++) {
        struct seen_ribbon_layer *l = &h->ribbon.layer[i];
        l->starts = HAND_STARTS;
        l->seed = i % 2 ? test_next(r) : 0;
        uint64_t bytes = seen_ribbon_bytes(l->starts, width);
        l->groups = at_the_edge(h, i, bytes);
        l->thresholds = l->groups + seen_ribbon_group_bytes(l->starts, width);
        for (uint64_t j = 0; j < bytes; j++)
            l->groups[j] = (uint8_t)test_next(r);
        if (i < bumping)
            memset(l->thresholds, 0xff,
                   (size_t)seen_ribbon_threshold_bytes(l->starts));
    }
    uint64_t spare[5], sorted[5];
    for (int i = 0; i < 5; i++) {
        h->listed[i] = test_next(r);
        sorted[i] = chained(&h->ribbon, h->listed[i], layers);
    }
    seen_sort64(sorted, spare, 5);
    for (int i = 0; i < 5; i++)
        seen_put_le64(h->list + 8 * i, sorted[i]);
    h->ribbon.list = h->list;
    h->ribbon.listed = 5;
}

static void drop(struct hand *h)
{
    for (uint32_t i = 0; i < h->ribbon.layers; i++)
        munmap(h->pages[i], h->mapped[i]);
}

/* One bit after the other, as the header of bits/ribbon.h says it. */
static bool slow_maybe(const struct seen_ribbon *b, uint64_t x)
{
    for (uint32_t i = 0; i < b->layers; i++) {
        const struct seen_ribbon_layer *l = &b->layer[i];
        if (l->seed) x = seen_mix64(x + l->seed);
        uint64_t start = (uint64_t)(((seen_u128)x * l->starts) >> 64);
        uint32_t t = l->thresholds[start / 512] >> (start / 256 % 2 * 4) & 15;
        if (start % 256 < 8 * t || t == 15) continue;
        uint64_t y = x * 0xc2b2ae3d27d4eb4fu;
        y ^= y >> 32;
        uint64_t row = y | 1, z = y * 0xff51afd7ed558ccdu;
        for (uint32_t j = 0; j < b->width; j++) {
            uint32_t sum = z >> (32 + 2 * j + 1) % 64 & 1;
            for (uint32_t c = 0; c < 64; c++) {
                uint64_t slot = start + start / 65536 * 64 + c;
                uint64_t at = (slot / 16 * b->width + j) * 2 + slot % 16 / 8;
                sum ^= row >> c & 1 & (uint32_t)(l->groups[at] >> slot % 8);
            }
            if (sum & 1) return false;
        }
        return true;
    }
    for (uint64_t i = 0; i < b->listed; i++)
        if (seen_get_le64(b->list + 8 * i) == x) return true;
    return false;
}

static void check_kernel(const struct seen_ribbon_kernel *k,
                         const struct hand *h, struct test_rng *r)
{
    enum {
        n = 333,
        ahead = 20
    };
    seen_hash hashes[n + ahead];
    bool answers[n + 1];
    const struct seen_ribbon *b = &h->ribbon;
    for (size_t i = 0; i < n + ahead; i++)
        hashes[i] = (seen_hash){test_next(r), test_next(r)};
    memcpy(&hashes[50].lo, &h->listed[3], 8);
    hashes[60].lo = 0;
    hashes[61].lo = UINT64_MAX; /* the last start */
    for (size_t some = 0; some <= n; some += some < 40 ? 1 : 97)
        for (size_t later = 0; later <= ahead; later += ahead) {
            memset(answers, 2, sizeof answers);
            k->prefetch(b, hashes, some + later);
            k->maybe_many(b, hashes, some, later, answers);
            for (size_t i = 0; i < some; i++)
                assert_int_equal(answers[i], slow_maybe(b, hashes[i].lo));
            unsigned char untouched;
            memcpy(&untouched, answers + some, 1);
            assert_int_equal(untouched, 2);
        }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(k->maybe(b, hashes[i].lo),
                         slow_maybe(b, hashes[i].lo));
}

/* NULL: none of this name, or not on this processor. */
static const struct seen_ribbon_kernel *kernel_at(size_t index)
{
    const struct seen_kernel *k = seen_kernel_at(index);
    return k && k->usable() ? seen_ribbon_named(k->name) : NULL;
}

static void every_kernel_says_what_the_layout_says(void **state)
{
    (void)state;
    struct test_rng r = test_rng(21);
    size_t kernels = 0;
    for (size_t i = 0; seen_kernel_at(i); i++) {
        const struct seen_ribbon_kernel *k = kernel_at(i);
        if (!k) continue;
        kernels++;
        for (uint32_t width = 1; width <= WIDTH_MAX; width++)
            for (uint32_t layers = 0; layers <= 3; layers++)
                for (uint32_t bumping = 0; bumping <= layers; bumping++) {
                    struct hand h;
                    make_by_hand(&h, width, layers, bumping, test_below(&r, 2),
                                 &r);
                    check_kernel(k, &h, &r);
                    drop(&h);
                }
    }
    assert_true(kernels >= 1);
    assert_null(seen_ribbon_named("no such kernel"));
    assert_non_null(kernel_at(0));
    /* SEEN_CPU decides for ribbons as it does for lines. */
    assert_string_equal(seen_ribbon_best()->name, seen_kernel_best()->name);
}

/* A segment solved: bumped keys are those that its thresholds say, in order, all
 * others are found, and every kernel writes the same bytes. */
static void check_segment(uint32_t width, uint64_t starts, uint64_t n,
                          uint64_t segment, struct seen_ribbon_work *work,
                          struct test_rng *r)
{
    uint64_t *keys = calloc(3 * n + 1, sizeof *keys);
    uint64_t bytes = seen_ribbon_bytes(starts, width), first = 0, bumped = 0;
    uint8_t *expected = calloc(2, (size_t)bytes);
    if (!keys || !expected) abort();
    uint64_t *bumps = keys + n, *again = keys + 2 * n;
    const uint64_t from = segment * SEEN_RIBBON_SEGMENT;
    const uint64_t end = starts < from + SEEN_RIBBON_SEGMENT
                             ? starts
                             : from + SEEN_RIBBON_SEGMENT;
    for (uint64_t i = 0; i < n; i++)
        do
            keys[i] = test_next(r);
        while (seen_reduce(keys[i], starts) < from ||
               seen_reduce(keys[i], starts) >= end);
    seen_sort64(keys, bumps, n);

    for (size_t i = 0; seen_kernel_at(i); i++) {
        const struct seen_ribbon_kernel *k = kernel_at(i);
        if (!k) continue;
        uint8_t *at = expected + (first ? bytes : 0);
        struct seen_ribbon_layer l = {
            .groups = at,
            .thresholds = at + seen_ribbon_group_bytes(starts, width),
            .starts = starts};
        memset(at, 0, (size_t)bytes);
        uint64_t count = seen_ribbon_solve(k, &l, width, segment, keys, n,
                                           first ? again : bumps, work);
        if (first++) {
            assert_int_equal(count, bumped);
            assert_memory_equal(again, bumps, bumped * sizeof *bumps);
            assert_memory_equal(at, expected, bytes);
            continue;
        }
        bumped = count;
        struct seen_ribbon b = {.layer = {l}, .layers = 1, .width = width};
        uint64_t seen = 0;
        for (uint64_t j = 0; j < n; j++)
            if (seen_ribbon_bumped(&l, seen_reduce(keys[j], starts)))
                assert_int_equal(bumps[seen++], keys[j]);
            else
                assert_true(slow_maybe(&b, keys[j]));
        assert_int_equal(seen, bumped);
    }
    free(expected);
    free(keys);
}

static void a_segment_is_solved(void **state)
{
    (void)state;
    struct test_rng r = test_rng(5);
    struct seen_ribbon_work *work = malloc(sizeof *work);
    if (!work) abort();
    memset(work, 0xa5, sizeof *work); /* of an earlier segment */
    for (uint32_t width = 1; width <= WIDTH_MAX; width += 3)
        for (uint64_t starts = 16; starts < 2000; starts = 3 * starts - 16)
            for (uint64_t n = 0; n < 4 * starts; n = n * 2 + 37)
                check_segment(width, starts, n, 0, work, &r);
    for (uint64_t segment = 0; segment < 3; segment++)
        check_segment(9, 2 * SEEN_RIBBON_SEGMENT + 512,
                      segment < 2 ? 67000 : 590, segment, work, &r);
    free(work);
}

/* ---- Bytes from outside -------------------------------------------------- */

/* A filter whose state is spoiled in one place. */
static seen_status with_state(const seen_filter *f, size_t at, uint64_t value,
                              size_t more)
{
    uint8_t state[SEEN_STATE_MAX] = {0};
    seen_filter *g = calloc(1, f->ops->state_size);
    if (!g) abort();
    *g = *f;
    f->ops->shape(g);
    size_t len = f->ops->save_state(f, state);
    if (at < len) seen_put_le64(state + at, value);
    seen_status status = f->ops->load_state(g, state, len + more);
    free(g);
    return status;
}

static void no_state_but_its_own_is_taken(void **state)
{
    (void)state;
    seen_filter *f = build(5000, 0.01);
    enum {
        listed_at = 0,
        starts_at = 8,
        seed_at = 16,
        next_at = 24
    };
    assert_int_equal(with_state(f, 999, 0, 0), SEEN_OK);
    assert_int_equal(with_state(f, seed_at, 12345, 0), SEEN_OK);
    static const struct {
        size_t at;
        uint64_t value;
    } wrong[] = {{listed_at, 1},
                 {listed_at, UINT64_MAX},
                 {listed_at, UINT64_MAX / 8 + 1}, /* 8 times it is 8 */
                 {starts_at, 0},
                 {starts_at, 1},
                 {starts_at, 16},
                 {starts_at, UINT64_MAX},
                 {starts_at, UINT64_MAX - 15},
                 {starts_at, SEEN_RIBBON_STARTS_MAX + 16},
                 {next_at, 0},
                 {next_at, 17},
                 {next_at, (uint64_t)1 << 63}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(with_state(f, wrong[i].at, wrong[i].value, 0),
                         SEEN_CORRUPT);
    for (size_t more = 1; more < 300; more++)
        assert_int_equal(with_state(f, 999, 0, more), SEEN_CORRUPT);
    seen_free(f);
}

/* What a checksum would find is found without it, too, where it can matter: behind
 * the thresholds and in the list. Any other bit makes another filter. */
static void damaged_bits_are_found_or_harmless(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 7, 60, 300, 2000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        seen_filter *f = build(sizes[i], 0.01);
        struct seen_part part;
        uint64_t payload = 0;
        for (uint32_t p = 0; f->ops->part(f, p, &part); p++)
            payload += (part.len + 63) / 64 * 64;
        size_t len;
        uint8_t *bytes = saved(f, &len), *from = bytes + len - payload;
        for (uint64_t bit = 0; bit < 8 * payload; bit++) {
            from[bit / 8] ^= (uint8_t)(1u << bit % 8);
            seen_filter *view = NULL, *copy = NULL, *loaded = NULL;
            assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
            test_count_maybe(view, 0, 20);
            double now = info_of(view).fpp_now;
            assert_true(now >= 0 && now <= 1);
            if (seen_copy(&copy, view, NULL) == SEEN_OK) {
                test_count_maybe(copy, 0, 20);
                seen_free(copy);
            }
            seen_free(view);
            assert_int_equal(seen_load(&loaded, bytes, len, NULL, NULL, NULL),
                             SEEN_CORRUPT);
            from[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(bytes);
        seen_free(f);
    }
}

static void a_spoiled_part_is_not_copied(void **state)
{
    (void)state;
    /* The list of 7: not in order, twice the same. The layer of 300: its third
     * threshold is the last of two bytes, and two zeros follow. */
    static const struct {
        uint64_t items;
        int from_end; /* byte of the payload's only part */
        uint8_t value;
    } rows[] = {{7, 1, 0}, {300, 1, 1}, {300, 2, 0x80}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        seen_filter *f = build(rows[i].items, 0.01), *view = NULL;
        struct seen_part part, none;
        assert_true(f->ops->part(f, 0, &part));
        assert_false(f->ops->part(f, 1, &none));
        size_t len;
        uint8_t *bytes = saved(f, &len);
        uint8_t *payload = bytes + len - (part.len + 63) / 64 * 64;
        if (rows[i].items == 7)
            memcpy(payload + 8 * 3, payload + 8 * 2, 8);
        else
            payload[part.len - (uint64_t)rows[i].from_end] = rows[i].value;
        assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
        test_count_maybe(view, 0, 1000);
        seen_filter *copy = NULL;
        assert_int_equal(seen_copy(&copy, view, NULL), SEEN_CORRUPT);
        seen_free(view);
        free(bytes);
        seen_free(f);
    }
}

/* ---- Keys that come one after the other --------------------------------- */

static seen_spec one_in_a_thousand(void)
{
    return (seen_spec){.kind = SEEN_RIBBON, .fpp = 0.001};
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
        cmocka_unit_test(every_key_is_there_at_every_width),
        cmocka_unit_test(of_nothing_everything_is_never),
        cmocka_unit_test(the_same_keys_give_the_same_bytes),
        cmocka_unit_test(the_rate_is_two_to_the_minus_bits),
        cmocka_unit_test(it_costs_what_the_documents_say),
        cmocka_unit_test(plans_go_both_ways),
        cmocka_unit_test(impossible_wishes_are_refused),
        cmocka_unit_test(it_takes_no_more),
        cmocka_unit_test(other_kinds_are_built_too),
        cmocka_unit_test(out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(hashes_of_any_sort_have_a_filter),
        cmocka_unit_test(every_kernel_says_what_the_layout_says),
        cmocka_unit_test(a_segment_is_solved),
        cmocka_unit_test(no_state_but_its_own_is_taken),
        cmocka_unit_test(damaged_bits_are_found_or_harmless),
        cmocka_unit_test(a_spoiled_part_is_not_copied),
    };
    test_announce("ribbon");
    return cmocka_run_group_tests_name("ribbon", tests, NULL, NULL);
}
