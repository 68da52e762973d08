/* api/build.c - a filter from all its keys at once. */
#include "seen.h"

#include "api/make.h"
#include "base/alloc.h"
#include "filter/filter.h"

#define CHUNK 256

/* The low 64 bits of every key's hash. */
static void hash_all(const seen_filter *f, const seen_key *keys, size_t n,
                     uint64_t *out)
{
    seen_hash hashes[CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t now = seen_min_size(CHUNK, n - at);
        f->hash->many(f->secret, keys + at, now, hashes);
        for (size_t i = 0; i < now; i++)
            out[at + i] = hashes[i].lo;
    }
}

static seen_status build(seen_filter *f, const seen_key *keys, size_t n)
{
    if (n == 0) return SEEN_OK;
    uint64_t bytes = (uint64_t)n * sizeof(uint64_t);
    uint64_t *hashes = seen_alloc_zeroed(&f->allocator, bytes);
    uint64_t *spare = seen_alloc_zeroed(&f->allocator, bytes);
    seen_status status = SEEN_NOMEM;
    if (hashes && spare) {
        hash_all(f, keys, n, hashes);
        status = f->ops->build(f, hashes, n, spare);
    }
    seen_release(&f->allocator, spare, bytes);
    seen_release(&f->allocator, hashes, bytes);
    return status;
}

seen_status seen_build(seen_filter **f, const seen_spec *spec,
                       const seen_key *keys, size_t n)
{
    if (!f || !spec || (n && !keys)) return SEEN_INVALID;
    seen_spec sized = *spec;
    const struct seen_filter_ops *ops = seen_kinds_find(spec->kind);
    sized.items = ops && ops->hash ? 0 : n ? n : 1;
    seen_filter *made;
    seen_status status = seen_make(&made, &sized, true);
    if (status != SEEN_OK) return status;
    status = made->ops->build ? build(made, keys, n)
                              : seen_add_many(made, keys, n, NULL);
    if (status != SEEN_OK) {
        seen_free(made);
        return status;
    }
    *f = made;
    return SEEN_OK;
}
