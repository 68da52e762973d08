/* test_block.c - filters of blocks: LevelDB's bytes, and ours. */
#include "seen_block.h"

#include "helpers/binomial.h"
#include "helpers/keys.h"
#include "helpers/vectors.h"

#include <math.h>
#include <stdlib.h>

static const seen_block_form forms[] = {SEEN_BLOCK_LEVELDB, SEEN_BLOCK_SORTED};

/* Exactly as long as it is, so that a sanitizer sees one byte too many. */
static uint8_t *build(seen_block_form form, double bits, const seen_key *keys,
                      size_t n, size_t *len)
{
    size_t size = seen_block_size(form, bits, n);
    assert_int_not_equal(size, 0);
    uint8_t *block = malloc(size);
    assert_non_null(block);
    assert_int_equal(
        seen_block_build(form, bits, seen_keys_of(keys, n), block, size, len),
        SEEN_OK);
    assert_true(*len <= size);
    uint8_t *exact = malloc(*len ? *len : 1);
    memcpy(exact, block, *len);
    free(block);
    return exact;
}

static bool maybe(seen_block_form form, const uint8_t *block, size_t len,
                  seen_key key)
{
    return seen_block_maybe(form, block, len, key.data, key.len);
}

static void every_key_is_there_at_every_size(void **state)
{
    (void)state;
    static const double bits[] = {3, 6, 10, 17, 48};
    struct test_batch b = test_batch_new(0, 20000);
    for (size_t f = 0; f < 2; f++)
        for (size_t j = 0; j < sizeof bits / sizeof *bits; j++)
            for (size_t n = 1; n <= b.n; n = n < 300 ? n + 1 : n * 3) {
                size_t len;
                uint8_t *block = build(forms[f], bits[j], b.keys, n, &len);
                for (size_t i = 0; i < n; i++)
                    assert_true(maybe(forms[f], block, len, b.keys[i]));
                free(block);
            }
    test_batch_free(&b);
}

/* All of it, header included; LevelDB's have a byte behind their bits. */
static void a_block_takes_no_more_than_its_bits(void **state)
{
    (void)state;
    struct test_batch b = test_batch_new(0, 1000);
    for (size_t n = 1; n <= b.n; n++) {
        size_t ours, theirs, least = n < 8 ? 9 : (10 * n + 7) / 8;
        free(build(SEEN_BLOCK_SORTED, 10, b.keys, n, &ours));
        free(build(SEEN_BLOCK_LEVELDB, 10, b.keys, n, &theirs));
        assert_true(ours <= least);
        assert_true(ours <= theirs && theirs == (n < 7 ? 9 : least + 1));
    }
    test_batch_free(&b);
}

/* 2000 blocks of 35 keys: 0.45 %; and LevelDB's 1.0 %. */
static void the_rate_is_what_the_essay_says(void **state)
{
    (void)state;
    enum {
        n = 35,
        asked = 300
    };
    uint64_t wrong[2] = {0}, blocks = 2000 * test_scale();
    struct test_batch b = test_batch_new(0, n), s = test_batch_new(0, asked);
    for (uint64_t i = 0; i < blocks; i++) {
        test_batch_fill(&b, i * n, n);
        test_batch_fill(&s, TEST_STRANGERS + i * asked, asked);
        for (size_t f = 0; f < 2; f++) {
            size_t len;
            uint8_t *block = build(forms[f], 10, b.keys, n, &len);
            for (size_t j = 0; j < asked; j++)
                wrong[f] += maybe(forms[f], block, len, s.keys[j]);
            free(block);
        }
    }
    assert_binomial(wrong[1], blocks * asked, 1 - pow(1 - 1.0 / 7808, n));
    assert_between((double)wrong[0] / (double)(blocks * asked), 0.009, 0.011);
    test_batch_free(&b);
    test_batch_free(&s);
}

/* Bytes that are on people's disks. */
static void our_bytes_stay_as_they_are(void **state)
{
    (void)state;
    static const seen_key keys[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    static const uint8_t wanted[] = {0x03, 0x08, 0xd3, 0x0a, 0xd4,
                                     0xbb, 0x77, 0x20, 0x4a};
    size_t len;
    uint8_t *block = build(SEEN_BLOCK_SORTED, 10, keys, 3, &len);
    assert_int_equal(len, sizeof wanted);
    assert_memory_equal(block, wanted, len);
    free(block);
}

static void repeated_keys_count_once(void **state)
{
    (void)state;
    struct test_batch b = test_batch_new(0, 600);
    size_t once, often;
    uint8_t *a = build(SEEN_BLOCK_SORTED, 10, b.keys, 40, &once);
    for (size_t i = 40; i < b.n; i++)
        b.keys[i] = b.keys[i % 40];
    uint8_t *c = build(SEEN_BLOCK_SORTED, 10, b.keys, b.n, &often);
    assert_int_equal(once, often);
    assert_memory_equal(a, c, once);
    free(a);
    free(c);
    test_batch_free(&b);
}

/* ---- LevelDB ------------------------------------------------------------ */

static void leveldb_wrote_the_same_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"leveldb", "leveldb-small",
                                        "leveldb-k30"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct test_vector v = test_vector_load(names[i]);
        size_t len;
        uint8_t *block = build(SEEN_BLOCK_LEVELDB, v.spec.bits_per_key,
                               v.keys.keys, v.keys.n, &len);
        assert_int_equal(len, v.len);
        assert_memory_equal(block, v.bytes, len);
        for (size_t j = 0; j < v.strangers.n; j++)
            assert_int_equal(
                maybe(SEEN_BLOCK_LEVELDB, v.bytes, v.len, v.strangers.keys[j]),
                v.maybe[j]);
        free(block);
        test_vector_free(&v);
    }
}

/* Any bytes, and any k: as the dialect reads them. */
static void leveldb_blocks_are_read_as_the_dialect_does(void **state)
{
    (void)state;
    struct test_rng r = test_rng(410);
    struct test_batch b = test_batch_new(0, 20);
    for (uint64_t round = 0; round < 3000 * test_scale(); round++) {
        size_t len = test_below(&r, 100);
        uint8_t *block = malloc(len ? len : 1);
        for (size_t i = 0; i < len; i++)
            block[i] = (uint8_t)(test_next(&r) | test_next(&r));
        if (len) block[len - 1] = (uint8_t)test_below(&r, 40);
        seen_filter *f = NULL;
        assert_int_equal(
            seen_import_view(&f, "leveldb", NULL, block, len, NULL), SEEN_OK);
        for (size_t i = 0; i < b.n; i++)
            assert_int_equal(maybe(SEEN_BLOCK_LEVELDB, block, len, b.keys[i]),
                             seen_maybe(f, b.keys[i].data, b.keys[i].len));
        seen_free(f);
        free(block);
    }
    test_batch_free(&b);
}

/* ---- Strangers ---------------------------------------------------------- */

static void any_bytes_come_back(void **state)
{
    (void)state;
    struct test_rng r = test_rng(411);
    struct test_batch b = test_batch_new(0, 60);
    for (uint64_t round = 0; round < 20000 * test_scale(); round++) {
        size_t len = test_below(&r, 90);
        uint8_t *block;
        if (test_below(&r, 2)) { /* nearly right */
            block = build(SEEN_BLOCK_SORTED, 3 + (double)test_below(&r, 20),
                          b.keys, 1 + test_below(&r, b.n), &len);
            block[test_below(&r, len)] ^= (uint8_t)(1u << test_below(&r, 8));
        } else {
            block = malloc(len ? len : 1);
            for (size_t i = 0; i < len; i++)
                block[i] = (uint8_t)test_next(&r);
        }
        for (size_t i = 0; i < 5; i++)
            maybe(SEEN_BLOCK_SORTED, block, len, b.keys[i]);
        free(block);
    }
    test_batch_free(&b);
}

/* What cannot be a filter lets all through; what is not there has no keys. */
static void broken_blocks_lose_nothing(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[8];
        size_t len;
        bool maybe;
    } rows[] = {
        {{0}, 0, false},
        {{0}, 1, true},             /* no numbers, and yet a block */
        {{35}, 1, true},            /* numbers, and no code */
        {{200, 1, 1, 1}, 4, true},  /* 200 numbers in two bytes */
        {{128, 128, 128}, 3, true}, /* a number that does not end */
        {{255, 255, 255, 255, 255, 255, 1}, 7, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(seen_block_maybe(SEEN_BLOCK_SORTED, rows[i].bytes,
                                          rows[i].len, "key", 3),
                         rows[i].maybe);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    seen_key key = {"k", 1};
    uint8_t buf[64] = {7};
    size_t len = 99;
    static const double bad[] = {0, -1, NAN, INFINITY, 2.5, 1e9};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t f = 0; f < 2; f++) {
            assert_int_equal(seen_block_size(forms[f], bad[i], 1), 0);
            assert_int_equal(seen_block_build(forms[f], bad[i],
                                              seen_keys_of(&key, 1), buf, 64,
                                              &len),
                             SEEN_INVALID);
        }
    assert_int_equal(seen_block_size((seen_block_form)7, 10, 1), 0);
    for (size_t f = 0; f < 2; f++) {
        assert_int_equal(seen_block_build(forms[f], 10, seen_keys_of(NULL, 1),
                                          buf, 64, &len),
                         SEEN_INVALID);
        assert_int_equal(seen_block_build(forms[f], 10, seen_keys_of(&key, 1),
                                          buf, 64, NULL),
                         SEEN_INVALID);
        assert_int_equal(buf[0], 7);
        assert_int_equal(len, 99);
        assert_int_equal(seen_block_build(forms[f], 10, seen_keys_of(&key, 1),
                                          NULL, 0, &len),
                         SEEN_SHORT);
        assert_int_equal(len, 9);
        assert_int_equal(seen_block_build(forms[f], 10, seen_keys_of(NULL, 0),
                                          NULL, 0, &len),
                         SEEN_OK);
        assert_int_equal(len, 0);
        assert_false(seen_block_maybe(forms[f], NULL, 0, "k", 1));
        len = 99;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_there_at_every_size),
        cmocka_unit_test(a_block_takes_no_more_than_its_bits),
        cmocka_unit_test(the_rate_is_what_the_essay_says),
        cmocka_unit_test(our_bytes_stay_as_they_are),
        cmocka_unit_test(repeated_keys_count_once),
        cmocka_unit_test(leveldb_wrote_the_same_bytes),
        cmocka_unit_test(leveldb_blocks_are_read_as_the_dialect_does),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(broken_blocks_lose_nothing),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    test_announce("block");
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
