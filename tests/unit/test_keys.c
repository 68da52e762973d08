/*
 * test_keys.c - seen_keys: a batch is its keys, however they lie.
 *
 * Every layout is compared with pairs of pointers and lengths, on every kind: the
 * same keys give the same bytes, and the same answers.
 */
#include "seen.h"
#include "seen_allowlist.h"
#include "seen_block.h"

#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

#define N 1501 /* no multiple of four, of a word or of a chunk */

/* ---- One batch in every layout ------------------------------------------ */

/* Integers of a kind, and room for all the ways to lay them out. */
struct laid {
    struct test_batch b;
    size_t n;
    uint64_t integers[N];
    uint8_t askew[8 * N + 1];
    uint8_t rows[24 * N];
    uint8_t packed[8 * N];
    uint32_t offsets32[N + 1];
    uint64_t offsets64[N + 1];
    seen_hash hashes[N];
    uint64_t hashes64[N];
};

static struct laid laid;

enum {
    PAIRS,
    INTEGERS,
    INTEGERS_ASKEW,
    ROWS_DENSE,
    ROWS_APART,
    OFFSETS_32,
    OFFSETS_64,
    HASHES_128,
    HASHES_64,
    LAYOUTS
};

static void lay_out(seen_kind kind, uint64_t first, size_t n)
{
    laid.b = test_batch_for(kind, first, n);
    laid.n = n;
    memset(laid.rows, 0xee, sizeof laid.rows);
    for (size_t i = 0; i < n; i++) {
        laid.integers[i] = test_key_for(kind, first + i);
        memcpy(laid.rows + 24 * i, laid.b.keys[i].data, 8);
        memcpy(laid.packed + 8 * i, laid.b.keys[i].data, 8);
        laid.offsets32[i] = (uint32_t)(8 * i);
        laid.offsets64[i] = 8 * i;
    }
    laid.offsets32[n] = (uint32_t)(8 * n);
    laid.offsets64[n] = 8 * n;
    memcpy(laid.askew + 1, laid.integers, 8 * n);
}

static bool is64(const seen_filter *f)
{
    seen_hash none = {0};
    return seen_hash64_many(f, seen_keys_hashes(&none, 1), &none.lo) == SEEN_OK;
}

/* False: not a layout of this filter. */
static bool layout(int which, const seen_filter *f, seen_keys *keys)
{
    const size_t n = laid.n;
    switch (which) {
    case PAIRS:
        return *keys = seen_keys_of(laid.b.keys, n), true;
    case INTEGERS:
        return *keys = seen_keys_u64(laid.integers, n), true;
    case INTEGERS_ASKEW:
        return *keys = seen_keys_u64(laid.askew + 1, n), true;
    case ROWS_DENSE:
        return *keys = seen_keys_rows(laid.packed, n, 8, 8), true;
    case ROWS_APART:
        return *keys = seen_keys_rows(laid.rows, n, 8, 24), true;
    case OFFSETS_32:
        return *keys =
                   seen_keys_offsets32(laid.packed, 8 * n, laid.offsets32, n),
               true;
    case OFFSETS_64:
        return *keys =
                   seen_keys_offsets64(laid.packed, 8 * n, laid.offsets64, n),
               true;
    case HASHES_128:
        assert_int_equal(
            seen_hash_many(f, seen_keys_of(laid.b.keys, n), laid.hashes),
            SEEN_OK);
        return *keys = seen_keys_hashes(laid.hashes, n), true;
    default:
        if (!is64(f)) return false;
        assert_int_equal(
            seen_hash64_many(f, seen_keys_of(laid.b.keys, n), laid.hashes64),
            SEEN_OK);
        return *keys = seen_keys_hashes64(laid.hashes64, n), true;
    }
}

/* ---- Every kind --------------------------------------------------------- */

typedef void check(seen_spec spec);

/* With every set of flags that the kind takes. */
static void on_every_kind(check *one)
{
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (uint32_t flags = 0; flags <= (SEEN_CONCURRENT | SEEN_KEYED);
             flags++) {
            seen_plan plan = {.size = sizeof plan};
            seen_spec spec = test_spec_for(kind, 4 * N);
            spec.flags = flags;
            spec.secret = flags & SEEN_KEYED ? test_secret : NULL;
            if (seen_plan_for(&spec, &plan, NULL) == SEEN_OK) one(spec);
        }
}

struct bytes {
    uint8_t *at;
    size_t len;
};

static struct bytes saved(const seen_filter *f)
{
    struct bytes b = {0};
    assert_int_equal(seen_save(f, 0, NULL, 0, &b.len), SEEN_SHORT);
    b.at = malloc(b.len);
    assert_non_null(b.at);
    assert_int_equal(seen_save(f, 0, b.at, b.len, &b.len), SEEN_OK);
    return b;
}

static void assert_same(const seen_filter *a, const seen_filter *b)
{
    struct bytes x = saved(a), y = saved(b);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.at, y.at, x.len);
    free(x.at);
    free(y.at);
}

static seen_filter *empty_or_built(seen_spec spec)
{
    if (seen_kind_built(spec.kind)) return test_filled(spec, 0, N / 2);
    return test_filter(spec);
}

static void check_adds(seen_spec spec)
{
    lay_out(spec.kind, 0, N);
    seen_filter *pairs = NULL, *hasher = empty_or_built(spec);
    for (int which = 0; which < LAYOUTS; which++) {
        seen_keys keys;
        size_t added;
        seen_filter *f, *parts;
        seen_builder *b;
        if (!layout(which, hasher, &keys)) continue;
        assert_int_equal(seen_build(&f, &spec, keys, NULL), SEEN_OK);
        if (!seen_kind_built(spec.kind)) {
            seen_free(f);
            f = test_filter(spec);
            assert_int_equal(seen_add_many(f, keys, &added), SEEN_OK);
            assert_int_equal(added, N);
        } else {
            assert_int_equal(seen_builder_new(&b, &spec, NULL), SEEN_OK);
            assert_int_equal(seen_builder_add_many(b, keys), SEEN_OK);
            assert_int_equal(seen_builder_finish(b, &parts, NULL), SEEN_OK);
            assert_same(parts, f);
            seen_builder_free(b);
            seen_free(parts);
        }
        if (pairs)
            assert_same(pairs, f);
        else
            assert_int_equal(seen_copy(&pairs, f, NULL), SEEN_OK);
        seen_free(f);
    }
    seen_free(hasher);
    seen_free(pairs);
    test_batch_free(&laid.b);
}

static void every_layout_adds_the_same_keys(void **state)
{
    (void)state;
    on_every_kind(check_adds);
}

static void assert_bits(const uint64_t *bits, const bool *answers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(bits[i / 64] >> i % 64 & 1, answers[i]);
    if (n % 64) assert_int_equal(bits[n / 64] >> n % 64, 0);
}

static void check_questions(seen_spec spec)
{
    static bool answers[N], expected[N];
    static uint32_t counts[N];
    static uint64_t bits[N / 64 + 1];
    seen_filter *f = test_filled(spec, 0, N / 2);
    lay_out(spec.kind, N / 4, N); /* a quarter is there */
    for (size_t i = 0; i < N; i++)
        expected[i] = seen_maybe_u64(f, laid.integers[i]);
    for (int which = 0; which < LAYOUTS; which++) {
        seen_keys keys;
        if (!layout(which, f, &keys)) continue;
        memset(answers, 7, sizeof answers);
        assert_int_equal(seen_maybe_many(f, keys, answers), SEEN_OK);
        assert_memory_equal(answers, expected, N);
        memset(answers, 7, sizeof answers);
        assert_int_equal(seen_maybe_many_at(f, 0, keys, answers), SEEN_OK);
        assert_memory_equal(answers, expected, N);
        assert_int_equal(seen_maybe_bits(f, keys, bits), SEEN_OK);
        assert_bits(bits, expected, N);
        assert_int_equal(seen_count_many(f, keys, counts), SEEN_OK);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(counts[i], seen_count(f, laid.b.keys[i].data,
                                                   laid.b.keys[i].len));
    }
    seen_free(f);
    test_batch_free(&laid.b);
}

static void every_layout_gets_the_same_answers(void **state)
{
    (void)state;
    on_every_kind(check_questions);
}

static void check_visits(seen_spec spec)
{
    static bool before[N], expected[N];
    static uint64_t bits[N / 64 + 1];
    if (seen_kind_built(spec.kind)) return;
    lay_out(spec.kind, N / 4, N);
    for (int which = 0; which < LAYOUTS; which++) {
        seen_filter *f = test_filled(spec, 0, N / 2),
                    *g = test_filled(spec, 0, N / 2);
        seen_keys keys;
        size_t done;
        if (layout(which, f, &keys)) {
            assert_int_equal(
                seen_visit_many(f, keys, which ? before : expected, &done),
                SEEN_OK);
            assert_int_equal(done, N);
            if (which) assert_memory_equal(before, expected, N);
            assert_int_equal(seen_visit_bits(g, keys, bits, &done), SEEN_OK);
            assert_int_equal(done, N);
            assert_bits(bits, expected, N);
            assert_same(f, g);
        }
        seen_free(f);
        seen_free(g);
    }
    test_batch_free(&laid.b);
}

static void every_layout_visits_alike(void **state)
{
    (void)state;
    on_every_kind(check_visits);
}

static void check_removals(seen_spec spec)
{
    static bool removed[N];
    size_t done = 9;
    lay_out(spec.kind, N / 4, N);
    seen_filter *one = test_filled(spec, 0, N / 2);
    seen_status can = seen_remove(one, laid.b.keys[0].data, 8);
    if (can != SEEN_OK) {
        assert_int_equal(can, SEEN_UNSUPPORTED);
        assert_int_equal(seen_remove_many(one, seen_keys_u64(laid.integers, N),
                                          removed, &done),
                         SEEN_UNSUPPORTED);
        assert_int_equal(done, 0);
        seen_free(one);
        test_batch_free(&laid.b);
        return;
    }
    static bool expected[N];
    expected[0] = true;
    for (size_t i = 1; i < N; i++)
        expected[i] = seen_remove(one, laid.b.keys[i].data, 8) == SEEN_OK;
    for (int which = 0; which < LAYOUTS; which++) {
        seen_filter *f = test_filled(spec, 0, N / 2);
        seen_keys keys;
        if (layout(which, f, &keys)) {
            assert_int_equal(seen_remove_many(f, keys, removed, &done),
                             SEEN_OK);
            assert_int_equal(done, N);
            assert_memory_equal(removed, expected, N);
            assert_same(f, one);
        }
        seen_free(f);
    }
    seen_free(one);
    test_batch_free(&laid.b);
}

static void every_layout_removes_alike(void **state)
{
    (void)state;
    on_every_kind(check_removals);
}

/* ---- Keys of any length ------------------------------------------------- */

static void offsets_cut_keys_of_any_length(void **state)
{
    (void)state;
    static uint8_t text[64 * N];
    static uint32_t at32[N + 1];
    static uint64_t at64[N + 1];
    static seen_key pairs[N];
    struct test_rng r = test_rng(1);
    uint64_t at = 5; /* the first offset need not be 0 */
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)test_next(&r);
    at32[0] = (uint32_t)(at64[0] = at);
    for (size_t i = 0; i < N; i++) {
        const size_t len = (size_t)test_below(&r, 41);
        pairs[i] = (seen_key){text + at, len};
        at32[i + 1] = (uint32_t)(at64[i + 1] = at += len);
    }
    const seen_spec spec = {.items = N, .fpp = 1e-6};
    seen_filter *a = test_filter(spec), *b = test_filter(spec),
                *c = test_filter(spec);
    assert_int_equal(seen_add_many(a, seen_keys_of(pairs, N), NULL), SEEN_OK);
    assert_int_equal(
        seen_add_many(b, seen_keys_offsets32(text, (size_t)at, at32, N), NULL),
        SEEN_OK);
    assert_int_equal(
        seen_add_many(c, seen_keys_offsets64(text, (size_t)at, at64, N), NULL),
        SEEN_OK);
    assert_same(a, b);
    assert_same(a, c);

    /* Rows may overlap, and be empty. */
    for (size_t i = 0; i < N; i++)
        pairs[i] = (seen_key){text + i, 5};
    seen_clear(a);
    seen_clear(b);
    assert_int_equal(seen_add_many(a, seen_keys_of(pairs, N), NULL), SEEN_OK);
    assert_int_equal(seen_add_many(b, seen_keys_rows(text, N, 5, 1), NULL),
                     SEEN_OK);
    assert_same(a, b);
    assert_false(seen_maybe(b, NULL, 0));
    assert_int_equal(seen_add_many(b, seen_keys_rows(NULL, 9, 0, 1), NULL),
                     SEEN_OK);
    assert_true(seen_maybe(b, NULL, 0));
    seen_free(a);
    seen_free(b);
    seen_free(c);
}

static void blocks_of_a_table_take_every_layout(void **state)
{
    (void)state;
    const seen_block_form forms[] = {SEEN_BLOCK_LEVELDB, SEEN_BLOCK_SORTED};
    lay_out(SEEN_BLOCKED, 0, N);
    seen_filter *f = test_filter((seen_spec){.items = N, .fpp = 0.01});
    for (size_t form = 0; form < 2; form++) {
        uint8_t pairs[4 * N], block[4 * N];
        size_t pairs_len = 0, len;
        for (int which = 0; which < LAYOUTS; which++) {
            seen_keys keys;
            assert_true(layout(which, f, &keys));
            seen_status status = seen_block_build(forms[form], 10, keys, block,
                                                  sizeof block, &len);
            if (which >= HASHES_128) {
                assert_int_equal(status, SEEN_UNSUPPORTED);
                continue;
            }
            assert_int_equal(status, SEEN_OK);
            if (which == PAIRS) memcpy(pairs, block, pairs_len = len);
            assert_int_equal(len, pairs_len);
            assert_memory_equal(block, pairs, len);
        }
        assert_int_equal(seen_block_build(forms[form], 10,
                                          seen_keys_rows(laid.packed, N, 8, 0),
                                          block, sizeof block, &len),
                         SEEN_INVALID);
    }
    seen_free(f);
    test_batch_free(&laid.b);
}

/* ---- Filters of other systems, lists, views ------------------------------ */

static void filters_of_other_systems_take_keys_but_no_hashes(void **state)
{
    (void)state;
    static bool answers[N], expected[N];
    static uint64_t bits[N / 64 + 1];
    static uint32_t counts[N];
    seen_spec spec = {.dialect = "guava", .items = N, .fpp = 0.01};
    seen_filter *full = test_filter(spec);
    lay_out(SEEN_BLOCKED, N / 2, N);
    test_add_members(full, 0, N);
    for (size_t i = 0; i < N; i++)
        expected[i] = seen_maybe_u64(full, laid.integers[i]);
    for (int which = 0; which < LAYOUTS; which++) {
        seen_filter *f = test_filter(spec);
        seen_keys keys;
        size_t done = 9;
        if (!layout(which, full, &keys)) /* bits of whose hash? */
            keys = seen_keys_hashes64(laid.integers, N);
        const bool hashes = which >= HASHES_128;
        const seen_status ok = hashes ? SEEN_UNSUPPORTED : SEEN_OK;
        memset(answers, 0, N);
        assert_int_equal(seen_maybe_many(full, keys, answers), ok);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(answers[i], hashes || expected[i]);
        assert_int_equal(seen_maybe_bits(full, keys, bits), ok);
        assert_bits(bits, answers, N);
        assert_int_equal(seen_count_many(full, keys, counts), ok);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(counts[i], answers[i]);
        assert_int_equal(seen_visit_many(f, keys, answers, &done), ok);
        assert_int_equal(done, hashes ? 0 : N);
        assert_int_equal(seen_maybe_u64(f, laid.integers[N - 1]), !hashes);
        seen_free(f);
    }
    seen_free(full);
    test_batch_free(&laid.b);
}

static void check_list(seen_spec spec, seen_listed rule)
{
    static bool answers[N], expected[N];
    seen_filter *f = test_filled(spec, 0, N / 2);
    seen_allowlist *list;
    lay_out(spec.kind, 0, N);
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    for (size_t i = 0; i < N; i += 7)
        assert_int_equal(seen_allowlist_add(list, laid.b.keys[i].data, 8),
                         SEEN_OK);
    assert_int_equal(seen_allow(f, list, rule), SEEN_OK);
    for (size_t i = 0; i < N; i++)
        expected[i] = seen_maybe_u64(f, laid.integers[i]);
    for (int which = 0; which < HASHES_128; which++) {
        seen_keys keys;
        layout(which, f, &keys);
        assert_int_equal(seen_maybe_many(f, keys, answers), SEEN_OK);
        assert_memory_equal(answers, expected, N);
    }
    seen_allowlist_free(list);
    seen_free(f);
    test_batch_free(&laid.b);
}

static void lists_are_obeyed_in_every_layout(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        check_list(test_spec_for(kind, 2 * N), SEEN_LISTED_NEVER);
        check_list(test_spec_for(kind, 2 * N), SEEN_LISTED_ALWAYS);
    }
}

/* ---- Bad batches -------------------------------------------------------- */

static void assert_refused(seen_filter *f, seen_keys keys, seen_status why)
{
    const size_t n = keys.n > SEEN_KEYS_MAX ? 0 : keys.n;
    bool answers[70];
    uint64_t bits[2];
    uint32_t counts[70];
    seen_hash hashes[70];
    size_t done = 9;
    assert_true(n <= 70);

    memset(answers, 0, sizeof answers);
    assert_int_equal(seen_maybe_many(f, keys, answers), why);
    for (size_t i = 0; i < 70; i++)
        assert_int_equal(answers[i], i < n);
    memset(answers, 0, sizeof answers);
    assert_int_equal(seen_maybe_many_at(f, 1, keys, answers), why);
    for (size_t i = 0; i < 70; i++)
        assert_int_equal(answers[i], i < n);
    memset(bits, 0, sizeof bits);
    assert_int_equal(seen_maybe_bits(f, keys, bits), why);
    assert_bits(bits, answers, 70);
    memset(counts, 0, sizeof counts);
    assert_int_equal(seen_count_many(f, keys, counts), why);
    for (size_t i = 0; i < 70; i++)
        assert_int_equal(counts[i], i < n);

    struct bytes was = saved(f);
    memset(answers, 0, sizeof answers);
    assert_int_equal(seen_visit_many(f, keys, answers, &done), why);
    assert_int_equal(done, 0);
    for (size_t i = 0; i < 70; i++)
        assert_int_equal(answers[i], i < n);
    memset(bits, 0, sizeof bits);
    assert_int_equal(seen_visit_bits(f, keys, bits, &done), why);
    assert_int_equal(done, 0);
    assert_bits(bits, answers, 70);
    done = 9;
    assert_int_equal(seen_add_many(f, keys, &done), why);
    assert_int_equal(done, 0);
    done = 9;
    assert_int_equal(seen_remove_many(f, keys, NULL, &done), why);
    assert_int_equal(done, 0);
    assert_int_equal(seen_hash_many(f, keys, hashes), why);
    assert_int_equal(seen_hash64_many(f, keys, bits), why);
    struct bytes is = saved(f);
    assert_int_equal(was.len, is.len);
    assert_memory_equal(was.at, is.at, is.len);
    free(was.at);
    free(is.at);

    seen_filter *built = f;
    const seen_spec ribbon = {.kind = SEEN_RIBBON, .fpp = 0.01},
                    blocked = {.fpp = 0.01};
    assert_int_equal(seen_build(&built, &ribbon, keys, NULL), why);
    assert_int_equal(seen_build(&built, &blocked, keys, NULL), why);
    assert_ptr_equal(built, f);
    seen_builder *b;
    assert_int_equal(seen_builder_new(&b, &ribbon, NULL), SEEN_OK);
    assert_int_equal(seen_builder_add_many(b, keys), why);
    seen_builder_free(b);
}

static void bad_batches_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static uint64_t room[2 * 70];
    const uint8_t *data = (const uint8_t *)room;
    seen_filter *f = test_filled(test_spec_for(SEEN_CUCKOO, N), 0, 100);
    seen_filter *wide = test_filter((seen_spec){
        .items = N, .fpp = 0.01, .flags = SEEN_KEYED, .secret = test_secret});
    const size_t n = 70;

    /* Pairs */
    seen_key pairs[70];
    for (size_t i = 0; i < n; i++)
        pairs[i] = (seen_key){data, 8};
    pairs[69] = (seen_key){NULL, 1};
    assert_refused(f, seen_keys_of(pairs, n), SEEN_INVALID);
    pairs[69] = (seen_key){data, SIZE_MAX}; /* a length of -1 */
    assert_refused(f, seen_keys_of(pairs, n), SEEN_INVALID);
    assert_refused(f, seen_keys_of(NULL, n), SEEN_INVALID);
    assert_refused(f, seen_keys_in(SEEN_PAIRS, data + 1, 3), SEEN_INVALID);

    /* Rows */
    assert_refused(f, seen_keys_rows(data, n, 8, 0), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(NULL, n, 8, 8), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(data, n, 8, SIZE_MAX), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(data, n, 8, SIZE_MAX / 69), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(data, n, SIZE_MAX, 8), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(data, n, 8, SIZE_MAX / 137), SEEN_INVALID);

    /* Offsets */
    uint32_t at32[71];
    uint64_t at64[71];
    for (size_t i = 0; i <= n; i++)
        at32[i] = (uint32_t)(at64[i] = 8 * i);
    const size_t len = 8 * n;
    assert_refused(f, seen_keys_offsets32(data, len - 1, at32, n),
                   SEEN_INVALID);
    assert_refused(f, seen_keys_offsets64(data, len - 1, at64, n),
                   SEEN_INVALID);
    assert_refused(f, seen_keys_offsets32(data, len, NULL, n), SEEN_INVALID);
    assert_refused(f, seen_keys_offsets64(NULL, len, at64, n), SEEN_INVALID);
    assert_refused(f, seen_keys_offsets64(data, SIZE_MAX, at64, n),
                   SEEN_INVALID);
    for (size_t i = 0; i < n; i += 23) { /* backwards, and far beyond */
        at32[i] += 9, at64[i] += 9;
        assert_refused(f, seen_keys_offsets32(data, len, at32, n),
                       SEEN_INVALID);
        assert_refused(f, seen_keys_offsets64(data, len, at64, n),
                       SEEN_INVALID);
        at32[i] = UINT32_MAX, at64[i] = UINT64_MAX - 7;
        assert_refused(f, seen_keys_offsets32(data, len, at32, n),
                       SEEN_INVALID);
        assert_refused(f, seen_keys_offsets64(data, len, at64, n),
                       SEEN_INVALID);
        at32[i] = (uint32_t)(at64[i] = 8 * i);
    }
    at32[n] = UINT32_MAX, at64[n] = UINT64_MAX;
    assert_refused(f, seen_keys_offsets32(data, len, at32, n), SEEN_INVALID);
    assert_refused(f, seen_keys_offsets64(data, len, at64, n), SEEN_INVALID);

    /* Integers and hashes */
    assert_refused(f, seen_keys_u64(NULL, n), SEEN_INVALID);
    assert_refused(f, seen_keys_hashes(NULL, n), SEEN_INVALID);
    assert_refused(f, seen_keys_hashes64(NULL, n), SEEN_INVALID);
    assert_refused(f, seen_keys_in(SEEN_HASHES, data + 1, 3), SEEN_INVALID);
    bool answer = false;
    assert_int_equal(
        seen_maybe_many(wide, seen_keys_hashes64(room, 1), &answer),
        SEEN_INVALID);
    assert_true(answer);
    assert_int_equal(seen_hash64_many(wide, seen_keys_u64(room, 1), room),
                     SEEN_INVALID);

    /* More than can be, unknown layouts, fields to come */
    assert_refused(f, seen_keys_u64(data, SEEN_KEYS_MAX + 1), SEEN_INVALID);
    assert_refused(f, seen_keys_u64(data, SIZE_MAX), SEEN_INVALID);
    assert_refused(f, seen_keys_rows(data, SIZE_MAX, 1, 1), SEEN_INVALID);
    assert_refused(f, seen_keys_offsets64(data, len, at64, SIZE_MAX),
                   SEEN_INVALID);
    assert_refused(f, seen_keys_in((seen_layout)7, data, n), SEEN_INVALID);
    for (size_t i = 0; i < 3; i++) {
        seen_keys later = seen_keys_u64(data, n);
        later.reserved[i] = 1;
        assert_refused(f, later, SEEN_INVALID);
    }

    /* Nowhere to put the answers */
    const seen_keys good = seen_keys_u64(data, n);
    assert_int_equal(seen_maybe_many(f, good, NULL), SEEN_INVALID);
    assert_int_equal(seen_maybe_many_at(f, 1, good, NULL), SEEN_INVALID);
    assert_int_equal(seen_maybe_bits(f, good, NULL), SEEN_INVALID);
    assert_int_equal(seen_visit_bits(f, good, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_count_many(f, good, NULL), SEEN_INVALID);
    assert_int_equal(seen_hash_many(f, good, NULL), SEEN_INVALID);
    assert_int_equal(seen_hash64_many(f, good, NULL), SEEN_INVALID);
    seen_free(wide);
    seen_free(f);
}

static void no_keys_are_a_batch_in_every_layout(void **state)
{
    (void)state;
    seen_filter *f = test_filled(test_spec_for(SEEN_CUCKOO, N), 0, 100);
    for (int i = 0; i <= SEEN_HASHES64; i++) {
        const seen_keys none = seen_keys_in((seen_layout)i, NULL, 0);
        size_t done = 9;
        assert_int_equal(seen_maybe_many(f, none, NULL), SEEN_OK);
        assert_int_equal(seen_maybe_many_at(f, 1, none, NULL), SEEN_OK);
        assert_int_equal(seen_maybe_bits(f, none, NULL), SEEN_OK);
        assert_int_equal(seen_count_many(f, none, NULL), SEEN_OK);
        assert_int_equal(seen_hash_many(f, none, NULL), SEEN_OK);
        assert_int_equal(seen_hash64_many(f, none, NULL), SEEN_OK);
        assert_int_equal(seen_add_many(f, none, &done), SEEN_OK);
        assert_int_equal(done, 0);
        done = 9;
        assert_int_equal(seen_visit_bits(f, none, NULL, &done), SEEN_OK);
        assert_int_equal(done, 0);
        done = 9;
        assert_int_equal(seen_remove_many(f, none, NULL, &done), SEEN_OK);
        assert_int_equal(done, 0);
        seen_filter *built;
        assert_int_equal(
            seen_build(&built, &(seen_spec){.kind = SEEN_RIBBON, .fpp = 0.01},
                       none, NULL),
            SEEN_OK);
        seen_free(built);
    }
    seen_free(f);
}

/* ---- Lengths ------------------------------------------------------------ */

/* Around every size at which the work is cut, with and without a ring. */
static void batches_of_any_length_are_answered_key_by_key(void **state)
{
    (void)state;
    static const size_t lengths[] = {1,   2,   63,   64,   65,   127,  255,
                                     256, 257, 287,  288,  289,  511,  513,
                                     545, 600, 4095, 4096, 4097, 8193, 70001};
    const uint64_t all = 400000; /* 500 kB: beyond SEEN_RING_FROM_BYTES */
    for (int large = 0; large < 2; large++) {
        const uint64_t items = large ? all : 20000;
        seen_filter *f = test_filter((seen_spec){.items = items, .fpp = 0.01});
        test_add_members(f, 0, items);
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const size_t n = lengths[l];
            uint64_t *integers = malloc(n * sizeof *integers);
            uint64_t *bits = malloc((n / 64 + 1) * sizeof *bits);
            bool *answers = malloc(n);
            assert_true(integers && bits && answers);
            for (size_t i = 0; i < n; i++)
                integers[i] = test_key(i % 2 ? i : TEST_STRANGERS + i);
            const seen_keys keys = seen_keys_u64(integers, n);
            assert_int_equal(seen_maybe_many(f, keys, answers), SEEN_OK);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(answers[i], seen_maybe_u64(f, integers[i]));
            bits[n / 64] = 0; /* written only if it has an answer */
            assert_int_equal(seen_maybe_bits(f, keys, bits), SEEN_OK);
            assert_bits(bits, answers, n);
            free(integers);
            free(bits);
            free(answers);
        }
        seen_free(f);
    }
}

static void views_say_unsupported_and_leave_answers_alone(void **state)
{
    (void)state;
    seen_filter *f = test_filled(test_spec_for(SEEN_BLOCKED, N), 0, 100), *v;
    size_t len;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    void *buf = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_non_null(buf);
    assert_int_equal(seen_save(f, 0, buf, len, &len), SEEN_OK);
    assert_int_equal(seen_view(&v, buf, len, NULL, NULL), SEEN_OK);
    uint64_t integers[3] = {1, 2, 3}, bits = 5;
    bool before[3] = {false, true, false};
    size_t done = 9;
    const seen_keys keys = seen_keys_u64(integers, 3);
    assert_int_equal(seen_visit_many(v, keys, before, &done), SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    assert_true(!before[0] && before[1] && !before[2]);
    assert_int_equal(seen_visit_bits(v, keys, &bits, &done), SEEN_UNSUPPORTED);
    assert_int_equal(bits, 5);
    assert_int_equal(seen_add_many(v, keys, NULL), SEEN_UNSUPPORTED);
    assert_int_equal(seen_remove_many(v, keys, NULL, NULL), SEEN_UNSUPPORTED);
    seen_free(v);
    free(buf);
    seen_free(f);
}

int main(void)
{
    test_announce("test_keys");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_adds_the_same_keys),
        cmocka_unit_test(every_layout_gets_the_same_answers),
        cmocka_unit_test(every_layout_visits_alike),
        cmocka_unit_test(every_layout_removes_alike),
        cmocka_unit_test(offsets_cut_keys_of_any_length),
        cmocka_unit_test(blocks_of_a_table_take_every_layout),
        cmocka_unit_test(filters_of_other_systems_take_keys_but_no_hashes),
        cmocka_unit_test(lists_are_obeyed_in_every_layout),
        cmocka_unit_test(bad_batches_are_refused_and_change_nothing),
        cmocka_unit_test(no_keys_are_a_batch_in_every_layout),
        cmocka_unit_test(batches_of_any_length_are_answered_key_by_key),
        cmocka_unit_test(views_say_unsupported_and_leave_answers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
