/*
 * window.c - the filter that forgets: the last N keys stay, or what came in the
 * last T milliseconds, and older ones leave in generations.
 *
 * Keys go into the newest of several blocked filters, the generations. It is
 * closed when it has N/g keys or when its first add is T/g old, and the next
 * add opens another. A generation has left when N keys came after it, or when
 * its newest add is more than T old. Nothing is moved and nothing counted
 * down: leaving is a bit less in a mask, and the slot is cleared when a new
 * generation needs it.
 *
 *     adds ──►  | 5, open | 4 | 3 | 2 | 1, leaving |     g = 4, five slots
 *
 * The line of a key is the same in all generations, so those lines lie side by
 * side, a run. One random place in memory, one mask, five tests:
 *
 *     hash ──► run ──► | slot 0 | slot 1 | slot 2 | slot 3 | slot 4 |
 *                       64 bytes each: the key's line of that generation
 *
 * Laws. Time is what seen_advance() was told, and only goes forward. An add
 * sets its bits in the newest generation even if an older one has the key: that
 * is what keeps it for another window. So a key is there while it is among the
 * last N adds and at most T old, and gone, but for false positives, once N + N/g
 * new keys came after it or T + T/g has passed. With both N and T, whichever
 * comes first. Questions change nothing.
 *
 * Worked example: the last million keys at 1 %. Each generation takes 250,000
 * keys; five of them may be full at once, so each may err once in 500, which
 * costs 13.8 bits a key, and five times 250,000 of those are 17.3 bits for each
 * of the million keys promised. A lookup reads 320 bytes in a row.
 *
 * Why the slots are enough. Let c = N/g and G = T/g, rounded up, and look at the
 * oldest generation alive, m, when a new one opens.
 *   By count: those after m are full and hold less than N: fewer than N/c <= g
 *   of them. With m and the new one that is g + 1.
 *   By time: first adds are at least G apart, and the first one after m came
 *   later than m's newest add, which is at most T old: again fewer than g.
 *   By both, after m there are fewer than g that were closed by count, and at
 *   most g by time (now m's newest add and the next first may coincide): with m
 *   and the new one 2g + 1. They hold less than N + c keys, so the rate is that
 *   of g + 1 full ones. tests/unit/test_window.c fills every slot.
 *
 * The trade-off is g. More generations waste less on what should have left, and
 * each must be more precise, and is one more line to read. Measured in one run
 * of script/bench window on a shared 2-core Zen 3, best of 9 rounds; bits for
 * each key promised, ns a key, in batches and one by one:
 *
 *                      last 10M at 1 %            last 10M at 0.1 %
 *                   bits absent present one    bits absent present one
 *   window   g = 2  18.8   16     17     59    28.7   22     19     86
 *            g = 4  17.3   25     21     79    26.2   26     24     75
 *            g = 8  17.3   47     35     91    26.1   46     41     89
 *   naive    g = 2  18.8   20     16    233    28.7   21     18    146
 *            g = 4  17.3   32     32    310    23.5   41     59    220
 *            g = 8  17.3   49     50    297    22.5   76     85    239
 *   APBF            19.8  675    766    664    27.5  326    585    469
 *
 * "naive" is g + 1 blocked filters that take turns, every one asked: the same
 * work in g + 1 places. Large batches hide that, single questions do not: 2 to
 * 4 times as long. Adding is where it wins at 1 %, 3.0 against 5.1 ns, since
 * its newest filter lies in a quarter of the memory. At 0.1 % its planner takes
 * two lines a key for a tenth less memory, which a window does only where it
 * saves a fifth.
 *
 * APBF is the age-partitioned Bloom filter: k + l slices of bits, k bits set in
 * the k newest, k in a row looked for. It forgets in finer steps (1/45 and 1/39
 * here, its best sizes up to 64 slices) and needs no more than one slice to
 * clear, but takes more memory than g = 4, and its walk from slice to slice is
 * 6 to 37 times slower. Its time-limited variant changes when slices shift, not
 * what a lookup costs. g = 4 is the default: a twentieth from the least memory,
 * and the fewest lines that get there.
 *
 * Opening a generation clears a slot, every fifth line of the memory, at once:
 * about a millisecond for the last ten million keys. The add that opens it waits.
 *
 * Shtul, Baquero, Almeida: Age-Partitioned Bloom Filters, 2020. Rodrigues,
 * Shtul, Baquero, Almeida: Time-limited Bloom Filter, 2023.
 */
#include "base/bytes.h"
#include "bits/lines.h"
#include "filter/filter.h"
#include "filter/lines.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define DEFAULT_GENERATIONS 4

struct generation {
    uint64_t first, newest; /* times of its first and its newest add */
    uint64_t items;         /* adds that changed it, at least 1 */
};

struct window {
    seen_filter common; /* .items: those of all living generations */
    struct seen_runs runs;
    const struct seen_kernel *kernel;
    uint64_t now_ms; /* the latest that seen_advance() heard of */
    uint64_t live;   /* slots of the living, as a mask */
    uint32_t living; /* how many: in slots newest, newest - 1, ... */
    uint32_t newest; /* slot of the newest generation */
    uint32_t used;   /* slots 0 .. used-1 have bits in them */
    struct generation at[SEEN_SLOTS_MAX]; /* by slot */
};

static struct window *self(seen_filter *f)
{
    return (struct window *)f;
}

static const struct window *peek(const seen_filter *f)
{
    return (const struct window *)f;
}

/* ---- Plan --------------------------------------------------------------- */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* What closes a generation: so many items, so many milliseconds. */
static uint64_t share_of(const seen_plan *plan)
{
    return divide_up(plan->items, plan->generations);
}

static uint64_t step_of(const seen_plan *plan)
{
    return divide_up(plan->window_ms, plan->generations);
}

static uint32_t slots_of(const seen_plan *plan)
{
    uint32_t g = plan->generations;
    return plan->last && plan->window_ms ? 2 * g + 1 : g + 1;
}

/* The layout of one generation. */
static struct seen_line_layout layout_of(const seen_plan *plan)
{
    uint32_t k = plan->hashes;
    struct seen_line_layout l = {.regions = k < 8 ? 1 : k / 8,
                                 .per_line = k < 8 ? k : 8};
    l.count = plan->bits / SEEN_LINE_BITS / l.regions / slots_of(plan);
    return l;
}

/* One minus the product of what `full` generations get right. */
static double combined(double fpp, uint32_t full)
{
    return fpp < 1 ? -expm1(full * log1p(-fpp)) : 1;
}

/* A window of `items` keys at its worst: a generation more than the window is
 * there, and all are full. */
static double window_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (!plan->generations) return NAN; /* a plan that was read by halves */
    if (plan->last && items > plan->last) items = plan->last; /* no more fit */
    struct seen_line_layout l = layout_of(plan);
    uint32_t full = plan->generations + 1;
    uint64_t share = divide_up(items, plan->generations);
    double fpp =
        seen_fpp_blocked(share, l.count * l.regions, l.regions, l.per_line);
    return fmin(1, combined(fpp, full) +
                       seen_hash_fpp((double)share * full, plan->hash_bits));
}

static void cost(seen_plan *plan)
{
    plan->lines = layout_of(plan).regions * slots_of(plan);
    plan->bytes = plan->bits / 8 + sizeof(struct window);
}

static uint64_t lines_of(const struct seen_line_layout *l)
{
    return l->count * l->regions;
}

/* Another region costs a run of lines, and twice the time of a lookup: it must
 * save a tenth of the memory, not a twentieth as in a plain blocked filter. */
static bool layout_for(uint64_t n, double fpp, struct seen_line_layout *l)
{
    return seen_line_layout_paying(n, fpp, SEEN_SAVES_TENTH, 1, l);
}

static seen_status window_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (!spec->last && !spec->window_ms)
        return seen_fail(e, SEEN_INVALID, "last",
                         "last: expected at least 1, or a time in "
                         "milliseconds, for a window");
    if (!(spec->fpp > 0))
        return seen_fail(
            e, SEEN_INVALID, "fpp",
            "fpp: expected a rate above 0 and below 1 for a window");
    if (!spec->last && !spec->items)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected at least 1, the keys that come "
                         "within the time of a window");
    if (spec->bits)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits %" PRIu64
                         ": not for a window, whose size follows from its keys "
                         "and rate: leave it out",
                         spec->bits);
    if (spec->hashes)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: not for a window, where they follow from "
                         "its rate: leave it out",
                         spec->hashes);

    plan->generations =
        spec->generations ? spec->generations : DEFAULT_GENERATIONS;
    plan->last = spec->last;
    plan->window_ms = spec->window_ms;
    plan->items = spec->last ? spec->last : spec->items;
    if (plan->generations < 2 || plan->generations >= SEEN_SLOTS_MAX)
        return seen_fail(e, SEEN_INVALID, "generations",
                         "generations %u: expected 2 to 63", plan->generations);
    if (slots_of(plan) > SEEN_SLOTS_MAX)
        return seen_fail(e, SEEN_INVALID, "generations",
                         "generations %u: expected 2 to 31 in a window of both "
                         "a number of keys and a time",
                         plan->generations);

    /* 1. What hash and other generations leave of the rate for one. */
    uint32_t full = plan->generations + 1;
    uint64_t share = share_of(plan);
    double most = (double)share * full;
    plan->hash_bits = seen_hash_bits_for(most, spec->fpp, spec);
    if (!plan->hash_bits) return seen_spec_beyond_hashes(spec, e);
    double fpp = spec->fpp - seen_hash_fpp(most, plan->hash_bits);
    double each = -expm1(log1p(-fpp) / full);

    /* 2. The layout of one, as often as there are slots. */
    struct seen_line_layout l;
    if (!layout_for(share, each, &l) ||
        lines_of(&l) > SEEN_MAX_BITS / SEEN_LINE_BITS / slots_of(plan))
        return seen_fail(e, SEEN_INVALID, spec->last ? "last" : "items",
                         "%s %" PRIu64 ": takes more than 32 TiB at this rate: "
                         "expected fewer keys or a higher rate",
                         spec->last ? "last" : "items", plan->items);
    if (l.count > UINT32_MAX) plan->hash_bits = 128;
    plan->hashes = l.regions * l.per_line;
    plan->bits = lines_of(&l) * slots_of(plan) * SEEN_LINE_BITS;
    plan->fpp = window_plan_fpp(plan, plan->items);
    cost(plan);
    return SEEN_OK;
}

/* Generations, last and window_ms come with the state. */
static bool window_plan_read(seen_plan *plan)
{
    if (!seen_line_layout_takes(plan->hashes) || plan->width != 0 ||
        plan->items == 0 || plan->bits == 0 || plan->bits > SEEN_MAX_BITS ||
        plan->bits % SEEN_LINE_BITS)
        return false;
    if (plan->generations) {
        cost(plan);
    } else {
        plan->lines = 0;
        plan->bytes = plan->bits / 8 + sizeof(struct window);
    }
    return true;
}

/* ---- Life --------------------------------------------------------------- */

static void forget(struct window *w)
{
    w->live = w->living = w->used = 0;
    w->newest = w->runs.slots - 1; /* the next is slot 0 */
}

static void window_shape(seen_filter *f)
{
    struct window *w = self(f);
    w->kernel = seen_kernel_best();
    if (!f->plan.generations) return; /* window_load_state() comes back */
    struct seen_line_layout l = layout_of(&f->plan);
    uint64_t *words = w->runs.lines.words;
    w->runs.slots = slots_of(&f->plan);
    w->runs.lines =
        (struct seen_lines){.words = words,
                            .count = l.count,
                            .regions = l.regions,
                            .log_w = seen_ctz64(l.per_line),
                            .wide = f->hash->bits == 128,
                            .ring = f->plan.bits / 8 > SEEN_RING_FROM_BYTES};
    forget(w);
}

static bool window_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    *part =
        (struct seen_part){peek(f)->runs.lines.words, f->plan.bits / 8, true};
    return index == 0;
}

static void window_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->runs.lines.words = at;
}

/* ---- Generations -------------------------------------------------------- */

/* The slot of the generation that `newer` others came after. */
static uint32_t slot_at(const struct window *w, uint32_t newer)
{
    uint32_t slots = w->runs.slots;
    return (w->newest + slots - newer) % slots;
}

/* Has a generation left, after which so many items came? */
static bool has_left(const struct window *w, const struct generation *g,
                     uint64_t after)
{
    const seen_plan *plan = &w->common.plan;
    return (plan->window_ms && w->now_ms - g->newest > plan->window_ms) ||
           (plan->last && after >= plan->last);
}

/* The oldest leaves first: it has the oldest newest add, and the most items
 * after it. */
static void retire(struct window *w)
{
    while (w->living > 0) {
        uint32_t oldest = slot_at(w, w->living - 1);
        const struct generation *g = &w->at[oldest];
        if (!has_left(w, g, w->common.items - g->items)) break;
        w->common.items -= g->items;
        w->live &= ~((uint64_t)1 << oldest);
        w->living--;
    }
}

/* Does the next add need a new generation? */
static bool is_closed(const struct window *w)
{
    const seen_plan *plan = &w->common.plan;
    const struct generation *g = &w->at[w->newest];
    return w->living == 0 || (plan->last && g->items >= share_of(plan)) ||
           (plan->window_ms && w->now_ms - g->first >= step_of(plan));
}

/* The runs of all regions, or the lines of one slot. */
static uint64_t lines_in(const struct seen_lines *l)
{
    return l->count * l->regions;
}

static void clear_slot(struct window *w, uint32_t slot)
{
    const struct seen_lines *l = &w->runs.lines;
    uint64_t stride = (uint64_t)w->runs.slots * SEEN_LINE_WORDS;
    uint64_t *line = l->words + slot * SEEN_LINE_WORDS;
    for (uint64_t i = 0; i < lines_in(l); i++, line += stride)
        memset(line, 0, SEEN_LINE_SIZE);
}

static void open_next(struct window *w)
{
    assert(w->living < w->runs.slots); /* see the proof at the top */
    w->newest = (w->newest + 1) % w->runs.slots;
    if (w->newest < w->used)
        clear_slot(w, w->newest);
    else
        w->used = w->newest + 1;
    w->at[w->newest] = (struct generation){w->now_ms, w->now_ms, 0};
    w->live |= (uint64_t)1 << w->newest;
    w->living++;
}

/* How many new keys the newest generation takes before it is full or the
 * oldest leaves. */
static uint64_t room(const struct window *w)
{
    const seen_plan *plan = &w->common.plan;
    if (!plan->last) return UINT64_MAX;
    uint64_t left = share_of(plan) - w->at[w->newest].items;
    if (w->living == 1) return left;
    uint64_t oldest = w->at[slot_at(w, w->living - 1)].items;
    return seen_min64(left, plan->last - (w->common.items - oldest));
}

static seen_status window_advance(seen_filter *f, uint64_t now_ms)
{
    struct window *w = self(f);
    if (now_ms > w->now_ms) {
        w->now_ms = now_ms;
        retire(w);
    }
    return SEEN_OK;
}

/* ---- Keys --------------------------------------------------------------- */

static bool window_maybe(const seen_filter *f, seen_hash h)
{
    const struct window *w = peek(f);
    return (w->kernel->find(&w->runs, h) & w->live) != 0;
}

static seen_status window_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    struct window *w = self(f);
    for (size_t i = 0; i < n;) {
        if (is_closed(w)) open_next(w);
        const uint64_t most = room(w);
        struct seen_turn turn = {w->live, w->newest, most};
        i += w->kernel->turn_many(&w->runs, h + i, n - i, ahead, &turn,
                                  before ? before + i : NULL);
        struct generation *g = &w->at[w->newest];
        g->items += most - turn.room;
        g->newest = w->now_ms;
        f->items += most - turn.room;
        retire(w);
    }
    *done = n;
    return SEEN_OK;
}

static seen_status window_visit(seen_filter *f, seen_hash h, bool *before)
{
    size_t done;
    return window_visit_many(f, &h, 1, 0, before, &done);
}

static seen_status window_add(seen_filter *f, seen_hash h)
{
    return window_visit(f, h, NULL);
}

static void window_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    const struct seen_runs *b = &peek(f)->runs;
    if (!b->lines.ring) return;
    for (size_t i = 0; i < n && i < SEEN_RUN_RING; i++)
        seen_runs_prefetch(b, h[i], seen_shape_of(&b->lines), 0, b->slots);
}

static void window_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    const struct window *w = peek(f);
    w->kernel->find_many(&w->runs, h, n, ahead, w->live, answers);
}

/* All but the bits is copied: a few hundred bytes. */
static void window_maybe_many_at(const seen_filter *f, uint64_t now_ms,
                                 const seen_hash *h, size_t n, bool *answers)
{
    struct window then = *peek(f);
    window_advance(&then.common, now_ms);
    window_maybe_many(&then.common, h, n, 0, answers);
}

/* ---- State -------------------------------------------------------------- */

/*
 *      0   4  generations          32   4  slot of the newest
 *      4   4  slots in use         36   4  living generations
 *      8   8  last                 40      for each, from the oldest:
 *     16   8  window_ms                     8  time of its first add
 *     24   8  the time                      8  time of its newest add
 *                                           8  items
 */
#define STATE_HEAD 40
#define STATE_EACH 24

static size_t window_save_state(const seen_filter *f, uint8_t *to)
{
    const struct window *w = peek(f);
    seen_put_le32(to, f->plan.generations);
    seen_put_le32(to + 4, w->used);
    seen_put_le64(to + 8, f->plan.last);
    seen_put_le64(to + 16, f->plan.window_ms);
    seen_put_le64(to + 24, w->now_ms);
    seen_put_le32(to + 32, w->newest);
    seen_put_le32(to + 36, w->living);
    uint8_t *each = to + STATE_HEAD;
    for (uint32_t i = w->living; i-- > 0; each += STATE_EACH) {
        const struct generation *g = &w->at[slot_at(w, i)];
        seen_put_le64(each, g->first);
        seen_put_le64(each + 8, g->newest);
        seen_put_le64(each + 16, g->items);
    }
    return (size_t)(each - to);
}

/* The generations of a plan that lacks them. */
static bool complete(seen_filter *f, const uint8_t *from)
{
    seen_plan *plan = &f->plan;
    plan->generations = seen_get_le32(from);
    plan->last = seen_get_le64(from + 8);
    plan->window_ms = seen_get_le64(from + 16);
    if (plan->generations < 2 || plan->generations >= SEEN_SLOTS_MAX ||
        slots_of(plan) > SEEN_SLOTS_MAX || (!plan->last && !plan->window_ms) ||
        (plan->last && plan->last != plan->items))
        return false;
    struct seen_line_layout l = layout_of(plan);
    if (l.count == 0 ||
        l.count * l.regions * slots_of(plan) * SEEN_LINE_BITS != plan->bits ||
        (f->hash->bits == 64 && l.count > UINT32_MAX))
        return false;
    cost(plan);
    return true;
}

/* Could `g` have been closed by `next`, which opened after it? */
static bool follows(const seen_plan *plan, const struct generation *g,
                    const struct generation *next)
{
    return g->newest <= next->first &&
           ((plan->last && g->items == share_of(plan)) ||
            (plan->window_ms && next->first - g->first >= step_of(plan)));
}

static bool is_sound(const struct window *w, const struct generation *g)
{
    const seen_plan *plan = &w->common.plan;
    return g->items >= 1 && (!plan->last || g->items <= share_of(plan)) &&
           g->first <= g->newest && g->newest <= w->now_ms &&
           (!plan->window_ms || g->newest - g->first < step_of(plan));
}

/* Everything that open_next() relies on is checked: what is accepted here
 * could have come about by adding keys. */
static seen_status window_load_state(seen_filter *f, const uint8_t *from,
                                     size_t len)
{
    struct window *w = self(f);
    const uint64_t items = f->items;
    if (len < STATE_HEAD || !complete(f, from)) return SEEN_CORRUPT;
    window_shape(f);
    w->used = seen_get_le32(from + 4);
    w->now_ms = seen_get_le64(from + 24);
    w->newest = seen_get_le32(from + 32);
    uint32_t living = seen_get_le32(from + 36), slots = w->runs.slots;
    if (w->used > slots || w->newest >= slots || living > w->used ||
        len != STATE_HEAD + (size_t)living * STATE_EACH ||
        (w->used == 0 ? w->newest != slots - 1
                      : w->used < slots && w->newest != w->used - 1))
        return SEEN_CORRUPT;

    w->living = living;
    f->items = 0;
    for (uint32_t i = living; i-- > 0; from += STATE_EACH) {
        struct generation *g = &w->at[slot_at(w, i)];
        *g = (struct generation){seen_get_le64(from + STATE_HEAD),
                                 seen_get_le64(from + STATE_HEAD + 8),
                                 seen_get_le64(from + STATE_HEAD + 16)};
        if (!is_sound(w, g) || g->items > items - f->items) return SEEN_CORRUPT;
        if (i + 1 < living && !follows(&f->plan, &w->at[slot_at(w, i + 1)], g))
            return SEEN_CORRUPT;
        w->live |= (uint64_t)1 << slot_at(w, i);
        f->items += g->items;
    }
    retire(w);
    bool right = f->items == items && w->living == living;
    return right ? SEEN_OK : SEEN_CORRUPT;
}

/* Slots that were never used are not cleared when they are: an add to a new
 * generation must find no bit set there, or it would count nothing. */
static bool window_parts_ok(const seen_filter *f)
{
    const struct window *w = peek(f);
    const struct seen_lines *l = &w->runs.lines;
    const uint64_t stride = (uint64_t)w->runs.slots * SEEN_LINE_WORDS;
    const uint64_t *run = l->words;
    uint64_t any = 0;
    for (uint64_t i = 0; i < lines_in(l); i++, run += stride)
        for (uint64_t j = w->used * SEEN_LINE_WORDS; j < stride; j++)
            any |= run[j];
    return any == 0;
}

/* ---- Whole filters ------------------------------------------------------ */

/* The rate of one generation as its bits are. */
static double survey(const struct window *w, uint32_t slot, uint64_t *bits_set)
{
    struct seen_lines lines = w->runs.lines;
    uint64_t set;
    lines.words += slot * SEEN_LINE_WORDS;
    double fpp = seen_lines_survey(&lines, w->runs.slots, &set);
    *bits_set += set;
    return fpp;
}

static void window_measure(const seen_filter *f, seen_info *info)
{
    const struct window *w = peek(f);
    double fpp[SEEN_SLOTS_MAX];
    for (uint32_t i = 0; i < w->living; i++)
        fpp[i] = survey(w, slot_at(w, i), &info->bits_set);
    info->fpp_now = seen_fpp_combined(fpp, w->living);
}

static seen_status window_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    (void)into, (void)from, (void)op;
    return SEEN_UNSUPPORTED;
}

static bool same_slot(const struct window *a, uint32_t i,
                      const struct window *b, uint32_t j)
{
    const struct seen_lines *l = &a->runs.lines;
    uint64_t stride = (uint64_t)a->runs.slots * SEEN_LINE_WORDS;
    const uint64_t *x = l->words + i * SEEN_LINE_WORDS;
    const uint64_t *y = b->runs.lines.words + j * SEEN_LINE_WORDS;
    for (uint64_t at = 0; at < lines_in(l); at++)
        if (memcmp(x + at * stride, y + at * stride, SEEN_LINE_SIZE) != 0)
            return false;
    return true;
}

/* Generation by generation, whichever slots they are in. What has left may
 * have bits there until its slot is needed; nobody can tell. */
static bool window_equal(const seen_filter *f, const seen_filter *g)
{
    const struct window *a = peek(f), *b = peek(g);
    const seen_plan *p = &f->plan, *q = &g->plan;
    if (p->bits != q->bits || p->hashes != q->hashes ||
        p->generations != q->generations || p->last != q->last ||
        p->window_ms != q->window_ms || p->items != q->items ||
        a->now_ms != b->now_ms || a->living != b->living)
        return false;
    for (uint32_t newer = 0; newer < a->living; newer++) {
        uint32_t i = slot_at(a, newer), j = slot_at(b, newer);
        if (a->at[i].first != b->at[j].first ||
            a->at[i].newest != b->at[j].newest ||
            a->at[i].items != b->at[j].items || !same_slot(a, i, b, j))
            return false;
    }
    return true;
}

static void window_clear(seen_filter *f)
{
    seen_parts_clear(f);
    forget(self(f));
}

const struct seen_filter_ops seen_window_ops = {
    .kind = SEEN_WINDOW,
    .name = "window",
    .state_size = sizeof(struct window),
    .flags = SEEN_KEYED,
    .plan = window_plan,
    .plan_fpp = window_plan_fpp,
    .plan_read = window_plan_read,
    .shape = window_shape,
    .part = window_part,
    .place = window_place,
    .save_state = window_save_state,
    .load_state = window_load_state,
    .parts_ok = window_parts_ok,
    .maybe = window_maybe,
    .visit = window_visit,
    .add = window_add,
    .advance = window_advance,
    .prefetch = window_prefetch,
    .maybe_many = window_maybe_many,
    .maybe_many_at = window_maybe_many_at,
    .visit_many = window_visit_many,
    .merge = window_merge,
    .equal = window_equal,
    .clear = window_clear,
    .measure = window_measure,
};
