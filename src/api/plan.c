/* api/plan.c - the public planning calls: sane numbers, then the kind's own
 * arithmetic. */
#include "seen.h"

#include "api/plan.h"
#include "dialect/dialect.h"
#include "filter/filter.h"
#include "plan/sizing.h"

#include <string.h>

/* What is wrong with each number by itself. */
static const char *insane(const seen_spec *spec)
{
    if (spec->fpp != 0 && !(spec->fpp > 0 && spec->fpp < 1))
        return "fpp is a number above 0 and below 1";
    if (spec->bits > SEEN_MAX_BITS) return "bits is at most 2^48";
    if (spec->flags & ~(SEEN_CONCURRENT | SEEN_KEYED))
        return "flags has a bit that this version does not know";
    if (spec->flags & SEEN_KEYED && !spec->key)
        return "key is needed with SEEN_KEYED: 16 secret random bytes";
    if ((uint32_t)spec->key_form > SEEN_KEYS_UTF16)
        return "key_form is one that this version does not know";
    if (spec->allocator &&
        (!spec->allocator->alloc || !spec->allocator->release))
        return "allocator needs both alloc and release";
    for (size_t i = 0; i < sizeof spec->reserved / sizeof *spec->reserved; i++)
        if (spec->reserved[i]) return "reserved fields are zero";
    return NULL;
}

static seen_kind kind_for(const seen_spec *spec)
{
    if (spec->kind != SEEN_ANY) return spec->kind;
    return spec->last || spec->window_ms ? SEEN_WINDOW : SEEN_BLOCKED;
}

/* What only some kinds can be asked for. */
static const char *misplaced(const seen_spec *spec,
                             const struct seen_filter_ops *ops)
{
    if (spec->key_form && ops->hash)
        return "key_form is for keys that are hashed: those of a bitmap are "
               "integers";
    if (ops->advance) return NULL;
    if (spec->last) return "last is for windows: this kind forgets nothing";
    if (spec->window_ms)
        return "window_ms is for windows: this kind forgets nothing";
    return spec->generations ? "generations is for windows" : NULL;
}

/* A dialect has its own formulas. */
static seen_status plan_foreign(const seen_spec *spec, seen_plan *plan,
                                const char **problem)
{
    struct seen_foreign shape;
    if (spec->key_form) {
        *problem = "key_form is for our own filters: a dialect has no room for "
                   "it";
        return SEEN_INVALID;
    }
    seen_status status = seen_dialect_plan(spec, &shape, problem);
    if (status != SEEN_OK) return status;
    if (spec->limit && shape.common.plan.bytes > spec->limit) {
        *problem = "limit is below the bytes that this filter needs";
        return SEEN_INVALID;
    }
    *plan = shape.common.plan;
    return SEEN_OK;
}

seen_status seen_plan_check(const seen_spec *spec, seen_plan *plan,
                            const char **problem)
{
    static const char *const none = "a spec is needed, not NULL";
    if (!spec) return *problem = none, SEEN_INVALID;
    if ((*problem = insane(spec))) return SEEN_INVALID;

    if (spec->dialect) return plan_foreign(spec, plan, problem);
    if (spec->bits_per_key != 0) {
        *problem = "bits_per_key is for some dialects: give fpp or bits";
        return SEEN_INVALID;
    }
    seen_kind kind = kind_for(spec);
    const struct seen_filter_ops *ops = seen_kinds_find(kind);
    if (!ops) {
        *problem = "kind is not one that this version knows";
        return SEEN_UNSUPPORTED;
    }
    if (spec->flags & ~ops->flags) {
        *problem = "flags asks for something that this kind cannot do";
        return SEEN_UNSUPPORTED;
    }
    seen_plan found = {.kind = kind};
    if ((*problem = misplaced(spec, ops))) return SEEN_INVALID;
    if ((*problem = ops->plan(spec, &found))) return SEEN_INVALID;
    if (spec->limit && found.bytes > spec->limit) {
        *problem = "limit is below the bytes that this filter needs";
        return SEEN_INVALID;
    }
    *plan = found;
    return SEEN_OK;
}

seen_status seen_plan_for(const seen_spec *spec, seen_plan *plan)
{
    const char *problem;
    return plan ? seen_plan_check(spec, plan, &problem) : SEEN_INVALID;
}

const char *seen_plan_problem(const seen_spec *spec)
{
    seen_plan plan;
    const char *problem = NULL;
    seen_plan_check(spec, &plan, &problem);
    return problem;
}

double seen_plan_fpp(const seen_plan *plan, uint64_t items)
{
    const struct seen_filter_ops *ops = seen_kinds_find(plan->kind);
    return ops ? ops->plan_fpp(plan, items) : 1;
}

seen_kind seen_kind_at(size_t index)
{
    const struct seen_filter_ops *ops = seen_kinds_at(index);
    return ops ? ops->kind : SEEN_ANY;
}

const char *seen_kind_name(seen_kind kind)
{
    const struct seen_filter_ops *ops = seen_kinds_find(kind);
    return ops ? ops->name : NULL;
}

bool seen_kind_built(seen_kind kind)
{
    const struct seen_filter_ops *ops = seen_kinds_find(kind);
    return ops && ops->build;
}

seen_kind seen_kind_named(const char *name)
{
    const struct seen_filter_ops *ops;
    for (size_t i = 0; (ops = seen_kinds_at(i)); i++)
        if (strcmp(ops->name, name) == 0) return ops->kind;
    return SEEN_ANY;
}
