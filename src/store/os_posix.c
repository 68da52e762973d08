/* os_posix.c - the system calls themselves. */
#define _GNU_SOURCE /* getrandom, fallocate, flock, realpath */

#include "store/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define RANDOM_FROM ((size_t)1 << 30)
#define LINKS_MAX   40 /* as the kernel follows */

static ssize_t os_get_random(void *buf, size_t len)
{
    return getrandom(buf, len, 0);
}

static int os_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags | O_CLOEXEC, mode);
}

static int os_cloexec(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags < 0 ? -1 : fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

static void copy_stat(const struct stat *from, struct seen_stat *to)
{
    *to = (struct seen_stat){.size = (uint64_t)from->st_size,
                             .allocated = (uint64_t)from->st_blocks * 512,
                             .device = (uint64_t)from->st_dev,
                             .inode = (uint64_t)from->st_ino,
                             .links = (uint64_t)from->st_nlink,
                             .user = from->st_uid,
                             .group = from->st_gid,
                             .mode = from->st_mode & 07777,
                             .regular = S_ISREG(from->st_mode),
                             .directory = S_ISDIR(from->st_mode)};
}

/* "DIR/" of "DIR/NAME", "" of "NAME". */
static size_t dir_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Where a link leads, in the place of its name. 0: it is none. */
static int follow(char path[PATH_MAX])
{
    char to[PATH_MAX];
    ssize_t len = readlink(path, to, sizeof to - 1);
    if (len < 0) return errno == EINVAL || errno == ENOENT ? 0 : -1;
    to[len] = '\0';
    size_t dir = to[0] == '/' ? 0 : dir_len(path);
    if (dir + (size_t)len >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path + dir, to, (size_t)len + 1);
    return 1;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* The directory with its real name, so that a later chdir() changes nothing.
 * One that cannot be found stays as it is: whoever opens it will be told. */
static void make_absolute(char path[PATH_MAX])
{
    char dir[PATH_MAX], real[PATH_MAX];
    size_t len = dir_len(path), rest = strlen(path + len);
    memcpy(dir, path, len);
    strcpy(dir + len, len ? "" : ".");
    if (!realpath(dir, real)) return;
    size_t room = strlen(real);
    if (room > 1) real[room++] = '/';
    if (room + rest >= PATH_MAX) return;
    memmove(path + room, path + len, rest + 1);
    memcpy(path, real, room);
}

/* The links of /proc lead to names that are none: then the path stays. */
static int os_resolve(const char *path, char *buf, size_t cap)
{
    char real[PATH_MAX];
    int links = 0, more = 1;
    if (strlen(path) >= sizeof real || strlen(path) >= cap) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(real, path);
    while ((more = follow(real)) > 0)
        if (++links > LINKS_MAX) return errno = ELOOP, -1;
    if (more < 0) return -1;
    make_absolute(real);
    struct stat st;
    bool there = stat(path, &st) == 0;
    bool good = strlen(real) < cap && (!there || same_file(path, real));
    strcpy(buf, good ? real : path);
    return 0;
}

static int os_stat(const char *path, struct seen_stat *out)
{
    struct stat st;
    if (stat(path, &st) != 0) return -1;
    copy_stat(&st, out);
    return 0;
}

static int os_fstat(int fd, struct seen_stat *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -1;
    copy_stat(&st, out);
    return 0;
}

static ssize_t os_pread(int fd, void *buf, size_t len, uint64_t offset)
{
    return pread(fd, buf, len, (off_t)offset);
}

static ssize_t os_pwrite(int fd, const void *buf, size_t len, uint64_t offset)
{
    return pwrite(fd, buf, len, (off_t)offset);
}

static int os_truncate(int fd, uint64_t len)
{
    return ftruncate(fd, (off_t)len);
}

static int os_chown(int fd, uint32_t user, uint32_t group)
{
    return fchown(fd, user, group);
}

/* Not posix_fallocate(): where the file system cannot, that of glibc writes,
 * also over what another process has just written. */
static int os_allocate(int fd, uint64_t len)
{
    return len ? fallocate(fd, 0, 0, (off_t)len) : 0;
}

static int os_space(int fd, uint64_t *bytes)
{
    struct statvfs disk;
    if (fstatvfs(fd, &disk) != 0) return -1;
    *bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return 0;
}

static int os_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB);
}

static int os_lock_shared(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB);
}

static int os_unlock(int fd)
{
    return flock(fd, LOCK_UN);
}

static uint64_t os_process(void)
{
    return (uint64_t)getpid();
}

static uint32_t os_user(void)
{
    return geteuid();
}

static uint64_t read_clock(clockid_t which)
{
    struct timespec t;
    if (clock_gettime(which, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t os_clock(void)
{
    return read_clock(CLOCK_REALTIME);
}

static uint64_t os_ticks(void)
{
#ifdef CLOCK_BOOTTIME
    return read_clock(CLOCK_BOOTTIME);
#else
    return read_clock(CLOCK_MONOTONIC);
#endif
}

static int os_list(const char *dir, bool (*each)(void *ctx, const char *name),
                   void *ctx)
{
    DIR *d = opendir(dir);
    if (!d) return -1;
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(d)) && each(ctx, entry->d_name))
        errno = 0;
    int problem = entry ? 0 : errno;
    closedir(d);
    if (problem) errno = problem;
    return problem ? -1 : 0;
}

/* Copies what is not a hole. */
static bool read_all(int fd, uint8_t *to, size_t len)
{
    off_t at = 0, end = (off_t)len;
    while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end) {
        off_t stop = lseek(fd, at, SEEK_HOLE);
        if (stop < 0) return false;
        if (stop > end) stop = end;
        while (at < stop) {
            ssize_t n = pread(fd, to + at, (size_t)(stop - at), at);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            at += n;
        }
    }
    return at >= 0 || errno == ENXIO; /* nothing but a hole is left */
}

/* tmpfs takes a page for a hole as soon as it is looked at through a map: SIGBUS
 * where none is left. read() takes none, so such a file is copied. */
static void *map_of_holes(int fd, size_t len)
{
    struct stat st;
    struct statfs disk;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_blocks * 512 >= len ||
        fstatfs(fd, &disk) != 0 || disk.f_type != TMPFS_MAGIC)
        return NULL;
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    if (read_all(fd, at, len)) return at;
    munmap(at, len);
    return NULL;
}

static void *os_map(int fd, size_t len, enum seen_map_mode mode)
{
    void *copy = mode == SEEN_MAP_WRITE ? NULL : map_of_holes(fd, len);
    if (copy) return copy;
    int access = mode == SEEN_MAP_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    int sharing = mode == SEEN_MAP_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
    void *at = mmap(NULL, len, access, sharing, fd, 0);
    if (at == MAP_FAILED) return NULL;
    /* Filters are asked at random places. Reading ahead still pays while it
     * soon has all of the file in memory; for a large one it brings 32 pages
     * for each that is wanted. */
    if (len > RANDOM_FROM) madvise(at, len, MADV_RANDOM);
    return at;
}

static int os_msync(void *at, size_t len)
{
    return msync(at, len, MS_SYNC);
}

static const struct seen_os posix = {
    .get_random = os_get_random,
    .open = os_open,
    .close = close,
    .cloexec = os_cloexec,
    .resolve = os_resolve,
    .stat = os_stat,
    .fstat = os_fstat,
    .read = read,
    .write = write,
    .pread = os_pread,
    .pwrite = os_pwrite,
    .truncate = os_truncate,
    .chmod = fchmod,
    .chown = os_chown,
    .allocate = os_allocate,
    .space = os_space,
    .datasync = fdatasync,
    .sync = fsync,
    .rename = rename,
    .unlink = unlink,
    .mkdir = mkdir,
    .rmdir = rmdir,
    .lock = os_lock,
    .lock_shared = os_lock_shared,
    .unlock = os_unlock,
    .process = os_process,
    .user = os_user,
    .clock = os_clock,
    .ticks = os_ticks,
    .list = os_list,
    .map = os_map,
    .unmap = munmap,
    .msync = os_msync,
};

const struct seen_os *seen_os = &posix;
