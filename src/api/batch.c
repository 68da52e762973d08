/*
 * api/batch.c - many keys at once.
 *
 * Keys become hashes a few hundred at a time, on the stack, always some ahead
 * of those being probed, so that a filter's prefetch ring never runs dry:
 *
 *     keys     ........................................
 *     hashes            | probe these | ahead |
 *                       0            256     288
 */
#include "seen.h"

#include "api/allow.h"
#include "filter/filter.h"

#include <string.h>

#define CHUNK 256
#define AHEAD 32 /* at least the longest ring of any kind */

struct stream {
    const seen_filter *f;
    const seen_key *keys;
    size_t left; /* keys not hashed yet */
    size_t have; /* hashes in the buffer */
    seen_hash hashes[CHUNK + AHEAD];
};

/* Top up the buffer; how many to probe now, 0 at the end. */
static size_t fill(struct stream *s)
{
    size_t more = seen_min_size(CHUNK + AHEAD - s->have, s->left);
    if (more > 0) { /* the keys of an empty batch may be NULL */
        s->f->hash->many(s->f->secret, s->keys, more, s->hashes + s->have);
        s->keys += more;
        s->left -= more;
        s->have += more;
    }
    return seen_min_size(s->have, CHUNK);
}

static size_t start(struct stream *s, const seen_filter *f,
                    const seen_key *keys, size_t n)
{
    s->f = f;
    s->keys = keys;
    s->left = n;
    s->have = 0;
    size_t now = fill(s);
    f->ops->prefetch(f, s->hashes, s->have);
    return now;
}

static size_t next(struct stream *s, size_t done)
{
    s->have -= done;
    memmove(s->hashes, s->hashes + done, s->have * sizeof *s->hashes);
    return fill(s);
}

/* ---- Kinds that read keys: a hash is for the list only ------------------- */

static void correct_foreign(const seen_filter *f, const seen_key *keys,
                            size_t n, bool *answers)
{
    seen_hash hashes[CHUNK];
    for (size_t at = 0, now; f->allowed && at < n; at += now) {
        now = seen_min_size(CHUNK, n - at);
        f->hash->many(f->secret, keys + at, now, hashes);
        seen_allow_correct(f, keys + at, hashes, now, answers + at);
    }
}

static seen_status visit_foreign(seen_filter *f, const seen_key *keys, size_t n,
                                 bool *before, size_t *visited)
{
    size_t done = 0;
    seen_status status =
        f->frozen ? SEEN_UNSUPPORTED
                  : f->ops->keys->visit_many(f, keys, n, before, &done);
    if (before) correct_foreign(f, keys, done, before);
    if (visited) *visited = done;
    return status;
}

/* ---- Keys --------------------------------------------------------------- */

void seen_maybe_many(const seen_filter *f, const seen_key *keys, size_t n,
                     bool *answers)
{
    struct stream s;
    if (f->ops->keys) {
        f->ops->keys->maybe_many(f, keys, n, answers);
        correct_foreign(f, keys, n, answers);
        return;
    }
    for (size_t now = start(&s, f, keys, n); now > 0; now = next(&s, now)) {
        f->ops->maybe_many(f, s.hashes, now, s.have - now, answers);
        if (f->allowed) seen_allow_correct(f, keys, s.hashes, now, answers);
        answers += now;
        keys += now;
    }
}

seen_status seen_visit_many(seen_filter *f, const seen_key *keys, size_t n,
                            bool *before, size_t *visited)
{
    struct stream s;
    size_t total = 0;
    if (f->ops->keys) return visit_foreign(f, keys, n, before, visited);
    seen_status status = f->frozen ? SEEN_UNSUPPORTED : SEEN_OK;
    if (f->frozen) n = 0;
    for (size_t now = start(&s, f, keys, n); now > 0; now = next(&s, now)) {
        size_t done;
        status = f->ops->visit_many(f, s.hashes, now, s.have - now,
                                    before ? before + total : NULL, &done);
        if (f->allowed && before)
            seen_allow_correct(f, keys + total, s.hashes, done, before + total);
        total += done;
        if (status != SEEN_OK) break;
    }
    if (visited) *visited = total;
    return status;
}

seen_status seen_add_many(seen_filter *f, const seen_key *keys, size_t n,
                          size_t *added)
{
    return seen_visit_many(f, keys, n, NULL, added);
}

/* ---- Hashed ------------------------------------------------------------- */

void seen_hash_many(const seen_filter *f, const seen_key *keys, size_t n,
                    seen_hash *hashes)
{
    f->hash->many(f->secret, keys, n, hashes);
}

void seen_maybe_many_hashed(const seen_filter *f, const seen_hash *hashes,
                            size_t n, bool *answers)
{
    f->ops->prefetch(f, hashes, n);
    f->ops->maybe_many(f, hashes, n, 0, answers);
}

void seen_maybe_many_hashed_at(const seen_filter *f, uint64_t now_ms,
                               const seen_hash *hashes, size_t n, bool *answers)
{
    f->ops->prefetch(f, hashes, n);
    if (f->ops->maybe_many_at)
        f->ops->maybe_many_at(f, now_ms, hashes, n, answers);
    else
        f->ops->maybe_many(f, hashes, n, 0, answers);
}

seen_status seen_visit_many_hashed(seen_filter *f, const seen_hash *hashes,
                                   size_t n, bool *before, size_t *visited)
{
    size_t done;
    if (f->frozen) {
        if (visited) *visited = 0;
        return SEEN_UNSUPPORTED;
    }
    f->ops->prefetch(f, hashes, n);
    seen_status status = f->ops->visit_many(f, hashes, n, 0, before, &done);
    if (visited) *visited = done;
    return status;
}

seen_status seen_add_many_hashed(seen_filter *f, const seen_hash *hashes,
                                 size_t n, size_t *added)
{
    return seen_visit_many_hashed(f, hashes, n, NULL, added);
}
