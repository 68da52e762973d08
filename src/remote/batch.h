/* batch.h - a pipeline of short commands, and room for their bytes. */
#ifndef SEEN_REMOTE_BATCH_H
#define SEEN_REMOTE_BATCH_H

#include "base/alloc.h"
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
    static const seen_allocator system_memory;
    b->list = commands * sizeof *b->k;
    b->bytes = commands * each;
    b->k = seen_alloc_zeroed(&system_memory, b->list);
    b->room = seen_alloc_zeroed(&system_memory, b->bytes);
    return b->k && b->room;
}

/* Also of one that could not be made. */
static inline void seen_batch_free(struct seen_batch *b)
{
    static const seen_allocator system_memory;
    seen_release(&system_memory, b->k, b->list);
    seen_release(&system_memory, b->room, b->bytes);
}

static inline struct seen_wire seen_batch_wire(const struct seen_batch *b)
{
    return (struct seen_wire){b->room, b->room + b->bytes};
}

#endif
