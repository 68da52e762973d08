/* base/keys.c - see keys.h. */
#include "base/keys.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <stdalign.h>

/* ---- Check -------------------------------------------------------------- */

/* `len` bytes at `data` that do not run over the end of memory. */
static bool memory(const void *data, uint64_t len)
{
    if (!data) return len == 0;
    return seen_size_fits(len) && len <= UINTPTR_MAX - (uintptr_t)data;
}

static bool array(const void *data, size_t n, size_t size, size_t aligned)
{
    return data && memory(data, (uint64_t)n * size) &&
           (uintptr_t)data % aligned == 0;
}

static bool pairs_ok(seen_keys keys)
{
    const seen_key *pair = keys.data;
    bool bad = false;
    if (!array(pair, keys.n, sizeof *pair, alignof(seen_key))) return false;
    for (size_t i = 0; i < keys.n; i++)
        bad |= !memory(pair[i].data, pair[i].len);
    return !bad;
}

static bool rows_ok(seen_keys keys)
{
    uint64_t last, len;
    return keys.stride > 0 && seen_mul_fits(keys.n - 1, keys.stride, &last) &&
           seen_add_fits(last, keys.width, &len) &&
           memory(keys.data, keys.width ? len : 0);
}

/* Loads that need no alignment. */
SEEN_INLINE uint64_t offset32(const void *offsets, size_t i)
{
    uint32_t x;
    memcpy(&x, (const char *)offsets + i * sizeof x, sizeof x);
    return x;
}

SEEN_INLINE uint64_t offset64(const void *offsets, size_t i)
{
    uint64_t x;
    memcpy(&x, (const char *)offsets + i * sizeof x, sizeof x);
    return x;
}

static bool offsets_ok(seen_keys keys)
{
    const bool wide = keys.layout == SEEN_OFFSETS64;
    const void *offsets = keys.offsets;
    if (!array(offsets, keys.n + 1, wide ? 8 : 4, 1) ||
        !memory(keys.data, keys.len))
        return false;
    bool bad = false;
    uint64_t last = 0;
    for (size_t i = 0; i <= keys.n; i++) {
        uint64_t at = wide ? offset64(offsets, i) : offset32(offsets, i);
        bad |= at < last;
        last = at;
    }
    return !bad && last <= keys.len;
}

seen_status seen_keys_check(seen_keys keys)
{
    bool ok = false;
    if (keys.reserved[0] | keys.reserved[1] | keys.reserved[2])
        return SEEN_INVALID;
    if (keys.n > SEEN_KEYS_MAX || (uint32_t)keys.layout > SEEN_HASHES64)
        return SEEN_INVALID;
    if (keys.n == 0) return SEEN_OK;
    switch (keys.layout) {
    case SEEN_PAIRS:
        ok = pairs_ok(keys);
        break;
    case SEEN_ROWS:
        ok = rows_ok(keys);
        break;
    case SEEN_OFFSETS32:
    case SEEN_OFFSETS64:
        ok = offsets_ok(keys);
        break;
    case SEEN_INTEGERS:
    case SEEN_HASHES64:
        ok = array(keys.data, keys.n, 8, 1);
        break;
    case SEEN_HASHES:
        ok = array(keys.data, keys.n, sizeof(seen_hash), alignof(seen_hash));
        break;
    }
    return ok ? SEEN_OK : SEEN_INVALID;
}

/* ---- Read --------------------------------------------------------------- */

SEEN_INLINE seen_key bytes_at(const uint8_t *data, uint64_t from, uint64_t to)
{
    return (seen_key){data ? data + from : data, (size_t)(to - from)};
}

void seen_keys_pairs(seen_keys keys, size_t from, size_t n, seen_key *out,
                     uint8_t *room)
{
    const uint8_t *data = keys.data;
    assert(!seen_keys_are_hashes(keys));
    switch (keys.layout) {
    case SEEN_PAIRS:
        memcpy(out, (const seen_key *)keys.data + from, n * sizeof *out);
        break;
    case SEEN_ROWS:
        for (size_t i = 0; i < n; i++)
            out[i] = (seen_key){data ? data + (from + i) * keys.stride : data,
                                keys.width};
        break;
    case SEEN_OFFSETS32:
        for (size_t i = 0; i < n; i++)
            out[i] = bytes_at(data, offset32(keys.offsets, from + i),
                              offset32(keys.offsets, from + i + 1));
        break;
    case SEEN_OFFSETS64:
        for (size_t i = 0; i < n; i++)
            out[i] = bytes_at(data, offset64(keys.offsets, from + i),
                              offset64(keys.offsets, from + i + 1));
        break;
    default: /* SEEN_INTEGERS, in the machine's byte order */
        for (size_t i = 0; i < n; i++) {
            const uint8_t *at = data + (from + i) * 8;
            if (!SEEN_LITTLE_ENDIAN) {
                seen_put_le64(room + i * 8, offset64(data, from + i));
                at = room + i * 8;
            }
            out[i] = (seen_key){at, 8};
        }
    }
}

seen_keys seen_keys_slice(seen_keys keys, size_t from, size_t n)
{
    static const uint8_t apart[] = {[SEEN_PAIRS] = sizeof(seen_key),
                                    [SEEN_INTEGERS] = 8,
                                    [SEEN_HASHES] = sizeof(seen_hash),
                                    [SEEN_HASHES64] = 8};
    const bool wide = keys.layout == SEEN_OFFSETS64;
    if (wide || keys.layout == SEEN_OFFSETS32)
        keys.offsets = (const char *)keys.offsets + from * (wide ? 8 : 4);
    else if (keys.data)
        keys.data = (const char *)keys.data + from * (keys.layout == SEEN_ROWS
                                                          ? keys.stride
                                                          : apart[keys.layout]);
    keys.n = seen_min_size(keys.n - from, n);
    return keys;
}
