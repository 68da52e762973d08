/*
 * lines.h - arrays of 512-bit lines, and the kernels that probe them.
 *
 * A kernel is one way to do the same thing: portable C, AVX2, NEON, or atomic
 * words for filters that several threads change. lines_dispatch.c chooses. What
 * they do is written once, in lines_kernel.h, which each of them includes.
 *
 * The batch calls keep a ring of prefetches in flight: while key i is tested,
 * the lines of key i + SEEN_RING are on their way. In DRAM that comes within a
 * fifth of the speed of reading random lines and doing nothing with them
 * (script/bench filter); prefetching 256 keys and then testing them takes
 * half as long again, because the processor idles at both ends of every batch.
 *
 *     hashes   | tested ... | i | ... in flight ... | i + 32 | not yet ...
 *
 * `ahead` tells a batch call how many valid hashes follow its n, so that a long
 * stream cut into pieces keeps the ring full across the cuts; the caller has
 * prefetched the first SEEN_RING of the stream.
 *
 * A run is several filters of one shape side by side: the line that a key has
 * in each of them is the same, so those lines lie next to each other, and the
 * key's mask is made once for all.
 *
 *     | line 0 of filter 0, 1, 2 | line 1 of filter 0, 1, 2 | ...
 *
 * filter/window.c asks which of them have a key, and adds to one.
 */
#ifndef SEEN_BITS_LINES_H
#define SEEN_BITS_LINES_H

#include "seen.h"

#include "bits/line.h"
#include "probe/native.h"

#define SEEN_RING     32 /* 16 to 64 measure alike, 8 is slower */
#define SEEN_RUN_RING 12 /* keys of several lines; 32 is a seventh slower */

struct seen_lines {
    uint64_t *words;  /* regions * count lines, region after region */
    uint64_t count;   /* lines in a region */
    uint32_t regions; /* a key has one line in each */
    uint32_t log_w;   /* a key sets 1 << log_w bits in a line */
    bool wide;        /* 128-bit hashes */
    bool ring;        /* too large for the cache: prefetch pays */
};

/* Several filters in runs, `slots` lines to a run. */
#define SEEN_SLOTS_MAX 64 /* an answer is a word with a bit for each */

struct seen_runs {
    struct seen_lines lines; /* of one filter; words: those of all */
    uint32_t slots;          /* how many filters */
};

/* What a series of adds to a run needs to know. */
struct seen_turn {
    uint64_t asked; /* slots that count for the answer */
    uint32_t slot;  /* the one that takes the keys */
    uint64_t room;  /* stop when so many were new to it; counts down */
};

struct seen_kernel {
    const char *name;
    bool (*usable)(void);
    bool (*maybe)(const struct seen_lines *b, seen_hash h);
    bool (*visit)(struct seen_lines *b, seen_hash h);
    void (*maybe_many)(const struct seen_lines *b, const seen_hash *h, size_t n,
                       size_t ahead, bool *answers);
    /* Returns how many were new. before may be NULL. */
    size_t (*visit_many)(struct seen_lines *b, const seen_hash *h, size_t n,
                         size_t ahead, bool *before);

    /* One region alone, eight bits to a line, about some of many keys: bit j
     * of the words says whether h[list[j]] has its bits there; a NULL list is
     * 0, 1, 2, ... And the same for two arrays of one region: is it in one or
     * the other? Its mask is made once. */
    void (*ask_region)(const struct seen_lines *b, uint32_t region,
                       const seen_hash *h, const uint16_t *list, size_t n,
                       uint64_t *bits);
    void (*ask_two)(const struct seen_lines *b, const struct seen_lines *c,
                    const seen_hash *h, const uint16_t *list, size_t n,
                    uint64_t *bits);

    /* The same for runs. Bit i of an answer: slot i has the key. */
    uint64_t (*find)(const struct seen_runs *b, seen_hash h);
    void (*find_many)(const struct seen_runs *b, const seen_hash *h, size_t n,
                      size_t ahead, uint64_t asked, bool *answers);
    /* Returns how many keys it took, at least 1 of n > 0; before may be NULL,
     * and then only lines of the one slot are touched. */
    size_t (*turn_many)(struct seen_runs *b, const seen_hash *h, size_t n,
                        size_t ahead, struct seen_turn *turn, bool *before);
};

#define KERNEL(name) extern const struct seen_kernel seen_kernel_##name;
KERNEL(portable)
KERNEL(concurrent)
#if defined(__x86_64__)
KERNEL(avx2)
#endif
#if defined(__aarch64__)
KERNEL(neon)
#endif
#undef KERNEL

/* The best kernel this processor can run, or the one SEEN_CPU names. */
const struct seen_kernel *seen_kernel_best(void);

/* Every kernel of this build, for tests; NULL past the end. */
const struct seen_kernel *seen_kernel_at(size_t index);

/* ---- Where the lines of a key are --------------------------------------- */

SEEN_INLINE uint64_t *seen_lines_at(const struct seen_lines *b, uint32_t region,
                                    uint64_t word)
{
    uint64_t line = region * b->count + seen_reduce(word, b->count);
    return b->words + line * SEEN_LINE_WORDS;
}

/* What a loop compiles in: constants where possible, so that branches vanish. */
struct seen_shape {
    uint32_t regions, log_w;
    bool wide;
};

SEEN_INLINE struct seen_shape seen_shape_of(const struct seen_lines *b)
{
    return (struct seen_shape){b->regions, b->log_w, b->wide};
}

SEEN_INLINE void seen_shape_prefetch(const struct seen_lines *b, seen_hash h,
                                     struct seen_shape s)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    for (uint32_t r = 0; r < s.regions; r++)
        seen_prefetch_read(seen_lines_at(b, r, seen_probe_word(p, r)));
}

/* ---- Runs --------------------------------------------------------------- */

/* Which of the n lines of a run have all the bits that x gives; from the last
 * to the first, so that each answer pushes on those before. */
SEEN_INLINE uint64_t seen_run_maybe(const uint64_t *run, uint32_t n, uint32_t x,
                                    uint32_t log_w)
{
    uint64_t found = 0;
    while (n-- > 0)
        found =
            found * 2 + seen_line_maybe(run + n * SEEN_LINE_WORDS, x, log_w);
    return found;
}

SEEN_INLINE uint64_t *seen_runs_at(const struct seen_runs *b, uint32_t region,
                                   uint64_t word)
{
    const struct seen_lines *l = &b->lines;
    uint64_t run = region * l->count + seen_reduce(word, l->count);
    return l->words + run * b->slots * SEEN_LINE_WORDS;
}

/* Lines `first` .. `last` - 1 of each run of a key. */
SEEN_INLINE void seen_runs_prefetch(const struct seen_runs *b, seen_hash h,
                                    struct seen_shape s, uint32_t first,
                                    uint32_t last)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    for (uint32_t r = 0; r < s.regions; r++) {
        const uint64_t *run = seen_runs_at(b, r, seen_probe_word(p, r));
        for (uint32_t i = first; i < last; i++)
            seen_prefetch_read(run + i * SEEN_LINE_WORDS);
    }
}

#endif
