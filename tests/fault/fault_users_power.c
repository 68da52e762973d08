/*
 * fault_users_power.c - the power fails at every system call of the life of a
 * store of users, and at every commit of its backend.
 *
 * A writer marks, takes, forgets, changes its policy, makes checkpoints, sweeps,
 * closes, is killed, opens again. Before each of its system calls and around
 * each commit, a state is drawn that the disk may be in after a loss of power
 * there (helpers/sim_os.h, helpers/sim_backend.h), or is found by the next process
 * if this one is killed there. Each is opened as it would be: every user has a
 * record that he had when everything acknowledged had been done, byte for byte
 * (helpers/users_model.h), so nothing is lost and nothing was done twice; what
 * recovery has shown lasts, also if the power fails again.
 */
#define _POSIX_C_SOURCE 200809L /* local.h: pthread_rwlock_t */

#include "seen_users.h"

#include "helpers/sim_backend.h"
#include "helpers/sim_os.h"
#include "helpers/users_model.h"
#include "users/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIR   "/d/users"
#define STEPS 30

/* A machine, and what has to be true on it. */
struct world {
    struct sim *disk;
    struct sim_backend *backend;
    struct users_model model;
    bool made; /* the store has been created, as far as anybody was told */
};

static struct {
    struct world w;
    seen_users *users;
    struct test_rng rng;
    const char *call; /* where it was cut */
    uint64_t states, kills, twice, recovered, torn, changes, unmade;
} run;

static void enter(const struct world *w)
{
    sim_install(w->disk);
    sim_backend_install(w->backend);
    model_enter(&w->model);
}

/* Small limits: a checkpoint every few changes. */
static seen_status open_users(seen_users **u, seen_mode mode, bool tail,
                              bool create, const seen_policy *policy,
                              seen_outcome *outcome, seen_error *error)
{
    seen_users_options o = {.mode = mode,
                            .create = create,
                            .tail = tail,
                            .policy = policy,
                            .secret = test_secret,
                            .checkpoint_bytes = 3000,
                            .journal_bytes = 500};
    *error = (seen_error){0};
    seen_status status =
        seen_local_open(u, DIR, &sim_backend_ops, true, &o, outcome, error);
    if (status == SEEN_OK) (*u)->writable = mode != SEEN_READ;
    return status;
}

static void explain(seen_status status, const seen_error *error)
{
    if (status != SEEN_OK)
        fail_msg("cut at %s: %s: %s", run.call, seen_strerror(status),
                 error->text);
}

static struct world after(struct world *w, bool killed)
{
    struct world next = *w;
    uint64_t seed = test_next(&run.rng);
    next.disk =
        killed ? sim_after_kill(w->disk) : sim_after_power_loss(w->disk, seed);
    next.backend = sim_backend_after(w->backend, seed & 1);
    return next;
}

static void leave(struct world *w)
{
    assert_int_equal(sim_open_files(w->disk) + sim_mappings(w->disk), 0);
    assert_int_equal(sim_backend_open(w->backend), 0);
    sim_free(w->disk);
    sim_backend_free(w->backend);
}

/* ---- After the reboot --------------------------------------------------- */

/* Look, go on, look again. */
static void use_what_is_left(struct world *w)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_status status =
        open_users(&u, SEEN_READ, true, false, NULL, &outcome, &error);
    bool unmade = !w->made && status == SEEN_ABSENT;
    if (!unmade) {
        explain(status, &error);
        model_check(&w->model, u, false);
        seen_users_close(u, NULL);
    }

    /* One that was never finished can be made, whatever was left of it. */
    status = open_users(&u, SEEN_DURABLE, false, unmade,
                        unmade ? &model_policies[w->model.policy] : NULL,
                        &outcome, &error);
    explain(status, &error);
    run.unmade += unmade;
    run.recovered += outcome.recovered_frames;
    run.torn += outcome.torn_bytes > 0;
    w->made = w->model.durable = true;
    model_check(&w->model, u, true); /* what it shows now lasts */
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            model_mark(&w->model, u, test_below(&run.rng, MODEL_USERS)),
            SEEN_OK);
    if (test_below(&run.rng, 2))
        assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    assert_int_equal(model_step(&w->model, u), SEEN_OK);
    model_check(&w->model, u, true);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    model_settled(&w->model);

    explain(open_users(&u, SEEN_READ, false, false, NULL, &outcome, &error),
            &error);
    model_check(&w->model, u, true);
    seen_users_close(u, NULL);
}

/* The power fails again while the first loss is being made good. */
static void cut_again(void *ctx, const char *call)
{
    struct world *first = ctx, second;
    (void)call;
    if (test_below(&run.rng, 20)) return;
    second = after(first, false);
    enter(&second);
    use_what_is_left(&second);
    leave(&second);
    enter(first);
    run.twice++;
}

static void cut_power(void *ctx, const char *call)
{
    (void)ctx;
    run.call = call;
    /* Others may be asking in between; who asks settles, so not always. */
    if (run.users && test_below(&run.rng, 2) &&
        (strcmp(call, "begin") == 0 || strcmp(call, "after commit") == 0))
        model_check(&run.w.model, run.users, false);
    bool killed = test_below(&run.rng, 4) == 0;
    struct world next = after(&run.w, killed);
    enter(&next);
    if (killed || test_below(&run.rng, 4) == 0) {
        sim_on_call(next.disk, cut_again, &next);
        sim_backend_on_step(next.backend, cut_again, &next);
    }
    use_what_is_left(&next);
    leave(&next);
    enter(&run.w);
    run.states++;
    run.kills += killed;
}

/* ---- The life ----------------------------------------------------------- */

static void watch(bool on)
{
    sim_on_call(run.w.disk, on ? cut_power : NULL, NULL);
    sim_backend_on_step(run.w.backend, on ? cut_power : NULL, NULL);
}

/* Another process goes on with what this one has left lying there. */
static void die(void)
{
    watch(false);
    struct world next = after(&run.w, true);
    seen_users_close(run.users, NULL);
    run.users = NULL;
    leave(&run.w);
    run.w = next;
    enter(&run.w);
    watch(true);
}

static void one_life(int life)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    struct users_model *m = &run.w.model;
    const seen_policy *policy = NULL;
    seen_mode mode = run.w.model.durable ? SEEN_DURABLE : SEEN_WRITE;
    if (life != 1) {
        m->policy = life / 2 % 2; /* the other one, from the third life on */
        policy = &model_policies[m->policy];
        if (!run.w.made) m->policy_before = m->policy;
    }
    seen_users *u;
    explain(open_users(&u, mode, false, true, policy, &outcome, &error),
            &error);
    run.users = u;
    run.w.made = true;
    model_settled(m); /* it was replayed, and is on disk */
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(model_step(m, run.users), SEEN_OK);
        if (!m->durable && i % 7 == 6) {
            assert_int_equal(seen_users_sync(run.users, NULL), SEEN_OK);
            model_settled(m);
        }
    }
    model_check(m, run.users, false);
    if (life % 2) {
        die();
    } else {
        assert_int_equal(seen_users_close(run.users, NULL), SEEN_OK);
        run.users = NULL;
        model_settled(m);
    }
}

static void run_with(bool durable, uint64_t seed)
{
    run.rng = test_rng(seed);
    run.w = (struct world){.disk = sim_new(seed), .backend = sim_backend_new()};
    model_new(&run.w.model, test_rng(seed + 1), durable);
    sim_mkdir(run.w.disk, "/d");
    enter(&run.w);
    watch(true);
    for (int life = 0; life < 4; life++)
        one_life(life);
    cut_power(NULL, "end");
    watch(false);
    run.changes += run.w.model.changes;
    model_free(&run.w.model);
    leave(&run.w);
    sim_uninstall();
}

/* 1000 states in the quick run, 20,000 with the scale of --full, and more. */
static void no_power_cut_loses_or_repeats_anything(void **state)
{
    (void)state;
    uint64_t wanted = 1000 * test_scale();
    for (uint64_t seed = test_seed(); run.states < wanted; seed++) {
        run_with(true, seed);
        run_with(false, seed);
    }
    test_tried(run.states, "states");
    print_message(
        "%llu of them kills, %llu cut twice, %llu while it was made; %llu "
        "changes, %llu frames recovered, %llu torn tails\n",
        (unsigned long long)run.kills, (unsigned long long)run.twice,
        (unsigned long long)run.unmade, (unsigned long long)run.changes,
        (unsigned long long)run.recovered, (unsigned long long)run.torn);
    assert_true(run.recovered > 0 && run.torn > 0 && run.twice > 0);
    assert_true(run.unmade > 0);
}

/* ---- Readers meanwhile -------------------------------------------------- */

static struct {
    uint64_t at; /* of the reader's system calls: then the writer acts */
    uint64_t calls;
    unsigned deed;
} meeting;

static void reopen(bool close)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (close) assert_int_equal(seen_users_close(run.users, NULL), SEEN_OK);
    explain(open_users(&run.users, SEEN_DURABLE, false, true,
                       close ? NULL : &model_policies[0], &outcome, &error),
            &error);
}

static void meet(void *ctx, const char *call)
{
    (void)ctx;
    run.call = call;
    if (++meeting.calls != meeting.at) return;
    for (unsigned i = 0; i < meeting.deed; i++)
        assert_int_equal(model_mark(&run.w.model, run.users, i % MODEL_USERS),
                         SEEN_OK);
    if (meeting.deed % 2)
        assert_int_equal(seen_users_sync(run.users, NULL), SEEN_OK);
    if (meeting.deed % 3 == 0) reopen(true);
    if (meeting.deed % 3 == 1) {
        assert_int_equal(seen_users_close(run.users, NULL), SEEN_OK);
        run.users = NULL;
    }
}

/* Gives false if the reader made fewer calls. */
static bool one_meeting(uint64_t seed)
{
    seen_users *reader;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    run.rng = test_rng(seed);
    run.w = (struct world){.disk = sim_new(seed), .backend = sim_backend_new()};
    model_new(&run.w.model, test_rng(seed), true);
    sim_mkdir(run.w.disk, "/d");
    enter(&run.w);
    reopen(false);
    for (int i = 0; i < 12; i++)
        assert_int_equal(model_step(&run.w.model, run.users), SEEN_OK);
    run.w.model.durable = false; /* what comes may be seen or not */
    meeting.calls = 0;
    sim_on_call(run.w.disk, meet, NULL);
    explain(open_users(&reader, SEEN_READ, true, false, NULL, &outcome, &error),
            &error);
    sim_on_call(run.w.disk, NULL, NULL);
    model_check(&run.w.model, reader, false);
    seen_users_close(reader, NULL);
    seen_users_close(run.users, NULL);
    model_free(&run.w.model);
    leave(&run.w);
    sim_uninstall();
    return meeting.calls >= meeting.at;
}

static void a_reader_sees_all_that_was_acknowledged(void **state)
{
    (void)state;
    uint64_t meetings = 0;
    for (uint64_t seed = test_seed(); seed < test_seed() + 4 * test_scale();
         seed++)
        for (meeting.deed = 0; meeting.deed < 6; meeting.deed++)
            for (meeting.at = 1; one_meeting(seed); meeting.at++)
                meetings++;
    test_tried(meetings, "meetings");
    assert_true(meetings > 100);
}

/* ---- A reader that stays ------------------------------------------------ */

static uint64_t looks, dead_looks;

/* The latest of the records that a user has had which a reader sees. */
static size_t age_of(seen_users *reader, size_t user)
{
    const struct model_user *u = &run.w.model.user[user];
    uint8_t record[MODEL_RECORD];
    size_t len = 0, i = u->n;
    seen_status status = seen_users_record(reader, model_name(user), record,
                                           sizeof record, &len, NULL);
    if (status == SEEN_ABSENT) len = 0;
    assert_true(status == SEEN_OK || status == SEEN_ABSENT);
    while (i-- > 0)
        if (u->at[i].len == len && memcmp(u->at[i].bytes, record, len) == 0)
            return i;
    fail_msg("user %zu never had this record of %zu bytes", user, len);
    return 0;
}

/* Whatever has become of the writer: after a second, a reader knows all that one
 * who died had done, and it never knows less than before. */
static void look_again(seen_users *reader, size_t before[MODEL_USERS])
{
    model_pass(&run.w.model, 1000);
    for (size_t i = 0; i < MODEL_USERS; i++) {
        size_t now = age_of(reader, i);
        assert_true(now >= before[i]);
        if (!run.users) assert_int_equal(now, run.w.model.user[i].n - 1);
        before[i] = now;
    }
    looks++;
    dead_looks += !run.users;
}

/* The writer is gone, and what it wrote is there; as seen_users_close(, NULL) of one
 * that has failed. */
static void writer_dies(void)
{
    struct seen_local *l = (struct seen_local *)run.users;
    seen_local_fail(l, SEEN_IO, "killed", "", NULL);
    seen_users_close(run.users, NULL);
    run.users = NULL;
}

static void a_life_with(seen_users *reader, size_t known[MODEL_USERS],
                        struct test_rng *r)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    explain(open_users(&run.users, SEEN_DURABLE, false, true,
                       &model_policies[0], &outcome, &error),
            &error);
    for (unsigned i = 0; i < 12; i++) {
        size_t user = test_below(r, MODEL_USERS);
        if (reader && test_below(r, 3) == 0) look_again(reader, known);
        assert_int_equal(model_mark(&run.w.model, run.users, user), SEEN_OK);
        if (test_below(r, 8) == 0)
            assert_int_equal(seen_users_sync(run.users, NULL), SEEN_OK);
    }
    if (test_below(r, 3)) {
        writer_dies();
    } else {
        assert_int_equal(seen_users_close(run.users, NULL), SEEN_OK);
        run.users = NULL;
    }
    if (reader) look_again(reader, known);
}

static void one_long_reader(uint64_t seed)
{
    struct test_rng r = test_rng(seed);
    size_t known[MODEL_USERS] = {0};
    seen_users *reader;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    run.rng = r;
    run.call = "nothing";
    run.w = (struct world){.disk = sim_new(seed), .backend = sim_backend_new()};
    model_new(&run.w.model, test_rng(seed), false); /* keeps all records */
    sim_mkdir(run.w.disk, "/d");
    enter(&run.w);
    a_life_with(NULL, NULL, &r);
    explain(
        open_users(&reader, SEEN_READ, false, false, NULL, &outcome, &error),
        &error);
    look_again(reader, known);
    for (int life = 0; life < 5; life++)
        a_life_with(reader, known, &r);
    seen_users_close(reader, NULL);
    model_free(&run.w.model);
    leave(&run.w);
    sim_uninstall();
}

static void a_reader_that_stays_misses_nothing_of_the_dead(void **state)
{
    (void)state;
    uint64_t seed = test_seed(), end = seed + 20 * test_scale();
    for (; seed < end; seed++)
        one_long_reader(seed);
    test_tried(looks, "looks");
    assert_true(dead_looks > 100 && looks > 2 * dead_looks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_power_cut_loses_or_repeats_anything),
        cmocka_unit_test(a_reader_sees_all_that_was_acknowledged),
        cmocka_unit_test(a_reader_that_stays_misses_nothing_of_the_dead),
    };
    test_announce("fault_users_power");
    return cmocka_run_group_tests_name("fault_users_power", tests, NULL, NULL);
}
