/* redis_api.c - the server's functions, by name. */
#include "redis_api.h"

#include <stdbool.h>
#include <string.h>

#define API(result, name, parameters)       result(*RedisModule_##name) parameters;
#define API_NEWER(result, name, parameters) API(result, name, parameters)
#include "redis_api.def"
#undef API_NEWER
#undef API

static const struct {
    const char *name;
    void *pointer; /* to a pointer to a function */
    bool needed;
} functions[] = {
#define API(result, name, parameters)                                          \
    {"RedisModule_" #name, (void *)&RedisModule_##name, true},
#define API_NEWER(result, name, parameters)                                    \
    {"RedisModule_" #name, (void *)&RedisModule_##name, false},
#include "redis_api.def"
#undef API_NEWER
#undef API
};

const char *redis_api_bind(RedisModuleCtx *ctx)
{
    int (*get)(const char *name, void *pointer);
    memcpy(&get, ctx, sizeof get); /* the first thing in a context */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (get(functions[i].name, functions[i].pointer) != REDISMODULE_OK &&
            functions[i].needed)
            return functions[i].name;
    return NULL;
}
