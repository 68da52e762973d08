/* test_probe.c - how a hash becomes words, positions and lines. */
#include "probe/native.h"

#include "bits/lines.h"
#include "hash/hash.h"
#include "helpers/binomial.h"

#define WORDS 255

static void words_of_one_key_are_distinct(void **state)
{
    (void)state;
    struct test_rng r = test_rng(11);
    for (int i = 0; i < 200; i++) {
        seen_hash h = {test_next(&r), test_next(&r)};
        for (int wide = 0; wide < 2; wide++) {
            struct seen_probe p = seen_probe_of(h, wide);
            uint64_t words[WORDS];
            for (uint32_t a = 0; a < WORDS; a++) {
                words[a] = seen_probe_word(p, a);
                for (uint32_t b = 0; b < a; b++)
                    assert_true(words[a] != words[b]);
            }
        }
    }
}

static void first_word_is_the_hash_itself(void **state)
{
    (void)state;
    seen_hash h = {0x0123456789abcdefu, 0xfedcba9876543210u};
    assert_true(seen_probe_word(seen_probe_of(h, false), 0) == h.lo);
    assert_true(seen_probe_word(seen_probe_of(h, true), 0) == h.lo);
}

/* The contract of docs/FORMAT.md, written out a second time. */
static void words_follow_the_specification(void **state)
{
    (void)state;
    seen_hash h = {42, 1000};
    struct seen_probe narrow = seen_probe_of(h, false);
    struct seen_probe wide = seen_probe_of(h, true);
    for (uint32_t i = 1; i < 40; i++) {
        assert_true(seen_probe_word(narrow, i) ==
                    test_mix(42 + i * 0x9e3779b97f4a7c15u));
        assert_true(seen_probe_word(wide, i) == test_mix(42 + i * 1001u));
    }
    assert_true(narrow.stir == 0);
    assert_true(wide.stir == 1000);
}

static void narrow_ignores_hi_and_wide_reads_it(void **state)
{
    (void)state;
    seen_hash a = {7, 0x100}, b = {7, 0x200};
    struct seen_probe pa = seen_probe_of(a, false),
                      pb = seen_probe_of(b, false);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(seen_probe_word(pa, i) == seen_probe_word(pb, i));
    pa = seen_probe_of(a, true), pb = seen_probe_of(b, true);
    for (uint32_t i = 1; i < 20; i++)
        assert_true(seen_probe_word(pa, i) != seen_probe_word(pb, i));
    assert_true(pa.stir != pb.stir);
}

/* 1000 lines, real keys 0, 1, 2 ... through the real hash, each region. */
static void choice_of_lines_is_unbiased_in_every_region(void **state)
{
    (void)state;
    enum {
        LINES = 1000,
        PER_LINE = 300
    };
    const uint8_t secret[16] = {0};
    const struct seen_hash_fn *fn;
    for (size_t at = 0; (fn = seen_hash_at(at)); at++)
        for (uint32_t region = 0; region < 4 && !fn->plain; region++) {
            uint32_t hits[LINES] = {0};
            for (uint64_t key = 0; key < LINES * PER_LINE; key++) {
                seen_hash h = fn->one(secret, &key, sizeof key);
                struct seen_probe p = seen_probe_of(h, fn->bits == 128);
                hits[seen_probe_position(p, region, LINES)]++;
            }
            double chi = 0;
            for (int i = 0; i < LINES; i++) {
                double d = (double)hits[i] - PER_LINE;
                chi += d * d / PER_LINE;
            }
            assert_between(chi, 780, test_chi_square_limit(LINES - 1));
        }
}

/* Words 1 and 2 of a key, cut to a 32 x 32 board: every square alike. */
static void words_are_independent_of_each_other(void **state)
{
    (void)state;
    enum {
        SIDE = 32,
        PER_SQUARE = 300
    };
    struct test_rng r = test_rng(12);
    for (uint32_t first = 0; first < 3; first++)
        for (int wide = 0; wide < 2; wide++) {
            uint32_t hits[SIDE][SIDE] = {{0}};
            for (uint32_t i = 0; i < SIDE * SIDE * PER_SQUARE; i++) {
                seen_hash h = {test_next(&r), test_next(&r)};
                struct seen_probe p = seen_probe_of(h, wide);
                hits[seen_probe_position(p, first, SIDE)]
                    [seen_probe_position(p, first + 1, SIDE)]++;
            }
            double chi = 0;
            for (int i = 0; i < SIDE * SIDE; i++) {
                double d = (double)hits[i / SIDE][i % SIDE] - PER_SQUARE;
                chi += d * d / PER_SQUARE;
            }
            assert_between(chi, 800, test_chi_square_limit(SIDE * SIDE - 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_one_key_are_distinct),
        cmocka_unit_test(first_word_is_the_hash_itself),
        cmocka_unit_test(words_follow_the_specification),
        cmocka_unit_test(narrow_ignores_hi_and_wide_reads_it),
        cmocka_unit_test(choice_of_lines_is_unbiased_in_every_region),
        cmocka_unit_test(words_are_independent_of_each_other),
    };
    test_announce("probe");
    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
