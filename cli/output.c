/* output.c - see output.h. */
#define _POSIX_C_SOURCE 200809L

#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Warnings of one run; there are not more kinds of them than this. */
#define WARNINGS_MAX 16

static struct {
    bool keep;
    size_t n;
    char *text[WARNINGS_MAX];
} warnings;

static const char *verb_name;
void (*before_saying)(void);
void (*before_giving_up)(void);

void set_verb(const char *name)
{
    verb_name = name;
}

/* One write for the whole line, so that lines of threads do not mix. */
__attribute__((format(printf, 1, 0))) static void say(const char *format,
                                                      va_list args)
{
    char line[1024];
    if (before_saying) before_saying();
    size_t len =
        (size_t)snprintf(line, sizeof line, "seen%s%s: ", verb_name ? " " : "",
                         verb_name ? verb_name : "");
    int more = vsnprintf(line + len, sizeof line - len, format, args);
    if (more > 0) len += (size_t)more;
    if (len > sizeof line - 2) len = sizeof line - 2;
    line[len++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, len);
    (void)ignored; /* there is nobody left to tell */
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void keep_warnings(void)
{
    warnings.keep = true;
}

void warn(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!warnings.keep || warnings.n == WARNINGS_MAX)
        note("warning: %s", text);
    else if ((warnings.text[warnings.n] = strdup(text)))
        warnings.n++;
}

void fail(const char *format, ...)
{
    for (size_t i = 0; i < warnings.n; i++)
        note("warning: %s", warnings.text[i]);
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    _Exit(EXIT_ERROR);
}

static void write_failed(int error)
{
    void (*put_away)(void) = before_giving_up;
    before_giving_up = NULL;
    if (put_away) put_away();
    if (error == EPIPE) _Exit(EXIT_ERROR);
    fail("write to stdout: %s", strerror(error));
}

void write_all(const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t done = write(STDOUT_FILENO, p, len);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) write_failed(errno);
        p += done;
        len -= (size_t)done;
    }
}

void finish_output(void)
{
    if (fflush(stdout) != 0) write_failed(errno);
    /* Some file systems report a full disk only here. */
    if (close(STDOUT_FILENO) != 0 && errno != EINTR) write_failed(errno);
}

/* ---- JSON --------------------------------------------------------------- */

static void string(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
    }
    fputc('"', to);
}

static void member(struct json *j, const char *name)
{
    if (j->more) fputs(j->flat ? ", " : ",", j->to);
    if (j->indent > 0 && !j->flat) fprintf(j->to, "\n%*s", 2 * j->indent, "");
    if (name) {
        string(j->to, name);
        fputs(": ", j->to);
    }
    j->more = true;
}

void json_open(struct json *j, const char *name, char bracket)
{
    member(j, name);
    fputc(bracket, j->to);
    j->indent++;
    j->more = false;
}

void json_close(struct json *j, char bracket)
{
    j->indent--;
    if (!j->flat) fprintf(j->to, "\n%*s", 2 * j->indent, "");
    fputc(bracket, j->to);
    j->more = true;
    if (j->indent == 0) fputc('\n', j->to);
}

void json_number(struct json *j, const char *name, double value)
{
    member(j, name);
    if (!isfinite(value))
        fputs("null", j->to);
    else if (value == floor(value) && fabs(value) < 0x1p53)
        fprintf(j->to, "%.0f", value);
    else
        fprintf(j->to, "%.15g", value);
}

void json_text(struct json *j, const char *name, const char *value)
{
    member(j, name);
    string(j->to, value);
}

void json_warnings(struct json *j)
{
    if (warnings.n == 0) return;
    json_open(j, "warnings", '[');
    for (size_t i = 0; i < warnings.n; i++)
        json_text(j, NULL, warnings.text[i]);
    json_close(j, ']');
}

void json_bool(struct json *j, const char *name, bool value)
{
    member(j, name);
    fputs(value ? "true" : "false", j->to);
}
