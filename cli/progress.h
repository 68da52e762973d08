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

/* Wipe the line from the terminal, for good: the program has something to
 * say. */
void end_progress(void);

double seconds_running(void);

#endif
