/*
 * frame.c - changes as bytes in a frame of the journal, one behind the other:
 *
 *     0   1   kind: 1 mark, 2 forget items, 3 forget the user
 *     1   1   0
 *     2   2   length of the user's name
 *     4   4   n, number of hashes
 *     8   8   time
 *     16  ..  name
 *     ..  8n  hashes
 *
 * A worker puts a frame together; it goes into the journal first, then into the
 * active table. A replay makes the same changes from the bytes.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/local.h"

#include "base/bytes.h"

#define CHANGE 16 /* bytes before the name */

static size_t change_size(size_t name_len, size_t n)
{
    return CHANGE + name_len + 8 * n;
}

bool seen_frame_put(struct seen_worker *w, enum seen_change_kind kind,
                    struct seen_user *u, uint64_t now_ms, const uint64_t *h,
                    size_t n)
{
    size_t size = change_size(u->name_len, n);
    if (!seen_room_need(&w->frame, w->frame_len + size) ||
        !seen_room_need(&w->touched, (w->n_touched + 1) * sizeof u))
        return false;
    uint8_t *p = (uint8_t *)w->frame.at + w->frame_len;
    p[0] = (uint8_t)kind;
    p[1] = 0;
    seen_put_le16(p + 2, u->name_len);
    seen_put_le32(p + 4, (uint32_t)n);
    seen_put_le64(p + 8, now_ms);
    memcpy(p + CHANGE, u->name, u->name_len);
    for (size_t i = 0; i < n; i++)
        seen_put_le64(p + CHANGE + u->name_len + 8 * i, h[i]);
    w->frame_len += size;
    ((struct seen_user **)w->touched.at)[w->n_touched++] = u;
    return true;
}

/* A change that is whole at the start of these bytes? */
static bool get_change(const uint8_t *p, size_t len, seen_key *user, size_t *n)
{
    if (len < CHANGE || p[1] != 0) return false;
    if (p[0] < SEEN_CHANGE_MARK || p[0] > SEEN_CHANGE_FORGET_USER) return false;
    *user = (seen_key){p + CHANGE, seen_get_le16(p + 2)};
    *n = seen_get_le32(p + 4);
    return user->len > 0 && user->len <= SEEN_USER_MAX &&
           *n <= SEEN_FRAME_HASHES && change_size(user->len, *n) <= len;
}

/* Room was reserved: cannot fail. */
static void queue_change(struct seen_table *t, struct seen_user *u,
                         const uint8_t *p)
{
    size_t n = seen_get_le32(p + 4);
    if (p[0] == SEEN_CHANGE_FORGET_USER)
        seen_table_settle(t, u, (seen_record){0});
    else
        seen_table_queue(t, u, p[0], seen_get_le64(p + 8),
                         p + CHANGE + u->name_len, n);
}

seen_status seen_local_redo(struct seen_local *l, const uint8_t *bytes,
                            size_t len, size_t *used, uint64_t *items)
{
    seen_key user;
    size_t n;
    if (!get_change(bytes, len, &user, &n)) return SEEN_CORRUPT;
    uint64_t hash = seen_user_hash(l, user);
    struct seen_shard *shard = seen_shard_of(l, hash);
    uint64_t before = shard->active.bytes;
    struct seen_user *u = seen_table_need(&shard->active, hash, user);
    if (!u || !seen_table_reserve(&shard->active, u, n)) return SEEN_NOMEM;
    queue_change(&shard->active, u, bytes);
    u->reserved = 0;
    seen_local_count(l, shard, before);
    *used = change_size(user.len, n);
    *items += n;
    return SEEN_OK;
}

static size_t hashes_in(const uint8_t *change)
{
    return seen_get_le32(change + 4);
}

/* Room in the table for all changes of the frame. */
static bool reserve_frame(struct seen_worker *w, struct seen_table *t)
{
    const uint8_t *p = w->frame.at;
    struct seen_user **touched = w->touched.at;
    for (size_t i = 0; i < w->n_touched; i++) {
        if (!seen_table_reserve(t, touched[i], hashes_in(p))) return false;
        p += change_size(touched[i]->name_len, hashes_in(p));
    }
    return true;
}

static seen_status journal_frame(struct seen_local *l, struct seen_worker *w,
                                 uint64_t *sequence)
{
    if (!l->journal) return SEEN_OK;
    pthread_mutex_lock(&l->log);
    seen_status status = seen_journal_append(
        l->journal, SEEN_FRAME_CHANGES, w->frame.at, w->frame_len, sequence);
    if (status == SEEN_OK) l->journaled += w->frame_len;
    pthread_mutex_unlock(&l->log);
    return status;
}

/* The frame that was put together: into the journal, then into the table. Empty
 * afterwards, whatever the status. */
seen_status seen_frame_write(struct seen_local *l, struct seen_worker *w,
                             struct seen_shard *shard, uint64_t *sequence)
{
    if (w->n_touched == 0) return SEEN_OK;
    seen_status status =
        reserve_frame(w, &shard->active) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = journal_frame(l, w, sequence);
    const uint8_t *p = w->frame.at;
    struct seen_user **touched = w->touched.at;
    for (size_t i = 0; status == SEEN_OK && i < w->n_touched; i++) {
        queue_change(&shard->active, touched[i], p);
        p += change_size(touched[i]->name_len, hashes_in(p));
    }
    for (size_t i = 0; i < w->n_touched; i++)
        touched[i]->reserved = 0;
    w->frame_len = w->n_touched = 0;
    return status;
}
