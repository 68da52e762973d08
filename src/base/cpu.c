/*
 * cpu.c - processor features, as the compiler's runtime detects them (it also
 * asks whether the operating system saves the wide registers).
 */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

bool seen_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

bool seen_cpu_has_sse42(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return false;
#endif
}

/* Once: the environment is a list to be searched. Threads that come at the same
 * time find the same answer, so no order is needed. */
static bool decide(atomic_int *known, bool (*has)(void))
{
    enum {
        UNKNOWN,
        NO,
        YES
    };
    int use = atomic_load_explicit(known, memory_order_relaxed);
    if (use == UNKNOWN) {
        use = has() && !seen_cpu_wanted("portable") ? YES : NO;
        atomic_store_explicit(known, use, memory_order_relaxed);
    }
    return use == YES;
}

bool seen_cpu_use_avx2(void)
{
    static atomic_int known;
    return decide(&known, seen_cpu_has_avx2);
}

bool seen_cpu_use_sse42(void)
{
    static atomic_int known;
    return decide(&known, seen_cpu_has_sse42);
}

bool seen_cpu_wanted(const char *name)
{
    const char *wanted = getenv("SEEN_CPU");
    return wanted && strcmp(wanted, name) == 0;
}
