/*
 * foreign.h - a filter of another system, in memory: what the dialects fill in.
 *
 *     scheme     where the bits of a key are          probe/scheme.h
 *     links      arrays of bits, oldest first; nearly always one
 *     manners    what an add does beside setting bits
 *     the rest   what the original's header says, to be written back
 */
#ifndef SEEN_FOREIGN_H
#define SEEN_FOREIGN_H

#include "filter/filter.h"
#include "probe/scheme.h"

#define SEEN_MOST_LINKS 64

struct seen_link {
    uint8_t *at;     /* the bits; while a dialect reads: where they lie */
    uint64_t bytes;  /* at least 1 */
    uint64_t stored; /* of them in the bytes read; the rest are zeros */
    struct seen_place place;
    uint64_t items, capacity; /* 0 where the original does not keep them */
    double fpp;               /* 0: likewise */
    /* As some headers say them: bits per key, and log2 of the bits. */
    double per_key;
    uint32_t power;
};

struct seen_foreign;

struct seen_manners {
    /* A key that reads "maybe" already is not added: RedisBloom, Valkey. */
    bool adds_new_only;
    /* Before a new key: a link for it, if one is due; bytes stay 0 otherwise.
     * NULL: never. */
    seen_status (*grow)(const struct seen_foreign *f, struct seen_link *next);
    /* The most links there may be, the oldest making room; 0: no such rule. */
    uint32_t most_links;
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
    const struct seen_manners *manners;
    enum seen_foreign_verdict verdict;
    bool counted; /* common.items is known, not to be estimated */

    uint32_t count; /* of links; 0 only where the verdict needs none */
    struct seen_link links[SEEN_MOST_LINKS];

    uint8_t seed[32]; /* where the scheme has one */
    /* Of chains: how they grow, and which form of header they had. */
    uint32_t growth, options, age;
    bool fixed; /* does not grow, whatever `growth` says */
    double fpp, tightening;
    /* Of cuckoo filters: evictions to try, keys removed so far. */
    uint32_t tries;
    uint64_t removed;
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

/* The plan that the links make. */
void seen_foreign_describe(struct seen_foreign *f);

#endif
