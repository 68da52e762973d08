/*
 * ribbon.c - the smallest filter: built once from all keys, never changed.
 *
 * Every key has a fingerprint of r bits and an equation over 64 neighbouring slots
 * of r bits, and the slots are the solution of all equations: bits/ribbon.h has the
 * picture. A stranger meets its fingerprint by chance, 1 in 2^r. A slot for each
 * key is enough, r bits a key, which is the limit for that rate: what is lost is
 * half a percent.
 *
 * Nobody can find exactly as many slots as keys a solution for, so a layer gets
 * three percent fewer slots than keys, and the keys that stay without one, three
 * percent as well, are bumped to the next layer, and those of that to a third:
 *
 *     layer 0   1,000,000 keys    970,873 slots    bumps 31,000
 *     layer 1      31,000          30,097          bumps    970
 *     layer 2         970             992          bumps      0
 *
 * A layer of less than 1500 keys would lose more on its ends than it wins. It gets
 * two percent more slots than keys, and a new seed until it bumps none, which
 * takes two attempts at most times. What eight layers have bumped, or what takes
 * more bytes as a layer than as a list of hashes, is listed: so every set of
 * different hashes has a filter, however it was chosen, and a build fails for want
 * of memory only.
 *
 *     | layer 0 | layer 1 | ... | list |       each a part by itself
 *
 * Worked example: one million keys at 1 %: r = 7, 0.78 %, 7.03 bits a key. At
 * 0.1 %: r = 10, 0.098 %, 10.04 bits. A set of 1000 takes 7.2 and 10.4 bits a key,
 * one of 100 takes 8.0 and 12.1.
 *
 * Building goes through the hashes in ascending order, a segment at a time, in a
 * megabyte of memory and 8 bytes for every bumped key: they may be on a disk.
 *
 * Choose it for sets that do not change: block lists, tables on disk, filters that
 * are shipped. Questions cost about twice those of a blocked filter, most of it
 * arithmetic: the slots of a key are 70 (100) bytes in a row, two cache lines or
 * three, and the thresholds of buckets, half a bit for every 32 slots, are in the
 * cache.
 *
 * Compared with (bits a key at 1 % and at 0.1 %, one million keys):
 *
 *     ribbon, this one        7.03   10.04
 *     binary fuse, 3 places   7.9    11.3    three lines in three pages
 *     sorted                  8.6    12.0    smaller up to about 80 keys
 *     blocked                10.1    15.7    takes new keys
 */
#include "bits/ribbon.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "filter/filter.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define ITEMS_MAX ((uint64_t)1 << 40)
#define FEW       1500 /* keys of a layer that shall bump none */
#define TRIES     64   /* seeds for that; one in two does */

struct ribbon {
    seen_filter common; /* .items: different hashes; all of them, or none */
    struct seen_ribbon layers;
    const struct seen_ribbon_kernel *kernel;
};

static struct ribbon *self(seen_filter *f)
{
    return (struct ribbon *)f;
}

static const struct ribbon *peek(const seen_filter *f)
{
    return (const struct ribbon *)f;
}

/* ---- Plan --------------------------------------------------------------- */

/* Starts of a layer of so many keys. */
static uint64_t starts_for(uint64_t n)
{
    const uint64_t segment = SEEN_RIBBON_SEGMENT + SEEN_RIBBON_ROW;
    uint64_t slots = n < FEW ? (n * 50 + 48) / 49 : n / 103 * 100 + n % 103;
    uint64_t segments = (slots + segment - 1) / segment;
    uint64_t ends = segments * SEEN_RIBBON_ROW;
    uint64_t starts = slots > ends ? slots - ends : 1;
    return (starts + SEEN_RIBBON_GROUP - 1) / SEEN_RIBBON_GROUP *
           SEEN_RIBBON_GROUP;
}

/* Are so many keys listed rather than made a layer? */
static bool is_listed(uint64_t n, uint32_t width)
{
    return 8 * n <= seen_ribbon_bytes(starts_for(n), width);
}

/* How many a layer of n keys bumps at most, unless by a chance below 1e-6: 3.1 %,
 * some more at the end of the last segment, and six deviations, measured for all
 * sizes (tests/unit/test_ribbon.c). */
static uint64_t bumps_at_most(uint64_t n)
{
    return n < FEW ? 0 : (uint64_t)(0.0315 * (double)n + 30 + sqrt((double)n));
}

/* Bits of all parts. */
static uint64_t bits_for(uint64_t n, uint32_t width)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < SEEN_RIBBON_LAYERS_MAX && !is_listed(n, width);
         i++, n = bumps_at_most(n))
        bytes += seen_ribbon_bytes(starts_for(n), width);
    return 8 * (bytes + 8 * n);
}

static double rate_of(uint32_t width)
{
    return ldexp(1, -(int)width);
}

static double ribbon_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (items > plan->items) return NAN; /* made for its keys and no more */
    if (items == 0) return 0;
    double hash = seen_hash_fpp((double)items, 64);
    return is_listed(plan->items, plan->width) ? hash
                                               : rate_of(plan->width) + hash;
}

/* Most keys that so many bits hold. */
static uint64_t capacity_of(uint64_t bits, uint32_t width)
{
    uint64_t low = 0, high = seen_min64(bits, ITEMS_MAX) + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        *(bits_for(middle, width) <= bits ? &low : &high) = middle;
    }
    return low;
}

/* The slots of a key in one layer; the thresholds are in the cache. */
static void cost(seen_plan *plan)
{
    uint32_t bytes = 10 * plan->width;
    plan->lines = 1 + (bytes + SEEN_LINE_SIZE / 2) / SEEN_LINE_SIZE;
    plan->bytes = plan->bits / 8 + sizeof(struct ribbon);
}

static seen_status ribbon_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes > 1)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 1 in a ribbon filter",
                         spec->hashes);
    if (spec->items > ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": expected at most 2^40 in a ribbon filter",
                         spec->items);

    /* 1. The width, from the rate or from the bits there are. The hash takes
     * its share of the rate, more of it the more keys there are. */
    uint32_t width = 1;
    uint64_t n = spec->items;
    if (spec->fpp > 0) {
        for (; width <= SEEN_RIBBON_WIDTH_MAX; width++) {
            if (!spec->items) n = capacity_of(spec->bits, width);
            double whole = rate_of(width) + seen_hash_fpp((double)n, 64);
            if (whole <= spec->fpp) break;
        }
        if (width > SEEN_RIBBON_WIDTH_MAX)
            return seen_fail(e, SEEN_INVALID, "fpp",
                             "fpp %g: expected at least 2.4e-10 in a ribbon "
                             "filter, 32 bits a key",
                             spec->fpp);
    } else {
        width = SEEN_RIBBON_WIDTH_MAX;
        while (width > 1 && bits_for(n, width) > spec->bits)
            width--;
    }

    /* 2. Does it fit? */
    if (n == 0) return seen_spec_too_few(spec, e);
    if (spec->bits && bits_for(n, width) > spec->bits)
        return seen_spec_too_few(spec, e);

    /* 3. What it costs. */
    plan->width = width;
    plan->hashes = 1;
    plan->items = n;
    plan->bits = bits_for(n, width);
    plan->hash_bits = spec->flags & SEEN_KEYED ? 128 : 64;
    plan->fpp = ribbon_plan_fpp(plan, n);
    cost(plan);
    return SEEN_OK;
}

static bool ribbon_plan_read(seen_plan *plan)
{
    if (plan->width < 1 || plan->width > SEEN_RIBBON_WIDTH_MAX ||
        plan->hashes != 1 || plan->bits == 0 || plan->bits > SEEN_MAX_BITS ||
        plan->bits % 8 || plan->items == 0 || plan->items > ITEMS_MAX)
        return false;
    cost(plan);
    return true;
}

/* ---- Life --------------------------------------------------------------- */

/* A list that is empty is a part only where there would be none. */
static uint64_t list_bytes(const struct seen_ribbon *b)
{
    return b->listed ? 8 * b->listed : b->layers ? 0 : 8;
}

static uint64_t all_bytes(const struct seen_ribbon *b)
{
    uint64_t bytes = list_bytes(b);
    for (uint32_t i = 0; i < b->layers; i++)
        bytes += seen_ribbon_bytes(b->layer[i].starts, b->width);
    return bytes;
}

static void ribbon_shape(seen_filter *f)
{
    self(f)->layers = (struct seen_ribbon){.width = f->plan.width};
    self(f)->kernel = seen_ribbon_best();
}

static bool ribbon_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    const struct seen_ribbon *b = &peek(f)->layers;
    if (index < b->layers) {
        const struct seen_ribbon_layer *l = &b->layer[index];
        *part = (struct seen_part){
            l->groups, seen_ribbon_bytes(l->starts, b->width), false};
        return true;
    }
    *part = (struct seen_part){b->list, list_bytes(b), false};
    return index == b->layers && part->len > 0;
}

static void ribbon_place(seen_filter *f, uint32_t index, void *at)
{
    struct seen_ribbon *b = &self(f)->layers;
    if (index == b->layers) {
        b->list = at;
        return;
    }
    struct seen_ribbon_layer *l = &b->layer[index];
    l->groups = at;
    l->thresholds =
        at ? l->groups + seen_ribbon_group_bytes(l->starts, b->width) : NULL;
    b->ring =
        seen_ribbon_bytes(b->layer[0].starts, b->width) > SEEN_RING_FROM_BYTES;
}

/* The number of hashes in the list, then starts and seed of each layer. */
static size_t ribbon_save_state(const seen_filter *f, uint8_t *to)
{
    const struct seen_ribbon *b = &peek(f)->layers;
    seen_put_le64(to, b->listed);
    for (uint32_t i = 0; i < b->layers; i++) {
        seen_put_le64(to + 8 + 16 * i, b->layer[i].starts);
        seen_put_le64(to + 16 + 16 * i, b->layer[i].seed);
    }
    return 8 + 16 * b->layers;
}

static seen_status ribbon_load_state(seen_filter *common, const uint8_t *from,
                                     size_t len)
{
    struct seen_ribbon *b = &self(common)->layers;
    if (len < 8 || len % 16 != 8 || len > 8 + 16 * SEEN_RIBBON_LAYERS_MAX)
        return SEEN_CORRUPT;
    b->layers = (uint32_t)(len / 16);
    b->listed = seen_get_le64(from);
    for (uint32_t i = 0; i < b->layers; i++) {
        struct seen_ribbon_layer *l = &b->layer[i];
        l->starts = seen_get_le64(from + 8 + 16 * i);
        l->seed = seen_get_le64(from + 16 + 16 * i);
        if (l->starts == 0 || l->starts > SEEN_RIBBON_STARTS_MAX ||
            l->starts % SEEN_RIBBON_GROUP)
            return SEEN_CORRUPT;
    }
    const seen_plan *plan = &common->plan;
    bool right = b->listed <= plan->items &&
                 (common->items == 0 || common->items == plan->items) &&
                 8 * all_bytes(b) == plan->bits;
    return right ? SEEN_OK : SEEN_CORRUPT;
}

static bool all_zero(const uint8_t *bytes, uint64_t n)
{
    uint8_t found = 0;
    for (uint64_t i = 0; i < n; i++)
        found |= bytes[i];
    return found == 0;
}

/* Behind the last threshold. */
static bool layer_ends_in_zeros(const struct seen_ribbon_layer *l,
                                uint32_t width)
{
    uint64_t buckets =
        (l->starts + SEEN_RIBBON_BUCKET - 1) / SEEN_RIBBON_BUCKET;
    const uint8_t *end = l->thresholds + seen_ribbon_threshold_bytes(l->starts);
    const uint8_t *all = l->groups + seen_ribbon_bytes(l->starts, width);
    return (buckets % 2 == 0 || end[-1] < 16) &&
           all_zero(end, (uint64_t)(all - end));
}

static bool ribbon_parts_ok(const seen_filter *f)
{
    const struct seen_ribbon *b = &peek(f)->layers;
    struct seen_part part;
    if (f->items == 0) {
        for (uint32_t i = 0; ribbon_part(f, i, &part); i++)
            if (!all_zero(part.at, part.len)) return false;
        return true;
    }
    for (uint32_t i = 0; i < b->layers; i++)
        if (!layer_ends_in_zeros(&b->layer[i], b->width)) return false;
    for (uint64_t i = 1; i < b->listed; i++)
        if (seen_get_le64(b->list + 8 * i) <=
            seen_get_le64(b->list + 8 * (i - 1)))
            return false;
    return true;
}

/* ---- Build -------------------------------------------------------------- */

/* An array that grows. */
struct hashes {
    uint64_t *at, n, room;
};

/* What a build needs beside the filter. */
struct building {
    struct ribbon *f;
    const seen_allocator *a;
    struct seen_ribbon_work *work;
    struct hashes
        left; /* what no layer has taken yet, as the last one hashed it,
                           in ascending order */
};

static seen_status make_room(const seen_allocator *a, struct hashes *h,
                             uint64_t more)
{
    if (more <= h->room - h->n) return SEEN_OK;
    uint64_t room = (h->n + more) * 3 / 2;
    uint64_t *larger = seen_alloc_zeroed(a, room * sizeof *larger);
    if (!larger) return SEEN_NOMEM;
    if (h->n) memcpy(larger, h->at, (size_t)h->n * sizeof *larger);
    seen_release(a, h->at, h->room * sizeof *larger);
    h->at = larger;
    h->room = room;
    return SEEN_OK;
}

static seen_status append(const seen_allocator *a, struct hashes *h,
                          const uint64_t *more, uint64_t n)
{
    if (n == 0) return SEEN_OK;
    seen_status status = make_room(a, h, n);
    if (status != SEEN_OK) return status;
    memcpy(h->at + h->n, more, (size_t)n * sizeof *more);
    h->n += n;
    return SEEN_OK;
}

/* The layer behind the last, for so many keys. */
static struct seen_ribbon_layer *open_layer(struct building *b, uint64_t keys)
{
    struct seen_ribbon *r = &b->f->layers;
    struct seen_ribbon_layer *l = &r->layer[r->layers];
    *l = (struct seen_ribbon_layer){.starts = starts_for(keys),
                                    .seed = r->layers > 0 ? SEEN_GOLDEN : 0};
    void *at = seen_alloc_zeroed(b->a, seen_ribbon_bytes(l->starts, r->width));
    if (!at) return NULL;
    ribbon_place(&b->f->common, r->layers++, at);
    return l;
}

/* How many of n ascending keys come before the end of a segment. */
static uint64_t keys_before(const struct seen_ribbon_layer *l,
                            const uint64_t *keys, uint64_t n, uint64_t segment)
{
    uint64_t end = (segment + 1) * SEEN_RIBBON_SEGMENT, low = 0, high = n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (seen_reduce(keys[middle], l->starts) < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t solve_segment(const struct building *b,
                              const struct seen_ribbon_layer *l,
                              uint64_t segment, const uint64_t *keys,
                              uint64_t n, uint64_t *bumped)
{
    return seen_ribbon_solve(b->f->kernel, l, b->f->layers.width, segment, keys,
                             n, bumped, b->work);
}

/* Hash all that is left for a layer and solve it; what it bumps is left. */
static void solve_left(struct building *b, const struct seen_ribbon_layer *l,
                       uint64_t *spare)
{
    uint64_t *keys = b->left.at, from = 0, out = 0;
    const uint64_t n = b->left.n;
    if (l->seed) { /* otherwise they stay as they came */
        for (uint64_t i = 0; i < n; i++)
            keys[i] = seen_ribbon_hash(l, keys[i]);
        seen_sort64(keys, spare, n);
    }
    for (uint64_t i = 0; i * SEEN_RIBBON_SEGMENT < l->starts; i++) {
        uint64_t now = keys_before(l, keys + from, n - from, i);
        out += solve_segment(b, l, i, keys + from, now, keys + out);
        from += now;
    }
    b->left.n = out;
}

/* A layer of few keys: try seeds until it bumps none, or all were tried. */
static seen_status add_few(struct building *b)
{
    uint64_t keys[FEW];
    const uint64_t n = b->left.n;
    struct seen_ribbon_layer *l = open_layer(b, n);
    if (!l) return SEEN_NOMEM;
    memcpy(keys, b->left.at, (size_t)n * sizeof *keys);
    for (uint32_t i = 0; i < TRIES && b->left.n > 0; i++) {
        if (i > 0) l->seed += SEEN_GOLDEN;
        memcpy(b->left.at, keys, (size_t)n * sizeof *keys);
        b->left.n = n;
        memset(l->thresholds, 0, seen_ribbon_threshold_bytes(l->starts));
        solve_left(b, l, b->work->row); /* which is not in use yet */
    }
    return SEEN_OK;
}

static seen_status add_many(struct building *b)
{
    const uint64_t bytes = b->left.n * sizeof *b->left.at;
    uint64_t *spare = seen_alloc_zeroed(b->a, bytes);
    struct seen_ribbon_layer *l = spare ? open_layer(b, b->left.n) : NULL;
    if (l) solve_left(b, l, spare);
    seen_release(b->a, spare, bytes);
    return l ? SEEN_OK : SEEN_NOMEM;
}

/* The hashes of a set, cut into segments. */
struct cut {
    struct seen_source *from;
    const uint64_t *run; /* what is left of the last run */
    uint64_t len, rest;  /* of it; of all hashes */
    struct hashes held;  /* the beginning of a segment, from earlier runs */
};

/* The keys of the next segment, side by side. */
static seen_status next_segment(const struct building *b, struct cut *c,
                                const struct seen_ribbon_layer *l,
                                uint64_t segment, const uint64_t **keys,
                                uint64_t *n)
{
    uint64_t now;
    c->held.n = 0;
    while ((now = keys_before(l, c->run, c->len, segment)) == c->len &&
           now < c->rest) { /* the segment may go on in the next run */
        seen_status status = append(b->a, &c->held, c->run, now);
        c->rest -= now;
        if (status == SEEN_OK)
            status = c->from->next(c->from, &c->run, &c->len);
        if (status != SEEN_OK) return status;
    }
    *keys = c->run;
    *n = now;
    if (c->held.n > 0) {
        seen_status status = append(b->a, &c->held, c->run, now);
        if (status != SEEN_OK) return status;
        *keys = c->held.at;
        *n = c->held.n;
    }
    c->run += now;
    c->len -= now;
    c->rest -= now;
    return SEEN_OK;
}

/* The first layer, from hashes that are somewhere else. */
static seen_status add_first(struct building *b, struct seen_source *from)
{
    struct cut c = {.from = from, .rest = from->n};
    struct seen_ribbon_layer *l = open_layer(b, from->n);
    if (!l) return SEEN_NOMEM;
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; i * SEEN_RIBBON_SEGMENT < l->starts; i++) {
        const uint64_t *keys;
        uint64_t n;
        status = next_segment(b, &c, l, i, &keys, &n);
        if (status == SEEN_OK) status = make_room(b->a, &b->left, n);
        if (status != SEEN_OK) break;
        b->left.n += solve_segment(b, l, i, keys, n, b->left.at + b->left.n);
    }
    seen_release(b->a, c.held.at, c.held.room * sizeof *c.held.at);
    return status;
}

/* Few hashes are brought here as they are. */
static seen_status take_all(struct building *b, struct seen_source *from)
{
    seen_status status = SEEN_OK;
    while (status == SEEN_OK && b->left.n < from->n) {
        const uint64_t *run;
        uint64_t n;
        status = from->next(from, &run, &n);
        if (status == SEEN_OK) status = append(b->a, &b->left, run, n);
    }
    return status;
}

static seen_status add_list(struct building *b)
{
    const uint64_t n = b->left.n;
    if (n == 0) return SEEN_OK;
    uint8_t *list = seen_alloc_zeroed(b->a, 8 * n);
    if (!list) return SEEN_NOMEM;
    for (uint64_t i = 0; i < n; i++)
        seen_put_le64(list + 8 * i, b->left.at[i]);
    b->f->layers.list = list;
    b->f->layers.listed = n;
    return SEEN_OK;
}

static seen_status add_all(struct building *b, struct seen_source *from)
{
    const struct seen_ribbon *r = &b->f->layers;
    seen_status status = from->n < FEW ? take_all(b, from) : add_first(b, from);
    while (status == SEEN_OK && r->layers < SEEN_RIBBON_LAYERS_MAX &&
           !is_listed(b->left.n, r->width))
        status = b->left.n < FEW ? add_few(b) : add_many(b);
    return status == SEEN_OK ? add_list(b) : status;
}

static seen_status ribbon_build(seen_filter *common, struct seen_source *from)
{
    struct ribbon *f = self(common);
    struct building b = {.f = f, .a = &common->allocator};
    b.work = seen_alloc_zeroed(b.a, sizeof *b.work);
    if (!b.work) return SEEN_NOMEM;
    seen_parts_close(common); /* the list of a filter of nothing */
    f->layers.list = NULL;
    seen_status status = add_all(&b, from);
    seen_release(b.a, b.left.at, b.left.room * sizeof *b.left.at);
    seen_release(b.a, b.work, sizeof *b.work);
    common->items = from->n;
    common->plan.bits = 8 * all_bytes(&f->layers);
    cost(&common->plan);
    return status;
}

/* ---- Keys --------------------------------------------------------------- */

static bool ribbon_maybe(const seen_filter *f, seen_hash h)
{
    return f->items > 0 && peek(f)->kernel->maybe(&peek(f)->layers, h.lo);
}

static seen_status ribbon_visit(seen_filter *f, seen_hash h, bool *before)
{
    (void)f, (void)h, (void)before;
    return SEEN_UNSUPPORTED;
}

static void ribbon_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    peek(f)->kernel->prefetch(&peek(f)->layers, h, n);
}

static void ribbon_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    if (f->items == 0)
        memset(answers, 0, n);
    else
        peek(f)->kernel->maybe_many(&peek(f)->layers, h, n, ahead, answers);
}

static seen_status ribbon_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    (void)f, (void)h, (void)ahead, (void)before;
    *done = 0;
    return n ? SEEN_UNSUPPORTED : SEEN_OK;
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status ribbon_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    (void)into, (void)from, (void)op;
    return SEEN_UNSUPPORTED;
}

static bool ribbon_equal(const seen_filter *f, const seen_filter *g)
{
    const struct seen_ribbon *a = &peek(f)->layers, *b = &peek(g)->layers;
    if (f->items != g->items || f->plan.items != g->plan.items ||
        a->width != b->width || a->layers != b->layers ||
        a->listed != b->listed)
        return false;
    for (uint32_t i = 0; i < a->layers; i++)
        if (a->layer[i].starts != b->layer[i].starts ||
            a->layer[i].seed != b->layer[i].seed)
            return false;
    struct seen_part p, q;
    for (uint32_t i = 0; ribbon_part(f, i, &p) && ribbon_part(g, i, &q); i++)
        if (memcmp(p.at, q.at, (size_t)p.len) != 0) return false;
    return true;
}

/* The share of all starts that are bumped. */
static double bumped_share(const struct seen_ribbon_layer *l)
{
    uint64_t bumped = 0;
    for (uint64_t at = 0; at < l->starts; at += SEEN_RIBBON_BUCKET) {
        uint64_t starts = seen_min64(SEEN_RIBBON_BUCKET, l->starts - at);
        uint64_t bucket = at / SEEN_RIBBON_BUCKET;
        uint32_t t = l->thresholds[bucket / 2] >> (4 * (bucket % 2)) & 15;
        bumped += t < 15 ? seen_min64(8 * t, starts) : starts;
    }
    return (double)bumped / (double)l->starts;
}

/* A stranger that all layers bump, or whose whole hash is that of a key, has to
 * meet one of the hashes itself. */
static double rate_now(const seen_filter *f)
{
    const struct seen_ribbon *b = &peek(f)->layers;
    double bumped = 1;
    for (uint32_t i = 0; i < b->layers; i++)
        bumped *= bumped_share(&b->layer[i]);
    return (1 - bumped) * rate_of(b->width) +
           seen_hash_fpp((double)f->items, 64);
}

static void ribbon_measure(const seen_filter *f, seen_info *info)
{
    info->bits_set = f->items * f->plan.width;
    info->fpp_now = f->items ? rate_now(f) : 0;
}

const struct seen_filter_ops seen_ribbon_ops = {
    .kind = SEEN_RIBBON,
    .name = "ribbon",
    .state_size = sizeof(struct ribbon),
    .flags = SEEN_KEYED,
    .plan = ribbon_plan,
    .plan_fpp = ribbon_plan_fpp,
    .plan_read = ribbon_plan_read,
    .shape = ribbon_shape,
    .part = ribbon_part,
    .place = ribbon_place,
    .save_state = ribbon_save_state,
    .load_state = ribbon_load_state,
    .parts_ok = ribbon_parts_ok,
    .build = ribbon_build,
    .maybe = ribbon_maybe,
    .visit = ribbon_visit,
    .prefetch = ribbon_prefetch,
    .maybe_many = ribbon_maybe_many,
    .visit_many = ribbon_visit_many,
    .merge = ribbon_merge,
    .equal = ribbon_equal,
    .measure = ribbon_measure,
};
