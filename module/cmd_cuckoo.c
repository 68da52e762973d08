/*
 * cmd_cuckoo.c - CF.*: filters whose items can be taken out again.
 *
 * A cuckoo filter cannot grow: where an entry may lie depends on the size. So a
 * key is a chain of them, and when all are full the next one is opened. A
 * question goes to all of them, so each keeps a 16th of the promised error, and
 * there are at most 16 (EXPANSION 0: one, which may use up all of it).
 *
 *     adding      the newest that has room
 *     taking out  from the newest that has it
 *
 * All filters of a chain are of one size, and that is what makes taking out
 * safe. Items fall into classes of equal fingerprint and equal buckets, which a
 * filter cannot tell apart. Where all filters are alike, so are the classes:
 * what is taken out through an item in the newest filter, though another item of
 * its class had put it there, leaves the entry of the first item in an older
 * filter, where the other one is found as well. Filters that grow from one to
 * the next have other classes each, and taking out an item could make another
 * one vanish: with 1 % of error, about every two hundredth time (the test of
 * CF.DEL against a model found it at once). So EXPANSION does not say how much
 * larger, only whether.
 *
 * A bucket has four places and an item two buckets, so one item fits eight times
 * into a filter. The ninth add is an error, "full": more copies would only fill
 * one filter after the other. (RedisBloom grows instead: 125 adds of one item
 * take a filter from 1 MB to 33.) Hashing is keyed, so nobody can compute other
 * items that lie in the same places, to fill them or to take entries out through
 * them.
 */
#include "arguments.h"
#include "chunks.h"
#include "commands.h"
#include "config.h"
#include "object.h"
#include "reply.h"

#include <inttypes.h>
#include <string.h>

#define COPIES 8 /* of one item in one filter */

/* ---- Making and growing ------------------------------------------------- */

/* Of every filter of a chain. */
static seen_spec spec_of(const struct params *p)
{
    return (seen_spec){.kind = SEEN_CUCKOO,
                       .items = p->capacity,
                       .fpp = p->error / (p->expansion ? MOST_FILTERS : 1),
                       .flags = p->keyed ? SEEN_KEYED : 0,
                       .secret = p->keyed ? p->secret : NULL};
}

struct wish {
    struct params params;
    bool secret, no_create;
    RedisModuleString **items;
    size_t n;
};

static struct wish default_wish(void)
{
    return (struct wish){.params = {.capacity = config.cf_capacity,
                                    .error = config.error,
                                    .expansion = 1,
                                    .bucket_size = 2,
                                    .iterations = 20,
                                    .keyed = config.keyed}};
}

/* The filter is there from now on; NULL: the error has been replied. */
static struct object *create(RedisModuleCtx *ctx, RedisModuleKey *key,
                             RedisModuleString *name, struct wish *w)
{
    struct object *o =
        object_make(ctx, &cuckoo_family, &w->params, w->secret, spec_of);
    if (!o) return NULL;
    const struct params *p = &o->params;
    struct words words = {.n = 0};
    RedisModule_ModuleTypeSetValue(key, cuckoo_family.type, o);
    words_add(&words, "%" PRIu64, p->capacity);
    words_add(&words, "BUCKETSIZE");
    words_add(&words, "%u", p->bucket_size);
    words_add(&words, "MAXITERATIONS");
    words_add(&words, "%u", p->iterations);
    words_add(&words, "EXPANSION");
    words_add(&words, "%" PRIu32, p->expansion);
    words_add(&words, "ERROR");
    words_add(&words, "%.17g", p->error);
    words_add_secret(&words, p->keyed, p->secret);
    RedisModule_Replicate(ctx, "CF.RESERVE", "sv", name, words.word, words.n);
    words_free(&words);
    object_changed(ctx, name, "cf.reserve");
    return o;
}

/* ---- CF.RESERVE --------------------------------------------------------- */

static const char *read_number(const RedisModuleString *s, long long min,
                               long long max, const char *problem,
                               long long *value)
{
    return to_number(s, min, max, value) ? NULL : problem;
}

static const char *read_capacity(const RedisModuleString *s, struct wish *w)
{
    long long n = 0;
    const char *problem =
        read_number(s, 1, (long long)1 << 62, "Bad capacity", &n);
    w->params.capacity = (uint64_t)n;
    return problem;
}

static const char *read_option(RedisModuleString *word,
                               RedisModuleString *value, struct wish *w)
{
    struct params *p = &w->params;
    const char *problem = NULL;
    long long n = 0;
    if (is_word(word, "BUCKETSIZE")) {
        problem = read_number(value, 1, 255,
                              "ERR BUCKETSIZE: value must be in the range "
                              "[1, 255]",
                              &n);
        p->bucket_size = (uint16_t)n;
    } else if (is_word(word, "MAXITERATIONS")) {
        problem = read_number(value, 1, 65535,
                              "ERR MAXITERATIONS: value must be in the range "
                              "[1, 65535]",
                              &n);
        p->iterations = (uint16_t)n;
    } else if (is_word(word, "EXPANSION")) {
        problem = read_number(value, 0, 32768,
                              "ERR EXPANSION: value must be in the range "
                              "[0, 32768]",
                              &n);
        p->expansion = (uint32_t)n;
    } else if (is_word(word, "ERROR")) {
        if (!to_double(value, &p->error) || !(p->error > 0 && p->error < 1))
            problem = "ERR (0 < error rate range < 1)";
    } else if (is_word(word, "SECRET")) {
        w->secret = true;
        problem = to_secret(value, &p->keyed, p->secret);
    } else {
        problem = unknown_argument(word);
    }
    return problem;
}

static const char *too_small(const struct wish *w)
{
    return w->params.capacity < 2 * (uint64_t)w->params.bucket_size
               ? "Capacity must be at least (BucketSize * 2)"
               : NULL;
}

int cf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc < 3 || argc % 2 == 0) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    const char *problem = read_capacity(argv[2], &w);
    for (int i = 3; !problem && i < argc; i += 2)
        problem = read_option(argv[i], argv[i + 1], &w);
    if (!problem) problem = too_small(&w);
    if (problem) return RedisModule_ReplyWithError(ctx, problem);
    struct object *o =
        object_open_any(ctx, &cuckoo_family, argv[1],
                        REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o)
        RedisModule_ReplyWithError(ctx, "ERR item exists");
    else if (create(ctx, key, argv[1], &w))
        RedisModule_ReplyWithSimpleString(ctx, "OK");
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- Asking ------------------------------------------------------------- */

/* The newest filter first. */
static void ask_chain(const struct object *o, RedisModuleString **items,
                      size_t n, bool *answers)
{
    seen_hash hashes[PIECE];
    bool here[PIECE];
    memset(answers, 0, n);
    hash_items(o->filter[0], items, n, hashes); /* all of them hash alike */
    for (uint32_t f = o->n; f-- > 0;) {
        seen_maybe_many_hashed(o->filter[f], hashes, n, here);
        for (size_t i = 0; i < n; i++)
            answers[i] |= here[i];
    }
}

/* At most PIECE items. */
static void ask(const struct object *o, RedisModuleString **items, size_t n,
                bool *answers)
{
    if (o->params.foreign)
        ask_foreign(o, items, n, answers);
    else
        ask_chain(o, items, n, answers);
}

int cf_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return object_exists(ctx, &cuckoo_family, argv, argc, false, ask);
}

int cf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return object_exists(ctx, &cuckoo_family, argv, argc, true, ask);
}

static uint64_t count(const struct object *o, const RedisModuleString *item)
{
    seen_key key = key_of(item);
    uint64_t sum = 0;
    for (uint32_t f = 0; f < o->n; f++)
        sum += seen_count(o->filter[f], key.data, key.len);
    return sum;
}

int cf_count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o = object_open(ctx, &cuckoo_family, argv[1],
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    uint64_t times = o ? count(o, argv[2]) : 0;
    count_answers(&(bool){times > 0}, 1);
    RedisModule_ReplyWithLongLong(ctx, (long long)times);
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

/* ---- Adding ------------------------------------------------------------- */

static seen_status add(struct object *o, const RedisModuleString *item)
{
    seen_key key = key_of(item);
    seen_status status = SEEN_FULL;
    for (uint32_t f = o->n; f-- > 0 && status == SEEN_FULL;)
        status = seen_add(o->filter[f], key.data, key.len);
    if (status != SEEN_FULL || o->params.foreign) return status;
    if (count(o, item) >= COPIES || o->params.expansion == 0) return SEEN_FULL;
    if (o->n == MOST_FILTERS) return SEEN_UNSUPPORTED;
    status = object_grow(o);
    if (status != SEEN_OK) return status;
    return seen_add(o->filter[o->n - 1], key.data, key.len);
}

static int reply_full(RedisModuleCtx *ctx, seen_status status)
{
    if (status == SEEN_FULL)
        return RedisModule_ReplyWithError(ctx, "ERR Filter is full");
    if (status == SEEN_UNSUPPORTED)
        return RedisModule_ReplyWithError(ctx,
                                          "ERR Maximum expansions reached");
    return reply_status(ctx, status);
}

/* One of several: 1, 0 it was there (NX), -1 no room. INSERT tells RESP3 clients
 * true, INSERTNX numbers: as RedisBloom does. */
static void reply_each(RedisModuleCtx *ctx, seen_status status, bool there,
                       bool nx)
{
    if (status == SEEN_NOMEM)
        reply_full(ctx, status);
    else if (status != SEEN_OK)
        RedisModule_ReplyWithLongLong(ctx, -1);
    else if (nx)
        RedisModule_ReplyWithLongLong(ctx, !there);
    else
        reply_bool(ctx, !there);
}

static int insert(RedisModuleCtx *ctx, RedisModuleString *name, struct wish *w,
                  bool nx, bool many)
{
    RedisModuleKey *key;
    bool refused;
    struct object *o =
        object_open(ctx, &cuckoo_family, name,
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o && w->no_create)
        RedisModule_ReplyWithError(ctx, "ERR not found");
    else if (!o)
        o = create(ctx, key, name, w);
    if (!o) {
        RedisModule_CloseKey(key);
        return REDISMODULE_OK;
    }
    RedisModuleString *one, **added = &one;
    size_t n = 0;
    if (w->n > 1) added = RedisModule_Alloc(w->n * sizeof *added);
    if (many) RedisModule_ReplyWithArray(ctx, (long)w->n);
    for (size_t i = 0; i < w->n; i++) {
        bool there = false;
        if (nx) ask(o, w->items + i, 1, &there);
        if (nx) count_answers(&there, 1);
        seen_status status = there ? SEEN_OK : add(o, w->items[i]);
        if (!there && status == SEEN_OK) added[n++] = w->items[i];
        if (many)
            reply_each(ctx, status, there, nx);
        else if (status != SEEN_OK)
            reply_full(ctx, status);
        else
            reply_bool(ctx, !there);
    }
    statistics.adds += n;
    if (n == 1) RedisModule_Replicate(ctx, "CF.ADD", "ss", name, *added);
    if (n > 1)
        RedisModule_Replicate(ctx, "CF.INSERT", "sccv", name, "NOCREATE",
                              "ITEMS", added, n);
    if (n) object_changed(ctx, name, "cf.add");
    if (w->n > 1) RedisModule_Free(added);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

static int add_one(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                   bool nx)
{
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    w.items = argv + 2;
    w.n = 1;
    return insert(ctx, argv[1], &w, nx, false);
}

int cf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_one(ctx, argv, argc, false);
}

int cf_addnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_one(ctx, argv, argc, true);
}

/* key [CAPACITY n] [NOCREATE] ITEMS item... */
static int add_many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    bool nx)
{
    if (argc < 4) return RedisModule_WrongArity(ctx);
    struct wish w = default_wish();
    const char *problem = NULL;
    int i = 2;
    for (; !problem && i < argc && !is_word(argv[i], "ITEMS"); i++) {
        if (is_word(argv[i], "NOCREATE"))
            w.no_create = true;
        else if (i + 1 < argc && is_word(argv[i], "CAPACITY"))
            problem = read_capacity(argv[++i], &w);
        else
            problem = unknown_argument(argv[i]);
    }
    if (!problem) problem = too_small(&w);
    if (!problem && i + 1 >= argc)
        problem = "ERR expected ITEMS and at least one item";
    if (problem) return RedisModule_ReplyWithError(ctx, problem);
    w.items = argv + i + 1;
    w.n = (size_t)(argc - i - 1);
    return insert(ctx, argv[1], &w, nx, true);
}

int cf_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_many(ctx, argv, argc, false);
}

int cf_insertnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_many(ctx, argv, argc, true);
}

/* ---- Taking out --------------------------------------------------------- */

int cf_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    if (argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, &cuckoo_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "Not found");
    }
    seen_key item = key_of(argv[2]);
    seen_status status = SEEN_ABSENT;
    for (uint32_t f = o->n; f-- > 0 && status != SEEN_OK;)
        status = seen_remove(o->filter[f], item.data, item.len);
    if (status == SEEN_OK) {
        o->deleted++;
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, argv[1], "cf.del");
    }
    RedisModule_CloseKey(key);
    return reply_bool(ctx, status == SEEN_OK);
}

/* Filters at the end of the chain that hold nothing. */
int cf_compact(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused, changed = false;
    seen_size size = {.size = sizeof size};
    if (argc != 2) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, &cuckoo_family, argv[1],
                    REDISMODULE_READ | REDISMODULE_WRITE, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, "Cuckoo filter was not found");
    }
    while (o->n > 1) {
        seen_size_of(o->filter[o->n - 1], &size);
        if (size.items) break;
        seen_free(o->filter[--o->n]);
        changed = true;
    }
    if (changed) {
        RedisModule_ReplicateVerbatim(ctx);
        object_changed(ctx, argv[1], "cf.compact");
    }
    RedisModule_CloseKey(key);
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

/* ---- About a filter ----------------------------------------------------- */

/* Of the first filter. */
static uint64_t buckets(const struct params *p)
{
    seen_plan plan = {.size = sizeof plan, .width = 1};
    seen_spec spec = spec_of(p);
    if (p->foreign) return p->capacity;
    seen_plan_for(&spec, &plan, NULL);
    return plan.bits / plan.width / 4;
}

int cf_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key;
    bool refused;
    uint64_t items = 0, filters = 0;
    if (argc != 2) return RedisModule_WrongArity(ctx);
    struct object *o = object_open(ctx, &cuckoo_family, argv[1],
                                   REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (!o) return RedisModule_ReplyWithError(ctx, "ERR not found");
    for (uint32_t f = 0; f < o->n; f++) {
        seen_size size = {.size = sizeof size};
        seen_size_of(o->filter[f], &size);
        items += size.items;
        filters += size.layers;
    }
    reply_map(ctx, 8);
    reply_pair(ctx, "Size", object_bytes(o));
    reply_pair(ctx, "Number of buckets", buckets(&o->params));
    reply_pair(ctx, "Number of filters", filters);
    reply_pair(ctx, "Number of items inserted", items);
    reply_pair(ctx, "Number of items deleted", o->deleted);
    reply_pair(ctx, "Bucket size", o->params.bucket_size);
    reply_pair(ctx, "Expansion rate", o->params.expansion);
    reply_pair(ctx, "Max iterations", o->params.iterations);
    RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}

int cf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return chunk_scandump(ctx, &cuckoo_family, argv, argc);
}

int cf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return chunk_loadchunk(ctx, &cuckoo_family, argv, argc);
}
