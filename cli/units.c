/* units.c - see units.h. Numbers never depend on the locale: the program does
 * not set one. */
#include "units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

/* Decimal unless it says "i", as disks and networks count. */
static const struct unit multiples[] = {
    {"", 1},     {"k", 1e3},     {"K", 1e3},     {"M", 1e6},     {"G", 1e9},
    {"T", 1e12}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
};

static const struct unit times[] = {{"ms", 1},      {"s", 1e3},
                                    {"m", 60e3},    {"h", 3600e3},
                                    {"d", 86400e3}, {"w", 7 * 86400e3}};

#define TIMES (sizeof times / sizeof *times)

/* A plain decimal number at the start of text: no sign, hex, inf or nan. */
static bool number(const char *text, double *value, const char **rest)
{
    if (!(*text >= '0' && *text <= '9') &&
        !(*text == '.' && text[1] >= '0' && text[1] <= '9'))
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
    char *end;
    *value = strtod(text, &end);
    *rest = end;
    return true;
}

static bool multiple(const char *name, double *factor)
{
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++)
        if (strcmp(name, multiples[i].name) == 0) {
            *factor = multiples[i].factor;
            return true;
        }
    return false;
}

/* Digits alone are read exactly; a double would round above 2^53. */
static bool exact(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static const char *whole(const char *text, const char *expected, uint64_t *out)
{
    uint64_t value;
    if (!exact(text, &value)) {
        double number_value, factor;
        const char *rest;
        if (!number(text, &number_value, &rest) || !multiple(rest, &factor))
            return expected;
        number_value *= factor;
        if (!(number_value < 0x1p64)) return "a number below 2^64";
        /* 1.5G is whole, and so is 2.3M although 2.3 * 1e6 is not quite. */
        if (fabs(number_value - nearbyint(number_value)) > 1e-6)
            return "a whole number";
        value = (uint64_t)nearbyint(number_value);
    }
    if (value == 0) return "at least 1";
    *out = value;
    return NULL;
}

const char *parse_count(const char *text, uint64_t *out)
{
    return whole(text, "a count such as 1000, 1e6, 10M or 1.5G", out);
}

const char *parse_size(const char *text, uint64_t *out)
{
    char trimmed[64];
    size_t len = strlen(text);
    if (len > 0 && len < sizeof trimmed && text[len - 1] == 'B') {
        memcpy(trimmed, text, len - 1);
        trimmed[len - 1] = '\0';
        text = trimmed;
    }
    return whole(text, "a size such as 512, 100MB, 64MiB or 1.5G", out);
}

const char *parse_rate(const char *text, double *out)
{
    static const char *const expected =
        "a rate above 0 and below 1, such as 0.01, 1e-6, 0.1% or 1/1000";
    double value, divisor;
    const char *rest;
    if (!number(text, &value, &rest)) return expected;
    if (strcmp(rest, "%") == 0) {
        value /= 100;
    } else if (*rest == '/') {
        if (!number(rest + 1, &divisor, &rest) || *rest) return expected;
        value /= divisor;
    } else if (*rest) {
        return expected;
    }
    if (!(value > 0 && value < 1)) return expected;
    *out = value;
    return NULL;
}

const char *parse_real(const char *text, double *out)
{
    double value;
    const char *rest;
    if (!number(text, &value, &rest) || *rest || !(value > 0 && value < 1e300))
        return "a number above 0, such as 10 or 9.9";
    *out = value;
    return NULL;
}

const char *parse_time(const char *text, uint64_t *out)
{
    static const char *const expected =
        "a time with its unit, such as 500ms, 30s, 30m, 12h or 5d";
    double value;
    const char *rest;
    if (!number(text, &value, &rest)) return expected;
    for (size_t i = 0; i < TIMES; i++) {
        if (strcmp(rest, times[i].name) != 0) continue;
        value = nearbyint(value * times[i].factor);
        if (!(value >= 1 && value < 0x1p53)) return "at least 1ms";
        *out = (uint64_t)value;
        return NULL;
    }
    return expected;
}

const char *parse_wait(const char *text, uint64_t *out)
{
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return NULL;
    }
    return parse_time(text, out) ? "0, or a time such as 500ms, 30s or 5m"
                                 : NULL;
}

/* ---- For people --------------------------------------------------------- */

const char *show_count(char buf[UNIT_TEXT], double n)
{
    if (!(n < 1e18)) {
        snprintf(buf, UNIT_TEXT, "%.3g", n);
        return buf;
    }
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%.0f", n);
    char *to = buf;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}

static const char *scaled(char *buf, double x, const char *const *units)
{
    while (x >= 999.5 && units[1]) {
        x /= 1000;
        units++;
    }
    int decimals = x >= 99.95 || x == floor(x) ? 0 : x >= 9.995 ? 1 : 2;
    snprintf(buf, UNIT_TEXT, "%.*f%s", decimals, x, *units);
    return buf;
}

const char *show_size(char buf[UNIT_TEXT], double bytes)
{
    static const char *const units[] = {" B",  " kB", " MB", " GB",
                                        " TB", " PB", " EB", NULL};
    return scaled(buf, bytes, units);
}

const char *show_short(char buf[UNIT_TEXT], double n)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E", NULL};
    return scaled(buf, n, units);
}

static const char *of_things(char *buf, double n, const char *thing)
{
    size_t len = strlen(buf), last = strlen(thing) - 1;
    const char *ending = n == 1 ? "" : thing[last] == 'h' ? "es" : "s";
    snprintf(buf + len, UNIT_TEXT - len, " %s%s", thing, ending);
    return buf;
}

const char *show_many(char buf[UNIT_TEXT], double n, const char *thing)
{
    show_count(buf, n);
    return of_things(buf, n, thing);
}

const char *show_about(char buf[UNIT_TEXT], double n, const char *thing)
{
    show_short(buf, n);
    return of_things(buf, n, thing);
}

const char *show_rate(char buf[UNIT_TEXT], double p)
{
    if (isnan(p))
        snprintf(buf, UNIT_TEXT, "full");
    else if (p >= 0.99995)
        snprintf(buf, UNIT_TEXT, "100%%");
    else if (p >= 0.9999e-4) /* that, or nearly */
        snprintf(buf, UNIT_TEXT, "%.3g%%", p * 100);
    else
        snprintf(buf, UNIT_TEXT, "%.2g", p);
    return buf;
}

uint64_t planned_items(const seen_info *info)
{
    return info->grows && !info->dialect ? 0 : info->capacity;
}

const char *show_keys(char buf[UNIT_TEXT], const seen_info *info,
                      const char *thing)
{
    bool exact = info->kind == SEEN_BITMAP || info->kind == SEEN_SET ||
                 info->kind == SEEN_CUCKOO || seen_kind_built(info->kind);
    char count[UNIT_TEXT];
    snprintf(buf, UNIT_TEXT, "%s%.25s", exact ? "" : "about ",
             thing ? show_many(count, (double)info->items, thing)
                   : show_count(count, (double)info->items));
    return buf;
}

/* Weeks are for typing. */
const char *show_time(char buf[UNIT_TEXT], uint64_t ms)
{
    size_t unit = TIMES - 2;
    while (unit > 0 && ms % (uint64_t)times[unit].factor != 0)
        unit--;
    snprintf(buf, UNIT_TEXT, "%llu%s",
             (unsigned long long)(ms / (uint64_t)times[unit].factor),
             times[unit].name);
    return buf;
}

const char *show_age(char buf[UNIT_TEXT], uint64_t ms)
{
    size_t unit = TIMES - 2;
    while (unit > 0 && (double)ms < times[unit].factor)
        unit--;
    double x = (double)ms / times[unit].factor;
    snprintf(buf, UNIT_TEXT, "%.*f %s", x < 10 && unit > 0 ? 1 : 0, x,
             times[unit].name);
    return buf;
}
