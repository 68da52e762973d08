/*
 * remote.h - what a filter on a server can do. One file has a row of remotes.def
 * and these calls.
 */
#ifndef SEEN_REMOTE_INTERNAL_H
#define SEEN_REMOTE_INTERNAL_H

#include "seen_remote.h"

#include "redis/pool.h"

struct seen_remote {
    const struct seen_remote_ops *ops;
    struct seen_pool pool;
    char key[512];
};

/* Arguments have been checked, n is at least 1. */
struct seen_remote_ops {
    const char *scheme; /* of URLs */
    /* The pool is open, and `key` is there; what else the URL says. */
    seen_status (*open)(seen_remote *m, const seen_spec *create,
                        seen_store_report *r);
    seen_status (*maybe)(seen_remote *m, const seen_key *keys, size_t n,
                         bool *answers);
    seen_status (*add)(seen_remote *m, const seen_key *keys, size_t n,
                       bool *fresh);
    seen_status (*info)(seen_remote *m, seen_remote_info *info);
};

#define REMOTE(ops) extern const struct seen_remote_ops ops;
#include "remote/remotes.def"
#undef REMOTE

#endif
