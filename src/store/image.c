/*
 * image.c - a whole file, written and replaced: a filter (seen_file_save(), and
 * the checkpoints of change.c), or the bytes of another system's filter
 * (seen_file_write()), which has neither journal nor room for one.
 *
 *     PATH is          what happens
 *     a file           locked; the new one is written beside it and renamed to
 *                      PATH (replace.h); then its journal goes, whose frames
 *                      belong to a file that has no name any more
 *     nothing          the same, with nothing to lock
 *     a device, pipe   just the bytes, in order: there is no renaming there
 *
 * A power cut between rename and removal leaves a journal with the id of the old
 * file. The new one has another id, and whoever opens it ignores and removes that
 * journal.
 *
 * A container is written where its parts lie in memory; pieces of zeros are not
 * written into a new file, which is all zeros: an empty filter of 1 GB costs the
 * allocation of its space and 64 KB of checksums.
 */
#define _POSIX_C_SOURCE 200809L

#include "store/image.h"

#include "seen_file.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "store/journal.h"
#include "store/outcome.h"
#include "store/replace.h"

#include <string.h>

#define PIECE ((uint64_t)1 << 20) /* written at once */

/* ---- Bytes of a container ------------------------------------------------- */

static bool is_zero(const uint8_t *p, uint64_t len)
{
    return p[0] == 0 && memcmp(p, p + 1, (size_t)len - 1) == 0;
}

/* Into an empty file. */
static seen_status write_container(void *saved, int fd)
{
    struct seen_saved *s = saved;
    uint64_t offset = s->header.payload_offset;
    if (!SEEN_LITTLE_ENDIAN) return SEEN_UNSUPPORTED;
    uint8_t *head = seen_alloc_zeroed(&seen_system_memory, offset);
    if (!head) return SEEN_NOMEM;
    seen_native_head(&s->header, &s->body, head);
    seen_status status = seen_io_allocate(fd, offset + s->header.payload_len);
    if (status == SEEN_OK)
        status = seen_io_write_at(fd, head, (size_t)offset, 0);
    seen_release(&seen_system_memory, head, offset);
    for (uint32_t i = 0; i < s->body.count; i++) {
        const struct seen_part *part = &s->parts[i];
        const uint8_t *from = part->at;
        for (uint64_t at = 0; status == SEEN_OK && at < part->len;
             at += PIECE) {
            uint64_t len = seen_min64(PIECE, part->len - at);
            if (!is_zero(from + at, len))
                status =
                    seen_io_write_at(fd, from + at, (size_t)len, offset + at);
        }
        offset += seen_part_room(part);
    }
    return status;
}

/* Into a stream. */
static seen_status pour_container(void *saved, int fd)
{
    static const uint8_t zeros[SEEN_LINE_SIZE];
    struct seen_saved *s = saved;
    uint64_t len = s->header.payload_offset;
    uint8_t *head = seen_alloc_zeroed(&seen_system_memory, len);
    if (!head) return SEEN_NOMEM;
    seen_native_head(&s->header, &s->body, head);
    seen_status status = seen_io_write(fd, head, (size_t)len);
    seen_release(&seen_system_memory, head, len);
    for (uint32_t i = 0; status == SEEN_OK && i < s->body.count; i++) {
        const struct seen_part *part = &s->parts[i];
        status = seen_io_write(fd, part->at, (size_t)part->len);
        if (status == SEEN_OK)
            status = seen_io_write(fd, zeros,
                                   (size_t)(seen_part_room(part) - part->len));
    }
    return status;
}

/* Permissions of a new file, before the umask: a secret is its maker's. */
static mode_t mode_of(const struct seen_native *h)
{
    uint32_t where = h->flags & (SEEN_NATIVE_KEYED | SEEN_NATIVE_APART);
    return where == SEEN_NATIVE_KEYED ? 0600 : 0666;
}

seen_status seen_image_of(const seen_filter *f, uint32_t flags,
                          struct seen_saved *s, seen_error *error)
{
    uint8_t id[16];
    uint32_t apart = flags & SEEN_SECRET_APART ? SEEN_NATIVE_APART : 0;
    if (seen_random_secret(id) != SEEN_OK)
        return seen_fail_io(error, NULL, "draw a random id from the kernel");
    seen_status status = seen_saved_from(f, apart | SEEN_NATIVE_TWO, s);
    if (status == SEEN_INVALID && apart)
        return seen_fail(error, status, "flags",
                         "SEEN_SECRET_APART: the filter has no secret to keep "
                         "apart: leave out the flag, or make it with "
                         "SEEN_KEYED");
    if (status != SEEN_OK)
        return seen_fail(error, status, NULL, "%s", seen_strerror(status));
    s->header.id = seen_get_le64(id) | 1;
    s->header.epoch = 1;
    return SEEN_OK;
}

seen_status seen_image_put(const char *path, int old, struct seen_saved *s,
                           int *fd, seen_error *error)
{
    return seen_replace(&(struct seen_replacing){.path = path,
                                                 .old = old,
                                                 .mode = mode_of(&s->header),
                                                 .write = write_container,
                                                 .ctx = s},
                        fd, error);
}

/* ---- Bytes of another system ---------------------------------------------- */

static seen_status write_bytes(void *ctx, int fd)
{
    const seen_key *bytes = ctx;
    return bytes->len ? seen_io_write_at(fd, bytes->data, bytes->len, 0)
                      : SEEN_OK;
}

static seen_status pour_bytes(void *ctx, int fd)
{
    const seen_key *bytes = ctx;
    return seen_io_write(fd, bytes->data, bytes->len);
}

/* ---- Putting them there --------------------------------------------------- */

/* So much of a seen_info has id and epoch. */
#define KNOWN_BY (offsetof(seen_info, epoch) + sizeof(uint64_t))

/* Is the file still as it was when it was looked at? Every writer that opens it
 * changes its epoch. */
static bool still_as(int fd, const seen_info *was)
{
    uint8_t head[SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE];
    struct seen_native h[2];
    size_t got, i = 0;
    if (seen_io_read_at(fd, head, sizeof head, 0, &got) != SEEN_OK)
        return false;
    bool first = seen_native_get(head, got, &h[0], NULL) == SEEN_OK;
    bool second = got == sizeof head &&
                  seen_native_get(head + SEEN_HEADER_STRIDE, SEEN_HEADER_SIZE,
                                  &h[1], NULL) == SEEN_OK;
    if (!first && !second) return false;
    if (second &&
        (!first || (h[0].flags & SEEN_NATIVE_TWO && h[1].epoch > h[0].epoch)))
        i = 1;
    return h[i].id == was->id && h[i].epoch == was->epoch;
}

/* `what` without its path; `pour`, the same into a stream. */
static seen_status put(const char *path, struct seen_replacing what,
                       seen_status (*pour)(void *ctx, int fd),
                       const seen_info *was, seen_outcome *outcome,
                       seen_error *error)
{
    char real[SEEN_PATH_ROOM];
    struct seen_there there;
    int made = -1;
    if (seen_io_resolve(path, real, sizeof real) != SEEN_OK)
        return seen_fail_io(error, "path", "look at the file");
    seen_status status = seen_find_there(real, &there, error);
    if (status != SEEN_OK) return status;
    if (there.stream) {
        made = seen_io_open(real, O_WRONLY, 0);
        if (made < 0) return seen_fail_io(error, "path", "open");
        status = pour(what.ctx, made);
        if (status == SEEN_IO) seen_fail_io(error, "path", "write");
    } else if (was && there.fd < 0) {
        status = seen_fail(error, SEEN_ABSENT, "path",
                           "the file that was looked at is gone: save it as a "
                           "new one");
    } else if (was && !still_as(there.fd, was)) {
        status = seen_fail(error, SEEN_BUSY, "path",
                           "another program has changed it meanwhile: load it "
                           "again");
    } else {
        what.path = real;
        what.old = there.fd;
        status = seen_replace(&what, &made, error);
        outcome->created = made >= 0;
        if (status == SEEN_OK && seen_journal_remove(real) != SEEN_OK)
            status = seen_fail_io(error, "path", "remove the old journal");
    }
    seen_io_close(made);
    seen_io_close(there.fd);
    return status;
}

seen_status seen_file_save(const char *path, const seen_filter *f,
                           uint32_t flags, seen_outcome *outcome,
                           seen_error *error)
{
    return seen_file_save_over(path, f, flags, NULL, outcome, error);
}

seen_status seen_file_save_over(const char *path, const seen_filter *f,
                                uint32_t flags, const seen_info *was,
                                seen_outcome *outcome, seen_error *error)
{
    seen_outcome did = {0};
    struct seen_saved s;
    seen_error_begin(error);
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK && !f)
        status = seen_fail(error, SEEN_INVALID, "f",
                           "f: expected a filter, got NULL");
    if (status == SEEN_OK && flags & ~SEEN_SECRET_APART)
        status =
            seen_fail(error, SEEN_INVALID, "flags",
                      "flags 0x%x: expected 0 or SEEN_SECRET_APART", flags);
    if (status == SEEN_OK && was && was->size < KNOWN_BY)
        status = seen_fail(
            error, SEEN_INVALID, "was",
            "was.size %zu: expected what seen_file_look() filled", was->size);
    if (status == SEEN_OK) status = seen_outcome_check(outcome, error);
    if (status == SEEN_OK) status = seen_image_of(f, flags, &s, error);
    if (status != SEEN_OK) return status;
    struct seen_replacing what = {
        .mode = mode_of(&s.header), .write = write_container, .ctx = &s};
    status = put(path, what, pour_container, was, &did, error);
    seen_saved_free(&s);
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}

seen_status seen_file_write(const char *path, const void *bytes, size_t len,
                            seen_outcome *outcome, seen_error *error)
{
    seen_outcome did = {0};
    seen_key all = {bytes, len};
    seen_error_begin(error);
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK && len && !bytes)
        status =
            seen_fail(error, SEEN_INVALID, "bytes",
                      "bytes: expected a pointer to %zu bytes, got NULL", len);
    if (status == SEEN_OK) status = seen_outcome_check(outcome, error);
    if (status != SEEN_OK) return status;
    struct seen_replacing what = {
        .mode = 0666, .write = write_bytes, .ctx = &all};
    status = put(path, what, pour_bytes, NULL, &did, error);
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}
