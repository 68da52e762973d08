/*
 * fuse.c - the smallest filter: built once from all keys, never changed.
 *
 * Every key has a fingerprint of f bits and three places (or four) in an array
 * of f-bit numbers, and the array is filled so that, for each key of the set,
 *
 *     array[h0] xor array[h1] xor array[h2]  =  fingerprint
 *
 * A stranger meets its fingerprint by chance, 1 in 2^f. Nothing is wasted on
 * half-empty bits: 1.13 f bits a key with three places, 1.08 f with four, where
 * a Bloom filter needs 1.44 f and the limit is f.
 *
 * The three places lie in three consecutive segments, a random place in each;
 * the first segment follows from the high bits of the hash:
 *
 *     | segment s    | segment s+1  | segment s+2  | ...
 *          h0              h1             h2
 *
 * Building peels: a place that only one key uses decides nothing for the
 * others, so that key can be settled last. Take it out, look for more such
 * places, until no key is left; then go back in reverse and give each its
 * number. The narrow window of segments makes that work almost always, and a
 * new seed is tried where it does not, at most 100 times.
 *
 * Worked example: one million keys at 0.1 %: f = 10, segments of 4096 places,
 * 1.13 million places, 11.3 bits a key.
 *
 * Memory while building: 17 bytes a key for the hashes and the order of
 * peeling, 17 bytes a place: 36 bytes a key beside the filter, and up to 8 more
 * where the keys came one by one (api/build.c). The hashes come sorted: that
 * finds duplicates, and lets the peeling go through memory in order.
 *
 * Choose it for sets that do not change: block lists, tables on disk, filters
 * that are shipped. Graf, Lemire: Binary Fuse Filters, 2022.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "bits/packed.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/reduce.h"

#include <math.h>
#include <string.h>

#define MIN_WIDTH    4
#define MAX_WIDTH    32
#define MAX_ATTEMPTS 100
#define ITEMS_MAX    ((uint64_t)1 << 40)
#define RING         16
#define LOG_SEGMENT  18
#define MAX_SEGMENT  ((uint64_t)1 << LOG_SEGMENT)

struct fuse {
    seen_filter common; /* .items: different keys */
    uint8_t *slots;
    uint64_t seed;          /* 0: hashes are used as they are */
    uint64_t starts;        /* places h0 may be: whole segments */
    uint64_t segment;       /* places of a segment, a power of two */
    uint32_t width, places; /* bits of a slot; places of a key */
};

static struct fuse *self(seen_filter *f)
{
    return (struct fuse *)f;
}

static const struct fuse *peek(const seen_filter *f)
{
    return (const struct fuse *)f;
}

/* ---- Plan --------------------------------------------------------------- */

struct shape {
    uint64_t segment, starts, slots;
};

/* The paper's sizes: found by experiment there, good from 2 keys up. */
static struct shape shape_for(uint64_t n, uint32_t places)
{
    double keys = n < 2 ? 2 : (double)n;
    double log_segment = places == 3 ? log(keys) / log(3.33) + 2.25
                                     : log(keys) / log(2.91) - 0.5;
    double factor = places == 3
                        ? fmax(1.125, 0.875 + 0.25 * log(1e6) / log(keys))
                        : fmax(1.075, 0.77 + 0.305 * log(6e5) / log(keys));
    uint64_t segment =
        (uint64_t)1 << (uint32_t)fmin(LOG_SEGMENT, fmax(2, floor(log_segment)));
    uint64_t wanted = (uint64_t)(keys * factor);
    uint64_t all = (wanted + segment - 1) / segment;
    uint64_t segments = all > places - 1 ? all - (places - 1) : 1;
    return (struct shape){segment, segments * segment,
                          (segments + places - 1) * segment};
}

static double rate_of(uint32_t width)
{
    return ldexp(1, -(int)width);
}

static double fuse_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (items > plan->items) return NAN; /* made for its keys and no more */
    return rate_of(plan->width) + seen_hash_fpp((double)items, 64);
}

/* Most keys whose slots of this width fit into so many bits. */
static uint64_t capacity_of(uint64_t bits, uint32_t width, uint32_t places)
{
    uint64_t low = 0, high = bits / width + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        bool fits = shape_for(middle, places).slots <= bits / width;
        *(fits ? &low : &high) = middle;
    }
    return low;
}

static void cost(seen_plan *plan)
{
    plan->lines = plan->hashes;
    plan->bytes = seen_packed_bytes(plan->bits / plan->width, plan->width) +
                  sizeof(struct fuse);
}

static seen_status fuse_plan(const seen_spec *spec, seen_plan *plan,
                             seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes && spec->hashes != 3 && spec->hashes != 4)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 3 or 4 in a fuse filter",
                         spec->hashes);
    if (spec->items > ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": expected at most 2^40 in a fuse filter",
                         spec->items);

    /* 1. The width, from the rate or from the bits there are. The hash takes
     * its share of the rate, more of it the more keys there are. */
    uint32_t places = spec->hashes ? spec->hashes : 3, width = MIN_WIDTH;
    uint64_t n = spec->items;
    if (spec->fpp > 0) {
        for (; width <= MAX_WIDTH; width++) {
            if (!spec->items) n = capacity_of(spec->bits, width, places);
            double whole = rate_of(width) + seen_hash_fpp((double)n, 64);
            if (whole <= spec->fpp) break;
        }
        if (width > MAX_WIDTH)
            return seen_fail(e, SEEN_INVALID, "fpp",
                             "fpp %g: expected at least 2.4e-10 in a fuse "
                             "filter, 32 bits a key",
                             spec->fpp);
    } else {
        uint64_t most = spec->bits / shape_for(n, places).slots;
        if (most < MIN_WIDTH) return seen_spec_too_few(spec, e);
        width = most < MAX_WIDTH ? (uint32_t)most : MAX_WIDTH;
    }

    /* 2. Does it fit? */
    if (n == 0) return seen_spec_too_few(spec, e);
    uint64_t slots = shape_for(n, places).slots;
    if (spec->bits && slots * width > spec->bits)
        return seen_spec_too_few(spec, e);

    /* 3. What it costs. */
    plan->width = width;
    plan->hashes = places;
    plan->items = n;
    plan->bits = slots * width;
    plan->hash_bits = spec->flags & SEEN_KEYED ? 128 : 64;
    plan->fpp = fuse_plan_fpp(plan, n);
    cost(plan);
    return SEEN_OK;
}

static bool fuse_plan_read(seen_plan *plan)
{
    if (plan->width < MIN_WIDTH || plan->width > MAX_WIDTH ||
        (plan->hashes != 3 && plan->hashes != 4) || plan->bits == 0 ||
        plan->bits > SEEN_MAX_BITS || plan->bits % plan->width ||
        plan->items > ITEMS_MAX)
        return false;
    cost(plan);
    return true;
}

/* ---- Places ------------------------------------------------------------- */

SEEN_INLINE uint64_t seeded(const struct fuse *f, uint64_t hash)
{
    return f->seed ? seen_mix64(hash + f->seed) : hash;
}

/* Places of a seeded hash. The first takes its high bits; each of the others
 * xors 18 of the low bits into its place in the segments that follow. */
SEEN_INLINE void places_of(const struct fuse *f, uint64_t x, uint64_t at[4])
{
    const uint64_t mask = f->segment - 1;
    at[0] = seen_reduce(x, f->starts);
    if (f->places == 3) {
        at[1] = (at[0] + f->segment) ^ ((x >> 18) & mask);
        at[2] = (at[0] + 2 * f->segment) ^ (x & mask);
    } else {
        at[1] = (at[0] + f->segment) ^ ((x >> 36) & mask);
        at[2] = (at[0] + 2 * f->segment) ^ ((x >> 18) & mask);
        at[3] = (at[0] + 3 * f->segment) ^ (x & mask);
    }
}

SEEN_INLINE uint32_t print_of(const struct fuse *f, uint64_t x)
{
    return (uint32_t)(x * SEEN_GOLDEN >> (64 - f->width));
}

SEEN_INLINE uint32_t slot_at(const struct fuse *f, uint64_t i)
{
    return seen_packed_get(f->slots, f->width, i);
}

/* ---- Build -------------------------------------------------------------- */

/* What peeling works on. A place counts its keys and xors their hashes, so the
 * last key left is there by itself. */
struct peeling {
    uint64_t slots;
    uint64_t *hash;   /* of each place */
    uint8_t *count;   /* of each place: 4 * keys + xor of which place it is */
    uint64_t *order;  /* hashes, in the order they were peeled */
    uint8_t *decided; /* by which of its places each was */
};

/* True if every key found a place of its own. */
static bool peel(const struct fuse *f, struct peeling *p,
                 const uint64_t *hashes, uint64_t n, uint64_t *queue)
{
    uint64_t at[4];
    memset(p->hash, 0, p->slots * sizeof *p->hash);
    memset(p->count, 0, p->slots);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = seeded(f, hashes[i]);
        places_of(f, x, at);
        for (uint32_t j = 0; j < f->places; j++) {
            if (p->count[at[j]] >= 252) return false; /* a crowd: other seed */
            p->count[at[j]] += 4;
            p->count[at[j]] ^= (uint8_t)j;
            p->hash[at[j]] ^= x;
        }
    }

    uint64_t waiting = 0, done = 0;
    for (uint64_t i = 0; i < p->slots; i++)
        if (p->count[i] >> 2 == 1) queue[waiting++] = i;
    while (waiting > 0) {
        uint64_t place = queue[--waiting];
        if (p->count[place] >> 2 != 1) continue;
        uint64_t x = p->hash[place];
        uint32_t mine = p->count[place] & 3;
        p->order[done] = x;
        p->decided[done++] = (uint8_t)mine;
        places_of(f, x, at);
        for (uint32_t j = 0; j < f->places; j++) {
            p->count[at[j]] -= 4;
            p->count[at[j]] ^= (uint8_t)j;
            p->hash[at[j]] ^= x;
            if (p->count[at[j]] >> 2 == 1) queue[waiting++] = at[j];
        }
    }
    return done == n;
}

/* Back through the peeling: each key's own place makes its xor right. */
static void assign(struct fuse *f, const struct peeling *p, uint64_t n)
{
    for (uint64_t i = n; i-- > 0;) {
        uint64_t at[4];
        places_of(f, p->order[i], at);
        uint32_t value = print_of(f, p->order[i]);
        for (uint32_t j = 0; j < f->places; j++)
            if (j != p->decided[i]) value ^= slot_at(f, at[j]);
        seen_packed_set(f->slots, f->width, at[p->decided[i]], value);
    }
}

static seen_status fuse_build(seen_filter *common, const uint64_t *hashes,
                              uint64_t n, uint64_t *spare)
{
    struct fuse *f = self(common);
    const seen_allocator *a = &common->allocator;
    struct peeling p = {.slots = common->plan.bits / f->width};
    uint64_t slot_bytes = p.slots * 8;
    p.hash = seen_alloc_zeroed(a, slot_bytes);
    p.count = seen_alloc_zeroed(a, p.slots);
    p.decided = seen_alloc_zeroed(a, n);
    /* A place waits once: keys only leave it, and it counts one only once. */
    uint64_t *queue = seen_alloc_zeroed(a, slot_bytes);
    p.order = spare;

    seen_status status = SEEN_NOMEM;
    if (p.hash && p.count && p.decided && queue) {
        status = SEEN_FULL; /* bounded, and practically out of reach */
        for (uint64_t attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
            f->seed = attempt ? seen_mix64(attempt) : 0;
            if (!peel(f, &p, hashes, n, queue)) continue;
            assign(f, &p, n);
            common->items = n;
            status = SEEN_OK;
            break;
        }
    }
    seen_release(a, queue, slot_bytes);
    seen_release(a, p.decided, n);
    seen_release(a, p.count, p.slots);
    seen_release(a, p.hash, slot_bytes);
    return status;
}

/* ---- Life --------------------------------------------------------------- */

static uint64_t payload_bytes(const seen_filter *f)
{
    return seen_packed_bytes(f->plan.bits / f->plan.width, f->plan.width);
}

static void fuse_shape(seen_filter *common)
{
    struct fuse *f = self(common);
    struct shape shape = shape_for(common->plan.items, common->plan.hashes);
    f->segment = shape.segment;
    f->starts = shape.starts;
    f->width = common->plan.width;
    f->places = common->plan.hashes;
}

static bool fuse_part(const seen_filter *f, uint32_t index,
                      struct seen_part *part)
{
    *part = (struct seen_part){peek(f)->slots, payload_bytes(f), false};
    return index == 0;
}

static void fuse_place(seen_filter *f, uint32_t index, void *at)
{
    (void)index;
    self(f)->slots = at;
}

/* Seed, segment and starts: the last two follow from n, but through logarithms
 * that another machine may round in another way. */
#define STATE_BYTES 24

static size_t fuse_save_state(const seen_filter *f, uint8_t *to)
{
    seen_put_le64(to, peek(f)->seed);
    seen_put_le64(to + 8, peek(f)->segment);
    seen_put_le64(to + 16, peek(f)->starts);
    return STATE_BYTES;
}

static seen_status fuse_load_state(seen_filter *common, const uint8_t *from,
                                   size_t len)
{
    struct fuse *f = self(common);
    if (len != STATE_BYTES) return SEEN_CORRUPT;
    f->seed = seen_get_le64(from);
    f->segment = seen_get_le64(from + 8);
    f->starts = seen_get_le64(from + 16);
    uint64_t slots = common->plan.bits / f->width;
    bool right = f->segment >= 1 && f->segment <= MAX_SEGMENT &&
                 (f->segment & (f->segment - 1)) == 0 &&
                 f->starts >= f->segment && f->starts % f->segment == 0 &&
                 f->starts <= slots &&
                 f->starts + (f->places - 1) * f->segment == slots &&
                 common->items <= slots;
    return right ? SEEN_OK : SEEN_CORRUPT;
}

static bool fuse_parts_ok(const seen_filter *f)
{
    return seen_packed_tail_ok(peek(f)->slots, f->plan.bits);
}

/* ---- Keys --------------------------------------------------------------- */

SEEN_INLINE bool matches(const struct fuse *f, seen_hash h)
{
    uint64_t x = seeded(f, h.lo), at[4];
    places_of(f, x, at);
    uint32_t found = slot_at(f, at[0]) ^ slot_at(f, at[1]) ^ slot_at(f, at[2]);
    if (f->places == 4) found ^= slot_at(f, at[3]);
    return found == print_of(f, x);
}

static bool fuse_maybe(const seen_filter *f, seen_hash h)
{
    return f->items > 0 && matches(peek(f), h);
}

static seen_status fuse_visit(seen_filter *f, seen_hash h, bool *before)
{
    (void)f, (void)h, (void)before;
    return SEEN_UNSUPPORTED;
}

static void prefetch(const struct fuse *f, seen_hash h)
{
    uint64_t at[4];
    places_of(f, seeded(f, h.lo), at);
    for (uint32_t j = 0; j < f->places; j++)
        seen_prefetch_read(f->slots + at[j] * f->width / 8);
}

static bool ring(const seen_filter *f)
{
    return f->plan.bits / 8 > SEEN_RING_FROM_BYTES;
}

static void fuse_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    if (!ring(f)) return;
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch(peek(f), h[i]);
}

static void fuse_maybe_many(const seen_filter *f, const seen_hash *h, size_t n,
                            size_t ahead, bool *answers)
{
    const struct fuse *fuse = peek(f);
    size_t known = ring(f) ? n + ahead : 0;
    bool any = f->items > 0;
    for (size_t i = 0; i < n; i++) {
        if (i + RING < known) prefetch(fuse, h[i + RING]);
        answers[i] = any & matches(fuse, h[i]);
    }
}

static seen_status fuse_visit_many(seen_filter *f, const seen_hash *h, size_t n,
                                   size_t ahead, bool *before, size_t *done)
{
    (void)f, (void)h, (void)ahead, (void)before;
    *done = 0;
    return n ? SEEN_UNSUPPORTED : SEEN_OK;
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status fuse_merge(seen_filter *into, const seen_filter *from,
                              seen_merge_op op)
{
    (void)into, (void)from, (void)op;
    return SEEN_UNSUPPORTED;
}

static bool fuse_equal(const seen_filter *a, const seen_filter *b)
{
    return a->items == b->items && a->plan.bits == b->plan.bits &&
           a->plan.width == b->plan.width && a->plan.hashes == b->plan.hashes &&
           peek(a)->seed == peek(b)->seed &&
           memcmp(peek(a)->slots, peek(b)->slots, payload_bytes(a)) == 0;
}

static void fuse_clear(seen_filter *f)
{
    seen_parts_clear(f);
    self(f)->seed = 0;
}

static void fuse_measure(const seen_filter *f, seen_info *info)
{
    info->bits_set = f->items * f->plan.width;
    info->fpp_now = f->items ? fuse_plan_fpp(&f->plan, f->items) : 0;
}

const struct seen_filter_ops seen_fuse_ops = {
    .kind = SEEN_FUSE,
    .name = "fuse",
    .state_size = sizeof(struct fuse),
    .flags = SEEN_KEYED,
    .plan = fuse_plan,
    .plan_fpp = fuse_plan_fpp,
    .plan_read = fuse_plan_read,
    .shape = fuse_shape,
    .part = fuse_part,
    .place = fuse_place,
    .save_state = fuse_save_state,
    .load_state = fuse_load_state,
    .parts_ok = fuse_parts_ok,
    .build = fuse_build,
    .maybe = fuse_maybe,
    .visit = fuse_visit,
    .prefetch = fuse_prefetch,
    .maybe_many = fuse_maybe_many,
    .visit_many = fuse_visit_many,
    .merge = fuse_merge,
    .equal = fuse_equal,
    .clear = fuse_clear,
    .measure = fuse_measure,
};
