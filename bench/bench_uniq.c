/*
 * bench_uniq.c - `seen uniq` on a file of lines, against mawk, sort -u and wc.
 *
 *     bench_uniq [--json] SEEN FILE DISTINCT
 *
 * Every command reads FILE from the page cache. Ours run six times each, taking turns, none more often than the
 * others; the peers, slow and steady, once. So that a busy machine does not slow
 * down the peers alone, mawk, which has one thread and waits for nothing, is
 * charged its processor time if that is less. Two more runs count the lines that
 * come out.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "command.h"

#include <seen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 6 /* of each command of ours, in turns */

/* ---- Rows --------------------------------------------------------------- */

static void memory_row(const char *name, const struct bench_cost *ours,
                       const struct bench_peer *peer, double distinct,
                       double target)
{
    struct bench_row r = {.name = name,
                          .unit = "bytes/line",
                          .what = BENCH_OURS_AT_MOST,
                          .aim = target};
    r.ours = bench_once(bench_worst(&ours->bytes) / distinct);
    r.peer_name = peer->name;
    if (!peer->missing)
        r.peer = bench_once(bench_worst(&peer->cost.bytes) / distinct);
    bench_print(&r);
}

/* The rate of a filter for n lines, summed up while it fills. */
static double expected_loss(double n, double fpp)
{
    seen_plan plan = {.size = sizeof plan};
    double sum = 0;
    if (seen_plan_for(&(seen_spec){.items = (uint64_t)n, .fpp = fpp}, &plan,
                      NULL))
        return 0;
    for (int i = 0; i < 1000; i++)
        sum += seen_plan_fpp(&plan, (uint64_t)(n * (i + 0.5) / 1000));
    return sum / 1000 * n;
}

static void lost_row(const char *name, char *const *argv, double distinct,
                     double expected)
{
    bench_print(&(struct bench_row){
        .name = name,
        .unit = "lines",
        .ours = bench_once(distinct - bench_count_lines(argv)),
        .limit_name = "expected",
        .limit = bench_once(expected)});
}

/* All of ours, taking turns. */
static void ours_rows(char *seen, char *file, const char *distinct_text,
                      const struct bench_peer *mawk,
                      const struct bench_peer *sort,
                      const struct bench_peer *wc)
{
    char *n = (char *)distinct_text;
    char *one[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j1", file, NULL};
    char *two[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j2", file, NULL};
    char *piped[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j1", NULL};
    char *plain[] = {seen, "uniq", file, NULL};
    char *plain_two[] = {seen, "uniq", "-j2", file, NULL};
    char *plain_piped[] = {seen, "uniq", NULL};
    double distinct = strtod(n, NULL);

    struct bench_peer c_one = {.name = "-j1"}, c_plain = {.name = "file"};
    struct bench_cost c_two = {0}, c_piped = {0}, c_plain_piped = {0};
    struct bench_cost c_plain_two = {0};
    bench_note("seen uniq");
    for (int i = 0; i < ROUNDS; i++) {
        bench_measure(&c_one.cost, one, NULL);
        bench_measure(&c_two, two, NULL);
        bench_measure(&c_piped, piped, file);
        bench_measure(&c_plain.cost, plain, NULL);
        bench_measure(&c_plain_two, plain_two, NULL);
        bench_measure(&c_plain_piped, plain_piped, file);
    }
    struct bench_peer c_file = c_one;
    c_file.name = "file";
    struct bench_peer c_plain_alone = c_plain;
    c_plain_alone.name = "uniq";

    bench_time_row("uniq -p 1e-6 -j1", &c_one.cost, mawk, wc, 40);
    bench_time_row("uniq -p 1e-6 -j1", &c_one.cost, sort, wc, 12);
    bench_time_row("uniq -p 1e-6 -j2", &c_two, &c_one, wc, 1.7);
    bench_time_row("uniq -p 1e-6 -j1, from a pipe", &c_piped, NULL, &c_file,
                   1.5);
    memory_row("uniq -p 1e-6 -j1, memory", &c_one.cost, mawk, distinct, 6);
    lost_row("uniq -p 1e-6, lines lost", one, distinct,
             expected_loss(distinct, 1e-6));
    bench_time_row("uniq", &c_plain.cost, mawk, wc, 30);
    bench_time_row("uniq -j2", &c_plain_two, &c_plain_alone, wc, 0);
    bench_time_row("uniq, from a pipe", &c_plain_piped, NULL, &c_plain, 1.5);
    memory_row("uniq, memory", &c_plain.cost, mawk, distinct, 32);
    lost_row("uniq, lines lost", plain, distinct,
             distinct * distinct / 2 * 0x1p-64);
}

int main(int argc, char **argv)
{
    struct bench_options o;
    char **rest = bench_start(argv, "uniq", &o);
    if (argc - (rest - argv) != 3)
        bench_die("usage: bench_uniq [--json] SEEN FILE DISTINCT");
    char *seen = rest[0], *file = rest[1];

    if (access(seen, X_OK) != 0) {
        bench_print(&(struct bench_row){
            .name = "uniq",
            .unit = "s",
            .skipped = "the seen program has not been built"});
        return bench_finish();
    }
    setenv("LC_ALL", "C", 1);
    char *wc_argv[] = {"wc", "-l", file, NULL};
    char *mawk_argv[] = {"mawk", "!s[$0]++", file, NULL};
    char *sort_argv[] = {"sort", "-u", "--parallel=2", "-S8G", file, NULL};
    struct bench_peer wc =
        bench_run_peer("wc -l", "there is no wc", wc_argv, ROUNDS);
    struct bench_peer sort =
        bench_run_peer("sort -u", "there is no sort", sort_argv, 1);
    struct bench_peer mawk =
        bench_run_peer("mawk", "mawk is not installed", mawk_argv, 1);
    bench_charge_processor(&mawk);
    ours_rows(seen, file, rest[2], &mawk, &sort, &wc);
    return bench_finish();
}
