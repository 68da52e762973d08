/*
 * decimal.c - see decimal.h.
 *
 * printf() and strtod() do the work, which is hard to do right; only the point is
 * ours. Written: what is no digit, sign or exponent is the locale's point. Read:
 * the point is taken out and the exponent corrected, 0.25e-3 being 025e-5, which
 * means the same everywhere.
 */
#include "redis/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPONENT_MAX 9999

void seen_decimal_put(double x, char to[SEEN_DECIMAL])
{
    char text[64];
    snprintf(text, sizeof text, "%.17g", x);
    size_t n = 0;
    for (size_t i = 0; text[i] && n + 1 < SEEN_DECIMAL; i++) {
        if (strchr("0123456789+-e", text[i]))
            to[n++] = text[i];
        else if (n == 0 || to[n - 1] != '.') /* it may have several bytes */
            to[n++] = '.';
    }
    to[n] = '\0';
}

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

bool seen_decimal_get(const char *text, double *x)
{
    char plain[2 * SEEN_DECIMAL];
    size_t whole = digits_at(text), fraction = 0;
    if (strlen(text) >= SEEN_DECIMAL || whole == 0) return false;
    const char *at = text + whole;
    memcpy(plain, text, whole);
    if (*at == '.') {
        fraction = digits_at(++at);
        if (fraction == 0) return false;
        memcpy(plain + whole, at, fraction);
        at += fraction;
    }
    long exponent = 0;
    if (*at == 'e' || *at == 'E') {
        bool sign = at[1] == '-' || at[1] == '+';
        size_t n = digits_at(at + 1 + sign);
        if (n == 0) return false;
        exponent = strtol(at + 1, NULL, 10);
        if (labs(exponent) > EXPONENT_MAX) return false;
        at += 1 + sign + n;
    }
    if (*at) return false;
    size_t len = whole + fraction;
    snprintf(plain + len, sizeof plain - len, "e%ld",
             exponent - (long)fraction);
    *x = strtod(plain, NULL);
    return true;
}
