/* cmd_help.c - seen help: what the tables say, for people and for programs. */
#include "completion.h"
#include "help.h"
#include "manual.h"
#include "output.h"
#include "verbs.h"

static struct {
    bool man;
    const char *shell;
} opt;

static const struct option options[] = {
    {0, "man", NULL, OPTION_FLAG, &opt.man, "as a manual page, in roff"},
    {0, "completions", "bash|zsh|fish", OPTION_TEXT, &opt.shell,
     "the completions for this shell, of all verbs"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static int run(char **operands, size_t n)
{
    if (n > 1) fail("%s: expected one VERB", operands[1]);
    const struct verb *verb = n ? verb_named(operands[0]) : NULL;
    if (n && !verb) no_such_verb(operands[0]);
    if (opt.shell && (n || opt.man))
        fail("--completions covers all verbs: leave out VERB and --man");
    if (opt.shell && !print_completions(opt.shell))
        fail("--completions %s: expected bash, zsh or fish", opt.shell);
    if (opt.man)
        print_manual(verb);
    else if (verb)
        print_help(verb);
    else if (!opt.shell)
        print_overview();
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen help uniq",
    "what it does, its options, examples: the same as seen uniq --help",
    "seen help --man uniq > seen-uniq.1",
    "its manual page, for man -l",
    "seen help --completions bash > seen.bash",
    "let bash complete verbs, options, kinds, dialects and filter files",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_help = {
    .name = "help",
    .summary = "what a verb does, with examples: seen help uniq",
    .operands = "[VERB]",
    .text = "Help, manual pages and completions are written from the same "
            "tables, which\n"
            "the program also parses its options with: they cannot disagree.",
    .examples = examples,
    .options = groups,
    .run = run,
};
