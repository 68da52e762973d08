/*
 * test_dialects.c - filters that other systems wrote: read, asked, rebuilt and
 * written again.
 *
 * For every directory of tests/vectors: all keys are "maybe", every stranger
 * gets the answer that the original gave, its false positives included; what is
 * exported is what was imported; a filter made of the same keys by the
 * original's own formulas is the same bytes. Then the same bytes with something
 * wrong with them: any cut and any change gives an error or a filter that can be
 * used, and takes no more memory than there are bytes.
 */
#include "seen.h"
#include "seen_allowlist.h"

#include "helpers/binomial.h"
#include "helpers/harness.h"
#include "helpers/keys.h"
#include "helpers/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const vectors[] = {
    "leveldb",
    "leveldb-small",
    "leveldb-k30",
    "goleveldb",
    "badger",
    "gozero",
    "gozero-sparse",
    "gobloom",
    "kevburnsjr",
    "exposure-list",
    "redisbloom",
    "redisbloom-scaling",
    "redisbloom-nonscaling",
    "redisbloom-2.0",
    "redisbloom-cf",
    "redisbloom-cf-expanded",
    "guava",
    "guava-mitz32",
    "guava-long",
    "guava-utf8",
    "guava-utf16",
    "bits-and-blooms",
    "bits-and-blooms-json",
    "dcso",
    "dcso-cli",
    "dcso-cli-gzip",
    "parquet",
    "parquet-int64",
    "parquet-bitset",
    "rocksdb",
    "rocksdb-highbits",
    "rocksdb-small",
    "rocksdb-legacy",
    "rocksdb-legacy-small",
    "rust-bloomfilter",
    "valkey-bloom",
};

#define VECTORS (sizeof vectors / sizeof *vectors)

/* ---- Tools -------------------------------------------------------------- */

/* Does the form itself have to be decoded before libseen sees it? */
static bool raw(const struct test_vector *v)
{
    return !*v->encoding;
}

static seen_spec made_with(struct test_vector *v)
{
    seen_spec spec = v->spec;
    spec.dialect = v->dialect;
    return spec;
}

static seen_filter *imported(struct test_vector *v)
{
    seen_filter *f = NULL;
    seen_status s =
        seen_import(&f, v->dialect, &v->spec, v->bytes, v->len, NULL);
    if (s != SEEN_OK)
        fail_msg("%s: %s", v->name,
                 test_wrong_bytes(v->dialect, &v->spec, v->bytes, v->len));
    assert_null(test_wrong_bytes(v->dialect, &v->spec, v->bytes, v->len));
    return f;
}

static uint8_t *exported(const seen_filter *f, const char *dialect, size_t *len)
{
    seen_status s = seen_export(f, dialect, NULL, 0, len, NULL);
    assert_true(s == SEEN_SHORT || (s == SEEN_OK && *len == 0));
    uint8_t *bytes = malloc(*len + 1);
    assert_non_null(bytes);
    assert_int_equal(seen_export(f, dialect, bytes, *len, len, NULL), SEEN_OK);
    return bytes;
}

static void must_export(const seen_filter *f, const struct test_vector *v)
{
    size_t len;
    uint8_t *bytes = exported(f, NULL, &len);
    if (len != v->len) fail_msg("%s: %zu bytes for %zu", v->name, len, v->len);
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != v->bytes[i])
            fail_msg("%s: byte %zu is %02x for %02x", v->name, i, bytes[i],
                     v->bytes[i]);
    free(bytes);
}

static void must_answer_keys(const seen_filter *f, const struct test_vector *v)
{
    bool *answers = calloc(v->keys.n, 1);
    assert_non_null(answers);
    seen_maybe_many(f, seen_keys_of(v->keys.keys, v->keys.n), answers);
    for (size_t i = 0; i < v->keys.n; i++) {
        const seen_key *k = &v->keys.keys[i];
        if (!answers[i] || !seen_maybe(f, k->data, k->len))
            fail_msg("%s: key %zu is never in", v->name, i + 1);
    }
    free(answers);
}

static void must_answer(const seen_filter *f, const struct test_vector *v)
{
    must_answer_keys(f, v);
    bool *answers = calloc(v->strangers.n, 1);
    assert_non_null(answers);
    seen_maybe_many(f, seen_keys_of(v->strangers.keys, v->strangers.n),
                    answers);
    for (size_t i = 0; i < v->strangers.n; i++) {
        const seen_key *k = &v->strangers.keys[i];
        if (answers[i] != v->maybe[i] ||
            seen_maybe(f, k->data, k->len) != v->maybe[i])
            fail_msg("%s: stranger %zu is answered %d", v->name, i + 1,
                     answers[i]);
    }
    free(answers);
}

static void for_each(void (*check)(struct test_vector *v))
{
    for (size_t i = 0; i < VECTORS; i++) {
        struct test_vector v = test_vector_load(vectors[i]);
        if (raw(&v)) check(&v);
        test_vector_free(&v);
    }
}

/* ---- What the original wrote -------------------------------------------- */

static void check_answers(struct test_vector *v)
{
    seen_filter *f = imported(v);
    must_answer(f, v);
    must_export(f, v);
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_string_equal(info.dialect, v->dialect);
    assert_int_equal(info.kind, SEEN_FOREIGN);
    /* By the fill, and go-bloom's positions move together. */
    assert_between((double)info.items, 0.85 * (double)v->keys.n,
                   1.1 * (double)v->keys.n);
    assert_true(info.bits_set > 0 && info.bits_set <= info.bits);
    assert_true(info.fpp_now > 0 && info.fpp_now < 0.5);
    seen_free(f);
}

static void filters_of_others_answer_as_recorded(void **state)
{
    (void)state;
    for_each(check_answers);
}

static void check_view(struct test_vector *v)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_filter *f = NULL, *copy = NULL;
    assert_true(seen_dialect_named(v->dialect, &facts));
    seen_status s =
        seen_import_view(&f, v->dialect, &v->spec, v->bytes, v->len, NULL);
    if (!(facts.can & SEEN_CAN_VIEW)) {
        assert_int_equal(s, SEEN_UNSUPPORTED);
        return;
    }
    if (s == SEEN_UNSUPPORTED) return; /* a string shorter than its bits */
    assert_int_equal(s, SEEN_OK);
    must_answer(f, v);
    must_export(f, v);
    assert_int_equal(seen_add_str(f, "new"), SEEN_UNSUPPORTED);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    must_answer(copy, v);
    assert_true(seen_equal(copy, f));
    seen_free(copy);
    seen_free(f);
}

static void filters_of_others_are_used_where_they_lie(void **state)
{
    (void)state;
    for_each(check_view);
}

/* ---- Rebuilt ------------------------------------------------------------ */

static void add_all(seen_filter *f, struct test_vector *v)
{
    const struct test_keys *k = v->built_from.n ? &v->built_from : &v->keys;
    size_t added;
    assert_int_equal(seen_add_many(f, seen_keys_of(k->keys, k->n), &added),
                     SEEN_OK);
    assert_int_equal(added, k->n);
    for (size_t i = 0; i < v->removed.n; i++)
        assert_int_equal(
            seen_remove(f, v->removed.keys[i].data, v->removed.keys[i].len),
            SEEN_OK);
}

static seen_filter *fresh(struct test_vector *v)
{
    seen_filter *f = NULL;
    seen_spec spec = made_with(v);
    if (v->cleared) {
        f = imported(v);
        seen_clear(f);
        return f;
    }
    if (seen_new(&f, &spec, NULL) != SEEN_OK)
        fail_msg("%s: %s", v->name, test_wrong_spec(&spec));
    return f;
}

static void check_rebuilt(struct test_vector *v)
{
    seen_filter *f = fresh(v), *g = imported(v);
    assert_false(seen_equal(f, g));
    add_all(f, v);
    must_export(f, v);
    must_answer(f, v);
    assert_true(seen_equal(f, g) && seen_equal(g, f));
    seen_free(f);
    seen_free(g);
}

static void filters_made_from_the_keys_are_the_same_bytes(void **state)
{
    (void)state;
    for_each(check_rebuilt);
}

static void check_singly(struct test_vector *v)
{
    seen_filter *f = fresh(v);
    const struct test_keys *k = v->built_from.n ? &v->built_from : &v->keys;
    for (size_t i = 0; i < k->n; i++) {
        bool before, was = seen_maybe(f, k->keys[i].data, k->keys[i].len);
        assert_int_equal(
            seen_visit(f, k->keys[i].data, k->keys[i].len, &before), SEEN_OK);
        assert_int_equal(before, was);
        assert_true(seen_maybe(f, k->keys[i].data, k->keys[i].len));
    }
    seen_free(f);
}

static void single_visits_tell_what_was_there(void **state)
{
    (void)state;
    for_each(check_singly);
}

/* ---- Whole filters ------------------------------------------------------ */

/* Saved and loaded it is the same. */
static void must_survive(const seen_filter *f)
{
    size_t len, again;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    uint8_t *bytes = malloc(len), *more = malloc(len);
    assert_true(bytes && more);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    seen_filter *g = NULL;
    assert_int_equal(seen_load(&g, bytes, len, NULL, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_save(g, 0, more, len, &again), SEEN_OK);
    assert_int_equal(again, len);
    assert_memory_equal(more, bytes, len);
    memset(more, 0, len);
    for (size_t at = 0, n; at < len; at += n) { /* and in pieces */
        n = at + 1 + len / 3 < len ? 1 + len / 3 : len - at;
        assert_int_equal(seen_save_range(f, 0, at, more + at, n), SEEN_OK);
    }
    assert_memory_equal(more, bytes, len);
    seen_free(g);
    free(more);
    free(bytes);
}

/* What is told without looking at the bits, too. */
static void must_tell(const seen_filter *f, const char *dialect)
{
    seen_info measured = {.size = sizeof measured};
    seen_info info = {.size = sizeof info};
    seen_measure(f, &measured);
    seen_info_of(f, &info);
    assert_string_equal(info.dialect, dialect);
    assert_int_equal(info.layers, measured.layers);
    assert_int_equal(info.counted, measured.counted);
    if (info.counted) assert_int_equal(info.items, measured.items);
}

static void check_whole(struct test_vector *v)
{
    seen_filter *f = imported(v), *half = NULL, *other = NULL;
    must_tell(f, v->dialect);
    /* Into itself: nothing changes but, maybe, what is counted. */
    seen_status s = seen_merge(f, f, SEEN_UNION, NULL);
    assert_true(s == SEEN_OK || s == SEEN_UNSUPPORTED);
    must_answer(f, v);
    must_survive(f);
    assert_int_equal(seen_copy(&half, f, NULL), SEEN_OK);
    seen_clear(half);
    must_survive(half);
    seen_info info = {.size = sizeof info};
    seen_measure(half, &info);
    assert_int_equal(info.items, 0);
    assert_int_equal(info.bits_set, 0);
    if (v->strangers.n > 0 && info.hashes > 0)
        assert_false(seen_maybe(half, v->keys.keys[0].data, 1));
    /* Not with one of ours, and no hash means anything. */
    seen_spec ours = {.items = 10, .fpp = 0.1, .kind = SEEN_BLOOM};
    assert_int_equal(seen_new(&other, &ours, NULL), SEEN_OK);
    assert_int_equal(seen_merge(f, other, SEEN_UNION, NULL), SEEN_MISMATCH);
    assert_int_equal(seen_merge(other, f, SEEN_UNION, NULL), SEEN_MISMATCH);
    assert_true(seen_maybe_hashed(f, (seen_hash){1, 2}));
    assert_int_equal(seen_add_hashed(f, (seen_hash){1, 2}), SEEN_UNSUPPORTED);
    size_t len;
    assert_int_equal(seen_export(other, v->dialect, NULL, 0, &len, NULL),
                     SEEN_MISMATCH);
    seen_free(other);
    seen_free(half);
    seen_free(f);
}

static void filters_of_others_are_ordinary_filters(void **state)
{
    (void)state;
    for_each(check_whole);
}

static void built_at_once_it_is_the_same(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("leveldb");
    seen_spec spec = made_with(&v);
    spec.items = 5; /* not read: there are as many as come */
    seen_filter *f = NULL;
    assert_int_equal(
        seen_build(&f, &spec, seen_keys_of(v.keys.keys, v.keys.n), NULL),
        SEEN_OK);
    must_export(f, &v);
    seen_free(f);
    seen_builder *b = NULL;
    assert_int_equal(seen_builder_new(&b, &spec, NULL), SEEN_UNSUPPORTED);
    test_vector_free(&v);
}

/* A list overrules the answers for its keys, also here. */
static void check_listed(struct test_vector *v)
{
    seen_filter *f = imported(v);
    seen_allowlist *list = NULL;
    const seen_key *key = &v->keys.keys[v->keys.n / 2];
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, key->data, key->len), SEEN_OK);
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    assert_false(seen_maybe(f, key->data, key->len));
    bool answers[3], before;
    size_t at = v->keys.n > 2 ? v->keys.n / 2 - 1 : 0,
           n = v->keys.n > 2 ? 3 : 1;
    seen_maybe_many(f, seen_keys_of(v->keys.keys + at, n), answers);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(answers[i], at + i != v->keys.n / 2);
    assert_int_equal(seen_visit(f, key->data, key->len, &before), SEEN_OK);
    assert_false(before);
    assert_int_equal(seen_count(f, key->data, key->len), 0);
    /* And it goes along into our container. */
    size_t len;
    seen_filter *g = NULL;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    void *bytes = malloc(len);
    assert_non_null(bytes);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    assert_int_equal(seen_load(&g, bytes, len, NULL, NULL, NULL), SEEN_OK);
    assert_false(seen_maybe(g, key->data, key->len));
    free(bytes);
    seen_free(g);
    seen_allowlist_free(list);
    seen_free(f);
}

static void lists_overrule_filters_of_others(void **state)
{
    (void)state;
    for_each(check_listed);
}

/* Our own container takes it as it is. */
static void check_saved(struct test_vector *v)
{
    seen_filter *f = imported(v), *g = NULL, *view = NULL;
    size_t len, again;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    uint8_t *bytes = aligned_alloc(64, (len + 63) / 64 * 64);
    uint8_t *more = malloc(len);
    assert_true(bytes && more);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    assert_int_equal(seen_verify(bytes, len, NULL), SEEN_OK);
    assert_int_equal(seen_load(&g, bytes, len, NULL, NULL, NULL), SEEN_OK);
    must_answer(g, v);
    must_export(g, v);
    assert_true(seen_equal(f, g));
    assert_int_equal(seen_save(g, 0, more, len, &again), SEEN_OK);
    assert_int_equal(again, len);
    assert_memory_equal(bytes, more, len);
    assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
    must_answer(view, v);
    assert_int_equal(seen_add_str(view, "new"), SEEN_UNSUPPORTED);
    seen_info looked = {.size = sizeof looked};
    assert_int_equal(seen_look(bytes, len, &looked, NULL, NULL), SEEN_OK);
    assert_int_equal(looked.kind, SEEN_FOREIGN);
    seen_free(view);
    for (size_t at = 0; at<len; at += len> 3000 && at > 700 ? 37 : 1) {
        seen_filter *bad = NULL;
        bytes[at] ^= 0x10;
        assert_true(seen_load(&bad, bytes, len, NULL, NULL, NULL) != SEEN_OK);
        bytes[at] ^= 0x10;
    }
    free(bytes);
    free(more);
    seen_free(f);
    seen_free(g);
}

static void our_container_takes_filters_of_others(void **state)
{
    (void)state;
    for_each(check_saved);
}

/* ---- Hostile bytes ------------------------------------------------------ */

/* Counts what is taken. */
struct meter {
    size_t taken;
};

static void *take_memory(void *ctx, size_t size)
{
    ((struct meter *)ctx)->taken += size;
    return malloc(size);
}

static void give_back(void *ctx, void *ptr, size_t size)
{
    (void)ctx, (void)size;
    free(ptr);
}

/* A filter's own state, and alignment; and where growing has to end, whatever a
 * header says. */
#define SLACK 16384
#define LIMIT (1 << 20)

/* Memory in proportion to the bytes, except where the caller has named the
 * number of bits. */
static void try_bytes(struct test_vector *v, const uint8_t *bytes, size_t len)
{
    struct meter meter = {0};
    seen_allocator a = {take_memory, give_back, &meter};
    seen_spec spec = v->spec;
    seen_filter *f = NULL;
    spec.allocator = &a;
    spec.limit = LIMIT;
    seen_status s = seen_import(&f, v->dialect, &spec, bytes, len, NULL);
    if (meter.taken > 2 * len + spec.bits / 8 + SLACK)
        fail_msg("%s: %zu bytes of memory for %zu", v->name, meter.taken, len);
    meter.taken = 0;
    if (s != SEEN_OK) {
        assert_null(f);
        assert_non_null(test_wrong_bytes(v->dialect, &v->spec, bytes, len));
        return;
    }
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    for (size_t i = 0; i < 20; i++)
        seen_maybe(f, v->strangers.keys[i].data, v->strangers.keys[i].len);
    bool before;
    for (size_t i = 0; i < 20; i++) {
        const seen_key *k = &v->strangers.keys[i];
        if (seen_visit(f, k->data, k->len, &before) == SEEN_OK)
            assert_true(seen_maybe(f, k->data, k->len));
    }
    assert_true(meter.taken <= LIMIT + 64 * SLACK);
    size_t out;
    free(exported(f, NULL, &out));
    seen_free(f);
}

static void check_cuts(struct test_vector *v)
{
    for (size_t len = 0; len <= v->len; len++) {
        if (len > 300 && len + 300 < v->len && len % 61) continue;
        uint8_t *cut = malloc(len ? len : 1); /* exactly, for the sanitizer */
        assert_non_null(cut);
        memcpy(cut, v->bytes, len);
        try_bytes(v, cut, len);
        free(cut);
    }
}

static void any_cut_is_an_error_or_a_filter(void **state)
{
    (void)state;
    for_each(check_cuts);
}

static void check_changes(struct test_vector *v)
{
    static const uint8_t with[] = {0x01, 0x80, 0xff};
    for (size_t at = 0; at < v->len; at++) {
        if (at > 300 && at + 300 < v->len && at % 61) continue;
        uint8_t was = v->bytes[at];
        for (size_t i = 0; i < sizeof with; i++) {
            v->bytes[at] = was ^ with[i];
            try_bytes(v, v->bytes, v->len);
        }
        v->bytes[at] = was;
    }
}

static void any_change_is_an_error_or_a_filter(void **state)
{
    (void)state;
    for_each(check_changes);
}

/* Every number of a header, of any width, in either order, at its extremes. */
static void check_extremes(struct test_vector *v)
{
    static const uint64_t extremes[] = {0,           1,
                                        0x7fffffff,  0x80000000u,
                                        0xffffffffu, 0x100000000u,
                                        INT64_MAX,   (uint64_t)1 << 63,
                                        UINT64_MAX};
    size_t end = v->len < 300 ? v->len : 300;
    for (size_t at = 0; at + 8 <= end; at++)
        for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++)
            for (size_t width = 2; width <= 8; width *= 2)
                for (int big = 0; big < 2; big++) {
                    uint8_t was[8];
                    memcpy(was, v->bytes + at, 8);
                    for (size_t b = 0; b < width; b++) {
                        size_t shift = 8 * (big ? width - 1 - b : b);
                        v->bytes[at + b] = (uint8_t)(extremes[i] >> shift);
                    }
                    try_bytes(v, v->bytes, v->len);
                    memcpy(v->bytes + at, was, 8);
                }
}

static void any_number_at_its_extremes_is_an_error_or_a_filter(void **state)
{
    (void)state;
    for_each(check_extremes);
}

/* What the caller says may be nonsense, too. */
static void check_nonsense(struct test_vector *v)
{
    static const double rates[] = {-1, 1, 2, 1e300, NAN, INFINITY, -INFINITY};
    seen_filter *f = NULL;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        seen_spec spec = {.items = 100, .fpp = rates[i]};
        assert_int_equal(
            seen_import(&f, v->dialect, &spec, v->bytes, v->len, NULL),
            SEEN_INVALID);
        assert_int_equal(
            seen_import_view(&f, v->dialect, &spec, v->bytes, v->len, NULL),
            SEEN_INVALID);
        spec.dialect = v->dialect;
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_INVALID);
    }
    static const uint64_t numbers[] = {0, 1, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < 64; i++) {
        seen_spec spec = {.items = numbers[i % 4],
                          .bits = numbers[i / 4 % 4],
                          .hashes = (uint32_t)numbers[i / 16],
                          .fpp = i % 3 ? 1e-300 : 0,
                          .limit = LIMIT};
        if (seen_import(&f, v->dialect, &spec, v->bytes, v->len, NULL) ==
            SEEN_OK)
            seen_free(f);
        spec.dialect = v->dialect;
        if (seen_new(&f, &spec, NULL) == SEEN_OK) seen_free(f);
        f = NULL;
    }
}

static void nonsense_in_a_spec_is_an_error(void **state)
{
    (void)state;
    for_each(check_nonsense);
}

/* ---- The table ---------------------------------------------------------- */

static void every_row_of_the_table_is_complete(void **state)
{
    (void)state;
    seen_dialect_facts facts = {.size = sizeof facts},
                       again = {.size = sizeof again};
    seen_filter *f = NULL;
    size_t n = 0;
    for (; seen_dialect_at(n, &facts); n++) {
        assert_true(facts.name && facts.system && facts.hash && facts.weakness);
        assert_true(seen_dialect_named(facts.name, &again));
        assert_ptr_equal(facts.name, again.name);
        bool covered = false;
        for (size_t i = 0; i < VECTORS; i++) {
            struct test_vector v = test_vector_load(vectors[i]);
            covered |= strcmp(v.dialect, facts.name) == 0;
            test_vector_free(&v);
        }
        if (!covered) fail_msg("%s has no vector", facts.name);
        /* A plan needs something. */
        seen_spec spec = {.dialect = facts.name};
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_INVALID);
        assert_non_null(test_wrong_spec(&spec));
        spec = (seen_spec){.dialect = facts.name,
                           .items = 100,
                           .fpp = 0.01,
                           .kind = SEEN_BLOCKED};
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_INVALID);
        spec.kind = SEEN_ANY;
        spec.flags = SEEN_CONCURRENT;
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_UNSUPPORTED);
    }
    assert_true(n > 0);
    assert_false(seen_dialect_named("nobody's", &facts));
    assert_false(seen_dialect_named(NULL, &facts));
    seen_spec nobody = {.dialect = "nobody's", .items = 1, .fpp = 0.1};
    assert_int_equal(seen_new(&f, &nobody, NULL), SEEN_ABSENT);
    assert_int_equal(seen_import(&f, "nobody's", NULL, "", 0, NULL),
                     SEEN_ABSENT);
    assert_int_equal(seen_import(&f, NULL, NULL, "", 0, NULL), SEEN_INVALID);
    assert_int_equal(seen_import(NULL, "leveldb", NULL, "", 0, NULL),
                     SEEN_INVALID);
    assert_null(f);
}

/* ---- LevelDB and its family --------------------------------------------- */

static void leveldb_blocks_without_bits_are_empty(void **state)
{
    (void)state;
    const uint8_t bytes[] = {6};
    for (size_t len = 0; len < 2; len++) {
        seen_filter *f = NULL;
        size_t out;
        assert_int_equal(seen_import(&f, "leveldb", NULL, bytes, len, NULL),
                         SEEN_OK);
        assert_false(seen_maybe_str(f, "key"));
        assert_int_equal(seen_add_str(f, "key"), SEEN_UNSUPPORTED);
        free(exported(f, "leveldb", &out));
        assert_int_equal(out, len);
        seen_free(f);
    }
}

static void leveldb_blocks_of_forms_to_come_let_all_through(void **state)
{
    (void)state;
    uint8_t bytes[9] = {0};
    for (unsigned k = 0; k < 256; k++) {
        seen_filter *f = NULL;
        bytes[8] = (uint8_t)k;
        assert_int_equal(seen_import(&f, "leveldb", NULL, bytes, 9, NULL),
                         SEEN_OK);
        assert_int_equal(seen_maybe_str(f, "key"), k == 0 || k > 30);
        assert_int_equal(seen_add_str(f, "key"),
                         k > 30 ? SEEN_UNSUPPORTED : SEEN_OK);
        size_t len;
        uint8_t *out = exported(f, NULL, &len);
        assert_int_equal(len, 9);
        assert_int_equal(out[8], k);
        free(out);
        seen_free(f);
    }
}

static seen_plan planned(const char *dialect, uint64_t items, double fpp,
                         double per_key)
{
    seen_spec spec = {.dialect = dialect,
                      .items = items,
                      .fpp = fpp,
                      .bits_per_key = per_key};
    seen_plan plan = {.size = sizeof plan};
    if (seen_plan_for(&spec, &plan, NULL) != SEEN_OK)
        fail_msg("%s: %s", dialect, test_wrong_spec(&spec));
    return plan;
}

static void leveldb_sizes_are_the_originals(void **state)
{
    (void)state;
    seen_plan p = planned("leveldb", 1000, 0.01, 0);
    assert_int_equal(p.bits, 10000); /* ceil(9.585) bits a key */
    assert_int_equal(p.hashes, 6);
    assert_close(p.fpp, 0.00844, 0.01);
    assert_int_equal(planned("leveldb", 1, 0, 10).bits, 64);
    assert_int_equal(planned("leveldb", 1, 0, 1).hashes, 1);
    assert_int_equal(planned("leveldb", 1, 0, 371).hashes, 30);
    assert_int_equal(planned("leveldb", 1, 0, 372).hashes, 30);
    assert_int_equal(planned("goleveldb", 1, 0, 371).hashes, 30);
    assert_int_equal(planned("goleveldb", 1, 0, 372).hashes, 1);
    p = planned("badger", 1000, 0.01, 0);
    assert_int_equal(p.bits, 7000);
    assert_int_equal(p.hashes, 4);
    assert_close(p.fpp, 0.0359, 0.01);
    seen_spec half = {.dialect = "leveldb", .items = 9, .bits_per_key = 9.5};
    assert_non_null(test_wrong_spec(&half));
    seen_spec nan = {.dialect = "leveldb", .items = 9, .bits_per_key = NAN};
    assert_non_null(test_wrong_spec(&nan));
}

static void the_leveldb_family_shares_its_bytes(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("leveldb");
    seen_filter *f = imported(&v);
    size_t len;
    uint8_t *bytes = exported(f, "badger", &len);
    assert_int_equal(len, v.len);
    assert_memory_equal(bytes, v.bytes, len);
    free(bytes);
    seen_free(f);
    test_vector_free(&v);
}

/* ---- go-zero ------------------------------------------------------------- */

static void gozero_is_told_its_bits(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("gozero");
    seen_filter *f = NULL;
    seen_spec spec = {0};
    assert_int_equal(seen_import(&f, "gozero", &spec, v.bytes, v.len, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_import(&f, "gozero", NULL, v.bytes, v.len, NULL),
                     SEEN_INVALID);
    assert_non_null(
        strstr(test_wrong_bytes("gozero", NULL, v.bytes, v.len), "bits"));
    /* Too few for what is set. */
    spec.bits = 8991;
    assert_int_equal(seen_import(&f, "gozero", &spec, v.bytes, v.len, NULL),
                     SEEN_CORRUPT);
    spec.bits = ((uint64_t)1 << 32) + 1;
    assert_int_equal(seen_import(&f, "gozero", &spec, v.bytes, v.len, NULL),
                     SEEN_INVALID);
    spec = (seen_spec){.bits = 9000, .hashes = 13};
    assert_int_equal(seen_import(&f, "gozero", &spec, v.bytes, v.len, NULL),
                     SEEN_INVALID);
    test_vector_free(&v);
}

static void gozero_with_a_newline_behind_it_says_so(void **state)
{
    (void)state;
    uint8_t string[1126];
    seen_filter *f = NULL;
    const seen_spec spec = {.bits = 9000};
    memset(string, 0xff, sizeof string);
    string[1125] = '\n';
    assert_int_equal(
        seen_import(&f, "gozero", &spec, string, sizeof string, NULL),
        SEEN_CORRUPT);
    assert_non_null(strstr(
        test_wrong_bytes("gozero", &spec, string, sizeof string), "newline"));
    assert_null(test_wrong_bytes("gozero", &spec, string, 1125));
}

static void gozero_without_keys_is_no_string(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.bits = 9000};
    assert_int_equal(seen_import(&f, "gozero", &spec, NULL, 0, NULL), SEEN_OK);
    assert_false(seen_maybe_str(f, "key"));
    size_t len;
    assert_int_equal(seen_export(f, NULL, NULL, 0, &len, NULL), SEEN_OK);
    assert_int_equal(len, 0);
    assert_int_equal(seen_add_str(f, "key"), SEEN_OK);
    assert_true(seen_maybe_str(f, "key"));
    assert_int_equal(seen_export(f, NULL, NULL, 0, &len, NULL), SEEN_SHORT);
    assert_between((double)len, 1, 1125);
    seen_free(f);
}

static void gozero_advises_20_bits_a_key(void **state)
{
    (void)state;
    seen_plan p = planned("gozero", 1000, 0, 0);
    assert_int_equal(p.bits, 20000);
    assert_int_equal(p.hashes, 14);
    assert_close(p.fpp, 6.7e-5, 0.01);
    assert_int_equal(planned("gozero", 1000, 1e-4, 0).bits, 20000);
    seen_spec rare = {.dialect = "gozero", .items = 1000, .fpp = 1e-6};
    assert_non_null(strstr(test_wrong_spec(&rare), "bits"));
    rare.bits = 40000;
    assert_null(test_wrong_spec(&rare));
}

/* ---- go-bloom ------------------------------------------------------------ */

static void gobloom_sizes_are_the_originals(void **state)
{
    (void)state;
    seen_plan p = planned("gobloom", 1000, 0.01, 0);
    assert_int_equal(p.bits, 9584);
    assert_int_equal(p.hashes, 6);
    p = planned("gobloom", 100000, 1e-6, 0); /* a slot of go-shadowsocks2 */
    assert_int_equal(p.bits, 359439 * 8);
    assert_int_equal(p.hashes, 19);
    assert_int_equal(planned("gobloom", 1000, 0.6, 0).hashes, 0);
    seen_spec none = {.dialect = "gobloom", .items = 1, .fpp = 0.5};
    assert_non_null(test_wrong_spec(&none));
}

static void gobloom_of_no_hashes_lets_all_through(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.dialect = "gobloom", .items = 1000, .fpp = 0.6};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    assert_true(seen_maybe_str(f, "key"));
    assert_int_equal(seen_add_str(f, "key"), SEEN_OK);
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_int_equal(info.bits_set, 0);
    assert_true(info.fpp_now == 1);
    seen_free(f);
}

static void lengths_must_be_those_of_the_spec(void **state)
{
    (void)state;
    static const char *const names[] = {"gobloom", "kevburnsjr",
                                        "exposure-list"};
    for (size_t i = 0; i < 3; i++) {
        struct test_vector v = test_vector_load(names[i]);
        seen_filter *f = NULL;
        seen_spec other = {.items = v.spec.items + 40, .fpp = v.spec.fpp};
        assert_int_equal(
            seen_import(&f, v.dialect, &other, v.bytes, v.len, NULL),
            SEEN_CORRUPT);
        assert_int_equal(seen_import(&f, v.dialect, NULL, v.bytes, v.len, NULL),
                         SEEN_INVALID);
        /* Hashes alone will do. */
        seen_plan p = planned(names[i], v.spec.items, v.spec.fpp, 0);
        seen_spec hashes = {.hashes = p.hashes};
        assert_int_equal(
            seen_import(&f, v.dialect, &hashes, v.bytes, v.len, NULL), SEEN_OK);
        must_answer(f, &v);
        seen_free(f);
        test_vector_free(&v);
    }
}

/* ---- kevburnsjr, and lists of it ------------------------------------------ */

static void kevburnsjr_sizes_are_the_originals(void **state)
{
    (void)state;
    seen_plan p = planned("kevburnsjr", 1000, 0.001, 0);
    assert_int_equal(p.bits, 14400);
    assert_int_equal(p.hashes, 10);
}

static void add_numbers(seen_filter *f, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        uint8_t key[4] = {0, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        assert_int_equal(seen_add(f, key, 4), SEEN_OK);
    }
}

static unsigned count_numbers(const seen_filter *f, unsigned from, unsigned to)
{
    unsigned found = 0;
    for (unsigned i = from; i < to; i++) {
        uint8_t key[4] = {0, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        found += seen_maybe(f, key, 4);
    }
    return found;
}

static void an_exposure_list_keeps_five_filters(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.dialect = "exposure-list", .items = 100, .fpp = 1e-4};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    for (unsigned round = 0; round < 8; round++) {
        add_numbers(f, 100 * round, 100 * round + 100);
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        assert_int_equal(info.layers, round < 5 ? round + 1 : 5);
    }
    assert_int_equal(count_numbers(f, 300, 800), 500);
    assert_true(count_numbers(f, 0, 300) < 10);
    size_t len;
    uint8_t *text = exported(f, NULL, &len);
    assert_memory_equal(text, "100::", 5);
    assert_int_equal(text[len - 1], '\n');
    seen_filter *again = NULL;
    assert_int_equal(
        seen_import(&again, "exposure-list", &spec, text, len, NULL), SEEN_OK);
    assert_true(seen_equal(f, again));
    seen_free(again);
    /* Without its last end of line; and a sixth element. */
    assert_int_equal(
        seen_import(&again, "exposure-list", &spec, text, len - 1, NULL),
        SEEN_OK);
    seen_free(again);
    text = realloc(text, 2 * len);
    assert_non_null(text);
    memcpy(text + len, text, len);
    assert_int_equal(
        seen_import(&again, "exposure-list", &spec, text, 2 * len, NULL),
        SEEN_CORRUPT);
    /* Five filters are not one. */
    assert_int_equal(seen_export(f, "kevburnsjr", NULL, 0, &len, NULL),
                     SEEN_MISMATCH);
    free(text);
    seen_free(f);
}

static void one_filter_of_a_list_is_a_filter(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("kevburnsjr");
    seen_filter *f = imported(&v), *g = NULL;
    size_t len;
    uint8_t *text = exported(f, "exposure-list", &len);
    seen_spec spec = {.items = 1000, .fpp = 0.01};
    assert_int_equal(seen_import(&g, "exposure-list", &spec, text, len, NULL),
                     SEEN_OK);
    must_answer(g, &v);
    free(text);
    text = exported(g, "kevburnsjr", &len);
    assert_int_equal(len, v.len);
    assert_memory_equal(text, v.bytes, len);
    free(text);
    seen_free(f);
    seen_free(g);
    test_vector_free(&v);
}

/* ---- Rates --------------------------------------------------------------- */

/* Some lines get more keys than others: the rate is above what as many bits in one
 * array would have, and planned as it is. */
static void lines_have_the_rate_they_are_planned_for(void **state)
{
    (void)state;
    static const struct {
        const char *dialect;
        double fpp, bits_per_key;
    } cases[] = {
        {"parquet", 0.01, 0}, {"rocksdb", 0, 10}, {"rocksdb-legacy", 0, 10}};
    for (size_t i = 0; i < 3; i++) {
        const uint64_t n = 300000, probes = 2000000;
        seen_spec spec = {.dialect = cases[i].dialect,
                          .items = n,
                          .fpp = cases[i].fpp,
                          .bits_per_key = cases[i].bits_per_key};
        seen_plan plan = {.size = sizeof plan};
        assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
        seen_filter *f = test_filter(spec);
        test_add_members(f, 0, n);
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        double planned = seen_plan_fpp(&plan, n);
        double flat = seen_fpp_bloom((double)n, (double)plan.bits, plan.hashes);
        assert_between(planned / flat, 1.05, 3);
        assert_between(info.fpp_now / planned, 0.9, 1.1);
        uint64_t wrong = test_count_maybe(f, TEST_STRANGERS, probes);
        if (strcmp(cases[i].dialect, "rocksdb-legacy") != 0)
            assert_binomial(wrong, probes, info.fpp_now);
        else /* its bits depend on each other: steps of one size in a line */
            assert_between((double)wrong / (double)probes / info.fpp_now, 1.1,
                           1.3);
        seen_free(f);
    }
}

/* ---- RedisBloom ---------------------------------------------------------- */

static void redisbloom_that_does_not_scale_is_full(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("redisbloom-nonscaling");
    seen_filter *f = imported(&v);
    seen_status s = SEEN_OK;
    for (uint64_t i = 0; i < 5000 && s == SEEN_OK; i++)
        s = seen_add_u64(f, i);
    assert_int_equal(s, SEEN_FULL);
    must_answer_keys(f, &v);
    seen_free(f);
    test_vector_free(&v);
}

static void redisbloom_grows_as_far_as_its_limit(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {
        .dialect = "redisbloom", .items = 100, .fpp = 0.01, .limit = 40000};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    seen_status s = SEEN_OK;
    uint64_t n = 0;
    for (; n < 100000 && s == SEEN_OK; n++)
        s = seen_add_u64(f, n);
    assert_int_equal(s, SEEN_FULL);
    for (int was = 0; was < 2; was++) {
        bool before = was;
        assert_int_equal(seen_visit(f, "one more", 8, &before), SEEN_FULL);
        assert_int_equal(before, was);
    }
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_true(info.layers > 3 && info.bytes <= 40000);
    for (uint64_t i = 0; i + 1 < n; i++)
        assert_true(seen_maybe_u64(f, i));
    seen_free(f);
}

/* A link of up to 2^64 - 1 bits in no bytes: rounded up, its size is 0 again. */
static void redisbloom_of_more_bits_than_there_are_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[73] = {[8] = 1, [12] = 5, [16] = 2, [64] = 0xe8, [65] = 3};
    const double fpp = 0.01, per_key = 9.585058377367439;
    memcpy(bytes + 44, &fpp, 8);
    memcpy(bytes + 52, &per_key, 8);
    bytes[60] = 7;
    for (uint64_t low = 0; low < 64; low++) {
        seen_filter *f = NULL;
        for (size_t i = 0; i < 8; i++)
            bytes[28 + i] = (uint8_t)((UINT64_MAX - low) >> (8 * i));
        assert_int_equal(seen_import(&f, "redisbloom", NULL, bytes, 73, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(
            seen_import_view(&f, "redisbloom", NULL, bytes, 73, NULL),
            SEEN_CORRUPT);
    }
}

static void a_cuckoo_filter_counts_and_forgets(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_spec spec = {.dialect = "redisbloom-cf", .items = 64};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(seen_add_str(f, "key"), SEEN_OK);
        assert_int_equal(seen_count(f, "key", 3), i);
    }
    bool before;
    assert_int_equal(seen_visit(f, "key", 3, &before), SEEN_OK);
    assert_true(before);
    for (uint32_t i = 3; i-- > 0;) {
        assert_int_equal(seen_remove(f, "key", 3), SEEN_OK);
        assert_int_equal(seen_count(f, "key", 3), i);
    }
    assert_int_equal(seen_remove(f, "key", 3), SEEN_ABSENT);
    /* A failed add leaves every earlier key in: it cannot grow. */
    spec.limit = 8000;
    seen_free(f);
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    seen_status s = SEEN_OK;
    uint64_t n = 0;
    for (; n < 100000 && s == SEEN_OK; n++)
        s = seen_add_u64(f, n);
    assert_int_equal(s, SEEN_FULL);
    for (uint64_t i = 0; i + 1 < n; i++)
        assert_true(seen_maybe_u64(f, i));
    seen_free(f);
}

/* ---- Links --------------------------------------------------------------- */

/* What a filter takes beside its bits, alignment included: no room for links that
 * it does not have. */
static void small_filters_stay_small(void **state)
{
    (void)state;
    static const char *const names[] = {"redisbloom", "redisbloom-cf",
                                        "valkey-bloom", "guava"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct meter meter = {0};
        seen_allocator a = {take_memory, give_back, &meter};
        seen_spec spec = {.dialect = names[i], .items = 100, .fpp = 0.01};
        seen_filter *f = test_filter(spec), *again;
        seen_info info = {.size = sizeof info};
        seen_info_of(f, &info);
        if (i == 0) assert_int_equal(info.bits / 8, 144);
        assert_true(info.bytes < info.bits / 8 + 640);
        size_t len;
        uint8_t *bytes = exported(f, NULL, &len);
        assert_int_equal(seen_import(&again, names[i],
                                     &(seen_spec){.allocator = &a}, bytes, len,
                                     NULL),
                         SEEN_OK);
        assert_true(meter.taken < info.bits / 8 + 800);
        seen_free(again);
        free(bytes);
        seen_free(f);
    }
}

/* A filter of this dialect that grows by links of one size, from one that does
 * not: its growth lies at this offset, in so many bytes. */
static seen_filter *chain_of(const char *dialect, uint64_t items, size_t at,
                             const seen_allocator *a)
{
    seen_filter *f = test_filter((seen_spec){
                    .dialect = dialect, .items = items, .fpp = 0.01}),
                *chain = NULL;
    size_t len;
    uint8_t *bytes = exported(f, NULL, &len);
    seen_free(f);
    memset(bytes + at, 0, 2);
    bytes[at] = 1;
    assert_int_equal(seen_import(&chain, dialect, &(seen_spec){.allocator = a},
                                 bytes, len, NULL),
                     SEEN_OK);
    free(bytes);
    return chain;
}

static uint32_t links_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(f, &info);
    return info.layers;
}

static void must_be(const seen_filter *f, const seen_filter *g, unsigned n)
{
    assert_int_equal(links_of(f), links_of(g));
    assert_true(seen_equal(f, g));
    assert_int_equal(count_numbers(g, 0, n), n);
}

static void chains_have_as_many_links_as_it_takes(void **state)
{
    (void)state;
    static const struct {
        const char *dialect;
        uint64_t items;
        size_t growth_at;
        unsigned keys;
        uint32_t links;
    } cases[] = {{"redisbloom", 20, 16, 2000, 90},
                 {"valkey-bloom", 20, 1, 2000, 90},
                 {"redisbloom-cf", 64, 36, 20000, 290}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen_filter *f = chain_of(cases[i].dialect, cases[i].items,
                                  cases[i].growth_at, NULL),
                    *g = NULL;
        const unsigned n = cases[i].keys;
        add_numbers(f, 0, n);
        assert_true(links_of(f) > cases[i].links);
        assert_int_equal(count_numbers(f, 0, n), n);
        size_t len;
        uint8_t *bytes = exported(f, NULL, &len);
        assert_int_equal(
            seen_import(&g, cases[i].dialect, NULL, bytes, len, NULL), SEEN_OK);
        must_be(f, g, n);
        add_numbers(g, n, n + 100); /* goes on */
        seen_free(g);
        assert_int_equal(
            seen_import_view(&g, cases[i].dialect, NULL, bytes, len, NULL),
            SEEN_OK);
        must_be(f, g, n);
        seen_free(g);
        free(bytes);
        assert_int_equal(seen_copy(&g, f, NULL), SEEN_OK);
        must_be(f, g, n);
        seen_free(f);
        assert_int_equal(count_numbers(g, 0, n), n);
        must_survive(g); /* saved and loaded */
        seen_clear(g);
        assert_int_equal(links_of(g), 1);
        assert_true(test_info(g).bytes < test_info(g).bits / 8 + 640);
        assert_true(count_numbers(g, 0, n) == 0);
        add_numbers(g, 0, 100);
        assert_int_equal(count_numbers(g, 0, 100), 100);
        seen_free(g);
    }
}

static void put_number(uint8_t *to, uint64_t x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(x >> 8 * i);
}

/* A header of sub-filters of one bucket with `slots` slots, and their bytes. */
static seen_status import_slots(uint64_t n, uint16_t slots, seen_filter **f,
                                uint64_t *taken, size_t *len, seen_error *e)
{
    struct meter meter = {0};
    seen_allocator a = {take_memory, give_back, &meter};
    *len = 38 + (size_t)(n % 100000) * slots;
    uint8_t *bytes = calloc(1, *len);
    assert_non_null(bytes);
    put_number(bytes + 8, 1, 8);
    put_number(bytes + 24, n, 8);
    put_number(bytes + 32, slots, 2);
    put_number(bytes + 34, 20, 2);
    put_number(bytes + 36, 1, 2);
    seen_status status = seen_import(
        f, "redisbloom-cf", &(seen_spec){.allocator = &a}, bytes, *len, e);
    *taken = meter.taken;
    free(bytes);
    return status;
}

static void tiny_links_take_bounded_memory(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        uint16_t slots;
        const char *wrong;
    } cases[] = {
        {256, 1, NULL},
        {1000, 32, NULL},
        {65535, 32, NULL},
        {257, 1,
         "257 sub-filters of 257 bytes in all: expected at least 32 bytes each "
         "where there are more than 256"},
        {65535, 31,
         "65535 sub-filters of 2031585 bytes in all: expected at least 32 "
         "bytes each where there are more than 256"},
        {65536, 64, "65536 sub-filters at offset 24: expected 1 to 65535"},
        {100000, 64, "100000 sub-filters at offset 24: expected 1 to 65535"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen_filter *f = NULL;
        seen_error e;
        uint64_t taken;
        size_t len;
        seen_status s =
            import_slots(cases[i].n, cases[i].slots, &f, &taken, &len, &e);
        assert_int_equal(s, cases[i].wrong ? SEEN_CORRUPT : SEEN_OK);
        assert_string_equal(e.text, cases[i].wrong ? cases[i].wrong : "");
        assert_true(taken <= 8 * (uint64_t)len + 65536); /* seen.h */
        if (s != SEEN_OK) {
            assert_int_equal(taken, 0);
            continue;
        }
        assert_int_equal(links_of(f), cases[i].n);
        assert_false(seen_maybe_str(f, "key"));
        seen_free(f);
    }
}

/* What could not be read again is not made either. */
static void a_chain_of_tiny_links_ends(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.dialect = "redisbloom-cf", .items = 1});
    unsigned n = 0;
    for (seen_status s = SEEN_OK; s == SEEN_OK; n++) {
        uint8_t key[4] = {0, 0, (uint8_t)(n >> 8), (uint8_t)n};
        s = seen_add(f, key, 4);
        assert_true(s == SEEN_OK || s == SEEN_FULL);
    }
    assert_int_equal(links_of(f), 256);
    assert_int_equal(count_numbers(f, 0, n - 1), n - 1);
    must_survive(f);
    seen_free(f);
}

/* ---- Guava --------------------------------------------------------------- */

static void guava_sizes_are_the_originals(void **state)
{
    (void)state;
    seen_plan p = planned("guava", 1000, 0.01, 0);
    assert_int_equal(p.bits, 9600);
    assert_int_equal(p.hashes, 7);
    p = planned("guava", 1, 0.03, 0); /* 7.29 bits */
    assert_int_equal(p.bits, 64);
    assert_int_equal(p.hashes, 5);
    seen_spec insists = {
        .dialect = "guava", .items = 1000, .fpp = 0.01, .hashes = 9};
    assert_int_equal(seen_plan_for(&insists, &p, NULL), SEEN_OK);
    assert_int_equal(p.hashes, 9);
}

static void guavas_strategies_are_two_dialects(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("guava");
    seen_filter *f = NULL;
    assert_int_equal(
        seen_import(&f, "guava-mitz32", NULL, v.bytes, v.len, NULL),
        SEEN_CORRUPT);
    f = imported(&v);
    size_t len;
    assert_int_equal(seen_export(f, "guava-mitz32", NULL, 0, &len, NULL),
                     SEEN_MISMATCH);
    seen_free(f);
    test_vector_free(&v);
}

/* ---- bits-and-blooms ------------------------------------------------------- */

static void json_may_be_laid_out_otherwise(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("bits-and-blooms-json");
    char *text = calloc(v.len + 100, 1), *b = strstr((char *)v.bytes, "\"b\"");
    assert_true(text && b);
    snprintf(text, v.len + 100, " {\n%.*s , \"k\" : 7,\t\"m\":9586 } \n",
             (int)(strlen(b) - 1), b);
    seen_filter *f = NULL;
    assert_int_equal(seen_import(&f, v.dialect, NULL, text, strlen(text), NULL),
                     SEEN_OK);
    must_answer(f, &v);
    must_export(f, &v);
    seen_free(f);
    /* The other alphabet, which comes back. */
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
    assert_int_equal(seen_import(&f, v.dialect, NULL, text, strlen(text), NULL),
                     SEEN_OK);
    must_answer(f, &v);
    size_t len;
    uint8_t *out = exported(f, NULL, &len);
    assert_non_null(memchr(out, '/', len));
    free(out);
    seen_free(f);
    static const char *const bad[] = {
        "",
        "{}",
        "{\"m\":1,\"k\":1}",
        "{\"m\":1,\"m\":1,\"k\":1}",
        "{\"m\":64,\"k\":1,\"b\":\"\"}",
        "{\"m\":64,\"k\":1,\"b\":\"AAAAAAAAAEAAAAAAAAAAAA==\"",
        "{\"m\":65,\"k\":1,\"b\":\"AAAAAAAAAEAAAAAAAAAAAA==\"}",
        "{\"m\":64,\"k\":0,\"b\":\"AAAAAAAAAEAAAAAAAAAAAA==\"}",
        "{\"m\":99999999999999999999,\"k\":1,\"b\":\"\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            seen_import(&f, v.dialect, NULL, bad[i], strlen(bad[i]), NULL),
            SEEN_CORRUPT);
    free(text);
    test_vector_free(&v);
}

/* ---- DCSO ---------------------------------------------------------------- */

static void dcsos_data_stays_with_the_filter(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("dcso");
    seen_filter *f = imported(&v), *copy = NULL;
    assert_int_equal(seen_add_str(f, "one more"), SEEN_OK);
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    size_t len;
    uint8_t *bytes = exported(copy, NULL, &len);
    assert_int_equal(len, v.len);
    assert_memory_equal(bytes + 1248, v.bytes + 1248, len - 1248);
    assert_int_equal(bytes[40] | bytes[41] << 8, 1000); /* 999, and one more */
    free(bytes);
    seen_free(copy);
    seen_free(f);
    test_vector_free(&v);
}

static void dcso_sizes_are_the_originals(void **state)
{
    (void)state;
    assert_int_equal(planned("dcso", 1000, 0.01, 0).bits, 9585);
    assert_int_equal(planned("bits-and-blooms", 1000, 0.01, 0).bits, 9586);
    assert_int_equal(planned("dcso", 1000, 0.02, 0).bits, 8142);
    assert_int_equal(planned("dcso", 1000, 0.02, 0).hashes, 6);
}

/* ---- Parquet ------------------------------------------------------------- */

static seen_status import_parquet(const uint8_t *head, size_t len)
{
    uint8_t bytes[128] = {0};
    seen_filter *f = NULL;
    memcpy(bytes, head, len);
    seen_status s = seen_import(&f, "parquet", NULL, bytes, len + 32, NULL);
    if (s == SEEN_OK) {
        size_t out;
        uint8_t *back = exported(f, NULL, &out);
        assert_int_equal(out, len + 32);
        assert_memory_equal(back, bytes, out); /* the header as it was */
        free(back);
    }
    seen_free(f);
    return s;
}

static void parquet_headers_may_have_more_fields(void **state)
{
    (void)state;
    /* clang-format off */
    const uint8_t plain[] = {0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0,
                             0x1c, 0x1c, 0, 0, 0};
    /* field 5: binary; field 6: a struct with a struct and a double in it */
    const uint8_t more[] = {0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0,
                            0x1c, 0x1c, 0, 0, 0x18, 2, 'h', 'i', 0x1c, 0x1c,
                            0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x11, 0, 0};
    /* in another order, with ids spelt out: 4, 3, 2, 1 */
    const uint8_t order[] = {0x0c, 8, 0x1c, 0, 0, 0x0c, 6, 0x1c, 0, 0,
                             0x0c, 4, 0x1c, 0, 0, 0x05, 2, 0x40, 0};
    const uint8_t other_hash[] = {0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x2c, 0,
                                  0, 0x1c, 0x1c, 0, 0, 0};
    const uint8_t missing[] = {0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0,
                               0};
    const uint8_t odd[] = {0x15, 0x42, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0,
                           0x1c, 0x1c, 0, 0, 0};
    const uint8_t negative[] = {0x15, 0x3f, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0,
                                0x1c, 0x1c, 0, 0, 0};
    /* clang-format on */
    assert_int_equal(import_parquet(plain, sizeof plain), SEEN_OK);
    assert_int_equal(import_parquet(more, sizeof more), SEEN_OK);
    assert_int_equal(import_parquet(order, sizeof order), SEEN_OK);
    assert_int_equal(import_parquet(other_hash, sizeof other_hash),
                     SEEN_CORRUPT);
    assert_int_equal(import_parquet(missing, sizeof missing), SEEN_CORRUPT);
    assert_int_equal(import_parquet(odd, sizeof odd), SEEN_CORRUPT);
    assert_int_equal(import_parquet(negative, sizeof negative), SEEN_CORRUPT);
    uint8_t deep[60];
    memset(deep, 0x1c, sizeof deep); /* structs without end */
    assert_int_equal(import_parquet(deep, sizeof deep), SEEN_CORRUPT);
}

static void parquet_sizes_are_arrows(void **state)
{
    (void)state;
    assert_int_equal(planned("parquet", 1000, 0.01, 0).bits, 16384);
    assert_int_equal(planned("parquet", 1, 0.5, 0).bits, 256);
    assert_int_equal(planned("parquet", 1000, 0.01, 0).hashes, 8);
}

/* ---- RocksDB ------------------------------------------------------------- */

static void rocksdb_sizes_are_the_originals(void **state)
{
    (void)state;
    static const struct {
        double per_key;
        uint32_t probes;
    } known[] = {{1, 1},     {2.08, 1},   {2.081, 2},   {10, 6},
                 {10.07, 6}, {10.071, 7}, {20, 11},     {25.5, 12},
                 {26, 11},   {50, 23},    {50.001, 24}, {100, 24}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(planned("rocksdb", 10, 0, known[i].per_key).hashes,
                         known[i].probes);
    assert_int_equal(planned("rocksdb", 1000, 0, 10).bits, 1280 * 8);
    assert_int_equal(planned("rocksdb-legacy", 1000, 0, 10).bits, 21 * 512);
    assert_int_equal(planned("rocksdb-legacy", 1000, 0, 10).hashes, 6);
    seen_spec none = {.dialect = "rocksdb", .items = 9, .bits_per_key = 0.4};
    assert_non_null(test_wrong_spec(&none));
}

static void rocksdb_trailers_decide(void **state)
{
    (void)state;
    static const struct {
        uint8_t trailer[5];
        const char *dialect;
        seen_status status;
        bool maybe, add;
    } cases[] = {
        {{0xff, 0, 6, 0, 0}, "rocksdb", SEEN_OK, false, true},
        {{0xff, 1, 6, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0xff, 0, 0, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0xff, 0, 31, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0xff, 0, 38, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0xff, 0, 6, 0, 1}, "rocksdb", SEEN_OK, true, false},
        {{0, 0, 6, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0x80, 0, 6, 0, 0}, "rocksdb", SEEN_OK, true, false},
        {{0xfe, 0, 6, 0, 0}, "rocksdb", SEEN_UNSUPPORTED, false, false},
        {{6, 1, 0, 0, 0}, "rocksdb", SEEN_CORRUPT, false, false},
        {{6, 1, 0, 0, 0}, "rocksdb-legacy", SEEN_OK, false, true},
        {{6, 2, 0, 0, 0}, "rocksdb-legacy", SEEN_CORRUPT, false, false},
        {{6, 0, 0, 0, 0}, "rocksdb-legacy", SEEN_CORRUPT, false, false},
        {{0, 1, 0, 0, 0}, "rocksdb-legacy", SEEN_OK, true, false},
        {{0xff, 0, 6, 0, 0}, "rocksdb-legacy", SEEN_CORRUPT, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t block[69] = {0};
        seen_filter *f = NULL;
        memcpy(block + 64, cases[i].trailer, 5);
        seen_status s =
            seen_import(&f, cases[i].dialect, NULL, block, 69, NULL);
        assert_int_equal(s, cases[i].status);
        if (s != SEEN_OK) continue;
        assert_int_equal(seen_maybe_str(f, "key"), cases[i].maybe);
        assert_int_equal(seen_add_str(f, "key"),
                         cases[i].add ? SEEN_OK : SEEN_UNSUPPORTED);
        size_t len;
        uint8_t *out = exported(f, NULL, &len);
        assert_int_equal(len, 69);
        assert_memory_equal(out + 64, cases[i].trailer, 5);
        free(out);
        seen_free(f);
    }
}

/* ---- Valkey -------------------------------------------------------------- */

static void valkey_chains_without_expansion_are_full(void **state)
{
    (void)state;
    struct test_vector v = test_vector_load("valkey-bloom");
    v.bytes[1] = 0; /* expansion */
    seen_filter *f = imported(&v);
    seen_status s = SEEN_OK;
    for (uint64_t i = 0; i < 5000 && s == SEEN_OK; i++)
        s = seen_add_u64(f, i);
    assert_int_equal(s, SEEN_FULL);
    must_answer_keys(f, &v);
    seen_free(f);
    /* The seed is not the fixed one, and the flag says that it is. */
    v.bytes[30 + 8 + 13] ^= 1;
    assert_int_equal(seen_import(&f, v.dialect, NULL, v.bytes, v.len, NULL),
                     SEEN_CORRUPT);
    test_vector_free(&v);
}

/* ---- Sniffing ------------------------------------------------------------ */

static void check_sniffed(struct test_vector *v)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    const char *names[4];
    size_t n = seen_sniff(v->bytes, v->len, names, 4);
    assert_true(seen_dialect_named(v->dialect, &facts));
    if (facts.can & SEEN_CAN_SNIFF) {
        assert_int_equal(n, 1);
        assert_string_equal(names[0], v->dialect);
    } else if (n > 0) {
        fail_msg("%s is taken for %s", v->name, names[0]);
    }
}

static void what_says_what_it_is_is_recognised(void **state)
{
    (void)state;
    for_each(check_sniffed);
    assert_int_equal(seen_sniff("", 0, NULL, 0), 0);
    assert_int_equal(seen_sniff(NULL, 0, NULL, 0), 0);
}

/* A DCSO filter whose owner's data ends like a RocksDB block. */
static void what_fits_two_is_both(void **state)
{
    (void)state;
    const uint8_t bytes[69] = {1,        [8] = 1,   [22] = 0xe0, 0x3f,
                               [24] = 1, [32] = 64, [64] = 0xff, [66] = 6};
    const char *names[4] = {0};
    assert_int_equal(seen_sniff(bytes, sizeof bytes, names, 4), 2);
    assert_string_equal(names[0], "dcso");
    assert_string_equal(names[1], "rocksdb");
    assert_int_equal(seen_sniff(bytes, sizeof bytes, names, 1), 2);
    assert_int_equal(seen_sniff(bytes, sizeof bytes, NULL, 0), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_of_others_answer_as_recorded),
        cmocka_unit_test(filters_of_others_are_used_where_they_lie),
        cmocka_unit_test(filters_made_from_the_keys_are_the_same_bytes),
        cmocka_unit_test(single_visits_tell_what_was_there),
        cmocka_unit_test(filters_of_others_are_ordinary_filters),
        cmocka_unit_test(built_at_once_it_is_the_same),
        cmocka_unit_test(lists_overrule_filters_of_others),
        cmocka_unit_test(our_container_takes_filters_of_others),
        cmocka_unit_test(any_cut_is_an_error_or_a_filter),
        cmocka_unit_test(any_change_is_an_error_or_a_filter),
        cmocka_unit_test(any_number_at_its_extremes_is_an_error_or_a_filter),
        cmocka_unit_test(nonsense_in_a_spec_is_an_error),
        cmocka_unit_test(every_row_of_the_table_is_complete),
        cmocka_unit_test(leveldb_blocks_without_bits_are_empty),
        cmocka_unit_test(leveldb_blocks_of_forms_to_come_let_all_through),
        cmocka_unit_test(leveldb_sizes_are_the_originals),
        cmocka_unit_test(the_leveldb_family_shares_its_bytes),
        cmocka_unit_test(gozero_is_told_its_bits),
        cmocka_unit_test(gozero_with_a_newline_behind_it_says_so),
        cmocka_unit_test(gozero_without_keys_is_no_string),
        cmocka_unit_test(gozero_advises_20_bits_a_key),
        cmocka_unit_test(gobloom_sizes_are_the_originals),
        cmocka_unit_test(gobloom_of_no_hashes_lets_all_through),
        cmocka_unit_test(lengths_must_be_those_of_the_spec),
        cmocka_unit_test(kevburnsjr_sizes_are_the_originals),
        cmocka_unit_test(an_exposure_list_keeps_five_filters),
        cmocka_unit_test(one_filter_of_a_list_is_a_filter),
        cmocka_unit_test(lines_have_the_rate_they_are_planned_for),
        cmocka_unit_test(redisbloom_that_does_not_scale_is_full),
        cmocka_unit_test(redisbloom_grows_as_far_as_its_limit),
        cmocka_unit_test(redisbloom_of_more_bits_than_there_are_is_refused),
        cmocka_unit_test(small_filters_stay_small),
        cmocka_unit_test(chains_have_as_many_links_as_it_takes),
        cmocka_unit_test(tiny_links_take_bounded_memory),
        cmocka_unit_test(a_chain_of_tiny_links_ends),
        cmocka_unit_test(a_cuckoo_filter_counts_and_forgets),
        cmocka_unit_test(guava_sizes_are_the_originals),
        cmocka_unit_test(guavas_strategies_are_two_dialects),
        cmocka_unit_test(json_may_be_laid_out_otherwise),
        cmocka_unit_test(dcsos_data_stays_with_the_filter),
        cmocka_unit_test(dcso_sizes_are_the_originals),
        cmocka_unit_test(parquet_headers_may_have_more_fields),
        cmocka_unit_test(parquet_sizes_are_arrows),
        cmocka_unit_test(rocksdb_sizes_are_the_originals),
        cmocka_unit_test(rocksdb_trailers_decide),
        cmocka_unit_test(valkey_chains_without_expansion_are_full),
        cmocka_unit_test(what_says_what_it_is_is_recognised),
        cmocka_unit_test(what_fits_two_is_both),
    };
    test_announce("dialects");
    return cmocka_run_group_tests_name("dialects", tests, NULL, NULL);
}
