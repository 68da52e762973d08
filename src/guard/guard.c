/*
 * guard.c - see seen_guard.h.
 *
 * Keys are spread over shards by a hash that nobody outside can guess. A shard's
 * lock covers its part of the remembered misses, its counters and, for reading,
 * the filter; whoever exchanges the filter takes all locks. So a question costs
 * one lock that nobody else wants, a question to the filter and, if that says
 * maybe, a look at eight remembered keys.
 *
 *     remembered    hash | when | missed or created       16 bytes, 8 to a bucket
 *
 * A key that is created while somebody is still waiting for the database to say
 * that it is not there would be remembered as missed a moment later. Therefore
 * creation is remembered in the same place, for as long, and wins. It wins over
 * misses that were asked for earlier and are told later, too: with the times of
 * asking, a miss that a creation did not stop has run out when the key is there.
 * And nothing but newer creations takes its place: a bucket that is full of them
 * remembers no misses at all.
 *
 *     time      100     101       102        103     104
 *     reader    asks                         missed(100): is not remembered
 *     writer            created   commits
 *     others                                         asks: maybe
 *
 * `since` holds keys that were created and that the next filter, or the one that
 * is there, does not have or denies (its list says NEVER): exact, and empty most
 * of the time.
 */
#include "seen_guard.h"

#include "seen_allowlist.h"
#include "seen_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/out.h"
#include "hash/hash.h"
#include "probe/reduce.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SHARDS     32
#define WAYS       8
#define MISSES     65536
#define MISS_MS    30000
#define MISSES_MAX ((uint64_t)1 << 40)
#define ENOUGH     20 /* wrong passes before a rate means something */
#define CREATED    ((uint64_t)1 << 63) /* in `when` */
#define NOW_MAX    (CREATED - 2)

struct memory {
    uint64_t hash; /* 0: nothing */
    uint64_t when;
};

struct shard {
    pthread_mutex_t lock;
    struct memory *memories; /* buckets x WAYS */
    seen_guard_stats count;  /* the counters of it */
};

struct seen_guard {
    uint8_t secret[16];
    uint64_t miss_ms;
    bool closed;
    uint64_t buckets; /* of a shard */
    seen_filter *filter;
    bool concurrent; /* it takes adds while it is asked */
    double fpp;
    seen_allowlist *since;
    bool rebuilding;
    bool incomplete; /* a created key is neither in the filter nor in `since` */
    bool lost;       /* one of since the rebuild began */
    uint64_t swaps;
    seen_guard_stats before; /* the counters, at the last swap */
    struct shard shards[SHARDS];
};

const char *seen_reason_name(seen_reason reason)
{
    static const char *const names[] = {"maybe",   "listed", "created",
                                        "loading", "absent", "missed"};
    size_t i = (size_t)reason;
    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}

/* ---- Life --------------------------------------------------------------- */

static uint64_t memory_size(const seen_guard *g)
{
    return g->buckets * WAYS * sizeof(struct memory);
}

void seen_guard_free(seen_guard *g)
{
    if (!g) return;
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&g->shards[i].lock);
        seen_release(&seen_system_memory, g->shards[i].memories,
                     memory_size(g));
    }
    seen_free(g->filter);
    seen_allowlist_free(g->since);
    seen_release(&seen_system_memory, g, sizeof *g);
}

static seen_status check_options(const seen_guard_options *o, seen_error *error)
{
    if (o->misses > MISSES_MAX)
        return seen_fail(error, SEEN_INVALID, "misses",
                         "misses %" PRIu64 ": expected at most %" PRIu64,
                         o->misses, MISSES_MAX);
    if (o->miss_ms > NOW_MAX)
        return seen_fail(error, SEEN_INVALID, "miss_ms",
                         "miss_ms %" PRIu64 ": expected at most %" PRIu64,
                         o->miss_ms, NOW_MAX);
    return seen_check_reserved(o->reserved, sizeof o->reserved,
                               sizeof *o->reserved, "reserved", error);
}

seen_status seen_guard_new(seen_guard **out, const seen_guard_options *options,
                           seen_error *error)
{
    static const seen_guard_options standard;
    const seen_guard_options *o = options ? options : &standard;
    seen_error_begin(error);
    if (!out) return seen_fail_null(error, "g");
    seen_status status = check_options(o, error);
    if (status != SEEN_OK) return status;
    seen_guard *g = seen_alloc_zeroed(&seen_system_memory, sizeof *g);
    if (!g) return seen_error_end(error, SEEN_NOMEM);
    uint64_t misses = o->misses ? o->misses : MISSES;
    g->buckets = (misses + SHARDS * WAYS - 1) / (SHARDS * WAYS);
    g->miss_ms = o->miss_ms ? o->miss_ms : MISS_MS;
    g->closed = o->closed;
    g->rebuilding = true; /* whoever builds the first filter has begun */
    if (seen_random_secret(g->secret) != SEEN_OK)
        status = seen_fail_io(error, NULL, "draw a secret from the kernel");
    if (status == SEEN_OK) status = seen_allowlist_new(&g->since, NULL);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &g->shards[i];
        pthread_mutex_init(&s->lock, NULL);
        s->memories = seen_alloc_zeroed(&seen_system_memory, memory_size(g));
        if (!s->memories && status == SEEN_OK)
            status = seen_fail(error, SEEN_NOMEM, "misses",
                               "no memory for %" PRIu64 " remembered misses of "
                               "16 bytes each",
                               misses);
    }
    if (status == SEEN_OK)
        *out = g;
    else
        seen_guard_free(g);
    return seen_error_end(error, status);
}

/* ---- Shards ------------------------------------------------------------- */

static seen_hash hash_of(const seen_guard *g, const void *key, size_t len)
{
    seen_hash h = seen_hash_siphash13.one(g->secret, key, len);
    if (h.lo == 0) h.lo = 1;
    return h;
}

static struct shard *shard_of(seen_guard *g, seen_hash h)
{
    return &g->shards[h.hi % SHARDS];
}

static void lock_all(seen_guard *g)
{
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&g->shards[i].lock);
}

static void unlock_all(seen_guard *g)
{
    for (size_t i = SHARDS; i-- > 0;)
        pthread_mutex_unlock(&g->shards[i].lock);
}

/* ---- What is remembered ------------------------------------------------- */

static struct memory *bucket_of(const seen_guard *g, const struct shard *s,
                                seen_hash h)
{
    return s->memories + WAYS * seen_reduce(h.lo, g->buckets);
}

/* A miss ahead of `now_ms` is of another clock, and means nothing; a creation ahead
 * of `now_ms` is one that somebody with an older `now_ms` has yet to hear of. */
static bool is_fresh(const seen_guard *g, const struct memory *m,
                     uint64_t now_ms)
{
    uint64_t when = m->when & ~CREATED;
    if (when > now_ms) return m->when & CREATED;
    return m->hash && now_ms - when < g->miss_ms;
}

static struct memory *recall(const seen_guard *g, const struct shard *s,
                             seen_hash h, uint64_t now_ms)
{
    struct memory *m = bucket_of(g, s, h);
    for (size_t i = 0; i < WAYS; i++)
        if (m[i].hash == h.lo && is_fresh(g, &m[i], now_ms)) return &m[i];
    return NULL;
}

/* What may be forgotten first: old ones, then misses, then creations. */
static uint64_t worth(const seen_guard *g, const struct memory *m,
                      uint64_t now_ms)
{
    return is_fresh(g, m, now_ms) ? m->when + 1 : 0;
}

static void remember(const seen_guard *g, struct shard *s, seen_hash h,
                     uint64_t now_ms, uint64_t what)
{
    struct memory *m = bucket_of(g, s, h), *place = m;
    for (size_t i = 0; i < WAYS; i++)
        if (worth(g, &m[i], now_ms) < worth(g, place, now_ms)) place = &m[i];
    for (size_t i = 0; i < WAYS; i++)
        if (m[i].hash == h.lo) place = &m[i];
    if (worth(g, place, now_ms) > CREATED && what != CREATED) return;
    *place = (struct memory){h.lo, now_ms | what};
}

/* ---- Asking ------------------------------------------------------------- */

static bool is_listed(const seen_filter *f, const void *key, size_t len)
{
    seen_listed rule = SEEN_LISTED_NEVER;
    const seen_allowlist *list = seen_allowed(f, &rule);
    return list && rule == SEEN_LISTED_ALWAYS &&
           seen_allowlist_has(list, key, len);
}

static seen_reason judge(const seen_guard *g, const struct shard *s,
                         const void *key, size_t len, seen_hash h,
                         uint64_t now_ms)
{
    if (!g->filter) return SEEN_REASON_LOADING;
    bool maybe = seen_maybe(g->filter, key, len);
    if (!maybe && seen_allowlist_count(g->since))
        maybe = seen_allowlist_has(g->since, key, len);
    if (!maybe) return g->incomplete ? SEEN_REASON_LOADING : SEEN_REASON_ABSENT;
    if (is_listed(g->filter, key, len)) return SEEN_REASON_LISTED;
    const struct memory *m = recall(g, s, h, now_ms);
    if (!m) return SEEN_REASON_MAYBE;
    return m->when & CREATED ? SEEN_REASON_CREATED : SEEN_REASON_MISSED;
}

seen_verdict seen_guard_ask(seen_guard *g, const void *key, size_t len,
                            uint64_t now_ms, seen_reason *why)
{
    if (now_ms > NOW_MAX) now_ms = NOW_MAX;
    seen_hash h = hash_of(g, key, len);
    struct shard *s = shard_of(g, h);
    pthread_mutex_lock(&s->lock);
    seen_reason reason = judge(g, s, key, len, h, now_ms);
    s->count.asked++;
    s->count.open += reason == SEEN_REASON_LOADING;
    s->count.absent += reason == SEEN_REASON_ABSENT;
    s->count.remembered += reason == SEEN_REASON_MISSED;
    s->count.passed += reason < SEEN_REASON_LOADING;
    bool reject = reason > SEEN_REASON_LOADING || (!g->filter && g->closed);
    pthread_mutex_unlock(&s->lock);
    if (why) *why = reason;
    return reject ? SEEN_REJECT : SEEN_ASK;
}

void seen_guard_missed(seen_guard *g, const void *key, size_t len,
                       uint64_t now_ms)
{
    if (now_ms > NOW_MAX) now_ms = NOW_MAX;
    seen_hash h = hash_of(g, key, len);
    struct shard *s = shard_of(g, h);
    pthread_mutex_lock(&s->lock);
    s->count.missed += g->filter && !g->incomplete;
    remember(g, s, h, now_ms, 0);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Creating ----------------------------------------------------------- */

/* Added, and the filter says so: a list of keys that are SEEN_LISTED_NEVER says
 * "never" of a key that is in. */
static bool takes(seen_filter *f, const void *key, size_t len)
{
    return seen_add(f, key, len) == SEEN_OK && seen_maybe(f, key, len);
}

/* With all locks. What the filter cannot take, the list does. */
static seen_status note_created(seen_guard *g, const void *key, size_t len,
                                seen_error *error)
{
    bool in = g->filter && takes(g->filter, key, len);
    if (in && !g->rebuilding) return SEEN_OK;
    seen_status status = seen_allowlist_add(g->since, key, len);
    if (status == SEEN_OK) return SEEN_OK;
    g->lost = true;
    if (!in) g->incomplete = true;
    return seen_fail(
        error, status, "key", "a key of %zu bytes could not be kept (%s): %s",
        len, seen_strerror(status),
        in ? "build the new filter again, from seen_guard_rebuild()"
           : "the guard lets keys pass that its filter does not "
             "have, until the next swap");
}

seen_status seen_guard_created(seen_guard *g, const void *key, size_t len,
                               uint64_t now_ms, seen_error *error)
{
    seen_error_begin(error);
    if (!g) return seen_fail_null(error, "g");
    if (now_ms > NOW_MAX) now_ms = NOW_MAX;
    seen_hash h = hash_of(g, key, len);
    struct shard *s = shard_of(g, h);
    pthread_mutex_lock(&s->lock);
    s->count.created++;
    remember(g, s, h, now_ms, CREATED);
    bool done = g->concurrent && !g->rebuilding && takes(g->filter, key, len);
    pthread_mutex_unlock(&s->lock);
    if (done) return SEEN_OK;
    lock_all(g);
    seen_status status = note_created(g, key, len, error);
    unlock_all(g);
    return status;
}

/* ---- Another filter ----------------------------------------------------- */

void seen_guard_rebuild(seen_guard *g)
{
    lock_all(g);
    g->rebuilding = true;
    g->lost = false;
    unlock_all(g);
}

struct handing_over {
    seen_filter *to;
    seen_allowlist *left; /* what the filter does not take */
    seen_status status;
};

static bool hand_over(void *ctx, const void *key, size_t len)
{
    struct handing_over *h = ctx;
    if (!takes(h->to, key, len))
        h->status = seen_allowlist_add(h->left, key, len);
    return h->status == SEEN_OK;
}

/* With all locks: what was created meanwhile. Keys that the new filter does not
 * take stay in the list; without memory to tell them apart, all of them do. */
static void bring_along(seen_guard *g, seen_filter *filter)
{
    struct handing_over h = {.to = filter};
    h.status = seen_allowlist_new(&h.left, NULL);
    if (h.status != SEEN_OK) return;
    seen_allowlist_each(g->since, hand_over, &h);
    seen_allowlist *unwanted = h.left;
    if (h.status == SEEN_OK) {
        unwanted = g->since;
        g->since = h.left;
    }
    seen_allowlist_free(unwanted);
}

static void sum_up(const seen_guard *g, seen_guard_stats *out)
{
    for (size_t i = 0; i < SHARDS; i++) {
        const seen_guard_stats *c = &g->shards[i].count;
        out->asked += c->asked;
        out->passed += c->passed;
        out->open += c->open;
        out->absent += c->absent;
        out->remembered += c->remembered;
        out->missed += c->missed;
        out->created += c->created;
    }
}

seen_status seen_guard_swap(seen_guard *g, seen_filter *filter,
                            seen_error *error)
{
    seen_info info = {.size = sizeof info};
    seen_error_begin(error);
    if (!g) return seen_fail_null(error, "g");
    if (filter) seen_info_of(filter, &info);
    lock_all(g);
    if (filter && (!g->rebuilding || g->lost)) {
        bool lost = g->rebuilding;
        unlock_all(g);
        return lost ? seen_fail(error, SEEN_NOMEM, "filter",
                                "keys that were created since "
                                "seen_guard_rebuild() could not all be kept: "
                                "rebuild again")
                    : seen_fail(error, SEEN_INVALID, "filter",
                                "no seen_guard_rebuild() since the last swap, "
                                "so keys created meanwhile are not known: "
                                "rebuild again");
    }
    seen_filter *old = g->filter;
    if (filter) bring_along(g, filter);
    g->filter = filter;
    g->concurrent = filter && info.flags & SEEN_CONCURRENT;
    g->fpp = info.fpp;
    g->rebuilding = !filter; /* without one, the next one is on its way */
    g->incomplete = false;
    if (filter) g->lost = false;
    g->swaps++;
    g->before = (seen_guard_stats){0};
    sum_up(g, &g->before);
    unlock_all(g);
    seen_free(old);
    return SEEN_OK;
}

/* ---- Numbers ------------------------------------------------------------ */

/* One lock at a time: it may take a while. */
static uint64_t count_misses(seen_guard *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &g->shards[i];
        pthread_mutex_lock(&s->lock);
        for (uint64_t k = 0; k < g->buckets * WAYS; k++)
            n += s->memories[k].hash && !(s->memories[k].when & CREATED);
        pthread_mutex_unlock(&s->lock);
    }
    return n;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

seen_status seen_guard_stats_of(seen_guard *g, seen_guard_stats *out)
{
    seen_guard_stats s = {0};
    if (!out || !seen_out_ok(&out->size)) return SEEN_INVALID;
    s.misses_now = count_misses(g);
    lock_all(g);
    sum_up(g, &s);
    seen_guard_stats before = g->before;
    bool incomplete = g->filter && g->incomplete;
    s.swaps = g->swaps;
    s.has_filter = g->filter && !incomplete;
    s.fpp_promised = g->fpp;
    unlock_all(g);
    uint64_t missed = s.missed - before.missed;
    uint64_t absent = s.absent - before.absent;
    s.wrong_share = share(missed, s.passed - before.passed);
    s.fpp_measured = share(missed, missed + absent);
    s.rebuild =
        incomplete || (missed >= ENOUGH && s.fpp_measured > 2 * s.fpp_promised);
    return seen_out(&out->size, &s, sizeof s);
}
