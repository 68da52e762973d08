/*
 * seen_leveldb.h - filters for LevelDB's tables: libseen_leveldb.
 *
 *     leveldb_options_t *options = leveldb_options_create();
 *     leveldb_filterpolicy_t *policy = seen_leveldb_policy(SEEN_BLOCK_SORTED, 10);
 *     leveldb_options_set_filter_policy(options, policy);
 *     ... leveldb_open(options, ...) ... leveldb_close() ...
 *     leveldb_filterpolicy_destroy(policy);
 *
 * SEEN_BLOCK_LEVELDB   the same bytes under the same name as LevelDB's own policy:
 *                      tables with either are read with the other.
 * SEEN_BLOCK_SORTED    fewer than half of the wrong answers in as many bytes, under
 *                      a name of its own. LevelDB looks for the filter of the
 *                      policy that a database is opened with: tables that were
 *                      written with another one are read as if they had none,
 *                      until they are compacted. Nothing is ever lost.
 *
 * LevelDB leaves no way to say that memory has run out while a filter is made: then
 * the program is ended by abort().
 *
 * docs/COOKBOOK.md has figures. From C++, where leveldb::Options wants a
 * leveldb::FilterPolicy: the type behind leveldb_filterpolicy_t is derived from
 * it in LevelDB 1.23, but not for others to know; write one of five lines that calls
 * seen_block.h.
 */
#ifndef SEEN_LEVELDB_H
#define SEEN_LEVELDB_H

#include "seen_block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;

/* To be destroyed with leveldb_filterpolicy_destroy(), after the database is
 * closed. bits_per_key as for seen_block_size(). NULL: that, or no memory. */
SEEN_API leveldb_filterpolicy_t *seen_leveldb_policy(seen_block_form form,
                                                     double bits_per_key);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_LEVELDB_H */
