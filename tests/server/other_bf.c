/*
 * other_bf.c - a module that has BF.ADD and BF.EXISTS already, as Redis 8 does:
 * for commands=auto.
 */
#include "../../module/redis_api.h"

static int other(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    return RedisModule_ReplyWithSimpleString(ctx, "another module's");
}

__attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    (void)argc;
    if (redis_api_bind(ctx)) return REDISMODULE_ERR;
    RedisModule_SetModuleAttribs(ctx, "otherbf", 1, REDISMODULE_APIVER_1);
    RedisModule_CreateCommand(ctx, "bf.add", other, "write", 1, 1, 1);
    return RedisModule_CreateCommand(ctx, "bf.exists", other, "readonly", 1, 1,
                                     1);
}
