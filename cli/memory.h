/* memory.h - allocation in the program: there is, or the program ends. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include "output.h"

static inline void *must_have(void *memory)
{
    if (!memory) fail("out of memory");
    return memory;
}

/* A string as printf() would write it, to be freed. */
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
