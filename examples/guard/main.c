/*
 * main.c - a shop under attack: what a guard saves its database.
 *
 *     guard PORT DIR [REQUESTS]
 *
 * PORT is that of a Redis on this machine, the cache; DIR must not exist, the
 * database is made in it. Most requests are for keys that exist nowhere, as
 * somebody sends them who wishes the shop ill: they look like the others and never
 * repeat. The service is in service.h; here it is put under load:
 *
 * 1. requests, 95 of 100 from the attacker, without the guard and with it;
 * 2. a hundred at once for a key that the cache does not have;
 * 3. products are deleted, whose keys the filter still knows: the guard notices,
 *    and a new filter is made in the background, while products are created,
 *    asked for right after and right before, and the attack goes on.
 *
 * What the guard promises is checked, and one broken promise makes the program
 * fail; how long things take is only told.
 */
#define _POSIX_C_SOURCE 200809L

#include "service.h"

#include <seen_bitmap.h>

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ROWS = 100000,
    GONE = 20000,      /* of them, the last ones: deleted on the way */
    HOT = 50000,       /* of them, the first ones: asked for */
    LEGITIMATE = 5,    /* of 100 requests */
    FEWEST = 20000,    /* requests that tell chance from a broken promise */
    THREADS = 16,      /* of the shop */
    CROWD = 100,       /* that wants the same at once */
    CROWD_ROUNDS = 50, /* ... so many times */
    FAR_MS = 10,       /* to the database and back, for 2. and 3. */
    REBUILDS = 20      /* under load */
};

static struct service service;
static struct worker workers[CROWD];
static uint64_t requests = 1000000;
static bool broken; /* a promise */

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void promise(bool kept, const char *what)
{
    printf("    %-6s %s\n", kept ? "kept" : "BROKEN", what);
    if (!kept) broken = true;
}

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- Keys: nobody can tell by its looks whether a key exists --------------- */

typedef char key_text[24];

static uint64_t mix(uint64_t x) /* splitmix64: one to one */
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void row_key(uint64_t row, key_text key)
{
    snprintf(key, sizeof(key_text), "p-%016" PRIx64, mix(row));
}

static void attack_key(uint64_t number, key_text key)
{
    row_key(((uint64_t)1 << 40) + number, key);
}

static struct product product_of(uint64_t row)
{
    struct product p;
    snprintf(p.text, sizeof p.text, "product number %" PRIu64, row);
    return p;
}

/* The right product, and not only some product. */
static bool get_row(struct worker *w, uint64_t row)
{
    key_text key;
    struct product found, right = product_of(row);
    row_key(row, key);
    return service_get(w, key, &found) == PRESENT &&
           strcmp(found.text, right.text) == 0;
}

/* ---- Threads ------------------------------------------------------------ */

static void run_threads(size_t n, void *(*work)(void *worker))
{
    pthread_t threads[CROWD];
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i])) die("thread");
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* A name of its own for each run, so that the cache is empty. */
static void begin_with_empty_cache(void)
{
    static char prefix[40];
    static int run;
    snprintf(prefix, sizeof prefix, "guard:%ld:%d:", (long)getpid(), ++run);
    for (size_t i = 0; i < CROWD; i++)
        workers[i].cache.prefix = prefix;
}

/* ---- 1. Attack ---------------------------------------------------------- */

static atomic_uint_fast64_t next_request;
static atomic_uint_fast64_t not_found; /* that exist */
static atomic_uint_fast64_t found;     /* that do not */
static uint32_t *nanos;                /* that each request took */

/* Which row is the nth request for? Some are asked for far more often. */
static bool is_legitimate(uint64_t n, uint64_t *row)
{
    if (mix(n) % 100 >= LEGITIMATE) return false;
    double u = (double)(mix(n ^ 0xabcdef) >> 11) * 0x1p-53;
    *row = (uint64_t)(u * u * HOT);
    return true;
}

static void *attack(void *worker)
{
    uint64_t n, row;
    while ((n = atomic_fetch_add(&next_request, 1)) < requests) {
        uint64_t start = nanoseconds();
        if (is_legitimate(n, &row)) {
            if (!get_row(worker, row)) atomic_fetch_add(&not_found, 1);
        } else {
            key_text key;
            struct product p;
            attack_key(n, key);
            if (service_get(worker, key, &p) != ABSENT)
                atomic_fetch_add(&found, 1);
        }
        uint64_t took = nanoseconds() - start;
        nanos[n] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

struct result {
    uint64_t queries;
    double seconds;
    double p50[2], p99[2]; /* microseconds: of attacks, of the others */
};

static void sort_out(struct result *r, bool legitimate)
{
    uint32_t *some = malloc(requests * sizeof *some);
    if (!some) die("malloc");
    size_t n = 0;
    uint64_t row;
    for (uint64_t i = 0; i < requests; i++)
        if (is_legitimate(i, &row) == legitimate) some[n++] = nanos[i];
    qsort(some, n, sizeof *some, by_size);
    r->p50[legitimate] = some[n / 2] / 1e3;
    r->p99[legitimate] = some[n * 99 / 100] / 1e3;
    free(some);
}

static struct result run_attack(seen_guard *guard)
{
    begin_with_empty_cache();
    service.guard = guard;
    atomic_store(&next_request, 0);
    struct result r = {.queries = database_queries()};
    uint64_t start = nanoseconds();
    run_threads(THREADS, attack);
    r.seconds = (double)(nanoseconds() - start) / 1e9;
    r.queries = database_queries() - r.queries;
    sort_out(&r, false);
    sort_out(&r, true);
    return r;
}

/* Different rows asked for: what an empty cache costs, guard or none. */
static uint64_t legitimate_misses(uint64_t *attacks)
{
    seen_bitmap *rows;
    if (seen_bitmap_new(&rows, HOT, NULL, NULL)) die("bitmap");
    *attacks = requests;
    uint64_t row;
    for (uint64_t i = 0; i < requests; i++)
        if (is_legitimate(i, &row)) {
            seen_bitmap_set(rows, row);
            --*attacks;
        }
    uint64_t n = seen_bitmap_count(rows);
    seen_bitmap_free(rows);
    return n;
}

static void print_row(const char *what, double without, double with,
                      int decimals)
{
    printf("    %-34s %12.*f %12.*f\n", what, decimals, without, decimals,
           with);
}

static void show_attack(seen_guard *guard)
{
    uint64_t attacks, misses = legitimate_misses(&attacks);
    struct result a = run_attack(NULL), b = run_attack(guard);
    uint64_t passed = b.queries - misses;
    double rate = (double)passed / (double)attacks;
    printf("\n%" PRIu64 " requests, %" PRIu64 " for keys that do not exist; "
           "%d threads\n",
           requests, attacks, THREADS);
    printf("    %-34s %12s %12s\n", "", "no guard", "guard");
    print_row("database queries", (double)a.queries, (double)b.queries, 0);
    print_row("... for keys that exist", (double)misses, (double)misses, 0);
    print_row("... for keys that do not", (double)(a.queries - misses),
              (double)passed, 0);
    print_row("legitimate requests, p50 us", a.p50[1], b.p50[1], 1);
    print_row("... p99 us", a.p99[1], b.p99[1], 1);
    print_row("attacks, p50 us", a.p50[0], b.p50[0], 1);
    print_row("... p99 us", a.p99[0], b.p99[0], 1);
    print_row("seconds", a.seconds, b.seconds, 1);
    printf("    %.4f %% of the attacks passed the guard; promised: at most "
           "%.1f %%\n",
           100 * rate, 100 * PROMISE);
    seen_guard_stats s = {.size = sizeof s};
    seen_guard_stats_of(guard, &s);
    promise(a.queries == misses + attacks,
            "without the guard every attack is a query");
    promise((double)b.queries <=
                (double)misses + 1.05 * PROMISE * (double)attacks,
            "queries <= legitimate misses + promised rate x attacks + 5 %");
    promise(s.missed == passed && s.asked == requests,
            "the guard has counted the same");
    promise(not_found == 0 && found == 0, "every answer was right");
}

/* ---- 2. A crowd --------------------------------------------------------- */

static pthread_barrier_t start_line;
static atomic_uint_fast64_t crowd_row;

static void *ask_in_crowd(void *worker)
{
    pthread_barrier_wait(&start_line);
    if (!get_row(worker, crowd_row)) atomic_fetch_add(&not_found, 1);
    return NULL;
}

struct crowd {
    uint64_t queries, most; /* in all; for one key */
};

static struct crowd run_crowds(bool single_flight)
{
    struct crowd c = {0};
    begin_with_empty_cache();
    service.single_flight = single_flight;
    for (uint64_t i = 0; i < CROWD_ROUNDS; i++) {
        uint64_t before = database_queries();
        atomic_store(&crowd_row, i);
        run_threads(CROWD, ask_in_crowd);
        uint64_t n = database_queries() - before;
        c.queries += n;
        if (n > c.most) c.most = n;
    }
    service.single_flight = true;
    return c;
}

static void show_crowd(void)
{
    if (pthread_barrier_init(&start_line, NULL, CROWD)) die("barrier");
    database_slow_down(FAR_MS);
    struct crowd without = run_crowds(false), with = run_crowds(true);
    database_slow_down(0);
    printf("\n%d requests at once for a key that is not cached, %d times; the "
           "database takes %d ms\n",
           CROWD, CROWD_ROUNDS, FAR_MS);
    printf("    queries a key: %.1f without single flight, %.1f with\n",
           (double)without.queries / CROWD_ROUNDS,
           (double)with.queries / CROWD_ROUNDS);
    promise(with.queries == CROWD_ROUNDS && with.most == 1,
            "one query for each key");
    promise(not_found == 0, "everybody had an answer");
    pthread_barrier_destroy(&start_line);
}

/* ---- 3. Rebuild under load ----------------------------------------------- */

static atomic_uint_fast64_t rows_now; /* rows below exist, but those gone */
static atomic_bool closing;
static atomic_uint_fast64_t asked_meanwhile;

/* A row that exists: now and then one of the newest. */
static uint64_t any_row(uint64_t random)
{
    uint64_t rows = atomic_load(&rows_now);
    if (random % 2 && rows > ROWS)
        return rows - 1 -
               (random >> 32) % (rows - ROWS < 16 ? rows - ROWS : 16);
    return (random >> 32) % (ROWS - GONE);
}

static void *shop_on(void *worker)
{
    uint64_t id = (uint64_t)((struct worker *)worker - workers);
    struct product p;
    key_text key;
    for (uint64_t i = 0; !closing; i++) {
        uint64_t random = mix(id << 48 | i);
        switch (i % 4) {
        case 0: /* one that was deleted */
            row_key(ROWS - GONE + random % GONE, key);
            if (service_get(worker, key, &p) != ABSENT)
                atomic_fetch_add(&found, 1);
            break;
        case 1: /* one that is about to be created: either answer is right */
            row_key(rows_now + random % 2, key);
            service_get(worker, key, &p);
            break;
        case 2:
            attack_key(random, key);
            if (service_get(worker, key, &p) != ABSENT)
                atomic_fetch_add(&found, 1);
            break;
        default:
            if (!get_row(worker, any_row(random)))
                atomic_fetch_add(&not_found, 1);
        }
        atomic_fetch_add(&asked_meanwhile, 1);
    }
    return NULL;
}

static void *create_on(void *worker)
{
    key_text key;
    while (!closing) {
        uint64_t row = rows_now;
        struct product p = product_of(row);
        row_key(row, key);
        if (!service_create(worker, key, &p)) die("create");
        atomic_store(&rows_now, row + 1);
        nanosleep(&(struct timespec){.tv_nsec = 3 * FAR_MS * 1000000}, NULL);
    }
    return NULL;
}

static void print_progress(uint64_t done, uint64_t rows)
{
    static uint64_t tenths;
    uint64_t now = rows ? 10 * done / rows : 10;
    if (now < tenths) tenths = 0; /* the next one */
    for (; tenths < now; tenths++)
        printf(" %" PRIu64 "0%%", tenths + 1);
    fflush(stdout);
}

static void print_nothing(uint64_t done, uint64_t rows)
{
    (void)done, (void)rows;
}

static void rebuild(struct worker *w, const char *why)
{
    printf("    %s:", why);
    uint64_t start = nanoseconds();
    if (!service_rebuild(w, print_progress)) exit(2);
    printf(" of the rows, in %.2f s\n", (double)(nanoseconds() - start) / 1e9);
}

/* What would run in the background for as long as the service does: look at the
 * guard now and then, and rebuild when it says so. */
static bool keep(struct worker *w)
{
    seen_guard_stats s = {.size = sizeof s};
    for (int i = 0; i < 1000 && !s.rebuild; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        seen_guard_stats_of(service.guard, &s);
    }
    if (!s.rebuild) return false;
    printf("    the guard says: %.1f %% of keys that do not exist pass, "
           "promised %.1f %%\n",
           100 * s.fpp_measured, 100 * s.fpp_promised);
    rebuild(w, "rebuilding");
    for (int i = 1; i < REBUILDS; i++)
        if (!service_rebuild(w, print_nothing)) exit(2);
    return true;
}

static bool is_rejected(uint64_t row)
{
    key_text key;
    row_key(row, key);
    return seen_guard_ask(service.guard, key, strlen(key),
                          nanoseconds() / 1000000, NULL) == SEEN_REJECT;
}

static void show_rebuild(void)
{
    struct worker *keeper = &workers[0], *creator = &workers[1];
    printf(
        "\n%d of %d products are deleted; others are created; %d threads ask "
        "on\n",
        GONE, ROWS, THREADS - 2);
    if (!database_begin(&keeper->database) ||
        !database_delete_after(&keeper->database, ROWS - GONE) ||
        !database_commit(&keeper->database))
        exit(2);
    begin_with_empty_cache();
    atomic_store(&rows_now, ROWS);

    database_slow_down(FAR_MS);
    pthread_t threads[THREADS];
    for (size_t i = 1; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, i == 1 ? create_on : shop_on,
                           i == 1 ? creator : &workers[i]))
            die("thread");
    bool noticed = keep(keeper);
    atomic_store(&closing, true);
    for (size_t i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    uint64_t rejected = 0;
    for (uint64_t row = 0; row < rows_now; row++)
        if (row < ROWS - GONE || row >= ROWS) rejected += is_rejected(row);
    printf("    %" PRIu64 " requests during %d rebuilds, %" PRIu64
           " products created\n",
           asked_meanwhile, REBUILDS, rows_now - ROWS);
    promise(noticed, "the guard has noticed that its filter is old");
    promise(not_found == 0 && rejected == 0,
            "nothing that exists was rejected");
    promise(found == 0, "nothing was found that does not exist");
}

/* ---- Main --------------------------------------------------------------- */

static void fill(struct database *d)
{
    if (!database_begin(d)) exit(2);
    for (uint64_t row = 0; row < ROWS; row++) {
        key_text key;
        struct product p = product_of(row);
        row_key(row, key);
        if (!database_insert(d, key, &p)) exit(2);
    }
    if (!database_commit(d)) exit(2);
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 3) requests = strtoull(argv[3], NULL, 10);
    if (argc < 3 || argc > 4 || port < 1 || port > 65535 || requests < FEWEST ||
        requests > 100000000) {
        fprintf(stderr,
                "usage: guard PORT DIR [REQUESTS]\n"
                "PORT: 1 to 65535; REQUESTS: %d to 100000000\n",
                FEWEST);
        return 2;
    }
    char path[4096];
    if (mkdir(argv[2], 0777)) die(argv[2]);
    snprintf(path, sizeof path, "%s/products.db", argv[2]);
    signal(SIGPIPE,
           SIG_IGN); /* a Redis that is gone is an error, not the end */

    flights_init(&service.flights);
    service.single_flight = true;
    for (size_t i = 0; i < CROWD; i++) {
        workers[i].service = &service;
        if (!database_open(&workers[i].database, path) ||
            !cache_open(&workers[i].cache, port, ""))
            return 2;
    }
    fill(&workers[0].database);
    nanos = malloc(requests * sizeof *nanos);
    seen_guard *guard = NULL;
    if (!nanos || seen_guard_new(&guard, NULL, NULL)) die("memory");
    service.guard = guard;
    printf("%d products in SQLite\n", ROWS);
    rebuild(&workers[0], "building the filter");

    show_attack(guard);
    show_crowd();
    show_rebuild();

    for (size_t i = 0; i < CROWD; i++) {
        database_close(&workers[i].database);
        cache_close(&workers[i].cache);
    }
    seen_guard_free(guard);
    free(nanos);
    return broken;
}
