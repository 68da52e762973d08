/*
 * foreign.h - a filter of another system, in memory: what the dialects fill in.
 *
 *     scheme     where the bits of a key are          probe/scheme.h
 *     links      arrays, oldest first; nearly always one
 *     chain      of bits: how it grows                foreign_chain.c
 *     cuckoo     or of slots: how many, how it grows  foreign_cuckoo.c
 *     rules      what an add does beside setting bits
 *     the rest   what the original's header says, to be written back
 */
#ifndef SEEN_FOREIGN_H
#define SEEN_FOREIGN_H

#include "filter/filter.h"
#include "probe/scheme.h"

#define SEEN_LINKS_MAX 64

struct seen_link {
    uint8_t *at;     /* the array; while a dialect reads: where they lie */
    uint64_t bytes;  /* at least 1 */
    uint64_t stored; /* of them in the bytes read; the rest are zeros */
    struct seen_place place;  /* of slots: their bits, and those of a key */
    uint64_t items, capacity; /* 0 where the original does not keep them */
    double fpp;               /* 0: likewise */
    /* As some headers say them: bits per key, and log2 of the bits. */
    double per_key;
    uint32_t power;
};

struct seen_foreign;

struct seen_foreign_rules {
    /* A key that reads "maybe" already is not added: RedisBloom, Valkey. */
    bool adds_new_only;
    /* Before a new key: a link for it, if one is due; bytes stay 0 otherwise.
     * NULL: never. */
    seen_status (*grow)(const struct seen_foreign *f, struct seen_link *next);
    /* The most links there may be, the oldest making room; 0: no such rule. */
    uint32_t links_max;
};

/* Some blocks mean something whatever is in them. */
enum seen_foreign_verdict {
    SEEN_BY_BITS = 0,
    SEEN_ALWAYS_MAYBE, /* a form that readers must not reject */
    SEEN_NEVER_IN      /* a block of no keys */
};

#define SEEN_NOTE_MAX 64

struct seen_foreign {
    seen_filter common;
    const struct seen_dialect *dialect; /* that it was made by */
    const struct seen_scheme *scheme;
    const struct seen_foreign_rules *rules;
    enum seen_foreign_verdict verdict;
    bool counted; /* common.items is known, not to be estimated */

    uint32_t count; /* of links; 0 only where the verdict needs none */
    struct seen_link links[SEEN_LINKS_MAX];

    uint8_t seed[32]; /* where the scheme has one */
    union {
        struct {
            uint32_t growth;
            bool fixed; /* does not grow, whatever `growth` says */
            double fpp, tightening;
            uint32_t options, age; /* which form of header it had */
        } chain;
        struct {
            uint32_t slots;  /* of a bucket, a byte each */
            uint32_t growth; /* times the buckets of the one before; 0: none */
            uint32_t tries;  /* evictions */
            uint64_t removed;
        } cuckoo;
    };
    /* Header bytes that come back as they were. */
    uint8_t note[SEEN_NOTE_MAX];
    uint32_t note_len;
    /* And bytes behind the bits that belong to somebody else. */
    uint8_t *data;
    uint64_t data_len;
};

SEEN_INLINE struct seen_foreign *seen_foreign(seen_filter *f)
{
    return (struct seen_foreign *)f;
}

SEEN_INLINE const struct seen_foreign *seen_foreign_of(const seen_filter *f)
{
    return (const struct seen_foreign *)f;
}

extern const struct seen_filter_ops seen_foreign_cuckoo_ops;

/* One link of m bits, k per key, in so many bytes, no lines. */
void seen_foreign_one(struct seen_foreign *f, uint64_t bits, uint32_t hashes,
                      uint64_t bytes);

/* A link of slots; bytes is a multiple of those of a bucket. */
struct seen_link seen_cuckoo_link(const struct seen_foreign *f, uint64_t bytes);

/* The plan that the links make. */
void seen_foreign_describe(struct seen_foreign *f);

/* Lines of Parquet have a word for each bit of a key, the others one large one. */
SEEN_INLINE bool seen_line_grouped(uint32_t line)
{
    return line == 256;
}

/* ---- What chains and cuckoo filters share ------------------------------- */

seen_status seen_foreign_plan(const seen_spec *spec, seen_plan *plan,
                              seen_error *e);
double seen_foreign_plan_fpp(const seen_plan *plan, uint64_t items);
bool seen_foreign_plan_read(seen_plan *plan);
void seen_foreign_shape(seen_filter *f);
bool seen_foreign_part(const seen_filter *g, uint32_t index,
                       struct seen_part *part);
void seen_foreign_place(seen_filter *g, uint32_t index, void *at);
bool seen_foreign_maybe(const seen_filter *f, seen_hash h);
seen_status seen_foreign_visit(seen_filter *f, seen_hash h, bool *before);
void seen_foreign_prefetch(const seen_filter *f, const seen_hash *h, size_t n);
void seen_foreign_maybe_many(const seen_filter *f, const seen_hash *h, size_t n,
                             size_t ahead, bool *answers);
seen_status seen_foreign_visit_many(seen_filter *f, const seen_hash *h,
                                    size_t n, size_t ahead, bool *before,
                                    size_t *done);
/* No links but the first, and nothing in it. */
void seen_foreign_clear(seen_filter *f);

#define SEEN_FOREIGN_OPS                                                       \
    .kind = SEEN_FOREIGN, .name = "foreign",                                   \
    .state_size = sizeof(struct seen_foreign), .plan = seen_foreign_plan,      \
    .plan_fpp = seen_foreign_plan_fpp, .plan_read = seen_foreign_plan_read,    \
    .shape = seen_foreign_shape, .part = seen_foreign_part,                    \
    .place = seen_foreign_place, .maybe = seen_foreign_maybe,                  \
    .visit = seen_foreign_visit, .prefetch = seen_foreign_prefetch,            \
    .maybe_many = seen_foreign_maybe_many,                                     \
    .visit_many = seen_foreign_visit_many

#endif
