/*
 * whole.c - seen_file_write(): bytes that make one file, all of them or none.
 *
 * For the filters of other systems, whose files have neither journal nor room
 * for one: they are written beside and renamed. Both files are locked, so that of
 * two who write at once one is told so.
 */
#define _POSIX_C_SOURCE 200809L

#include "store/io.h"
#include "store/journal.h"
#include "store/report.h"

#include <errno.h>
#include <stdio.h>

#define PATH_ROOM 4096
#define ATTEMPTS  10

/* A device or a pipe: no renaming there, just the bytes. */
static seen_status pour(const char *path, const void *bytes, size_t len,
                        seen_store_report *r)
{
    int fd = seen_io_open(path, O_WRONLY, 0);
    if (fd < 0) return seen_report_io(r, "open");
    seen_status status = seen_io_write(fd, bytes, len);
    if (status != SEEN_OK) seen_report_io(r, "write");
    seen_io_close(fd);
    return status;
}

static seen_status fill(int fd, const void *bytes, size_t len, bool replaces,
                        mode_t mode, seen_store_report *r)
{
    /* As the old one, whatever the umask says; a file system may know no modes. */
    if (replaces) (void)seen_os->chmod(fd, mode);
    if (seen_io_truncate(fd, 0) != SEEN_OK ||
        (len && seen_io_write_at(fd, bytes, len, 0) != SEEN_OK))
        return seen_report_io(r, "write");
    return seen_io_sync(fd) == SEEN_OK ? SEEN_OK : seen_report_io(r, "sync");
}

/* Is this still the file of that name? */
static bool still_there(const char *path, int fd)
{
    struct seen_stat a, b;
    return seen_os->stat(path, &a) == 0 && seen_os->fstat(fd, &b) == 0 &&
           a.device == b.device && a.inode == b.inode;
}

/* The file beside, ours alone; whoever had it before may have renamed it while
 * we waited to be let in. */
static seen_status open_beside(const char *beside, mode_t mode, int *out,
                               seen_store_report *r)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = seen_io_open(beside, O_RDWR | O_CREAT | O_NOFOLLOW, mode);
        if (fd < 0) return seen_report_io(r, "create beside");
        seen_status status = seen_io_lock(fd);
        if (status == SEEN_OK && still_there(beside, fd)) {
            *out = fd;
            return SEEN_OK;
        }
        seen_io_close(fd);
        if (status == SEEN_IO) return seen_report_io(r, "lock");
        if (status != SEEN_OK) break;
    }
    return seen_report(r, SEEN_BUSY, "another program is writing %s",
                       seen_io_base(beside));
}

/* Of the file that is there: a writer would go on with it unseen. */
static seen_status lock_old(const char *path, int *out, seen_store_report *r)
{
    *out = seen_io_open(path, O_RDONLY, 0);
    if (*out < 0) return seen_report_io(r, "open");
    seen_status status = seen_io_lock(*out);
    if (status == SEEN_OK) return status;
    seen_io_close(*out);
    return status == SEEN_BUSY
               ? seen_report(r, status, "another program is changing it")
               : seen_report_io(r, "lock");
}

/* Beside, then in its place; and no journal of what was there is left. */
static seen_status replace(const char *path, bool replaces, mode_t mode,
                           const void *bytes, size_t len, seen_store_report *r)
{
    char beside[PATH_ROOM];
    int fd = -1, room = snprintf(beside, sizeof beside, "%s.seen-new", path);
    if (room < 0 || room >= PATH_ROOM) {
        errno = ENAMETOOLONG;
        return seen_report_io(r, "name");
    }
    seen_status status = open_beside(beside, mode, &fd, r);
    if (status != SEEN_OK) return status;
    status = fill(fd, bytes, len, replaces, mode, r);
    if (status == SEEN_OK && seen_os->rename(beside, path) != 0)
        status = seen_report_io(r, "rename");
    if (status == SEEN_OK) {
        if (r) r->created = true;
        status = seen_io_sync_dir(path);
        if (status != SEEN_OK) seen_report_io(r, "sync directory");
    } else {
        int before = errno;
        seen_os->unlink(beside);
        errno = before;
    }
    seen_io_close(fd);
    if (status == SEEN_OK && seen_journal_remove(path) != SEEN_OK)
        status = seen_report_io(r, "remove the old journal");
    return status;
}

seen_status seen_file_write(const char *path, const void *bytes, size_t len,
                            seen_store_report *r)
{
    seen_report_begin(r);
    if (!path || (len && !bytes))
        return seen_report(r, SEEN_INVALID, "%s", seen_strerror(SEEN_INVALID));
    struct seen_stat st = {.mode = 0666};
    bool replaces = seen_os->stat(path, &st) == 0;
    if (!replaces && errno != ENOENT) return seen_report_io(r, "look");
    if (replaces && st.directory)
        return seen_report(r, SEEN_INVALID, "is a directory");
    if (replaces && !st.regular) return pour(path, bytes, len, r);
    int old = -1;
    seen_status status = replaces ? lock_old(path, &old, r) : SEEN_OK;
    if (status != SEEN_OK) return status;
    status = replace(path, replaces, st.mode, bytes, len, r);
    if (old >= 0) seen_io_close(old);
    return status;
}
