/*
 * seen_users.h - what every user has been shown: stores of exposure records. In
 * libseen_store.
 *
 *     seen_users *users;
 *     seen_users_open(&users, "lmdb:feed", &(seen_users_options){
 *         .mode = SEEN_DURABLE, .create = true}, NULL, &error);
 *     seen_users_take(users, user, now_ms, seen_keys_of(candidates, 200), 10, taken,
 *                     &n, &error);
 *
 * A store has one secret and one policy (seen_exposure.h) and for each user, 1 to
 * 511 bytes, one record. What the calls on records mean is said there; here they
 * are made on the record of a user, atomically, and last.
 *
 *     lmdb:DIR   in the directory DIR, or just DIR: an LMDB environment, a
 *                journal and a lock
 *     mem:       in memory, gone when it is closed
 *
 * seen_remote.h opens stores on servers, for the same calls.
 *
 * Threads    Any number may call at once, on one handle. A user's take is one
 *            step: no other call sees half of it. Threads that change at once
 *            share one sync.
 * Processes  One writer; a second one waits for options.wait_ms, then it gets
 *            SEEN_BUSY. Any number of readers, who see the last checkpoint. A
 *            checkpoint happens by itself: after so many bytes, so long a time (a
 *            minute), and when the store is closed. If the writer died, readers
 *            read its journal, too, and miss nothing; one that is open notices
 *            within a second. With `tail`, a reader reads the journal also
 *            beside a living writer: when it opens, and when it is asked after
 *            a checkpoint. Between calls a reader keeps nothing alive: neither
 *            pages of data.mdb nor a lock.
 * Forks      A handle belongs to the process that opened it. In a child that was
 *            forked every call on it is SEEN_INVALID; open the store again there.
 *            seen_users_close() in a child frees what it can and touches nothing
 *            on disk: memory that other threads were changing at the time of the
 *            fork, and LMDB's map and descriptors, stay until the child exits or
 *            calls exec(). If the parent dies without closing the store, its lock
 *            stays with children that have not closed their copy. A store in
 *            memory is copied, and both processes may go on with theirs.
 * Durable    In SEEN_DURABLE a change that returned SEEN_OK survives a loss
 *            of power; in SEEN_WRITE a crash of the program, and a loss of
 *            power up to the last checkpoint. After a failed sync every change is
 *            SEEN_IO until the store is opened again.
 * Errors     Every call takes a seen_error of the caller, which may be NULL. A
 *            change that returns SEEN_OK may leave a warning in its text: the
 *            disk has no room for a checkpoint, and the journal grows; or a mark
 *            brought more items than the policy holds.
 * Readers    need to read data.mdb and to write lock.mdb. One that may not, or
 *            finds no room for lock.mdb, needs to read seen.lock: it reads while
 *            there is no writer, and is SEEN_BUSY beside one. A writer that comes
 *            during such a call, which may read a whole journal, is SEEN_BUSY if
 *            its wait_ms end first.
 * Places     Local file systems only. On NFS, SMB and the like, locks and shared
 *            maps do not hold between machines, and not always on one: a second
 *            writer gets in, and readers see pages that are half written.
 * Once       A process opens a directory once and shares the handle between its
 *            threads; opening it again is SEEN_BUSY. Do not open() data.mdb or
 *            lock.mdb yourself there: close() would release LMDB's locks.
 * Locks      lock.mdb is shared memory that all processes write. Let only users
 *            write it whom you trust: one who does harm there can stop the writer,
 *            or let it overwrite pages that are being read. Do not remove it while
 *            the store is open. New files take owner and mode from data.mdb.
 * Stale      A call that reads keeps the pages of its snapshot. A process that was
 *            killed or stopped within one, or sits in a callback of
 *            seen_users_each(), keeps them on: data.mdb grows by what is written
 *            meanwhile, and does not shrink (seen_users_backup() makes a compact
 *            copy). What the dead have left is cleared whenever a process opens
 *            the store. There are 1024 places for calls that read, of all
 *            processes together; without one, a call is SEEN_BUSY.
 * Damage     A record that is damaged is SEEN_CORRUPT for its user alone;
 *            seen_users_forget_user() and a new start helps. A data.mdb that was
 *            cut short, also to nothing, is SEEN_CORRUPT when it is opened. One
 *            that is cut while it is open causes SIGBUS, as with any mapped file.
 *            LMDB trusts the pages of data.mdb itself: open none from people you
 *            do not trust.
 */
#ifndef SEEN_USERS_H
#define SEEN_USERS_H

#include "seen_exposure.h"
#include "seen_file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEEN_USER_MAX 511 /* bytes of a user's name */

typedef struct seen_users seen_users;

/* Zero means the default. */
typedef struct seen_users_options {
    seen_mode mode;
    bool create;               /* if there is none; otherwise SEEN_ABSENT */
    bool tail;                 /* readers: read the journal, too, also
                                  beside a living writer */
    const seen_policy *policy; /* of a new store; of one that is there, from now
                                  on (writers). NULL: as it is */
    const uint8_t *secret;     /* 16 bytes, of a new store; NULL: a random one.
                                  One that is there must have the same */
    /* When a checkpoint is due: */
    uint64_t checkpoint_bytes; /* of changes in memory: 256 MiB */
    uint64_t journal_bytes;    /* 256 MiB */
    uint64_t checkpoint_ms;    /* after a change: 60,000 */
    uint64_t wait_ms;          /* for another writer; 0: SEEN_BUSY at once */
    uint64_t reserved[5];
} seen_users_options;

/*
 * Fields of an error: "where", "options.mode", "options.create", "options.tail",
 * "options.secret", "options.reserved", those of the policy, "outcome", "u". The text
 * does not repeat the place.
 *
 * SEEN_ABSENT       no store is there, and options.create is false
 * SEEN_BUSY         another writer has it, also after options.wait_ms; or this process
 *                   has it open
 * SEEN_INVALID      something else is there: a file, a filter
 * SEEN_MISMATCH     options.secret is not its secret
 * SEEN_UNSUPPORTED  no such scheme in this library
 * SEEN_CORRUPT      data.mdb or the journal is damaged or missing
 */
SEEN_API seen_status seen_users_open(seen_users **u, const char *where,
                                     const seen_users_options *options,
                                     seen_outcome *outcome, seen_error *error);
/* A last checkpoint. The store is closed whatever the status; after SEEN_IO,
 * what was acknowledged is in the journal. */
SEEN_API seen_status seen_users_close(seen_users *u, seen_error *error);

/* ---- One user ----------------------------------------------------------- */

/* As the calls of seen_exposure.h. A user who is unknown has been shown
 * nothing. SEEN_INVALID: a name of no or too many bytes. */
SEEN_API seen_status seen_users_maybe_many(seen_users *u, seen_key user,
                                           uint64_t now_ms, seen_keys items,
                                           bool *answers, seen_error *error);
/* Indices of items: `fresh` has room for items.n, *n says how many. */
SEEN_API seen_status seen_users_fresh(seen_users *u, seen_key user,
                                      uint64_t now_ms, seen_keys items,
                                      size_t *fresh, size_t *n,
                                      seen_error *error);
/* More items in one call than the policy holds (seen_policy_holds()) push out the
 * first of them: SEEN_OK, with a warning in the error (field "items"; not from a
 * server, whose policy may be another for each user), and seen_users_stats.evicted
 * counts those. */
SEEN_API seen_status seen_users_mark(seen_users *u, seen_key user,
                                     uint64_t now_ms, seen_keys items,
                                     bool *fresh, seen_error *error);
/* Indices of items: `taken` has room for count or items.n, whichever is less.
 * SEEN_INVALID also where it could take more items than the policy holds
 * (seen_policy_holds()): the first ones would be fresh again. */
SEEN_API seen_status seen_users_take(seen_users *u, seen_key user,
                                     uint64_t now_ms, seen_keys items,
                                     size_t count, size_t *taken, size_t *n,
                                     seen_error *error);
SEEN_API seen_status seen_users_forget(seen_users *u, seen_key user,
                                       uint64_t now_ms, seen_keys items,
                                       seen_error *error);
/* Everything about a user; known: there was something. */
SEEN_API seen_status seen_users_forget_user(seen_users *u, seen_key user,
                                            uint64_t now_ms, bool *known,
                                            seen_error *error);

/* SEEN_ABSENT: no unexpired marks for this user. */
SEEN_API seen_status seen_users_info_of(seen_users *u, seen_key user,
                                        uint64_t now_ms,
                                        seen_exposure_info *info,
                                        seen_error *error);
/* The record itself; *len is written on SEEN_OK and on SEEN_SHORT. */
SEEN_API seen_status seen_users_record(seen_users *u, seen_key user, void *buf,
                                       size_t cap, size_t *len,
                                       seen_error *error);

/* ---- Many users, one sync ----------------------------------------------- */

typedef struct seen_users_request {
    seen_key user;
    seen_keys items;
    bool *fresh;        /* mark: fresh[i], item i was new; may be NULL, which is
                           cheaper */
    size_t count;       /* take: how many */
    size_t *taken;      /* take: indices of items, as seen_users_take() */
    size_t n_taken;     /* take, written: how many those are */
    seen_status status; /* written: of this request */
    uint32_t reserved[7]; /* zero */
} seen_users_request;

/* SEEN_OK if all requests are; otherwise the status of the first that is not, and
 * the error names its index and its user. Requests for one user are carried out in
 * their order. If one is SEEN_INVALID none is carried out, and none is SEEN_OK. */
SEEN_API seen_status seen_users_mark_many(seen_users *u, uint64_t now_ms,
                                          seen_users_request *r, size_t n,
                                          seen_error *error);
SEEN_API seen_status seen_users_take_many(seen_users *u, uint64_t now_ms,
                                          seen_users_request *r, size_t n,
                                          seen_error *error);

/* ---- The whole store ---------------------------------------------------- */

/* Lent to the callback by the library, which may add members at the end. */
typedef struct seen_users_entry {
    seen_key user;
    seen_record record;
    seen_status status; /* SEEN_ABSENT: all of it has aged out;
                                SEEN_CORRUPT: damaged, nothing is known */
    /* At the time that was given, as in seen_exposure_info: */
    uint32_t generations;
    uint64_t items;
    uint64_t bytes;
    uint64_t newest;
    double fpp_now;
} seen_users_entry;

/* Each user, until `each` gives false; in no promised order, while other threads
 * go on. `each` makes no calls on the store. */
SEEN_API seen_status
seen_users_each(seen_users *u, uint64_t now_ms,
                bool (*each)(void *ctx, const seen_users_entry *entry),
                void *ctx, seen_error *error);

/* A checkpoint now. */
SEEN_API seen_status seen_users_sync(seen_users *u, seen_error *error);

/* Remove users all of whose marks have aged out; how many. By the machine's clock
 * if `now_ms` is 0, as far as it is believed (below); otherwise by `now_ms`, and it is
 * the caller who knows that this is the time.
 *
 * Checkpoints remove such users, too, by and by: by the machine's clock, a day
 * later. No mark of a user, whatever its time, ages the record of another. If the
 * clock is found more than a day ahead of where it was at the last checkpoint, it
 * was set or the store was not used: that much is not believed until it has stayed
 * for a day (`clock_ahead`). Where marks are more than a day behind the machine's
 * clock, checkpoints remove nobody: call this with your own time. */
SEEN_API seen_status seen_users_sweep(seen_users *u, uint64_t now_ms,
                                      uint64_t *removed, seen_error *error);

/* A copy of an lmdb: store, everything acknowledged so far in it, into a
 * directory that does not exist; of readers and writers alike, while others
 * work. It appears under its name when it is complete. */
SEEN_API seen_status seen_users_backup(seen_users *u, const char *dir,
                                       seen_error *error);

typedef struct seen_users_stats {
    size_t size; /* sizeof (seen_users_stats), set by the caller */
    seen_policy policy;
    uint64_t users;         /* at the last checkpoint; mem: now */
    uint64_t changed;       /* users with changes in memory */
    uint64_t memory;        /* bytes of them */
    uint64_t journal_bytes; /* since the last checkpoint began */
    uint64_t file_bytes;    /* of the LMDB file that are in use */
    uint64_t checkpoints;   /* of this handle */
    uint64_t checkpoint_ms; /* how long the last one took */
    uint64_t stall_us;      /* longest time that one kept a change waiting */
    uint64_t expired;       /* users removed by this handle */
    uint64_t sequence;      /* journal frames that the last checkpoint covers */
    uint64_t clock_ahead;   /* milliseconds of the machine's clock that were not
                               believed at the last checkpoint */
    uint64_t clock_leaps;   /* noticed by this handle */
    uint64_t evicted;       /* marks that newer ones have pushed out, by this
                               handle, as far as records are up to date: all
                               of it after seen_users_sync() */
} seen_users_stats;

SEEN_API seen_status seen_users_stats_of(seen_users *u, seen_users_stats *stats,
                                         seen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_USERS_H */
