/*
 * fuzz_filter.c - libFuzzer against the readers of saved filters, all kinds.
 *
 * Any bytes: load, view and verify give an error or a filter that answers every
 * question and takes every call. What is loaded is saved as it came, and stays
 * something that can be saved and loaded, whatever is done to it. Checksums stop
 * nearly every random input, so each is tried three times: as it is, with the
 * header's checksum made right, and with the lengths and all checksums made
 * right, to reach what the kinds themselves look at.
 */
#include "seen.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

#define HEADER   256
#define CRC_AT   252
#define BLOCK    65536
#define LINE     64
#define TWO_MORE 768 /* bytes, for a second header */
#define ASKED    12
#define GROWING  (1 << 20) /* as many items more take no time */

static void must(bool fact)
{
    if (!fact) abort();
}

/* ---- Use ---------------------------------------------------------------- */

/* Edges of every range, bytes of the input, and some from the middle. */
static void make_hashes(seen_hash h[ASKED], const uint8_t *data, size_t len)
{
    static const uint64_t edges[] = {0, 1, 63, 64, UINT64_MAX, UINT64_MAX - 1};
    for (size_t i = 0; i < ASKED; i++) {
        size_t at = len * i / ASKED;
        h[i].lo = i < 6 ? edges[i] : seen_get_le64(data + at - at % 8);
        h[i].hi = i * 0x9e3779b97f4a7c15u;
    }
}

static void question(const seen_filter *f, const seen_hash h[ASKED])
{
    seen_info info;
    seen_info_of(f, &info);
    bool answers[ASKED];
    seen_maybe_many_hashed(f, h, ASKED, answers);
    for (size_t i = 0; i < ASKED; i++) {
        must(seen_maybe_hashed(f, h[i]) == answers[i]);
        must((seen_count_hashed(f, h[i]) > 0) == answers[i]);
    }
    seen_maybe(f, "key", 3);
    seen_maybe_u64(f, 7);
    seen_equal(f, f); /* of bytes nobody looked at: either answer */
}

static uint8_t *save(const seen_filter *f, size_t *len)
{
    must(seen_save(f, 0, NULL, 0, len) == SEEN_SHORT);
    uint8_t *bytes = malloc(*len);
    must(bytes && seen_save(f, 0, bytes, *len, len) == SEEN_OK);
    return bytes;
}

/* The same bytes, but for a second header: saving does not write one. */
static void save_again(const seen_filter *f, const uint8_t *data, size_t len)
{
    size_t again;
    uint8_t *bytes = save(f, &again);
    must(again == len || again + TWO_MORE == len);
    must(again != len || memcmp(bytes, data, len) == 0);
    free(bytes);
}

static void must_load(const seen_filter *f)
{
    size_t len;
    uint8_t *bytes = save(f, &len);
    seen_filter *again = NULL;
    must(seen_load(&again, bytes, len, NULL, NULL) == SEEN_OK);
    must(seen_equal(f, again));
    seen_free(again);
    free(bytes);
}

/* What was added is there; of a window, which may be a short one, the last. */
static void add_and_remove(seen_filter *f, const seen_hash h[ASKED])
{
    bool before, added[ASKED];
    seen_info info;
    seen_info_of(f, &info);
    const size_t kept = info.kind == SEEN_WINDOW ? ASKED - 1 : 0;
    for (size_t i = 0; i < ASKED; i++)
        added[i] = seen_add_hashed(f, h[i]) == SEEN_OK;
    for (size_t i = kept; i < ASKED; i++)
        must(!added[i] || seen_maybe_hashed(f, h[i]));
    must_load(f);
    for (size_t i = kept; i < ASKED; i++)
        must(!added[i] || seen_visit_hashed(f, h[i], &before) != SEEN_OK ||
             before);
    for (size_t i = 0; i < ASKED; i++)
        seen_remove_hashed(f, h[i]);
    size_t done;
    seen_visit_many_hashed(f, h, ASKED, added, &done);
    must(done <= ASKED);
    must_load(f);
}

static void change(seen_filter *f, const seen_filter *view,
                   const seen_hash h[ASKED])
{
    seen_filter *copy = NULL;
    seen_info info;
    must(seen_copy(&copy, f, NULL) == SEEN_OK && seen_equal(copy, f));
    add_and_remove(copy, h);
    must_load(f);
    seen_advance(copy, h[0].lo);
    must_load(copy);
    seen_info_of(f, &info);
    if (info.kind != SEEN_BITMAP && info.items < GROWING)
        seen_reserve(copy, info.items + 100);
    seen_merge(copy, copy, SEEN_UNION);
    seen_merge(copy, view, SEEN_UNION);
    must_load(copy);
    seen_merge(copy, view, SEEN_INTERSECTION);
    seen_merge(copy, f, SEEN_INTERSECTION);
    must_load(copy);
    seen_clear(copy);
    for (size_t i = 0; i < ASKED; i++) /* hashes mean nothing to foreign ones */
        must(info.kind == SEEN_FOREIGN || !seen_maybe_hashed(copy, h[i]));
    must_load(copy);
    add_and_remove(copy, h);
    seen_free(copy);
}

/* ---- One input ---------------------------------------------------------- */

/* Bytes that no checksum vouches for: questions, and being copied. */
static void try_view(seen_filter *v, const seen_hash h[ASKED])
{
    seen_filter *copy = NULL;
    question(v, h);
    must(seen_add_hashed(v, h[0]) == SEEN_UNSUPPORTED);
    must(seen_merge(v, v, SEEN_UNION) == SEEN_UNSUPPORTED);
    seen_status status = seen_copy(&copy, v, NULL);
    must(status == SEEN_OK || status == SEEN_CORRUPT);
    if (status != SEEN_OK) return;
    add_and_remove(copy, h);
    seen_merge(copy, v, SEEN_UNION);
    must_load(copy);
    seen_free(copy);
}

static void try_bytes(const uint8_t *data, size_t len)
{
    static const uint8_t other[16] = "another secret";
    seen_filter *f = NULL, *v = NULL;
    seen_status loaded = seen_load(&f, data, len, NULL, NULL);
    seen_status viewed = seen_view(&v, data, len, NULL);
    must(loaded != SEEN_OK || viewed == SEEN_OK);
    must(loaded != SEEN_OK || seen_verify(data, len) == SEEN_OK);
    if (viewed == SEEN_OK) {
        seen_hash h[ASKED];
        make_hashes(h, data, len);
        try_view(v, h);
        if (loaded == SEEN_OK) {
            question(f, h);
            must(seen_equal(f, v) && seen_equal(v, f));
            save_again(f, data, len);
            change(f, v, h);
        }
    }
    seen_free(f);
    seen_free(v);
    f = NULL;
    must(seen_load(&f, data, len, other, NULL) != SEEN_OK || f);
    seen_free(f);
}

/* ---- Making things right ------------------------------------------------ */

static void fix_header(uint8_t *p)
{
    seen_put_le32(p + CRC_AT, seen_crc32c(0, p, CRC_AT));
}

static size_t blocks_for(size_t payload)
{
    return (payload + BLOCK - 1) / BLOCK;
}

/* `extra`: state and list. */
static size_t offset_for(size_t payload, size_t extra)
{
    return (HEADER + 4 * blocks_for(payload) + extra + LINE - 1) / LINE * LINE;
}

static void fix_sums(uint8_t *p, size_t offset, size_t payload, size_t extra)
{
    const size_t blocks = blocks_for(payload);
    uint8_t *table = p + HEADER;
    for (size_t i = 0; i < blocks; i++) {
        size_t left = payload - i * BLOCK;
        seen_put_le32(table + 4 * i, seen_crc32c(0, p + offset + i * BLOCK,
                                                 left < BLOCK ? left : BLOCK));
    }
    seen_put_le32(p + 112, seen_crc32c(0, table, 4 * blocks));
    seen_put_le32(p + 116, seen_crc32c(0, table + 4 * blocks, extra));
    fix_header(p);
}

/* Which hash a kind and the flags want; no secret but the one in the file. */
static void fix_hash(uint8_t *p)
{
    const uint16_t bitmap = SEEN_BITMAP;
    uint16_t kind = seen_get_le16(p + 10);
    p[12] &= kind == bitmap ? 0 : 1;
    bool keyed = p[12];
    p[48] = kind == bitmap ? 4 : keyed ? 3 : 1 + (p[48] & 1);
    p[49] = 0;
    if (!keyed) memset(p + (kind == bitmap ? 64 : 72), 0, 8);
    if (kind == bitmap) memset(p + 72, 0, 8);
    memset(p + 80, 0, 8);
}

/* A keyed header needs the check of its secret: what a filter of that secret
 * has. */
static void fix_check(uint8_t *p)
{
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_BLOOM,
                      .items = 1,
                      .fpp = 0.5,
                      .flags = SEEN_KEYED,
                      .key = p + 64};
    must(seen_new(&f, &spec) == SEEN_OK);
    size_t len;
    uint8_t *bytes = save(f, &len);
    memcpy(p + 80, bytes + 80, 8);
    free(bytes);
    seen_free(f);
}

/* How long state and list are, if the fuzzer wants a list at all. */
static size_t fix_extra(uint8_t *p)
{
    uint32_t state = seen_get_le32(p + 104) & 0xff;
    uint16_t policy = seen_get_le16(p + 50) % 3;
    uint32_t list = policy ? 4 + seen_get_le32(p + 108) % 0xff : 0;
    seen_put_le16(p + 50, policy);
    seen_put_le32(p + 104, state);
    seen_put_le32(p + 108, list);
    return state + list;
}

/* Offsets, lengths and checksums; kind, numbers, state, list and payload are
 * the fuzzer's. */
static void fix_everything(uint8_t *p, size_t len)
{
    const size_t extra = fix_extra(p);
    size_t payload = (len - HEADER) / LINE * LINE;
    while (payload > 0 && offset_for(payload, extra) + payload > len)
        payload -= LINE;
    if (payload == 0) return;
    const size_t offset = offset_for(payload, extra);
    const size_t end = HEADER + 4 * blocks_for(payload) + extra;

    memcpy(p, "\x89SEEN\r\n\x1a\x01\0", 10);
    memset(p + 13, 0, 3);
    fix_hash(p);
    if (p[12]) fix_check(p);
    if (p[39] > 0x3f) p[39] = 0; /* the rate, 0 to 1 */
    seen_put_le32(p + 52, BLOCK);
    seen_put_le64(p + 88, offset);
    seen_put_le64(p + 96, payload);
    memset(p + 120, 0, CRC_AT - 120);
    memset(p + end, 0, offset - end);
    fix_sums(p, offset, payload, extra);
    try_bytes(p, offset + payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* Aligned for a view; a byte too many is seen behind a whole line. */
    uint8_t *copy =
        aligned_alloc(LINE, len ? (len + LINE - 1) / LINE * LINE : LINE);
    must(copy != NULL);
    if (len) memcpy(copy, data, len);
    try_bytes(copy, len);
    if (len >= HEADER) {
        fix_header(copy);
        try_bytes(copy, len);
        fix_everything(copy, len);
    }
    free(copy);
    return 0;
}
