/* dialect.c - the table of dialects, and what reading and planning have in
 * common. */
#include "dialect/dialect.h"

#include "plan/sizing.h"

#include <string.h>

static const struct seen_dialect *const table[] = {
#define DIALECT(name) &name,
#include "dialect/dialects.def"
#undef DIALECT
};

const struct seen_foreign_rules seen_plain_rules = {0};

const struct seen_dialect *seen_dialect_row(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const struct seen_dialect *seen_dialect_find(const char *name)
{
    const struct seen_dialect *d;
    for (size_t i = 0; (d = seen_dialect_row(i)); i++)
        if (strcmp(d->facts.name, name) == 0) return d;
    return NULL;
}

static void begin(const struct seen_dialect *d, struct seen_foreign *f)
{
    *f = (struct seen_foreign){
        .dialect = d, .scheme = d->scheme, .rules = d->rules};
    f->common.ops = d->ops ? d->ops : &seen_foreign_ops;
    f->common.hash = &seen_hash_xxh3_64; /* for allowlists */
}

/* What no dialect has. */
static const char *misplaced(const seen_spec *spec)
{
    if (spec->kind != SEEN_ANY && spec->kind != SEEN_FOREIGN)
        return "kind is the dialect's own: leave it out";
    if (spec->last || spec->window_ms || spec->generations)
        return "last, window_ms and generations are not for dialects";
    if (spec->bits_per_key != 0 &&
        !(spec->bits_per_key > 0 && spec->bits_per_key <= 1e6))
        return "bits_per_key is above 0 and at most 1e6";
    return NULL;
}

seen_status seen_dialect_plan(const seen_spec *spec, struct seen_foreign *f,
                              const char **problem)
{
    const struct seen_dialect *d = seen_dialect_find(spec->dialect);
    if (!d) {
        *problem = "dialect is not one that this version knows";
        return SEEN_ABSENT;
    }
    if (spec->flags) {
        *problem = "flags asks for something that no dialect can do";
        return SEEN_UNSUPPORTED;
    }
    begin(d, f);
    f->counted = true;
    f->common.limit = spec->limit;
    f->common.plan.items = spec->items;
    f->common.plan.fpp = spec->fpp;
    *problem = misplaced(spec);
    if (!*problem) *problem = d->plan(spec, f);
    if (*problem) return SEEN_INVALID;
    seen_foreign_describe(f);
    /* The rate of that many keys, whatever was asked for. */
    seen_plan *plan = &f->common.plan;
    if (plan->items && f->count == 1 && !d->rules->grow)
        plan->fpp = f->common.ops->plan_fpp(plan, plan->items);
    return SEEN_OK;
}

/* Of what a reader may be told: new filters have been through api/plan.c. */
static const char *insane(const seen_spec *spec)
{
    if (spec->fpp != 0 && !(spec->fpp > 0 && spec->fpp < 1))
        return "fpp is a number above 0 and below 1";
    return spec->bits > SEEN_MAX_BITS ? "bits is at most 2^48" : NULL;
}

/* Whatever a reader let pass: every position lies in its link. (A position is a
 * bit; where it is something larger, this asks for less than is needed.) */
static bool room_for_positions(const struct seen_foreign *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct seen_link *l = &f->links[i];
        if (l->bytes < 1 || l->place.bits > SEEN_MAX_BITS ||
            l->bytes < (l->place.bits + 7) / 8)
            return false;
    }
    return true;
}

seen_status seen_dialect_read(const struct seen_dialect *d,
                              const seen_spec *spec, const uint8_t *buf,
                              size_t len, struct seen_foreign *f,
                              const char **why)
{
    static const seen_spec nothing;
    begin(d, f);
    *why = spec ? insane(spec) : NULL;
    if (*why) return SEEN_INVALID;
    seen_status status = d->read(spec ? spec : &nothing, buf, len, f, why);
    if (status != SEEN_OK) return status;
    if (!room_for_positions(f))
        return seen_refuse(why, SEEN_CORRUPT, "has fewer bytes than its bits");
    f->common.limit = spec ? spec->limit : 0;
    seen_foreign_describe(f);
    if (spec && spec->limit && f->common.plan.bytes > spec->limit)
        return seen_refuse(why, SEEN_FULL, "is larger than limit allows");
    return SEEN_OK;
}
