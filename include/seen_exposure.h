/*
 * seen_exposure.h - what one user has been shown: exposure sets.
 *
 * A record is the memory of one user: bytes, a few for a new user, about 1.8 for
 * each item. It holds fingerprints in generations; the oldest generation leaves
 * when there are too many or when it is older than policy.ttl_ms. These calls are
 * functions of a record, the time and some items; they keep nothing. Where
 * records live (a database, a server, a map in memory) is up to the caller.
 *
 *     fresh   which of these candidates has the user not been shown?
 *     mark    these have been shown
 *     take    the first n fresh ones, and mark them
 *
 * Answers are those of a filter: an item that was marked, and has not aged out,
 * is never called fresh. One that was not marked is wrongly withheld with a
 * probability of at most policy.fpp, for the whole answer over all generations.
 *
 * Time       `now_ms` is in milliseconds since 1970, from the caller. The time that
 *            counts is the later of `now_ms` and the newest mark of the record: a
 *            clock that steps back ages nothing. Times from 2^48 on count as
 *            2^48 - 1.
 * Ageing     A generation takes marks until it holds policy.items, or until its
 *            first mark is ttl_ms / (generations - 1) old. It leaves when its newest
 *            mark is older than ttl_ms, or as the oldest of too many. So an item
 *            stays at least ttl_ms after its last mark, unless newer ones push it
 *            out: policy.items of them for each ttl_ms / (generations - 1) that it
 *            leaves early.
 * Refresh    Marking an item again, seen or not, puts it into the newest
 *            generation as well, unless it is there. It then stays for ttl_ms
 *            from now, and takes its bytes twice until the older copy leaves.
 * Hashing    Keyed, under the secret of a store. A record carries two bytes that
 *            tell whether it is read with the secret it was written with:
 *            SEEN_MISMATCH.
 * Policy     May change. Generations are read as they were written; new ones
 *            follow the new policy.
 *
 * A NULL or empty record is a user who has been shown nothing. The contract of
 * seen.h holds: hostile bytes give an error or answers, nothing worse.
 */
#ifndef SEEN_EXPOSURE_H
#define SEEN_EXPOSURE_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default. */
typedef struct seen_policy {
    uint32_t items;       /* of a generation: 1000; at most 2^20 */
    uint32_t generations; /* 5; 1 .. 64 */
    double fpp;           /* of a whole answer: 0.001; 1e-9 to 0.5, and items x
                             generations / fpp is at most 1e12 */
    uint64_t ttl_ms;      /* 5 days; below 2^48 */
    uint64_t reserved[4];
} seen_policy;

/* SEEN_INVALID: what the error says is wrong with it. NULL is the default. */
SEEN_API seen_status seen_policy_check(const seen_policy *policy,
                                       seen_error *error);

/* The most items that a record under it can hold: items x generations. That many
 * different ones, marked or taken in one call, all stay. */
SEEN_API uint64_t seen_policy_holds(const seen_policy *policy);

/* A policy, a secret, and room to work in. One for each thread. */
typedef struct seen_exposure seen_exposure;

SEEN_API seen_status seen_exposure_new(seen_exposure **x,
                                       const seen_policy *policy,
                                       const uint8_t secret[16],
                                       const seen_allocator *allocator,
                                       seen_error *error);
SEEN_API void seen_exposure_free(seen_exposure *x);

/* A record, or what has become of one. Results belong to the seen_exposure and
 * are good until it is used again; an empty one means: nothing to keep. */
typedef struct seen_record {
    const void *data;
    size_t len;
} seen_record;

/* Items are keys in any layout (seen_keys), but not hashes: SEEN_UNSUPPORTED. */

/* answers[i]: may have been shown item i. */
SEEN_API seen_status seen_exposure_maybe_many(seen_exposure *x,
                                              seen_record record,
                                              uint64_t now_ms, seen_keys items,
                                              bool *answers);

/* The indices of the items that have not been shown, in their order, into `fresh`,
 * which has room for items.n; how many, into *n. One that comes twice is fresh
 * once. */
SEEN_API seen_status seen_exposure_fresh(seen_exposure *x, seen_record record,
                                         uint64_t now_ms, seen_keys items,
                                         size_t *fresh, size_t *n);

/* fresh[i]: item i was new. NULL if nobody wants to know: a third faster. */
SEEN_API seen_status seen_exposure_mark(seen_exposure *x, seen_record record,
                                        uint64_t now_ms, seen_keys items,
                                        bool *fresh, seen_record *result);

/* seen_exposure_fresh(), and the first `count` of them are marked. `taken` has
 * room for count or items.n, whichever is less. */
SEEN_API seen_status seen_exposure_take(seen_exposure *x, seen_record record,
                                        uint64_t now_ms, seen_keys items,
                                        size_t count, size_t *taken, size_t *n,
                                        seen_record *result);

/* How many generations have left records in marks and takes through x so far:
 * too old, or the oldest of too many. */
SEEN_API uint64_t seen_exposure_dropped(const seen_exposure *x);

/* How many marks were in generations that left as the oldest of too many, before
 * their time: newer marks have pushed them out. */
SEEN_API uint64_t seen_exposure_evicted(const seen_exposure *x);

/* Take items out again, from all generations. Another item with the same
 * fingerprint goes with it: policy.fpp is how often that happens. */
SEEN_API seen_status seen_exposure_forget(seen_exposure *x, seen_record record,
                                          uint64_t now_ms, seen_keys items,
                                          seen_record *result);

/* Two records of one user: everything in either, newest generations first, cut
 * to the policy. The order of the two does not matter. */
SEEN_API seen_status seen_exposure_merge(seen_exposure *x, seen_record a,
                                         seen_record b, uint64_t now_ms,
                                         seen_record *result);

/* Without what has aged out by now. */
SEEN_API seen_status seen_exposure_expire(seen_exposure *x, seen_record record,
                                          uint64_t now_ms, seen_record *result);

typedef struct seen_generation_info {
    uint64_t items;
    uint64_t first, newest; /* marks */
    uint64_t bytes;
} seen_generation_info;

typedef struct seen_exposure_info {
    size_t size;    /* sizeof, set by the caller; without the generations:
                       offsetof (seen_exposure_info, generation) */
    uint64_t items; /* in all generations: one in two of them counts twice */
    uint64_t bytes;
    uint64_t newest; /* mark; 0: none */
    double fpp_now;
    uint32_t generations; /* that have not aged out, newest first: */
    uint64_t reserved[4]; /* for what is to come; zero now */
    seen_generation_info generation[64];
} seen_exposure_info;

SEEN_API seen_status seen_exposure_info_of(seen_exposure *x, seen_record record,
                                           uint64_t now_ms,
                                           seen_exposure_info *info);

/* Every byte, as a mark would have written it. The calls above check as much as
 * they need to be safe. */
SEEN_API seen_status seen_exposure_validate(seen_record record);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_EXPOSURE_H */
