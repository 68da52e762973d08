/*
 * help.h - the tables of verbs and options as text for a terminal. manual.h has
 * them as manual pages and completion.h as completions: what a verb does and
 * takes is said once, in its `struct verb`, and all three read that.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "options.h"

void print_overview(void); /* all verbs, on one screen */
void print_help(const struct verb *verb);

/* The end of the program, with what may have been meant. */
__attribute__((noreturn)) void no_such_verb(const char *name);

#endif
