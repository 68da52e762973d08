/* object_type.c - BF and CF keys as data types of the server: RDB, AOF, DUMP, COPY,
 * DEBUG DIGEST, MEMORY USAGE. */
#include "chunks.h"
#include "object.h"
#include "policy_data.h"

#include <stdlib.h>
#include <string.h>

/* Of the data types. 1: an unsigned (chunks.h), a string; still read. 2: that
 * unsigned, the length of the bytes, and these as strings of SAVED_PIECE: saving a
 * large filter takes no copy of it. */
#define ENCODING 2

/* The next bytes, SAVED_PIECE of them or what is left, for files and digests, which
 * cannot fail: without memory they end as the server's own do. */
static const uint8_t *next_piece(struct saving *s, size_t at, size_t *n)
{
    *n = s->len - at < SAVED_PIECE ? s->len - at : SAVED_PIECE;
    const uint8_t *bytes = saving_piece(s, at, *n);
    if (!bytes) abort();
    return bytes;
}

static void rdb_save(RedisModuleIO *io, void *value)
{
    struct saving s;
    saving_begin(&s, value);
    RedisModule_SaveUnsigned(io, chunk_form(value));
    RedisModule_SaveUnsigned(io, s.len);
    for (size_t at = 0, n; at < s.len; at += n) {
        const uint8_t *bytes = next_piece(&s, at, &n);
        RedisModule_SaveStringBuffer(io, (const char *)bytes, n);
    }
    saving_end(&s);
}

/* What has come of a key. */
struct arrived {
    uint8_t *bytes; /* for RedisModule_Free() */
    size_t len, room;
};

/* Another piece, of `all` bytes that were promised. Memory is taken as they come, and
 * is no key's: the limit of keys is for what is made of them. */
static seen_status load_piece(RedisModuleIO *io, uint64_t all,
                              struct arrived *a)
{
    size_t n = 0;
    uint8_t *piece = (uint8_t *)RedisModule_LoadStringBuffer(io, &n);
    if (!piece || n == 0 || n > all - a->len) {
        RedisModule_Free(piece);
        return SEEN_CORRUPT;
    }
    if (a->len == 0) { /* often all there is */
        *a = (struct arrived){piece, n, n};
        return SEEN_OK;
    }
    if (n > a->room - a->len) {
        size_t room = a->len + n;
        room = all / 2 <= room ? (size_t)all : room + room / 2;
        uint8_t *more = try_alloc(room);
        if (more) memcpy(more, a->bytes, a->len);
        RedisModule_Free(a->bytes);
        a->bytes = more;
        a->room = room;
    }
    if (a->bytes) memcpy(a->bytes + a->len, piece, n);
    RedisModule_Free(piece);
    a->len += n;
    return a->bytes ? SEEN_OK : SEEN_NOMEM;
}

static seen_status load_bytes(RedisModuleIO *io, int encoding,
                              struct arrived *a)
{
    bool one = encoding == 1;
    uint64_t all = one ? BYTES_MAX : RedisModule_LoadUnsigned(io);
    seen_status status;
    do
        status =
            RedisModule_IsIOError(io) ? SEEN_CORRUPT : load_piece(io, all, a);
    while (status == SEEN_OK && !one && a->len < all);
    return RedisModule_IsIOError(io) ? SEEN_CORRUPT : status;
}

static void *rdb_load(struct family *family, RedisModuleIO *io, int encoding)
{
    if (encoding < 1 || encoding > ENCODING) {
        RedisModule_LogIOError(io, "warning",
                               "seen: a %s key of encoding %d: this module "
                               "reads 1 to %d",
                               family->name, encoding, ENCODING);
        return NULL;
    }
    struct object *o = NULL;
    struct arrived a = {0};
    uint64_t form = RedisModule_LoadUnsigned(io);
    seen_status status = load_bytes(io, encoding, &a);
    if (status == SEEN_OK)
        status = form ? chunk_read_pending(family, form, a.bytes, a.len, &o)
                      : object_read(family, a.bytes, a.len, &o);
    RedisModule_Free(a.bytes);
    if (status == SEEN_OK) return o;
    RedisModule_LogIOError(io, "warning", "seen: a %s key cannot be loaded: %s",
                           family->name, seen_strerror(status));
    return NULL;
}

static void *bloom_rdb_load(RedisModuleIO *io, int encoding)
{
    return rdb_load(&bloom_family, io, encoding);
}

static void *cuckoo_rdb_load(RedisModuleIO *io, int encoding)
{
    return rdb_load(&cuckoo_family, io, encoding);
}

/* In chunks: a command holds at most 512 MB. Bits of RedisBloom that are waited for
 * come behind their header, which is a chunk of its own. */
static void aof_rewrite(RedisModuleIO *io, RedisModuleString *key, void *value)
{
    const struct object *o = value;
    const char *command = o->family->load_command;
    size_t head = o->n ? 0 : o->pending_head;
    struct saving s;
    policy_aof_rewrite(io);
    saving_begin(&s, o);
    if (head)
        RedisModule_EmitAOF(io, command, "slb", key, (long long)1, s.whole,
                            head);
    for (size_t at = head, n; at < s.len; at += n) {
        const uint8_t *bytes = next_piece(&s, at, &n);
        RedisModule_EmitAOF(io, command, "slb", key,
                            (long long)(1 + at - head + n), bytes, n);
    }
    saving_end(&s);
}

static void digest(RedisModuleDigest *d, void *value)
{
    struct saving s;
    saving_begin(&s, value);
    for (size_t at = 0, n; at < s.len; at += n) {
        const uint8_t *bytes = next_piece(&s, at, &n);
        RedisModule_DigestAddStringBuffer(d, (const char *)bytes, n);
    }
    RedisModule_DigestEndSequence(d);
    saving_end(&s);
}

static size_t mem_usage(const void *value)
{
    return object_bytes(value);
}

/* Large blocks are many pages to give back: let another thread do it. */
static size_t free_effort(RedisModuleString *key, const void *value)
{
    const struct object *o = value;
    (void)key;
    return 1 + o->n + (size_t)(o->memory.bytes >> 16);
}

static void *copy_value(RedisModuleString *from, RedisModuleString *to,
                        const void *value)
{
    struct object *copy = NULL;
    (void)from;
    (void)to;
    return object_copy(&copy, value) == SEEN_OK ? copy : NULL;
}

int object_types(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods methods = {.rdb_load = bloom_rdb_load,
                                      .rdb_save = rdb_save,
                                      .aof_rewrite = aof_rewrite,
                                      .mem_usage = mem_usage,
                                      .digest = digest,
                                      .free_effort = free_effort,
                                      .copy = copy_value};
    if (family_register(ctx, &bloom_family, "seen-bf-1", ENCODING, &methods) !=
        REDISMODULE_OK)
        return REDISMODULE_ERR;
    methods.rdb_load = cuckoo_rdb_load;
    return family_register(ctx, &cuckoo_family, "seen-cf-1", ENCODING,
                           &methods);
}
