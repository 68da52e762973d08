/*
 * peer.h - other people's Bloom filters, for comparison on the same keys.
 */
#ifndef SEEN_BENCH_PEER_H
#define SEEN_BENCH_PEER_H

#include "seen.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* make, add in blocks, seal, then maybe; release at the end. */
struct bench_peer {
    const char *name;
    const char *missing; /* why it cannot be measured here, or NULL */
    void *(*make)(size_t items, double fpp); /* NULL: it cannot */
    void (*add)(void *peer, const seen_key *keys, size_t n);
    void (*seal)(void *peer);
    void (*maybe)(void *peer, const seen_key *keys, size_t n, bool *answers);
    void (*release)(void *peer);
};

extern const struct bench_peer bench_libbloom;
extern const struct bench_peer bench_leveldb;

#ifdef __cplusplus
}
#endif

#endif
