/*
 * config.h - what can be set: as NAME=VALUE when the module is loaded, and
 * where the server has it (7.0), with CONFIG SET seen.NAME VALUE.
 *
 *     loadmodule /usr/lib/seen/seen.so commands=auto secret-file=/etc/seen.key
 */
#ifndef SEEN_MODULE_CONFIG_H
#define SEEN_MODULE_CONFIG_H

#include "redis_api.h"

#include <stdbool.h>
#include <stdint.h>

enum commands {
    COMMANDS_ALL,  /* every one must be free, or loading fails */
    COMMANDS_SEEN, /* SEEN.* only */
    COMMANDS_AUTO  /* those that the server does not have already */
};

struct config {
    enum commands commands;
    double error;         /* of BF and CF filters made without one */
    uint64_t capacity;    /* of BF filters made without one */
    uint64_t cf_capacity; /* of CF filters made without one */
    uint64_t expansion;   /* of BF filters made without one */
    bool keyed;           /* BF and CF filters hash with a random secret */
};

extern struct config config;

/* Read the arguments of MODULE LOAD. REDISMODULE_ERR: one is wrong, and the log
 * says which. */
int config_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

/* Offer them as CONFIG parameters, where the server can. */
int config_register(RedisModuleCtx *ctx);

#endif
