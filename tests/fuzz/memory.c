/* memory.c - see memory.h. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define FACTOR 8 /* as seen.h promises */
#define EXTRA  65536

static uint64_t taken;

void fuzz_memory_begin(void)
{
    taken = 0;
}

void fuzz_memory_within(uint64_t given)
{
    if (taken <= FACTOR * given + EXTRA) return;
    fprintf(stderr, "%llu bytes made it take %llu\n", (unsigned long long)given,
            (unsigned long long)taken);
    abort();
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t size);
void *__real_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset);

void *__wrap_malloc(size_t size)
{
    taken += size;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    taken += n * size;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *at, size_t size)
{
    taken += size;
    return __real_realloc(at, size);
}

void *__wrap_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset)
{
    taken += len;
    return __real_mmap(at, len, access, flags, fd, offset);
}
