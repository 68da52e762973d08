/*
 * io.h - the loops that every caller of os.h needs: until all is done, again
 * after EINTR, on after a short count. SEEN_IO leaves errno as the call left it.
 */
#ifndef SEEN_IO_H
#define SEEN_IO_H

#include "seen.h"

#include "store/os.h"

#define SEEN_PATH_ROOM 4096 /* for a path, with its end */

/* -1 and errno, or a descriptor. */
int seen_io_open(const char *path, int flags, mode_t mode);

/* A regular file that is there, under a name where strangers may have put a link, a
 * pipe or a device: never followed (ELOOP), never waited for (ENODEV). */
int seen_io_open_regular(const char *path, int flags);
/* What errno means after it. */
const char *seen_io_why(void);

/*
 * A file that was not there, EEXIST otherwise: for nobody but us until it has the
 * owner, the group and the permissions of `like` (NULL: it stays so), and that is
 * before its first byte. What this process may not give away gives nobody more
 * than they had: without the group, its permissions are those of others.
 */
int seen_io_create_like(const char *path, const struct seen_stat *like);

/* Never changes errno: what went wrong before is what counts. */
void seen_io_close(int fd);

/* The same of a file that we have locked: others may lock it, even if a child that
 * was forked meanwhile has it open. */
void seen_io_release(int fd);

seen_status seen_io_write_at(int fd, const void *buf, size_t len,
                             uint64_t offset);
seen_status seen_io_write(int fd, const void *buf, size_t len); /* a pipe */
/* *got is less than len only at the end of the file. */
seen_status seen_io_read_at(int fd, void *buf, size_t len, uint64_t offset,
                            size_t *got);
seen_status seen_io_truncate(int fd, uint64_t len);
/* Space for the first len bytes, so that writing there later, also through a
 * map, cannot fail for the lack of it. Where the file system cannot promise
 * that, what is zero is written: nobody else may be changing the file. */
seen_status seen_io_allocate(int fd, uint64_t len);
/* The same without writing: EOPNOTSUPP where it cannot be promised. */
seen_status seen_io_reserve(int fd, uint64_t len);
seen_status seen_io_lock(int fd);        /* SEEN_BUSY: another program has it */
seen_status seen_io_lock_shared(int fd); /* with others who share it */

/* For who got SEEN_BUSY: true after a nap, to try once more; false when wait_ms
 * have passed since the first call, which finds 0 in *began. */
bool seen_io_wait(uint64_t *began, uint64_t wait_ms);

seen_status seen_io_sync(int fd);
seen_status seen_io_datasync(int fd);

/* The directory that holds `path`: what was created, renamed or removed in it
 * is on disk afterwards. */
seen_status seen_io_sync_dir(const char *path);

/* The name of what a path means: see os.h. */
seen_status seen_io_resolve(const char *path, char *buf, size_t cap);

/* "DIR" of "DIR/NAME", "." of "NAME", into buf; and NAME itself. */
seen_status seen_io_dir_of(const char *path, char *buf, size_t cap);
const char *seen_io_base(const char *path);

#endif
