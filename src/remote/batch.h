/* batch.h - a pipeline of short commands, and room for their bytes. */
#ifndef SEEN_REMOTE_BATCH_H
#define SEEN_REMOTE_BATCH_H

#include "base/alloc.h"
#include "base/keys.h"
#include "redis/wire.h"

struct seen_batch {
    struct seen_command *k;
    char *room;
    uint64_t list, bytes; /* how much memory they are */
};

/* So many commands, of at most so many bytes each; false: no memory. */
static inline bool seen_batch_new(struct seen_batch *b, uint64_t commands,
                                  uint64_t each)
{
    b->list = commands * sizeof *b->k;
    b->bytes = commands * each;
    b->k = seen_alloc_zeroed(&seen_system_memory, b->list);
    b->room = seen_alloc_zeroed(&seen_system_memory, b->bytes);
    return b->k && b->room;
}

/* Also of one that could not be made. */
static inline void seen_batch_free(struct seen_batch *b)
{
    seen_release(&seen_system_memory, b->k, b->list);
    seen_release(&seen_system_memory, b->room, b->bytes);
}

/* Keys of one pipeline, as pointers and lengths. */
#define SEEN_BATCH_KEYS 512
struct seen_batch_keys {
    seen_key pairs[SEEN_BATCH_KEYS];
    uint8_t room[8 * SEEN_BATCH_KEYS];
};

static inline const seen_key *seen_batch_keys(struct seen_batch_keys *b,
                                              seen_keys keys, size_t from,
                                              size_t n)
{
    assert(n <= SEEN_BATCH_KEYS);
    return seen_keys_some(keys, from, n, b->pairs, b->room);
}

static inline struct seen_wire seen_batch_wire(const struct seen_batch *b)
{
    return (struct seen_wire){b->room, b->room + b->bytes};
}

#endif
