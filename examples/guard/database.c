#define _POSIX_C_SOURCE 200809L

#include "database.h"

#include <sqlite3.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_uint_fast64_t queries;
static atomic_uint_fast32_t slow_ms;

static bool complain(struct database *d)
{
    fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(d->db));
    return false;
}

static bool run(struct database *d, const char *sql)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           complain(d);
}

static bool prepare(struct database *d, const char *sql, sqlite3_stmt **s)
{
    return sqlite3_prepare_v2(d->db, sql, -1, s, NULL) == SQLITE_OK ||
           complain(d);
}

/* WAL: readers see the last commit and never wait for a writer. */
bool database_open(struct database *d, const char *path)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                      SQLITE_OPEN_NOMUTEX; /* a thread has its own */
    *d = (struct database){0};
    if (sqlite3_open_v2(path, &d->db, flags, NULL)) return complain(d);
    sqlite3_busy_timeout(d->db, 60000);
    return run(d, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                  "CREATE TABLE IF NOT EXISTS product"
                  " (row INTEGER PRIMARY KEY, key TEXT UNIQUE, text TEXT)") &&
           prepare(d, "SELECT text FROM product WHERE key = ?", &d->find) &&
           prepare(d, "INSERT INTO product (key, text) VALUES (?, ?)",
                   &d->insert);
}

void database_close(struct database *d)
{
    sqlite3_finalize(d->find);
    sqlite3_finalize(d->insert);
    sqlite3_close(d->db);
    *d = (struct database){0};
}

static void travel(void)
{
    long ms = (long)atomic_load(&slow_ms);
    if (ms) nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- Questions ---------------------------------------------------------- */

uint64_t database_queries(void)
{
    return atomic_load(&queries);
}

void database_slow_down(uint32_t ms)
{
    atomic_store(&slow_ms, ms);
}

enum answer database_find(struct database *d, const char *key,
                          struct product *p)
{
    atomic_fetch_add(&queries, 1);
    sqlite3_bind_text(d->find, 1, key, -1, SQLITE_STATIC);
    enum answer answer = UNKNOWN;
    switch (sqlite3_step(d->find)) {
    case SQLITE_ROW:
        snprintf(p->text, sizeof p->text, "%s",
                 (const char *)sqlite3_column_text(d->find, 0));
        answer = PRESENT;
        break;
    case SQLITE_DONE:
        answer = ABSENT;
        break;
    default:
        complain(d);
    }
    sqlite3_reset(d->find); /* the next question sees the next commit */
    travel();
    return answer;
}

bool database_scan(struct database *d,
                   bool (*visit)(void *ctx, const char *key, size_t len),
                   void *ctx)
{
    sqlite3_stmt *s;
    if (!prepare(d, "SELECT key FROM product", &s)) return false;
    int step;
    bool go_on = true;
    while (go_on && (step = sqlite3_step(s)) == SQLITE_ROW)
        go_on = visit(ctx, (const char *)sqlite3_column_text(s, 0),
                      (size_t)sqlite3_column_bytes(s, 0));
    if (go_on && step != SQLITE_DONE) go_on = complain(d);
    sqlite3_finalize(s);
    return go_on;
}

uint64_t database_count(struct database *d)
{
    sqlite3_stmt *s;
    uint64_t n = 0;
    if (!prepare(d, "SELECT count(*) FROM product", &s)) return 0;
    if (sqlite3_step(s) == SQLITE_ROW) n = (uint64_t)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

/* ---- Changes ------------------------------------------------------------ */

bool database_begin(struct database *d)
{
    return run(d, "BEGIN IMMEDIATE");
}

bool database_insert(struct database *d, const char *key,
                     const struct product *p)
{
    sqlite3_bind_text(d->insert, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(d->insert, 2, p->text, -1, SQLITE_STATIC);
    bool done = sqlite3_step(d->insert) == SQLITE_DONE || complain(d);
    sqlite3_reset(d->insert);
    return done;
}

bool database_delete_after(struct database *d, uint64_t row)
{
    char sql[80];
    snprintf(sql, sizeof sql, "DELETE FROM product WHERE row > %llu",
             (unsigned long long)row);
    return run(d, sql);
}

bool database_commit(struct database *d)
{
    travel();
    return run(d, "COMMIT");
}

void database_rollback(struct database *d)
{
    run(d, "ROLLBACK");
}
