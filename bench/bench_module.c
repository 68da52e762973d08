/*
 * bench_module.c - what the module costs its server, in processor time of the
 * server's thread (INFO cpu), so that neither this client nor the network counts.
 *
 *     bench_module [--json] [--quick] SEEN.SO NOOP.SO
 *
 * The limit beside each figure is a module command that only looks at the same
 * arguments (noop_module.c), in the same server, taking turns. Figures of
 * RedisBloom 2.8 are quoted: measured on the same kind of machine, not here.
 */
#define _GNU_SOURCE

#include "bench.h"
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 50
#define ROUNDS      5

static int port;

static void start_server(const char *seen, const char *noop)
{
    char seen_path[PATH_MAX], noop_path[PATH_MAX];
    if (!realpath(seen, seen_path) || !realpath(noop, noop_path))
        bench_die("%s or %s is not there", seen, noop);
    const char *const more[] = {"--loadmodule", seen_path, "--loadmodule",
                                noop_path, NULL};
    port = bench_server_start(more);
}

/* ---- A connection ------------------------------------------------------- */

struct connection {
    int fd;
    char in[1 << 16];
    size_t at, have;
};

static struct connection connections[CONNECTIONS];

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    for (int tries = 0; tries < 200; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0) bench_die("socket: %s", strerror(errno));
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            return fd;
        }
        close(fd);
        usleep(20000);
    }
    bench_die("the server does not answer: is redis-server installed?");
}

static void send_all(struct connection *c, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(c->fd, at, len);
        if (sent <= 0) bench_die("the server is gone");
        at += sent;
        len -= (size_t)sent;
    }
}

static char next_byte(struct connection *c)
{
    if (c->at == c->have) {
        ssize_t got = read(c->fd, c->in, sizeof c->in);
        if (got <= 0) bench_die("the server is gone");
        c->at = 0;
        c->have = (size_t)got;
    }
    return c->in[c->at++];
}

static void skip(struct connection *c, size_t n)
{
    while (n > 0) {
        size_t some = c->have - c->at < n ? c->have - c->at : n;
        c->at += some;
        n -= some;
        if (n > 0) {
            next_byte(c);
            n--;
        }
    }
}

/* Reads one reply. Its number: of an integer, of elements, of bytes. `text`
 * takes a bulk string. */
static long long read_reply(struct connection *c, char *text, size_t cap)
{
    char line[512];
    size_t len = 0;
    char kind = next_byte(c), byte;
    while ((byte = next_byte(c)) != '\n')
        if (len + 1 < sizeof line) line[len++] = byte;
    line[len] = 0;
    if (kind == '-') bench_die("the server says: %s", line);
    long long n = kind == '+' ? 0 : atoll(line);
    if (kind == '$' && n >= 0) {
        if (text) {
            for (long long i = 0; i < n; i++) {
                byte = next_byte(c);
                if ((size_t)i + 1 < cap) text[i] = byte;
            }
            text[(size_t)n < cap ? (size_t)n : cap - 1] = 0;
            skip(c, 2);
        } else {
            skip(c, (size_t)n + 2);
        }
    }
    for (long long i = 0; kind == '*' && i < n; i++)
        read_reply(c, NULL, 0);
    return n;
}

/* ---- Commands ----------------------------------------------------------- */

struct text {
    char *at;
    size_t len, cap;
};

static void append(struct text *t, const void *data, size_t len)
{
    if (t->len + len > t->cap) {
        t->cap = 2 * (t->len + len);
        t->at = realloc(t->at, t->cap);
        if (!t->at) bench_die("no memory");
    }
    memcpy(t->at + t->len, data, len);
    t->len += len;
}

static void begin(struct text *t, size_t words)
{
    char head[32];
    append(t, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", words));
}

static void word_of(struct text *t, const void *data, size_t len)
{
    char head[32];
    append(t, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", len));
    append(t, data, len);
    append(t, "\r\n", 2);
}

static void word(struct text *t, const char *text)
{
    word_of(t, text, strlen(text));
}

static void item(struct text *t, uint64_t number)
{
    char name[32];
    int len = snprintf(name, sizeof name, "item:%015" PRIu64, number);
    word_of(t, name, (size_t)len);
}

static void call(const char *first, ...)
{
    struct text t = {0};
    const char *words[16] = {first};
    size_t n = 1;
    __builtin_va_list list;
    __builtin_va_start(list, first);
    while ((words[n] = __builtin_va_arg(list, const char *)))
        n++;
    __builtin_va_end(list);
    begin(&t, n);
    for (size_t i = 0; i < n; i++)
        word(&t, words[i]);
    send_all(connections, t.at, t.len);
    read_reply(connections, NULL, 0);
    free(t.at);
}

/* A number out of INFO. */
static double info(const char *section, const char *field)
{
    static char text[1 << 16];
    struct text t = {0};
    begin(&t, 2);
    word(&t, "INFO");
    word(&t, section);
    send_all(connections, t.at, t.len);
    read_reply(connections, text, sizeof text);
    free(t.at);
    char *at = strstr(text, field);
    if (!at) bench_die("INFO %s has no %s", section, field);
    return atof(at + strlen(field) + 1);
}

static double server_seconds(void)
{
    return info("cpu", "used_cpu_user_main_thread") +
           info("cpu", "used_cpu_sys_main_thread");
}

/* ---- Load --------------------------------------------------------------- */

/* Writes one command; `number` counts them. */
typedef void (*writer)(struct text *t, uint64_t number, void *context);

/* Seconds of the server for so many commands, `depth` at a time from each of the
 * connections. */
static double load(writer write_one, void *context, size_t commands,
                   size_t depth)
{
    static struct text t;
    uint64_t number = 0;
    double before = server_seconds();
    while (number < commands) {
        for (size_t c = 0; c < CONNECTIONS; c++) {
            t.len = 0;
            for (size_t i = 0; i < depth; i++)
                write_one(&t, number++, context);
            send_all(&connections[c], t.at, t.len);
        }
        for (size_t c = 0; c < CONNECTIONS; c++)
            for (size_t i = 0; i < depth; i++)
                read_reply(&connections[c], NULL, 0);
    }
    return (server_seconds() - before) / (double)number;
}

/* ---- BF ----------------------------------------------------------------- */

struct shape {
    const char *command;
    size_t items; /* in a command */
    uint64_t first, range;
};

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void write_items(struct text *t, uint64_t number, void *context)
{
    const struct shape *s = context;
    begin(t, 2 + s->items);
    word(t, s->command);
    word(t, "filter");
    for (size_t i = 0; i < s->items; i++) {
        uint64_t n = number * s->items + i;
        item(t,
             s->range ? s->first + scramble(n + 1) % s->range : s->first + n);
    }
}

static void fill_filter(uint64_t keys)
{
    char capacity[32];
    struct shape add = {"BF.MADD", 1000, 0, 0};
    bench_note("a filter of %" PRIu64 " items at 0.1 %%", keys);
    snprintf(capacity, sizeof capacity, "%" PRIu64, keys);
    call("DEL", "filter", NULL);
    call("BF.RESERVE", "filter", "0.001", capacity, NULL);
    /* Not all: the adds that are measured go into the rest. */
    load(write_items, &add, (size_t)(keys * 8 / 10 / 1000), 1);
}

static double us_per_item(const struct shape *s, size_t commands, size_t depth)
{
    struct shape copy = *s;
    return load(write_items, &copy, commands, depth) * 1e6 / (double)s->items;
}

/* One item a command, half of them there; adds of new ones. */
static void single_rows(uint64_t keys, const char *name_exists,
                        const char *name_add)
{
    struct bench_series exists = {0}, add = {0}, read_one = {0},
                        write_one = {0}, opening = {0}, changing = {0};
    uint64_t fresh = keys * 2;
    size_t adds = keys < 1000000 ? 5000 : 20000;
    for (int round = 0; round < ROUNDS; round++) {
        struct shape s = {"noop.read", 1, 0, 2 * keys};
        bench_round(&read_one, us_per_item(&s, 100000, 100));
        s.command = "BF.EXISTS";
        bench_round(&exists, us_per_item(&s, 100000, 100));
        s.command = "noop.open";
        bench_round(&opening, us_per_item(&s, 100000, 100));
        s.command = "noop.write";
        bench_round(&write_one, us_per_item(&s, 100000, 100));
        s.command = "noop.change";
        bench_round(&changing, us_per_item(&s, 100000, 100));
        struct shape a = {"BF.ADD", 1, fresh, 0};
        bench_round(&add, us_per_item(&a, adds, 100));
        fresh += adds;
    }
    struct bench_row row = {.name = name_exists,
                            .unit = "us",
                            .ours = exists,
                            .limit_name = "no-op",
                            .limit = read_one,
                            .what = BENCH_LIMIT_AT_MOST,
                            .aim = 1.25};
    bench_print(&row);
    row.name = name_add;
    row.ours = add;
    row.limit = write_one;
    bench_print(&row);
    row.name = "... EXISTS, no-op that opens its key";
    row.ours = exists;
    row.limit = opening;
    row.what = BENCH_NO_AIM;
    bench_print(&row);
    row.name = "... ADD, no-op that opens it and tells";
    row.ours = add;
    row.limit = changing;
    bench_print(&row);
}

static void filter_rows(bool quick)
{
    uint64_t keys = quick ? 1000000 : 10000000;
    struct bench_series mexists = {0}, madd = {0}, noop = {0}, noop_many = {0};
    uint64_t fresh = keys;
    fill_filter(keys);
    for (int round = 0; round < ROUNDS; round++) {
        struct shape s = {"noop.read", 100, 0, 2 * keys};
        bench_round(&noop, us_per_item(&s, 5000, 10));
        s.command = "noop.many";
        bench_round(&noop_many, us_per_item(&s, 5000, 10));
        s.command = "BF.MEXISTS"; /* half of them are there */
        bench_round(&mexists, us_per_item(&s, 5000, 10));
        struct shape w = {"BF.MADD", 100, fresh, 0};
        size_t adds = (size_t)(keys / 10 / 2 / ROUNDS / 100);
        bench_round(&madd, us_per_item(&w, adds, 10));
        fresh += keys / 10 / 2 / ROUNDS + CONNECTIONS * 1000;
    }
    struct bench_row row = {.name = "BF.MEXISTS x100, an item",
                            .unit = "us",
                            .ours = mexists,
                            .peer_name = "RedisBloom (quoted)",
                            .peer = bench_once(0.341),
                            .limit_name = "no-op",
                            .limit = noop,
                            .what = BENCH_OURS_AT_MOST,
                            .aim = 0.15};
    bench_print(&row);
    row.name = "BF.MADD x100, an item";
    row.ours = madd;
    row.peer = bench_once(0.527);
    row.aim = 0.17;
    bench_print(&row);
    row.name = "BF.MEXISTS x100 against no-op";
    row.ours = mexists;
    row.peer_name = NULL;
    row.what = BENCH_LIMIT_AT_MOST;
    row.aim = 2.0;
    bench_print(&row);
    row.name = "BF.MADD x100 against no-op";
    row.ours = madd;
    bench_print(&row);
    row.name = "... MEXISTS, no-op with 100 answers";
    row.ours = mexists;
    row.limit = noop_many;
    row.what = BENCH_NO_AIM;
    bench_print(&row);
    single_rows(keys, "BF.EXISTS, pipeline 100", "BF.ADD, pipeline 100");
    fill_filter(100000);
    single_rows(100000, "BF.EXISTS, 100k items", "BF.ADD, 100k items");
    call("DEL", "filter", NULL);
}

/* ---- SEEN --------------------------------------------------------------- */

struct users {
    const char *command;
    uint64_t users, items; /* marked; so many each */
    uint64_t salt;
};

static void user(struct text *t, uint64_t number)
{
    char name[32];
    int len = snprintf(name, sizeof name, "user:%07" PRIu64, number);
    word_of(t, name, (size_t)len);
}

/* A hundred at a time, as they would come. */
static void write_marks(struct text *t, uint64_t number, void *context)
{
    const struct users *u = context;
    uint64_t some = u->items < 100 ? u->items : 100;
    uint64_t of = number / (u->items / some) % u->users;
    begin(t, 2 + some);
    word(t, "SEEN.MARK");
    user(t, of);
    for (uint64_t i = 0; i < some; i++)
        item(t, of * 1000003 + number % (u->items / some) * some + i);
}

static void mark_users(const struct users *u)
{
    struct users copy = *u;
    load(write_marks, &copy,
         (size_t)(u->users * (u->items < 100 ? 1 : u->items / 100)), 1);
}

static void memory_rows(bool quick)
{
    static const struct {
        uint64_t items, users;
        double aim, peer;
    } sizes[] = {{10, 24000, 200, 2237},
                 {100, 12000, 460, 2237},
                 {1000, 3000, 2200, 2237},
                 {5000, 1200, 10400, 17722}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[64];
        struct users u = {.users = sizes[i].users / (quick ? 4 : 1),
                          .items = sizes[i].items};
        u.users = (u.users + CONNECTIONS - 1) / CONNECTIONS * CONNECTIONS;
        call("FLUSHALL", NULL);
        double before = info("memory", "used_memory");
        mark_users(&u);
        double bytes =
            (info("memory", "used_memory") - before) / (double)u.users;
        snprintf(name, sizeof name, "bytes a user of %" PRIu64 " items",
                 sizes[i].items);
        bench_print(&(struct bench_row){.name = name,
                                        .unit = "bytes",
                                        .ours = bench_once(bytes),
                                        .peer_name = "RedisBloom (quoted)",
                                        .peer = bench_once(sizes[i].peer),
                                        .what = BENCH_OURS_AT_MOST,
                                        .aim = sizes[i].aim});
    }
}

/* 200 candidates, every second one seen. */
static uint64_t candidate(const struct users *u, uint64_t of, uint64_t i,
                          uint64_t number)
{
    uint64_t seen = of * 1000003 + scramble(number * 200 + i) % u->items;
    return i % 2 ? seen : u->salt + number * 200 + i;
}

static void write_question(struct text *t, uint64_t number, void *context)
{
    const struct users *u = context;
    uint64_t of = scramble(number + u->salt) % u->users;
    bool take = strcmp(u->command, "SEEN.TAKE") == 0;
    begin(t, take ? 204 : 202);
    word(t, u->command);
    user(t, of);
    if (take) {
        word(t, "COUNT");
        word(t, "10");
    }
    for (uint64_t i = 0; i < 200; i++)
        item(t, candidate(u, of, i, number));
}

static void write_packed(struct text *t, uint64_t number, void *context)
{
    const struct users *u = context;
    uint64_t of = scramble(number + u->salt) % u->users;
    uint64_t ids[200];
    for (uint64_t i = 0; i < 200; i++)
        ids[i] = candidate(u, of, i, number);
    begin(t, 4);
    word(t, u->command);
    user(t, of);
    word(t, "8");
    word_of(t, ids, sizeof ids);
}

static void exposure_rows(bool quick)
{
    struct users u = {.users = 2000, .items = 1000, .salt = (uint64_t)1 << 40};
    struct bench_series fresh = {0}, packed = {0}, take = {0}, noop = {0};
    size_t n = quick ? 2500 : 10000;
    call("FLUSHALL", NULL);
    bench_note("%" PRIu64 " users of %" PRIu64 " items", u.users, u.items);
    mark_users(&u);
    for (int round = 0; round < ROUNDS; round++) {
        u.salt += (uint64_t)1 << 32;
        u.command = "noop.read";
        bench_round(&noop, load(write_question, &u, n, 5) * 1e9 / 200);
        u.command = "SEEN.FRESH";
        bench_round(&fresh, load(write_question, &u, n, 5) * 1e9 / 200);
        u.command = "SEEN.FRESHP";
        bench_round(&packed, load(write_packed, &u, n, 5) * 1e9 / 200);
        u.command = "SEEN.TAKE";
        bench_round(&take, load(write_question, &u, n, 5) * 1e6);
    }
    bench_print(&(struct bench_row){.name = "SEEN.FRESH of 200, a candidate",
                                    .unit = "ns",
                                    .ours = fresh,
                                    .peer_name = "RedisBloom (quoted)",
                                    .peer = bench_once(1e9 / 3.6e6),
                                    .limit_name = "no-op",
                                    .limit = noop,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 200,
                                    .note = "5M a second are 200 ns"});
    bench_print(&(struct bench_row){.name = "SEEN.FRESHP of 200, a candidate",
                                    .unit = "ns",
                                    .ours = packed,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 66.7,
                                    .note = "15M a second are 66.7 ns"});
    bench_print(&(struct bench_row){.name = "SEEN.TAKE of 10 from 200",
                                    .unit = "us",
                                    .ours = take,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 40,
                                    .note = "25k a second are 40 us"});
}

int main(int argc, char **argv)
{
    struct bench_options o;
    (void)argc;
    char **rest = bench_start(argv, "module", &o);
    if (!rest[0] || !rest[1])
        bench_die("usage: bench_module [--json] [--quick] SEEN.SO NOOP.SO");
    start_server(rest[0], rest[1]);
    for (size_t i = 0; i < CONNECTIONS; i++)
        connections[i].fd = dial();
    filter_rows(o.quick);
    memory_rows(o.quick);
    exposure_rows(o.quick);
    return bench_finish();
}
