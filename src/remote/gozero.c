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

#include "hash/murmur3.h"
#include "remote/batch.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <string.h>

#define K       14
#define AT_ONCE 512 /* keys of one pipeline */

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

/* Were all bits set? */
static seen_status read_key(seen_remote *m, const redisReply *reply, bool *set)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != K)
        return seen_pool_say(&m->pool, SEEN_CORRUPT,
                             "the reply to BITFIELD is not what was "
                             "expected");
    *set = true;
    for (size_t i = 0; i < K; i++)
        *set &= reply->element[i]->integer != 0;
    return SEEN_OK;
}

static seen_status run_batch(seen_remote *m, struct seen_batch *b, bool adds,
                             const seen_key *keys, size_t n, bool *there)
{
    struct seen_wire w = seen_batch_wire(b);
    for (size_t i = 0; i < n; i++)
        put_key(&w, &b->k[i], m, adds, keys[i]);
    seen_status status = seen_pool_run(&m->pool, b->k, n);
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        bool set = false;
        status = read_key(m, b->k[i].reply, &set);
        if (there) there[i] = set;
    }
    seen_redis_done(b->k, n);
    return status;
}

static seen_status send(seen_remote *m, bool adds, const seen_key *keys,
                        size_t n, bool *there)
{
    const size_t most = n < AT_ONCE ? n : AT_ONCE;
    const size_t room = SEEN_WIRE_COMMAND + 2 * SEEN_WIRE_WORD +
                        strlen("BITFIELD_RO") + strlen(m->key) +
                        K * SEEN_WIRE_BIT;
    struct seen_batch b;
    seen_status status = seen_batch_new(&b, most, room) ? SEEN_OK : SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < n; at += most)
        status =
            run_batch(m, &b, adds, keys + at, n - at < most ? n - at : most,
                      there ? there + at : NULL);
    seen_batch_free(&b);
    return status;
}

/* ---- How it is doing ---------------------------------------------------- */

static seen_status info_of(seen_remote *m, seen_remote_info *info)
{
    const double bits = (double)m->bits;
    uint64_t ones;
    info->layout = "gozero";
    info->parts = 1;
    info->capacity = (uint64_t)(bits / 20); /* go-zero's advice */
    seen_status status = seen_remote_number(m, "STRLEN", &info->bytes);
    if (status == SEEN_OK) status = seen_remote_number(m, "BITCOUNT", &ones);
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
    .send = send,
    .info = info_of,
};
