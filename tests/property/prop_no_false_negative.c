/*
 * prop_no_false_negative.c - the law of laws: a key that was added is never
 * answered with "never".
 *
 * Random filters of every kind, size, rate and set of flags; keys added and
 * asked for one by one and in batches, as bytes of any length and as hashes;
 * far beyond the capacity too; through copies and merges. 5 million operations
 * times SEEN_TEST_SCALE.
 */
#include "seen.h"

#include "helpers/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST  1000000
#define CHUNK 5000

static uint64_t operations, misses;

/* ---- Keys of all lengths ------------------------------------------------ */

/* Some filters get 8-byte keys, some keys of 8 to 71 bytes. Key i always is
 * the same bytes. */
struct keyring {
    bool varied;
    size_t n;
    seen_key keys[CHUNK];
    uint64_t bytes[CHUNK][9];
};

static struct keyring ring;

static void fill_ring(uint64_t first, size_t n)
{
    ring.n = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = test_key(first + i);
        size_t len = ring.varied ? 8 + key % 64 : 8;
        for (size_t w = 0; w * 8 < len; w++)
            ring.bytes[i][w] = key + w;
        ring.keys[i] = (seen_key){ring.bytes[i], len};
    }
}

/* ---- Ways to add and to ask --------------------------------------------- */

static void add_single(seen_filter *f)
{
    for (size_t i = 0; i < ring.n; i++)
        if (seen_add(f, ring.keys[i].data, ring.keys[i].len)) misses++;
}

static void add_visiting(seen_filter *f)
{
    bool before;
    for (size_t i = 0; i < ring.n; i++)
        if (seen_visit(f, ring.keys[i].data, ring.keys[i].len, &before))
            misses++;
}

static void add_batch(seen_filter *f)
{
    size_t added;
    if (seen_add_many(f, ring.keys, ring.n, &added) || added != ring.n)
        misses++;
}

static void add_visiting_batch(seen_filter *f)
{
    static bool before[CHUNK];
    if (seen_visit_many(f, ring.keys, ring.n, before, NULL)) misses++;
}

static void add_hashed(seen_filter *f)
{
    static seen_hash hashes[CHUNK];
    seen_hash_many(f, ring.keys, ring.n, hashes);
    if (seen_add_many_hashed(f, hashes, ring.n, NULL)) misses++;
}

static void (*const ways_to_add[])(seen_filter *f) = {
    add_single, add_visiting, add_batch, add_visiting_batch, add_hashed};

static void ask_single(const seen_filter *f)
{
    for (size_t i = 0; i < ring.n; i++)
        misses += !seen_maybe(f, ring.keys[i].data, ring.keys[i].len);
}

static void ask_batch(const seen_filter *f)
{
    static bool answers[CHUNK];
    memset(answers, 0, sizeof answers);
    seen_maybe_many(f, ring.keys, ring.n, answers);
    for (size_t i = 0; i < ring.n; i++)
        misses += !answers[i];
}

static void ask_hashed(const seen_filter *f)
{
    for (size_t i = 0; i < ring.n; i++) {
        seen_hash h = seen_hash_key(f, ring.keys[i].data, ring.keys[i].len);
        misses += !seen_maybe_hashed(f, h);
    }
}

static void (*const ways_to_ask[])(const seen_filter *f) = {
    ask_single, ask_batch, ask_hashed};

static void add_range(seen_filter *f, struct test_rng *r, uint64_t first,
                      uint64_t n)
{
    for (uint64_t at = 0; at < n; at += CHUNK) {
        fill_ring(first + at, (size_t)(n - at < CHUNK ? n - at : CHUNK));
        ways_to_add[test_below(r, 5)](f);
    }
    operations += n;
}

static void ask_range(const seen_filter *f, struct test_rng *r, uint64_t first,
                      uint64_t n)
{
    for (uint64_t at = 0; at < n; at += CHUNK) {
        fill_ring(first + at, (size_t)(n - at < CHUNK ? n - at : CHUNK));
        ways_to_ask[test_below(r, 3)](f);
    }
    operations += n;
}

/* ---- Random filters ----------------------------------------------------- */

static uint32_t random_flags(struct test_rng *r, seen_kind kind)
{
    uint32_t flags = (uint32_t)test_below(r, 4);
    return test_kind_can(kind, flags) ? flags : 0;
}

static seen_spec random_spec(struct test_rng *r, seen_kind kind, uint64_t n)
{
    seen_spec spec = {.kind = kind,
                      .fpp = 0.5 * pow(10, -10 * test_unit(r)),
                      .flags = random_flags(r, kind),
                      .key = test_secret};
    /* One in four is planned for a fraction of what will come. */
    spec.items = test_below(r, 4) ? n : n / 10 + 1;
    spec.last = test_last(kind, n);
    if (test_kind_counts(kind)) { /* those have a limit: full, and a rate */
        spec.items = n + n / 4 + 1;
        if (spec.fpp < 1e-8) spec.fpp = 1e-8;
    }
    return spec;
}

static uint64_t random_size(struct test_rng *r)
{
    return (uint64_t)pow(MOST, test_unit(r) * 1.0001);
}

static void one_filter(struct test_rng *r, seen_kind kind, uint64_t most)
{
    uint64_t n = random_size(r);
    if (n > most) n = most;
    if (n < 1) n = 1;
    seen_spec spec = random_spec(r, kind, n);
    ring.varied = test_below(r, 3) == 0;
    uint64_t first = test_below(r, TEST_STRANGERS / 2);

    seen_filter *f = test_filter(spec);
    add_range(f, r, first, n);
    ask_range(f, r, first, n);

    /* Half of it again, through a copy and through a union. */
    if (test_below(r, 4) == 0 && !test_kind_forgets(kind)) {
        seen_filter *copy = NULL, *more = test_filter(spec);
        assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
        add_range(more, r, first + n, n / 4 + 1);
        assert_int_equal(seen_merge(copy, more, SEEN_UNION), SEEN_OK);
        ask_range(copy, r, first, n);
        ask_range(copy, r, first + n, n / 4 + 1);
        if (test_kind_is_set(kind)) {
            assert_int_equal(seen_merge(copy, f, SEEN_INTERSECTION), SEEN_OK);
            ask_range(copy, r, first, n);
        }
        seen_free(copy);
        seen_free(more);
    }
    seen_free(f);
    if (misses)
        fail_msg("%zu misses: kind %s, n %zu, fpp %g, flags %u, first %zu",
                 (size_t)misses, seen_kind_name(kind), (size_t)n, spec.fpp,
                 spec.flags, (size_t)first);
}

static void an_added_key_is_never_denied(void **state)
{
    (void)state;
    struct test_rng r = test_rng(50);
    const uint64_t wanted = 5000000 * test_scale();
    size_t kinds = 0;
    while (test_kind_at(kinds) != SEEN_ANY)
        kinds++;
    for (size_t i = 0; operations < wanted; i++)
        one_filter(&r, test_kind_at(i % kinds), MOST);
    print_message("%zu false negatives\n", (size_t)misses);
    test_tried(operations, "operations");
}

/* Every small size, where positions and lines run out. */
static void small_filters_deny_nothing_either(void **state)
{
    (void)state;
    struct test_rng r = test_rng(51);
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++)
        for (uint64_t n = 1; n <= 200; n++)
            one_filter(&r, kind, n);
}

/* Planned by bits alone, down to the smallest there are. */
static void tiny_bit_counts_deny_nothing_either(void **state)
{
    (void)state;
    struct test_rng r = test_rng(52);
    ring.varied = false;
    for (uint64_t bits = 1; bits < 2100; bits += 1 + bits / 64) {
        seen_filter *f = test_filter((seen_spec){
            .kind = SEEN_BLOOM, .bits = bits, .items = bits / 10 + 1});
        add_range(f, &r, 0, bits);
        ask_range(f, &r, 0, bits);
        seen_free(f);
        if (bits < 512) continue;
        f = test_filter((seen_spec){
            .kind = SEEN_BLOCKED, .bits = bits, .items = bits / 10 + 1});
        add_range(f, &r, 0, bits);
        ask_range(f, &r, 0, bits);
        seen_free(f);
    }
    assert_int_equal(misses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_filters_deny_nothing_either),
        cmocka_unit_test(tiny_bit_counts_deny_nothing_either),
        cmocka_unit_test(an_added_key_is_never_denied),
    };
    test_announce("no_false_negative");
    return cmocka_run_group_tests_name("no_false_negative", tests, NULL, NULL);
}
