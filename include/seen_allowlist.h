/*
 * seen_allowlist.h - keys that must never be misjudged.
 *
 * A filter says "maybe" for a few keys that were never added. Where that must
 * not happen to certain keys, list them: an allowlist is a small exact set of
 * byte strings, and a filter that has one answers for the listed keys whatever
 * its bits say.
 *
 *     a block list   SEEN_LISTED_NEVER    our own domains are never blocked,
 *                                         however the bits fall
 *     a guard        SEEN_LISTED_ALWAYS   the keys of the front page always
 *                                         pass, even before they were added
 *
 * The contract of seen.h holds here too: status codes, ownership, threads
 * (calls taking a const list may run at once, others run alone), hostile bytes,
 * keys that are any bytes, the empty one included.
 */
#ifndef SEEN_ALLOWLIST_H
#define SEEN_ALLOWLIST_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEEN_LISTED_KEY_MAX ((size_t)1 << 24) /* bytes in one key */

typedef struct seen_allowlist seen_allowlist;

/* An empty list. */
SEEN_API seen_status seen_allowlist_new(seen_allowlist **list,
                                        const seen_allocator *allocator);
SEEN_API void seen_allowlist_free(seen_allowlist *list);

/* ---- Keys --------------------------------------------------------------- */

/* Is it listed? Exact. */
SEEN_API bool seen_allowlist_has(const seen_allowlist *list, const void *key,
                                 size_t len);

/* Listing a key again is harmless. SEEN_INVALID: longer than
 * SEEN_LISTED_KEY_MAX. SEEN_FULL: saved, the list would have 2^32 bytes. */
SEEN_API seen_status seen_allowlist_add(seen_allowlist *list, const void *key,
                                        size_t len);

/* SEEN_ABSENT: it is not listed. Never takes memory. */
SEEN_API seen_status seen_allowlist_remove(seen_allowlist *list,
                                           const void *key, size_t len);

SEEN_API uint64_t seen_allowlist_count(const seen_allowlist *list);

/* Memory, all of it. */
SEEN_API uint64_t seen_allowlist_bytes(const seen_allowlist *list);

/* Every key, in the order in which they were added (a loaded list: sorted);
 * stops when visit gives false. */
SEEN_API void seen_allowlist_each(const seen_allowlist *list,
                                  bool (*visit)(void *ctx, const void *key,
                                                size_t len),
                                  void *ctx);

/* ---- Whole lists -------------------------------------------------------- */

SEEN_API seen_status seen_allowlist_copy(seen_allowlist **copy,
                                         const seen_allowlist *list,
                                         const seen_allocator *allocator);

/* The same keys, in whatever order they came. */
SEEN_API bool seen_allowlist_equal(const seen_allowlist *a,
                                   const seen_allowlist *b);

/* List nothing; memory stays. */
SEEN_API void seen_allowlist_clear(seen_allowlist *list);

/* ---- Bytes: sorted keys with their lengths, as in docs/FORMAT.md --------- */

/* For embedding: no magic and no checksum, what holds them has those. Equal
 * lists give equal bytes. *len is written on SEEN_OK and on SEEN_SHORT, so cap
 * 0 measures. SEEN_NOMEM: sorting takes 8 bytes a key. */
SEEN_API seen_status seen_allowlist_save(const seen_allowlist *list, void *buf,
                                         size_t cap, size_t *len);
SEEN_API seen_status seen_allowlist_load(seen_allowlist **list, const void *buf,
                                         size_t len,
                                         const seen_allocator *allocator,
                                         seen_error *error);

/* ---- A filter with a list ----------------------------------------------- */

typedef enum seen_listed {
    SEEN_LISTED_NEVER = 1, /* a listed key is never "maybe": block lists */
    SEEN_LISTED_ALWAYS = 2 /* a listed key is always "maybe": guards */
} seen_listed;

/*
 * Let the filter answer for the keys of a list as the rule says. It takes a
 * copy; an earlier one goes. NULL: the filter alone decides again.
 *
 * seen_maybe(), what seen_visit() tells, seen_count() (0, or at least 1), their
 * batches and the _str and _u64 calls obey it. Calls that take hashes do not: they
 * have no key. Adding and removing listed keys changes the filter as ever.
 * seen_copy() takes the list along, seen_clear() keeps it, seen_equal()
 * compares it, seen_merge() keeps that of `into`; seen_info.bytes counts it,
 * seen_spec.limit does not. Costs a look into the list where the filter's own
 * answer is not the rule's, and a filter without a list one branch.
 */
SEEN_API seen_status seen_allow(seen_filter *f, const seen_allowlist *list,
                                seen_listed rule);

/* The list of a filter, or NULL: belongs to the filter, valid until the next
 * seen_allow() or seen_free(). *rule (may be NULL) is written if there is
 * one. */
SEEN_API const seen_allowlist *seen_allowed(const seen_filter *f,
                                            seen_listed *rule);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_ALLOWLIST_H */
