/*
 * lmdb_open.c - the files of a backend in LMDB are opened, and closed.
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
 * Nor may it be led elsewhere: LMDB follows links, and writes its table of readers
 * over whatever lock.mdb leads to. Both must be regular files under their own names
 * (seen_io_open_regular). Only the directory may be reached through a link.
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

#include "users/lmdb.h"

#include "base/alloc.h"
#include "base/error.h"
#include "users/pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAP_WANTED ((size_t)1 << 40)
#define MAP_LEAST  ((size_t)1 << 26)
#define READERS    1024 /* snapshots of all processes together */
#define LOCK_BYTES                                                             \
    (READERS * 64 + 4096) /* a reader is a line for LMDB, and the
                                            head is less than that */
#define MADE 0600
#define LACK ((uint64_t)1 << 16) /* bytes free: then it was that */

/* ---- Errors ------------------------------------------------------------- */

/* LMDB calls a write that was cut short EIO; on a full disk that is for the lack
 * of space. */
int seen_lmdb_reason(const struct seen_lmdb *s, int rc)
{
    mdb_filehandle_t fd;
    uint64_t left;
    if (rc != EIO || !s->env || mdb_env_get_fd(s->env, &fd) != 0 ||
        seen_os->space(fd, &left) != 0)
        return rc;
    return left < LACK ? ENOSPC : rc;
}

/* LMDB's own codes are negative, errno's are not. */
seen_status seen_lmdb_status(int rc)
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

seen_status seen_lmdb_report(int rc, seen_error *error)
{
    seen_status status = seen_lmdb_status(rc);
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
static void hide(struct seen_lmdb *s)
{
    mdb_filehandle_t fd;
    if (mdb_env_get_fd(s->env, &fd) == 0) (void)seen_os->cloexec(fd);
}

static int open_env(struct seen_lmdb *s, const char *dir, bool write)
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
static int open_databases(struct seen_lmdb *s, bool write)
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
static struct seen_lmdb *open_backends;
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

static bool enlist(struct seen_lmdb *s)
{
    bool twice = false;
    s->process = seen_os->process();
    lock_list(s->process);
    for (struct seen_lmdb *o = open_backends; o; o = o->next)
        twice |= o->device == s->device && o->inode == s->inode &&
                 o->process == s->process;
    if (!twice) {
        s->next = open_backends;
        open_backends = s;
    }
    unlock_list();
    return !twice;
}

static void strike_off(struct seen_lmdb *s)
{
    lock_list(seen_os->process());
    struct seen_lmdb **o = &open_backends;
    while (*o && *o != s)
        o = &(*o)->next;
    if (*o) *o = s->next;
    unlock_list();
}

void seen_lmdb_disown(void *backend)
{
    ((struct seen_lmdb *)backend)->disowned = true;
}

/* Locks may be held by threads that are not here. */
static void close_disowned(struct seen_lmdb *s)
{
    strike_off(s);
    if (pthread_mutex_trylock(&s->gate) != 0) return;
    seen_io_close(s->writers_lock);
    seen_release(&seen_system_memory, s, sizeof *s);
}

void seen_lmdb_close(void *backend)
{
    struct seen_lmdb *s = backend;
    if (s->disowned) {
        close_disowned(s);
        return;
    }
    if (s->env) mdb_env_close(s->env);
    strike_off(s);
    seen_io_close(s->writers_lock);
    pthread_mutex_destroy(&s->gate);
    pthread_rwlock_destroy(&s->growing);
    seen_release(&seen_system_memory, s, sizeof *s);
}

bool seen_lmdb_path(char buf[SEEN_PATH_ROOM], const char *dir, const char *name)
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
    struct seen_lmdb s = {0};
    int rc = mdb_env_create(&s.env);
    if (!rc) rc = mdb_env_set_mapsize(s.env, MAP_LEAST);
    if (!rc) rc = mdb_env_set_maxdbs(s.env, 2);
    if (!rc) rc = mdb_env_open(s.env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600);
    if (!rc) rc = open_databases(&s, true);
    rc = seen_lmdb_reason(&s, rc);
    if (s.env) mdb_env_close(s.env);
    return seen_lmdb_report(rc, error);
}

/* May this user do it? LMDB would say only that it may not. Is all of it there?
 * LMDB would not ask. */
static seen_status check_data(const char *file, bool write, seen_error *error)
{
    int fd = seen_io_open_regular(file, write ? O_RDWR : O_RDONLY);
    if (fd < 0 && errno != ENOENT)
        return errno == ELOOP || errno == ENODEV
                   ? seen_fail(error, SEEN_IO, NULL, "%s data.mdb: %s",
                               write ? "write" : "read", seen_io_why())
                   : seen_fail_io(error, NULL,
                                  write ? "write data.mdb" : "read data.mdb");
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
int seen_lmdb_keep_length(struct seen_lmdb *s)
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
    if (fd < 0 && errno == EEXIST) fd = seen_io_open_regular(file, O_RDWR);
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
static seen_status go_lockless(struct seen_lmdb *s, const char *dir, bool write,
                               seen_error *error)
{
    int why = errno;
    bool can = why == EACCES || why == EPERM || why == EROFS || why == ENOSPC ||
               why == EDQUOT;
    if (why == ELOOP || why == ENODEV)
        return seen_fail(error, SEEN_IO, NULL, "lock.mdb: %s", seen_io_why());
    if (write || !can) return seen_fail_io(error, NULL, "open lock.mdb");
    if (!seen_lmdb_path(s->writers_name, dir, "seen.lock"))
        return seen_fail_io(error, NULL, "open seen.lock");
    s->lockless = true;
    int fd = seen_io_open_regular(s->writers_name, O_RDONLY);
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
int seen_lmdb_enter(struct seen_lmdb *s)
{
    seen_status status = SEEN_OK;
    if (!s->lockless || !s->writers_name[0]) return 0;
    pthread_mutex_lock(&s->gate);
    if (s->inside == 0) {
        s->writers_lock = seen_io_open_regular(s->writers_name, O_RDONLY);
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

void seen_lmdb_leave(struct seen_lmdb *s)
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

static seen_status open_files(struct seen_lmdb *s, const char *dir, bool write,
                              seen_error *error)
{
    char data[SEEN_PATH_ROOM], locks[SEEN_PATH_ROOM];
    bool made, made_locks = false;
    if (!seen_lmdb_path(data, dir, "data.mdb") ||
        !seen_lmdb_path(locks, dir, "lock.mdb"))
        return seen_fail_io(error, NULL, "name data.mdb");
    seen_status status = seen_backend_look(dir, &made, error);
    if (status == SEEN_OK) status = check_data(data, write, error);
    if (status == SEEN_OK && write && !made)
        status = seen_backend_make(dir, fill_new, error);
    if (status == SEEN_OK && prepare_locks(locks, data, &made_locks) != SEEN_OK)
        status = go_lockless(s, dir, write, error);
    if (status != SEEN_OK) return status;
    int rc = seen_lmdb_enter(s);
    bool inside = rc == 0;
    if (!rc) rc = open_env(s, dir, write);
    if (!rc) rc = open_databases(s, write);
    if (!rc && write) rc = seen_lmdb_keep_length(s);
    if (inside) seen_lmdb_leave(s);
    if (!rc) return SEEN_OK;
    status = seen_lmdb_report(seen_lmdb_reason(s, rc), error);
    if (made_locks) seen_os->unlink(locks);
    return status;
}

seen_status seen_lmdb_open(void **out, const char *dir, bool write,
                           seen_error *error)
{
    struct seen_stat st;
    if (seen_os->stat(dir, &st) != 0)
        return seen_fail_io(error, NULL, "look at the directory");
    struct seen_lmdb *s = seen_alloc_zeroed(&seen_system_memory, sizeof *s);
    if (!s) return SEEN_NOMEM;
    pthread_rwlock_init(&s->growing, NULL);
    pthread_mutex_init(&s->gate, NULL);
    s->writers_lock = -1;
    s->device = st.device;
    s->inode = st.inode;
    if (!enlist(s)) {
        seen_lmdb_close(s);
        return seen_fail(error, SEEN_BUSY, NULL,
                         "this process has it open: share that handle");
    }
    seen_status status = open_files(s, dir, write, error);
    if (status == SEEN_OK)
        *out = s;
    else
        seen_lmdb_close(s);
    return status;
}
