/* pack.c - see pack.h. */
#include "pack.h"

#include "memory.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

#define PACKED   "dcso-gzip"
#define UNPACKED "dcso"

bool is_packed_name(const char *dialect)
{
    return dialect && strcmp(dialect, PACKED) == 0;
}

const char *unpacked_name(const char *dialect)
{
    return is_packed_name(dialect) ? UNPACKED : dialect;
}

#ifdef SEEN_WITH_COMPRESSION

#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib: a gzip header, nothing else */

/* zlib counts in 32 bits. */
#define PIECE ((size_t)1 << 30)

/* As much as goes into `cap` bytes; false: damaged before that. */
static bool inflate_some(z_stream *z, const void *bytes, size_t len, void *to,
                         size_t cap, size_t *used, size_t *out, bool *end)
{
    *end = false;
    while (*out < cap && !*end) {
        size_t in = len - *used < PIECE ? len - *used : PIECE;
        size_t room = cap - *out < PIECE ? cap - *out : PIECE;
        z->next_in = (Bytef *)bytes + *used;
        z->avail_in = (uInt)in;
        z->next_out = (Bytef *)to + *out;
        z->avail_out = (uInt)room;
        int status = inflate(z, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END) return false;
        *used += in - z->avail_in;
        *out += room - z->avail_out;
        *end = status == Z_STREAM_END;
    }
    return true;
}

bool is_packed(const void *bytes, size_t len)
{
    static const unsigned char begins[8] = {1};
    unsigned char head[8];
    size_t used = 0, out = 0;
    bool end;
    if (len < 18 || memcmp(bytes, "\x1f\x8b", 2) != 0) return false;
    z_stream z = {0};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) fail("out of memory");
    bool ok =
        inflate_some(&z, bytes, len, head, sizeof head, &used, &out, &end);
    inflateEnd(&z);
    return ok && out == sizeof head && memcmp(head, begins, sizeof head) == 0;
}

void *unpack(const char *name, const void *bytes, size_t len, size_t *out)
{
    size_t cap = 1 << 16, used = 0;
    char *to = must_have(malloc(cap));
    bool ok = true, end = false;
    z_stream z = {0};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) fail("out of memory");
    *out = 0;
    while (ok && !end) {
        if (*out == cap) to = must_have(realloc(to, cap *= 2));
        ok = inflate_some(&z, bytes, len, to, cap, &used, out, &end);
    }
    inflateEnd(&z);
    if (!ok || used != len)
        fail("%s: its gzip is damaged, cut off, or has something behind it",
             name);
    return to;
}

void *pack(const void *bytes, size_t len, size_t *out)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        fail("out of memory");
    size_t cap = deflateBound(&z, (uLong)len), used = 0;
    char *to = must_have(malloc(cap));
    int status = Z_OK;
    for (*out = 0; status == Z_OK;) {
        size_t in = len - used < PIECE ? len - used : PIECE;
        size_t room = cap - *out < PIECE ? cap - *out : PIECE;
        z.next_in = (Bytef *)bytes + used;
        z.avail_in = (uInt)in;
        z.next_out = (Bytef *)to + *out;
        z.avail_out = (uInt)room;
        status = deflate(&z, used + in == len ? Z_FINISH : Z_NO_FLUSH);
        used += in - z.avail_in;
        *out += room - z.avail_out;
    }
    deflateEnd(&z);
    if (status != Z_STREAM_END) fail("gzip: cannot pack this");
    return to;
}

#else

bool is_packed(const void *bytes, size_t len)
{
    (void)bytes, (void)len;
    return false;
}

void *unpack(const char *name, const void *bytes, size_t len, size_t *out)
{
    (void)bytes, (void)len, (void)out;
    fail("%s: this build has no gzip", name);
}

void *pack(const void *bytes, size_t len, size_t *out)
{
    (void)bytes, (void)len, (void)out;
    fail("dcso-gzip: this build has no gzip");
}

#endif
