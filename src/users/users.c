/* users.c - the calls of seen_users.h: check the arguments, ask the store. */
#include "users/users.h"

#include "base/base.h"
#include "base/error.h"
#include "store/io.h"
#include "store/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life --------------------------------------------------------------- */

static const struct seen_users_kind kinds[] = {
#define STORE(scheme, function) {scheme, function},
#include "users/stores.def"
#undef STORE
};

static size_t scheme_len(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+");
    return len > 0 && name[len] == ':' ? len : 0;
}

const struct seen_users_kind *
seen_users_kind_of(const struct seen_users_kind *kind, size_t n,
                   const char *name, const char **rest)
{
    size_t len = scheme_len(name);
    for (size_t i = 0; i < n; i++) {
        if (strlen(kind[i].scheme) != len ||
            memcmp(kind[i].scheme, name, len) != 0)
            continue;
        *rest = name + len + 1;
        return &kind[i];
    }
    return NULL;
}

static const char *options_problem(const seen_users_options *o)
{
    for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
        if (o->reserved[i]) return "reserved options are zero";
    if (o->mode > SEEN_DURABLE) return "no such mode";
    if (o->create && o->mode == SEEN_READ)
        return "create requires a writable mode";
    if (o->tail && o->mode != SEEN_READ) return "tail requires SEEN_READ";
    return NULL;
}

seen_status seen_users_open_kind(seen_users **u,
                                 const struct seen_users_kind *kind,
                                 const char *rest,
                                 const seen_users_options *options,
                                 const char *unknown, seen_outcome *outcome,
                                 seen_error *error)
{
    seen_outcome did = {0};
    static const seen_users_options only_read;
    if (!options) options = &only_read;
    if (!seen_outcome_ok(outcome))
        return seen_fail(error, SEEN_INVALID, "outcome",
                         "outcome.size %zu: expected sizeof (seen_outcome)",
                         outcome->size);
    const char *wrong = options_problem(options);
    if (wrong) return seen_fail(error, SEEN_INVALID, NULL, "%s", wrong);
    if (seen_policy_check(options->policy, error) != SEEN_OK)
        return SEEN_INVALID;
    if (!kind) return seen_fail(error, SEEN_UNSUPPORTED, NULL, "%s", unknown);
    seen_status status;
    uint64_t began = 0;
    do {
        seen_error_begin(error);
        status = kind->open(u, rest, options, &did, error);
    } while (status == SEEN_BUSY && seen_io_wait(&began, options->wait_ms));
    if (status == SEEN_OK) {
        (*u)->writable = options->mode != SEEN_READ;
        if (!(*u)->copied) seen_home_settle(&(*u)->home);
        snprintf((*u)->too_many, sizeof(*u)->too_many,
                 "a take of more than %llu items, which is all that the policy "
                 "holds of a user",
                 (unsigned long long)(*u)->holds);
    }
    seen_outcome_tell(outcome, &did);
    return seen_error_end(error, status);
}

seen_status seen_users_open(seen_users **u, const char *where,
                            const seen_users_options *options,
                            seen_outcome *outcome, seen_error *error)
{
    seen_error_begin(error);
    if (!u || !where) return SEEN_INVALID;
    const struct seen_users_kind *kind = kinds;
    if (scheme_len(where))
        kind = seen_users_kind_of(kinds, sizeof kinds / sizeof *kinds, where,
                                  &where);
    return seen_users_open_kind(
        u, kind, where, options,
        strncmp(where, "redis", 5) == 0
            ? "a store on a server: seen_remote_users() opens it"
            : "expected a directory, lmdb:DIR or mem:",
        outcome, error);
}

seen_status seen_users_close(seen_users *u)
{
    if (!u) return SEEN_OK;
    if (!u->ops->abandon || !seen_home_left(&u->home)) return u->ops->close(u);
    u->ops->abandon(u);
    return SEEN_OK;
}

const char *seen_users_problem(const seen_users *u)
{
    if (seen_home_left(&u->home)) return u->home.sentence;
    const char *problem = u->ops->problem(u);
    return !*problem && u->refused ? u->too_many : problem;
}

/* Whenever the store is asked, an earlier refusal is over. */
static const struct seen_users_ops *store_of(seen_users *u)
{
    if (atomic_load_explicit(&u->refused, memory_order_relaxed))
        u->refused = false;
    return u->ops;
}

/* ---- Arguments ---------------------------------------------------------- */

static bool is_user(seen_key user)
{
    return user.data && user.len > 0 && user.len <= SEEN_USER_MAX;
}

static bool is_request(seen_key user, const seen_key *items, size_t n)
{
    return is_user(user) && (items || !n);
}

static bool is_ours(const seen_users *u)
{
    return u && !seen_home_left(&u->home);
}

static seen_status may_ask(const seen_users *u, seen_key user,
                           const seen_key *items, size_t n)
{
    return is_ours(u) && is_request(user, items, n) ? SEEN_OK : SEEN_INVALID;
}

static seen_status may_change(const seen_users *u)
{
    if (!is_ours(u)) return SEEN_INVALID;
    return u->writable ? SEEN_OK : SEEN_UNSUPPORTED;
}

/* ---- One user ----------------------------------------------------------- */

seen_status seen_users_maybe_many(seen_users *u, seen_key user, uint64_t now,
                                  const seen_key *items, size_t n,
                                  bool *answers)
{
    seen_status status = may_ask(u, user, items, n);
    if (status == SEEN_OK && n && !answers) status = SEEN_INVALID;
    if (status != SEEN_OK) return status;
    return store_of(u)->ask(u, user, now, items, n, false, answers);
}

/* A few hundred candidates are the rule: those answers need no memory. */
#define AT_ONCE 4096

seen_status seen_users_fresh(seen_users *u, seen_key user, uint64_t now,
                             seen_key *items, size_t n, size_t *fresh)
{
    bool few[AT_ONCE], *seen = few;
    seen_status status = may_ask(u, user, items, n);
    if (status != SEEN_OK || !fresh) return SEEN_INVALID;
    if (n > AT_ONCE) seen = malloc(n * sizeof *seen);
    if (!seen) return SEEN_NOMEM;
    status = store_of(u)->ask(u, user, now, items, n, true, seen);
    if (status == SEEN_OK) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (!seen[i]) items[kept++] = items[i];
        *fresh = kept;
    }
    if (seen != few) free(seen);
    return status;
}

seen_status seen_users_mark(seen_users *u, seen_key user, uint64_t now,
                            const seen_key *items, size_t n, bool *fresh)
{
    seen_users_request r = {.user = user,
                            .items = (seen_key *)(uintptr_t)items,
                            .n = n,
                            .fresh = fresh};
    return seen_users_mark_many(u, now, &r, 1);
}

seen_status seen_users_take(seen_users *u, seen_key user, uint64_t now,
                            seen_key *items, size_t n, size_t count,
                            size_t *taken)
{
    seen_users_request r = {
        .user = user, .items = items, .n = n, .count = count};
    if (!taken) return SEEN_INVALID;
    seen_status status = seen_users_take_many(u, now, &r, 1);
    if (status == SEEN_OK) *taken = r.taken;
    return status;
}

seen_status seen_users_forget(seen_users *u, seen_key user, uint64_t now,
                              const seen_key *items, size_t n)
{
    seen_status status = may_change(u);
    if (status == SEEN_OK && !is_request(user, items, n)) status = SEEN_INVALID;
    return status == SEEN_OK ? store_of(u)->forget(u, user, now, items, n)
                             : status;
}

seen_status seen_users_forget_user(seen_users *u, seen_key user, uint64_t now,
                                   bool *known)
{
    seen_status status = may_change(u);
    bool was = false;
    if (status == SEEN_OK && !is_user(user)) status = SEEN_INVALID;
    if (status == SEEN_OK)
        status = store_of(u)->forget_user(u, user, now, &was);
    if (status == SEEN_OK && known) *known = was;
    return status;
}

seen_status seen_users_info_of(seen_users *u, seen_key user, uint64_t now,
                               seen_exposure_info *info)
{
    seen_status status = may_ask(u, user, NULL, 0);
    if (status != SEEN_OK || !info) return SEEN_INVALID;
    return store_of(u)->info_of(u, user, now, info);
}

seen_status seen_users_record(seen_users *u, seen_key user, void *buf,
                              size_t cap, size_t *len)
{
    seen_status status = may_ask(u, user, NULL, 0);
    if (status != SEEN_OK || !len || (cap && !buf)) return SEEN_INVALID;
    return store_of(u)->record(u, user, buf, cap, len);
}

/* ---- Many users --------------------------------------------------------- */

void seen_users_refuse(seen_users_request *r, size_t n, seen_status why)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].status == SEEN_OK) r[i].status = why;
        r[i].taken = 0;
    }
}

/* What a take gives must be remembered, or it would be given again. */
static seen_status may_take(seen_users *u, size_t most)
{
    if (!u->holds || most <= u->holds) return SEEN_OK;
    u->refused = true;
    return SEEN_INVALID;
}

/* Bad requests are found before any is carried out. */
static seen_status change(seen_users *u, enum seen_users_change kind,
                          uint64_t now, seen_users_request *r, size_t n)
{
    seen_status status = may_change(u);
    if (n && !r) return status ? status : SEEN_INVALID;
    for (size_t i = 0; i < n; i++)
        r[i].status = status;
    if (status != SEEN_OK) return status;
    for (size_t i = 0; i < n; i++) {
        if (!is_request(r[i].user, r[i].items, r[i].n))
            r[i].status = SEEN_INVALID;
        if (r[i].status == SEEN_OK && kind == SEEN_USERS_TAKE)
            r[i].status =
                may_take(u, r[i].count < r[i].n ? r[i].count : r[i].n);
        if (status == SEEN_OK) status = r[i].status;
    }
    if (status != SEEN_OK) seen_users_refuse(r, n, status);
    return status != SEEN_OK || n == 0
               ? status
               : store_of(u)->change(u, kind, now, r, n);
}

seen_status seen_users_mark_many(seen_users *u, uint64_t now,
                                 seen_users_request *r, size_t n)
{
    return change(u, SEEN_USERS_MARK, now, r, n);
}

seen_status seen_users_take_many(seen_users *u, uint64_t now,
                                 seen_users_request *r, size_t n)
{
    return change(u, SEEN_USERS_TAKE, now, r, n);
}

/* ---- The whole store ---------------------------------------------------- */

seen_status seen_users_each(seen_users *u, uint64_t now,
                            bool (*each)(void *ctx,
                                         const seen_users_entry *entry),
                            void *ctx)
{
    return is_ours(u) && each ? store_of(u)->each(u, now, each, ctx)
                              : SEEN_INVALID;
}

seen_status seen_users_sync(seen_users *u)
{
    if (!is_ours(u)) return SEEN_INVALID;
    return u->writable ? store_of(u)->sync(u) : SEEN_OK;
}

seen_status seen_users_sweep(seen_users *u, uint64_t now, uint64_t *removed)
{
    uint64_t gone = 0;
    seen_status status = may_change(u);
    if (status == SEEN_OK) status = store_of(u)->sweep(u, now, &gone);
    if (status == SEEN_OK && removed) *removed = gone;
    return status;
}

seen_status seen_users_backup(seen_users *u, const char *dir, seen_error *error)
{
    seen_error_begin(error);
    if (!u || !dir) return SEEN_INVALID;
    if (!is_ours(u))
        return seen_fail(error, SEEN_INVALID, NULL, "%s", u->home.sentence);
    seen_status status = store_of(u)->backup(u, dir, error);
    if (status != SEEN_OK)
        seen_fail(error, status, NULL, "%s", seen_strerror(status));
    return status;
}

seen_status seen_users_stats_of(seen_users *u, seen_users_stats *stats)
{
    return is_ours(u) && stats ? store_of(u)->stats(u, stats) : SEEN_INVALID;
}
