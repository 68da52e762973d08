/*
 * server_conf.h - the configuration file of a node of `seen server`:
 * DIR/PORT/server.conf.
 *
 * The node is started with it, so CONFIG REWRITE has a file to write to, and what
 * it wrote is there at the next start. Each start writes it anew, of
 *
 *     1. what it held, but for the directives below
 *     2. include FILE, of --config; if that is not given, the one it held
 *     3. the directives that the program decides
 *
 * The last one counts, as everywhere in such files. It is made with mode 0600: it
 * may hold passwords.
 */
#ifndef CLI_SERVER_CONF_H
#define CLI_SERVER_CONF_H

#include <stdbool.h>
#include <stddef.h>

/* A line of the file. */
struct directive {
    const char *name, *values; /* as they stand there */
};

/* A value as it stands there, whatever is in it. */
char *conf_quote(const char *value);

/* A line that a server has printed, for people, in place: without control
 * characters, and a directive that may hold a password ("requirepass word", or with
 * its name misspelt) without its values. */
void conf_hide(char *line);

/* What is known of a file and of the one that it includes by --config. */
struct conf_facts {
    bool there;    /* the file was */
    bool password; /* requirepass is in it */
    bool always;   /* appendfsync always */
};

/* The file that --config names: that it can be read and has no directive that the
 * program decides, or the end of the program; a note if it has a password and
 * others can read it. Gives its full path; *password: requirepass is in it. */
char *conf_check_own(const char *path, bool *password);

/* Write `path`. `ours` replace what is there, `first` are for a file that is not
 * there yet; both end with a name of NULL. include: NULL, or of --config. */
struct conf_facts conf_write(const char *path, const char *include,
                             const struct directive *ours,
                             const struct directive *first);

#endif
