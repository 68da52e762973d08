/*
 * receive.h - replies come in here, within bounds: a server may send anything.
 */
#ifndef SEEN_REDIS_RECEIVE_H
#define SEEN_REDIS_RECEIVE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* Any array may have so many elements; more, if so many were asked for. */
#define SEEN_RECEIVE_ELEMENTS 65536

/* Of one connection, for as long as it lasts. */
struct seen_receiver {
    redisContext *conn;
    redisReplyObjectFunctions functions, standard;
    size_t elements;   /* of an array, at most */
    char problem[128]; /* why there is no reply */
    bool late;         /* because there was none in time */
    bool nonsense;     /* because what came is none */
};

void seen_receive_begin(struct seen_receiver *r, redisContext *conn);
/* Sends what was appended; the next reply, which is the caller's. NULL: the
 * connection is of no use any more, r->problem says why. */
redisReply *seen_receive(struct seen_receiver *r);

#endif
