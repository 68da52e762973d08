/*
 * lmdb.h - what the two halves of the backend in LMDB share.
 *
 *     backend_lmdb.c   transactions: snapshots, writes, copies
 *     lmdb_open.c      files, locks and the environment; errors
 */
#ifndef SEEN_USERS_LMDB_H
#define SEEN_USERS_LMDB_H

#include "users/backend.h"

#include "store/io.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>

struct seen_lmdb {
    struct seen_lmdb *next; /* in the list of what is open */
    uint64_t process;       /* that opened it */
    uint64_t device, inode;
    bool disowned; /* we are another one */
    MDB_env *env;
    MDB_dbi users, store;
    MDB_txn *txn; /* the one that is being made */
    size_t map;
    bool limited; /* the map may have to grow: */
    pthread_rwlock_t growing;
    atomic_uint held; /* snapshots that are awake without the lock */

    bool lockless;                     /* no lock.mdb: */
    pthread_mutex_t gate;              /* for the rest */
    unsigned inside;                   /* who reads now */
    int writers_lock;                  /* shared as long as somebody does; -1 */
    char writers_name[SEEN_PATH_ROOM]; /* "": none comes here */
};

/* backend_ops. */
seen_status seen_lmdb_open(void **out, const char *dir, bool write,
                           seen_error *error);
void seen_lmdb_close(void *backend);
void seen_lmdb_disown(void *backend);

/* LMDB's own codes are negative, errno's are not. */
seen_status seen_lmdb_status(int rc);
seen_status seen_lmdb_report(int rc, seen_error *error);
/* LMDB calls a write that was cut short EIO; on a full disk that is for the lack
 * of space. */
int seen_lmdb_reason(const struct seen_lmdb *s, int rc);

/* Around every look at data.mdb: while a reader without lock.mdb is in, no writer
 * is. */
int seen_lmdb_enter(struct seen_lmdb *s);
void seen_lmdb_leave(struct seen_lmdb *s);

/* After a transaction: data.mdb as long as it says. */
int seen_lmdb_keep_length(struct seen_lmdb *s);

bool seen_lmdb_path(char buf[SEEN_PATH_ROOM], const char *dir,
                    const char *name);

#endif
