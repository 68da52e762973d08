/*
 * local.h - the store of users in this process: a journal, a table, a backend.
 *
 *     mark ──► journal ──► table, active ─┐
 *                          table, frozen ─┼──► answers
 *                          backend (LMDB)  ─┘
 *
 * Who changes a user appends the change to the journal, queues it for the user in
 * the active table, and is acknowledged when the journal is on disk. Who asks
 * looks into the active table, then the frozen one, then the backend; what is
 * queued is settled on the way.
 *
 * A checkpoint moves the tables to the backend:
 *
 *     cut      the journal: what comes goes into a new segment
 *     freeze   note the sequence S of the last frame; the active table becomes
 *              the frozen one, an empty one takes its place. All shards are
 *              locked for this: no frame up to S is missing in the frozen table,
 *              none behind S is in it
 *     write    the frozen users, in order of their names, and S, in one
 *              transaction. Nobody waits: changes go to the active table, and a
 *              user there who is not known yet is looked up in the frozen one
 *     drop     the frozen table; the journal's segments up to S
 *
 * Between write and drop, a frozen user is in the backend with everything applied,
 * and in the table as before. Whoever comes then must not apply it again: a snapshot
 * knows which transaction it sees, and if it is the one that wrote him, what it
 * sees is the record.
 *
 * After a crash the backend holds everything up to the S that it says, and the
 * frames behind S are queued for the users in them: no change is lost, none is made
 * twice. Frames say user, hashes and time; so no clock is read, and nothing is
 * worked into records until somebody asks.
 *
 * Locks, in this order: checkpoint, shards from first to last, snapshots that are
 * awake, log, the rest.
 * A shard's lock covers its users: who changes one holds it from the look at the
 * record to the entry in the table, the journal in between, so frames and table
 * agree about the order. Whoever holds it may have to wait for `log` while a
 * checkpoint cuts the journal, a sync or two; else nobody waits for the disk with
 * it.
 *
 *     local.c       ask and change
 *     lookup.c      find a record; workers
 *     frame.c       changes as bytes in the journal
 *     checkpoint.c  freeze, write, drop; the thread that does it; sweep
 *     recover.c     open, replay, close
 *     sight.c       what readers see
 *     backup.c      a copy while others work
 */
#ifndef SEEN_LOCAL_H
#define SEEN_LOCAL_H

#include "exposure/exposure.h"
#include "store/journal.h"
#include "users/backend.h"
#include "users/table.h"
#include "users/users.h"

#include <pthread.h>
#include <stdatomic.h>

#define SEEN_SHARDS 32

struct seen_shard {
    pthread_mutex_t lock;
    struct seen_table active, frozen;
};

/* What a call needs; as many as there are calls at once. */
struct seen_worker {
    struct seen_worker *next;
    seen_exposure *x;
    uint64_t evicted;                /* by x, so far told to the store */
    seen_error *error;               /* of the call; may be NULL */
    void *snapshot;                  /* of the backend, NULL: there is none */
    struct seen_room record, queued; /* copies */
    struct seen_room jobs;           /* requests by shard */
    struct seen_room answers;
    struct seen_room frame;
    struct seen_room touched; /* users that the frame changes */
    size_t frame_len, n_touched;
};

struct seen_local {
    struct seen_users head;
    const struct seen_backend_ops *ops; /* NULL: mem: */
    void *backend;
    char *dir, *journal_path;
    int lock_fd;
    seen_outcome outcome;       /* of opening it */
    seen_users_options options; /* defaults filled in; pointers are not */

    struct seen_shard shards[SEEN_SHARDS];
    atomic_uint_fast64_t bytes; /* of all active tables */

    pthread_mutex_t log; /* appends */
    seen_journal *journal;
    uint64_t journaled; /* bytes appended since the last freeze */

    pthread_mutex_t pool;
    struct seen_worker *idle;
    uint64_t evicted;      /* marks, by newer ones */
    bool one_snapshot;     /* a reader with a tail: there is one worker, whose
                              snapshot is awake throughout a call, and sees what it
                              saw when the journal was read */
    pthread_mutex_t alone; /* for the one worker */

    /* Readers choose anew what they look at, see sight.c. */
    pthread_rwlock_t sight; /* shared: whoever looks; alone: whoever chooses */
    pthread_mutex_t turn;   /* to get it: who waits to be alone goes first */
    atomic_uint_fast64_t looked; /* when it was last thought about, in ticks */
    struct seen_meta chosen;     /* what the backend said then */
    uint64_t choices;            /* so far */
    uint64_t tail_at;  /* one_snapshot: the transaction it goes with */
    uint64_t tail_end; /* last frame of a journal that was read */
    atomic_bool blind; /* that journal could not be read: nobody looks
                                    before another choice */

    pthread_mutex_t checkpoint;   /* whoever makes one */
    atomic_uint_fast64_t writing; /* the transaction that the frozen table is
                                     written in */
    struct seen_meta meta;
    uint64_t ticks; /* when meta.clock was last looked at; 0: never */
    uint8_t swept[SEEN_USER_MAX]; /* how far old users were looked for */
    size_t swept_len;

    pthread_mutex_t gate; /* the thread, and those who wait for it */
    pthread_cond_t wanted, done;
    pthread_t thread;
    bool has_thread; /* none: whoever makes it due does the checkpoint */
    bool stop, due;

    atomic_bool failed; /* no more changes */
    atomic_bool stuck;  /* the last checkpoint did not succeed, for lack of room
                           or because it has failed */
    pthread_mutex_t telling;
    char problem[256]; /* written once, before `failed` */
    int problem_errno;
    seen_users_stats stats; /* with `telling` */
};

/* ---- lookup.c ----------------------------------------------------------- */

/* Room for so many bytes; those that are there stay. */
bool seen_room_need(struct seen_room *r, size_t size);

/* For a call with this error. */
struct seen_worker *seen_worker_take(struct seen_local *l, seen_status *status,
                                     seen_error *error);
void seen_worker_return(struct seen_local *l, struct seen_worker *w);
void seen_workers_free(struct seen_local *l);

uint64_t seen_user_hash(const struct seen_local *l, seen_key user);
struct seen_shard *seen_shard_of(struct seen_local *l, uint64_t hash);

static inline seen_key seen_user_name(const struct seen_user *u)
{
    return (seen_key){u->name, u->name_len};
}

static inline seen_record seen_user_record(const struct seen_user *u)
{
    return (seen_record){u->record, u->record_len};
}

/* The active table of a shard has changed; it had so many bytes before. */
void seen_local_count(struct seen_local *l, struct seen_shard *shard,
                      uint64_t before);

/* The snapshot of a worker, if there is a backend. If it is the only one, it stays
 * awake until the call ends. */
seen_status seen_worker_wake(struct seen_local *l, struct seen_worker *w);
void seen_worker_sleep(struct seen_local *l, struct seen_worker *w);

/* The record of a user, in w->record or in the backend, whose snapshot is awake
 * until seen_worker_sleep(). */
seen_status seen_local_find(struct seen_local *l, struct seen_worker *w,
                            seen_key user, seen_record *record);

/* What is queued for a user in a table is applied. With the shard's lock; `frozen`: it is in
 * that table. The snapshot is asleep again afterwards. */
seen_status seen_local_settle(struct seen_local *l, struct seen_worker *w,
                              struct seen_shard *shard, struct seen_user *u,
                              bool frozen);
/* The record that a user of the frozen table will have, w's or in w; without
 * settling it, and without keeping the lock meanwhile. */
seen_status seen_local_preview(struct seen_local *l, struct seen_worker *w,
                               struct seen_user *u, bool *changed,
                               seen_record *record);

/* A record that cannot be read is its user's trouble alone. */
bool seen_local_damaged(seen_status status);

/* The store is done for until it is opened again; says so. `why` "": as the
 * status or errno has it. */
seen_status seen_local_fail(struct seen_local *l, seen_status status,
                            const char *what, const char *why,
                            seen_error *error);
/* It has been before: SEEN_IO. */
seen_status seen_local_failed(const struct seen_local *l, seen_error *error);

/* ---- frame.c ------------------------------------------------------------ */

#define SEEN_FRAME_CHANGES 1
#define SEEN_FRAME_POLICY  2
/* Make a change from a frame; *used is its length. SEEN_CORRUPT: it is none. */
seen_status seen_local_redo(struct seen_local *l, const uint8_t *bytes,
                            size_t len, size_t *used, uint64_t *items);

#define SEEN_FRAME_HASHES 65536 /* of one change */
/* One more change into the frame that w puts together; false: no memory. */
bool seen_frame_put(struct seen_worker *w, enum seen_change_kind kind,
                    struct seen_user *u, uint64_t now_ms, const uint64_t *h,
                    size_t n);
/* That frame: into the journal, then into the table. Empty afterwards, whatever
 * the status. With the shard's lock. */
seen_status seen_frame_write(struct seen_local *l, struct seen_worker *w,
                             struct seen_shard *shard, uint64_t *sequence);

/* ---- local.c ------------------------------------------------------------ */

extern const struct seen_users_ops seen_local_ops;

/* ---- checkpoint.c ------------------------------------------------------- */

bool seen_checkpoint_start(struct seen_local *l); /* the thread */
void seen_checkpoint_stop(struct seen_local *l);
/* Before a change: wait if memory is short. After it: is one due? */
void seen_checkpoint_wait(struct seen_local *l);
void seen_checkpoint_ask(struct seen_local *l);
seen_status seen_checkpoint_sync(struct seen_users *u, seen_error *error);
/* Look at the machine's clock; with the checkpoint's lock, or alone. */
void seen_checkpoint_clock(struct seen_local *l);
seen_status seen_checkpoint_sweep(struct seen_users *u, uint64_t now_ms,
                                  uint64_t *removed, seen_error *error);

/* ---- recover.c ---------------------------------------------------------- */

/* What the journal has, queued; *last is the number of its last frame. */
seen_status seen_recover_replay(struct seen_local *l, uint64_t *last,
                                seen_error *error);
bool seen_policy_same(const seen_policy *a, const seen_policy *b);

/* A store holds its secret, and what people were shown: its directory is its
 * maker's, until he gives others leave. */
#define SEEN_STORE_PRIVATE 0700
/* dir/name, to be freed; NULL: no memory. */
char *seen_path_join(const char *dir, const char *name);
/* The directory that a name leads to, also one to be made, and something behind
 * it. */
seen_status seen_recover_dir(const char *name, const char *suffix, char **out,
                             seen_error *error);
/* seen.lock of a directory, ours alone until the descriptor is closed. */
seen_status seen_recover_lock(const char *dir, int *fd, seen_error *error);
/* Before segments are made or removed by their names: is the directory at our path
 * still the one that this writer opened? Otherwise SEEN_IO, and the store is done
 * for. */
seen_status seen_recover_here(struct seen_local *l, seen_error *error);

/* For tests: on another backend, without a thread. */
seen_status seen_local_open(struct seen_users **u, const char *dir,
                            const struct seen_backend_ops *ops, bool threadless,
                            const seen_users_options *options,
                            seen_outcome *outcome, seen_error *error);
seen_status seen_recover_close(struct seen_users *u, seen_error *error);
void seen_recover_abandon(struct seen_users *u);

/* ---- sight.c ------------------------------------------------------------ */

/* Around every look at what a reader sees; a writer need not. SEEN_OK: to be
 * ended. */
seen_status seen_sight_look(struct seen_local *l, seen_error *error);
void seen_sight_looked(struct seen_local *l);
/* A reader finds that its choice, the so-many-th, does not go any more. */
seen_status seen_sight_again(struct seen_local *l, uint64_t choice,
                             seen_error *error);
/* What a reader sees from now on. */
seen_status seen_sight_choose(struct seen_local *l, seen_error *error);

/* ---- backup.c ----------------------------------------------------------- */

seen_status seen_backup_make(struct seen_users *u, const char *dir,
                             seen_error *error);

#endif
