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

static const char *plan(const seen_spec *spec, struct seen_foreign *f)
{
    if (spec->bits || spec->bits_per_key != 0)
        return "bits and bits_per_key follow from items and fpp in this "
               "dialect";
    if (!spec->items || !(spec->fpp > 0)) return "items and fpp are needed";
    double n = (double)spec->items;
    double bits = trunc(-n * log(spec->fpp) / (log(2) * log(2)));
    if (!(bits <= 64.0 * WORDS_MAX)) return "items take more than 2^37 bits";
    if (bits < 1) return "items at this fpp take less than a bit";
    double k = floor(bits / n * log(2) + 0.5);
    if (spec->hashes) k = spec->hashes;
    if (k > SEEN_MOST_POSITIONS) return "hashes is at most 255";
    uint64_t words = ((uint64_t)bits + 63) / 64;
    seen_foreign_one(f, words * 64, k < 1 ? 1 : (uint32_t)k, words * 8);
    return NULL;
}

/* ---- Bytes -------------------------------------------------------------- */

static const char *check(const uint8_t *buf, size_t len, uint8_t strategy)
{
    if (len < HEAD) return "is shorter than its header of 6 bytes";
    if (buf[0] != strategy)
        return buf[0] > MITZ_64 ? "has a strategy byte above 1"
                                : "has the other strategy: guava is 1, "
                                  "guava-mitz32 is 0";
    if (buf[1] == 0) return "has no hashes";
    uint32_t words = seen_get_be32(buf + 2);
    if (words == 0 || words > WORDS_MAX)
        return "has a number of words that is 0 or negative";
    return (uint64_t)words * 8 != len - HEAD
               ? "is not as long as its number of words says"
               : NULL;
}

static uint8_t strategy_of(const struct seen_scheme *scheme)
{
    return scheme == &scheme_64 ? MITZ_64 : MITZ_32;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, const char **why)
{
    (void)spec;
    *why = check(buf, len, strategy_of(f->scheme));
    if (*why) return SEEN_CORRUPT;
    uint64_t bytes = len - HEAD;
    seen_foreign_one(f, bytes * 8, buf[1], bytes);
    f->links[0].at = (uint8_t *)(uintptr_t)(buf + HEAD);
    f->links[0].stored = bytes;
    return SEEN_OK;
}

static bool sniff_64(const uint8_t *buf, size_t len)
{
    return !check(buf, len, MITZ_64);
}

static bool sniff_32(const uint8_t *buf, size_t len)
{
    return !check(buf, len, MITZ_32);
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
