/* progress.c - see progress.h. */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include "output.h"
#include "units.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static status_line *describe;
static void (*_Atomic before_end)(void);
static _Atomic bool came; /* a signal that ends the program */
static bool watched;
static double started;

static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;
static bool shown, ended; /* under the mutex */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void wipe(void)
{
    if (shown) fputs("\r\033[K", stderr);
    fflush(stderr);
    shown = false;
}

/* Whoever has something to say finds an empty line; unless it is the thread of
 * progress, which has seen to that. */
static void make_way(void)
{
    if (pthread_mutex_trylock(&speaking) != 0) return;
    wipe();
    pthread_mutex_unlock(&speaking);
}

/* ---- Room ---------------------------------------------------------------- */

/* A line as wide as the terminal may already wrap. Where nobody says how wide it
 * is, it is as wide as they all were. */
static size_t columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 79;
    return size.ws_col - 1u;
}

/* Columns that a byte may take: of a character of several bytes the first takes
 * two, which no font exceeds. */
static size_t width_of(char byte)
{
    unsigned char c = (unsigned char)byte;
    return c < 0x80 ? 1 : c < 0xc0 ? 0 : 2;
}

/* What does not fit goes from the end, a part between commas at a time; the first
 * one is cut. What would move the cursor is masked. */
static void fit(char *text, size_t room)
{
    size_t used = 0, cut = 0;
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
        if (c[0] == ',' && c[1] == ' ') cut = (size_t)(c - text);
        used += width_of(*c);
        if (used <= room) continue;
        if (!cut) /* not within a character */
            for (cut = (size_t)(c - text); cut && !width_of(text[cut]);)
                cut--;
        text[cut] = '\0';
        return;
    }
}

static size_t room; /* for the line under way; under the mutex */

static void speak(bool asked)
{
    char text[256];
    pthread_mutex_lock(&speaking);
    if (!ended) {
        room = asked ? sizeof text - 1 : columns();
        describe(text, sizeof text);
        wipe();
        fit(text, room);
        if (asked)
            note("%s", text);
        else
            fputs(text, stderr), fflush(stderr), shown = true;
    }
    pthread_mutex_unlock(&speaking);
}

/* ---- Signals ------------------------------------------------------------- */

/* Who stops a program often sends its signal twice, to the process and to its
 * group, as timeout(1) does: what comes within a second is the same wish. A later
 * one meets its default action at once, in this thread. */
static void *end_at_once(void *endings)
{
    const struct timespec no_time = {0};
    struct timespec left = {.tv_sec = 1};
    while (nanosleep(&left, &left) != 0)
        ;
    while (sigtimedwait(endings, NULL, &no_time) > 0)
        ;
    pthread_sigmask(SIG_UNBLOCK, endings, NULL);
    await_end();
    return NULL;
}

static void heed_the_next(const sigset_t *signals)
{
    static sigset_t endings;
    pthread_t thread;
    endings = *signals;
    sigdelset(&endings, SIGUSR1);
    if (pthread_create(&thread, NULL, end_at_once, &endings) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &endings, NULL);
}

/* Do what is left to do, then let the signal do what it always does. */
static void end_by(int signal_number, const sigset_t *signals)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    came = true;
    void (*act)(void) = before_end;
    if (act) {
        heed_the_next(signals);
        end_progress();
        act();
    }
    raise(signal_number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void *listen(void *signals)
{
    const struct timespec half_a_second = {.tv_nsec = 500000000};
    for (;;) {
        int got = sigtimedwait(signals, NULL, &half_a_second);
        if (got > 0 && got != SIGUSR1) end_by(got, signals);
        if (got == SIGUSR1 || watched) speak(got == SIGUSR1);
    }
    return NULL;
}

/* Those that end a program, unless whoever started it wants them ignored. */
static void add_endings(sigset_t *signals)
{
    static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct sigaction now;
        if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaddset(signals, endings[i]);
    }
}

void start_progress(status_line *line, bool quiet)
{
    static sigset_t signals;
    describe = line;
    before_saying = make_way;
    watched = !quiet && isatty(STDERR_FILENO);
    started = now();
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    add_endings(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, listen, &signals) == 0) {
        pthread_detach(thread);
    } else { /* then there is just no progress */
        sigdelset(&signals, SIGUSR1);
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    }
}

bool on_terminal(void)
{
    return watched;
}

void heed_signals(void (*act)(void))
{
    before_end = act;
}

bool signal_came(void)
{
    return came;
}

void await_end(void)
{
    for (;;)
        pause();
}

/* ---- Work ---------------------------------------------------------------- */

static struct {
    const char *_Atomic name, *_Atomic things;
    _Atomic uint64_t done, total;
    uint64_t (*_Atomic look)(void);
    _Atomic double since;
} work;

static const char *show_amount(char buf[UNIT_TEXT], double n)
{
    return work.things ? show_short(buf, n) : show_size(buf, n);
}

/* The end of a long name tells more than its beginning. It leaves room for `rest`
 * more columns, but keeps enough to be known by. */
#define LEAST_NAME 16
#define LABEL_MAX  80

static void put_name(char *buf, size_t cap, const char *name, size_t rest)
{
    size_t len = strlen(name), most = room > rest ? room - rest : 0;
    if (most < LEAST_NAME) most = LEAST_NAME;
    if (most > LABEL_MAX) most = LABEL_MAX;
    if (len <= most) {
        snprintf(buf, cap, "%s", name);
        return;
    }
    name += len - (most - 3);
    while (width_of(*name) == 0) /* not from within a character */
        name++;
    snprintf(buf, cap, "...%s", name);
}

static void describe_work(char *buf, size_t cap)
{
    const char *name = work.name, *things = work.things;
    double seconds = now() - work.since, total = (double)work.total;
    double done = (double)(work.look ? work.look() : work.done);
    char a[UNIT_TEXT], b[UNIT_TEXT], c[UNIT_TEXT], text[160];
    if (done > total) done = total;
    size_t len = (size_t)snprintf(text, sizeof text, ", %.0f s", seconds);
    if (total > 0)
        len += (size_t)snprintf(text + len, sizeof text - len, ", %s of %s%s%s",
                                show_amount(a, done), show_amount(b, total),
                                things ? " " : "", things ? things : "");
    if (total > 0 && done > 0)
        len += (size_t)snprintf(
            text + len, sizeof text - len, ", %s/s, %.0f s left",
            show_amount(c, done / seconds), seconds * (total - done) / done);
    put_name(buf, cap, name ? name : "", len);
    snprintf(buf + strlen(buf), cap - strlen(buf), "%s", text);
}

void start_work(bool quiet)
{
    work.since = now();
    start_progress(describe_work, quiet);
}

void work_on(const char *name)
{
    pthread_mutex_lock(&speaking);
    if (!name) wipe();
    work.name = name;
    pthread_mutex_unlock(&speaking);
}

void work_total(uint64_t total, const char *things)
{
    work.things = things;
    work.done = 0;
    work.total = total;
}

void work_done(uint64_t more)
{
    work.done += more;
}

void work_seen_by(uint64_t (*look)(void))
{
    work.look = look;
}

void more_work(const char *name)
{
    pthread_mutex_lock(&speaking);
    describe = describe_work;
    work.name = name;
    work.since = now();
    ended = false;
    pthread_mutex_unlock(&speaking);
}

void end_progress(void)
{
    pthread_mutex_lock(&speaking);
    wipe();
    ended = true;
    pthread_mutex_unlock(&speaking);
}

double seconds_running(void)
{
    return now() - started;
}
