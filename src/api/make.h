/* api/make.h - seen_new() for any kind, also those that are built and those of
 * other systems; and what a filter is. */
#ifndef SEEN_API_MAKE_H
#define SEEN_API_MAKE_H

#include "seen.h"

/* What seen_info_of() tells. */
seen_info seen_filter_info(const seen_filter *f);

/* f is not NULL; `built`: keys will come through ops->build. */
seen_status seen_make(seen_filter **f, const seen_spec *spec, bool built,
                      seen_error *e);
seen_status seen_make_foreign(seen_filter **f, const seen_spec *spec,
                              seen_error *e);

/* A filter from the first `size` bytes of `pattern`, with an allocator of its
 * own, parts full of zeros and no list. */
seen_status seen_make_like(seen_filter **out, const seen_filter *pattern,
                           size_t size, const seen_allocator *allocator);

#endif
