/* items.h - the items of BF and CF commands, some at a time. */
#ifndef SEEN_MODULE_ITEMS_H
#define SEEN_MODULE_ITEMS_H

#include "command.h"

#define PIECE 256 /* items that are looked at together */

/* At most PIECE items, as keys and as hashes of a filter. */
void item_keys(RedisModuleString **items, size_t n, seen_key *keys);
void item_hashes(const seen_filter *f, RedisModuleString **items, size_t n,
                 seen_hash *hashes);

/* By the bytes of the items: the first filter of an object, also of another
 * system. At most PIECE items. */
void ask_by_keys(const struct object *o, RedisModuleString **items, size_t n,
                 bool *answers);

/* EXISTS and MEXISTS: `ask` answers for at most PIECE items at a time. Where there
 * is no key the answers are no. */
int reply_answers(struct call *c, bool many,
                  void (*ask)(const struct object *o, RedisModuleString **items,
                              size_t n, bool *answers));

#endif
