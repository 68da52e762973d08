/* object.c - see object.h. */
#include "object.h"

#include "bytes.h"
#include "reply.h"
#include "secret.h"

#include <string.h>

static void free_value(void *value)
{
    object_free(value);
}

struct family bloom_family = {
    .name = "BF",
    .load_command = "BF.LOADCHUNK",
    .magic = {0x89, 'S', 'E', 'E', 'N', 'B', 'F', 0x1a},
    .free = free_value};

struct family cuckoo_family = {
    .name = "CF",
    .load_command = "CF.LOADCHUNK",
    .magic = {0x89, 'S', 'E', 'E', 'N', 'C', 'F', 0x1a},
    .free = free_value};

/* ---- Life --------------------------------------------------------------- */

struct object *object_new(struct family *family, const struct params *params)
{
    struct object *o = try_alloc(sizeof *o);
    if (!o) return NULL;
    memset(o, 0, sizeof *o);
    o->family = family;
    o->params = *params;
    memory_init(&o->memory);
    family->count++;
    return o;
}

static void drop_pending(struct object *o)
{
    if (o->pending)
        o->memory.as.release(&o->memory, o->pending, o->pending_room);
    o->pending = NULL;
    o->pending_len = o->pending_room = 0; /* head stays */
}

void object_free(struct object *o)
{
    if (!o) return;
    for (uint32_t i = 0; i < o->n; i++)
        seen_free(o->filter[i]);
    drop_pending(o);
    o->family->count--;
    RedisModule_Free(o);
}

static seen_status make_first(struct object *o, const seen_spec *spec,
                              seen_error *error)
{
    seen_spec with = *spec;
    with.allocator = &o->memory.as;
    with.flags = o->params.keyed ? SEEN_KEYED : 0;
    with.secret = o->params.keyed ? o->params.secret : NULL;
    seen_status status = seen_new(&o->filter[0], &with, error);
    if (status == SEEN_OK) o->n = 1;
    return status;
}

/* Like the first one, not like what its parameters would make today. */
seen_status object_grow(struct object *o)
{
    seen_filter **next = &o->filter[o->n];
    if (o->n == FILTERS_MAX) return SEEN_FULL;
    seen_status status = seen_copy(next, o->filter[0], &o->memory.as);
    if (status != SEEN_OK) return status;
    seen_clear(*next);
    o->n++;
    return SEEN_OK;
}

struct object *object_make(RedisModuleCtx *ctx, struct family *family,
                           struct params *params, bool has_secret,
                           seen_spec (*spec_of)(const struct params *))
{
    if (params->keyed && !has_secret && !secret_random(params->secret)) {
        RedisModule_ReplyWithError(ctx, "ERR the system has no random bytes to "
                                        "make a secret of");
        return NULL;
    }
    seen_spec spec = spec_of(params);
    struct object *o = object_new(family, params);
    seen_error error;
    seen_status status = o ? make_first(o, &spec, &error) : SEEN_NOMEM;
    if (status == SEEN_OK) return o;
    object_free(o);
    if (status == SEEN_NOMEM)
        reply_status(ctx, status);
    else
        reply_error(ctx, "ERR %s", error.text);
    return NULL;
}

seen_status object_pending_room(struct object *o, size_t len, uint64_t most)
{
    if (len <= o->pending_room) return SEEN_OK;
    if (most / 2 <= len) /* half of it is there: it is meant */
        len = (size_t)most;
    else if (len < o->pending_room + o->pending_room / 2)
        len = o->pending_room + o->pending_room / 2;
    /* The limit of a key is for the new place: the old one goes. */
    uint64_t old = o->pending ? RedisModule_MallocSize(o->pending) : 0;
    o->memory.bytes -= old;
    uint8_t *more = o->memory.as.alloc(&o->memory, len);
    o->memory.bytes += old;
    if (!more) return SEEN_NOMEM;
    size_t had = o->pending_len;
    if (had) memcpy(more, o->pending, had);
    drop_pending(o);
    o->pending = more;
    o->pending_len = had;
    o->pending_room = len;
    return SEEN_OK;
}

seen_status object_copy(struct object **copy, const struct object *o)
{
    struct object *c = object_new(o->family, &o->params);
    if (!c) return SEEN_NOMEM;
    c->deleted = o->deleted;
    c->refreshes = o->refreshes;
    c->pending_head = o->pending_head;
    seen_status status = SEEN_OK;
    for (; status == SEEN_OK && c->n < o->n; c->n++) {
        status = seen_copy(&c->filter[c->n], o->filter[c->n], &c->memory.as);
        if (status != SEEN_OK) break;
    }
    if (status == SEEN_OK && o->pending_len) {
        status = object_pending_room(c, o->pending_len, o->pending_len);
        if (status == SEEN_OK) {
            memcpy(c->pending, o->pending, o->pending_len);
            c->pending_len = o->pending_len;
        }
    }
    if (status != SEEN_OK) {
        object_free(c);
        return status;
    }
    *copy = c;
    return SEEN_OK;
}

size_t object_bytes(const struct object *o)
{
    return RedisModule_MallocSize((void *)(uintptr_t)o) +
           (size_t)o->memory.bytes;
}

/* ---- Filters of other systems -------------------------------------------- */

void object_note_foreign(struct object *o)
{
    seen_info info = {.size = sizeof info};
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_info_of(o->filter[0], &info);
    o->refreshes = info.dialect && seen_dialect_named(info.dialect, &facts) &&
                   facts.can & SEEN_REFRESHES;
}

/* What CF.INFO tells of RedisBloom's cuckoo filters is in their header. */
static struct params cuckoo_params(const uint8_t *from)
{
    return (struct params){.foreign = true,
                           .capacity = get_le(from + 8, 8), /* buckets */
                           .bucket_size = (uint16_t)get_le(from + 32, 2),
                           .iterations = (uint16_t)get_le(from + 34, 2),
                           .expansion = (uint32_t)get_le(from + 36, 2)};
}

seen_status object_import(struct family *family, const char *dialect,
                          const seen_spec *spec, seen_key bytes,
                          struct object **out, seen_error *error)
{
    struct object *o = object_new(family, &(struct params){.foreign = true});
    if (!o) return SEEN_NOMEM;
    seen_spec with = *spec;
    with.allocator = &o->memory.as;
    seen_status status = seen_import(&o->filter[0], dialect, &with, bytes.data,
                                     bytes.len, error);
    if (status != SEEN_OK) {
        object_free(o);
        return status;
    }
    o->n = 1;
    object_note_foreign(o);
    if (family == &cuckoo_family) {
        o->params = cuckoo_params(bytes.data);
        o->deleted = get_le((const uint8_t *)bytes.data + 16, 8);
    }
    *out = o;
    return SEEN_OK;
}
