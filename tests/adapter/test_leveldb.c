/*
 * test_leveldb.c - the filter policies inside a real LevelDB: nothing is lost,
 * LevelDB reads our blocks and we read its, and fewer blocks are read.
 *
 * Keys are random, so that every question falls between two keys that are there
 * and has to be answered by a filter or by reading a block. Everything fits into
 * the memory of one table, and is compacted once, so that the counts are the same
 * in every run.
 */
#include "seen_leveldb.h"

#include "helpers/counted_leveldb.h"
#include "helpers/harness.h"
#include "helpers/scratch.h"

#include <leveldb/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS   100000
#define KEY    16
#define VALUE  100
#define MEMORY ((size_t)128 << 20)
#define BITS   10

static const char *scratch;

static int set_up(void **state)
{
    (void)state;
    scratch = test_scratch();
    return scratch ? 0 : -1;
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

#define ABSENT ((uint64_t)1 << 40) /* numbers from here on */

static void key_of(uint64_t number, char key[KEY + 1])
{
    snprintf(key, KEY + 1, "%016llx", (unsigned long long)test_mix(number));
}

/* As db_bench has them: half of it compresses away. */
static void value_of(struct test_rng *r, char value[VALUE])
{
    memset(value, 'v', VALUE);
    for (int i = 0; i < VALUE / 2; i++)
        value[i] = (char)(' ' + test_below(r, 95));
}

static void fill(const char *name, leveldb_filterpolicy_t *policy)
{
    struct test_rng r = test_rng(420);
    struct counted_db *db = counted_open(path_of(name), policy, MEMORY);
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[KEY + 1], value[VALUE];
        key_of(i, key);
        value_of(&r, value);
        counted_put(db, key, KEY, value, VALUE);
    }
    counted_compact(db);
    counted_close(db);
}

static void all_are_there(struct counted_db *db)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[KEY + 1];
        key_of(i, key);
        if (!counted_get(db, key, KEY)) fail_msg("key %s is lost", key);
    }
}

/* Blocks read for each absent key once, tables being open: all_are_there() has
 * opened them. */
static uint64_t reads_of_absent(struct counted_db *db)
{
    uint64_t before = counted_reads(db);
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[KEY + 1];
        key_of(ABSENT + i, key);
        if (counted_get(db, key, KEY)) fail_msg("key %s is there", key);
    }
    return counted_reads(db) - before;
}

/* Opened with a policy: nothing lost, and so many blocks for absent keys. */
static uint64_t reads_with(const char *name, leveldb_filterpolicy_t *policy)
{
    struct counted_db *db = counted_open(path_of(name), policy, MEMORY);
    all_are_there(db);
    uint64_t reads = reads_of_absent(db);
    counted_close(db);
    return reads;
}

static leveldb_filterpolicy_t *must(leveldb_filterpolicy_t *policy)
{
    assert_non_null(policy);
    return policy;
}

/* ---- Tests: each leaves what the next ones open ------------------------- */

static uint64_t theirs; /* blocks that are read with LevelDB's own filters */

static void leveldb_reads_our_blocks_and_we_read_its(void **state)
{
    (void)state;
    leveldb_filterpolicy_t *own = leveldb_filterpolicy_create_bloom(BITS);
    leveldb_filterpolicy_t *same =
        must(seen_leveldb_policy(SEEN_BLOCK_LEVELDB, BITS));
    fill("own", own);
    fill("same", same);
    uint64_t reads = reads_with("own", own);
    assert_between((double)reads / KEYS, 0.005, 0.02);
    /* The same blocks answer the same way, whoever made and whoever reads them. */
    assert_int_equal(reads_with("same", same), reads);
    assert_int_equal(reads_with("own", same), reads);
    assert_int_equal(reads_with("same", own), reads);
    /* And without the policy, every question reads a block, but for those that
     * fall between two tables. */
    assert_between((double)reads_with("same", NULL), 0.999 * KEYS, KEYS);
    theirs = reads;
    leveldb_filterpolicy_destroy(own);
    leveldb_filterpolicy_destroy(same);
}

static void ours_reads_at_least_40_percent_fewer_blocks(void **state)
{
    (void)state;
    leveldb_filterpolicy_t *ours =
        must(seen_leveldb_policy(SEEN_BLOCK_SORTED, BITS));
    fill("ours", ours);
    uint64_t fewer = reads_with("ours", ours);
    print_message("blocks read for %d absent keys: LevelDB's own %llu, ours "
                  "%llu\n",
                  KEYS, (unsigned long long)theirs, (unsigned long long)fewer);
    assert_true(10 * fewer <= 6 * theirs);
    leveldb_filterpolicy_destroy(ours);
}

/* Another name, another filter: the old ones are not asked, and none is lost;
 * after a compaction there are new ones. */
static void a_database_can_change_its_policy(void **state)
{
    (void)state;
    leveldb_filterpolicy_t *ours =
        must(seen_leveldb_policy(SEEN_BLOCK_SORTED, BITS));
    assert_between((double)reads_with("own", ours), 0.999 * KEYS, KEYS);
    struct counted_db *db = counted_open(path_of("own"), ours, MEMORY);
    char key[KEY + 1];
    for (uint64_t i = 0; i < KEYS; i += 1000) { /* something to compact */
        key_of(i, key);
        counted_put(db, key, KEY, "new", 3);
    }
    counted_compact(db);
    counted_close(db);
    assert_true(reads_with("own", ours) < KEYS / 100);
    leveldb_filterpolicy_destroy(ours);
}

/* Keys of any length, repeated in many versions, empty ones; through the C
 * interface alone. */
static void the_c_interface_is_enough(void **state)
{
    (void)state;
    struct test_rng r = test_rng(421);
    leveldb_filterpolicy_t *ours =
        must(seen_leveldb_policy(SEEN_BLOCK_SORTED, 7.5));
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_write_buffer_size(options, 65536);
    leveldb_options_set_filter_policy(options, ours);
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    char *error = NULL;
    leveldb_t *db = leveldb_open(options, path_of("c"), &error);
    assert_null(error);

    enum {
        n = 20000
    };
    static uint16_t version[n];
    for (int i = 0; i < 3 * n; i++) {
        char key[300] = {0};
        size_t k = test_below(&r, n);
        snprintf(key, sizeof key, "%zu", k);
        version[k] = (uint16_t)(1 + test_below(&r, 60000));
        leveldb_put(db, writing, key, k % 300, (char *)&version[k], 2, &error);
        assert_null(error);
        if (k % 300 < 6) version[k] = 0; /* cut off: others are the same */
    }
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    for (size_t k = 0; k < n; k++) {
        char key[300] = {0};
        size_t len;
        if (!version[k]) continue;
        snprintf(key, sizeof key, "%zu", k);
        char *value = leveldb_get(db, reading, key, k % 300, &len, &error);
        assert_null(error);
        assert_non_null(value);
        assert_int_equal(len, 2);
        assert_memory_equal(value, &version[k], 2);
        leveldb_free(value);
    }
    leveldb_close(db);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_options_destroy(options);
    leveldb_filterpolicy_destroy(ours);
}

static void impossible_policies_are_refused(void **state)
{
    (void)state;
    assert_null(seen_leveldb_policy(SEEN_BLOCK_LEVELDB, 2.5));
    assert_null(seen_leveldb_policy(SEEN_BLOCK_LEVELDB, 0));
    assert_null(seen_leveldb_policy(SEEN_BLOCK_SORTED, 2));
    assert_null(seen_leveldb_policy(SEEN_BLOCK_SORTED, 49));
    assert_null(seen_leveldb_policy((seen_block_form)0, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leveldb_reads_our_blocks_and_we_read_its),
        cmocka_unit_test(ours_reads_at_least_40_percent_fewer_blocks),
        cmocka_unit_test(a_database_can_change_its_policy),
        cmocka_unit_test(the_c_interface_is_enough),
        cmocka_unit_test(impossible_policies_are_refused),
    };
    test_announce("leveldb");
    return cmocka_run_group_tests_name("leveldb", tests, set_up,
                                       test_scratch_end);
}
