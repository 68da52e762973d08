/*
 * dialect/rocksdb.c - the full filters of RocksDB's tables: FastLocalBloom
 * (format_version 5 and later) and the one before it.
 *
 *     FastLocalBloom                          before: `rocksdb-legacy`
 *     lines of 64 bytes                       lines of 64 bytes (128, 256), an odd
 *                                             number of them
 *     | ff | 00 | probes | 00 00 |            | probes | lines, 4 bytes LE |
 *
 *     h = XXPH3 of the key, 64 bits           h = LevelDB's hash, bytes of the tail
 *                                             with sign
 *     line = low half of h, scaled            line = h mod lines
 *     probe: top 9 bits of the high half,     probe: h mod bits of a line, then
 *     then times 9e3779b9                     h += h rotated right by 17
 *
 * A block of five bytes or less has no keys. A trailer that a reader does not
 * know has to let every key through.
 *
 * From n and bits per key b, which need not be whole: millibits = trunc(1000 b +
 * 0.500001), at most 100 bits; the size is n times that, up to whole lines; the
 * number of probes comes from a table. Before: b rounded, probes = trunc(0.69 b), at
 * most 30. RocksDB has no formula from a rate: fpp is taken for -ln p / (ln 2)^2 bits.
 *
 * Worked example: 1000 keys at 10 bits: 1250 bytes become 20 lines, 1280; 6 probes;
 * with its trailer the block has 1285 bytes. Before: 20 lines become 21, 1349 bytes.
 *
 * n is the number of keys after those whose hash is the one before it have been left
 * out: that is up to the caller. With optimize_filters_for_memory the size is another
 * one; such blocks are read like all others.
 *
 * Source: RocksDB 7.8.3.
 */
#include "dialect/dialect.h"

#include "base/bytes.h"
#include "hash/leveldb.h"
#include "hash/xxh64.h"

#include <math.h>

#define TRAILER        5
#define LINE           512 /* bits */
#define SEED           0xbc9f1d34u
#define FAST_MAX       0xffffffc0u /* bytes */
#define OLD_BITS_MAX   0xffff0000u /* bits */
#define OLD_PROBES_MAX 30
#define FAST           0xff
#define RIBBON         0xfe

/* ---- Schemes ------------------------------------------------------------ */

SEEN_INLINE void digest_fast(const uint8_t seed[32], const void *key,
                             size_t len, struct seen_digest *d)
{
    (void)seed;
    uint64_t h = seen_xxph3(key, len);
    d->h[0] = h & 0xffffffff;
    d->h[1] = h >> 32;
}

SEEN_INLINE void positions_fast(const struct seen_place *p,
                                struct seen_digest *d, uint32_t from,
                                uint32_t to, uint64_t *pos)
{
    uint64_t line = (d->h[0] * p->modulo.by) >> 32;
    uint32_t h = (uint32_t)d->h[1];
    for (; from < to; from++) {
        *pos++ = line * LINE + (h >> 23);
        h *= 0x9e3779b9u;
    }
    d->h[1] = h;
}

SEEN_INLINE void digest_old(const uint8_t seed[32], const void *key, size_t len,
                            struct seen_digest *d)
{
    (void)seed;
    uint32_t h = seen_leveldb_hash(key, len, SEED, true);
    d->h[0] = d->h[2] = h;
    d->h[1] = h >> 17 | h << 15;
}

SEEN_INLINE void positions_old(const struct seen_place *p,
                               struct seen_digest *d, uint32_t from,
                               uint32_t to, uint64_t *pos)
{
    uint64_t line = seen_modulo(d->h[2], &p->modulo) * p->line;
    uint32_t h = (uint32_t)d->h[0], delta = (uint32_t)d->h[1];
    for (; from < to; from++) {
        *pos++ = line + (h & (p->line - 1));
        h += delta;
    }
    d->h[0] = h;
}

#define ORDER     SEEN_ORDER_LOW_FIRST
#define POSITIONS positions_fast
#define DIGEST    digest_fast
#include "probe/fused.h"

static const struct seen_scheme scheme_fast = {.hash = "xxph3-64",
                                               .hash_bits = 64,
                                               .order = ORDER,
                                               .digest = digest_fast,
                                               .positions = positions_fast,
                                               .maybe = maybe};
static const struct seen_scheme scheme_old = {.hash = "leveldb-32, signed",
                                              .hash_bits = 32,
                                              .order = SEEN_ORDER_LOW_FIRST,
                                              .digest = digest_old,
                                              .positions = positions_old};

static void set_link(struct seen_foreign *f, uint64_t bytes, uint32_t probes,
                     uint32_t line)
{
    f->count = 1;
    f->links[0] = (struct seen_link){
        .bytes = bytes, .place = seen_place_of(bytes * 8, probes, line)};
}

/* ---- Plan --------------------------------------------------------------- */

static seen_status millibits(const seen_spec *spec, uint64_t *out,
                             seen_error *e)
{
    double b = spec->bits_per_key;
    if (spec->bits || spec->hashes)
        return seen_derived(spec, "the bits per key", e);
    if (seen_needs_per_key(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (!(b > 0)) b = -log(spec->fpp) / (log(2) * log(2));
    if (b < 0.5)
        return seen_fail(e, SEEN_INVALID, "bits_per_key",
                         "bits_per_key %.2g: expected at least 0.5: below, "
                         "RocksDB makes no filter",
                         b);
    b = b < 1 ? 1 : b >= 100 ? 100 : b;
    *out = (uint64_t)(b * 1000 + 0.500001);
    if (spec->items > FAST_MAX)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items %" PRIu64
                         ": expected below 2^32 in this dialect",
                         spec->items);
    return SEEN_OK;
}

/* Found by measurement, says RocksDB: the best for a line of 512 bits. */
static uint32_t probes_for(uint64_t milli)
{
    static const uint16_t upto[] = {2080,  3580,  5100,  6640,  8300,  10070,
                                    11720, 14001, 16050, 18300, 22001, 25501};
    for (uint32_t i = 0; i < sizeof upto / sizeof *upto; i++)
        if (milli <= upto[i]) return i + 1;
    return milli > 50000 ? 24 : (uint32_t)((milli - 1) / 2000 - 1);
}

static seen_status plan_fast(const seen_spec *spec, struct seen_foreign *f,
                             seen_error *e)
{
    uint64_t milli;
    if (millibits(spec, &milli, e) != SEEN_OK) return SEEN_INVALID;
    uint64_t bytes = (spec->items * milli + 7999) / 8000;
    if (bytes > FAST_MAX) bytes = FAST_MAX;
    set_link(f, (bytes + 63) / 64 * 64, probes_for(milli), LINE);
    return SEEN_OK;
}

static seen_status plan_old(const seen_spec *spec, struct seen_foreign *f,
                            seen_error *e)
{
    uint64_t milli;
    if (millibits(spec, &milli, e) != SEEN_OK) return SEEN_INVALID;
    uint64_t whole = (milli + 500) / 1000, bits = spec->items * whole;
    uint32_t probes = (uint32_t)((double)whole * 0.69);
    if (bits > OLD_BITS_MAX) bits = OLD_BITS_MAX;
    uint64_t lines = ((bits + LINE - 1) / LINE) | 1;
    probes = probes < 1 ? 1 : probes > OLD_PROBES_MAX ? OLD_PROBES_MAX : probes;
    set_link(f, lines * LINE / 8, probes, LINE);
    return SEEN_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

/* What both forms share: no keys, and bytes that any reader must let through. */
static void keep(struct seen_foreign *f, const uint8_t *buf, size_t len,
                 enum seen_foreign_verdict verdict)
{
    f->verdict = verdict;
    if (verdict == SEEN_NEVER_IN) {
        f->note_len = (uint32_t)len;
        if (len) memcpy(f->note, buf, len);
        return;
    }
    set_link(f, len - TRAILER, 0, 0);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = len - TRAILER;
    f->note_len = TRAILER;
    memcpy(f->note, buf + len - TRAILER, TRAILER);
}

static void use(struct seen_foreign *f, const uint8_t *buf, size_t len,
                uint32_t probes, uint32_t line)
{
    set_link(f, len - TRAILER, probes, line);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = len - TRAILER;
}

static bool is_fast(const uint8_t *t, size_t data)
{
    return t[0] == FAST && t[1] == 0 && t[2] >= 1 && t[2] <= 30 && t[3] == 0 &&
           t[4] == 0 && data % 64 == 0;
}

static seen_status read_fast(const seen_spec *spec, const uint8_t *buf,
                             size_t len, struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (len <= TRAILER) {
        keep(f, buf, len, SEEN_NEVER_IN);
        return SEEN_OK;
    }
    const uint8_t *t = buf + len - TRAILER;
    if (t[0] == RIBBON)
        return seen_fail(e, SEEN_UNSUPPORTED, "buf",
                         "a Ribbon filter: expected a Bloom filter of RocksDB");
    if (t[0] >= 1 && t[0] <= 127)
        return seen_corrupt(e, "of the older form: read it as rocksdb-legacy");
    if (t[0] == FAST && (len - TRAILER) % 64)
        return seen_corrupt(
            e, "%zu bytes before the trailer: expected a multiple of 64",
            len - TRAILER);
    if (len - TRAILER > FAST_MAX)
        return seen_corrupt(e, "%zu bytes: expected fewer than 2^32", len);
    if (is_fast(t, len - TRAILER))
        use(f, buf, len, t[2], LINE);
    else
        keep(f, buf, len, SEEN_ALWAYS_MAYBE);
    return SEEN_OK;
}

/* Bytes of a line, a power of two from 64 on; 0: this is not such a block. */
static size_t old_line(const uint8_t *buf, size_t len)
{
    if (len <= TRAILER) return 0;
    const uint8_t *t = buf + len - TRAILER;
    size_t data = len - TRAILER, lines = seen_get_le32(t + 1);
    if (t[0] == 0 || t[0] > 127 || lines == 0 || data % lines) return 0;
    size_t line = data / lines;
    return line >= 64 && line <= 4096 && !(line & (line - 1)) ? line : 0;
}

static seen_status read_old(const seen_spec *spec, const uint8_t *buf,
                            size_t len, struct seen_foreign *f, seen_error *e)
{
    (void)spec;
    if (len <= TRAILER) {
        keep(f, buf, len, SEEN_NEVER_IN);
        return SEEN_OK;
    }
    const uint8_t *t = buf + len - TRAILER;
    if (t[0] == 0) {
        keep(f, buf, len, SEEN_ALWAYS_MAYBE);
        return SEEN_OK;
    }
    if (t[0] > 127)
        return seen_corrupt(
            e,
            "%u hashes in the trailer: expected at most 127 in the legacy form",
            t[0]);
    size_t line = old_line(buf, len);
    if (!line)
        return seen_corrupt(
            e, "%" PRIu32 " lines in the trailer: they do not fill %zu bytes",
            seen_get_le32(t + 1), len - TRAILER);
    use(f, buf, len, t[0], (uint32_t)line * 8);
    return SEEN_OK;
}

static bool sniff_fast(const uint8_t *buf, size_t len)
{
    return len > TRAILER && is_fast(buf + len - TRAILER, len - TRAILER);
}

static bool sniff_old(const uint8_t *buf, size_t len)
{
    return old_line(buf, len) > 0 && buf[len - TRAILER] <= OLD_PROBES_MAX;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    const struct seen_link *l = &f->links[0];
    bool none = f->verdict == SEEN_NEVER_IN;
    *len = none ? f->note_len : (size_t)l->bytes + TRAILER;
    if (!to) return SEEN_OK;
    if (none) {
        memcpy(to, f->note, f->note_len);
        return SEEN_OK;
    }
    memcpy(to, l->at, (size_t)l->bytes);
    uint8_t *t = to + l->bytes;
    if (f->verdict == SEEN_ALWAYS_MAYBE) {
        memcpy(t, f->note, TRAILER);
    } else if (f->scheme == &scheme_fast) {
        t[0] = FAST;
        t[1] = t[3] = t[4] = 0;
        t[2] = (uint8_t)l->place.hashes;
    } else {
        t[0] = (uint8_t)l->place.hashes;
        seen_put_le32(t + 1, (uint32_t)l->place.modulo.by);
    }
    return SEEN_OK;
}

/* ---- Rows --------------------------------------------------------------- */

const struct seen_dialect seen_dialect_rocksdb = {
    .facts = {.name = "rocksdb",
              .system = "RocksDB full filters, FastLocalBloom (C++)",
              .weakness = "crafted keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme_fast,
    .rules = &seen_plain_rules,
    .plan = plan_fast,
    .sniff = sniff_fast,
    .read = read_fast,
    .write = write,
};

const struct seen_dialect seen_dialect_rocksdb_legacy = {
    .facts = {.name = "rocksdb-legacy",
              .system = "RocksDB full filters, format_version below 5 (C++)",
              .weakness = "a 32-bit hash, which also chooses the line: far "
                          "above its rate from 1M keys on; crafted keys",
              .can = SEEN_CAN_ADD | SEEN_CAN_SNIFF | SEEN_CAN_VIEW},
    .scheme = &scheme_old,
    .rules = &seen_plain_rules,
    .plan = plan_old,
    .sniff = sniff_old,
    .read = read_old,
    .write = write,
};
