/* report.c - see report.h. */
#include "store/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void seen_report_begin(seen_store_report *r)
{
    if (r) *r = (seen_store_report){0};
}

seen_status seen_report(seen_store_report *r, seen_status status,
                        const char *format, ...)
{
    int before = errno;
    if (r && !r->problem[0]) {
        va_list args;
        va_start(args, format);
        vsnprintf(r->problem, sizeof r->problem, format, args);
        va_end(args);
    }
    errno = before;
    return status;
}

seen_status seen_report_io(seen_store_report *r, const char *what)
{
    return seen_report(r, SEEN_IO, "%s: %s", what, strerror(errno));
}
