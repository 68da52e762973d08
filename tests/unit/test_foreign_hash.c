/*
 * test_foreign_hash.c - the hashes of other systems, against published vectors
 * and against values that reproduce their filters.
 *
 * The pattern of the long tables: byte i is 7 * i + 3. SMHasher's verification
 * value of a hash (Appleby, tests of MurmurHash) covers keys of every length up
 * to 255 with bytes of every value: the hashes of {}, {0}, {0, 1} ... with seeds
 * 256, 255 ... are themselves hashed, and 32 bits of the result are published.
 */
#include "base/bytes.h"
#include "hash/fnv.h"
#include "hash/leveldb.h"
#include "hash/murmur2.h"
#include "hash/murmur3.h"
#include "hash/siphash.h"
#include "hash/xxh64.h"
#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

static void fill_pattern(uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = (uint8_t)(7 * i + 3);
}

/* Keys of the short tables. */
static const uint8_t tail_high[] = {0x80, 0xff, 0x81};
static const uint8_t across[] = {0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0,
                                 1,    2,    3,    4,    5,    6,    7,
                                 8,    9,    10,   11,   12};
static const seen_key short_keys[] = {
    {NULL, 0}, {"a", 1}, {"hello", 5}, {tail_high, 3}, {across, 19}};

#define SHORT_KEYS 5

/* ---- MurmurHash3 -------------------------------------------------------- */

static void murmur3_matches_known_answers(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        size_t len;
        uint64_t h1, h2;
    } known[] = {
        {0, 0, 0},
        {1, 0x726ac6dd306a3e59, 0x4e711127c5b5a8e4},
        {2, 0x20397a993ff70362, 0x2cab193a4622361c},
        {3, 0x6e3febcaf3b53dce, 0xe5bb83e375ffb688},
        {4, 0x0e29ed82ded0aa06, 0xadb20c1802c28885},
        {7, 0xbecbbf54236ce3a1, 0x2b3ba492e39cef50},
        {8, 0xa5ee2a9a9132d3bd, 0x259e7f3a617e003a},
        {9, 0x51ba2ea10afadbb6, 0x1f8153c3131e0496},
        {15, 0xba6a4b5e80ade4f4, 0xe00e5a8ff7e8f26d},
        {16, 0xc4b099c52f8f4ea1, 0x7d670219d92afe48},
        {17, 0xd4ae4b39fe53b127, 0x6602453b6681dbe9},
        {32, 0x65bdb8dd080643ff, 0xbec31b8aa5f3910a},
        {33, 0xb16757d8c4f72f1a, 0x9171ee56072d60a6},
        {64, 0xf50f13e7205dfca3, 0xa5cf4256c64ec87c},
        {65, 0x47b62f90beb72aff, 0x77e2620dcb0ae1de},
        {96, 0xbb81e0211d1edaed, 0x0db6696e77fa6bd2},
        {97, 0xfbe2e9a626c70d76, 0x89d82e7843cd3662},
        {128, 0xe1f3a199d560dd42, 0xc24da4d88537d7fe},
        {129, 0x8d9713ed0f368019, 0x445da5eac7e1e356},
        {240, 0xa38c4f27d6e5b5d0, 0x19f49762e38967a1},
        {241, 0x8b27276e9aab90ae, 0xdb6da9d4978c0e2b},
        {512, 0xc43c8237bcbebe04, 0x2f7595ac560c1c9e},
        {1024, 0xe8f8da944ae88d5e, 0x03cae9386af7d5fc},
        {1025, 0x107831e0db5fda6c, 0xfb87e362e1e4cfe9},
        {2000, 0x67c9e640ae7d0d5d, 0x69ec2567259539f2},
    };
    /* clang-format on */
    uint8_t buf[2000];
    fill_pattern(buf, sizeof buf);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        seen_hash h = seen_murmur3_128(buf, known[i].len, 0);
        assert_true(h.lo == known[i].h1 && h.hi == known[i].h2);
    }
}

static void murmur3_has_smhashers_verification_value(void **state)
{
    (void)state;
    uint8_t key[256], all[256 * 16];
    for (uint32_t i = 0; i < 256; i++) {
        key[i] = (uint8_t)i;
        seen_hash h = seen_murmur3_128(key, i, 256 - i);
        seen_put_le64(all + 16 * i, h.lo);
        seen_put_le64(all + 16 * i + 8, h.hi);
    }
    uint32_t value = (uint32_t)seen_murmur3_128(all, sizeof all, 0).lo;
    assert_int_equal(value, 0x6384ba69);
}

static void murmur3_goes_on_with_a_byte_more(void **state)
{
    (void)state;
    uint8_t buf[301];
    fill_pattern(buf, sizeof buf);
    for (size_t len = 0; len <= 300; len++) {
        struct seen_murmur3 s;
        seen_murmur3_begin(&s, buf, len, 0);
        for (unsigned byte = 0; byte < 256; byte += 15) {
            uint8_t was = buf[len];
            buf[len] = (uint8_t)byte;
            seen_hash a = seen_murmur3_128(buf, len + 1, 0);
            seen_hash b = seen_murmur3_end_with(&s, (uint8_t)byte);
            assert_true(a.lo == b.lo && a.hi == b.hi);
            buf[len] = was;
            if (len == 300) break;
        }
    }
}

/* ---- MurmurHash2 -------------------------------------------------------- */

static void murmur64a_matches_known_answers(void **state)
{
    (void)state;
    static const uint64_t a[] = {0x1ab11ea5a7b2c56e, 0x4292cee227b9150a,
                                 0x5ba5b8a59803e699, 0xceed75bc9463d41f,
                                 0x048c493fbcaf858c};
    static const uint64_t b[] = {0xbbddcb5ab56dd547, 0x7e9b527031f50c11,
                                 0xa7d451d588a0c2a4, 0xccb81bf2a57008cc,
                                 0x79d37358cd070fb7};
    static const uint64_t zero[] = {0, 0x071717d2d36b6b11, 0x1e68d17c457bf117,
                                    0x26e08fffa005a92f, 0xb286da6e002b9ed5};
    for (size_t i = 0; i < SHORT_KEYS; i++) {
        const seen_key *k = &short_keys[i];
        uint64_t h = seen_murmur64a(k->data, k->len, 0xc6a4a7935bd1e995);
        assert_true(h == a[i]);
        assert_true(seen_murmur64a(k->data, k->len, h) == b[i]);
        assert_true(seen_murmur64a(k->data, k->len, 0) == zero[i]);
    }
}

static void murmur64a_has_smhashers_verification_value(void **state)
{
    (void)state;
    uint8_t key[256], all[256 * 8];
    for (uint32_t i = 0; i < 256; i++) {
        key[i] = (uint8_t)i;
        seen_put_le64(all + 8 * i, seen_murmur64a(key, i, 256 - i));
    }
    uint32_t value = (uint32_t)seen_murmur64a(all, sizeof all, 0);
    assert_int_equal(value, 0x1f0d3804);
}

/* ---- LevelDB ------------------------------------------------------------ */

/* Those of its own util/hash_test.cc. */
static void leveldb_hash_matches_leveldbs_tests(void **state)
{
    (void)state;
    const uint8_t one[] = {0x62}, two[] = {0xc3, 0x97};
    const uint8_t three[] = {0xe2, 0x99, 0xa5};
    const uint8_t four[] = {0xe1, 0x80, 0xb9, 0x32};
    const uint8_t many[48] = {
        0x01,        0xc0,        [16] = 0x14, [22] = 0x04,
        [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    const uint32_t seed = 0xbc9f1d34;
    assert_int_equal(seen_leveldb_hash(NULL, 0, seed, false), 0xbc9f1d34);
    assert_int_equal(seen_leveldb_hash(one, 1, seed, false), 0xef1345c4);
    assert_int_equal(seen_leveldb_hash(two, 2, seed, false), 0x5b663814);
    assert_int_equal(seen_leveldb_hash(three, 3, seed, false), 0x323c078f);
    assert_int_equal(seen_leveldb_hash(four, 4, seed, false), 0xed21633a);
    assert_int_equal(seen_leveldb_hash(many, 48, 0x12345678, false),
                     0xf333dabb);
}

static void leveldb_hash_matches_known_answers(void **state)
{
    (void)state;
    static const uint32_t plain[] = {0xbc9f1d34, 0x286e9db0, 0xf795964e,
                                     0x314c7346, 0x3a630e24};
    static const uint32_t with_sign[] = {0xbc9f1d34, 0x286e9db0, 0xf795964e,
                                         0x5211e025, 0x3a630e24};
    for (size_t i = 0; i < SHORT_KEYS; i++) {
        const seen_key *k = &short_keys[i];
        assert_int_equal(seen_leveldb_hash(k->data, k->len, 0xbc9f1d34, false),
                         plain[i]);
        assert_int_equal(seen_leveldb_hash(k->data, k->len, 0xbc9f1d34, true),
                         with_sign[i]);
    }
}

/* The sign shows in the last len % 4 bytes and nowhere else. */
static void only_tails_have_a_sign(void **state)
{
    (void)state;
    uint8_t buf[64];
    memset(buf, 0x7f, sizeof buf);
    for (size_t len = 0; len <= 64; len++)
        for (size_t at = 0; at < len; at++) {
            buf[at] = 0x80;
            bool same = seen_leveldb_hash(buf, len, 1, false) ==
                        seen_leveldb_hash(buf, len, 1, true);
            assert_int_equal(same, at < len / 4 * 4);
            buf[at] = 0x7f;
        }
}

/* ---- FNV ---------------------------------------------------------------- */

static void fnv_matches_known_answers(void **state)
{
    (void)state;
    static const uint64_t fnv1[] = {0xcbf29ce484222325, 0xaf63bd4c8601b7be,
                                    0x7b495389bdbdd4c7, 0xd79a37186a9dda97,
                                    0x4598ae53d0f17740};
    static const uint64_t fnv1a[] = {0xcbf29ce484222325, 0xaf63dc4c8601ec8c,
                                     0xa430d84680aabd0b, 0x2ee6f91ae0c95ad3,
                                     0x57601953ee68746a};
    static const uint32_t mixed[] = {0x5902879e, 0xd94aa0cf, 0xeb22d089,
                                     0xacb2907b, 0xbfd6faf6};
    static const uint32_t seeded[] = {0xa350be17, 0x58167dae, 0x2b82e1fe,
                                      0xdc3b9b15, 0x6c688150};
    for (size_t i = 0; i < SHORT_KEYS; i++) {
        const seen_key *k = &short_keys[i];
        assert_true(seen_fnv1_64(k->data, k->len) == fnv1[i]);
        assert_true(seen_fnv1a_64(k->data, k->len) == fnv1a[i]);
        assert_int_equal(seen_fnv1a_32_mixed(k->data, k->len, 0), mixed[i]);
        assert_int_equal(seen_fnv1a_32_mixed(k->data, k->len, 1576284489),
                         seeded[i]);
    }
    /* From the page of its authors. */
    assert_true(seen_fnv1_64("foobar", 6) == 0x340d8765a4dda9c2);
    assert_true(seen_fnv1a_64("foobar", 6) == 0x85944171f73967e8);
}

/* ---- xxHash -------------------------------------------------------------- */

static void xxh64_has_smhashers_verification_value(void **state)
{
    (void)state;
    uint8_t key[256], all[256 * 8];
    for (uint32_t i = 0; i < 256; i++) {
        key[i] = (uint8_t)i;
        seen_put_le64(all + 8 * i, seen_xxh64(key, i, 256 - i));
    }
    uint32_t value = (uint32_t)seen_xxh64(all, sizeof all, 0);
    assert_int_equal(value, 0x024b7cf4);
}

static void xxph3_matches_known_answers(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        size_t len;
        uint64_t h;
    } known[] = {
        {0, 0x5342c3010fe1dd04}, {1, 0x81b78b21c2ce4f18},
        {2, 0x6d7eec54f8754ce6}, {3, 0x6731a716813ee5f1},
        {4, 0x3a5afd967acaf5c3}, {7, 0xf4182f381b7440c2},
        {8, 0xbcb56b6f8d4b12da}, {9, 0x03787b4eec57bf4b},
        {15, 0xae7259cd71c5716a}, {16, 0x81720cc0702edd73},
        {17, 0x0b515520f462e96f}, {32, 0x48f0396187b56dd5},
        {33, 0xd020587a3c72b988}, {64, 0xc71b2c5a712e7f61},
        {65, 0xd40143de1beadd46}, {96, 0x0d71e54f419745c3},
        {97, 0x19e9c1871ecd39dc}, {128, 0x8ea76d838ce7563f},
        {129, 0x3992d120c8c4677a}, {240, 0xdf41bc5fea3a61e8},
        {241, 0x91d10f0682af4ac3}, {512, 0xf3bb51479ec530a2},
        {1024, 0x7d54b94e043675ba}, {1025, 0x90acdaaaaca675b0},
        {2000, 0xc5769c96e6f212b8},
    };
    /* clang-format on */
    uint8_t buf[2000];
    fill_pattern(buf, sizeof buf);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(seen_xxph3(buf, known[i].len) == known[i].h);
}

/* ---- SipHash of 64 bits --------------------------------------------------- */

/* The example of the paper: key 00 .. 0f, message 00 .. 0e, 2-4. */
static void siphash64_matches_its_paper(void **state)
{
    (void)state;
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)i;
    assert_true(seen_siphash64(bytes, false, bytes, 15, 2, 4) ==
                0xa129ca6149be45e5);
    assert_true(seen_siphash64(bytes, false, NULL, 0, 2, 4) ==
                0x726fdb47dd0e0e31);
}

static void siphash64_of_slices_matches_known_answers(void **state)
{
    (void)state;
    static const uint8_t seed[32] = {
        0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
        0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
        0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83};
    static const uint64_t a[] = {0x61ec3bc33753f4d6, 0x19807c47e8649714,
                                 0x1b64b2c85281ce79, 0x7401c53c3aef0c7d,
                                 0xec886dd60dc69ca9};
    static const uint64_t b[] = {0x0aa4a3954a194204, 0x7244f2736f0fb39a,
                                 0x03597e1685b2f63d, 0xccab98a534b0c647,
                                 0x5ca183fcf7b19870};
    uint8_t with_length[32];
    for (size_t i = 0; i < SHORT_KEYS; i++) {
        const seen_key *k = &short_keys[i];
        assert_true(seen_siphash64(seed, true, k->data, k->len, 1, 3) == a[i]);
        assert_true(seen_siphash64(seed + 16, true, k->data, k->len, 1, 3) ==
                    b[i]);
        seen_put_le64(with_length, k->len);
        if (k->len) memcpy(with_length + 8, k->data, k->len);
        assert_true(
            seen_siphash64(seed, false, with_length, k->len + 8, 1, 3) == a[i]);
    }
}

/* ---- All ---------------------------------------------------------------- */

/* Exact-sized blocks, so that the address sanitizer sees every byte too many;
 * and another last byte is another hash. */
static void no_hash_reads_past_its_key(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 300; len++) {
        uint8_t *key = malloc(len);
        assert_non_null(key);
        memset(key, 0x80, len);
        uint64_t a[7], b[7];
        for (int i = 0; i < 2; i++) {
            uint64_t *h = i ? b : a;
            h[0] = seen_murmur3_128(key, len, 0).lo;
            h[1] = seen_leveldb_hash(key, len, 1, true);
            h[2] = seen_fnv1_64(key, len);
            h[3] = seen_fnv1a_64(key, len);
            h[4] = seen_murmur64a(key, len, 0);
            h[5] = seen_xxh64(key, len, 0);
            h[6] = seen_xxph3(key, len);
            key[len - 1] ^= 0xff;
        }
        for (int i = 0; i < 7; i++)
            assert_true(a[i] != b[i]);
        free(key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(murmur3_matches_known_answers),
        cmocka_unit_test(murmur3_has_smhashers_verification_value),
        cmocka_unit_test(murmur3_goes_on_with_a_byte_more),
        cmocka_unit_test(murmur64a_matches_known_answers),
        cmocka_unit_test(murmur64a_has_smhashers_verification_value),
        cmocka_unit_test(leveldb_hash_matches_leveldbs_tests),
        cmocka_unit_test(leveldb_hash_matches_known_answers),
        cmocka_unit_test(only_tails_have_a_sign),
        cmocka_unit_test(fnv_matches_known_answers),
        cmocka_unit_test(xxh64_has_smhashers_verification_value),
        cmocka_unit_test(xxph3_matches_known_answers),
        cmocka_unit_test(siphash64_matches_its_paper),
        cmocka_unit_test(siphash64_of_slices_matches_known_answers),
        cmocka_unit_test(no_hash_reads_past_its_key),
    };
    test_announce("foreign_hash");
    return cmocka_run_group_tests_name("foreign_hash", tests, NULL, NULL);
}
