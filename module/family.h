/* family.h - the three kinds of keys: BF, CF and SEEN. */
#ifndef SEEN_MODULE_FAMILY_H
#define SEEN_MODULE_FAMILY_H

#include "redis_api.h"

#include <stdatomic.h>

struct family {
    const char *name;
    const char *load_command; /* what the AOF is rewritten with */
    uint8_t magic[8];         /* at the start of what it takes */
    void (*free)(void *value);
    RedisModuleType *type;
    atomic_uint_fast64_t count; /* keys; other threads free them, too */
};

extern struct family bloom_family, cuckoo_family, exposure_family;

/* Make its data type; REDISMODULE_ERR: the log says so. */
static inline int family_register(RedisModuleCtx *ctx, struct family *family,
                                  const char *type, int encoding,
                                  RedisModuleTypeMethods *methods)
{
    methods->version = REDISMODULE_TYPE_METHOD_VERSION;
    methods->free = family->free;
    family->type = RedisModule_CreateDataType(ctx, type, encoding, methods);
    if (family->type) return REDISMODULE_OK;
    RedisModule_Log(ctx, "warning", "seen: no data type for %s keys",
                    family->name);
    return REDISMODULE_ERR;
}

#endif
