/*
 * fuzz_journal.c - libFuzzer against the reader of journals.
 *
 * The input is one segment, or two, of a journal that lies nowhere: the few
 * system calls that replay makes are answered from memory. Any bytes: replay
 * ends with frames in order, or an error that says why. Random bytes rarely
 * survive a checksum, so each input is tried as it is and with the checksums of
 * headers and frames made right.
 */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "memory.h"
#include "store/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ID      7
#define SEGMENT 64
#define FRAME   40

static void must(bool fact)
{
    if (!fact) abort();
}

/* ---- Two files ---------------------------------------------------------- */

static struct {
    const char *name;
    const uint8_t *bytes;
    size_t len;
} files[2];

static int fake_open(const char *path, int flags, mode_t mode)
{
    (void)flags, (void)mode;
    for (int i = 0; i < 2; i++)
        if (files[i].bytes && strcmp(path + 2, files[i].name) == 0)
            return 10 + i;
    errno = ENOENT;
    return -1;
}

static int fake_close(int fd)
{
    must(fd == 10 || fd == 11);
    return 0;
}

static int fake_fstat(int fd, struct seen_stat *out)
{
    *out = (struct seen_stat){.size = files[fd - 10].len, .regular = true};
    return 0;
}

static ssize_t fake_pread(int fd, void *buf, size_t len, uint64_t offset)
{
    size_t there = files[fd - 10].len;
    if (offset >= there) return 0;
    if (len > there - offset) len = there - (size_t)offset;
    memcpy(buf, files[fd - 10].bytes + offset, len);
    return (ssize_t)len;
}

static int fake_list(const char *dir, bool (*each)(void *, const char *),
                     void *ctx)
{
    (void)dir;
    for (int i = 1; i >= 0; i--)
        if (files[i].bytes && !each(ctx, files[i].name)) break;
    return 0;
}

static const struct seen_os fake = {.open = fake_open,
                                    .close = fake_close,
                                    .fstat = fake_fstat,
                                    .pread = fake_pread,
                                    .list = fake_list};

/* ---- Replay ------------------------------------------------------------- */

struct sum {
    uint64_t last, frames;
    uint8_t bytes;
};

static seen_status add_up(void *ctx, const struct seen_frame *f)
{
    struct sum *s = ctx;
    must(f->sequence == s->last + 1 && f->len <= SEEN_FRAME_MAX);
    s->last = f->sequence;
    s->frames++;
    for (size_t i = 0; i < f->len; i++)
        s->bytes ^= f->payload[i];
    return SEEN_OK;
}

static void try_files(uint64_t after)
{
    struct sum s = {.last = after};
    struct seen_replayed out;
    fuzz_memory_begin();
    seen_status status =
        seen_journal_replay("./f", ID, after, add_up, &s, &out);
    fuzz_memory_within(files[0].len + files[1].len);
    must(out.last == s.last && out.frames == s.frames);
    must(status == SEEN_OK || status == SEEN_CORRUPT || status == SEEN_NEWER);
    must(status == SEEN_OK || out.problem[0]);
}

/* Headers and frames as a writer would leave them, with these contents. */
static void make_right(uint8_t *p, size_t len, uint64_t first)
{
    if (len < SEGMENT) return;
    memcpy(p, "\x89SEJL\r\n\x1a\x02\0\0\0", 12);
    seen_put_le64(p + 16, ID);
    seen_put_le64(p + 32, first);
    seen_put_le32(p + 60, seen_crc32c(0, p, 60));
    for (size_t at = SEGMENT; at + FRAME <= len; first++) {
        uint8_t *f = p + at;
        uint32_t size = seen_get_le32(f) % 64;
        if (at + FRAME + size > len) return;
        seen_put_le32(f, size);
        if (f[8] != 0xbd) { /* now and then a damaged one stays */
            seen_put_le64(f + 8, first);
            seen_put_le64(f + 16, seen_get_le64(p + 40)); /* the salt */
            uint32_t crc = seen_crc32c(0, f, 4);
            seen_put_le32(f + 4, seen_crc32c(crc, f + 8, FRAME - 8 + size));
        }
        at += (FRAME + size + 7) / 8 * 8;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2) return 0;
    uint64_t second = 2 + data[0] % 8, after = data[1] % 8;
    size_t half = len / 2;
    uint8_t *a = malloc(half), *b = malloc(len - half);
    must(a && b);
    memcpy(a, data, half);
    memcpy(b, data + half, len - half);
    char name[] = "f.journal-0000000000000002";
    name[strlen(name) - 1] = (char)('0' + second);
    files[0].name = "f.journal-0000000000000001";
    files[0].bytes = a;
    files[0].len = half;
    files[1].name = name;
    files[1].bytes = data[0] & 64 ? b : NULL;
    files[1].len = len - half;
    seen_os = &fake;
    try_files(after);
    make_right(a, half, 1);
    make_right(b, len - half, second);
    try_files(after);
    free(a);
    free(b);
    return 0;
}
