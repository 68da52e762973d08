#include "cache.h"

#include <hiredis/hiredis.h>

#include <stdio.h>
#include <string.h>
#include <sys/time.h>

/* A service would give up after a tenth of a second; this one is tested, and must
 * not take a busy machine for a broken one. */
static const struct timeval patience = {.tv_sec = 60};

bool cache_open(struct cache *c, int port, const char *prefix)
{
    c->prefix = prefix;
    c->redis = redisConnectWithTimeout("127.0.0.1", port, patience);
    if (c->redis && !c->redis->err &&
        redisSetTimeout(c->redis, patience) == REDIS_OK)
        return true;
    fprintf(stderr, "Redis at 127.0.0.1:%d: %s\n", port,
            c->redis ? c->redis->errstr : "no memory");
    return false;
}

void cache_close(struct cache *c)
{
    if (c->redis) redisFree(c->redis);
    c->redis = NULL;
}

/* A connection that has failed stays so until it is made anew: the next request
 * tries. */
static bool is_up(struct cache *c)
{
    return !c->redis->err || redisReconnect(c->redis) == REDIS_OK;
}

enum answer cache_get(struct cache *c, const char *key, struct product *p)
{
    if (!is_up(c)) return UNKNOWN;
    redisReply *r = redisCommand(c->redis, "GET %s%s", c->prefix, key);
    enum answer answer = UNKNOWN;
    if (r && r->type == REDIS_REPLY_NIL) answer = ABSENT;
    if (r && r->type == REDIS_REPLY_STRING && (size_t)r->len < sizeof p->text) {
        memcpy(p->text, r->str, (size_t)r->len + 1);
        answer = PRESENT;
    }
    if (r) freeReplyObject(r);
    return answer;
}

void cache_set(struct cache *c, const char *key, const struct product *p)
{
    if (!is_up(c)) return;
    void *r =
        redisCommand(c->redis, "SET %s%s %s EX 3600", c->prefix, key, p->text);
    if (r) freeReplyObject(r);
}
