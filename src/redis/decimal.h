/*
 * decimal.h - fractions as text, in commands, URLs and stored words: with a point,
 * whatever the program's locale writes (setlocale() of a German program makes
 * printf() say 0,01, and strtod() expect it).
 */
#ifndef SEEN_REDIS_DECIMAL_H
#define SEEN_REDIS_DECIMAL_H

#include <stdbool.h>

#define SEEN_DECIMAL 32 /* bytes of text, with a NUL */

/* Of a finite number; 17 digits, from which it can be read again exactly. */
void seen_decimal_put(double x, char to[SEEN_DECIMAL]);

/* "12", "0.001", "1e-3", up to 31 characters and nothing behind; false: it is
 * no such number. */
bool seen_decimal_get(const char *text, double *x);

#endif
