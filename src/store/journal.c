/*
 * journal.c - segments and frames.
 *
 * A segment starts with a header that says whose it is:
 *
 *     0   8   magic 89 53 45 4a 4c 0d 0a 1a
 *     8   4   version: 2
 *     12  4   0
 *     16  8   id of the file it belongs to
 *     24  8   epoch of the writer
 *     32  8   number of its first frame
 *     40  8   salt: random, another one for each segment
 *     48  12  0
 *     60  4   CRC32C of bytes 0 .. 59
 *
 * and goes on with frames, each filled up with zeros to a multiple of 8:
 *
 *     0   4   length of the payload
 *     4   4   CRC32C of bytes 8 .. end of payload, continued from the length
 *     8   8   sequence number
 *     16  8   salt of the segment
 *     24  8   durable: the highest number known to be on disk at that time
 *     32  4   type
 *     36  4   0
 *     40  ..  payload
 *
 * A crash leaves a tail of which any sector may be old or new. Replay therefore
 * stops at the first frame that is not whole. That is only right if nothing
 * behind it was ever acknowledged, and `durable` tells: if any whole frame
 * further on says that the bad one had been on disk, the disk has lost it and
 * that is corruption, to be reported and not to be cut off.
 *
 * Worked example: frames 1 to 9 are written and synced, then 10, 11 and 12, and
 * the power fails during the next sync. 10 is torn, 12 is whole: it says
 * durable = 9, so 10 was never acknowledged, and 9 is where the journal ends.
 * Had 5 been damaged, 12 would prove that it was once there.
 *
 * Looking further on means looking at every byte, those of payloads too, and
 * payloads hold names that strangers choose: one of them might be the bytes of a
 * frame. Hence the salt. A frame counts only under the salt of its segment, which
 * is drawn when the segment begins and is known to nobody who sends names or keys.
 * It also tells the frames of a segment from what an earlier file has left in the
 * same place.
 *
 * Commit: the first thread that comes syncs for everybody who has appended by
 * then; the others sleep until a sync that covers them has returned.
 *
 * Writing and replay are in one file, long as it is: what replay may conclude from
 * bytes follows from the order in which they are written.
 */
#define _POSIX_C_SOURCE 200809L

#include "store/journal.h"

#include "seen_file.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "store/io.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION     2
#define SEGMENT     64 /* bytes of a segment's header */
#define FRAME       40 /* bytes of a frame's header */
#define SUFFIX      ".journal-"
#define NEW         ".seen-new" /* behind the name of a segment in the making */
#define GROW_BYTES  ((uint64_t)1 << 20) /* space is claimed in such steps */
#define SEGMENT_MAX ((uint64_t)1 << 40)

static const uint8_t magic[8] = {0x89, 'S', 'E', 'J', 'L', '\r', '\n', 0x1a};

/* ---- Names -------------------------------------------------------------- */

static bool name_segment(char *buf, const char *path, uint64_t first)
{
    int len =
        snprintf(buf, SEEN_PATH_ROOM, "%s" SUFFIX "%016" PRIx64, path, first);
    if (len > 0 && len < SEEN_PATH_ROOM) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Is `name` a segment of `base`, with this behind it, and from which number
 * on? */
static bool parse_name(const char *base, const char *name, const char *end,
                       uint64_t *first)
{
    size_t len = strlen(base);
    if (strncmp(name, base, len) != 0) return false;
    name += len;
    if (strncmp(name, SUFFIX, strlen(SUFFIX)) != 0) return false;
    name += strlen(SUFFIX);
    if (strlen(name) < 16 || strcmp(name + 16, end) != 0) return false;
    *first = 0;
    for (end = name + 16; name < end; name++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *name);
        if (!digit) return false;
        *first = *first << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

/* A few, as a rule; but each writer that dies may leave one. */
struct listing {
    const char *base, *end;
    uint64_t *first;
    size_t n, room;
    bool no_memory;
};

static bool make_room(struct listing *l)
{
    size_t room = l->room ? 2 * l->room : 64;
    uint64_t *first =
        seen_alloc_zeroed(&seen_system_memory, room * sizeof *first);
    if (!first) return false;
    if (l->n) memcpy(first, l->first, l->n * sizeof *first);
    seen_release(&seen_system_memory, l->first, l->room * sizeof *first);
    l->first = first;
    l->room = room;
    return true;
}

static bool list_one(void *ctx, const char *name)
{
    struct listing *l = ctx;
    uint64_t first;
    if (!parse_name(l->base, name, l->end, &first)) return true;
    l->no_memory = l->n == l->room && !make_room(l);
    if (l->no_memory) return false;
    l->first[l->n++] = first;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Files of a path in order; to be freed, whatever the status. */
static seen_status list_files(const char *path, const char *end,
                              struct listing *l)
{
    char dir[SEEN_PATH_ROOM];
    *l = (struct listing){.base = seen_io_base(path), .end = end};
    seen_status status = seen_io_dir_of(path, dir, sizeof dir);
    if (status != SEEN_OK) return status;
    if (seen_os->list(dir, list_one, l) != 0) return SEEN_IO;
    if (l->n) qsort(l->first, l->n, sizeof *l->first, by_number);
    return l->no_memory ? SEEN_NOMEM : SEEN_OK;
}

static seen_status list_segments(const char *path, struct listing *l)
{
    return list_files(path, "", l);
}

static void free_listing(struct listing *l)
{
    int before = errno;
    seen_release(&seen_system_memory, l->first, l->room * sizeof *l->first);
    errno = before;
}

static seen_status remove_file(const char *path, uint64_t first,
                               const char *end)
{
    char name[SEEN_PATH_ROOM + sizeof NEW];
    if (!name_segment(name, path, first)) return SEEN_IO;
    strcat(name, end);
    return seen_os->unlink(name) == 0 || errno == ENOENT ? SEEN_OK : SEEN_IO;
}

static seen_status remove_segment(const char *path, uint64_t first)
{
    return remove_file(path, first, "");
}

static seen_status remove_files(const char *path, const char *end)
{
    struct listing l;
    seen_status status = list_files(path, end, &l);
    for (size_t i = 0; i < l.n && status == SEEN_OK; i++)
        status = remove_file(path, l.first[i], end);
    free_listing(&l);
    return status;
}

/* ---- Frames ------------------------------------------------------------- */

static uint64_t frame_size(uint64_t len)
{
    return (FRAME + len + 7) / 8 * 8;
}

static uint32_t frame_crc(const uint8_t *frame, size_t len)
{
    uint32_t crc = seen_crc32c(0, frame, 4);
    return seen_crc32c(crc, frame + 8, FRAME - 8 + len);
}

/* A whole frame at the start of these bytes, under this salt? */
static bool whole_frame(const uint8_t *p, uint64_t left, uint64_t salt)
{
    if (left < FRAME) return false;
    uint32_t len = seen_get_le32(p);
    return len <= SEEN_FRAME_MAX && frame_size(len) <= left &&
           seen_get_le64(p + 16) == salt &&
           seen_get_le32(p + 4) == frame_crc(p, len);
}

/* Of any version: those to come keep magic, version and checksum in place. */
static bool segment_header_ok(const uint8_t *p, uint64_t len)
{
    return len >= SEGMENT && memcmp(p, magic, sizeof magic) == 0 &&
           seen_get_le32(p + 60) == seen_crc32c(0, p, 60);
}

static uint64_t salt_of(const uint8_t *segment)
{
    return seen_get_le64(segment + 40);
}

/* ---- Replay ------------------------------------------------------------- */

struct replay {
    const char *path;
    uint64_t id;
    uint64_t next; /* the number that must come now */
    seen_status (*each)(void *ctx, const struct seen_frame *f);
    void *ctx;
    struct seen_replayed *out;
    bool ended;        /* at a torn tail */
    uint64_t ended_at; /* with this frame */
};

__attribute__((format(printf, 2, 3))) static seen_status
corrupt(struct replay *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->out->problem, sizeof r->out->problem, format, args);
    va_end(args);
    return SEEN_CORRUPT;
}

/* Does any whole frame of a segment from `at` on know the missing frame to be
 * durable? */
static bool was_durable(const uint8_t *p, uint64_t at, uint64_t len,
                        uint64_t missing)
{
    for (; at + FRAME <= len; at += 8)
        if (seen_get_le64(p + at + 8) > missing &&
            seen_get_le64(p + at + 24) >= missing &&
            whole_frame(p + at, len - at, salt_of(p)))
            return true;
    return false;
}

static bool zeros_from(const uint8_t *p, uint64_t at, uint64_t len)
{
    while (at < len && p[at] == 0)
        at++;
    return at >= len;
}

static seen_status replay_frames(struct replay *r, const uint8_t *p,
                                 uint64_t len, uint64_t first)
{
    uint64_t at = SEGMENT, sequence = first;
    for (; whole_frame(p + at, len - at, salt_of(p)); sequence++) {
        struct seen_frame f = {.sequence = seen_get_le64(p + at + 8),
                               .type = seen_get_le32(p + at + 32),
                               .payload = p + at + FRAME,
                               .len = seen_get_le32(p + at)};
        if (f.sequence != sequence)
            return corrupt(r,
                           "frame %" PRIu64 " at byte %" PRIu64
                           " of segment %016" PRIx64
                           ": expected frame %" PRIu64,
                           f.sequence, at, first, sequence);
        if (f.sequence == r->next) {
            seen_status status = r->each(r->ctx, &f);
            if (status != SEEN_OK) return status;
            r->out->frames++;
            r->next++;
        }
        at += frame_size(f.len);
    }
    if (zeros_from(p, at, len)) return SEEN_OK; /* space claimed ahead */
    if (was_durable(p, at, len, sequence))
        return corrupt(r,
                       "frame %" PRIu64 " at byte %" PRIu64
                       " of segment %016" PRIx64
                       " is damaged, and had been on disk",
                       sequence, at, first);
    r->out->torn += len - at;
    r->ended = true;
    r->ended_at = sequence;
    return SEEN_OK;
}

/* The header goes to disk before any frame is written: if it is not whole, a
 * crash came between, and there are no frames. What looks like one, whatever the
 * salt, was written after a header that was whole: even inside of a payload, it
 * shows that the header was damaged later. */
static seen_status headless(struct replay *r, const uint8_t *p, uint64_t len,
                            uint64_t first)
{
    for (uint64_t at = SEGMENT; at + FRAME <= len; at += 8)
        if (whole_frame(p + at, len - at, seen_get_le64(p + at + 16)))
            return corrupt(r, "the header of segment %016" PRIx64 " is damaged",
                           first);
    r->out->segments++;
    r->out->torn += len;
    if (!r->ended) r->ended_at = first;
    r->ended = true;
    return SEEN_OK;
}

static seen_status replay_segment(struct replay *r, const uint8_t *p,
                                  uint64_t len, uint64_t first)
{
    if (seen_get_le64(p + 32) != first)
        return corrupt(r, "segment %016" PRIx64 " says it starts with %" PRIu64,
                       first, seen_get_le64(p + 32));
    if (first > r->next)
        return corrupt(r, "frames %" PRIu64 " to %" PRIu64 " are missing",
                       r->next, first - 1);
    r->out->segments++;
    return replay_frames(r, p, len, first);
}

/* Behind a torn tail there may be segments that were made but never synced;
 * one with a frame that proves otherwise is a loss. */
static seen_status check_behind(struct replay *r, const uint8_t *p,
                                uint64_t len, uint64_t first)
{
    if (was_durable(p, SEGMENT, len, r->ended_at))
        return corrupt(r,
                       "frame %" PRIu64 " is damaged, and segment %016" PRIx64
                       " shows that it had been on disk",
                       r->ended_at, first);
    r->out->torn += len;
    return SEEN_OK;
}

static seen_status other_version(struct replay *r, const uint8_t *p,
                                 uint64_t first)
{
    (void)corrupt(r,
                  "segment %016" PRIx64 " has version %u, this build reads %d",
                  first, seen_get_le32(p + 8), VERSION);
    return SEEN_NEWER;
}

static seen_status take_segment(struct replay *r, const uint8_t *p,
                                uint64_t len, uint64_t first)
{
    if (!segment_header_ok(p, len)) return headless(r, p, len, first);
    if (seen_get_le32(p + 8) != VERSION) return other_version(r, p, first);
    if (seen_get_le64(p + 16) != r->id) return SEEN_OK;
    /* Here a later writer went on after the crash that tore the tail. */
    if (r->ended && first == r->ended_at) r->ended = false;
    return r->ended ? check_behind(r, p, len, first)
                    : replay_segment(r, p, len, first);
}

static seen_status unreadable(struct replay *r, uint64_t first)
{
    (void)corrupt(r, "segment %016" PRIx64 ": %s", first, seen_io_why());
    return SEEN_IO;
}

/* Frames never filled it: it is a hole. */
static seen_status too_large(struct replay *r, uint64_t first, uint64_t size)
{
    return corrupt(r,
                   "segment %016" PRIx64 " has %" PRIu64
                   " bytes, expected at most %" PRIu64,
                   first, size, SEGMENT_MAX);
}

static seen_status read_segment(struct replay *r, uint64_t first)
{
    char name[SEEN_PATH_ROOM];
    struct seen_stat st;
    if (!name_segment(name, r->path, first)) return SEEN_IO;
    int fd = seen_io_open_regular(name, O_RDONLY);
    if (fd < 0 && errno == ENOENT) { /* a writer has just dropped it */
        r->out->segments++;
        r->out->gone++;
        return SEEN_OK;
    }
    if (fd < 0) return unreadable(r, first);
    seen_status status = SEEN_IO;
    if (seen_os->fstat(fd, &st) != 0) goto out;
    status = st.size > SEGMENT_MAX ? too_large(r, first, st.size) : SEEN_OK;
    if (status != SEEN_OK) goto out;
    if (st.size == 0) { /* a crash came before its header */
        r->out->segments++;
        goto out;
    }

    seen_allocator a = seen_allocator_or_default(NULL);
    uint8_t *bytes = seen_alloc_zeroed(&a, st.size);
    status = SEEN_NOMEM;
    if (!bytes) goto out;
    size_t got;
    status = seen_io_read_at(fd, bytes, (size_t)st.size, 0, &got);
    if (status == SEEN_OK) status = take_segment(r, bytes, got, first);
    seen_release(&a, bytes, st.size);
out:
    seen_io_close(fd);
    return status;
}

seen_status seen_journal_replay(const char *path, uint64_t id, uint64_t after,
                                seen_status (*each)(void *ctx,
                                                    const struct seen_frame *f),
                                void *ctx, struct seen_replayed *out)
{
    struct replay r = {.path = path,
                       .id = id,
                       .next = after + 1,
                       .each = each,
                       .ctx = ctx,
                       .out = out};
    struct listing l;
    *out = (struct seen_replayed){0};
    seen_status status = list_segments(path, &l);
    for (size_t i = 0; i < l.n && status == SEEN_OK; i++) {
        /* A segment whose successor starts at or below what is wanted holds
         * nothing new. */
        if (i + 1 < l.n && l.first[i + 1] <= r.next) {
            out->segments++;
            continue;
        }
        status = read_segment(&r, l.first[i]);
    }
    free_listing(&l);
    out->last = r.next - 1;
    if (status == SEEN_IO && !out->problem[0])
        snprintf(out->problem, sizeof out->problem, "%s", strerror(errno));
    return status;
}

/* ---- Writing ------------------------------------------------------------ */

struct seen_journal {
    char *path;
    size_t path_size;
    struct seen_stat like; /* `alike`: who may read the segments */
    bool alike;
    uint64_t id, epoch;
    int fd;
    uint64_t salt;    /* of the open segment */
    uint64_t first;   /* number of the first frame in it */
    uint64_t last;    /* number of the last frame appended */
    uint64_t end;     /* where the next frame goes */
    uint64_t claimed; /* bytes of the file that have space on disk */
    uint8_t *frame;   /* room to put one together */
    size_t frame_room;

    pthread_mutex_t lock;
    pthread_cond_t synced;
    uint64_t durable; /* numbers up to here are on disk */
    bool syncing;
    int failed; /* errno of the sync that ended everything */
};

/* Beside its name: a segment that is there already has bytes, a mode, and maybe
 * readers, that are not ours; but it stays until it is replaced. */
static int create_segment(const seen_journal *j, const char *beside)
{
    if (seen_os->unlink(beside) != 0 && errno != ENOENT) return -1;
    return seen_io_create_like(beside, j->alike ? &j->like : NULL);
}

/* What it leaves when it fails is nothing, or an empty segment, harmless as long
 * as no other is put behind it. */
static seen_status begin_segment(seen_journal *j)
{
    uint8_t header[SEGMENT] = {0}, salt[16];
    char name[SEEN_PATH_ROOM], beside[SEEN_PATH_ROOM + sizeof NEW];
    if (!name_segment(name, j->path, j->last + 1)) return SEEN_IO;
    if (seen_random_secret(salt) != SEEN_OK) return SEEN_IO;
    snprintf(beside, sizeof beside, "%s" NEW, name);
    memcpy(header, magic, sizeof magic);
    seen_put_le32(header + 8, VERSION);
    seen_put_le64(header + 16, j->id);
    seen_put_le64(header + 24, j->epoch);
    seen_put_le64(header + 32, j->last + 1);
    memcpy(header + 40, salt, 8);
    seen_put_le32(header + 60, seen_crc32c(0, header, 60));

    int fd = create_segment(j, beside);
    if (fd < 0) return SEEN_IO;
    seen_status status = seen_io_write_at(fd, header, sizeof header, 0);
    if (status == SEEN_OK) status = seen_io_sync(fd);
    bool renamed = status == SEEN_OK && seen_os->rename(beside, name) == 0;
    if (status == SEEN_OK) status = renamed ? seen_io_sync_dir(name) : SEEN_IO;
    if (status != SEEN_OK) {
        int problem = errno;
        if (!renamed) seen_os->unlink(beside);
        seen_io_close(fd);
        errno = problem;
        return status;
    }
    seen_io_close(j->fd);
    j->fd = fd;
    j->first = j->last + 1;
    j->salt = salt_of(header);
    j->end = j->claimed = SEGMENT;
    return SEEN_OK;
}

static seen_status sync_segment(const char *path, uint64_t first)
{
    char name[SEEN_PATH_ROOM];
    if (!name_segment(name, path, first)) return SEEN_IO;
    int fd = seen_io_open_regular(name, O_RDONLY);
    if (fd < 0) return SEEN_IO;
    seen_status status = seen_io_sync(fd);
    seen_io_close(fd);
    return status;
}

/*
 * Whatever lies behind the last good frame was never acknowledged; it must not
 * be mistaken for part of what is written now. The segment that begins there is
 * overwritten, not removed: at no time is a journal without segments.
 *
 * And what lies before has been read, but may be in nothing but the page cache:
 * its writer was killed before the sync. It goes to disk before anything that
 * counts on it.
 */
static seen_status take_over(seen_journal *j)
{
    struct listing l;
    seen_status status = list_segments(j->path, &l);
    for (size_t i = 0; i < l.n && status == SEEN_OK; i++)
        if (l.first[i] > j->last + 1)
            status = remove_segment(j->path, l.first[i]);
        else if (l.first[i] <= j->last)
            status = sync_segment(j->path, l.first[i]);
    free_listing(&l);
    return status;
}

seen_status seen_journal_open(seen_journal **out, const char *path,
                              const struct seen_stat *like, uint64_t id,
                              uint64_t epoch, uint64_t last)
{
    size_t size = strlen(path) + 1;
    seen_journal *j = seen_alloc_zeroed(&seen_system_memory, sizeof *j);
    char *copy = seen_alloc_zeroed(&seen_system_memory, size);
    if (!j || !copy) {
        seen_release(&seen_system_memory, copy, size);
        seen_release(&seen_system_memory, j, sizeof *j);
        return SEEN_NOMEM;
    }
    memcpy(copy, path, size);
    *j = (seen_journal){.path = copy,
                        .path_size = size,
                        .alike = like != NULL,
                        .id = id,
                        .epoch = epoch,
                        .fd = -1,
                        .last = last,
                        .durable = last};
    if (like) j->like = *like;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->synced, NULL);
    seen_status status = take_over(j);
    if (status == SEEN_OK) status = begin_segment(j);
    if (status != SEEN_OK) {
        seen_journal_close(j);
        return status;
    }
    *out = j;
    return SEEN_OK;
}

void seen_journal_close(seen_journal *j)
{
    if (!j) return;
    pthread_cond_destroy(&j->synced);
    pthread_mutex_destroy(&j->lock);
    seen_journal_abandon(j);
}

void seen_journal_abandon(seen_journal *j)
{
    if (!j) return;
    seen_io_close(j->fd);
    seen_release(&seen_system_memory, j->frame, j->frame_room);
    seen_release(&seen_system_memory, j->path, j->path_size);
    seen_release(&seen_system_memory, j, sizeof *j);
}

static bool frame_has_room(seen_journal *j, size_t size)
{
    if (size <= j->frame_room) return true;
    size_t room = size < 65536 ? 65536 : size;
    uint8_t *frame = seen_alloc_zeroed(&seen_system_memory, room);
    if (!frame) return false;
    seen_release(&seen_system_memory, j->frame, j->frame_room);
    j->frame = frame;
    j->frame_room = room;
    return true;
}

/* Zeros on disk ahead of the frames: syncing them later need not write down
 * each time how long the file has become. */
static seen_status claim(seen_journal *j, uint64_t end)
{
    if (end <= j->claimed) return SEEN_OK;
    uint64_t wanted = (end + GROW_BYTES - 1) / GROW_BYTES * GROW_BYTES;
    seen_status status = seen_io_allocate(j->fd, wanted);
    if (status == SEEN_OK) j->claimed = wanted;
    return status;
}

seen_status seen_journal_append(seen_journal *j, uint32_t type,
                                const void *payload, size_t len,
                                uint64_t *sequence)
{
    if (len > SEEN_FRAME_MAX) return SEEN_INVALID;
    size_t size = (size_t)frame_size(len);
    if (!frame_has_room(j, size)) return SEEN_NOMEM;

    pthread_mutex_lock(&j->lock);
    uint64_t durable = j->durable;
    int failed = j->failed;
    pthread_mutex_unlock(&j->lock);
    if (failed) return errno = failed, SEEN_IO;

    uint8_t *p = j->frame;
    memset(p, 0, FRAME);
    memset(p + size - 8, 0, 8);
    if (len) memcpy(p + FRAME, payload, len);
    seen_put_le32(p, (uint32_t)len);
    seen_put_le64(p + 8, j->last + 1);
    seen_put_le64(p + 16, j->salt);
    seen_put_le64(p + 24, durable);
    seen_put_le32(p + 32, type);
    seen_put_le32(p + 4, frame_crc(p, len));
    seen_status status = claim(j, j->end + size);
    if (status == SEEN_OK) status = seen_io_write_at(j->fd, p, size, j->end);
    if (status != SEEN_OK) return status;

    pthread_mutex_lock(&j->lock);
    j->end += size;
    *sequence = ++j->last;
    pthread_mutex_unlock(&j->lock);
    return SEEN_OK;
}

static void end_sync(seen_journal *j, seen_status status, uint64_t covered,
                     int problem)
{
    j->syncing = false;
    if (status == SEEN_OK)
        j->durable = covered;
    else
        j->failed = problem ? problem : EIO;
    pthread_cond_broadcast(&j->synced);
}

seen_status seen_journal_commit(seen_journal *j, uint64_t sequence)
{
    pthread_mutex_lock(&j->lock);
    while (!j->failed && j->durable < sequence) {
        if (j->syncing) {
            pthread_cond_wait(&j->synced, &j->lock);
            continue;
        }
        uint64_t covered = j->last;
        int fd = j->fd;
        j->syncing = true;
        pthread_mutex_unlock(&j->lock);
        seen_status status = seen_io_datasync(fd);
        int problem = errno;
        pthread_mutex_lock(&j->lock);
        end_sync(j, status, covered, problem);
    }
    int failed = j->durable < sequence ? j->failed : 0;
    pthread_mutex_unlock(&j->lock);
    if (failed) errno = failed;
    return failed ? SEEN_IO : SEEN_OK;
}

/* The descriptor changes hands while nobody can be syncing it. */
seen_status seen_journal_cut(seen_journal *j)
{
    if (j->last + 1 == j->first) return SEEN_OK; /* nothing in it */
    pthread_mutex_lock(&j->lock);
    while (j->syncing)
        pthread_cond_wait(&j->synced, &j->lock);
    j->syncing = true;
    int failed = j->failed;
    bool wanted = j->durable < j->last;
    pthread_mutex_unlock(&j->lock);
    seen_status status = failed ? SEEN_IO : SEEN_OK;
    if (failed) errno = failed;
    if (status == SEEN_OK && wanted) status = seen_io_datasync(j->fd);
    int problem = errno;
    bool lost = status != SEEN_OK;
    if (!lost) {
        status = begin_segment(j);
        problem = errno;
        /* The old one goes on, and the next cut is further on. */
        if (status != SEEN_OK) (void)remove_segment(j->path, j->last + 1);
    }
    pthread_mutex_lock(&j->lock);
    end_sync(j, lost ? SEEN_IO : SEEN_OK, j->last, problem);
    pthread_mutex_unlock(&j->lock);
    errno = problem;
    return status;
}

seen_status seen_journal_drop(seen_journal *j, uint64_t sequence)
{
    struct listing l;
    seen_status status = list_segments(j->path, &l);
    for (size_t i = 0; status == SEEN_OK && i + 1 < l.n; i++)
        if (l.first[i + 1] <= sequence + 1 && l.first[i] < j->first)
            status = remove_segment(j->path, l.first[i]);
    free_listing(&l);
    return status;
}

bool seen_journal_failed(seen_journal *j)
{
    pthread_mutex_lock(&j->lock);
    bool failed = j->failed;
    pthread_mutex_unlock(&j->lock);
    return failed;
}

uint64_t seen_journal_bytes(const seen_journal *j)
{
    return j->end;
}

uint64_t seen_journal_last(const seen_journal *j)
{
    return j->last;
}

seen_status seen_journal_there(const char *path, bool *there)
{
    struct listing l;
    seen_status status = list_segments(path, &l);
    *there = l.n > 0;
    free_listing(&l);
    return status;
}

/* Behind the header, nothing but zeros? */
static seen_status segment_blank(const char *path, uint64_t first, bool *blank)
{
    uint8_t bytes[4096];
    char name[SEEN_PATH_ROOM];
    if (!name_segment(name, path, first)) return SEEN_IO;
    int fd = seen_io_open_regular(name, O_RDONLY);
    if (fd < 0) return SEEN_IO;
    seen_status status;
    size_t got;
    uint64_t at = SEGMENT;
    do {
        status = seen_io_read_at(fd, bytes, sizeof bytes, at, &got);
        if (status == SEEN_OK) *blank = zeros_from(bytes, 0, got);
        at += sizeof bytes;
    } while (status == SEEN_OK && *blank && got == sizeof bytes);
    seen_io_close(fd);
    return status;
}

seen_status seen_journal_blank(const char *path, bool *blank)
{
    struct listing l;
    seen_status status = list_segments(path, &l);
    *blank = l.n == 0 || (l.n == 1 && l.first[0] == 1);
    if (status == SEEN_OK && l.n && *blank)
        status = segment_blank(path, 1, blank);
    free_listing(&l);
    return status;
}

seen_status seen_journal_remove(const char *path)
{
    seen_status status = remove_files(path, NEW); /* by a writer that died */
    return status == SEEN_OK ? remove_files(path, "") : status;
}
