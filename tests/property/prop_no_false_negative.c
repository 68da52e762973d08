/*
 * prop_no_false_negative.c - the law of laws: a key that was added is never
 * answered with "never".
 *
 * Random filters of every kind, size, rate and set of flags; keys added and
 * asked for one by one and in batches, as bytes of any length and as hashes;
 * far beyond the capacity too; through copies and merges. Kinds that are built get
 * their keys in pieces, bitmaps get integers, and filters of other systems are
 * made by every dialect. At least 6 million operations times SEEN_TEST_SCALE.
 */
#include "seen.h"

#include "helpers/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST  1000000
#define CHUNK 5000

static uint64_t operations, misses, unions;

/* ---- Keys of all lengths ------------------------------------------------ */

/* Some filters get 8-byte keys, some keys of 8 to 71 bytes, bitmaps integers below
 * their bound. Key i always is the same bytes. */
struct keyring {
    bool varied;
    bool unhashed;  /* the filter has no use for our hashes */
    uint64_t bound; /* 0: none */
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
        for (size_t b = 0; ring.bound && b < 8; b++)
            ((uint8_t *)ring.bytes[i])[b] =
                (uint8_t)(key % ring.bound >> 8 * b);
        ring.keys[i] = (seen_key){ring.bytes[i], len};
    }
}

/* For the next filter; all else about it is chosen by others. */
static void choose_keys(struct test_rng *r, bool unhashed, uint64_t bound)
{
    ring.varied = !bound && test_below(r, 3) == 0;
    ring.unhashed = unhashed;
    ring.bound = bound;
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
    if (seen_add_many(f, seen_keys_of(ring.keys, ring.n), &added) ||
        added != ring.n)
        misses++;
}

static void add_visiting_batch(seen_filter *f)
{
    static bool before[CHUNK];
    if (seen_visit_many(f, seen_keys_of(ring.keys, ring.n), before, NULL))
        misses++;
}

static void add_hashed(seen_filter *f)
{
    static seen_hash hashes[CHUNK];
    seen_hash_many(f, seen_keys_of(ring.keys, ring.n), hashes);
    if (seen_add_many(f, seen_keys_hashes(hashes, ring.n), NULL)) misses++;
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
    seen_maybe_many(f, seen_keys_of(ring.keys, ring.n), answers);
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
        ways_to_add[test_below(r, ring.unhashed ? 4 : 5)](f);
    }
    operations += n;
}

static void ask_range(const seen_filter *f, struct test_rng *r, uint64_t first,
                      uint64_t n)
{
    for (uint64_t at = 0; at < n; at += CHUNK) {
        fill_ring(first + at, (size_t)(n - at < CHUNK ? n - at : CHUNK));
        ways_to_ask[test_below(r, ring.unhashed ? 2 : 3)](f);
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
                      .secret = test_secret};
    /* One in four is planned for a fraction of what will come. */
    spec.items = test_below(r, 4) ? n : n / 10 + 1;
    spec.last = test_last(kind, n);
    if (test_kind_counts(kind)) { /* those have a limit: full, and a rate */
        spec.items = n + n / 4 + 1;
        if (spec.fpp < 1e-8) spec.fpp = 1e-8;
    }
    return spec;
}

static uint64_t random_size(struct test_rng *r, uint64_t most)
{
    uint64_t n = (uint64_t)pow(MOST, test_unit(r) * 1.0001);
    return n < 1 ? 1 : n < most ? n : most;
}

/* The same keys in a copy, and more through a union; `is_set`: and through an
 * intersection. */
static void through_others(const seen_filter *f, struct test_rng *r,
                           seen_spec spec, uint64_t first, uint64_t n,
                           bool is_set)
{
    seen_filter *copy = NULL, *more = test_filter(spec);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    add_range(more, r, first + n, n / 4 + 1);
    assert_int_equal(seen_merge(copy, more, SEEN_UNION, NULL), SEEN_OK);
    ask_range(copy, r, first, n);
    ask_range(copy, r, first + n, n / 4 + 1);
    if (is_set) {
        assert_int_equal(seen_merge(copy, f, SEEN_INTERSECTION, NULL), SEEN_OK);
        ask_range(copy, r, first, n);
    }
    seen_free(copy);
    seen_free(more);
}

static void assert_no_misses(const seen_spec *spec, uint64_t first, uint64_t n)
{
    if (misses)
        fail_msg("%zu misses: %s, n %zu, fpp %g, flags %u, first %zu",
                 (size_t)misses,
                 spec->dialect ? spec->dialect : seen_kind_name(spec->kind),
                 (size_t)n, spec->fpp, spec->flags, (size_t)first);
}

static uint64_t random_first(struct test_rng *r)
{
    return test_below(r, TEST_STRANGERS / 2);
}

/* ---- Kinds that keys are added to --------------------------------------- */

static void one_open(struct test_rng *r, seen_kind kind, uint64_t n)
{
    seen_spec spec = random_spec(r, kind, n);
    choose_keys(r, false, 0);
    uint64_t first = random_first(r);

    seen_filter *f = test_filter(spec);
    add_range(f, r, first, n);
    ask_range(f, r, first, n);
    if (test_below(r, 4) == 0 && !test_kind_forgets(kind))
        through_others(f, r, spec, first, n, test_kind_is_set(kind));
    seen_free(f);
    assert_no_misses(&spec, first, n);
}

/* The bound is the filter's, and may be raised on the way. */
static void one_bitmap(struct test_rng *r, uint64_t n)
{
    uint64_t bound = 1 + test_below(r, 4 * n), first = random_first(r);
    seen_spec spec = {.kind = SEEN_BITMAP, .bits = bound};
    choose_keys(r, false, bound);

    seen_filter *f = test_filter(spec);
    add_range(f, r, first, n);
    if (test_below(r, 2))
        assert_int_equal(seen_reserve(f, bound + test_below(r, 4 * n)),
                         SEEN_OK);
    ask_range(f, r, first, n);
    add_range(f, r, first + n, n / 4 + 1);
    ask_range(f, r, first, n + n / 4 + 1);
    seen_free(f);

    f = test_filter(spec);
    add_range(f, r, first, n);
    if (test_below(r, 4) == 0) through_others(f, r, spec, first, n, true);
    seen_free(f);
    assert_no_misses(&spec, first, n);
}

/* ---- Kinds that are built ----------------------------------------------- */

/* In pieces of any size, some of them twice. */
static void build_range(seen_builder *b, struct test_rng *r, uint64_t first,
                        uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        uint64_t piece = 1 + test_below(r, CHUNK);
        if (piece > n - at) piece = n - at;
        fill_ring(first + at, (size_t)piece);
        for (uint64_t times = test_below(r, 4) ? 1 : 2; times > 0; times--)
            if (seen_builder_add_many(b, seen_keys_of(ring.keys, ring.n)))
                misses++;
        at += piece;
    }
    operations += n;
}

static void ask_built(seen_builder *b, struct test_rng *r, uint64_t first,
                      uint64_t n)
{
    seen_filter *f = NULL, *copy = NULL;
    assert_int_equal(seen_builder_finish(b, &f, NULL), SEEN_OK);
    ask_range(f, r, first, n);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    seen_free(f);
    ask_range(copy, r, first, n);
    seen_free(copy);
}

static void one_built(struct test_rng *r, seen_kind kind, uint64_t n)
{
    seen_spec spec = {.kind = kind, /* items: as many as come */
                      .fpp = 0.5 * pow(10, -7.5 * test_unit(r)),
                      .flags = random_flags(r, kind),
                      .secret = test_secret};
    choose_keys(r, false, 0);
    uint64_t first = random_first(r);

    seen_builder *b = NULL;
    assert_int_equal(seen_builder_new(&b, &spec, NULL), SEEN_OK);
    build_range(b, r, first, n);
    ask_built(b, r, first, n);
    if (test_below(r, 4) == 0) { /* the same again, and more */
        build_range(b, r, first + n, n / 4 + 1);
        ask_built(b, r, first, n + n / 4 + 1);
    }
    seen_builder_free(b);

    if (n <= CHUNK) { /* all at once */
        seen_filter *f = NULL;
        fill_ring(first, (size_t)n);
        assert_int_equal(
            seen_build(&f, &spec, seen_keys_of(ring.keys, ring.n), NULL),
            SEEN_OK);
        ask_range(f, r, first, n);
        seen_free(f);
    }
    assert_no_misses(&spec, first, n);
}

static void one_filter(struct test_rng *r, seen_kind kind, uint64_t most)
{
    uint64_t n = random_size(r, most);
    if (seen_kind_built(kind))
        one_built(r, kind, n);
    else if (kind == SEEN_BITMAP)
        one_bitmap(r, n);
    else
        one_open(r, kind, n);
}

/* ---- Filters of other systems ------------------------------------------- */

/* A rate that the dialect can be planned for. Those that count keys, and those
 * that let old ones go, get no more keys than they were made for. */
static seen_spec dialect_spec(struct test_rng *r,
                              const seen_dialect_facts *facts, uint64_t n)
{
    bool limited = facts->can & (SEEN_CAN_REMOVE | SEEN_REFRESHES);
    seen_spec spec = {.dialect = facts->name,
                      .items = limited || test_below(r, 4) ? n + n / 4 + 1
                                                           : n / 10 + 1,
                      .fpp = 0.5 * pow(10, -8 * test_unit(r))};
    if (test_wrong_spec(&spec)) spec.fpp = 0.01;
    return spec;
}

static void one_dialect(struct test_rng *r, const seen_dialect_facts *facts,
                        uint64_t most)
{
    uint64_t n = random_size(r, most), first = random_first(r);
    seen_spec spec = dialect_spec(r, facts, n);
    choose_keys(r, true, 0);

    seen_filter *f = test_filter(spec), *copy = NULL;
    add_range(f, r, first, n);
    ask_range(f, r, first, n);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    seen_free(f);
    ask_range(copy, r, first, n);

    /* Not all can be merged; what cannot stays as it was. */
    if (test_below(r, 2)) {
        seen_filter *more = test_filter(spec);
        add_range(more, r, first + n, n / 4 + 1);
        if (seen_merge(copy, more, SEEN_UNION, NULL) == SEEN_OK) {
            ask_range(copy, r, first + n, n / 4 + 1);
            unions++;
        }
        ask_range(copy, r, first, n);
        seen_free(more);
    }
    seen_free(copy);
    assert_no_misses(&spec, first, n);
}

/* ---- The law ------------------------------------------------------------ */

/* Sizes are random: each kind gets filters until it has had its share. */
static void an_added_key_is_never_denied(void **state)
{
    (void)state;
    struct test_rng r = test_rng(50);
    const uint64_t share = 600000 * test_scale();
    seen_kind kind;
    operations = 0;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (uint64_t before = operations; operations - before < share;)
            one_filter(&r, kind, MOST);
    print_message("%zu false negatives\n", (size_t)misses);
    test_tried(operations, "operations");
}

static void nor_by_a_filter_of_another_system(void **state)
{
    (void)state;
    struct test_rng r = test_rng(53);
    const uint64_t share = 50000 * test_scale();
    seen_dialect_facts facts = {.size = sizeof facts};
    size_t dialects = 0;
    operations = unions = 0;
    for (size_t i = 0; seen_dialect_at(i, &facts); i++) {
        if (!(facts.can & SEEN_CAN_ADD)) continue;
        for (uint64_t before = operations; operations - before < share;)
            one_dialect(&r, &facts, 50000);
        dialects++;
    }
    assert_true(dialects > 0 && unions > 0);
    print_message("%zu dialects, %zu unions, %zu false negatives\n", dialects,
                  (size_t)unions, (size_t)misses);
    test_tried(operations, "operations");
}

/* Every small size, where positions and lines run out. */
static void small_filters_deny_nothing_either(void **state)
{
    (void)state;
    struct test_rng r = test_rng(51);
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (uint64_t n = 1; n <= 200; n++)
            one_filter(&r, kind, n);
    seen_dialect_facts facts = {.size = sizeof facts};
    for (size_t i = 0; seen_dialect_at(i, &facts); i++)
        for (uint64_t n = 1; facts.can & SEEN_CAN_ADD && n <= 200; n++)
            one_dialect(&r, &facts, n);
}

/* Planned by bits alone, down to the smallest there are. */
static void tiny_bit_counts_deny_nothing_either(void **state)
{
    (void)state;
    struct test_rng r = test_rng(52);
    ring.varied = ring.unhashed = false;
    ring.bound = 0;
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
        cmocka_unit_test(nor_by_a_filter_of_another_system),
    };
    test_announce("no_false_negative");
    return cmocka_run_group_tests_name("no_false_negative", tests, NULL, NULL);
}
