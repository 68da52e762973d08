/*
 * fuzz_filter.c - libFuzzer against the readers of saved filters, all kinds.
 *
 * Any bytes: load, view and verify give an error or a filter that answers every
 * question and takes every call. What is loaded is saved as it came, and stays
 * something that can be saved and loaded, whatever is done to it. Checksums stop
 * nearly every random input, so each is tried three times: as it is, with the
 * header's checksum made right, and with the lengths and all checksums made
 * right, to reach what the kinds themselves look at: with one header, with two as
 * files have them, with a secret and with one that is kept apart.
 *
 * And it takes no more memory than seen.h says.
 */
#include "seen.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define HEADER   256
#define CRC_AT   252
#define BLOCK    65536
#define LINE     64
#define STRIDE   512 /* from one header to the other, where there are two */
#define TWO_MORE 768 /* bytes, for a second header */

/* Flags of a header. */
#define KEYED     1
#define APART     2
#define TWO       4
#define JOURNALED 8
#define ASKED     12
#define GROWING   (1 << 20) /* as many items more take no time */

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
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    must(info.fpp_now >= 0 && info.fpp_now <= 1);
    bool answers[ASKED];
    seen_maybe_many(f, seen_keys_hashes(h, ASKED), answers);
    for (size_t i = 0; i < ASKED; i++) {
        must(seen_maybe_hashed(f, h[i]) == answers[i]);
        must((seen_count_hashed(f, h[i]) > 0) == answers[i]);
    }
    seen_maybe(f, "key", 3);
    seen_maybe_u64(f, 7);
    seen_equal(f, f); /* of bytes nobody looked at: either answer */
}

static uint8_t *save_with(const seen_filter *f, uint32_t flags, size_t *len)
{
    must(seen_save(f, flags, NULL, 0, len) == SEEN_SHORT);
    uint8_t *bytes = malloc(*len);
    must(bytes && seen_save(f, flags, bytes, *len, len) == SEEN_OK);
    return bytes;
}

static uint8_t *save(const seen_filter *f, size_t *len)
{
    return save_with(f, 0, len);
}

/* The same bytes, but for a second header: saving does not write one. */
static void save_again(const seen_filter *f, const uint8_t *data, size_t len,
                       bool apart)
{
    size_t again;
    uint8_t *bytes = save_with(f, apart ? SEEN_SECRET_APART : 0, &again);
    must(again == len || again + TWO_MORE == len);
    size_t from = len - again; /* 0, or what two headers are longer */
    must(from || memcmp(bytes, data, HEADER) == 0);
    must(memcmp(bytes + HEADER, data + HEADER + from, again - HEADER) == 0);
    free(bytes);
}

static void must_load(const seen_filter *f)
{
    size_t len;
    uint8_t *bytes = save(f, &len);
    seen_filter *again = NULL;
    must(seen_load(&again, bytes, len, NULL, NULL, NULL) == SEEN_OK);
    must(seen_equal(f, again));
    seen_free(again);
    free(bytes);
}

/* What was added is there; of a window, which may be a short one, the last. */
static void add_and_remove(seen_filter *f, const seen_hash h[ASKED])
{
    bool before, added[ASKED];
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
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
    seen_visit_many(f, seen_keys_hashes(h, ASKED), added, &done);
    must(done <= ASKED);
    must_load(f);
}

static void change(seen_filter *f, const seen_filter *view,
                   const seen_hash h[ASKED])
{
    seen_filter *copy = NULL;
    seen_info info = {.size = sizeof info};
    must(seen_copy(&copy, f, NULL) == SEEN_OK && seen_equal(copy, f));
    add_and_remove(copy, h);
    must_load(f);
    seen_advance(copy, h[0].lo);
    must_load(copy);
    seen_measure(f, &info);
    if (info.kind != SEEN_BITMAP && info.items < GROWING)
        seen_reserve(copy, info.items + 100);
    seen_merge(copy, copy, SEEN_UNION, NULL);
    seen_merge(copy, view, SEEN_UNION, NULL);
    must_load(copy);
    seen_merge(copy, view, SEEN_INTERSECTION, NULL);
    seen_merge(copy, f, SEEN_INTERSECTION, NULL);
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
    must(seen_merge(v, v, SEEN_UNION, NULL) == SEEN_UNSUPPORTED);
    seen_status status = seen_copy(&copy, v, NULL);
    must(status == SEEN_OK || status == SEEN_CORRUPT);
    if (status != SEEN_OK) return;
    add_and_remove(copy, h);
    seen_merge(copy, v, SEEN_UNION, NULL);
    must_load(copy);
    seen_free(copy);
}

/* secret: NULL, or the one that is kept apart. */
static void try_bytes(const uint8_t *data, size_t len, const uint8_t *secret)
{
    static const uint8_t other[16] = "another secret";
    seen_filter *f = NULL, *v = NULL;
    if (secret) must(seen_load(&f, data, len, NULL, NULL, NULL) != SEEN_OK);
    fuzz_memory_begin();
    seen_status loaded = seen_load(&f, data, len, secret, NULL, NULL);
    fuzz_memory_within(len);
    fuzz_memory_begin();
    seen_status viewed = seen_view(&v, data, len, secret, NULL);
    fuzz_memory_within(len);
    must(loaded != SEEN_OK || viewed == SEEN_OK);
    must(loaded != SEEN_OK || seen_verify(data, len, NULL) == SEEN_OK);
    if (viewed == SEEN_OK) {
        seen_hash h[ASKED];
        make_hashes(h, data, len);
        try_view(v, h);
        if (loaded == SEEN_OK) {
            question(f, h);
            must(seen_equal(f, v) && seen_equal(v, f));
            save_again(f, data, len, secret != NULL);
            change(f, v, h);
        }
    }
    seen_free(f);
    seen_free(v);
    f = NULL;
    must(seen_load(&f, data, len, other, NULL, NULL) != SEEN_OK || f);
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

static size_t headers_of(const uint8_t *p)
{
    return p[12] & TWO ? HEADER + TWO_MORE : HEADER;
}

/* `extra`: state and list. */
static size_t offset_for(const uint8_t *p, size_t payload, size_t extra)
{
    size_t head = headers_of(p) + 4 * blocks_for(payload) + extra;
    return (head + LINE - 1) / LINE * LINE;
}

static void fix_sums(uint8_t *p, size_t offset, size_t payload, size_t extra)
{
    const size_t blocks = blocks_for(payload);
    uint8_t *table = p + headers_of(p);
    for (size_t i = 0; i < blocks; i++) {
        size_t left = payload - i * BLOCK;
        seen_put_le32(table + 4 * i, seen_crc32c(0, p + offset + i * BLOCK,
                                                 left < BLOCK ? left : BLOCK));
    }
    seen_put_le32(p + 112, seen_crc32c(0, table, 4 * blocks));
    seen_put_le32(p + 116, seen_crc32c(0, table + 4 * blocks, extra));
    fix_header(p);
}

/* Flags that go together: a secret is kept apart if there is one, and only a
 * file of two headers has a journal. */
static void fix_flags(uint8_t *p)
{
    if (seen_get_le16(p + 10) == SEEN_BITMAP) p[12] &= TWO | JOURNALED;
    if (!(p[12] & KEYED)) p[12] &= TWO | JOURNALED;
    if (!(p[12] & TWO)) p[12] &= KEYED | APART;
    p[12] &= KEYED | APART | TWO | JOURNALED;
    memset(p + 13, 0, 3);
}

/* Which hash a kind and the flags want. */
static void fix_hash(uint8_t *p)
{
    const uint16_t bitmap = SEEN_BITMAP;
    uint16_t kind = seen_get_le16(p + 10);
    bool keyed = p[12] & KEYED;
    p[48] = kind == bitmap ? 4 : keyed ? 3 : 1 + (p[48] & 1);
    p[49] = 0;
    if (!keyed) memset(p + (kind == bitmap ? 64 : 72), 0, 8);
    if (kind == bitmap) memset(p + 72, 0, 8);
    memset(p + 80, 0, 8);
}

/* A keyed header needs the check of its secret: what a filter of that secret
 * has. */
static void fix_check(uint8_t *p, const uint8_t *secret)
{
    seen_filter *f = NULL;
    seen_spec spec = {.kind = SEEN_BLOOM,
                      .items = 1,
                      .fpp = 0.5,
                      .flags = SEEN_KEYED,
                      .secret = secret};
    must(seen_new(&f, &spec, NULL) == SEEN_OK);
    size_t len;
    uint8_t *bytes = save(f, &len);
    memcpy(p + 80, bytes + 80, 8);
    free(bytes);
    seen_free(f);
}

static const uint8_t kept_apart[16] = "it is not there";

static void fix_secret(uint8_t *p)
{
    if (p[12] & APART) memset(p + 64, 0, 16);
    if (p[12] & KEYED) fix_check(p, p[12] & APART ? kept_apart : p + 64);
}

/* The other header: as the first, later or not, damaged or not, or the first is;
 * the fuzzer's number `how` chooses. Between them is nothing. */
static void put_second(uint8_t *p, uint8_t how)
{
    uint8_t *second = p + STRIDE;
    memset(p + HEADER, 0, TWO_MORE);
    memcpy(second, p, HEADER);
    if (how & 1) second[128]++; /* its epoch */
    if (how & 2) second[136] ^= how;
    if (how & 4) second[56] ^= how; /* its items */
    fix_header(second);
    if (how & 8) second[how >> 4]++;
    if ((how & 24) == 16) p[how >> 4]++;
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
    const uint8_t how = p[CRC_AT];
    fix_flags(p);
    const size_t extra = fix_extra(p);
    size_t payload = (len - HEADER) / LINE * LINE;
    while (payload > 0 && offset_for(p, payload, extra) + payload > len)
        payload -= LINE;
    if (payload == 0) return;
    const size_t offset = offset_for(p, payload, extra);
    const size_t end = headers_of(p) + 4 * blocks_for(payload) + extra;

    memcpy(p, "\x89SEEN\r\n\x1a\x01\0", 10);
    fix_hash(p);
    fix_secret(p);
    if (p[39] > 0x3f) p[39] = 0; /* the rate, 0 to 1 */
    seen_put_le32(p + 52, BLOCK);
    seen_put_le64(p + 88, offset);
    seen_put_le64(p + 96, payload);
    if (!(p[12] & TWO)) memset(p + 120, 0, 24); /* history */
    if (seen_get_le16(p + 10) == SEEN_BITMAP) p[144] = 0;
    p[144] %= SEEN_KEYS_UTF16 + 1; /* how keys were made */
    memset(p + 145, 0, CRC_AT - 145);
    memset(p + end, 0, offset - end);
    fix_sums(p, offset, payload, extra);
    if (p[12] & TWO) put_second(p, how);
    try_bytes(p, offset + payload, p[12] & APART ? kept_apart : NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* Aligned for a view; a byte too many is seen behind a whole line. */
    uint8_t *copy =
        aligned_alloc(LINE, len ? (len + LINE - 1) / LINE * LINE : LINE);
    must(copy != NULL);
    if (len) memcpy(copy, data, len);
    try_bytes(copy, len, NULL);
    if (len >= HEADER) {
        uint8_t how = copy[CRC_AT];
        fix_header(copy);
        try_bytes(copy, len, NULL);
        copy[CRC_AT] = how;
        fix_everything(copy, len);
    }
    free(copy);
    return 0;
}
