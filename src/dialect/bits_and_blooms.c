/*
 * dialect/bits_and_blooms.c - bits-and-blooms/bloom v3, formerly willf/bloom, in
 * both of its encodings.
 *
 *     0   8  m                               {"m":9586,"k":7,"b":"AAAAAAAAJXJL..."}
 *     8   8  k
 *     16  8  length of the bitset, m         b: base64, URL alphabet, of everything
 *     24     words of 64 bits                from offset 16 on
 *     all big-endian
 *
 *     position i = v[i mod 2] + i * w,  w = v2 for i mod 4 = 0, 3 and v3 for 1, 2
 *
 * v0, v1 are MurmurHash3 of the key and v2, v3 that of the key and a byte 1, all
 * modulo m, which is not rounded.
 *
 * From n and p: m = ceil(-n ln p / (ln 2)^2), k = ceil(ln 2 * m / n). Worked example:
 * 1000 at 1 %: m = 9586, k = 7; 150 words, 1224 bytes.
 *
 * The JSON is read with its members in any order and white space between them,
 * and with either alphabet of base64; it is written as Go does.
 *
 * Source: v3 of October 2025.
 */
#include "dialect/dialect.h"

#include "base/base64.h"
#include "base/bytes.h"
#include "hash/murmur3.h"
#include "plan/sizing.h"

#include <math.h>

#define HEAD 24

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    struct seen_murmur3 s;
    seen_murmur3_begin(&s, key, len, 0);
    seen_hash a = seen_murmur3_end(&s), b = seen_murmur3_end_with(&s, 1);
    d->h[0] = a.lo;
    d->h[1] = a.hi;
    d->h[2] = b.lo;
    d->h[3] = b.hi;
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    for (; from < to; from++) {
        uint64_t w = (from + 1) & 2 ? d->h[3] : d->h[2];
        *pos++ = seen_modulo(d->h[from & 1] + from * w, &p->modulo);
    }
}

#define ORDER SEEN_ORDER_BIG_64
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "murmur3-128, twice",
                                          .hash_bits = 128,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

static uint64_t bytes_for(uint64_t bits)
{
    return (bits + 63) / 64 * 8;
}

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    double m = (double)spec->bits, k = spec->hashes;
    if (spec->bits_per_key != 0) return seen_not_per_key(spec, e);
    if (spec->items && spec->fpp > 0) {
        if (spec->bits || spec->hashes)
            return seen_derived(spec, "the number of keys and the rate", e);
        double n = (double)spec->items;
        m = ceil(-1 * n * log(spec->fpp) / (log(2) * log(2)));
        k = ceil(log(2) * m / n);
    } else if (!spec->bits || !spec->hashes) {
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected keys and a rate, or bits and hashes");
    }
    if (!(m <= (double)SEEN_MAX_BITS)) return seen_spec_too_large(spec, e);
    if (k > SEEN_POSITIONS_MAX)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %.0f: expected at most 255", k);
    uint64_t bits = m < 1 ? 1 : (uint64_t)m;
    seen_foreign_one(f, bits, k < 1 ? 1 : (uint32_t)k, bytes_for(bits));
    return SEEN_OK;
}

/* ---- Binary ------------------------------------------------------------- */

/* m, k and length, and so many bytes of words. */
static seen_status check(uint64_t m, uint64_t k, uint64_t length,
                         uint64_t bytes, seen_error *e)
{
    if (m == 0 || m > SEEN_MAX_BITS)
        return seen_corrupt(e, "m %" PRIu64 ": expected 1 to 2^48", m);
    if (k == 0 || k > SEEN_POSITIONS_MAX)
        return seen_corrupt(e, "k %" PRIu64 ": expected 1 to 255", k);
    if (length != m)
        return seen_corrupt(
            e, "a bitset of %" PRIu64 " bits: expected m, %" PRIu64, length, m);
    return seen_check_length(bytes, bytes_for(m), e);
}

static seen_status check_binary(const uint8_t *buf, size_t len, seen_error *e)
{
    if (len < HEAD) return seen_short_head(len, HEAD, e);
    return check(seen_get_be64(buf), seen_get_be64(buf + 8),
                 seen_get_be64(buf + 16), len - HEAD, e);
}

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (check_binary(buf, len, e) != SEEN_OK) return SEEN_CORRUPT;
    seen_foreign_one(f, seen_get_be64(buf), (uint32_t)seen_get_be64(buf + 8),
                     len - HEAD);
    f->links[0].at = (uint8_t *)(uintptr_t)(buf + HEAD);
    f->links[0].stored = len - HEAD;
    return SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    return check_binary(buf, len, NULL) == SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    *len = HEAD + (size_t)l->bytes;
    if (!to) return SEEN_OK;
    seen_put_be64(to, l->place.bits);
    seen_put_be64(to + 8, l->place.hashes);
    seen_put_be64(to + 16, l->place.bits);
    memcpy(to + HEAD, l->at, (size_t)l->bytes);
    return SEEN_OK;
}

/* ---- JSON --------------------------------------------------------------- */

struct json {
    uint64_t m, k;
    const char *text; /* base64 */
    size_t len;
    bool url;
};

static size_t skip_space(const char *c, size_t len, size_t at)
{
    while (at < len &&
           (c[at] == ' ' || c[at] == '\t' || c[at] == '\n' || c[at] == '\r'))
        at++;
    return at;
}

/* The character `wanted` behind white space; moves behind it. */
static bool take(const char *c, size_t len, size_t *at, char wanted)
{
    *at = skip_space(c, len, *at);
    if (*at == len || c[*at] != wanted) return false;
    ++*at;
    return true;
}

static bool take_number(const char *c, size_t len, size_t *at, uint64_t *out)
{
    size_t start = *at = skip_space(c, len, *at);
    for (*out = 0; *at < len && c[*at] >= '0' && c[*at] <= '9'; ++*at) {
        if (*out > UINT64_MAX / 10 - 1) return false;
        *out = *out * 10 + (uint64_t)(c[*at] - '0');
    }
    return *at > start;
}

static bool take_text(const char *c, size_t len, size_t *at, struct json *j)
{
    if (!take(c, len, at, '"')) return false;
    j->text = c + *at;
    const char *end = memchr(j->text, '"', len - *at);
    if (!end) return false;
    j->len = (size_t)(end - j->text);
    *at += j->len + 1;
    return true;
}

/* "m", "k" or "b", and its value; `found` remembers which came. */
static bool take_member(const char *c, size_t len, size_t *at, struct json *j,
                        uint32_t *found)
{
    if (!take(c, len, at, '"') || len - *at < 2 || c[*at + 1] != '"')
        return false;
    char name = c[*at];
    *at += 2;
    uint32_t bit = name == 'm' ? 1 : name == 'k' ? 2 : name == 'b' ? 4 : 0;
    if (!bit || *found & bit || !take(c, len, at, ':')) return false;
    *found |= bit;
    if (name == 'b') return take_text(c, len, at, j);
    return take_number(c, len, at, name == 'm' ? &j->m : &j->k);
}

static seen_status read_json_text(const uint8_t *buf, size_t len,
                                  struct json *j, seen_error *e)
{
    const char *c = (const char *)buf;
    size_t at = 0, bytes;
    uint32_t found = 0;
    bool ok = take(c, len, &at, '{');
    for (int i = 0; ok && i < 3; i++)
        ok = (i == 0 || take(c, len, &at, ',')) &&
             take_member(c, len, &at, j, &found);
    ok = ok && take(c, len, &at, '}') && skip_space(c, len, at) == len;
    if (!ok)
        return seen_corrupt(
            e, "not a JSON object of m, k and b: wrong at offset %zu", at);
    j->url = true;
    if (!seen_base64_check(j->text, j->len, true, &bytes)) {
        j->url = false;
        if (!seen_base64_check(j->text, j->len, false, &bytes))
            return seen_corrupt(e, "b is not base64");
    }
    if (bytes < 8)
        return seen_corrupt(
            e, "b has %zu bytes: expected a length of 8, and the bits", bytes);
    uint8_t head[9];
    seen_base64_decode(j->text, 12, j->url, head);
    return check(j->m, j->k, seen_get_be64(head), bytes - 8, e);
}

static seen_status read_json(const seen_spec *spec, const uint8_t *buf,
                             size_t len, struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    struct json j = {0};
    if (read_json_text(buf, len, &j, e) != SEEN_OK) return SEEN_CORRUPT;
    seen_foreign_one(f, j.m, (uint32_t)j.k, bytes_for(j.m));
    f->chain.options = !j.url;
    return SEEN_OK;
}

static bool sniff_json(const uint8_t *buf, size_t len)
{
    struct json j = {0};
    return read_json_text(buf, len, &j, NULL) == SEEN_OK;
}

/* The length comes before the words, and 8 is no multiple of 3: groups of
 * letters are taken apart and put together again. */
static void fill_json(struct seen_foreign *f, const uint8_t *buf, size_t len)
{
    struct json j = {0};
    struct seen_link *l = &f->links[0];
    read_json_text(buf, len, &j, NULL);
    uint64_t to = 0;
    for (size_t at = 8; at < j.len; at += 4) { /* 8 letters are 6 bytes */
        uint8_t three[3] = {0};
        seen_base64_decode(j.text + at, 4, j.url, three);
        size_t n = at + 4 < j.len          ? 3
                   : j.text[at + 2] == '=' ? 1
                   : j.text[at + 3] == '=' ? 2
                                           : 3;
        for (size_t i = at == 8 ? 2 : 0; i < n; i++)
            l->at[to++] = three[i];
    }
}

static size_t put_number(char *to, uint64_t x)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + x % 10);
    while (x /= 10);
    for (size_t i = 0; to && i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}

static size_t put_text(char *to, const char *text)
{
    size_t len = strlen(text);
    if (to) memcpy(to, text, len);
    return len;
}

/* The length and the words, as if they lay side by side. */
static void put_base64(const struct seen_link *l, bool url, char *to)
{
    uint8_t head[9];
    seen_put_be64(head, l->place.bits);
    head[8] = l->at[0];
    seen_base64_encode(head, 9, url, to);
    seen_base64_encode(l->at + 1, (size_t)l->bytes - 1, url, to + 12);
}

static seen_status write_json(const struct seen_foreign *f, uint8_t *to,
                              size_t *len)
{
    const struct seen_link *l = &f->links[0];
    char *c = (char *)to;
    size_t n = put_text(c, "{\"m\":");
    n += put_number(c ? c + n : NULL, l->place.bits);
    n += put_text(c ? c + n : NULL, ",\"k\":");
    n += put_number(c ? c + n : NULL, l->place.hashes);
    n += put_text(c ? c + n : NULL, ",\"b\":\"");
    if (c) put_base64(l, !f->chain.options, c + n);
    n += (size_t)seen_base64_letters(l->bytes + 8);
    n += put_text(c ? c + n : NULL, "\"}");
    *len = n;
    return SEEN_OK;
}

/* ---- Rows --------------------------------------------------------------- */

#define WEAK "crafted keys"

const struct seen_dialect seen_dialect_bits_and_blooms = {
    .facts = {.name = "bits-and-blooms",
              .system = "bits-and-blooms/bloom, willf/bloom (Go)",
              .weakness = WEAK,
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_bits_and_blooms_json = {
    .facts = {.name = "bits-and-blooms-json",
              .system = "bits-and-blooms/bloom as JSON (Go)",
              .weakness = WEAK,
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff_json,
    .read = read_json,
    .fill = fill_json,
    .write = write_json,
};
