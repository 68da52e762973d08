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

void seen_foreign_one(struct seen_foreign *f, uint64_t bits, uint32_t hashes,
                      uint64_t bytes)
{
    f->count = 1;
    f->links[0] = (struct seen_link){.bytes = bytes,
                                     .place = seen_place_of(bits, hashes, 0)};
}

void seen_foreign_describe(struct seen_foreign *f)
{
    seen_plan *plan = &f->common.plan;
    const bool slots = f->common.ops == &seen_foreign_cuckoo_ops;
    *plan = (seen_plan){.kind = SEEN_FOREIGN,
                        .items = plan->items,
                        .fpp = plan->fpp,
                        .width = slots ? 8 : 0,
                        .hash_bits = f->scheme->hash_bits};
    plan->bytes = sizeof *f + f->data_len;
    for (uint32_t i = 0; i < f->count; i++) {
        plan->bits += f->links[i].place.bits;
        plan->bytes += f->links[i].bytes;
    }
    if (f->count) {
        plan->hashes = f->links[f->count - 1].place.hashes;
        plan->line = f->links[f->count - 1].place.line;
    }
    plan->lines = slots ? 2 : plan->line ? 1 : plan->hashes;
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
