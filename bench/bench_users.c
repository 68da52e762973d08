/*
 * bench_users.c - the store of users, against the disk and against plain LMDB.
 *
 * A million users who have been shown 1 to 2000 items each, log-uniformly. Then
 * users come by Zipf's law (s = 1):
 *
 *   marks    10 items each, 1000 marks before every sync, checkpoints running
 *            as they fall due. Peer: the same work on LMDB alone, a whole record
 *            read, changed and written per mark, a transaction per 1000. Limit:
 *            the disk, as many bytes appended and synced as often
 *   reads    which of 200 candidates are fresh: one thread, each call timed;
 *            alone, and while another thread marks and makes checkpoints
 *   takes    10 of 200, four threads, each take on disk before it returns
 *   reopen   after a crash with a full journal
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_users.h"

#include "bench.h"
#include "workload.h"

#include <lmdb.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS     5
#define MARKS      1000 /* of a commit */
#define ITEMS      10   /* of a mark */
#define CANDIDATES 200
#define SHOWN_MAX  2000
#define NOW        ((uint64_t)1700000000000)

static char dir[3000];
static uint64_t n_users;
static uint64_t clock_ms = NOW; /* goes on a little with every batch */

static void must(seen_status status, const char *what)
{
    if (status != SEEN_OK) bench_die("%s: %s", what, seen_strerror(status));
}

static const char *in_dir(const char *name)
{
    static char path[4][4096];
    static unsigned next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", dir, name);
    return to;
}

/* ---- Users and items ---------------------------------------------------- */

struct user {
    char name[24];
    size_t len;
};

static struct user user_number(uint64_t i)
{
    struct user u;
    u.len = (size_t)snprintf(u.name, sizeof u.name, "user:%08llx",
                             (unsigned long long)(uint32_t)bench_mix(i));
    return u;
}

static double unit(uint64_t x)
{
    return (double)(x >> 11) / 9007199254740992.0;
}

/* Rank r with a probability of about 1 / (r ln n). */
static uint64_t zipf(uint64_t x)
{
    uint64_t rank = (uint64_t)exp(unit(x) * log((double)n_users));
    return rank < n_users ? rank : n_users - 1;
}

static size_t shown_to(uint64_t user)
{
    return (size_t)exp(unit(bench_mix(user + 77)) * log(SHOWN_MAX));
}

struct items {
    uint64_t id[SHOWN_MAX];
    seen_key key[SHOWN_MAX];
};

static void fill_items(struct items *t, uint64_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->id[i] = bench_mix(from + i);
        t->key[i] = (seen_key){&t->id[i], sizeof t->id[i]};
    }
}

/* ---- Filling ------------------------------------------------------------ */

static seen_users *open_store(seen_mode mode)
{
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_users_options o = {.mode = mode, .create = mode != SEEN_READ};
    if (seen_users_open(&u, in_dir("store"), &o, &outcome, &error) != SEEN_OK)
        bench_die("%s: %s", in_dir("store"), error.text);
    return u;
}

static uint64_t fill_store(void)
{
    static struct items t;
    seen_users *u = open_store(SEEN_WRITE);
    uint64_t ids = 0;
    for (uint64_t i = 0; i < n_users; i++) {
        struct user user = user_number(i);
        size_t n = shown_to(i);
        fill_items(&t, i << 20, n);
        must(seen_users_mark(u, (seen_key){user.name, user.len}, NOW,
                             seen_keys_of(t.key, n), NULL, NULL),
             "mark");
        ids += n;
    }
    must(seen_users_close(u, NULL), "close");
    return ids;
}

/* ---- Marks -------------------------------------------------------------- */

struct batch {
    struct user user[MARKS];
    uint64_t id[MARKS][ITEMS];
    seen_key key[MARKS][ITEMS];
    seen_users_request r[MARKS];
};

static uint64_t next_random = 12345;

static void fill_batch(struct batch *b)
{
    clock_ms += 10;
    for (size_t i = 0; i < MARKS; i++) {
        b->user[i] = user_number(zipf(bench_mix(next_random++)));
        for (size_t k = 0; k < ITEMS; k++) {
            b->id[i][k] = bench_mix(next_random++);
            b->key[i][k] = (seen_key){&b->id[i][k], sizeof b->id[i][k]};
        }
        b->r[i] =
            (seen_users_request){.user = {b->user[i].name, b->user[i].len},
                                 .items = seen_keys_of(b->key[i], ITEMS)};
    }
}

/* Seconds of the calls alone. */
static double mark_round(seen_users *u, size_t batches)
{
    static struct batch b;
    double took = 0;
    for (size_t i = 0; i < batches; i++) {
        fill_batch(&b);
        double began = bench_seconds();
        must(seen_users_mark_many(u, clock_ms, b.r, MARKS, NULL), "mark");
        took += bench_seconds() - began;
    }
    return took;
}

/* ---- LMDB alone --------------------------------------------------------- */

struct plain {
    MDB_env *env;
    MDB_dbi db;
    seen_exposure *x;
};

static void lmdb_must(int rc, const char *what)
{
    if (rc) bench_die("LMDB, %s: %s", what, mdb_strerror(rc));
}

static struct plain open_plain(void)
{
    static const uint8_t secret[16] = {1};
    struct plain p;
    MDB_txn *txn;
    if (mkdir(in_dir("plain"), 0777) != 0) bench_die("mkdir");
    lmdb_must(mdb_env_create(&p.env), "create");
    lmdb_must(mdb_env_set_mapsize(p.env, (size_t)1 << 38), "map");
    lmdb_must(mdb_env_open(p.env, in_dir("plain"), 0, 0666), "open");
    lmdb_must(mdb_txn_begin(p.env, NULL, 0, &txn), "begin");
    lmdb_must(mdb_dbi_open(txn, NULL, 0, &p.db), "database");
    lmdb_must(mdb_txn_commit(txn), "commit");
    must(seen_exposure_new(&p.x, NULL, secret, NULL, NULL), "exposure");
    return p;
}

static void plain_mark(const struct plain *p, MDB_txn *txn, struct user *user,
                       const seen_key *items, size_t n)
{
    MDB_val key = {user->len, user->name}, value = {0};
    seen_record r = {0};
    int rc = mdb_get(txn, p->db, &key, &value);
    if (rc != MDB_NOTFOUND) lmdb_must(rc, "get");
    if (!rc) r = (seen_record){value.mv_data, value.mv_size};
    must(
        seen_exposure_mark(p->x, r, clock_ms, seen_keys_of(items, n), NULL, &r),
        "mark");
    value = (MDB_val){r.len, (void *)(uintptr_t)r.data};
    lmdb_must(mdb_put(txn, p->db, &key, &value, 0), "put");
}

static void fill_plain(const struct plain *p)
{
    static struct items t;
    MDB_txn *txn = NULL;
    for (uint64_t i = 0; i < n_users; i++) {
        struct user user = user_number(i);
        size_t n = shown_to(i);
        if (!txn) lmdb_must(mdb_txn_begin(p->env, NULL, 0, &txn), "begin");
        fill_items(&t, i << 20, n);
        plain_mark(p, txn, &user, t.key, n);
        if (i % 50000 == 49999 || i + 1 == n_users) {
            lmdb_must(mdb_txn_commit(txn), "commit");
            txn = NULL;
        }
    }
}

static double plain_round(const struct plain *p, size_t batches)
{
    static struct batch b;
    double took = 0;
    for (size_t i = 0; i < batches; i++) {
        MDB_txn *txn;
        fill_batch(&b);
        double began = bench_seconds();
        lmdb_must(mdb_txn_begin(p->env, NULL, 0, &txn), "begin");
        for (size_t k = 0; k < MARKS; k++)
            plain_mark(p, txn, &b.user[k], b.key[k], ITEMS);
        lmdb_must(mdb_txn_commit(txn), "commit");
        took += bench_seconds() - began;
    }
    return took;
}

static void close_plain(struct plain *p)
{
    seen_exposure_free(p->x);
    mdb_env_close(p->env);
    unlink(in_dir("plain/data.mdb"));
    unlink(in_dir("plain/lock.mdb"));
    rmdir(in_dir("plain"));
}

static void mark_rows(bool quick)
{
    const size_t batches = quick ? 200 : 2000;
    const size_t plain_batches = quick ? 20 : 60;
    struct plain p = open_plain();
    fill_plain(&p);
    seen_users *u = open_store(SEEN_DURABLE);
    struct bench_series ours = {0}, peer = {0}, disk = {0};
    const double per_batch = MARKS * ITEMS / 1e9;
    uint64_t before = 0;
    seen_users_stats s = {.size = sizeof s};
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&ours,
                    mark_round(u, batches) / per_batch / (double)batches);
        must(seen_users_stats_of(u, &s, NULL), "stats");
        bench_round(&peer, plain_round(&p, plain_batches) / per_batch /
                               (double)plain_batches);
        bench_round(&disk, bench_disk(in_dir("disk"),
                                      MARKS * (16 + 13 + 8 * ITEMS), 100) /
                               per_batch / 100);
        before += s.checkpoints;
    }
    close_plain(&p);
    char note[200];
    snprintf(note, sizeof note,
             "%.2fM ids/s, all rounds %.2fM; LMDB %.2fM; the disk %.0f "
             "fdatasync/s; %llu checkpoints, longest wait %.1f ms",
             1e3 / bench_best(&ours), 1e3 / bench_median(&ours),
             1e3 / bench_best(&peer), 1 / (bench_best(&disk) * per_batch),
             (unsigned long long)s.checkpoints, (double)s.stall_us / 1e3);
    bench_print(&(struct bench_row){.name = "durable marks, 1000 per commit",
                                    .unit = "ns/id",
                                    .ours = ours,
                                    .peer_name = "LMDB alone",
                                    .peer = peer,
                                    .limit_name = "disk alone",
                                    .limit = disk,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 500,
                                    .note = note});
    must(seen_users_close(u, NULL), "close");
}

/* ---- Reads -------------------------------------------------------------- */

struct reading {
    size_t n;
    double *took;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Half of the candidates have been shown, if so many were. */
static void read_many(seen_users *u, struct reading *r)
{
    static struct items t;
    uint64_t random = 999;
    for (size_t i = 0; i < r->n; i++) {
        uint64_t number = zipf(bench_mix(random++));
        struct user user = user_number(number);
        fill_items(&t, number << 20, CANDIDATES / 2);
        for (size_t k = CANDIDATES / 2; k < CANDIDATES; k++) {
            t.id[k] = bench_mix(random++);
            t.key[k] = (seen_key){&t.id[k], sizeof t.id[k]};
        }
        size_t fresh[CANDIDATES], n;
        double began = bench_seconds();
        must(seen_users_fresh(u, (seen_key){user.name, user.len}, clock_ms,
                              seen_keys_of(t.key, CANDIDATES), fresh, &n, NULL),
             "fresh");
        r->took[i] = (bench_seconds() - began) * 1e6;
    }
}

static double sum(const struct reading *r)
{
    double s = 0;
    for (size_t i = 0; i < r->n; i++)
        s += r->took[i];
    return s;
}

struct noise {
    seen_users *u;
    atomic_bool stop;
};

static void *make_checkpoints(void *arg)
{
    static struct batch b;
    struct noise *n = arg;
    while (!atomic_load(&n->stop)) {
        for (int i = 0; i < 20; i++) {
            fill_batch(&b);
            must(seen_users_mark_many(n->u, clock_ms, b.r, MARKS, NULL),
                 "mark");
        }
        must(seen_users_sync(n->u, NULL), "checkpoint");
    }
    return NULL;
}

static void read_row(const char *name, seen_users *u, bool noisy, size_t reads)
{
    struct reading r = {reads, malloc(reads * sizeof(double))};
    struct bench_series ours = {0}, p99 = {0};
    struct noise noise = {.u = u};
    pthread_t thread;
    if (noisy) pthread_create(&thread, NULL, make_checkpoints, &noise);
    double median = 0, worst = 0;
    for (int i = 0; i < ROUNDS; i++) {
        read_many(u, &r);
        bench_round(&ours, sum(&r) / (double)reads);
        qsort(r.took, reads, sizeof *r.took, by_value);
        median = r.took[reads / 2];
        worst = r.took[reads - 1];
        bench_round(&p99, r.took[reads * 99 / 100]);
    }
    atomic_store(&noise.stop, true);
    if (noisy) pthread_join(thread, NULL);
    char note[160], name99[96];
    snprintf(note, sizeof note,
             "%.1fk requests/s, %.1f ns/candidate; last round p50 %.1f us, "
             "worst %.0f us",
             1e3 / bench_best(&ours), bench_best(&ours) * 1e3 / CANDIDATES,
             median, worst);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "us",
                                    .ours = ours,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 1e3 / 60,
                                    .note = note});
    snprintf(name99, sizeof name99, "%s, p99", name);
    bench_print(&(struct bench_row){.name = name99,
                                    .unit = "us",
                                    .ours = p99,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 50});
    free(r.took);
}

/* ---- Takes -------------------------------------------------------------- */

struct taker {
    seen_users *u;
    size_t n;
    uint64_t random;
    pthread_t thread;
};

static void *take_many(void *arg)
{
    struct taker *t = arg;
    struct items *c = malloc(sizeof *c);
    if (!c) bench_die("no memory");
    for (size_t i = 0; i < t->n; i++) {
        struct user user = user_number(zipf(bench_mix(t->random++)));
        fill_items(c, t->random, CANDIDATES);
        t->random += CANDIDATES;
        size_t taken[ITEMS], n;
        must(seen_users_take(t->u, (seen_key){user.name, user.len}, clock_ms,
                             seen_keys_of(c->key, CANDIDATES), ITEMS, taken, &n,
                             NULL),
             "take");
    }
    free(c);
    return NULL;
}

static void take_row(seen_users *u, size_t threads, size_t takes)
{
    struct bench_series ours = {0};
    for (int i = 0; i < ROUNDS; i++) {
        struct taker t[16];
        double began = bench_seconds();
        for (size_t k = 0; k < threads; k++) {
            t[k] = (struct taker){.u = u,
                                  .n = takes / threads,
                                  .random = bench_mix(next_random++)};
            pthread_create(&t[k].thread, NULL, take_many, &t[k]);
        }
        for (size_t k = 0; k < threads; k++)
            pthread_join(t[k].thread, NULL);
        bench_round(&ours, (bench_seconds() - began) * 1e6 / (double)takes);
    }
    char name[64], note[64];
    snprintf(name, sizeof name, "take 10 of 200, %zu threads", threads);
    snprintf(note, sizeof note, "%.1fk durable takes/s",
             1e3 / bench_best(&ours));
    bench_print(&(struct bench_row){
        .name = name, .unit = "us", .ours = ours, .note = note});
}

/* ---- Reopen ------------------------------------------------------------- */

/* A child fills the journal almost to the checkpoint and is gone. */
static void reopen_row(bool quick)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        seen_users *u = open_store(SEEN_WRITE);
        mark_round(u, quick ? 200 : 1500);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) bench_die("the child failed");
    double began = bench_seconds();
    seen_users *u;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    must(seen_users_open(&u, in_dir("store"),
                         &(seen_users_options){.mode = SEEN_DURABLE}, &outcome,
                         &error),
         "reopen");
    struct bench_series ours = bench_once(bench_seconds() - began);
    char note[96];
    snprintf(note, sizeof note, "%.1fM marked ids in the journal",
             (double)outcome.recovered_keys / 1e6);
    bench_print(&(struct bench_row){.name = "reopen after a crash",
                                    .unit = "s",
                                    .ours = ours,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 2,
                                    .note = note});
    must(seen_users_close(u, NULL), "close");
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "users", &o);
    if (!*rest || rest[1])
        bench_die("expected the name of a scratch directory");
    snprintf(dir, sizeof dir, "%s", *rest);
    n_users = o.quick ? 100000 : 1000000;
    bench_note("%llu users", (unsigned long long)n_users);
    double began = bench_seconds();
    uint64_t ids = fill_store();
    bench_note("%.0fM ids in %.0f s", (double)ids / 1e6,
               bench_seconds() - began);
    mark_rows(o.quick);
    seen_users *u = open_store(SEEN_DURABLE);
    const size_t reads = o.quick ? 20000 : 100000;
    read_row("fresh of 200, one thread", u, false, reads);
    read_row("fresh of 200, while checkpoints run", u, true, reads);
    take_row(u, 1, o.quick ? 1000 : 10000);
    take_row(u, 8, o.quick ? 8000 : 80000);
    must(seen_users_close(u, NULL), "close");
    reopen_row(o.quick);
    return bench_finish();
}
