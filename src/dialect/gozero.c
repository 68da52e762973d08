/*
 * dialect/gozero.c - core/bloom of go-zero: a Bloom filter in a Redis string.
 *
 *     SETBIT key p 1, 14 times        p = murmur3(key | byte i) mod bits
 *
 * k is always 14, and every position is a hash of its own: the key with one more
 * byte, 0 to 13, the first half of MurmurHash3. That makes the positions as good
 * as independent, at the price of 14 hashes; here the blocks of the key are
 * hashed once, and only its end 14 times.
 *
 * The string is all there is: neither `bits` nor k is stored, so whoever reads it
 * must say bits. Redis counts bits from the high end of a byte, and makes a
 * string as long as its highest bit needs: a filter of few keys may be shorter
 * than bits / 8, and one without keys is no string at all.
 *
 * There is no formula from a number of keys and a rate, but an advice: 20 bits a
 * key, which give 6.7e-5.
 *
 * Worked example: 100,000 bits and 40 keys set 560 positions. The highest of
 * those in tests/vectors/gozero-sparse is 99,670, so the string has 99,670 / 8 + 1
 * = 12,459 bytes; bits 99,672 to 99,999 are not there, and read as 0.
 *
 * Source: go-zero core/bloom of August 2026, unchanged since its first version;
 * checked against strings that it wrote into a Redis.
 */
#include "dialect/dialect.h"

#include "hash/murmur3.h"

#define K        14
#define ADVICE   20                  /* bits a key */
#define BITS_MAX ((uint64_t)1 << 32) /* of a Redis string */

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    struct seen_murmur3 s;
    seen_murmur3_begin(&s, key, len, 0);
    d->h[0] = s.h1;
    d->h[1] = s.h2;
    d->h[2] = s.len;
    memcpy(d->tail, s.tail, sizeof d->tail);
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    struct seen_murmur3 s = {.h1 = d->h[0], .h2 = d->h[1], .len = d->h[2]};
    memcpy(s.tail, d->tail, sizeof s.tail);
    for (; from < to; from++)
        *pos++ = seen_modulo(seen_murmur3_end_with(&s, (uint8_t)from).lo,
                             &p->modulo);
}

#define ORDER    SEEN_ORDER_HIGH_FIRST
#define TOGETHER 2
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "murmur3-128 x 14",
                                          .hash_bits = 128,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

static seen_status check_bits(const seen_spec *spec, uint64_t bits,
                              seen_error *e)
{
    if (spec->hashes && spec->hashes != K)
        return seen_fail(
            e, SEEN_INVALID, "hashes",
            "hashes %u: expected 14, which this dialect always has",
            spec->hashes);
    if (spec->bits_per_key != 0) return seen_not_per_key(spec, e);
    if (bits <= BITS_MAX) return SEEN_OK;
    const char *field = spec->bits ? "bits" : "items";
    return seen_fail(
        e, SEEN_INVALID, field,
        "%s %" PRIu64
        ": expected at most 2^32 bits, 20 a key: a Redis string has no more",
        field, spec->bits ? spec->bits : spec->items);
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    uint64_t bits = spec->bits;
    if (!bits && !spec->items)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits: expected, or keys for 20 bits each");
    if (!bits)
        bits = spec->items < BITS_MAX ? spec->items * ADVICE : UINT64_MAX;
    if (check_bits(spec, bits, e) != SEEN_OK) return SEEN_INVALID;
    seen_foreign_one(f, bits, K, (bits + 7) / 8);
    if (spec->fpp > 0 && spec->items) {
        double fpp = seen_fpp_bloom((double)spec->items, (double)bits, K);
        if (fpp > spec->fpp)
            return seen_fail(e, SEEN_INVALID, "fpp",
                             "fpp %g: these bits give %.2g, and this dialect "
                             "has no formula from the rate: expected more bits",
                             spec->fpp, fpp);
    }
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    if (!spec->bits)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits: expected: the string does not say them");
    if (check_bits(spec, spec->bits, e) != SEEN_OK) return SEEN_INVALID;
    uint64_t bytes = (spec->bits + 7) / 8, unused = bytes * 8 - spec->bits;
    if (len == bytes + 1 && buf[len - 1] == '\n')
        return seen_corrupt(e,
                            "a newline at offset %zu, behind the bits, as "
                            "redis-cli prints one: cut it off",
                            len - 1);
    if (len > bytes ||
        (len == bytes && buf[len - 1] & (uint8_t)((1 << unused) - 1)))
        return seen_corrupt(
            e,
            "bits at or beyond bit %" PRIu64
            ": expected that all are below the number of bits given",
            spec->bits);
    seen_foreign_one(f, spec->bits, K, bytes);
    f->links[0].at = len ? (uint8_t *)(uintptr_t)buf : NULL;
    f->links[0].stored = len;
    return SEEN_OK;
}

/* As long as the highest bit needs. */
static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    *len = (size_t)l->bytes;
    while (*len && !l->at[*len - 1])
        --*len;
    if (to && *len) memcpy(to, l->at, *len);
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_gozero = {
    .facts = {.name = "gozero",
              .system = "go-zero core/bloom (Go, a Redis string)",
              .needs = "bits",
              .weakness = "k is 14 whatever the size; crafted keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .read = read,
    .write = write,
};
