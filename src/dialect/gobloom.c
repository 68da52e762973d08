/*
 * dialect/gobloom.c - riobard/go-bloom, the filter of go-shadowsocks2.
 *
 *     position i = (x + i * y) mod m       x = FNV-1, y = FNV-1a, 64 bits
 *
 * A slice of bytes and nothing else: m follows from its length, k has to be
 * known. From n and p:
 *
 *     kf = -ln p * log2 e          k = trunc(kf)
 *     bytes = trunc(n * kf * log2 e / 8),   m = 8 * bytes
 *
 * k is cut off, not rounded, and so is the size: at 1 % k is 6 where 7 would be
 * best. Worse, the two hashes are nearly the same function (hash/fnv.c), so that
 * positions of short keys move together: 55 of the 1000 strangers of
 * tests/vectors/gobloom are let through, at a promise of 10. That is how the
 * original answers, so it is how this answers.
 *
 * Worked example: n = 1000, p = 0.01. kf = 6.64, k = 6; 9585 bits are 1198 bytes,
 * m = 9584. For p of a half and more k is 0, and every key is "maybe".
 *
 * Source: riobard/go-bloom of June 2020, with the pair of hashes that its README
 * and go-shadowsocks2 give it.
 */
#include "dialect/dialect.h"

#include "hash/fnv.h"
#include "plan/sizing.h"

#include <math.h>

#define LOG2_E 1.44269504088896340736

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = seen_fnv1_64(key, len);
    d->h[1] = seen_fnv1a_64(key, len);
}

#define ORDER     SEEN_ORDER_LOW_FIRST
#define POSITIONS seen_double_hashing
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "fnv-1 and fnv-1a, 64",
                                          .hash_bits = 64,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = seen_double_hashing,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

/* Bytes and k: from n and p, or as given. */
static seen_status size(const seen_spec *spec, uint64_t *bytes, uint32_t *k,
                        seen_error *e)
{
    if (spec->bits_per_key != 0) return seen_not_per_key(spec, e);
    if (spec->items && spec->fpp > 0) {
        double kf = -log(spec->fpp) * LOG2_E;
        double mf = (double)spec->items * kf * LOG2_E;
        if (!(mf < (double)SEEN_MAX_BITS)) return seen_spec_too_large(spec, e);
        *k = (uint32_t)kf;
        *bytes = (uint64_t)(mf / 8);
        if (spec->hashes && spec->hashes != *k)
            return seen_not_given(spec, "hashes", e);
        if (spec->bits && spec->bits / 8 != *bytes)
            return seen_not_given(spec, "bits", e);
    } else {
        *k = spec->hashes;
        *bytes = spec->bits / 8;
    }
    if (*k > SEEN_POSITIONS_MAX)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected at most 255", *k);
    return SEEN_OK;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    uint64_t bytes;
    uint32_t k;
    bool wished = spec->items && spec->fpp > 0;
    if (!wished && !(spec->bits && spec->hashes))
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected keys and a rate, or bits and hashes");
    if (size(spec, &bytes, &k, e) != SEEN_OK) return SEEN_INVALID;
    if (bytes == 0)
        return seen_fail(
            e, SEEN_INVALID, "items",
            "items %" PRIu64
            ": takes less than a byte: expected more keys or a lower rate",
            spec->items);
    seen_foreign_one(f, bytes * 8, k, bytes);
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    uint64_t bytes;
    uint32_t k;
    if (!spec->hashes && !(spec->items && spec->fpp > 0))
        return seen_fail(
            e, SEEN_INVALID, "hashes",
            "hashes: expected, or keys and a rate: the bytes do not say them");
    if (size(spec, &bytes, &k, e) != SEEN_OK) return SEEN_INVALID;
    if (len == 0) return seen_corrupt(e, "empty: expected at least a byte");
    if (bytes && bytes != len) return seen_check_told(len, bytes, e);
    seen_foreign_one(f, (uint64_t)len * 8, k, len);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = len;
    f->common.plan.items = spec->items;
    f->common.plan.fpp = spec->fpp;
    return SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    *len = (size_t)f->links[0].bytes;
    if (to) memcpy(to, f->links[0].at, *len);
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_gobloom = {
    .facts = {.name = "gobloom",
              .system = "riobard/go-bloom, go-shadowsocks2 (Go)",
              .needs = "hashes, or items and fpp",
              .weakness = "FNV-1 and FNV-1a move together: five times the "
                          "promised rate for short keys; k is cut off, not "
                          "rounded; crafted keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .read = read,
    .write = write,
};
