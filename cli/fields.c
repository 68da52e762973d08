/* fields.c - see fields.h. */
#define _GNU_SOURCE /* memmem */

#include "fields.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

struct range {
    size_t from, to; /* fields, counted from 1, both inclusive */
};

#define MAX_RANGES 64

/* Ascending, and with fields between them: join_ranges(). */
static struct range ranges[MAX_RANGES];
static size_t range_count;

static const char *parse_number(const char *text, size_t *out)
{
    size_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (value > SIZE_MAX / 10 - 10) return NULL;
        value = value * 10 + (size_t)(*c - '0');
    }
    *out = value;
    return c;
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Fields come in the order of the line, and each of them once. */
static void join_ranges(void)
{
    size_t n = 1;
    qsort(ranges, range_count, sizeof *ranges, by_start);
    for (size_t i = 1; i < range_count; i++) {
        struct range *last = &ranges[n - 1];
        if (last->to < ranges[i].from - 1)
            ranges[n++] = ranges[i];
        else if (last->to < ranges[i].to)
            last->to = ranges[i].to;
    }
    range_count = n;
}

/* "1,3-4,7-": a list as cut has it. */
void parse_fields(const char *list)
{
    const char *c = list;
    for (;;) {
        struct range r;
        const char *start = c;
        c = parse_number(c, &r.from);
        bool open_start = c == start;
        if (c && open_start) r.from = 1;
        r.to = r.from;
        if (c && *c == '-') {
            start = ++c;
            c = parse_number(c, &r.to);
            if (c == start) {
                if (open_start) c = NULL; /* "-" alone */
                r.to = SIZE_MAX;
            }
        } else if (open_start) {
            c = NULL;
        }
        if (!c || r.from == 0 || r.to < r.from || (*c && *c != ','))
            fail("-f %s: expected fields counted from 1, such as 2 or 1,3-4",
                 list);
        if (range_count == MAX_RANGES)
            fail("-f %s: expected at most %d ranges", list, MAX_RANGES);
        ranges[range_count++] = r;
        if (!*c) break;
        c++;
    }
    join_ranges();
}

/* A place in a line: a field, and where it begins. */
struct walk {
    const char *at, *end;
    size_t field;
};

/* Where the field ends. */
static const char *field_end(const struct walk *w)
{
    const char *stop = memmem(w->at, (size_t)(w->end - w->at), key_format.delim,
                              strlen(key_format.delim));
    return stop ? stop : w->end;
}

/* False: that was the last one. */
static bool next_field(struct walk *w)
{
    const char *stop = field_end(w);
    if (stop == w->end) return false;
    w->at = stop + strlen(key_format.delim);
    w->field++;
    return true;
}

/* Fields that follow each other are one piece of the line. False: it ends before
 * the first of them. */
static bool find_piece(struct walk *w, struct range r, seen_key *piece)
{
    while (w->field < r.from)
        if (!next_field(w)) return false;
    const char *from = w->at, *stop = w->end;
    if (r.to != SIZE_MAX) {
        while (w->field < r.to && next_field(w))
            ;
        stop = field_end(w);
    }
    *piece = (seen_key){from, (size_t)(stop - from)};
    return true;
}

seen_key pick_fields(seen_key line, char *to, size_t *odd)
{
    struct walk w = {line.data, (const char *)line.data + line.len, 1};
    const size_t delim = strlen(key_format.delim);
    seen_key text, piece;
    if (!find_piece(&w, ranges[0], &text)) {
        ++*odd;
        return w.field == 1 ? line : (seen_key){to, 0};
    }
    if (w.field == 1 && text.len == line.len && ranges[0].to != SIZE_MAX)
        ++*odd; /* no DELIM in it, and the first field is wanted */
    for (size_t i = 1; i < range_count && find_piece(&w, ranges[i], &piece);
         i++) {
        if (text.data != to) memcpy(to, text.data, text.len);
        memcpy(to + text.len, key_format.delim, delim);
        memcpy(to + text.len + delim, piece.data, piece.len);
        text = (seen_key){to, text.len + delim + piece.len};
    }
    return text;
}
