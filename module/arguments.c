/* arguments.c - see arguments.h. */
#include "arguments.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool text_to_double(const char *text, double *value)
{
    char *end;
    if (!*text || *text == ' ') return false;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value);
}

bool text_to_number(const char *text, long long *value)
{
    char *end;
    if (!*text || *text == ' ') return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *end == 0 && errno == 0;
}

bool is_word(const RedisModuleString *s, const char *word)
{
    size_t len;
    const char *at = RedisModule_StringPtrLen(s, &len);
    return len == strlen(word) && strncasecmp(at, word, len) == 0;
}

const char *unknown_argument(const RedisModuleString *s)
{
    static char text[96];
    seen_key word = key_of(s);
    size_t most = 40, len = word.len < most ? word.len : most;
    int end = snprintf(text, sizeof text, "ERR unknown argument received: ");
    for (size_t i = 0; i < len; i++) { /* an error is one line */
        unsigned char c = ((const unsigned char *)word.data)[i];
        text[end++] = c >= ' ' && c != 0x7f ? (char)c : '?';
    }
    snprintf(text + end, sizeof text - (size_t)end, "%s",
             len < word.len ? "..." : "");
    return text;
}

bool to_double(const RedisModuleString *s, double *value)
{
    return RedisModule_StringToDouble(s, value) == REDISMODULE_OK &&
           isfinite(*value);
}

bool to_number(const RedisModuleString *s, long long min, long long max,
               long long *value)
{
    return RedisModule_StringToLongLong(s, value) == REDISMODULE_OK &&
           *value >= min && *value <= max;
}

void words_add(struct words *w, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (w->n < sizeof w->word / sizeof *w->word && len > 0 &&
        (size_t)len < sizeof text)
        w->word[w->n++] = RedisModule_CreateString(NULL, text, (size_t)len);
}

void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        RedisModule_FreeString(NULL, w->word[i]);
    w->n = 0;
}

void words_add_secret(struct words *w, bool keyed, const uint8_t secret[16])
{
    char hex[SECRET_DIGITS + 1] = "none";
    for (int i = 0; keyed && i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", secret[i]);
    words_add(w, "SECRET");
    words_add(w, "%s", hex);
}

struct name {
    seen_key key;
    int place;
};

static int by_bytes(const struct name *a, const struct name *b)
{
    size_t len = a->key.len < b->key.len ? a->key.len : b->key.len;
    int order = memcmp(a->key.data, b->key.data, len);
    return order ? order
                 : (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

static int by_bytes_and_place(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = by_bytes(x, y);
    return order ? order : x->place - y->place;
}

RedisModuleString **distinct_names(RedisModuleString **names, int *n)
{
    struct name *sorted = RedisModule_Alloc((size_t)*n * sizeof *sorted);
    RedisModuleString **out = RedisModule_Alloc((size_t)*n * sizeof(void *));
    for (int i = 0; i < *n; i++) {
        sorted[i] = (struct name){key_of(names[i]), i};
        out[i] = names[i];
    }
    qsort(sorted, (size_t)*n, sizeof *sorted, by_bytes_and_place);
    for (int i = 1; i < *n; i++)
        if (by_bytes(&sorted[i - 1], &sorted[i]) == 0)
            out[sorted[i].place] = NULL;
    int kept = 0;
    for (int i = 0; i < *n; i++)
        if (out[i]) out[kept++] = out[i];
    RedisModule_Free(sorted);
    *n = kept;
    return out;
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

bool hex_to_secret(const char *hex, size_t len, uint8_t secret[16])
{
    if (len != SECRET_DIGITS) return false;
    for (int i = 0; i < 16; i++) {
        int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        secret[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

const char *to_secret(const RedisModuleString *s, bool *keyed,
                      uint8_t secret[16])
{
    seen_key hex = key_of(s);
    *keyed = !is_word(s, "none");
    if (!*keyed || hex_to_secret(hex.data, hex.len, secret)) return NULL;
    return "ERR SECRET is 32 hex digits, or none";
}
