/*
 * dialect/leveldb.c - the filter blocks of LevelDB and of its two Go ports,
 * goleveldb and badger. The same bytes from all three; what differs is how many
 * bits a key gets.
 *
 *     | bits: max(64, n * bits_per_key), in whole bytes | k |
 *                                                         1 byte
 *
 * A block is built for the n keys of one table and then only read. The number of
 * probes k is 0.69 times the bits per key, at least 1 and at most 30; a k byte
 * above 30 is reserved for forms to come, and a reader has to let every key
 * through. A block of less than two bytes has no keys.
 *
 * Positions: h = hash of 32 bits, delta = h rotated right by 17, and then
 * h, h + delta, h + 2 delta ... each modulo the number of bits.
 *
 * Worked example: 1000 keys at 10 bits. 10,000 bits are 1250 bytes; k =
 * trunc(6.9) = 6; the block has 1251 bytes, the last of which is 6. Rate:
 * (1 - e^(-6/10))^6 = 0.84 %; 2 of the 1000 strangers in tests/vectors/leveldb
 * are let through.
 *
 * A hash of 32 bits is all that a key leaves: see hash/leveldb.c.
 *
 * Sources: LevelDB 1.23 util/bloom.cc, goleveldb filter/bloom.go, badger
 * y/bloom.go; checked against blocks that each of them wrote.
 */
#include "dialect/leveldb.h"

#include "base/keys.h"
#include "dialect/dialect.h"
#include "hash/leveldb.h"
#include "plan/sizing.h"

#include <math.h>

#define SEED  0xbc9f1d34u
#define K_MAX 30
#define LEAST 64            /* bits */
#define LN2   0.69314718056 /* as badger spells it */

/* ---- Scheme ------------------------------------------------------------- */

SEEN_INLINE void digest(const uint8_t seed[32], const void *key, size_t len,
                        struct seen_digest *d)
{
    (void)seed;
    uint32_t h = seen_leveldb_hash(key, len, SEED, false);
    d->h[0] = h;
    d->h[1] = h >> 17 | h << 15;
}

SEEN_INLINE void positions(const struct seen_place *p, struct seen_digest *d,
                           uint32_t from, uint32_t to, uint64_t *pos)
{
    uint32_t h = (uint32_t)d->h[0], delta = (uint32_t)d->h[1];
    for (; from < to; from++) {
        *pos++ = seen_modulo32(h, &p->modulo);
        h += delta;
    }
    d->h[0] = h;
}

#define ORDER SEEN_ORDER_LOW_FIRST
#include "probe/fused.h"

static const struct seen_scheme scheme = {.hash = "leveldb-32",
                                          .hash_bits = 32,
                                          .order = ORDER,
                                          .digest = digest,
                                          .positions = positions,
                                          .maybe = maybe};

/* ---- Plan --------------------------------------------------------------- */

static seen_status size(struct seen_foreign *f, const seen_spec *spec,
                        uint32_t per_key, uint32_t k, seen_error *e)
{
    uint64_t n = spec->items;
    if (n > SEEN_MAX_BITS / per_key) return seen_spec_too_large(spec, e);
    uint64_t bits = n * per_key < LEAST ? LEAST : n * per_key;
    uint64_t bytes = (bits + 7) / 8;
    k = k < 1 ? 1 : k > K_MAX ? K_MAX : k;
    seen_foreign_one(f, bytes * 8, k, bytes);
    return SEEN_OK;
}

/* Whole bits per key, given or from the rate by the dialect's own formula. */
static seen_status per_key(const seen_spec *spec, uint32_t from_rate,
                           uint32_t *out, seen_error *e)
{
    if (spec->bits || spec->hashes)
        return seen_derived(spec, "the bits per key", e);
    if (seen_needs_per_key(spec, e) != SEEN_OK) return SEEN_INVALID;
    if (spec->bits_per_key != floor(spec->bits_per_key))
        return seen_fail(
            e, SEEN_INVALID, "bits_per_key",
            "bits_per_key %g: expected a whole number in this dialect",
            spec->bits_per_key);
    *out = spec->bits_per_key > 0 ? (uint32_t)spec->bits_per_key : from_rate;
    return SEEN_OK;
}

/* The textbook's bits per key. */
static uint32_t ideal_bits(double fpp)
{
    return fpp > 0 ? (uint32_t)ceil(-log(fpp) / (log(2) * log(2))) : 0;
}

static seen_status leveldb_plan(const seen_spec *spec, struct seen_foreign *f,
                                seen_error *e)
{
    uint32_t b = 0;
    seen_status status = per_key(spec, ideal_bits(spec->fpp), &b, e);
    return status != SEEN_OK ? status
                             : size(f, spec, b, (uint32_t)(b * 0.69), e);
}

/* Its k is a byte, so that 372 bits a key give k = 256 = 0, which becomes 1. */
static seen_status goleveldb_plan(const seen_spec *spec, struct seen_foreign *f,
                                  seen_error *e)
{
    uint32_t b = 0;
    seen_status status = per_key(spec, ideal_bits(spec->fpp), &b, e);
    if (status != SEEN_OK) return status;
    return size(f, spec, b, (uint8_t)((uint64_t)b * 69 / 100), e);
}

/* It takes the best k for the bits per key: at 1 % that is 7 instead of 10, and
 * the rate comes out higher than was asked for. */
static seen_status badger_plan(const seen_spec *spec, struct seen_foreign *f,
                               seen_error *e)
{
    double bits = -(double)spec->items * log(spec->fpp) / (LN2 * LN2);
    double best_k = ceil(LN2 * bits / (double)spec->items);
    uint32_t b = 0,
             from_rate = spec->fpp > 0 && spec->items ? (uint32_t)best_k : 0;
    seen_status status = per_key(spec, from_rate, &b, e);
    return status != SEEN_OK ? status
                             : size(f, spec, b, (uint32_t)(b * 0.69), e);
}

/* ---- Bytes -------------------------------------------------------------- */

/* Its own k byte comes back, whatever it is. */
static seen_status read(const seen_spec *spec, const uint8_t *buf, size_t len,
                        struct seen_foreign *f, seen_error *e)
{
    (void)spec, (void)e;
    if (len < 2) {
        f->verdict = SEEN_NEVER_IN;
        f->note_len = (uint32_t)len;
        if (len) f->note[0] = buf[0];
        return SEEN_OK;
    }
    uint8_t k = buf[len - 1];
    seen_foreign_one(f, (len - 1) * 8, k > K_MAX ? 0 : k, len - 1);
    f->links[0].at = (uint8_t *)(uintptr_t)buf;
    f->links[0].stored = len - 1;
    if (k > K_MAX) f->verdict = SEEN_ALWAYS_MAYBE;
    f->note[0] = k;
    f->note_len = 1;
    return SEEN_OK;
}

static seen_status write(const struct seen_foreign *f, uint8_t *to, size_t *len)
{
    if (f->verdict == SEEN_NEVER_IN) {
        *len = f->note_len;
        if (to && f->note_len) *to = f->note[0];
        return SEEN_OK;
    }
    const struct seen_link *l = &f->links[0];
    *len = (size_t)l->bytes + 1;
    if (!to) return SEEN_OK;
    memcpy(to, l->at, (size_t)l->bytes);
    bool reserved = f->verdict == SEEN_ALWAYS_MAYBE;
    to[l->bytes] = reserved ? f->note[0] : (uint8_t)l->place.hashes;
    return SEEN_OK;
}

/* ---- Bytes and nothing else --------------------------------------------- */

static uint32_t probes_for(uint32_t bits_per_key)
{
    uint32_t k = (uint32_t)(bits_per_key * 0.69);
    return k < 1 ? 1 : k > K_MAX ? K_MAX : k;
}

size_t seen_leveldb_block_size(uint32_t bits_per_key, size_t n)
{
    uint64_t bits = (uint64_t)n * bits_per_key;
    return (size_t)((bits < LEAST ? LEAST : bits) + 7) / 8 + 1;
}

/* As `h % bits` of 32 bits is, where so few bits are there, and of 64. */
SEEN_INLINE uint64_t remainder_of(uint32_t h, uint64_t bits)
{
    return bits <= UINT32_MAX ? h % (uint32_t)bits : h;
}

void seen_leveldb_block_build(uint32_t bits_per_key, seen_keys keys,
                              uint8_t *to)
{
    const size_t bytes = seen_leveldb_block_size(bits_per_key, keys.n) - 1;
    const uint32_t k = probes_for(bits_per_key);
    memset(to, 0, bytes);
    to[bytes] = (uint8_t)k;
    for (size_t i = 0; i < keys.n; i++) {
        seen_key pair;
        uint8_t room[8];
        struct seen_digest d;
        const seen_key *key = seen_keys_some(keys, i, 1, &pair, room);
        digest(NULL, key->data, key->len, &d);
        uint32_t h = (uint32_t)d.h[0];
        for (uint32_t j = 0; j < k; j++, h += (uint32_t)d.h[1]) {
            uint64_t pos = remainder_of(h, 8 * (uint64_t)bytes);
            to[pos / 8] |= (uint8_t)(1u << pos % 8);
        }
    }
}

bool seen_leveldb_block_maybe(const uint8_t *block, size_t len, const void *key,
                              size_t key_len)
{
    if (len < 2) return false;
    const uint32_t k = block[len - 1];
    if (k > K_MAX) return true;
    struct seen_digest d;
    digest(NULL, key, key_len, &d);
    uint32_t h = (uint32_t)d.h[0];
    for (uint32_t j = 0; j < k; j++, h += (uint32_t)d.h[1]) {
        uint64_t pos = remainder_of(h, 8 * (uint64_t)(len - 1));
        if (!(block[pos / 8] >> pos % 8 & 1)) return false;
    }
    return true;
}

/* ---- Rows --------------------------------------------------------------- */

#define CAN (SEEN_CAN_ADD | SEEN_CAN_VIEW)

const struct seen_dialect seen_dialect_leveldb = {
    .facts = {.name = "leveldb",
              .system = "LevelDB filter blocks (C++)",
              .weakness = "a 32-bit hash: 1.3 times the rate at 1M keys and "
                          "1 %, far more below; crafted keys",
              .can = CAN},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = leveldb_plan,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_goleveldb = {
    .facts = {.name = "goleveldb",
              .system = "goleveldb filter blocks (Go)",
              .weakness = "as leveldb; k wraps from 372 bits a key on",
              .can = CAN},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = goleveldb_plan,
    .read = read,
    .write = write,
};

const struct seen_dialect seen_dialect_badger = {
    .facts = {.name = "badger",
              .system = "badger table filters (Go)",
              .weakness = "as leveldb; from a rate it takes too few bits: 7 a "
                          "key at 1 %, which give 3.6 %",
              .can = CAN},
    .scheme = &scheme,
    .rules = &seen_plain_rules,
    .plan = badger_plan,
    .read = read,
    .write = write,
};
