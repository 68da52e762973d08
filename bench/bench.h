/*
 * bench.h - what all benchmarks share: a clock, series of rounds, rows.
 *
 * A row compares three costs measured in the same run, the smaller the better:
 *
 *     ours    what the library or the program takes
 *     peer    what somebody else's takes for the same work   ratio peer / ours
 *     limit   what the machine takes for the bare minimum    ratio ours / limit
 *
 * Machines are shared and noisy, and noise only ever adds: the figure of a
 * series is its best round, the median beside it says how quiet it was. Series
 * to be compared take turns, A B A B, so that a slow minute hits both.
 */
#ifndef SEEN_BENCH_H
#define SEEN_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The run ------------------------------------------------------------ */

struct bench_options {
    bool json;  /* one JSON object per row instead of a table */
    bool quick; /* a tenth of the size */
};

/* Reads --json and --quick, and returns the first argument it does not know;
 * the heading of the table is printed with the first row. */
char **bench_start(char **argv, const char *area, struct bench_options *o);

/* How many targets were met, below the table. Returns the exit code: a missed
 * target is a finding, not a failure. */
int bench_finish(void);

/* A line on stderr: what is being prepared. */
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A broken benchmark or a wrong answer: says so and exits 1. */
_Noreturn void bench_die(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

double bench_seconds(void); /* monotonic */

/* ---- Series of rounds --------------------------------------------------- */

#define BENCH_MAX_ROUNDS 64

struct bench_series {
    size_t n;
    double round[BENCH_MAX_ROUNDS];
};

void bench_round(struct bench_series *s, double cost);
double bench_best(const struct bench_series *s);
double bench_median(const struct bench_series *s);
double bench_worst(const struct bench_series *s);

/* A series of one: a size, a count, something that is not noisy. */
struct bench_series bench_once(double cost);

/* ---- Chance ------------------------------------------------------------- */

/* How often something of probability p happens in n trials, at least and at
 * most, but for one run in a million. */
double bench_least(double n, double p);
double bench_most(double n, double p);

/* ---- Rows --------------------------------------------------------------- */

enum bench_aim {
    BENCH_NO_AIM,
    BENCH_OURS_AT_MOST,
    BENCH_PEER_AT_LEAST, /* peer / ours */
    BENCH_LIMIT_AT_MOST, /* ours / limit */
    BENCH_OURS_WITHIN    /* aim_low .. aim */
};

struct bench_row {
    const char *name;
    const char *unit;
    struct bench_series ours;
    const char *peer_name; /* NULL: none */
    struct bench_series peer;
    const char *limit_name; /* NULL: none */
    struct bench_series limit;
    enum bench_aim what;
    double aim, aim_low;
    const char *skipped; /* why there is nothing to compare with, or NULL */
    const char *note;    /* NULL: none */
};

void bench_print(const struct bench_row *row);

#ifdef __cplusplus
}
#endif

#endif
