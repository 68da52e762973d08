/* spec.c - see spec.h. */
#include "spec.h"

#include "input.h"
#include "output.h"
#include "pack.h"
#include "units.h"

#include <math.h>
#include <string.h>

/* ---- The wish ----------------------------------------------------------- */

struct wish wish;

#define SECRET_ROW                                                             \
    {                                                                          \
        0, "secret-file", "FILE", OPTION_TEXT, &wish.secret_file,              \
            "the secret of a keyed filter that is kept apart from it"          \
    }

const struct option secret_options[] = {
    SECRET_ROW,
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option dialect_options[] = {
    HEADING("filters of other systems"),
    DIALECT_ROW,
    {'n', NULL, "ITEMS", OPTION_COUNT, &wish.items,
     "for a dialect that does not say it: keys it was made for"},
    {'p', NULL, "RATE", OPTION_RATE, &wish.rate, "... and the rate"},
    {0, "bits", "M", OPTION_COUNT, &wish.bits, "... its bits"},
    {0, "hashes", "K", OPTION_COUNT, &wish.hashes, "... bits set per key"},
    PER_KEY_ROW,
    KEY_TYPE_ROW,
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option wish_options[] = {
    HEADING("the filter, when it is made"),
    ITEMS_ROW,
    {'p', NULL, "RATE", OPTION_RATE, &wish.rate,
     "false-positive rate: 0.1% (the default), 1e-6, 1/1000"},
    DIALECT_ROW,
    PER_KEY_ROW,
    KEY_TYPE_ROW,
    {0, "kind", "KIND", OPTION_KIND, &wish.kind,
     "blocked (the default), or another one of seen plan"},
    {0, "bits", "M", OPTION_COUNT, &wish.bits,
     "bits of the filter, or the bound of a bitmap"},
    HASHES_ROW,
    {0, "keyed", NULL, OPTION_FLAG, &wish.keyed,
     "hash with a secret: for keys that an attacker may choose"},
    SECRET_ROW,
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option window_options[] = {
    HEADING("a window, which forgets"),
    {0, "window", "TIME", OPTION_TIME, &wish.window_ms,
     "forget keys after this long: 5d, 30m"},
    {0, "last", "N", OPTION_COUNT, &wish.last,
     "forget all but the last N keys"},
    {0, "generations", "G", OPTION_COUNT, &wish.generations,
     "the steps in which a window forgets (default 4)"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

bool wish_given(void)
{
    return wish.items || wish.bits || wish.hashes || wish.memory || wish.last ||
           wish.window_ms || wish.generations || wish.rate > 0 ||
           wish.kind != SEEN_ANY || wish.keyed || wish.dialect ||
           wish.bits_per_key > 0;
}

bool only_size_wished(void)
{
    return !wish.bits && !wish.hashes && !wish.memory && !wish.last &&
           !wish.window_ms && !wish.generations && wish.kind == SEEN_ANY &&
           !wish.keyed && !wish.dialect && !(wish.bits_per_key > 0) &&
           !wish.secret_file;
}

seen_spec told_spec(void)
{
    if (wish.hashes > UINT32_MAX) fail("--hashes: expected at most 255");
    return (seen_spec){.items = wish.items,
                       .fpp = wish.rate,
                       .bits = wish.bits,
                       .hashes = (uint32_t)wish.hashes,
                       .bits_per_key = wish.bits_per_key};
}

static bool can_plan(const seen_spec *spec)
{
    seen_plan plan = {.size = sizeof plan};
    return seen_plan_for(spec, &plan, NULL) == SEEN_OK;
}

seen_spec wished_spec(void)
{
    if (wish.generations > UINT32_MAX)
        fail("--generations: expected at most 63");
    if (wish.hashes > UINT32_MAX) fail("--hashes: expected at most 255");
    seen_spec spec = {.items = wish.items,
                      .fpp = wish.rate,
                      .kind = wish.kind,
                      .bits = wish.bits,
                      .hashes = (uint32_t)wish.hashes,
                      .last = wish.last,
                      .window_ms = wish.window_ms,
                      .generations = (uint32_t)wish.generations,
                      .dialect = unpacked_name(wish.dialect),
                      .bits_per_key = wish.bits_per_key};
    if (spec.kind == SEEN_WINDOW && !spec.last && !spec.window_ms)
        spec.last = spec.items; /* as in seen plan */
    if (wish.dialect && (wish.keyed || wish.secret_file))
        fail("%s: filters of other systems have no secret",
             wish.keyed ? "--keyed" : "--secret-file");
    if (!(spec.fpp > 0) && spec.kind != SEEN_BITMAP && !can_plan(&spec))
        spec.fpp = DEFAULT_RATE;
    return spec;
}

bool needs_items(const seen_spec *spec)
{
    seen_spec with_items = *spec;
    if (spec->items || can_plan(spec)) return false;
    with_items.items = 1;
    plan_or_fail(&with_items, "--bits");
    return true;
}

static bool same_plan(const seen_plan *a, const seen_plan *b)
{
    return a->kind == b->kind && a->items == b->items && a->bits == b->bits &&
           a->hashes == b->hashes && a->width == b->width &&
           a->last == b->last && a->window_ms == b->window_ms &&
           a->generations == b->generations;
}

/* A plan keeps a little more than what was asked for, so the rate that was asked
 * for is one that leads to the same plan. */
static bool keeps_rate(const seen_plan *plan, double rate)
{
    seen_spec spec = {.kind = plan->kind,
                      .items = plan->items,
                      .fpp = rate,
                      .last = plan->last,
                      .window_ms = plan->window_ms,
                      .generations = plan->generations};
    seen_plan again = {.size = sizeof again};
    if (fabs(plan->fpp - rate) <= 1e-9 * rate) return true;
    return seen_plan_for(&spec, &again, NULL) == SEEN_OK &&
           same_plan(plan, &again);
}

void must_agree(const char *name, const seen_plan *is, uint32_t flags,
                const seen_spec *spec)
{
    seen_plan planned = {.size = sizeof planned};
    char a[UNIT_TEXT], b[UNIT_TEXT];
    if (wish.keyed && !(flags & SEEN_KEYED))
        fail("%s: is not keyed, which --keyed asks for", name);
    if (seen_plan_for(spec, &planned, NULL) == SEEN_OK &&
        same_plan(&planned, is))
        return;
    if (wish.kind != SEEN_ANY && wish.kind != is->kind)
        fail("%s: is of kind %s, --kind says %s", name,
             seen_kind_name(is->kind), seen_kind_name(wish.kind));
    if (wish.last && wish.last != is->last)
        fail("%s: is not a window of the last %s", name,
             show_many(a, (double)wish.last, "key"));
    if (wish.window_ms && wish.window_ms != is->window_ms)
        fail("%s: is not a window of --window, %.15g s", name,
             (double)wish.window_ms / 1000);
    if (wish.generations && wish.generations != is->generations)
        fail("%s: has %u generations, --generations says %u", name,
             is->generations, (unsigned)wish.generations);
    if (wish.items && is->kind != SEEN_SET && wish.items != is->items)
        fail("%s: was made for %s, -n says %s", name,
             show_many(a, (double)is->items, "key"),
             show_count(b, (double)wish.items));
    if (wish.rate > 0 && is->kind != SEEN_SET && !keeps_rate(is, wish.rate))
        fail("%s: was made for a rate of %s, -p says %s", name,
             show_rate(a, is->fpp), show_rate(b, wish.rate));
    if (wish.bits && wish.bits != is->bits)
        fail("%s: has %s bits, --bits says %s", name,
             show_count(a, (double)is->bits), show_count(b, (double)wish.bits));
    if (wish.hashes && wish.hashes != is->hashes)
        fail("%s: has %u hashes, --hashes says %u", name, is->hashes,
             (unsigned)wish.hashes);
    if (wish.memory)
        fail("%s: takes %s, -M says %s", name, show_size(a, (double)is->bytes),
             show_size(b, (double)wish.memory));
}

/* ---- The plan ----------------------------------------------------------- */

/* A filter has a header of a few hundred bytes beside its bits. */
#define HEADER_BYTES 512

uint64_t bits_within(uint64_t memory)
{
    uint64_t payload =
        memory > 2 * HEADER_BYTES ? memory - HEADER_BYTES : memory;
    return payload < UINT64_MAX / 8 ? payload * 8 : UINT64_MAX;
}

static const char *option_for(const char *field, const char *bits_option)
{
    const struct {
        const char *field, *option;
    } names[] = {{"items", "-n"},
                 {"fpp", "-p"},
                 {"bits", bits_option},
                 {"limit", "-M"},
                 {"hashes", "--hashes"},
                 {"kind", "--kind"},
                 {"flags", "--keyed"},
                 {"last", "--last"},
                 {"window_ms", "--window"},
                 {"generations", "--generations"},
                 {"dialect", "--dialect"},
                 {"bits_per_key", "--bits-per-key"},
                 {"secret", "--secret-file"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].field, field) == 0) return names[i].option;
    return NULL;
}

const char *in_options(const seen_error *e, const char *bits_option)
{
    static char text[sizeof e->text + 32];
    size_t len = e->field ? strlen(e->field) : 0;
    const char *option = e->field ? option_for(e->field, bits_option) : NULL;
    const char *rest = e->text + len, *colon = strchr(e->text, ':');
    if (!option || strncmp(e->text, e->field, len) != 0) return e->text;
    /* The number is then not the one that was typed. */
    if ((strcmp(option, "-M") == 0 || strcmp(option, "--keyed") == 0) && colon)
        rest = colon;
    snprintf(text, sizeof text, "%s%s", option, rest);
    return text;
}

/* Over the limit? Then how much it would take is what the user needs to know. */
static void fail_over_limit(const seen_spec *spec)
{
    seen_spec unlimited = *spec;
    seen_plan plan = {.size = sizeof plan};
    char needed[UNIT_TEXT], given[UNIT_TEXT];
    unlimited.limit = 0;
    if (seen_plan_for(&unlimited, &plan, NULL) != SEEN_OK) return;
    fail("-M %s is too little: -n and -p need %s",
         show_size(given, (double)spec->limit),
         show_size(needed, (double)plan.bytes));
}

seen_plan plan_or_fail(const seen_spec *spec, const char *bits_option)
{
    seen_plan plan = {.size = sizeof plan};
    seen_error e;
    if (seen_plan_for(spec, &plan, &e) == SEEN_OK) return plan;
    if (spec->limit) fail_over_limit(spec);
    fail("%s", in_options(&e, bits_option));
}
