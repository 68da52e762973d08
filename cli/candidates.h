/*
 * candidates.h - what seen fresh and seen take have in common: candidates of
 * one user, or of many, go in; some of the lines come out.
 *
 * A request is all candidates of a user: a chunk never cuts one. So those of one
 * user, and no more, are in memory at a time, besides half a megabyte.
 */
#ifndef CLI_CANDIDATES_H
#define CLI_CANDIDATES_H

#include "users.h"

/* Rows, and what they say. */
struct candidate_wish {
    uint64_t count; /* -n; 0: all */
    char *also;
    bool quiet, json;
};

extern struct candidate_wish candidate_wish;
extern const struct option candidate_options[];

struct chooser {
    void (*open)(struct users *u, const char *name);
    /* Fills taken, n_taken and status of each request. What went wrong first, and
     * u->error is about it. */
    seen_status (*choose)(struct users *u, uint64_t now_ms,
                          seen_users_request *r, size_t n);
    const char *found; /* what those are called */
    bool reads;        /* and changes nothing */
};

/* All of a verb: STORE [USER [INPUT]]. */
int run_candidates(char **operands, size_t n, const struct chooser *by);

#endif
