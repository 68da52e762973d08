/*
 * lines_kernel.h - a kernel, written once: a template without a guard.
 *
 * Each kernel file includes it once, behind its own way to test and to set a
 * line, and says before what it is:
 *
 *     KERNEL    the struct seen_kernel to define       seen_kernel_avx2
 *     NAME      as SEEN_CPU has it                     "avx2"
 *     USABLE    bool (void): can this machine run it?
 *     TARGET    attribute of every function, or empty
 *     TEST      bool (line, x, log_w): are its bits set?
 *     CHANGE    bool (line, x, log_w): set them; were they all set before?
 *     RUN_TEST  uint64_t (run, n, x, log_w): which of n lines have them?
 *
 * The functions that do the work take the shape of the lines as a value and are
 * always inlined. The calls at the end give them a shape of constants where
 * they can, so that branches on it vanish and loops over one region unroll.
 */

/* One line of eight bits and 64-bit hashes: what nearly every filter is; then
 * lines of eight bits; otherwise seen_shape_of(). */
#define COMMON        ((struct seen_shape){1, 3, false})
#define EIGHT_BITS(b) ((struct seen_shape){(b)->regions, 3, (b)->wide})
#define INLINED       TARGET SEEN_INLINE

INLINED bool is_common(const struct seen_lines *b)
{
    return b->regions == 1 && b->log_w == 3 && !b->wide;
}

/* The hashes that have others a ring behind them come first, then the rest:
 * two loops instead of a question per key. */
INLINED size_t ringed_of(const struct seen_lines *b, size_t n, size_t ahead,
                         size_t ring)
{
    size_t known = b->ring ? n + ahead : 0;
    return known <= ring ? 0 : seen_min_size(n, known - ring);
}

/* ---- Lines -------------------------------------------------------------- */

INLINED bool maybe_in(const struct seen_lines *b, seen_hash h,
                      struct seen_shape s)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        const uint64_t *line = seen_lines_at(b, r, word);
        if (s.regions == 1)
            return TEST(line, (uint32_t)(word + p.stir), s.log_w);
        if (!TEST(line, (uint32_t)(word + p.stir), s.log_w)) return false;
    }
    return true;
}

INLINED bool visit_in(const struct seen_lines *b, seen_hash h,
                      struct seen_shape s)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    bool before = true;
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        uint64_t *line = seen_lines_at(b, r, word);
        before &= CHANGE(line, (uint32_t)(word + p.stir), s.log_w);
    }
    return before;
}

INLINED void maybe_many_in(const struct seen_lines *b, const seen_hash *h,
                           size_t n, size_t ahead, bool *answers,
                           struct seen_shape s)
{
    const struct seen_lines l = *b; /* in registers, whatever is written */
    size_t ringed = ringed_of(b, n, ahead, SEEN_RING), i = 0;
    for (; i < ringed; i++) {
        seen_shape_prefetch(&l, h[i + SEEN_RING], s);
        answers[i] = maybe_in(&l, h[i], s);
    }
    for (; i < n; i++)
        answers[i] = maybe_in(&l, h[i], s);
}

INLINED size_t visit_many_in(const struct seen_lines *b, const seen_hash *h,
                             size_t n, size_t ahead, bool *before,
                             struct seen_shape s)
{
    const struct seen_lines l = *b;
    size_t ringed = ringed_of(b, n, ahead, SEEN_RING), seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (i < ringed) seen_shape_prefetch(&l, h[i + SEEN_RING], s);
        bool was = visit_in(&l, h[i], s);
        if (before) before[i] = was;
        seen += was;
    }
    return n - seen;
}

/* ---- One region --------------------------------------------------------- */

INLINED void region_prefetch(const struct seen_lines *b, uint32_t r,
                             seen_hash h, bool wide)
{
    struct seen_probe p = seen_probe_of(h, wide);
    seen_prefetch_read(seen_lines_at(b, r, seen_probe_word(p, r)));
}

INLINED bool region_maybe(const struct seen_lines *b, uint32_t r, seen_hash h,
                          bool wide)
{
    struct seen_probe p = seen_probe_of(h, wide);
    uint64_t word = seen_probe_word(p, r);
    return TEST(seen_lines_at(b, r, word), (uint32_t)(word + p.stir), 3);
}

INLINED seen_hash hash_in(const seen_hash *h, const uint16_t *list, size_t j)
{
    return h[list ? list[j] : j];
}

/* Bit 0 becomes bit 63. */
INLINED uint64_t reverse64(uint64_t x)
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
INLINED void region_ask(const struct seen_lines *b, const struct seen_lines *c,
                        uint32_t r, const seen_hash *h, const uint16_t *list,
                        size_t n, uint64_t *bits, bool wide)
{
    const struct seen_lines l = *b, m = c ? *c : *b;
    const bool ring = l.ring | m.ring;
    for (size_t j = 0; ring && j < n && j < SEEN_RING; j++) {
        seen_hash ahead = hash_in(h, list, j);
        if (!c || l.ring) region_prefetch(&l, r, ahead, wide);
        if (c && m.ring) region_prefetch(&m, r, ahead, wide);
    }
    for (size_t from = 0; from < n; from += 64) {
        const size_t to = seen_min_size(n, from + 64);
        const size_t known = ring ? seen_min_size(n, to + SEEN_RING) : 0;
        uint64_t word = 0;
        size_t j = from;
        for (; j + SEEN_RING < known; j++) {
            seen_hash ahead = hash_in(h, list, j + SEEN_RING);
            seen_hash now = hash_in(h, list, j);
            if (!c || l.ring) region_prefetch(&l, r, ahead, wide);
            if (c && m.ring) region_prefetch(&m, r, ahead, wide);
            bool hit = region_maybe(&l, r, now, wide);
            if (c) hit |= region_maybe(&m, r, now, wide);
            word = 2 * word + hit;
        }
        for (; j < to; j++) {
            seen_hash now = hash_in(h, list, j);
            bool hit = region_maybe(&l, r, now, wide);
            if (c) hit |= region_maybe(&m, r, now, wide);
            word = 2 * word + hit;
        }
        bits[from / 64] = reverse64(word << (64 - (to - from)));
    }
}

/* ---- Runs --------------------------------------------------------------- */

INLINED uint64_t find_in(const struct seen_runs *b, seen_hash h,
                         struct seen_shape s)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    uint64_t found = UINT64_MAX;
    for (uint32_t r = 0; r < s.regions && found; r++) {
        uint64_t word = seen_probe_word(p, r);
        found &= RUN_TEST(seen_runs_at(b, r, word), b->slots,
                          (uint32_t)(word + p.stir), s.log_w);
    }
    return found;
}

/* Set the bits in one slot; were they all set before? */
INLINED bool put_in(const struct seen_runs *b, seen_hash h, struct seen_shape s,
                    uint32_t slot)
{
    struct seen_probe p = seen_probe_of(h, s.wide);
    bool before = true;
    for (uint32_t r = 0; r < s.regions; r++) {
        uint64_t word = seen_probe_word(p, r);
        uint64_t *line = seen_runs_at(b, r, word) + slot * SEEN_LINE_WORDS;
        before &= CHANGE(line, (uint32_t)(word + p.stir), s.log_w);
    }
    return before;
}

INLINED void find_many_in(const struct seen_runs *b, const seen_hash *h,
                          size_t n, size_t ahead, uint64_t asked, bool *answers,
                          struct seen_shape s)
{
    const struct seen_runs l = *b;
    size_t ringed = ringed_of(&b->lines, n, ahead, SEEN_RUN_RING), i = 0;
    for (; i < ringed; i++) {
        seen_runs_prefetch(&l, h[i + SEEN_RUN_RING], s, 0, l.slots);
        answers[i] = (find_in(&l, h[i], s) & asked) != 0;
    }
    for (; i < n; i++)
        answers[i] = (find_in(&l, h[i], s) & asked) != 0;
}

/* One line a key and region: the ring is that of plain lines. */
INLINED size_t turn_adds_in(const struct seen_runs *b, const seen_hash *h,
                            size_t n, size_t ahead, struct seen_turn *turn,
                            struct seen_shape s)
{
    const struct seen_runs l = *b;
    const uint32_t slot = turn->slot;
    size_t ringed = ringed_of(&b->lines, n, ahead, SEEN_RING), i = 0;
    uint64_t room = turn->room;
    for (; i < n && room > 0; i++) {
        if (i < ringed)
            seen_runs_prefetch(&l, h[i + SEEN_RING], s, slot, slot + 1);
        room -= !put_in(&l, h[i], s, slot);
    }
    turn->room = room;
    return i;
}

INLINED size_t turn_many_in(const struct seen_runs *b, const seen_hash *h,
                            size_t n, size_t ahead, struct seen_turn *turn,
                            bool *before, struct seen_shape s)
{
    if (!before) return turn_adds_in(b, h, n, ahead, turn, s);
    const struct seen_runs l = *b;
    const struct seen_turn t = *turn;
    size_t ringed = ringed_of(&b->lines, n, ahead, SEEN_RUN_RING), i = 0;
    uint64_t room = t.room;
    for (; i < n && room > 0; i++) {
        if (i < ringed)
            seen_runs_prefetch(&l, h[i + SEEN_RUN_RING], s, 0, l.slots);
        before[i] = (find_in(&l, h[i], s) & t.asked) != 0;
        room -= !put_in(&l, h[i], s, t.slot);
    }
    turn->room = room;
    return i;
}

/* ---- The calls ---------------------------------------------------------- */

TARGET static bool maybe(const struct seen_lines *b, seen_hash h)
{
    if (is_common(b)) return maybe_in(b, h, COMMON);
    if (b->log_w == 3) return maybe_in(b, h, EIGHT_BITS(b));
    return maybe_in(b, h, seen_shape_of(b));
}

TARGET static bool visit(struct seen_lines *b, seen_hash h)
{
    if (is_common(b)) return visit_in(b, h, COMMON);
    if (b->log_w == 3) return visit_in(b, h, EIGHT_BITS(b));
    return visit_in(b, h, seen_shape_of(b));
}

TARGET static void maybe_many(const struct seen_lines *b, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    if (is_common(b))
        maybe_many_in(b, h, n, ahead, answers, COMMON);
    else if (b->log_w == 3)
        maybe_many_in(b, h, n, ahead, answers, EIGHT_BITS(b));
    else
        maybe_many_in(b, h, n, ahead, answers, seen_shape_of(b));
}

TARGET static size_t visit_many(struct seen_lines *b, const seen_hash *h,
                                size_t n, size_t ahead, bool *before)
{
    if (is_common(b)) return visit_many_in(b, h, n, ahead, before, COMMON);
    if (b->log_w == 3)
        return visit_many_in(b, h, n, ahead, before, EIGHT_BITS(b));
    return visit_many_in(b, h, n, ahead, before, seen_shape_of(b));
}

TARGET static void ask_region(const struct seen_lines *b, uint32_t r,
                              const seen_hash *h, const uint16_t *list,
                              size_t n, uint64_t *bits)
{
    if (b->wide)
        region_ask(b, NULL, r, h, list, n, bits, true);
    else if (r > 0)
        region_ask(b, NULL, r, h, list, n, bits, false);
    else if (list)
        region_ask(b, NULL, 0, h, list, n, bits, false);
    else
        region_ask(b, NULL, 0, h, NULL, n, bits, false);
}

TARGET static void ask_two(const struct seen_lines *b,
                           const struct seen_lines *c, const seen_hash *h,
                           const uint16_t *list, size_t n, uint64_t *bits)
{
    if (b->wide)
        region_ask(b, c, 0, h, list, n, bits, true);
    else if (list)
        region_ask(b, c, 0, h, list, n, bits, false);
    else
        region_ask(b, c, 0, h, NULL, n, bits, false);
}

TARGET static uint64_t find(const struct seen_runs *b, seen_hash h)
{
    if (is_common(&b->lines)) return find_in(b, h, COMMON);
    return find_in(b, h, seen_shape_of(&b->lines));
}

TARGET static void find_many(const struct seen_runs *b, const seen_hash *h,
                             size_t n, size_t ahead, uint64_t asked,
                             bool *answers)
{
    const struct seen_lines *l = &b->lines;
    if (is_common(l))
        find_many_in(b, h, n, ahead, asked, answers, COMMON);
    else if (l->log_w == 3)
        find_many_in(b, h, n, ahead, asked, answers, EIGHT_BITS(l));
    else
        find_many_in(b, h, n, ahead, asked, answers, seen_shape_of(l));
}

TARGET static size_t turn_many(struct seen_runs *b, const seen_hash *h,
                               size_t n, size_t ahead, struct seen_turn *turn,
                               bool *before)
{
    const struct seen_lines *l = &b->lines;
    if (is_common(l)) return turn_many_in(b, h, n, ahead, turn, before, COMMON);
    if (l->log_w == 3)
        return turn_many_in(b, h, n, ahead, turn, before, EIGHT_BITS(l));
    return turn_many_in(b, h, n, ahead, turn, before, seen_shape_of(l));
}

const struct seen_kernel KERNEL = {
    .name = NAME,
    .usable = USABLE,
    .maybe = maybe,
    .visit = visit,
    .maybe_many = maybe_many,
    .visit_many = visit_many,
    .ask_region = ask_region,
    .ask_two = ask_two,
    .find = find,
    .find_many = find_many,
    .turn_many = turn_many,
};
