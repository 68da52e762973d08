/* exact/allowlist.h - what filters need of an allowlist beyond its public
 * calls: to look a key up by the hash that they have already. */
#ifndef SEEN_EXACT_ALLOWLIST_H
#define SEEN_EXACT_ALLOWLIST_H

#include "seen_allowlist.h"

#include "hash/hash.h"

/* As seen_allowlist_copy(), found by this hash under this secret from now on.
 * It must not be `plain`. */
seen_status seen_allowlist_rehash(seen_allowlist **copy,
                                  const seen_allowlist *list,
                                  const struct seen_hash_fn *hash,
                                  const uint8_t secret[16],
                                  const seen_allocator *allocator);

/* As seen_allowlist_has(), for a key whose hash under the list's own hash and
 * secret has these low 64 bits. */
bool seen_allowlist_finds(const seen_allowlist *list, uint64_t hash,
                          const void *key, size_t len);

#endif
