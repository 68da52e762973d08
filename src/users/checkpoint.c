/*
 * checkpoint.c - from the tables to the backend.
 *
 * The picture is in local.h. One thread makes checkpoints when they are due: so
 * many bytes in the tables, so many in the journal, a change so long ago, or a
 * journal that the last writer left.
 * Changes wait only while the journal is cut (a sync or two) and the tables are
 * exchanged, and when they come so fast that a second table fills up while the
 * first is still being written: memory is bounded.
 *
 * Old users leave on the way. Each checkpoint looks through a stretch of the
 * backend, twice as many users as it writes, and removes those whose last mark has
 * aged out. By whose clock? By the machine's, as far as it is believed (clock.h):
 * no mark, whatever its time, ages another user's record.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STRETCH 1000 /* users that a checkpoint looks through at least */

static uint64_t microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- Freeze ------------------------------------------------------------- */

struct frozen {
    struct seen_user **users; /* by name */
    size_t n;
    uint64_t sequence;
    uint64_t lowest; /* time of a mark; all bits: none */
};

void seen_checkpoint_clock(struct seen_local *l)
{
    uint64_t ticks = seen_os->ticks();
    bool leapt = seen_clock_look(&l->meta.clock, seen_os->clock(),
                                 l->ticks ? ticks - l->ticks : 0);
    l->ticks = ticks;
    pthread_mutex_lock(&l->telling);
    l->stats.clock_ahead = l->meta.clock.ahead;
    l->stats.clock_leaps += leapt;
    pthread_mutex_unlock(&l->telling);
}

static void lock_all(struct seen_local *l)
{
    for (size_t i = 0; i < SEEN_SHARDS; i++)
        pthread_mutex_lock(&l->shards[i].lock);
}

static void unlock_all(struct seen_local *l)
{
    for (size_t i = SEEN_SHARDS; i-- > 0;)
        pthread_mutex_unlock(&l->shards[i].lock);
}

static seen_status cut_journal(struct seen_local *l)
{
    pthread_mutex_lock(&l->log);
    seen_status status = seen_journal_cut(l->journal);
    pthread_mutex_unlock(&l->log);
    return status;
}

/* Without room for a new segment, the old one goes on. */
static seen_status cut_failed(struct seen_local *l, seen_status status,
                              seen_error *error)
{
    bool full = status == SEEN_IO && (errno == ENOSPC || errno == EDQUOT);
    if (full && !seen_journal_failed(l->journal))
        return seen_fail_io(error, NULL, "checkpoint");
    return seen_local_fail(l, status, "cut the journal", "", error);
}

static void freeze(struct seen_local *l, struct frozen *f)
{
    *f = (struct frozen){.lowest = UINT64_MAX};
    lock_all(l);
    f->sequence = seen_journal_last(l->journal);
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        struct seen_shard *s = &l->shards[i];
        s->frozen = s->active;
        seen_table_init(&s->active);
        f->n += s->frozen.count;
        if (s->frozen.lowest < f->lowest) f->lowest = s->frozen.lowest;
    }
    atomic_store(&l->bytes, 0);
    atomic_store(&l->writing, UINT64_MAX); /* not even begun */
    pthread_mutex_lock(&l->log);
    l->journaled = 0;
    pthread_mutex_unlock(&l->log);
    unlock_all(l);
}

static int by_name(const void *a, const void *b)
{
    return seen_table_compare(*(struct seen_user *const *)a,
                              *(struct seen_user *const *)b);
}

/* Nobody puts users into a frozen table or takes them out. */
static seen_status gather(struct seen_local *l, struct frozen *f)
{
    f->users = malloc((f->n + 1) * sizeof *f->users);
    if (!f->users) return SEEN_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        const struct seen_table *t = &l->shards[i].frozen;
        for (size_t at = 0; at < t->places; at++)
            if (t->at[at]) f->users[n++] = t->at[at];
    }
    qsort(f->users, n, sizeof *f->users, by_name);
    return SEEN_OK;
}

/* ---- Write -------------------------------------------------------------- */

/*
 * One user. Queued changes are applied on the way, into the transaction and not into
 * the table, so that memory does not grow by all the records. A record that is
 * damaged stays as it is, and an error for its user.
 */
static seen_status write_user(struct seen_local *l, struct seen_worker *w,
                              struct seen_user *u)
{
    seen_record record;
    bool changed;
    seen_status status = seen_local_preview(l, w, u, &changed, &record);
    if (seen_local_damaged(status)) return SEEN_OK;
    if (status != SEEN_OK || !changed) return status;
    return l->ops->put(l->backend, (seen_key){u->name, u->name_len}, record,
                       w->error);
}

static seen_status write_users(struct seen_local *l, struct seen_worker *w,
                               const struct frozen *f)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < f->n && status == SEEN_OK; i++)
        status = write_user(l, w, f->users[i]);
    return status;
}

/* ---- Old users ---------------------------------------------------------- */

struct sweep {
    struct seen_local *l;
    struct seen_worker *w;
    uint64_t now_ms, left, removed;
    bool by_clock; /* now_ms: what the machine's clock says */
    bool to_end;
    seen_status status;
};

/* Who is in the frozen table has just been written. */
static bool sweep_one(void *ctx, seen_key user, seen_record record)
{
    struct sweep *s = ctx;
    struct seen_local *l = s->l;
    uint64_t hash = seen_user_hash(l, user);
    seen_exposure_info info = {.size = sizeof info};
    memcpy(l->swept, user.data, user.len);
    l->swept_len = user.len;
    s->left--;
    if (record.data &&
        !seen_table_find(&seen_shard_of(l, hash)->frozen, hash, user) &&
        seen_exposure_info_of(s->w->x, record, s->now_ms, &info) == SEEN_OK &&
        info.generations == 0) {
        s->status =
            l->ops->put(l->backend, user, (seen_record){0}, s->w->error);
        s->removed++;
    }
    s->to_end = s->left > 0;
    return s->status == SEEN_OK && s->left > 0;
}

/* A stretch of the backend, from where the last one ended; then from the start. */
static seen_status sweep_backend(struct sweep *s)
{
    struct seen_local *l = s->l;
    const seen_key after = {l->swept, l->swept_len};
    s->to_end = true;
    seen_status status = l->ops->wake(s->w->snapshot, s->w->error);
    if (status != SEEN_OK) return status;
    status = l->ops->each(s->w->snapshot, l->swept_len ? &after : NULL,
                          sweep_one, s);
    l->ops->sleep(s->w->snapshot);
    if (s->to_end) l->swept_len = 0;
    return status == SEEN_OK ? s->status : status;
}

/* ---- All of it ---------------------------------------------------------- */

/* The transaction. `sweep->left` 0: as many as are fitting. */
static seen_status write_all(struct seen_local *l, struct seen_worker *w,
                             const struct frozen *f, struct sweep *sweep)
{
    struct seen_meta meta = l->meta;
    meta.sequence = f->sequence;
    sweep->removed = 0;
    sweep->status = SEEN_OK;
    seen_status status = l->ops->begin(l->backend, w->error);
    if (status != SEEN_OK) return status;
    atomic_store(&l->writing, l->ops->number(l->backend));
    status = write_users(l, w, f);
    if (status == SEEN_OK && sweep->left) status = sweep_backend(sweep);
    if (status == SEEN_OK)
        status = l->ops->commit(l->backend, &meta, w->error);
    else
        l->ops->abort(l->backend);
    if (status == SEEN_OK) l->meta.sequence = meta.sequence;
    return status;
}

static void drop_frozen(struct seen_local *l)
{
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        struct seen_shard *s = &l->shards[i];
        pthread_mutex_lock(&s->lock);
        struct seen_table old = s->frozen;
        seen_table_init(&s->frozen);
        pthread_mutex_unlock(&s->lock);
        seen_table_free(&old);
    }
}

static void note(struct seen_local *l, uint64_t began, uint64_t stall,
                 const struct sweep *sweep)
{
    pthread_mutex_lock(&l->telling);
    l->stats.checkpoints++;
    l->stats.checkpoint_ms = (microseconds() - began) / 1000;
    if (stall > l->stats.stall_us) l->stats.stall_us = stall;
    l->stats.expired += sweep->removed;
    l->stats.sequence = l->meta.sequence;
    pthread_mutex_unlock(&l->telling);
}

/* With the checkpoint's lock. */
static seen_status write_frozen(struct seen_local *l, const struct frozen *f,
                                struct sweep *sweep, seen_error *error)
{
    seen_status status;
    struct seen_worker *w = seen_worker_take(l, &status, error);
    if (!w) return status;
    sweep->w = w;
    uint64_t left = sweep->left;
    status = write_all(l, w, f, sweep);
    while (status == SEEN_FULL && l->ops->grow(l->backend) == SEEN_OK) {
        l->swept_len = 0;
        sweep->left = left;
        seen_error_begin(error);
        status = write_all(l, w, f, sweep);
    }
    seen_worker_return(l, w);
    return status;
}

/*
 * A day is left to a clock that has leapt by less than that. Callers who have a
 * clock of their own, far behind the machine's, would lose users whose marks have
 * not aged out for them: where marks are that far behind, nobody is removed.
 */
static void set_stretch(const struct seen_local *l, const struct frozen *f,
                        struct sweep *sweep)
{
    uint64_t believed = seen_clock_believed(&l->meta.clock);
    if (f->lowest == UINT64_MAX || believed <= SEEN_LEAP_MS) return;
    sweep->now_ms = believed - SEEN_LEAP_MS;
    if (f->lowest >= sweep->now_ms) sweep->left = 2 * f->n + STRETCH;
}

static seen_status make_checkpoint(struct seen_local *l, struct sweep *sweep,
                                   seen_error *error)
{
    struct frozen f = {0};
    seen_error why = {0};
    uint64_t began = microseconds();
    seen_status status = seen_recover_here(l, error);
    if (status != SEEN_OK) return status;
    status = cut_journal(l);
    if (status != SEEN_OK) return cut_failed(l, status, error);
    freeze(l, &f);
    uint64_t stall = microseconds() - began;
    seen_checkpoint_clock(l);
    if (sweep->by_clock) sweep->now_ms = seen_clock_believed(&l->meta.clock);
    if (!sweep->left) set_stretch(l, &f, sweep);
    status = seen_journal_commit(l->journal, f.sequence);
    if (status != SEEN_OK)
        return seen_local_fail(l, status, "sync the journal", "", error);
    status = gather(l, &f);
    if (status != SEEN_OK)
        return seen_local_fail(l, status, "checkpoint", "", error);
    status = write_frozen(l, &f, sweep, &why);
    free(f.users);
    if (status != SEEN_OK)
        return seen_local_fail(l, status, "checkpoint", why.text, error);
    drop_frozen(l);
    note(l, began, stall, sweep);
    status = seen_recover_here(l, error);
    if (status != SEEN_OK) return status;
    status = seen_journal_drop(l->journal, f.sequence);
    return status == SEEN_OK
               ? status
               : seen_local_fail(l, status, "drop the journal", "", error);
}

static seen_status checkpoint(struct seen_local *l, struct sweep *sweep,
                              seen_error *error)
{
    seen_status status = SEEN_IO;
    sweep->l = l;
    pthread_mutex_lock(&l->checkpoint);
    if (sweep->left) l->swept_len = 0; /* all of the backend */
    if (atomic_load(&l->failed))
        seen_local_failed(l, error);
    else
        status = make_checkpoint(l, sweep, error);
    int before = errno;
    atomic_store(&l->stuck, status != SEEN_OK);
    pthread_mutex_unlock(&l->checkpoint);
    pthread_mutex_lock(&l->gate);
    pthread_cond_broadcast(&l->done);
    pthread_mutex_unlock(&l->gate);
    errno = before;
    return status;
}

seen_status seen_checkpoint_sync(struct seen_users *u, seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    return l->backend ? checkpoint(l, &(struct sweep){0}, error) : SEEN_OK;
}

/* ---- Sweep -------------------------------------------------------------- */

static seen_status sweep_tables(struct seen_local *l, struct seen_worker *w,
                                uint64_t now_ms, uint64_t *removed)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < SEEN_SHARDS && status == SEEN_OK; i++) {
        struct seen_shard *shard = &l->shards[i];
        struct seen_table *t = &shard->active;
        pthread_mutex_lock(&shard->lock);
        for (size_t at = 0; at < t->places && status == SEEN_OK;) {
            seen_exposure_info info = {.size = sizeof info, .generations = 1};
            struct seen_user *u = t->at[at];
            if (u) status = seen_local_settle(l, w, shard, u, false);
            if (u && status == SEEN_OK)
                status = seen_exposure_info_of(
                    w->x, (seen_record){u->record, u->record_len}, now_ms,
                    &info);
            if (seen_local_damaged(status)) status = SEEN_OK;
            if (info.generations) {
                at++;
            } else { /* another may move here */
                *removed += u->record_len > 0;
                seen_table_remove(t, u);
            }
        }
        pthread_mutex_unlock(&shard->lock);
    }
    return status;
}

seen_status seen_checkpoint_sweep(struct seen_users *u, uint64_t now_ms,
                                  uint64_t *removed, seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    if (l->backend) { /* what is in the tables first, then all of the backend */
        struct sweep sweep = {
            .now_ms = now_ms, .by_clock = !now_ms, .left = UINT64_MAX};
        status = checkpoint(l, &(struct sweep){0}, error);
        if (status != SEEN_OK) return status;
        status = checkpoint(l, &sweep, error);
        *removed = sweep.removed;
        return status;
    }
    struct seen_worker *w = seen_worker_take(l, &status, error);
    if (!w) return status;
    status = sweep_tables(l, w, now_ms ? now_ms : seen_os->clock(), removed);
    seen_worker_return(l, w);
    return status;
}

/* ---- When --------------------------------------------------------------- */

static bool is_due(struct seen_local *l)
{
    pthread_mutex_lock(&l->log);
    bool due = l->journaled > l->options.journal_bytes;
    pthread_mutex_unlock(&l->log);
    return due || atomic_load(&l->bytes) > l->options.checkpoint_bytes;
}

void seen_checkpoint_ask(struct seen_local *l)
{
    if (!l->backend) return;
    if (!l->has_thread) {
        if (!l->due && !is_due(l)) return;
        l->due = false;
        (void)checkpoint(l, &(struct sweep){0},
                         NULL); /* the next change says so */
        return;
    }
    if (!is_due(l)) return;
    pthread_mutex_lock(&l->gate);
    l->due = true;
    pthread_cond_signal(&l->wanted);
    pthread_mutex_unlock(&l->gate);
}

/* The table that is being filled may become twice as large as is due. */
void seen_checkpoint_wait(struct seen_local *l)
{
    if (!l->has_thread) return;
    uint64_t most = 2 * l->options.checkpoint_bytes;
    if (atomic_load(&l->bytes) <= most) return;
    uint64_t began = microseconds();
    pthread_mutex_lock(&l->gate);
    while (atomic_load(&l->bytes) > most && !atomic_load(&l->stuck) &&
           !atomic_load(&l->failed) && !l->stop) {
        l->due = true;
        pthread_cond_signal(&l->wanted);
        pthread_cond_wait(&l->done, &l->gate);
    }
    pthread_mutex_unlock(&l->gate);
    uint64_t waited = microseconds() - began;
    pthread_mutex_lock(&l->telling);
    if (waited > l->stats.stall_us) l->stats.stall_us = waited;
    pthread_mutex_unlock(&l->telling);
}

/* Wait until a checkpoint is due, or the time is over. */
static void wait_for_due(struct seen_local *l)
{
    struct timespec until;
    uint64_t ms = l->options.checkpoint_ms;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (!l->stop && !l->due &&
           pthread_cond_timedwait(&l->wanted, &l->gate, &until) == 0)
        ;
}

static void *work(void *arg)
{
    struct seen_local *l = arg;
    pthread_mutex_lock(&l->gate);
    while (!l->stop) {
        wait_for_due(l);
        if (l->stop) break;
        bool wanted = l->due || atomic_load(&l->bytes);
        l->due = false;
        pthread_mutex_unlock(&l->gate);
        if (wanted && !atomic_load(&l->failed))
            (void)checkpoint(l, &(struct sweep){0}, NULL);
        pthread_mutex_lock(&l->gate);
        pthread_cond_broadcast(&l->done); /* also if it has failed meanwhile */
    }
    pthread_mutex_unlock(&l->gate);
    return NULL;
}

bool seen_checkpoint_start(struct seen_local *l)
{
    l->has_thread = pthread_create(&l->thread, NULL, work, l) == 0;
    return l->has_thread;
}

void seen_checkpoint_stop(struct seen_local *l)
{
    if (!l->has_thread) return;
    pthread_mutex_lock(&l->gate);
    l->stop = true;
    pthread_cond_broadcast(&l->wanted);
    pthread_cond_broadcast(&l->done);
    pthread_mutex_unlock(&l->gate);
    pthread_join(l->thread, NULL);
    l->has_thread = false;
}
