/*
 * fault_alloc.c - every public call that allocates, with every allocation made
 * to fail: once, and from there on. The call says SEEN_NOMEM, nothing has
 * changed, nothing leaks, and the same call works as soon as there is memory.
 *
 * One script, run again and again with the failure one allocation later, until
 * a run meets no failure. Each step of it knows how to tell that nothing
 * changed; the script itself does the rest. Then any filters with any failures.
 */
#include "seen.h"
#include "seen_allowlist.h"
#include "seen_bitmap.h"

#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

#define BATCH   700 /* more than one growth of a young set */
#define FOREIGN 200 /* keys of the first link of a foreign chain */

static struct test_alloc memory;
static bool persistent;
static uint64_t met; /* failures that this run of the script met */

/* Did this call fail as it should? Then there is memory again: what was armed
 * to fail once has failed, what fails for good is disarmed. */
static bool refused(seen_status status, uint64_t blocks_before,
                    uint64_t failed_before)
{
    if (status == SEEN_OK) {
        assert_int_equal(memory.failed, failed_before);
        return false;
    }
    assert_int_equal(status, SEEN_NOMEM);
    assert_int_equal(memory.failed, failed_before + 1);
    assert_int_equal(memory.blocks, blocks_before);
    assert_int_equal(memory.violations, 0);
    met++;
    if (persistent) memory.fail_at = 0;
    return true;
}

/* ---- Calls that make something ------------------------------------------ */

static seen_filter *new_filter(seen_spec spec)
{
    spec.allocator = &memory.as;
    seen_filter *f = (seen_filter *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_new(&f, &spec, NULL), blocks, failed)) {
        assert_ptr_equal(f, &memory);
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    }
    return f;
}

static seen_filter *copy_filter(const seen_filter *f)
{
    seen_filter *copy = (seen_filter *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_copy(&copy, f, &memory.as), blocks, failed)) {
        assert_ptr_equal(copy, &memory);
        assert_int_equal(seen_copy(&copy, f, &memory.as), SEEN_OK);
    }
    assert_true(seen_equal(copy, f));
    return copy;
}

static seen_bitmap *new_bitmap(uint64_t bits)
{
    seen_bitmap *b = (seen_bitmap *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_bitmap_new(&b, bits, &memory.as, NULL), blocks, failed)) {
        assert_ptr_equal(b, &memory);
        assert_int_equal(seen_bitmap_new(&b, bits, &memory.as, NULL), SEEN_OK);
    }
    return b;
}

static seen_bitmap *load_bitmap(const void *buf, size_t len)
{
    seen_bitmap *b = (seen_bitmap *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_bitmap_load(&b, buf, len, &memory.as, NULL), blocks,
                failed)) {
        assert_ptr_equal(b, &memory);
        assert_int_equal(seen_bitmap_load(&b, buf, len, &memory.as, NULL),
                         SEEN_OK);
    }
    return b;
}

static seen_filter *import(bool view, const char *dialect, const void *buf,
                           size_t len)
{
    seen_filter *f = (seen_filter *)&memory;
    seen_spec spec = {.items = FOREIGN, .fpp = 1e-8, .allocator = &memory.as};
    uint64_t blocks = memory.blocks, failed = memory.failed;
    seen_status (*call)(seen_filter **, const char *, const seen_spec *,
                        const void *, size_t, seen_error *) =
        view ? seen_import_view : seen_import;
    if (refused(call(&f, dialect, &spec, buf, len, NULL), blocks, failed)) {
        assert_ptr_equal(f, &memory);
        assert_int_equal(call(&f, dialect, &spec, buf, len, NULL), SEEN_OK);
    }
    return f;
}

/* ---- Calls that change something ---------------------------------------- */

/* A picture of a filter, in memory that does not fail. */
static seen_filter *picture(const seen_filter *f)
{
    seen_filter *copy = NULL;
    assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
    return copy;
}

static void assert_unchanged(const seen_filter *f, seen_filter *before)
{
    seen_info now = {.size = sizeof now}, then = {.size = sizeof then};
    seen_measure(f, &now);
    seen_measure(before, &then);
    assert_true(seen_equal(f, before));
    assert_int_equal(now.items, then.items);
    assert_int_equal(now.bytes, then.bytes);
    assert_int_equal(now.bits_set, then.bits_set);
    assert_true(now.fpp_now == then.fpp_now);
}

static void add(seen_filter *f, uint64_t i)
{
    seen_filter *before = picture(f);
    uint64_t key = test_key(i), blocks = memory.blocks, failed = memory.failed;
    bool told = true;
    seen_status status =
        i % 2 ? seen_add_u64(f, key) : seen_visit_u64(f, key, &told);
    if (refused(status, blocks, failed)) {
        assert_unchanged(f, before);
        assert_int_equal(seen_add_u64(f, key), SEEN_OK);
    }
    assert_true(seen_maybe_u64(f, key));
    seen_free(before);
}

/* A batch may stop halfway: then the leading keys are in and the rest is not,
 * and it goes on from there. */
static void add_batch(seen_filter *f, uint64_t first)
{
    struct test_batch b = test_batch_new(first, BATCH);
    seen_filter *before = picture(f);
    size_t done = 12345;
    bool visit = first / BATCH % 2;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    seen_status status =
        visit
            ? seen_visit_many(f, seen_keys_of(b.keys, BATCH), b.answers, &done)
            : seen_add_many(f, seen_keys_of(b.keys, BATCH), &done);
    if (refused(status, blocks, failed)) {
        assert_true(done < BATCH);
        for (size_t i = 0; i < done; i++) {
            bool was;
            assert_true(seen_maybe(f, b.keys[i].data, 8));
            if (!visit)
                assert_int_equal(seen_add(before, b.keys[i].data, 8), SEEN_OK);
            else
                assert_int_equal(seen_visit(before, b.keys[i].data, 8, &was),
                                 SEEN_OK);
            if (visit) assert_int_equal(b.answers[i], was);
        }
        assert_true(seen_equal(f, before));
        size_t rest = 0;
        assert_int_equal(
            seen_add_many(f, seen_keys_of(b.keys + done, BATCH - done), &rest),
            SEEN_OK);
        assert_int_equal(done + rest, BATCH);
    } else {
        assert_int_equal(done, BATCH);
    }
    assert_int_equal(test_count_maybe(f, first, BATCH), BATCH);
    seen_free(before);
    test_batch_free(&b);
}

static void merge(seen_filter *into, const seen_filter *from, seen_merge_op op)
{
    seen_filter *before = picture(into);
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_merge(into, from, op, NULL), blocks, failed)) {
        assert_unchanged(into, before);
        assert_int_equal(seen_merge(into, from, op, NULL), SEEN_OK);
    }
    seen_free(before);
}

static void reserve(seen_filter *f, uint64_t items)
{
    seen_filter *before = picture(f);
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_reserve(f, items), blocks, failed)) {
        assert_unchanged(f, before);
        assert_int_equal(seen_reserve(f, items), SEEN_OK);
    }
    assert_true(seen_equal(f, before));
    seen_free(before);
}

/* ---- The script --------------------------------------------------------- */

static void filters_of(seen_kind kind, uint32_t flags)
{
    const bool grows = kind == SEEN_SET || kind == SEEN_SCALABLE;
    const uint64_t items = kind == SEEN_SET ? 0 : grows ? 205 : 8000;
    seen_spec spec = {.items = items,
                      .fpp = 1e-8,
                      .kind = kind,
                      .last = test_last(kind, 8000),
                      .flags = flags,
                      .secret = test_secret};
    if (kind == SEEN_SCALABLE) spec.flags |= SEEN_GUESS;
    seen_filter *a = new_filter(spec), *b = new_filter(spec);
    /* A set grows with its keys 101 and 205, the scalable filter with 206 and
     * 821, never twice in a batch; others need no memory at all. */
    uint64_t singles = grows ? 210 : 5;
    for (uint64_t i = 0; i < singles; i++)
        add(a, i);
    add_batch(a, BATCH);
    add_batch(a, 2 * BATCH);
    add_batch(b, 2 * BATCH);
    add_batch(b, 3 * BATCH);
    seen_filter *copy = copy_filter(a);

    if (!test_kind_forgets(kind)) { /* those do not unite */
        merge(copy, b, SEEN_UNION);
        assert_int_equal(test_count_maybe(copy, BATCH, 3 * BATCH), 3 * BATCH);
    }
    if (test_kind_is_set(kind)) { /* the others only unite */
        merge(copy, b, SEEN_INTERSECTION);
        assert_int_equal(test_count_maybe(copy, 2 * BATCH, 2 * BATCH),
                         2 * BATCH);
        merge(a, b, SEEN_INTERSECTION);
        assert_int_equal(test_count_maybe(a, 2 * BATCH, BATCH), BATCH);
    }
    reserve(a, 20000);
    add_batch(a, 4 * BATCH);
    seen_clear(a);
    add(a, 0);
    seen_free(copy);
    seen_free(a);
    seen_free(b);
}

/* Integers below a bound, which rises. */
/* Chains and lists, which grow with their key 201, chains again with 601. */
static void foreign_filters(const char *dialect)
{
    seen_spec spec = {.dialect = dialect, .items = FOREIGN, .fpp = 1e-8};
    seen_filter *f = new_filter(spec);
    for (uint64_t i = 0; i < FOREIGN + 10; i++)
        add(f, i);
    seen_filter *copy = copy_filter(f);
    const bool list = strcmp(dialect, "exposure-list") == 0;
    if (!list) add_batch(f, BATCH); /* a list would grow twice in one */
    static uint8_t bytes[1 << 16];
    size_t len;
    assert_int_equal(seen_export(copy, NULL, bytes, sizeof bytes, &len, NULL),
                     SEEN_OK);
    seen_filter *again = import(false, dialect, bytes, len);
    assert_true(seen_equal(copy, again));
    seen_free(again);
    if (!list) { /* whose base64 cannot be used where it lies */
        again = import(true, dialect, bytes, len);
        assert_true(seen_equal(copy, again));
        seen_free(again);
    }
    seen_free(copy);
    seen_free(f);
}

static void bitmap_kind(void)
{
    seen_filter *f = new_filter((seen_spec){.kind = SEEN_BITMAP, .bits = 1000});
    for (uint64_t bound = 1000; bound < 20000; bound *= 2) {
        seen_filter *before = picture(f);
        uint64_t blocks = memory.blocks, failed = memory.failed;
        if (refused(seen_reserve(f, bound), blocks, failed)) {
            assert_unchanged(f, before);
            assert_int_equal(seen_add_u64(f, bound - 1), SEEN_INVALID);
            assert_int_equal(seen_reserve(f, bound), SEEN_OK);
        }
        assert_int_equal(seen_add_u64(f, bound - 1), SEEN_OK);
        seen_free(before);
    }
    seen_filter *copy = copy_filter(f);
    merge(copy, f, SEEN_INTERSECTION);
    assert_true(seen_equal(copy, f));
    seen_free(copy);
    seen_free(f);
}

static void bitmaps(void)
{
    seen_bitmap *a = new_bitmap(100000), *b = new_bitmap(1);
    seen_bitmap_set_range(a, 100, 70000);
    size_t len = 0;
    assert_int_equal(seen_bitmap_save(a, NULL, 0, &len), SEEN_SHORT);
    void *buf = malloc(len);
    assert_non_null(buf);
    assert_int_equal(seen_bitmap_save(a, buf, len, &len), SEEN_OK);
    seen_bitmap *loaded = load_bitmap(buf, len);
    assert_true(seen_bitmap_equal(a, loaded));
    free(buf);
    seen_bitmap_free(loaded);
    seen_bitmap_free(a);
    seen_bitmap_free(b);
}

/* ---- Allowlists, alone and with a filter -------------------------------- */

static seen_allowlist *new_list(void)
{
    seen_allowlist *list = (seen_allowlist *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_allowlist_new(&list, &memory.as), blocks, failed)) {
        assert_ptr_equal(list, &memory);
        assert_int_equal(seen_allowlist_new(&list, &memory.as), SEEN_OK);
    }
    return list;
}

static void list_key(seen_allowlist *list, uint64_t i)
{
    uint64_t key = test_key(i), count = seen_allowlist_count(list);
    uint64_t blocks = memory.blocks, failed = memory.failed;
    seen_status status = seen_allowlist_add(list, &key, 8);
    if (status == SEEN_OK) { /* the first one takes two blocks */
        assert_int_equal(memory.failed, failed);
    } else {
        blocks += memory.blocks > blocks;
        assert_true(refused(status, blocks, failed));
        assert_int_equal(seen_allowlist_count(list), count);
        assert_false(seen_allowlist_has(list, &key, 8));
        assert_int_equal(seen_allowlist_add(list, &key, 8), SEEN_OK);
    }
    assert_true(seen_allowlist_has(list, &key, 8));
}

static seen_allowlist *copy_list(const seen_allowlist *list)
{
    seen_allowlist *copy = (seen_allowlist *)&memory;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_allowlist_copy(&copy, list, &memory.as), blocks, failed)) {
        assert_ptr_equal(copy, &memory);
        assert_int_equal(seen_allowlist_copy(&copy, list, &memory.as), SEEN_OK);
    }
    assert_true(seen_allowlist_equal(copy, list));
    return copy;
}

static seen_allowlist *save_and_load_list(const seen_allowlist *list)
{
    static uint8_t buf[4096];
    size_t len;
    uint64_t blocks = memory.blocks, failed = memory.failed;
    seen_status status = seen_allowlist_save(list, buf, sizeof buf, &len);
    if (refused(status, blocks, failed))
        assert_int_equal(seen_allowlist_save(list, buf, sizeof buf, &len),
                         SEEN_OK);

    seen_allowlist *loaded = (seen_allowlist *)&memory;
    blocks = memory.blocks, failed = memory.failed;
    status = seen_allowlist_load(&loaded, buf, len, &memory.as, NULL);
    if (refused(status, blocks, failed)) {
        assert_ptr_equal(loaded, &memory);
        assert_int_equal(
            seen_allowlist_load(&loaded, buf, len, &memory.as, NULL), SEEN_OK);
    }
    assert_true(seen_allowlist_equal(loaded, list));
    return loaded;
}

static void allow(seen_filter *f, const seen_allowlist *list)
{
    seen_filter *before = picture(f);
    uint64_t blocks = memory.blocks, failed = memory.failed;
    if (refused(seen_allow(f, list, SEEN_LISTED_NEVER), blocks, failed)) {
        assert_unchanged(f, before);
        assert_int_equal(seen_allow(f, list, SEEN_LISTED_NEVER), SEEN_OK);
    }
    assert_true(seen_allowlist_equal(seen_allowed(f, NULL), list));
    seen_free(before);
}

static void allowlists(void)
{
    seen_allowlist *list = new_list();
    for (uint64_t i = 0; i < 60; i++) /* grows a few times */
        list_key(list, i);
    seen_allowlist *copy = copy_list(list), *loaded = save_and_load_list(list);
    uint64_t key = test_key(0);
    assert_int_equal(seen_allowlist_remove(copy, &key, 8), SEEN_OK);

    seen_filter *f = new_filter((seen_spec){.items = 1000, .fpp = 1e-6});
    add(f, 100);
    allow(f, copy);
    allow(f, loaded);
    seen_filter *other = copy_filter(f);
    assert_int_equal(seen_add_u64(other, key), SEEN_OK);
    assert_false(seen_maybe_u64(other, key));
    seen_free(f);
    assert_false(seen_maybe_u64(other, key));
    seen_free(other);
    seen_allowlist_free(list);
    seen_allowlist_free(copy);
    seen_allowlist_free(loaded);
}

static void script(void)
{
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++)
        for (uint32_t flags = 0; flags <= (SEEN_CONCURRENT | SEEN_KEYED);
             flags++)
            if (test_kind_can(kind, flags)) filters_of(kind, flags);
    foreign_filters("redisbloom");
    foreign_filters("valkey-bloom");
    foreign_filters("exposure-list");
    bitmap_kind();
    bitmaps();
    allowlists();
}

/* The whole script for each allocation that it makes. */
static void run(bool from_there_on)
{
    persistent = from_there_on;
    test_alloc_init(&memory);
    test_alloc_arm(&memory, 0, false);
    script();
    uint64_t sites = memory.calls;
    assert_true(sites > 50);
    for (uint64_t nth = 1; nth <= sites; nth++) {
        test_alloc_init(&memory);
        memory.offset = nth % 64;
        test_alloc_arm(&memory, nth, from_there_on);
        met = 0;
        script();
        assert_int_equal(met, 1);
        assert_int_equal(memory.blocks, 0);
        assert_int_equal(memory.bytes, 0);
        assert_int_equal(memory.violations, 0);
    }
    test_tried(sites, "failed allocations");
}

static void every_allocation_may_fail_once(void **state)
{
    (void)state;
    run(false);
}

static void every_allocation_may_fail_for_good(void **state)
{
    (void)state;
    run(true);
}

/* ---- Any failures ------------------------------------------------------- */

/* One of the next allocations fails, and perhaps all after it. */
static void arm_any(struct test_rng *r)
{
    persistent = test_below(r, 2);
    test_alloc_arm(&memory, 1 + test_below(r, 4), persistent);
}

static void any_filter(struct test_rng *r, seen_kind kind, uint32_t flags)
{
    uint64_t items = 1 + test_below(r, (uint64_t)2 << test_below(r, 12));
    seen_spec spec = {.items = kind == SEEN_SET ? 0 : items,
                      .fpp = 1e-8,
                      .kind = kind,
                      .last = test_last(kind, items),
                      .flags = flags,
                      .secret = test_secret};
    arm_any(r);
    seen_filter *a = new_filter(spec), *b = new_filter(spec);
    for (uint64_t i = test_below(r, items); i > 0; i--) {
        if (test_below(r, 50) == 0) arm_any(r);
        add(test_below(r, 3) ? a : b, i);
    }
    arm_any(r);
    seen_filter *copy = copy_filter(a);
    arm_any(r);
    if (!test_kind_forgets(kind)) merge(copy, b, SEEN_UNION);
    arm_any(r);
    reserve(a, items + test_below(r, 5000));
    seen_free(copy);
    seen_free(a);
    seen_free(b);
}

static void any_allocations_fail(void **state)
{
    (void)state;
    struct test_rng r = test_rng(92);
    uint64_t sum = 0;
    seen_kind kind;
    for (uint64_t round = 0; round < 20 * test_scale(); round++)
        for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
            uint32_t flags =
                (uint32_t)test_below(&r, (SEEN_CONCURRENT | SEEN_KEYED) + 1);
            if (!test_kind_can(kind, flags)) continue;
            test_alloc_init(&memory);
            memory.offset = test_below(&r, 64);
            met = 0;
            any_filter(&r, kind, flags);
            assert_int_equal(memory.blocks, 0);
            assert_int_equal(memory.bytes, 0);
            assert_int_equal(memory.violations, 0);
            sum += met;
        }
    test_tried(sum, "failed allocations");
    assert_true(sum > 100);
}

/* More than any machine has, through the default allocator. */
static void a_giant_is_refused_by_the_system(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {.items = (uint64_t)1 << 40,
                          .bits = (uint64_t)1 << 48,
                          .kind = kinds[i]};
        seen_status status = seen_new(&f, &spec, NULL);
        if (status == SEEN_OK) seen_free(f); /* 32 TiB, if the system insists */
        assert_true(status == SEEN_OK || status == SEEN_NOMEM);
    }
    seen_spec set = {.kind = SEEN_SET};
    f = test_filter(set);
    test_add_members(f, 0, 1000);
    seen_status status = seen_reserve(f, (uint64_t)1 << 42);
    assert_true(status == SEEN_OK || status == SEEN_NOMEM);
    assert_int_equal(test_count_maybe(f, 0, 1000), 1000);
    seen_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(every_allocation_may_fail_for_good),
        cmocka_unit_test(any_allocations_fail),
        cmocka_unit_test(a_giant_is_refused_by_the_system),
    };
    test_announce("alloc faults");
    return cmocka_run_group_tests_name("fault_alloc", tests, NULL, NULL);
}
