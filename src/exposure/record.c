/* record.c - bytes to generations and back: see record.h. */
#include "exposure/record.h"

#include "base/bytes.h"

#include <string.h>

#define VERSION    1
#define HEADER     3
#define VARINT_MAX 10

/* ---- Universes ---------------------------------------------------------- */

/* 2^(i/8), as 32-bit fractions: no two machines may disagree. */
static const uint64_t eighth[8] = {0x100000000, 0x1172b83c7, 0x1306fe0a3,
                                   0x14bfdad53, 0x16a09e667, 0x18ace5422,
                                   0x1ae89f995, 0x1d5818dcf};

uint64_t seen_universe_of(uint32_t code)
{
    uint32_t octave = 8 + code / 8;
    uint64_t scaled = eighth[code % 8]; /* times 2^(octave - 32) */
    return octave <= 32 ? scaled >> (32 - octave) : scaled << (octave - 32);
}

uint32_t seen_universe_for(double least)
{
    uint32_t code = 0;
    while (code < 256 && (double)seen_universe_of(code) < least)
        code++;
    return code;
}

/* ---- Varints ------------------------------------------------------------ */

static size_t put_varint(uint8_t *to, uint64_t x)
{
    size_t len = 0;
    for (; x > 127; x >>= 7)
        to[len++] = (uint8_t)(x | 128);
    to[len++] = (uint8_t)x;
    return len;
}

/* How long it is; 0: there is none here, or not in its shortest form. */
static size_t get_varint(const uint8_t *from, size_t left, uint64_t *x)
{
    *x = 0;
    for (size_t i = 0; i < left && i < VARINT_MAX; i++) {
        if (i == VARINT_MAX - 1 && from[i] > 1) return 0;
        *x |= (uint64_t)(from[i] & 127) << (7 * i);
        if (from[i] < 128) return i > 0 && from[i] == 0 ? 0 : i + 1;
    }
    return 0;
}

/* ---- Parse -------------------------------------------------------------- */

struct cursor {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static uint64_t take_varint(struct cursor *c)
{
    uint64_t x;
    size_t len = get_varint(c->at, c->left, &x);
    c->bad |= len == 0;
    c->at += len;
    c->left -= len;
    return x;
}

static uint32_t take_byte(struct cursor *c)
{
    if (c->left == 0) {
        c->bad = true;
        return 0;
    }
    c->left--;
    return *c->at++;
}

/* `before`: the generation that comes before it, NULL for the newest. */
static bool take_generation(struct cursor *c,
                            const struct seen_generation *before,
                            struct seen_generation *g)
{
    g->n = take_varint(c);
    g->universe = take_byte(c);
    uint64_t newest = take_varint(c), older = take_varint(c);
    if (c->bad || g->n == 0 || g->n > SEEN_ITEMS_MAX ||
        g->n > seen_universe_of(g->universe))
        return false;
    uint64_t most = before ? before->newest : SEEN_TIME_MAX;
    if (newest > most) return false;
    g->newest = before ? most - newest : newest;
    if (older > g->newest) return false;
    g->first = g->newest - older;
    g->run = c->at;
    g->run_len = seen_sorted_size(g->n, seen_universe_of(g->universe));
    if (g->run_len > c->left) return false;
    c->at += g->run_len;
    c->left -= (size_t)g->run_len;
    return true;
}

seen_status seen_record_parse(seen_record record, uint32_t check,
                              struct seen_generations *out)
{
    out->count = 0;
    if (record.len == 0) return SEEN_OK;
    const uint8_t *bytes = record.data;
    if (!bytes || record.len <= HEADER || bytes[0] == 0) return SEEN_CORRUPT;
    if (bytes[0] > VERSION) return SEEN_NEWER;
    if (check <= UINT16_MAX && seen_get_le16(bytes + 1) != check)
        return SEEN_MISMATCH;
    struct cursor c = {bytes + HEADER, record.len - HEADER, false};
    while (c.left > 0) {
        if (out->count == SEEN_GENERATIONS_MAX) return SEEN_CORRUPT;
        struct seen_generation *g = &out->at[out->count];
        if (!take_generation(&c, out->count ? g - 1 : NULL, g))
            return SEEN_CORRUPT;
        out->count++;
    }
    return SEEN_OK;
}

/* ---- Write -------------------------------------------------------------- */

uint64_t seen_record_bound(const struct seen_generations *g)
{
    uint64_t bound = HEADER;
    for (uint32_t i = 0; i < g->count; i++)
        bound += 3 * VARINT_MAX + 1 + g->at[i].run_len;
    return bound;
}

size_t seen_record_write(const struct seen_generations *g, uint32_t check,
                         uint8_t *out)
{
    if (g->count == 0) return 0;
    uint8_t *to = out;
    *to++ = VERSION;
    seen_put_le16(to, (uint16_t)check);
    to += 2;
    for (uint32_t i = 0; i < g->count; i++) {
        const struct seen_generation *a = &g->at[i];
        uint64_t newest = i ? g->at[i - 1].newest - a->newest : a->newest;
        to += put_varint(to, a->n);
        *to++ = (uint8_t)a->universe;
        to += put_varint(to, newest);
        to += put_varint(to, a->newest - a->first);
        memcpy(to, a->run, (size_t)a->run_len);
        to += a->run_len;
    }
    return (size_t)(to - out);
}

/* ---- Validate ----------------------------------------------------------- */

seen_status seen_exposure_validate(seen_record record)
{
    struct seen_generations g;
    seen_status status = seen_record_parse(record, UINT32_MAX, &g);
    for (uint32_t i = 0; status == SEEN_OK && i < g.count; i++) {
        struct seen_sorted run = seen_run_of(&g.at[i]);
        if (!seen_sorted_ok(&run)) status = SEEN_CORRUPT;
    }
    return status;
}
