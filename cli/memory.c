/* memory.c - see memory.h. */
#define _GNU_SOURCE /* vasprintf */

#include "memory.h"

#include <stdarg.h>
#include <stdio.h>

char *text_of(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) fail("out of memory");
    return text;
}
