/*
 * cmd_add.c - seen add: lines into a filter file, durably.
 *
 * A batch of keys is in the journal, on disk, before the filter has them; then
 * they are acknowledged. So --ack tells the truth also to who pulls the plug.
 */
#include "flow.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "patience.h"
#include "progress.h"
#include "remote.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <string.h>

static struct {
    uint64_t batch, ttl;
    bool ack, quiet, json, no_create;
} opt;

static const struct option options[] = {
    {0, "batch", "N", OPTION_COUNT, &opt.batch,
     "sync to disk after at most N keys (default 65536)"},
    {0, "ack", NULL, OPTION_FLAG, &opt.ack,
     "print after each batch how many keys are safe: on disk, or\n"
     "acknowledged by the server"},
    {0, "ttl", "TIME", OPTION_TIME, &opt.ttl,
     "on a server: the whole filter expires after this time"},
    {0, "no-create", NULL, OPTION_FLAG, &opt.no_create,
     "do not create a filter: a missing one is an error"},
    NO_VERIFY_ROW,
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what was done, as JSON (with --ack: on stderr)"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* One frame of the journal, one sync. */
#define DEFAULT_BATCH 65536

static struct target target;
static struct tally tally;

/* One batch. Cuckoo filters count: a key that looks like one that is there must
 * go in all the same, or it would go when that one is removed. */
static seen_status add_some(const seen_key *keys, size_t n, bool *known,
                            size_t *done)
{
    if (target.plan.kind != SEEN_CUCKOO)
        return add_to_target(&target, keys, n, known, done);
    memset(known, false, n);
    return seen_file_add_many(target.store, seen_keys_of(keys, n), done,
                              &target.error);
}

static size_t add(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t done = 0;
    while (done < c->n) {
        size_t now = c->n - done, part;
        if (now > opt.batch) now = (size_t)opt.batch;
        advance_target(&target);
        seen_status s =
            add_some(c->keys + done, now, job->answers + done, &part);
        done += part;
        if (s != SEEN_OK) {
            blame_target(&target, s, c);
            break;
        }
        if (opt.ack) acknowledge(tally.lines + done);
    }
    return done;
}

/* Of files: what a server's filter holds is not known here. */
static void say_rate(const void *of, char *buf, size_t cap)
{
    const struct target *t = of;
    char rate[UNIT_TEXT];
    uint64_t items = t->info.items + tally.lines - tally.found;
    if (t->filter && t->plan.fpp > 0 && t->plan.kind != SEEN_WINDOW)
        snprintf(buf, cap, ", rate %s so far",
                 show_rate(rate, seen_plan_fpp(&t->plan, items)));
}

static seen_info after = {.size = sizeof after};

/* Looking reads every bit: only for who wants to know. */
static void close_file(void *of)
{
    struct target *t = of;
    if (opt.ttl && !t->failed && !expire_remote(t, opt.ttl))
        note("%s: not found, so --ttl has no effect", t->name);
    bool window = t->plan.kind == SEEN_WINDOW;
    if (t->filter && (!opt.quiet || opt.json || window))
        seen_measure(t->filter, &after);
    close_target(t);
}

/* ---- Which file --------------------------------------------------------- */

static void open_file(const char *name)
{
    bool exists = find_target(&target, name);
    seen_spec spec = wished_spec();
    if (opt.ttl && !target.on_server)
        fail("--ttl is for filters on servers; for a file, use --window");
    if (target.on_server && !only_size_wished())
        fail("%s: filters on servers take -n and -p alone", name);
    if (target.on_server && exists && wish_given() && !opt.quiet && !opt.json)
        note("%s: exists already, and keeps its parameters", name);
    if (!exists && opt.no_create)
        fail("%s: no such %s, and --no-create says to make none", name,
             target.on_server ? "filter there" : "file");
    if (!exists && !wish_given())
        fail("%s: no such %s; add -n ITEMS -p RATE to make it", name,
             target.on_server ? "filter there" : "file");
    if (!exists && spec.kind == SEEN_BITMAP) keys_for_bitmap();
    if (!exists && spec.dialect) keys_for_dialect(spec.dialect);
    check_key_format();
    if (opt.json) keep_warnings();
    if (exists)
        compare_keys(&target);
    else if (!target.on_server)
        record_keys(&spec);
    if (exists && seen_kind_built(target.plan.kind))
        fail("%s: is of kind %s, which takes no new keys: build it again", name,
             seen_kind_name(target.plan.kind));
    if (!exists && seen_kind_built(spec.kind))
        fail("--kind %s: is made from all its keys at once: use seen build",
             seen_kind_name(spec.kind));
    bool foreign =
        exists ? target.plan.kind == SEEN_FOREIGN : spec.dialect != NULL;
    if (foreign && opt.ack)
        fail("--ack: a filter of another system is written as a whole, at the "
             "end: leave out --ack");
    if (exists && !foreign && !target.on_server)
        must_agree(name, &target.plan, target.info.flags, &spec);
    write_target(&target, SEEN_DURABLE, exists ? NULL : &spec);
    if (!opt.quiet && !opt.json) note_recovery(&target);
}

/* ---- Run ---------------------------------------------------------------- */

static uint64_t added(void)
{
    return tally.lines - tally.found;
}

static void report_json(FILE *to)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_text(&j, "file", target.name);
    json_bool(&j, "created", target.outcome.created);
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "new", (double)added());
    if (!target.on_server) {
        json_number(&j, "items", (double)after.items);
        json_number(&j, "capacity", (double)after.capacity);
        json_number(&j, "fpp_now", after.fpp_now);
    }
    json_number(&j, "recovered", (double)target.outcome.recovered_keys);
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(void)
{
    char lines[UNIT_TEXT], new[UNIT_TEXT], items[UNIT_TEXT], rate[UNIT_TEXT];
    char planned[UNIT_TEXT];
    note("%s: %s%s, %s of them new%s%s%s", target.name,
         target.outcome.created ? "created; " : "",
         show_many(lines, (double)tally.lines, line_word()),
         show_count(new, (double)added()), target.on_server ? "" : "; ",
         target.on_server ? "" : show_keys(items, &after, "key"),
         target.on_server ? "" : " in all");
    if (is_overfull(&after))
        note("%s: was planned for %s: the rate has risen to %s", target.name,
             show_many(planned, (double)after.capacity, "key"),
             show_rate(rate, after.fpp_now));
}

static int run(char **operands, size_t n)
{
    if (n) output_is_no_input(operands[0], operands + 1, n - 1);
    const char *name = target_operand(operands, n);
    must_not_be_stream(name);
    if (!opt.batch) opt.batch = DEFAULT_BATCH;
    open_flow(operands + 1, n - 1, false, opt.quiet);
    open_file(name);
    run_flow(&(struct flow){.of = &target,
                            .tally = &tally,
                            .ask = add,
                            .tell = !opt.quiet && !opt.json,
                            .close = close_file,
                            .found = "known",
                            .more_status = say_rate,
                            .so_far = "added",
                            .silent = true});
    if (is_crowded(target.plan.last, &after)) warn_crowded(target.name, &after);
    if (opt.json)
        report_json(opt.ack ? stderr : stdout);
    else if (!opt.quiet)
        report_text();
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen add urls.seen -n 10M -p 0.1% < urls.txt",
    "remember lines in a file, made for ten million if it is missing",
    "producer | seen add --batch 1000 --ack urls.seen",
    "learn how many keys would survive a loss of power",
    "seen add urls.seen new-*.txt",
    "more keys for an existing filter",
    NULL,
};

static const struct option *const groups[] = {
    options, wait_options, wish_options, window_options, key_options, NULL};

const struct verb verb_add = {
    .name = "add",
    .summary = "add lines to a filter file, durably",
    .operands = "TARGET [INPUT...]",
    .text = "When it ends, the keys are on disk. If it is interrupted, the "
            "keys of\n"
            "finished batches are in the file and its journal, and the next "
            "program\n"
            "that opens the file finds them. There is one writer at a time; "
            "readers do\n"
            "not wait. A file that does not exist is made from -n and -p; one "
            "that does\n"
            "must agree with them. A filter of another system (--dialect, or "
            "recognised\n"
            "by its bytes) is written as a whole when all keys are in. On a "
            "server (a\n"
            "URL) keys are as safe as what it acknowledges.",
    .examples = examples,
    .options = groups,
    .run = run,
};
