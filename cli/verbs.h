/* verbs.h - what the program can do: verbs.def as a table. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "options.h"

struct verb_row {
    const struct verb *verb; /* NULL: the end of the table */
    const char *job;         /* rows of one job stand together */
};

extern const struct verb_row verbs[];

const struct verb *verb_named(const char *name); /* NULL: none */

/* One that may have been meant; NULL: none is near. */
const char *verb_near(const char *name);

#endif
