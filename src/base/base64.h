/* base64.h - RFC 4648, with padding, in either alphabet. */
#ifndef SEEN_BASE64_H
#define SEEN_BASE64_H

#include "base/base.h"

/* Letters for so many bytes. */
SEEN_INLINE uint64_t seen_base64_letters(uint64_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Is this the base64 of anything, and of how many bytes? Nothing else will do:
 * all of it, padded, and zeros where bits are left over. `url`: - and _ for + and
 * slash. */
bool seen_base64_check(const char *text, size_t len, bool url, size_t *bytes);

/* What seen_base64_check() let through. */
void seen_base64_decode(const char *text, size_t len, bool url, uint8_t *to);

void seen_base64_encode(const uint8_t *from, size_t len, bool url, char *to);

#endif
