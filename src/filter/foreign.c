/*
 * foreign.c - what all filters of other systems have in common: their plan, their
 * parts, and that they know nothing about hashes.
 *
 *     foreign_chain.c     arrays of bits: nearly all of them
 *     foreign_cuckoo.c    slots of fingerprints: RedisBloom's CF
 *
 * Unlike our own kinds these read keys: no 128 bits would do for go-zero, which
 * hashes a key 14 times. So the calls that take a hash cannot tell anything: to
 * them every key is "maybe", and none can be added.
 */
#include "filter/foreign.h"

#include "base/alloc.h"
#include "plan/sizing.h"

#include <math.h>
#include <string.h>

/* ---- Plan --------------------------------------------------------------- */

/*
 * The rate of bits is that of the formula for independent positions. Most of these
 * schemes derive positions from each other, and some keep a key to one line, so
 * the truth is somewhat above it; docs/DIALECTS.md says where it is far above.
 */
static double fpp_of_bits(const seen_plan *plan, uint64_t items)
{
    if (!plan->hashes || !plan->bits) return 1; /* everything is "maybe" */
    if (plan->line)
        return seen_fpp_lines((double)items, (double)(plan->bits / plan->line),
                              plan->line, plan->hashes,
                              seen_line_grouped(plan->line));
    return seen_fpp_bloom((double)items, (double)plan->bits,
                          (double)plan->hashes);
}

/* Two buckets of `hashes` / 2 slots, each used with the same chance. */
static double fpp_of_slots(const seen_plan *plan, uint64_t items)
{
    double slots = (double)plan->bits / 8;
    if ((double)items > slots) return NAN;
    double used = plan->hashes * (double)items / slots;
    return -expm1(used * log1p(-1.0 / 255));
}

double seen_foreign_plan_fpp(const seen_plan *plan, uint64_t items)
{
    return plan->width ? fpp_of_slots(plan, items) : fpp_of_bits(plan, items);
}

static bool has_slots(const struct seen_foreign *f)
{
    return f->common.ops == &seen_foreign_cuckoo_ops;
}

uint64_t seen_link_bits(const struct seen_foreign *f, const struct seen_link *l)
{
    return has_slots(f) ? 8 * l->bytes : l->place.bits;
}

/* Two buckets are looked into. */
uint32_t seen_link_hashes(const struct seen_foreign *f,
                          const struct seen_link *l)
{
    return has_slots(f) ? 2 * f->cuckoo.slots : l->place.hashes;
}

void seen_foreign_describe(struct seen_foreign *f)
{
    seen_plan *plan = &f->common.plan;
    *plan = (seen_plan){.kind = SEEN_FOREIGN,
                        .items = plan->items,
                        .fpp = plan->fpp,
                        .width = has_slots(f) ? 8 : 0,
                        .hash_bits = f->scheme->hash_bits};
    plan->bytes =
        sizeof *f + f->data_len + (uint64_t)f->room * sizeof *f->links;
    for (uint32_t i = 0; i < f->count; i++) {
        plan->bits += seen_link_bits(f, &f->links[i]);
        plan->bytes += f->links[i].bytes;
    }
    if (f->count) {
        const struct seen_link *newest = &f->links[f->count - 1];
        plan->hashes = seen_link_hashes(f, newest);
        plan->line = newest->place.line;
    }
    plan->lines = has_slots(f) ? 2 : plan->line ? 1 : plan->hashes;
}

/* What it would be made from comes with a dialect: api/dialect.c. */
seen_status seen_foreign_plan(const seen_spec *spec, seen_plan *plan,
                              seen_error *e)
{
    (void)spec, (void)plan;
    return seen_fail(e, SEEN_INVALID, "dialect",
                     "dialect: expected a name: it makes a filter of another "
                     "system");
}

bool seen_foreign_plan_read(seen_plan *plan)
{
    (void)plan;
    return false;
}

void seen_foreign_shape(seen_filter *f)
{
    (void)f;
}

/* ---- Links -------------------------------------------------------------- */

void seen_foreign_begin(struct seen_foreign *f, const seen_allocator *allocator)
{
    *f = (struct seen_foreign){.common.allocator =
                                   seen_allocator_or_default(allocator)};
    f->links = &f->one;
}

static void release_links(struct seen_foreign *f)
{
    if (f->room)
        seen_release(&f->common.allocator, f->links,
                     (uint64_t)f->room * sizeof *f->links);
    f->room = 0;
    f->links = &f->one;
}

void seen_foreign_end(struct seen_foreign *f)
{
    release_links(f);
    f->count = 0;
}

static seen_status move_links(struct seen_foreign *f, uint32_t room)
{
    struct seen_link *links =
        seen_alloc_zeroed(&f->common.allocator, room * sizeof *links);
    if (!links) return SEEN_NOMEM;
    memcpy(links, f->links, f->count * sizeof *links);
    release_links(f);
    f->links = links;
    f->room = room;
    return SEEN_OK;
}

seen_status seen_foreign_room(struct seen_foreign *f, uint32_t n)
{
    return n <= 1 || n <= f->room ? SEEN_OK : move_links(f, n);
}

seen_status seen_foreign_append(struct seen_foreign *f, struct seen_link next)
{
    uint64_t bytes = next.bytes;
    for (uint32_t i = 0; i < f->count; i++)
        bytes += f->links[i].bytes;
    if (!seen_links_fit(f->count + 1, bytes)) return SEEN_FULL;
    uint32_t have = f->room ? f->room : 1;
    uint32_t room = f->count < have ? f->room : 2 * have;
    uint64_t limit = f->common.limit, more = (room - f->room) * sizeof next;
    if (limit && f->common.plan.bytes + more + next.bytes > limit)
        return SEEN_FULL;
    next.at = seen_alloc_zeroed(&f->common.allocator, next.bytes);
    if (!next.at) return SEEN_NOMEM;
    if (room > f->room && move_links(f, room) != SEEN_OK) {
        seen_release(&f->common.allocator, next.at, next.bytes);
        return SEEN_NOMEM;
    }
    f->links[f->count++] = next;
    seen_foreign_describe(f);
    return SEEN_OK;
}

void seen_foreign_one(struct seen_foreign *f, uint64_t bits, uint32_t hashes,
                      uint64_t bytes)
{
    f->count = 1;
    f->links[0] = (struct seen_link){.bytes = bytes,
                                     .place = seen_place_of(bits, hashes, 0)};
}

/* g is a copy of another, byte for byte. */
seen_status seen_foreign_own(seen_filter *g)
{
    struct seen_foreign *f = seen_foreign(g);
    const struct seen_foreign other = *f;
    f->room = 0;
    f->links = &f->one;
    if (!other.room) return SEEN_OK;
    f->count = 0;
    seen_status status = seen_foreign_room(f, other.count);
    if (status != SEEN_OK) return status;
    f->count = other.count;
    memcpy(f->links, other.links, other.count * sizeof *f->links);
    seen_foreign_describe(f);
    return SEEN_OK;
}

void seen_foreign_disown(seen_filter *g)
{
    release_links(seen_foreign(g));
}

/* ---- From a shape ------------------------------------------------------- */

/* Memory of its own for a part, with what lies there; false: none. */
static bool own_bytes(const seen_allocator *a, uint8_t **at, uint64_t bytes,
                      uint64_t stored)
{
    const uint8_t *from = *at;
    if (bytes == 0) return true;
    *at = seen_alloc_zeroed(a, bytes);
    if (*at && from) memcpy(*at, from, (size_t)stored);
    return *at;
}

static seen_status own_parts(struct seen_foreign *f)
{
    const seen_allocator *a = &f->common.allocator;
    uint32_t i = 0;
    while (i < f->count &&
           own_bytes(a, &f->links[i].at, f->links[i].bytes, f->links[i].stored))
        i++;
    if (i == f->count && own_bytes(a, &f->data, f->data_len, f->data_len))
        return SEEN_OK;
    while (i-- > 0)
        seen_release(a, f->links[i].at, f->links[i].bytes);
    return SEEN_NOMEM;
}

seen_status seen_foreign_make(seen_filter **out, struct seen_foreign *shape,
                              bool view)
{
    const seen_allocator a = shape->common.allocator;
    struct seen_foreign *f = (void *)seen_state_open(shape->common.ops, &a);
    if (!f) {
        seen_foreign_end(shape);
        return SEEN_NOMEM;
    }
    *f = *shape;
    if (!f->room) f->links = &f->one;
    shape->room = 0;
    seen_foreign_end(shape);
    f->common.borrowed = f->common.frozen = view;
    seen_status status = view ? SEEN_OK : own_parts(f);
    if (status != SEEN_OK) {
        seen_state_close(&f->common);
        return status;
    }
    *out = &f->common;
    return SEEN_OK;
}

/* ---- Parts -------------------------------------------------------------- */

bool seen_foreign_part(const seen_filter *g, uint32_t index,
                       struct seen_part *part)
{
    const struct seen_foreign *f = seen_foreign_of(g);
    if (index < f->count)
        *part = (struct seen_part){f->links[index].at, f->links[index].bytes,
                                   false};
    else
        *part = (struct seen_part){f->data, f->data_len, false};
    return index < f->count + (f->data_len > 0);
}

void seen_foreign_place(seen_filter *g, uint32_t index, void *at)
{
    struct seen_foreign *f = seen_foreign(g);
    if (index < f->count)
        f->links[index].at = at;
    else
        f->data = at;
}

void seen_foreign_clear(seen_filter *g)
{
    struct seen_foreign *f = seen_foreign(g);
    while (f->count > 1) {
        struct seen_link *last = &f->links[--f->count];
        seen_release(&g->allocator, last->at, last->bytes);
    }
    f->one = f->links[0];
    release_links(f);
    if (f->count) {
        memset(f->links[0].at, 0, (size_t)f->links[0].bytes);
        f->links[0].items = 0;
    }
    f->counted = true;
    seen_foreign_describe(f);
}

/* ---- Hashes: no use here ------------------------------------------------ */

bool seen_foreign_maybe(const seen_filter *f, seen_hash h)
{
    (void)f, (void)h;
    return true;
}

seen_status seen_foreign_visit(seen_filter *f, seen_hash h, bool *before)
{
    (void)f, (void)h, (void)before;
    return SEEN_UNSUPPORTED;
}

void seen_foreign_prefetch(const seen_filter *f, const seen_hash *h, size_t n)
{
    (void)f, (void)h, (void)n;
}

void seen_foreign_maybe_many(const seen_filter *f, const seen_hash *h, size_t n,
                             size_t ahead, bool *answers)
{
    (void)f, (void)h, (void)ahead;
    memset(answers, true, n);
}

seen_status seen_foreign_visit_many(seen_filter *f, const seen_hash *h,
                                    size_t n, size_t ahead, bool *before,
                                    size_t *done)
{
    (void)f, (void)h, (void)ahead, (void)before;
    *done = 0;
    return n ? SEEN_UNSUPPORTED : SEEN_OK;
}
