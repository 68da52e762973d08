/*
 * error.h - how a call fills the seen_error of its caller.
 *
 * A public call begins with seen_error_begin() and ends with seen_error_end().
 * In between, whoever finds something wrong says so once:
 *
 *     return seen_fail(error, SEEN_INVALID, "fpp",
 *                      "fpp %g: expected above 0 and below 1", spec->fpp);
 *
 * The first sentence stays: what fails while cleaning up is a consequence. An
 * error may be NULL everywhere; errno is left as it was.
 */
#ifndef SEEN_ERROR_H
#define SEEN_ERROR_H

#include "seen.h"

#include "base/base.h"

SEEN_PRIVATE void seen_error_begin(seen_error *e);

/* Gives back the status. A failure that nobody explained gets the sentence of
 * its status. */
SEEN_PRIVATE seen_status seen_error_end(seen_error *e, seen_status status);

/* Give back the status. `field` is static, or NULL. */
SEEN_PRIVATE __attribute__((format(printf, 4, 5))) seen_status
seen_fail(seen_error *e, seen_status status, const char *field,
          const char *format, ...);

/* As a call that gave this status has said it, in an error of its own. */
SEEN_PRIVATE seen_status seen_fail_as(seen_error *e, seen_status status,
                                      const seen_error *why);

/* SEEN_CORRUPT: the bytes given as `buf` are not what they claim to be. The
 * sentence is good alone, and behind the name of a file. */
#define seen_corrupt(e, ...) seen_fail(e, SEEN_CORRUPT, "buf", __VA_ARGS__)

/* SEEN_INVALID: a pointer is NULL where that is not allowed. */
#define seen_fail_null(e, field)                                               \
    seen_fail(e, SEEN_INVALID, field, field ": expected a pointer, got NULL")

/* The `size` of a struct that the call shall fill: see base/out.h. */
#define seen_fail_size(e, field, size)                                         \
    seen_fail(e, SEEN_INVALID, field, field ".size %zu: expected its sizeof",  \
              size)

/* What is reserved in a struct that the caller fills, len bytes in numbers of
 * `width`: SEEN_INVALID unless all are zero. */
SEEN_PRIVATE seen_status seen_check_reserved(const void *reserved, size_t len,
                                             size_t width, const char *field,
                                             seen_error *e);

#define seen_fail_allocator(e)                                                 \
    seen_fail(e, SEEN_INVALID, "allocator",                                    \
              "allocator: expected both alloc and release, or NULL")

/* SEEN_IO: a system call failed with errno. "what: No space left on device". */
SEEN_PRIVATE seen_status seen_fail_io(seen_error *e, const char *field,
                                      const char *what);

/* The call goes on; if it succeeds, its caller should read this. */
SEEN_PRIVATE __attribute__((format(printf, 3, 4))) void
seen_warn(seen_error *e, const char *field, const char *format, ...);

#endif
