/*
 * bytes.h - integers in byte order, written out. No struct is ever laid over
 * bytes; compilers turn these into single loads and stores.
 */
#ifndef SEEN_BYTES_H
#define SEEN_BYTES_H

#include "base/base.h"

#include <string.h>

#define SEEN_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

SEEN_INLINE uint16_t seen_get_le16(const void *from)
{
    const uint8_t *p = from;
    return (uint16_t)(p[0] | p[1] << 8);
}

SEEN_INLINE uint32_t seen_get_le32(const void *from)
{
    const uint8_t *p = from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

SEEN_INLINE uint64_t seen_get_le64(const void *from)
{
    const uint8_t *p = from;
    return seen_get_le32(p) | (uint64_t)seen_get_le32(p + 4) << 32;
}

SEEN_INLINE void seen_put_le16(void *to, uint16_t x)
{
    uint8_t *p = to;
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

SEEN_INLINE void seen_put_le32(void *to, uint32_t x)
{
    uint8_t *p = to;
    seen_put_le16(p, (uint16_t)x);
    seen_put_le16(p + 2, (uint16_t)(x >> 16));
}

SEEN_INLINE void seen_put_le64(void *to, uint64_t x)
{
    uint8_t *p = to;
    seen_put_le32(p, (uint32_t)x);
    seen_put_le32(p + 4, (uint32_t)(x >> 32));
}

/* ---- Big end first ------------------------------------------------------ */

SEEN_INLINE uint32_t seen_get_be32(const void *from)
{
    const uint8_t *p = from;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           (uint32_t)p[3];
}

SEEN_INLINE uint64_t seen_get_be64(const void *from)
{
    const uint8_t *p = from;
    return (uint64_t)seen_get_be32(p) << 32 | seen_get_be32(p + 4);
}

SEEN_INLINE void seen_put_be32(void *to, uint32_t x)
{
    uint8_t *p = to;
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

SEEN_INLINE void seen_put_be64(void *to, uint64_t x)
{
    uint8_t *p = to;
    seen_put_be32(p, (uint32_t)(x >> 32));
    seen_put_be32(p + 4, (uint32_t)x);
}

/* ---- Floating point: its bits, as IEEE 754 has them ---------------------- */

SEEN_INLINE double seen_get_le_double(const void *from)
{
    uint64_t bits = seen_get_le64(from);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SEEN_INLINE void seen_put_le_double(void *to, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    seen_put_le64(to, bits);
}

#endif
