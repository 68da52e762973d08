/*
 * sim_shelf.h - a shelf of users in memory (users/shelf.h), on a machine that
 * loses power.
 *
 * LMDB's system calls cannot be replaced. What it promises is simple enough to
 * be simulated as a whole: a transaction whose commit has returned is on disk, one
 * whose commit has not even begun is not, and in between either may be found. Its
 * file is on the disk of seen_os, made as the real one is: without it, nothing is
 * there.
 *
 * Stricter than LMDB in one thing: what a view has lent is overwritten when the
 * view goes to sleep, so that nobody gets used to reading it later.
 *
 * One thread at a time; goes well with sim_os.h.
 */
#ifndef SEEN_TEST_SIM_SHELF_H
#define SEEN_TEST_SIM_SHELF_H

#include "users/shelf.h"

struct sim_shelf;

extern const struct seen_shelf_ops sim_shelf_ops;

struct sim_shelf *sim_shelf_new(void);
void sim_shelf_free(struct sim_shelf *s);

/* The one that is opened from now on, whatever the directory; gives the one
 * before. */
struct sim_shelf *sim_shelf_install(struct sim_shelf *s);

/* What is found after a power loss or a kill at this moment. `newer`: during a
 * commit, the transaction is there. */
struct sim_shelf *sim_shelf_after(const struct sim_shelf *s, bool newer);

/* Call `hook` with "begin" before each transaction, with "during commit" when it
 * may be on disk, and with "after commit" when it is. */
void sim_shelf_on_step(struct sim_shelf *s,
                       void (*hook)(void *ctx, const char *call), void *ctx);

/* The nth begin, put or commit from now on fails with SEEN_IO and EIO; 0: none.
 * `landed`: if it is a commit, the transaction is there all the same. */
void sim_shelf_fail(struct sim_shelf *s, uint64_t nth, bool landed);
bool sim_shelf_failed(const struct sim_shelf *s); /* it has come to that */

/* Opened and not closed, views and all. */
uint64_t sim_shelf_open(const struct sim_shelf *s);

#endif
