/* api/bitmap.c - the calls of seen_bitmap.h over the words of bits/. */
#include "seen_bitmap.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "bits/bitmap.h"
#include "dialect/native.h"

#include <string.h>

struct seen_bitmap {
    uint64_t *words;
    uint64_t bits;
    seen_allocator allocator;
    bool borrowed; /* a view: the words belong to somebody else */
};

/* ---- Life --------------------------------------------------------------- */

static uint64_t nwords(const seen_bitmap *b)
{
    return seen_words_for(b->bits);
}

static seen_status new (seen_bitmap **b, uint64_t bits,
                        const seen_allocator *allocator, seen_error *e)
{
    if (!b) return seen_fail_null(e, "b");
    if (bits == 0 || bits > SEEN_BITMAP_MAX)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits %" PRIu64 ": expected 1 to 2^40", bits);
    if (!seen_allocator_ok(allocator)) return seen_fail_allocator(e);
    seen_allocator a = seen_allocator_or_default(allocator);
    seen_bitmap *made = seen_alloc_zeroed(&a, sizeof *made);
    if (!made) return SEEN_NOMEM;
    uint64_t *words = seen_alloc_zeroed(&a, seen_words_for(bits) * 8);
    if (!words) {
        seen_release(&a, made, sizeof *made);
        return SEEN_NOMEM;
    }
    *made = (seen_bitmap){.words = words, .bits = bits, .allocator = a};
    *b = made;
    return SEEN_OK;
}

seen_status seen_bitmap_new(seen_bitmap **b, uint64_t bits,
                            const seen_allocator *allocator, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, new (b, bits, allocator, error));
}

void seen_bitmap_free(seen_bitmap *b)
{
    if (!b) return;
    seen_allocator a = b->allocator;
    if (!b->borrowed) seen_release(&a, b->words, nwords(b) * 8);
    seen_release(&a, b, sizeof *b);
}

uint64_t seen_bitmap_bits(const seen_bitmap *b)
{
    return b->bits;
}

/* ---- Bits --------------------------------------------------------------- */

bool seen_bitmap_has(const seen_bitmap *b, uint64_t bit)
{
    return bit < b->bits && seen_bit_test(b->words, bit);
}

seen_status seen_bitmap_set(seen_bitmap *b, uint64_t bit)
{
    if (b->borrowed) return SEEN_UNSUPPORTED;
    if (bit >= b->bits) return SEEN_INVALID;
    seen_bit_set(b->words, bit);
    return SEEN_OK;
}

seen_status seen_bitmap_clear(seen_bitmap *b, uint64_t bit)
{
    if (b->borrowed) return SEEN_UNSUPPORTED;
    if (bit >= b->bits) return SEEN_INVALID;
    seen_bit_clear(b->words, bit);
    return SEEN_OK;
}

static seen_status fill(seen_bitmap *b, uint64_t from, uint64_t to, bool value)
{
    if (b->borrowed) return SEEN_UNSUPPORTED;
    if (from > to || to > b->bits) return SEEN_INVALID;
    seen_bits_fill(b->words, from, to, value);
    return SEEN_OK;
}

seen_status seen_bitmap_set_range(seen_bitmap *b, uint64_t from, uint64_t to)
{
    return fill(b, from, to, true);
}

seen_status seen_bitmap_clear_range(seen_bitmap *b, uint64_t from, uint64_t to)
{
    return fill(b, from, to, false);
}

uint64_t seen_bitmap_count(const seen_bitmap *b)
{
    return seen_bits_count(b->words, nwords(b));
}

uint64_t seen_bitmap_count_range(const seen_bitmap *b, uint64_t from,
                                 uint64_t to)
{
    return seen_bits_count_range(b->words, from, seen_min64(to, b->bits));
}

uint64_t seen_bitmap_next_set(const seen_bitmap *b, uint64_t from)
{
    return seen_bits_next(b->words, b->bits, from, true);
}

uint64_t seen_bitmap_next_clear(const seen_bitmap *b, uint64_t from)
{
    return seen_bits_next(b->words, b->bits, from, false);
}

void seen_bitmap_each(const seen_bitmap *b,
                      bool (*visit)(void *ctx, uint64_t bit), void *ctx)
{
    for (uint64_t i = 0; i < nwords(b); i++)
        for (uint64_t word = b->words[i]; word; word &= word - 1)
            if (!visit(ctx, i * 64 + seen_ctz64(word))) return;
}

/* ---- Two bitmaps -------------------------------------------------------- */

typedef void combine(uint64_t *a, const uint64_t *b, uint64_t n);

static seen_status combined(seen_bitmap *a, const seen_bitmap *b,
                            combine *words)
{
    if (a->borrowed) return SEEN_UNSUPPORTED;
    if (a->bits != b->bits) return SEEN_MISMATCH;
    words(a->words, b->words, nwords(a));
    return SEEN_OK;
}

seen_status seen_bitmap_or(seen_bitmap *a, const seen_bitmap *b)
{
    return combined(a, b, seen_bits_or);
}

seen_status seen_bitmap_and(seen_bitmap *a, const seen_bitmap *b)
{
    return combined(a, b, seen_bits_and);
}

seen_status seen_bitmap_andnot(seen_bitmap *a, const seen_bitmap *b)
{
    return combined(a, b, seen_bits_andnot);
}

seen_status seen_bitmap_xor(seen_bitmap *a, const seen_bitmap *b)
{
    return combined(a, b, seen_bits_xor);
}

bool seen_bitmap_equal(const seen_bitmap *a, const seen_bitmap *b)
{
    return a->bits == b->bits && memcmp(a->words, b->words, nwords(a) * 8) == 0;
}

/* ---- Bytes -------------------------------------------------------------- */

/* As the filter of kind SEEN_BITMAP would be saved. */
static bool describe(const seen_bitmap *b, struct seen_native *h,
                     struct seen_native_body *body, struct seen_part *part)
{
    *part = (struct seen_part){b->words, nwords(b) * 8, true};
    *body = (struct seen_native_body){.parts = part, .count = 1};
    *h = (struct seen_native){.hash = &seen_hash_u64,
                              .items = seen_bitmap_count(b)};
    h->plan = (seen_plan){
        .kind = SEEN_BITMAP, .hashes = 1, .items = b->bits, .bits = b->bits};
    return seen_native_layout(h, body);
}

seen_status seen_bitmap_save(const seen_bitmap *b, void *buf, size_t cap,
                             size_t *len)
{
    struct seen_native h;
    struct seen_native_body body;
    struct seen_part part;
    if (!len || (cap && !buf)) return SEEN_INVALID;
    if (!describe(b, &h, &body, &part)) return SEEN_INVALID;
    *len = (size_t)(h.payload_offset + h.payload_len);
    if (cap < *len) return SEEN_SHORT;
    seen_native_head(&h, &body, buf);
    seen_native_put_part(&part, 0, (uint8_t *)buf + h.payload_offset,
                         h.payload_len);
    return SEEN_OK;
}

/* The header of a bitmap, and no bits past its bound. */
static seen_status read_header(const void *buf, size_t len,
                               struct seen_native *h, seen_error *e)
{
    if (!buf) return seen_fail_null(e, "buf");
    seen_status status = seen_native_read(buf, len, h, e);
    if (status != SEEN_OK) return status;
    if (h->plan.kind != SEEN_BITMAP)
        return seen_fail(e, SEEN_UNSUPPORTED, "buf",
                         "a filter of kind %u: expected a bitmap",
                         (unsigned)h->plan.kind);
    if (h->flags & SEEN_NATIVE_JOURNALED)
        return seen_fail(e, SEEN_BUSY, "buf",
                         "a file that a writer has open, or had when it died: "
                         "open it as a file");
    if (!seen_bitmap_ops.plan_read(&h->plan) || h->hash != &seen_hash_u64)
        return seen_corrupt(e, "the header has numbers that no bitmap has");
    if (h->listed_len)
        return seen_fail(
            e, SEEN_UNSUPPORTED, "buf",
            "a filter with an allowlist: load it with seen_load()");
    struct seen_part part = {.len = seen_words_for(h->plan.bits) * 8};
    if (h->state_len || seen_part_room(&part) != h->payload_len)
        return seen_corrupt(
            e, "the payload is not as long as %" PRIu64 " bits are",
            h->plan.bits);
    const uint8_t *payload = (const uint8_t *)buf + h->payload_offset;
    uint64_t last = seen_get_le64(payload + part.len - 8);
    if (h->plan.bits % 64 && last >> (h->plan.bits % 64))
        return seen_corrupt(e, "integers beyond the bound %" PRIu64,
                            h->plan.bits);
    return seen_native_check_extra(buf, h, e);
}

/* As many members as the header says, and nothing behind the last word. */
static bool payload_fits(const uint8_t *payload, const struct seen_native *h)
{
    uint64_t words = seen_words_for(h->plan.bits), count = 0, behind = 0;
    for (uint64_t i = 0; i < h->payload_len / 8; i++) {
        uint64_t word = seen_get_le64(payload + 8 * i);
        if (i < words)
            count += seen_popcount64(word);
        else
            behind |= word;
    }
    return count == h->items && behind == 0;
}

static seen_status read_and_verify(const void *buf, size_t len,
                                   struct seen_native *h, seen_error *e)
{
    seen_status status = read_header(buf, len, h, e);
    if (status == SEEN_OK) status = seen_native_verify(buf, h, e);
    if (status != SEEN_OK) return status;
    if (payload_fits((const uint8_t *)buf + h->payload_offset, h))
        return SEEN_OK;
    return seen_corrupt(e, "not the %" PRIu64 " integers that the header says",
                        h->items);
}

seen_status seen_bitmap_verify(const void *buf, size_t len, seen_error *error)
{
    struct seen_native h;
    seen_error_begin(error);
    return seen_error_end(error, read_and_verify(buf, len, &h, error));
}

static seen_status load(seen_bitmap **b, const void *buf, size_t len,
                        const seen_allocator *allocator, seen_error *e)
{
    struct seen_native h;
    if (!b) return seen_fail_null(e, "b");
    seen_status status = read_and_verify(buf, len, &h, e);
    if (status != SEEN_OK) return status;
    seen_bitmap *made;
    status = new (&made, h.plan.bits, allocator, e);
    if (status != SEEN_OK) return status;
    struct seen_part part = {made->words, nwords(made) * 8, true};
    seen_native_get_part(&part, (const uint8_t *)buf + h.payload_offset);
    *b = made;
    return SEEN_OK;
}

seen_status seen_bitmap_load(seen_bitmap **b, const void *buf, size_t len,
                             const seen_allocator *allocator, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, load(b, buf, len, allocator, error));
}

static seen_status view(seen_bitmap **b, const void *buf, size_t len,
                        seen_error *e)
{
    if (!SEEN_LITTLE_ENDIAN)
        return seen_fail(e, SEEN_UNSUPPORTED, NULL,
                         "this machine is big-endian: bitmaps must be loaded, "
                         "not used where they lie");
    if (!b) return seen_fail_null(e, "b");
    if ((uintptr_t)buf % 8)
        return seen_fail(e, SEEN_INVALID, "buf",
                         "buf: expected an address that is a multiple of 8");
    struct seen_native h;
    seen_status status = read_header(buf, len, &h, e);
    if (status != SEEN_OK) return status;

    seen_allocator a = seen_allocator_or_default(NULL);
    seen_bitmap *made = seen_alloc_zeroed(&a, sizeof *made);
    if (!made) return SEEN_NOMEM;
    /* Never written through: every call that writes refuses a view. */
    *made =
        (seen_bitmap){.words = (uint64_t *)((uintptr_t)buf + h.payload_offset),
                      .bits = h.plan.bits,
                      .allocator = a,
                      .borrowed = true};
    *b = made;
    return SEEN_OK;
}

seen_status seen_bitmap_view(seen_bitmap **b, const void *buf, size_t len,
                             seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, view(b, buf, len, error));
}
