/* object.c - see object.h. */
#include "object.h"

#include "arguments.h"
#include "bytes.h"
#include "chunks.h"
#include "commands.h"
#include "policy_data.h"
#include "reply.h"
#include "secret.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define VERSION    2
#define HEADER     96
#define HEAD       256 /* of a filter: docs/FORMAT.md */
#define SUM_AT     88  /* in the header */
#define FLAG_FIXED 1u
#define FLAG_KEYED 2u
#define FLAG_ALIEN 4u

/* Of the data types. 1: an unsigned (chunks.h), a string; still read. 2: that
 * unsigned, the length of the bytes, and these as strings of SAVED_PIECE: saving a
 * large filter takes no copy of it. */
#define ENCODING 2

struct family bloom_family = {
    .name = "BF",
    .load_command = "BF.LOADCHUNK",
    .magic = {0x89, 'S', 'E', 'E', 'N', 'B', 'F', 0x1a}};

struct family cuckoo_family = {
    .name = "CF",
    .load_command = "CF.LOADCHUNK",
    .magic = {0x89, 'S', 'E', 'E', 'N', 'C', 'F', 0x1a}};

static atomic_uint_fast64_t bloom_count, cuckoo_count;

static atomic_uint_fast64_t *count_of(const struct family *family)
{
    return family == &bloom_family ? &bloom_count : &cuckoo_count;
}

uint64_t object_count(const struct family *family)
{
    return *count_of(family);
}

/* ---- Life --------------------------------------------------------------- */

struct object *object_new(const struct family *family,
                          const struct params *params)
{
    struct object *o = try_alloc(sizeof *o);
    if (!o) return NULL;
    memset(o, 0, sizeof *o);
    o->family = family;
    o->params = *params;
    memory_init(&o->memory);
    ++*count_of(family);
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
    --*count_of(o->family);
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
    if (o->n == MOST_FILTERS) return SEEN_FULL;
    seen_status status = seen_copy(next, o->filter[0], &o->memory.as);
    if (status != SEEN_OK) return status;
    seen_clear(*next);
    o->n++;
    return SEEN_OK;
}

struct object *object_make(RedisModuleCtx *ctx, const struct family *family,
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

/* ---- Bytes out ---------------------------------------------------------- */

static uint32_t save_flags(const struct object *o)
{
    return o->params.keyed ? SEEN_SECRET_APART : 0;
}

static size_t filter_size(const struct object *o, uint32_t i)
{
    size_t len = 0;
    seen_save(o->filter[i], save_flags(o), NULL, 0, &len);
    return len;
}

static size_t saved_size(const struct object *o)
{
    size_t size = HEADER;
    for (uint32_t i = 0; i < o->n; i++)
        size += 8 + filter_size(o, i);
    return size;
}

static uint64_t fnv1a(uint64_t hash, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

#define FNV1A_START 0xcbf29ce484222325

/* The sum of all heads: of the filters as they are, which costs a pass; false: no
 * memory. And of bytes that are there. */
static bool sum_filters(const struct object *o, uint64_t *sum)
{
    uint8_t head[HEAD];
    *sum = FNV1A_START;
    for (uint32_t i = 0; i < o->n; i++) {
        if (seen_save_range(o->filter[i], save_flags(o), 0, head, HEAD) !=
            SEEN_OK)
            return false;
        *sum = fnv1a(*sum, head, HEAD);
    }
    return true;
}

static uint64_t sum_bytes(const uint8_t *bytes, uint32_t n)
{
    uint64_t sum = FNV1A_START;
    const uint8_t *at = bytes + HEADER;
    for (; n > 0; n--) {
        sum = fnv1a(sum, at + 8, HEAD);
        at += 8 + get_le(at, 8);
    }
    return sum;
}

/* All but the sum. */
static void write_header(const struct object *o, size_t len, uint8_t *to)
{
    const struct params *p = &o->params;
    memset(to, 0, HEADER);
    memcpy(to, o->family->magic, 8);
    put_le(to + 8, VERSION, 4);
    put_le(to + 12,
           (p->fixed ? FLAG_FIXED : 0) | (p->keyed ? FLAG_KEYED : 0) |
               (p->foreign ? FLAG_ALIEN : 0),
           4);
    put_le(to + 16, len, 8);
    put_le(to + 24, p->capacity, 8);
    put_double(to + 32, p->error);
    put_le(to + 40, p->window_ms, 8);
    put_le(to + 48, p->generations, 4);
    put_le(to + 52, p->expansion, 4);
    memcpy(to + 56, p->secret, 16);
    put_le(to + 72, o->deleted, 8);
    put_le(to + 80, p->bucket_size, 2);
    put_le(to + 82, p->iterations, 2);
    put_le(to + 84, o->n, 4);
}

/* Bytes from..end are wanted; those before `at` have passed by. */
struct wanted {
    size_t from, end, at;
    uint8_t *to;
};

/* The next `len` bytes pass by: how many of them are wanted, `*from` which of them
 * on, and where they go. */
static size_t pass(struct wanted *w, size_t len, size_t *from, uint8_t **to)
{
    size_t start = w->at, end = start + len;
    size_t first = w->from > start ? w->from : start;
    size_t last = w->end < end ? w->end : end;
    w->at = end;
    if (first >= last) return 0;
    *from = first - start;
    *to = w->to + (first - w->from);
    return last - first;
}

static void pass_bytes(struct wanted *w, const uint8_t *bytes, size_t len)
{
    size_t from;
    uint8_t *to;
    size_t n = pass(w, len, &from, &to);
    if (n) memcpy(to, bytes + from, n);
}

static bool pass_filter(struct wanted *w, const struct object *o, uint32_t i)
{
    uint8_t size[8], *to;
    size_t len = filter_size(o, i), from;
    put_le(size, len, 8);
    pass_bytes(w, size, 8);
    size_t n = pass(w, len, &from, &to);
    return n == 0 ||
           seen_save_range(o->filter[i], save_flags(o), from, to, n) == SEEN_OK;
}

/* Bytes at..at + n of all `len`; false: no memory. */
static bool save_range(const struct object *o, size_t len, uint64_t sum,
                       size_t at, size_t n, uint8_t *to)
{
    struct wanted w = {.from = at, .end = at + n, .to = to};
    uint8_t header[HEADER];
    bool done = true;
    write_header(o, len, header);
    put_le(header + SUM_AT, sum, 8);
    pass_bytes(&w, header, HEADER);
    for (uint32_t i = 0; i < o->n && done; i++)
        done = pass_filter(&w, o, i);
    return done;
}

void saving_begin(struct saving *s, const struct object *o)
{
    *s = (struct saving){.o = o};
    s->len = o->n ? saved_size(o) : o->pending_len;
    if (!o->n) s->whole = o->pending;
}

static bool in_pieces(const struct saving *s)
{
    return !s->o->params.foreign && s->len > SAVED_PIECE;
}

static const uint8_t *make_piece(struct saving *s, size_t at, size_t n)
{
    uint64_t sum = 0;
    if (at < HEADER && !sum_filters(s->o, &sum)) return NULL;
    return save_range(s->o, s->len, sum, at, n, s->mine) ? s->mine : NULL;
}

const uint8_t *saving_piece(struct saving *s, size_t at, size_t n)
{
    if (s->whole) return s->whole + at;
    if (!s->mine) s->mine = try_alloc(in_pieces(s) ? SAVED_PIECE : s->len);
    if (!s->mine) return NULL;
    if (in_pieces(s)) return make_piece(s, at, n);
    if (!save_range(s->o, s->len, 0, 0, s->len, s->mine)) return NULL;
    put_le(s->mine + SUM_AT, sum_bytes(s->mine, s->o->n), 8);
    s->whole = s->mine;
    return s->whole + at;
}

void saving_end(struct saving *s)
{
    RedisModule_Free(s->mine);
    s->mine = NULL;
}

/* ---- Bytes in ----------------------------------------------------------- */

uint64_t object_promised(const struct family *family, const uint8_t *bytes,
                         size_t len)
{
    if (len < HEADER || memcmp(bytes, family->magic, 8) != 0) return 0;
    return get_le(bytes + 16, 8);
}

/* Nothing was asked for: the filter is what its bytes say. */
static bool foreign_right(const struct params *p)
{
    return !p->fixed && !p->keyed && p->error == 0 && p->window_ms == 0 &&
           p->generations == 0;
}

static bool own_right(const struct params *p)
{
    return p->error > 0 && p->error < 1 && p->capacity > 0 &&
           p->expansion <= 32768;
}

static seen_status read_params(const uint8_t *from, struct params *p)
{
    uint32_t flags = (uint32_t)get_le(from + 12, 4);
    *p = (struct params){.capacity = get_le(from + 24, 8),
                         .error = get_double(from + 32),
                         .window_ms = get_le(from + 40, 8),
                         .generations = (uint32_t)get_le(from + 48, 4),
                         .expansion = (uint32_t)get_le(from + 52, 4),
                         .bucket_size = (uint16_t)get_le(from + 80, 2),
                         .iterations = (uint16_t)get_le(from + 82, 2),
                         .fixed = flags & FLAG_FIXED,
                         .keyed = flags & FLAG_KEYED,
                         .foreign = flags & FLAG_ALIEN};
    memcpy(p->secret, from + 56, 16);
    static const uint8_t none[16];
    bool right = !(flags & ~(FLAG_FIXED | FLAG_KEYED | FLAG_ALIEN)) &&
                 (p->foreign ? foreign_right(p) : own_right(p)) &&
                 (p->keyed || !memcmp(p->secret, none, 16));
    return right ? SEEN_OK : SEEN_CORRUPT;
}

/* Is this filter one that such parameters make? */
static bool fits(const struct family *family, const struct params *p,
                 const seen_facts *facts)
{
    if (facts->keyed != p->keyed || facts->secret_apart != p->keyed)
        return false;
    if (p->foreign)
        return facts->plan.kind == SEEN_FOREIGN &&
               (facts->plan.width > 0) == (family == &cuckoo_family);
    if (family == &cuckoo_family)
        return facts->plan.kind == SEEN_CUCKOO &&
               facts->plan.items == p->capacity;
    if (p->window_ms)
        return facts->plan.kind == SEEN_WINDOW &&
               facts->plan.window_ms == p->window_ms &&
               facts->plan.generations == p->generations;
    if (p->generations) return false;
    return facts->plan.kind == (p->fixed ? SEEN_BLOCKED : SEEN_SCALABLE) &&
           facts->plan.items == p->capacity;
}

static void note_foreign(struct object *o)
{
    seen_size size = {.size = sizeof size};
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_size_of(o->filter[0], &size);
    o->refreshes = size.dialect && seen_dialect_named(size.dialect, &facts) &&
                   facts.can & SEEN_REFRESHES;
}

/* All filters of a chain are like its first, whose plan is *first. */
static seen_status read_filter(struct object *o, const uint8_t *bytes,
                               size_t len, seen_plan *first)
{
    seen_facts facts = {.size = sizeof facts};
    seen_status status = seen_look(bytes, len, &facts, NULL);
    if (status != SEEN_OK) return status;
    if (o->n == 0) *first = facts.plan;
    if (!fits(o->family, &o->params, &facts) ||
        facts.plan.bits != first->bits || facts.plan.width != first->width)
        return SEEN_CORRUPT;
    status = seen_load(&o->filter[o->n], bytes, len,
                       o->params.keyed ? o->params.secret : NULL, &o->memory.as,
                       NULL);
    if (status != SEEN_OK) return status;
    o->n++;
    note_foreign(o);
    return SEEN_OK;
}

seen_status object_read(const struct family *family, const uint8_t *bytes,
                        size_t len, struct object **out)
{
    /* 1. The header, before anything is allocated. */
    struct params params;
    if (len < HEADER || object_promised(family, bytes, len) != len)
        return SEEN_CORRUPT;
    uint32_t version = (uint32_t)get_le(bytes + 8, 4);
    if (version > VERSION) return SEEN_NEWER;
    if (version < 1) return SEEN_CORRUPT;
    uint64_t n = get_le(bytes + 84, 4);
    seen_status status = read_params(bytes, &params);
    if (status != SEEN_OK) return status;
    uint64_t most =
        family == &bloom_family || params.foreign ? 1 : MOST_FILTERS;
    if (n < 1 || n > most) return SEEN_CORRUPT;

    /* 2. The filters, each as long as it says, and nothing behind them. */
    struct object *o = object_new(family, &params);
    if (!o) return SEEN_NOMEM;
    o->deleted = get_le(bytes + 72, 8);
    size_t at = HEADER;
    seen_plan first = {.size = sizeof first};
    while (status == SEEN_OK && o->n < n) {
        if (len - at < 8 || get_le(bytes + at, 8) > len - at - 8) {
            status = SEEN_CORRUPT;
            break;
        }
        size_t size = (size_t)get_le(bytes + at, 8);
        status = read_filter(o, bytes + at + 8, size, &first);
        at += 8 + size;
    }
    if (status == SEEN_OK && at != len) status = SEEN_CORRUPT;
    if (status == SEEN_OK &&
        get_le(bytes + SUM_AT, 8) != (version < 2 ? 0 : sum_bytes(bytes, o->n)))
        status = SEEN_CORRUPT;
    if (status != SEEN_OK) {
        object_free(o);
        return status;
    }
    *out = o;
    return SEEN_OK;
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

seen_status object_import(const struct family *family, const char *dialect,
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
    note_foreign(o);
    if (family == &cuckoo_family) {
        o->params = cuckoo_params(bytes.data);
        o->deleted = get_le((const uint8_t *)bytes.data + 16, 8);
    }
    *out = o;
    return SEEN_OK;
}

/* ---- The data type ------------------------------------------------------ */

static const struct family *const families[] = {&bloom_family, &cuckoo_family};

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
    uint64_t all = one ? MOST_BYTES : RedisModule_LoadUnsigned(io);
    seen_status status;
    do
        status =
            RedisModule_IsIOError(io) ? SEEN_CORRUPT : load_piece(io, all, a);
    while (status == SEEN_OK && !one && a->len < all);
    return RedisModule_IsIOError(io) ? SEEN_CORRUPT : status;
}

static void *rdb_load(const struct family *family, RedisModuleIO *io,
                      int encoding)
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

static void free_value(void *value)
{
    object_free(value);
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
    RedisModuleTypeMethods methods = {.version =
                                          REDISMODULE_TYPE_METHOD_VERSION,
                                      .rdb_load = bloom_rdb_load,
                                      .rdb_save = rdb_save,
                                      .aof_rewrite = aof_rewrite,
                                      .mem_usage = mem_usage,
                                      .digest = digest,
                                      .free = free_value,
                                      .free_effort = free_effort,
                                      .copy = copy_value};
    bloom_family.type =
        RedisModule_CreateDataType(ctx, "seen-bf-1", ENCODING, &methods);
    methods.rdb_load = cuckoo_rdb_load;
    cuckoo_family.type =
        RedisModule_CreateDataType(ctx, "seen-cf-1", ENCODING, &methods);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!families[i]->type) {
            RedisModule_Log(ctx, "warning", "seen: no data type for %s keys",
                            families[i]->name);
            return REDISMODULE_ERR;
        }
    return REDISMODULE_OK;
}

/* ---- Commands that all families have ------------------------------------ */

static struct object *refuse(RedisModuleCtx *ctx, RedisModuleKey *key,
                             const char *text, bool *refused)
{
    RedisModule_CloseKey(key);
    RedisModule_ReplyWithError(ctx, text);
    *refused = true;
    return NULL;
}

struct object *object_open_any(RedisModuleCtx *ctx, const struct family *family,
                               RedisModuleString *name, int mode,
                               RedisModuleKey **key, bool *refused)
{
    *refused = false;
    *key = RedisModule_OpenKey(ctx, name, mode);
    if (!*key) return NULL;
    if (RedisModule_ModuleTypeGetType(*key) == family->type)
        return RedisModule_ModuleTypeGetValue(*key);
    if (RedisModule_KeyType(*key) == REDISMODULE_KEYTYPE_EMPTY) return NULL;
    return refuse(ctx, *key, REDISMODULE_ERRORMSG_WRONGTYPE, refused);
}

struct object *object_open(RedisModuleCtx *ctx, const struct family *family,
                           RedisModuleString *name, int mode,
                           RedisModuleKey **key, bool *refused)
{
    struct object *o = object_open_any(ctx, family, name, mode, key, refused);
    if (!o || o->n) return o;
    return refuse(ctx, *key,
                  "ERR the filter is not complete yet: LOADCHUNK has not "
                  "brought its last bytes",
                  refused);
}

void item_keys(RedisModuleString **items, size_t n, seen_key *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = key_of(items[i]);
}

void ask_foreign(const struct object *o, RedisModuleString **items, size_t n,
                 bool *answers)
{
    seen_key keys[PIECE];
    item_keys(items, n, keys);
    seen_maybe_many(o->filter[0], keys, n, answers);
}

void count_answers(const bool *answers, size_t n)
{
    statistics.checks += n;
    for (size_t i = 0; i < n; i++)
        statistics.hits += answers[i];
}

void hash_items(const seen_filter *f, RedisModuleString **items, size_t n,
                seen_hash *hashes)
{
    seen_key keys[PIECE];
    item_keys(items, n, keys);
    seen_hash_many(f, keys, n, hashes);
}

void object_changed(RedisModuleCtx *ctx, RedisModuleString *name,
                    const char *event)
{
    RedisModule_SignalModifiedKey(ctx, name);
    RedisModule_NotifyKeyspaceEvent(ctx, REDISMODULE_NOTIFY_MODULE, event,
                                    name);
}

int object_exists(RedisModuleCtx *ctx, const struct family *family,
                  RedisModuleString **argv, int argc, bool many,
                  void (*ask)(const struct object *o, RedisModuleString **items,
                              size_t n, bool *answers))
{
    RedisModuleKey *key;
    bool refused, answers[PIECE] = {false};
    if (many ? argc < 3 : argc != 3) return RedisModule_WrongArity(ctx);
    struct object *o =
        object_open(ctx, family, argv[1], REDISMODULE_READ, &key, &refused);
    if (refused) return REDISMODULE_OK;
    if (many) RedisModule_ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i += PIECE) {
        size_t n = argc - i < PIECE ? (size_t)(argc - i) : PIECE;
        if (o) ask(o, argv + i, n, answers);
        count_answers(answers, n);
        for (size_t j = 0; j < n; j++)
            reply_bool(ctx, answers[j]);
    }
    if (key) RedisModule_CloseKey(key);
    return REDISMODULE_OK;
}
