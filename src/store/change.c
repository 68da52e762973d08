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
#include "plan/sizing.h"
#include "store/file.h"
#include "store/image.h"

#include <errno.h>
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

static const seen_allocator system_memory;

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
 * before it is changed for the first time. What a dead writer has left may be
 * ahead of its checksums: `replaying`, nobody can tell.
 */
static seen_status touch_pages(seen_file *s, const seen_hash *h, size_t n,
                               bool replaying)
{
    uint64_t at[SEEN_MOST_TOUCHED];
    if (!s->dirty || s->filter->ops->touches == NULL) return SEEN_OK;
    for (size_t i = 0; i < n; i++) {
        uint32_t touched = s->filter->ops->touches(s->filter, h[i], at);
        for (uint32_t t = 0; t < touched; t++) {
            uint64_t page = at[t] / SEEN_PAGE_SIZE;
            if (!replaying && s->dirty[page] == SEEN_PAGE_UNSEEN &&
                seen_page_sum(s, page) != seen_page_noted(s, page))
                return SEEN_CORRUPT;
            s->dirty[page] = SEEN_PAGE_DIRTY;
        }
    }
    return SEEN_OK;
}

/* What a frame means. Where the filter refuses a key (it is full, say), it did
 * so when the frame was written, after the same keys, and was not acknowledged:
 * nothing is wrong with the journal. */
static seen_status apply(seen_file *s, uint32_t type, const seen_hash *h,
                         size_t n, bool *answers, size_t *done)
{
    if (type == FRAME_REMOVE) {
        for (*done = 0; *done < n; ++*done) {
            seen_status status = seen_remove_hashed(s->filter, h[*done]);
            if (status != SEEN_OK && status != SEEN_ABSENT) return status;
            if (answers) answers[*done] = status == SEEN_OK;
        }
        return SEEN_OK;
    }
    if (type == FRAME_ADD)
        return seen_add_many(s->filter, seen_keys_hashes(h, n), done);
    return seen_visit_many(s->filter, seen_keys_hashes(h, n), answers, done);
}

/* ---- Replay --------------------------------------------------------------- */

struct replaying {
    seen_file *file;
    uint64_t keys;
};

static seen_status replay_frame(void *ctx, const struct seen_frame *frame)
{
    struct replaying *r = ctx;
    seen_file *s = r->file;
    if (frame->type == FRAME_ADVANCE) {
        if (frame->len != 8) return SEEN_CORRUPT;
        seen_status told =
            seen_advance(s->filter, seen_get_le64(frame->payload));
        return told == SEEN_OK ? told : SEEN_CORRUPT;
    }
    size_t size = hash_size(s->filter), n = frame->len / size;
    if (frame->len % size ||
        (frame->type < FRAME_ADD || frame->type > FRAME_VISIT))
        return SEEN_CORRUPT;
    for (size_t at = 0; at < n;) {
        seen_hash h[256];
        bool answers[256];
        size_t now = seen_min_size(256, n - at), done;
        get_hashes(s->filter, frame->payload + at * size, now, h);
        touch_pages(s, h, now, true);
        seen_status status = apply(s, frame->type, h, now, answers, &done);
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
static void count_by_fill(seen_file *s, uint64_t replayed)
{
    seen_filter *f = s->filter;
    seen_info info;
    if (!f->ops->touches || replayed == 0) return;
    seen_info_of(f, &info);
    uint64_t items = seen_plan_items(&f->plan, info.bits_set);
    uint64_t most = s->header.items + replayed;
    if (items > most) items = most;
    if (items > f->items) f->items = items;
}

/* Apply what the last writer left in the journal. Bits that are set already are
 * stored once more: a page that a failed sync left clean, and wrong on disk, is
 * dirty again and will be written. */
seen_status seen_file_replay(seen_file *s, seen_error *error)
{
    struct replaying ctx = {.file = s};
    struct seen_replayed done;
    seen_status status = seen_journal_replay(
        s->path, s->header.id, s->header.sequence, replay_frame, &ctx, &done);
    s->applied = done.last;
    s->outcome.recovered_frames = done.frames;
    s->outcome.recovered_keys = ctx.keys;
    s->outcome.torn_bytes = done.torn;
    if (status == SEEN_OK && done.segments == 0)
        return seen_fail(
            error, SEEN_CORRUPT, NULL,
            "its journal, %s.journal-*, is missing: was it moved or "
            "copied without it?",
            seen_io_base(s->path));
    if (status == SEEN_OK) {
        count_by_fill(s, ctx.keys);
        return status;
    }
    if (done.problem[0])
        return seen_fail(error, status, NULL, "journal: %s", done.problem);
    if (status != SEEN_CORRUPT) return seen_file_explain(error, status);
    return seen_fail(error, status, NULL, "journal: a frame makes no sense");
}

/* ---- Checkpoints ---------------------------------------------------------- */

seen_status seen_file_put_header(seen_file *s, struct seen_native *h)
{
    uint8_t bytes[SEEN_HEADER_SIZE];
    h->epoch++;
    h->slot ^= 1;
    seen_native_put(h, bytes);
    seen_status status = seen_io_write_at(
        s->fd, bytes, sizeof bytes, (uint64_t)h->slot * SEEN_HEADER_STRIDE);
    if (status == SEEN_OK) status = seen_io_sync(s->fd);
    if (status == SEEN_OK) s->header = *h;
    return status;
}

static seen_status checkpoint_in_place(seen_file *s, struct seen_native *h)
{
    uint8_t *table = s->map + h->table_offset;
    for (uint64_t i = 0; i < s->pages; i++) {
        if (s->dirty[i] != SEEN_PAGE_DIRTY) continue;
        seen_put_le32(table + 4 * i, seen_page_sum(s, i));
        s->dirty[i] = SEEN_PAGE_CHECKED;
    }
    h->table_crc = seen_crc32c(0, table, (size_t)(4 * s->pages));
    if (seen_os->msync(s->map, s->map_len) != 0) return SEEN_IO;
    seen_status status = seen_io_sync(s->fd);
    return status == SEEN_OK ? seen_file_put_header(s, h) : status;
}

static seen_status checkpoint_beside(seen_file *s, const struct seen_native *h)
{
    struct seen_saved saved;
    seen_status status = seen_saved_from(
        s->filter,
        (h->flags & (SEEN_NATIVE_APART | SEEN_NATIVE_JOURNALED)) |
            SEEN_NATIVE_TWO,
        &saved);
    if (status != SEEN_OK) return status;
    saved.header.id = h->id;
    saved.header.epoch = h->epoch + 1;
    saved.header.sequence = h->sequence;
    int fd = -1;
    status = seen_image_put(s->path, s->fd, &saved, &fd, NULL);
    seen_saved_free(&saved);
    if (fd >= 0) { /* renamed, whether or not the directory could be synced */
        seen_io_close(s->fd);
        s->fd = fd;
        s->header = saved.header;
    }
    return status;
}

seen_status seen_file_checkpoint(seen_file *s, uint32_t flags)
{
    struct seen_native h = s->header;
    h.flags = (h.flags & ~SEEN_NATIVE_JOURNALED) | flags;
    h.sequence = s->applied;
    h.items = s->filter->items;
    seen_status status = SEEN_OK;
    if (s->journal) status = seen_journal_commit(s->journal, s->applied);
    if (status == SEEN_OK)
        status =
            s->in_place ? checkpoint_in_place(s, &h) : checkpoint_beside(s, &h);
    if (status != SEEN_OK) s->failed = true;
    return status;
}

static seen_status checkpoint_and_drop(seen_file *s)
{
    seen_status status = seen_file_checkpoint(s, SEEN_NATIVE_JOURNALED);
    if (status == SEEN_OK) status = seen_journal_cut(s->journal);
    if (status == SEEN_OK) status = seen_journal_drop(s->journal, s->applied);
    if (status != SEEN_OK) s->failed = true;
    return status;
}

static bool checkpoint_due(const seen_file *s)
{
    return seen_journal_bytes(s->journal) > JOURNAL_BYTES;
}

/* ---- Changes -------------------------------------------------------------- */

/* Frames are applied in their order. With the lock; SEEN_IO: it will not come
 * to that. */
static seen_status wait_for_turn(seen_file *s, uint64_t number)
{
    while (s->applied + 1 != number && !s->failed)
        pthread_cond_wait(&s->turn, &s->lock);
    return s->failed ? SEEN_IO : SEEN_OK;
}

/* With the lock: a checkpoint, which needs all frames to be applied, must come
 * round also where there is always another one on its way. */
static void let_checkpoint_pass(seen_file *s)
{
    while (!s->failed && (s->calling || checkpoint_due(s)))
        pthread_cond_wait(&s->turn, &s->lock);
}

/* With the lock: this frame is in the filter. */
static void applied(seen_file *s, uint64_t number)
{
    s->applied = number;
    if (!s->failed && checkpoint_due(s) &&
        number == seen_journal_last(s->journal))
        (void)checkpoint_and_drop(s); /* if it fails, the next call says so */
}

/* One frame: journal, sync, wait for our turn, apply. */
static seen_status change(seen_file *s, uint32_t type, const seen_hash *h,
                          size_t n, uint8_t *bytes, bool *answers, size_t *done)
{
    *done = 0;
    put_hashes(s->filter, h, n, bytes);
    pthread_mutex_lock(&s->lock);
    uint64_t number = 0;
    let_checkpoint_pass(s);
    seen_status status = s->failed ? SEEN_IO : touch_pages(s, h, n, false);
    if (status == SEEN_IO) errno = EIO;
    if (status == SEEN_OK)
        status = seen_journal_append(s->journal, type, bytes,
                                     n * hash_size(s->filter), &number);
    if (status == SEEN_OK && s->mode == SEEN_DURABLE) {
        pthread_mutex_unlock(&s->lock);
        status = seen_journal_commit(s->journal, number);
        pthread_mutex_lock(&s->lock);
        if (status != SEEN_OK) s->failed = true;
    }
    if (status == SEEN_OK) {
        status = wait_for_turn(s, number);
        if (status == SEEN_OK) status = apply(s, type, h, n, answers, done);
        applied(s, number);
    }
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static seen_status change_many(seen_file *s, uint32_t type,
                               const seen_key *keys, size_t n, bool *answers,
                               size_t *done)
{
    size_t total = 0;
    if (done) *done = 0;
    if (!s || (n && !keys) || seen_home_left(&s->home)) return SEEN_INVALID;
    if (s->mode == SEEN_READ) return SEEN_UNSUPPORTED;
    if (n == 0) return SEEN_OK;
    size_t most = seen_min_size(n, FRAME_KEYS);
    seen_hash *h = seen_alloc_zeroed(&system_memory, most * sizeof *h);
    uint8_t *bytes = seen_alloc_zeroed(&system_memory, most * sizeof *h);
    seen_status status = h && bytes ? SEEN_OK : SEEN_NOMEM;
    while (status == SEEN_OK && total < n) {
        size_t now = seen_min_size(most, n - total), part = 0;
        seen_hash_many(s->filter, seen_keys_of(keys + total, now), h);
        status = change(s, type, h, now, bytes,
                        answers ? answers + total : NULL, &part);
        total += part;
    }
    int before = errno;
    seen_release(&system_memory, bytes, most * sizeof *h);
    seen_release(&system_memory, h, most * sizeof *h);
    errno = before;
    if (done) *done = total;
    return status;
}

seen_status seen_file_add_many(seen_file *s, const seen_key *keys, size_t n,
                               size_t *added)
{
    return change_many(s, FRAME_ADD, keys, n, NULL, added);
}

seen_status seen_file_visit_many(seen_file *s, const seen_key *keys, size_t n,
                                 bool *before, size_t *visited)
{
    if (n && !before) return SEEN_INVALID;
    return change_many(s, FRAME_VISIT, keys, n, before, visited);
}

seen_status seen_file_remove_many(seen_file *s, const seen_key *keys, size_t n,
                                  bool *removed)
{
    if (!s || (n && !removed)) return SEEN_INVALID;
    if (!s->filter->ops->remove) return SEEN_UNSUPPORTED;
    return change_many(s, FRAME_REMOVE, keys, n, removed, NULL);
}

/* Not synced: the next change takes it along. */
seen_status seen_file_advance(seen_file *s, uint64_t now_ms)
{
    uint8_t time[8];
    uint64_t number;
    if (!s || seen_home_left(&s->home)) return SEEN_INVALID;
    if (!s->filter->ops->advance) return SEEN_UNSUPPORTED;
    seen_put_le64(time, now_ms);
    pthread_mutex_lock(&s->lock);
    seen_status status = SEEN_OK;
    if (s->mode != SEEN_READ && now_ms > s->told) {
        let_checkpoint_pass(s);
        status = SEEN_IO;
        errno = EIO;
        if (!s->failed)
            status = seen_journal_append(s->journal, FRAME_ADVANCE, time,
                                         sizeof time, &number);
        if (status == SEEN_OK) status = wait_for_turn(s, number);
        if (status == SEEN_OK) seen_advance(s->filter, now_ms);
        if (status == SEEN_OK) applied(s, number);
        if (status == SEEN_OK && now_ms > s->told) s->told = now_ms;
    } else {
        seen_advance(s->filter, now_ms);
    }
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
    return status;
}

seen_status seen_file_sync(seen_file *s)
{
    if (!s || seen_home_left(&s->home)) return SEEN_INVALID;
    if (s->mode == SEEN_READ) return SEEN_OK;
    pthread_mutex_lock(&s->lock);
    s->calling++;
    while (!s->failed && s->applied != seen_journal_last(s->journal))
        pthread_cond_wait(&s->turn, &s->lock);
    s->calling--;
    seen_status status = SEEN_IO;
    if (s->failed)
        errno = EIO;
    else
        status = checkpoint_and_drop(s);
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* In a child that was forked: what a writer has in memory is of the time of the
 * fork, or half changed. "Never" could be wrong, "maybe" cannot. A filter that is
 * only read, and knows no time, is the same in all processes: no lock is needed. */
static void answer_elsewhere(seen_file *s, const seen_key *keys, size_t n,
                             bool *answers)
{
    bool still = s->mode == SEEN_READ && !s->filter->ops->advance;
    if (still)
        seen_maybe_many(s->filter, seen_keys_of(keys, n), answers);
    else
        memset(answers, true, n * sizeof *answers);
}

void seen_file_maybe_many(seen_file *s, const seen_key *keys, size_t n,
                          bool *answers)
{
    if (seen_home_left(&s->home)) {
        answer_elsewhere(s, keys, n, answers);
        return;
    }
    pthread_mutex_lock(&s->lock);
    seen_maybe_many(s->filter, seen_keys_of(keys, n), answers);
    pthread_mutex_unlock(&s->lock);
}
