/* login.c - see login.h. */
#define _POSIX_C_SOURCE 200809L

#include "login.h"

#include "output.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* From one character up to another: where the password is. */
struct span {
    size_t from, to;
};

/* An argument, or a URL, with *** and without; where in it the URL begins. */
struct hidden {
    struct hidden *next;
    char *shown, *real;
    size_t url;
};

static struct hidden *all;

/* ---- Where the password is ---------------------------------------------- */

/* Where a URL begins in an argument ("--also=redis://..."), NULL: there is none. */
static char *find_url(char *argument)
{
    char *at = strstr(argument, "://");
    while (at && at > argument &&
           (isalnum((unsigned char)at[-1]) || strchr("+.", at[-1])))
        at--;
    return at;
}

/* Of a server that we know, also where the scheme is written in capitals. */
static bool is_of_redis(const char *url)
{
    return strncasecmp(url, "redis", 5) == 0;
}

static bool is_number(const char *text, size_t len)
{
    return len > 0 && strspn(text, "0123456789") >= len;
}

static const char *last_at(const char *text, size_t len)
{
    while (len-- > 0)
        if (text[len] == '@') return text + len;
    return NULL;
}

/*
 * scheme://user:PASSWORD@host..., or scheme://PASSWORD@host... The URL may be a
 * bad one, whose password has a / or ? that should be %2F or %3F: then an @ comes
 * later, and what stands before the first / is no host and port. Of a scheme that
 * we do not know, only the first form is a login for certain.
 */
static bool find_login(const char *url, struct span *out)
{
    const char *begin = strstr(url, "://") + 3;
    size_t authority = strcspn(begin, "/?");
    const char *at = last_at(begin, authority);
    const char *colon = memchr(begin, ':', authority);
    if (!is_of_redis(url) && !(at && colon && colon < at)) return false;
    if (!at) {
        size_t path = strcspn(begin, "?");
        bool port =
            !colon ||
            is_number(colon + 1, (size_t)(begin + authority - colon - 1));
        at = last_at(begin, port ? path : strlen(begin));
    }
    if (!at) return false;
    const char *from = colon && colon < at ? colon + 1 : begin;
    *out = (struct span){(size_t)(from - url), (size_t)(at - url)};
    return true;
}

/* Nothing is called so, but people try; from the first of them to the last. */
static bool find_parameter(const char *url, struct span *out)
{
    bool found = false;
    for (const char *at = url; (at = strstr(at, "password="));) {
        bool named = at > url && (at[-1] == '?' || at[-1] == '&');
        at += strlen("password=");
        if (!named) continue;
        if (!found) out->from = (size_t)(at - url);
        out->to = (size_t)(at - url) + strcspn(at, "&");
        found = true;
    }
    return found;
}

/* ---- Hiding ------------------------------------------------------------- */

static char *must_have(char *text)
{
    if (!text) fail("out of memory");
    return text;
}

/* The bytes before, *** and those behind. */
static char *masked(const char *text, struct span s)
{
    char *out = must_have(malloc(strlen(text) + 4));
    sprintf(out, "%.*s***%s", (int)s.from, text, text + s.to);
    return out;
}

/* Of an argument as it was given, also if something in it is hidden already. */
static struct hidden *remember(char *argument)
{
    if (all && all->shown == argument) return all;
    struct hidden *h = malloc(sizeof *h);
    if (!h) fail("out of memory");
    *h = (struct hidden){.next = all,
                         .real = must_have(strdup(argument)),
                         .url = (size_t)(find_url(argument) - argument)};
    return all = h;
}

/* The argument without its password; the original is overwritten. */
static char *hide(char *argument, struct span s)
{
    struct hidden *h = remember(argument);
    s.from += h->url;
    s.to += h->url;
    h->shown = masked(argument, s);
    memset(argument + s.from, '*', s.to - s.from);
    return h->shown;
}

void hide_passwords(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct span s;
        if (!find_url(argv[i])) continue;
        if (find_login(find_url(argv[i]), &s) && s.to > s.from)
            argv[i] = hide(argv[i], s);
        if (find_parameter(find_url(argv[i]), &s) && s.to > s.from)
            argv[i] = hide(argv[i], s);
    }
}

/* Two may look alike with ***: it is the same argument if it is at the same place. */
void give_back(char **arguments, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (const struct hidden *h = all; h; h = h->next)
            if (arguments[i] == h->shown) arguments[i] = h->real;
}

/* ---- Connecting --------------------------------------------------------- */

static const char *from_environment(void)
{
    static const char *const names[] = {"SEEN_REDIS_PASSWORD", "REDISCLI_AUTH"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return NULL;
}

/* scheme://[user:]@host with the password in its place, every byte as %XX. */
static char *with_password(const char *url, const char *password)
{
    struct span s;
    const char *host = strstr(url, "://") + 3;
    bool login = find_login(url, &s);
    size_t before = login ? s.from : (size_t)(host - url);
    const char *behind = login ? url + s.to + 1 : host;
    char *out = must_have(malloc(strlen(url) + 3 * strlen(password) + 3)),
         *to = out;
    to += sprintf(to, "%.*s%s", (int)before, url, login ? "" : ":");
    for (; *password; password++)
        to += sprintf(to, "%%%02x", (unsigned char)*password);
    sprintf(to, "@%s", behind);
    return out;
}

const char *real_url(const char *name)
{
    for (const struct hidden *h = all; h; h = h->next)
        if (h->shown + h->url == name) return h->real + h->url;
    for (const struct hidden *h = all; h; h = h->next)
        if (strcmp(h->shown + h->url, name) == 0) return h->real + h->url;
    const char *password = from_environment();
    if (!password || strncmp(name, "redis", 5) != 0 || !strstr(name, "://") ||
        strstr(name, "password-file="))
        return name; /* a path, or it says where */
    char *real = with_password(name, password);
    struct hidden *h = malloc(sizeof *h);
    if (!h) fail("out of memory");
    *h = (struct hidden){
        .next = all, .shown = must_have(strdup(name)), .real = real};
    all = h;
    return real;
}
