/* api/allow.c - filters with an allowlist: see seen_allowlist.h. */
#include "api/allow.h"

#include "exact/allowlist.h"

/* The list of a filter is found by the hash of the filter, so nothing is hashed
 * twice; a plain one finds nothing, there the list keeps its own. */
bool seen_allow_lists(const seen_filter *f, const void *key, size_t len,
                      seen_hash h)
{
    return f->hash->plain ? seen_allowlist_has(f->allowed, key, len)
                          : seen_allowlist_finds(f->allowed, h.lo, key, len);
}

void seen_allow_correct(const seen_filter *f, const seen_key *keys,
                        const seen_hash *hashes, size_t n, bool *answers)
{
    for (size_t i = 0; i < n; i++)
        answers[i] = seen_allow_corrected(f, keys[i].data, keys[i].len,
                                          hashes[i], answers[i]);
}

static seen_status copy_for(const seen_filter *f, const seen_allowlist *list,
                            seen_allowlist **copy)
{
    const seen_allocator *a = f->allocator.alloc ? &f->allocator : NULL;
    if (f->hash->plain) return seen_allowlist_copy(copy, list, a);
    return seen_allowlist_rehash(copy, list, f->hash, f->secret, a);
}

seen_status seen_allow(seen_filter *f, const seen_allowlist *list,
                       seen_listed rule)
{
    if (!f) return SEEN_INVALID;
    if (list && rule != SEEN_LISTED_NEVER && rule != SEEN_LISTED_ALWAYS)
        return SEEN_INVALID;
    seen_allowlist *copy = NULL;
    if (list) {
        seen_status status = copy_for(f, list, &copy);
        if (status != SEEN_OK) return status;
    }
    seen_allowlist_free(f->allowed); /* which may be the list that was given */
    f->allowed = copy;
    f->listed = list ? (uint8_t)rule : 0;
    return SEEN_OK;
}

const seen_allowlist *seen_allowed(const seen_filter *f, seen_listed *rule)
{
    if (f->allowed && rule) *rule = (seen_listed)f->listed;
    return f->allowed;
}
