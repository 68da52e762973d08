/*
 * test_users.c - the store against records: whatever is done to a user of the
 * store, doing it to a record of his own gives the same bytes. That records do
 * what they should is test_exposure.c's business.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_users.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "helpers/chosen.h"
#include "helpers/clock.h"
#include "helpers/keys.h"
#include "helpers/scratch.h"
#include "store/os.h"

#include <errno.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USERS 40
#define MOST  30 /* items of a request */

static const seen_policy small_policy = {
    .items = 20, .generations = 4, .fpp = 0.01, .ttl_ms = 100000};

/* A new directory each time. */
static const char *fresh_dir(void)
{
    static char dir[512];
    static int count;
    snprintf(dir, sizeof dir, "%s/store-%d", test_scratch(), ++count);
    return dir;
}

static seen_users *open_store(const char *where, seen_users_options o)
{
    seen_users *u = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_status status = seen_users_open(&u, where, &o, &outcome, &error);
    if (status != SEEN_OK) print_message("%s: %s\n", where, error.text);
    assert_int_equal(status, SEEN_OK);
    return u;
}

static seen_status try_open(const char *where, seen_users_options o)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_status status = seen_users_open(&u, where, &o, &outcome, &error);
    if (status == SEEN_OK)
        seen_users_close(u, NULL);
    else
        assert_string_not_equal(error.text, "");
    return status;
}

static seen_key text(const char *s)
{
    return (seen_key){s, strlen(s)};
}

static bool shown(seen_users *u, const char *user, const char *item)
{
    bool answer;
    seen_key key = text(item);
    assert_int_equal(seen_users_maybe_many(u, text(user), 1000,
                                           seen_keys_of(&key, 1), &answer,
                                           NULL),
                     SEEN_OK);
    return answer;
}

/* ---- The reference ------------------------------------------------------ */

struct reference {
    seen_exposure *x;
    uint8_t *record[USERS];
    size_t len[USERS];
};

static void open_reference(struct reference *f, const seen_policy *p)
{
    *f = (struct reference){0};
    assert_int_equal(seen_exposure_new(&f->x, p, test_secret, NULL, NULL),
                     SEEN_OK);
}

static void close_reference(struct reference *f)
{
    for (size_t i = 0; i < USERS; i++)
        free(f->record[i]);
    seen_exposure_free(f->x);
}

static seen_record record_of(const struct reference *f, size_t user)
{
    return (seen_record){f->record[user], f->len[user]};
}

static void keep(struct reference *f, size_t user, seen_record r)
{
    uint8_t *copy = malloc(r.len + 1);
    if (r.len) memcpy(copy, r.data, r.len);
    free(f->record[user]);
    f->record[user] = copy;
    f->len[user] = r.len;
}

struct batch {
    size_t n;
    uint64_t id[MOST];
    seen_key items[MOST];
};

static void fill(struct batch *b, struct test_rng *r)
{
    b->n = test_below(r, MOST);
    for (size_t i = 0; i < b->n; i++) {
        b->id[i] = test_below(r, 200);
        b->items[i] = (seen_key){&b->id[i], sizeof b->id[i]};
    }
}

static seen_key name_of(size_t user)
{
    static char names[USERS][SEEN_USER_MAX + 1];
    size_t len = user == 0   ? 1
                 : user == 1 ? SEEN_USER_MAX
                             : 1 + test_mix(user) % 40;
    memset(names[user], 'a' + (int)(user % 26), len);
    snprintf(names[user], len + 1, "%zu", user);
    return (seen_key){names[user], len};
}

/* ---- Operations --------------------------------------------------------- */

static void do_mark(seen_users *u, struct reference *f, size_t user,
                    uint64_t now, struct batch *b, bool asks)
{
    bool fresh[MOST], expected[MOST];
    seen_record result;
    assert_int_equal(seen_users_mark(u, name_of(user), now,
                                     seen_keys_of(b->items, b->n),
                                     asks ? fresh : NULL, NULL),
                     SEEN_OK);
    assert_int_equal(seen_exposure_mark(f->x, record_of(f, user), now,
                                        seen_keys_of(b->items, b->n), expected,
                                        &result),
                     SEEN_OK);
    if (b->n) keep(f, user, result);
    for (size_t i = 0; asks && i < b->n; i++)
        assert_int_equal(fresh[i], expected[i]);
}

static void do_take(seen_users *u, struct reference *f, size_t user,
                    uint64_t now, struct batch *b, size_t count)
{
    seen_key mine[MOST];
    size_t taken, expected;
    seen_record result;
    memcpy(mine, b->items, sizeof mine);
    assert_int_equal(
        test_users_take(u, name_of(user), now, mine, b->n, count, &taken, NULL),
        SEEN_OK);
    assert_int_equal(test_exposure_take(f->x, record_of(f, user), now, b->items,
                                        b->n, count, &expected, &result),
                     SEEN_OK);
    if (expected) keep(f, user, result);
    assert_int_equal(taken, expected);
    for (size_t i = 0; i < taken; i++)
        assert_ptr_equal(mine[i].data, b->items[i].data);
}

static void do_fresh(seen_users *u, struct reference *f, size_t user,
                     uint64_t now, struct batch *b)
{
    seen_key mine[MOST];
    bool answers[MOST], expected[MOST];
    size_t fresh, wanted;
    memcpy(mine, b->items, sizeof mine);
    assert_int_equal(seen_users_maybe_many(u, name_of(user), now,
                                           seen_keys_of(b->items, b->n),
                                           answers, NULL),
                     SEEN_OK);
    assert_int_equal(seen_exposure_maybe_many(f->x, record_of(f, user), now,
                                              seen_keys_of(b->items, b->n),
                                              expected),
                     SEEN_OK);
    for (size_t i = 0; i < b->n; i++)
        assert_int_equal(answers[i], expected[i]);
    assert_int_equal(
        test_users_fresh(u, name_of(user), now, mine, b->n, &fresh, NULL),
        SEEN_OK);
    assert_int_equal(test_exposure_fresh(f->x, record_of(f, user), now,
                                         b->items, b->n, &wanted),
                     SEEN_OK);
    assert_int_equal(fresh, wanted);
    for (size_t i = 0; i < fresh; i++)
        assert_ptr_equal(mine[i].data, b->items[i].data);
}

static void do_forget(seen_users *u, struct reference *f, size_t user,
                      uint64_t now, struct batch *b)
{
    seen_record result;
    if (b->n > 3) b->n = 3;
    assert_int_equal(seen_users_forget(u, name_of(user), now,
                                       seen_keys_of(b->items, b->n), NULL),
                     SEEN_OK);
    assert_int_equal(seen_exposure_forget(f->x, record_of(f, user), now,
                                          seen_keys_of(b->items, b->n),
                                          &result),
                     SEEN_OK);
    if (b->n) keep(f, user, result);
}

/* Many users, some of them several times. */
static void do_many(seen_users *u, struct reference *f, struct test_rng *r,
                    uint64_t now)
{
    enum {
        REQUESTS = 25
    };
    static struct batch b[REQUESTS];
    static bool fresh[REQUESTS][MOST];
    static size_t indices[REQUESTS][MOST];
    seen_users_request q[REQUESTS];
    size_t user[REQUESTS];
    bool take = test_below(r, 2);
    for (size_t i = 0; i < REQUESTS; i++) {
        fill(&b[i], r);
        user[i] = test_below(r, USERS);
        q[i] =
            (seen_users_request){.user = name_of(user[i]),
                                 .items = seen_keys_of(b[i].items, b[i].n),
                                 .count = test_below(r, 5),
                                 .taken = indices[i],
                                 .fresh = test_below(r, 2) ? fresh[i] : NULL};
    }
    struct batch before[REQUESTS];
    memcpy(before, b, sizeof b);
    assert_int_equal(take ? seen_users_take_many(u, now, q, REQUESTS, NULL)
                          : seen_users_mark_many(u, now, q, REQUESTS, NULL),
                     SEEN_OK);
    for (size_t i = 0; i < REQUESTS; i++) {
        seen_record result;
        bool expected[MOST];
        size_t taken;
        assert_int_equal(q[i].status, SEEN_OK);
        if (take) {
            assert_int_equal(test_exposure_take(f->x, record_of(f, user[i]),
                                                now, before[i].items, b[i].n,
                                                q[i].count, &taken, &result),
                             SEEN_OK);
            if (taken) keep(f, user[i], result);
            assert_int_equal(q[i].n_taken, taken);
            for (size_t k = 0; k < taken; k++)
                assert_ptr_equal(b[i].items[indices[i][k]].data,
                                 before[i].items[k].data);
        } else {
            assert_int_equal(
                seen_exposure_mark(f->x, record_of(f, user[i]), now,
                                   seen_keys_of(b[i].items, b[i].n), expected,
                                   &result),
                SEEN_OK);
            if (b[i].n) keep(f, user[i], result);
            for (size_t k = 0; q[i].fresh && k < b[i].n; k++)
                assert_int_equal(q[i].fresh[k], expected[k]);
        }
    }
}

/* A checkpoint may have removed a user who had aged out by then; if a clock goes
 * back afterwards the reference, which still has him, would know better. */
static void agree_about_the_old(seen_users *u, struct reference *f, size_t user,
                                uint64_t latest)
{
    uint8_t bytes[8192];
    size_t len;
    seen_exposure_info info = {.size = sizeof info};
    if (seen_exposure_info_of(f->x, record_of(f, user), latest, &info) ==
            SEEN_OK &&
        info.generations == 0 &&
        seen_users_record(u, name_of(user), bytes, sizeof bytes, &len, NULL) ==
            SEEN_ABSENT)
        keep(f, user, (seen_record){0});
}

/* The bytes are the same, except that a checkpoint may have removed a user who
 * has aged out as a whole. */
static void assert_same(seen_users *u, struct reference *f, size_t user,
                        uint64_t latest)
{
    uint8_t bytes[8192];
    size_t len = 0;
    seen_status status =
        seen_users_record(u, name_of(user), bytes, sizeof bytes, &len, NULL);
    if (status == SEEN_ABSENT) {
        seen_exposure_info info = {.size = sizeof info};
        assert_int_equal(
            seen_exposure_info_of(f->x, record_of(f, user), latest, &info),
            SEEN_OK);
        assert_int_equal(info.generations, 0);
        keep(f, user, (seen_record){0});
        return;
    }
    assert_int_equal(status, SEEN_OK);
    assert_int_equal(len, f->len[user]);
    assert_memory_equal(bytes, f->record[user], len);
}

static bool count_one(void *ctx, const seen_users_entry *e)
{
    seen_key user = e->user;
    seen_record record = e->record;
    struct reference *f = ((void **)ctx)[0];
    size_t *count = ((void **)ctx)[1];
    for (size_t i = 0; i < USERS; i++) {
        seen_key name = name_of(i);
        if (name.len != user.len || memcmp(name.data, user.data, user.len) != 0)
            continue;
        assert_int_equal(record.len, f->len[i]);
        assert_memory_equal(record.data, f->record[i], record.len);
        ++*count;
    }
    return true;
}

static void check_everybody(seen_users *u, struct reference *f, uint64_t latest)
{
    size_t count = 0, expected = 0;
    for (size_t i = 0; i < USERS; i++) {
        assert_same(u, f, i, latest);
        expected += f->len[i] > 0;
    }
    void *ctx[] = {f, &count};
    assert_int_equal(seen_users_each(u, latest, count_one, ctx, NULL), SEEN_OK);
    /* The walk makes a checkpoint, and that may remove old users. */
    assert_true(count <= expected);
}

static uint64_t next_time(struct test_rng *r, uint64_t now)
{
    switch (test_below(r, 60)) {
    case 0:
        return now > 5000 ? now - test_below(r, 5000) : now;
    case 1:
        return now + test_below(r, 2 * small_policy.ttl_ms);
    default:
        return now + test_below(r, 500);
    }
}

static void one_life(const char *where, struct test_rng *r, uint64_t operations)
{
    struct reference f;
    bool lasting = strcmp(where, "mem:") != 0;
    seen_users_options o = {.mode = SEEN_WRITE,
                            .create = true,
                            .secret = test_secret,
                            .policy = &small_policy,
                            .checkpoint_bytes = 20000 + test_below(r, 20000)};
    open_reference(&f, &small_policy);
    seen_users *u = open_store(where, o);
    uint64_t now = 1000000, latest = now;
    for (uint64_t i = 0; i < operations; i++) {
        struct batch b;
        size_t user = test_below(r, test_below(r, 2) ? 5 : USERS);
        fill(&b, r);
        now = next_time(r, now);
        if (now > latest) latest = now;
        for (size_t k = 0; k < USERS; k++)
            if (f.len[k]) agree_about_the_old(u, &f, k, latest);
        switch (test_below(r, 14)) {
        case 0:
            do_forget(u, &f, user, now, &b);
            break;
        case 1:
            do_fresh(u, &f, user, now, &b);
            break;
        case 2:
        case 3:
            do_take(u, &f, user, now, &b, test_below(r, 12));
            break;
        case 4:
            assert_same(u, &f, user, latest);
            break;
        case 5:
            do_many(u, &f, r, now);
            break;
        case 6:
            if (test_below(r, 10) == 0) {
                bool known;
                assert_int_equal(
                    seen_users_forget_user(u, name_of(user), now, &known, NULL),
                    SEEN_OK);
                if (f.len[user] == 0) assert_false(known);
                keep(&f, user, (seen_record){0});
            }
            break;
        case 7:
            if (test_below(r, 20) == 0 && lasting) {
                assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
                u = open_store(where, o);
            } else if (test_below(r, 10) == 0) {
                check_everybody(u, &f, latest);
            }
            break;
        default:
            do_mark(u, &f, user, now, &b, test_below(r, 3) == 0);
        }
    }
    check_everybody(u, &f, latest);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    close_reference(&f);
}

static void stores_agree_with_records(void **state)
{
    (void)state;
    struct test_rng r = test_rng(800);
    for (uint64_t i = 0; i < 3 * test_scale(); i++) {
        one_life("mem:", &r, 8000);
        one_life(fresh_dir(), &r, 8000);
    }
    test_tried(3 * test_scale() * 2 * 8000, "operations");
}

/* ---- Sweeping ----------------------------------------------------------- */

static void old_users_leave(void **state)
{
    (void)state;
    const char *stores[] = {"mem:", fresh_dir()};
    for (size_t i = 0; i < 2; i++) {
        seen_users *u = open_store(
            stores[i], (seen_users_options){.mode = SEEN_WRITE,
                                            .create = true,
                                            .policy = &small_policy});
        char name[16];
        seen_key item = text("x");
        for (int k = 0; k < 3000; k++) {
            snprintf(name, sizeof name, "u%d", k);
            assert_int_equal(
                seen_users_mark(u, text(name), 1000000 + 10 * (uint64_t)k,
                                seen_keys_of(&item, 1), NULL, NULL),
                SEEN_OK);
        }
        uint64_t removed;
        uint64_t now = 1000000 + small_policy.ttl_ms;
        assert_int_equal(seen_users_sweep(u, now, &removed, NULL), SEEN_OK);
        assert_int_equal(removed, 0);
        assert_int_equal(seen_users_sweep(u, now + 10000 + 1, &removed, NULL),
                         SEEN_OK);
        assert_int_equal(removed, 1001);
        seen_users_stats stats = {.size = sizeof stats};
        assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
        assert_int_equal(stats.users, 1999);
        bool seen;
        seen_users_maybe_many(u, text("u1000"), now, seen_keys_of(&item, 1),
                              &seen, NULL);
        assert_false(seen);
        seen_users_maybe_many(u, text("u1001"), now, seen_keys_of(&item, 1),
                              &seen, NULL);
        assert_true(seen);
        seen_users_close(u, NULL);
    }
}

/* ---- Clocks ------------------------------------------------------------- */

#define DAY   ((uint64_t)24 * 60 * 60 * 1000)
#define TODAY (20000 * DAY)
#define CROWD 3000

static void mark_at(seen_users *u, const char *user, uint64_t now)
{
    seen_key item = text("x");
    assert_int_equal(
        seen_users_mark(u, text(user), now, seen_keys_of(&item, 1), NULL, NULL),
        SEEN_OK);
}

/* A store with many users who were marked today, at noon, say. */
static seen_users *open_crowd(const char *dir)
{
    char name[16];
    test_clock_install();
    test_set_clock(TODAY);
    seen_users *u = open_store(
        dir, (seen_users_options){.mode = SEEN_WRITE, .create = true});
    for (int k = 0; k < CROWD; k++) {
        snprintf(name, sizeof name, "u%d", k);
        mark_at(u, name, TODAY);
    }
    assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    return u;
}

/* Enough checkpoints to look through all of the backend, each with a mark. */
static uint64_t left_after_checkpoints(seen_users *u, uint64_t now)
{
    seen_users_stats stats = {.size = sizeof stats};
    for (int i = 0; i < 6; i++) {
        mark_at(u, "one more", now);
        assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    }
    assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    return stats.users;
}

static uint64_t clock_ahead(seen_users *u)
{
    seen_users_stats stats = {.size = sizeof stats};
    assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    return stats.clock_ahead;
}

/* Checkpoints find old users by and by, a day after their marks have aged out. */
static void checkpoints_remove_old_users(void **state)
{
    (void)state;
    seen_users *u = open_crowd(fresh_dir());
    test_pass(6 * DAY - 1);
    assert_int_equal(left_after_checkpoints(u, test_clock()), CROWD + 1);
    test_pass(2);
    assert_int_equal(left_after_checkpoints(u, test_clock()), 1);
    seen_users_stats stats = {.size = sizeof stats};
    assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    assert_int_equal(stats.expired, CROWD);
    assert_int_equal(stats.clock_leaps, 0);
    seen_users_close(u, NULL);
    test_clock_remove();
}

/* Whatever time a mark claims, other users stay as they are. */
static void a_mark_of_any_time_removes_nobody_else(void **state)
{
    (void)state;
    const uint64_t times[] = {TODAY + 6 * DAY, 2 * TODAY, UINT64_MAX / 2,
                              TODAY - 6 * DAY, 1};
    seen_users *u = open_crowd(fresh_dir());
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_int_equal(left_after_checkpoints(u, times[i]), CROWD + 1);
    assert_true(shown(u, "u7", "x"));
    seen_users_close(u, NULL);
    test_clock_remove();
}

/* The machine's clock leaps ahead, with it all marks; it is noticed. */
static void a_clock_that_leaps_removes_nobody(void **state)
{
    (void)state;
    char dir[512];
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    seen_users *u = open_crowd(dir);
    test_set_clock(TODAY + 20 * DAY);
    assert_int_equal(left_after_checkpoints(u, TODAY + 20 * DAY), CROWD + 1);
    assert_in_range(clock_ahead(u), 20 * DAY - 60000, 20 * DAY);
    /* Nor does whoever sweeps by the clock, nor the next program. */
    uint64_t removed;
    assert_int_equal(seen_users_sweep(u, 0, &removed, NULL), SEEN_OK);
    assert_int_equal(removed, 0);
    seen_users_close(u, NULL);
    u = open_store(dir, (seen_users_options){.mode = SEEN_WRITE});
    assert_int_equal(left_after_checkpoints(u, TODAY + 20 * DAY), CROWD + 1);
    assert_in_range(clock_ahead(u), 20 * DAY - 60000, 20 * DAY);
    /* One leap does not vouch for another. */
    for (uint64_t days = 26; days <= 50; days += 12) {
        test_set_clock(TODAY + days * DAY);
        assert_int_equal(left_after_checkpoints(u, test_clock()), CROWD + 1);
    }
    /* Set right, all is as before. */
    test_set_clock(TODAY + 60000);
    assert_int_equal(left_after_checkpoints(u, TODAY), CROWD + 1);
    assert_in_range(clock_ahead(u), 0, 120000);
    seen_users_close(u, NULL);
    test_clock_remove();
}

/* A store that nobody used for a month: the clock is right, and believed after a
 * day; whoever knows that it is need not wait. */
static void a_clock_that_stays_is_believed(void **state)
{
    (void)state;
    char dir[512];
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    seen_users_options writes = {.mode = SEEN_WRITE};
    for (int knows = 0; knows < 2; knows++) {
        seen_users *u = open_crowd(dir);
        seen_users_close(u, NULL);
        test_set_clock(TODAY + 30 * DAY);
        u = open_store(dir, writes);
        assert_int_equal(clock_ahead(u), 30 * DAY);
        assert_int_equal(left_after_checkpoints(u, test_clock()), CROWD + 1);
        uint64_t removed = 0;
        if (knows) {
            assert_int_equal(seen_users_sweep(u, test_clock(), &removed, NULL),
                             SEEN_OK);
            assert_int_equal(removed, CROWD);
        } else {
            test_pass(DAY + 1);
            assert_int_equal(left_after_checkpoints(u, test_clock()), 1);
            assert_int_equal(clock_ahead(u), 0);
        }
        seen_users_close(u, NULL);
        test_clock_remove();
        snprintf(dir, sizeof dir, "%s", fresh_dir());
    }
}

/* Those who have a clock of their own, far behind, keep their users. */
static void marks_far_behind_the_clock_remove_nobody(void **state)
{
    (void)state;
    seen_users *u = open_crowd(fresh_dir());
    test_pass(30 * DAY);
    assert_int_equal(left_after_checkpoints(u, TODAY + 1000), CROWD + 1);
    assert_true(shown(u, "u7", "x"));
    seen_users_close(u, NULL);
    test_clock_remove();
}

/* ---- Threads ------------------------------------------------------------ */

#define CATALOGUE 400

struct taker {
    seen_users *u;
    pthread_t thread;
    uint64_t seed;
    atomic_uchar *given; /* user x item */
    bool twice;
};

static void *take_and_ask(void *arg)
{
    struct taker *t = arg;
    struct test_rng r = test_rng(t->seed);
    for (int i = 0; i < 1500; i++) {
        uint64_t id[40];
        seen_key items[40];
        char name[16];
        size_t user = test_below(&r, 8), taken;
        snprintf(name, sizeof name, "user%zu", user);
        for (size_t k = 0; k < 40; k++) {
            id[k] = test_below(&r, CATALOGUE);
            items[k] = (seen_key){&id[k], sizeof id[k]};
        }
        if (test_below(&r, 3) == 0) {
            size_t fresh;
            test_users_fresh(t->u, text(name), 1000, items, 40, &fresh, NULL);
            continue;
        }
        if (test_users_take(t->u, text(name), 1000, items, 40, 3, &taken, NULL))
            t->twice = true;
        for (size_t k = 0; k < taken; k++) {
            uint64_t item;
            memcpy(&item, items[k].data, sizeof item);
            if (atomic_fetch_add(&t->given[user * CATALOGUE + item], 1))
                t->twice = true;
        }
    }
    return NULL;
}

static void takes_are_one_step(void **state)
{
    (void)state;
    const char *stores[] = {"mem:", fresh_dir()};
    for (size_t s = 0; s < 2; s++) {
        enum {
            THREADS = 4
        };
        static atomic_uchar given[8 * CATALOGUE];
        memset(given, 0, sizeof given);
        seen_users *u = open_store(
            stores[s], (seen_users_options){.mode = SEEN_DURABLE,
                                            .create = true,
                                            .checkpoint_bytes = 1000});
        struct taker t[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            t[i] = (struct taker){.u = u, .seed = 820 + i, .given = given};
            pthread_create(&t[i].thread, NULL, take_and_ask, &t[i]);
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(t[i].thread, NULL);
            assert_false(t[i].twice);
        }
        seen_users_stats stats = {.size = sizeof stats};
        seen_users_stats_of(u, &stats, NULL);
        if (s == 1) assert_true(stats.checkpoints > 3);
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    }
}

/* ---- Processes ---------------------------------------------------------- */

/* In a child, which ends as killed ones do: without closing. */
static void in_child(void (*work)(const char *dir), const char *dir)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        work(dir);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void mark_and_die(const char *dir)
{
    seen_users *u = open_store(
        dir, (seen_users_options){.mode = SEEN_DURABLE, .create = true});
    seen_key a = text("a"), b = text("b");
    if (seen_users_mark(u, text("user"), 1000, seen_keys_of(&a, 1), NULL,
                        NULL) ||
        seen_users_sync(u, NULL) ||
        seen_users_mark(u, text("user"), 1000, seen_keys_of(&b, 1), NULL,
                        NULL) ||
        seen_users_mark(u, text("other"), 1000, seen_keys_of(&b, 1), NULL,
                        NULL))
        _exit(1);
}

/* A process that does as it is told, one letter at a time. */
struct other {
    pid_t pid;
    int tell, hear;
};

static void obey(const char *dir, int hear, int tell)
{
    seen_key a = text("a"), b = text("b"), c = text("c");
    seen_users *u = NULL;
    char order;
    while (read(hear, &order, 1) == 1) {
        const seen_users_options o = {.mode = SEEN_DURABLE, .create = true};
        if (order == 'o' && seen_users_open(&u, dir, &o, NULL, NULL)) _exit(1);
        seen_key *item = order == 'a'   ? &a
                         : order == 'b' ? &b
                         : order == 'c' ? &c
                                        : NULL;
        if (item &&
            seen_users_mark(u, text("user"), 1000, seen_keys_of(item, 1), NULL,
                            NULL) != SEEN_OK)
            _exit(1);
        if (order == 's' && seen_users_sync(u, NULL) != SEEN_OK) _exit(1);
        if (order == 'x' && seen_users_close(u, NULL) != SEEN_OK) _exit(1);
        if (write(tell, &order, 1) != 1) _exit(1);
    }
    _exit(0);
}

static struct other start(const char *dir)
{
    int down[2], up[2];
    assert_true(pipe(down) == 0 && pipe(up) == 0);
    fflush(NULL);
    struct other o = {.pid = fork(), .tell = down[1], .hear = up[0]};
    if (o.pid == 0) {
        close(down[1]);
        close(up[0]);
        obey(dir, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    return o;
}

static void order(struct other *o, const char *orders)
{
    char done;
    for (; *orders; orders++) {
        assert_int_equal(write(o->tell, orders, 1), 1);
        assert_int_equal(read(o->hear, &done, 1), 1);
        assert_int_equal(done, *orders);
    }
}

static void finish_off(struct other *o)
{
    kill(o->pid, SIGKILL);
    waitpid(o->pid, NULL, 0);
    close(o->tell);
    close(o->hear);
}

/* With a writer at work, readers see its last checkpoint; after it has died,
 * everything, also those who were there before. */
static void readers_of_a_writer_that_dies(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    test_clock_install();
    /* Before this process opens the store: children would inherit that. */
    struct other writer = start(dir), next = start(dir);
    order(&writer, "oasb");
    seen_users *u = open_store(dir, (seen_users_options){.tail = true});
    assert_true(shown(u, "user", "b"));
    seen_users_close(u, NULL);
    u = open_store(dir, (seen_users_options){0});
    assert_true(shown(u, "user", "a"));
    for (int i = 0; i < 3; i++, test_pass(1000)) /* it does, as it should */
        assert_false(shown(u, "user", "b"));
    order(&writer, "s");
    assert_true(shown(u, "user", "b"));
    order(&writer, "c");
    test_pass(1000);
    assert_false(shown(u, "user", "c"));
    finish_off(&writer);
    assert_false(shown(u, "user", "c")); /* at most a second ago */
    test_pass(1000);
    assert_true(shown(u, "user", "c"));

    /* The next writer: its checkpoints are followed again. */
    order(&next, "os");
    test_pass(1000);
    assert_true(shown(u, "user", "c"));
    order(&next, "x");
    test_pass(1000);
    assert_true(shown(u, "user", "c"));
    finish_off(&next);
    seen_users_close(u, NULL);
    test_clock_remove();
}

/* Whoever asks whether there is a writer does not keep one out. */
static void read_again_and_again(const char *dir)
{
    seen_users *u;
    for (int i = 0; i < 300; i++) {
        if (seen_users_open(&u, dir, NULL, NULL, NULL)) _exit(1);
        seen_users_close(u, NULL);
    }
}

static void write_and_die(const char *dir)
{
    seen_users *u;
    seen_users_options o = {.mode = SEEN_WRITE};
    if (seen_users_open(&u, dir, &o, NULL, NULL)) _exit(1);
}

static void readers_keep_no_writer_out(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    in_child(mark_and_die, dir);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        read_again_and_again(dir);
        _exit(0);
    }
    int status = 1;
    do
        in_child(write_and_die, dir);
    while (waitpid(child, &status, WNOHANG) == 0);
    assert_int_equal(status, 0);
}

/* Nor one that has read a dead writer's journal, and may not write lock.mdb. */
static const struct seen_os *real_os;

static int open_but_locks(const char *path, int flags, mode_t mode)
{
    size_t len = strlen(path), end = strlen("/lock.mdb");
    if (len < end || strcmp(path + len - end, "/lock.mdb") != 0)
        return real_os->open(path, flags, mode);
    errno = EACCES;
    return -1;
}

static void mark_as_another_user(const char *dir)
{
    seen_os = real_os;
    seen_users *u;
    seen_key c = text("c");
    seen_users_options o = {.mode = SEEN_WRITE};
    if (seen_users_open(&u, dir, &o, NULL, NULL) ||
        seen_users_mark(u, text("user"), 1000, seen_keys_of(&c, 1), NULL, NULL))
        _exit(1);
}

static void readers_without_locks_keep_no_writer_out(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    test_clock_install();
    in_child(mark_and_die, dir);
    static struct seen_os ours;
    ours = *seen_os;
    real_os = seen_os;
    ours.open = open_but_locks;
    seen_os = &ours;
    seen_users *u = open_store(dir, (seen_users_options){0});
    assert_true(shown(u, "user", "b"));
    in_child(mark_as_another_user, dir);
    test_pass(1000);
    assert_true(shown(u, "user", "b"));
    assert_true(shown(u, "user", "c"));
    seen_users_close(u, NULL);
    seen_os = real_os;
    test_clock_remove();
}

static long size_of_data(const char *dir)
{
    char path[600];
    struct stat st;
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    assert_int_equal(stat(path, &st), 0);
    return (long)st.st_size;
}

/* What a reader has looked at can be used again, while it does nothing. */
static void readers_with_a_tail_let_pages_go(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    struct other writer = start(dir);
    order(&writer, "oasb");
    seen_users *u = open_store(dir, (seen_users_options){.tail = true});
    assert_true(shown(u, "user", "b"));
    for (int i = 0; i < 10; i++)
        order(&writer, "as");
    long before = size_of_data(dir);
    for (int i = 0; i < 100; i++)
        order(&writer, "as");
    assert_true(size_of_data(dir) <= before + 20 * 4096);
    assert_true(shown(u, "user", "a") && shown(u, "user", "b"));
    assert_false(shown(u, "user", "c"));
    order(&writer, "cs");
    assert_true(shown(u, "user", "c")); /* a later checkpoint is followed */
    order(&writer, "x");
    assert_true(shown(u, "user", "a") && shown(u, "user", "c"));
    seen_users_close(u, NULL);
    finish_off(&writer);
}

static void readers_see_the_checkpoint_and_the_tail(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    in_child(mark_and_die, dir);
    seen_users *u = open_store(dir, (seen_users_options){0});
    assert_true(shown(u, "user", "a"));
    assert_true(shown(u, "user", "b")); /* there is no writer any more */
    assert_true(shown(u, "other", "b"));
    seen_users_stats stats = {.size = sizeof stats};
    assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    seen_key a = text("a");
    assert_int_equal(
        seen_users_mark(u, text("user"), 1000, seen_keys_of(&a, 1), NULL, NULL),
        SEEN_UNSUPPORTED);
    seen_users_close(u, NULL);

    u = open_store(dir, (seen_users_options){.tail = true});
    assert_true(shown(u, "user", "a"));
    assert_true(shown(u, "user", "b"));
    assert_true(shown(u, "other", "b"));
    assert_false(shown(u, "other", "a"));
    seen_users_close(u, NULL);

    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    assert_int_equal(seen_users_open(&u, dir,
                                     &(seen_users_options){.mode = SEEN_WRITE},
                                     &outcome, &error),
                     SEEN_OK);
    assert_true(outcome.recovered);
    assert_int_equal(outcome.recovered_keys, 2);
    assert_true(shown(u, "user", "b"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    u = open_store(dir, (seen_users_options){0});
    assert_true(shown(u, "other", "b"));
    seen_users_close(u, NULL);
}

/* Writers that die do not leave more and more behind them: what was recovered is
 * in the backend soon, without any change. */
static void what_was_recovered_is_written(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    seen_users_stats stats = {.size = sizeof stats};
    in_child(mark_and_die, dir);
    seen_users *u = open_store(dir, (seen_users_options){.mode = SEEN_WRITE});
    while (stats.checkpoints == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    }
    assert_int_equal(stats.users, 2);
    assert_int_equal(stats.changed, 0);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

static void write_elsewhere(const char *dir)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (seen_users_open(&u, dir, &(seen_users_options){.mode = SEEN_WRITE},
                        &outcome, &error) != SEEN_BUSY ||
        !strstr(error.text, "another program"))
        _exit(1);
}

static void there_is_one_writer(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    seen_users_options o = {.mode = SEEN_WRITE, .create = true};
    seen_users *u = open_store(dir, o);
    in_child(write_elsewhere, dir);
    assert_int_equal(try_open(dir, o), SEEN_BUSY);
    assert_int_equal(try_open(dir, (seen_users_options){0}), SEEN_BUSY);
    seen_users_close(u, NULL);
    seen_users_close(open_store(dir, o), NULL);
}

static void what_is_no_store_is_called_by_its_name(void **state)
{
    (void)state;
    const char *path = fresh_dir();
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("a program, or notes\n", f);
    fclose(f);
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
        seen_users_options o = {.mode = mode, .create = mode > SEEN_READ};
        assert_int_equal(seen_users_open(&u, path, &o, &outcome, &error),
                         SEEN_INVALID);
        assert_string_equal(error.text,
                            "is a regular file, not a store of users: expected "
                            "a directory");
        assert_string_equal(error.field, "where");
    }
    unlink(path);
    assert_int_equal(seen_users_open(&u, path, NULL, &outcome, &error),
                     SEEN_ABSENT);
}

static void *close_later(void *u)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    return NULL;
}

static void a_second_writer_waits_if_it_is_asked_to(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    seen_users_options o = {.mode = SEEN_WRITE, .create = true};
    seen_users *u = open_store(dir, o);
    o.wait_ms = 10;
    assert_int_equal(try_open(dir, o), SEEN_BUSY);
    pthread_t closer;
    assert_int_equal(pthread_create(&closer, NULL, close_later, u), 0);
    o.wait_ms = 600000;
    seen_users_close(open_store(dir, o), NULL);
    pthread_join(closer, NULL);
}

/* ---- Backup ------------------------------------------------------------- */

static void backups_have_everything(void **state)
{
    (void)state;
    char dir[512], copy[600];
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    snprintf(copy, sizeof copy, "%s.copy", dir);
    in_child(mark_and_die, dir);
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    /* By a reader, of a store that nobody closed. */
    seen_users *u = open_store(dir, (seen_users_options){0});
    assert_int_equal(seen_users_backup(u, copy, &error), SEEN_OK);
    assert_int_equal(seen_users_backup(u, copy, &error), SEEN_INVALID);
    assert_non_null(strstr(error.text, "there already"));
    seen_users_close(u, NULL);
    u = open_store(copy, (seen_users_options){.mode = SEEN_WRITE});
    assert_true(shown(u, "user", "a"));
    assert_true(shown(u, "user", "b"));
    seen_users_close(u, NULL);
    /* By the writer. */
    u = open_store(dir, (seen_users_options){.mode = SEEN_WRITE});
    seen_key c = text("c");
    seen_users_mark(u, text("third"), 1000, seen_keys_of(&c, 1), NULL, NULL);
    snprintf(copy, sizeof copy, "%s.second", dir);
    assert_int_equal(seen_users_backup(u, copy, &error), SEEN_OK);
    seen_users_close(u, NULL);
    u = open_store(copy, (seen_users_options){.tail = true});
    assert_true(shown(u, "third", "c"));
    assert_true(shown(u, "other", "b"));
    seen_users_close(u, NULL);

    u = open_store("mem:", (seen_users_options){.mode = SEEN_WRITE});
    assert_int_equal(seen_users_backup(u, copy, &error), SEEN_UNSUPPORTED);
    seen_users_close(u, NULL);
}

/* A journal without its store is not to be thrown away. */
static void a_store_that_lost_its_file_is_not_founded_anew(void **state)
{
    (void)state;
    char dir[512], file[600];
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    in_child(mark_and_die, dir);
    snprintf(file, sizeof file, "%s/data.mdb", dir);
    unlink(file);
    seen_users_options o = {.mode = SEEN_WRITE, .create = true};
    assert_int_equal(try_open(dir, o), SEEN_CORRUPT);
    assert_int_equal(try_open(dir, o), SEEN_CORRUPT);
}

/* ---- Made in part ------------------------------------------------------- */

static void put_file(const char *dir, const char *name, const void *bytes,
                     size_t len)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (len) assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

#define JOURNAL "seen.journal-0000000000000001"

static void left_lock(const char *dir)
{
    put_file(dir, "seen.lock", "", 0);
}

static void left_half_a_file_beside(const char *dir)
{
    left_lock(dir);
    put_file(dir, "data.mdb.seen-new", "half", 4);
}

/* An environment in which no store has said anything about itself. */
static void left_data_without_meta(const char *dir)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 2), 0);
    assert_int_equal(mdb_env_open(env, dir, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, "users", MDB_CREATE, &dbi), 0);
    assert_int_equal(mdb_dbi_open(txn, "seen", MDB_CREATE, &dbi), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void left_empty_journal(const char *dir)
{
    left_lock(dir);
    put_file(dir, JOURNAL, "", 0);
}

/* A header, whole or torn, and space that was claimed. */
static void left_blank_journal(const char *dir)
{
    static const uint8_t bytes[70000] = {0x89, 'S', 'E', 'J', 'L'};
    left_lock(dir);
    put_file(dir, JOURNAL, bytes, sizeof bytes);
}

static void left_nothing(const char *dir)
{
    (void)dir;
}

/* Whatever a power cut leaves of a store that was being made: it is not there,
 * and can be made. */
static void a_store_that_was_never_finished_can_be_made(void **state)
{
    (void)state;
    void (*left[])(const char *dir) = {
        left_nothing,           left_lock,          left_half_a_file_beside,
        left_data_without_meta, left_empty_journal, left_blank_journal,
    };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        const char *dir = fresh_dir();
        seen_users *u;
        seen_users_options writes = {.mode = SEEN_WRITE};
        assert_int_equal(mkdir(dir, 0700), 0);
        left[i](dir);
        assert_int_equal(seen_users_open(&u, dir, NULL, NULL, NULL),
                         SEEN_ABSENT);
        assert_int_equal(seen_users_open(&u, dir, &writes, NULL, NULL),
                         SEEN_ABSENT);
        seen_key a = text("a");
        writes.create = true;
        u = open_store(dir, writes);
        assert_false(shown(u, "user", "a"));
        assert_int_equal(seen_users_mark(u, text("user"), 1000,
                                         seen_keys_of(&a, 1), NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
        u = open_store(dir, (seen_users_options){0});
        assert_true(shown(u, "user", "a"));
        seen_users_close(u, NULL);
        char beside[600];
        snprintf(beside, sizeof beside, "%s/data.mdb.seen-new", dir);
        assert_int_equal(access(beside, F_OK), -1);
    }
}

/* ---- Names -------------------------------------------------------------- */

/* The bytes of a frame that says: frames up to 8 had been on disk. */
static void nasty_name(uint8_t name[40])
{
    memset(name, 0, 40);
    seen_put_le64(name + 8, 9);
    seen_put_le64(name + 16, 1); /* what the first writer's epoch is */
    seen_put_le64(name + 24, 8);
    seen_put_le32(name + 32, 1);
    seen_put_le32(name + 4, seen_crc32c(seen_crc32c(0, name, 4), name + 8, 32));
}

static void mark_a_nasty_name(const char *dir)
{
    uint8_t name[40];
    seen_key a = text("a");
    nasty_name(name);
    seen_users *u = open_store(
        dir, (seen_users_options){.mode = SEEN_DURABLE, .create = true});
    if (seen_users_mark(u, text("user"), 1000, seen_keys_of(&a, 1), NULL,
                        NULL) ||
        seen_users_mark(u, (seen_key){name, sizeof name}, 1000,
                        seen_keys_of(&a, 1), NULL, NULL))
        _exit(1);
}

/* The power failed before the frame with that name was whole. */
static void tear_nasty_frame(const char *dir)
{
    static uint8_t bytes[1 << 21];
    uint8_t name[40];
    char path[600];
    snprintf(path, sizeof path, "%s/seen.journal-%016x", dir, 1);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    size_t len = fread(bytes, 1, sizeof bytes, f), at = 0;
    nasty_name(name);
    while (at + 40 < len && memcmp(bytes + at, name, 40) != 0)
        at += 8;
    assert_true(at + 40 < len);
    memset(bytes, 0, 40);
    fseek(f, (long)at - 56, SEEK_SET); /* heads of the frame and the change */
    assert_int_equal(fwrite(bytes, 1, 40, f), 40);
    fclose(f);
}

/* Whoever chooses names cannot make a store refuse to open. */
static void a_name_cannot_pass_for_a_frame(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    in_child(mark_a_nasty_name, dir);
    tear_nasty_frame(dir);
    seen_users *u = open_store(dir, (seen_users_options){.tail = true});
    assert_true(shown(u, "user", "a"));
    seen_users_close(u, NULL);
    u = open_store(dir, (seen_users_options){.mode = SEEN_WRITE});
    assert_true(shown(u, "user", "a"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

/* ---- Policy and secret -------------------------------------------------- */

static void policies_change_and_secrets_do_not(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    seen_policy first = {.items = 5, .generations = 2, .ttl_ms = 1000};
    seen_policy second = {.items = 7, .generations = 3, .ttl_ms = 5000};
    seen_users_options o = {.mode = SEEN_WRITE,
                            .create = true,
                            .policy = &first,
                            .secret = test_secret};
    seen_users *u = open_store(dir, o);
    struct test_batch b = test_batch_new(0, 4);
    seen_users_mark(u, text("user"), 1000, seen_keys_of(b.keys, 4), NULL, NULL);
    seen_users_close(u, NULL);

    uint8_t wrong[16] = {1};
    o.secret = wrong;
    assert_int_equal(try_open(dir, o), SEEN_MISMATCH);
    o.secret = NULL;
    o.policy = &second;
    u = open_store(dir, o);
    seen_users_mark(u, text("user"), 1000, seen_keys_of(b.keys, 4), NULL, NULL);
    seen_users_stats stats = {.size = sizeof stats};
    seen_users_stats_of(u, &stats, NULL);
    assert_int_equal(stats.policy.items, 7);
    seen_users_close(u, NULL);
    o.policy = NULL;
    u = open_store(dir, o);
    seen_users_stats_of(u, &stats, NULL);
    assert_int_equal(stats.policy.items, 7);
    assert_int_equal(stats.policy.ttl_ms, 5000);
    seen_exposure_info info = {.size = sizeof info};
    /* Nothing was lost; the old generation is of another universe. */
    assert_int_equal(seen_users_info_of(u, text("user"), 1000, &info, NULL),
                     SEEN_OK);
    assert_int_equal(info.generations, 2);
    assert_int_equal(info.items, 8);
    seen_users_close(u, NULL);
    test_batch_free(&b);
}

/* Nothing behind the caller's size is read or written, and nothing at all for a
 * user who is not there. */
static void an_older_program_learns_of_a_user(void **state)
{
    (void)state;
    seen_users *u = open_store(
        fresh_dir(), (seen_users_options){.mode = SEEN_WRITE, .create = true});
    seen_key item = text("item");
    seen_users_mark(u, text("user"), 1, seen_keys_of(&item, 1), NULL, NULL);
    seen_exposure_info whole = {.size = sizeof whole}, old = {.size = 16};
    assert_int_equal(seen_users_info_of(u, text("user"), 1, &whole, NULL),
                     SEEN_OK);
    assert_int_equal(seen_users_info_of(u, text("user"), 1, &old, NULL),
                     SEEN_OK);
    assert_memory_equal((char *)&old + 8, (char *)&whole + 8, 8);
    seen_exposure_info before = old = whole;
    assert_int_equal(seen_users_info_of(u, text("nobody"), 1, &old, NULL),
                     SEEN_ABSENT);
    assert_memory_equal(&old, &before, sizeof old);
    seen_error e;
    old.size = 8;
    assert_int_equal(seen_users_info_of(u, text("user"), 1, &old, &e),
                     SEEN_INVALID);
    assert_string_equal(e.field, "info.size");
    seen_users_close(u, NULL);
}

/* Marks of two policies in one journal that nobody closed. */
static void two_policies(const char *dir)
{
    seen_policy p = {.items = 5, .generations = 2, .ttl_ms = 1000};
    seen_users_options o = {.mode = SEEN_WRITE, .create = true, .policy = &p};
    seen_key a[] = {text("a"), text("b"), text("c")};
    seen_users *u = open_store(dir, o);
    seen_users_mark(u, text("user"), 1000, seen_keys_of(a, 3), NULL, NULL);
}

static void another_policy(const char *dir)
{
    seen_policy p = {.items = 2, .generations = 9, .ttl_ms = 9000};
    seen_users_options o = {.mode = SEEN_WRITE, .policy = &p};
    seen_key d[] = {text("d"), text("e"), text("f")};
    seen_users *u = open_store(dir, o);
    seen_users_mark(u, text("user"), 1000, seen_keys_of(d, 3), NULL, NULL);
}

static void a_replay_follows_the_policies_of_their_time(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    in_child(two_policies, dir);
    in_child(another_policy, dir);
    seen_users_options ways[] = {{.tail = true}, {.mode = SEEN_WRITE}};
    for (size_t i = 0; i < 2; i++) {
        seen_users *u = open_store(dir, ways[i]);
        seen_exposure_info info = {.size = sizeof info};
        assert_int_equal(seen_users_info_of(u, text("user"), 1000, &info, NULL),
                         SEEN_OK);
        assert_int_equal(info.generations, 3);
        assert_int_equal(info.generation[2].items, 3);
        assert_int_equal(info.generation[1].items, 2);
        assert_int_equal(info.generation[0].items, 1);
        seen_users_close(u, NULL);
    }
}

/* ---- Errors ------------------------------------------------------------- */

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    seen_users_options o = {.mode = SEEN_WRITE};
    assert_int_equal(try_open(fresh_dir(), o), SEEN_ABSENT);
    assert_int_equal(try_open(fresh_dir(), (seen_users_options){0}),
                     SEEN_ABSENT);
    o.create = true;
    assert_int_equal(try_open("nosuch:thing", o), SEEN_UNSUPPORTED);
    assert_int_equal(try_open("mem:thing", o), SEEN_INVALID);
    assert_int_equal(try_open("lmdb:", o), SEEN_INVALID);
    assert_int_equal(try_open("/dev/null", o), SEEN_INVALID);
    assert_int_equal(try_open("/nonexistent/a", o), SEEN_IO);
    o.policy = &(seen_policy){.generations = 65};
    assert_int_equal(try_open("mem:", o), SEEN_INVALID);
    assert_int_equal(try_open("mem:", (seen_users_options){.create = true}),
                     SEEN_INVALID);

    seen_users *u =
        open_store("mem:", (seen_users_options){.mode = SEEN_WRITE});
    seen_key x = text("x");
    char long_name[SEEN_USER_MAX + 2] = {0};
    assert_int_equal(seen_users_mark(u, (seen_key){long_name, SEEN_USER_MAX}, 1,
                                     seen_keys_of(&x, 1), NULL, NULL),
                     SEEN_OK);
    assert_int_equal(seen_users_mark(u,
                                     (seen_key){long_name, SEEN_USER_MAX + 1},
                                     1, seen_keys_of(&x, 1), NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(
        seen_users_mark(u, text(""), 1, seen_keys_of(&x, 1), NULL, NULL),
        SEEN_INVALID);
    /* One bad request, and none is carried out, nor said to be. */
    seen_users_request q[] = {
        {.user = text("good"), .items = seen_keys_of(&x, 1)},
        {.user = text(""), .items = seen_keys_of(&x, 1)}};
    assert_int_equal(seen_users_mark_many(u, 1, q, 2, NULL), SEEN_INVALID);
    assert_int_equal(q[0].status, SEEN_INVALID);
    assert_int_equal(q[1].status, SEEN_INVALID);
    seen_exposure_info info = {.size = sizeof info};
    assert_int_equal(seen_users_info_of(u, text("good"), 1, &info, NULL),
                     SEEN_ABSENT);
    seen_users_close(u, NULL);
}

/* What is wrong: the sentence, and the field at fault. */
static void expect_error(const seen_error *e, seen_status status,
                         const char *field, const char *words)
{
    assert_int_equal(e->status, status);
    if (field)
        assert_string_equal(e->field, field);
    else
        assert_null(e->field);
    if (!strstr(e->text, words)) fail_msg("%s: not in: %s", words, e->text);
}

static void errors_name_the_field_at_fault(void **state)
{
    (void)state;
    const seen_policy p = {.items = 2, .generations = 2};
    seen_error e;
    seen_users *u;
    const seen_users_options tail = {.mode = SEEN_WRITE, .tail = true},
                             later = {.reserved = {0, 0, 7}},
                             deep = {.policy = &(seen_policy){.items = ~0u}};
    seen_users_open(&u, "mem:", &tail, NULL, &e);
    expect_error(&e, SEEN_INVALID, "options.tail", "requires SEEN_READ");
    seen_users_open(&u, "mem:", &later, NULL, &e);
    expect_error(&e, SEEN_INVALID, "options.reserved", "reserved[2] is 7");
    seen_users_open(&u, "mem:", &deep, NULL, &e);
    expect_error(&e, SEEN_INVALID, "policy.items", "items");
    seen_users_open(&u, "ftp:x", NULL, NULL, &e);
    expect_error(&e, SEEN_UNSUPPORTED, "where", "lmdb:DIR or mem:");

    u = open_store("mem:",
                   (seen_users_options){.mode = SEEN_WRITE, .policy = &p});
    seen_key x[] = {text("a"), text("b"), text("c"), text("d"), text("e")};
    size_t n = 7;
    bool there;
    test_users_take(u, text("ann"), 1, x, 5, 5, &n, &e);
    expect_error(&e, SEEN_INVALID, "count", "count 5: the policy holds 4 ");
    assert_int_equal(n, 7);
    /* Not of the calls behind it. */
    assert_int_equal(test_users_take(u, text("ann"), 1, x, 5, 4, &n, &e),
                     SEEN_OK);
    expect_error(&e, SEEN_OK, NULL, "");
    assert_string_equal(e.text, "");
    seen_users_mark(u, text(""), 1, seen_keys_of(x, 1), NULL, &e);
    expect_error(&e, SEEN_INVALID, "user", "user of 0 bytes: expected 1 to");
    seen_users_maybe_many(u, text("ann"), 1, seen_keys_of(NULL, 1), &there, &e);
    expect_error(&e, SEEN_INVALID, "items", "not NULL");
    seen_users_maybe_many(NULL, text("ann"), 1, seen_keys_of(x, 1), &there, &e);
    expect_error(&e, SEEN_INVALID, "u", "NULL");
    seen_users_record(u, text("ann"), NULL, 0, &n, &e);
    expect_error(&e, SEEN_SHORT, "cap", "cap 0: the record has ");
    seen_users_record(u, text("eve"), NULL, 0, &n, &e);
    expect_error(&e, SEEN_ABSENT, "user", "has no unexpired marks");
    seen_users_info_of(u, text("ann"), 1, &(seen_exposure_info){0}, &e);
    expect_error(&e, SEEN_INVALID, "info.size", "info.size 0: expected sizeof");
    seen_users_close(u, &e);
    expect_error(&e, SEEN_OK, NULL, "");
}

/* A store that does not open says what is wrong with which argument. */
static void failed_openings_say_why(void **state)
{
    (void)state;
    char dir[4200];
    seen_error e;
    seen_users *u = NULL, *other = NULL;
    const seen_users_options read = {0}, write = {.mode = SEEN_WRITE},
                             create = {.mode = SEEN_WRITE, .create = true},
                             secret = {.secret = (const uint8_t[16]){1}};
    const char *make = "expected a store of users; to make one, set "
                       "options.create, with SEEN_WRITE or SEEN_DURABLE";
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    for (int i = 0; i < 2; i++) {
        const seen_users_options *o = i ? &write : &read;
        unlink(dir);
        rmdir(dir);
        assert_int_equal(seen_users_open(&u, dir, o, NULL, &e), SEEN_ABSENT);
        expect_error(&e, SEEN_ABSENT, "where", "no such directory: expected a");
        expect_error(&e, SEEN_ABSENT, "where", make);
        assert_int_equal(mkdir(dir, 0700), 0);
        assert_int_equal(seen_users_open(&u, dir, o, NULL, &e), SEEN_ABSENT);
        expect_error(&e, SEEN_ABSENT, "where", "directory without data.mdb");
        expect_error(&e, SEEN_ABSENT, "where", make);
    }
    assert_int_equal(seen_users_open(&u, dir, &create, NULL, &e), SEEN_OK);
    expect_error(&e, SEEN_OK, NULL, "");
    assert_int_equal(seen_users_open(&other, dir, &write, NULL, &e), SEEN_BUSY);
    expect_error(&e, SEEN_BUSY, "where", "another program is changing it");
    assert_int_equal(seen_users_open(&other, dir, &read, NULL, &e), SEEN_BUSY);
    expect_error(&e, SEEN_BUSY, "where", "this process has it open");
    assert_int_equal(seen_users_backup(u, dir, &e), SEEN_INVALID);
    expect_error(&e, SEEN_INVALID, "dir", "is there already");
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    seen_users_open(&u, dir, &secret, NULL, &e);
    expect_error(&e, SEEN_MISMATCH, "options.secret", "not the secret of this");
    seen_users_open(&u, "lmdb:", &read, NULL, &e);
    expect_error(&e, SEEN_INVALID, "where", "expected DIR or lmdb:DIR");
    seen_users_open(&u, "mem:x", &write, NULL, &e);
    expect_error(&e, SEEN_INVALID, "where", "expected mem: alone");
    seen_users_open(&u, "/no/such/place", &create, NULL, &e);
    expect_error(&e, SEEN_IO, "where", "make the directory: No such file");
    assert_int_equal(e.os_errno, ENOENT);
    seen_users_open(&u, "redis://localhost/", &read, NULL, &e);
    expect_error(&e, SEEN_UNSUPPORTED, "where", "seen_remote_users() opens it");
    memset(dir, 'x', sizeof dir - 1);
    dir[sizeof dir - 1] = '\0';
    seen_users_open(&u, dir, &create, NULL, &e);
    expect_error(&e, SEEN_IO, "where", "File name too long");
    assert_null(other);
}

/* Nothing failed, but the first of these marks are gone. */
static void marks_beyond_the_policy_leave_a_warning(void **state)
{
    (void)state;
    const seen_policy p = {.items = 2, .generations = 2};
    const char *const places[] = {"mem:", fresh_dir()};
    seen_key x[] = {text("a"), text("b"), text("c"), text("d"), text("e")};
    for (int i = 0; i < 2; i++) {
        seen_error e;
        bool shown[5];
        seen_users *u = open_store(
            places[i], (seen_users_options){
                           .mode = SEEN_WRITE, .create = true, .policy = &p});
        assert_int_equal(
            seen_users_mark(u, text("ann"), 1, seen_keys_of(x, 4), NULL, &e),
            SEEN_OK);
        expect_error(&e, SEEN_OK, NULL, "");
        assert_string_equal(e.text, "");
        assert_int_equal(
            seen_users_mark(u, text("bob"), 1, seen_keys_of(x, 5), NULL, &e),
            SEEN_OK);
        expect_error(&e, SEEN_OK, "items",
                     "items: 5, and the policy holds 4 of a user");
        assert_int_equal(seen_users_maybe_many(u, text("bob"), 1,
                                               seen_keys_of(x, 5), shown, &e),
                         SEEN_OK);
        assert_false(shown[0]);
        assert_true(shown[4]);
        assert_string_equal(e.text, "");
        seen_users_request r[] = {
            {.user = text("cid"), .items = seen_keys_of(x, 4)},
            {.user = text("dan"), .items = seen_keys_of(x, 5)}};
        assert_int_equal(seen_users_mark_many(u, 1, r, 2, &e), SEEN_OK);
        expect_error(&e, SEEN_OK, "items",
                     "request 1, user \"dan\": items: 5, and the policy");
        assert_int_equal(seen_users_mark_many(u, 1, r, 2, NULL), SEEN_OK);
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    }
}

/* One list of items in every layout: the same answers, indices and record. */
static void layouts_of_items_agree(void **state)
{
    (void)state;
    enum {
        N = 300,
        STEP = 11
    };
    static uint8_t rows[N * STEP + 1];
    static uint64_t ids[N];
    static uint32_t ends[N + 1];
    static uint64_t far[N + 1];
    static seen_key pairs[N];
    for (size_t i = 0; i < N; i++) {
        ids[i] = i / 2 * 7919; /* each comes twice */
        seen_put_le64(rows + i * STEP + 1, ids[i]);
        pairs[i] = (seen_key){rows + i * STEP + 1, 8};
    }
    static uint8_t bytes[N * 8];
    for (size_t i = 0; i < N; i++) {
        memcpy(bytes + i * 8, pairs[i].data, 8);
        ends[i + 1] = (uint32_t)(i + 1) * 8;
        far[i + 1] = ends[i + 1];
    }
    const seen_keys all[] = {seen_keys_of(pairs, N),
                             seen_keys_rows(rows + 1, N, 8, STEP),
                             seen_keys_offsets32(bytes, sizeof bytes, ends, N),
                             seen_keys_offsets64(bytes, sizeof bytes, far, N),
                             seen_keys_u64(ids, N)};
    seen_users *u =
        open_store("mem:", (seen_users_options){.mode = SEEN_WRITE,
                                                .secret = test_secret});
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char name = (char)('a' + i);
        const seen_key who = {&name, 1};
        size_t at[N], n;
        bool fresh[N], seen[N];
        assert_int_equal(seen_users_take(u, who, 1, all[i], 20, at, &n, NULL),
                         SEEN_OK);
        assert_int_equal(n, 20);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(at[k], 2 * k);
        assert_int_equal(seen_users_fresh(u, who, 1, all[i], at, &n, NULL),
                         SEEN_OK);
        assert_int_equal(n, N / 2 - 20);
        assert_int_equal(at[0], 40);
        assert_int_equal(seen_users_mark(u, who, 1, all[i], fresh, NULL),
                         SEEN_OK);
        assert_int_equal(
            seen_users_maybe_many(u, who, 1, all[N % 5], seen, NULL), SEEN_OK);
        for (size_t k = 0; k < N; k++) {
            assert_int_equal(fresh[k], k >= 40 && k % 2 == 0);
            assert_true(seen[k]);
        }
        uint8_t first[4096], mine[4096];
        size_t len, my_len;
        assert_int_equal(seen_users_record(u, (seen_key){"a", 1}, first,
                                           sizeof first, &len, NULL),
                         SEEN_OK);
        assert_int_equal(
            seen_users_record(u, who, mine, sizeof mine, &my_len, NULL),
            SEEN_OK);
        assert_int_equal(len, my_len);
        assert_memory_equal(first, mine, len);
        assert_int_equal(seen_users_forget(u, who, 1, all[i], NULL), SEEN_OK);
        assert_int_equal(seen_users_maybe_many(u, who, 1, all[i], seen, NULL),
                         SEEN_OK);
        for (size_t k = 0; k < N; k++)
            assert_false(seen[k]);
        if (i == 0) /* to compare with */
            assert_int_equal(
                seen_users_take(u, who, 1, all[i], 20, at, &n, NULL), SEEN_OK);
        if (i == 0)
            assert_int_equal(seen_users_mark(u, who, 1, all[i], fresh, NULL),
                             SEEN_OK);
    }
    seen_users_close(u, NULL);
}

/* Bad descriptions: an error, and nothing is changed. */
static void bad_items_change_nothing(void **state)
{
    (void)state;
    const uint64_t id = 7;
    const seen_hash hash = {1, 2};
    const uint32_t back[] = {0, 2, 1}, beyond[] = {0, 9};
    seen_keys odd = seen_keys_u64(&id, 1);
    odd.reserved[1] = 1;
    const seen_keys bad[] = {
        seen_keys_of(NULL, 1),
        seen_keys_rows(&id, 2, 4, 0),
        seen_keys_offsets32(&id, 8, back, 2),
        seen_keys_offsets32(&id, 8, beyond, 1),
        seen_keys_in((seen_layout)99, &id, 1),
        odd,
        seen_keys_hashes(&hash, 1),
    };
    seen_users *u =
        open_store("mem:", (seen_users_options){.mode = SEEN_WRITE});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const seen_status expected = i == 6 ? SEEN_UNSUPPORTED : SEEN_INVALID;
        size_t at[2], n = 77;
        bool yes[2];
        seen_error e;
        seen_key who = text("ann");
        assert_int_equal(seen_users_mark(u, who, 1, bad[i], NULL, &e),
                         expected);
        expect_error(&e, expected, "items", "items ");
        assert_int_equal(seen_users_take(u, who, 1, bad[i], 1, at, &n, &e),
                         expected);
        assert_int_equal(seen_users_fresh(u, who, 1, bad[i], at, &n, &e),
                         expected);
        assert_int_equal(seen_users_maybe_many(u, who, 1, bad[i], yes, &e),
                         expected);
        assert_int_equal(seen_users_forget(u, who, 1, bad[i], &e), expected);
        assert_int_equal(n, 77);
        assert_int_equal(seen_users_record(u, who, NULL, 0, &n, &e),
                         SEEN_ABSENT);
        n = 77;
    }
    /* A struct of another size: what fits is filled. */
    struct {
        size_t size;
        seen_policy policy;
        uint64_t users;
    } old = {.size = sizeof old};
    seen_error e;
    assert_int_equal(
        seen_users_stats_of(u, (seen_users_stats *)(void *)&old, &e), SEEN_OK);
    assert_int_equal(old.policy.items, 1000);
    seen_users_stats none = {0};
    assert_int_equal(seen_users_stats_of(u, &none, &e), SEEN_INVALID);
    expect_error(&e, SEEN_INVALID, "stats.size", "stats.size 0: ");
    seen_users_close(u, NULL);
}

#define FAILING 8

static seen_users *shared_store;

/* Each thread fails in its own way and must read its own words. */
static void *fail_and_read(void *arg)
{
    const size_t me = (size_t)(uintptr_t)arg;
    char name[SEEN_USER_MAX + 1 + FAILING] = {0}, words[64];
    seen_key x = text("x");
    const seen_key user = {name, SEEN_USER_MAX + 1 + me};
    snprintf(words, sizeof words, "user of %zu bytes: ", user.len);
    for (int i = 0; i < 2000; i++) {
        seen_error e;
        seen_status status =
            i % 2 ? seen_users_mark(shared_store, user, 1, seen_keys_of(&x, 1),
                                    NULL, &e)
                  : seen_users_forget(shared_store, user, 1,
                                      seen_keys_of(&x, 1), &e);
        if (status != SEEN_INVALID || e.status != status ||
            strncmp(e.text, words, strlen(words)) != 0)
            return arg;
    }
    return NULL;
}

static void threads_read_their_own_errors(void **state)
{
    (void)state;
    pthread_t threads[FAILING];
    shared_store = open_store("mem:", (seen_users_options){.mode = SEEN_WRITE});
    for (size_t i = 0; i < FAILING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_and_read,
                                        (void *)(uintptr_t)i),
                         0);
    void *failed = NULL;
    for (size_t i = 0; i < FAILING; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result) failed = shared_store;
    }
    assert_null(failed);
    seen_users_close(shared_store, NULL);
}

/* Of many requests, the first that is wrong, whatever its name is made of. */
static void errors_name_the_request(void **state)
{
    (void)state;
    seen_error e;
    seen_key x = text("x");
    char long_name[SEEN_USER_MAX + 1];
    memset(long_name, 'u', sizeof long_name);
    seen_users *u =
        open_store("mem:", (seen_users_options){.mode = SEEN_WRITE});
    seen_users_request q[] = {
        {.user = text("good"), .items = seen_keys_of(&x, 1)},
        {.user = text("a\"\n\x80"), .items = seen_keys_of(NULL, 1)},
        {.user = {long_name, sizeof long_name}, .items = seen_keys_of(&x, 1)}};
    seen_users_mark_many(u, 1, q, 3, &e);
    expect_error(&e, SEEN_INVALID, "items",
                 "request 1, user \"a\\x22\\x0a\\x80\": items of layout 0: ");
    seen_users_mark_many(u, 1, q + 2, 1, &e);
    expect_error(&e, SEEN_INVALID, "user", "user of 512 bytes");
    q[1].items = seen_keys_of(&x, 1);
    q[1].reserved[6] = 3;
    seen_users_mark_many(u, 1, q, 2, &e);
    expect_error(&e, SEEN_INVALID, "reserved",
                 "request 1, user \"a\\x22\\x0a\\x80\": reserved[6] is 3");
    q[1].reserved[6] = 0;
    seen_users_take_many(u, 1, q, 2, &e);
    assert_int_equal(e.status, SEEN_OK); /* nothing is wanted */
    q[1].count = 1;
    seen_users_take_many(u, 1, q, 2, &e);
    expect_error(&e, SEEN_INVALID, "taken", "taken is NULL");
    seen_users_mark_many(u, 1, q, 3, &e);
    expect_error(&e, SEEN_INVALID, "user", "request 2, user \"uuuuu");
    expect_error(&e, SEEN_INVALID, "user", "...\": user of 512 bytes");
    seen_users_close(u, NULL);
}

/* Change the record of a user behind the store's back. */
static void damage(const char *dir, const char *user)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi db;
    MDB_val key = {strlen(user), (void *)(uintptr_t)user}, value;
    assert_int_equal(mdb_env_create(&env), 0);
    mdb_env_set_mapsize(env, (size_t)1 << 26);
    mdb_env_set_maxdbs(env, 2);
    assert_int_equal(mdb_env_open(env, dir, 0, 0666), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, "users", 0, &db), 0);
    assert_int_equal(mdb_get(txn, db, &key, &value), 0);
    uint8_t bytes[4096];
    memcpy(bytes, value.mv_data, value.mv_size);
    bytes[value.mv_size - 1] ^= 0xff;
    value.mv_data = bytes;
    assert_int_equal(mdb_put(txn, db, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void damage_is_an_error_for_its_user_alone(void **state)
{
    (void)state;
    const char *dir = fresh_dir();
    seen_users_options o = {.mode = SEEN_WRITE, .create = true};
    seen_users *u = open_store(dir, o);
    struct test_batch b = test_batch_new(0, 30);
    seen_users_mark(u, text("good"), 1000, seen_keys_of(b.keys, 30), NULL,
                    NULL);
    seen_users_mark(u, text("bad"), 1000, seen_keys_of(b.keys, 30), NULL, NULL);
    seen_users_close(u, NULL);
    damage(dir, "bad");
    u = open_store(dir, o);
    size_t taken;
    assert_int_equal(
        test_users_take(u, text("bad"), 1000, b.keys, 30, 1, &taken, NULL),
        SEEN_CORRUPT);
    assert_int_equal(seen_users_mark(u, text("bad"), 1000,
                                     seen_keys_of(b.keys, 30), NULL, NULL),
                     SEEN_OK); /* it did not look */
    for (int i = 0; i < 2; i++) {
        bool answers[30];
        assert_int_equal(seen_users_maybe_many(u, text("good"), 1000,
                                               seen_keys_of(b.keys, 30),
                                               answers, NULL),
                         SEEN_OK);
        assert_int_equal(
            test_users_take(u, text("bad"), 1000, b.keys, 30, 1, &taken, NULL),
            SEEN_CORRUPT);
        assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    }
    bool known;
    assert_int_equal(seen_users_forget_user(u, text("bad"), 1000, &known, NULL),
                     SEEN_OK);
    assert_true(known);
    assert_int_equal(
        test_users_take(u, text("bad"), 1000, b.keys, 30, 1, &taken, NULL),
        SEEN_OK);
    assert_int_equal(taken, 1);
    seen_users_close(u, NULL);
    test_batch_free(&b);
}

/* In LMDB's pages the length of a key stands right before it. */
static void lengthen_name(const char *dir, const char *user, uint16_t len)
{
    char path[600];
    static char bytes[1 << 20];
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f), found = 0;
    for (size_t i = 2; i + strlen(user) <= n; i++) {
        if (memcmp(bytes + i, user, strlen(user)) != 0) continue;
        fseek(f, (long)i - 2, SEEK_SET);
        found += fwrite(&len, sizeof len, 1, f);
    }
    assert_int_equal(fclose(f), 0);
    assert_true(found > 0);
}

static bool skip_one(void *ctx, const seen_users_entry *entry)
{
    (void)ctx, (void)entry;
    return true;
}

/* No user has such a name: whoever walks over it stops. */
static void names_that_are_too_long_are_corruption(void **state)
{
    (void)state;
    static const uint16_t lengths[] = {SEEN_USER_MAX + 1, 2000, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const char *dir = fresh_dir();
        seen_users_options o = {.mode = SEEN_WRITE, .create = true};
        seen_users *u = open_store(dir, o);
        seen_key item = text("item");
        assert_int_equal(seen_users_mark(u, text("somebody"), 1000,
                                         seen_keys_of(&item, 1), NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
        lengthen_name(dir, "somebody", lengths[i]);
        u = open_store(dir, o);
        assert_int_equal(seen_users_each(u, 1000, skip_one, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_users_sweep(u, 1000, NULL, NULL), SEEN_CORRUPT);
        seen_users_close(u, NULL);
    }
}

/* ---- The same ids on every way ------------------------------------------ */

static void all_ways_give_the_same_answers(void **state)
{
    (void)state;
    const char *stores[] = {"mem:", fresh_dir()};
    struct test_batch b = test_batch_new(0, 2000);
    struct test_batch strangers = test_batch_new(TEST_STRANGERS, 20000);
    seen_exposure *x;
    assert_int_equal(seen_exposure_new(&x, NULL, test_secret, NULL, NULL),
                     SEEN_OK);
    seen_record record = {0};
    assert_int_equal(seen_exposure_mark(x, record, 1000,
                                        seen_keys_of(b.keys, 2000), NULL,
                                        &record),
                     SEEN_OK);
    uint8_t *kept = malloc(record.len);
    memcpy(kept, record.data, record.len);
    record.data = kept;
    bool *expected = malloc(20000), *answers = malloc(20000);
    assert_int_equal(
        seen_exposure_maybe_many(x, record, 1000,
                                 seen_keys_of(strangers.keys, 20000), expected),
        SEEN_OK);
    for (size_t s = 0; s < 2; s++) {
        seen_users *u =
            open_store(stores[s], (seen_users_options){.mode = SEEN_WRITE,
                                                       .create = true,
                                                       .secret = test_secret});
        for (size_t i = 0; i < 2000; i += 20)
            seen_users_mark(u, text("user"), 1000, seen_keys_of(b.keys + i, 20),
                            NULL, NULL);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(seen_users_maybe_many(u, text("user"), 1000,
                                                   seen_keys_of(b.keys, 2000),
                                                   answers, NULL),
                             SEEN_OK);
            for (size_t i = 0; i < 2000; i++)
                assert_true(answers[i]);
            assert_int_equal(
                seen_users_maybe_many(u, text("user"), 1000,
                                      seen_keys_of(strangers.keys, 20000),
                                      answers, NULL),
                SEEN_OK);
            assert_memory_equal(answers, expected, 20000);
            seen_users_sync(u, NULL);
        }
        seen_users_close(u, NULL);
    }
    free(kept);
    free(expected);
    free(answers);
    seen_exposure_free(x);
    test_batch_free(&b);
    test_batch_free(&strangers);
}

/* Another directory at its path: a checkpoint makes nothing there, and removes
 * nothing. What was acknowledged is in the directory that was opened. */
static void a_writer_leaves_another_store_at_its_path_alone(void **state)
{
    (void)state;
    char dir[512], moved[600], segment[600];
    snprintf(dir, sizeof dir, "%s", fresh_dir());
    snprintf(moved, sizeof moved, "%s-moved", dir);
    snprintf(segment, sizeof segment, "%s/seen.journal-0000000000000001", dir);
    for (int by_close = 0; by_close < 2; by_close++) {
        seen_error error = {0};
        seen_key item = text(by_close ? "two" : "one");
        seen_users *u = open_store(
            dir, (seen_users_options){.mode = SEEN_DURABLE, .create = true});
        assert_int_equal(seen_users_mark(u, text("alice"), 1000,
                                         seen_keys_of(&item, 1), NULL, NULL),
                         SEEN_OK);
        assert_int_equal(rename(dir, moved), 0);
        assert_int_equal(mkdir(dir, 0700), 0);
        FILE *f = fopen(segment, "w");
        assert_non_null(f);
        fclose(f);
        if (!by_close) {
            assert_int_equal(seen_users_sync(u, &error), SEEN_IO);
            assert_non_null(strstr(error.text, "was moved or replaced"));
        }
        error = (seen_error){0};
        assert_int_equal(seen_users_close(u, &error), SEEN_IO);
        assert_non_null(strstr(error.text, "was moved or replaced"));
        assert_int_equal(unlink(segment), 0);
        assert_int_equal(rmdir(dir), 0); /* there is nothing else */
        assert_int_equal(rename(moved, dir), 0);
        u = open_store(dir, (seen_users_options){.mode = SEEN_READ});
        assert_true(shown(u, "alice", by_close ? "two" : "one"));
        seen_users_close(u, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_agree_with_records),
        cmocka_unit_test(old_users_leave),
        cmocka_unit_test(checkpoints_remove_old_users),
        cmocka_unit_test(a_mark_of_any_time_removes_nobody_else),
        cmocka_unit_test(a_clock_that_leaps_removes_nobody),
        cmocka_unit_test(a_clock_that_stays_is_believed),
        cmocka_unit_test(marks_far_behind_the_clock_remove_nobody),
        cmocka_unit_test(takes_are_one_step),
        cmocka_unit_test(readers_see_the_checkpoint_and_the_tail),
        cmocka_unit_test(readers_of_a_writer_that_dies),
        cmocka_unit_test(readers_keep_no_writer_out),
        cmocka_unit_test(readers_without_locks_keep_no_writer_out),
        cmocka_unit_test(readers_with_a_tail_let_pages_go),
        cmocka_unit_test(what_was_recovered_is_written),
        cmocka_unit_test(there_is_one_writer),
        cmocka_unit_test(what_is_no_store_is_called_by_its_name),
        cmocka_unit_test(a_second_writer_waits_if_it_is_asked_to),
        cmocka_unit_test(backups_have_everything),
        cmocka_unit_test(a_writer_leaves_another_store_at_its_path_alone),
        cmocka_unit_test(a_store_that_lost_its_file_is_not_founded_anew),
        cmocka_unit_test(a_store_that_was_never_finished_can_be_made),
        cmocka_unit_test(a_name_cannot_pass_for_a_frame),
        cmocka_unit_test(policies_change_and_secrets_do_not),
        cmocka_unit_test(an_older_program_learns_of_a_user),
        cmocka_unit_test(a_replay_follows_the_policies_of_their_time),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(errors_name_the_field_at_fault),
        cmocka_unit_test(errors_name_the_request),
        cmocka_unit_test(failed_openings_say_why),
        cmocka_unit_test(marks_beyond_the_policy_leave_a_warning),
        cmocka_unit_test(layouts_of_items_agree),
        cmocka_unit_test(bad_items_change_nothing),
        cmocka_unit_test(threads_read_their_own_errors),
        cmocka_unit_test(damage_is_an_error_for_its_user_alone),
        cmocka_unit_test(names_that_are_too_long_are_corruption),
        cmocka_unit_test(all_ways_give_the_same_answers),
    };
    test_announce("test_users");
    int failed = cmocka_run_group_tests_name("users", tests, NULL, NULL);
    return failed + test_scratch_remove();
}
