/* replace.c - see replace.h. */
#define _POSIX_C_SOURCE 200809L

#include "store/replace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ATTEMPTS 100

bool seen_still_there(const char *path, int fd)
{
    struct seen_stat a, b;
    return seen_os->stat(path, &a) == 0 && seen_os->fstat(fd, &b) == 0 &&
           a.device == b.device && a.inode == b.inode;
}

seen_status seen_open_locked(const char *path, int flags, mode_t mode, int *out)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = seen_io_open(path, flags, mode);
        if (fd < 0) return errno == ENOENT ? SEEN_ABSENT : SEEN_IO;
        seen_status status = seen_io_lock(fd);
        if (status != SEEN_OK) {
            seen_io_close(fd);
            return status;
        }
        if (seen_still_there(path, fd)) {
            *out = fd;
            return SEEN_OK;
        }
        seen_io_close(fd);
    }
    return SEEN_BUSY;
}

seen_status seen_find_there(const char *path, struct seen_there *there,
                            seen_error *error)
{
    struct seen_stat st = {0};
    *there = (struct seen_there){.fd = -1};
    if (seen_os->stat(path, &st) != 0)
        return errno == ENOENT
                   ? SEEN_OK
                   : seen_fail_io(error, "path", "look at the file");
    if (st.directory)
        return seen_fail(error, SEEN_INVALID, "path",
                         "is a directory: expected a file");
    there->stream = !st.regular;
    if (there->stream) return SEEN_OK;
    seen_status status = seen_open_locked(path, O_RDONLY, 0, &there->fd);
    if (status == SEEN_BUSY)
        return seen_fail(
            error, status, "path",
            "another program is changing it: try again when it has ended");
    if (status == SEEN_IO) return seen_fail_io(error, "path", "open the file");
    return SEEN_OK; /* or it has just gone */
}

/* A name that nobody gives to a file of their own: it is removed. */
static bool name_new(char *buf, const char *path)
{
    int len = snprintf(buf, SEEN_PATH_ROOM, "%s.seen-new", path);
    if (len > 0 && len < SEEN_PATH_ROOM) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* A file that was not there, like the one that it shall replace. */
static int create_beside(const struct seen_replacing *what, const char *beside)
{
    struct seen_stat like;
    if (what->old < 0)
        return seen_io_open(beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                            what->mode);
    if (seen_os->fstat(what->old, &like) != 0) return -1;
    return seen_io_create_like(beside, &like);
}

/*
 * What is there, at a name of ours: the file of a writer at work, who has it
 * locked (SEEN_BUSY), or what a dead one has left. A writer between making and
 * locking it finds it gone afterwards, and makes another.
 */
static seen_status remove_stale(const char *beside, seen_error *error)
{
    struct seen_stat st;
    int fd = seen_io_open(beside, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) return SEEN_OK;
    seen_status status = fd < 0 ? SEEN_IO : SEEN_OK;
    if (status == SEEN_OK && seen_os->fstat(fd, &st) != 0) status = SEEN_IO;
    if (status == SEEN_OK && !st.regular) {
        errno = EEXIST;
        status = SEEN_IO;
    }
    if (status == SEEN_OK) status = seen_io_lock(fd);
    if (status == SEEN_OK && seen_still_there(beside, fd) &&
        seen_os->unlink(beside) != 0 && errno != ENOENT)
        status = SEEN_IO;
    seen_io_close(fd);
    if (status != SEEN_IO) return status;
    char what[SEEN_PATH_ROOM + 64];
    snprintf(what, sizeof what,
             "create a file beside it: %s is in the way: remove it",
             seen_io_base(beside));
    return seen_fail_io(error, "path", what);
}

/* A new file beside, locked. */
static seen_status open_beside(const struct seen_replacing *what,
                               const char *beside, int *to, seen_error *error)
{
    seen_status status = SEEN_OK;
    for (int i = 0; i < ATTEMPTS && status == SEEN_OK; i++) {
        int fd = create_beside(what, beside);
        if (fd < 0 && errno != EEXIST)
            return seen_fail_io(error, "path", "create a file beside it");
        if (fd < 0) {
            status = remove_stale(beside, error);
            continue;
        }
        status = seen_io_lock(fd);
        if (status == SEEN_OK && seen_still_there(beside, fd)) {
            *to = fd;
            return SEEN_OK;
        }
        seen_io_close(fd);
        if (status == SEEN_IO)
            seen_fail_io(error, "path", "lock a file beside it");
    }
    if (status == SEEN_IO) return status;
    return seen_fail(error, SEEN_BUSY, "path",
                     "another program is writing %s: try again when it has "
                     "ended",
                     seen_io_base(beside));
}

/* A rename to `path` must take away nothing but what we have locked (old, -1:
 * nothing). Whoever asks holds the lock of the file beside, without which nobody
 * renames: the answer stays true. */
static seen_status check_ours(const char *path, int old, seen_error *error)
{
    struct seen_stat now, ours;
    if (seen_os->stat(path, &now) != 0)
        return errno == ENOENT
                   ? SEEN_OK
                   : seen_fail_io(error, "path", "look at the file");
    if (old >= 0 && seen_os->fstat(old, &ours) != 0)
        return seen_fail_io(error, "path", "look at the file");
    if (old >= 0 && now.device == ours.device && now.inode == ours.inode)
        return SEEN_OK;
    return seen_fail(error, SEEN_BUSY, "path",
                     "another program has just made it: try again");
}

seen_status seen_replace(const struct seen_replacing *what, int *fd,
                         seen_error *error)
{
    char beside[SEEN_PATH_ROOM];
    if (!name_new(beside, what->path))
        return seen_fail_io(error, "path", "name a file beside it");
    int to = -1;
    seen_status status = open_beside(what, beside, &to, error);
    if (status != SEEN_OK) return status;
    status = check_ours(what->path, what->old, error);
    if (status != SEEN_OK) goto fail;

    status = what->write(what->ctx, to);
    if (status != SEEN_OK) {
        if (status == SEEN_IO)
            seen_fail_io(error, "path", "write a file beside it");
        goto fail;
    }
    if (seen_io_sync(to) != SEEN_OK) {
        status = seen_fail_io(error, "path", "sync the file beside it");
        goto fail;
    }
    if (seen_os->rename(beside, what->path) != 0) {
        status = seen_fail_io(error, "path", "rename the file beside it");
        goto fail;
    }
    *fd = to;
    status = seen_io_sync_dir(what->path);
    return status == SEEN_OK
               ? status
               : seen_fail_io(error, "path", "sync the directory");

fail:;
    int before = errno;
    seen_os->unlink(beside);
    errno = before;
    seen_io_close(to);
    return status;
}
