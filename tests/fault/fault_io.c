/*
 * fault_io.c - every system call of a fixed script fails once, in every way it
 * can: EIO, ENOSPC, EINTR, a short count; once, and from then on. Then any calls
 * of any scripts, several in one run.
 *
 * The script builds a filter file, adds to it, merges and saves over it. After
 * a failure: a status and a sentence, nothing leaked, and on the disk, before
 * and after a loss of power, a file that has every key that was acknowledged.
 */
#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/sim_os.h"
#include "store/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "/d/f.seen"
#define BATCH     50

static struct {
    const seen_spec *spec;
    seen_mode mode;
    uint64_t acked; /* keys 0 .. acked-1 are to stay */
    uint64_t added; /* keys 0 .. added-1 went in without an error */
    bool made;
    int expected;      /* errno of every call that fails; 0: any */
    seen_status first; /* what the first call that failed said */
    seen_outcome outcome;
    seen_error error;
} run = {.outcome.size = sizeof run.outcome};

/* Whatever failed, the error says the same as the status, in a sentence, and with
 * the number of the system call's error, also where that came earlier. */
static bool went_wrong(seen_status status)
{
    assert_int_equal(run.error.status, status);
    assert_int_equal(run.error.os_errno != 0, status == SEEN_IO);
    assert_int_equal(run.error.text[0] != '\0', status != SEEN_OK);
    if (run.expected && status == SEEN_IO)
        if (run.error.os_errno != run.expected)
            fail_msg("%s: error %d, expected %d", run.error.text,
                     run.error.os_errno, run.expected);
    if (status != SEEN_OK && run.first == SEEN_OK) run.first = status;
    return status != SEEN_OK;
}

static void add(seen_file *s, uint64_t *next)
{
    struct test_batch b = test_batch_new(*next, BATCH);
    seen_status status =
        seen_file_add_many(s, seen_keys_of(b.keys, BATCH), NULL, &run.error);
    if (!went_wrong(status) && run.added == *next) run.added = *next + BATCH;
    if (run.mode == SEEN_DURABLE) run.acked = run.added;
    *next += BATCH;
    test_batch_free(&b);
}

static void change_file(uint64_t *next)
{
    seen_file *s;
    seen_file_options o = {.mode = run.mode, .create = run.spec};
    if (went_wrong(seen_file_open(&s, FILE_NAME, &o, &run.outcome, &run.error)))
        return;
    run.made = true;
    add(s, next);
    add(s, next);
    if (!went_wrong(seen_file_sync(s, &run.error))) run.acked = run.added;
    add(s, next);
    if (!went_wrong(seen_file_close(s, &run.error))) run.acked = run.added;
}

/* Load, merge with itself, save over the file. */
static void rewrite_file(void)
{
    seen_file *s;
    seen_filter *copy;
    seen_file_options o = {.mode = SEEN_READ};
    if (went_wrong(seen_file_open(&s, FILE_NAME, &o, &run.outcome, &run.error)))
        return;
    assert_int_equal(seen_copy(&copy, seen_file_filter(s), NULL), SEEN_OK);
    seen_file_close(s, NULL);
    went_wrong(seen_file_save(FILE_NAME, copy, 0, &run.outcome, &run.error));
    seen_free(copy);
    went_wrong(seen_file_verify(FILE_NAME, &run.outcome, &run.error));
}

static void script(void)
{
    uint64_t next = 0;
    change_file(&next);
    if (run.made) rewrite_file();
    change_file(&next);
}

static void check_file(struct sim *disk, const char *when)
{
    seen_file *s;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file_options modes[] = {{.mode = SEEN_READ}, {.mode = SEEN_DURABLE}};
    for (int i = 0; i < 2; i++) {
        seen_status status =
            seen_file_open(&s, FILE_NAME, &modes[i], &outcome, &error);
        if (status == SEEN_ABSENT && run.acked == 0) return;
        if (status != SEEN_OK)
            fail_msg("%s: %s: %s", when, seen_strerror(status), error.text);
        uint64_t there = test_count_maybe(seen_file_filter(s), 0, run.acked);
        if (there != run.acked)
            fail_msg("%s: %llu of %llu keys", when, (unsigned long long)there,
                     (unsigned long long)run.acked);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    }
    if (seen_file_verify(FILE_NAME, &outcome, &error) != SEEN_OK)
        fail_msg("%s: verify: %s", when, error.text);
    assert_int_equal(sim_open_files(disk) + sim_mappings(disk), 0);
}

static struct sim *begin(uint64_t seed)
{
    struct sim *disk = sim_new(seed);
    sim_mkdir(disk, "/d");
    sim_install(disk);
    run.acked = run.added = 0;
    run.made = false;
    run.first = SEEN_OK;
    return disk;
}

static void end(struct sim *disk, uint64_t cut, const char *call)
{
    struct sim *after = sim_after_power_loss(disk, cut);
    sim_install(after);
    check_file(after, call);
    sim_free(after);
    sim_install(disk);
    check_file(disk, call);
    sim_uninstall();
    sim_free(disk);
}

/* The script with its n-th call going wrong; false if it has fewer calls. */
static bool one_fault(uint64_t n, int error, bool shorten, bool persistent)
{
    struct sim *disk = begin(test_seed() + n);
    struct faults *f = sim_faults(disk);
    if (shorten)
        fault_arm_short(f, n, persistent);
    else
        fault_arm(f, n, error, persistent);
    run.expected = shorten ? 0 : error;
    script();
    run.expected = 0;
    bool fired = f->fired > 0;
    const char *call = f->call ? f->call : "none";
    fault_arm(f, 0, 0, false);
    assert_int_equal(sim_open_files(disk) + sim_mappings(disk), 0);
    /* What can be gone on with must not be felt at all. */
    if (shorten || error == EINTR) assert_int_equal(run.first, SEEN_OK);
    end(disk, n, call);
    return fired;
}

static const seen_spec specs[] = {
    {.kind = SEEN_BLOCKED, .items = 2000, .fpp = 0.001},
    {.kind = SEEN_CUCKOO, .items = 2000, .fpp = 0.001},
    {.kind = SEEN_SET},
    {.kind = SEEN_SCALABLE, .items = 100, .fpp = 0.001},
};

#define SPECS (sizeof specs / sizeof *specs)

static void every_call_fails_once_and_for_good(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EINTR, 0 /* short */};
    uint64_t faults = 0;
    for (size_t i = 0; i < SPECS; i++)
        for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++)
            for (size_t e = 0; e < 4; e++)
                for (int persistent = 0; persistent < 2; persistent++) {
                    if (persistent && errors[e] != EIO && errors[e] != ENOSPC)
                        continue;
                    run.spec = &specs[i];
                    run.mode = mode;
                    uint64_t n = 1;
                    while (one_fault(n, errors[e], errors[e] == 0, persistent))
                        n++;
                    faults += n - 1;
                }
    test_tried(faults, "faults");
    assert_true(faults > 1000);
}

/* ---- Any calls of any script -------------------------------------------- */

/* What was not acknowledged when the file is closed is added again. */
static void any_life(struct test_rng *r)
{
    seen_file *s;
    run.mode = test_below(r, 2) ? SEEN_WRITE : SEEN_DURABLE;
    seen_file_options o = {.mode = run.mode, .create = run.spec};
    run.added = run.acked;
    if (went_wrong(seen_file_open(&s, FILE_NAME, &o, &run.outcome, &run.error)))
        return;
    run.made = true;
    bool good = true;
    for (uint64_t steps = test_below(r, 6); good && steps > 0; steps--)
        if (test_below(r, 3) == 0) {
            good = !went_wrong(seen_file_sync(s, &run.error));
            if (good) run.acked = run.added;
        } else {
            uint64_t next = run.added;
            add(s, &next);
            good = run.added == next;
        }
    if (!went_wrong(seen_file_close(s, &run.error))) run.acked = run.added;
}

static uint64_t any_run(struct test_rng *r)
{
    struct sim *disk = begin(test_next(r));
    struct faults *f = sim_faults(disk);
    run.spec = &specs[test_below(r, SPECS)];
    uint64_t odds = (uint64_t)4 << test_below(r, 7);
    /* After one that failed, recovery stores the same bits again, which makes
     * their page dirty; the simulated disk sees only bits that change. */
    f->never = "msync";
    fault_arm_random(f, odds, (struct test_rng){test_next(r)});
    for (uint64_t lives = 2 + test_below(r, 5); lives > 0; lives--)
        if (run.made && test_below(r, 4) == 0)
            rewrite_file();
        else
            any_life(r);
    uint64_t fired = f->fired;
    fault_arm(f, 0, 0, false);
    assert_int_equal(sim_open_files(disk) + sim_mappings(disk), 0);
    end(disk, test_next(r), "some calls");
    return fired;
}

static void any_calls_fail(void **state)
{
    (void)state;
    struct test_rng r = test_rng(91);
    uint64_t faults = 0;
    for (uint64_t i = 0; i < 500 * test_scale(); i++)
        faults += any_run(&r);
    test_tried(faults, "faults");
    assert_true(faults > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_once_and_for_good),
        cmocka_unit_test(any_calls_fail),
    };
    test_announce("fault_io");
    return cmocka_run_group_tests_name("fault_io", tests, NULL, NULL);
}
