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

/*
 * In items, of commands that were not refused:
 *
 *     adds     added or marked, whether they were new or not; not those that were
 *              only asked about on the way (CF.ADDNX, SEEN.TAKE)
 *     checks   asked about, also where there is no such key. SEEN.TAKE asks from
 *              the first one until it has enough
 *     hits     checks whose answer was "maybe"
 */
struct statistics {
    uint64_t adds, checks, hits;
};

extern struct statistics statistics;

#endif
