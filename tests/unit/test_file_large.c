/* test_file_large.c - a filter file of more than 4 GiB, sparse: positions past
 * 2^32 bytes and 2^35 bits, and opening that does not read it. */
#define _POSIX_C_SOURCE 200809L

#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"
#include "store/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define SIZE (((uint64_t)1 << 32) + 200000000)

static char path[300];
static struct seen_os sparse;

static int only_length(int fd, uint64_t len)
{
    return sparse.truncate(fd, len);
}

static uint64_t pages_read(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

static void four_gib_work_like_four_kib(void **state)
{
    (void)state;
    const seen_spec spec = {.bits = SIZE * 8, .items = 1000000};
    seen_file_options o = {.mode = SEEN_DURABLE, .create = &spec};
    seen_file *s;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (seen_file_open(&s, path, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s", error.text);
    struct test_batch b = test_batch_new(0, 2000);
    assert_int_equal(
        seen_file_add_many(s, seen_keys_of(b.keys, 2000), NULL, NULL), SEEN_OK);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    test_batch_free(&b);

    uint64_t before = pages_read();
    o = (seen_file_options){.mode = SEEN_READ};
    assert_int_equal(seen_file_open(&s, path, &o, &outcome, &error), SEEN_OK);
    uint64_t touched = pages_read() - before;
    print_message("opened with %llu page faults\n",
                  (unsigned long long)touched);
    assert_true(touched < 2000);
    const seen_filter *f = seen_file_filter(s);
    assert_int_equal(test_count_maybe(f, 0, 2000), 2000);
    assert_int_equal(test_count_maybe(f, TEST_STRANGERS, 100000), 0);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    if (test_scale() == 1) return; /* reading it all takes a while */
    if (seen_file_verify(path, &outcome, &error) != SEEN_OK)
        fail_msg("%s", error.text);
}

static int set_up(void **state)
{
    (void)state;
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(path, sizeof path, "%s/f", dir);
    sparse = *seen_os;
    sparse.allocate = only_length;
    seen_os = &sparse;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_gib_work_like_four_kib),
    };
    test_announce("file_large");
    return cmocka_run_group_tests_name("file_large", tests, set_up,
                                       test_scratch_end);
}
