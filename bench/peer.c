/*
 * peer.c - libbloom, one call per key because that is all it offers; and what
 * stands in for a peer that was not found when the build was configured.
 */
#include "peer.h"

#ifdef BENCH_LIBBLOOM

#include <bloom.h>
#include <limits.h>
#include <stdlib.h>

static void *make(size_t items, double fpp)
{
    struct bloom *b = malloc(sizeof *b);
    if (items > INT_MAX || !b || bloom_init(b, (int)items, fpp) != 0) {
        free(b);
        return NULL;
    }
    return b;
}

static void add(void *peer, const seen_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bloom_add(peer, keys[i].data, (int)keys[i].len);
}

static void seal(void *peer)
{
    (void)peer;
}

static void maybe(void *peer, const seen_key *keys, size_t n, bool *answers)
{
    for (size_t i = 0; i < n; i++)
        answers[i] = bloom_check(peer, keys[i].data, (int)keys[i].len) == 1;
}

static void release(void *peer)
{
    bloom_free(peer);
    free(peer);
}

const struct bench_peer bench_libbloom = {"libbloom", NULL,  make,   add,
                                          seal,       maybe, release};
#else
const struct bench_peer bench_libbloom = {
    .name = "libbloom", .missing = "libbloom (libbloom-dev) is not installed"};
#endif

#ifndef BENCH_LEVELDB
const struct bench_peer bench_leveldb = {
    .name = "LevelDB", .missing = "LevelDB (libleveldb-dev) is not installed"};
#endif
