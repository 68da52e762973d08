/* command.c - see command.h. */
#include "command.h"

#include "arguments.h"

#include <stdlib.h>

struct statistics statistics;

const char WRONG_ARITY[] = "wrong number of arguments";

/* A cluster asks the command itself where keys are that do not stand at the
 * beginning. */
static int tell_keys(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModule_KeyAtPos(ctx, 1);
    for (int i = 2; i + 1 < argc; i++)
        if (is_word(argv[i], "LIKE")) RedisModule_KeyAtPos(ctx, i + 1);
    return REDISMODULE_OK;
}

static bool arity_right(const struct command *m, int argc)
{
    if (m->arity >= 0) return argc == m->arity;
    return argc >= -m->arity && (!m->most || argc <= m->most);
}

/* Nothing, or a value of the family; false: the reply has been given. */
static inline bool open_key(const struct call *c, RedisModuleString *name,
                            int mode, RedisModuleKey **key, void **value)
{
    *value = NULL;
    *key = RedisModule_OpenKey(c->ctx, name, mode);
    if (!*key) return true;
    if (RedisModule_ModuleTypeGetType(*key) == c->family->type)
        *value = RedisModule_ModuleTypeGetValue(*key);
    else if (RedisModule_KeyType(*key) != REDISMODULE_KEYTYPE_EMPTY) {
        RedisModule_ReplyWithError(c->ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
        return false;
    }
    return true;
}

static bool is_complete(const struct call *c, const void *value)
{
    const struct object *o = value;
    if (!o || c->family == &exposure_family || o->n) return true;
    RedisModule_ReplyWithError(c->ctx,
                               "ERR the filter is not complete yet: LOADCHUNK "
                               "has not brought its last bytes");
    return false;
}

/* As commands.def writes it: "-an error", ":1" a number, "_" null. */
static int reply_row(RedisModuleCtx *ctx, const char *reply)
{
    if (*reply == '-') return RedisModule_ReplyWithError(ctx, reply + 1);
    if (*reply == ':')
        return RedisModule_ReplyWithLongLong(ctx, strtoll(reply + 1, NULL, 10));
    return RedisModule_ReplyWithNull(ctx);
}

/* The key is open. */
static int run(struct call *c)
{
    const struct command *m = c->command;
    const char *instead = c->value ? m->present : m->absent;
    if (instead) return reply_row(c->ctx, instead);
    if (!m->partial && !is_complete(c, c->value)) return REDISMODULE_OK;
    int result = m->function(c);
    statistics.adds += c->count.adds;
    statistics.checks += c->count.checks;
    statistics.hits += c->count.hits;
    return result;
}

int command_run(const struct command *m, RedisModuleCtx *ctx,
                RedisModuleString **argv, int argc)
{
    struct call c; /* what the arguments say is large, and for `read` */
    if (m->keys == KEY_LIKE && RedisModule_IsKeysPositionRequest(ctx))
        return tell_keys(ctx, argv, argc);
    if (!arity_right(m, argc)) return RedisModule_WrongArity(ctx);
    c.ctx = ctx;
    c.argv = argv;
    c.argc = argc;
    c.command = m;
    c.family = m->family;
    c.name = m->family ? argv[1] : NULL;
    c.key = NULL;
    c.value = NULL;
    c.count = (struct statistics){0};
    if (m->read) {
        const char *problem = m->read(&c);
        if (problem == WRONG_ARITY) return RedisModule_WrongArity(ctx);
        if (problem) return RedisModule_ReplyWithError(ctx, problem);
    }
    int mode = m->keys == KEY_READ ? REDISMODULE_READ
                                   : REDISMODULE_READ | REDISMODULE_WRITE;
    int result = REDISMODULE_OK;
    if (!m->family || open_key(&c, c.name, mode, &c.key, &c.value))
        result = run(&c);
    if (c.key) RedisModule_CloseKey(c.key);
    return result;
}

/* ---- For commands ------------------------------------------------------- */

void *call_other(struct call *c, RedisModuleString *name, bool *refused)
{
    RedisModuleKey *key;
    void *value;
    *refused = !open_key(c, name, REDISMODULE_READ, &key, &value) ||
               !is_complete(c, value);
    if (key) RedisModule_CloseKey(key); /* the value stays: nobody else runs */
    return *refused ? NULL : value;
}

void call_set(struct call *c, void *value)
{
    void *old = NULL;
    if (c->value) {
        RedisModule_ModuleTypeReplaceValue(c->key, c->family->type, value,
                                           &old);
        c->family->free(old);
    } else {
        RedisModule_ModuleTypeSetValue(c->key, c->family->type, value);
    }
    c->value = value;
}

void call_changed(struct call *c, const char *event)
{
    RedisModule_SignalModifiedKey(c->ctx, c->name);
    RedisModule_NotifyKeyspaceEvent(c->ctx, REDISMODULE_NOTIFY_MODULE, event,
                                    c->name);
}

void count_answers(struct call *c, const bool *answers, size_t n)
{
    c->count.checks += n;
    for (size_t i = 0; i < n; i++)
        c->count.hits += answers[i];
}
