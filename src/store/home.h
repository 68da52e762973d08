/*
 * home.h - a handle belongs to the process that opened it.
 *
 * fork() copies a handle and shares what it stands for: the offsets and locks of
 * its descriptors, its journal, its connections. If both processes went on, each
 * would drop frames of the journal that the other has acknowledged. So a handle
 * remembers its process, and every call in another one is SEEN_INVALID.
 *
 * Closing it there frees what is this process's own, and that takes care:
 *
 *     threads      were not copied. The one that makes checkpoints cannot be
 *                  joined, and a mutex that another held stays locked for ever.
 *                  So what a mutex covers is freed if it can be had at once, and
 *                  left to the exit otherwise: it may be half changed
 *     conditions   are not destroyed: that waits for threads that wait on them
 *     flock()      belongs to both processes. Closing a descriptor in the child
 *                  leaves it to the parent; LOCK_UN would take it away
 *
 * Only the parent unlocks (seen_io_release): then a child that lives longer keeps
 * nobody out. If the parent dies, the lock stays with the children that did not
 * close the handle.
 *
 * Cost: getpid(), a tenth of a microsecond, for each call. pthread_atfork() would
 * be cheaper, but would run our code in forks that have nothing to do with us.
 */
#ifndef SEEN_HOME_H
#define SEEN_HOME_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

struct seen_home {
    uint64_t process;  /* 0: any */
    char sentence[88]; /* what is wrong in another process */
};

SEEN_PRIVATE void seen_home_settle(struct seen_home *h); /* in this process */
SEEN_PRIVATE bool seen_home_left(const struct seen_home *h);

#endif
