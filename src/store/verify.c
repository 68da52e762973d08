/*
 * verify.c - a filter file is looked at, or compared with its checksums.
 *
 * Every page of 64 KiB has a checksum, the table of these has one, and so have
 * header, state and list. A flipped bit in a page is a wrong "never" that nothing
 * else would notice, so pages are compared when a file is opened (file.c), and by
 * seen_file_verify(). What makes it more than a loop is a writer at work:
 *
 *     changed in place   pages are ahead of their checksums where the journal is
 *                        ahead of the last checkpoint, and only there. So pages
 *                        are compared first, then the journal is replayed onto a
 *                        private map, which tells where bits may have been set:
 *                        a page that differs elsewhere is damaged
 *     replaced           what was read may be the old file, the journal that of
 *                        the new one: if header or name have changed meanwhile,
 *                        all of it is done again, but for pages of the same file
 *                        that were found good
 *
 *     page        0    1    2    3
 *     compared    =    !    =    !      ! differs from its checksum
 *     journal     .    f    .    .      f a frame behind the last checkpoint
 *     verdict     ok   ok   ok   bad
 *
 * What it costs, with the file in memory: 0.2 s of processor time for 1 GB, 25 ms
 * for a filter of 100 million keys at 1 % (120 MB); a table of crc32c.c's kind
 * takes 25 times that. From a disk, what the disk takes. Pages are read and not
 * looked at through the map: the kernel reads ahead, which it is told not to do in
 * the map of a large file, and a sector that cannot be read is an error and not
 * SIGBUS.
 *
 * A page that a dead writer has changed cannot be judged: which of its bits are in
 * its checksum is not known.
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
        seen_error why;
        status = seen_look(file->map, file->map_len, info, plan, &why);
        if (status != SEEN_OK) seen_file_explain(error, status, &why);
    }
    seen_file_destroy(file);
    return seen_error_end(error, status);
}

/* ---- Verify --------------------------------------------------------------- */

seen_status seen_file_know_pages(seen_file *file, seen_error *error)
{
    uint64_t pages = seen_native_pages(file->header.payload_len);
    if (file->states && file->pages == pages) return SEEN_OK;
    seen_file_forget_pages(file);
    file->states = seen_alloc_zeroed(&seen_system_memory, pages);
    if (!file->states) return seen_file_explain(error, SEEN_NOMEM, NULL);
    file->pages = pages;
    return SEEN_OK;
}

void seen_file_forget_pages(seen_file *file)
{
    int before = errno;
    seen_release(&seen_system_memory, file->states, file->pages);
    file->states = NULL;
    file->pages = 0;
    errno = before;
}

seen_status seen_page_bad(const seen_file *file, uint64_t i, seen_error *error)
{
    const struct seen_native *h = &file->header;
    uint64_t from = h->payload_offset + i * SEEN_PAGE_SIZE;
    uint64_t end = seen_min64(from + SEEN_PAGE_SIZE, file->map_len);
    return seen_fail(error, SEEN_CORRUPT, "path",
                     "page %" PRIu64 " of %" PRIu64 " (bytes %" PRIu64
                     " to %" PRIu64 ") does not match its checksum: replace "
                     "the file by a copy, or build it again",
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

/* Are pages ahead of their checksums where the journal says so? */
static bool is_ahead(const seen_file *file)
{
    const struct seen_filter_ops *ops = seen_kinds_find(file->header.plan.kind);
    return file->header.flags & SEEN_NATIVE_JOURNALED && ops && ops->touches;
}

/* Page by page into `room`. */
static seen_status compare_pages(seen_file *file, uint8_t *room,
                                 seen_error *error)
{
    const struct seen_native *h = &file->header;
    const bool ahead = is_ahead(file);
    for (uint64_t i = 0; i < file->pages; i++) {
        uint64_t at = i * SEEN_PAGE_SIZE;
        size_t len = (size_t)seen_min64(h->payload_len - at, SEEN_PAGE_SIZE);
        size_t got;
        if (file->states[i] == SEEN_PAGE_CHECKED) continue;
        if (seen_io_read_at(file->fd, room, len, h->payload_offset + at,
                            &got) != SEEN_OK)
            return seen_fail_io(error, "path", "read the file");
        bool good =
            got == len && seen_crc32c(0, room, len) == seen_page_noted(file, i);
        file->states[i] = good ? SEEN_PAGE_CHECKED : SEEN_PAGE_UNSEEN;
        if (!good && !ahead) return seen_page_bad(file, i, error);
    }
    return SEEN_OK;
}

seen_status seen_file_compare(seen_file *file, seen_error *error)
{
    seen_status status = seen_file_know_pages(file, error);
    if (status == SEEN_OK && !is_ahead(file)) status = check_table(file, error);
    if (status != SEEN_OK) return status;
    uint8_t *room = seen_alloc_zeroed(&seen_system_memory, SEEN_PAGE_SIZE);
    if (!room) return seen_file_explain(error, SEEN_NOMEM, NULL);
    status = compare_pages(file, room, error);
    int before = errno;
    seen_release(&seen_system_memory, room, SEEN_PAGE_SIZE);
    errno = before;
    return status;
}

seen_status seen_file_judge(const seen_file *file, seen_error *error)
{
    for (uint64_t i = 0; i < file->pages; i++)
        if (file->states[i] == SEEN_PAGE_UNSEEN)
            return seen_page_bad(file, i, error);
    return SEEN_OK;
}

seen_status seen_file_verify(const char *path, seen_outcome *outcome,
                             seen_error *error)
{
    seen_error own;
    seen_file *file;
    if (!error) error = &own;
    seen_error_begin(error);
    seen_status status = seen_check_path(path, error);
    if (status == SEEN_OK) status = seen_outcome_check(outcome, error);
    if (status == SEEN_OK)
        status = seen_file_make(&file, path, SEEN_READ, error);
    if (status != SEEN_OK) return status;
    status = seen_file_read(file, SEEN_READ_EXAMINED, seen_any_secret, error);
    seen_outcome_tell(outcome, &file->outcome);
    seen_file_destroy(file);
    return seen_error_end(error, status);
}
