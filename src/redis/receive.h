/*
 * receive.h - replies come in here, within bounds: a server may send anything, and
 * as slowly as it likes.
 */
#ifndef SEEN_REDIS_RECEIVE_H
#define SEEN_REDIS_RECEIVE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any array may have so many elements; more, if so many were asked for. */
#define SEEN_RECEIVE_ELEMENTS 65536

/* Of one connection, for as long as it lasts. */
struct seen_receiver {
    redisContext *conn;
    uint64_t timeout_ms;
    redisReplyObjectFunctions functions, standard;
    size_t elements;   /* of an array, at most */
    char problem[128]; /* why there is no reply */
    int os_errno;      /* of the socket; 0: it did not fail */
    bool nonsense;     /* what came is no reply */
};

/* timeout_ms, 1 or more, is what SO_RCVTIMEO and SO_SNDTIMEO of the socket become. */
void seen_receive_begin(struct seen_receiver *r, redisContext *conn,
                        uint64_t timeout_ms);
/* Sends what was appended; the next reply, which is the caller's. NULL: the
 * connection is of no use any more, r->problem says why. A reply must have come to
 * its end within timeout_ms from here, or from when everything is sent; each 64 KiB
 * must be sent in that time. So a call ends, and a long pipeline that goes on may
 * take as long as it needs. */
redisReply *seen_receive(struct seen_receiver *r);

/* Milliseconds of a clock that nobody sets. */
uint64_t seen_receive_clock(void);

#endif
