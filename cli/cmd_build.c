/*
 * cmd_build.c - seen build: lines to a filter, into a file or a pipe.
 *
 * A filter that cannot grow must know how many keys will come. Where -n does not
 * say it, the lines are counted in a first pass, which regular files allow: that
 * takes a fraction of the second one and, unlike an estimate, keeps the promised
 * rate for certain. Repeated lines count, too: then the filter is larger than it
 * need be.
 */
#define _POSIX_C_SOURCE 200809L

#include "flow.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "progress.h"
#include "secret.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <seen_bitmap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *output;
    uint64_t threads;
    bool quiet, json;
} opt;

static const struct option options[] = {
    {'o', NULL, "FILE", OPTION_TEXT, &opt.output,
     "write the filter here; - is stdout"},
    {'j', NULL, "THREADS", OPTION_COUNT, &opt.threads,
     "work with this many threads (default 1); same result"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what was built, as JSON (with -o -: on stderr)"},
    FORCE_ROW,
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static seen_spec spec;
static seen_filter *filter;

/* ---- How many keys ------------------------------------------------------ */

static bool all_regular(char **inputs, size_t n)
{
    struct stat st;
    bool regular =
        n > 0 || (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode));
    for (size_t i = 0; regular && i < n; i++) {
        int failed = strcmp(inputs[i], "-") == 0 ? fstat(STDIN_FILENO, &st)
                                                 : stat(inputs[i], &st);
        regular = !failed && S_ISREG(st.st_mode);
    }
    return regular;
}

static void settle_items(char **inputs, size_t n)
{
    if (spec.kind == SEEN_BITMAP) return;
    if (seen_kind_built(spec.kind)) { /* which counts them itself */
        if (spec.bits && !(wish.rate > 0)) spec.fpp = 0;
        return;
    }
    bool regular = all_regular(inputs, n), needed = needs_items(&spec);
    bool useful = regular && spec.bits && !spec.items && !(wish.rate > 0);
    if (!needed && !useful) return;
    if (!regular)
        fail("the number of keys is unknown, for only files can be counted "
             "first: add -n ITEMS, or --kind scalable or --kind set, which "
             "grow");
    uint64_t lines = count_lines(inputs, n);
    spec.items = lines ? lines : 1;
    if (useful) spec.fpp = 0; /* follows from the others */
}

/* ---- Kinds that take keys as they come ---------------------------------- */

static void hash_them(struct job *job)
{
    hash_lines(job, filter);
}

static size_t add_them(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t done;
    if (spec.window_ms) seen_advance(filter, clock_ms());
    seen_status s = seen_visit_many(filter, seen_keys_hashes(job->hashes, c->n),
                                    job->answers, &done);
    if (s == SEEN_INVALID)
        c->bad = "is not below --bits, the bound of the bitmap";
    else if (s != SEEN_OK)
        c->bad = seen_strerror(s);
    return done;
}

/* Cuckoo filters count, and one removal shall remove a key: it goes in once,
 * however often its line comes. The filter itself cannot tell a repeat from
 * another key that looks like it, which must go in, too; a set of fingerprints
 * can. */
static seen_filter *met;

static size_t add_distinct(struct job *job)
{
    struct chunk *c = &job->chunk;
    seen_status s = seen_visit_many(met, seen_keys_hashes(job->hashes, c->n),
                                    job->answers, NULL);
    if (s != SEEN_OK) fail("out of memory");
    for (size_t i = 0; i < c->n; i++) {
        if (job->answers[i]) continue;
        s = seen_add_hashed(filter, job->hashes[i]);
        if (s == SEEN_OK) continue;
        c->bad = seen_strerror(s);
        return i;
    }
    return c->n;
}

/* A filter of another system reads keys, not hashes. */
static size_t add_keys(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t done;
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_dialect_named(spec.dialect, &facts);
    bool counts = facts.can & SEEN_CAN_REMOVE; /* every add */
    if (counts) memset(job->answers, false, c->n);
    seen_status s = seen_visit_many(filter, seen_keys_of(c->keys, c->n),
                                    counts ? NULL : job->answers, &done);
    if (s != SEEN_OK) c->bad = seen_strerror(s);
    return done;
}

static seen_plan plan = {.size = sizeof plan};
static struct tally tally;

static void say_rate(const void *of, char *buf, size_t cap)
{
    const seen_plan *p = of;
    char rate[UNIT_TEXT];
    if (p->fpp > 0)
        snprintf(buf, cap, ", rate %s so far",
                 show_rate(rate, seen_plan_fpp(p, tally.lines - tally.found)));
}

static void make_filter(void)
{
    plan = plan_or_fail(&spec, "--bits");
    seen_status s = seen_new(&filter, &spec, NULL);
    if (s == SEEN_NOMEM) {
        char size[UNIT_TEXT];
        fail("not enough memory for a filter of %s",
             show_size(size, (double)plan.bytes));
    }
    if (s == SEEN_OK && spec.kind == SEEN_CUCKOO)
        s = seen_new(&met, &(seen_spec){.kind = SEEN_SET}, NULL);
    if (s != SEEN_OK) fail("filter: %s", seen_strerror(s));
}

/* ---- Bitmaps without a bound -------------------------------------------- */

/* The bound doubles while ids come, and is cut to fit at the end. Beyond 2^32,
 * half a gigabyte, somebody should have said so. */
#define FIRST_BOUND ((uint64_t)1 << 16)
#define BOUND_MAX   ((uint64_t)1 << 32)

static uint64_t bound = FIRST_BOUND, largest;

/* The hash of a bitmap's key is the number itself. */
static size_t add_and_grow(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t fits = 0;
    for (; fits < c->n && job->hashes[fits].lo < BOUND_MAX; fits++)
        if (job->hashes[fits].lo > largest) largest = job->hashes[fits].lo;
    if (fits < c->n) c->bad = "is 2^32 or more: add --bits, a bound above it";
    c->n = fits;
    while (bound <= largest)
        bound *= 2;
    if (seen_reserve(filter, bound) != SEEN_OK)
        fail("not enough memory for a bitmap of this bound");
    return add_them(job);
}

struct copying {
    seen_filter *to;
    seen_hash ids[1024];
    size_t n;
};

static bool copy_id(void *ctx, uint64_t id)
{
    struct copying *c = ctx;
    c->ids[c->n++] = (seen_hash){.lo = id};
    if (c->n == sizeof c->ids / sizeof *c->ids) {
        seen_add_many(c->to, seen_keys_hashes(c->ids, c->n), NULL);
        c->n = 0;
    }
    return true;
}

static void cut_bitmap(void)
{
    struct copying copy = {0};
    seen_bitmap *all;
    size_t len;
    spec.bits = largest + 1;
    if (spec.bits == bound) return;
    if (seen_new(&copy.to, &spec, NULL) != SEEN_OK) fail("out of memory");
    seen_save(filter, 0, NULL, 0, &len);
    void *bytes = must_have(malloc(len));
    if (seen_save(filter, 0, bytes, len, &len) != SEEN_OK ||
        seen_bitmap_load(&all, bytes, len, NULL, NULL) != SEEN_OK)
        fail("out of memory");
    free(bytes);
    seen_bitmap_each(all, copy_id, &copy);
    seen_add_many(copy.to, seen_keys_hashes(copy.ids, copy.n), NULL);
    seen_bitmap_free(all);
    seen_free(filter);
    filter = copy.to;
}

/* ---- Kinds that need all keys at once ----------------------------------- */

static seen_builder *builder;

static size_t gather(struct job *job)
{
    struct chunk *c = &job->chunk;
    if (seen_builder_add_many(builder, seen_keys_of(c->keys, c->n)) != SEEN_OK)
        fail("out of memory");
    memset(job->answers, false, c->n);
    return c->n;
}

/* A mistake shows before the keys are read. */
static void make_builder(void)
{
    seen_spec some = spec;
    some.items = wish.items ? wish.items : 1;
    plan_or_fail(&some, "--bits");
    seen_status s = seen_builder_new(&builder, &spec, NULL);
    if (s != SEEN_OK) fail("filter: %s", seen_strerror(s));
}

static void finish_builder(void)
{
    char text[64], keys[UNIT_TEXT];
    snprintf(text, sizeof text, "building from %s",
             show_about(keys, (double)tally.lines, line_word()));
    more_work(text);
    seen_status s = seen_builder_finish(builder, &filter, NULL);
    end_progress();
    if (s != SEEN_OK) fail("filter: %s", seen_strerror(s));
    seen_builder_free(builder);
}

/* ---- Run ---------------------------------------------------------------- */

static void build(void)
{
    bool at_once = seen_kind_built(spec.kind);
    bool grows = spec.kind == SEEN_BITMAP && !spec.bits;
    bool counts = spec.kind == SEEN_CUCKOO;
    if (grows) spec.bits = FIRST_BOUND;
    if (at_once)
        make_builder();
    else
        make_filter();
    bool foreign = spec.dialect != NULL;
    run_flow(&(struct flow){.of = &plan,
                            .tally = &tally,
                            .prepare = at_once || foreign ? NULL : hash_them,
                            .tell = !opt.quiet && !opt.json,
                            .ask = at_once   ? gather
                                   : foreign ? add_keys
                                   : grows   ? add_and_grow
                                   : counts  ? add_distinct
                                             : add_them,
                            .found = "repeated",
                            .more_status = say_rate,
                            .silent = true,
                            .threads = opt.threads});
    if (at_once) finish_builder();
    if (grows) cut_bitmap();
    seen_free(met);
}

static void report_json(const seen_info *info, FILE *to)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_text(&j, "file", opt.output);
    json_bool(&j, "replaced", has_replaced());
    json_text(&j, "kind", seen_kind_name(info->kind));
    if (info->dialect) json_text(&j, "dialect", info->dialect);
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "items", (double)info->items);
    json_number(&j, "capacity", (double)planned_items(info));
    json_number(&j, "fpp", info->fpp);
    json_number(&j, "fpp_now", info->fpp_now);
    json_number(&j, "bits", (double)info->bits);
    json_number(&j, "hashes", info->hashes);
    json_number(&j, "bytes", (double)info->bytes);
    json_bool(&j, "keyed", info->flags & SEEN_KEYED);
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(const seen_info *info)
{
    char lines[UNIT_TEXT], items[UNIT_TEXT], size[UNIT_TEXT], rate[UNIT_TEXT];
    char planned[UNIT_TEXT];
    note("%s: %s filter of %s: %s, %s, rate %s", opt.output,
         info->dialect ? info->dialect : seen_kind_name(info->kind),
         show_size(size, (double)info->bytes),
         show_many(lines, (double)tally.lines, line_word()),
         show_keys(items, info, "key"),
         info->fpp_now > 0 ? show_rate(rate, info->fpp_now) : "0");
    note_replaced(opt.output);
    if (is_overfull(info) && !is_crowded(spec.last, info))
        note("%s: has more keys than the %s it was planned for: use a larger "
             "-n",
             opt.output, show_count(planned, (double)info->capacity));
}

static void report(bool to_stdout)
{
    seen_info info = {.size = sizeof info};
    if (opt.quiet && !opt.json && spec.kind != SEEN_WINDOW && !spec.window_ms)
        return;
    seen_measure(filter, &info);
    if (is_crowded(spec.last, &info)) warn_crowded(opt.output, &info);
    if (opt.json)
        report_json(&info, to_stdout ? stderr : stdout);
    else if (!opt.quiet)
        report_text(&info);
}

/* Found out before the keys are read, which may take an hour. */
static void check_output(const char *path, char **inputs, size_t n)
{
    if (!path) return;
    output_is_no_input(path, inputs, n);
    if (wish.secret_file && same_name(path, wish.secret_file))
        fail("%s: -o and --secret-file need a file each", path);
    may_replace_filter(path);
}

static int run(char **operands, size_t n)
{
    const char *path = output_path(opt.output);
    check_output(path, operands, n);
    spec = wished_spec();
    if (spec.kind == SEEN_BITMAP) keys_for_bitmap();
    if (spec.dialect) keys_for_dialect(spec.dialect);
    check_key_format();
    record_keys(&spec);
    if (opt.json) keep_warnings();
    check_threads(opt.threads);
    spec.secret = new_secret();
    if (spec.secret) spec.flags = SEEN_KEYED;

    open_flow(operands, n, false, opt.quiet);
    settle_items(operands, n);
    build();
    more_work(opt.output);
    if (spec.dialect)
        export_filter(path, filter, wish.dialect);
    else
        save_filter(path, filter, wish.secret_file);
    end_progress();
    report(!path);
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen build -o urls.seen urls.txt",
    "a filter of all lines of a file, wrong for one other line in 1000",
    "mysql -BNe 'select id from users' | seen build -n 10M -p 1e-4 -o "
    "ids.seen",
    "from a pipe: say how many keys will come",
    "seen build --kind ribbon -o - banned.txt | ssh web 'cat > banned.seen'",
    "the smallest filter of a list that is finished",
    "seen build --dialect leveldb --bits-per-key 10 -o new.block keys.txt",
    "the block that LevelDB would write for these keys",
    NULL,
};

static const struct option *const groups[] = {
    options, wish_options, window_options, key_options, NULL};

const struct verb verb_build = {
    .name = "build",
    .summary = "make a filter of lines, into a file",
    .operands = "-o FILE [INPUT...]",
    .text =
        "The filter is written beside FILE and renamed, so that FILE is the "
        "old\n"
        "filter or the new one at any time. A file that exists and is not a "
        "filter\n"
        "is replaced only with --force; so is one of a dialect without a "
        "header,\n"
        "which cannot be recognised. Without -n the lines of regular files "
        "are\n"
        "counted first. Keys of a bitmap are decimal numbers, and without "
        "--bits\n"
        "its bound is the largest of them plus one.\n"
        "\n"
        "--keyed makes a random secret and stores it in the file. With\n"
        "--secret-file it is kept apart, in FILE: 32 hex digits or 16 bytes,\n"
        "created if missing, and required to open the filter.",
    .examples = examples,
    .options = groups,
    .run = run,
};
