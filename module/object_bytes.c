/* object_bytes.c - objects to bytes and back: object.h has the layout. */
#include "object.h"

#include "bytes.h"

#include <string.h>

#define VERSION    2
#define HEADER     96
#define HEAD       256 /* of a filter: docs/FORMAT.md */
#define SUM_AT     88  /* in the header */
#define FLAG_FIXED 1u
#define FLAG_KEYED 2u
#define FLAG_ALIEN 4u

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
                 const seen_info *info, const seen_plan *plan)
{
    bool keyed = info->flags & SEEN_KEYED;
    if (keyed != p->keyed || info->secret_apart != p->keyed) return false;
    if (p->foreign)
        return plan->kind == SEEN_FOREIGN &&
               (plan->width > 0) == (family == &cuckoo_family);
    if (family == &cuckoo_family)
        return plan->kind == SEEN_CUCKOO && plan->items == p->capacity;
    if (p->window_ms)
        return plan->kind == SEEN_WINDOW && plan->window_ms == p->window_ms &&
               plan->generations == p->generations;
    if (p->generations) return false;
    return plan->kind == (p->fixed ? SEEN_BLOCKED : SEEN_SCALABLE) &&
           plan->items == p->capacity;
}

/* All filters of a chain are like its first, whose plan is *first. */
static seen_status read_filter(struct object *o, const uint8_t *bytes,
                               size_t len, seen_plan *first)
{
    seen_info info = {.size = sizeof info};
    seen_plan plan = {.size = sizeof plan};
    seen_status status = seen_look(bytes, len, &info, &plan, NULL);
    if (status != SEEN_OK) return status;
    if (o->n == 0) *first = plan;
    if (!fits(o->family, &o->params, &info, &plan) ||
        plan.bits != first->bits || plan.width != first->width)
        return SEEN_CORRUPT;
    status = seen_load(&o->filter[o->n], bytes, len,
                       o->params.keyed ? o->params.secret : NULL, &o->memory.as,
                       NULL);
    if (status != SEEN_OK) return status;
    o->n++;
    object_note_foreign(o);
    return SEEN_OK;
}

seen_status object_read(struct family *family, const uint8_t *bytes, size_t len,
                        struct object **out)
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
    uint64_t most = family == &bloom_family || params.foreign ? 1 : FILTERS_MAX;
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
