/*
 * memory.h - how many bytes the code under test asks for. The linker puts these
 * functions in the place of malloc, mmap and so on (tests/CMakeLists.txt), so that
 * nothing the library takes escapes, by whatever allocator.
 *
 *     fuzz_memory_begin();
 *     status = seen_load(...);
 *     fuzz_memory_within(len);
 *
 * What is given back is not subtracted: the bound holds all the more for what is
 * in use at one time. Where a call does many things one after the other, and each
 * gives back what it took, fuzz_memory_once_within() asks for that alone.
 */
#ifndef SEEN_FUZZ_MEMORY_H
#define SEEN_FUZZ_MEMORY_H

#include <stdint.h>

void fuzz_memory_begin(void);

/* Abort if more was taken since then than seen.h allows for so many bytes. */
void fuzz_memory_within(uint64_t given);

/* The same, for what was in use at one time; what is mapped counts as kept. */
void fuzz_memory_once_within(uint64_t given);

#endif
