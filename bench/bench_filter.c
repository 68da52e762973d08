/*
 * bench_filter.c - the blocked filter by itself, keys hashed beforehand.
 *
 * size       bits per key the planner takes, and the rate measured with 1e7
 *            absent keys against the binomial interval around the rate the
 *            filter reports of itself (a right filter fails once in 1e6 runs)
 * lookup     seen_maybe_many() of hashes on a filter of 1M and one of 100M keys at
 *            1 %, against reading one word of a random line of as much memory
 *            with the same prefetch distance: the limit of the machine
 * add        the same for seen_add_many(), and for the classic filter
 * dispatch   the same lookups by the portable kernel. A process chooses its
 *            kernel once, so a second process with SEEN_CPU=portable is forked
 *            before the first filter is made and measures a round when asked:
 *            the two still take turns.
 *
 * A round is a million lookups in blocks of 65536 hashes made outside the time.
 */
#define _DEFAULT_SOURCE /* fork, pipe, setenv */

#include "seen.h"

#include "bench.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS       25
#define ROUND_BLOCKS 16

static struct bench_hashes block;
static uint64_t sink; /* keeps the sums of the raw reads alive */

/* ---- Filters ------------------------------------------------------------ */

static seen_filter *make(seen_kind kind, uint64_t items, double fpp)
{
    seen_spec spec = {.items = items, .fpp = fpp, .kind = kind};
    seen_filter *f;
    seen_status status = seen_new(&f, &spec, NULL);
    if (status != SEEN_OK)
        bench_die("filter of %.0f keys: %s", (double)items,
                  seen_strerror(status));
    return f;
}

/* Adds keys 0 .. items; seconds spent adding. */
static double fill(seen_filter *f, uint64_t items)
{
    double spent = 0;
    for (uint64_t i = 0; i < items; i += BENCH_HASHES) {
        uint64_t left = items - i;
        bench_hashes_run(&block, i, left < BENCH_HASHES ? left : BENCH_HASHES);
        double start = bench_seconds();
        seen_add_many(f, seen_keys_hashes(block.hash, block.n), NULL);
        spent += bench_seconds() - start;
    }
    return spent;
}

static seen_filter *make_full(seen_kind kind, uint64_t items, double fpp)
{
    seen_filter *f = make(kind, items, fpp);
    fill(f, items);
    return f;
}

static uint64_t payload(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info.bits / 8;
}

/* ---- Rounds: ns per key ------------------------------------------------- */

static double lookup_round(const seen_filter *f, uint64_t items,
                           enum bench_share share)
{
    double spent = 0;
    for (int i = 0; i < ROUND_BLOCKS; i++) {
        bench_hashes_ask(&block, items, share);
        double start = bench_seconds();
        seen_maybe_many(f, seen_keys_hashes(block.hash, block.n), block.answer);
        spent += bench_seconds() - start;
        bench_hashes_check(&block);
    }
    return spent / ROUND_BLOCKS / BENCH_HASHES * 1e9;
}

static double raw_round(const struct bench_lines *lines, uint64_t items)
{
    double spent = 0;
    for (int i = 0; i < ROUND_BLOCKS; i++) {
        bench_hashes_ask(&block, items, BENCH_HALF);
        double start = bench_seconds();
        sink += bench_lines_read(lines, block.hash, block.n);
        spent += bench_seconds() - start;
    }
    return spent / ROUND_BLOCKS / BENCH_HASHES * 1e9;
}

static double raw_change_round(struct bench_lines *lines, uint64_t items)
{
    double spent = 0;
    for (int i = 0; i < ROUND_BLOCKS; i++) {
        bench_hashes_ask(&block, items, BENCH_HALF);
        double start = bench_seconds();
        bench_lines_change(lines, block.hash, block.n);
        spent += bench_seconds() - start;
    }
    return spent / ROUND_BLOCKS / BENCH_HASHES * 1e9;
}

/* New keys each round, so that an add has bits to set. */
static double add_round(seen_filter *f, uint64_t *next)
{
    double spent = 0;
    for (int i = 0; i < ROUND_BLOCKS; i++) {
        bench_hashes_run(&block, *next, BENCH_HASHES);
        *next += BENCH_HASHES;
        double start = bench_seconds();
        seen_add_many(f, seen_keys_hashes(block.hash, block.n), NULL);
        spent += bench_seconds() - start;
    }
    return spent / ROUND_BLOCKS / BENCH_HASHES * 1e9;
}

/* ---- The portable kernel, in a process of its own ----------------------- */

struct portable {
    pid_t pid;
    int ask, answer; /* our ends of the pipes */
};

/* Answers "a filter of so many keys" with ns per key, one round each time it
 * is asked for the same number again. */
static void serve(int in, int out)
{
    seen_filter *f = NULL;
    uint64_t items = 0, wanted;
    while (read(in, &wanted, sizeof wanted) == (ssize_t)sizeof wanted) {
        if (wanted != items) {
            seen_free(f);
            items = wanted;
            f = make_full(SEEN_BLOCKED, items, 0.01);
        }
        double ns = lookup_round(f, items, BENCH_HALF);
        if (write(out, &ns, sizeof ns) != (ssize_t)sizeof ns) break;
    }
    _exit(0);
}

static struct portable portable_start(void)
{
    int ask[2], answer[2];
    if (pipe(ask) || pipe(answer)) bench_die("no pipe");
    pid_t pid = fork();
    if (pid < 0) bench_die("no process for the portable kernel");
    if (pid == 0) {
        setenv("SEEN_CPU", "portable", 1);
        close(ask[1]);
        close(answer[0]);
        serve(ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    return (struct portable){pid, ask[1], answer[0]};
}

static double portable_round(const struct portable *p, uint64_t items)
{
    double ns;
    if (write(p->ask, &items, sizeof items) != (ssize_t)sizeof items ||
        read(p->answer, &ns, sizeof ns) != (ssize_t)sizeof ns)
        bench_die("the process with the portable kernel is gone");
    return ns;
}

static void portable_end(const struct portable *p)
{
    close(p->ask);
    close(p->answer);
    waitpid(p->pid, NULL, 0);
}

/* ---- Size and rate ------------------------------------------------------ */

static double measured_rate(const seen_filter *f, uint64_t items,
                            uint64_t probes)
{
    uint64_t wrong = 0;
    for (uint64_t done = 0; done < probes; done += block.n) {
        bench_hashes_ask(&block, items, BENCH_ABSENT);
        if (block.n > probes - done) block.n = (size_t)(probes - done);
        seen_maybe_many(f, seen_keys_hashes(block.hash, block.n), block.answer);
        for (size_t i = 0; i < block.n; i++)
            wrong += block.answer[i];
    }
    return (double)wrong;
}

static void size_rows(double fpp, double bits_target)
{
    const uint64_t items = 1000000, probes = 10000000;
    seen_filter *f = make_full(SEEN_BLOCKED, items, fpp);
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);

    char name[64];
    snprintf(name, sizeof name, "size, 1M keys at %g%%", fpp * 100);
    bench_print(&(struct bench_row){
        .name = name,
        .unit = "bits/key",
        .ours = bench_once((double)info.bits / (double)items),
        .limit_name = "log2(1/p)",
        .limit = bench_once(-log2(fpp)),
        .what = BENCH_OURS_AT_MOST,
        .aim = bits_target});

    double n = (double)probes, p = info.fpp_now;
    char note[96];
    snprintf(note, sizeof note, "promised %g, expected from its bits %.6f", fpp,
             p);
    snprintf(name, sizeof name, "false positives of 1e7 at %g%%", fpp * 100);
    bench_print(
        &(struct bench_row){.name = name,
                            .unit = "keys",
                            .ours = bench_once(measured_rate(f, items, probes)),
                            .limit_name = "expected",
                            .limit = bench_once(n * p),
                            .what = BENCH_OURS_WITHIN,
                            .aim_low = bench_least(n, p),
                            .aim = bench_most(n, p),
                            .note = note});
    seen_free(f);
}

/* ---- Lookups ------------------------------------------------------------ */

struct sized {
    uint64_t items;
    const char *label; /* "1M" */
    bool large;        /* beyond all caches: the raw limit is the target */
};

static void mixed_rows(const struct sized *s, const struct bench_series *ours,
                       const struct bench_series *raw)
{
    char name[64];
    snprintf(name, sizeof name, "lookup batch, hashed, %s", s->label);
    struct bench_row row = {.name = name,
                            .unit = "ns/key",
                            .ours = *ours,
                            .limit_name = "raw line",
                            .limit = *raw,
                            .what = BENCH_LIMIT_AT_MOST,
                            .aim = s->large ? 1.3 : 2};
    bench_print(&row);
    if (s->large) return;
    row.what = BENCH_OURS_AT_MOST;
    row.aim = 4;
    bench_print(&row);
}

static void share_row(const struct sized *s, const char *share,
                      const struct bench_series *ours,
                      const struct bench_series *raw)
{
    char name[64];
    snprintf(name, sizeof name, "lookup batch, hashed, %s, %s", s->label,
             share);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "ns/key",
                                    .ours = *ours,
                                    .limit_name = "raw line",
                                    .limit = *raw});
}

static void dispatch_row(const struct sized *s,
                         const struct bench_series *portable,
                         const struct bench_series *best)
{
    char name[64];
    snprintf(name, sizeof name, "lookup batch, portable kernel, %s", s->label);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "ns/key",
                                    .ours = *portable,
                                    .limit_name = "best kernel",
                                    .limit = *best,
                                    .what = BENCH_LIMIT_AT_MOST,
                                    .aim = 3});
}

static void lookup_rows(const struct sized *s, const struct portable *p)
{
    bench_note("filter of %s keys", s->label);
    seen_filter *f = make_full(SEEN_BLOCKED, s->items, 0.01);
    struct bench_lines lines = bench_lines_new(payload(f));
    struct bench_series half = {0}, absent = {0}, present = {0}, raw = {0};
    struct bench_series portable = {0};

    portable_round(p, s->items); /* fills its filter */
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&half, lookup_round(f, s->items, BENCH_HALF));
        bench_round(&raw, raw_round(&lines, s->items));
        bench_round(&absent, lookup_round(f, s->items, BENCH_ABSENT));
        bench_round(&present, lookup_round(f, s->items, BENCH_PRESENT));
        bench_round(&portable, portable_round(p, s->items));
    }
    mixed_rows(s, &half, &raw);
    share_row(s, "absent", &absent, &raw);
    share_row(s, "present", &present, &raw);
    dispatch_row(s, &portable, &half);
    bench_lines_free(&lines);
    seen_free(f);
}

/* ---- Adds and the classic filter ---------------------------------------- */

/* Rounds fill the filter to no more than its capacity; then it is emptied. */
static void add_row(const struct sized *s, seen_kind kind, const char *what)
{
    seen_filter *f = make(kind, s->items, 0.01);
    struct bench_lines lines = bench_lines_new(payload(f));
    struct bench_series ours = {0}, raw = {0};
    uint64_t next = 0;
    fill(f, s->items); /* touches every page */
    for (int i = 0; i < ROUNDS; i++) {
        if (next == 0 || next + ROUND_BLOCKS * BENCH_HASHES > s->items) {
            seen_clear(f);
            next = 0;
        }
        bench_round(&ours, add_round(f, &next));
        bench_round(&raw, raw_change_round(&lines, s->items));
    }
    char name[64];
    snprintf(name, sizeof name, "add batch, hashed, %s%s", s->label, what);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "ns/key",
                                    .ours = ours,
                                    .limit_name = "raw line write",
                                    .limit = raw});
    bench_lines_free(&lines);
    seen_free(f);
}

static void classic_row(const struct sized *s)
{
    seen_filter *f = make_full(SEEN_BLOOM, s->items, 0.01);
    struct bench_lines lines = bench_lines_new(payload(f));
    struct bench_series ours = {0}, raw = {0};
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&ours, lookup_round(f, s->items, BENCH_HALF));
        bench_round(&raw, raw_round(&lines, s->items));
    }
    char name[64];
    snprintf(name, sizeof name, "lookup batch, hashed, %s, classic", s->label);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "ns/key",
                                    .ours = ours,
                                    .limit_name = "raw line",
                                    .limit = raw});
    bench_lines_free(&lines);
    seen_free(f);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "filter", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);

    struct portable p = portable_start();
    const struct sized small = {1000000, "1M", false};
    const struct sized large = o.quick
                                   ? (struct sized){10000000, "10M", true}
                                   : (struct sized){100000000, "100M", true};
    size_rows(0.01, 10.2);
    size_rows(0.001, 15.8);
    lookup_rows(&large, &p);
    lookup_rows(&small, &p);
    portable_end(&p);
    add_row(&large, SEEN_BLOCKED, "");
    add_row(&small, SEEN_BLOCKED, "");
    classic_row(&large);
    classic_row(&small);
    if (sink == 1) bench_note("unlikely"); /* the reads must happen */
    return bench_finish();
}
