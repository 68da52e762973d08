/*
 * leveldb_policy.c - filter blocks for LevelDB, through its C interface.
 *
 * LevelDB asks a policy for a filter when it has written 2 KB of a table, some
 * dozen keys, and puts them all beside the table's index. A Get that comes to a
 * table finds the one block where the key would be, asks the filter of that
 * block, and reads and decompresses the block only if the answer is maybe.
 *
 * The name of a policy is written into every table, and a table whose name is
 * another is read without a filter. So the form that LevelDB has itself keeps its
 * name and ours has one of its own, which changes if the bytes ever do.
 *
 * Memory that LevelDB cannot get ends the process (it is built without
 * exceptions). So does ours: an empty filter would mean "no such key".
 */
#include "seen_leveldb.h"

#include "seen_block.h"

#include <leveldb/c.h>

#include <stdlib.h>

#define ON_STACK 256 /* keys */

struct policy {
    seen_block_form form;
    double bits_per_key;
};

static void destroy(void *state)
{
    free(state);
}

static const char *name_of(void *state)
{
    const struct policy *p = state;
    return p->form == SEEN_BLOCK_LEVELDB ? "leveldb.BuiltinBloomFilter2"
                                         : "seen.SortedBlock1";
}

static void *must(void *memory)
{
    if (!memory) abort();
    return memory;
}

/* LevelDB frees the result. */
static char *create_filter(void *state, const char *const *keys,
                           const size_t *lens, int num_keys, size_t *len)
{
    const struct policy *p = state;
    const size_t n = num_keys > 0 ? (size_t)num_keys : 0;
    seen_key few[ON_STACK], *all = few;
    if (n > ON_STACK) all = must(malloc(n * sizeof *all));
    for (size_t i = 0; i < n; i++)
        all[i] = (seen_key){keys[i], lens[i]};

    const size_t room = seen_block_size(p->form, p->bits_per_key, n);
    char *block = must(malloc(room));
    if (seen_block_build(p->form, p->bits_per_key, seen_keys_of(all, n), block,
                         room, len) != SEEN_OK)
        abort(); /* no memory: all else was checked when it was made */
    if (all != few) free(all);
    return block;
}

static uint8_t key_may_match(void *state, const char *key, size_t len,
                             const char *block, size_t block_len)
{
    const struct policy *p = state;
    return seen_block_maybe(p->form, block, block_len, key, len);
}

leveldb_filterpolicy_t *seen_leveldb_policy(seen_block_form form,
                                            double bits_per_key)
{
    if (seen_block_size(form, bits_per_key, 1) == 0) return NULL;
    struct policy *p = malloc(sizeof *p);
    if (!p) return NULL;
    *p = (struct policy){form, bits_per_key};
    return leveldb_filterpolicy_create(p, destroy, create_filter, key_may_match,
                                       name_of);
}
