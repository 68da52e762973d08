/*
 * whole.c - seen_file_write(): bytes that make one file, all of them or none.
 *
 * For the filters of other systems, whose files have neither journal nor room
 * for one.
 */
#define _POSIX_C_SOURCE 200809L

#include "store/journal.h"
#include "store/outcome.h"
#include "store/replace.h"

static seen_status pour(const char *path, seen_key bytes, seen_error *error)
{
    int fd = seen_io_open(path, O_WRONLY, 0);
    if (fd < 0) return seen_fail_io(error, NULL, "open");
    seen_status status = seen_io_write(fd, bytes.data, bytes.len);
    if (status != SEEN_OK) seen_fail_io(error, NULL, "write");
    seen_io_close(fd);
    return status;
}

static seen_status write_bytes(void *ctx, int fd)
{
    const seen_key *bytes = ctx;
    seen_status status = SEEN_OK;
    if (bytes->len) status = seen_io_write_at(fd, bytes->data, bytes->len, 0);
    return status == SEEN_OK ? seen_io_sync(fd) : status;
}

/* In the place of what is there; and no journal of that is left. */
static seen_status put(const char *path, const struct seen_there *there,
                       seen_key bytes, seen_outcome *outcome, seen_error *error)
{
    int fd = -1;
    struct seen_replacing what = {.path = path,
                                  .old = there->fd,
                                  .mode = 0666,
                                  .write = write_bytes,
                                  .ctx = &bytes};
    seen_status status = seen_replace(&what, &fd, error);
    outcome->created = fd >= 0;
    seen_io_close(fd);
    if (status == SEEN_OK && seen_journal_remove(path) != SEEN_OK)
        status = seen_fail_io(error, NULL, "remove the old journal");
    return status;
}

seen_status seen_file_write(const char *name, const void *bytes, size_t len,
                            seen_outcome *outcome, seen_error *error)
{
    seen_outcome did = {0};
    seen_error_begin(error);
    if (!name || (len && !bytes) || !seen_outcome_ok(outcome))
        return seen_fail(error, SEEN_INVALID, NULL, "%s",
                         seen_strerror(SEEN_INVALID));
    char path[SEEN_PATH_ROOM];
    if (seen_io_resolve(name, path, sizeof path) != SEEN_OK)
        return seen_fail_io(error, NULL, "look");
    struct seen_there there;
    seen_key all = {bytes, len};
    seen_status status = seen_find_there(path, &there, error);
    if (status == SEEN_OK)
        status = there.stream ? pour(path, all, error)
                              : put(path, &there, all, &did, error);
    seen_io_close(there.fd);
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}
