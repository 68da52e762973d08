/*
 * test_hash.c - hashes against published vectors, against OpenSSL, and against
 * their own one-shot functions.
 *
 * The XXH3 vectors are those of xxHash's own sanity check (tests of release
 * 0.8): a buffer made by multiplying with PRIME64 and taking the top byte, the
 * seeds 0, PRIME32 and PRIME64.
 */
#include "hash/hash.h"

#include "base/bytes.h"
#include "hash/siphash.h"
#include "helpers/harness.h"
#include "siphash_vectors.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P32  2654435761u
#define P64  11400714785074694797u
#define LONG 2400

struct vector {
    size_t len;
    uint64_t seed, lo, hi;
};

/* clang-format off */
static const struct vector xxh3_64_vectors[] = {
    {   0,   0, 0x2d06800538d394c2u, 0}, {   0, P64, 0xa8a6b918b2f0364au, 0},
    {   1,   0, 0xc44bdff4074eecdbu, 0}, {   1, P64, 0x032be332dd766ef8u, 0},
    {   6,   0, 0x27b56a84cd2d7325u, 0}, {   6, P64, 0x84589c116ab59ab9u, 0},
    {  12,   0, 0xa713daf0dfbb77e7u, 0}, {  12, P64, 0xe7303e1b2336de0eu, 0},
    {  24,   0, 0xa3fe70bf9d3510ebu, 0}, {  24, P64, 0x850e80fc35bdd690u, 0},
    {  48,   0, 0x397da259ecba1f11u, 0}, {  48, P64, 0xadc2cbaa44acc616u, 0},
    {  80,   0, 0xbcdefbbb2c47c90au, 0}, {  80, P64, 0xc6dd0cb699532e73u, 0},
    { 195,   0, 0xcd94217ee362ec3au, 0}, { 195, P64, 0xba68003d370cb3d9u, 0},
    { 403,   0, 0xcdeb804d65c6dea4u, 0}, { 403, P64, 0x6259f6ecfd6443fdu, 0},
    { 512,   0, 0x617e49599013cb6bu, 0}, { 512, P64, 0x3ce457de14c27708u, 0},
    {2048,   0, 0xdd59e2c3a5f038e0u, 0}, {2048, P64, 0x66f81670669ababcu, 0},
    {2367,   0, 0xcb37aeb9e5d361edu, 0}, {2367, P64, 0xd2db3415b942b42au, 0},
};
static const struct vector xxh3_128_vectors[] = {
    {   0,   0, 0x6001c324468d497fu, 0x99aa06d3014798d8u},
    {   0, P32, 0x5444f7869c671ab0u, 0x92220ae55e14ab50u},
    {   1,   0, 0xc44bdff4074eecdbu, 0xa6cd5e9392000f6au},
    {   1, P32, 0xb53d5557e7f76f8du, 0x89b99554ba22467cu},
    {   6,   0, 0x3e7039bdda43cfc6u, 0x082afe0b8162d12au},
    {   6, P32, 0x269d8f70be98856eu, 0x5a865b5389abd2b1u},
    {  12,   0, 0x061a192713f69ad9u, 0x6e3efd8fc7802b18u},
    {  12, P32, 0x9be9f9a67f3c7dfbu, 0xd7e09d518a3405d3u},
    {  24,   0, 0x1e7044d28b1b901du, 0x0ce966e4678d3761u},
    {  24, P32, 0xd7304c54ebad40a9u, 0x3162026714a6a243u},
    {  48,   0, 0xf942219aed80f67bu, 0xa002ac4e5478227eu},
    {  48, P32, 0x7ba3c3e453a1934eu, 0x163adde36c072295u},
    {  81,   0, 0x5e8bafb9f95fb803u, 0x4952f58181ab0042u},
    {  81, P32, 0x703fbb3d7a5f755cu, 0x2724ec7adc750fb6u},
    { 222,   0, 0xf1aebd597cec6b3au, 0x337e09641b948717u},
    { 222, P32, 0xae995bb8af917a8du, 0x91820016621e97f1u},
    { 403,   0, 0xcdeb804d65c6dea4u, 0x1b6de21e332dd73du},
    { 403, P64, 0x6259f6ecfd6443fdu, 0xbed311971e0be8f2u},
};
/* clang-format on */

static void fill_sanity_buffer(uint8_t *buf, size_t n)
{
    uint64_t x = P32;
    for (size_t i = 0; i < n; i++) {
        buf[i] = (uint8_t)(x >> 56);
        x *= P64;
    }
}

static void check_vectors(const struct seen_hash_fn *fn, const struct vector *v,
                          size_t n)
{
    uint8_t buf[LONG], secret[16] = {0};
    fill_sanity_buffer(buf, sizeof buf);
    for (size_t i = 0; i < n; i++) {
        seen_put_le64(secret, v[i].seed);
        seen_hash h = fn->one(secret, v[i].len ? buf : NULL, v[i].len);
        if (h.lo != v[i].lo || h.hi != v[i].hi)
            fail_msg("%s: vector %zu of length %zu", fn->name, i, v[i].len);
    }
}

static void xxh3_64_matches_published_vectors(void **state)
{
    (void)state;
    check_vectors(&seen_hash_xxh3_64, xxh3_64_vectors,
                  sizeof xxh3_64_vectors / sizeof *xxh3_64_vectors);
}

static void xxh3_128_matches_published_vectors(void **state)
{
    (void)state;
    check_vectors(&seen_hash_xxh3_128, xxh3_128_vectors,
                  sizeof xxh3_128_vectors / sizeof *xxh3_128_vectors);
}

/* Bytes of all values, most of them above 0x7f in the first half. */
static void fill_high(uint8_t *buf, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = (uint8_t)(255 - i);
}

static void xxh3_is_xxh3_at_every_length(void **state)
{
    (void)state;
    uint8_t buf[301], secret[16];
    fill_high(buf, sizeof buf);
    struct test_rng r = test_rng(6);
    for (size_t len = 0; len <= 300; len++) {
        uint64_t seed = len % 3 ? test_next(&r) : 0;
        seen_put_le64(secret, seed);
        seen_put_le64(secret + 8, test_next(&r)); /* must not matter */
        seen_hash h = seen_hash_xxh3_64.one(secret, buf, len);
        assert_true(h.lo == XXH3_64bits_withSeed(buf, len, seed));
        assert_true(h.hi == 0);
        XXH128_hash_t wide = XXH3_128bits_withSeed(buf, len, seed);
        h = seen_hash_xxh3_128.one(secret, buf, len);
        assert_true(h.lo == wide.low64 && h.hi == wide.high64);
    }
}

static void check_siphash(const char *const vectors[64], uint32_t c, uint32_t d)
{
    uint8_t secret[16], input[64], out[16];
    for (int i = 0; i < 64; i++)
        input[i] = (uint8_t)i;
    memcpy(secret, input, 16);
    for (size_t len = 0; len < 64; len++) {
        seen_hash h = seen_siphash128(secret, input, len, c, d);
        seen_put_le64(out, h.lo);
        seen_put_le64(out + 8, h.hi);
        char hex[33];
        for (int i = 0; i < 16; i++)
            snprintf(hex + 2 * i, 3, "%02x", out[i]);
        assert_string_equal(hex, vectors[len]);
    }
}

static void siphash_24_matches_published_vectors(void **state)
{
    (void)state;
    assert_string_equal(siphash24_vectors[0],
                        "a3817f04ba25a8e66df67214c7550293");
    check_siphash(siphash24_vectors, 2, 4);
}

static void siphash_13_matches_openssl(void **state)
{
    (void)state;
    check_siphash(siphash13_vectors, 1, 3);
}

static void keyed_hash_of_filters_is_siphash_13(void **state)
{
    (void)state;
    uint8_t secret[16], buf[301];
    fill_high(secret, sizeof secret);
    fill_high(buf, sizeof buf);
    for (size_t len = 0; len <= 300; len++) {
        seen_hash a = seen_hash_siphash13.one(secret, buf, len);
        seen_hash b = seen_siphash128(secret, buf, len, 1, 3);
        assert_true(a.lo == b.lo && a.hi == b.hi);
    }
}

static void a_plain_key_is_its_number(void **state)
{
    (void)state;
    const uint8_t secret[16] = {7};
    const uint8_t bytes[9] = {0x88, 7, 6, 5, 4, 3, 2, 0xf1, 0};
    seen_hash h = seen_hash_u64.one(secret, bytes, 8);
    assert_true(h.lo == 0xf102030405060788u && h.hi == 0);
    for (size_t len = 0; len <= 9; len++) {
        h = seen_hash_u64.one(secret, len ? bytes : NULL, len);
        assert_true(len == 8 || h.lo == UINT64_MAX);
    }
}

static void many_gives_what_one_gives(void **state)
{
    (void)state;
    uint8_t buf[301], secret[16];
    fill_high(buf, sizeof buf);
    fill_high(secret, sizeof secret);
    const struct seen_hash_fn *fn;
    for (size_t at = 0; (fn = seen_hash_at(at)); at++) {
        seen_key keys[302];
        seen_hash many[302];
        for (size_t len = 0; len <= 300; len++)
            keys[len] = (seen_key){buf + (300 - len), len};
        keys[301] = (seen_key){NULL, 0};
        fn->many(secret, keys, 302, many);
        for (size_t i = 0; i < 302; i++) {
            seen_hash one = fn->one(secret, keys[i].data, keys[i].len);
            assert_true(many[i].lo == one.lo && many[i].hi == one.hi);
        }
        assert_true(many[301].lo == many[0].lo && many[301].hi == many[0].hi);
        fn->many(secret, NULL, 0, NULL);
    }
}

/* Wherever they begin, and however many there are. */
static void integers_are_keys_of_eight_bytes_little_endian(void **state)
{
    (void)state;
    uint8_t buf[8 * 24], secret[16];
    fill_high(buf, sizeof buf);
    fill_high(secret, sizeof secret);
    const struct seen_hash_fn *fn;
    for (size_t at = 0; (fn = seen_hash_at(at)); at++)
        for (size_t askew = 0; askew < 8; askew++)
            for (size_t n = 0; n < 23; n++) {
                seen_hash many[23];
                fn->integers(secret, buf + askew, n, many);
                for (size_t i = 0; i < n; i++) {
                    uint64_t x;
                    uint8_t key[8];
                    memcpy(&x, buf + askew + 8 * i, 8);
                    seen_put_le64(key, x);
                    seen_hash one = fn->one(secret, key, 8);
                    assert_true(many[i].lo == one.lo && many[i].hi == one.hi);
                }
            }
}

static void every_row_of_the_table_tells_the_truth(void **state)
{
    (void)state;
    const struct seen_hash_fn *fn;
    const uint8_t a[16] = {1}, b[16] = {2};
    size_t rows = 0;
    for (; (fn = seen_hash_at(rows)); rows++) {
        assert_true(fn->bits == 64 || fn->bits == 128);
        seen_hash h = fn->one(a, "key", 3), other = fn->one(b, "key", 3);
        assert_int_equal(h.lo == other.lo, fn->plain); /* which has no seed */
        assert_true(fn->bits == 64 ? h.hi == 0 : h.hi != 0);
    }
    assert_int_equal(rows, 4);
    assert_string_equal(seen_hash_choose(false, 64)->name, "xxh3-64");
    assert_string_equal(seen_hash_choose(false, 128)->name, "xxh3-128");
    assert_string_equal(seen_hash_choose(true, 128)->name, "siphash-1-3-128");
    assert_true(seen_hash_choose(true, 64)->keyed);
    for (uint32_t bits = 64; bits <= 128; bits += 64)
        for (int keyed = 0; keyed < 2; keyed++)
            assert_false(seen_hash_choose(keyed, bits)->plain);
}

/* Keys of any lengths, in any order: those of one number of blocks are hashed
 * together where they meet. Exact-sized blocks again. */
static void siphash_kernels_agree(void **state)
{
    (void)state;
    struct test_rng r = test_rng(7);
    for (uint64_t round = 0; round < 500 * test_scale(); round++) {
        seen_key keys[50];
        seen_hash many[50];
        uint64_t low[50], longest = 1 + test_below(&r, 70);
        uint8_t secret[16];
        const size_t n = test_below(&r, 51);
        for (size_t i = 0; i < 16; i++)
            secret[i] = (uint8_t)test_next(&r);
        for (size_t i = 0; i < n; i++) {
            size_t len = test_below(&r, longest);
            uint8_t *key = malloc(len ? len : 1);
            assert_non_null(key);
            for (size_t k = 0; k < len; k++)
                key[k] = (uint8_t)test_next(&r);
            keys[i] = (seen_key){key, len};
        }
        seen_hash_siphash13.many(secret, keys, n, many);
        seen_siphash13_low(secret, keys, n, low);
        for (size_t i = 0; i < n; i++) {
            seen_hash one =
                seen_siphash128(secret, keys[i].data, keys[i].len, 1, 3);
            assert_true(many[i].lo == one.lo && many[i].hi == one.hi);
            assert_true(low[i] == one.lo);
            free((void *)keys[i].data);
        }
    }
}

/* A hash reads its key and nothing around it: exact-sized blocks, so that the
 * address sanitizer sees every byte too many. */
static void no_hash_reads_past_its_key(void **state)
{
    (void)state;
    const uint8_t secret[16] = {9};
    const struct seen_hash_fn *fn;
    for (size_t at = 0; (fn = seen_hash_at(at)); at++)
        for (size_t len = 1; len <= 300; len++) {
            uint8_t *key = malloc(len);
            assert_non_null(key);
            memset(key, 0x80, len);
            seen_hash a = fn->one(secret, key, len);
            seen_hash b = fn->one(secret, key, len);
            assert_true(a.lo == b.lo && a.hi == b.hi);
            free(key);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xxh3_64_matches_published_vectors),
        cmocka_unit_test(xxh3_128_matches_published_vectors),
        cmocka_unit_test(xxh3_is_xxh3_at_every_length),
        cmocka_unit_test(siphash_24_matches_published_vectors),
        cmocka_unit_test(siphash_13_matches_openssl),
        cmocka_unit_test(keyed_hash_of_filters_is_siphash_13),
        cmocka_unit_test(a_plain_key_is_its_number),
        cmocka_unit_test(many_gives_what_one_gives),
        cmocka_unit_test(siphash_kernels_agree),
        cmocka_unit_test(integers_are_keys_of_eight_bytes_little_endian),
        cmocka_unit_test(every_row_of_the_table_tells_the_truth),
        cmocka_unit_test(no_hash_reads_past_its_key),
    };
    test_announce("hash");
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
