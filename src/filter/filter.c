/* filter.c - the table of kinds, and what their planners share. */
#include "filter/filter.h"

#include "base/alloc.h"
#include "bits/bitmap.h"
#include "plan/sizing.h"

#include <string.h>

static const struct seen_filter_ops *const table[] = {
#define KIND(constant, ops) &ops,
#include "filter/kinds.def"
#undef KIND
};

const struct seen_filter_ops *seen_kinds_at(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const struct seen_filter_ops *seen_kinds_find(seen_kind kind)
{
    switch (kind) {
#define KIND(constant, ops)                                                    \
    case constant:                                                             \
        return &ops;
#include "filter/kinds.def"
#undef KIND
    case SEEN_FOREIGN:
        return &seen_foreign_ops;
    case SEEN_ANY:
        break;
    }
    return NULL;
}

const struct seen_hash_fn *seen_kind_hash(const struct seen_filter_ops *ops,
                                          bool keyed, uint32_t bits)
{
    return ops->hash ? ops->hash : seen_hash_choose(keyed, bits);
}

/* ---- Parts -------------------------------------------------------------- */

seen_status seen_parts_open(seen_filter *f)
{
    struct seen_part part;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++)
        f->ops->place(f, i, NULL); /* what a pattern or a file left there */
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++) {
        void *at = seen_alloc_zeroed(&f->allocator, part.len);
        if (!at) {
            seen_parts_close(f);
            return SEEN_NOMEM;
        }
        f->ops->place(f, i, at);
    }
    return SEEN_OK;
}

void seen_parts_close(seen_filter *f)
{
    struct seen_part part;
    if (f->borrowed) return;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++)
        seen_release(&f->allocator, part.at, part.len);
}

void seen_parts_copy(seen_filter *to, const seen_filter *from)
{
    struct seen_part a, b;
    for (uint32_t i = 0; to->ops->part(to, i, &a); i++) {
        from->ops->part(from, i, &b);
        if (a.words)
            seen_bits_copy(a.at, b.at, a.len / 8); /* adds may be running */
        else
            memcpy(a.at, b.at, (size_t)a.len);
    }
}

void seen_parts_clear(seen_filter *f)
{
    struct seen_part part;
    for (uint32_t i = 0; f->ops->part(f, i, &part); i++)
        memset(part.at, 0, (size_t)part.len);
}

seen_filter *seen_state_open(const struct seen_filter_ops *ops,
                             const seen_allocator *allocator)
{
    seen_filter *f = seen_alloc_small(allocator, ops->state_size);
    if (f) f->allocator = *allocator;
    return f;
}

void seen_state_close(seen_filter *f)
{
    seen_allocator a = f->allocator;
    if (f->ops->disown) f->ops->disown(f);
    seen_release_small(&a, f, f->ops->state_size);
}

/* ---- What kinds share --------------------------------------------------- */

seen_status seen_spec_sane(const seen_spec *spec, seen_error *e)
{
    if (spec->fpp != 0 && !(spec->fpp > 0 && spec->fpp < 1))
        return seen_fail(e, SEEN_INVALID, "fpp",
                         "fpp %g: expected above 0 and below 1", spec->fpp);
    if (spec->bits > SEEN_MAX_BITS)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits %" PRIu64 ": expected at most 2^48, 32 TiB",
                         spec->bits);
    if ((uint32_t)spec->key_form > SEEN_KEYS_UTF16)
        return seen_fail(e, SEEN_INVALID, "key_form",
                         "key_form %u: not one that this version knows",
                         (unsigned)spec->key_form);
    if (!seen_allocator_ok(spec->allocator)) return seen_fail_allocator(e);
    return seen_check_reserved(spec->reserved, sizeof spec->reserved,
                               sizeof *spec->reserved, "reserved", e);
}

seen_status seen_spec_needs_two(const seen_spec *spec, seen_error *e)
{
    int given = (spec->items > 0) + (spec->fpp > 0) + (spec->bits > 0);
    if (given >= 2) return SEEN_OK;
    const char *field = spec->items ? "fpp" : "items";
    return seen_fail(
        e, SEEN_INVALID, field, "%s: expected %s", field,
        spec->items     ? "a rate above 0 and below 1, or bits, beside the keys"
        : spec->fpp > 0 ? "at least 1 key, or bits, beside the rate"
        : spec->bits    ? "at least 1 key, or a rate, beside the bits"
                        : "at least 1 key, and a rate or bits");
}

seen_status seen_spec_too_few(const seen_spec *spec, seen_error *e)
{
    const uint64_t n = spec->items ? spec->items : 1;
    const char *s = n == 1 ? "" : "s";
    if (spec->fpp > 0)
        return seen_fail(e, SEEN_INVALID, "bits",
                         "bits %" PRIu64 ": too few for %" PRIu64
                         " key%s at a rate of %g: expected more bits, fewer "
                         "keys or a higher rate",
                         spec->bits, n, s, spec->fpp);
    return seen_fail(e, SEEN_INVALID, "bits",
                     "bits %" PRIu64 ": too few for %" PRIu64
                     " key%s: expected more bits or fewer keys",
                     spec->bits, n, s);
}

seen_status seen_spec_too_large(const seen_spec *spec, seen_error *e)
{
    return seen_fail(e, SEEN_INVALID, "items",
                     "items %" PRIu64
                     ": takes more than 32 TiB: expected fewer "
                     "keys%s",
                     spec->items, spec->fpp > 0 ? " or a higher rate" : "");
}

seen_status seen_spec_beyond_hashes(const seen_spec *spec, seen_error *e)
{
    return seen_fail(e, SEEN_INVALID, "fpp",
                     "fpp %g: below what a 128-bit hash can keep: expected at "
                     "least 2^-117 for each key",
                     spec->fpp);
}

static bool same_shape(const seen_filter *a, const seen_filter *b)
{
    return a->plan.bits == b->plan.bits && a->plan.hashes == b->plan.hashes;
}

seen_status seen_merge_words(seen_filter *into, uint64_t *a,
                             const seen_filter *from, const uint64_t *b,
                             seen_merge_op op)
{
    if (!same_shape(into, from)) return SEEN_MISMATCH;
    uint64_t nwords = seen_words_for(into->plan.bits);
    if (op == SEEN_UNION)
        seen_bits_or(a, b, nwords);
    else
        seen_bits_and(a, b, nwords);
    seen_bits_trim(a, into->plan.bits);
    into->items = seen_plan_items(&into->plan, seen_bits_count(a, nwords));
    return SEEN_OK;
}

bool seen_equal_words(const seen_filter *f, const uint64_t *a,
                      const seen_filter *g, const uint64_t *b)
{
    return same_shape(f, g) &&
           seen_bits_equal(a, b, seen_words_for(f->plan.bits));
}
