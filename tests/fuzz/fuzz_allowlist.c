/*
 * fuzz_allowlist.c - libFuzzer against the reader of saved lists.
 *
 * Any bytes: an error, or a list that has what it says, saves to the same bytes
 * and can be changed. There is no checksum to get past, but keys must come in
 * order: the same bytes cut into keys of a few bytes and added one by one give
 * lists that are well formed, too.
 */
#include "memory.h"
#include "seen_allowlist.h"

#include <stdlib.h>
#include <string.h>

static void must(bool fact)
{
    if (!fact) abort();
}

struct walk {
    const seen_allowlist *list;
    uint64_t n;
};

static bool step(void *ctx, const void *key, size_t len)
{
    struct walk *w = ctx;
    must(seen_allowlist_has(w->list, key, len));
    w->n++;
    return true;
}

static void question(const seen_allowlist *list)
{
    struct walk w = {.list = list};
    seen_allowlist_each(list, step, &w);
    must(w.n == seen_allowlist_count(list));
    must(seen_allowlist_equal(list, list));
}

static uint8_t *save(const seen_allowlist *list, size_t *len)
{
    must(seen_allowlist_save(list, NULL, 0, len) == SEEN_SHORT);
    uint8_t *bytes = malloc(*len);
    must(bytes != NULL);
    must(seen_allowlist_save(list, bytes, *len, len) == SEEN_OK);
    return bytes;
}

static bool take_out(void *ctx, const void *key, size_t len)
{
    must(seen_allowlist_remove(ctx, key, len) == SEEN_OK);
    must(!seen_allowlist_has(ctx, key, len));
    return true;
}

static void load(const uint8_t *data, size_t len)
{
    seen_allowlist *list = NULL, *copy = NULL;
    fuzz_memory_begin();
    seen_status status = seen_allowlist_load(&list, data, len, NULL, NULL);
    fuzz_memory_within(len);
    must(status == SEEN_OK || status == SEEN_CORRUPT);
    if (status != SEEN_OK) return;
    question(list);
    size_t again;
    uint8_t *bytes = save(list, &again);
    must(again == len && memcmp(bytes, data, len) == 0);
    free(bytes);
    must(seen_allowlist_copy(&copy, list, NULL) == SEEN_OK);
    seen_allowlist_each(copy, take_out, list);
    must(seen_allowlist_count(list) == 0);
    question(copy);
    seen_allowlist_free(list);
    seen_allowlist_free(copy);
}

/* A byte says how long a key is and whether it comes or goes. */
static void change(const uint8_t *data, size_t len)
{
    seen_allowlist *list = NULL;
    must(seen_allowlist_new(&list, NULL) == SEEN_OK);
    while (len > 0) {
        size_t want = *data % 16, n = want < len ? want : len - 1;
        bool listed = seen_allowlist_has(list, data + 1, n);
        if (*data & 0x80)
            must(seen_allowlist_remove(list, data + 1, n) ==
                 (listed ? SEEN_OK : SEEN_ABSENT));
        else
            must(seen_allowlist_add(list, data + 1, n) == SEEN_OK);
        must(seen_allowlist_has(list, data + 1, n) == !(*data & 0x80));
        data += 1 + n;
        len -= 1 + n;
    }
    question(list);
    size_t saved;
    uint8_t *bytes = save(list, &saved);
    load(bytes, saved);
    free(bytes);
    seen_allowlist_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* Exactly as long as it is, so that one byte too many is seen. */
    uint8_t *copy = malloc(len ? len : 1);
    must(copy != NULL);
    if (len) memcpy(copy, data, len);
    load(copy, len);
    change(copy, len);
    free(copy);
    return 0;
}
