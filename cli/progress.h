/*
 * progress.h - one status line: every half second on a terminal, and once
 * whenever SIGUSR1 asks for it.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a line (without its end) for people into buf. */
typedef void status_line(char *buf, size_t cap);

void start_progress(status_line *line, bool quiet);

/* Call often, from one thread at a time; cheap when nothing is due. */
void tick_progress(void);

/* Wipe the line from the terminal before the program says something else. */
void end_progress(void);

double seconds_running(void);

#endif
