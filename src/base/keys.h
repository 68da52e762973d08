/*
 * keys.h - n keys in any layout of seen_keys, for all calls that take them.
 *
 * A public call checks a batch once, before anything else; what is behind it may
 * trust the description. Hashes are no keys: whoever needs bytes asks
 * seen_keys_are_hashes() first and says SEEN_UNSUPPORTED.
 */
#ifndef SEEN_BASE_KEYS_H
#define SEEN_BASE_KEYS_H

#include "seen.h"

#include "base/base.h"

/* All that can be wrong with the description itself: SEEN_INVALID. Reads every
 * pair and every offset, but no key. */
SEEN_PRIVATE seen_status seen_keys_check(seen_keys keys);

/* n keys from `from` on as pointers and lengths. room: 8 bytes a key, where
 * integers go on big-endian machines. */
SEEN_PRIVATE void seen_keys_pairs(seen_keys keys, size_t from, size_t n,
                                  seen_key *out, uint8_t *room);

/* The same batch without its first `from` keys, and no longer than n. */
SEEN_PRIVATE seen_keys seen_keys_slice(seen_keys keys, size_t from, size_t n);

SEEN_INLINE bool seen_keys_are_hashes(seen_keys keys)
{
    return keys.layout == SEEN_HASHES || keys.layout == SEEN_HASHES64;
}

/* As seen_keys_pairs(), but pairs are used where they lie. */
SEEN_INLINE const seen_key *seen_keys_some(seen_keys keys, size_t from,
                                           size_t n, seen_key *out,
                                           uint8_t *room)
{
    if (keys.layout == SEEN_PAIRS) return (const seen_key *)keys.data + from;
    seen_keys_pairs(keys, from, n, out, room);
    return out;
}

#endif
