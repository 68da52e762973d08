/*
 * sizing.h - n, p, m, k: one formula per function; seen.h declares the public
 * ones. docs/MATH.md has the derivations.
 */
#ifndef SEEN_SIZING_H
#define SEEN_SIZING_H

#include "seen.h"

#include "base/base.h"

/* Largest payload we plan for: 2^48 bits, 32 TiB. A sanity bound well below
 * every overflow. */
#define SEEN_MAX_BITS ((uint64_t)1 << 48)

#define SEEN_MAX_HASHES  64 /* k of a classic filter: 5e-20 at its best */
#define SEEN_MAX_REGIONS 16 /* lines of a key in a blocked filter */

/* What a blocked filter looks like. */
struct seen_line_layout {
    uint64_t count;    /* lines in a region */
    uint32_t regions;  /* lines of a key, one in each region */
    uint32_t per_line; /* bits a key sets in a line: 1, 2, 4 or 8 */
};

/* The hash bits for n keys at rate p: 64 while n / 2^64 <= p / 1000, else 128,
 * or 0 if not even those keep a rate that the spec insists on. Keyed hashes
 * always have 128. */
uint32_t seen_hash_bits_for(double n, double p, const seen_spec *spec);

/* The chance that a new key agrees with one of n in its whole hash: part of
 * every rate, and nothing that more bits can cure. */
double seen_hash_fpp(double n, uint32_t hash_bits);

/* seen_items_from_fill() for a planned filter, rounded. */
SEEN_PRIVATE uint64_t seen_plan_items(const seen_plan *plan, uint64_t bits_set);

/* Best k for m bits and n keys. */
uint32_t seen_hashes_for(double n, double m);

/* Fewest bits for n keys at rate p; k = 0 leaves the choice of k open.
 * Infinite if there is no such number. */
double seen_bits_for(double n, double p, uint32_t *k);

/* Most keys that m bits hold at rate p; k = 0 leaves k open. */
double seen_capacity_for(double m, double p, uint32_t *k);

/* The rate where other systems keep a key in one line: k bits anywhere in it, or
 * one in each of k groups. */
double seen_fpp_lines(double n, double lines, uint32_t line_bits, uint32_t k,
                      bool grouped);

/* Can lines hold keys of so many bits? 1, 2, 4, or a multiple of 8. */
bool seen_line_layout_takes(uint32_t hashes);

/* The same three for lines: smallest layout, best layout of given lines, and
 * most keys. Each is false if nothing fits; hashes 0 leaves k open. */
bool seen_line_layout_for(uint64_t n, double p, uint32_t hashes,
                          struct seen_line_layout *out);
bool seen_line_layout_within(uint64_t n, uint64_t lines, uint32_t hashes,
                             struct seen_line_layout *out);

/* Smallest layout where one more line of a key must save so much of them. The
 * lines never fall when p does. Keys set at least so many bits: 1, 2, 4 or 8.
 * seen_line_layout_for() with hashes 0 is this with a twentieth and 1. */
enum seen_saves {
    SEEN_SAVES_TWENTIETH,
    SEEN_SAVES_TENTH
};
bool seen_line_layout_paying(uint64_t n, double p, enum seen_saves saves,
                             uint32_t least, struct seen_line_layout *out);
uint64_t seen_line_layout_capacity(const struct seen_line_layout *l, double p);

#endif
