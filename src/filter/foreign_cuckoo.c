/*
 * foreign_cuckoo.c - RedisBloom's cuckoo filter, slot for slot.
 *
 *     hash ──► fingerprint 1..255, bucket a, bucket b = a ^ (fingerprint * c)
 *
 *     | . 7 | 9 . | . . | 3 3 | ...     N buckets of a few slots of a byte; 0: free
 *
 * Not our cuckoo kind (filter/cuckoo.c), which has other hashes, widths and
 * lines: this one puts every byte where the original would. Its links are
 * sub-filters, each with `growth` times the buckets of the one before it. A key
 * goes into the newest that has a free slot for it; if none has, one that lies
 * in its way is moved to its other bucket, and so on, at most `tries` times; and
 * if that fails everything is put back and a new sub-filter begins.
 *
 * Removing the fingerprint of a key that was never added removes somebody
 * else's. The original also moves fingerprints into older sub-filters once a
 * tenth of what is in has been removed; this does not, which changes where they
 * lie and never an answer.
 */
#include "filter/foreign.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

#define OTHER 0x5bd1e995u /* from a bucket to the other one */

/* ---- Buckets ------------------------------------------------------------ */

struct found {
    uint8_t print;
    uint64_t a, b; /* before they are cut to the number of buckets */
};

static struct found find(const struct seen_foreign *f, const void *key,
                         size_t len)
{
    struct seen_digest d;
    f->scheme->digest(f->seed, key, len, &d);
    uint8_t print = (uint8_t)(d.h[0] % 255 + 1);
    return (struct found){print, d.h[0], d.h[0] ^ (uint64_t)print * OTHER};
}

static uint64_t buckets_of(const struct seen_foreign *f,
                           const struct seen_link *l)
{
    return l->bytes / f->cuckoo.slots;
}

/* The number of buckets is a power of two. */
static uint8_t *bucket(const struct seen_foreign *f, const struct seen_link *l,
                       uint64_t hash)
{
    return l->at + (hash & (buckets_of(f, l) - 1)) * f->cuckoo.slots;
}

static uint8_t *slot_of(const struct seen_foreign *f, uint8_t *from,
                        uint8_t print)
{
    return memchr(from, print, f->cuckoo.slots);
}

/* A slot of a sub-filter that holds this, in either bucket; NULL: none. */
static uint8_t *look(const struct seen_foreign *f, const struct seen_link *l,
                     const struct found *k, uint8_t print)
{
    uint8_t *slot = slot_of(f, bucket(f, l, k->a), print);
    return slot ? slot : slot_of(f, bucket(f, l, k->b), print);
}

/* ---- Add ---------------------------------------------------------------- */

/* Move what is in the way. On failure everything is as it was. */
static bool evict(struct seen_foreign *f, struct seen_link *l,
                  const struct found *k)
{
    uint32_t slots = f->cuckoo.slots, victim = 0, round = 0;
    uint8_t print = k->print;
    uint64_t mask = buckets_of(f, l) - 1, at = k->a & mask;
    for (; round < f->cuckoo.tries; round++) {
        uint8_t *slot = l->at + at * slots + victim, was = *slot;
        *slot = print;
        print = was;
        at = (at ^ (uint64_t)print * OTHER) & mask;
        uint8_t *empty = slot_of(f, l->at + at * slots, 0);
        if (empty) {
            *empty = print;
            return true;
        }
        victim = (victim + 1) % slots;
    }
    /* Back the way we came. */
    while (round-- > 0) {
        victim = (victim + slots - 1) % slots;
        at = (at ^ (uint64_t)print * OTHER) & mask;
        uint8_t *slot = l->at + at * slots + victim, was = *slot;
        *slot = print;
        print = was;
    }
    return false;
}

static seen_status grow(struct seen_foreign *f)
{
    uint64_t bytes;
    if (f->cuckoo.growth == 0) return SEEN_FULL;
    if (!seen_mul_fits(f->links[f->count - 1].bytes, f->cuckoo.growth,
                       &bytes) ||
        bytes > SEEN_MAX_BITS / 8)
        return SEEN_FULL;
    return seen_foreign_append(f, (struct seen_link){.bytes = bytes});
}

static seen_status insert(struct seen_foreign *f, const struct found *k)
{
    for (;;) {
        uint8_t *slot = NULL;
        for (uint32_t i = f->count; !slot && i-- > 0;)
            slot = look(f, &f->links[i], k, 0);
        if (slot) *slot = k->print;
        if (slot || evict(f, &f->links[f->count - 1], k)) break;
        seen_status status = grow(f);
        if (status != SEEN_OK) return status;
    }
    /* A header may have said so many before; no more than slots, for readers. */
    uint64_t slots = 0;
    for (uint32_t i = 0; i < f->count; i++)
        slots += f->links[i].bytes;
    f->common.items += f->common.items < slots;
    return SEEN_OK;
}

/* ---- Keys --------------------------------------------------------------- */

static uint32_t cuckoo_count_key(const seen_filter *g, const void *key,
                                 size_t len)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    struct found k = find(f, key, len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        const uint8_t *a = bucket(f, l, k.a), *b = bucket(f, l, k.b);
        for (uint32_t s = 0; s < f->cuckoo.slots; s++)
            n += (a[s] == k.print) + (a != b && b[s] == k.print);
    }
    return n;
}

static bool maybe(const struct seen_foreign *f, const struct found *k)
{
    for (uint32_t i = f->count; i-- > 0;)
        if (look(f, &f->links[i], k, k->print)) return true;
    return false;
}

static bool cuckoo_maybe_key(const seen_filter *g, const void *key, size_t len)
{
    struct found k = find(seen_foreign_of(g), key, len);
    return maybe(seen_foreign_of(g), &k);
}

static seen_status cuckoo_add_key(seen_filter *g, const void *key, size_t len)
{
    struct found k = find(seen_foreign_of(g), key, len);
    return insert(seen_foreign(g), &k);
}

/* Adds only what is new, as our own cuckoo kind and CF.ADDNX do. */
static seen_status cuckoo_visit_key(seen_filter *g, const void *key, size_t len,
                                    bool *before)
{
    struct seen_foreign *f = seen_foreign(g);
    struct found k = find(f, key, len);
    bool was = maybe(f, &k);
    seen_status status = was ? SEEN_OK : insert(f, &k);
    if (status == SEEN_OK) *before = was;
    return status;
}

static seen_status cuckoo_remove_key(seen_filter *g, const void *key,
                                     size_t len)
{
    struct seen_foreign *f = seen_foreign(g);
    struct found k = find(f, key, len);
    for (uint32_t i = f->count; i-- > 0;) {
        uint8_t *slot = look(f, &f->links[i], &k, k.print);
        if (!slot) continue;
        *slot = 0;
        g->items -= g->items > 0;
        f->cuckoo.removed++;
        return SEEN_OK;
    }
    return SEEN_ABSENT;
}

#define RING 16

static void prefetch(const struct seen_foreign *f, const struct found *k)
{
    const struct seen_link *newest = &f->links[f->count - 1];
    seen_prefetch_read(bucket(f, newest, k->a));
    seen_prefetch_read(bucket(f, newest, k->b));
}

static void cuckoo_maybe_keys(const seen_filter *g, const seen_key *keys,
                              size_t n, bool *answers)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    struct found ring[RING];
    for (size_t i = 0; i < n + RING; i++) {
        struct found *k = &ring[i % RING];
        if (i >= RING && i - RING < n) answers[i - RING] = maybe(f, k);
        if (i >= n) continue;
        *k = find(f, keys[i].data, keys[i].len);
        prefetch(f, k);
    }
}

static seen_status cuckoo_visit_keys(seen_filter *g, const seen_key *keys,
                                     size_t n, bool *before, size_t *done)
{
    for (*done = 0; *done < n; ++*done) {
        const seen_key *k = &keys[*done];
        seen_status status =
            before ? cuckoo_visit_key(g, k->data, k->len, &before[*done])
                   : cuckoo_add_key(g, k->data, k->len);
        if (status != SEEN_OK) return status;
    }
    return SEEN_OK;
}

static const struct seen_key_ops key_ops = {
    .maybe = cuckoo_maybe_key,
    .visit = cuckoo_visit_key,
    .add = cuckoo_add_key,
    .remove = cuckoo_remove_key,
    .count = cuckoo_count_key,
    .maybe_many = cuckoo_maybe_keys,
    .visit_many = cuckoo_visit_keys,
};

/* ---- Whole filters ------------------------------------------------------ */

static uint64_t count_used(const struct seen_link *l)
{
    uint64_t used = 0;
    for (uint64_t i = 0; i < l->bytes; i++)
        used += l->at[i] != 0;
    return used;
}

static seen_status cuckoo_merge(seen_filter *into, const seen_filter *from,
                                seen_merge_op op)
{
    (void)into, (void)from, (void)op;
    return SEEN_UNSUPPORTED;
}

static bool cuckoo_equal(const seen_filter *g, const seen_filter *h)
{
    const struct seen_foreign *a = seen_foreign_of(g), *b = seen_foreign_of(h);
    if (a->scheme != b->scheme || a->count != b->count ||
        a->cuckoo.slots != b->cuckoo.slots ||
        a->cuckoo.growth != b->cuckoo.growth ||
        a->cuckoo.tries != b->cuckoo.tries)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->links[i].bytes != b->links[i].bytes ||
            memcmp(a->links[i].at, b->links[i].at, (size_t)a->links[i].bytes))
            return false;
    return true;
}

static void cuckoo_clear(seen_filter *g)
{
    seen_foreign_clear(g);
    seen_foreign(g)->cuckoo.removed = 0;
}

static void cuckoo_info(const seen_filter *g, seen_info *info)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    info->hash = f->scheme->hash;
    info->layers = f->count;
    info->growth = f->cuckoo.growth;
    info->counted = f->counted;
}

static void cuckoo_measure(const seen_filter *g, seen_info *info)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    double seen_slots = 0; /* that a stranger's two buckets have in use */
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        uint64_t used = count_used(l);
        info->bits_set += 8 * used;
        seen_slots += 2.0 * (double)used / (double)buckets_of(f, l);
    }
    info->fpp_now = -expm1(seen_slots * log1p(-1.0 / 255));
}

const struct seen_filter_ops seen_foreign_cuckoo_ops = {
    SEEN_FOREIGN_OPS,          .keys = &key_ops,      .merge = cuckoo_merge,
    .equal = cuckoo_equal,     .clear = cuckoo_clear, .info = cuckoo_info,
    .measure = cuckoo_measure,
};
