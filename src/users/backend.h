/*
 * backend.h - where records rest between checkpoints: a map from users to records
 * that changes by whole transactions, and a few words about the store itself.
 *
 * backend_lmdb.c is the one there is; tests put another in its place, to lose
 * power in the middle.
 */
#ifndef SEEN_BACKEND_H
#define SEEN_BACKEND_H

#include "seen_users.h"

#include "users/clock.h"

/* What the store knows about itself, changed with the records. */
struct seen_meta {
    uint64_t id;       /* of the store, in its journal, too */
    uint64_t epoch;    /* one more for each writer */
    uint64_t sequence; /* journal frames up to here are in the records */
    bool journaled;    /* a writer is at work, or did not close */
    uint8_t secret[16];
    seen_policy policy;
    struct seen_clock clock;
};

/* All in the store's directory. Errors may be NULL. */
struct seen_backend_ops {
    /* Is there one? */
    bool (*there)(const char *dir);
    /* `write`: make what is missing. */
    seen_status (*open)(void **backend, const char *dir, bool write,
                        seen_error *error);
    void (*close)(void *backend);
    /* In a child that was forked: from now on snapshot_free() and close() free
     * memory and leave the file alone. Nothing else is called any more. */
    void (*disown)(void *backend);

    /* SEEN_ABSENT: new, no transaction has been committed. */
    seen_status (*meta)(void *backend, struct seen_meta *out,
                        seen_error *error);

    /* A snapshot is one thread's: awake, it sees the state of the last
     * transaction that was committed before it woke. It begins asleep. */
    seen_status (*snapshot_new)(void *backend, void **snapshot);
    void (*snapshot_free)(void *snapshot);
    seen_status (*wake)(void *snapshot, seen_error *error);
    void (*sleep)(void *snapshot);
    /* The number of the transaction that it sees, awake. */
    uint64_t (*sees)(void *snapshot);
    /* The only snapshot of its backend, awake, needs no lock any more until it
     * sleeps. */
    void (*hold)(void *snapshot);
    /* As meta(), in the state that it sees. */
    seen_status (*told)(void *snapshot, struct seen_meta *out,
                        seen_error *error);
    /* SEEN_ABSENT: no record; SEEN_CORRUPT: it is damaged. Lent until the snapshot
     * sleeps. */
    seen_status (*get)(void *snapshot, seen_key user, seen_record *record);
    /* In order, those after a user (NULL: all), until `each` gives false. A
     * damaged record is NULL. */
    seen_status (*each)(void *snapshot, const seen_key *after,
                        bool (*each)(void *ctx, seen_key user,
                                     seen_record record),
                        void *ctx);

    /* One transaction at a time. An empty record removes the user. Commit and
     * abort end it, whatever the status. SEEN_FULL: abort, grow(), again. */
    seen_status (*begin)(void *backend, seen_error *error);
    uint64_t (*number)(void *backend); /* its number: higher than any before */
    seen_status (*put)(void *backend, seen_key user, seen_record record,
                       seen_error *error);
    seen_status (*commit)(void *backend, const struct seen_meta *meta,
                          seen_error *error);
    void (*abort)(void *backend);
    seen_status (*grow)(void *backend);

    void (*sizes)(void *backend, uint64_t *users, uint64_t *bytes);
    /* Into a directory that is there; on disk when it returns. */
    seen_status (*copy)(void *backend, const char *dir, seen_error *error);
};

#ifdef SEEN_WITH_LMDB
extern const struct seen_backend_ops seen_backend_lmdb;
#endif

/* Make DIR/data.mdb: `fill` writes a new file, which gets this name when it is on
 * disk; nothing is left if that fails. And: has it been made? */
seen_status seen_backend_make(const char *dir,
                              seen_status (*fill)(const char *path,
                                                  seen_error *error),
                              seen_error *error);
seen_status seen_backend_look(const char *dir, bool *made, seen_error *error);
bool seen_backend_there(const char *dir); /* yes, if it cannot be told */

/* The words about the store, as bytes (docs/FORMAT.md). */
#define SEEN_META_SIZE 128
void seen_meta_put(const struct seen_meta *meta, uint8_t out[SEEN_META_SIZE]);
/* SEEN_CORRUPT, SEEN_NEWER. */
seen_status seen_meta_get(const uint8_t *bytes, size_t len,
                          struct seen_meta *meta);

#endif
