/*
 * alloc.h - memory, from the user's allocator or from the system's.
 *
 * Every block is aligned, to a cache line if it has lines, whatever the allocator
 * gives, and remembers nothing: whoever asked for n bytes gives n bytes back.
 */
#ifndef SEEN_ALLOC_H
#define SEEN_ALLOC_H

#include "seen.h"

#include "base/base.h"

/* The system's, for memory that belongs to no filter of a caller. */
SEEN_PRIVATE extern const seen_allocator seen_system_memory;

/* The allocator to use for `wanted`, which may be NULL. */
SEEN_PRIVATE seen_allocator
seen_allocator_or_default(const seen_allocator *wanted);

/* NULL is the default; another one has both functions. */
static inline bool seen_allocator_ok(const seen_allocator *a)
{
    return !a || (a->alloc && a->release);
}

/* `size` zero bytes, aligned to SEEN_LINE_SIZE; NULL if there are none. */
SEEN_PRIVATE void *seen_alloc_zeroed(const seen_allocator *a, uint64_t size);
SEEN_PRIVATE void seen_release(const seen_allocator *a, void *ptr,
                               uint64_t size);

/* The same for what has no lines: aligned to SEEN_SMALL_ALIGN only. */
#define SEEN_SMALL_ALIGN 16
void *seen_alloc_small(const seen_allocator *a, uint64_t size);
void seen_release_small(const seen_allocator *a, void *ptr, uint64_t size);

/* A block larger than this comes in whole pages from the system, if from the
 * default allocator, and pieces of it (multiples of SEEN_PIECE from its start)
 * can be given up one by one before it is released: back to the system, or to
 * serve, as zeros, in the place `to` of another such block that nobody has
 * written to yet. Where the system cannot do that nothing happens. */
#define SEEN_PIECE ((uint64_t)8 << 20)
void seen_release_piece(const seen_allocator *a, void *piece, uint64_t size);
void seen_recycle_piece(const seen_allocator *a, void *piece, uint64_t size,
                        void *to);

#endif
