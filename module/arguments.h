/* arguments.h - the words and numbers of a command. */
#ifndef SEEN_MODULE_ARGUMENTS_H
#define SEEN_MODULE_ARGUMENTS_H

#include "seen.h"

#include "redis_api.h"

#include <stdbool.h>

/* Exactly a number and nothing behind it; no NaN, no infinity. */
bool text_to_double(const char *text, double *value);
bool text_to_number(const char *text, long long *value);

/* An argument is this word, whatever the case of its letters. */
bool is_word(const RedisModuleString *s, const char *word);

/* An error that names an argument. Good until the next one. */
const char *unknown_argument(const RedisModuleString *s);

bool to_double(const RedisModuleString *s, double *value);
/* A whole number from min to max. */
bool to_number(const RedisModuleString *s, long long min, long long max,
               long long *value);

static inline seen_key key_of(const RedisModuleString *s)
{
    seen_key key;
    key.data = RedisModule_StringPtrLen(s, &key.len);
    return key;
}

/* Each of *n names once, in the order in which they come first: the caller's to
 * free with RedisModule_Free(). *n is how many there are. */
RedisModuleString **distinct_names(RedisModuleString **names, int *n);

/* Arguments to hand on to RedisModule_Replicate() as "v". */
struct words {
    RedisModuleString *word[32];
    size_t n;
};

void words_add(struct words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* SECRET and its 32 hex digits, or none. */
void words_add_secret(struct words *w, bool keyed, const uint8_t secret[16]);
void words_free(struct words *w);

/* What stands behind SECRET. NULL, or an error. */
const char *to_secret(const RedisModuleString *s, bool *keyed,
                      uint8_t secret[16]);

#define SECRET_DIGITS 32
bool hex_to_secret(const char *hex, size_t len, uint8_t secret[16]);

#endif
