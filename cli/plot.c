/* plot.c - see plot.h. */
#define _POSIX_C_SOURCE 200809L

#include "plot.h"

#include "memory.h"
#include "output.h"

#include <math.h>
#include <seen_file.h>
#include <stdlib.h>
#include <string.h>

/* Pixels. */
#define WIDTH        760
#define LEFT         112
#define RIGHT        736
#define HEAD         62 /* title and legend */
#define FOOT         58 /* ticks and the title of the axis */
#define CHART_HEIGHT 300
#define BAR_HEIGHT   24
#define BAR_LEFT     100
#define BAR_RIGHT    550
#define LETTER       7.2 /* how wide one is, about */

struct plot {
    FILE *body; /* into `bytes` */
    char *bytes;
    size_t len;
    double height; /* so far */
};

/* Class names are short because they stand on every line: h head, f faint text,
 * n note on a curve, g grid, b ground beyond, l limit, m mark, d dot, c0 c1 ... curves, r0 r1 ... bars. */
static const char style[] =
    "<style>\n"
    "text { font: 13px system-ui, sans-serif; fill: #1b1f24 }\n"
    ".h { font-size: 15px; font-weight: 600 }\n"
    ".n { paint-order: stroke; stroke: #ffffff; stroke-width: 4px }\n"
    ".f { fill: #5b6570 }\n"
    ".page { fill: #ffffff }\n"
    ".g { stroke: #e1e5ea; fill: none }\n"
    ".b { fill: #000000; fill-opacity: 0.045 }\n"
    ".l { stroke: #7a838d; stroke-dasharray: 2 4; fill: none }\n"
    ".m { stroke: #1b1f24; stroke-width: 2 }\n"
    ".d { fill: #1b1f24; stroke: #ffffff; stroke-width: 2 }\n"
    ".c { fill: none; stroke-width: 2.2 }\n"
    ".c0 { stroke: #00805a; stroke-dasharray: 3 3 }\n"
    ".c1 { stroke: #0068b5 }\n"
    ".c2 { stroke: #c45a00; stroke-dasharray: 9 3 }\n"
    ".c3 { stroke: #8a3fb0; stroke-dasharray: 12 3 3 3 }\n"
    ".c4 { stroke: #b3263a; stroke-dasharray: 6 6 }\n"
    ".c5 { stroke: #6b5b00; stroke-dasharray: 14 4 }\n"
    ".c6 { stroke: #c2006b; stroke-dasharray: 5 2 }\n"
    ".r0 { fill: #0068b5 }\n"
    ".r1 { fill: #c45a00 }\n"
    ".r2 { fill: #00805a }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "text { fill: #e6e9ed }\n"
    ".f { fill: #9aa5b1 }\n"
    ".page { fill: #14181d }\n"
    ".n { stroke: #14181d }\n"
    ".g { stroke: #2c343d }\n"
    ".b { fill: #ffffff; fill-opacity: 0.055 }\n"
    ".l { stroke: #8f99a4 }\n"
    ".m { stroke: #ffffff }\n"
    ".d { fill: #e6e9ed; stroke: #14181d }\n"
    ".c0 { stroke: #46c391 }\n"
    ".c1 { stroke: #5aa9e6 }\n"
    ".c2 { stroke: #f0944d }\n"
    ".c3 { stroke: #c792ea }\n"
    ".c4 { stroke: #ff7a85 }\n"
    ".c5 { stroke: #d6c25a }\n"
    ".c6 { stroke: #ff7ab8 }\n"
    ".r0 { fill: #3f8fd0 }\n"
    ".r1 { fill: #d97c35 }\n"
    ".r2 { fill: #2fa878 }\n"
    "}\n"
    "</style>\n";

#define CURVE_COLOURS 7
#define BAR_COLOURS   3

/* ---- Pieces ------------------------------------------------------------- */

static void put_escaped(struct plot *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", p->body);
        else if (*text == '&')
            fputs("&amp;", p->body);
        else
            fputc(*text, p->body);
    }
}

static void put_text(struct plot *p, double x, double y, const char *kind,
                     const char *anchor, const char *text)
{
    fprintf(p->body,
            "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x,
            y, kind, anchor);
    put_escaped(p, text);
    fputs("</text>\n", p->body);
}

static void put_line(struct plot *p, double x1, double y1, double x2, double y2,
                     const char *kind)
{
    fprintf(p->body,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
            "class=\"%s\"/>\n",
            x1, y1, x2, y2, kind);
}

/* ---- Line charts -------------------------------------------------------- */

/* 0 at `from`, 1 at `to`. */
static double part(const struct scale *s, double value)
{
    if (s->log) return log(value / s->from) / log(s->to / s->from);
    return (value - s->from) / (s->to - s->from);
}

struct frame {
    double top, bottom; /* of the ground that curves are drawn on */
    const struct chart *chart;
};

static double at_x(const struct frame *f, double x)
{
    return LEFT + (RIGHT - LEFT) * part(&f->chart->x, x);
}

static double at_y(const struct frame *f, double y)
{
    return f->bottom - (f->bottom - f->top) * part(&f->chart->y, y);
}

/* The i-th tick; NaN: there are no more. */
static double tick(const struct scale *s, int i)
{
    double value = s->log ? s->from * pow(s->step, i) : s->from + i * s->step;
    return part(s, value) <= 1 + 1e-9 ? value : NAN;
}

static void put_axes(struct plot *p, const struct frame *f)
{
    const struct scale *x = &f->chart->x, *y = &f->chart->y;
    char text[UNIT_TEXT];
    for (int i = 0; !isnan(tick(y, i)); i++) {
        double at = at_y(f, tick(y, i));
        put_line(p, LEFT, at, RIGHT, at, "g");
        put_text(p, LEFT - 8, at + 4, "f", "end", y->show(text, tick(y, i)));
    }
    for (int i = 0; !isnan(tick(x, i)); i++) {
        double at = at_x(f, tick(x, i));
        put_line(p, at, f->top, at, f->bottom, "g");
        put_text(p, at, f->bottom + 18, "f", "middle",
                 x->show(text, tick(x, i)));
    }
    put_text(p, (LEFT + RIGHT) / 2.0, f->bottom + 38, "f", "middle", x->title);
    fprintf(p->body,
            "<text transform=\"translate(18 %.1f) rotate(-90)\" class=\"f\" "
            "text-anchor=\"middle\">",
            (f->top + f->bottom) / 2);
    put_escaped(p, y->title);
    fputs("</text>\n", p->body);
}

static const char *curve_kind(char buf[16], const struct curve *c)
{
    if (c->limit) return "l";
    snprintf(buf, 16, "c c%zu", c->colour % CURVE_COLOURS);
    return buf;
}

/* Breaks where it leaves the chart, too. */
static void put_curve(struct plot *p, const struct frame *f,
                      const struct curve *c)
{
    char kind[16];
    bool drawing = false;
    fprintf(p->body, "<path class=\"%s\" d=\"", curve_kind(kind, c));
    for (size_t i = 0; i < c->points; i++) {
        double x = part(&f->chart->x, c->x[i]), y = part(&f->chart->y, c->y[i]);
        if (!(x >= -1e-9 && x <= 1 + 1e-9 && y >= -1e-9 && y <= 1 + 1e-9)) {
            drawing = false;
            continue;
        }
        fprintf(p->body, "%c%.1f %.1f", drawing ? 'L' : 'M', at_x(f, c->x[i]),
                at_y(f, c->y[i]));
        drawing = true;
    }
    fputs("\"/>\n", p->body);
}

static double legend_width(const struct curve *c)
{
    return 29 + LETTER * (double)strlen(c->name) + 12;
}

/* From the left edge of the chart, or further left where it is long. */
static void put_legend(struct plot *p, const struct chart *c, double y)
{
    double x = RIGHT;
    for (size_t i = 0; i < c->curve_count; i++)
        x -= legend_width(&c->curves[i]);
    x = fmin(LEFT, fmax(16, x));
    for (size_t i = 0; i < c->curve_count; i++) {
        char kind[16];
        put_line(p, x, y - 4, x + 24, y - 4, curve_kind(kind, &c->curves[i]));
        put_text(p, x + 29, y, "t", "start", c->curves[i].name);
        x += legend_width(&c->curves[i]);
    }
}

static void put_dot(struct plot *p, const struct frame *f, const struct dot *d)
{
    double x = at_x(f, d->x), y = at_y(f, d->y);
    bool room = x + 14 + LETTER * (double)strlen(d->text) < RIGHT;
    fprintf(p->body, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" class=\"d\"/>\n",
            x, y);
    put_text(p, room ? x + 10 : x - 10, y + (room ? 18 : -10), "n",
             room ? "start" : "end", d->text);
}

void plot_chart(struct plot *p, const struct chart *chart)
{
    struct frame f = {.top = p->height + HEAD, .chart = chart};
    f.bottom = f.top + CHART_HEIGHT;
    put_text(p, LEFT, p->height + 26, "h", "start", chart->title);
    put_legend(p, chart, p->height + 48);
    if (chart->beyond > 0) {
        double x = at_x(&f, chart->beyond);
        fprintf(p->body,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
                "class=\"b\"/>\n",
                x, f.top, RIGHT - x, CHART_HEIGHT);
        put_text(p, RIGHT - 8, f.bottom - 10, "f", "end", chart->beyond_text);
    }
    put_axes(p, &f);
    for (size_t i = 0; i < chart->curve_count; i++)
        put_curve(p, &f, &chart->curves[i]);
    for (size_t i = 0; i < chart->dot_count; i++)
        put_dot(p, &f, &chart->dots[i]);
    p->height = f.bottom + FOOT;
}

/* ---- Bars --------------------------------------------------------------- */

void plot_bars(struct plot *p, const struct bars *b)
{
    double longest = b->limit, top = p->height + 44;
    for (size_t i = 0; i < b->count; i++)
        longest = fmax(longest, fmax(b->bars[i].value, b->bars[i].mark));
    double scale = (BAR_RIGHT - BAR_LEFT) / (longest > 0 ? longest : 1);
    put_text(p, 16, p->height + 26, "h", "start", b->title);
    for (size_t i = 0; i < b->count; i++) {
        const struct bar *bar = &b->bars[i];
        double y = top + BAR_HEIGHT * (double)i;
        double width = fmax(scale * bar->value, 1);
        put_text(p, BAR_LEFT - 10, y + 15, "t", "end", bar->name);
        fprintf(p->body,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
                "rx=\"2\" class=\"r%d\"/>\n",
                BAR_LEFT, y + 2, width, BAR_HEIGHT - 6,
                bar->group % BAR_COLOURS);
        if (bar->mark > 0)
            put_line(p, BAR_LEFT + scale * bar->mark, y,
                     BAR_LEFT + scale * bar->mark, y + BAR_HEIGHT - 2, "m");
        put_text(p, BAR_LEFT + width + 8, y + 15, "f", "start", bar->text);
    }
    double bottom = top + BAR_HEIGHT * (double)b->count;
    if (b->limit > 0) {
        double x = BAR_LEFT + scale * b->limit;
        put_line(p, x, top - 4, x, bottom + 2, "l");
        put_text(p, x, bottom + 18, "f", "middle", b->limit_text);
    }
    p->height = bottom + (b->limit > 0 ? 34 : 16);
}

/* ---- The whole ---------------------------------------------------------- */

struct plot *plot_new(void)
{
    struct plot *p = must_have(calloc(1, sizeof *p));
    p->body = must_have(open_memstream(&p->bytes, &p->len));
    p->height = 8;
    return p;
}

void plot_save(struct plot *p, const char *path)
{
    char *all;
    size_t len;
    if (fclose(p->body) != 0) fail("out of memory");
    FILE *to = must_have(open_memstream(&all, &len));
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n%s"
            "<rect width=\"100%%\" height=\"100%%\" class=\"page\"/>\n%s"
            "</svg>\n",
            WIDTH, p->height, WIDTH, p->height, style, p->bytes);
    if (fclose(to) != 0) fail("out of memory");
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    if (strcmp(path, "-") == 0)
        write_all(all, len);
    else if (seen_file_write(path, all, len, &outcome, &error) != SEEN_OK)
        fail("%s: %s", path, error.text);
    free(all);
    free(p->bytes);
    free(p);
}
