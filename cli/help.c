/* help.c - see help.h. */
#include "help.h"

#include "output.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

#define WIDTH       79
#define HELP_COLUMN 26 /* where the text about an option begins */

/* ---- All verbs ---------------------------------------------------------- */

/* Every line of it must fit a terminal of 24 lines, together with the prompt
 * behind it: a job has no line of its own. */
void print_overview(void)
{
    puts("usage: seen VERB [options] ...              has this been seen "
         "before?\n");
    const char *job = "";
    for (const struct verb_row *v = verbs; v->verb; v++) {
        printf("%-8s  %-8s  %s\n", strcmp(job, v->job) == 0 ? "" : v->job,
               v->verb->name, v->verb->summary);
        job = v->job;
    }
    puts("exit codes: 0 done, 1 nothing found (check), 2 error");
}

void no_such_verb(const char *name)
{
    const char *near = verb_near(name);
    if (near)
        fail("%s: no such verb; did you mean %s? `seen --help` lists all", name,
             near);
    fail("%s: no such verb; `seen --help` lists them", name);
}

/* ---- One verb ----------------------------------------------------------- */

/* Words from this column on, in lines of their own where one does not hold
 * them. `at` is where the cursor stands. */
static void print_words(const char *text, size_t at)
{
    while (*text) {
        size_t len = strcspn(text, " \n");
        if (at + 1 + len > WIDTH && at > HELP_COLUMN) {
            printf("\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        } else if (at > HELP_COLUMN) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)len, text);
        at += len;
        text += len;
        while (*text == ' ' || *text == '\n')
            text++;
    }
    putchar('\n');
}

static void print_option(const struct option *o)
{
    if (is_heading(o)) {
        printf("\n%s:\n", o->help);
        return;
    }
    char left[96];
    size_t len = 0;
    if (o->letter) len = (size_t)snprintf(left, sizeof left, "-%c", o->letter);
    if (o->name)
        len += (size_t)snprintf(left + len, sizeof left - len, "%s--%s",
                                o->letter ? ", " : "    ", o->name);
    if (o->value)
        len += (size_t)snprintf(left + len, sizeof left - len,
                                o->type == OPTION_FORM ? "[=%s]" : " %s",
                                o->value);
    if (2 + len < HELP_COLUMN - 1)
        printf("  %-*s", HELP_COLUMN - 2, left);
    else
        printf("  %s\n%*s", left, HELP_COLUMN, "");
    print_words(o->help, HELP_COLUMN);
}

void print_help(const struct verb *verb)
{
    printf("seen %s - %s\n\n", verb->name, verb->summary);
    printf("usage: seen %s [options]%s%s\n\n%s\n\noptions:\n", verb->name,
           *verb->operands ? " " : "", verb->operands, verb->text);
    for (const struct option *const *group = verb->options; *group; group++)
        for (const struct option *o = *group; o->help; o++)
            print_option(o);
    puts("\nexamples:");
    for (const char *const *e = verb->examples; *e; e += 2)
        printf("  %s\n      %s\n", e[0], e[1]);
}
