/*
 * commands.h - the commands and the numbers that INFO tells about them.
 *
 * A command is one function in a cmd_*.c file and one row in commands.def.
 */
#ifndef SEEN_MODULE_COMMANDS_H
#define SEEN_MODULE_COMMANDS_H

#include "redis_api.h"

#include <stdint.h>

#define COMMAND(name, function, flags, arity, keys, syntax, summary)           \
    int function(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
#include "commands.def"
#undef COMMAND

struct statistics {
    uint64_t adds, checks, hits;
};

extern struct statistics statistics;

#endif
