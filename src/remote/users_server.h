/*
 * users_server.h - users who are keys of a server, a prefix and the name each: what
 * users_redis.c and users_list.c have in common.
 */
#ifndef SEEN_REMOTE_USERS_SERVER_H
#define SEEN_REMOTE_USERS_SERVER_H

#include "seen_remote.h"

#include "users/users.h"

#include "base/error.h"
#include "redis/pool.h"

#define SEEN_PREFIX_MAX 256

seen_users_opener seen_remote_users_redis, seen_remote_users_list;

struct seen_server {
    struct seen_users head;
    const struct seen_server_reader *reader;
    struct seen_pool pool;
    char prefix[SEEN_PREFIX_MAX];
    seen_policy policy; /* of all users; zeros: the server has one for each */
};

/* Connects. prefix=P counts as used; `standard` if it is not given. */
seen_status seen_server_open(struct seen_server *m, const char *where,
                             const char *standard, seen_error *error);

/* ---- Commands ----------------------------------------------------------- */

/* A command with its arguments, in memory of its own. */
struct seen_server_command {
    struct seen_command k;
    const char **argv;
    size_t *len;
    char *key;    /* prefix and user */
    char *packed; /* for whoever fills it */
    char number[2][24];
};

#define SEEN_COMMAND_WORDS 12 /* arguments beside those that are counted */

/* Room for so many more arguments, and the key; false: no memory. */
bool seen_command_begin(struct seen_server_command *o,
                        const struct seen_server *m, seen_key user,
                        size_t more);
void seen_command_add(struct seen_server_command *o, const void *bytes,
                      size_t len);
void seen_command_text(struct seen_server_command *o, const char *text);
void seen_command_key(struct seen_server_command *o,
                      const struct seen_server *m, seen_key user);

/* Sends them all; each has a status then, and if SEEN_OK a reply. The error is
 * about the first that has none. */
seen_status seen_commands_run(struct seen_server *m,
                              struct seen_server_command *o, size_t n,
                              seen_error *error);
/* Gives back all of it, also the array. */
void seen_commands_done(struct seen_server_command *o, size_t n);

/* ---- Items --------------------------------------------------------------- */

/* Items as pointers and lengths; `made` where they did not lie so. */
struct seen_pairs {
    const seen_key *at;
    seen_key *made;
};

bool seen_pairs_make(struct seen_pairs *p, seen_keys items); /* or no memory */
void seen_pairs_free(struct seen_pairs *p);

/* ---- All users ---------------------------------------------------------- */

/* How to ask for a user, and what the reply is. */
struct seen_server_reader {
    const char *type; /* of the keys, as TYPE says it */
    bool (*put)(struct seen_server_command *o, const struct seen_server *m,
                seen_key user);
    /* The key has gone meanwhile; NULL: that cannot be told. */
    bool (*gone)(const struct redisReply *reply);
    /* Fills in the rest of an entry, its status first. SEEN_ABSENT where there
     * is nothing any more. */
    void (*read)(const struct seen_server *m, const struct redisReply *reply,
                 uint64_t now_ms, seen_users_entry *e);
};

/* ---- What is the same of all of them ------------------------------------- */

/* In a table of operations. Closes also what could not be opened. */
#define SEEN_SERVER_OPS                                                        \
    .close = seen_server_close, .each = seen_server_each,                      \
    .sync = seen_server_sync, .sweep = seen_server_sweep,                      \
    .backup = seen_server_backup, .stats = seen_server_stats

seen_status seen_server_close(struct seen_users *u, seen_error *error);
seen_status seen_server_each(struct seen_users *u, uint64_t now_ms,
                             bool (*each)(void *ctx,
                                          const seen_users_entry *entry),
                             void *ctx, seen_error *error);
seen_status seen_server_sync(struct seen_users *u, seen_error *error);
seen_status seen_server_sweep(struct seen_users *u, uint64_t now_ms,
                              uint64_t *removed, seen_error *error);
seen_status seen_server_backup(struct seen_users *u, const char *dir,
                               seen_error *error);
seen_status seen_server_stats(struct seen_users *u, seen_users_stats *stats,
                              seen_error *error);

#endif
