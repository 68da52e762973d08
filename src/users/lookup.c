/*
 * lookup.c - the record of a user: in the active table, the frozen one, or the
 * backend, with what is queued for it applied on the way. And what every call needs
 * for that: a worker, and a store that has not failed.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Memory ------------------------------------------------------------- */

/* Room for so many bytes; those that are there stay. */
bool seen_room_need(struct seen_room *r, size_t size)
{
    if (size <= r->size) return true;
    size_t more = size + size / 2 + 256;
    void *at = realloc(r->at, more);
    if (!at) return false;
    *r = (struct seen_room){at, more};
    return true;
}

static void free_worker(struct seen_local *l, struct seen_worker *w)
{
    seen_exposure_free(w->x);
    if (l->backend) l->ops->snapshot_free(w->snapshot);
    free(w->record.at);
    free(w->queued.at);
    free(w->jobs.at);
    free(w->answers.at);
    free(w->frame.at);
    free(w->touched.at);
    free(w);
}

static seen_status new_worker(struct seen_local *l, struct seen_worker **out)
{
    struct seen_worker *w = calloc(1, sizeof *w);
    if (!w) return SEEN_NOMEM;
    seen_status status =
        seen_exposure_new(&w->x, &l->meta.policy, l->meta.secret, NULL, NULL);
    if (status == SEEN_OK && l->backend)
        status = l->ops->snapshot_new(l->backend, &w->snapshot);
    if (status != SEEN_OK)
        free_worker(l, w);
    else
        *out = w;
    return status;
}

struct seen_worker *seen_worker_take(struct seen_local *l, seen_status *status,
                                     seen_error *error)
{
    if (l->one_snapshot) pthread_mutex_lock(&l->alone);
    pthread_mutex_lock(&l->pool);
    struct seen_worker *w = l->idle;
    if (w) l->idle = w->next;
    pthread_mutex_unlock(&l->pool);
    *status = w ? SEEN_OK : new_worker(l, &w);
    if (w) w->error = error;
    if (!w && l->one_snapshot) pthread_mutex_unlock(&l->alone);
    return w;
}

void seen_worker_return(struct seen_local *l, struct seen_worker *w)
{
    uint64_t evicted = seen_exposure_evicted(w->x);
    w->error = NULL;
    pthread_mutex_lock(&l->pool);
    l->evicted += evicted - w->evicted;
    w->evicted = evicted;
    w->next = l->idle;
    l->idle = w;
    pthread_mutex_unlock(&l->pool);
    if (l->one_snapshot) pthread_mutex_unlock(&l->alone);
}

void seen_workers_free(struct seen_local *l)
{
    while (l->idle) {
        struct seen_worker *w = l->idle;
        l->idle = w->next;
        free_worker(l, w);
    }
}

/* ---- Failure ------------------------------------------------------------ */

seen_status seen_local_fail(struct seen_local *l, seen_status status,
                            const char *what, const char *why,
                            seen_error *error)
{
    int before = errno;
    pthread_mutex_lock(&l->telling);
    if (!atomic_load(&l->failed)) {
        if (!why[0])
            why = status == SEEN_IO ? strerror(before) : seen_strerror(status);
        snprintf(l->problem, sizeof l->problem,
                 "%s: %s; no changes until it is opened again", what, why);
        l->problem_errno = before;
        atomic_store(&l->failed, true);
    }
    pthread_mutex_unlock(&l->telling);
    seen_local_failed(l, error);
    errno = before;
    return status;
}

seen_status seen_local_failed(const struct seen_local *l, seen_error *error)
{
    errno = l->problem_errno;
    if (!error || error->status != SEEN_OK) return SEEN_IO;
    seen_fail(error, SEEN_IO, NULL, "%s", l->problem);
    error->os_errno = l->problem_errno;
    return SEEN_IO;
}

/* ---- Records ------------------------------------------------------------ */

uint64_t seen_user_hash(const struct seen_local *l, seen_key user)
{
    return seen_hash_siphash13.one(l->meta.secret, user.data, user.len).lo;
}

struct seen_shard *seen_shard_of(struct seen_local *l, uint64_t hash)
{
    return &l->shards[hash >> 32 & (SEEN_SHARDS - 1)];
}

void seen_local_count(struct seen_local *l, struct seen_shard *shard,
                      uint64_t before)
{
    atomic_fetch_add(&l->bytes, shard->active.bytes - before);
}

seen_status seen_worker_wake(struct seen_local *l, struct seen_worker *w)
{
    return l->backend ? l->ops->wake(w->snapshot, w->error) : SEEN_OK;
}

void seen_worker_sleep(struct seen_local *l, struct seen_worker *w)
{
    if (l->backend && !l->one_snapshot) l->ops->sleep(w->snapshot);
}

/* What rests in the backend; nothing if nothing does. The snapshot is awake. */
static seen_status from_backend(struct seen_local *l, struct seen_worker *w,
                                seen_key user, seen_record *record)
{
    *record = (seen_record){0};
    seen_status status =
        l->backend ? l->ops->get(w->snapshot, user, record) : SEEN_ABSENT;
    return status == SEEN_ABSENT ? SEEN_OK : status;
}

/* What is queued for a user, applied to what lies in the backend if need be; the
 * snapshot is awake. */
static seen_status apply_queued(struct seen_local *l, struct seen_worker *w,
                                const struct seen_user *u, seen_record *record)
{
    seen_status status = SEEN_OK;
    seen_record base = seen_user_record(u);
    if (!u->known) status = from_backend(l, w, seen_user_name(u), &base);
    if (status != SEEN_OK) return status;
    return seen_table_apply(u->queued, u->queued_len, w->x, base, record);
}

bool seen_local_damaged(seen_status status)
{
    return status == SEEN_CORRUPT || status == SEEN_MISMATCH ||
           status == SEEN_NEWER;
}

static seen_status settle_frozen(struct seen_local *l, struct seen_worker *w,
                                 struct seen_shard *shard, struct seen_user *u)
{
    seen_record record;
    if (u->known && !u->queued_len) return SEEN_OK;
    seen_status status = seen_worker_wake(l, w);
    if (status != SEEN_OK) return status;
    if (!u->known && l->ops->sees(w->snapshot) >= atomic_load(&l->writing))
        status = from_backend(l, w, seen_user_name(u),
                              &record); /* it has been applied */
    else
        status = apply_queued(l, w, u, &record);
    if (status == SEEN_OK && !seen_table_settle(&shard->frozen, u, record))
        status = SEEN_NOMEM;
    seen_worker_sleep(l, w);
    return status;
}

static seen_status settle_active(struct seen_local *l, struct seen_worker *w,
                                 struct seen_shard *shard, struct seen_user *u)
{
    seen_record record;
    struct seen_user *older = NULL;
    if (u->known && !u->queued_len) return SEEN_OK;
    if (!u->known)
        older = seen_table_find(&shard->frozen, u->hash, seen_user_name(u));
    seen_status status =
        older ? settle_frozen(l, w, shard, older) : seen_worker_wake(l, w);
    if (status == SEEN_OK)
        status = older ? seen_table_apply(u->queued, u->queued_len, w->x,
                                          seen_user_record(older), &record)
                       : apply_queued(l, w, u, &record);
    if (status == SEEN_OK && !seen_table_settle(&shard->active, u, record))
        status = SEEN_NOMEM;
    seen_worker_sleep(l, w);
    return status;
}

seen_status seen_local_preview(struct seen_local *l, struct seen_worker *w,
                               struct seen_user *u, bool *changed,
                               seen_record *record)
{
    struct seen_shard *shard = seen_shard_of(l, u->hash);
    pthread_mutex_lock(&shard->lock);
    const bool known = u->known;
    const uint32_t n = u->queued_len, len = u->record_len;
    bool room = seen_room_need(&w->queued, n * sizeof *u->queued) &&
                seen_room_need(&w->record, len);
    if (room && n) memcpy(w->queued.at, u->queued, n * sizeof *u->queued);
    if (room && len) memcpy(w->record.at, u->record, len);
    pthread_mutex_unlock(&shard->lock);
    if (!room) return SEEN_NOMEM;
    *changed = known || n; /* or just looked for */
    *record = (seen_record){w->record.at, len};
    if (known) return seen_table_apply(w->queued.at, n, w->x, *record, record);
    seen_status status = seen_worker_wake(l, w);
    if (status == SEEN_OK)
        status = from_backend(l, w, seen_user_name(u), record);
    if (status == SEEN_OK)
        status = seen_table_apply(w->queued.at, n, w->x, *record, record);
    seen_worker_sleep(l, w);
    return status;
}

seen_status seen_local_settle(struct seen_local *l, struct seen_worker *w,
                              struct seen_shard *shard, struct seen_user *u,
                              bool frozen)
{
    return frozen ? settle_frozen(l, w, shard, u)
                  : settle_active(l, w, shard, u);
}

/*
 * The record of a user, in w->record or in the backend, the snapshot being awake
 * until seen_worker_sleep(). It wakes while the shard is locked: should the
 * checkpoint drop the frozen table right after, it sees what that held.
 */
seen_status seen_local_find(struct seen_local *l, struct seen_worker *w,
                            seen_key user, seen_record *record)
{
    uint64_t hash = seen_user_hash(l, user);
    struct seen_shard *shard = seen_shard_of(l, hash);
    seen_status status = SEEN_OK;
    pthread_mutex_lock(&shard->lock);
    uint64_t before = shard->active.bytes;
    struct seen_user *u = seen_table_find(&shard->active, hash, user);
    bool frozen = !u;
    if (!u) u = seen_table_find(&shard->frozen, hash, user);
    if (u) {
        status = seen_local_settle(l, w, shard, u, frozen);
        if (status == SEEN_OK && !seen_room_need(&w->record, u->record_len))
            status = SEEN_NOMEM;
        if (status == SEEN_OK) {
            if (u->record_len) memcpy(w->record.at, u->record, u->record_len);
            *record = (seen_record){w->record.at, u->record_len};
        }
    } else {
        status = seen_worker_wake(l, w);
    }
    seen_local_count(l, shard, before);
    pthread_mutex_unlock(&shard->lock);
    if (!u && status == SEEN_OK) status = from_backend(l, w, user, record);
    return status;
}
