/*
 * file.h - a filter file that is open: what file.c (opening, closing), change.c
 * (changes, replay, checkpoints) and verify.c share. The essay is in file.c.
 */
#ifndef SEEN_STORE_FILE_H
#define SEEN_STORE_FILE_H

#include "seen_file.h"

#include "api/bytes.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "store/home.h"
#include "store/io.h"
#include "store/journal.h"

#include <pthread.h>

#define SEEN_FILE_ATTEMPTS 100 /* of a reader, between checkpoints */

/* What is known of a page: 64 KiB, one checksum. */
enum seen_page_state {
    SEEN_PAGE_UNSEEN = 0, /* not compared with its checksum, or it differs */
    SEEN_PAGE_DIRTY,      /* a frame changes it: its checksum is out of date */
    SEEN_PAGE_CHECKED     /* it has been as its checksum says */
};

struct seen_file {
    struct seen_home home;
    char *path; /* resolved: io.h */
    size_t path_size;
    seen_mode mode;
    int fd; /* the file, locked by writers; -1: none */
    struct seen_native header;
    seen_filter *filter;
    uint8_t *map; /* what the filter lies in, or NULL */
    size_t map_len;
    bool in_place;
    bool fresh;      /* this call has written it: there is nothing to compare */
    uint8_t *states; /* an enum seen_page_state for each page, or NULL */
    uint64_t pages;

    seen_journal *journal;
    uint64_t applied; /* number of the last frame that is in the filter */
    uint64_t told;    /* the time of the last frame of ours that tells it */
    uint32_t calling; /* for a checkpoint: no more frames until it is made */
    bool failed;      /* a sync failed: no more changes */
    seen_error why;   /* what that call told its caller */
    seen_outcome outcome; /* of opening or verifying it */
    int doubts; /* times that a reader has seen damage in the journal */
    pthread_mutex_t lock;
    pthread_cond_t turn; /* `applied` has moved on */
};

/* ---- file.c ------------------------------------------------------------- */

/* A handle for a path, and nothing opened yet. */
seen_status seen_file_make(seen_file **file, const char *path, seen_mode mode,
                           seen_error *error);
/* Without a checkpoint. Leaves errno as it is. */
void seen_file_destroy(seen_file *file);

/* Open and map what is at the path, to read or to change in private. */
seen_status seen_file_map(seen_file *file, enum seen_map_mode mode,
                          seen_error *error);

/* All that a reader does, again while a writer changes the file under it. */
enum seen_reading {
    SEEN_READ_QUICKLY, /* pages are not compared with their checksums */
    SEEN_READ_COMPARED,
    SEEN_READ_EXAMINED /* and the payload by all rules of the format */
};
seen_status seen_file_read(seen_file *file, enum seen_reading how,
                           const uint8_t *secret, seen_error *error);

/* What the status of a container means, and what was found wrong with it; `why`
 * may be NULL. */
seen_status seen_file_explain(seen_error *error, seen_status status,
                              const seen_error *why);

/* ---- change.c ----------------------------------------------------------- */

/* Apply what the last writer left in the journal. */
seen_status seen_file_replay(seen_file *file, seen_error *error);

/* Make everything applied so far part of the file, with these header flags; the
 * journal is not needed any more after that. No other thread may be changing it.
 * Here and below, `error` is not NULL. */
seen_status seen_file_checkpoint(seen_file *file, uint32_t flags,
                                 seen_error *error);

/* The other header slot, with one more epoch; then it is the one that counts. */
seen_status seen_file_put_header(seen_file *file, struct seen_native *h,
                                 seen_error *error);

/* SEEN_IO: after a failure, as the caller should hear it. */
seen_status seen_file_refuse(const seen_file *file, seen_error *error);

/* ---- verify.c ------------------------------------------------------------- */

/* A state for each page of the file that is mapped, kept if there is one. */
seen_status seen_file_know_pages(seen_file *file, seen_error *error);
void seen_file_forget_pages(seen_file *file);

/* Compare the pages that have not been found good so far with their checksums.
 * SEEN_CORRUPT names the first that differs. Where a journal may have run ahead of
 * checksums it is SEEN_OK, and after the replay seen_file_judge() tells. */
seen_status seen_file_compare(seen_file *file, seen_error *error);
seen_status seen_file_judge(const seen_file *file, seen_error *error);

/* SEEN_CORRUPT: this page differs from its checksum. */
seen_status seen_page_bad(const seen_file *file, uint64_t i, seen_error *error);

/* ---- Pages -------------------------------------------------------------- */

static inline uint32_t seen_page_sum(const seen_file *file, uint64_t i)
{
    const struct seen_native *h = &file->header;
    uint64_t at = i * SEEN_PAGE_SIZE;
    return seen_crc32c(0, file->map + h->payload_offset + at,
                       (size_t)seen_min64(h->payload_len - at, SEEN_PAGE_SIZE));
}

/* The same as the table of the file has it. */
static inline uint32_t seen_page_noted(const seen_file *file, uint64_t i)
{
    return seen_get_le32(file->map + file->header.table_offset + 4 * i);
}

#endif
