/* chunks.c - see chunks.h. */
#include "chunks.h"

#include "arguments.h"
#include "bytes.h"
#include "command.h"
#include "reply.h"

#include <string.h>

#define LINKS_MAX 65535 /* that the library reads */

/* ---- RedisBloom's headers ----------------------------------------------- */

/* BF: three ages of them, told apart by their length. */
static uint64_t bloom_data(const uint8_t *head, size_t len)
{
    static const struct {
        size_t start, link;
    } ages[] = {{16, 49}, {20, 49}, {20, 53}};
    uint64_t links = len < 16 ? 0 : get_le(head + 8, 4), sum = 0;
    size_t age = 0;
    if (links == 0 || links > LINKS_MAX) return 0;
    while (age < 3 && len != ages[age].start + links * ages[age].link)
        age++;
    if (age == 3) return 0;
    for (uint64_t i = 0; i < links; i++) {
        uint64_t bytes = get_le(head + ages[age].start + i * ages[age].link, 8);
        if (bytes == 0 || bytes > BYTES_MAX - sum) return 0;
        sum += bytes;
    }
    return sum;
}

/* CF: each sub-filter has `expansion` times the buckets of the one before. */
static uint64_t cuckoo_data(const uint8_t *head, size_t len)
{
    if (len != 38 && len != 46) return 0;
    uint64_t buckets = get_le(head + 8, 8), n = get_le(head + 24, 8), sum = 0;
    uint64_t slots = get_le(head + 32, 2), expansion = get_le(head + 36, 2);
    if (n == 0 || n > LINKS_MAX || slots == 0) return 0;
    for (; n > 0; n--) {
        if (buckets == 0 || buckets > BYTES_MAX ||
            buckets * slots > BYTES_MAX - sum)
            return 0;
        sum += buckets * slots;
        buckets *= expansion;
    }
    return sum;
}

/* How many bytes follow RedisBloom's header; 0: it is none. */
static uint64_t data_behind(const struct family *family, const uint8_t *head,
                            size_t len)
{
    return family == &bloom_family ? bloom_data(head, len)
                                   : cuckoo_data(head, len);
}

/* ---- Pending bytes ------------------------------------------------------ */

/* How many bytes there will be, by the first `len`, of which `head` are
 * RedisBloom's header; 0: they do not say. */
static uint64_t promised(const struct family *family, const uint8_t *bytes,
                         size_t len, size_t head)
{
    if (!head) return object_promised(family, bytes, len);
    uint64_t data = head <= len ? data_behind(family, bytes, head) : 0;
    return data ? head + data : 0;
}

uint64_t chunk_form(const struct object *o)
{
    return o->n ? 0 : o->pending_head ? o->pending_head : 1;
}

/* What has arrived so far is judged when the rest has. */
seen_status chunk_read_pending(struct family *family, uint64_t form,
                               const uint8_t *bytes, size_t len,
                               struct object **out)
{
    size_t head = form > 1 && form <= len ? (size_t)form : 0;
    if (form > 1 && !head) return SEEN_CORRUPT;
    uint64_t all = promised(family, bytes, len, head);
    if (all <= len || all > BYTES_MAX) return SEEN_CORRUPT;
    struct object *o = object_new(family, &(struct params){0});
    if (!o) return SEEN_NOMEM;
    seen_status status = object_pending_room(o, len, all);
    if (status != SEEN_OK) {
        object_free(o);
        return status;
    }
    memcpy(o->pending, bytes, len);
    o->pending_len = len;
    o->pending_head = head;
    *out = o;
    return SEEN_OK;
}

/* The object that complete bytes are of. */
static seen_status read_all(const struct object *o, struct object **complete,
                            seen_error *error)
{
    seen_key bytes = {o->pending, o->pending_len};
    if (!o->pending_head)
        return object_read(o->family, o->pending, o->pending_len, complete);
    return object_import(
        o->family, o->family == &bloom_family ? "redisbloom" : "redisbloom-cf",
        &(seen_spec){0}, bytes, complete, error);
}

/* Put a chunk at the end of what is pending. If that makes the bytes complete,
 * *complete is the object they are of. On an error nothing has changed. */
static seen_status append(struct object *o, seen_key chunk,
                          struct object **complete, seen_error *error)
{
    size_t had = o->pending_len;
    const uint8_t *start = had ? o->pending : chunk.data;
    uint64_t all =
        promised(o->family, start, had ? had : chunk.len, o->pending_head);
    if (all == 0 || all > BYTES_MAX || all - had < chunk.len)
        return SEEN_CORRUPT;
    seen_status status = object_pending_room(o, had + chunk.len, all);
    if (status != SEEN_OK) return status;
    memcpy(o->pending + had, chunk.data, chunk.len);
    o->pending_len = had + chunk.len;
    if (o->pending_len < all) return SEEN_OK;
    status = read_all(o, complete, error);
    if (status != SEEN_OK) o->pending_len = had;
    return status;
}

/* ---- LOADCHUNK ---------------------------------------------------------- */

/* Does this chunk begin a filter? RedisBloom's has iterator 1, ours the first
 * that it can have, unless RedisBloom's bits are what is waited for. */
static bool begins(const struct object *o, uint64_t iterator, size_t len)
{
    if (iterator == 1) return true;
    bool waiting = o && !o->n && o->pending_head;
    return iterator - 1 == len && !waiting;
}

/* Does it belong where the bytes so far end? */
static bool follows(const struct object *o, uint64_t iterator, size_t len)
{
    return o && !o->n && iterator - 1 >= len &&
           iterator - 1 - len == o->pending_len - o->pending_head;
}

/* The first chunk makes a key or starts one anew, the others add to it. */
static seen_status load_chunk(struct call *c, seen_key chunk, seen_error *error)
{
    struct object *o = c->value, *fresh = NULL, *complete = NULL;
    uint64_t iterator = (uint64_t)c->iterator;
    if (chunk.len == 0) return SEEN_INVALID;
    if (begins(o, iterator, chunk.len)) {
        fresh = object_new(c->family, &(struct params){0});
        if (!fresh) return SEEN_NOMEM;
        fresh->pending_head = iterator == 1 ? chunk.len : 0;
    } else if (!follows(o, iterator, chunk.len)) {
        return SEEN_INVALID;
    }
    seen_status status = append(fresh ? fresh : o, chunk, &complete, error);
    if (status == SEEN_OK && (complete || fresh))
        call_set(c, complete ? complete : fresh);
    if (status != SEEN_OK || complete) object_free(fresh);
    return status;
}

static int reply_bad(RedisModuleCtx *ctx, seen_status status, bool head,
                     const char *why)
{
    if (status == SEEN_NOMEM) return reply_status(ctx, status);
    if (status == SEEN_INVALID)
        return RedisModule_ReplyWithError(
            ctx, "ERR received bad data: chunks must come in the order of "
                 "SCANDUMP, each with the iterator that came with it");
    if (head)
        return RedisModule_ReplyWithError(
            ctx, "ERR received bad data: a chunk with iterator 1 is the header "
                 "of RedisBloom's SCANDUMP, and this is none");
    return reply_error(ctx, "ERR received bad data: %s",
                       *why ? why : seen_strerror(status));
}

static const char *read_iterator(struct call *c, long long min)
{
    return to_number(c->argv[2], min, INT64_MAX, &c->iterator)
               ? NULL
               : "ERR Second argument must be numeric";
}

const char *chunk_read_load(struct call *c)
{
    return read_iterator(c, 1);
}

int chunk_loadchunk(struct call *c)
{
    seen_error error = {0};
    seen_status status = load_chunk(c, key_of(c->argv[3]), &error);
    end_if_loading(c->ctx, c->name, status);
    if (status != SEEN_OK)
        return reply_bad(c->ctx, status, c->iterator == 1, error.text);
    RedisModule_ReplicateVerbatim(c->ctx);
    call_changed(c,
                 c->family == &bloom_family ? "bf.loadchunk" : "cf.loadchunk");
    return RedisModule_ReplyWithSimpleString(c->ctx, "OK");
}

/* ---- SCANDUMP ----------------------------------------------------------- */

const char *chunk_read_scan(struct call *c)
{
    return read_iterator(c, 0);
}

int chunk_scandump(struct call *c)
{
    struct saving s;
    saving_begin(&s, c->value);
    size_t at = c->iterator ? (size_t)c->iterator - 1 : 0;
    size_t left = at <= s.len ? s.len - at : 0;
    size_t n = left < SAVED_PIECE ? left : SAVED_PIECE;
    const uint8_t *bytes = n ? saving_piece(&s, at, n) : NULL;
    if (n && !bytes) {
        reply_status(c->ctx, SEEN_NOMEM);
    } else if (at > s.len) {
        reply_error(c->ctx,
                    "ERR iterator %lld: expected 0, or what the last "
                    "SCANDUMP of this filter gave",
                    c->iterator);
    } else {
        RedisModule_ReplyWithArray(c->ctx, 2);
        RedisModule_ReplyWithLongLong(c->ctx, n ? (long long)(1 + at + n) : 0);
        RedisModule_ReplyWithStringBuffer(c->ctx, n ? (const char *)bytes : "",
                                          n);
    }
    saving_end(&s);
    return REDISMODULE_OK;
}
