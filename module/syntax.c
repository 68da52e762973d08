/* syntax.c - see syntax.h. */
#include "syntax.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define ARGS_MAX    48 /* of a command, with the ends of lists */
#define LETTERS_MAX 256
#define SIDES_MAX   12 /* arguments or alternatives beside each other */

static RedisModuleCommandArg args[ARGS_MAX];
static size_t used;
static char names[LETTERS_MAX]; /* words, each with its end */
static size_t letters;
static int keys; /* so far */

/* A copy of a list, with its end; NULL: no room. */
static RedisModuleCommandArg *keep(const RedisModuleCommandArg *list, size_t n)
{
    if (used + n + 1 > ARGS_MAX) return NULL;
    RedisModuleCommandArg *at = args + used;
    memcpy(at, list, n * sizeof *at);
    memset(at + n, 0, sizeof *at);
    used += n + 1;
    return at;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

/* The word at *at, which moves behind it. NULL: none, or no room. */
static const char *word(const char **at)
{
    size_t len = 0;
    while (is_letter((*at)[len]))
        len++;
    if (len == 0 || letters + len + 1 > sizeof names) return NULL;
    char *copy = names + letters;
    memcpy(copy, *at, len);
    copy[len] = 0;
    letters += len + 1;
    *at += len;
    return copy;
}

static void skip(const char **at)
{
    while (**at == ' ')
        ++*at;
}

static bool read_type(const char **at, RedisModuleCommandArg *a)
{
    static const struct {
        const char *name;
        int type;
    } types[] = {{"int", REDISMODULE_ARG_TYPE_INTEGER},
                 {"double", REDISMODULE_ARG_TYPE_DOUBLE},
                 {"ms", REDISMODULE_ARG_TYPE_UNIX_TIME},
                 {"key", REDISMODULE_ARG_TYPE_KEY}};
    bool is_key = strcmp(a->name, "key") == 0;
    a->type = is_key ? REDISMODULE_ARG_TYPE_KEY : REDISMODULE_ARG_TYPE_STRING;
    if (**at == ':') {
        ++*at;
        const char *name = word(at);
        size_t i = 0;
        while (i < 4 && name && strcmp(types[i].name, name))
            i++;
        if (!name || i == 4) return false;
        a->type = types[i].type;
    }
    a->key_spec = a->type == REDISMODULE_ARG_TYPE_KEY ? keys++ : -1;
    return true;
}

/* A name, or a word, with the name that it introduces. */
static bool read_name(const char **at, RedisModuleCommandArg *a)
{
    *a = (RedisModuleCommandArg){.key_spec = -1};
    const char *first = word(at);
    if (!first) return false;
    a->name = first;
    if (!isupper((unsigned char)*first)) return read_type(at, a);
    a->token = first;
    skip(at);
    if (islower((unsigned char)**at)) {
        a->name = word(at);
        return a->name && read_type(at, a);
    }
    a->type = REDISMODULE_ARG_TYPE_PURE_TOKEN;
    return true;
}

static bool read_alternatives(const char **at, char end,
                              RedisModuleCommandArg *a);

static bool read_arg(const char **at, RedisModuleCommandArg *a)
{
    bool may_miss = **at == '[', right;
    if (**at == '[' || **at == '(') {
        ++*at;
        right = read_alternatives(at, may_miss ? ']' : ')', a);
    } else {
        right = read_name(at, a);
    }
    if (may_miss) a->flags |= REDISMODULE_CMD_ARG_OPTIONAL;
    if (right && strncmp(*at, "...", 3) == 0) {
        a->flags |= REDISMODULE_CMD_ARG_MULTIPLE;
        *at += 3;
    }
    return right;
}

/* Arguments up to `|`, `end` or the end of the line. */
static bool read_list(const char **at, char end, RedisModuleCommandArg *list,
                      size_t *n)
{
    *n = 0;
    for (skip(at); **at && **at != end && **at != '|'; skip(at))
        if (*n == SIDES_MAX || !read_arg(at, &list[(*n)++])) return false;
    return true;
}

/* Several as one argument. */
static bool enclose(RedisModuleCommandArg *list, size_t n, int type,
                    RedisModuleCommandArg *a)
{
    if (n == 0) return false;
    if (n == 1) {
        *a = list[0];
        return true;
    }
    *a = (RedisModuleCommandArg){.name = list[0].name,
                                 .type = type,
                                 .key_spec = -1,
                                 .parts = keep(list, n)};
    return a->parts != NULL;
}

static bool read_alternatives(const char **at, char end,
                              RedisModuleCommandArg *a)
{
    RedisModuleCommandArg sides[SIDES_MAX], list[SIDES_MAX];
    size_t n = 0, len;
    for (;;) {
        if (n == SIDES_MAX || !read_list(at, end, list, &len) ||
            !enclose(list, len, REDISMODULE_ARG_TYPE_BLOCK, &sides[n++]))
            return false;
        if (**at != '|') break;
        ++*at;
    }
    if (**at != end) return false;
    ++*at;
    return enclose(sides, n, REDISMODULE_ARG_TYPE_ONEOF, a);
}

RedisModuleCommandArg *syntax_read(const char *line)
{
    RedisModuleCommandArg list[SIDES_MAX];
    size_t n;
    used = letters = 0;
    keys = 0;
    if (!read_list(&line, 0, list, &n) || *line) return NULL;
    return keep(list, n);
}
