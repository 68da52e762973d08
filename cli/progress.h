/*
 * progress.h - one status line: every half second on a terminal, and once
 * whenever SIGUSR1 asks for it.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a line (without its end) for people into buf; any thread may be the
 * one to call it. */
typedef void status_line(char *buf, size_t cap);

void start_progress(status_line *line, bool quiet);

/* Call often, from any thread; cheap when nothing is due. */
void tick_progress(void);

/* Wipe the line from the terminal, for good: the program has something to
 * say. */
void end_progress(void);

double seconds_running(void);

#endif
