/*
 * source.h - files to chunks of whole lines: opened, decompressed, read.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "input.h"

struct source;

/* Is it called `-`? */
bool is_stdin(const char *name);

/* The named files in order, stdin for "-" or for none. All of them are looked
 * at first: a file that cannot be read ends the program before anything is
 * printed. Compressed ones are decompressed; unless lines end in NUL, a mark of
 * UTF-8 at the beginning is dropped, and text that is not made of bytes (UTF-16,
 * UTF-32) is a failure. `hasty`: hand on whatever one read brings. */
struct source *open_source(char **names, size_t n, bool hasty);

/* The next lines, false at the end. Waits for more only while there is no whole
 * line, so what has been read is never held back. An error comes as the
 * `failure` of a chunk, behind the lines that were read before it. */
bool read_chunk(struct source *s, struct chunk *c);

/* Bytes of the files as they lie there: dealt with so far, and in all (0: not
 * known, for there are pipes among them). */
uint64_t source_bytes(const struct source *s);
uint64_t source_total(const struct source *s);
/* The first that looks like UTF-16 without a mark, and like which, as iconv calls
 * it; NULL: none, so far. */
const char *source_wide(const struct source *s, const char **encoding);

/* How many began with a mark of UTF-8 so far, and the first of them. */
size_t source_marks(const struct source *s, const char **file);
void close_source(struct source *s);

#endif
