/* manual.c - see manual.h. */
#include "manual.h"

#include "verbs.h"

#include <ctype.h>
#include <seen.h>
#include <stdio.h>
#include <string.h>

/* ---- Text --------------------------------------------------------------- */

/* One character as itself: a hyphen in an option is no hyphen to roff, and
 * quotes shall come out straight. */
static void put(char c)
{
    switch (c) {
    case '\\':
        printf("\\e");
        break;
    case '-':
        printf("\\-");
        break;
    case '\'':
        printf("\\(aq");
        break;
    case '^':
        printf("\\(ha");
        break;
    case '~':
        printf("\\(ti");
        break;
    default:
        putchar(c);
    }
}

/* A line must not begin as a request does. */
static void put_start(char c)
{
    if (c == '.') printf("\\&");
}

/* As it is, `words` in backquotes bold. */
static void put_text(const char *text)
{
    bool bold = false;
    put_start(*text);
    for (; *text; text++) {
        if (*text == '`') {
            bold = !bold;
            printf("%s", bold ? "\\fB" : "\\fR");
        } else if (*text == '\n' && text[1] == '\n') {
            printf("\n.PP");
        } else {
            put(*text);
            if (*text == '\n') put_start(text[1]);
        }
    }
    putchar('\n');
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

/* Synopses: options bold, NAMES of what is to be put in italic. */
static void put_synopsis(const char *text)
{
    while (*text) {
        size_t len = 0;
        while (is_name(text[len]))
            len++;
        if (len == 0) {
            put(*text++);
            continue;
        }
        bool name = isupper((unsigned char)*text);
        printf("%s", name ? "\\fI" : "\\fB");
        for (size_t i = 0; i < len; i++)
            put(text[i]);
        printf("\\fR");
        text += len;
    }
}

/* ---- Pages -------------------------------------------------------------- */

static void put_title(const char *verb)
{
    printf(".TH SEEN");
    if (verb) putchar('-');
    for (const char *c = verb ? verb : ""; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"seen %s\" Seen\n.SH NAME\n", seen_version());
}

static void put_option(const struct option *o)
{
    if (is_heading(o)) {
        printf(".SS ");
        putchar(toupper((unsigned char)o->help[0]));
        put_text(o->help + 1);
        return;
    }
    puts(".TP");
    if (o->letter) printf("\\fB\\-%c\\fR", o->letter);
    if (o->letter && o->name) printf(", ");
    if (o->name) {
        printf("\\fB\\-\\-");
        for (const char *c = o->name; *c; c++)
            put(*c);
        printf("\\fR");
    }
    if (o->value && o->type == OPTION_FORM) {
        printf("[\\fB=%s\\fR]", o->value);
    } else if (o->value) {
        putchar(' ');
        put_synopsis(o->value);
    }
    putchar('\n');
    put_text(o->help);
}

static void put_verb(const struct verb *verb)
{
    put_title(verb->name);
    printf("seen\\-%s \\- ", verb->name);
    put_text(verb->summary);
    printf(".SH SYNOPSIS\n\\fBseen %s\\fR [\\fIoptions\\fR] ", verb->name);
    put_synopsis(verb->operands);
    puts("\n.SH DESCRIPTION");
    put_text(verb->text);
    puts(".SH OPTIONS");
    for (const struct option *const *group = verb->options; *group; group++)
        for (const struct option *o = *group; o->help; o++)
            put_option(o);
    puts(".SH EXAMPLES");
    for (const char *const *e = verb->examples; *e; e += 2) {
        puts(".TP");
        printf("\\fB");
        for (const char *c = e[0]; *c; c++)
            put(*c);
        puts("\\fR");
        put_text(e[1]);
    }
    puts(".SH SEE ALSO\n.BR seen (1)");
}

static void put_overview(void)
{
    put_title(NULL);
    puts("seen \\- has this been seen before?\n"
         ".SH SYNOPSIS\n"
         "\\fBseen\\fR \\fIVERB\\fR [\\fIoptions\\fR] ...\n"
         ".SH DESCRIPTION\n"
         "A filter remembers keys in a few bits each. Asked about a key, it\n"
         "answers \\(lqnever\\(rq, which is always true, or \\(lqmaybe\\(rq,\n"
         "which is wrong as rarely as you choose. A store remembers what each\n"
         "user has been shown. Every verb has a page of its own, with\n"
         "examples: \\fBseen\\-uniq\\fR(1), or \\fBseen help uniq\\fR. The\n"
         "library is described in \\fBseen\\fR(3), the module for Redis and\n"
         "Valkey in \\fBseen\\-redis\\fR(7).\n"
         ".SH VERBS");
    const char *job = "";
    for (const struct verb_row *v = verbs; v->verb; v++) {
        if (strcmp(job, v->job) != 0)
            printf(".SS %c%s\n", toupper((unsigned char)*v->job), v->job + 1);
        job = v->job;
        printf(".TP\n\\fBseen\\-%s\\fR(1)\n", v->verb->name);
        put_text(v->verb->summary);
    }
    puts(".SH EXIT STATUS\n"
         "0: done. 2: an error, with one sentence on stderr.\n"
         "\\fBseen check\\fR: 0 if something was printed (or would be with\n"
         "\\fB\\-q\\fR), 1 if nothing was.");
}

void print_manual(const struct verb *verb)
{
    if (verb)
        put_verb(verb);
    else
        put_overview();
}
