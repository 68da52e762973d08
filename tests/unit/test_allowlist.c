/*
 * test_allowlist.c - the exact list against a plain array, its bytes against
 * hostile hands, and filters that have one: every kind, single calls and
 * batches, whatever their bits say.
 */
#include "seen_allowlist.h"

#include "base/bytes.h"
#include "exact/allowlist.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static seen_allowlist *new_list(void)
{
    seen_allowlist *list = NULL;
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    return list;
}

static void add_str(seen_allowlist *list, const char *key)
{
    assert_int_equal(seen_allowlist_add(list, key, strlen(key)), SEEN_OK);
}

struct bytes {
    uint8_t *at;
    size_t len;
};

static struct bytes save(const seen_allowlist *list)
{
    struct bytes b = {0};
    assert_int_equal(seen_allowlist_save(list, NULL, 0, &b.len), SEEN_SHORT);
    b.at = malloc(b.len);
    assert_non_null(b.at);
    size_t len = 0;
    assert_int_equal(seen_allowlist_save(list, b.at, b.len - 1, &len),
                     SEEN_SHORT);
    assert_int_equal(len, b.len);
    assert_int_equal(seen_allowlist_save(list, b.at, b.len, &len), SEEN_OK);
    assert_int_equal(len, b.len);
    return b;
}

/* ---- Against a plain array ---------------------------------------------- */

/* Keys of 0 to 39 bytes; many begin another one, all values of bytes. */
#define UNIVERSE 700

static struct {
    uint8_t bytes[40];
    size_t len;
    bool in;
    uint64_t since; /* when it was added */
} universe[UNIVERSE];

static void make_universe(struct test_rng *r)
{
    for (size_t i = 0; i < UNIVERSE; i++) {
        universe[i].in = false;
        universe[i].len = i % 40;
        if (i == 0) continue; /* the empty key */
        size_t from = test_below(r, i);
        memcpy(universe[i].bytes, universe[from].bytes, 40);
        size_t keep = test_below(r, universe[from].len + 1);
        for (size_t j = keep; j < universe[i].len; j++)
            universe[i].bytes[j] = (uint8_t)test_below(r, j % 3 ? 256 : 3);
    }
    /* One of each, by brute force. */
    for (size_t i = 0; i < UNIVERSE; i++)
        for (size_t j = 0; j < i && universe[i].len != SIZE_MAX; j++)
            if (universe[i].len == universe[j].len &&
                !memcmp(universe[i].bytes, universe[j].bytes, universe[i].len))
                universe[i].len = SIZE_MAX; /* left out */
}

static size_t present(void)
{
    size_t n = 0;
    for (size_t i = 0; i < UNIVERSE; i++)
        n += universe[i].in;
    return n;
}

struct walk {
    const seen_allowlist *list;
    uint64_t n, last, stop_at;
};

static bool step(void *ctx, const void *key, size_t len)
{
    struct walk *w = ctx;
    assert_true(seen_allowlist_has(w->list, key, len));
    for (size_t i = 0; i < UNIVERSE; i++) {
        if (universe[i].len != len || memcmp(universe[i].bytes, key, len))
            continue;
        assert_true(universe[i].in);
        assert_true(w->n == 0 || universe[i].since > w->last);
        w->last = universe[i].since;
    }
    return ++w->n != w->stop_at;
}

static void assert_same(const seen_allowlist *list)
{
    size_t n = present();
    assert_int_equal(seen_allowlist_count(list), n);
    for (size_t i = 0; i < UNIVERSE; i++)
        if (universe[i].len != SIZE_MAX)
            assert_int_equal(
                seen_allowlist_has(list, universe[i].bytes, universe[i].len),
                universe[i].in);
    struct walk w = {.list = list};
    seen_allowlist_each(list, step, &w);
    assert_int_equal(w.n, n);
    if (n < 2) return;
    w = (struct walk){.list = list, .stop_at = 2};
    seen_allowlist_each(list, step, &w);
    assert_int_equal(w.n, 2);
}

static void one_round(struct test_rng *r, int steps)
{
    make_universe(r);
    seen_allowlist *list = new_list();
    uint64_t favour = 1 + test_below(r, 9); /* of ten steps, to add */
    for (int s = 0; s < steps; s++) {
        size_t i = test_below(r, UNIVERSE);
        if (universe[i].len == SIZE_MAX) continue;
        const void *key = universe[i].len ? universe[i].bytes : NULL;
        if (test_below(r, 10) < favour) {
            assert_int_equal(seen_allowlist_add(list, key, universe[i].len),
                             SEEN_OK);
            if (!universe[i].in) universe[i].since = (uint64_t)s;
            universe[i].in = true;
        } else {
            assert_int_equal(seen_allowlist_remove(list, key, universe[i].len),
                             universe[i].in ? SEEN_OK : SEEN_ABSENT);
            universe[i].in = false;
        }
        if (s % 500 == 0) assert_same(list);
    }
    assert_same(list);
    seen_allowlist *copy = NULL;
    assert_int_equal(seen_allowlist_copy(&copy, list, NULL), SEEN_OK);
    assert_same(copy);
    assert_true(seen_allowlist_equal(list, copy));
    seen_allowlist_clear(list);
    assert_int_equal(seen_allowlist_count(list), 0);
    assert_int_equal(seen_allowlist_equal(list, copy), present() == 0);
    assert_false(seen_allowlist_has(list, NULL, 0));
    assert_same(copy);
    seen_allowlist_free(list);
    seen_allowlist_free(copy);
}

static void it_agrees_with_a_plain_array(void **state)
{
    (void)state;
    struct test_rng r = test_rng(150);
    for (uint64_t i = 0; i < 20 * test_scale(); i++)
        one_round(&r, 3000);
    test_tried(20 * test_scale() * 3000, "operations");
}

/* ---- Size --------------------------------------------------------------- */

static void it_grows_and_shrinks_to_nothing(void **state)
{
    (void)state;
    const uint64_t n = 100000;
    seen_allowlist *list = new_list();
    uint64_t key;
    for (uint64_t i = 0; i < n; i++) {
        key = test_key(i);
        assert_int_equal(seen_allowlist_add(list, &key, i % 9), SEEN_OK);
        assert_int_equal(seen_allowlist_add(list, &key, 8), SEEN_OK);
    }
    assert_true(seen_allowlist_count(list) >= n);
    for (uint64_t i = 0; i < n; i++) {
        key = test_key(i);
        assert_true(seen_allowlist_has(list, &key, 8));
        key = test_key(TEST_STRANGERS + i);
        assert_false(seen_allowlist_has(list, &key, 8));
    }
    uint64_t bytes = seen_allowlist_bytes(list);
    assert_between((double)bytes, 12.0 * (double)n, 120.0 * (double)n);
    /* Coming and going takes no more memory than being there. */
    for (uint64_t i = 0; i < 2 * n; i++) {
        key = test_key(i);
        assert_int_equal(seen_allowlist_remove(list, &key, 8), SEEN_OK);
        key = test_key(n + i);
        assert_int_equal(seen_allowlist_add(list, &key, 8), SEEN_OK);
    }
    assert_true(seen_allowlist_bytes(list) <= 2 * bytes);
    for (uint64_t i = 2 * n; i < 3 * n; i++) {
        key = test_key(i);
        assert_int_equal(seen_allowlist_remove(list, &key, 8), SEEN_OK);
        assert_false(seen_allowlist_has(list, &key, 8));
    }
    seen_allowlist_free(list);
    seen_allowlist_free(NULL);
}

static void long_keys_have_a_limit(void **state)
{
    (void)state;
    uint8_t *key = calloc(1, SEEN_LISTED_KEY_MAX + 1);
    assert_non_null(key);
    seen_allowlist *list = new_list(), *loaded = NULL;
    assert_int_equal(seen_allowlist_add(list, key, SEEN_LISTED_KEY_MAX + 1),
                     SEEN_INVALID);
    assert_int_equal(seen_allowlist_add(list, key, SIZE_MAX), SEEN_INVALID);
    assert_int_equal(seen_allowlist_add(list, NULL, 1), SEEN_INVALID);
    assert_int_equal(seen_allowlist_count(list), 0);
    assert_int_equal(seen_allowlist_add(list, key, SEEN_LISTED_KEY_MAX),
                     SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, key, SEEN_LISTED_KEY_MAX - 1),
                     SEEN_OK);
    assert_true(seen_allowlist_has(list, key, SEEN_LISTED_KEY_MAX));
    assert_false(seen_allowlist_has(list, key, SEEN_LISTED_KEY_MAX + 1));
    key[SEEN_LISTED_KEY_MAX - 1] = 1;
    assert_false(seen_allowlist_has(list, key, SEEN_LISTED_KEY_MAX));
    assert_true(seen_allowlist_has(list, key, SEEN_LISTED_KEY_MAX - 1));
    struct bytes b = save(list);
    assert_int_equal(seen_allowlist_load(&loaded, b.at, b.len, NULL, NULL),
                     SEEN_OK);
    assert_true(seen_allowlist_equal(list, loaded));
    seen_allowlist_free(loaded);
    seen_allowlist_free(list);
    free(b.at);

    /* One byte more than any key has, well formed otherwise. */
    size_t len = 8 + SEEN_LISTED_KEY_MAX + 1;
    uint8_t *far = calloc(1, len);
    assert_non_null(far);
    seen_put_le32(far, 1);
    seen_put_le32(far + 4, (uint32_t)SEEN_LISTED_KEY_MAX + 1);
    assert_int_equal(seen_allowlist_load(&loaded, far, len, NULL, NULL),
                     SEEN_CORRUPT);
    free(far);
    free(key);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    seen_allowlist *list = new_list(), *other = NULL;
    const seen_allocator half = {0};
    size_t len;
    assert_int_equal(seen_allowlist_new(NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_allowlist_new(&other, &half), SEEN_INVALID);
    assert_int_equal(seen_allowlist_copy(NULL, list, NULL), SEEN_INVALID);
    assert_int_equal(seen_allowlist_copy(&other, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_allowlist_copy(&other, list, &half), SEEN_INVALID);
    assert_int_equal(seen_allowlist_save(list, NULL, 9, &len), SEEN_INVALID);
    assert_int_equal(seen_allowlist_save(list, &len, 4, NULL), SEEN_INVALID);
    assert_int_equal(seen_allowlist_load(NULL, "\0\0\0", 4, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_allowlist_load(&other, NULL, 4, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_allowlist_load(&other, "\0\0\0", 4, &half, NULL),
                     SEEN_INVALID);
    assert_null(other);
    seen_allowlist_free(list);
}

/* ---- Bytes -------------------------------------------------------------- */

static void saved_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    /* clang-format off */
    static const uint8_t expected[] = {
        4, 0, 0, 0,                    /* four keys */
        0, 0, 0, 0,                    /* the empty one */
        3, 0, 0, 0, 'b', 'o', 'b',
        4, 0, 0, 0, 'b', 'o', 'b', 0,  /* behind what it begins with */
        2, 0, 0, 0, 'c', 0xff,
    };
    /* clang-format on */
    static const uint8_t nothing[4] = {0};
    seen_allowlist *list = new_list();
    struct bytes b = save(list);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.at, nothing, 4);
    free(b.at);
    assert_int_equal(seen_allowlist_add(list, "c\xff", 2), SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, "bob", 4), SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, "gone", 4), SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, NULL, 0), SEEN_OK);
    assert_int_equal(seen_allowlist_add(list, "bob", 3), SEEN_OK);
    assert_int_equal(seen_allowlist_remove(list, "gone", 4), SEEN_OK);
    b = save(list);
    assert_int_equal(b.len, sizeof expected);
    assert_memory_equal(b.at, expected, sizeof expected);
    free(b.at);
    seen_allowlist_free(list);
}

static seen_allowlist *random_list(struct test_rng *r, size_t n)
{
    seen_allowlist *list = new_list();
    for (size_t i = 0; i < n; i++) {
        uint8_t key[20];
        size_t len = test_below(r, sizeof key);
        for (size_t j = 0; j < len; j++)
            key[j] = (uint8_t)test_below(r, i % 2 ? 256 : 2);
        assert_int_equal(seen_allowlist_add(list, key, len), SEEN_OK);
    }
    return list;
}

struct reversed {
    const void *keys[2000];
    size_t lens[2000], n;
};

static bool collect(void *ctx, const void *key, size_t len)
{
    struct reversed *r = ctx;
    r->keys[r->n] = key;
    r->lens[r->n++] = len;
    return true;
}

static void equal_lists_give_equal_bytes(void **state)
{
    (void)state;
    struct test_rng r = test_rng(151);
    for (uint64_t i = 0; i < 200 * test_scale(); i++) {
        seen_allowlist *a = random_list(&r, test_below(&r, 300)), *b = NULL;
        seen_allowlist *c = new_list();
        static struct reversed all;
        all.n = 0;
        seen_allowlist_each(a, collect, &all);
        for (size_t j = all.n; j-- > 0;)
            assert_int_equal(seen_allowlist_add(c, all.keys[j], all.lens[j]),
                             SEEN_OK);
        assert_true(seen_allowlist_equal(a, c));
        struct bytes first = save(a), second = save(c);
        assert_int_equal(second.len, first.len);
        assert_memory_equal(second.at, first.at, first.len);

        assert_int_equal(
            seen_allowlist_load(&b, first.at, first.len, NULL, NULL), SEEN_OK);
        assert_true(seen_allowlist_equal(a, b));
        struct bytes third = save(b);
        assert_int_equal(third.len, first.len);
        assert_memory_equal(third.at, first.at, first.len);

        /* A loaded list lives on. */
        add_str(b, "a new key of more than twenty bytes");
        assert_false(seen_allowlist_equal(a, b));
        assert_false(seen_allowlist_equal(b, a));
        assert_int_equal(seen_allowlist_count(b), all.n + 1);
        for (size_t j = 0; j < all.n; j++)
            assert_int_equal(seen_allowlist_remove(b, all.keys[j], all.lens[j]),
                             SEEN_OK);
        assert_int_equal(seen_allowlist_count(b), 1);
        free(first.at);
        free(second.at);
        free(third.at);
        seen_allowlist_free(a);
        seen_allowlist_free(b);
        seen_allowlist_free(c);
    }
}

static bool use(void *ctx, const void *key, size_t len)
{
    assert_true(seen_allowlist_has(ctx, key, len));
    return true;
}

/* An error, or a list that these bytes are the only form of. */
static seen_status try_bytes(const uint8_t *at, size_t len)
{
    /* A block of exactly this length, for the address sanitizer. */
    uint8_t *cut = malloc(len ? len : 1);
    assert_non_null(cut);
    if (len) memcpy(cut, at, len);
    struct test_alloc a;
    test_alloc_init(&a);
    seen_allowlist *list = NULL;
    seen_status status = seen_allowlist_load(&list, cut, len, &a.as, NULL);
    assert_true(a.peak <= 1024 + 48 * len);
    if (status == SEEN_OK) {
        seen_allowlist_each(list, use, list);
        struct bytes again = save(list);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.at, cut, len);
        free(again.at);
        seen_allowlist_free(list);
    } else {
        assert_int_equal(status, SEEN_CORRUPT);
        assert_null(list);
    }
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
    free(cut);
    return status;
}

static void hostile_bytes_are_refused_or_work(void **state)
{
    (void)state;
    struct test_rng r = test_rng(152);
    for (uint64_t i = 0; i < 20 * test_scale(); i++) {
        seen_allowlist *list = random_list(&r, 1 + test_below(&r, 30));
        struct bytes good = save(list);
        uint8_t *more = calloc(1, good.len + 8);
        assert_non_null(more);
        memcpy(more, good.at, good.len);
        assert_int_equal(try_bytes(good.at, good.len), SEEN_OK);
        for (size_t len = 0; len < good.len + 8; len++)
            if (len != good.len)
                assert_int_equal(try_bytes(more, len), SEEN_CORRUPT);
        for (size_t bit = 0; bit < 8 * good.len; bit++) {
            good.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            try_bytes(good.at, good.len);
            good.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        static const uint32_t edges[] = {0,          1,          2,
                                         0x01000000, 0x01000001, 0x7fffffff,
                                         0x80000000, 0xfffffffb, 0xffffffff};
        for (size_t at = 0; at + 4 <= good.len; at++)
            for (size_t e = 0; e < sizeof edges / sizeof *edges; e++) {
                memcpy(more, good.at, good.len);
                seen_put_le32(more + at, edges[e]);
                try_bytes(more, good.len);
            }
        free(more);
        free(good.at);
        seen_allowlist_free(list);
    }
}

static void keys_out_of_order_or_twice_are_corrupt(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        seen_status expected;
    } rows[] = {
        {"\0\0\0\0", 4, SEEN_OK},
        {"", 0, SEEN_CORRUPT},
        {"\0\0\0", 3, SEEN_CORRUPT},
        {"\1\0\0\0", 4, SEEN_CORRUPT},
        {"\1\0\0\0\0\0\0\0", 8, SEEN_OK},
        {"\0\0\0\0\0\0\0\0", 8, SEEN_CORRUPT},
        {"\2\0\0\0\0\0\0\0\0\0\0\0", 12, SEEN_CORRUPT}, /* "" twice */
        {"\2\0\0\0\1\0\0\0a\1\0\0\0b", 14, SEEN_OK},
        {"\2\0\0\0\1\0\0\0b\1\0\0\0a", 14, SEEN_CORRUPT},
        {"\2\0\0\0\1\0\0\0a\1\0\0\0a", 14, SEEN_CORRUPT},
        {"\2\0\0\0\2\0\0\0ab\1\0\0\0a", 15, SEEN_CORRUPT},
        {"\2\0\0\0\1\0\0\0\x7f\1\0\0\0\x80", 14, SEEN_OK},
        {"\xff\xff\xff\xff\0\0\0\0", 8, SEEN_CORRUPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(try_bytes((const uint8_t *)rows[i].bytes, rows[i].len),
                         rows[i].expected);
}

/* ---- Memory ------------------------------------------------------------- */

/* The nth allocation of a life fails; everything else goes on. */
static void a_failed_allocation_changes_nothing(void **state)
{
    (void)state;
    struct test_alloc a;
    for (uint64_t nth = 1;; nth++) {
        test_alloc_init(&a);
        a.offset = nth % 64;
        test_alloc_arm(&a, nth, false);
        seen_allowlist *list = NULL, *copy = NULL, *loaded = NULL;
        if (seen_allowlist_new(&list, &a.as) != SEEN_OK)
            assert_int_equal(seen_allowlist_new(&list, &a.as), SEEN_OK);
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t key = test_key(i), count = seen_allowlist_count(list);
            seen_status status = seen_allowlist_add(list, &key, 8);
            if (status != SEEN_OK) {
                assert_int_equal(status, SEEN_NOMEM);
                assert_int_equal(seen_allowlist_count(list), count);
                assert_false(seen_allowlist_has(list, &key, 8));
                assert_int_equal(seen_allowlist_add(list, &key, 8), SEEN_OK);
            }
            for (uint64_t j = 0; j <= i; j++) {
                key = test_key(j);
                assert_true(seen_allowlist_has(list, &key, 8));
            }
        }
        if (seen_allowlist_copy(&copy, list, &a.as) != SEEN_OK) {
            assert_null(copy);
            assert_int_equal(seen_allowlist_copy(&copy, list, &a.as), SEEN_OK);
        }
        static uint8_t buf[4096];
        size_t len;
        seen_status status = seen_allowlist_save(list, buf, sizeof buf, &len);
        if (status != SEEN_OK) {
            assert_int_equal(status, SEEN_NOMEM);
            assert_int_equal(seen_allowlist_save(list, buf, sizeof buf, &len),
                             SEEN_OK);
        }
        if (seen_allowlist_load(&loaded, buf, len, &a.as, NULL) != SEEN_OK) {
            assert_null(loaded);
            assert_int_equal(
                seen_allowlist_load(&loaded, buf, len, &a.as, NULL), SEEN_OK);
        }
        assert_true(seen_allowlist_equal(list, copy));
        assert_true(seen_allowlist_equal(list, loaded));
        assert_between(
            (double)a.bytes,
            (double)(seen_allowlist_bytes(list) + seen_allowlist_bytes(copy) +
                     seen_allowlist_bytes(loaded)),
            (double)(seen_allowlist_bytes(list) + seen_allowlist_bytes(copy) +
                     seen_allowlist_bytes(loaded)) +
                64.0 * (double)a.blocks);
        seen_allowlist_free(list);
        seen_allowlist_free(copy);
        seen_allowlist_free(loaded);
        assert_int_equal(a.blocks, 0);
        assert_int_equal(a.violations, 0);
        if (!a.failed) {
            assert_true(nth > 10);
            break;
        }
    }
}

/* ---- Filters with a list: every kind ------------------------------------ */

/* Integers below N, so that a bitmap takes them too. Added: 0 .. N/2-1; listed:
 * every seventh. */
#define N 3000

static struct {
    uint8_t bytes[N][8];
    seen_key keys[N];
    bool answers[N];
} batch;

static void fill_batch(void)
{
    for (uint64_t i = 0; i < N; i++) {
        seen_put_le64(batch.bytes[i], i);
        batch.keys[i] = (seen_key){batch.bytes[i], 8};
    }
}

static bool is_listed(uint64_t i)
{
    return i % 7 == 0;
}

static seen_allowlist *sevenths(void)
{
    seen_allowlist *list = new_list();
    for (uint64_t i = 0; i < N; i++)
        if (is_listed(i))
            assert_int_equal(seen_allowlist_add(list, batch.bytes[i], 8),
                             SEEN_OK);
    add_str(list, "listed");
    return list;
}

static seen_spec spec_of(seen_kind kind, uint32_t flags)
{
    if (kind == SEEN_BITMAP) return (seen_spec){.kind = kind, .bits = N};
    return (seen_spec){.kind = kind,
                       .items = 4 * N,
                       .fpp = 1e-6,
                       .last = test_last(kind, 4 * N),
                       .flags = flags,
                       .secret = test_secret};
}

/* With room for the other half, where a kind can take it. */
static seen_filter *half_full(const seen_spec *spec)
{
    seen_filter *f = NULL;
    seen_status status = seen_new(&f, spec, NULL);
    if (status == SEEN_UNSUPPORTED)
        status = seen_build(&f, spec, seen_keys_of(batch.keys, N / 2), NULL);
    else if (status == SEEN_OK)
        status = seen_add_many(f, seen_keys_of(batch.keys, N / 2), NULL);
    assert_int_equal(status, SEEN_OK);
    return f;
}

typedef void check(const seen_filter *f, const seen_spec *spec);

/* Run a check on a filter of every kind, with all its flags. */
static void on_every_kind(check *one)
{
    fill_batch();
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (uint32_t flags = 0; flags <= (SEEN_CONCURRENT | SEEN_KEYED);
             flags++) {
            seen_spec spec = spec_of(kind, flags);
            seen_plan plan = {.size = sizeof plan};
            if (flags && kind == SEEN_BITMAP) continue;
            if (seen_plan_for(&spec, &plan, NULL) != SEEN_OK) continue;
            seen_filter *f = half_full(&spec);
            one(f, &spec);
            seen_free(f);
        }
}

static seen_filter *copy_of(const seen_filter *f)
{
    seen_filter *copy = NULL;
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    return copy;
}

/* What f says about every key, in all ways to ask. */
static void assert_answers(const seen_filter *f, bool (*expected)(uint64_t))
{
    memset(batch.answers, 2, sizeof batch.answers);
    seen_maybe_many(f, seen_keys_of(batch.keys, N), batch.answers);
    for (uint64_t i = 0; i < N; i++) {
        bool answer = expected(i);
        assert_int_equal(seen_maybe_u64(f, i), answer);
        assert_int_equal(seen_maybe(f, batch.bytes[i], 8), answer);
        assert_int_equal(seen_count(f, batch.bytes[i], 8) > 0, answer);
        assert_int_equal(batch.answers[i], answer);
    }
}

static bool added(uint64_t i)
{
    return i < N / 2;
}

static bool added_and_not_listed(uint64_t i)
{
    return added(i) && !is_listed(i);
}

static bool added_or_listed(uint64_t i)
{
    return added(i) || is_listed(i);
}

static bool not_listed(uint64_t i)
{
    return !is_listed(i);
}

static bool always(uint64_t i)
{
    (void)i;
    return true;
}

static void check_answers(const seen_filter *original, const seen_spec *spec)
{
    (void)spec;
    seen_filter *f = copy_of(original);
    seen_allowlist *list = sevenths();
    seen_listed rule = (seen_listed)77;
    assert_answers(f, added);
    assert_null(seen_allowed(f, &rule));
    assert_int_equal(rule, 77);

    assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    assert_answers(f, added_and_not_listed);
    assert_false(seen_maybe_str(f, "listed"));
    assert_non_null(seen_allowed(f, &rule));
    assert_int_equal(rule, SEEN_LISTED_NEVER);

    assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    assert_answers(f, added_or_listed);
    assert_true(seen_maybe_str(f, "listed"));
    assert_false(seen_maybe_str(f, "listed?"));
    assert_int_equal(seen_count(f, "listed", 6), 1);
    assert_true(seen_allowlist_equal(seen_allowed(f, &rule), list));
    assert_int_equal(rule, SEEN_LISTED_ALWAYS);
    /* Its own list, under the other rule. */
    assert_int_equal(seen_allow(f, seen_allowed(f, NULL), SEEN_LISTED_NEVER),
                     SEEN_OK);
    assert_answers(f, added_and_not_listed);

    /* The filter has a copy; hashes have no key. */
    seen_allowlist_clear(list);
    assert_answers(f, added_and_not_listed);
    static seen_hash hashes[N];
    seen_hash_many(f, seen_keys_of(batch.keys, N), hashes);
    seen_maybe_many(f, seen_keys_hashes(hashes, N), batch.answers);
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(batch.answers[i], added(i));
        assert_int_equal(seen_maybe_hashed(f, hashes[i]), added(i));
        assert_int_equal(seen_count_hashed(f, hashes[i]) > 0, added(i));
    }

    /* An empty list overrules nothing, and no list neither. */
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    assert_answers(f, added);
    assert_non_null(seen_allowed(f, NULL));
    assert_int_equal(seen_allow(f, NULL, (seen_listed)0), SEEN_OK);
    assert_null(seen_allowed(f, NULL));
    assert_true(seen_equal(f, original));
    seen_allowlist_free(list);
    seen_free(f);
}

static void listed_keys_get_the_answer_of_the_rule(void **state)
{
    (void)state;
    on_every_kind(check_answers);
}

/* Visits, alone and in batches, in pieces of all sizes. */
static void check_visits(const seen_filter *original, const seen_spec *spec)
{
    if (seen_kind_built(spec->kind)) return; /* takes no more keys */
    static const seen_listed policies[] = {SEEN_LISTED_NEVER,
                                           SEEN_LISTED_ALWAYS};
    struct test_rng r = test_rng(153);
    seen_allowlist *list = sevenths();
    for (size_t p = 0; p < 2; p++) {
        seen_filter *one = copy_of(original), *many = copy_of(original);
        seen_filter *bare = copy_of(original);
        assert_int_equal(seen_allow(one, list, policies[p]), SEEN_OK);
        assert_int_equal(seen_allow(many, list, policies[p]), SEEN_OK);
        bool fixed = policies[p] == SEEN_LISTED_ALWAYS;
        for (int round = 0; round < 2; round++)
            for (uint64_t i = 0; i < N; i++) {
                bool before = !fixed, bits;
                seen_status status =
                    i % 2 ? seen_visit(one, batch.bytes[i], 8, &before)
                          : seen_visit_u64(one, i, &before);
                assert_int_equal(status, SEEN_OK);
                assert_int_equal(seen_visit_u64(bare, i, &bits), SEEN_OK);
                assert_int_equal(bits, round || added(i));
                assert_int_equal(before, is_listed(i) ? fixed : bits);
            }
        for (int round = 0; round < 2; round++)
            for (size_t at = 0, n; at < N; at += n) {
                n = 1 + test_below(&r, 700);
                if (n > N - at) n = N - at;
                size_t visited = 0;
                assert_int_equal(
                    seen_visit_many(many, seen_keys_of(batch.keys + at, n),
                                    batch.answers, &visited),
                    SEEN_OK);
                assert_int_equal(visited, n);
                for (size_t j = 0; j < n; j++)
                    assert_int_equal(
                        batch.answers[j],
                        is_listed(at + j) ? fixed : round || added(at + j));
            }
        assert_int_equal(seen_add_many(many, seen_keys_of(batch.keys, 0), NULL),
                         SEEN_OK);
        assert_true(seen_equal(one, many));

        /* What was listed went into the filter like the rest. */
        assert_answers(one, fixed ? always : not_listed);
        assert_int_equal(seen_allow(one, NULL, policies[p]), SEEN_OK);
        assert_answers(one, always);
        assert_true(seen_equal(one, bare));
        seen_free(one);
        seen_free(many);
        seen_free(bare);
    }
    seen_allowlist_free(list);
}

static void visits_tell_the_answer_of_the_rule(void **state)
{
    (void)state;
    on_every_kind(check_visits);
}

static void check_whole(const seen_filter *original, const seen_spec *spec)
{
    seen_allowlist *list = sevenths();
    seen_filter *f = copy_of(original), *g = copy_of(original);
    seen_info bare = {.size = sizeof bare}, with = {.size = sizeof with};
    seen_measure(f, &bare);
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    seen_measure(f, &with);
    assert_int_equal(with.bytes,
                     bare.bytes + seen_allowlist_bytes(seen_allowed(f, NULL)));

    /* Equal means list and rule, too. */
    assert_false(seen_equal(f, g));
    assert_false(seen_equal(g, f));
    assert_int_equal(seen_allow(g, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    assert_false(seen_equal(f, g));
    assert_int_equal(seen_allow(g, list, SEEN_LISTED_NEVER), SEEN_OK);
    assert_true(seen_equal(f, g));
    add_str(list, "one more");
    assert_int_equal(seen_allow(g, list, SEEN_LISTED_NEVER), SEEN_OK);
    assert_false(seen_equal(f, g));

    /* A copy has its own, in its own memory. */
    struct test_alloc a;
    test_alloc_init(&a);
    seen_filter *copy = NULL;
    assert_int_equal(seen_copy(&copy, f, &a.as), SEEN_OK);
    assert_true(seen_equal(copy, f));
    assert_answers(copy, added_and_not_listed);
    assert_int_equal(seen_allow(f, NULL, SEEN_LISTED_NEVER), SEEN_OK);
    assert_answers(copy, added_and_not_listed);
    assert_answers(f, added);
    seen_free(copy);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);

    /* Merging keeps that of the filter merged into, clearing keeps it. */
    if (!seen_kind_built(spec->kind) && !test_kind_forgets(spec->kind)) {
        seen_filter *into = copy_of(g);
        assert_int_equal(seen_merge(into, f, SEEN_UNION, NULL), SEEN_OK);
        assert_answers(into, added_and_not_listed);
        assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_OK);
        assert_null(seen_allowed(f, NULL));
        assert_int_equal(seen_allow(into, list, SEEN_LISTED_ALWAYS), SEEN_OK);
        seen_clear(into);
        assert_answers(into, is_listed);
        seen_free(into);
    }
    seen_allowlist_free(list);
    seen_free(f);
    seen_free(g);
}

static void whole_filters_treat_the_list_as_documented(void **state)
{
    (void)state;
    on_every_kind(check_whole);
}

static void check_bad_calls(const seen_filter *original, const seen_spec *spec)
{
    (void)spec;
    seen_allowlist *list = sevenths();
    seen_filter *f = copy_of(original);
    assert_int_equal(seen_allow(NULL, list, SEEN_LISTED_NEVER), SEEN_INVALID);
    assert_int_equal(seen_allow(f, list, (seen_listed)0), SEEN_INVALID);
    assert_int_equal(seen_allow(f, list, (seen_listed)3), SEEN_INVALID);
    assert_null(seen_allowed(f, NULL));
    assert_true(seen_equal(f, original));
    seen_allowlist_free(list);
    seen_free(f);
}

static void impossible_policies_are_refused(void **state)
{
    (void)state;
    on_every_kind(check_bad_calls);
}

/* ---- Filters with a list: special cases --------------------------------- */

/* All bits set: every stranger is "maybe", a listed key is not. */
static void a_saturated_filter_still_obeys(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    fill_batch();
    for (size_t i = 0; i < 2; i++) {
        seen_filter *f = test_filter((seen_spec){
            .kind = kinds[i], .bits = 1024, .hashes = 4, .items = 100});
        test_add_members(f, 0, 20000);
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        assert_int_equal(info.bits_set, info.bits);
        assert_answers(f, always);
        seen_allowlist *list = sevenths();
        assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
        assert_answers(f, not_listed);
        seen_allowlist_free(list);
        seen_free(f);
    }
}

/* Removing a listed key removes it; the answer stays what it was. */
static void listed_keys_can_be_removed_from_the_filter(void **state)
{
    (void)state;
    static const seen_kind kinds[] = {SEEN_CUCKOO, SEEN_BITMAP};
    fill_batch();
    for (size_t i = 0; i < 2; i++) {
        seen_filter *f = test_filter(spec_of(kinds[i], 0));
        seen_allowlist *list = sevenths();
        assert_int_equal(seen_add_u64(f, 7), SEEN_OK);
        assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
        assert_int_equal(seen_remove(f, batch.bytes[14], 8), SEEN_ABSENT);
        assert_int_equal(seen_remove(f, batch.bytes[7], 8), SEEN_OK);
        assert_true(seen_maybe_u64(f, 7));
        assert_int_equal(seen_remove(f, batch.bytes[7], 8), SEEN_ABSENT);
        assert_int_equal(seen_add_u64(f, 7), SEEN_OK);
        assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
        assert_int_equal(seen_count(f, batch.bytes[7], 8), 0);
        assert_int_equal(seen_remove(f, batch.bytes[7], 8), SEEN_OK);
        assert_int_equal(seen_allow(f, NULL, SEEN_LISTED_NEVER), SEEN_OK);
        assert_false(seen_maybe_u64(f, 7));
        seen_allowlist_free(list);
        seen_free(f);
    }
    /* A key that is there three times counts three times. */
    seen_filter *f = test_filter(spec_of(SEEN_CUCKOO, 0));
    seen_allowlist *list = sevenths();
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen_add_u64(f, 21), SEEN_OK);
    assert_int_equal(seen_count(f, batch.bytes[21], 8), 3);
    seen_allowlist_free(list);
    seen_free(f);
}

/* What a bitmap cannot hold can be listed all the same; a batch that it stops
 * halfway is corrected as far as it went. */
static void a_bitmap_with_a_list_of_anything(void **state)
{
    (void)state;
    fill_batch();
    seen_filter *f = test_filter((seen_spec){.kind = SEEN_BITMAP, .bits = 100});
    seen_allowlist *list = sevenths();
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    assert_true(seen_maybe_u64(f, 700));
    assert_true(seen_maybe_str(f, "listed"));
    assert_false(seen_maybe_u64(f, 701));
    bool before = false;
    assert_int_equal(seen_visit_u64(f, 700, &before), SEEN_INVALID);
    assert_false(before);
    size_t visited;
    memset(batch.answers, 2, sizeof batch.answers);
    assert_int_equal(seen_visit_many(f, seen_keys_of(batch.keys, N),
                                     batch.answers, &visited),
                     SEEN_INVALID);
    assert_int_equal(visited, 100);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(batch.answers[i], is_listed(i));
    seen_allowlist_free(list);
    seen_free(f);
}

/* The list of a filter is found by the filter's hash: another secret, another
 * table, the same answers and the same bytes. */
static void the_list_of_a_filter_is_found_by_its_hash(void **state)
{
    (void)state;
    fill_batch();
    seen_allowlist *list = sevenths(), *keyed = NULL;
    assert_int_equal(seen_allowlist_rehash(&keyed, list, &seen_hash_siphash13,
                                           test_secret, NULL),
                     SEEN_OK);
    assert_true(seen_allowlist_equal(list, keyed));
    assert_true(seen_allowlist_equal(keyed, list));
    struct bytes a = save(list), b = save(keyed);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.at, b.at, a.len);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t h = seen_hash_siphash13.one(test_secret, batch.bytes[i], 8).lo;
        assert_int_equal(seen_allowlist_finds(keyed, h, batch.bytes[i], 8),
                         is_listed(i));
        assert_int_equal(seen_allowlist_has(keyed, batch.bytes[i], 8),
                         is_listed(i));
    }
    /* Collisions cost time, not truth: one hash for all. */
    seen_allowlist *slow = NULL;
    struct seen_hash_fn same = seen_hash_u64; /* of no number: UINT64_MAX */
    same.plain = false;
    seen_allowlist *words = new_list();
    for (int i = 0; i < 300; i++) {
        char word[16];
        snprintf(word, sizeof word, "word %d", i);
        add_str(words, word);
    }
    assert_int_equal(
        seen_allowlist_rehash(&slow, words, &same, test_secret, NULL), SEEN_OK);
    assert_true(seen_allowlist_equal(slow, words));
    for (int i = 0; i < 300; i += 2) {
        char word[16];
        int len = snprintf(word, sizeof word, "word %d", i);
        assert_int_equal(seen_allowlist_remove(slow, word, (size_t)len),
                         SEEN_OK);
    }
    for (int i = 0; i < 400; i++) {
        char word[16];
        int len = snprintf(word, sizeof word, "word %d", i);
        assert_int_equal(seen_allowlist_has(slow, word, (size_t)len),
                         i < 300 && i % 2);
    }
    free(a.at);
    free(b.at);
    seen_allowlist_free(slow);
    seen_allowlist_free(words);
    seen_allowlist_free(list);
    seen_allowlist_free(keyed);
}

/* ---- Saved with the filter ---------------------------------------------- */

static void a_list_is_saved_with_its_filter(void **state)
{
    (void)state;
    _Alignas(64) static uint8_t bytes[65536], again[65536];
    for (int rule = SEEN_LISTED_NEVER; rule <= SEEN_LISTED_ALWAYS; rule++) {
        bool never = rule == SEEN_LISTED_NEVER;
        seen_filter *f = test_filter((seen_spec){.items = 100, .fpp = 0.01});
        seen_allowlist *list = NULL;
        assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
        assert_int_equal(seen_allowlist_add(list, "alice", 5), SEEN_OK);
        assert_int_equal(seen_allowlist_add(list, "", 0), SEEN_OK);
        if (never) seen_add_str(f, "alice");
        assert_int_equal(seen_allow(f, list, (seen_listed)rule), SEEN_OK);
        seen_allowlist_free(list);

        size_t len, len_again;
        assert_int_equal(seen_save(f, 0, bytes, sizeof bytes, &len), SEEN_OK);
        seen_filter *loaded = NULL, *view = NULL;
        assert_int_equal(seen_load(&loaded, bytes, len, NULL, NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
        assert_true(seen_equal(f, loaded) && seen_equal(f, view));
        assert_int_equal(seen_maybe_str(loaded, "alice"), !never);
        assert_int_equal(seen_maybe_str(view, "alice"), !never);
        assert_int_equal(seen_save(loaded, 0, again, sizeof again, &len_again),
                         SEEN_OK);
        assert_int_equal(len, len_again);
        assert_memory_equal(bytes, again, len);

        /* Its bytes are checked, also where the payload is not. */
        for (size_t at = 256; at < seen_get_le64(bytes + 88); at++) {
            seen_filter *none = NULL;
            bytes[at] ^= 4;
            assert_int_equal(seen_load(&none, bytes, len, NULL, NULL, NULL),
                             SEEN_CORRUPT);
            assert_null(none);
            bytes[at] ^= 4;
        }
        seen_free(f);
        seen_free(loaded);
        seen_free(view);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_saved_with_its_filter),
        cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(it_grows_and_shrinks_to_nothing),
        cmocka_unit_test(long_keys_have_a_limit),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(saved_bytes_are_those_of_the_format),
        cmocka_unit_test(equal_lists_give_equal_bytes),
        cmocka_unit_test(hostile_bytes_are_refused_or_work),
        cmocka_unit_test(keys_out_of_order_or_twice_are_corrupt),
        cmocka_unit_test(a_failed_allocation_changes_nothing),
        cmocka_unit_test(listed_keys_get_the_answer_of_the_rule),
        cmocka_unit_test(visits_tell_the_answer_of_the_rule),
        cmocka_unit_test(whole_filters_treat_the_list_as_documented),
        cmocka_unit_test(impossible_policies_are_refused),
        cmocka_unit_test(a_saturated_filter_still_obeys),
        cmocka_unit_test(listed_keys_can_be_removed_from_the_filter),
        cmocka_unit_test(a_bitmap_with_a_list_of_anything),
        cmocka_unit_test(the_list_of_a_filter_is_found_by_its_hash),
    };
    test_announce("allowlist");
    return cmocka_run_group_tests_name("allowlist", tests, NULL, NULL);
}
