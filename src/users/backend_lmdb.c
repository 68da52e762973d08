/*
 * backend_lmdb.c - records in LMDB.
 *
 * Two databases in one environment: `users` maps names to records, each with
 * four bytes behind it, the CRC32C of name and record: LMDB has no checksums,
 * and a bit that the disk lost could turn into "never shown". `seen` has one
 * entry, `store`, the bytes of meta.c. LMDB keeps its default promise: a
 * transaction that was committed is on disk. Readers see their snapshot in the
 * map, without copying and without waiting for the writer.
 *
 * The map is reserved, not used: 1 TiB of addresses, so that it need not grow
 * under readers' feet. Where addresses are limited (ulimit -v, small machines)
 * it is smaller and grows when a transaction finds it full: then everybody who
 * reads holds a lock meanwhile (begin_read), which costs a little and is not
 * needed else.
 */
#define _XOPEN_SOURCE 700

#include "users/lmdb.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

#define CRC 4 /* bytes behind a record */

struct snapshot {
    struct seen_lmdb *backend;
    MDB_txn *txn;
    bool awake, held;
};

/* ---- Transactions that read --------------------------------------------- */

static void lock_map(struct seen_lmdb *s)
{
    if (s->limited) pthread_rwlock_rdlock(&s->growing);
}

static void unlock_map(struct seen_lmdb *s)
{
    if (s->limited) pthread_rwlock_unlock(&s->growing);
}

/* Another process has made the map larger: so do we, unless somebody is reading
 * in it. With the lock, which is let go meanwhile. */
static int follow(struct seen_lmdb *s)
{
    if (!s->limited || s->held) return MDB_MAP_RESIZED;
    pthread_rwlock_unlock(&s->growing);
    pthread_rwlock_wrlock(&s->growing);
    int rc = mdb_env_set_mapsize(s->env, 0);
    pthread_rwlock_unlock(&s->growing);
    pthread_rwlock_rdlock(&s->growing);
    return rc;
}

static int begin_or_renew(struct seen_lmdb *s, MDB_txn **txn)
{
    if (*txn) return mdb_txn_renew(*txn);
    return mdb_txn_begin(s->env, NULL, MDB_RDONLY, txn);
}

/* *txn: NULL, or one that was reset. On success the map is locked. */
static int begin_read(struct seen_lmdb *s, MDB_txn **txn)
{
    int rc = seen_lmdb_enter(s);
    if (rc) return rc;
    lock_map(s);
    rc = begin_or_renew(s, txn);
    if (rc == MDB_MAP_RESIZED) {
        rc = follow(s);
        if (!rc) rc = begin_or_renew(s, txn);
    }
    if (rc) {
        unlock_map(s);
        seen_lmdb_leave(s);
    }
    return rc;
}

static void end_read(struct seen_lmdb *s, MDB_txn *txn)
{
    mdb_txn_abort(txn);
    unlock_map(s);
    seen_lmdb_leave(s);
}

static const MDB_val meta_key = {5, "store"};

static seen_status get_meta(const struct seen_lmdb *s, MDB_txn *txn,
                            struct seen_meta *out, seen_error *error)
{
    MDB_val key = meta_key, value;
    seen_status status =
        seen_lmdb_report(mdb_get(txn, s->store, &key, &value), error);
    if (status != SEEN_OK) return status;
    status = seen_meta_get(value.mv_data, value.mv_size, out);
    if (status != SEEN_OK)
        seen_fail(error, status, NULL, "what the store says about itself: %s",
                  seen_strerror(status));
    return status;
}

static seen_status meta(void *backend, struct seen_meta *out, seen_error *error)
{
    struct seen_lmdb *s = backend;
    MDB_txn *txn = NULL;
    int rc = begin_read(s, &txn);
    if (rc) return seen_lmdb_report(rc, error);
    seen_status status = get_meta(s, txn, out, error);
    end_read(s, txn);
    return status;
}

/* ---- Snapshots ---------------------------------------------------------- */

static seen_status snapshot_new(void *backend, void **out)
{
    struct snapshot *s = seen_alloc_zeroed(&seen_system_memory, sizeof *s);
    if (!s) return SEEN_NOMEM;
    s->backend = backend;
    *out = s;
    return SEEN_OK;
}

static void snapshot_sleep(void *snapshot)
{
    struct snapshot *s = snapshot;
    if (!s->awake) return;
    mdb_txn_reset(s->txn);
    s->awake = false;
    if (s->held)
        s->backend->held--;
    else
        unlock_map(s->backend);
    seen_lmdb_leave(s->backend);
    s->held = false;
}

/* A reader with a tail looks into its tables while it is awake, and others wake
 * while they do: with the lock that would be two orders. */
static void snapshot_hold(void *snapshot)
{
    struct snapshot *s = snapshot;
    s->backend->held++;
    unlock_map(s->backend);
    s->held = true;
}

static void snapshot_free(void *snapshot)
{
    struct snapshot *s = snapshot;
    if (!s) return;
    if (!s->backend->disowned) {
        snapshot_sleep(s);
        if (s->txn) mdb_txn_abort(s->txn);
    }
    seen_release(&seen_system_memory, s, sizeof *s);
}

static seen_status snapshot_wake(void *snapshot, seen_error *error)
{
    struct snapshot *s = snapshot;
    if (s->awake) return SEEN_OK;
    int rc = begin_read(s->backend, &s->txn);
    s->awake = rc == 0;
    return seen_lmdb_report(rc, error);
}

static seen_status snapshot_told(void *snapshot, struct seen_meta *out,
                                 seen_error *error)
{
    const struct snapshot *s = snapshot;
    return get_meta(s->backend, s->txn, out, error);
}

static uint64_t snapshot_sees(void *snapshot)
{
    return mdb_txn_id(((struct snapshot *)snapshot)->txn);
}

static uint32_t crc_of(seen_key user, const void *record, size_t len)
{
    return seen_crc32c(seen_crc32c(0, user.data, user.len), record, len);
}

/* Without the checksum; damaged: NULL, and as long as it is. */
static seen_record checked(seen_key user, const MDB_val *v)
{
    if (v->mv_size < CRC) return (seen_record){NULL, v->mv_size};
    size_t len = v->mv_size - CRC;
    uint32_t crc = seen_get_le32((const uint8_t *)v->mv_data + len);
    bool good = crc == crc_of(user, v->mv_data, len);
    return (seen_record){good ? v->mv_data : NULL, len};
}

static seen_status snapshot_get(void *snapshot, seen_key user,
                                seen_record *record)
{
    struct snapshot *s = snapshot;
    MDB_val key = {user.len, (void *)(uintptr_t)user.data}, value;
    int rc = mdb_get(s->txn, s->backend->users, &key, &value);
    if (rc) return seen_lmdb_status(rc);
    *record = checked(user, &value);
    return record->data ? SEEN_OK : SEEN_CORRUPT;
}

static seen_status snapshot_each(void *snapshot, const seen_key *after,
                                 bool (*each)(void *ctx, seen_key user,
                                              seen_record record),
                                 void *ctx)
{
    struct snapshot *s = snapshot;
    MDB_cursor *cursor;
    MDB_val key = {0}, value;
    int rc = mdb_cursor_open(s->txn, s->backend->users, &cursor);
    if (rc) return seen_lmdb_status(rc);
    if (after) {
        key = (MDB_val){after->len, (void *)(uintptr_t)after->data};
        rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        if (!rc && key.mv_size == after->len &&
            memcmp(key.mv_data, after->data, after->len) == 0)
            rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    } else {
        rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    }
    seen_status status = SEEN_OK;
    while (!rc) {
        seen_key user = {key.mv_data, key.mv_size};
        if (user.len == 0 || user.len > SEEN_USER_MAX) status = SEEN_CORRUPT;
        if (status != SEEN_OK) break; /* a page is damaged */
        if (!each(ctx, user, checked(user, &value))) break;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == 0 || rc == MDB_NOTFOUND ? status : seen_lmdb_status(rc);
}

/* ---- Transactions ------------------------------------------------------- */

static seen_status begin(void *backend, seen_error *error)
{
    struct seen_lmdb *s = backend;
    int rc = mdb_txn_begin(s->env, NULL, 0, &s->txn);
    return seen_lmdb_report(seen_lmdb_reason(s, rc), error);
}

static uint64_t number(void *backend)
{
    return mdb_txn_id(((struct seen_lmdb *)backend)->txn);
}

static seen_status put(void *backend, seen_key user, seen_record record,
                       seen_error *error)
{
    struct seen_lmdb *s = backend;
    MDB_val key = {user.len, (void *)(uintptr_t)user.data};
    MDB_val value = {record.len + CRC, NULL};
    int rc = record.len ? mdb_put(s->txn, s->users, &key, &value, MDB_RESERVE)
                        : mdb_del(s->txn, s->users, &key, NULL);
    if (!rc && record.len) {
        uint8_t *to = value.mv_data;
        memcpy(to, record.data, record.len);
        seen_put_le32(to + record.len, crc_of(user, record.data, record.len));
    }
    return rc == MDB_NOTFOUND
               ? SEEN_OK
               : seen_lmdb_report(seen_lmdb_reason(s, rc), error);
}

static void backend_abort(void *backend)
{
    struct seen_lmdb *s = backend;
    mdb_txn_abort(s->txn);
    s->txn = NULL;
}

static seen_status commit(void *backend, const struct seen_meta *m,
                          seen_error *error)
{
    struct seen_lmdb *s = backend;
    uint8_t bytes[SEEN_META_SIZE];
    MDB_val key = meta_key, value = {sizeof bytes, bytes};
    seen_meta_put(m, bytes);
    int rc = mdb_put(s->txn, s->store, &key, &value, 0);
    if (rc) {
        backend_abort(s);
        return seen_lmdb_report(seen_lmdb_reason(s, rc), error);
    }
    rc = mdb_txn_commit(s->txn);
    s->txn = NULL;
    if (!rc) rc = seen_lmdb_keep_length(s);
    return seen_lmdb_report(seen_lmdb_reason(s, rc), error);
}

static seen_status grow(void *backend)
{
    struct seen_lmdb *s = backend;
    if (!s->limited) return SEEN_FULL;
    pthread_rwlock_wrlock(&s->growing);
    int rc = mdb_env_set_mapsize(s->env, 2 * s->map);
    if (!rc) s->map *= 2;
    pthread_rwlock_unlock(&s->growing);
    return rc ? SEEN_FULL : SEEN_OK;
}

/* ---- The whole ---------------------------------------------------------- */

static void sizes(void *backend, uint64_t *users, uint64_t *bytes)
{
    struct seen_lmdb *s = backend;
    MDB_txn *txn = NULL;
    MDB_stat stat = {0};
    MDB_envinfo info;
    *users = *bytes = 0;
    if (begin_read(s, &txn) != 0) return;
    if (mdb_env_info(s->env, &info) == 0 &&
        mdb_stat(txn, s->users, &stat) == 0) {
        *users = stat.ms_entries;
        *bytes = (uint64_t)(info.me_last_pgno + 1) * stat.ms_psize;
    }
    end_read(s, txn);
}

static seen_status copy(void *backend, const char *dir, seen_error *error)
{
    struct seen_lmdb *s = backend;
    char file[SEEN_PATH_ROOM];
    if (!seen_lmdb_path(file, dir, "data.mdb")) return SEEN_IO;
    /* LMDB would make it for everybody. */
    int fd = seen_io_create_like(file, NULL);
    if (fd < 0) return SEEN_IO;
    int rc = seen_lmdb_enter(s);
    if (!rc) {
        lock_map(s);
        rc = mdb_env_copyfd2(s->env, fd, MDB_CP_COMPACT);
        unlock_map(s);
        seen_lmdb_leave(s);
    }
    seen_status status = rc ? seen_lmdb_report(rc, error) : seen_io_sync(fd);
    seen_io_close(fd);
    return status == SEEN_OK ? seen_io_sync_dir(file) : status;
}

const struct seen_backend_ops seen_backend_lmdb = {
    .there = seen_backend_there,
    .open = seen_lmdb_open,
    .close = seen_lmdb_close,
    .disown = seen_lmdb_disown,
    .meta = meta,
    .snapshot_new = snapshot_new,
    .snapshot_free = snapshot_free,
    .wake = snapshot_wake,
    .sleep = snapshot_sleep,
    .sees = snapshot_sees,
    .hold = snapshot_hold,
    .told = snapshot_told,
    .get = snapshot_get,
    .each = snapshot_each,
    .begin = begin,
    .number = number,
    .put = put,
    .commit = commit,
    .abort = backend_abort,
    .grow = grow,
    .sizes = sizes,
    .copy = copy,
};
