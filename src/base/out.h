/*
 * out.h - how a call fills a struct of its caller that may grow.
 *
 * Such a struct begins with `size_t size`, which the caller has set: an older
 * program has fewer fields than this library, a newer one has more.
 *
 *     caller's   | size | fields ........ |
 *     ours       | size | fields .............. |   the rest is not written
 *
 *     caller's   | size | fields .................... |
 *     ours       | size | fields ......... | zeros .. |
 */
#ifndef SEEN_OUT_H
#define SEEN_OUT_H

#include "seen.h"

#include <string.h>

#define SEEN_OUT_MIN 16    /* size and one field */
#define SEEN_OUT_MAX 65536 /* more is memory that nobody has initialised */

static inline bool seen_out_ok(const size_t *out)
{
    return out && *out >= SEEN_OUT_MIN && *out <= SEEN_OUT_MAX;
}

/* `out` is &result->size; `ours` is a struct of `size` bytes that begins with
 * a size_t, too, whose value does not matter. */
static inline seen_status seen_out(size_t *out, const void *ours, size_t size)
{
    if (!seen_out_ok(out)) return SEEN_INVALID;
    size_t room = *out;
    size_t both = room < size ? room : size;
    memcpy((char *)out + sizeof *out, (const char *)ours + sizeof *out,
           both - sizeof *out);
    memset((char *)out + both, 0, room - both);
    return SEEN_OK;
}

#endif
