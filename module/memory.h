/*
 * memory.h - the server's memory, counted for each key.
 *
 * Everything that a key holds comes through its `struct memory`, so that MEMORY
 * USAGE is what the allocator really gave, and no key grows past the limit of
 * the configuration, however large a number somebody sends. A refused request
 * is SEEN_NOMEM to the library, which leaves the filter as it was. On a replica
 * and while a file is loaded there is no limit: what the primary has accepted is
 * accepted.
 */
#ifndef SEEN_MODULE_MEMORY_H
#define SEEN_MODULE_MEMORY_H

#include "seen.h"

#include "redis_api.h"

struct memory {
    seen_allocator as; /* .ctx: this struct, which must not move */
    uint64_t bytes;    /* held, as the allocator counts them */
};

extern uint64_t memory_limit; /* bytes of one key: seen.memory-limit */

void memory_init(struct memory *m);

/* Was the last NULL the limit's doing? */
bool memory_was_limit(void);

/* A key that is one block: counted in memory_in_use(), limited like the others. */
void *memory_take(size_t size);
void memory_give_back(void *at);

/* Outside of any key; NULL if there is none, on servers that can tell. */
void *try_alloc(size_t size);

/* All keys of all kinds, for INFO. Keys are freed by other threads, too. */
uint64_t memory_in_use(void);

#endif
