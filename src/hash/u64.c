/*
 * u64.c - no hash at all: a key of 8 bytes is the number it spells,
 * little-endian.
 *
 * For kinds that keep numbers as they are (SEEN_BITMAP). A key of any other
 * length is no number; it becomes UINT64_MAX, which is beyond every bound that
 * such a kind has, so that it can neither be added nor be there.
 */
#include "hash/hash.h"

#include "base/base.h"
#include "base/bytes.h"

SEEN_INLINE seen_hash number(const void *key, size_t len)
{
    return (seen_hash){len == 8 ? seen_get_le64(key) : UINT64_MAX, 0};
}

static seen_hash u64_one(const uint8_t secret[16], const void *key, size_t len)
{
    (void)secret;
    return number(key, len);
}

static void u64_many(const uint8_t secret[16], const seen_key *keys, size_t n,
                     seen_hash *out)
{
    (void)secret;
    for (size_t i = 0; i < n; i++)
        out[i] = number(keys[i].data, keys[i].len);
}

static void u64_integers(const uint8_t secret[16], const void *integers,
                         size_t n, seen_hash *out)
{
    (void)secret;
    for (size_t i = 0; i < n; i++)
        out[i] = (seen_hash){seen_integer_at(integers, i), 0};
}

const struct seen_hash_fn seen_hash_u64 = {.name = "u64",
                                           .bits = 64,
                                           .plain = true,
                                           .one = u64_one,
                                           .many = u64_many,
                                           .integers = u64_integers};
