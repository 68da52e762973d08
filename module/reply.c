/* reply.c - see reply.h. */
#include "reply.h"

#include "memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int reply_map(RedisModuleCtx *ctx, long pairs)
{
    if (RedisModule_ReplyWithMap) return RedisModule_ReplyWithMap(ctx, pairs);
    return RedisModule_ReplyWithArray(ctx, 2 * pairs);
}

int reply_pair(RedisModuleCtx *ctx, const char *name, uint64_t value)
{
    RedisModule_ReplyWithSimpleString(ctx, name);
    return RedisModule_ReplyWithLongLong(ctx, (long long)value);
}

const char *error_text(const char *format, ...)
{
    static char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return text;
}

int reply_error(RedisModuleCtx *ctx, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return RedisModule_ReplyWithError(ctx, text);
}

int reply_status(RedisModuleCtx *ctx, seen_status status)
{
    if (status == SEEN_NOMEM && memory_was_limit())
        return reply_error(ctx,
                           "ERR the key would take more memory than its limit, "
                           "seen.memory-limit, of %" PRIu64 " bytes",
                           memory_limit);
    if (status == SEEN_NOMEM)
        return RedisModule_ReplyWithError(
            ctx, "ERR Insufficient memory to create filter");
    return reply_error(ctx, "ERR %s", seen_strerror(status));
}

void end_if_loading(RedisModuleCtx *ctx, const RedisModuleString *key,
                    seen_status status)
{
    if (status == SEEN_OK ||
        !(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_LOADING))
        return;
    size_t len;
    const char *name = RedisModule_StringPtrLen(key, &len);
    RedisModule_Log(ctx, "warning", "seen: %.*s in the AOF: %s%s", (int)len,
                    name, seen_strerror(status),
                    status == SEEN_MISMATCH
                        ? ": is secret-file the one it was written with?"
                        : "");
    exit(1);
}
