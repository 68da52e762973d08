/*
 * local.c - asking and changing.
 *
 * A change, as bytes in a frame of the journal, one behind the other:
 *
 *     0   1   kind: 1 mark, 2 forget items, 3 forget the user
 *     1   1   0
 *     2   2   length of the user's name
 *     4   4   n, number of hashes
 *     8   8   time
 *     16  ..  name
 *     ..  8n  hashes
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/bytes.h"
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHANGE            16                /* bytes before the name */
#define SEEN_FRAME_HASHES 65536             /* of one change */
#define FRAME_FULL        ((size_t)1 << 20) /* bytes; then a frame is written */
#define FRAME_MAX         ((size_t)8 << 20) /* also in the middle of a request */
#define QUEUED_MAX        16384             /* words; then it is settled */
#define ATTEMPTS          100 /* to see backend and tail together */

/* ---- Asking ------------------------------------------------------------- */

static void leave(struct seen_local *l, struct seen_worker *w)
{
    if (l->one_snapshot) l->ops->sleep(w->snapshot);
    seen_worker_return(l, w);
    seen_sight_looked(l);
}

/* NULL and SEEN_OK: what is there does not go with the choice that was made. */
static struct seen_worker *look_once(struct seen_local *l, uint64_t *choice,
                                     seen_status *status, seen_error *error)
{
    *status = seen_sight_look(l, error);
    if (*status != SEEN_OK) return NULL;
    *choice = l->choices;
    struct seen_worker *w = NULL;
    if (!atomic_load(&l->blind)) w = seen_worker_take(l, status, error);
    if (!w) seen_sight_looked(l);
    if (!w || !l->one_snapshot) return w;
    *status = seen_worker_wake(l, w);
    if (*status == SEEN_OK) l->ops->hold(w->snapshot);
    if (*status == SEEN_OK && l->ops->sees(w->snapshot) == l->tail_at) return w;
    leave(l, w);
    return NULL;
}

/* A worker, while what a reader sees stays as it is. */
static struct seen_worker *come_to_look(struct seen_local *l,
                                        seen_status *status, seen_error *error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t choice;
        struct seen_worker *w = look_once(l, &choice, status, error);
        if (w || *status != SEEN_OK) return w;
        *status = seen_sight_again(l, choice, error);
        if (*status != SEEN_OK) return NULL;
    }
    *status = seen_fail(error, SEEN_BUSY, NULL,
                        "checkpoints come too fast: try again");
    return NULL;
}

static void stop_looking(struct seen_local *l, struct seen_worker *w)
{
    seen_worker_sleep(l, w);
    leave(l, w);
}

/* The same, with the record of a user, until stop_looking(). */
static struct seen_worker *look_up(struct seen_local *l, seen_key user,
                                   seen_record *record, seen_status *status,
                                   seen_error *error)
{
    struct seen_worker *w = come_to_look(l, status, error);
    if (!w) return NULL;
    *status = seen_local_find(l, w, user, record);
    if (*status == SEEN_OK) return w;
    stop_looking(l, w);
    return NULL;
}

static seen_status ask(struct seen_users *u, seen_key user, uint64_t now_ms,
                       seen_keys items, bool repeats, bool *seen,
                       seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    seen_record record;
    uint64_t *h;
    struct seen_worker *w = look_up(l, user, &record, &status, error);
    if (!w) return status;
    status = seen_exposure_hash(w->x, items, &h);
    if (status == SEEN_OK)
        status =
            seen_exposure_seen(w->x, record, now_ms, h, items.n, repeats, seen);
    stop_looking(l, w);
    return status;
}

static seen_status info_of(struct seen_users *u, seen_key user, uint64_t now_ms,
                           seen_exposure_info *info, seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    seen_record record;
    struct seen_worker *w = look_up(l, user, &record, &status, error);
    if (!w) return status;
    status = seen_exposure_info_of(w->x, record, now_ms, info);
    stop_looking(l, w);
    if (status == SEEN_OK && info->generations == 0) status = SEEN_ABSENT;
    return status;
}

static seen_status copy_record(struct seen_users *u, seen_key user, void *buf,
                               size_t cap, size_t *len, seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    seen_record record;
    struct seen_worker *w = look_up(l, user, &record, &status, error);
    if (!w) return status;
    *len = record.len;
    if (record.len > cap)
        status = SEEN_SHORT;
    else if (record.len)
        memcpy(buf, record.data, record.len);
    else
        status = SEEN_ABSENT;
    stop_looking(l, w);
    return status;
}

/* ---- Changing ----------------------------------------------------------- */

static seen_status may_change(const struct seen_local *l, seen_error *error)
{
    return atomic_load(&l->failed) ? seen_local_failed(l, error) : SEEN_OK;
}

enum what {
    MARK,
    TAKE,
    FORGET,
    FORGET_USER
};

struct job {
    seen_users_request *r;
    uint64_t hash;
    size_t answers; /* where its answers begin */
    size_t taken;   /* how many of them, at most, a take hands over */
};

/* One call: requests of a kind, at a time. */
struct call {
    struct seen_local *l;
    struct seen_worker *w;
    enum what what;
    uint64_t now_ms;
    uint64_t sequence; /* of the last frame, 0: none */
    bool known;        /* FORGET_USER: there was something */
};

static bool asks(const struct call *e, const struct job *j)
{
    return e->what == TAKE || e->what == FORGET_USER ||
           (e->what == MARK && j->r->fresh);
}

/* Which items count: all of them, or those that a take leaves at the front. */
static seen_status choose(struct call *e, struct seen_shard *shard,
                          struct seen_user *u, struct job *j, uint64_t *h,
                          size_t *n)
{
    seen_users_request *r = j->r;
    bool *seen = (bool *)e->w->answers.at + j->answers;
    seen_status status = seen_local_settle(e->l, e->w, shard, u, false);
    if (e->what == FORGET_USER) {
        bool damaged = seen_local_damaged(status); /* that is what helps then */
        e->known = damaged || u->record_len > 0;
        return damaged ? SEEN_OK : status;
    }
    if (status == SEEN_OK)
        status = seen_exposure_seen(e->w->x, seen_user_record(u), e->now_ms, h,
                                    r->items.n, true, seen);
    if (status == SEEN_OK && e->what == TAKE)
        *n = j->taken = seen_first_fresh(h, r->items.n, seen, r->count);
    return status;
}

/* A request as changes in the frame. One with more hashes than a frame can have
 * goes into several. */
static seen_status put_changes(struct call *e, struct seen_shard *shard,
                               struct seen_user *u, const uint64_t *h, size_t n)
{
    static const enum seen_change_kind kinds[] = {
        [MARK] = SEEN_CHANGE_MARK,
        [TAKE] = SEEN_CHANGE_MARK,
        [FORGET] = SEEN_CHANGE_FORGET,
        [FORGET_USER] = SEEN_CHANGE_FORGET_USER,
    };
    seen_status status = SEEN_OK;
    if (n == 0 && e->what != FORGET_USER) return SEEN_OK;
    do {
        size_t piece = n < SEEN_FRAME_HASHES ? n : SEEN_FRAME_HASHES;
        if (e->w->frame_len > FRAME_MAX)
            status = seen_frame_write(e->l, e->w, shard, &e->sequence);
        if (status == SEEN_OK &&
            !seen_frame_put(e->w, kinds[e->what], u, e->now_ms, h, piece))
            status = SEEN_NOMEM;
        h += piece;
        n -= piece;
    } while (status == SEEN_OK && n > 0);
    return status;
}

/* One request, with the lock of its shard. */
static seen_status do_job(struct call *e, struct seen_shard *shard,
                          struct job *j)
{
    struct seen_worker *w = e->w;
    size_t n = j->r->items.n, frame_len = w->frame_len,
           n_touched = w->n_touched;
    uint64_t *h;
    seen_status status = seen_exposure_hash(w->x, j->r->items, &h);
    if (status != SEEN_OK) return status;
    struct seen_user *u = seen_table_need(&shard->active, j->hash, j->r->user);
    if (!u) return SEEN_NOMEM;
    if (asks(e, j)) status = choose(e, shard, u, j, h, &n);
    if (status == SEEN_OK) status = put_changes(e, shard, u, h, n);
    if (status != SEEN_OK && w->n_touched > n_touched) {
        w->frame_len = frame_len;
        w->n_touched = n_touched;
    }
    if (status == SEEN_OK && asks(e, j))
        status = seen_frame_write(e->l, w, shard, &e->sequence);
    /* Not to be refused for what an older record is like. */
    if (status == SEEN_OK && w->n_touched == 0 && u->queued_len > QUEUED_MAX)
        (void)seen_local_settle(e->l, w, shard, u, false);
    return status;
}

/* Jobs that were good so far went into a frame that was not written. */
static void fail_pending(struct job *jobs, size_t n, seen_status status)
{
    for (size_t i = 0; status != SEEN_OK && i < n; i++)
        if (jobs[i].r->status == SEEN_OK) jobs[i].r->status = status;
}

/*
 * Jobs of one shard. Requests that ask see those before them, so each of these
 * has a frame of its own; marks that do not ask share one, jobs[first .. i - 1].
 * A frame that cannot be written takes all of these down, and none before them.
 * A job that fails by itself takes nobody down, its changes leave the frame again;
 * unless it had to write the frame in the middle and that failed: it is empty then.
 */
static void do_shard(struct call *e, struct job *jobs, size_t n)
{
    struct seen_shard *shard = seen_shard_of(e->l, jobs[0].hash);
    size_t first = 0; /* job of the frame that is being put together */
    pthread_mutex_lock(&shard->lock);
    uint64_t before = shard->active.bytes;
    for (size_t i = 0; i < n; i++) {
        if (asks(e, &jobs[i]) || e->w->frame_len > FRAME_FULL) {
            fail_pending(jobs + first, i - first,
                         seen_frame_write(e->l, e->w, shard, &e->sequence));
            assert(e->w->n_touched == 0 && e->w->frame_len == 0);
            first = i;
        }
        seen_status status = may_change(e->l, e->w->error);
        if (status == SEEN_OK) status = do_job(e, shard, &jobs[i]);
        jobs[i].r->status = status;
        if (status != SEEN_OK && e->w->n_touched == 0)
            fail_pending(jobs + first, i - first, status);
        if (asks(e, &jobs[i])) first = i + 1; /* written, or given up */
    }
    fail_pending(jobs + first, n - first,
                 seen_frame_write(e->l, e->w, shard, &e->sequence));
    seen_local_count(e->l, shard, before);
    pthread_mutex_unlock(&shard->lock);
}

/* Jobs by shard, those of one shard in their order. */
static seen_status line_up(struct call *e, seen_users_request *r, size_t n)
{
    struct seen_worker *w = e->w;
    size_t start[SEEN_SHARDS + 1] = {0}, answers = 0;
    if (!seen_room_need(&w->jobs, 2 * n * sizeof(struct job)))
        return SEEN_NOMEM;
    struct job *jobs = w->jobs.at, *unsorted = jobs + n;
    for (size_t i = 0; i < n; i++) {
        struct job *j = &unsorted[i];
        *j = (struct job){.r = &r[i], .answers = answers};
        j->hash = seen_user_hash(e->l, r[i].user);
        if (asks(e, j)) answers += r[i].items.n;
        start[seen_shard_of(e->l, j->hash) - e->l->shards + 1]++;
    }
    /* One more: there is something to point to when there is none. */
    if (!seen_room_need(&w->answers, (answers + 1) * sizeof(bool)))
        return SEEN_NOMEM;
    for (size_t i = 0; i < SEEN_SHARDS; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < n; i++) {
        size_t shard =
            (size_t)(seen_shard_of(e->l, unsorted[i].hash) - e->l->shards);
        jobs[start[shard]++] = unsorted[i];
    }
    return SEEN_OK;
}

/* What the caller gets to see, when everything is on disk. */
static void hand_over(const struct call *e, const struct job *j)
{
    seen_users_request *r = j->r;
    const bool *seen = (const bool *)e->w->answers.at + j->answers;
    for (size_t i = 0; e->what == MARK && r->fresh && i < r->items.n; i++)
        r->fresh[i] = !seen[i];
    if (e->what == TAKE)
        r->n_taken = seen_fresh_indices(seen, r->items.n, j->taken, r->taken);
}

static seen_status do_all(struct call *e, seen_users_request *r, size_t n)
{
    struct seen_local *l = e->l;
    seen_status status = line_up(e, r, n);
    for (size_t i = 0; i < n; i++) {
        r[i].status = status;
        r[i].n_taken = 0;
    }
    if (status != SEEN_OK) return status;
    struct job *jobs = e->w->jobs.at;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && seen_shard_of(l, jobs[end].hash) ==
                                         seen_shard_of(l, jobs[i].hash);)
            end++;
        do_shard(e, jobs + i, end - i);
    }
    if (e->sequence && l->options.mode == SEEN_DURABLE) {
        status = seen_journal_commit(l->journal, e->sequence);
        if (status != SEEN_OK)
            seen_local_fail(l, status, "sync the journal", "", e->w->error);
    }
    fail_pending(jobs, n, status);
    for (size_t i = 0; i < n; i++)
        if (jobs[i].r->status == SEEN_OK) hand_over(e, &jobs[i]);
    for (size_t i = 0; i < n && status == SEEN_OK; i++)
        status = r[i].status;
    return status;
}

static seen_status run(struct call *e, seen_users_request *r, size_t n,
                       seen_error *error)
{
    seen_status status = may_change(e->l, error);
    if (status == SEEN_OK) seen_checkpoint_wait(e->l);
    if (status == SEEN_OK) e->w = seen_worker_take(e->l, &status, error);
    if (status == SEEN_OK) {
        status = do_all(e, r, n);
        int before = errno;
        seen_worker_return(e->l, e->w);
        seen_checkpoint_ask(e->l);
        if (atomic_load(&e->l->stuck))
            seen_warn(error, NULL,
                      "checkpoint: no room on the disk for it; changes go on "
                      "in the old journal: make room");
        errno = before;
    } else {
        for (size_t i = 0; i < n; i++)
            r[i].status = status;
    }
    return status;
}

static seen_status change(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now_ms, seen_users_request *r, size_t n,
                          seen_error *error)
{
    struct call e = {.l = (struct seen_local *)u,
                     .what = kind == SEEN_USERS_MARK ? MARK : TAKE,
                     .now_ms = now_ms};
    return run(&e, r, n, error);
}

static seen_status forget(struct seen_users *u, seen_key user, uint64_t now_ms,
                          seen_keys items, seen_error *error)
{
    struct call e = {
        .l = (struct seen_local *)u, .what = FORGET, .now_ms = now_ms};
    seen_users_request r = {.user = user, .items = items};
    return run(&e, &r, 1, error);
}

static seen_status forget_user(struct seen_users *u, seen_key user,
                               uint64_t now_ms, bool *known, seen_error *error)
{
    struct call e = {
        .l = (struct seen_local *)u, .what = FORGET_USER, .now_ms = now_ms};
    seen_users_request r = {.user = user};
    seen_status status = run(&e, &r, 1, error);
    *known = e.known;
    return status;
}

/* ---- The whole store ---------------------------------------------------- */

struct walk {
    struct seen_local *l;
    struct seen_worker *w;
    uint64_t now_ms;
    bool (*each)(void *ctx, const seen_users_entry *entry);
    void *ctx;
    bool stopped;
};

/* A damaged record is NULL. */
static void show(struct walk *k, seen_key user, seen_record record)
{
    seen_exposure_info info = {.size = sizeof info};
    seen_users_entry e = {.user = user, .record = record};
    e.status = record.data
                   ? seen_exposure_info_of(k->w->x, record, k->now_ms, &info)
                   : SEEN_CORRUPT;
    seen_users_entry_fill(&e, &info);
    k->stopped = !k->each(k->ctx, &e);
}

static seen_status walk_tables(struct walk *k)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < SEEN_SHARDS && status == SEEN_OK; i++) {
        struct seen_shard *shard = &k->l->shards[i];
        pthread_mutex_lock(&shard->lock);
        uint64_t before = shard->active.bytes;
        for (size_t at = 0; at < shard->active.places; at++) {
            struct seen_user *u = shard->active.at[at];
            if (!u || k->stopped) continue;
            status = seen_local_settle(k->l, k->w, shard, u, false);
            if (seen_local_damaged(status)) { /* that user's trouble alone */
                show(k, seen_user_name(u), (seen_record){0});
                status = SEEN_OK;
                continue;
            }
            if (status != SEEN_OK) break;
            if (u->record_len) show(k, seen_user_name(u), seen_user_record(u));
        }
        seen_local_count(k->l, shard, before);
        pthread_mutex_unlock(&shard->lock);
    }
    return status;
}

/* What rests in the backend and nothing newer is known of. */
static bool walk_one(void *ctx, seen_key user, seen_record record)
{
    struct walk *k = ctx;
    uint64_t hash = seen_user_hash(k->l, user);
    if (!k->l->one_snapshot ||
        !seen_table_find(&seen_shard_of(k->l, hash)->active, hash, user))
        show(k, user, record);
    return !k->stopped;
}

/* A writer makes a checkpoint, and everything is in the backend. */
static seen_status each(struct seen_users *u, uint64_t now_ms,
                        bool (*each_one)(void *ctx,
                                         const seen_users_entry *entry),
                        void *ctx, seen_error *error)
{
    struct walk k = {.l = (struct seen_local *)u,
                     .now_ms = now_ms,
                     .each = each_one,
                     .ctx = ctx};
    seen_status status = SEEN_OK;
    if (u->writable && k.l->backend) status = seen_checkpoint_sync(u, error);
    if (status == SEEN_OK) k.w = come_to_look(k.l, &status, error);
    if (status != SEEN_OK) return status;
    status = seen_worker_wake(k.l, k.w);
    if (status == SEEN_OK && k.l->backend)
        status = k.l->ops->each(k.w->snapshot, NULL, walk_one, &k);
    seen_worker_sleep(k.l, k.w);
    if (status == SEEN_OK && (!k.l->backend || k.l->one_snapshot))
        status = walk_tables(&k);
    leave(k.l, k.w);
    return status;
}

static seen_status stats(struct seen_users *u, seen_users_stats *out,
                         seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status = seen_sight_look(l, error);
    if (status != SEEN_OK) return status;
    pthread_mutex_lock(&l->telling);
    *out = l->stats;
    out->policy = l->meta.policy;
    if (!u->writable) out->clock_ahead = l->meta.clock.ahead;
    pthread_mutex_unlock(&l->telling);
    out->changed = 0;
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        pthread_mutex_lock(&l->shards[i].lock);
        out->changed += l->shards[i].active.count + l->shards[i].frozen.count;
        out->memory += l->shards[i].active.bytes + l->shards[i].frozen.bytes;
        pthread_mutex_unlock(&l->shards[i].lock);
    }
    pthread_mutex_lock(&l->log);
    out->journal_bytes = l->journaled;
    pthread_mutex_unlock(&l->log);
    pthread_mutex_lock(&l->pool);
    out->evicted = l->evicted;
    pthread_mutex_unlock(&l->pool);
    out->users = out->changed;
    if (l->backend) l->ops->sizes(l->backend, &out->users, &out->file_bytes);
    seen_sight_looked(l);
    return SEEN_OK;
}

const struct seen_users_ops seen_local_ops = {
    .close = seen_recover_close,
    .abandon = seen_recover_abandon,
    .ask = ask,
    .change = change,
    .forget = forget,
    .forget_user = forget_user,
    .info_of = info_of,
    .record = copy_record,
    .each = each,
    .sync = seen_checkpoint_sync,
    .sweep = seen_checkpoint_sweep,
    .backup = seen_backup_make,
    .stats = stats,
};
