/*
 * bench_check.c - `seen build`, `seen check` and `seen add` on files of lines,
 * against the bloom program of DCSO and wc.
 *
 *     bench_check [--json] SEEN KEYS LINES COUNT DIRECTORY
 *
 * Filters for the COUNT lines of KEYS at 0.1 % are made in DIRECTORY and asked
 * about every line of LINES, about half of which are in it. Ours run six times
 * each, taking turns; bloom, which reads stdin only and has several threads that
 * wait for each other, twice, in the same run.
 */
#define _POSIX_C_SOURCE 200809L

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS      6
#define PEER_ROUNDS 2
#define MISSING     "bloom is not installed"

static char *seen, *keys, *lines, *count;
static char our_filter[4096], our_copy[4096], peer_filter[4096];

static void name_files(const char *directory)
{
    snprintf(our_filter, sizeof our_filter, "%s/seen", directory);
    snprintf(our_copy, sizeof our_copy, "%s/copy", directory);
    snprintf(peer_filter, sizeof peer_filter, "%s/bloom", directory);
}

/* bloom reads stdin, and a shell gives it the file itself. */
static struct bench_peer run_bloom(const char *what, char *script, int rounds)
{
    char *argv[] = {"sh",        "-c",
                    script,      "sh",
                    peer_filter, !strcmp(what, "bloom check") ? lines : keys,
                    NULL};
    return bench_run_peer(what, MISSING, argv, rounds);
}

static void our_rows(const struct bench_peer *insert,
                     const struct bench_peer *check,
                     const struct bench_peer *wc)
{
    char *build[] = {seen, "build",    "-qp", "0.001",
                     "-o", our_filter, keys,  NULL};
    char *known[] = {seen,  "build", "-qp",    "0.001", "-n",
                     count, "-o",    our_copy, keys,    NULL};
    char *ask[] = {seen, "check", our_filter, lines, NULL};
    char *ask_two[] = {seen, "check", "-j2", our_filter, lines, NULL};
    char *add[] = {seen, "add", "-q", our_copy, lines, NULL};
    struct bench_cost c_build = {0}, c_known = {0}, c_ask = {0};
    struct bench_cost c_two = {0}, c_add = {0};
    bench_note("seen build, check, add");
    for (int i = 0; i < ROUNDS; i++) {
        bench_measure(&c_build, build, NULL);
        bench_measure(&c_known, known, NULL);
        bench_measure(&c_ask, ask, NULL);
        bench_measure(&c_two, ask_two, NULL);
        bench_measure(&c_add, add, NULL);
    }
    struct bench_peer one = {.name = "-j1", .cost = c_ask};
    bench_time_row("build", &c_build, insert, wc, 0);
    bench_time_row("build -n", &c_known, insert, wc, 0);
    bench_time_row("check", &c_ask, check, NULL, 10);
    bench_time_row("check -j2", &c_two, &one, NULL, 0);
    bench_time_row("add, durable", &c_add, NULL, NULL, 0);
    bench_print(
        &(struct bench_row){.name = "check, lines found",
                            .unit = "lines",
                            .ours = bench_once(bench_count_lines(ask))});
}

int main(int argc, char **argv)
{
    struct bench_options o;
    char **rest = bench_start(argv, "check", &o);
    if (argc - (rest - argv) != 5)
        bench_die(
            "usage: bench_check [--json] SEEN KEYS LINES COUNT DIRECTORY");
    seen = rest[0], keys = rest[1], lines = rest[2], count = rest[3];
    name_files(rest[4]);
    if (access(seen, X_OK) != 0) {
        bench_print(&(struct bench_row){
            .name = "check",
            .unit = "s",
            .skipped = "the seen program has not been built"});
        return bench_finish();
    }
    setenv("LC_ALL", "C", 1);
    setenv("COUNT", count, 1);
    char *wc_argv[] = {"wc", "-l", keys, NULL};
    struct bench_peer wc =
        bench_run_peer("wc -l", "there is no wc", wc_argv, ROUNDS);
    struct bench_peer insert = run_bloom(
        "bloom insert",
        "bloom create -p 0.001 -n $COUNT \"$1\" && bloom insert \"$1\" <\"$2\"",
        1);
    struct bench_peer check =
        run_bloom("bloom check", "bloom check \"$1\" <\"$2\"", PEER_ROUNDS);
    our_rows(&insert, &check, &wc);
    return bench_finish();
}
