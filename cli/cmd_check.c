/*
 * cmd_check.c - seen check: which lines are in a filter?
 *
 * Asking changes nothing, so threads ask about their chunks side by side; only
 * counting and printing keep the order.
 */
#include "flow.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool invert, count, quiet, json, verdict, line_buffered;
    uint64_t threads;
} opt;

static const struct option options[] = {
    {'v', NULL, NULL, OPTION_FLAG, &opt.invert,
     "print the lines that are not in the filter instead"},
    {'c', NULL, NULL, OPTION_FLAG, &opt.count,
     "print only how many lines would be printed"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet,
     "print nothing, and end at the first line found; with\n"
     "--json, count them all"},
    {0, "verdict", NULL, OPTION_FLAG, &opt.verdict,
     "print every line after maybe or never and a tab"},
    {'j', NULL, "THREADS", OPTION_COUNT, &opt.threads,
     "work with this many threads (default 1); same output"},
    {0, "line-buffered", NULL, OPTION_FLAG, &opt.line_buffered,
     "write each line as soon as it is read"},
    NO_VERIFY_ROW,
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "print an object for every line, and one of totals at the\n"
     "end (-c: the totals alone; -q: those on stderr)"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static struct target target;
static struct tally tally;

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

/* Every line is printed, whatever the answer. */
static bool prints_all(void)
{
    return opt.verdict || (opt.json && !opt.count && !opt.quiet);
}

static uint64_t printed(void)
{
    if (prints_all()) return tally.lines;
    return opt.invert ? tally.lines - tally.found : tally.found;
}

/* ---- Every line and its answer ------------------------------------------- */

/* What goes out with one write, for a chunk or for a line. */
static struct {
    char *at;
    size_t len, cap;
} out;

static void put(const void *bytes, size_t len)
{
    if (len == 0) return;
    if (out.cap - out.len < len) {
        out.cap = 2 * out.cap + len;
        out.at = must_have(realloc(out.at, out.cap));
    }
    memcpy(out.at + out.len, bytes, len);
    out.len += len;
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

static void flush(void)
{
    write_all(out.at, out.len);
    out.len = 0;
}

static const char *verdict_of(const struct job *job, size_t i)
{
    return job->answers[i] ? "maybe" : "never";
}

static void put_line(const struct job *job, size_t i)
{
    const char end = end_byte();
    char number[NUMBER_TEXT];
    seen_key line = show_line(&job->chunk, i, number);
    put(line.data, line.len);
    put(&end, 1);
}

/* Lines as people read them, where that is not how they were read. */
static void print_shown(const struct job *job)
{
    for (size_t i = 0; i < job->chunk.n; i++) {
        if (job->answers[i] == opt.invert) continue;
        put_line(job, i);
        if (opt.line_buffered) flush();
    }
    flush();
}

static void print_verdicts(const struct job *job)
{
    for (size_t i = 0; i < job->chunk.n; i++) {
        put_text(verdict_of(job, i));
        put_text("\t");
        put_line(job, i);
        if (opt.line_buffered) flush();
    }
    flush();
}

/* The length of the character that begins here; 0: this is no UTF-8. No longer
 * form than needed, no half of a pair, nothing above U+10FFFF. */
static size_t utf8(const unsigned char *c, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = c[0] < 0x80   ? 1
               : c[0] < 0xc2 ? 0
               : c[0] < 0xe0 ? 2
               : c[0] < 0xf0 ? 3
               : c[0] < 0xf5 ? 4
                             : 0;
    if (n > len) return 0;
    uint32_t code = n > 1 ? c[0] & (0x7fu >> n) : c[0];
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    bool half = code >= 0xd800 && code < 0xe000;
    return code < least[n] || half || code > 0x10ffff ? 0 : n;
}

static bool is_utf8(const unsigned char *c, size_t len)
{
    while (len > 0) {
        size_t n = utf8(c, len);
        if (n == 0) return false;
        c += n;
        len -= n;
    }
    return true;
}

static void put_string(const unsigned char *c, size_t len)
{
    char escape[8];
    for (size_t i = 0; i < len; i++) {
        bool control = c[i] < 0x20;
        if (!control && c[i] != '"' && c[i] != '\\') {
            put(c + i, 1);
            continue;
        }
        if (control)
            snprintf(escape, sizeof escape, "\\u%04x", c[i]);
        else
            snprintf(escape, sizeof escape, "\\%c", c[i]);
        put_text(escape);
    }
}

static void put_hex(const unsigned char *c, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        put(&digits[c[i] >> 4], 1);
        put(&digits[c[i] & 15], 1);
    }
}

/* Where a line is no text, a JSON string cannot hold its bytes. */
static void print_objects(const struct job *job)
{
    for (size_t i = 0; i < job->chunk.n; i++) {
        char number[NUMBER_TEXT];
        seen_key shown = show_line(&job->chunk, i, number);
        const unsigned char *line = shown.data;
        size_t len = shown.len;
        bool text = is_utf8(line, len);
        put_text(text ? "{\"line\": \"" : "{\"line_hex\": \"");
        if (text)
            put_string(line, len);
        else
            put_hex(line, len);
        put_text("\", \"verdict\": \"");
        put_text(verdict_of(job, i));
        put_text("\"}\n");
        if (opt.line_buffered) flush();
    }
    flush();
}

/* ---- Run ----------------------------------------------------------------- */

static void check_options(void)
{
    check_threads(opt.threads);
    if (opt.verdict && opt.json)
        fail("--verdict and --json both print every line: give one");
    if (opt.verdict && (opt.count || opt.quiet))
        fail("--verdict prints every line: leave out %s",
             opt.count ? "-c" : "-q");
    if (opt.invert && prints_all())
        fail("%s prints every line with its answer: leave out -v",
             opt.verdict ? "--verdict" : "--json");
}

static void report_json(FILE *to)
{
    struct json j = {.to = to, .flat = prints_all()};
    json_open(&j, NULL, '{');
    json_text(&j, "file", target.name);
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "maybe", (double)tally.found);
    json_number(&j, "never", (double)(tally.lines - tally.found));
    json_number(&j, "bytes", (double)flow_bytes());
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

/* NULL: the lines as they were read, or none. */
static void (*printer(void))(const struct job *job)
{
    if (prints_all()) return opt.verdict ? print_verdicts : print_objects;
    bool silent = opt.count || opt.quiet;
    return key_format.u64 == BINARY && !silent ? print_shown : NULL;
}

static int run(char **operands, size_t n)
{
    const char *name = target_operand(operands, n);
    check_options();
    open_flow(operands + 1, n - 1, opt.line_buffered, opt.quiet);
    if (!find_target(&target, name)) target_missing(&target);
    check_key_format();
    if (opt.json) keep_warnings();
    compare_keys(&target);
    read_target(&target);
    run_flow(&(struct flow){.tally = &tally,
                            .prepare = ask_all,
                            .tell = !opt.quiet && !opt.json,
                            .ask = answer,
                            .print = printer(),
                            .found = "maybe in",
                            .silent = opt.count || opt.quiet,
                            .wanted = !opt.invert,
                            .line_buffered = opt.line_buffered,
                            .threads = opt.threads});
    if (opt.json && (opt.count || !opt.quiet))
        report_json(stdout);
    else if (opt.count && !opt.quiet)
        printf("%llu\n", (unsigned long long)printed());
    finish_output();
    if (opt.json && opt.quiet && !opt.count) report_json(stderr);
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
    "seen check --verdict urls.seen candidates.txt | grep ^never",
    "every line with its answer",
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
        "wrongly as often as the filter's rate says. The file is compared "
        "with its\n"
        "checksums first, because damage can cause a wrong \"never\": 0.2 s "
        "for 1 GB\n"
        "in memory, or the time that the disk needs to read it. --no-verify "
        "leaves\n"
        "that out: the file is mapped, and a few keys of a huge filter take no "
        "time.\n"
        "TARGET - is stdin. Exit code 0: something was printed (or would be, "
        "with -q),\n"
        "1: nothing was, 2: an error.\n"
        "\n"
        "--json prints {\"line\": ..., \"verdict\": \"maybe\"} for each line, "
        "and "
        "the\n"
        "totals last; a line that is not UTF-8 is in line_hex instead.",
    .examples = examples,
    .options = groups,
    .run = run,
};
