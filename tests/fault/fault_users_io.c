/*
 * fault_users_io.c - every system call of a store of users fails: EIO, ENOSPC,
 * EINTR, a short count; once, and from then on. On real files, with LMDB; its own
 * calls cannot be made to fail, so a simulated backend does that at the end.
 *
 * The script creates a store, changes it across checkpoints, closes, opens it
 * under another policy, changes it, copies it, closes. After a failure: a status
 * and a sentence, nothing leaked, and when it is opened again every user has a
 * record that what was acknowledged has led to (helpers/users_model.h). After a
 * sync that failed nothing is acknowledged any more; for lack of space, things go
 * on when there is some again.
 *
 * And a writer is killed, before its first change or after some, and whoever opens
 * what it left has every call fail once: the next one finds a store all the same.
 */
#define _DEFAULT_SOURCE /* setenv, MAP_ANONYMOUS */

#include "seen_users.h"

#include "helpers/fault_os.h"
#include "helpers/scratch.h"
#include "helpers/sim_backend.h"
#include "helpers/sim_os.h"
#include "helpers/users_model.h"
#include "users/local.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 7

static struct {
    char dir[300], copy[320];
    const struct seen_backend_ops *backend;
    struct users_model model;
    struct faults *faults;
    bool made, copied;
    uint64_t failures;
} run;

static bool went_wrong(seen_status status)
{
    run.failures += status != SEEN_OK;
    return status != SEEN_OK;
}

static bool is_call(const char *name)
{
    return run.faults->call && strcmp(run.faults->call, name) == 0;
}

/* ---- The script --------------------------------------------------------- */

static seen_status open_users(seen_users **u, const char *dir, seen_mode mode,
                              const seen_policy *policy, seen_outcome *outcome,
                              seen_error *error)
{
    seen_users_options o = {.mode = mode,
                            .create = mode != SEEN_READ,
                            .tail = mode == SEEN_READ,
                            .policy = policy,
                            .secret = test_secret,
                            .checkpoint_bytes = 3000,
                            .journal_bytes = 400};
    *error = (seen_error){0};
    seen_status status =
        seen_local_open(u, dir, run.backend, true, &o, outcome, error);
    if (status == SEEN_OK) (*u)->writable = mode != SEEN_READ;
    return status;
}

/* The store has failed to do something. Does it go on as it should? */
static void after_failure(seen_users *u)
{
    const struct faults *f = run.faults;
    model_resume(&run.model, u);
    seen_status status = model_mark(&run.model, u, 1);
    if (went_wrong(status)) model_resume(&run.model, u);
    if (f->odds) return; /* which of several was it? */
    if (is_call("datasync")) {
        assert_int_equal(status, SEEN_IO);
        assert_non_null(strstr(run.model.error.text, "opened again"));
        assert_int_not_equal(run.model.error.os_errno, 0);
    }
    bool room = is_call("allocate") || is_call("pwrite");
    if (f->error == ENOSPC && !f->persistent && room)
        assert_int_equal(status, SEEN_OK);
}

static void change(seen_users *u)
{
    uint64_t before = run.failures;
    for (int i = 0; i < STEPS && run.failures < before + 2; i++)
        if (went_wrong(model_step(&run.model, u))) after_failure(u);
    seen_error error;
    if (went_wrong(seen_users_sync(u, &error))) {
        assert_string_not_equal(error.text, "");
        after_failure(u);
    } else {
        model_settled(&run.model);
    }
    for (int i = 0; i < 2; i++)
        if (went_wrong(model_mark(&run.model, u, (size_t)i)))
            model_resume(&run.model, u);
}

static void one_life(unsigned policy, bool copies)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    run.model.policy_before = run.model.policy;
    run.model.policy = policy;
    if (went_wrong(open_users(&u, run.dir, SEEN_DURABLE,
                              &model_policies[policy], &outcome, &error))) {
        assert_string_not_equal(error.text, "");
        return;
    }
    run.made = true;
    /* What was in doubt has been decided: who opens has read it. */
    model_check(&run.model, u, true);
    change(u);
    if (copies) {
        run.copied = !went_wrong(seen_users_backup(u, run.copy, &error));
        if (!run.copied) assert_string_not_equal(error.text, "");
    }
    if (!went_wrong(seen_users_close(u, &error)))
        model_settled(&run.model);
    else
        assert_string_not_equal(error.text, "");
}

/* ---- On the real disk --------------------------------------------------- */

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void check_store(const char *dir)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_mode modes[] = {SEEN_READ, SEEN_DURABLE, SEEN_READ};
    for (size_t i = 0; i < 3; i++) {
        seen_status status =
            open_users(&u, dir, modes[i], NULL, &outcome, &error);
        if (!run.made && status == SEEN_ABSENT && i == 0) return;
        if (status != SEEN_OK)
            fail_msg("after %s: %s: %s",
                     run.faults->call ? run.faults->call : "?",
                     seen_strerror(status), error.text);
        model_check(&run.model, u, i > 0);
        if (i == 1) {
            assert_int_equal(model_mark(&run.model, u, 0), SEEN_OK);
            assert_int_equal(model_mark(&run.model, u, 3), SEEN_OK);
        }
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    }
}

static void arm(uint64_t n, int error, bool persistent)
{
    if (error)
        fault_arm(run.faults, n, error, persistent);
    else
        fault_arm_short(run.faults, n, persistent);
}

static void begin(uint64_t stream)
{
    model_new(&run.model, test_rng(stream), true);
    run.made = run.copied = false;
    run.failures = 0;
    run.faults = fault_os_install();
}

/* What is left of it, when nothing fails any more. */
static void end(void)
{
    struct users_model copy = run.model;
    check_store(run.dir);
    if (run.copied) {
        run.model = copy;
        check_store(run.copy);
    }
    fault_os_uninstall();
    model_free(&run.model);
    char beside[400];
    snprintf(beside, sizeof beside, "%s.seen-new", run.copy);
    test_remove_dir(run.dir);
    test_remove_dir(run.copy);
    test_remove_dir(beside);
}

/* The script with its n-th call going wrong; false if it has fewer calls. */
static bool one_fault(uint64_t n, int error, bool persistent)
{
    size_t before = descriptors();
    begin(7);
    arm(n, error, persistent);
    one_life(0, false);
    one_life(1, true);
    bool fired = run.faults->fired > 0;
    run.faults->fail_at = 0;
    assert_int_equal(fault_os_open_files(), 0);
    assert_int_equal(descriptors(), before);
    /* What can be gone on with must not be felt at all; nothing else is kept
     * secret. (For lack of space, a checkpoint may just come later.) */
    bool courtesy = is_call("close") || is_call("unlock") || is_call("cloexec");
    if (fired && error == EIO && !courtesy)
        assert_true(run.failures > 0);
    else if (error != EIO && error != ENOSPC)
        assert_int_equal(run.failures, 0);
    end();
    return fired;
}

static void every_call_fails_once_and_for_good(void **state)
{
    (void)state;
    static const struct {
        int error; /* 0: a short count */
        bool persistent;
    } ways[] = {{EIO, false},   {EIO, true},    {ENOSPC, false},
                {ENOSPC, true}, {EINTR, false}, {0, false}};
    uint64_t faults = 0;
    run.backend = &seen_backend_lmdb;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t n = 1;
        while (one_fault(n, ways[i].error, ways[i].persistent))
            n++;
        faults += n - 1;
    }
    test_tried(faults, "faults");
    assert_true(faults > 300);
}

/* Any calls of any script, several in one run. */
static uint64_t any_run(struct test_rng *r, uint64_t stream)
{
    size_t before = descriptors();
    begin(stream);
    uint64_t odds = (uint64_t)8 << test_below(r, 6);
    fault_arm_random(run.faults, odds, (struct test_rng){test_next(r)});
    for (uint64_t lives = 1 + test_below(r, 3); lives > 0; lives--)
        one_life(0, false);
    one_life(1, true);
    uint64_t fired = run.faults->fired;
    run.faults->odds = 0;
    assert_int_equal(fault_os_open_files(), 0);
    assert_int_equal(descriptors(), before);
    end();
    return fired;
}

static void any_calls_fail(void **state)
{
    (void)state;
    struct test_rng r = test_rng(8);
    uint64_t faults = 0;
    run.backend = &seen_backend_lmdb;
    for (uint64_t i = 0; i < 20 * test_scale(); i++)
        faults += any_run(&r, 1000 + i);
    test_tried(faults, "faults");
    assert_true(faults > 20);
}

/* ---- After a crash ------------------------------------------------------ */

/* A child opens the store, changes it so often and ends without closing. What it
 * has done comes back in the model. */
static void crash(int steps)
{
    struct users_model *after =
        mmap(NULL, sizeof *after, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(after != MAP_FAILED);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        seen_users *u;
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        if (open_users(&u, run.dir, SEEN_DURABLE, &model_policies[0], &outcome,
                       &error) != SEEN_OK)
            _exit(1);
        for (int i = 0; i < steps; i++)
            if (model_mark(&run.model, u, (size_t)i % MODEL_USERS) != SEEN_OK)
                _exit(2);
        *after = run.model;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run.model = *after;
    munmap(after, sizeof *after);
}

/* Opening what crashes have left, with its n-th call going wrong. */
static bool one_fault_after(int steps, uint64_t n, int number)
{
    size_t before = descriptors();
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    model_new(&run.model, test_rng(9), true);
    run.made = true;
    run.failures = 0;
    run.faults = fault_os_install();
    if (steps >= 0) one_life(0, false);
    crash(steps < 0 ? 0 : steps); /* of a store that is new */
    arm(n, number, false);
    seen_status status =
        open_users(&u, run.dir, SEEN_DURABLE, NULL, &outcome, &error);
    if (went_wrong(status))
        assert_string_not_equal(error.text, "");
    else
        went_wrong(seen_users_close(u, NULL));
    bool fired = run.faults->fired > 0;
    run.faults->fail_at = 0;
    if (!fired) assert_int_equal(run.failures, 0);
    assert_int_equal(fault_os_open_files(), 0);
    assert_int_equal(descriptors(), before);
    check_store(run.dir);
    fault_os_uninstall();
    model_free(&run.model);
    test_remove_dir(run.dir);
    return fired;
}

static void every_call_fails_after_a_crash(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EMFILE};
    uint64_t faults = 0;
    run.backend = &seen_backend_lmdb;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        for (int steps = -1; steps <= 3; steps++) {
            uint64_t n = 1;
            while (one_fault_after(steps, n, errors[i]))
                n++;
            faults += n - 1;
        }
    print_message("%llu faults after a crash\n", (unsigned long long)faults);
    assert_true(faults > 150);
}

static int set_up(void **state)
{
    (void)state;
    test_scratch_in_memory();
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(run.dir, sizeof run.dir, "%s/users", dir);
    snprintf(run.copy, sizeof run.copy, "%s/copy", dir);
    return 0;
}

/* ---- A backend that fails ------------------------------------------------- */

/* One step of a transaction fails; false if there are fewer. */
static bool one_backend_fault(uint64_t n, bool landed)
{
    static struct faults none;
    struct sim *disk = sim_new(test_seed() + n);
    struct sim_backend *backend = sim_backend_new();
    model_new(&run.model, test_rng(n), true);
    run.faults = &none;
    run.made = false;
    run.failures = 0;
    sim_mkdir(disk, "/d");
    sim_install(disk);
    sim_backend_install(backend);
    sim_backend_fail(backend, n, landed);
    one_life(0, false);
    one_life(1, false);
    bool fired = sim_backend_failed(backend);
    sim_backend_fail(backend, 0, false);
    assert_int_equal(fired, run.failures > 0);
    assert_int_equal(sim_open_files(disk) + sim_backend_open(backend), 0);
    check_store(run.dir);
    model_free(&run.model);
    sim_free(disk);
    sim_backend_free(backend);
    return fired;
}

static void a_backend_fails_at_every_step(void **state)
{
    (void)state;
    uint64_t faults = 0, n;
    run.backend = &sim_backend_ops;
    strcpy(run.dir, "/d/users");
    for (int landed = 0; landed < 2; landed++) {
        for (n = 1; one_backend_fault(n, landed); n++)
            faults++;
    }
    sim_uninstall();
    test_tried(faults, "faults"); /* of the backend */
    assert_true(faults > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_once_and_for_good),
        cmocka_unit_test(any_calls_fail),
        cmocka_unit_test(every_call_fails_after_a_crash),
        cmocka_unit_test(a_backend_fails_at_every_step),
    };
    test_announce("fault_users_io");
    return cmocka_run_group_tests_name("fault_users_io", tests, set_up,
                                       test_scratch_end);
}
