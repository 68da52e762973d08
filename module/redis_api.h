/*
 * redis_api.h - the module interface of Redis and Valkey, as far as we use it.
 *
 * The server hands its functions out by name, through a pointer at the start of
 * the first context. What is declared here is what servers from Redis 6.2 on
 * share; functions that came later are NULL on servers that do not have them
 * (API_NEWER), and whoever calls one looks first. redis_api.def has the list.
 *
 * Structures and numbers are those of the server's binary interface.
 */
#ifndef SEEN_MODULE_REDIS_API_H
#define SEEN_MODULE_REDIS_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleType RedisModuleType;
typedef struct RedisModuleIO RedisModuleIO;
typedef struct RedisModuleDigest RedisModuleDigest;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleDefragCtx RedisModuleDefragCtx;
typedef struct RedisModuleCommand RedisModuleCommand;

/* What happens to the server, for those who subscribe. */
typedef struct RedisModuleEvent {
    uint64_t id, version;
} RedisModuleEvent;

#define REDISMODULE_EVENT_PERSISTENCE 1
#define REDISMODULE_EVENT_LOADING     3
#define REDISMODULE_EVENT_FORK_CHILD  13

#define REDISMODULE_SUBEVENT_PERSISTENCE_AOF_START      1 /* in the child */
#define REDISMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START 5
#define REDISMODULE_SUBEVENT_LOADING_REPL_START         2 /* 0: of RDB, 1: of AOF */
#define REDISMODULE_SUBEVENT_FORK_CHILD_BORN            0

typedef void (*RedisModuleEventCallback)(RedisModuleCtx *ctx,
                                         RedisModuleEvent event,
                                         uint64_t subevent, void *data);
typedef void (*RedisModuleTimerProc)(RedisModuleCtx *ctx, void *data);

#define REDISMODULE_OK       0
#define REDISMODULE_ERR      1
#define REDISMODULE_APIVER_1 1

/* OpenKey, KeyType */
#define REDISMODULE_READ          (1 << 0)
#define REDISMODULE_WRITE         (1 << 1)
#define REDISMODULE_KEYTYPE_EMPTY 0
#define REDISMODULE_NO_EXPIRE     (-1)

/* GetContextFlags */
#define REDISMODULE_CTX_FLAGS_SLAVE      (1 << 3)
#define REDISMODULE_CTX_FLAGS_READONLY   (1 << 4)
#define REDISMODULE_CTX_FLAGS_AOF        (1 << 6)
#define REDISMODULE_CTX_FLAGS_REPLICATED (1 << 12)
#define REDISMODULE_CTX_FLAGS_LOADING    (1 << 13)

/* NotifyKeyspaceEvent */
#define REDISMODULE_NOTIFY_MODULE (1 << 13)

/* SetModuleOptions */
#define REDISMODULE_OPTIONS_HANDLE_IO_ERRORS           (1 << 0)
#define REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED (1 << 1)

/* RegisterNumericConfig and the like */
#define REDISMODULE_CONFIG_DEFAULT 0
#define REDISMODULE_CONFIG_MEMORY  (1 << 7)

#define REDISMODULE_ERRORMSG_WRONGTYPE                                         \
    "WRONGTYPE Operation against a key holding the wrong kind of value"

typedef int (*RedisModuleCmdFunc)(RedisModuleCtx *ctx, RedisModuleString **argv,
                                  int argc);
typedef void (*RedisModuleInfoFunc)(RedisModuleInfoCtx *ctx, int for_crash);
typedef long long (*RedisModuleConfigGetNumericFunc)(const char *name,
                                                     void *data);
typedef int (*RedisModuleConfigSetNumericFunc)(const char *name,
                                               long long value, void *data,
                                               RedisModuleString **problem);
typedef RedisModuleString *(*RedisModuleConfigGetStringFunc)(const char *name,
                                                             void *data);
typedef int (*RedisModuleConfigSetStringFunc)(const char *name,
                                              RedisModuleString *value,
                                              void *data,
                                              RedisModuleString **problem);
typedef int (*RedisModuleConfigApplyFunc)(RedisModuleCtx *ctx, void *data,
                                          RedisModuleString **problem);

/* What a data type can do: version 5, of Redis 7.2. Servers read as much of it as
 * they know: 6.2 up to `defrag`, 7.0 up to `copy2`. */
#define REDISMODULE_TYPE_METHOD_VERSION 5
#define REDISMODULE_AUX_BEFORE_RDB      (1 << 0)
typedef struct RedisModuleTypeMethods {
    uint64_t version;
    void *(*rdb_load)(RedisModuleIO *io, int encoding);
    void (*rdb_save)(RedisModuleIO *io, void *value);
    void (*aof_rewrite)(RedisModuleIO *io, RedisModuleString *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(RedisModuleDigest *digest, void *value);
    void (*free)(void *value);
    int (*aux_load)(RedisModuleIO *io, int encoding, int when);
    void (*aux_save)(RedisModuleIO *io, int when);
    int aux_save_triggers;
    size_t (*free_effort)(RedisModuleString *key, const void *value);
    void (*unlink)(RedisModuleString *key, const void *value);
    void *(*copy)(RedisModuleString *from, RedisModuleString *to,
                  const void *value);
    int (*defrag)(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                  void **value);
    void *mem_usage2, *free_effort2, *unlink2, *copy2; /* not used */
    void (*aux_save2)(RedisModuleIO *io, int when);    /* instead of aux_save */
} RedisModuleTypeMethods;

/* What COMMAND INFO and COMMAND DOCS tell, and where keys are: version 1, of
 * Redis 7.0. Lists end with an element of zeros. */
typedef struct RedisModuleCommandKeySpec {
    const char *notes;
    uint64_t flags;
    int begin_search; /* 2: at an index, 3: behind a word */
    union {
        struct {
            int position;
        } index;
        struct {
            const char *word;
            int from;
        } keyword;
    } begin;
    int find_keys; /* 2: a range */
    union {
        struct {
            int last, step, limit;
        } range;
        struct {
            int index, first, step;
        } count;
    } find;
} RedisModuleCommandKeySpec;

#define REDISMODULE_KSPEC_BS_INDEX   2
#define REDISMODULE_KSPEC_BS_KEYWORD 3
#define REDISMODULE_KSPEC_FK_RANGE   2

#define REDISMODULE_CMD_KEY_RO     (UINT64_C(1) << 0)
#define REDISMODULE_CMD_KEY_RW     (UINT64_C(1) << 1)
#define REDISMODULE_CMD_KEY_ACCESS (UINT64_C(1) << 4)
#define REDISMODULE_CMD_KEY_UPDATE (UINT64_C(1) << 5)

typedef struct RedisModuleCommandHistoryEntry {
    const char *since, *changes;
} RedisModuleCommandHistoryEntry;

#define REDISMODULE_ARG_TYPE_STRING     0
#define REDISMODULE_ARG_TYPE_INTEGER    1
#define REDISMODULE_ARG_TYPE_DOUBLE     2
#define REDISMODULE_ARG_TYPE_KEY        3
#define REDISMODULE_ARG_TYPE_UNIX_TIME  5
#define REDISMODULE_ARG_TYPE_PURE_TOKEN 6
#define REDISMODULE_ARG_TYPE_ONEOF      7
#define REDISMODULE_ARG_TYPE_BLOCK      8

#define REDISMODULE_CMD_ARG_OPTIONAL (1 << 0)
#define REDISMODULE_CMD_ARG_MULTIPLE (1 << 1)

typedef struct RedisModuleCommandArg {
    const char *name;
    int type;
    int key_spec;
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct RedisModuleCommandArg *parts;
} RedisModuleCommandArg;

typedef struct RedisModuleCommandInfoVersion {
    int version;
    size_t history_size, key_spec_size, arg_size;
} RedisModuleCommandInfoVersion;

typedef struct RedisModuleCommandInfo {
    const RedisModuleCommandInfoVersion *version;
    const char *summary, *complexity, *since;
    RedisModuleCommandHistoryEntry *history;
    const char *tips;
    int arity;
    RedisModuleCommandKeySpec *key_specs;
    RedisModuleCommandArg *args;
} RedisModuleCommandInfo;

#define API(result, name, parameters)                                          \
    extern result(*RedisModule_##name) parameters;
#define API_NEWER(result, name, parameters) API(result, name, parameters)
#include "redis_api.def"
#undef API_NEWER
#undef API

/* Ask the server for all of them. NULL, or the name of one it should have. */
const char *redis_api_bind(RedisModuleCtx *ctx);

#endif
