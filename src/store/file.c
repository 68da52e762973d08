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

#define DOUBTS 10 /* times that damage must be seen */

static const seen_allocator system_memory;

/* ---- A handle, and what it has mapped ------------------------------------- */

/* Under the name of the file itself: file, journal and what is written beside
 * are in one place, however many links lead there. */
seen_status seen_file_make(seen_file **out, const char *path, seen_mode mode,
                           seen_error *error)
{
    char real[SEEN_PATH_ROOM];
    if (seen_io_resolve(path, real, sizeof real) != SEEN_OK)
        return seen_fail_io(error, NULL, "look");
    size_t size = strlen(real) + 1;
    seen_file *s = seen_alloc_zeroed(&system_memory, sizeof *s);
    char *copy = seen_alloc_zeroed(&system_memory, size);
    if (!s || !copy) {
        seen_release(&system_memory, copy, size);
        seen_release(&system_memory, s, sizeof *s);
        return seen_file_explain(error, SEEN_NOMEM);
    }
    memcpy(copy, real, size);
    s->path = copy;
    s->path_size = size;
    s->mode = mode;
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turn, NULL);
    seen_home_settle(&s->home);
    *out = s;
    return SEEN_OK;
}

static void free_memory(seen_file *s)
{
    seen_release(&system_memory, s->dirty, s->pages);
    seen_release(&system_memory, s->path, s->path_size);
    seen_release(&system_memory, s, sizeof *s);
}

static seen_status map_file(seen_file *s, enum seen_map_mode mode,
                            seen_error *error)
{
    struct seen_stat st;
    if (seen_os->fstat(s->fd, &st) != 0)
        return seen_fail_io(error, NULL, "look");
    if (!st.regular)
        return seen_fail(error, SEEN_INVALID, NULL, "is not a regular file");
    if (st.size < SEEN_HEADER_SIZE || st.size > PTRDIFF_MAX)
        return seen_fail(error, SEEN_CORRUPT, NULL,
                         "%" PRIu64 " bytes are too few for a filter file",
                         st.size);
    s->map_len = (size_t)st.size;
    s->map = seen_os->map(s->fd, s->map_len, mode);
    return s->map ? SEEN_OK : seen_fail_io(error, NULL, "map");
}

seen_status seen_file_map(seen_file *s, enum seen_map_mode mode,
                          seen_error *error)
{
    /* Not to wait for somebody who writes to a pipe, which is none of ours. */
    s->fd = seen_io_open(s->path, O_RDONLY | O_NONBLOCK, 0);
    if (s->fd < 0)
        return errno == ENOENT
                   ? seen_fail(error, SEEN_ABSENT, NULL, "no such file")
                   : seen_fail_io(error, NULL, "open");
    return map_file(s, mode, error);
}

seen_status seen_file_header(seen_file *s, seen_error *error)
{
    seen_status status = seen_native_read(s->map, s->map_len, &s->header);
    return status == SEEN_OK ? status : seen_file_explain(error, status);
}

static void unmap_file(seen_file *s)
{
    int before = errno;
    if (s->map) seen_os->unmap(s->map, s->map_len);
    s->map = NULL;
    errno = before;
}

void seen_file_let_go(seen_file *s)
{
    seen_free(s->filter);
    s->filter = NULL;
    unmap_file(s);
    if (s->mode == SEEN_READ)
        seen_io_close(s->fd);
    else
        seen_io_release(s->fd);
    s->fd = -1;
}

void seen_file_destroy(seen_file *s)
{
    int before = errno;
    seen_journal_close(s->journal);
    seen_file_let_go(s);
    pthread_cond_destroy(&s->turn);
    pthread_mutex_destroy(&s->lock);
    free_memory(s);
    errno = before;
}

seen_status seen_file_explain(seen_error *error, seen_status status)
{
    if (status == SEEN_CORRUPT)
        return seen_fail(error, status, NULL, "not a filter file, or damaged");
    return seen_fail(error, status, NULL, "%s", seen_strerror(status));
}

/* ---- Reading -------------------------------------------------------------- */

/* The journal may be dropped and the file replaced while we look: then what was
 * read together does not belong together. */
bool seen_file_unchanged(seen_file *s)
{
    struct seen_native now;
    uint8_t head[SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE];
    size_t got;
    if (!seen_still_there(s->path, s->fd) ||
        seen_io_read_at(s->fd, head, sizeof head, 0, &got) != SEEN_OK)
        return false;
    seen_status a = seen_native_get(head, got, &now);
    uint64_t epoch = a == SEEN_OK ? now.epoch : 0;
    if (!(s->header.flags & SEEN_NATIVE_TWO)) return epoch == s->header.epoch;
    if (got != sizeof head) return false;
    a = seen_native_get(head + SEEN_HEADER_STRIDE, SEEN_HEADER_SIZE, &now);
    if (a == SEEN_OK && now.epoch > epoch) epoch = now.epoch;
    return epoch == s->header.epoch;
}

/*
 * Does what was read together belong together? A frame that a writer appends
 * while we read may be seen half done, and one behind it, which vouches for it,
 * whole: what looks damaged is looked at again before it is called so.
 */
bool seen_file_settled(seen_file *s, seen_status status)
{
    if (!seen_file_unchanged(s)) return false;
    return status != SEEN_CORRUPT || ++s->doubts == DOUBTS;
}

static seen_status read_once(seen_file *s, const seen_file_options *options,
                             bool *settled, seen_error *error)
{
    *settled = true;
    seen_status status = seen_file_map(s, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = seen_file_header(s, error);
    if (status != SEEN_OK) return status;

    /* Alone, or with a journal that has to be applied to a copy of our own. */
    bool journaled = s->header.flags & SEEN_NATIVE_JOURNALED;
    const struct seen_filter_ops *ops = seen_kinds_find(s->header.plan.kind);
    enum seen_restore_mode mode = !journaled            ? SEEN_RESTORE_VIEW
                                  : ops && ops->touches ? SEEN_RESTORE_MAP
                                                        : SEEN_RESTORE_COPY;
    status = seen_restore(&s->filter, s->map, &s->header, mode, options->secret,
                          NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    if (!journaled) return SEEN_OK;
    status = seen_file_replay(s, error);
    s->outcome.recovered = true;
    s->filter->frozen = true;
    *settled = seen_file_settled(s, status);
    return status;
}

static seen_status open_to_read(seen_file *s, const seen_file_options *options,
                                seen_error *error)
{
    for (int i = 0; i < SEEN_FILE_ATTEMPTS; i++) {
        bool settled;
        seen_error_begin(error);
        s->outcome = (seen_outcome){0};
        seen_status status = read_once(s, options, &settled, error);
        if (settled) return status;
        seen_file_let_go(s);
    }
    seen_error_begin(error);
    return seen_fail(error, SEEN_BUSY, NULL,
                     "it changes faster than it can be read");
}

/* ---- Writing -------------------------------------------------------------- */

/* A new file at our path, and its descriptor, locked. */
static seen_status put_file(seen_file *s, const seen_filter *f, uint32_t flags,
                            int *fd, seen_error *error)
{
    struct seen_saved saved;
    seen_status status = seen_image_of(f, flags, &saved, error);
    if (status != SEEN_OK) return status;
    status = seen_image_put(s->path, s->fd, &saved, fd, error);
    seen_saved_free(&saved);
    if (status == SEEN_OK && seen_journal_remove(s->path) != SEEN_OK)
        status = seen_fail_io(error, NULL, "remove an old journal");
    return status;
}

static seen_status create_file(seen_file *s, const seen_file_options *options,
                               seen_error *error)
{
    seen_filter *f;
    const char *wrong = seen_plan_problem(options->create);
    if (wrong) return seen_fail(error, SEEN_INVALID, NULL, "%s", wrong);
    seen_status status = seen_new(&f, options->create);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    status = put_file(s, f, options->flags, &s->fd, error);
    seen_free(f);
    s->outcome.created = s->fd >= 0;
    return status;
}

/* A file with one header, from a pipe or a buffer, gets its second one. */
static seen_status give_two_headers(seen_file *s,
                                    const seen_file_options *options,
                                    seen_error *error)
{
    int fd = -1;
    seen_status status = seen_restore(&s->filter, s->map, &s->header,
                                      SEEN_RESTORE_COPY, options->secret, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    bool apart = s->header.flags & SEEN_NATIVE_APART;
    status = put_file(s, s->filter, apart ? SEEN_SECRET_APART : 0, &fd, error);
    if (status != SEEN_OK) {
        seen_io_close(fd);
        return status;
    }
    seen_file_let_go(s);
    s->fd = fd;
    return SEEN_OK;
}

/* The filter itself: in the map, or out of it. */
static seen_status load_filter(seen_file *s, const seen_file_options *options,
                               seen_error *error)
{
    const struct seen_filter_ops *ops = seen_kinds_find(s->header.plan.kind);
    /* What died while it was changed in place has to be mended there. */
    bool here =
        s->mode == SEEN_DURABLE || s->header.flags & SEEN_NATIVE_JOURNALED;
    s->in_place = here && ops && ops->touches;
    enum seen_restore_mode mode = SEEN_RESTORE_COPY;
    if (s->in_place) {
        mode = SEEN_RESTORE_MAP;
        /* A store into a hole would be SIGBUS on a full disk. */
        if (seen_io_allocate(s->fd, s->map_len) != SEEN_OK)
            return seen_fail_io(error, NULL,
                                "claim space for the holes in the file");
        s->pages = seen_native_pages(s->header.payload_len);
        s->dirty = seen_alloc_zeroed(&system_memory, s->pages);
        if (!s->dirty) return seen_file_explain(error, SEEN_NOMEM);
        unmap_file(s);
        seen_status status = map_file(s, SEEN_MAP_WRITE, error);
        if (status != SEEN_OK) return status;
    }
    seen_status status = seen_restore(&s->filter, s->map, &s->header, mode,
                                      options->secret, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    if (!s->in_place) unmap_file(s);
    return SEEN_OK;
}

/*
 * What a dead writer left becomes part of the file; then a journal of our own
 * begins, and only then the file is marked. So a marked file always has a
 * journal, and one whose journal is missing has lost something.
 */
static seen_status open_journal(seen_file *s, seen_error *error)
{
    seen_status status = SEEN_OK;
    s->applied = s->header.sequence;
    if (s->header.flags & SEEN_NATIVE_JOURNALED) {
        status = seen_file_replay(s, error);
        s->outcome.recovered = true;
        if (status != SEEN_OK) return status;
        status = seen_file_checkpoint(s, 0);
        if (status == SEEN_IO) return seen_fail_io(error, NULL, "recover");
        if (status != SEEN_OK) return seen_file_explain(error, status);
    }
    struct seen_native h = s->header;
    struct seen_stat file;
    bool left = false;
    if (seen_os->fstat(s->fd, &file) != 0)
        return seen_fail_io(error, NULL, "look");
    /* A header that needs no journal beside one that is still there: its sync
     * may have failed, and the one on the disk be another, which does. */
    status = seen_journal_there(s->path, &left);
    if (status == SEEN_OK && left) status = seen_file_put_header(s, &h);
    h.flags |= SEEN_NATIVE_JOURNALED;
    if (status == SEEN_OK) status = seen_journal_remove(s->path);
    if (status == SEEN_OK)
        status = seen_journal_open(&s->journal, s->path, &file, h.id,
                                   h.epoch + 1, s->applied);
    if (status == SEEN_OK) status = seen_file_put_header(s, &h);
    if (status == SEEN_IO) return seen_fail_io(error, NULL, "journal");
    return status == SEEN_OK ? status : seen_file_explain(error, status);
}

/* From the map into private memory, and so into a file of new checksums: now
 * that the dead writer's keys are in, the old ones must be right. */
static seen_status leave_place(seen_file *s, seen_error *error)
{
    seen_filter *copy;
    for (uint64_t i = 0; i < s->pages; i++)
        if (seen_page_sum(s, i) != seen_page_noted(s, i))
            return seen_file_explain(error, SEEN_CORRUPT);
    seen_status status = seen_copy(&copy, s->filter, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    seen_free(s->filter);
    s->filter = copy;
    s->in_place = false;
    unmap_file(s);
    seen_release(&system_memory, s->dirty, s->pages);
    s->dirty = NULL;
    s->pages = 0;
    return SEEN_OK;
}

/* A journal holds hashes, which mean nothing to a filter of another system. */
static seen_status refuse_foreign(seen_error *error)
{
    return seen_fail(
        error, SEEN_UNSUPPORTED, NULL,
        "a filter of another system is changed as a whole: load it, "
        "change it, save it");
}

/* A journal belongs to one name, and a checkpoint may replace that name only:
 * under the others the file would be damaged for good. */
static seen_status refuse_other_names(seen_file *s, seen_error *error)
{
    struct seen_stat st;
    if (seen_os->fstat(s->fd, &st) != 0)
        return seen_fail_io(error, NULL, "look");
    if (st.links <= 1) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, NULL,
                     "has %" PRIu64 " names (hard links), and a change would "
                     "reach one of them: change a copy, or use symbolic "
                     "links",
                     st.links);
}

/* Where a directory is sticky, as /tmp is, only the owner of a file (or of the
 * directory) may replace it, though others may write to it. A checkpoint beside
 * would fail when the keys are in the journal already, which then lies there: its
 * keys count as seen, and nobody has printed them. */
static seen_status refuse_sticky(seen_file *s, seen_error *error)
{
    enum {
        STICKY = 01000
    };
    char dir[SEEN_PATH_ROOM];
    struct seen_stat file, place;
    uint32_t us = seen_os->user();
    if (us == 0 || (s->in_place && s->mode == SEEN_DURABLE)) return SEEN_OK;
    if (seen_io_dir_of(s->path, dir, sizeof dir) != SEEN_OK ||
        seen_os->stat(dir, &place) != 0 || seen_os->fstat(s->fd, &file) != 0)
        return seen_fail_io(error, NULL, "look");
    if (!(place.mode & STICKY) || place.user == us || file.user == us)
        return SEEN_OK;
    errno = EPERM;
    return seen_fail(error, SEEN_IO, NULL,
                     "belongs to another user, in a sticky directory, where "
                     "only its owner can replace it: change a copy in "
                     "another directory");
}

static seen_status open_to_write(seen_file *s, const seen_file_options *options,
                                 seen_error *error)
{
    if (options->create && options->create->dialect)
        return refuse_foreign(error);
    seen_status status = seen_open_locked(s->path, O_RDWR, 0, &s->fd);
    if (status == SEEN_ABSENT && options->create)
        status = create_file(s, options, error);
    else if (status == SEEN_ABSENT)
        return seen_fail(error, status, NULL, "no such file");
    if (status == SEEN_BUSY)
        return seen_fail(
            error, status, NULL,
            "another program is changing it: try again when it has ended");
    if (status == SEEN_IO) return seen_fail_io(error, NULL, "open");
    if (status == SEEN_OK) status = refuse_other_names(s, error);
    if (status == SEEN_OK) status = map_file(s, SEEN_MAP_READ, error);
    if (status == SEEN_OK) status = seen_file_header(s, error);
    if (status == SEEN_OK && s->header.plan.kind == SEEN_FOREIGN)
        status = refuse_foreign(error);
    if (status == SEEN_OK && !(s->header.flags & SEEN_NATIVE_TWO)) {
        status = give_two_headers(s, options, error);
        if (status == SEEN_OK) status = map_file(s, SEEN_MAP_READ, error);
        if (status == SEEN_OK) status = seen_file_header(s, error);
    }
    if (status == SEEN_OK) status = load_filter(s, options, error);
    if (status == SEEN_OK) status = refuse_sticky(s, error);
    if (status == SEEN_OK) status = open_journal(s, error);
    if (status == SEEN_OK && s->in_place && s->mode == SEEN_WRITE)
        status = leave_place(s, error);
    return status;
}

/* ---- Open, close ---------------------------------------------------------- */

static bool options_ok(const seen_file_options *o)
{
    for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
        if (o->reserved[i]) return false;
    return o->mode <= SEEN_DURABLE && !(o->flags & ~SEEN_SECRET_APART) &&
           !(o->create && o->mode == SEEN_READ);
}

static seen_status open_once(seen_file **out, const char *path,
                             const seen_file_options *options,
                             seen_outcome *outcome, seen_error *error)
{
    seen_file *s;
    seen_status status = seen_file_make(&s, path, options->mode, error);
    if (status != SEEN_OK) return status;
    status = s->mode == SEEN_READ ? open_to_read(s, options, error)
                                  : open_to_write(s, options, error);
    *outcome = s->outcome;
    if (status != SEEN_OK) {
        seen_file_destroy(s);
        return status;
    }
    *out = s;
    return SEEN_OK;
}

seen_status seen_file_open(seen_file **out, const char *path,
                           const seen_file_options *options,
                           seen_outcome *outcome, seen_error *error)
{
    static const seen_file_options only_read;
    seen_error_begin(error);
    if (!options) options = &only_read;
    if (!out || !path || !options_ok(options) || !seen_outcome_ok(outcome))
        return seen_file_explain(error, SEEN_INVALID);
    seen_outcome did = {0};

    seen_status status;
    uint64_t began = 0;
    do {
        seen_error_begin(error);
        status = open_once(out, path, options, &did, error);
    } while (status == SEEN_BUSY && seen_io_wait(&began, options->wait_ms));
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}

/* In a child that was forked: see home.h. */
static void abandon(seen_file *s)
{
    if (pthread_mutex_trylock(&s->lock) != 0) return;
    seen_journal_abandon(s->journal);
    seen_free(s->filter);
    unmap_file(s);
    seen_io_close(s->fd);
    free_memory(s);
}

seen_status seen_file_close(seen_file *s)
{
    if (!s) return SEEN_OK;
    seen_status status = SEEN_OK;
    if (seen_home_left(&s->home)) {
        abandon(s);
        return SEEN_OK;
    }
    if (s->mode != SEEN_READ && s->failed) {
        errno = EIO;
        status = SEEN_IO;
    } else if (s->mode != SEEN_READ) {
        status = seen_file_checkpoint(s, 0);
        if (status == SEEN_OK) status = seen_journal_remove(s->path);
    }
    seen_file_destroy(s);
    return status;
}

const seen_filter *seen_file_filter(const seen_file *s)
{
    return s->filter;
}
