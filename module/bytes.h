/* bytes.h - little-endian numbers in bytes. */
#ifndef SEEN_MODULE_BYTES_H
#define SEEN_MODULE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void put_le(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t get_le(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static inline void put_double(uint8_t *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_le(to, bits, 8);
}

static inline double get_double(const uint8_t *from)
{
    uint64_t bits = get_le(from, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
