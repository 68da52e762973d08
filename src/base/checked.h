/*
 * checked.h - size arithmetic that says when it does not fit. Each returns
 * false, and leaves *out alone, on overflow.
 */
#ifndef SEEN_CHECKED_H
#define SEEN_CHECKED_H

#include "base/base.h"

SEEN_INLINE bool seen_add_fits(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

SEEN_INLINE bool seen_mul_fits(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

/* Can this many bytes be one object in memory? */
SEEN_INLINE bool seen_size_fits(uint64_t bytes)
{
    return bytes <= PTRDIFF_MAX;
}

#endif
