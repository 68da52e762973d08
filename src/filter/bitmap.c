/*
 * bitmap.c - an exact set of integers below a bound, as a kind of filter.
 *
 *     key 5, as 8 bytes ──► the number 5 ──► bit 5
 *
 *     0 1 2 3 4 5 6 7 8          bound - 1
 *     0 1 0 0 0 1 0 0 0  ...  0            {1, 5}
 *
 * Nothing is hashed, so nothing collides: "maybe" means "yes", a key can be
 * removed, and what remains is exactly what was added and not removed. The
 * price is a bit for every integer that could come, whether it comes or not:
 * ids up to 100 million take 12.5 MB, for ten of them or for all. A blocked
 * filter at 1 % is smaller as long as fewer than one id in ten is there.
 *
 * The bound is spec.bits. Who does not know it in advance raises it on the way
 * with seen_reserve(f, bound), which copies: by half or twice each time, not
 * one by one. An integer at or beyond the bound cannot be added (SEEN_INVALID)
 * and is not there; nor is a key that is no integer, see hash/u64.c.
 *
 * seen_bitmap.h offers the same bits without the rest of a filter: ranges, the
 * next member, differences. Choose SEEN_SET where integers are spread over all
 * 64 bits.
 */
#include "bits/bitmap.h"

#include "base/alloc.h"
#include "filter/filter.h"

#include <string.h>

#define RING 32 /* keys in flight, one line each */

struct bitmap {
    seen_filter common; /* .plan.bits: the bound; .items: the members */
    uint64_t *words;
};

static struct bitmap *self(seen_filter *f)
{
    return (struct bitmap *)f;
}

static const struct bitmap *peek(const seen_filter *f)
{
    return (const struct bitmap *)f;
}

static uint64_t bound(const seen_filter *f)
{
    return f->plan.bits;
}

static uint64_t count_words(const seen_filter *f)
{
    return seen_words_for(bound(f));
}

static uint64_t payload(uint64_t bits)
{
    return seen_words_for(bits) * 8;
}

/* ---- Plan --------------------------------------------------------------- */

static double bitmap_plan_fpp(const seen_plan *plan, uint64_t items)
{
    (void)plan;
    (void)items;
    return 0;
}

/* All there is to know about a bitmap of this bound. */
static void cost(seen_plan *plan, uint64_t bits)
{
    plan->hashes = 1;
    plan->lines = 1;
    plan->hash_bits = 64;
    plan->items = bits;
    plan->bits = bits;
    plan->bytes = payload(bits) + sizeof(struct bitmap);
    plan->fpp = 0;
}

static seen_status bitmap_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (spec->items)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": not for a bitmap, whose size is the bound of its "
                         "integers: give bits",
                         spec->items);
    if (spec->fpp > 0)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: a bitmap is exact: leave the rate out",
                         spec->fpp);
    if (spec->hashes)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: not for a bitmap: leave it out",
                         spec->hashes);
    if (!spec->bits)
        return seen_fail(
            e, SEEN_INVALID, "bits",
            "bits: expected at least 1, the bound of the integers in a bitmap");
    if (spec->bits > SEEN_BITMAP_MAX)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits %" PRIu64 ": expected at most 2^40 in a bitmap",
                         spec->bits);
    cost(plan, spec->bits);
    return SEEN_OK;
}

static bool bitmap_plan_read(seen_plan *plan)
{
    if (plan->bits == 0 || plan->bits > SEEN_BITMAP_MAX ||
        plan->items != plan->bits || plan->hashes != 1 || plan->width != 0 ||
        plan->hash_bits != 64 || plan->fpp > 0)
        return false;
    cost(plan, plan->bits);
    return true;
}

/* ---- Life --------------------------------------------------------------- */

/* The plan says it all. */
static void bitmap_shape(seen_filter *f)
{
    (void)f;
}

static bool bitmap_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->words, payload(bound(f)), true};
    return index == 0;
}

static void bitmap_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->words = at;
}

/* No bits past the bound, and as many before it as it says. */
static bool bitmap_parts_ok(const seen_filter *f)
{
    const uint64_t *words = peek(f)->words;
    uint64_t used = bound(f) % 64;
    if (used && words[count_words(f) - 1] >> used) return false;
    return seen_bits_count(words, count_words(f)) == f->items;
}

/* Raise the bound. */
static seen_status bitmap_reserve(seen_filter *f, uint64_t bits)
{
    if (bits > SEEN_BITMAP_MAX) return SEEN_INVALID;
    if (bits <= bound(f)) return SEEN_OK;
    if (f->borrowed) return SEEN_UNSUPPORTED;
    seen_plan next = f->plan;
    cost(&next, bits);
    if (f->limit && next.bytes > f->limit) return SEEN_FULL;

    struct bitmap *b = self(f);
    if (seen_words_for(bits) > count_words(f)) {
        uint64_t *words = seen_alloc_zeroed(&f->allocator, payload(bits));
        if (!words) return SEEN_NOMEM;
        memcpy(words, b->words, (size_t)payload(bound(f)));
        seen_release(&f->allocator, b->words, payload(bound(f)));
        b->words = words;
    }
    f->plan = next;
    return SEEN_OK;
}

/* ---- Keys --------------------------------------------------------------- */

SEEN_INLINE bool has(const seen_filter *f, seen_hash h)
{
    return h.lo < bound(f) && seen_bit_test(peek(f)->words, h.lo);
}

SEEN_INLINE seen_status visit(seen_filter *f, seen_hash h, bool *before)
{
    if (h.lo >= bound(f)) return SEEN_INVALID;
    uint64_t *words = self(f)->words;
    *before = seen_bit_test(words, h.lo);
    seen_bit_set(words, h.lo);
    f->items += !*before;
    return SEEN_OK;
}

static bool bitmap_maybe(const seen_filter *f, seen_hash h)
{
    return has(f, h);
}

static seen_status bitmap_visit(seen_filter *f, seen_hash h, bool *before)
{
    return visit(f, h, before);
}

static seen_status bitmap_remove(seen_filter *f, seen_hash h)
{
    if (!has(f, h)) return SEEN_ABSENT;
    seen_bit_clear(self(f)->words, h.lo);
    f->items--;
    return SEEN_OK;
}

static bool ring(const seen_filter *f)
{
    return payload(bound(f)) > SEEN_RING_FROM_BYTES;
}

SEEN_INLINE void prefetch(const seen_filter *f, seen_hash h)
{
    if (h.lo < bound(f)) seen_prefetch_read(&peek(f)->words[h.lo / 64]);
}

static void bitmap_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch(f, h[i]);
}

static void bitmap_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    size_t known = ring(f) ? n + ahead : 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch(f, h[i + RING]);
        answers[i] = has(f, h[i]);
    }
}

static seen_status bitmap_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    size_t known = ring(f) ? n + ahead : 0;
    seen_status status = SEEN_OK;
    size_t i = 0;
    for (; i < n; i++) {
        if (i + RING < known) prefetch(f, h[i + RING]);
        bool was;
        status = visit(f, h[i], &was);
        if (status != SEEN_OK) break;
        if (before) before[i] = was;
    }
    *done = i;
    return status;
}

/* ---- Whole bitmaps ------------------------------------------------------ */

static seen_status bitmap_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    if (bound(into) != bound(from)) return SEEN_MISMATCH;
    uint64_t *words = self(into)->words, n = count_words(into);
    if (op == SEEN_UNION)
        seen_bits_or(words, peek(from)->words, n);
    else
        seen_bits_and(words, peek(from)->words, n);
    seen_bits_trim(words, bound(into));
    into->items = seen_bits_count(words, n);
    return SEEN_OK;
}

static bool bitmap_equal(const seen_filter *a, const seen_filter *b)
{
    return seen_equal_words(a, peek(a)->words, b, peek(b)->words);
}

static void bitmap_measure(const seen_filter *f, seen_info *info)
{
    info->bits_set = seen_bits_count(peek(f)->words, count_words(f));
    info->items = info->bits_set;
    info->fpp_now = 0;
}

const struct seen_filter_ops seen_bitmap_ops = {
    .kind = SEEN_BITMAP,
    .name = "bitmap",
    .state_size = sizeof(struct bitmap),
    .hash = &seen_hash_u64,
    .plan = bitmap_plan,
    .plan_fpp = bitmap_plan_fpp,
    .plan_read = bitmap_plan_read,
    .shape = bitmap_shape,
    .part = bitmap_part,
    .place = bitmap_place,
    .parts_ok = bitmap_parts_ok,
    .maybe = bitmap_maybe,
    .visit = bitmap_visit,
    .remove = bitmap_remove,
    .prefetch = bitmap_prefetch,
    .maybe_many = bitmap_maybe_many,
    .visit_many = bitmap_visit_many,
    .reserve = bitmap_reserve,
    .merge = bitmap_merge,
    .equal = bitmap_equal,
    .measure = bitmap_measure,
};
