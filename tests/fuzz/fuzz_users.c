/*
 * fuzz_users.c - libFuzzer against what a store of users reads from its disk:
 * the words about itself, a user's record, frames of changes and of policies.
 *
 *     0    1    flags: which of these parts are given, and what is done
 *     1    1    length of the record
 *     2    128  what the store says about itself, if flagged
 *     ..   ..   a record, everybody's in the backend
 *     ..   ..   frames: type, length (2 bytes), payload; one behind the other
 *
 * Frames are given checksums and numbers, since fuzz_journal.c has damaged ones.
 * The store opens or says what is wrong. Then any call ends with a status, and
 * what a checkpoint makes of a valid record, or of none, is a valid one.
 */
#define _POSIX_C_SOURCE 200809L /* O_DIRECTORY */

#include "base/bytes.h"
#include "base/crc32c.h"
#include "helpers/chosen.h"
#include "memory.h"
#include "users/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIVEN_META 1u  /* otherwise a good one */
#define RIGHT_META 2u  /* its checksum is made right */
#define RECORDED   4u  /* everybody has the record */
#define WRITES     8u  /* open to write */
#define OTHER      16u /* under another policy */

#define SEGMENT 64
#define FRAME   40
#define MOST    65536 /* bytes of a segment */
#define FIXED   8192  /* bytes that a store may take, counted eightfold */
#define SALT    0x5a17

static void must(bool fact)
{
    if (!fact) abort();
}

static const uint8_t secret[16] = "no secret at all";

static struct {
    uint8_t meta[SEEN_META_SIZE];
    const uint8_t *record;
    size_t record_len;
    uint8_t segment[MOST];
    size_t segment_len;
    char name[64];
} disk;

/* ---- A disk with one file; what is written is lost ---------------------- */

static ssize_t fake_get_random(void *buf, size_t len)
{
    memset(buf, 0x5a, len);
    return (ssize_t)len;
}

static int fake_open(const char *path, int flags, mode_t mode)
{
    (void)mode;
    if (flags & (O_CREAT | O_DIRECTORY)) return 11;
    if (strcmp(strrchr(path, '/') + 1, disk.name) == 0) return 10;
    errno = ENOENT;
    return -1;
}

static int fake_fd(int fd)
{
    must(fd == 10 || fd == 11);
    return 0;
}

static int fake_resolve(const char *path, char *buf, size_t cap)
{
    must(strlen(path) < cap);
    strcpy(buf, path);
    return 0;
}

static int fake_chmod(int fd, mode_t mode)
{
    (void)mode;
    return fake_fd(fd);
}

static int fake_rename(const char *from, const char *to)
{
    (void)from, (void)to;
    return 0;
}

static int fake_stat(const char *path, struct seen_stat *out)
{
    (void)path;
    *out = (struct seen_stat){.directory = true};
    return 0;
}

static int fake_fstat(int fd, struct seen_stat *out)
{
    fake_fd(fd);
    *out = (struct seen_stat){.directory = true};
    if (fd == 10)
        *out = (struct seen_stat){.size = disk.segment_len, .regular = true};
    return 0;
}

static ssize_t fake_pread(int fd, void *buf, size_t len, uint64_t offset)
{
    must(fd == 10);
    if (offset >= disk.segment_len) return 0;
    if (len > disk.segment_len - offset)
        len = disk.segment_len - (size_t)offset;
    memcpy(buf, disk.segment + offset, len);
    return (ssize_t)len;
}

static ssize_t fake_pwrite(int fd, const void *buf, size_t len, uint64_t offset)
{
    (void)buf, (void)offset;
    must(fd == 11);
    return (ssize_t)len;
}

static int fake_allocate(int fd, uint64_t len)
{
    (void)len;
    return fake_fd(fd);
}

static int fake_unlink(const char *path)
{
    (void)path;
    return 0;
}

static int fake_list(const char *dir, bool (*each)(void *, const char *),
                     void *ctx)
{
    (void)dir;
    (void)each(ctx, disk.name);
    return 0;
}

static uint64_t fake_time(void)
{
    return 1000000;
}

static const struct seen_os fake = {.get_random = fake_get_random,
                                    .open = fake_open,
                                    .close = fake_fd,
                                    .resolve = fake_resolve,
                                    .chmod = fake_chmod,
                                    .rename = fake_rename,
                                    .stat = fake_stat,
                                    .fstat = fake_fstat,
                                    .pread = fake_pread,
                                    .pwrite = fake_pwrite,
                                    .allocate = fake_allocate,
                                    .datasync = fake_fd,
                                    .sync = fake_fd,
                                    .lock = fake_fd,
                                    .lock_shared = fake_fd,
                                    .unlock = fake_fd,
                                    .process = fake_time,
                                    .clock = fake_time,
                                    .ticks = fake_time,
                                    .unlink = fake_unlink,
                                    .list = fake_list};

/* ---- A backend where everybody has the same record ------------------------ */

static bool there(const char *dir)
{
    (void)dir;
    return true;
}

static seen_status backend_open(void **backend, const char *dir, bool write,
                                seen_error *error)
{
    (void)dir, (void)write, (void)error;
    *backend = &disk;
    return SEEN_OK;
}

static void nothing(void *any)
{
    (void)any;
}

static seen_status awake(void *view, seen_error *error)
{
    (void)view, (void)error;
    return SEEN_OK;
}

static seen_status fine(void *any)
{
    (void)any;
    return SEEN_OK;
}

/* Nobody ever sees a transaction. */
static uint64_t zero(void *view)
{
    (void)view;
    return 0;
}

static uint64_t one(void *backend)
{
    (void)backend;
    return 1;
}

static seen_status meta(void *backend, struct seen_meta *out, seen_error *error)
{
    (void)backend, (void)error;
    return seen_meta_get(disk.meta, sizeof disk.meta, out);
}

static seen_status view_new(void *backend, void **view)
{
    *view = backend;
    return SEEN_OK;
}

static seen_status get(void *view, seen_key user, seen_record *record)
{
    (void)view, (void)user;
    *record = (seen_record){disk.record, disk.record_len};
    return disk.record_len ? SEEN_OK : SEEN_ABSENT;
}

static seen_status
each(void *view, const seen_key *after,
     bool (*each_one)(void *ctx, seen_key user, seen_record record), void *ctx)
{
    (void)view;
    if (disk.record_len && !after)
        each_one(ctx, (seen_key){"a", 1},
                 (seen_record){disk.record, disk.record_len});
    return SEEN_OK;
}

static seen_status put(void *backend, seen_key user, seen_record record,
                       seen_error *error)
{
    (void)backend, (void)error;
    must(user.len > 0 && user.len <= SEEN_USER_MAX);
    seen_record before = {disk.record, disk.record_len};
    if (record.len && seen_exposure_validate(before) == SEEN_OK)
        must(seen_exposure_validate(record) == SEEN_OK);
    return SEEN_OK;
}

static seen_status commit(void *backend, const struct seen_meta *m,
                          seen_error *error)
{
    (void)backend, (void)error;
    seen_meta_put(m, disk.meta);
    return SEEN_OK;
}

static void sizes(void *backend, uint64_t *users, uint64_t *bytes)
{
    (void)backend;
    *users = *bytes = 0;
}

static const struct seen_backend_ops fake_backend = {.there = there,
                                                     .open = backend_open,
                                                     .close = nothing,
                                                     .disown = nothing,
                                                     .meta = meta,
                                                     .snapshot_new = view_new,
                                                     .snapshot_free = nothing,
                                                     .wake = awake,
                                                     .sleep = nothing,
                                                     .sees = zero,
                                                     .hold = nothing,
                                                     .told = meta,
                                                     .get = get,
                                                     .each = each,
                                                     .begin = awake,
                                                     .number = one,
                                                     .put = put,
                                                     .commit = commit,
                                                     .abort = nothing,
                                                     .grow = fine,
                                                     .sizes = sizes};

/* ---- The input ---------------------------------------------------------- */

struct input {
    const uint8_t *at;
    size_t left;
};

static const uint8_t *cut(struct input *in, size_t n)
{
    if (n > in->left) n = in->left;
    const uint8_t *p = in->at;
    in->at += n;
    in->left -= n;
    return p;
}

static void make_meta(struct input *in, unsigned flags)
{
    struct seen_meta m = {.id = 7, .epoch = 1, .journaled = true};
    memcpy(m.secret, secret, sizeof secret);
    m.policy = (seen_policy){
        .items = 10, .generations = 3, .fpp = 0.01, .ttl_ms = 1000000};
    seen_meta_put(&m, disk.meta);
    if (!(flags & GIVEN_META)) return;
    size_t n = in->left < SEEN_META_SIZE ? in->left : SEEN_META_SIZE;
    memcpy(disk.meta, cut(in, n), n);
    if (!(flags & RIGHT_META)) return;
    memcpy(disk.meta, "\x89SEUS\r\n\x1a\x02\0\0\0", 12);
    seen_put_le32(disk.meta + 124, seen_crc32c(0, disk.meta, 124));
}

/* A segment for that, with all the frames that there are. */
static void make_segment(struct input *in)
{
    uint64_t sequence = seen_get_le64(disk.meta + 32) + 1;
    uint8_t *p = disk.segment;
    snprintf(disk.name, sizeof disk.name, "seen.journal-%016llx",
             (unsigned long long)sequence);
    memset(p, 0, sizeof disk.segment);
    memcpy(p, "\x89SEJL\r\n\x1a\x02\0\0\0", 12);
    memcpy(p + 16, disk.meta + 16, 8);
    seen_put_le64(p + 24, 1);
    seen_put_le64(p + 32, sequence);
    seen_put_le64(p + 40, SALT);
    seen_put_le32(p + 60, seen_crc32c(0, p, 60));
    size_t at = SEGMENT;
    for (; in->left > 3; sequence++) {
        const uint8_t *head = cut(in, 3);
        size_t len = seen_get_le16(head + 1) % 4096;
        if (len > in->left) len = in->left;
        size_t size = (FRAME + len + 7) / 8 * 8;
        if (at + size > MOST) break;
        uint8_t *f = p + at;
        memcpy(f + FRAME, cut(in, len), len);
        seen_put_le32(f, (uint32_t)len);
        seen_put_le64(f + 8, sequence);
        seen_put_le64(f + 16, SALT);
        seen_put_le32(f + 32, head[0] % 4);
        uint32_t crc = seen_crc32c(0, f, 4);
        seen_put_le32(f + 4, seen_crc32c(crc, f + 8, FRAME - 8 + len));
        at += size;
    }
    disk.segment_len = at;
}

/* ---- Use ---------------------------------------------------------------- */

static bool look(void *ctx, const seen_users_entry *entry)
{
    must(entry->user.len > 0);
    ++*(size_t *)ctx;
    return true;
}

static void ask(seen_users *u, seen_key user)
{
    uint64_t id[] = {1, 2, 3};
    seen_key items[] = {{&id[0], 8}, {&id[1], 8}, {&id[2], 8}};
    bool answers[3];
    size_t n = 0;
    seen_exposure_info info = {.size = sizeof info};
    seen_users_stats stats = {.size = sizeof stats};
    static uint8_t bytes[1 << 16];
    (void)seen_users_maybe_many(u, user, 1000, seen_keys_of(items, 3), answers,
                                NULL);
    (void)test_users_fresh(u, user, UINT64_MAX, items, 3, &n, NULL);
    (void)seen_users_info_of(u, user, 1000, &info, NULL);
    if (seen_users_record(u, user, bytes, sizeof bytes, &n, NULL) == SEEN_OK)
        must(n > 0);
    (void)seen_users_each(u, 1000, look, &n, NULL);
    must(seen_users_stats_of(u, &stats, NULL) == SEEN_OK);
}

static void change(seen_users *u, seen_key user)
{
    uint64_t id[] = {1, 2, 3};
    seen_key items[] = {{&id[0], 8}, {&id[1], 8}, {&id[2], 8}};
    bool known;
    size_t taken = 0;
    /* A journal that was recovered is owed a checkpoint after the first change; and
     * what checkpoints write is lost here. */
    must(seen_users_mark(u, (seen_key){"c", 1}, 2000, seen_keys_of(items, 1),
                         NULL, NULL) == SEEN_OK);
    must(seen_users_mark(u, user, 2000, seen_keys_of(items, 3), NULL, NULL) ==
         SEEN_OK);
    seen_status status =
        test_users_take(u, user, 2000, items, 3, 2, &taken, NULL);
    if (status == SEEN_OK) must(taken == 0); /* they have just been marked */
    must(seen_users_forget(u, user, 2000, seen_keys_of(items, 1), NULL) ==
         SEEN_OK);
    must(seen_users_sync(u, NULL) == SEEN_OK);
    must(seen_users_forget_user(u, (seen_key){"b", 1}, 2000, &known, NULL) ==
         SEEN_OK);
    must(seen_users_mark(u, (seen_key){"b", 1}, 2000, seen_keys_of(items, 3),
                         NULL, NULL) == SEEN_OK);
    must(seen_users_maybe_many(u, (seen_key){"b", 1}, 2000,
                               seen_keys_of(items, 1), &known,
                               NULL) == SEEN_OK);
    must(known);
    must(seen_users_sweep(u, 3000, NULL, NULL) == SEEN_OK);
}

static void try_meta(void)
{
    struct seen_meta m, again;
    uint8_t bytes[SEEN_META_SIZE];
    for (size_t len = 0; len < SEEN_META_SIZE; len += 31)
        must(seen_meta_get(disk.meta, len, &m) != SEEN_OK);
    if (seen_meta_get(disk.meta, SEEN_META_SIZE, &m) != SEEN_OK) return;
    seen_meta_put(&m, bytes);
    must(seen_meta_get(bytes, sizeof bytes, &again) == SEEN_OK);
    must(again.id == m.id && again.sequence == m.sequence &&
         again.epoch == m.epoch && again.policy.ttl_ms == m.policy.ttl_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2) return 0;
    struct input in = {data + 2, len - 2};
    unsigned flags = data[0];
    make_meta(&in, flags);
    try_meta();
    disk.record = NULL;
    disk.record_len = 0;
    if (flags & RECORDED) {
        disk.record_len = data[1] < in.left ? data[1] : in.left;
        disk.record = cut(&in, disk.record_len);
    }
    make_segment(&in);
    seen_os = &fake;

    seen_policy other = {.items = 20, .generations = 2, .ttl_ms = 5000};
    bool writes = flags & WRITES;
    seen_users_options o = {.mode = writes ? SEEN_WRITE : SEEN_READ,
                            .tail = !writes,
                            .policy = writes && flags & OTHER ? &other : NULL,
                            .checkpoint_bytes = 2000};
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    fuzz_memory_begin();
    seen_status status =
        seen_local_open(&u, "/d", &fake_backend, true, &o, &outcome, &error);
    fuzz_memory_once_within(len + FIXED);
    if (status != SEEN_OK) return 0;
    u->writable = writes;
    ask(u, (seen_key){"a", 1});
    if (writes) change(u, (seen_key){"a", 1});
    ask(u, (seen_key){"a", 1});
    status = seen_users_close(u, NULL);
    must(status == SEEN_OK);
    return 0;
}
