/*
 * 07_crawler.c - the frontier of a crawler: every page once, however its address
 * is spelled.
 *
 * A crawler meets the same page again and again, under addresses that differ in
 * ways that mean nothing:
 *
 *     http://Example.com:80/a/./b/../c/%7euser#top
 *     http://example.com/a/c/~user
 *
 * So an address is normalised first (RFC 3986, section 6.2: case, default port,
 * dot segments, needless escapes; and the fragment, which never leaves the
 * browser), and then asked for: been there? Addresses are long and there are
 * billions of them; a filter keeps four bytes of each. Nobody knows beforehand
 * how many there will be, hence the kind that grows.
 *
 * The price: a page whose address is "maybe" there at its first visit is never
 * fetched. At most one in a thousand here, however large the web becomes; one in a
 * million would take six and a half bytes. To go on after a restart, keep the
 * filter in a file: seen_file_open() in seen_file.h, or `seen uniq
 * --state`.
 *
 * The web below is made of numbers, so that we know how many pages there are.
 */
#include <seen.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGES = 200000,
    LINKS = 9,   /* on a page */
    ADDRESS = 96 /* bytes */
};

#define LOSS 0.001 /* of the pages, at most */

/* ---- Normalising: the recipe --------------------------------------------- */

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_unreserved(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, lower(c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* One character, or an escape: decoded where it need not be one, and in capitals
 * where it must. Gives what follows. */
static const char *copy_one(const char *from, char **to)
{
    if (from[0] == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
        char c = (char)(hex(from[1]) * 16 + hex(from[2]));
        if (is_unreserved(c))
            *(*to)++ = c;
        else
            *to += sprintf(*to, "%%%02X", (unsigned char)c);
        return from + 3;
    }
    *(*to)++ = *from;
    return from + 1;
}

/* "/a/./b/../c" is "/a/c". In place; gives the new end. */
static char *remove_dots(char *path, char *end)
{
    char *to = path;
    for (char *from = path; from < end;) { /* at a slash */
        char *next = from + 1;
        while (next < end && *next != '/')
            next++;
        size_t len = (size_t)(next - from);
        bool dot = len == 2 && from[1] == '.';
        bool dots = len == 3 && from[1] == '.' && from[2] == '.';
        if (dots)
            while (to > path && *--to != '/')
                ;
        if (!dot && !dots) {
            memmove(to, from, len);
            to += len;
        } else if (next == end) {
            *to++ = '/'; /* the last one leaves its slash */
        }
        from = next;
    }
    return to;
}

/* Writes at most as many bytes as it reads, and two. False: not for us. */
static bool normalise(const char *url, char *to)
{
    const char *start = to;
    while (is_alpha(*url))
        *to++ = lower(*url++);
    *to = 0;
    bool secure = strcmp(start, "https") == 0;
    if (!secure && strcmp(start, "http") != 0) return false;
    if (strncmp(url, "://", 3) != 0) return false;
    to = strcpy(to, "://") + 3;
    url += 3;

    size_t host = strcspn(url, ":/?#");
    if (host == 0 || memchr(url, '@', host)) return false;
    while (host--)
        *to++ = lower(*url++);
    if (*url == ':') {
        size_t len = strcspn(url, "/?#");
        const char *usual = secure ? ":443" : ":80";
        if (len > 1 && (len != strlen(usual) || memcmp(url, usual, len) != 0)) {
            memcpy(to, url, len);
            to += len;
        }
        url += len;
    }

    char *path = to;
    if (*url != '/') *to++ = '/';
    while (*url && *url != '?' && *url != '#')
        url = copy_one(url, &to);
    to = remove_dots(path, to);
    while (*url && *url != '#') /* the query, with its question mark */
        url = copy_one(url, &to);
    *to = 0;
    return true;
}

static int check_normalise(void)
{
    /* clang-format off */
    static const char *const pairs[][2] = {
        {"HTTP://www.Example.com/",          "http://www.example.com/"},
        {"http://example.com",               "http://example.com/"},
        {"http://example.com:/",             "http://example.com/"},
        {"http://example.com:80/",           "http://example.com/"},
        {"https://example.com:80/",          "https://example.com:80/"},
        {"https://example.com:443?q=A",      "https://example.com/?q=A"},
        {"http://example.com/%7Esmith/",     "http://example.com/~smith/"},
        {"http://a/b/%2fc%3a?x=%7e%2b",      "http://a/b/%2Fc%3A?x=~%2B"},
        {"http://a/b/c/./../../g",           "http://a/g"},
        {"http://a/mid/content=5/../6",      "http://a/mid/6"},
        {"http://a/../../g/.",               "http://a/g/"},
        {"http://a/g/..",                    "http://a/"},
        {"http://a/%2e%2E/b#part",           "http://a/b"},
        {"http://a/b?c=/../d#e",             "http://a/b?c=/../d"},
        {"http://a/100%",                    "http://a/100%"},
        {"mailto:someone@example.com",       NULL},
        {"http:///nowhere",                  NULL}};
    /* clang-format on */
    int bad = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char out[ADDRESS];
        bool ok = normalise(pairs[i][0], out);
        if (ok ? pairs[i][1] && strcmp(out, pairs[i][1]) == 0 : !pairs[i][1])
            continue;
        fprintf(stderr, "%s: got %s\n", pairs[i][0], ok ? out : "nothing");
        bad = 1;
    }
    return bad;
}

/* ---- A web: page n has links to others, spelled in any way ----------------- */

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void link_on(uint64_t page, uint64_t number, char *url)
{
    uint64_t r = mix(page * LINKS + number);
    uint64_t to = number ? r % PAGES : (page + 1) % PAGES, site = to % 997;
    switch (r >> 62) {
    case 0:
        snprintf(url, ADDRESS, "http://site%" PRIu64 ".example/list/p/%" PRIu64,
                 site, to);
        break;
    case 1:
        snprintf(url, ADDRESS,
                 "HTTP://Site%" PRIu64 ".EXAMPLE:80/list/p/%" PRIu64, site, to);
        break;
    case 2:
        snprintf(url, ADDRESS,
                 "http://site%" PRIu64 ".example/list/./old/../p/%" PRIu64,
                 site, to);
        break;
    default:
        snprintf(url, ADDRESS,
                 "http://site%" PRIu64 ".example/%%6Cist/%%70/%" PRIu64 "#top",
                 site, to);
    }
}

static uint64_t page_at(const char *url)
{
    return strtoull(strrchr(url, '/') + 1, NULL, 10);
}

/* ---- The crawl ----------------------------------------------------------- */

struct crawl {
    seen_filter *visited;
    char (*frontier)[ADDRESS]; /* to be fetched, from `next` on */
    size_t next, end;
    uint64_t links, url_bytes;
};

static void meet(struct crawl *c, const char *url)
{
    char address[ADDRESS];
    bool before;
    c->links++;
    if (!normalise(url, address)) return;
    size_t len = strlen(address);
    if (seen_visit(c->visited, address, len, &before) || before) return;
    memcpy(c->frontier[c->end++], address, len + 1);
    c->url_bytes += len;
}

int main(void)
{
    if (check_normalise()) return 1;
    struct crawl c = {.frontier = calloc(PAGES + 1, ADDRESS)};
    uint8_t *fetched = calloc(PAGES, 1);
    seen_spec spec = {.kind = SEEN_SCALABLE, .fpp = LOSS};
    if (!c.frontier || !fetched || seen_new(&c.visited, &spec, NULL)) return 1;

    uint64_t twice = 0;
    meet(&c, "http://site0.example/list/p/0");
    while (c.next < c.end && !twice) {
        uint64_t page = page_at(c.frontier[c.next++]);
        twice += fetched[page]++;
        for (uint64_t i = 0; i < LINKS; i++) {
            char url[ADDRESS];
            link_on(page, i, url);
            meet(&c, url);
        }
    }
    uint64_t missed = PAGES - c.next;
    double expected = LOSS * PAGES;
    seen_info info = {.size = sizeof info};
    seen_measure(c.visited, &info);
    printf("%" PRIu64 " links led to %zu of %d pages; %" PRIu64
           " fetched twice\n",
           c.links, c.next, PAGES, twice);
    printf("never fetched: %" PRIu64 "; expected at most %.0f\n", missed,
           expected);
    printf("%.1f bytes a page, where the addresses have %.1f\n",
           (double)info.bytes / (double)c.next,
           (double)c.url_bytes / (double)c.next);
    seen_free(c.visited);
    free(c.frontier);
    free(fetched);
    return twice || (double)missed > expected + 5 * sqrt(expected);
}
