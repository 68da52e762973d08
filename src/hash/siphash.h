/* siphash.h - the routine with its rounds open, so that tests can run the
 * published vectors of SipHash-2-4 through the very code that filters use. */
#ifndef SEEN_SIPHASH_H
#define SEEN_SIPHASH_H

#include "hash/hash.h"

seen_hash seen_siphash128(const uint8_t secret[16], const void *key, size_t len,
                          uint32_t block_rounds, uint32_t final_rounds);

#endif
