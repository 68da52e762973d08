/*
 * foreign.c - the filter of another system: its scheme, our calls.
 *
 *     key ──► digest ──► positions ──► link, link, link
 *
 * Unlike our own kinds this one reads keys: no 128 bits would do for go-zero,
 * which hashes a key 14 times. So the calls that take a hash cannot tell
 * anything: to them every key is "maybe", and none can be added.
 *
 * Most systems have one array of bits. RedisBloom and Valkey chain several as
 * keys come, and lists of filters are chains, too; then a key is in if it is in
 * any link, and goes into the newest.
 *
 * A single question is the scheme's own affair, in one go (probe/scheme.h). In a
 * batch on a large filter the first FIRST positions of a key are computed, and on
 * their way from memory, while RING keys before it are tested; the others only if
 * all of those are set.
 *
 * The rate is that of the formula for independent positions. Most of these
 * schemes derive positions from each other, and some keep a key to one line, so
 * the truth is somewhat above it; docs/DIALECTS.md says where it is far above.
 */
#include "filter/foreign.h"

#include "base/alloc.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define FIRST 8
#define RING  16

/* ---- Plan --------------------------------------------------------------- */

/* Lines of Parquet have a word for each bit of a key, the others one large one. */
static bool grouped(uint32_t line)
{
    return line == 256;
}

static double foreign_plan_fpp(const seen_plan *plan, uint64_t items)
{
    if (plan->width) return seen_foreign_cuckoo_ops.plan_fpp(plan, items);
    if (!plan->hashes || !plan->bits) return 1; /* everything is "maybe" */
    if (plan->line)
        return seen_fpp_lines((double)items, (double)(plan->bits / plan->line),
                              plan->line, plan->hashes, grouped(plan->line));
    return seen_fpp_bloom((double)items, (double)plan->bits,
                          (double)plan->hashes);
}

void seen_foreign_one(struct seen_foreign *f, uint64_t bits, uint32_t hashes,
                      uint64_t bytes)
{
    f->count = 1;
    f->links[0] = (struct seen_link){.bytes = bytes,
                                     .place = seen_place_of(bits, hashes, 0)};
}

void seen_foreign_describe(struct seen_foreign *f)
{
    seen_plan *plan = &f->common.plan;
    const struct seen_link *newest = &f->links[f->count ? f->count - 1 : 0];
    *plan = (seen_plan){.kind = SEEN_FOREIGN,
                        .items = plan->items,
                        .fpp = plan->fpp,
                        .hash_bits = f->scheme->hash_bits};
    plan->bytes = sizeof *f + f->data_len;
    for (uint32_t i = 0; i < f->count; i++) {
        plan->bits += f->links[i].place.bits;
        plan->bytes += f->links[i].bytes;
    }
    if (f->count) plan->hashes = newest->place.hashes;
    if (f->count) plan->line = newest->place.line;
    plan->lines = plan->line ? 1 : plan->hashes;
    if (f->common.ops == &seen_foreign_cuckoo_ops) {
        plan->bits = 8 * (plan->bytes - sizeof *f); /* not buckets */
        plan->width = 8;
        plan->lines = 2;
    }
}

/* ---- Life --------------------------------------------------------------- */

static bool foreign_part(const seen_filter *g, uint32_t index,
                         struct seen_part *part)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (index < f->count)
        *part = (struct seen_part){f->links[index].at, f->links[index].bytes,
                                   false};
    else
        *part = (struct seen_part){f->data, f->data_len, false};
    return index < f->count + (f->data_len > 0);
}

static void foreign_place(seen_filter *g, uint32_t index, void *at)
{
    struct seen_foreign *f = seen_foreign(g);
    if (index < f->count)
        f->links[index].at = at;
    else
        f->data = at;
}

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
    uint64_t pos[SEEN_MOST_POSITIONS];
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
    uint64_t pos[SEEN_MOST_POSITIONS];
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

static bool foreign_maybe_key(const seen_filter *g, const void *key, size_t len)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (f->scheme->maybe && f->count == 1 && f->verdict == SEEN_BY_BITS)
        return f->scheme->maybe(f->seed, &f->links[0].place, f->links[0].at,
                                key, len);
    struct seen_digest d;
    f->scheme->digest(f->seed, key, len, &d);
    return test(f, &d);
}

static void drop_oldest(struct seen_foreign *f)
{
    struct seen_link *oldest = &f->links[0];
    f->common.items -= seen_min64(oldest->items, f->common.items);
    seen_release(&f->common.allocator, oldest->at, oldest->bytes);
    memmove(f->links, f->links + 1, (f->count - 1) * sizeof *f->links);
    f->count--;
}

/* Room for one more key. */
static seen_status make_room(struct seen_foreign *f)
{
    struct seen_link next = {0};
    if (!f->manners->grow) return SEEN_OK;
    seen_status status = f->manners->grow(f, &next);
    if (status != SEEN_OK || next.bytes == 0) return status;
    bool drop = f->manners->most_links && f->count == f->manners->most_links;
    if (!drop && f->count == SEEN_MOST_LINKS) return SEEN_FULL;
    if (f->common.limit && f->common.plan.bytes + next.bytes > f->common.limit)
        return SEEN_FULL;
    next.at = seen_alloc_zeroed(&f->common.allocator, next.bytes);
    if (!next.at) return SEEN_NOMEM;
    if (drop) drop_oldest(f);
    f->links[f->count++] = next;
    seen_foreign_describe(f);
    return SEEN_OK;
}

static seen_status visit(struct seen_foreign *f, const struct seen_digest *d,
                         bool *before)
{
    if (f->verdict != SEEN_BY_BITS) return SEEN_UNSUPPORTED;
    /* One array and nothing to decide: test and set in one go. */
    bool plain =
        f->count == 1 && !f->manners->adds_new_only && !f->manners->grow;
    bool known = !plain && test(f, d);
    if (known && f->manners->adds_new_only) {
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

static seen_status foreign_visit_key(seen_filter *g, const void *key,
                                     size_t len, bool *before)
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
        uint64_t pos[SEEN_MOST_POSITIONS];
        memcpy(pos, w->pos, sizeof w->pos);
        answers[i] = test_rest(f->scheme, &f->links[0], &w->d, pos, w->have);
        if (i + RING < n) send_for(f, &keys[i + RING], w);
    }
}

static void foreign_maybe_keys(const seen_filter *g, const seen_key *keys,
                               size_t n, bool *answers)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (f->verdict == SEEN_BY_BITS && f->count == 1 &&
        f->links[0].bytes > SEEN_RING_FROM_BYTES) {
        maybe_in_ring(f, keys, n, answers);
        return;
    }
    for (size_t i = 0; i < n; i++)
        answers[i] = foreign_maybe_key(g, keys[i].data, keys[i].len);
}

/* Adds prefetch as questions do; what a waiting key has computed is computed
 * again, which costs less than its bits coming late. */
static seen_status foreign_visit_keys(seen_filter *g, const seen_key *keys,
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
        seen_status status = foreign_visit_key(g, key->data, key->len, &was);
        if (status != SEEN_OK) return status;
        if (before) before[*done] = was;
    }
    return SEEN_OK;
}

static const struct seen_key_ops key_ops = {
    .maybe = foreign_maybe_key,
    .visit = foreign_visit_key,
    .maybe_many = foreign_maybe_keys,
    .visit_many = foreign_visit_keys,
};

/* ---- Hashes: no use here ------------------------------------------------ */

static bool foreign_maybe(const seen_filter *f, seen_hash h)
{
    (void)f, (void)h;
    return true;
}

static seen_status foreign_visit(seen_filter *f, seen_hash h, bool *before)
{
    (void)f, (void)h, (void)before;
    return SEEN_UNSUPPORTED;
}

static void foreign_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    (void)f, (void)h, (void)n;
}

static void foreign_maybe_many(const seen_filter *f, const seen_hash *h,
                               size_t n, size_t ahead, bool *answers)
{
    (void)f, (void)h, (void)ahead;
    memset(answers, true, n);
}

static seen_status foreign_visit_many(seen_filter *f, const seen_hash *h,
                                      size_t n, size_t ahead, bool *before,
                                      size_t *done)
{
    (void)f, (void)h, (void)ahead, (void)before;
    *done = 0;
    return n ? SEEN_UNSUPPORTED : SEEN_OK;
}

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
        if (f->manners->grow && l->capacity)
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

static seen_status foreign_merge(seen_filter *into, const seen_filter *from,
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

static bool foreign_equal(const seen_filter *f, const seen_filter *g)
{
    const struct seen_foreign *a = seen_foreign_of(f), *b = seen_foreign_of(g);
    if (!same_shape(a, b)) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (memcmp(a->links[i].at, b->links[i].at, (size_t)a->links[i].bytes))
            return false;
    return true;
}

static void foreign_clear(seen_filter *g)
{
    struct seen_foreign *f = seen_foreign(g);
    while (f->count > 1) {
        struct seen_link *last = &f->links[--f->count];
        seen_release(&g->allocator, last->at, last->bytes);
    }
    if (f->count) {
        memset(f->links[0].at, 0, (size_t)f->links[0].bytes);
        f->links[0].items = 0;
    }
    f->counted = true;
    seen_foreign_describe(f);
}

/* The mean over the lines, of what the bits of each would let pass. */
static double rate_of_lines(const struct seen_link *l)
{
    uint32_t line = l->place.line, k = l->place.hashes;
    uint32_t group = (grouped(line) ? line / k : line) / 8;
    uint64_t lines = l->bytes / (line / 8);
    double sum = 0;
    for (uint64_t i = 0; i < lines; i++) {
        const uint8_t *at = l->at + i * (line / 8), *end = at + line / 8;
        double wrong = 1;
        for (; at < end; at += group)
            wrong *= (double)count_bytes(at, group) / (8.0 * group);
        sum += grouped(line) ? wrong : pow(wrong, k);
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

static void foreign_info(const seen_filter *g, seen_info *info)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    double clean = 0; /* logarithm of the chance that no link is wrong */
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        uint64_t set = count_bits(l);
        info->bits_set += set;
        clean += log1p(-rate_of(l, set));
    }
    info->hash = f->scheme->hash;
    info->bits = g->plan.bits;
    info->bytes = g->plan.bytes;
    info->links = f->count;
    info->counted = f->counted;
    info->items = f->counted ? g->items : estimate(f);
    info->fpp_now = f->verdict == SEEN_ALWAYS_MAYBE ? 1
                    : f->verdict == SEEN_NEVER_IN   ? 0
                                                    : -expm1(clean);
}

static void foreign_size(const seen_filter *g, seen_size *size)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < f->count; i++)
        capacity += seen_min64(f->links[i].capacity, UINT64_MAX - capacity);
    if (capacity) size->capacity = capacity;
    size->layers = f->count;
    size->growth = f->fixed ? 0 : f->growth;
    size->counted = f->counted;
}

/* What it would be made from comes with a dialect: api/dialect.c. */
static seen_status foreign_plan(const seen_spec *spec, seen_plan *plan,
                                seen_error *e)
{
    (void)spec, (void)plan;
    return seen_fail(e, SEEN_INVALID, "dialect",
                     "dialect: expected a name: it makes a filter of another "
                     "system");
}

static bool foreign_plan_read(seen_plan *plan)
{
    (void)plan;
    return false;
}

static void foreign_shape(seen_filter *f)
{
    (void)f;
}

const struct seen_filter_ops seen_foreign_ops = {
    .kind = SEEN_FOREIGN,
    .name = "foreign",
    .state_size = sizeof(struct seen_foreign),
    .keys = &key_ops,
    .plan = foreign_plan,
    .plan_fpp = foreign_plan_fpp,
    .plan_read = foreign_plan_read,
    .shape = foreign_shape,
    .part = foreign_part,
    .place = foreign_place,
    .maybe = foreign_maybe,
    .visit = foreign_visit,
    .prefetch = foreign_prefetch,
    .maybe_many = foreign_maybe_many,
    .visit_many = foreign_visit_many,
    .merge = foreign_merge,
    .equal = foreign_equal,
    .clear = foreign_clear,
    .info = foreign_info,
    .size = foreign_size,
};
