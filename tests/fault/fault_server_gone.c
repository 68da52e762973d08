/*
 * fault_server_gone.c - servers that hang up, and servers that say nothing.
 *
 * Redis itself can hardly be made to do these things at the right moment, so that
 * the servers here are sockets of this test:
 *
 *   hangs up   answers the greeting, then closes and resets the connection. The
 *              next write to it raises SIGPIPE, which ends a program that does not
 *              expect it; ours must get SEEN_IO instead, and keep its signals.
 *   silent     takes connections and never answers
 *   full       does not even take them: its queue is full
 *   away       refuses them, after it was there
 *
 * Whatever a server does, a call comes back when its patience is over. A question
 * of minutes, not of moments: an alarm ends this program if one does not.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_remote.h"
#include "seen_users.h"

#include "redis/pool.h"

#include "helpers/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WATCHDOG 60 /* seconds */
#define FILLERS  16

/* ---- Servers ------------------------------------------------------------ */

struct server {
    int listener;
    unsigned port;
    pthread_t thread;
    sem_t cut; /* a connection was hung up */
};

static struct sockaddr_in address(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    return fd;
}

static int connected(unsigned port)
{
    int fd = new_socket();
    struct sockaddr_in to = address(port);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* On a port that is free; or on this one, again. */
static struct server listening(unsigned port, int backlog)
{
    struct server s = {.listener = new_socket()};
    struct sockaddr_in at = address(port);
    socklen_t len = sizeof at;
    int on = 1;
    setsockopt(s.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(s.listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(s.listener, backlog), 0);
    assert_int_equal(getsockname(s.listener, (struct sockaddr *)&at, &len), 0);
    s.port = ntohs(at.sin_port);
    return s;
}

/* First the end of what we say, then a reset: who has seen both and writes gets
 * EPIPE and the signal with the first byte. */
static void hang_up(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    shutdown(fd, SHUT_WR);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* The first connection is greeted, the others are not; all are hung up. */
static void *hang_up_on_all(void *ctx)
{
    static const char greeting[] = "-ERR this server is alone\r\n";
    struct server *s = ctx;
    for (bool first = true;; first = false) {
        char command[4096];
        int fd = accept(s->listener, NULL, NULL);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) return NULL; /* shut down */
        if (recv(fd, command, sizeof command, 0) > 0 && first)
            (void)send(fd, greeting, sizeof greeting - 1, MSG_NOSIGNAL);
        hang_up(fd);
        sem_post(&s->cut);
    }
}

static void start_hanging_up(struct server *s)
{
    *s = listening(0, 16);
    assert_int_equal(sem_init(&s->cut, 0, 0), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, hang_up_on_all, s), 0);
}

static void stop_hanging_up(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    sem_destroy(&s->cut);
}

static void wait_for_cut(struct server *s)
{
    while (sem_wait(&s->cut) != 0)
        assert_int_equal(errno, EINTR);
}

/* ---- Clients ------------------------------------------------------------ */

/* Opens, and if that works, makes a call; the first status that is not SEEN_OK.
 * `s` may be NULL; otherwise the call waits until it has hung up. */
typedef seen_status client(const char *where, struct server *s);

static seen_status use_filter(const char *where, struct server *s)
{
    static const seen_spec spec = {.items = 1000, .fpp = 0.001};
    seen_remote *m = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    uint64_t number = 7;
    seen_key key = {&number, sizeof number};
    bool there = false;
    seen_status status = seen_remote_open(&m, where, &spec, &outcome, &error);
    if (status != SEEN_OK) {
        assert_null(m);
        assert_string_not_equal(error.text, "");
        return status;
    }
    if (s) wait_for_cut(s);
    status = seen_remote_add_many(m, seen_keys_of(&key, 1), NULL, &error);
    assert_int_equal(error.status, status);
    assert_string_not_equal(error.text, "");
    assert_int_equal(
        seen_remote_maybe_many(m, seen_keys_of(&key, 1), &there, &error),
        status);
    assert_int_equal(error.status, status);
    assert_string_not_equal(error.text, "");
    seen_remote_close(m);
    return status;
}

static seen_status use_users(const char *where, struct server *s)
{
    seen_users *u = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    uint64_t number = 7;
    seen_key key = {&number, sizeof number}, user = {"ann", 3};
    bool seen = false;
    seen_users_options o = {.mode = SEEN_WRITE};
    seen_status status = seen_remote_users(&u, where, &o, &outcome, &error);
    if (status != SEEN_OK) {
        assert_null(u);
        assert_string_not_equal(error.text, "");
        return status;
    }
    if (s) wait_for_cut(s);
    status =
        seen_users_mark(u, user, 1000, seen_keys_of(&key, 1), NULL, &error);
    assert_string_not_equal(error.text, "");
    assert_int_equal(seen_users_maybe_many(u, user, 1000, seen_keys_of(&key, 1),
                                           &seen, &error),
                     status);
    assert_string_not_equal(error.text, "");
    seen_users_close(u, NULL);
    return status;
}

static const struct way {
    const char *scheme, *rest; /* the port between, parameters behind */
    client *use;
} ways[] = {
    {"redis", "?key=f", use_filter},
    {"redis+plain", "/p?", use_filter},
    {"redis+gozero", "/g?bits=20000", use_filter},
    {"redis+bitmap", "/b?bits=20000", use_filter},
    {"redis", "?prefix=u:", use_users},
    {"redis+list", "?prefix=l:", use_users},
};

#define WAYS (sizeof ways / sizeof *ways)

static seen_status use(const struct way *w, const char *who, unsigned port,
                       const char *patience, struct server *s)
{
    char where[160];
    size_t len = strlen(w->rest);
    snprintf(where, sizeof where, "%s://%s127.0.0.1:%u%s%s%s", w->scheme, who,
             port, w->rest, w->rest[len - 1] == '?' ? "" : "&", patience);
    return w->use(where, s);
}

/* ---- Hanging up --------------------------------------------------------- */

static volatile sig_atomic_t pipes;

static void count_pipe(int signal)
{
    (void)signal;
    pipes++;
}

static void set_handler(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGPIPE, &action, NULL), 0);
}

static bool is_pending(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

static bool is_blocked(void)
{
    sigset_t mask;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    return sigismember(&mask, SIGPIPE) == 1;
}

/* Is this server as bad as it is meant to be? */
static void it_raises_the_signal_in_others(void **state)
{
    (void)state;
    struct server s;
    char byte;
    start_hanging_up(&s);
    int fd = connected(s.port);
    assert_int_equal(send(fd, "hello\r\n", 7, 0), 7);
    while (recv(fd, &byte, 1, 0) > 0)
        ;
    struct pollfd reset = {.fd = fd};
    assert_int_equal(poll(&reset, 1, WATCHDOG * 1000), 1);
    assert_true(reset.revents & (POLLERR | POLLHUP));
    set_handler(count_pipe);
    pipes = 0;
    assert_int_equal(send(fd, "again\r\n", 7, 0), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(pipes, 1);
    set_handler(SIG_DFL);
    close(fd);
    stop_hanging_up(&s);
}

static void hung_up(const struct way *w)
{
    struct server s;
    start_hanging_up(&s);
    assert_int_equal(use(w, "", s.port, "patience=1", &s), SEEN_IO);
    stop_hanging_up(&s);
}

/* By default the signal is the end of the process: who gets to the next line has
 * not met it. */
static void the_signal_ends_nobody(void **state)
{
    (void)state;
    const uint64_t rounds = 5 * test_scale();
    set_handler(SIG_DFL);
    alarm(WATCHDOG * (unsigned)test_scale());
    for (uint64_t i = 0; i < rounds; i++)
        for (size_t w = 0; w < WAYS; w++) {
            hung_up(&ways[w]);
            assert_false(is_blocked());
            assert_false(is_pending());
        }
    alarm(0);
    test_tried(rounds * WAYS, "connections hung up");
}

/* Also while it is being opened: a password is sent before anything is asked. */
static void nor_in_an_open(void **state)
{
    (void)state;
    const uint64_t rounds = 20 * test_scale();
    struct server s;
    start_hanging_up(&s);
    alarm(WATCHDOG * (unsigned)test_scale());
    for (uint64_t i = 0; i < rounds; i++)
        for (size_t w = 0; w < WAYS; w++)
            assert_int_equal(
                use(&ways[w], ":secret@", s.port, "patience=1", NULL), SEEN_IO);
    alarm(0);
    stop_hanging_up(&s);
    test_tried(rounds * WAYS, "openings hung up");
}

/* A signal that waits for the program already is not ours to take away. */
static void a_signal_of_the_program_is_kept(void **state)
{
    (void)state;
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe, &before), 0);
    alarm(WATCHDOG);
    for (size_t w = 0; w < WAYS; w++) {
        hung_up(&ways[w]);
        assert_true(is_blocked());
        assert_false(is_pending());
    }
    assert_int_equal(pthread_kill(pthread_self(), SIGPIPE), 0);
    for (size_t w = 0; w < WAYS; w++) {
        hung_up(&ways[w]);
        assert_true(is_blocked());
        assert_true(is_pending());
    }
    alarm(0);
    assert_int_equal(sigtimedwait(&pipe, NULL, &(struct timespec){0}), SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* ---- Silence ------------------------------------------------------------ */

#define SHORT "timeout=50&patience=100"

/* Whoever connects is let in by the kernel, and that is all. */
static void silence_ends_with_the_patience(void **state)
{
    (void)state;
    struct server s = listening(0, 1000);
    alarm(WATCHDOG);
    for (size_t w = 0; w < WAYS; w++) {
        assert_int_equal(use(&ways[w], "", s.port, SHORT, NULL), SEEN_IO);
        assert_int_equal(use(&ways[w], ":secret@", s.port, SHORT, NULL),
                         SEEN_IO);
    }
    alarm(0);
    close(s.listener);
    test_tried(2 * WAYS, "silences");
}

/* Those who wait in front of the queue; it holds one or two. */
static void fill(const struct server *s, int fillers[FILLERS])
{
    struct sockaddr_in to = address(s->port);
    for (size_t i = 0; i < FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(fillers[i] >= 0);
        if (connect(fillers[i], (struct sockaddr *)&to, sizeof to))
            assert_int_equal(errno, EINPROGRESS);
    }
    struct pollfd last = {.fd = fillers[FILLERS - 1], .events = POLLOUT};
    assert_int_equal(poll(&last, 1, 100), 0); /* it is full */
}

static void a_full_queue_does_too(void **state)
{
    (void)state;
    struct server s = listening(0, 0);
    int fillers[FILLERS];
    fill(&s, fillers);
    alarm(WATCHDOG);
    for (size_t w = 0; w < WAYS; w++)
        assert_int_equal(use(&ways[w], "", s.port, SHORT, NULL), SEEN_IO);
    alarm(0);
    for (size_t i = 0; i < FILLERS; i++)
        close(fillers[i]);
    close(s.listener);
    test_tried(WAYS, "full queues");
}

/* ---- New connections ---------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A pool whose only connection is in use, and whose server is away. */
static struct seen_connection *forsaken(struct seen_pool *p, unsigned *port,
                                        const char *parameters)
{
    struct server s = listening(0, 16);
    struct seen_connection *connection = NULL;
    seen_error error = {0};
    char rest[100];
    snprintf(rest, sizeof rest, "//127.0.0.1:%u?timeout=50&%s", s.port,
             parameters);
    assert_int_equal(seen_pool_open(p, rest, false, &error), SEEN_OK);
    assert_int_equal(seen_pool_take(p, &connection, &error), SEEN_OK);
    close(s.listener);
    *port = s.port;
    return connection;
}

static void who_was_there_is_waited_for_but_not_for_ever(void **state)
{
    (void)state;
    struct seen_pool p;
    struct seen_connection *more = NULL;
    seen_error error = {0};
    unsigned port;
    alarm(WATCHDOG);
    struct seen_connection *connection = forsaken(&p, &port, "patience=300");
    uint64_t began = now_ms();
    assert_int_equal(seen_pool_take(&p, &more, &error), SEEN_IO);
    assert_true(now_ms() - began >= 300);
    assert_null(more);
    assert_string_not_equal(error.text, "");
    alarm(0);
    seen_pool_return(&p, connection);
    seen_pool_close(&p);
}

/* What happens in the middle of somebody's patience. */
struct later {
    struct seen_pool *pool;
    struct seen_connection *connection; /* given back; or NULL: */
    unsigned port;                      /* the server is back, here */
    struct server server;
};

static void *happen(void *ctx)
{
    struct later *l = ctx;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    if (l->connection)
        seen_pool_return(l->pool, l->connection);
    else
        l->server = listening(l->port, 16);
    return NULL;
}

static struct seen_connection *take_meanwhile(struct later *l)
{
    struct seen_connection *connection = NULL;
    seen_error error = {0};
    pthread_t thread;
    alarm(WATCHDOG);
    assert_int_equal(pthread_create(&thread, NULL, happen, l), 0);
    assert_int_equal(seen_pool_take(l->pool, &connection, &error), SEEN_OK);
    pthread_join(thread, NULL);
    alarm(0);
    assert_non_null(connection);
    return connection;
}

static void the_wait_ends_when_there_is_something_to_take(void **state)
{
    (void)state;
    struct seen_pool p;
    struct later l = {.pool = &p};
    /* 1. Somebody gives one back. */
    struct seen_connection *connection =
        forsaken(&p, &l.port, "patience=3600000");
    l.connection = connection;
    assert_ptr_equal(take_meanwhile(&l), connection);
    /* 2. The server is back. */
    l.connection = NULL;
    struct seen_connection *more = take_meanwhile(&l);
    assert_ptr_not_equal(more, connection);
    seen_pool_return(&p, more);
    seen_pool_return(&p, connection);
    seen_pool_close(&p);
    close(l.server.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_raises_the_signal_in_others),
        cmocka_unit_test(the_signal_ends_nobody),
        cmocka_unit_test(nor_in_an_open),
        cmocka_unit_test(a_signal_of_the_program_is_kept),
        cmocka_unit_test(silence_ends_with_the_patience),
        cmocka_unit_test(a_full_queue_does_too),
        cmocka_unit_test(who_was_there_is_waited_for_but_not_for_ever),
        cmocka_unit_test(the_wait_ends_when_there_is_something_to_take),
    };
    test_announce("fault_server_gone");
    return cmocka_run_group_tests_name("fault_server_gone", tests, NULL, NULL);
}
