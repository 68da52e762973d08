/*
 * recover.c - a store is opened, closed, copied.
 *
 *     DIR/data.mdb, lock.mdb      the shelf (shelf_lmdb.c)
 *     DIR/seen.journal-...        the journal (store/journal.h)
 *     DIR/seen.lock               whoever holds it writes
 *
 * Opening to write, and what a crash leaves at each step:
 *
 *     lock, open the shelf            a store without a word about itself: new
 *     owe what the journal has        nothing has changed
 *     begin a journal, epoch + 1      an empty segment
 *     say so on the shelf             the same, until the transaction is there
 *
 * Closing is a checkpoint, one more transaction (no writer), and the journal is
 * removed. A store that says it has a writer and has no journal has lost it.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/bytes.h"
#include "store/io.h"
#include "store/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB      ((uint64_t)1 << 20)
#define POLICY   24 /* bytes of a frame of that type */
#define ATTEMPTS 100

/* ---- The object --------------------------------------------------------- */

static char *joined(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", dir, name);
    return path;
}

/* A directory without slashes at its end, and something behind it. */
static char *trimmed(const char *dir, const char *suffix)
{
    size_t len = strlen(dir), size = len + strlen(suffix) + 1;
    while (len > 1 && dir[len - 1] == '/')
        len--;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%.*s%s", (int)len, dir, suffix);
    return path;
}

static void set_defaults(seen_users_options *o)
{
    if (!o->checkpoint_bytes) o->checkpoint_bytes = 256 * MIB;
    if (!o->journal_bytes) o->journal_bytes = 256 * MIB;
    if (!o->checkpoint_ms) o->checkpoint_ms = 60000;
    o->policy = NULL;
    o->secret = NULL;
}

static struct seen_local *make(const seen_users_options *options)
{
    struct seen_local *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->head.ops = &seen_local_ops;
    l->options = *options;
    set_defaults(&l->options);
    l->lock_fd = -1;
    l->writing = UINT64_MAX;
    pthread_mutex_t *locks[] = {&l->log,        &l->pool, &l->alone,
                                &l->checkpoint, &l->gate, &l->telling};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_init(locks[i], NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&l->wanted, &steady);
    pthread_cond_init(&l->done, &steady);
    pthread_condattr_destroy(&steady);
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        pthread_mutex_init(&l->shards[i].lock, NULL);
        seen_table_init(&l->shards[i].active);
        seen_table_init(&l->shards[i].frozen);
    }
    return l;
}

static void destroy(struct seen_local *l)
{
    int before = errno;
    seen_workers_free(l);
    seen_journal_close(l->journal);
    if (l->shelf) l->ops->close(l->shelf);
    seen_io_close(l->lock_fd);
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        seen_table_free(&l->shards[i].active);
        seen_table_free(&l->shards[i].frozen);
        pthread_mutex_destroy(&l->shards[i].lock);
    }
    pthread_mutex_t *locks[] = {&l->log,        &l->pool, &l->alone,
                                &l->checkpoint, &l->gate, &l->telling};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_destroy(locks[i]);
    pthread_cond_destroy(&l->wanted);
    pthread_cond_destroy(&l->done);
    free(l->dir);
    free(l->journal_path);
    free(l);
    errno = before;
}

/* ---- Policy ------------------------------------------------------------- */

static bool same_policy(const seen_policy *a, const seen_policy *b)
{
    return a->items == b->items && a->generations == b->generations &&
           a->fpp == b->fpp && a->ttl == b->ttl;
}

/* What is owed is owed under the policy of its time. */
static seen_status settle_everybody(struct seen_local *l)
{
    seen_status status;
    struct seen_worker *w = seen_worker_take(l, &status);
    if (!w) return status;
    for (size_t i = 0; i < SEEN_SHARDS && status == SEEN_OK; i++) {
        struct seen_shard *shard = &l->shards[i];
        for (size_t at = 0; at < shard->active.places; at++) {
            struct seen_user *u = shard->active.at[at];
            if (u) status = seen_local_settle(l, w, shard, u, false);
            if (seen_local_damaged(status)) status = SEEN_OK;
            if (status != SEEN_OK) break;
        }
    }
    seen_worker_return(l, w);
    return status;
}

/* Those who are at hand follow another policy. */
static seen_status retrain_workers(struct seen_local *l)
{
    if (!l->one_view) { /* new ones will */
        seen_workers_free(l);
        return SEEN_OK;
    }
    seen_status status = SEEN_OK; /* the one, whose view has to stay */
    for (struct seen_worker *w = l->idle; w && status == SEEN_OK; w = w->next) {
        seen_exposure *x;
        status = seen_exposure_new(&x, &l->meta.policy, l->meta.secret, NULL);
        if (status != SEEN_OK) break;
        seen_exposure_free(w->x);
        w->x = x;
    }
    return status;
}

static seen_status change_policy(struct seen_local *l, const seen_policy *p)
{
    if (same_policy(&l->meta.policy, p)) return SEEN_OK;
    seen_status status = settle_everybody(l);
    if (status != SEEN_OK) return status;
    l->meta.policy = *p;
    return retrain_workers(l);
}

static void put_policy(const seen_policy *p, uint8_t out[POLICY])
{
    uint64_t fpp;
    memcpy(&fpp, &p->fpp, sizeof fpp);
    seen_put_le32(out, p->items);
    seen_put_le32(out + 4, p->generations);
    seen_put_le64(out + 8, fpp);
    seen_put_le64(out + 16, p->ttl);
}

static bool get_policy(const uint8_t *p, size_t len, seen_policy *out)
{
    if (len != POLICY) return false;
    uint64_t fpp = seen_get_le64(p + 8);
    *out = (seen_policy){.items = seen_get_le32(p),
                         .generations = seen_get_le32(p + 4),
                         .ttl = seen_get_le64(p + 16)};
    memcpy(&out->fpp, &fpp, sizeof fpp);
    return seen_policy_problem(out) == NULL;
}

/* ---- Replay ------------------------------------------------------------- */

struct redo {
    struct seen_local *l;
    uint64_t items;
};

static seen_status redo_frame(void *ctx, const struct seen_frame *f)
{
    struct redo *d = ctx;
    seen_policy policy;
    if (f->type == SEEN_FRAME_POLICY)
        return get_policy(f->payload, f->len, &policy)
                   ? change_policy(d->l, &policy)
                   : SEEN_CORRUPT;
    if (f->type != SEEN_FRAME_CHANGES) return SEEN_NEWER;
    seen_status status = SEEN_OK;
    for (size_t at = 0, used = 0; at < f->len && status == SEEN_OK; at += used)
        status = seen_local_redo(d->l, f->payload + at, f->len - at, &used,
                                 &d->items);
    return status;
}

static seen_status replay(struct seen_local *l, uint64_t *last,
                          seen_store_report *r)
{
    struct redo d = {.l = l};
    struct seen_replayed out;
    seen_status status = seen_journal_replay(
        l->journal_path, l->meta.id, l->meta.sequence, redo_frame, &d, &out);
    if (status != SEEN_OK)
        return seen_report(r, status, "journal: %s",
                           out.problem[0] ? out.problem
                                          : seen_strerror(status));
    if (l->meta.journaled && out.segments == 0)
        return seen_report(r, SEEN_CORRUPT,
                           "its journal (seen.journal-...) is missing");
    if (out.gone) /* what it held is on the shelf, but not in our view of it */
        return seen_report(r, SEEN_CORRUPT,
                           "its journal was dropped meanwhile");
    *last = out.last;
    l->due = out.frames > 0; /* not to be replayed again */
    if (r) {
        r->recovered = l->meta.journaled;
        r->recovered_frames = out.frames;
        r->recovered_keys = d.items;
        r->torn_bytes = out.torn;
    }
    return SEEN_OK;
}

/* ---- Opening ------------------------------------------------------------ */

/* A store holds its secret, and what people were shown: its directory is its
 * maker's, until he gives others leave. */
#define PRIVATE 0700

/* seen.lock of a directory, ours alone until the descriptor is closed. */
static seen_status lock_dir(const char *dir, int *fd, seen_store_report *r)
{
    char *path = joined(dir, "seen.lock");
    if (!path) return SEEN_NOMEM;
    *fd = seen_io_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
    free(path);
    if (*fd < 0) return seen_report_io(r, "seen.lock");
    seen_status status = seen_io_lock(*fd);
    if (status == SEEN_BUSY)
        return seen_report(
            r, status,
            "another program is changing it: try again when it has ended");
    return status == SEEN_OK ? status : seen_report_io(r, "lock");
}

static seen_status make_dir(struct seen_local *l, bool create,
                            seen_store_report *r)
{
    struct seen_stat st;
    if (seen_os->stat(l->dir, &st) == 0) {
        if (st.directory) return SEEN_OK;
        return seen_report(r, SEEN_INVALID, "is not a directory");
    }
    if (errno != ENOENT) return seen_report_io(r, "look");
    if (!create) return SEEN_ABSENT;
    if (seen_os->mkdir(l->dir, PRIVATE) != 0)
        return seen_report_io(r, "make directory");
    seen_status status = seen_io_sync_dir(l->dir);
    return status == SEEN_OK ? status : seen_report_io(r, "sync directory");
}

static seen_status write_meta(struct seen_local *l,
                              const struct seen_meta *meta,
                              seen_store_report *r)
{
    seen_status status = l->ops->begin(l->shelf);
    if (status == SEEN_OK) status = l->ops->commit(l->shelf, meta);
    if (status != SEEN_OK)
        seen_report(r, status, "%s", l->ops->problem(l->shelf));
    return status;
}

static seen_status found_store(struct seen_local *l,
                               const seen_users_options *o,
                               seen_store_report *r)
{
    uint8_t id[16];
    uint64_t users, bytes;
    l->ops->sizes(l->shelf, &users, &bytes);
    if (users)
        return seen_report(r, SEEN_CORRUPT,
                           "holds users, but not what a store says of itself");
    bool journal;
    if (seen_journal_there(l->journal_path, &journal) != SEEN_OK)
        return seen_report_io(r, "look for a journal");
    if (journal)
        return seen_report(
            r, SEEN_CORRUPT,
            "a journal is there, but data.mdb is missing or new");
    if (seen_random_key(id) != SEEN_OK) return seen_report_io(r, "random");
    l->meta.id = seen_get_le64(id) | 1;
    l->meta.policy = seen_policy_filled(o->policy);
    if (o->secret)
        memcpy(l->meta.secret, o->secret, sizeof l->meta.secret);
    else if (seen_random_key(l->meta.secret) != SEEN_OK)
        return seen_report_io(r, "random");
    seen_status status = write_meta(l, &l->meta, r);
    if (status == SEEN_OK && r) r->created = true;
    return status;
}

static seen_status check_secret(const struct seen_local *l,
                                const seen_users_options *o,
                                seen_store_report *r)
{
    if (!o->secret ||
        memcmp(o->secret, l->meta.secret, sizeof l->meta.secret) == 0)
        return SEEN_OK;
    return seen_report(r, SEEN_MISMATCH, "the store has another secret");
}

/* From now on; in the journal, so that a replay knows where. */
static seen_status follow_policy(struct seen_local *l, const seen_policy *given,
                                 seen_store_report *r)
{
    uint8_t bytes[POLICY];
    uint64_t number;
    seen_policy policy = seen_policy_filled(given);
    if (!given || same_policy(&policy, &l->meta.policy)) return SEEN_OK;
    seen_status status = change_policy(l, &policy);
    put_policy(&policy, bytes);
    if (status == SEEN_OK)
        status = seen_journal_append(l->journal, SEEN_FRAME_POLICY, bytes,
                                     sizeof bytes, &number);
    if (status == SEEN_OK) status = seen_journal_commit(l->journal, number);
    return status == SEEN_IO ? seen_report_io(r, "journal") : status;
}

static seen_status open_to_write(struct seen_local *l,
                                 const seen_users_options *o,
                                 seen_store_report *r)
{
    uint64_t last;
    seen_status status = make_dir(l, o->create, r);
    if (status == SEEN_OK && !o->create && !l->ops->there(l->dir))
        status = SEEN_ABSENT;
    if (status == SEEN_OK) status = lock_dir(l->dir, &l->lock_fd, r);
    if (status == SEEN_OK) status = l->ops->open(&l->shelf, l->dir, true, r);
    if (status != SEEN_OK) return status;
    status = l->ops->meta(l->shelf, &l->meta, r);
    if (status == SEEN_ABSENT && o->create) status = found_store(l, o, r);
    if (status == SEEN_OK) status = check_secret(l, o, r);
    /* What the shelf says goes with its sequence, the policy too: a replay comes
     * to the later one by itself. */
    struct seen_meta on_shelf = l->meta;
    if (status == SEEN_OK) status = replay(l, &last, r);
    if (status != SEEN_OK) return status;
    on_shelf.epoch = ++l->meta.epoch;
    on_shelf.journaled = l->meta.journaled = true;
    status = seen_journal_open(&l->journal, l->journal_path, l->meta.id,
                               l->meta.epoch, last);
    if (status == SEEN_IO) return seen_report_io(r, "journal");
    if (status == SEEN_OK) status = write_meta(l, &on_shelf, r);
    if (status == SEEN_OK) status = follow_policy(l, o->policy, r);
    return status;
}

/* A reader with a tail sees the shelf as it was when the journal was read.
 * SEEN_BUSY: there was a checkpoint in between. */
static seen_status read_tail(struct seen_local *l, seen_store_report *r)
{
    uint64_t last;
    seen_status status;
    struct seen_meta after;
    status = l->ops->meta(l->shelf, &l->meta, r);
    if (status != SEEN_OK) return status;
    l->one_view = true;
    struct seen_worker *w = seen_worker_take(l, &status);
    if (!w) return status;
    status = l->ops->wake(w->view);
    if (status == SEEN_OK) l->ops->hold(w->view);
    seen_worker_return(l, w);
    if (status == SEEN_OK) status = l->ops->meta(l->shelf, &after, r);
    if (status == SEEN_OK &&
        (after.epoch != l->meta.epoch || after.sequence != l->meta.sequence))
        return seen_report(r, SEEN_BUSY, "checkpoints come too fast");
    return status == SEEN_OK ? replay(l, &last, r) : status;
}

static void forget_tail(struct seen_local *l)
{
    l->one_view = false;
    seen_workers_free(l);
    for (size_t i = 0; i < SEEN_SHARDS; i++)
        seen_table_free(&l->shards[i].active);
}

/* A writer may drop segments, or write one, while they are read: what looks like
 * damage is damage only if it stays. */
static seen_status open_to_read(struct seen_local *l,
                                const seen_users_options *o,
                                seen_store_report *r)
{
    if (!l->ops->there(l->dir)) return SEEN_ABSENT;
    seen_status status = l->ops->open(&l->shelf, l->dir, false, r);
    if (status == SEEN_OK) status = l->ops->meta(l->shelf, &l->meta, r);
    if (status == SEEN_OK) status = check_secret(l, o, r);
    if (status != SEEN_OK || !o->tail) return status;
    for (int i = 0; i < ATTEMPTS; i++) {
        forget_tail(l);
        seen_report_begin(r);
        status = read_tail(l, r);
        if (status != SEEN_CORRUPT && status != SEEN_BUSY) break;
    }
    return status;
}

seen_status seen_local_open(struct seen_users **u, const char *dir,
                            const struct seen_shelf_ops *ops, bool threadless,
                            const seen_users_options *options,
                            seen_store_report *r)
{
    struct seen_local *l = make(options);
    if (!l) return SEEN_NOMEM;
    l->ops = ops;
    l->dir = trimmed(dir, "");
    l->journal_path = joined(dir, "seen");
    seen_status status = l->dir && l->journal_path ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) {
        status = options->mode == SEEN_STORE_READ
                     ? open_to_read(l, options, r)
                     : open_to_write(l, options, r);
    }
    if (status == SEEN_OK && options->mode != SEEN_STORE_READ && !threadless &&
        !seen_checkpoint_start(l))
        status = SEEN_NOMEM;
    if (status == SEEN_OK)
        *u = &l->head;
    else
        destroy(l);
    return status;
}

seen_status seen_users_open_lmdb(struct seen_users **u, const char *where,
                                 const seen_users_options *options,
                                 seen_store_report *r)
{
    if (!where[0]) return seen_report(r, SEEN_INVALID, "no directory is named");
#ifdef SEEN_WITH_LMDB
    return seen_local_open(u, where, &seen_shelf_lmdb, false, options, r);
#else
    (void)u, (void)options;
    return seen_report(r, SEEN_UNSUPPORTED, "built without LMDB");
#endif
}

/* ---- In memory ---------------------------------------------------------- */

seen_status seen_users_open_mem(struct seen_users **u, const char *where,
                                const seen_users_options *options,
                                seen_store_report *r)
{
    if (where[0])
        return seen_report(r, SEEN_INVALID, "mem: has no name behind it");
    struct seen_local *l = make(options);
    if (!l) return SEEN_NOMEM;
    l->meta.policy = seen_policy_filled(options->policy);
    if (options->secret) {
        memcpy(l->meta.secret, options->secret, sizeof l->meta.secret);
    } else if (seen_random_key(l->meta.secret) != SEEN_OK) {
        destroy(l);
        return seen_report_io(r, "random");
    }
    if (r) r->created = true;
    *u = &l->head;
    return SEEN_OK;
}

/* ---- Closing ------------------------------------------------------------ */

seen_status seen_recover_close(struct seen_users *u)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status = SEEN_OK;
    seen_checkpoint_stop(l);
    if (l->journal) {
        status = seen_checkpoint_sync(u);
        if (status == SEEN_OK) {
            l->meta.journaled = false;
            status = write_meta(l, &l->meta, NULL);
        }
        if (status == SEEN_OK) status = seen_journal_remove(l->journal_path);
    }
    destroy(l);
    return status;
}

/* ---- Backup ------------------------------------------------------------- */

static seen_status copy_frame(void *to, const struct seen_frame *f)
{
    uint64_t number;
    return seen_journal_append(to, f->type, f->payload, f->len, &number);
}

/*
 * The journal first, then the shelf: should a checkpoint come in between, the
 * shelf knows frames that the journal has, too, and says so. Should a writer
 * come or go in between, it is done again.
 */
static seen_status copy_once(struct seen_local *l, const char *dir, bool *again,
                             seen_store_report *r)
{
    struct seen_meta before, after;
    struct seen_replayed out;
    char *path = joined(dir, "seen");
    seen_journal *to = NULL;
    *again = false;
    seen_status status = path ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = l->ops->meta(l->shelf, &before, r);
    if (status == SEEN_OK)
        status = seen_journal_open(&to, path, before.id, before.epoch,
                                   before.sequence);
    if (status == SEEN_OK) {
        status = seen_journal_replay(l->journal_path, before.id,
                                     before.sequence, copy_frame, to, &out);
        if (status == SEEN_CORRUPT) *again = true;
        if (status != SEEN_OK)
            seen_report(r, status, "journal: %s", out.problem);
    }
    if (status == SEEN_OK)
        status = seen_journal_commit(to, seen_journal_last(to));
    if (status == SEEN_OK) status = l->ops->copy(l->shelf, dir);
    if (status == SEEN_OK) status = l->ops->meta(l->shelf, &after, r);
    if (status == SEEN_OK) *again = after.epoch != before.epoch;
    seen_journal_close(to);
    free(path);
    return status;
}

/* What an attempt has left; others' files are left alone. */
static seen_status clear_copy(const char *dir, seen_store_report *r)
{
    char *path = joined(dir, "seen"), *data = joined(dir, "data.mdb");
    seen_status status = path && data ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK && (seen_journal_remove(path) != SEEN_OK ||
                              (seen_os->unlink(data) != 0 && errno != ENOENT)))
        status = seen_report_io(r, "remove an older copy");
    free(path);
    free(data);
    return status;
}

seen_status seen_recover_backup(struct seen_users *u, const char *dir,
                                seen_store_report *r)
{
    struct seen_local *l = (struct seen_local *)u;
    struct seen_stat st;
    if (!l->shelf)
        return seen_report(r, SEEN_UNSUPPORTED, "mem: has nothing on disk");
    if (seen_os->stat(dir, &st) == 0)
        return seen_report(r, SEEN_INVALID, "%s: is there already", dir);
    if (errno != ENOENT) return seen_report_io(r, "look");
    char *beside = trimmed(dir, ".seen-new");
    if (!beside) return SEEN_NOMEM;
    seen_status status = SEEN_OK;
    int lock = -1;
    if (seen_os->mkdir(beside, PRIVATE) != 0 && errno != EEXIST)
        status = seen_report_io(r, "make directory");
    if (status == SEEN_OK) status = lock_dir(beside, &lock, r);
    bool again = status == SEEN_OK;
    for (int i = 0; again && i < ATTEMPTS; i++) {
        seen_report_begin(r);
        status = clear_copy(beside, r);
        again = false;
        if (status == SEEN_OK) status = copy_once(l, beside, &again, r);
    }
    if (status == SEEN_OK && again)
        status = seen_report(r, SEEN_BUSY, "writers come and go too fast");
    if (status == SEEN_OK && seen_os->rename(beside, dir) != 0)
        status = seen_report_io(r, "rename");
    if (status == SEEN_OK && seen_io_sync_dir(beside) != SEEN_OK)
        status = seen_report_io(r, "sync directory");
    seen_io_close(lock);
    free(beside);
    return status;
}
