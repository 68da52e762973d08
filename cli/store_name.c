/* store_name.c - see store_name.h. */
#define _POSIX_C_SOURCE 200809L

#include "store_name.h"

#include "memory.h"
#include "near.h"
#include "output.h"
#include "target.h"

#include <ctype.h>
#include <dirent.h>
#include <seen_users.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* redis://...?key=NAME is one filter. */
bool is_server(const char *name)
{
    if (strncmp(name, "redis+list://", 13) == 0) return true;
    return strncmp(name, "redis://", 8) == 0 && !strstr(name, "?key=") &&
           !strstr(name, "&key=");
}

bool is_store(const char *name)
{
    struct stat st;
    return strncmp(name, "lmdb:", 5) == 0 || strcmp(name, "mem:") == 0 ||
           is_server(name) || (stat(name, &st) == 0 && S_ISDIR(st.st_mode));
}

const char *dir_of(const char *name)
{
    return strncmp(name, "lmdb:", 5) == 0 ? name + 5 : name;
}

bool same_store(const char *a, const char *b)
{
    return same_name(dir_of(a), dir_of(b));
}

const char *store_operand(char **operands, size_t n)
{
    static const char expected[] = "a directory, redis://... or mem:";
    if (n == 0) fail("STORE is missing: expected %s", expected);
    if (!*operands[0] || strcmp(operands[0], "lmdb:") == 0)
        fail("STORE is empty: expected %s", expected);
    return operands[0];
}

seen_key user_operand(const char *text)
{
    size_t len = strlen(text);
    if (len == 0) fail("USER is empty: expected 1 to %d bytes", SEEN_USER_MAX);
    if (len > SEEN_USER_MAX)
        fail("USER has %zu bytes: expected 1 to %d", len, SEEN_USER_MAX);
    return (seen_key){text, len};
}

const char *show_user(char buf[USER_TEXT], seen_key user)
{
    return show_bytes(buf, USER_TEXT, user);
}

/* Stores of days and shards have names that are alike on purpose. */
static bool same_but_for_digits(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (isdigit((unsigned char)*a))
            a++;
        while (isdigit((unsigned char)*b))
            b++;
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

char *near_store(const char *name)
{
    if (is_server(name) || strcmp(name, "mem:") == 0) return NULL;
    char *path = must_have(strdup(dir_of(name)));
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    struct near near = near_to(base, strlen(base));
    near.slips = 2; /* one slip is a mistake, more are another name */
    char *best = NULL;
    if (slash) *slash = '\0';
    DIR *dir = opendir(!slash ? "." : slash == path ? "/" : path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char data[512];
        struct stat st;
        snprintf(data, sizeof data, "%s/data.mdb", e->d_name);
        if (strlen(base) < 3 || same_but_for_digits(e->d_name, base) ||
            fstatat(dirfd(dir), data, &st, 0) != 0)
            continue;
        size_t slips = near.slips;
        consider(&near, e->d_name);
        if (near.slips == slips) continue;
        free(best);
        best = must_have(strdup(e->d_name));
        near.best = best;
    }
    if (dir) closedir(dir);
    free(path);
    return best;
}

bool has_journal(const char *path)
{
    bool has = false;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !has && (e = readdir(dir));)
        has = strncmp(e->d_name, "seen.journal-", 13) == 0;
    if (dir) closedir(dir);
    return has;
}
