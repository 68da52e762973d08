/*
 * api/build.c - a filter from all its keys, at once or as they come.
 *
 * A builder keeps the hashes of the keys it is given, 8 bytes each, in one
 * array that doubles. When all are there they are sorted, repeats go, and the
 * filter is made for exactly the number that is left.
 */
#include "seen.h"

#include "api/batch.h"
#include "api/make.h"
#include "base/alloc.h"
#include "base/keys.h"
#include "base/sort.h"
#include "filter/filter.h"

#include <string.h>

#define CHUNK 256
#define FIRST 4096 /* hashes that the array begins with */

struct seen_builder {
    seen_spec spec;
    uint8_t secret[16];
    seen_allocator allocator;
    seen_filter *hasher; /* of one key: has the hash, and nothing else */
    uint64_t *hashes;
    uint64_t n, room;
};

/* ---- As they come ------------------------------------------------------- */

static seen_status builder_new(seen_builder **out, const seen_spec *spec,
                               seen_error *e)
{
    if (!out) return seen_fail_null(e, "b");
    if (!spec) return seen_fail_null(e, "spec");
    seen_spec small = *spec;
    small.items = 1;
    seen_filter *hasher;
    seen_status status = seen_make(&hasher, &small, true, e);
    if (status != SEEN_OK) return status;
    if (!hasher->ops->build) {
        seen_fail(e, SEEN_UNSUPPORTED, "kind",
                  "kind %s: takes keys one by one: use seen_new()",
                  hasher->ops->name);
        seen_free(hasher);
        return SEEN_UNSUPPORTED;
    }
    seen_allocator a = hasher->allocator;
    seen_builder *b = seen_alloc_zeroed(&a, sizeof *b);
    if (!b) {
        seen_free(hasher);
        return SEEN_NOMEM;
    }
    *b = (seen_builder){.spec = *spec, .allocator = a, .hasher = hasher};
    memcpy(b->secret, hasher->secret, sizeof b->secret);
    b->spec.secret = b->secret;
    b->spec.allocator = a.alloc ? &b->allocator : NULL;
    *out = b;
    return SEEN_OK;
}

seen_status seen_builder_new(seen_builder **b, const seen_spec *spec,
                             seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, builder_new(b, spec, error));
}

void seen_builder_free(seen_builder *b)
{
    if (!b) return;
    seen_allocator a = b->allocator;
    seen_free(b->hasher);
    seen_release(&a, b->hashes, b->room * sizeof *b->hashes);
    seen_release(&a, b, sizeof *b);
}

static seen_status make_room(seen_builder *b, uint64_t n)
{
    if (n <= b->room) return SEEN_OK;
    uint64_t room = b->room ? b->room : FIRST;
    while (room < n)
        room *= 2;
    uint64_t *more = seen_alloc_zeroed(&b->allocator, room * sizeof *more);
    if (!more) return SEEN_NOMEM;
    if (b->n) memcpy(more, b->hashes, (size_t)b->n * sizeof *more);
    seen_release(&b->allocator, b->hashes, b->room * sizeof *more);
    b->hashes = more;
    b->room = room;
    return SEEN_OK;
}

seen_status seen_builder_add_many(seen_builder *b, seen_keys keys)
{
    if (!b) return SEEN_INVALID;
    seen_status status = seen_keys_fit(b->hasher, keys);
    if (status == SEEN_OK) status = make_room(b, b->n + keys.n);
    if (status != SEEN_OK) return status;
    if (keys.n) seen_keys_low(b->hasher, keys, b->hashes + b->n);
    b->n += keys.n;
    return SEEN_OK;
}

/* ---- All are there ------------------------------------------------------ */

static seen_status build_from(seen_builder *b, struct seen_source *from,
                              seen_filter **f, seen_error *e)
{
    seen_filter *made;
    b->spec.items = from->n ? from->n : 1;
    seen_status status = seen_make(&made, &b->spec, true, e);
    if (status == SEEN_OK && from->n) {
        status = made->ops->build(made, from);
        if (status != SEEN_OK) seen_free(made);
    }
    if (status == SEEN_OK) *f = made;
    return status;
}

/* All in one run. */
struct array_source {
    struct seen_source common;
    const uint64_t *hashes;
};

static seen_status next_array(struct seen_source *common, const uint64_t **run,
                              uint64_t *n)
{
    struct array_source *from = (struct array_source *)common;
    *run = from->hashes;
    *n = from->hashes ? common->n : 0;
    from->hashes = NULL;
    return SEEN_OK;
}

static seen_status finish(seen_builder *b, seen_filter **f, seen_error *e)
{
    uint64_t bytes = b->n * sizeof *b->hashes;
    uint64_t *spare = seen_alloc_zeroed(&b->allocator, bytes + 8);
    if (!spare) return SEEN_NOMEM;
    if (b->n) seen_sort64(b->hashes, spare, b->n);
    b->n = seen_distinct64(b->hashes, b->n);
    seen_release(&b->allocator, spare, bytes + 8);
    struct array_source from = {{b->n, next_array}, b->hashes};
    return build_from(b, &from.common, f, e);
}

seen_status seen_builder_finish(seen_builder *b, seen_filter **f,
                                seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, !b   ? seen_fail_null(error, "b")
                                 : !f ? seen_fail_null(error, "f")
                                      : finish(b, f, error));
}

/* ---- At once ------------------------------------------------------------ */

/* Kinds that are built: through a builder. */
static seen_status build(seen_filter **f, const seen_spec *spec, seen_keys keys,
                         seen_error *e)
{
    seen_builder *b;
    seen_status status = builder_new(&b, spec, e);
    if (status != SEEN_OK) return status;
    status = make_room(b, keys.n);
    if (status == SEEN_OK) status = seen_builder_add_many(b, keys);
    if (status == SEEN_OK) status = finish(b, f, e);
    seen_builder_free(b);
    return status;
}

/* Kinds that count: of a key that repeats, one is enough. */
static seen_status visit_all(seen_filter *f, seen_keys keys)
{
    bool before[CHUNK];
    seen_status status = SEEN_OK;
    for (size_t at = 0; at < keys.n && status == SEEN_OK; at += CHUNK)
        status =
            seen_visit_many(f, seen_keys_slice(keys, at, CHUNK), before, NULL);
    return status;
}

static seen_status build_any(seen_filter **f, const seen_spec *spec,
                             seen_keys keys, seen_error *e)
{
    if (!f) return seen_fail_null(e, "f");
    if (!spec) return seen_fail_null(e, "spec");
    seen_status status = seen_keys_check(keys);
    if (status != SEEN_OK)
        return seen_fail(e, status, "keys",
                         "keys: not a valid batch, see seen_keys");
    const struct seen_filter_ops *ops = seen_kinds_find(spec->kind);
    if (ops && ops->build) return build(f, spec, keys, e);
    seen_spec sized = *spec;
    sized.items = ops && ops->hash ? 0 : keys.n ? keys.n : 1;
    seen_filter *made;
    status = seen_make(&made, &sized, true, e);
    if (status != SEEN_OK) return status;
    status = made->ops->count ? visit_all(made, keys)
                              : seen_add_many(made, keys, NULL);
    if (status != SEEN_OK) {
        seen_free(made);
        return status;
    }
    *f = made;
    return SEEN_OK;
}

seen_status seen_build(seen_filter **f, const seen_spec *spec, seen_keys keys,
                       seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, build_any(f, spec, keys, error));
}
