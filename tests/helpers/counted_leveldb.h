/*
 * counted_leveldb.h - a LevelDB database that counts what it reads from tables:
 * for tests/adapter and bench/bench_leveldb.c. C++ inside, because the C interface
 * of LevelDB lets nobody stand between it and its files.
 *
 * Blocks that were read are not cached, so that a read is a block that a filter
 * could not spare. A failure ends the program with a message.
 */
#ifndef SEEN_TEST_COUNTED_LEVELDB_H
#define SEEN_TEST_COUNTED_LEVELDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;

struct counted_db;

/* Opens a database, or makes one; the policy may be NULL, and outlives it.
 * `memory`: bytes that are gathered before a table is written. */
struct counted_db *counted_open(const char *path,
                                leveldb_filterpolicy_t *policy, size_t memory);
void counted_close(struct counted_db *db);

void counted_put(struct counted_db *db, const void *key, size_t len,
                 const void *value, size_t value_len);
void counted_compact(struct counted_db *db); /* all of it */
bool counted_get(struct counted_db *db, const void *key, size_t len);

/* Reads of tables since it was opened: data blocks, and four or five for each
 * table that is looked into for the first time. */
uint64_t counted_reads(const struct counted_db *db);

/* A policy by itself: the filter of n keys, to be freed, and a question to it. */
char *counted_filter(const leveldb_filterpolicy_t *policy,
                     const char *const *keys, const size_t *lens, int n,
                     size_t *len);
bool counted_may_match(const leveldb_filterpolicy_t *policy, const char *key,
                       size_t len, const char *filter, size_t filter_len);

#ifdef __cplusplus
}
#endif

#endif
