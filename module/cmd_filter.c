/*
 * cmd_filter.c - BF.*: Bloom filters as RedisBloom's clients speak to them, and
 * windows, merging, clearing and allowlists beyond.
 *
 * What a primary tells its replicas is what has happened, never what was asked:
 * a filter that came into being as BF.RESERVE with all its parameters and its
 * secret, items that changed it as BF.ADD or BF.MADD, and adds to a window, all
 * of which change it, as BF.INSERT ... AT with the time they happened at. An add
 * that changes nothing is told to nobody.
 */
#include "arguments.h"
#include "chunks.h"
#include "commands.h"
#include "config.h"
#include "object.h"
#include "reply.h"

#include "seen_allowlist.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MOST_MS       ((double)((uint64_t)1 << 48))
#define MOST_CAPACITY ((long long)1 << 62)

struct statistics statistics;

/* ---- Making a filter ---------------------------------------------------- */

/* What BF.RESERVE and BF.INSERT are told. */
struct wish {
    struct params params;
    bool capacity, error, expansion, secret; /* given */
    bool no_create;
    bool plain;      /* BF.ADD or BF.MADD */
    uint64_t ttl_ms; /* 0: none */
    uint64_t at;     /* 0: now */
    RedisModuleString *like;
    RedisModuleString **items;
    size_t n;
};

static struct wish default_wish(void)
{
    return (struct wish){.params = {.capacity = config.capacity,
                                    .error = config.error,
                                    .expansion = (uint32_t)config.expansion,
                                    .keyed = config.keyed}};
}

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

static void replicate_make(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct params *p)
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
    RedisModule_Replicate(ctx, "BF.RESERVE", "sv", name, w.word, w.n);
    words_free(&w);
}

static void expire(RedisModuleCtx *ctx, RedisModuleKey *key,
                   RedisModuleString *name, uint64_t ttl_ms)
{
    if (!ttl_ms) return;
    long long when = RedisModule_Milliseconds() + (long long)ttl_ms;
    if (RedisModule_SetAbsExpire)
        RedisModule_SetAbsExpire(key, when);
    else
        RedisModule_SetExpire(key, (long long)ttl_ms);
    RedisModule_Replicate(ctx, "PEXPIREAT", "sl", name, when);
}

/* The filter is there from now on; NULL: the error has been replied. */
static struct object *create(RedisModuleCtx *ctx, RedisModuleKey *key,
                             RedisModuleString *name, struct wish *w)
{
    struct params *p = &w->params;
    seen_spec spec = spec_of(p);
    seen_plan plan = {.size = sizeof plan};
    if (p->window_ms && seen_plan_for(&spec, &plan, NULL) == SEEN_OK)
        p->generations = plan.generations;
    struct object *o = object_make(ctx, &bloom_family, p, w->secret, spec_of);
    if (!o) return NULL;
    RedisModule_ModuleTypeSetValue(key, bloom_family.type, o);
    replicate_make(ctx, name, &o->params);
    expire(ctx, key, name, w->ttl_ms);
    object_changed(ctx, name, "bf.reserve");
    return o;
}

/* ---- What a wish is made of --------------------------------------------- */

static const char *read_error(const RedisModuleString *s, struct wish *w)
{
    if (!to_double(s, &w->params.error)) return "ERR bad error rate";
    if (!(w->params.error > 0 && w->params.error < 1))
        return "ERR (0 < error rate range < 1)";
    w->error = true;
    return NULL;
}

static const char *read_capacity(const RedisModuleString *s, struct wish *w)
{
    long long n;
    if (!to_number(s, INT64_MIN, INT64_MAX, &n)) return "ERR bad capacity";
    if (n < 1 || n > MOST_CAPACITY)
        return "ERR (capacity should be larger than 0)";
    w->params.capacity = (uint64_t)n;
    w->capacity = true;
    return NULL;
}

static const char *read_expansion(const RedisModuleString *s, struct wish *w)
{
    long long n;
    if (!to_number(s, INT64_MIN, INT64_MAX, &n)) return "ERR bad expansion";
    if (n < 1 || n > 32768)
        return "ERR expansion should be greater or equal to 1";
    w->params.expansion = (uint32_t)n;
    w->expansion = true;
    return NULL;
}

static const char *read_ms(const RedisModuleString *s, uint64_t *ms)
{
    double seconds;
    if (!to_double(s, &seconds) || !(seconds >= 0.001) ||
        seconds * 1000 > MOST_MS)
        return "ERR expected seconds, 0.001 or more, behind WINDOW and TTL";
    *ms = (uint64_t)llround(seconds * 1000);
    return NULL;
}

static const char *read_generations(const RedisModuleString *s, struct wish *w)
{
    long long n;
    if (!to_number(s, 2, 63, &n)) return "ERR GENERATIONS is 2 to 63";
    w->params.generations = (uint32_t)n;
    return NULL;
}

static const char *read_secret(const RedisModuleString *s, struct wish *w)
{
    w->secret = true;
    return to_secret(s, &w->params.keyed, w->params.secret);
}

static const char *read_at(const RedisModuleString *s, struct wish *w)
{
    long long ms;
    if (!to_number(s, 1, (long long)MOST_MS - 1, &ms))
        return "ERR AT is a time in milliseconds since 1970";
    w->at = (uint64_t)ms;
    return NULL;
}

/* One option and its value. */
static const char *read_option(RedisModuleString **argv, int argc, int *i,
                               struct wish *w, bool insert)
{
    RedisModuleString *word = argv[*i];
    if (is_word(word, "NONSCALING")) {
        w->params.fixed = true;
        return NULL;
    }
    if (insert && is_word(word, "NOCREATE")) {
        w->no_create = true;
        return NULL;
    }
    if (++*i >= argc) return "ERR an option is unknown, or lacks its value";
    RedisModuleString *value = argv[*i];
    if (is_word(word, "EXPANSION")) return read_expansion(value, w);
    if (is_word(word, "WINDOW")) return read_ms(value, &w->params.window_ms);
    if (is_word(word, "GENERATIONS")) return read_generations(value, w);
    if (is_word(word, "TTL")) return read_ms(value, &w->ttl_ms);
    if (is_word(word, "SECRET")) return read_secret(value, w);
    if (insert && is_word(word, "CAPACITY")) return read_capacity(value, w);
    if (insert && is_word(word, "ERROR")) return read_error(value, w);
    if (insert && is_word(word, "AT")) return read_at(value, w);
    if (!insert && is_word(word, "LIKE")) {
        w->like = value;
        return NULL;
    }
    return unknown_argument(word);
}

static const char *contradiction(struct wish *w)
{
    struct params *p = &w->params;
    if (p->fixed && w->expansion) return "Nonscaling filters cannot expand";
    if (p->window_ms && (p->fixed || w->expansion))
        return "ERR a WINDOW does not grow: no EXPANSION, no NONSCALING";
    if (p->generations && !p->window_ms) return "ERR GENERATIONS needs WINDOW";
    if (w->no_create && (w->capacity || w->error))
        return "ERR NOCREATE with CAPACITY or ERROR: there is nothing to make";
    if (p->fixed || p->window_ms) p->expansion = 0;
    return NULL;
}

/* ---- BF.RESERVE --------------------------------------------------------- */

/* Parameters and secret of another filter. */
static bool be_like(RedisModuleCtx *ctx, struct wish *w)
{
    RedisModuleKey *key;
    bool refused;
    struct object *o = object_open(ctx, &bloom_family, w->like,
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return false;
    if (!o) {
        RedisModule_ReplyWithError(ctx, "ERR not found: the key behind LIKE");
        return false;
    }
    struct params *p = &o->params;
    if (p->foreign) {
        RedisModule_CloseKey(key);
        RedisModule_ReplyWithError(ctx,
                                   "ERR the filter behind LIKE is of another "
                                   "system: COPY it and BF.CLEAR the copy");
        return false;
    }
    bool agrees = (!w->error || w->params.error == p->error) &&
                  (!w->capacity || w->params.capacity == p->capacity);
    w->params = *p;
    w->secret = true;
    RedisModule_CloseKey(key);
    if (!agrees)
        reply_error(ctx,
                    "ERR the filter behind LIKE has error %g and capacity "
                    "%" PRIu64 ": leave them out or give the same",
                    w->params.error, w->params.capacity);
    return agrees;
}

static const char *read_reserve(RedisModuleString **argv, int argc,
                                struct wish *w)
{
    int i = 2;
    const char *problem = NULL;
    if (!is_word(argv[2], "LIKE")) {
        problem = read_error(argv[2], w);
        if (!problem && argc < 4) problem = "ERR bad capacity";
        if (!problem) problem = read_capacity(argv[3], w);
        i = 4;
    }
    bool only_like = true;
    for (; !problem && i < argc; i++) {
        only_like =
            only_like && (is_word(argv[i], "LIKE") || is_word(argv[i], "TTL"));
        problem = read_option(argv, argc, &i, w, false);
    }
    if (!problem && w->like && !only_like)
        problem = "ERR beside LIKE only TTL can be given";
    return problem ? problem : contradiction(w);
}

/* A cluster asks the command itself where keys are that do not stand at the
 * beginning. */
static int tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModule_KeyAtPos(ctx, 1);
    for (int i = 2; i + 1 < argc; i++)
        if (is_word(argv[i], "LIKE")) RedisModule_KeyAtPos(ctx, i + 1);
    return REDISMODULE_OK;
}

int bf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (RedisModule_IsKeysPositionRequest(ctx))
        return tell_keys(ctx, argv, argc);
    if (argc < 4) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    const char *problem = read_reserve(argv, argc, &w);
    if (problem) return RedisModule_ReplyWithError(ctx, problem);
    struct object *o =
        object_open_any(ctx, &bloom_family, argv[1],
                        REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "ERR item exists");
    }
    if (!w.like || be_like(ctx, &w)) {
        if (create(ctx, key, argv[1], &w))
            RedisModule_ReplyWithSimpleString(ctx, "OK");
    }
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- Asking ------------------------------------------------------------- */

/* Listed items are answered by the list. */
static void obey_list(const seen_filter *f, RedisModuleString **items, size_t n,
                      bool *answers)
{
    seen_listed policy;
    const seen_allowlist *list = seen_allowed(f, &policy);
    for (size_t i = 0; list && i < n; i++) {
        seen_key key = key_of(items[i]);
        if (seen_allowlist_has(list, key.data, key.len))
            answers[i] = policy == SEEN_LISTED_ALWAYS;
    }
}

static void ask_hashed(const struct object *o, RedisModuleString **items,
                       size_t n, bool *answers)
{
    const seen_filter *f = o->filter[0];
    seen_hash hashes[PIECE];
    hash_items(f, items, n, hashes);
    if (o->params.window_ms)
        seen_maybe_many_hashed_at(f, (uint64_t)RedisModule_Milliseconds(),
                                  hashes, n, answers);
    else
        seen_maybe_many_hashed(f, hashes, n, answers);
    obey_list(f, items, n, answers);
}

/* At most PIECE items. */
static void ask(const struct object *o, RedisModuleString **items, size_t n,
                bool *answers)
{
    if (o->params.foreign)
        ask_foreign(o, items, n, answers);
    else
        ask_hashed(o, items, n, answers);
}

int bf_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, answer = false;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o = object_open(ctx, &bloom_family, argv[1],
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o && o->params.window_ms) {
        ask(o, argv + 2, 1, &answer);
    } else if (o) {
        seen_key item = key_of(argv[2]);
        answer = seen_maybe(o->filter[0], item.data, item.len);
    }
    count_answers(&answer, 1);
    if (key) RedisModule_CloseKey(key);
    return reply_bool(ctx, answer);
}

int bf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return object_exists(ctx, &bloom_family, argv, argc, true, ask);
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
        seen_size size = {.size = sizeof size};
        before[*done] = seen_maybe_hashed(f, h[*done]);
        if (before[*done]) continue;
        seen_size_of(f, &size);
        if (size.items >= capacity) return SEEN_FULL;
        seen_status status = seen_add_hashed(f, h[*done]);
        if (status != SEEN_OK) return status;
    }
    return SEEN_OK;
}

static seen_status add_hashes(struct object *o, const seen_hash *h, size_t n,
                              bool *before, size_t *done)
{
    seen_filter *f = o->filter[0];
    seen_size size = {.size = sizeof size};
    if (o->params.fixed) seen_size_of(f, &size);
    if (o->params.fixed && size.items + n > o->params.capacity)
        return add_last(f, o->params.capacity, h, n, before, done);
    if (n > 1) return seen_visit_many_hashed(f, h, n, before, done);
    seen_status status = seen_visit_hashed(f, *h, before);
    *done = status == SEEN_OK;
    return status;
}

/* Of another system: by keys, in the manner of the original. Where `before` is not
 * the whole truth, what is counted tells whether there was a change. */
static seen_status add_keys(struct object *o, RedisModuleString **items,
                            size_t n, bool *before, bool *changed, size_t *done)
{
    seen_filter *f = o->filter[0];
    seen_key keys[PIECE];
    seen_status status = SEEN_OK;
    item_keys(items, n, keys);
    if (!o->refreshes && !seen_allowed(f, NULL)) {
        status = seen_visit_many(f, keys, n, before, done);
        for (size_t i = 0; i < *done; i++)
            changed[i] = !before[i];
        return status;
    }
    for (*done = 0; *done < n && status == SEEN_OK;
         *done += status == SEEN_OK) {
        seen_size was = {.size = sizeof was}, is = {.size = sizeof is};
        size_t i = *done;
        seen_size_of(f, &was);
        status = seen_visit(f, keys[i].data, keys[i].len, &before[i]);
        seen_size_of(f, &is);
        changed[i] = o->refreshes || is.items != was.items;
    }
    return status;
}

/* At most PIECE items. */
static seen_status add_piece(struct object *o, RedisModuleString **items,
                             size_t n, bool *before, bool *changed,
                             size_t *done)
{
    seen_hash hashes[PIECE];
    if (o->params.foreign) return add_keys(o, items, n, before, changed, done);
    hash_items(o->filter[0], items, n, hashes);
    seen_status status = add_hashes(o, hashes, n, before, done);
    for (size_t i = 0; i < *done; i++)
        changed[i] = o->params.window_ms || !before[i];
    obey_list(o->filter[0], items, *done, before);
    return status;
}

static void add_all(struct object *o, uint64_t now, RedisModuleString **items,
                    size_t n, struct added *a)
{
    a->done = a->changes = 0;
    a->status = SEEN_OK;
    if (o->params.window_ms) seen_advance(o->filter[0], now);
    while (a->done < n && a->status == SEEN_OK) {
        size_t some = n - a->done < PIECE ? n - a->done : PIECE, done;
        bool *before = a->before + a->done, *changed = a->changed + a->done;
        a->status = add_piece(o, items + a->done, some, before, changed, &done);
        for (size_t i = 0; i < done; i++)
            a->changes += changed[i];
        a->done += done;
    }
    statistics.adds += a->done;
}

/* `plain`: the command was BF.ADD or BF.MADD of a filter that was there; where
 * every item changed something, it is its own effect, and the server need not
 * make another one. */
static void replicate_adds(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct object *o, uint64_t now,
                           RedisModuleString **items, const struct added *a,
                           bool plain)
{
    if (plain && !o->params.window_ms && a->changes == a->done &&
        a->status == SEEN_OK) {
        RedisModule_ReplicateVerbatim(ctx);
    } else if (o->params.window_ms) {
        RedisModule_Replicate(ctx, "BF.INSERT", "scclcv", name, "NOCREATE",
                              "AT", (long long)now, "ITEMS", items, a->done);
    } else if (a->changes == a->done && a->done > 1) {
        RedisModule_Replicate(ctx, "BF.MADD", "sv", name, items, a->done);
    } else if (a->changes == 1) {
        size_t i = 0;
        while (!a->changed[i])
            i++;
        RedisModule_Replicate(ctx, "BF.ADD", "ss", name, items[i]);
    } else {
        RedisModuleString **some = RedisModule_Alloc(a->changes * sizeof *some);
        size_t n = 0;
        for (size_t i = 0; i < a->done; i++)
            if (a->changed[i]) some[n++] = items[i];
        RedisModule_Replicate(ctx, "BF.MADD", "sv", name, some, n);
        RedisModule_Free(some);
    }
}

static int reply_full(RedisModuleCtx *ctx, const struct object *o,
                      seen_status status)
{
    seen_size size = {.size = sizeof size};
    seen_size_of(o->filter[0], &size);
    bool fixed = o->params.fixed || (o->params.foreign && !size.growth);
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

/* Add w->items to what is in the key, if anything is. */
static int insert_into(RedisModuleCtx *ctx, RedisModuleKey *key,
                       struct object *o, RedisModuleString *name,
                       struct wish *w, bool many)
{
    bool made = false, one[2];
    struct added a = {.before = one, .changed = one + 1};
    if (!o && w->no_create)
        RedisModule_ReplyWithError(ctx, "ERR not found");
    else if (!o)
        made = (o = create(ctx, key, name, w)) != NULL;
    if (!o) {
        RedisModule_CloseKey(key);
        return REDISMODULE_OK;
    }
    uint64_t now = w->at;
    if (!now && o->params.window_ms) now = (uint64_t)RedisModule_Milliseconds();
    if (w->n > 1) {
        a.before = RedisModule_Alloc(2 * w->n * sizeof *a.before);
        a.changed = a.before + w->n;
    }
    add_all(o, now, w->items, w->n, &a);
    reply_added(ctx, o, &a, many);
    if (a.changes) {
        replicate_adds(ctx, name, o, now, w->items, &a, w->plain && !made);
        object_changed(ctx, name, "bf.add");
    }
    if (w->n > 1) RedisModule_Free(a.before);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* Everything but reading the arguments. */
static int insert(RedisModuleCtx *ctx, RedisModuleString *name, struct wish *w,
                  bool many)
{
    RedisModuleKey *key;
    bool refused;
    struct object *o =
        object_open(ctx, &bloom_family, name,
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    return insert_into(ctx, key, o, name, w, many);
}

/* One item of a filter that grows: no arrays, no pieces. */
static bool is_simple(const struct object *o)
{
    return !o->params.window_ms && !o->params.foreign && !o->params.fixed &&
           !seen_allowed(o->filter[0], NULL);
}

static int add_one(RedisModuleCtx *ctx, struct object *o,
                   RedisModuleString *name, const RedisModuleString *item)
{
    seen_key key = key_of(item);
    bool before;
    seen_status status = seen_visit(o->filter[0], key.data, key.len, &before);
    if (status != SEEN_OK) return reply_full(ctx, o, status);
    statistics.adds++;
    if (!before) {
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, name, "bf.add");
    }
    return reply_bool(ctx, !before);
}

int bf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, &bloom_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o && is_simple(o)) {
        RedisModule_CloseKey(key); /* the object stays: nobody else runs */
        return add_one(ctx, o, argv[1], argv[2]);
    }
    struct wish w = default_wish();
    w.plain = true;
    w.items = argv + 2;
    w.n = 1;
    return insert_into(ctx, key, o, argv[1], &w, false);
}

int bf_madd(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 3) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    w.plain = true;
    w.items = argv + 2;
    w.n = (size_t)argc - 2;
    return insert(ctx, argv[1], &w, true);
}

int bf_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 4) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    const char *problem = NULL;
    int i = 2;
    for (; !problem && i < argc && !is_word(argv[i], "ITEMS"); i++)
        problem = read_option(argv, argc, &i, &w, true);
    if (!problem) problem = contradiction(&w);
    if (problem) return RedisModule_ReplyWithError(ctx, problem);
    if (i + 1 >= argc)
        return RedisModule_ReplyWithError(
            ctx, "ERR expected ITEMS and at least one item");
    w.items = argv + i + 1;
    w.n = (size_t)(argc - i - 1);
    return insert(ctx, argv[1], &w, true);
}

/* ---- About a filter ----------------------------------------------------- */

/* Where another system has not counted its items, its bits are. */
static void size_of(const struct object *o, seen_size *size)
{
    seen_info info = {.size = sizeof info};
    seen_size_of(o->filter[0], size);
    if (!o->params.foreign || size->counted) return;
    seen_info_of(o->filter[0], &info);
    size->items = info.items;
}

static int reply_expansion(RedisModuleCtx *ctx, const struct object *o,
                           const seen_size *size)
{
    uint32_t expansion = o->params.foreign ? size->growth : o->params.expansion;
    return expansion ? RedisModule_ReplyWithLongLong(ctx, expansion)
                     : RedisModule_ReplyWithNull(ctx);
}

/* Of another system: its own, where its bytes say it. */
/* In seconds, which need not be whole. */
static int reply_window(RedisModuleCtx *ctx, const struct object *o)
{
    return RedisModule_ReplyWithDouble(ctx, (double)o->params.window_ms / 1000);
}

static int reply_rate(RedisModuleCtx *ctx, const struct object *o)
{
    seen_info info = {.size = sizeof info, .fpp = o->params.error};
    if (o->params.foreign) seen_info_of(o->filter[0], &info);
    return info.fpp > 0 ? RedisModule_ReplyWithDouble(ctx, info.fpp)
                        : RedisModule_ReplyWithNull(ctx);
}

static int reply_dialect(RedisModuleCtx *ctx, const seen_size *size)
{
    return size->dialect ? RedisModule_ReplyWithStringBuffer(
                               ctx, size->dialect, strlen(size->dialect))
                         : RedisModule_ReplyWithNull(ctx);
}

static int reply_all(RedisModuleCtx *ctx, const struct object *o,
                     const seen_size *size)
{
    reply_map(ctx, 5);
    reply_pair(ctx, "Capacity", size->capacity);
    reply_pair(ctx, "Size", object_bytes(o));
    reply_pair(ctx, "Number of filters", size->layers);
    reply_pair(ctx, "Number of items inserted", size->items);
    RedisModule_ReplyWithSimpleString(ctx, "Expansion rate");
    return reply_expansion(ctx, o, size);
}

static int reply_field(RedisModuleCtx *ctx, const struct object *o,
                       const seen_size *size, const RedisModuleString *field)
{
    const seen_allowlist *list = seen_allowed(o->filter[0], NULL);
    uint64_t value;
    if (is_word(field, "CAPACITY"))
        value = size->capacity;
    else if (is_word(field, "SIZE"))
        value = object_bytes(o);
    else if (is_word(field, "FILTERS"))
        value = size->layers;
    else if (is_word(field, "ITEMS"))
        value = size->items;
    else if (is_word(field, "GENERATIONS"))
        value = o->params.generations;
    else if (is_word(field, "ALLOWED"))
        value = list ? seen_allowlist_count(list) : 0;
    else if (is_word(field, "KEYED"))
        value = o->params.keyed;
    else if (is_word(field, "EXPANSION") || is_word(field, "ERROR") ||
             is_word(field, "DIALECT") || is_word(field, "WINDOW")) {
        RedisModule_ReplyWithArray(ctx, 1);
        return is_word(field, "ERROR")     ? reply_rate(ctx, o)
               : is_word(field, "DIALECT") ? reply_dialect(ctx, size)
               : is_word(field, "WINDOW")  ? reply_window(ctx, o)
                                           : reply_expansion(ctx, o, size);
    } else
        return RedisModule_ReplyWithError(ctx, "ERR Invalid information value");
    RedisModule_ReplyWithArray(ctx, 1);
    return RedisModule_ReplyWithLongLong(ctx, (long long)value);
}

int bf_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    seen_size size = {.size = sizeof size};
    if (argc != 2 && argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o = object_open(ctx, &bloom_family, argv[1],
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) return RedisModule_ReplyWithError(ctx, "ERR not found");
    size_of(o, &size);
    if (argc == 2)
        reply_all(ctx, o, &size);
    else
        reply_field(ctx, o, &size, argv[2]);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int bf_card(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    seen_size size = {.size = sizeof size};
    if (argc != 2) return RedisModule_WrongArity(ctx);
    struct object *o = object_open(ctx, &bloom_family, argv[1],
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o) size_of(o, &size);
    RedisModule_ReplyWithLongLong(ctx, (long long)size.items);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int bf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return chunk_scandump(ctx, &bloom_family, argv, argc);
}

int bf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return chunk_loadchunk(ctx, &bloom_family, argv, argc);
}

/* ---- Whole filters ------------------------------------------------------ */

static seen_status merge_one(RedisModuleCtx *ctx, RedisModuleString *name,
                             struct object **into, bool *refused)
{
    RedisModuleKey *key;
    struct object *from =
        object_open(ctx, &bloom_family, name, REDISMODULE_READ, &key, refused);
    if (*refused) return SEEN_INVALID;
    if (!from) return SEEN_ABSENT;
    seen_status status = *into ? seen_merge((*into)->filter[0], from->filter[0],
                                            SEEN_UNION, NULL)
                               : object_copy(into, from);
    RedisModule_CloseKey(key);
    return status;
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
int bf_merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, &bloom_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    struct object *merged = NULL;
    seen_status status = o ? object_copy(&merged, o) : SEEN_OK;
    int n = argc - 2, i = 0;
    RedisModuleString **others = distinct_names(argv + 2, &n);
    for (; status == SEEN_OK && i < n; i++)
        status = merge_one(ctx, others[i], &merged, &refused);
    if (status != SEEN_OK) {
        bool foreign = merged && merged->params.foreign;
        if (!refused)
            reply_unlike(ctx, status, i ? others[i - 1] : argv[1], foreign);
        object_free(merged);
    } else {
        void *old = NULL;
        if (o)
            RedisModule_ModuleTypeReplaceValue(key, bloom_family.type, merged,
                                               &old);
        else
            RedisModule_ModuleTypeSetValue(key, bloom_family.type, merged);
        object_free(old);
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, argv[1], "bf.merge");
        RedisModule_ReplyWithSimpleString(ctx, "OK");
    }
    RedisModule_Free(others);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* A filter of another system may hold more than its header says. */
static bool is_empty(const seen_filter *f)
{
    seen_size size = {.size = sizeof size};
    seen_info info = {.size = sizeof info};
    seen_size_of(f, &size);
    if (size.items || !size.dialect) return size.items == 0;
    seen_info_of(f, &info);
    return info.bits_set == 0;
}

int bf_clear(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc != 2) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, &bloom_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "ERR not found");
    }
    if (!is_empty(o->filter[0])) {
        seen_clear(o->filter[0]);
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, argv[1], "bf.clear");
    }
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- BF.ALLOW key [NEVER|ALWAYS] [REMOVE] [ITEMS] item... ---------------- */

struct listing {
    seen_listed policy; /* 0: as before, NEVER at first */
    bool remove;
    RedisModuleString **items;
    size_t n;
};

/* Options count only where ITEMS follows: items may have any name. */
static struct listing read_listing(RedisModuleString **argv, int argc)
{
    struct listing l = {.items = argv + 2, .n = (size_t)argc - 2}, m = l;
    for (int i = 2; i < argc; i++) {
        if (is_word(argv[i], "NEVER"))
            m.policy = SEEN_LISTED_NEVER;
        else if (is_word(argv[i], "ALWAYS"))
            m.policy = SEEN_LISTED_ALWAYS;
        else if (is_word(argv[i], "REMOVE"))
            m.remove = true;
        else if (is_word(argv[i], "ITEMS")) {
            m.items = argv + i + 1;
            m.n = (size_t)(argc - i - 1);
            return m;
        } else
            break;
    }
    return l;
}

/* *changes: items listed, or taken off. */
static seen_status change_list(struct object *o, const struct listing *l,
                               uint64_t *changes)
{
    seen_allowlist *list = NULL;
    seen_listed policy = SEEN_LISTED_NEVER;
    const seen_allowlist *old = seen_allowed(o->filter[0], &policy);
    uint64_t had = old ? seen_allowlist_count(old) : 0;
    if (l->policy) policy = l->policy;
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
        status = seen_allow(o->filter[0], has ? list : NULL, policy);
    }
    seen_allowlist_free(list);
    return status;
}

int bf_allow(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    uint64_t changes;
    if (argc < 3) return RedisModule_WrongArity(ctx);
    struct listing l = read_listing(argv, argc);
    if (l.n == 0 && !l.policy)
        return RedisModule_ReplyWithError(ctx, "ERR expected items");
    struct object *o =
        object_open(ctx, &bloom_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "ERR not found");
    }
    seen_status status = change_list(o, &l, &changes);
    RedisModule_CloseKey(key);
    if (status == SEEN_INVALID)
        return RedisModule_ReplyWithError(
            ctx, "ERR a listed item has at most 16777216 bytes");
    if (status != SEEN_OK) return reply_status(ctx, status);
    if (changes || l.policy) {
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, argv[1], "bf.allow");
    }
    return RedisModule_ReplyWithLongLong(ctx, (long long)changes);
}
