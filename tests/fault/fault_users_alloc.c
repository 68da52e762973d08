/*
 * fault_users_alloc.c - every allocation of a store of users fails, once and
 * from then on.
 *
 * The script opens a store, changes and reads it, copies it, opens it again. After a
 * failure: a status, nothing leaked, and every user has a record that what was
 * acknowledged has led to (helpers/users_model.h), at once and after opening
 * again.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "seen_users.h"

#include "helpers/chosen.h"
#include "helpers/clock.h"
#include "helpers/memory.h"
#include "helpers/scratch.h"
#include "helpers/users_model.h"
#include "store/journal.h"
#include "users/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS   20
#define SCRIPTS 2 /* with other steps */

static void around(bool inside)
{
    test_memory.inside = inside;
}

/* ---- The script --------------------------------------------------------- */

static struct {
    char dir[300], copy[320], beside[340];
    bool lasts; /* on disk */
    struct users_model model;
    bool made, copied;
    uint64_t failures;
    seen_error error;
} run;

static bool went_wrong(seen_status status)
{
    run.failures += status != SEEN_OK;
    return status != SEEN_OK;
}

/* For a call that must write all of it, memory or not; and whether it has. */
static seen_error *garbage(void)
{
    memset(&run.error, 0x5a, sizeof run.error);
    return &run.error;
}

static bool said_so(seen_status status)
{
    assert_int_equal(run.error.status, status);
    assert_int_equal(run.error.text[0] != '\0', status != SEEN_OK);
    return went_wrong(status);
}

static seen_status open_users(seen_users **u, seen_mode mode,
                              const seen_policy *policy)
{
    seen_users_options o = {.mode = mode,
                            .create = mode != SEEN_READ,
                            .tail = mode == SEEN_READ,
                            .policy = policy,
                            .secret = test_secret,
                            .checkpoint_bytes = 3000,
                            .journal_bytes = 400};
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (!run.lasts) {
        seen_status opened =
            seen_users_open(u, "mem:", &o, &outcome, garbage());
        assert_int_equal(run.error.status, opened);
        return opened;
    }
    seen_status status = seen_local_open(u, run.dir, &seen_backend_lmdb, true,
                                         &o, &outcome, &error);
    if (status == SEEN_OK) (*u)->writable = mode != SEEN_READ;
    return status;
}

static bool count_one(void *ctx, const seen_users_entry *entry)
{
    assert_true(entry->status == SEEN_OK || entry->status == SEEN_ABSENT);
    ++*(size_t *)ctx;
    return true;
}

/* Calls that change nothing give what they should, or an error. */
static void ask(seen_users *u)
{
    bool answers[3];
    size_t n = 0, fresh = 3;
    uint64_t id[] = {1, 2, 3};
    seen_key items[] = {{&id[0], 8}, {&id[1], 8}, {&id[2], 8}};
    seen_exposure_info info = {.size = sizeof info};
    seen_status status;
    around(true);
    said_so(seen_users_maybe_many(u, model_name(0), run.model.now,
                                  seen_keys_of(items, 3), answers, garbage()));
    said_so(test_users_fresh(u, model_name(1), run.model.now, items, 3, &fresh,
                             garbage()));
    status =
        seen_users_info_of(u, model_name(2), run.model.now, &info, garbage());
    assert_int_equal(run.error.status, status);
    went_wrong(status == SEEN_ABSENT ? SEEN_OK : status);
    said_so(seen_users_each(u, run.model.now, count_one, &n, garbage()));
    around(false);
}

static void change(seen_users *u)
{
    for (int i = 0; i < STEPS && run.failures < 3; i++)
        if (went_wrong(model_step(&run.model, u))) model_resume(&run.model, u);
    ask(u);
    for (size_t i = 0; i < 2; i++)
        if (went_wrong(model_mark(&run.model, u, i)))
            model_resume(&run.model, u);
}

static void one_life(unsigned policy)
{
    seen_users *u;
    run.model.policy_before = run.model.policy;
    run.model.policy = policy;
    around(true);
    seen_status status = open_users(&u, SEEN_DURABLE, &model_policies[policy]);
    around(false);
    if (went_wrong(status)) return;
    run.made = true;
    if (run.lasts) model_check(&run.model, u, true);
    change(u);
    model_check(&run.model, u, false);
    around(true);
    if (run.lasts && policy == 1) {
        run.copied = !said_so(seen_users_backup(u, run.copy, garbage()));
    }
    status = seen_users_close(u, garbage());
    around(false);
    assert_int_equal(run.error.status, status);
    if (!went_wrong(status)) model_settled(&run.model);
}

/* ---- Afterwards --------------------------------------------------------- */

static void check_store(void)
{
    seen_users *u;
    if (!run.made || !run.lasts) return;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_users(&u, i ? SEEN_DURABLE : SEEN_READ, NULL),
                         SEEN_OK);
        model_check(&run.model, u, i);
        if (i) assert_int_equal(model_mark(&run.model, u, 0), SEEN_OK);
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    }
}

/* The script with its n-th allocation failing; false if it has fewer. */
static bool one_fault(uint64_t script, uint64_t n, bool persistent)
{
    int64_t live = test_memory.live;
    model_new(&run.model, test_rng(script), true);
    run.model.around = around;
    run.made = run.copied = false;
    run.failures = 0;
    test_memory_arm(n, persistent);
    one_life(0);
    if (run.lasts) one_life(1);
    bool fired = test_memory.fired > 0;
    test_memory_arm(0, false);
    if (!fired) assert_int_equal(run.failures, 0);
    run.model.around = NULL;
    check_store();
    model_free(&run.model);
    assert_int_equal(test_memory.live, live);
    test_remove_dir(run.dir);
    test_remove_dir(run.copy);
    test_remove_dir(run.beside);
    return fired;
}

static void every_allocation_fails(bool lasts, const char *name)
{
    uint64_t faults = 0;
    run.lasts = lasts;
    for (uint64_t script = 1; script <= SCRIPTS + test_scale() / 4; script++)
        for (int persistent = 0; persistent < 2; persistent++)
            for (uint64_t n = 1; one_fault(script, n, persistent); n++)
                faults++;
    print_message("%s\n", name);
    test_tried(faults, "failed allocations");
    assert_true(faults > 100);
}

static void in_memory(void **state)
{
    (void)state;
    every_allocation_fails(false, "mem:");
}

static void on_disk(void **state)
{
    (void)state;
    every_allocation_fails(true, "lmdb:");
}

static int set_up(void **state)
{
    (void)state;
    test_scratch_in_memory();
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(run.dir, sizeof run.dir, "%s/users", dir);
    snprintf(run.copy, sizeof run.copy, "%s/copy", dir);
    snprintf(run.beside, sizeof run.beside, "%s.seen-new", run.copy);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(on_disk),
    };
    test_announce("fault_users_alloc");
    test_clock_install(); /* which the model sets */
    return cmocka_run_group_tests_name("fault_users_alloc", tests, set_up,
                                       test_scratch_end);
}
