/*
 * manual.h - the tables of verbs and options as manual pages, in roff with the
 * macros of man(7), which groff and mandoc both read.
 *
 * seen-VERB.1 is a verb's help, word for word. seen.1 begins with the overview;
 * what all verbs share follows behind it, from docs/COMMANDS.md (man/).
 */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "options.h"

void print_manual(const struct verb *verb); /* NULL: of the program */

#endif
