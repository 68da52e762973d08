/* test_file_threads.c - threads that change one store share its syncs. */
#define _POSIX_C_SOURCE 200809L

#include "seen_file.h"

#include "helpers/fault_os.h"
#include "helpers/keys.h"
#include "helpers/scratch.h"
#include "store/os.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 4
#define BATCHES 60
#define BATCH   25

static const char *scratch;
static char path[300];
static seen_file *store;

static void *add_all(void *number)
{
    uint64_t first = (uint64_t)(uintptr_t)number * BATCHES * BATCH;
    for (uint64_t i = 0; i < BATCHES; i++) {
        struct test_batch b = test_batch_new(first + i * BATCH, BATCH);
        if (seen_file_add_many(store, seen_keys_of(b.keys, BATCH), NULL,
                               NULL) != SEEN_OK)
            abort();
        seen_file_maybe_many(store, seen_keys_of(b.keys, BATCH), b.answers);
        for (size_t k = 0; k < BATCH; k++)
            if (!b.answers[k]) abort();
        if (i == BATCHES / 2 && seen_file_sync(store, NULL) != SEEN_OK) abort();
        test_batch_free(&b);
    }
    return NULL;
}

static void threads_share_syncs_and_lose_nothing(void **state)
{
    (void)state;
    static const seen_spec specs[] = {
        {.kind = SEEN_BLOCKED, .items = 100000, .fpp = 0.001},
        {.kind = SEEN_CUCKOO, .items = 100000, .fpp = 0.001},
        {.kind = SEEN_SET}};
    for (size_t i = 0; i < 3; i++) {
        struct faults *calls = fault_os_install();
        calls->only = "datasync";
        fault_arm(calls, 0, 0, false);
        seen_file_options o = {.mode = SEEN_DURABLE, .create = &specs[i]};
        remove(path);
        assert_int_equal(seen_file_open(&store, path, &o, NULL, NULL), SEEN_OK);
        pthread_t t[THREADS];
        for (uintptr_t n = 0; n < THREADS; n++)
            assert_int_equal(pthread_create(&t[n], NULL, add_all, (void *)n),
                             0);
        for (size_t n = 0; n < THREADS; n++)
            pthread_join(t[n], NULL);
        uint64_t syncs = calls->calls;
        assert_int_equal(seen_file_close(store, NULL), SEEN_OK);
        fault_os_uninstall();
        print_message("%llu syncs for %d commits\n", (unsigned long long)syncs,
                      THREADS * BATCHES);
        assert_true(syncs > 0 && syncs <= THREADS * BATCHES);

        o = (seen_file_options){.mode = SEEN_READ};
        assert_int_equal(seen_file_open(&store, path, &o, NULL, NULL), SEEN_OK);
        uint64_t all = THREADS * BATCHES * BATCH;
        assert_int_equal(test_count_maybe(seen_file_filter(store), 0, all),
                         all);
        seen_file_close(store, NULL);
        assert_int_equal(seen_file_verify(path, NULL, NULL), SEEN_OK);
    }
}

/* ---- A reader beside a writer ------------------------------------------- */

static _Atomic uint64_t acked;
static _Atomic bool writing;

static void *write_and_sync(void *spec)
{
    seen_file_options o = {.mode = SEEN_DURABLE, .create = spec};
    seen_file *w;
    if (seen_file_open(&w, path, &o, NULL, NULL) != SEEN_OK) abort();
    for (int i = 0; i < 300; i++) {
        struct test_batch b = test_batch_new(acked, BATCH);
        if (seen_file_add_many(w, seen_keys_of(b.keys, BATCH), NULL, NULL) !=
            SEEN_OK)
            abort();
        acked += BATCH;
        if (i % 3 == 0 && seen_file_sync(w, NULL) != SEEN_OK) abort();
        test_batch_free(&b);
    }
    if (seen_file_close(w, NULL) != SEEN_OK) abort();
    writing = false;
    return NULL;
}

/* Whatever the writer is doing at the moment: what it had acknowledged before
 * the file was opened is there. */
static void readers_catch_a_file_that_changes(void **state)
{
    (void)state;
    static seen_spec specs[] = {
        {.kind = SEEN_BLOCKED, .items = 10000, .fpp = 0.001},
        {.kind = SEEN_BLOCKED, .items = 3000000, .fpp = 0.001}, /* 100 pages */
        {.kind = SEEN_CUCKOO, .items = 10000, .fpp = 0.001}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        pthread_t t;
        uint64_t looks = 0;
        remove(path);
        acked = 0;
        writing = true;
        assert_int_equal(pthread_create(&t, NULL, write_and_sync, &specs[i]),
                         0);
        while (writing) {
            seen_file_options o = {.mode = SEEN_READ};
            seen_outcome outcome = {.size = sizeof outcome};
            seen_error error = {0};
            uint64_t sure = acked;
            seen_status status =
                seen_file_open(&store, path, &o, &outcome, &error);
            if (status == SEEN_ABSENT && sure == 0) continue;
            if (status != SEEN_OK)
                fail_msg("%s: %s", seen_strerror(status), error.text);
            assert_int_equal(test_count_maybe(seen_file_filter(store), 0, sure),
                             sure);
            seen_file_close(store, NULL);
            if (looks++ % 8 == 0 &&
                seen_file_verify(path, &outcome, &error) != SEEN_OK)
                fail_msg("verify: %s", error.text);
        }
        pthread_join(t, NULL);
        print_message("%llu looks\n", (unsigned long long)looks);
    }
}

/* ---- Verifying beside writers that come and go -------------------------- */

static void *come_and_go(void *nothing)
{
    for (int i = 0; i < 40; i++) {
        seen_file_options o = {.mode = SEEN_DURABLE};
        seen_file *w;
        struct test_batch b = test_batch_new(acked, BATCH);
        if (seen_file_open(&w, path, &o, NULL, NULL) != SEEN_OK) abort();
        if (seen_file_add_many(w, seen_keys_of(b.keys, BATCH), NULL, NULL) !=
            SEEN_OK)
            abort();
        if (seen_file_close(w, NULL) != SEEN_OK) abort();
        acked += BATCH;
        test_batch_free(&b);
    }
    writing = false;
    return nothing;
}

/* The file is large enough for a writer to open it, set bits and be gone while
 * it is read. That is no damage. */
static void a_writer_that_comes_meanwhile_is_no_damage(void **state)
{
    (void)state;
    seen_filter *f = test_filter(
        (seen_spec){.kind = SEEN_BLOCKED, .items = 40000000, .fpp = 0.01});
    remove(path);
    assert_int_equal(seen_file_save(path, f, 0, NULL, NULL), SEEN_OK);
    seen_free(f);
    pthread_t t;
    acked = 0;
    writing = true;
    assert_int_equal(pthread_create(&t, NULL, come_and_go, NULL), 0);
    while (writing) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        if (seen_file_verify(path, &outcome, &error) != SEEN_OK)
            fail_msg("verify: %s", error.text);
        uint64_t sure = acked;
        if (seen_file_open(&store, path, NULL, &outcome, &error) != SEEN_OK)
            fail_msg("open: %s", error.text);
        assert_int_equal(test_count_maybe(seen_file_filter(store), 0, sure),
                         sure);
        assert_int_equal(seen_file_close(store, NULL), SEEN_OK);
    }
    pthread_join(t, NULL);
}

/* ---- Checkpoints between threads that never pause ------------------------ */

#define FRAMES 70
#define FRAME  65536 /* keys, of 8 bytes in the journal */

static _Atomic int busy;

static void *add_large(void *number)
{
    for (uint64_t i = 0; i < FRAMES; i++) {
        struct test_batch b = test_batch_new(
            ((uint64_t)(uintptr_t)number << 32) + i * FRAME, FRAME);
        if (seen_file_add_many(store, seen_keys_of(b.keys, FRAME), NULL,
                               NULL) != SEEN_OK)
            abort();
        test_batch_free(&b);
    }
    busy--;
    return NULL;
}

static bool add_size(void *sum, const char *name)
{
    struct seen_stat st;
    char full[600];
    snprintf(full, sizeof full, "%s/%s", scratch, name);
    if (strstr(name, ".journal-") && seen_os->stat(full, &st) == 0)
        *(uint64_t *)sum += st.size;
    return true;
}

/* Each of four threads has a frame on its way at any time: the journal is cut all
 * the same, and a sync comes to an end. */
static void checkpoints_come_round(void **state)
{
    (void)state;
    const seen_spec spec = {
        .kind = SEEN_BLOCKED, .items = 1000000, .fpp = 0.01};
    seen_file_options o = {.mode = SEEN_DURABLE, .create = &spec};
    remove(path);
    assert_int_equal(seen_file_open(&store, path, &o, NULL, NULL), SEEN_OK);
    pthread_t t[THREADS];
    busy = THREADS;
    for (uintptr_t n = 0; n < THREADS; n++)
        assert_int_equal(pthread_create(&t[n], NULL, add_large, (void *)n), 0);
    uint64_t most = 0;
    for (int i = 0; busy; i++) {
        uint64_t size = 0;
        seen_os->list(scratch, add_size, &size);
        if (size > most) most = size;
        if (i == 20) /* the rest is left to them */
            assert_int_equal(seen_file_sync(store, NULL), SEEN_OK);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (size_t n = 0; n < THREADS; n++)
        pthread_join(t[n], NULL);
    assert_int_equal(seen_file_close(store, NULL), SEEN_OK);
    print_message("%llu MB of journal at most, of %d\n",
                  (unsigned long long)(most >> 20),
                  THREADS * FRAMES * FRAME / (1 << 17));
    assert_true(most < (uint64_t)(64 + 2 * THREADS) << 20);
    assert_int_equal(seen_file_verify(path, NULL, NULL), SEEN_OK);
}

static int set_up(void **state)
{
    (void)state;
    scratch = test_scratch();
    if (!scratch) return -1;
    snprintf(path, sizeof path, "%s/f", scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_syncs_and_lose_nothing),
        cmocka_unit_test(readers_catch_a_file_that_changes),
        cmocka_unit_test(a_writer_that_comes_meanwhile_is_no_damage),
        cmocka_unit_test(checkpoints_come_round),
    };
    test_announce("file_threads");
    return cmocka_run_group_tests_name("file_threads", tests, set_up,
                                       test_scratch_end);
}
