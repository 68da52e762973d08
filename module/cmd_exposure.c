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
 * Policy. A mark with a POLICY makes that the user's own: it is kept with the
 * record and holds for all commands that name none. A user without one follows
 * the default of the server, and goes on doing so when the default changes: what
 * is replicated of his marks says UNDER instead of POLICY, which has the numbers
 * and keeps none. POLICY default makes a user follow it again.
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
#include "object.h"
#include "reply.h"

#include <stdio.h>
#include <string.h>

#define FEW 1024 /* items that need no memory of their own */
#define MOST_IDS                                                               \
    ((size_t)1 << 22) /* packed: two seconds, and 0.3 GB meanwhile */
#define MOST_TIME (((long long)1 << 48) - 1)

/* ---- Arguments ---------------------------------------------------------- */

enum {
    WITH_LIMIT = 1,
    WITH_COUNT = 2,
    WITH_TIME = 4,
    WITH_UNDER = 8
};

struct request {
    struct policy *policy; /* NULL until the key is open: that of the user */
    bool own;              /* the user's, not the server's default */
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
    bool own = is_word(word, "POLICY");
    if (own || (with & WITH_UNDER && is_word(word, "UNDER"))) {
        seen_key text = key_of(value);
        q->policy = policy_find(text.data, text.len, problem);
        q->own = own && !(text.len == 7 && !memcmp(text.data, "default", 7));
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
    if (!problem && i < argc && is_word(argv[i], "ITEMS") && ++i == argc)
        problem = "ERR expected at least one item behind ITEMS";
    if (!problem && with & WITH_COUNT && q->most == SIZE_MAX)
        problem = "ERR expected COUNT and a number behind the key";
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

/* At the end of a command: what many items took is not kept, nor is the record
 * that came out. */
static void keys_done(const struct request *q, seen_key *keys,
                      seen_key few[FEW])
{
    if (keys == few) return;
    RedisModule_Free(keys);
    policy_rest(q->policy);
}

/* ---- Keys --------------------------------------------------------------- */

static struct exposure *open_key(RedisModuleCtx *ctx, RedisModuleString *name,
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

/* The policy of a user: his own, or the default. */
static seen_policy policy_of_user(const struct exposure *e, bool *own)
{
    seen_policy policy;
    *own = exposure_own(e, &policy);
    return *own ? policy : policy_at(0)->policy;
}

/* The same, and where the request names no policy it gets that of the user. */
static struct exposure *open(RedisModuleCtx *ctx, RedisModuleString *name,
                             int mode, RedisModuleKey **key, bool *refused,
                             struct request *q)
{
    const char *problem;
    struct exposure *e = open_key(ctx, name, mode, key, refused);
    if (*refused || q->policy) return e;
    seen_policy policy = policy_of_user(e, &q->own);
    q->policy = policy_of(&policy, &problem);
    if (q->policy) return e;
    if (*key) RedisModule_CloseKey(*key);
    RedisModule_ReplyWithError(ctx, problem);
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

/* Record and policy of a key become these. *changed: one of them was another. */
static seen_status store(RedisModuleKey *key, struct exposure *old,
                         seen_record record, const seen_policy *own,
                         bool *changed)
{
    seen_record was = exposure_record(old);
    seen_policy before_own;
    bool had = exposure_own(old, &before_own);
    *changed = was.len != record.len ||
               (was.len && memcmp(was.data, record.data, was.len) != 0) ||
               had != (own != NULL) || (own && !policy_same(own, &before_own));
    if (!*changed) return SEEN_OK;
    if (record.len == 0) {
        RedisModule_DeleteKey(key);
        return SEEN_OK;
    }
    struct exposure *e = exposure_new(record, own);
    if (!e) return SEEN_NOMEM;
    void *before = NULL;
    if (old)
        RedisModule_ModuleTypeReplaceValue(key, exposure_type, e, &before);
    else
        RedisModule_ModuleTypeSetValue(key, exposure_type, e);
    exposure_free(before);
    return SEEN_OK;
}

/* The key, which has this record now, lives as long as its newest mark needs; a
 * mark may have come with an older time. Replicas and files are told when, they
 * do not work it out. */
static void live(RedisModuleCtx *ctx, RedisModuleKey *key,
                 RedisModuleString *name, const struct policy *policy)
{
    seen_exposure_info info = {.size = sizeof info};
    seen_record record = exposure_record(RedisModule_ModuleTypeGetValue(key));
    if (RedisModule_GetContextFlags(ctx) & (REDISMODULE_CTX_FLAGS_REPLICATED |
                                            REDISMODULE_CTX_FLAGS_LOADING) ||
        seen_exposure_info_of(policy->x, record, 0, &info) != SEEN_OK)
        return;
    uint64_t ttl = policy->policy.ttl;
    long long now = RedisModule_Milliseconds();
    long long left = RedisModule_GetExpire(key);
    long long needed = (long long)(info.newest + ttl) + 1;
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
    struct exposure *e =
        open(ctx, argv[1], REDISMODULE_READ, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    bool *answers = RedisModule_Alloc(q.n);
    seen_status status = seen_exposure_maybe_many(
        q.policy->x, exposure_record(e), q.now, keys, q.n, answers);
    if (status == SEEN_OK) {
        RedisModule_ReplyWithArray(ctx, (long)q.n);
        for (size_t i = 0; i < q.n; i++)
            reply_bool(ctx, answers[i]);
        count_answers(answers, q.n);
    }
    RedisModule_Free(answers);
    keys_done(&q, keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

static void count_asked(size_t n, size_t fresh)
{
    statistics.checks += n;
    statistics.hits += n - fresh;
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
    struct exposure *e =
        open(ctx, argv[1], REDISMODULE_READ, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    seen_status status = seen_exposure_fresh(q.policy->x, exposure_record(e),
                                             q.now, keys, q.n, &fresh);
    if (status == SEEN_OK) {
        count_asked(q.n, fresh);
        reply_items(ctx, keys, fresh < q.most ? fresh : q.most);
    }
    keys_done(&q, keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- SEEN.MARK, SEEN.TAKE ----------------------------------------------- */

static const seen_policy *own_of(const struct request *q)
{
    return q->own ? &q->policy->policy : NULL;
}

static const char *word_of(const struct request *q)
{
    return q->own ? "POLICY" : "UNDER";
}

static void replicate_mark(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct request *q, RedisModuleString **items,
                           size_t n)
{
    RedisModule_Replicate(ctx, "SEEN.MARK", "sclcccv", name, "AT",
                          (long long)q->now, word_of(q), q->policy->text,
                          "ITEMS", items, n);
}

int xp_mark(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    struct request q;
    seen_record record;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_TIME | WITH_UNDER, &q))
        return REDISMODULE_OK;
    if (q.n == 0) return RedisModule_WrongArity(ctx);
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    bool *fresh = RedisModule_Alloc(q.n);
    long long new = 0;
    seen_status status = seen_exposure_mark(q.policy->x, exposure_record(e),
                                            q.now, keys, q.n, fresh, &record);
    if (status == SEEN_OK) status = store(key, e, record, own_of(&q), &changed);
    for (size_t i = 0; status == SEEN_OK && i < q.n; i++)
        new += fresh[i];
    RedisModule_Free(fresh);
    if (status == SEEN_OK && changed) {
        replicate_mark(ctx, argv[1], &q, q.items, q.n);
        live(ctx, key, argv[1], q.policy);
        changed_key(ctx, argv[1], "seen.mark");
    }
    keys_done(&q, keys, few);
    if (status != SEEN_OK) return fail(ctx, key, status);
    statistics.adds += q.n;
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithLongLong(ctx, new);
}

static void count_taken(size_t asked, size_t taken)
{
    count_asked(asked, taken);
    statistics.adds += taken;
}

/* What a take gives must be remembered, or it would be given again. */
static bool holds(RedisModuleCtx *ctx, const struct request *q, size_t n)
{
    char text[160];
    uint64_t most = seen_policy_holds(&q->policy->policy);
    size_t count = q->most < n ? q->most : n;
    if (count <= most) return true;
    snprintf(text, sizeof text,
             "ERR a take of %zu items: the policy (%.60s) holds %llu of a user",
             count, q->policy->text, (unsigned long long)most);
    RedisModule_ReplyWithError(ctx, text);
    return false;
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
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    if (!holds(ctx, &q, q.n)) {
        RedisModule_CloseKey(key);
        return REDISMODULE_OK;
    }
    seen_key few[FEW], *keys = keys_of(q.items, q.n, few);
    seen_status status =
        seen_exposure_take(q.policy->x, exposure_record(e), q.now, keys, q.n,
                           q.most, &taken, &record);
    if (status == SEEN_OK && taken)
        status = store(key, e, record, own_of(&q), &changed);
    if (status == SEEN_OK) { /* the taken ones among the arguments */
        RedisModuleString **items =
            RedisModule_Alloc((taken + 1) * sizeof *items);
        size_t asked = 0;
        for (size_t j = 0; j < taken; asked++)
            if (key_of(q.items[asked]).data == keys[j].data)
                items[j++] = q.items[asked];
        reply_items(ctx, keys, taken);
        count_taken(taken < q.most ? q.n : asked, taken);
        if (changed) replicate_mark(ctx, argv[1], &q, items, taken);
        RedisModule_Free(items);
    }
    if (changed) {
        live(ctx, key, argv[1], q.policy);
        changed_key(ctx, argv[1], "seen.mark");
    }
    keys_done(&q, keys, few);
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
        RedisModule_ReplyWithError(ctx, "ERR width must be 1 to 65536 and "
                                        "must divide the length of the ids");
        return false;
    }
    *p = (struct packed){.bytes = ids.data,
                         .width = (size_t)width,
                         .n = ids.len / (size_t)width};
    if (p->n > MOST_IDS) {
        RedisModule_ReplyWithError(
            ctx, "ERR at most 4194304 ids in one command: send several");
        return false;
    }
    p->keys = p->n <= FEW ? few : RedisModule_Alloc(p->n * sizeof *p->keys);
    for (size_t i = 0; i < p->n; i++)
        p->keys[i] = (seen_key){p->bytes + i * p->width, p->width};
    return true;
}

/* Where the n-th key stands among the ids, counted from 1; 0 for the 0th. */
static size_t place_of(const struct packed *p, size_t n)
{
    if (n == 0) return 0;
    const uint8_t *at = p->keys[n - 1].data;
    return (size_t)(at - p->bytes) / p->width + 1;
}

/* Bit i, as GETBIT numbers them: id i is among the first `n` keys. */
static void reply_bits(RedisModuleCtx *ctx, const struct packed *p, size_t n)
{
    size_t len = (p->n + 7) / 8;
    uint8_t few[FEW / 8], *bits = p->n <= FEW ? few : RedisModule_Alloc(len);
    memset(bits, 0, len);
    for (size_t i = 1; i <= n; i++) {
        size_t at = place_of(p, i) - 1;
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
    struct exposure *e =
        open(ctx, argv[1], REDISMODULE_READ, &key, &refused, &q);
    seen_status status = SEEN_OK;
    if (!refused)
        status = seen_exposure_fresh(q.policy->x, exposure_record(e), q.now,
                                     p.keys, p.n, &fresh);
    if (!refused && status == SEEN_OK) {
        count_asked(p.n, fresh);
        reply_bits(ctx, &p, fresh < q.most ? fresh : q.most);
    }
    keys_done(&q, p.keys, few);
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
                          (long long)q->now, word_of(q), q->policy->text,
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
    if (!read_request(ctx, argv, argc,
                      (take ? WITH_COUNT : WITH_UNDER) | WITH_TIME, &q))
        return REDISMODULE_OK;
    if (!read_packed(ctx, &q, &p, few)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused, &q);
    if (!refused && take && !holds(ctx, &q, p.n)) {
        RedisModule_CloseKey(key);
        refused = true;
    }
    if (refused) {
        keys_done(&q, p.keys, few);
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
    if (status == SEEN_OK && taken)
        status = store(key, e, record, own_of(&q), &changed);
    long long new = 0;
    for (size_t i = 0; status == SEEN_OK && fresh && i < p.n; i++)
        new += fresh[i];
    if (fresh) RedisModule_Free(fresh);
    if (status == SEEN_OK && take) {
        reply_bits(ctx, &p, taken);
        count_taken(taken < q.most ? p.n : place_of(&p, taken), taken);
    } else if (status == SEEN_OK) {
        RedisModule_ReplyWithLongLong(ctx, new);
        statistics.adds += p.n;
    }
    if (changed) {
        replicate_packed(ctx, argv[1], &q, &p, taken);
        live(ctx, key, argv[1], q.policy);
        changed_key(ctx, argv[1], "seen.mark");
    }
    keys_done(&q, p.keys, few);
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
    seen_policy policy;
    seen_status status = SEEN_OK;
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, WITH_TIME, &q)) return REDISMODULE_OK;
    struct exposure *e = open(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    seen_key few[FEW], *keys = few;
    if (e && q.n) {
        keys = keys_of(q.items, q.n, few);
        status = seen_exposure_forget(q.policy->x, exposure_record(e), q.now,
                                      keys, q.n, &record);
    }
    if (e && status == SEEN_OK) /* the policy stays as it is */
        status = store(key, e, record,
                       exposure_own(e, &policy) ? &policy : NULL, &changed);
    keys_done(&q, keys, few);
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
    /* The bytes first: storing may free them. */
    uint8_t *bytes = RedisModule_Alloc(ENVELOPE + record.len);
    envelope_write(&q->policy->policy, q->own, bytes);
    if (record.len) memcpy(bytes + ENVELOPE, record.data, record.len);
    record.data = bytes + ENVELOPE;
    seen_status status = store(key, old, record, own_of(q), &changed);
    if (status == SEEN_OK && changed && record.len) {
        RedisModule_Replicate(ctx, "SEEN.IMPORT", "sbc", name, bytes,
                              ENVELOPE + record.len, "REPLACE");
        live(ctx, key, name, q->policy);
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

/* So that nothing is lost that one of the records keeps: the most of each number.
 * It is the user's own if one of them is. */
static void widen(seen_policy *all, bool *own, const seen_policy *one,
                  bool one_own)
{
    if (one->items > all->items) all->items = one->items;
    if (one->generations > all->generations)
        all->generations = one->generations;
    if (all->fpp == 0 || one->fpp < all->fpp) all->fpp = one->fpp;
    if (one->ttl > all->ttl) all->ttl = one->ttl;
    *own |= one_own;
}

/* The policy of a union, which may be one that cannot be. */
static bool take_policy(RedisModuleCtx *ctx, const seen_policy *all,
                        struct request *q)
{
    const char *problem;
    seen_error error;
    if (seen_policy_check(all, &error) != SEEN_OK)
        reply_error(ctx, "ERR the policies do not go together: %s", error.text);
    else if ((q->policy = policy_of(all, &problem)))
        return true;
    else
        RedisModule_ReplyWithError(ctx, problem);
    return false;
}

/* The widest policy of those of these keys that are there; false: the reply has
 * been given. */
static bool widest(RedisModuleCtx *ctx, RedisModuleString **names, int n,
                   struct request *q)
{
    seen_policy all = {0};
    for (int i = 0; i < n; i++) {
        RedisModuleKey *key;
        bool refused, own;
        const struct exposure *e =
            open_key(ctx, names[i], REDISMODULE_READ, &key, &refused);
        if (refused) return false;
        seen_policy one = policy_of_user(e, &own);
        if (e) widen(&all, &q->own, &one, own);
        if (key) RedisModule_CloseKey(key);
    }
    if (!all.items) all = policy_at(0)->policy;
    return take_policy(ctx, &all, q);
}

/*
 * Many records into one, as a tournament: each union is of two that have as many
 * records in them, so that a record is read once for every doubling, and not once
 * for every record behind it. at[i] has 2^i of them, or none (`full`).
 */
struct tournament {
    seen_exposure *x;
    uint64_t now;
    seen_record at[32];
    uint32_t full;
};

/* Of two copies, one that is the caller's. */
static seen_status unite(const struct tournament *t, seen_record *a,
                         seen_record b)
{
    seen_record both;
    seen_status status = seen_exposure_merge(t->x, *a, b, t->now, &both);
    if (status == SEEN_OK) {
        both = own(both);
        RedisModule_Free((void *)(uintptr_t)a->data);
        *a = both;
    }
    RedisModule_Free((void *)(uintptr_t)b.data);
    return status;
}

/* A copy, which becomes the tournament's. */
static seen_status enter(struct tournament *t, seen_record record)
{
    seen_status status = SEEN_OK;
    uint32_t i = 0;
    for (; status == SEEN_OK && t->full >> i & 1; i++) {
        t->full ^= (uint32_t)1 << i;
        status = unite(t, &t->at[i], record);
        record = t->at[i];
    }
    t->at[i] = record;
    t->full |= (uint32_t)1 << i;
    return status;
}

/* What is left, the latest first, as they came; the caller's. */
static seen_status finish(struct tournament *t, seen_record *all)
{
    seen_status status = SEEN_OK;
    *all = (seen_record){0};
    for (uint32_t i = 0; i < 32; i++) {
        if (!(t->full >> i & 1)) continue;
        if (status == SEEN_OK && all->data) {
            status = unite(t, &t->at[i], *all);
            *all = t->at[i];
        } else if (all->data) {
            RedisModule_Free((void *)(uintptr_t)t->at[i].data);
        } else {
            *all = t->at[i];
        }
    }
    return status;
}

/* Those with these names; that they are users is known. */
static seen_status enter_all(RedisModuleCtx *ctx, struct tournament *t,
                             RedisModuleString **names, int n)
{
    seen_status status = SEEN_OK;
    for (int i = 0; status == SEEN_OK && i < n; i++) {
        RedisModuleKey *key;
        bool refused;
        const struct exposure *from =
            open_key(ctx, names[i], REDISMODULE_READ, &key, &refused);
        status = enter(t, own(exposure_record(from)));
        if (key) RedisModule_CloseKey(key);
    }
    return status;
}

int xp_merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    struct request q;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, 2, 0, &q) ||
        !widest(ctx, argv + 1, argc - 1, &q))
        return REDISMODULE_OK;
    struct exposure *e = open_key(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    struct tournament t = {.x = q.policy->x, .now = q.now};
    seen_record all;
    seen_status status = enter(&t, own(exposure_record(e)));
    int n = argc - 2;
    RedisModuleString **others = distinct_names(argv + 2, &n);
    if (status == SEEN_OK) status = enter_all(ctx, &t, others, n);
    RedisModule_Free(others);
    seen_status end = finish(&t, &all);
    if (status == SEEN_OK) status = end;
    if (status == SEEN_OK)
        status = put_record(ctx, key, argv[1], e, &q, all, "seen.merge");
    RedisModule_Free((void *)(uintptr_t)all.data);
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
    struct exposure *e =
        open(ctx, argv[1], REDISMODULE_READ, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    if (!e) {
        if (key) RedisModule_CloseKey(key);
        return RedisModule_ReplyWithNull(ctx);
    }
    size_t len = ENVELOPE + (size_t)e->len;
    uint8_t *bytes = RedisModule_Alloc(len);
    envelope_write(&q.policy->policy, q.own, bytes);
    memcpy(bytes + ENVELOPE, e->record, e->len);
    RedisModule_ReplyWithStringBuffer(ctx, (const char *)bytes, len);
    RedisModule_Free(bytes);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int xp_import(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, own;
    struct request q;
    seen_record record;
    seen_policy all;
    if (argc != 3 && argc != 4) return RedisModule_WrongArity(ctx);
    if (argc == 4 && !is_word(argv[3], "REPLACE"))
        return RedisModule_ReplyWithError(ctx, "ERR expected REPLACE, or "
                                               "nothing, behind the bytes");
    if (!read_request(ctx, argv, 2, 0, &q)) return REDISMODULE_OK;
    struct exposure *e = open_key(
        ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    seen_key bytes = key_of(argv[2]);
    seen_status status =
        envelope_read(bytes.data, bytes.len, &record, &all, &q.own);
    end_if_loading(ctx, argv[1], status);
    if (status != SEEN_OK) return fail(ctx, key, status);
    bool unite = e && argc == 3;
    seen_policy one = policy_of_user(e, &own);
    if (unite) widen(&all, &q.own, &one, own);
    if (!take_policy(ctx, &all, &q)) {
        RedisModule_CloseKey(key);
        return REDISMODULE_OK;
    }
    if (unite)
        status = seen_exposure_merge(q.policy->x, exposure_record(e), record,
                                     q.now, &record);
    if (status == SEEN_OK)
        status = put_record(ctx, key, argv[1], e, &q, record, "seen.import");
    end_if_loading(ctx, argv[1], status);
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
    seen_exposure_info info = {.size = sizeof info};
    if (argc < 2) return RedisModule_WrongArity(ctx);
    if (!read_request(ctx, argv, argc, 0, &q)) return REDISMODULE_OK;
    if (q.n) return RedisModule_WrongArity(ctx);
    struct exposure *e =
        open(ctx, argv[1], REDISMODULE_READ, &key, &refused, &q);
    if (refused) return REDISMODULE_OK;
    if (!e) {
        if (key) RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "ERR not found");
    }
    seen_status status =
        seen_exposure_info_of(q.policy->x, exposure_record(e), q.now, &info);
    if (status != SEEN_OK) return fail(ctx, key, status);
    reply_map(ctx, 6);
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
    RedisModule_ReplyWithSimpleString(ctx, "Policy");
    RedisModule_ReplyWithSimpleString(ctx, q.own ? q.policy->text : "default");
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- SEEN.POLICY [name [policy | RESET]] -------------------------------- */

enum where {
    HERE,      /* a client's, who may be wrong */
    READ_ONLY, /* a client's on a replica, which has what its primary tells it */
    AGAIN      /* what has happened already: by a primary, or from the AOF */
};

/* Questions are for everybody, so the command is no write, and the server leaves
 * replicas to us. */
static enum where where(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (flags &
        (REDISMODULE_CTX_FLAGS_REPLICATED | REDISMODULE_CTX_FLAGS_LOADING))
        return AGAIN;
    return flags & REDISMODULE_CTX_FLAGS_READONLY ? READ_ONLY : HERE;
}

static int set_policy(RedisModuleCtx *ctx, RedisModuleString **argv)
{
    seen_key name = key_of(argv[1]), text = key_of(argv[2]);
    const char *problem = NULL;
    bool changed, reset = is_word(argv[2], "RESET");
    enum where from = where(ctx);
    if (from == READ_ONLY)
        return RedisModule_ReplyWithError(
            ctx, "READONLY You can't set policies on a read only replica: it "
                 "has those of its primary");
    if (!reset)
        problem =
            policy_set(name.data, name.len, text.data, text.len, &changed);
    else if (from == HERE && !policy_named(name.data, name.len))
        problem = "the name of a policy before RESET: see SEEN.POLICY";
    else
        changed = policy_reset(name.data, name.len);
    if (problem) {
        end_if_loading(ctx, argv[1], SEEN_INVALID);
        return reply_error(ctx, "ERR expected %s", problem);
    }
    if (changed)
        RedisModule_Replicate(ctx, "SEEN.POLICY", "sc", argv[1],
                              reset ? "RESET"
                                    : policy_named(name.data, name.len)->text);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

int xp_policy(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *problem;
    if (argc > 3) return RedisModule_WrongArity(ctx);
    if (argc == 3) return set_policy(ctx, argv);
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
