/*
 * table.h - users in memory: those whose records have changed since the last
 * checkpoint, with what they have become.
 *
 *     user  ──►  record, as far as it is known  +  changes that are queued for it
 *
 * A mark costs ten microseconds when it is worked into a record (decode a
 * generation, merge, encode) and a tenth of one when its hashes are only noted.
 * So changes are queued first, as words one behind the other,
 *
 *     time | kind and n | n hashes    time | kind and n | ...
 *
 * and settled when somebody asks for the record: all of them in one pass. A user
 * who gets ten marks between two questions pays once. The record itself need not
 * be known to queue something for it: then it lies where it lay before (local.h).
 *
 * The table is open addressing over pointers; users never move.
 */
#ifndef SEEN_TABLE_H
#define SEEN_TABLE_H

#include "seen_exposure.h"

enum seen_change_kind {
    SEEN_CHANGE_MARK = 1,
    SEEN_CHANGE_FORGET = 2,      /* items */
    SEEN_CHANGE_FORGET_USER = 3, /* everything; never queued: settled at once */
};

struct seen_user {
    uint64_t hash; /* of the name */
    uint8_t *record;
    uint32_t record_len, record_room;
    uint64_t *queued;
    uint32_t queued_len, queued_room; /* words */
    uint32_t reserved;                /* of the room, for changes to come */
    bool known; /* `record` is what `queued` is to be added to */
    uint16_t name_len;
    uint8_t name[];
};

struct seen_table {
    struct seen_user **at;
    size_t places, count;
    uint64_t bytes; /* of everything */
    uint64_t
        lowest; /* time of a change that is queued or settled; all bits: none */
};

void seen_table_init(struct seen_table *t);
void seen_table_free(struct seen_table *t);

struct seen_user *seen_table_find(const struct seen_table *t, uint64_t hash,
                                  seen_key user);
/* Find, or put there: unknown and nothing queued. NULL: no memory. */
struct seen_user *seen_table_need(struct seen_table *t, uint64_t hash,
                                  seen_key user);
void seen_table_remove(struct seen_table *t, struct seen_user *u);

/* Room for one more change of n hashes, so that queueing it cannot fail; until
 * `reserved` is set to 0. */
bool seen_table_reserve(struct seen_table *t, struct seen_user *u, size_t n);
void seen_table_queue(struct seen_table *t, struct seen_user *u,
                      enum seen_change_kind kind, uint64_t now_ms,
                      const void *h, size_t n);

/* This is the record now, and nothing is queued. */
bool seen_table_settle(struct seen_table *t, struct seen_user *u,
                       seen_record record);

/* What is queued for a record, applied: *result is x's, or `record` itself. */
seen_status seen_table_apply(const uint64_t *queued, uint32_t len,
                             seen_exposure *x, seen_record record,
                             seen_record *result);

/* By name, as memcmp, shorter first: the order of LMDB. */
int seen_table_compare(const struct seen_user *a, const struct seen_user *b);

#endif
