/*
 * replace.h - a new file in the place of another: all of it or nothing.
 *
 * It is written to PATH.seen-new, synced and renamed. Both files are locked, so
 * of two who write at once one is told so, and nobody goes on with a file that
 * has lost its name.
 */
#ifndef SEEN_REPLACE_H
#define SEEN_REPLACE_H

#include "store/io.h"
#include "store/report.h"

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
    mode_t mode; /* of it */
    bool stream; /* a device or a pipe: no renaming there, just the bytes */
};

seen_status seen_find_there(const char *path, struct seen_there *there,
                            seen_store_report *r);

struct seen_replacing {
    const char *path;
    int old;     /* what is there, locked, or -1 */
    mode_t mode; /* of the new file; less the umask, unless it replaces one */
    seen_status (*write)(void *ctx, int fd); /* all of it, and sync */
    void *ctx;
};

/* *fd is the new file, locked, also if its directory could not be synced; on any
 * other error it stays. */
seen_status seen_replace(const struct seen_replacing *what, int *fd,
                         seen_store_report *r);

#endif
