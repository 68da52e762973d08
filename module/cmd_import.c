/*
 * cmd_import.c - filters that other systems made, in keys of ours.
 *
 *     BF.IMPORT key DIALECT name bytes [BITS m] [HASHES k] [CAPACITY n] [ERROR p]
 *     CF.IMPORT key DIALECT redisbloom-cf bytes
 *     BF.LOAD key payload
 *
 * The library reads the bytes (docs/DIALECTS.md); from then on the key is like any
 * other, and answers as the original does, false positives included. What some
 * bytes do not say, the options do. BF.LOAD is how valkey-bloom's append-only
 * files bring filters back: its payload is the dialect `valkey-bloom`. RedisBloom's
 * chunks come through LOADCHUNK: chunks.h.
 */
#include "arguments.h"
#include "commands.h"
#include "object.h"
#include "reply.h"

#include <string.h>

#define MOST_ITEMS ((long long)1 << 62)

/* What the bytes do not say. NULL, or an error. */
static const char *read_options(RedisModuleString **argv, int argc,
                                seen_spec *spec)
{
    for (int i = 0; i < argc; i += 2) {
        long long n = 0;
        bool whole = i + 1 < argc && to_number(argv[i + 1], 1, MOST_ITEMS, &n);
        if (i + 1 == argc) return "ERR an option lacks its value";
        if (is_word(argv[i], "ERROR")) {
            if (!to_double(argv[i + 1], &spec->fpp) ||
                !(spec->fpp > 0 && spec->fpp < 1))
                return "ERR (0 < error rate range < 1)";
            continue;
        }
        if (is_word(argv[i], "BITS"))
            spec->bits = (uint64_t)n;
        else if (is_word(argv[i], "CAPACITY"))
            spec->items = (uint64_t)n;
        else if (is_word(argv[i], "HASHES"))
            spec->hashes = (uint32_t)n;
        else
            return "ERR unknown argument received: expected BITS, HASHES, "
                   "CAPACITY or ERROR";
        if (!whole || (is_word(argv[i], "HASHES") && n > UINT32_MAX))
            return "ERR BITS, HASHES and CAPACITY are whole numbers above 0";
    }
    return NULL;
}

/* The dialect of this name, if keys of the family can hold it; NULL: the error
 * has been replied. */
static const char *find_dialect(RedisModuleCtx *ctx,
                                const struct family *family,
                                const RedisModuleString *name,
                                seen_dialect_facts *facts)
{
    seen_key text = key_of(name);
    char word[32] = "";
    if (text.len < sizeof word) memcpy(word, text.data, text.len);
    if (!seen_dialect_named(word, facts)) {
        RedisModule_ReplyWithError(ctx, "ERR no such dialect: `seen dialects` "
                                        "lists them");
        return NULL;
    }
    bool removes = facts->can & SEEN_CAN_REMOVE;
    if (removes == (family == &cuckoo_family)) return facts->name;
    reply_error(ctx, "ERR filters of the dialect %s are %s keys: %s.IMPORT",
                facts->name, removes ? "CF" : "BF", removes ? "CF" : "BF");
    return NULL;
}

/* Everything but reading the arguments. */
static int import(RedisModuleCtx *ctx, const struct family *family,
                  RedisModuleString *name, const char *dialect,
                  const seen_spec *spec, RedisModuleString *bytes,
                  const char *exists, const char *hint)
{
    RedisModuleKey *key;
    bool refused;
    seen_error error;
    struct object *o =
        object_open_any(ctx, family, name, REDISMODULE_READ | REDISMODULE_WRITE,
                        &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (o) {
        RedisModule_CloseKey(key);
        return RedisModule_ReplyWithError(ctx, exists);
    }
    seen_status status =
        object_import(family, dialect, spec, key_of(bytes), &o, &error);
    if (status == SEEN_OK) RedisModule_ModuleTypeSetValue(key, family->type, o);
    RedisModule_CloseKey(key);
    if (status == SEEN_NOMEM) return reply_status(ctx, status);
    if (status != SEEN_OK)
        return reply_error(ctx, "ERR received bad data: as %s: %s%s", dialect,
                           error.text, status == SEEN_INVALID ? hint : "");
    RedisModule_ReplicateVerbatim(ctx);
    object_changed(ctx, name,
                   family == &bloom_family ? "bf.import" : "cf.import");
    return RedisModule_ReplyWithSimpleString(ctx, "OK");
}

static int import_named(RedisModuleCtx *ctx, const struct family *family,
                        RedisModuleString **argv, int argc)
{
    seen_spec spec = {0};
    seen_dialect_facts facts = {.size = sizeof facts};
    if (argc < 5) return RedisModule_WrongArity(ctx);
    if (!is_word(argv[2], "DIALECT"))
        return RedisModule_ReplyWithError(
            ctx, "ERR expected DIALECT, its name, and the filter's bytes");
    const char *dialect = find_dialect(ctx, family, argv[3], &facts);
    if (!dialect) return REDISMODULE_OK;
    const char *problem = read_options(argv + 5, argc - 5, &spec);
    if (problem) return RedisModule_ReplyWithError(ctx, problem);
    return import(ctx, family, argv[1], dialect, &spec, argv[4],
                  "ERR item exists",
                  facts.needs ? " (keys: CAPACITY, rate: ERROR)" : "");
}

int bf_import(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return import_named(ctx, &bloom_family, argv, argc);
}

int cf_import(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return import_named(ctx, &cuckoo_family, argv, argc);
}

int bf_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3) return RedisModule_WrongArity(ctx);
    return import(ctx, &bloom_family, argv[1], "valkey-bloom", &(seen_spec){0},
                  argv[2], "BUSYKEY Target key name already exists.", "");
}
