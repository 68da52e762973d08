/* secret.h - where secrets come from. */
#ifndef SEEN_MODULE_SECRET_H
#define SEEN_MODULE_SECRET_H

#include <stdbool.h>
#include <stdint.h>

/* From the kernel's random generator; false if it has none. The server's own
 * falls back to the clock, which an attacker can guess. */
bool secret_random(uint8_t secret[16]);

/* The secret of all exposure sets of this deployment. Without a secret-file it
 * is this, which everybody knows. */
extern uint8_t exposure_secret[16];
extern bool exposure_keyed;

/* From a file of 32 hex digits and a newline, or of 16 bytes. NULL, or what is
 * wrong with it. */
const char *secret_load(const char *path);

#endif
