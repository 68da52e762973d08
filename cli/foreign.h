/*
 * foreign.h - files of other systems, as targets: which dialect they are in, and
 * how they are changed, which is as a whole.
 */
#ifndef CLI_FOREIGN_H
#define CLI_FOREIGN_H

#include "target.h"

/* Is the target (a path, or bytes from stdin) a filter of another system: does
 * --dialect say so, or do its bytes? Then it is opened. Bytes that fit several,
 * or not the one that was named, end the program. */
bool find_foreign(struct target *t);

/* The filter of another system inside a container of ours: loaded, to be changed;
 * and, once it is open, its dialect, which --dialect must not contradict and which
 * may have a byte order of its own. */
void load_container(struct target *t);
const char *heed_contained(const struct target *t);

/* To be changed; nothing is written before close_foreign(). */
void change_foreign(struct target *t);
void create_foreign(struct target *t, const seen_spec *spec);

/* Write what has changed, and let go. */
void close_foreign(struct target *t);

/* The bytes of a filter in a dialect, to be freed; it is the end of the program
 * if there are none, with the reason and what to do instead. */
void *foreign_bytes(const char *name, const seen_filter *f, const char *dialect,
                    size_t *len);

#endif
