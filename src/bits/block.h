/*
 * block.h - arrays of 512-bit lines, and the kernels that probe them.
 *
 * A kernel is one way to do the same thing: portable C, AVX2, NEON, or atomic
 * words for filters that several threads change. block_dispatch.c chooses.
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
#ifndef SEEN_BITS_BLOCK_H
#define SEEN_BITS_BLOCK_H

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
#define SEEN_MOST_SLOTS 64 /* an answer is a word with a bit for each */

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

/* ---- What all kernels share --------------------------------------------- */

SEEN_INLINE uint64_t *seen_lines_at(const struct seen_lines *b, uint32_t region,
                                    uint64_t word)
{
    uint64_t line = region * b->count + seen_reduce(word, b->count);
    return b->words + line * SEEN_LINE_WORDS;
}

/* How an ISA tests or sets one line. Each kernel file passes its own pair to
 * the functions below, which are inlined into it. */
typedef bool seen_line_test(const uint64_t *line, uint32_t x, uint32_t log_w);
typedef bool seen_line_change(uint64_t *line, uint32_t x, uint32_t log_w);

/* What a loop compiles in: constants where possible, so that branches vanish. */
struct seen_shape {
    uint32_t regions, log_w;
    bool wide;
};

SEEN_INLINE struct seen_shape seen_shape_of(const struct seen_lines *b)
{
    return (struct seen_shape){b->regions, b->log_w, b->wide};
}

/* One line of eight bits and 64-bit hashes: what nearly every filter is. */
#define SEEN_COMMON_SHAPE   ((struct seen_shape){1, 3, false})
#define SEEN_LINES_SHAPE(b) ((struct seen_shape){(b)->regions, 3, (b)->wide})

SEEN_INLINE bool seen_is_common(const struct seen_lines *b)
{
    return b->regions == 1 && b->log_w == 3 && !b->wide;
}

SEEN_INLINE void seen_shape_prefetch(const struct seen_lines *b, seen_hash h,
                                     struct seen_shape s)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    for (uint32_t r = 0; r < s.regions; r++)
        seen_prefetch_read(seen_lines_at(b, r, seen_probe_word(p, r)));
}

SEEN_INLINE bool seen_shape_maybe(const struct seen_lines *b, seen_hash h,
                                  struct seen_shape s, seen_line_test *test)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        const uint64_t *line = seen_lines_at(b, r, word);
        if (s.regions == 1)
            return test(line, (uint32_t)(word + p.stir), s.log_w);
        if (!test(line, (uint32_t)(word + p.stir), s.log_w)) return false;
    }
    return true;
}

SEEN_INLINE bool seen_shape_visit(const struct seen_lines *b, seen_hash h,
                                  struct seen_shape s, seen_line_change *change)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    bool before = true;
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        uint64_t *line = seen_lines_at(b, r, word);
        before &= change(line, (uint32_t)(word + p.stir), s.log_w);
    }
    return before;
}

/* The hashes that have others a ring behind them come first, then the rest:
 * two loops instead of a question per key. */
SEEN_INLINE size_t seen_ringed(const struct seen_lines *b, size_t n,
                               size_t ahead, size_t ring)
{
    size_t known = b->ring ? n + ahead : 0;
    return known <= ring ? 0 : seen_min_size(n, known - ring);
}

SEEN_INLINE void seen_shape_maybe_many(const struct seen_lines *b,
                                       const seen_hash *h, size_t n,
                                       size_t ahead, bool *answers,
                                       struct seen_shape s,
                                       seen_line_test *test)
{
    const struct seen_lines l = *b; /* in registers, whatever is written */
    size_t ringed = seen_ringed(b, n, ahead, SEEN_RING), i = 0;
    for (; i < ringed; i++) {
        seen_shape_prefetch(&l, h[i + SEEN_RING], s);
        answers[i] = seen_shape_maybe(&l, h[i], s, test);
    }
    for (; i < n; i++)
        answers[i] = seen_shape_maybe(&l, h[i], s, test);
}

SEEN_INLINE size_t seen_shape_visit_many(const struct seen_lines *b,
                                         const seen_hash *h, size_t n,
                                         size_t ahead, bool *before,
                                         struct seen_shape s,
                                         seen_line_change *change)
{
    const struct seen_lines l = *b;
    size_t ringed = seen_ringed(b, n, ahead, SEEN_RING), seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (i < ringed) seen_shape_prefetch(&l, h[i + SEEN_RING], s);
        bool was = seen_shape_visit(&l, h[i], s, change);
        if (before) before[i] = was;
        seen += was;
    }
    return n - seen;
}

SEEN_INLINE void seen_region_prefetch(const struct seen_lines *b, uint32_t r,
                                      seen_hash h, bool wide)
{
    struct seen_probe p = seen_probe_of(h, wide);
    seen_prefetch_read(seen_lines_at(b, r, seen_probe_word(p, r)));
}

SEEN_INLINE bool seen_region_maybe(const struct seen_lines *b, uint32_t r,
                                   seen_hash h, bool wide, seen_line_test *test)
{
    struct seen_probe p = seen_probe_of(h, wide);
    uint64_t word = seen_probe_word(p, r);
    return test(seen_lines_at(b, r, word), (uint32_t)(word + p.stir), 3);
}

SEEN_INLINE seen_hash seen_hash_in(const seen_hash *h, const uint16_t *list,
                                   size_t j)
{
    return h[list ? list[j] : j];
}

/* Bit 0 becomes bit 63. */
SEEN_INLINE uint64_t seen_reverse64(uint64_t x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ff00ff00ffu) | (x & 0x00ff00ff00ff00ffu) << 8;
    x = (x >> 16 & 0x0000ffff0000ffffu) | (x & 0x0000ffff0000ffffu) << 16;
    return x >> 32 | x << 32;
}

/*
 * Answers collect in a register, 64 at a time: a store whose address waits for
 * an answer would hold up the loads behind it. Doubling and adding is the
 * shortest way to append a bit, and leaves them in reverse. c may be NULL.
 */
SEEN_INLINE void seen_region_ask(const struct seen_lines *b,
                                 const struct seen_lines *c, uint32_t r,
                                 const seen_hash *h, const uint16_t *list,
                                 size_t n, uint64_t *bits, bool wide,
                                 seen_line_test *test)
{
    const struct seen_lines l = *b, m = c ? *c : *b;
    const bool ring = l.ring | m.ring;
    for (size_t j = 0; ring && j < n && j < SEEN_RING; j++) {
        seen_hash ahead = seen_hash_in(h, list, j);
        if (!c || l.ring) seen_region_prefetch(&l, r, ahead, wide);
        if (c && m.ring) seen_region_prefetch(&m, r, ahead, wide);
    }
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = seen_min_size(n, from + 64);
        const size_t known = ring ? seen_min_size(n, to + SEEN_RING) : 0;
        uint64_t word = 0;
        size_t j = from;
        for (; j + SEEN_RING < known; j++) {
            seen_hash ahead = seen_hash_in(h, list, j + SEEN_RING);
            seen_hash now = seen_hash_in(h, list, j);
            if (!c || l.ring) seen_region_prefetch(&l, r, ahead, wide);
            if (c && m.ring) seen_region_prefetch(&m, r, ahead, wide);
            bool hit = seen_region_maybe(&l, r, now, wide, test);
            if (c) hit |= seen_region_maybe(&m, r, now, wide, test);
            word = 2 * word + hit;
        }
        for (; j < to; j++) {
            seen_hash now = seen_hash_in(h, list, j);
            bool hit = seen_region_maybe(&l, r, now, wide, test);
            if (c) hit |= seen_region_maybe(&m, r, now, wide, test);
            word = 2 * word + hit;
        }
        bits[from / 64] = seen_reverse64(word << (64 - (to - from)));
    }
}

/* ---- Runs --------------------------------------------------------------- */

/* Which of the n lines of a run have all the bits that x gives. */
typedef uint64_t seen_run_test(const uint64_t *run, uint32_t n, uint32_t x,
                               uint32_t log_w);

/* From the last to the first, so that each answer pushes on those before. */
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

SEEN_INLINE uint64_t seen_shape_find(const struct seen_runs *b, seen_hash h,
                                     struct seen_shape s, seen_run_test *test)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    uint64_t found = UINT64_MAX;
    for (uint32_t r = 0; r < s.regions && found; r++) {
        uint64_t word = seen_probe_word(p, r);
        found &= test(seen_runs_at(b, r, word), b->slots,
                      (uint32_t)(word + p.stir), s.log_w);
    }
    return found;
}

/* Set the bits in one slot; were they all set before? */
SEEN_INLINE bool seen_shape_put(const struct seen_runs *b, seen_hash h,
                                struct seen_shape s, uint32_t slot,
                                seen_line_change *change)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    bool before = true;
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        uint64_t *line = seen_runs_at(b, r, word) + slot * SEEN_LINE_WORDS;
        before &= change(line, (uint32_t)(word + p.stir), s.log_w);
    }
    return before;
}

SEEN_INLINE void seen_shape_find_many(const struct seen_runs *b,
                                      const seen_hash *h, size_t n,
                                      size_t ahead, uint64_t asked,
                                      bool *answers, struct seen_shape s,
                                      seen_run_test *test)
{
    const struct seen_runs l = *b;
    size_t ringed = seen_ringed(&b->lines, n, ahead, SEEN_RUN_RING), i = 0;
    for (; i < ringed; i++) {
        seen_runs_prefetch(&l, h[i + SEEN_RUN_RING], s, 0, l.slots);
        answers[i] = (seen_shape_find(&l, h[i], s, test) & asked) != 0;
    }
    for (; i < n; i++)
        answers[i] = (seen_shape_find(&l, h[i], s, test) & asked) != 0;
}

/* One line a key and region: the ring is that of plain lines. */
SEEN_INLINE size_t seen_shape_turn_adds(const struct seen_runs *b,
                                        const seen_hash *h, size_t n,
                                        size_t ahead, struct seen_turn *turn,
                                        struct seen_shape s,
                                        seen_line_change *change)
{
    const struct seen_runs l = *b;
    const uint32_t slot = turn->slot;
    size_t ringed = seen_ringed(&b->lines, n, ahead, SEEN_RING), i = 0;
    uint64_t room = turn->room;
    for (; i < n && room > 0; i++) {
        if (i < ringed)
            seen_runs_prefetch(&l, h[i + SEEN_RING], s, slot, slot + 1);
        room -= !seen_shape_put(&l, h[i], s, slot, change);
    }
    turn->room = room;
    return i;
}

SEEN_INLINE size_t seen_shape_turn_many(const struct seen_runs *b,
                                        const seen_hash *h, size_t n,
                                        size_t ahead, struct seen_turn *turn,
                                        bool *before, struct seen_shape s,
                                        seen_run_test *test,
                                        seen_line_change *change)
{
    if (!before) return seen_shape_turn_adds(b, h, n, ahead, turn, s, change);
    const struct seen_runs l = *b;
    const struct seen_turn t = *turn;
    size_t ringed = seen_ringed(&b->lines, n, ahead, SEEN_RUN_RING), i = 0;
    uint64_t room = t.room;
    for (; i < n && room > 0; i++) {
        if (i < ringed)
            seen_runs_prefetch(&l, h[i + SEEN_RUN_RING], s, 0, l.slots);
        before[i] = (seen_shape_find(&l, h[i], s, test) & t.asked) != 0;
        room -= !seen_shape_put(&l, h[i], s, t.slot, change);
    }
    turn->room = room;
    return i;
}

/* A kernel from its two line functions and the one for runs. */
#define SEEN_DEFINE_KERNEL(isa, can_run, target, test, change, run)            \
    target static bool isa##_maybe(const struct seen_lines *b, seen_hash h)    \
    {                                                                          \
        if (seen_is_common(b))                                                 \
            return seen_shape_maybe(b, h, SEEN_COMMON_SHAPE, test);            \
        if (b->log_w == 3)                                                     \
            return seen_shape_maybe(b, h, SEEN_LINES_SHAPE(b), test);          \
        return seen_shape_maybe(b, h, seen_shape_of(b), test);                 \
    }                                                                          \
    target static bool isa##_visit(struct seen_lines *b, seen_hash h)          \
    {                                                                          \
        if (seen_is_common(b))                                                 \
            return seen_shape_visit(b, h, SEEN_COMMON_SHAPE, change);          \
        if (b->log_w == 3)                                                     \
            return seen_shape_visit(b, h, SEEN_LINES_SHAPE(b), change);        \
        return seen_shape_visit(b, h, seen_shape_of(b), change);               \
    }                                                                          \
    target static void isa##_maybe_many(const struct seen_lines *b,            \
                                        const seen_hash *h, size_t n,          \
                                        size_t ahead, bool *answers)           \
    {                                                                          \
        if (seen_is_common(b))                                                 \
            seen_shape_maybe_many(b, h, n, ahead, answers, SEEN_COMMON_SHAPE,  \
                                  test);                                       \
        else if (b->log_w == 3)                                                \
            seen_shape_maybe_many(b, h, n, ahead, answers,                     \
                                  SEEN_LINES_SHAPE(b), test);                  \
        else                                                                   \
            seen_shape_maybe_many(b, h, n, ahead, answers, seen_shape_of(b),   \
                                  test);                                       \
    }                                                                          \
    target static size_t isa##_visit_many(struct seen_lines *b,                \
                                          const seen_hash *h, size_t n,        \
                                          size_t ahead, bool *before)          \
    {                                                                          \
        if (seen_is_common(b))                                                 \
            return seen_shape_visit_many(b, h, n, ahead, before,               \
                                         SEEN_COMMON_SHAPE, change);           \
        if (b->log_w == 3)                                                     \
            return seen_shape_visit_many(b, h, n, ahead, before,               \
                                         SEEN_LINES_SHAPE(b), change);         \
        return seen_shape_visit_many(b, h, n, ahead, before, seen_shape_of(b), \
                                     change);                                  \
    }                                                                          \
    target static void isa##_ask_region(                                       \
        const struct seen_lines *b, uint32_t r, const seen_hash *h,            \
        const uint16_t *list, size_t n, uint64_t *bits)                        \
    {                                                                          \
        if (b->wide)                                                           \
            seen_region_ask(b, NULL, r, h, list, n, bits, true, test);         \
        else if (r > 0)                                                        \
            seen_region_ask(b, NULL, r, h, list, n, bits, false, test);        \
        else if (list)                                                         \
            seen_region_ask(b, NULL, 0, h, list, n, bits, false, test);        \
        else                                                                   \
            seen_region_ask(b, NULL, 0, h, NULL, n, bits, false, test);        \
    }                                                                          \
    target static void isa##_ask_two(                                          \
        const struct seen_lines *b, const struct seen_lines *c,                \
        const seen_hash *h, const uint16_t *list, size_t n, uint64_t *bits)    \
    {                                                                          \
        if (b->wide)                                                           \
            seen_region_ask(b, c, 0, h, list, n, bits, true, test);            \
        else if (list)                                                         \
            seen_region_ask(b, c, 0, h, list, n, bits, false, test);           \
        else                                                                   \
            seen_region_ask(b, c, 0, h, NULL, n, bits, false, test);           \
    }                                                                          \
    target static uint64_t isa##_find(const struct seen_runs *b, seen_hash h)  \
    {                                                                          \
        if (seen_is_common(&b->lines))                                         \
            return seen_shape_find(b, h, SEEN_COMMON_SHAPE, run);              \
        return seen_shape_find(b, h, seen_shape_of(&b->lines), run);           \
    }                                                                          \
    target static void isa##_find_many(                                        \
        const struct seen_runs *b, const seen_hash *h, size_t n, size_t ahead, \
        uint64_t asked, bool *answers)                                         \
    {                                                                          \
        if (seen_is_common(&b->lines))                                         \
            seen_shape_find_many(b, h, n, ahead, asked, answers,               \
                                 SEEN_COMMON_SHAPE, run);                      \
        else if (b->lines.log_w == 3)                                          \
            seen_shape_find_many(b, h, n, ahead, asked, answers,               \
                                 SEEN_LINES_SHAPE(&b->lines), run);            \
        else                                                                   \
            seen_shape_find_many(b, h, n, ahead, asked, answers,               \
                                 seen_shape_of(&b->lines), run);               \
    }                                                                          \
    target static size_t isa##_turn_many(                                      \
        struct seen_runs *b, const seen_hash *h, size_t n, size_t ahead,       \
        struct seen_turn *turn, bool *before)                                  \
    {                                                                          \
        if (seen_is_common(&b->lines))                                         \
            return seen_shape_turn_many(b, h, n, ahead, turn, before,          \
                                        SEEN_COMMON_SHAPE, run, change);       \
        if (b->lines.log_w == 3)                                               \
            return seen_shape_turn_many(b, h, n, ahead, turn, before,          \
                                        SEEN_LINES_SHAPE(&b->lines), run,      \
                                        change);                               \
        return seen_shape_turn_many(b, h, n, ahead, turn, before,              \
                                    seen_shape_of(&b->lines), run, change);    \
    }                                                                          \
    const struct seen_kernel seen_kernel_##isa = {#isa,                        \
                                                  can_run,                     \
                                                  isa##_maybe,                 \
                                                  isa##_visit,                 \
                                                  isa##_maybe_many,            \
                                                  isa##_visit_many,            \
                                                  isa##_ask_region,            \
                                                  isa##_ask_two,               \
                                                  isa##_find,                  \
                                                  isa##_find_many,             \
                                                  isa##_turn_many}

#endif
