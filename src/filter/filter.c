/* filter.c - the table of kinds, and what their planners share. */
#include "filter/filter.h"

static const struct seen_filter_ops *const table[] = {
#define KIND(constant, ops) &ops,
#include "filter/kinds.def"
#undef KIND
};

const struct seen_filter_ops *seen_kinds_at(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const struct seen_filter_ops *seen_kinds_find(seen_kind kind)
{
    switch (kind) {
#define KIND(constant, ops)                                                    \
    case constant:                                                             \
        return &ops;
#include "filter/kinds.def"
#undef KIND
    case SEEN_ANY:
        break;
    }
    return NULL;
}

const char *seen_spec_needs_two(const seen_spec *spec)
{
    int given = (spec->items > 0) + (spec->fpp > 0) + (spec->bits > 0);
    if (given >= 2) return NULL;
    if (spec->items) return "fpp or bits is needed beside items";
    if (spec->fpp > 0) return "items (at least 1) or bits is needed beside fpp";
    if (spec->bits) return "items (at least 1) or fpp is needed beside bits";
    return "items (at least 1) and fpp are needed";
}
