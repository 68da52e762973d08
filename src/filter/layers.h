/* filter/layers.h - asking several arrays of lines about many keys. */
#ifndef SEEN_FILTER_LAYERS_H
#define SEEN_FILTER_LAYERS_H

#include "bits/lines.h"

#define SEEN_LAYERS_PIECE 1024 /* keys that go through together */

/* Is any of n <= SEEN_LAYERS_PIECE hashes in any of the layers? The last is asked
 * first. */
void seen_layers_ask(const struct seen_kernel *k,
                     const struct seen_lines *chain, uint32_t layers,
                     const seen_hash *h, size_t n, bool *answers);

#endif
