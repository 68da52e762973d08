/*
 * cmd_uniq.c - seen uniq: copy lines, drop those seen before, keep the order.
 *
 * Lines travel in chunks of half a megabyte, and a chunk has four stations:
 *
 *     read          in turn     one file after the other
 *     split, hash   anywhere    touches the chunk alone
 *     ask           in turn     the filter decides, line after line
 *     close ranks   anywhere    the lines to print move together, in place
 *     write         in turn     one write() for the chunk
 *
 * With -j the stations marked "anywhere" run side by side. A chunk takes a
 * number when it is read and passes the others in that order, so first
 * occurrence and order are exactly those of one thread. A thread whose number
 * is not up sleeps.
 */
#define _POSIX_C_SOURCE 200809L

#include "input.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "units.h"

#include <math.h>
#include <pthread.h>
#include <seen.h>
#include <seen_store.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Where -n or -M are given without -p: one line lost in a million. */
#define DEFAULT_RATE 1e-6

static struct {
    double rate;
    uint64_t items, memory, threads;
    bool repeats, count, quiet, stats, json, line_buffered, keyed;
} opt;

static const struct option options[] = {
    {'p', NULL, "RATE", OPTION_RATE, &opt.rate,
     "drop a new line wrongly at most this often: 1e-6, 0.1%"},
    {'n', NULL, "ITEMS", OPTION_COUNT, &opt.items,
     "expect this many distinct lines: 14M, 1e9"},
    {'M', NULL, "MEMORY", OPTION_SIZE, &opt.memory,
     "use at most this much memory for the filter: 64MiB"},
    {'d', NULL, NULL, OPTION_FLAG, &opt.repeats,
     "print the repeats instead, each time they come"},
    {'c', NULL, NULL, OPTION_FLAG, &opt.count,
     "print only how many lines would be printed"},
    {'j', NULL, "THREADS", OPTION_COUNT, &opt.threads,
     "work with this many threads (default 1); same output"},
    {0, "line-buffered", NULL, OPTION_FLAG, &opt.line_buffered,
     "write every line by itself, as soon as it is there"},
    {0, "keyed", NULL, OPTION_FLAG, &opt.keyed,
     "hash with a random secret: for input that an enemy chose"},
    {0, "stats", NULL, OPTION_FLAG, &opt.stats,
     "say at the end what was done, on stderr"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "the same as JSON (with -c: on stdout, as the result)"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet,
     "no notes and no progress on stderr"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- The filter --------------------------------------------------------- */

static seen_filter *filter;
static seen_plan plan;

/* Lines one may expect to lose among the first n distinct ones: the rate,
 * summed up while the filter fills. Simpson's rule on a smooth curve. */
static double expected_loss(double n)
{
    const int steps = 64;
    double sum = 0;
    for (int i = 0; i <= steps; i++) {
        int weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        sum += weight * seen_plan_fpp(&plan, (uint64_t)(n * i / steps));
    }
    return sum / (3 * steps) * n;
}

static void announce(double n)
{
    char size[UNIT_TEXT], items[UNIT_TEXT], rate[UNIT_TEXT];
    double loss = expected_loss(n);
    note("filter of %s; of %s distinct lines expect to lose %.2g "
         "(rate %s when full)",
         show_size(size, (double)plan.bytes), show_count(items, n), loss,
         show_rate(rate, plan.fpp));
}

static void make_filter(void)
{
    static uint8_t secret[16];
    seen_spec spec = {.kind = SEEN_SET};
    bool bloom = opt.rate > 0 || opt.items || opt.memory;
    if (bloom) {
        if (!opt.items && !opt.memory)
            fail("-p needs to know for how many lines: add -n ITEMS or -M "
                 "MEMORY (without -p no number is needed)");
        spec = (seen_spec){.items = opt.items, .fpp = opt.rate};
        if (opt.items && opt.rate > 0)
            spec.limit = opt.memory;
        else if (opt.memory)
            spec.bits =
                opt.memory < UINT64_MAX / 8 ? opt.memory * 8 : UINT64_MAX;
        if (!(opt.rate > 0) && !(opt.items && opt.memory))
            spec.fpp = DEFAULT_RATE;
    }
    if (opt.keyed) {
        if (seen_random_key(secret) != SEEN_OK)
            fail("no random secret to be had");
        spec.flags = SEEN_KEYED;
        spec.key = secret;
    }

    const char *problem = seen_plan_problem(&spec);
    if (problem) fail("%s", problem);
    seen_plan_for(&spec, &plan);
    seen_status status = seen_new(&filter, &spec);
    if (status == SEEN_NOMEM) {
        char size[UNIT_TEXT];
        fail("no memory for a filter of %s",
             show_size(size, (double)plan.bytes));
    }
    if (status != SEEN_OK) fail("filter: %s", seen_strerror(status));
    if (bloom && !opt.quiet) announce((double)plan.items);
}

/* ---- Turns -------------------------------------------------------------- */

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t now;
};

static void await_turn(struct turn *t, uint64_t number)
{
    pthread_mutex_lock(&t->lock);
    while (t->now != number)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void pass_turn(struct turn *t)
{
    pthread_mutex_lock(&t->lock);
    t->now++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* ---- Chunks ------------------------------------------------------------- */

static struct source *source;
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static uint64_t chunks_read;
static struct turn asking = {PTHREAD_MUTEX_INITIALIZER,
                             PTHREAD_COND_INITIALIZER, 0};
static struct turn writing = {PTHREAD_MUTEX_INITIALIZER,
                              PTHREAD_COND_INITIALIZER, 0};

/* Changed by whoever's turn it is to ask; the status line reads at any time. */
static struct {
    _Atomic uint64_t lines, repeats;
    const char *file; /* of the last chunk, and how many lines came of it */
    uint64_t file_lines;
} tally;

struct worker {
    struct chunk chunk;
    seen_hash *hashes;
    bool *before;
    size_t cap;
};

static void status(char *buf, size_t cap)
{
    char lines[UNIT_TEXT], repeats[UNIT_TEXT], rate[UNIT_TEXT];
    double seconds = seconds_running();
    double bytes = (double)source_bytes(source);
    double total = (double)source_total(source);
    int len = snprintf(buf, cap, "%s lines, %s repeats, %s/s",
                       show_short(lines, (double)tally.lines),
                       show_short(repeats, (double)tally.repeats),
                       show_size(rate, bytes / seconds));
    if (total > 0 && bytes > 0 && len > 0 && (size_t)len < cap)
        snprintf(buf + len, cap - (size_t)len, ", %.0f%%, %.0f s left",
                 100 * bytes / total, seconds * (total - bytes) / bytes);
}

/*
 * A set that grows moves its fingerprints again and again. Where the size of
 * the input is known, the share of new lines so far tells how many will come:
 * after a sixteenth and after a quarter of the input make room for four times
 * what is there, or less if the end is near.
 */
static void make_room(void)
{
    static uint64_t next;
    uint64_t total = source_total(source), read = source_bytes(source);
    if (plan.kind != SEEN_SET || total == 0 || read < total / 16 ||
        read < next || read >= total)
        return;
    double unique = (double)(tally.lines - tally.repeats);
    double factor = fmin(4, (double)total / (double)read * 1.02);
    seen_reserve(filter, (uint64_t)(unique * factor)); /* a wish */
    next = 4 * read;
}

/* Ask the filter about each line; lines already counted are never counted
 * again, so a failure in the middle says exactly where it happened. */
static void ask_filter(struct worker *w)
{
    struct chunk *c = &w->chunk;
    size_t done;
    make_room();
    seen_status s =
        seen_visit_many_hashed(filter, w->hashes, c->n, w->before, &done);
    size_t repeats = 0;
    for (size_t i = 0; i < done; i++)
        repeats += w->before[i];
    tally.lines += done;
    tally.repeats += repeats;
    if (c->file != tally.file) tally.file_lines = 0;
    tally.file = c->file;
    tally.file_lines += done;
    if (s != SEEN_OK) {
        c->n = done;
        c->bad = seen_strerror(s);
    }
}

/* Move the lines to print to the front of the chunk; how many bytes. */
static size_t close_ranks(struct worker *w)
{
    struct chunk *c = &w->chunk;
    char *to = c->bytes;
    size_t i = 0;
    while (i < c->n) {
        /* Runs of lines that stay move together. */
        size_t first = i;
        while (i < c->n && w->before[i] == opt.repeats)
            i++;
        if (i > first) {
            const char *from = c->lines[first].data;
            const seen_key *last = &c->lines[i - 1];
            size_t len =
                (size_t)((const char *)last->data + last->len + 1 - from);
            if (to != from) memmove(to, from, len);
            to += len;
        }
        while (i < c->n && w->before[i] != opt.repeats)
            i++;
    }
    return (size_t)(to - c->bytes);
}

static void write_lines(const char *bytes, size_t len)
{
    if (!opt.line_buffered) {
        write_all(bytes, len);
        return;
    }
    const int end_byte = key_format.nul ? '\0' : '\n';
    while (len > 0) {
        const char *end = memchr(bytes, end_byte, len);
        size_t line = (size_t)(end + 1 - bytes);
        write_all(bytes, line);
        bytes += line;
        len -= line;
    }
}

static void prepare(struct worker *w)
{
    split_chunk(&w->chunk);
    if (w->chunk.n > w->cap) {
        w->cap = w->chunk.lines_cap;
        w->hashes = must_have(realloc(w->hashes, w->cap * sizeof *w->hashes));
        w->before = must_have(realloc(w->before, w->cap * sizeof *w->before));
    }
    seen_hash_many(filter, w->chunk.keys, w->chunk.n, w->hashes);
}

static void *work(void *nothing)
{
    struct worker w = {0};
    for (;;) {
        pthread_mutex_lock(&reading);
        bool got = read_chunk(source, &w.chunk, tick_progress);
        uint64_t number = chunks_read;
        chunks_read += got;
        pthread_mutex_unlock(&reading);
        if (!got) break;

        prepare(&w);

        await_turn(&asking, number);
        ask_filter(&w);
        uint64_t bad_line = tally.file_lines + 1;
        tick_progress();
        pass_turn(&asking);

        size_t len = opt.count ? 0 : close_ranks(&w);

        await_turn(&writing, number);
        write_lines(w.chunk.bytes, len);
        if (w.chunk.bad) {
            end_progress();
            fail("%s:%llu: %s", w.chunk.file, (unsigned long long)bad_line,
                 w.chunk.bad);
        }
        pass_turn(&writing);
    }
    free_chunk(&w.chunk);
    free(w.hashes);
    free(w.before);
    return nothing;
}

static void run_threads(size_t n)
{
    pthread_t *threads = must_have(malloc(n * sizeof *threads));
    size_t started = 0;
    while (started < n - 1 &&
           pthread_create(&threads[started], NULL, work, NULL) == 0)
        started++;
    work(NULL); /* this thread too; fewer helpers are fine */
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
}

/* ---- The end ------------------------------------------------------------ */

static uint64_t printed(void)
{
    return opt.repeats ? tally.repeats : tally.lines - tally.repeats;
}

static double peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static void report_json(FILE *to, double seconds)
{
    double unique = (double)(tally.lines - tally.repeats);
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "unique", unique);
    json_number(&j, "repeats", (double)tally.repeats);
    json_number(&j, "printed", (double)printed());
    json_number(&j, "bytes", (double)source_bytes(source));
    json_number(&j, "seconds", seconds);
    json_text(&j, "kind", seen_kind_name(plan.kind));
    json_number(&j, "expected_lost", expected_loss(unique));
    json_number(&j, "peak_memory", peak_memory());
    json_close(&j, '}');
}

static void report_text(double seconds)
{
    char lines[UNIT_TEXT], unique[UNIT_TEXT], repeats[UNIT_TEXT];
    char bytes[UNIT_TEXT], speed[UNIT_TEXT], memory[UNIT_TEXT];
    double fresh = (double)(tally.lines - tally.repeats);
    double read = (double)source_bytes(source);
    note("%s lines, %s unique, %s repeats; %s in %.2f s, %s/s; peak memory "
         "%s; expected to be lost: %.2g lines",
         show_count(lines, (double)tally.lines), show_count(unique, fresh),
         show_count(repeats, (double)tally.repeats), show_size(bytes, read),
         seconds, show_size(speed, read / seconds),
         show_size(memory, peak_memory()), expected_loss(fresh));
}

static void warn_overfull(void)
{
    uint64_t unique = tally.lines - tally.repeats;
    if (plan.kind == SEEN_SET || unique <= plan.items) return;
    char got[UNIT_TEXT], planned[UNIT_TEXT], rate[UNIT_TEXT];
    note("%s distinct lines came, %s were planned: about %.2g of them were "
         "lost, the rate is now %s; use a larger -n",
         show_count(got, (double)unique),
         show_count(planned, (double)plan.items), expected_loss((double)unique),
         show_rate(rate, seen_plan_fpp(&plan, unique)));
}

static int run(char **operands, size_t n)
{
    check_key_format();
    if (opt.threads > 256) fail("-j: expected at most 256 threads");
    source = open_source(operands, n, opt.line_buffered);
    start_progress(status, opt.quiet);
    make_filter();
    run_threads(opt.threads ? opt.threads : 1);
    end_progress();

    double seconds = seconds_running();
    if (opt.count && opt.json)
        report_json(stdout, seconds);
    else if (opt.count)
        printf("%llu\n", (unsigned long long)printed());
    finish_output();
    if (opt.json && !opt.count) report_json(stderr, seconds);
    if (opt.stats && !opt.json) report_text(seconds);
    if (!opt.quiet) warn_overfull();
    close_source(source);
    seen_free(filter);
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen uniq access.log > distinct.log",
    "drop repeated lines of any file, however large, keeping the order",
    "tail -f feed | seen uniq -f 2 -t ,",
    "let each second field through once, at once",
    "zcat urls-*.gz | seen uniq -p 1e-6 -n 2e9 -j2 > urls",
    "two billion lines in 8 GB, losing a few hundred of them",
    NULL,
};

static const struct option *const groups[] = {options, key_options, NULL};

const struct verb verb_uniq = {
    .name = "uniq",
    .summary = "copy lines, drop those seen before",
    .operands = "[INPUT...]",
    .text = "Prints each line the first time it comes; the order stays. "
            "Without -p,\n"
            "-n or -M it remembers a 64-bit fingerprint of every line (10 to "
            "15 bytes\n"
            "each, no wrong drop to be expected below a billion lines). With "
            "them it\n"
            "uses a Bloom filter: less memory, and a known small number of "
            "lines lost,\n"
            "which it tells you beforehand.",
    .examples = examples,
    .options = groups,
    .run = run,
};
