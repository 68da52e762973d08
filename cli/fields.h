/*
 * fields.h - the fields of a line that are its key: -f LIST and -t DELIM, as cut
 * has them.
 */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include "input.h"

/* The list of -f, which ends the program if it is none. */
void parse_fields(const char *list);

/* The text that `cut -d DELIM -f LIST` prints: the line itself where DELIM is
 * not in it, otherwise the fields that there are. One piece stays where it lies;
 * several are joined in `to`, and are no longer than the line. *odd is counted up
 * where the line has no DELIM, or none of the fields. */
seen_key pick_fields(seen_key line, char *to, size_t *odd);

#endif
