/* test_sort.c - against qsort(). */
#include "base/sort.h"

#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void numbers_come_out_in_order_and_once(void **state)
{
    (void)state;
    struct test_rng r = test_rng(300);
    for (int round = 0; round < 200; round++) {
        size_t n = test_below(&r, 2000);
        uint64_t range =
            test_below(&r, 2) ? UINT64_MAX : 1 + test_below(&r, n + 1);
        uint64_t *a = malloc((n + 1) * 8), *b = malloc((n + 1) * 8),
                 *spare = malloc((n + 1) * 8);
        assert_true(a && b && spare);
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] = test_next(&r) % range;
        seen_sort64(a, spare, n);
        qsort(b, n, 8, compare);
        if (n) assert_memory_equal(a, b, n * 8);
        uint64_t kept = seen_distinct64(a, n), expected = 0;
        for (size_t i = 0; i < n; i++) {
            if (i > 0 && b[i] == b[i - 1]) continue;
            assert_true(a[expected++] == b[i]);
        }
        assert_int_equal(kept, expected);
        free(a);
        free(b);
        free(spare);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_out_in_order_and_once),
    };
    test_announce("sort");
    return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
