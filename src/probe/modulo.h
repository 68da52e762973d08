/*
 * modulo.h - remainders by a number that stays the same.
 *
 * Other systems reduce a hash with the modulo of their language, a division of
 * up to 40 cycles, k times a key. Dividing by an invariant number is a
 * multiplication by its reciprocal (Granlund and Montgomery, 1994, figure 4.1):
 *
 *     l = ceil(log2 d)         reciprocal = floor(2^64 * (2^l - d) / d) + 1
 *
 *     t = high half of reciprocal * n
 *     q = (t + ((n - t) >> 1)) >> (l - 1)         r = n - q * d
 *
 * Exact for every n and d of 64 bits; four cycles that overlap.
 *
 * Example: d = 10, l = 4, 2^64 * 6 / 10 + 1 = 11068046444225730970. n = 123:
 * t = 73, q = (73 + 25) >> 3 = 12, r = 3.
 */
#ifndef SEEN_MODULO_H
#define SEEN_MODULO_H

#include "base/base.h"

struct seen_modulo {
    uint64_t by;
    uint64_t reciprocal;
    uint32_t first, second; /* shifts */
    uint64_t fraction;      /* 2^64 / by, rounded up; by below 2^32 only */
};

/* d >= 1 */
SEEN_INLINE struct seen_modulo seen_modulo_of(uint64_t d)
{
    uint32_t l = d > 1 ? 64 - seen_clz64(d - 1) : 0;
    seen_u128 rest = ((seen_u128)1 << l) - d;
    return (struct seen_modulo){.by = d,
                                .reciprocal = (uint64_t)((rest << 64) / d) + 1,
                                .first = l > 0,
                                .second = l > 0 ? l - 1 : 0,
                                .fraction = UINT64_MAX / d + 1};
}

SEEN_INLINE uint64_t seen_modulo(uint64_t n, const struct seen_modulo *m)
{
    uint64_t t = (uint64_t)(((seen_u128)m->reciprocal * n) >> 64);
    uint64_t q = (t + ((n - t) >> m->first)) >> m->second;
    return n - q * m->by;
}

/* The same for a hash of 32 bits, in two multiplications where d has no more
 * (Lemire, Kaser, Kurz 2019): the fraction of n / d, times d. */
SEEN_INLINE uint64_t seen_modulo32(uint32_t n, const struct seen_modulo *m)
{
    if (m->by > UINT32_MAX) return n;
    return (uint64_t)(((seen_u128)(m->fraction * n) * m->by) >> 64);
}

#endif
