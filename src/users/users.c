/* users.c - the calls of seen_users.h: check the arguments, ask the store. */
#include "users/users.h"

#include "base/base.h"
#include "base/error.h"
#include "base/out.h"
#include "exposure/exposure.h"
#include "store/io.h"
#include "store/outcome.h"

#include <errno.h>
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

static seen_status check_options(const seen_users_options *o, seen_error *error)
{
    if (seen_check_reserved(o->reserved, sizeof o->reserved,
                            sizeof *o->reserved, "options.reserved",
                            error) != SEEN_OK)
        return SEEN_INVALID;
    if (o->mode > SEEN_DURABLE)
        return seen_fail(error, SEEN_INVALID, "options.mode",
                         "options.mode %u: expected SEEN_READ, SEEN_WRITE or "
                         "SEEN_DURABLE",
                         (unsigned)o->mode);
    if (o->create && o->mode == SEEN_READ)
        return seen_fail(error, SEEN_INVALID, "options.create",
                         "options.create: requires SEEN_WRITE or SEEN_DURABLE");
    if (o->tail && o->mode != SEEN_READ)
        return seen_fail(error, SEEN_INVALID, "options.tail",
                         "options.tail: requires SEEN_READ");
    return seen_policy_check(o->policy, error);
}

seen_status seen_users_open_kind(seen_users **u,
                                 const struct seen_users_kind *kind,
                                 const char *rest,
                                 const seen_users_options *options,
                                 const char *field, const char *unknown,
                                 seen_outcome *outcome, seen_error *error)
{
    seen_outcome did = {0};
    static const seen_users_options only_read;
    if (!options) options = &only_read;
    if (!seen_outcome_ok(outcome))
        return seen_fail(error, SEEN_INVALID, "outcome",
                         "outcome.size %zu: expected sizeof (seen_outcome)",
                         outcome->size);
    seen_status status = check_options(options, error);
    if (status != SEEN_OK) return status;
    if (!kind) return seen_fail(error, SEEN_UNSUPPORTED, field, "%s", unknown);
    uint64_t began = 0;
    do {
        seen_error_begin(error);
        status = kind->open(u, rest, options, &did, error);
    } while (status == SEEN_BUSY && seen_io_wait(&began, options->wait_ms));
    if (status == SEEN_OK) {
        (*u)->writable = options->mode != SEEN_READ;
        if (!(*u)->copied) seen_home_settle(&(*u)->home);
    }
    seen_outcome_tell(outcome, &did);
    seen_error_end(error, status);
    bool place = status != SEEN_OK && status != SEEN_NOMEM;
    if (place && error && !error->field) error->field = field;
    return status;
}

seen_status seen_users_open(seen_users **u, const char *where,
                            const seen_users_options *options,
                            seen_outcome *outcome, seen_error *error)
{
    seen_error_begin(error);
    if (!u || !where)
        return seen_fail(error, SEEN_INVALID, u ? "where" : "u",
                         "%s is NULL: expected %s", u ? "where" : "u",
                         u ? "a directory, lmdb:DIR or mem:" : "a place");
    const struct seen_users_kind *kind = kinds;
    if (scheme_len(where))
        kind = seen_users_kind_of(kinds, sizeof kinds / sizeof *kinds, where,
                                  &where);
    return seen_users_open_kind(
        u, kind, where, options, "where",
        strncmp(where, "redis", 5) == 0
            ? "a store on a server: seen_remote_users() opens it"
            : "expected a directory, lmdb:DIR or mem:",
        outcome, error);
}

/* ---- Arguments ---------------------------------------------------------- */

static seen_status check_store(const seen_users *u, seen_error *error)
{
    if (!u)
        return seen_fail(error, SEEN_INVALID, "u",
                         "u is NULL: expected a store that is open");
    if (!seen_home_left(&u->home)) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "u", "%s", u->home.sentence);
}

static seen_status check_writable(const seen_users *u, seen_error *error)
{
    seen_status status = check_store(u, error);
    if (status != SEEN_OK || u->writable) return status;
    return seen_fail(error, SEEN_UNSUPPORTED, "u",
                     "the store was opened with SEEN_READ: expected SEEN_WRITE "
                     "or SEEN_DURABLE");
}

static seen_status check_user(seen_key user, seen_error *error)
{
    if (user.data && user.len > 0 && user.len <= SEEN_USER_MAX) return SEEN_OK;
    if (!user.data && user.len > 0)
        return seen_fail(error, SEEN_INVALID, "user",
                         "user.data is NULL: expected %zu bytes", user.len);
    return seen_fail(error, SEEN_INVALID, "user",
                     "user of %zu bytes: expected 1 to %d", user.len,
                     SEEN_USER_MAX);
}

static seen_status null_argument(const char *name, seen_error *error)
{
    return seen_fail(error, SEEN_INVALID, name,
                     "%s is NULL: expected a pointer", name);
}

static seen_status check_items(seen_keys items, seen_error *error)
{
    seen_status status = seen_exposure_check(items);
    if (status == SEEN_UNSUPPORTED)
        seen_fail(error, status, "items",
                  "items are hashes: expected keys, as the store hashes with a "
                  "secret of its own");
    else if (status != SEEN_OK)
        seen_fail(error, status, "items",
                  "items of layout %d: expected pointers that are not NULL, a "
                  "stride above 0, offsets that rise within len, and reserved "
                  "0 (see seen_keys)",
                  (int)items.layout);
    return status;
}

/* What every question about a user needs. */
static seen_status begin(const seen_users *u, seen_key user, seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_store(u, error);
    return status == SEEN_OK ? check_user(user, error) : status;
}

/* And every change. */
static seen_status begin_change(const seen_users *u, seen_key user,
                                seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_writable(u, error);
    return status == SEEN_OK ? check_user(user, error) : status;
}

/* ---- Errors ------------------------------------------------------------- */

/* What nobody explained: errno has it, or the status says all there is. */
static seen_status end(seen_error *error, seen_status status)
{
    if (status == SEEN_IO && errno) seen_fail_io(error, NULL, "store");
    return seen_error_end(error, status);
}

/* The same of one user, whose record may be at fault. */
static seen_status end_of_user(seen_error *error, seen_status status)
{
    if (status == SEEN_CORRUPT)
        seen_fail(error, status, "user",
                  "user: the record is damaged: forget the user, and begin "
                  "anew");
    if (status == SEEN_MISMATCH)
        seen_fail(error, status, "user",
                  "user: the record was written under another secret");
    if (status == SEEN_NEWER)
        seen_fail(error, status, "user",
                  "user: the record was written by a newer version");
    if (status == SEEN_ABSENT)
        seen_fail(error, status, "user", "user: has no unexpired marks");
    return end(error, status);
}

/* A name for people, between quotes: bytes that are not for terminals, and the
 * quote itself, as \xHH. */
static void show_user(seen_key user, char *out, size_t cap)
{
    const uint8_t *name = user.data;
    size_t at = 0;
    for (size_t i = 0; name && i < user.len && i < SEEN_USER_MAX; i++) {
        bool plain = name[i] >= ' ' && name[i] < 0x7f && name[i] != '"' &&
                     name[i] != '\\';
        if (at + 8 > cap) {
            snprintf(out + at, cap - at, "...");
            return;
        }
        at += (size_t)snprintf(out + at, cap - at, plain ? "%c" : "\\x%02x",
                               name[i]);
    }
    out[at] = '\0';
}

/* Of several requests, which one it was. */
static void name_request(seen_error *error, size_t i, seen_key user)
{
    char name[72] = "", text[sizeof error->text];
    if (!error) return;
    show_user(user, name, sizeof name);
    memcpy(text, error->text, sizeof text);
    snprintf(error->text, sizeof error->text,
             "request %zu, user \"%s\": %.350s", i, name, text);
}

/* ---- Closing ------------------------------------------------------------ */

seen_status seen_users_close(seen_users *u, seen_error *error)
{
    seen_error_begin(error);
    if (!u) return SEEN_OK;
    if (!u->ops->abandon || !seen_home_left(&u->home))
        return end(error, u->ops->close(u, error));
    u->ops->abandon(u);
    return SEEN_OK;
}

/* ---- One user ----------------------------------------------------------- */

seen_status seen_users_maybe_many(seen_users *u, seen_key user, uint64_t now_ms,
                                  seen_keys items, bool *answers,
                                  seen_error *error)
{
    seen_status status = begin(u, user, error);
    if (status == SEEN_OK) status = check_items(items, error);
    if (status == SEEN_OK && items.n && !answers)
        status = null_argument("answers", error);
    if (status == SEEN_OK)
        status = u->ops->ask(u, user, now_ms, items, false, answers, error);
    return end_of_user(error, status);
}

/* A few hundred candidates are the rule: those answers need no memory. */
#define AT_ONCE 4096

seen_status seen_users_fresh(seen_users *u, seen_key user, uint64_t now_ms,
                             seen_keys items, size_t *fresh, size_t *n,
                             seen_error *error)
{
    bool few[AT_ONCE], *seen = few;
    seen_status status = begin(u, user, error);
    if (status == SEEN_OK) status = check_items(items, error);
    if (status == SEEN_OK && (!n || (items.n && !fresh)))
        status = null_argument(n ? "fresh" : "n", error);
    if (status != SEEN_OK) return status;
    if (items.n > AT_ONCE) seen = malloc(items.n * sizeof *seen);
    if (!seen) return end(error, SEEN_NOMEM);
    status = u->ops->ask(u, user, now_ms, items, true, seen, error);
    if (status == SEEN_OK)
        *n = seen_fresh_indices(seen, items.n, items.n, fresh);
    if (seen != few) free(seen);
    return end_of_user(error, status);
}

seen_status seen_users_forget(seen_users *u, seen_key user, uint64_t now_ms,
                              seen_keys items, seen_error *error)
{
    seen_status status = begin_change(u, user, error);
    if (status == SEEN_OK) status = check_items(items, error);
    if (status == SEEN_OK)
        status = u->ops->forget(u, user, now_ms, items, error);
    return end_of_user(error, status);
}

seen_status seen_users_forget_user(seen_users *u, seen_key user,
                                   uint64_t now_ms, bool *known,
                                   seen_error *error)
{
    bool was = false;
    seen_status status = begin_change(u, user, error);
    if (status == SEEN_OK)
        status = u->ops->forget_user(u, user, now_ms, &was, error);
    if (status == SEEN_OK && known) *known = was;
    return end_of_user(error, status);
}

seen_status seen_users_info_of(seen_users *u, seen_key user, uint64_t now_ms,
                               seen_exposure_info *info, seen_error *error)
{
    seen_status status = begin(u, user, error);
    if (status == SEEN_OK && !info) status = null_argument("info", error);
    if (status == SEEN_OK && !seen_out_ok(&info->size))
        status = seen_fail(
            error, SEEN_INVALID, "info.size",
            "info.size %zu: expected sizeof (seen_exposure_info)", info->size);
    seen_exposure_info ours = {.size = sizeof ours};
    if (status == SEEN_OK)
        status = u->ops->info_of(u, user, now_ms, &ours, error);
    if (status == SEEN_OK) seen_out(&info->size, &ours, sizeof ours);
    return end_of_user(error, status);
}

seen_status seen_users_record(seen_users *u, seen_key user, void *buf,
                              size_t cap, size_t *len, seen_error *error)
{
    seen_status status = begin(u, user, error);
    if (status == SEEN_OK && (!len || (cap && !buf)))
        status = null_argument(len ? "buf" : "len", error);
    if (status == SEEN_OK)
        status = u->ops->record(u, user, buf, cap, len, error);
    if (status == SEEN_SHORT)
        seen_fail(error, status, "cap", "cap %zu: the record has %zu bytes",
                  cap, *len);
    return end_of_user(error, status);
}

/* ---- Many users --------------------------------------------------------- */

void seen_users_refuse(seen_users_request *r, size_t n, seen_status why)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].status == SEEN_OK) r[i].status = why;
        r[i].n_taken = 0;
    }
}

/* What a take gives must be remembered, or it would be given again. */
static seen_status check_request(const seen_users *u,
                                 enum seen_users_change kind,
                                 const seen_users_request *r, seen_error *error)
{
    seen_status status = check_user(r->user, error);
    if (status == SEEN_OK) status = check_items(r->items, error);
    if (status == SEEN_OK)
        status = seen_check_reserved(r->reserved, sizeof r->reserved,
                                     sizeof *r->reserved, "reserved", error);
    if (status != SEEN_OK || kind != SEEN_USERS_TAKE) return status;
    size_t most = r->count < r->items.n ? r->count : r->items.n;
    if (most && !r->taken) return null_argument("taken", error);
    if (!u->holds || most <= u->holds) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "count",
                     "count %zu: the policy holds %llu items of a user: take "
                     "fewer, or raise policy.items or policy.generations",
                     most, (unsigned long long)u->holds);
}

/* Bad requests are found before any is carried out. *first: the request that the
 * error is about. */
static seen_status check_requests(const seen_users *u,
                                  enum seen_users_change kind,
                                  seen_users_request *r, size_t n,
                                  size_t *first, seen_error *error)
{
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < n; i++) {
        r[i].status = check_request(u, kind, &r[i], error);
        if (status != SEEN_OK || r[i].status == SEEN_OK) continue;
        status = r[i].status;
        *first = i;
    }
    if (status != SEEN_OK) seen_users_refuse(r, n, status);
    return status;
}

/* Marks that push out others of the same call were in vain: the caller should know,
 * though nothing failed. (A take is refused, check_request().) */
static void warn_beyond(const seen_users *u, const seen_users_request *r,
                        size_t n, seen_error *error)
{
    if (!error || error->text[0] || !u->holds) return;
    for (size_t i = 0; i < n; i++) {
        if (r[i].items.n <= u->holds) continue;
        seen_warn(error, "items",
                  "items: %zu, and the policy holds %llu of a user: of those "
                  "that differ, the first were pushed out and are fresh again; "
                  "mark fewer, or raise policy.items or policy.generations",
                  r[i].items.n, (unsigned long long)u->holds);
        if (n > 1) name_request(error, i, r[i].user);
        return;
    }
}

static seen_status change(seen_users *u, enum seen_users_change kind,
                          uint64_t now_ms, seen_users_request *r, size_t n,
                          seen_error *error)
{
    size_t first = 0;
    seen_error_begin(error);
    seen_status status = check_writable(u, error);
    if (n && !r) return status ? status : null_argument("r", error);
    for (size_t i = 0; i < n; i++)
        r[i].status = status;
    if (status != SEEN_OK || n == 0) return status;
    status = check_requests(u, kind, r, n, &first, error);
    if (status == SEEN_OK) {
        status = u->ops->change(u, kind, now_ms, r, n, error);
        for (first = 0; first < n && r[first].status == SEEN_OK;)
            first++;
    }
    status = end_of_user(error, status);
    if (status != SEEN_OK && n > 1 && first < n)
        name_request(error, first, r[first].user);
    if (status == SEEN_OK && kind == SEEN_USERS_MARK)
        warn_beyond(u, r, n, error);
    return status;
}

seen_status seen_users_mark_many(seen_users *u, uint64_t now_ms,
                                 seen_users_request *r, size_t n,
                                 seen_error *error)
{
    return change(u, SEEN_USERS_MARK, now_ms, r, n, error);
}

seen_status seen_users_take_many(seen_users *u, uint64_t now_ms,
                                 seen_users_request *r, size_t n,
                                 seen_error *error)
{
    return change(u, SEEN_USERS_TAKE, now_ms, r, n, error);
}

seen_status seen_users_mark(seen_users *u, seen_key user, uint64_t now_ms,
                            seen_keys items, bool *fresh, seen_error *error)
{
    seen_users_request r = {.user = user, .items = items, .fresh = fresh};
    return change(u, SEEN_USERS_MARK, now_ms, &r, 1, error);
}

seen_status seen_users_take(seen_users *u, seen_key user, uint64_t now_ms,
                            seen_keys items, size_t count, size_t *taken,
                            size_t *n, seen_error *error)
{
    seen_users_request r = {
        .user = user, .items = items, .count = count, .taken = taken};
    if (!n) {
        seen_error_begin(error);
        return null_argument("n", error);
    }
    seen_status status = change(u, SEEN_USERS_TAKE, now_ms, &r, 1, error);
    if (status == SEEN_OK) *n = r.n_taken;
    return status;
}

/* ---- The whole store ---------------------------------------------------- */

seen_status seen_users_each(seen_users *u, uint64_t now_ms,
                            bool (*each)(void *ctx,
                                         const seen_users_entry *entry),
                            void *ctx, seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_store(u, error);
    if (status == SEEN_OK && !each) status = null_argument("each", error);
    if (status == SEEN_OK) status = u->ops->each(u, now_ms, each, ctx, error);
    return end(error, status);
}

seen_status seen_users_sync(seen_users *u, seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_store(u, error);
    if (status == SEEN_OK && u->writable) status = u->ops->sync(u, error);
    return end(error, status);
}

seen_status seen_users_sweep(seen_users *u, uint64_t now_ms, uint64_t *removed,
                             seen_error *error)
{
    uint64_t gone = 0;
    seen_error_begin(error);
    seen_status status = check_writable(u, error);
    if (status == SEEN_OK) status = u->ops->sweep(u, now_ms, &gone, error);
    if (status == SEEN_OK && removed) *removed = gone;
    return end(error, status);
}

seen_status seen_users_backup(seen_users *u, const char *dir, seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_store(u, error);
    if (status == SEEN_OK && !dir) status = null_argument("dir", error);
    if (status == SEEN_OK) status = u->ops->backup(u, dir, error);
    return end(error, status);
}

seen_status seen_users_stats_of(seen_users *u, seen_users_stats *stats,
                                seen_error *error)
{
    seen_error_begin(error);
    seen_status status = check_store(u, error);
    if (status == SEEN_OK && !stats) status = null_argument("stats", error);
    if (status == SEEN_OK && !seen_out_ok(&stats->size))
        status = seen_fail(error, SEEN_INVALID, "stats.size",
                           "stats.size %zu: expected sizeof (seen_users_stats)",
                           stats->size);
    seen_users_stats ours = {0};
    if (status == SEEN_OK) status = u->ops->stats(u, &ours, error);
    if (status == SEEN_OK) seen_out(&stats->size, &ours, sizeof ours);
    return end(error, status);
}
