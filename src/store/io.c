/* io.c - see io.h. */
#define _POSIX_C_SOURCE 200809L

#include "store/io.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PIECE  65536
#define SECTOR 512 /* no file system has smaller blocks */

int seen_io_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = seen_os->open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int seen_io_open_regular(const char *path, int flags)
{
    struct seen_stat st;
    int fd = seen_io_open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENXIO) errno = ENODEV; /* a socket */
    if (fd < 0) return fd;
    int problem = seen_os->fstat(fd, &st) != 0 ? errno
                  : st.regular                 ? 0
                                               : ENODEV;
    if (!problem) return fd;
    seen_io_close(fd);
    errno = problem;
    return -1;
}

const char *seen_io_why(void)
{
    if (errno == ELOOP) return "is a symbolic link: expected a regular file";
    if (errno == ENODEV) return "is not a regular file";
    return strerror(errno);
}

static mode_t without_group(mode_t mode)
{
    return (mode & 0707) | (mode & 0007) << 3;
}

/* An ordinary user may not, or the file system knows no such thing. */
static bool not_for_us(void)
{
    return errno == EPERM || errno == EINVAL || errno == ENOSYS ||
           errno == EOPNOTSUPP;
}

/* Gives errno, or 0. *mode loses what the group had, if it is another one. */
static int give_away(int fd, const struct seen_stat *now,
                     const struct seen_stat *like, mode_t *mode)
{
    if (now->user == like->user && now->group == like->group) return 0;
    if (seen_os->chown(fd, like->user, like->group) == 0) return 0;
    if (!not_for_us()) return errno;
    if (now->group == like->group) return 0;
    if (seen_os->chown(fd, now->user, like->group) == 0) return 0;
    if (!not_for_us()) return errno;
    *mode &= without_group(*mode);
    return 0;
}

static bool make_like(int fd, const struct seen_stat *like)
{
    struct seen_stat now;
    mode_t mode = (mode_t)like->mode & 0777;
    if (seen_os->fstat(fd, &now) != 0) return false;
    int problem = give_away(fd, &now, like, &mode);
    if (!problem && mode != (now.mode & 0777) &&
        seen_os->chmod(fd, mode) != 0 && !not_for_us())
        problem = errno;
    errno = problem;
    return problem == 0;
}

int seen_io_create_like(const char *path, const struct seen_stat *like)
{
    int fd = seen_io_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0 || !like || make_like(fd, like)) return fd;
    int before = errno;
    seen_os->unlink(path);
    errno = before;
    seen_io_close(fd);
    return -1;
}

void seen_io_close(int fd)
{
    int before = errno;
    if (fd >= 0) seen_os->close(fd);
    errno = before;
}

void seen_io_release(int fd)
{
    int before = errno;
    if (fd >= 0) (void)seen_os->unlock(fd); /* if it cannot, closing may */
    errno = before;
    seen_io_close(fd);
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

/*
 * flock() knows no deadline, and what would give it one (a signal, a thread that
 * may stay behind) is nothing for a library. So it is asked again and again, at a
 * constant pace: with a growing one, those who came first would ask least often.
 */
#define NAP_MS 3

static uint64_t steady_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool seen_io_wait(uint64_t *began, uint64_t wait_ms)
{
    if (wait_ms == 0) return false;
    uint64_t now_ms = steady_ms() + 1; /* 0 is nobody's time */
    if (!*began) *began = now_ms;
    if (now_ms - *began >= wait_ms) return false;
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
    return true;
}

static seen_status lock_shared(int fd)
{
    AGAIN(seen_os->lock_shared(fd));
}

seen_status seen_io_lock_shared(int fd)
{
    seen_status status = lock_shared(fd);
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

seen_status seen_io_reserve(int fd, uint64_t len)
{
    AGAIN(seen_os->allocate(fd, len));
}

static bool has_zero_sector(const uint8_t *bytes, size_t len)
{
    static const uint8_t zeros[SECTOR];
    for (size_t at = 0; at < len; at += SECTOR)
        if (memcmp(bytes + at, zeros, len - at < SECTOR ? len - at : SECTOR) ==
            0)
            return true;
    return false;
}

/* What is zero may be a hole, and what is missing is one: both are written. */
static seen_status write_zeros(int fd, uint64_t len)
{
    uint8_t piece[PIECE];
    for (uint64_t at = 0; at < len; at += PIECE) {
        size_t size = len - at < PIECE ? (size_t)(len - at) : PIECE, got;
        memset(piece, 0, size);
        seen_status status = seen_io_read_at(fd, piece, size, at, &got);
        if (status == SEEN_OK && (got < size || has_zero_sector(piece, size)))
            status = seen_io_write_at(fd, piece, size, at);
        if (status != SEEN_OK) return status;
    }
    return SEEN_OK;
}

seen_status seen_io_allocate(int fd, uint64_t len)
{
    struct seen_stat st;
    seen_status status = seen_io_reserve(fd, len);
    if (status == SEEN_OK || (errno != EOPNOTSUPP && errno != EINVAL))
        return status;
    if (seen_os->fstat(fd, &st) != 0) return SEEN_IO;
    if (st.size >= len && st.allocated >= st.size) return SEEN_OK;
    return write_zeros(fd, len);
}

seen_status seen_io_resolve(const char *path, char *buf, size_t cap)
{
    return seen_os->resolve(path, buf, cap) == 0 ? SEEN_OK : SEEN_IO;
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
    char dir[SEEN_PATH_ROOM];
    seen_status status = seen_io_dir_of(path, dir, sizeof dir);
    if (status != SEEN_OK) return status;
    int fd = seen_io_open(dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return SEEN_IO;
    status = seen_io_sync(fd);
    seen_io_close(fd);
    return status;
}
