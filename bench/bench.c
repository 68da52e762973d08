/*
 * bench.c - clock, series and rows of bench.h. Measures nothing itself.
 */
#define _DEFAULT_SOURCE /* clock_gettime */

#include "bench.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    const char *area;
    bool json;
    size_t rows, aims, met;
} run;

/* ---- The run ------------------------------------------------------------ */

char **bench_start(char **argv, const char *area, struct bench_options *o)
{
    *o = (struct bench_options){0};
    for (argv++; *argv; argv++) {
        if (strcmp(*argv, "--json") == 0)
            o->json = true;
        else if (strcmp(*argv, "--quick") == 0)
            o->quick = true;
        else
            break;
    }
    run.area = area;
    run.json = o->json;
    return argv;
}

int bench_finish(void)
{
    if (!run.json)
        printf("%s: %zu of %zu targets met\n\n", run.area, run.met, run.aims);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

void bench_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "== ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(EXIT_FAILURE);
}

double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- Series ------------------------------------------------------------- */

void bench_round(struct bench_series *s, double cost)
{
    assert(s->n < BENCH_MAX_ROUNDS);
    s->round[s->n++] = cost;
}

struct bench_series bench_once(double cost)
{
    return (struct bench_series){.n = 1, .round = {cost}};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The round that has `share` of the others below it. */
static double quantile(const struct bench_series *s, double share)
{
    if (s->n == 0) return 0;
    struct bench_series sorted = *s;
    qsort(sorted.round, sorted.n, sizeof *sorted.round, by_value);
    return sorted.round[(size_t)(share * (double)(s->n - 1))];
}

double bench_best(const struct bench_series *s)
{
    return quantile(s, 0);
}

double bench_median(const struct bench_series *s)
{
    return quantile(s, 0.5);
}

double bench_worst(const struct bench_series *s)
{
    return quantile(s, 1);
}

/* ---- Chance ------------------------------------------------------------- */

#define FLAKE 1e-6

/* ln of the probability of exactly k successes of n. */
static double ln_binomial(double n, double k, double p)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) +
           (n - k) * log1p(-p);
}

/* From far outside (20 deviations) towards the mean, until half of FLAKE has
 * been passed: the first count that is still acceptable. */
static double accept_bound(double n, double p, double direction)
{
    double mean = n * p, far = 20 * sqrt(mean * (1 - p));
    double k = floor(fmin(fmax(mean - direction * far, 0), n));
    for (double passed = 0;; k += direction) {
        passed += exp(ln_binomial(n, k, p));
        if (passed > FLAKE / 2) return k;
    }
}

double bench_least(double n, double p)
{
    return accept_bound(n, p, 1);
}

double bench_most(double n, double p)
{
    return accept_bound(n, p, -1);
}

/* ---- Rows --------------------------------------------------------------- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

struct verdict {
    double to_peer, to_limit; /* 0: there is none */
    char target[48];
    const char *result; /* pass, miss, none, skipped */
};

static struct verdict judge(const struct bench_row *r)
{
    double ours = bench_best(&r->ours);
    struct verdict v = {.to_peer = ratio(bench_best(&r->peer), ours),
                        .to_limit = ratio(ours, bench_best(&r->limit)),
                        .target = "-"};
    bool met = false;
    switch (r->what) {
    case BENCH_NO_AIM:
        break;
    case BENCH_OURS_AT_MOST:
        snprintf(v.target, sizeof v.target, "ours <= %g", r->aim);
        met = ours <= r->aim;
        break;
    case BENCH_PEER_AT_LEAST:
        snprintf(v.target, sizeof v.target, "x peer >= %g", r->aim);
        met = v.to_peer >= r->aim;
        break;
    case BENCH_LIMIT_AT_MOST:
        snprintf(v.target, sizeof v.target, "x limit <= %g", r->aim);
        met = v.to_limit <= r->aim;
        break;
    case BENCH_OURS_WITHIN:
        snprintf(v.target, sizeof v.target, "in %.6g..%.6g", r->aim_low,
                 r->aim);
        met = ours >= r->aim_low && ours <= r->aim;
        break;
    }
    v.result = r->skipped                ? "skipped"
               : r->what == BENCH_NO_AIM ? "none"
               : met                     ? "pass"
                                         : "miss";
    return v;
}

static void json_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    if (!text) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void json_series(const char *name, const struct bench_series *s)
{
    if (s->n == 0) {
        printf(",\"%s\":null", name);
        return;
    }
    printf(",\"%s\":%.6g", name, bench_best(s));
    if (s->n > 1)
        printf(",\"%s_median\":%.6g,\"%s_worst\":%.6g,\"%s_rounds\":%zu", name,
               bench_median(s), name, bench_worst(s), name, s->n);
}

static void json_ratio(const char *name, double value)
{
    if (value > 0)
        printf(",\"%s\":%.4g", name, value);
    else
        printf(",\"%s\":null", name);
}

static void print_json(const struct bench_row *r, const struct verdict *v)
{
    printf("{\"area\":\"%s\"", run.area);
    json_text("name", r->name);
    json_text("unit", r->unit);
    json_series("ours", &r->ours);
    json_text("peer_name", r->peer_name);
    json_series("peer", &r->peer);
    json_text("limit_name", r->limit_name);
    json_series("limit", &r->limit);
    json_ratio("ratio_peer", v->to_peer);
    json_ratio("ratio_limit", v->to_limit);
    json_text("target", r->what == BENCH_NO_AIM ? NULL : v->target);
    json_text("result", v->result);
    json_text("skipped", r->skipped);
    json_text("note", r->note);
    printf("}\n");
}

/* Best, and the median in brackets where there are rounds. */
static void format_series(char *text, size_t cap, const struct bench_series *s)
{
    if (s->n == 0)
        snprintf(text, cap, "-");
    else if (s->n == 1)
        snprintf(text, cap, "%.4g", bench_best(s));
    else
        snprintf(text, cap, "%.4g (%.4g)", bench_best(s), bench_median(s));
}

static void format_ratio(char *text, size_t cap, double value)
{
    if (value > 0)
        snprintf(text, cap, value < 10 ? "%.2f" : "%.1f", value);
    else
        snprintf(text, cap, "-");
}

static void print_heading(void)
{
    printf("%-46s %-17s %-10s %-22s %7s  %-28s %7s  %-18s %s\n", run.area,
           "ours (median)", "unit", "peer", "x peer", "limit", "x limit",
           "target", "result");
}

static void print_line(const struct bench_row *r, const struct verdict *v)
{
    char ours[32], peer[32], limit[32], to_peer[16], to_limit[16];
    char peers[80] = "-", limits[80] = "-";
    format_series(ours, sizeof ours, &r->ours);
    format_series(peer, sizeof peer, &r->peer);
    format_series(limit, sizeof limit, &r->limit);
    format_ratio(to_peer, sizeof to_peer, v->to_peer);
    format_ratio(to_limit, sizeof to_limit, v->to_limit);
    if (r->peer_name)
        snprintf(peers, sizeof peers, "%s %s", r->peer_name, peer);
    if (r->limit_name)
        snprintf(limits, sizeof limits, "%s %s", r->limit_name, limit);
    printf("%-46s %-17s %-10s %-22s %7s  %-28s %7s  %-18s %s", r->name, ours,
           r->unit, peers, to_peer, limits, to_limit, v->target, v->result);
    if (r->skipped) printf(", because %s", r->skipped);
    if (r->note) printf("  [%s]", r->note);
    printf("\n");
}

void bench_print(const struct bench_row *row)
{
    struct verdict v = judge(row);
    if (run.json) {
        print_json(row, &v);
    } else {
        if (run.rows == 0) print_heading();
        print_line(row, &v);
    }
    fflush(stdout);
    run.rows++;
    run.aims += row->what != BENCH_NO_AIM && !row->skipped;
    run.met += strcmp(v.result, "pass") == 0;
}
