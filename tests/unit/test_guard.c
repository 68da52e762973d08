/* test_guard.c - who may pass, and that nobody is turned away who exists. */
#define _POSIX_C_SOURCE 200809L

#include "seen_guard.h"

#include "seen_allowlist.h"

#include "helpers/keys.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITEMS 10000

static seen_guard *new_guard(seen_guard_options o)
{
    seen_guard *g = NULL;
    assert_int_equal(seen_guard_new(&g, &o, NULL), SEEN_OK);
    return g;
}

static seen_filter *filter_of(uint64_t first, uint64_t n, uint32_t flags)
{
    seen_filter *f = test_filter((seen_spec){.items = ITEMS,
                                             .fpp = 0.01,
                                             .flags = flags | SEEN_KEYED,
                                             .secret = test_secret});
    test_add_members(f, first, n);
    return f;
}

static seen_reason ask(seen_guard *g, uint64_t number, uint64_t now)
{
    uint64_t key = test_key(number);
    seen_reason why;
    seen_verdict v = seen_guard_ask(g, &key, sizeof key, now, &why);
    bool reject = why == SEEN_REASON_ABSENT || why == SEEN_REASON_MISSED;
    if (why != SEEN_REASON_LOADING) assert_int_equal(v == SEEN_REJECT, reject);
    return why;
}

static void missed(seen_guard *g, uint64_t number, uint64_t now)
{
    uint64_t key = test_key(number);
    seen_guard_missed(g, &key, sizeof key, now);
}

static seen_status created(seen_guard *g, uint64_t number, uint64_t now)
{
    uint64_t key = test_key(number);
    return seen_guard_created(g, &key, sizeof key, now, NULL);
}

/* A key that is not there and that the filter lets pass. */
static uint64_t false_positive(seen_guard *g, uint64_t from)
{
    for (uint64_t i = from;; i++)
        if (ask(g, TEST_STRANGERS + i, 0) == SEEN_REASON_MAYBE)
            return TEST_STRANGERS + i;
}

static void keys_that_exist_pass_and_others_do_not(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){0});
    assert_int_equal(ask(g, 1, 0), SEEN_REASON_LOADING);
    assert_int_equal(seen_guard_ask(g, "k", 1, 0, NULL), SEEN_ASK);
    assert_int_equal(seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL), SEEN_OK);
    for (uint64_t i = 0; i < ITEMS; i++)
        assert_int_equal(ask(g, i, 0), SEEN_REASON_MAYBE);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        if (ask(g, TEST_STRANGERS + i, 0) != SEEN_REASON_MAYBE) continue;
        wrong++;
        missed(g, TEST_STRANGERS + i, 0);
    }
    assert_between((double)wrong, 700, 1300);
    seen_guard_stats s = {.size = sizeof s};
    seen_guard_stats_of(g, &s);
    assert_int_equal(s.asked, 2 + ITEMS + 100000);
    assert_int_equal(s.open, 2);
    assert_int_equal(s.passed, ITEMS + wrong);
    assert_int_equal(s.absent, 100000 - wrong);
    assert_int_equal(s.missed, wrong);
    assert_close(s.fpp_measured, (double)wrong / 100000, 1e-9);
    assert_close(s.fpp_promised, 0.01, 0.2);
    assert_true(s.has_filter);
    assert_false(s.rebuild);
    seen_guard_free(g);

    g = new_guard((seen_guard_options){.closed = true});
    assert_int_equal(seen_guard_ask(g, "k", 1, 0, NULL), SEEN_REJECT);
    seen_guard_free(g);
}

static void misses_are_remembered_for_a_while(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){.miss_ms = 1000});
    seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL);
    uint64_t key = false_positive(g, 0);
    missed(g, key, 5000);
    assert_int_equal(ask(g, key, 5000), SEEN_REASON_MISSED);
    assert_int_equal(ask(g, key, 5999), SEEN_REASON_MISSED);
    assert_int_equal(ask(g, key, 6000), SEEN_REASON_MAYBE);
    /* A clock that went back turns nobody away. */
    assert_int_equal(ask(g, key, 4999), SEEN_REASON_MAYBE);
    /* Created while somebody waited for the database to say no. */
    missed(g, key, 7000);
    assert_int_equal(created(g, key, 7001), SEEN_OK);
    assert_int_equal(ask(g, key, 7002), SEEN_REASON_CREATED);
    missed(g, key, 7003);
    assert_int_equal(ask(g, key, 7004), SEEN_REASON_CREATED);
    assert_int_equal(ask(g, key, 9000), SEEN_REASON_MAYBE);
    seen_guard_free(g);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){.misses = 1000});
    seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL);
    uint64_t made = TEST_STRANGERS + 50000000;
    assert_int_equal(created(g, made, 0), SEEN_OK);
    for (uint64_t i = 0; i < 200000; i++)
        missed(g, TEST_STRANGERS + i, 1 + i / 100);
    seen_guard_stats s = {.size = sizeof s};
    seen_guard_stats_of(g, &s);
    assert_between((double)s.misses_now, 500, 1024);
    /* A flood of misses does not wash creations away. */
    missed(g, made, 2002);
    assert_int_equal(ask(g, made, 2002), SEEN_REASON_CREATED);
    seen_guard_free(g);
}

static void listed_keys_always_pass(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){0});
    seen_filter *f = filter_of(0, 100, 0);
    seen_allowlist *list;
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    uint64_t vip = test_key(TEST_STRANGERS);
    seen_allowlist_add(list, &vip, sizeof vip);
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    seen_allowlist_free(list);
    seen_guard_swap(g, f, NULL);
    missed(g, TEST_STRANGERS, 10);
    assert_int_equal(ask(g, TEST_STRANGERS, 10), SEEN_REASON_LISTED);
    seen_guard_free(g);
}

/* A filter of some keys that denies key `number` and the one behind it. */
static seen_filter *denying(uint64_t number, uint32_t flags)
{
    seen_filter *f = filter_of(0, 100, flags);
    seen_allowlist *list;
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t key = test_key(number + i);
        seen_allowlist_add(list, &key, sizeof key);
    }
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    seen_allowlist_free(list);
    return f;
}

/* Whenever it is created: before there is a filter, under one, and while the next
 * one is built; and also long after. */
static void a_denied_key_that_was_created_passes(void **state)
{
    (void)state;
    const uint32_t flags[] = {0, SEEN_CONCURRENT};
    enum {
        LOADING,
        UNDER,
        REBUILDING,
        STAGES
    };
    const uint64_t denied = TEST_STRANGERS, later = 1000000;
    for (int i = 0; i < 2 * STAGES; i++) {
        const int stage = i / 2;
        seen_guard *g = new_guard((seen_guard_options){.miss_ms = 10});
        if (stage == LOADING) assert_int_equal(created(g, denied, 0), SEEN_OK);
        seen_guard_swap(g, denying(denied, flags[i % 2]), NULL);
        if (stage != LOADING)
            assert_int_equal(ask(g, denied, 0), SEEN_REASON_ABSENT);
        if (stage == UNDER) assert_int_equal(created(g, denied, 0), SEEN_OK);
        seen_guard_rebuild(g);
        if (stage == REBUILDING)
            assert_int_equal(created(g, denied, 0), SEEN_OK);
        assert_int_equal(ask(g, denied, later), SEEN_REASON_MAYBE);
        /* The next filter denies it again, and takes other keys. */
        assert_int_equal(created(g, 500, 0), SEEN_OK);
        assert_int_equal(
            seen_guard_swap(g, denying(denied, flags[i % 2]), NULL), SEEN_OK);
        assert_int_equal(ask(g, denied, later), SEEN_REASON_MAYBE);
        assert_int_equal(ask(g, 500, later), SEEN_REASON_MAYBE);
        assert_int_equal(ask(g, denied + 1, later), SEEN_REASON_ABSENT);
        seen_guard_free(g);
    }
}

/* Who asked before the key was created may tell after it was. */
static void a_late_miss_does_not_hide_what_was_created(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){.miss_ms = 1000});
    seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL);
    uint64_t key = TEST_STRANGERS;
    for (uint64_t asked = 4000; asked < 9000; asked++) {
        assert_int_equal(created(g, key, 5000), SEEN_OK);
        missed(g, key, asked < 5500 ? asked : 5500);
        seen_reason why = ask(g, key, asked);
        assert_true(why == SEEN_REASON_CREATED || why == SEEN_REASON_MAYBE);
    }
    /* Nor do others that were asked for long ago and are told now. */
    for (uint64_t i = 0; i < 200000; i++)
        missed(g, TEST_STRANGERS + 1 + i, 10);
    missed(g, key, 5000);
    assert_int_equal(ask(g, key, 5500), SEEN_REASON_CREATED);
    /* At the end of all time. */
    assert_int_equal(created(g, key, UINT64_MAX), SEEN_OK);
    missed(g, key, UINT64_MAX);
    assert_int_equal(ask(g, key, UINT64_MAX), SEEN_REASON_CREATED);
    seen_guard_free(g);
}

/* Before there is a filter, and when it was taken away. */
static void keys_created_while_loading_are_in_the_first_filter(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){.miss_ms = 10});
    for (uint64_t i = ITEMS; i < ITEMS + 100; i++)
        assert_int_equal(created(g, i, 0), SEEN_OK);
    assert_int_equal(seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL), SEEN_OK);
    assert_int_equal(seen_guard_swap(g, NULL, NULL), SEEN_OK);
    for (uint64_t i = ITEMS + 100; i < ITEMS + 200; i++)
        assert_int_equal(created(g, i, 0), SEEN_OK);
    seen_filter *f = filter_of(0, ITEMS + 100, 0);
    assert_int_equal(seen_guard_swap(g, f, NULL), SEEN_OK);
    for (uint64_t i = 0; i < ITEMS + 200; i++)
        assert_int_equal(ask(g, i, 1000), SEEN_REASON_MAYBE);
    seen_guard_free(g);
}

/* A key that neither the filter nor the list of those created can take: too
 * long for the list, and too late for the filter. */
static void a_created_key_that_was_lost_opens_the_guard(void **state)
{
    (void)state;
    size_t len = SEEN_LISTED_KEY_MAX + 1;
    char *key = calloc(1, len);
    assert_non_null(key);
    struct test_batch b = test_batch_new(0, 1000);
    seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.001};
    for (int closed = 0; closed < 2; closed++) {
        seen_guard *g = new_guard((seen_guard_options){.closed = closed});
        seen_filter *f;
        assert_int_equal(
            seen_build(&f, &spec, seen_keys_of(b.keys, 1000), NULL), SEEN_OK);
        seen_guard_swap(g, f, NULL);
        seen_error error;
        assert_int_equal(seen_guard_created(g, key, len, 0, &error),
                         SEEN_INVALID);
        assert_string_equal(error.field, "key");
        assert_non_null(strstr(error.text, "until the next swap"));
        assert_int_equal(seen_guard_ask(g, key, len, 0, NULL), SEEN_ASK);
        assert_int_equal(ask(g, TEST_STRANGERS, 0), SEEN_REASON_LOADING);
        assert_int_equal(ask(g, 5, 0), SEEN_REASON_MAYBE);
        seen_guard_stats s = {.size = sizeof s};
        seen_guard_stats_of(g, &s);
        assert_false(s.has_filter);
        assert_true(s.rebuild);
        assert_int_equal(s.open, 2);

        /* Lost for the next filter, although this one has it. */
        seen_guard_rebuild(g);
        assert_int_equal(seen_guard_swap(g, filter_of(0, 1000, 0), NULL),
                         SEEN_OK);
        seen_guard_rebuild(g);
        assert_int_equal(seen_guard_created(g, key, len, 0, &error),
                         SEEN_INVALID);
        assert_non_null(strstr(error.text, "build the new filter again"));
        seen_guard_stats_of(g, &s);
        assert_true(s.has_filter);
        f = filter_of(0, 1000, 0);
        assert_int_equal(seen_guard_swap(g, f, &error), SEEN_NOMEM);
        assert_non_null(strstr(error.text, "rebuild again"));
        assert_int_equal(seen_guard_swap(g, NULL, NULL),
                         SEEN_OK); /* no way round */
        assert_int_equal(seen_guard_swap(g, f, NULL), SEEN_NOMEM);
        seen_guard_rebuild(g); /* and scan again */
        assert_int_equal(seen_guard_swap(g, f, NULL), SEEN_OK);
        seen_guard_free(g);
    }
    test_batch_free(&b);
    free(key);
}

/* A filter that takes no adds: the guard keeps what is created. */
static void created_keys_pass_whatever_the_filter(void **state)
{
    (void)state;
    struct test_batch b = test_batch_new(0, 1000);
    for (int swaps = 0; swaps < 2; swaps++) {
        seen_guard *g = new_guard((seen_guard_options){.miss_ms = 10});
        seen_filter *f;
        seen_spec spec = {.kind = SEEN_RIBBON, .fpp = 0.001};
        assert_int_equal(
            seen_build(&f, &spec, seen_keys_of(b.keys, 1000), NULL), SEEN_OK);
        seen_guard_swap(g, f, NULL);
        for (uint64_t i = 2000; i < 2500; i++)
            assert_int_equal(created(g, i, 0), SEEN_OK);
        if (swaps) {
            assert_int_equal(
                seen_build(&f, &spec, seen_keys_of(b.keys, 1000), NULL),
                SEEN_OK);
            seen_guard_rebuild(g);
            assert_int_equal(seen_guard_swap(g, f, NULL), SEEN_OK);
        }
        for (uint64_t i = 2000; i < 2500; i++)
            assert_int_not_equal(ask(g, i, 1000), SEEN_REASON_ABSENT);
        seen_guard_free(g);
    }
    test_batch_free(&b);
}

static void an_overfull_filter_is_noticed(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){0});
    seen_guard_swap(g, filter_of(0, 3 * ITEMS, 0), NULL);
    seen_guard_stats s = {.size = sizeof s};
    for (uint64_t i = 0; i < 20000; i++)
        if (ask(g, TEST_STRANGERS + i, 0) == SEEN_REASON_MAYBE)
            missed(g, TEST_STRANGERS + i, 0);
    seen_guard_stats_of(g, &s);
    assert_true(s.rebuild);
    assert_close(s.wrong_share, 1, 1e-9);
    seen_guard_rebuild(g);
    seen_guard_swap(g, filter_of(0, ITEMS, 0), NULL);
    seen_guard_stats_of(g, &s);
    assert_false(s.rebuild);
    assert_true(s.wrong_share == 0);
    assert_int_equal(s.swaps, 2);
    seen_guard_free(g);
}

/* The second does not know what was created after the first had swapped. */
static void of_two_rebuilders_the_second_begins_again(void **state)
{
    (void)state;
    seen_guard *g = new_guard((seen_guard_options){0});
    seen_guard_swap(g, filter_of(0, 100, 0), NULL);
    seen_guard_rebuild(g);
    seen_guard_rebuild(g);
    seen_filter *second = filter_of(0, 100, 0);
    assert_int_equal(seen_guard_swap(g, filter_of(0, 100, 0), NULL), SEEN_OK);
    assert_int_equal(created(g, 200, 0), SEEN_OK);
    seen_error error;
    assert_int_equal(seen_guard_swap(g, second, &error), SEEN_INVALID);
    assert_string_equal(error.field, "filter");
    assert_int_not_equal(ask(g, 200, 0), SEEN_REASON_ABSENT);
    seen_guard_rebuild(g);
    test_add_members(second, 200, 1); /* scanned again */
    assert_int_equal(seen_guard_swap(g, second, NULL), SEEN_OK);
    assert_int_not_equal(ask(g, 200, 0), SEEN_REASON_ABSENT);
    seen_guard_free(g);
}

/* ---- Threads ------------------------------------------------------------ */

struct traffic {
    seen_guard *g;
    atomic_uint_fast64_t rows; /* keys below exist */
    atomic_bool stop;
    atomic_uint_fast64_t turned_away;
};

static void *ask_on(void *arg)
{
    struct traffic *t = arg;
    struct test_rng r = test_rng(900);
    while (!atomic_load(&t->stop)) {
        uint64_t rows = atomic_load(&t->rows);
        seen_reason why = ask(t->g, test_below(&r, rows), 5);
        if (why == SEEN_REASON_ABSENT || why == SEEN_REASON_MISSED)
            atomic_fetch_add(&t->turned_away, 1);
        missed(t->g, TEST_STRANGERS + test_below(&r, 1000), 5);
    }
    return NULL;
}

static void *insert_on(void *arg)
{
    struct traffic *t = arg;
    while (!atomic_load(&t->stop)) {
        uint64_t row = atomic_load(&t->rows);
        if (created(t->g, row, 5) != SEEN_OK) break;
        atomic_store(&t->rows, row + 1);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return NULL;
}

static void rebuilding_turns_nobody_away(void **state)
{
    (void)state;
    for (uint32_t flags = 0; flags <= SEEN_CONCURRENT; flags++) {
        struct traffic t = {.g = new_guard((seen_guard_options){0})};
        atomic_store(&t.rows, 1000);
        seen_guard_swap(t.g, filter_of(0, 1000, flags), NULL);
        pthread_t threads[3];
        for (size_t i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, i ? ask_on : insert_on, &t);
        for (uint64_t i = 0; i < 100; i++) {
            seen_guard_rebuild(t.g);
            /* The insert that was under way is done; then the scan. */
            uint64_t rows = atomic_load(&t.rows);
            while (atomic_load(&t.rows) == rows)
                sched_yield();
            rows = atomic_load(&t.rows);
            assert_int_equal(
                seen_guard_swap(t.g, filter_of(0, rows, flags), NULL), SEEN_OK);
        }
        atomic_store(&t.stop, true);
        for (size_t i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(t.turned_away, 0);
        for (uint64_t i = 0; i < t.rows; i++)
            assert_int_not_equal(ask(t.g, i, 5000000), SEEN_REASON_ABSENT);
        seen_guard_free(t.g);
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    seen_guard *g;
    static const struct {
        seen_guard_options options;
        const char *field;
    } bad[] = {
        {{.misses = UINT64_MAX}, "misses"},
        {{.miss_ms = UINT64_MAX}, "miss_ms"},
        {{.reserved = {[5] = 1}}, "reserved"},
    };
    seen_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(seen_guard_new(&g, &bad[i].options, &error),
                         SEEN_INVALID);
        assert_int_equal(error.status, SEEN_INVALID);
        assert_string_equal(error.field, bad[i].field);
    }
    assert_int_equal(seen_guard_new(NULL, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_guard_new(&g, NULL, &error), SEEN_OK);
    assert_string_equal(error.text, "");

    /* A program of another time has fewer fields, or more. */
    struct {
        seen_guard_stats stats;
        uint64_t later;
    } s = {.later = 1};
    assert_int_equal(seen_guard_stats_of(g, &s.stats), SEEN_INVALID);
    s.stats = (seen_guard_stats){.size = sizeof s, .asked = 9};
    assert_int_equal(seen_guard_stats_of(g, &s.stats), SEEN_OK);
    assert_int_equal(s.stats.asked, 0);
    assert_int_equal(s.later, 0);
    s.stats = (seen_guard_stats){.size = 16, .passed = 7};
    assert_int_equal(seen_guard_stats_of(g, &s.stats), SEEN_OK);
    assert_int_equal(s.stats.passed, 7);
    seen_guard_free(g);
    seen_guard_free(NULL);
    assert_string_equal(seen_reason_name(SEEN_REASON_MISSED), "missed");
    assert_string_equal(seen_reason_name((seen_reason)99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_exist_pass_and_others_do_not),
        cmocka_unit_test(misses_are_remembered_for_a_while),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(listed_keys_always_pass),
        cmocka_unit_test(a_denied_key_that_was_created_passes),
        cmocka_unit_test(a_late_miss_does_not_hide_what_was_created),
        cmocka_unit_test(keys_created_while_loading_are_in_the_first_filter),
        cmocka_unit_test(a_created_key_that_was_lost_opens_the_guard),
        cmocka_unit_test(created_keys_pass_whatever_the_filter),
        cmocka_unit_test(an_overfull_filter_is_noticed),
        cmocka_unit_test(of_two_rebuilders_the_second_begins_again),
        cmocka_unit_test(rebuilding_turns_nobody_away),
        cmocka_unit_test(bad_options_are_refused),
    };
    test_announce("test_guard");
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
