/*
 * client.h - commands to a Redis or Valkey server, or to a cluster of them.
 *
 * Commands go out in batches: all that belong to one node in one pipeline, then
 * the replies are read. What happens when something goes wrong:
 *
 *     -MOVED, -ASK      another node has the slot: there, and the map of slots is
 *                       asked for anew. (A server that has none is alone)
 *     -TRYAGAIN, -CLUSTERDOWN, -LOADING, -READONLY, -MASTERDOWN, -NOREPLICAS, -BUSY
 *                       not now: again in a moment, for a few seconds
 *     -NOSCRIPT         the node gets the script's text, and the command again
 *     connection lost   repeatable commands again, on a new connection; others
 *                       are SEEN_IO: nobody knows whether they happened
 *     other errors      SEEN_IO, and the server's sentence
 *
 * A command that has no reply has no answer. In particular a question that could
 * not be asked is never a "no".
 *
 * One thread at a time.
 */
#ifndef SEEN_REDIS_CLIENT_H
#define SEEN_REDIS_CLIENT_H

#include "redis/url.h"

struct redisReply;

typedef struct seen_redis seen_redis;

struct seen_command {
    int argc;
    const char **argv;
    const size_t *len;
    int key;            /* which argument is the key; 0: any node */
    uint16_t primary;   /* the one that it is for; 0: who has the key */
    bool repeatable;    /* doing it twice is as doing it once */
    const char *script; /* EVALSHA: the text that the digest stands for */
    /* Instead of argc, argv and len: as it goes out (wire.h). `key` then is where
     * in it the key begins. */
    const char *wire;
    size_t wire_len, key_len;

    struct redisReply *reply; /* NULL unless SEEN_OK */
    seen_status status;
    /* For the client: */
    uint16_t node;
    bool asking, pending, unknown;
};

/* user, password, host and port of the URL; and its parameters timeout (ms, from
 * when a reply is waited for to its last byte, and to connect: 5000) and patience
 * (ms, until a command is not tried again: 10000). */
seen_status seen_redis_open(seen_redis **c, struct seen_url *url, uint32_t db,
                            seen_error *error);
void seen_redis_close(seen_redis *c);
/* The end of patience that begins now; and a moment's rest, unless it is over. */
uint64_t seen_redis_patience(struct seen_url *url);
bool seen_redis_rest(uint64_t until);

/* Each command gets a status and, if SEEN_OK, a reply that is no error. Gives the
 * status of the first command that is not SEEN_OK, and its sentence. */
seen_status seen_redis_run(seen_redis *c, struct seen_command *commands,
                           size_t n, seen_error *error);
/* Of all commands: give the replies back. */
void seen_redis_done(struct seen_command *commands, size_t n);

/* Who has slots now, for seen_command.primary; a server that is alone has them
 * all. */
#define SEEN_REDIS_PRIMARIES 256
struct seen_primaries {
    size_t n;
    uint16_t at[SEEN_REDIS_PRIMARIES];
    uint32_t map; /* another one when slots have moved */
};
seen_status seen_redis_primaries(seen_redis *c, struct seen_primaries *out,
                                 seen_error *error);

/* The slot of a key, 0 .. 16383: of what stands between { and }, if anything. */
uint16_t seen_redis_slot(const void *key, size_t len);

#endif
