/* outcome.h - what a call found and did, told to its caller: seen_outcome. */
#ifndef SEEN_OUTCOME_H
#define SEEN_OUTCOME_H

#include "seen_file.h"

#include "base/out.h"

static inline bool seen_outcome_ok(const seen_outcome *outcome)
{
    return !outcome || seen_out_ok(&outcome->size);
}

static inline void seen_outcome_tell(seen_outcome *outcome,
                                     const seen_outcome *did)
{
    if (outcome) seen_out(&outcome->size, did, sizeof *did);
}

#endif
