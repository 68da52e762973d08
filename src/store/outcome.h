/* outcome.h - what calls on paths check first and tell last: the path itself, and
 * seen_outcome, what was found and done. */
#ifndef SEEN_OUTCOME_H
#define SEEN_OUTCOME_H

#include "seen_file.h"

#include "base/error.h"
#include "base/out.h"

static inline seen_status seen_check_path(const char *path, seen_error *error)
{
    if (path && *path) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "path",
                     path ? "path: expected the name of a file, got \"\""
                          : "path: expected the name of a file, got NULL");
}

static inline bool seen_outcome_ok(const seen_outcome *outcome)
{
    return !outcome || seen_out_ok(&outcome->size);
}

static inline seen_status seen_outcome_check(const seen_outcome *outcome,
                                             seen_error *error)
{
    if (seen_outcome_ok(outcome)) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "outcome",
                     "outcome.size is %zu: set it to sizeof (seen_outcome) "
                     "before the call",
                     outcome->size);
}

static inline void seen_outcome_tell(seen_outcome *outcome,
                                     const seen_outcome *did)
{
    if (outcome) seen_out(&outcome->size, did, sizeof *did);
}

#endif
