/* cmd_merge.c - seen merge: one filter with the keys of several. */
#include "input.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "progress.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *output;
    bool quiet, json;
} opt;

static const struct option options[] = {
    {'o', NULL, "FILE", OPTION_TEXT, &opt.output,
     "write the union here, which may be one of the inputs; - is stdout"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what came out, as JSON (with -o -: on stderr)"},
    FORCE_ROW,
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- Why not ------------------------------------------------------------ */

__attribute__((noreturn)) static void differ(const struct target *a,
                                             const struct target *b,
                                             const char *what, double x,
                                             double y)
{
    char left[UNIT_TEXT], right[UNIT_TEXT];
    fail("%s and %s differ in their %s: %s against %s; make both with the same "
         "-n and -p",
         a->name, b->name, what, show_count(left, x), show_count(right, y));
}

__attribute__((noreturn)) static void say_difference(const struct target *a,
                                                     const struct target *b)
{
    const seen_info *f = &a->info, *g = &b->info;
    const seen_plan *p = &a->plan, *q = &b->plan;
    if (p->kind != q->kind)
        fail("%s and %s differ in their kind: %s against %s; make both with "
             "the same --kind",
             a->name, b->name, seen_kind_name(p->kind),
             seen_kind_name(q->kind));
    if (a->dialect && b->dialect && strcmp(a->dialect, b->dialect) != 0)
        fail("%s and %s differ in their dialect: %s against %s", a->name,
             b->name, a->dialect, b->dialect);
    if (strcmp(f->hash, g->hash) != 0)
        fail("%s and %s differ in their hash: %s against %s%s", a->name,
             b->name, f->hash, g->hash,
             (f->flags ^ g->flags) & SEEN_KEYED
                 ? " (one is keyed, the other is not)"
                 : "");
    if (p->bits != q->bits)
        differ(a, b, "bits", (double)p->bits, (double)q->bits);
    if (p->hashes != q->hashes) differ(a, b, "hashes", p->hashes, q->hashes);
    if (p->width != q->width)
        differ(a, b, "bits of a fingerprint", p->width, q->width);
    if (p->items != q->items)
        differ(a, b, "planned keys", (double)p->items, (double)q->items);
    if (f->key_form && g->key_form && f->key_form != g->key_form)
        fail("%s and %s differ in how their keys were made: %s against %s; the "
             "same line would be two keys",
             a->name, b->name, form_phrase(f->key_form),
             form_phrase(g->key_form));
    if (f->flags & SEEN_KEYED)
        fail("%s and %s have different secrets: only keyed filters with the "
             "same secret can be merged",
             a->name, b->name);
    fail("%s and %s differ in the seed of their hash", a->name, b->name);
}

static void must_merge(const struct target *a, const struct target *b,
                       seen_status status)
{
    if (status == SEEN_OK) return;
    if (status == SEEN_MISMATCH) say_difference(a, b);
    if (status == SEEN_UNSUPPORTED)
        fail("%s: filters of kind %s cannot be merged: build one from all the "
             "keys",
             b->name, seen_kind_name(b->plan.kind));
    fail("%s: %s", b->name, seen_strerror(status));
}

/* What one of them says is not known of the union, if another does not say it. */
static void compare_forms(const struct target *targets, size_t n)
{
    const struct target *said = NULL, *unsaid = NULL;
    for (size_t i = 0; i < n; i++)
        if (targets[i].info.key_form)
            said = &targets[i];
        else
            unsaid = &targets[i];
    if (said && unsaid)
        warn("%s does not say how its keys were made, %s does (%s): the union "
             "does not say it",
             unsaid->name, said->name, form_phrase(said->info.key_form));
}

/* ---- The union ---------------------------------------------------------- */

static seen_filter *copy_of(const seen_filter *f)
{
    seen_filter *copy;
    seen_status status = seen_copy(&copy, f, NULL);
    if (status != SEEN_OK) fail("%s", seen_strerror(status));
    return copy;
}

/* Bitmaps are merged below the largest of their bounds. */
static seen_status merge_bitmaps(seen_filter *into, const struct target *t,
                                 uint64_t bound)
{
    seen_filter *copy = copy_of(t->filter);
    seen_status status = seen_reserve(copy, bound);
    if (status == SEEN_OK) status = seen_merge(into, copy, SEEN_UNION, NULL);
    seen_free(copy);
    return status;
}

static uint64_t largest_bound(const struct target *targets, size_t n)
{
    uint64_t bound = 0;
    for (size_t i = 0; i < n; i++)
        if (targets[i].plan.kind == SEEN_BITMAP && targets[i].plan.bits > bound)
            bound = targets[i].plan.bits;
    return bound;
}

static seen_filter *merge(struct target *targets, size_t n)
{
    uint64_t bound = largest_bound(targets, n);
    seen_filter *into = NULL;
    for (size_t i = 0; i < n; i++) {
        struct target *t = &targets[i];
        work_on(t->name);
        read_target(t);
        if (i == 0) {
            into = copy_of(t->filter);
            if (bound) must_merge(t, t, seen_reserve(into, bound));
        } else if (t->plan.kind == SEEN_BITMAP) {
            must_merge(&targets[0], t, merge_bitmaps(into, t, bound));
        } else {
            must_merge(&targets[0], t,
                       seen_merge(into, t->filter, SEEN_UNION, NULL));
        }
        work_done(t->info.saved_bytes);
        close_target(t);
    }
    return into;
}

/* ---- Run ---------------------------------------------------------------- */

static void report_json(const seen_info *info, FILE *to, size_t n)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_text(&j, "file", opt.output);
    json_bool(&j, "replaced", has_replaced());
    json_number(&j, "merged", (double)n);
    json_text(&j, "kind", seen_kind_name(info->kind));
    json_number(&j, "items", (double)info->items);
    json_number(&j, "capacity", (double)planned_items(info));
    json_number(&j, "fpp", info->fpp);
    json_number(&j, "fpp_now", info->fpp_now);
    json_number(&j, "bytes", (double)info->bytes);
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(const seen_info *info, size_t n)
{
    char items[UNIT_TEXT], rate[UNIT_TEXT], planned[UNIT_TEXT];
    note("%s: %zu filters, about %s, rate %s", opt.output, n,
         show_many(items, (double)info->items, "key"),
         info->fpp_now > 0 ? show_rate(rate, info->fpp_now) : "0");
    note_replaced(opt.output);
    if (is_overfull(info))
        note("%s: was planned for %s: build a larger one to keep the rate",
             opt.output, show_many(planned, (double)info->capacity, "key"));
}

static int run(char **operands, size_t n)
{
    const char *path = output_path(opt.output);
    bool apart = false;
    uint64_t bytes = 0;
    const seen_info *was = NULL;
    if (n < 2) fail("nothing to merge: expected at least two filter files");
    check_key_format();
    struct target *targets = must_have(calloc(n, sizeof *targets));
    for (size_t i = 0; i < n; i++) {
        if (!find_target(&targets[i], operands[i])) target_missing(&targets[i]);
        must_be_file(&targets[i]);
        bytes += targets[i].info.saved_bytes;
        apart = apart || targets[i].info.secret_apart;
        if (target_is(&targets[i], path)) was = &targets[i].info;
    }
    if (opt.json) keep_warnings();
    compare_forms(targets, n);
    /* Over one of them is fine: it is written beside and renamed, and holds all
     * that was there. */
    if (!was) may_replace_filter(path);
    start_work(opt.quiet);
    work_total(bytes, NULL);
    seen_filter *all = merge(targets, n);
    work_on(opt.output);
    if (targets[0].dialect)
        export_filter(path, all,
                      targets[0].packed ? "dcso-gzip" : targets[0].dialect);
    else
        save_over(path, all, apart, was);
    end_progress();

    seen_info info = {.size = sizeof info};
    seen_measure(all, &info);
    if (opt.json)
        report_json(&info, path ? stdout : stderr, n);
    else if (!opt.quiet)
        report_text(&info, n);
    finish_output();
    seen_free(all);
    free(targets);
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen merge -o all.seen monday.seen tuesday.seen",
    "whatever is in one of them is in all.seen",
    "seen merge -o all.seen all.seen today.seen",
    "add today's filter to the existing one",
    "seen merge --secret-file key -o all.seen a.seen b.seen",
    "keyed filters, made with the same secret",
    NULL,
};

static const struct option *const groups[] = {options, secret_options,
                                              dialect_options, NULL};

const struct verb verb_merge = {
    .name = "merge",
    .summary = "one filter with the keys of several",
    .operands = "-o FILE A B...",
    .text =
        "The result is exactly the filter that all the keys would have made.\n"
        "Kind, bits and hashes must agree, so make filters to be merged with\n"
        "the same -n and -p. Keyed filters can be merged only if they have\n"
        "the same secret: make them with the same --secret-file. Bitmaps are\n"
        "merged below the largest of their bounds. Filters of one dialect "
        "give\n"
        "one of that dialect, in gzip if the first of them is.",
    .examples = examples,
    .options = groups,
    .run = run,
};
