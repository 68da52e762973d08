#define _POSIX_C_SOURCE 200809L /* strdup */

#include "flight.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct flight {
    struct flight *next;
    char *key;
    pthread_cond_t arrival;
    bool arrived;
    size_t passengers; /* the last one out frees it */
    enum answer answer;
    struct product product;
};

void flights_init(struct flights *all)
{
    for (size_t i = 0; i < FLIGHT_FIELDS; i++) {
        pthread_mutex_init(&all->fields[i].lock, NULL);
        all->fields[i].first = NULL;
    }
}

static struct field *field_of(struct flights *all, const char *key)
{
    uint32_t h = 0;
    while (*key)
        h = h * 31 + (unsigned char)*key++;
    return &all->fields[h % FLIGHT_FIELDS];
}

/* The place that points to the flight, or to NULL. */
static struct flight **find(struct field *f, const char *key)
{
    struct flight **at = &f->first;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static struct flight *take_off(struct field *f, const char *key)
{
    struct flight *new = calloc(1, sizeof *new);
    if (!new) return NULL;
    new->key = strdup(key);
    if (!new->key) {
        free(new);
        return NULL;
    }
    pthread_cond_init(&new->arrival, NULL);
    new->next = f->first;
    f->first = new;
    return new;
}

static void get_off(struct flight *flight)
{
    if (--flight->passengers) return;
    pthread_cond_destroy(&flight->arrival);
    free(flight->key);
    free(flight);
}

enum answer flights_fetch(struct flights *all, const char *key,
                          enum answer (*fetch)(void *ctx, const char *key,
                                               struct product *p),
                          void *ctx, struct product *p)
{
    struct field *f = field_of(all, key);
    pthread_mutex_lock(&f->lock);
    struct flight *flight = *find(f, key);
    bool first = !flight;
    if (first) flight = take_off(f, key);
    if (!flight) { /* no memory: go alone */
        pthread_mutex_unlock(&f->lock);
        return fetch(ctx, key, p);
    }
    flight->passengers++;
    if (first) {
        pthread_mutex_unlock(&f->lock);
        enum answer answer = fetch(ctx, key, p);
        pthread_mutex_lock(&f->lock);
        struct flight **at = find(f, key);
        if (*at == flight) *at = flight->next; /* unless it was forgotten */
        flight->answer = answer;
        flight->product = *p;
        flight->arrived = true;
        pthread_cond_broadcast(&flight->arrival);
    }
    while (!flight->arrived)
        pthread_cond_wait(&flight->arrival, &f->lock);
    enum answer answer = flight->answer;
    *p = flight->product;
    get_off(flight);
    pthread_mutex_unlock(&f->lock);
    return answer;
}

void flights_forget(struct flights *all, const char *key)
{
    struct field *f = field_of(all, key);
    pthread_mutex_lock(&f->lock);
    struct flight **at = find(f, key);
    if (*at) *at = (*at)->next;
    pthread_mutex_unlock(&f->lock);
}
