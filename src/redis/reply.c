/* reply.c - see reply.h. */
#include "redis/reply.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

bool seen_reply_nil(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_NIL;
}

static const char *text_of(const redisReply *reply, int type)
{
    return reply->type == type && reply->str ? reply->str : NULL;
}

const char *seen_reply_error(const redisReply *reply)
{
    return text_of(reply, REDIS_REPLY_ERROR);
}

const char *seen_reply_status(const redisReply *reply)
{
    return text_of(reply, REDIS_REPLY_STATUS);
}

bool seen_reply_string(const redisReply *reply, seen_key *bytes)
{
    if (!text_of(reply, REDIS_REPLY_STRING)) return false;
    *bytes = (seen_key){reply->str, (size_t)reply->len};
    return true;
}

bool seen_reply_integer(const redisReply *reply, int64_t least, int64_t most,
                        int64_t *n)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < least ||
        reply->integer > most)
        return false;
    *n = reply->integer;
    return true;
}

bool seen_reply_flag(const redisReply *reply, bool *flag)
{
    int64_t n;
    if (!seen_reply_integer(reply, 0, 1, &n)) return false;
    *flag = n == 1;
    return true;
}

bool seen_reply_array(const redisReply *reply, size_t *n)
{
    if (reply->type != REDIS_REPLY_ARRAY) return false;
    if (reply->elements && !reply->element) return false;
    for (size_t i = 0; i < reply->elements; i++)
        if (!reply->element[i]) return false;
    *n = reply->elements;
    return true;
}

const redisReply *seen_reply_at(const redisReply *array, size_t i)
{
    assert(array->type == REDIS_REPLY_ARRAY && i < array->elements);
    return array->element[i];
}

bool seen_reply_flags(const redisReply *reply, size_t n, bool *all)
{
    size_t elements;
    if (!seen_reply_array(reply, &elements) || elements != n) return false;
    *all = true;
    for (size_t i = 0; i < n; i++) {
        bool one;
        if (!seen_reply_flag(reply->element[i], &one)) return false;
        *all &= one;
    }
    return true;
}

void seen_reply_describe(const redisReply *reply, char to[SEEN_REPLY_TEXT])
{
    const char *name = "of an unknown type";
    if (seen_reply_nil(reply)) name = "nil";
    if (seen_reply_error(reply)) name = "an error";
    if (seen_reply_status(reply)) name = "a status";
    if (reply->type == REDIS_REPLY_STRING)
        snprintf(to, SEEN_REPLY_TEXT, "a string of %zu bytes",
                 (size_t)reply->len);
    else if (reply->type == REDIS_REPLY_ARRAY)
        snprintf(to, SEEN_REPLY_TEXT, "an array of %zu",
                 (size_t)reply->elements);
    else if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(to, SEEN_REPLY_TEXT, "the integer %lld", reply->integer);
    else
        snprintf(to, SEEN_REPLY_TEXT, "%s", name);
}
