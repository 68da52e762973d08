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

static const char *plan(const seen_spec *spec, struct seen_foreign *f)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return "bits, hashes and bits_per_key are not for this dialect: give "
               "items";
    if (!spec->items) return "items (at least 1) is needed";
    if (spec->items > SEEN_MAX_BITS / 16) return "items is at most 2^44";
    uint64_t buckets = 1;
    while (buckets < spec->items / SLOTS)
        buckets *= 2;
    f->cuckoo.slots = SLOTS;
    f->cuckoo.tries = TRIES;
    f->cuckoo.growth = GROWTH;
    f->cuckoo.removed = 0;
    f->count = 1;
    f->links[0] = seen_cuckoo_link(f, buckets * SLOTS);
    return NULL;
}

/* ---- Bytes -------------------------------------------------------------- */

static bool power_of_two(uint64_t x)
{
    return x && !(x & (x - 1));
}

/* The sub-filters behind a header of `head` bytes; what is wrong, or NULL. */
static const char *read_head(const uint8_t *buf, size_t len, size_t head,
                             struct seen_foreign *f)
{
    if (len < head) return "is shorter than a header";
    uint64_t buckets = seen_get_le64(buf + 8), n = seen_get_le64(buf + 24);
    f->common.items = seen_get_le64(buf);
    f->cuckoo.removed = seen_get_le64(buf + 16);
    f->cuckoo.slots = seen_get_le16(buf + 32);
    f->cuckoo.tries = seen_get_le16(buf + 34);
    f->cuckoo.growth = seen_get_le16(buf + 36);
    f->counted = true;
    if (n == 0 || n > SEEN_LINKS_MAX)
        return "has no sub-filter, or more than 64";
    if (f->cuckoo.slots == 0) return "has buckets without slots";
    if (!power_of_two(buckets) || buckets > len)
        return "has a number of buckets that is no power of two, or too large";
    if (f->cuckoo.growth && !power_of_two(f->cuckoo.growth))
        return "has an expansion that is no power of two";
    if (n > 1 && f->cuckoo.growth == 0)
        return "has sub-filters and no expansion";
    uint64_t at = head, slots = 0;
    f->count = (uint32_t)n;
    for (uint32_t i = 0; i < f->count; i++) {
        if (buckets > (len - at) / f->cuckoo.slots)
            return "is shorter than its sub-filters";
        f->links[i] = seen_cuckoo_link(f, buckets * f->cuckoo.slots);
        f->links[i].at = (uint8_t *)(uintptr_t)(buf + at);
        f->links[i].stored = f->links[i].bytes;
        at += f->links[i].bytes;
        slots += f->links[i].bytes;
        buckets *= f->cuckoo.growth; /* at most len * 2^16 */
    }
    if (at != len) return "has bytes behind its sub-filters";
    if (f->common.items > slots) return "has more items than slots";
    f->note_len = (uint32_t)(head - HEAD);
    memcpy(f->note, buf + HEAD, f->note_len);
    return NULL;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, const char **why)
{
    (void)spec;
    *why = read_head(buf, len, HEAD, f);
    if (*why && !read_head(buf, len, OLD_HEAD, f)) *why = NULL;
    return *why ? SEEN_CORRUPT : SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    struct seen_foreign f;
    return !read_head(buf, len, HEAD, &f) || !read_head(buf, len, OLD_HEAD, &f);
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
