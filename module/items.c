/* items.c - see items.h. */
#include "items.h"

#include "arguments.h"
#include "reply.h"

void item_keys(RedisModuleString **items, size_t n, seen_key *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = key_of(items[i]);
}

void item_hashes(const seen_filter *f, RedisModuleString **items, size_t n,
                 seen_hash *hashes)
{
    seen_key keys[PIECE];
    item_keys(items, n, keys);
    seen_hash_many(f, seen_keys_of(keys, n), hashes);
}

void ask_by_keys(const struct object *o, RedisModuleString **items, size_t n,
                 bool *answers)
{
    seen_key keys[PIECE];
    item_keys(items, n, keys);
    seen_maybe_many(o->filter[0], seen_keys_of(keys, n), answers);
}

int reply_answers(struct call *c, bool many,
                  void (*ask)(const struct object *o, RedisModuleString **items,
                              size_t n, bool *answers))
{
    bool answers[PIECE] = {false};
    if (many) RedisModule_ReplyWithArray(c->ctx, c->argc - 2);
    for (int i = 2; i < c->argc; i += PIECE) {
        size_t n = c->argc - i < PIECE ? (size_t)(c->argc - i) : PIECE;
        if (c->value) ask(c->value, c->argv + i, n, answers);
        count_answers(c, answers, n);
        for (size_t j = 0; j < n; j++)
            reply_bool(c->ctx, answers[j]);
    }
    return REDISMODULE_OK;
}
