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

static const char *plan(const seen_spec *spec, struct seen_foreign *f)
{
    if (spec->bits || spec->hashes || spec->bits_per_key != 0)
        return "bits, hashes and bits_per_key follow from items and fpp in "
               "this dialect";
    if (!spec->items || !(spec->fpp > 0)) return "items and fpp are needed";
    double n = (double)spec->items;
    double m = fabs(ceil(n * log(spec->fpp) / pow(log(2), 2)));
    double k = ceil(log(2) * m / n);
    if (!(m <= (double)SEEN_MAX_BITS)) return "items take more than 2^48 bits";
    if (m < 1) return "items at this fpp take less than a bit";
    if (k > SEEN_MOST_POSITIONS) return "fpp takes more than 255 hashes";
    set_link(f, (uint64_t)m, (uint32_t)k, spec->items, spec->fpp);
    return NULL;
}

/* ---- Bytes -------------------------------------------------------------- */

static const char *check(const uint8_t *buf, size_t len)
{
    if (len < HEAD) return "is shorter than its header of 48 bytes";
    if (seen_get_le64(buf) != VERSION)
        return "has flags other than 1, its version";
    uint64_t k = seen_get_le64(buf + 24), m = seen_get_le64(buf + 32);
    double p = seen_get_le_double(buf + 16);
    if (!(p > 0 && p < 1)) return "has a rate that is not above 0 and below 1";
    if (k == 0 || k > SEEN_MOST_POSITIONS)
        return "has a k that is 0 or above 255";
    if (m == 0 || m > SEEN_MAX_BITS) return "has an m that is 0 or above 2^48";
    return (m + 63) / 64 * 8 > len - HEAD ? "is shorter than its m says" : NULL;
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, const char **why)
{
    (void)spec;
    *why = check(buf, len);
    if (*why) return SEEN_CORRUPT;
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
    return !check(buf, len);
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
