/*
 * seen.c - SEEN.*: what each user has been shown. A key is a user.
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
 * is replicated of such marks says UNDER instead of POLICY, which has the numbers
 * and keeps none. POLICY default makes a user follow it again.
 *
 * Expiry. The key lives as long as its newest mark, its ttl. Telling the replicas
 * so with each mark would double what they are sent; so the key is given a
 * sixteenth of the ttl more than it needs, and is told again only when that has
 * been used up. Nothing is answered from the time it has too much: generations
 * age to the millisecond.
 */
#include "arguments.h"
#include "command.h"
#include "exposure.h"
#include "reply.h"

#include <string.h>

#define FEW 1024 /* items that need no memory of their own */

/* ---- Items -------------------------------------------------------------- */

/* The items of a call as keys, and room for the indices of some of them. Ids are
 * keys as they lie, items need pointers to them. */
struct items {
    seen_keys keys;
    seen_key *pairs;
    size_t *at;
    seen_key few[FEW];
    size_t few_at[FEW];
};

static void items_begin(struct items *s, const struct request *q)
{
    bool few = q->n <= FEW;
    s->at = few ? s->few_at : RedisModule_Alloc(q->n * sizeof *s->at);
    s->pairs = NULL;
    s->keys = seen_keys_rows(q->ids.data, q->n, q->width, q->width);
    if (q->width) return;
    s->pairs = few ? s->few : RedisModule_Alloc(q->n * sizeof *s->pairs);
    for (size_t i = 0; i < q->n; i++)
        s->pairs[i] = key_of(q->items[i]);
    s->keys = seen_keys_of(s->pairs, q->n);
}

/* At the end of a command: what many items took is not kept, nor is the record
 * that came out. */
static void items_end(struct items *s, const struct request *q)
{
    if (q->n <= FEW) return;
    RedisModule_Free(s->pairs);
    RedisModule_Free(s->at);
    policy_rest(q->policy);
}

/* Some of the items, in their order: themselves, or, of ids, bits as GETBIT
 * numbers them. */
static void reply_items(struct call *c, const size_t *at, size_t n)
{
    const struct request *q = &c->request;
    if (!q->width) {
        RedisModule_ReplyWithArray(c->ctx, (long)n);
        for (size_t i = 0; i < n; i++) {
            seen_key item = key_of(q->items[at[i]]);
            RedisModule_ReplyWithStringBuffer(c->ctx, item.data, item.len);
        }
        return;
    }
    size_t len = (q->n + 7) / 8;
    uint8_t few[FEW / 8], *bits = q->n <= FEW ? few : RedisModule_Alloc(len);
    memset(bits, 0, len);
    for (size_t i = 0; i < n; i++)
        bits[at[i] / 8] |= (uint8_t)(0x80 >> at[i] % 8);
    RedisModule_ReplyWithStringBuffer(c->ctx, (const char *)bits, len);
    if (bits != few) RedisModule_Free(bits);
}

static void count_asked(struct call *c, size_t n, size_t fresh)
{
    c->count.checks = n;
    c->count.hits = n - fresh;
}

/* ---- Users -------------------------------------------------------------- */

/* The policy of a user: their own, or the default. */
static seen_policy policy_of_user(const struct exposure *e, bool *own)
{
    seen_policy policy;
    *own = exposure_own(e, &policy);
    return *own ? policy : policy_at(0)->policy;
}

/* Where the request names no policy it gets that of the user; false: the reply has
 * been given. */
static bool find_policy(struct call *c)
{
    struct request *q = &c->request;
    const char *problem;
    if (q->policy) return true;
    seen_policy policy = policy_of_user(c->value, &q->own);
    q->policy = policy_of(&policy, &problem);
    if (!q->policy) RedisModule_ReplyWithError(c->ctx, problem);
    return q->policy;
}

static int fail(struct call *c, seen_status status)
{
    if (status == SEEN_MISMATCH)
        return RedisModule_ReplyWithError(
            c->ctx, "ERR the record was written under another secret-file");
    return reply_status(c->ctx, status);
}

/* Record and policy of the key become these. *changed: one of them was another. */
static seen_status store(struct call *c, seen_record record,
                         const seen_policy *own, bool *changed)
{
    seen_record was = exposure_record(c->value);
    seen_policy before;
    bool had = exposure_own(c->value, &before);
    *changed = was.len != record.len ||
               (was.len && memcmp(was.data, record.data, was.len) != 0) ||
               had != (own != NULL) || (own && !policy_same(own, &before));
    if (!*changed) return SEEN_OK;
    if (record.len == 0) {
        RedisModule_DeleteKey(c->key);
        c->value = NULL;
        return SEEN_OK;
    }
    struct exposure *e = exposure_new(record, own);
    if (!e) return SEEN_NOMEM;
    call_set(c, e);
    return SEEN_OK;
}

/* The key lives as long as its newest mark needs; a mark may have come with an
 * older time. Replicas and files are told when, they do not work it out. */
static void live(struct call *c)
{
    const struct policy *policy = c->request.policy;
    seen_exposure_info info = {.size = sizeof info};
    if (RedisModule_GetContextFlags(c->ctx) &
            (REDISMODULE_CTX_FLAGS_REPLICATED |
             REDISMODULE_CTX_FLAGS_LOADING) ||
        seen_exposure_info_of(policy->x, exposure_record(c->value), 0, &info) !=
            SEEN_OK)
        return;
    uint64_t ttl = policy->policy.ttl_ms;
    long long now_ms = RedisModule_Milliseconds();
    long long left = RedisModule_GetExpire(c->key);
    long long needed = (long long)(info.newest + ttl) + 1;
    if (left != REDISMODULE_NO_EXPIRE && now_ms + left >= needed) return;
    long long when = needed + (long long)(ttl / 16);
    if (RedisModule_SetAbsExpire)
        RedisModule_SetAbsExpire(c->key, when);
    else
        RedisModule_SetExpire(c->key, when > now_ms ? when - now_ms : 1);
    RedisModule_Replicate(c->ctx, "PEXPIREAT", "sl", c->name, when);
}

/* ---- SEEN.CHECK, SEEN.FRESH, SEEN.FRESHP -------------------------------- */

int user_check(struct call *c)
{
    const struct request *q = &c->request;
    if (!find_policy(c)) return REDISMODULE_OK;
    struct items items;
    items_begin(&items, q);
    bool *answers = RedisModule_Alloc(q->n);
    seen_status status =
        seen_exposure_maybe_many(q->policy->x, exposure_record(c->value),
                                 q->now_ms, items.keys, answers);
    if (status == SEEN_OK) {
        RedisModule_ReplyWithArray(c->ctx, (long)q->n);
        for (size_t i = 0; i < q->n; i++)
            reply_bool(c->ctx, answers[i]);
        count_answers(c, answers, q->n);
    }
    RedisModule_Free(answers);
    items_end(&items, q);
    return status == SEEN_OK ? REDISMODULE_OK : fail(c, status);
}

int user_fresh(struct call *c)
{
    const struct request *q = &c->request;
    size_t fresh;
    if (!find_policy(c)) return REDISMODULE_OK;
    struct items items;
    items_begin(&items, q);
    seen_status status =
        seen_exposure_fresh(q->policy->x, exposure_record(c->value), q->now_ms,
                            items.keys, items.at, &fresh);
    if (status == SEEN_OK) {
        count_asked(c, q->n, fresh);
        reply_items(c, items.at, fresh < q->most ? fresh : q->most);
    }
    items_end(&items, q);
    return status == SEEN_OK ? REDISMODULE_OK : fail(c, status);
}

/* ---- SEEN.MARK, SEEN.MARKP, SEEN.TAKE, SEEN.TAKEP ------------------------ */

static const seen_policy *own_of(const struct request *q)
{
    return q->own ? &q->policy->policy : NULL;
}

/* The first n of the items that `at` names, or of all where it is NULL, have been
 * marked. */
static void marked(struct call *c, const size_t *at, size_t n)
{
    const struct request *q = &c->request;
    const uint8_t *ids = q->ids.data;
    size_t each = q->width ? q->width : sizeof *q->items;
    const void *told = q->width ? (const void *)ids : q->items;
    void *some = at ? RedisModule_Alloc(n * each) : NULL;
    for (size_t i = 0; at && i < n; i++)
        memcpy((char *)some + i * each, (const char *)told + at[i] * each,
               each);
    if (at) told = some;
    const char *under = q->own ? "POLICY" : "UNDER";
    if (q->width)
        RedisModule_Replicate(c->ctx, "SEEN.MARKP", "sclcclb", c->name, "AT",
                              (long long)q->now_ms, under, q->policy->text,
                              (long long)q->width, told, n * each);
    else
        RedisModule_Replicate(c->ctx, "SEEN.MARK", "sclcccv", c->name, "AT",
                              (long long)q->now_ms, under, q->policy->text,
                              "ITEMS", told, n);
    RedisModule_Free(some);
    live(c);
    call_changed(c, "seen.mark");
}

int user_mark(struct call *c)
{
    const struct request *q = &c->request;
    bool changed = false;
    seen_record record;
    long long new = 0;
    if (!find_policy(c)) return REDISMODULE_OK;
    if (q->n == 0) return RedisModule_ReplyWithLongLong(c->ctx, 0);
    struct items items;
    items_begin(&items, q);
    bool *fresh = RedisModule_Alloc(q->n);
    seen_status status =
        seen_exposure_mark(q->policy->x, exposure_record(c->value), q->now_ms,
                           items.keys, fresh, &record);
    if (status == SEEN_OK) status = store(c, record, own_of(q), &changed);
    for (size_t i = 0; status == SEEN_OK && i < q->n; i++)
        new += fresh[i];
    RedisModule_Free(fresh);
    if (changed && status == SEEN_OK) marked(c, NULL, q->n);
    items_end(&items, q);
    if (status != SEEN_OK) return fail(c, status);
    c->count.adds = q->n;
    return RedisModule_ReplyWithLongLong(c->ctx, new);
}

/* What a take gives must be remembered, or it would be given again. */
static bool holds(struct call *c)
{
    const struct request *q = &c->request;
    uint64_t most = seen_policy_holds(&q->policy->policy);
    size_t count = q->most < q->n ? q->most : q->n;
    if (count <= most) return true;
    reply_error(
        c->ctx,
        "ERR a take of %zu items: the policy (%.60s) holds %llu of a user",
        count, q->policy->text, (unsigned long long)most);
    return false;
}

int user_take(struct call *c)
{
    const struct request *q = &c->request;
    bool changed = false;
    seen_record record;
    size_t taken;
    if (!find_policy(c) || !holds(c)) return REDISMODULE_OK;
    struct items items;
    items_begin(&items, q);
    seen_status status =
        seen_exposure_take(q->policy->x, exposure_record(c->value), q->now_ms,
                           items.keys, q->most, items.at, &taken, &record);
    if (status == SEEN_OK && taken)
        status = store(c, record, own_of(q), &changed);
    if (status == SEEN_OK) {
        /* Behind the last that was taken nothing had to be asked. */
        size_t asked = taken ? items.at[taken - 1] + 1 : 0;
        reply_items(c, items.at, taken);
        count_asked(c, taken < q->most ? q->n : asked, taken);
        c->count.adds = taken;
        if (changed) marked(c, items.at, taken);
    }
    items_end(&items, q);
    return status == SEEN_OK ? REDISMODULE_OK : fail(c, status);
}

/* ---- SEEN.FORGET -------------------------------------------------------- */

/* Items, or the user. 1: something has changed. */
int user_forget(struct call *c)
{
    const struct request *q = &c->request;
    bool changed = false;
    seen_record record = {NULL, 0};
    seen_policy policy;
    seen_status status = SEEN_OK;
    if (!find_policy(c)) return REDISMODULE_OK;
    struct items items;
    items_begin(&items, q);
    if (q->n)
        status = seen_exposure_forget(q->policy->x, exposure_record(c->value),
                                      q->now_ms, items.keys, &record);
    if (status == SEEN_OK) /* the policy stays as it is */
        status =
            store(c, record, exposure_own(c->value, &policy) ? &policy : NULL,
                  &changed);
    items_end(&items, q);
    if (status != SEEN_OK) return fail(c, status);
    if (changed && q->n)
        RedisModule_Replicate(c->ctx, "SEEN.FORGET", "sclcccv", c->name, "AT",
                              (long long)q->now_ms, "POLICY", q->policy->text,
                              "ITEMS", q->items, q->n);
    else if (changed)
        RedisModule_Replicate(c->ctx, "SEEN.FORGET", "s", c->name);
    if (changed) call_changed(c, "seen.forget");
    return RedisModule_ReplyWithLongLong(c->ctx, changed);
}

/* ---- Whole records ------------------------------------------------------ */

/* The record becomes this one, here and on replicas. */
static seen_status put_record(struct call *c, seen_record record,
                              const char *event)
{
    const struct request *q = &c->request;
    bool changed;
    /* The bytes first: storing may free them. */
    uint8_t *bytes = RedisModule_Alloc(ENVELOPE + record.len);
    envelope_write(&q->policy->policy, q->own, bytes);
    if (record.len) memcpy(bytes + ENVELOPE, record.data, record.len);
    record.data = bytes + ENVELOPE;
    seen_status status = store(c, record, own_of(q), &changed);
    if (status == SEEN_OK && changed && record.len) {
        RedisModule_Replicate(c->ctx, "SEEN.IMPORT", "sbc", c->name, bytes,
                              ENVELOPE + record.len, "REPLACE");
        live(c);
    } else if (status == SEEN_OK && changed) {
        RedisModule_Replicate(c->ctx, "SEEN.FORGET", "s", c->name);
    }
    if (status == SEEN_OK && changed) call_changed(c, event);
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
    if (one->ttl_ms > all->ttl_ms) all->ttl_ms = one->ttl_ms;
    *own |= one_own;
}

/* The policy of a union, which may be one that cannot be; false: the reply has been
 * given. */
static bool take_policy(struct call *c, const seen_policy *all)
{
    const char *problem;
    seen_error error;
    if (seen_policy_check(all, &error) != SEEN_OK)
        reply_error(c->ctx, "ERR the policies do not go together: %s",
                    error.text);
    else if ((c->request.policy = policy_of(all, &problem)))
        return true;
    else
        RedisModule_ReplyWithError(c->ctx, problem);
    return false;
}

/* The widest policy of those of the keys that are there; false: the reply has been
 * given. */
static bool widest(struct call *c)
{
    seen_policy all = {0};
    for (int i = 1; i < c->argc; i++) {
        bool refused, own;
        const struct exposure *e = call_other(c, c->argv[i], &refused);
        if (refused) return false;
        seen_policy one = policy_of_user(e, &own);
        if (e) widen(&all, &c->request.own, &one, own);
    }
    if (!all.items) all = policy_at(0)->policy;
    return take_policy(c, &all);
}

/*
 * Many records into one, as a tournament: each union is of two that have as many
 * records in them, so that a record is read once for every doubling, and not once
 * for every record behind it. at[i] has 2^i of them, or none (`full`).
 */
struct tournament {
    seen_exposure *x;
    uint64_t now_ms;
    seen_record at[32];
    uint32_t full;
};

/* Of two copies, one that is the caller's. */
static seen_status unite(const struct tournament *t, seen_record *a,
                         seen_record b)
{
    seen_record both;
    seen_status status = seen_exposure_merge(t->x, *a, b, t->now_ms, &both);
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
static seen_status enter_all(struct call *c, struct tournament *t,
                             RedisModuleString **names, int n)
{
    seen_status status = SEEN_OK;
    for (int i = 0; status == SEEN_OK && i < n; i++) {
        bool refused;
        status =
            enter(t, own(exposure_record(call_other(c, names[i], &refused))));
    }
    return status;
}

int user_merge(struct call *c)
{
    const struct request *q = &c->request;
    if (!widest(c)) return REDISMODULE_OK;
    struct tournament t = {.x = q->policy->x, .now_ms = q->now_ms};
    seen_record all;
    seen_status status = enter(&t, own(exposure_record(c->value)));
    int n = c->argc - 2;
    RedisModuleString **others = distinct_names(c->argv + 2, &n);
    if (status == SEEN_OK) status = enter_all(c, &t, others, n);
    RedisModule_Free(others);
    seen_status end = finish(&t, &all);
    if (status == SEEN_OK) status = end;
    if (status == SEEN_OK) status = put_record(c, all, "seen.merge");
    RedisModule_Free((void *)(uintptr_t)all.data);
    if (status != SEEN_OK) return fail(c, status);
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

int user_export(struct call *c)
{
    const struct exposure *e = c->value;
    if (!find_policy(c)) return REDISMODULE_OK;
    size_t len = ENVELOPE + (size_t)e->len;
    uint8_t *bytes = RedisModule_Alloc(len);
    envelope_write(&c->request.policy->policy, c->request.own, bytes);
    memcpy(bytes + ENVELOPE, e->record, e->len);
    RedisModule_ReplyWithStringBuffer(c->ctx, (const char *)bytes, len);
    RedisModule_Free(bytes);
    return REDISMODULE_OK;
}

int user_import(struct call *c)
{
    struct request *q = &c->request;
    bool own;
    seen_record record;
    seen_policy all;
    seen_key bytes = key_of(c->argv[2]);
    seen_status status =
        envelope_read(bytes.data, bytes.len, &record, &all, &q->own);
    end_if_loading(c->ctx, c->name, status);
    if (status != SEEN_OK) return fail(c, status);
    bool unite = c->value && c->argc == 3;
    seen_policy one = policy_of_user(c->value, &own);
    if (unite) widen(&all, &q->own, &one, own);
    if (!take_policy(c, &all)) return REDISMODULE_OK;
    if (unite)
        status = seen_exposure_merge(q->policy->x, exposure_record(c->value),
                                     record, q->now_ms, &record);
    if (status == SEEN_OK) status = put_record(c, record, "seen.import");
    end_if_loading(c->ctx, c->name, status);
    if (status != SEEN_OK) return fail(c, status);
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- SEEN.INFO ---------------------------------------------------------- */

int user_info(struct call *c)
{
    const struct request *q = &c->request;
    RedisModuleCtx *ctx = c->ctx;
    seen_exposure_info info = {.size = sizeof info};
    if (!find_policy(c)) return REDISMODULE_OK;
    seen_status status = seen_exposure_info_of(
        q->policy->x, exposure_record(c->value), q->now_ms, &info);
    if (status != SEEN_OK) return fail(c, status);
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
    return RedisModule_ReplyWithSimpleString(ctx, q->own ? q->policy->text
                                                         : "default");
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

int user_policy(struct call *c)
{
    RedisModuleCtx *ctx = c->ctx;
    const char *problem;
    if (c->argc == 3) return set_policy(ctx, c->argv);
    if (c->argc == 2) {
        seen_key name = key_of(c->argv[1]);
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
