/*
 * file.c - a filter in a file: opened, closed.
 *
 * Two ways to change one, after the kind:
 *
 *   in place   Kinds whose adds only set bits, in SEEN_DURABLE: the file
 *              is mapped, shared, and bits are set there after their keys are
 *              in the journal on disk. The kernel may write a page back at any
 *              time: that does no harm, a bit too many is a "maybe" too many,
 *              and its key is in the journal anyway.
 *   beside     All others: the filter is in private memory; a checkpoint writes
 *              PATH.seen-new, syncs it and renames it to PATH (image.c).
 *
 * The life of a file, and what a power cut leaves at each step:
 *
 *   open       journal: begins, sync                 a journal nobody needs
 *              header: "journaled", epoch + 1        old header or new
 *   change     journal: frame, sync; then apply      all frames that were synced
 *   checkpoint checksums, bits, sync                 bits early, frames still there
 *              header: sequence, epoch + 1, sync     old header and all frames, or
 *              drop frames                           new header and none needed
 *   close      checkpoint; header: not journaled; remove the journal
 *
 * Opening and closing are here, changes and checkpoints in change.c. Two headers
 * lie in sectors of their own; the one of the lower epoch is the one that gets
 * written. Whoever opens takes the valid one of the higher epoch and replays the
 * frames behind its sequence number.
 *
 * Writers lock the file itself. A checkpoint beside locks the new file before
 * the rename, so at any time whoever locks what PATH names has the lock. Who
 * finds no file and makes one looks again when it has PATH.seen-new locked.
 *
 * Worked example: a filter for 100 million keys, 126 MB. `seen add` with 1000
 * keys writes 8 KB to the journal, syncs, sets 8000 bits, and at the end syncs
 * the 1000 lines that these lie in and the checksums of at most 1000 pages of
 * 64 KiB.
 */
#define _POSIX_C_SOURCE 200809L

#include "store/file.h"

#include "base/alloc.h"
#include "store/image.h"
#include "store/outcome.h"
#include "store/replace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define ATTEMPTS 100 /* of a reader, between checkpoints */
#define DOUBTS   10  /* times that damage must be seen */

/* ---- A handle, and what it has mapped ------------------------------------- */

/* Under the name of the file itself: file, journal and what is written beside
 * are in one place, however many links lead there. */
seen_status seen_file_make(seen_file **out, const char *path, seen_mode mode,
                           seen_error *error)
{
    char real[SEEN_PATH_ROOM];
    if (seen_io_resolve(path, real, sizeof real) != SEEN_OK)
        return seen_fail_io(error, "path", "look at the file");
    size_t size = strlen(real) + 1;
    seen_file *file = seen_alloc_zeroed(&seen_system_memory, sizeof *file);
    char *copy = seen_alloc_zeroed(&seen_system_memory, size);
    if (!file || !copy) {
        seen_release(&seen_system_memory, copy, size);
        seen_release(&seen_system_memory, file, sizeof *file);
        return seen_file_explain(error, SEEN_NOMEM, NULL);
    }
    memcpy(copy, real, size);
    file->path = copy;
    file->path_size = size;
    file->mode = mode;
    file->fd = -1;
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->turn, NULL);
    seen_home_settle(&file->home);
    *out = file;
    return SEEN_OK;
}

static void free_memory(seen_file *file)
{
    seen_file_forget_pages(file);
    seen_release(&seen_system_memory, file->path, file->path_size);
    seen_release(&seen_system_memory, file, sizeof *file);
}

static seen_status map_file(seen_file *file, enum seen_map_mode mode,
                            seen_error *error)
{
    struct seen_stat st;
    if (seen_os->fstat(file->fd, &st) != 0)
        return seen_fail_io(error, "path", "look at the file");
    if (!st.regular)
        return seen_fail(error, SEEN_INVALID, "path",
                         "is not a regular file: expected a filter file");
    if (st.size < SEEN_HEADER_SIZE)
        return seen_fail(error, SEEN_CORRUPT, "path",
                         "%" PRIu64 " bytes are too few for a filter file, "
                         "which has at least %d",
                         st.size, SEEN_HEADER_SIZE);
    if (st.size > PTRDIFF_MAX)
        return seen_fail(error, SEEN_NOMEM, "path",
                         "%" PRIu64 " bytes are more than this machine can map",
                         st.size);
    file->map_len = (size_t)st.size;
    file->map = seen_os->map(file->fd, file->map_len, mode);
    return file->map ? SEEN_OK : seen_fail_io(error, "path", "map the file");
}

seen_status seen_file_map(seen_file *file, enum seen_map_mode mode,
                          seen_error *error)
{
    /* Not to wait for somebody who writes to a pipe, which is none of ours. */
    if (file->fd < 0)
        file->fd = seen_io_open(file->path, O_RDONLY | O_NONBLOCK, 0);
    if (file->fd < 0)
        return errno == ENOENT
                   ? seen_fail(error, SEEN_ABSENT, "path", "no such file")
                   : seen_fail_io(error, "path", "open the file");
    return map_file(file, mode, error);
}

static seen_status read_header(seen_file *file, seen_error *error)
{
    seen_error why;
    seen_error_begin(&why);
    seen_status status =
        seen_native_read(file->map, file->map_len, &file->header, &why);
    return status == SEEN_OK ? status : seen_file_explain(error, status, &why);
}

static seen_status restore(seen_file *file, enum seen_restore_mode mode,
                           const uint8_t *secret, seen_error *error)
{
    seen_error why;
    seen_error_begin(&why);
    seen_status status = seen_restore(&file->filter, file->map, &file->header,
                                      mode, secret, NULL, &why);
    if (status == SEEN_CORRUPT)
        return seen_fail(error, status, "path", "%s", why.text);
    return status == SEEN_OK ? status : seen_file_explain(error, status, NULL);
}

static void unmap_file(seen_file *file)
{
    int before = errno;
    if (file->map) seen_os->unmap(file->map, file->map_len);
    file->map = NULL;
    errno = before;
}

/* Filter, map and descriptor are gone; the handle can be used again. */
static void let_go(seen_file *file)
{
    seen_free(file->filter);
    file->filter = NULL;
    unmap_file(file);
    if (file->mode == SEEN_READ)
        seen_io_close(file->fd);
    else
        seen_io_release(file->fd);
    file->fd = -1;
    seen_file_forget_pages(file);
}

void seen_file_destroy(seen_file *file)
{
    int before = errno;
    seen_journal_close(file->journal);
    let_go(file);
    pthread_cond_destroy(&file->turn);
    pthread_mutex_destroy(&file->lock);
    free_memory(file);
    errno = before;
}

seen_status seen_file_explain(seen_error *error, seen_status status,
                              const seen_error *why)
{
    if (status == SEEN_CORRUPT)
        return seen_fail(error, status, "path", "%s",
                         why ? why->text : seen_strerror(status));
    if (status == SEEN_NEWER)
        return seen_fail(error, status, "path",
                         "written by a later version: update this library");
    if (status == SEEN_NO_SECRET)
        return seen_fail(error, status, "secret",
                         "its secret is kept apart: give those 16 bytes as "
                         "options.secret");
    if (status == SEEN_MISMATCH)
        return seen_fail(error, status, "secret",
                         "options.secret is not the secret of this file, or "
                         "the file has none");
    return why ? seen_fail_as(error, status, why)
               : seen_fail(error, status, NULL, "%s", seen_strerror(status));
}

/* ---- Reading -------------------------------------------------------------- */

/* The journal may be dropped and the file replaced while we look: then what was
 * read together does not belong together. */
static bool unchanged(seen_file *file)
{
    struct seen_native now;
    uint8_t head[SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE];
    size_t got;
    if (!seen_still_there(file->path, file->fd) ||
        seen_io_read_at(file->fd, head, sizeof head, 0, &got) != SEEN_OK)
        return false;
    seen_status a = seen_native_get(head, got, &now, NULL);
    uint64_t epoch = a == SEEN_OK ? now.epoch : 0;
    if (!(file->header.flags & SEEN_NATIVE_TWO))
        return epoch == file->header.epoch;
    if (got != sizeof head) return false;
    a = seen_native_get(head + SEEN_HEADER_STRIDE, SEEN_HEADER_SIZE, &now,
                        NULL);
    if (a == SEEN_OK && now.epoch > epoch) epoch = now.epoch;
    return epoch == file->header.epoch;
}

/*
 * Does what was read together belong together? Without a journal it does, but for
 * a page that differs: a writer may have come meanwhile. With one, a frame that a
 * writer appends while we read may be seen half done, and one behind it, which
 * vouches for it, whole: what looks damaged is looked at again before it is called
 * so.
 */
static bool settled(seen_file *file, seen_status status)
{
    bool journaled = file->header.flags & SEEN_NATIVE_JOURNALED;
    if (!journaled) return status != SEEN_CORRUPT || unchanged(file);
    if (!unchanged(file)) return false;
    return status != SEEN_CORRUPT || ++file->doubts == DOUBTS;
}

/* For another attempt. What has been compared need not be compared again, as long
 * as the file is the same: the more attempts, the shorter they are. */
static void begin_again(seen_file *file)
{
    seen_free(file->filter);
    file->filter = NULL;
    unmap_file(file);
    if (seen_still_there(file->path, file->fd)) return;
    let_go(file);
}

static seen_status read_once(seen_file *file, enum seen_reading how,
                             const uint8_t *secret, bool *done,
                             seen_error *error)
{
    *done = true;
    seen_status status = seen_file_map(file, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = read_header(file, error);
    if (status != SEEN_OK) return status;

    /* Alone, or with a journal that has to be applied to a copy of our own. */
    bool journaled = file->header.flags & SEEN_NATIVE_JOURNALED;
    bool in_own = journaled || how == SEEN_READ_EXAMINED;
    const struct seen_filter_ops *ops = seen_kinds_find(file->header.plan.kind);
    enum seen_restore_mode mode = !in_own               ? SEEN_RESTORE_VIEW
                                  : ops && ops->touches ? SEEN_RESTORE_MAP
                                                        : SEEN_RESTORE_COPY;
    if (how != SEEN_READ_QUICKLY) status = seen_file_compare(file, error);
    if (status == SEEN_OK) status = restore(file, mode, secret, error);
    if (status == SEEN_OK && journaled) {
        status = seen_file_replay(file, error);
        file->outcome.recovered = true;
        file->filter->frozen = true;
    }
    if (status == SEEN_OK && how != SEEN_READ_QUICKLY)
        status = seen_file_judge(file, error);
    *done = settled(file, status);
    return status;
}

seen_status seen_file_read(seen_file *file, enum seen_reading how,
                           const uint8_t *secret, seen_error *error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        bool done;
        seen_error_begin(error);
        file->outcome = (seen_outcome){0};
        seen_status status = read_once(file, how, secret, &done, error);
        if (done) return status;
        begin_again(file);
    }
    seen_error_begin(error);
    return seen_fail(error, SEEN_BUSY, "path",
                     "it changes faster than it can be read: try again");
}

/* ---- Writing -------------------------------------------------------------- */

/* A new file at our path, and its descriptor, locked. */
static seen_status put_file(seen_file *file, const seen_filter *f,
                            uint32_t flags, int *fd, seen_error *error)
{
    struct seen_saved saved;
    seen_status status = seen_image_of(f, flags, &saved, error);
    if (status != SEEN_OK) return status;
    status = seen_image_put(file->path, file->fd, &saved, fd, error);
    seen_saved_free(&saved);
    file->fresh = status == SEEN_OK;
    if (status == SEEN_OK && seen_journal_remove(file->path) != SEEN_OK)
        status = seen_fail_io(error, "path", "remove the old journal");
    return status;
}

static seen_status create_file(seen_file *file,
                               const seen_file_options *options,
                               seen_error *error)
{
    seen_filter *f;
    seen_status status = seen_new(&f, options->create, error);
    if (status != SEEN_OK) return status;
    status =
        put_file(file, f, options->flags & SEEN_SECRET_APART, &file->fd, error);
    seen_free(f);
    file->outcome.created = file->fd >= 0;
    return status;
}

/* A file with one header, from a pipe or a buffer, gets its second one. */
static seen_status give_two_headers(seen_file *file,
                                    const seen_file_options *options,
                                    seen_error *error)
{
    int fd = -1;
    seen_status status = seen_file_compare(file, error);
    if (status == SEEN_OK)
        status = restore(file, SEEN_RESTORE_COPY, options->secret, error);
    if (status != SEEN_OK) return status;
    bool apart = file->header.flags & SEEN_NATIVE_APART;
    status =
        put_file(file, file->filter, apart ? SEEN_SECRET_APART : 0, &fd, error);
    if (status != SEEN_OK) {
        seen_io_close(fd);
        return status;
    }
    let_go(file);
    file->fd = fd;
    return SEEN_OK;
}

/* In place, with SEEN_UNVERIFIED, each page is compared before its first change.
 * What is copied will be written as a whole, with new checksums: never unseen. */
static bool must_compare(const seen_file *file,
                         const seen_file_options *options)
{
    if (file->fresh) return false;
    return !(options->flags & SEEN_UNVERIFIED) || !file->in_place ||
           file->mode != SEEN_DURABLE;
}

/* The filter itself: in the map, or out of it. */
static seen_status load_filter(seen_file *file,
                               const seen_file_options *options,
                               seen_error *error)
{
    const struct seen_filter_ops *ops = seen_kinds_find(file->header.plan.kind);
    /* What died while it was changed in place has to be mended there. */
    bool here = file->mode == SEEN_DURABLE ||
                file->header.flags & SEEN_NATIVE_JOURNALED;
    file->in_place = here && ops && ops->touches;
    seen_status status = SEEN_OK;
    if (file->in_place) {
        /* A store into a hole would be SIGBUS on a full disk. */
        if (seen_io_allocate(file->fd, file->map_len) != SEEN_OK)
            return seen_fail_io(error, "path",
                                "claim space for the holes in the file");
        status = seen_file_know_pages(file, error);
        unmap_file(file);
        if (status == SEEN_OK) status = map_file(file, SEEN_MAP_WRITE, error);
    }
    if (status == SEEN_OK && must_compare(file, options))
        status = seen_file_compare(file, error);
    if (status == SEEN_OK)
        status =
            restore(file, file->in_place ? SEEN_RESTORE_MAP : SEEN_RESTORE_COPY,
                    options->secret, error);
    if (status == SEEN_OK && !file->in_place) unmap_file(file);
    return status;
}

/*
 * What a dead writer left becomes part of the file; then a journal of our own
 * begins, and only then the file is marked. So a marked file always has a
 * journal, and one whose journal is missing has lost something.
 */
static seen_status open_journal(seen_file *file,
                                const seen_file_options *options,
                                seen_error *error)
{
    seen_status status = SEEN_OK;
    file->applied = file->header.sequence;
    if (file->header.flags & SEEN_NATIVE_JOURNALED) {
        status = seen_file_replay(file, error);
        file->outcome.recovered = true;
        if (status == SEEN_OK && must_compare(file, options))
            status = seen_file_judge(file, error);
        if (status == SEEN_OK) status = seen_file_checkpoint(file, 0, error);
        if (status != SEEN_OK) return status;
    }
    struct seen_native h = file->header;
    struct seen_stat st;
    bool left = false;
    if (seen_os->fstat(file->fd, &st) != 0)
        return seen_fail_io(error, "path", "look at the file");
    /* A header that needs no journal beside one that is still there: its sync
     * may have failed, and the one on the disk be another, which does. */
    status = seen_journal_there(file->path, &left);
    if (status == SEEN_OK && left) {
        status = seen_file_put_header(file, &h, error);
        if (status != SEEN_OK) return status;
    }
    h.flags |= SEEN_NATIVE_JOURNALED;
    if (status == SEEN_OK) status = seen_journal_remove(file->path);
    if (status == SEEN_OK)
        status = seen_journal_open(&file->journal, file->path, &st, h.id,
                                   h.epoch + 1, file->applied);
    if (status == SEEN_IO)
        return seen_fail_io(error, "path", "begin a journal beside it");
    if (status != SEEN_OK) return seen_file_explain(error, status, NULL);
    return seen_file_put_header(file, &h, error);
}

/* From the map into private memory, and so into a file of new checksums. */
static seen_status leave_place(seen_file *file, seen_error *error)
{
    seen_filter *copy;
    seen_status status = seen_copy(&copy, file->filter, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status, NULL);
    seen_free(file->filter);
    file->filter = copy;
    file->in_place = false;
    unmap_file(file);
    seen_file_forget_pages(file);
    return SEEN_OK;
}

/* A journal holds hashes, which mean nothing to a filter of another system. */
static seen_status refuse_foreign(const char *field, seen_error *error)
{
    return seen_fail(
        error, SEEN_UNSUPPORTED, field,
        "a filter of another system is changed as a whole: load it, "
        "change it, save it");
}

/* A journal belongs to one name, and a checkpoint may replace that name only:
 * under the others the file would be damaged for good. */
static seen_status refuse_other_names(seen_file *file, seen_error *error)
{
    struct seen_stat st;
    if (seen_os->fstat(file->fd, &st) != 0)
        return seen_fail_io(error, "path", "look at the file");
    if (st.links <= 1) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "path",
                     "has %" PRIu64 " names (hard links), and a change would "
                     "reach one of them: change a copy, or use symbolic "
                     "links",
                     st.links);
}

/* Where a directory is sticky, as /tmp is, only the owner of a file (or of the
 * directory) may replace it, though others may write to it. A checkpoint beside
 * would fail when the keys are in the journal already, which then lies there: its
 * keys count as seen, and nobody has printed them. */
static seen_status refuse_sticky(seen_file *file, seen_error *error)
{
    enum {
        STICKY = 01000
    };
    char dir[SEEN_PATH_ROOM];
    struct seen_stat st, place;
    uint32_t us = seen_os->user();
    if (us == 0 || (file->in_place && file->mode == SEEN_DURABLE))
        return SEEN_OK;
    if (seen_io_dir_of(file->path, dir, sizeof dir) != SEEN_OK ||
        seen_os->stat(dir, &place) != 0 || seen_os->fstat(file->fd, &st) != 0)
        return seen_fail_io(error, "path", "look at the file");
    if (!(place.mode & STICKY) || place.user == us || st.user == us)
        return SEEN_OK;
    errno = EPERM;
    return seen_fail_io(error, "path",
                        "belongs to another user, in a sticky directory, where "
                        "only its owner can replace it: change a copy in "
                        "another directory");
}

static seen_status open_to_write(seen_file *file,
                                 const seen_file_options *options,
                                 seen_error *error)
{
    if (options->create && options->create->dialect)
        return refuse_foreign("options.create", error);
    seen_status status = seen_open_locked(file->path, O_RDWR, 0, &file->fd);
    if (status == SEEN_ABSENT && options->create)
        status = create_file(file, options, error);
    else if (status == SEEN_ABSENT)
        return seen_fail(error, status, "path",
                         "no such file: options.create makes one");
    if (status == SEEN_BUSY)
        return seen_fail(
            error, status, "path",
            "another program is changing it: try again when it has ended");
    if (status == SEEN_IO && file->fd < 0 && errno == EISDIR)
        return seen_fail(error, SEEN_INVALID, "path",
                         "is a directory: expected a filter file");
    if (status == SEEN_IO) return seen_fail_io(error, "path", "open the file");
    if (status == SEEN_OK) status = refuse_other_names(file, error);
    if (status == SEEN_OK) status = map_file(file, SEEN_MAP_READ, error);
    if (status == SEEN_OK) status = read_header(file, error);
    if (status == SEEN_OK && file->header.plan.kind == SEEN_FOREIGN)
        status = refuse_foreign("path", error);
    if (status == SEEN_OK && !(file->header.flags & SEEN_NATIVE_TWO)) {
        status = give_two_headers(file, options, error);
        if (status == SEEN_OK) status = map_file(file, SEEN_MAP_READ, error);
        if (status == SEEN_OK) status = read_header(file, error);
    }
    if (status == SEEN_OK) status = load_filter(file, options, error);
    if (status == SEEN_OK) status = refuse_sticky(file, error);
    if (status == SEEN_OK) status = open_journal(file, options, error);
    if (status == SEEN_OK && file->in_place && file->mode == SEEN_WRITE)
        status = leave_place(file, error);
    return status;
}

/* ---- Open, close ---------------------------------------------------------- */

static seen_status check_options(const seen_file_options *o, seen_error *error)
{
    if (seen_check_reserved(o->reserved, sizeof o->reserved,
                            sizeof *o->reserved, "reserved", error) != SEEN_OK)
        return SEEN_INVALID;
    if (o->mode > SEEN_DURABLE)
        return seen_fail(error, SEEN_INVALID, "mode",
                         "mode %d: expected SEEN_READ, SEEN_WRITE or "
                         "SEEN_DURABLE",
                         (int)o->mode);
    if (o->flags & ~(SEEN_SECRET_APART | SEEN_UNVERIFIED))
        return seen_fail(error, SEEN_INVALID, "flags",
                         "flags 0x%x: expected SEEN_SECRET_APART, "
                         "SEEN_UNVERIFIED, both or 0",
                         o->flags);
    if (o->create && o->mode == SEEN_READ)
        return seen_fail(error, SEEN_INVALID, "options.create",
                         "options.create requires SEEN_WRITE or SEEN_DURABLE, "
                         "and the mode is SEEN_READ");
    return SEEN_OK;
}

static seen_status open_to_read(seen_file *file,
                                const seen_file_options *options,
                                seen_error *error)
{
    bool quickly = options->flags & SEEN_UNVERIFIED;
    return seen_file_read(file,
                          quickly ? SEEN_READ_QUICKLY : SEEN_READ_COMPARED,
                          options->secret, error);
}

static seen_status open_once(seen_file **out, const char *path,
                             const seen_file_options *options,
                             seen_outcome *outcome, seen_error *error)
{
    seen_file *file;
    seen_status status = seen_file_make(&file, path, options->mode, error);
    if (status != SEEN_OK) return status;
    status = file->mode == SEEN_READ ? open_to_read(file, options, error)
                                     : open_to_write(file, options, error);
    *outcome = file->outcome;
    if (status != SEEN_OK) {
        seen_file_destroy(file);
        return status;
    }
    *out = file;
    return SEEN_OK;
}

seen_status seen_file_open(seen_file **out, const char *path,
                           const seen_file_options *options,
                           seen_outcome *outcome, seen_error *error)
{
    static const seen_file_options only_read;
    seen_outcome did = {0};
    seen_error own;
    if (!options) options = &only_read;
    if (!error) error = &own;
    seen_error_begin(error);
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK && !out)
        status = seen_fail(error, SEEN_INVALID, "file",
                           "file: expected a pointer, got NULL");
    if (status == SEEN_OK) status = check_options(options, error);
    if (status == SEEN_OK) status = seen_outcome_check(outcome, error);
    if (status != SEEN_OK) return status;

    uint64_t began = 0;
    do {
        seen_error_begin(error);
        status = open_once(out, path, options, &did, error);
    } while (status == SEEN_BUSY && seen_io_wait(&began, options->wait_ms));
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}

/* In a child that was forked: see home.h. */
static void abandon(seen_file *file)
{
    if (pthread_mutex_trylock(&file->lock) != 0) return;
    seen_journal_abandon(file->journal);
    seen_free(file->filter);
    unmap_file(file);
    seen_io_close(file->fd);
    free_memory(file);
}

seen_status seen_file_close(seen_file *file, seen_error *error)
{
    seen_error own;
    seen_status status = SEEN_OK;
    if (!error) error = &own;
    seen_error_begin(error);
    if (!file) return SEEN_OK;
    if (seen_home_left(&file->home)) {
        abandon(file);
        return SEEN_OK;
    }
    if (file->mode != SEEN_READ && file->failed) {
        status = seen_file_refuse(file, error);
    } else if (file->mode != SEEN_READ) {
        status = seen_file_checkpoint(file, 0, error);
        if (status == SEEN_OK && seen_journal_remove(file->path) != SEEN_OK)
            status = seen_fail_io(error, "path", "remove the journal");
    }
    seen_file_destroy(file);
    return seen_error_end(error, status);
}

const seen_filter *seen_file_filter(const seen_file *file)
{
    return file->filter;
}
