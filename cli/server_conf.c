/* server_conf.c - see server_conf.h. */
#define _GNU_SOURCE /* realpath, strcasestr */

#include "server_conf.h"

#include "memory.h"
#include "output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADLINE                                                               \
    "# seen server writes this file at every start, and keeps what CONFIG "    \
    "REWRITE\n# or you have put in. Directives at its end are its own.\n"

/* ---- Directives --------------------------------------------------------- */

/* Those the program decides, and what to use instead. loadmodule is not one: other
 * modules may come from --config. */
static const struct {
    const char *name, *instead;
} decided[] = {{"port", "--port"},
               {"bind", "--bind"},
               {"dir", "--dir"},
               {"logfile", "--dir"},
               {"daemonize", NULL},
               {"cluster-enabled", "--cluster"},
               {"cluster-config-file", "--cluster"},
               {"seen.policy", "--policy"}};

/* The first word of a line is this directive. */
static bool is(const char *line, const char *name)
{
    size_t len = strlen(name);
    line += strspn(line, " \t");
    return strncasecmp(line, name, len) == 0 &&
           (!line[len] || isspace((unsigned char)line[len]));
}

static bool says(const char *line, const char *name, const char *value)
{
    if (!is(line, name)) return false;
    line += strspn(line, " \t") + strlen(name);
    line += strspn(line, " \t\"");
    return strncasecmp(line, value, strlen(value)) == 0;
}

static bool is_password(const char *line)
{
    return is(line, "requirepass") && !says(line, "requirepass", "\n") &&
           !strstr(line, "\"\"");
}

void conf_hide(char *line)
{
    static const char *const words[] = {"pas", "auth", "user"};
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) *at = '?';
    if (strncmp(line, ">>> '", 5) != 0) return; /* so it quotes a directive */
    char *name = line + 5, *end = name + strcspn(name, " \"'?");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *word = strcasestr(name, words[i]);
        if (word && word < end && *end) strcpy(end, "'");
    }
}

static void note_facts(struct conf_facts *facts, const char *line)
{
    if (is(line, "requirepass")) facts->password = is_password(line);
    if (is(line, "appendfsync"))
        facts->always = says(line, "appendfsync", "always");
}

/* ---- Files -------------------------------------------------------------- */

/* NULL: there is none. */
static FILE *open_conf(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file && errno != ENOENT) fail("%s: %s", path, strerror(errno));
    return file;
}

static void done_reading(FILE *file, const char *path)
{
    if (ferror(file)) fail("%s: read: %s", path, strerror(errno));
    fclose(file);
}

static void refuse_decided(const char *path, const char *line, size_t number)
{
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++) {
        if (!is(line, decided[i].name)) continue;
        if (!decided[i].instead)
            fail("--config %s: line %zu: %s: seen server decides that: leave "
                 "it out",
                 path, number, decided[i].name);
        fail("--config %s: line %zu: %s: use %s instead", path, number,
             decided[i].name, decided[i].instead);
    }
}

char *conf_check_own(const char *path, bool *password)
{
    char *line = NULL, *full = realpath(path, NULL);
    size_t cap = 0, number = 0;
    struct stat info;
    bool secret = false;
    FILE *file = full ? open_conf(full) : NULL;
    if (!file || fstat(fileno(file), &info) != 0)
        fail("--config %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        fail("--config %s: expected a file of redis.conf's directives", path);
    while (getline(&line, &cap, file) >= 0) {
        refuse_decided(path, line, ++number);
        *password = *password || is_password(line);
        secret = secret || is(line, "masterauth") || is(line, "user");
    }
    done_reading(file, path);
    free(line);
    if ((*password || secret) && info.st_mode & 077)
        note("%s: has a password that other users can read: chmod 600 it",
             path);
    return full;
}

/* ---- Writing ------------------------------------------------------------ */

char *conf_quote(const char *value)
{
    char *text = must_have(malloc(4 * strlen(value) + 3)), *to = text;
    *to++ = '"';
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if (c < ' ' || c == 0x7f || c == '"' || c == '\\')
            to += sprintf(to, "\\x%02x", c);
        else
            *to++ = *value;
    }
    strcpy(to, "\"");
    return text;
}

static void put_all(FILE *to, const struct directive *d)
{
    for (; d->name; d++)
        fprintf(to, "%s %s\n", d->name, d->values);
}

static bool replaced(const char *line, const struct directive *ours)
{
    for (; ours->name; ours++)
        if (is(line, ours->name)) return true;
    return false;
}

/* What stays of the file, and behind it the files that it includes. */
static void keep(FILE *to, FILE *from, const char *include,
                 const struct directive *ours, struct conf_facts *facts)
{
    char *line = NULL, *includes = must_have(strdup(""));
    size_t cap = 0;
    while (getline(&line, &cap, from) >= 0) {
        if (replaced(line, ours) || strstr(HEADLINE, line)) continue;
        if (is(line, "include")) {
            size_t had = strlen(includes);
            includes = must_have(realloc(includes, had + strlen(line) + 1));
            memcpy(includes + had, line, strlen(line) + 1);
            continue;
        }
        note_facts(facts, line);
        fputs(line, to);
        if (!strchr(line, '\n')) fputc('\n', to);
    }
    if (!include) fputs(includes, to);
    free(includes);
    free(line);
}

static void note_included(struct conf_facts *facts, const char *include)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *file = open_conf(include);
    while (file && getline(&line, &cap, file) >= 0)
        note_facts(facts, line);
    if (file) done_reading(file, include);
    free(line);
}

/* Nobody's but ours, from its first byte. */
static FILE *create(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        fail("%s: unlink: %s", path, strerror(errno));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) fail("%s: %s", path, strerror(errno));
    return file;
}

static void finish(FILE *file, const char *temporary, const char *path)
{
    bool whole = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
    int error = errno;
    fclose(file);
    if (whole && rename(temporary, path) == 0) return;
    if (whole) error = errno;
    unlink(temporary);
    fail("%s: write: %s", path, strerror(error));
}

struct conf_facts conf_write(const char *path, const char *include,
                             const struct directive *ours,
                             const struct directive *first)
{
    struct conf_facts facts = {.there = false};
    FILE *from = open_conf(path);
    size_t len = strlen(path) + sizeof ".seen-new";
    char *temporary = must_have(malloc(len));
    snprintf(temporary, len, "%s.seen-new", path);
    FILE *to = create(temporary);
    fputs(HEADLINE, to);
    facts.there = from != NULL;
    if (from) {
        keep(to, from, include, ours, &facts);
        done_reading(from, path);
    } else {
        put_all(to, first);
    }
    if (include) {
        char *quoted = conf_quote(include);
        fprintf(to, "include %s\n", quoted);
        free(quoted);
        note_included(&facts, include);
    }
    put_all(to, ours);
    for (; ours->name; ours++)
        if (!strcmp(ours->name, "appendfsync"))
            facts.always = !strcmp(ours->values, "always");
    finish(to, temporary, path);
    free(temporary);
    return facts;
}
