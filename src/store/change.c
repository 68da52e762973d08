/*
 * change.c - changes of a filter file: frames, replay, checkpoints.
 *
 * A change is a frame of hashes. It goes to the journal, is synced (SEEN_DURABLE),
 * and is applied to the filter in the order of the frames' numbers, so that a
 * replay after a crash does the same things in the same order:
 *
 *     thread A   append 7 -> sync ---------------> apply 7 -> return
 *     thread B        append 8 -> (the same sync) -> waits for 7, apply 8 -> return
 *
 * Appending and applying are under the lock of the handle, syncing is not: any
 * number of threads share a sync. Hashes and not keys are in a frame: 8 bytes
 * for a key of any length, and a replay needs no secret.
 *
 * A checkpoint makes the filter of this moment the file, and the frames so far
 * unnecessary. It needs a moment without frames on their way: whoever wants one
 * says so (`calling`), and new frames wait until it is made. It comes by itself
 * after 64 MB of journal, some 8 million keys.
 */
#define _POSIX_C_SOURCE 200809L

#include "base/alloc.h"
#include "base/keys.h"
#include "plan/sizing.h"
#include "store/file.h"
#include "store/image.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FRAME_KEYS    65536                /* hashes in one frame, at most */
#define JOURNAL_BYTES ((uint64_t)64 << 20) /* then a checkpoint is due */

/* Frame types. */
enum {
    FRAME_ADD = 1,
    FRAME_REMOVE = 2,
    FRAME_VISIT = 3,  /* differs from an add where the kind counts */
    FRAME_ADVANCE = 4 /* the time, 8 bytes */
};

/* ---- Frames --------------------------------------------------------------- */

static size_t hash_size(const seen_filter *f)
{
    return f->hash->bits == 64 ? 8 : 16;
}

static void put_hashes(const seen_filter *f, const seen_hash *h, size_t n,
                       uint8_t *to)
{
    for (size_t i = 0; i < n; i++, to += hash_size(f)) {
        seen_put_le64(to, h[i].lo);
        if (f->hash->bits != 64) seen_put_le64(to + 8, h[i].hi);
    }
}

static void get_hashes(const seen_filter *f, const uint8_t *from, size_t n,
                       seen_hash *h)
{
    for (size_t i = 0; i < n; i++, from += hash_size(f)) {
        h[i].lo = seen_get_le64(from);
        h[i].hi = f->hash->bits != 64 ? seen_get_le64(from + 8) : 0;
    }
}

/*
 * The pages that these keys will change are going to get new checksums, which
 * would make any damage in them look whole: so each is compared with its old one
 * before it is changed for the first time, unless opening has done that. What a
 * dead writer has left may be ahead of its checksums: `replaying`, nobody can tell.
 * (To a reader a page that was found good stays so.)
 */
static seen_status touch_pages(seen_file *file, const seen_hash *h, size_t n,
                               bool replaying, seen_error *error)
{
    uint64_t at[SEEN_TOUCHED_MAX];
    if (!file->states || file->filter->ops->touches == NULL) return SEEN_OK;
    for (size_t i = 0; i < n; i++) {
        uint32_t touched = file->filter->ops->touches(file->filter, h[i], at);
        for (uint32_t t = 0; t < touched; t++) {
            uint64_t page = at[t] / SEEN_PAGE_SIZE;
            uint8_t *state = &file->states[page];
            if (!replaying && *state == SEEN_PAGE_UNSEEN &&
                seen_page_sum(file, page) != seen_page_noted(file, page))
                return seen_page_bad(file, page, error);
            if (file->mode != SEEN_READ || *state == SEEN_PAGE_UNSEEN)
                *state = SEEN_PAGE_DIRTY;
        }
    }
    return SEEN_OK;
}

/* What a frame means. Where the filter refuses a key (it is full, say), it did
 * so when the frame was written, after the same keys, and was not acknowledged:
 * nothing is wrong with the journal. */
static seen_status apply(seen_file *file, uint32_t type, const seen_hash *h,
                         size_t n, bool *answers, size_t *done)
{
    if (type == FRAME_REMOVE) {
        for (*done = 0; *done < n; ++*done) {
            seen_status status = seen_remove_hashed(file->filter, h[*done]);
            if (status != SEEN_OK && status != SEEN_ABSENT) return status;
            if (answers) answers[*done] = status == SEEN_OK;
        }
        return SEEN_OK;
    }
    if (type == FRAME_ADD)
        return seen_add_many(file->filter, seen_keys_hashes(h, n), done);
    return seen_visit_many(file->filter, seen_keys_hashes(h, n), answers, done);
}

/* ---- Replay --------------------------------------------------------------- */

struct replaying {
    seen_file *file;
    uint64_t keys;
};

static seen_status replay_frame(void *ctx, const struct seen_frame *frame)
{
    struct replaying *r = ctx;
    seen_file *file = r->file;
    if (frame->type == FRAME_ADVANCE) {
        if (frame->len != 8) return SEEN_CORRUPT;
        seen_status told =
            seen_advance(file->filter, seen_get_le64(frame->payload));
        return told == SEEN_OK ? told : SEEN_CORRUPT;
    }
    size_t size = hash_size(file->filter), n = frame->len / size;
    if (frame->len % size ||
        (frame->type < FRAME_ADD || frame->type > FRAME_VISIT))
        return SEEN_CORRUPT;
    for (size_t at = 0; at < n;) {
        seen_hash h[256];
        bool answers[256];
        size_t now = seen_min_size(256, n - at), done;
        get_hashes(file->filter, frame->payload + at * size, now, h);
        touch_pages(file, h, now, true, NULL);
        seen_status status = apply(file, frame->type, h, now, answers, &done);
        r->keys += done;
        if (status == SEEN_NOMEM) return status;
        if (status != SEEN_OK) break; /* as it was then */
        at += now;
    }
    return SEEN_OK;
}

/*
 * A dead writer's bits outlive it in the map, and a replay onto them finds nothing
 * new to count: then the fill tells how many keys there are. They are no more than
 * were counted before and lie in the journal.
 */
static void count_by_fill(seen_file *file, uint64_t replayed)
{
    seen_filter *f = file->filter;
    seen_info info = {.size = sizeof info};
    if (!f->ops->touches || replayed == 0) return;
    seen_measure(f, &info);
    uint64_t items = seen_plan_items(&f->plan, info.bits_set);
    uint64_t most = file->header.items + replayed;
    if (items > most) items = most;
    if (items > f->items) f->items = items;
}

/* Apply what the last writer left in the journal. Bits that are set already are
 * stored once more: a page that a failed sync left clean, and wrong on disk, is
 * dirty again and will be written. */
seen_status seen_file_replay(seen_file *file, seen_error *error)
{
    struct replaying ctx = {.file = file};
    struct seen_replayed done;
    seen_status status =
        seen_journal_replay(file->path, file->header.id, file->header.sequence,
                            replay_frame, &ctx, &done);
    file->applied = done.last;
    file->outcome.recovered_frames = done.frames;
    file->outcome.recovered_keys = ctx.keys;
    file->outcome.torn_bytes = done.torn;
    if (status == SEEN_OK && done.segments > 0) {
        count_by_fill(file, ctx.keys);
        return status;
    }
    if (status == SEEN_OK)
        return seen_fail(error, SEEN_CORRUPT, "path",
                         "its journal, %s.journal-*, is missing: was it moved "
                         "or copied without it?",
                         seen_io_base(file->path));
    if (status == SEEN_IO && (errno == ELOOP || errno == ENODEV))
        return seen_fail(error, status, "path", "journal: %s", done.problem);
    if (status == SEEN_IO)
        return seen_fail_io(error, "path", "read the journal");
    if (done.problem[0])
        return seen_fail(error, status, "path", "journal: %s", done.problem);
    if (status != SEEN_CORRUPT) return seen_file_explain(error, status, NULL);
    return seen_fail(error, status, "path",
                     "journal: frame %" PRIu64 " has a type or a length that "
                     "does not fit the filter",
                     done.last + 1);
}

/* ---- Checkpoints --------------------------------------------------------- */

seen_status seen_file_put_header(seen_file *file, struct seen_native *h,
                                 seen_error *error)
{
    uint8_t bytes[SEEN_HEADER_SIZE];
    h->epoch++;
    h->slot ^= 1;
    seen_native_put(h, bytes);
    if (seen_io_write_at(file->fd, bytes, sizeof bytes,
                         (uint64_t)h->slot * SEEN_HEADER_STRIDE) != SEEN_OK)
        return seen_fail_io(error, "path", "write the header");
    if (seen_io_sync(file->fd) != SEEN_OK)
        return seen_fail_io(error, "path", "sync the header");
    file->header = *h;
    return SEEN_OK;
}

static seen_status checkpoint_in_place(seen_file *file, struct seen_native *h,
                                       seen_error *error)
{
    uint8_t *table = file->map + h->table_offset;
    for (uint64_t i = 0; i < file->pages; i++) {
        if (file->states[i] != SEEN_PAGE_DIRTY) continue;
        seen_put_le32(table + 4 * i, seen_page_sum(file, i));
        file->states[i] = SEEN_PAGE_CHECKED;
    }
    h->table_crc = seen_crc32c(0, table, (size_t)(4 * file->pages));
    if (seen_os->msync(file->map, file->map_len) != 0 ||
        seen_io_sync(file->fd) != SEEN_OK)
        return seen_fail_io(error, "path", "sync the file");
    return seen_file_put_header(file, h, error);
}

static seen_status checkpoint_beside(seen_file *file,
                                     const struct seen_native *h,
                                     seen_error *error)
{
    const uint32_t kept = SEEN_NATIVE_APART | SEEN_NATIVE_JOURNALED;
    struct seen_saved saved;
    seen_status status = seen_saved_from(
        file->filter, (h->flags & kept) | SEEN_NATIVE_TWO, &saved);
    if (status != SEEN_OK) return seen_file_explain(error, status, NULL);
    saved.header.id = h->id;
    saved.header.epoch = h->epoch + 1;
    saved.header.sequence = h->sequence;
    int fd = -1;
    status = seen_image_put(file->path, file->fd, &saved, &fd, error);
    seen_saved_free(&saved);
    if (fd >= 0) { /* renamed, whether or not the directory could be synced */
        seen_io_close(file->fd);
        file->fd = fd;
        file->header = saved.header;
    }
    return status;
}

/* No more changes: what is on disk is not known, and this is why. */
static seen_status give_up(seen_file *file, seen_status status,
                           seen_error *error)
{
    if (!file->failed) file->why = *error;
    file->failed = true;
    return status;
}

seen_status seen_file_checkpoint(seen_file *file, uint32_t flags,
                                 seen_error *error)
{
    struct seen_native h = file->header;
    h.flags = (h.flags & ~SEEN_NATIVE_JOURNALED) | flags;
    h.sequence = file->applied;
    h.items = file->filter->items;
    seen_status status = SEEN_OK;
    if (file->journal &&
        seen_journal_commit(file->journal, file->applied) != SEEN_OK)
        status = seen_fail_io(error, "path", "sync the journal");
    if (status == SEEN_OK)
        status = file->in_place ? checkpoint_in_place(file, &h, error)
                                : checkpoint_beside(file, &h, error);
    return status == SEEN_OK ? status : give_up(file, status, error);
}

static seen_status checkpoint_and_drop(seen_file *file, seen_error *error)
{
    seen_status status =
        seen_file_checkpoint(file, SEEN_NATIVE_JOURNALED, error);
    if (status != SEEN_OK) return status;
    status = seen_journal_cut(file->journal);
    if (status == SEEN_OK)
        status = seen_journal_drop(file->journal, file->applied);
    if (status == SEEN_OK) return status;
    if (status == SEEN_IO) seen_fail_io(error, "path", "begin a new journal");
    return give_up(file, seen_error_end(error, status), error);
}

static bool checkpoint_due(const seen_file *file)
{
    return seen_journal_bytes(file->journal) > JOURNAL_BYTES;
}

/* ---- Turns ---------------------------------------------------------------- */

seen_status seen_file_refuse(const seen_file *file, seen_error *error)
{
    errno = file->why.os_errno ? file->why.os_errno : EIO;
    seen_fail(error, SEEN_IO, "file",
              "an earlier call failed, close the file and open it again: %s",
              file->why.text);
    error->os_errno = errno;
    return SEEN_IO;
}

/* With the lock: a checkpoint, which needs all frames to be applied, must come
 * round also where there is always another one on its way. */
static seen_status let_checkpoint_pass(seen_file *file, seen_error *error)
{
    while (!file->failed && (file->calling || checkpoint_due(file)))
        pthread_cond_wait(&file->turn, &file->lock);
    return file->failed ? seen_file_refuse(file, error) : SEEN_OK;
}

/* Frames are applied in their order. With the lock; SEEN_IO: it will not come
 * to that. */
static seen_status wait_for_turn(seen_file *file, uint64_t number,
                                 seen_error *error)
{
    while (file->applied + 1 != number && !file->failed)
        pthread_cond_wait(&file->turn, &file->lock);
    return file->failed ? seen_file_refuse(file, error) : SEEN_OK;
}

/* With the lock: this frame is in the filter. If a checkpoint fails, the next
 * call says so. */
static void applied(seen_file *file, uint64_t number)
{
    seen_error error;
    file->applied = number;
    if (file->failed || !checkpoint_due(file) ||
        number != seen_journal_last(file->journal))
        return;
    seen_error_begin(&error);
    (void)checkpoint_and_drop(file, &error);
}

/* ---- Changes -------------------------------------------------------------- */

/* In this process, and open. */
static seen_status check_handle(const seen_file *file, seen_error *error)
{
    if (!file)
        return seen_fail(error, SEEN_INVALID, "file",
                         "file: expected an open filter file, got NULL");
    if (seen_home_left(&file->home))
        return seen_fail(error, SEEN_INVALID, "file", "%s",
                         file->home.sentence);
    return SEEN_OK;
}

static seen_status check_keys(const seen_file *file, seen_keys keys,
                              seen_error *error)
{
    if (seen_keys_check(keys) != SEEN_OK)
        return seen_fail(error, SEEN_INVALID, "keys",
                         "keys: %zu keys in layout %d are not described as "
                         "seen.h says: NULL, a stride of 0, offsets that run "
                         "backwards or beyond len, or not aligned",
                         keys.n, (int)keys.layout);
    if (keys.layout == SEEN_HASHES64 && file->filter->hash->bits != 64)
        return seen_fail(error, SEEN_INVALID, "keys",
                         "keys: 64-bit hashes, but this filter reads %u bits: "
                         "use seen_keys_hashes()",
                         file->filter->hash->bits);
    return SEEN_OK;
}

/* Why the filter did not take all keys of a call. */
static seen_status explain_refusal(const seen_file *file, seen_status status,
                                   size_t done, size_t n, seen_error *error)
{
    const char *kind = seen_kind_name(file->filter->plan.kind);
    if (status == SEEN_FULL)
        return seen_fail(error, status, "keys",
                         "the filter is full: %zu of %zu keys went in; build a "
                         "larger one",
                         done, n);
    if (status == SEEN_INVALID)
        return seen_fail(error, status, "keys",
                         "key %zu of %zu is outside the range of this %s",
                         done + 1, n, kind);
    if (status == SEEN_UNSUPPORTED)
        return seen_fail(error, status, "file",
                         "a filter of kind %s cannot be changed in this way",
                         kind);
    return status;
}

/* One frame: journal, sync, wait for our turn, apply. */
static seen_status change(seen_file *file, uint32_t type, const seen_hash *h,
                          size_t n, uint8_t *bytes, bool *answers, size_t *done,
                          seen_error *error)
{
    *done = 0;
    put_hashes(file->filter, h, n, bytes);
    pthread_mutex_lock(&file->lock);
    uint64_t number = 0;
    seen_status status = let_checkpoint_pass(file, error);
    if (status == SEEN_OK) status = touch_pages(file, h, n, false, error);
    if (status == SEEN_OK) {
        status = seen_journal_append(file->journal, type, bytes,
                                     n * hash_size(file->filter), &number);
        if (status == SEEN_IO)
            seen_fail_io(error, "path", "write to the journal");
    }
    if (status == SEEN_OK && file->mode == SEEN_DURABLE) {
        pthread_mutex_unlock(&file->lock);
        status = seen_journal_commit(file->journal, number);
        if (status != SEEN_OK) seen_fail_io(error, "path", "sync the journal");
        pthread_mutex_lock(&file->lock);
        if (status != SEEN_OK) give_up(file, status, error);
    }
    if (status == SEEN_OK) {
        status = wait_for_turn(file, number, error);
        if (status == SEEN_OK) status = apply(file, type, h, n, answers, done);
        applied(file, number);
    }
    pthread_cond_broadcast(&file->turn);
    pthread_mutex_unlock(&file->lock);
    return status;
}

static seen_status change_in_frames(seen_file *file, uint32_t type,
                                    seen_keys keys, bool *answers, size_t *done,
                                    seen_error *error)
{
    size_t most = seen_min_size(keys.n, FRAME_KEYS);
    seen_hash *h = seen_alloc_zeroed(&seen_system_memory, most * sizeof *h);
    uint8_t *bytes = seen_alloc_zeroed(&seen_system_memory, most * sizeof *h);
    seen_status status = h && bytes ? SEEN_OK : SEEN_NOMEM;
    while (status == SEEN_OK && *done < keys.n) {
        size_t now = seen_min_size(most, keys.n - *done), part = 0;
        status =
            seen_hash_many(file->filter, seen_keys_slice(keys, *done, now), h);
        if (status == SEEN_OK)
            status = change(file, type, h, now, bytes,
                            answers ? answers + *done : NULL, &part, error);
        *done += part;
    }
    int before = errno;
    seen_release(&seen_system_memory, bytes, most * sizeof *h);
    seen_release(&seen_system_memory, h, most * sizeof *h);
    errno = before;
    return explain_refusal(file, status, *done, keys.n, error);
}

/* A batch that cannot be read has answers all the same: "maybe". */
static seen_status change_many(seen_file *file, uint32_t type, seen_keys keys,
                               bool *answers, size_t *done, seen_error *error)
{
    seen_error own;
    size_t total = 0;
    if (!error) error = &own;
    seen_error_begin(error);
    seen_status status = check_handle(file, error);
    if (status == SEEN_OK) {
        status = check_keys(file, keys, error);
        if (status != SEEN_OK && answers && type != FRAME_REMOVE &&
            keys.n <= SEEN_KEYS_MAX)
            memset(answers, true, keys.n * sizeof *answers);
    }
    if (status == SEEN_OK && file->mode == SEEN_READ)
        status = seen_fail(error, SEEN_UNSUPPORTED, "file",
                           "the file is open with SEEN_READ: open it with "
                           "SEEN_WRITE or SEEN_DURABLE to change it");
    if (status == SEEN_OK && type == FRAME_REMOVE && !file->filter->ops->remove)
        status = seen_fail(error, SEEN_UNSUPPORTED, "file",
                           "a filter of kind %s cannot remove keys: use kind "
                           "cuckoo, or bitmap",
                           seen_kind_name(file->filter->plan.kind));
    if (status == SEEN_OK && keys.n)
        status = change_in_frames(file, type, keys, answers, &total, error);
    if (done) *done = total;
    return seen_error_end(error, status);
}

seen_status seen_file_add_many(seen_file *file, seen_keys keys, size_t *added,
                               seen_error *error)
{
    return change_many(file, FRAME_ADD, keys, NULL, added, error);
}

seen_status seen_file_visit_many(seen_file *file, seen_keys keys, bool *before,
                                 size_t *visited, seen_error *error)
{
    return change_many(file, before ? FRAME_VISIT : FRAME_ADD, keys, before,
                       visited, error);
}

seen_status seen_file_remove_many(seen_file *file, seen_keys keys,
                                  bool *removed, size_t *done,
                                  seen_error *error)
{
    return change_many(file, FRAME_REMOVE, keys, removed, done, error);
}

/* With the lock. Not synced: the next change takes it along. */
static seen_status tell_time(seen_file *file, uint64_t now_ms,
                             seen_error *error)
{
    uint8_t time[8];
    uint64_t number;
    seen_put_le64(time, now_ms);
    seen_status status = let_checkpoint_pass(file, error);
    if (status != SEEN_OK) return status;
    status = seen_journal_append(file->journal, FRAME_ADVANCE, time,
                                 sizeof time, &number);
    if (status == SEEN_IO)
        return seen_fail_io(error, "path", "write to the journal");
    if (status == SEEN_OK) status = wait_for_turn(file, number, error);
    if (status != SEEN_OK) return status;
    seen_advance(file->filter, now_ms);
    applied(file, number);
    if (now_ms > file->told) file->told = now_ms;
    return SEEN_OK;
}

seen_status seen_file_advance(seen_file *file, uint64_t now_ms,
                              seen_error *error)
{
    seen_error own;
    if (!error) error = &own;
    seen_error_begin(error);
    seen_status status = check_handle(file, error);
    if (status != SEEN_OK) return status;
    if (!file->filter->ops->advance)
        return seen_fail(error, SEEN_UNSUPPORTED, "file",
                         "a filter of kind %s does not know the time: use kind "
                         "window",
                         seen_kind_name(file->filter->plan.kind));
    pthread_mutex_lock(&file->lock);
    if (file->mode != SEEN_READ && now_ms > file->told)
        status = tell_time(file, now_ms, error);
    else
        seen_advance(file->filter, now_ms);
    pthread_cond_broadcast(&file->turn);
    pthread_mutex_unlock(&file->lock);
    return seen_error_end(error, status);
}

seen_status seen_file_sync(seen_file *file, seen_error *error)
{
    seen_error own;
    if (!error) error = &own;
    seen_error_begin(error);
    seen_status status = check_handle(file, error);
    if (status != SEEN_OK || file->mode == SEEN_READ) return status;
    pthread_mutex_lock(&file->lock);
    file->calling++;
    while (!file->failed && file->applied != seen_journal_last(file->journal))
        pthread_cond_wait(&file->turn, &file->lock);
    file->calling--;
    status = file->failed ? seen_file_refuse(file, error)
                          : checkpoint_and_drop(file, error);
    pthread_cond_broadcast(&file->turn);
    pthread_mutex_unlock(&file->lock);
    return seen_error_end(error, status);
}

/* ---- Questions ------------------------------------------------------------ */

/* In a child that was forked, what a writer has in memory is of the time of the
 * fork, or half changed: "never" could be wrong, "maybe" cannot. A filter that is
 * only read, and knows no time, is the same in all processes: no lock is needed. */
seen_status seen_file_maybe_many(seen_file *file, seen_keys keys, bool *answers)
{
    bool elsewhere = seen_home_left(&file->home);
    if (elsewhere && file->mode == SEEN_READ && !file->filter->ops->advance)
        return seen_maybe_many(file->filter, keys, answers);
    if (elsewhere) {
        seen_status status = seen_keys_check(keys);
        if (keys.n > SEEN_KEYS_MAX || (keys.n && !answers)) return SEEN_INVALID;
        if (keys.n) memset(answers, true, keys.n * sizeof *answers);
        return status;
    }
    pthread_mutex_lock(&file->lock);
    seen_status status = seen_maybe_many(file->filter, keys, answers);
    pthread_mutex_unlock(&file->lock);
    return status;
}
