/*
 * progress.h - one status line: every half second on a terminal, and once
 * whenever SIGUSR1 asks for it. A thread of its own does both, so it speaks
 * also while everybody else waits for input.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a line (without its end) for people into buf; called by the thread of
 * progress while others work. */
typedef void status_line(char *buf, size_t cap);

/* Before other threads start: they must not take the signal. */
void start_progress(status_line *line, bool quiet);

/* The same for work that cannot say how far it is, only on what and how long;
 * NULL: something is about to be printed. `name` must stay. */
void start_work(bool quiet);
void work_on(const char *name);

/* Wipe the line from the terminal, for good: the program has something to
 * say. */
void end_progress(void);

/* From now on SIGINT and SIGTERM call `act`, in the thread of progress, before
 * they end the program; a second one does not wait for it. After
 * start_progress(). */
void heed_signals(void (*act)(void));

double seconds_running(void);

#endif
