/*
 * bloom.c - the classic filter of Burton Bloom (1970): k bits anywhere.
 *
 *     hash ──► k positions, independent of each other
 *
 *     0 0 1 0 0 0 0 1 0 0 0 1 0 0 0 0 0 0 1 0 0        m bits, any number
 *         ^         ^       ^             ^
 *
 * The smallest filter that can still take new keys: 9.59 bits a key at 1 %,
 * 14.38 at 0.1 %, against 6.64 and 9.97 that no structure can beat. Every probe
 * is a cache miss of its own once the filter leaves the cache: a key that is
 * there costs k of them, a key that is not about two, since each bit is 0 with
 * probability one half.
 *
 * Worked example: 1000 keys at 1 %. k = 7, m = 9,596 bits, 1.2 KB. A key that
 * was never added finds its first bit set in half the cases, its first two in a
 * quarter, all seven in 1 of 128: about 1 %.
 *
 * With k = 1 and a bit for every possible hash it becomes a bitmap, and the
 * answers become exact; a test holds it to that.
 *
 * Choose SEEN_BLOCKED unless memory is scarcer than time.
 */
#include "bits/bitmap.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/native.h"

#include <math.h>

/* Keys in flight. Each brings k lines, so fewer than in bits/lines.h. */
#define RING 8

/* From here on the textbook's formula agrees with the exact probability to six
 * digits, and the latter starts to suffer from rounding. */
#define EXACT_BELOW_BITS ((uint64_t)1 << 32)

struct bloom {
    seen_filter common;
    uint64_t *words;
    uint64_t bits;
    uint32_t hashes;
    bool wide;
    bool ring;
};

static struct bloom *self(seen_filter *f)
{
    return (struct bloom *)f;
}

static const struct bloom *peek(const seen_filter *f)
{
    return (const struct bloom *)f;
}

/* ---- Plan --------------------------------------------------------------- */

static double expected_fpp(uint64_t n, uint64_t m, uint32_t k)
{
    return m < EXACT_BELOW_BITS ? seen_fpp_exact(n, m, k)
                                : seen_fpp_bloom((double)n, (double)m, k);
}

static double bloom_plan_fpp(const seen_plan *plan, uint64_t items)
{
    double fpp = expected_fpp(items, plan->bits, plan->hashes);
    return fmin(1, fpp + seen_hash_fpp((double)items, plan->hash_bits));
}

static void cost(seen_plan *plan)
{
    plan->lines = plan->hashes;
    plan->bytes = seen_words_for(plan->bits) * 8 + sizeof(struct bloom);
}

static seen_status bloom_plan(const seen_spec *spec, seen_plan *plan,
                              seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes > SEEN_MAX_HASHES)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 1 to 64", spec->hashes);

    /* 1. What the hash leaves of the rate for the bits to keep. */
    uint32_t k = spec->hashes;
    uint64_t n = spec->items, m = spec->bits;
    plan->hash_bits = seen_hash_bits_for((double)n, spec->fpp, spec);
    if (!plan->hash_bits) return seen_spec_beyond_hashes(spec, e);
    double fpp = spec->fpp - seen_hash_fpp((double)n, plan->hash_bits);

    /* 2. The two that are missing; then the exact probability has a say. */
    if (!m) {
        double bits = ceil(seen_bits_for((double)n, fpp, &k));
        if (!(bits <= (double)SEEN_MAX_BITS))
            return seen_spec_too_large(spec, e);
        m = bits < 1 ? 1 : (uint64_t)bits;
        while (m < EXACT_BELOW_BITS && expected_fpp(n, m, k) > fpp)
            m += m / 4096 + 1;
    } else if (n) {
        if (!k) k = seen_hashes_for((double)n, (double)m);
    } else {
        double most = seen_capacity_for((double)m, 0.999 * fpp, &k);
        n = most < 0x1p63 ? (uint64_t)most : (uint64_t)1 << 63;
        while (n > 0 && m < EXACT_BELOW_BITS && expected_fpp(n, m, k) > fpp)
            n -= n / 4096 + 1;
        if (n == 0) return seen_spec_too_few(spec, e);
        plan->hash_bits = seen_hash_bits_for((double)n, spec->fpp, spec);
        if (!plan->hash_bits) return seen_spec_beyond_hashes(spec, e);
    }
    double expected = expected_fpp(n, m, k);
    if (spec->fpp > 0 && !(expected <= fpp * (1 + 1e-6)))
        return seen_spec_too_few(spec, e);
    if (!(spec->fpp > 0))
        plan->hash_bits = seen_hash_bits_for((double)n, expected, spec);

    /* 3. What it costs. */
    plan->hashes = k;
    plan->bits = m;
    plan->items = n;
    plan->fpp = bloom_plan_fpp(plan, n);
    cost(plan);
    return SEEN_OK;
}

static bool bloom_plan_read(seen_plan *plan)
{
    if (plan->bits == 0 || plan->bits > SEEN_MAX_BITS || plan->hashes == 0 ||
        plan->hashes > SEEN_MAX_HASHES || plan->width != 0)
        return false;
    cost(plan);
    return true;
}

/* ---- Life --------------------------------------------------------------- */

static uint64_t count_words(const seen_filter *f)
{
    return seen_words_for(f->plan.bits);
}

static void bloom_shape(seen_filter *f)
{
    struct bloom *b = self(f);
    b->bits = f->plan.bits;
    b->hashes = f->plan.hashes;
    b->wide = f->hash->bits == 128;
    b->ring = count_words(f) * 8 > SEEN_RING_FROM_BYTES;
}

static bool bloom_part(const seen_filter *f, uint32_t index,
                       struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->words, count_words(f) * 8, true};
    return index == 0;
}

static void bloom_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->words = at;
}

/* No bits past the end: they would be counted. */
static bool bloom_parts_ok(const seen_filter *f)
{
    uint64_t used = f->plan.bits % 64;
    return !used || !(peek(f)->words[count_words(f) - 1] >> used);
}

/* ---- Keys --------------------------------------------------------------- */

SEEN_INLINE bool test(const struct bloom *b, seen_hash h)
{
    struct seen_probe p = seen_probe_of(h, b->wide);
    for (uint32_t i = 0; i < b->hashes; i++) {
        uint64_t pos = seen_probe_position(p, i, b->bits);
        if (!(seen_atomic_load(&b->words[pos / 64]) >> (pos % 64) & 1))
            return false;
    }
    return true;
}

/* Set all bits; were they all set before? */
SEEN_INLINE bool change(struct bloom *b, seen_hash h, bool concurrent)
{
    struct seen_probe p = seen_probe_of(h, b->wide);
    bool before = true;
    for (uint32_t i = 0; i < b->hashes; i++) {
        uint64_t pos = seen_probe_position(p, i, b->bits);
        uint64_t mask = (uint64_t)1 << (pos % 64);
        uint64_t *word = &b->words[pos / 64];
        uint64_t old = seen_atomic_load(word);
        if (concurrent && !(old & mask))
            old = seen_atomic_or(word, mask);
        else if (!concurrent)
            *word = old | mask;
        before &= (old & mask) != 0;
    }
    return before;
}

/* The first `probes` of a key: an absent one rarely needs more than four. */
SEEN_INLINE void prefetch(const struct bloom *b, seen_hash h, uint32_t probes)
{
    struct seen_probe p = seen_probe_of(h, b->wide);
    for (uint32_t i = 0; i < probes && i < b->hashes; i++)
        seen_prefetch_read(&b->words[seen_probe_position(p, i, b->bits) / 64]);
}

static bool bloom_maybe(const seen_filter *f, seen_hash h)
{
    return test(peek(f), h);
}

static seen_status bloom_visit(seen_filter *f, seen_hash h, bool *before)
{
    bool concurrent = f->flags & SEEN_CONCURRENT;
    *before = change(self(f), h, concurrent);
    if (!concurrent) f->items += !*before;
    return SEEN_OK;
}

static void bloom_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    if (!peek(f)->ring) return;
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch(peek(f), h[i], SEEN_MAX_HASHES);
}

static void bloom_maybe_many(const seen_filter *f, const seen_hash *h, size_t n,
                             size_t ahead, bool *answers)
{
    const struct bloom *b = peek(f);
    size_t known = b->ring ? n + ahead : 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch(b, h[i + RING], SEEN_MAX_HASHES);
        answers[i] = test(b, h[i]);
    }
}

static seen_status bloom_visit_many(seen_filter *f, const seen_hash *h,
                                    size_t n, size_t ahead, bool *before,
                                    size_t *done)
{
    struct bloom *b = self(f);
    bool concurrent = f->flags & SEEN_CONCURRENT;
    size_t known = b->ring ? n + ahead : 0, fresh = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch(b, h[i + RING], SEEN_MAX_HASHES);
        bool was = change(b, h[i], concurrent);
        if (before) before[i] = was;
        fresh += !was;
    }
    if (!concurrent) f->items += fresh;
    *done = n;
    return SEEN_OK;
}

static uint32_t bloom_touches(const seen_filter *f, seen_hash h, uint64_t *at)
{
    const struct bloom *b = peek(f);
    struct seen_probe p = seen_probe_of(h, b->wide);
    for (uint32_t i = 0; i < b->hashes; i++)
        at[i] = seen_probe_position(p, i, b->bits) / 8;
    return b->hashes;
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status bloom_merge(seen_filter *into, const seen_filter *from,
                               seen_merge_op op)
{
    return seen_merge_words(into, self(into)->words, from, peek(from)->words,
                            op);
}

static bool bloom_equal(const seen_filter *a, const seen_filter *b)
{
    return seen_equal_words(a, peek(a)->words, b, peek(b)->words);
}

static void bloom_measure(const seen_filter *f, seen_info *info)
{
    const struct bloom *b = peek(f);
    uint64_t set = 0;
    for (uint64_t i = 0; i < count_words(f); i++)
        set += seen_popcount64(seen_atomic_load(&b->words[i]));
    info->bits_set = set;
    if (!info->counted) info->items = seen_plan_items(&f->plan, set);
    /* A view may have ones behind its last bit, too. */
    info->fpp_now = fmin(1, pow((double)set / (double)b->bits, b->hashes));
}

const struct seen_filter_ops seen_bloom_ops = {
    .kind = SEEN_BLOOM,
    .name = "bloom",
    .state_size = sizeof(struct bloom),
    .flags = SEEN_CONCURRENT | SEEN_KEYED,
    .plan = bloom_plan,
    .plan_fpp = bloom_plan_fpp,
    .plan_read = bloom_plan_read,
    .shape = bloom_shape,
    .part = bloom_part,
    .place = bloom_place,
    .parts_ok = bloom_parts_ok,
    .maybe = bloom_maybe,
    .visit = bloom_visit,
    .prefetch = bloom_prefetch,
    .maybe_many = bloom_maybe_many,
    .visit_many = bloom_visit_many,
    .touches = bloom_touches,
    .merge = bloom_merge,
    .equal = bloom_equal,
    .measure = bloom_measure,
};
