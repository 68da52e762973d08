/* siphash.h - the routine with its rounds open, so that tests can run the
 * published vectors of SipHash-2-4 through the very code that filters use. */
#ifndef SEEN_SIPHASH_H
#define SEEN_SIPHASH_H

#include "hash/hash.h"

seen_hash seen_siphash128(const uint8_t secret[16], const void *key, size_t len,
                          uint32_t block_rounds, uint32_t final_rounds);

/* The function of 64 bits, which is another one. `sized`: the length of the key,
 * 8 bytes little-endian, is hashed before it, as Rust does with slices. */
uint64_t seen_siphash64(const uint8_t secret[16], bool sized, const void *key,
                        size_t len, uint32_t block_rounds,
                        uint32_t final_rounds);

#endif
