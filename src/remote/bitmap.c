/*
 * bitmap.c - a string whose bit n, as SETBIT numbers them, is the number n.
 *
 * What is at or above the bound is refused before anything is sent: one SETBIT
 * with a wrong number would make the server allocate up to 512 MB.
 */
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "store/report.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define AT_ONCE   1024 /* commands of one pipeline */
#define MOST_BITS ((uint64_t)1 << 32)

static const seen_allocator system_memory;

struct bits {
    uint64_t bound;
};

static uint64_t bound_of(const seen_remote *m)
{
    return ((const struct bits *)m->own)->bound;
}

static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_store_report *r)
{
    uint64_t bound;
    seen_status status = seen_url_number(&m->pool.url, "bits", MOST_BITS,
                                         create ? create->bits : 0, &bound, r);
    if (status == SEEN_OK && (bound == 0 || bound > MOST_BITS))
        status = seen_report(r, SEEN_INVALID,
                             "URL: expected bits=M, the bound, up to 2^32");
    if (status != SEEN_OK) return status;
    struct bits *own = seen_alloc_zeroed(&system_memory, sizeof *own);
    if (!own) return SEEN_NOMEM;
    own->bound = bound;
    m->own = own;
    return SEEN_OK;
}

static void close(seen_remote *m)
{
    seen_release(&system_memory, m->own, sizeof(struct bits));
}

/* ---- Bits --------------------------------------------------------------- */

static seen_status check(seen_remote *m, const seen_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (keys[i].len != 8)
            return seen_remote_say(m, SEEN_INVALID,
                                   "a key of %zu bytes: numbers have 8",
                                   keys[i].len);
        uint64_t number = seen_get_le64(keys[i].data);
        if (number >= bound_of(m))
            return seen_remote_say(
                m, SEEN_INVALID, "%llu is not below the bound, %llu",
                (unsigned long long)number, (unsigned long long)bound_of(m));
    }
    return SEEN_OK;
}

struct calls {
    struct seen_command k[AT_ONCE];
    const char *argv[AT_ONCE][4];
    size_t len[AT_ONCE][4];
    char number[AT_ONCE][24];
};

/* `bit`: what it becomes, "0" or "1"; NULL: what is it? */
static void put_call(struct calls *c, size_t i, const seen_remote *m,
                     const char *bit, seen_key key)
{
    snprintf(c->number[i], sizeof c->number[i], "%llu",
             (unsigned long long)seen_get_le64(key.data));
    const char *argv[] = {bit ? "SETBIT" : "GETBIT", m->key, c->number[i], bit};
    const size_t argc = bit ? 4 : 3;
    for (size_t a = 0; a < argc; a++) {
        c->argv[i][a] = argv[a];
        c->len[i][a] = strlen(argv[a]);
    }
    c->k[i] = (struct seen_command){.argc = (int)argc,
                                    .argv = c->argv[i],
                                    .len = c->len[i],
                                    .key = 1,
                                    .repeatable = true};
}

static seen_status send_all(seen_remote *m, const char *bit,
                            const seen_key *keys, size_t n, bool *there)
{
    seen_status status = check(m, keys, n);
    if (status != SEEN_OK) return status;
    struct calls *c = seen_alloc_zeroed(&system_memory, sizeof *c);
    if (!c) return SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < n; at += AT_ONCE) {
        size_t count = n - at < AT_ONCE ? n - at : AT_ONCE;
        for (size_t i = 0; i < count; i++)
            put_call(c, i, m, bit, keys[at + i]);
        status = seen_pool_run(&m->pool, c->k, count);
        for (size_t i = 0; status == SEEN_OK && there && i < count; i++)
            there[at + i] = c->k[i].reply->integer != 0;
        seen_redis_done(c->k, count);
    }
    seen_release(&system_memory, c, sizeof *c);
    return status;
}

static seen_status send(seen_remote *m, bool adds, const seen_key *keys,
                        size_t n, bool *there)
{
    return send_all(m, adds ? "1" : NULL, keys, n, there);
}

static seen_status take_out(seen_remote *m, const seen_key *keys, size_t n,
                            bool *there)
{
    return send_all(m, "0", keys, n, there);
}

static seen_status info_of(seen_remote *m, seen_remote_info *info)
{
    info->layout = "bitmap";
    info->capacity = bound_of(m);
    info->parts = 1;
    seen_status status = seen_remote_number(m, "STRLEN", &info->bytes);
    return status == SEEN_OK ? seen_remote_number(m, "BITCOUNT", &info->items)
                             : status;
}

const struct seen_remote_ops seen_remote_bitmap = {
    .scheme = "redis+bitmap",
    .key_in_path = true,
    .open = open,
    .send = send,
    .remove = take_out,
    .info = info_of,
    .close = close,
};
