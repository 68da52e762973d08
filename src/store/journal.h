/*
 * journal.h - what was done, on disk before it is acknowledged.
 *
 * A journal belongs to a file or a directory, `path`, and lies beside it:
 *
 *     PATH.journal-0000000000000001      segments, named by the number of the
 *     PATH.journal-00000000000003e9      first frame in them
 *
 * A frame is a type, a few bytes that mean something to the caller, and a
 * sequence number, one more than that of the frame before. Whoever owns the
 * journal keeps in its own file how far the frames have become part of it (a
 * checkpoint), and replays the later ones when it opens.
 *
 *     append -> commit -> apply -> acknowledge          ... checkpoint -> drop
 */
#ifndef SEEN_JOURNAL_H
#define SEEN_JOURNAL_H

#include "seen.h"

#include "store/os.h"

#define SEEN_FRAME_MAX ((size_t)1 << 24) /* bytes of payload */

typedef struct seen_journal seen_journal;

/* ---- Reading ------------------------------------------------------------ */

struct seen_frame {
    uint64_t sequence;
    uint32_t type;
    const uint8_t *payload;
    size_t len;
};

struct seen_replayed {
    uint64_t last;     /* sequence of the last good frame, or `after` */
    uint64_t frames;   /* handed on */
    uint64_t torn;     /* bytes at the end that were no whole frame */
    uint64_t segments; /* there are, or were a moment ago */
    uint64_t gone; /* of them: a writer dropped them before they were read */
    char problem[192]; /* SEEN_CORRUPT, SEEN_IO: what and where */
};

/* Hand the frames with numbers above `after` to `each`, in order; segments with
 * another id than `id` are not ours. Stops at a torn tail, which is normal after
 * a crash. SEEN_CORRUPT: a frame is damaged or missing that had been on disk
 * when a later one was written. Changes nothing. */
seen_status seen_journal_replay(const char *path, uint64_t id, uint64_t after,
                                seen_status (*each)(void *ctx,
                                                    const struct seen_frame *f),
                                void *ctx, struct seen_replayed *out);

/* ---- Writing ------------------------------------------------------------ */

/* Continue behind sequence `last`: what lies after it is cut off or removed
 * first, what lies before it is on disk. `epoch`: differs from that of any earlier writer of this path.
 * `like`: the file that it belongs to, whose owner, group and permissions the
 * segments get; NULL: they are for nobody but us. */
seen_status seen_journal_open(seen_journal **j, const char *path,
                              const struct seen_stat *like, uint64_t id,
                              uint64_t epoch, uint64_t last);
/* Does not commit. */
void seen_journal_close(seen_journal *j);
/* The same in a child that was forked (home.h): memory and descriptor, nothing
 * else. The caller's lock for appends is held. */
void seen_journal_abandon(seen_journal *j);

/* Write a frame; *sequence is its number. A failure leaves the journal as it
 * was. Appends are made one at a time by the caller. */
seen_status seen_journal_append(seen_journal *j, uint32_t type,
                                const void *payload, size_t len,
                                uint64_t *sequence);

/* Return when everything up to `sequence` is on disk. Any number of threads may
 * wait at once: one of them syncs for all. After a failure every later call
 * fails: nobody knows what is on disk then. */
seen_status seen_journal_commit(seen_journal *j, uint64_t sequence);

/* What was appended so far is on disk, and what comes goes into a new segment.
 * If there is no room for one, the old one goes on. Not while another thread
 * appends. */
seen_status seen_journal_cut(seen_journal *j);

/* Frames up to `sequence` are part of the file itself, durably: remove the
 * segments that hold no later ones, except the open one. */
seen_status seen_journal_drop(seen_journal *j, uint64_t sequence);

bool seen_journal_failed(seen_journal *j); /* a sync has: nothing helps */
uint64_t seen_journal_bytes(const seen_journal *j); /* in the open segment */
uint64_t seen_journal_last(const seen_journal *j);  /* number appended last */

/* Is there no frame in the segments of a path, and never was one? So they are
 * after the first was made and nothing was written to it. */
seen_status seen_journal_blank(const char *path, bool *blank);

/* Are there segments of a path, whichever file they belong to? */
seen_status seen_journal_there(const char *path, bool *there);

/* Remove all segments of a path, whichever file they belong to. */
seen_status seen_journal_remove(const char *path);

#endif
