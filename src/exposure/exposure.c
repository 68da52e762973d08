/* exposure.c - the calls of seen_exposure.h: read the record, look or change,
 * write it again. */
#include "exposure/exposure.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/out.h"
#include "hash/siphash.h"

#include <inttypes.h>
#include <string.h>

#define DAY ((uint64_t)24 * 60 * 60 * 1000)

/* ---- Policy ------------------------------------------------------------- */

seen_policy seen_policy_filled(const seen_policy *given)
{
    seen_policy p = given ? *given : (seen_policy){0};
    if (!p.items) p.items = 1000;
    if (!p.generations) p.generations = 5;
    if (p.fpp == 0) p.fpp = 0.001;
    if (!p.ttl_ms) p.ttl_ms = 5 * DAY;
    return p;
}

/* So many numbers that a random one meets one of a full record at the rate. */
static double universe_wanted(const seen_policy *p)
{
    return (double)p->items * p->generations / p->fpp;
}

static seen_status check(const seen_policy *given, seen_error *e)
{
    const seen_policy p = seen_policy_filled(given);
    if (p.items > SEEN_ITEMS_MAX)
        return seen_fail(e, SEEN_INVALID, "policy.items",
                         "policy.items %u: expected 1 to 2^20 in a generation",
                         p.items);
    if (p.generations > SEEN_GENERATIONS_MAX)
        return seen_fail(e, SEEN_INVALID, "policy.generations",
                         "policy.generations %u: expected 1 to 64",
                         p.generations);
    if (!(p.fpp >= 1e-9 && p.fpp <= 0.5))
        return seen_fail(e, SEEN_INVALID, "policy.fpp",
                         "policy.fpp %g: expected 1e-9 to 0.5", p.fpp);
    if (p.ttl_ms > SEEN_TIME_MAX)
        return seen_fail(e, SEEN_INVALID, "policy.ttl_ms",
                         "policy.ttl_ms %" PRIu64
                         ": expected below 2^48 milliseconds",
                         p.ttl_ms);
    if (seen_check_reserved(p.reserved, sizeof p.reserved, sizeof *p.reserved,
                            "policy.reserved", e) != SEEN_OK)
        return SEEN_INVALID;
    double wanted = universe_wanted(&p);
    if (seen_universe_for(wanted) > 255)
        return seen_fail(
            e, SEEN_INVALID, "policy",
            "policy: items x generations / fpp is %g: expected at most 1e12",
            wanted);
    return SEEN_OK;
}

seen_status seen_policy_check(const seen_policy *policy, seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, check(policy, error));
}

/* ---- Life --------------------------------------------------------------- */

static seen_status new (seen_exposure **out, const seen_policy *policy,
                        const uint8_t secret[16],
                        const seen_allocator *allocator, seen_error *e)
{
    if (!out) return seen_fail_null(e, "x");
    if (!secret) return seen_fail_null(e, "secret");
    seen_status status = check(policy, e);
    if (status != SEEN_OK) return status;
    if (!seen_allocator_ok(allocator)) return seen_fail_allocator(e);
    seen_allocator a = seen_allocator_or_default(allocator);
    seen_exposure *x = seen_alloc_zeroed(&a, sizeof *x);
    if (!x) return SEEN_NOMEM;
    x->policy = seen_policy_filled(policy);
    x->allocator = a;
    memcpy(x->secret, secret, sizeof x->secret);
    x->check = seen_secret_check(secret) & UINT16_MAX;
    x->universe = seen_universe_for(universe_wanted(&x->policy));
    uint32_t gaps = x->policy.generations - 1;
    x->interval = gaps ? x->policy.ttl_ms / gaps : x->policy.ttl_ms;
    if (!x->interval) x->interval = 1; /* marks of one moment stay together */
    *out = x;
    return SEEN_OK;
}

seen_status seen_exposure_new(seen_exposure **x, const seen_policy *policy,
                              const uint8_t secret[16],
                              const seen_allocator *allocator,
                              seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, new (x, policy, secret, allocator, error));
}

void seen_exposure_any_secret(seen_exposure *x)
{
    x->check = UINT16_MAX + 1;
}

void seen_exposure_free(seen_exposure *x)
{
    if (!x) return;
    seen_allocator a = x->allocator;
    struct seen_room *rooms[] = {&x->hashes, &x->answers, &x->prints,  &x->old,
                                 &x->added,  &x->merged,  &x->counted, &x->runs,
                                 &x->result, &x->before};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        seen_release(&a, rooms[i]->at, rooms[i]->size);
    seen_release(&a, x, sizeof *x);
}

uint64_t seen_policy_holds(const seen_policy *policy)
{
    const seen_policy p = seen_policy_filled(policy);
    return (uint64_t)p.items * p.generations;
}

uint64_t seen_exposure_evicted(const seen_exposure *x)
{
    return x ? x->evicted : 0;
}

uint64_t seen_exposure_dropped(const seen_exposure *x)
{
    return x ? x->dropped : 0;
}

void *seen_room_for(seen_exposure *x, struct seen_room *r, uint64_t size)
{
    if (r->at && size <= r->size) return r->at;
    uint64_t wanted = size + size / 2 + 256;
    void *more = seen_alloc_zeroed(&x->allocator, wanted);
    if (!more) return NULL;
    seen_release(&x->allocator, r->at, r->size);
    *r = (struct seen_room){more, wanted};
    return more;
}

/* ---- Records ------------------------------------------------------------ */

/* The generations that are left at this time; *now_ms becomes the one that counts. */
static seen_status open_record(seen_exposure *x, seen_record record,
                               uint64_t *now_ms, struct seen_generations *g)
{
    if (*now_ms > SEEN_TIME_MAX) *now_ms = SEEN_TIME_MAX;
    seen_status status = seen_record_parse(record, x->check, g);
    if (status != SEEN_OK) return status;
    if (g->count && g->at[0].newest > *now_ms) *now_ms = g->at[0].newest;
    seen_change_expire(x, g, *now_ms);
    return SEEN_OK;
}

/* The record that came out last stays as it is. */
static seen_status put_record(seen_exposure *x,
                              const struct seen_generations *g,
                              seen_record *result)
{
    struct seen_room last = x->result;
    x->result = x->before;
    x->before = last;
    uint8_t *bytes = seen_room_for(x, &x->result, seen_record_bound(g));
    if (!bytes) return SEEN_NOMEM;
    *result = (seen_record){bytes, seen_record_write(g, x->check, bytes)};
    return SEEN_OK;
}

/* ---- By hash ------------------------------------------------------------ */

seen_status seen_exposure_check(seen_keys items)
{
    seen_status status = seen_keys_check(items);
    if (status != SEEN_OK) return status;
    return seen_keys_are_hashes(items) ? SEEN_UNSUPPORTED : SEEN_OK;
}

#define AT_ONCE 128 /* items of other layouts than pairs */

seen_status seen_exposure_hash(seen_exposure *x, seen_keys items, uint64_t **h)
{
    seen_key some[AT_ONCE];
    uint8_t room[8 * AT_ONCE];
    const size_t n = items.n, step = items.layout == SEEN_PAIRS ? n : AT_ONCE;
    *h = seen_room_for(x, &x->hashes, n * sizeof **h);
    if (!*h) return SEEN_NOMEM;
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < step ? n - at : step;
        seen_siphash13_low(x->secret, seen_keys_some(items, at, m, some, room),
                           m, *h + at);
    }
    return SEEN_OK;
}

static bool *room_for_answers(seen_exposure *x, size_t n)
{
    return seen_room_for(x, &x->answers, n * sizeof(bool));
}

seen_status seen_exposure_seen(seen_exposure *x, seen_record record,
                               uint64_t now_ms, const uint64_t *h, size_t n,
                               bool repeats, bool *seen)
{
    struct seen_generations g;
    seen_status status = open_record(x, record, &now_ms, &g);
    if (status != SEEN_OK || n == 0) return status;
    return seen_ask(x, &g, h, n, repeats, seen);
}

seen_status seen_exposure_mark_all(seen_exposure *x, seen_record record,
                                   const struct seen_marks *marks, size_t n,
                                   seen_record *result)
{
    struct seen_generations g;
    if (n == 0) return seen_exposure_expire(x, record, 0, result);
    seen_status status = seen_record_parse(record, x->check, &g);
    if (status == SEEN_OK) status = seen_change_mark(x, &g, marks, n);
    return status == SEEN_OK ? put_record(x, &g, result) : status;
}

seen_status seen_exposure_forget_hashes(seen_exposure *x, seen_record record,
                                        uint64_t now_ms, const uint64_t *h,
                                        size_t n, seen_record *result)
{
    struct seen_generations g;
    seen_status status = open_record(x, record, &now_ms, &g);
    if (status == SEEN_OK) status = seen_change_forget(x, &g, h, n);
    return status == SEEN_OK ? put_record(x, &g, result) : status;
}

/* ---- Questions ---------------------------------------------------------- */

seen_status seen_exposure_maybe_many(seen_exposure *x, seen_record record,
                                     uint64_t now_ms, seen_keys items,
                                     bool *answers)
{
    uint64_t *h;
    if (!x || (items.n && !answers)) return SEEN_INVALID;
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_OK) status = seen_exposure_hash(x, items, &h);
    return status == SEEN_OK ? seen_exposure_seen(x, record, now_ms, h, items.n,
                                                  false, answers)
                             : status;
}

/* Hash the items and find those that are not fresh. */
static seen_status look_up(seen_exposure *x, seen_record record,
                           uint64_t now_ms, seen_keys items, uint64_t **h,
                           bool **seen)
{
    seen_status status = seen_exposure_hash(x, items, h);
    if (status != SEEN_OK) return status;
    *seen = room_for_answers(x, items.n);
    return *seen
               ? seen_exposure_seen(x, record, now_ms, *h, items.n, true, *seen)
               : SEEN_NOMEM;
}

size_t seen_fresh_indices(const bool *seen, size_t n, size_t most, size_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n && kept < most; i++) {
        out[kept] = i; /* no branch: half of them are a surprise */
        kept += !seen[i];
    }
    return kept;
}

seen_status seen_exposure_fresh(seen_exposure *x, seen_record record,
                                uint64_t now_ms, seen_keys items, size_t *fresh,
                                size_t *n)
{
    uint64_t *h;
    bool *seen;
    if (!x || !n || (items.n && !fresh)) return SEEN_INVALID;
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_OK)
        status = look_up(x, record, now_ms, items, &h, &seen);
    if (status == SEEN_OK)
        *n = seen_fresh_indices(seen, items.n, items.n, fresh);
    return status;
}

/* ---- Changes ------------------------------------------------------------ */

seen_status seen_exposure_mark(seen_exposure *x, seen_record record,
                               uint64_t now_ms, seen_keys items, bool *fresh,
                               seen_record *result)
{
    uint64_t *h;
    bool *seen = NULL;
    if (!x || !result) return SEEN_INVALID;
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_OK)
        status = fresh ? look_up(x, record, now_ms, items, &h, &seen)
                       : seen_exposure_hash(x, items, &h);
    if (status == SEEN_OK)
        status = seen_exposure_mark_all(
            x, record, &(struct seen_marks){now_ms, h, items.n}, 1, result);
    for (size_t i = 0; status == SEEN_OK && fresh && i < items.n; i++)
        fresh[i] = !seen[i];
    return status;
}

size_t seen_first_fresh(uint64_t *h, size_t n, const bool *seen, size_t most)
{
    size_t kept = 0;
    for (size_t i = 0; i < n && kept < most; i++)
        if (!seen[i]) h[kept++] = h[i];
    return kept;
}

seen_status seen_exposure_take(seen_exposure *x, seen_record record,
                               uint64_t now_ms, seen_keys items, size_t count,
                               size_t *taken, size_t *n, seen_record *result)
{
    uint64_t *h;
    bool *seen;
    if (!x || !n || !result || (items.n && count && !taken))
        return SEEN_INVALID;
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_OK)
        status = look_up(x, record, now_ms, items, &h, &seen);
    if (status != SEEN_OK) return status;
    struct seen_marks m = {now_ms, h,
                           seen_first_fresh(h, items.n, seen, count)};
    status = seen_exposure_mark_all(x, record, &m, 1, result);
    if (status == SEEN_OK) *n = seen_fresh_indices(seen, items.n, count, taken);
    return status;
}

seen_status seen_exposure_forget(seen_exposure *x, seen_record record,
                                 uint64_t now_ms, seen_keys items,
                                 seen_record *result)
{
    uint64_t *h;
    if (!x || !result) return SEEN_INVALID;
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_OK) status = seen_exposure_hash(x, items, &h);
    return status == SEEN_OK ? seen_exposure_forget_hashes(x, record, now_ms, h,
                                                           items.n, result)
                             : status;
}

seen_status seen_exposure_merge(seen_exposure *x, seen_record a, seen_record b,
                                uint64_t now_ms, seen_record *result)
{
    struct seen_generations into, from;
    if (!x || !result) return SEEN_INVALID;
    seen_status status = open_record(x, a, &now_ms, &into);
    if (status == SEEN_OK) status = open_record(x, b, &now_ms, &from);
    if (status == SEEN_OK) {
        seen_change_expire(x, &into, now_ms); /* b may know a later time */
        status = seen_change_merge(x, &into, &from);
    }
    return status == SEEN_OK ? put_record(x, &into, result) : status;
}

seen_status seen_exposure_expire(seen_exposure *x, seen_record record,
                                 uint64_t now_ms, seen_record *result)
{
    struct seen_generations g;
    if (!x || !result) return SEEN_INVALID;
    seen_status status = open_record(x, record, &now_ms, &g);
    return status == SEEN_OK ? put_record(x, &g, result) : status;
}

/* ---- What there is ------------------------------------------------------ */

seen_status seen_exposure_info_of(seen_exposure *x, seen_record record,
                                  uint64_t now_ms, seen_exposure_info *info)
{
    struct seen_generations g;
    if (!x || !info || !seen_out_ok(&info->size)) return SEEN_INVALID;
    seen_status status = open_record(x, record, &now_ms, &g);
    if (status != SEEN_OK) return status;
    double right = 1;
    seen_exposure_info own = {.bytes = record.len, .generations = g.count};
    for (uint32_t i = 0; i < g.count; i++) {
        const struct seen_generation *a = &g.at[i];
        own.generation[i] = (seen_generation_info){.items = a->n,
                                                   .first = a->first,
                                                   .newest = a->newest,
                                                   .bytes = a->run_len};
        own.items += a->n;
        right *= 1 - (double)a->n / (double)seen_universe_of(a->universe);
    }
    own.newest = g.count ? g.at[0].newest : 0;
    own.fpp_now = 1 - right;
    return seen_out(&info->size, &own, sizeof own);
}
