/*
 * bitmap.c - a string whose bit n, as SETBIT numbers them, is the number n.
 *
 * What is at or above the bound is refused before anything is sent: one SETBIT
 * with a wrong number would make the server allocate up to 512 MB.
 */
#include "remote/remote.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/keys.h"
#include "remote/batch.h"

#include <string.h>

#define AT_ONCE 1024 /* numbers of one pipeline */

/* ---- Bits --------------------------------------------------------------- */

/* Integers as they lie; of other layouts, keys of 8 bytes. */
static bool number_at(seen_keys keys, size_t i, uint64_t *number)
{
    seen_key key;
    uint8_t room[8];
    if (keys.layout == SEEN_INTEGERS) {
        memcpy(number, (const char *)keys.data + 8 * i, 8);
        return true;
    }
    seen_keys_pairs(keys, i, 1, &key, room);
    if (key.len == 8) *number = seen_get_le64(key.data);
    return key.len == 8;
}

static seen_status check(const seen_remote *m, seen_keys keys,
                         seen_error *error)
{
    for (size_t i = 0; i < keys.n; i++) {
        uint64_t number;
        if (!number_at(keys, i, &number))
            return seen_fail(error, SEEN_INVALID, "keys",
                             "key %zu is not a number: expected 8 bytes", i);
        if (number >= m->bits)
            return seen_fail(error, SEEN_INVALID, "keys",
                             "%llu is not below the bound, %llu",
                             (unsigned long long)number,
                             (unsigned long long)m->bits);
    }
    return SEEN_OK;
}

/* `bit`: what it becomes, "0" or "1"; NULL: what is it? Taken out twice, a number
 * might go that somebody has added in between. */
static void put_number(struct seen_wire *w, struct seen_command *k,
                       const seen_remote *m, const char *bit, uint64_t number)
{
    seen_wire_begin(w, k, bit ? 4 : 3, !bit || *bit == '1');
    seen_wire_text(w, bit ? "SETBIT" : "GETBIT");
    seen_wire_key(w, k, m->key, strlen(m->key));
    seen_wire_number(w, number);
    if (bit) seen_wire_text(w, bit);
    seen_wire_end(w, k);
}

static seen_status run_batch(seen_remote *m, struct seen_batch *b,
                             const char *bit, seen_keys keys, bool *there,
                             seen_error *error)
{
    struct seen_wire w = seen_batch_wire(b);
    const size_t n = keys.n;
    for (size_t i = 0; i < n; i++) {
        uint64_t number = 0;
        (void)number_at(keys, i, &number); /* has been checked */
        put_number(&w, &b->k[i], m, bit, number);
    }
    seen_status status = seen_pool_run(&m->pool, b->k, n, error);
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        bool was;
        if (!seen_reply_flag(b->k[i].reply, &was))
            status = seen_pool_strange(bit ? "SETBIT" : "GETBIT", b->k[i].reply,
                                       "0 or 1", error);
        else if (there)
            there[i] = was;
    }
    seen_redis_done(b->k, n);
    return status;
}

static seen_status send_all(seen_remote *m, const char *bit, seen_keys keys,
                            bool *there, seen_error *error)
{
    const size_t most = keys.n < AT_ONCE ? keys.n : AT_ONCE;
    const size_t room = SEEN_WIRE_COMMAND + 3 * SEEN_WIRE_WORD +
                        strlen("SETBIT") + strlen(m->key) + 1 +
                        SEEN_WIRE_NUMBER;
    struct seen_batch b;
    seen_status status = check(m, keys, error);
    if (status != SEEN_OK) return status;
    if (!seen_batch_new(&b, most, room)) status = SEEN_NOMEM;
    for (size_t at = 0; status == SEEN_OK && at < keys.n; at += most)
        status = run_batch(m, &b, bit, seen_keys_slice(keys, at, most),
                           there ? there + at : NULL, error);
    seen_batch_free(&b);
    return status;
}

static seen_status send(seen_remote *m, bool adds, seen_keys keys, bool *there,
                        seen_error *error)
{
    return send_all(m, adds ? "1" : NULL, keys, there, error);
}

static seen_status take_out(seen_remote *m, seen_keys keys, bool *there,
                            seen_error *error)
{
    return send_all(m, "0", keys, there, error);
}

/* What is at or above the bound cannot be asked for; that it is there says that
 * the bound may be another one. */
static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_outcome *outcome, seen_error *error)
{
    uint64_t len;
    bool longer;
    (void)create;
    seen_status status = seen_remote_length(m, &len, &longer, error);
    outcome->empty = status == SEEN_OK && len == 0;
    if (status == SEEN_OK && longer)
        seen_warn(error, "bits",
                  "%.100s: has %llu bytes, more than bits=%llu takes: "
                  "numbers from %llu on are there, too, and cannot be asked "
                  "for",
                  m->key, (unsigned long long)len, (unsigned long long)m->bits,
                  (unsigned long long)m->bits);
    return status;
}

static seen_status info_of(seen_remote *m, seen_remote_info *info,
                           seen_error *error)
{
    info->layout = "bitmap";
    info->capacity = m->bits;
    info->parts = 1;
    seen_status status = seen_remote_number(m, "STRLEN", &info->bytes, error);
    return status == SEEN_OK
               ? seen_remote_number(m, "BITCOUNT", &info->items, error)
               : status;
}

const struct seen_remote_ops seen_remote_bitmap = {
    .scheme = "redis+bitmap",
    .key_in_path = true,
    .type = "string",
    .bits = "the bound, up to 2^32",
    .open = open,
    .send = send,
    .remove = take_out,
    .info = info_of,
};
