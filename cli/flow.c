/* flow.c - see flow.h. */
#define _POSIX_C_SOURCE 200809L

#include "flow.h"

#include "memory.h"
#include "output.h"
#include "overwrite.h"
#include "progress.h"
#include "source.h"
#include "units.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 256

/* A program has one flow. The status line reads these two at any time. */
static struct source *_Atomic source;
static const struct flow *_Atomic flow;

/* While lines are counted, before there is a flow: how many, and the source. */
static _Atomic uint64_t counted_lines;
static struct source *counted;

/* ---- Progress ----------------------------------------------------------- */

static void status(char *buf, size_t cap)
{
    char lines[UNIT_TEXT], found[UNIT_TEXT], rate[UNIT_TEXT];
    const struct source *from = source;
    const struct flow *to = flow;
    double seconds = seconds_running();
    double bytes = (double)source_bytes(from);
    double total = (double)source_total(from);
    uint64_t so_many = to ? to->tally->lines : counted_lines;
    size_t len = (size_t)snprintf(
        buf, cap, "%s", show_about(lines, (double)so_many, line_word()));
    if (to && to->found)
        len += (size_t)snprintf(buf + len, cap - len, ", %s %s",
                                show_short(found, (double)to->tally->found),
                                to->found);
    len += (size_t)snprintf(buf + len, cap - len, ", %s/s",
                            show_size(rate, bytes / seconds));
    if (total > 0 && bytes > 0)
        len += (size_t)snprintf(buf + len, cap - len, ", %.0f%%, %.0f s left",
                                100 * bytes / total,
                                seconds * (total - bytes) / bytes);
    if (to && to->more_status) to->more_status(to->of, buf + len, cap - len);
}

void open_flow(char **inputs, size_t n, bool hasty, bool quiet)
{
    output_is_no_input(NULL, inputs, n);
    source = open_source(inputs, n, hasty);
    start_progress(status, quiet);
}

uint64_t flow_bytes(void)
{
    return source_bytes(source);
}

uint64_t flow_total(void)
{
    return source_total(source);
}

/* Bytes are added up in bytes as long as they cannot overflow: that makes 16
 * sums at once of it. */
static uint64_t count_byte(const char *p, size_t len, char byte)
{
    uint64_t total = 0;
    while (len > 0) {
        size_t now = len < 255 ? len : 255;
        uint8_t here = 0;
        for (size_t i = 0; i < now; i++)
            here = (uint8_t)(here + (p[i] == byte));
        total += here;
        p += now;
        len -= now;
    }
    return total;
}

uint64_t count_lines(char **inputs, size_t n)
{
    struct chunk c = {0};
    off_t began = lseek(STDIN_FILENO, 0, SEEK_CUR);
    while (read_chunk(source, &c)) {
        counted_lines += line_end() ? count_byte(c.bytes, c.len, end_byte())
                                    : c.len / BINARY_WIDTH;
        if (*c.failure) fail("%s", c.failure);
    }
    free_chunk(&c);
    if (began >= 0) lseek(STDIN_FILENO, began, SEEK_SET);
    counted = source;
    source = open_source(inputs, n, false);
    return atomic_exchange(&counted_lines, 0);
}

/* ---- One chunk ---------------------------------------------------------- */

/* Where messages say a line is: the file of the last chunk, and how many lines
 * came of it. */
static struct {
    const char *file;
    uint64_t lines;
} place;

void hash_lines(struct job *job, const seen_filter *f)
{
    seen_hash_many(f, seen_keys_of(job->chunk.keys, job->chunk.n), job->hashes);
}

static void prepare(struct job *job)
{
    split_chunk(&job->chunk);
    if (job->chunk.n > job->cap) {
        job->cap = job->chunk.lines_cap;
        job->hashes =
            must_have(realloc(job->hashes, job->cap * sizeof *job->hashes));
        job->answers =
            must_have(realloc(job->answers, job->cap * sizeof *job->answers));
    }
    job->of = flow->of;
    if (flow->prepare) flow->prepare(job);
}

void acknowledge(uint64_t lines)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%llu\n", (unsigned long long)lines);
    write_all(text, (size_t)len);
}

/* This thread is the one that asks, right now. */
static _Thread_local bool is_asking;

/* Lines already counted are never counted again, so a failure in the middle says
 * exactly where it happened. False: this is the last chunk that counts. */
static bool ask(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t found = 0;
    is_asking = true;
    size_t done = flow->ask(job);
    is_asking = false;
    for (size_t i = 0; i < done; i++)
        found += job->answers[i];
    flow->tally->lines += done;
    flow->tally->found += found;
    flow->tally->odd += c->odd;
    flow->tally->cr += c->cr;
    flow->tally->marked += c->marked;
    if (c->file != place.file) place.lines = 0;
    place.file = c->file;
    place.lines += done;
    job->bad_line = place.lines + 1;
    c->n = done;
    return !c->bad && !*c->failure;
}

/* Move the lines to print to the front of the chunk; how many bytes. */
static size_t close_ranks(struct job *job)
{
    struct chunk *c = &job->chunk;
    const bool wanted = flow->wanted;
    char *to = c->bytes;
    size_t i = 0;
    while (i < c->n) {
        /* Runs of lines that stay move together. */
        size_t first = i;
        while (i < c->n && job->answers[i] == wanted)
            i++;
        if (i > first) {
            const char *from = c->lines[first].data;
            const seen_key *last = &c->lines[i - 1];
            size_t len = (size_t)((const char *)last->data + last->len +
                                  line_end() - from);
            if (to != from) memmove(to, from, len);
            to += len;
        }
        while (i < c->n && job->answers[i] != wanted)
            i++;
    }
    return (size_t)(to - c->bytes);
}

static void write_lines(const char *bytes, size_t len)
{
    if (!flow->line_buffered || !line_end()) {
        write_all(bytes, len);
        return;
    }
    while (len > 0) {
        const char *end = memchr(bytes, end_byte(), len);
        size_t line = (size_t)(end + 1 - bytes);
        write_all(bytes, line);
        bytes += line;
        len -= line;
    }
}

/* The first caller closes; later callers wait for the exit. */
static void close_once(void)
{
    static atomic_flag closing = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&closing))
        pause();
    if (flow->close) flow->close(flow->of);
}

/* "12 lines were added": they stay, whatever ends the program now. */
#define KEPT_TEXT 64

static const char *kept(char buf[KEPT_TEXT])
{
    char lines[UNIT_TEXT];
    const double n = (double)flow->tally->lines;
    snprintf(buf, KEPT_TEXT, "%s %s %s", show_many(lines, n, line_word()),
             n == 1 ? "was" : "were", flow->so_far);
    return buf;
}

/* Here, when all lines before it are out, an error ends the program. */
static void stop_if_failed(const struct job *job)
{
    const struct chunk *c = &job->chunk;
    char text[BAD_LINE_TEXT], text_kept[KEPT_TEXT];
    if (!c->bad && !*c->failure) return;
    end_progress();
    close_once();
    if (!c->bad && flow->so_far)
        fail("%s; until then, %s", c->failure, kept(text_kept));
    if (!c->bad) fail("%s", c->failure);
    char before[96] = "";
    if (flow->so_far && flow->tally->lines > 0)
        snprintf(before, sizeof before, "; before that, %s", kept(text_kept));
    fail("%s:%llu: %s: %s%s", c->file, (unsigned long long)job->bad_line,
         show_bad_line(c, text), c->bad, before);
}

static void finish(struct job *job)
{
    if (flow->print)
        flow->print(job);
    else if (!flow->silent)
        write_lines(job->chunk.bytes, close_ranks(job));
    stop_if_failed(job);
}

static void free_job(struct job *job)
{
    free_chunk(&job->chunk);
    free(job->hashes);
    free(job->answers);
}

/* ---- One thread --------------------------------------------------------- */

/* Held from asking about a chunk until it is out. */
static pthread_mutex_t between = PTHREAD_MUTEX_INITIALIZER;

static void run_alone(void)
{
    struct job job = {0};
    while (read_chunk(source, &job.chunk)) {
        prepare(&job);
        pthread_mutex_lock(&between);
        ask(&job);
        finish(&job);
        pthread_mutex_unlock(&between);
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
    bool reading, asking, finishing; /* by some thread, right now */
    bool ended;                      /* there is no more to read */
    bool stopped;                    /* there is no more to ask */
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
    return !belt.stopped && belt.asked < belt.read && job_at(belt.asked)->ready;
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
    belt.asking = true;
    pthread_mutex_unlock(&belt.lock);
    bool more = ask(job);
    pthread_mutex_lock(&belt.lock);
    belt.asking = false;
    belt.asked++;
    if (!more) belt.stopped = true;
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

void check_threads(uint64_t threads)
{
    if (threads > THREADS_MAX)
        fail("-j %llu: expected at most %d threads",
             (unsigned long long)threads, THREADS_MAX);
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

/* By the thread that hears signals, when one ends the program: no more chunks,
 * and those under way come out first. */
static void stop(void)
{
    pthread_mutex_lock(&between);
    pthread_mutex_lock(&belt.lock);
    belt.stopped = true;
    while (belt.asking || belt.finished < belt.asked)
        pthread_cond_wait(&belt.changed, &belt.lock);
    pthread_mutex_unlock(&belt.lock);
    close_once();
    char text[KEPT_TEXT];
    if (flow->so_far && flow->tell) note("stopped by a signal: %s", kept(text));
}

/* By the thread whose output nobody reads any more, or that has no room for it:
 * what has been asked about counts, so it is put away first. Another thread may
 * be asking; nobody begins to. */
static void close_early(void)
{
    pthread_mutex_lock(&belt.lock);
    belt.stopped = true;
    while (belt.asking && !is_asking)
        pthread_cond_wait(&belt.changed, &belt.lock);
    pthread_mutex_unlock(&belt.lock);
    end_progress();
    close_once();
}

/* Then the options are wrong, and not some of the lines. */
static bool mostly_odd(void)
{
    return key_format.fields && 2 * flow->tally->odd > flow->tally->lines;
}

static void note_odd(void)
{
    char odd[UNIT_TEXT], lines[UNIT_TEXT];
    const char *file;
    size_t marks = source_marks(source, &file);
    if (!flow->tell) return;
    if (marks == 1)
        note("%s: began with a byte order mark, which is no part of its first "
             "line",
             file);
    if (marks > 1)
        note(
            "%s and %zu more began with a byte order mark, which is no part of "
            "their first lines",
            file, marks - 1);
    if (flow->tally->odd && !mostly_odd())
        note("%s of %s %s %s", show_count(odd, (double)flow->tally->odd),
             show_many(lines, (double)flow->tally->lines, "line"),
             flow->tally->odd == 1 ? "has" : "have", odd_lines());
}

/* Lines whose keys are not what they look like. */
static void warn_odd(void)
{
    char odd[UNIT_TEXT], lines[UNIT_TEXT];
    const char *encoding, *wide = source_wide(source, &encoding);
    show_many(lines, (double)flow->tally->lines, "line");
    if (mostly_odd())
        warn("%s of %s %s %s", show_count(odd, (double)flow->tally->odd), lines,
             flow->tally->odd == 1 ? "has" : "have", odd_lines());
    if (wide)
        warn("%s: every other byte is NUL, as in UTF-16 without a byte order "
             "mark: then convert it first, iconv -f %s -t UTF-8",
             wide, encoding);
    if (flow->tally->cr)
        warn("%s of %s %s in CR LF, as Windows writes them, and the CR is part "
             "of %s: add --crlf to leave it out",
             show_count(odd, (double)flow->tally->cr), lines,
             flow->tally->cr == 1 ? "ends" : "end",
             flow->tally->cr == 1 ? "its key" : "their keys");
    if (flow->tally->marked)
        warn("%s of %s %s with a byte order mark, from files that were put "
             "together: it is part of %s",
             show_count(odd, (double)flow->tally->marked), lines,
             flow->tally->marked == 1 ? "begins" : "begin",
             flow->tally->marked == 1 ? "its key" : "their keys");
}

void run_flow(const struct flow *f)
{
    flow = f;
    if (f->close) heed_signals(stop);
    if (f->close && signal_came()) {
        close_once();
        await_end();
    }
    before_giving_up = f->close ? close_early : NULL;
    if (f->threads > 1)
        run_threads((size_t)f->threads);
    else
        run_alone();
    end_progress();
    note_odd();
    warn_odd();
    close_once();
    before_giving_up = NULL;
    if (counted) close_source(counted); /* the status line may have used it */
}
