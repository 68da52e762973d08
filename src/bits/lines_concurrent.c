/*
 * lines_concurrent.c - lines that many threads change at once, without locks.
 *
 * Bits are only ever set, so an atomic OR per word is all that is needed: no
 * order between words matters, since a reader that misses a bit of an add still
 * running may truthfully say "never" for it. Most adds to a filter in use find
 * some of their bits set; looking first saves the locked instruction, and lets
 * the line stay shared between caches when nothing changes. Runs are not for
 * sharing: theirs are the portable functions.
 */
#include "bits/lines.h"

static bool always(void)
{
    return true;
}

SEEN_INLINE bool atomic_maybe(const uint64_t *line, uint32_t x, uint32_t log_w)
{
    uint64_t all = 1;
    for (uint32_t g = 0; g < 1u << log_w; g++) {
        uint32_t bit = seen_line_bit(x, g, log_w);
        all &= seen_atomic_load(&line[bit / 64]) >> (bit % 64);
    }
    return all & 1;
}

SEEN_INLINE bool atomic_visit(uint64_t *line, uint32_t x, uint32_t log_w)
{
    bool before = true;
    for (uint32_t g = 0; g < 1u << log_w; g++) {
        uint32_t bit = seen_line_bit(x, g, log_w);
        uint64_t mask = (uint64_t)1 << (bit % 64);
        uint64_t *word = &line[bit / 64];
        if (seen_atomic_load(word) & mask) continue;
        if (!(seen_atomic_or(word, mask) & mask)) before = false;
    }
    return before;
}

#define KERNEL seen_kernel_concurrent
#define NAME   "concurrent"
#define USABLE always
#define TARGET
#define TEST     atomic_maybe
#define CHANGE   atomic_visit
#define RUN_TEST seen_run_maybe
#include "bits/lines_kernel.h"
