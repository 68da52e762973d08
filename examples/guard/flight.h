/*
 * flight.h - of those who want the same at the same time one goes, and brings it
 * for all.
 *
 * A hot key leaves the cache, and a hundred requests find it gone at once: without
 * this the database is asked a hundred times for one row.
 *
 *     first     ----- cache ----- database ----- cache -----.
 *     second          ....... waits .......................|  one answer
 *     hundredth                  ......... waits ..........'
 *
 * The way to the cache is part of the flight. If it were not, somebody who looked
 * into the cache too early and joined too late would go to the database again.
 */
#ifndef FLIGHT_H
#define FLIGHT_H

#include "product.h"

#include <pthread.h>

#define FLIGHT_FIELDS 64

struct flights {
    struct field {
        pthread_mutex_t lock;
        struct flight *first; /* those in the air */
    } fields[FLIGHT_FIELDS];
};

void flights_init(struct flights *all);

/* What `fetch` answers, called by one of those who are here for this key. */
enum answer flights_fetch(struct flights *all, const char *key,
                          enum answer (*fetch)(void *ctx, const char *key,
                                               struct product *p),
                          void *ctx, struct product *p);

/* It has changed: who comes from now on does not join those in the air. */
void flights_forget(struct flights *all, const char *key);

#endif
