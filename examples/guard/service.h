/*
 * service.h - a product by its key: guard, single flight, cache, database. The
 * recipe; main.c only puts it under load.
 *
 *     key ──► guard ──► flight ──► Redis ──► SQLite
 *               │                    ▲          │
 *               │ cannot exist       └──────────┤ there: cache it
 *               ▼                               │ not there: tell the guard
 *           not found  ◄────────────────────────┘
 *
 * Without the guard every request for a key that exists nowhere goes all the way:
 * a cache holds what is there, and random keys never repeat. The filter of the
 * guard knows all keys that exist, in two bytes each, and stops all but one in a
 * thousand of the others on the spot.
 *
 * What must never happen is that a product that exists is not found. Three rules:
 *
 * 1. A key is told to the guard inside the transaction that inserts it, so before
 *    anybody can read the row.
 * 2. A new filter is made in this order: tell the guard, from when on it keeps the
 *    keys that are created; wait for transactions under way (an empty one does);
 *    scan; swap.
 * 3. Who cannot be asked has not said no. A cache that is down is passed by; a
 *    database that is down is an error.
 *
 * This is one process. Where several insert, each must tell all guards before it
 * commits (a message that is answered), or only one of them may insert.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "cache.h"
#include "database.h"
#include "flight.h"
#include "product.h"

#include <seen_guard.h>

#define PROMISE 0.001 /* of keys that do not exist, this share may pass */

struct service {
    seen_guard *guard; /* NULL: without */
    struct flights flights;
    bool single_flight; /* off only to see what it is good for */
};

/* What a thread needs. */
struct worker {
    struct service *service;
    struct cache cache;
    struct database database;
};

enum answer service_get(struct worker *w, const char *key, struct product *p);

bool service_create(struct worker *w, const char *key, const struct product *p);

/* A new filter from the table, while others work. `progress` hears how many rows
 * of how many have been read, a hundred times or so. */
bool service_rebuild(struct worker *w,
                     void (*progress)(uint64_t done, uint64_t rows));

#endif
