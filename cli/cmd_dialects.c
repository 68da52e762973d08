/* cmd_dialects.c - seen dialects: whose filters can be opened, and how. */
#include "options.h"
#include "output.h"

#include <seen.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "json", NULL, OPTION_FLAG, &opt.json, "the table as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* The fields of a spec are options here. */
static const char *needs(const seen_dialect_facts *d)
{
    static const char *const names[][2] = {
        {"bits", "--bits"},
        {"hashes, or items and fpp", "--hashes, or -n -p"},
        {"items and fpp, or hashes", "-n -p, or --hashes"},
    };
    if (!d->needs) return "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], d->needs) == 0) return names[i][1];
    return d->needs;
}

static void print_text(const seen_dialect_facts *d)
{
    printf("%-16s read write %-3s %-6s %-5s  %s\n", d->name,
           d->can & SEEN_CAN_ADD ? "add" : "",
           d->can & SEEN_CAN_REMOVE ? "remove" : "",
           d->can & SEEN_CAN_SNIFF ? "sniff" : "", d->system);
    if (d->needs) printf("%18sneeds %s\n", "", needs(d));
    printf("%18sweak: %s\n", "", d->weakness);
}

static void print_json(struct json *j, const seen_dialect_facts *d)
{
    json_open(j, NULL, '{');
    json_text(j, "name", d->name);
    json_text(j, "system", d->system);
    json_text(j, "hash", d->hash);
    json_bool(j, "read", true);
    json_bool(j, "write", true);
    json_bool(j, "add", d->can & SEEN_CAN_ADD);
    json_bool(j, "remove", d->can & SEEN_CAN_REMOVE);
    json_bool(j, "sniff", d->can & SEEN_CAN_SNIFF);
    json_text(j, "needs", needs(d));
    json_text(j, "weakness", d->weakness);
    json_close(j, '}');
}

static int run(char **operands, size_t n)
{
    if (n > 0) fail("%s: dialects takes no operands", operands[0]);
    struct json j = {.to = stdout};
    seen_dialect_facts d = {.size = sizeof d};
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_open(&j, "dialects", '[');
    }
    for (size_t i = 0; seen_dialect_at(i, &d); i++) {
        if (opt.json)
            print_json(&j, &d);
        else
            print_text(&d);
    }
    if (opt.json) {
        json_close(&j, ']');
        json_close(&j, '}');
    }
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen dialects",
    "names for --dialect, whose they are, what can be done with them",
    "seen dialects --json | jq -r '.dialects[] | select(.sniff).name'",
    "those whose files say what they are",
    "seen info unknown.bin",
    "which dialect is this file in?",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_dialects = {
    .name = "dialects",
    .summary = "other systems' filters that can be opened",
    .operands = "",
    .text =
        "Each can be asked, built from keys and written, byte for byte as the\n"
        "system itself does it. `sniff`: the bytes say what they are, and\n"
        "--dialect can be left out. `needs`: what they do not say, and check,\n"
        "add, info, merge and convert must be told. dcso-gzip is dcso packed "
        "with\n"
        "gzip, which is recognised.",
    .examples = examples,
    .options = groups,
    .run = run,
};
