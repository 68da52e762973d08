/* table.c - see table.h. Users are many and small: they come from malloc, not in
 * lines of their own. */
#include "users/table.h"

#include "base/bytes.h"
#include "exposure/exposure.h"

#include <stdlib.h>

#define FIRST_PLACES 64
#define AT_ONCE      64 /* marks that are applied in one pass */
#define KIND_BITS    2

/* ---- Users -------------------------------------------------------------- */

static uint64_t size_of(const struct seen_user *u)
{
    return sizeof *u + u->name_len + u->record_room +
           u->queued_room * sizeof *u->queued + sizeof u;
}

static void free_user(struct seen_user *u)
{
    free(u->record);
    free(u->queued);
    free(u);
}

static bool is_user(const struct seen_user *u, uint64_t hash, seen_key user)
{
    return u->hash == hash && u->name_len == user.len &&
           memcmp(u->name, user.data, user.len) == 0;
}

int seen_table_compare(const struct seen_user *a, const struct seen_user *b)
{
    size_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, len);
    return order ? order : (int)a->name_len - (int)b->name_len;
}

/* ---- The table ---------------------------------------------------------- */

void seen_table_init(struct seen_table *t)
{
    *t = (struct seen_table){.lowest = UINT64_MAX};
}

void seen_table_free(struct seen_table *t)
{
    for (size_t i = 0; i < t->places; i++)
        if (t->at[i]) free_user(t->at[i]);
    free(t->at);
    seen_table_init(t);
}

/* Where a user is, or the empty place where it belongs. */
static size_t place_of(const struct seen_table *t, uint64_t hash, seen_key user)
{
    size_t i = hash & (t->places - 1);
    while (t->at[i] && !is_user(t->at[i], hash, user))
        i = (i + 1) & (t->places - 1);
    return i;
}

struct seen_user *seen_table_find(const struct seen_table *t, uint64_t hash,
                                  seen_key user)
{
    return t->places ? t->at[place_of(t, hash, user)] : NULL;
}

static bool grow(struct seen_table *t)
{
    struct seen_table more = *t;
    more.places = t->places ? 2 * t->places : FIRST_PLACES;
    more.at = calloc(more.places, sizeof *more.at);
    if (!more.at) return false;
    for (size_t i = 0; i < t->places; i++) {
        struct seen_user *u = t->at[i];
        if (!u) continue;
        size_t at = u->hash & (more.places - 1);
        while (more.at[at])
            at = (at + 1) & (more.places - 1);
        more.at[at] = u;
    }
    free(t->at);
    *t = more;
    return true;
}

struct seen_user *seen_table_need(struct seen_table *t, uint64_t hash,
                                  seen_key user)
{
    struct seen_user *u = seen_table_find(t, hash, user);
    if (u) return u;
    if (t->count >= t->places / 4 * 3 && !grow(t)) return NULL;
    u = malloc(sizeof *u + user.len);
    if (!u) return NULL;
    *u = (struct seen_user){.hash = hash, .name_len = (uint16_t)user.len};
    memcpy(u->name, user.data, user.len);
    t->at[place_of(t, hash, user)] = u;
    t->count++;
    t->bytes += size_of(u);
    return u;
}

/* Those behind it move up, so that nobody is cut off from his place. */
void seen_table_remove(struct seen_table *t, struct seen_user *u)
{
    size_t mask = t->places - 1;
    size_t hole = place_of(t, u->hash, (seen_key){u->name, u->name_len});
    t->count--;
    t->bytes -= size_of(u);
    free_user(u);
    for (size_t i = (hole + 1) & mask; t->at[i]; i = (i + 1) & mask) {
        size_t home = t->at[i]->hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        t->at[hole] = t->at[i];
        hole = i;
    }
    t->at[hole] = NULL;
}

/* ---- Changes ------------------------------------------------------------ */

bool seen_table_reserve(struct seen_table *t, struct seen_user *u, size_t n)
{
    uint64_t wanted = (uint64_t)u->queued_len + u->reserved + n + 2;
    if (wanted > u->queued_room) {
        uint64_t room = wanted + wanted / 2;
        if (room > UINT32_MAX) return false;
        uint64_t *more = realloc(u->queued, room * sizeof *more);
        if (!more) return false;
        t->bytes += (room - u->queued_room) * sizeof *more;
        u->queued = more;
        u->queued_room = (uint32_t)room;
    }
    u->reserved += (uint32_t)n + 2;
    return true;
}

void seen_table_queue(struct seen_table *t, struct seen_user *u,
                      enum seen_change_kind kind, uint64_t now_ms,
                      const void *h, size_t n)
{
    uint64_t *to = u->queued + u->queued_len;
    to[0] = now_ms;
    to[1] = (uint64_t)n << KIND_BITS | kind;
    for (size_t i = 0; i < n; i++)
        to[2 + i] = seen_get_le64((const uint8_t *)h + 8 * i);
    u->queued_len += (uint32_t)n + 2;
    if (now_ms < t->lowest) t->lowest = now_ms;
}

bool seen_table_settle(struct seen_table *t, struct seen_user *u,
                       seen_record record)
{
    if (record.len > UINT32_MAX / 2) return false;
    if (record.len > u->record_room) {
        size_t room = record.len + record.len / 8 + 16;
        uint8_t *more = realloc(u->record, room);
        if (!more) return false;
        t->bytes += room - u->record_room;
        u->record = more;
        u->record_room = (uint32_t)room;
    }
    if (record.len) memmove(u->record, record.data, record.len);
    u->record_len = (uint32_t)record.len;
    u->known = true;
    t->bytes -= u->queued_room * sizeof *u->queued;
    free(u->queued);
    u->queued = NULL;
    u->queued_len = u->queued_room = 0;
    return true;
}

seen_status seen_table_apply(const uint64_t *queued, uint32_t len,
                             seen_exposure *x, seen_record record,
                             seen_record *result)
{
    struct seen_marks marks[AT_ONCE];
    seen_status status = SEEN_OK;
    uint32_t at = 0;
    while (status == SEEN_OK && at < len) {
        /* 1. As many marks as come in a row. */
        size_t n = 0;
        uint64_t kind = SEEN_CHANGE_MARK, now_ms = 0, count = 0;
        const uint64_t *h = NULL;
        while (n < AT_ONCE && at < len) {
            now_ms = queued[at];
            kind = queued[at + 1] & ((1 << KIND_BITS) - 1);
            count = queued[at + 1] >> KIND_BITS;
            h = queued + at + 2;
            if (kind != SEEN_CHANGE_MARK) break;
            marks[n++] = (struct seen_marks){now_ms, h, (size_t)count};
            at += (uint32_t)count + 2;
        }
        if (n) {
            status = seen_exposure_mark_all(x, record, marks, n, &record);
            continue;
        }
        /* 2. Or items to forget. */
        at += (uint32_t)count + 2;
        status = seen_exposure_forget_hashes(x, record, now_ms, h,
                                             (size_t)count, &record);
    }
    *result = record;
    return status;
}
