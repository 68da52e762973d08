/*
 * clock.h - the machine's clock, as tests would have it.
 *
 * sim_os.h and fault_os.h tell this time. Other tests put it into seen_os with
 * test_clock_install(). Until it is set, it is the real one.
 */
#ifndef SEEN_TEST_CLOCK_H
#define SEEN_TEST_CLOCK_H

#include <stdint.h>

uint64_t test_clock(void); /* milliseconds since 1970 */
uint64_t test_ticks(void); /* milliseconds that have passed; cannot be set */

/* Set the clock, as somebody does who thinks that it was wrong: no time has
 * passed. 0: the real one again. */
void test_set_clock(uint64_t ms);

/* So much time has passed, on a clock that was set. */
void test_pass(uint64_t ms);

/* Both, as they are and as they were: for who lives in several worlds. */
struct test_time {
    uint64_t clock, passed;
};
struct test_time test_time(void);
void test_set_time(struct test_time t);

/* Into seen_os and out of it. */
void test_clock_install(void);
void test_clock_remove(void);

#endif
