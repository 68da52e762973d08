/* api/plan.h - seen_plan_for() with its reason, for the calls beside it. */
#ifndef SEEN_API_PLAN_H
#define SEEN_API_PLAN_H

#include "seen.h"

/* *problem is NULL on success, a sentence otherwise; *plan only on success. */
seen_status seen_plan_check(const seen_spec *spec, seen_plan *plan,
                            const char **problem);

#endif
