/*
 * foreign_chain.c - the filter of another system: its scheme, our calls.
 *
 *     key ──► digest ──► positions ──► link, link, link
 *
 * Most systems have one array of bits. RedisBloom and Valkey chain several as
 * keys come, and lists of filters are chains, too; then a key is in if it is in
 * any link, and goes into the newest.
 *
 * A single question is the scheme's own affair, in one go (probe/fused.h). In a
 * batch on a large filter the first FIRST positions of a key are computed, and on
 * their way from memory, while RING keys before it are tested; the others only if
 * all of those are set.
 */
#include "filter/foreign.h"

#include "base/alloc.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define FIRST 8
#define RING  16

/* ---- Bits --------------------------------------------------------------- */

SEEN_INLINE bool test_bit(const uint8_t *at, uint64_t pos)
{
    return at[pos / 8] >> (pos % 8) & 1;
}

/* Positions of a link, those that come first and then all others; d goes on
 * from one call to the next. */
static uint32_t some_positions(const struct seen_scheme *s,
                               const struct seen_link *l, struct seen_digest *d,
                               uint32_t from, uint64_t *pos)
{
    uint32_t k = l->place.hashes;
    uint32_t to = from == 0 && k > FIRST ? FIRST : k;
    if (from < to) s->positions(&l->place, d, from, to, pos);
    for (uint32_t i = 0; i < to - from; i++)
        pos[i] ^= s->order;
    return to;
}

static bool all_set(const uint8_t *at, const uint64_t *pos, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!test_bit(at, pos[i])) return false;
    return true;
}

/* From where `pos` has the first `have` positions. */
static bool test_rest(const struct seen_scheme *s, const struct seen_link *l,
                      struct seen_digest *d, uint64_t *pos, uint32_t have)
{
    if (!all_set(l->at, pos, have)) return false;
    if (have == l->place.hashes) return true;
    uint32_t to = some_positions(s, l, d, have, pos);
    return all_set(l->at, pos, to - have);
}

static bool test_link(const struct seen_scheme *s, const struct seen_link *l,
                      struct seen_digest d)
{
    uint64_t pos[SEEN_POSITIONS_MAX];
    uint32_t have = some_positions(s, l, &d, 0, pos);
    return test_rest(s, l, &d, pos, have);
}

/* The newest link first: it has most of the keys. */
static bool test(const struct seen_foreign *f, const struct seen_digest *d)
{
    if (f->verdict != SEEN_BY_BITS) return f->verdict == SEEN_ALWAYS_MAYBE;
    for (uint32_t i = f->count; i-- > 0;)
        if (test_link(f->scheme, &f->links[i], *d)) return true;
    return false;
}

/* Were they all set before? */
static bool set_bits(const struct seen_scheme *s, struct seen_link *l,
                     struct seen_digest d)
{
    uint64_t pos[SEEN_POSITIONS_MAX];
    bool before = true;
    for (uint32_t from = 0, to; from < l->place.hashes; from = to) {
        to = some_positions(s, l, &d, from, pos);
        for (uint32_t i = 0; i < to - from; i++) {
            uint8_t *byte = &l->at[pos[i] / 8];
            uint8_t mask = (uint8_t)(1 << pos[i] % 8);
            before &= (*byte & mask) != 0;
            *byte |= mask;
        }
    }
    return before;
}

/* ---- Keys --------------------------------------------------------------- */

static bool chain_maybe_key(const seen_filter *g, const void *key, size_t len)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (f->scheme->maybe && f->count == 1 && f->verdict == SEEN_BY_BITS)
        return f->scheme->maybe(f->seed, &f->links[0].place, f->links[0].at,
                                key, len);
    struct seen_digest d;
    f->scheme->digest(f->seed, key, len, &d);
    return test(f, &d);
}

/* One link comes, the oldest goes. */
static seen_status replace_oldest(struct seen_foreign *f, struct seen_link next)
{
    struct seen_link *oldest = &f->links[0];
    uint64_t limit = f->common.limit;
    if (limit && f->common.plan.bytes + next.bytes > limit) return SEEN_FULL;
    next.at = seen_alloc_zeroed(&f->common.allocator, next.bytes);
    if (!next.at) return SEEN_NOMEM;
    f->common.items -= seen_min64(oldest->items, f->common.items);
    seen_release(&f->common.allocator, oldest->at, oldest->bytes);
    memmove(f->links, f->links + 1, (f->count - 1) * sizeof *f->links);
    f->links[f->count - 1] = next;
    seen_foreign_describe(f);
    return SEEN_OK;
}

/* Room for one more key. */
static seen_status make_room(struct seen_foreign *f)
{
    struct seen_link next = {0};
    if (!f->rules->grow) return SEEN_OK;
    seen_status status = f->rules->grow(f, &next);
    if (status != SEEN_OK || next.bytes == 0) return status;
    bool full = f->rules->links_max && f->count == f->rules->links_max;
    return full ? replace_oldest(f, next) : seen_foreign_append(f, next);
}

static seen_status visit(struct seen_foreign *f, const struct seen_digest *d,
                         bool *before)
{
    if (f->verdict != SEEN_BY_BITS) return SEEN_UNSUPPORTED;
    /* One array and nothing to decide: test and set in one go. */
    bool plain = f->count == 1 && !f->rules->adds_new_only && !f->rules->grow;
    bool known = !plain && test(f, d);
    if (known && f->rules->adds_new_only) {
        *before = true;
        return SEEN_OK;
    }
    seen_status status = make_room(f);
    if (status != SEEN_OK) return status;
    struct seen_link *newest = &f->links[f->count - 1];
    bool was = set_bits(f->scheme, newest, *d);
    *before = plain ? was : known;
    newest->items += !was && newest->items < UINT64_MAX;
    f->common.items += !was && f->common.items < UINT64_MAX;
    return SEEN_OK;
}

static seen_status chain_visit_key(seen_filter *g, const void *key, size_t len,
                                   bool *before)
{
    struct seen_foreign *f = seen_foreign(g);
    struct seen_digest d;
    f->scheme->digest(f->seed, key, len, &d);
    return visit(f, &d, before);
}

/* ---- Many keys ---------------------------------------------------------- */

/* A key on its way. */
struct waiting {
    struct seen_digest d;
    uint64_t pos[FIRST];
    uint32_t have;
};

static void send_for(const struct seen_foreign *f, const seen_key *key,
                     struct waiting *w)
{
    const struct seen_link *l = &f->links[0];
    f->scheme->digest(f->seed, key->data, key->len, &w->d);
    w->have = some_positions(f->scheme, l, &w->d, 0, w->pos);
    for (uint32_t i = 0; i < w->have; i++)
        seen_prefetch_read(&l->at[w->pos[i] / 8]);
}

static void maybe_in_ring(const struct seen_foreign *f, const seen_key *keys,
                          size_t n, bool *answers)
{
    struct waiting ring[RING];
    for (size_t i = 0; i < n && i < RING; i++)
        send_for(f, &keys[i], &ring[i]);
    for (size_t i = 0; i < n; i++) {
        struct waiting *w = &ring[i % RING];
        uint64_t pos[SEEN_POSITIONS_MAX];
        memcpy(pos, w->pos, sizeof w->pos);
        answers[i] = test_rest(f->scheme, &f->links[0], &w->d, pos, w->have);
        if (i + RING < n) send_for(f, &keys[i + RING], w);
    }
}

static void chain_maybe_keys(const seen_filter *g, const seen_key *keys,
                             size_t n, bool *answers)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (f->verdict == SEEN_BY_BITS && f->count == 1 &&
        f->links[0].bytes > SEEN_RING_FROM_BYTES) {
        maybe_in_ring(f, keys, n, answers);
        return;
    }
    for (size_t i = 0; i < n; i++)
        answers[i] = chain_maybe_key(g, keys[i].data, keys[i].len);
}

/* Adds prefetch as questions do; what a waiting key has computed is computed
 * again, which costs less than its bits coming late. */
static seen_status chain_visit_keys(seen_filter *g, const seen_key *keys,
                                    size_t n, bool *before, size_t *done)
{
    struct seen_foreign *f = seen_foreign(g);
    bool ring = f->verdict == SEEN_BY_BITS && f->count == 1 &&
                f->links[0].bytes > SEEN_RING_FROM_BYTES;
    for (*done = 0; *done < n; ++*done) {
        struct waiting ahead;
        bool was;
        if (ring && *done + RING < n) send_for(f, &keys[*done + RING], &ahead);
        const seen_key *key = &keys[*done];
        seen_status status = chain_visit_key(g, key->data, key->len, &was);
        if (status != SEEN_OK) return status;
        if (before) before[*done] = was;
    }
    return SEEN_OK;
}

static const struct seen_key_ops key_ops = {
    .maybe = chain_maybe_key,
    .visit = chain_visit_key,
    .maybe_many = chain_maybe_keys,
    .visit_many = chain_visit_keys,
};

/* ---- Whole filters ------------------------------------------------------ */

static uint64_t count_bytes(const uint8_t *bytes, uint64_t len)
{
    uint64_t set = 0, at = 0;
    for (; at + 8 <= len; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        set += seen_popcount64(word);
    }
    for (; at < len; at++)
        set += seen_popcount64(bytes[at]);
    return set;
}

static uint64_t count_bits(const struct seen_link *l)
{
    return count_bytes(l->at, l->bytes);
}

static double estimate_link(const struct seen_link *l)
{
    double set = (double)count_bits(l), m = (double)l->place.bits;
    if (!l->place.hashes) return 0;
    double items = seen_items_from_fill(set, m, l->place.hashes);
    return items < m ? items : m; /* a full one says: infinitely many */
}

static uint64_t to_count(double items)
{
    return items < 0x1p63 ? (uint64_t)(items + 0.5) : UINT64_MAX;
}

static uint64_t estimate(const struct seen_foreign *f)
{
    double items = 0;
    for (uint32_t i = 0; i < f->count; i++)
        items += estimate_link(&f->links[i]);
    return to_count(items);
}

/* After a merge. Chains keep a count for each link, and no link of theirs has
 * more than its capacity: readers, ours among them, insist on that. */
static void recount(struct seen_foreign *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        struct seen_link *l = &f->links[i];
        l->items = to_count(estimate_link(l));
        if (f->rules->grow && l->capacity)
            l->items = seen_min64(l->items, l->capacity);
        sum = l->items > UINT64_MAX - sum ? UINT64_MAX : sum + l->items;
    }
    f->common.items = sum;
}

/* Do positions mean the same in both? */
static bool same_shape(const struct seen_foreign *a,
                       const struct seen_foreign *b)
{
    if (a->scheme != b->scheme || a->count != b->count ||
        a->verdict != b->verdict || memcmp(a->seed, b->seed, sizeof a->seed))
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct seen_place *p = &a->links[i].place,
                                *q = &b->links[i].place;
        if (p->bits != q->bits || p->hashes != q->hashes ||
            p->line != q->line || a->links[i].bytes != b->links[i].bytes)
            return false;
    }
    return true;
}

static seen_status chain_merge(seen_filter *into, const seen_filter *from,
                               seen_merge_op op)
{
    struct seen_foreign *a = seen_foreign(into);
    const struct seen_foreign *b = seen_foreign_of(from);
    if (!same_shape(a, b)) return SEEN_MISMATCH;
    if (a->verdict != SEEN_BY_BITS) return SEEN_UNSUPPORTED;
    /* The links of a chain hold what came while they were the newest. */
    if (a->count > 1 && op == SEEN_INTERSECTION) return SEEN_UNSUPPORTED;
    for (uint32_t i = 0; i < a->count; i++) {
        struct seen_link *l = &a->links[i];
        const uint8_t *more = b->links[i].at;
        for (uint64_t at = 0; at < l->bytes; at++)
            l->at[at] =
                op == SEEN_UNION ? l->at[at] | more[at] : l->at[at] & more[at];
    }
    recount(a);
    return SEEN_OK;
}

static bool chain_equal(const seen_filter *f, const seen_filter *g)
{
    const struct seen_foreign *a = seen_foreign_of(f), *b = seen_foreign_of(g);
    if (!same_shape(a, b)) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (memcmp(a->links[i].at, b->links[i].at, (size_t)a->links[i].bytes))
            return false;
    return true;
}

/* The mean over the lines, of what the bits of each would let pass. */
static double rate_of_lines(const struct seen_link *l)
{
    uint32_t line = l->place.line, k = l->place.hashes;
    uint32_t group = (seen_line_grouped(line) ? line / k : line) / 8;
    uint64_t lines = l->bytes / (line / 8);
    double sum = 0;
    for (uint64_t i = 0; i < lines; i++) {
        const uint8_t *at = l->at + i * (line / 8), *end = at + line / 8;
        double wrong = 1;
        for (; at < end; at += group)
            wrong *= (double)count_bytes(at, group) / (8.0 * group);
        sum += seen_line_grouped(line) ? wrong : pow(wrong, k);
    }
    return lines ? sum / (double)lines : 1;
}

static double rate_of(const struct seen_link *l, uint64_t set)
{
    if (l->place.line) return rate_of_lines(l);
    /* Bits that no position reaches may be set by others. */
    double fill = fmin(1, (double)set / (double)l->place.bits);
    return pow(fill, l->place.hashes);
}

static void chain_info(const seen_filter *g, seen_info *info)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < f->count; i++)
        capacity += seen_min64(f->links[i].capacity, UINT64_MAX - capacity);
    if (capacity) info->capacity = capacity;
    info->hash = f->scheme->hash;
    info->layers = f->count;
    info->growth = f->chain.fixed ? 0 : f->chain.growth;
    info->counted = f->counted;
}

static void chain_measure(const seen_filter *g, seen_info *info)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    double clean = 0; /* logarithm of the chance that no link is wrong */
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        uint64_t set = count_bits(l);
        info->bits_set += set;
        clean += log1p(-rate_of(l, set));
    }
    if (!f->counted) info->items = estimate(f);
    info->fpp_now = f->verdict == SEEN_ALWAYS_MAYBE ? 1
                    : f->verdict == SEEN_NEVER_IN   ? 0
                                                    : -expm1(clean);
}

const struct seen_filter_ops seen_foreign_ops = {
    SEEN_FOREIGN_OPS,
    .keys = &key_ops,
    .merge = chain_merge,
    .equal = chain_equal,
    .clear = seen_foreign_clear,
    .info = chain_info,
    .measure = chain_measure,
};
