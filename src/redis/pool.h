/*
 * pool.h - connections for any number of threads: each call takes one, or makes
 * one, and gives it back.
 */
#ifndef SEEN_REDIS_POOL_H
#define SEEN_REDIS_POOL_H

#include "redis/client.h"
#include "redis/reply.h"
#include "store/home.h"

#include <pthread.h>

#define SEEN_DIGEST 41 /* of a script, in hex, and a NUL */

struct seen_connection {
    struct seen_connection *next;
    seen_redis *client;
};

struct seen_pool {
    struct seen_home home; /* two processes on one connection would get each
                              other's replies */
    struct seen_url url;
    uint32_t db;
    pthread_mutex_t lock;
    struct seen_connection *idle;
    bool reached; /* a connection was made once: later ones are waited for */
};

/* Of what follows the scheme. The path is the number of a database; or a key,
 * where the caller takes one there and no parameter `key` is given. A password may
 * be in a file: password-file=PATH. The parameters of connections count as used. */
seen_status seen_pool_open(struct seen_pool *p, const char *rest,
                           bool key_in_path, seen_error *error);
/* Also of one that could not be opened, and in a child that was forked: what is
 * idle is whole at any time. */
void seen_pool_close(struct seen_pool *p);

/* SEEN_INVALID: in another process. */
seen_status seen_pool_take(struct seen_pool *p,
                           struct seen_connection **connection,
                           seen_error *error);
void seen_pool_return(struct seen_pool *p, struct seen_connection *connection);

/* seen_redis_run() on one of them. */
seen_status seen_pool_run(struct seen_pool *p, struct seen_command *commands,
                          size_t n, seen_error *error);
/* The digest of a script, which a node knows then; seen_command.script is for the
 * others, and for those that forget it. */
seen_status seen_pool_script(struct seen_pool *p, const char *text,
                             char digest[SEEN_DIGEST], seen_error *error);
/* A reply is not what was expected: SEEN_CORRUPT. */
seen_status seen_pool_strange(const char *command,
                              const struct redisReply *reply,
                              const char *expected, seen_error *error);

#endif
