/* os_posix.c - the system calls themselves. */
#define _GNU_SOURCE /* getrandom, posix_fallocate, flock */

#include "store/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_FROM ((size_t)1 << 30)

static ssize_t os_get_random(void *buf, size_t len)
{
    return getrandom(buf, len, 0);
}

static int os_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags | O_CLOEXEC, mode);
}

static void copy_stat(const struct stat *from, struct seen_stat *to)
{
    *to = (struct seen_stat){.size = (uint64_t)from->st_size,
                             .device = (uint64_t)from->st_dev,
                             .inode = (uint64_t)from->st_ino,
                             .mode = from->st_mode & 07777,
                             .regular = S_ISREG(from->st_mode),
                             .directory = S_ISDIR(from->st_mode)};
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

static int os_allocate(int fd, uint64_t len)
{
    int problem = len ? posix_fallocate(fd, 0, (off_t)len) : 0;
    if (problem) errno = problem;
    return problem ? -1 : 0;
}

static int os_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB);
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

static void *os_map(int fd, size_t len, enum seen_map_mode mode)
{
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
    .stat = os_stat,
    .fstat = os_fstat,
    .read = read,
    .write = write,
    .pread = os_pread,
    .pwrite = os_pwrite,
    .truncate = os_truncate,
    .chmod = fchmod,
    .allocate = os_allocate,
    .datasync = fdatasync,
    .sync = fsync,
    .rename = rename,
    .unlink = unlink,
    .mkdir = mkdir,
    .lock = os_lock,
    .list = os_list,
    .map = os_map,
    .unmap = munmap,
    .msync = os_msync,
};

const struct seen_os *seen_os = &posix;
