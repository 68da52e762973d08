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

seen_status seen_bitmap_new(seen_bitmap **b, uint64_t bits,
                            const seen_allocator *allocator)
{
    if (!b || bits == 0 || bits > SEEN_BITMAP_MAX) return SEEN_INVALID;
    if (allocator && (!allocator->alloc || !allocator->release))
        return SEEN_INVALID;
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

seen_status seen_bitmap_save(const seen_bitmap *b, void *buf, size_t cap,
                             size_t *len)
{
    uint64_t need;
    if (!len || (cap && !buf)) return SEEN_INVALID;
    if (!seen_native_measure(b->bits, &need)) return SEEN_INVALID;
    *len = (size_t)need;
    if (cap < need) return SEEN_SHORT;
    seen_native_write(SEEN_NATIVE_BITMAP, b->words, b->bits, buf);
    return SEEN_OK;
}

static seen_status read_header(const void *buf, size_t len,
                               struct seen_native *header)
{
    if (!buf) return SEEN_INVALID;
    seen_status status = seen_native_read(buf, len, header);
    if (status != SEEN_OK) return status;
    return header->kind == SEEN_NATIVE_BITMAP ? SEEN_OK : SEEN_UNSUPPORTED;
}

seen_status seen_bitmap_verify(const void *buf, size_t len)
{
    struct seen_native header;
    seen_status status = read_header(buf, len, &header);
    return status == SEEN_OK ? seen_native_verify(buf, &header) : status;
}

seen_status seen_bitmap_load(seen_bitmap **b, const void *buf, size_t len,
                             const seen_allocator *allocator)
{
    if (!b) return SEEN_INVALID;
    struct seen_native header;
    seen_status status = read_header(buf, len, &header);
    if (status == SEEN_OK) status = seen_native_verify(buf, &header);
    if (status != SEEN_OK) return status;

    seen_bitmap *made;
    status = seen_bitmap_new(&made, header.bits, allocator);
    if (status != SEEN_OK) return status;
    const uint8_t *payload = (const uint8_t *)buf + header.payload_offset;
    for (uint64_t i = 0; i < nwords(made); i++)
        made->words[i] = seen_get_le64(payload + 8 * i);
    *b = made;
    return SEEN_OK;
}

seen_status seen_bitmap_view(seen_bitmap **b, const void *buf, size_t len)
{
    if (!SEEN_LITTLE_ENDIAN) return SEEN_UNSUPPORTED;
    if (!b || (uintptr_t)buf % 8) return SEEN_INVALID;
    struct seen_native header;
    seen_status status = read_header(buf, len, &header);
    if (status != SEEN_OK) return status;

    seen_allocator a = seen_allocator_or_default(NULL);
    seen_bitmap *made = seen_alloc_zeroed(&a, sizeof *made);
    if (!made) return SEEN_NOMEM;
    /* Never written through: every call that writes refuses a view. */
    *made = (seen_bitmap){
        .words = (uint64_t *)((uintptr_t)buf + header.payload_offset),
        .bits = header.bits,
        .allocator = a,
        .borrowed = true};
    *b = made;
    return SEEN_OK;
}
