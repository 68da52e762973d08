/*
 * bf.c - a BF key: the commands that our module, RedisBloom and valkey-bloom
 * share.
 *
 * BF.MEXISTS says "0" for every item of a key that is not there, and so would an
 * evicted filter say that nothing was ever added. Therefore EXISTS follows in the
 * same pipeline: who finds no key behind his question got no answer to it. Adds
 * are BF.INSERT with NOCREATE, for the same reason.
 */
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/error.h"
#include "redis/decimal.h"
#include "remote/batch.h"

#include <stdio.h>
#include <string.h>

#define PIPELINE ((size_t)64 * SEEN_BATCH_KEYS) /* keys; 1.3 MB of commands */

/* A command with its arguments side by side: words first, then items. */
struct call {
    struct seen_command k;
    const char *argv[SEEN_BATCH_KEYS + 8];
    size_t len[SEEN_BATCH_KEYS + 8];
    struct seen_batch_keys keys;
};

static void begin(struct call *c, const seen_remote *m, const char *name)
{
    c->argv[0] = name;
    c->len[0] = strlen(name);
    c->argv[1] = m->key;
    c->len[1] = strlen(m->key);
    c->k = (struct seen_command){.argc = 2,
                                 .argv = c->argv,
                                 .len = c->len,
                                 .key = 1,
                                 .repeatable = true};
}

static void add(struct call *c, const void *bytes, size_t len)
{
    c->argv[c->k.argc] = bytes;
    c->len[c->k.argc++] = len;
}

static void add_word(struct call *c, const char *word)
{
    add(c, word, strlen(word));
}

/* ---- Items -------------------------------------------------------------- */

/* BF.MEXISTS says 1 for what is there, BF.INSERT for what is new. */
static seen_status read_answers(const seen_remote *m, const struct call *c,
                                bool adds, size_t n, bool *there,
                                seen_error *error)
{
    const struct redisReply *reply = c->k.reply;
    size_t answers;
    if (!seen_reply_array(reply, &answers) || answers != n)
        return seen_pool_strange(c->argv[0], reply, "an answer for each key",
                                 error);
    for (size_t i = 0; i < n; i++) {
        const struct redisReply *e = seen_reply_at(reply, i);
        bool one;
        if (seen_reply_error(e)) /* a full filter says it here */
            return seen_fail(error, SEEN_FULL, "key",
                             "%.100s: a key is not taken: %.200s", m->key,
                             seen_reply_error(e));
        if (!seen_reply_flag(e, &one))
            return seen_pool_strange(c->argv[0], e, "0 or 1", error);
        if (there) there[i] = one != adds;
    }
    return SEEN_OK;
}

/* Is there a key behind the questions? */
static seen_status read_exists(const seen_remote *m,
                               const struct redisReply *reply,
                               seen_error *error)
{
    bool there;
    if (!seen_reply_flag(reply, &there))
        return seen_pool_strange("EXISTS", reply, "0 or 1", error);
    return there ? SEEN_OK : seen_remote_absent(m, error);
}

/* How many of n keys are in the i-th command. */
static size_t len_of(size_t n, size_t i)
{
    size_t left = n - i * SEEN_BATCH_KEYS;
    return left < SEEN_BATCH_KEYS ? left : SEEN_BATCH_KEYS;
}

/* A pipeline: items in commands of SEEN_BATCH_KEYS, then EXISTS. */
static seen_status send_some(seen_remote *m, bool adds, seen_keys keys,
                             bool *there, seen_error *error)
{
    const size_t n = keys.n;
    size_t calls = (n + SEEN_BATCH_KEYS - 1) / SEEN_BATCH_KEYS;
    uint64_t size = (calls + 1) * sizeof(struct call);
    uint64_t list = (calls + 1) * sizeof(struct seen_command);
    struct call *c = seen_alloc_zeroed(&seen_system_memory, size);
    struct seen_command *k = seen_alloc_zeroed(&seen_system_memory, list);
    seen_error failed = {0};
    seen_status status = c && k ? SEEN_OK : SEEN_NOMEM;
    for (size_t i = 0; status == SEEN_OK && i < calls; i++) {
        begin(&c[i], m, adds ? "BF.INSERT" : "BF.MEXISTS");
        if (adds) add_word(&c[i], "NOCREATE");
        if (adds) add_word(&c[i], "ITEMS");
        const size_t from = i * SEEN_BATCH_KEYS, some = len_of(n, i);
        const seen_key *key = seen_batch_keys(&c[i].keys, keys, from, some);
        for (size_t at = 0; at < some; at++)
            add(&c[i], key[at].data, key[at].len);
        k[i] = c[i].k;
    }
    if (status == SEEN_OK) {
        begin(&c[calls], m, "EXISTS");
        k[calls] = c[calls].k;
        status = seen_pool_run(&m->pool, k, calls + 1, &failed);
    }
    /* Where the key is gone, an add has failed: this is why. */
    if (k && k[calls].reply) {
        seen_status behind = read_exists(m, k[calls].reply, error);
        if (behind != SEEN_OK) status = behind;
    }
    status = seen_fail_as(error, status, &failed);
    for (size_t i = 0; status == SEEN_OK && i < calls; i++) {
        const size_t from = i * SEEN_BATCH_KEYS;
        c[i].k = k[i];
        status = read_answers(m, &c[i], adds, len_of(n, i),
                              there ? there + from : NULL, error);
    }
    if (k) seen_redis_done(k, calls + 1);
    seen_release(&seen_system_memory, k, list);
    seen_release(&seen_system_memory, c, size);
    return status;
}

static seen_status send(seen_remote *m, bool adds, seen_keys keys, bool *there,
                        seen_error *error)
{
    seen_status status = SEEN_OK;
    for (size_t at = 0; status == SEEN_OK && at < keys.n; at += PIPELINE)
        status = send_some(m, adds, seen_keys_slice(keys, at, PIPELINE),
                           there ? there + at : NULL, error);
    return status;
}

/* ---- The filter --------------------------------------------------------- */

static seen_status exists(seen_remote *m, bool *there, seen_error *error)
{
    const char *argv[] = {"EXISTS", m->key};
    return seen_remote_flag(m, 2, argv, true, there, error);
}

static seen_status reserve(seen_remote *m, const seen_spec *spec,
                           seen_error *error)
{
    char fpp[SEEN_DECIMAL], items[24];
    const char *argv[] = {"BF.RESERVE", m->key, fpp, items};
    struct seen_command k;
    seen_decimal_put(spec->fpp, fpp);
    snprintf(items, sizeof items, "%llu", (unsigned long long)spec->items);
    seen_status status = seen_remote_do(m, &k, 4, argv, false, error);
    if (status == SEEN_OK && !seen_reply_status(k.reply))
        status = seen_pool_strange(argv[0], k.reply, "OK", error);
    seen_redis_done(&k, 1);
    return status;
}

static seen_status open(seen_remote *m, const seen_spec *create,
                        seen_outcome *outcome, seen_error *error)
{
    bool there = false;
    seen_status status =
        create ? seen_remote_check_create(create, error) : SEEN_OK;
    if (status == SEEN_OK) status = exists(m, &there, error);
    if (status != SEEN_OK || there) return status;
    if (!create) return seen_remote_absent(m, error);
    status = reserve(m, create, error);
    outcome->created = status == SEEN_OK;
    /* Somebody else may have made it meanwhile; or we, if a reply was lost. */
    if (status == SEEN_IO && exists(m, &there, NULL) == SEEN_OK && there)
        status = SEEN_OK;
    return status;
}

/* BF.INFO: names and numbers by turns. */
static void read_field(const char *name, int64_t value, seen_remote_info *info)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"Capacity", offsetof(seen_remote_info, capacity)},
        {"Size", offsetof(seen_remote_info, bytes)},
        {"Number of filters", offsetof(seen_remote_info, parts)},
        {"Number of items inserted", offsetof(seen_remote_info, items)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(name, fields[i].name) == 0)
            *(uint64_t *)(void *)((char *)info + fields[i].offset) =
                (uint64_t)value;
}

static const char *text_of(const struct redisReply *reply)
{
    seen_key bytes;
    if (seen_reply_string(reply, &bytes)) return bytes.data;
    return seen_reply_status(reply);
}

/* Not every value is a number: an expansion may be nil. */
static seen_status read_info(const struct redisReply *reply,
                             seen_remote_info *info, seen_error *error)
{
    size_t n;
    if (!seen_reply_array(reply, &n) || n == 0 || n % 2)
        return seen_pool_strange("BF.INFO", reply, "names and values", error);
    for (size_t i = 0; i < n; i += 2) {
        const char *name = text_of(seen_reply_at(reply, i));
        int64_t value;
        if (!name)
            return seen_pool_strange("BF.INFO", seen_reply_at(reply, i),
                                     "a name", error);
        if (seen_reply_integer(seen_reply_at(reply, i + 1), 0, INT64_MAX,
                               &value))
            read_field(name, value, info);
    }
    return SEEN_OK;
}

static seen_status info_of(seen_remote *m, seen_remote_info *info,
                           seen_error *error)
{
    const char *argv[] = {"BF.INFO", m->key};
    struct seen_command k;
    bool there = false;
    seen_status status = exists(m, &there, error);
    if (status != SEEN_OK) return status;
    if (!there) return seen_remote_absent(m, error);
    status = seen_remote_do(m, &k, 2, argv, true, error);
    info->layout = "bf";
    if (status == SEEN_OK) status = read_info(k.reply, info, error);
    seen_redis_done(&k, 1);
    return status;
}

const struct seen_remote_ops seen_remote_bf = {
    .scheme = "redis",
    .open = open,
    .send = send,
    .info = info_of,
};
