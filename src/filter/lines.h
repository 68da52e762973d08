/* filter/lines.h - what the kinds that are made of 512-bit lines share. */
#ifndef SEEN_FILTER_LINES_H
#define SEEN_FILTER_LINES_H

#include "bits/lines.h"

/* The rate of the bits as they are, and how many are set. Concurrent adds may
 * be running. Each line is `apart` lines from the one before: 1, or what else
 * lies between them. */
double seen_lines_survey(const struct seen_lines *lines, uint32_t apart,
                         uint64_t *bits_set);

#endif
