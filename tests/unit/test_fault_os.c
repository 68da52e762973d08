/* test_fault_os.c - every system call of a fixed script goes wrong when told
 * to, and in no other way. */
#define _GNU_SOURCE /* mkdtemp */

#include "helpers/fault_os.h"

#include "helpers/harness.h"
#include "store/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "fault_os.XXXXXX";
static char path[64], renamed[64], inside[64];
static struct faults *faults;

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/a", dir);
    snprintf(renamed, sizeof renamed, "%s/b", dir);
    snprintf(inside, sizeof inside, "%s/c", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static int install(void **state)
{
    (void)state;
    faults = fault_os_install();
    return 0;
}

static int uninstall(void **state)
{
    (void)state;
    fault_os_uninstall();
    unlink(path);
    unlink(renamed);
    return 0;
}

static bool stop(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return false;
}

/* Which calls failed, by name, and how many there were. */
struct outcome {
    unsigned failures;
    const char *first;
    uint64_t moved; /* bytes in all */
    int error;
};

static void note(struct outcome *o, bool good, const char *call)
{
    if (good) return;
    if (o->failures++ == 0) {
        o->first = call;
        o->error = errno;
    }
}

static void move(struct outcome *o, ssize_t n, const char *call)
{
    note(o, n >= 0, call);
    if (n > 0) o->moved += (uint64_t)n;
}

/* All calls that there are, each once; `open` and `map` twice at most, since
 * nothing could follow a failure. */
static struct outcome script(void)
{
    struct outcome o = {0};
    struct seen_stat st;
    char real[4096];
    uint8_t buf[100] = {1};

    move(&o, seen_os->get_random(buf, 16), "get_random");
    int flags = O_RDWR | O_CREAT | O_TRUNC;
    int fd = seen_os->open(path, flags, 0600);
    note(&o, fd >= 0, "open");
    if (fd < 0) fd = seen_os->open(path, flags, 0600);
    if (fd < 0) return o; /* persistent */
    note(&o, seen_os->lock_shared(fd) == 0, "lock_shared");
    note(&o, seen_os->lock(fd) == 0, "lock");
    note(&o, seen_os->unlock(fd) == 0, "unlock");
    note(&o, seen_os->cloexec(fd) == 0, "cloexec");
    move(&o, seen_os->write(fd, buf, 100), "write");
    move(&o, seen_os->pwrite(fd, buf, 100, 100), "pwrite");
    note(&o, seen_os->truncate(fd, 150) == 0, "truncate");
    note(&o, seen_os->chmod(fd, 0640) == 0, "chmod");
    note(&o, seen_os->chown(fd, getuid(), getgid()) == 0, "chown");
    note(&o, seen_os->allocate(fd, 200) == 0, "allocate");
    move(&o, seen_os->read(fd, buf, 10), "read");
    move(&o, seen_os->pread(fd, buf, 100, 0), "pread");
    note(&o, seen_os->fstat(fd, &st) == 0, "fstat");
    note(&o, seen_os->stat(path, &st) == 0, "stat");
    note(&o, seen_os->resolve(path, real, sizeof real) == 0, "resolve");
    uint64_t room;
    note(&o, seen_os->space(fd, &room) == 0, "space");
    note(&o, seen_os->datasync(fd) == 0, "datasync");
    note(&o, seen_os->sync(fd) == 0, "sync");
    note(&o, seen_os->list(dir, stop, NULL) == 0, "list");
    uint8_t *at = seen_os->map(fd, 100, SEEN_MAP_WRITE);
    note(&o, at, "map");
    if (at) {
        at[0]++;
        note(&o, seen_os->msync(at, 100) == 0, "msync");
        note(&o, seen_os->unmap(at, 100) == 0, "unmap");
    }
    note(&o, seen_os->close(fd) == 0, "close");
    bool gone = seen_os->rename(path, renamed) == 0;
    note(&o, gone, "rename");
    note(&o, seen_os->unlink(gone ? renamed : path) == 0, "unlink");
    bool made = seen_os->mkdir(inside, 0777) == 0;
    note(&o, made, "mkdir");
    if (!made) mkdir(inside, 0777);
    note(&o, seen_os->rmdir(inside) == 0, "rmdir");
    rmdir(inside);
    unlink(path);
    unlink(renamed);
    return o;
}

static void assert_no_leaks(void)
{
    assert_int_equal(fault_os_open_files(), 0);
    assert_int_equal(fault_os_mappings(), 0);
}

static void disarmed_it_changes_nothing(void **state)
{
    (void)state;
    struct outcome o = script();
    assert_int_equal(o.failures, 0);
    assert_int_equal(o.moved, 16 + 100 + 100 + 10 + 100);
    assert_int_equal(faults->fired, 0);
    assert_null(faults->call);
    assert_no_leaks();
}

static void every_call_fails_once(void **state)
{
    (void)state;
    uint64_t n = 1;
    for (;; n++) {
        fault_arm(faults, n, EIO, false);
        struct outcome o = script();
        assert_no_leaks();
        if (!faults->fired) break;
        assert_int_equal(faults->fired, 1);
        assert_int_equal(o.failures, 1);
        assert_int_equal(o.error, EIO);
        assert_string_equal(o.first, faults->call);
    }
    /* All but the process, the user and the two clocks, which cannot. */
    assert_int_equal(n - 1,
                     sizeof(struct seen_os) / sizeof(void (*)(void)) - 4);
}

static void only_some_calls_are_interrupted(void **state)
{
    (void)state;
    uint64_t n = 1;
    for (;; n++) {
        fault_arm(faults, n, EINTR, false);
        struct outcome o = script();
        if (!faults->fired) break;
        assert_int_equal(o.error, EINTR);
        assert_string_not_equal(faults->call, "rename");
        assert_string_not_equal(faults->call, "fstat");
    }
    assert_int_equal(n - 1, 13);
}

static void persistent_faults_hit_everything_after(void **state)
{
    (void)state;
    fault_arm(faults, 8, ENOSPC, true); /* pwrite */
    struct outcome o = script();
    assert_string_equal(faults->call, "pwrite");
    assert_int_equal(o.failures, faults->fired);
    assert_int_equal(o.failures, 20); /* all but 7, msync and unmap */
    assert_int_equal(o.error, ENOSPC);
    assert_no_leaks();
}

static void short_counts_move_a_part(void **state)
{
    (void)state;
    static const char *const calls[] = {"get_random", "write", "pwrite", "read",
                                        "pread"};
    for (uint64_t n = 1; n <= 5; n++) {
        fault_arm_short(faults, n, false);
        struct outcome o = script();
        assert_int_equal(o.failures, 0);
        assert_int_equal(faults->fired, 1);
        assert_string_equal(faults->call, calls[n - 1]);
        assert_between((double)o.moved, 1, 16 + 100 + 100 + 10 + 100 - 1);
    }
    fault_arm_short(faults, 6, false);
    script();
    assert_int_equal(faults->fired, 0);

    fault_arm_short(faults, 1, true);
    script();
    assert_int_equal(faults->fired, 5);
}

static void only_one_kind_of_call_can_be_chosen(void **state)
{
    (void)state;
    faults->only = "datasync";
    fault_arm(faults, 1, EIO, false);
    assert_string_equal(script().first, "datasync");
    fault_arm(faults, 2, EIO, false);
    assert_int_equal(script().failures, 0);
    assert_int_equal(faults->calls, 1);
}

static void leaks_are_counted(void **state)
{
    (void)state;
    int fd = seen_os->open(dir, O_RDONLY, 0);
    assert_true(fd >= 0);
    assert_int_equal(fault_os_open_files(), 1);
    fault_arm(faults, 1, EIO, false);
    assert_int_equal(seen_os->close(fd), -1);
    assert_no_leaks(); /* closed all the same */
}

#define on_files(test) cmocka_unit_test_setup_teardown(test, install, uninstall)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_files(disarmed_it_changes_nothing),
        on_files(every_call_fails_once),
        on_files(only_some_calls_are_interrupted),
        on_files(persistent_faults_hit_everything_after),
        on_files(short_counts_move_a_part),
        on_files(only_one_kind_of_call_can_be_chosen),
        on_files(leaks_are_counted),
    };
    test_announce("fault_os");
    return cmocka_run_group_tests_name("fault_os", tests, make_dir, remove_dir);
}
