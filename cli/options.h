/*
 * options.h - one table per verb says what its options are called, what they
 * take and where the value goes; parser, help, manual and completions all read
 * it, so they cannot disagree.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_type {
    OPTION_FLAG,    /* bool */
    OPTION_COUNT,   /* uint64_t; 0 = not given */
    OPTION_SIZE,    /* uint64_t bytes; 0 = not given */
    OPTION_RATE,    /* double; 0 = not given */
    OPTION_TIME,    /* uint64_t milliseconds; 0 = not given */
    OPTION_WAIT,    /* uint64_t milliseconds, which may be 0 */
    OPTION_KIND,    /* seen_kind; SEEN_ANY = not given */
    OPTION_REAL,    /* double; 0 = not given */
    OPTION_DIALECT, /* const char *, the name of one; NULL = not given */
    OPTION_TEXT,    /* const char *; NULL = not given */
    OPTION_FORM     /* int; 0 = not given, 1 = alone, 2 = --name=VALUE, where
                       `value` is the only one that there is */
};

struct option {
    char letter;       /* 0: none */
    const char *name;  /* without dashes; NULL: none */
    const char *value; /* what the help calls it, see completion.h; NULL for
                          flags */
    enum option_type type;
    void *to;
    const char *help;
};

/* A row that is no option but the title of those below it. */
#define HEADING(title)                                                         \
    {                                                                          \
        0, NULL, NULL, OPTION_FLAG, NULL, title                                \
    }

/* A row that nearly every verb has. */
#define QUIET_ROW(to)                                                          \
    {                                                                          \
        'q', NULL, NULL, OPTION_FLAG, to, "no notes and no progress on stderr" \
    }

static inline bool is_heading(const struct option *o)
{
    return !o->letter && !o->name;
}

struct verb {
    const char *name;
    const char *summary;                 /* one line for `seen --help` */
    const char *operands;                /* as in the synopsis */
    const char *text;                    /* a paragraph or two */
    const char *const *examples;         /* pairs: command, what it does */
    const struct option *const *options; /* groups, each ended by a zero row */
    int (*run)(char **operands, size_t n);
};

/* Options may stand anywhere, `--` ends them; short flags may be joined. Moves
 * the operands to the front of argv and returns how many there are. A mistake
 * ends the program with 2 and a sentence; --help ends it with 0. */
size_t parse_options(const struct verb *verb, char **argv, size_t n);

#endif
