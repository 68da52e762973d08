/*
 * cache.h - products in a Redis, for an hour. One connection; a thread has its
 * own.
 */
#ifndef CACHE_H
#define CACHE_H

#include "product.h"

#include <stdbool.h>

struct cache {
    struct redisContext *redis;
    const char *prefix; /* of all keys */
};

bool cache_open(struct cache *c, int port, const char *prefix);
void cache_close(struct cache *c);

enum answer cache_get(struct cache *c, const char *key, struct product *p);

/* Whether it worked does not matter: the database has it. */
void cache_set(struct cache *c, const char *key, const struct product *p);

#endif
