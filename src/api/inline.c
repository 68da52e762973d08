/* api/inline.c - seen_inline.h: what a caller needs to ask for itself. */
#include "seen_inline.h"

#include "base/out.h"
#include "bits/lines.h"
#include "filter/filter.h"

/* Of a filter that does not fit: never equal to `words`, which is NULL. */
static uint64_t nowhere;
static uint64_t *const elsewhere = &nowhere;

seen_status seen_inline_take(const seen_filter *f, uint32_t layout,
                             seen_inline *to)
{
    if (!f || !to) return SEEN_INVALID;
    seen_inline s = {.filter = f, .at = &elsewhere};
    seen_status status = SEEN_UNSUPPORTED;
    const struct seen_lines *b = seen_filter_lines(f);
    if (layout == SEEN_INLINE_LINES && f->maybe_lines &&
        !(f->flags & SEEN_CONCURRENT) && seen_lines_common(b)) {
        s.at = &b->words;
        s.words = b->words;
        s.lines = b->count;
        status = SEEN_OK;
    }
    seen_status written = seen_out(&to->size, &s, sizeof s);
    return written == SEEN_OK ? status : written;
}
