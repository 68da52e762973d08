/*
 * ribbon.c - equations of a segment, solved; see ribbon.h for the layout.
 *
 * Elimination. A slot that is the first 1 of some equation is its own; an equation
 * whose first slot is taken has the one that took it xored in, which clears that 1
 * and moves its beginning to the right, until it finds a slot of its own or nothing
 * is left of it: then it contradicts the others.
 *
 *     1011 at slot 5, which has 1101:   1011 ^ 1101 = 0110, so 11 at slot 6
 *
 * Buckets go from left to right, and the keys in a bucket from right to left. So
 * each bucket first takes what is behind its last start, up to 63 slots that the
 * next one then finds taken, and what has no place any more are the keys of its
 * first starts: those are bumped, with all that share their eight, whose slots
 * become free again. That is safe for the last ones that came, because no other
 * equation has had them xored in. With 1.03 keys to a slot nearly every slot finds
 * an owner: of a million, 0.2 % stay free, and 3.1 % of the keys are bumped.
 *
 * Then back from the last slot to the first (ribbon_kernel.h): everything to the
 * right of a slot is known, and its own bits follow from its equation.
 */
#include "bits/ribbon.h"

#include "bits/lines.h"

#include <string.h>

#define EIGHTS 15 /* the last one has all offsets from 112 on */

/* Slots that the keys of one bucket can take. */
#define REACH (SEEN_RIBBON_BUCKET + SEEN_RIBBON_ROW)

/* Eights of a bucket, the first to be bumped. */
static uint32_t eight_of(uint64_t start)
{
    uint32_t eight = start % SEEN_RIBBON_BUCKET / 8;
    return eight < EIGHTS - 1 ? eight : EIGHTS - 1;
}

/* A slot for an equation that begins at `slot`; false: it has none. */
SEEN_INLINE bool settle(struct seen_ribbon_work *work, uint64_t slot,
                        struct seen_ribbon_row e, uint64_t *taken)
{
    for (uint64_t row; (row = work->row[slot]);) {
        e.row ^= row;
        e.value ^= work->value[slot];
        if (e.row == 0) return false;
        uint32_t by = seen_ctz64(e.row);
        e.row >>= by;
        slot += by;
    }
    work->row[slot] = e.row;
    work->value[slot] = e.value;
    *taken = slot;
    return true;
}

/* The threshold of a bucket with these n keys, whose starts are counted from
 * `first`, that of slot 0 of the work. */
static uint32_t settle_bucket(const struct seen_ribbon_layer *l, uint64_t first,
                              const uint64_t *keys, uint64_t n,
                              struct seen_ribbon_work *work)
{
    uint64_t taken[REACH]; /* by keys of the same eight */
    uint32_t count = 0, eight = EIGHTS;
    for (uint64_t i = n; i-- > 0;) {
        uint64_t start = seen_reduce(keys[i], l->starts);
        if (eight_of(start) != eight) {
            eight = eight_of(start);
            count = 0;
        }
        if (settle(work, start - first, seen_ribbon_row_of(keys[i]),
                   &taken[count])) {
            count++;
            continue;
        }
        while (count > 0)
            work->row[taken[--count]] = 0;
        return eight + 1;
    }
    return 0;
}

static uint64_t eliminate(const struct seen_ribbon_layer *l, uint64_t first,
                          uint64_t end, const uint64_t *keys, uint64_t n,
                          uint64_t *bumped, struct seen_ribbon_work *work)
{
    uint64_t from = 0, out = 0;
    for (uint64_t at = first; at < end; at += SEEN_RIBBON_BUCKET) {
        uint64_t to = from, bucket = at / SEEN_RIBBON_BUCKET;
        while (to < n &&
               seen_reduce(keys[to], l->starts) / SEEN_RIBBON_BUCKET == bucket)
            to++;
        uint32_t t = settle_bucket(l, first, keys + from, to - from, work);
        l->thresholds[bucket / 2] |= (uint8_t)(t << 4 * (bucket % 2));
        for (; from < to; from++)
            if (eight_of(seen_reduce(keys[from], l->starts)) < t)
                bumped[out++] = keys[from];
    }
    return out;
}

uint64_t seen_ribbon_solve(const struct seen_ribbon_kernel *k,
                           const struct seen_ribbon_layer *l, uint32_t width,
                           uint64_t segment, const uint64_t *keys, uint64_t n,
                           uint64_t *bumped, struct seen_ribbon_work *work)
{
    uint64_t first = segment * SEEN_RIBBON_SEGMENT;
    uint64_t end = seen_min64(first + SEEN_RIBBON_SEGMENT, l->starts);
    uint64_t slots = end - first + SEEN_RIBBON_ROW;
    memset(work->row, 0, slots * sizeof *work->row);
    uint64_t out = eliminate(l, first, end, keys, n, bumped, work);
    uint64_t before = segment * (SEEN_RIBBON_SEGMENT + SEEN_RIBBON_ROW);
    k->substitute(work, slots, width,
                  l->groups + before / SEEN_RIBBON_GROUP * 2 * width);
    return out;
}

bool seen_ribbon_listed(const struct seen_ribbon *b, uint64_t x)
{
    uint64_t low = 0, high = b->listed;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t there = seen_get_le64(b->list + 8 * middle);
        if (there == x) return true;
        if (there < x)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* ---- Kernels ------------------------------------------------------------ */

static const struct seen_ribbon_kernel *const table[] = {
#if defined(__x86_64__)
    &seen_ribbon_avx2,
#endif
#if defined(__aarch64__)
    &seen_ribbon_neon,
#endif
    &seen_ribbon_portable,
};

const struct seen_ribbon_kernel *seen_ribbon_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

const struct seen_ribbon_kernel *seen_ribbon_best(void)
{
    const struct seen_ribbon_kernel *k =
        seen_ribbon_named(seen_kernel_best()->name);
    return k ? k : &seen_ribbon_portable;
}
