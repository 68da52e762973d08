/*
 * ribbon_kernel.h - a kernel for ribbons, written once: a template without a guard.
 *
 * Each kernel file includes it once, behind its own way to test a key in a layer,
 * and says before what it is:
 *
 *     KERNEL    the struct seen_ribbon_kernel to define    seen_ribbon_avx2
 *     NAME      as SEEN_CPU has it                         "avx2"
 *     TARGET    attribute of every function, or empty
 *     TEST      bool (at, mask, value, width, units): do the five groups from
 *               `at` on give the fingerprint? `units` is how many times 16 bytes
 *               a group begins, a constant: 1 for widths up to 8, and so on to 4
 *
 * Answers are bytes, which might lie anywhere as far as a compiler knows: so what
 * a loop needs of the filter is copied first, or it would be read again for each
 * key. A key's start is computed twice, once to prefetch and once to ask. Keeping
 * it in between measures the same.
 */

#define INLINED TARGET SEEN_INLINE

/* All of the five groups, 10 bytes for each bit of the width. */
INLINED void prefetch_in(const struct seen_ribbon_layer *l, uint64_t x,
                         uint32_t width)
{
    const uint8_t *at = seen_ribbon_at(l, seen_reduce(x, l->starts), width);
    for (uint32_t i = 0; i < 10 * width; i += SEEN_LINE_SIZE)
        seen_prefetch_read(at + i);
    seen_prefetch_read(at + 10 * width - 1);
}

INLINED bool test_in(const struct seen_ribbon_layer *l, uint64_t x,
                     uint64_t start, uint32_t width, uint32_t units)
{
    struct seen_ribbon_row e = seen_ribbon_row_of(x);
    return TEST(seen_ribbon_at(l, start, width),
                seen_ribbon_mask_of(e.row, start), e.value, width, units);
}

/* The same, for those who come here rarely. */
TARGET static SEEN_NOINLINE bool test_any(const struct seen_ribbon_layer *l,
                                          uint64_t x, uint64_t start,
                                          uint32_t width)
{
    if (width <= 8) return test_in(l, x, start, width, 1);
    if (width <= 16) return test_in(l, x, start, width, 2);
    if (width <= 24) return test_in(l, x, start, width, 3);
    return test_in(l, x, start, width, 4);
}

/* Layers from `first` on, then the list. */
TARGET static SEEN_NOINLINE bool maybe_deep(const struct seen_ribbon *b,
                                            uint64_t x, uint32_t first)
{
    for (uint32_t i = first; i < b->layers; i++) {
        const struct seen_ribbon_layer *l = &b->layer[i];
        x = seen_ribbon_hash(l, x);
        uint64_t start = seen_reduce(x, l->starts);
        if (!seen_ribbon_bumped(l, start))
            return test_any(l, x, start, b->width);
    }
    return seen_ribbon_listed(b, x);
}

/* The first layer, where 97 % of all questions end. */
INLINED bool maybe_in(const struct seen_ribbon *b,
                      const struct seen_ribbon_layer *l, uint64_t hash,
                      uint32_t width, uint32_t units)
{
    uint64_t x = seen_ribbon_hash(l, hash), start = seen_reduce(x, l->starts);
    if (seen_ribbon_bumped(l, start)) return maybe_deep(b, x, 1);
    return test_in(l, x, start, width, units);
}

INLINED void maybe_many_in(const struct seen_ribbon *b, const seen_hash *h,
                           size_t n, size_t ahead, bool *answers,
                           uint32_t units)
{
    const struct seen_ribbon_layer l = b->layer[0];
    const uint32_t width = b->width;
    size_t known = b->ring ? n + ahead : 0, i = 0;
    size_t ringed = known <= SEEN_RIBBON_RING
                        ? 0
                        : seen_min_size(n, known - SEEN_RIBBON_RING);
    for (; i < ringed; i++) {
        uint64_t later = seen_ribbon_hash(&l, h[i + SEEN_RIBBON_RING].lo);
        prefetch_in(&l, later, width);
        answers[i] = maybe_in(b, &l, h[i].lo, width, units);
    }
    for (; i < n; i++)
        answers[i] = maybe_in(b, &l, h[i].lo, width, units);
}

/* ---- Solve -------------------------------------------------------------- */

/* 1 in the lowest bit: an odd number is set. For compilers to do many at once. */
INLINED uint64_t parity_of(uint64_t x)
{
    x ^= x >> 32;
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    x ^= x >> 2;
    x ^= x >> 1;
    return x & 1;
}

/*
 * A column is one bit of all slots, and the 64 of it that a slot's equation needs
 * are a word, shifted on from slot to slot. `columns` is a constant, so that the
 * loop over them needs no loop: some may be more than the width has.
 */
INLINED void substitute_in(const struct seen_ribbon_work *work, uint64_t slots,
                           uint32_t width, uint8_t *groups, uint32_t columns)
{
    uint64_t known[SEEN_RIBBON_WIDTH_MAX] = {0}; /* bit i: slot + i */
    for (uint64_t slot = slots; slot > 0;) {
        for (uint32_t i = 0; i < SEEN_RIBBON_GROUP; i++) {
            const uint64_t row = work->row[--slot];
            const uint64_t value = row ? work->value[slot] : 0;
            for (uint32_t j = 0; j < columns; j++) {
                uint64_t right = known[j] << 1;
                uint64_t print = value & (uint64_t)2 << 2 * j;
                known[j] = right | parity_of((right & row) ^ print);
            }
        }
        uint8_t *to = groups + slot / SEEN_RIBBON_GROUP * 2 * width;
        for (uint32_t j = 0; j < width; j++)
            seen_put_le16(to + 2 * j, (uint16_t)known[j]);
    }
}

/* ---- The calls ---------------------------------------------------------- */

TARGET static bool maybe(const struct seen_ribbon *b, uint64_t hash)
{
    if (b->layers == 0) return seen_ribbon_listed(b, hash);
    if (b->width <= 8) return maybe_in(b, &b->layer[0], hash, b->width, 1);
    if (b->width <= 16) return maybe_in(b, &b->layer[0], hash, b->width, 2);
    return maybe_deep(b, hash, 0);
}

TARGET static void maybe_many(const struct seen_ribbon *b, const seen_hash *h,
                              size_t n, size_t ahead, bool *answers)
{
    if (b->layers == 0)
        for (size_t i = 0; i < n; i++)
            answers[i] = seen_ribbon_listed(b, h[i].lo);
    else if (b->width <= 8)
        maybe_many_in(b, h, n, ahead, answers, 1);
    else if (b->width <= 16)
        maybe_many_in(b, h, n, ahead, answers, 2);
    else if (b->width <= 24)
        maybe_many_in(b, h, n, ahead, answers, 3);
    else
        maybe_many_in(b, h, n, ahead, answers, 4);
}

TARGET static void prefetch(const struct seen_ribbon *b, const seen_hash *h,
                            size_t n)
{
    if (!b->ring || b->layers == 0) return;
    for (size_t i = 0; i < n && i < SEEN_RIBBON_RING; i++)
        prefetch_in(&b->layer[0], seen_ribbon_hash(&b->layer[0], h[i].lo),
                    b->width);
}

TARGET static void substitute(const struct seen_ribbon_work *work,
                              uint64_t slots, uint32_t width, uint8_t *groups)
{
    if (width <= 8)
        substitute_in(work, slots, width, groups, 8);
    else if (width <= 12)
        substitute_in(work, slots, width, groups, 12);
    else if (width <= 16)
        substitute_in(work, slots, width, groups, 16);
    else
        substitute_in(work, slots, width, groups, 32);
}

const struct seen_ribbon_kernel KERNEL = {
    .name = NAME,
    .maybe = maybe,
    .maybe_many = maybe_many,
    .prefetch = prefetch,
    .substitute = substitute,
};
