/*
 * reply.h - what a server has answered.
 *
 * Replies are foreign bytes: whoever answers may be another program, another
 * version, or an attacker. They are looked into through these calls and in no
 * other way: each says whether the reply is what was expected, and only then what
 * is in it. A reply that is something else is SEEN_CORRUPT (seen_pool_strange()),
 * never an answer.
 */
#ifndef SEEN_REDIS_REPLY_H
#define SEEN_REDIS_REPLY_H

#include "seen.h"

struct redisReply;

bool seen_reply_nil(const struct redisReply *reply);
/* The text of an error, of +OK and its like; NULL: it is something else. */
const char *seen_reply_error(const struct redisReply *reply);
const char *seen_reply_status(const struct redisReply *reply);
/* Bytes, with a NUL behind them. */
bool seen_reply_string(const struct redisReply *reply, seen_key *bytes);
/* An integer from `least` to `most`. */
bool seen_reply_integer(const struct redisReply *reply, int64_t least,
                        int64_t most, int64_t *n);
/* 0 or 1. */
bool seen_reply_flag(const struct redisReply *reply, bool *flag);

bool seen_reply_array(const struct redisReply *reply, size_t *n);
/* Of an array of more than i; never NULL. */
const struct redisReply *seen_reply_at(const struct redisReply *array,
                                       size_t i);
/* An array of n flags; *all: each is 1. */
bool seen_reply_flags(const struct redisReply *reply, size_t n, bool *all);

/* "an integer", "an array of 3": for people. */
#define SEEN_REPLY_TEXT 48
void seen_reply_describe(const struct redisReply *reply,
                         char to[SEEN_REPLY_TEXT]);

#endif
