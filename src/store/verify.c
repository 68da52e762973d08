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
#include "base/out.h"
#include "store/file.h"
#include "store/outcome.h"

#include <errno.h>
#include <inttypes.h>

/* ---- Look ----------------------------------------------------------------- */

seen_status seen_file_look(const char *path, seen_info *info, seen_plan *plan,
                           seen_error *error)
{
    seen_file *file;
    seen_error_begin(error);
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK && info && !seen_out_ok(&info->size))
        status = seen_fail_size(error, "info", info->size);
    if (status == SEEN_OK && plan && !seen_out_ok(&plan->size))
        status = seen_fail_size(error, "plan", plan->size);
    if (status == SEEN_OK)
        status = seen_file_make(&file, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    status = seen_file_map(file, SEEN_MAP_READ, error);
    if (status == SEEN_OK) {
        status = seen_look(file->map, file->map_len, info, plan, NULL);
        if (status != SEEN_OK) seen_file_explain(error, status);
    }
    seen_file_destroy(file);
    return seen_error_end(error, status);
}

/* ---- Verify --------------------------------------------------------------- */

/* Which pages differ from their checksums, a byte each; the first of them. */
static uint64_t compare_pages(const seen_file *file, uint8_t *bad)
{
    uint64_t n = seen_native_pages(file->header.payload_len), first = n;
    for (uint64_t i = n; i-- > 0;) {
        bad[i] = seen_page_sum(file, i) != seen_page_noted(file, i);
        if (bad[i]) first = i;
    }
    return first;
}

seen_status seen_page_bad(const seen_file *file, uint64_t i, seen_error *error)
{
    const struct seen_native *h = &file->header;
    uint64_t from = h->payload_offset + i * SEEN_PAGE_SIZE;
    uint64_t end = seen_min64(from + SEEN_PAGE_SIZE, file->map_len);
    return seen_fail(error, SEEN_CORRUPT, "path",
                     "page %" PRIu64 " of %" PRIu64 " (bytes %" PRIu64
                     " to %" PRIu64 ") does not match its checksum",
                     i + 1, seen_native_pages(h->payload_len), from, end - 1);
}

static seen_status check_table(const seen_file *file, seen_error *error)
{
    const struct seen_native *h = &file->header;
    uint64_t len = 4 * seen_native_pages(h->payload_len);
    if (seen_crc32c(0, file->map + h->table_offset, (size_t)len) ==
        h->table_crc)
        return SEEN_OK;
    return seen_fail(error, SEEN_CORRUPT, "path",
                     "the table of checksums (bytes %" PRIu64 " to %" PRIu64
                     ") does not match its own checksum",
                     h->table_offset, h->table_offset + len - 1);
}

/*
 * A file that is changed in place differs from its checksums where the journal
 * is ahead of the last checkpoint, and only there. The journal is read after
 * the pages: it knows of every bit that they can have.
 */
static seen_status judge_pages(seen_file *file, const uint8_t *bad,
                               bool journaled, seen_error *error)
{
    uint64_t n = seen_native_pages(file->header.payload_len);
    bool ahead = journaled && file->filter->ops->touches;
    if (!ahead) {
        seen_status status = check_table(file, error);
        if (status != SEEN_OK) return status;
    }
    if (journaled) {
        seen_status status = seen_file_replay(file, error);
        if (status != SEEN_OK) return status;
    }
    for (uint64_t i = 0; i < n; i++)
        if (bad[i] && !(ahead && file->dirty[i]))
            return seen_page_bad(file, i, error);
    return SEEN_OK;
}

static seen_status verify_once(seen_file *file, bool *settled,
                               seen_error *error)
{
    *settled = true;
    seen_status status = seen_file_map(file, SEEN_MAP_PRIVATE, error);
    if (status == SEEN_OK) status = seen_file_header(file, error);
    if (status != SEEN_OK) return status;

    bool journaled = file->header.flags & SEEN_NATIVE_JOURNALED;
    file->pages = seen_native_pages(file->header.payload_len);
    file->dirty = seen_alloc_zeroed(&seen_system_memory, 2 * file->pages);
    if (!file->dirty) return seen_file_explain(error, SEEN_NOMEM);
    uint8_t *bad = file->dirty + file->pages;
    uint64_t first = compare_pages(file, bad);
    if (!journaled && first < file->pages) {
        *settled =
            seen_file_unchanged(file); /* or a writer has come meanwhile */
        return seen_page_bad(file, first, error);
    }

    const struct seen_filter_ops *ops = seen_kinds_find(file->header.plan.kind);
    status =
        seen_restore(&file->filter, file->map, &file->header,
                     ops && ops->touches ? SEEN_RESTORE_MAP : SEEN_RESTORE_COPY,
                     seen_any_secret, NULL, NULL);
    if (status != SEEN_OK) return seen_file_explain(error, status);
    status = judge_pages(file, bad, journaled, error);
    if (journaled) file->outcome.recovered = true;
    *settled = journaled ? seen_file_settled(file, status)
                         : status == SEEN_OK || seen_file_unchanged(file);
    return status;
}

seen_status seen_file_verify(const char *path, seen_outcome *outcome,
                             seen_error *error)
{
    seen_error_begin(error);
    seen_file *file;
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK) status = seen_outcome_check(outcome, error);
    if (status == SEEN_OK)
        status = seen_file_make(&file, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    bool settled = false;
    for (int i = 0; i < SEEN_FILE_ATTEMPTS && !settled; i++) {
        seen_error_begin(error);
        file->outcome = (seen_outcome){0};
        status = verify_once(file, &settled, error);
        seen_file_let_go(file);
        seen_release(&seen_system_memory, file->dirty, 2 * file->pages);
        file->dirty = NULL;
    }
    if (!settled) status = seen_file_too_fast(error);
    seen_outcome_tell(outcome, &file->outcome);
    file->pages = 0;
    seen_file_destroy(file);
    return seen_error_end(error, status);
}
