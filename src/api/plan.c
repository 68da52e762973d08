/* api/plan.c - the public planning calls: sane numbers, then the kind's own
 * arithmetic. */
#include "seen.h"

#include "api/plan.h"
#include "base/out.h"
#include "dialect/dialect.h"
#include "filter/filter.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

static seen_kind kind_for(const seen_spec *spec)
{
    if (spec->kind != SEEN_ANY) return spec->kind;
    return spec->last || spec->window_ms ? SEEN_WINDOW : SEEN_BLOCKED;
}

/* What only some kinds can be asked for. */
static seen_status misplaced(const seen_spec *spec,
                             const struct seen_filter_ops *ops, seen_error *e)
{
    const char *window = spec->last          ? "last"
                         : spec->window_ms   ? "window_ms"
                         : spec->generations ? "generations"
                                             : NULL;
    if (spec->bits_per_key != 0)
        return seen_fail(e, SEEN_INVALID, "bits_per_key",
                         "bits_per_key %g: only some dialects take it: give a "
                         "rate or bits",
                         spec->bits_per_key);
    if (spec->key_form && ops->hash)
        return seen_fail(
            e, SEEN_INVALID, "key_form",
            "key_form %u: the keys of a bitmap are integers: leave "
            "it out",
            (unsigned)spec->key_form);
    if (window && !ops->advance)
        return seen_fail(e, SEEN_INVALID, window,
                         "%s: for windows: kind %s forgets nothing", window,
                         ops->name);
    return SEEN_OK;
}

static seen_status within_limit(const seen_spec *spec, uint64_t bytes,
                                seen_error *e)
{
    if (!spec->limit || bytes <= spec->limit) return SEEN_OK;
    return seen_fail(e, SEEN_INVALID, "limit",
                     "limit %" PRIu64 ": this filter takes %" PRIu64 " bytes",
                     spec->limit, bytes);
}

/* What is wrong with a spec, whatever it is for. */
static seen_status check_spec(const seen_spec *spec, seen_error *e)
{
    if (!spec) return seen_fail_null(e, "spec");
    seen_status status = seen_spec_sane(spec, e);
    if (status != SEEN_OK) return status;
    if (spec->flags & ~(SEEN_CONCURRENT | SEEN_KEYED | SEEN_GUESS))
        return seen_fail(e, SEEN_INVALID, "flags",
                         "flags %u: a bit that this version does not know",
                         spec->flags);
    if (spec->flags & SEEN_KEYED && !spec->secret)
        return seen_fail(
            e, SEEN_INVALID, "secret",
            "secret: expected 16 secret random bytes with SEEN_KEYED");
    return SEEN_OK;
}

seen_status seen_plan_shape(const seen_spec *spec, struct seen_foreign *shape,
                            seen_error *e)
{
    seen_status status = check_spec(spec, e);
    if (status != SEEN_OK) return status;
    if (spec->key_form)
        return seen_fail(e, SEEN_INVALID, "key_form",
                         "key_form %u: a dialect has no room for it: leave it "
                         "out",
                         (unsigned)spec->key_form);
    status = seen_dialect_plan(spec, shape, e);
    return status == SEEN_OK ? within_limit(spec, shape->common.plan.bytes, e)
                             : status;
}

/* A dialect has its own formulas. */
static seen_status plan_foreign(const seen_spec *spec, seen_plan *plan,
                                seen_error *e)
{
    struct seen_foreign shape;
    seen_status status = seen_plan_shape(spec, &shape, e);
    if (status == SEEN_OK) *plan = shape.common.plan;
    return status;
}

seen_status seen_plan_check(const seen_spec *spec, seen_plan *plan,
                            seen_error *e)
{
    if (spec && spec->dialect) return plan_foreign(spec, plan, e);
    seen_status status = check_spec(spec, e);
    if (status != SEEN_OK) return status;
    seen_plan found = {.kind = kind_for(spec)};
    const struct seen_filter_ops *ops = seen_kinds_find(found.kind);
    if (!ops)
        return seen_fail(e, SEEN_UNSUPPORTED, "kind",
                         "kind %u: not one that this version knows",
                         (unsigned)spec->kind);
    const uint32_t beyond = spec->flags & ~ops->flags;
    if (beyond)
        return seen_fail(e, SEEN_UNSUPPORTED, "flags",
                         "flags %u: kind %s cannot %s", spec->flags, ops->name,
                         beyond & SEEN_KEYED   ? "be keyed"
                         : beyond & SEEN_GUESS ? "grow beyond a guess"
                                               : "be changed by many threads "
                                                 "at once");
    status = misplaced(spec, ops, e);
    if (status == SEEN_OK) status = ops->plan(spec, &found, e);
    if (status == SEEN_OK) status = within_limit(spec, found.bytes, e);
    if (status == SEEN_OK) *plan = found;
    return status;
}

seen_status seen_plan_for(const seen_spec *spec, seen_plan *plan,
                          seen_error *error)
{
    seen_plan found;
    seen_error_begin(error);
    if (!plan) return seen_error_end(error, seen_fail_null(error, "plan"));
    if (!seen_out_ok(&plan->size))
        return seen_error_end(error, seen_fail_size(error, "plan", plan->size));
    seen_status status = seen_plan_check(spec, &found, error);
    if (status == SEEN_OK) status = seen_out(&plan->size, &found, sizeof found);
    return seen_error_end(error, status);
}

double seen_plan_fpp(const seen_plan *plan, uint64_t items)
{
    seen_plan own = {0};
    if (!seen_out_ok(&plan->size)) return NAN;
    memcpy(&own, plan, seen_min_size(plan->size, sizeof own));
    const struct seen_filter_ops *ops = seen_kinds_find(own.kind);
    return ops ? ops->plan_fpp(&own, items) : 1;
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
