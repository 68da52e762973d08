/*
 * fault_kill.c - a writer is killed in the middle of its work, fifty times.
 *
 * A child adds keys to a file on the real disk and says after each batch how
 * many are acknowledged. The parent kills it at some moment, opens the file and
 * asks for every acknowledged key; then the next child goes on.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 50
#define BATCH  20

static char path[300];

/* Seen by parent and child. */
static struct shared {
    _Atomic uint64_t acked;
    _Atomic bool ready, done;
} * shared;

static const seen_spec specs[] = {
    {.kind = SEEN_BLOCKED, .items = 1000000, .fpp = 0.0001},
    {.kind = SEEN_CUCKOO, .items = 1000000, .fpp = 0.0001},
    {.kind = SEEN_SET},
    {.kind = SEEN_BLOOM, .items = 1000000, .fpp = 0.0001},
    {.kind = SEEN_SCALABLE, .items = 1000, .fpp = 0.0001},
};

#define SPECS (sizeof specs / sizeof *specs)

static void work(const seen_spec *spec, seen_mode mode)
{
    seen_file *s;
    seen_file_options o = {.mode = mode, .create = spec};
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (seen_file_open(&s, path, &o, &outcome, &error) != SEEN_OK) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    for (int i = 0;; i++) {
        struct test_batch b = test_batch_new(shared->acked, BATCH);
        if (seen_file_add_many(s, seen_keys_of(b.keys, BATCH), NULL, NULL) !=
            SEEN_OK)
            _exit(2);
        test_batch_free(&b);
        shared->acked += BATCH;
        shared->ready = true;
        if (i % 17 == 16 && seen_file_sync(s, NULL) != SEEN_OK) _exit(3);
        if (i == 400) break;
    }
    if (seen_file_close(s, NULL) != SEEN_OK) _exit(4);
    shared->done = true;
    for (;;)
        pause();
}

static void sleep_us(uint64_t us)
{
    struct timespec t = {.tv_nsec = (long)(us * 1000)};
    nanosleep(&t, NULL);
}

static void check(void)
{
    seen_file *s;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file_options o = {.mode = SEEN_READ};
    if (seen_file_open(&s, path, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s", error.text);
    assert_int_equal(test_count_maybe(seen_file_filter(s), 0, shared->acked),
                     shared->acked);
    seen_file_close(s, NULL);
    if (seen_file_verify(path, &outcome, &error) != SEEN_OK)
        fail_msg("verify: %s", error.text);
}

static void nothing_acknowledged_is_lost(void **state)
{
    (void)state;
    struct test_rng r = test_rng(90);
    uint64_t at_work = 0, all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const seen_spec *spec = &specs[round / 5 % SPECS];
        if (round % 5 == 0) { /* a new file */
            unlink(path);
            all += shared->acked;
            shared->acked = 0;
        }
        shared->ready = shared->done = false;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) work(spec, round % 2 ? SEEN_DURABLE : SEEN_WRITE);
        int how = 0;
        while (!shared->ready && waitpid(child, &how, WNOHANG) == 0)
            sleep_us(200);
        sleep_us(test_below(&r, 20000));
        kill(child, SIGKILL);
        waitpid(child, &how, 0);
        if (WIFEXITED(how)) fail_msg("the writer: %d", WEXITSTATUS(how));
        at_work += !shared->done;
        check();
    }
    test_tried(ROUNDS, "kills");
    print_message("%llu of them at work, %llu keys acknowledged\n",
                  (unsigned long long)at_work,
                  (unsigned long long)(all + shared->acked));
}

static int set_up(void **state)
{
    (void)state;
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(path, sizeof path, "%s/f", dir);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost),
    };
    test_announce("fault_kill");
    return cmocka_run_group_tests_name("fault_kill", tests, set_up,
                                       test_scratch_end);
}
