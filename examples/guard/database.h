/*
 * database.h - products in an SQLite file. One connection; a thread has its own.
 */
#ifndef DATABASE_H
#define DATABASE_H

#include "product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct database {
    struct sqlite3 *db;
    struct sqlite3_stmt *find, *insert;
};

bool database_open(struct database *d, const char *path);
void database_close(struct database *d);

/* ---- Questions ---------------------------------------------------------- */

enum answer database_find(struct database *d, const char *key,
                          struct product *p);

/* How often any thread has called it. */
uint64_t database_queries(void);

/* As if the database were in another house: so long an answer, or a commit, is
 * on its way. */
void database_slow_down(uint32_t ms);

/* Every key, as of one moment; stops when visit gives false. */
bool database_scan(struct database *d,
                   bool (*visit)(void *ctx, const char *key, size_t len),
                   void *ctx);
uint64_t database_count(struct database *d);

/* ---- Changes: one transaction at a time in all, others wait --------------- */

bool database_begin(struct database *d);
bool database_insert(struct database *d, const char *key,
                     const struct product *p);
bool database_delete_after(struct database *d, uint64_t row);
bool database_commit(struct database *d);
void database_rollback(struct database *d);

#endif
