/*
 * command.h - how long a command takes, and how much memory.
 *
 * The time is from fork to exit, the memory what the kernel reports as the
 * largest resident set (this process stays small, because a child starts with
 * its parent's). Output goes to /dev/null.
 */
#ifndef SEEN_BENCH_COMMAND_H
#define SEEN_BENCH_COMMAND_H

#include "bench.h"

struct bench_cost {
    struct bench_series seconds, bytes;
    double cores; /* kept busy, in the best round */
};

struct bench_peer {
    const char *name;
    const char *missing; /* why it did not run, or NULL */
    struct bench_cost cost;
};

/* Runs argv once and adds to its series; `from` is a file for cat to pipe into
 * it, or NULL. false: there is no such program. */
bool bench_measure(struct bench_cost *c, char *const *argv, char *from);

struct bench_peer bench_run_peer(const char *name, const char *missing,
                                 char *const *argv, int rounds);

/* What it would have taken with a core to itself: so that a busy machine does
 * not slow down the peers alone. For those with one thread that wait for
 * nothing. */
void bench_charge_processor(struct bench_peer *p);

/* Seconds of ours against a peer, or against a limit if there is no peer;
 * either may be NULL, a target of 0 is none. */
void bench_time_row(const char *name, const struct bench_cost *ours,
                    const struct bench_peer *peer,
                    const struct bench_peer *limit, double target);

double bench_count_lines(char *const *argv); /* that it prints */

#endif
