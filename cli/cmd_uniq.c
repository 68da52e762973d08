/*
 * cmd_uniq.c - seen uniq: copy lines, drop those seen before, keep the order.
 *
 * Lines travel in chunks of half a megabyte:
 *
 *     read          one file after the other
 *     split, hash   touches the chunk alone
 *     ask           the filter decides, line after line
 *     close ranks   the lines to print move together, in place
 *     write         one write() for the chunk
 *
 * With -j N, one thread asks, so that first occurrence and order are exactly
 * those of a single thread and the filter stays in the cache of one core (with
 * the filter passed around, two threads were only 1.3 times as fast as one).
 * The others read and prepare chunks ahead of it, and finish those it has been
 * through. Who has nothing to do sleeps.
 */
#define _POSIX_C_SOURCE 200809L

#include "input.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "spec.h"
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

/* Distinct lines that a filter of unknown size begins with: 2 to 5 MB. */
#define FIRST_LINES 1000000

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
 * summed up while the filter fills. Simpson's rule; the curve is smooth, with a
 * bend where a filter that grows opens a layer. */
static double expected_loss(double n)
{
    const int steps = 256;
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
    if (plan.kind == SEEN_SCALABLE) {
        note("filter that grows, %s to begin with; however many lines come, "
             "expect to lose at most %s of the distinct ones",
             show_size(size, (double)plan.bytes), show_rate(rate, plan.fpp));
        return;
    }
    note("filter of %s; of %s distinct lines expect to lose %.2g "
         "(rate %s when full)",
         show_size(size, (double)plan.bytes), show_count(items, n),
         expected_loss(n), show_rate(rate, plan.fpp));
}

static void make_filter(void)
{
    static uint8_t secret[16];
    seen_spec spec = {.kind = SEEN_SET};
    bool bloom = opt.rate > 0 || opt.items || opt.memory;
    if (bloom && !opt.items && !opt.memory) {
        spec = (seen_spec){
            .kind = SEEN_SCALABLE, .items = FIRST_LINES, .fpp = opt.rate};
    } else if (bloom) {
        spec = (seen_spec){.items = opt.items, .fpp = opt.rate};
        if (opt.items && opt.rate > 0)
            spec.limit = opt.memory;
        else if (opt.memory)
            spec.bits = bits_within(opt.memory);
        if (!(opt.rate > 0) && !(opt.items && opt.memory))
            spec.fpp = DEFAULT_RATE;
    }
    if (opt.keyed) {
        if (seen_random_key(secret) != SEEN_OK)
            fail("no random secret to be had");
        spec.flags = SEEN_KEYED;
        spec.key = secret;
    }

    plan = plan_or_fail(&spec, "-M");
    seen_status status = seen_new(&filter, &spec);
    if (status == SEEN_NOMEM) {
        char size[UNIT_TEXT];
        fail("no memory for a filter of %s",
             show_size(size, (double)plan.bytes));
    }
    if (status != SEEN_OK) fail("filter: %s", seen_strerror(status));
    if (bloom && !opt.quiet && !opt.json) announce((double)plan.items);
}

/* ---- Chunks ------------------------------------------------------------- */

static struct source *source;

/* Changed by the thread that asks; the status line reads at any time. */
static struct {
    _Atomic uint64_t lines, repeats;
    const char *file; /* of the last chunk, and how many lines came of it */
    uint64_t file_lines;
} tally;

struct job {
    struct chunk chunk;
    seen_hash *hashes;
    bool *before;
    size_t cap;
    uint64_t bad_line; /* its number, if chunk.bad */
    bool ready;        /* several threads: prepared */
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
static void ask_filter(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t done;
    make_room();
    seen_status s =
        seen_visit_many_hashed(filter, job->hashes, c->n, job->before, &done);
    size_t repeats = 0;
    for (size_t i = 0; i < done; i++)
        repeats += job->before[i];
    tally.lines += done;
    tally.repeats += repeats;
    if (c->file != tally.file) tally.file_lines = 0;
    tally.file = c->file;
    tally.file_lines += done;
    job->bad_line = tally.file_lines + 1;
    if (s != SEEN_OK) {
        c->n = done;
        c->bad = seen_strerror(s);
    }
}

/* Move the lines to print to the front of the chunk; how many bytes. */
static size_t close_ranks(struct job *job)
{
    struct chunk *c = &job->chunk;
    char *to = c->bytes;
    size_t i = 0;
    while (i < c->n) {
        /* Runs of lines that stay move together. */
        size_t first = i;
        while (i < c->n && job->before[i] == opt.repeats)
            i++;
        if (i > first) {
            const char *from = c->lines[first].data;
            const seen_key *last = &c->lines[i - 1];
            size_t len =
                (size_t)((const char *)last->data + last->len + 1 - from);
            if (to != from) memmove(to, from, len);
            to += len;
        }
        while (i < c->n && job->before[i] != opt.repeats)
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

/* Here, when all lines before it are out, an error ends the program. */
static void stop_if_failed(const struct job *job)
{
    const struct chunk *c = &job->chunk;
    char text[BAD_LINE_TEXT];
    if (!c->bad && !*c->failure) return;
    end_progress();
    if (c->bad)
        fail("%s:%llu: %s: %s", c->file, (unsigned long long)job->bad_line,
             show_bad_line(c, text), c->bad);
    fail("%s", c->failure);
}

static void prepare(struct job *job)
{
    split_chunk(&job->chunk);
    if (job->chunk.n > job->cap) {
        job->cap = job->chunk.lines_cap;
        job->hashes =
            must_have(realloc(job->hashes, job->cap * sizeof *job->hashes));
        job->before =
            must_have(realloc(job->before, job->cap * sizeof *job->before));
    }
    seen_hash_many(filter, job->chunk.keys, job->chunk.n, job->hashes);
}

static void finish(struct job *job)
{
    if (!opt.count) write_lines(job->chunk.bytes, close_ranks(job));
    stop_if_failed(job);
}

static void free_job(struct job *job)
{
    free_chunk(&job->chunk);
    free(job->hashes);
    free(job->before);
}

static void run_alone(void)
{
    struct job job = {0};
    while (read_chunk(source, &job.chunk)) {
        prepare(&job);
        ask_filter(&job);
        finish(&job);
    }
    free_job(&job);
}

/* ---- Several threads ---------------------------------------------------- */

/*
 * Chunks have numbers, in the order of the input; number i is jobs[i % count].
 * Reading, asking and finishing each go through the numbers one by one:
 *
 *     finished <= asked <= read <= finished + count
 *
 * All under the lock; the work itself is done outside.
 */
static struct {
    struct job *jobs;
    size_t count;
    uint64_t read, asked, finished;
    bool reading, finishing; /* by some thread, right now */
    bool ended;              /* there is no more to read */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} belt = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static struct job *job_at(uint64_t number)
{
    return &belt.jobs[number % belt.count];
}

static bool can_read(void)
{
    return !belt.ended && !belt.reading &&
           belt.read - belt.finished < belt.count;
}

static bool can_ask(void)
{
    return belt.asked < belt.read && job_at(belt.asked)->ready;
}

static bool can_finish(void)
{
    return !belt.finishing && belt.finished < belt.asked;
}

static void belt_changed(void)
{
    pthread_cond_broadcast(&belt.changed);
}

static void read_one(void)
{
    struct job *job = job_at(belt.read);
    belt.reading = true;
    job->ready = false;
    pthread_mutex_unlock(&belt.lock);
    bool got = read_chunk(source, &job->chunk);
    pthread_mutex_lock(&belt.lock);
    belt.reading = false;
    belt.ended = !got;
    belt.read += got;
    belt_changed();
    if (!got) return;

    pthread_mutex_unlock(&belt.lock);
    prepare(job);
    pthread_mutex_lock(&belt.lock);
    job->ready = true;
    belt_changed();
}

static void ask_one(void)
{
    struct job *job = job_at(belt.asked);
    pthread_mutex_unlock(&belt.lock);
    ask_filter(job);
    pthread_mutex_lock(&belt.lock);
    belt.asked++;
    belt_changed();
}

static void finish_one(void)
{
    struct job *job = job_at(belt.finished);
    belt.finishing = true;
    pthread_mutex_unlock(&belt.lock);
    finish(job);
    pthread_mutex_lock(&belt.lock);
    belt.finishing = false;
    belt.finished++;
    belt_changed();
}

/* `asks`: this is the thread that asks. It finishes chunks only when it has
 * nothing to ask, but then at once: the others may be waiting for input. */
static void work(bool asks)
{
    pthread_mutex_lock(&belt.lock);
    while (!(belt.ended && belt.finished == belt.read)) {
        if (asks && can_ask())
            ask_one();
        else if (can_finish())
            finish_one();
        else if (!asks && can_read())
            read_one();
        else
            pthread_cond_wait(&belt.changed, &belt.lock);
    }
    pthread_mutex_unlock(&belt.lock);
}

static void *help(void *nothing)
{
    work(false);
    return nothing;
}

static void run_threads(size_t n)
{
    pthread_t *helpers = must_have(malloc(n * sizeof *helpers));
    belt.count = 2 * n;
    belt.jobs = must_have(calloc(belt.count, sizeof *belt.jobs));
    size_t started = 0;
    while (started < n - 1 &&
           pthread_create(&helpers[started], NULL, help, NULL) == 0)
        started++;
    if (started == 0) fail("no thread could be started; try -j1");
    work(true);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    for (size_t i = 0; i < belt.count; i++)
        free_job(&belt.jobs[i]);
    free(belt.jobs);
    free(helpers);
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

static bool grows(void)
{
    return plan.kind == SEEN_SET || plan.kind == SEEN_SCALABLE;
}

/* More lines than planned? Then nobody can tell new lines that were dropped from
 * repeats, and the sum that holds up to the plan says nothing. */
static bool overfull(void)
{
    return !grows() && tally.lines - tally.repeats > plan.items;
}

static double lost(void)
{
    double kept = (double)(tally.lines - tally.repeats);
    return overfull() ? NAN : expected_loss(kept);
}

static void report_json(FILE *to, double seconds)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "unique", (double)(tally.lines - tally.repeats));
    json_number(&j, "repeats", (double)tally.repeats);
    json_number(&j, "printed", (double)printed());
    json_number(&j, "bytes", (double)source_bytes(source));
    json_number(&j, "seconds", seconds);
    json_text(&j, "kind", seen_kind_name(plan.kind));
    json_number(&j, "capacity", grows() ? 0 : (double)plan.items);
    json_number(&j, "fpp", plan.fpp);
    json_number(&j, "expected_lost", lost());
    json_number(&j, "peak_memory", peak_memory());
    json_close(&j, '}');
}

static void report_text(double seconds)
{
    char lines[UNIT_TEXT], unique[UNIT_TEXT], repeats[UNIT_TEXT];
    char bytes[UNIT_TEXT], speed[UNIT_TEXT], memory[UNIT_TEXT];
    char loss[UNIT_TEXT] = "unknown";
    double read = (double)source_bytes(source);
    if (!overfull()) snprintf(loss, sizeof loss, "%.2g lines", lost());
    note("%s lines, %s unique, %s repeats; %s in %.2f s, %s/s; peak memory "
         "%s; expected to be lost: %s",
         show_count(lines, (double)tally.lines),
         show_count(unique, (double)(tally.lines - tally.repeats)),
         show_count(repeats, (double)tally.repeats), show_size(bytes, read),
         seconds, show_size(speed, read / seconds),
         show_size(memory, peak_memory()), loss);
}

static void warn_overfull(void)
{
    if (!overfull()) return;
    char kept[UNIT_TEXT], planned[UNIT_TEXT], most[UNIT_TEXT], rate[UNIT_TEXT];
    seen_info info;
    seen_info_of(filter, &info);
    note("%s distinct lines were kept, %s were planned: the rate has risen to "
         "%s, and up to %s new lines were lost; use a larger -n",
         show_count(kept, (double)(tally.lines - tally.repeats)),
         show_count(planned, (double)plan.items), show_rate(rate, info.fpp_now),
         show_count(most, (double)tally.repeats));
}

static int run(char **operands, size_t n)
{
    check_key_format();
    if (opt.threads > 256) fail("-j: expected at most 256 threads");
    source = open_source(operands, n, opt.line_buffered);
    start_progress(status, opt.quiet);
    make_filter();
    if (opt.threads > 1)
        run_threads(opt.threads);
    else
        run_alone();
    end_progress();

    double seconds = seconds_running();
    if (opt.count && opt.json)
        report_json(stdout, seconds);
    else if (opt.count)
        printf("%llu\n", (unsigned long long)printed());
    finish_output();
    if (opt.json && !opt.count) report_json(stderr, seconds);
    if (opt.stats && !opt.json) report_text(seconds);
    if (!opt.quiet && !opt.json) warn_overfull();
    close_source(source);
    seen_free(filter);
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen uniq access.log > distinct.log",
    "drop repeated lines of any file, however large, keeping the order",
    "tail -f feed | seen uniq -f 2 -t ,",
    "let each second field through once, at once",
    "seen uniq -p 1e-6 urls-*.gz > urls",
    "any number of lines in 5 to 10 bytes each, losing one in a million",
    "seen uniq -p 1e-6 -n 2e9 -j2 urls-*.gz > urls",
    "two billion lines in 8 GB, losing about 160 of them",
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
            "which it tells you beforehand. With -p alone the filter grows and "
            "keeps\n"
            "the rate however many lines come; -n makes it smaller and "
            "faster. Inputs\n"
            "may be compressed with gzip or zstd.",
    .examples = examples,
    .options = groups,
    .run = run,
};
