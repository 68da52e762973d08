/* url.c - see url.h. */
#include "redis/url.h"

#include "base/error.h"

#include <string.h>

#define PORT 6379

bool seen_url_digits(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t x = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (x > (most - digit) / 10) return false;
        x = 10 * x + digit;
    }
    *out = x;
    return true;
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef", *at;
    if (c >= 'A' && c <= 'F') c = (char)(c - 'A' + 'a');
    at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Text of this length, decoded; false: too long, a bad %XX, or a NUL. */
static bool decode(const char *from, size_t len, char *to, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = from[i];
        if (c == '%') {
            if (i + 2 >= len) return false;
            int high = hex(from[i + 1]), low = hex(from[i + 2]);
            if (high < 0 || low < 0) return false;
            c = (char)(16 * high + low);
            i += 2;
        }
        if (c == '\0' || n + 1 >= cap) return false;
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

static seen_status bad(seen_error *error, const char *what)
{
    return seen_fail(error, SEEN_INVALID, "url", "URL: %s", what);
}

/* "user:password@", "password@" or nothing; the rest begins at *at. */
static seen_status parse_login(const char **at, size_t len,
                               struct seen_url *url, seen_error *error)
{
    size_t sign = len;
    for (size_t i = 0; i < len; i++)
        if ((*at)[i] == '@') sign = i;
    if (sign == len) return SEEN_OK;
    const char *colon = memchr(*at, ':', sign);
    const char *password = colon ? colon + 1 : *at;
    if (colon &&
        !decode(*at, (size_t)(colon - *at), url->user, sizeof url->user))
        return bad(error, "the user's name is too long or has a bad %XX");
    if (!decode(password, (size_t)(*at + sign - password), url->password,
                sizeof url->password))
        return bad(error, "the password is too long or has a bad %XX");
    *at += sign + 1;
    return SEEN_OK;
}

static seen_status parse_host(const char *at, const char *end,
                              struct seen_url *url, seen_error *error)
{
    const char *host = at, *host_end = end, *port = NULL;
    if (at < end && *at == '[') {
        host_end = memchr(at, ']', (size_t)(end - at));
        if (!host_end) return bad(error, "a bracket is not closed");
        host++;
        if (host_end + 1 < end && host_end[1] != ':')
            return bad(error, "expected :port behind the bracket");
        if (host_end + 1 < end) port = host_end + 2;
    } else {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        if (colon) {
            host_end = colon;
            port = colon + 1;
        }
    }
    if (host == host_end)
        return bad(error, "no host: expected one behind //, as in //localhost");
    if (!decode(host, (size_t)(host_end - host), url->host, sizeof url->host))
        return bad(error, "the host is too long or has a bad %XX");
    char digits[8];
    uint64_t number = PORT;
    if (port && (!decode(port, (size_t)(end - port), digits, sizeof digits) ||
                 !seen_url_digits(digits, 65535, &number) || number == 0))
        return bad(error, "expected a port from 1 to 65535 behind the colon");
    url->port = (uint16_t)number;
    return SEEN_OK;
}

static bool is_repeated(const struct seen_url *url)
{
    for (size_t i = 0; i + 1 < url->n; i++)
        if (strcmp(url->param[i].name, url->param[url->n - 1].name) == 0)
            return true;
    return false;
}

static seen_status parse_params(const char *at, struct seen_url *url,
                                seen_error *error)
{
    while (*at) {
        size_t len = strcspn(at, "&");
        const char *equals = memchr(at, '=', len);
        if (url->n == SEEN_URL_PARAMS) return bad(error, "too many parameters");
        if (!equals) return bad(error, "expected name=value behind ? and &");
        if (!decode(at, (size_t)(equals - at), url->param[url->n].name,
                    sizeof url->param[0].name) ||
            !decode(equals + 1, (size_t)(at + len - equals - 1),
                    url->param[url->n].value, sizeof url->param[0].value))
            return bad(error, "a parameter is too long or has a bad %XX");
        url->n++;
        if (is_repeated(url))
            return seen_fail(error, SEEN_INVALID, "url",
                             "URL: %s is given twice",
                             url->param[url->n - 1].name);
        at += len;
        if (*at == '&') at++;
    }
    return SEEN_OK;
}

seen_status seen_url_parse(const char *rest, struct seen_url *url,
                           seen_error *error)
{
    *url = (struct seen_url){0};
    if (strncmp(rest, "//", 2) != 0)
        return bad(error, "expected // and a host behind the colon");
    const char *at = rest + 2;
    size_t len = strcspn(at, "/?");
    const char *end = at + len;
    seen_status status = parse_login(&at, len, url, error);
    if (status == SEEN_OK) status = parse_host(at, end, url, error);
    if (status != SEEN_OK) return status;
    if (*end == '/') {
        len = strcspn(++end, "?");
        if (!url->password[0] && memchr(end, '@', len)) /* do not print it */
            return bad(error, "an @ behind the first /: write / as %2F in a "
                              "password, and @ as %40 in a name");
        if (!decode(end, len, url->path, sizeof url->path))
            return bad(error, "the path is too long or has a bad %XX");
        end += len;
    }
    return *end == '?' ? parse_params(end + 1, url, error) : SEEN_OK;
}

const char *seen_url_param(struct seen_url *url, const char *name)
{
    for (size_t i = 0; i < url->n; i++) {
        if (strcmp(url->param[i].name, name) != 0) continue;
        url->param[i].used = true;
        return url->param[i].value;
    }
    return NULL;
}

seen_status seen_url_number(struct seen_url *url, const char *name,
                            uint64_t most, uint64_t standard, uint64_t *out,
                            seen_error *error)
{
    const char *value = seen_url_param(url, name);
    *out = standard;
    if (!value || seen_url_digits(value, most, out)) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "url",
                     "URL: %s=%s: expected a number up to %llu", name, value,
                     (unsigned long long)most);
}

seen_status seen_url_done(const struct seen_url *url, seen_error *error)
{
    for (size_t i = 0; i < url->n; i++)
        if (!url->param[i].used)
            return seen_fail(error, SEEN_INVALID, "url",
                             "URL: no parameter is called %s",
                             url->param[i].name);
    return SEEN_OK;
}
