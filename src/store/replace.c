/* replace.c - see replace.h. */
#define _POSIX_C_SOURCE 200809L

#include "store/replace.h"

#include <errno.h>
#include <stdio.h>

#define PATH_ROOM 4096
#define ATTEMPTS  100

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
                            seen_store_report *r)
{
    struct seen_stat st = {0};
    *there = (struct seen_there){.fd = -1};
    if (seen_os->stat(path, &st) != 0)
        return errno == ENOENT ? SEEN_OK : seen_report_io(r, "look");
    if (st.directory) return seen_report(r, SEEN_INVALID, "is a directory");
    there->mode = (mode_t)st.mode;
    there->stream = !st.regular;
    if (there->stream) return SEEN_OK;
    seen_status status = seen_open_locked(path, O_RDONLY, 0, &there->fd);
    if (status == SEEN_BUSY)
        return seen_report(
            r, status,
            "another program is changing it: try again when it has ended");
    if (status == SEEN_IO) return seen_report_io(r, "open");
    return SEEN_OK; /* or it has just gone */
}

/* A name that nobody gives to a file of his own: it is overwritten. */
static bool name_new(char *buf, const char *path)
{
    int len = snprintf(buf, PATH_ROOM, "%s.seen-new", path);
    if (len > 0 && len < PATH_ROOM) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Would a rename to `path` take away nothing but what we have locked (old, -1:
 * nothing)? Whoever asks holds the lock of the file beside, without which nobody
 * renames: the answer stays true. */
static bool ours_to_replace(const char *path, int old)
{
    struct seen_stat st;
    if (old >= 0 && seen_still_there(path, old)) return true;
    return seen_os->stat(path, &st) != 0 && errno == ENOENT;
}

seen_status seen_replace(const struct seen_replacing *what, int *fd,
                         seen_store_report *r)
{
    char beside[PATH_ROOM];
    if (!name_new(beside, what->path)) return seen_report_io(r, "name");
    int to = -1;
    seen_status status = seen_open_locked(beside, O_RDWR | O_CREAT | O_NOFOLLOW,
                                          what->mode, &to);
    if (status == SEEN_BUSY)
        return seen_report(r, status, "another program is writing %s",
                           seen_io_base(beside));
    if (status != SEEN_OK) return seen_report_io(r, "create a file beside it");
    if (!ours_to_replace(what->path, what->old)) {
        status = seen_report(r, SEEN_BUSY, "another program has just made it");
        goto fail;
    }

    /* As the old one, whatever the umask says; a file system may know no modes. */
    if (what->old >= 0) (void)seen_os->chmod(to, what->mode);
    status = seen_io_truncate(to, 0); /* what a crash may have left there */
    if (status == SEEN_OK) status = what->write(what->ctx, to);
    if (status != SEEN_OK) {
        if (status == SEEN_IO) seen_report_io(r, "write");
        goto fail;
    }
    if (seen_os->rename(beside, what->path) != 0) {
        status = seen_report_io(r, "rename");
        goto fail;
    }
    *fd = to;
    status = seen_io_sync_dir(what->path);
    return status == SEEN_OK ? status : seen_report_io(r, "sync directory");

fail:;
    int before = errno;
    seen_os->unlink(beside);
    errno = before;
    seen_io_close(to);
    return status;
}
