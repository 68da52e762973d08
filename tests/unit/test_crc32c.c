/* test_crc32c.c - the checksum against RFC 3720 and against itself. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "base/crc32c.h"

#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

static void set_cpu(const char *name)
{
    if (name)
        setenv("SEEN_CPU", name, 1);
    else
        unsetenv("SEEN_CPU");
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

static void published_values_come_out_of_the_table(void **state)
{
    (void)state;
    set_cpu("portable");
    check_published_values();
    set_cpu(NULL);
}

static void hardware_and_table_agree(void **state)
{
    (void)state;
    struct test_rng r = test_rng(4);
    uint8_t buf[300];
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (uint8_t)test_next(&r);
    for (size_t at = 0; at < 9; at++)
        for (size_t len = 0; at + len <= sizeof buf; len++) {
            uint32_t start = (uint32_t)test_next(&r);
            set_cpu(NULL);
            uint32_t fast = seen_crc32c(start, buf + at, len);
            set_cpu("portable");
            assert_int_equal(seen_crc32c(start, buf + at, len), fast);
        }
    set_cpu(NULL);
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
        cmocka_unit_test(published_values_come_out_of_the_table),
        cmocka_unit_test(hardware_and_table_agree),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(every_flipped_bit_changes_the_checksum),
    };
    test_announce("crc32c");
    return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
