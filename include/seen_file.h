/*
 * seen_file.h - filters in files that survive a crash, and random secrets. In
 * libseen_store; the contract of seen.h holds here, except that these calls
 * make system calls.
 */
#ifndef SEEN_FILE_H
#define SEEN_FILE_H

#include "seen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill `secret` with 16 bytes for seen_spec.secret, from the kernel's random
 * generator and from nothing else: SEEN_IO, secret untouched, if it has none. */
SEEN_API seen_status seen_random_secret(uint8_t secret[16]);

/* ---- A filter in a file ------------------------------------------------- */

/*
 * A filter file is the format of docs/FORMAT.md. Beside it, while a writer is
 * at work or after it died, lies its journal: FILE.journal-<number>. The two
 * belong together: copy, move or link a file only when there is no journal. One
 * whose journal is missing is SEEN_CORRUPT.
 *
 * Names      A symbolic link stays a link: file, journal and what is written
 *            beside are where it leads, also to a file that is yet to be made. A
 *            file with several names (hard links) is SEEN_INVALID for a writer;
 *            seen_file_save() and seen_file_write() replace the name given. A
 *            later chdir() changes nothing.
 * Modes      A new file with its secret is 0600; others are as the umask says. A
 *            file that is replaced keeps its mode, owner and group as far as
 *            this process may give them; a journal has those of its file.
 * Full disk  SEEN_IO, errno ENOSPC: space is allocated before a file is changed in
 *            place. Somebody else who truncates a file that is open here
 *            causes SIGBUS, as with any mapped file.
 * Forks      A handle belongs to the process that opened it. In a child that was
 *            forked every call that changes is SEEN_INVALID; open the file again
 *            there. seen_file_maybe_many() answers as before if the file
 *            was opened with SEEN_READ and is no window; otherwise every
 *            answer is true: the child cannot know what its parent has added.
 *            seen_file_close() in a child frees memory and descriptors
 *            and touches nothing on disk; if another thread was in a call at the
 *            time of the fork, they stay until the child exits or calls exec(). If
 *            the parent dies without closing the file, its lock stays with
 *            children that have not closed their copy.
 *
 * One writer and any number of readers, in any processes. A reader sees the
 * file as it was when it was opened, or newer. All calls on one handle may run
 * at once; the filter that seen_file_filter() lends may be asked while no
 * call changes it.
 */
typedef struct seen_file seen_file;

typedef enum seen_mode {
    SEEN_READ = 0, /* look, do not touch; the file is mapped */
    SEEN_WRITE,    /* changes survive a crash of the program at once, a
                            loss of power after _sync() or _close() */
    SEEN_DURABLE   /* a change that returned SEEN_OK survives everything;
                            threads that change at once share one sync */
} seen_mode;

#define SEEN_UNVERIFIED 2u /* open at once: do not compare every page first */

typedef struct seen_file_options {
    seen_mode mode;
    uint32_t flags;          /* SEEN_UNVERIFIED; SEEN_SECRET_APART: when
                                creating */
    const uint8_t *secret;   /* 16 bytes, where it was kept apart */
    const seen_spec *create; /* make the file if there is none; NULL: then it
                                is SEEN_ABSENT */
    uint64_t wait_ms;        /* for another writer; 0: SEEN_BUSY at once */
    uint64_t reserved[5];
} seen_file_options;

/* What a call found and did, beside its status and its error; may be NULL. Written
 * also when the call fails later. */
typedef struct seen_outcome {
    size_t size;               /* sizeof (seen_outcome), set by the caller */
    uint64_t recovered_frames; /* of the journal, made part of the filter */
    uint64_t recovered_keys;   /* in them, repeats included */
    uint64_t torn_bytes;       /* at its end, never acknowledged, left out */
    bool created;              /* a new file or store has the name */
    bool recovered;            /* the last writer did not close it */
    bool empty; /* on a server: nothing has that name, which means an empty
                       bitmap or filter of go-zero */
} seen_outcome;

/*
 * Fields of an error: "path", "secret", "mode", "flags", "options.create",
 * "reserved", "keys", "file" (the handle). Its text does not repeat the path.
 *
 * SEEN_ABSENT   no such file, and nothing to create it from
 * SEEN_INVALID  also what is no file: a directory, a device
 * SEEN_BUSY     another writer has it, also after options.wait_ms
 * SEEN_CORRUPT  its header, a page or its journal is damaged; the text says where
 * SEEN_NO_SECRET, SEEN_MISMATCH   the secret is missing, or is another one
 *
 * Every page is compared with its checksum first, because a damaged one can cause a
 * wrong "never": 0.2 s for 1 GB in memory, or the time that the disk needs to read
 * it. With SEEN_UNVERIFIED a file that is mapped is open at once whatever its size,
 * and answers may be wrong where it is damaged. A change never hides damage: with
 * that flag, too, a page is compared before it is changed for the first time, and a
 * file that is loaded to be changed (SEEN_WRITE, or a kind that does more than set
 * bits) is compared as a whole.
 */
SEEN_API seen_status seen_file_open(seen_file **file, const char *path,
                                    const seen_file_options *options,
                                    seen_outcome *outcome, seen_error *error);

/* Everything to disk, journal gone. The handle is closed whatever the status;
 * after SEEN_IO, what was acknowledged is still in file and journal. NULL is
 * SEEN_OK. */
SEEN_API seen_status seen_file_close(seen_file *file, seen_error *error);

/* Lent until the file is changed or closed. */
SEEN_API const seen_filter *seen_file_filter(const seen_file *file);

/* As the calls of seen.h without file_, with keys in any layout. A batch that is
 * not valid is SEEN_INVALID before anything reaches the journal.
 *
 * SEEN_IO: error says which call failed. After a failed sync every change is
 * SEEN_IO, and says why, until the file is opened again: what is on disk is not
 * known. SEEN_CORRUPT: the file is damaged where keys of this call belong; none of
 * the last 65,536 or fewer of them, which make one frame of the journal, is in.
 * SEEN_UNSUPPORTED: opened with SEEN_READ, or a kind that cannot do that. */
SEEN_API seen_status seen_file_maybe_many(seen_file *file, seen_keys keys,
                                          bool *answers);
SEEN_API seen_status seen_file_add_many(seen_file *file, seen_keys keys,
                                        size_t *added, seen_error *error);
SEEN_API seen_status seen_file_visit_many(seen_file *file, seen_keys keys,
                                          bool *before, size_t *visited,
                                          seen_error *error);
SEEN_API seen_status seen_file_remove_many(seen_file *file, seen_keys keys,
                                           bool *removed, size_t *done,
                                           seen_error *error);
/* The time, for SEEN_WINDOW. Reaches the file with the next change; with
 * SEEN_READ it concerns this handle only. */
SEEN_API seen_status seen_file_advance(seen_file *file, uint64_t now_ms,
                                       seen_error *error);
/* Everything acknowledged is in the file itself afterwards. Happens by itself
 * when the journal has grown long. */
SEEN_API seen_status seen_file_sync(seen_file *file, seen_error *error);

/* Write a filter to `path`, beside it first, then renamed: whatever happens,
 * there is the old file or the new one. SEEN_BUSY: a writer has the old one.
 * flags: SEEN_SECRET_APART. */
SEEN_API seen_status seen_file_save(const char *path, const seen_filter *f,
                                    uint32_t flags, seen_outcome *outcome,
                                    seen_error *error);

/* The same, for a filter that was made from what the file held when
 * seen_file_look() filled *was: SEEN_BUSY if somebody has opened it to change it
 * since, SEEN_ABSENT if the file is gone. `was` NULL: as seen_file_save(). */
SEEN_API seen_status seen_file_save_over(const char *path, const seen_filter *f,
                                         uint32_t flags, const seen_info *was,
                                         seen_outcome *outcome,
                                         seen_error *error);

/* seen_look() at a filter file. */
SEEN_API seen_status seen_file_look(const char *path, seen_info *info,
                                    seen_plan *plan, seen_error *error);

/* Write any bytes to `path`, beside it first, then renamed: for the filters of
 * other systems, see seen_export(). */
SEEN_API seen_status seen_file_write(const char *path, const void *bytes,
                                     size_t len, seen_outcome *outcome,
                                     seen_error *error);

/* Compare every byte of a filter file with its checksums. */
SEEN_API seen_status seen_file_verify(const char *path, seen_outcome *outcome,
                                      seen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* SEEN_FILE_H */
