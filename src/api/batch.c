/*
 * api/batch.c - many keys at once, wherever they lie.
 *
 * Keys become hashes a few hundred at a time, on the stack, always some ahead
 * of those being probed, so that a filter's prefetch ring never runs dry:
 *
 *     keys     ........................................
 *     hashes            | probe these | ahead |
 *                       0            256     288
 *
 * Hashes that the caller has made are probed where they lie. All other layouts
 * differ only in hash_some(), and in how the keys of a chunk are found again
 * where the bytes themselves are needed: for the list of a filter, and for kinds
 * that read keys.
 */
#include "api/batch.h"

#include "api/allow.h"
#include "base/keys.h"

#include <string.h>

#define CHUNK 256
#define AHEAD 32   /* at least the longest ring of any kind */
#define PIECE 4096 /* answers that become bits; a multiple of 64 */

seen_status seen_keys_fit(const seen_filter *f, seen_keys keys)
{
    seen_status status = seen_keys_check(keys);
    if (status != SEEN_OK || !seen_keys_are_hashes(keys)) return status;
    if (f->ops->keys) return SEEN_UNSUPPORTED;
    return keys.layout == SEEN_HASHES64 && f->hash->bits != 64 ? SEEN_INVALID
                                                               : SEEN_OK;
}

/* ---- Keys to hashes ------------------------------------------------------ */

/* Where only pairs will do. */
static void hash_pairs(const seen_filter *f, seen_keys keys, size_t from,
                       size_t n, seen_hash *out)
{
    seen_key pairs[CHUNK];
    for (size_t at = 0, now; at < n; at += now) {
        now = seen_min_size(CHUNK, n - at);
        seen_keys_pairs(keys, from + at, now, pairs, NULL);
        f->hash->many(f->secret, pairs, now, out + at);
    }
}

static void hash_some(const seen_filter *f, seen_keys keys, size_t from,
                      size_t n, seen_hash *out)
{
    if (n == 0) return; /* there may be no data */
    switch (keys.layout) {
    case SEEN_PAIRS:
        f->hash->many(f->secret, (const seen_key *)keys.data + from, n, out);
        break;
    case SEEN_INTEGERS:
        f->hash->integers(f->secret, (const char *)keys.data + 8 * from, n,
                          out);
        break;
    case SEEN_HASHES:
        memcpy(out, (const seen_hash *)keys.data + from, n * sizeof *out);
        break;
    case SEEN_HASHES64:
        for (size_t i = 0; i < n; i++)
            out[i] = (seen_hash){seen_integer_at(keys.data, from + i), 0};
        break;
    default:
        hash_pairs(f, keys, from, n, out);
    }
}

struct stream {
    const seen_filter *f;
    seen_keys keys;
    size_t at;          /* the key that h[0] is of */
    size_t now;         /* hashes to probe */
    size_t ahead;       /* and how many lie behind them */
    const seen_hash *h; /* the caller's, or room */
    seen_hash room[CHUNK + AHEAD];
};

/* Go on behind the hashes that were probed; false at the end. */
static bool next(struct stream *s)
{
    size_t have = s->ahead, left;
    s->at += s->now;
    if (s->keys.layout == SEEN_HASHES) {
        s->h += s->now;
        s->now = s->keys.n - s->at;
        return s->now > 0;
    }
    memmove(s->room, s->room + s->now, have * sizeof *s->room);
    left = seen_min_size(CHUNK + AHEAD - have, s->keys.n - s->at - have);
    hash_some(s->f, s->keys, s->at + have, left, s->room + have);
    s->now = seen_min_size(have + left, CHUNK);
    s->ahead = have + left - s->now;
    return s->now > 0;
}

static bool start(struct stream *s, const seen_filter *f, seen_keys keys)
{
    s->f = f;
    s->keys = keys;
    s->at = s->now = s->ahead = 0;
    s->h = keys.layout == SEEN_HASHES ? keys.data : s->room;
    bool some = next(s);
    if (some) f->ops->prefetch(f, s->h, s->now + s->ahead);
    return some;
}

/* ---- Answers for listed keys --------------------------------------------- */

/* n answers, `from` being the key of the first; whoever brings hashes has no keys
 * to look up. hashes may be NULL: not made yet. */
static void correct(const seen_filter *f, seen_keys keys, size_t from, size_t n,
                    const seen_hash *hashes, bool *answers)
{
    seen_key pairs[CHUNK];
    seen_hash made[CHUNK];
    uint8_t room[8 * CHUNK];
    if (!f->allowed || seen_keys_are_hashes(keys)) return;
    for (size_t at = 0, now; at < n; at += now) {
        now = seen_min_size(CHUNK, n - at);
        if (!hashes) hash_some(f, keys, from + at, now, made);
        seen_allow_correct(f, seen_keys_some(keys, from + at, now, pairs, room),
                           hashes ? hashes + at : made, now, answers + at);
    }
}

/* ---- Kinds that read keys ------------------------------------------------ */

/* Pairs all at once, others a chunk at a time. */
SEEN_INLINE size_t in_one_go(seen_keys keys, size_t at)
{
    return seen_min_size(keys.n - at,
                         keys.layout == SEEN_PAIRS ? keys.n : CHUNK);
}

static void maybe_keys(const seen_filter *f, seen_keys keys, bool *answers)
{
    seen_key pairs[CHUNK];
    uint8_t room[8 * CHUNK];
    for (size_t at = 0, now; at < keys.n; at += now) {
        now = in_one_go(keys, at);
        f->ops->keys->maybe_many(f, seen_keys_some(keys, at, now, pairs, room),
                                 now, answers + at);
    }
    correct(f, keys, 0, keys.n, NULL, answers);
}

static seen_status visit_keys(seen_filter *f, seen_keys keys, bool *before,
                              size_t *visited)
{
    seen_key pairs[CHUNK];
    uint8_t room[8 * CHUNK];
    seen_status status = SEEN_OK;
    size_t total = 0, now, done;
    for (; total < keys.n && status == SEEN_OK; total += done) {
        now = in_one_go(keys, total);
        status = f->ops->keys->visit_many(
            f, seen_keys_some(keys, total, now, pairs, room), now,
            before ? before + total : NULL, &done);
    }
    if (before) correct(f, keys, 0, total, NULL, before);
    *visited = total;
    return status;
}

/* ---- Batches that fit ---------------------------------------------------- */

static void maybe_all(const seen_filter *f, seen_keys keys, bool *answers)
{
    struct stream s;
    if (f->ops->keys) {
        maybe_keys(f, keys, answers);
        return;
    }
    for (bool some = start(&s, f, keys); some; some = next(&s)) {
        f->ops->maybe_many(f, s.h, s.now, s.ahead, answers + s.at);
        correct(f, keys, s.at, s.now, s.h, answers + s.at);
    }
}

static seen_status visit_all(seen_filter *f, seen_keys keys, bool *before,
                             size_t *visited)
{
    struct stream s;
    seen_status status = SEEN_OK;
    *visited = 0;
    if (f->ops->keys) return visit_keys(f, keys, before, visited);
    for (bool some = start(&s, f, keys); some; some = next(&s)) {
        size_t done;
        status = f->ops->visit_many(f, s.h, s.now, s.ahead,
                                    before ? before + s.at : NULL, &done);
        if (before) correct(f, keys, s.at, done, s.h, before + s.at);
        *visited += done;
        if (status != SEEN_OK) break;
    }
    return status;
}

/* ---- Answers as bytes ---------------------------------------------------- */

/* A batch that does not fit: every answer is "maybe". */
static seen_status all_maybe(seen_status status, size_t n, bool *answers)
{
    if (answers && n <= SEEN_KEYS_MAX) memset(answers, true, n);
    return status;
}

seen_status seen_maybe_many(const seen_filter *f, seen_keys keys, bool *answers)
{
    seen_status status = seen_keys_fit(f, keys);
    if (keys.n && !answers) return SEEN_INVALID;
    if (status != SEEN_OK) return all_maybe(status, keys.n, answers);
    maybe_all(f, keys, answers);
    return SEEN_OK;
}

seen_status seen_maybe_many_at(const seen_filter *f, uint64_t now_ms,
                               seen_keys keys, bool *answers)
{
    struct stream s;
    seen_status status = seen_keys_fit(f, keys);
    if (status != SEEN_OK || !f->ops->maybe_many_at || !answers)
        return seen_maybe_many(f, keys, answers);
    for (bool some = start(&s, f, keys); some; some = next(&s)) {
        if (s.at > 0) f->ops->prefetch(f, s.h, s.now);
        f->ops->maybe_many_at(f, now_ms, s.h, s.now, answers + s.at);
        correct(f, keys, s.at, s.now, s.h, answers + s.at);
    }
    return SEEN_OK;
}

seen_status seen_visit_many(seen_filter *f, seen_keys keys, bool *before,
                            size_t *visited)
{
    size_t done = 0;
    seen_status status = seen_keys_fit(f, keys);
    if (status != SEEN_OK)
        all_maybe(status, keys.n, before);
    else
        status =
            f->frozen ? SEEN_UNSUPPORTED : visit_all(f, keys, before, &done);
    if (visited) *visited = done;
    return status;
}

seen_status seen_add_many(seen_filter *f, seen_keys keys, size_t *added)
{
    return seen_visit_many(f, keys, NULL, added);
}

seen_status seen_remove_many(seen_filter *f, seen_keys keys, bool *removed,
                             size_t *done)
{
    const struct seen_key_ops *by_key = f->ops->keys;
    seen_hash hashes[CHUNK];
    seen_key pairs[CHUNK];
    uint8_t room[8 * CHUNK];
    size_t total = 0;
    seen_status status = seen_keys_fit(f, keys);
    if (status == SEEN_OK && (f->frozen || !(by_key ? by_key->remove != NULL
                                                    : f->ops->remove != NULL)))
        status = SEEN_UNSUPPORTED;
    while (status == SEEN_OK && total < keys.n) {
        const size_t now = seen_min_size(CHUNK, keys.n - total);
        const seen_key *key = NULL;
        if (by_key) {
            key = seen_keys_some(keys, total, now, pairs, room);
        } else {
            hash_some(f, keys, total, now, hashes);
            f->ops->prefetch(f, hashes, now);
        }
        for (size_t i = 0; i < now; i++, total++) {
            status = by_key ? by_key->remove(f, key[i].data, key[i].len)
                            : f->ops->remove(f, hashes[i]);
            if (status != SEEN_OK && status != SEEN_ABSENT) break;
            if (removed) removed[total] = status == SEEN_OK;
            status = SEEN_OK;
        }
    }
    if (done) *done = total;
    return status;
}

/* One chunk whose keys, or hashes, are at hand. */
static void count_some(const seen_filter *f, const seen_key *key,
                       const seen_hash *hash, size_t n, uint32_t *counts)
{
    const struct seen_key_ops *by_key = f->ops->keys;
    for (size_t i = 0; i < n; i++) {
        if (!by_key)
            counts[i] = f->ops->count(f, hash[i]);
        else
            counts[i] = by_key->count(f, key[i].data, key[i].len);
    }
}

seen_status seen_count_many(const seen_filter *f, seen_keys keys,
                            uint32_t *counts)
{
    const struct seen_key_ops *by_key = f->ops->keys;
    const bool counting =
        by_key ? by_key->count != NULL : f->ops->count != NULL;
    seen_hash hashes[CHUNK];
    seen_key pairs[CHUNK];
    uint8_t room[8 * CHUNK];
    bool there[CHUNK];
    seen_status status = seen_keys_fit(f, keys);
    if (keys.n && !counts) return SEEN_INVALID;
    if (keys.n > SEEN_KEYS_MAX) return status;
    for (size_t at = 0, now; at < keys.n; at += now, counts += now) {
        now = seen_min_size(CHUNK, keys.n - at);
        memset(there, true, now);
        if (status == SEEN_OK && counting) {
            const seen_key *key = NULL;
            if (by_key) key = seen_keys_some(keys, at, now, pairs, room);
            hash_some(f, keys, at, now, hashes);
            f->ops->prefetch(f, hashes, now);
            count_some(f, key, hashes, now, counts);
            for (size_t i = 0; i < now; i++)
                there[i] = counts[i] > 0;
            correct(f, keys, at, now, hashes, there);
        } else {
            if (status == SEEN_OK)
                maybe_all(f, seen_keys_slice(keys, at, now), there);
            for (size_t i = 0; i < now; i++)
                counts[i] = there[i];
        }
        for (size_t i = 0; i < now; i++)
            counts[i] = there[i] ? counts[i] + !counts[i] : 0;
    }
    return status;
}

/* ---- Answers as bits ----------------------------------------------------- */

/* n answers, none behind them: whole words are written. */
static void pack(const bool *answers, size_t n, uint64_t *bits)
{
    for (size_t at = 0; at < n; at += 64) {
        uint64_t word = 0;
        for (size_t i = seen_min_size(64, n - at); i-- > 0;)
            word = word << 1 | answers[at + i];
        bits[at / 64] = word;
    }
}

static seen_status all_bits(seen_status status, size_t n, uint64_t *bits)
{
    if (n > SEEN_KEYS_MAX) return status;
    memset(bits, 0xff, n / 64 * 8);
    if (n % 64) bits[n / 64] = ((uint64_t)1 << n % 64) - 1;
    return status;
}

seen_status seen_maybe_bits(const seen_filter *f, seen_keys keys,
                            uint64_t *bits)
{
    bool answers[PIECE];
    seen_status status = seen_keys_fit(f, keys);
    if (keys.n == 0) return status;
    if (!bits) return SEEN_INVALID;
    if (status != SEEN_OK) return all_bits(status, keys.n, bits);
    for (size_t at = 0, now; at < keys.n; at += now) {
        now = seen_min_size(PIECE, keys.n - at);
        maybe_all(f, seen_keys_slice(keys, at, now), answers);
        pack(answers, now, bits + at / 64);
    }
    return SEEN_OK;
}

seen_status seen_visit_bits(seen_filter *f, seen_keys keys, uint64_t *before,
                            size_t *visited)
{
    bool answers[PIECE];
    size_t total = 0, now, done;
    seen_status status = seen_keys_fit(f, keys);
    if (visited) *visited = 0;
    if (keys.n && !before) return SEEN_INVALID;
    if (status != SEEN_OK) return all_bits(status, keys.n, before);
    if (f->frozen) return SEEN_UNSUPPORTED;
    for (size_t at = 0; at < keys.n && status == SEEN_OK; at += now) {
        now = seen_min_size(PIECE, keys.n - at);
        status = visit_all(f, seen_keys_slice(keys, at, now), answers, &done);
        pack(answers, done, before + at / 64);
        total += done;
    }
    if (visited) *visited = total;
    return status;
}

/* ---- Hashes themselves --------------------------------------------------- */

seen_status seen_hash_many(const seen_filter *f, seen_keys keys,
                           seen_hash *hashes)
{
    seen_status status = seen_keys_fit(f, keys);
    if (status != SEEN_OK) return status;
    if (keys.n && !hashes) return SEEN_INVALID;
    hash_some(f, keys, 0, keys.n, hashes);
    return SEEN_OK;
}

void seen_keys_low(const seen_filter *f, seen_keys keys, uint64_t *low)
{
    seen_hash hashes[CHUNK];
    for (size_t at = 0, now; at < keys.n; at += now) {
        now = seen_min_size(CHUNK, keys.n - at);
        hash_some(f, keys, at, now, hashes);
        for (size_t i = 0; i < now; i++)
            low[at + i] = hashes[i].lo;
    }
}

seen_status seen_hash64_many(const seen_filter *f, seen_keys keys,
                             uint64_t *hashes)
{
    seen_status status = seen_keys_fit(f, keys);
    if (status != SEEN_OK) return status;
    if ((keys.n && !hashes) || f->hash->bits != 64) return SEEN_INVALID;
    seen_keys_low(f, keys, hashes);
    return SEEN_OK;
}
