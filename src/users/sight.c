/*
 * sight.c - what a reader sees:
 *
 *     no journal, or a writer at work     the backend, at its last checkpoint
 *     a journal, and its writer is gone   the backend and the journal: nobody else
 *                                         will make it part of the backend
 *     asked for the tail                  the backend and the journal, always
 *
 * Writers come and die while a reader is open, so one that has read no journal
 * thinks again before it looks, if the last time was more than a second ago
 * (seen_sight_look).
 *
 * What was read of a journal, the tail, goes with the transaction that the backend was
 * at, and with no other. A reader does not keep that alive between calls: LMDB could
 * use no page again that was freed since, and data.mdb would grow; and a reader
 * without lock.mdb would keep writers out. It looks whether the backend is still
 * there, and if it has moved on, backend and journal are read again. A new writer makes
 * what it finds in the journal part of the backend, but not at once: until then a
 * reader reads that journal, too, and never knows less than before (tail_end).
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/error.h"
#include "store/io.h"

#include <errno.h>
#include <stdlib.h>

#define ATTEMPTS 100
#define LOOK_MS  1000 /* how long a reader may not know that its writer died */

/* The lock is the writer's as long as it lives, and the kernel's to take away.
 * Where we may not ask, the journal is read: that never misses anything. */
static seen_status writer_lives(const struct seen_local *l, bool *lives)
{
    char *path = seen_path_join(l->dir, "seen.lock");
    if (!path) return SEEN_NOMEM;
    *lives = false;
    int fd = seen_io_open_regular(path, O_RDONLY);
    free(path);
    if (fd < 0) return errno == ENOENT || errno == EACCES ? SEEN_OK : SEEN_IO;
    seen_status status = seen_io_lock_shared(fd);
    seen_io_close(fd);
    *lives = status == SEEN_BUSY;
    return *lives ? SEEN_OK : status;
}

/* What the backend holds from here on, the snapshot being awake, and the journal. */
static seen_status replay_on(struct seen_local *l, void *snapshot,
                             seen_error *error)
{
    struct seen_meta now;
    seen_status status = l->ops->told(snapshot, &now, error);
    if (status != SEEN_OK) return status;
    if (now.epoch != l->meta.epoch || now.sequence != l->meta.sequence)
        return seen_fail(error, SEEN_BUSY, NULL, "checkpoints come too fast");
    l->tail_at = l->ops->sees(snapshot);
    return seen_recover_replay(l, &l->tail_end, error);
}

/* SEEN_BUSY: there was a checkpoint in between. */
static seen_status read_tail(struct seen_local *l, seen_error *error)
{
    seen_status status;
    l->one_snapshot = true;
    struct seen_worker *w = seen_worker_take(l, &status, error);
    if (!w) return status;
    void *snapshot =
        w->snapshot; /* of the only worker, which is here to stay */
    status = l->ops->wake(snapshot, error);
    if (status == SEEN_OK) l->ops->hold(snapshot);
    seen_worker_return(l, w);
    if (status != SEEN_OK) return status;
    status = replay_on(l, snapshot, error);
    l->ops->sleep(snapshot);
    return status;
}

static void forget_tail(struct seen_local *l)
{
    l->one_snapshot = false;
    l->journaled = 0;
    seen_workers_free(l);
    for (size_t i = 0; i < SEEN_SHARDS; i++)
        seen_table_free(&l->shards[i].active);
    atomic_store(&l->bytes, 0);
}

static seen_status choose_once(struct seen_local *l, seen_error *error)
{
    bool lives = false;
    forget_tail(l);
    seen_status status = l->ops->meta(l->backend, &l->meta, error);
    l->chosen = l->meta;
    if (status != SEEN_OK) return status;
    if (!l->options.tail && !l->meta.journaled) return SEEN_OK;
    if (!l->options.tail) status = writer_lives(l, &lives);
    if (status == SEEN_IO) seen_fail_io(error, NULL, "lock seen.lock");
    bool known = l->meta.sequence >= l->tail_end; /* no less than before */
    return status == SEEN_OK && !(lives && known) ? read_tail(l, error)
                                                  : status;
}

/* A writer may drop segments, or write one, while they are read: what looks like
 * damage is damage only if it stays. */
seen_status seen_sight_choose(struct seen_local *l, seen_error *error)
{
    seen_status status = SEEN_BUSY;
    for (int i = 0; i < ATTEMPTS; i++) {
        seen_error_begin(error);
        status = choose_once(l, error);
        if (status != SEEN_CORRUPT && status != SEEN_BUSY) break;
    }
    if (status != SEEN_OK) forget_tail(l);
    atomic_store(&l->blind, status != SEEN_OK);
    l->choices++;
    atomic_store(&l->looked, seen_os->ticks());
    return status;
}

/* Has the world changed since the last choice? With a tail, each call looks. */
static seen_status must_choose(struct seen_local *l, bool *must,
                               seen_error *error)
{
    struct seen_meta now, was = l->chosen;
    bool lives = false;
    if (l->one_snapshot) return SEEN_OK;
    seen_status status = l->ops->meta(l->backend, &now, error);
    if (status == SEEN_OK && now.journaled) status = writer_lives(l, &lives);
    if (status == SEEN_IO) seen_fail_io(error, NULL, "lock seen.lock");
    if (status != SEEN_OK) return status;
    *must = (now.journaled && !lives) ||
            !seen_policy_same(&now.policy, &was.policy);
    return SEEN_OK;
}

static bool is_time_to_think(struct seen_local *l)
{
    uint64_t now_ms = seen_os->ticks(), last = atomic_load(&l->looked);
    return now_ms - last >= LOOK_MS &&
           atomic_compare_exchange_strong(&l->looked, &last, now_ms);
}

static void look(struct seen_local *l)
{
    pthread_mutex_lock(&l->turn);
    pthread_rwlock_rdlock(&l->sight);
    pthread_mutex_unlock(&l->turn);
}

/* Unless another thread has, since. */
static seen_status choose_alone(struct seen_local *l, uint64_t choice,
                                seen_error *error)
{
    seen_status status = SEEN_OK;
    pthread_mutex_lock(&l->turn);
    pthread_rwlock_wrlock(&l->sight);
    if (l->choices == choice) status = seen_sight_choose(l, error);
    pthread_rwlock_unlock(&l->sight);
    pthread_mutex_unlock(&l->turn);
    return status;
}

static seen_status think_again(struct seen_local *l, seen_error *error)
{
    bool must = false;
    look(l);
    seen_status status = must_choose(l, &must, error);
    uint64_t choice = l->choices;
    seen_sight_looked(l);
    return status == SEEN_OK && must ? choose_alone(l, choice, error) : status;
}

/* A journal that cannot be read concerns all users; SEEN_CORRUPT would be about
 * the record of one. The next call tries again. */
static seen_status cannot_see(struct seen_local *l, seen_status status,
                              const seen_error *why, seen_error *error)
{
    atomic_store(&l->looked, seen_os->ticks() - LOOK_MS);
    atomic_store(&l->blind, true);
    if (!seen_local_damaged(status)) {
        if (error && why->status != SEEN_OK) *error = *why;
        return status;
    }
    errno = EIO;
    return seen_fail(error, SEEN_IO, NULL,
                     "its writer died, and its journal cannot be read: %.300s",
                     why->text[0] ? why->text : seen_strerror(status));
}

seen_status seen_sight_look(struct seen_local *l, seen_error *error)
{
    if (l->head.writable || !l->backend) return SEEN_OK;
    if (is_time_to_think(l)) {
        seen_error why = {0};
        seen_status status = think_again(l, &why);
        if (status != SEEN_OK) return cannot_see(l, status, &why, error);
    }
    look(l);
    return SEEN_OK;
}

seen_status seen_sight_again(struct seen_local *l, uint64_t choice,
                             seen_error *error)
{
    seen_error why = {0};
    seen_status status = choose_alone(l, choice, &why);
    return status == SEEN_OK ? status : cannot_see(l, status, &why, error);
}

void seen_sight_looked(struct seen_local *l)
{
    if (!l->head.writable && l->backend) pthread_rwlock_unlock(&l->sight);
}
