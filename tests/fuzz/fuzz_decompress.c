/*
 * fuzz_decompress.c - libFuzzer against compressed input: gzip, zstd, xz, bzip2.
 *
 * The first byte says into how many pieces the rest, a file, is cut. The file comes
 * once as a whole and once in pieces, and both times the same comes out: content
 * and its end, or a complaint behind a part of it. Little memory is taken for it,
 * whatever the file says about itself; the program is built with a small
 * WINDOW_LOG for this, so that windows beyond it occur.
 *
 * The seeds in corpus/decompress are one byte and a file: two members, streams or
 * frames of a few lines, by each program at its lowest level; padded; cut off; a
 * frame to skip; none.
 */
#define _POSIX_C_SOURCE 200809L

#include "cli/decompress.h"

#include <sanitizer/allocator_interface.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_MAX    ((size_t)16 * 1024)
#define CONTENT_MAX ((size_t)256 * 1024) /* of what could be without end */

/* Pieces that a socket holds before anybody reads them. */
#define PIECES_MAX 64

/* Ring and input, and a window of 2^WINDOW_LOG with what a library keeps
 * beside it; bzip2 takes 4 MB at most. */
#define MEMORY_MAX (((size_t)1 << WINDOW_LOG) + ((size_t)6 << 20))

static void must(bool fact)
{
    if (!fact) abort();
}

struct result {
    uint8_t content[CONTENT_MAX];
    size_t len;
    bool failed, endless;
};

/* A socket that keeps messages apart: one read() brings one piece. */
static int open_file(const uint8_t *file, size_t len, size_t piece)
{
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    for (size_t at = 0; at < len; at += piece) {
        size_t now = len - at < piece ? len - at : piece;
        must(send(pair[1], file + at, now, MSG_NOSIGNAL | MSG_DONTWAIT) ==
             (ssize_t)now);
    }
    close(pair[1]);
    return pair[0];
}

static void receive(const uint8_t *file, size_t len, size_t pieces,
                    struct result *r)
{
    _Atomic uint64_t count = 0;
    size_t before = __sanitizer_get_current_allocated_bytes();
    int fd = open_file(file, len, len / pieces + 1);
    struct stream *s = stream_open(fd, &count);
    ssize_t got = 1;
    r->len = 0;
    while (got > 0 && r->len + STREAM_LEAST < CONTENT_MAX) {
        got = stream_read(s, r->content + r->len, CONTENT_MAX - r->len);
        if (got > 0) r->len += (size_t)got;
    }
    must(__sanitizer_get_current_allocated_bytes() < before + MEMORY_MAX);
    r->failed = got < 0;
    r->endless = got > 0;
    must(r->endless || r->failed == (*stream_error(s) != '\0'));
    must(count <= len && (got != 0 || count == len));
    stream_close(s);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > FILE_MAX) return 0;
    static struct result a, b;
    receive(data + 1, size - 1, 1, &a);
    receive(data + 1, size - 1, 1 + data[0] % PIECES_MAX, &b);
    must(memcmp(a.content, b.content, a.len < b.len ? a.len : b.len) == 0);
    if (!a.endless && !b.endless) {
        must(a.failed == b.failed);
        must(a.failed || a.len == b.len);
    }
    return 0;
}
