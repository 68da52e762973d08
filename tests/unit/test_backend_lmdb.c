/* test_backend_lmdb.c - where addresses are limited the map grows, and whoever
 * reads meanwhile reads what is there. */
#define _DEFAULT_SOURCE /* setrlimit, fork */

#include "users/backend.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESSES                                                              \
    ((rlim_t)1 << 30) /* a map of 256 MiB fits, one of 4 GiB not */
#define RECORD  ((size_t)1 << 20)
#define RECORDS 300
#define AT_ONCE 10 /* records of a transaction */
#define READERS 3

static const struct seen_backend_ops *const ops = &seen_backend_lmdb;

static struct {
    char dir[500], copy[500];
    void *backend;
    atomic_bool done;
    atomic_uint grown;
} run;

/* In the child, where cmocka cannot say it. */
#define must(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static seen_key name(unsigned i, char buf[16])
{
    return (seen_key){buf, (size_t)snprintf(buf, 16, "user-%u", i)};
}

static void *read_all_the_time(void *arg)
{
    bool copies = arg != NULL;
    seen_error error = {0};
    uint64_t users, bytes, before = 0;
    while (!run.done) {
        struct seen_meta meta = {0};
        must(ops->meta(run.backend, &meta, &error) == SEEN_OK);
        must(meta.sequence >= before);
        before = meta.sequence;
        ops->sizes(run.backend, &users, &bytes);
        must(users >= before);
        if (!copies || before < 200) continue;
        must(ops->copy(run.backend, run.copy, NULL) ==
             SEEN_OK); /* while it grows */
        copies = false;
    }
    return NULL;
}

static seen_status put_some(unsigned from, const uint8_t *bytes)
{
    char buf[16];
    const struct seen_meta meta = {.id = 1,
                                   .sequence = from + AT_ONCE,
                                   .policy = {1000, 5, 0.001, 1, {0}}};
    seen_status status = ops->begin(run.backend, NULL);
    for (unsigned i = 0; status == SEEN_OK && i < AT_ONCE; i++)
        status = ops->put(run.backend, name(from + i, buf),
                          (seen_record){bytes, RECORD}, NULL);
    if (status == SEEN_OK) return ops->commit(run.backend, &meta, NULL);
    ops->abort(run.backend);
    return status;
}

static void write_all(void)
{
    uint8_t *bytes = calloc(1, RECORD);
    must(bytes);
    for (unsigned from = 0; from < RECORDS; from += AT_ONCE) {
        seen_status status = put_some(from, bytes);
        while (status == SEEN_FULL) {
            must(ops->grow(run.backend) == SEEN_OK);
            run.grown++;
            status = put_some(from, bytes);
        }
        must(status == SEEN_OK);
    }
    free(bytes);
}

static void read_back(void)
{
    char buf[16];
    void *snapshot;
    seen_record record;
    must(ops->snapshot_new(run.backend, &snapshot) == SEEN_OK);
    must(ops->wake(snapshot, NULL) == SEEN_OK);
    for (unsigned i = 0; i < RECORDS; i++)
        must(ops->get(snapshot, name(i, buf), &record) == SEEN_OK &&
             record.len == RECORD);
    ops->sleep(snapshot);
    ops->snapshot_free(snapshot);
}

static void live(void)
{
    const struct rlimit limit = {ADDRESSES, ADDRESSES};
    seen_error error = {0};
    pthread_t readers[READERS];
    must(setrlimit(RLIMIT_AS, &limit) == 0);
    must(ops->open(&run.backend, run.dir, true, &error) == SEEN_OK);
    const struct seen_meta meta = {.id = 1, .policy = {1000, 5, 0.001, 1, {0}}};
    must(ops->begin(run.backend, NULL) == SEEN_OK);
    must(ops->commit(run.backend, &meta, NULL) == SEEN_OK);
    for (size_t i = 0; i < READERS; i++)
        must(pthread_create(&readers[i], NULL, read_all_the_time,
                            i ? NULL : &run) == 0);
    write_all();
    run.done = true;
    for (size_t i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    read_back();
    ops->close(run.backend);
    must(run.grown > 0);
}

static void the_map_grows_under_readers(void **state)
{
    (void)state;
    snprintf(run.dir, sizeof run.dir, "%s/backend", test_scratch());
    snprintf(run.copy, sizeof run.copy, "%s/copy", test_scratch());
    assert_int_equal(mkdir(run.dir, 0777), 0);
    assert_int_equal(mkdir(run.copy, 0777), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        live();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int set_up(void **state)
{
    (void)state;
    test_scratch_in_memory();
    return test_scratch() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_grows_under_readers),
    };
    test_announce("backend_lmdb");
    return cmocka_run_group_tests_name("backend_lmdb", tests, set_up,
                                       test_scratch_end);
}
