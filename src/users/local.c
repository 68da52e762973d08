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

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHANGE      16                /* bytes before the name */
#define MOST_HASHES 65536             /* of one change */
#define FRAME_FULL  ((size_t)1 << 20) /* bytes; then a frame is written */
#define FRAME_MOST  ((size_t)8 << 20) /* also in the middle of a request */
#define OWED_MOST   16384             /* words; then it is settled */
#define ATTEMPTS    100               /* to see shelf and tail together */

/* ---- Memory ------------------------------------------------------------- */

/* Room for so many bytes; those that are there stay. */
static bool need(struct seen_room *r, size_t size)
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
    if (l->shelf) l->ops->view_free(w->view);
    free(w->record.at);
    free(w->owed.at);
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
    if (status == SEEN_OK && l->shelf)
        status = l->ops->view_new(l->shelf, &w->view);
    if (status != SEEN_OK)
        free_worker(l, w);
    else
        *out = w;
    return status;
}

struct seen_worker *seen_worker_take(struct seen_local *l, seen_status *status)
{
    if (l->one_view) pthread_mutex_lock(&l->alone);
    pthread_mutex_lock(&l->pool);
    struct seen_worker *w = l->idle;
    if (w) l->idle = w->next;
    pthread_mutex_unlock(&l->pool);
    *status = w ? SEEN_OK : new_worker(l, &w);
    if (!w && l->one_view) pthread_mutex_unlock(&l->alone);
    return w;
}

void seen_worker_return(struct seen_local *l, struct seen_worker *w)
{
    uint64_t evicted = seen_exposure_evicted(w->x);
    pthread_mutex_lock(&l->pool);
    l->evicted += evicted - w->evicted;
    w->evicted = evicted;
    w->next = l->idle;
    l->idle = w;
    pthread_mutex_unlock(&l->pool);
    if (l->one_view) pthread_mutex_unlock(&l->alone);
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
                            const char *what, const char *why)
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
    errno = before;
    return status;
}

static const char *problem(const struct seen_users *u)
{
    const struct seen_local *l = (const struct seen_local *)u;
    if (atomic_load(&l->failed)) return l->problem; /* written once */
    if (atomic_load(&l->blind))
        return "its writer died, and its journal cannot be read";
    return atomic_load(&l->stuck) ? "checkpoint: no room on the disk for it; "
                                    "changes go on in the old journal"
                                  : "";
}

static seen_status may_change(struct seen_local *l)
{
    if (!atomic_load(&l->failed)) return SEEN_OK;
    errno = l->problem_errno;
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

static void count_bytes(struct seen_local *l, struct seen_shard *shard,
                        uint64_t before)
{
    atomic_fetch_add(&l->bytes, shard->active.bytes - before);
}

static seen_status wake(struct seen_local *l, struct seen_worker *w)
{
    return l->shelf ? l->ops->wake(w->view) : SEEN_OK;
}

static void doze(struct seen_local *l, struct seen_worker *w)
{
    if (l->shelf && !l->one_view) l->ops->sleep(w->view);
}

/* What rests on the shelf; nothing if nothing does. The view is awake. */
static seen_status from_shelf(struct seen_local *l, struct seen_worker *w,
                              seen_key user, seen_record *record)
{
    *record = (seen_record){0};
    seen_status status =
        l->shelf ? l->ops->get(w->view, user, record) : SEEN_ABSENT;
    return status == SEEN_ABSENT ? SEEN_OK : status;
}

static seen_key name_of(const struct seen_user *u)
{
    return (seen_key){u->name, u->name_len};
}

static seen_record record_of(const struct seen_user *u)
{
    return (seen_record){u->record, u->record_len};
}

/* What a user owes, paid from what lies on the shelf if need be; the view is
 * awake. */
static seen_status pay(struct seen_local *l, struct seen_worker *w,
                       const struct seen_user *u, seen_record *record)
{
    seen_status status = SEEN_OK;
    seen_record base = record_of(u);
    if (!u->known) status = from_shelf(l, w, name_of(u), &base);
    if (status != SEEN_OK) return status;
    return seen_table_pay(u->owed, u->owed_len, w->x, base, record);
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
    if (u->known && !u->owed_len) return SEEN_OK;
    seen_status status = wake(l, w);
    if (status != SEEN_OK) return status;
    if (!u->known && l->ops->sees(w->view) >= atomic_load(&l->writing))
        status = from_shelf(l, w, name_of(u), &record); /* it has been paid */
    else
        status = pay(l, w, u, &record);
    if (status == SEEN_OK && !seen_table_settle(&shard->frozen, u, record))
        status = SEEN_NOMEM;
    doze(l, w);
    return status;
}

static seen_status settle_active(struct seen_local *l, struct seen_worker *w,
                                 struct seen_shard *shard, struct seen_user *u)
{
    seen_record record;
    struct seen_user *older = NULL;
    if (u->known && !u->owed_len) return SEEN_OK;
    if (!u->known) older = seen_table_find(&shard->frozen, u->hash, name_of(u));
    seen_status status = older ? settle_frozen(l, w, shard, older) : wake(l, w);
    if (status == SEEN_OK)
        status = older ? seen_table_pay(u->owed, u->owed_len, w->x,
                                        record_of(older), &record)
                       : pay(l, w, u, &record);
    if (status == SEEN_OK && !seen_table_settle(&shard->active, u, record))
        status = SEEN_NOMEM;
    doze(l, w);
    return status;
}

seen_status seen_local_preview(struct seen_local *l, struct seen_worker *w,
                               struct seen_user *u, bool *changed,
                               seen_record *record)
{
    struct seen_shard *shard = seen_shard_of(l, u->hash);
    pthread_mutex_lock(&shard->lock);
    const bool known = u->known;
    const uint32_t n = u->owed_len, len = u->record_len;
    bool room = need(&w->owed, n * sizeof *u->owed) && need(&w->record, len);
    if (room && n) memcpy(w->owed.at, u->owed, n * sizeof *u->owed);
    if (room && len) memcpy(w->record.at, u->record, len);
    pthread_mutex_unlock(&shard->lock);
    if (!room) return SEEN_NOMEM;
    *changed = known || n; /* or just looked for */
    *record = (seen_record){w->record.at, len};
    if (known) return seen_table_pay(w->owed.at, n, w->x, *record, record);
    seen_status status = wake(l, w);
    if (status == SEEN_OK) status = from_shelf(l, w, name_of(u), record);
    if (status == SEEN_OK)
        status = seen_table_pay(w->owed.at, n, w->x, *record, record);
    doze(l, w);
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
 * The record of a user, in w->record or on the shelf, the view being awake until
 * doze(). The view wakes while the shard is locked: should the checkpoint drop
 * the frozen table right after, it sees what that held.
 */
static seen_status find_record(struct seen_local *l, struct seen_worker *w,
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
        if (status == SEEN_OK && !need(&w->record, u->record_len))
            status = SEEN_NOMEM;
        if (status == SEEN_OK) {
            if (u->record_len) memcpy(w->record.at, u->record, u->record_len);
            *record = (seen_record){w->record.at, u->record_len};
        }
    } else {
        status = wake(l, w);
    }
    count_bytes(l, shard, before);
    pthread_mutex_unlock(&shard->lock);
    if (!u && status == SEEN_OK) status = from_shelf(l, w, user, record);
    return status;
}

/* ---- Asking ------------------------------------------------------------- */

static void leave(struct seen_local *l, struct seen_worker *w)
{
    if (l->one_view) l->ops->sleep(w->view);
    seen_worker_return(l, w);
    seen_recover_looked(l);
}

/* NULL and SEEN_OK: what is there does not go with the choice that was made. */
static struct seen_worker *look_once(struct seen_local *l, uint64_t *choice,
                                     seen_status *status)
{
    *status = seen_recover_look(l);
    if (*status != SEEN_OK) return NULL;
    *choice = l->choices;
    struct seen_worker *w = NULL;
    if (!atomic_load(&l->blind)) w = seen_worker_take(l, status);
    if (!w) seen_recover_looked(l);
    if (!w || !l->one_view) return w;
    *status = wake(l, w);
    if (*status == SEEN_OK) l->ops->hold(w->view);
    if (*status == SEEN_OK && l->ops->sees(w->view) == l->tail_at) return w;
    leave(l, w);
    return NULL;
}

/* A worker, while what a reader sees stays as it is. */
static struct seen_worker *come_to_look(struct seen_local *l,
                                        seen_status *status)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t choice;
        struct seen_worker *w = look_once(l, &choice, status);
        if (w || *status != SEEN_OK) return w;
        *status = seen_recover_again(l, choice);
        if (*status != SEEN_OK) return NULL;
    }
    *status = SEEN_BUSY; /* checkpoints come too fast */
    return NULL;
}

static seen_status ask(struct seen_users *u, seen_key user, uint64_t now,
                       const seen_key *items, size_t n, bool repeats,
                       bool *seen)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    struct seen_worker *w = come_to_look(l, &status);
    if (!w) return status;
    seen_record record;
    uint64_t *h;
    status = seen_exposure_hash(w->x, items, n, &h);
    if (status == SEEN_OK) status = find_record(l, w, user, &record);
    if (status == SEEN_OK)
        status = seen_exposure_seen(w->x, record, now, h, n, repeats, seen);
    doze(l, w);
    leave(l, w);
    return status;
}

static seen_status info_of(struct seen_users *u, seen_key user, uint64_t now,
                           seen_exposure_info *info)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    struct seen_worker *w = come_to_look(l, &status);
    if (!w) return status;
    seen_record record;
    status = find_record(l, w, user, &record);
    if (status == SEEN_OK)
        status = seen_exposure_info_of(w->x, record, now, info);
    doze(l, w);
    leave(l, w);
    if (status == SEEN_OK && info->generations == 0) status = SEEN_ABSENT;
    return status;
}

static seen_status copy_record(struct seen_users *u, seen_key user, void *buf,
                               size_t cap, size_t *len)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status;
    struct seen_worker *w = come_to_look(l, &status);
    if (!w) return status;
    seen_record record;
    status = find_record(l, w, user, &record);
    if (status == SEEN_OK) {
        *len = record.len;
        if (record.len > cap)
            status = SEEN_SHORT;
        else if (record.len)
            memcpy(buf, record.data, record.len);
        else
            status = SEEN_ABSENT;
    }
    doze(l, w);
    leave(l, w);
    return status;
}

/* ---- Frames ------------------------------------------------------------- */

static size_t change_size(size_t name_len, size_t n)
{
    return CHANGE + name_len + 8 * n;
}

static bool put_change(struct seen_worker *w, enum seen_change_kind kind,
                       struct seen_user *u, uint64_t now, const uint64_t *h,
                       size_t n)
{
    size_t size = change_size(u->name_len, n);
    if (!need(&w->frame, w->frame_len + size) ||
        !need(&w->touched, (w->n_touched + 1) * sizeof u))
        return false;
    uint8_t *p = (uint8_t *)w->frame.at + w->frame_len;
    p[0] = (uint8_t)kind;
    p[1] = 0;
    seen_put_le16(p + 2, u->name_len);
    seen_put_le32(p + 4, (uint32_t)n);
    seen_put_le64(p + 8, now);
    memcpy(p + CHANGE, u->name, u->name_len);
    for (size_t i = 0; i < n; i++)
        seen_put_le64(p + CHANGE + u->name_len + 8 * i, h[i]);
    w->frame_len += size;
    ((struct seen_user **)w->touched.at)[w->n_touched++] = u;
    return true;
}

/* A change that is whole at the start of these bytes? */
static bool get_change(const uint8_t *p, size_t len, seen_key *user, size_t *n)
{
    if (len < CHANGE || p[1] != 0) return false;
    if (p[0] < SEEN_CHANGE_MARK || p[0] > SEEN_CHANGE_FORGET_USER) return false;
    *user = (seen_key){p + CHANGE, seen_get_le16(p + 2)};
    *n = seen_get_le32(p + 4);
    return user->len > 0 && user->len <= SEEN_USER_MAX && *n <= MOST_HASHES &&
           change_size(user->len, *n) <= len;
}

/* Room was reserved: cannot fail. */
static void apply(struct seen_table *t, struct seen_user *u, const uint8_t *p)
{
    size_t n = seen_get_le32(p + 4);
    if (p[0] == SEEN_CHANGE_FORGET_USER)
        seen_table_settle(t, u, (seen_record){0});
    else
        seen_table_owe(t, u, p[0], seen_get_le64(p + 8),
                       p + CHANGE + u->name_len, n);
}

seen_status seen_local_redo(struct seen_local *l, const uint8_t *bytes,
                            size_t len, size_t *used, uint64_t *items)
{
    seen_key user;
    size_t n;
    if (!get_change(bytes, len, &user, &n)) return SEEN_CORRUPT;
    uint64_t hash = seen_user_hash(l, user);
    struct seen_shard *shard = seen_shard_of(l, hash);
    uint64_t before = shard->active.bytes;
    struct seen_user *u = seen_table_need(&shard->active, hash, user);
    if (!u || !seen_table_reserve(&shard->active, u, n)) return SEEN_NOMEM;
    apply(&shard->active, u, bytes);
    u->reserved = 0;
    count_bytes(l, shard, before);
    *used = change_size(user.len, n);
    *items += n;
    return SEEN_OK;
}

static size_t hashes_in(const uint8_t *change)
{
    return seen_get_le32(change + 4);
}

/* Room in the table for all changes of the frame. */
static bool reserve_frame(struct seen_worker *w, struct seen_table *t)
{
    const uint8_t *p = w->frame.at;
    struct seen_user **touched = w->touched.at;
    for (size_t i = 0; i < w->n_touched; i++) {
        if (!seen_table_reserve(t, touched[i], hashes_in(p))) return false;
        p += change_size(touched[i]->name_len, hashes_in(p));
    }
    return true;
}

static seen_status journal_frame(struct seen_local *l, struct seen_worker *w,
                                 uint64_t *sequence)
{
    if (!l->journal) return SEEN_OK;
    pthread_mutex_lock(&l->log);
    seen_status status = seen_journal_append(
        l->journal, SEEN_FRAME_CHANGES, w->frame.at, w->frame_len, sequence);
    if (status == SEEN_OK) l->journaled += w->frame_len;
    pthread_mutex_unlock(&l->log);
    return status;
}

/* The frame that was put together: into the journal, then into the table. Empty
 * afterwards, whatever the status. */
static seen_status write_frame(struct seen_local *l, struct seen_worker *w,
                               struct seen_shard *shard, uint64_t *sequence)
{
    if (w->n_touched == 0) return SEEN_OK;
    seen_status status =
        reserve_frame(w, &shard->active) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = journal_frame(l, w, sequence);
    const uint8_t *p = w->frame.at;
    struct seen_user **touched = w->touched.at;
    for (size_t i = 0; status == SEEN_OK && i < w->n_touched; i++) {
        apply(&shard->active, touched[i], p);
        p += change_size(touched[i]->name_len, hashes_in(p));
    }
    for (size_t i = 0; i < w->n_touched; i++)
        touched[i]->reserved = 0;
    w->frame_len = w->n_touched = 0;
    return status;
}

/* ---- Changing ----------------------------------------------------------- */

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
};

/* One call: requests of a kind, at a time. */
struct errand {
    struct seen_local *l;
    struct seen_worker *w;
    enum what what;
    uint64_t now;
    uint64_t sequence; /* of the last frame, 0: none */
};

static bool asks(const struct errand *e, const struct job *j)
{
    return e->what == TAKE || e->what == FORGET_USER ||
           (e->what == MARK && j->r->fresh);
}

/* Which items count: all of them, or those that a take leaves at the front. */
static seen_status choose(struct errand *e, struct seen_shard *shard,
                          struct seen_user *u, struct job *j, uint64_t *h,
                          size_t *n)
{
    seen_users_request *r = j->r;
    bool *seen = (bool *)e->w->answers.at + j->answers;
    seen_status status = settle_active(e->l, e->w, shard, u);
    if (e->what == FORGET_USER) {
        bool damaged = seen_local_damaged(status); /* that is what helps then */
        r->taken = damaged || u->record_len > 0;
        return damaged ? SEEN_OK : status;
    }
    if (status == SEEN_OK)
        status = seen_exposure_seen(e->w->x, record_of(u), e->now, h, r->n,
                                    true, seen);
    if (status == SEEN_OK && e->what == TAKE)
        *n = r->taken = seen_first_fresh(h, r->n, seen, r->count);
    return status;
}

/* A request as changes in the frame. One with more hashes than a frame can have
 * goes into several. */
static seen_status put_changes(struct errand *e, struct seen_shard *shard,
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
        size_t piece = n < MOST_HASHES ? n : MOST_HASHES;
        if (e->w->frame_len > FRAME_MOST)
            status = write_frame(e->l, e->w, shard, &e->sequence);
        if (status == SEEN_OK &&
            !put_change(e->w, kinds[e->what], u, e->now, h, piece))
            status = SEEN_NOMEM;
        h += piece;
        n -= piece;
    } while (status == SEEN_OK && n > 0);
    return status;
}

/* One request, with the lock of its shard. */
static seen_status do_job(struct errand *e, struct seen_shard *shard,
                          struct job *j)
{
    struct seen_worker *w = e->w;
    size_t n = j->r->n, frame_len = w->frame_len, n_touched = w->n_touched;
    uint64_t *h;
    seen_status status = seen_exposure_hash(w->x, j->r->items, n, &h);
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
        status = write_frame(e->l, w, shard, &e->sequence);
    /* Not to be refused for what an older record is like. */
    if (status == SEEN_OK && w->n_touched == 0 && u->owed_len > OWED_MOST)
        (void)settle_active(e->l, w, shard, u);
    return status;
}

/* Jobs that were good so far went into a frame that was not written. */
static void spoil(struct job *jobs, size_t n, seen_status status)
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
static void do_shard(struct errand *e, struct job *jobs, size_t n)
{
    struct seen_shard *shard = seen_shard_of(e->l, jobs[0].hash);
    size_t first = 0; /* job of the frame that is being put together */
    pthread_mutex_lock(&shard->lock);
    uint64_t before = shard->active.bytes;
    for (size_t i = 0; i < n; i++) {
        if (asks(e, &jobs[i]) || e->w->frame_len > FRAME_FULL) {
            spoil(jobs + first, i - first,
                  write_frame(e->l, e->w, shard, &e->sequence));
            assert(e->w->n_touched == 0 && e->w->frame_len == 0);
            first = i;
        }
        seen_status status = may_change(e->l);
        if (status == SEEN_OK) status = do_job(e, shard, &jobs[i]);
        jobs[i].r->status = status;
        if (status != SEEN_OK && e->w->n_touched == 0)
            spoil(jobs + first, i - first, status);
        if (asks(e, &jobs[i])) first = i + 1; /* written, or given up */
    }
    spoil(jobs + first, n - first,
          write_frame(e->l, e->w, shard, &e->sequence));
    count_bytes(e->l, shard, before);
    pthread_mutex_unlock(&shard->lock);
}

/* Jobs by shard, those of one shard in their order. */
static seen_status line_up(struct errand *e, seen_users_request *r, size_t n)
{
    struct seen_worker *w = e->w;
    size_t start[SEEN_SHARDS + 1] = {0}, answers = 0;
    if (!need(&w->jobs, 2 * n * sizeof(struct job))) return SEEN_NOMEM;
    struct job *jobs = w->jobs.at, *unsorted = jobs + n;
    for (size_t i = 0; i < n; i++) {
        struct job *j = &unsorted[i];
        *j = (struct job){.r = &r[i], .answers = answers};
        j->hash = seen_user_hash(e->l, r[i].user);
        if (asks(e, j)) answers += r[i].n;
        start[seen_shard_of(e->l, j->hash) - e->l->shards + 1]++;
    }
    /* One more: there is something to point to when there is none. */
    if (!need(&w->answers, (answers + 1) * sizeof(bool))) return SEEN_NOMEM;
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
static void hand_over(const struct errand *e, const struct job *j)
{
    seen_users_request *r = j->r;
    const bool *seen = (const bool *)e->w->answers.at + j->answers;
    size_t kept = 0;
    for (size_t i = 0; e->what == MARK && r->fresh && i < r->n; i++)
        r->fresh[i] = !seen[i];
    for (size_t i = 0; e->what == TAKE && i < r->n && kept < r->taken; i++)
        if (!seen[i]) r->items[kept++] = r->items[i];
}

static seen_status do_all(struct errand *e, seen_users_request *r, size_t n)
{
    struct seen_local *l = e->l;
    seen_status status = line_up(e, r, n);
    for (size_t i = 0; i < n; i++)
        r[i].status = status;
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
            seen_local_fail(l, status, "sync the journal", "");
    }
    spoil(jobs, n, status);
    for (size_t i = 0; i < n; i++)
        if (jobs[i].r->status == SEEN_OK) hand_over(e, &jobs[i]);
    for (size_t i = 0; i < n && status == SEEN_OK; i++)
        status = r[i].status;
    return status;
}

static seen_status run(struct seen_users *u, enum what what, uint64_t now,
                       seen_users_request *r, size_t n)
{
    struct errand e = {.l = (struct seen_local *)u, .what = what, .now = now};
    seen_status status = may_change(e.l);
    if (status == SEEN_OK) seen_checkpoint_wait(e.l);
    if (status == SEEN_OK) e.w = seen_worker_take(e.l, &status);
    if (status == SEEN_OK) {
        status = do_all(&e, r, n);
        int before = errno;
        seen_worker_return(e.l, e.w);
        seen_checkpoint_ask(e.l);
        errno = before;
    } else {
        for (size_t i = 0; i < n; i++)
            r[i].status = status;
    }
    return status;
}

static seen_status change(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now, seen_users_request *r, size_t n)
{
    return run(u, kind == SEEN_USERS_MARK ? MARK : TAKE, now, r, n);
}

static seen_status forget(struct seen_users *u, seen_key user, uint64_t now,
                          const seen_key *items, size_t n)
{
    seen_users_request r = {
        .user = user, .items = (seen_key *)(uintptr_t)items, .n = n};
    return run(u, FORGET, now, &r, 1);
}

static seen_status forget_user(struct seen_users *u, seen_key user,
                               uint64_t now, bool *known)
{
    seen_users_request r = {.user = user};
    seen_status status = run(u, FORGET_USER, now, &r, 1);
    *known = r.taken > 0;
    return status;
}

/* ---- The whole store ---------------------------------------------------- */

struct walk {
    struct seen_local *l;
    struct seen_worker *w;
    uint64_t now;
    bool (*each)(void *ctx, const seen_users_entry *entry);
    void *ctx;
    bool stopped;
};

/* A damaged record is NULL. */
static void show(struct walk *k, seen_key user, seen_record record)
{
    seen_users_entry e = {
        .user = user, .record = record, .info.size = sizeof e.info};
    e.status = record.data
                   ? seen_exposure_info_of(k->w->x, record, k->now, &e.info)
                   : SEEN_CORRUPT;
    if (e.status == SEEN_OK && e.info.generations == 0) e.status = SEEN_ABSENT;
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
            status = settle_active(k->l, k->w, shard, u);
            if (seen_local_damaged(status)) { /* that user's trouble alone */
                show(k, name_of(u), (seen_record){0});
                status = SEEN_OK;
                continue;
            }
            if (status != SEEN_OK) break;
            if (u->record_len) show(k, name_of(u), record_of(u));
        }
        count_bytes(k->l, shard, before);
        pthread_mutex_unlock(&shard->lock);
    }
    return status;
}

/* What rests on the shelf and nothing newer is known of. */
static bool walk_one(void *ctx, seen_key user, seen_record record)
{
    struct walk *k = ctx;
    uint64_t hash = seen_user_hash(k->l, user);
    if (!k->l->one_view ||
        !seen_table_find(&seen_shard_of(k->l, hash)->active, hash, user))
        show(k, user, record);
    return !k->stopped;
}

/* A writer makes a checkpoint, and everything is on the shelf. */
static seen_status
each(struct seen_users *u, uint64_t now,
     bool (*each_one)(void *ctx, const seen_users_entry *entry), void *ctx)
{
    struct walk k = {
        .l = (struct seen_local *)u, .now = now, .each = each_one, .ctx = ctx};
    seen_status status = SEEN_OK;
    if (u->writable && k.l->shelf) status = seen_checkpoint_sync(u);
    if (status == SEEN_OK) k.w = come_to_look(k.l, &status);
    if (status != SEEN_OK) return status;
    status = wake(k.l, k.w);
    if (status == SEEN_OK && k.l->shelf)
        status = k.l->ops->each(k.w->view, NULL, walk_one, &k);
    doze(k.l, k.w);
    if (status == SEEN_OK && (!k.l->shelf || k.l->one_view))
        status = walk_tables(&k);
    leave(k.l, k.w);
    return status;
}

static seen_status stats(struct seen_users *u, seen_users_stats *out)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status = seen_recover_look(l);
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
    if (l->shelf) l->ops->sizes(l->shelf, &out->users, &out->file_bytes);
    seen_recover_looked(l);
    return SEEN_OK;
}

const struct seen_users_ops seen_local_ops = {
    .close = seen_recover_close,
    .abandon = seen_recover_abandon,
    .problem = problem,
    .ask = ask,
    .change = change,
    .forget = forget,
    .forget_user = forget_user,
    .info_of = info_of,
    .record = copy_record,
    .each = each,
    .sync = seen_checkpoint_sync,
    .sweep = seen_checkpoint_sweep,
    .backup = seen_recover_backup,
    .stats = stats,
};
