/* error.c - see error.h. The one file left of store/ that formats text and knows
 * errno: sentences have numbers in them. */
#define _POSIX_C_SOURCE 200809L
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void seen_error_begin(seen_error *e)
{
    if (e) *e = (seen_error){0};
}

/* Names and what a server has said are in it: bytes that a terminal takes for
 * commands become '?'. */
__attribute__((format(printf, 3, 0))) static void
write_sentence(seen_error *e, const char *field, const char *format,
               va_list args)
{
    int before = errno;
    e->field = field;
    vsnprintf(e->text, sizeof e->text, format, args);
    for (char *c = e->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    errno = before;
}

seen_status seen_fail(seen_error *e, seen_status status, const char *field,
                      const char *format, ...)
{
    if (!e || e->status != SEEN_OK) return status;
    va_list args;
    va_start(args, format);
    write_sentence(e, field, format, args);
    va_end(args);
    e->status = status;
    return status;
}

seen_status seen_fail_as(seen_error *e, seen_status status,
                         const seen_error *why)
{
    bool says_why = status != SEEN_OK && why->status != SEEN_OK;
    if (e && e->status == SEEN_OK && says_why) *e = *why;
    return status;
}

void seen_warn(seen_error *e, const char *field, const char *format, ...)
{
    if (!e || e->text[0]) return;
    va_list args;
    va_start(args, format);
    write_sentence(e, field, format, args);
    va_end(args);
}

seen_status seen_check_reserved(const void *reserved, size_t len, size_t width,
                                const char *field, seen_error *e)
{
    for (size_t i = 0; i < len / width; i++) {
        uint32_t half = 0;
        uint64_t x = 0;
        memcpy(width == 4 ? (void *)&half : &x,
               (const uint8_t *)reserved + i * width, width);
        if (x | half)
            return seen_fail(e, SEEN_INVALID, field,
                             "%s[%zu] is %llu: expected 0: clear the struct "
                             "before you fill it",
                             field, i, (unsigned long long)(x | half));
    }
    return SEEN_OK;
}

seen_status seen_fail_io(seen_error *e, const char *field, const char *what)
{
    int number = errno;
    char why[128];
    if (!e || e->status != SEEN_OK) return SEEN_IO;
    if (strerror_r(number, why, sizeof why) != 0)
        snprintf(why, sizeof why, "error %d", number);
    seen_fail(e, SEEN_IO, field, "%s: %s", what, why);
    e->os_errno = number;
    errno = number;
    return SEEN_IO;
}

seen_status seen_error_end(seen_error *e, seen_status status)
{
    if (!e) return status;
    if (status != SEEN_OK && e->status == SEEN_OK)
        seen_fail(e, status, NULL, "%s", seen_strerror(status));
    if (status == SEEN_OK && e->status != SEEN_OK) seen_error_begin(e);
    e->status = status;
    return status;
}
