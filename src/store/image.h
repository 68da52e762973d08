/* image.h - a whole filter as a new file, for those who change one: see image.c. */
#ifndef SEEN_IMAGE_H
#define SEEN_IMAGE_H

#include "api/bytes.h"
#include "base/error.h"

/* What to write of a filter into a file of its own: with an id that no other file
 * has, and the first epoch. To be freed with seen_saved_free() if SEEN_OK.
 * `flags`: SEEN_SECRET_APART. */
seen_status seen_image_of(const seen_filter *f, uint32_t flags,
                          struct seen_saved *s, seen_error *error);

/* As `path`, in the place of what is there (old, locked; -1: nothing). *fd is the
 * new file, locked, also if its directory could not be synced. */
seen_status seen_image_put(const char *path, int old, struct seen_saved *s,
                           int *fd, seen_error *error);

#endif
