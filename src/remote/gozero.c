/*
 * gozero.c - the Bloom filter of go-zero's core/bloom, beside the Go services
 * that use it: the same string, the same 14 bits of each key.
 *
 * Which bits: dialect/gozero.c. go-zero sets and tests them in scripts, so that
 * nobody sees half of a key. A BITFIELD is as atomic, does not need the server to
 * remember anything, and costs it less than half as much (script/bench remote):
 * what is dear about a script are its 14 calls back into the server. A key that is
 * not there is a filter without keys, as it is to go-zero, and a short string ends
 * in zeros; an add makes it as long as a script would.
 */
#include "remote/remote.h"

#include "base/error.h"
#include "base/keys.h"
#include "hash/murmur3.h"
#include "remote/batch.h"

#include <math.h>
#include <string.h>

#define K 14

/* ---- Keys --------------------------------------------------------------- */

/* BITFIELD key, and for each of 14 bits SET u1 offset 1; or BITFIELD_RO and GET
 * u1 offset, which a server that is only read answers, too. */
static void put_key(struct seen_wire *w, struct seen_command *k,
                    const seen_remote *m, bool adds, seen_key key)
{
    struct seen_murmur3 s;
    seen_murmur3_begin(&s, key.data, key.len, 0);
    seen_wire_begin(w, k, 2 + (adds ? 4 : 3) * K, true);
    seen_wire_text(w, adds ? "BITFIELD" : "BITFIELD_RO");
    seen_wire_key(w, k, m->key, strlen(m->key));
    for (uint8_t i = 0; i < K; i++) {
        uint64_t bit = seen_murmur3_end_with(&s, i).lo % m->bits;
        if (adds)
            seen_wire_set_bit(w, bit);
        else
            seen_wire_get_bit(w, bit);
    }
    seen_wire_end(w, k);
}

static seen_status run_batch(seen_remote *m, struct seen_batch *b, bool adds,
                             const seen_key *keys, size_t n, bool *there,
                             seen_error *error)
{
    struct seen_wire w = seen_batch_wire(b);
    for (size_t i = 0; i < n; i++)
        put_key(&w, &b->k[i], m, adds, keys[i]);
    seen_status status = seen_pool_run(&m->pool, b->k, n, error);
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        bool set = false;
        if (!seen_reply_flags(b->k[i].reply, K, &set)) /* were all set? */
            status =
                seen_pool_strange("BITFIELD", b->k[i].reply, "14 bits", error);
        if (there) there[i] = set;
    }
    seen_redis_done(b->k, n);
    return status;
}

static seen_status send(seen_remote *m, bool adds, seen_keys keys, bool *there,
                        seen_error *error)
{
    const size_t most = keys.n < SEEN_BATCH_KEYS ? keys.n : SEEN_BATCH_KEYS;
    struct seen_batch_keys some;
    const size_t room = SEEN_WIRE_COMMAND + 2 * SEEN_WIRE_WORD +
                        strlen("BITFIELD_RO") + strlen(m->key) +
                        K * SEEN_WIRE_BIT;
    struct seen_batch b;
    seen_status status = seen_batch_new(&b, most, room) ? SEEN_OK : SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < keys.n; at += most) {
        const size_t n = keys.n - at < most ? keys.n - at : most;
        status = run_batch(m, &b, adds, seen_batch_keys(&some, keys, at, n), n,
                           there ? there + at : NULL, error);
    }
    seen_batch_free(&b);
    return status;
}

/* ---- Is bits=M right? --------------------------------------------------- */

/*
 * The string does not say how many bits the filter has, and with another number
 * every key is "never". But SETBIT makes it just long enough for the highest bit
 * that is set: one that has a bit beyond M is of another filter. And the bits
 * of keys are all over the M: with `ones` of them, all lie in the first 8 len bits
 * by chance with probability (8 len / M)^ones. Worked example: M = 2,000,000 for
 * a filter of 1,000,000 bits and ten keys, 140 ones: 2^-140.
 */
#define WARN   1e-6 /* such a chance is worth a word */
#define REFUSE 1e-9 /* and this is none */
#define SAMPLE 4096 /* bytes whose ones are counted */
#define ENOUGH 64   /* ones to reckon with */

/* Of the whole string, from the ones at its beginning where these are enough. */
static seen_status count_ones(seen_remote *m, uint64_t len, double *ones,
                              seen_error *error)
{
    const char *argv[] = {"BITCOUNT", m->key, "0", "4095"};
    struct seen_command k;
    int64_t n = 0;
    uint64_t all = 0;
    seen_status status = seen_remote_do(m, &k, 4, argv, true, error);
    if (status == SEEN_OK && !seen_reply_integer(k.reply, 0, 8 * SAMPLE, &n))
        status = seen_pool_strange("BITCOUNT", k.reply, "a number", error);
    seen_redis_done(&k, 1);
    *ones = (double)n * (double)len / SAMPLE;
    if (status != SEEN_OK || (len > SAMPLE && n >= ENOUGH)) return status;
    status = seen_remote_number(m, "BITCOUNT", &all, error);
    *ones = (double)all;
    return status;
}

/* Of a string that is as long as M bits make it: has its last byte ones that are
 * none of these bits? Another may have shortened it meanwhile. */
static seen_status look_behind(seen_remote *m, bool *ones, seen_error *error)
{
    const char *argv[] = {"GETRANGE", m->key, "-1", "-1"};
    const unsigned unused = (unsigned)(8 - m->bits % 8) % 8;
    struct seen_command k;
    seen_key last = {0};
    if (!unused) return SEEN_OK;
    seen_status status = seen_remote_do(m, &k, 4, argv, true, error);
    if (status == SEEN_OK && !seen_reply_string(k.reply, &last))
        status = seen_pool_strange("GETRANGE", k.reply, "a string", error);
    if (status == SEEN_OK && last.len)
        *ones = *(const uint8_t *)last.data & ((1u << unused) - 1);
    seen_redis_done(&k, 1);
    return status;
}

static seen_status check_length(seen_remote *m, uint64_t *len,
                                seen_error *error)
{
    bool longer, ones = false;
    seen_status status = seen_remote_length(m, len, &longer, error);
    if (status == SEEN_OK && *len == (m->bits + 7) / 8)
        status = look_behind(m, &ones, error);
    if (status == SEEN_OK && ones)
        return seen_fail(error, SEEN_MISMATCH, "bits",
                         "%.100s: has ones at or beyond bits=%llu: give "
                         "the bits of the service",
                         m->key, (unsigned long long)m->bits);
    if (status != SEEN_OK || !longer) return status;
    return seen_fail(error, SEEN_MISMATCH, "bits",
                     "%.100s: has %llu bytes, bits=%llu takes %llu at "
                     "most: give the bits of the service",
                     m->key, (unsigned long long)*len,
                     (unsigned long long)m->bits,
                     (unsigned long long)(m->bits + 7) / 8);
}

static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_outcome *outcome, seen_error *error)
{
    uint64_t len;
    double ones;
    (void)create;
    seen_status status = check_length(m, &len, error);
    outcome->empty = status == SEEN_OK && len == 0;
    if (status != SEEN_OK || len == 0 || 8 * len >= m->bits) return status;
    status = count_ones(m, len, &ones, error);
    if (status != SEEN_OK) return status;
    const unsigned long long below = 8 * len, bits = m->bits;
    double chance = pow((double)below / (double)bits, ones);
    if (chance < REFUSE)
        return seen_fail(error, SEEN_MISMATCH, "bits",
                         "%.100s: about %.0f bits are set, all below %llu: "
                         "not a filter of bits=%llu; give the bits of the "
                         "service",
                         m->key, ones, below, bits);
    if (chance < WARN)
        seen_warn(error, "bits",
                  "%.100s: all bits that are set are below %llu, which is "
                  "unlikely with bits=%llu: is that what the service has?",
                  m->key, below, bits);
    return SEEN_OK;
}

/* ---- How it is doing ---------------------------------------------------- */

static seen_status info_of(seen_remote *m, seen_remote_info *info,
                           seen_error *error)
{
    const double bits = (double)m->bits;
    uint64_t ones;
    info->layout = "gozero";
    info->parts = 1;
    info->capacity = (uint64_t)(bits / 20); /* go-zero's advice */
    seen_status status = check_length(m, &info->bytes, error);
    if (status == SEEN_OK)
        status = seen_remote_number(m, "BITCOUNT", &ones, error);
    if (status != SEEN_OK) return status;
    double zeros = 1 - (double)ones / bits;
    info->items =
        (uint64_t)(-bits / K * log(zeros > 0 ? zeros : 1 / bits) + 0.5);
    info->fpp = pow(1 - exp(-(double)K / 20), K);
    return SEEN_OK;
}

const struct seen_remote_ops seen_remote_gozero = {
    .scheme = "redis+gozero",
    .key_in_path = true,
    .type = "string",
    .bits = "as the service has it, up to 2^32",
    .open = open,
    .send = send,
    .info = info_of,
};
