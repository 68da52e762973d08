/*
 * gozero.c - the Bloom filter of go-zero's core/bloom, beside the Go services
 * that use it: the same string, the same 14 bits of each key.
 *
 * Which bits: dialect/gozero.c. They are set and tested by scripts, as go-zero
 * does it, so that another client never sees half of a key; but of many keys at
 * a time, and the answer comes back for each. A key that is not there is a
 * filter without keys, as it is to go-zero, and a short string ends in zeros.
 *
 * Scripts are called by their digest. A server that has forgotten one (SCRIPT
 * FLUSH, a failover) says NOSCRIPT, and gets its text (redis/client.c).
 */
#include "remote/remote.h"

#include "base/alloc.h"
#include "hash/murmur3.h"
#include "store/report.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define K         14
#define AT_ONCE   64 /* keys of one call */
#define PIPELINE  16 /* calls */
#define MOST_BITS ((uint64_t)1 << 32)

static const seen_allocator system_memory;

/* Offsets come 14 to a key; 1 for each key whose bits were all set. */
static const char test_script[] = "local out = {}\n"
                                  "for i = 1, #ARGV, 14 do\n"
                                  "  local all = 1\n"
                                  "  for k = i, i + 13 do\n"
                                  "    if redis.call('GETBIT', KEYS[1], "
                                  "ARGV[k]) == 0 then all = 0 break end\n"
                                  "  end\n"
                                  "  out[#out + 1] = all\n"
                                  "end\n"
                                  "return out\n";
static const char set_script[] =
    "local out = {}\n"
    "for i = 1, #ARGV, 14 do\n"
    "  local all = 1\n"
    "  for k = i, i + 13 do\n"
    "    if redis.call('SETBIT', KEYS[1], ARGV[k], 1) == 0 then all = 0 end\n"
    "  end\n"
    "  out[#out + 1] = all\n"
    "end\n"
    "return out\n";

static const char *const scripts[] = {test_script, set_script};

struct gozero {
    uint64_t bits;
    char digest[2][SEEN_DIGEST];
};

/* ---- Opening ------------------------------------------------------------ */

static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_store_report *r)
{
    uint64_t bits;
    seen_status status = seen_url_number(&m->pool.url, "bits", MOST_BITS,
                                         create ? create->bits : 0, &bits, r);
    if (status == SEEN_OK && (bits == 0 || bits > MOST_BITS))
        status = seen_report(r, SEEN_INVALID,
                             "URL: expected bits=M, as the service has it");
    if (status != SEEN_OK) return status;
    struct gozero *own = seen_alloc_zeroed(&system_memory, sizeof *own);
    if (!own) return SEEN_NOMEM;
    own->bits = bits;
    m->own = own;
    for (size_t i = 0; status == SEEN_OK && i < 2; i++)
        status = seen_pool_script(&m->pool, scripts[i], own->digest[i]);
    return status;
}

static void close(seen_remote *m)
{
    seen_release(&system_memory, m->own, sizeof(struct gozero));
}

/* ---- Keys --------------------------------------------------------------- */

#define HEAD 4 /* arguments before the offsets */

struct call {
    const char *argv[HEAD + AT_ONCE * K];
    size_t len[HEAD + AT_ONCE * K];
    char offset[AT_ONCE * K][12];
    size_t n; /* keys */
};

struct batch {
    struct seen_command k[PIPELINE];
    struct call c[PIPELINE];
};

/* EVALSHA digest 1 key, and 14 offsets for each. */
static void put_call(struct batch *b, size_t i, const seen_remote *m, bool adds,
                     const seen_key *keys, size_t n)
{
    const struct gozero *z = m->own;
    struct call *c = &b->c[i];
    const char *head[HEAD] = {"EVALSHA", z->digest[adds], "1", m->key};
    for (size_t a = 0; a < HEAD; a++) {
        c->argv[a] = head[a];
        c->len[a] = strlen(head[a]);
    }
    size_t at = 0;
    for (size_t key = 0; key < n; key++) {
        struct seen_murmur3 s;
        seen_murmur3_begin(&s, keys[key].data, keys[key].len, 0);
        for (uint8_t k = 0; k < K; k++, at++) {
            uint64_t bit = seen_murmur3_end_with(&s, k).lo % z->bits;
            int len = snprintf(c->offset[at], sizeof c->offset[at], "%llu",
                               (unsigned long long)bit);
            c->argv[HEAD + at] = c->offset[at];
            c->len[HEAD + at] = (size_t)len;
        }
    }
    c->n = n;
    b->k[i] = (struct seen_command){.argc = (int)(HEAD + at),
                                    .argv = c->argv,
                                    .len = c->len,
                                    .key = HEAD - 1,
                                    .repeatable = true,
                                    .script = scripts[adds]};
}

static seen_status read_call(seen_remote *m, const struct batch *b, size_t i,
                             bool *set)
{
    const redisReply *reply = b->k[i].reply;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != b->c[i].n)
        return seen_remote_say(
            m, SEEN_CORRUPT, "the reply to a script is not what was expected");
    for (size_t key = 0; set && key < b->c[i].n; key++)
        set[key] = reply->element[key]->integer != 0;
    return SEEN_OK;
}

static seen_status run_batch(seen_remote *m, struct batch *b, bool adds,
                             const seen_key *keys, size_t n, bool *set)
{
    size_t calls = 0;
    for (size_t at = 0; at < n; at += AT_ONCE, calls++)
        put_call(b, calls, m, adds, keys + at,
                 n - at < AT_ONCE ? n - at : AT_ONCE);
    seen_status status = seen_pool_run(&m->pool, b->k, calls);
    for (size_t i = 0; status == SEEN_OK && i < calls; i++)
        status = read_call(m, b, i, set ? set + i * AT_ONCE : NULL);
    seen_redis_done(b->k, calls);
    return status;
}

static seen_status send(seen_remote *m, bool adds, const seen_key *keys,
                        size_t n, bool *there)
{
    const size_t most = AT_ONCE * PIPELINE;
    struct batch *b = seen_alloc_zeroed(&system_memory, sizeof *b);
    seen_status status = b ? SEEN_OK : SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < n; at += most) {
        size_t count = n - at < most ? n - at : most;
        status =
            run_batch(m, b, adds, keys + at, count, there ? there + at : NULL);
    }
    seen_release(&system_memory, b, sizeof *b);
    return status;
}

/* ---- How it is doing ---------------------------------------------------- */

static seen_status info_of(seen_remote *m, seen_remote_info *info)
{
    const double bits = (double)((const struct gozero *)m->own)->bits;
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
    .open = open,
    .send = send,
    .info = info_of,
    .close = close,
};
