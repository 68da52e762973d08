/*
 * overwrite.h - what an output must not take away: the input it is made from,
 * and a file that is not what the verb writes.
 *
 * Both are found out before anything is read or written. Files are compared by
 * device and inode, so links and redirections are no way around it.
 */
#ifndef CLI_OVERWRITE_H
#define CLI_OVERWRITE_H

#include "options.h"

#include <sys/stat.h>

/* By whatever names. */
bool same_file(const struct stat *a, const struct stat *b);

/* --force */
extern bool overwrite;

#define FORCE_ROW                                                              \
    {                                                                          \
        0, "force", NULL, OPTION_FLAG, &overwrite,                             \
            "replace a file even if it is not one that seen writes"            \
    }

/* The end of the program if one of the inputs ("-" or none: stdin) is the file
 * that `output` names; NULL: the file that stdout is. Only regular files can be
 * lost this way. */
void output_is_no_input(const char *output, char **inputs, size_t n);

/* The end of the program if there is a file of this name, no filter of ours or
 * of a dialect that can be recognised, and no --force. NULL: stdout. */
void may_replace_filter(const char *path);

/* When that file has been replaced: is there anything to say, and say it. */
bool has_replaced(void);
void note_replaced(const char *path);

/* The same for a picture; "-" or NULL: none in a file. */
void may_replace_svg(const char *path);

#endif
