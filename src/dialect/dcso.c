/*
 * dialect/dcso.c - DCSO/bloom, the filter files of threat intelligence.
 *
 *     0   8  1: the version, in the low byte
 *     8   8  n, the keys that it was made for
 *     16  8  p, a double
 *     24  8  k
 *     32  8  m
 *     40  8  N, adds that changed something
 *     48     words of 64 bits, ceil(m / 64); then data of the owner, to the end
 *     all little-endian
 *
 *     h = FNV-1 of the key mod P;  k times: h = (h * g mod 2^64) mod P, position
 *     h mod m                            P = 2^64 - 59, g = 2^64 - 1469
 *
 * From n and p: m = |ceil(n ln p / (ln 2)^2)|, the ceiling of a negative number, so
 * one bit less than others have; k = ceil(ln 2 * m / n). Worked example: 1000 at 1 %:
 * m = 9585, k = 7, 150 words, 1248 bytes and what data there is.
 *
 * The program `bloom --gzip` packs the same bytes with gzip; unpacking them is up
 * to the caller.
 *
 * Source: DCSO/bloom 0.2.4.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "hash/fnv.h"
#include "plan/sizing.h"

#include <math.h>

#define HEAD    48
#define VERSION 1
#define P       0xffffffffffffffc5u
#define G       0xfffffffffffffa43u

/* ---- Scheme ------------------------------------------------------------- */

static uint64_t mod_p(uint64_t x)
{
    return x >= P ? x - P : x;
}

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = mod_p(seen_fnv1_64(key, len));
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    uint64_t h = d->h[0];
    for (; from < to; from++) {
        h = mod_p(h * G);
        *pos++ = seen_modulo(h, &p->modulo);
    }
    d->h[0] = h;
}

#define ORDER SEEN_ORDER_LOW_FIRST
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "fnv-1, 64",
                                          .hash_bits = 64,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

static void set_link(struct seen_foreign *f, uint64_t m, uint32_t k, uint64_t n,
                     double p)
{
    seen_foreign_one(f, m, k, (m + 63) / 64 * 8);
    f->links[0].capacity = f->common.plan.items = n;
    f->links[0].fpp = f->common.plan.fpp = p;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return seen_derived(spec, "the number of keys and the rate", e);
    if (!spec->items || !(spec->fpp > 0))
        return seen_needs_keys_and_rate(spec, e);
    double n = (double)spec->items;
    double m = fabs(ceil(n * log(spec->fpp) / pow(log(2), 2)));
    double k = ceil(log(2) * m / n);
    if (!(m <= (double)SEEN_MAX_BITS)) return seen_spec_too_large(spec, e);
    if (m < 1)
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: takes less than a bit for %" PRIu64
                         " keys: expected a lower rate",
                         spec->fpp, spec->items);
    if (k > SEEN_POSITIONS_MAX)
        return seen_fail(
            e, SEEN_INVALID, "fpp",
            "fpp %g: takes %.0f hashes: expected a rate that takes at most 255",
            spec->fpp, k);
    set_link(f, (uint64_t)m, (uint32_t)k, spec->items, spec->fpp);
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static seen_status check(const uint8_t *buf, size_t len, seen_error *e)
{
    if (len < HEAD) return seen_short_head(len, HEAD, e);
    if (seen_get_le64(buf) != VERSION)
        return seen_corrupt(
            e, "flags %" PRIu64 " at offset 0: expected 1, the version",
            seen_get_le64(buf));
    uint64_t k = seen_get_le64(buf + 24), m = seen_get_le64(buf + 32);
    double p = seen_get_le_double(buf + 16);
    if (!(p > 0 && p < 1))
        return seen_corrupt(
            e, "rate %g at offset 16: expected above 0 and below 1", p);
    if (k == 0 || k > SEEN_POSITIONS_MAX)
        return seen_corrupt(e, "k %" PRIu64 " at offset 24: expected 1 to 255",
                            k);
    if (m == 0 || m > SEEN_MAX_BITS)
        return seen_corrupt(e, "m %" PRIu64 " at offset 32: expected 1 to 2^48",
                            m);
    uint64_t bytes = (m + 63) / 64 * 8;
    return bytes > len - HEAD ? seen_check_length(len - HEAD, bytes, e)
                              : SEEN_OK;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (check(buf, len, e) != SEEN_OK) return SEEN_CORRUPT;
    set_link(f, seen_get_le64(buf + 32), (uint32_t)seen_get_le64(buf + 24),
             seen_get_le64(buf + 8), seen_get_le_double(buf + 16));
    struct seen_link *l = &f->links[0];
    l->at = (uint8_t *)(uintptr_t)(buf + HEAD);
    l->stored = l->bytes;
    l->items = f->common.items = seen_get_le64(buf + 40);
    f->counted = true;
    f->data_len = len - HEAD - l->bytes;
    if (f->data_len) f->data = l->at + l->bytes;
    return SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    return check(buf, len, NULL) == SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    *len = HEAD + (size_t)(l->bytes + f->data_len);
    if (!to) return SEEN_OK;
    seen_put_le64(to, VERSION);
    seen_put_le64(to + 8, l->capacity);
    seen_put_le_double(to + 16, l->fpp);
    seen_put_le64(to + 24, l->place.hashes);
    seen_put_le64(to + 32, l->place.bits);
    seen_put_le64(to + 40, f->common.items);
    memcpy(to + HEAD, l->at, (size_t)l->bytes);
    if (f->data_len) memcpy(to + HEAD + l->bytes, f->data, (size_t)f->data_len);
    return SEEN_OK;
}

const struct seen_dialect seen_dialect_dcso = {
    .facts = {.name = "dcso",
              .system = "DCSO/bloom (Go, and its program bloom)",
              .weakness = "FNV-1 and a fixed chain of multiplications: crafted "
                          "keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff,
    .read = read,
    .write = write,
};
