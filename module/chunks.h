/*
 * chunks.h - filters that come and go in pieces: SCANDUMP and LOADCHUNK.
 *
 * Iterator i of our SCANDUMP stands for the i - 1 bytes before it. Whoever sends
 * LOADCHUNK the pairs (iterator, chunk) as they came has sent the bytes of
 * object.h in order; the first chunk says how many there are.
 *
 *     ours        (1 + n1, bytes)  (1 + n1 + n2, bytes)  ...
 *     RedisBloom  (1, header)  (1 + n1, bits)  (1 + n1 + n2, bits)  ...
 *
 * RedisBloom's SCANDUMP sends its header first, with iterator 1, which none of
 * ours has, and counts only what follows. So LOADCHUNK takes both, and a client
 * that copies filters from a server with RedisBloom to one with us need not know
 * it. The header says how many bytes its links, or sub-filters, will have; with
 * the last of them the library imports the whole as `redisbloom` or
 * `redisbloom-cf` (src/dialect/redisbloom.c has the layout).
 *
 * Until the bytes are complete the key holds them as `pending` and no filter, and
 * answers no question: a filter that is half there would say "never" wrongly.
 * `pending_head` is the length of RedisBloom's header among them, 0 for ours. In
 * RDB files that is told by a number, the form: 0 whole, 1 the beginning of ours,
 * more: the beginning of RedisBloom's, with a header of so many bytes.
 */
#ifndef SEEN_MODULE_CHUNKS_H
#define SEEN_MODULE_CHUNKS_H

#include "object.h"

/* For RDB files: the form of what is saved, and an object that is pending. */
uint64_t chunk_form(const struct object *o);
seen_status chunk_read_pending(struct family *family, uint64_t form,
                               const uint8_t *bytes, size_t len,
                               struct object **o);

#endif
