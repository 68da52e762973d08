/*
 * cmd_convert.c - seen convert: the same bits in another encoding.
 *
 * A filter cannot be translated: its bits are where its own hash puts them, and
 * its keys are gone. But some schemes have several encodings, one of which is
 * always our own container, with checksums.
 */
#include "foreign.h"
#include "input.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "pack.h"
#include "progress.h"
#include "spec.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *to, *output;
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "to", "native|DIALECT", OPTION_TEXT, &opt.to,
     "the dialect to write; native is our own container"},
    {'o', NULL, "FILE", OPTION_TEXT, &opt.output,
     "write the result here; - is stdout"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what was done, as JSON (with -o -: on stderr)"},
    FORCE_ROW,
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static bool to_native(void)
{
    return strcmp(opt.to, "native") == 0;
}

static void convert(const struct target *t, const char *path)
{
    seen_info info = {.size = sizeof info};
    seen_info_of(t->filter, &info);
    if (to_native() && !info.dialect)
        fail("%s: is in our own container already", t->name);
    if (to_native()) {
        may_replace_filter(path);
        save_filter(path, t->filter, false);
        return;
    }
    size_t len; /* says what is wrong, under the name of the input */
    free(foreign_bytes(t->name, t->filter, opt.to, &len));
    may_replace_filter(path);
    export_filter(path, t->filter, opt.to);
}

static void report_json(const struct target *t, FILE *to)
{
    struct json j = {.to = to};
    seen_info info = {.size = sizeof info};
    seen_measure(t->filter, &info);
    json_open(&j, NULL, '{');
    json_text(&j, "file", opt.output);
    json_bool(&j, "replaced", has_replaced());
    json_text(&j, "converted", t->name);
    json_text(&j, "from", info.dialect ? info.dialect : "native");
    json_text(&j, "to", opt.to);
    json_number(&j, "items", (double)info.items);
    json_number(&j, "bits", (double)info.bits);
    json_close(&j, '}');
}

static int run(char **operands, size_t n)
{
    struct target target;
    if (n != 1)
        fail("expected one filter: seen convert IN --to DIALECT -o OUT");
    if (!opt.to)
        fail("--to is missing: expected --to DIALECT, see seen dialects");
    if (!to_native() && !seen_dialect_named(unpacked_name(opt.to), NULL))
        fail("--to %s: expected native or a dialect of seen dialects", opt.to);
    check_key_format();
    const char *path = output_path(opt.output);
    if (path) output_is_no_input(path, operands, n);
    if (!find_target(&target, operands[0])) target_missing(&target);
    must_be_file(&target);
    start_work(opt.quiet);
    work_on(target.name);
    read_target(&target);
    convert(&target, path);
    end_progress();
    if (opt.json)
        report_json(&target, path ? stdout : stderr);
    else if (!opt.quiet && path) {
        note("%s: %s as %s", opt.output, target.name, opt.to);
        note_replaced(opt.output);
    }
    close_target(&target);
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen convert shown.list --to native -n 1000 -p 0.1% -o shown.seen",
    "a filter of another system into our container, checksums and all",
    "seen convert shown.seen --to exposure-list -o -",
    "and back, byte for byte",
    "seen convert filter.json --to bits-and-blooms -o filter.bin",
    "another encoding of the same system",
    NULL,
};

static const struct option *const groups[] = {options, secret_options,
                                              dialect_options, NULL};

const struct verb verb_convert = {
    .name = "convert",
    .summary = "the same filter in another encoding",
    .operands = "IN --to DIALECT -o OUT",
    .text =
        "Between encodings of one scheme only: where another system puts the "
        "bits\n"
        "of a key is up to its hash, and the keys are not in the filter. "
        "Between\n"
        "different schemes, build the other filter from the keys: seen build\n"
        "--dialect.",
    .examples = examples,
    .options = groups,
    .run = run,
};
