/*
 * bench_concurrent.c - adds from one and from two threads to one filter made
 * with SEEN_CONCURRENT, and whether any of them got lost.
 *
 * The filter is made for 100M keys at 1 % and gets 50M of them in a round (10M
 * where they are byte keys: those take more memory to keep ready). Threads take
 * batches of 65536 keys from a common counter until none is left. Between
 * rounds the filter is emptied, so pages are in memory and every add finds the
 * same bits. After every round all keys are asked for.
 *
 * The limit is the machine's own scaling: the same two threads writing one word
 * of a random line per key, with nothing atomic, to memory of the same size.
 *
 * Two threads need two cores to themselves: each is bound to one, and a round
 * in which they were kept from running for more than a twentieth of the time,
 * because something else did, says nothing about the library and is run again,
 * up to 20 times.
 */
#define _GNU_SOURCE /* pthread_barrier, clock_gettime, CPU affinity */

#include "seen.h"

#include "bench.h"
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS      5
#define RETRIES     20
#define MAX_THREADS 2
#define BATCH       65536 /* keys per call, as a user would */

/* Everything a round adds. */
struct load {
    size_t n;
    seen_hash *hash; /* or NULL, then: */
    seen_key *key;
    uint8_t *bytes;
};

struct job {
    seen_filter *filter;       /* or NULL, then: */
    struct bench_lines *lines; /* raw writes */
    const struct load *load;
    atomic_size_t *next; /* the first key nobody has taken */
    size_t core;
    pthread_barrier_t *start;
    double began, ended;
    double ran; /* seconds on a core, of ended - began */
};

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bind this thread to the core-th of those it may use; a wish. */
static void bind_to(size_t core)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || core-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        return;
    }
}

static void add_batch(const struct job *j, size_t first, size_t n)
{
    if (!j->filter)
        bench_lines_change(j->lines, j->load->hash + first, n);
    else if (j->load->hash)
        seen_add_many(j->filter, seen_keys_hashes(j->load->hash + first, n),
                      NULL);
    else
        seen_add_many(j->filter, seen_keys_of(j->load->key + first, n), NULL);
}

static void *run_job(void *arg)
{
    struct job *j = arg;
    bind_to(j->core);
    pthread_barrier_wait(j->start);
    j->began = bench_seconds();
    double ran = thread_seconds();
    for (;;) {
        size_t first = atomic_fetch_add(j->next, BATCH);
        if (first >= j->load->n) break;
        size_t left = j->load->n - first;
        add_batch(j, first, left < BATCH ? left : BATCH);
    }
    j->ended = bench_seconds();
    j->ran = thread_seconds() - ran;
    return NULL;
}

/* ns per key from the first start to the last end; *share is how much of it
 * the threads were running. */
static double run_once(const struct job *what, size_t threads, double *share)
{
    pthread_barrier_t start;
    pthread_t id[MAX_THREADS];
    struct job job[MAX_THREADS];
    size_t n = what->load->n;
    atomic_size_t next = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (size_t t = 0; t < threads; t++) {
        job[t] = *what;
        job[t].start = &start;
        job[t].next = &next;
        job[t].core = t;
        if (pthread_create(&id[t], NULL, run_job, &job[t]) != 0)
            bench_die("no thread");
    }
    double began = 0, ended = 0, ran = 0;
    for (size_t t = 0; t < threads; t++) {
        pthread_join(id[t], NULL);
        if (t == 0 || job[t].began < began) began = job[t].began;
        if (t == 0 || job[t].ended > ended) ended = job[t].ended;
        ran += job[t].ran;
    }
    pthread_barrier_destroy(&start);
    *share = ran / (ended - began) / (double)threads;
    return (ended - began) / (double)n * 1e9;
}

static size_t starved; /* rounds that stayed short of a core */

static double run(const struct job *what, size_t threads)
{
    double ns = 0, share = 0;
    for (int i = 0; i < RETRIES; i++) {
        if (what->filter) seen_clear(what->filter);
        ns = run_once(what, threads, &share);
        if (share > 0.95) return ns;
    }
    starved++;
    return ns;
}

static size_t count_lost(const seen_filter *f, const struct load *load)
{
    static bool answer[BATCH];
    size_t lost = 0;
    for (size_t i = 0; i < load->n; i += BATCH) {
        size_t left = load->n - i, now = left < BATCH ? left : BATCH;
        if (load->hash)
            seen_maybe_many(f, seen_keys_hashes(load->hash + i, now), answer);
        else
            seen_maybe_many(f, seen_keys_of(load->key + i, now), answer);
        for (size_t a = 0; a < now; a++)
            lost += !answer[a];
    }
    return lost;
}

/* ---- Loads -------------------------------------------------------------- */

static void *take(size_t size)
{
    void *p = malloc(size);
    if (!p) bench_die("no memory for %zu bytes", size);
    return p;
}

static struct load hashed_load(size_t n)
{
    struct load l = {.n = n, .hash = take(n * sizeof *l.hash)};
    for (size_t i = 0; i < n; i++)
        l.hash[i] = bench_hash(i);
    return l;
}

static struct load bytes_load(size_t n)
{
    struct load l = {.n = n,
                     .key = take(n * sizeof *l.key),
                     .bytes = take(n * BENCH_KEY_LONG + 8)};
    uint8_t *to = l.bytes;
    for (size_t i = 0; i < n; i++) {
        l.key[i] = (seen_key){to, bench_key(i, to)};
        to += l.key[i].len;
    }
    return l;
}

static void release(struct load *l)
{
    free(l->hash);
    free(l->key);
    free(l->bytes);
}

/* ---- Rows --------------------------------------------------------------- */

static void rows(seen_filter *f, const struct load *load, const char *kind)
{
    struct job adds = {.filter = f, .load = load}, raw = {.load = load};
    struct bench_series one = {0}, two = {0}, raw_one = {0}, raw_two = {0};
    struct bench_lines lines = {0};
    size_t lost = 0;
    if (load->hash) {
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        lines = bench_lines_new(info.bits / 8);
        raw.lines = &lines;
    }
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&one, run(&adds, 1));
        bench_round(&two, run(&adds, 2));
        lost += count_lost(f, load);
        if (!load->hash) continue;
        bench_round(&raw_one, run(&raw, 1));
        bench_round(&raw_two, run(&raw, 2));
    }

    char name[64];
    struct bench_row row = {.name = name, .unit = "ns/key"};
    if (load->hash) {
        snprintf(name, sizeof name, "concurrent add, %s, 1 thread", kind);
        row.ours = one;
        row.limit_name = "raw line write";
        row.limit = raw_one;
        bench_print(&row);
        row.limit = raw_two;
    }
    snprintf(name, sizeof name, "concurrent add, %s, 2 threads", kind);
    row.ours = two;
    row.peer_name = "1 thread";
    row.peer = one;
    row.what = BENCH_PEER_AT_LEAST;
    row.aim = 1.6;
    char note[64] = "";
    if (load->hash) {
        snprintf(note, sizeof note, "raw writes scale %.2f",
                 bench_best(&raw_one) / bench_best(&raw_two));
        row.note = note;
    }
    bench_print(&row);

    snprintf(name, sizeof name, "keys lost of %.3g, 2 threads, %s",
             (double)load->n * ROUNDS, kind);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "keys",
                                    .ours = bench_once((double)lost),
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 0});
    if (load->hash) bench_lines_free(&lines);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "concurrent", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);

    size_t items = o.quick ? 10000000 : 100000000;
    seen_spec spec = {.items = items, .fpp = 0.01, .flags = SEEN_CONCURRENT};
    seen_filter *f;
    if (seen_new(&f, &spec, NULL) != SEEN_OK) bench_die("no concurrent filter");

    bench_note("concurrent filter of %zuM keys", items / 1000000);
    struct load hashed = hashed_load(items / 2);
    rows(f, &hashed, "hashed");
    release(&hashed);
    struct load bytes = bytes_load(items / 10);
    rows(f, &bytes, "byte keys");
    release(&bytes);
    seen_free(f);
    if (starved)
        bench_note("%zu rounds did not get their cores: not an idle machine",
                   starved);
    return bench_finish();
}
