/*
 * prop_bitmap_law.c - a classic filter with one hash and a bit for every hash
 * is a bitmap: m = 2^20 bits, k = 1, and id << 44 as the hash of an id, so that
 * scaling a hash to m bits gives the id back. The answers become exact, which
 * shows that nothing between a hash and its bit rounds, wraps or shares.
 */
#include "seen_bitmap.h"

#include "helpers/harness.h"

#include <stdlib.h>

#define IDS ((uint64_t)1 << 20)

static seen_filter *exact_filter(uint32_t flags)
{
    seen_filter *f = NULL;
    const seen_spec spec = {.kind = SEEN_BLOOM,
                            .items = IDS,
                            .bits = IDS,
                            .hashes = 1,
                            .flags = flags};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    return f;
}

/* The low 44 bits are nobody's business. */
static seen_hash hash_of(uint64_t id, struct test_rng *r)
{
    return (seen_hash){id << 44 | test_next(r) >> 20, test_next(r)};
}

static void check_all(const seen_filter *f, const seen_bitmap *b,
                      struct test_rng *r)
{
    uint64_t wrong = 0;
    for (uint64_t id = 0; id < IDS; id++)
        wrong += seen_maybe_hashed(f, hash_of(id, r)) != seen_bitmap_has(b, id);
    assert_int_equal(wrong, 0);
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_int_equal(info.bits, IDS);
    assert_int_equal(info.bits_set, seen_bitmap_count(b));
    if (!(info.flags & SEEN_CONCURRENT))
        assert_int_equal(info.items, seen_bitmap_count(b));
}

static void check_law(uint32_t flags)
{
    struct test_rng r = test_rng(90 + flags);
    seen_filter *f = exact_filter(flags);
    seen_bitmap *b = NULL;
    assert_int_equal(seen_bitmap_new(&b, IDS, NULL, NULL), SEEN_OK);
    const uint64_t edges[] = {0, 1, 63, 64, IDS / 2, IDS - 2, IDS - 1};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        seen_add_hashed(f, hash_of(edges[i], &r));
        seen_bitmap_set(b, edges[i]);
    }
    check_all(f, b, &r);

    for (uint64_t i = 0; i < 200000 * test_scale(); i++) {
        uint64_t id = test_below(&r, IDS);
        bool before = false;
        assert_int_equal(seen_visit_hashed(f, hash_of(id, &r), &before),
                         SEEN_OK);
        assert_int_equal(before, seen_bitmap_has(b, id));
        seen_bitmap_set(b, id);
    }
    check_all(f, b, &r);
    test_tried(200000 * test_scale(), "operations");

    /* The rest in one batch; then it is full. */
    seen_hash *hashes = malloc(IDS * sizeof *hashes);
    bool *before = malloc(IDS * sizeof *before);
    assert_non_null(hashes);
    assert_non_null(before);
    for (uint64_t id = 0; id < IDS; id++)
        hashes[id] = hash_of(id, &r);
    assert_int_equal(
        seen_visit_many(f, seen_keys_hashes(hashes, IDS), before, NULL),
        SEEN_OK);
    uint64_t wrong = 0;
    for (uint64_t id = 0; id < IDS; id++)
        wrong += before[id] != seen_bitmap_has(b, id);
    assert_int_equal(wrong, 0);
    seen_bitmap_set_range(b, 0, IDS);
    check_all(f, b, &r);
    free(hashes);
    free(before);
    seen_free(f);
    seen_bitmap_free(b);
}

static void a_filter_with_a_bit_for_every_hash_is_a_bitmap(void **state)
{
    (void)state;
    check_law(0);
}

static void a_concurrent_one_too(void **state)
{
    (void)state;
    check_law(SEEN_CONCURRENT);
}

/* Union and intersection are then those of sets, exactly. */
static void merging_is_exact_as_well(void **state)
{
    (void)state;
    struct test_rng r = test_rng(95);
    for (int op = 0; op < 2; op++) {
        seen_filter *f[2];
        seen_bitmap *b[2];
        for (int i = 0; i < 2; i++) {
            f[i] = exact_filter(0);
            assert_int_equal(seen_bitmap_new(&b[i], IDS, NULL, NULL), SEEN_OK);
            for (int j = 0; j < 300000; j++) {
                uint64_t id = test_below(&r, IDS);
                seen_add_hashed(f[i], hash_of(id, &r));
                seen_bitmap_set(b[i], id);
            }
        }
        assert_int_equal(
            seen_merge(f[0], f[1], op ? SEEN_INTERSECTION : SEEN_UNION, NULL),
            SEEN_OK);
        assert_int_equal((op ? seen_bitmap_and : seen_bitmap_or)(b[0], b[1]),
                         SEEN_OK);
        uint64_t wrong = 0;
        for (uint64_t id = 0; id < IDS; id++)
            wrong += seen_maybe_hashed(f[0], hash_of(id, &r)) !=
                     seen_bitmap_has(b[0], id);
        assert_int_equal(wrong, 0);
        for (int i = 0; i < 2; i++) {
            seen_free(f[i]);
            seen_bitmap_free(b[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_with_a_bit_for_every_hash_is_a_bitmap),
        cmocka_unit_test(a_concurrent_one_too),
        cmocka_unit_test(merging_is_exact_as_well),
    };
    test_announce("bitmap_law");
    return cmocka_run_group_tests_name("bitmap_law", tests, NULL, NULL);
}
