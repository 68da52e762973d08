/*
 * dialect/redisbloom.c - RedisBloom's BF: what BF.SCANDUMP gives, all chunks one
 * after the other.
 *
 *     header | link | link | ... | bits | bits | ...
 *
 * A filter is a chain. Each link has its own bits, number of hashes, capacity and
 * rate; when the newest is full the next one gets `growth` times its capacity at
 * half its rate, so that all rates together stay below twice the first one's. A
 * key is in if any link has it, and one that is (or seems to be) is not added
 * again, so the order of adds shows in the bytes.
 *
 *     position i = (a + i * b) mod M      a = MurmurHash64A, b = the same from a
 *
 *     bits per key = |ln e| / 0.480453013918201      k = ceil(0.693147180559945 * it)
 *     bits = trunc(capacity * bits per key), up to a multiple of 64; M is all of them
 *
 * The header has had three forms, told apart by the length of the whole:
 *
 *     offset  2.0   2.2.0  since 2.2.1
 *     0       8     8      8     items in all
 *     8       4     4      4     links
 *     12      4     4      4     options: 1 no rounding, 4 hash of 64 bits,
 *                                8 does not grow
 *     16            4      4     growth
 *     then for each link
 *             8     8      8     bytes
 *             8     8      8     bits (2.0: 0)
 *             8     8      8     items
 *             8     8      8     rate, a double
 *             8     8      8     bits per key, a double
 *             4     4      4     hashes
 *             4     4      8     capacity
 *             1     1      1     n2: if not 0, M is 2^n2
 *
 * 2.0 rounded M up to a power of two, gave the room that this makes to the
 * capacity, did not halve the rate of the first link, and that of the next by 2
 * to the power of one more than the links there are.
 *
 * Worked example: BF.RESERVE f 0.02 1000. The first link keeps 1 %: 9.585 bits a
 * key, k = 7, 9585 bits become 9600, 1200 bytes; with its header of 73 bytes the
 * dump has 1273. Of the 1000 keys in tests/vectors/redisbloom two were false
 * positives when they came, so it counts 998.
 *
 * Source: RedisBloom 2.8.20, 2.2.0 and 2.0.3.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "hash/murmur2.h"
#include "plan/sizing.h"

#include <math.h>

#define SEED 0xc6a4a7935bd1e995u
#define LN2  0.693147180559945
#define LN22 0.480453013918201

/* options */
#define NO_ROUNDING  1u
#define ENTRIES_BITS 2u
#define HASH_64      4u
#define NO_SCALING   8u

#define TIGHTENING 0.5
#define GROWTH     2
#define GROWTH_MAX 32768 /* that its configuration takes */

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = seen_murmur64a(key, len, SEED);
    d->h[1] = seen_murmur64a(key, len, d->h[0]);
}

#define ORDER     SEEN_ORDER_LOW_FIRST
#define POSITIONS seen_double_hashing
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "murmur64a, twice",
                                          .hash_bits = 64,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = seen_double_hashing,
                                          .maybe = maybe};

/* ---- Sizes -------------------------------------------------------------- */

/* A link for so many keys; false: beyond what we go along with. */
static bool size(struct seen_link *l, uint64_t capacity, double fpp,
                 bool rounded)
{
    double per_key = fabs(log(fpp)) / LN22, k = ceil(LN2 * per_key);
    double bits = (double)capacity * per_key;
    if (!(bits < (double)SEEN_MAX_BITS) || !(k <= SEEN_POSITIONS_MAX))
        return false;
    uint64_t m = bits < 1 ? 1 : (uint64_t)bits;
    *l = (struct seen_link){
        .capacity = capacity, .fpp = fpp, .per_key = per_key};
    if (rounded) {
        l->power = (uint32_t)log2(bits < 1 ? 1 : bits) + 1;
        m = (uint64_t)1 << l->power;
        l->capacity += (uint64_t)(floor((double)m - bits) / per_key);
    } else {
        m = (m + 63) / 64 * 64;
    }
    l->bytes = (m + 7) / 8;
    l->place = seen_place_of(m, (uint32_t)k, 0);
    return true;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return seen_derived(spec, "the number of keys and the rate", e);
    if (!spec->items || !(spec->fpp > 0))
        return seen_needs_keys_and_rate(spec, e);
    if (!size(&f->links[0], spec->items, spec->fpp * TIGHTENING, false))
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": takes more than 2^48 bits or 255 hashes: expected "
                         "fewer keys or a higher rate",
                         spec->items);
    f->count = 1;
    f->chain.options = NO_ROUNDING | HASH_64;
    f->chain.growth = GROWTH;
    f->chain.age = 2;
    return SEEN_OK;
}

static seen_status grow(const struct seen_foreign *f, struct seen_link *next)
{
    const struct seen_link *newest = &f->links[f->count - 1];
    uint64_t capacity;
    if (newest->items < newest->capacity) return SEEN_OK;
    if (f->chain.fixed) return SEEN_FULL;
    double fpp =
        newest->fpp *
        (f->chain.age == 0 ? pow(TIGHTENING, f->count + 1) : TIGHTENING);
    bool fits = seen_mul_fits(newest->capacity, f->chain.growth, &capacity) &&
                fpp > 0 &&
                size(next, capacity, fpp, !(f->chain.options & NO_ROUNDING));
    return fits && next->bytes ? SEEN_OK : SEEN_FULL;
}

static const struct seen_foreign_rules rules = {.adds_new_only = true,
                                                .grow = grow};

/* ---- Bytes -------------------------------------------------------------- */

static const struct age {
    size_t head, link;
} ages[] = {{16, 49}, {20, 49}, {20, 53}};

#define AGES 3

/* What no RedisBloom would have written: SEEN_CORRUPT. */
static seen_status check_link(const struct seen_link *l, uint64_t bits,
                              seen_error *e)
{
    uint64_t m = l->power ? (uint64_t)1 << l->power : bits;
    if (!(l->fpp > 0 && l->fpp < 1))
        return seen_corrupt(
            e, "a link has the rate %g: expected above 0 and below 1", l->fpp);
    if (!(l->per_key > 0 && l->per_key < 1e6) ||
        ceil(LN2 * l->per_key) != l->place.hashes)
        return seen_corrupt(e,
                            "a link has %u hashes and %g bits per key: they do "
                            "not belong together",
                            l->place.hashes, l->per_key);
    if (l->place.hashes > SEEN_POSITIONS_MAX)
        return seen_corrupt(e, "a link has %u hashes: expected at most 255",
                            l->place.hashes);
    if (m > SEEN_MAX_BITS)
        return seen_corrupt(
            e, "a link has %" PRIu64 " bits: expected at most 2^48", m);
    if (m == 0 || l->bytes != (m + 7) / 8 || (bits && bits != m))
        return seen_corrupt(e,
                            "a link has %" PRIu64 " bits in %" PRIu64
                            " bytes: they do not belong together",
                            m, l->bytes);
    return SEEN_OK;
}

/* The link at `from`; its bits are not looked at. */
static seen_status read_link(const uint8_t *from, uint32_t age,
                             struct seen_link *l, seen_error *e)
{
    bool wide = age == 2;
    *l = (struct seen_link){.bytes = seen_get_le64(from),
                            .items = seen_get_le64(from + 16),
                            .fpp = seen_get_le_double(from + 24),
                            .per_key = seen_get_le_double(from + 32),
                            .power = from[wide ? 52 : 48]};
    l->capacity = wide ? seen_get_le64(from + 44) : seen_get_le32(from + 44);
    l->place.hashes = seen_get_le32(from + 40);
    if (l->power > 48)
        return seen_corrupt(e, "a link has 2^%u bits: expected at most 2^48",
                            l->power);
    uint64_t bits = seen_get_le64(from + 8);
    if (check_link(l, bits, e) != SEEN_OK) return SEEN_CORRUPT;
    l->place = seen_place_of(l->power ? (uint64_t)1 << l->power : bits,
                             l->place.hashes, 0);
    return SEEN_OK;
}

/* As a header of this age. */
static seen_status read_age(const uint8_t *buf, size_t len, uint32_t age,
                            struct seen_foreign *f, seen_error *e)
{
    const struct age *a = &ages[age];
    if (len < a->head) return seen_short_head(len, a->head, e);
    uint64_t total = seen_get_le64(buf), items = 0;
    uint32_t links = seen_get_le32(buf + 8);
    f->chain.options = seen_get_le32(buf + 12);
    f->chain.growth = age == 0 ? GROWTH : seen_get_le32(buf + 16);
    f->chain.age = age;
    if (f->chain.growth > GROWTH_MAX)
        return seen_corrupt(e, "growth %u at offset 16: expected at most 32768",
                            f->chain.growth);
    if (links == 0 || links > SEEN_LINKS_MAX)
        return seen_no_links("links", links, 8, e);
    if (f->chain.options & ~(NO_ROUNDING | ENTRIES_BITS | HASH_64 | NO_SCALING))
        return seen_corrupt(
            e, "options %u at offset 12: RedisBloom does not write them",
            f->chain.options);
    if (!(f->chain.options & HASH_64))
        return seen_corrupt(e,
                            "options %u at offset 12: the 32-bit hash of "
                            "before RedisBloom 1.1 is not supported",
                            f->chain.options);
    if (len < a->head + links * a->link)
        return seen_short_head(len, a->head + links * a->link, e);

    uint64_t at = a->head + links * a->link;
    if (seen_check_links("links", links, len - at, e) != SEEN_OK)
        return SEEN_CORRUPT;
    f->count = links;
    for (uint32_t i = 0; i < links; i++) {
        struct seen_link *l = seen_link_at(f, i);
        if (read_link(buf + a->head + i * a->link, age, l, e) != SEEN_OK)
            return SEEN_CORRUPT;
        if (l->bytes > len - at)
            return seen_corrupt(e,
                                "cut off: link %u has %" PRIu64
                                " bytes, %" PRIu64 " are there",
                                i + 1, l->bytes, len - at);
        l->at = (uint8_t *)(uintptr_t)(buf + at);
        l->stored = l->bytes;
        at += l->bytes;
        if (!seen_add_fits(items, l->items, &items)) items = UINT64_MAX;
    }
    if (at != len)
        return seen_corrupt(
            e, "%" PRIu64 " bytes behind the last link: expected none",
            len - at);
    if (items != total)
        return seen_corrupt(
            e, "%" PRIu64 " items at offset 0: its links have %" PRIu64, total,
            items);
    f->common.items = total;
    f->counted = true;
    f->chain.fixed = f->chain.options & NO_SCALING;
    return SEEN_OK;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    /* What the newest form says is wrong is what people want to know. */
    seen_status status = read_age(buf, len, 2, f, e);
    for (uint32_t age = 0; status != SEEN_OK && age < 2; age++)
        status = read_age(buf, len, age, f, NULL);
    if (status != SEEN_OK) return status;
    f->common.plan.items = f->links[0].capacity;
    bool halved = f->chain.age > 0 && !(f->chain.options & NO_SCALING);
    f->common.plan.fpp = f->links[0].fpp / (halved ? TIGHTENING : 1);
    return SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    struct seen_foreign f;
    seen_foreign_begin(&f, NULL);
    for (uint32_t age = 0; age < AGES; age++)
        if (read_age(buf, len, age, &f, NULL) == SEEN_OK) return true;
    return false;
}

static void write_link(const struct seen_link *l, uint32_t age, uint8_t *to)
{
    bool wide = age == 2;
    seen_put_le64(to, l->bytes);
    seen_put_le64(to + 8, age == 0 ? 0 : l->place.bits);
    seen_put_le64(to + 16, l->items);
    seen_put_le_double(to + 24, l->fpp);
    seen_put_le_double(to + 32, l->per_key);
    seen_put_le32(to + 40, l->place.hashes);
    if (wide)
        seen_put_le64(to + 44, l->capacity);
    else
        seen_put_le32(to + 44, (uint32_t)l->capacity);
    to[wide ? 52 : 48] = (uint8_t)l->power;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct age *a = &ages[f->chain.age];
    size_t head = a->head + f->count * a->link;
    *len = head;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        if (to) {
            write_link(l, f->chain.age, to + a->head + i * a->link);
            memcpy(to + *len, l->at, (size_t)l->bytes);
        }
        *len += (size_t)l->bytes;
    }
    if (!to) return SEEN_OK;
    uint64_t items = 0;
    for (uint32_t i = 0; i < f->count; i++)
        if (!seen_add_fits(items, f->links[i].items, &items))
            items = UINT64_MAX; /* as read() has it */
    seen_put_le64(to, items);
    seen_put_le32(to + 8, f->count);
    seen_put_le32(to + 12, f->chain.options);
    if (f->chain.age > 0) seen_put_le32(to + 16, f->chain.growth);
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_redisbloom = {
    .facts = {.name = "redisbloom",
              .system = "RedisBloom BF, BF.SCANDUMP (Redis)",
              .weakness = "MurmurHash2 collides for every seed: crafted keys "
                          "fill it or read maybe",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &rules,
    .plan = plan,
    .sniff = sniff,
    .read = read,
    .write = write,
};
