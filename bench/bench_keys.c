/*
 * bench_keys.c - byte keys of 16 to 40 bytes, hashed inside the call, against
 * libbloom and LevelDB's filter.
 *
 * All filters are made for 1 % (LevelDB: 10 bits per key, its closest whole
 * number) and hold the same keys. Ours answers in batches and one at a time;
 * the peers have single calls only, made in a loop over the same packed block
 * of 16384 keys, which is made outside the time. All take turns, round by
 * round.
 */
#include "seen.h"

#include "bench.h"
#include "peer.h"
#include "workload.h"

#include <stdio.h>

#define ROUNDS       15
#define ROUND_BLOCKS 16
#define FPP          0.01

static struct bench_keys block;

typedef void ask_fn(void *filter, const seen_key *keys, size_t n,
                    bool *answers);

static void ask_many(void *filter, const seen_key *keys, size_t n,
                     bool *answers)
{
    seen_maybe_many(filter, seen_keys_of(keys, n), answers);
}

static void ask_single(void *filter, const seen_key *keys, size_t n,
                       bool *answers)
{
    for (size_t i = 0; i < n; i++)
        answers[i] = seen_maybe(filter, keys[i].data, keys[i].len);
}

static void add_many(void *filter, const seen_key *keys, size_t n,
                     bool *answers)
{
    (void)answers;
    seen_add_many(filter, seen_keys_of(keys, n), NULL);
}

static void add_single(void *filter, const seen_key *keys, size_t n,
                       bool *answers)
{
    (void)answers;
    for (size_t i = 0; i < n; i++)
        seen_add(filter, keys[i].data, keys[i].len);
}

static double ask_round(ask_fn *ask, void *filter, uint64_t items)
{
    double spent = 0;
    for (int i = 0; i < ROUND_BLOCKS; i++) {
        bench_keys_ask(&block, items, BENCH_HALF);
        double start = bench_seconds();
        ask(filter, block.key, block.n, block.answer);
        spent += bench_seconds() - start;
        bench_keys_check(&block);
    }
    return spent / ROUND_BLOCKS / BENCH_KEYS * 1e9;
}

/* Keys 0 .. items; ns per key. */
static double fill(ask_fn *add, void *filter, uint64_t items)
{
    double spent = 0;
    for (uint64_t i = 0; i < items; i += BENCH_KEYS) {
        uint64_t left = items - i;
        bench_keys_run(&block, i, left < BENCH_KEYS ? left : BENCH_KEYS);
        double start = bench_seconds();
        add(filter, block.key, block.n, block.answer);
        spent += bench_seconds() - start;
    }
    return spent / (double)items * 1e9;
}

static seen_filter *make(seen_kind kind, uint64_t items)
{
    seen_spec spec = {.items = items, .fpp = FPP, .kind = kind};
    seen_filter *f;
    seen_status status = seen_new(&f, &spec, NULL);
    if (status != SEEN_OK)
        bench_die("filter of %.0f keys: %s", (double)items,
                  seen_strerror(status));
    return f;
}

/* ---- A peer that may not be there --------------------------------------- */

struct peer {
    const struct bench_peer *is;
    void *filter; /* NULL: skipped */
    double add_ns;
    struct bench_series ask;
};

static void peer_add(void *peer, const seen_key *keys, size_t n, bool *answers)
{
    struct peer *p = peer;
    (void)answers;
    p->is->add(p->filter, keys, n);
}

static struct peer peer_open(const struct bench_peer *is, uint64_t items)
{
    struct peer p = {.is = is};
    if (is->missing) return p;
    p.filter = is->make((size_t)items, FPP);
    if (!p.filter) bench_die("%s: no filter of this size", is->name);
    p.add_ns = fill(peer_add, &p, items);
    is->seal(p.filter);
    return p;
}

static void peer_round(struct peer *p, uint64_t items)
{
    if (p->filter)
        bench_round(&p->ask, ask_round(p->is->maybe, p->filter, items));
}

static void peer_close(struct peer *p)
{
    if (p->filter) p->is->release(p->filter);
}

static void row(const char *name, const char *size,
                const struct bench_series *ours, const struct peer *p,
                double target)
{
    char full[96];
    snprintf(full, sizeof full, "%s, %s", name, size);
    struct bench_row r = {.name = full, .unit = "ns/key", .ours = *ours};
    if (p) {
        r.peer_name = p->is->name;
        r.peer = p->ask;
        r.skipped = p->is->missing;
    }
    if (target > 0) {
        r.what = BENCH_PEER_AT_LEAST;
        r.aim = target;
    }
    bench_print(&r);
}

/* ---- Rows --------------------------------------------------------------- */

static void large_rows(uint64_t items, const char *size)
{
    bench_note("filters of %s byte keys, libbloom's takes a while", size);
    seen_filter *f = make(SEEN_BLOCKED, items);
    fill(add_many, f, items);
    struct peer libbloom = peer_open(&bench_libbloom, items);
    struct bench_series many = {0}, single = {0};
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&many, ask_round(ask_many, f, items));
        peer_round(&libbloom, items);
        bench_round(&single, ask_round(ask_single, f, items));
    }
    row("lookup batch, byte keys", size, &many, &libbloom, 8);
    row("lookup single, byte keys", size, &single, &libbloom, 0);
    peer_close(&libbloom);
    seen_free(f);
}

static void small_rows(uint64_t items, const char *size)
{
    seen_filter *f = make(SEEN_BLOCKED, items);
    seen_filter *classic = make(SEEN_BLOOM, items);
    fill(add_many, f, items);
    fill(add_many, classic, items);
    struct peer libbloom = peer_open(&bench_libbloom, items);
    struct peer leveldb = peer_open(&bench_leveldb, items);
    struct bench_series many = {0}, single = {0}, k_anywhere = {0};
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&many, ask_round(ask_many, f, items));
        peer_round(&libbloom, items);
        peer_round(&leveldb, items);
        bench_round(&single, ask_round(ask_single, f, items));
        bench_round(&k_anywhere, ask_round(ask_many, classic, items));
    }
    row("lookup batch, byte keys", size, &many, &libbloom, 5);
    row("lookup batch, byte keys", size, &many, &leveldb, 4);
    row("lookup single, byte keys", size, &single, &libbloom, 0);
    row("lookup single, byte keys", size, &single, &leveldb, 0);
    row("lookup batch, byte keys, classic", size, &k_anywhere, &libbloom, 0);

    /* Adds: a whole filter each round. */
    struct bench_series adds = {0}, add_calls = {0};
    struct peer adder = {.is = &bench_libbloom, .ask = {0}};
    for (int i = 0; i < 5; i++) {
        seen_clear(f);
        bench_round(&adds, fill(add_many, f, items));
        seen_clear(f);
        bench_round(&add_calls, fill(add_single, f, items));
        if (libbloom.filter) {
            struct peer again = peer_open(&bench_libbloom, items);
            bench_round(&adder.ask, again.add_ns);
            peer_close(&again);
        }
    }
    row("add batch, byte keys", size, &adds, &adder, 0);
    row("add single, byte keys", size, &add_calls, &adder, 0);
    peer_close(&leveldb);
    peer_close(&libbloom);
    seen_free(classic);
    seen_free(f);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "keys", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);
    small_rows(1000000, "1M");
    if (o.quick)
        large_rows(10000000, "10M");
    else
        large_rows(100000000, "100M");
    return bench_finish();
}
