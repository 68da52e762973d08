/*
 * progress.h - one status line: every half second on a terminal, and once
 * whenever SIGUSR1 asks for it. A thread of its own does both, so it speaks
 * also while everybody else waits for input.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes a line (without its end) for people into buf; called by the thread of
 * progress while others work. */
typedef void status_line(char *buf, size_t cap);

/* Before other threads start: they must not take the signal. */
void start_progress(status_line *line, bool quiet);

/* Does somebody look, and want to know? After start_progress(). */
bool on_terminal(void);

/* The same for work that is no flow of lines: on what, how long, and where that
 * is known, how much of how much, how fast, until when. NULL: something is about
 * to be printed. `name` must stay. */
void start_work(bool quiet);
void work_on(const char *name);

/* How much there is to do in all, in bytes or in other things, and that so much
 * more is done. By any thread. */
void work_total(uint64_t total, const char *things); /* NULL: bytes */
void work_done(uint64_t more);

/* Or who knows how much is done: called by the thread of progress. */
void work_seen_by(uint64_t (*look)(void));

/* After end_progress(): there is more to do. end_progress() ends that, too. */
void more_work(const char *name);

/* Wipe the line from the terminal, for good: the program has something to
 * say. */
void end_progress(void);

/* From now on SIGINT, SIGTERM and SIGHUP call `act`, in the thread of progress,
 * before they end the program. What comes within a second of the first is the same
 * one; after that, another does not wait. After start_progress(). */
void heed_signals(void (*act)(void));

/* One of them has come, and may be waiting for what an earlier `act` waits for: do
 * that, and then nothing more until the program ends. */
bool signal_came(void);
__attribute__((noreturn)) void await_end(void);

double seconds_running(void);

#endif
