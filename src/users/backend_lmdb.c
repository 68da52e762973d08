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
 *
 * LMDB must not be opened twice in one process: closing one would release the
 * file locks of the other. Hence the list of what is open. Nor may an environment
 * be used after fork(): a child that ends a transaction, or closes it, would clear
 * its parent's slots in lock.mdb, and pages that the parent reads would be
 * overwritten. So a child leaves it as it is (disown): the map and two or three
 * descriptors stay until it exits. It may open the store anew; the locks of that
 * are safe because the descriptors of the old one are never closed.
 *
 * And LMDB must not be given a file that was cut short: it would read behind the
 * end of the map's file, which is SIGBUS (check_data, pages.c).
 *
 * Both files are for nobody but their maker: data.mdb has the secret. Whoever
 * lets others read it says so with chmod, and what is made later is like it.
 *
 * LMDB maps lock.mdb and writes there, readers too. It has its blocks before
 * that, or a full disk would be SIGBUS (prepare_locks). A reader who may not write
 * it, or finds no room for it, does without LMDB's locks. Then nothing would keep
 * a writer from reusing the pages that are being read; so such a reader shares
 * the lock that writers hold, seen.lock, while it reads, and is SEEN_BUSY while
 * there is a writer.
 */
#define _XOPEN_SOURCE 700

#include "users/backend.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "store/io.h"
#include "users/pages.h"

#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAP_WANTED ((size_t)1 << 40)
#define MAP_LEAST  ((size_t)1 << 26)
#define READERS    1024 /* views of all processes together */
#define LOCK_BYTES                                                             \
    (READERS * 64 + 4096) /* a reader is a line for LMDB, and the
                                            head is less than that */
#define MADE 0600
#define LACK ((uint64_t)1 << 16) /* bytes free: then it was that */
#define CRC  4                   /* bytes behind a record */

struct backend {
    struct backend *next; /* in the list of what is open */
    uint64_t process;     /* that opened it */
    uint64_t device, inode;
    bool disowned; /* we are another one */
    MDB_env *env;
    MDB_dbi users, store;
    MDB_txn *txn; /* the one that is being made */
    size_t map;
    bool limited; /* the map may have to grow: */
    pthread_rwlock_t growing;
    atomic_uint held; /* views that are awake without the lock */

    bool lockless;                     /* no lock.mdb: */
    pthread_mutex_t gate;              /* for the rest */
    unsigned inside;                   /* who reads now */
    int writers_lock;                  /* shared as long as somebody does; -1 */
    char writers_name[SEEN_PATH_ROOM]; /* "": none comes here */
};

struct view {
    struct backend *backend;
    MDB_txn *txn;
    bool awake, held;
};

static const seen_allocator system_memory;

/* ---- Errors ------------------------------------------------------------- */

/* LMDB calls a write that was cut short EIO; on a full disk that is for the lack
 * of space. */
static int real_reason(const struct backend *s, int rc)
{
    mdb_filehandle_t fd;
    uint64_t left;
    if (rc != EIO || !s->env || mdb_env_get_fd(s->env, &fd) != 0 ||
        seen_os->space(fd, &left) != 0)
        return rc;
    return left < LACK ? ENOSPC : rc;
}

/* LMDB's own codes are negative, errno's are not. */
static seen_status status_of(int rc)
{
    if (rc == 0) return SEEN_OK;
    if (rc == MDB_NOTFOUND) return SEEN_ABSENT;
    if (rc == MDB_MAP_FULL) return SEEN_FULL;
    if (rc == ENOMEM) return SEEN_NOMEM;
    if (rc == MDB_READERS_FULL || rc == MDB_MAP_RESIZED || rc == EBUSY)
        return SEEN_BUSY;
    errno = rc > 0 ? rc : EIO;
    return rc > 0 ? SEEN_IO : SEEN_CORRUPT;
}

static seen_status reported(int rc, seen_error *error)
{
    seen_status status = status_of(rc);
    if (status == SEEN_OK || status == SEEN_ABSENT) return status;
    if (rc == EBUSY)
        return seen_fail(error, status, NULL,
                         "a writer is at work, and this user may not write "
                         "lock.mdb, which readers need beside one: allow "
                         "it, or try again when the writer has ended");
    seen_fail(error, status, NULL, "LMDB: %s", mdb_strerror(rc));
    if (error && rc > 0) error->os_errno = rc;
    return status;
}

/* ---- Opening ------------------------------------------------------------ */

/* LMDB 0.9.24 leaves the descriptor of data.mdb, which has the secret, to programs
 * that are started. If that cannot be helped, it is as it was. */
static void hide(struct backend *s)
{
    mdb_filehandle_t fd;
    if (mdb_env_get_fd(s->env, &fd) == 0) (void)seen_os->cloexec(fd);
}

static int open_env(struct backend *s, const char *dir, bool write)
{
    unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (write ? 0 : MDB_RDONLY) |
                     (s->lockless ? MDB_NOLOCK : 0);
    int rc = ENOMEM;
    for (s->map = MAP_WANTED; s->map >= MAP_LEAST; s->map /= 16) {
        rc = mdb_env_create(&s->env);
        if (rc) return rc;
        rc = mdb_env_set_mapsize(s->env, s->map);
        if (!rc) rc = mdb_env_set_maxdbs(s->env, 2);
        if (!rc) rc = mdb_env_set_maxreaders(s->env, READERS);
        if (!rc) rc = mdb_env_open(s->env, dir, flags, MADE);
        if (rc != ENOMEM) break;
        mdb_env_close(s->env);
        s->env = NULL;
    }
    s->limited = s->map < MAP_WANTED;
    if (!rc) hide(s);
    return rc;
}

/* What readers that died have left behind would keep old pages forever. */
static int open_databases(struct backend *s, bool write)
{
    MDB_txn *txn;
    int dead, rc = mdb_reader_check(s->env, &dead);
    if (!rc) rc = mdb_txn_begin(s->env, NULL, write ? 0 : MDB_RDONLY, &txn);
    if (rc) return rc;
    unsigned create = write ? MDB_CREATE : 0;
    rc = mdb_dbi_open(txn, "users", create, &s->users);
    if (!rc) rc = mdb_dbi_open(txn, "seen", create, &s->store);
    if (!rc) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/*
 * The list is whole between any two stores into it, so a child that was forked in
 * the middle of a change can use it. A mutex could not be had any more if another
 * thread held it then; this lock says which process holds it, and one of another
 * process is nobody's.
 */
static struct backend *open_backends;
static atomic_uint_fast64_t open_lock; /* a process, or 0 */

static void lock_list(uint64_t us)
{
    uint64_t holder = 0;
    while (!atomic_compare_exchange_weak(&open_lock, &holder, us))
        if (holder == us) {
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
            holder = 0;
        }
}

static void unlock_list(void)
{
    atomic_store(&open_lock, 0);
}

static bool enlist(struct backend *s)
{
    bool twice = false;
    s->process = seen_os->process();
    lock_list(s->process);
    for (struct backend *o = open_backends; o; o = o->next)
        twice |= o->device == s->device && o->inode == s->inode &&
                 o->process == s->process;
    if (!twice) {
        s->next = open_backends;
        open_backends = s;
    }
    unlock_list();
    return !twice;
}

static void strike_off(struct backend *s)
{
    lock_list(seen_os->process());
    struct backend **o = &open_backends;
    while (*o && *o != s)
        o = &(*o)->next;
    if (*o) *o = s->next;
    unlock_list();
}

static void disown(void *backend)
{
    ((struct backend *)backend)->disowned = true;
}

/* Locks may be held by threads that are not here. */
static void close_disowned(struct backend *s)
{
    strike_off(s);
    if (pthread_mutex_trylock(&s->gate) != 0) return;
    seen_io_close(s->writers_lock);
    seen_release(&system_memory, s, sizeof *s);
}

static void backend_close(void *backend)
{
    struct backend *s = backend;
    if (s->disowned) {
        close_disowned(s);
        return;
    }
    if (s->env) mdb_env_close(s->env);
    strike_off(s);
    seen_io_close(s->writers_lock);
    pthread_mutex_destroy(&s->gate);
    pthread_rwlock_destroy(&s->growing);
    seen_release(&system_memory, s, sizeof *s);
}

static bool name_file(char buf[SEEN_PATH_ROOM], const char *dir,
                      const char *name)
{
    int len = snprintf(buf, SEEN_PATH_ROOM, "%s/%s", dir, name);
    if (len > 0 && len < SEEN_PATH_ROOM) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* The two databases, and nothing in them, into an empty file. LMDB itself would
 * leave half of one when the power or the space fails. */
static seen_status fill_new(const char *path, seen_error *error)
{
    struct backend s = {0};
    int rc = mdb_env_create(&s.env);
    if (!rc) rc = mdb_env_set_mapsize(s.env, MAP_LEAST);
    if (!rc) rc = mdb_env_set_maxdbs(s.env, 2);
    if (!rc) rc = mdb_env_open(s.env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600);
    if (!rc) rc = open_databases(&s, true);
    rc = real_reason(&s, rc);
    if (s.env) mdb_env_close(s.env);
    return reported(rc, error);
}

/* May this user do it? LMDB would say only that it may not. Is all of it there?
 * LMDB would not ask. */
static seen_status check_data(const char *file, bool write, seen_error *error)
{
    int fd = seen_io_open(file, write ? O_RDWR : O_RDONLY, 0);
    if (fd < 0 && errno != ENOENT)
        return seen_fail(error, SEEN_IO, NULL, "%s data.mdb: %s",
                         write ? "write" : "read", strerror(errno));
    seen_status status = fd < 0 ? SEEN_OK : seen_pages_check(fd, error);
    seen_io_close(fd);
    return status;
}

/*
 * As long as it says. What a transaction took from the end of the file and did not
 * use is never written, and of a file that is too short all pages must be looked for
 * when it is opened (pages.c). If this fails, the transaction is there all the same;
 * whoever made it is told, as a disk that cannot do this is not to be trusted.
 */
static int keep_length(struct backend *s)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_filehandle_t fd;
    struct seen_stat st;
    int rc = mdb_env_info(s->env, &info);
    if (!rc) rc = mdb_env_stat(s->env, &stat);
    if (!rc) rc = mdb_env_get_fd(s->env, &fd);
    if (rc) return rc;
    if (seen_os->fstat(fd, &st) != 0) return errno;
    uint64_t size = (uint64_t)(info.me_last_pgno + 1) * stat.ms_psize;
    if (st.size >= size || seen_io_truncate(fd, size) == SEEN_OK) return 0;
    return errno;
}

/* Blocks for all of lock.mdb, which others may have in use: only what is new is
 * written to. */
static seen_status allocate_locks(int fd, bool made)
{
    struct seen_stat st;
    if (made) return seen_io_allocate(fd, LOCK_BYTES);
    if (seen_os->fstat(fd, &st) != 0) return SEEN_IO;
    uint64_t size = st.size ? st.size : LOCK_BYTES;
    if (st.size && st.allocated >= size) return SEEN_OK;
    seen_status status = seen_io_reserve(fd, size);
    return status != SEEN_OK && errno == EOPNOTSUPP ? SEEN_OK : status;
}

/* lock.mdb as LMDB will want it. *made: it was not there. SEEN_IO: errno. */
static seen_status prepare_locks(const char *file, const char *data, bool *made)
{
    struct seen_stat like;
    bool alike = seen_os->stat(data, &like) == 0;
    if (!alike && errno != ENOENT) return SEEN_IO;
    int fd = seen_io_create_like(file, alike ? &like : NULL);
    *made = fd >= 0;
    if (fd < 0 && errno == EEXIST) fd = seen_io_open(file, O_RDWR, 0);
    if (fd < 0) return SEEN_IO;
    seen_status status = allocate_locks(fd, *made);
    seen_io_close(fd);
    if (status != SEEN_OK && *made) {
        int before = errno;
        seen_os->unlink(file);
        errno = before;
    }
    return status;
}

/* ---- Readers without lock.mdb ------------------------------------------- */

/* Is it one, and why? Otherwise errno says what is wrong with lock.mdb. */
static seen_status go_lockless(struct backend *s, const char *dir, bool write,
                               seen_error *error)
{
    int why = errno;
    bool can = why == EACCES || why == EPERM || why == EROFS || why == ENOSPC ||
               why == EDQUOT;
    if (write || !can) return seen_fail_io(error, NULL, "lock.mdb");
    if (!name_file(s->writers_name, dir, "seen.lock"))
        return seen_fail_io(error, NULL, "seen.lock");
    s->lockless = true;
    int fd = seen_io_open(s->writers_name, O_RDONLY, 0);
    seen_io_close(fd);
    if (fd >= 0) return SEEN_OK;
    s->writers_name[0] = '\0';
    if (why == EROFS) return SEEN_OK; /* nobody writes there */
    return seen_fail(error, SEEN_IO, NULL,
                     "lock.mdb: %s, and seen.lock: %s; a reader must be "
                     "able to write the one or to read the other",
                     strerror(why), strerror(errno));
}

/* While this reader is in, no writer is. */
static int enter(struct backend *s)
{
    seen_status status = SEEN_OK;
    if (!s->lockless || !s->writers_name[0]) return 0;
    pthread_mutex_lock(&s->gate);
    if (s->inside == 0) {
        s->writers_lock = seen_io_open(s->writers_name, O_RDONLY, 0);
        status = s->writers_lock < 0 ? SEEN_IO
                                     : seen_io_lock_shared(s->writers_lock);
        if (status != SEEN_OK) {
            seen_io_close(s->writers_lock);
            s->writers_lock = -1;
        }
    }
    if (status == SEEN_OK) s->inside++;
    pthread_mutex_unlock(&s->gate);
    return status == SEEN_OK ? 0 : status == SEEN_BUSY ? EBUSY : errno;
}

static void leave(struct backend *s)
{
    if (!s->lockless || !s->writers_name[0]) return;
    pthread_mutex_lock(&s->gate);
    if (--s->inside == 0) {
        seen_io_close(s->writers_lock);
        s->writers_lock = -1;
    }
    pthread_mutex_unlock(&s->gate);
}

/* ---- Opening it --------------------------------------------------------- */

static seen_status open_files(struct backend *s, const char *dir, bool write,
                              seen_error *error)
{
    char data[SEEN_PATH_ROOM], locks[SEEN_PATH_ROOM];
    bool made, made_locks = false;
    if (!name_file(data, dir, "data.mdb") || !name_file(locks, dir, "lock.mdb"))
        return seen_fail_io(error, NULL, "name");
    seen_status status = seen_backend_look(dir, &made, error);
    if (status == SEEN_OK) status = check_data(data, write, error);
    if (status == SEEN_OK && write && !made)
        status = seen_backend_make(dir, fill_new, error);
    if (status == SEEN_OK && prepare_locks(locks, data, &made_locks) != SEEN_OK)
        status = go_lockless(s, dir, write, error);
    if (status != SEEN_OK) return status;
    int rc = enter(s);
    bool inside = rc == 0;
    if (!rc) rc = open_env(s, dir, write);
    if (!rc) rc = open_databases(s, write);
    if (!rc && write) rc = keep_length(s);
    if (inside) leave(s);
    if (!rc) return SEEN_OK;
    status = reported(real_reason(s, rc), error);
    if (made_locks) seen_os->unlink(locks);
    return status;
}

static seen_status backend_open(void **out, const char *dir, bool write,
                                seen_error *error)
{
    struct seen_stat st;
    if (seen_os->stat(dir, &st) != 0) return seen_fail_io(error, NULL, "look");
    struct backend *s = seen_alloc_zeroed(&system_memory, sizeof *s);
    if (!s) return SEEN_NOMEM;
    pthread_rwlock_init(&s->growing, NULL);
    pthread_mutex_init(&s->gate, NULL);
    s->writers_lock = -1;
    s->device = st.device;
    s->inode = st.inode;
    if (!enlist(s)) {
        backend_close(s);
        return seen_fail(error, SEEN_BUSY, NULL,
                         "this process has it open: share that handle");
    }
    seen_status status = open_files(s, dir, write, error);
    if (status == SEEN_OK)
        *out = s;
    else
        backend_close(s);
    return status;
}

/* ---- Transactions that read --------------------------------------------- */

static void lock_map(struct backend *s)
{
    if (s->limited) pthread_rwlock_rdlock(&s->growing);
}

static void unlock_map(struct backend *s)
{
    if (s->limited) pthread_rwlock_unlock(&s->growing);
}

/* Another process has made the map larger: so do we, unless somebody is reading
 * in it. With the lock, which is let go meanwhile. */
static int follow(struct backend *s)
{
    if (!s->limited || s->held) return MDB_MAP_RESIZED;
    pthread_rwlock_unlock(&s->growing);
    pthread_rwlock_wrlock(&s->growing);
    int rc = mdb_env_set_mapsize(s->env, 0);
    pthread_rwlock_unlock(&s->growing);
    pthread_rwlock_rdlock(&s->growing);
    return rc;
}

static int begin_or_renew(struct backend *s, MDB_txn **txn)
{
    if (*txn) return mdb_txn_renew(*txn);
    return mdb_txn_begin(s->env, NULL, MDB_RDONLY, txn);
}

/* *txn: NULL, or one that was reset. On success the map is locked. */
static int begin_read(struct backend *s, MDB_txn **txn)
{
    int rc = enter(s);
    if (rc) return rc;
    lock_map(s);
    rc = begin_or_renew(s, txn);
    if (rc == MDB_MAP_RESIZED) {
        rc = follow(s);
        if (!rc) rc = begin_or_renew(s, txn);
    }
    if (rc) {
        unlock_map(s);
        leave(s);
    }
    return rc;
}

static void end_read(struct backend *s, MDB_txn *txn)
{
    mdb_txn_abort(txn);
    unlock_map(s);
    leave(s);
}

static const MDB_val meta_key = {5, "store"};

static seen_status get_meta(const struct backend *s, MDB_txn *txn,
                            struct seen_meta *out, seen_error *error)
{
    MDB_val key = meta_key, value;
    seen_status status = reported(mdb_get(txn, s->store, &key, &value), error);
    if (status != SEEN_OK) return status;
    status = seen_meta_get(value.mv_data, value.mv_size, out);
    if (status != SEEN_OK)
        seen_fail(error, status, NULL, "what the store says about itself: %s",
                  seen_strerror(status));
    return status;
}

static seen_status meta(void *backend, struct seen_meta *out, seen_error *error)
{
    struct backend *s = backend;
    MDB_txn *txn = NULL;
    int rc = begin_read(s, &txn);
    if (rc) return reported(rc, error);
    seen_status status = get_meta(s, txn, out, error);
    end_read(s, txn);
    return status;
}

/* ---- Views -------------------------------------------------------------- */

static seen_status view_new(void *backend, void **out)
{
    struct view *v = seen_alloc_zeroed(&system_memory, sizeof *v);
    if (!v) return SEEN_NOMEM;
    v->backend = backend;
    *out = v;
    return SEEN_OK;
}

static void view_sleep(void *view)
{
    struct view *v = view;
    if (!v->awake) return;
    mdb_txn_reset(v->txn);
    v->awake = false;
    if (v->held)
        v->backend->held--;
    else
        unlock_map(v->backend);
    leave(v->backend);
    v->held = false;
}

/* A reader with a tail looks into its tables while it is awake, and others wake
 * while they do: with the lock that would be two orders. */
static void view_hold(void *view)
{
    struct view *v = view;
    v->backend->held++;
    unlock_map(v->backend);
    v->held = true;
}

static void view_free(void *view)
{
    struct view *v = view;
    if (!v) return;
    if (!v->backend->disowned) {
        view_sleep(v);
        if (v->txn) mdb_txn_abort(v->txn);
    }
    seen_release(&system_memory, v, sizeof *v);
}

static seen_status view_wake(void *view, seen_error *error)
{
    struct view *v = view;
    if (v->awake) return SEEN_OK;
    int rc = begin_read(v->backend, &v->txn);
    v->awake = rc == 0;
    return reported(rc, error);
}

static seen_status view_told(void *view, struct seen_meta *out,
                             seen_error *error)
{
    const struct view *v = view;
    return get_meta(v->backend, v->txn, out, error);
}

static uint64_t view_sees(void *view)
{
    return mdb_txn_id(((struct view *)view)->txn);
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

static seen_status view_get(void *view, seen_key user, seen_record *record)
{
    struct view *v = view;
    MDB_val key = {user.len, (void *)(uintptr_t)user.data}, value;
    int rc = mdb_get(v->txn, v->backend->users, &key, &value);
    if (rc) return status_of(rc);
    *record = checked(user, &value);
    return record->data ? SEEN_OK : SEEN_CORRUPT;
}

static seen_status
view_each(void *view, const seen_key *after,
          bool (*each)(void *ctx, seen_key user, seen_record record), void *ctx)
{
    struct view *v = view;
    MDB_cursor *cursor;
    MDB_val key = {0}, value;
    int rc = mdb_cursor_open(v->txn, v->backend->users, &cursor);
    if (rc) return status_of(rc);
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
    return rc == 0 || rc == MDB_NOTFOUND ? status : status_of(rc);
}

/* ---- Transactions ------------------------------------------------------- */

static seen_status begin(void *backend, seen_error *error)
{
    struct backend *s = backend;
    int rc = mdb_txn_begin(s->env, NULL, 0, &s->txn);
    return reported(real_reason(s, rc), error);
}

static uint64_t number(void *backend)
{
    return mdb_txn_id(((struct backend *)backend)->txn);
}

static seen_status put(void *backend, seen_key user, seen_record record,
                       seen_error *error)
{
    struct backend *s = backend;
    MDB_val key = {user.len, (void *)(uintptr_t)user.data};
    MDB_val value = {record.len + CRC, NULL};
    int rc = record.len ? mdb_put(s->txn, s->users, &key, &value, MDB_RESERVE)
                        : mdb_del(s->txn, s->users, &key, NULL);
    if (!rc && record.len) {
        uint8_t *to = value.mv_data;
        memcpy(to, record.data, record.len);
        seen_put_le32(to + record.len, crc_of(user, record.data, record.len));
    }
    return rc == MDB_NOTFOUND ? SEEN_OK : reported(real_reason(s, rc), error);
}

static void backend_abort(void *backend)
{
    struct backend *s = backend;
    mdb_txn_abort(s->txn);
    s->txn = NULL;
}

static seen_status commit(void *backend, const struct seen_meta *m,
                          seen_error *error)
{
    struct backend *s = backend;
    uint8_t bytes[SEEN_META_SIZE];
    MDB_val key = meta_key, value = {sizeof bytes, bytes};
    seen_meta_put(m, bytes);
    int rc = mdb_put(s->txn, s->store, &key, &value, 0);
    if (rc) {
        backend_abort(s);
        return reported(real_reason(s, rc), error);
    }
    rc = mdb_txn_commit(s->txn);
    s->txn = NULL;
    if (!rc) rc = keep_length(s);
    return reported(real_reason(s, rc), error);
}

static seen_status grow(void *backend)
{
    struct backend *s = backend;
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
    struct backend *s = backend;
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
    struct backend *s = backend;
    char file[SEEN_PATH_ROOM];
    if (!name_file(file, dir, "data.mdb")) return SEEN_IO;
    /* LMDB would make it for everybody. */
    int fd = seen_io_create_like(file, NULL);
    if (fd < 0) return SEEN_IO;
    int rc = enter(s);
    if (!rc) {
        lock_map(s);
        rc = mdb_env_copyfd2(s->env, fd, MDB_CP_COMPACT);
        unlock_map(s);
        leave(s);
    }
    seen_status status = rc ? reported(rc, error) : seen_io_sync(fd);
    seen_io_close(fd);
    return status == SEEN_OK ? seen_io_sync_dir(file) : status;
}

const struct seen_backend_ops seen_backend_lmdb = {
    .there = seen_backend_there,
    .open = backend_open,
    .close = backend_close,
    .disown = disown,
    .meta = meta,
    .view_new = view_new,
    .view_free = view_free,
    .wake = view_wake,
    .sleep = view_sleep,
    .sees = view_sees,
    .hold = view_hold,
    .told = view_told,
    .get = view_get,
    .each = view_each,
    .begin = begin,
    .number = number,
    .put = put,
    .commit = commit,
    .abort = backend_abort,
    .grow = grow,
    .sizes = sizes,
    .copy = copy,
};
