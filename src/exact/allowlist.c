/*
 * allowlist.c - a small exact set of byte strings.
 *
 * All keys lie in one block, the arena, one after the other in the order in
 * which they came, each behind its length. A table of slots finds them: open
 * addressing, a power of two, at most three quarters full.
 *
 *     arena   | 5 a l i c e | 3 b o b | 0 | 7 e x a m p l e | room ...
 *             0             9         16  20
 *
 *     slots   | -- | bob's hash, 9 | -- | "" , 16 | alice's hash, 0 | -- ...
 *
 * A question computes the hash, goes to its slot and looks at that one and
 * those behind it until one is empty; bytes are compared only where all 64 bits
 * of the hash agree. So an answer is exact: a hash that collides costs time,
 * never truth.
 *
 * Removing a key marks it in the arena (the top bit of its length) and closes
 * the gap in the slots by moving up those behind it that may, so there are no
 * tombstones and no question gets slower. When half of the arena is marked, the
 * rest moves together in place: a removal never needs memory.
 *
 * Which hash? The keys of the list come from whoever runs the system, those
 * asked for come from strangers. A stranger can add nothing, so the worst to
 * hope for is to hit the longest run of slots that the operator's own keys
 * happen to make: a few dozen comparisons of 8 bytes. A list by itself
 * therefore uses XXH3 and no secret. SipHash with a public key would cost three
 * times as much for nothing, since whoever can compute a hash can search for
 * keys that share a slot. The list of a filter is found by the hash and the
 * secret of that filter (seen_allowlist_rehash): nothing is hashed twice, and
 * the list of a SEEN_KEYED filter is as safe as the filter even where the
 * listed keys themselves come from strangers.
 *
 * Worked example: 1000 domains of 12 bytes. The arena has 16,000 of 16,384
 * bytes in use, the table 2048 slots of 16 bytes: 49 KB. A blocked filter for
 * the same keys at 1 % takes 1.3 KB, which is why the list should stay small.
 */
#include "exact/allowlist.h"

#include "base/alloc.h"
#include "base/base.h"
#include "base/bytes.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

#define PREFIX      4           /* bytes of a length, here and when saved */
#define REMOVED     0x80000000u /* in a length */
#define FIRST_SLOTS 8
#define FIRST_ARENA 256
#define SAVED_MAX   UINT32_MAX

struct slot {
    uint64_t hash;
    uint64_t at; /* 1 + where in the arena; 0: empty */
};

struct seen_allowlist {
    seen_allocator allocator;
    const struct seen_hash_fn *hash;
    uint8_t secret[16];
    uint64_t count;
    struct slot *slots;
    uint64_t nslots; /* a power of two, or 0 */
    uint8_t *arena;
    uint64_t cap, used, removed; /* bytes of the arena */
};

/* ---- The arena ---------------------------------------------------------- */

struct key {
    const uint8_t *data;
    uint32_t len;
    bool removed;
};

static struct key key_at(const seen_allowlist *list, uint64_t at)
{
    uint32_t len = seen_get_le32(list->arena + at);
    return (struct key){list->arena + at + PREFIX, len & ~REMOVED,
                        (len & REMOVED) != 0};
}

static uint64_t size_of(uint64_t len)
{
    return PREFIX + len;
}

static bool same(struct key a, const void *key, size_t len)
{
    return a.len == len && (len == 0 || memcmp(a.data, key, len) == 0);
}

/* As words in a dictionary: the shorter first where one begins the other. */
static int compare(struct key a, struct key b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static seen_status widen_arena(seen_allowlist *list, uint64_t cap)
{
    if (cap <= list->cap) return SEEN_OK;
    uint8_t *arena = seen_alloc_zeroed(&list->allocator, cap);
    if (!arena) return SEEN_NOMEM;
    if (list->used) memcpy(arena, list->arena, (size_t)list->used);
    seen_release(&list->allocator, list->arena, list->cap);
    list->arena = arena;
    list->cap = cap;
    return SEEN_OK;
}

/* ---- The table ---------------------------------------------------------- */

static uint64_t mask(const seen_allowlist *list)
{
    return list->nslots - 1;
}

/* The high bits of a product, so that any bits of the hash will do. */
static uint64_t home(const seen_allowlist *list, uint64_t hash)
{
    return hash * 0x9e3779b97f4a7c15u >> 32 & mask(list);
}

/* The slot of a key, or the empty one where it belongs. */
static struct slot *find(const seen_allowlist *list, uint64_t hash,
                         const void *key, size_t len)
{
    uint64_t i = home(list, hash);
    for (; list->slots[i].at; i = (i + 1) & mask(list))
        if (list->slots[i].hash == hash &&
            same(key_at(list, list->slots[i].at - 1), key, len))
            break;
    return &list->slots[i];
}

static struct slot *first_empty(const seen_allowlist *list, uint64_t hash)
{
    uint64_t i = home(list, hash);
    while (list->slots[i].at)
        i = (i + 1) & mask(list);
    return &list->slots[i];
}

static uint64_t slots_for(uint64_t count)
{
    uint64_t n = FIRST_SLOTS;
    while (n / 4 * 3 < count)
        n *= 2;
    return n;
}

static seen_status widen_table(seen_allowlist *list, uint64_t nslots)
{
    if (nslots <= list->nslots) return SEEN_OK;
    struct slot *slots =
        seen_alloc_zeroed(&list->allocator, nslots * sizeof *slots);
    if (!slots) return SEEN_NOMEM;
    seen_allowlist old = *list;
    list->slots = slots;
    list->nslots = nslots;
    for (uint64_t i = 0; i < old.nslots; i++)
        if (old.slots[i].at)
            *first_empty(list, old.slots[i].hash) = old.slots[i];
    seen_release(&list->allocator, old.slots, old.nslots * sizeof *slots);
    return SEEN_OK;
}

/* Empty slot i, and let those behind it move up unless that would put them
 * before their home. */
static void close_gap(seen_allowlist *list, uint64_t i)
{
    const uint64_t m = mask(list);
    for (uint64_t j = (i + 1) & m; list->slots[j].at; j = (j + 1) & m) {
        uint64_t from_home = (j - home(list, list->slots[j].hash)) & m;
        if (from_home < ((j - i) & m)) continue;
        list->slots[i] = list->slots[j];
        i = j;
    }
    list->slots[i] = (struct slot){0};
}

/* ---- Life --------------------------------------------------------------- */

static uint64_t hash_of(const seen_allowlist *list, const void *key, size_t len)
{
    return list->hash->one(list->secret, key, len).lo;
}

seen_status seen_allowlist_new(seen_allowlist **list,
                               const seen_allocator *allocator)
{
    if (!list || (allocator && (!allocator->alloc || !allocator->release)))
        return SEEN_INVALID;
    seen_allocator a = seen_allocator_or_default(allocator);
    seen_allowlist *made = seen_alloc_zeroed(&a, sizeof *made);
    if (!made) return SEEN_NOMEM;
    made->allocator = a;
    made->hash = &seen_hash_xxh3_64;
    *list = made;
    return SEEN_OK;
}

void seen_allowlist_free(seen_allowlist *list)
{
    if (!list) return;
    seen_allocator a = list->allocator;
    seen_release(&a, list->slots, list->nslots * sizeof *list->slots);
    seen_release(&a, list->arena, list->cap);
    seen_release(&a, list, sizeof *list);
}

/* An empty list with room for so many keys of so many bytes, prefixes
 * included. */
static seen_status new_with_room(seen_allowlist **list, uint64_t count,
                                 uint64_t bytes,
                                 const seen_allocator *allocator)
{
    seen_allowlist *made;
    seen_status status = seen_allowlist_new(&made, allocator);
    if (status != SEEN_OK) return status;
    if (count) {
        status = widen_arena(made, bytes);
        if (status == SEEN_OK) status = widen_table(made, slots_for(count));
    }
    if (status != SEEN_OK) {
        seen_allowlist_free(made);
        return status;
    }
    *list = made;
    return SEEN_OK;
}

/* There is room, and it is not listed. */
static void append(seen_allowlist *list, struct slot *slot, uint64_t hash,
                   const void *key, size_t len)
{
    uint8_t *to = list->arena + list->used;
    seen_put_le32(to, (uint32_t)len);
    if (len) memcpy(to + PREFIX, key, len);
    *slot = (struct slot){hash, list->used + 1};
    list->used += size_of(len);
    list->count++;
}

/* ---- Keys --------------------------------------------------------------- */

bool seen_allowlist_finds(const seen_allowlist *list, uint64_t hash,
                          const void *key, size_t len)
{
    return list->count && find(list, hash, key, len)->at != 0;
}

bool seen_allowlist_has(const seen_allowlist *list, const void *key, size_t len)
{
    return list->count &&
           find(list, hash_of(list, key, len), key, len)->at != 0;
}

/* Bytes of the keys that are listed, prefixes included. */
static uint64_t listed_bytes(const seen_allowlist *list)
{
    return list->used - list->removed;
}

static uint64_t saved_len(const seen_allowlist *list)
{
    return PREFIX + listed_bytes(list);
}

static seen_status make_room(seen_allowlist *list, uint64_t bytes)
{
    uint64_t need = list->used + bytes, cap = list->cap;
    if (need > cap) cap = cap ? 2 * cap : FIRST_ARENA;
    seen_status status = widen_arena(list, need > cap ? need : cap);
    if (status != SEEN_OK) return status;
    return widen_table(list, slots_for(list->count + 1));
}

seen_status seen_allowlist_add(seen_allowlist *list, const void *key,
                               size_t len)
{
    if (len > SEEN_LISTED_KEY_MAX || (len && !key)) return SEEN_INVALID;
    uint64_t hash = hash_of(list, key, len);
    if (seen_allowlist_finds(list, hash, key, len)) return SEEN_OK;
    if (saved_len(list) + size_of(len) > SAVED_MAX) return SEEN_FULL;
    seen_status status = make_room(list, size_of(len));
    if (status != SEEN_OK) return status;
    append(list, first_empty(list, hash), hash, key, len);
    return SEEN_OK;
}

/*
 * Move the keys that are left together. Each moves down or stays, in order, so
 * the slot of the next one is the only slot that says where that one was.
 */
static void compact(seen_allowlist *list)
{
    uint64_t to = 0, size;
    for (uint64_t at = 0; at < list->used; at += size) {
        struct key key = key_at(list, at);
        size = size_of(key.len);
        if (key.removed) continue;
        uint64_t i = home(list, hash_of(list, key.data, key.len));
        while (list->slots[i].at != at + 1)
            i = (i + 1) & mask(list);
        list->slots[i].at = to + 1;
        memmove(list->arena + to, list->arena + at, (size_t)size);
        to += size;
    }
    list->used = to;
    list->removed = 0;
}

seen_status seen_allowlist_remove(seen_allowlist *list, const void *key,
                                  size_t len)
{
    if (!list->count) return SEEN_ABSENT;
    struct slot *slot = find(list, hash_of(list, key, len), key, len);
    if (!slot->at) return SEEN_ABSENT;
    seen_put_le32(list->arena + slot->at - 1, (uint32_t)len | REMOVED);
    close_gap(list, (uint64_t)(slot - list->slots));
    list->count--;
    list->removed += size_of(len);
    if (list->removed > list->used / 2) compact(list);
    return SEEN_OK;
}

uint64_t seen_allowlist_count(const seen_allowlist *list)
{
    return list->count;
}

uint64_t seen_allowlist_bytes(const seen_allowlist *list)
{
    return sizeof *list + list->nslots * sizeof *list->slots + list->cap;
}

/* The first key at or behind `at` that is listed, and where it is; false at
 * the end. */
static bool next_key(const seen_allowlist *list, uint64_t *at, struct key *key)
{
    for (; *at < list->used; *at += size_of(key->len)) {
        *key = key_at(list, *at);
        if (!key->removed) return true;
    }
    return false;
}

void seen_allowlist_each(const seen_allowlist *list,
                         bool (*visit)(void *ctx, const void *key, size_t len),
                         void *ctx)
{
    struct key key;
    for (uint64_t at = 0; next_key(list, &at, &key); at += size_of(key.len))
        if (!visit(ctx, key.data, key.len)) return;
}

/* ---- Whole lists -------------------------------------------------------- */

seen_status seen_allowlist_rehash(seen_allowlist **copy,
                                  const seen_allowlist *list,
                                  const struct seen_hash_fn *hash,
                                  const uint8_t secret[16],
                                  const seen_allocator *allocator)
{
    assert(!hash->plain);
    seen_allowlist *made;
    seen_status status =
        new_with_room(&made, list->count, listed_bytes(list), allocator);
    if (status != SEEN_OK) return status;
    made->hash = hash;
    memcpy(made->secret, secret, sizeof made->secret);
    struct key key;
    for (uint64_t at = 0; next_key(list, &at, &key); at += size_of(key.len)) {
        uint64_t h = hash_of(made, key.data, key.len);
        append(made, first_empty(made, h), h, key.data, key.len);
    }
    *copy = made;
    return SEEN_OK;
}

seen_status seen_allowlist_copy(seen_allowlist **copy,
                                const seen_allowlist *list,
                                const seen_allocator *allocator)
{
    if (!copy || !list) return SEEN_INVALID;
    return seen_allowlist_rehash(copy, list, list->hash, list->secret,
                                 allocator);
}

bool seen_allowlist_equal(const seen_allowlist *a, const seen_allowlist *b)
{
    if (a->count != b->count) return false;
    struct key key;
    for (uint64_t at = 0; next_key(a, &at, &key); at += size_of(key.len))
        if (!seen_allowlist_has(b, key.data, key.len)) return false;
    return true;
}

void seen_allowlist_clear(seen_allowlist *list)
{
    if (list->nslots)
        memset(list->slots, 0, (size_t)(list->nslots * sizeof *list->slots));
    list->count = list->used = list->removed = 0;
}

/* ---- Bytes -------------------------------------------------------------- */

/*
 *     0   4   count
 *     4   4   length of the first key
 *     8   ..  its bytes; then the next, to the end
 *
 * Keys come in order, each once, so a list has one form only.
 */

/* Heap sort: in place, without recursion, never slow. */
static void sift(const seen_allowlist *list, uint64_t *heap, uint64_t i,
                 uint64_t n)
{
    const uint64_t at = heap[i];
    for (uint64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare(key_at(list, heap[child]),
                                     key_at(list, heap[child + 1])) < 0)
            child++;
        if (compare(key_at(list, heap[child]), key_at(list, at)) <= 0) break;
        heap[i] = heap[child];
    }
    heap[i] = at;
}

static void sort(const seen_allowlist *list, uint64_t *at, uint64_t n)
{
    for (uint64_t i = n / 2; i-- > 0;)
        sift(list, at, i, n);
    for (uint64_t end = n; end-- > 1;) {
        uint64_t last = at[end];
        at[end] = at[0];
        at[0] = last;
        sift(list, at, 0, end);
    }
}

seen_status seen_allowlist_save(const seen_allowlist *list, void *buf,
                                size_t cap, size_t *len)
{
    if (!len || (cap && !buf)) return SEEN_INVALID;
    const uint64_t need = saved_len(list), n = list->count;
    *len = (size_t)need;
    if (cap < need) return SEEN_SHORT;

    uint8_t *to = buf;
    seen_put_le32(to, (uint32_t)n);
    if (n == 0) return SEEN_OK;
    uint64_t *order = seen_alloc_zeroed(&list->allocator, n * sizeof *order);
    if (!order) return SEEN_NOMEM;
    struct key key;
    uint64_t i = 0;
    for (uint64_t at = 0; next_key(list, &at, &key); at += size_of(key.len))
        order[i++] = at;
    sort(list, order, n);
    to += PREFIX;
    for (i = 0; i < n; i++) {
        key = key_at(list, order[i]);
        memcpy(to, list->arena + order[i], (size_t)size_of(key.len));
        to += size_of(key.len);
    }
    seen_release(&list->allocator, order, n * sizeof *order);
    return SEEN_OK;
}

/* Are these `count` keys, in order, and nothing behind them? */
static bool well_formed(const uint8_t *p, size_t left, uint32_t count)
{
    struct key before = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (left < PREFIX) return false;
        struct key key = {.data = p + PREFIX, .len = seen_get_le32(p)};
        left -= PREFIX;
        if (key.len > SEEN_LISTED_KEY_MAX || key.len > left) return false;
        if (i > 0 && compare(before, key) >= 0) return false;
        p += size_of(key.len);
        left -= key.len;
        before = key;
    }
    return left == 0;
}

static seen_status load(seen_allowlist **list, const void *buf, size_t len,
                        const seen_allocator *allocator, seen_error *e)
{
    /* 1. Look at all of it before taking any memory: what comes then is in
     * proportion to keys that are really there. */
    if (!list) return seen_fail_null(e, "list");
    if (len && !buf) return seen_fail_null(e, "buf");
    if (!seen_allocator_ok(allocator)) return seen_fail_allocator(e);
    if (len < PREFIX || len > SAVED_MAX)
        return seen_corrupt(e, "%zu bytes: expected %d to 2^32", len,
                            (int)PREFIX);
    const uint8_t *keys = (const uint8_t *)buf + PREFIX;
    const uint32_t count = seen_get_le32(buf);
    const size_t bytes = len - PREFIX;
    if (!well_formed(keys, bytes, count))
        return seen_corrupt(e,
                            "expected %" PRIu32
                            " sorted keys with their lengths from offset %d on",
                            count, (int)PREFIX);

    /* 2. Bytes have the form of the arena. */
    seen_allowlist *made;
    seen_status status = new_with_room(&made, count, bytes, allocator);
    if (status != SEEN_OK) return status;
    for (uint32_t i = 0; i < count; i++) {
        size_t n = seen_get_le32(keys);
        uint64_t hash = hash_of(made, keys + PREFIX, n);
        append(made, first_empty(made, hash), hash, keys + PREFIX, n);
        keys += size_of(n);
    }
    *list = made;
    return SEEN_OK;
}

seen_status seen_allowlist_load(seen_allowlist **list, const void *buf,
                                size_t len, const seen_allocator *allocator,
                                seen_error *error)
{
    seen_error_begin(error);
    return seen_error_end(error, load(list, buf, len, allocator, error));
}
