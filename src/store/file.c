/*
 * file.c - a filter in a file: mapped, journaled, checkpointed.
 *
 * Two ways to change one, after the kind:
 *
 *   in place   Kinds whose adds only set bits, in SEEN_DURABLE: the file
 *              is mapped, shared, and bits are set there after their keys are
 *              in the journal on disk. The kernel may write a page back at any
 *              time: that does no harm, a bit too many is a "maybe" too many,
 *              and its key is in the journal anyway.
 *   beside     All others: the filter is in private memory; a checkpoint writes
 *              PATH.seen-new, syncs it and renames it to PATH.
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
 * Two headers lie in sectors of their own; the one of the lower epoch is the
 * one that gets written. Whoever opens takes the valid one of the higher epoch
 * and replays the frames behind its sequence number.
 *
 * Writers lock the file itself. A checkpoint beside locks the new file before
 * the rename, so at any time whoever locks what PATH names has the lock. Who
 * finds no file and makes one looks again when it has PATH.seen-new locked.
 *
 * Worked example: a filter for 100 million keys, 126 MB. `seen add` with 1000
 * keys writes 8 KB to the journal, syncs, sets 8000 bits, and at the end syncs
 * the 1000 pages and checksums of at most 1000 blocks that these lie in.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_file.h"

#include "api/bytes.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "plan/sizing.h"
#include "store/home.h"
#include "store/io.h"
#include "store/journal.h"
#include "store/outcome.h"
#include "store/replace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FRAME_KEYS    65536                /* hashes in one frame, at most */
#define JOURNAL_BYTES ((uint64_t)64 << 20) /* then a checkpoint is due */
#define PIECE         ((uint64_t)1 << 20)  /* written at once */
#define ATTEMPTS      100 /* of a reader to catch a file between checkpoints */
#define DOUBTS        10  /* times that damage must be seen */

/* Frame types. */
enum {
    FRAME_ADD = 1,
    FRAME_REMOVE = 2,
    FRAME_VISIT = 3,  /* differs from an add where the kind counts */
    FRAME_ADVANCE = 4 /* the time, 8 bytes */
};

/* What is known of a block of the file that is changed in place. */
enum block_state {
    BLOCK_UNSEEN = 0,
    BLOCK_DIRTY,  /* its checksum is out of date */
    BLOCK_CHECKED /* it has been as its checksum says, and still is */
};

struct seen_file {
    struct seen_home home;
    char *path;
    size_t path_size;
    seen_mode mode;
    int fd; /* the file, locked by writers; -1: none */
    struct seen_native header;
    seen_filter *filter;
    uint8_t *map; /* what the filter lies in, or NULL */
    size_t map_len;
    bool in_place;
    uint8_t *dirty; /* an enum block_state for each block */
    uint64_t blocks;

    seen_journal *journal;
    uint64_t applied; /* number of the last frame that is in the filter */
    uint64_t told;    /* the time of the last FRAME_ADVANCE of ours */
    uint32_t calling; /* for a checkpoint: no more frames until it is made */
    bool failed;      /* a sync failed: no more changes */
    seen_outcome outcome; /* of opening or verifying it */
    int doubts; /* times that a reader has seen damage in the journal */
    pthread_mutex_t lock;
    pthread_cond_t turn; /* `applied` has moved on */
};

static const seen_allocator system_memory;

/* ---- Reports ------------------------------------------------------------ */

/* What the status of a container means, where the call did not say more. */
static seen_status explain(seen_error *error, seen_status status)
{
    if (status == SEEN_CORRUPT)
        return seen_fail(error, status, NULL, "not a filter file, or damaged");
    return seen_fail(error, status, NULL, "%s", seen_strerror(status));
}

/* ---- Writing a whole file ----------------------------------------------- */

static bool is_zero(const uint8_t *p, uint64_t len)
{
    return p[0] == 0 && memcmp(p, p + 1, (size_t)len - 1) == 0;
}

/* The file is all zeros so far: pieces that are zero need not be written. */
static seen_status write_part(int fd, const struct seen_part *part,
                              uint64_t offset)
{
    const uint8_t *from = part->at;
    for (uint64_t at = 0; at < part->len; at += PIECE) {
        uint64_t len = seen_min64(PIECE, part->len - at);
        if (is_zero(from + at, len)) continue;
        seen_status status =
            seen_io_write_at(fd, from + at, (size_t)len, offset + at);
        if (status != SEEN_OK) return status;
    }
    return SEEN_OK;
}

static seen_status write_parts(int fd, const struct seen_saved *s)
{
    uint64_t offset = s->header.payload_offset;
    seen_status status = SEEN_OK;
    for (uint32_t i = 0; status == SEEN_OK && i < s->body.count; i++) {
        status = write_part(fd, &s->parts[i], offset);
        offset += seen_part_room(&s->parts[i]);
    }
    return status;
}

/* The whole container into an empty file. */
static seen_status write_container(int fd, struct seen_saved *s)
{
    const struct seen_native *h = &s->header;
    if (!SEEN_LITTLE_ENDIAN) return SEEN_UNSUPPORTED;
    uint8_t *head = seen_alloc_zeroed(&system_memory, h->payload_offset);
    if (!head) return SEEN_NOMEM;
    seen_native_head(&s->header, &s->body, head);
    seen_status status =
        seen_io_allocate(fd, h->payload_offset + h->payload_len);
    if (status == SEEN_OK)
        status = seen_io_write_at(fd, head, (size_t)h->payload_offset, 0);
    if (status == SEEN_OK) status = write_parts(fd, s);
    if (status == SEEN_OK) status = seen_io_sync(fd);
    seen_release(&system_memory, head, h->payload_offset);
    return status;
}

/* Permissions of a new file, before the umask: a secret is its maker's. */
static mode_t mode_of(const struct seen_native *h)
{
    uint32_t where = h->flags & (SEEN_NATIVE_KEYED | SEEN_NATIVE_APART);
    return where == SEEN_NATIVE_KEYED ? 0600 : 0666;
}

static seen_status write_to(void *saved, int fd)
{
    return write_container(fd, saved);
}

/* *fd is the new file, locked. `old` is the one that is there, locked, or -1. */
static seen_status replace(const char *path, int old, struct seen_saved *s,
                           int *fd, seen_error *error)
{
    return seen_replace(&(struct seen_replacing){.path = path,
                                                 .old = old,
                                                 .mode = mode_of(&s->header),
                                                 .write = write_to,
                                                 .ctx = s},
                        fd, error);
}

/* A number that no other file has. */
static seen_status random_id(uint64_t *id)
{
    uint8_t bytes[16];
    seen_status status = seen_random_secret(bytes);
    if (status == SEEN_OK) *id = seen_get_le64(bytes) | 1;
    return status;
}

/* A device or a pipe: no renaming there, just the bytes. */
static seen_status pour(const char *path, struct seen_saved *s)
{
    int fd = seen_io_open(path, O_WRONLY, 0);
    if (fd < 0) return SEEN_IO;
    const struct seen_native *h = &s->header;
    uint8_t *head = seen_alloc_zeroed(&system_memory, h->payload_offset);
    seen_status status = head ? SEEN_OK : SEEN_NOMEM;
    if (head) {
        seen_native_head(&s->header, &s->body, head);
        status = seen_io_write(fd, head, (size_t)h->payload_offset);
    }
    for (uint32_t i = 0; status == SEEN_OK && i < s->body.count; i++) {
        static const uint8_t zeros[SEEN_LINE_SIZE];
        const struct seen_part *part = &s->parts[i];
        status = seen_io_write(fd, part->at, (size_t)part->len);
        if (status == SEEN_OK)
            status = seen_io_write(fd, zeros,
                                   (size_t)(seen_part_room(part) - part->len));
    }
    seen_release(&system_memory, head, h->payload_offset);
    seen_io_close(fd);
    return status;
}

/* What to write of a filter into a file of its own. */
static seen_status describe(const seen_filter *f, uint32_t flags,
                            struct seen_saved *s, seen_error *error)
{
    uint32_t apart = flags & SEEN_SECRET_APART ? SEEN_NATIVE_APART : 0;
    seen_status status = seen_saved_from(f, apart | SEEN_NATIVE_TWO, s);
    if (status == SEEN_INVALID && apart)
        return seen_fail(error, status, NULL,
                         "the filter has no secret to keep apart");
    return status == SEEN_OK ? status : explain(error, status);
}

/* Is the file still as it was when it was looked at? Every writer that opens it
 * changes its epoch. */
static bool still_as(int fd, const seen_facts *was)
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

static seen_status save(const char *path, struct seen_saved *s,
                        const seen_facts *was, seen_outcome *outcome,
                        seen_error *error)
{
    s->header.epoch = 1;
    if (random_id(&s->header.id) != SEEN_OK)
        return seen_fail_io(error, NULL, "random");

    struct seen_there there;
    int made = -1;
    seen_status status = seen_find_there(path, &there, error);
    if (status != SEEN_OK) return status;
    if (there.stream) {
        status = pour(path, s);
        return status == SEEN_IO ? seen_fail_io(error, NULL, "write") : status;
    }
    if (was && (there.fd < 0 || !still_as(there.fd, was))) {
        seen_io_close(there.fd);
        return seen_fail(error, SEEN_BUSY, NULL,
                         "another program has changed it meanwhile");
    }
    status = replace(path, there.fd, s, &made, error);
    outcome->created = made >= 0;
    if (status == SEEN_OK && seen_journal_remove(path) != SEEN_OK)
        status = seen_fail_io(error, NULL, "remove the old journal");
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
                                uint32_t flags, const seen_facts *was,
                                seen_outcome *outcome, seen_error *error)
{
    seen_error_begin(error);
    if (!path || !f || flags & ~SEEN_SECRET_APART || !seen_outcome_ok(outcome))
        return explain(error, SEEN_INVALID);
    seen_outcome did = {0};
    struct seen_saved s;
    char real[SEEN_PATH_ROOM];
    if (seen_io_resolve(path, real, sizeof real) != SEEN_OK)
        return seen_fail_io(error, NULL, "look");
    seen_status status = describe(f, flags, &s, error);
    if (status != SEEN_OK) return status;
    status = save(real, &s, was, &did, error);
    seen_saved_free(&s);
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}

/* ---- Opening ------------------------------------------------------------ */

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

static seen_status map_to_read(seen_file *s, enum seen_map_mode mode,
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

/* Of the file that is mapped. */
static seen_status read_header(seen_file *s, seen_error *error)
{
    seen_status status = seen_native_read(s->map, s->map_len, &s->header, NULL);
    return status == SEEN_OK ? status : explain(error, status);
}

static void unmap_file(seen_file *s)
{
    int before = errno;
    if (s->map) seen_os->unmap(s->map, s->map_len);
    s->map = NULL;
    errno = before;
}

/* ---- Journal frames ----------------------------------------------------- */

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

static uint32_t sum_of_block(const seen_file *s, uint64_t i)
{
    const struct seen_native *h = &s->header;
    uint64_t at = i * SEEN_BLOCK_SIZE;
    return seen_crc32c(
        0, s->map + h->payload_offset + at,
        (size_t)seen_min64(h->payload_len - at, SEEN_BLOCK_SIZE));
}

static uint32_t noted_sum(const seen_file *s, uint64_t i)
{
    return seen_get_le32(s->map + s->header.table_offset + 4 * i);
}

/*
 * The blocks that these keys will change are going to get new checksums, which
 * would make any damage in them look whole: so each is compared with its old one
 * before it is changed for the first time. What a dead writer has left may be
 * ahead of its checksums: `replaying`, nobody can tell.
 */
static seen_status touch_blocks(seen_file *s, const seen_hash *h, size_t n,
                                bool replaying)
{
    uint64_t at[SEEN_MOST_TOUCHED];
    if (!s->dirty || s->filter->ops->touches == NULL) return SEEN_OK;
    for (size_t i = 0; i < n; i++) {
        uint32_t touched = s->filter->ops->touches(s->filter, h[i], at);
        for (uint32_t t = 0; t < touched; t++) {
            uint64_t block = at[t] / SEEN_BLOCK_SIZE;
            if (!replaying && s->dirty[block] == BLOCK_UNSEEN &&
                sum_of_block(s, block) != noted_sum(s, block))
                return SEEN_CORRUPT;
            s->dirty[block] = BLOCK_DIRTY;
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
    if (type == FRAME_ADD) return seen_add_many_hashed(s->filter, h, n, done);
    return seen_visit_many_hashed(s->filter, h, n, answers, done);
}

struct replaying {
    seen_file *store;
    uint64_t keys;
};

static seen_status replay_frame(void *ctx, const struct seen_frame *frame)
{
    struct replaying *r = ctx;
    seen_file *s = r->store;
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
        touch_blocks(s, h, now, true);
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
    seen_info info = {.size = sizeof info};
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
static seen_status replay(seen_file *s, seen_error *error)
{
    struct replaying ctx = {.store = s};
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
    if (status != SEEN_CORRUPT) return explain(error, status);
    return seen_fail(error, status, NULL, "journal: a frame makes no sense");
}

/* ---- Reading ------------------------------------------------------------ */

/* The journal may be dropped and the file replaced while we look: then what was
 * read together does not belong together. */
static bool unchanged(seen_file *s)
{
    struct seen_native now;
    uint8_t head[SEEN_HEADER_STRIDE + SEEN_HEADER_SIZE];
    size_t got;
    if (!seen_still_there(s->path, s->fd) ||
        seen_io_read_at(s->fd, head, sizeof head, 0, &got) != SEEN_OK)
        return false;
    seen_status a = seen_native_get(head, got, &now, NULL);
    uint64_t epoch = a == SEEN_OK ? now.epoch : 0;
    if (!(s->header.flags & SEEN_NATIVE_TWO)) return epoch == s->header.epoch;
    if (got != sizeof head) return false;
    a = seen_native_get(head + SEEN_HEADER_STRIDE, SEEN_HEADER_SIZE, &now,
                        NULL);
    if (a == SEEN_OK && now.epoch > epoch) epoch = now.epoch;
    return epoch == s->header.epoch;
}

/*
 * Does what was read together belong together? A frame that a writer appends
 * while we read may be seen half done, and one behind it, which vouches for it,
 * whole: what looks damaged is looked at again before it is called so.
 */
static bool is_settled(seen_file *s, seen_status status)
{
    if (!unchanged(s)) return false;
    return status != SEEN_CORRUPT || ++s->doubts == DOUBTS;
}

static void let_go(seen_file *s)
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

static seen_status read_once(seen_file *s, const seen_file_options *options,
                             bool *settled, seen_error *error)
{
    *settled = true;
    seen_status status = map_to_read(s, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = read_header(s, error);
    if (status != SEEN_OK) return status;

    /* Alone, or with a journal that has to be applied to a copy of our own. */
    bool journaled = s->header.flags & SEEN_NATIVE_JOURNALED;
    const struct seen_filter_ops *ops = seen_kinds_find(s->header.plan.kind);
    enum seen_restore_mode mode = !journaled            ? SEEN_RESTORE_VIEW
                                  : ops && ops->touches ? SEEN_RESTORE_MAP
                                                        : SEEN_RESTORE_COPY;
    status = seen_restore(&s->filter, s->map, &s->header, mode, options->secret,
                          NULL, NULL);
    if (status != SEEN_OK) return explain(error, status);
    if (!journaled) return SEEN_OK;
    status = replay(s, error);
    s->outcome.recovered = true;
    s->filter->frozen = true;
    *settled = is_settled(s, status);
    return status;
}

static seen_status open_to_read(seen_file *s, const seen_file_options *options,
                                seen_error *error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        bool settled;
        seen_error_begin(error);
        s->outcome = (seen_outcome){0};
        seen_status status = read_once(s, options, &settled, error);
        if (settled) return status;
        let_go(s);
    }
    return seen_fail(error, SEEN_BUSY, NULL,
                     "it changes faster than it can be read");
}

/* ---- Checkpoints -------------------------------------------------------- */

/* The other header slot, with one more epoch; then it is the one that counts. */
static seen_status put_header(seen_file *s, struct seen_native *h)
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

/* Checksums of the blocks that have changed, and of the table of them. */
static void sum_dirty_blocks(seen_file *s, struct seen_native *h)
{
    uint8_t *table = s->map + h->table_offset;
    for (uint64_t i = 0; i < s->blocks; i++) {
        if (s->dirty[i] != BLOCK_DIRTY) continue;
        seen_put_le32(table + 4 * i, sum_of_block(s, i));
        s->dirty[i] = BLOCK_CHECKED;
    }
    h->table_crc = seen_crc32c(0, table, (size_t)(4 * s->blocks));
}

static seen_status checkpoint_in_place(seen_file *s, struct seen_native *h)
{
    sum_dirty_blocks(s, h);
    if (seen_os->msync(s->map, s->map_len) != 0) return SEEN_IO;
    seen_status status = seen_io_sync(s->fd);
    return status == SEEN_OK ? put_header(s, h) : status;
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
    status = replace(s->path, s->fd, &saved, &fd, NULL);
    seen_saved_free(&saved);
    if (fd >= 0) { /* renamed, whether or not the directory could be synced */
        seen_io_close(s->fd);
        s->fd = fd;
        s->header = saved.header;
    }
    return status;
}

/*
 * Make everything applied so far part of the file, with these header flags; the
 * journal is not needed any more after that. Nobody else may be changing.
 */
static seen_status checkpoint(seen_file *s, uint32_t flags)
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

/* ---- Writing ------------------------------------------------------------ */

/* A new file at our path, and its descriptor, locked. */
static seen_status put_file(seen_file *s, const seen_filter *f, uint32_t flags,
                            int *fd, seen_error *error)
{
    struct seen_saved saved;
    seen_status status = describe(f, flags, &saved, error);
    if (status != SEEN_OK) return status;
    saved.header.epoch = 1;
    status = random_id(&saved.header.id);
    if (status != SEEN_OK) seen_fail_io(error, NULL, "random");
    if (status == SEEN_OK) status = replace(s->path, s->fd, &saved, fd, error);
    seen_saved_free(&saved);
    if (status == SEEN_OK && seen_journal_remove(s->path) != SEEN_OK)
        status = seen_fail_io(error, NULL, "remove an old journal");
    return status;
}

static seen_status create_file(seen_file *s, const seen_file_options *options,
                               seen_error *error)
{
    seen_filter *f;
    seen_status status = seen_new(&f, options->create, error);
    if (status != SEEN_OK) return status;
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
    seen_status status =
        seen_restore(&s->filter, s->map, &s->header, SEEN_RESTORE_COPY,
                     options->secret, NULL, NULL);
    if (status != SEEN_OK) return explain(error, status);
    bool apart = s->header.flags & SEEN_NATIVE_APART;
    status = put_file(s, s->filter, apart ? SEEN_SECRET_APART : 0, &fd, error);
    if (status != SEEN_OK) {
        seen_io_close(fd);
        return status;
    }
    let_go(s);
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
        s->blocks = seen_native_blocks(s->header.payload_len);
        s->dirty = seen_alloc_zeroed(&system_memory, s->blocks);
        if (!s->dirty) return explain(error, SEEN_NOMEM);
        unmap_file(s);
        seen_status status = map_file(s, SEEN_MAP_WRITE, error);
        if (status != SEEN_OK) return status;
    }
    seen_status status = seen_restore(&s->filter, s->map, &s->header, mode,
                                      options->secret, NULL, NULL);
    if (status != SEEN_OK) return explain(error, status);
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
        status = replay(s, error);
        s->outcome.recovered = true;
        if (status != SEEN_OK) return status;
        status = checkpoint(s, 0);
        if (status == SEEN_IO) return seen_fail_io(error, NULL, "recover");
        if (status != SEEN_OK) return explain(error, status);
    }
    struct seen_native h = s->header;
    struct seen_stat file;
    bool left = false;
    if (seen_os->fstat(s->fd, &file) != 0)
        return seen_fail_io(error, NULL, "look");
    /* A header that needs no journal beside one that is still there: its sync
     * may have failed, and the one on the disk be another, which does. */
    status = seen_journal_there(s->path, &left);
    if (status == SEEN_OK && left) status = put_header(s, &h);
    h.flags |= SEEN_NATIVE_JOURNALED;
    if (status == SEEN_OK) status = seen_journal_remove(s->path);
    if (status == SEEN_OK)
        status = seen_journal_open(&s->journal, s->path, &file, h.id,
                                   h.epoch + 1, s->applied);
    if (status == SEEN_OK) status = put_header(s, &h);
    if (status == SEEN_IO) return seen_fail_io(error, NULL, "journal");
    return status == SEEN_OK ? status : explain(error, status);
}

/* From the map into private memory, and so into a file of new checksums: now
 * that the dead writer's keys are in, the old ones must be right. */
static seen_status leave_place(seen_file *s, seen_error *error)
{
    seen_filter *copy;
    for (uint64_t i = 0; i < s->blocks; i++)
        if (sum_of_block(s, i) != noted_sum(s, i))
            return explain(error, SEEN_CORRUPT);
    seen_status status = seen_copy(&copy, s->filter, NULL);
    if (status != SEEN_OK) return explain(error, status);
    seen_free(s->filter);
    s->filter = copy;
    s->in_place = false;
    unmap_file(s);
    seen_release(&system_memory, s->dirty, s->blocks);
    s->dirty = NULL;
    s->blocks = 0;
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
    if (status == SEEN_OK) status = read_header(s, error);
    if (status == SEEN_OK && s->header.plan.kind == SEEN_FOREIGN)
        status = refuse_foreign(error);
    if (status == SEEN_OK && !(s->header.flags & SEEN_NATIVE_TWO)) {
        status = give_two_headers(s, options, error);
        if (status == SEEN_OK) status = map_file(s, SEEN_MAP_READ, error);
        if (status == SEEN_OK) status = read_header(s, error);
    }
    if (status == SEEN_OK) status = load_filter(s, options, error);
    if (status == SEEN_OK) status = refuse_sticky(s, error);
    if (status == SEEN_OK) status = open_journal(s, error);
    if (status == SEEN_OK && s->in_place && s->mode == SEEN_WRITE)
        status = leave_place(s, error);
    return status;
}

/* ---- Life --------------------------------------------------------------- */

/* Under the name of the file itself: file, journal and what is written beside
 * are in one place, however many links lead there. */
static seen_status make_store(seen_file **out, const char *path, seen_mode mode,
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
        return explain(error, SEEN_NOMEM);
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
    seen_release(&system_memory, s->dirty, s->blocks);
    seen_release(&system_memory, s->path, s->path_size);
    seen_release(&system_memory, s, sizeof *s);
}

static void destroy(seen_file *s)
{
    seen_journal_close(s->journal);
    let_go(s);
    pthread_cond_destroy(&s->turn);
    pthread_mutex_destroy(&s->lock);
    free_memory(s);
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
    seen_status status = make_store(&s, path, options->mode, error);
    if (status != SEEN_OK) return status;
    status = s->mode == SEEN_READ ? open_to_read(s, options, error)
                                  : open_to_write(s, options, error);
    *outcome = s->outcome;
    if (status != SEEN_OK) {
        int before = errno;
        destroy(s);
        errno = before;
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
        return explain(error, SEEN_INVALID);
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
        status = checkpoint(s, 0);
        if (status == SEEN_OK) status = seen_journal_remove(s->path);
    }
    int before = errno;
    destroy(s);
    errno = before;
    return status;
}

const seen_filter *seen_file_filter(const seen_file *s)
{
    return s->filter;
}

/* ---- Keys --------------------------------------------------------------- */

/* In a child that was forked: what a writer has in memory is of the time of the
 * fork, or half changed. "Never" could be wrong, "maybe" cannot. A filter that is
 * only read, and knows no time, is the same in all processes: no lock is needed. */
static void answer_elsewhere(seen_file *s, const seen_key *keys, size_t n,
                             bool *answers)
{
    bool still = s->mode == SEEN_READ && !s->filter->ops->advance;
    if (still)
        seen_maybe_many(s->filter, keys, n, answers);
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
    seen_maybe_many(s->filter, keys, n, answers);
    pthread_mutex_unlock(&s->lock);
}

static seen_status checkpoint_and_drop(seen_file *s)
{
    seen_status status = checkpoint(s, SEEN_NATIVE_JOURNALED);
    if (status == SEEN_OK) status = seen_journal_cut(s->journal);
    if (status == SEEN_OK) status = seen_journal_drop(s->journal, s->applied);
    if (status != SEEN_OK) s->failed = true;
    return status;
}

static bool checkpoint_due(const seen_file *s)
{
    return seen_journal_bytes(s->journal) > JOURNAL_BYTES;
}

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
    seen_status status = s->failed ? SEEN_IO : touch_blocks(s, h, n, false);
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
        seen_hash_many(s->filter, keys + total, now, h);
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

/* ---- Look --------------------------------------------------------------- */

static seen_status look(seen_file *s, seen_facts *facts, seen_error *error)
{
    seen_status status = map_to_read(s, SEEN_MAP_READ, error);
    if (status != SEEN_OK) return status;
    status = seen_look(s->map, s->map_len, facts, NULL);
    return status == SEEN_OK ? status : explain(error, status);
}

seen_status seen_file_look(const char *path, seen_facts *facts,
                           seen_error *error)
{
    seen_error_begin(error);
    if (!path || !facts) return explain(error, SEEN_INVALID);
    seen_file *s;
    seen_status status = make_store(&s, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    status = look(s, facts, error);
    int before = errno;
    destroy(s);
    errno = before;
    return status;
}

/* ---- Verify ------------------------------------------------------------- */

/* Which blocks differ from their checksums, a byte each; the first of them. */
static uint64_t compare_blocks(const seen_file *s, uint8_t *bad)
{
    uint64_t n = seen_native_blocks(s->header.payload_len), first = n;
    for (uint64_t i = n; i-- > 0;) {
        bad[i] = sum_of_block(s, i) != noted_sum(s, i);
        if (bad[i]) first = i;
    }
    return first;
}

static seen_status bad_block(const seen_file *s, uint64_t i, seen_error *error)
{
    const struct seen_native *h = &s->header;
    uint64_t from = h->payload_offset + i * SEEN_BLOCK_SIZE;
    uint64_t end = seen_min64(from + SEEN_BLOCK_SIZE, s->map_len);
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "block %" PRIu64 " of %" PRIu64 " (bytes %" PRIu64
                     " to %" PRIu64 ") does not match its checksum",
                     i, seen_native_blocks(h->payload_len), from, end - 1);
}

static seen_status check_table(const seen_file *s, seen_error *error)
{
    const struct seen_native *h = &s->header;
    uint64_t len = 4 * seen_native_blocks(h->payload_len);
    if (seen_crc32c(0, s->map + h->table_offset, (size_t)len) == h->table_crc)
        return SEEN_OK;
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "the table of checksums (bytes %" PRIu64 " to %" PRIu64
                     ") does not match its own",
                     h->table_offset, h->table_offset + len - 1);
}

/*
 * A file that is changed in place differs from its checksums where the journal
 * is ahead of the last checkpoint, and only there. The journal is read after
 * the blocks: it knows of every bit that they can have.
 */
static seen_status judge_blocks(seen_file *s, const uint8_t *bad,
                                bool journaled, seen_error *error)
{
    uint64_t n = seen_native_blocks(s->header.payload_len);
    bool ahead = journaled && s->filter->ops->touches;
    if (!ahead) {
        seen_status status = check_table(s, error);
        if (status != SEEN_OK) return status;
    }
    if (journaled) {
        seen_status status = replay(s, error);
        if (status != SEEN_OK) return status;
    }
    for (uint64_t i = 0; i < n; i++)
        if (bad[i] && !(ahead && s->dirty[i])) return bad_block(s, i, error);
    return SEEN_OK;
}

static seen_status verify_once(seen_file *s, bool *settled, seen_error *error)
{
    *settled = true;
    seen_status status = map_to_read(s, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = read_header(s, error);
    if (status != SEEN_OK) return status;

    bool journaled = s->header.flags & SEEN_NATIVE_JOURNALED;
    s->blocks = seen_native_blocks(s->header.payload_len);
    s->dirty = seen_alloc_zeroed(&system_memory, 2 * s->blocks);
    if (!s->dirty) return explain(error, SEEN_NOMEM);
    uint8_t *bad = s->dirty + s->blocks;
    uint64_t first = compare_blocks(s, bad);
    if (!journaled && first < s->blocks) {
        *settled = unchanged(s); /* or a writer has come meanwhile */
        return bad_block(s, first, error);
    }

    const struct seen_filter_ops *ops = seen_kinds_find(s->header.plan.kind);
    status =
        seen_restore(&s->filter, s->map, &s->header,
                     ops && ops->touches ? SEEN_RESTORE_MAP : SEEN_RESTORE_COPY,
                     seen_any_secret, NULL, NULL);
    if (status != SEEN_OK) return explain(error, status);
    status = judge_blocks(s, bad, journaled, error);
    if (journaled) s->outcome.recovered = true;
    *settled =
        journaled ? is_settled(s, status) : status == SEEN_OK || unchanged(s);
    return status;
}

seen_status seen_file_verify(const char *path, seen_outcome *outcome,
                             seen_error *error)
{
    seen_error_begin(error);
    if (!path || !seen_outcome_ok(outcome)) return explain(error, SEEN_INVALID);
    seen_file *s;
    seen_status status = make_store(&s, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    bool settled = false;
    for (int i = 0; i < ATTEMPTS && !settled; i++) {
        seen_error_begin(error);
        s->outcome = (seen_outcome){0};
        status = verify_once(s, &settled, error);
        let_go(s);
        seen_release(&system_memory, s->dirty, 2 * s->blocks);
        s->dirty = NULL;
    }
    s->blocks = 0;
    destroy(s);
    if (settled) return status;
    return seen_fail(error, SEEN_BUSY, NULL,
                     "it changes faster than it can be read");
}
