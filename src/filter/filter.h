/*
 * filter.h - what every kind of filter is to the layers right of it.
 *
 * A kind is one file that fills in one `struct seen_filter_ops`, and one row in
 * kinds.def. Its own state lies behind the common part:
 *
 *     struct blocked { seen_filter common; struct seen_lines lines; ... };
 *
 * and `state_size` tells seen_new() how much to allocate. The payload is one
 * block of memory or a few, the parts: a kind says how long each is and where
 * it keeps the pointer, and whoever makes the filter puts memory there, fresh
 * from the allocator or inside a file that is mapped. State and parts together
 * are the filter: copying, saving and loading need to know nothing else, so
 * state holds no other pointers (a kind that must have some has `own`, which makes
 * them its own in a copy). (The allowlist is no business of a kind: it
 * overrules answers in the calls of seen.h.)
 *
 * Operations work on hashes: the calls of seen.h hash first, check arguments,
 * and may rely on `ops` for the rest. Filters of other systems read the keys
 * themselves.
 */
#ifndef SEEN_FILTER_H
#define SEEN_FILTER_H

#include "seen.h"
#include "seen_allowlist.h"

#include "base/base.h"
#include "base/error.h"
#include "hash/hash.h"

#include <inttypes.h>

struct seen_lines; /* bits/lines.h */

struct seen_filter {
    const struct seen_filter_ops *ops;
    const struct seen_hash_fn *hash;
    /* The shortest way to an answer: the kernel itself, for a kind that is
     * nothing but lines, which then lie right behind this struct. NULL: ask
     * ops. */
    bool (*maybe_lines)(const struct seen_lines *lines, seen_hash h);
    uint8_t secret[16]; /* key or seed */
    uint32_t flags;
    uint8_t listed;   /* seen_listed: what `allowed` means */
    uint8_t key_form; /* seen_key_form: carried, never read */
    bool borrowed;    /* the parts belong to somebody else */
    bool frozen;      /* and must not be changed */
    seen_allocator allocator;
    seen_plan plan;
    uint64_t limit; /* bytes a kind that grows may reach; 0 = no limit */
    uint64_t items; /* adds that changed something */
    seen_allowlist *allowed; /* NULL, or the filter's own: api/allow.c */
};

/* Where there is maybe_lines. */
SEEN_INLINE const struct seen_lines *seen_filter_lines(const seen_filter *f)
{
    return (const struct seen_lines *)(const void *)(f + 1);
}

/* A block of payload. */
struct seen_part {
    void *at;     /* NULL: not placed yet */
    uint64_t len; /* bytes, at least 1 */
    bool words;   /* 64-bit numbers; otherwise bytes */
};

/* A kind that reads keys instead of hashes: these are then the way in, and the
 * calls of its ops that take a hash are for those who have no key. `before` and
 * `done` as there. NULL: cannot; 0 or 1. */
struct seen_key_ops {
    bool (*maybe)(const seen_filter *f, const void *key, size_t len);
    seen_status (*visit)(seen_filter *f, const void *key, size_t len,
                         bool *before);
    seen_status (*add)(seen_filter *f, const void *key, size_t len);
    seen_status (*remove)(seen_filter *f, const void *key, size_t len);
    uint32_t (*count)(const seen_filter *f, const void *key, size_t len);
    void (*maybe_many)(const seen_filter *f, const seen_key *keys, size_t n,
                       bool *answers);
    seen_status (*visit_many)(seen_filter *f, const seen_key *keys, size_t n,
                              bool *before, size_t *done);
};

#define SEEN_TOUCHED_MAX 64

/* All hashes of a set, their low halves, different and in ascending order, a run
 * after the other. */
struct seen_source {
    uint64_t n; /* of all runs */
    /* The next run, valid until the one after it is asked for; *n is 0 behind the
     * last. What fails is passed on. */
    seen_status (*next)(struct seen_source *s, const uint64_t **run,
                        uint64_t *n);
};

#define SEEN_STATE_MAX 8192 /* bytes that save_state() may write */

struct seen_filter_ops {
    seen_kind kind;
    const char *name;
    size_t state_size;
    uint32_t flags; /* the seen_spec flags this kind understands */
    /* NULL: chosen by flags and plan. Otherwise keys are read by this one, and
     * the size of a filter is `bits`, whatever the number of keys. */
    const struct seen_hash_fn *hash;
    const struct seen_key_ops *keys; /* NULL: hashes are all that it needs */

    /* Fill in the plan, all but kind. SEEN_INVALID: the error says what is
     * wrong with the spec. Numbers are already known to be sane, each for
     * itself. */
    seen_status (*plan)(const seen_spec *spec, seen_plan *plan, seen_error *e);
    double (*plan_fpp)(const seen_plan *plan, uint64_t items);

    /* A plan from outside: kind, hashes, width, items, bits, fpp and
     * hash_bits. Could it be one of ours? Then fill in the rest. */
    bool (*plan_read)(seen_plan *plan);
    /* NULL, or what an earlier version made, by a plan that plan_read() refuses:
     * a sentence that says so; NULL: no, it is just wrong. */
    const char *(*plan_earlier)(const seen_plan *plan);

    /* Set up everything for f->plan but the parts. */
    void (*shape)(seen_filter *f);

    /* Part `index`, false past the last; and here is memory for it. */
    bool (*part)(const seen_filter *f, uint32_t index, struct seen_part *part);
    void (*place)(seen_filter *f, uint32_t index, void *at);

    /* What else a saved filter needs beside plan, items and parts; NULL:
     * nothing. load_state() comes after shape() and reads hostile bytes:
     * SEEN_CORRUPT or SEEN_NOMEM. */
    size_t (*save_state)(const seen_filter *f, uint8_t *to);
    seen_status (*load_state)(seen_filter *f, const uint8_t *from, size_t len);
    /* NULL: the state points to nothing but parts. Otherwise f is a copy of
     * another's state, byte for byte: it gets memory of its own for the rest,
     * SEEN_NOMEM if there is none; and here is an end of it. */
    seen_status (*own)(seen_filter *f);
    void (*disown)(seen_filter *f);
    /* Parts from outside that could make a later call go wrong; NULL: any
     * bytes will do. Questions must come back whatever is in them. */
    bool (*parts_ok)(const seen_filter *f);

    /* NULL, or the only way in: fill the new filter, made for as many keys as
     * there are, at least 1. */
    seen_status (*build)(seen_filter *f, struct seen_source *from);

    bool (*maybe)(const seen_filter *f, seen_hash h);
    seen_status (*visit)(seen_filter *f, seen_hash h, bool *before);
    /* NULL: as visit; cannot; 0 or 1. */
    seen_status (*add)(seen_filter *f, seen_hash h);
    seen_status (*remove)(seen_filter *f, seen_hash h);
    uint32_t (*count)(const seen_filter *f, seen_hash h);

    /* The time is `now_ms`; NULL: the kind knows no time, and its spec gives none
     * of last, window_ms and generations. */
    seen_status (*advance)(seen_filter *f, uint64_t now_ms);

    /* Start loading what these hashes will touch. */
    void (*prefetch)(const seen_filter *f, const seen_hash *h, size_t n);
    /* `ahead` more hashes lie behind the n; see bits/lines.h. */
    void (*maybe_many)(const seen_filter *f, const seen_hash *h, size_t n,
                       size_t ahead, bool *answers);
    /* The same at a later time; NULL: as maybe_many. */
    void (*maybe_many_at)(const seen_filter *f, uint64_t now_ms,
                          const seen_hash *h, size_t n, bool *answers);
    /* before may be NULL, which means add; *done is always written. */
    seen_status (*visit_many)(seen_filter *f, const seen_hash *h, size_t n,
                              size_t ahead, bool *before, size_t *done);

    /* NULL, unless an add sets bits of part 0 and does nothing else, so that it
     * can be done in a file that others have mapped: the bytes that it touches,
     * at most SEEN_TOUCHED_MAX, and how many. */
    uint32_t (*touches)(const seen_filter *f, seen_hash h, uint64_t *at);

    /* Room for so many keys in all; NULL: the size is fixed. */
    seen_status (*reserve)(seen_filter *f, uint64_t items);

    /* The other filter has the same kind, hash and secret; the rest of what
     * must agree is up to the kind: SEEN_MISMATCH. */
    seen_status (*merge)(seen_filter *into, const seen_filter *from,
                         seen_merge_op op);
    bool (*equal)(const seen_filter *a, const seen_filter *b);
    /* NULL: all parts to zero. */
    void (*clear)(seen_filter *f);

    /* NULL, unless there is more to say than items and plan do, which are
     * filled in. Looks at no bits. */
    void (*info)(const seen_filter *f, seen_info *info);
    /* After that: fill in bits_set and fpp_now, and items if they are not
     * counted. */
    void (*measure)(const seen_filter *f, seen_info *info);
};

#define KIND(constant, ops) extern const struct seen_filter_ops ops;
#include "filter/kinds.def"
#undef KIND

/* Made by dialects, so it is no row. */
extern const struct seen_filter_ops seen_foreign_ops;

/* Row `index` of kinds.def, NULL past its end; the row of a kind, or NULL. */
const struct seen_filter_ops *seen_kinds_at(size_t index);
SEEN_PRIVATE const struct seen_filter_ops *seen_kinds_find(seen_kind kind);

/* The hash that a filter of this kind has. */
const struct seen_hash_fn *seen_kind_hash(const struct seen_filter_ops *ops,
                                          bool keyed, uint32_t bits);

/* ---- Parts: memory for all, or for none; and back ------------------------ */

seen_status seen_parts_open(seen_filter *f);
void seen_parts_close(seen_filter *f);
void seen_parts_copy(seen_filter *to, const seen_filter *from);
void seen_parts_clear(seen_filter *f);

/* The filter itself, all zeros but for its allocator, or NULL; and back. */
seen_filter *seen_state_open(const struct seen_filter_ops *ops,
                             const seen_allocator *allocator);
void seen_state_close(seen_filter *f);

/* ---- What kinds share --------------------------------------------------- */

/* Half of a small L2 cache: below, everything is at hand and prefetching only
 * costs instructions. */
#define SEEN_RING_FROM_BYTES (256 * 1024)

/* Each number by itself, and what is reserved: SEEN_INVALID. */
seen_status seen_spec_sane(const seen_spec *spec, seen_error *e);

/* Which of items, fpp and bits a spec gives, and whether that is enough:
 * SEEN_INVALID if not. */
seen_status seen_spec_needs_two(const seen_spec *spec, seen_error *e);

/* What no filter can keep, each SEEN_INVALID: too few bits for the keys and the
 * rate; more than SEEN_MAX_BITS; a rate below that of the longest hash. */
seen_status seen_spec_too_few(const seen_spec *spec, seen_error *e);
seen_status seen_spec_too_large(const seen_spec *spec, seen_error *e);
seen_status seen_spec_beyond_hashes(const seen_spec *spec, seen_error *e);

/* Merge and compare for kinds whose payload is words of bits that are only
 * ever set: SEEN_MISMATCH and false unless bits and hashes agree. */
seen_status seen_merge_words(seen_filter *into, uint64_t *a,
                             const seen_filter *from, const uint64_t *b,
                             seen_merge_op op);
bool seen_equal_words(const seen_filter *f, const uint64_t *a,
                      const seen_filter *g, const uint64_t *b);

#endif
