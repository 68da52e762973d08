/*
 * output.h - how the program speaks: data on stdout, everything else on
 * stderr, failure with exit code 2 and one sentence.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    EXIT_DONE = 0,
    EXIT_NOTHING = 1, /* `check` found nothing to print */
    EXIT_ERROR = 2
};

/* Names the verb in messages: "seen uniq: ...". */
void set_verb(const char *name);

/* Called before anything is said on stderr; NULL: nobody need know. */
extern void (*before_saying)(void);

/* Called when stdout cannot be written, before that ends the program; NULL:
 * there is nothing to put away. */
extern void (*before_giving_up)(void);

/* One line on stderr. fail() then ends the program with EXIT_ERROR. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format,
                                                          ...);

/*
 * The same for what may make the result wrong, so -q does not silence it. After
 * keep_warnings() it is kept for json_warnings() instead: a verb with --json calls
 * both. fail() says what has been kept.
 */
__attribute__((format(printf, 1, 2))) void warn(const char *format, ...);
void keep_warnings(void);

/* All of it to stdout, or the end of the program: with a sentence, except when
 * the reader of a pipe has gone. */
void write_all(const void *data, size_t len);

/* What stdio still holds; the same end if it cannot be written. */
void finish_output(void);

/* ---- JSON: one object, members in the order of the calls ----------------- */

struct json {
    FILE *to;
    bool flat;  /* all on one line */
    bool more;  /* a comma is due */
    int indent; /* levels of objects and arrays that are open */
};

void json_open(struct json *j, const char *name, char bracket);
void json_close(struct json *j, char bracket);
void json_number(struct json *j, const char *name, double value);
void json_text(struct json *j, const char *name, const char *value);
void json_bool(struct json *j, const char *name, bool value);

/* "warnings": [...], where there are any. */
void json_warnings(struct json *j);

#endif
