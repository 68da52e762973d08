/* test_slots.c - a line of eight slots: found, or where it would go. */
#include "bits/slots.h"

#include "base/cpu.h"
#include "helpers/harness.h"

typedef uint32_t finder(const uint64_t *line, uint64_t value);

static uint32_t by_hand(const uint64_t *line, uint64_t value)
{
    uint32_t i = 0;
    while (i < SEEN_SLOTS && line[i] != 0 && line[i] != value)
        i++;
    return i;
}

static uint32_t portable(const uint64_t *line, uint64_t value)
{
    return seen_slot_find(line, value);
}

#if defined(__x86_64__)
SEEN_SLOTS_AVX2 static uint32_t avx2(const uint64_t *line, uint64_t value)
{
    return seen_slot_find_avx2(line, value);
}
#endif

/* Values that share their low or high half, so that half a compare shows. */
static uint64_t value_of(struct test_rng *r)
{
    static const uint64_t some[] = {1,
                                    2,
                                    (uint64_t)1 << 32,
                                    (uint64_t)1 << 63,
                                    ((uint64_t)1 << 32) + 1,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    UINT64_MAX - 1};
    return some[test_below(r, sizeof some / sizeof *some)];
}

static void check(finder *find)
{
    struct test_rng r = test_rng(40);
    for (uint32_t used = 0; used <= SEEN_SLOTS; used++)
        for (int round = 0; round < 5000; round++) {
            _Alignas(64) uint64_t line[SEEN_SLOTS] = {0};
            for (uint32_t i = 0; i < used; i++)
                line[i] = round % 2 ? value_of(&r) : test_next(&r) | 1;
            uint64_t value = value_of(&r);
            assert_int_equal(find(line, value), by_hand(line, value));
            for (uint32_t i = 0; i < used; i++)
                assert_int_equal(find(line, line[i]), by_hand(line, line[i]));
        }
}

static void portable_code_finds_the_slot(void **state)
{
    (void)state;
    check(portable);
}

static void avx2_finds_the_same_slot(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (!seen_cpu_has_avx2()) skip();
    check(avx2);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_code_finds_the_slot),
        cmocka_unit_test(avx2_finds_the_same_slot),
    };
    test_announce("slots");
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
