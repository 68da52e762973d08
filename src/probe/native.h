/*
 * native.h - how our own filters derive positions from a hash.
 *
 * Probe i of a key reads a 64-bit word of its own, g(i):
 *
 *     g(0) = lo
 *     g(i) = mix(lo + i * step)        step = golden ratio      64-bit hash
 *                                             hi | 1            128-bit hash
 *
 * mix is a bijection with full avalanche, so the words behave as independent
 * random numbers. That matters: the usual short cut, g(i) = h1 + i * h2 without
 * a mixer, makes positions that move together, and at n = 100, m = 2048, k = 14
 * it gives 12 times the false positives that the formula promises (property
 * test fpp_within_bound measures 1.0 for ours). The words do not depend on each
 * other, so a processor computes several at once; a chain mix(mix(...)) would
 * cost its whole latency k times.
 *
 * Two keys agree in all probes when they agree in all hash bits that are read:
 * 64 or 127 of them. That is a false positive no size can cure, n / 2^64 of
 * them for n keys, hence the rule in plan/: 128 bits unless n / 2^64 is at most
 * a thousandth of the promised rate.
 *
 * Classic filter: the position is g(i) reduced to m bits.
 *
 * Blocked filter: region i reads g(i). Its high bits choose the line, its low
 * 32 bits the bits in the line; up to 2^32 lines the two do not meet. Larger
 * filters have 128-bit hashes, of which `hi` stirs the low half.
 */
#ifndef SEEN_NATIVE_PROBE_H
#define SEEN_NATIVE_PROBE_H

#include "seen.h"

#include "base/rng.h"
#include "probe/reduce.h"

/* A hash, ready to be expanded into words. */
struct seen_probe {
    uint64_t lo;
    uint64_t step;
    uint64_t stir; /* added to the word before its low half is used */
};

SEEN_INLINE struct seen_probe seen_probe_of(seen_hash h, bool wide)
{
    return wide ? (struct seen_probe){h.lo, h.hi | 1, h.hi}
                : (struct seen_probe){h.lo, SEEN_GOLDEN, 0};
}

SEEN_INLINE uint64_t seen_probe_word(struct seen_probe p, uint32_t i)
{
    return i == 0 ? p.lo : seen_mix64(p.lo + i * p.step);
}

SEEN_INLINE uint64_t seen_probe_position(struct seen_probe p, uint32_t i,
                                         uint64_t m)
{
    return seen_reduce(seen_probe_word(p, i), m);
}

#endif
