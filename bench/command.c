/* command.c - see command.h. */
#define _DEFAULT_SOURCE /* wait4 */

#include "command.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

bool bench_measure(struct bench_cost *c, char *const *argv, char *from)
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

double bench_count_lines(char *const *argv)
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

void bench_charge_processor(struct bench_peer *p)
{
    if (p->missing || p->cost.cores >= 1) return;
    p->cost.seconds = bench_once(bench_best(&p->cost.seconds) * p->cost.cores);
}

struct bench_peer bench_run_peer(const char *name, const char *missing,
                                 char *const *argv, int rounds)
{
    struct bench_peer p = {.name = name};
    bench_note("%s", name);
    for (int i = 0; i < rounds && !p.missing; i++)
        if (!bench_measure(&p.cost, argv, NULL)) p.missing = missing;
    return p;
}

void bench_time_row(const char *name, const struct bench_cost *ours,
                    const struct bench_peer *peer,
                    const struct bench_peer *limit, double target)
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
