/*
 * fuzz_bitmap.c - libFuzzer against the readers of saved bitmaps.
 *
 * Any bytes: load, view and verify give an error or a bitmap that answers every
 * question. Random bytes rarely survive a checksum, so each input is tried
 * three times: as it is, with the header's checksum made right, and with the
 * lengths and all checksums made right, to reach the checks behind them.
 */
#include "seen_bitmap.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define HEADER   256
#define CRC_AT   252
#define BLOCK    65536
#define TWO_MORE 768 /* bytes, for a second header */

static void must(bool fact)
{
    if (!fact) abort();
}

struct walk {
    uint64_t count, last;
};

static bool step(void *ctx, uint64_t bit)
{
    struct walk *w = ctx;
    must(w->count == 0 || bit > w->last);
    w->count++;
    w->last = bit;
    return true;
}

/* Every question, and that the answers agree with each other. */
static void question(const seen_bitmap *b)
{
    uint64_t n = seen_bitmap_bits(b), count = seen_bitmap_count(b);
    must(n >= 1 && n <= SEEN_BITMAP_MAX && count <= n);
    struct walk w = {0};
    seen_bitmap_each(b, step, &w);
    must(w.count == count && w.last < n);
    uint64_t members = 0;
    for (uint64_t i = seen_bitmap_next_set(b, 0); i != SEEN_NO_BIT;
         i = seen_bitmap_next_set(b, i + 1)) {
        must(i < n && seen_bitmap_has(b, i));
        members++;
    }
    must(members == count);
    uint64_t clear = seen_bitmap_next_clear(b, 0);
    must(clear == SEEN_NO_BIT ? count == n : !seen_bitmap_has(b, clear));
    must(seen_bitmap_count_range(b, 0, n / 2) +
             seen_bitmap_count_range(b, n / 2, UINT64_MAX) ==
         count);
    must(!seen_bitmap_has(b, n) && !seen_bitmap_has(b, UINT64_MAX));
    must(seen_bitmap_equal(b, b));
}

/* A bitmap of our own can be changed; a view cannot. */
static void change(seen_bitmap *b, const seen_bitmap *view)
{
    uint64_t n = seen_bitmap_bits(b);
    must(seen_bitmap_xor(b, view) == SEEN_OK && seen_bitmap_count(b) == 0);
    must(seen_bitmap_set(b, n - 1) == SEEN_OK && seen_bitmap_has(b, n - 1));
    must(seen_bitmap_set_range(b, 0, n) == SEEN_OK);
    must(seen_bitmap_andnot(b, view) == SEEN_OK);
    must(seen_bitmap_or(b, view) == SEEN_OK && seen_bitmap_count(b) == n);
    must(seen_bitmap_clear_range(b, 0, n) == SEEN_OK);
    must(seen_bitmap_and(b, view) == SEEN_OK && seen_bitmap_count(b) == 0);
}

/* The same bytes, but for a second header: saving does not write one. */
static void save_again(const seen_bitmap *b, const uint8_t *data, size_t len)
{
    size_t again = 0;
    must(seen_bitmap_save(b, NULL, 0, &again) == SEEN_SHORT);
    must(again == len || again + TWO_MORE == len);
    uint8_t *copy = malloc(again);
    must(copy != NULL);
    must(seen_bitmap_save(b, copy, again, &again) == SEEN_OK);
    must(again != len || memcmp(copy, data, len) == 0);
    free(copy);
}

static void try_bytes(const uint8_t *data, size_t len)
{
    seen_bitmap *b = NULL, *v = NULL;
    fuzz_memory_begin();
    seen_status loaded = seen_bitmap_load(&b, data, len, NULL, NULL);
    fuzz_memory_within(len);
    fuzz_memory_begin();
    seen_status viewed = seen_bitmap_view(&v, data, len, NULL);
    fuzz_memory_within(len);
    must(seen_bitmap_verify(data, len, NULL) == loaded);
    must(loaded != SEEN_OK || viewed == SEEN_OK);
    if (viewed == SEEN_OK) {
        question(v);
        must(seen_bitmap_set(v, 0) == SEEN_UNSUPPORTED);
        must(seen_bitmap_clear_range(v, 0, 1) == SEEN_UNSUPPORTED);
        must(seen_bitmap_or(v, v) == SEEN_UNSUPPORTED);
    }
    if (loaded == SEEN_OK) {
        question(b);
        must(seen_bitmap_equal(b, v));
        save_again(b, data, len);
        change(b, v);
    }
    seen_bitmap_free(b);
    seen_bitmap_free(v);
}

static void fix_header(uint8_t *p)
{
    seen_put_le32(p + CRC_AT, seen_crc32c(0, p, CRC_AT));
}

static size_t blocks_for(size_t payload)
{
    return (payload + BLOCK - 1) / BLOCK;
}

static size_t offset_for(size_t payload)
{
    return (HEADER + 4 * blocks_for(payload) + 63) / 64 * 64;
}

/* A table of true checksums, and its own. */
static void fix_table(uint8_t *p, size_t offset, size_t payload)
{
    const size_t blocks = blocks_for(payload);
    for (size_t i = 0; i < blocks; i++) {
        size_t left = payload - i * BLOCK;
        seen_put_le32(p + HEADER + 4 * i,
                      seen_crc32c(0, p + offset + i * BLOCK,
                                  left < BLOCK ? left : BLOCK));
    }
    seen_put_le32(p + 112, seen_crc32c(0, p + HEADER, 4 * blocks));
}

static uint64_t count_bits(const uint8_t *p, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        for (uint8_t byte = p[i]; byte; byte &= (uint8_t)(byte - 1))
            n++;
    return n;
}

/* A whole header with lengths that fit the bytes that are there, and true
 * checksums; the bound and the payload are the fuzzer's. */
static void fix_everything(uint8_t *p, size_t len)
{
    size_t payload = (len - HEADER) / 64 * 64;
    while (payload > 0 && offset_for(payload) + payload > len)
        payload -= 64;
    if (payload == 0) return;
    const size_t offset = offset_for(payload);

    /* Any bound that takes this many lines. */
    uint64_t bits = payload * 8 - seen_get_le64(p + 16) % 512;
    memset(p + 8, 0, offset - 8);
    memcpy(p, "\x89SEEN\r\n\x1a\x01\0\x08", 12);
    seen_put_le64(p + 16, bits);
    seen_put_le64(p + 24, bits);
    p[40] = 1; /* hashes */
    p[48] = 4; /* u64 */
    seen_put_le32(p + 52, BLOCK);
    seen_put_le64(p + 56, count_bits(p + offset, payload));
    seen_put_le64(p + 88, offset);
    seen_put_le64(p + 96, payload);
    fix_table(p, offset, payload);
    fix_header(p);
    try_bytes(p, offset + payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* Exactly as long as it is, so that one byte too many is seen. */
    uint8_t *copy = malloc(len ? len : 1);
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
