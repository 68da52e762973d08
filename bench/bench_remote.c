/*
 * bench_remote.c - filters on a server without modules: go-zero's scripts, our
 * redis+gozero:// on the same kind of string, and redis+plain://.
 *
 *     bench_remote [--json] [--quick]
 *
 * All of it is one redis-server, filters of ten million keys (go-zero's advice is
 * 20 bits a key; plain: 0.1 %), taking turns. THREADS callers have a batch under
 * way each, so that the server always has something to do. A figure is wall-clock
 * time a key, so ratios are those of operations a second; beside it stands what
 * the server's thread took (INFO cpu).
 *
 * go-zero's client sends a call for each key: EVALSHA, the key and 14 offsets as
 * text. Its scripts are a loop of SETBIT and one of GETBIT that ends at the first 0.
 * Here a plain client in C sends them, with 14 numbers from a cheaper hash than
 * go-zero's: the server cannot tell.
 */
#define _GNU_SOURCE

#include "bench.h"
#include "server.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <seen_remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 16
#define ROUNDS  5
#define K       14

static int port;
static uint64_t keys; /* in the filters */
static uint64_t per;  /* of a caller in a round */
static redisContext *control;

/* ---- The server --------------------------------------------------------- */

static redisContext *dial(void)
{
    for (int tries = 0; tries < 500; tries++) {
        redisContext *c = redisConnect("127.0.0.1", port);
        redisReply *reply = c && !c->err ? redisCommand(c, "PING") : NULL;
        bool good = reply && reply->type == REDIS_REPLY_STATUS;
        if (reply) freeReplyObject(reply);
        if (good) return c;
        if (c) redisFree(c);
        usleep(20000);
    }
    bench_die("the server does not answer: is redis-server installed?");
}

static redisReply *must(void *reply)
{
    redisReply *r = reply;
    if (!r) bench_die("the server is gone");
    if (r->type == REDIS_REPLY_ERROR) bench_die("the server says: %s", r->str);
    return r;
}

static double field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at) bench_die("INFO has no %s", name);
    return atof(at + strlen(name) + 1);
}

static double server_seconds(void)
{
    redisReply *r = must(redisCommand(control, "INFO cpu"));
    double s = field(r->str, "used_cpu_user_main_thread") +
               field(r->str, "used_cpu_sys_main_thread");
    freeReplyObject(r);
    return s;
}

/* ---- Load --------------------------------------------------------------- */

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* What is measured: `depth` keys from `first` on; or random ones that are there,
 * where `adds` is false. */
struct work {
    void (*run)(const struct work *w, unsigned thread, uint64_t first);
    seen_remote *remote;
    bool adds;
    size_t depth;
};

struct caller {
    const struct work *w;
    unsigned thread;
    uint64_t first;
};

static void *call(void *context)
{
    const struct caller *c = context;
    for (uint64_t done = 0; done < per; done += c->w->depth)
        c->w->run(c->w, c->thread, c->first + done);
    return NULL;
}

struct cost {
    struct bench_series wall, server; /* us a key */
};

/* A round. Keys that are added are new ones each time. */
static void measure(const struct work *w, struct cost *to)
{
    static uint64_t fresh = (uint64_t)1 << 40;
    pthread_t threads[THREADS];
    struct caller callers[THREADS];
    double cpu = server_seconds(), wall = bench_seconds();
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){w, i, fresh};
        fresh += per;
        if (pthread_create(&threads[i], NULL, call, &callers[i]) != 0)
            bench_die("no thread");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    double ops = (double)(per * THREADS);
    bench_round(&to->wall, (bench_seconds() - wall) * 1e6 / ops);
    bench_round(&to->server, (server_seconds() - cpu) * 1e6 / ops);
}

static uint64_t key_of(const struct work *w, uint64_t number)
{
    return w->adds ? number : scramble(number) % keys;
}

/* ---- go-zero's client --------------------------------------------------- */

static const char *const script[] = {
    "for _, at in ipairs(ARGV) do\n"
    "  if redis.call('GETBIT', KEYS[1], at) == 0 then return false end\n"
    "end\n"
    "return true\n",
    "for _, at in ipairs(ARGV) do redis.call('SETBIT', KEYS[1], at, 1) end\n"};
static char digest[2][41];
static redisContext *connections[THREADS];

static uint64_t offset(uint64_t key, uint64_t i)
{
    return scramble(key * K + i + 1) % (20 * keys);
}

static void append(redisContext *c, bool adds, uint64_t key)
{
    char text[K][24];
    const char *argv[4 + K] = {"EVALSHA", digest[adds], "1", "theirs"};
    for (uint64_t k = 0; k < K; k++) {
        snprintf(text[k], sizeof text[k], "%" PRIu64, offset(key, k));
        argv[4 + k] = text[k];
    }
    if (redisAppendCommandArgv(c, 4 + K, argv, NULL) != REDIS_OK)
        bench_die("no memory");
}

static void run_theirs(const struct work *w, unsigned thread, uint64_t first)
{
    redisContext *c = connections[thread];
    for (size_t i = 0; i < w->depth; i++)
        append(c, w->adds, key_of(w, first + i));
    for (size_t i = 0; i < w->depth; i++) {
        void *reply = NULL;
        if (redisGetReply(c, &reply) != REDIS_OK)
            bench_die("the server is gone");
        must(reply);
        if (!w->adds && ((redisReply *)reply)->integer != 1)
            bench_die("a key that is there was not found");
        freeReplyObject(reply);
    }
}

/* ---- Ours --------------------------------------------------------------- */

static void run_ours(const struct work *w, unsigned thread, uint64_t first)
{
    char text[1024][24];
    seen_key batch[1024];
    bool answers[1024];
    (void)thread;
    for (size_t i = 0; i < w->depth; i++) {
        int len = snprintf(text[i], sizeof text[i], "item:%015" PRIu64,
                           key_of(w, first + i));
        batch[i] = (seen_key){text[i], (size_t)len};
    }
    seen_error error;
    const seen_keys some = seen_keys_of(batch, w->depth);
    seen_status s =
        w->adds ? seen_remote_add_many(w->remote, some, NULL, &error)
                : seen_remote_maybe_many(w->remote, some, answers, &error);
    if (s != SEEN_OK) bench_die("%s", error.text);
    for (size_t i = 0; !w->adds && i < w->depth; i++)
        if (!answers[i]) bench_die("a key that is there was not found");
}

static seen_remote *open_remote(const char *url, const seen_spec *create)
{
    seen_remote *m;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (seen_remote_open(&m, url, create, &outcome, &error) != SEEN_OK)
        bench_die("%s: %s", url, error.text);
    return m;
}

/* ---- Filling ------------------------------------------------------------ */

static void set(const char *key, const void *bytes, size_t len)
{
    freeReplyObject(must(redisCommand(control, "SET %s %b", key, bytes, len)));
}

/* Bits as SETBIT numbers them. */
static void fill_theirs(void)
{
    size_t len = (size_t)(20 * keys / 8);
    uint8_t *bits = calloc(len, 1);
    if (!bits) bench_die("no memory");
    for (uint64_t key = 0; key < keys; key++)
        for (uint64_t k = 0; k < K; k++) {
            uint64_t at = offset(key, k);
            bits[at / 8] |= (uint8_t)(0x80 >> at % 8);
        }
    set("theirs", bits, len);
    free(bits);
}

/* What the dialect makes of them is what the server would have. */
static void fill_gozero(void)
{
    seen_filter *f;
    char text[24];
    seen_spec spec = {.dialect = "gozero", .bits = 20 * keys};
    if (seen_new(&f, &spec, NULL) != SEEN_OK) bench_die("no memory");
    for (uint64_t key = 0; key < keys; key++) {
        int len = snprintf(text, sizeof text, "item:%015" PRIu64, key);
        if (seen_add(f, text, (size_t)len) != SEEN_OK) bench_die("no memory");
    }
    size_t len = 0;
    seen_export(f, "gozero", NULL, 0, &len, NULL);
    void *bytes = malloc(len);
    if (!bytes || seen_export(f, "gozero", bytes, len, &len, NULL) != SEEN_OK)
        bench_die("no memory");
    set("ours", bytes, len);
    free(bytes);
    seen_free(f);
}

static void *fill_share(void *context)
{
    const struct caller *c = context;
    for (uint64_t done = 0; done < keys / THREADS; done += c->w->depth)
        run_ours(c->w, c->thread, c->first + done);
    return NULL;
}

static void fill_plain(seen_remote *m)
{
    const struct work w = {run_ours, m, true, 625}; /* divides the shares */
    pthread_t threads[THREADS];
    struct caller callers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){&w, i, i * (keys / THREADS)};
        if (pthread_create(&threads[i], NULL, fill_share, &callers[i]) != 0)
            bench_die("no thread");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Rows --------------------------------------------------------------- */

static void print(const char *what, size_t depth, const struct cost *ours,
                  const struct cost *theirs, double aim)
{
    char name[64], note[160];
    double a = bench_best(&ours->server), b = bench_best(&theirs->server);
    snprintf(name, sizeof name, "%s, %zu at a time", what, depth);
    snprintf(note, sizeof note,
             "%.0fk/s against %.0fk/s; server %.2f us against %.2f, %.1fx",
             1e3 / bench_best(&ours->wall), 1e3 / bench_best(&theirs->wall), a,
             b, b / a);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "us/key",
                                    .ours = ours->wall,
                                    .peer_name = "go-zero",
                                    .peer = theirs->wall,
                                    .what = BENCH_PEER_AT_LEAST,
                                    .aim = aim,
                                    .note = note});
}

static void rows(seen_remote *gozero, seen_remote *plain, size_t depth)
{
    static const char *const name[2][2] = {
        {"gozero: check present", "gozero: add"},
        {"plain: check present", "plain: add"}};
    for (int adds = 0; adds < 2; adds++) {
        struct cost theirs = {0}, same = {0}, lines = {0};
        struct work a = {run_theirs, NULL, adds, depth};
        struct work b = {run_ours, gozero, adds, depth};
        struct work c = {run_ours, plain, adds, depth};
        for (int round = 0; round < ROUNDS; round++) {
            measure(&a, &theirs);
            measure(&b, &same);
            measure(&c, &lines);
        }
        print(name[0][adds], depth, &same, &theirs, depth == 1 ? 1 : 1.5);
        if (depth > 1)
            print(name[1][adds], depth, &lines, &theirs, adds ? 5 : 12);
    }
}

static void size_row(seen_remote *plain)
{
    seen_remote_info info = {.size = sizeof info};
    seen_error error;
    if (seen_remote_info_of(plain, &info, &error) != SEEN_OK)
        bench_die("%s", error.text);
    bench_print(&(struct bench_row){
        .name = "plain: size at 0.1%",
        .unit = "bits/key",
        .ours = bench_once((double)info.bytes * 8 / (double)keys),
        .peer_name = "go-zero",
        .peer = bench_once(20),
        .what = BENCH_OURS_AT_MOST,
        .aim = 16});
}

int main(int argc, char **argv)
{
    struct bench_options o;
    (void)argc;
    bench_start(argv, "remote", &o);
    keys = o.quick ? 1000000 : 10000000;
    per = o.quick ? 800 : 4000; /* a multiple of 16 and 100 */
    port = bench_server_start((const char *const[]){NULL});
    control = dial();
    for (unsigned i = 0; i < THREADS; i++)
        connections[i] = dial();
    for (int i = 0; i < 2; i++) {
        redisReply *r =
            must(redisCommand(control, "SCRIPT LOAD %s", script[i]));
        memcpy(digest[i], r->str, sizeof digest[i]);
        freeReplyObject(r);
    }
    bench_note("three filters of %" PRIu64 " keys", keys);
    fill_theirs();
    fill_gozero();
    char url[2][96];
    snprintf(url[0], sizeof url[0],
             "redis+gozero://127.0.0.1:%d/ours?bits=%" PRIu64, port, 20 * keys);
    snprintf(url[1], sizeof url[1], "redis+plain://127.0.0.1:%d/plain", port);
    seen_remote *gozero = open_remote(url[0], NULL);
    seen_remote *plain =
        open_remote(url[1], &(seen_spec){.items = keys, .fpp = 0.001});
    fill_plain(plain);
    size_row(plain);
    rows(gozero, plain, 1);
    rows(gozero, plain, 16);
    rows(gozero, plain, 100);
    seen_remote_close(gozero);
    seen_remote_close(plain);
    return bench_finish();
}
