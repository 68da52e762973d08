/*
 * io.h - the loops that every caller of os.h needs: until all is done, again
 * after EINTR, on after a short count. SEEN_IO leaves errno as the call left it.
 */
#ifndef SEEN_IO_H
#define SEEN_IO_H

#include "seen.h"

#include "store/os.h"

/* -1 and errno, or a descriptor. */
int seen_io_open(const char *path, int flags, mode_t mode);
/* Never changes errno: what went wrong before is what counts. */
void seen_io_close(int fd);

seen_status seen_io_write_at(int fd, const void *buf, size_t len,
                             uint64_t offset);
seen_status seen_io_write(int fd, const void *buf, size_t len); /* a pipe */
/* *got is less than len only at the end of the file. */
seen_status seen_io_read_at(int fd, void *buf, size_t len, uint64_t offset,
                            size_t *got);
seen_status seen_io_truncate(int fd, uint64_t len);
/* Space for the first len bytes, so that writing there later cannot fail for
 * the lack of it; where the file system cannot promise that, just the length. */
seen_status seen_io_allocate(int fd, uint64_t len);
seen_status seen_io_lock(int fd); /* SEEN_BUSY: somebody else has it */
seen_status seen_io_sync(int fd);
seen_status seen_io_datasync(int fd);

/* The directory that holds `path`: what was created, renamed or removed in it
 * is on disk afterwards. */
seen_status seen_io_sync_dir(const char *path);

/* "DIR" of "DIR/NAME", "." of "NAME", into buf; and NAME itself. */
seen_status seen_io_dir_of(const char *path, char *buf, size_t cap);
const char *seen_io_base(const char *path);

#endif
