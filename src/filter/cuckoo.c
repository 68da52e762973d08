/*
 * cuckoo.c - the filter that can forget: fingerprints in windows of two slots.
 *
 * A key has a fingerprint and two windows. A window is two neighbouring slots, and
 * every slot but the first and the last belongs to two windows:
 *
 *     slot      0     1     2     3     4     5     6     7     8
 *            |     | 09b | 2e4 | 09b |     | 117 | 0d6 | 2e3 |     |
 *     window  '--0--'     '--2--'     '--4--'     '--6--'
 *                   '--1--'     '--3--'     '--5--'     '--7--'
 *
 * A fingerprint is an odd number. The first slot of a window holds it as it is, the
 * second one plus 1, and an empty slot 0. So the lowest bit of a slot says to which
 * of its windows the entry belongs: 2e4 is fingerprint 2e3 in window 1, 2e3 is the
 * same in window 7, and 0d6 is 0d5 in window 5. A question compares the first slot of
 * each window with the fingerprint and the second with one more.
 *
 * Either window follows from the other and the fingerprint alone, so an entry can
 * be moved without knowing its key:
 *
 *     a = hash scaled to the number of windows
 *     b = spread(fingerprint) - a      modulo the number of windows
 *
 * The subtraction is its own inverse. The number of windows is even and the spread
 * odd, so one window of a key is even and the other odd: never the same one, which
 * would leave the key two slots instead of four (three, where its windows overlap).
 *
 * Adding: an empty slot of either window, or else the shortest chain of moves that
 * makes one, found breadth first before anything is touched. So a failed add
 * changes nothing, and the same adds in the same order give the same bytes on
 * every machine.
 *
 * A wrong "maybe" needs one of n entries to have the stranger's fingerprint, of
 * 2^(w-1) - 1, and one of its windows: n * 2 / (windows * (2^(w-1) - 1)), which
 * is about 4 * load / 2^w. Worked example: a million keys at 1 %. Slots of 9 bits
 * give 4 * 0.94 / 510 = 0.74 %; 1,063,861 slots and a table of 77 lines are 9.61
 * bits a key. Buckets of four slots, in which cuckoo filters began, are as full and
 * look at eight slots for a key, which takes a tenth bit; buckets of two would be
 * full at 90 %: windows fill because they overlap. Semi-sorted buckets, four slots
 * without one bit each, take as much as windows and are slower.
 *
 * It is a multiset: a key added twice must be removed twice. Copies lie in slots as
 * other entries do. One that finds no room while another is there is counted in a
 * table beside the slots:
 *
 *     words 0, 1        copies in the table; entries, at most 4 lines - 1
 *     words 2i, 2i + 1  window, the lower of the two; fingerprint << 32 | copies;
 *                       in order, zeros behind them
 *
 * A question need not look into the table, because what is in there is in the slots
 * as well; removing takes from the table first. It has a 256th of the bits, entries
 * for one key in 3000 or so; when it is full, so is the filter for another copy. So
 * one key that is added again and again fills four slots, and nothing grows. But
 * copies are dear where many keys have them: four copies lock both windows of a key,
 * and others that need those find no room (docs/MATH.md has figures).
 *
 * **Removing a key that was never added can remove another key's entry**, if their
 * fingerprints and windows agree, and that other key is then wrongly "never". Only
 * the caller can know what was added; keyed hashing keeps strangers from arranging
 * such pairs.
 *
 * More slots than needed make adds faster: at a load of 90 % they take half of the
 * time. A spec that gives items, fpp and more bits than necessary gets them all.
 *
 * Schmitz, Zentgraf, Rahmann: Smaller and More Flexible Cuckoo Filters, 2025
 * (arXiv 2505.05847), after Fan, Andersen, Kaminsky, Mitzenmacher: Cuckoo Filter,
 * 2014.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "bits/packed.h"
#include "filter/filter.h"
#include "plan/sizing.h"
#include "probe/reduce.h"

#include <math.h>
#include <string.h>

#define MIN_WIDTH  6 /* with 5 bits, 15 fingerprints, it is full at 66 % */
#define RATE_WIDTH 8 /* narrower ones may be full early: docs/MATH.md */
#define MAX_WIDTH  32
#define PAIR_WIDTH 28   /* both slots of a window in one word */
#define LOAD       0.94 /* of the slots that are promised to fill */
#define HASHES     4    /* slots of a key */
#define RING       16
#define STEP       8                   /* keys at a time: divides RING */
#define SPREAD     0xd1b54a32d192ed03u /* odd, no pattern */

struct cuckoo {
    seen_filter common; /* .items: slots in use, and copies in the table */
    uint8_t *slots;
    uint64_t *table;
    uint64_t windows; /* one less than slots */
    uint64_t prints;  /* how many fingerprints there are */
    uint64_t mask;    /* the bits of a slot */
    uint32_t width;
    bool wide;
    bool pairs;    /* both slots of a window are in one word */
    uint64_t ones; /* the lowest bit of either, */
    uint64_t tops; /* and the highest */
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

#define LINE_BITS  512
#define LINE_WORDS 8

/* The lines of the table, as part of the bits of a filter: a 256th, at least four,
 * and at most 8192, half a megabyte, because a new entry moves those behind it. */
static uint64_t table_lines(uint64_t bits)
{
    return seen_min64(4 + (bits >> 17), 8192);
}

static uint64_t table_bits(uint64_t bits)
{
    return LINE_BITS * table_lines(bits);
}

static uint64_t slots_of(const seen_plan *plan)
{
    return (plan->bits - table_bits(plan->bits)) / plan->width;
}

/* Slots and table. The table grows with the bits: this goes up until it fits. */
static uint64_t bits_for(uint64_t slots, uint32_t width)
{
    uint64_t bits = 0, before;
    do {
        before = bits;
        bits = slots * width + table_bits(before);
    } while (bits != before);
    return bits;
}

/* The largest odd number up to x, 0 below 1. */
static double odd_within(double x)
{
    return x < 1 ? 0 : 2 * floor((x - 1) / 2) + 1;
}

/*
 * Slots for n keys: a load of 94 % and some to spare, so that one filter in some
 * millions at most refuses one of its keys.
 *
 * - Few keys: four of them may want the same three slots. That happens in 256 (n
 *   over 4) / windows^7 of all filters, and there are a few more ways like it. 14
 *   sqrt(n) + 0.4 n slots keep it below 2e-7.
 * - Many keys: how full a filter can be varies by a few keys, less than 30.
 *
 * `SEEN_TEST_SCALE=100 build/tests/test_cuckoo` counts refusals.
 */
static double spare_slots(double n)
{
    double some = 14 * sqrt(n);
    return fmax(some - n * 2 / 3, fmin(some, 30));
}

static double slots_for(double n)
{
    return odd_within(ceil(n / LOAD + spare_slots(n)) + 1);
}

static double slots_within(double bits, uint32_t width)
{
    return odd_within((bits - (double)table_bits((uint64_t)bits)) / width);
}

/* Most keys for so many slots; 0: none. */
static double capacity_of(double slots)
{
    double low = 0, high = slots;
    while (high - low > 1) {
        double middle = floor((low + high) / 2);
        *(slots_for(middle) <= slots ? &low : &high) = middle;
    }
    return low;
}

static double rate_of(double n, double slots, uint32_t width)
{
    double prints = ldexp(1, (int)width - 1) - 1;
    return -expm1(n * log1p(-2 / (prints * (slots - 1))));
}

static double cuckoo_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (plan->width == 0 || plan->bits < table_bits(plan->bits)) return NAN;
    uint64_t slots = slots_of(plan);
    if (items > slots) return NAN; /* full before that */
    double fpp = rate_of((double)items, (double)slots, plan->width);
    return fmin(1, fpp + seen_hash_fpp((double)items, plan->hash_bits));
}

struct shape {
    double n, slots;
    uint32_t width;
};

/* The narrowest slots that keep the rate: as many as the keys need, or as fit
 * into the bits. The width is beyond MAX_WIDTH if there are none. */
static struct shape shape_for_rate(const seen_spec *spec)
{
    struct shape s = {.width = RATE_WIDTH};
    for (; s.width <= MAX_WIDTH; s.width++) {
        s.n = (double)spec->items;
        s.slots = spec->bits ? slots_within((double)spec->bits, s.width)
                             : slots_for(s.n);
        if (!spec->items) s.n = capacity_of(s.slots);
        if (s.n < 1 || s.slots < slots_for(s.n)) break;
        double fpp = rate_of(s.n, s.slots, s.width);
        if (fpp + seen_hash_fpp(s.n, 64) <= spec->fpp) break;
    }
    return s;
}

/* The widest slots that are enough for the keys. The width is below MIN_WIDTH if
 * there are none. */
static struct shape shape_for_bits(const seen_spec *spec)
{
    struct shape s = {.n = (double)spec->items, .width = MAX_WIDTH};
    for (; s.width >= MIN_WIDTH; s.width--) {
        s.slots = slots_within((double)spec->bits, s.width);
        if (s.slots >= slots_for(s.n)) break;
    }
    return s;
}

static void cost(seen_plan *plan)
{
    plan->hashes = HASHES;
    plan->lines = 2;
    plan->bytes = seen_packed_bytes(slots_of(plan), plan->width) +
                  table_lines(plan->bits) * SEEN_LINE_SIZE +
                  sizeof(struct cuckoo);
}

static seen_status cuckoo_plan(const seen_spec *spec, seen_plan *plan,
                               seen_error *e)
{
    if (seen_spec_needs_two(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->hashes)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: not for a cuckoo filter: leave it out",
                         spec->hashes);

    /* 1. The slots and their width. */
    struct shape s =
        spec->fpp > 0 ? shape_for_rate(spec) : shape_for_bits(spec);
    if (s.width > MAX_WIDTH)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: expected at least 8.8e-10 in a cuckoo "
                         "filter, whose slots have at most 32 bits",
                         spec->fpp);
    if (s.width < MIN_WIDTH || s.n < 1 || s.slots < slots_for(s.n))
        return seen_spec_too_few(spec, e);
    if (s.slots * s.width > (double)SEEN_MAX_BITS)
        return seen_spec_too_large(spec, e);

    /* 2. What it costs, and the hash. */
    plan->width = s.width;
    plan->bits = bits_for((uint64_t)s.slots, s.width);
    if (plan->bits > SEEN_MAX_BITS) return seen_spec_too_large(spec, e);
    plan->items = (uint64_t)s.n;
    plan->hash_bits =
        seen_hash_bits_for(s.n, spec->fpp > 0 ? spec->fpp : 1, spec);
    if (s.slots > UINT32_MAX) plan->hash_bits = 128;
    plan->fpp = cuckoo_plan_fpp(plan, plan->items);
    cost(plan);
    return SEEN_OK;
}

static bool cuckoo_plan_read(seen_plan *plan)
{
    if (plan->width < MIN_WIDTH || plan->width > MAX_WIDTH ||
        plan->hashes != HASHES || plan->bits > SEEN_MAX_BITS ||
        plan->bits < table_bits(plan->bits))
        return false;
    uint64_t slots = slots_of(plan);
    if (slots < 3 || slots % 2 == 0 ||
        (plan->hash_bits == 64 && slots > UINT32_MAX) ||
        slots * plan->width + table_bits(plan->bits) != plan->bits)
        return false;
    cost(plan);
    return true;
}

static const char *cuckoo_plan_earlier(const seen_plan *plan)
{
    return plan->hashes == 8
               ? "a cuckoo filter of an earlier layout, buckets of four slots: "
                 "this version reads windows of two; build it again"
               : NULL;
}

/* ---- Entries ------------------------------------------------------------ */

struct entry {
    uint64_t window; /* one of the two */
    uint64_t print;  /* odd, 1 .. 2^width - 3 */
};

SEEN_INLINE struct entry entry_of(const struct cuckoo *c, seen_hash h)
{
    uint32_t low = (uint32_t)(c->wide ? h.hi : h.lo);
    return (struct entry){seen_reduce(h.lo, c->windows),
                          1 + 2 * (low * c->prints >> 32)};
}

SEEN_INLINE uint64_t other_window(const struct cuckoo *c, struct entry e)
{
    /* Not linear in the fingerprint: with a plain product, the distance of two
     * moves would depend on the difference of two fingerprints only, and
     * chains would run in circles. A permutation of w bits, since the square
     * has an even factor; with those bits on top, no two fingerprints have the same spread
     * while there are windows enough, and so no two classes of keys the same
     * four slots. */
    uint64_t x = e.print * (2 * e.print * SEEN_GOLDEN + SPREAD);
    x = x >> c->width | x << (64 - c->width);
    uint64_t spread = 1 + 2 * seen_reduce(x, c->windows / 2);
    return spread >= e.window ? spread - e.window
                              : spread + c->windows - e.window;
}

SEEN_INLINE uint64_t get(const struct cuckoo *c, uint64_t slot)
{
    return seen_packed_bits(c->slots, slot * c->width) & c->mask;
}

static void set(struct cuckoo *c, uint64_t slot, uint64_t value)
{
    seen_packed_set(c->slots, c->width, slot, (uint32_t)value);
}

/* What lies in a slot: where that is empty, nothing that entry_ok() knows. */
SEEN_INLINE struct entry entry_in(uint64_t slot, uint64_t value)
{
    uint64_t offset = ~value & 1;
    return (struct entry){slot - offset, value - offset};
}

static bool entry_ok(const struct cuckoo *c, struct entry e)
{
    return e.window < c->windows && e.print < c->mask;
}

/* Puts an entry into a slot of one of its windows. */
static void put(struct cuckoo *c, uint64_t slot, struct entry e)
{
    uint64_t offset = slot - e.window;
    if (offset > 1) offset = slot - other_window(c, e);
    set(c, slot, e.print + offset);
}

/* The slots of both windows: three or four. */
static uint32_t reach(const struct cuckoo *c, struct entry e, uint64_t slot[4])
{
    uint64_t a = e.window, b = other_window(c, e);
    uint32_t n = 0;
    slot[n++] = a;
    slot[n++] = a + 1;
    if (b != a + 1) slot[n++] = b;
    if (b + 1 != a) slot[n++] = b + 1;
    return n;
}

/* Which of them hold the entry, or one that cannot be told from it, which come
 * first then; how many. */
static uint32_t find(const struct cuckoo *c, struct entry e, uint64_t slot[4])
{
    uint64_t other = other_window(c, e);
    uint32_t all = reach(c, e, slot), found = 0;
    for (uint32_t i = 0; i < all; i++) {
        struct entry there = entry_in(slot[i], get(c, slot[i]));
        if (there.print != e.print ||
            (there.window != e.window && there.window != other))
            continue;
        uint64_t one = slot[found];
        slot[found++] = slot[i];
        slot[i] = one;
    }
    return found;
}

/* ---- The table of copies ------------------------------------------------ */

#define COPIES_MAX (UINT32_MAX - HASHES) /* seen_count() has 32 bits */

/* Entry i of the table, 1 .. used: under the lower of its windows. */
static struct entry table_entry(const struct cuckoo *c, uint64_t i)
{
    return (struct entry){c->table[2 * i], c->table[2 * i + 1] >> 32};
}

static uint32_t table_copies(const struct cuckoo *c, uint64_t i)
{
    return (uint32_t)c->table[2 * i + 1];
}

static uint64_t table_most(const struct cuckoo *c)
{
    return table_lines(c->common.plan.bits) * LINE_WORDS / 2 - 1;
}

static uint64_t table_used(const struct cuckoo *c)
{
    return seen_min64(c->table[1], table_most(c)); /* a view says anything */
}

static struct entry lower(const struct cuckoo *c, struct entry e)
{
    return (struct entry){seen_min64(e.window, other_window(c, e)), e.print};
}

static bool is_below(struct entry a, struct entry b)
{
    return a.window < b.window || (a.window == b.window && a.print < b.print);
}

/* Is it there? *at is where it is, or else where it belongs. */
static bool table_find(const struct cuckoo *c, struct entry e, uint64_t *at)
{
    const uint64_t end = table_used(c) + 1;
    uint64_t low = 1, high = end;
    e = lower(c, e);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (is_below(table_entry(c, middle), e))
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low < end && !is_below(e, table_entry(c, low));
}

/* As many as seen_count() can tell, also of a view that says more. */
static uint32_t table_count(const struct cuckoo *c, struct entry e)
{
    uint64_t at;
    if (!table_find(c, e, &at)) return 0;
    return (uint32_t)seen_min64(table_copies(c, at), COPIES_MAX);
}

static seen_status table_add(struct cuckoo *c, struct entry e, uint32_t copies)
{
    uint64_t at, used = c->table[1];
    bool there = table_find(c, e, &at);
    if (!there && used == table_most(c)) return SEEN_FULL;
    if (there && table_copies(c, at) > COPIES_MAX - copies) return SEEN_FULL;
    uint64_t *words = c->table + 2 * at;
    if (!there) {
        memmove(words + 2, words, (size_t)(used + 1 - at) * 2 * sizeof *words);
        words[0] = lower(c, e).window;
        words[1] = e.print << 32;
        c->table[1]++;
    }
    words[1] += copies;
    c->table[0] += copies;
    c->common.items += copies;
    return SEEN_OK;
}

/* One copy less; false: there is none. */
static bool table_remove(struct cuckoo *c, struct entry e)
{
    uint64_t at, used = c->table[1];
    if (!table_find(c, e, &at)) return false;
    uint64_t *words = c->table + 2 * at;
    c->table[0]--;
    c->common.items--;
    words[1]--;
    if (table_copies(c, at) > 0) return true;
    memmove(words, words + 2, (size_t)(used - at) * 2 * sizeof *words);
    memset(c->table + 2 * used, 0, 2 * sizeof *words);
    c->table[1]--;
    return true;
}

/* Slots in use. (A payload that is not what its header says may count further.) */
static uint64_t used_slots(const struct cuckoo *c)
{
    uint64_t items = c->common.items, copies = c->table[0];
    return seen_min64(items > copies ? items - copies : 0, c->windows + 1);
}

/* ---- Adding ------------------------------------------------------------- */

/*
 * The search goes from slot to slot: the entry in one could move to the other slot
 * of its window or to the two of its other window. It goes on from each of the
 * first SEARCH slots, and at the end looks at those that they lead to, some 10,000
 * in all. At a load of 94 %, 150 are enough on the average, and twice, three times,
 * ten times 250 more are needed once in e, e^2, e^10 times: 10,000 would not be
 * enough once in 10^17.
 *
 * A slot must not be met twice, or half of the search would be repetition and a
 * chain could bite its tail. One bit for each slot modulo MET says whether it was;
 * in a large filter a few are left out because another slot has the same bit.
 *
 * A slot is looked at LAG slots after it was met, when it has come from memory.
 */
#define SEARCH  4096
#define MET     32768
#define LAG     8
#define NOWHERE UINT16_MAX

struct search {
    uint32_t n, looked; /* slots met; and looked at, none of them empty */
    uint64_t slot[SEARCH + 1]; /* the last is one that was only looked at */
    uint16_t from[SEARCH + 1]; /* whose entry could move there */
    uint64_t met[MET / 64];
};

/* Here is a slot. True: it is empty, and there is no room to go on from others. */
static bool meet(struct search *s, const struct cuckoo *c, uint64_t slot,
                 uint32_t from)
{
    uint64_t *word = &s->met[slot % MET / 64], bit = (uint64_t)1 << slot % 64;
    s->slot[s->n] = slot;
    s->from[s->n] = (uint16_t)from;
    if (s->n == SEARCH) return get(c, slot) == 0;
    if (*word & bit) return false;
    *word |= bit;
    seen_prefetch_read(c->slots + slot * c->width / 8);
    s->n++;
    return false;
}

/* Is one of the slots before `to` empty? It is s->looked. */
static bool look(struct search *s, const struct cuckoo *c, uint32_t to)
{
    while (s->looked < to && get(c, s->slot[s->looked]))
        s->looked++;
    return s->looked < to;
}

/* Breadth first: the number of an empty slot, or NOWHERE. */
static uint32_t find_room(const struct cuckoo *c, struct entry e,
                          struct search *s)
{
    uint64_t slot[4];
    uint32_t roots = reach(c, e, slot);
    s->n = s->looked = 0;
    memset(s->met, 0, sizeof s->met);
    for (uint32_t i = 0; i < roots; i++)
        meet(s, c, slot[i], NOWHERE);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t lag = s->n == SEARCH ? 0 : LAG;
        uint32_t to = s->n > i + lag ? s->n - lag : i + 1;
        if (look(s, c, to)) return s->looked;
        struct entry there = entry_in(s->slot[i], get(c, s->slot[i]));
        uint64_t other = other_window(c, there);
        uint64_t beside = 2 * there.window + 1 - s->slot[i];
        if (meet(s, c, beside, i) || meet(s, c, other, i) ||
            meet(s, c, other + 1, i))
            return SEARCH;
    }
    return NOWHERE;
}

static seen_status make_room(struct cuckoo *c, struct entry e)
{
    struct search s;
    uint32_t at = find_room(c, e, &s);
    if (at == NOWHERE) return SEEN_FULL;
    uint64_t hole = s.slot[at];
    for (; s.from[at] != NOWHERE; hole = s.slot[at]) {
        at = s.from[at];
        put(c, hole, entry_in(s.slot[at], get(c, s.slot[at])));
    }
    put(c, hole, e);
    c->common.items++;
    return SEEN_OK;
}

/* Beyond 95 % a search ends in vain more and more often, having looked at all it
 * may. Each key that a full filter refuses would cost as much as a thousand that it
 * takes. */
static bool is_crowded(const struct cuckoo *c)
{
    uint64_t slots = c->windows + 1;
    return used_slots(c) > slots - slots / 20;
}

/* Another copy of an entry that finds no room goes into the table. */
static seen_status insert(struct cuckoo *c, struct entry e)
{
    const uint64_t window[2] = {e.window, other_window(c, e)};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t slot = window[i / 2] + i % 2;
        if (get(c, slot)) continue;
        set(c, slot, e.print + i % 2);
        c->common.items++;
        return SEEN_OK;
    }
    uint64_t slot[4];
    uint32_t found = find(c, e, slot);
    seen_status status = SEEN_FULL;
    if (found < HASHES && !is_crowded(c)) status = make_room(c, e);
    return status == SEEN_FULL && found > 0 ? table_add(c, e, 1) : status;
}

/* ---- Life --------------------------------------------------------------- */

static void cuckoo_shape(seen_filter *f)
{
    struct cuckoo *c = self(f);
    const uint32_t w = f->plan.width;
    c->windows = slots_of(&f->plan) - 1;
    c->width = w;
    c->mask = ((uint64_t)1 << w) - 1;
    c->prints = c->mask >> 1;
    c->wide = f->hash->bits == 128;
    c->pairs = w <= PAIR_WIDTH;
    c->ones = 1 | (uint64_t)1 << w;
    c->tops = c->ones << (w - 1);
}

static uint64_t slots_bytes(const struct cuckoo *c)
{
    return seen_packed_bytes(c->windows + 1, c->width);
}

static uint64_t table_bytes(const struct cuckoo *c)
{
    return table_lines(c->common.plan.bits) * SEEN_LINE_SIZE;
}

static bool cuckoo_part(const seen_filter *f, uint32_t index,
                        struct seen_part *part)
{
    const struct cuckoo *c = peek(f);
    *part = index == 0 ? (struct seen_part){c->slots, slots_bytes(c), false}
                       : (struct seen_part){c->table, table_bytes(c), true};
    return index < 2;
}

static void cuckoo_place(seen_filter *f, uint32_t index, void *at)
{
    if (index == 0)
        self(f)->slots = at;
    else
        self(f)->table = at;
}

/* In order, each under its lower window and in a slot as well; zeros behind them;
 * as many copies as word 0 says. */
static bool table_ok(const struct cuckoo *c)
{
    uint64_t most = table_most(c), used = c->table[1], copies = 0, slot[4];
    if (used > most) return false;
    for (uint64_t i = 1; i <= used; i++) {
        struct entry e = table_entry(c, i);
        if (!entry_ok(c, e) || e.print % 2 == 0 || table_copies(c, i) == 0 ||
            table_copies(c, i) > COPIES_MAX || lower(c, e).window != e.window ||
            (i > 1 && !is_below(table_entry(c, i - 1), e)) ||
            find(c, e, slot) == 0)
            return false;
        copies += table_copies(c, i);
    }
    for (uint64_t word = 2 * used + 2; word < 2 * most + 2; word++)
        if (c->table[word]) return false;
    return copies == c->table[0];
}

/* Entries where they may lie, and as many as it says. */
static bool cuckoo_parts_ok(const seen_filter *f)
{
    const struct cuckoo *c = peek(f);
    uint64_t slots = c->windows + 1, used = 0;
    if (!seen_packed_tail_ok(c->slots, slots * c->width)) return false;
    for (uint64_t slot = 0; slot < slots; slot++) {
        uint64_t value = get(c, slot);
        if (value && !entry_ok(c, entry_in(slot, value))) return false;
        used += value != 0;
    }
    return table_ok(c) && used + c->table[0] == f->items;
}

/* ---- Keys --------------------------------------------------------------- */

/* Where a question looks, and what for. */
struct place {
    uint64_t a, b; /* first bits of the windows */
    uint64_t want; /* what their slots would hold */
};

SEEN_INLINE struct place place_of(const struct cuckoo *c, seen_hash h)
{
    struct entry e = entry_of(c, h);
    return (struct place){e.window * c->width, other_window(c, e) * c->width,
                          e.print | (e.print + 1) << c->width};
}

/*
 * Not 0 if the window has what is wanted. Exclusive or leaves a slot 0 where they
 * agree, and (x - ones) & ~x has a top bit set exactly if some slot is 0; what
 * lies behind the window does not matter. Both slots are in one word up to 28 bits.
 */
SEEN_INLINE uint64_t window_has(const struct cuckoo *c, uint64_t at,
                                uint64_t want)
{
    uint64_t x = seen_packed_bits(c->slots, at);
    if (!c->pairs) {
        uint64_t y = seen_packed_bits(c->slots, at + c->width);
        x = (x & c->mask) | (y & c->mask) << c->width;
    }
    x ^= want;
    return (x - c->ones) & ~x & c->tops;
}

/* Both windows always: guessing which one would be wrong half of the time. */
SEEN_INLINE bool has(const struct cuckoo *c, struct place p)
{
    return (window_has(c, p.a, p.want) | window_has(c, p.b, p.want)) != 0;
}

static bool cuckoo_maybe(const seen_filter *f, seen_hash h)
{
    return has(peek(f), place_of(peek(f), h));
}

static seen_status cuckoo_add(seen_filter *f, seen_hash h)
{
    return insert(self(f), entry_of(self(f), h));
}

static seen_status cuckoo_visit(seen_filter *f, seen_hash h, bool *before)
{
    bool was = cuckoo_maybe(f, h);
    seen_status status = was ? SEEN_OK : cuckoo_add(f, h);
    if (status == SEEN_OK) *before = was;
    return status;
}

static seen_status cuckoo_remove(seen_filter *f, seen_hash h)
{
    struct cuckoo *c = self(f);
    struct entry e = entry_of(c, h);
    uint64_t slot[4];
    if (find(c, e, slot) == 0) return SEEN_ABSENT;
    if (table_remove(c, e)) return SEEN_OK; /* the slots answer for the rest */
    set(c, slot[0], 0);
    f->items--;
    return SEEN_OK;
}

static uint32_t count(const struct cuckoo *c, struct entry e)
{
    uint64_t slot[4];
    uint32_t found = find(c, e, slot);
    return found ? found + table_count(c, e) : 0;
}

static uint32_t cuckoo_count(const seen_filter *f, seen_hash h)
{
    return count(peek(f), entry_of(peek(f), h));
}

SEEN_INLINE void prefetch(const struct cuckoo *c, struct place p)
{
    seen_prefetch_read(c->slots + p.a / 8);
    seen_prefetch_read(c->slots + p.b / 8);
}

static bool ring(const seen_filter *f)
{
    return f->plan.bits / 8 > SEEN_RING_FROM_BYTES;
}

static void cuckoo_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    if (!ring(f)) return;
    for (size_t i = 0; i < n && i < RING; i++)
        prefetch(peek(f), place_of(peek(f), h[i]));
}

SEEN_INLINE void make_places(const struct cuckoo *c, const seen_hash *h,
                             size_t n, struct place *places)
{
    for (size_t i = 0; i < n; i++) {
        places[i] = place_of(c, h[i]);
        prefetch(c, places[i]);
    }
}

SEEN_INLINE void ask_places(const struct cuckoo *c, const struct place *places,
                            size_t n, bool *answers)
{
    for (size_t i = 0; i < n; i++)
        answers[i] = has(c, places[i]);
}

/* Places are made once, when their slots are fetched, and wait in a ring. */
SEEN_INLINE void maybe_ring(const struct cuckoo *c, const seen_hash *h,
                            size_t n, size_t ahead, bool *answers)
{
    struct place places[RING];
    make_places(c, h, seen_min_size(n, RING), places);
    size_t i = 0;
    for (; i + RING + STEP <= n; i += STEP) {
        ask_places(c, places + i % RING, STEP, answers + i);
        make_places(c, h + i + RING, STEP, places + i % RING);
    }
    for (; i < n; i++) {
        ask_places(c, places + i % RING, 1, answers + i);
        if (i + RING < n + ahead)
            make_places(c, h + i + RING, 1, places + i % RING);
    }
}

static void cuckoo_maybe_many(const seen_filter *f, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    const struct cuckoo c = *peek(f); /* which no answer is part of */
    maybe_ring(&c, h, n, ahead, answers);
}

static seen_status cuckoo_visit_many(seen_filter *f, const seen_hash *h,
                                     size_t n, size_t ahead, bool *before,
                                     size_t *done)
{
    size_t known = ring(f) ? n + ahead : 0, i = 0;
    seen_status status = SEEN_OK;
    for (; i < n; i++) {
        if (i + RING < known) prefetch(peek(f), place_of(peek(f), h[i + RING]));
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

static seen_status insert_all(struct cuckoo *into, const struct cuckoo *from)
{
    seen_status status = SEEN_OK;
    for (uint64_t slot = 0; slot <= from->windows; slot++) {
        uint64_t value = get(from, slot);
        if (value) status = insert(into, entry_in(slot, value));
        if (status != SEEN_OK) return status;
    }
    for (uint64_t i = 1; i <= table_used(from) && status == SEEN_OK; i++)
        status = table_add(into, table_entry(from, i), table_copies(from, i));
    return status;
}

/* All entries of both, as a multiset; what does not fit changes nothing. */
static seen_status cuckoo_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    if (op != SEEN_UNION) return SEEN_UNSUPPORTED;
    if (!same_shape(into, from)) return SEEN_MISMATCH;
    /* Nobody has looked at the bytes of a view. */
    if (from->frozen && !cuckoo_parts_ok(from)) return SEEN_CORRUPT;
    struct cuckoo *a = self(into), before = *a;
    const seen_allocator *memory = &into->allocator;
    before.slots = seen_alloc_zeroed(memory, slots_bytes(a));
    before.table =
        before.slots ? seen_alloc_zeroed(memory, table_bytes(a)) : NULL;
    seen_status status = SEEN_NOMEM;
    if (before.table) {
        memcpy(before.slots, a->slots, slots_bytes(a));
        memcpy(before.table, a->table, table_bytes(a));
        /* A filter merged with itself must not read what it has just added. */
        status = insert_all(a, into == from ? &before : peek(from));
        if (status != SEEN_OK) {
            memcpy(a->slots, before.slots, slots_bytes(a));
            memcpy(a->table, before.table, table_bytes(a));
            into->items = before.common.items;
        }
    }
    seen_release(memory, before.table, table_bytes(a));
    seen_release(memory, before.slots, slots_bytes(a));
    return status;
}

/* The same entries the same number of times, in whichever of their slots. */
static bool cuckoo_equal(const seen_filter *a, const seen_filter *b)
{
    if (!same_shape(a, b) || a->items != b->items) return false;
    const struct cuckoo *c = peek(a);
    for (uint64_t slot = 0; slot <= c->windows; slot++) {
        uint64_t value = get(c, slot);
        if (!value) continue;
        struct entry e = entry_in(slot, value);
        if (!entry_ok(c, e) || count(c, e) != count(peek(b), e)) return false;
    }
    return true;
}

static void cuckoo_measure(const seen_filter *f, seen_info *info)
{
    uint64_t used = used_slots(peek(f));
    info->bits_set = used * f->plan.width;
    info->fpp_now = cuckoo_plan_fpp(&f->plan, used);
}

const struct seen_filter_ops seen_cuckoo_ops = {
    .kind = SEEN_CUCKOO,
    .name = "cuckoo",
    .state_size = sizeof(struct cuckoo),
    .flags = SEEN_KEYED,
    .plan = cuckoo_plan,
    .plan_fpp = cuckoo_plan_fpp,
    .plan_read = cuckoo_plan_read,
    .plan_earlier = cuckoo_plan_earlier,
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
