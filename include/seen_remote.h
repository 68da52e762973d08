/*
 * seen_remote.h - filters and users on servers. In libseen_remote, which alone
 * needs hiredis.
 *
 * Filters:
 *
 *     redis://[user:password@]host[:port][/db]?key=NAME
 *                a BF key of a Redis or Valkey server, or cluster, that has our
 *                module, RedisBloom or valkey-bloom
 *     redis+plain://host/NAME
 *                a filter in plain strings, for servers that load no modules: a
 *                question reads one line of 64 bytes, an add sets its bits
 *     redis+gozero://host/NAME?bits=M
 *                the filter of go-zero's core/bloom, beside the services that use
 *                it: the same string, the same bits
 *     redis+bitmap://host/NAME?bits=M
 *                bit n of a string is the number n below M; keys are 8 bytes, as
 *                those of seen_add_u64()
 *
 * Users (seen_users.h):
 *
 *     redis://[user:password@]host[:port][/db]?prefix=P
 *                keys of a Redis or Valkey server, or cluster, that has seen.so
 *                loaded: P (or "seen:") and the user. Its clock counts, not
 *                `now_ms`; how durable a change is, and when old users leave, is its
 *                business. A take that got no answer is SEEN_IO: whether it
 *                happened is not known
 *     redis+list://[user:password@]host[:port][/db]?prefix=P
 *                the lists of up to five Bloom filters, `count::base64` each, that
 *                existing services keep on a plain server, or cluster, beside
 *                them: keys are P and the user, of 2 bytes or more. n=1000,
 *                p=0.001 and ttl=432000 (seconds) say what the service does, if
 *                not this; they are the policy, where p is that of one filter,
 *                and the list lives for a ttl after its last change. Changes are
 *                atomic among callers of this library. No item can be forgotten,
 *                and a mark of none is SEEN_INVALID
 *
 * A password is in the URL, or is the first line of a file: password-file=PATH, a
 * parameter of all of them. It is in no error.
 *
 * Keys go out in batches, many in one pipeline. A question that could not be
 * asked has no answer: SEEN_IO, never "never". A filter that is not there is
 * SEEN_ABSENT, not an empty one: it may have been evicted or have expired; if a
 * part of it is gone, SEEN_CORRUPT. (A bitmap, or a filter of go-zero, that is not
 * there is empty.) A reply that is not what the command gives is SEEN_CORRUPT. Adds
 * are repeated when a connection breaks; they do no harm twice.
 *
 * Threads: any number, on one handle. Forks: in a child that was forked every call
 * that asks the server is SEEN_INVALID; open the filter again there. Closing the
 * child's copy closes its connections and leaves the parent's alone.
 */
#ifndef SEEN_REMOTE_H
#define SEEN_REMOTE_H

#include "seen_users.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct seen_remote seen_remote;

/* Connects; SEEN_ABSENT: no such filter, and `create` (items and fpp of it) is
 * NULL. outcome->created: it was made. SEEN_MISMATCH: the string cannot be a filter
 * of go-zero with so many bits. SEEN_INVALID: also a key of another type.
 *
 * SEEN_OK with a text in the error: a warning. The string is hardly a filter of so
 * many bits, or the bitmap has numbers beyond its bound. */
SEEN_API seen_status seen_remote_open(seen_remote **m, const char *url,
                                      const seen_spec *create,
                                      seen_outcome *outcome, seen_error *error);
SEEN_API void seen_remote_close(seen_remote *m);

/* Keys in any layout but hashes, which are SEEN_UNSUPPORTED. answers[i]: key i may
 * be there; they mean nothing unless SEEN_OK. */
SEEN_API seen_status seen_remote_maybe_many(seen_remote *m, seen_keys keys,
                                            bool *answers, seen_error *error);
/* fresh[i] (may be NULL): key i was not there before. (Adds are repeated after a
 * lost connection, and the second time nothing is new.) */
SEEN_API seen_status seen_remote_add_many(seen_remote *m, seen_keys keys,
                                          bool *fresh, seen_error *error);

/* Numbers out of a bitmap again; removed[i] (may be NULL): it was there.
 * SEEN_UNSUPPORTED: a filter of another layout. */
SEEN_API seen_status seen_remote_remove_many(seen_remote *m, seen_keys keys,
                                             bool *removed, seen_error *error);

/* All of it expires ttl_ms from now, 1 or more; or leaves at once. known (may be
 * NULL): there was something on the server. */
SEEN_API seen_status seen_remote_expire(seen_remote *m, uint64_t ttl_ms,
                                        bool *known, seen_error *error);
SEEN_API seen_status seen_remote_delete(seen_remote *m, bool *known,
                                        seen_error *error);

typedef struct seen_remote_info {
    size_t size;        /* sizeof (seen_remote_info), set by you */
    const char *layout; /* "bf", "plain", "gozero", "bitmap" */
    uint64_t capacity;  /* keys it was made for; bitmap: its bound */
    uint64_t items;     /* keys in it; plain: estimated */
    double fpp;         /* promised up to the capacity; 0: not told */
    uint64_t bytes;
    uint64_t parts; /* layers of a BF key, strings of the others */
} seen_remote_info;

SEEN_API seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info,
                                         seen_error *error);

/* ---- Users ---------------------------------------------------------------- */

/* A store of users on a server; seen_users_close() and all the other calls of
 * seen_users.h are for it, too. */
SEEN_API seen_status seen_remote_users(seen_users **u, const char *url,
                                       const seen_users_options *options,
                                       seen_outcome *outcome,
                                       seen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_REMOTE_H */
