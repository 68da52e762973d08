/*
 * api/bytes.c - seen_save(), seen_load(), seen_view(): see dialect/native.c for
 * the format.
 *
 * A filter of another system is put into our container as it is: its own bytes
 * are the payload, and the state says what they are and what they do not say
 * themselves. So its reader is the one that other bytes go through, too. Where
 * they are fewer than the filter needs in memory (go-zero leaves out the zeros at
 * the end), zeros make up for it: whoever loads it takes no more memory than a few
 * times the bytes that are there.
 *
 *     offset  size  state of a foreign filter
 *     0       8     length of its bytes; zeros follow, up to a whole line
 *     8       8     bits   ┐
 *     16      8     items  ├ for dialects whose bytes do not say them
 *     24      8     fpp    │
 *     32      4     hashes ┘
 *     36      4     1: the number of items was counted, 0: it is an estimate
 *     40            name of the dialect
 */
#include "api/bytes.h"

#include "api/make.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/out.h"
#include "dialect/dialect.h"
#include "seen_allowlist.h"

#include <math.h>
#include <string.h>

/* ---- Save --------------------------------------------------------------- */

static void measure_list(const seen_filter *f, struct seen_saved *out)
{
    size_t len = 0;
    seen_listed rule;
    if (!seen_allowed(f, &rule)) return;
    seen_allowlist_save(f->allowed, NULL, 0, &len);
    out->header.listed_len = (uint32_t)len;
    out->header.listed_rule = rule;
}

/* Sorted, which takes its time. */
static seen_status save_list(const seen_filter *f, struct seen_saved *out)
{
    size_t len = out->header.listed_len;
    if (len == 0) return SEEN_OK;
    out->listed = seen_alloc_zeroed(&seen_system_memory, len);
    if (!out->listed) return SEEN_NOMEM;
    out->body.listed = out->listed;
    return seen_allowlist_save(f->allowed, out->listed, len, &len);
}

void seen_saved_free(struct seen_saved *s)
{
    seen_release(&seen_system_memory, s->listed, s->header.listed_len);
    seen_release(&seen_system_memory, s->whole, s->whole_len);
    s->listed = s->whole = NULL;
}

#define FOREIGN_STATE 40

/* Bytes of a payload: not empty, and not less than the bits take. */
static uint64_t foreign_room(const struct seen_foreign *own, uint64_t len)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < own->count; i++)
        bits += own->links[i].bytes;
    if (len < bits) len = bits;
    return len ? len : 1;
}

static void save_foreign(const seen_filter *f, struct seen_saved *out)
{
    const struct seen_foreign *own = seen_foreign_of(f);
    const struct seen_link *first = &own->links[0];
    const char *name = own->dialect->facts.name;
    size_t len = 0;
    seen_export(f, NULL, NULL, 0, &len, NULL);
    out->whole_len = foreign_room(own, len);
    out->parts[0] = (struct seen_part){NULL, out->whole_len, false};
    out->body.count = 1;

    uint8_t *state = out->state;
    memset(state, 0, FOREIGN_STATE);
    seen_put_le64(state, len);
    seen_put_le64(state + 8, own->count ? seen_link_bits(own, first) : 0);
    seen_put_le64(state + 16, first->capacity);
    seen_put_le_double(state + 24, first->fpp);
    seen_put_le32(state + 32, own->count ? seen_link_hashes(own, first) : 0);
    seen_put_le32(state + 36, own->counted);
    memcpy(state + FOREIGN_STATE, name, strlen(name));
    out->header.state_len = (uint32_t)(FOREIGN_STATE + strlen(name));
}

/* The bytes of another system, if it is one of its filters. */
static seen_status save_whole(const seen_filter *f, struct seen_saved *out)
{
    size_t len = (size_t)out->whole_len;
    if (f->plan.kind != SEEN_FOREIGN) return SEEN_OK;
    out->whole = seen_alloc_zeroed(&seen_system_memory, out->whole_len);
    if (!out->whole) return SEEN_NOMEM;
    out->parts[0].at = out->whole;
    return seen_export(f, NULL, out->whole, len, &len, NULL);
}

/* Concurrent adds count nothing on the way. */
static uint64_t estimate(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info.items;
}

/* Everything but the list, and the bytes of another system. */
static seen_status measure(const seen_filter *f, uint32_t flags,
                           struct seen_saved *out)
{
    bool keyed = f->hash->keyed;
    struct seen_native *h = &out->header;
    out->listed = out->whole = NULL;
    out->whole_len = 0;
    if (flags & SEEN_NATIVE_APART && !keyed) return SEEN_INVALID;
    *h = (struct seen_native){.plan = f->plan,
                              .flags = flags | (keyed ? SEEN_NATIVE_KEYED : 0),
                              .hash = f->hash,
                              .items = f->items,
                              .key_form = f->key_form};
    if (f->flags & SEEN_CONCURRENT) h->items = estimate(f);
    memcpy(h->secret, f->secret, sizeof h->secret);
    if (keyed) h->secret_check = seen_secret_check(f->secret);

    out->body =
        (struct seen_native_body){.state = out->state, .parts = out->parts};
    if (f->ops->save_state)
        h->state_len = (uint32_t)f->ops->save_state(f, out->state);
    if (f->plan.kind == SEEN_FOREIGN) save_foreign(f, out);
    while (f->plan.kind != SEEN_FOREIGN && out->body.count < SEEN_MAX_PARTS &&
           f->ops->part(f, out->body.count, &out->parts[out->body.count]))
        out->body.count++;
    measure_list(f, out);
    return seen_native_layout(h, &out->body) ? SEEN_OK : SEEN_INVALID;
}

seen_status seen_saved_from(const seen_filter *f, uint32_t flags,
                            struct seen_saved *out)
{
    seen_status status = measure(f, flags, out);
    if (status != SEEN_OK) return status;
    status = save_whole(f, out);
    if (status == SEEN_OK) status = save_list(f, out);
    if (status != SEEN_OK) seen_saved_free(out);
    return status;
}

static seen_status put_head(const seen_filter *f, struct seen_saved *s,
                            uint64_t from, uint8_t *to, uint64_t n)
{
    uint64_t len = s->header.payload_offset;
    seen_status status = save_list(f, s);
    if (status != SEEN_OK) return status;
    if (n == len) {
        seen_native_head(&s->header, &s->body, to);
        return SEEN_OK;
    }
    uint8_t *head = seen_alloc_zeroed(&seen_system_memory, len);
    if (!head) return SEEN_NOMEM;
    seen_native_head(&s->header, &s->body, head);
    memcpy(to, head + from, (size_t)n);
    seen_release(&seen_system_memory, head, len);
    return SEEN_OK;
}

/* Bytes `from` to `end` of the whole. The payload first, and where a part goes out
 * whole its checksums from the copy: adds may be running beside this. */
static seen_status put_range(const seen_filter *f, struct seen_saved *s,
                             uint64_t from, uint64_t end, uint8_t *to)
{
    seen_status status = save_whole(f, s);
    if (status != SEEN_OK) return status;
    uint64_t at = s->header.payload_offset;
    for (uint32_t i = 0; i < s->body.count; i++) {
        struct seen_part *part = &s->parts[i];
        uint64_t room = seen_part_room(part);
        uint64_t first = from > at ? from : at;
        uint64_t last = seen_min64(end, at + room);
        if (first < last)
            seen_native_put_part(part, first - at, to + (first - from),
                                 last - first);
        if (first == at && last == at + room)
            *part = (struct seen_part){to + (at - from), room, false};
        at += room;
    }
    uint64_t head = seen_min64(end, s->header.payload_offset);
    return from < head ? put_head(f, s, from, to, head - from) : SEEN_OK;
}

static seen_status measure_saved(const seen_filter *f, uint32_t flags,
                                 struct seen_saved *saved, uint64_t *len)
{
    if (!f || flags & ~SEEN_SECRET_APART) return SEEN_INVALID;
    seen_status status =
        measure(f, flags & SEEN_SECRET_APART ? SEEN_NATIVE_APART : 0, saved);
    if (status == SEEN_OK)
        *len = saved->header.payload_offset + saved->header.payload_len;
    return status;
}

seen_status seen_save(const seen_filter *f, uint32_t flags, void *buf,
                      size_t cap, size_t *len)
{
    struct seen_saved saved;
    uint64_t all;
    if (!len || (cap && !buf)) return SEEN_INVALID;
    seen_status status = measure_saved(f, flags, &saved, &all);
    if (status != SEEN_OK) return status;
    *len = (size_t)all;
    if (cap < all)
        status = SEEN_SHORT;
    else
        status = put_range(f, &saved, 0, all, buf);
    seen_saved_free(&saved);
    return status;
}

seen_status seen_save_range(const seen_filter *f, uint32_t flags, uint64_t from,
                            void *buf, size_t n)
{
    struct seen_saved saved;
    uint64_t all;
    if (n && !buf) return SEEN_INVALID;
    seen_status status = measure_saved(f, flags, &saved, &all);
    if (status != SEEN_OK) return status;
    if (from > all || n > all - from)
        status = SEEN_INVALID;
    else if (n > 0)
        status = put_range(f, &saved, from, from + n, buf);
    seen_saved_free(&saved);
    return status;
}

/* ---- Load --------------------------------------------------------------- */

/* Checksums are right, so this is no accident: something else wrote it. */
#define STATE_WRONG   "the state before the payload is not one that seen writes"
#define PAYLOAD_WRONG "the payload is not one that seen writes"
#define PADDING_WRONG "bytes behind the payload that are not zero"

const uint8_t seen_any_secret[16] = {0};

static seen_status choose_secret(const struct seen_native *h,
                                 const uint8_t *given, uint8_t secret[16],
                                 seen_error *e)
{
    memcpy(secret, h->secret, 16);
    if (given == seen_any_secret) return SEEN_OK;
    if (!given && h->flags & SEEN_NATIVE_APART)
        return seen_fail(
            e, SEEN_NO_SECRET, "secret",
            "secret: kept apart from this filter: expected its 16 bytes");
    if (!given) return SEEN_OK;
    if (!(h->flags & SEEN_NATIVE_KEYED))
        return seen_fail(e, SEEN_MISMATCH, "secret",
                         "secret: this filter has none: expected NULL");
    if (seen_secret_check(given) != h->secret_check)
        return seen_fail(e, SEEN_MISMATCH, "secret",
                         "secret: not the one that this filter was made with");
    memcpy(secret, given, 16);
    return SEEN_OK;
}

#define FUSE 4 /* the kind that SEEN_RIBBON has replaced */

/* The common part of the filter, and whether its kind could be like this. */
static seen_status read_common(const struct seen_native *h,
                               const uint8_t *given, seen_filter *common,
                               seen_error *e)
{
    bool keyed = h->flags & SEEN_NATIVE_KEYED;
    *common = (seen_filter){.ops = seen_kinds_find(h->plan.kind),
                            .hash = h->hash,
                            .flags = keyed ? SEEN_KEYED : 0,
                            .plan = h->plan,
                            .items = h->items,
                            .key_form = (uint8_t)h->key_form};
    if ((uint32_t)h->plan.kind == FUSE)
        return seen_fail(e, SEEN_UNSUPPORTED, "buf",
                         "kind 4 at offset 10: a fuse filter of an earlier "
                         "version: expected "
                         "one of kind ribbon, built from the keys again");
    if (!common->ops)
        return seen_fail(
            e, SEEN_UNSUPPORTED, "buf",
            "kind %u at offset 10: not one that this version knows",
            (unsigned)h->plan.kind);
    const char *earlier =
        common->ops->plan_earlier ? common->ops->plan_earlier(&h->plan) : NULL;
    if (earlier) return seen_fail(e, SEEN_UNSUPPORTED, "buf", "%s", earlier);
    if (common->flags & ~common->ops->flags ||
        h->hash != seen_kind_hash(common->ops, keyed, h->hash->bits) ||
        !common->ops->plan_read(&common->plan))
        return seen_corrupt(
            e, "the header has numbers that no filter of kind %s has",
            common->ops->name);
    return choose_secret(h, given, common->secret, e);
}

/* The kind's own numbers; then the parts must be as long as the payload. */
static seen_status read_state(seen_filter *f, const uint8_t *buf,
                              const struct seen_native *h)
{
    const uint8_t *state =
        buf + h->table_offset + 4 * seen_native_pages(h->payload_len);
    f->ops->shape(f);
    seen_status status = h->state_len > 0 ? SEEN_CORRUPT : SEEN_OK;
    if (f->ops->load_state) status = f->ops->load_state(f, state, h->state_len);
    if (status != SEEN_OK) return status;
    /* What was built for its keys never has more: the rate would be no number. */
    if (f->ops->build && isnan(f->ops->plan_fpp(&f->plan, f->items)))
        return SEEN_CORRUPT;
    uint64_t sum = 0;
    struct seen_part part;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++) {
        if (i == SEEN_MAX_PARTS || part.len == 0 || part.len > h->payload_len)
            return SEEN_CORRUPT;
        sum += seen_part_room(&part);
    }
    return sum == h->payload_len ? SEEN_OK : SEEN_CORRUPT;
}

static seen_status read_list(seen_filter *f, const uint8_t *buf,
                             const struct seen_native *h, seen_error *e)
{
    const uint8_t *listed = buf + h->table_offset +
                            4 * seen_native_pages(h->payload_len) +
                            h->state_len;
    if (h->listed_len == 0 && h->listed_rule == 0) return SEEN_OK;
    if (h->listed_rule != SEEN_LISTED_NEVER &&
        h->listed_rule != SEEN_LISTED_ALWAYS)
        return seen_corrupt(
            e, "rule %u of the allowlist at offset 50: expected 1 or 2",
            h->listed_rule);
    seen_allowlist *list;
    seen_status status =
        seen_allowlist_load(&list, listed, h->listed_len, NULL, NULL);
    if (status == SEEN_CORRUPT)
        seen_corrupt(e, "the allowlist is not one that seen writes");
    if (status != SEEN_OK) return status;
    status = seen_allow(f, list, (seen_listed)h->listed_rule);
    seen_allowlist_free(list);
    return status;
}

static void use_parts_there(seen_filter *f, const uint8_t *payload)
{
    struct seen_part part;
    f->borrowed = true;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++) {
        /* Only written through by a store that has mapped it for that. */
        f->ops->place(f, i, (void *)(uintptr_t)payload);
        payload += seen_part_room(&part);
    }
}

static seen_status copy_parts(seen_filter *f, const uint8_t *payload)
{
    seen_status status = seen_parts_open(f);
    struct seen_part part;
    for (uint32_t i = 0; status == SEEN_OK && f->ops->part(f, i, &part); i++) {
        seen_native_get_part(&part, payload);
        payload += seen_part_room(&part);
    }
    return status;
}

/* Nothing but zeros behind each part, or saving would not give these bytes. */
static bool padding_ok(const seen_filter *f, const uint8_t *payload)
{
    struct seen_part part;
    uint8_t found = 0;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++) {
        for (uint64_t at = part.len; at < seen_part_room(&part); at++)
            found |= payload[at];
        payload += seen_part_room(&part);
    }
    return found == 0;
}

/* ---- Load: filters of other systems -------------------------------------- */

/* What the state says: how many bytes of the payload, and how to read them. */
static const struct seen_dialect *
read_foreign_state(const uint8_t *buf, const struct seen_native *h,
                   seen_spec *spec, uint64_t *len, bool *counted)
{
    const uint8_t *state =
        buf + h->table_offset + 4 * seen_native_pages(h->payload_len);
    char name[32] = {0};
    if (h->state_len <= FOREIGN_STATE ||
        h->state_len >= FOREIGN_STATE + sizeof name)
        return NULL;
    memcpy(name, state + FOREIGN_STATE, h->state_len - FOREIGN_STATE);
    *len = seen_get_le64(state);
    uint32_t flag = seen_get_le32(state + 36);
    *counted = flag == 1;
    spec->bits = seen_get_le64(state + 8);
    spec->items = seen_get_le64(state + 16);
    spec->fpp = seen_get_le_double(state + 24);
    spec->hashes = seen_get_le32(state + 32);
    if (*len > h->payload_len || flag > 1 ||
        strlen(name) != h->state_len - FOREIGN_STATE)
        return NULL;
    return seen_dialect_find(name);
}

/* The payload is as long as it would be written, which bounds the memory:
 * SEEN_CORRUPT if not. */
static seen_status check_room(const struct seen_dialect *d,
                              const seen_spec *spec, const uint8_t *payload,
                              uint64_t len, uint64_t room)
{
    struct seen_foreign shape;
    seen_status status =
        seen_dialect_read(d, spec, payload, (size_t)len, &shape, NULL);
    if (status != SEEN_OK) return status == SEEN_NOMEM ? status : SEEN_CORRUPT;
    struct seen_part part = {.len = foreign_room(&shape, len)};
    seen_foreign_end(&shape);
    return part.len <= room && seen_part_room(&part) == room ? SEEN_OK
                                                             : SEEN_CORRUPT;
}

/* As it was: what the container says and what its bytes say must agree. */
static bool adopt(seen_filter *f, const struct seen_native *h,
                  const seen_spec *spec, bool counted)
{
    struct seen_foreign *own = seen_foreign(f);
    const struct seen_link *first = &own->links[0];
    if (f->plan.bits != h->plan.bits || f->plan.hashes != h->plan.hashes ||
        f->plan.width != h->plan.width ||
        (own->counted && (!counted || f->items != h->items)))
        return false;
    bool none = own->count == 0;
    if ((none ? 0 : seen_link_bits(own, first)) != spec->bits ||
        (none ? 0 : seen_link_hashes(own, first)) != spec->hashes ||
        first->capacity != spec->items ||
        memcmp(&first->fpp, &spec->fpp, sizeof spec->fpp) != 0)
        return false;
    own->counted = counted;
    f->items = h->items;
    f->plan.items = h->plan.items;
    f->plan.fpp = h->plan.fpp;
    return true;
}

/* What is written again must be what was read: a form that its reader takes and
 * its writer would not have written is not ours. */
static seen_status check_bytes(const seen_filter *f, const uint8_t *payload,
                               size_t len)
{
    size_t again = 0;
    uint8_t *bytes = seen_alloc_zeroed(&seen_system_memory, len + 1);
    if (!bytes) return SEEN_NOMEM;
    seen_status status = seen_export(f, NULL, bytes, len, &again, NULL);
    bool same = status == SEEN_OK && again == len &&
                (len == 0 || memcmp(bytes, payload, len) == 0);
    seen_release(&seen_system_memory, bytes, len + 1);
    return same ? SEEN_OK : SEEN_CORRUPT;
}

static seen_status restore_foreign(seen_filter **out, const uint8_t *buf,
                                   const struct seen_native *h,
                                   enum seen_restore_mode mode,
                                   const seen_allocator *allocator,
                                   seen_error *e)
{
    /* 1. The container. */
    seen_spec spec = {.allocator = allocator};
    uint64_t len;
    bool counted;
    seen_status status = seen_native_check_extra(buf, h, e);
    if (status != SEEN_OK) return status;
    if (mode == SEEN_RESTORE_MAP)
        return seen_fail(
            e, SEEN_UNSUPPORTED, "buf",
            "a filter of another system cannot be changed in its file");
    const struct seen_dialect *d =
        read_foreign_state(buf, h, &spec, &len, &counted);
    static const uint8_t no_seed[16];
    if (!d || h->hash != &seen_hash_xxh3_64 ||
        memcmp(h->secret, no_seed, sizeof no_seed) != 0)
        return seen_corrupt(e, STATE_WRONG);
    const uint8_t *payload = buf + h->payload_offset;
    for (uint64_t at = len; at < h->payload_len; at++)
        if (payload[at]) return seen_corrupt(e, PADDING_WRONG);
    status = check_room(d, &spec, payload, len, h->payload_len);
    if (status == SEEN_NOMEM) return status;
    if (status != SEEN_OK) return seen_corrupt(e, PAYLOAD_WRONG);

    /* 2. What is in it. */
    seen_filter *f;
    status = SEEN_UNSUPPORTED;
    if (mode == SEEN_RESTORE_VIEW)
        status = seen_import_view(&f, d->facts.name, &spec, payload,
                                  (size_t)len, NULL);
    if (status == SEEN_UNSUPPORTED) {
        status =
            seen_import(&f, d->facts.name, &spec, payload, (size_t)len, NULL);
        if (status == SEEN_OK) f->frozen = mode == SEEN_RESTORE_VIEW;
    }
    if (status == SEEN_NOMEM) return status;
    if (status != SEEN_OK) return seen_corrupt(e, PAYLOAD_WRONG);
    status = adopt(f, h, &spec, counted) ? SEEN_OK : SEEN_CORRUPT;
    if (status == SEEN_OK && mode == SEEN_RESTORE_COPY)
        status = check_bytes(f, payload, (size_t)len);
    if (status == SEEN_CORRUPT) seen_corrupt(e, PAYLOAD_WRONG);
    if (status == SEEN_OK) status = read_list(f, buf, h, e);
    if (status != SEEN_OK) {
        seen_free(f);
        return status;
    }
    *out = f;
    return SEEN_OK;
}

/* ---- Load: all ----------------------------------------------------------- */

seen_status seen_restore(seen_filter **out, const uint8_t *buf,
                         const struct seen_native *h,
                         enum seen_restore_mode mode, const uint8_t *secret,
                         const seen_allocator *allocator, seen_error *e)
{
    if (h->plan.kind == SEEN_FOREIGN && secret && secret != seen_any_secret)
        return seen_fail(e, SEEN_MISMATCH, "secret",
                         "secret: this filter has none: expected NULL");
    if (h->plan.kind == SEEN_FOREIGN)
        return restore_foreign(out, buf, h, mode, allocator, e);
    /* 1. Everything that can be checked without memory. */
    seen_filter common;
    seen_status status = read_common(h, secret, &common, e);
    if (status == SEEN_OK) status = seen_native_check_extra(buf, h, e);
    if (status != SEEN_OK) return status;
    if (mode != SEEN_RESTORE_COPY && !SEEN_LITTLE_ENDIAN)
        return seen_fail(e, SEEN_UNSUPPORTED, NULL,
                         "this machine is big-endian: filters must be loaded, "
                         "not used where they lie");
    if (mode == SEEN_RESTORE_MAP && !common.ops->touches)
        return seen_fail(e, SEEN_UNSUPPORTED, "buf",
                         "kind %s cannot be changed in its file",
                         common.ops->name);

    /* 2. The state. */
    seen_allocator a = seen_allocator_or_default(allocator);
    seen_filter *f = seen_state_open(common.ops, &a);
    if (!f) return SEEN_NOMEM;
    *f = common;
    f->allocator = a;
    status = read_state(f, buf, h);
    if (status == SEEN_CORRUPT) seen_corrupt(e, STATE_WRONG);

    /* 3. The parts. */
    const uint8_t *payload = buf + h->payload_offset;
    if (status == SEEN_OK && mode == SEEN_RESTORE_COPY)
        status = copy_parts(f, payload);
    if (status != SEEN_OK) {
        seen_state_close(f);
        return status;
    }
    if (mode != SEEN_RESTORE_COPY) use_parts_there(f, payload);
    f->frozen = mode == SEEN_RESTORE_VIEW;
    if (!f->frozen &&
        ((f->ops->parts_ok && !f->ops->parts_ok(f)) || !padding_ok(f, payload)))
        status = seen_corrupt(e, PAYLOAD_WRONG);
    if (status == SEEN_OK) status = read_list(f, buf, h, e);
    if (status != SEEN_OK) {
        seen_free(f);
        return status;
    }
    *out = f;
    return SEEN_OK;
}

static seen_status read_header(const void *buf, size_t len,
                               struct seen_native *h, seen_error *e)
{
    if (!buf) return seen_fail_null(e, "buf");
    seen_status status = seen_native_read(buf, len, h, e);
    if (status == SEEN_OK && h->flags & SEEN_NATIVE_JOURNALED)
        return seen_fail(e, SEEN_BUSY, "buf",
                         "a file that a writer has open, or had when it died: "
                         "open it as a file");
    return status;
}

static seen_status load(seen_filter **f, const void *buf, size_t len,
                        enum seen_restore_mode mode, const uint8_t *secret,
                        const seen_allocator *allocator, seen_error *e)
{
    struct seen_native h;
    if (!f) return seen_fail_null(e, "f");
    if (!seen_allocator_ok(allocator)) return seen_fail_allocator(e);
    if (mode == SEEN_RESTORE_VIEW && (uintptr_t)buf % SEEN_LINE_SIZE)
        return seen_fail(e, SEEN_INVALID, "buf",
                         "buf: expected an address that is a multiple of %d",
                         SEEN_LINE_SIZE);
    seen_status status = read_header(buf, len, &h, e);
    if (status == SEEN_OK && mode == SEEN_RESTORE_COPY)
        status = seen_native_verify(buf, &h, e);
    if (status != SEEN_OK) return status;
    return seen_restore(f, buf, &h, mode, secret, allocator, e);
}

seen_status seen_load(seen_filter **f, const void *buf, size_t len,
                      const uint8_t *secret, const seen_allocator *allocator,
                      seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(
        error, load(f, buf, len, SEEN_RESTORE_COPY, secret, allocator, error));
}

seen_status seen_view(seen_filter **f, const void *buf, size_t len,
                      const uint8_t *secret, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(
        error, load(f, buf, len, SEEN_RESTORE_VIEW, secret, NULL, error));
}

seen_status seen_verify(const void *buf, size_t len, seen_error *error)
{
    struct seen_native h;
    seen_error_begin(error);
    seen_status status = read_header(buf, len, &h, error);
    if (status == SEEN_OK) status = seen_native_check_extra(buf, &h, error);
    if (status == SEEN_OK) status = seen_native_verify(buf, &h, error);
    return seen_error_end(error, status);
}

static seen_status look(const void *buf, size_t len, seen_info *info,
                        seen_plan *plan, seen_error *e)
{
    struct seen_native h;
    seen_filter *f;
    if (!buf) return seen_fail_null(e, "buf");
    if (info && !seen_out_ok(&info->size))
        return seen_fail_size(e, "info", info->size);
    if (plan && !seen_out_ok(&plan->size))
        return seen_fail_size(e, "plan", plan->size);
    seen_status status = seen_native_read(buf, len, &h, e);
    if (status == SEEN_OK)
        status = seen_restore(&f, buf, &h, SEEN_RESTORE_VIEW, seen_any_secret,
                              NULL, e);
    if (status != SEEN_OK) return status;
    seen_info own = seen_filter_info(f);
    own.secret_apart = h.flags & SEEN_NATIVE_APART;
    own.journaled = h.flags & SEEN_NATIVE_JOURNALED;
    own.saved_bytes = len;
    own.id = h.id;
    own.epoch = h.epoch;
    if (info) seen_out(&info->size, &own, sizeof own);
    if (plan) seen_plan_of(f, plan);
    seen_free(f);
    return SEEN_OK;
}

seen_status seen_look(const void *buf, size_t len, seen_info *info,
                      seen_plan *plan, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, look(buf, len, info, plan, error));
}
