/*
 * change.c - new generations out of old ones.
 *
 * Only what changes is decoded: marks touch the newest generation, forgetting
 * those that hold the item, merging those that meet. The others are carried over
 * as bytes.
 *
 * What a change costs grows as the items of the call and the record do, whatever
 * the items are: one command may bring a million of them, and a server waits.
 */
#include "exposure/exposure.h"

#include "base/sort.h"

#include <string.h>

/* ---- Sorted lists of fingerprints --------------------------------------- */

/* Where a value is or belongs. */
static size_t search(const uint64_t *values, size_t n, uint64_t value)
{
    size_t low = 0;
    while (n > 0) {
        size_t half = n / 2;
        if (values[low + half] < value) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

static bool holds(const uint64_t *values, size_t n, uint64_t value)
{
    size_t at = search(values, n, value);
    return at < n && values[at] == value;
}

/* Both into one; what is in both comes once. */
static size_t unite(const uint64_t *a, size_t n, const uint64_t *b, size_t m,
                    uint64_t *out)
{
    size_t i = 0, len = 0;
    for (size_t k = 0; k < m; k++) {
        while (i < n && a[i] < b[k])
            out[len++] = a[i++];
        if (i < n && a[i] == b[k]) i++;
        out[len++] = b[k];
    }
    memcpy(out + len, a + i, (n - i) * sizeof *out);
    return len + n - i;
}

/* 0: these are bytes of strangers, and no list. */
static size_t decode(const struct seen_generation *g, uint64_t *out)
{
    struct seen_sorted run = seen_run_of(g);
    return seen_sorted_decode(&run, out) ? (size_t)g->n : 0;
}

/* ---- Runs --------------------------------------------------------------- */

/* Encoded generations lie one behind the other in x->runs. */
struct writer {
    uint8_t *to;
};

static bool begin_runs(seen_exposure *x, uint64_t size, struct writer *w)
{
    w->to = seen_room_for(x, &x->runs, size + 1);
    return w->to != NULL;
}

static void put_run(struct writer *w, const uint64_t *values, size_t n,
                    struct seen_generation *g)
{
    uint64_t below = seen_universe_of(g->universe);
    g->n = n;
    g->run_len = seen_sorted_size(n, below);
    g->run = w->to;
    seen_sorted_encode(values, n, below, w->to);
    w->to += g->run_len;
}

/* Put a generation in front; the oldest of too many goes. How many went, and how
 * many items with them? */
static uint32_t push_front(struct seen_generations *g,
                           const struct seen_generation *newest, uint32_t most,
                           uint64_t *evicted)
{
    uint32_t gone = g->count >= most ? g->count - (most - 1) : 0;
    for (uint32_t i = g->count - gone; i < g->count; i++)
        *evicted += g->at[i].n;
    g->count -= gone;
    memmove(g->at + 1, g->at, g->count * sizeof *g->at);
    g->at[0] = *newest;
    g->count++;
    return gone;
}

/* ---- Time --------------------------------------------------------------- */

void seen_change_expire(const seen_exposure *x, struct seen_generations *g,
                        uint64_t now_ms)
{
    uint32_t keep = 0;
    while (keep < g->count && keep < x->policy.generations &&
           now_ms - g->at[keep].newest <= x->policy.ttl_ms)
        keep++;
    g->count = keep;
}

/* ---- Marks -------------------------------------------------------------- */

/*
 * The generation that takes marks is held open, decoded, from one mark to the
 * next: `old` is what it had, sorted, `added` what has come, in that order. It is
 * put down, sorted, when it is full or too old, and at the end.
 *
 * Which fingerprints are among the added ones, a hash table tells. It has their
 * numbers, counted through the whole call from 1: those up to `passed` are of
 * generations that were put down, and their places are free again.
 */
struct editor {
    seen_exposure *x;
    struct seen_generations *g; /* without the one that is held */
    struct writer w;
    bool holding;
    struct seen_generation held;
    uint64_t *old, *added, *merged;
    size_t n_old, n_added;
    uint32_t *table; /* of numbers */
    uint64_t mask;
    uint32_t passed;
    uint64_t gone, evicted; /* generations; items of those that were too many */
};

/* Does a generation with so many items take marks at this time? */
static bool is_open(const seen_exposure *x, const struct seen_generation *a,
                    uint64_t n, uint64_t now_ms)
{
    return a->universe == x->universe && n < x->policy.items &&
           now_ms - a->first < x->interval;
}

static void put_down(struct editor *e)
{
    if (!e->holding) return;
    seen_sort64(e->added, e->merged, e->n_added);
    size_t n = unite(e->old, e->n_old, e->added, e->n_added, e->merged);
    put_run(&e->w, e->merged, n, &e->held);
    e->gone +=
        push_front(e->g, &e->held, e->x->policy.generations, &e->evicted);
    e->holding = false;
}

static void begin_new(struct editor *e, uint64_t now_ms)
{
    put_down(e);
    e->held =
        (struct seen_generation){.universe = e->x->universe, .first = now_ms};
    e->passed += (uint32_t)e->n_added;
    e->n_old = e->n_added = 0;
    e->holding = true;
}

/* Hold a generation that takes marks at this time: the newest, or a new one. */
static seen_status take_up(struct editor *e, uint64_t now_ms)
{
    struct seen_generations *g = e->g;
    if (e->holding && is_open(e->x, &e->held, e->n_old + e->n_added, now_ms))
        return SEEN_OK;
    begin_new(e, now_ms);
    if (g->count && is_open(e->x, &g->at[0], g->at[0].n, now_ms)) {
        e->n_old = decode(&g->at[0], e->old);
        if (e->n_old == 0) return SEEN_CORRUPT;
        e->held = g->at[0];
        memmove(g->at, g->at + 1, --g->count * sizeof *g->at);
    }
    return SEEN_OK;
}

/* Is it among the added ones? If not, where it would be. */
static bool is_added(const struct editor *e, uint64_t print, uint64_t *place)
{
    *place = seen_place_of(e->x, print, e->mask);
    for (; e->table[*place] > e->passed; *place = (*place + 1) & e->mask)
        if (e->added[e->table[*place] - e->passed - 1] == print) return true;
    return false;
}

static void add(struct editor *e, uint64_t print)
{
    uint64_t place;
    if (is_added(e, print, &place)) return;
    e->added[e->n_added++] = print;
    e->table[place] = e->passed + (uint32_t)e->n_added;
}

/* How many different items of these marks the held generation lacks. */
static seen_status count_new(struct editor *e, const struct seen_marks *m,
                             uint64_t *count)
{
    uint64_t *h = seen_room_for(e->x, &e->x->counted, 2 * m->n * sizeof *h);
    if (!h) return SEEN_NOMEM;
    size_t n = 0;
    uint64_t place;
    for (size_t i = 0; i < m->n; i++) {
        uint64_t print = seen_print_of(m->h[i], e->x->universe);
        if (!holds(e->old, e->n_old, print) && !is_added(e, print, &place))
            h[n++] = m->h[i];
    }
    seen_sort64(h, h + m->n, n);
    *count = 0;
    for (size_t i = 0; i < n; i++)
        *count += i == 0 || h[i] != h[i - 1];
    return SEEN_OK;
}

/*
 * A generation that is partly full takes fewer marks than one of its own, so one
 * call with nearly as many as the policy holds could push out its own first ones:
 * a take would give what the next take gives again. Then it gets a generation of
 * its own to begin with. All that was there leaves in either case. Items that come
 * twice, or are in the held generation, do not count: repeating them must not push
 * anything out.
 */
static seen_status make_way(struct editor *e, const struct seen_marks *m,
                            uint64_t now_ms)
{
    const uint64_t held = e->n_old + e->n_added, items = e->x->policy.items;
    const uint64_t room = items * e->x->policy.generations - held;
    uint64_t new = m->n;
    if (held == 0 || new <= room) return SEEN_OK;
    seen_status status = count_new(e, m, &new);
    if (status == SEEN_OK && new > room) begin_new(e, now_ms);
    return status;
}

/* From item *next on, until it is full or there are no more. */
static void fill(struct editor *e, const struct seen_marks *m, size_t *next)
{
    for (; *next < m->n && e->n_old + e->n_added < e->x->policy.items;
         ++*next) {
        uint64_t print = seen_print_of(m->h[*next], e->x->universe);
        if (!holds(e->old, e->n_old, print)) add(e, print);
    }
}

/* The time that counts; what has aged out by then goes. */
static uint64_t arrive(struct editor *e, uint64_t now_ms)
{
    const struct seen_generations *g = e->g;
    uint64_t newest = e->holding ? e->held.newest
                      : g->count ? g->at[0].newest
                                 : 0;
    if (now_ms > SEEN_TIME_MAX) now_ms = SEEN_TIME_MAX;
    if (now_ms < newest) now_ms = newest;
    uint32_t had = g->count + e->holding;
    if (e->holding && now_ms - newest > e->x->policy.ttl_ms) e->holding = false;
    seen_change_expire(e->x, e->g, now_ms);
    e->gone += had - (g->count + e->holding);
    return now_ms;
}

/* A fingerprint takes less than 8 bytes, and a run little beside them
 * (bits/sorted.h). */
static uint64_t runs_bound(const seen_exposure *x, uint64_t old, uint64_t items,
                           size_t marks)
{
    uint64_t runs = (old + items) / x->policy.items + 2 * marks + 2;
    return 8 * (old + items) + 32 * runs;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Room for what this record and so many items need, however much the policy lets
 * a generation have. */
static bool begin_edit(struct editor *e, uint64_t items, size_t marks)
{
    seen_exposure *x = e->x;
    const uint64_t most = x->policy.items, added = least(items, most);
    const uint64_t places = seen_places_for(added);
    uint64_t old = 0;
    for (uint32_t i = 0; i < e->g->count; i++)
        if (e->g->at[i].n < most && e->g->at[i].n > old) old = e->g->at[i].n;
    const uint64_t merged = least(old + added, most);
    e->old = seen_room_for(x, &x->old, old * sizeof *e->old);
    e->added = seen_room_for(x, &x->added, added * sizeof *e->added);
    e->merged = seen_room_for(x, &x->merged, merged * sizeof *e->merged);
    e->table = seen_room_for(x, &x->prints, places * sizeof *e->table);
    e->mask = places - 1;
    if (!e->old || !e->added || !e->merged || !e->table) return false;
    memset(e->table, 0, (size_t)places * sizeof *e->table);
    return begin_runs(x, runs_bound(x, old, items, marks), &e->w);
}

seen_status seen_change_mark(seen_exposure *x, struct seen_generations *g,
                             const struct seen_marks *marks, size_t n)
{
    struct editor e = {.x = x, .g = g};
    uint64_t items = 0;
    for (size_t i = 0; i < n; i++)
        items += marks[i].n;
    if (items > UINT32_MAX / 2) return SEEN_INVALID;
    if (!begin_edit(&e, items, n)) return SEEN_NOMEM;
    for (size_t i = 0; i < n; i++) {
        uint64_t now_ms = arrive(&e, marks[i].now_ms);
        for (size_t next = 0; next < marks[i].n;) {
            seen_status status = take_up(&e, now_ms);
            if (status == SEEN_OK && next == 0)
                status = make_way(&e, &marks[i], now_ms);
            if (status != SEEN_OK) return status;
            e.held.newest = now_ms;
            fill(&e, &marks[i], &next);
        }
    }
    put_down(&e);
    x->dropped += e.gone;
    x->evicted += e.evicted;
    return SEEN_OK;
}

/* ---- Forget ------------------------------------------------------------- */

/* The first of these hashes whose fingerprint is not below the value. Their order
 * is that of their fingerprints, in every universe. */
static size_t search_hashes(const uint64_t *h, size_t n, uint32_t universe,
                            uint64_t value)
{
    size_t low = 0;
    while (n > 0) {
        size_t half = n / 2;
        if (seen_print_of(h[low + half], universe) < value) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Fingerprints without those of sorted hashes; how many are left. */
static size_t subtract(uint64_t *values, size_t len, const uint64_t *h,
                       size_t n, uint32_t universe)
{
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < len; i++) {
        at += search_hashes(h + at, n - at, universe, values[i]);
        bool goes = at < n && seen_print_of(h[at], universe) == values[i];
        if (!goes) values[kept++] = values[i];
    }
    return kept;
}

seen_status seen_change_forget(seen_exposure *x, struct seen_generations *g,
                               const uint64_t *h, size_t n)
{
    uint64_t most = 1, size = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->at[i].n > most) most = g->at[i].n;
        size += g->at[i].run_len + 8;
    }
    struct writer w;
    uint64_t *old = seen_room_for(x, &x->old, most * sizeof *old);
    uint64_t *sorted = seen_room_for(x, &x->added, n * sizeof *sorted);
    uint64_t *spare = seen_room_for(x, &x->merged, n * sizeof *spare);
    if (!old || !sorted || !spare || !begin_runs(x, size, &w))
        return SEEN_NOMEM;
    if (n) memcpy(sorted, h, n * sizeof *sorted);
    seen_sort64(sorted, spare, n);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_generation a = g->at[i];
        size_t before = decode(&a, old);
        if (before == 0) return SEEN_CORRUPT;
        size_t len = subtract(old, before, sorted, n, a.universe);
        if (len == 0) continue;
        if (len < before) put_run(&w, old, len, &a);
        g->at[kept++] = a;
    }
    g->count = kept;
    return SEEN_OK;
}

/* ---- Merge -------------------------------------------------------------- */

/* Newest first; where times agree, by content, so that the order in which the
 * records are given cannot matter. */
static int compare(const struct seen_generation *a,
                   const struct seen_generation *b)
{
    if (a->newest != b->newest) return a->newest > b->newest ? -1 : 1;
    if (a->first != b->first) return a->first > b->first ? -1 : 1;
    if (a->universe != b->universe) return a->universe < b->universe ? -1 : 1;
    if (a->n != b->n) return a->n > b->n ? -1 : 1;
    return memcmp(a->run, b->run, (size_t)a->run_len);
}

/* All generations of both in order; those of one call have the same time, and
 * are in no order in their own record. */
static uint32_t line_up(const struct seen_generations *a,
                        const struct seen_generations *b,
                        const struct seen_generation **out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->count + b->count; i++) {
        const struct seen_generation *g =
            i < a->count ? &a->at[i] : &b->at[i - a->count];
        uint32_t k = n++;
        for (; k > 0 && compare(g, out[k - 1]) < 0; k--)
            out[k] = out[k - 1];
        out[k] = g;
    }
    return n;
}

/*
 * Neighbours of one universe become one generation while that holds no more
 * than the policy lets it: so what is in both records comes together again.
 */
seen_status seen_change_merge(seen_exposure *x, struct seen_generations *into,
                              const struct seen_generations *from)
{
    const struct seen_generation *all[2 * SEEN_GENERATIONS_MAX];
    uint32_t count = line_up(into, from, all);
    uint64_t most = x->policy.items, size = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i]->n > most) most = all[i]->n;
        size += all[i]->run_len + 8;
    }
    struct writer w;
    uint64_t *run = seen_room_for(x, &x->old, most * sizeof *run);
    uint64_t *next = seen_room_for(x, &x->added, most * sizeof *next);
    uint64_t *both = seen_room_for(x, &x->merged, 2 * most * sizeof *both);
    if (!run || !next || !both || !begin_runs(x, size, &w)) return SEEN_NOMEM;

    struct seen_generations out = {0};
    for (uint32_t i = 0; i < count && out.count < x->policy.generations;) {
        struct seen_generation g = *all[i];
        size_t n = decode(&g, run);
        if (n == 0) return SEEN_CORRUPT;
        for (i++; i < count && all[i]->universe == g.universe; i++) {
            size_t m = decode(all[i], next);
            if (m == 0) return SEEN_CORRUPT;
            size_t len = unite(run, n, next, m, both);
            if (len > x->policy.items && len > n) break;
            memcpy(run, both, len * sizeof *run);
            n = len;
            if (all[i]->first < g.first) g.first = all[i]->first;
        }
        put_run(&w, run, n, &g);
        out.at[out.count++] = g;
    }
    *into = out;
    return SEEN_OK;
}
