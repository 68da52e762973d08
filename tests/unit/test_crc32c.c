/* test_crc32c.c - the checksum against RFC 3720 and against itself. */
#include "base/crc32c.h"

#include "helpers/harness.h"

#include <string.h>

/* Bit by bit, as the polynomial says; both ways to compute it are compared with
 * this one (the test runs again with SEEN_CPU=portable). */
static uint32_t bitwise(uint32_t crc, const uint8_t *p, size_t len)
{
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

/* RFC 3720, appendix B.4, as numbers. */
static void check_published_values(void)
{
    uint8_t buf[48];
    assert_int_equal(seen_crc32c(0, "", 0), 0);
    assert_int_equal(seen_crc32c(0, "123456789", 9), 0xe3069283);
    memset(buf, 0, 32);
    assert_int_equal(seen_crc32c(0, buf, 32), 0x8a9136aa);
    memset(buf, 0xff, 32);
    assert_int_equal(seen_crc32c(0, buf, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        buf[i] = (uint8_t)i;
    assert_int_equal(seen_crc32c(0, buf, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        buf[i] = (uint8_t)(31 - i);
    assert_int_equal(seen_crc32c(0, buf, 32), 0x113fdb5c);

    const uint8_t scsi_read[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
        0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    assert_int_equal(seen_crc32c(0, scsi_read, 48), 0xd9963a56);
}

static void published_values_come_out(void **state)
{
    (void)state;
    check_published_values();
}

static void every_length_and_place_is_right(void **state)
{
    (void)state;
    struct test_rng r = test_rng(4);
    uint8_t buf[300];
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (uint8_t)test_next(&r);
    for (size_t at = 0; at < 9; at++)
        for (size_t len = 0; at + len <= sizeof buf; len++) {
            uint32_t start = (uint32_t)test_next(&r);
            assert_int_equal(seen_crc32c(start, buf + at, len),
                             bitwise(start, buf + at, len));
        }
}

static void pieces_give_what_the_whole_gives(void **state)
{
    (void)state;
    struct test_rng r = test_rng(5);
    uint8_t buf[200];
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (uint8_t)test_next(&r);
    uint32_t whole = seen_crc32c(0, buf, sizeof buf);
    for (size_t a = 0; a <= sizeof buf; a++) {
        size_t b = a + (size_t)test_below(&r, sizeof buf - a + 1);
        uint32_t crc = seen_crc32c(0, buf, a);
        crc = seen_crc32c(crc, buf + a, b - a);
        crc = seen_crc32c(crc, buf + b, sizeof buf - b);
        assert_int_equal(crc, whole);
    }
}

static void every_flipped_bit_changes_the_checksum(void **state)
{
    (void)state;
    uint8_t buf[64] = {0};
    uint32_t before = seen_crc32c(0, buf, sizeof buf);
    for (size_t bit = 0; bit < 8 * sizeof buf; bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(seen_crc32c(0, buf, sizeof buf), before);
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values_come_out),
        cmocka_unit_test(every_length_and_place_is_right),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(every_flipped_bit_changes_the_checksum),
    };
    test_announce("crc32c");
    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
