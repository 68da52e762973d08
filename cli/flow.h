/*
 * flow.h - lines through a filter, whatever the verb does with them.
 *
 *     read          one file after the other
 *     prepare       split; hash, or ask where order does not matter
 *     ask           the filter decides, line after line
 *     close ranks   the lines to print move together, in place
 *     write         one write() for the chunk
 *
 * Lines travel in chunks of half a megabyte. One thread asks, so that first
 * occurrence and order are those of a single thread and the filter stays in the
 * cache of one core (with the filter passed around, two threads were only 1.3
 * times as fast as one). The others prepare chunks ahead of it and finish those
 * it has been through. Who has nothing to do sleeps.
 */
#ifndef CLI_FLOW_H
#define CLI_FLOW_H

#include "input.h"

#include <seen.h>

/* A chunk on its way. */
struct job {
    struct chunk chunk;
    seen_hash *hashes; /* see hash_lines() */
    bool *answers;     /* one for each line */
    size_t cap;
    uint64_t bad_line; /* its number, if chunk.bad */
    bool ready;        /* several threads: prepared */
    void *of;          /* the flow's */
};

/* How far a flow is; the status line reads it at any time. */
struct tally {
    _Atomic uint64_t lines, found, odd, cr, marked;
};

struct flow {
    void *of;            /* what the verb works with, for all it brings here */
    struct tally *tally; /* where to count, from zero */

    /* By any thread, in any order; NULL: nothing but lines and keys. */
    void (*prepare)(struct job *job);
    /* By one thread, in the order of the input. How many leading lines have
     * their answer now; if not all, chunk.bad (of the line behind them) or
     * chunk.failure says why. */
    size_t (*ask)(struct job *job);
    /* Exactly once: after the last line, before an error ends the program, or
     * when SIGINT, SIGTERM or SIGHUP does. All lines asked about are out by
     * then, except that output may be what failed. NULL: signals just kill. */
    void (*close)(void *of);

    /* By one thread, in the order of the input: write what takes the place of
     * the lines. NULL: the lines themselves, see `silent` and `wanted`. */
    void (*print)(const struct job *job);

    const char *found; /* what lines with the answer true are called; NULL:
                          there are none */
    /* What the status line says besides, at any time, by the thread of
     * progress; NULL: nothing. */
    void (*more_status)(const void *of, char *buf, size_t cap);
    /* What has become of the lines before one that is none; NULL: nothing that
     * lasts. */
    const char *so_far;
    bool tell;   /* notes are welcome: of odd_lines(), of a mark
                    that a file began with, of a signal */
    bool silent; /* print no lines */
    bool wanted; /* the answer of those to print */
    bool line_buffered;
    uint64_t threads;
};

/* The source of the lines, and the start of progress: before anything that
 * takes time. */
void open_flow(char **inputs, size_t n, bool hasty, bool quiet);

/* The end of the program if these are too many. */
void check_threads(uint64_t threads);

/* All lines through it. Returns when everything is done and closed; an error
 * ends the program. */
void run_flow(const struct flow *flow);

uint64_t flow_bytes(void); /* read so far */
uint64_t flow_total(void); /* of regular files; 0: unknown */

/* For ask(): print how many lines are safe now. */
void acknowledge(uint64_t lines);

/* Add up the lines of the source, then begin again: regular files only. */
uint64_t count_lines(char **inputs, size_t n);

/* For prepare(): fill in job->hashes. */
void hash_lines(struct job *job, const seen_filter *f);

#endif
