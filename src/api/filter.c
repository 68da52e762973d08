/*
 * api/filter.c - the life of a filter and questions about one key: arguments
 * checked, then one indirect call. api/batch.c has the calls for many keys.
 */
#include "seen.h"

#include "api/allow.h"
#include "api/make.h"
#include "api/plan.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/out.h"
#include "dialect/dialect.h"
#include "hash/xxh3.h"

#include <math.h>
#include <string.h>

/* ---- Life --------------------------------------------------------------- */

seen_status seen_make_like(seen_filter **out, const seen_filter *pattern,
                           size_t size, const seen_allocator *allocator)
{
    seen_allocator a = seen_allocator_or_default(allocator);
    seen_filter *f = seen_state_open(pattern->ops, &a);
    if (!f) return SEEN_NOMEM;
    memcpy(f, pattern, size);
    f->allocator = a;
    f->borrowed = f->frozen = false;
    f->allowed = NULL;
    seen_status status = SEEN_OK;
    if (size == sizeof *pattern)
        f->ops->shape(f);
    else if (f->ops->own)
        status = f->ops->own(f);
    if (status == SEEN_OK) status = seen_parts_open(f);
    if (status != SEEN_OK) {
        seen_state_close(f);
        return status;
    }
    *out = f;
    return SEEN_OK;
}

seen_status seen_make(seen_filter **f, const seen_spec *spec, bool built,
                      seen_error *e)
{
    seen_filter pattern = {0};
    if (spec && spec->dialect) return seen_make_foreign(f, spec, e);
    seen_status status = seen_plan_check(spec, &pattern.plan, e);
    if (status != SEEN_OK) return status;

    bool keyed = spec->flags & SEEN_KEYED;
    pattern.ops = seen_kinds_find(pattern.plan.kind);
    if (pattern.ops->build && !built)
        return seen_fail(e, SEEN_UNSUPPORTED, "kind",
                         "kind %s: built from all its keys at once: use "
                         "seen_build() or seen_builder_new()",
                         pattern.ops->name);
    pattern.hash = seen_kind_hash(pattern.ops, keyed, pattern.plan.hash_bits);
    pattern.flags = spec->flags & ~SEEN_GUESS; /* the plan says it */
    pattern.limit = spec->limit;
    pattern.key_form = (uint8_t)spec->key_form;
    if (keyed)
        memcpy(pattern.secret, spec->secret, sizeof pattern.secret);
    else if (!pattern.hash->plain) /* which reads no seed */
        seen_put_le64(pattern.secret, spec->seed);
    return seen_make_like(f, &pattern, sizeof pattern, spec->allocator);
}

seen_status seen_new(seen_filter **f, const seen_spec *spec, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, f ? seen_make(f, spec, false, error)
                                   : seen_fail_null(error, "f"));
}

void seen_free(seen_filter *f)
{
    if (!f) return;
    seen_allowlist_free(f->allowed);
    seen_parts_close(f);
    seen_state_close(f);
}

seen_status seen_copy(seen_filter **copy, const seen_filter *f,
                      const seen_allocator *allocator)
{
    if (!copy || !f || !seen_allocator_ok(allocator)) return SEEN_INVALID;
    seen_filter *made;
    seen_status status =
        seen_make_like(&made, f, f->ops->state_size, allocator);
    if (status != SEEN_OK) return status;
    if (f->allowed) {
        status = seen_allowlist_copy(&made->allowed, f->allowed, allocator);
        if (status != SEEN_OK) {
            seen_free(made);
            return status;
        }
    }
    seen_parts_copy(made, f);
    /* Nobody has looked at the bytes of a view, and a copy can be changed. */
    if (f->frozen && f->ops->parts_ok && !f->ops->parts_ok(made)) {
        seen_free(made);
        return SEEN_CORRUPT;
    }
    *copy = made;
    return SEEN_OK;
}

/* ---- One key ------------------------------------------------------------ */

seen_hash seen_hash_key(const seen_filter *f, const void *key, size_t len)
{
    return f->hash->one(f->secret, key, len);
}

/* One indirect call: the kernel's, or the kind's. */
SEEN_INLINE bool ask(const seen_filter *f, seen_hash hash)
{
    return f->maybe_lines ? f->maybe_lines(seen_filter_lines(f), hash)
                          : f->ops->maybe(f, hash);
}

bool seen_maybe_hashed(const seen_filter *f, seen_hash hash)
{
    return ask(f, hash);
}

seen_status seen_add_hashed(seen_filter *f, seen_hash hash)
{
    bool before;
    if (f->frozen) return SEEN_UNSUPPORTED;
    return f->ops->add ? f->ops->add(f, hash) : f->ops->visit(f, hash, &before);
}

seen_status seen_remove_hashed(seen_filter *f, seen_hash hash)
{
    if (f->frozen || !f->ops->remove) return SEEN_UNSUPPORTED;
    return f->ops->remove(f, hash);
}

seen_status seen_advance(seen_filter *f, uint64_t now_ms)
{
    return f->ops->advance ? f->ops->advance(f, now_ms) : SEEN_UNSUPPORTED;
}

uint32_t seen_count_hashed(const seen_filter *f, seen_hash hash)
{
    return f->ops->count ? f->ops->count(f, hash) : f->ops->maybe(f, hash);
}

seen_status seen_visit_hashed(seen_filter *f, seen_hash hash, bool *before)
{
    return f->frozen ? SEEN_UNSUPPORTED : f->ops->visit(f, hash, before);
}

/* Where the kind reads keys, a hash is for the list only. */
static bool correct_foreign(const seen_filter *f, const void *key, size_t len,
                            bool maybe)
{
    if (!f->allowed) return maybe;
    return seen_allow_corrected(f, key, len, seen_hash_key(f, key, len), maybe);
}

/* All but the usual filter. */
static SEEN_NOINLINE bool maybe_rare(const seen_filter *f, const void *key,
                                     size_t len)
{
    if (f->ops->keys)
        return correct_foreign(f, key, len, f->ops->keys->maybe(f, key, len));
    seen_hash h = seen_hash_key(f, key, len);
    return seen_allow_corrected(f, key, len, h, ask(f, h));
}

/* The usual filter and a short key: hash and question without a frame. */
bool seen_maybe(const seen_filter *f, const void *key, size_t len)
{
    if (!f->maybe_lines || f->allowed || f->hash != &seen_hash_xxh3_64 ||
        len > SEEN_XXH3_SHORT)
        return maybe_rare(f, key, len);
    return f->maybe_lines(seen_filter_lines(f),
                          seen_xxh3_short(f->secret, key, len));
}

seen_status seen_add(seen_filter *f, const void *key, size_t len)
{
    const struct seen_key_ops *keys = f->ops->keys;
    bool before;
    if (keys && f->frozen) return SEEN_UNSUPPORTED;
    if (keys && keys->add) return keys->add(f, key, len);
    if (keys) return keys->visit(f, key, len, &before);
    return seen_add_hashed(f, seen_hash_key(f, key, len));
}

seen_status seen_visit(seen_filter *f, const void *key, size_t len,
                       bool *before)
{
    if (f->ops->keys) {
        if (f->frozen) return SEEN_UNSUPPORTED;
        seen_status visited = f->ops->keys->visit(f, key, len, before);
        if (visited == SEEN_OK) *before = correct_foreign(f, key, len, *before);
        return visited;
    }
    seen_hash h = seen_hash_key(f, key, len);
    seen_status status = seen_visit_hashed(f, h, before);
    if (status == SEEN_OK)
        *before = seen_allow_corrected(f, key, len, h, *before);
    return status;
}

seen_status seen_remove(seen_filter *f, const void *key, size_t len)
{
    const struct seen_key_ops *keys = f->ops->keys;
    if (keys)
        return f->frozen || !keys->remove ? SEEN_UNSUPPORTED
                                          : keys->remove(f, key, len);
    return seen_remove_hashed(f, seen_hash_key(f, key, len));
}

uint32_t seen_count(const seen_filter *f, const void *key, size_t len)
{
    const struct seen_key_ops *keys = f->ops->keys;
    seen_hash h = {0};
    if (!keys || f->allowed) h = seen_hash_key(f, key, len);
    uint32_t count = !keys         ? seen_count_hashed(f, h)
                     : keys->count ? keys->count(f, key, len)
                                   : keys->maybe(f, key, len);
    bool there = seen_allow_corrected(f, key, len, h, count > 0);
    return there ? count + !count : 0;
}

seen_status seen_add_u64(seen_filter *f, uint64_t key)
{
    uint8_t bytes[8];
    seen_put_le64(bytes, key);
    return seen_add(f, bytes, sizeof bytes);
}

bool seen_maybe_u64(const seen_filter *f, uint64_t key)
{
    uint8_t bytes[8];
    seen_put_le64(bytes, key);
    return seen_maybe(f, bytes, sizeof bytes);
}

seen_status seen_visit_u64(seen_filter *f, uint64_t key, bool *before)
{
    uint8_t bytes[8];
    seen_put_le64(bytes, key);
    return seen_visit(f, bytes, sizeof bytes, before);
}

/* ---- Whole filters ------------------------------------------------------ */

/* Do a key's bits mean the same in both? */
static bool same_hash(const seen_filter *a, const seen_filter *b)
{
    return a->ops == b->ops && a->hash == b->hash &&
           memcmp(a->secret, b->secret, sizeof a->secret) == 0;
}

/* What differs: of all that must agree, what says most to its reader. */
static seen_status differ(const seen_filter *a, const seen_filter *b,
                          seen_error *e)
{
    const seen_plan *p = &a->plan, *q = &b->plan;
    if (p->kind != q->kind)
        return seen_fail(
            e, SEEN_MISMATCH, "kind",
            "kind %s and kind %s: expected two filters of one kind",
            a->ops->name, b->ops->name);
    if (a->hash != b->hash)
        return seen_fail(
            e, SEEN_MISMATCH, "hash",
            "hash %s and hash %s: expected two filters of one hash",
            a->hash->name, b->hash->name);
    if (memcmp(a->secret, b->secret, sizeof a->secret) != 0)
        return seen_fail(
            e, SEEN_MISMATCH, a->hash->keyed ? "secret" : "seed",
            "%s: differs: expected two filters made with the same one",
            a->hash->keyed ? "secret" : "seed");
    if (p->bits != q->bits)
        return seen_fail(e, SEEN_MISMATCH, "bits",
                         "bits %" PRIu64 " and %" PRIu64
                         ": expected two filters of one size",
                         p->bits, q->bits);
    if (p->hashes != q->hashes)
        return seen_fail(e, SEEN_MISMATCH, "hashes",
                         "hashes %u and %u: expected the same number",
                         p->hashes, q->hashes);
    return seen_fail(e, SEEN_MISMATCH, NULL,
                     "the parameters of the two filters differ");
}

static seen_status merge(seen_filter *into, const seen_filter *from,
                         seen_merge_op op, seen_error *e)
{
    if (!into) return seen_fail_null(e, "into");
    if (!from) return seen_fail_null(e, "from");
    if (op != SEEN_UNION && op != SEEN_INTERSECTION)
        return seen_fail(e, SEEN_INVALID, "op",
                         "op %d: expected SEEN_UNION or SEEN_INTERSECTION",
                         (int)op);
    bool same_form = into->key_form == from->key_form;
    if (!same_hash(into, from)) return differ(into, from, e);
    if (!same_form && into->key_form && from->key_form)
        return seen_fail(e, SEEN_MISMATCH, "key_form",
                         "key_form %d and %d: the keys of the two were made "
                         "from text in different ways",
                         into->key_form, from->key_form);
    if (into->frozen)
        return seen_fail(
            e, SEEN_UNSUPPORTED, "into",
            "into: a view, whose bits cannot be changed: merge into a copy");
    seen_status status = into->ops->merge(into, from, op);
    if (status == SEEN_MISMATCH) return differ(into, from, e);
    if (status == SEEN_UNSUPPORTED)
        return seen_fail(e, status, "op", "op: filters of kind %s have no %s",
                         into->ops->name,
                         op == SEEN_UNION ? "union" : "intersection");
    if (status == SEEN_OK && !same_form) into->key_form = SEEN_KEYS_UNKNOWN;
    return status;
}

seen_status seen_merge(seen_filter *into, const seen_filter *from,
                       seen_merge_op op, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, merge(into, from, op, error));
}

seen_status seen_reserve(seen_filter *f, uint64_t items)
{
    if (f->frozen) return SEEN_UNSUPPORTED;
    return f->ops->reserve ? f->ops->reserve(f, items) : SEEN_OK;
}

void seen_clear(seen_filter *f)
{
    if (f->frozen) return;
    if (f->ops->clear)
        f->ops->clear(f);
    else
        seen_parts_clear(f);
    f->items = 0;
}

static bool same_list(const seen_filter *a, const seen_filter *b)
{
    if (!a->allowed || !b->allowed) return !a->allowed && !b->allowed;
    return a->listed == b->listed &&
           seen_allowlist_equal(a->allowed, b->allowed);
}

bool seen_equal(const seen_filter *a, const seen_filter *b)
{
    return same_hash(a, b) && same_list(a, b) && a->ops->equal(a, b);
}

/* ---- About a filter ------------------------------------------------------ */

seen_info seen_filter_info(const seen_filter *f)
{
    bool counted = !(f->flags & SEEN_CONCURRENT);
    seen_info own = {.kind = f->plan.kind,
                     .flags = f->flags,
                     .hash = f->hash->name,
                     .key_form = (seen_key_form)f->key_form,
                     .hashes = f->plan.hashes,
                     .lines = f->plan.lines,
                     .layers = 1,
                     .counted = counted,
                     .items = counted ? f->items : 0,
                     .capacity = f->plan.items,
                     .fpp = f->plan.fpp,
                     .bits = f->plan.bits,
                     .bytes = f->plan.bytes,
                     .fpp_now = NAN};
    if (f->ops->info) f->ops->info(f, &own);
    if (own.growth) own.grows = true;
    if (own.kind == SEEN_FOREIGN)
        own.dialect = seen_foreign_of(f)->dialect->facts.name;
    if (f->allowed) own.bytes += seen_allowlist_bytes(f->allowed);
    return own;
}

seen_status seen_info_of(const seen_filter *f, seen_info *info)
{
    if (!info || !seen_out_ok(&info->size)) return SEEN_INVALID;
    seen_info own = seen_filter_info(f);
    return seen_out(&info->size, &own, sizeof own);
}

seen_status seen_measure(const seen_filter *f, seen_info *info)
{
    if (!info || !seen_out_ok(&info->size)) return SEEN_INVALID;
    seen_info own = seen_filter_info(f);
    f->ops->measure(f, &own);
    return seen_out(&info->size, &own, sizeof own);
}

seen_status seen_plan_of(const seen_filter *f, seen_plan *plan)
{
    return plan ? seen_out(&plan->size, &f->plan, sizeof f->plan)
                : SEEN_INVALID;
}
