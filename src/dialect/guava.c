/*
 * dialect/guava.c - com.google.common.hash.BloomFilter, as writeTo() writes it.
 *
 *     0   1  strategy: 1 MURMUR128_MITZ_64, 0 MURMUR128_MITZ_32
 *     1   1  k
 *     2   4  words, big-endian
 *     6      words of 64 bits, big-endian; m = 64 * words
 *
 * MITZ_64, the default since Guava 17:  h1 + i * h2, i = 0 .. k-1, sign bit off,
 * modulo m. MITZ_32, before that: a and b are the low and high half of h1, a + i * b
 * in 32 bits, i = 1 .. k; if negative, all bits turned over. h1 and h2 are
 * MurmurHash3 of what the funnel makes of a value: bytes as they are, text in
 * UTF-8, or as Java's characters (2 bytes each, little-endian), a long in 8 bytes,
 * an int in 4, little-endian.
 *
 * From n and p: bits = trunc(-n ln p / (ln 2)^2); words for them; k = round(bits / n *
 * ln 2), at least 1. From Guava 33.4 on k = round(-ln p / ln 2), which is seldom
 * another number: insist on `hashes` for it.
 *
 * Worked example: 1000 at 1 %: 9585 bits, 150 words, m = 9600, k = 7; 1206 bytes.
 * The empty key hashes to 0, so it sets bit 0 and no other.
 *
 * Source: Guava 31.1.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "hash/murmur3.h"

#include <math.h>

#define HEAD      6
#define MITZ_32   0
#define MITZ_64   1
#define WORDS_MAX INT32_MAX

/* ---- Schemes ------------------------------------------------------------ */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    seen_hash h = seen_murmur3_128(key, len, 0);
    d->h[0] = h.lo;
    d->h[1] = h.hi;
}

SEEN_INLINE void positions_64(const struct seen_place *p, struct seen_digest *d,
                              uint32_t from, uint32_t to, uint64_t *pos)
{
    for (; from < to; from++)
        *pos++ =
            seen_modulo((d->h[0] + from * d->h[1]) & INT64_MAX, &p->modulo);
}

SEEN_INLINE void positions_32(const struct seen_place *p, struct seen_digest *d,
                              uint32_t from, uint32_t to, uint64_t *pos)
{
    uint32_t a = (uint32_t)d->h[0], b = (uint32_t)(d->h[0] >> 32);
    for (; from < to; from++) {
        uint32_t c = a + (from + 1) * b;
        *pos++ = seen_modulo(c >> 31 ? ~c : c, &p->modulo);
    }
}

#define ORDER     SEEN_ORDER_BIG_64
#define POSITIONS positions_64
#include "probe/fused.h"

static const struct seen_scheme scheme_64 = {.hash = "murmur3-128",
                                             .hash_bits = 128,
                                             .order = ORDER,
                                             .digest = digest,
                                             .positions = positions_64,
                                             .maybe = maybe};
static const struct seen_scheme scheme_32 = {.hash = "murmur3-128, half of it",
                                             .hash_bits = 64,
                                             .order = SEEN_ORDER_BIG_64,
                                             .digest = digest,
                                             .positions = positions_32};

/* ---- Plan --------------------------------------------------------------- */

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    if (spec->bits || spec->bits_per_key != 0)
        return seen_derived(spec, "the number of keys and the rate", e);
    if (!spec->items || !(spec->fpp > 0))
        return seen_needs_keys_and_rate(spec, e);
    double n = (double)spec->items;
    double bits = trunc(-n * log(spec->fpp) / (log(2) * log(2)));
    if (!(bits <= 64.0 * WORDS_MAX))
        return seen_fail(
            e, SEEN_INVALID, "items",
            "items %" PRIu64
            ": takes more than 2^37 bits: expected fewer keys or a higher rate",
            spec->items);
    if (bits < 1)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: takes less than a bit for %" PRIu64
                         " keys: expected a lower rate",
                         spec->fpp, spec->items);
    double k = floor(bits / n * log(2) + 0.5);
    if (spec->hashes) k = spec->hashes;
    if (k > SEEN_POSITIONS_MAX)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %.0f: expected at most 255", k);
    uint64_t words = ((uint64_t)bits + 63) / 64;
    seen_foreign_one(f, words * 64, k < 1 ? 1 : (uint32_t)k, words * 8);
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static seen_status check(const uint8_t *buf, size_t len, uint8_t strategy,
                         seen_error *e)
{
    if (len < HEAD) return seen_short_head(len, HEAD, e);
    if (buf[0] != strategy)
        return seen_corrupt(e,
                            "strategy %u at offset 0: expected 1 (guava) or 0 "
                            "(guava-mitz32), here %u",
                            buf[0], strategy);
    if (buf[1] == 0)
        return seen_corrupt(e, "0 hashes at offset 1: expected 1 to 255");
    uint32_t words = seen_get_be32(buf + 2);
    if (words == 0 || words > WORDS_MAX)
        return seen_corrupt(
            e, "%" PRId64 " words at offset 2: expected at least 1",
            (int64_t)(int32_t)words);
    return seen_check_length(len - HEAD, (uint64_t)words * 8, e);
}

static uint8_t strategy_of(const struct seen_scheme *scheme)
{
    return scheme == &scheme_64 ? MITZ_64 : MITZ_32;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (check(buf, len, strategy_of(f->scheme), e) != SEEN_OK)
        return SEEN_CORRUPT;
    uint64_t bytes = len - HEAD;
    seen_foreign_one(f, bytes * 8, buf[1], bytes);
    f->links[0].at = (uint8_t *)(uintptr_t)(buf + HEAD);
    f->links[0].stored = bytes;
    return SEEN_OK;
}

static bool sniff_64(const uint8_t *buf, size_t len)
{
    return check(buf, len, MITZ_64, NULL) == SEEN_OK;
}

static bool sniff_32(const uint8_t *buf, size_t len)
{
    return check(buf, len, MITZ_32, NULL) == SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    *len = HEAD + (size_t)l->bytes;
    if (!to) return SEEN_OK;
    to[0] = strategy_of(f->scheme);
    to[1] = (uint8_t)l->place.hashes;
    seen_put_be32(to + 2, (uint32_t)(l->bytes / 8));
    memcpy(to + HEAD, l->at, (size_t)l->bytes);
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_guava = {
    .facts = {.name = "guava",
              .system = "Guava BloomFilter (Java)",
              .weakness = "positions move together: 12 times the rate for "
                          "small filters at small rates; crafted keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme_64,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff_64,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_guava_mitz32 = {
    .facts = {.name = "guava-mitz32",
              .system = "Guava BloomFilter before 17 (Java)",
              .weakness = "as guava; positions of 32 bits reach no further "
                          "than 2^31 bits",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme_32,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff_32,
    .read = read,
    .write = write,
};
