/*
 * cf.c - CF.*: filters whose items can be taken out again.
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
 * safe. Items fall into classes of equal fingerprint and equal windows, which a
 * filter cannot tell apart. Where all filters are alike, so are the classes:
 * what is taken out through an item in the newest filter, though another item of
 * its class had put it there, leaves the entry of the first item in an older
 * filter, where the other one is found as well. Filters that grow from one to
 * the next have other classes each, and taking out an item could make another
 * one vanish: with 1 % of error, about every two hundredth time (the test of
 * CF.DEL against a model found it at once). So EXPANSION does not say how much
 * larger, only whether.
 *
 * Copies of one item are counted, and do not make a filter grow: four at most lie
 * in its slots, further ones are counted in a table beside them, which 15 items of
 * a small filter can have, and one in 3000 or so of a large one. An item of which
 * the newest filter has two copies and takes no third is an error, "full": more
 * copies would only fill one filter after the other. (RedisBloom grows instead: 125
 * adds of one item take a filter from 1 MB to 33.) Hashing is keyed, so nobody can
 * compute other items that lie in the same places, to fill them or to take entries
 * out through them.
 */
#include "arguments.h"
#include "config.h"
#include "items.h"
#include "reply.h"

#include <inttypes.h>
#include <string.h>

#define COPIES 2 /* of an item, which let no further one open a filter */

/* ---- Arguments ---------------------------------------------------------- */

static struct options default_options(void)
{
    return (struct options){.params = {.capacity = config.cf_capacity,
                                       .error = config.error,
                                       .expansion = 1,
                                       .bucket_size = 2,
                                       .iterations = 20,
                                       .keyed = config.keyed}};
}

static const char *read_number(const RedisModuleString *s, long long min,
                               long long max, const char *problem,
                               long long *value)
{
    return to_number(s, min, max, value) ? NULL : problem;
}

static const char *read_capacity(const RedisModuleString *s, struct options *w)
{
    long long n = 0;
    const char *problem =
        read_number(s, 1, (long long)1 << 62, "Bad capacity", &n);
    w->params.capacity = (uint64_t)n;
    return problem;
}

static const char *read_option(RedisModuleString *word,
                               RedisModuleString *value, struct options *w)
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

static const char *too_small(const struct options *w)
{
    return w->params.capacity < 2 * (uint64_t)w->params.bucket_size
               ? "Capacity must be at least (BucketSize * 2)"
               : NULL;
}

const char *cf_read_reserve(struct call *c)
{
    struct options *w = &c->options;
    if (c->argc % 2 == 0) return WRONG_ARITY;
    *w = default_options();
    const char *problem = read_capacity(c->argv[2], w);
    for (int i = 3; !problem && i < c->argc; i += 2)
        problem = read_option(c->argv[i], c->argv[i + 1], w);
    return problem ? problem : too_small(w);
}

/* key [CAPACITY n] [NOCREATE] ITEMS item... */
const char *cf_read_insert(struct call *c)
{
    struct options *w = &c->options;
    const char *problem = NULL;
    int i = 2;
    *w = default_options();
    for (; !problem && i < c->argc && !is_word(c->argv[i], "ITEMS"); i++) {
        if (is_word(c->argv[i], "NOCREATE"))
            w->no_create = true;
        else if (i + 1 < c->argc && is_word(c->argv[i], "CAPACITY"))
            problem = read_capacity(c->argv[++i], w);
        else
            problem = unknown_argument(c->argv[i]);
    }
    if (!problem) problem = too_small(w);
    if (!problem && i + 1 >= c->argc)
        problem = "ERR expected ITEMS and at least one item";
    w->items = c->argv + i + 1;
    w->n = (size_t)(c->argc - i - 1);
    return problem;
}

/* ---- Making ------------------------------------------------------------- */

/* Of every filter of a chain. */
static seen_spec spec_of(const struct params *p)
{
    return (seen_spec){.kind = SEEN_CUCKOO,
                       .items = p->capacity,
                       .fpp = p->error / (p->expansion ? FILTERS_MAX : 1),
                       .flags = p->keyed ? SEEN_KEYED : 0,
                       .secret = p->keyed ? p->secret : NULL};
}

/* The filter is there from now on; NULL: the error has been replied. */
static struct object *create(struct call *c, struct options *w)
{
    struct object *o =
        object_make(c->ctx, &cuckoo_family, &w->params, w->secret, spec_of);
    if (!o) return NULL;
    const struct params *p = &o->params;
    struct words words = {.n = 0};
    call_set(c, o);
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
    RedisModule_Replicate(c->ctx, "CF.RESERVE", "sv", c->name, words.word,
                          words.n);
    words_free(&words);
    call_changed(c, "cf.reserve");
    return o;
}

int cf_reserve(struct call *c)
{
    if (!create(c, &c->options)) return REDISMODULE_OK;
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- Asking ------------------------------------------------------------- */

/* The newest filter first. */
static void ask_chain(const struct object *o, RedisModuleString **items,
                      size_t n, bool *answers)
{
    seen_hash hashes[PIECE];
    bool here[PIECE];
    memset(answers, 0, n);
    item_hashes(o->filter[0], items, n, hashes); /* all of them hash alike */
    for (uint32_t f = o->n; f-- > 0;) {
        seen_maybe_many(o->filter[f], seen_keys_hashes(hashes, n), here);
        for (size_t i = 0; i < n; i++)
            answers[i] |= here[i];
    }
}

/* At most PIECE items. */
static void ask(const struct object *o, RedisModuleString **items, size_t n,
                bool *answers)
{
    if (o->params.foreign)
        ask_by_keys(o, items, n, answers);
    else
        ask_chain(o, items, n, answers);
}

int cf_exists(struct call *c)
{
    return reply_answers(c, false, ask);
}

int cf_mexists(struct call *c)
{
    return reply_answers(c, true, ask);
}

/* In all of them, from `from` on. */
static uint64_t count(const struct object *o, uint32_t from,
                      const RedisModuleString *item)
{
    seen_key key = key_of(item);
    uint64_t sum = 0;
    for (uint32_t f = from; f < o->n; f++)
        sum += seen_count(o->filter[f], key.data, key.len);
    return sum;
}

int cf_count(struct call *c)
{
    uint64_t times = c->value ? count(c->value, 0, c->argv[2]) : 0;
    count_answers(c, &(bool){times > 0}, 1);
    return RedisModule_ReplyWithLongLong(c->ctx, (long long)times);
}

/* ---- Adding ------------------------------------------------------------- */

static seen_status add(struct object *o, const RedisModuleString *item)
{
    seen_key key = key_of(item);
    seen_status status = SEEN_FULL;
    for (uint32_t f = o->n; f-- > 0 && status == SEEN_FULL;)
        status = seen_add(o->filter[f], key.data, key.len);
    if (status != SEEN_FULL || o->params.foreign) return status;
    if (o->params.expansion == 0) return SEEN_FULL;
    if (count(o, o->n - 1, item) >= COPIES) return SEEN_FULL;
    if (o->n == FILTERS_MAX) return SEEN_UNSUPPORTED;
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

/* Into the filter of the key, which is there. */
static int add_items(struct call *c, RedisModuleString **items, size_t n,
                     bool many)
{
    struct object *o = c->value;
    bool nx = c->command->with & WITH_NX;
    RedisModuleString *one, **added = &one;
    size_t done = 0;
    if (n > 1) added = RedisModule_Alloc(n * sizeof *added);
    if (many) RedisModule_ReplyWithArray(c->ctx, (long)n);
    for (size_t i = 0; i < n; i++) {
        bool there = false;
        if (nx) ask(o, items + i, 1, &there);
        if (nx) count_answers(c, &there, 1);
        seen_status status = there ? SEEN_OK : add(o, items[i]);
        if (!there && status == SEEN_OK) added[done++] = items[i];
        if (many)
            reply_each(c->ctx, status, there, nx);
        else if (status != SEEN_OK)
            reply_full(c->ctx, status);
        else
            reply_bool(c->ctx, !there);
    }
    c->count.adds = done;
    if (done == 1)
        RedisModule_Replicate(c->ctx, "CF.ADD", "ss", c->name, *added);
    if (done > 1)
        RedisModule_Replicate(c->ctx, "CF.INSERT", "sccv", c->name, "NOCREATE",
                              "ITEMS", added, done);
    if (done) call_changed(c, "cf.add");
    if (n > 1) RedisModule_Free(added);
    return REDISMODULE_OK;
}

int cf_add(struct call *c)
{
    if (!c->value) {
        struct options w = default_options();
        if (!create(c, &w)) return REDISMODULE_OK;
    }
    return add_items(c, c->argv + 2, 1, false);
}

int cf_insert(struct call *c)
{
    struct options *w = &c->options;
    if (!c->value && w->no_create)
        return RedisModule_ReplyWithError(c->ctx, "ERR not found");
    if (!c->value && !create(c, w)) return REDISMODULE_OK;
    return add_items(c, w->items, w->n, true);
}

/* ---- Taking out --------------------------------------------------------- */

int cf_del(struct call *c)
{
    struct object *o = c->value;
    seen_key item = key_of(c->argv[2]);
    seen_status status = SEEN_ABSENT;
    for (uint32_t f = o->n; f-- > 0 && status != SEEN_OK;)
        status = seen_remove(o->filter[f], item.data, item.len);
    if (status == SEEN_OK) {
        o->deleted++;
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "cf.del");
    }
    return reply_bool(c->ctx, status == SEEN_OK);
}

/* Filters at the end of the chain that hold nothing. */
int cf_compact(struct call *c)
{
    struct object *o = c->value;
    bool changed = false;
    seen_info info = {.size = sizeof info};
    while (o->n > 1) {
        seen_info_of(o->filter[o->n - 1], &info);
        if (info.items) break;
        seen_free(o->filter[--o->n]);
        changed = true;
    }
    if (changed) {
        RedisModule_ReplicateVerbatim(c->ctx);
        call_changed(c, "cf.compact");
    }
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- About a filter ----------------------------------------------------- */

/* Of the size that was asked for, as many as the bits of the first filter are. */
static uint64_t buckets(const struct params *p)
{
    seen_plan plan = {.size = sizeof plan, .width = 1};
    seen_spec spec = spec_of(p);
    if (p->foreign) return p->capacity;
    seen_plan_for(&spec, &plan, NULL);
    /* In bytes of strangers it may be 0. */
    return plan.bits / plan.width / (p->bucket_size ? p->bucket_size : 1);
}

int cf_info(struct call *c)
{
    const struct object *o = c->value;
    uint64_t items = 0, filters = 0;
    for (uint32_t f = 0; f < o->n; f++) {
        seen_info info = {.size = sizeof info};
        seen_info_of(o->filter[f], &info);
        items += info.items;
        filters += info.layers;
    }
    reply_map(c->ctx, 8);
    reply_pair(c->ctx, "Size", object_bytes(o));
    reply_pair(c->ctx, "Number of buckets", buckets(&o->params));
    reply_pair(c->ctx, "Number of filters", filters);
    reply_pair(c->ctx, "Number of items inserted", items);
    reply_pair(c->ctx, "Number of items deleted", o->deleted);
    reply_pair(c->ctx, "Bucket size", o->params.bucket_size);
    reply_pair(c->ctx, "Expansion rate", o->params.expansion);
    return reply_pair(c->ctx, "Max iterations", o->params.iterations);
}
