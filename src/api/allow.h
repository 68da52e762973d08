/*
 * api/allow.h - answers for listed keys.
 *
 * The filter answers as ever and is corrected afterwards: only where its answer
 * is not the one that listed keys get is the list looked into at all. Without a
 * list that is one branch for a call, or for a chunk of a batch, while its keys
 * and hashes are still at hand.
 */
#ifndef SEEN_API_ALLOW_H
#define SEEN_API_ALLOW_H

#include "filter/filter.h"

/* There is a list, and it overrules the other answer: is this key on it? */
bool seen_allow_lists(const seen_filter *f, const void *key, size_t len,
                      seen_hash h);

/* The answer for a key whose hash is h, about which the filter says `maybe`. */
SEEN_INLINE bool seen_allow_corrected(const seen_filter *f, const void *key,
                                      size_t len, seen_hash h, bool maybe)
{
    if (!f->allowed || maybe == (f->listed == SEEN_LISTED_ALWAYS)) return maybe;
    return seen_allow_lists(f, key, len, h) ? !maybe : maybe;
}

/* There is a list: correct n answers. */
void seen_allow_correct(const seen_filter *f, const seen_key *keys,
                        const seen_hash *hashes, size_t n, bool *answers);

#endif
