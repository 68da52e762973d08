/*
 * source.c - see source.h.
 *
 * read() into half-megabyte chunks is as fast as mmap on files and works on
 * pipes too. A chunk must end at the end of a line; what lies behind the last
 * one is carried into the next chunk. A line longer than a chunk makes the
 * chunk grow, so there is no limit but memory.
 */
#define _GNU_SOURCE /* memrchr, F_SETPIPE_SZ */

#include "source.h"

#include "decompress.h"
#include "memory.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (512 * 1024)

struct source {
    char **names;
    size_t n, next;        /* files, and which comes next */
    int fd;                /* -1: none open */
    struct stream *stream; /* its content */
    const char *file;
    uint64_t handed_on;        /* bytes of its content */
    bool begins;               /* nothing of it has been handed on */
    size_t marks;              /* files that began with a mark of UTF-8, */
    const char *marked_file;   /* and the first of them */
    const char *wide_file;     /* the first that looks like UTF-16, */
    const char *wide_encoding; /* and like which */
    bool patient;              /* may wait a little for a fuller chunk */
    bool hasty;
    char *carry; /* the start of a line whose end has not come yet */
    size_t carry_len, carry_cap;
    uint64_t total;
    _Atomic uint64_t bytes; /* other threads ask how far we are */
    bool broken;            /* a failure was handed on: the end */
};

static char *only_stdin[] = {"-"};

bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

/* Marks that say how the text behind them is written. */
static const struct mark {
    const char *bytes;
    size_t len;
    const char *encoding; /* that is no lines of bytes; NULL: it is */
} all_marks[] = {{"\xef\xbb\xbf", 3, NULL},
                 {"\xff\xfe\0\0", 4, "UTF-32"},
                 {"\0\0\xfe\xff", 4, "UTF-32"},
                 {"\xff\xfe", 2, "UTF-16"},
                 {"\xfe\xff", 2, "UTF-16"}};

#define MARKS (sizeof all_marks / sizeof *all_marks)

/* The mark that a file begins with, of which these are the first bytes; NULL:
 * none. `*more`: it could still become one. None has the end of a line in it, so
 * no line waits for that. */
static const struct mark *find_mark(const char *bytes, size_t have, bool *more)
{
    *more = false;
    for (size_t i = 0; i < MARKS; i++) {
        size_t len = have < all_marks[i].len ? have : all_marks[i].len;
        if (memcmp(bytes, all_marks[i].bytes, len) != 0) continue;
        if (len == all_marks[i].len) return &all_marks[i];
        *more = true;
    }
    return NULL;
}

/* At the beginning of a tar archive; its file may have been compressed. */
static bool is_tar(const char *bytes, size_t len)
{
    return len >= 262 && memcmp(bytes + 257, "ustar", 5) == 0;
}

#define NOT_LINES                                                              \
    "%s: is a tar archive, expected lines: tar -xOf prints the files in it"

#define NOT_BYTES                                                              \
    "%s: is text in %s, expected lines of bytes or UTF-8: convert it first, "  \
    "iconv -f %s -t UTF-8"

/* Otherwise keys may be any bytes. */
static bool is_text(void)
{
    return !key_format.nul && key_format.u64 != BINARY;
}

/* Of a regular file, before anything has been done; what is compressed is found
 * out later. */
static void must_be_bytes(const char *name, int fd)
{
    char first[512];
    bool more;
    ssize_t got = pread(fd, first, sizeof first, lseek(fd, 0, SEEK_CUR));
    if (got <= 0 || !is_text()) return;
    if (is_tar(first, (size_t)got)) fail(NOT_LINES, name);
    const struct mark *mark = find_mark(first, (size_t)got, &more);
    if (mark && mark->encoding)
        fail(NOT_BYTES, name, mark->encoding, mark->encoding);
}

/* The size of a readable regular file, 0 for other readable things. */
static uint64_t inspect(const char *name)
{
    struct stat st;
    int failed = is_stdin(name) ? fstat(STDIN_FILENO, &st) : stat(name, &st);
    if (failed)
        fail("%s: %s%s", name, strerror(errno),
             errno == ENOENT ? " (INPUT is a file of lines; stdin, if there is "
                               "none)"
                             : "");
    if (S_ISDIR(st.st_mode)) fail("%s: is a directory", name);
    if (!is_stdin(name)) {
        /* Opening a pipe could wait for its writer; asking does not. */
        int fd = S_ISREG(st.st_mode) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0 && (S_ISREG(st.st_mode) || access(name, R_OK) != 0))
            fail("%s: %s", name, strerror(errno));
        if (fd >= 0) {
            must_be_bytes(name, fd);
            close(fd);
        }
    } else if (S_ISREG(st.st_mode)) {
        must_be_bytes("stdin", STDIN_FILENO);
    }
    return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

struct source *open_source(char **names, size_t n, bool hasty)
{
    struct source *s = must_have(calloc(1, sizeof *s));
    s->names = n ? names : only_stdin;
    s->n = n ? n : 1;
    s->fd = -1;
    s->hasty = hasty;
    bool sized = true;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t size = inspect(s->names[i]);
        sized = sized && size > 0;
        s->total += size;
    }
    if (!sized) s->total = 0;
    return s;
}

__attribute__((format(printf, 3, 4))) static void
break_off(struct source *s, struct chunk *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->failure, sizeof c->failure, format, args);
    va_end(args);
    s->broken = true;
}

static bool open_next(struct source *s, struct chunk *c)
{
    const char *name = s->names[s->next++];
    s->file = is_stdin(name) ? "stdin" : name;
    s->fd = is_stdin(name) ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) {
        break_off(s, c, "%s: %s", name, strerror(errno));
        return false;
    }
    struct stat st;
    bool regular = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
    s->patient = !regular && !s->hasty;
    s->stream = stream_open(s->fd, &s->bytes);
    s->begins = is_text();
    s->handed_on = 0;
#ifdef F_SETPIPE_SZ
    fcntl(s->fd, F_SETPIPE_SZ,
          1 << 20); /* fewer switches; no harm if refused */
#endif
    return true;
}

static void close_current(struct source *s)
{
    stream_close(s->stream);
    if (s->fd != STDIN_FILENO) close(s->fd);
    s->fd = -1;
}

static void reserve(struct chunk *c, size_t cap)
{
    if (cap <= c->cap) return;
    c->bytes = must_have(realloc(c->bytes, cap));
    c->cap = cap;
}

/* Behind what the chunk has; one byte stays free for the end that a last line
 * may lack. -1 is an error, 0 the end of the file. */
static ssize_t read_some(struct source *s, struct chunk *c)
{
    if (c->len + 1 >= c->cap) reserve(c, 2 * c->len + 2);
    return stream_read(s->stream, c->bytes + c->len, c->cap - c->len - 1);
}

static void set_carry(struct source *s, const char *from, size_t len)
{
    if (len > s->carry_cap) {
        s->carry = must_have(realloc(s->carry, len));
        s->carry_cap = len;
    }
    if (len > 0) memcpy(s->carry, from, len);
    s->carry_len = len;
}

/* Do two lines begin with the same user? b ends before `end`. */
static bool same_user(const char *a, const char *b, const char *end)
{
    while (b < end && *a == *b && *a != '\t' && *a != end_byte())
        a++, b++;
    return b < end && *a == '\t' && *b == '\t';
}

/*
 * Lines that end at `end` have come behind the first `known` bytes. Where does
 * that begin which may still go on? At the last line that has another user than
 * the line before it: `last`, up to now.
 */
static size_t last_user(const struct chunk *c, size_t last, size_t known,
                        size_t end)
{
    const char *stop = c->bytes + end;
    for (const char *line = c->bytes + known; line < stop; line++) {
        if (!same_user(c->bytes + last, line, stop))
            last = (size_t)(line - c->bytes);
        line = memchr(line, end_byte(), (size_t)(stop - line));
    }
    return last;
}

/* Text in UTF-16 that no mark tells: nearly every other byte is NUL, as long as it
 * is Latin; and the bytes between them are not. Which come first tells its name;
 * NULL: it is none. */
static const char *looks_wide(const struct chunk *c)
{
    size_t nul[2] = {0}, pairs = (c->len < 512 ? c->len : 512) / 2;
    for (size_t i = 0; i < 2 * pairs; i++)
        nul[i % 2] += c->bytes[i] == '\0';
    size_t most = nul[0] > nul[1] ? nul[0] : nul[1];
    if (pairs < 4 || 4 * most < 3 * pairs || nul[0] + nul[1] != most)
        return NULL;
    return nul[0] > nul[1] ? "UTF-16BE" : "UTF-16LE";
}

/* False: not yet, or not at all, and then the source is broken. */
static bool begin_file(struct source *s, struct chunk *c)
{
    bool more;
    const struct mark *mark = find_mark(c->bytes, c->len, &more);
    if (!mark && more) return false;
    s->begins = false;
    if (is_tar(c->bytes, c->len)) {
        c->len = 0;
        break_off(s, c, NOT_LINES, s->file);
        return false;
    }
    if (!mark) {
        const char *encoding = s->wide_file ? NULL : looks_wide(c);
        if (encoding) s->wide_file = s->file, s->wide_encoding = encoding;
        return true;
    }
    if (mark->encoding) {
        c->len = 0;
        break_off(s, c, NOT_BYTES, s->file, mark->encoding, mark->encoding);
        return false;
    }
    c->len -= mark->len;
    memmove(c->bytes, c->bytes + mark->len, c->len);
    if (s->marks++ == 0) s->marked_file = s->file;
    return true;
}

/* Behind the last line of the first c->len bytes, of which `known` have none. 0:
 * there is none. */
static size_t last_end(const struct chunk *c, size_t known)
{
    if (key_format.u64 == BINARY) return c->len - c->len % BINARY_WIDTH;
    const char *last = memrchr(c->bytes + known, end_byte(), c->len - known);
    return last ? (size_t)(last + 1 - c->bytes) : 0;
}

/* The last line of a file may lack its end; a number lacks bytes. */
static void end_file(struct source *s, struct chunk *c)
{
    size_t rest = c->len - last_end(c, 0);
    if (rest > 0 && line_end()) c->bytes[c->len++] = end_byte();
    if (rest == 0 || line_end()) return;
    c->len -= rest;
    break_off(s, c,
              "%s: ends with %zu byte%s at offset %" PRIu64 ": expected 8 "
              "bytes for each number (--u64=binary)",
              s->file, rest, rest == 1 ? "" : "s", s->handed_on + c->len);
}

/* From the open file; false if it has no more lines. */
static bool read_file(struct source *s, struct chunk *c)
{
    size_t lines = 0; /* bytes up to the end of the last line */
    size_t whole = 0; /* bytes that do not belong to what comes */
    reserve(c, s->carry_len);
    if (s->carry_len > 0) memcpy(c->bytes, s->carry, s->carry_len);
    c->len = s->carry_len;
    c->file = s->file;
    s->carry_len = 0;

    for (;;) {
        ssize_t got = read_some(s, c);
        if (got < 0) {
            break_off(s, c, "%s: %s", s->file, stream_error(s->stream));
            break;
        }
        if (got == 0) {
            close_current(s);
            end_file(s, c);
            return c->len > 0 || s->broken;
        }
        size_t known = c->len; /* and no end of a line in it */
        c->len += (size_t)got;
        if (s->begins) {
            known = 0;
            if (!begin_file(s, c)) {
                if (s->broken) break;
                continue;
            }
        }
        size_t end = last_end(c, known);
        if (end > 0) {
            if (key_format.whole == WHOLE_LINES) whole = end;
            if (key_format.whole == WHOLE_USERS)
                whole = last_user(c, whole, lines, end);
            lines = end;
        }
        bool full = c->len + 1 >= c->cap;
        if (whole > 0 && (full || !s->patient || !stream_ready(s->stream)))
            break;
    }
    set_carry(s, c->bytes + whole, c->len - whole);
    c->len = whole;
    s->handed_on += whole;
    return true;
}

bool read_chunk(struct source *s, struct chunk *c)
{
    reserve(c, CHUNK);
    c->failure[0] = '\0';
    while (!s->broken) {
        c->len = 0;
        if (s->fd < 0) {
            if (s->next == s->n) return false;
            if (!open_next(s, c)) return true;
        }
        if (read_file(s, c)) return true;
    }
    return false;
}

const char *source_wide(const struct source *s, const char **encoding)
{
    *encoding = s->wide_encoding;
    return s->wide_file;
}

size_t source_marks(const struct source *s, const char **file)
{
    *file = s->marked_file;
    return s->marks;
}

uint64_t source_bytes(const struct source *s)
{
    return s->bytes;
}

uint64_t source_total(const struct source *s)
{
    return s->total;
}

void close_source(struct source *s)
{
    if (s->fd >= 0) close_current(s);
    free(s->carry);
    free(s);
}
