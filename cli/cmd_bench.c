/* cmd_bench.c - seen bench: the kinds of filters on this machine. */
#include "measure.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "plot.h"
#include "progress.h"
#include "spec.h"
#include "units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct {
    uint64_t items, key_bytes;
    double rate;
    seen_kind kind;
    const char *plot;
    bool keyed, quiet, json;
} opt;

static const struct option options[] = {
    {'n', NULL, "ITEMS", OPTION_COUNT, &opt.items, "keys to hold (default 1M)"},
    {'p', NULL, "RATE", OPTION_RATE, &opt.rate,
     "false-positive rate (default 1%)"},
    {0, "kind", "KIND", OPTION_KIND, &opt.kind, "this kind only"},
    {0, "key-bytes", "B", OPTION_COUNT, &opt.key_bytes,
     "length of a key (default 16)"},
    {0, "keyed", NULL, OPTION_FLAG, &opt.keyed,
     "hash with a secret: for keys that an attacker may choose"},
    {0, "plot", "FILE", OPTION_TEXT, &opt.plot, "draw it as SVG; - is stdout"},
    FORCE_ROW,
    {0, "json", NULL, OPTION_FLAG, &opt.json, "the table as JSON"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet, "no progress on stderr"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

#define KINDS_MAX 16

/* ---- Progress ----------------------------------------------------------- */

static const char *_Atomic under_way, *_Atomic doing;
static _Atomic double done;

static void note_progress(const char *what, double part)
{
    doing = what;
    done = part;
}

static void describe(char *buf, size_t cap)
{
    const char *kind = under_way, *what = doing;
    snprintf(buf, cap, "%s: %s, %.0f%%; %.0f s", kind ? kind : "",
             what ? what : "", 100 * done, seconds_running());
}

/* ---- Text --------------------------------------------------------------- */

static double per_second(double ns)
{
    return 1e9 / ns;
}

/* What one lookup in a batch costs, in random reads of memory. */
static double reads(const struct measured *m)
{
    return m->batch_ns / m->read_ns;
}

static void print_text(const struct measured *m, size_t n)
{
    char items[UNIT_TEXT], rate[UNIT_TEXT];
    printf("%s of %llu bytes at %s, one thread\n\n",
           show_many(items, (double)opt.items, "key"),
           (unsigned long long)opt.key_bytes, show_rate(rate, opt.rate));
    printf("%-8s %8s %8s %8s %18s %8s %8s   %s\n", "", "", "bits", "",
           "lookups/s", "random", "reads a", "rate");
    printf("%-8s %8s %8s %8s %9s %8s %8s %8s   %s\n", "kind", "memory", "a key",
           "adds/s", "one by 1", "batches", "reads/s", "lookup",
           "promised, measured");
    for (size_t i = 0; i < n; i++, m++) {
        char a[UNIT_TEXT], b[UNIT_TEXT], c[UNIT_TEXT], d[UNIT_TEXT];
        char e[UNIT_TEXT], f[UNIT_TEXT], g[UNIT_TEXT];
        printf("%-8s ", seen_kind_name(m->kind));
        if (m->error.status) {
            printf("%s\n", in_options(&m->error, "--bits"));
            continue;
        }
        printf("%8s %8.2f %8s %9s %8s %8s %8.2f   %s, %s\n",
               show_size(a, (double)m->bytes),
               8 * (double)m->bytes / (double)opt.items,
               show_short(b, per_second(m->add_ns)),
               show_short(c, per_second(m->single_ns)),
               show_short(d, per_second(m->batch_ns)),
               show_short(e, per_second(m->read_ns)), reads(m),
               show_rate(f, m->plan.fpp),
               m->wrong ? show_rate(g, m->rate) : "none wrong");
    }
}

/* ---- JSON --------------------------------------------------------------- */

static void print_json(const struct measured *m, size_t n)
{
    struct json j = {.to = stdout};
    json_open(&j, NULL, '{');
    json_number(&j, "items", (double)opt.items);
    json_number(&j, "fpp", opt.rate);
    json_number(&j, "key_bytes", (double)opt.key_bytes);
    json_bool(&j, "keyed", opt.keyed);
    json_open(&j, "kinds", '[');
    for (size_t i = 0; i < n; i++, m++) {
        json_open(&j, NULL, '{');
        json_text(&j, "kind", seen_kind_name(m->kind));
        if (m->error.status) {
            json_text(&j, "problem", in_options(&m->error, "--bits"));
            json_close(&j, '}');
            continue;
        }
        json_number(&j, "bytes", (double)m->bytes);
        json_number(&j, "adds_per_second", per_second(m->add_ns));
        json_number(&j, "lookups_per_second", per_second(m->single_ns));
        json_number(&j, "lookups_per_second_batch", per_second(m->batch_ns));
        json_number(&j, "random_reads_per_second", per_second(m->read_ns));
        json_number(&j, "reads_per_lookup_batch", reads(m));
        json_number(&j, "fpp", m->plan.fpp);
        json_number(&j, "fpp_measured", m->rate);
        json_number(&j, "probes", (double)m->probes);
        json_number(&j, "wrong", (double)m->wrong);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

/* ---- Picture ------------------------------------------------------------ */

#define TEXT 64

static void draw_time(struct plot *p, const char *title,
                      const struct measured *m, size_t n,
                      double (*ns_of)(const struct measured *m))
{
    struct bar bars[KINDS_MAX];
    char text[KINDS_MAX][TEXT], number[UNIT_TEXT];
    size_t count = 0;
    for (size_t i = 0; i < n; i++, m++) {
        if (m->error.status) continue;
        double ns = ns_of(m);
        snprintf(text[count], TEXT, "%.1f ns, %s/s", ns,
                 show_short(number, per_second(ns)));
        bars[count] = (struct bar){seen_kind_name(m->kind), ns, m->read_ns,
                                   text[count], 0};
        count++;
    }
    plot_bars(p, &(struct bars){.title = title, .bars = bars, .count = count});
}

static double add_ns(const struct measured *m)
{
    return m->add_ns;
}

static double single_ns(const struct measured *m)
{
    return m->single_ns;
}

static double batch_ns(const struct measured *m)
{
    return m->batch_ns;
}

static void draw_rate(struct plot *p, const struct measured *m, size_t n)
{
    struct bar bars[KINDS_MAX];
    char text[KINDS_MAX][TEXT], a[UNIT_TEXT], b[UNIT_TEXT];
    size_t count = 0;
    for (size_t i = 0; i < n; i++, m++) {
        if (m->error.status || !m->wrong) continue; /* as good as exact */
        snprintf(text[count], TEXT, "%s, promised %s", show_rate(a, m->rate),
                 show_rate(b, m->plan.fpp));
        bars[count] =
            (struct bar){seen_kind_name(m->kind), m->rate, 0, text[count], 1};
        count++;
    }
    if (!count) return;
    plot_bars(p, &(struct bars){.title = "Wrong answers, measured",
                                .bars = bars,
                                .count = count,
                                .limit = opt.rate,
                                .limit_text = "asked for"});
}

static void draw(const struct measured *m, size_t n)
{
    struct plot *p = plot_new();
    char title[128], items[UNIT_TEXT], rate[UNIT_TEXT];
    snprintf(title, sizeof title,
             "One lookup, in batches; %s keys of %llu bytes at %s "
             "(mark: one random read)",
             show_short(items, (double)opt.items),
             (unsigned long long)opt.key_bytes, show_rate(rate, opt.rate));
    draw_time(p, title, m, n, batch_ns);
    draw_time(p, "One lookup, each by itself", m, n, single_ns);
    draw_time(p, "One add, in batches", m, n, add_ns);
    draw_rate(p, m, n);
    plot_save(p, opt.plot);
}

/* ---- Run ---------------------------------------------------------------- */

/* Bitmaps have no keys of some length, no -n and no rate: nothing of the table. */
static bool wanted(seen_kind kind)
{
    return opt.kind != SEEN_ANY ? opt.kind == kind : kind != SEEN_BITMAP;
}

static struct measured measure_kind(seen_kind kind)
{
    static const uint8_t secret[16] = "seen bench";
    seen_spec spec = {.kind = kind, .items = opt.items, .fpp = opt.rate};
    if (kind == SEEN_WINDOW) spec.last = opt.items; /* all that is asked for */
    if (opt.keyed) {
        spec.flags = SEEN_KEYED;
        spec.secret = secret;
    }
    under_way = seen_kind_name(kind);
    return measure(&spec, (size_t)opt.key_bytes, note_progress);
}

static int run(char **operands, size_t n)
{
    static struct measured all[KINDS_MAX];
    size_t kinds = 0;
    if (n > 0)
        fail("%s: bench takes options only; try -n 1e6 -p 1%%", operands[0]);
    may_replace_svg(opt.plot);
    if (!opt.items) opt.items = 1000000;
    if (!(opt.rate > 0)) opt.rate = 0.01;
    if (!opt.key_bytes) opt.key_bytes = 16;
    if (opt.key_bytes < LEAST_KEY_BYTES || opt.key_bytes > KEY_BYTES_MAX)
        fail("--key-bytes %llu: expected %d to %d",
             (unsigned long long)opt.key_bytes, LEAST_KEY_BYTES, KEY_BYTES_MAX);
    if (opt.kind == SEEN_BITMAP)
        fail("--kind bitmap: takes numbers below a bound, not keys; its speed "
             "is that of random reads, which every row shows");
    start_progress(describe, opt.quiet);
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY && kinds < KINDS_MAX; i++)
        if (wanted(seen_kind_at(i)))
            all[kinds++] = measure_kind(seen_kind_at(i));
    end_progress();
    if (opt.kind != SEEN_ANY && all[0].error.status)
        fail("%s", in_options(&all[0].error, "--bits"));

    if (opt.plot) draw(all, kinds);
    if (opt.plot && strcmp(opt.plot, "-") == 0)
        ; /* it is the result */
    else if (opt.json)
        print_json(all, kinds);
    else
        print_text(all, kinds);
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen bench",
    "every kind, with a million keys at 1 %",
    "seen bench --kind blocked -n 10M -p 0.1% --key-bytes 40",
    "your sizes: keys, rate, bytes of a key",
    "seen bench -n 100k --plot bench.svg",
    "the same as a picture",
    "seen bench --kind bloom -n 100k --json | jq '.kinds[0].fpp_measured'",
    "the measured rate alone, for scripts",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_bench = {
    .name = "bench",
    .summary = "how fast the kinds are here, and how often wrong",
    .operands = "",
    .text =
        "Adds random keys, then asks for keys of which half are there, one by "
        "one\n"
        "and in batches, then counts wrong answers for keys that are not. "
        "Random\n"
        "reads are what no filter can beat: single words from as much memory, "
        "asked\n"
        "for ahead. `reads a lookup` is what one lookup in a batch costs in "
        "those.\n"
        "All in processor time of one thread; speeds are medians. A window is "
        "one of\n"
        "the last ITEMS keys. Takes about a second a kind for a million keys.",
    .examples = examples,
    .options = groups,
    .run = run,
};
