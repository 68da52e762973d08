/* test_random.c - random keys when the kernel hesitates, gives little, or has
 * none. */
#include "seen_file.h"

#include "helpers/harness.h"
#include "store/os.h"

#include <errno.h>
#include <string.h>

/* What the replaced system call does next. */
static struct {
    int interruptions; /* fail with EINTR this often first */
    size_t most;       /* bytes at a time */
    size_t until;      /* bytes in all before it fails for good */
    int error;
    size_t given;
    int calls;
} fake;

static ssize_t fake_random(void *buf, size_t len)
{
    fake.calls++;
    if (fake.interruptions > 0) {
        fake.interruptions--;
        errno = EINTR;
        return -1;
    }
    if (fake.given >= fake.until) {
        errno = fake.error;
        return fake.error ? -1 : 0;
    }
    size_t n = len < fake.most ? len : fake.most;
    if (n > fake.until - fake.given) n = fake.until - fake.given;
    uint8_t *out = buf;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(0xa0 + fake.given++);
    return (ssize_t)n;
}

static const struct seen_os fake_os = {.get_random = fake_random};
static const struct seen_os *real_os;

static int replace_os(void **state)
{
    (void)state;
    real_os = seen_os;
    seen_os = &fake_os;
    memset(&fake, 0, sizeof fake);
    fake.most = fake.until = 1000;
    return 0;
}

static int restore_os(void **state)
{
    (void)state;
    seen_os = real_os;
    return 0;
}

static void assert_sequence(const uint8_t key[16])
{
    for (int i = 0; i < 16; i++)
        assert_int_equal(key[i], 0xa0 + i);
}

static void sixteen_bytes_arrive_in_one_call(void **state)
{
    (void)state;
    uint8_t key[18];
    memset(key, 0x33, sizeof key);
    assert_int_equal(seen_random_secret(key + 1), SEEN_OK);
    assert_sequence(key + 1);
    assert_int_equal(key[0], 0x33);
    assert_int_equal(key[17], 0x33);
    assert_int_equal(fake.calls, 1);
}

static void short_reads_are_continued(void **state)
{
    (void)state;
    for (size_t most = 1; most <= 16; most++) {
        uint8_t key[16] = {0};
        fake.most = most;
        fake.given = 0;
        assert_int_equal(seen_random_secret(key), SEEN_OK);
        assert_sequence(key);
    }
}

static void an_interruption_is_retried(void **state)
{
    (void)state;
    uint8_t key[16] = {0};
    fake.interruptions = 5;
    fake.most = 7;
    assert_int_equal(seen_random_secret(key), SEEN_OK);
    assert_sequence(key);
    assert_int_equal(fake.calls, 5 + 3);
}

static void failure_is_reported_and_the_key_is_unchanged(void **state)
{
    (void)state;
    static const int errors[] = {ENOSYS, EPERM, EIO, EAGAIN, 0};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        for (size_t until = 0; until < 16; until++) {
            uint8_t key[16];
            memset(key, 0x44, sizeof key);
            fake.most = 3;
            fake.until = until;
            fake.given = 0;
            fake.error = errors[i];
            assert_int_equal(seen_random_secret(key), SEEN_IO);
            for (int j = 0; j < 16; j++)
                assert_int_equal(key[j], 0x44);
            if (errors[i]) assert_int_equal(errno, errors[i]);
        }
}

static void the_kernel_gives_different_keys(void **state)
{
    (void)state;
    uint8_t a[16] = {0}, b[16] = {0}, none[16] = {0};
    assert_int_equal(seen_random_secret(a), SEEN_OK);
    assert_int_equal(seen_random_secret(b), SEEN_OK);
    assert_memory_not_equal(a, b, 16);
    assert_memory_not_equal(a, none, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sixteen_bytes_arrive_in_one_call,
                                        replace_os, restore_os),
        cmocka_unit_test_setup_teardown(short_reads_are_continued, replace_os,
                                        restore_os),
        cmocka_unit_test_setup_teardown(an_interruption_is_retried, replace_os,
                                        restore_os),
        cmocka_unit_test_setup_teardown(
            failure_is_reported_and_the_key_is_unchanged, replace_os,
            restore_os),
        cmocka_unit_test(the_kernel_gives_different_keys),
    };
    test_announce("random");
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
