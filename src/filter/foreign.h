/*
 * foreign.h - a filter of another system, in memory: what the dialects fill in.
 *
 *     scheme     where the bits of a key are          probe/scheme.h
 *     links      arrays, oldest first; nearly always one
 *     chain      of bits: how it grows                foreign_chain.c
 *     cuckoo     or of slots: how many, how it grows  foreign_cuckoo.c
 *     rules      what an add does beside setting bits
 *     the rest   what the original's header says, to be written back
 *
 * Links. The first lies in the struct, more have memory of their own:
 *
 *     one link         links ──► one
 *     more, room > 0   links ──► | link | link | link | free |
 *
 * so that a filter of one array costs its bits and about 550 bytes, and a chain 112
 * for each link. Tiny links would cost many times their bits that way, and a header
 * can ask for thousands of them in no bytes at all: RedisBloom's CF has no header
 * for each. So chains are bounded twice (seen_links_fit()), by 65,535 links, which
 * is what RedisBloom's CF can count, and beyond 256 of them by 32 bytes a link on
 * average. RedisBloom's BF never gets there: each link has one hash more than the
 * one before it, and 255 are the end.
 */
#ifndef SEEN_FOREIGN_H
#define SEEN_FOREIGN_H

#include "filter/filter.h"
#include "probe/scheme.h"

#define SEEN_LINKS_MAX  65535
#define SEEN_LINKS_FREE 256 /* so many may be tiny */
#define SEEN_LINK_BYTES 32  /* more must have so many each, on average */

struct seen_link {
    uint8_t *at;     /* the array; while a dialect reads: where they lie */
    uint64_t bytes;  /* at least 1 */
    uint64_t stored; /* of them in the bytes read; the rest are zeros */
    /* Of chains; an array of slots is its bytes, and nothing else. */
    struct seen_place place;
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
    uint32_t room;  /* for links behind `links`; 0: that is &one */
    struct seen_link *links;
    struct seen_link one;

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
            uint32_t growth; /* how many times the buckets of the newest link
                                the next one has; 0: there is none */
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

/* An empty one, to be filled in; and its links back, unless seen_foreign_make()
 * has taken them. */
void seen_foreign_begin(struct seen_foreign *f,
                        const seen_allocator *allocator);
void seen_foreign_end(struct seen_foreign *f);

/* May there be n links of so many bytes in all? */
SEEN_INLINE bool seen_links_fit(uint64_t n, uint64_t bytes)
{
    return n <= SEEN_LINKS_FREE ||
           (n <= SEEN_LINKS_MAX && bytes / SEEN_LINK_BYTES >= n);
}

/* Where link i goes; as long as there is room for one only, all go there. */
SEEN_INLINE struct seen_link *seen_link_at(struct seen_foreign *f, uint32_t i)
{
    return &f->links[f->room ? i : 0];
}

/* Room for n links in all; those that are there stay. SEEN_NOMEM. */
seen_status seen_foreign_room(struct seen_foreign *f, uint32_t n);

/* One more link, with memory for its bytes; SEEN_FULL: no more fit. */
seen_status seen_foreign_append(struct seen_foreign *f, struct seen_link next);

/* One link of m bits, k per key, in so many bytes, no lines. */
void seen_foreign_one(struct seen_foreign *f, uint64_t bits, uint32_t hashes,
                      uint64_t bytes);

/* Bits of a link, and how many of them are looked at for a key; a slot has 8. */
uint64_t seen_link_bits(const struct seen_foreign *f,
                        const struct seen_link *l);
uint32_t seen_link_hashes(const struct seen_foreign *f,
                          const struct seen_link *l);

/* The filter of a shape, which it takes over: the shape is at its end afterwards,
 * also if there is no memory. Bytes that links point to are copied or, for a view,
 * used where they are. */
seen_status seen_foreign_make(seen_filter **out, struct seen_foreign *shape,
                              bool view);

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
seen_status seen_foreign_own(seen_filter *g);
void seen_foreign_disown(seen_filter *g);
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
    .place = seen_foreign_place, .own = seen_foreign_own,                      \
    .disown = seen_foreign_disown, .maybe = seen_foreign_maybe,                \
    .visit = seen_foreign_visit, .prefetch = seen_foreign_prefetch,            \
    .maybe_many = seen_foreign_maybe_many,                                     \
    .visit_many = seen_foreign_visit_many

#endif
