/*
 * cmd_check.c - seen check: which lines are in a filter?
 *
 * Asking changes nothing, so threads ask about their chunks side by side; only
 * counting and printing keep the order.
 */
#include "flow.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <stdlib.h>

static struct {
    bool invert, count, quiet, json, line_buffered;
    uint64_t threads;
} opt;

static const struct option options[] = {
    {'v', NULL, NULL, OPTION_FLAG, &opt.invert,
     "print the lines that are never in instead"},
    {'c', NULL, NULL, OPTION_FLAG, &opt.count,
     "print only how many lines would be printed"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet,
     "print nothing; the first line found ends it, but for\n"
     "--json, which counts them all"},
    {'j', NULL, "THREADS", OPTION_COUNT, &opt.threads,
     "work with this many threads (default 1); same output"},
    {0, "line-buffered", NULL, OPTION_FLAG, &opt.line_buffered,
     "write every line by itself, as soon as it is there"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what was found, as JSON on stderr (with -c: on stdout)"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static struct target target;

static void ask_all(struct job *job)
{
    if (!target.on_server)
        (void)ask_target(&target, job->chunk.keys, job->chunk.n, job->answers);
}

static bool any_wanted(const struct job *job)
{
    for (size_t i = 0; i < job->chunk.n; i++)
        if (job->answers[i] != opt.invert) return true;
    return false;
}

/* A server may fail to answer; what was not answered is not printed. */
static size_t answer(struct job *job)
{
    struct chunk *c = &job->chunk;
    seen_status status = SEEN_OK;
    if (target.on_server)
        status = ask_target(&target, c->keys, c->n, job->answers);
    if (status != SEEN_OK) {
        blame_target(&target, status, c);
        return 0;
    }
    if (opt.quiet && !opt.json && any_wanted(job)) _Exit(EXIT_DONE);
    return job->chunk.n;
}

static uint64_t printed(void)
{
    return opt.invert ? tally.lines - tally.found : tally.found;
}

static void report_json(FILE *to)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_text(&j, "file", target.name);
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "maybe", (double)tally.found);
    json_number(&j, "never", (double)(tally.lines - tally.found));
    json_number(&j, "bytes", (double)flow_bytes());
    json_number(&j, "seconds", seconds_running());
    json_close(&j, '}');
}

static int run(char **operands, size_t n)
{
    const char *name = target_operand(operands, n);
    if (opt.threads > 256) fail("-j: expected at most 256 threads");
    open_flow(operands + 1, n - 1, opt.line_buffered, opt.quiet);
    if (!find_target(&target, name)) target_missing(&target);
    check_key_format();
    read_target(&target);
    run_flow(&(struct flow){.prepare = ask_all,
                            .tell_odd = !opt.quiet && !opt.json,
                            .ask = answer,
                            .found = "maybe in",
                            .silent = opt.count || opt.quiet,
                            .wanted = !opt.invert,
                            .line_buffered = opt.line_buffered,
                            .threads = opt.threads});
    if (opt.count && opt.json)
        report_json(stdout);
    else if (opt.count && !opt.quiet)
        printf("%llu\n", (unsigned long long)printed());
    finish_output();
    if (opt.json && !opt.count) report_json(stderr);
    close_target(&target);
    return printed() > 0 ? EXIT_DONE : EXIT_NOTHING;
}

static const char *const examples[] = {
    "seen check breached.seen passwords.txt",
    "print the lines that are (but for the rate) in the filter",
    "seen check -v urls.seen candidates.txt | fetch",
    "go on with those that are certainly new",
    "ssh host cat big.seen | seen check - keys.txt -c",
    "ask a filter that comes through a pipe",
    "seen check --dialect leveldb block keys.txt",
    "ask a filter that LevelDB wrote",
    NULL,
};

static const struct option *const groups[] = {
    options, secret_options, key_options, dialect_options, NULL};

const struct verb verb_check = {
    .name = "check",
    .summary = "print the lines that are in a filter",
    .operands = "TARGET [INPUT...]",
    .text =
        "A line that was added is always printed; one that was not is printed\n"
        "wrongly as often as the filter's rate says. The file is mapped, not\n"
        "read: asking a few keys of a large filter takes no time. TARGET - is\n"
        "stdin. Exit code 0: something was printed (or would be, with -q), 1:\n"
        "nothing was, 2: an error.",
    .examples = examples,
    .options = groups,
    .run = run,
};
