/* pages.h - is all of an LMDB file there? */
#ifndef SEEN_PAGES_H
#define SEEN_PAGES_H

#include "seen_file.h"

/* SEEN_CORRUPT: data.mdb was cut short, and reading it through a map would be
 * SIGBUS; or what leads to its pages is damaged. A writer may be at work. */
seen_status seen_pages_check(int fd, seen_error *error);

#endif
