/*
 * fault_server_fork.c - filters on a server on both sides of a fork(). Argument: the
 * port of a server with our module (tests/server/with_server.py starts both).
 *
 * Two processes on one connection would get each other's replies. So every call in
 * the child is SEEN_INVALID and says why, and closing the child's copy leaves the
 * parent's connection alone: the parent goes on with it, and makes no other.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_remote.h"

#include "helpers/harness.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int port;
static const uint64_t number = 7;
static const seen_spec spec = {.items = 1000, .fpp = 0.001};

static const struct {
    const char *scheme, *rest; /* the port between */
} filters[] = {
    {"redis", "?key=f"},
    {"redis+plain", "/p"},
    {"redis+gozero", "/g?bits=20000"},
    {"redis+bitmap", "/b?bits=20000"},
};

/* How many connections the server has had. */
static unsigned long connections(redisContext *control)
{
    static const char name[] = "total_connections_received:";
    redisReply *r = redisCommand(control, "INFO stats");
    assert_non_null(r);
    const char *at = strstr(r->str, name);
    assert_non_null(at);
    unsigned long n = strtoul(at + strlen(name), NULL, 10);
    freeReplyObject(r);
    return n;
}

/* What a child expects; cmocka's assertions would go on in the wrong process. */
static void must(bool good, int line)
{
    if (good) return;
    fprintf(stderr, "fault_server_fork.c:%d, in a child\n", line);
    _exit(1);
}
#define MUST(good) must((good), __LINE__)

static void refused(seen_status status, const seen_error *e, int line)
{
    must(status == SEEN_INVALID && e->status == status, line);
    must(strstr(e->text, "belongs to process") != NULL, line);
    must(strstr(e->text, "fork()") != NULL, line);
}
#define REFUSED(call) refused((call), &error, __LINE__)

static void in_the_child(seen_remote *m, bool is_bitmap)
{
    seen_error error;
    bool answer = false;
    seen_remote_info info = {.size = sizeof info};
    alarm(60); /* a deadlock is a failure */
    REFUSED(
        seen_remote_maybe_many(m, seen_keys_u64(&number, 1), &answer, &error));
    REFUSED(
        seen_remote_add_many(m, seen_keys_u64(&number, 1), &answer, &error));
    if (is_bitmap)
        REFUSED(seen_remote_remove_many(m, seen_keys_u64(&number, 1), &answer,
                                        &error));
    REFUSED(seen_remote_expire(m, 1000, &answer, &error));
    REFUSED(seen_remote_delete(m, &answer, &error));
    REFUSED(seen_remote_info_of(m, &info, &error));
    MUST(!answer);
    seen_remote_close(m);
    _exit(0);
}

static void a_child_leaves_the_connection_alone(void **state)
{
    (void)state;
    redisContext *control = redisConnect("127.0.0.1", port);
    assert_true(control && !control->err);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        char url[100];
        seen_remote *m = NULL;
        seen_error error;
        bool answer = false;
        int status = -1;
        snprintf(url, sizeof url, "%s://127.0.0.1:%d%s", filters[i].scheme,
                 port, filters[i].rest);
        assert_int_equal(seen_remote_open(&m, url, &spec, NULL, &error),
                         SEEN_OK);
        assert_int_equal(
            seen_remote_add_many(m, seen_keys_u64(&number, 1), NULL, &error),
            SEEN_OK);
        unsigned long before = connections(control);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) in_the_child(m, strstr(url, "bitmap"));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(seen_remote_maybe_many(m, seen_keys_u64(&number, 1),
                                                &answer, &error),
                         SEEN_OK);
        assert_true(answer);
        assert_int_equal(connections(control), before);
        seen_remote_close(m);
    }
    redisFree(control);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_leaves_the_connection_alone),
    };
    test_announce("fault_server_fork");
    if (argc != 2) {
        fprintf(stderr, "usage: fault_server_fork PORT\n");
        return 2;
    }
    port = atoi(argv[1]);
    return cmocka_run_group_tests_name("fault_server_fork", tests, NULL, NULL);
}
