/* test_alloc.c - memory is aligned, zero, and given back as it was taken. */
#include "base/alloc.h"

#include "base/base.h"
#include "helpers/failing_alloc.h"
#include "helpers/harness.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

static const uint64_t sizes[] = {
    0,           1,       7,           64,      65,      4096,        100000,
    2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 4 * MIB, 9 * MIB + 77};

#define SIZES (sizeof sizes / sizeof *sizes)

static bool is_aligned(const void *p)
{
    return (uintptr_t)p % SEEN_LINE_SIZE == 0;
}

static bool is_zero(const uint8_t *p, uint64_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, (size_t)n - 1) == 0);
}

static void default_memory_is_aligned_and_zero(void **state)
{
    (void)state;
    seen_allocator a = seen_allocator_or_default(NULL);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < SIZES; i++) {
            uint8_t *p = seen_alloc_zeroed(&a, sizes[i]);
            assert_non_null(p);
            assert_true(is_aligned(p));
            assert_true(is_zero(p, sizes[i]));
            memset(p, 0xff, (size_t)sizes[i]); /* dirt for the next round */
            seen_release(&a, p, sizes[i]);
        }
}

static void user_memory_is_aligned_and_zero_whatever_comes(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 64; offset++) {
        struct test_alloc t;
        test_alloc_init(&t);
        t.offset = offset;
        seen_allocator a = seen_allocator_or_default(&t.as);
        for (size_t i = 0; i < SIZES; i++) {
            uint8_t *p = seen_alloc_zeroed(&a, sizes[i]);
            assert_non_null(p);
            assert_true(is_aligned(p));
            assert_true(is_zero(p, sizes[i]));
            memset(p, 0xff, (size_t)sizes[i]);
            seen_release(&a, p, sizes[i]);
        }
        assert_int_equal(t.calls, SIZES);
        assert_int_equal(t.violations, 0);
        assert_int_equal(t.blocks, 0);
    }
}

static void impossible_sizes_give_null_without_a_call(void **state)
{
    (void)state;
    struct test_alloc t;
    test_alloc_init(&t);
    seen_allocator own = seen_allocator_or_default(NULL);
    const uint64_t impossible[] = {PTRDIFF_MAX - 1, PTRDIFF_MAX,
                                   (uint64_t)PTRDIFF_MAX + 1, UINT64_MAX - 64,
                                   UINT64_MAX};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        assert_null(seen_alloc_zeroed(&own, impossible[i]));
        assert_null(seen_alloc_zeroed(&t.as, impossible[i]));
    }
    assert_int_equal(t.calls, 0);
    /* Possible in principle, in no address space of today. */
    assert_null(seen_alloc_zeroed(&own, (uint64_t)1 << 60));
}

static void failure_of_the_user_allocator_gives_null(void **state)
{
    (void)state;
    struct test_alloc t;
    test_alloc_init(&t);
    test_alloc_arm(&t, 1, true);
    assert_null(seen_alloc_zeroed(&t.as, 100));
    assert_null(seen_alloc_zeroed(&t.as, 5 * MIB));
    assert_int_equal(t.failed, 2);
}

static void releasing_nothing_does_nothing(void **state)
{
    (void)state;
    struct test_alloc t;
    test_alloc_init(&t);
    seen_allocator own = seen_allocator_or_default(NULL);
    seen_release(&own, NULL, 100);
    seen_release(&own, NULL, 100 * MIB);
    seen_release(&t.as, NULL, 100);
    assert_int_equal(t.violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_memory_is_aligned_and_zero),
        cmocka_unit_test(user_memory_is_aligned_and_zero_whatever_comes),
        cmocka_unit_test(impossible_sizes_give_null_without_a_call),
        cmocka_unit_test(failure_of_the_user_allocator_gives_null),
        cmocka_unit_test(releasing_nothing_does_nothing),
    };
    test_announce("alloc");
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
