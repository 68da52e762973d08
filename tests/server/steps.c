/*
 * steps.c - how much work seen.so does for a command, counted, not timed.
 *
 * A second seen.so is compiled with -fsanitize-coverage=trace-pc, which calls a
 * function of ours for every basic block that runs; the bytes that memmove() and
 * its like touch count as well. The count lies in a file that test_steps.py
 * reads: the environment variable SEEN_TEST_STEPS has its name.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORD 8 /* bytes that count as a step */

static uint64_t nowhere;
static uint64_t *steps = &nowhere;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SEEN_TEST_STEPS");
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0) return;
    void *at =
        mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) steps = at;
    close(fd);
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    ++*steps;
}

void *__real_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n)
{
    *steps += n / WORD;
    return __real_memmove(to, from, n);
}

void *__real_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n)
{
    *steps += n / WORD;
    return __real_memcpy(to, from, n);
}

void *__real_memset(void *to, int byte, size_t n);
void *__wrap_memset(void *to, int byte, size_t n);
void *__wrap_memset(void *to, int byte, size_t n)
{
    *steps += n / WORD;
    return __real_memset(to, byte, n);
}

int __real_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
    *steps += n / WORD;
    return __real_memcmp(a, b, n);
}
