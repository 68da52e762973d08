/*
 * cmd_uniq.c - seen uniq: copy lines, drop those seen before, keep the order.
 *
 * With --state, what was seen is in a file and outlives the program: the lines of
 * a chunk are in its journal before they are printed, so whatever was printed is
 * remembered, also after kill -9. With -c nothing is printed, so nothing may be
 * remembered, or a later run would lose those lines: a copy in memory is asked.
 */
#define _POSIX_C_SOURCE 200809L

#include "flow.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "patience.h"
#include "progress.h"
#include "secret.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <math.h>
#include <seen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Where -n or -M are given without -p: one line lost in a million. */
#define LOSS_RATE 1e-6

/* Distinct lines that a filter of unknown size begins with: 2 to 5 MB. */
#define FIRST_LINES 1000000

static struct {
    const char *state;
    uint64_t threads;
    bool repeats, count, quiet, stats, json, line_buffered;
} opt;

static const struct option options[] = {
    {'p', NULL, "RATE", OPTION_RATE, &wish.rate,
     "drop a new line wrongly at most this often: 1e-6, 0.1%"},
    {'n', NULL, "ITEMS", OPTION_COUNT, &wish.items,
     "expect this many distinct lines: 14M, 1e9"},
    {'M', NULL, "MEMORY", OPTION_SIZE, &wish.memory,
     "use at most this much memory for the filter: 64MiB"},
    {0, "state", "FILE", OPTION_TEXT, &opt.state,
     "remember in this file, and continue with it next time"},
    {'d', NULL, NULL, OPTION_FLAG, &opt.repeats,
     "print the repeats instead, each time they occur"},
    {'c', NULL, NULL, OPTION_FLAG, &opt.count,
     "print only how many lines would be printed; do not change --state"},
    {'j', NULL, "THREADS", OPTION_COUNT, &opt.threads,
     "work with this many threads (default 1); same output"},
    {0, "line-buffered", NULL, OPTION_FLAG, &opt.line_buffered,
     "write each line as soon as it is read"},
    {0, "keyed", NULL, OPTION_FLAG, &wish.keyed,
     "hash with a random secret: for input that an attacker may choose"},
    {0, "stats", NULL, OPTION_FLAG, &opt.stats,
     "report at the end what was done, on stderr"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "the same as JSON (with -c: on stdout, as the result)"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- The filter --------------------------------------------------------- */

/* One run. */
struct run {
    seen_filter *filter; /* in memory: without --state, or its copy for -c */
    struct target state; /* the file; not open if it is not there and -c */
    seen_plan plan;
    uint64_t known; /* keys that were in the state before */
    struct tally tally;
    uint64_t next_room; /* bytes read when make_room() looks again */

    /* At the end: */
    double rate_now;  /* if it is overfull */
    seen_info window; /* if the state is one */
};

/* New lines, so far. */
static uint64_t kept(const struct run *r)
{
    return r->tally.lines - r->tally.found;
}

/* Lines one may expect to lose among the first n distinct ones: the rate,
 * summed up while the filter fills. Simpson's rule; the curve is smooth, with a
 * bend where a filter that grows opens a layer. */
static double expected_loss(const struct run *r, double n)
{
    const int steps = 256;
    double sum = 0;
    for (int i = 0; i <= steps; i++) {
        int weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        sum += weight * seen_plan_fpp(&r->plan, (uint64_t)(n * i / steps));
    }
    return sum / (3 * steps) * n;
}

static void announce(const struct run *r)
{
    const seen_plan *plan = &r->plan;
    const double n = (double)plan->items;
    char size[UNIT_TEXT], items[UNIT_TEXT], rate[UNIT_TEXT], lost[UNIT_TEXT];
    char distinct[32];
    snprintf(distinct, sizeof distinct, "distinct %s", line_word());
    if (plan->kind == SEEN_SCALABLE) {
        note("filter that grows, %s to begin with; however many %ss come, "
             "expect to lose at most %s of the distinct ones",
             show_size(size, (double)plan->bytes), line_word(),
             show_rate(rate, plan->fpp));
        return;
    }
    double loss = expected_loss(r, n);
    snprintf(lost, sizeof lost, "%.2g", loss);
    if (loss >= 10) show_count(lost, round(loss));
    note("filter of %s; of %s expect to lose %s (rate %s when full)",
         show_size(size, (double)plan->bytes), show_many(items, n, distinct),
         lost, show_rate(rate, plan->fpp));
}

static bool bloom_wanted(void)
{
    return wish.rate > 0 || wish.items || wish.memory;
}

static seen_spec make_spec(void)
{
    if (!bloom_wanted()) return (seen_spec){.kind = SEEN_SET};
    if (!wish.items && !wish.memory)
        return (seen_spec){.kind = SEEN_SCALABLE,
                           .items = FIRST_LINES,
                           .fpp = wish.rate,
                           .flags = SEEN_GUESS};
    seen_spec spec = {.items = wish.items, .fpp = wish.rate};
    if (wish.items && wish.rate > 0)
        spec.limit = wish.memory;
    else if (wish.memory)
        spec.bits = bits_within(wish.memory);
    if (!(wish.rate > 0) && !(wish.items && wish.memory)) spec.fpp = LOSS_RATE;
    return spec;
}

static void make_filter(struct run *r, seen_spec spec)
{
    spec.secret = new_secret();
    if (spec.secret) spec.flags |= SEEN_KEYED;
    r->plan = plan_or_fail(&spec, "-M");
    seen_status status = seen_new(&r->filter, &spec, NULL);
    if (status == SEEN_NOMEM) {
        char size[UNIT_TEXT];
        fail("not enough memory for a filter of %s",
             show_size(size, (double)r->plan.bytes));
    }
    if (status != SEEN_OK) fail("filter: %s", seen_strerror(status));
}

/* What a run without -c would print depends on what it remembers on the way. */
static void copy_state(struct run *r)
{
    read_target(&r->state);
    seen_status status = seen_copy(&r->filter, r->state.filter, NULL);
    if (status == SEEN_NOMEM)
        fail("%s: not enough memory for the copy that -c counts with",
             opt.state);
    if (status != SEEN_OK) fail("%s: %s", opt.state, seen_strerror(status));
}

/* The file must be what the options ask for, if they ask for anything. */
static void continue_state(struct run *r, const seen_spec *spec)
{
    seen_kind kind = r->state.plan.kind;
    if (kind == SEEN_FOREIGN)
        fail("%s: is a filter of another system, which cannot be a state: "
             "choose another file",
             opt.state);
    if (seen_kind_built(kind))
        fail("%s: is of kind %s, which takes no new keys", opt.state,
             seen_kind_name(kind));
    if (kind == SEEN_SET && bloom_wanted())
        fail("%s: is a set of fingerprints; -p, -n and -M ask for a Bloom "
             "filter: leave them out, or begin another file",
             opt.state);
    must_agree(opt.state, &r->state.plan, r->state.info.flags, spec);
    if (opt.count)
        copy_state(r);
    else
        write_target(&r->state, SEEN_WRITE, NULL);
}

static void open_state(struct run *r, const seen_spec *spec, bool exists)
{
    if (exists)
        continue_state(r, spec);
    else
        write_target(&r->state, SEEN_WRITE, spec);
    r->plan = r->state.plan;
    seen_info info = {.size = sizeof info};
    seen_info_of(r->state.filter, &info);
    r->known = info.items;
    if (!opt.quiet && !opt.json && !opt.count) note_recovery(&r->state);
}

/* Where -c finds no file, all lines are new, and there will be none. */
static void note_missing_state(void)
{
    if (!opt.quiet && !opt.json)
        note("%s: not found: counted as if it were empty", opt.state);
}

static void open_filter(struct run *r)
{
    seen_spec spec = make_spec();
    bool exists = opt.state && find_target(&r->state, opt.state);
    must_be_file(&r->state);
    if (wish.secret_file && !opt.state)
        fail("--secret-file requires --state FILE, which it is the secret of");
    if (wait_given() && !opt.state)
        fail("--wait requires --state FILE, which another program may be "
             "changing");
    check_key_format();
    if (opt.json) keep_warnings();
    record_keys(&spec);
    if (exists) compare_keys(&r->state);
    if (opt.state && !exists && opt.count) note_missing_state();
    if (opt.state && (exists || !opt.count))
        open_state(r, &spec, exists);
    else
        make_filter(r, spec);
    if (bloom_wanted() && !r->known && !opt.quiet && !opt.json) announce(r);
}

/* ---- Lines -------------------------------------------------------------- */

/*
 * A set that grows moves its fingerprints again and again. Where the size of
 * the input is known, the share of new lines so far tells how many will come:
 * after a sixteenth and after a quarter of the input make room for four times
 * what is there, or less if the end is near.
 */
static void make_room(struct run *r)
{
    uint64_t total = flow_total(), read = flow_bytes();
    if (r->plan.kind != SEEN_SET || !r->filter || total == 0 ||
        read < total / 16 || read < r->next_room || read >= total)
        return;
    double factor = fmin(4, (double)total / (double)read * 1.02);
    seen_reserve(r->filter, (uint64_t)((double)kept(r) * factor)); /* a wish */
    r->next_room = 4 * read;
}

static void prepare(struct job *job)
{
    const struct run *r = job->of;
    hash_lines(job, r->filter);
}

static size_t ask_state(struct job *job)
{
    struct run *r = job->of;
    struct chunk *c = &job->chunk;
    size_t done;
    advance_target(&r->state);
    seen_status s =
        seen_file_visit_many(r->state.store, seen_keys_of(c->keys, c->n),
                             job->answers, &done, &r->state.error);
    if (s != SEEN_OK) blame_target(&r->state, s, c);
    return done;
}

/* As ask_state() would, without a trace. */
static size_t ask_copy(struct job *job)
{
    struct run *r = job->of;
    struct chunk *c = &job->chunk;
    size_t done;
    if (r->plan.kind == SEEN_WINDOW) seen_advance(r->filter, clock_ms());
    seen_status s = seen_visit_many(r->filter, seen_keys_of(c->keys, c->n),
                                    job->answers, &done);
    if (s != SEEN_OK) blame_target(&r->state, s, c);
    return done;
}

static size_t ask(struct job *job)
{
    struct run *r = job->of;
    struct chunk *c = &job->chunk;
    size_t done;
    make_room(r);
    seen_status s = seen_visit_many(
        r->filter, seen_keys_hashes(job->hashes, c->n), job->answers, &done);
    if (s != SEEN_OK) c->bad = seen_strerror(s);
    return done;
}

/* ---- The end ------------------------------------------------------------ */

static uint64_t printed(const struct run *r)
{
    return opt.repeats ? r->tally.found : kept(r);
}

static double peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static bool grows(const struct run *r)
{
    return r->plan.kind == SEEN_SET || r->plan.kind == SEEN_SCALABLE;
}

/* More lines than planned? Then nobody can tell new lines that were dropped from
 * repeats, and the sum that holds up to the plan says nothing. A window lets the
 * oldest go instead. */
static bool overfull(const struct run *r)
{
    return !grows(r) && r->plan.kind != SEEN_WINDOW &&
           r->known + kept(r) > r->plan.items;
}

static void close_filter(void *of)
{
    struct run *r = of;
    const seen_filter *f = r->filter ? r->filter : r->state.filter;
    seen_info info = {.size = sizeof info};
    if (overfull(r)) {
        seen_measure(f, &info);
        r->rate_now = info.fpp_now;
    }
    if (r->plan.kind == SEEN_WINDOW) seen_measure(f, &r->window);
    if (opt.state) close_target(&r->state);
    seen_free(r->filter);
}

static double lost(const struct run *r)
{
    if (overfull(r) || is_crowded(r->plan.last, &r->window)) return NAN;
    if (r->plan.kind == SEEN_WINDOW)
        return r->plan.fpp * (double)kept(r); /* at most */
    return expected_loss(r, (double)(r->known + kept(r))) -
           expected_loss(r, (double)r->known);
}

/* What the Bloom filter may have cost so far; beyond the plan nobody can tell,
 * except how often it is wrong by now. */
static void say_loss(const void *of, char *buf, size_t cap)
{
    const struct run *r = of;
    char rate[UNIT_TEXT];
    if (r->plan.kind == SEEN_SET) return;
    if (overfull(r))
        snprintf(buf, cap, ", overfull: rate %s",
                 show_rate(rate, seen_plan_fpp(&r->plan, r->known + kept(r))));
    else
        snprintf(buf, cap, ", %.2g expected to be lost", lost(r));
}

static void report_json(const struct run *r, FILE *to, double seconds)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_number(&j, "lines", (double)r->tally.lines);
    json_number(&j, "unique", (double)kept(r));
    json_number(&j, "repeats", (double)r->tally.found);
    json_number(&j, "printed", (double)printed(r));
    json_number(&j, "bytes", (double)flow_bytes());
    json_number(&j, "seconds", seconds);
    json_text(&j, "kind", seen_kind_name(r->plan.kind));
    json_number(&j, "capacity", grows(r) ? 0 : (double)r->plan.items);
    json_number(&j, "fpp", r->plan.fpp);
    json_number(&j, "expected_lost", lost(r));
    json_number(&j, "peak_memory", peak_memory());
    if (opt.state) {
        json_text(&j, "state", opt.state);
        json_number(&j, "known_before", (double)r->known);
        json_number(&j, "recovered", (double)r->state.outcome.recovered_keys);
    }
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(const struct run *r, double seconds)
{
    char lines[UNIT_TEXT], unique[UNIT_TEXT], repeats[UNIT_TEXT];
    char bytes[UNIT_TEXT], speed[UNIT_TEXT], memory[UNIT_TEXT];
    char loss[UNIT_TEXT] = "unknown";
    double read = (double)flow_bytes();
    if (!isnan(lost(r)))
        snprintf(loss, sizeof loss, "%.2g %ss", lost(r), line_word());
    note("%s, %s unique, %s; %s in %.2f s, %s/s; peak memory %s; expected to "
         "be lost: %s",
         show_many(lines, (double)r->tally.lines, line_word()),
         show_count(unique, (double)kept(r)),
         show_many(repeats, (double)r->tally.found, "repeat"),
         show_size(bytes, read), seconds, show_size(speed, read / seconds),
         show_size(memory, peak_memory()), loss);
}

static void warn_overfull(const struct run *r)
{
    if (!overfull(r)) return;
    char sum[UNIT_TEXT], planned[UNIT_TEXT], most[UNIT_TEXT], rate[UNIT_TEXT];
    note("%s distinct %ss were kept, %s were planned: the rate has risen to "
         "%s, and up to %s new %ss were lost; use a larger %s",
         show_count(sum, (double)(r->known + kept(r))), line_word(),
         show_count(planned, (double)r->plan.items),
         show_rate(rate, r->rate_now), show_count(most, (double)r->tally.found),
         line_word(), wish.memory ? "-M" : "-n");
}

static void run_lines(struct run *r)
{
    bool lasts = opt.state && !opt.count;
    run_flow(&(struct flow){.of = r,
                            .tally = &r->tally,
                            .prepare = r->state.filter ? NULL : prepare,
                            .tell = !opt.quiet && !opt.json,
                            .ask = lasts             ? ask_state
                                   : r->state.filter ? ask_copy
                                                     : ask,
                            .close = lasts ? close_filter : NULL,
                            .found = "repeated",
                            .more_status = say_loss,
                            .silent = opt.count,
                            .wanted = opt.repeats,
                            .line_buffered = opt.line_buffered,
                            .threads = opt.threads});
}

static int run(char **operands, size_t n)
{
    struct run r = {.window.size = sizeof r.window};
    check_threads(opt.threads);
    if (opt.state) must_not_be_stream(opt.state);
    if (opt.state) output_is_no_input(opt.state, operands, n);
    open_flow(operands, n, opt.line_buffered, opt.quiet);
    open_filter(&r);
    run_lines(&r);
    if (!opt.state || opt.count) close_filter(&r);

    double seconds = seconds_running();
    if (is_crowded(r.plan.last, &r.window)) warn_crowded(opt.state, &r.window);
    if (opt.count && opt.json)
        report_json(&r, stdout, seconds);
    else if (opt.count)
        printf("%llu\n", (unsigned long long)printed(&r));
    finish_output();
    if (opt.json && !opt.count) report_json(&r, stderr, seconds);
    if (opt.stats && !opt.json) report_text(&r, seconds);
    if (!opt.quiet && !opt.json) warn_overfull(&r);
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen uniq access.log > distinct.log",
    "drop repeated lines of any file, however large, keeping the order",
    "tail -f events.csv | seen uniq -f 2 -t ,",
    "let each second field through once, at once",
    "fetch | seen uniq --state shown.seen",
    "only what no earlier run has printed",
    "seen uniq -p 1e-6 urls-*.gz > urls",
    "any number of lines in 5 to 30 bytes each, losing one in a million",
    "seen uniq -p 1e-6 -n 100M -j2 urls-*.gz > urls",
    "a hundred million lines in 393 MB, losing 8 of them",
    NULL,
};

static const struct option *const groups[] = {
    options, wait_options, secret_options, key_options, NULL};

const struct verb verb_uniq = {
    .name = "uniq",
    .summary = "copy lines, drop those seen before",
    .operands = "[INPUT...]",
    .text = "Prints each line the first time it occurs, and keeps the order. "
            "Without\n"
            "-p, -n or -M it remembers a 64-bit fingerprint of every line: 10 "
            "to 20\n"
            "bytes each, and below a billion lines no line is expected to be "
            "dropped\n"
            "wrongly. With them it uses a Bloom filter: less memory, and a "
            "known small\n"
            "number of lines lost, which it prints beforehand. With -p alone "
            "the filter\n"
            "grows and keeps the rate for any number of lines; -n makes it "
            "smaller and\n"
            "faster. With --state FILE it continues where the last run ended: "
            "what was\n"
            "printed once is not printed again. -c does not change FILE; -d "
            "remembers\n"
            "what it reads.\n"
            "Inputs may be compressed with gzip, zstd, xz or bzip2.",
    .examples = examples,
    .options = groups,
    .run = run,
};
