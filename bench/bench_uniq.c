/*
 * bench_uniq.c - `seen uniq` on a file of lines, against mawk, sort -u and wc.
 *
 *     bench_uniq [--json] SEEN FILE DISTINCT
 *
 * Every command reads FILE from the page cache and writes to /dev/null. The
 * time is from fork to exit, the memory what the kernel reports as the largest
 * resident set (this process stays small, because a child starts with its
 * parent's). Ours run six times each, taking turns, none more often than the
 * others; the peers, slow and steady, once. So that a busy machine does not slow
 * down the peers alone, mawk, which has one thread and waits for nothing, is
 * charged its processor time if that is less. Two more runs count the lines that
 * come out.
 */
#define _DEFAULT_SOURCE /* wait4 */

#include "bench.h"

#include <fcntl.h>
#include <seen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 6 /* of each command of ours, in turns */

struct cost {
    struct bench_series seconds, bytes;
    double cores; /* kept busy, in the best round */
};

/* ---- Running a command -------------------------------------------------- */

static void become(char *const *argv, int in, int out)
{
    int null = open("/dev/null", O_RDWR);
    dup2(in >= 0 ? in : null, 0);
    dup2(out >= 0 ? out : null, 1);
    dup2(null, 2);
    execvp(argv[0], argv);
    _exit(127);
}

static pid_t start(char *const *argv, int in, int out, int unwanted)
{
    pid_t pid = fork();
    if (pid < 0) bench_die("no process for %s", argv[0]);
    if (pid == 0) {
        if (unwanted >= 0) close(unwanted);
        become(argv, in, out);
    }
    return pid;
}

/* false: no such program. */
static bool finish(pid_t pid, char *const *argv, struct rusage *used)
{
    int status;
    if (wait4(pid, &status, 0, used) < 0) bench_die("%s is gone", argv[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_die("%s %s failed with status %d", argv[0],
                  argv[1] ? argv[1] : "", status);
    return true;
}

static double busy(const struct rusage *used)
{
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1e-6;
}

/* Runs argv once and adds to its series; `from` is a file for cat to pipe into
 * it, or NULL. */
static bool measure(struct cost *c, char *const *argv, char *from)
{
    struct rusage used;
    double began = bench_seconds();
    pid_t cat = -1;
    int ends[2] = {-1, -1};
    char *cat_argv[] = {"cat", from, NULL};
    if (from) {
        if (pipe(ends)) bench_die("no pipe");
        cat = start(cat_argv, -1, ends[1], ends[0]);
    }
    pid_t pid = start(argv, ends[0], -1, ends[1]);
    if (from) {
        close(ends[0]);
        close(ends[1]);
    }
    bool there = finish(pid, argv, &used);
    if (from) finish(cat, cat_argv, &(struct rusage){0});
    if (!there) return false;
    double took = bench_seconds() - began;
    bench_round(&c->seconds, took);
    if (took <= bench_best(&c->seconds)) c->cores = busy(&used) / took;
    bench_round(&c->bytes, (double)used.ru_maxrss * 1024);
    return true;
}

static double count_lines(char *const *argv)
{
    static char buffer[1 << 16];
    int ends[2];
    if (pipe(ends)) bench_die("no pipe");
    pid_t pid = start(argv, -1, ends[1], ends[0]);
    close(ends[1]);
    double lines = 0;
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < n; i++)
            lines += buffer[i] == '\n';
    close(ends[0]);
    finish(pid, argv, &(struct rusage){0});
    return lines;
}

/* ---- Rows --------------------------------------------------------------- */

struct peer {
    const char *name;
    const char *missing;
    struct cost cost;
};

/* What it would have taken with a core to itself. */
static void charge_processor_time(struct peer *p)
{
    if (p->missing || p->cost.cores >= 1) return;
    p->cost.seconds = bench_once(bench_best(&p->cost.seconds) * p->cost.cores);
}

static struct peer run_peer(const char *name, const char *missing,
                            char *const *argv, int rounds)
{
    struct peer p = {.name = name};
    bench_note("%s", name);
    for (int i = 0; i < rounds && !p.missing; i++)
        if (!measure(&p.cost, argv, NULL)) p.missing = missing;
    return p;
}

static void time_row(const char *name, const struct cost *ours,
                     const struct peer *peer, const struct peer *limit,
                     double target)
{
    struct bench_row r = {.name = name, .unit = "s", .ours = ours->seconds};
    char note[32];
    snprintf(note, sizeof note, "%.2f cores", ours->cores);
    r.note = note;
    if (peer) {
        r.peer_name = peer->name;
        r.peer = peer->cost.seconds;
        r.skipped = peer->missing;
        r.what = target > 0 ? BENCH_PEER_AT_LEAST : BENCH_NO_AIM;
        r.aim = target;
    }
    if (limit) {
        r.limit_name = limit->name;
        r.limit = limit->cost.seconds;
    }
    if (limit && !peer) {
        r.what = BENCH_LIMIT_AT_MOST;
        r.aim = target;
    }
    bench_print(&r);
}

static void memory_row(const char *name, const struct cost *ours,
                       const struct peer *peer, double distinct, double target)
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
    seen_plan plan;
    double sum = 0;
    if (seen_plan_for(&(seen_spec){.items = (uint64_t)n, .fpp = fpp}, &plan))
        return 0;
    for (int i = 0; i < 1000; i++)
        sum += seen_plan_fpp(&plan, (uint64_t)(n * (i + 0.5) / 1000));
    return sum / 1000 * n;
}

static void lost_row(const char *name, char *const *argv, double distinct,
                     double expected)
{
    bench_print(
        &(struct bench_row){.name = name,
                            .unit = "lines",
                            .ours = bench_once(distinct - count_lines(argv)),
                            .limit_name = "expected",
                            .limit = bench_once(expected)});
}

/* All of ours, taking turns. */
static void ours_rows(char *seen, char *file, const char *distinct_text,
                      const struct peer *mawk, const struct peer *sort,
                      const struct peer *wc)
{
    char *n = (char *)distinct_text;
    char *one[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j1", file, NULL};
    char *two[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j2", file, NULL};
    char *piped[] = {seen, "uniq", "-p", "1e-6", "-n", n, "-j1", NULL};
    char *plain[] = {seen, "uniq", file, NULL};
    char *plain_two[] = {seen, "uniq", "-j2", file, NULL};
    char *plain_piped[] = {seen, "uniq", NULL};
    double distinct = strtod(n, NULL);

    struct peer c_one = {.name = "-j1"}, c_plain = {.name = "file"};
    struct cost c_two = {0}, c_piped = {0}, c_plain_piped = {0};
    struct cost c_plain_two = {0};
    bench_note("seen uniq");
    for (int i = 0; i < ROUNDS; i++) {
        measure(&c_one.cost, one, NULL);
        measure(&c_two, two, NULL);
        measure(&c_piped, piped, file);
        measure(&c_plain.cost, plain, NULL);
        measure(&c_plain_two, plain_two, NULL);
        measure(&c_plain_piped, plain_piped, file);
    }
    struct peer c_file = c_one;
    c_file.name = "file";
    struct peer c_plain_alone = c_plain;
    c_plain_alone.name = "uniq";

    time_row("uniq -p 1e-6 -j1", &c_one.cost, mawk, wc, 40);
    time_row("uniq -p 1e-6 -j1", &c_one.cost, sort, wc, 12);
    time_row("uniq -p 1e-6 -j2", &c_two, &c_one, wc, 1.7);
    time_row("uniq -p 1e-6 -j1, from a pipe", &c_piped, NULL, &c_file, 1.5);
    memory_row("uniq -p 1e-6 -j1, memory", &c_one.cost, mawk, distinct, 6);
    lost_row("uniq -p 1e-6, lines lost", one, distinct,
             expected_loss(distinct, 1e-6));
    time_row("uniq", &c_plain.cost, mawk, wc, 30);
    time_row("uniq -j2", &c_plain_two, &c_plain_alone, wc, 0);
    time_row("uniq, from a pipe", &c_plain_piped, NULL, &c_plain, 1.5);
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
    struct peer wc = run_peer("wc -l", "there is no wc", wc_argv, ROUNDS);
    struct peer sort = run_peer("sort -u", "there is no sort", sort_argv, 1);
    struct peer mawk = run_peer("mawk", "mawk is not installed", mawk_argv, 1);
    charge_processor_time(&mawk);
    ours_rows(seen, file, rest[2], &mawk, &sort, &wc);
    return bench_finish();
}
