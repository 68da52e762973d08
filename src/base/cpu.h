/* cpu.h - what this processor can do. */
#ifndef SEEN_CPU_H
#define SEEN_CPU_H

#include <stdbool.h>

bool seen_cpu_has_avx2(void);
bool seen_cpu_has_sse42(void);

/* Has it, and SEEN_CPU=portable is not what the environment says: decided once. */
bool seen_cpu_use_avx2(void);
bool seen_cpu_use_sse42(void);

/* Is `name` the kernel that the environment variable SEEN_CPU asks for? */
bool seen_cpu_wanted(const char *name);

#endif
