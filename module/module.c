/*
 * module.c - the module: RedisModule_OnLoad() and what INFO says.
 *
 *     redis-server --loadmodule ./seen.so
 *
 * Of this library only RedisModule_OnLoad() can be seen from outside.
 */
#include "command.h"
#include "config.h"
#include "exposure.h"
#include "memory.h"
#include "object.h"
#include "policy.h"
#include "policy_data.h"
#include "secret.h"
#include "syntax.h"

#include "seen.h"

#include <stdio.h>
#include <string.h>

/* ---- Commands ----------------------------------------------------------- */

#define BLOOM    &bloom_family
#define CUCKOO   &cuckoo_family
#define EXPOSURE &exposure_family
#define NONE     NULL
#define HANDLED  .absent = NULL

#define GLUE(a, b) a##b
#define AT(a, b)   GLUE(a, b)

/* A row and, because the server does not say which command it calls, a function of
 * its own for each. Both are named by their line of commands.def. */
#define COMMAND(name, function, flags, arity, keys, syntax, summary, family,   \
                ...)                                                           \
    static const struct command AT(row_, __LINE__) = {                         \
        name,   function, flags,  arity,      keys,                            \
        syntax, summary,  family, __VA_ARGS__};                                \
    static int AT(call_, __LINE__)(RedisModuleCtx * ctx,                       \
                                   RedisModuleString * *argv, int argc)        \
    {                                                                          \
        return command_run(&AT(row_, __LINE__), ctx, argv, argc);              \
    }
#include "commands.def"
#undef COMMAND

static const struct {
    const struct command *row;
    RedisModuleCmdFunc call;
} commands[] = {
#define COMMAND(...) {&AT(row_, __LINE__), AT(call_, __LINE__)},
#include "commands.def"
#undef COMMAND
};

static RedisModuleCommandKeySpec key_at(int first, int last, uint64_t flags)
{
    return (RedisModuleCommandKeySpec){.flags = flags,
                                       .begin_search =
                                           REDISMODULE_KSPEC_BS_INDEX,
                                       .begin.index.position = first,
                                       .find_keys = REDISMODULE_KSPEC_FK_RANGE,
                                       .find.range = {.last = last, .step = 1}};
}

/* As the server sorts its own commands by their flags. */
static const char *categories(const struct command *c)
{
    if (strstr(c->flags, "admin")) return "seen admin dangerous";
    return strstr(c->flags, "write") ? "seen write" : "seen read";
}

/* What COMMAND tells clients, where the server can hear it. */
static void describe(RedisModuleCtx *ctx, const struct command *c)
{
    static const RedisModuleCommandInfoVersion version = {
        1, sizeof(RedisModuleCommandHistoryEntry),
        sizeof(RedisModuleCommandKeySpec), sizeof(RedisModuleCommandArg)};
    const uint64_t read = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS;
    const uint64_t write = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS |
                           REDISMODULE_CMD_KEY_UPDATE;
    if (!RedisModule_GetCommand || !RedisModule_SetCommandInfo) return;
    RedisModuleCommand *command = RedisModule_GetCommand(ctx, c->name);
    if (!command) return;
    RedisModuleCommandKeySpec specs[3] = {
        key_at(1, 0, c->keys == KEY_READ ? read : write)};
    if (c->keys == KEYS_MERGE) specs[1] = key_at(2, -1, read);
    if (c->keys == KEY_LIKE) {
        specs[1] = key_at(0, 0, read);
        specs[1].begin_search = REDISMODULE_KSPEC_BS_KEYWORD;
        specs[1].begin.keyword.word = "LIKE";
        specs[1].begin.keyword.from = 2;
    }
    RedisModuleCommandInfo info = {.version = &version,
                                   .summary = c->summary,
                                   .since = SEEN_VERSION,
                                   .arity = c->arity,
                                   .key_specs =
                                       c->keys == KEY_NONE ? NULL : specs,
                                   .args = syntax_read(c->syntax)};
    RedisModule_SetCommandInfo(command, &info);
    if (RedisModule_AddACLCategory && RedisModule_SetCommandACLCategories)
        RedisModule_SetCommandACLCategories(command, categories(c));
}

static int create_commands(RedisModuleCtx *ctx)
{
    if (RedisModule_AddACLCategory) RedisModule_AddACLCategory(ctx, "seen");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct command *c = commands[i].row;
        bool ours = strncmp(c->name, "seen.", 5) == 0;
        if (config.commands == COMMANDS_SEEN && !ours) continue;
        int first = c->keys != KEY_NONE;
        int last = c->keys == KEYS_MERGE ? -1 : first;
        if (RedisModule_CreateCommand(ctx, c->name, commands[i].call, c->flags,
                                      first, last, first) == REDISMODULE_OK) {
            describe(ctx, c);
        } else if (config.commands == COMMANDS_AUTO) {
            RedisModule_Log(ctx, "notice",
                            "seen: the server has %s already, ours is left out",
                            c->name);
        } else {
            RedisModule_Log(ctx, "warning",
                            "seen: the server has %s already: load with "
                            "commands=auto or commands=seen",
                            c->name);
            return REDISMODULE_ERR;
        }
    }
    return REDISMODULE_OK;
}

/* ---- INFO --------------------------------------------------------------- */

static void info(RedisModuleInfoCtx *ctx, int for_crash)
{
    (void)for_crash;
    RedisModule_InfoAddSection(ctx, "");
    RedisModule_InfoAddFieldCString(ctx, "version", SEEN_VERSION);
    RedisModule_InfoAddFieldULongLong(ctx, "bf_keys", bloom_family.count);
    RedisModule_InfoAddFieldULongLong(ctx, "cf_keys", cuckoo_family.count);
    RedisModule_InfoAddFieldULongLong(ctx, "users", exposure_family.count);
    RedisModule_InfoAddFieldULongLong(ctx, "bytes", memory_in_use());
    RedisModule_InfoAddFieldULongLong(ctx, "adds", statistics.adds);
    RedisModule_InfoAddFieldULongLong(ctx, "checks", statistics.checks);
    RedisModule_InfoAddFieldULongLong(ctx, "hits", statistics.hits);
    RedisModule_InfoAddFieldULongLong(ctx, "evicted_generations",
                                      policy_dropped());
    size_t set = 0;
    while (policy_set_at(set))
        set++;
    RedisModule_InfoAddFieldCString(ctx, "policy", policy_at(0)->text);
    RedisModule_InfoAddFieldULongLong(ctx, "policies_set", set);
    RedisModule_InfoAddFieldULongLong(ctx, "policy_bytes", policy_bytes());
    RedisModule_InfoAddFieldCString(ctx, "keyed",
                                    exposure_keyed ? "yes" : "no");
    RedisModule_InfoAddFieldCString(ctx, "filters_keyed",
                                    config.keyed ? "yes" : "no");
}

/* ---- Loading ------------------------------------------------------------ */

__attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *missing = redis_api_bind(ctx);
    if (missing) {
        fprintf(stderr, "seen: this server has no %s: 6.2 is needed\n",
                missing);
        return REDISMODULE_ERR;
    }
    RedisModule_SetModuleAttribs(ctx, "seen", 1, REDISMODULE_APIVER_1);
    RedisModule_SetModuleOptions(
        ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                 REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    if (config_load(ctx, argv, argc) != REDISMODULE_OK ||
        object_types(ctx) != REDISMODULE_OK ||
        exposure_types(ctx) != REDISMODULE_OK ||
        policy_data_subscribe(ctx) != REDISMODULE_OK ||
        create_commands(ctx) != REDISMODULE_OK ||
        config_register(ctx) != REDISMODULE_OK)
        return REDISMODULE_ERR;
    RedisModule_RegisterInfoFunc(ctx, info);
    return REDISMODULE_OK;
}
