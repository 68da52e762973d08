/*
 * faults.h - which system call goes wrong, and how. Used by fault_os.h on the
 * real operating system and by sim_os.h on one that loses power.
 *
 *     for (uint64_t n = 1;; n++) {
 *         fault_arm(f, n, EIO, false);
 *         run();
 *         if (!f->fired) break;
 *         check(f->call);
 *     }
 *     fault_arm(f, 0, 0, false);
 *
 * fails every call of run() once. Only calls that the fault can befall are
 * counted: stat() is never interrupted and rename() never short, so that the
 * loop neither repeats a run in which nothing went wrong nor ends at it.
 *
 * A call that fails has done nothing, with two exceptions: close() and unmap()
 * have done their work and report an error all the same. That is what Linux
 * does for close(), and an unmap() that really failed would be a leak that the
 * code under test could do nothing about.
 */
#ifndef SEEN_TEST_FAULTS_H
#define SEEN_TEST_FAULTS_H

#include "helpers/harness.h"

struct faults {
    /* Set before arming and kept until changed: count only calls of this name,
     * a member of struct seen_os such as "datasync"; NULL: all calls. */
    const char *only;
    const char *never; /* the same, for calls that are spared */

    uint64_t calls;   /* counted since the last arming */
    uint64_t fail_at; /* 1 = the first; 0 = none */
    bool persistent;  /* from fail_at on, not only once */
    bool shorten;     /* instead of an error */
    int error;
    uint64_t odds; /* not 0: any call, one in so many, in any way */
    struct test_rng dice;

    uint64_t fired;   /* calls that went wrong since the last arming */
    const char *call; /* the first of them; NULL: none */
};

/* Fail the nth call from now on with this errno; 0 disarms. EINTR befalls only
 * calls that POSIX lets be interrupted, and cannot be persistent. */
void fault_arm(struct faults *f, uint64_t nth, int error, bool persistent);

/* Let the nth read or write of two bytes or more from now on move only a part,
 * one byte at least; 0 disarms. */
void fault_arm_short(struct faults *f, uint64_t nth, bool persistent);

/* Let calls from now on go wrong in any way that they can, one in `odds` of them,
 * as these dice have it. fault_arm() with 0 disarms. */
void fault_arm_random(struct faults *f, uint64_t odds, struct test_rng dice);

/* For those who stand in for the operating system: what befalls this call?
 * Gives an errno, or 0 and possibly a smaller *len. `len` is NULL for calls
 * that move no bytes. */
int fault_next(struct faults *f, const char *call, size_t *len);

#endif
