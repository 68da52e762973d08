/*
 * record.h - the bytes of one user.
 *
 *     version | check of the secret | newest generation | older one | ...
 *
 * All that a generation needs to be read is in it:
 *
 *     byte      1    version: 1
 *               2    check of the secret, little-endian
 *     then, for each generation, newest first:
 *               v    n, the fingerprints in it, 1 to 2^20
 *               1    which universe they are from (universe_of())
 *               v    newest: milliseconds; for all but the first generation, how
 *                    much older than that of the generation before
 *               v    how much older its first mark is than its newest
 *               ..   the fingerprints, as bits/sorted.h writes them
 *
 * (v: a varint, 7 bits a byte, lowest first, the high bit says that more comes;
 * the shortest form only.)
 *
 * A fingerprint is the hash of an item, scaled to the universe: a number below
 * u. With u = items x generations / fpp, a random fingerprint meets one of a
 * full record with probability fpp. Fingerprints cannot gain bits later, so the
 * universe is fixed by the policy and not by how many items there are; universes
 * are eight to the octave, which costs 0.06 bits an item on average.
 *
 * Worked example: the default policy, 5 x 1000 items at 0.1 %: u = 5,439,339 (the
 * next one up from 5,000,000). 1000 fingerprints keep their 12 low bits and take
 * 2.3 more for the rest: 1791 bytes. A user with ten items has 12 bytes before
 * the fingerprints and 27 of them: 39 bytes. Marking goes through the newest
 * generation only: decode, merge, encode.
 *
 * Why this way: bytes for 10 / 100 / 1000 / 5000 items at 0.1 % in all are 39 /
 * 234 / 1805 / 8996 (tests/unit/test_exposure.c prints them); five classic Bloom
 * filters of 1000 items take 2,240 / 2,240 / 2,240 / 11,130. No tail of raw
 * fingerprints is kept for cheap appends: the newest generation is small enough
 * to be written anew, a record has one form only, and a small one stays small.
 */
#ifndef SEEN_RECORD_H
#define SEEN_RECORD_H

#include "seen_exposure.h"

#include "bits/sorted.h"

#define SEEN_GENERATIONS_MAX 64
#define SEEN_ITEMS_MAX       ((uint32_t)1 << 20) /* of a generation */
#define SEEN_TIME_MAX        (((uint64_t)1 << 48) - 1)

struct seen_generation {
    uint64_t n;
    uint32_t universe; /* code */
    uint64_t newest, first;
    const uint8_t *run;
    uint64_t run_len;
};

struct seen_generations {
    uint32_t count;
    struct seen_generation at[SEEN_GENERATIONS_MAX]; /* newest first */
};

/* u of a code; the smallest code whose u is at least so large, 256: none. */
uint64_t seen_universe_of(uint32_t code);
uint32_t seen_universe_for(double least);

/* SEEN_CORRUPT, SEEN_NEWER, or SEEN_MISMATCH if `check` is not the record's (a
 * number above 65535 fits any). The runs have not been looked into. */
seen_status seen_record_parse(seen_record record, uint32_t check,
                              struct seen_generations *out);

/* How long these generations are as a record, at most; and their bytes. */
uint64_t seen_record_bound(const struct seen_generations *g);
size_t seen_record_write(const struct seen_generations *g, uint32_t check,
                         uint8_t *out);

SEEN_INLINE struct seen_sorted seen_run_of(const struct seen_generation *g)
{
    return (struct seen_sorted){g->run, g->n, seen_universe_of(g->universe)};
}

#endif
