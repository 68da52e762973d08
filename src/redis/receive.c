/*
 * receive.c - see receive.h.
 *
 * hiredis makes an array as soon as it has read how many elements will come:
 * "*2147483647" takes 16 GiB. Newer versions nest arrays without end, and free
 * them by recursion. And a string is read for as long as there is more of it.
 * Therefore the function that makes arrays asks here first, and the bytes of a
 * reply are counted.
 *
 * The socket's own timeout counts anew for each read, and a server that sends a
 * byte now and then would hold a caller for days. Therefore a reply that came in
 * part has what is left of its time.
 */
#define _POSIX_C_SOURCE 200809L

#include "redis/receive.h"

#include <errno.h>
#include <hiredis/sds.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BYTES_MAX ((uint64_t)1 << 30) /* of a reply; a string has half of it */
#define DEPTH_MAX 7                   /* of arrays in arrays */
#define PIECE     65536               /* bytes to be sent in time */
#define NO_END    "no end of a reply"
#define NOT_SENT  "not all that was to be sent was taken"

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *make_array(const redisReadTask *task, element_count n)
{
    struct seen_receiver *r = task->privdata;
    int depth = 0;
    for (const redisReadTask *t = task->parent; t; t = t->parent)
        depth++;
    if ((size_t)n <= r->elements && depth <= DEPTH_MAX)
        return r->standard.createArray(task, n);
    snprintf(r->problem, sizeof r->problem,
             "an array of %lld at depth %d: expected up to %zu, and up to "
             "depth %d",
             (long long)n, depth, r->elements, DEPTH_MAX);
    return NULL;
}

/* What came is no reply, or too much of one. */
static void *refuse(struct seen_receiver *r, const char *why)
{
    r->nonsense = true;
    if (!r->problem[0]) snprintf(r->problem, sizeof r->problem, "%s", why);
    return NULL;
}

/* ---- Time --------------------------------------------------------------- */

uint64_t seen_receive_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* false, as what ends with it. */
static bool too_late(struct seen_receiver *r, const char *what)
{
    snprintf(r->problem, sizeof r->problem, "%s within %llu ms", what,
             (unsigned long long)r->timeout_ms);
    return false;
}

/* Of the socket, which waits for timeout_ms and then says EAGAIN. */
static bool fail_io(struct seen_receiver *r, const char *what)
{
    if (r->conn->err == REDIS_ERR_IO && errno == EAGAIN)
        return too_late(r, what);
    if (r->conn->err == REDIS_ERR_IO) r->os_errno = errno;
    snprintf(r->problem, sizeof r->problem, "%s", r->conn->errstr);
    return false;
}

/* How long the socket waits; 0 would be for ever. */
static bool set_wait(struct seen_receiver *r, uint64_t ms)
{
    struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
                           .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    return redisSetTimeout(r->conn, wait) == REDIS_OK || fail_io(r, "no reply");
}

/* A reply that has begun has what is left of its time. */
static bool hurry(struct seen_receiver *r, uint64_t until)
{
    uint64_t now_ms = seen_receive_clock();
    if (now_ms >= until) return too_late(r, NO_END);
    return set_wait(r, until - now_ms);
}

/* ---- Sending and receiving ---------------------------------------------- */

void seen_receive_begin(struct seen_receiver *r, redisContext *conn,
                        uint64_t timeout_ms)
{
    *r = (struct seen_receiver){.conn = conn,
                                .timeout_ms = timeout_ms,
                                .elements = SEEN_RECEIVE_ELEMENTS,
                                .standard = *conn->reader->fn};
    r->functions = r->standard;
    r->functions.createArray = make_array;
    conn->reader->fn = &r->functions;
    conn->reader->privdata = r;
    set_wait(r, timeout_ms);
}

static bool send_all(struct seen_receiver *r)
{
    redisContext *conn = r->conn;
    uint64_t until = seen_receive_clock() + r->timeout_ms;
    size_t left = sdslen(conn->obuf);
    int done = 0;
    for (;;) {
        if (redisBufferWrite(conn, &done) != REDIS_OK)
            return fail_io(r, NOT_SENT);
        if (done) return true;
        uint64_t now_ms = seen_receive_clock();
        if (left - sdslen(conn->obuf) >= PIECE) {
            left = sdslen(conn->obuf);
            until = now_ms + r->timeout_ms;
        } else if (now_ms >= until) {
            return too_late(r, NOT_SENT);
        }
    }
}

/* The first read waits for as long as the socket does, which is the time that a
 * reply has; most replies are whole then, and no more calls are needed. */
redisReply *seen_receive(struct seen_receiver *r)
{
    redisReader *reader = r->conn->reader;
    uint64_t bytes = 0, until = 0; /* 0: nothing has been read */
    bool hurried = false;
    r->problem[0] = '\0';
    r->nonsense = false;
    r->os_errno = 0;
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(reader, &reply) != REDIS_OK)
            return refuse(r, reader->errstr);
        if (reply && hurried && !set_wait(r, r->timeout_ms)) {
            freeReplyObject(reply);
            return NULL;
        }
        if (reply) return reply;
        if (until) {
            hurried = true;
            if (!hurry(r, until)) return NULL;
        } else {
            if (!send_all(r)) return NULL;
            until = seen_receive_clock() + r->timeout_ms;
        }
        size_t before = reader->len;
        if (redisBufferRead(r->conn) != REDIS_OK) {
            fail_io(r, hurried ? NO_END : "no reply");
            return NULL;
        }
        bytes += reader->len - before;
        if (bytes > BYTES_MAX) return refuse(r, "a reply of more than 1 GiB");
    }
}
