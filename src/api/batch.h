/* api/batch.h - what other calls for many keys need of batch.c. */
#ifndef SEEN_API_BATCH_H
#define SEEN_API_BATCH_H

#include "filter/filter.h"

/* A batch that this filter can take: SEEN_INVALID, or SEEN_UNSUPPORTED for hashes
 * where the kind reads keys. */
seen_status seen_keys_fit(const seen_filter *f, seen_keys keys);

/* The low halves of the hashes of a batch that fits. */
void seen_keys_low(const seen_filter *f, seen_keys keys, uint64_t *low);

#endif
