/*
 * bf.c - BF.*: Bloom filters as RedisBloom's clients speak to them, and
 * windows, merging, clearing and allowlists beyond.
 *
 * What a primary tells its replicas is what has happened, never what was asked:
 * a filter that came into being as BF.RESERVE with all its parameters and its
 * secret, items that changed it as BF.ADD or BF.MADD, and adds to a window, all
 * of which change it, as BF.INSERT ... AT with the time they happened at. An add
 * that changes nothing is not told.
 */
#include "arguments.h"
#include "bf_args.h"
#include "items.h"
#include "reply.h"

#include <inttypes.h>
#include <string.h>

/* ---- Making a filter ---------------------------------------------------- */

static seen_spec spec_of(const struct params *p)
{
    return (seen_spec){.kind = p->window_ms ? SEEN_WINDOW
                               : p->fixed   ? SEEN_BLOCKED
                                            : SEEN_SCALABLE,
                       .items = p->capacity,
                       .fpp = p->error,
                       .window_ms = p->window_ms,
                       .generations = p->generations,
                       .flags = p->keyed ? SEEN_KEYED : 0,
                       .secret = p->keyed ? p->secret : NULL};
}

static void replicate_make(struct call *c, const struct params *p)
{
    struct words w = {.n = 0};
    words_add(&w, "%.17g", p->error);
    words_add(&w, "%" PRIu64, p->capacity);
    if (p->window_ms) {
        words_add(&w, "WINDOW");
        words_add(&w, "%" PRIu64 ".%03u", p->window_ms / 1000,
                  (unsigned)(p->window_ms % 1000));
        words_add(&w, "GENERATIONS");
        words_add(&w, "%" PRIu32, p->generations);
    } else if (p->fixed) {
        words_add(&w, "NONSCALING");
    } else {
        words_add(&w, "EXPANSION");
        words_add(&w, "%" PRIu32, p->expansion);
    }
    words_add_secret(&w, p->keyed, p->secret);
    RedisModule_Replicate(c->ctx, "BF.RESERVE", "sv", c->name, w.word, w.n);
    words_free(&w);
}

static void expire(struct call *c, uint64_t ttl_ms)
{
    if (!ttl_ms) return;
    long long when = RedisModule_Milliseconds() + (long long)ttl_ms;
    if (RedisModule_SetAbsExpire)
        RedisModule_SetAbsExpire(c->key, when);
    else
        RedisModule_SetExpire(c->key, (long long)ttl_ms);
    RedisModule_Replicate(c->ctx, "PEXPIREAT", "sl", c->name, when);
}

/* The filter is there from now on; NULL: the error has been replied. */
static struct object *create(struct call *c, struct options *w)
{
    struct params *p = &w->params;
    seen_spec spec = spec_of(p);
    seen_plan plan = {.size = sizeof plan};
    if (p->window_ms && seen_plan_for(&spec, &plan, NULL) == SEEN_OK)
        p->generations = plan.generations;
    struct object *o =
        object_make(c->ctx, &bloom_family, p, w->secret, spec_of);
    if (!o) return NULL;
    call_set(c, o);
    replicate_make(c, &o->params);
    expire(c, w->ttl_ms);
    call_changed(c, "bf.reserve");
    return o;
}

/* Parameters and secret of the filter behind LIKE. */
static bool be_like(struct call *c, struct options *w)
{
    bool refused;
    const struct object *o = call_other(c, w->like, &refused);
    if (refused) return false;
    if (!o) {
        RedisModule_ReplyWithError(c->ctx,
                                   "ERR not found: the key behind LIKE");
        return false;
    }
    const struct params *p = &o->params;
    if (p->foreign) {
        RedisModule_ReplyWithError(c->ctx,
                                   "ERR the filter behind LIKE is of another "
                                   "system: COPY it and BF.CLEAR the copy");
        return false;
    }
    bool agrees = (!w->error || w->params.error == p->error) &&
                  (!w->capacity || w->params.capacity == p->capacity);
    w->params = *p;
    w->secret = true;
    if (!agrees)
        reply_error(c->ctx,
                    "ERR the filter behind LIKE has error %g and capacity "
                    "%" PRIu64 ": leave them out or give the same",
                    p->error, p->capacity);
    return agrees;
}

int bf_reserve(struct call *c)
{
    struct options *w = &c->options;
    if ((w->like && !be_like(c, w)) || !create(c, w)) return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- Asking ------------------------------------------------------------- */

/* Listed items are answered by the list. */
static void obey_list(const seen_filter *f, const seen_key *keys, size_t n,
                      bool *answers)
{
    seen_listed rule;
    const seen_allowlist *list = seen_allowed(f, &rule);
    for (size_t i = 0; list && i < n; i++)
        if (answers[i] != (rule == SEEN_LISTED_ALWAYS) &&
            seen_allowlist_has(list, keys[i].data, keys[i].len))
            answers[i] = !answers[i];
}

/* At most PIECE items. A window answers for now, without changing, which it does
 * for hashes only. */
static void ask(const struct object *o, RedisModuleString **items, size_t n,
                bool *answers)
{
    if (!o->params.window_ms) {
        ask_by_keys(o, items, n, answers);
        return;
    }
    const seen_filter *f = o->filter[0];
    seen_key keys[PIECE];
    seen_hash hashes[PIECE];
    item_keys(items, n, keys);
    seen_hash_many(f, seen_keys_of(keys, n), hashes);
    seen_maybe_many_at(f, (uint64_t)RedisModule_Milliseconds(),
                       seen_keys_hashes(hashes, n), answers);
    obey_list(f, keys, n, answers);
}

int bf_exists(struct call *c)
{
    const struct object *o = c->value;
    bool answer = false;
    if (o && o->params.window_ms) {
        ask(o, c->argv + 2, 1, &answer);
    } else if (o) {
        seen_key item = key_of(c->argv[2]);
        answer = seen_maybe(o->filter[0], item.data, item.len);
    }
    count_answers(c, &answer, 1);
    return reply_bool(c->ctx, answer);
}

int bf_mexists(struct call *c)
{
    return reply_answers(c, true, ask);
}

/* ---- Adding ------------------------------------------------------------- */

/* What became of n items. */
struct added {
    bool *before;  /* what was answered before each */
    bool *changed; /* whether it changed the filter */
    size_t done;   /* items that went in, or were there */
    size_t changes;
    seen_status status;
};

/* A filter that may not grow, close to its capacity. */
static seen_status add_last(seen_filter *f, uint64_t capacity,
                            const seen_hash *h, size_t n, bool *before,
                            size_t *done)
{
    for (*done = 0; *done < n; ++*done) {
        seen_info info = {.size = sizeof info};
        before[*done] = seen_maybe_hashed(f, h[*done]);
        if (before[*done]) continue;
        seen_info_of(f, &info);
        if (info.items >= capacity) return SEEN_FULL;
        seen_status status = seen_add_hashed(f, h[*done]);
        if (status != SEEN_OK) return status;
    }
    return SEEN_OK;
}

/* Where `before` does not tell, what is counted tells whether there was a change. */
static seen_status add_each(struct object *o, const seen_key *keys, size_t n,
                            bool *before, bool *changed, size_t *done)
{
    seen_filter *f = o->filter[0];
    seen_status status = SEEN_OK;
    for (*done = 0; *done < n && status == SEEN_OK;
         *done += status == SEEN_OK) {
        seen_info was = {.size = sizeof was}, is = {.size = sizeof is};
        size_t i = *done;
        seen_info_of(f, &was);
        status = seen_visit(f, keys[i].data, keys[i].len, &before[i]);
        seen_info_of(f, &is);
        changed[i] = o->refreshes || is.items != was.items;
    }
    return status;
}

/* NONSCALING, and these items may be more than it has room for. */
static bool may_fill(const struct object *o, size_t n)
{
    seen_info info = {.size = sizeof info};
    if (!o->params.fixed) return false;
    seen_info_of(o->filter[0], &info);
    return info.items + n > o->params.capacity;
}

/* At most PIECE items. By hashes where what the filter says itself is needed, and
 * not what its list makes of it. */
static seen_status add_piece(struct object *o, RedisModuleString **items,
                             size_t n, bool *before, bool *changed,
                             size_t *done)
{
    seen_filter *f = o->filter[0];
    seen_key keys[PIECE];
    seen_hash hashes[PIECE];
    seen_status status;
    bool listed = seen_allowed(f, NULL), last = may_fill(o, n);
    item_keys(items, n, keys);
    if (o->params.foreign && (o->refreshes || listed))
        return add_each(o, keys, n, before, changed, done);
    if (listed || last) seen_hash_many(f, seen_keys_of(keys, n), hashes);
    if (last)
        status = add_last(f, o->params.capacity, hashes, n, before, done);
    else if (listed)
        status = seen_visit_many(f, seen_keys_hashes(hashes, n), before, done);
    else if (n > 1)
        status = seen_visit_many(f, seen_keys_of(keys, n), before, done);
    else
        *done =
            (status = seen_visit(f, keys->data, keys->len, before)) == SEEN_OK;
    for (size_t i = 0; i < *done; i++)
        changed[i] = o->params.window_ms || !before[i];
    if (listed) obey_list(f, keys, *done, before);
    return status;
}

static void add_all(struct object *o, uint64_t now_ms,
                    RedisModuleString **items, size_t n, struct added *a)
{
    a->done = a->changes = 0;
    a->status = SEEN_OK;
    if (o->params.window_ms) seen_advance(o->filter[0], now_ms);
    while (a->done < n && a->status == SEEN_OK) {
        size_t some = n - a->done < PIECE ? n - a->done : PIECE, done;
        bool *before = a->before + a->done, *changed = a->changed + a->done;
        a->status = add_piece(o, items + a->done, some, before, changed, &done);
        for (size_t i = 0; i < done; i++)
            a->changes += changed[i];
        a->done += done;
    }
}

/* `plain`: the command was BF.ADD or BF.MADD of a filter that was there; where
 * every item changed something, it is its own effect, and the server need not
 * make another one. */
static void replicate_adds(struct call *c, uint64_t now_ms,
                           RedisModuleString **items, const struct added *a,
                           bool plain)
{
    const struct object *o = c->value;
    if (plain && !o->params.window_ms && a->changes == a->done &&
        a->status == SEEN_OK) {
        RedisModule_ReplicateVerbatim(c->ctx);
    } else if (o->params.window_ms) {
        RedisModule_Replicate(c->ctx, "BF.INSERT", "scclcv", c->name,
                              "NOCREATE", "AT", (long long)now_ms, "ITEMS",
                              items, a->done);
    } else if (a->changes == a->done && a->done > 1) {
        RedisModule_Replicate(c->ctx, "BF.MADD", "sv", c->name, items, a->done);
    } else if (a->changes == 1) {
        size_t i = 0;
        while (!a->changed[i])
            i++;
        RedisModule_Replicate(c->ctx, "BF.ADD", "ss", c->name, items[i]);
    } else {
        RedisModuleString **some = RedisModule_Alloc(a->changes * sizeof *some);
        size_t n = 0;
        for (size_t i = 0; i < a->done; i++)
            if (a->changed[i]) some[n++] = items[i];
        RedisModule_Replicate(c->ctx, "BF.MADD", "sv", c->name, some, n);
        RedisModule_Free(some);
    }
}

static int reply_full(RedisModuleCtx *ctx, const struct object *o,
                      seen_status status)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(o->filter[0], &info);
    bool fixed = o->params.fixed || (o->params.foreign && !info.growth);
    if (status == SEEN_FULL && fixed)
        return RedisModule_ReplyWithError(ctx,
                                          "ERR non scaling filter is full");
    return reply_status(ctx, status);
}

static void reply_added(RedisModuleCtx *ctx, const struct object *o,
                        const struct added *a, bool many)
{
    if (many)
        RedisModule_ReplyWithArray(ctx, (long)a->done + (a->status != SEEN_OK));
    for (size_t i = 0; i < a->done; i++)
        reply_bool(ctx, !a->before[i]);
    if (a->status != SEEN_OK) reply_full(ctx, o, a->status);
}

/* Into the filter of the key, which is there; at_ms 0: now. */
static int add_items(struct call *c, RedisModuleString **items, size_t n,
                     uint64_t at_ms, bool plain, bool many)
{
    struct object *o = c->value;
    bool one[2];
    struct added a = {.before = one, .changed = one + 1};
    if (!at_ms && o->params.window_ms)
        at_ms = (uint64_t)RedisModule_Milliseconds();
    if (n > 1) {
        a.before = RedisModule_Alloc(2 * n * sizeof *a.before);
        a.changed = a.before + n;
    }
    add_all(o, at_ms, items, n, &a);
    c->count.adds = a.done;
    reply_added(c->ctx, o, &a, many);
    if (a.changes) {
        replicate_adds(c, at_ms, items, &a, plain);
        call_changed(c, "bf.add");
    }
    if (n > 1) RedisModule_Free(a.before);
    return REDISMODULE_OK;
}

/* BF.ADD and BF.MADD. */
static int add_plain(struct call *c, bool many)
{
    bool there = c->value;
    if (!there) {
        struct options w = bf_default_options();
        if (!create(c, &w)) return REDISMODULE_OK;
    }
    return add_items(c, c->argv + 2, (size_t)c->argc - 2, 0, there, many);
}

/* One item of a filter that grows: no arrays, no pieces. */
static bool is_simple(const struct object *o)
{
    return !o->params.window_ms && !o->params.foreign && !o->params.fixed &&
           !seen_allowed(o->filter[0], NULL);
}

int bf_add(struct call *c)
{
    struct object *o = c->value;
    if (!o || !is_simple(o)) return add_plain(c, false);
    seen_key key = key_of(c->argv[2]);
    bool before;
    seen_status status = seen_visit(o->filter[0], key.data, key.len, &before);
    if (status != SEEN_OK) return reply_full(c->ctx, o, status);
    c->count.adds = 1;
    if (!before) {
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "bf.add");
    }
    return reply_bool(c->ctx, !before);
}

int bf_madd(struct call *c)
{
    return add_plain(c, true);
}

int bf_insert(struct call *c)
{
    struct options *w = &c->options;
    if (!c->value && w->no_create)
        return RedisModule_ReplyWithError(c->ctx, "ERR not found");
    if (!c->value && !create(c, w)) return REDISMODULE_OK;
    return add_items(c, w->items, w->n, w->at_ms, false, true);
}

/* ---- About a filter ----------------------------------------------------- */

/* Where another system has not counted its items, its bits are. */
static seen_info inspect(const struct object *o)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(o->filter[0], &info);
    if (!info.counted) seen_measure(o->filter[0], &info);
    return info;
}

static int reply_expansion(RedisModuleCtx *ctx, const struct object *o,
                           const seen_info *info)
{
    uint32_t expansion = o->params.foreign ? info->growth : o->params.expansion;
    return expansion ? RedisModule_ReplyWithLongLong(ctx, expansion)
                     : RedisModule_ReplyWithNull(ctx);
}

/* In seconds, which need not be whole. */
static int reply_window(RedisModuleCtx *ctx, const struct object *o)
{
    return RedisModule_ReplyWithDouble(ctx, (double)o->params.window_ms / 1000);
}

/* Of another system: its own, where its bytes say it. */
static int reply_rate(RedisModuleCtx *ctx, const struct object *o,
                      const seen_info *info)
{
    double fpp = o->params.foreign ? info->fpp : o->params.error;
    return fpp > 0 ? RedisModule_ReplyWithDouble(ctx, fpp)
                   : RedisModule_ReplyWithNull(ctx);
}

static int reply_dialect(RedisModuleCtx *ctx, const seen_info *info)
{
    return info->dialect ? RedisModule_ReplyWithStringBuffer(
                               ctx, info->dialect, strlen(info->dialect))
                         : RedisModule_ReplyWithNull(ctx);
}

static int reply_all(RedisModuleCtx *ctx, const struct object *o,
                     const seen_info *info)
{
    reply_map(ctx, 5);
    reply_pair(ctx, "Capacity", info->capacity);
    reply_pair(ctx, "Size", object_bytes(o));
    reply_pair(ctx, "Number of filters", info->layers);
    reply_pair(ctx, "Number of items inserted", info->items);
    RedisModule_ReplyWithSimpleString(ctx, "Expansion rate");
    return reply_expansion(ctx, o, info);
}

static int reply_field(RedisModuleCtx *ctx, const struct object *o,
                       const seen_info *info, const RedisModuleString *field)
{
    const seen_allowlist *list = seen_allowed(o->filter[0], NULL);
    uint64_t value;
    if (is_word(field, "CAPACITY"))
        value = info->capacity;
    else if (is_word(field, "SIZE"))
        value = object_bytes(o);
    else if (is_word(field, "FILTERS"))
        value = info->layers;
    else if (is_word(field, "ITEMS"))
        value = info->items;
    else if (is_word(field, "GENERATIONS"))
        value = o->params.generations;
    else if (is_word(field, "ALLOWED"))
        value = list ? seen_allowlist_count(list) : 0;
    else if (is_word(field, "KEYED"))
        value = o->params.keyed;
    else if (is_word(field, "EXPANSION") || is_word(field, "ERROR") ||
             is_word(field, "DIALECT") || is_word(field, "WINDOW")) {
        RedisModule_ReplyWithArray(ctx, 1);
        return is_word(field, "ERROR")     ? reply_rate(ctx, o, info)
               : is_word(field, "DIALECT") ? reply_dialect(ctx, info)
               : is_word(field, "WINDOW")  ? reply_window(ctx, o)
                                           : reply_expansion(ctx, o, info);
    } else
        return RedisModule_ReplyWithError(ctx, "ERR Invalid information value");
    RedisModule_ReplyWithArray(ctx, 1);
    return RedisModule_ReplyWithLongLong(ctx, (long long)value);
}

int bf_info(struct call *c)
{
    const struct object *o = c->value;
    seen_info info = inspect(o);
    return c->argc == 2 ? reply_all(c->ctx, o, &info)
                        : reply_field(c->ctx, o, &info, c->argv[2]);
}

int bf_card(struct call *c)
{
    seen_info info = inspect(c->value);
    return RedisModule_ReplyWithLongLong(c->ctx, (long long)info.items);
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status merge_one(struct call *c, RedisModuleString *name,
                             struct object **into, bool *refused)
{
    const struct object *from = call_other(c, name, refused);
    if (*refused) return SEEN_INVALID;
    if (!from) return SEEN_ABSENT;
    return *into ? seen_merge((*into)->filter[0], from->filter[0], SEEN_UNION,
                              NULL)
                 : object_copy(into, from);
}

static int reply_unlike(RedisModuleCtx *ctx, seen_status status,
                        RedisModuleString *name, bool foreign)
{
    seen_key text = key_of(name);
    int len = text.len > 64 ? 64 : (int)text.len;
    if (status == SEEN_ABSENT)
        return reply_error(ctx, "ERR not found: %.*s", len,
                           (const char *)text.data);
    if (status == SEEN_MISMATCH && foreign)
        return reply_error(ctx,
                           "ERR %.*s: a filter of another system can be merged "
                           "only with one of the same scheme and size",
                           len, (const char *)text.data);
    if (status == SEEN_MISMATCH)
        return reply_error(ctx,
                           "ERR %.*s has other parameters or another secret: "
                           "make filters that are to be merged with "
                           "BF.RESERVE key LIKE other",
                           len, (const char *)text.data);
    if (status == SEEN_UNSUPPORTED)
        return RedisModule_ReplyWithError(
            ctx, foreign ? "ERR blocks that answer without looking at their "
                           "bits cannot be merged"
                         : "ERR windows cannot be merged");
    return reply_status(ctx, status);
}

/* Into a copy, so that all sources go in or none. */
int bf_merge(struct call *c)
{
    bool refused = false;
    struct object *merged = NULL;
    seen_status status = c->value ? object_copy(&merged, c->value) : SEEN_OK;
    int n = c->argc - 2, i = 0;
    RedisModuleString **others = distinct_names(c->argv + 2, &n);
    for (; status == SEEN_OK && i < n; i++)
        status = merge_one(c, others[i], &merged, &refused);
    if (status == SEEN_OK) {
        call_set(c, merged);
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "bf.merge");
        RedisModule_ReplyWithSimpleString(c->ctx, "OK");
    } else {
        if (!refused)
            reply_unlike(c->ctx, status, i ? others[i - 1] : c->name,
                         merged && merged->params.foreign);
        object_free(merged);
    }
    RedisModule_Free(others);
    return REDISMODULE_OK;
}

/* A filter of another system may hold more than its header says. */
static bool is_empty(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(f, &info);
    if (info.items || !info.dialect) return info.items == 0;
    seen_measure(f, &info);
    return info.bits_set == 0;
}

int bf_clear(struct call *c)
{
    struct object *o = c->value;
    if (!is_empty(o->filter[0])) {
        seen_clear(o->filter[0]);
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "bf.clear");
    }
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- BF.ALLOW ----------------------------------------------------------- */

/* *changes: items listed, or taken off. */
static seen_status change_list(struct object *o, const struct listing *l,
                               uint64_t *changes)
{
    seen_allowlist *list = NULL;
    seen_listed rule = SEEN_LISTED_NEVER;
    const seen_allowlist *old = seen_allowed(o->filter[0], &rule);
    uint64_t had = old ? seen_allowlist_count(old) : 0;
    if (l->rule) rule = l->rule;
    seen_status status = old ? seen_allowlist_copy(&list, old, &o->memory.as)
                             : seen_allowlist_new(&list, &o->memory.as);
    for (size_t i = 0; status == SEEN_OK && i < l->n; i++) {
        seen_key key = key_of(l->items[i]);
        status = l->remove ? seen_allowlist_remove(list, key.data, key.len)
                           : seen_allowlist_add(list, key.data, key.len);
        if (status == SEEN_ABSENT) status = SEEN_OK;
    }
    if (status == SEEN_OK) {
        uint64_t has = seen_allowlist_count(list);
        *changes = has > had ? has - had : had - has;
        status = seen_allow(o->filter[0], has ? list : NULL, rule);
    }
    seen_allowlist_free(list);
    return status;
}

int bf_allow(struct call *c)
{
    const struct listing *l = &c->listing;
    uint64_t changes;
    seen_status status = change_list(c->value, l, &changes);
    if (status == SEEN_INVALID)
        return RedisModule_ReplyWithError(
            c->ctx, "ERR a listed item has at most 16777216 bytes");
    if (status != SEEN_OK) return reply_status(c->ctx, status);
    if (changes || l->rule) {
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "bf.allow");
    }
    return RedisModule_ReplyWithLongLong(c->ctx, (long long)changes);
}
