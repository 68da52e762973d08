/*
 * change.c - new generations out of old ones.
 *
 * Only what changes is decoded: marks touch the newest generation, forgetting
 * those that hold the item, merging those that meet. The others are carried over
 * as bytes.
 */
#include "base/alloc.h"
#include "exposure/exposure.h"

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
    size_t i = 0, k = 0, len = 0;
    while (i < n && k < m) {
        out[len++] = a[i] < b[k] ? a[i] : b[k];
        if (a[i] == b[k])
            i++, k++;
        else if (a[i] < b[k])
            i++;
        else
            k++;
    }
    for (; i < n; i++)
        out[len++] = a[i];
    for (; k < m; k++)
        out[len++] = b[k];
    return len;
}

/* Strangers' bytes may hold no such list; nothing is lost by sorting out. */
static size_t decode(const struct seen_generation *g, uint64_t *out)
{
    struct seen_sorted run = seen_run_of(g);
    if (!seen_sorted_ok(&run)) return 0;
    seen_sorted_decode(&run, out);
    return (size_t)g->n;
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

/* Put a generation in front; the oldest of too many goes. */
static void push_front(struct seen_generations *g,
                       const struct seen_generation *newest, uint32_t most)
{
    if (g->count >= most) g->count = most - 1;
    memmove(g->at + 1, g->at, g->count * sizeof *g->at);
    g->at[0] = *newest;
    g->count++;
}

/* ---- Time --------------------------------------------------------------- */

void seen_change_expire(const seen_exposure *x, struct seen_generations *g,
                        uint64_t now)
{
    uint32_t keep = 0;
    while (keep < g->count && keep < x->policy.generations &&
           now - g->at[keep].newest <= x->policy.ttl)
        keep++;
    g->count = keep;
}

/* Does the newest generation take marks at this time? */
static bool is_open(const seen_exposure *x, const struct seen_generations *g,
                    uint64_t now)
{
    return g->count > 0 && g->at[0].universe == x->universe &&
           g->at[0].n < x->policy.items && now - g->at[0].first < x->interval;
}

/* ---- Marks -------------------------------------------------------------- */

/*
 * Fill the open generation, or a new one, from item *next on, until it is full
 * or there are no more items. `old` are the fingerprints it has.
 */
static size_t fill_generation(seen_exposure *x, const uint64_t *old,
                              size_t n_old, const seen_hash *h, size_t n,
                              size_t *next, uint64_t *added)
{
    size_t n_added = 0;
    for (; *next < n && n_old + n_added < x->policy.items; ++*next) {
        uint64_t print = seen_print_of(h[*next], x->universe);
        size_t at = search(added, n_added, print);
        bool again = at < n_added && added[at] == print;
        if (again || holds(old, n_old, print)) continue;
        memmove(added + at + 1, added + at, (n_added - at) * sizeof *added);
        added[at] = print;
        n_added++;
    }
    return n_added;
}

seen_status seen_change_mark(seen_exposure *x, struct seen_generations *g,
                             uint64_t now, const seen_hash *h, size_t n)
{
    const uint64_t items = x->policy.items;
    const uint64_t below = seen_universe_of(x->universe);
    uint64_t *old = seen_room_for(x, &x->old, items * sizeof *old);
    uint64_t *added = seen_room_for(x, &x->added, items * sizeof *added);
    uint64_t *merged = seen_room_for(x, &x->merged, items * sizeof *merged);
    uint64_t runs = n / items + 2; /* that the items can fill */
    struct writer w;
    if (!old || !added || !merged ||
        !begin_runs(x, runs * (seen_sorted_size(items, below) + 8), &w))
        return SEEN_NOMEM;

    for (size_t next = 0; next < n;) {
        bool open = is_open(x, g, now);
        struct seen_generation newest = {
            .universe = x->universe, .newest = now, .first = now};
        size_t n_old = 0;
        if (open) {
            n_old = decode(&g->at[0], old);
            if (n_old == 0) return SEEN_CORRUPT;
            newest.first = g->at[0].first;
        }
        size_t n_added = fill_generation(x, old, n_old, h, n, &next, added);
        size_t len = unite(old, n_old, added, n_added, merged);
        if (open) memmove(g->at, g->at + 1, --g->count * sizeof *g->at);
        put_run(&w, merged, len, &newest);
        push_front(g, &newest, x->policy.generations);
    }
    return SEEN_OK;
}

/* ---- Forget ------------------------------------------------------------- */

seen_status seen_change_forget(seen_exposure *x, struct seen_generations *g,
                               const seen_hash *h, size_t n)
{
    uint64_t most = 1, size = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->at[i].n > most) most = g->at[i].n;
        size += g->at[i].run_len + 8;
    }
    struct writer w;
    uint64_t *old = seen_room_for(x, &x->old, most * sizeof *old);
    if (!old || !begin_runs(x, size, &w)) return SEEN_NOMEM;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        struct seen_generation a = g->at[i];
        size_t len = decode(&a, old), before = len;
        if (len == 0) return SEEN_CORRUPT;
        for (size_t k = 0; k < n; k++) {
            uint64_t print = seen_print_of(h[k], a.universe);
            size_t at = search(old, len, print);
            if (at == len || old[at] != print) continue;
            memmove(old + at, old + at + 1, (len - at - 1) * sizeof *old);
            len--;
        }
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

/* All generations of both in order. */
static uint32_t line_up(const struct seen_generations *a,
                        const struct seen_generations *b,
                        const struct seen_generation **out)
{
    uint32_t i = 0, k = 0, n = 0;
    while (i < a->count || k < b->count) {
        bool from_a = k == b->count ||
                      (i < a->count && compare(&a->at[i], &b->at[k]) <= 0);
        out[n++] = from_a ? &a->at[i++] : &b->at[k++];
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
    const struct seen_generation *all[2 * SEEN_MOST_GENERATIONS];
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
