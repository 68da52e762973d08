/* policy_data.c - see policy_data.h. */
#include "policy_data.h"

#include "policy.h"

#include <string.h>

/* ---- RDB ---------------------------------------------------------------- */

void policy_aux_save(RedisModuleIO *io, int when)
{
    const struct policy *p;
    uint64_t n = 0;
    (void)when;
    while (policy_set_at(n))
        n++;
    RedisModule_SaveUnsigned(io, n);
    for (size_t i = 0; (p = policy_set_at(i)); i++) {
        RedisModule_SaveStringBuffer(io, p->name, strlen(p->name));
        RedisModule_SaveStringBuffer(io, p->text, strlen(p->text));
    }
}

void policy_aux_save2(RedisModuleIO *io, int when)
{
    if (policy_set_at(0)) policy_aux_save(io, when);
}

/* NULL, or what is wrong. */
static const char *load_one(RedisModuleIO *io)
{
    size_t name_len = 0, text_len = 0;
    const char *problem = "its name and numbers";
    bool changed;
    char *name = RedisModule_LoadStringBuffer(io, &name_len);
    char *text = name ? RedisModule_LoadStringBuffer(io, &text_len) : NULL;
    if (text && !RedisModule_IsIOError(io))
        problem = policy_set(name, name_len, text, text_len, &changed);
    if (name) RedisModule_Free(name);
    if (text) RedisModule_Free(text);
    return problem;
}

int policy_aux_load(RedisModuleIO *io, int encoding, int when)
{
    const char *problem = NULL;
    (void)encoding;
    (void)when;
    uint64_t n = RedisModule_LoadUnsigned(io);
    for (; n > 0 && !problem && !RedisModule_IsIOError(io); n--)
        problem = load_one(io);
    if (!problem && !RedisModule_IsIOError(io)) return REDISMODULE_OK;
    RedisModule_LogIOError(io, "warning",
                           "seen: a policy cannot be loaded: expected %s",
                           problem ? problem : "how many there are");
    return REDISMODULE_ERR;
}

/* ---- AOF ---------------------------------------------------------------- */

/*
 * An AOF that is rewritten without a preamble asks data types for their keys, and
 * nobody for anything else. Two ways lead into it all the same:
 *
 *     base      a child process writes it, from its copy of our memory: the first
 *               key of ours is preceded by the policies
 *     go on     what happens meanwhile is appended to another file by the parent,
 *               and so are the policies: emit()
 *
 * The first is whole as soon as the file counts, but needs a key. The second needs
 * none, but has to wait while clients are paused. Doing both does no harm: what the
 * parent appends is later, and what is set now.
 */

/* This process rewrites the AOF, and has not written the policies yet. Only told
 * by the event: Valkey 9 calls the same methods to move slots to another primary,
 * which has policies of its own. */
static bool base_pending;

void policy_aof_rewrite(RedisModuleIO *io)
{
    const struct policy *p;
    if (!base_pending) return;
    base_pending = false;
    for (size_t i = 0; (p = policy_set_at(i)); i++)
        RedisModule_EmitAOF(io, "SEEN.POLICY", "cc", p->name, p->text);
}

#define SOON_MS  0
#define LATER_MS 100

/* A child process is rewriting the AOF, perhaps, and the file that goes on behind
 * it does not have the policies yet. */
static bool pending;

/* Into the AOF alone: replicas have them. By a timer, which is no command: that
 * would be repeated by the AOF as one that changed something. It runs before the
 * server can learn that the child is done, so no file is without them; but while
 * clients are paused the server must not be made to write (it would end), and
 * then it is later. */
static void emit(RedisModuleCtx *ctx, void *data)
{
    const struct policy *p;
    (void)data;
    if (RedisModule_AvoidReplicaTraffic && RedisModule_AvoidReplicaTraffic()) {
        RedisModule_CreateTimer(ctx, LATER_MS, emit, NULL);
        return;
    }
    pending = false;
    for (size_t i = 0; (p = policy_set_at(i)); i++)
        RedisModule_Replicate(ctx, "SEEN.POLICY", "Rcc", p->name, p->text);
}

/* ---- Events ------------------------------------------------------------- */

static void on_loading(RedisModuleCtx *ctx, RedisModuleEvent event,
                       uint64_t subevent, void *data)
{
    (void)ctx;
    (void)event;
    (void)data;
    if (subevent <= REDISMODULE_SUBEVENT_LOADING_REPL_START) policy_reset_all();
}

static void on_persistence(RedisModuleCtx *ctx, RedisModuleEvent event,
                           uint64_t subevent, void *data)
{
    (void)ctx;
    (void)event;
    (void)data;
    base_pending = subevent == REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START ||
                   subevent == REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START;
}

static void on_fork(RedisModuleCtx *ctx, RedisModuleEvent event,
                    uint64_t subevent, void *data)
{
    (void)event;
    (void)data;
    if (subevent != REDISMODULE_SUBEVENT_FORK_CHILD_BORN || pending ||
        !policy_set_at(0) ||
        !(RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_AOF))
        return;
    pending = true;
    RedisModule_CreateTimer(ctx, SOON_MS, emit, NULL);
}

int policy_data_subscribe(RedisModuleCtx *ctx)
{
    static const struct {
        uint64_t id;
        RedisModuleEventCallback callback;
    } events[] = {{REDISMODULE_EVENT_PERSISTENCE, on_persistence},
                  {REDISMODULE_EVENT_LOADING, on_loading},
                  {REDISMODULE_EVENT_FORK_CHILD, on_fork}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        RedisModuleEvent event = {.id = events[i].id, .version = 1};
        if (RedisModule_SubscribeToServerEvent(
                ctx, event, events[i].callback) == REDISMODULE_OK)
            continue;
        RedisModule_Log(ctx, "warning",
                        "seen: this server does not tell of event %d: 6.2 is "
                        "needed",
                        (int)events[i].id);
        return REDISMODULE_ERR;
    }
    return REDISMODULE_OK;
}
