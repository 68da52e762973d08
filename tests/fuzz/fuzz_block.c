/*
 * fuzz_block.c - libFuzzer against the filters of blocks, both forms.
 *
 * Any bytes answer every question; LevelDB's as its dialect answers. And any keys,
 * cut out of the input, are in the filter that is made of them.
 */
#include "seen_block.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define MOST 600

static void must(bool fact)
{
    if (!fact) abort();
}

/* A block of exactly as many bytes, so that one too many is seen. */
static void ask(const uint8_t *data, size_t len)
{
    uint8_t *block = malloc(len ? len : 1);
    must(block != NULL);
    if (len) memcpy(block, data, len);
    seen_filter *f = NULL;
    fuzz_memory_begin();
    must(seen_import_view(&f, "leveldb", NULL, block, len, NULL) == SEEN_OK);
    for (size_t i = 0; i < 8; i++) {
        const size_t n = len * i / 8;
        seen_block_maybe(SEEN_BLOCK_SORTED, block, len, data, n);
        must(seen_block_maybe(SEEN_BLOCK_LEVELDB, block, len, data, n) ==
             seen_maybe(f, data, n));
    }
    fuzz_memory_within(0); /* it stays where it is */
    seen_free(f);
    free(block);
}

static void build(const uint8_t *data, size_t len)
{
    static seen_key keys[MOST];
    const seen_block_form form = data[0] & 1 ? 1 : 2;
    const double bits = 3 + data[0] / 6;
    const size_t step = 1 + data[1] % 9;
    size_t n = 0, made;
    for (size_t at = 2; at + step <= len && n < MOST; at += step)
        keys[n++] = (seen_key){data + at, step};
    const size_t room = seen_block_size(form, bits, n);
    uint8_t *block = malloc(room);
    must(block != NULL);
    fuzz_memory_begin();
    must(seen_block_build(form, bits, seen_keys_of(keys, n), block, room,
                          &made) == SEEN_OK);
    fuzz_memory_within(len);
    must(made <= room);
    for (size_t i = 0; i < n; i++)
        must(seen_block_maybe(form, block, made, keys[i].data, step));
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    ask(data, len);
    if (len >= 2) build(data, len);
    return 0;
}
