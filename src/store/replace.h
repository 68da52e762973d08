/*
 * replace.h - a new file in the place of another: all of it or nothing.
 *
 * It is written to PATH.seen-new, synced and renamed. Both files are locked, so
 * of two who write at once one is told so, and nobody goes on with a file that
 * has lost its name.
 *
 * PATH.seen-new is made by whoever writes it, with the owner, the group and the
 * permissions of the file that it replaces. One that is there already is what a
 * program left that died: it is removed, never written to, for somebody may have
 * it open.
 *
 * All paths here are resolved (seen_io_resolve): a rename to a link would replace
 * the link.
 */
#ifndef SEEN_REPLACE_H
#define SEEN_REPLACE_H

#include "base/error.h"
#include "store/io.h"

/* Does `path` still name what the descriptor has open? */
bool seen_still_there(const char *path, int fd);

/*
 * Open and lock: SEEN_BUSY if somebody else has it. The file that was opened
 * may have been replaced before it was locked; then it is tried again.
 */
seen_status seen_open_locked(const char *path, int flags, mode_t mode, int *fd);

/* What is at a path now. */
struct seen_there {
    int fd;      /* a file, locked: its writer would go on unseen; or -1 */
    bool stream; /* a device or a pipe: no renaming there, just the bytes */
};

seen_status seen_find_there(const char *path, struct seen_there *there,
                            seen_error *error);

struct seen_replacing {
    const char *path;
    int old;     /* what is there, locked, or -1 */
    mode_t mode; /* of the new file, less the umask, if nothing is there */
    seen_status (*write)(void *ctx, int fd); /* all of it */
    void *ctx;
};

/* *fd is the new file, locked, also if its directory could not be synced; on any
 * other error it stays. */
seen_status seen_replace(const struct seen_replacing *what, int *fd,
                         seen_error *error);

#endif
