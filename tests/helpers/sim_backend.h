/*
 * sim_backend.h - a backend of users in memory (users/backend.h), on a machine that
 * loses power.
 *
 * LMDB's system calls cannot be replaced. What it promises is simple enough to
 * be simulated as a whole: a transaction whose commit has returned is on disk, one
 * whose commit has not even begun is not, and in between either may be found. Its
 * file is on the disk of seen_os, made as the real one is: without it, nothing is
 * there.
 *
 * Stricter than LMDB in one thing: what a snapshot has lent is overwritten when the
 * snapshot goes to sleep, so that nobody gets used to reading it later.
 *
 * One thread at a time; goes well with sim_os.h.
 */
#ifndef SEEN_TEST_SIM_BACKEND_H
#define SEEN_TEST_SIM_BACKEND_H

#include "users/backend.h"

struct sim_backend;

extern const struct seen_backend_ops sim_backend_ops;

struct sim_backend *sim_backend_new(void);
void sim_backend_free(struct sim_backend *s);

/* The one that is opened from now on, whatever the directory; gives the one
 * before. */
struct sim_backend *sim_backend_install(struct sim_backend *s);

/* What is found after a power loss or a kill at this moment. `newer`: during a
 * commit, the transaction is there. */
struct sim_backend *sim_backend_after(const struct sim_backend *s, bool newer);

/* Call `hook` with "begin" before each transaction, with "during commit" when it
 * may be on disk, and with "after commit" when it is. */
void sim_backend_on_step(struct sim_backend *s,
                         void (*hook)(void *ctx, const char *call), void *ctx);

/* The nth begin, put or commit from now on fails with SEEN_IO and EIO; 0: none.
 * `landed`: if it is a commit, the transaction is there all the same. */
void sim_backend_fail(struct sim_backend *s, uint64_t nth, bool landed);
bool sim_backend_failed(const struct sim_backend *s); /* it has come to that */

/* Opened and not closed, snapshots and all. */
uint64_t sim_backend_open(const struct sim_backend *s);

#endif
