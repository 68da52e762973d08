/*
 * fuzz_replies.c - libFuzzer against what servers answer.
 *
 *     0    1    which client, and which of its calls
 *     1    ..   the bytes of the server, whatever it is asked
 *
 * Each connection reads on where the one before has stopped, up to a byte 0xff,
 * where the server hangs up; behind the last byte no connection is made. The
 * client goes through the first greeting (CLUSTER SLOTS) to its replies, follows
 * MOVED and ASK to nodes that are the same server, and loads scripts.
 *
 * Every call comes back with a status; if that is not SEEN_OK there is a sentence.
 * What is allocated follows from the bytes that are there: 64 MiB at once are a
 * fault.
 */
#define _POSIX_C_SOURCE 200809L

#include "helpers/chosen.h"
#include "seen_remote.h"
#include "seen_users.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANG_UP 0xff
#define MOST    65536 /* bytes; a socket takes them at once */

static const uint8_t *bytes, *end;
static int other = -1; /* the server's end of the last connection */

static void must(bool fact)
{
    if (!fact) abort();
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=64";
}

/* ---- The server --------------------------------------------------------- */

static void hang_up(void)
{
    if (other >= 0) close(other);
    other = -1;
}

redisContext *__wrap_redisConnectWithTimeout(const char *host, int port,
                                             struct timeval wait);
redisContext *__wrap_redisConnectWithTimeout(const char *host, int port,
                                             struct timeval wait)
{
    int ends[2];
    (void)host, (void)port, (void)wait;
    hang_up();
    if (bytes == end) return NULL;
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const uint8_t *stop = memchr(bytes, HANG_UP, (size_t)(end - bytes));
    size_t len = (size_t)((stop ? stop : end) - bytes);
    must(write(ends[1], bytes, len) == (ssize_t)len);
    shutdown(ends[1], SHUT_WR);
    bytes = stop ? stop + 1 : end;
    other = ends[1];
    return redisConnectFd(ends[0]);
}

int __wrap_redisEnableKeepAlive(redisContext *c);
int __wrap_redisEnableKeepAlive(redisContext *c)
{
    (void)c;
    return REDIS_OK; /* such a socket has none */
}

/* ---- Clients ------------------------------------------------------------ */

#define WAIT "timeout=1000&patience=0"

static seen_key keys[] = {{"one", 3}, {"two", 3}, {"", 0}};
static const uint64_t numbers[] = {7, 8};
static const seen_key packed[] = {{&numbers[0], 8}, {&numbers[1], 8}};

static void use_filter(const char *url, unsigned call, const seen_key *k,
                       size_t n)
{
    static const seen_spec spec = {.items = 100, .fpp = 0.01};
    seen_remote *m = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_remote_info info = {.size = sizeof info};
    bool answers[3];
    seen_status status =
        seen_remote_open(&m, url, call & 1 ? &spec : NULL, &outcome, &error);
    must(status == SEEN_OK ? m != NULL : !m && error.text[0]);
    if (!m) return;
    switch (call >> 1 & 3) {
    case 0:
        status = seen_remote_maybe_many(m, seen_keys_of(k, n), answers, &error);
        break;
    case 1:
        status = seen_remote_add_many(m, seen_keys_of(k, n), answers, &error);
        break;
    case 2:
        status = seen_remote_info_of(m, &info, &error);
        break;
    case 3:
        status =
            seen_remote_remove_many(m, seen_keys_of(k, n), answers, &error);
        if (status == SEEN_UNSUPPORTED)
            status = seen_remote_delete(m, answers, &error);
        break;
    }
    must(error.status == status && (status != SEEN_OK) == !!error.text[0]);
    seen_remote_close(m);
}

static bool look(void *ctx, const seen_users_entry *e)
{
    size_t *n = ctx;
    must(e->user.len > 0);
    return ++*n < 100;
}

static void use_users(const char *url, unsigned call, seen_key *k, size_t n)
{
    seen_users *u = NULL;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_exposure_info info = {.size = sizeof info};
    seen_key user = {"ann", 3}, items[3];
    uint8_t record[512];
    size_t taken, len;
    bool known, answers[3];
    seen_users_options o = {.mode = call & 1 ? SEEN_WRITE : SEEN_READ};
    seen_status status = seen_remote_users(&u, url, &o, &outcome, &error);
    must(status == SEEN_OK ? u != NULL : !u && error.text[0]);
    if (!u) return;
    memcpy(items, k, n * sizeof *items);
    switch (call >> 1 & 7) {
    case 0:
        status = seen_users_maybe_many(u, user, 1, seen_keys_of(k, n), answers,
                                       NULL);
        break;
    case 1:
        status = seen_users_mark(u, user, 1, seen_keys_of(k, n), answers, NULL);
        break;
    case 2:
        status = seen_users_mark(u, user, 1, seen_keys_of(k, n), NULL, NULL);
        break;
    case 3:
        status = test_users_take(u, user, 1, items, n, 1, &taken, NULL);
        break;
    case 4:
        status = seen_users_forget_user(u, user, 1, &known, NULL);
        break;
    case 5:
        status = seen_users_info_of(u, user, 1, &info, NULL);
        break;
    case 6:
        len = 0;
        status = seen_users_each(u, 1, look, &len, NULL);
        break;
    case 7:
        status = seen_users_record(u, user, record, sizeof record, &len, NULL);
        break;
    }
    (void)status;
    seen_users_close(u, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST) return 0;
    unsigned call = data[0] >> 3;
    bytes = data + 1;
    end = data + size;
    switch (data[0] & 7) {
    case 0:
        use_filter("redis://s?key=f&" WAIT, call, keys, 3);
        break;
    case 1:
        use_filter("redis+plain://s/f?" WAIT, call, keys, 3);
        break;
    case 2:
        use_filter("redis+gozero://s/f?bits=200&" WAIT, call, keys, 3);
        break;
    case 3:
        use_filter("redis+bitmap://s/f?bits=200&" WAIT, call, packed, 2);
        break;
    case 4:
        use_users("redis://u:p@s/2?" WAIT, call, keys, 3);
        break;
    case 5:
        use_users("redis://s?" WAIT, call, (seen_key *)(uintptr_t)packed, 2);
        break;
    case 6:
        use_users("redis+list://s?n=20&p=0.1&" WAIT, call, keys, 2);
        break;
    case 7:
        use_users("redis+list://s?" WAIT, call, keys, 2);
        break;
    }
    hang_up();
    return 0;
}
