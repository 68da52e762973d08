/*
 * blocked.c - the default filter: all bits of a key in one cache line.
 *
 *     hash ──► line (64 bytes) ──► one bit in each of its eight words
 *
 *     | line 0 | line 1 | ... | line i                            | ... |
 *                              | ..1..... | .......1 | ... | 1....... |
 *
 * A lookup costs one cache miss and a dozen vector instructions whatever the
 * answer; a classic filter costs up to k misses. The price is some memory,
 * because lines fill unevenly: 10.1 bits a key instead of 9.6 at 1 %, 15.7
 * instead of 14.4 at 0.1 %. For rates below 0.046 % the filter is cut into two
 * or more regions and a key gets a line in each, which evens things out again;
 * above about 2 % it sets only 4, 2 or 1 bits. plan/sizing.c has the arithmetic and
 * the choice, bits/line.h the layout of a line.
 *
 * Worked example: one million keys at 1 %. The planner finds 19,726 lines of
 * 64 bytes, 10.1 bits a key. Key "alice": XXH3 gives 64 bits; times 19,726
 * shifted right by 64 is its line, its low 32 bits give eight bits there.
 *
 * Choose SEEN_BLOOM instead where the last 5-9 % of memory matter more than
 * speed. Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom
 * Filters, 2007; the one-bit-per-word line is that of Impala and Parquet, at
 * twice their width.
 */
#include "bits/bitmap.h"
#include "bits/lines.h"
#include "filter/filter.h"
#include "filter/lines.h"
#include "plan/sizing.h"

#include <math.h>

struct blocked {
    seen_filter common;
    struct seen_lines lines;
    const struct seen_kernel *kernel;
};

static_assert(offsetof(struct blocked, lines) == sizeof(seen_filter),
              "seen_filter_lines() finds them there");

static struct blocked *self(seen_filter *f)
{
    return (struct blocked *)f;
}

static const struct blocked *peek(const seen_filter *f)
{
    return (const struct blocked *)f;
}

/* ---- Plan --------------------------------------------------------------- */

static struct seen_line_layout layout_of(const seen_plan *plan)
{
    uint32_t k = plan->hashes;
    struct seen_line_layout l = {.regions = k < 8 ? 1 : k / 8,
                                 .per_line = k < 8 ? k : 8};
    l.count = plan->bits / SEEN_LINE_BITS / l.regions;
    return l;
}

static double blocked_plan_fpp(const seen_plan *plan, uint64_t items)
{
    struct seen_line_layout l = layout_of(plan);
    double fpp =
        seen_fpp_blocked(items, l.count * l.regions, l.regions, l.per_line);
    return fmin(1, fpp + seen_hash_fpp((double)items, plan->hash_bits));
}

/* 128 bits also where line numbers would eat into the low half of 64. */
static uint32_t hash_bits(double n, double p, const seen_spec *spec,
                          const struct seen_line_layout *l)
{
    uint32_t bits = seen_hash_bits_for(n, p, spec);
    return bits == 64 && l->count > UINT32_MAX ? 128 : bits;
}

static void cost(seen_plan *plan)
{
    plan->lines = layout_of(plan).regions;
    plan->bytes = plan->bits / 8 + sizeof(struct blocked);
}

static seen_status blocked_plan(const seen_spec *spec, seen_plan *plan,
                                seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;

    uint32_t k = spec->hashes;
    if (k && !seen_line_layout_takes(k))
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 1, 2, 4 or a multiple of 8 up to "
                         "128 in a blocked filter",
                         k);
    uint64_t lines = spec->bits / SEEN_LINE_BITS;
    if (spec->bits && lines == 0)
        return seen_fail(
            e, SEEN_INVALID, "bits",
            "bits %" PRIu64
            ": expected at least 512 bits, one line, in a blocked filter",
            spec->bits);

    /* 1. What the hash leaves of the rate for the bits to keep. */
    uint64_t items = spec->items;
    plan->hash_bits = seen_hash_bits_for((double)items, spec->fpp, spec);
    if (!plan->hash_bits) return seen_spec_beyond_hashes(spec, e);
    double fpp = spec->fpp - seen_hash_fpp((double)items, plan->hash_bits);

    /* 2. The layout, from whichever two are given. */
    struct seen_line_layout l;
    if (!spec->bits) {
        if (!seen_line_layout_for(items, fpp, k, &l))
            return seen_spec_too_large(spec, e);
    } else if (items) {
        if (!seen_line_layout_within(items, lines, k, &l))
            return seen_fail(
                e, SEEN_INVALID, "bits",
                "bits %" PRIu64
                ": too few for %u hashes: expected 512 for every 8 of them",
                spec->bits, k);
    } else {
        /* As many keys as the classic formula allows: the best shape for
         * them is the best shape for the few less that really fit. */
        uint32_t any = 0;
        fpp *= 0.999; /* the hash's share at most */
        double n = seen_capacity_for((double)spec->bits, fpp, &any);
        if (!(n >= 1)) n = 1;
        if (!(n < 0x1p63)) n = 0x1p63;
        if (!seen_line_layout_within((uint64_t)n, lines, k, &l))
            return seen_fail(
                e, SEEN_INVALID, "bits",
                "bits %" PRIu64
                ": too few for %u hashes: expected 512 for every 8 of them",
                spec->bits, k);
        items = seen_line_layout_capacity(&l, fpp);
        if (items == 0) return seen_spec_too_few(spec, e);
    }
    plan->hashes = l.regions * l.per_line;
    plan->bits = l.count * l.regions * SEEN_LINE_BITS;
    plan->items = items;

    /* 3. Is the promise kept, and by which hash? */
    double expected = seen_fpp_blocked(items, plan->bits / SEEN_LINE_BITS,
                                       l.regions, l.per_line);
    if (spec->fpp > 0 && expected > fpp) return seen_spec_too_few(spec, e);
    plan->hash_bits = hash_bits((double)items,
                                spec->fpp > 0 ? spec->fpp : expected, spec, &l);
    if (!plan->hash_bits) return seen_spec_beyond_hashes(spec, e);
    plan->fpp = blocked_plan_fpp(plan, items);
    cost(plan);
    return SEEN_OK;
}

static bool blocked_plan_read(seen_plan *plan)
{
    if (!seen_line_layout_takes(plan->hashes) || plan->width != 0) return false;
    struct seen_line_layout l = layout_of(plan);
    if (plan->bits == 0 || plan->bits > SEEN_MAX_BITS ||
        plan->bits != l.count * l.regions * SEEN_LINE_BITS ||
        (plan->hash_bits == 64 && l.count > UINT32_MAX))
        return false;
    cost(plan);
    return true;
}

/* ---- Life --------------------------------------------------------------- */

static void blocked_shape(seen_filter *f)
{
    struct seen_line_layout l = layout_of(&f->plan);
    uint64_t bytes = f->plan.bits / 8;
    self(f)->lines = (struct seen_lines){.count = l.count,
                                         .regions = l.regions,
                                         .log_w = seen_ctz64(l.per_line),
                                         .wide = f->hash->bits == 128,
                                         .ring = bytes > SEEN_RING_FROM_BYTES};
    self(f)->kernel = f->flags & SEEN_CONCURRENT ? &seen_kernel_concurrent
                                                 : seen_kernel_best();
    f->maybe_lines = seen_lines_common(&self(f)->lines)
                         ? self(f)->kernel->maybe_common
                         : self(f)->kernel->maybe;
}

static bool blocked_part(const seen_filter *f, uint32_t index,
                         struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->lines.words, f->plan.bits / 8, true};
    return index == 0;
}

static void blocked_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->lines.words = at;
}

/* ---- Keys --------------------------------------------------------------- */

/* A shared counter would cost concurrent adds more than the filter does; they
 * estimate instead, see blocked_info(). */
static void count_new(seen_filter *f, uint64_t n)
{
    if (!(f->flags & SEEN_CONCURRENT)) f->items += n;
}

static bool blocked_maybe(const seen_filter *f, seen_hash h)
{
    return peek(f)->kernel->maybe(&peek(f)->lines, h);
}

static seen_status blocked_visit(seen_filter *f, seen_hash h, bool *before)
{
    *before = self(f)->kernel->visit(&self(f)->lines, h);
    count_new(f, !*before);
    return SEEN_OK;
}

static void blocked_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    const struct seen_lines *lines = &peek(f)->lines;
    if (!lines->ring) return;
    for (size_t i = 0; i < n && i < SEEN_RING; i++)
        seen_shape_prefetch(lines, h[i], seen_shape_of(lines));
}

static void blocked_maybe_many(const seen_filter *f, const seen_hash *h,
                               size_t n, size_t ahead, bool *answers)
{
    peek(f)->kernel->maybe_many(&peek(f)->lines, h, n, ahead, answers);
}

static seen_status blocked_visit_many(seen_filter *f, const seen_hash *h,
                                      size_t n, size_t ahead, bool *before,
                                      size_t *done)
{
    size_t fresh =
        self(f)->kernel->visit_many(&self(f)->lines, h, n, ahead, before);
    count_new(f, fresh);
    *done = n;
    return SEEN_OK;
}

static uint32_t blocked_touches(const seen_filter *f, seen_hash h, uint64_t *at)
{
    const struct seen_lines *lines = &peek(f)->lines;
    struct seen_probe p = seen_probe_of(h, lines->wide);
    for (uint32_t r = 0; r < lines->regions; r++) {
        uint64_t *line = seen_lines_at(lines, r, seen_probe_word(p, r));
        at[r] = (uint64_t)(line - lines->words) * 8;
    }
    return lines->regions;
}

/* ---- Whole filters ------------------------------------------------------ */

static void blocked_measure(const seen_filter *f, seen_info *info)
{
    info->fpp_now = seen_lines_survey(&peek(f)->lines, 1, &info->bits_set);
    if (!info->counted) info->items = seen_plan_items(&f->plan, info->bits_set);
}

static seen_status blocked_merge(seen_filter *into, const seen_filter *from,
                                 seen_merge_op op)
{
    return seen_merge_words(into, self(into)->lines.words, from,
                            peek(from)->lines.words, op);
}

static bool blocked_equal(const seen_filter *a, const seen_filter *b)
{
    return seen_equal_words(a, peek(a)->lines.words, b, peek(b)->lines.words);
}

const struct seen_filter_ops seen_blocked_ops = {
    .kind = SEEN_BLOCKED,
    .name = "blocked",
    .state_size = sizeof(struct blocked),
    .flags = SEEN_CONCURRENT | SEEN_KEYED,
    .plan = blocked_plan,
    .plan_fpp = blocked_plan_fpp,
    .plan_read = blocked_plan_read,
    .shape = blocked_shape,
    .part = blocked_part,
    .place = blocked_place,
    .maybe = blocked_maybe,
    .visit = blocked_visit,
    .prefetch = blocked_prefetch,
    .maybe_many = blocked_maybe_many,
    .visit_many = blocked_visit_many,
    .touches = blocked_touches,
    .merge = blocked_merge,
    .equal = blocked_equal,
    .measure = blocked_measure,
};
