/* test_bytes.c - byte order, written out, and the small bit tricks of base.h */
#include "base/bytes.h"

#include "helpers/harness.h"

#include <string.h>

static const uint8_t sample[9] = {0xee, 0x01, 0x82, 0x03, 0xf4,
                                  0x05, 0x96, 0x07, 0xf8};

static void loads_are_little_endian_at_any_alignment(void **state)
{
    (void)state;
    assert_int_equal(seen_get_le16(sample + 1), 0x8201);
    assert_int_equal(seen_get_le32(sample + 1), 0xf4038201);
    assert_int_equal(seen_get_le64(sample + 1), 0xf8079605f4038201u);
}

static void stores_write_what_loads_read_and_nothing_else(void **state)
{
    (void)state;
    for (size_t at = 0; at < 8; at++) {
        uint8_t buf[24];
        memset(buf, 0x77, sizeof buf);
        seen_put_le64(buf + at, 0xf8079605f4038201u);
        assert_memory_equal(buf + at, sample + 1, 8);
        seen_put_le32(buf + at, 0x01020384);
        assert_int_equal(seen_get_le64(buf + at), 0xf807960501020384u);
        seen_put_le16(buf + at, 0xffee);
        assert_int_equal(seen_get_le64(buf + at), 0xf80796050102ffeeu);
        for (size_t i = 0; i < sizeof buf; i++)
            if (i < at || i >= at + 8) assert_int_equal(buf[i], 0x77);
    }
}

static void random_integers_survive_the_round_trip(void **state)
{
    (void)state;
    struct test_rng r = test_rng(1);
    for (int i = 0; i < 10000; i++) {
        uint64_t x = test_next(&r);
        uint8_t buf[8];
        seen_put_le64(buf, x);
        assert_true(seen_get_le64(buf) == x);
        seen_put_le32(buf, (uint32_t)x);
        assert_true(seen_get_le32(buf) == (uint32_t)x);
        seen_put_le16(buf, (uint16_t)x);
        assert_true(seen_get_le16(buf) == (uint16_t)x);
    }
}

static void popcount_and_lowest_bit_agree_with_counting(void **state)
{
    (void)state;
    struct test_rng r = test_rng(2);
    for (int i = 0; i < 10000; i++) {
        uint64_t x = test_next(&r) & test_next(&r) << i % 64;
        uint64_t count = 0;
        uint32_t lowest = 64;
        for (uint32_t bit = 64; bit-- > 0;)
            if (x >> bit & 1) {
                count++;
                lowest = bit;
            }
        assert_int_equal(seen_popcount64(x), count);
        if (x) assert_int_equal(seen_ctz64(x), lowest);
    }
    assert_int_equal(seen_popcount64(0), 0);
    assert_int_equal(seen_popcount64(UINT64_MAX), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_little_endian_at_any_alignment),
        cmocka_unit_test(stores_write_what_loads_read_and_nothing_else),
        cmocka_unit_test(random_integers_survive_the_round_trip),
        cmocka_unit_test(popcount_and_lowest_bit_agree_with_counting),
    };
    test_announce("bytes");
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
