/* clock.c - see clock.h. */
#define _POSIX_C_SOURCE 200809L

#include "helpers/clock.h"

#include "store/os.h"

#include <stdatomic.h>
#include <time.h>

static atomic_uint_fast64_t set, passed;
static atomic_uint_fast64_t stopped; /* what ticked, when the clock was set */

static uint64_t read_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t test_clock(void)
{
    return set ? set : read_clock(CLOCK_REALTIME);
}

uint64_t test_ticks(void)
{
    return (set ? stopped : read_clock(CLOCK_MONOTONIC)) + passed;
}

/* How long a test takes must not count: with a clock that was set, nothing ticks
 * by itself. */
static void set_to(uint64_t ms)
{
    if (ms && !set) stopped = read_clock(CLOCK_MONOTONIC);
    set = ms;
}

void test_set_clock(uint64_t ms)
{
    set_to(ms);
}

void test_pass(uint64_t ms)
{
    if (set) set += ms;
    passed += ms;
}

struct test_time test_time(void)
{
    return (struct test_time){set, passed};
}

void test_set_time(struct test_time t)
{
    set_to(t.clock);
    passed = t.passed;
}

static struct seen_os ours;
static const struct seen_os *before;

void test_clock_install(void)
{
    before = seen_os;
    ours = *seen_os;
    ours.clock = test_clock;
    ours.ticks = test_ticks;
    seen_os = &ours;
}

void test_clock_remove(void)
{
    seen_os = before;
    test_set_clock(0);
}
