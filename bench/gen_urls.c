/*
 * gen_urls.c - a list of URLs with repeats, as a crawler or a log has it.
 *
 *     gen_urls LINES DISTINCT [SEED] > FILE
 *
 * Exactly DISTINCT different lines among LINES, about 68 bytes each with the
 * newline. New and repeated lines are mixed evenly; a repeat is one of those
 * before it, half of the time any, half of the time a popular one (u^4 of the
 * way: the first 1 % get 32 % of these). A line follows from its number alone,
 * so nothing is remembered and the same arguments give the same bytes.
 */
#include "bench.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hosts[] = {
    "www.example.com",       "shop.example.org",     "news.example.net",
    "blog.riverside.io",     "media.northwind.com",  "www.oakandpine.co.uk",
    "docs.lighthouse.dev",   "forum.gardeners.info", "img.cdn-two.net",
    "tickets.cityarena.com", "m.weather-today.org",  "api.openmaps.example",
    "www.kitchenstories.de", "store.booknook.com",   "video.learnfast.edu",
    "jobs.talentbridge.com"};

static const char *const sections[] = {
    "products", "articles", "questions", "users",    "category", "2024/06",
    "archive",  "item",     "gallery",   "download", "topics",   "en/help",
    "reviews",  "events",   "search",    "tags"};

static const char *const words[] = {
    "small",  "travel", "summer",  "guide",  "wireless", "garden", "history",
    "cheap",  "review", "winter",  "market", "kitchen",  "energy", "school",
    "green",  "photo",  "classic", "music",  "science",  "health", "morning",
    "river",  "coffee", "python",  "family", "bicycle",  "future", "design",
    "silver", "paper",  "local",   "simple"};

static const char *const queries[] = {"?ref=mail", "?page=2",     "?lang=en",
                                      "?sort=new", "?utm=spring", "?q=1",
                                      "#comments", "/index.html"};

static char *put(char *to, const char *text)
{
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

static char *put_number(char *to, uint64_t value)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

/* https://host/section/word-word-word-NUMBER[query]; the number between its
 * last hyphen and what is not a digit makes the line unique. */
static char *put_url(char *to, uint64_t number, uint64_t seed)
{
    uint64_t x = bench_mix(number ^ seed << 40);
    to = put(to, "https://");
    to = put(to, hosts[x % 16]);
    *to++ = '/';
    to = put(to, sections[x >> 4 & 15]);
    *to++ = '/';
    size_t slug = 2 + (x >> 8 & 1) + (x >> 9 & 1);
    for (size_t i = 0; i < slug; i++) {
        to = put(to, words[x >> (10 + 5 * i) & 31]);
        *to++ = '-';
    }
    to = put_number(to, number);
    if (x >> 40 & 1) to = put(to, queries[x >> 41 & 7]);
    *to++ = '\n';
    return to;
}

static uint64_t repeat(uint64_t x, uint64_t before)
{
    if (x & 1) return bench_below(x, before);
    double u = (double)(x >> 11) * 0x1p-53;
    return (uint64_t)(u * u * u * u * (double)before);
}

static uint64_t number_or_die(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end)
        bench_die("gen_urls: %s is not a number", text);
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4)
        bench_die("usage: gen_urls LINES DISTINCT [SEED]");
    uint64_t lines = number_or_die(argv[1]), distinct = number_or_die(argv[2]);
    uint64_t seed = argc > 3 ? number_or_die(argv[3]) : 1;
    if (distinct > lines || (distinct == 0 && lines > 0))
        bench_die("gen_urls: DISTINCT is between 1 and LINES");

    static char buffer[1 << 16];
    char *to = buffer;
    for (uint64_t i = 0, known = 0; i < lines; i++) {
        uint64_t x = bench_mix(2 * i + (seed << 32));
        bool fresh = known == 0 || bench_below(x, lines - i) < distinct - known;
        uint64_t number =
            fresh ? known++
                  : repeat(bench_mix(2 * i + 1 + (seed << 32)), known);
        to = put_url(to, number, seed);
        if (to > buffer + sizeof buffer - 256 || i + 1 == lines) {
            fwrite(buffer, 1, (size_t)(to - buffer), stdout);
            to = buffer;
        }
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        bench_die("gen_urls: could not write");
    return 0;
}
