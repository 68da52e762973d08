/* exposure.c - see exposure.h. */
#include "exposure.h"

#include "bytes.h"
#include "memory.h"
#include "policy_data.h"
#include "secret.h"

#include <string.h>

#define VERSION  1
#define ENCODING 2 /* of the data type: record and policy */
#define RECORD   1 /* the one before: the record alone */
#define POLICY   18

static void free_value(void *value)
{
    exposure_free(value);
}

struct family exposure_family = {
    .name = "SEEN",
    .load_command = "SEEN.IMPORT",
    .magic = {0x89, 'S', 'E', 'E', 'N', 'X', 'P', 0x1a},
    .free = free_value};

/* ---- Life --------------------------------------------------------------- */

static void put_policy(const seen_policy *p, uint8_t to[POLICY])
{
    put_le(to, p->items, 3);
    put_le(to + 3, p->generations, 1);
    put_le(to + 4, p->ttl_ms, 6);
    put_double(to + 10, p->fpp);
}

static seen_policy get_policy(const uint8_t from[POLICY])
{
    return (seen_policy){.items = (uint32_t)get_le(from, 3),
                         .generations = (uint32_t)get_le(from + 3, 1),
                         .ttl_ms = get_le(from + 4, 6),
                         .fpp = get_double(from + 10)};
}

/* From outside: every number is there, and in its range. */
static bool policy_whole(const seen_policy *p)
{
    return p->items && p->generations && p->fpp > 0 && p->ttl_ms &&
           seen_policy_check(p, NULL) == SEEN_OK;
}

struct exposure *exposure_new(seen_record record, const seen_policy *own)
{
    if (record.len > INT32_MAX) return NULL;
    struct exposure *e =
        memory_take(sizeof *e + record.len + (own ? POLICY : 0));
    if (!e) return NULL;
    e->own = own != NULL;
    e->len = (uint32_t)record.len & INT32_MAX;
    memcpy(e->record, record.data, record.len);
    if (own) put_policy(own, e->record + record.len);
    exposure_family.count++;
    return e;
}

void exposure_free(struct exposure *e)
{
    if (!e) return;
    exposure_family.count--;
    memory_give_back(e);
}

bool exposure_own(const struct exposure *e, seen_policy *own)
{
    if (!e || !e->own) return false;
    *own = get_policy(e->record + e->len);
    return true;
}

seen_status exposure_check(seen_record record)
{
    const char *problem;
    seen_exposure_info info = {.size = sizeof info};
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
                      .secret = exposure_secret};
    if (!known && seen_new(&f, &spec, NULL) == SEEN_OK) {
        id = seen_hash_key(f, "seen: which secret", 18).lo;
        known = true;
        seen_free(f);
    }
    return id;
}

void envelope_write(const seen_policy *policy, bool own, uint8_t to[ENVELOPE])
{
    memset(to, 0, ENVELOPE);
    memcpy(to, exposure_family.magic, 8);
    put_le(to + 8, VERSION, 4);
    put_le(to + 12, policy->items, 4);
    put_le(to + 16, policy->generations, 4);
    put_le(to + 20, own, 4);
    put_double(to + 24, policy->fpp);
    put_le(to + 32, policy->ttl_ms, 8);
    put_le(to + 40, secret_id(), 8);
}

seen_status envelope_read(const uint8_t *bytes, size_t len, seen_record *record,
                          seen_policy *policy, bool *own)
{
    if (len < ENVELOPE || memcmp(bytes, exposure_family.magic, 8) != 0)
        return SEEN_CORRUPT;
    if (get_le(bytes + 8, 4) > VERSION) return SEEN_NEWER;
    *policy = (seen_policy){.items = (uint32_t)get_le(bytes + 12, 4),
                            .generations = (uint32_t)get_le(bytes + 16, 4),
                            .fpp = get_double(bytes + 24),
                            .ttl_ms = get_le(bytes + 32, 8)};
    *own = get_le(bytes + 20, 4) == 1;
    if (get_le(bytes + 8, 4) != VERSION || get_le(bytes + 20, 4) > 1 ||
        !policy_whole(policy))
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
    RedisModule_SaveStringBuffer(io, (const char *)e->record + e->len,
                                 e->own ? POLICY : 0);
}

static void *rdb_load(RedisModuleIO *io, int encoding)
{
    size_t len = 0, own_len = 0;
    struct exposure *e = NULL;
    seen_status status = SEEN_NEWER;
    seen_policy policy;
    char *bytes = NULL, *own = NULL;
    if (encoding == ENCODING || encoding == RECORD) {
        bytes = RedisModule_LoadStringBuffer(io, &len);
        if (bytes && encoding == ENCODING)
            own = RedisModule_LoadStringBuffer(io, &own_len);
        status = SEEN_CORRUPT;
    }
    if (own && own_len == POLICY) policy = get_policy((const uint8_t *)own);
    if (bytes && !RedisModule_IsIOError(io) &&
        (own_len == 0 || (own_len == POLICY && policy_whole(&policy)))) {
        seen_record record = {bytes, len};
        status = exposure_check(record);
        if (status == SEEN_OK)
            e = exposure_new(record, own_len ? &policy : NULL);
        if (status == SEEN_OK && !e) status = SEEN_NOMEM;
    }
    if (bytes) RedisModule_Free(bytes);
    if (own) RedisModule_Free(own);
    if (status == SEEN_MISMATCH)
        RedisModule_LogIOError(io, "warning",
                               "seen: an exposure set of another secret, or of "
                               "none: is secret-file the one it was written "
                               "with?");
    else if (status != SEEN_OK)
        RedisModule_LogIOError(io, "warning",
                               "seen: an exposure set cannot be loaded: %s",
                               seen_strerror(status));
    return e;
}

static void aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *value)
{
    const struct exposure *e = value;
    policy_aof_rewrite(io);
    seen_policy policy = policy_at(0)->policy; /* the default */
    bool own = exposure_own(e, &policy);
    uint8_t *bytes = RedisModule_Alloc(ENVELOPE + (size_t)e->len);
    envelope_write(&policy, own, bytes);
    memcpy(bytes + ENVELOPE, e->record, e->len);
    RedisModule_EmitAOF(io, exposure_family.load_command, "sbc", key, bytes,
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
    RedisModule_DigestAddStringBuffer(d, (const char *)e->record,
                                      e->len + (e->own ? POLICY : 0));
    RedisModule_DigestEndSequence(d);
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
    seen_policy own;
    return exposure_new(exposure_record(value),
                        exposure_own(value, &own) ? &own : NULL);
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
    RedisModuleTypeMethods methods = {.rdb_load = rdb_load,
                                      .rdb_save = rdb_save,
                                      .aof_rewrite = aof_rewrite,
                                      .mem_usage = mem_usage,
                                      .digest = digest,
                                      .aux_load = policy_aux_load,
                                      .aux_save = policy_aux_save,
                                      .aux_save2 = policy_aux_save2,
                                      .aux_save_triggers =
                                          REDISMODULE_AUX_BEFORE_RDB,
                                      .free_effort = free_effort,
                                      .copy = copy_value,
                                      .defrag = defrag};
    return family_register(ctx, &exposure_family, "seen-xp-1", ENCODING,
                           &methods);
}
