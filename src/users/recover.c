/*
 * recover.c - a store is opened and closed.
 *
 *     DIR/data.mdb, lock.mdb      the backend (backend_lmdb.c)
 *     DIR/seen.journal-...        the journal (store/journal.h)
 *     DIR/seen.lock               whoever holds it writes
 *
 * Opening to write, and what a crash leaves at each step:
 *
 *     lock, make the backend            a file beside, or a backend (backend.c)
 *     open the backend                  a store without a word about itself: new
 *     queue what the journal has      nothing has changed
 *     begin a journal, epoch + 1      an empty segment
 *     say so in the backend             the same, until the transaction is there
 *
 * Closing is a checkpoint, one more transaction (no writer), and the journal is
 * removed. A store that says it has a writer and has no journal has lost it.
 *
 * Segments are made and removed by name, and a name may lead to another store by
 * then: a writer that finds another seen.lock than its own stops (seen_recover_here).
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/bytes.h"
#include "base/error.h"
#include "store/io.h"
#include "store/replace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MIB    ((uint64_t)1 << 20)
#define POLICY 24 /* bytes of a frame of that type */

/* ---- The object --------------------------------------------------------- */

char *seen_path_join(const char *dir, const char *name)
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

/* The same, of the directory that a name leads to, also one to be made. */
seen_status seen_recover_dir(const char *name, const char *suffix, char **out,
                             seen_error *error)
{
    char real[SEEN_PATH_ROOM];
    char *dir = trimmed(name, "");
    if (!dir) return SEEN_NOMEM;
    seen_status status = seen_io_resolve(dir, real, sizeof real);
    free(dir);
    if (status != SEEN_OK)
        return seen_fail_io(error, NULL, "look at the directory");
    *out = trimmed(real, suffix);
    return *out ? SEEN_OK : SEEN_NOMEM;
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
    pthread_mutex_t *locks[] = {&l->log,  &l->pool, &l->alone,  &l->checkpoint,
                                &l->gate, &l->turn, &l->telling};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_init(locks[i], NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_rwlock_init(&l->sight, NULL);
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
    if (l->backend) l->ops->close(l->backend);
    seen_io_release(l->lock_fd);
    for (size_t i = 0; i < SEEN_SHARDS; i++) {
        seen_table_free(&l->shards[i].active);
        seen_table_free(&l->shards[i].frozen);
        pthread_mutex_destroy(&l->shards[i].lock);
    }
    pthread_mutex_t *locks[] = {&l->log,  &l->pool, &l->alone,  &l->checkpoint,
                                &l->gate, &l->turn, &l->telling};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_destroy(locks[i]);
    pthread_rwlock_destroy(&l->sight);
    pthread_cond_destroy(&l->wanted);
    pthread_cond_destroy(&l->done);
    free(l->dir);
    free(l->journal_path);
    free(l);
    errno = before;
}

/* ---- Policy ------------------------------------------------------------- */

bool seen_policy_same(const seen_policy *a, const seen_policy *b)
{
    return a->items == b->items && a->generations == b->generations &&
           a->fpp == b->fpp && a->ttl_ms == b->ttl_ms;
}

/* What is queued is queued under the policy of its time. */
static seen_status settle_everybody(struct seen_local *l)
{
    seen_status status;
    struct seen_worker *w = seen_worker_take(l, &status, NULL);
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
    if (!l->one_snapshot) { /* new ones will */
        seen_workers_free(l);
        return SEEN_OK;
    }
    seen_status status = SEEN_OK; /* the one, whose snapshot has to stay */
    for (struct seen_worker *w = l->idle; w && status == SEEN_OK; w = w->next) {
        seen_exposure *x;
        status =
            seen_exposure_new(&x, &l->meta.policy, l->meta.secret, NULL, NULL);
        if (status != SEEN_OK) break;
        seen_exposure_free(w->x);
        w->x = x;
        w->evicted = 0;
    }
    return status;
}

static seen_status change_policy(struct seen_local *l, const seen_policy *p)
{
    if (seen_policy_same(&l->meta.policy, p)) return SEEN_OK;
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
    seen_put_le64(out + 16, p->ttl_ms);
}

static bool get_policy(const uint8_t *p, size_t len, seen_policy *out)
{
    if (len != POLICY) return false;
    uint64_t fpp = seen_get_le64(p + 8);
    *out = (seen_policy){.items = seen_get_le32(p),
                         .generations = seen_get_le32(p + 4),
                         .ttl_ms = seen_get_le64(p + 16)};
    memcpy(&out->fpp, &fpp, sizeof fpp);
    return seen_policy_check(out, NULL) == SEEN_OK;
}

/* ---- Replay ------------------------------------------------------------- */

struct redo {
    struct seen_local *l;
    uint64_t items, bytes;
};

static seen_status redo_frame(void *ctx, const struct seen_frame *f)
{
    struct redo *d = ctx;
    seen_policy policy;
    d->bytes += f->len;
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

seen_status seen_recover_replay(struct seen_local *l, uint64_t *last,
                                seen_error *error)
{
    struct redo d = {.l = l};
    struct seen_replayed out;
    seen_status status = seen_journal_replay(
        l->journal_path, l->meta.id, l->meta.sequence, redo_frame, &d, &out);
    if (status != SEEN_OK)
        return seen_fail(error, status, NULL, "journal: %s",
                         out.problem[0] ? out.problem : seen_strerror(status));
    if (l->meta.journaled && out.segments == 0)
        return seen_fail(error, SEEN_CORRUPT, NULL,
                         "its journal (seen.journal-...) is missing");
    if (out.gone) /* what it held is in the backend, but not in what we see */
        return seen_fail(error, SEEN_CORRUPT, NULL,
                         "its journal was dropped meanwhile");
    *last = out.last;
    if (l->options.mode == SEEN_READ) l->journaled = d.bytes;
    l->due = out.frames > 0; /* not to be replayed again */
    l->outcome.recovered = l->meta.journaled;
    l->outcome.recovered_frames = out.frames;
    l->outcome.recovered_keys = d.items;
    l->outcome.torn_bytes = out.torn;
    return SEEN_OK;
}

/* ---- Opening ------------------------------------------------------------ */

/* A reader that asks whether there is a writer shares the lock for a moment
 * (writer_lives() below): then it is free again right away. */
static seen_status lock_patiently(int fd)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    seen_status status = seen_io_lock(fd);
    for (int i = 0; status == SEEN_BUSY && i < 20; i++) {
        nanosleep(&moment, NULL);
        status = seen_io_lock(fd);
    }
    return status;
}

/* Who may read the store, and whose it is: data.mdb has it. *like NULL: there is
 * none yet, and what is made is for nobody but us. */
static seen_status find_owner(const char *dir, struct seen_stat *st,
                              const struct seen_stat **like)
{
    char *path = seen_path_join(dir, "data.mdb");
    if (!path) return SEEN_NOMEM;
    bool there = seen_os->stat(path, st) == 0;
    free(path);
    *like = there ? st : NULL;
    return there || errno == ENOENT ? SEEN_OK : SEEN_IO;
}

static int open_or_create(const char *path, const struct seen_stat *like)
{
    int fd = seen_io_create_like(path, like);
    if (fd < 0 && errno == EEXIST) fd = seen_io_open_regular(path, O_RDWR);
    return fd;
}

/* seen.lock of a directory, ours alone until the descriptor is closed. */
seen_status seen_recover_lock(const char *dir, int *fd, seen_error *error)
{
    struct seen_stat st;
    const struct seen_stat *like;
    seen_status found = find_owner(dir, &st, &like);
    if (found == SEEN_IO) return seen_fail_io(error, NULL, "look at data.mdb");
    char *path = found == SEEN_OK ? seen_path_join(dir, "seen.lock") : NULL;
    if (!path) return SEEN_NOMEM;
    *fd = open_or_create(path, like);
    seen_status status = *fd < 0 ? SEEN_IO : lock_patiently(*fd);
    if (status == SEEN_OK && !seen_still_there(path, *fd))
        status = SEEN_BUSY; /* removed, with its directory */
    free(path);
    if (*fd < 0 && (errno == ELOOP || errno == ENODEV))
        return seen_fail(error, SEEN_IO, NULL, "seen.lock: %s", seen_io_why());
    if (*fd < 0) return seen_fail_io(error, NULL, "open seen.lock");
    if (status == SEEN_BUSY)
        return seen_fail(
            error, status, NULL,
            "another program is changing it: try again when it has ended");
    return status == SEEN_OK ? status
                             : seen_fail_io(error, NULL, "lock seen.lock");
}

/*
 * Operators move a store away and a copy of it into its place while a writer is at
 * work. The copy has the same id, and segments of the same names, so only the lock
 * file tells them apart. One that was removed tells as well: another writer may be
 * in by now.
 */
seen_status seen_recover_here(struct seen_local *l, seen_error *error)
{
    char *path = seen_path_join(l->dir, "seen.lock");
    if (!path) return seen_local_fail(l, SEEN_NOMEM, "seen.lock", "", error);
    bool here = seen_still_there(path, l->lock_fd);
    free(path);
    if (here) return SEEN_OK;
    errno = ESTALE;
    return seen_local_fail(l, SEEN_IO, "seen.lock",
                           "the store was moved or replaced while it was open, "
                           "or this file removed: what was marked since is in "
                           "the directory that was opened",
                           error);
}

/* Something else has the name: what? */
static seen_status not_a_store(const char *path, const struct seen_stat *st,
                               seen_error *error)
{
    seen_info info = {.size = sizeof info};
    if (st->regular && seen_file_look(path, &info, NULL, NULL) == SEEN_OK)
        return seen_fail(error, SEEN_INVALID, NULL,
                         "is a filter file (of kind %s), not a store of users",
                         seen_kind_name(info.kind));
    return seen_fail(error, SEEN_INVALID, NULL,
                     "is %s, not a store of users: expected a directory",
                     st->regular ? "a regular file" : "no directory");
}

/* SEEN_ABSENT: nothing has the name. */
static seen_status find_dir(const char *dir, seen_error *error)
{
    struct seen_stat st;
    if (seen_os->stat(dir, &st) == 0)
        return st.directory ? SEEN_OK : not_a_store(dir, &st, error);
    return errno == ENOENT ? SEEN_ABSENT
                           : seen_fail_io(error, NULL, "look at the directory");
}

/* Nobody who could make one is at work. */
static seen_status no_store(const char *what, seen_error *error)
{
    return seen_fail(error, SEEN_ABSENT, NULL,
                     "%s: expected a store of users; to make one, set "
                     "options.create, with SEEN_WRITE or SEEN_DURABLE",
                     what);
}

/* The directory is there: is there a store in it? */
static seen_status find_store(const struct seen_local *l, seen_error *error)
{
    errno = ENOENT;
    if (l->ops->there(l->dir)) return SEEN_OK;
    if (errno != ENOENT) return seen_fail_io(error, NULL, "cannot be read");
    return no_store("is a directory without data.mdb in it", error);
}

static seen_status make_dir(struct seen_local *l, bool create,
                            seen_error *error)
{
    struct seen_stat st;
    seen_status found = find_dir(l->dir, error);
    if (found != SEEN_ABSENT) return found;
    if (!create) return no_store("no such directory", error);
    if (seen_os->mkdir(l->dir, SEEN_STORE_PRIVATE) != 0) {
        int why = errno; /* another may have made it, just now */
        if (why == EEXIST && seen_os->stat(l->dir, &st) == 0 && st.directory)
            return SEEN_OK;
        errno = why;
        return seen_fail_io(error, NULL, "make the directory");
    }
    seen_status status = seen_io_sync_dir(l->dir);
    return status == SEEN_OK
               ? status
               : seen_fail_io(error, NULL, "sync the directory above it");
}

static seen_status write_meta(struct seen_local *l,
                              const struct seen_meta *meta, seen_error *error)
{
    seen_status status = l->ops->begin(l->backend, error);
    return status == SEEN_OK ? l->ops->commit(l->backend, meta, error) : status;
}

static seen_status found_store(struct seen_local *l,
                               const seen_users_options *o, seen_error *error)
{
    uint8_t id[16];
    uint64_t users, bytes;
    l->ops->sizes(l->backend, &users, &bytes);
    if (users)
        return seen_fail(error, SEEN_CORRUPT, NULL,
                         "holds users, but not what a store says of itself");
    bool blank; /* then nothing was acknowledged: it was never finished */
    if (seen_journal_blank(l->journal_path, &blank) != SEEN_OK)
        return seen_fail_io(error, NULL, "look for a journal");
    if (!blank)
        return seen_fail(error, SEEN_CORRUPT, NULL,
                         "a journal is there, but data.mdb is missing or new");
    if (seen_journal_remove(l->journal_path) != SEEN_OK)
        return seen_fail_io(error, NULL, "remove an empty journal");
    if (seen_random_secret(id) != SEEN_OK)
        return seen_fail_io(error, NULL, "draw random bytes from the kernel");
    l->meta.id = seen_get_le64(id) | 1;
    l->meta.policy = seen_policy_filled(o->policy);
    if (o->secret)
        memcpy(l->meta.secret, o->secret, sizeof l->meta.secret);
    else if (seen_random_secret(l->meta.secret) != SEEN_OK)
        return seen_fail_io(error, NULL, "draw random bytes from the kernel");
    seen_status status = write_meta(l, &l->meta, error);
    if (status == SEEN_OK) l->outcome.created = true;
    return status;
}

static seen_status check_secret(const struct seen_local *l,
                                const seen_users_options *o, seen_error *error)
{
    if (!o->secret ||
        memcmp(o->secret, l->meta.secret, sizeof l->meta.secret) == 0)
        return SEEN_OK;
    return seen_fail(error, SEEN_MISMATCH, "options.secret",
                     "options.secret is not the secret of this store: leave it "
                     "NULL, the store has it");
}

/* From now on; in the journal, so that a replay knows where. */
static seen_status follow_policy(struct seen_local *l, const seen_policy *given,
                                 seen_error *error)
{
    uint8_t bytes[POLICY];
    uint64_t number;
    seen_policy policy = seen_policy_filled(given);
    if (!given || seen_policy_same(&policy, &l->meta.policy)) return SEEN_OK;
    seen_status status = change_policy(l, &policy);
    put_policy(&policy, bytes);
    if (status == SEEN_OK)
        status = seen_journal_append(l->journal, SEEN_FRAME_POLICY, bytes,
                                     sizeof bytes, &number);
    if (status == SEEN_OK) status = seen_journal_commit(l->journal, number);
    return status == SEEN_IO
               ? seen_fail_io(error, NULL, "write the policy to the journal")
               : status;
}

static seen_status open_to_write(struct seen_local *l,
                                 const seen_users_options *o, seen_error *error)
{
    uint64_t last;
    seen_status status = make_dir(l, o->create, error);
    if (status == SEEN_OK && !o->create) status = find_store(l, error);
    if (status == SEEN_OK)
        status = seen_recover_lock(l->dir, &l->lock_fd, error);
    if (status == SEEN_OK)
        status = l->ops->open(&l->backend, l->dir, true, error);
    if (status != SEEN_OK) return status;
    status = l->ops->meta(l->backend, &l->meta, error);
    if (status == SEEN_ABSENT && o->create) status = found_store(l, o, error);
    if (status == SEEN_OK) status = check_secret(l, o, error);
    if (status == SEEN_OK) seen_checkpoint_clock(l);
    /* What the backend says goes with its sequence, the policy too: a replay comes
     * to the later one by itself. */
    struct seen_meta in_backend = l->meta;
    if (status == SEEN_OK) status = seen_recover_replay(l, &last, error);
    if (status != SEEN_OK) return status;
    in_backend.epoch = ++l->meta.epoch;
    in_backend.journaled = l->meta.journaled = true;
    struct seen_stat st;
    const struct seen_stat *like;
    status = find_owner(l->dir, &st, &like);
    if (status == SEEN_OK)
        status = seen_journal_open(&l->journal, l->journal_path, like,
                                   l->meta.id, l->meta.epoch, last);
    if (status == SEEN_IO) return seen_fail_io(error, NULL, "begin a journal");
    if (status == SEEN_OK) status = write_meta(l, &in_backend, error);
    if (status == SEEN_OK) status = follow_policy(l, o->policy, error);
    return status;
}

static seen_status open_to_read(struct seen_local *l,
                                const seen_users_options *o, seen_error *error)
{
    seen_status status = find_dir(l->dir, error);
    if (status == SEEN_ABSENT) return no_store("no such directory", error);
    if (status == SEEN_OK) status = find_store(l, error);
    if (status == SEEN_OK)
        status = l->ops->open(&l->backend, l->dir, false, error);
    if (status == SEEN_OK) status = l->ops->meta(l->backend, &l->meta, error);
    if (status == SEEN_OK) status = check_secret(l, o, error);
    return status == SEEN_OK ? seen_sight_choose(l, error) : status;
}

/* ---- Opening, all of it --------------------------------------------------- */

seen_status seen_local_open(struct seen_users **u, const char *dir,
                            const struct seen_backend_ops *ops, bool threadless,
                            const seen_users_options *options,
                            seen_outcome *outcome, seen_error *error)
{
    struct seen_local *l = make(options);
    if (!l) return SEEN_NOMEM;
    l->ops = ops;
    seen_status status = seen_recover_dir(dir, "", &l->dir, error);
    if (status == SEEN_OK) l->journal_path = seen_path_join(l->dir, "seen");
    if (status == SEEN_OK && !l->journal_path) status = SEEN_NOMEM;
    if (status == SEEN_OK) {
        status = options->mode == SEEN_READ ? open_to_read(l, options, error)
                                            : open_to_write(l, options, error);
    }
    if (status == SEEN_ABSENT) /* and nobody has said why */
        status = no_store("data.mdb is there, but no store in it", error);
    if (status == SEEN_OK && options->mode != SEEN_READ && !threadless &&
        !seen_checkpoint_start(l))
        status = SEEN_NOMEM;
    l->head.holds = seen_policy_holds(&l->meta.policy);
    *outcome = l->outcome;
    if (status == SEEN_OK)
        *u = &l->head;
    else
        destroy(l);
    return status;
}

seen_status seen_users_open_lmdb(struct seen_users **u, const char *where,
                                 const seen_users_options *options,
                                 seen_outcome *outcome, seen_error *error)
{
    if (!where[0])
        return seen_fail(error, SEEN_INVALID, NULL,
                         "names no directory: expected DIR or lmdb:DIR");
#ifdef SEEN_WITH_LMDB
    return seen_local_open(u, where, &seen_backend_lmdb, false, options,
                           outcome, error);
#else
    (void)u, (void)options, (void)outcome;
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "this library was built without LMDB: expected mem:");
#endif
}

/* ---- In memory ---------------------------------------------------------- */

seen_status seen_users_open_mem(struct seen_users **u, const char *where,
                                const seen_users_options *options,
                                seen_outcome *outcome, seen_error *error)
{
    if (where[0])
        return seen_fail(error, SEEN_INVALID, NULL,
                         "a store in memory has no name: expected mem: alone");
    struct seen_local *l = make(options);
    if (!l) return SEEN_NOMEM;
    l->meta.policy = seen_policy_filled(options->policy);
    if (options->secret) {
        memcpy(l->meta.secret, options->secret, sizeof l->meta.secret);
    } else if (seen_random_secret(l->meta.secret) != SEEN_OK) {
        destroy(l);
        return seen_fail_io(error, NULL, "draw random bytes from the kernel");
    }
    outcome->created = true;
    l->head.holds = seen_policy_holds(&l->meta.policy);
    l->head.copied = true;
    *u = &l->head;
    return SEEN_OK;
}

/* ---- Closing ------------------------------------------------------------ */

seen_status seen_recover_close(struct seen_users *u, seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    seen_status status = SEEN_OK;
    seen_checkpoint_stop(l);
    if (l->journal) {
        status = seen_checkpoint_sync(u, error);
        if (status == SEEN_OK) {
            l->meta.journaled = false;
            status = write_meta(l, &l->meta, error);
        }
        if (status == SEEN_OK) status = seen_recover_here(l, error);
        if (status == SEEN_OK) status = seen_journal_remove(l->journal_path);
    }
    destroy(l);
    return status;
}

/* In a child that was forked, see home.h: no checkpoint, no thread to wait for, no
 * lock that is waited for, and neither journal nor backend are touched. */
void seen_recover_abandon(struct seen_users *u)
{
    struct seen_local *l = (struct seen_local *)u;
    bool still = pthread_rwlock_trywrlock(&l->sight) == 0; /* of readers */
    if (l->backend) l->ops->disown(l->backend);
    if (still && pthread_mutex_trylock(&l->pool) == 0) seen_workers_free(l);
    if (pthread_mutex_trylock(&l->log) == 0) seen_journal_abandon(l->journal);
    for (size_t i = 0; still && i < SEEN_SHARDS; i++) {
        if (pthread_mutex_trylock(&l->shards[i].lock) != 0) continue;
        seen_table_free(&l->shards[i].active);
        seen_table_free(&l->shards[i].frozen);
    }
    if (l->backend) l->ops->close(l->backend);
    seen_io_close(l->lock_fd);
    free(l->dir);
    free(l->journal_path);
    free(l);
}
