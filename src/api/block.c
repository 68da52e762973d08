/*
 * api/block.c - seen_block.h: LevelDB's filter blocks (dialect/leveldb.c), and
 * ours.
 *
 * A container of 384 bytes around the fingerprints of 35 keys would be absurd,
 * and so would anything that can be derived. Two things are needed, the numbers
 * and how many there are:
 *
 *     | n: 7 bits a byte, lowest first, the high bit: more | code ... |
 *
 * The universe u that fingerprints are from is the largest for which the code of
 * n numbers fits into the bytes that there are (bits/sorted.h); a fingerprint is
 * floor(h u / 2^64), h being XXH3 of the key with seed 0. Equal fingerprints of
 * different hashes stay, for u has to be known before they are.
 *
 * Worked example: 35 keys at 10 bits are 350 bits, 44 bytes. One says 35, and 43
 * are left: seven low bits of each, 31 bytes, and 96 bits for 35 ones and 61
 * steps. u = 61 * 128 = 7808: a stranger is let through with 35 / 7808 = 0.45 %.
 * LevelDB's own takes 45 bytes and lets through 1.0 %: 0.84 % by the formula, and
 * more because its 6 positions are on a line in so few bits.
 *
 * Whoever can choose keys can make them collide, here as in LevelDB: a block has
 * no room for a secret.
 */
#include "seen_block.h"

#include "base/alloc.h"
#include "base/keys.h"
#include "base/sort.h"
#include "bits/sorted.h"
#include "dialect/leveldb.h"
#include "hash/hash.h"
#include "probe/reduce.h"

#include <math.h>
#include <string.h>

#define LEAST    9   /* bytes */
#define ON_STACK 256 /* hashes */
#define CHUNK    64  /* keys */

static const uint8_t no_seed[16];

SEEN_INLINE uint64_t hash_of(const void *key, size_t len)
{
    return seen_hash_xxh3_64.one(no_seed, key, len).lo;
}

/* ---- Ours --------------------------------------------------------------- */

static size_t head_size(uint64_t n)
{
    size_t len = 1;
    for (; n >= 128; n >>= 7)
        len++;
    return len;
}

static size_t sorted_size(double bits_per_key, size_t n)
{
    double bytes = ceil(bits_per_key * (double)n / 8);
    return n == 0 ? 0 : bytes < LEAST ? LEAST : (size_t)bytes;
}

static size_t sorted_build(double bits_per_key, uint64_t *hashes, size_t n,
                           uint64_t *spare, uint8_t *to)
{
    const size_t head = head_size(n);
    const uint64_t room = sorted_size(bits_per_key, n) - head;
    const uint64_t below = seen_sorted_below(n, room);
    uint64_t left = n;
    for (size_t i = 0; i < head; i++, left >>= 7)
        to[i] = (uint8_t)((left & 127) | (i + 1 < head ? 128 : 0));
    for (size_t i = 0; i < n; i++)
        spare[i] = seen_reduce(hashes[i], below);
    seen_sorted_encode(spare, n, below, to + head);
    return head + (size_t)seen_sorted_size(n, below);
}

static bool sorted_maybe(const uint8_t *block, size_t len, const void *key,
                         size_t key_len)
{
    if (len == 0) return false;
    uint64_t n = block[0] & 127;
    size_t head = 1;
    while (block[head - 1] >= 128) {
        if (head == len || head == 5) return true;
        n |= (uint64_t)(block[head] & 127) << 7 * head;
        head++;
    }
    const uint64_t below = seen_sorted_below(n, len - head);
    if (below == 0) return true;
    const struct seen_sorted list = {block + head, n, below};
    return seen_sorted_has(&list, NULL,
                           seen_reduce(hash_of(key, key_len), below));
}

/* Few hashes go on the stack: engines make these filters by the million. */
static seen_status build_ours(double bits_per_key, seen_keys keys, void *buf,
                              size_t cap, size_t *len)
{
    const size_t n = keys.n;
    uint64_t few[2 * ON_STACK], *hashes = few;
    const uint64_t bytes = 2 * sizeof *hashes * (uint64_t)n;
    if (n > ON_STACK) hashes = seen_alloc_zeroed(&seen_system_memory, bytes);
    if (!hashes) return SEEN_NOMEM;
    uint64_t *spare = hashes + n;
    for (size_t at = 0, now; at < n; at += now) {
        seen_key room[CHUNK];
        uint8_t spelled[8 * CHUNK];
        now = seen_min_size(CHUNK, n - at);
        const seen_key *key = seen_keys_some(keys, at, now, room, spelled);
        for (size_t i = 0; i < now; i++)
            hashes[at + i] = hash_of(key[i].data, key[i].len);
    }
    seen_sort64(hashes, spare, n);
    const size_t different = (size_t)seen_distinct64(hashes, n);

    seen_status status = SEEN_OK;
    *len = sorted_size(bits_per_key, different);
    if (*len > cap)
        status = SEEN_SHORT;
    else
        *len = sorted_build(bits_per_key, hashes, different, spare, buf);
    if (hashes != few) seen_release(&seen_system_memory, hashes, bytes);
    return status;
}

/* ---- Both --------------------------------------------------------------- */

size_t seen_block_size(seen_block_form form, double bits_per_key, size_t n)
{
    if (n > SEEN_SORTED_LONGEST) return 0;
    if (form == SEEN_BLOCK_LEVELDB && bits_per_key >= 1 &&
        bits_per_key <= 1000 && bits_per_key == floor(bits_per_key))
        return n ? seen_leveldb_block_size((uint32_t)bits_per_key, n) : 1;
    if (form == SEEN_BLOCK_SORTED && bits_per_key >= 3 && bits_per_key <= 48)
        return n ? sorted_size(bits_per_key, n) : 1;
    return 0;
}

seen_status seen_block_build(seen_block_form form, double bits_per_key,
                             seen_keys keys, void *buf, size_t cap, size_t *len)
{
    const size_t size = seen_block_size(form, bits_per_key, keys.n);
    if (!len || (cap && !buf) || size == 0) return SEEN_INVALID;
    seen_status status = seen_keys_check(keys);
    if (status != SEEN_OK) return status;
    if (keys.n == 0) return *len = 0, SEEN_OK;
    if (seen_keys_are_hashes(keys)) return SEEN_UNSUPPORTED;
    if (form == SEEN_BLOCK_SORTED)
        return build_ours(bits_per_key, keys, buf, cap, len);
    *len = size;
    if (size > cap) return SEEN_SHORT;
    seen_leveldb_block_build((uint32_t)bits_per_key, keys, buf);
    return SEEN_OK;
}

bool seen_block_maybe(seen_block_form form, const void *block, size_t len,
                      const void *key, size_t key_len)
{
    return form == SEEN_BLOCK_SORTED
               ? sorted_maybe(block, len, key, key_len)
               : seen_leveldb_block_maybe(block, len, key, key_len);
}
