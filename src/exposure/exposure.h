/*
 * exposure.h - what the calls of seen_exposure.h share.
 *
 *     exposure.c    the object, its room to work in, the public calls
 *     ask.c         which of these hashes are in a record
 *     change.c      marks, removals, unions: new generations out of old ones
 */
#ifndef SEEN_EXPOSURE_INTERNAL_H
#define SEEN_EXPOSURE_INTERNAL_H

#include "base/rng.h"
#include "exposure/record.h"
#include "hash/hash.h"

/* A block that grows and is kept. */
struct seen_room {
    void *at;
    uint64_t size;
};

struct seen_exposure {
    seen_policy policy; /* defaults filled in */
    uint8_t secret[16];
    uint32_t check;    /* of the secret, 16 bits; above: any will do */
    uint32_t universe; /* of new generations */
    uint64_t interval; /* a generation closes when its first mark is so old */
    seen_allocator allocator;

    struct seen_room hashes;  /* of the items of a call */
    struct seen_room answers; /* bools, one for each */
    struct seen_room prints;  /* ask.c: fingerprints, and a table or index;
                                 change.c: a table */
    struct seen_room old, added, merged, counted; /* change.c: fingerprints */
    struct seen_room runs;                        /* encoded generations */
    struct seen_room result, before; /* the record, and the one before: it
                                            may be what the next is made from */
    uint64_t dropped;                /* generations, by marks */
    uint64_t evicted;                /* items of those that were too many */
};

/* Records of any secret are read from now on: what they hold can be told without
 * it, though not of whom. None is written. */
SEEN_PRIVATE void seen_exposure_any_secret(seen_exposure *x);

/* With defaults where there are zeros; NULL: all of them. */
SEEN_PRIVATE seen_policy seen_policy_filled(const seen_policy *given);

/* ---- By hash ------------------------------------------------------------ */

/* The public calls for callers who keep hashes: 64 bits are all that a record
 * knows of an item. Lent until x is used for other items. */
SEEN_PRIVATE seen_status seen_exposure_hash(seen_exposure *x, seen_keys items,
                                            uint64_t **h);
/* What can be wrong with items, before they are hashed. */
SEEN_PRIVATE seen_status seen_exposure_check(seen_keys items);

/* seen[i]: hash i may have been shown; `repeats`: or has come before. */
SEEN_PRIVATE seen_status seen_exposure_seen(seen_exposure *x,
                                            seen_record record, uint64_t now_ms,
                                            const uint64_t *h, size_t n,
                                            bool repeats, bool *seen);

/* The first of them that are not seen, at most so many, to the front. */
SEEN_PRIVATE size_t seen_first_fresh(uint64_t *h, size_t n, const bool *seen,
                                     size_t most);
/* Their indices. */
SEEN_PRIVATE size_t seen_fresh_indices(const bool *seen, size_t n, size_t most,
                                       size_t *out);

struct seen_marks {
    uint64_t now_ms;
    const uint64_t *h;
    size_t n;
};

/* One after the other; the same record as one call for each, in one pass. The
 * record may be the last result of x. */
SEEN_PRIVATE seen_status seen_exposure_mark_all(seen_exposure *x,
                                                seen_record record,
                                                const struct seen_marks *marks,
                                                size_t n, seen_record *result);
SEEN_PRIVATE seen_status seen_exposure_forget_hashes(
    seen_exposure *x, seen_record record, uint64_t now_ms, const uint64_t *h,
    size_t n, seen_record *result);

/* ---- Within ------------------------------------------------------------- */

/* At least so many bytes, the old ones lost; NULL: no memory. */
void *seen_room_for(seen_exposure *x, struct seen_room *r, uint64_t size);

/* Places of a hash table for so many that is at most a quarter full: a power of
 * two. */
uint64_t seen_places_for(uint64_t n);

/* Where to look for a hash or fingerprint first. Whoever knows the secret can
 * choose items whose fingerprints end alike, and a table that goes by these ends
 * would take n^2 steps for n of them: so something joins in that nobody chooses,
 * where x lies in memory. No result depends on it. */
SEEN_INLINE uint64_t seen_place_of(const seen_exposure *x, uint64_t value,
                                   uint64_t mask)
{
    return seen_mix64(value + seen_mix64((uintptr_t)x)) & mask;
}

/* The fingerprint of a hash in the universe of a code. */
uint64_t seen_print_of(uint64_t h, uint32_t universe);

/* answers[i]: hash i is in one of these generations or, if repeats count, has
 * come before among these n. */
seen_status seen_ask(seen_exposure *x, const struct seen_generations *g,
                     const uint64_t *h, size_t n, bool repeats, bool *answers);

/* Each at its time, or at that of the newest mark in g if that is later. Runs of
 * changed generations lie in x->runs, until the next change. */
seen_status seen_change_mark(seen_exposure *x, struct seen_generations *g,
                             const struct seen_marks *marks, size_t n);
seen_status seen_change_forget(seen_exposure *x, struct seen_generations *g,
                               const uint64_t *h, size_t n);
seen_status seen_change_merge(seen_exposure *x, struct seen_generations *into,
                              const struct seen_generations *from);

/* The newest ones that the policy leaves at this time. */
void seen_change_expire(const seen_exposure *x, struct seen_generations *g,
                        uint64_t now_ms);

#endif
