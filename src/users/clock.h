/*
 * clock.h - the clock that old users are removed by.
 *
 * Marks come with times that callers chose, and callers may be wrong: whatever
 * they say ages no record but that of the user they name. Users are removed by
 * the machine's clock alone. That may be wrong, too, but what it says can be
 * compared with what it said before:
 *
 *     a leap     it is more than a day ahead of where it was, and nothing that
 *                ticks has seen that day pass. It was set, or no program had the
 *                store open meanwhile; nobody can tell. That much of it is not
 *                believed: `ahead`
 *     back       where it leapt from: believed again
 *     it stays   for a day after the last leap: then it was right. A store that
 *                is used less than once a day never sees that; `seen sweep
 *                --force` is for those
 *
 * Checkpoints remove users by what is believed, less the day that a leap needs to
 * be noticed. So a clock that is wrong for less than a day, or by less than one,
 * removes nobody whose marks have not aged out, however often it is set.
 *
 * Worked example: a mark on the 1st, ttl 5 d. On the 2nd the clock is set to the
 * 20th: a leap of 18 days, believed is the 2nd. Set right within a day, all is as
 * if nothing had been; on the 7th, the mark is older than 5 days and one more. Left
 * as it is, it is believed from "the 21st" on, and the mark goes.
 */
#ifndef SEEN_CLOCK_H
#define SEEN_CLOCK_H

#include <stdint.h>

#define SEEN_LEAP_MS ((uint64_t)24 * 60 * 60 * 1000)

/* Kept with the store (meta.c). */
struct seen_clock {
    uint64_t last;  /* what the machine's clock said; 0: never looked */
    uint64_t ahead; /* so much of it is not believed */
    uint64_t since; /* what it said when it leapt last */
};

/* It says `now_ms`; `passed` milliseconds have passed since it was last looked at,
 * for all that is known (0 in another process). True: it has leapt. */
static inline int seen_clock_look(struct seen_clock *c, uint64_t now_ms,
                                  uint64_t passed)
{
    uint64_t expected = c->last + passed, back = 0;
    int leapt =
        c->last && now_ms > expected && now_ms - expected > SEEN_LEAP_MS;
    if (!leapt && now_ms >= c->since && now_ms - c->since >= SEEN_LEAP_MS)
        c->ahead = 0; /* it has stayed */
    if (c->last && now_ms < expected) back = expected - now_ms;
    c->ahead = c->ahead > back ? c->ahead - back : 0;
    if (leapt) {
        c->ahead += now_ms - expected;
        c->since = now_ms;
    }
    if (c->since > now_ms) c->since = now_ms;
    c->last = now_ms;
    return leapt;
}

/* The time that is believed. */
static inline uint64_t seen_clock_believed(const struct seen_clock *c)
{
    return c->last > c->ahead ? c->last - c->ahead : 0;
}

#endif
