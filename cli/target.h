/*
 * target.h - the filter that a verb is about: a file, stdin or a pipe where
 * reading is enough, or a URL (remote.h).
 *
 *     find_target()   what is there, by its header; changes nothing
 *     read_target()   to ask: a mapped file, or a copy of what a pipe brought
 *     write_target()  to change, and to create where there is none
 *
 * Both compare the pages of a file with their checksums first, unless the user
 * says --no-verify, which verbs take that make no new file of it.
 *
 * What cannot be done ends the program with a sentence that names the target.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include "input.h"
#include "options.h"

#include <seen_file.h>
#include <seen_remote.h>

/* --no-verify */
extern bool no_verify;

#define NO_VERIFY_ROW                                                          \
    {                                                                          \
        0, "no-verify", NULL, OPTION_FLAG, &no_verify,                         \
            "open a file at once, without comparing it with its\n"             \
            "checksums; answers may be wrong where it is damaged"              \
    }

struct target {
    const char *name; /* as messages call it */
    char *path;       /* NULL: a stream, or on a server */
    bool on_server;   /* `remote`, if it is there */
    seen_remote *remote;
    void *bytes; /* that a stream brought */
    size_t len;
    seen_info info; /* by its header, or that of another system */
    seen_plan plan;
    const seen_filter *filter;
    seen_file *store;
    seen_filter *loaded; /* from a stream */
    seen_outcome outcome;
    seen_error error;    /* of opening it; on a server, of the last call */
    bool failed;         /* a change did not reach the disk */
    const char *dialect; /* another system's file: its dialect */
    bool unknown;        /* neither that nor a container of ours */
    bool packed;         /* it was, or shall be, in gzip */
    bool mapped;         /* bytes are the file itself */
    bool counts;         /* a key that comes twice is in twice */
    bool changed;        /* to be written as a whole when it is closed */
};

/* false: there is no such file, or it is no filter; t->report says why. Keys
 * of a bitmap are decimal from here on. */
bool find_target(struct target *t, const char *name);
_Noreturn void target_missing(const struct target *t);

/* After find_target(); to write, must_not_be_stream() comes before it: finding what
 * is in a stream takes its bytes. create: what to make if it was not found, or NULL. */
void read_target(struct target *t);
void write_target(struct target *t, seen_mode mode, const seen_spec *create);

/* After check_key_format(). Note in a new filter how its keys are made; and say so
 * if those of a filter were made in another way than these will be: the same line
 * is another key then. */
void record_keys(seen_spec *spec);
void compare_keys(const struct target *t);

/* The time for a window, which keys are added and asked for at: milliseconds
 * since 1970. Other kinds do not care. */
uint64_t clock_ms(void);
void advance_target(struct target *t);

/* Which keys may be in it? */
seen_status ask_target(struct target *t, const seen_key *keys, size_t n,
                       bool *answers);

/* Who can do nothing with a URL says so: "expected a filter file". */
void must_be_file(const struct target *t);

/* Add keys to a target that was opened to be changed; as the calls of seen.h. */
seen_status add_to_target(struct target *t, const seen_key *keys, size_t n,
                          bool *before, size_t *done);
seen_status remove_from_target(struct target *t, const seen_key *keys, size_t n,
                               bool *removed);

/* Why the next line could not be dealt with, for an ask() of flow.h. */
void blame_target(struct target *t, seen_status status, struct chunk *c);

/* What a writer that died has left, if this one has made it good. */
void note_recovery(const struct target *t);

/* Is this a window of a time to which keys came faster than planned, so that it is
 * wrong more than twice as often? (One of the last N keys lets the oldest go.) Then
 * say so, and what to do. */
bool is_crowded(uint64_t last, const seen_info *info);
void warn_crowded(const char *name, const seen_info *info);

/* Is it wrong more often than was planned, because more keys came? A tenth more often
 * is no matter, nor is what is_crowded() would not mind of a small one; a window
 * holds a generation more than it was planned for. */
bool is_overfull(const seen_info *info);

/* Everything to disk. After a failed change that is not expected any more. */
void close_target(struct target *t);

/* ---- Names -------------------------------------------------------------- */

/* Where symbolic links lead: journal and new file belong beside the file itself,
 * whatever it was called by. To be freed. */
char *real_name(const char *name);

/* Stdin, by whatever name, a named pipe, or the one that <(command) makes: all that
 * comes can be read, once (to be freed), and nothing can be changed. */
bool is_stream(const char *name);
void *read_stream(const char *name, size_t *len);
const char *stream_name(const char *name); /* as messages call it */
void must_not_be_stream(const char *name);

/* The verb's operands: TARGET, then inputs, which must not be the same stream. */
const char *target_operand(char **operands, size_t n);

/* ---- Results ------------------------------------------------------------ */

/* Where -o leads: a path, or NULL for stdout, which must not be a terminal. */
const char *output_path(const char *name);

/* Write a filter there. */
void save_filter(const char *path, const seen_filter *f, bool secret_apart);

/* The same in another system's format. */
void export_filter(const char *path, const seen_filter *f, const char *dialect);

/* Do two names mean one file, which need not exist? */
bool same_name(const char *a, const char *b);

/* Is the target this file? */
bool target_is(const struct target *t, const char *path);

/* Write a filter over a file that it was made from, and that looked like this
 * before: nobody may have changed it meanwhile. */
void save_over(const char *path, const seen_filter *f, bool secret_apart,
               const seen_info *was);

#endif
