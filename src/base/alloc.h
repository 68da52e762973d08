/*
 * alloc.h - memory, from the user's allocator or from the system's.
 *
 * Every block is aligned to a cache line, whatever the allocator gives, and
 * remembers nothing: whoever asked for n bytes gives n bytes back.
 */
#ifndef SEEN_ALLOC_H
#define SEEN_ALLOC_H

#include "seen.h"

/* The allocator to use for `wanted`, which may be NULL. */
seen_allocator seen_allocator_or_default(const seen_allocator *wanted);

/* `size` zero bytes, aligned to SEEN_LINE_SIZE; NULL if there are none. */
void *seen_alloc_zeroed(const seen_allocator *a, uint64_t size);
void seen_release(const seen_allocator *a, void *ptr, uint64_t size);

/* The `len` bytes at `piece`, of a block of `size` bytes, are not needed any
 * more; the block itself is released later. Whole pages go back at once where
 * the system can do that; elsewhere nothing happens. */
void seen_release_piece(const seen_allocator *a, void *piece, uint64_t len,
                        uint64_t size);

#endif
