/* leveldb.h - the 32-bit hash of LevelDB and its family. */
#ifndef SEEN_HASH_LEVELDB_H
#define SEEN_HASH_LEVELDB_H

#include "base/base.h"

/* `signed_tail`: as RocksDB has it. */
uint32_t seen_leveldb_hash(const void *key, size_t len, uint32_t seed,
                           bool signed_tail);

#endif
