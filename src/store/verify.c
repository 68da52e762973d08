/*
 * verify.c - a filter file is looked at, or compared with its checksums.
 *
 * Every page of 64 KiB has a checksum, the table of these has one, and so have
 * header, state and list. What makes it more than a loop is a writer at work:
 *
 *     changed in place   pages are ahead of their checksums where the journal is
 *                        ahead of the last checkpoint, and only there. So pages
 *                        are compared first, then the journal is replayed onto a
 *                        private map, which tells where bits may have been set:
 *                        a page that differs elsewhere is damaged
 *     replaced           what was read may be the old file, the journal that of
 *                        the new one: if header or name have changed meanwhile,
 *                        all of it is done again
 */
#define _POSIX_C_SOURCE 200809L

#include "base/alloc.h"
#include "store/file.h"
#include "store/outcome.h"

#include <errno.h>
#include <inttypes.h>

static const seen_allocator system_memory;

/* ---- Look ----------------------------------------------------------------- */

seen_status seen_file_look(const char *path, seen_facts *facts,
                           seen_error *error)
{
    seen_file *s;
    seen_error_begin(error);
    if (!path || !facts) return seen_error_end(error, SEEN_INVALID);
    seen_status status = seen_file_make(&s, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    status = seen_file_map(s, SEEN_MAP_READ, error);
    if (status == SEEN_OK) {
        status = seen_look(s->map, s->map_len, facts);
        if (status != SEEN_OK) seen_file_explain(error, status);
    }
    seen_file_destroy(s);
    return seen_error_end(error, status);
}

/* ---- Verify --------------------------------------------------------------- */

/* Which pages differ from their checksums, a byte each; the first of them. */
static uint64_t compare_pages(const seen_file *s, uint8_t *bad)
{
    uint64_t n = seen_native_pages(s->header.payload_len), first = n;
    for (uint64_t i = n; i-- > 0;) {
        bad[i] = seen_page_sum(s, i) != seen_page_noted(s, i);
        if (bad[i]) first = i;
    }
    return first;
}

static seen_status bad_page(const seen_file *s, uint64_t i, seen_error *error)
{
    const struct seen_native *h = &s->header;
    uint64_t from = h->payload_offset + i * SEEN_PAGE_SIZE;
    uint64_t end = seen_min64(from + SEEN_PAGE_SIZE, s->map_len);
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "page %" PRIu64 " of %" PRIu64 " (bytes %" PRIu64
                     " to %" PRIu64 ") does not match its checksum",
                     i + 1, seen_native_pages(h->payload_len), from, end - 1);
}

static seen_status check_table(const seen_file *s, seen_error *error)
{
    const struct seen_native *h = &s->header;
    uint64_t len = 4 * seen_native_pages(h->payload_len);
    if (seen_crc32c(0, s->map + h->table_offset, (size_t)len) == h->table_crc)
        return SEEN_OK;
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "the table of checksums (bytes %" PRIu64 " to %" PRIu64
                     ") does not match its own",
                     h->table_offset, h->table_offset + len - 1);
}

/*
 * A file that is changed in place differs from its checksums where the journal
 * is ahead of the last checkpoint, and only there. The journal is read after
 * the pages: it knows of every bit that they can have.
 */
static seen_status judge_pages(seen_file *s, const uint8_t *bad, bool journaled,
                               seen_error *error)
{
    uint64_t n = seen_native_pages(s->header.payload_len);
    bool ahead = journaled && s->filter->ops->touches;
    if (!ahead) {
        seen_status status = check_table(s, error);
        if (status != SEEN_OK) return status;
    }
    if (journaled) {
        seen_status status = seen_file_replay(s, error);
        if (status != SEEN_OK) return status;
    }
    for (uint64_t i = 0; i < n; i++)
        if (bad[i] && !(ahead && s->dirty[i])) return bad_page(s, i, error);
    return SEEN_OK;
}

static seen_status verify_once(seen_file *s, bool *settled, seen_error *error)
{
    *settled = true;
    seen_status status = seen_file_map(s, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = seen_file_header(s, error);
    if (status != SEEN_OK) return status;

    bool journaled = s->header.flags & SEEN_NATIVE_JOURNALED;
    s->pages = seen_native_pages(s->header.payload_len);
    s->dirty = seen_alloc_zeroed(&system_memory, 2 * s->pages);
    if (!s->dirty) return seen_file_explain(error, SEEN_NOMEM);
    uint8_t *bad = s->dirty + s->pages;
    uint64_t first = compare_pages(s, bad);
    if (!journaled && first < s->pages) {
        *settled = seen_file_unchanged(s); /* or a writer has come meanwhile */
        return bad_page(s, first, error);
    }

    const struct seen_filter_ops *ops = seen_kinds_find(s->header.plan.kind);
    status =
        seen_restore(&s->filter, s->map, &s->header,
                     ops && ops->touches ? SEEN_RESTORE_MAP : SEEN_RESTORE_COPY,
                     seen_any_secret, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    status = judge_pages(s, bad, journaled, error);
    if (journaled) s->outcome.recovered = true;
    *settled = journaled ? seen_file_settled(s, status)
                         : status == SEEN_OK || seen_file_unchanged(s);
    return status;
}

seen_status seen_file_verify(const char *path, seen_outcome *outcome,
                             seen_error *error)
{
    seen_error_begin(error);
    if (!path || !seen_outcome_ok(outcome))
        return seen_file_explain(error, SEEN_INVALID);
    seen_file *s;
    seen_status status = seen_file_make(&s, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    bool settled = false;
    for (int i = 0; i < SEEN_FILE_ATTEMPTS && !settled; i++) {
        seen_error_begin(error);
        s->outcome = (seen_outcome){0};
        status = verify_once(s, &settled, error);
        seen_file_let_go(s);
        seen_release(&system_memory, s->dirty, 2 * s->pages);
        s->dirty = NULL;
    }
    if (!settled) {
        seen_error_begin(error);
        status = seen_fail(error, SEEN_BUSY, NULL,
                           "it changes faster than it can be read");
    }
    seen_outcome_tell(outcome, &s->outcome);
    s->pages = 0;
    seen_file_destroy(s);
    return seen_error_end(error, status);
}
