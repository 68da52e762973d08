/*
 * cuckoo.c - the filter that can forget: fingerprints in buckets of four.
 *
 * A key has a fingerprint of f bits and two buckets it may lie in. Either
 * bucket follows from the other and the fingerprint alone, so an entry can be
 * moved out of the way without knowing its key:
 *
 *     i1 = hash scaled to the number of buckets
 *     i2 = spread(fingerprint) - i1   (modulo the number of buckets)
 *
 *     bucket i1  | 9a3 | 017 | ... | ... |        empty slots hold 0
 *     bucket i2  | 44c | 9a3 | 120 | 0f1 |
 *
 * The subtraction is its own inverse for any number of buckets; the usual
 * exclusive or would need a power of two and waste up to half of the memory.
 *
 * Adding: an empty slot in either bucket, or else the shortest chain of moves
 * that makes one, found breadth first among at most 512 buckets before anything
 * is touched. So a failed add changes nothing, the same adds in the same order
 * give the same bytes on every machine, and 94 % of the slots can be in use
 * before the filter is full.
 *
 * A wrong "maybe" needs one of the 8 slots looked at to hold the fingerprint by
 * chance: about 8 * 0.94 / 2^f. Worked example: 1 million keys at 0.1 %: f = 13,
 * 266,461 buckets, 13.9 bits a key; 14.4 in a classic filter, which cannot
 * remove.
 *
 * It is a multiset: a key added twice must be removed twice, and at most eight
 * copies of one fingerprint fit (then: full). **Removing a key that was never
 * added can remove another key's entry**, if their fingerprints and buckets
 * agree, and that other key is then wrongly "never". Only the caller can know
 * what was added; keyed hashing keeps strangers from arranging such pairs.
 *
 * Fan, Andersen, Kaminsky, Mitzenmacher: Cuckoo Filter, 2014.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "bits/packed.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/reduce.h"

#include <math.h>
#include <string.h>

#define SLOTS     4 /* of a bucket */
#define MIN_WIDTH 4
#define MAX_WIDTH 32
#define LOAD      0.94 /* of the slots that are promised to fill */
#define SEARCH    512  /* buckets looked at before giving up */
#define RING      16
#define SPREAD    0xd1b54a32d192ed03u /* odd, no pattern */

struct cuckoo {
    seen_filter common; /* .items: slots in use */
    uint8_t *slots;
    uint64_t buckets;
    uint32_t width;
    bool wide;
    bool swar;     /* a bucket fits one word: compare its slots at once, with */
    uint64_t ones; /* the lowest bit of each slot, */
    uint64_t tops; /* the highest bit of each, */
    uint64_t mask; /* and all bits of all four */
};

static struct cuckoo *self(seen_filter *f)
{
    return (struct cuckoo *)f;
}

static const struct cuckoo *peek(const seen_filter *f)
{
    return (const struct cuckoo *)f;
}

/* ---- Plan --------------------------------------------------------------- */

/* Small filters fill less evenly, and one in some thousands would be full a few
 * keys early: they get some slots more than n / LOAD. */
static double spare_slots(double n)
{
    return 2 * sqrt(n) + 12;
}

static double buckets_for(double n)
{
    return ceil((n / LOAD + spare_slots(n)) / SLOTS);
}

static double capacity_of(double buckets)
{
    double slots = buckets * SLOTS;
    return floor(fmax(1, (slots - spare_slots(slots)) * LOAD));
}

static double rate_of(double items, double buckets, uint32_t width)
{
    double load = fmin(1, items / (buckets * SLOTS));
    double one = 1 / (ldexp(1, (int)width) - 1);
    return -expm1(2 * SLOTS * load * log1p(-one));
}

static uint64_t slots_bytes(const seen_plan *plan)
{
    return seen_packed_bytes(plan->bits / plan->width, plan->width);
}

static uint64_t buckets_of(const seen_plan *plan)
{
    return plan->bits / plan->width / SLOTS;
}

static double cuckoo_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (items > buckets_of(plan) * SLOTS) return NAN; /* full before that */
    double fpp = rate_of((double)items, (double)buckets_of(plan), plan->width);
    return fmin(1, fpp + seen_hash_fpp((double)items, plan->hash_bits));
}

/* From 5 bits on: fifteen fingerprints are too few to fill buckets evenly. Who
 * insists on items and bits can have 4. */
static uint32_t width_for(double fpp)
{
    uint32_t width = MIN_WIDTH + 1;
    while (width <= MAX_WIDTH && rate_of(LOAD * SLOTS, 1, width) > fpp)
        width++;
    return width;
}

static void cost(seen_plan *plan)
{
    plan->hashes = 2 * SLOTS;
    plan->lines = 2;
    plan->bytes = slots_bytes(plan) + sizeof(struct cuckoo);
}

static seen_status cuckoo_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: not for a cuckoo filter: leave it out",
                         spec->hashes);

    /* 1. The width, from the rate or from the bits there are. */
    double n = (double)spec->items, bits = (double)spec->bits;
    uint32_t width;
    if (spec->fpp > 0) {
        width = width_for(spec->fpp - n * 0x1p-64);
        if (width > MAX_WIDTH)
            return seen_fail(e, SEEN_INVALID, "fpp",
                             "fpp %g: expected at least 1.8e-9 in a cuckoo "
                             "filter, whose fingerprints have 32 bits",
                             spec->fpp);
    } else {
        width = (uint32_t)fmin(MAX_WIDTH, bits / (SLOTS * buckets_for(n)));
        if (width < MIN_WIDTH) return seen_spec_too_few(spec, e);
    }

    /* 2. The buckets, from the items or from the bits. */
    double buckets = spec->items ? buckets_for(n) : floor(bits / SLOTS / width);
    if (spec->bits && !spec->items) n = capacity_of(buckets);
    if (buckets < 1 || (spec->bits && buckets * SLOTS * width > bits))
        return seen_spec_too_few(spec, e);
    if (buckets * SLOTS * width > (double)SEEN_MAX_BITS)
        return seen_spec_too_large(spec, e);

    /* 3. What it costs, and the hash. */
    plan->width = width;
    plan->bits = (uint64_t)buckets * SLOTS * width;
    plan->items = (uint64_t)n;
    plan->hash_bits =
        seen_hash_bits_for(n, spec->fpp > 0 ? spec->fpp : 1, spec);
    if (buckets > UINT32_MAX) plan->hash_bits = 128;
    plan->fpp = cuckoo_plan_fpp(plan, plan->items);
    cost(plan);
    return SEEN_OK;
}

static bool cuckoo_plan_read(seen_plan *plan)
{
    if (plan->width < MIN_WIDTH || plan->width > MAX_WIDTH || plan->bits == 0 ||
        plan->bits > SEEN_MAX_BITS || plan->bits % (SLOTS * plan->width) ||
        (plan->hash_bits == 64 && buckets_of(plan) > UINT32_MAX) ||
        plan->hashes != 2 * SLOTS)
        return false;
    cost(plan);
    return true;
}

/* ---- Buckets ------------------------------------------------------------ */

struct entry {
    uint64_t bucket; /* one of the two */
    uint32_t print;  /* 1 .. 2^width - 1 */
};

SEEN_INLINE struct entry entry_of(const struct cuckoo *c, seen_hash h)
{
    uint32_t low = (uint32_t)(c->wide ? h.hi : h.lo);
    uint64_t prints = ((uint64_t)1 << c->width) - 1;
    return (struct entry){seen_reduce(h.lo, c->buckets),
                          1 + (uint32_t)(low * prints >> 32)};
}

SEEN_INLINE uint64_t other_bucket(const struct cuckoo *c, struct entry e)
{
    /* Not linear in the fingerprint: with a plain product, the distance of two
     * moves would depend on the difference of two fingerprints only, and
     * chains would run in circles. */
    uint64_t p = e.print;
    uint64_t spread = seen_reduce(p * (p * SEEN_GOLDEN + SPREAD), c->buckets);
    return spread >= e.bucket ? spread - e.bucket
                              : spread + c->buckets - e.bucket;
}

static uint32_t get(const struct cuckoo *c, uint64_t bucket, uint32_t slot)
{
    return seen_packed_get(c->slots, c->width, bucket * SLOTS + slot);
}

static void set(struct cuckoo *c, uint64_t bucket, uint32_t slot,
                uint32_t print)
{
    seen_packed_set(c->slots, c->width, bucket * SLOTS + slot, print);
}

/* The first slot of a bucket that holds `print` (0: that is empty), or SLOTS. */
static uint32_t slot_with(const struct cuckoo *c, uint64_t bucket,
                          uint32_t print)
{
    uint32_t slot = 0;
    while (slot < SLOTS && get(c, bucket, slot) != print)
        slot++;
    return slot;
}

/*
 * Is it in either bucket? Up to 14 bits a bucket fits one word. Exclusive or
 * with four copies of the fingerprint leaves a slot 0 where they agree, and
 * (x - ones) & ~x has a top bit set exactly if some slot is 0. Both buckets
 * always: guessing which one would be wrong half of the time.
 */
SEEN_INLINE uint64_t zero_slots(const struct cuckoo *c, uint64_t bucket,
                                uint64_t copies)
{
    uint64_t at = bucket * SLOTS * c->width;
    uint64_t x = (seen_packed_bits(c->slots, at) & c->mask) ^ copies;
    return (x - c->ones) & ~x & c->tops;
}

SEEN_INLINE bool has(const struct cuckoo *c, struct entry e)
{
    uint64_t other = other_bucket(c, e);
    if (!c->swar)
        return slot_with(c, e.bucket, e.print) < SLOTS ||
               slot_with(c, other, e.print) < SLOTS;
    uint64_t copies = e.print * c->ones;
    return (zero_slots(c, e.bucket, copies) | zero_slots(c, other, copies)) !=
           0;
}

static uint32_t copies(const struct cuckoo *c, struct entry e)
{
    uint64_t other = other_bucket(c, e);
    uint32_t n = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        n += get(c, e.bucket, slot) == e.print;
        n += other != e.bucket && get(c, other, slot) == e.print;
    }
    return n;
}

/* ---- Adding ------------------------------------------------------------- */

/* A bucket on the way to an empty slot: reached by moving the entry in `slot`
 * of the bucket `from`, an index into the search; -1 for the two to start at. */
struct step {
    uint64_t bucket;
    int16_t from;
    uint8_t slot;
};

/* Would the chain that ends in this step move the same slot twice? */
static bool moves_twice(const struct step *steps, int at)
{
    for (; steps[at].from >= 0; at = steps[at].from)
        for (int i = steps[at].from; steps[i].from >= 0; i = steps[i].from)
            if (steps[at].slot == steps[i].slot &&
                steps[steps[at].from].bucket == steps[steps[i].from].bucket)
                return true;
    return false;
}

static bool has_empty(const struct cuckoo *c, uint64_t bucket)
{
    return c->swar ? zero_slots(c, bucket, 0) != 0
                   : slot_with(c, bucket, 0) < SLOTS;
}

/* With so few empty slots a search ends in vain more and more often, having
 * looked at all the buckets it may: then only the two of the key count. Otherwise
 * each key that a full filter refuses costs as much as a hundred that it takes. */
static bool is_crowded(const struct cuckoo *c)
{
    uint64_t slots = c->buckets * SLOTS;
    return c->common.items > slots - slots / 64;
}

/* Breadth first: the index of a step whose bucket has an empty slot, or -1. */
static int find_room(const struct cuckoo *c, struct entry e, struct step *steps)
{
    const int most = is_crowded(c) ? 2 : SEARCH;
    int n = 0;
    steps[n++] = (struct step){e.bucket, -1, 0};
    steps[n++] = (struct step){other_bucket(c, e), -1, 0};
    for (int i = 0; i < n; i++) {
        if (has_empty(c, steps[i].bucket) && !moves_twice(steps, i)) return i;
        for (uint32_t slot = 0; slot < SLOTS && n < most; slot++) {
            struct entry there = {steps[i].bucket,
                                  get(c, steps[i].bucket, slot)};
            if (!there.print) continue;
            steps[n++] = (struct step){other_bucket(c, there), (int16_t)i,
                                       (uint8_t)slot};
        }
    }
    return -1;
}

static seen_status insert(struct cuckoo *c, struct entry e)
{
    struct step steps[SEARCH];
    int at = find_room(c, e, steps);
    if (at < 0) return SEEN_FULL;
    uint32_t room = slot_with(c, steps[at].bucket, 0);
    for (; steps[at].from >= 0; at = steps[at].from) {
        uint64_t from = steps[steps[at].from].bucket;
        set(c, steps[at].bucket, room, get(c, from, steps[at].slot));
        room = steps[at].slot;
    }
    set(c, steps[at].bucket, room, e.print);
    c->common.items++;
    return SEEN_OK;
}

/* ---- Life --------------------------------------------------------------- */

static void cuckoo_shape(seen_filter *f)
{
    struct cuckoo *c = self(f);
    c->buckets = buckets_of(&f->plan);
    c->width = f->plan.width;
    c->wide = f->hash->bits == 128;
    c->swar = SLOTS * c->width <= 56;
    if (c->swar) {
        c->mask = ((uint64_t)1 << SLOTS * c->width) - 1;
        c->ones = c->mask / (((uint64_t)1 << c->width) - 1);
        c->tops = c->ones << (c->width - 1);
    }
}

static bool cuckoo_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->slots, slots_bytes(&f->plan), false};
    return index == 0;
}

static void cuckoo_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->slots = at;
}

/* As many entries as it says. */
static bool cuckoo_parts_ok(const seen_filter *f)
{
    const struct cuckoo *c = peek(f);
    if (!seen_packed_tail_ok(c->slots, f->plan.bits)) return false;
    uint64_t entries = 0;
    for (uint64_t i = 0; i < c->buckets; i++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            entries += get(c, i, slot) != 0;
    return entries == f->items;
}

/* ---- Keys --------------------------------------------------------------- */

static bool cuckoo_maybe(const seen_filter *f, seen_hash h)
{
    return has(peek(f), entry_of(peek(f), h));
}

static seen_status cuckoo_add(seen_filter *f, seen_hash h)
{
    return insert(self(f), entry_of(self(f), h));
}

static seen_status cuckoo_visit(seen_filter *f, seen_hash h, bool *before)
{
    struct entry e = entry_of(self(f), h);
    bool was = has(self(f), e);
    seen_status status = was ? SEEN_OK : insert(self(f), e);
    if (status == SEEN_OK) *before = was;
    return status;
}

static seen_status cuckoo_remove(seen_filter *f, seen_hash h)
{
    struct cuckoo *c = self(f);
    struct entry e = entry_of(c, h);
    uint32_t slot = slot_with(c, e.bucket, e.print);
    if (slot == SLOTS) {
        e.bucket = other_bucket(c, e);
        slot = slot_with(c, e.bucket, e.print);
    }
    if (slot == SLOTS) return SEEN_ABSENT;
    set(c, e.bucket, slot, 0);
    f->items--;
    return SEEN_OK;
}

static uint32_t cuckoo_count(const seen_filter *f, seen_hash h)
{
    return copies(peek(f), entry_of(peek(f), h));
}

static void prefetch_bucket(const struct cuckoo *c, uint64_t bucket)
{
    seen_prefetch_read(c->slots + bucket * SLOTS * c->width / 8);
}

static void prefetch(const struct cuckoo *c, seen_hash h)
{
    struct entry e = entry_of(c, h);
    prefetch_bucket(c, e.bucket);
    prefetch_bucket(c, other_bucket(c, e));
}

static bool ring(const seen_filter *f)
{
    return f->plan.bits / 8 > SEEN_RING_FROM_BYTES;
}

static void cuckoo_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    if (!ring(f)) return;
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch(peek(f), h[i]);
}

static void cuckoo_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    size_t known = ring(f) ? n + ahead : 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch(peek(f), h[i + RING]);
        answers[i] = cuckoo_maybe(f, h[i]);
    }
}

static seen_status cuckoo_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    size_t known = ring(f) ? n + ahead : 0, i = 0;
    seen_status status = SEEN_OK;
    for (; i < n; i++) {
        if (i + RING < known) prefetch(peek(f), h[i + RING]);
        bool was;
        status = before ? cuckoo_visit(f, h[i], &was) : cuckoo_add(f, h[i]);
        if (status != SEEN_OK) break;
        if (before) before[i] = was;
    }
    *done = i;
    return status;
}

/* ---- Whole filters ------------------------------------------------------ */

static bool same_shape(const seen_filter *a, const seen_filter *b)
{
    return a->plan.bits == b->plan.bits && a->plan.width == b->plan.width;
}

/* All entries of both, as a multiset; what does not fit changes nothing. */
static seen_status cuckoo_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    if (op != SEEN_UNION) return SEEN_UNSUPPORTED;
    if (!same_shape(into, from)) return SEEN_MISMATCH;
    struct cuckoo *a = self(into);
    const struct cuckoo *b = peek(from);
    uint64_t bytes = slots_bytes(&into->plan), items = into->items;
    uint8_t *backup = seen_alloc_zeroed(&into->allocator, bytes);
    if (!backup) return SEEN_NOMEM;
    memcpy(backup, a->slots, bytes);

    /* A filter merged with itself must not read what it has just added. */
    struct cuckoo source = *b;
    if (into == from) source.slots = backup;
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; i < source.buckets && status == SEEN_OK; i++)
        for (uint32_t slot = 0; slot < SLOTS && status == SEEN_OK; slot++) {
            struct entry e = {i, get(&source, i, slot)};
            if (e.print) status = insert(a, e);
        }
    if (status != SEEN_OK) {
        memcpy(a->slots, backup, bytes);
        into->items = items;
    }
    seen_release(&into->allocator, backup, bytes);
    return status;
}

/* The same entries the same number of times, in whichever of their buckets. */
static bool cuckoo_equal(const seen_filter *a, const seen_filter *b)
{
    if (!same_shape(a, b) || a->items != b->items) return false;
    const struct cuckoo *c = peek(a);
    for (uint64_t i = 0; i < c->buckets; i++)
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct entry e = {i, get(c, i, slot)};
            if (e.print && copies(c, e) != copies(peek(b), e)) return false;
        }
    return true;
}

static void cuckoo_measure(const seen_filter *f, seen_info *info)
{
    info->bits_set = f->items * f->plan.width;
    /* A payload that was not what its header says may count further. */
    uint64_t slots = buckets_of(&f->plan) * SLOTS;
    info->fpp_now = cuckoo_plan_fpp(&f->plan, seen_min64(f->items, slots));
}

const struct seen_filter_ops seen_cuckoo_ops = {
    .kind = SEEN_CUCKOO,
    .name = "cuckoo",
    .state_size = sizeof(struct cuckoo),
    .flags = SEEN_KEYED,
    .plan = cuckoo_plan,
    .plan_fpp = cuckoo_plan_fpp,
    .plan_read = cuckoo_plan_read,
    .shape = cuckoo_shape,
    .part = cuckoo_part,
    .place = cuckoo_place,
    .parts_ok = cuckoo_parts_ok,
    .maybe = cuckoo_maybe,
    .add = cuckoo_add,
    .visit = cuckoo_visit,
    .remove = cuckoo_remove,
    .count = cuckoo_count,
    .prefetch = cuckoo_prefetch,
    .maybe_many = cuckoo_maybe_many,
    .visit_many = cuckoo_visit_many,
    .merge = cuckoo_merge,
    .equal = cuckoo_equal,
    .measure = cuckoo_measure,
};
