/* progress.c - see progress.h. */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include "output.h"
#include "units.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static status_line *describe;
static void (*_Atomic before_end)(void);
static bool on_terminal;
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

static void speak(bool asked)
{
    char text[256];
    pthread_mutex_lock(&speaking);
    if (!ended) {
        describe(text, sizeof text);
        wipe();
        if (asked)
            note("%s", text);
        else
            fputs(text, stderr), fflush(stderr), shown = true;
    }
    pthread_mutex_unlock(&speaking);
}

/* Do what is left to do, then let the signal do what it always does. Another
 * one meets its default action at once. */
static void end_by(int signal_number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    void (*act)(void) = before_end;
    if (act) {
        end_progress();
        act();
    }
    raise(signal_number);
}

static void *listen(void *signals)
{
    const struct timespec half_a_second = {.tv_nsec = 500000000};
    for (;;) {
        int got = sigtimedwait(signals, NULL, &half_a_second);
        if (got > 0 && got != SIGUSR1) end_by(got);
        if (got == SIGUSR1 || on_terminal) speak(got == SIGUSR1);
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
    on_terminal = !quiet && isatty(STDERR_FILENO);
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

void heed_signals(void (*act)(void))
{
    before_end = act;
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

static void describe_work(char *buf, size_t cap)
{
    const char *name = work.name, *things = work.things;
    double seconds = now() - work.since, total = (double)work.total;
    double done = (double)(work.look ? work.look() : work.done);
    char a[UNIT_TEXT], b[UNIT_TEXT], c[UNIT_TEXT];
    size_t len =
        (size_t)snprintf(buf, cap, "%.120s, %.0f s", name ? name : "", seconds);
    if (!(total > 0)) return;
    if (done > total) done = total;
    len += (size_t)snprintf(buf + len, cap - len, ", %s of %s%s%s",
                            show_amount(a, done), show_amount(b, total),
                            things ? " " : "", things ? things : "");
    if (done > 0)
        snprintf(buf + len, cap - len, ", %s/s, %.0f s left",
                 show_amount(c, done / seconds),
                 seconds * (total - done) / done);
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
