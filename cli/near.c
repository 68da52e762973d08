/* near.c - see near.h. */
#include "near.h"

#include <string.h>

#define LETTERS_MAX 31 /* longer words are not ours */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* d[i][j]: slips between the first i letters of a and the first j of b. */
static size_t distance(const char *a, size_t m, const char *b, size_t n)
{
    size_t d[LETTERS_MAX + 1][LETTERS_MAX + 1];
    for (size_t i = 0; i <= m; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= n; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= m; i++)
        for (size_t j = 1; j <= n; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
                            d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

struct near near_to(const char *typed, size_t len)
{
    return (struct near){.typed = typed, .len = len, .slips = len / 3 + 2};
}

void consider(struct near *near, const char *word)
{
    size_t len = strlen(word);
    if (near->len > LETTERS_MAX || len > LETTERS_MAX || !near->len) return;
    size_t slips = distance(near->typed, near->len, word, len);
    if (near->len < len && memcmp(near->typed, word, near->len) == 0) slips = 1;
    if (slips < near->slips && slips < len) {
        near->best = word;
        near->slips = slips;
    }
}
