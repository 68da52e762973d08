/*
 * prop_model_agrees.c - bitmaps do what a plain array does, and sets what an
 * exact set does, under random operations: a million of them, times
 * SEEN_TEST_SCALE.
 */
#include "seen_bitmap.h"

#include "helpers/keys.h"
#include "helpers/model.h"

#include <stdlib.h>
#include <string.h>

/* ---- Bitmaps ------------------------------------------------------------ */

/* Two of each, of the same bound, so that they can be combined. */
struct world {
    uint64_t n;
    seen_bitmap *bitmap[2];
    struct model_bits model[2];
};

static struct world open_world(uint64_t n)
{
    struct world w = {.n = n};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(seen_bitmap_new(&w.bitmap[i], n, NULL, NULL), SEEN_OK);
        w.model[i] = model_bits_new(n);
    }
    return w;
}

static void close_world(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        seen_bitmap_free(w->bitmap[i]);
        model_bits_free(&w->model[i]);
    }
}

/* Index as members, bounds and what lies beyond are: edges are frequent. */
static uint64_t random_index(struct test_rng *r, uint64_t n)
{
    switch (test_below(r, 8)) {
    case 0:
        return n + test_below(r, 130);
    case 1:
        return test_below(r, n) / 64 * 64;
    case 2:
        return n - 1;
    default:
        return test_below(r, n);
    }
}

static void random_range(struct test_rng *r, uint64_t n, uint64_t *from,
                         uint64_t *to)
{
    *from = random_index(r, n);
    *to = random_index(r, n);
    if (*from > *to && test_below(r, 8)) {
        uint64_t swap = *from;
        *from = *to;
        *to = swap;
    }
}

static void change_one(struct world *w, struct test_rng *r, int i)
{
    uint64_t bit = random_index(r, w->n);
    bool value = test_below(r, 2);
    seen_status expected = bit < w->n ? SEEN_OK : SEEN_INVALID;
    assert_int_equal(value ? seen_bitmap_set(w->bitmap[i], bit)
                           : seen_bitmap_clear(w->bitmap[i], bit),
                     expected);
    if (bit < w->n) w->model[i].bit[bit] = value;
}

static void change_range(struct world *w, struct test_rng *r, int i)
{
    uint64_t from, to;
    random_range(r, w->n, &from, &to);
    bool value = test_below(r, 2), fine = from <= to && to <= w->n;
    assert_int_equal(value ? seen_bitmap_set_range(w->bitmap[i], from, to)
                           : seen_bitmap_clear_range(w->bitmap[i], from, to),
                     fine ? SEEN_OK : SEEN_INVALID);
    if (fine) model_fill(&w->model[i], from, to, value);
}

static void ask_one(struct world *w, struct test_rng *r, int i)
{
    uint64_t bit = random_index(r, w->n);
    bool expected = bit < w->n && w->model[i].bit[bit];
    assert_int_equal(seen_bitmap_has(w->bitmap[i], bit), expected);
}

static void ask_next(struct world *w, struct test_rng *r, int i)
{
    uint64_t from = random_index(r, w->n);
    assert_true(seen_bitmap_next_set(w->bitmap[i], from) ==
                model_find(&w->model[i], from, true));
    assert_true(seen_bitmap_next_clear(w->bitmap[i], from) ==
                model_find(&w->model[i], from, false));
}

static void ask_count(struct world *w, struct test_rng *r, int i)
{
    uint64_t from, to;
    random_range(r, w->n, &from, &to);
    assert_int_equal(seen_bitmap_count_range(w->bitmap[i], from, to),
                     model_count(&w->model[i], from, to));
}

struct walk {
    const struct model_bits *model;
    uint64_t next;
    bool right;
};

static bool step(void *ctx, uint64_t bit)
{
    struct walk *w = ctx;
    w->right &= model_find(w->model, w->next, true) == bit;
    w->next = bit + 1;
    return w->right;
}

static void ask_everything(struct world *w, struct test_rng *r, int i)
{
    (void)r;
    assert_int_equal(seen_bitmap_count(w->bitmap[i]),
                     model_count(&w->model[i], 0, w->n));
    struct walk walk = {&w->model[i], 0, true};
    seen_bitmap_each(w->bitmap[i], step, &walk);
    assert_true(walk.right);
    assert_true(model_find(&w->model[i], walk.next, true) == UINT64_MAX);
    bool same = memcmp(w->model[0].bit, w->model[1].bit,
                       (size_t)w->n * sizeof(bool)) == 0;
    assert_int_equal(seen_bitmap_equal(w->bitmap[0], w->bitmap[1]), same);
}

static void combine(struct world *w, struct test_rng *r, int i)
{
    uint64_t op = test_below(r, 4);
    seen_bitmap *a = w->bitmap[i], *b = w->bitmap[1 - i];
    seen_status (*const calls[])(seen_bitmap *, const seen_bitmap *) = {
        seen_bitmap_or, seen_bitmap_and, seen_bitmap_andnot, seen_bitmap_xor};
    assert_int_equal(calls[op](a, b), SEEN_OK);
    for (uint64_t bit = 0; bit < w->n; bit++) {
        bool *x = &w->model[i].bit[bit], y = w->model[1 - i].bit[bit];
        *x = op == 0   ? *x || y
             : op == 1 ? *x && y
             : op == 2 ? *x && !y
                       : *x != y;
    }
}

/* Out to bytes, and on with what comes back: now and then as a view, which
 * must answer the same before it is dropped. */
static void reload(struct world *w, struct test_rng *r, int i)
{
    size_t len = 0;
    assert_int_equal(seen_bitmap_save(w->bitmap[i], NULL, 0, &len), SEEN_SHORT);
    void *buf = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_non_null(buf);
    assert_int_equal(seen_bitmap_save(w->bitmap[i], buf, len, &len), SEEN_OK);
    seen_bitmap *loaded = NULL, *view = NULL;
    assert_int_equal(seen_bitmap_load(&loaded, buf, len, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_bitmap_view(&view, buf, len, NULL), SEEN_OK);
    assert_true(seen_bitmap_equal(loaded, view));
    seen_bitmap *original = w->bitmap[i];
    w->bitmap[i] = view;
    ask_one(w, r, i);
    ask_next(w, r, i);
    ask_count(w, r, i);
    ask_everything(w, r, i);
    w->bitmap[i] = loaded;
    seen_bitmap_free(view);
    seen_bitmap_free(original);
    free(buf);
}

static void bitmap_equals_a_plain_array(void **state)
{
    (void)state;
    struct test_rng r = test_rng(60);
    const uint64_t wanted = 1000000 * test_scale();
    for (uint64_t done = 0; done < wanted;) {
        uint64_t n = 1 + test_below(&r, 1u << test_below(&r, 12));
        struct world w = open_world(n);
        for (int i = 0; i < 3000; i++, done++) {
            int which = (int)test_below(&r, 2);
            uint64_t dice = test_below(&r, 200);
            if (dice < 60)
                change_one(&w, &r, which);
            else if (dice < 75)
                change_range(&w, &r, which);
            else if (dice < 130)
                ask_one(&w, &r, which);
            else if (dice < 160)
                ask_next(&w, &r, which);
            else if (dice < 185)
                ask_count(&w, &r, which);
            else if (dice < 192)
                combine(&w, &r, which);
            else if (dice < 198)
                ask_everything(&w, &r, which);
            else
                reload(&w, &r, which);
        }
        close_world(&w);
    }
}

/* ---- Sets --------------------------------------------------------------- */

/* Keys 0 .. universe-1 of the generator, so that many come again. */
static void one_set(struct test_rng *r, uint64_t universe, int rounds)
{
    seen_filter *f = test_filter((seen_spec){.kind = SEEN_SET});
    struct model_set m = model_set_new();
    for (int i = 0; i < rounds; i++) {
        uint64_t key = test_key(test_below(r, universe));
        bool before = false, expected = model_set_has(&m, key);
        switch (test_below(r, 3)) {
        case 0:
            assert_int_equal(seen_maybe_u64(f, key), expected);
            break;
        case 1:
            assert_int_equal(seen_add_u64(f, key), SEEN_OK);
            model_set_add(&m, key);
            break;
        default:
            assert_int_equal(seen_visit_u64(f, key, &before), SEEN_OK);
            assert_int_equal(before, expected);
            model_set_add(&m, key);
        }
    }
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_int_equal(info.items, model_set_count(&m));
    for (uint64_t i = 0; i < universe; i++)
        assert_int_equal(seen_maybe_u64(f, test_key(i)),
                         model_set_has(&m, test_key(i)));
    seen_free(f);
    model_set_free(&m);
}

static void set_equals_an_exact_set(void **state)
{
    (void)state;
    struct test_rng r = test_rng(61);
    for (uint64_t i = 0; i < 10 * test_scale(); i++)
        one_set(&r, 1 + test_below(&r, 1u << test_below(&r, 19)), 100000);
    test_tried(1000000 * test_scale(), "operations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitmap_equals_a_plain_array),
        cmocka_unit_test(set_equals_an_exact_set),
    };
    test_announce("model_agrees");
    return cmocka_run_group_tests_name("model_agrees", tests, NULL, NULL);
}
