#define _POSIX_C_SOURCE 200809L

#include "service.h"

#include <seen_file.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- Reading ------------------------------------------------------------ */

struct request {
    struct worker *worker;
    uint64_t now_ms;
};

static enum answer fetch(void *ctx, const char *key, struct product *p)
{
    const struct request *r = ctx;
    struct worker *w = r->worker;
    if (cache_get(&w->cache, key, p) == PRESENT) return PRESENT;
    enum answer answer = database_find(&w->database, key, p);
    if (answer == PRESENT) cache_set(&w->cache, key, p);
    if (answer == ABSENT && w->service->guard)
        seen_guard_missed(w->service->guard, key, strlen(key), r->now_ms);
    return answer;
}

enum answer service_get(struct worker *w, const char *key, struct product *p)
{
    struct service *s = w->service;
    struct request r = {w, now_ms()};
    *p = (struct product){0};
    if (s->guard && seen_guard_ask(s->guard, key, strlen(key), r.now_ms,
                                   NULL) == SEEN_REJECT)
        return ABSENT;
    if (!s->single_flight) return fetch(&r, key, p);
    return flights_fetch(&s->flights, key, fetch, &r, p);
}

/* ---- Writing ------------------------------------------------------------ */

bool service_create(struct worker *w, const char *key, const struct product *p)
{
    struct service *s = w->service;
    if (!database_begin(&w->database)) return false;
    /* If it cannot be kept the guard opens, and says so in its statistics: no
     * reason not to insert. If the insert fails a key too many is in the filter. */
    if (s->guard)
        seen_guard_created(s->guard, key, strlen(key), now_ms(), NULL);
    if (!database_insert(&w->database, key, p) ||
        !database_commit(&w->database)) {
        database_rollback(&w->database);
        return false;
    }
    flights_forget(&s->flights, key); /* who left before does not know it */
    return true;
}

/* ---- Rebuilding --------------------------------------------------------- */

struct scan {
    seen_filter *filter;
    void (*progress)(uint64_t done, uint64_t rows);
    uint64_t done, rows;
};

static bool add_row(void *ctx, const char *key, size_t len)
{
    struct scan *s = ctx;
    if (++s->done % (s->rows / 100 + 1) == 0) s->progress(s->done, s->rows);
    return seen_add(s->filter, key, len) == SEEN_OK;
}

/* Keyed, because strangers choose the keys that it is asked for; concurrent, so
 * that a key is added without stopping anybody; with room for a quarter more, for
 * what is created until the next one. */
static seen_status new_filter(seen_filter **f, uint64_t rows)
{
    uint8_t secret[16];
    seen_status status = seen_random_secret(secret);
    if (status != SEEN_OK) return status;
    return seen_new(f,
                    &(seen_spec){.items = rows + rows / 4 + 1000,
                                 .fpp = PROMISE,
                                 .flags = SEEN_CONCURRENT | SEEN_KEYED,
                                 .secret = secret},
                    NULL);
}

bool service_rebuild(struct worker *w,
                     void (*progress)(uint64_t done, uint64_t rows))
{
    seen_guard *guard = w->service->guard;
    struct database *d = &w->database;

    seen_guard_rebuild(guard);
    if (!database_begin(d) || !database_commit(d)) return false;

    struct scan s = {.progress = progress, .rows = database_count(d)};
    seen_status status = new_filter(&s.filter, s.rows);
    if (status == SEEN_OK && database_scan(d, add_row, &s)) {
        status = seen_guard_swap(guard, s.filter, NULL);
        if (status == SEEN_OK) {
            progress(s.done, s.done);
            return true; /* the filter is the guard's now */
        }
    }
    seen_free(s.filter);
    fprintf(stderr, "rebuild: %s\n", seen_strerror(status));
    return false;
}
