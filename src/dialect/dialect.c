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

seen_status seen_no_dialect(const char *name, seen_error *e)
{
    return seen_fail(e, SEEN_ABSENT, "dialect",
                     "dialect \"%.40s\": not one that this version knows",
                     name);
}

static void begin(const struct seen_dialect *d, const seen_spec *spec,
                  struct seen_foreign *f)
{
    seen_foreign_begin(f, spec->allocator);
    f->dialect = d;
    f->scheme = d->scheme;
    f->rules = d->rules;
    f->common.ops = d->ops ? d->ops : &seen_foreign_ops;
    f->common.hash = &seen_hash_xxh3_64; /* for allowlists */
}

/* What no dialect has. */
static seen_status misplaced(const seen_spec *spec, seen_error *e)
{
    const char *window = spec->last          ? "last"
                         : spec->window_ms   ? "window_ms"
                         : spec->generations ? "generations"
                                             : NULL;
    if (spec->flags)
        return seen_fail(
            e, SEEN_UNSUPPORTED, "flags",
            "flags %u: expected 0: no dialect has a secret or takes "
            "keys from many threads at once",
            spec->flags);
    if (spec->kind != SEEN_ANY && spec->kind != SEEN_FOREIGN)
        return seen_fail(e, SEEN_INVALID, "kind",
                         "kind: a dialect has its own: leave it out");
    if (window)
        return seen_fail(e, SEEN_INVALID, window,
                         "%s: for windows, not for dialects: leave it out",
                         window);
    if (spec->bits_per_key != 0 &&
        !(spec->bits_per_key > 0 && spec->bits_per_key <= 1e6))
        return seen_fail(e, SEEN_INVALID, "bits_per_key",
                         "bits_per_key %g: expected above 0 and at most 1e6",
                         spec->bits_per_key);
    return SEEN_OK;
}

seen_status seen_dialect_plan(const seen_spec *spec, struct seen_foreign *f,
                              seen_error *e)
{
    const struct seen_dialect *d = seen_dialect_find(spec->dialect);
    if (!d) return seen_no_dialect(spec->dialect, e);
    begin(d, spec, f);
    f->counted = true;
    f->common.limit = spec->limit;
    f->common.plan.items = spec->items;
    f->common.plan.fpp = spec->fpp;
    seen_status status = misplaced(spec, e);
    if (status == SEEN_OK) status = d->plan(spec, f, e);
    if (status != SEEN_OK) return status;
    seen_foreign_describe(f);
    /* The rate of that many keys, whatever was asked for. */
    seen_plan *plan = &f->common.plan;
    if (plan->items && f->count == 1 && !d->rules->grow)
        plan->fpp = f->common.ops->plan_fpp(plan, plan->items);
    return SEEN_OK;
}

/* ---- What is wrong, in the same words for all ---------------------------- */

seen_status seen_derived(const seen_spec *spec, const char *what, seen_error *e)
{
    const char *field = spec->bits     ? "bits"
                        : spec->hashes ? "hashes"
                                       : "bits_per_key";
    return seen_fail(e, SEEN_INVALID, field,
                     "%s: follows from %s in this dialect: leave it out", field,
                     what);
}

seen_status seen_not_given(const seen_spec *spec, const char *field,
                           seen_error *e)
{
    uint64_t value = field[0] == 'b' ? spec->bits : spec->hashes;
    return seen_fail(e, SEEN_INVALID, field,
                     "%s %" PRIu64 ": not what %" PRIu64
                     " keys at a rate of %g take: leave one of them out",
                     field, value, spec->items, spec->fpp);
}

seen_status seen_not_per_key(const seen_spec *spec, seen_error *e)
{
    return seen_fail(e, SEEN_INVALID, "bits_per_key",
                     "bits_per_key %g: not for this dialect: give keys and a "
                     "rate, or bits",
                     spec->bits_per_key);
}

seen_status seen_needs_keys_and_rate(const seen_spec *spec, seen_error *e)
{
    if (!spec->items)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected at least 1");
    return seen_fail(e, SEEN_INVALID, "fpp",
                     "fpp: expected a rate above 0 and below 1");
}

seen_status seen_needs_per_key(const seen_spec *spec, seen_error *e)
{
    if (!spec->items)
        return seen_fail(e, SEEN_INVALID, "items",
                         "items: expected at least 1");
    if (!(spec->bits_per_key > 0) && !(spec->fpp > 0))
        return seen_fail(e, SEEN_INVALID, "bits_per_key",
                         "bits_per_key: expected, or a rate, beside the keys");
    return SEEN_OK;
}

seen_status seen_short_head(size_t len, size_t head, seen_error *e)
{
    return seen_corrupt(e, "too short: %zu bytes, expected a header of %zu",
                        len, head);
}

seen_status seen_check_length(uint64_t len, uint64_t expected, seen_error *e)
{
    if (len == expected) return SEEN_OK;
    return seen_corrupt(
        e, "%" PRIu64 " bytes behind the header, which says %" PRIu64, len,
        expected);
}

seen_status seen_no_links(const char *what, uint64_t n, unsigned offset,
                          seen_error *e)
{
    return seen_corrupt(e, "%" PRIu64 " %s at offset %u: expected 1 to %u", n,
                        what, offset, SEEN_LINKS_MAX);
}

seen_status seen_check_links(const char *what, uint64_t n, uint64_t bytes,
                             seen_error *e)
{
    if (seen_links_fit(n, bytes)) return SEEN_OK;
    return seen_corrupt(e,
                        "%" PRIu64 " %s of %" PRIu64 " bytes in all: expected "
                        "at least %u bytes each where there are more than %u",
                        n, what, bytes, SEEN_LINK_BYTES, SEEN_LINKS_FREE);
}

seen_status seen_check_told(uint64_t len, uint64_t expected, seen_error *e)
{
    if (len == expected) return SEEN_OK;
    return seen_corrupt(e,
                        "%" PRIu64 " bytes: the keys and rate, or bits, that "
                        "were given take %" PRIu64,
                        len, expected);
}

/* ---- Reading ------------------------------------------------------------- */

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
                              size_t len, struct seen_foreign *f, seen_error *e)
{
    static const seen_spec nothing;
    if (!spec) spec = &nothing;
    seen_status status = seen_spec_sane(spec, e);
    if (status != SEEN_OK) return status;
    begin(d, spec, f);
    status = d->read(spec, buf, len, f, e);
    /* Several links, which all went into one place: now they have room. */
    if (status == SEEN_OK && f->count > 1 && !f->room) {
        uint32_t n = f->count;
        f->count = 0;
        status = seen_foreign_room(f, n);
        if (status == SEEN_OK) status = d->read(spec, buf, len, f, e);
    }
    if (status == SEEN_OK && !room_for_positions(f))
        status = seen_corrupt(e, "fewer bytes than the bits take");
    f->common.limit = spec->limit;
    if (status == SEEN_OK) seen_foreign_describe(f);
    if (status == SEEN_OK && spec->limit && f->common.plan.bytes > spec->limit)
        status =
            seen_fail(e, SEEN_FULL, "limit",
                      "limit %" PRIu64 ": this filter takes %" PRIu64 " bytes",
                      spec->limit, f->common.plan.bytes);
    if (status != SEEN_OK) seen_foreign_end(f);
    return status;
}
