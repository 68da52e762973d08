/*
 * decompress.h - the bytes of a file, whatever they are packed in.
 *
 *     read()  ──►  stream  ──►  lines
 *                  plain, gzip, zstd, xz or bzip2, as the first bytes say
 *
 * Plain bytes go straight to where the caller wants them. Compressed ones are
 * decompressed ahead of the caller, in a thread of their own.
 */
#ifndef CLI_DECOMPRESS_H
#define CLI_DECOMPRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stream;

/* The first stream_read() needs room for as much as tells formats apart. */
#define STREAM_LEAST 10

/* Of an open file, which stays the caller's. `*count` grows by the bytes of the
 * file (not of what is in it) that have been dealt with. */
struct stream *stream_open(int fd, _Atomic uint64_t *count);

/* Like read(): waits until there is something, then hands on what is there. 0
 * is the end, -1 an error, and then stream_error() is its sentence. */
ssize_t stream_read(struct stream *s, void *to, size_t cap);
const char *stream_error(const struct stream *s);

/* Would stream_read() return at once? */
bool stream_ready(struct stream *s);

void stream_close(struct stream *s); /* at any point */

#endif
