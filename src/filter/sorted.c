/*
 * sorted.c - the smallest filter of few keys: built once, never changed.
 *
 * Every key has a fingerprint, a number below u, and the fingerprints are kept
 * in ascending order, Elias-Fano coded (bits/sorted.h). A stranger meets one of
 * the n by chance, n in u:
 *
 *     p = 1 - (1 - 1/u)^n, about n/u     bits a key = log2(u/n) + 2 to 2.09
 *
 * 10 bits a key are u = 256 n, 0.39 %, where a Bloom filter gives 0.82 %. It costs
 * the same for any n but for the rest of a byte; bits a key at 0.4 %, from `seen
 * plan`:
 *
 *     keys        10    35   100  1000  10^4  10^5  10^6
 *     sorted    10.4  10.1  10.0  10.0  10.0  10.0  10.0
 *     ribbon    64.0  18.5   9.1   8.2   8.2   8.1   8.0
 *
 * Worked example: 35 keys in 44 bytes. Eight low bits of each are 35 bytes; the
 * other 9 have 72 bits: a 1 for each key, and 37 steps. u = 37 * 256 = 9472, p =
 * 0.37 %. A key whose hash is a quarter of 2^64 has fingerprint 2368 = 9 * 256 +
 * 64: behind the 9th 0 there may be a 1 or two, and one of their low parts may be
 * 64.
 *
 *     | low parts, n * l bits | high parts, n + (u >> l) bits | samples |
 *
 * Fingerprints are the high part of hashes, so those come sorted, too. Equal ones
 * stay: n, and with it u, must be known before them. From 512 keys on there are
 * samples, so that a question counts 1024 steps at most.
 *
 * Choose it for sets of a few dozen keys, and for very many such sets: the blocks of
 * a table on disk, one filter for each customer. From about 80 keys on a ribbon
 * filter is smaller, and always faster: questions take some 20 ns of counting for a
 * few dozen keys and 60 for many, where that takes 6 and a cache miss or two.
 */
#include "bits/sorted.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/reduce.h"

#include <math.h>
#include <string.h>

#define ITEMS_MAX SEEN_SORTED_LONGEST

struct sorted {
    seen_filter common; /* .items: different hashes; all of them, or none */
    uint8_t *bytes;     /* the code, then the samples */
    uint64_t below;     /* u */
    uint64_t code;      /* bytes of it */
};

static struct sorted *self(seen_filter *f)
{
    return (struct sorted *)f;
}

static const struct sorted *peek(const seen_filter *f)
{
    return (const struct sorted *)f;
}

static struct seen_sorted list_of(const seen_filter *f)
{
    return (struct seen_sorted){peek(f)->bytes, f->plan.items, peek(f)->below};
}

/* NULL: there are none. */
static uint8_t *samples_of(const struct sorted *f)
{
    return seen_sorted_samples_size(f->common.plan.items) ? f->bytes + f->code
                                                          : NULL;
}

/* ---- Plan --------------------------------------------------------------- */

static double rate_of(uint64_t different, uint64_t below)
{
    return (double)different / (double)below;
}

/* u of so many keys in so many bits; 0: too few. */
static uint64_t below_for(uint64_t n, uint64_t bits)
{
    uint64_t samples = seen_sorted_samples_size(n);
    return bits / 8 < samples ? 0 : seen_sorted_below(n, bits / 8 - samples);
}

static uint64_t bits_for(uint64_t n, uint64_t below)
{
    return 8 * (seen_sorted_size(n, below) + seen_sorted_samples_size(n));
}

static double expected(uint64_t n, uint64_t below)
{
    return 0 - expm1((double)n * log1p(-1 / (double)below)) +
           seen_hash_fpp((double)n, 64);
}

/* With u = 1 every question meets the only fingerprint there is. */
static double sorted_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (items > plan->items) return NAN; /* made for its keys and no more */
    uint64_t below = below_for(plan->items, plan->bits);
    return items ? fmin(1, expected(items, below)) : 0;
}

/* The fewest bits that keep the rate, and then as large a u as they have room
 * for; 0: none does. */
static uint64_t bits_at(uint64_t n, double fpp)
{
    double rest = fpp - seen_hash_fpp((double)n, 64);
    double least = ceil(-1 / expm1(log1p(-rest) / (double)n));
    if (!(rest > 0) || !(least <= (double)SEEN_SORTED_MAX)) return 0;
    uint64_t below = (uint64_t)fmax(least, (double)n);
    while (below <= SEEN_SORTED_MAX && expected(n, below) > fpp)
        below++; /* what rounding took */
    return below <= SEEN_SORTED_MAX ? bits_for(n, below) : 0;
}

/* Most keys that so many bits hold at a rate. */
static uint64_t capacity_of(uint64_t bits, double fpp)
{
    uint64_t low = 0, high = seen_min64(bits, ITEMS_MAX) + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t needed = bits_at(middle, fpp);
        *(needed && needed <= bits ? &low : &high) = middle;
    }
    return low;
}

static void cost(seen_plan *plan)
{
    uint64_t bytes = plan->bits / 8;
    plan->lines = bytes <= SEEN_LINE_SIZE                 ? 1
                  : seen_sorted_samples_size(plan->items) ? 3
                                                          : 2;
    plan->bytes = bytes + sizeof(struct sorted);
}

static seen_status sorted_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes > 1)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 1 in a sorted filter",
                         spec->hashes);
    if (spec->items > ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64 ": expected at most 2^30 in a sorted "
                         "filter; a ribbon filter takes more",
                         spec->items);

    /* 1. How many keys in how many bits. */
    uint64_t n = spec->items, bits = spec->bits;
    if (n == 0 && (n = capacity_of(bits, spec->fpp)) == 0)
        return seen_spec_too_few(spec, e);
    if (spec->fpp > 0 && (bits = bits_at(n, spec->fpp)) == 0)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: expected at least %.2g for %" PRIu64
                         " keys in a sorted filter",
                         spec->fpp, (double)n * 0x1p-48, n);
    if (spec->bits && bits > spec->bits) return seen_spec_too_few(spec, e);

    /* 2. What it costs. */
    uint64_t below = below_for(n, bits);
    if (below == 0) return seen_spec_too_few(spec, e);
    plan->hashes = 1;
    plan->items = n;
    plan->bits = bits_for(n, below);
    plan->hash_bits = spec->flags & SEEN_KEYED ? 128 : 64;
    plan->fpp = sorted_plan_fpp(plan, n);
    cost(plan);
    return SEEN_OK;
}

/* u follows from items and bits, and those from it. */
static bool sorted_plan_read(seen_plan *plan)
{
    if (plan->hashes != 1 || plan->width != 0 || plan->items == 0 ||
        plan->items > ITEMS_MAX || plan->bits == 0 ||
        plan->bits > SEEN_MAX_BITS)
        return false;
    uint64_t below = below_for(plan->items, plan->bits);
    if (below == 0 || bits_for(plan->items, below) != plan->bits) return false;
    cost(plan);
    return true;
}

/* ---- Build -------------------------------------------------------------- */

static seen_status sorted_build(seen_filter *common, struct seen_source *from)
{
    struct sorted *f = self(common);
    const uint64_t n = from->n, *run;
    uint64_t *values = seen_alloc_zeroed(&common->allocator, 8 * n);
    if (!values) return SEEN_NOMEM;
    seen_status status = SEEN_OK;
    for (uint64_t at = 0, len; at < n; at += len) {
        status = from->next(from, &run, &len);
        if (status != SEEN_OK) break;
        for (uint64_t i = 0; i < len; i++)
            values[at + i] = seen_reduce(run[i], f->below);
    }
    if (status == SEEN_OK) {
        seen_sorted_encode(values, n, f->below, f->bytes);
        struct seen_sorted list = list_of(common);
        if (samples_of(f)) seen_sorted_sample(&list, samples_of(f));
        common->items = n;
    }
    seen_release(&common->allocator, values, 8 * n);
    return status;
}

/* ---- Life --------------------------------------------------------------- */

static void sorted_shape(seen_filter *f)
{
    self(f)->below = below_for(f->plan.items, f->plan.bits);
    self(f)->code = seen_sorted_size(f->plan.items, self(f)->below);
}

static bool sorted_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->bytes, f->plan.bits / 8, false};
    return index == 0;
}

static void sorted_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->bytes = at;
}

static bool all_zero(const uint8_t *bytes, uint64_t n)
{
    uint8_t found = 0;
    for (uint64_t i = 0; i < n; i++)
        found |= bytes[i];
    return found == 0;
}

static bool sorted_parts_ok(const seen_filter *common)
{
    const struct sorted *f = peek(common);
    const struct seen_sorted list = list_of(common);
    if (common->items == 0) return all_zero(f->bytes, common->plan.bits / 8);
    return common->items == common->plan.items &&
           seen_sorted_different(&list) > 0 &&
           (!samples_of(f) || seen_sorted_samples_ok(&list, samples_of(f)));
}

/* ---- Keys --------------------------------------------------------------- */

static bool sorted_maybe(const seen_filter *f, seen_hash h)
{
    const struct seen_sorted list = list_of(f);
    return f->items > 0 && seen_sorted_has(&list, samples_of(peek(f)),
                                           seen_reduce(h.lo, list.below));
}

static seen_status sorted_visit(seen_filter *f, seen_hash h, bool *before)
{
    (void)f, (void)h, (void)before;
    return SEEN_UNSUPPORTED;
}

static void sorted_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    (void)f, (void)h, (void)n; /* small sets are at hand */
}

static void sorted_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    (void)ahead;
    for (size_t i = 0; i < n; i++)
        answers[i] = sorted_maybe(f, h[i]);
}

static seen_status sorted_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    (void)f, (void)h, (void)ahead, (void)before;
    *done = 0;
    return n ? SEEN_UNSUPPORTED : SEEN_OK;
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status sorted_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    (void)into, (void)from, (void)op;
    return SEEN_UNSUPPORTED;
}

static bool sorted_equal(const seen_filter *a, const seen_filter *b)
{
    return a->items == b->items && a->plan.items == b->plan.items &&
           a->plan.bits == b->plan.bits &&
           memcmp(peek(a)->bytes, peek(b)->bytes, a->plan.bits / 8) == 0;
}

/* The rate is what the different fingerprints make it. */
static void sorted_measure(const seen_filter *f, seen_info *info)
{
    const struct seen_sorted list = list_of(f);
    uint64_t different = f->items ? seen_sorted_different(&list) : 0;
    info->bits_set = f->items ? f->plan.bits : 0;
    info->fpp_now = f->items ? fmin(1, rate_of(different, list.below) +
                                           seen_hash_fpp((double)f->items, 64))
                             : 0;
}

const struct seen_filter_ops seen_sorted_ops = {
    .kind = SEEN_SORTED,
    .name = "sorted",
    .state_size = sizeof(struct sorted),
    .flags = SEEN_KEYED,
    .plan = sorted_plan,
    .plan_fpp = sorted_plan_fpp,
    .plan_read = sorted_plan_read,
    .shape = sorted_shape,
    .part = sorted_part,
    .place = sorted_place,
    .parts_ok = sorted_parts_ok,
    .build = sorted_build,
    .maybe = sorted_maybe,
    .visit = sorted_visit,
    .prefetch = sorted_prefetch,
    .maybe_many = sorted_maybe_many,
    .visit_many = sorted_visit_many,
    .merge = sorted_merge,
    .equal = sorted_equal,
    .measure = sorted_measure,
};
