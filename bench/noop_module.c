/*
 * noop_module.c - what a module command costs at least: it looks at its
 * arguments and answers.
 *
 *     noop.read key arg...     noop.write key arg...     a number
 *     noop.many key arg...                               a number for each
 *     noop.open key arg...     opens the key, too        a number
 *     noop.change key arg...   opens it to write, tells  a number
 *                              replicas and watchers
 */
#include "../module/redis_api.h"

static long long look(RedisModuleString **argv, int argc)
{
    size_t sum = 0, len;
    for (int i = 1; i < argc; i++) {
        const char *at = RedisModule_StringPtrLen(argv[i], &len);
        sum += len && at[0] ? len : 0;
    }
    return sum > 0;
}

static int noop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return RedisModule_ReplyWithLongLong(ctx, look(argv, argc));
}

static int many(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long answer = look(argv, argc);
    RedisModule_ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i++)
        RedisModule_ReplyWithLongLong(ctx, answer);
    return REDISMODULE_OK;
}

static int open(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key = RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ);
    long long answer = look(argv, argc) + (key && RedisModule_KeyType(key));
    if (key) RedisModule_CloseKey(key);
    return RedisModule_ReplyWithLongLong(ctx, answer);
}

static int change(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleKey *key =
        RedisModule_OpenKey(ctx, argv[1], REDISMODULE_READ | REDISMODULE_WRITE);
    long long answer = look(argv, argc) + RedisModule_KeyType(key);
    RedisModule_CloseKey(key);
    RedisModule_ReplicateVerbatim(ctx);
    RedisModule_SignalModifiedKey(ctx, argv[1]);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE,
                                    "noop.change", argv[1]);
    return RedisModule_ReplyWithLongLong(ctx, answer);
}

__attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (redis_api_bind(ctx)) return REDISMODULE_ERR;
    RedisModule_SetModuleAttribs(ctx, "noop", 1, REDISMODULE_APIVER_1);
    RedisModule_SetModuleOptions(
        ctx, REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED); /* as ours */
    if (RedisModule_CreateCommand(ctx, "noop.read", noop, "readonly fast", 1, 1,
                                  1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "noop.write", noop,
                                  "write deny-oom fast", 1, 1,
                                  1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "noop.many", many, "readonly", 1, 1,
                                  1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "noop.open", open, "readonly fast", 1, 1,
                                  1) != REDISMODULE_OK ||
        RedisModule_CreateCommand(ctx, "noop.change", change,
                                  "write deny-oom fast", 1, 1,
                                  1) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    return REDISMODULE_OK;
}
