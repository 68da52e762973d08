/* exposure.c - see exposure.h. */
#include "exposure.h"

#include "bytes.h"
#include "memory.h"
#include "secret.h"

#include <stdatomic.h>
#include <string.h>

#define VERSION  1
#define ENCODING 1 /* of the data type: one string, the record */

RedisModuleType *exposure_type;
static atomic_uint_fast64_t exposures;

static const uint8_t magic[8] = {0x89, 'S', 'E', 'E', 'N', 'X', 'P', 0x1a};

uint64_t exposure_count(void)
{
    return exposures;
}

/* ---- Life --------------------------------------------------------------- */

struct exposure *exposure_new(seen_record record)
{
    if (record.len > UINT32_MAX) return NULL;
    struct exposure *e = memory_take(sizeof *e + record.len);
    if (!e) return NULL;
    e->len = (uint32_t)record.len;
    memcpy(e->record, record.data, record.len);
    exposures++;
    return e;
}

void exposure_free(struct exposure *e)
{
    if (!e) return;
    exposures--;
    memory_give_back(e);
}

seen_status exposure_check(seen_record record)
{
    const char *problem;
    seen_exposure_info info;
    struct policy *p = policy_find("default", 7, &problem);
    if (!p) return SEEN_NOMEM;
    if (record.len == 0) return SEEN_CORRUPT;
    seen_status status = seen_exposure_validate(record);
    if (status != SEEN_OK) return status;
    return seen_exposure_info_of(p->x, record, 0, &info);
}

/* ---- Envelopes ---------------------------------------------------------- */

/* Through a filter that has the secret: hashing is a filter's affair. */
static uint64_t secret_id(void)
{
    static uint64_t id;
    static bool known;
    seen_filter *f;
    seen_spec spec = {.items = 1,
                      .fpp = 0.5,
                      .kind = SEEN_BLOCKED,
                      .flags = SEEN_KEYED,
                      .key = exposure_secret};
    if (!known && seen_new(&f, &spec) == SEEN_OK) {
        id = seen_hash_key(f, "seen: which secret", 18).lo;
        known = true;
        seen_free(f);
    }
    return id;
}

void envelope_write(const seen_policy *policy, uint8_t to[ENVELOPE])
{
    memset(to, 0, ENVELOPE);
    memcpy(to, magic, 8);
    put_le(to + 8, VERSION, 4);
    put_le(to + 12, policy->items, 4);
    put_le(to + 16, policy->generations, 4);
    put_double(to + 24, policy->fpp);
    put_le(to + 32, policy->ttl, 8);
    put_le(to + 40, secret_id(), 8);
}

seen_status envelope_read(const uint8_t *bytes, size_t len, seen_record *record)
{
    if (len < ENVELOPE || memcmp(bytes, magic, 8) != 0) return SEEN_CORRUPT;
    if (get_le(bytes + 8, 4) > VERSION) return SEEN_NEWER;
    seen_policy policy = {.items = (uint32_t)get_le(bytes + 12, 4),
                          .generations = (uint32_t)get_le(bytes + 16, 4),
                          .fpp = get_double(bytes + 24),
                          .ttl = get_le(bytes + 32, 8)};
    if (get_le(bytes + 8, 4) != VERSION || get_le(bytes + 20, 4) != 0 ||
        !policy.items || !policy.generations || !(policy.fpp > 0) ||
        !policy.ttl || seen_policy_problem(&policy))
        return SEEN_CORRUPT;
    if (get_le(bytes + 40, 8) != secret_id()) return SEEN_MISMATCH;
    *record = (seen_record){bytes + ENVELOPE, len - ENVELOPE};
    return exposure_check(*record);
}

/* ---- The data type ------------------------------------------------------ */

static void rdb_save(RedisModuleIO *io, void *value)
{
    const struct exposure *e = value;
    RedisModule_SaveStringBuffer(io, (const char *)e->record, e->len);
}

static void *rdb_load(RedisModuleIO *io, int encoding)
{
    size_t len = 0;
    struct exposure *e = NULL;
    seen_status status = SEEN_NEWER;
    char *bytes = NULL;
    if (encoding == ENCODING) {
        bytes = RedisModule_LoadStringBuffer(io, &len);
        status = SEEN_CORRUPT;
    }
    if (bytes && !RedisModule_IsIOError(io)) {
        seen_record record = {bytes, len};
        status = exposure_check(record);
        if (status == SEEN_OK) e = exposure_new(record);
        if (status == SEEN_OK && !e) status = SEEN_NOMEM;
    }
    if (bytes) RedisModule_Free(bytes);
    if (status == SEEN_MISMATCH)
        RedisModule_LogIOError(io, "warning",
                               "seen: an exposure set of another secret: is "
                               "secret-file the one it was written with?");
    else if (status != SEEN_OK)
        RedisModule_LogIOError(io, "warning",
                               "seen: an exposure set cannot be loaded: %s",
                               seen_strerror(status));
    return e;
}

static void aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *value)
{
    const struct exposure *e = value;
    const char *problem;
    const struct policy *p = policy_find("default", 7, &problem);
    uint8_t *bytes = RedisModule_Alloc(ENVELOPE + (size_t)e->len);
    envelope_write(&p->policy, bytes);
    memcpy(bytes + ENVELOPE, e->record, e->len);
    RedisModule_EmitAOF(io, "SEEN.IMPORT", "sbc", key, bytes,
                        ENVELOPE + (size_t)e->len, "REPLACE");
    RedisModule_Free(bytes);
}

static size_t mem_usage(const void *value)
{
    return RedisModule_MallocSize((void *)(uintptr_t)value);
}

static void digest(RedisModuleDigest *d, void *value)
{
    const struct exposure *e = value;
    RedisModule_DigestAddStringBuffer(d, (const char *)e->record, e->len);
    RedisModule_DigestEndSequence(d);
}

static void free_value(void *value)
{
    exposure_free(value);
}

static size_t free_effort(RedisModuleString *key, const void *value)
{
    (void)key;
    (void)value;
    return 1;
}

static void *copy_value(RedisModuleString *from, RedisModuleString *to,
                        const void *value)
{
    (void)from;
    (void)to;
    return exposure_new(exposure_record(value));
}

static int defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key,
                  void **value)
{
    void *moved =
        RedisModule_DefragAlloc ? RedisModule_DefragAlloc(ctx, *value) : NULL;
    (void)key;
    if (moved) *value = moved;
    return 0;
}

int exposure_types(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods methods = {.version =
                                          REDISMODULE_TYPE_METHOD_VERSION,
                                      .rdb_load = rdb_load,
                                      .rdb_save = rdb_save,
                                      .aof_rewrite = aof_rewrite,
                                      .mem_usage = mem_usage,
                                      .digest = digest,
                                      .free = free_value,
                                      .free_effort = free_effort,
                                      .copy = copy_value,
                                      .defrag = defrag};
    exposure_type =
        RedisModule_CreateDataType(ctx, "seen-xp-1", ENCODING, &methods);
    if (exposure_type) return REDISMODULE_OK;
    RedisModule_Log(ctx, "warning", "seen: no data type for SEEN keys");
    return REDISMODULE_ERR;
}
