/*
 * keys.h - keys that never repeat, and what every test of filters needs.
 *
 * Key i of a stream is a bijection of i, so keys of one stream differ for
 * certain; streams are told apart by where they start: members count from 0,
 * strangers from 2^40, and no test adds that many.
 */
#ifndef SEEN_TEST_KEYS_H
#define SEEN_TEST_KEYS_H

#include "seen.h"

#include "helpers/harness.h"

#define TEST_STRANGERS ((uint64_t)1 << 40)

/* The i-th key under the seed of this run. */
uint64_t test_key(uint64_t i);

/* An array of keys first .. first+n-1 for the batch calls: 8 bytes each, the
 * bytes that seen_add_u64() would hash. */
struct test_batch {
    size_t n;
    seen_key *keys;
    uint8_t *bytes;
    bool *answers;
};

struct test_batch test_batch_new(uint64_t first, size_t n);
void test_batch_fill(struct test_batch *b, uint64_t first, size_t n);
void test_batch_free(struct test_batch *b);

/* Add members first .. first+n-1 in batches. */
void test_add_members(seen_filter *f, uint64_t first, uint64_t n);

/* How many of keys first .. first+n-1 the filter answers "maybe" for. */
uint64_t test_count_maybe(const seen_filter *f, uint64_t first, uint64_t n);

/* A filter, or the end of the test. */
seen_filter *test_filter(seen_spec spec);

/* What it is, measured. */
seen_info test_info(const seen_filter *f);

/* What the error of seen_plan_for() or seen_import() says is wrong, which is
 * checked against the promises of seen.h; NULL: nothing is. Static storage. */
const char *test_wrong_spec(const seen_spec *spec);
const char *test_wrong_bytes(const char *dialect, const seen_spec *spec,
                             const void *bytes, size_t len);

/* Does this kind take these flags? */
bool test_kind_can(seen_kind kind, uint32_t flags);

/* Does a key added twice count twice? */
bool test_kind_counts(seen_kind kind);

/* Does this kind forget keys by itself? It has no unions then, and depends on
 * the order of adds. And what its spec needs in `last` to keep n of them: 0 for
 * kinds that forget nothing. */
bool test_kind_forgets(seen_kind kind);
uint64_t test_last(seen_kind kind, uint64_t n);

/* Do all laws of sets hold: no trace of how often keys came, in which order, or
 * from which of several filters? */
bool test_kind_is_set(seen_kind kind);

/* As seen_kind_at(), without the kinds that are built once and without those
 * whose keys are small integers (test_bitmap_kind.c has their tests); and of
 * the rest, those that are sets. */
seen_kind test_kind_at(size_t index);
seen_kind test_set_kind_at(size_t index);

/* ---- Any kind at all ---------------------------------------------------- */

/* A small filter for `items` keys at about 1 %; and its i-th key, where members
 * and strangers differ as above. Kinds with needs of their own have a line in
 * keys.c; all others need none. */
seen_spec test_spec_for(seen_kind kind, uint64_t items);
uint64_t test_key_for(seen_kind kind, uint64_t i);

/* Keys first .. first+n-1 of a kind; a filter of them, built if need be. */
struct test_batch test_batch_for(seen_kind kind, uint64_t first, size_t n);
seen_filter *test_filled(seen_spec spec, uint64_t first, size_t n);

/* 16 bytes that are no secret. */
extern const uint8_t test_secret[16];

#endif
