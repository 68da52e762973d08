/*
 * memory.h - malloc that runs out when told to, for code that takes its memory
 * there.
 *
 * The linker puts these functions in its place: a test that wants them is linked
 * with SEEN_TEST_MEMORY (tests/CMakeLists.txt; -Wl,--wrap=malloc and so on). What
 * shared libraries take for themselves, LMDB and hiredis, stays as it is.
 */
#ifndef SEEN_TEST_MEMORY_H
#define SEEN_TEST_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct test_memory {
    atomic_bool inside; /* the code under test is at work: calls count */
    bool persistent;    /* from fail_at on, not only once */
    uint64_t fail_at;   /* 1 = the first; 0 = none */
    atomic_uint_fast64_t calls, fired;
    atomic_int_fast64_t live; /* blocks in use */
};

extern struct test_memory test_memory;

/* Fail the nth call from now on; 0 disarms. */
void test_memory_arm(uint64_t nth, bool persistent);

#endif
