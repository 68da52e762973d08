/* memory.c - see memory.h. */
#include "helpers/memory.h"

#include <errno.h>
#include <stddef.h>

struct test_memory test_memory;

void test_memory_arm(uint64_t nth, bool persistent)
{
    test_memory.calls = test_memory.fired = 0;
    test_memory.persistent = persistent;
    test_memory.fail_at = nth;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t size);
int __real_posix_memalign(void **at, size_t alignment, size_t size);
void __real_free(void *at);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t size);
int __wrap_posix_memalign(void **at, size_t alignment, size_t size);
void __wrap_free(void *at);

static bool runs_out(void)
{
    if (!test_memory.inside) return false;
    uint64_t call = ++test_memory.calls;
    if (!test_memory.fail_at || call < test_memory.fail_at) return false;
    if (call > test_memory.fail_at && !test_memory.persistent) return false;
    test_memory.fired++;
    errno = ENOMEM;
    return true;
}

static void *counted(void *at)
{
    if (at) test_memory.live++;
    return at;
}

void *__wrap_malloc(size_t size)
{
    return runs_out() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return runs_out() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *at, size_t size)
{
    if (runs_out()) return NULL;
    void *more = __real_realloc(at, size);
    if (!at) counted(more);
    return more;
}

int __wrap_posix_memalign(void **at, size_t alignment, size_t size)
{
    if (runs_out()) return ENOMEM;
    int error = __real_posix_memalign(at, alignment, size);
    if (!error) counted(*at);
    return error;
}

void __wrap_free(void *at)
{
    if (at) test_memory.live--;
    __real_free(at);
}
