/*
 * seen_guard.h - a guard in front of a cache and a database: keys that cannot
 * exist are not asked for. In libseen_store.
 *
 * Requests for keys that exist nowhere go through the cache to the database,
 * each of them: a cache cannot hold what is not there. A filter of all keys that
 * exist stops all but a few of them; the few it lets through are remembered for
 * a short while.
 *
 *     if (seen_guard_ask(guard, key, len, now_ms, NULL) == SEEN_REJECT)
 *         return not_found;
 *     row = cache_or_database(key);
 *     if (!row) seen_guard_missed(guard, key, len, now_ms);
 *
 * and whoever inserts a row says seen_guard_created() *before* others can read
 * it, and lets them read it within miss_ms. A key that was created is never
 * rejected.
 *
 * Listed     Keys on the filter's allowlist that are SEEN_LISTED_ALWAYS pass. Keys
 *            that are SEEN_LISTED_NEVER are rejected until they are created: the
 *            guard keeps those that were, and lets them pass. (A key that was
 *            created before the last seen_guard_rebuild() and is SEEN_LISTED_NEVER
 *            in the new filter only is rejected: the guard keeps no list of all
 *            keys.)
 * Rebuild    Deleted keys stay in most filters, and one that holds more than it
 *            was planned for lets more pass: rebuild it now and then, while the
 *            guard works. seen_guard_rebuild() first; then wait for inserts that
 *            are under way, whose rows a scan might not see yet (or say
 *            seen_guard_created() again after each commit); then scan the table
 *            into a new filter, with its allowlist if it shall have one; then
 *            seen_guard_swap(). Keys that were created meanwhile are in the new
 *            filter, too. The first filter is built in the same way; a guard
 *            without one is rebuilding already.
 * Open       Without a filter (still loading, lost) the guard lets everything
 *            pass; or nothing, if it was made so. It opens, too, when a key that
 *            was created could not be kept anywhere.
 * Threads    All calls may run at once.
 * Time       `now_ms` is in milliseconds, from the caller; a miss is told with
 *            the `now_ms` it was asked with, however long the database took.
 */
#ifndef SEEN_GUARD_H
#define SEEN_GUARD_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct seen_guard seen_guard;

typedef enum seen_verdict {
    SEEN_ASK = 0,   /* it may exist: ask cache and database */
    SEEN_REJECT = 1 /* it does not */
} seen_verdict;

typedef enum seen_reason {
    SEEN_REASON_MAYBE = 0, /* ask: the filter says maybe */
    SEEN_REASON_LISTED,    /* ask: on the filter's allowlist */
    SEEN_REASON_CREATED,   /* ask: created a short while ago */
    SEEN_REASON_LOADING,   /* ask, or reject: there is no filter; ask: there
                              is, but a created key is missing from it */
    SEEN_REASON_ABSENT,    /* reject: the filter says never */
    SEEN_REASON_MISSED     /* reject: was not there a short while ago */
} seen_reason;

/* "maybe", "listed" ...; static storage. */
SEEN_API const char *seen_reason_name(seen_reason reason);

/* Zero means the default. */
typedef struct seen_guard_options {
    uint64_t misses;      /* remembered at most: 65,536; 16 bytes each */
    uint64_t miss_ms;     /* for so long: 30,000 */
    bool closed;          /* without a filter, reject */
    uint64_t reserved[6]; /* zero */
} seen_guard_options;

/* Without a filter yet. SEEN_IO: the kernel has no random numbers. */
SEEN_API seen_status seen_guard_new(seen_guard **g,
                                    const seen_guard_options *options,
                                    seen_error *error);
/* With the filter it has. */
SEEN_API void seen_guard_free(seen_guard *g);

/* May it exist? *reason (may be NULL): why. */
SEEN_API seen_verdict seen_guard_ask(seen_guard *g, const void *key, size_t len,
                                     uint64_t now_ms, seen_reason *reason);

/* It was asked for, at this time, and the database did not have it. */
SEEN_API void seen_guard_missed(seen_guard *g, const void *key, size_t len,
                                uint64_t now_ms);

/* It is about to exist. What the filter cannot take, or denies because it is
 * SEEN_LISTED_NEVER, the guard keeps in a list.
 * SEEN_NOMEM, SEEN_FULL, SEEN_INVALID: nor can the list (see seen_allowlist_add());
 * until the next swap nothing is rejected that the filter does not have, or, if
 * it was wanted for a new filter only, that one must be built anew. */
SEEN_API seen_status seen_guard_created(seen_guard *g, const void *key,
                                        size_t len, uint64_t now_ms,
                                        seen_error *error);

/* From now on keep the keys that are created, for the filter that is being
 * built. Again: begin anew. */
SEEN_API void seen_guard_rebuild(seen_guard *g);

/* This filter from now on; the guard owns it and frees the old one. NULL: none.
 * On any error the old one stays, and `filter` is the caller's: rebuild again.
 * SEEN_NOMEM: keys that were created since seen_guard_rebuild() could not all be
 * kept. SEEN_INVALID: no seen_guard_rebuild() since the last swap, so that nobody
 * knows what was created while this one was built (of two who rebuild at once,
 * the second). */
SEEN_API seen_status seen_guard_swap(seen_guard *g, seen_filter *filter,
                                     seen_error *error);

typedef struct seen_guard_stats {
    size_t size; /* sizeof (seen_guard_stats), set by the caller */
    uint64_t asked;
    uint64_t passed;     /* maybe, listed, created */
    uint64_t open;       /* asked while the filter was missing or incomplete */
    uint64_t absent;     /* rejected by the filter */
    uint64_t remembered; /* rejected as missed before */
    uint64_t missed;     /* passed, and the database did not have it */
    uint64_t created;
    uint64_t swaps;
    uint64_t misses_now; /* remembered, old ones included */
    double wrong_share;  /* missed / passed: the database did not have it */
    double fpp_measured; /* missed / (missed + absent): of keys that do not
                             exist, this share got through; 0 before any */
    double fpp_promised; /* by the filter's plan */
    bool has_filter;
    bool rebuild; /* recommended: twice the promise, measured, or a created
                     key is missing from the filter */
} seen_guard_stats;

/* Of this moment; counts since the guard was made, the rates since the last
 * swap. SEEN_INVALID: stats->size is not set. */
SEEN_API seen_status seen_guard_stats_of(seen_guard *g,
                                         seen_guard_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_GUARD_H */
