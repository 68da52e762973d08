/*
 * failing_alloc.h - an allocator that fails when told to and keeps accounts.
 *
 * Every block carries its size, so that a release with another size, a release
 * of something else and a leak are all seen. Memory is handed out and taken
 * back full of rubbish: nobody may rely on zeros or on what was there.
 */
#ifndef SEEN_TEST_FAILING_ALLOC_H
#define SEEN_TEST_FAILING_ALLOC_H

#include "seen.h"

struct test_alloc {
    seen_allocator as;   /* hand this to the library */
    uint64_t calls;      /* allocations asked for since the last arming */
    uint64_t fail_at;    /* 1 = the first; 0 = none */
    bool persistent;     /* from fail_at on, not only once */
    uint64_t failed;     /* allocations refused */
    uint64_t blocks;     /* in use */
    uint64_t bytes;      /* in use */
    uint64_t peak;       /* most bytes ever in use */
    uint64_t violations; /* wrong size, or not a block of ours */
    size_t offset;       /* 0..63: how far blocks are from a cache line */
};

/* Fill in; the struct must stay where it is. */
void test_alloc_init(struct test_alloc *a);

/* Fail the nth allocation from now on; 0 disarms. */
void test_alloc_arm(struct test_alloc *a, uint64_t nth, bool persistent);

#endif
