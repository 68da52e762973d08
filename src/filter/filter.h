/*
 * filter.h - what every kind of filter is to the layers right of it.
 *
 * A kind is one file that fills in one `struct seen_filter_ops`, and one row in
 * kinds.def. Its own state lies behind the common part:
 *
 *     struct blocked { seen_filter common; struct seen_lines lines; ... };
 *
 * and `state_size` tells seen_new() how much to allocate. Payload memory is the
 * kind's own affair. All operations work on hashes: the calls of seen.h hash
 * first, check arguments, and may rely on `ops` for the rest.
 */
#ifndef SEEN_FILTER_H
#define SEEN_FILTER_H

#include "seen.h"

#include "base/base.h"
#include "hash/hash.h"

struct seen_filter {
    const struct seen_filter_ops *ops;
    const struct seen_hash_fn *hash;
    uint8_t secret[16]; /* key or seed */
    uint32_t flags;
    seen_allocator allocator;
    seen_plan plan;
    uint64_t limit; /* bytes a kind that grows may reach; 0 = no limit */
    uint64_t items; /* adds that changed something */
};

struct seen_filter_ops {
    seen_kind kind;
    const char *name;
    size_t state_size;
    uint32_t flags; /* the seen_spec flags this kind understands */

    /* Fill in the plan, all but kind, or return what is wrong with the spec.
     * Numbers are already known to be sane, each for itself. */
    const char *(*plan)(const seen_spec *spec, seen_plan *plan);
    double (*plan_fpp)(const seen_plan *plan, uint64_t items);

    /* Get the payload for f->plan; give it back. Both called once. */
    seen_status (*open)(seen_filter *f);
    void (*close)(seen_filter *f);

    /* NULL, or the only way in: fill the new filter from n hashes, which may
     * be reordered; `spare` is as long. */
    seen_status (*build)(seen_filter *f, uint64_t *hashes, uint64_t n,
                         uint64_t *spare);

    bool (*maybe)(const seen_filter *f, seen_hash h);
    seen_status (*visit)(seen_filter *f, seen_hash h, bool *before);
    /* NULL: as visit; cannot; 0 or 1. */
    seen_status (*add)(seen_filter *f, seen_hash h);
    seen_status (*remove)(seen_filter *f, seen_hash h);
    uint32_t (*count)(const seen_filter *f, seen_hash h);

    /* Start loading what these hashes will touch. */
    void (*prefetch)(const seen_filter *f, const seen_hash *h, size_t n);
    /* `ahead` more hashes lie behind the n; see bits/block.h. */
    void (*maybe_many)(const seen_filter *f, const seen_hash *h, size_t n,
                       size_t ahead, bool *answers);
    /* before may be NULL, which means add; *done is always written. */
    seen_status (*visit_many)(seen_filter *f, const seen_hash *h, size_t n,
                              size_t ahead, bool *before, size_t *done);

    /* Room for so many keys in all; NULL: the size is fixed. */
    seen_status (*reserve)(seen_filter *f, uint64_t items);

    /* The other filter has the same kind, hash and secret; the rest of what
     * must agree is up to the kind: SEEN_MISMATCH. */
    seen_status (*merge)(seen_filter *into, const seen_filter *from,
                         seen_merge_op op);
    seen_status (*copy_payload)(seen_filter *to, const seen_filter *from);
    bool (*equal)(const seen_filter *a, const seen_filter *b);
    void (*clear)(seen_filter *f);

    /* Fill in bits, bits_set, bytes, items and fpp_now; the rest comes from
     * the plan and may be corrected. */
    void (*info)(const seen_filter *f, seen_info *info);
};

#define KIND(constant, ops) extern const struct seen_filter_ops ops;
#include "filter/kinds.def"
#undef KIND

/* Row `index` of kinds.def, NULL past its end; the row of a kind, or NULL. */
const struct seen_filter_ops *seen_kinds_at(size_t index);
const struct seen_filter_ops *seen_kinds_find(seen_kind kind);

/* ---- What kinds share --------------------------------------------------- */

/* Half of a small L2 cache: below, everything is at hand and prefetching only
 * costs instructions. */
#define SEEN_RING_FROM_BYTES (256 * 1024)

/* Which of items, fpp and bits a spec gives, and whether that is enough. */
const char *seen_spec_needs_two(const seen_spec *spec);

/* Merge and compare for kinds whose payload is words of bits that are only
 * ever set: SEEN_MISMATCH and false unless bits and hashes agree. */
seen_status seen_merge_words(seen_filter *into, uint64_t *a,
                             const seen_filter *from, const uint64_t *b,
                             seen_merge_op op);
bool seen_equal_words(const seen_filter *f, const uint64_t *a,
                      const seen_filter *g, const uint64_t *b);

#endif
