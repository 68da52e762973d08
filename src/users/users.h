/*
 * users.h - what a store of users can do. One file has a row of stores.def, or of
 * remote/users.c, the calls here, and what it needs for itself behind the head.
 */
#ifndef SEEN_USERS_INTERNAL_H
#define SEEN_USERS_INTERNAL_H

#include "seen_users.h"

#include "base/base.h"
#include "store/home.h"

enum seen_users_change {
    SEEN_USERS_MARK,
    SEEN_USERS_TAKE
};

/* Arguments have been checked: names, keys, pointers, the right to change, and that this
 * is the process that opened it. The error may be NULL, and need not be filled
 * where the status says it all (users.c). */
struct seen_users_ops {
    seen_status (*close)(struct seen_users *u, seen_error *error);
    /* Close in a child that was forked (home.h); NULL: `close` will do. */
    void (*abandon)(struct seen_users *u);

    /* seen[i]: may have been shown; `repeats`: or has come before. */
    seen_status (*ask)(struct seen_users *u, seen_key user, uint64_t now_ms,
                       seen_keys items, bool repeats, bool *seen,
                       seen_error *error);
    /* Every request gets a status, and a take its indices; answers of those that
     * are not SEEN_OK stay as they were. The error is about the first of these. */
    seen_status (*change)(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now_ms, seen_users_request *r, size_t n,
                          seen_error *error);
    seen_status (*forget)(struct seen_users *u, seen_key user, uint64_t now_ms,
                          seen_keys items, seen_error *error);
    seen_status (*forget_user)(struct seen_users *u, seen_key user,
                               uint64_t now_ms, bool *known, seen_error *error);
    seen_status (*info_of)(struct seen_users *u, seen_key user, uint64_t now_ms,
                           seen_exposure_info *info, seen_error *error);
    seen_status (*record)(struct seen_users *u, seen_key user, void *buf,
                          size_t cap, size_t *len, seen_error *error);

    seen_status (*each)(struct seen_users *u, uint64_t now_ms,
                        bool (*each)(void *ctx, const seen_users_entry *entry),
                        void *ctx, seen_error *error);
    seen_status (*sync)(struct seen_users *u, seen_error *error);
    seen_status (*sweep)(struct seen_users *u, uint64_t now_ms,
                         uint64_t *removed, seen_error *error);
    seen_status (*backup)(struct seen_users *u, const char *dir,
                          seen_error *error);
    seen_status (*stats)(struct seen_users *u, seen_users_stats *stats,
                         seen_error *error);
};

/* None is carried out, because of some: the others get that status. */
SEEN_PRIVATE void seen_users_refuse(seen_users_request *r, size_t n,
                                    seen_status why);

/* What an entry says of a record, its status being that of the info. */
static inline void seen_users_entry_fill(seen_users_entry *e,
                                         const seen_exposure_info *info)
{
    if (e->status != SEEN_OK) return;
    e->generations = info->generations;
    e->items = info->items;
    e->bytes = info->bytes;
    e->newest = info->newest;
    e->fpp_now = info->fpp_now;
    if (info->generations == 0) e->status = SEEN_ABSENT;
}

struct seen_users {
    const struct seen_users_ops *ops;
    struct seen_home home;
    bool writable;
    bool copied;    /* by fork(), all of it: any process may use it */
    uint64_t holds; /* seen_policy_holds(); 0: a server knows */
};

/* Opens "scheme:where"; options have been checked. */
typedef seen_status seen_users_opener(struct seen_users **u, const char *where,
                                      const seen_users_options *options,
                                      seen_outcome *outcome, seen_error *error);

struct seen_users_kind {
    const char *scheme;
    seen_users_opener *open;
};

/* The kind whose scheme a name begins with, "scheme:rest", and the rest. Letters,
 * digits and + before a colon are a scheme; other names are paths, and NULL. */
SEEN_PRIVATE const struct seen_users_kind *
seen_users_kind_of(const struct seen_users_kind *kinds, size_t n,
                   const char *name, const char **rest);

/* Checks the options, opens, waits for a writer. kind NULL: SEEN_UNSUPPORTED, with
 * the sentence `unknown`. `field`: the argument that names the place, which is at
 * fault where an opener names no other. */
SEEN_PRIVATE seen_status seen_users_open_kind(
    seen_users **u, const struct seen_users_kind *kind, const char *rest,
    const seen_users_options *options, const char *field, const char *unknown,
    seen_outcome *outcome, seen_error *error);

#define STORE(scheme, function) seen_users_opener function;
#include "users/stores.def"
#undef STORE

#endif
