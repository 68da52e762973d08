/*
 * receive.c - see receive.h.
 *
 * hiredis makes an array as soon as it has read how many elements will come:
 * "*2147483647" takes 16 GiB. Newer versions nest arrays without end, and free
 * them by recursion. And a string is read for as long as there is more of it.
 * Therefore the function that makes arrays asks here first, and the bytes of a
 * reply are counted.
 */
#include "redis/receive.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES ((uint64_t)1 << 30) /* of a reply; a string has half of it */
#define MOST_DEPTH 7                   /* of arrays in arrays */

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
    if ((size_t)n <= r->elements && depth <= MOST_DEPTH)
        return r->standard.createArray(task, n);
    snprintf(r->problem, sizeof r->problem,
             "an array of %lld at depth %d: expected up to %zu, and up to "
             "depth %d",
             (long long)n, depth, r->elements, MOST_DEPTH);
    return NULL;
}

void seen_receive_begin(struct seen_receiver *r, redisContext *conn)
{
    *r = (struct seen_receiver){.conn = conn,
                                .elements = SEEN_RECEIVE_ELEMENTS,
                                .standard = *conn->reader->fn};
    r->functions = r->standard;
    r->functions.createArray = make_array;
    conn->reader->fn = &r->functions;
    conn->reader->privdata = r;
}

/* What came is no reply, or too much of one. */
static void *refuse(struct seen_receiver *r, const char *why)
{
    r->nonsense = true;
    if (!r->problem[0]) snprintf(r->problem, sizeof r->problem, "%s", why);
    return NULL;
}

/* Of the socket. */
static void *fail_io(struct seen_receiver *r)
{
    r->late = r->conn->err == REDIS_ERR_IO && errno == EAGAIN;
    snprintf(r->problem, sizeof r->problem, "%s", r->conn->errstr);
    return NULL;
}

redisReply *seen_receive(struct seen_receiver *r)
{
    redisContext *conn = r->conn;
    redisReader *reader = conn->reader;
    uint64_t bytes = 0;
    int sent = 0;
    r->problem[0] = '\0';
    r->late = r->nonsense = false;
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(reader, &reply) != REDIS_OK)
            return refuse(r, reader->errstr);
        if (reply) return reply;
        while (!sent)
            if (redisBufferWrite(conn, &sent) != REDIS_OK) return fail_io(r);
        size_t before = reader->len;
        if (redisBufferRead(conn) != REDIS_OK) return fail_io(r);
        bytes += reader->len - before;
        if (bytes > MOST_BYTES) return refuse(r, "a reply of more than 1 GiB");
    }
}
