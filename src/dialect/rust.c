/*
 * dialect/rust.c - the crate bloomfilter 3 of Rust, and valkey-bloom, which
 * chains its filters.
 *
 *     rust-bloomfilter                   valkey-bloom, the payload of BF.LOAD
 *     0   1   1, the version             0   1   1, the version
 *     1   8   bytes                      1   4   expansion, 0: does not grow
 *     9   4   k                          5   8   rate, a double
 *     13  32  seed: two keys             13  8   tightening, a double
 *     45      bits                       21  1   1: the seed is random
 *                                        22  8   filters; for each
 *     all little-endian                      8   length, then that many bytes as
 *                                                on the left
 *                                            8   items
 *                                            8   capacity
 *
 * a and b are SipHash-1-3 of the key, with the first and the second half of the
 * seed. What is hashed of a slice of bytes is its length, 8 bytes, and then the
 * bytes. Positions: a mod m, b mod m, and then ((a + i b) mod 2^64) mod (2^64 - 59) mod m.
 *
 * From n and p: bytes = ceil(-n ln p / (8 (ln 2)^2)), m = 8 * bytes, k = round(m / n *
 * ln 2), at least 1. The next filter of a chain has `expansion` times the capacity at
 * `tightening` times the rate, when the newest has its number of items; a key that
 * is "maybe" in any filter is not added.
 *
 * Worked example: 1000 at 1 %: 1199 bytes, m = 9592, k = 7; 1244 with the header.
 *
 * SipHash is keyed, so a random seed that is kept from those who choose keys would
 * protect them. It is in the file, and unless valkey-bloom is told otherwise it is
 * random; the crate's users choose. New filters here have valkey-bloom's fixed one,
 * so that the same keys make the same bytes.
 *
 * Source: bloomfilter 3.0.1; valkey-bloom 1.x as read, with the same crates.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "hash/siphash.h"
#include "plan/sizing.h"

#include <math.h>

#define HEAD       45
#define VERSION    1
#define P          0xffffffffffffffc5u
#define CHAIN_HEAD 30
#define EXPANSION  2
#define TIGHTENING 0.5
#define GROWTH_MAX ((uint32_t)1 << 20)

static const uint8_t fixed_seed[32] = {
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
    0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
    0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83};

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    d->h[0] = seen_siphash64(seed, true, key, len, 1, 3);
    d->h[1] = seen_siphash64(seed + 16, true, key, len, 1, 3);
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    for (; from < to; from++) {
        uint64_t h = from < 2 ? d->h[from] : d->h[0] + from * d->h[1];
        if (from >= 2 && h >= P) h -= P;
        *pos++ = seen_modulo(h, &p->modulo);
    }
}

#define ORDER SEEN_ORDER_LOW_FIRST
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "siphash-1-3, twice",
                                          .hash_bits = 128,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Sizes -------------------------------------------------------------- */

static bool size(struct seen_link *l, uint64_t capacity, double fpp)
{
    double n = (double)capacity;
    double bytes = ceil(n * log(fpp) / (-8 * log(2) * log(2)));
    if (!(bytes >= 1) || !(bytes * 8 <= (double)SEEN_MAX_BITS)) return false;
    uint64_t m = (uint64_t)bytes * 8;
    double k = round((double)m / n * log(2));
    if (k > SEEN_POSITIONS_MAX) return false;
    *l = (struct seen_link){.bytes = m / 8,
                            .place =
                                seen_place_of(m, k < 1 ? 1 : (uint32_t)k, 0),
                            .capacity = capacity,
                            .fpp = fpp};
    return true;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return seen_derived(spec, "the number of keys and the rate", e);
    if (!spec->items || !(spec->fpp > 0))
        return seen_needs_keys_and_rate(spec, e);
    if (!size(&f->links[0], spec->items, spec->fpp))
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": takes no byte, more than 2^48 bits or more than "
                         "255 hashes at a rate of %g",
                         spec->items, spec->fpp);
    f->count = 1;
    memcpy(f->seed, fixed_seed, sizeof f->seed);
    return SEEN_OK;
}

static seen_status plan_one(const seen_spec *spec, struct seen_foreign *f,
                            seen_error *e)
{
    seen_status status = plan(spec, f, e);
    f->links[0].capacity = 0; /* which its bytes do not say */
    f->links[0].fpp = 0;
    return status;
}

static seen_status plan_chain(const seen_spec *spec, struct seen_foreign *f,
                              seen_error *e)
{
    f->chain.growth = EXPANSION;
    f->chain.tightening = TIGHTENING;
    f->chain.fpp = spec->fpp;
    if (spec->items > INT64_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": expected below 2^63 in this dialect",
                         spec->items);
    return plan(spec, f, e);
}

static seen_status grow(const struct seen_foreign *f, struct seen_link *next)
{
    const struct seen_link *newest = &f->links[f->count - 1];
    uint64_t capacity;
    if (newest->items < newest->capacity) return SEEN_OK;
    if (f->chain.growth == 0) return SEEN_FULL;
    double fpp = f->chain.fpp * pow(f->chain.tightening, f->count);
    bool fits = seen_mul_fits(newest->capacity, f->chain.growth, &capacity) &&
                capacity <= INT64_MAX && capacity > 0 && fpp > 0 && fpp < 1 &&
                size(next, capacity, fpp);
    return fits ? SEEN_OK : SEEN_FULL;
}

static const struct seen_foreign_rules chain_rules = {.adds_new_only = true,
                                                      .grow = grow};

/* ---- Bytes: one filter -------------------------------------------------- */

/* The filter in exactly these bytes. */
static seen_status read_crate(const uint8_t *buf, uint64_t len,
                              struct seen_link *l, seen_error *e)
{
    if (len <= HEAD) return seen_short_head((size_t)len, HEAD, e);
    if (buf[0] != VERSION)
        return seen_corrupt(e, "version %u: expected 1", buf[0]);
    uint64_t bytes = seen_get_le64(buf + 1);
    uint32_t k = seen_get_le32(buf + 9);
    if (bytes != len - HEAD) return seen_check_length(len - HEAD, bytes, e);
    if (k == 0 || k > SEEN_POSITIONS_MAX)
        return seen_corrupt(e, "k %u: expected 1 to 255", k);
    if (bytes > SEEN_MAX_BITS / 8)
        return seen_corrupt(e, "%" PRIu64 " bytes: expected at most 2^48 bits",
                            bytes);
    *l = (struct seen_link){.at = (uint8_t *)(uintptr_t)(buf + HEAD),
                            .bytes = bytes,
                            .stored = bytes,
                            .place = seen_place_of(bytes * 8, k, 0)};
    return SEEN_OK;
}

static void write_crate(const struct seen_foreign *f, const struct seen_link *l,
                        uint8_t *to)
{
    to[0] = VERSION;
    seen_put_le64(to + 1, l->bytes);
    seen_put_le32(to + 9, l->place.hashes);
    memcpy(to + 13, f->seed, sizeof f->seed);
    memcpy(to + HEAD, l->at, (size_t)l->bytes);
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (read_crate(buf, len, &f->links[0], e) != SEEN_OK) return SEEN_CORRUPT;
    f->count = 1;
    memcpy(f->seed, buf + 13, sizeof f->seed);
    return SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    struct seen_link l;
    return read_crate(buf, len, &l, NULL) == SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    if (f->count != 1) return SEEN_MISMATCH;
    *len = HEAD + (size_t)f->links[0].bytes;
    if (to) write_crate(f, &f->links[0], to);
    return SEEN_OK;
}

/* ---- Bytes: a chain ----------------------------------------------------- */

static seen_status read_chain_head(const uint8_t *buf, size_t len,
                                   struct seen_foreign *f, uint64_t *n,
                                   seen_error *e)
{
    if (len < CHAIN_HEAD) return seen_short_head(len, CHAIN_HEAD, e);
    if (buf[0] != VERSION)
        return seen_corrupt(e, "version %u: expected 1", buf[0]);
    f->chain.growth = seen_get_le32(buf + 1);
    f->chain.fpp = seen_get_le_double(buf + 5);
    f->chain.tightening = seen_get_le_double(buf + 13);
    f->chain.options = buf[21];
    *n = seen_get_le64(buf + 22);
    if (f->chain.growth > GROWTH_MAX)
        return seen_corrupt(e, "growth %u at offset 1: expected at most 2^20",
                            f->chain.growth);
    if (!(f->chain.fpp > 0 && f->chain.fpp < 1) ||
        !(f->chain.tightening > 0 && f->chain.tightening <= 1))
        return seen_corrupt(e,
                            "rate %g at offset 5, tightening %g at offset 13: "
                            "expected above 0 and below 1",
                            f->chain.fpp, f->chain.tightening);
    if (f->chain.options > 1)
        return seen_corrupt(e, "flag %u at offset 21: expected 0 or 1",
                            f->chain.options);
    if (*n == 0 || *n > SEEN_LINKS_MAX)
        return seen_no_links("filters", *n, 22, e);
    if (*n > (len - CHAIN_HEAD) / (8 + HEAD + 16))
        return seen_corrupt(e, "cut off: %" PRIu64 " filters in %zu bytes", *n,
                            len);
    return SEEN_OK;
}

static seen_status read_chain_bytes(const uint8_t *buf, size_t len,
                                    struct seen_foreign *f, seen_error *e)
{
    uint64_t n = 0, at = CHAIN_HEAD;
    if (read_chain_head(buf, len, f, &n, e) != SEEN_OK ||
        seen_check_links("filters", n, len - CHAIN_HEAD - n * (8 + HEAD + 16),
                         e) != SEEN_OK)
        return SEEN_CORRUPT;
    f->common.items = 0;
    f->count = (uint32_t)n;
    for (uint32_t i = 0; i < f->count; i++) {
        struct seen_link *l = seen_link_at(f, i);
        if (len - at < 8)
            return seen_corrupt(e, "cut off in filter %u, at offset %" PRIu64,
                                i + 1, at);
        uint64_t size_here = seen_get_le64(buf + at);
        at += 8;
        if (size_here > len - at || len - at - size_here < 16)
            return seen_corrupt(e, "cut off in filter %u, at offset %" PRIu64,
                                i + 1, at);
        if (read_crate(buf + at, size_here, l, e) != SEEN_OK)
            return SEEN_CORRUPT;
        if (i == 0) memcpy(f->seed, buf + at + 13, sizeof f->seed);
        if (memcmp(f->seed, buf + at + 13, sizeof f->seed) != 0)
            return seen_corrupt(e, "filter %u has another seed than the first",
                                i + 1);
        at += size_here;
        l->items = seen_get_le64(buf + at);
        l->capacity = seen_get_le64(buf + at + 8);
        l->fpp = f->chain.fpp * pow(f->chain.tightening, i);
        at += 16;
        if (l->capacity == 0 || l->capacity > INT64_MAX ||
            l->items > l->capacity)
            return seen_corrupt(
                e, "filter %u has %" PRIu64 " items and a capacity of %" PRIu64,
                i + 1, l->items, l->capacity);
        if (!seen_add_fits(f->common.items, l->items, &f->common.items))
            return seen_corrupt(e, "more than 2^64 items");
    }
    if (at != len)
        return seen_corrupt(
            e, "%" PRIu64 " bytes behind the last filter: expected none",
            len - at);
    bool fixed = memcmp(f->seed, fixed_seed, sizeof f->seed) == 0;
    if (!f->chain.options && !fixed)
        return seen_corrupt(
            e,
            "a seed of its own, and a flag at offset 21 that says it has none");
    return SEEN_OK;
}

static seen_status read_chain(const seen_spec *spec, const uint8_t *buf,
                              size_t len, struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    f->counted = true;
    if (read_chain_bytes(buf, len, f, e) != SEEN_OK) return SEEN_CORRUPT;
    f->common.plan.items = f->links[0].capacity;
    f->common.plan.fpp = f->chain.fpp;
    return SEEN_OK;
}

static bool sniff_chain(const uint8_t *buf, size_t len)
{
    struct seen_foreign f;
    seen_foreign_begin(&f, NULL);
    return read_chain_bytes(buf, len, &f, NULL) == SEEN_OK;
}

/* A filter of the crate alone knows neither its capacity nor its rate. */
static seen_status write_chain(const struct seen_foreign *f, uint8_t *to,
                               size_t *len)
{
    if (!f->links[0].capacity) return SEEN_MISMATCH;
    *len = CHAIN_HEAD;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        if (to) {
            uint8_t *here = to + *len, *end = here + 8 + HEAD + l->bytes;
            seen_put_le64(here, HEAD + l->bytes);
            write_crate(f, l, here + 8);
            seen_put_le64(end, l->items);
            seen_put_le64(end + 8, l->capacity);
        }
        *len += 8 + HEAD + (size_t)l->bytes + 16;
    }
    if (!to) return SEEN_OK;
    to[0] = VERSION;
    seen_put_le32(to + 1, f->chain.growth);
    seen_put_le_double(to + 5, f->chain.fpp);
    seen_put_le_double(to + 13, f->chain.tightening);
    to[21] = (uint8_t)f->chain.options;
    seen_put_le64(to + 22, f->count);
    return SEEN_OK;
}

/* ---- Rows --------------------------------------------------------------- */

const struct seen_dialect seen_dialect_rust_bloomfilter = {
    .facts = {.name = "rust-bloomfilter",
              .system = "crate bloomfilter 3 (Rust)",
              .weakness = "its secret is in the file; crafted keys where that "
                          "is known",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan_one,
    .sniff = sniff,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_valkey_bloom = {
    .facts = {.name = "valkey-bloom",
              .system = "valkey-bloom, BF.LOAD (Valkey)",
              .weakness = "its secret is in the payload; all filters of a "
                          "chain together have up to twice the rate",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &chain_rules,
    .plan = plan_chain,
    .sniff = sniff_chain,
    .read = read_chain,
    .write = write_chain,
};
