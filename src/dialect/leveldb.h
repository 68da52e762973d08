/* dialect/leveldb.h - LevelDB's filter blocks as bytes and nothing else, for
 * api/block.c. */
#ifndef SEEN_DIALECT_LEVELDB_H
#define SEEN_DIALECT_LEVELDB_H

#include "seen.h"

/* Of at least one key, which may repeat: n counts. */
size_t seen_leveldb_block_size(uint32_t bits_per_key, size_t n);
void seen_leveldb_block_build(uint32_t bits_per_key, seen_keys keys,
                              uint8_t *to);
bool seen_leveldb_block_maybe(const uint8_t *block, size_t len, const void *key,
                              size_t key_len);

#endif
