/*
 * cmd_exposure.c - SEEN.*: what each user has been shown. A key is a user.
 *
 * Every write is told to replicas as its effect, with the time and the numbers of
 * the policy it happened under: a mark, or a take, as SEEN.MARK of what was
 * marked; a union or an import as SEEN.IMPORT of the record that came out. So a
 * replica reads neither its clock nor its configuration. Questions change
 * nothing: what has aged out is left out of the answer, and leaves the record
 * with the next write.
 *
 * Expiry. The key lives as long as its newest mark, its ttl. Telling the replicas
 * so with each mark would double what they are sent; so the key is given a
 * sixteenth of the ttl more than it needs, and is told again only when that has
 * been used up. Nothing is answered from the time it has too much: generations
 * age to the millisecond.
 */
#include "arguments.h"
#include "commands.h"
#include "exposure.h"
#include "memory.h"
#include "reply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FEW       1024 /* items that need no memory of their own */
#define MOST_TIME (((long long)1 << 48) - 1)

/* ---- Arguments ---------------------------------------------------------- */

enum {
    WITH_LIMIT = 1,
    WITH_COUNT = 2,
    WITH_TIME = 4
};

struct request {
    struct policy *policy;
    uint64_t now;
    size_t most; /* LIMIT or COUNT */
    RedisModuleString **items;
    size_t n;
};

/* The value of an option; false: no such option. */
static bool read_option(RedisModuleString *word, RedisModuleString *value,
                        unsigned with, struct request *q, const char **problem)
{
    long long number;
    if (is_word(word, "POLICY")) {
        seen_key text = key_of(value);
        q->policy = policy_find(text.data, text.len, problem);
    } else if (with & WITH_TIME && is_word(word, "AT")) {
        if (to_number(value, 0, MOST_TIME, &number))
            q->now = (uint64_t)number;
        else
            *problem = "ERR AT is a time in milliseconds since 1970";
    } else if ((with & WITH_LIMIT && is_word(word, "LIMIT")) ||
               (with & WITH_COUNT && is_word(word, "COUNT"))) {
        if (to_number(value, 0, INT64_MAX, &number))
            q->most = (size_t)number;
        else
            *problem = "ERR LIMIT and COUNT are whole numbers, 0 or more";
    } else {
        return false;
    }
    return true;
}

/* Options behind the key, then ITEMS, which may be left out, and the items. */
static bool read_request(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc, unsigned with, struct request *q)
{
    const char *problem = NULL;
    int i = 2;
    *q = (struct request){.now = (uint64_t)RedisModule_Milliseconds(),
                          .most = SIZE_MAX};
    while (!problem && i + 1 < argc &&
           read_option(argv[i], argv[i + 1], with, q, &problem))
        i += 2;
    if (!problem && i < argc && is_word(argv[i], "ITEMS")) i++;
    if (!problem && with & WITH_COUNT && q->most == SIZE_MAX)
        problem = "ERR expected COUNT and a number behind the key";
    if (!problem && !q->policy) q->policy = policy_find("default", 7, &problem);
    if (problem) {
        RedisModule_ReplyWithError(ctx, problem);
        return false;
    }
    q->items = argv + i;
    q->n = (size_t)(argc - i);
    return true;
}

/* The items as keys, in `few` or in memory of their own. */
static seen_key *keys_of(RedisModuleString **items, size_t n, seen_key few[FEW])
{
    seen_key *keys = n <= FEW ? few : RedisModule_Alloc(n * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = key_of(items[i]);
    return keys;
}

static void keys_done(seen_key *keys, seen_key few[FEW])
{
    if (keys != few) RedisModule_Free(keys);
}

/* ---- Keys --------------------------------------------------------------- */

static struct exposure *open(RedisModuleCtx *ctx, RedisModuleString *name,
                             int mode, RedisModuleKey **key, bool *refused)
{
    *refused = false;
    *key = RedisModule_OpenKey(ctx, name, mode);
    if (!*key) return NULL;
    if (RedisModule_ModuleTypeGetType(*key) == exposure_type)
        return RedisModule_ModuleTypeGetValue(*key);
    if (RedisModule_KeyType(*key) == REDISMODULE_KEYTYPE_EMPTY) return NULL;
    RedisModule_CloseKey(*key);
    RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
    *refused = true;
    return NULL;
}

static int fail(RedisModuleCtx *ctx, RedisModuleKey *key, seen_status status)
{
    if (key) RedisModule_CloseKey(key);
    if (status == SEEN_MISMATCH)
        return RedisModule_ReplyWithError(
            ctx, "ERR the record was written under another secret-file");
    return reply_status(ctx, status);
}

/* The record of a key becomes this one. *changed: it was another. */
static seen_status store(RedisModuleKey *key, struct exposure *old,
                         seen_record record, bool *changed)
{
    seen_record was = exposure_record(old);
    *changed = was.len != record.len ||
               (was.len && memcmp(was.data, record.data, was.len) != 0);
    if (!*changed) return SEEN_OK;
    if (record.len == 0) {
        RedisModule_DeleteKey(key);
        return SEEN_OK;
    }
    struct exposure *e = exposure_new(record);
    if (!e) return SEEN_NOMEM;
    void *before = NULL;
    if (old)
        RedisModule_ModuleTypeReplaceValue(key, exposure_type, e, &before);
    else
        RedisModule_ModuleTypeSetValue(key, exposure_type, e);
    exposure_free(before);
    return SEEN_OK;
}

/* Replicas and files are told when, they do not work it out. */
static void live_until(RedisModuleCtx *ctx, RedisModuleKey *key,
                       RedisModuleString *name, uint64_t newest, uint64_t ttl)
{
    if (RedisModule_GetContextFlags(ctx) &
        (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING))
        return;
    long long now = RedisModule_Milliseconds();
    long long left = RedisModule_GetExpire(key);
    long long needed = (long long)(newest + ttl) + 1;
    if (left != REDISMODULE_NO_EXPIRE && now + left >= needed) return;
    long long when = needed + (long long)(ttl / 16);
    if (RedisModule_SetAbsExpire)
        RedisModule_SetAbsExpire(key, when);
    else
        RedisModule_SetExpire(key, when > now ? when - now : 1);
    RedisModule_Replicate(ctx, "PEXPIREAT", "sl", name, when);
}

static void changed_key(RedisModuleCtx *ctx, RedisModuleString *name,
                        const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event,
                                    name);
}

/* ---- SEEN.CHECK, SEEN.FRESH --------------------------------------------- */

int xp_check(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, 0, &q)) return REDISMODULE_OK;
    if (q.n == 0) return RedisModule_WrongArity(ctx);
    struct exposure *e = open(ctx, argv[1], REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    bool *answers = RedisModule_Alloc(q.n);
    seen_status status = seen_exposure_maybe_many(
        q.policy->x, exposure_record(e), q.now, keys, q.n, answers);
    if (status == SEEN_OK) {
        RedisModule_ReplyWithArray(ctx, (long)q.n);
        for (size_t i = 0; i < q.n; i++) {
            reply_bool(ctx, answers[i]);
            statistics.hits += answers[i];
        }
        statistics.checks += q.n;
    }
    RedisModule_Free(answers);
    keys_done(keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

static void reply_items(RedisModuleCtx *ctx, const seen_key *keys, size_t n)
{
    RedisModule_ReplyWithArray(ctx, (long)n);
    for (size_t i = 0; i < n; i++)
        RedisModule_ReplyWithStringBuffer(ctx, keys[i].data, keys[i].len);
}

int xp_fresh(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    size_t fresh;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_LIMIT, &q)) return REDISMODULE_OK;
    struct exposure *e = open(ctx, argv[1], REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    seen_status status = seen_exposure_fresh(q.policy->x, exposure_record(e),
                                             q.now, keys, q.n, &fresh);
    if (status == SEEN_OK) {
        statistics.checks += q.n;
        statistics.hits += q.n - fresh;
        reply_items(ctx, keys, fresh < q.most ? fresh : q.most);
    }
    keys_done(keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- SEEN.MARK, SEEN.TAKE ----------------------------------------------- */

static void replicate_mark(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct request *q, RedisModuleString **items,
                           size_t n)
{
    RedisModule_Replicate(ctx, "SEEN.MARK", "sclcccv", name, "AT",
                          (long long)q->now, "POLICY", q->policy->text, "ITEMS",
                          items, n);
}

int xp_mark(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    struct request q;
    seen_record record;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_TIME, &q)) return REDISMODULE_OK;
    if (q.n == 0) return RedisModule_WrongArity(ctx);
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    bool *fresh = RedisModule_Alloc(q.n);
    long long new = 0;
    seen_status status = seen_exposure_mark(q.policy->x, exposure_record(e),
                                            q.now, keys, q.n, fresh, &record);
    if (status == SEEN_OK) status = store(key, e, record, &changed);
    for (size_t i = 0; status == SEEN_OK && i < q.n; i++)
        new += fresh[i];
    RedisModule_Free(fresh);
    keys_done(keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (changed) {
        replicate_mark(ctx, argv[1], &q, q.items, q.n);
        live_until(ctx, key, argv[1], q.now, q.policy->policy.ttl);
        changed_key(ctx, argv[1], "seen.mark");
    }
    statistics.adds += q.n;
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithLongLong(ctx, new);
}

int xp_take(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    struct request q;
    seen_record record;
    size_t taken;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_COUNT | WITH_TIME, &q))
        return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    seen_status status =
        seen_exposure_take(q.policy->x, exposure_record(e), q.now, keys, q.n,
                           q.most, &taken, &record);
    if (status == SEEN_OK && taken) status = store(key, e, record, &changed);
    if (status == SEEN_OK) reply_items(ctx, keys, taken);
    if (changed) { /* the taken ones among the arguments, in their order */
        RedisModuleString **items = RedisModule_Alloc(taken * sizeof *items);
        for (size_t i = 0, j = 0; j < taken; i++)
            if (key_of(q.items[i]).data == keys[j].data)
                items[j++] = q.items[i];
        replicate_mark(ctx, argv[1], &q, items, taken);
        RedisModule_Free(items);
        live_until(ctx, key, argv[1], q.now, q.policy->policy.ttl);
        changed_key(ctx, argv[1], "seen.mark");
        statistics.adds += taken;
    }
    statistics.checks += q.n;
    keys_done(keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- Packed: ids of one width in one argument --------------------------- */

struct packed {
    const uint8_t *bytes;
    size_t width, n;
    seen_key *keys;
};

/* The last two arguments: width and ids. */
static bool read_packed(RedisModuleCtx *ctx, struct request *q,
                        struct packed *p, seen_key few[FEW])
{
    long long width;
    if (q->n != 2) {
        RedisModule_ReplyWithError(
            ctx, "ERR expected a width and the ids, in one argument, at the "
                 "end");
        return false;
    }
    seen_key ids = key_of(q->items[1]);
    if (!to_number(q->items[0], 1, 65536, &width) ||
        ids.len % (size_t)width != 0) {
        RedisModule_ReplyWithError(ctx, "ERR the width of an id is 1 to 65536 "
                                        "bytes, and the ids are so many times "
                                        "that");
        return false;
    }
    *p = (struct packed){.bytes = ids.data,
                         .width = (size_t)width,
                         .n = ids.len / (size_t)width};
    p->keys = p->n <= FEW ? few : RedisModule_Alloc(p->n * sizeof *p->keys);
    for (size_t i = 0; i < p->n; i++)
        p->keys[i] = (seen_key){p->bytes + i * p->width, p->width};
    return true;
}

/* Bit i, as GETBIT numbers them: id i is among the first `n` keys. */
static void reply_bits(RedisModuleCtx *ctx, const struct packed *p, size_t n)
{
    size_t len = (p->n + 7) / 8;
    uint8_t few[FEW / 8], *bits = p->n <= FEW ? few : RedisModule_Alloc(len);
    memset(bits, 0, len);
    for (size_t i = 0; i < n; i++) {
        size_t at =
            (size_t)((const uint8_t *)p->keys[i].data - p->bytes) / p->width;
        bits[at / 8] |= (uint8_t)(0x80 >> at % 8);
    }
    RedisModule_ReplyWithStringBuffer(ctx, (const char *)bits, len);
    if (bits != few) RedisModule_Free(bits);
}

int xp_freshp(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    struct packed p;
    seen_key few[FEW];
    size_t fresh;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_LIMIT, &q)) return REDISMODULE_OK;
    if (!read_packed(ctx, &q, &p, few)) return REDISMODULE_OK;
    struct exposure *e = open(ctx, argv[1], REDISMODULE_READ, &key, &refused);
    seen_status status = SEEN_OK;
    if (!refused)
        status = seen_exposure_fresh(q.policy->x, exposure_record(e), q.now,
                                     p.keys, p.n, &fresh);
    if (!refused && status == SEEN_OK) {
        statistics.checks += p.n;
        statistics.hits += p.n - fresh;
        reply_bits(ctx, &p, fresh < q.most ? fresh : q.most);
    }
    keys_done(p.keys, few);
    if (refused) return REDISMODULE_OK;
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

static void replicate_packed(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct request *q, const struct packed *p,
                             size_t n)
{
    size_t len = n * p->width;
    uint8_t *ids = RedisModule_Alloc(len);
    for (size_t i = 0; i < n; i++)
        memcpy(ids + i * p->width, p->keys[i].data, p->width);
    RedisModule_Replicate(ctx, "SEEN.MARKP", "sclcclb", name, "AT",
                          (long long)q->now, "POLICY", q->policy->text,
                          (long long)p->width, ids, len);
    RedisModule_Free(ids);
}

/* SEEN.TAKEP, and SEEN.MARKP, which takes everything, seen or not. */
static int change_packed(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc, bool take)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    struct request q;
    struct packed p;
    seen_key few[FEW];
    seen_record record;
    bool *fresh = NULL;
    size_t taken = 0;
    if (argc < 4) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, (take ? WITH_COUNT : 0) | WITH_TIME, &q))
        return REDISMODULE_OK;
    if (!read_packed(ctx, &q, &p, few)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) {
        keys_done(p.keys, few);
        return REDISMODULE_OK;
    }
    seen_status status = SEEN_OK;
    if (take) {
        status = seen_exposure_take(q.policy->x, exposure_record(e), q.now,
                                    p.keys, p.n, q.most, &taken, &record);
    } else if (p.n) {
        fresh = RedisModule_Alloc(p.n);
        status = seen_exposure_mark(q.policy->x, exposure_record(e), q.now,
                                    p.keys, p.n, fresh, &record);
        taken = p.n;
    }
    if (status == SEEN_OK && taken) status = store(key, e, record, &changed);
    long long new = 0;
    for (size_t i = 0; status == SEEN_OK && fresh && i < p.n; i++)
        new += fresh[i];
    if (fresh) RedisModule_Free(fresh);
    if (status == SEEN_OK && take) reply_bits(ctx, &p, taken);
    if (status == SEEN_OK && !take) RedisModule_ReplyWithLongLong(ctx, new);
    if (changed) {
        replicate_packed(ctx, argv[1], &q, &p, taken);
        live_until(ctx, key, argv[1], q.now, q.policy->policy.ttl);
        changed_key(ctx, argv[1], "seen.mark");
        statistics.adds += taken;
    }
    keys_done(p.keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int xp_takep(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return change_packed(ctx, argv, argc, true);
}

int xp_markp(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return change_packed(ctx, argv, argc, false);
}

/* ---- SEEN.FORGET -------------------------------------------------------- */

/* Items, or the user. 1: something has changed. */
int xp_forget(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    struct request q;
    seen_record record = {NULL, 0};
    seen_status status = SEEN_OK;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_TIME, &q)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (e && q.n) {
        seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
        status = seen_exposure_forget(q.policy->x, exposure_record(e), q.now,
                                      keys, q.n, &record);
        keys_done(keys, few);
    }
    if (e && status == SEEN_OK) status = store(key, e, record, &changed);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (changed) {
        if (q.n)
            RedisModule_Replicate(ctx, "SEEN.FORGET", "sclcccv", argv[1], "AT",
                                  (long long)q.now, "POLICY", q.policy->text,
                                  "ITEMS", q.items, q.n);
        else
            RedisModule_Replicate(ctx, "SEEN.FORGET", "s", argv[1]);
        changed_key(ctx, argv[1], "seen.forget");
    }
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithLongLong(ctx, changed);
}

/* ---- Whole records ------------------------------------------------------ */

/* The record becomes this one, here and on replicas. */
static seen_status put_record(RedisModuleCtx *ctx, RedisModuleKey *key,
                              RedisModuleString *name, struct exposure *old,
                              const struct request *q, seen_record record,
                              const char *event)
{
    bool changed;
    seen_exposure_info info;
    /* The bytes first: storing may free them. */
    uint8_t *bytes = RedisModule_Alloc(ENVELOPE + record.len);
    envelope_write(&q->policy->policy, bytes);
    if (record.len) memcpy(bytes + ENVELOPE, record.data, record.len);
    record.data = bytes + ENVELOPE;
    seen_status status = store(key, old, record, &changed);
    if (status == SEEN_OK && changed && record.len) {
        RedisModule_Replicate(ctx, "SEEN.IMPORT", "sbc", name, bytes,
                              ENVELOPE + record.len, "REPLACE");
        if (seen_exposure_info_of(q->policy->x, record, 0, &info) == SEEN_OK)
            live_until(ctx, key, name, info.newest, q->policy->policy.ttl);
    } else if (status == SEEN_OK && changed) {
        RedisModule_Replicate(ctx, "SEEN.FORGET", "s", name);
    }
    if (status == SEEN_OK && changed) changed_key(ctx, name, event);
    RedisModule_Free(bytes);
    return status;
}

/* A record that belongs to nobody else. */
static seen_record own(seen_record record)
{
    void *copy = RedisModule_Alloc(record.len ? record.len : 1);
    if (record.len) memcpy(copy, record.data, record.len);
    return (seen_record){copy, record.len};
}

int xp_merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, 2, 0, &q)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_record all = own(exposure_record(e));
    seen_status status = SEEN_OK;
    for (int i = 2; status == SEEN_OK && !refused && i < argc; i++) {
        RedisModuleKey *from_key;
        seen_record record;
        struct exposure *from =
            open(ctx, argv[i], REDISMODULE_READ, &from_key, &refused);
        if (refused) break;
        status = seen_exposure_merge(q.policy->x, all, exposure_record(from),
                                     q.now, &record);
        if (from_key) RedisModule_CloseKey(from_key);
        if (status != SEEN_OK) break;
        record = own(record);
        RedisModule_Free((void *)(uintptr_t)all.data);
        all = record;
    }
    if (!refused && status == SEEN_OK)
        status = put_record(ctx, key, argv[1], e, &q, all, "seen.merge");
    RedisModule_Free((void *)(uintptr_t)all.data);
    if (refused) {
        RedisModule_CloseKey(key);
        return REDISMODULE_OK;
    }
    if (status != SEEN_OK) return fail(ctx, key, status);
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int xp_export(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, 0, &q)) return REDISMODULE_OK;
    if (q.n) return RedisModule_WrongArity(ctx);
    struct exposure *e = open(ctx, argv[1], REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!e) {
        if (key) RedisModule_CloseKey(key);
        return RedisModule_ReplyWithNull(ctx);
    }
    size_t len = ENVELOPE + (size_t)e->len;
    uint8_t *bytes = RedisModule_Alloc(len);
    envelope_write(&q.policy->policy, bytes);
    memcpy(bytes + ENVELOPE, e->record, e->len);
    RedisModule_ReplyWithStringBuffer(ctx, (const char *)bytes, len);
    RedisModule_Free(bytes);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int xp_import(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    seen_record record;
    if (argc != 3 && argc != 4) return RedisModule_WrongArity(ctx);
    if (argc == 4 && !is_word(argv[3], "REPLACE"))
        return RedisModule_ReplyWithError(ctx, "ERR expected REPLACE, or "
                                               "nothing, behind the bytes");
    if (!read_request(ctx, argv, 2, 0, &q)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key bytes = key_of(argv[2]);
    seen_status status = envelope_read(bytes.data, bytes.len, &record);
    if (status == SEEN_OK && e && argc == 3)
        status = seen_exposure_merge(q.policy->x, exposure_record(e), record,
                                     q.now, &record);
    if (status == SEEN_OK)
        status = put_record(ctx, key, argv[1], e, &q, record, "seen.import");
    if (status != SEEN_OK) return fail(ctx, key, status);
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- SEEN.INFO, SEEN.POLICY --------------------------------------------- */

int xp_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    seen_exposure_info info;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, 0, &q)) return REDISMODULE_OK;
    if (q.n) return RedisModule_WrongArity(ctx);
    struct exposure *e = open(ctx, argv[1], REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!e) {
        if (key) RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "ERR not found");
    }
    seen_status status =
        seen_exposure_info_of(q.policy->x, exposure_record(e), q.now, &info);
    if (status != SEEN_OK) return fail(ctx, key, status);
    reply_map(ctx, 5);
    reply_pair(ctx, "Items", info.items);
    reply_pair(ctx, "Bytes", info.bytes);
    reply_pair(ctx, "Newest", info.newest);
    RedisModule_ReplyWithSimpleString(ctx, "Rate");
    RedisModule_ReplyWithDouble(ctx, info.fpp_now);
    RedisModule_ReplyWithSimpleString(ctx, "Generations");
    RedisModule_ReplyWithArray(ctx, (long)info.generations);
    for (uint32_t i = 0; i < info.generations; i++) {
        const seen_generation_info *g = &info.generation[i];
        reply_map(ctx, 4);
        reply_pair(ctx, "Items", g->items);
        reply_pair(ctx, "Bytes", g->bytes);
        reply_pair(ctx, "First", g->first);
        reply_pair(ctx, "Newest", g->newest);
    }
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* SEEN.POLICY [name [policy]] */
int xp_policy(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *problem;
    if (argc > 3) return RedisModule_WrongArity(ctx);
    if (argc == 3) {
        problem = policy_set(RedisModule_StringPtrLen(argv[1], NULL),
                             RedisModule_StringPtrLen(argv[2], NULL));
        return problem ? reply_error(ctx, "ERR expected %s", problem)
                       : RedisModule_ReplyWithSimpleString(ctx, "OK");
    }
    if (argc == 2) {
        seen_key name = key_of(argv[1]);
        const struct policy *p = policy_find(name.data, name.len, &problem);
        return p ? RedisModule_ReplyWithSimpleString(ctx, p->text)
                 : RedisModule_ReplyWithError(ctx, problem);
    }
    long n = 0;
    while (policy_at((size_t)n))
        n++;
    reply_map(ctx, n);
    for (long i = 0; i < n; i++) {
        const struct policy *p = policy_at((size_t)i);
        RedisModule_ReplyWithStringBuffer(ctx, p->name, strlen(p->name));
        RedisModule_ReplyWithStringBuffer(ctx, p->text, strlen(p->text));
    }
    return REDISMODULE_OK;
}
