/*
 * near.h - which of the words there are was meant by one that is not.
 *
 * Near is what a slip of the fingers explains: few letters left out, put in,
 * replaced, or two neighbours swapped (the distance of Damerau and Levenshtein,
 * each pair swapped at most once). One slip is allowed for every three letters;
 * a word that begins with what was typed counts as one slip away.
 */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stddef.h>

struct near {
    const char *typed;
    size_t len;
    const char *best; /* so far; NULL: nothing was near */
    size_t slips;     /* from the best, or the first number that is too many */
};

struct near near_to(const char *typed, size_t len);
void consider(struct near *near, const char *word);

#endif
