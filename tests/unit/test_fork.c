/*
 * test_fork.c - handles on both sides of a fork(): whatever a child does with its
 * copy, what was acknowledged in the parent, before and after, is there.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_users.h"

#include "helpers/chosen.h"
#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static seen_key text(const char *s)
{
    return (seen_key){s, strlen(s)};
}

static const char *fresh_name(void)
{
    static char name[600];
    static int count;
    snprintf(name, sizeof name, "%s/it-%d", test_scratch(), ++count);
    return name;
}

/* ---- Children ----------------------------------------------------------- */

/* What a child expects; cmocka's assertions would go on in the wrong process. */
static void must(bool good, int line)
{
    if (good) return;
    fprintf(stderr, "test_fork.c:%d, in a child\n", line);
    _exit(1);
}
#define MUST(good) must((good), __LINE__)

struct child {
    pid_t pid;
    int ends; /* the child ends when this is closed */
    int said; /* a byte comes when it is done */
};

typedef void task(void *handle);

/* `handle` is given to `work`; then the child stays until it is told. */
static struct child begin(task *work, void *handle)
{
    int down[2], up[2];
    assert_true(pipe(down) == 0 && pipe(up) == 0);
    fflush(NULL);
    struct child c = {.pid = fork(), .ends = down[1], .said = up[0]};
    if (c.pid == 0) {
        char byte = 0;
        alarm(60); /* a deadlock is a failure */
        close(down[1]);
        close(up[0]);
        work(handle);
        MUST(write(up[1], &byte, 1) == 1);
        MUST(read(down[0], &byte, 1) == 0);
        _exit(0);
    }
    close(down[0]);
    close(up[1]);
    char byte;
    if (read(c.said, &byte, 1) != 1) print_message("the child is gone\n");
    return c;
}

static int status_of(struct child *c)
{
    int status = -1;
    close(c->ends);
    close(c->said);
    waitpid(c->pid, &status, 0);
    return status;
}

static void end(struct child *c)
{
    assert_int_equal(status_of(c), 0);
}

static void do_nothing(void *handle)
{
    (void)handle;
}

/* ---- Stores of users ---------------------------------------------------- */

static seen_users *open_users(const char *dir, seen_mode mode)
{
    seen_users *u = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_users_options o = {.mode = mode, .create = mode != SEEN_READ};
    if (seen_users_open(&u, dir, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s: %s", dir, error.text);
    return u;
}

static void mark(seen_users *u, const char *user)
{
    seen_key item = text("item");
    assert_int_equal(seen_users_mark(u, text(user), 1000,
                                     seen_keys_of(&item, 1), NULL, NULL),
                     SEEN_OK);
}

static bool shown(seen_users *u, const char *user)
{
    bool answer = false;
    seen_key item = text("item");
    assert_int_equal(seen_users_maybe_many(u, text(user), 1000,
                                           seen_keys_of(&item, 1), &answer,
                                           NULL),
                     SEEN_OK);
    return answer;
}

static void say_whose_it_is(seen_users *u)
{
    char expected[100];
    snprintf(expected, sizeof expected, "this handle belongs to process %ld;",
             (long)getppid());
    seen_error error;
    MUST(seen_users_sync(u, &error) == SEEN_INVALID);
    MUST(strstr(error.text, expected) != NULL);
}

static bool no_one(void *ctx, const seen_users_entry *entry)
{
    (void)ctx, (void)entry;
    _exit(1);
}

static void try_to_ask(seen_users *u)
{
    seen_key item = text("item");
    bool answer;
    size_t n;
    seen_exposure_info info = {.size = sizeof info};
    seen_users_stats stats = {.size = sizeof stats};
    MUST(seen_users_maybe_many(u, text("a"), 1000, seen_keys_of(&item, 1),
                               &answer, NULL) == SEEN_INVALID);
    say_whose_it_is(u);
    MUST(test_users_fresh(u, text("a"), 1000, &item, 1, &n, NULL) ==
         SEEN_INVALID);
    MUST(seen_users_info_of(u, text("a"), 1000, &info, NULL) == SEEN_INVALID);
    MUST(seen_users_record(u, text("a"), NULL, 0, &n, NULL) == SEEN_INVALID);
    MUST(seen_users_each(u, 1000, no_one, NULL, NULL) == SEEN_INVALID);
    MUST(seen_users_stats_of(u, &stats, NULL) == SEEN_INVALID);
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    MUST(seen_users_backup(u, "/nowhere", &error) == SEEN_INVALID);
    MUST(strstr(error.text, "belongs to process") != NULL);
}

static void try_to_change(seen_users *u)
{
    seen_key item = text("item");
    size_t n;
    bool known;
    uint64_t removed;
    seen_users_request q = {.user = text("a"), .items = seen_keys_of(&item, 1)};
    MUST(seen_users_mark_many(u, 1000, &q, 1, NULL) == SEEN_INVALID);
    MUST(q.status == SEEN_INVALID);
    say_whose_it_is(u);
    MUST(test_users_take(u, text("c"), 1000, &item, 1, 1, &n, NULL) ==
         SEEN_INVALID);
    MUST(seen_users_forget(u, text("a"), 1000, seen_keys_of(&item, 1), NULL) ==
         SEEN_INVALID);
    MUST(seen_users_forget_user(u, text("a"), 1000, &known, NULL) ==
         SEEN_INVALID);
    MUST(seen_users_sync(u, NULL) == SEEN_INVALID);
    MUST(seen_users_sweep(u, 1, &removed, NULL) == SEEN_INVALID);
}

static void use_users(void *handle)
{
    try_to_ask(handle);
    try_to_change(handle);
}

static void close_users(void *handle)
{
    use_users(handle);
    MUST(seen_users_close(handle, NULL) == SEEN_OK);
}

/* The child lives while its parent closes the store and another opens it. */
static void children_do_not_harm_a_store(void **state)
{
    (void)state;
    task *const tasks[] = {do_nothing, use_users, close_users};
    for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++)
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
            const char *dir = fresh_name();
            seen_users *u = open_users(dir, (seen_mode)mode);
            mark(u, "a");
            assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
            mark(u, "b");
            struct child c = begin(tasks[i], u);
            mark(u, "c");
            assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
            mark(u, "d");
            assert_true(shown(u, "a") && shown(u, "d"));
            assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
            u = open_users(dir, SEEN_WRITE); /* nobody keeps us out */
            assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
            end(&c);
            u = open_users(dir, SEEN_READ);
            assert_true(shown(u, "a") && shown(u, "b"));
            assert_true(shown(u, "c") && shown(u, "d"));
            assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
        }
}

/* A parent that dies without closing: its journal is there. */
static void a_child_leaves_the_journal_to_recovery(void **state)
{
    (void)state;
    const char *dir = fresh_name();
    fflush(NULL);
    pid_t parent = fork();
    if (parent == 0) {
        seen_users *u;
        seen_key a = text("a"), b = text("b"), item = text("item");
        const seen_users_options o = {.mode = SEEN_DURABLE, .create = true};
        MUST(seen_users_open(&u, dir, &o, NULL, NULL) == SEEN_OK);
        MUST(seen_users_mark(u, a, 1000, seen_keys_of(&item, 1), NULL, NULL) ==
             SEEN_OK);
        struct child c = begin(close_users, u);
        MUST(seen_users_mark(u, b, 1000, seen_keys_of(&item, 1), NULL, NULL) ==
             SEEN_OK);
        MUST(status_of(&c) == 0);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    seen_users *u = open_users(dir, SEEN_WRITE);
    assert_true(shown(u, "a") && shown(u, "b"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

static void close_reader(void *handle)
{
    try_to_ask(handle);
    MUST(seen_users_close(handle, NULL) == SEEN_OK);
}

static void a_child_of_a_reader_cannot_ask(void **state)
{
    (void)state;
    const char *dir = fresh_name();
    seen_users *u = open_users(dir, SEEN_WRITE);
    mark(u, "a");
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    u = open_users(dir, SEEN_READ);
    assert_true(shown(u, "a"));
    struct child c = begin(close_reader, u);
    assert_true(shown(u, "a"));
    end(&c);
    assert_true(shown(u, "a"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

/* With and without closing what it inherited. */
static const char *again;

static void open_again(void *handle)
{
    seen_users *u;
    if (handle) MUST(seen_users_close(handle, NULL) == SEEN_OK);
    MUST(seen_users_open(&u, again, &(seen_users_options){.tail = true}, NULL,
                         NULL) == SEEN_OK);
    seen_key item = text("item");
    bool answer = false;
    MUST(seen_users_maybe_many(u, text("a"), 1000, seen_keys_of(&item, 1),
                               &answer, NULL) == SEEN_OK);
    MUST(answer);
    MUST(seen_users_close(u, NULL) == SEEN_OK);
}

static void a_child_may_open_the_store_itself(void **state)
{
    (void)state;
    again = fresh_name();
    seen_users *u = open_users(again, SEEN_DURABLE);
    mark(u, "a");
    struct child c = begin(open_again, u);
    struct child d = begin(open_again, NULL);
    mark(u, "b");
    end(&d); /* which has the other's pipe, too */
    end(&c);
    assert_int_equal(seen_users_sync(u, NULL), SEEN_OK);
    assert_true(shown(u, "a") && shown(u, "b"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

/* Memory is copied, and nothing else is there: each goes on by itself. */
static void use_memory(void *handle)
{
    seen_key item = text("item");
    MUST(seen_users_mark(handle, text("b"), 1000, seen_keys_of(&item, 1), NULL,
                         NULL) == SEEN_OK);
    MUST(seen_users_close(handle, NULL) == SEEN_OK);
}

static void a_store_in_memory_is_copied(void **state)
{
    (void)state;
    seen_users *u = open_users("mem:", SEEN_WRITE);
    mark(u, "a");
    struct child c = begin(use_memory, u);
    end(&c);
    assert_true(shown(u, "a"));
    assert_false(shown(u, "b"));
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

/* ---- With threads ------------------------------------------------------- */

struct marker {
    seen_users *users;
    seen_file *file;
    pthread_t thread;
    uint64_t first, done; /* numbers that were acknowledged */
    atomic_bool *stop;
    bool failed;
};

static void *mark_numbers(void *arg)
{
    struct marker *m = arg;
    while (!*m->stop && !m->failed) {
        uint64_t id = m->first + m->done;
        seen_key key = {&id, sizeof id};
        if (m->users)
            m->failed =
                seen_users_mark(m->users, key, 1000, seen_keys_of(&key, 1),
                                NULL, NULL) != SEEN_OK;
        else
            m->failed = seen_file_add_many(m->file, seen_keys_of(&key, 1), NULL,
                                           NULL) != SEEN_OK;
        if (!m->failed) m->done++;
        if (m->users && m->done % 20 == 0)
            (void)seen_users_sync(m->users, NULL);
    }
    return NULL;
}

#define MARKERS  3
#define CHILDREN 60

static void start(struct marker m[MARKERS], seen_users *u, seen_file *s,
                  atomic_bool *stop)
{
    for (uint64_t i = 0; i < MARKERS; i++) {
        m[i] = (struct marker){
            .users = u, .file = s, .first = i << 32, .stop = stop};
        assert_int_equal(
            pthread_create(&m[i].thread, NULL, mark_numbers, &m[i]), 0);
    }
}

static void join(struct marker m[MARKERS], atomic_bool *stop)
{
    *stop = true;
    for (size_t i = 0; i < MARKERS; i++) {
        pthread_join(m[i].thread, NULL);
        assert_false(m[i].failed);
        assert_true(m[i].done > 0);
    }
}

static void just_close(void *handle)
{
    MUST(seen_users_close(handle, NULL) == SEEN_OK);
}

/* Whatever lock is held at that moment, the child can close its copy. */
static void forks_in_the_midst_of_changes(void **state)
{
    (void)state;
    const char *dir = fresh_name();
    seen_users *u = open_users(dir, SEEN_WRITE);
    struct marker m[MARKERS];
    atomic_bool stop = false;
    start(m, u, NULL, &stop);
    for (int i = 0; i < CHILDREN; i++) {
        struct child c = begin(just_close, u);
        end(&c);
    }
    join(m, &stop);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    u = open_users(dir, SEEN_READ);
    for (size_t i = 0; i < MARKERS; i++)
        for (uint64_t k = 0; k < m[i].done; k++) {
            uint64_t id = m[i].first + k;
            seen_key key = {&id, sizeof id};
            bool answer = false;
            assert_int_equal(seen_users_maybe_many(u, key, 1000,
                                                   seen_keys_of(&key, 1),
                                                   &answer, NULL),
                             SEEN_OK);
            assert_true(answer);
        }
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
}

/* ---- Filter files ------------------------------------------------------- */

/* Changed in place, and beside; and one that has a time. */
static const seen_spec specs[] = {
    {.kind = SEEN_BLOCKED, .items = 3000, .fpp = 0.01},
    {.kind = SEEN_CUCKOO, .items = 3000, .fpp = 0.001},
    {.kind = SEEN_WINDOW, .last = 3000, .fpp = 0.001},
};
#define SPECS (sizeof specs / sizeof *specs)

static seen_file *open_file(const char *path, seen_mode mode,
                            const seen_spec *create)
{
    seen_file *s = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file_options o = {.mode = mode, .create = create};
    if (seen_file_open(&s, path, &o, &outcome, &error) != SEEN_OK)
        fail_msg("%s: %s", path, error.text);
    return s;
}

static void add(seen_file *s, uint64_t first, size_t n)
{
    struct test_batch b = test_batch_new(first, n);
    assert_int_equal(seen_file_add_many(s, seen_keys_of(b.keys, n), NULL, NULL),
                     SEEN_OK);
    test_batch_free(&b);
}

static void use_file(void *handle)
{
    seen_file *s = handle;
    struct test_batch b = test_batch_new(5000, 10);
    bool answers[10] = {false};
    size_t n;
    MUST(seen_file_add_many(s, seen_keys_of(b.keys, 10), &n, NULL) ==
         SEEN_INVALID);
    MUST(seen_file_visit_many(s, seen_keys_of(b.keys, 10), answers, &n, NULL) ==
         SEEN_INVALID);
    MUST(seen_file_advance(s, 1000, NULL) != SEEN_OK);
    MUST(seen_file_remove_many(s, seen_keys_of(b.keys, 10), answers, NULL,
                               NULL) != SEEN_OK);
    MUST(seen_file_sync(s, NULL) == SEEN_INVALID);
    seen_file_maybe_many(s, seen_keys_of(b.keys, 10), answers);
    for (size_t i = 0; i < 10; i++)
        MUST(answers[i]); /* who knows what its parent has added */
    test_batch_free(&b);
}

static void close_file(void *handle)
{
    use_file(handle);
    MUST(seen_file_close(handle, NULL) == SEEN_OK);
}

static void assert_holds(const char *path, uint64_t n)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = open_file(path, SEEN_READ, NULL);
    assert_int_equal(test_count_maybe(seen_file_filter(s), 0, n), n);
    seen_file_close(s, NULL);
    assert_int_equal(seen_file_verify(path, &outcome, &error), SEEN_OK);
}

static void children_do_not_harm_a_file(void **state)
{
    (void)state;
    task *const tasks[] = {do_nothing, use_file, close_file};
    for (size_t k = 0; k < SPECS; k++)
        for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++)
            for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
                const char *path = fresh_name();
                seen_file *s = open_file(path, (seen_mode)mode, &specs[k]);
                add(s, 0, 100);
                struct child c = begin(tasks[i], s);
                add(s, 100, 100);
                assert_holds(path, 200);
                assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
                s = open_file(path, SEEN_WRITE, NULL);
                assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
                end(&c);
                assert_holds(path, 200);
            }
}

static void ask_file(void *handle)
{
    struct test_batch b = test_batch_new(0, 100);
    bool answers[100];
    seen_file_maybe_many(handle, seen_keys_of(b.keys, 100), answers);
    for (size_t i = 0; i < 100; i++)
        MUST(answers[i]);
    test_batch_fill(&b, TEST_STRANGERS, 100);
    seen_file_maybe_many(handle, seen_keys_of(b.keys, 100), answers);
    size_t maybe = 0;
    for (size_t i = 0; i < 100; i++)
        maybe += answers[i];
    MUST(maybe < 20);
    test_batch_free(&b);
    MUST(seen_file_close(handle, NULL) == SEEN_OK);
}

static void a_file_that_is_read_is_asked_by_all(void **state)
{
    (void)state;
    const char *path = fresh_name();
    seen_file *s = open_file(path, SEEN_WRITE, &specs[0]);
    add(s, 0, 100);
    seen_file_close(s, NULL);
    s = open_file(path, SEEN_READ, NULL);
    struct child c = begin(ask_file, s);
    end(&c);
    seen_file_close(s, NULL);
}

static void just_close_file(void *handle)
{
    MUST(seen_file_close(handle, NULL) == SEEN_OK);
}

static void forks_in_the_midst_of_adds(void **state)
{
    (void)state;
    const char *path = fresh_name();
    const seen_spec spec = {.kind = SEEN_SET};
    seen_file *s = open_file(path, SEEN_DURABLE, &spec);
    struct marker m[MARKERS];
    atomic_bool stop = false;
    start(m, NULL, s, &stop);
    for (int i = 0; i < CHILDREN; i++) {
        struct child c = begin(just_close_file, s);
        end(&c);
    }
    join(m, &stop);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    s = open_file(path, SEEN_READ, NULL);
    for (size_t i = 0; i < MARKERS; i++)
        for (uint64_t k = 0; k < m[i].done; k++) {
            uint64_t id = m[i].first + k;
            assert_true(seen_maybe(seen_file_filter(s), &id, sizeof id));
        }
    seen_file_close(s, NULL);
}

/* ---- exec() ------------------------------------------------------------- */

/* Programs that are started inherit nothing of ours. */
static void descriptors_are_closed_by_exec(void **state)
{
    (void)state;
    bool before[1024] = {false};
    for (int fd = 0; fd < 1024; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    const char *dir = fresh_name();
    seen_users *u = open_users(dir, SEEN_DURABLE);
    mark(u, "a");
    seen_file *s = open_file(fresh_name(), SEEN_DURABLE, &specs[0]);
    int ours = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || before[fd]) continue;
        ours++;
        assert_true(flags & FD_CLOEXEC);
    }
    assert_true(ours >= 4);
    assert_int_equal(seen_users_close(u, NULL), SEEN_OK);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_do_not_harm_a_store),
        cmocka_unit_test(a_child_leaves_the_journal_to_recovery),
        cmocka_unit_test(a_child_of_a_reader_cannot_ask),
        cmocka_unit_test(a_child_may_open_the_store_itself),
        cmocka_unit_test(a_store_in_memory_is_copied),
        cmocka_unit_test(forks_in_the_midst_of_changes),
        cmocka_unit_test(children_do_not_harm_a_file),
        cmocka_unit_test(a_file_that_is_read_is_asked_by_all),
        cmocka_unit_test(forks_in_the_midst_of_adds),
        cmocka_unit_test(descriptors_are_closed_by_exec),
    };
    test_announce("fork");
    int failed = cmocka_run_group_tests_name("fork", tests, NULL, NULL);
    return failed + test_scratch_remove();
}
