/* progress.c - see progress.h. */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include "output.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static status_line *describe;
static bool on_terminal;
static bool shown;
static double started, last_shown;
static volatile sig_atomic_t asked;
static pthread_mutex_t showing = PTHREAD_MUTEX_INITIALIZER;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void ask(int signal_number)
{
    (void)signal_number;
    asked = 1;
}

void start_progress(status_line *line, bool quiet)
{
    describe = line;
    on_terminal = !quiet && isatty(STDERR_FILENO);
    started = last_shown = now();
    /* No SA_RESTART: a read that waits for input returns, and the line comes
     * at once. */
    struct sigaction action = {.sa_handler = ask};
    sigaction(SIGUSR1, &action, NULL);
}

static void wipe(void)
{
    if (shown) fputs("\r\033[K", stderr);
    fflush(stderr);
    shown = false;
}

static void show_if_due(void)
{
    char text[256];
    if (asked) {
        asked = 0;
        describe(text, sizeof text);
        wipe();
        note("%s", text);
    }
    if (!on_terminal) return;
    double t = now();
    if (t - last_shown < 0.5) return;
    last_shown = t;
    describe(text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
    shown = true;
}

void tick_progress(void)
{
    if (pthread_mutex_trylock(&showing) != 0) return; /* another thread does */
    show_if_due();
    pthread_mutex_unlock(&showing);
}

void end_progress(void)
{
    pthread_mutex_lock(&showing);
    wipe();
    on_terminal = false;
    pthread_mutex_unlock(&showing);
}

double seconds_running(void)
{
    return now() - started;
}
