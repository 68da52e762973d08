/*
 * fuzz_url.c - libFuzzer against URLs of servers: any text is taken apart or
 * refused with a sentence.
 *
 * What is taken fits its fields. A parameter is there once, and its number is in
 * its range.
 */
#include "redis/url.h"

#include <stdlib.h>
#include <string.h>

static void must(bool fact)
{
    if (!fact) abort();
}

static bool ends(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

static void take_apart(const char *text)
{
    struct seen_url url;
    seen_error error = {0};
    if (seen_url_parse(text, &url, &error) != SEEN_OK) {
        must(error.text[0]);
        return;
    }
    must(url.host[0] && url.port && url.n <= SEEN_URL_PARAMS);
    must(ends(url.user, sizeof url.user) && ends(url.host, sizeof url.host) &&
         ends(url.password, sizeof url.password) &&
         ends(url.path, sizeof url.path));
    for (size_t i = 0; i < url.n; i++) {
        uint64_t number;
        must(ends(url.param[i].name, sizeof url.param[i].name) &&
             ends(url.param[i].value, sizeof url.param[i].value));
        if (seen_url_number(&url, url.param[i].name, 1000, 7, &number,
                            &error) == SEEN_OK)
            must(number <= 1000);
    }
    must(seen_url_done(&url, &error) == SEEN_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    take_apart(text);
    free(text);
    return 0;
}
