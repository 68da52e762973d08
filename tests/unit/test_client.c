/*
 * test_client.c - the client of servers against a server that says what it is told
 * to: whose failure a run reports, that threads keep theirs apart, and which nodes
 * of a cluster it remembers.
 *
 * The server is one thread that listens on all addresses, and 127.x.y.z are all of
 * this machine: to the client, each is a node of its own.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_remote.h"

#include "redis/client.h"
#include "redis/reply.h"

#include "helpers/harness.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 64
#define WATCHDOG    60 /* seconds */

/* ---- The server --------------------------------------------------------- */

struct guest {
    int fd; /* -1: free */
    char here[INET_ADDRSTRLEN];
    char in[4096];
    size_t len;
};

static struct {
    int listener;
    unsigned port;
    pthread_t thread;
    struct guest guest[CONNECTIONS];
    pthread_mutex_t lock;        /* for what follows */
    char owner[INET_ADDRSTRLEN]; /* of all slots; "": no cluster */
    unsigned later;              /* so many LATERs are answered LOADING */
    unsigned open;               /* connections */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say(const struct guest *g, const char *text)
{
    (void)send(g->fd, text, strlen(text), MSG_NOSIGNAL);
}

/*
 * CLUSTER SLOTS   all of them belong to the owner
 * WHO key         which address this is, if it is the owner's
 * ASK key         sends to 127.9.9.9, which has it
 * LATER key       LOADING, so many times; then OK
 * GETBIT key n    an error about n
 * TYPE, STRLEN    of an empty string
 * SAY key reply   that
 */
static void answer(const struct guest *g, char *const word[4])
{
    char text[200];
    const char *owner = server.owner;
    if (strcmp(word[0], "CLUSTER") == 0 && *owner)
        snprintf(text, sizeof text,
                 "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%zu\r\n%s\r\n:%u\r\n",
                 strlen(owner), owner, server.port);
    else if (strcmp(word[0], "CLUSTER") == 0)
        snprintf(text, sizeof text, "-ERR this server is alone\r\n");
    else if (strcmp(word[0], "WHO") == 0 && strcmp(g->here, owner) != 0)
        snprintf(text, sizeof text, "-MOVED 0 %s:%u\r\n", owner, server.port);
    else if (strcmp(word[0], "WHO") == 0)
        snprintf(text, sizeof text, "+%s\r\n", g->here);
    else if (strcmp(word[0], "ASK") == 0 && strcmp(g->here, "127.9.9.9") != 0)
        snprintf(text, sizeof text, "-ASK 0 127.9.9.9:%u\r\n", server.port);
    else if (strcmp(word[0], "LATER") == 0 && server.later > 0)
        snprintf(text, sizeof text, "-LOADING number %u\r\n", server.later--);
    else if (strcmp(word[0], "GETBIT") == 0)
        snprintf(text, sizeof text, "-ERR number %s\r\n", word[2]);
    else if (strcmp(word[0], "TYPE") == 0)
        snprintf(text, sizeof text, "+string\r\n");
    else if (strcmp(word[0], "STRLEN") == 0)
        snprintf(text, sizeof text, ":0\r\n");
    else if (strcmp(word[0], "SAY") == 0)
        snprintf(text, sizeof text, "%s\r\n", word[2]);
    else
        snprintf(text, sizeof text, "+OK\r\n");
    say(g, text);
}

/* "*2\r\n$3\r\nWHO\r\n$1\r\nk\r\n": its words; how many bytes, 0: not all is there. */
static size_t take_command(struct guest *g, char *word[4])
{
    char *at = g->in, *end = g->in + g->len;
    char *line = memchr(at, '\n', g->len);
    if (!line) return 0;
    size_t words = strtoul(at + 1, NULL, 10);
    at = line + 1;
    for (size_t i = 0; i < words; i++) {
        line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line) return 0;
        size_t len = strtoul(at + 1, NULL, 10);
        if (len + 3 > (size_t)(end - line)) return 0;
        if (i < 4) word[i] = line + 1;
        at = line + 1 + len + 2;
    }
    for (size_t i = 0; i < words && i < 4; i++)
        *strchr(word[i], '\r') = '\0';
    return (size_t)(at - g->in);
}

static void leave(struct guest *g)
{
    close(g->fd);
    g->fd = -1;
    server.open--;
}

static void listen_to(struct guest *g)
{
    char *word[4] = {NULL};
    ssize_t n = recv(g->fd, g->in + g->len, sizeof g->in - g->len, 0);
    if (n <= 0) {
        leave(g);
        return;
    }
    g->len += (size_t)n;
    for (size_t used; (used = take_command(g, word)) > 0;) {
        answer(g, word);
        g->len -= used;
        memmove(g->in, g->in + used, g->len);
    }
}

static bool let_in(void)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = accept(server.listener, NULL, NULL);
    if (fd < 0) return false;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct guest *g = &server.guest[i];
        if (g->fd >= 0) continue;
        *g = (struct guest){.fd = fd};
        getsockname(fd, (struct sockaddr *)&at, &len);
        inet_ntop(AF_INET, &at.sin_addr, g->here, sizeof g->here);
        server.open++;
        return true;
    }
    close(fd);
    return true;
}

static void *serve(void *ctx)
{
    (void)ctx;
    for (bool on = true; on;) {
        struct pollfd wait[CONNECTIONS + 1];
        for (size_t i = 0; i < CONNECTIONS; i++)
            wait[i] =
                (struct pollfd){.fd = server.guest[i].fd, .events = POLLIN};
        wait[CONNECTIONS] =
            (struct pollfd){.fd = server.listener, .events = POLLIN};
        if (poll(wait, CONNECTIONS + 1, -1) < 0) continue;
        pthread_mutex_lock(&server.lock);
        for (size_t i = 0; i < CONNECTIONS; i++)
            if (wait[i].revents) listen_to(&server.guest[i]);
        if (wait[CONNECTIONS].revents) on = let_in();
        pthread_mutex_unlock(&server.lock);
    }
    return NULL;
}

static int start(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server.listener, (struct sockaddr *)&at, len) != 0 ||
        listen(server.listener, CONNECTIONS) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&at, &len) != 0)
        return -1;
    server.port = ntohs(at.sin_port);
    for (size_t i = 0; i < CONNECTIONS; i++)
        server.guest[i].fd = -1;
    alarm(WATCHDOG * (unsigned)test_scale());
    return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop(void **state)
{
    (void)state;
    shutdown(server.listener, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.listener);
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (server.guest[i].fd >= 0) leave(&server.guest[i]);
    return 0;
}

static void set_owner(const char *address)
{
    pthread_mutex_lock(&server.lock);
    snprintf(server.owner, sizeof server.owner, "%s", address);
    pthread_mutex_unlock(&server.lock);
}

static void set_later(unsigned times)
{
    pthread_mutex_lock(&server.lock);
    server.later = times;
    pthread_mutex_unlock(&server.lock);
}

/* ---- The client --------------------------------------------------------- */

static seen_redis *connected(unsigned patience)
{
    struct seen_url url;
    seen_redis *c = NULL;
    seen_error error = {0};
    char rest[80];
    snprintf(rest, sizeof rest, "//127.0.0.1:%u?patience=%u", server.port,
             patience);
    assert_int_equal(seen_url_parse(rest, &url, &error), SEEN_OK);
    assert_int_equal(seen_redis_open(&c, &url, 0, &error), SEEN_OK);
    return c;
}

static struct seen_command command(const char **argv, size_t *len, int argc)
{
    for (int i = 0; i < argc; i++)
        len[i] = strlen(argv[i]);
    return (struct seen_command){
        .argc = argc, .argv = argv, .len = len, .key = 1, .repeatable = true};
}

/* ---- Whose failure it is ------------------------------------------------ */

/* Commands, and what becomes of each; LATER is loading for the first round, or for
 * as long as there is patience. */
enum {
    WAITS,
    WRONG,
    UNKNOWN,
    GOOD,
    KINDS
};

static const char *const words[KINDS][3] = {
    [WAITS] = {"LATER", "k"},
    [WRONG] = {"SAY", "k", "-WRONGTYPE of a key"},
    [UNKNOWN] = {"SAY", "k", "-ERR unknown command 'SAY'"},
    [GOOD] = {"SAY", "k", ":1"},
};

static void first_failure(seen_redis *c, const unsigned *kinds, size_t n,
                          bool ends)
{
    struct seen_command k[4];
    size_t len[4][3];
    seen_error error = {0};
    seen_status status = SEEN_OK;
    const char *says = "";
    for (size_t i = 0; i < n; i++) {
        const char *const *w = words[kinds[i]];
        k[i] = command((const char **)(uintptr_t)w, len[i], w[2] ? 3 : 2);
        if (status != SEEN_OK || kinds[i] == GOOD) continue;
        if (kinds[i] == WAITS && ends) continue;
        status = kinds[i] == UNKNOWN ? SEEN_UNSUPPORTED : SEEN_IO;
        says = kinds[i] == WAITS   ? "LOADING"
               : kinds[i] == WRONG ? "WRONGTYPE"
                                   : "unknown command";
    }
    set_later(ends ? 1 : UINT32_MAX);
    assert_int_equal(seen_redis_run(c, k, n, &error), status);
    assert_int_equal(error.status, status);
    if (status == SEEN_OK)
        assert_string_equal(error.text, "");
    else
        assert_non_null(strstr(error.text, says));
    seen_redis_done(k, n);
}

/* All batches of up to three. */
static void status_and_sentence_are_of_the_first_that_failed(void **state)
{
    (void)state;
    uint64_t tried = 0;
    set_owner("");
    for (int ends = 0; ends < 2; ends++) {
        seen_redis *c = connected(ends ? 5000 : 30);
        for (unsigned i = 0; i < KINDS * KINDS * KINDS; i++) {
            unsigned kinds[3] = {i % KINDS, i / KINDS % KINDS,
                                 i / KINDS / KINDS};
            first_failure(c, kinds, 1 + i % 3, ends);
            tried++;
        }
        seen_redis_close(c);
    }
    test_tried(tried, "batches with failures");
}

/* ---- Threads ------------------------------------------------------------ */

#define THREADS 8
#define BOUND   1000000

struct failing {
    pthread_t thread;
    seen_remote *m;
    uint64_t first;
    uint64_t wrong; /* sentences about something else */
};

/* By turns the server refuses a number and the library does. */
static void *fail_often(void *ctx)
{
    struct failing *f = ctx;
    for (uint64_t i = 0; i < 200; i++) {
        bool refused = i % 2, answer;
        uint64_t number = (refused ? BOUND : 0) + f->first + i;
        char says[40];
        seen_error error;
        if (refused)
            snprintf(says, sizeof says, "%" PRIu64 " is not below", number);
        else
            snprintf(says, sizeof says, "number %" PRIu64, number);
        seen_status status = seen_remote_maybe_many(
            f->m, seen_keys_u64(&number, 1), &answer, &error);
        const char *field = error.field ? error.field : "";
        f->wrong += status != (refused ? SEEN_INVALID : SEEN_IO) ||
                    error.status != status || !strstr(error.text, says) ||
                    strcmp(field, refused ? "keys" : "") != 0;
    }
    return NULL;
}

static void threads_fail_each_with_its_own_sentence(void **state)
{
    (void)state;
    struct failing f[THREADS];
    seen_remote *m = NULL;
    seen_error error;
    char url[80];
    set_owner("");
    snprintf(url, sizeof url, "redis+bitmap://127.0.0.1:%u/b?bits=%d",
             server.port, BOUND);
    assert_int_equal(seen_remote_open(&m, url, NULL, NULL, &error), SEEN_OK);
    for (uint64_t i = 0; i < THREADS; i++) {
        f[i] = (struct failing){.m = m, .first = i * 1000};
        assert_int_equal(pthread_create(&f[i].thread, NULL, fail_often, &f[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(f[i].thread, NULL);
        assert_int_equal(f[i].wrong, 0);
    }
    seen_remote_close(m);
}

/* Before anybody is asked: nothing listens there. */
static void specs_that_no_server_can_keep_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        seen_spec spec;
    } bad[] = {{"reserved", {.items = 10, .fpp = 0.1, .reserved = {0, 1}}},
               {"flags", {.items = 10, .fpp = 0.1, .flags = SEEN_KEYED}},
               {"kind", {.items = 10, .fpp = 0.1, .kind = SEEN_CUCKOO}}};
    static const char *const urls[] = {"redis://127.0.0.1:1?key=b",
                                       "redis+plain://127.0.0.1:1?key=b",
                                       "redis+gozero://127.0.0.1:1/b?bits=8",
                                       "redis+bitmap://127.0.0.1:1/b?bits=8"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < sizeof urls / sizeof *urls; k++) {
            seen_remote *m = NULL;
            seen_error e;
            assert_int_equal(
                seen_remote_open(&m, urls[k], &bad[i].spec, NULL, &e),
                SEEN_INVALID);
            assert_string_equal(e.field, bad[i].field);
        }
}

/* ---- Nodes -------------------------------------------------------------- */

static void ask_who(seen_redis *c, const char *expected)
{
    const char *argv[] = {"WHO", "k"};
    size_t len[2];
    seen_error error = {0};
    struct seen_command k = command(argv, len, 2);
    set_owner(expected);
    seen_status status = seen_redis_run(c, &k, 1, &error);
    if (status != SEEN_OK) print_message("%s: %s\n", expected, error.text);
    assert_int_equal(status, SEEN_OK);
    assert_string_equal(seen_reply_status(k.reply), expected);
    seen_redis_done(&k, 1);
}

/* Also connections to nodes that are gone are: one to the node that was named, one
 * to the owner, and perhaps one to who has just been it. */
static void nodes_that_are_gone_are_forgotten(void **state)
{
    (void)state;
    const unsigned changes = 3 * SEEN_REDIS_PRIMARIES;
    set_owner("127.0.0.1");
    seen_redis *c = connected(5000);
    for (unsigned i = 0; i < changes; i++) {
        char address[INET_ADDRSTRLEN];
        snprintf(address, sizeof address, "127.1.%u.%u", i / 200, 1 + i % 200);
        ask_who(c, address);
    }
    pthread_mutex_lock(&server.lock);
    unsigned open = server.open;
    pthread_mutex_unlock(&server.lock);
    assert_true(open <= 4);
    seen_redis_close(c);
    test_tried(changes, "changes of addresses");
}

/* A node that takes over a slot is in no map yet. */
static void who_is_sent_somewhere_gets_there(void **state)
{
    (void)state;
    const char *ask[] = {"ASK", "k"}, *who[] = {"WHO", "k"};
    size_t len[2][2];
    seen_error error = {0};
    set_owner("127.0.0.1");
    seen_redis *c = connected(5000);
    set_owner("127.2.2.2"); /* so that the map is asked for in between */
    struct seen_command k[] = {command(ask, len[0], 2),
                               command(who, len[1], 2)};
    assert_int_equal(seen_redis_run(c, k, 2, &error), SEEN_OK);
    assert_string_equal(seen_reply_status(k[0].reply), "OK");
    assert_string_equal(seen_reply_status(k[1].reply), "127.2.2.2");
    seen_redis_done(k, 2);
    seen_redis_close(c);
}

/* Whoever walks from node to node must notice. */
static void another_address_is_another_map(void **state)
{
    (void)state;
    struct seen_primaries before, after;
    seen_error error = {0};
    set_owner("127.3.3.3");
    seen_redis *c = connected(100);
    assert_int_equal(seen_redis_primaries(c, &before, &error), SEEN_OK);
    assert_int_equal(before.n, 1);
    assert_int_equal(seen_redis_primaries(c, &after, &error), SEEN_OK);
    assert_int_equal(after.map, before.map);
    set_owner("127.4.4.4");
    assert_int_equal(seen_redis_primaries(c, &after, &error), SEEN_OK);
    assert_int_not_equal(after.map, before.map);

    const char *argv[] = {"SAY", "k", ":1"};
    size_t len[3];
    struct seen_command k = command(argv, len, 3);
    k.primary = after.at[0];
    assert_int_equal(seen_redis_run(c, &k, 1, &error), SEEN_OK);
    seen_redis_done(&k, 1);
    set_owner("127.0.0.1"); /* and so the other is gone */
    assert_int_equal(seen_redis_primaries(c, &before, &error), SEEN_OK);
    assert_int_equal(seen_redis_run(c, &k, 1, &error), SEEN_BUSY);
    assert_non_null(strstr(error.text, "left the cluster"));
    seen_redis_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_sentence_are_of_the_first_that_failed),
        cmocka_unit_test(threads_fail_each_with_its_own_sentence),
        cmocka_unit_test(specs_that_no_server_can_keep_are_refused),
        cmocka_unit_test(nodes_that_are_gone_are_forgotten),
        cmocka_unit_test(who_is_sent_somewhere_gets_there),
        cmocka_unit_test(another_address_is_another_map),
    };
    test_announce("test_client");
    return cmocka_run_group_tests_name("client", tests, start, stop);
}
