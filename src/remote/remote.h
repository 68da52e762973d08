/*
 * remote.h - what a filter on a server can do. One file has a row of remotes.def
 * and these calls.
 */
#ifndef SEEN_REMOTE_INTERNAL_H
#define SEEN_REMOTE_INTERNAL_H

#include "seen_remote.h"

#include "redis/pool.h"

#define SEEN_REMOTE_KEY 640 /* bytes of a key, with what is put behind it */

struct seen_remote {
    const struct seen_remote_ops *ops;
    struct seen_pool pool;
    char key[512];
    uint64_t bits; /* of a string, if `ops` asks for them */
    void *own;     /* of the kind */
};

/* Arguments have been checked: there is a key, and keys have bytes. */
struct seen_remote_ops {
    const char *scheme; /* of URLs */
    bool key_in_path;   /* scheme://host/NAME */
    const char *type;   /* what the server calls the keys; NULL: a module's */
    const char *bits;   /* what bits=M of the URL is; NULL: there is none */
    /* The URL has been read. NULL: nothing to do, a key that is not there is an
     * empty filter. */
    seen_status (*open)(seen_remote *m, const seen_spec *create,
                        seen_outcome *outcome, seen_error *error);
    /* Ask for keys, or add them. there[i] (may be NULL): key i may be there, or
     * was before. */
    seen_status (*send)(seen_remote *m, bool adds, seen_keys keys, bool *there,
                        seen_error *error);
    /* Take keys out; NULL: that cannot be done. there[i]: as above. */
    seen_status (*remove)(seen_remote *m, seen_keys keys, bool *there,
                          seen_error *error);
    seen_status (*info)(seen_remote *m, seen_remote_info *info,
                        seen_error *error);
    /* The i-th key on the server; NULL: the one that is named. */
    bool (*key_at)(const seen_remote *m, uint64_t i, char out[SEEN_REMOTE_KEY]);
    void (*close)(seen_remote *m); /* NULL: nothing to do */
};

/* One command on the key, its arguments being text; the reply is the caller's,
 * seen_redis_done(). */
seen_status seen_remote_do(seen_remote *m, struct seen_command *k, int argc,
                           const char **argv, bool repeatable,
                           seen_error *error);
/* The number, 0 or more, that a command says of the key. */
seen_status seen_remote_number(seen_remote *m, const char *command,
                               uint64_t *out, seen_error *error);
/* Whether a command has found the key: 0 or 1. */
seen_status seen_remote_flag(seen_remote *m, int argc, const char **argv,
                             bool repeatable, bool *out, seen_error *error);
/* A string of bits: is it longer than so many bits can be? *len: its bytes. */
seen_status seen_remote_length(seen_remote *m, uint64_t *len, bool *longer,
                               seen_error *error);
/* What it takes to make one: items and fpp. */
seen_status seen_remote_check_create(const seen_spec *create,
                                     seen_error *error);
/* SEEN_ABSENT, and a sentence. */
seen_status seen_remote_absent(const seen_remote *m, seen_error *error);

#define REMOTE(ops) extern const struct seen_remote_ops ops;
#include "remote/remotes.def"
#undef REMOTE

#endif
