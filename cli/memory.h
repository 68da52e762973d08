/* memory.h - allocation in the program: there is, or the program ends. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include "output.h"

static inline void *must_have(void *memory)
{
    if (!memory) fail("out of memory");
    return memory;
}

#endif
