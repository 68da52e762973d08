/*
 * test_kernels.c - every kernel is the portable one, bit for bit: the same
 * words after the same keys, the same answers, the same count of new keys.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "bits/lines.h"

#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

#define MAX_REGIONS 5
#define MAX_COUNT   37
#define MAX_WORDS   (MAX_REGIONS * MAX_COUNT * SEEN_LINE_WORDS)
#define MAX_KEYS    240

/* Two filters of one shape, for the reference and for the kernel under test.
 * The guards behind them catch a write past the end. */
struct pair {
    _Alignas(64) uint64_t expected[MAX_WORDS + 8];
    _Alignas(64) uint64_t actual[MAX_WORDS + 8];
    struct seen_lines reference, under_test;
    size_t words;
};

static struct pair pair;

static void open_pair(uint32_t log_w, uint32_t regions, uint64_t count,
                      bool wide, bool ring)
{
    pair.words = (size_t)(regions * count * SEEN_LINE_WORDS);
    memset(pair.expected, 0, sizeof pair.expected);
    memset(pair.actual, 0, sizeof pair.actual);
    for (size_t i = pair.words; i < MAX_WORDS + 8; i++)
        pair.actual[i] = pair.expected[i] = 0xdeadbeefdeadbeefu;
    pair.reference =
        (struct seen_lines){pair.expected, count, regions, log_w, wide, ring};
    pair.under_test = pair.reference;
    pair.under_test.words = pair.actual;
}

static void assert_same_words(const struct seen_kernel *k)
{
    if (memcmp(pair.expected, pair.actual, sizeof pair.actual) == 0) return;
    fail_msg("%s: words differ; log_w %u, regions %u, wide %d, ring %d",
             k->name, pair.reference.log_w, pair.reference.regions,
             pair.reference.wide, pair.reference.ring);
}

/* Some keys twice, so that some answers are "seen". */
static void fill_hashes(struct test_rng *r, seen_hash *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h[i] = (seen_hash){test_next(r), test_next(r)};
        if (i > 0 && test_below(r, 4) == 0) h[i] = h[test_below(r, i)];
    }
}

static void check_single(const struct seen_kernel *k, struct test_rng *r)
{
    const struct seen_kernel *ref = &seen_kernel_portable;
    seen_hash h[60];
    fill_hashes(r, h, 60);
    for (size_t i = 0; i < 60; i++) {
        bool maybe = ref->maybe(&pair.reference, h[i]);
        assert_int_equal(k->maybe(&pair.under_test, h[i]), maybe);
        assert_int_equal(ref->visit(&pair.reference, h[i]), maybe);
        assert_int_equal(k->visit(&pair.under_test, h[i]), maybe);
        assert_true(k->maybe(&pair.under_test, h[i]));
    }
    assert_same_words(k);
}

static void check_many(const struct seen_kernel *k, struct test_rng *r,
                       size_t n, size_t ahead)
{
    const struct seen_kernel *ref = &seen_kernel_portable;
    seen_hash h[MAX_KEYS];
    bool expected[MAX_KEYS + 1], actual[MAX_KEYS + 1];
    fill_hashes(r, h, n + ahead);
    memset(actual, 2, sizeof actual);

    ref->maybe_many(&pair.reference, h, n, ahead, expected);
    k->maybe_many(&pair.under_test, h, n, ahead, actual);
    assert_memory_equal(actual, expected, n);

    size_t fresh = ref->visit_many(&pair.reference, h, n, ahead, expected);
    assert_int_equal(k->visit_many(&pair.under_test, h, n, ahead, actual),
                     fresh);
    assert_memory_equal(actual, expected, n);
    unsigned char untouched;
    memcpy(&untouched, actual + n, 1);
    assert_int_equal(untouched, 2);
    assert_same_words(k);

    assert_int_equal(k->visit_many(&pair.under_test, h, n, ahead, NULL), 0);
    assert_same_words(k);
}

static bool in_region(const struct seen_lines *b, uint32_t region, seen_hash h)
{
    struct seen_probe p = seen_probe_of(h, b->wide);
    uint64_t word = seen_probe_word(p, region);
    return seen_line_maybe(seen_lines_at(b, region, word),
                           (uint32_t)(word + p.stir), 3);
}

/* One region, about all keys or about some, against line.h; and two arrays,
 * for which the first regions of this one serve, the second as if it had fewer
 * lines. */
static void check_regions(const struct seen_kernel *k, struct test_rng *r,
                          size_t n)
{
    const struct seen_lines *b = &pair.under_test;
    seen_hash h[MAX_KEYS];
    uint16_t list[MAX_KEYS];
    fill_hashes(r, h, MAX_KEYS);
    for (size_t i = 0; i < n; i++) {
        list[i] = (uint16_t)test_below(r, MAX_KEYS);
        if (i % 3 == 0) k->visit(&pair.under_test, h[list[i]]);
    }
    for (uint32_t region = 0; region < b->regions; region++)
        for (int listed = 0; listed < 2; listed++) {
            uint64_t bits[MAX_KEYS / 64 + 2] = {0};
            bits[(n + 63) / 64] = 12345; /* not its own */
            k->ask_region(b, region, h, listed ? list : NULL, n, bits);
            for (size_t j = 0; j < n; j++)
                assert_int_equal(bits[j / 64] >> (j % 64) & 1,
                                 in_region(b, region, h[listed ? list[j] : j]));
            if (n % 64) assert_int_equal(bits[n / 64] >> (n % 64), 0);
            assert_int_equal(bits[(n + 63) / 64], 12345);
        }

    struct seen_lines fewer = *b;
    fewer.count = (b->count + 1) / 2;
    fewer.ring = test_below(r, 2);
    for (int listed = 0; listed < 2; listed++) {
        uint64_t bits[MAX_KEYS / 64 + 2] = {0};
        k->ask_two(b, &fewer, h, listed ? list : NULL, n, bits);
        for (size_t j = 0; j < n; j++) {
            seen_hash now = h[listed ? list[j] : j];
            assert_int_equal(bits[j / 64] >> (j % 64) & 1,
                             in_region(b, 0, now) || in_region(&fewer, 0, now));
        }
    }
}

static void check_shape(const struct seen_kernel *k, struct test_rng *r,
                        uint32_t log_w, uint32_t regions, bool wide, bool ring)
{
    static const uint64_t counts[] = {1, 2, MAX_COUNT};
    for (size_t c = 0; c < 3; c++) {
        open_pair(log_w, regions, counts[c], wide, ring);
        check_single(k, r);
        open_pair(log_w, regions, counts[c], wide, ring);
        for (size_t n = 0; n <= 200; n += n < 70 ? 1 : 13)
            check_many(k, r, n, (size_t)test_below(r, MAX_KEYS - 200));
        open_pair(log_w, regions, counts[c], wide, ring);
        for (size_t n = 0; log_w == 3 && n <= 200; n += n < 70 ? 7 : 29)
            check_regions(k, r, n);
    }
}

static void check_kernel(const struct seen_kernel *k)
{
    if (!k->usable()) {
        print_message("%s: not on this processor\n", k->name);
        return;
    }
    struct test_rng r = test_rng(17);
    for (uint32_t log_w = 0; log_w <= 3; log_w++)
        for (uint32_t regions = 1; regions <= MAX_REGIONS; regions++)
            for (int wide = 0; wide < 2; wide++)
                for (int ring = 0; ring < 2; ring++)
                    check_shape(k, &r, log_w, regions, wide, ring);
}

static void every_kernel_agrees_with_the_portable_one(void **state)
{
    (void)state;
    const struct seen_kernel *k;
    size_t i = 0;
    for (; (k = seen_kernel_at(i)); i++)
        check_kernel(k);
    assert_ptr_equal(seen_kernel_at(i - 1), &seen_kernel_portable);
    assert_null(seen_kernel_at(i + 1000));
}

static void concurrent_kernel_agrees_with_the_portable_one(void **state)
{
    (void)state;
    assert_true(seen_kernel_concurrent.usable());
    check_kernel(&seen_kernel_concurrent);
}

/* ---- Runs --------------------------------------------------------------- */

#define RUN_LINES 9 /* lines in a run times lines in a region fit the pair */

/* Slots side by side are as many filters apart: the portable kernel on plain
 * lines, one filter for each slot, is the specification. */
static void check_runs(const struct seen_kernel *k, struct test_rng *r,
                       uint32_t slots, uint32_t log_w, uint32_t regions,
                       bool wide, bool ring)
{
    static _Alignas(64) uint64_t apart[SEEN_SLOTS_MAX][MAX_WORDS];
    const struct seen_kernel *ref = &seen_kernel_portable;
    const uint64_t count = MAX_COUNT / slots;
    open_pair(log_w, regions, count * slots, wide, ring);
    memset(apart, 0, sizeof apart);
    struct seen_runs runs = {pair.under_test, slots};
    struct seen_lines one[RUN_LINES];
    runs.lines.count = count;
    for (uint32_t s = 0; s < slots; s++) {
        one[s] = runs.lines;
        one[s].words = apart[s];
    }
    for (int round = 0; round < 12; round++) {
        seen_hash h[MAX_KEYS];
        bool before[MAX_KEYS], answers[MAX_KEYS];
        size_t n = 1 + (size_t)test_below(r, 60);
        size_t ahead = (size_t)test_below(r, MAX_KEYS - 60);
        uint32_t slot = (uint32_t)test_below(r, slots);
        uint64_t asked = test_next(r), room = 1 + test_below(r, 40);
        fill_hashes(r, h, n + ahead);

        struct seen_turn turn = {asked, slot, room};
        bool told = test_below(r, 2);
        size_t took =
            k->turn_many(&runs, h, n, ahead, &turn, told ? before : NULL);
        assert_true(took >= 1 && took <= n);
        for (size_t i = 0; i < took; i++) {
            bool any = false;
            for (uint32_t s = 0; s < slots; s++)
                any |= asked >> s & ref->maybe(&one[s], h[i]);
            if (told) assert_int_equal(before[i], any);
            assert_true(room > 0);
            room -= !ref->visit(&one[slot], h[i]);
        }
        assert_int_equal(turn.room, room);
        assert_true(took == n || room == 0);

        k->find_many(&runs, h, n, ahead, asked, answers);
        for (size_t i = 0; i < n; i++) {
            uint64_t found = 0;
            for (uint32_t s = 0; s < slots; s++)
                found |= (uint64_t)ref->maybe(&one[s], h[i]) << s;
            assert_true(k->find(&runs, h[i]) == found);
            assert_int_equal(answers[i], (found & asked) != 0);
        }
    }
    for (uint64_t line = 0; line < regions * count; line++)
        for (uint32_t s = 0; s < slots; s++)
            memcpy(pair.expected + (line * slots + s) * SEEN_LINE_WORDS,
                   apart[s] + line * SEEN_LINE_WORDS, 64);
    assert_same_words(k);
}

static void check_runs_of(const struct seen_kernel *k)
{
    struct test_rng r = test_rng(19);
    if (!k->usable()) return;
    for (uint32_t slots = 1; slots <= RUN_LINES; slots++)
        for (uint32_t log_w = 0; log_w <= 3; log_w++)
            for (uint32_t regions = 1; regions <= 3; regions++)
                for (int wide = 0; wide < 2; wide++)
                    for (int ring = 0; ring < 2; ring++)
                        check_runs(k, &r, slots, log_w, regions, wide, ring);
}

static void runs_are_filters_side_by_side(void **state)
{
    (void)state;
    const struct seen_kernel *k;
    for (size_t i = 0; (k = seen_kernel_at(i)); i++)
        check_runs_of(k);
    check_runs_of(&seen_kernel_concurrent);
}

/* The portable kernel against line.h and probe/, with nothing in between. */
static void portable_kernel_is_the_specification(void **state)
{
    (void)state;
    struct test_rng r = test_rng(18);
    for (uint32_t log_w = 0; log_w <= 3; log_w++)
        for (uint32_t regions = 1; regions <= MAX_REGIONS; regions++)
            for (int wide = 0; wide < 2; wide++) {
                open_pair(log_w, regions, MAX_COUNT, wide, false);
                for (int i = 0; i < 200; i++) {
                    seen_hash h = {test_next(&r), test_next(&r)};
                    seen_kernel_portable.visit(&pair.reference, h);
                    for (uint32_t region = 0; region < regions; region++) {
                        uint64_t step = wide ? h.hi | 1 : 0x9e3779b97f4a7c15u;
                        uint64_t word =
                            region ? test_mix(h.lo + region * step) : h.lo;
                        uint64_t line =
                            region * MAX_COUNT + seen_reduce(word, MAX_COUNT);
                        uint32_t x = (uint32_t)(wide ? word + h.hi : word);
                        for (uint32_t g = 0; g < 1u << log_w; g++) {
                            uint64_t bit =
                                line * 512 + seen_line_bit(x, g, log_w);
                            pair.actual[bit / 64] |= (uint64_t)1 << bit % 64;
                        }
                    }
                }
                assert_same_words(&seen_kernel_portable);
            }
}

/* The choice is made once, so each question needs a process of its own; this
 * one runs with SEEN_CPU as the suite sets it. */
static void the_kernel_in_use_is_the_one_asked_for(void **state)
{
    (void)state;
    const char *wanted = getenv("SEEN_CPU");
    const struct seen_kernel *best = seen_kernel_best();
    assert_true(best->usable());
    if (wanted && strcmp(wanted, "portable") == 0)
        assert_string_equal(best->name, "portable");
    if (!wanted) {
        size_t i = 0;
        while (!seen_kernel_at(i)->usable())
            i++;
        assert_ptr_equal(best, seen_kernel_at(i));
    }
    setenv("SEEN_CPU", "portable", 1);
    assert_ptr_equal(seen_kernel_best(), best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernel_is_the_specification),
        cmocka_unit_test(every_kernel_agrees_with_the_portable_one),
        cmocka_unit_test(concurrent_kernel_agrees_with_the_portable_one),
        cmocka_unit_test(runs_are_filters_side_by_side),
        cmocka_unit_test(the_kernel_in_use_is_the_one_asked_for),
    };
    test_announce("kernels");
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
