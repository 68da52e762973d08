/*
 * cmd_plan.c - seen plan: what a filter costs before you make it, kind by kind.
 */
#include "fleet.h"
#include "input.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "pack.h"
#include "plot.h"
#include "spec.h"
#include "units.h"

#include <math.h>
#include <seen.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *plot, *fleet;
    bool quiet, json;
} opt;

static const struct option options[] = {
    ITEMS_ROW,
    {'p', NULL, "RATE", OPTION_RATE, &wish.rate,
     "false-positive rate: 0.001, 0.1%, 1/1000"},
    {0, "bits", "M", OPTION_COUNT, &wish.bits, "bits of the filter"},
    HASHES_ROW,
    {'M', NULL, "MEMORY", OPTION_SIZE, &wish.memory,
     "memory to use, instead of --bits: 64MiB, 1G"},
    {0, "kind", "KIND", OPTION_KIND, &wish.kind, "this kind only"},
    DIALECT_ROW,
    PER_KEY_ROW,
    KEY_TYPE_ROW,
    {0, "plot", "FILE", OPTION_TEXT, &opt.plot,
     "draw it as SVG: the rate as keys come in, memory against rate; - is "
     "stdout"},
    {0, "fleet", "WISH", OPTION_TEXT, &opt.fleet,
     "servers for exposure sets instead, from users=100M,items=300 and, if you "
     "like, candidates=200,qps=1000,memory=16G,replicas=1"},
    FORCE_ROW,
    {0, "json", NULL, OPTION_FLAG, &opt.json, "the table as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- Numbers ------------------------------------------------------------ */

#define KINDS_MAX 16

struct row {
    seen_kind kind;
    const char *name;
    seen_plan plan;
    seen_error error; /* why there is no plan, if there is an error */
};

/*
 * A class, not a promise: batched lookups a second on one core. A cache line
 * costs what script/bench measured for random reads of memory of that size,
 * and half of the lookups are of keys that are not there, which a classic
 * filter answers after two lines. A sorted filter counts bits.
 */
static double lookups_per_second(const seen_plan *p)
{
    double ns_per_line = p->bytes <= 512 << 10  ? 1.5
                         : p->bytes <= 32 << 20 ? 2.5
                                                : 9;
    double lines = p->kind == SEEN_BLOOM ? (p->lines + 2) / 2.0 : p->lines;
    double counting = p->kind != SEEN_SORTED ? 0 : p->items <= 64 ? 15 : 50;
    return 1e9 / (1 + counting + ns_per_line * lines);
}

static const char *bits_option(void)
{
    return wish.memory ? "-M" : "--bits";
}

static double bits_per_key(const seen_plan *p)
{
    return (double)p->bits / (double)p->items;
}

/* The rate when the filter holds `times` as many keys as planned. */
static double rate_at(const seen_plan *p, double times)
{
    double keys = (double)p->items * times;
    return seen_plan_fpp(p, keys < 0x1p63 ? (uint64_t)keys : UINT64_MAX / 2);
}

/* Kinds that take as many keys as come: bits are nothing to plan with. */
static bool grows(seen_kind kind)
{
    return kind == SEEN_SET || kind == SEEN_SCALABLE;
}

/* Some need the number of keys only here: to tell a rate. */
static void plan_row(struct row *row, const seen_spec *spec, bool needs_keys)
{
    seen_error *e = &row->error;
    row->plan.size = sizeof row->plan;
    seen_status s = seen_plan_for(spec, &row->plan, e);
    if (s != SEEN_OK || !needs_keys || spec->items) return;
    *e = (seen_error){.status = SEEN_INVALID,
                      .field = "items",
                      .text = "items: expected, to tell a rate"};
}

static struct row plan_kind(seen_kind kind)
{
    struct row row = {.kind = kind, .name = seen_kind_name(kind)};
    seen_spec spec = {.kind = kind,
                      .items = wish.items,
                      .fpp = wish.rate,
                      .bits = wish.bits,
                      .hashes = (uint32_t)wish.hashes};
    if (grows(kind)) spec.bits = spec.hashes = 0;
    if (kind == SEEN_WINDOW) {
        /* -n alone means the last n. */
        spec.last = wish.last || wish.window_ms ? wish.last : wish.items;
        spec.window_ms = wish.window_ms;
        spec.generations = (uint32_t)wish.generations;
    }
    plan_row(&row, &spec, grows(kind));
    return row;
}

/* As the system itself would size it. */
static struct row plan_dialect(void)
{
    struct row row = {.kind = SEEN_FOREIGN, .name = wish.dialect};
    seen_spec spec = {.dialect = unpacked_name(wish.dialect),
                      .items = wish.items,
                      .fpp = wish.rate,
                      .bits = wish.bits,
                      .hashes = (uint32_t)wish.hashes,
                      .bits_per_key = wish.bits_per_key};
    plan_row(&row, &spec, true);
    return row;
}

/* A bitmap answers another question, by a bound instead of -n and -p, and so
 * does a window: they are planned for those who ask for them. */
static bool wanted(seen_kind kind)
{
    if (wish.kind != SEEN_ANY) return wish.kind == kind;
    return kind != SEEN_BITMAP && kind != SEEN_WINDOW;
}

static size_t plan_all(struct row *rows)
{
    size_t n = 0;
    if (wish.dialect) {
        rows[0] = plan_dialect();
        return 1;
    }
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY && n < KINDS_MAX; i++)
        if (wanted(seen_kind_at(i))) rows[n++] = plan_kind(seen_kind_at(i));
    return n;
}

/* ---- Text --------------------------------------------------------------- */

static void print_wish(const struct row *row)
{
    char items[UNIT_TEXT], rate[UNIT_TEXT];
    double p = wish.rate > 0 ? wish.rate : row->plan.fpp;
    if (p == 0) {
        printf("integers below %s, exactly\n\n",
               show_count(items, (double)row->plan.bits));
        return;
    }
    if (row->plan.last) printf("the last ");
    printf("%s at %s", show_many(items, (double)row->plan.items, "key"),
           show_rate(rate, p));
    printf(
        "   (least possible %.2f bits a key; an ideal Bloom filter %.3f)\n\n",
        fabs(log2(p)), fabs(log(p)) / (log(2) * log(2)));
}

static void print_table(const struct row *rows, size_t n)
{
    printf("%-8s %12s %9s %9s %6s %6s %9s   %s\n", "kind", "keys", "bits/key",
           "memory", "hashes", "lines", "lookups/s",
           "rate at 1x / 2x / 4x the keys");
    for (size_t i = 0; i < n; i++) {
        const seen_plan *p = &rows[i].plan;
        printf("%-8s ", rows[i].name);
        if (rows[i].error.status) {
            printf("%s\n", in_options(&rows[i].error, bits_option()));
            continue;
        }
        char keys[UNIT_TEXT], memory[UNIT_TEXT], speed[UNIT_TEXT];
        char one[UNIT_TEXT], two[UNIT_TEXT], four[UNIT_TEXT];
        printf("%12s %9.2f %9s %6u %6u %9s   %s / %s / %s\n",
               show_short(keys, (double)p->items), bits_per_key(p),
               show_size(memory, (double)p->bytes), p->hashes, p->lines,
               show_short(speed, 1e6 * round(lookups_per_second(p) / 1e6)),
               show_rate(one, rate_at(p, 1)), show_rate(two, rate_at(p, 2)),
               show_rate(four, rate_at(p, 4)));
    }
}

/* Rate (logarithmic) against the keys in the filter, up to four times the
 * plan. */
static void print_plot(const seen_plan *p)
{
    enum {
        width = 61,
        height = 11
    };
    double rate[width], low = log10(p->fpp) - 2, high = 0;
    for (int x = 0; x < width; x++) {
        rate[x] = log10(rate_at(p, 4.0 * fmax(x, 0.1) / (width - 1)));
    }
    printf("\nrate as keys come in, %s (| = planned)\n",
           wish.dialect ? wish.dialect : seen_kind_name(p->kind));
    for (int y = height - 1; y >= 0; y--) {
        double at = low + (high - low) * y / (height - 1);
        double step = (high - low) / (height - 1);
        char label[UNIT_TEXT], line[width + 1];
        for (int x = 0; x < width; x++) {
            bool on = fabs(rate[x] - at) <= step / 2;
            line[x] = on ? '*' : x == (width - 1) / 4 ? '|' : ' ';
        }
        line[width] = '\0';
        printf("%8s %s\n", show_rate(label, pow(10, at)), line);
    }
    printf("%8s 0%13s1x%13s2x%13s3x%13s4x\n", "keys", "", "", "", "");
}

/* ---- JSON --------------------------------------------------------------- */

static void print_json(const struct row *rows, size_t n)
{
    struct json j = {.to = stdout};
    json_open(&j, NULL, '{');
    json_open(&j, "kinds", '[');
    for (size_t i = 0; i < n; i++) {
        const seen_plan *p = &rows[i].plan;
        json_open(&j, NULL, '{');
        json_text(&j, "kind", seen_kind_name(rows[i].kind));
        if (wish.dialect) json_text(&j, "dialect", wish.dialect);
        if (rows[i].error.status) {
            json_text(&j, "problem", in_options(&rows[i].error, bits_option()));
            json_close(&j, '}');
            continue;
        }
        json_number(&j, "items", (double)p->items);
        json_number(&j, "fpp", p->fpp);
        json_number(&j, "bits", (double)p->bits);
        json_number(&j, "bits_per_key", bits_per_key(p));
        json_number(&j, "bytes", (double)p->bytes);
        json_number(&j, "hashes", p->hashes);
        json_number(&j, "lines", p->lines);
        json_number(&j, "hash_bits", p->hash_bits);
        if (p->generations) {
            json_number(&j, "generations", p->generations);
            json_number(&j, "last", (double)p->last);
            json_number(&j, "window_ms", (double)p->window_ms);
        }
        json_number(&j, "lookups_per_second", lookups_per_second(p));
        json_number(&j, "fpp_at_2x", rate_at(p, 2));
        json_number(&j, "fpp_at_4x", rate_at(p, 4));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

/* ---- Picture ------------------------------------------------------------ */

/* Rates to plan for, from the left to the right. */
#define WORST_RATE 0.1
#define BEST_RATE  1e-6

static double plotted_items;

static const char *show_memory(char buf[UNIT_TEXT], double bits)
{
    return show_size(buf, bits * plotted_items / 8);
}

/* A colour for each kind that is drawn, whichever are. */
static size_t colour_of(seen_kind kind)
{
    size_t colour = 0;
    for (size_t i = 0; seen_kind_at(i) != kind; i++) {
        if (seen_kind_at(i) == SEEN_ANY) return 0; /* of another system */
        colour +=
            seen_kind_at(i) != SEEN_BITMAP && seen_kind_at(i) != SEEN_WINDOW;
    }
    return colour;
}

/* The rate from no keys to four times the plan. */
static void rate_curve(struct curve *c, const struct row *row)
{
    c->name = row->name;
    c->colour = colour_of(row->kind);
    for (c->points = 0; c->points < CURVE_POINTS; c->points++) {
        double keys =
            4 * plotted_items * (double)c->points / (CURVE_POINTS - 1);
        c->x[c->points] = keys;
        c->y[c->points] = seen_plan_fpp(&row->plan, (uint64_t)keys);
    }
}

/* Bits a key, all of the memory counted; `kind` SEEN_ANY: the least possible. */
static void memory_curve(struct curve *c, seen_kind kind)
{
    c->name = kind == SEEN_ANY ? "least possible" : seen_kind_name(kind);
    c->limit = kind == SEEN_ANY;
    c->colour = colour_of(kind);
    for (c->points = 0; c->points < CURVE_POINTS; c->points++) {
        double p = WORST_RATE * pow(BEST_RATE / WORST_RATE,
                                    (double)c->points / (CURVE_POINTS - 1));
        seen_spec spec = {
            .kind = kind, .items = (uint64_t)plotted_items, .fpp = p};
        seen_plan plan = {.size = sizeof plan};
        c->x[c->points] = p;
        if (c->limit)
            c->y[c->points] = -log2(p);
        else if (seen_plan_for(&spec, &plan, NULL) == SEEN_OK)
            c->y[c->points] = 8 * (double)plan.bytes / plotted_items;
        else
            c->y[c->points] = NAN;
    }
}

static void draw_rates(struct plot *plot, const struct row *rows, size_t n,
                       const struct row *shown)
{
    static struct curve curves[KINDS_MAX];
    char text[64], items[UNIT_TEXT], rate[UNIT_TEXT], twice[UNIT_TEXT];
    char twice_text[96];
    size_t count = 0;
    double least = pow(10, floor(log10(shown->plan.fpp) - 1.5));
    for (size_t i = 0; i < n; i++)
        if (!rows[i].error.status && rows[i].plan.fpp >= least)
            rate_curve(&curves[count++], &rows[i]);
    snprintf(text, sizeof text, "planned: %s keys at %s",
             show_short(items, plotted_items),
             show_rate(rate, shown->plan.fpp));
    snprintf(twice_text, sizeof twice_text, "%s, twice as many: %s",
             shown->name, show_rate(twice, rate_at(&shown->plan, 2)));
    struct dot dots[] = {
        {plotted_items, shown->plan.fpp, text},
        {2 * plotted_items, rate_at(&shown->plan, 2), twice_text}};
    plot_chart(plot,
               &(struct chart){.title = "False-positive rate as keys come in",
                               .x = {"keys in the filter", 0, 4 * plotted_items,
                                     plotted_items, false, show_short},
                               .y = {"rate", least, 1, 10, true, show_rate},
                               .curves = curves,
                               .curve_count = count,
                               .dots = dots,
                               .dot_count = dots[1].y <= 1 ? 2 : 1,
                               .beyond = plotted_items,
                               .beyond_text = "more than planned"});
}

static void draw_memory(struct plot *plot, const struct row *shown)
{
    static struct curve curves[KINDS_MAX + 1];
    char title[96], items[UNIT_TEXT], text[96], memory[UNIT_TEXT];
    size_t count = 0;
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY && count < KINDS_MAX; i++)
        if (seen_kind_at(i) != SEEN_BITMAP && seen_kind_at(i) != SEEN_WINDOW)
            memory_curve(&curves[count++], seen_kind_at(i));
    memory_curve(&curves[count++], SEEN_ANY);
    double top = 64;
    for (size_t i = 0; i < count; i++)
        while (top < curves[i].y[CURVE_POINTS - 1] && top < 512)
            top *= 2;
    snprintf(title, sizeof title, "Memory for %s keys, against the rate",
             show_short(items, plotted_items));
    double bits = 8 * (double)shown->plan.bytes / plotted_items;
    snprintf(text, sizeof text, "%s: %s, %.1f bits a key", shown->name,
             show_size(memory, (double)shown->plan.bytes), bits);
    struct dot dot = {shown->plan.fpp, bits, text};
    bool inside = dot.x <= WORST_RATE && dot.x >= BEST_RATE && bits <= top;
    plot_chart(plot,
               &(struct chart){.title = title,
                               .x = {"false-positive rate", WORST_RATE,
                                     BEST_RATE, 0.1, true, show_rate},
                               .y = {"memory", 2, top, 2, true, show_memory},
                               .curves = curves,
                               .curve_count = count,
                               .dots = &dot,
                               .dot_count = inside});
}

static void draw(const struct row *rows, size_t n, const struct row *shown)
{
    struct plot *plot = plot_new();
    plotted_items = (double)shown->plan.items;
    if (!(shown->plan.fpp > 0))
        fail("--plot: a bitmap is exact: there is no rate to draw");
    draw_rates(plot, rows, n, shown);
    draw_memory(plot, shown);
    plot_save(plot, opt.plot);
}

/* ---- Run ---------------------------------------------------------------- */

static const struct row *first_planned(const struct row *rows, size_t n,
                                       seen_kind preferred)
{
    const struct row *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (!rows[i].error.status && (!found || rows[i].kind == preferred))
            found = &rows[i];
    return found;
}

static int run(char **operands, size_t n)
{
    if (n > 0)
        fail("%s: plan takes options only; try -n 1e6 -p 1%%", operands[0]);
    check_key_format();
    may_replace_svg(opt.plot);
    if (opt.fleet) {
        if (wish_given() || key_format.type || opt.plot)
            fail("--fleet plans servers, not a filter: it goes with --json "
                 "alone");
        plan_fleet(opt.fleet, opt.json);
        finish_output();
        return EXIT_DONE;
    }
    if (wish.memory && wish.bits) fail("-M and --bits say the same: give one");
    if (wish.memory) wish.bits = bits_within(wish.memory);
    if (wish.hashes > UINT32_MAX) fail("--hashes: expected at most 255");
    if (wish.generations > UINT32_MAX)
        fail("--generations: expected at most 63");
    if (wish.dialect && wish.kind != SEEN_ANY)
        fail("--dialect and --kind exclude each other");
    if (wish.last || wish.window_ms || wish.generations) {
        if (wish.dialect || (wish.kind != SEEN_ANY && wish.kind != SEEN_WINDOW))
            fail("--last, --window and --generations are for windows, not for "
                 "%s %s",
                 wish.dialect ? "--dialect" : "--kind",
                 wish.dialect ? wish.dialect : seen_kind_name(wish.kind));
        wish.kind = SEEN_WINDOW;
    }
    if (wish.bits_per_key > 0 && !wish.dialect)
        fail("--bits-per-key requires --dialect; otherwise give -p or --bits");
    struct row rows[KINDS_MAX];
    size_t kinds = plan_all(rows);
    const struct row *shown = first_planned(rows, kinds, SEEN_BLOCKED);
    /* These take any wish; what the others say about it is the answer. */
    if (!shown || (grows(shown->kind) && wish.kind != shown->kind))
        fail("%s%s", in_options(&rows[0].error, bits_option()),
             wish.items || wish.rate > 0 || wish.bits || wish.dialect
                 ? ""
                 : "; for example: seen plan -n 1e6 -p 1%");

    if (opt.plot) draw(rows, kinds, shown);
    bool only_plot = opt.plot && strcmp(opt.plot, "-") == 0;
    if (opt.json && !only_plot) {
        print_json(rows, kinds);
    } else if (!only_plot) {
        print_wish(shown);
        print_table(rows, kinds);
        if (shown->kind != SEEN_SET && shown->plan.fpp > 0)
            print_plot(&shown->plan);
    }
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen plan -n 1e9 -p 0.001",
    "memory and speed of every kind for a billion keys at 0.1 %",
    "seen plan -n 10M -M 16MiB",
    "the rate that 16 MiB give ten million keys",
    "seen plan -M 1G -p 1/1000 --kind blocked --json",
    "how many keys fit into a gigabyte, for scripts",
    "seen plan --window 30d -n 5M -p 0.1%",
    "a window that forgets after 30 days, for 5 million keys a month",
    "seen plan --dialect gozero -n 1e6",
    "what go-zero advises for a million keys",
    "seen plan -n 1e9 -p 0.1% --plot plan.svg",
    "the same as two charts: the rate as keys come in, memory against rate",
    "seen plan --fleet users=100M,items=300,candidates=500,qps=50k",
    "memory, processors and Redis nodes for a feed of 100 million users",
    NULL,
};

static const struct option *const groups[] = {options, window_options, NULL};

const struct verb verb_plan = {
    .name = "plan",
    .summary = "what a filter costs: memory, rate, speed",
    .operands = "",
    .text = "Set any two of -n, -p and --bits (or -M); the third is derived. "
            "Given all\n"
            "three, the bits must be enough, and all of them are used: a "
            "cuckoo filter\n"
            "with a twentieth more than it needs adds twice as fast. --hashes\n"
            "sets the bits per key, too. `lines` is how many cache lines a "
            "lookup of a\n"
            "present key reads; lookups/s is the order of magnitude to expect "
            "from one\n"
            "core in batches. A window requires --last, or --window and -n, "
            "and -p; its\n"
            "bits per key count the keys that it promises to keep.\n"
            "\n"
            "--fleet plans servers for exposure sets, from what you know of "
            "your users\n"
            "and from measured costs, and prints the formula for each figure.",
    .examples = examples,
    .options = groups,
    .run = run,
};
