/*
 * dialect/kevburnsjr.c - kevburnsjr/bloomfilter (formerly httpimp/bloomfilter),
 * and the Redis list of such filters that feeds keep for a user.
 *
 *     words of 32 bits, big-endian; m = 32 * words; k is not stored
 *
 *     x = a mod m;  k times: position x, then x = (x + b mod 2^32) mod m
 *
 * a and b are FNV-1a of 32 bits with a mix behind it, from two seeds. The sum
 * wraps at 2^32 before the modulo, unlike in bloomfilter.js, from which this was
 * ported: the two agree only where m is a power of two.
 *
 * From n and p: m = ceil(-n ln p / (ln 2)^2), k = ceil(ln 2 * m / n), then m up to
 * a multiple of 32. Worked example: 1000 at 0.001: 14,378 bits, k = 10, 450 words,
 * m = 14,400.
 *
 * The list, `exposure-list`: what a user has been shown, newest filter first, at
 * most five, each an element
 *
 *     count :: base64 of the filter's bytes          300::AAIikOIHCAhKoAUg...
 *
 * in a file one on a line. A key is in if any filter has it. It goes into the
 * newest, whose count rises if that one did not have it; once it has as many as
 * it was made for, a new one begins and the oldest of five goes. (The services
 * that do this add ids in tens: a filter is left when it could not take ten more
 * than it was made for, which is when it has its number.)
 *
 * Source: the Go package of October 2018 and the public snippet that keeps lists
 * of it in Redis.
 */
#include "dialect/dialect.h"

#include "base/base64.h"
#include "hash/fnv.h"

#include <math.h>

#define SEED_B 1576284489u
#define BITS_MAX                                                               \
    ((uint64_t)0xffffffe0u) /* a number of 32 bits in the Go code */
#define LINKS_MAX 5         /* filters in a list */
#define UNKNOWN                                                                \
    "hashes: expected, or keys and a rate: the bytes do not say them"

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = seen_fnv1a_32_mixed(key, len, 0);
    d->h[1] = seen_fnv1a_32_mixed(key, len, SEED_B);
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    for (; from < to; from++) {
        uint64_t x = seen_modulo(d->h[0], &p->modulo);
        *pos++ = x;
        d->h[0] = (uint32_t)(x + d->h[1]);
    }
}

#define ORDER SEEN_ORDER_BIG_32
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "fnv-1a-32, mixed, twice",
                                          .hash_bits = 64,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

/* m and k: from n and p, or as given. m may stay 0. */
static seen_status size(const seen_spec *spec, uint64_t *bits, uint32_t *k,
                        seen_error *e)
{
    if (spec->bits_per_key != 0) return seen_not_per_key(spec, e);
    *bits = spec->bits;
    *k = spec->hashes;
    if (spec->items && spec->fpp > 0) {
        double n = (double)spec->items;
        double m = ceil(-1 * n * log(spec->fpp) / (log(2) * log(2)));
        if (!(m <= (double)BITS_MAX))
            return seen_fail(e, SEEN_INVALID, "items",
                             "items %" PRIu64
                             ": takes 2^32 bits or more: expected fewer keys "
                             "or a higher rate",
                             spec->items);
        uint32_t best = (uint32_t)ceil(log(2) * m / n);
        if (spec->hashes && spec->hashes != best)
            return seen_not_given(spec, "hashes", e);
        *k = best;
        *bits = (uint64_t)m;
    }
    if (*bits > BITS_MAX)
        return seen_fail(
            e, SEEN_INVALID, "bits",
            "bits %" PRIu64 ": expected below 2^32 in this dialect", *bits);
    *bits = (*bits + 31) / 32 * 32;
    if (spec->bits && (spec->bits + 31) / 32 * 32 != *bits)
        return seen_not_given(spec, "bits", e);
    if (*k > SEEN_POSITIONS_MAX)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected at most 255", *k);
    return SEEN_OK;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    uint64_t bits;
    uint32_t k;
    if (!(spec->items && spec->fpp > 0) && !(spec->bits && spec->hashes))
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected keys and a rate, or bits and hashes");
    if (size(spec, &bits, &k, e) != SEEN_OK) return SEEN_INVALID;
    seen_foreign_one(f, bits, k, bits / 8);
    return SEEN_OK;
}

static seen_status plan_list(const seen_spec *spec, struct seen_foreign *f,
                             seen_error *e)
{
    if (!spec->items || !(spec->fpp > 0))
        return seen_needs_keys_and_rate(spec, e);
    seen_status status = plan(spec, f, e);
    f->links[0].capacity = spec->items;
    f->links[0].fpp = spec->fpp;
    return status;
}

/* ---- Bytes: one filter -------------------------------------------------- */

/* The last few bytes, if they are no word, count for nothing. */
static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    uint64_t bits;
    uint32_t k;
    if (!spec->hashes && !(spec->items && spec->fpp > 0))
        return seen_fail(e, SEEN_INVALID, "hashes", UNKNOWN);
    if (size(spec, &bits, &k, e) != SEEN_OK) return SEEN_INVALID;
    uint64_t bytes = len / 4 * 4;
    if (bytes == 0 || bytes * 8 > BITS_MAX)
        return seen_corrupt(
            e, "%zu bytes: expected at least 4, and fewer than 2^32 bits", len);
    if (bits && bits != bytes * 8) return seen_check_told(bytes, bits / 8, e);
    seen_foreign_one(f, bytes * 8, k, bytes);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = bytes;
    f->common.plan.items = spec->items;
    f->common.plan.fpp = spec->fpp;
    return SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    if (f->count != 1) return SEEN_MISMATCH;
    *len = (size_t)f->links[0].bytes;
    if (to) memcpy(to, f->links[0].at, *len);
    return SEEN_OK;
}

/* ---- Bytes: a list ------------------------------------------------------ */

struct element {
    uint64_t count;
    const char *text; /* base64 */
    size_t len;
    size_t bytes;
};

/* The element at *at, which moves behind it and its end of line. */
static bool next_element(const char *buf, size_t len, size_t *at,
                         struct element *e)
{
    size_t i = *at, digits = i;
    for (e->count = 0; i < len && buf[i] >= '0' && buf[i] <= '9'; i++) {
        if (e->count > UINT64_MAX / 10 - 1) return false;
        e->count = e->count * 10 + (uint64_t)(buf[i] - '0');
    }
    bool whole = i > digits && (buf[digits] != '0' || i == digits + 1);
    if (!whole || len - i < 2 || buf[i] != ':' || buf[i + 1] != ':')
        return false;
    e->text = buf + i + 2;
    const char *end = memchr(e->text, '\n', len - i - 2);
    e->len = end ? (size_t)(end - e->text) : len - i - 2;
    *at = i + 2 + e->len + (end != NULL);
    return seen_base64_check(e->text, e->len, false, &e->bytes) &&
           e->bytes >= 4 && e->bytes % 4 == 0 &&
           (uint64_t)e->bytes * 8 <= BITS_MAX;
}

/* How many there are; 0 if that is no list, or a list of more than five. */
static uint32_t read_elements(const uint8_t *buf, size_t len,
                              struct element elements[LINKS_MAX])
{
    uint32_t n = 0;
    for (size_t at = 0; at < len; n++)
        if (n == LINKS_MAX ||
            !next_element((const char *)buf, len, &at, &elements[n]))
            return 0;
    return n;
}

static bool sniff_list(const uint8_t *buf, size_t len)
{
    struct element elements[LINKS_MAX];
    return read_elements(buf, len, elements) > 0;
}

static seen_status read_list(const seen_spec *spec, const uint8_t *buf,
                             size_t len, struct seen_foreign *f, seen_error *e)
{
    struct element elements[LINKS_MAX];
    uint64_t bits;
    uint32_t k;
    if (!spec->hashes && !(spec->items && spec->fpp > 0))
        return seen_fail(e, SEEN_INVALID, "hashes", UNKNOWN);
    if (size(spec, &bits, &k, e) != SEEN_OK) return SEEN_INVALID;
    uint32_t n = read_elements(buf, len, elements);
    if (n == 0)
        return seen_corrupt(
            e, "not a list: expected one to five lines count::base64");
    if (seen_foreign_room(f, n) != SEEN_OK) return SEEN_NOMEM;
    f->count = n;
    f->counted = true;
    f->common.plan.items = spec->items;
    f->common.plan.fpp = spec->fpp;
    for (uint32_t i = 0; i < n; i++) {
        const struct element *el = &elements[n - 1 - i]; /* oldest first here */
        if (bits && bits != (uint64_t)el->bytes * 8)
            return seen_check_told(el->bytes, bits / 8, e);
        if (el->bytes != elements[0].bytes)
            return seen_corrupt(
                e, "filters of %zu and %zu bytes: expected one length",
                elements[0].bytes, el->bytes);
        f->links[i] = (struct seen_link){
            .bytes = el->bytes,
            .place = seen_place_of((uint64_t)el->bytes * 8, k, 0),
            .items = el->count,
            .capacity = spec->items,
            .fpp = spec->fpp};
        if (el->count > UINT64_MAX - f->common.items)
            return seen_corrupt(e, "counts beyond 2^64");
        f->common.items += el->count;
    }
    return SEEN_OK;
}

static void fill_list(struct seen_foreign *f, const uint8_t *buf, size_t len)
{
    struct element elements[LINKS_MAX];
    uint32_t n = read_elements(buf, len, elements);
    for (uint32_t i = 0; i < n; i++)
        seen_base64_decode(elements[n - 1 - i].text, elements[n - 1 - i].len,
                           false, f->links[i].at);
}

/* Decimal; how many digits. */
static size_t put_count(uint64_t count, char *to)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + count % 10);
    while (count /= 10);
    for (size_t i = 0; to && i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}

static seen_status write_list(const struct seen_foreign *f, uint8_t *to,
                              size_t *len)
{
    *len = 0;
    for (uint32_t i = f->count; i-- > 0;) {
        const struct seen_link *l = &f->links[i];
        char *text = to ? (char *)to + *len : NULL;
        size_t digits = put_count(l->items, text);
        size_t letters = (size_t)seen_base64_letters(l->bytes);
        if (text) {
            memcpy(text + digits, "::", 2);
            seen_base64_encode(l->at, (size_t)l->bytes, false,
                               text + digits + 2);
            text[digits + 2 + letters] = '\n';
        }
        *len += digits + 2 + letters + 1;
    }
    return SEEN_OK;
}

/* ---- A list grows ------------------------------------------------------- */

static seen_status grow(const struct seen_foreign *f, struct seen_link *next)
{
    const struct seen_link *newest = &f->links[f->count - 1];
    if (!newest->capacity || newest->items < newest->capacity) return SEEN_OK;
    *next = *newest;
    next->items = 0;
    return SEEN_OK;
}

static const struct seen_foreign_rules list_rules = {.grow = grow,
                                                     .links_max = LINKS_MAX};

/* ---- Rows --------------------------------------------------------------- */

const struct seen_dialect seen_dialect_kevburnsjr = {
    .facts = {.name = "kevburnsjr",
              .system = "kevburnsjr/bloomfilter, httpimp/bloomfilter (Go)",
              .needs = "hashes, or items and fpp",
              .weakness = "32-bit positions that depend on each other; crafted "
                          "keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_VIEW | SEEN_INT_BIG},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_exposure_list = {
    .facts = {.name = "exposure-list",
              .system = "lists of count::base64 kevburnsjr filters (Go, Redis)",
              .needs = "items and fpp, or hashes",
              .weakness =
                  "as kevburnsjr; five filters have five times the rate "
                  "of one",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_INT_BIG |
                     SEEN_REFRESHES},
    .scheme = &scheme,
    .rules = &list_rules,
    .plan = plan_list,
    .sniff = sniff_list,
    .read = read_list,
    .fill = fill_list,
    .write = write_list,
};
