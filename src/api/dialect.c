/* api/dialect.c - the filters of other systems: made, imported, exported. */
#include "dialect/dialect.h"

#include "api/make.h"
#include "api/plan.h"
#include "base/alloc.h"
#include "base/out.h"

#include <string.h>

/* ---- Which there are ---------------------------------------------------- */

static bool tell(const struct seen_dialect *d, seen_dialect_facts *facts)
{
    if (!d || !facts) return d != NULL;
    seen_dialect_facts own = d->facts;
    own.hash = d->scheme->hash;
    return seen_out(&facts->size, &own, sizeof own) == SEEN_OK;
}

bool seen_dialect_at(size_t index, seen_dialect_facts *facts)
{
    return tell(seen_dialect_row(index), facts);
}

bool seen_dialect_named(const char *name, seen_dialect_facts *facts)
{
    return tell(name ? seen_dialect_find(name) : NULL, facts);
}

size_t seen_sniff(const void *buf, size_t len, const char **names, size_t cap)
{
    const struct seen_dialect *d;
    size_t found = 0;
    for (size_t i = 0; buf && (d = seen_dialect_row(i)); i++) {
        if (!d->sniff || !d->sniff(buf, len)) continue;
        if (found < cap) names[found] = d->facts.name;
        found++;
    }
    return found;
}

/* ---- New ---------------------------------------------------------------- */

seen_status seen_make_foreign(seen_filter **f, const seen_spec *spec,
                              seen_error *e)
{
    struct seen_foreign shape;
    seen_plan plan;
    seen_status status = seen_plan_check(spec, &plan, e);
    if (status == SEEN_OK) status = seen_dialect_plan(spec, &shape, e);
    if (status != SEEN_OK) return status;
    return seen_make_like(f, &shape.common, sizeof shape, spec->allocator);
}

/* ---- From bytes --------------------------------------------------------- */

static void copy_links(struct seen_foreign *f, const struct seen_foreign *from)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (from->links[i].at)
            memcpy(f->links[i].at, from->links[i].at,
                   (size_t)from->links[i].stored);
    if (f->data_len) memcpy(f->data, from->data, (size_t)f->data_len);
}

static seen_status read(seen_filter **out, const char *name,
                        const seen_spec *spec, const void *buf, size_t len,
                        struct seen_foreign *shape, seen_error *e)
{
    if (!out) return seen_fail_null(e, "f");
    if (!name) return seen_fail_null(e, "dialect");
    if (len && !buf) return seen_fail_null(e, "buf");
    const struct seen_dialect *d = seen_dialect_find(name);
    if (!d) return seen_no_dialect(name, e);
    return seen_dialect_read(d, spec, buf, len, shape, e);
}

static seen_status import(seen_filter **out, const char *dialect,
                          const seen_spec *spec, const void *buf, size_t len,
                          seen_error *e)
{
    struct seen_foreign shape;
    seen_status status = read(out, dialect, spec, buf, len, &shape, e);
    if (status != SEEN_OK) return status;
    seen_filter *f;
    status = seen_make_like(&f, &shape.common, sizeof shape,
                            spec ? spec->allocator : NULL);
    if (status != SEEN_OK) return status;
    if (shape.dialect->fill)
        shape.dialect->fill(seen_foreign(f), buf, len);
    else
        copy_links(seen_foreign(f), &shape);
    *out = f;
    return SEEN_OK;
}

seen_status seen_import(seen_filter **f, const char *dialect,
                        const seen_spec *spec, const void *buf, size_t len,
                        seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, import(f, dialect, spec, buf, len, error));
}

/* Short strings would have to be made longer first. */
static bool lies_there(const struct seen_foreign *shape)
{
    if (shape->dialect->fill) return false;
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->links[i].stored != shape->links[i].bytes) return false;
    return true;
}

static seen_status import_view(seen_filter **out, const char *dialect,
                               const seen_spec *spec, const void *buf,
                               size_t len, seen_error *e)
{
    struct seen_foreign shape;
    seen_status status = read(out, dialect, spec, buf, len, &shape, e);
    if (status != SEEN_OK) return status;
    if (!lies_there(&shape))
        return seen_fail(
            e, SEEN_UNSUPPORTED, "dialect",
            "dialect %s: these bytes must be decoded first: import "
            "them into memory with seen_import()",
            dialect);
    seen_allocator a = seen_allocator_or_default(spec ? spec->allocator : NULL);
    struct seen_foreign *f = (void *)seen_state_open(shape.common.ops, &a);
    if (!f) return SEEN_NOMEM;
    *f = shape;
    f->common.allocator = a;
    f->common.borrowed = f->common.frozen = true;
    *out = &f->common;
    return SEEN_OK;
}

seen_status seen_import_view(seen_filter **f, const char *dialect,
                             const seen_spec *spec, const void *buf, size_t len,
                             seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error,
                          import_view(f, dialect, spec, buf, len, error));
}

/* ---- To bytes ----------------------------------------------------------- */

static seen_status export(const seen_filter *f, const char *dialect, void *buf,
                          size_t cap, size_t *len, seen_error *e)
{
    if (!f) return seen_fail_null(e, "f");
    if (!len) return seen_fail_null(e, "len");
    if (cap && !buf) return seen_fail_null(e, "buf");
    const struct seen_dialect *d = dialect ? seen_dialect_find(dialect) : NULL;
    if (dialect && !d) return seen_no_dialect(dialect, e);
    if (f->plan.kind != SEEN_FOREIGN)
        return seen_fail(e, SEEN_MISMATCH, "f",
                         "f: kind %s has no dialect: only its keys could make "
                         "such a filter",
                         f->ops->name);
    const struct seen_foreign *own = seen_foreign_of(f);
    if (!d) d = own->dialect;
    if (d->scheme != own->scheme)
        return seen_fail(e, SEEN_MISMATCH, "dialect",
                         "dialect %s: finds the bits of a key elsewhere than "
                         "%s: only the keys could make such a filter",
                         d->facts.name, own->dialect->facts.name);
    seen_status status = d->write(own, NULL, len);
    if (status == SEEN_MISMATCH)
        return seen_fail(e, status, "dialect",
                         "dialect %s: its form cannot hold this filter of %s",
                         d->facts.name, own->dialect->facts.name);
    if (status != SEEN_OK) return status;
    if (cap < *len)
        return seen_fail(e, SEEN_SHORT, "cap", "cap %zu: the bytes take %zu",
                         cap, *len);
    return d->write(own, buf, len);
}

seen_status seen_export(const seen_filter *f, const char *dialect, void *buf,
                        size_t cap, size_t *len, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, export(f, dialect, buf, cap, len, error));
}
