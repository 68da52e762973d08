/*
 * 06_feed.c - a feed that shows nobody the same post twice, and survives being
 * killed.
 *
 *     06_feed DIR [USERS]
 *
 * A server (a child process, many threads) answers requests: of 200 candidates,
 * take 10 that this user has not been shown. What it has answered it tells its
 * parent through a pipe. Halfway the parent kills it, looks whether everything
 * that was answered is still known, and starts another one. At the end the parent
 * goes through all answers with an exact list of who was shown what.
 *
 * DIR must not exist; the store is made in it.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include <seen_users.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    POSTS = 200000,      /* in the catalogue */
    POST_NAME = 14,      /* bytes of an id, as plain lists would keep them */
    CANDIDATES = 200,    /* of a request */
    WANTED = 10,         /* ... to be shown */
    MOST_REQUESTS = 490, /* of a user: the policy keeps 5000 posts of one */
    THREADS = 64,        /* of the server: they share syncs */
    READERS = 2
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void must(seen_status status, const char *what)
{
    if (status == SEEN_OK) return;
    fprintf(stderr, "%s: %s\n", what, seen_strerror(status));
    exit(2);
}

/* What is wrong with a store is in the report. */
static seen_users *open_store(const char *dir, seen_users_options options,
                              seen_outcome *outcome, seen_error *error)
{
    seen_users *opened;
    if (seen_users_open(&opened, dir, &options, outcome, error) == SEEN_OK)
        return opened;
    fprintf(stderr, "%s: %s\n", dir, error->text);
    exit(2);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- The world: posts, users, requests, all made from numbers ------------ */

static uint32_t users = 100000;
static char posts[POSTS][POST_NAME + 1];
static uint32_t *schedule; /* whose turn it is, request by request */
static size_t requests;

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

/* Zipf: the user of rank r makes about 1/r as many requests as the first. */
static uint32_t requests_of(uint32_t user)
{
    uint32_t n = users / 4 / (user + 1);
    return n < 1 ? 1 : n > MOST_REQUESTS ? MOST_REQUESTS : n;
}

static void make_world(void)
{
    for (uint32_t i = 0; i < POSTS; i++)
        snprintf(posts[i], sizeof posts[i], "post-%09u", i);
    for (uint32_t u = 0; u < users; u++)
        requests += requests_of(u);
    schedule = malloc(requests * sizeof *schedule);
    if (!schedule) die("malloc");
    size_t at = 0;
    for (uint32_t u = 0; u < users; u++)
        for (uint32_t i = requests_of(u); i > 0; i--)
            schedule[at++] = u;
    uint64_t state = 1;
    for (size_t i = requests - 1; i > 0; i--) { /* shuffle */
        size_t j = next_random(&state) % (i + 1);
        uint32_t swap = schedule[i];
        schedule[i] = schedule[j];
        schedule[j] = swap;
    }
}

/* What the ranking would offer a user at his nth request: popular posts far more
 * often than others, so most have been shown before. */
static void candidates_of(uint32_t user, uint32_t number, uint32_t *to)
{
    uint64_t state = (uint64_t)user << 32 | number;
    for (int i = 0; i < CANDIDATES; i++)
        to[i] = (uint32_t)exp(uniform(&state) * log(POSTS));
}

static seen_key user_key(uint32_t user, char name[16])
{
    return (seen_key){name, (size_t)snprintf(name, 16, "user%u", user)};
}

static seen_key post_key(uint32_t post)
{
    return (seen_key){posts[post], POST_NAME};
}

/* ---- The server --------------------------------------------------------- */

/* An answer, as it goes through the pipe: short enough to go in one piece. */
struct answer {
    uint32_t user, number;
    uint32_t micros; /* that it took */
    uint32_t n;
    uint32_t posts[WANTED];
};

static seen_users *store;
static int pipe_end;
static uint32_t *done; /* requests of each user that have been answered */

/* A server keeps no such notes; this one does so that its parent can ask, when
 * it has killed it, what became of requests without an answer. */
static _Atomic uint32_t *in_flight; /* user + 1 of each thread */

static void serve(struct answer *a)
{
    char name[16];
    uint32_t offered[CANDIDATES];
    seen_key keys[CANDIDATES];
    candidates_of(a->user, a->number, offered);
    for (int i = 0; i < CANDIDATES; i++)
        keys[i] = post_key(offered[i]);

    size_t taken[WANTED], n;
    double start = seconds();
    must(seen_users_take(store, user_key(a->user, name), now_ms(),
                         seen_keys_of(keys, CANDIDATES), WANTED, taken, &n,
                         NULL),
         "take");
    a->micros = (uint32_t)(1e6 * (seconds() - start));
    a->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        a->posts[i] = offered[taken[i]];
}

/* Each thread has its users: requests of one user come one after the other. */
static void *serve_some(void *number)
{
    uint32_t thread = (uint32_t)(uintptr_t)number;
    uint32_t *turn = calloc(users, sizeof *turn);
    if (!turn) die("calloc");
    for (size_t i = 0; i < requests; i++) {
        uint32_t user = schedule[i];
        if (user % THREADS != thread || turn[user]++ < done[user]) continue;
        struct answer a = {.user = user, .number = turn[user] - 1};
        in_flight[thread] = user + 1;
        serve(&a);
        if (write(pipe_end, &a, sizeof a) != sizeof a) die("write");
        in_flight[thread] = 0;
    }
    free(turn);
    return NULL;
}

static void run_server(const char *dir)
{
    pthread_t threads[THREADS];
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    store = open_store(
        dir, (seen_users_options){.mode = SEEN_DURABLE, .create = true},
        &outcome, &error);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, serve_some, (void *)i))
            die("thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    must(seen_users_close(store, NULL), dir);
}

/* ---- Its parent --------------------------------------------------------- */

static struct answer *answers;
static size_t answered;
static double serving; /* seconds */

/* Start a server and listen, until it ends or has given so many answers and is
 * killed. */
static void watch_server(const char *dir, size_t enough)
{
    int ends[2];
    if (pipe(ends)) die("pipe");
    double start = seconds();
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        close(ends[0]);
        pipe_end = ends[1];
        run_server(dir);
        exit(0);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (!from) die("fdopen");
    while (fread(&answers[answered], sizeof *answers, 1, from) == 1) {
        done[answers[answered].user]++;
        if (++answered == enough) kill(child, SIGKILL);
    }
    serving += seconds() - start;
    fclose(from);
    int status;
    if (waitpid(child, &status, 0) < 0) die("waitpid");
    if (!WIFEXITED(status) ? answered < enough : WEXITSTATUS(status)) {
        fprintf(stderr, "the server failed\n");
        exit(2);
    }
}

/* How many of these posts would be shown to this user? */
static size_t count_fresh(uint32_t user, const uint32_t *these, size_t n)
{
    char name[16];
    seen_key keys[CANDIDATES];
    for (size_t i = 0; i < n; i++)
        keys[i] = post_key(these[i]);
    size_t fresh[CANDIDATES], n_fresh;
    must(seen_users_fresh(store, user_key(user, name), now_ms(),
                          seen_keys_of(keys, n), fresh, &n_fresh, NULL),
         "fresh");
    return n_fresh;
}

/* ---- Who was really shown what: an exact set of pairs --------------------- */

static uint64_t *pairs; /* open addressing; 0: free */
static uint64_t pairs_mask;

static void make_pairs(void)
{
    uint64_t size = 1;
    while (size < 3 * requests * WANTED)
        size *= 2;
    pairs = calloc(size, sizeof *pairs);
    if (!pairs) die("calloc");
    pairs_mask = size - 1;
}

enum {
    SHOWN,
    MISSED
};

/* Is it there? Afterwards it is, if `add`. */
static bool pair(uint32_t user, uint32_t post, int what, bool add)
{
    uint64_t key = ((uint64_t)user << 32 | post << 1 | (uint64_t)what) + 1;
    uint64_t state = key, at = next_random(&state) & pairs_mask;
    while (pairs[at] && pairs[at] != key)
        at = (at + 1) & pairs_mask;
    if (pairs[at]) return true;
    if (add) pairs[at] = key;
    return false;
}

static size_t shown, repeats, missed;

/* Go through the candidates as the server must have done. */
static void check_answer(const struct answer *a)
{
    uint32_t offered[CANDIDATES], next = 0;
    candidates_of(a->user, a->number, offered);
    for (int i = 0; i < CANDIDATES && next < WANTED; i++) {
        uint32_t post = offered[i];
        if (next < a->n && a->posts[next] == post) {
            repeats += pair(a->user, post, SHOWN, true);
            shown++;
            next++;
        } else if (!pair(a->user, post, SHOWN, false)) {
            missed += !pair(a->user, post, MISSED, true);
        }
    }
    if (next != a->n) {
        fprintf(stderr, "an answer that no candidates lead to\n");
        exit(2);
    }
}

/* ---- After the kill ------------------------------------------------------ */

static size_t lost; /* posts that were shown, and would be again */
static size_t carried_out;

/* A request without an answer was carried out or it was not; if it was, its posts
 * count as shown, although nobody has seen them. */
static void settle(uint32_t user)
{
    uint32_t offered[CANDIDATES];
    size_t found = 0;
    candidates_of(user, done[user], offered);
    for (int i = 0; i < CANDIDATES; i++)
        if (!pair(user, offered[i], SHOWN, false) &&
            count_fresh(user, &offered[i], 1) == 0) {
            pair(user, offered[i], SHOWN, true);
            found++;
        }
    carried_out += found > 0;
}

static void check_after_kill(const char *dir)
{
    double start = seconds();
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    store = open_store(dir, (seen_users_options){.mode = SEEN_DURABLE},
                       &outcome, &error);
    double opened = seconds();
    for (size_t i = 0; i < answered; i++) {
        check_answer(&answers[i]);
        lost += count_fresh(answers[i].user, answers[i].posts, answers[i].n);
    }
    size_t open_requests = 0;
    for (int i = 0; i < THREADS; i++)
        if (in_flight[i]) {
            open_requests++;
            settle(in_flight[i] - 1);
        }
    printf(
        "  kill -9 in the middle    reopened in %.2f s; lost %zu of %zu posts "
        "shown\n",
        opened - start, lost, shown);
    printf("  under way when killed    %zu requests; %zu of them carried out, "
           "not answered\n",
           open_requests, carried_out);
    must(seen_users_close(store, NULL), dir);
}

/* ---- Numbers ------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

struct reading {
    uint64_t seed;
    uint32_t *nanos;
};

enum {
    READS = 100000
};

/* The same question without taking: nothing to write, nothing to wait for. */
static void *read_some(void *to)
{
    struct reading *r = to;
    for (size_t i = 0; i < READS; i++) {
        uint32_t user = schedule[next_random(&r->seed) % requests];
        uint32_t offered[CANDIDATES];
        candidates_of(user, MOST_REQUESTS, offered);
        double start = seconds();
        count_fresh(user, offered, CANDIDATES);
        r->nanos[i] = (uint32_t)(1e9 * (seconds() - start));
    }
    return NULL;
}

static void measure_reads(void)
{
    uint32_t *nanos = malloc(READERS * READS * sizeof *nanos);
    struct reading r[READERS];
    pthread_t threads[READERS];
    if (!nanos) die("malloc");
    for (int i = 0; i < READERS; i++) {
        r[i] = (struct reading){(uint64_t)i, nanos + i * READS};
        if (pthread_create(&threads[i], NULL, read_some, &r[i])) die("thread");
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    qsort(nanos, READERS * READS, sizeof *nanos, by_size);
    printf("  fresh of %d, no mark    p50 %.0f us, p99 %.0f us, %d threads\n",
           CANDIDATES, nanos[READERS * READS / 2] / 1e3,
           nanos[READERS * READS / 100 * 99] / 1e3, READERS);
    free(nanos);
}

/* What n posts of a user take as a Redis list of "count::base64" elements, each
 * the text of a Bloom filter for 1000 items at 0.1 %. */
static double list_bytes(double n)
{
    double bits = ceil(1000 * log(1000) / (log(2) * log(2)));
    double base64 = 4 * ceil(ceil(bits / 8) / 3);
    return ceil(n / 1000) * (base64 + strlen("1000::"));
}

struct sizes {
    double users, records;
};

static bool add_size(void *to, const seen_users_entry *entry)
{
    struct sizes *s = to;
    s->users++;
    s->records += (double)entry->record.len;
    return true;
}

static void print_sizes(void)
{
    struct sizes s = {0};
    seen_users_stats stats = {.size = sizeof stats};
    must(seen_users_each(store, now_ms(), add_size, &s, NULL), "each");
    must(seen_users_stats_of(store, &stats, NULL), "stats");
    double list = 0;
    for (uint32_t u = 0; u < users; u++)
        list += list_bytes((double)requests_of(u) * WANTED);
    printf("  bytes a user             %.0f in records, %.0f on disk\n",
           s.records / s.users, (double)stats.file_bytes / s.users);
    printf("  ... as plain ids         %.0f, of %d bytes each\n",
           (double)shown * POST_NAME / s.users, POST_NAME);
    printf("  ... as a Redis list      %.0f, of up to five filters\n",
           list / s.users);
}

static void print_speed(void)
{
    uint32_t *micros = malloc(answered * sizeof *micros);
    if (!micros) die("malloc");
    for (size_t i = 0; i < answered; i++)
        micros[i] = answers[i].micros;
    qsort(micros, answered, sizeof *micros, by_size);
    printf(
        "  take %d of %d, durable  %.0f requests/s; p50 %.1f ms, p99 %.1f ms, "
        "%d threads\n",
        WANTED, CANDIDATES, (double)answered / serving,
        micros[answered / 2] / 1e3, micros[answered / 100 * 99] / 1e3, THREADS);
    free(micros);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: 06_feed DIR [USERS]\n");
        return 2;
    }
    const char *dir = argv[1];
    if (argc == 3) users = (uint32_t)strtoul(argv[2], NULL, 10);
    if (users < 100 || users > 1000000) {
        fprintf(stderr, "USERS: expected 100 to 1000000\n");
        return 2;
    }
    make_world();
    make_pairs();
    answers = malloc(requests * sizeof *answers);
    done = calloc(users, sizeof *done);
    in_flight = mmap(NULL, THREADS * sizeof *in_flight, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!answers || !done || in_flight == MAP_FAILED) die("memory");
    printf("%u users, %zu requests, 1 to %d of each; %d posts\n", users,
           requests, MOST_REQUESTS, POSTS);
    fflush(stdout);

    watch_server(dir, requests / 2);
    size_t before = answered;
    check_after_kill(dir);
    fflush(stdout);
    watch_server(dir, SIZE_MAX);
    for (size_t i = before; i < answered; i++)
        check_answer(&answers[i]);

    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    store = open_store(dir, (seen_users_options){0}, &outcome, &error);
    print_speed();
    measure_reads();
    printf("  repeats shown            %zu of %zu posts\n", repeats, shown);
    double rate = (double)missed / (double)(missed + shown);
    printf("  wrongly withheld         %zu of %zu posts, %.4f %%; promised: at "
           "most 0.1 %%\n",
           missed, missed + shown, 100 * rate);
    print_sizes();
    must(seen_users_close(store, NULL), dir);
    return lost || repeats || rate > 0.001 || answered != requests;
}
