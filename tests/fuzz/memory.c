/* memory.c - see memory.h. */
#include "memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define FACTOR 8 /* as seen.h promises */
#define EXTRA  65536

static uint64_t taken;
static int64_t used, most; /* below 0: older ones have been given back */

void fuzz_memory_begin(void)
{
    taken = 0;
    used = most = 0;
}

static void must_be_within(uint64_t given, uint64_t bytes)
{
    if (bytes <= FACTOR * given + EXTRA) return;
    fprintf(stderr, "%llu bytes made it take %llu\n", (unsigned long long)given,
            (unsigned long long)bytes);
    abort();
}

void fuzz_memory_within(uint64_t given)
{
    must_be_within(given, taken);
}

void fuzz_memory_once_within(uint64_t given)
{
    must_be_within(given, (uint64_t)most);
}

/* The allocator may have given some more than was asked for: that is what comes
 * back. */
static void *count(void *at, size_t size)
{
    taken += size;
    if (at) used += (int64_t)malloc_usable_size(at);
    if (used > most) most = used;
    return at;
}

static void give_back(void *at)
{
    if (at) used -= (int64_t)malloc_usable_size(at);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
void *__real_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);
void *__wrap_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset);

void *__wrap_malloc(size_t size)
{
    return count(__real_malloc(size), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return count(__real_calloc(n, size), n * size);
}

void *__wrap_realloc(void *at, size_t size)
{
    give_back(at);
    return count(__real_realloc(at, size), size);
}

void __wrap_free(void *at)
{
    give_back(at);
    __real_free(at);
}

void *__wrap_mmap(void *at, size_t len, int access, int flags, int fd,
                  off_t offset)
{
    taken += len;
    used += (int64_t)len;
    if (used > most) most = used;
    return __real_mmap(at, len, access, flags, fd, offset);
}
