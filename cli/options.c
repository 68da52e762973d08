/* options.c - see options.h. */
#include "options.h"

#include "help.h"
#include "near.h"
#include "output.h"
#include "pack.h"
#include "units.h"

#include <seen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parse -------------------------------------------------------------- */

static const struct option *find(const struct verb *verb, const char *name,
                                 size_t len, char letter)
{
    for (const struct option *const *group = verb->options; *group; group++)
        for (const struct option *o = *group; o->help; o++) {
            if (letter && o->letter == letter) return o;
            if (!letter && o->name && strlen(o->name) == len &&
                memcmp(o->name, name, len) == 0)
                return o;
        }
    return NULL;
}

static const char *parse_kind(const char *text, seen_kind *kind)
{
    static char expected[128];
    *kind = seen_kind_named(text);
    if (*kind != SEEN_ANY) return NULL;
    if (strcmp(text, "fuse") == 0)
        return "ribbon, the kind that has replaced it";
    size_t len = (size_t)snprintf(expected, sizeof expected, "a kind:");
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++)
        len +=
            (size_t)snprintf(expected + len, sizeof expected - len, "%s%s",
                             i ? ", " : " ", seen_kind_name(seen_kind_at(i)));
    return expected;
}

static const char *parse_dialect(const char *text, const char **name)
{
    static char expected[512];
    *name = text;
    if (seen_dialect_named(unpacked_name(text), NULL)) return NULL;
    seen_dialect_facts facts = {.size = sizeof facts};
    size_t len = (size_t)snprintf(expected, sizeof expected, "a dialect:");
    for (size_t i = 0; seen_dialect_at(i, &facts); i++)
        len += (size_t)snprintf(expected + len, sizeof expected - len, "%s%s",
                                i ? ", " : " ", facts.name);
    snprintf(expected + len, sizeof expected - len, ", dcso-gzip");
    return expected;
}

static void store(const struct option *o, const char *shown, const char *text)
{
    const char *expected = NULL;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)o->to = true;
        break;
    case OPTION_COUNT:
        expected = parse_count(text, o->to);
        break;
    case OPTION_SIZE:
        expected = parse_size(text, o->to);
        break;
    case OPTION_RATE:
        expected = parse_rate(text, o->to);
        break;
    case OPTION_TIME:
        expected = parse_time(text, o->to);
        break;
    case OPTION_WAIT:
        expected = parse_wait(text, o->to);
        break;
    case OPTION_KIND:
        expected = parse_kind(text, o->to);
        break;
    case OPTION_REAL:
        expected = parse_real(text, o->to);
        break;
    case OPTION_DIALECT:
        expected = parse_dialect(text, o->to);
        break;
    case OPTION_TEXT:
        *(const char **)o->to = text;
        break;
    case OPTION_FORM:
        if (text && strcmp(text, o->value) != 0)
            fail("%s=%s: expected %s or %s=%s", shown, text, shown, shown,
                 o->value);
        *(int *)o->to = text ? 2 : 1;
        break;
    }
    if (expected) fail("%s %s: expected %s", shown, text, expected);
}

__attribute__((noreturn)) static void
unknown_option(const struct verb *verb, const char *name, size_t len)
{
    struct near near = near_to(name, len);
    for (const struct option *const *group = verb->options; *group; group++)
        for (const struct option *o = *group; o->help; o++)
            if (o->name) consider(&near, o->name);
    if (near.best)
        fail("unknown option --%.*s; did you mean --%s? `seen %s --help` lists "
             "all",
             (int)len, name, near.best, verb->name);
    fail("unknown option --%.*s; `seen %s --help` lists them", (int)len, name,
         verb->name);
}

/* "--name", "--name=value", "--name value"; returns the arguments used. */
static size_t long_option(const struct verb *verb, char **argv, size_t left)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *o = find(verb, name, len, 0);
    if (!o) unknown_option(verb, name, len);

    char shown[64];
    snprintf(shown, sizeof shown, "--%.*s", (int)len, name);
    if (o->type == OPTION_FLAG) {
        if (equals) fail("%s takes no value", shown);
        store(o, shown, NULL);
        return 1;
    }
    if (equals || o->type == OPTION_FORM) {
        store(o, shown, equals ? equals + 1 : NULL);
        return 1;
    }
    if (left < 2) fail("%s needs a value: %s", shown, o->value);
    store(o, shown, argv[1]);
    return 2;
}

/* "-a", "-abc", "-n5", "-n 5"; returns the arguments used. */
static size_t short_options(const struct verb *verb, char **argv, size_t left)
{
    for (const char *c = argv[0] + 1; *c; c++) {
        const struct option *o = find(verb, NULL, 0, *c);
        if (!o && find(verb, argv[0] + 1, strlen(argv[0] + 1), 0))
            fail("unknown option -%c; did you mean -%s?", *c, argv[0]);
        if (!o)
            fail("unknown option -%c; `seen %s --help` lists them", *c,
                 verb->name);
        char shown[3] = {'-', *c, '\0'};
        if (o->type == OPTION_FLAG) {
            store(o, shown, NULL);
            continue;
        }
        if (c[1]) {
            store(o, shown, c + 1);
            return 1;
        }
        if (left < 2) fail("%s needs a value: %s", shown, o->value);
        store(o, shown, argv[1]);
        return 2;
    }
    return 1;
}

size_t parse_options(const struct verb *verb, char **argv, size_t n)
{
    size_t operands = 0;
    for (size_t i = 0; i < n;) {
        char *arg = argv[i];
        if (strcmp(arg, "--") == 0) {
            while (++i < n)
                argv[operands++] = argv[i];
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            print_help(verb);
            finish_output();
            exit(EXIT_DONE);
        } else if (arg[0] == '-' && arg[1] == '-') {
            i += long_option(verb, argv + i, n - i);
        } else if (arg[0] == '-' && arg[1]) {
            i += short_options(verb, argv + i, n - i);
        } else {
            argv[operands++] = arg;
            i++;
        }
    }
    return operands;
}
