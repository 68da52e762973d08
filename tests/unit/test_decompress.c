/*
 * test_decompress.c - streams: what comes out, however the bytes come in.
 *
 * Files arrive through a socket that keeps messages apart: one read() of the
 * stream gets one piece, so every way of cutting a file can be tried without
 * waiting for anything.
 */
#define _POSIX_C_SOURCE 200809L

#include "cli/decompress.h"

#include "helpers/harness.h"

#include <bzlib.h>
#include <lzma.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

struct bytes {
    size_t len;
    uint8_t data[1 << 15];
};

/* ---- Files -------------------------------------------------------------- */

static void append(struct bytes *b, const void *data, size_t len)
{
    assert_true(len <= sizeof b->data - b->len);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

/* Lines that compress, but not to nothing. */
static struct bytes make_content(size_t lines)
{
    struct bytes content = {0};
    struct test_rng r = test_rng(1);
    for (size_t i = 0; i < lines; i++) {
        char line[64];
        int len = snprintf(line, sizeof line, "https://example.com/%llu\n",
                           (unsigned long long)test_below(&r, 100000));
        append(&content, line, (size_t)len);
    }
    return content;
}

static void add_gzip(struct bytes *file, const struct bytes *content)
{
    z_stream z = {0};
    uint8_t packed[sizeof file->data];
    assert_int_equal(
        deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (uint8_t *)content->data;
    z.avail_in = (uInt)content->len;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    append(file, packed, z.total_out);
    deflateEnd(&z);
}

static void add_zstd(struct bytes *file, const struct bytes *content)
{
    uint8_t packed[sizeof file->data];
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    size_t len =
        ZSTD_compress2(z, packed, sizeof packed, content->data, content->len);
    assert_false(ZSTD_isError(len));
    append(file, packed, len);
    ZSTD_freeCCtx(z);
}

static void add_xz(struct bytes *file, const struct bytes *content)
{
    uint8_t packed[sizeof file->data];
    size_t len = 0;
    assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL,
                                             content->data, content->len,
                                             packed, &len, sizeof packed),
                     LZMA_OK);
    append(file, packed, len);
}

static void add_bzip2(struct bytes *file, const struct bytes *content)
{
    char packed[sizeof file->data];
    unsigned len = sizeof packed;
    assert_int_equal(BZ2_bzBuffToBuffCompress(packed, &len,
                                              (char *)content->data,
                                              (unsigned)content->len, 1, 0, 0),
                     BZ_OK);
    append(file, packed, len);
}

typedef void add_packed(struct bytes *file, const struct bytes *content);

static const struct {
    const char *name;
    add_packed *add;
    size_t magic; /* bytes without which it is a plain file */
} formats[] = {{"gzip", add_gzip, 2},
               {"zstd", add_zstd, 4},
               {"xz", add_xz, 6},
               {"bzip2", add_bzip2, 10}};

#define FORMATS (sizeof formats / sizeof *formats)

/* ---- Reading them ------------------------------------------------------- */

struct sender {
    const struct bytes *file;
    size_t piece;
    int fd;
};

static void *send_pieces(void *sender)
{
    const struct sender *s = sender;
    for (size_t i = 0; i < s->file->len; i += s->piece) {
        size_t rest = s->file->len - i;
        /* A reader that has seen enough may hang up. */
        if (send(s->fd, s->file->data + i, rest < s->piece ? rest : s->piece,
                 MSG_NOSIGNAL) < 0)
            break;
    }
    close(s->fd);
    return NULL;
}

struct result {
    struct bytes content;
    bool more;       /* came than there is room for: of damaged files */
    char error[200]; /* "" = none */
    uint64_t count;
};

/* All of a file that comes `piece` bytes at a time. Little room, but enough for
 * a piece behind the first bytes: a message loses what does not fit. */
static struct result receive(const struct bytes *file, size_t piece)
{
    struct result r = {0};
    uint8_t buf[STREAM_LEAST + sizeof file->data];
    const size_t cap = STREAM_LEAST + piece;
    _Atomic uint64_t count = 0;
    int pair[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    struct sender sender = {file, piece, pair[1]};
    assert_int_equal(pthread_create(&thread, NULL, send_pieces, &sender), 0);

    struct stream *s = stream_open(pair[0], &count);
    ssize_t got;
    while ((got = stream_read(s, buf, cap)) > 0) {
        size_t room = sizeof r.content.data - r.content.len;
        r.more = r.more || (size_t)got > room;
        append(&r.content, buf, (size_t)got < room ? (size_t)got : room);
    }
    if (got < 0) snprintf(r.error, sizeof r.error, "%s", stream_error(s));
    assert_int_equal(stream_read(s, buf, cap), got); /* the end stays */
    stream_close(s);
    close(pair[0]);
    pthread_join(thread, NULL);
    r.count = count;
    return r;
}

static struct result receive_whole(const struct bytes *file)
{
    return receive(file, file->len);
}

static bool begins_with(const struct bytes *whole, const struct bytes *part)
{
    return part->len <= whole->len &&
           memcmp(whole->data, part->data, part->len) == 0;
}

static void assert_content(const struct result *r, const struct bytes *wanted)
{
    assert_string_equal(r->error, "");
    assert_false(r->more);
    assert_int_equal(r->content.len, wanted->len);
    assert_true(begins_with(wanted, &r->content));
}

static void assert_complaint(const struct result *r, const char *format,
                             size_t offset, const char *what)
{
    char wanted[200];
    snprintf(wanted, sizeof wanted, "bad %s data at byte %zu: %s", format,
             offset, what);
    assert_string_equal(r->error, wanted);
}

/* ---- Tests -------------------------------------------------------------- */

static void pieces_of_any_size_give_the_same_content(void **state)
{
    (void)state;
    const struct bytes content = make_content(300);
    for (size_t f = 0; f < FORMATS + 1; f++) {
        struct bytes file = {0};
        if (f < FORMATS)
            formats[f].add(&file, &content);
        else
            file = content;
        for (size_t piece = 1; piece <= file.len; piece += 1 + piece / 3) {
            struct result r = receive(&file, piece);
            assert_content(&r, &content);
            assert_int_equal(r.count, file.len);
        }
    }
}

static void members_and_frames_follow_each_other(void **state)
{
    (void)state;
    const struct bytes one = make_content(50), none = {0};
    struct bytes twice = one;
    append(&twice, one.data, one.len);
    for (size_t f = 0; f < FORMATS; f++) {
        struct bytes file = {0};
        formats[f].add(&file, &none);
        struct result r = receive_whole(&file);
        assert_content(&r, &none);
        formats[f].add(&file, &one);
        formats[f].add(&file, &none);
        formats[f].add(&file, &one);
        r = receive_whole(&file);
        assert_content(&r, &twice);
        r = receive(&file, 1);
        assert_content(&r, &twice);
    }
}

static void frames_to_skip_are_skipped(void **state)
{
    (void)state;
    static const uint8_t skip[] = {0x5a, 0x2a, 0x4d, 0x18, 3,  0,
                                   0,    0,    'x',  'y',  'z'};
    const struct bytes content = make_content(50);
    struct bytes file = {0};
    append(&file, skip, sizeof skip);
    struct result r = receive_whole(&file);
    assert_content(&r, &(struct bytes){0});
    add_zstd(&file, &content);
    append(&file, skip, sizeof skip);
    for (size_t piece = 1; piece < 100; piece++) {
        r = receive(&file, piece);
        assert_content(&r, &content);
    }
    file.len--;
    r = receive_whole(&file);
    assert_complaint(&r, "zstd", file.len, "unexpected end");
}

static void check_zeros(const char *name, add_packed *add)
{
    static const uint8_t zeros[1000];
    const struct bytes content = make_content(50);
    struct bytes file = {0};
    add(&file, &content);
    append(&file, zeros, sizeof zeros);
    struct result r = receive_whole(&file);
    assert_content(&r, &content);
    assert_int_equal(r.count, file.len);
    for (size_t piece = 1; piece < 400; piece += 7) {
        r = receive(&file, piece);
        assert_content(&r, &content);
    }

    static const char expected[] = "expected another member, zeros or the end";
    size_t end = file.len;
    add(&file, &content);
    r = receive_whole(&file);
    assert_complaint(&r, name, end, expected);
    file.len = end - sizeof zeros;
    append(&file, "x", 1);
    r = receive_whole(&file);
    assert_complaint(&r, name, file.len - 1, expected);
    assert_true(begins_with(&r.content, &content));
}

static void zeros_may_follow_gzip_and_bzip2_and_nothing_else(void **state)
{
    (void)state;
    check_zeros("gzip", add_gzip);
    check_zeros("bzip2", add_bzip2);
}

static void xz_is_padded_by_fours(void **state)
{
    (void)state;
    static const uint8_t zeros[8];
    static const char expected[] =
        "expected another stream, zeros by fours or the end";
    const struct bytes one = make_content(20);
    struct bytes twice = one, file = {0};
    append(&twice, one.data, one.len);
    add_xz(&file, &one);
    const size_t end = file.len;
    for (size_t n = 0; n <= sizeof zeros; n++) {
        file.len = end;
        append(&file, zeros, n);
        struct result r = receive_whole(&file);
        if (n % 4)
            assert_complaint(&r, "xz", end + n, "unexpected end");
        else
            assert_content(&r, &one);
        add_xz(&file, &one);
        for (size_t piece = 1; piece <= file.len; piece += 1 + piece / 2) {
            r = receive(&file, piece);
            if (n % 4)
                assert_complaint(&r, "xz", end + n, expected);
            else
                assert_content(&r, &twice);
        }
    }
    file.len = end;
    append(&file, "x", 1);
    struct result r = receive_whole(&file);
    assert_complaint(&r, "xz", end, expected);
}

/* A dictionary of 4 GiB - 1, for a stream of a few bytes. */
static void xz_does_not_take_any_memory(void **state)
{
    (void)state;
    const struct bytes content = make_content(5);
    struct bytes file = {0};
    add_xz(&file, &content);
    uint8_t *block = file.data + 12; /* behind the header of the stream */
    const size_t len = 4 * (size_t)block[0]; /* up to its checksum */
    uint8_t *lzma2 = memchr(block, 0x21, len);
    assert_non_null(lzma2);
    assert_int_equal(lzma2[1], 1); /* byte of properties: the dictionary */
    lzma2[2] = 40;
    uint32_t crc = lzma_crc32(block, len, 0);
    for (int i = 0; i < 4; i++)
        block[len + (size_t)i] = (uint8_t)(crc >> 8 * i);
    struct result r = receive_whole(&file);
    assert_int_equal(r.content.len, 0);
    assert_non_null(strstr(r.error, "more memory than is granted"));
}

static void archives_that_are_not_read_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *start;
    } archives[] = {{"zip", "PK\3\4"},
                    {"7z", "7z\xbc\xaf\x27\x1c"},
                    {"lz4", "\x04\x22\x4d\x18"},
                    {"compress", "\x1f\x9d\x90"}};
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        struct bytes file = {0};
        char wanted[128];
        append(&file, archives[i].start, strlen(archives[i].start));
        append(&file, "line\n", 5);
        snprintf(wanted, sizeof wanted,
                 "is compressed with %s, which this build does not read: "
                 "decompress it first",
                 archives[i].name);
        struct result r = receive(&file, 3);
        assert_string_equal(r.error, wanted);
        assert_int_equal(r.content.len, 0);
    }
}

static void every_cut_is_noticed_behind_what_came_before(void **state)
{
    (void)state;
    const struct bytes content = make_content(300);
    for (size_t f = 0; f < FORMATS; f++) {
        struct bytes file = {0};
        formats[f].add(&file, &content);
        while (--file.len >= formats[f].magic) {
            struct result r = receive_whole(&file);
            assert_complaint(&r, formats[f].name, file.len, "unexpected end");
            assert_true(begins_with(&content, &r.content));
        }
        for (; file.len > 0; file.len--) {
            struct result r = receive(&file, 1);
            assert_content(&r, &file);
        }
    }
}

/* Some bits mean nothing: times in headers, padding. And some say the same in
 * another way, such as a match from farther back. */
static void a_changed_byte_is_noticed_or_changes_nothing(void **state)
{
    (void)state;
    const struct bytes content = make_content(300);
    struct test_rng rng = test_rng(2);
    for (size_t f = 0; f < FORMATS; f++) {
        struct bytes file = {0};
        size_t unnoticed = 0;
        formats[f].add(&file, &content);
        for (size_t i = formats[f].magic; i < file.len; i++) {
            uint8_t flip = (uint8_t)(1 + test_below(&rng, 255));
            file.data[i] ^= flip;
            struct result r = receive_whole(&file);
            if (!*r.error) assert_content(&r, &content);
            unnoticed += !*r.error;
            file.data[i] ^= flip;
        }
        assert_true(unnoticed < file.len / 20);
    }
}

static void plain_bytes_do_not_wait(void **state)
{
    (void)state;
    static const char *const starts[] = {"a",
                                         "\n",
                                         "(\n",
                                         "\x1f\n",
                                         "P*\n",
                                         "_*M\n",
                                         "\x28\xb5\n",
                                         "\x28\xb5\x2f\n",
                                         "PK\n",
                                         "7z\n",
                                         "BZh\n",
                                         "BZh9\n",
                                         "BZh91AY&S\n",
                                         ("\xfd"
                                          "7zXZ\n")};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        int fds[2];
        char buf[16];
        _Atomic uint64_t count = 0;
        size_t len = strlen(starts[i]);
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], starts[i], len), len);
        struct stream *s = stream_open(fds[0], &count);
        assert_int_equal(stream_read(s, buf, sizeof buf), len);
        assert_memory_equal(buf, starts[i], len);
        assert_false(stream_ready(s));
        stream_close(s);
        close(fds[0]);
        close(fds[1]);
    }
}

/* Through a pipe that stays open. */
static void what_is_decompressed_does_not_wait(void **state)
{
    (void)state;
    const struct bytes content = make_content(2);
    for (size_t f = 0; f < FORMATS; f++) {
        int fds[2];
        uint8_t buf[4096];
        _Atomic uint64_t count = 0;
        struct bytes file = {0};
        formats[f].add(&file, &content);
        assert_int_equal(pipe(fds), 0);
        struct stream *s = stream_open(fds[0], &count);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(write(fds[1], file.data, file.len), file.len);
            assert_int_equal(stream_read(s, buf, sizeof buf), content.len);
            assert_memory_equal(buf, content.data, content.len);
            assert_false(stream_ready(s));
        }
        stream_close(s); /* the thread waits for input */
        close(fds[0]);
        close(fds[1]);
    }
}

static void a_stream_can_be_closed_before_its_end(void **state)
{
    (void)state;
    enum {
        MEGABYTES = 8
    };
    static uint8_t megabyte[1 << 20];
    for (int reads = 0; reads < 4; reads++) {
        FILE *file = tmpfile();
        assert_non_null(file);
        int fd = fileno(file);
        gzFile to = gzdopen(dup(fd), "wb1");
        for (int i = 0; i < MEGABYTES; i++)
            assert_int_equal(gzwrite(to, megabyte, sizeof megabyte),
                             sizeof megabyte);
        assert_int_equal(gzclose(to), Z_OK);
        lseek(fd, 0, SEEK_SET);

        _Atomic uint64_t count = 0;
        struct stream *s = stream_open(fd, &count);
        for (int i = 0; i < reads; i++)
            assert_int_equal(stream_read(s, megabyte, STREAM_LEAST),
                             STREAM_LEAST);
        stream_close(s); /* the thread waits for room */
        fclose(file);
    }
}

static void what_cannot_be_read_says_why(void **state)
{
    (void)state;
    char buf[16];
    _Atomic uint64_t count = 0;
    struct stream *s = stream_open(-1, &count);
    assert_int_equal(stream_read(s, buf, sizeof buf), -1);
    assert_string_equal(stream_error(s), "read: Bad file descriptor");
    stream_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_give_the_same_content),
        cmocka_unit_test(members_and_frames_follow_each_other),
        cmocka_unit_test(frames_to_skip_are_skipped),
        cmocka_unit_test(zeros_may_follow_gzip_and_bzip2_and_nothing_else),
        cmocka_unit_test(xz_is_padded_by_fours),
        cmocka_unit_test(xz_does_not_take_any_memory),
        cmocka_unit_test(archives_that_are_not_read_are_refused),
        cmocka_unit_test(every_cut_is_noticed_behind_what_came_before),
        cmocka_unit_test(a_changed_byte_is_noticed_or_changes_nothing),
        cmocka_unit_test(plain_bytes_do_not_wait),
        cmocka_unit_test(what_is_decompressed_does_not_wait),
        cmocka_unit_test(a_stream_can_be_closed_before_its_end),
        cmocka_unit_test(what_cannot_be_read_says_why),
    };
    test_announce("decompress");
    return cmocka_run_group_tests_name("decompress", tests, NULL, NULL);
}
