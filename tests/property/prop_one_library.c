/*
 * prop_one_library.c - filters that a file lends and filters of one's own are the
 * same thing: merged, compared, exported, copied, saved and loaded across. Built
 * twice: with the static libraries and with the shared ones, where libseen_store.so
 * must not have a libseen of its own.
 */
#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <stdio.h>
#include <stdlib.h>

static const seen_spec specs[] = {
    {.kind = SEEN_BLOCKED, .items = 1000, .fpp = 0.01},
    {.kind = SEEN_BLOOM, .items = 1000, .fpp = 0.01},
    {.kind = SEEN_CUCKOO, .items = 1000, .fpp = 0.01},
    {.kind = SEEN_SCALABLE, .items = 100, .fpp = 0.01},
    {.kind = SEEN_SET},
    {.dialect = "guava", .items = 1000, .fpp = 0.01},
    {.dialect = "redisbloom", .items = 1000, .fpp = 0.01},
};

static void add(seen_filter *f, uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i < from + n; i++)
        assert_int_equal(seen_add_u64(f, i), SEEN_OK);
}

static seen_filter *own(const seen_spec *spec, uint64_t from, uint64_t n)
{
    seen_filter *f = NULL;
    assert_int_equal(seen_new(&f, spec, NULL), SEEN_OK);
    add(f, from, n);
    return f;
}

/* In another system's format, or in our own. */
static uint8_t *bytes_of(const seen_filter *f, const char *dialect, size_t *len)
{
    seen_status status = dialect ? seen_export(f, dialect, NULL, 0, len, NULL)
                                 : seen_save(f, 0, NULL, 0, len);
    assert_int_equal(status, SEEN_SHORT);
    uint8_t *at = malloc(*len);
    assert_non_null(at);
    status = dialect ? seen_export(f, dialect, at, *len, len, NULL)
                     : seen_save(f, 0, at, *len, len);
    assert_int_equal(status, SEEN_OK);
    return at;
}

static void assert_same_bytes(const seen_filter *a, const seen_filter *b,
                              const char *dialect)
{
    size_t m = 0, n = 0;
    uint8_t *x = bytes_of(a, dialect, &m), *y = bytes_of(b, dialect, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void across(const seen_spec *spec)
{
    seen_filter *mine = own(spec, 0, 500), *copy = NULL, *loaded = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/filter", test_scratch());
    assert_int_equal(seen_file_save(path, mine, 0, NULL, NULL), SEEN_OK);

    seen_file *s = NULL;
    assert_int_equal(seen_file_open(&s, path, NULL, NULL, NULL), SEEN_OK);
    const seen_filter *lent = seen_file_filter(s);
    assert_true(seen_equal(mine, lent) && seen_equal(lent, mine));
    assert_same_bytes(mine, lent, spec->dialect);
    assert_int_equal(seen_copy(&copy, lent, NULL), SEEN_OK);
    assert_true(seen_equal(copy, mine));

    size_t len = 0;
    uint8_t *bytes = bytes_of(lent, NULL, &len);
    assert_int_equal(seen_load(&loaded, bytes, len, NULL, NULL, NULL), SEEN_OK);
    assert_true(seen_equal(loaded, lent));
    free(bytes);

    seen_filter *other = own(spec, 500, 100);
    seen_status status = seen_merge(other, lent, SEEN_UNION, NULL);
    if (status == SEEN_OK)
        for (uint64_t i = 0; i < 600; i++)
            assert_true(seen_maybe_u64(other, i));
    else /* a kind that is merged with no other, in one library or two */
        assert_int_equal(status, seen_merge(copy, mine, SEEN_UNION, NULL));
    seen_free(other);
    seen_free(loaded);
    seen_free(copy);
    seen_free(mine);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
}

static void a_filter_that_is_lent_is_like_any_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        across(&specs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_is_lent_is_like_any_other),
    };
    test_announce("one_library");
    return cmocka_run_group_tests_name("one_library", tests, test_scratch_begin,
                                       test_scratch_end);
}
