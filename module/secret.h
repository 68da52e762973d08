/* secret.h - where secrets come from. */
#ifndef SEEN_MODULE_SECRET_H
#define SEEN_MODULE_SECRET_H

#include <stdbool.h>
#include <stdint.h>

/* From the kernel's random generator; false if it has none. The server's own
 * falls back to the clock, which an enemy can guess. */
bool secret_random(uint8_t secret[16]);

#endif
