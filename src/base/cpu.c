/*
 * cpu.c - processor features, as the compiler's runtime detects them (it also
 * asks whether the operating system saves the wide registers).
 */
#include "base/cpu.h"

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

bool seen_cpu_wanted(const char *name)
{
    const char *wanted = getenv("SEEN_CPU");
    return wanted && strcmp(wanted, name) == 0;
}
