/* reply.h - answers in the form that clients expect, RESP2 and RESP3. */
#ifndef SEEN_MODULE_REPLY_H
#define SEEN_MODULE_REPLY_H

#include "seen.h"

#include "redis_api.h"

/* 0 or 1; a boolean to clients that speak RESP3 (where the server can tell). */
static inline int reply_bool(RedisModuleCtx *ctx, bool value)
{
    if (RedisModule_ReplyWithBool) return RedisModule_ReplyWithBool(ctx, value);
    return RedisModule_ReplyWithLongLong(ctx, value);
}

/* So many names and values follow. */
int reply_map(RedisModuleCtx *ctx, long pairs);
int reply_pair(RedisModuleCtx *ctx, const char *name, uint64_t value);

/* The text of an error, good until the next one. */
const char *error_text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

int reply_error(RedisModuleCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What went wrong in the library. */
int reply_status(RedisModuleCtx *ctx, seen_status status);

/* After a command that rebuilds a key, with its status. A server goes on when such a
 * command of its AOF fails, and loses the key for good when it rewrites the file: so
 * it is ended, as it ends itself for an RDB file that it cannot read. */
void end_if_loading(RedisModuleCtx *ctx, const RedisModuleString *key,
                    seen_status status);

#endif
