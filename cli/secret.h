/*
 * secret.h - the secret of a keyed filter: 16 bytes, in the filter's file, or in
 * a file of its own that --secret-file names.
 */
#ifndef CLI_SECRET_H
#define CLI_SECRET_H

#include <stdbool.h>
#include <stdint.h>

/* What --secret-file holds; NULL if it is not given. */
const uint8_t *given_secret(void);

/*
 * For a filter to be made: NULL if it shall not be keyed. A secret file that is
 * not there yet gets a random one, but only by keep_secret(), when the filter is
 * as good as made; forget_secret() takes that back.
 */
const uint8_t *new_secret(void);
void keep_secret(void);
void forget_secret(void);

#endif
