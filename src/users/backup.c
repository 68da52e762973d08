/*
 * backup.c - a copy of a store while others work with it.
 *
 *     DIR.seen-new   made for nobody but us, locked, filled, on disk
 *     DIR            the same directory, renamed
 *
 * What a backup that died has left is removed by the next one.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/error.h"
#include "store/io.h"
#include "store/replace.h"

#include <errno.h>
#include <stdlib.h>

#define ATTEMPTS 100

static seen_status copy_frame(void *to, const struct seen_frame *f)
{
    uint64_t number;
    return seen_journal_append(to, f->type, f->payload, f->len, &number);
}

/*
 * The journal first, then the backend: should a checkpoint come in between, the
 * backend knows frames that the journal has, too, and says so. Should a writer
 * come or go in between, it is done again.
 */
static seen_status copy_once(struct seen_local *l, const char *dir, bool *again,
                             seen_error *error)
{
    struct seen_meta before, after;
    struct seen_replayed out;
    char *path = seen_path_join(dir, "seen");
    seen_journal *to = NULL;
    *again = false;
    seen_status status = path ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = l->ops->meta(l->backend, &before, error);
    if (status == SEEN_OK)
        status = seen_journal_open(&to, path, NULL, before.id, before.epoch,
                                   before.sequence);
    if (status == SEEN_OK) {
        status = seen_journal_replay(l->journal_path, before.id,
                                     before.sequence, copy_frame, to, &out);
        if (status == SEEN_CORRUPT) *again = true;
        if (status != SEEN_OK)
            seen_fail(error, status, NULL, "journal: %s", out.problem);
    }
    if (status == SEEN_OK)
        status = seen_journal_commit(to, seen_journal_last(to));
    if (status == SEEN_OK) status = l->ops->copy(l->backend, dir, error);
    if (status == SEEN_OK) status = l->ops->meta(l->backend, &after, error);
    if (status == SEEN_OK) *again = after.epoch != before.epoch;
    seen_journal_close(to);
    free(path);
    return status;
}

static bool remove_file(const char *dir, const char *name)
{
    char *path = seen_path_join(dir, name);
    bool gone = path && (seen_os->unlink(path) == 0 || errno == ENOENT);
    free(path);
    return gone;
}

/* What an attempt has left; others' files are left alone. */
static seen_status clear_copy(const char *dir, seen_error *error)
{
    char *path = seen_path_join(dir, "seen");
    seen_status status = path ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK &&
        (seen_journal_remove(path) != SEEN_OK || !remove_file(dir, "data.mdb")))
        status = seen_fail_io(error, "dir", "remove an older copy");
    free(path);
    return status;
}

/* Of a directory that we have locked. Its lock goes last but one: who waits to
 * take over finds no lock, or no directory. */
static seen_status remove_copy(const char *dir, seen_error *error)
{
    seen_status status = clear_copy(dir, error);
    if (status != SEEN_OK) return status;
    if (remove_file(dir, "seen.lock") && seen_os->rmdir(dir) == 0)
        return SEEN_OK;
    return seen_fail(error, SEEN_IO, "dir",
                     "%s is in the way, and holds what is not of a backup: "
                     "remove it",
                     seen_io_base(dir));
}

/* The directory that another one is in: who has it, and who may rename there. */
static bool find_parent(const char *dir, struct seen_stat *st)
{
    char parent[SEEN_PATH_ROOM];
    return seen_io_dir_of(dir, parent, sizeof parent) == SEEN_OK &&
           seen_os->stat(parent, st) == 0;
}

enum {
    ALL_WRITE = 0002,
    OTHERS_WRITE = 0022,
    STICKY = 01000
};

/* May nobody but us and root put something else in the place of a directory of
 * ours? Its files are removed by their names, and these must not lead elsewhere
 * meanwhile. */
static bool name_is_ours(const char *dir)
{
    struct seen_stat st;
    if (!find_parent(dir, &st)) return false;
    if (st.user != 0 && st.user != seen_os->user()) return false;
    return !(st.mode & OTHERS_WRITE) || st.mode & STICKY;
}

/* May everybody? Then a link can take the place of the new directory before the
 * first file is made in it by name. (Of a group, members are trusted so far.) */
static seen_status refuse_open_place(const char *dir, seen_error *error)
{
    struct seen_stat st;
    if (!find_parent(dir, &st))
        return seen_fail_io(error, "dir", "look at the directory above it");
    if (!(st.mode & ALL_WRITE) || st.mode & STICKY) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "dir",
                     "every user can rename what is in that directory: copy "
                     "to one of your own, or make it sticky (chmod +t)");
}

/* What has the name is a directory of ours, no link to one, and stays so. */
static bool is_ours(const char *dir, int fd)
{
    struct seen_stat st;
    return seen_os->fstat(fd, &st) == 0 && st.user == seen_os->user() &&
           name_is_ours(dir) && seen_still_there(dir, fd);
}

/* What a backup that died has left is removed: whoever made the directory, or has
 * it open, would have the copy, too. Never through a link, and never where others
 * could put one in its place. */
static seen_status remove_stale_copy(const char *dir, seen_error *error)
{
    int lock = -1,
        fd = seen_io_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOENT) return SEEN_OK;
    bool ours = fd >= 0 && is_ours(dir, fd);
    seen_io_close(fd);
    if (!ours)
        return seen_fail(error, SEEN_IO, "dir",
                         "%s is in the way, and is not a directory of ours "
                         "alone: remove it",
                         seen_io_base(dir));
    seen_status status = seen_recover_lock(dir, &lock, error);
    if (status == SEEN_OK) status = remove_copy(dir, error);
    seen_io_close(lock);
    return status;
}

/* A directory that was not there, for nobody but us, and locked. */
static seen_status make_copy_dir(const char *dir, int *lock, seen_error *error)
{
    int made = seen_os->mkdir(dir, SEEN_STORE_PRIVATE);
    if (made != 0 && errno == EEXIST) {
        seen_status status = remove_stale_copy(dir, error);
        if (status != SEEN_OK) return status;
        made = seen_os->mkdir(dir, SEEN_STORE_PRIVATE);
    }
    return made == 0 ? seen_recover_lock(dir, lock, error)
                     : seen_fail_io(error, "dir", "make the directory");
}

static seen_status copy_beside(struct seen_local *l, const char *beside,
                               seen_error *error)
{
    seen_status status = SEEN_OK;
    bool again = true;
    for (int i = 0; again && i < ATTEMPTS; i++) {
        seen_error_begin(error);
        status = clear_copy(beside, error);
        again = false;
        if (status == SEEN_OK) status = copy_once(l, beside, &again, error);
    }
    if (status == SEEN_OK && again)
        return seen_fail(error, SEEN_BUSY, "u",
                         "writers come and go too fast: try again");
    return status == SEEN_IO ? seen_fail_io(error, "dir", "copy") : status;
}

/* What came of it is at `dir`, or nowhere. */
static seen_status backup_to(struct seen_local *l, const char *beside,
                             const char *dir, seen_error *error)
{
    int lock = -1;
    seen_status status = make_copy_dir(beside, &lock, error);
    if (status == SEEN_OK) {
        status = copy_beside(l, beside, error);
        if (status == SEEN_OK && seen_os->rename(beside, dir) != 0)
            status = seen_fail_io(error, "dir", "rename the copy");
        int before = errno;
        if (status != SEEN_OK) (void)remove_copy(beside, NULL);
        errno = before;
    }
    if (status == SEEN_OK && seen_io_sync_dir(beside) != SEEN_OK)
        status = seen_fail_io(error, "dir", "sync the directory above it");
    seen_io_close(lock);
    return status;
}

seen_status seen_backup_make(struct seen_users *u, const char *name,
                             seen_error *error)
{
    struct seen_local *l = (struct seen_local *)u;
    struct seen_stat st;
    if (!l->backend)
        return seen_fail(error, SEEN_UNSUPPORTED, "u",
                         "a store in memory has nothing on disk to copy");
    if (seen_os->stat(name, &st) == 0)
        return seen_fail(error, SEEN_INVALID, "dir",
                         "is there already: name a directory to make");
    if (errno != ENOENT) return seen_fail_io(error, "dir", "look at it");
    char *dir = NULL, *beside = NULL;
    seen_status status = seen_recover_dir(name, "", &dir, error);
    if (status == SEEN_OK)
        status = seen_recover_dir(name, ".seen-new", &beside, error);
    if (status == SEEN_OK) status = refuse_open_place(beside, error);
    if (status == SEEN_OK) status = backup_to(l, beside, dir, error);
    free(dir);
    free(beside);
    return status;
}
