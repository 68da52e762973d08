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

void seen_state_close(seen_filter *f)
{
    seen_allocator a = f->allocator;
    if (f->ops->disown) f->ops->disown(f);
    seen_release(&a, f, f->ops->state_size);
}

/* ---- What kinds share --------------------------------------------------- */

const char *seen_spec_needs_two(const seen_spec *spec)
{
    int given = (spec->items > 0) + (spec->fpp > 0) + (spec->bits > 0);
    if (given >= 2) return NULL;
    if (spec->items) return "fpp or bits is needed beside items";
    if (spec->fpp > 0) return "items (at least 1) or bits is needed beside fpp";
    if (spec->bits) return "items (at least 1) or fpp is needed beside bits";
    return "items (at least 1) and fpp are needed";
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
