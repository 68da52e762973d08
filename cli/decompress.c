/*
 * decompress.c - see decompress.h.
 *
 * Decompression takes longer than everything behind it, so it is done beside
 * it: a thread reads the file and decompresses into a ring, out of which the
 * caller copies.
 *
 *     file ──read()──►  in  ──step()──►  ring  ──copy──►  caller
 *          └──────────── thread ────────────┘
 *
 * `made` and `taken` count the bytes that have gone into the ring and come out
 * of it; byte i of the content lies at ring[i % RING]:
 *
 *     taken <= made <= taken + RING
 *
 * What lies between them is the caller's, the rest is the thread's. So both
 * work outside the lock and hold it only to move their count, and who finds
 * nothing to do sleeps. The thread moves `made` after every step and before
 * every read(): what has been decompressed never waits for more input.
 *
 * A step is one call of a library. All of them say at the end of a member, frame
 * or stream that it is complete; the end of the file is welcome then and at no
 * other time.
 */
#define _POSIX_C_SOURCE 200809L

#include "decompress.h"

#include "memory.h"
#include "output.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SEEN_WITH_COMPRESSION
#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#endif

/* Measured with `seen uniq urls.gz`, 200 MB of lines: rings of 256 KiB to 1 MiB
 * and steps of 64 to 256 KiB are equally fast. */
#ifndef RING /* a fuzzer goes round in smaller ones */
#define RING ((size_t)512 * 1024)
#define STEP ((size_t)64 * 1024) /* decompressed at once, at most */
#endif
#define IN ((size_t)64 * 1024) /* read at once */

struct codec {
    const char *name;
    void (*start)(struct stream *s);

    /* Decompresses some of `in` to `to` and says how much came out; complains
     * about what it cannot read. Never called at the end of a member, frame or
     * stream without further input. */
    size_t (*step)(struct stream *s, uint8_t *to, size_t cap);
    void (*end)(struct stream *s);
};

struct stream {
    int fd;
    _Atomic uint64_t *count;
    bool begun;                /* the first bytes have been looked at */
    const struct codec *codec; /* NULL: plain */
    char error[160];

    /* The thread's. */
    uint8_t *in;
    size_t from, len; /* of `in`: used up to, filled up to */
    uint64_t offset;  /* of in[from] in the file */
    bool complete;    /* the end of the file may come here */
#ifdef SEEN_WITH_COMPRESSION
    z_stream gzip;
    bz_stream bzip2;
    bool padding; /* of these two: only zeros may follow */
    ZSTD_DCtx *zstd;
    size_t wish; /* bytes that zstd would like to be given next */
    lzma_stream xz;
    bool between;  /* two streams of xz, or the last one and the end: */
    uint8_t zeros; /* so many bytes of padding, modulo 4 */
#endif

    /* Between the thread and the caller, under the lock. */
    uint8_t *ring;
    uint64_t made, taken;
    bool ended;   /* nothing more will be made */
    bool closing; /* nothing more will be taken */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int hang_up[2]; /* a pipe whose closing ends the wait for input */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void complain(struct stream *s, const char *what)
{
    snprintf(s->error, sizeof s->error, "bad %s data at byte %llu: %s",
             s->codec->name, (unsigned long long)s->offset, what);
}

static ssize_t read_fd(struct stream *s, void *to, size_t cap)
{
    ssize_t got;
    do
        got = read(s->fd, to, cap);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        snprintf(s->error, sizeof s->error, "read: %s", strerror(errno));
    return got;
}

#ifdef SEEN_WITH_COMPRESSION

/*
 * A file may refer back as far as its window, which must be kept in memory.
 * zstd(1) by itself never writes windows above 2^27 bytes, and the library
 * refuses more unless told otherwise. `zstd --long=31` writes 2 GiB: read that
 * too where there are addresses for it, and xz files that want as much. This is
 * also the most that a malicious file can make us take. (A fuzzer sets less.)
 */
#ifndef WINDOW_LOG
#define WINDOW_LOG (sizeof(void *) >= 8 ? 31 : 27)
#endif

static void use(struct stream *s, size_t len)
{
    s->from += len;
    s->offset += len;
    *s->count += len;
}

/* Behind a member of gzip or a stream of bzip2: another one, which begins with
 * this byte, or zeros up to the end, as tapes have it and gzip(1) accepts it. */
static bool next_member(struct stream *s, uint8_t first)
{
    if (s->in[s->from] == first && !s->padding) return true;
    s->padding = true;
    size_t zeros = 0;
    while (s->from + zeros < s->len && s->in[s->from + zeros] == 0)
        zeros++;
    use(s, zeros);
    if (s->from < s->len)
        complain(s, "expected another member, zeros or the end");
    return false;
}

/* ---- gzip --------------------------------------------------------------- */

static void gzip_start(struct stream *s)
{
    /* 15: any window; 16: with the header and checksum of gzip. */
    if (inflateInit2(&s->gzip, 15 + 16) != Z_OK) fail("out of memory");
}

static size_t gzip_step(struct stream *s, uint8_t *to, size_t cap)
{
    z_stream *z = &s->gzip;
    if (s->complete) {
        if (!next_member(s, 0x1f)) return 0;
        inflateReset(z);
    }
    z->next_in = s->in + s->from;
    z->avail_in = (uInt)(s->len - s->from);
    z->next_out = to;
    z->avail_out = (uInt)cap;
    int status = inflate(z, Z_SYNC_FLUSH);
    use(s, s->len - s->from - z->avail_in);
    s->complete = status == Z_STREAM_END;
    /* Z_BUF_ERROR: just not enough input for anything to come out. */
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        complain(s, z->msg ? z->msg : zError(status));
    return cap - z->avail_out;
}

static void gzip_end(struct stream *s)
{
    inflateEnd(&s->gzip);
}

static const struct codec gzip = {"gzip", gzip_start, gzip_step, gzip_end};

/* ---- bzip2 -------------------------------------------------------------- */

static void bzip2_start(struct stream *s)
{
    if (BZ2_bzDecompressInit(&s->bzip2, 0, 0) != BZ_OK) fail("out of memory");
}

static void bzip2_end(struct stream *s)
{
    BZ2_bzDecompressEnd(&s->bzip2);
}

static size_t bzip2_step(struct stream *s, uint8_t *to, size_t cap)
{
    bz_stream *b = &s->bzip2;
    if (s->complete) {
        if (!next_member(s, 'B')) return 0;
        bzip2_end(s);
        bzip2_start(s);
    }
    b->next_in = (char *)s->in + s->from;
    b->avail_in = (unsigned)(s->len - s->from);
    b->next_out = (char *)to;
    b->avail_out = (unsigned)cap;
    int status = BZ2_bzDecompress(b);
    use(s, s->len - s->from - b->avail_in);
    s->complete = status == BZ_STREAM_END;
    if (status == BZ_MEM_ERROR) fail("out of memory");
    if (status != BZ_OK && status != BZ_STREAM_END)
        complain(s, status == BZ_DATA_ERROR_MAGIC
                        ? "expected the beginning of a block"
                        : "damaged");
    return cap - b->avail_out;
}

static const struct codec bzip2 = {"bzip2", bzip2_start, bzip2_step, bzip2_end};

/* ---- zstd --------------------------------------------------------------- */

#define BLOCK_HEADER 3 /* bytes */

static void zstd_start(struct stream *s)
{
    s->zstd = must_have(ZSTD_createDCtx());
    ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
    s->wish = BLOCK_HEADER;
}

/*
 * zstd gets as much as it wishes, and no more: a block or a header. Where a
 * call fails, it neither says how far it came nor hands on what it made before,
 * so a call must not go beyond one of them. For this reason also without the
 * next block's header, which zstd adds to its wish to save a call.
 */
static size_t zstd_step(struct stream *s, uint8_t *to, size_t cap)
{
    size_t wish = s->wish > BLOCK_HEADER ? s->wish - BLOCK_HEADER : s->wish;
    ZSTD_inBuffer in = {s->in + s->from, least(wish, s->len - s->from), 0};
    ZSTD_outBuffer out = {to, cap, 0};
    size_t status = ZSTD_decompressStream(s->zstd, &out, &in);
    use(s, in.pos);
    if (ZSTD_isError(status)) complain(s, ZSTD_getErrorName(status));
    s->complete = status == 0;
    s->wish = s->complete ? BLOCK_HEADER : status;
    return out.pos;
}

static void zstd_end(struct stream *s)
{
    ZSTD_freeDCtx(s->zstd);
}

static const struct codec zstd = {"zstd", zstd_start, zstd_step, zstd_end};

/* ---- xz ----------------------------------------------------------------- */

static const char *xz_problem(lzma_ret status)
{
    switch (status) {
    case LZMA_MEMLIMIT_ERROR:
        return "its dictionary takes more memory than is granted";
    case LZMA_OPTIONS_ERROR:
        return "uses a filter that this liblzma does not know";
    case LZMA_UNSUPPORTED_CHECK:
        return "has a checksum that this liblzma does not know";
    case LZMA_FORMAT_ERROR:
        return "expected the beginning of a stream";
    default:
        return "damaged";
    }
}

static void xz_start(struct stream *s)
{
    const uint64_t most = ((uint64_t)1 << WINDOW_LOG) + (1 << 20);
    if (lzma_stream_decoder(&s->xz, most, LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK)
        fail("out of memory");
}

/* Behind a stream: zeros, four or a multiple of that, another stream, the end. */
static bool xz_next(struct stream *s)
{
    while (s->from < s->len && s->in[s->from] == 0) {
        use(s, 1);
        s->zeros = (s->zeros + 1) % 4;
    }
    s->complete = s->zeros == 0;
    if (s->from == s->len) return false;
    if (s->in[s->from] != 0xfd || !s->complete) {
        complain(s, "expected another stream, zeros by fours or the end");
        return false;
    }
    s->between = s->complete = false;
    xz_start(s); /* again: liblzma reuses what it has */
    return true;
}

static size_t xz_step(struct stream *s, uint8_t *to, size_t cap)
{
    lzma_stream *x = &s->xz;
    if (s->between && !xz_next(s)) return 0;
    x->next_in = s->in + s->from;
    x->avail_in = s->len - s->from;
    x->next_out = to;
    x->avail_out = cap;
    lzma_ret status = lzma_code(x, LZMA_RUN);
    use(s, s->len - s->from - x->avail_in);
    s->complete = s->between = status == LZMA_STREAM_END;
    if (status == LZMA_MEM_ERROR) fail("out of memory");
    /* LZMA_BUF_ERROR: just not enough input for anything to come out. */
    if (status != LZMA_OK && status != LZMA_STREAM_END &&
        status != LZMA_BUF_ERROR)
        complain(s, xz_problem(status));
    return cap - x->avail_out;
}

static void xz_end(struct stream *s)
{
    lzma_end(&s->xz);
}

static const struct codec xz = {"xz", xz_start, xz_step, xz_end};

#endif

/* ---- What is not read: still no lines of compressed bytes ----------------- */

static void nothing(struct stream *s)
{
    (void)s;
}

static size_t refuse(struct stream *s, uint8_t *to, size_t cap)
{
    (void)to, (void)cap;
    snprintf(s->error, sizeof s->error,
             "is compressed with %s, which this build does not read: "
             "decompress it first",
             s->codec->name);
    return 0;
}

#define REFUSED(name)                                                          \
    {                                                                          \
        name, nothing, refuse, nothing                                         \
    }

static const struct codec lzw = REFUSED("compress"), lz4 = REFUSED("lz4"),
                          sevenzip = REFUSED("7z"), zip = REFUSED("zip"),
                          lzma = REFUSED("lzma");

#ifndef SEEN_WITH_COMPRESSION
static const struct codec bzip2 = REFUSED("bzip2"), gzip = REFUSED("gzip"),
                          xz = REFUSED("xz"), zstd = REFUSED("zstd");
#endif

/* ---- Recognition -------------------------------------------------------- */

/*
 * Where more bytes could still make it one of these, sniffing waits for them.
 * No line waits with it: none of them has the end of a line in it. "BZh9" could
 * be a word, so that bzip2 is told by the number of a block (pi), or of the end
 * (its square root), behind it.
 */
static const struct format {
    const struct codec *codec;
    size_t len;
    uint8_t magic[STREAM_LEAST];
    uint8_t free[STREAM_LEAST]; /* bits that may be anything */
} formats[] = {
    /* clang-format off */
    {&gzip, 2, {0x1f, 0x8b}, {0}},
    {&zstd, 4, {0x28, 0xb5, 0x2f, 0xfd}, {0}},
    /* A frame to skip: pzstd begins with one. */
    {&zstd, 4, {0x50, 0x2a, 0x4d, 0x18}, {0x0f}},
    {&xz, 6, {0xfd, '7', 'z', 'X', 'Z', 0}, {0}},
    {&bzip2, 10, {'B', 'Z', 'h', '0', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59}, {[3] = 0x0f}},
    {&bzip2, 10, {'B', 'Z', 'h', '0', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90}, {[3] = 0x0f}},
    {&lzw, 2, {0x1f, 0x9d}, {0}},
    {&lz4, 4, {0x04, 0x22, 0x4d, 0x18}, {0}},
    {&zip, 4, {'P', 'K', 3, 4}, {0}},
    /* Properties, a size of the dictionary as the presets have them, no length. */
    {&lzma, 10, {0x5d, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff}, {[3] = 0xf4, [4] = 0x07}},
    {&sevenzip, 6, {'7', 'z', 0xbc, 0xaf, 0x27, 0x1c}, {0}},
    /* clang-format on */
};

static bool begins_with(const uint8_t *bytes, size_t len,
                        const struct format *f)
{
    for (size_t i = 0; i < len && i < f->len; i++)
        if ((bytes[i] ^ f->magic[i]) & ~f->free[i]) return false;
    return true;
}

/* What the bytes are the beginning of, as far as they go; NULL: plain. */
static const struct format *recognise(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (begins_with(bytes, len, &formats[i])) return &formats[i];
    return NULL;
}

/* ---- The ring ----------------------------------------------------------- */

/* Of the bytes from position pos on, those that lie side by side. */
static size_t side_by_side(uint64_t pos, uint64_t len)
{
    return least((size_t)len, RING - pos % RING);
}

/* How much the thread may make now; 0: nobody wants any more. Not for a few
 * bytes: the two would go in lockstep. */
static size_t wait_for_room(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->closing && s->made - s->taken > RING - STEP)
        pthread_cond_wait(&s->changed, &s->lock);
    size_t room = side_by_side(s->made, RING - (s->made - s->taken));
    bool closing = s->closing;
    pthread_mutex_unlock(&s->lock);
    return closing ? 0 : least(room, STEP);
}

/* How much the caller may take now; 0: the end. */
static size_t wait_for_bytes(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->ended && s->made == s->taken)
        pthread_cond_wait(&s->changed, &s->lock);
    size_t len = side_by_side(s->taken, s->made - s->taken);
    pthread_mutex_unlock(&s->lock);
    return len;
}

/* Only one of the two can be waiting: for room in a full ring, or for bytes in
 * an empty one. */
static void move(struct stream *s, uint64_t *count, size_t len)
{
    pthread_mutex_lock(&s->lock);
    *count += len;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static ssize_t take(struct stream *s, void *to, size_t cap)
{
    size_t len = least(wait_for_bytes(s), cap);
    if (len == 0) return *s->error ? -1 : 0;
    memcpy(to, s->ring + s->taken % RING, len);
    move(s, &s->taken, len);
    return (ssize_t)len;
}

/* ---- The thread --------------------------------------------------------- */

/* False: the stream is being closed. read() alone might wait forever, and
 * nothing would wake it. */
static bool wait_for_input(struct stream *s)
{
    struct pollfd p[] = {{.fd = s->fd, .events = POLLIN},
                         {.fd = s->hang_up[0], .events = POLLIN}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return p[1].revents == 0;
}

static bool refill(struct stream *s)
{
    if (!wait_for_input(s)) return false;
    ssize_t got = read_fd(s, s->in, IN);
    if (got == 0 && !s->complete) complain(s, "unexpected end");
    if (got <= 0) return false;
    s->from = 0;
    s->len = (size_t)got;
    return true;
}

/* False: that was the last. */
static bool make_some(struct stream *s)
{
    size_t cap = wait_for_room(s);
    if (cap == 0) return false;
    size_t len = s->codec->step(s, s->ring + s->made % RING, cap);
    move(s, &s->made, len);
    if (*s->error) return false;
    /* Where the room was filled, there may be more to come without input. */
    bool hungry = len < cap || s->complete;
    return s->from < s->len || !hungry || refill(s);
}

static void *decompress(void *stream)
{
    struct stream *s = stream;
    while (make_some(s))
        ;
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* `len` bytes of the file have been read already. */
static void start(struct stream *s, const void *first, size_t len)
{
    s->in = must_have(malloc(len > IN ? len : IN));
    s->ring = must_have(malloc(RING));
    memcpy(s->in, first, len);
    s->len = len;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->codec->start(s);
    if (pipe(s->hang_up) != 0) fail("pipe: %s", strerror(errno));
    if (pthread_create(&s->thread, NULL, decompress, s) != 0)
        fail("no thread could be started for decompression");
}

static void stop(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    close(s->hang_up[1]);
    pthread_join(s->thread, NULL);
    close(s->hang_up[0]);
    s->codec->end(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->ring);
    free(s->in);
}

/* ---- Streams ------------------------------------------------------------ */

struct stream *stream_open(int fd, _Atomic uint64_t *count)
{
    struct stream *s = must_have(calloc(1, sizeof *s));
    s->fd = fd;
    s->count = count;
    return s;
}

/* As much as tells what the file is. A plain one has then been read as any
 * other time. */
static ssize_t read_first(struct stream *s, uint8_t *to, size_t cap)
{
    const struct format *f;
    size_t len = 0;
    ssize_t got;
    assert(cap >= STREAM_LEAST);
    do {
        got = read_fd(s, to + len, cap - len);
        if (got < 0) return -1;
        len += (size_t)got;
        f = recognise(to, len);
    } while (got > 0 && f && len < f->len);
    s->begun = true;
    if (f && len >= f->len) {
        s->codec = f->codec;
        start(s, to, len);
        return take(s, to, cap);
    }
    *s->count += len;
    return (ssize_t)len;
}

ssize_t stream_read(struct stream *s, void *to, size_t cap)
{
    if (!s->begun) return read_first(s, to, cap);
    if (s->codec) return take(s, to, cap);
    ssize_t got = read_fd(s, to, cap);
    if (got > 0) *s->count += (uint64_t)got;
    return got;
}

const char *stream_error(const struct stream *s)
{
    return s->error;
}

bool stream_ready(struct stream *s)
{
    if (!s->codec) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        return poll(&p, 1, 0) > 0;
    }
    pthread_mutex_lock(&s->lock);
    bool ready = s->ended || s->made > s->taken;
    pthread_mutex_unlock(&s->lock);
    return ready;
}

void stream_close(struct stream *s)
{
    if (s->codec) stop(s);
    free(s);
}
