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

static void *listen(void *signals)
{
    const struct timespec half_a_second = {.tv_nsec = 500000000};
    for (;;) {
        bool asked = sigtimedwait(signals, NULL, &half_a_second) == SIGUSR1;
        if (asked || on_terminal) speak(asked);
    }
    return NULL;
}

void start_progress(status_line *line, bool quiet)
{
    static sigset_t signals;
    describe = line;
    on_terminal = !quiet && isatty(STDERR_FILENO);
    started = now();
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, listen, &signals) == 0)
        pthread_detach(thread); /* without it there is just no progress */
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
