/*
 * dialect/parquet.c - the split block Bloom filter of Parquet and Arrow, with the
 * Thrift header that it has in a file, or the bitset alone.
 *
 *     h = XXH64 of the plain-encoded value, seed 0
 *
 *     block = high half of h, scaled to the number of blocks
 *     | word 0 | word 1 | ... | word 7 |      256 bits, one bit in each word:
 *     bit i = (low half of h * salt i) >> 27, in 32 bits
 *
 * A value is what Parquet writes for it: integers and floating point little-endian,
 * byte arrays without their length.
 *
 *     15  bytes as zigzag varint | 1c 1c 00 00 | 1c 1c 00 00 | 1c 1c 00 00 | 00
 *         field 1: numBytes        2: BLOCK      3: XXHASH     4: UNCOMPRESSED
 *
 * is the header as everybody writes it, 16 bytes for 1024. It is a Thrift struct in
 * the compact protocol, so others may add fields: they are skipped, and the
 * header comes back as it was.
 *
 * How large? The format leaves that to the writer: give `bits`. From items and fpp
 * the formula is Arrow's, bits = -8 n / ln(1 - p^(1/8)), up to a power of two.
 *
 * Source: parquet-format 2.10, Arrow; checked against filters of DuckDB 1.5.
 */
#include "dialect/dialect.h"

#include "hash/xxh64.h"

#include <math.h>

#define K         8
#define BLOCK     256                 /* bits */
#define BITS_MAX  ((uint64_t)1 << 34) /* numBytes has 31 bits */
#define ARROW_MAX ((uint64_t)1 << 30) /* 128 MiB */

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    d->h[0] = seen_xxh64(key, len, 0);
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    static const uint32_t salts[K] = {0x47b6137b, 0x44974d91, 0x8824ad5b,
                                      0xa2b7289d, 0x705495c7, 0x2df1424b,
                                      0x9efc4947, 0x5c6bfb31};
    uint64_t block = ((d->h[0] >> 32) * p->modulo.by) >> 32;
    uint32_t low = (uint32_t)d->h[0];
    for (; from < to; from++)
        *pos++ = block * BLOCK + 32 * from + (low * salts[from] >> 27);
}

#define ORDER SEEN_ORDER_LOW_FIRST
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "xxh64",
                                          .hash_bits = 64,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

static void set_link(struct seen_foreign *f, uint64_t bits)
{
    f->count = 1;
    f->links[0] = (struct seen_link){.bytes = bits / 8,
                                     .place = seen_place_of(bits, K, BLOCK)};
}

/* ---- Plan --------------------------------------------------------------- */

static seen_status plan(const seen_spec *spec, struct seen_foreign *f,
                        seen_error *e)
{
    uint64_t bits = spec->bits;
    if (spec->hashes && spec->hashes != K)
        return seen_fail(e, SEEN_INVALID, "hashes",
                         "hashes %u: expected 8, which this dialect always has",
                         spec->hashes);
    if (spec->bits_per_key != 0) return seen_not_per_key(spec, e);
    if (!bits) {
        if (!spec->items || !(spec->fpp > 0))
            return seen_fail(e, SEEN_INVALID, "bits",
                             "bits: expected, or keys and a rate");
        double wish =
            -8 * (double)spec->items / log(1 - pow(spec->fpp, 1. / 8));
        if (!(wish <= (double)ARROW_MAX))
            return seen_fail(
                e, SEEN_INVALID, "items",
                "items %" PRIu64
                ": takes more than the 128 MiB that Arrow goes to: give bits",
                spec->items);
        for (bits = BLOCK; bits < (uint64_t)wish;)
            bits *= 2;
    }
    if (bits > BITS_MAX - BLOCK)
        return seen_fail(
            e, SEEN_INVALID, "bits",
            "bits %" PRIu64 ": expected below 2^34 in this dialect", bits);
    set_link(f, (bits + BLOCK - 1) / BLOCK * BLOCK);
    return SEEN_OK;
}

/* ---- Thrift, the compact protocol ---------------------------------------- */

struct thrift {
    const uint8_t *at, *end;
    bool bad;
};

/* Types of fields; 1 and 2 are booleans, which are all in their header. */
enum {
    T_BYTE = 3,
    T_I64 = 6,
    T_DOUBLE = 7,
    T_BINARY = 8,
    T_LIST = 9,
    T_SET = 10,
    T_MAP = 11,
    T_STRUCT = 12
};

#define DEPTH_MAX 8

static uint8_t take_byte(struct thrift *t)
{
    if (t->at == t->end) t->bad = true;
    return t->bad ? 0 : *t->at++;
}

static uint64_t take_varint(struct thrift *t)
{
    uint64_t x = 0;
    for (uint32_t shift = 0; shift < 64 && !t->bad; shift += 7) {
        uint8_t byte = take_byte(t);
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return x;
    }
    t->bad = true;
    return 0;
}

static int64_t take_zigzag(struct thrift *t)
{
    uint64_t x = take_varint(t);
    return (int64_t)(x >> 1 ^ (0 - (x & 1)));
}

/* The next field of a struct: its type, 0 at the end; *id goes on. */
static uint8_t take_field(struct thrift *t, int64_t *id)
{
    uint8_t head = take_byte(t);
    if (t->bad || (head & 15) == 0) return 0;
    *id = head >> 4 ? *id + (head >> 4) : take_zigzag(t);
    return head & 15;
}

/* A header has no use for containers, so one that has some is not one. */
static void skip(struct thrift *t, uint8_t type)
{
    uint32_t depth = type == T_STRUCT; /* structs that are open */
    int64_t ids[DEPTH_MAX + 1] = {0};
    for (;;) {
        if (type >= T_BYTE && type <= T_I64) {
            type == T_BYTE ? (void)take_byte(t) : (void)take_varint(t);
        } else if (type == T_DOUBLE || type == T_BINARY) {
            uint64_t n = type == T_DOUBLE ? 8 : take_varint(t);
            if (n > (uint64_t)(t->end - t->at)) t->bad = true;
            if (!t->bad) t->at += n;
        } else if (type > T_STRUCT || (type >= T_LIST && type <= T_MAP)) {
            t->bad = true;
        }
        do {
            if (t->bad || depth == 0) return;
            type = take_field(t, &ids[depth]);
            if (!type) depth--;
        } while (!type);
        if (type != T_STRUCT) continue;
        if (depth == DEPTH_MAX) {
            t->bad = true;
            return;
        }
        ids[++depth] = 0;
    }
}

/* A union must be its first choice: BLOCK, XXHASH, UNCOMPRESSED. */
static bool first_choice(struct thrift *t)
{
    int64_t id = 0;
    uint8_t type = take_field(t, &id);
    if (type != T_STRUCT || id != 1) return false;
    skip(t, type);
    return take_field(t, &id) == 0 && !t->bad;
}

/* numBytes, and where the bitset begins. */
static seen_status read_header(const uint8_t *buf, size_t len, uint64_t *bytes,
                               size_t *head, seen_error *e)
{
    struct thrift t = {buf, buf + len, false};
    int64_t id = 0, size = -1;
    uint32_t found = 0;
    for (uint8_t type; (type = take_field(&t, &id)) && !t.bad;) {
        if (id < 1 || id > 4) {
            skip(&t, type);
            continue;
        }
        if (found & 1u << id || type != (id == 1 ? 5 : T_STRUCT))
            return seen_corrupt(
                e, "not the header of a Parquet filter: wrong at offset %zu",
                (size_t)(t.at - buf));
        found |= 1u << id;
        if (id == 1)
            size = take_zigzag(&t);
        else if (!first_choice(&t))
            return seen_corrupt(e,
                                "field %d of the header: expected a split "
                                "block filter of xxHash, uncompressed",
                                (int)id);
    }
    if (t.bad || found != 30)
        return seen_corrupt(
            e, "not the header of a Parquet filter: wrong at offset %zu",
            (size_t)(t.at - buf));
    *head = (size_t)(t.at - buf);
    if (size <= 0 || size % 32 || size > INT32_MAX)
        return seen_corrupt(
            e, "numBytes %" PRId64 ": expected a positive multiple of 32",
            size);
    *bytes = (uint64_t)size;
    return seen_check_length(len - *head, *bytes, e);
}

/* As everybody writes it; how long. */
static size_t put_header(uint64_t bytes, uint8_t *to)
{
    static const uint8_t rest[] = {0x1c, 0x1c, 0,    0, 0x1c, 0x1c, 0,
                                   0,    0x1c, 0x1c, 0, 0,    0};
    size_t n = 0;
    uint64_t x = bytes * 2; /* zigzag */
    to[n++] = 0x15;
    for (; x >= 0x80; x >>= 7)
        to[n++] = (uint8_t)(x | 0x80);
    to[n++] = (uint8_t)x;
    memcpy(to + n, rest, sizeof rest);
    return n + sizeof rest;
}

/* ---- Bytes -------------------------------------------------------------- */

static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    uint64_t bytes;
    size_t head;
    if (read_header(buf, len, &bytes, &head, e) != SEEN_OK) return SEEN_CORRUPT;
    if (head > SEEN_NOTE_MAX)
        return seen_corrupt(e, "a header of %zu bytes: expected at most 64",
                            head);
    set_link(f, bytes * 8);
    f->links[0].at = (uint8_t *)(uintptr_t)(buf + head);
    f->links[0].stored = bytes;
    f->note_len = (uint32_t)head;
    memcpy(f->note, buf, head);
    return SEEN_OK;
}

static bool sniff(const uint8_t *buf, size_t len)
{
    uint64_t bytes;
    size_t head;
    return read_header(buf, len, &bytes, &head, NULL) == SEEN_OK &&
           head <= SEEN_NOTE_MAX;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    uint8_t head[SEEN_NOTE_MAX];
    size_t n = f->note_len;
    if (n)
        memcpy(head, f->note, n);
    else
        n = put_header(l->bytes, head);
    *len = n + (size_t)l->bytes;
    if (!to) return SEEN_OK;
    memcpy(to, head, n);
    memcpy(to + n, l->at, (size_t)l->bytes);
    return SEEN_OK;
}

static seen_status read_bitset(const seen_spec *spec, const uint8_t *buf,
                               size_t len, struct seen_foreign *f,
                               seen_error *e)
{
    (void)spec;
    if (len == 0 || len % 32 || len > INT32_MAX)
        return seen_corrupt(e, "%zu bytes: expected a positive multiple of 32",
                            len);
    set_link(f, (uint64_t)len * 8);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = len;
    return SEEN_OK;
}

static seen_status write_bitset(const struct seen_foreign *f, uint8_t *to,
                                size_t *len)
{
    *len = (size_t)f->links[0].bytes;
    if (to) memcpy(to, f->links[0].at, *len);
    return SEEN_OK;
}

/* ---- Rows --------------------------------------------------------------- */

#define WEAK "crafted keys"

const struct seen_dialect seen_dialect_parquet = {
    .facts = {.name = "parquet",
              .system = "Parquet split block filter (Arrow, DuckDB ...)",
              .weakness = WEAK,
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .sniff = sniff,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_parquet_bitset = {
    .facts = {.name = "parquet-bitset",
              .system = "the same without its Thrift header",
              .weakness = WEAK,
              .can = SEEN_CAN_ADD | SEEN_CAN_VIEW},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = plan,
    .read = read_bitset,
    .write = write_bitset,
};
