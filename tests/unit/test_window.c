/*
 * test_window.c - the kind that forgets: what must be there is, what is past
 * window and one generation is gone, whatever the clock does.
 *
 * The filter runs beside a model that remembers every add. Half a million
 * operations for each of two sorts of filter, times SEEN_TEST_SCALE: precise
 * ones, which must agree with the model in every answer, and rough ones, which
 * must not deny what the laws promise.
 */
#include "seen.h"

#include "filter/filter.h"

#include "helpers/binomial.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- The model ---------------------------------------------------------- */

#define UNIVERSE 2048 /* keys in play, at most */

struct model_generation {
    uint64_t first, newest, items;
    uint64_t end; /* how many adds had counted when its last one did */
};

struct model {
    uint64_t last, window, share, step; /* share and step: of a generation */
    uint64_t now, adds, counted;
    struct model_generation *at; /* all that ever were */
    size_t n, cap;
    struct {
        size_t generation; /* the newest that has it, from 1; 0: none */
        uint64_t time, add, counted; /* of its last add */
    } key[UNIVERSE];
};

static struct model *model_new(const seen_spec *spec, uint32_t generations)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->last = spec->last;
    m->window = spec->window_ms;
    m->share = divide_up(spec->last, generations);
    m->step = divide_up(spec->window_ms, generations);
    return m;
}

static void model_free(struct model *m)
{
    free(m->at);
    free(m);
}

static void model_advance(struct model *m, uint64_t now)
{
    if (now > m->now) m->now = now;
}

static bool model_lives(const struct model *m, size_t generation)
{
    const struct model_generation *g = &m->at[generation - 1];
    bool old = m->window && m->now - g->newest > m->window;
    bool crowded_out = m->last && m->counted - g->end >= m->last;
    return !old && !crowded_out;
}

static bool model_has(const struct model *m, uint64_t key)
{
    size_t g = m->key[key].generation;
    return g && model_lives(m, g);
}

static void model_add(struct model *m, uint64_t key)
{
    struct model_generation *g = m->n ? &m->at[m->n - 1] : NULL;
    if (!g || !model_lives(m, m->n) || (m->last && g->items == m->share) ||
        (m->window && m->now - g->first >= m->step)) {
        if (m->n == m->cap) {
            m->cap = m->cap ? 2 * m->cap : 64;
            m->at = realloc(m->at, m->cap * sizeof *m->at);
            assert_non_null(m->at);
        }
        g = &m->at[m->n++];
        *g = (struct model_generation){.first = m->now};
    }
    m->adds++;
    if (m->key[key].generation != m->n) {
        g->items++;
        g->end = ++m->counted;
    }
    g->newest = m->now;
    m->key[key].generation = m->n;
    m->key[key].time = m->now;
    m->key[key].add = m->adds;
    m->key[key].counted = m->counted;
}

static void model_clear(struct model *m)
{
    m->n = 0;
    memset(m->key, 0, sizeof m->key);
}

static uint64_t model_items(const struct model *m)
{
    uint64_t items = 0;
    for (size_t g = m->n; g > 0 && model_lives(m, g); g--)
        items += m->at[g - 1].items;
    return items;
}

/* ---- The laws, which know no generations -------------------------------- */

/* Among the last so many adds, and young enough. */
static bool must_be_there(const struct model *m, uint64_t key)
{
    return m->key[key].generation &&
           (!m->last || m->adds - m->key[key].add < m->last) &&
           (!m->window || m->now - m->key[key].time <= m->window);
}

/* Past the window and one generation more. */
static bool must_be_gone(const struct model *m, uint64_t key)
{
    return !m->key[key].generation ||
           (m->window && m->now - m->key[key].time >= m->step &&
            m->now - m->key[key].time - m->step >= m->window) ||
           (m->last && m->counted - m->key[key].counted >= m->last + m->share);
}

/* ---- Saved and loaded, as a container does it --------------------------- */

static const struct seen_filter_ops *const ops = &seen_window_ops;

struct saved {
    uint8_t state[SEEN_STATE_MAX];
    size_t len;
};

static struct saved save(const seen_filter *f)
{
    struct saved s;
    memset(&s, 0, sizeof s);
    s.len = ops->save_state(f, s.state);
    assert_true(s.len <= SEEN_STATE_MAX);
    return s;
}

/* A filter from what is stored of a plan, a state and the parts of another, or
 * NULL if the state is refused. */
static seen_filter *load(const seen_filter *f, const uint8_t *state, size_t len)
{
    seen_filter *g = NULL;
    struct seen_part part;
    assert_int_equal(seen_copy(&g, f, NULL), SEEN_OK);
    assert_true(ops->part(g, 0, &part));
    memset((uint8_t *)g + sizeof *g, 0, ops->state_size - sizeof *g);
    g->plan = (seen_plan){.kind = f->plan.kind,
                          .hashes = f->plan.hashes,
                          .width = f->plan.width,
                          .items = f->plan.items,
                          .bits = f->plan.bits,
                          .hash_bits = f->plan.hash_bits};
    assert_true(ops->plan_read(&g->plan));
    ops->shape(g);
    /* A block of exactly this length, for the address sanitizer. */
    uint8_t *bytes = malloc(len ? len : 1);
    assert_non_null(bytes);
    memcpy(bytes, state, len);
    bool fine = ops->load_state(g, bytes, len) == SEEN_OK;
    free(bytes);
    ops->place(g, 0, part.at);
    if (fine && ops->parts_ok(g)) return g;
    seen_free(g);
    return NULL;
}

static void assert_same_bytes(const seen_filter *f, const seen_filter *g)
{
    struct saved a = save(f), b = save(g);
    struct seen_part x, y;
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.state, b.state, a.len);
    assert_true(ops->part(f, 0, &x) && ops->part(g, 0, &y));
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.at, y.at, (size_t)x.len);
}

static void check_round_trip(const seen_filter *f)
{
    struct saved s = save(f);
    seen_filter *g = load(f, s.state, s.len);
    assert_non_null(g);
    assert_same_bytes(f, g);
    assert_true(seen_equal(f, g));
    assert_int_equal(test_info(f).items, test_info(g).items);
    assert_int_equal(test_info(f).lines, test_info(g).lines);
    assert_int_equal(test_info(f).bytes, test_info(g).bytes);
    seen_free(g);
}

/* ---- Random operations -------------------------------------------------- */

#define BATCH_MAX 400

struct world {
    struct test_rng r;
    seen_filter *f, *twin; /* the twin does batches one by one */
    struct model *m;
    bool precise;
    uint64_t universe, done;
};

static seen_spec random_spec(struct test_rng *r, bool precise)
{
    static const double rough[] = {0.3, 0.1, 0.01, 0.001};
    uint64_t sort = test_below(r, 3);
    seen_spec spec = {.kind = SEEN_WINDOW,
                      .fpp = precise ? 1e-13 : rough[test_below(r, 4)],
                      .secret = test_secret};
    if (test_below(r, 4)) spec.generations = 2 + (uint32_t)test_below(r, 8);
    if (test_below(r, 16) == 0) spec.generations = 31;
    if (test_below(r, 4) == 0) spec.flags = SEEN_KEYED;
    if (sort != 1) spec.last = 1 + test_below(r, 1u << test_below(r, 11));
    if (sort != 0) {
        spec.window_ms = 1 + (test_next(r) >> test_below(r, 64)) / 2;
        if (test_below(r, 2)) spec.window_ms = 1 + test_below(r, 100);
        if (!spec.last) spec.items = 1000;
    }
    if (precise && !spec.last) { /* all may come in one generation */
        spec.items = UNIVERSE * (spec.generations ? spec.generations : 4);
    }
    return spec;
}

static uint64_t random_key(struct world *w)
{
    return test_below(&w->r, w->universe);
}

static void check_answer(struct world *w, uint64_t key, bool answer)
{
    if (must_be_there(w->m, key)) assert_true(answer);
    if (!w->precise) return;
    if (must_be_gone(w->m, key)) assert_false(answer);
    assert_int_equal(answer, model_has(w->m, key));
}

static void ask(struct world *w)
{
    uint64_t key = random_key(w);
    check_answer(w, key, seen_maybe_u64(w->f, test_key(key)));
}

static void add(struct world *w)
{
    uint64_t key = random_key(w);
    bool before = false, twin = false, maybe = model_has(w->m, key);
    if (!w->precise) maybe = seen_maybe_u64(w->f, test_key(key));
    assert_int_equal(seen_visit_u64(w->twin, test_key(key), &twin), SEEN_OK);
    if (test_below(&w->r, 2)) {
        assert_int_equal(seen_add_u64(w->f, test_key(key)), SEEN_OK);
    } else {
        assert_int_equal(seen_visit_u64(w->f, test_key(key), &before), SEEN_OK);
        check_answer(w, key, before);
        assert_int_equal(before, maybe);
        assert_int_equal(before, twin);
    }
    model_add(w->m, key);
    assert_true(seen_maybe_u64(w->f, test_key(key)));
}

static void batch(struct world *w)
{
    static uint64_t number[BATCH_MAX], bytes[BATCH_MAX];
    static seen_key keys[BATCH_MAX];
    static bool answers[BATCH_MAX];
    size_t n = (size_t)test_below(&w->r, test_below(&w->r, 4) ? 20 : BATCH_MAX);
    for (size_t i = 0; i < n; i++) {
        number[i] = random_key(w);
        bytes[i] = test_key(number[i]);
        keys[i] = (seen_key){&bytes[i], 8};
    }
    seen_maybe_many(w->f, seen_keys_of(keys, n), answers);
    for (size_t i = 0; i < n; i++)
        check_answer(w, number[i], answers[i]);

    bool told = test_below(&w->r, 2);
    size_t done = 0;
    assert_int_equal(
        told ? seen_visit_many(w->f, seen_keys_of(keys, n), answers, &done)
             : seen_add_many(w->f, seen_keys_of(keys, n), &done),
        SEEN_OK);
    assert_int_equal(done, n);
    for (size_t i = 0; i < n; i++) {
        bool before = false;
        assert_int_equal(seen_visit(w->twin, keys[i].data, 8, &before),
                         SEEN_OK);
        if (told) {
            check_answer(w, number[i], answers[i]);
            assert_int_equal(before, answers[i]);
        }
        model_add(w->m, number[i]);
    }
    w->done += 2 * n;
}

/* Clocks that creep, leap, stand still, are set back, start again at 0. */
static uint64_t random_time(struct world *w)
{
    struct test_rng *r = &w->r;
    uint64_t now = w->m->now, unit = w->m->step ? w->m->step : 10;
    switch (test_below(r, 16)) {
    case 0:
        return 0;
    case 1:
        return now ? test_below(r, now) : 0;
    case 2:
        return now;
    case 3:
        return test_below(r, 50) ? now : UINT64_MAX;
    case 4: {
        uint64_t far = test_below(r, 4) * (w->m->window + unit);
        return now < UINT64_MAX - far ? now + far : UINT64_MAX;
    }
    case 5: /* to the edge, or one past it */
        unit = w->m->window + test_below(r, 2);
        return now < UINT64_MAX - unit ? now + unit : now;
    default:
        unit = test_below(r, unit / 2 + 2);
        return now < UINT64_MAX - unit ? now + unit : now;
    }
}

static void advance(struct world *w)
{
    uint64_t to = random_time(w), from = w->m->now;
    seen_filter *steps = NULL;
    if (test_below(&w->r, 8) == 0)
        assert_int_equal(seen_copy(&steps, w->f, NULL), SEEN_OK);
    assert_int_equal(seen_advance(w->f, to), SEEN_OK);
    assert_int_equal(seen_advance(w->twin, to), SEEN_OK);
    assert_int_equal(seen_advance(w->twin, to), SEEN_OK); /* once is enough */
    model_advance(w->m, to);
    if (!steps) return;
    /* A long step is many short ones, with some backwards. */
    for (uint64_t at = from; at < to;) {
        at += 1 + test_below(&w->r, (to - at) / 3 + 1);
        if (at > to) at = to;
        assert_int_equal(seen_advance(steps, at), SEEN_OK);
        assert_int_equal(seen_advance(steps, at / 2), SEEN_OK);
    }
    assert_true(seen_equal(steps, w->f));
    assert_same_bytes(steps, w->f);
    seen_free(steps);
}

/* Half of what is known of the filter at any moment. */
static void compare(struct world *w)
{
    if (w->precise) assert_int_equal(test_info(w->f).items, model_items(w->m));
    assert_true(seen_equal(w->f, w->twin));
    assert_same_bytes(w->f, w->twin);
    check_round_trip(w->f);
    for (uint64_t key = 0; key < w->universe; key++)
        check_answer(w, key, seen_maybe_u64(w->f, test_key(key)));
    w->done += w->universe;
}

static void swap_for_a_loaded_one(struct world *w)
{
    struct saved s = save(w->f);
    seen_filter *g = load(w->f, s.state, s.len);
    assert_non_null(g);
    seen_free(w->f);
    w->f = g;
}

static uint64_t one_world(uint64_t stream, bool precise)
{
    struct world w = {.r = test_rng(stream), .precise = precise};
    seen_spec spec = random_spec(&w.r, precise);
    w.universe = 1 + test_below(&w.r, 1u << test_below(&w.r, 12));
    w.f = test_filter(spec);
    w.twin = test_filter(spec);
    w.m = model_new(&spec, spec.generations ? spec.generations : 4);
    if (test_below(&w.r, 2)) /* not all clocks start in 1970 */
        w.m->now = test_next(&w.r) >> (1 + test_below(&w.r, 60));
    seen_advance(w.f, w.m->now);
    seen_advance(w.twin, w.m->now);
    for (int i = 0; i < 1000; i++, w.done++) {
        uint64_t dice = test_below(&w.r, 400);
        if (dice < 120)
            ask(&w);
        else if (dice < 290)
            add(&w);
        else if (dice < 370)
            advance(&w);
        else if (dice < 396)
            batch(&w);
        else if (dice < 398)
            swap_for_a_loaded_one(&w);
        else if (dice < 399 && i % 4 == 0)
            compare(&w);
        else if (test_below(&w.r, 8) == 0) {
            seen_clear(w.f);
            seen_clear(w.twin);
            model_clear(w.m);
        }
    }
    compare(&w);
    seen_free(w.f);
    seen_free(w.twin);
    model_free(w.m);
    return w.done;
}

static void run_worlds(uint64_t first, bool precise)
{
    const uint64_t wanted = 500000 * test_scale();
    uint64_t done = 0, worlds = 0;
    while (done < wanted)
        done += one_world(first + worlds++, precise);
    print_message("%zu windows\n", (size_t)worlds);
    test_tried(done, "operations");
}

static void precise_windows_agree_with_the_model(void **state)
{
    (void)state;
    run_worlds(100000, true);
}

static void rough_windows_deny_nothing_they_promised(void **state)
{
    (void)state;
    run_worlds(900000, false);
}

/* ---- Examples ----------------------------------------------------------- */

static void the_last_hundred_stay_and_older_ones_leave(void **state)
{
    (void)state;
    seen_filter *f = test_filter((seen_spec){.last = 100, .fpp = 1e-9});
    assert_int_equal(test_info(f).kind, SEEN_WINDOW);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(seen_add_u64(f, test_key(i)), SEEN_OK);
        for (uint64_t j = i < 99 ? 0 : i - 99; j <= i; j++)
            assert_true(seen_maybe_u64(f, test_key(j)));
        for (uint64_t j = i < 400 ? 0 : i - 400; j + 125 <= i; j++)
            assert_false(seen_maybe_u64(f, test_key(j)));
        assert_true(test_info(f).items <= 125);
    }
    seen_free(f);
}

static void a_key_stays_for_its_milliseconds(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 1000, .items = 10, .fpp = 1e-9});
    seen_advance(f, 5000);
    seen_add_str(f, "a");
    seen_advance(f, 6000);
    assert_true(seen_maybe_str(f, "a"));
    seen_advance(f, 6001); /* alone in its generation: gone at once */
    assert_false(seen_maybe_str(f, "a"));

    seen_add_str(f, "b");
    seen_advance(f, 6001 + 249);
    seen_add_str(f, "c"); /* the same generation */
    seen_advance(f, 6001 + 249 + 1000);
    assert_true(seen_maybe_str(f, "b") && seen_maybe_str(f, "c"));
    seen_advance(f, 6001 + 249 + 1001);
    assert_false(seen_maybe_str(f, "b") || seen_maybe_str(f, "c"));
    seen_free(f);
}

static void adding_again_keeps_a_key(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 1000, .items = 100, .fpp = 1e-9});
    for (uint64_t now = 0; now < 100000; now += 900) {
        bool before = now == 0;
        seen_advance(f, now);
        assert_int_equal(seen_visit_u64(f, 7, &before), SEEN_OK);
        assert_int_equal(before, now > 0); /* "already", and kept by it */
    }
    seen_free(f);

    f = test_filter((seen_spec){.last = 1000, .fpp = 1e-9});
    for (uint64_t i = 0; i < 20000; i++) {
        seen_add_u64(f, test_key(i));
        if (i % 900 == 0) seen_add_str(f, "again");
        assert_true(seen_maybe_str(f, "again"));
    }
    seen_free(f);
}

static void a_clock_set_back_changes_nothing(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 1000, .items = 10, .fpp = 1e-9});
    seen_filter *before = NULL;
    seen_advance(f, 100000);
    seen_add_str(f, "a");
    assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
    for (uint64_t back = 0; back < 100000; back += 777)
        assert_int_equal(seen_advance(f, back), SEEN_OK);
    assert_same_bytes(f, before);
    seen_add_str(f, "b"); /* at 100000, not at what the clock says */
    seen_advance(f, 101000);
    assert_true(seen_maybe_str(f, "b"));
    seen_advance(f, 101001);
    assert_false(seen_maybe_str(f, "b"));
    seen_advance(f, UINT64_MAX);
    seen_add_str(f, "c");
    seen_advance(f, 0);
    assert_true(seen_maybe_str(f, "c"));
    seen_free(f);
    seen_free(before);
}

/* Both: the strict one wins, and neither breaks the other's promise. */
static void count_and_time_together(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.last = 100, .window_ms = 1000, .fpp = 1e-9});
    for (uint64_t i = 0; i < 1000; i++) { /* a burst: by count */
        seen_add_u64(f, test_key(i));
        for (uint64_t j = i < 99 ? 0 : i - 99; j <= i; j++)
            assert_true(seen_maybe_u64(f, test_key(j)));
        if (i >= 125) assert_false(seen_maybe_u64(f, test_key(i - 125)));
    }
    for (uint64_t i = 1000; i < 1100; i++) { /* a trickle: by time */
        seen_advance(f, 100 * i);
        seen_add_u64(f, test_key(i));
        for (uint64_t j = i - 10 < 1000 ? 1000 : i - 10; j <= i; j++)
            assert_true(seen_maybe_u64(f, test_key(j)));
        assert_false(seen_maybe_u64(f, test_key(i - 13)));
    }
    seen_free(f);
}

/* A full generation at the far end of the window, one key for each step of it,
 * and as many full ones as still fit at its near end: 2g + 1 of them live. */
static void every_slot_is_needed_and_enough(void **state)
{
    (void)state;
    for (uint64_t g = 2; g <= 31; g++) {
        const uint64_t share = 50, step = 10;
        uint64_t added = 0;
        seen_filter *f = test_filter((seen_spec){.last = g * share,
                                                 .window_ms = g * step,
                                                 .fpp = 1e-9,
                                                 .generations = (uint32_t)g});
        seen_advance(f, 1000);
        test_add_members(f, 0, added = share);
        for (uint64_t i = 0; i < g; i++) {
            seen_advance(f, 1000 + i * step);
            test_add_members(f, added++, 1);
        }
        seen_advance(f, 1000 + g * step);
        test_add_members(f, added, (g - 1) * share + 1);
        added += (g - 1) * share + 1;
        assert_int_equal(test_count_maybe(f, 0, added), added);
        assert_int_equal(test_info(f).items, added);
        assert_int_equal(save(f).len, 40 + (2 * g + 1) * 24);
        check_round_trip(f);
        test_add_members(f, added, 10 * g * share);
        seen_free(f);
    }
}

static void questions_change_nothing(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 50, .items = 1000, .fpp = 0.01});
    seen_filter *before = NULL;
    test_add_members(f, 0, 1000);
    seen_advance(f, 100000); /* all of it has left, none of it is erased */
    assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
    assert_int_equal(test_count_maybe(f, 0, 1000), 0);
    seen_info info = test_info(f);
    assert_int_equal(info.items, 0);
    assert_int_equal(info.bits_set, 0);
    assert_true(info.fpp_now == 0);
    assert_same_bytes(f, before);
    seen_free(f);
    seen_free(before);
}

/* At all times, those before its own too, as after an advance. */
static void asking_at_a_time_is_advancing_a_copy(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 400, .items = 100, .fpp = 1e-9});
    seen_hash h[100];
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t key = test_key(i);
        seen_advance(f, 1000 + 5 * i);
        seen_add_u64(f, key);
        h[i] = seen_hash_key(f, &(uint64_t){key}, sizeof key);
    }
    for (uint64_t now = 0; now < 3000; now += 7) {
        seen_filter *then = NULL, *before = NULL;
        bool asked[100], advanced[100];
        assert_int_equal(seen_copy(&then, f, NULL), SEEN_OK);
        assert_int_equal(seen_copy(&before, f, NULL), SEEN_OK);
        seen_advance(then, now);
        seen_maybe_many(then, seen_keys_hashes(h, 100), advanced);
        seen_maybe_many_at(f, now, seen_keys_hashes(h, 100), asked);
        assert_memory_equal(asked, advanced, sizeof asked);
        assert_same_bytes(f, before);
        seen_free(then);
        seen_free(before);
    }
    seen_free(f);
}

static void clearing_keeps_the_time(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 100, .items = 100, .fpp = 1e-9});
    seen_advance(f, 1000);
    seen_add_str(f, "a");
    seen_clear(f);
    assert_false(seen_maybe_str(f, "a"));
    seen_add_str(f, "a");
    seen_advance(f, 500); /* the past */
    seen_advance(f, 1100);
    assert_true(seen_maybe_str(f, "a"));
    seen_advance(f, 1101);
    assert_false(seen_maybe_str(f, "a"));
    seen_free(f);
}

static void what_it_cannot_do_it_says(void **state)
{
    (void)state;
    seen_filter *f = test_filter((seen_spec){.last = 100, .fpp = 0.01});
    seen_filter *g = test_filter((seen_spec){.last = 100, .fpp = 0.01});
    seen_add_str(f, "a");
    assert_int_equal(seen_remove(f, "a", 1), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(f, g, SEEN_UNION, NULL), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(f, g, SEEN_INTERSECTION, NULL),
                     SEEN_UNSUPPORTED);
    assert_int_equal(seen_count(f, "a", 1), 1);
    seen_free(f);
    seen_free(g);
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        if (test_kind_forgets(kind)) continue;
        f = test_filter((seen_spec){.items = 10, .fpp = 0.01, .kind = kind});
        assert_int_equal(seen_advance(f, 1), SEEN_UNSUPPORTED);
        seen_free(f);
    }
}

/* Equal is what answers alike from now on, wherever the generations lie. */
static void equal_means_the_same_generations(void **state)
{
    (void)state;
    seen_spec spec = {.window_ms = 100, .items = 100, .fpp = 1e-6};
    seen_filter *f = test_filter(spec), *g = test_filter(spec);
    seen_add_str(f, "old"); /* f has a slot in use that g has not */
    seen_advance(f, 1000);
    seen_advance(g, 1000);
    assert_true(seen_equal(f, g));
    seen_add_str(f, "a");
    assert_false(seen_equal(f, g));
    seen_add_str(g, "a");
    assert_true(seen_equal(f, g));
    seen_advance(f, 1001);
    assert_false(seen_equal(f, g));
    seen_advance(g, 1001);
    assert_true(seen_equal(f, g));
    seen_add_str(f, "a"); /* refreshed: not the same any more */
    assert_false(seen_equal(f, g));
    seen_free(f);
    seen_free(g);
}

/* ---- Plan and rate ------------------------------------------------------ */

static void refused(seen_spec spec, const char *field)
{
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_INVALID);
    const char *problem = test_wrong_spec(&spec);
    assert_non_null(problem);
    if (strncmp(problem, field, strlen(field)) != 0)
        fail_msg("\"%s\" is not about %s", problem, field);
}

static void impossible_windows_are_refused(void **state)
{
    (void)state;
    const seen_spec good = {.kind = SEEN_WINDOW, .last = 100, .fpp = 0.01};
    assert_null(test_wrong_spec(&good));
    seen_spec spec = good;
    spec.last = 0;
    refused(spec, "last");
    spec.items = 100;
    refused(spec, "last");
    spec.window_ms = 5;
    assert_null(test_wrong_spec(&spec));
    spec.items = 0;
    refused(spec, "items");
    spec = good, spec.fpp = 0;
    refused(spec, "fpp");
    spec = good, spec.bits = 10000;
    refused(spec, "bits");
    spec = good, spec.hashes = 8;
    refused(spec, "hashes");
    spec = good, spec.fpp = 1e-300;
    refused(spec, "fpp");
    spec = good, spec.last = UINT64_MAX;
    refused(spec, "last");
    spec = good, spec.generations = 1;
    refused(spec, "generations");
    spec.generations = 64;
    refused(spec, "generations");
    spec.generations = 63;
    assert_null(test_wrong_spec(&spec));
    spec.window_ms = 10;
    refused(spec, "generations");
    spec.generations = 31;
    assert_null(test_wrong_spec(&spec));
    spec.generations = UINT32_MAX;
    refused(spec, "generations");

    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        if (test_kind_forgets(kind)) continue;
        spec = (seen_spec){.items = 10, .fpp = 0.01, .kind = kind};
        if (kind == SEEN_BITMAP) spec = (seen_spec){.bits = 10, .kind = kind};
        spec.last = 1;
        refused(spec, "last");
        spec.last = 0, spec.window_ms = 1;
        refused(spec, "window_ms");
        spec.window_ms = 0, spec.generations = 4;
        refused(spec, "generations");
    }
}

static void a_plan_tells_what_a_window_costs(void **state)
{
    (void)state;
    seen_spec spec = {.last = 10000000, .fpp = 0.01};
    seen_plan p = {.size = sizeof p};
    assert_int_equal(seen_plan_for(&spec, &p, NULL), SEEN_OK);
    assert_int_equal(p.kind, SEEN_WINDOW);
    assert_int_equal(p.items, 10000000);
    assert_int_equal(p.generations, 4);
    assert_int_equal(p.last, 10000000);
    assert_int_equal(p.window_ms, 0);
    assert_int_equal(p.lines, 5);
    assert_between((double)p.bits / 1e7, 17.2, 17.4);
    assert_between(p.fpp, 0.0099, 0.01);
    assert_true(seen_plan_fpp(&p, p.items) == p.fpp);
    assert_true(seen_plan_fpp(&p, 0) == 0);
    assert_between(seen_plan_fpp(&p, p.items / 2), 1e-6, 0.001);
    assert_true(seen_plan_fpp(&p, UINT64_MAX) == p.fpp); /* never more */
    uint64_t bits = p.bits;
    spec.window_ms = 60000;
    assert_int_equal(seen_plan_for(&spec, &p, NULL), SEEN_OK);
    assert_int_equal(p.lines, 9);
    assert_int_equal(p.bits, bits / 5 * 9);
    assert_between(p.fpp, 0.0099, 0.01);
    spec.items = spec.last, spec.last = 0;
    assert_int_equal(seen_plan_for(&spec, &p, NULL), SEEN_OK);
    assert_int_equal(p.bits, bits);
    assert_true(seen_plan_fpp(&p, p.items) == p.fpp);
    assert_between(seen_plan_fpp(&p, 2 * p.items), 0.05, 0.5);
    assert_true(seen_plan_fpp(&p, UINT64_MAX) == 1);
    for (uint64_t last = 1; last < 50; last++) { /* small ones too */
        spec.last = last;
        assert_int_equal(seen_plan_for(&spec, &p, NULL), SEEN_OK);
        assert_true(p.fpp <= 0.01);
    }
}

/* Full to the brim, a key before the oldest generation leaves. */
static void measure(seen_spec spec, uint64_t n, double tolerance)
{
    const uint64_t probes = 500000 * (test_scale() < 20 ? test_scale() : 20);
    seen_plan plan = {.size = sizeof plan};
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    seen_filter *f = test_filter(spec);
    uint64_t share = divide_up(n, plan.generations), first = 0;
    for (uint32_t g = 0; g < 3 * plan.generations; g++, first += share) {
        seen_advance(f, g * divide_up(plan.window_ms, plan.generations));
        test_add_members(f, first, share);
    }
    seen_advance(f, 3 * plan.window_ms);
    test_add_members(f, first, share - 1);
    first += share - 1;
    assert_int_equal(test_count_maybe(f, first - n, n), n);
    seen_info info = test_info(f);
    uint64_t wrong = test_count_maybe(f, TEST_STRANGERS, probes);
    print_message("g %2u  k %2u  planned %.4g  now %.4g  measured %.4g\n",
                  plan.generations, plan.hashes, plan.fpp, info.fpp_now,
                  (double)wrong / (double)probes);
    assert_binomial(wrong, probes, info.fpp_now);
    assert_close(info.fpp_now, plan.fpp, tolerance);

    /* What has left is a stranger like others. */
    assert_true(info.items <= n + share);
    uint64_t gone = first - n - 2 * share;
    assert_binomial(test_count_maybe(f, 0, gone), gone, info.fpp_now);
    seen_free(f);
}

static void windows_keep_their_rate(void **state)
{
    (void)state;
    static const double rates[] = {0.5, 0.1, 0.01, 0.001, 1e-4};
    static const uint32_t steps[] = {2, 4, 9};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            seen_spec spec = {.fpp = rates[r], .generations = steps[s]};
            spec.last = 108000;
            /* Rough filters take some new keys for old ones: those do not
             * count, and the count runs late. */
            if (rates[r] <= 0.01) measure(spec, 108000, 0.08);
            spec.last = 0, spec.items = 108000, spec.window_ms = 3600;
            measure(spec, 108000, 0.08);
        }
}

/* The busiest hour of a window for both: filled by count, slots to spare. */
static void windows_of_both_keep_their_rate(void **state)
{
    (void)state;
    measure((seen_spec){.last = 100000, .window_ms = 1000, .fpp = 0.01}, 100000,
            0.08);
    measure((seen_spec){.last = 100000,
                        .window_ms = 1000,
                        .fpp = 0.001,
                        .generations = 8,
                        .flags = SEEN_KEYED,
                        .secret = test_secret},
            100000, 0.08);
}

/* ---- State -------------------------------------------------------------- */

/* Whatever is accepted must work: opening generations relies on it. */
static void use(seen_filter *f, struct test_rng *r)
{
    bool before;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(seen_visit_u64(f, test_next(r), &before), SEEN_OK);
        assert_int_equal(seen_add_u64(f, 7), SEEN_OK);
        assert_true(seen_maybe_u64(f, 7));
        if (test_below(r, 3) == 0)
            seen_advance(f, test_next(r) >> test_below(r, 64));
    }
    test_info(f);
    check_round_trip(f);
}

static seen_filter *random_window(struct test_rng *r)
{
    seen_spec spec = random_spec(r, false);
    if (spec.last > 50) spec.last = 50;
    if (spec.window_ms > 1000) spec.window_ms = 1000;
    seen_filter *f = test_filter(spec);
    uint64_t now = test_below(r, 5000);
    for (uint64_t i = test_below(r, 300); i > 0; i--) {
        seen_add_u64(f, test_next(r));
        if (spec.window_ms) seen_advance(f, now += test_below(r, 100));
    }
    return f;
}

static void hostile_states_are_refused_or_work(void **state)
{
    (void)state;
    static const uint64_t edges[] = {
        0,         1, 2, 0x7fffffff, 0x80000000, 0xffffffff, (uint64_t)1 << 63,
        UINT64_MAX};
    struct test_rng r = test_rng(41);
    uint64_t accepted = 0;
    for (uint64_t round = 0; round < 20000 * test_scale(); round++) {
        seen_filter *f = random_window(&r);
        struct saved s = save(f);
        for (uint64_t wounds = 1 + test_below(&r, 3); wounds > 0; wounds--) {
            size_t at = (size_t)test_below(&r, s.len);
            uint64_t edge = edges[test_below(&r, 8)];
            if (test_below(&r, 2))
                s.state[at] += (uint8_t)(test_below(&r, 3) - 1);
            else if (at / 8 * 8 + 8 <= s.len)
                memcpy(s.state + at / 8 * 8, &edge, test_below(&r, 2) ? 8 : 4);
        }
        if (test_below(&r, 20) == 0) s.len = (size_t)test_below(&r, s.len + 30);
        seen_filter *g = load(f, s.state, s.len);
        if (g) {
            accepted++;
            use(g, &r);
            seen_free(g);
        }
        seen_free(f);
    }
    print_message("%zu accepted\n", (size_t)accepted);
}

/* A view cannot be added to, and time passes for it all the same: what moves is
 * the view's own, not the bytes. */
static void a_view_ages(void **state)
{
    (void)state;
    seen_filter *f =
        test_filter((seen_spec){.window_ms = 1000, .items = 100, .fpp = 1e-9});
    seen_filter *view = NULL;
    size_t len = 0;
    test_add_members(f, 0, 100);
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    uint8_t *bytes = aligned_alloc(64, (len + 63) / 64 * 64);
    uint8_t *before = malloc(len);
    assert_true(bytes && before);
    assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
    memcpy(before, bytes, len);
    assert_int_equal(seen_view(&view, bytes, len, NULL, NULL), SEEN_OK);
    assert_int_equal(test_count_maybe(view, 0, 100), 100);
    assert_int_equal(seen_add_str(view, "a"), SEEN_UNSUPPORTED);
    assert_int_equal(seen_advance(view, 1000), SEEN_OK);
    assert_int_equal(test_count_maybe(view, 0, 100), 100);
    assert_int_equal(seen_advance(view, 1001), SEEN_OK);
    assert_int_equal(test_count_maybe(view, 0, 100), 0);
    assert_memory_equal(bytes, before, len);
    seen_free(view);
    seen_free(f);
    free(bytes);
    free(before);
}

/* Fields that contradict each other, one by one. */
static void every_contradiction_is_found(void **state)
{
    (void)state;
    seen_filter *f = test_filter((seen_spec){
        .last = 40, .window_ms = 4000, .fpp = 0.01, .generations = 4});
    for (uint64_t i = 0; i < 25; i++) { /* 10, 10, and 5 a step later */
        if (i == 20) seen_advance(f, 1000);
        seen_add_u64(f, test_key(i));
    }
    const struct saved good = save(f);
    assert_int_equal(good.len, 40 + 3 * 24);
    static const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } lies[] = {
        {0, 1, "generations"},     {0, 5, "generations"},
        {3, 1, "generations"},     {4, 2, "slots in use"},
        {4, 4, "slots in use"},    {4, 200, "slots in use"},
        {8, 39, "last"},           {8, 41, "last"},
        {17, 0, "window_ms"},      {25, 2, "the time"},
        {32, 3, "newest"},         {32, 200, "newest"},
        {36, 2, "living"},         {36, 4, "living"},
        {36, 200, "living"},       {40 + 7, 1, "first"},
        {48 + 1, 5, "newest add"}, {56, 9, "items"},
        {56, 0, "items"},          {56, 11, "items"},
        {56 + 7, 0x80, "items"},   {104, 4, "items"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct saved bad = good;
        assert_true(bad.state[lies[i].at] != lies[i].value);
        bad.state[lies[i].at] = lies[i].value;
        seen_filter *g = load(f, bad.state, bad.len);
        if (g)
            fail_msg("%s: %u at %zu is accepted", lies[i].what, lies[i].value,
                     lies[i].at);
    }
    for (size_t len = 0; len < good.len + 30; len++)
        if (len != good.len) assert_null(load(f, good.state, len));
    check_round_trip(f);
    seen_free(f);
}

static void out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth < 5; nth++) {
        struct test_alloc a;
        test_alloc_init(&a);
        a.fail_at = nth;
        seen_filter *f = NULL;
        seen_spec spec = {.last = 1000, .fpp = 0.01, .allocator = &a.as};
        seen_status status = seen_new(&f, &spec, NULL);
        assert_int_equal(status, nth <= 2 ? SEEN_NOMEM : SEEN_OK);
        if (status == SEEN_OK) test_add_members(f, 0, 5000);
        seen_free(f);
        assert_int_equal(a.blocks, 0);
        assert_int_equal(a.violations, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_hundred_stay_and_older_ones_leave),
        cmocka_unit_test(a_key_stays_for_its_milliseconds),
        cmocka_unit_test(adding_again_keeps_a_key),
        cmocka_unit_test(a_clock_set_back_changes_nothing),
        cmocka_unit_test(count_and_time_together),
        cmocka_unit_test(every_slot_is_needed_and_enough),
        cmocka_unit_test(questions_change_nothing),
        cmocka_unit_test(asking_at_a_time_is_advancing_a_copy),
        cmocka_unit_test(clearing_keeps_the_time),
        cmocka_unit_test(what_it_cannot_do_it_says),
        cmocka_unit_test(equal_means_the_same_generations),
        cmocka_unit_test(impossible_windows_are_refused),
        cmocka_unit_test(a_plan_tells_what_a_window_costs),
        cmocka_unit_test(windows_keep_their_rate),
        cmocka_unit_test(windows_of_both_keep_their_rate),
        cmocka_unit_test(a_view_ages),
        cmocka_unit_test(every_contradiction_is_found),
        cmocka_unit_test(hostile_states_are_refused_or_work),
        cmocka_unit_test(out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(rough_windows_deny_nothing_they_promised),
        cmocka_unit_test(precise_windows_agree_with_the_model),
    };
    test_announce("window");
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
