/*
 * backend.c - how the file of a backend comes into being.
 *
 *     data.mdb.seen-new   made and filled, on disk
 *     data.mdb            the same file, renamed; its name is on disk
 *
 * The journal comes later. So whatever the power does, data.mdb is whole if it is
 * there, and a journal that holds anything is never there without it. An empty one
 * is not what we have left of a file, but what a copy has.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/backend.h"

#include "base/error.h"
#include "store/io.h"

#include <errno.h>
#include <stdio.h>

/* It will hold the store's secret. */
#define PRIVATE  0600
#define TOO_LONG "the name of the directory is too long"

static seen_status nothing_there(const char *path)
{
    return seen_os->unlink(path) == 0 || errno == ENOENT ? SEEN_OK : SEEN_IO;
}

static seen_status make_empty(const char *path)
{
    int fd =
        seen_io_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, PRIVATE);
    if (fd < 0) return SEEN_IO;
    seen_io_close(fd);
    return SEEN_OK;
}

static seen_status sync_file(const char *path)
{
    int fd = seen_io_open(path, O_RDONLY, 0);
    if (fd < 0) return SEEN_IO;
    seen_status status = seen_io_sync(fd);
    seen_io_close(fd);
    return status;
}

/* Whoever makes a store holds its lock: what lies there was left by a crash. */
seen_status seen_backend_make(const char *dir,
                              seen_status (*fill)(const char *path,
                                                  seen_error *error),
                              seen_error *error)
{
    char data[SEEN_PATH_ROOM], beside[SEEN_PATH_ROOM];
    int len = snprintf(beside, sizeof beside, "%s/data.mdb.seen-new", dir);
    if (len < 0 || len >= SEEN_PATH_ROOM)
        return seen_fail(error, SEEN_INVALID, NULL, TOO_LONG);
    snprintf(data, sizeof data, "%s/data.mdb", dir);
    if (nothing_there(beside) != SEEN_OK || make_empty(beside) != SEEN_OK)
        return seen_fail_io(error, NULL, "make data.mdb");
    seen_status status = fill(beside, error);
    if (status == SEEN_OK &&
        (sync_file(beside) != SEEN_OK || seen_os->rename(beside, data) != 0 ||
         seen_io_sync_dir(data) != SEEN_OK))
        status = seen_fail_io(error, NULL, "make data.mdb");
    int before = errno;
    if (status != SEEN_OK) (void)nothing_there(beside);
    errno = before;
    return status;
}

seen_status seen_backend_look(const char *dir, bool *made, seen_error *error)
{
    char data[SEEN_PATH_ROOM];
    struct seen_stat st = {0};
    *made = true; /* if in doubt: it will not be made again over another */
    int len = snprintf(data, sizeof data, "%s/data.mdb", dir);
    if (len < 0 || len >= SEEN_PATH_ROOM)
        return seen_fail(error, SEEN_INVALID, NULL, TOO_LONG);
    *made = seen_os->stat(data, &st) == 0;
    if (*made || errno == ENOENT) return SEEN_OK;
    *made = true;
    return seen_fail_io(error, NULL, "look at data.mdb");
}

bool seen_backend_there(const char *dir)
{
    bool made;
    (void)seen_backend_look(dir, &made, NULL);
    return made;
}
