/*
 * seen_block.h - the filter of one block of a table: some dozen keys in some
 * dozen bytes.
 *
 * A storage engine that looks for a key in a table on disk finds out first in
 * which block it would be, and reads that block in order to see that it is not
 * there. So it keeps a small filter beside every block. Such a filter is bytes
 * and nothing else: made once, never changed, asked where it lies. No call here
 * keeps anything, and all may run at once.
 *
 *     size_t len;
 *     char block[64];
 *     seen_block_build(SEEN_BLOCK_SORTED, 10, seen_keys_of(keys, 35), block, 64,
 *                      &len);
 *     if (!seen_block_maybe(SEEN_BLOCK_SORTED, block, len, "key", 3)) ...never
 *
 * seen_leveldb.h gives them to LevelDB.
 */
#ifndef SEEN_BLOCK_H
#define SEEN_BLOCK_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum seen_block_form {
    SEEN_BLOCK_LEVELDB =
        1,                /* LevelDB's own bytes, a Bloom filter: of 35 keys at
                               10 bits each, 1.0 % */
    SEEN_BLOCK_SORTED = 2 /* sorted fingerprints, docs/FORMAT.md: 0.45 %, and a
                               byte less */
} seen_block_form;

/* The most bytes that n keys take. 0: bits_per_key is out of range for this form: a
 * whole number, 1 to 1000, for LevelDB's, where repeated keys count as others;
 * 3 to 48 for ours, where all that a block takes are bits_per_key for each
 * different key, but 9 bytes at least, as LevelDB's smallest. */
SEEN_API size_t seen_block_size(seen_block_form form, double bits_per_key,
                                size_t n);

/* The filter of n keys, at most 2^30; *len as for seen_save(), and 0 for no keys.
 * SEEN_INVALID: seen_block_size() says 0. SEEN_UNSUPPORTED: hashes. SEEN_NOMEM:
 * from some hundred keys on memory is needed meanwhile. */
SEEN_API seen_status seen_block_build(seen_block_form form, double bits_per_key,
                                      seen_keys keys, void *buf, size_t cap,
                                      size_t *len);

/* Can a key be in the block? It does not matter how many bits a key it was built
 * with. Of bytes that are no such filter: maybe; of none at all: never. */
SEEN_API bool seen_block_maybe(seen_block_form form, const void *block,
                               size_t len, const void *key, size_t key_len);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_BLOCK_H */
