/*
 * input.h - lines to keys: what the options say of them, and how they are made.
 *
 *     source    ──►  chunk of whole lines  ──►  keys
 *     source.h       half a megabyte            bytes to hash
 *
 * With --u64=binary a line is 8 bytes and has no end.
 *
 * A chunk holds whole lines of one file. Reading is sequential and cheap;
 * splitting a chunk into lines and keys touches nothing but the chunk, so
 * threads can do it side by side.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "options.h"

#include <seen.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- How bytes become keys ---------------------------------------------- */

/* What a chunk does not cut. */
enum whole {
    WHOLE_LINES,
    WHOLE_USERS, /* neighbours that begin with the same user */
    WHOLE_FILES
};

enum numbers {
    NOT_NUMBERS,
    DECIMAL, /* in lines */
    BINARY   /* 8 bytes each, little-endian, and nothing between them */
};

#define BINARY_WIDTH 8

struct key_format {
    bool nul;           /* -0: lines end in NUL */
    bool crlf;          /* --crlf: a CR before the newline is none of the key */
    bool hex;           /* --hex: decode; "-" is the empty key */
    int u64;            /* --u64: enum numbers, to 8 bytes little-endian */
    bool fold;          /* -i: ASCII letters to lower case */
    const char *fields; /* -f: list as given, or NULL */
    const char *delim;  /* -t */
    const char *type;   /* --key-type: as given, or NULL */
    bool big;           /* its integers have their high byte first */
    bool users;         /* lines are a user, a tab, and what makes the key */
    enum whole whole;
};

extern struct key_format key_format;

/* Rows for the verbs that read keys, and what must be true of them together;
 * check_key_format() fails the program otherwise. */
extern const struct option key_options[];

/* A row of verbs that know dialects. */
#define KEY_TYPE_ROW                                                           \
    {                                                                          \
        0, "key-type", "bytes|utf8|utf16|i32|i64", OPTION_TEXT,                \
            &key_format.type,                                                  \
            "what a dialect hashes of a key (default: its bytes)"              \
    }

/* The bytes of the end of a line, 0 or 1, and which it is. */
size_t line_end(void);
char end_byte(void);

/* What is counted: "line", or "integer" where they are no lines. */
const char *line_word(void);

/* The filter is of this dialect, which may have a byte order of its own. */
void keys_for_dialect(const char *dialect);

/* The filter is a bitmap: keys are numbers, in decimal unless --hex says other. */
void keys_for_bitmap(void);
void check_key_format(void);

/* After that: how keys are made, as filters of ours record it; and what that is
 * called: a word for JSON, a phrase for people. NULL: nothing is known. */
seen_key_form key_form(void);
const char *form_name(seen_key_form form);
const char *form_phrase(seen_key_form form);

/* ---- Chunks ------------------------------------------------------------- */

struct chunk {
    char *bytes; /* whole lines, each with its end */
    size_t len;
    size_t cap;
    const char *file; /* where they come from, as messages call it */

    size_t n;        /* lines, after split_chunk() */
    seen_key *lines; /* without their ends */
    seen_key *users; /* if lines begin with one */
    seen_key *keys;  /* what to hash; the lines themselves if nothing is to be
                        done to them */
    size_t lines_cap;
    uint8_t *scratch; /* bytes of keys that differ from their lines */
    size_t scratch_cap;
    size_t odd;      /* lines that may mean something else: odd_lines() */
    size_t cr;       /* lines that end in CR LF, and their keys in CR */
    size_t marked;   /* lines that begin with a mark of UTF-8, and their keys */
    const char *bad; /* why line n is no key: it and the rest are left out */
    char failure[768]; /* why nothing comes after these lines; "" = nothing */
};

/* Where line n of a chunk is no key: its bytes, for a message. */
#define BAD_LINE_TEXT 48
const char *show_bad_line(const struct chunk *c, char buf[BAD_LINE_TEXT]);

/* A line as people read it, a number in decimal. */
#define NUMBER_TEXT 24
seen_key show_line(const struct chunk *c, size_t i, char buf[NUMBER_TEXT]);

/* Bytes for a message: at most so many, and only what is harmless on a
 * terminal. */
const char *show_bytes(char *buf, size_t cap, seen_key bytes);

/* What odd lines are, as a sentence about them; NULL: with these options none is. */
const char *odd_lines(void);

/* Fill in lines and keys. */
void split_chunk(struct chunk *c);

/* The same where the lines are arguments of the program, which ends if one of
 * them is no key. */
void chunk_of(struct chunk *c, char **arguments, size_t n);
void free_chunk(struct chunk *c);

#endif
