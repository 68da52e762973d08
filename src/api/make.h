/* api/make.h - seen_new() for any kind, also those that are built. */
#ifndef SEEN_API_MAKE_H
#define SEEN_API_MAKE_H

#include "seen.h"

/* f is not NULL; `built`: keys will come through ops->build. */
seen_status seen_make(seen_filter **f, const seen_spec *spec, bool built);

#endif
