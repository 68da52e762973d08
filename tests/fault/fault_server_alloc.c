/*
 * fault_server_alloc.c - every allocation of a store on a server fails, once and
 * from then on. Argument: the port of a server with our module
 * (tests/server/with_server.py starts both).
 *
 * The script opens a store, changes it and asks. After a failure: a status, nothing
 * leaked; whatever was acknowledged another client finds on the server, and no call
 * that says SEEN_OK left anything out.
 */
#include "seen_remote.h"
#include "seen_users.h"

#include "helpers/chosen.h"
#include "helpers/harness.h"
#include "helpers/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS 3
#define ITEMS 5
#define NOW   1000

static struct {
    const char *port;
    char where[160];
    unsigned runs; /* each has keys of its own */
    uint64_t failures;
    uint64_t id[2 * ITEMS];
    seen_key item[2 * ITEMS]; /* half of them are never added */
} run;

static bool went_wrong(seen_status status)
{
    run.failures += status != SEEN_OK;
    return status != SEEN_OK;
}

static void enter(void)
{
    test_memory.inside = true;
}

static void leave(void)
{
    test_memory.inside = false;
}

static seen_key name(size_t user)
{
    static const char *const names[USERS] = {"ann", "bob", "cyd"};
    return (seen_key){names[user], 3};
}

/* ---- Users -------------------------------------------------------------- */

static seen_status open_users(seen_users **u)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_users_options o = {.mode = SEEN_WRITE};
    return seen_remote_users(u, run.where, &o, &outcome, &error);
}

/* What the server has, seen by somebody with memory. */
static void assert_marked(size_t user, const seen_key *items, size_t n)
{
    seen_users *u;
    bool seen[ITEMS] = {false};
    assert_int_equal(open_users(&u), SEEN_OK);
    assert_int_equal(seen_users_maybe_many(u, name(user), NOW,
                                           seen_keys_of(items, n), seen, NULL),
                     SEEN_OK);
    for (size_t i = 0; i < n; i++)
        assert_true(seen[i]);
    seen_users_close(u, NULL);
}

static void mark(seen_users *u, bool tells)
{
    bool fresh[USERS][ITEMS];
    seen_users_request r[USERS];
    for (size_t i = 0; i < USERS; i++)
        r[i] = (seen_users_request){
            .user = name(i),
            .items = seen_keys_of(run.item, tells ? ITEMS : 2),
            .fresh = tells ? fresh[i] : NULL};
    enter();
    seen_status status = seen_users_mark_many(u, NOW, r, USERS, NULL);
    leave();
    went_wrong(status);
    for (size_t i = 0; i < USERS; i++) {
        if (status == SEEN_OK) assert_int_equal(r[i].status, SEEN_OK);
        if (r[i].status == SEEN_OK) assert_marked(i, run.item, r[i].items.n);
    }
}

static void take(seen_users *u)
{
    seen_key items[ITEMS];
    size_t taken = 0;
    memcpy(items, run.item + ITEMS, sizeof items);
    enter();
    seen_status status =
        test_users_take(u, name(0), NOW, items, ITEMS, 2, &taken, NULL);
    leave();
    if (went_wrong(status)) return;
    assert_true(taken <= 2);
    assert_marked(0, items, taken);
}

static bool count_one(void *ctx, const seen_users_entry *entry)
{
    assert_true(entry->status == SEEN_OK || entry->status == SEEN_NOMEM);
    *(size_t *)ctx += entry->status == SEEN_OK;
    went_wrong(entry->status);
    return true;
}

static void ask(seen_users *u)
{
    bool seen[ITEMS];
    size_t n = 0, fresh = ITEMS;
    seen_exposure_info info = {.size = sizeof info};
    seen_key items[ITEMS];
    uint64_t before = run.failures;
    memcpy(items, run.item, sizeof items);
    enter();
    seen_status asked = seen_users_maybe_many(
        u, name(1), NOW, seen_keys_of(items, ITEMS), seen, NULL);
    seen_status freshened =
        test_users_fresh(u, name(2), NOW, items, ITEMS, &fresh, NULL);
    went_wrong(seen_users_info_of(u, name(1), NOW, &info, NULL));
    seen_status walked = seen_users_each(u, NOW, count_one, &n, NULL);
    leave();
    bool all = before == 0; /* then everything was marked */
    for (size_t i = 0; !went_wrong(asked) && all && i < ITEMS; i++)
        assert_true(seen[i]);
    if (!went_wrong(freshened) && all) assert_int_equal(fresh, 0);
    if (!went_wrong(walked) && all && run.failures == 0)
        assert_int_equal(n, USERS);
}

static void users_script(void)
{
    seen_users *u;
    bool known;
    enter();
    seen_status status = open_users(&u);
    leave();
    if (went_wrong(status)) return;
    mark(u, false);
    mark(u, true);
    take(u);
    ask(u);
    enter();
    status = seen_users_forget_user(u, name(0), NOW, &known, NULL);
    leave();
    if (!went_wrong(status) && run.failures == 0) assert_true(known);
    seen_users_close(u, NULL);
}

/* ---- Filters ------------------------------------------------------------ */

static const seen_spec spec = {.items = 1000, .fpp = 0.001, .bits = 20000};

static void assert_added(void)
{
    seen_remote *m;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    bool there[ITEMS] = {false};
    assert_int_equal(seen_remote_open(&m, run.where, &spec, &outcome, &error),
                     SEEN_OK);
    assert_int_equal(
        seen_remote_maybe_many(m, seen_keys_of(run.item, ITEMS), there, &error),
        SEEN_OK);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(there[i]);
    seen_remote_close(m);
}

static void filter_script(void)
{
    seen_remote *m;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    bool fresh[ITEMS], there[ITEMS];
    seen_remote_info info = {.size = sizeof info};
    enter();
    seen_status status =
        seen_remote_open(&m, run.where, &spec, &outcome, &error);
    leave();
    assert_int_equal(error.status, status);
    if (went_wrong(status)) return;
    enter();
    status =
        seen_remote_add_many(m, seen_keys_of(run.item, ITEMS), fresh, &error);
    leave();
    assert_int_equal(error.status, status);
    bool added = !went_wrong(status);
    if (added) assert_added();
    enter();
    status =
        seen_remote_maybe_many(m, seen_keys_of(run.item, ITEMS), there, &error);
    leave();
    assert_int_equal(error.status, status);
    for (size_t i = 0; !went_wrong(status) && added && i < ITEMS; i++)
        assert_true(there[i]);
    enter();
    went_wrong(seen_remote_info_of(m, &info, &error));
    leave();
    seen_remote_close(m);
}

/* ---- All of them -------------------------------------------------------- */

struct way {
    const char *scheme, *before, *behind; /* the number of the run between */
    void (*script)(void);
};

/* A script with its n-th allocation failing; false if it has fewer. */
static bool one_fault(const struct way *w, uint64_t n, bool persistent)
{
    int64_t live = test_memory.live;
    run.failures = 0;
    snprintf(run.where, sizeof run.where, "%s://127.0.0.1:%s%s%u%s", w->scheme,
             run.port, w->before, ++run.runs, w->behind);
    test_memory_arm(n, persistent);
    w->script();
    bool fired = test_memory.fired > 0;
    test_memory_arm(0, false);
    assert_int_equal(fired, run.failures > 0);
    assert_int_equal(test_memory.live, live);
    return fired;
}

static void every_allocation_fails(void **state)
{
    (void)state;
    static const struct way ways[] = {
        {"redis", "?prefix=u", ":", users_script},
        {"redis+list", "?prefix=l", ":", users_script},
        {"redis", "?key=f", "", filter_script},
        {"redis+plain", "/p", "", filter_script},
        {"redis+bitmap", "/b", "?bits=20000", filter_script},
        {"redis+gozero", "/g", "?bits=20000", filter_script},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t faults = 0;
        for (int persistent = 0; persistent < 2; persistent++)
            for (uint64_t n = 1; one_fault(&ways[i], n, persistent); n++)
                faults++;
        print_message("%s%s %llu failures\n", ways[i].scheme, ways[i].before,
                      (unsigned long long)faults);
        assert_true(faults > 8);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails),
    };
    test_announce("fault_server_alloc");
    if (argc != 2) {
        fprintf(stderr, "usage: fault_server_alloc PORT\n");
        return 2;
    }
    run.port = argv[1];
    for (size_t i = 0; i < 2 * ITEMS; i++) {
        run.id[i] = 1000 + i;
        run.item[i] = (seen_key){&run.id[i], sizeof run.id[i]};
    }
    return cmocka_run_group_tests_name("fault_server_alloc", tests, NULL, NULL);
}
