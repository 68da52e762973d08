/* cmd_remove.c - seen remove: take lines out of a filter file again. */
#include "flow.h"
#include "foreign.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "patience.h"
#include "progress.h"
#include "remote.h"
#include "spec.h"
#include "target.h"
#include "units.h"

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "json", NULL, OPTION_FLAG, &opt.json, "what was done, as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static struct target target;
static struct tally tally;

static size_t remove_them(struct job *job)
{
    struct chunk *c = &job->chunk;
    seen_status s = remove_from_target(&target, c->keys, c->n, job->answers);
    if (s == SEEN_OK) return c->n;
    blame_target(&target, s, c);
    return 0;
}

static void close_file(void *of)
{
    close_target(of);
}

/* Refused before the file is opened for writing: nothing is touched. */
static void must_forget(void)
{
    seen_kind kind = target.plan.kind;
    seen_dialect_facts facts = {.size = sizeof facts};
    if (target.on_server) {
        if (is_remote_bitmap(&target)) return;
        fail("%s: cannot remove single keys; redis+bitmap:// can, and seen "
             "forget removes all of it",
             target.name);
    }
    if (kind == SEEN_CUCKOO || kind == SEEN_BITMAP) return;
    const char *dialect = target.dialect;
    if (kind == SEEN_FOREIGN && !dialect) {
        load_container(&target);
        dialect = heed_contained(&target);
    }
    if (dialect && seen_dialect_named(dialect, &facts) &&
        facts.can & SEEN_CAN_REMOVE)
        return;
    if (dialect)
        fail("%s: %s filters cannot remove single keys", target.name, dialect);
    fail("%s: is of kind %s, which cannot remove single keys; kinds cuckoo and "
         "bitmap can",
         target.name, seen_kind_name(kind));
}

static uint64_t absent(void)
{
    return tally.lines - tally.found;
}

static void report_json(void)
{
    struct json j = {.to = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "file", target.name);
    json_number(&j, "lines", (double)tally.lines);
    json_number(&j, "removed", (double)tally.found);
    json_number(&j, "absent", (double)absent());
    json_number(&j, "recovered", (double)target.outcome.recovered_keys);
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(void)
{
    char removed[UNIT_TEXT], missed[UNIT_TEXT];
    note("%s: %s removed, %s not found", target.name,
         show_many(removed, (double)tally.found, "key"),
         show_count(missed, (double)absent()));
}

static int run(char **operands, size_t n)
{
    if (n) output_is_no_input(operands[0], operands + 1, n - 1);
    const char *name = target_operand(operands, n);
    must_not_be_stream(name);
    open_flow(operands + 1, n - 1, false, opt.quiet);
    if (!find_target(&target, name)) target_missing(&target);
    must_forget();
    check_key_format();
    if (opt.json) keep_warnings();
    compare_keys(&target);
    write_target(&target, SEEN_DURABLE, NULL);
    if (!opt.quiet && !opt.json) note_recovery(&target);
    run_flow(&(struct flow){.of = &target,
                            .tally = &tally,
                            .ask = remove_them,
                            .tell = !opt.quiet && !opt.json,
                            .close = close_file,
                            .found = "removed",
                            .so_far = "removed",
                            .silent = true});
    if (opt.json)
        report_json();
    else if (!opt.quiet)
        report_text();
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen remove sessions.seen ended.txt",
    "forget the sessions that have ended",
    "echo 4711 | seen remove ids.bitmap",
    "one id out of a bitmap",
    "seen remove -q --hex tokens.seen revoked.txt",
    "keys in hex, and no note about how many were there",
    NULL,
};

static const struct option *const groups[] = {
    options, wait_options, secret_options, key_options, dialect_options, NULL};

const struct verb verb_remove = {
    .name = "remove",
    .summary = "take lines out of a filter file",
    .operands = "TARGET [INPUT...]",
    .text =
        "For filters of kind cuckoo and bitmap, also redis+bitmap://. A note "
        "says\n"
        "how many lines were not found. Remove from a cuckoo filter only what "
        "was\n"
        "added to it: another key may have left the same fingerprint, would go "
        "in\n"
        "its place, and be wrongly missing from then on. Bitmaps are exact.",
    .examples = examples,
    .options = groups,
    .run = run,
};
