/* io.c - see io.h. */
#define _POSIX_C_SOURCE 200809L

#include "store/io.h"

#include <errno.h>
#include <string.h>

#define PATH_ROOM 4096

int seen_io_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = seen_os->open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

void seen_io_close(int fd)
{
    int before = errno;
    if (fd >= 0) seen_os->close(fd);
    errno = before;
}

seen_status seen_io_write_at(int fd, const void *buf, size_t len,
                             uint64_t offset)
{
    const uint8_t *from = buf;
    while (len > 0) {
        ssize_t put = seen_os->pwrite(fd, from, len, offset);
        if (put < 0 && errno == EINTR) continue;
        if (put == 0) errno = EIO;
        if (put <= 0) return SEEN_IO;
        from += put;
        offset += (uint64_t)put;
        len -= (size_t)put;
    }
    return SEEN_OK;
}

seen_status seen_io_write(int fd, const void *buf, size_t len)
{
    const uint8_t *from = buf;
    while (len > 0) {
        ssize_t put = seen_os->write(fd, from, len);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return SEEN_IO;
        from += put;
        len -= (size_t)put;
    }
    return SEEN_OK;
}

seen_status seen_io_read_at(int fd, void *buf, size_t len, uint64_t offset,
                            size_t *got)
{
    uint8_t *to = buf;
    *got = 0;
    while (*got < len) {
        ssize_t more = seen_os->pread(fd, to + *got, len - *got, offset + *got);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return SEEN_IO;
        if (more == 0) break;
        *got += (size_t)more;
    }
    return SEEN_OK;
}

/* Calls that give 0 or -1, and may be interrupted. */
#define AGAIN(call)                                                            \
    int result;                                                                \
    do                                                                         \
        result = (call);                                                       \
    while (result != 0 && errno == EINTR);                                     \
    return result == 0 ? SEEN_OK : SEEN_IO

seen_status seen_io_truncate(int fd, uint64_t len)
{
    AGAIN(seen_os->truncate(fd, len));
}

static seen_status lock(int fd)
{
    AGAIN(seen_os->lock(fd));
}

seen_status seen_io_lock(int fd)
{
    seen_status status = lock(fd);
    return status != SEEN_OK && errno == EWOULDBLOCK ? SEEN_BUSY : status;
}

seen_status seen_io_sync(int fd)
{
    AGAIN(seen_os->sync(fd));
}

seen_status seen_io_datasync(int fd)
{
    AGAIN(seen_os->datasync(fd));
}

static seen_status allocate(int fd, uint64_t len)
{
    AGAIN(seen_os->allocate(fd, len));
}

seen_status seen_io_allocate(int fd, uint64_t len)
{
    seen_status status = allocate(fd, len);
    if (status == SEEN_OK || (errno != EOPNOTSUPP && errno != EINVAL))
        return status;
    return seen_io_truncate(fd, len);
}

const char *seen_io_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

seen_status seen_io_dir_of(const char *path, char *buf, size_t cap)
{
    size_t len = (size_t)(seen_io_base(path) - path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *from = len ? path : ".";
    if (!len) len = 1;
    if (len + 1 > cap) {
        errno = ENAMETOOLONG;
        return SEEN_IO;
    }
    memcpy(buf, from, len);
    buf[len] = '\0';
    return SEEN_OK;
}

seen_status seen_io_sync_dir(const char *path)
{
    char dir[PATH_ROOM];
    seen_status status = seen_io_dir_of(path, dir, sizeof dir);
    if (status != SEEN_OK) return status;
    int fd = seen_io_open(dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return SEEN_IO;
    status = seen_io_sync(fd);
    seen_io_close(fd);
    return status;
}
