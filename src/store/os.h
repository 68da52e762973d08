/*
 * os.h - every system call that libseen_store makes for its files, behind one
 * struct that tests can replace: to make any of them fail, or to cut the power
 * between two of them. (LMDB and hiredis make their own, redis/client.c some about
 * time and signals, and io.c sleeps where it waits for a writer.)
 *
 * Each means what its namesake in POSIX means, down to errno, EINTR and short
 * counts; store/io.c has the loops that everybody needs around them. `map` and
 * its companions work on whole files from offset 0.
 */
#ifndef SEEN_OS_H
#define SEEN_OS_H

#include "base/base.h"

#include <fcntl.h> /* O_RDWR and so on */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What stat(2) is asked for. */
struct seen_stat {
    uint64_t size;
    uint64_t allocated;     /* bytes that have their place on disk */
    uint64_t device, inode; /* together: which file */
    uint64_t links;         /* names that it has */
    uint32_t mode;          /* permissions */
    uint32_t user, group;   /* that it belongs to */
    bool regular, directory;
};

enum seen_map_mode {
    SEEN_MAP_READ,    /* shared, read-only */
    SEEN_MAP_WRITE,   /* shared, changes reach the file */
    SEEN_MAP_PRIVATE, /* changes stay in this process */
};

struct seen_os {
    ssize_t (*get_random)(void *buf, size_t len); /* as getrandom(2) */

    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd);
    int (*cloexec)(int fd); /* of others: what open() gives is so already */
    /* The name of what a path means, also of a file that is yet to be made: the
     * links that it leads through followed, absolute where that can be. */
    int (*resolve)(const char *path, char *buf, size_t cap);
    int (*stat)(const char *path, struct seen_stat *out);
    int (*fstat)(int fd, struct seen_stat *out);
    ssize_t (*read)(int fd, void *buf, size_t len); /* pipes, too */
    ssize_t (*write)(int fd, const void *buf, size_t len);
    ssize_t (*pread)(int fd, void *buf, size_t len, uint64_t offset);
    ssize_t (*pwrite)(int fd, const void *buf, size_t len, uint64_t offset);
    int (*truncate)(int fd, uint64_t len);
    int (*chmod)(int fd, mode_t mode);                   /* fchmod */
    int (*chown)(int fd, uint32_t user, uint32_t group); /* fchown */
    int (*allocate)(int fd, uint64_t len); /* fallocate(2) from 0: EOPNOTSUPP
                                              where it cannot be promised */
    int (*space)(int fd, uint64_t *bytes); /* free on its file system */
    int (*datasync)(int fd);               /* fdatasync */
    int (*sync)(int fd);                   /* fsync, also of directories */
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rmdir)(const char *path);
    int (*lock)(int fd);        /* flock(LOCK_EX | LOCK_NB) */
    int (*lock_shared)(int fd); /* flock(LOCK_SH | LOCK_NB) */
    int (*unlock)(int fd);      /* flock(LOCK_UN), whoever shares it */
    uint64_t (*process)(void);  /* that we are: getpid(2) */
    uint32_t (*user)(void);     /* that we act as: geteuid(2) */
    uint64_t (*clock)(void);    /* the machine's: milliseconds since 1970 */
    uint64_t (*ticks)(void);    /* milliseconds from some moment on, also while
                                   the machine sleeps; nobody can set it */

    /* Calls `each` with the names in a directory until it gives false. */
    int (*list)(const char *dir, bool (*each)(void *ctx, const char *name),
                void *ctx);

    void *(*map)(int fd, size_t len, enum seen_map_mode mode); /* NULL: errno */
    int (*unmap)(void *at, size_t len);
    int (*msync)(void *at, size_t len); /* MS_SYNC; `at` on a page */
};

/* The real thing, unless a test put something else here. */
SEEN_PRIVATE extern const struct seen_os *seen_os;

#endif
