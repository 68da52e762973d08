/* api/plan.h - seen_plan_for(), for the calls beside it. */
#ifndef SEEN_API_PLAN_H
#define SEEN_API_PLAN_H

#include "seen.h"

struct seen_foreign;

/* *plan is written only on success. */
seen_status seen_plan_check(const seen_spec *spec, seen_plan *plan,
                            seen_error *e);

/* Of a dialect: all of the new filter but the memory for its bits. */
seen_status seen_plan_shape(const seen_spec *spec, struct seen_foreign *shape,
                            seen_error *e);

#endif
