/* progress.c - see progress.h. */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include "output.h"

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

static const char *_Atomic at_work;

static void describe_work(char *buf, size_t cap)
{
    const char *name = at_work;
    snprintf(buf, cap, "%.200s, %.0f s", name ? name : "", seconds_running());
}

void start_work(bool quiet)
{
    start_progress(describe_work, quiet);
}

void work_on(const char *name)
{
    pthread_mutex_lock(&speaking);
    if (!name) wipe();
    at_work = name;
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
