/*
 * plot.h - pictures of numbers: line charts and bars as SVG, one below the other.
 *
 * Written to be put on a page as it is: no script, no font of its own, and its
 * colours follow the page's light or dark scheme (prefers-color-scheme). Curves
 * differ in dashes as well as in colour.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "units.h"

#include <stdbool.h>
#include <stddef.h>

typedef const char *show_number(char buf[UNIT_TEXT], double value);

/* From the left (the bottom) to the right (the top); `from` may be the larger
 * one. Ticks are `step` apart: added, or on a logarithmic scale multiplied. */
struct scale {
    const char *title;
    double from, to, step;
    bool log;
    show_number *show; /* what ticks are called */
};

#define CURVE_POINTS 241

struct curve {
    const char *name;
    double x[CURVE_POINTS], y[CURVE_POINTS]; /* NaN: a gap */
    size_t points;
    size_t colour; /* any number; the same one, the same colour */
    bool limit;    /* what cannot be beaten: grey, dotted */
};

struct dot {
    double x, y;
    const char *text;
};

struct chart {
    const char *title;
    struct scale x, y;
    const struct curve *curves;
    size_t curve_count;
    const struct dot *dots;
    size_t dot_count;
    double beyond; /* x from which on the ground is shaded; 0: nowhere */
    const char *beyond_text;
};

struct bar {
    const char *name;
    double value;
    double mark;      /* a line across it; 0: none */
    const char *text; /* at its end */
    int group;        /* bars of one group have one colour */
};

struct bars {
    const char *title;
    const struct bar *bars;
    size_t count;
    double limit; /* a line across all of them; 0: none */
    const char *limit_text;
};

struct plot;

struct plot *plot_new(void);
void plot_chart(struct plot *p, const struct chart *chart);
void plot_bars(struct plot *p, const struct bars *bars);

/* Writes it beside `path` and renames; "-" is stdout. Frees it. */
void plot_save(struct plot *p, const char *path);

#endif
