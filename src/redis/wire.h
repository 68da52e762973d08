/*
 * wire.h - commands as they go out, many in one piece of memory:
 *
 *     *2\r\n $3\r\nGET\r\n $4\r\nname\r\n
 *
 * For short commands by the hundred: what they cost the client is mostly the
 * handling of their words. The room is taken once, by who knows how much it will
 * be: SEEN_WIRE_COMMAND and SEEN_WIRE_WORD are what comes on top of the words.
 */
#ifndef SEEN_REDIS_WIRE_H
#define SEEN_REDIS_WIRE_H

#include "redis/client.h"

#include <assert.h>
#include <string.h>

#define SEEN_WIRE_COMMAND 12
#define SEEN_WIRE_WORD    12 /* of less than ten million bytes */
#define SEEN_WIRE_NUMBER  (SEEN_WIRE_WORD + 20) /* a word of digits */

struct seen_wire {
    char *at, *end; /* where the next byte goes, and where the room ends */
};

/* Digits; how many. */
static inline size_t seen_wire_digits(uint64_t n, char to[20])
{
    char reversed[20];
    size_t len = 0;
    do
        reversed[len++] = (char)('0' + n % 10);
    while (n /= 10);
    for (size_t i = 0; i < len; i++)
        to[i] = reversed[len - 1 - i];
    return len;
}

static inline void seen_wire_put(struct seen_wire *w, const void *bytes,
                                 size_t len)
{
    assert(len <= (size_t)(w->end - w->at));
    memcpy(w->at, bytes, len);
    w->at += len;
}

static inline void seen_wire_count(struct seen_wire *w, char sign, size_t n)
{
    char digits[20];
    seen_wire_put(w, &sign, 1);
    seen_wire_put(w, digits, seen_wire_digits(n, digits));
    seen_wire_put(w, "\r\n", 2);
}

/* The command begins here. */
static inline void seen_wire_begin(struct seen_wire *w, struct seen_command *k,
                                   size_t words, bool repeatable)
{
    *k = (struct seen_command){.wire = w->at, .repeatable = repeatable};
    seen_wire_count(w, '*', words);
}

static inline void seen_wire_word(struct seen_wire *w, const void *bytes,
                                  size_t len)
{
    seen_wire_count(w, '$', len);
    seen_wire_put(w, bytes, len);
    seen_wire_put(w, "\r\n", 2);
}

static inline void seen_wire_text(struct seen_wire *w, const char *text)
{
    seen_wire_word(w, text, strlen(text));
}

static inline void seen_wire_number(struct seen_wire *w, uint64_t n)
{
    char digits[20];
    seen_wire_word(w, digits, seen_wire_digits(n, digits));
}

/* The word that is the key. */
static inline void seen_wire_key(struct seen_wire *w, struct seen_command *k,
                                 const char *key, size_t len)
{
    seen_wire_word(w, key, len);
    k->key = (int)(w->at - k->wire - (ptrdiff_t)len - 2);
    k->key_len = len;
}

/* Bits of a BITFIELD: four words, three for a question. */
#define SEEN_WIRE_BIT (3 * SEEN_WIRE_WORD + 6 + SEEN_WIRE_NUMBER)

static inline void seen_wire_set_bit(struct seen_wire *w, uint64_t bit)
{
    static const char before[] = "$3\r\nSET\r\n$2\r\nu1\r\n";
    static const char behind[] = "$1\r\n1\r\n";
    seen_wire_put(w, before, sizeof before - 1);
    seen_wire_number(w, bit);
    seen_wire_put(w, behind, sizeof behind - 1);
}

static inline void seen_wire_get_bit(struct seen_wire *w, uint64_t bit)
{
    static const char before[] = "$3\r\nGET\r\n$2\r\nu1\r\n";
    seen_wire_put(w, before, sizeof before - 1);
    seen_wire_number(w, bit);
}

/* And ends here. */
static inline void seen_wire_end(const struct seen_wire *w,
                                 struct seen_command *k)
{
    k->wire_len = (size_t)(w->at - k->wire);
}

#endif
