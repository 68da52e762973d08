/*
 * scalable.c - a Bloom filter that grows: no n needed, the rate is kept anyway.
 *
 * A Bloom filter cannot be resized: who a bit belongs to is not known. So a
 * second one is opened when the first is full, then a third, each larger than
 * the one before (Almeida, Baquero, Preguica, Hutchison: Scalable Bloom
 * Filters, 2007). A question goes to all of them, and is answered wrongly if
 * one of them is wrong, so each gets a share of the promised rate p and the
 * shares of all layers there could ever be add up to 1:
 *
 *     how many keys come is not known (spec.items is 0: x = 65,536; or a guess):
 *     layer             0     1     2     3     4     5      6     7    ...
 *     keys              1x    3x   12x   48x   64x   96x   168x  294x  ...
 *     all together      1x    4x   16x   64x  128x  224x   392x  686x  x1.75
 *     share, of 13      1     1     1     2     2    1.5   1.1   0.8   x0.75
 *
 *     sized: spec.items says x keys, and x is meant:
 *     layer             0     1     2     3     4     5      6     7    ...
 *     keys              1x   1.2x  2.6x  5.8x   13x   28x   62x   85x  ...
 *     all together      1x   2.2x  4.8x   11x   23x   52x  113x  198x  x1.75
 *     share, of 90      72    1     1     1     1     2     3    2.3   x0.75
 *
 * A layer is an array of 512-bit lines as in blocked.c, with one line for a key,
 * or two where that saves a sixth of the memory. A key that no layer has is added
 * to the newest; before that goes beyond its capacity, the next one is opened.
 *
 * Worked example: p = 1 %, nothing else known. The first layer keeps 1/13 % for
 * 65,536 keys with 2111 lines, 16.5 bits a key instead of the 10.1 of a filter that
 * need not think of later layers. With 8.4 million keys there are five full layers
 * of 15.5 MB, 14.8 bits a key; their rates add up to 7/13 of 1 %. The next key
 * opens the sixth: 26.2 bits a key, until that one fills. Had spec.items said
 * 8 million, there would be one layer that keeps 0.8 %: 10.6 bits a key.
 *
 * What the schedule costs. Shares are like code lengths: to keep 1/13 of the
 * rate takes log2(13) more halvings of it, 1.5 bits each, and no schedule
 * escapes that for all sizes at once (Pagh, Segev, Wieder 2013: about log log n
 * bits a key for not knowing n). One can choose where to pay. Bits a key over
 * those of a blocked filter that knew n (plan/sizing.c; full = before a layer
 * is opened, grown = after), at the first such moment past 127x:
 *
 *                                 layers     1 %          0.1 %     at 10,000x
 *                                        full  grown   full  grown  full, 1 %
 *     doubling, shares 1/2^i        7    1.94   4.16   1.56   3.34     3.07
 *     doubling, r = 0.8             7    1.69   3.52   1.34   2.76     1.96
 *     doubling, r = 7/8             7    1.69   3.47   1.35   2.74     1.99
 *     doubling, r = 0.9             7    1.71   3.51   1.36   2.75     1.95
 *     doubling, 1/24 each           7    1.82   3.66   1.40   2.82     1.82
 *     doubling, most at layer 7     7    1.54   2.98   1.28   2.51     1.92
 *     x 1.5, r = 0.9               11    1.82   2.79   1.40   2.13     1.95
 *     x 4, r = 0.8                  5    1.59   6.64   1.30   5.33     1.80
 *     this one                      5    1.46   2.60   1.42   2.51     2.04
 *     this one, two lines sooner    5    1.46   2.60   1.24   2.19     1.88
 *
 * (r: the share of a layer is r times that of the one before.) Growing fast
 * while small saves layers, which cost rate and time for good, at a moment when
 * memory is cheap; growing slowly later keeps the jump small. The price: right
 * after the first three growths, at 1x, 4x and 16x, six times the bits of a
 * filter that knew n. The last row would be smaller at 0.1 % but read two lines
 * for a key that is there.
 *
 * Sized. Whoever says how many keys come is nearly always right, so the first
 * layer has four fifths of the rate, and growing is for those who were wrong: it
 * must not cost much then either. Bits a key over those of a blocked filter that
 * knew n, at the moment of n keys, whatever room is left (s: the first share;
 * "mean": over the logarithm of n from 1x to 1000x; layers at 100x):
 *
 *     at 1 %                        layers    1x    2x    10x   100x   mean
 *     doubling, s = 1/2, r = 1/2       8     1.15  1.23  2.76   2.67   2.69
 *     doubling, s = 4/5, r = 0.8       8     1.05  1.44  3.11   2.61   2.73
 *     x 1.6, s = 4/5, most at 8       11     1.05  2.13  2.06   2.21   2.46
 *     doubling up to 64x, then x 1.75  8     1.05  1.55  3.19   2.23   2.69
 *     1, 2, 4, 12, 36, 110             6     1.05  1.55  2.37   2.11   3.04
 *     this one, sized                  7     1.05  1.76  2.09   2.22   2.81
 *     RedisBloom (classic bits)        7     1.09  1.78  2.12   2.30   2.48
 *
 *     at 0.1 %: this one 1.04, 1.48, 1.65, 1.68, mean 2.18;
 *               RedisBloom 1.01, 1.60, 1.82, 1.87, mean 2.06
 *
 * (RedisBloom's links are twice as large each, and keep half the rate of the one
 * before.) People guess wrong by round factors: 2.2 puts the growths a tenth behind
 * 2x, 10x and 100x. Four fifths of the rate and not three quarters, because layers
 * are whole lines: 1000 keys at 0.1 % take 32 of them, 16.4 bits a key; with 3/4
 * they would take 33.
 *
 * What else there is, computed or measured:
 * - Unfolding: a full layer is doubled by writing every line twice. Every key
 *   then counts twice: a layer that starts at half its lines holds 1.5 times
 *   its load at the end. 2.0 instead of 1.4 times the bits when full.
 * - Layers of fingerprints (cuckoo.c): 1.06 bits a halving instead of 1.5, so
 *   1.5 and 1.2 times the bits at 1 % and 0.1 %, but two lines a layer whatever
 *   the answer, lookups 3 to 4 times as long and adds that may fail.
 * - One table of fingerprints that give up a bit when it doubles (Taffy,
 *   InfiniFilter): one line a lookup. 27 to 34 bits a key at 0.2 % measured for
 *   Taffy cuckoo filters, 173 to 491 ns an add. A slot must hold the youngest
 *   fingerprint in full: 14.4 bits at 1 % after seven doublings, 17 bits a key
 *   at 85 % load and 34 after doubling, 1.7 and 3.4 times the presized filter.
 * - Writing all hashes to a log and rebuilding: 17.6 bits a key and one line a
 *   lookup at 0.1 %, if there is a disk for 8 bytes a key. That is not ours to
 *   decide; whoever has such a log builds a SEEN_BLOCKED from it.
 *
 * Asking. The layers are asked from the largest to the smallest, the newest
 * where the keys it has by now put it: half of the keys that are there are found
 * in the first, seven in eight in the first two. layers.c asks for a batch.
 *
 * Choose SEEN_BLOCKED where n is an upper bound: it is a twentieth smaller than a
 * sized filter that has not grown, and as fast; once that has grown, four to eight
 * times as fast for keys that are not there. Choose SEEN_SET where no wrong
 * "maybe" is wanted.
 *
 * The file is long because growing touches everything that a kind does: planning,
 * memory, saving, adding and merging all go by the same list of layers.
 */
#include "base/alloc.h"
#include "base/bytes.h"
#include "bits/bitmap.h"
#include "filter/filter.h"
#include "filter/layers.h"
#include "filter/lines.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define LAYERS_MAX     48 /* 2^41 times the first capacity; 2^39 if sized */
#define PIECE          SEEN_LAYERS_PIECE
#define FIRST_ITEMS    65536               /* where the spec does not say */
#define ITEMS_MAX      ((uint64_t)1 << 40) /* of all layers: the hash's share */
#define STATE_BYTES(n) (8 + (size_t)32 * (n))

struct layer {
    uint64_t capacity; /* a new layer when it holds so many */
    uint64_t items;    /* adds that changed it */
};

/* Most filters that are sized have one layer, and many filters are small, so the
 * first lies in the filter itself, and a block of its own is for those who outgrow
 * that. */
struct scalable {
    seen_filter common; /* .items: of all layers */
    const struct seen_kernel *kernel;
    uint32_t n, room; /* layers, and places for them */
    struct seen_lines
        *lines; /* their bits, oldest first; behind as many places,
                                 what else there is to each: layers() */
    struct seen_lines first_lines;
    struct layer first_layer;
};

static_assert(sizeof(struct scalable) <= 256, "small filters stay small");

static struct scalable *self(seen_filter *f)
{
    return (struct scalable *)f;
}

static const struct scalable *peek(const seen_filter *f)
{
    return (const struct scalable *)f;
}

static struct layer *layers(const struct scalable *s)
{
    return s->room == 1 ? (struct layer *)(uintptr_t)&s->first_layer
                        : (struct layer *)(void *)(s->lines + s->room);
}

/* ---- The schedule ------------------------------------------------------- */

/*
 * What layer i has: its share of the promised rate, as parts of `whole`, and how
 * many twentieths of the keys before it all layers up to it hold. Behind the last
 * one named, 3/4 of the share before and 1.75 times the keys: that adds 3 more of
 * the last share, so that the sum over all layers there could be is 1.
 */
struct schedule {
    uint32_t whole, named;
    uint8_t share[7], twentieths[7];
};

static const struct schedule schedules[] = {
    {13, 5, {1, 1, 1, 2, 2}, {20, 80, 80, 80, 40}},
    {90, 7, {72, 1, 1, 1, 1, 2, 3}, {20, 44, 44, 44, 44, 44, 44}}};

static const struct schedule *schedule_of(const seen_plan *plan)
{
    return &schedules[plan->sized ? 1 : 0];
}

static double share_of(const seen_plan *plan, uint32_t i)
{
    const struct schedule *s = schedule_of(plan);
    double times = 1;
    for (; i >= s->named; i--)
        times *= 0.75;
    return times * s->share[i] / s->whole;
}

/* Keys of layer i > 0, behind layers for `total`. */
static uint64_t next_capacity(const seen_plan *plan, uint32_t i, uint64_t total)
{
    const struct schedule *s = schedule_of(plan);
    uint64_t wanted =
        total * ((i < s->named ? s->twentieths[i] : 35) - 20) / 20;
    if (wanted == 0) wanted = 1;
    return seen_min64(wanted, ITEMS_MAX - total);
}

static uint64_t lines_in(const struct seen_line_layout *l)
{
    return l->count * l->regions;
}

/* The lines of layer i for so many keys. One more line for each key must save
 * a tenth of the memory here: a chain asks more lines than one filter. */
static bool layout_for(const seen_plan *plan, uint32_t i, uint64_t capacity,
                       struct seen_line_layout *best)
{
    double spare = seen_hash_fpp((double)ITEMS_MAX, plan->hash_bits);
    double fpp = (plan->fpp - spare) * share_of(plan, i);
    return seen_line_layout_paying(capacity, fpp, SEEN_SAVES_TENTH, 8, best);
}

static struct seen_line_layout layout_of(const seen_plan *plan)
{
    struct seen_line_layout l = {.regions = plan->hashes / 8, .per_line = 8};
    l.count = plan->bits / SEEN_LINE_BITS / l.regions;
    return l;
}

/* ---- Plan --------------------------------------------------------------- */

static double layout_fpp(const struct seen_line_layout *l, uint64_t items)
{
    return seen_fpp_blocked(items, lines_in(l), l->regions, 8);
}

static double scalable_plan_fpp(const seen_plan *plan, uint64_t items)
{
    double rates[LAYERS_MAX];
    uint64_t capacity = plan->items, total = 0;
    struct seen_line_layout l = layout_of(plan);
    for (uint32_t i = 0; i < LAYERS_MAX; i++) {
        uint64_t here = seen_min64(items - total, capacity);
        rates[i] = layout_fpp(&l, here);
        total += here;
        if (total == items)
            return fmin(1, seen_fpp_combined(rates, i + 1) +
                               seen_hash_fpp((double)items, plan->hash_bits));
        capacity = next_capacity(plan, i + 1, total);
        if (capacity == 0 || !layout_for(plan, i + 1, capacity, &l)) break;
    }
    return NAN;
}

static void cost(seen_plan *plan)
{
    plan->lines = plan->hashes / 8;
    plan->bytes = plan->bits / 8 + sizeof(struct scalable);
}

static seen_status scalable_plan(const seen_spec *spec, seen_plan *plan,
                                 seen_error *e)
{
    if (spec->bits || spec->hashes)
        return seen_fail(e, SEEN_INVALID, spec->bits ? "bits" : "hashes",
                         "%s: not for a scalable filter, which grows with its "
                         "keys: leave it out",
                         spec->bits ? "bits" : "hashes");
    if (!(spec->fpp > 0))
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp: expected a rate above 0 and below 1, which a "
                         "scalable filter keeps");
    if (spec->items > ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": expected at most 2^40 in a scalable filter",
                         spec->items);
    plan->hash_bits = seen_hash_bits_for((double)ITEMS_MAX, spec->fpp, spec);
    if (!plan->hash_bits)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: below what a 128-bit hash can keep: expected "
                         "at least 2^-77 in a scalable filter",
                         spec->fpp);

    plan->items = spec->items ? spec->items : FIRST_ITEMS;
    plan->sized = spec->items > 0 && !(spec->flags & SEEN_GUESS);
    plan->fpp = spec->fpp;
    struct seen_line_layout l;
    if (!layout_for(plan, 0, plan->items, &l))
        return seen_spec_too_large(spec, e);
    if (l.count > UINT32_MAX) plan->hash_bits = 128;
    plan->hashes = 8 * l.regions;
    plan->bits = lines_in(&l) * SEEN_LINE_BITS;
    cost(plan);
    return SEEN_OK;
}

/* Could these be the lines of a layer? */
static bool lines_ok(uint64_t count, uint64_t regions, uint32_t hash_bits)
{
    return regions >= 1 && regions <= SEEN_MAX_REGIONS && count >= 1 &&
           count <= SEEN_MAX_BITS / SEEN_LINE_BITS / regions &&
           (hash_bits == 128 || count <= UINT32_MAX);
}

static bool scalable_plan_read(seen_plan *plan)
{
    if (plan->hashes < 8 || plan->hashes % 8 || plan->width != 0 ||
        plan->items == 0 || plan->items > ITEMS_MAX ||
        !(plan->fpp > 0 && plan->fpp < 1) ||
        1000 * seen_hash_fpp((double)ITEMS_MAX, plan->hash_bits) > plan->fpp)
        return false;
    struct seen_line_layout l = layout_of(plan);
    if (!lines_ok(l.count, l.regions, plan->hash_bits) ||
        plan->bits != lines_in(&l) * SEEN_LINE_BITS)
        return false;
    cost(plan);
    return true;
}

/* ---- Layers ------------------------------------------------------------- */

static uint64_t lines_bytes(const struct seen_lines *l)
{
    return l->count * l->regions * SEEN_LINE_SIZE;
}

static uint64_t lines_bits(const struct seen_lines *l)
{
    return lines_bytes(l) * 8;
}

static struct seen_lines lines_from(const seen_filter *f,
                                    const struct seen_line_layout *layout)
{
    struct seen_lines l = {.count = layout->count,
                           .regions = layout->regions,
                           .log_w = 3,
                           .wide = f->hash->bits == 128};
    l.ring = lines_bytes(&l) > SEEN_RING_FROM_BYTES;
    return l;
}

static uint32_t room_for(uint32_t n)
{
    if (n <= 1) return 1;
    uint32_t room = 4;
    while (room < n)
        room *= 2;
    return room;
}

static uint64_t rows_bytes(uint32_t room)
{
    return room > 1 ? room * (sizeof(struct layer) + sizeof(struct seen_lines))
                    : 0;
}

/* As if there were no more room than the layers need: after a layer for which
 * there was no memory everything is as it was. */
static uint64_t total_bytes(const struct scalable *s)
{
    uint64_t sum = sizeof *s + rows_bytes(room_for(s->n));
    for (uint32_t i = 0; i < s->n; i++)
        sum += lines_bytes(&s->lines[i]);
    return sum;
}

static uint64_t total_capacity(const struct scalable *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += layers(s)[i].capacity;
    return sum;
}

static uint64_t newest_room(const struct scalable *s)
{
    const struct layer *newest = &layers(s)[s->n - 1];
    return newest->items < newest->capacity ? newest->capacity - newest->items
                                            : 0;
}

/* Memory for `lines`, while `given_up` bytes of the old will go. */
static seen_status get_words(seen_filter *f, struct seen_lines *lines,
                             uint64_t given_up)
{
    const struct scalable *s = self(f);
    uint64_t bytes = lines_bytes(lines), rows = rows_bytes(room_for(s->n + 1));
    rows -= rows_bytes(room_for(s->n));
    if (f->limit && total_bytes(s) - given_up + rows + bytes > f->limit)
        return SEEN_FULL;
    lines->words = seen_alloc_zeroed(&f->allocator, bytes);
    return lines->words ? SEEN_OK : SEEN_NOMEM;
}

/* The lines of layer i; with 64-bit hashes 2^32 at most, so maybe for fewer
 * keys than wanted. */
static bool plan_layer(const seen_filter *f, const seen_plan *plan, uint32_t i,
                       uint64_t *capacity, struct seen_lines *lines)
{
    struct seen_line_layout l;
    for (; *capacity > 0; *capacity /= 2) {
        if (!layout_for(plan, i, *capacity, &l)) return false;
        if (f->hash->bits == 128 || l.count <= UINT32_MAX) {
            *lines = lines_from(f, &l);
            return true;
        }
    }
    return false;
}

static void use_first(struct scalable *s)
{
    s->room = 1;
    s->lines = &s->first_lines;
}

static void scalable_disown(seen_filter *f)
{
    struct scalable *s = self(f);
    if (s->room > 1)
        seen_release_small(&f->allocator, s->lines, rows_bytes(s->room));
    use_first(s);
}

/* Places for n layers; those that are there stay. */
static seen_status make_room(seen_filter *f, uint32_t n)
{
    struct scalable *s = self(f);
    if (n <= s->room) return SEEN_OK;
    uint32_t room = room_for(n);
    struct seen_lines *lines =
        seen_alloc_small(&f->allocator, rows_bytes(room));
    if (!lines) return SEEN_NOMEM;
    memcpy(lines, s->lines, s->n * sizeof *lines);
    memcpy(lines + room, layers(s), s->n * sizeof(struct layer));
    scalable_disown(f);
    s->room = room;
    s->lines = lines;
    return SEEN_OK;
}

/* One layer needs no block. */
static void drop_room(seen_filter *f)
{
    struct scalable *s = self(f);
    if (s->n > 1 || s->room == 1) return;
    s->first_lines = s->lines[0];
    s->first_layer = layers(s)[0];
    scalable_disown(f);
}

static seen_status open_layer(seen_filter *f, uint64_t capacity)
{
    struct scalable *s = self(f);
    struct seen_lines lines;
    if (s->n == LAYERS_MAX ||
        !plan_layer(f, &f->plan, s->n, &capacity, &lines) ||
        total_bytes(s) + lines_bytes(&lines) > SEEN_MAX_BITS / 8)
        return SEEN_FULL;
    seen_status status = make_room(f, s->n + 1);
    if (status == SEEN_OK) status = get_words(f, &lines, 0);
    if (status != SEEN_OK) {
        drop_room(f);
        return status;
    }
    s->lines[s->n] = lines;
    layers(s)[s->n] = (struct layer){.capacity = capacity};
    s->n++;
    return SEEN_OK;
}

static seen_status grow(seen_filter *f)
{
    const struct scalable *s = self(f);
    return open_layer(f, next_capacity(&f->plan, s->n, total_capacity(s)));
}

/* The first layer is what the plan says, also in a file. */
static void plan_first(seen_plan *plan, uint64_t capacity,
                       const struct seen_lines *lines)
{
    plan->items = capacity;
    plan->sized = 1;
    plan->hashes = 8 * lines->regions;
    plan->bits = lines_bits(lines);
    cost(plan);
}

/* The newest layer is still empty: another in its place. If it is the first, the
 * capacity has now been named. */
static seen_status replace_newest(seen_filter *f, uint64_t capacity)
{
    struct scalable *s = self(f);
    struct seen_lines lines, *old = &s->lines[s->n - 1];
    seen_plan plan = f->plan;
    if (s->n == 1) plan.sized = 1;
    if (!plan_layer(f, &plan, s->n - 1, &capacity, &lines)) return SEEN_FULL;
    seen_status status = get_words(f, &lines, lines_bytes(old));
    if (status != SEEN_OK) return status;
    seen_release(&f->allocator, old->words, lines_bytes(old));
    *old = lines;
    layers(s)[s->n - 1].capacity = capacity;
    if (s->n == 1) plan_first(&f->plan, capacity, &lines);
    return SEEN_OK;
}

static seen_status scalable_reserve(seen_filter *f, uint64_t items)
{
    const struct scalable *s = self(f);
    if (items > ITEMS_MAX) return SEEN_INVALID;
    if (items <= f->items || items - f->items <= newest_room(s)) return SEEN_OK;
    uint64_t need = items - f->items, total = total_capacity(s);
    const struct layer *newest = &layers(s)[s->n - 1];
    if (newest->items == 0)
        return total - newest->capacity + need > ITEMS_MAX
                   ? SEEN_FULL
                   : replace_newest(f, need);
    if (total + need > ITEMS_MAX) return SEEN_FULL;
    uint64_t next = next_capacity(&f->plan, s->n, total);
    return open_layer(f, need > next ? need : next);
}

/* ---- Life --------------------------------------------------------------- */

static void scalable_shape(seen_filter *f)
{
    struct scalable *s = self(f);
    struct seen_line_layout l = layout_of(&f->plan);
    use_first(s);
    s->n = 1;
    s->lines[0] = lines_from(f, &l);
    layers(s)[0] = (struct layer){.capacity = f->plan.items};
    s->kernel = seen_kernel_best();
}

static seen_status scalable_own(seen_filter *f)
{
    struct scalable *s = self(f);
    const struct scalable other = *s; /* of which these bytes are a copy */
    use_first(s);
    if (other.room == 1) return SEEN_OK;
    s->n = 0;
    seen_status status = make_room(f, other.n);
    if (status != SEEN_OK) return status;
    memcpy(s->lines, other.lines, other.n * sizeof *s->lines);
    memcpy(layers(s), layers(&other), other.n * sizeof(struct layer));
    s->n = other.n;
    return SEEN_OK;
}

static bool scalable_part(const seen_filter *f, uint32_t index,
                          struct seen_part *part)
{
    const struct scalable *s = peek(f);
    if (index >= s->n) return false;
    *part = (struct seen_part){s->lines[index].words,
                               lines_bytes(&s->lines[index]), true};
    return true;
}

static void scalable_place(seen_filter *f, uint32_t index, void *at)
{
    self(f)->lines[index].words = at;
}

/*
 * How many layers, and by which schedule, then for each, oldest first, four 64-bit
 * numbers:
 *
 *     0   4   layers, 1 .. 48
 *     4   4   1: sized; 0: not
 *     8   8   capacity of layer 0
 *     16  8   items
 *     24  8   lines of a region
 *     32  8   regions
 *     40  8   capacity of layer 1 ...
 */
static size_t scalable_save_state(const seen_filter *f, uint8_t *to)
{
    const struct scalable *s = peek(f);
    seen_put_le32(to, s->n);
    seen_put_le32(to + 4, f->plan.sized);
    to += 8;
    for (uint32_t i = 0; i < s->n; i++, to += 32) {
        seen_put_le64(to, layers(s)[i].capacity);
        seen_put_le64(to + 8, layers(s)[i].items);
        seen_put_le64(to + 16, s->lines[i].count);
        seen_put_le64(to + 24, s->lines[i].regions);
    }
    return STATE_BYTES(s->n);
}

/* Is the first layer that of the plan? */
static bool first_ok(const seen_filter *f)
{
    const struct scalable *s = peek(f);
    return layers(s)[0].capacity == f->plan.items &&
           8 * s->lines[0].regions == f->plan.hashes &&
           lines_bits(&s->lines[0]) == f->plan.bits;
}

/* Nothing may come of it that open_layer() would not have made: sums of sizes
 * that fit, and a capacity at which the layer keeps its share (1 % is for
 * another machine's logarithms). */
static seen_status scalable_load_state(seen_filter *f, const uint8_t *from,
                                       size_t len)
{
    struct scalable *s = self(f);
    if (len < 8) return SEEN_CORRUPT;
    const uint32_t n = seen_get_le32(from), sized = seen_get_le32(from + 4);
    uint64_t bits = 0, total = 0, items = 0;
    if (n < 1 || n > LAYERS_MAX || sized > 1 || len != STATE_BYTES(n))
        return SEEN_CORRUPT;
    f->plan.sized = sized;
    seen_status status = make_room(f, n);
    if (status != SEEN_OK) return status;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *at = from + STATE_BYTES(i);
        struct layer layer = {seen_get_le64(at), seen_get_le64(at + 8)};
        uint64_t count = seen_get_le64(at + 16),
                 regions = seen_get_le64(at + 24);
        if (layer.capacity < 1 || layer.capacity > ITEMS_MAX ||
            layer.items > ITEMS_MAX ||
            !lines_ok(count, regions, (uint32_t)f->hash->bits))
            return SEEN_CORRUPT;
        struct seen_line_layout l = {count, (uint32_t)regions, 8};
        if (layout_fpp(&l, layer.capacity) >
            1.01 * f->plan.fpp * share_of(&f->plan, i))
            return SEEN_CORRUPT;
        s->lines[i] = lines_from(f, &l);
        layers(s)[i] = layer;
        bits += lines_bits(&s->lines[i]);
        total += layer.capacity;
        items += layer.items;
    }
    s->n = n;
    bool right = bits <= SEEN_MAX_BITS && total <= ITEMS_MAX &&
                 items == f->items && first_ok(f);
    return right ? SEEN_OK : SEEN_CORRUPT;
}

/* ---- Questions ---------------------------------------------------------- */

static bool in_layers(const struct scalable *s, uint32_t n, seen_hash h)
{
    while (n > 0)
        if (s->kernel->maybe(&s->lines[--n], h)) return true;
    return false;
}

static bool scalable_maybe(const seen_filter *f, seen_hash h)
{
    return in_layers(peek(f), peek(f)->n, h);
}

/*
 * The layers in the order of asking, the first last. That is the order of their
 * sizes, and the newest is the largest, but right after it was opened it is
 * empty: it goes where the keys it has by now put it.
 */
static void order_of_asking(const struct scalable *s, struct seen_lines *chain)
{
    uint32_t at = s->n - 1;
    memcpy(chain, s->lines, at * sizeof *chain);
    for (; at > 0 && layers(s)[at - 1].items > layers(s)[s->n - 1].items; at--)
        chain[at] = chain[at - 1];
    chain[at] = s->lines[s->n - 1];
}

static void prefetch_some(const struct seen_lines *b, const seen_hash *h,
                          size_t n)
{
    for (size_t i = 0; b->ring && i < n && i < SEEN_RING; i++)
        seen_shape_prefetch(b, h[i], seen_shape_of(b));
}

/* Only where there is one layer: otherwise each piece prefetches for itself, since
 * a stream that goes through several has no use for its first lines alone. */
static void scalable_prefetch(const seen_filter *f, const seen_hash *h,
                              size_t n)
{
    if (peek(f)->n == 1) prefetch_some(&peek(f)->lines[0], h, n);
}

static void scalable_maybe_many(const seen_filter *f, const seen_hash *h,
                                size_t n, size_t ahead, bool *answers)
{
    const struct scalable *s = peek(f);
    struct seen_lines chain[LAYERS_MAX];
    if (s->n == 1) {
        s->kernel->maybe_many(&s->lines[0], h, n, ahead, answers);
        return;
    }
    order_of_asking(s, chain);
    for (size_t i = 0; i < n; i += PIECE)
        seen_layers_ask(s->kernel, chain, s->n, h + i,
                        seen_min_size(n - i, PIECE), answers + i);
}

/* ---- Adds --------------------------------------------------------------- */

static void count_new(seen_filter *f, uint64_t n)
{
    struct scalable *s = self(f);
    layers(s)[s->n - 1].items += n;
    f->items += n;
}

static seen_status scalable_visit(seen_filter *f, seen_hash h, bool *before)
{
    struct scalable *s = self(f);
    if (in_layers(s, s->n - 1, h)) {
        *before = true;
        return SEEN_OK;
    }
    if (newest_room(s) == 0) {
        if (s->kernel->maybe(&s->lines[s->n - 1], h)) {
            *before = true;
            return SEEN_OK;
        }
        seen_status status = grow(f);
        if (status != SEEN_OK) return status;
    }
    *before = s->kernel->visit(&s->lines[s->n - 1], h);
    count_new(f, !*before);
    return SEEN_OK;
}

/*
 * Keys that no older layer has, in order, into the newest, until all are in or
 * one needs a new layer: *done of n. `was` says what it had.
 */
static seen_status fill_newest(seen_filter *f, const seen_hash *h, size_t n,
                               bool *was, size_t *done)
{
    struct scalable *s = self(f);
    struct seen_lines *newest = &s->lines[s->n - 1];
    prefetch_some(newest, h, n);
    for (*done = 0; *done < n;) {
        size_t at = *done, room = (size_t)seen_min64(newest_room(s), n - at);
        if (room > 0) {
            count_new(f, s->kernel->visit_many(newest, h + at, room,
                                               n - at - room, was + at));
            *done += room;
        } else if (s->kernel->maybe(newest, h[at])) {
            was[at] = true;
            *done += 1;
        } else {
            return grow(f);
        }
    }
    return SEEN_OK;
}

/* n <= PIECE. A new layer ends it early: the rest must be asked
 * again, since the layer that was the newest has changed. */
static seen_status visit_piece(seen_filter *f, const seen_hash *h, size_t n,
                               bool *before, size_t *done)
{
    const struct scalable *s = self(f);
    seen_hash fresh[PIECE];
    uint16_t at[PIECE];
    bool was[PIECE];
    size_t waiting = 0, filled;
    seen_layers_ask(s->kernel, s->lines, s->n - 1, h, n, before);
    for (size_t i = 0; i < n; i++) {
        fresh[waiting] = h[i];
        at[waiting] = (uint16_t)i;
        waiting += !before[i];
    }
    seen_status status = fill_newest(f, fresh, waiting, was, &filled);
    for (size_t i = 0; i < filled; i++)
        before[at[i]] = was[i];
    *done = filled < waiting ? at[filled] : n;
    return status;
}

static seen_status scalable_visit_many(seen_filter *f, const seen_hash *h,
                                       size_t n, size_t ahead, bool *before,
                                       size_t *done)
{
    bool unwanted[PIECE];
    (void)ahead;
    seen_status status = SEEN_OK;
    size_t i = 0;
    while (i < n && status == SEEN_OK) {
        size_t now = seen_min_size(n - i, PIECE), took;
        status =
            visit_piece(f, h + i, now, before ? before + i : unwanted, &took);
        i += took;
    }
    *done = i;
    return status;
}

/* ---- Whole filters ------------------------------------------------------ */

static bool same_layer(const struct scalable *a, const struct scalable *b,
                       uint32_t i)
{
    return layers(a)[i].capacity == layers(b)[i].capacity &&
           a->lines[i].count == b->lines[i].count &&
           a->lines[i].regions == b->lines[i].regions;
}

static uint64_t estimate(const struct seen_lines *l)
{
    double bits = (double)lines_bits(l);
    double set = (double)seen_bits_count(l->words, lines_bits(l) / 64);
    double n = seen_items_from_fill(set, bits, 8 * l->regions);
    return n < (double)ITEMS_MAX ? (uint64_t)(n + 0.5) : ITEMS_MAX;
}

/* Copies of the layers that only `from` has, or nothing. */
static seen_status take_over(seen_filter *into, const struct scalable *from)
{
    struct scalable *s = self(into);
    const uint32_t had = s->n;
    seen_status status = SEEN_OK;
    for (; s->n < from->n && status == SEEN_OK; s->n += status == SEEN_OK) {
        struct seen_lines lines = from->lines[s->n];
        status = make_room(into, s->n + 1);
        if (status == SEEN_OK) status = get_words(into, &lines, 0);
        if (status != SEEN_OK) break;
        memcpy(lines.words, from->lines[s->n].words, lines_bytes(&lines));
        s->lines[s->n] = lines;
        layers(s)[s->n] = layers(from)[s->n];
    }
    while (status != SEEN_OK && s->n > had) {
        s->n--;
        seen_release(&into->allocator, s->lines[s->n].words,
                     lines_bytes(&s->lines[s->n]));
    }
    drop_room(into);
    return status;
}

/*
 * Layer by layer: each then holds the keys of both, which may be more than its
 * capacity, and the rate is what seen_measure() says. A key may lie in another
 * layer there than here, so an intersection would lose it.
 */
static seen_status scalable_merge(seen_filter *into, const seen_filter *from,
                                  seen_merge_op op)
{
    struct scalable *a = self(into);
    const struct scalable *b = peek(from);
    if (op != SEEN_UNION) return SEEN_UNSUPPORTED;
    if (into->plan.fpp != from->plan.fpp ||
        into->plan.sized != from->plan.sized)
        return SEEN_MISMATCH;
    const uint32_t common = a->n < b->n ? a->n : b->n;
    for (uint32_t i = 0; i < common; i++)
        if (!same_layer(a, b, i)) return SEEN_MISMATCH;

    seen_status status = take_over(into, b);
    if (status != SEEN_OK) return status;
    for (uint32_t i = 0; i < common; i++) {
        seen_bits_or(a->lines[i].words, b->lines[i].words,
                     lines_bits(&a->lines[i]) / 64);
        layers(a)[i].items = estimate(&a->lines[i]);
    }
    into->items = 0;
    for (uint32_t i = 0; i < a->n; i++)
        into->items += layers(a)[i].items;
    return SEEN_OK;
}

/* Layers up to the last that holds a key: one that was opened and not used
 * says nothing about the keys. */
static uint32_t used_layers(const struct scalable *s)
{
    uint32_t n = s->n;
    while (n > 0 && layers(s)[n - 1].items == 0)
        n--;
    return n;
}

static bool scalable_equal(const seen_filter *f, const seen_filter *g)
{
    const struct scalable *a = peek(f), *b = peek(g);
    const uint32_t n = used_layers(a);
    if (f->plan.fpp != g->plan.fpp || n != used_layers(b) ||
        (n > 0 && f->plan.sized != g->plan.sized))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!same_layer(a, b, i) ||
            !seen_bits_equal(a->lines[i].words, b->lines[i].words,
                             lines_bits(&a->lines[i]) / 64))
            return false;
    return true;
}

static void scalable_clear(seen_filter *f)
{
    struct scalable *s = self(f);
    while (s->n > 1) {
        s->n--;
        seen_release(&f->allocator, s->lines[s->n].words,
                     lines_bytes(&s->lines[s->n]));
    }
    drop_room(f);
    layers(s)[0].items = 0;
    seen_parts_clear(f);
}

static void scalable_info(const seen_filter *f, seen_info *info)
{
    const struct scalable *s = peek(f);
    uint32_t regions = 0;
    info->bits = info->capacity = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        info->bits += lines_bits(&s->lines[i]);
        info->capacity += layers(s)[i].capacity;
        if (s->lines[i].regions > regions) regions = s->lines[i].regions;
    }
    info->grows = true;
    info->layers = s->n;
    info->hashes = 8 * s->lines[s->n - 1].regions;
    info->lines = s->n - 1 + regions;
    info->bytes = total_bytes(s);
}

static void scalable_measure(const seen_filter *f, seen_info *info)
{
    const struct scalable *s = peek(f);
    double rates[LAYERS_MAX];
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t set;
        rates[i] = seen_lines_survey(&s->lines[i], 1, &set);
        info->bits_set += set;
    }
    info->fpp_now = seen_fpp_combined(rates, s->n);
}

const struct seen_filter_ops seen_scalable_ops = {
    .kind = SEEN_SCALABLE,
    .name = "scalable",
    .state_size = sizeof(struct scalable),
    .flags = SEEN_KEYED | SEEN_GUESS,
    .plan = scalable_plan,
    .plan_fpp = scalable_plan_fpp,
    .plan_read = scalable_plan_read,
    .shape = scalable_shape,
    .part = scalable_part,
    .place = scalable_place,
    .save_state = scalable_save_state,
    .load_state = scalable_load_state,
    .own = scalable_own,
    .disown = scalable_disown,
    .maybe = scalable_maybe,
    .visit = scalable_visit,
    .prefetch = scalable_prefetch,
    .maybe_many = scalable_maybe_many,
    .visit_many = scalable_visit_many,
    .reserve = scalable_reserve,
    .merge = scalable_merge,
    .equal = scalable_equal,
    .clear = scalable_clear,
    .info = scalable_info,
    .measure = scalable_measure,
};
