/* memory.c - see memory.h. */
#include "memory.h"

#include <stdatomic.h>

uint64_t memory_limit = (uint64_t)512 << 20;

static atomic_uint_fast64_t in_use;
static bool limited;

bool memory_was_limit(void)
{
    return limited;
}

uint64_t memory_in_use(void)
{
    return in_use;
}

void *try_alloc(size_t size)
{
    limited = false;
    return RedisModule_TryAlloc ? RedisModule_TryAlloc(size)
                                : RedisModule_Alloc(size);
}

static bool over_limit(const struct memory *m, size_t size)
{
    if (size <= memory_limit && m->bytes <= memory_limit - size) return false;
    return !(RedisModule_GetContextFlags(NULL) &
             (REDISMODULE_CTX_FLAGS_SLAVE | REDISMODULE_CTX_FLAGS_LOADING));
}

static void *take(void *ctx, size_t size)
{
    struct memory *m = ctx;
    if (over_limit(m, size)) {
        limited = true;
        return NULL;
    }
    void *at = try_alloc(size);
    if (!at) return NULL;
    size_t given = RedisModule_MallocSize(at);
    m->bytes += given;
    in_use += given;
    return at;
}

static void give_back(void *ctx, void *at, size_t size)
{
    struct memory *m = ctx;
    size_t given = RedisModule_MallocSize(at);
    (void)size;
    m->bytes -= given;
    in_use -= given;
    RedisModule_Free(at);
}

void *memory_take(size_t size)
{
    struct memory alone = {.bytes = 0};
    return take(&alone, size);
}

void memory_give_back(void *at)
{
    struct memory alone = {.bytes = 0};
    give_back(&alone, at, 0);
}

void memory_init(struct memory *m)
{
    *m = (struct memory){.as = {take, give_back, m}};
}
