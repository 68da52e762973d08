/*
 * dialect/redisbloom_cf.c - RedisBloom's CF: what CF.SCANDUMP gives, all chunks
 * one after the other. filter/foreign_cuckoo.c is the filter itself.
 *
 *     offset  size
 *     0       8     items
 *     8       8     buckets of the first sub-filter, a power of two
 *     16      8     items removed
 *     24      8     sub-filters
 *     32      2     slots of a bucket
 *     34      2     evictions to try
 *     36      2     expansion: how many times the buckets the next one has
 *     38            the slots of each sub-filter, a byte each
 *
 * 2.2.0 to 2.2.10 wrote 8 more bytes, which mean nothing, before the slots. A
 * filter without keys dumps nothing at all.
 *
 * From a capacity: buckets = capacity / 2, up to a power of two, of 2 slots; 20
 * evictions, expansion 1. The rate is about 4 fingerprints of 255, times the
 * load: 1.2 % at 75 %.
 *
 * Worked example: CF.RESERVE f 1500: 750 buckets become 1024; header and slots are
 * 2086 bytes.
 *
 * Source: RedisBloom 2.8.20; the older headers as read there.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "hash/murmur2.h"
#include "plan/sizing.h"

#define HEAD     38
#define OLD_HEAD 46
#define SLOTS    2
#define TRIES    20
#define GROWTH   1

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = seen_murmur64a(key, len, 0);
}

static const struct seen_scheme scheme = {
    .hash = "murmur64a", .hash_bits = 64, .digest = digest};

/* ---- Plan --------------------------------------------------------------- */

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return seen_derived(spec, "the number of keys", e);
    if (!spec->items)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected at least 1");
    if (spec->items > SEEN_MAX_BITS / 16)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64 ": expected at most 2^44",
                         spec->items);
    uint64_t buckets = 1;
    while (buckets < spec->items / SLOTS)
        buckets *= 2;
    f->cuckoo.slots = SLOTS;
    f->cuckoo.tries = TRIES;
    f->cuckoo.growth = GROWTH;
    f->cuckoo.removed = 0;
    f->count = 1;
    f->links[0] = (struct seen_link){.bytes = buckets * SLOTS};
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static bool power_of_two(uint64_t x)
{
    return x && !(x & (x - 1));
}

/* The sub-filters behind a header of `head` bytes. */
static seen_status read_head(const uint8_t *buf, size_t len, size_t head,
                             struct seen_foreign *f, seen_error *e)
{
    if (len < head) return seen_short_head(len, head, e);
    uint64_t buckets = seen_get_le64(buf + 8), n = seen_get_le64(buf + 24);
    f->common.items = seen_get_le64(buf);
    f->cuckoo.removed = seen_get_le64(buf + 16);
    f->cuckoo.slots = seen_get_le16(buf + 32);
    f->cuckoo.tries = seen_get_le16(buf + 34);
    f->cuckoo.growth = seen_get_le16(buf + 36);
    f->counted = true;
    if (n == 0 || n > SEEN_LINKS_MAX)
        return seen_no_links("sub-filters", n, 24, e);
    if (f->cuckoo.slots == 0)
        return seen_corrupt(
            e, "0 slots a bucket at offset 32: expected at least 1");
    if (!power_of_two(buckets) || buckets > len)
        return seen_corrupt(e,
                            "%" PRIu64
                            " buckets at offset 8: expected a power of two, at "
                            "most the bytes that are there",
                            buckets);
    if (f->cuckoo.growth && !power_of_two(f->cuckoo.growth))
        return seen_corrupt(
            e, "expansion %u at offset 36: expected 0 or a power of two",
            f->cuckoo.growth);
    if (n > 1 && f->cuckoo.growth == 0)
        return seen_corrupt(
            e,
            "expansion 0 at offset 36: expected more with %" PRIu64
            " sub-filters",
            n);
    uint64_t at = head, slots = 0;
    if (seen_check_links("sub-filters", n, len - head, e) != SEEN_OK)
        return SEEN_CORRUPT;
    f->count = (uint32_t)n;
    for (uint32_t i = 0; i < f->count; i++) {
        if (buckets > (len - at) / f->cuckoo.slots)
            return seen_corrupt(e,
                                "cut off: sub-filter %u has %" PRIu64
                                " buckets of %u, %" PRIu64 " bytes are there",
                                i + 1, buckets, f->cuckoo.slots, len - at);
        uint64_t bytes = buckets * f->cuckoo.slots;
        *seen_link_at(f, i) =
            (struct seen_link){.at = (uint8_t *)(uintptr_t)(buf + at),
                               .bytes = bytes,
                               .stored = bytes};
        at += bytes;
        slots += bytes;
        buckets *= f->cuckoo.growth; /* at most len * 2^16 */
    }
    if (at != len)
        return seen_corrupt(
            e, "%" PRIu64 " bytes behind the last sub-filter: expected none",
            len - at);
    if (f->common.items > slots)
        return seen_corrupt(
            e, "%" PRIu64 " items at offset 0: there are %" PRIu64 " slots",
            f->common.items, slots);
    f->note_len = (uint32_t)(head - HEAD);
    memcpy(f->note, buf + HEAD, f->note_len);
    return SEEN_OK;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    seen_status status = read_head(buf, len, HEAD, f, e);
    return status == SEEN_OK ? status : read_head(buf, len, OLD_HEAD, f, NULL);
}

static bool sniff(const uint8_t *buf, size_t len)
{
    struct seen_foreign f;
    seen_foreign_begin(&f, NULL);
    return read(NULL, buf, len, &f, NULL) == SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    size_t at = HEAD + f->note_len;
    *len = at;
    for (uint32_t i = 0; i < f->count; i++)
        *len += (size_t)f->links[i].bytes;
    if (!to) return SEEN_OK;
    seen_put_le64(to, f->common.items);
    seen_put_le64(to + 8, f->links[0].bytes / f->cuckoo.slots);
    seen_put_le64(to + 16, f->cuckoo.removed);
    seen_put_le64(to + 24, f->count);
    seen_put_le16(to + 32, (uint16_t)f->cuckoo.slots);
    seen_put_le16(to + 34, (uint16_t)f->cuckoo.tries);
    seen_put_le16(to + 36, (uint16_t)f->cuckoo.growth);
    memcpy(to + HEAD, f->note, f->note_len);
    for (uint32_t i = 0; i < f->count; i++) {
        memcpy(to + at, f->links[i].at, (size_t)f->links[i].bytes);
        at += (size_t)f->links[i].bytes;
    }
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_redisbloom_cf = {
    .facts = {.name = "redisbloom-cf",
              .system = "RedisBloom CF, CF.SCANDUMP (Redis)",
              .weakness = "8-bit fingerprints: 3 % when full; removing a key "
                          "that is not in removes another's; crafted keys "
                          "fill or empty it",
              .can = SEEN_CAN_ADD | SEEN_CAN_REMOVE | SEEN_CAN_SNIFF |
                     SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .ops = &seen_foreign_cuckoo_ops,
    .plan = plan,
    .sniff = sniff,
    .read = read,
    .write = write,
};
