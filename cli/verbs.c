/* verbs.c - see verbs.h. */
#include "verbs.h"

#include "near.h"

#include <string.h>

#define VERB(name, job) extern const struct verb verb_##name;
#include "verbs.def"
#undef VERB

const struct verb_row verbs[] = {
#define VERB(name, job) {&verb_##name, job},
#include "verbs.def"
#undef VERB
    {NULL, NULL},
};

const struct verb *verb_named(const char *name)
{
    for (const struct verb_row *v = verbs; v->verb; v++)
        if (strcmp(name, v->verb->name) == 0) return v->verb;
    return NULL;
}

const char *verb_near(const char *name)
{
    struct near near = near_to(name, strlen(name));
    for (const struct verb_row *v = verbs; v->verb; v++)
        consider(&near, v->verb->name);
    return near.best;
}
