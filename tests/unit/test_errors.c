/*
 * test_errors.c - every public call that takes a seen_error writes all of it,
 * whatever its status: what was there before must not be taken for news.
 *
 * Each call is made with an error full of garbage. Here are calls that succeed and
 * calls that find something wrong with their arguments; system calls that fail and
 * memory that runs out are the matter of tests/fault.
 */
#include "seen.h"
#include "seen_allowlist.h"
#include "seen_bitmap.h"
#include "seen_exposure.h"
#include "seen_file.h"
#include "seen_guard.h"
#include "seen_remote.h"
#include "seen_users.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <stdio.h>
#include <string.h>

static unsigned calls;

static void check_written(const seen_error *e, seen_status status,
                          const char *call)
{
    static const seen_error clear;
    bool good = status == SEEN_OK;
    calls++;
    if (e->status != status)
        fail_msg("%s: error.status %d, returned %d", call, (int)e->status,
                 (int)status);
    if (!memchr(e->text, '\0', sizeof e->text) || (e->text[0] == '\0') != good)
        fail_msg("%s: returned %d, and the text is: %.100s", call, (int)status,
                 e->text);
    if ((e->os_errno != 0) != (status == SEEN_IO))
        fail_msg("%s: returned %d with errno %d", call, (int)status,
                 e->os_errno);
    if (good && e->field) fail_msg("%s: a field without an error", call);
    if (e->field && !e->field[0]) fail_msg("%s: an empty field", call);
    assert_memory_equal(e->reserved, clear.reserved, sizeof e->reserved);
    if (status == SEEN_INVALID && !e->field)
        fail_msg("%s: which argument is at fault? %s", call, e->text);
}

/* `call` gives its error to `&e`. */
#define WRITES(expected, call)                                                 \
    do {                                                                       \
        seen_error e;                                                          \
        memset(&e, 0x5a, sizeof e);                                            \
        seen_status status = (call);                                           \
        check_written(&e, status, #call);                                      \
        if (status != (expected))                                              \
            fail_msg("%s: returned %d, expected %d", #call, (int)status,       \
                     (int)(expected));                                         \
    } while (0)

static char path[600], missing[600];
static const seen_spec spec = {.items = 1000, .fpp = 0.01};
static const seen_key key = {"a", 1};
#define ONE  seen_keys_of(&key, 1)
#define NONE seen_keys_of(NULL, 0)
#define BAD  seen_keys_of(NULL, 1)

static void filters(void **state)
{
    (void)state;
    static uint8_t buf[65536] __attribute__((aligned(64)));
    seen_filter *f = test_filter(spec), *g = NULL;
    seen_plan plan = {.size = sizeof plan}, unset = {0};
    seen_info info = {.size = sizeof info}, no_info = {0};
    seen_builder *b = NULL;
    size_t len;
    WRITES(SEEN_OK, seen_plan_for(&spec, &plan, &e));
    WRITES(SEEN_INVALID, seen_plan_for(NULL, &plan, &e));
    WRITES(SEEN_INVALID, seen_plan_for(&spec, &unset, &e));
    WRITES(SEEN_INVALID, seen_new(&g, &(seen_spec){.fpp = 3}, &e));
    WRITES(SEEN_INVALID, seen_new(NULL, &spec, &e));
    WRITES(SEEN_UNSUPPORTED,
           seen_new(&g,
                    &(seen_spec){.kind = SEEN_RIBBON, .items = 9, .fpp = 0.01},
                    &e));
    WRITES(SEEN_OK, seen_new(&g, &spec, &e));
    WRITES(SEEN_OK, seen_merge(f, g, SEEN_UNION, &e));
    WRITES(SEEN_INVALID, seen_merge(f, g, (seen_merge_op)9, &e));
    seen_free(g);
    g = test_filter((seen_spec){.items = 5000, .fpp = 0.01});
    WRITES(SEEN_MISMATCH, seen_merge(f, g, SEEN_UNION, &e));
    seen_free(g);

    const seen_spec fuse = {.kind = SEEN_RIBBON, .fpp = 0.01};
    WRITES(SEEN_OK, seen_build(&g, &fuse, ONE, &e));
    seen_free(g);
    WRITES(SEEN_INVALID, seen_build(&g, &fuse, BAD, &e));
    WRITES(SEEN_UNSUPPORTED, seen_builder_new(&b, &spec, &e));
    WRITES(SEEN_INVALID, seen_builder_new(NULL, &fuse, &e));
    WRITES(SEEN_OK, seen_builder_new(&b, &fuse, &e));
    WRITES(SEEN_INVALID, seen_builder_finish(b, NULL, &e));
    WRITES(SEEN_OK, seen_builder_finish(b, &g, &e));
    seen_builder_free(b);
    seen_free(g);

    assert_int_equal(seen_save(f, 0, buf, sizeof buf, &len), SEEN_OK);
    WRITES(SEEN_OK, seen_verify(buf, len, &e));
    WRITES(SEEN_CORRUPT, seen_verify(buf, len - 1, &e));
    WRITES(SEEN_OK, seen_look(buf, len, &info, NULL, &e));
    WRITES(SEEN_INVALID, seen_look(buf, len, &no_info, NULL, &e));
    WRITES(SEEN_OK, seen_load(&g, buf, len, NULL, NULL, &e));
    seen_free(g);
    WRITES(SEEN_INVALID, seen_load(&g, NULL, 0, NULL, NULL, &e));
    WRITES(SEEN_MISMATCH, seen_load(&g, buf, len, test_secret, NULL, &e));
    WRITES(SEEN_OK, seen_view(&g, buf, len, NULL, &e));
    seen_free(g);
    WRITES(SEEN_INVALID, seen_view(&g, buf + 1, len - 1, NULL, &e));
    buf[len - 1] ^= 1;
    WRITES(SEEN_CORRUPT, seen_load(&g, buf, len, NULL, NULL, &e));
    WRITES(SEEN_MISMATCH, seen_export(f, "guava", buf, sizeof buf, &len, &e));
    seen_free(f);

    f = test_filter(
        (seen_spec){.dialect = "guava", .items = 1000, .fpp = 0.01});
    WRITES(SEEN_SHORT, seen_export(f, NULL, NULL, 0, &len, &e));
    WRITES(SEEN_OK, seen_export(f, NULL, buf, sizeof buf, &len, &e));
    WRITES(SEEN_OK, seen_import(&g, "guava", NULL, buf, len, &e));
    seen_free(g);
    WRITES(SEEN_ABSENT, seen_import(&g, "nosuch", NULL, buf, len, &e));
    WRITES(SEEN_CORRUPT, seen_import(&g, "guava", NULL, buf, 3, &e));
    WRITES(SEEN_CORRUPT, seen_import_view(&g, "guava", NULL, buf, 3, &e));
    seen_free(f);
}

static void sets_and_records(void **state)
{
    (void)state;
    static uint8_t buf[4096] __attribute__((aligned(64)));
    seen_bitmap *b = NULL;
    seen_allowlist *list = NULL;
    seen_exposure *x = NULL;
    size_t len;
    WRITES(SEEN_INVALID, seen_bitmap_new(NULL, 100, NULL, &e));
    WRITES(SEEN_OK, seen_bitmap_new(&b, 100, NULL, &e));
    assert_int_equal(seen_bitmap_save(b, buf, sizeof buf, &len), SEEN_OK);
    seen_bitmap_free(b);
    WRITES(SEEN_OK, seen_bitmap_load(&b, buf, len, NULL, &e));
    seen_bitmap_free(b);
    WRITES(SEEN_OK, seen_bitmap_view(&b, buf, len, &e));
    seen_bitmap_free(b);
    WRITES(SEEN_OK, seen_bitmap_verify(buf, len, &e));
    WRITES(SEEN_INVALID, seen_bitmap_view(&b, buf + 1, len - 1, &e));
    WRITES(SEEN_CORRUPT, seen_bitmap_load(&b, buf, len - 1, NULL, &e));
    WRITES(SEEN_CORRUPT, seen_bitmap_verify(buf, 1, &e));

    WRITES(SEEN_CORRUPT, seen_allowlist_load(&list, "abc", 3, NULL, &e));
    WRITES(SEEN_INVALID, seen_allowlist_load(NULL, "abc", 3, NULL, &e));
    WRITES(SEEN_OK, seen_policy_check(NULL, &e));
    WRITES(SEEN_INVALID, seen_policy_check(&(seen_policy){.fpp = 7}, &e));
    WRITES(SEEN_OK, seen_exposure_new(&x, NULL, test_secret, NULL, &e));
    seen_exposure_free(x);
    WRITES(SEEN_INVALID, seen_exposure_new(&x, NULL, NULL, NULL, &e));
    WRITES(SEEN_INVALID,
           seen_exposure_new(&x, &(seen_policy){.generations = 99}, test_secret,
                             NULL, &e));
}

static void guards(void **state)
{
    (void)state;
    seen_guard *g = NULL;
    seen_filter *f = test_filter(spec);
    WRITES(SEEN_INVALID, seen_guard_new(NULL, NULL, &e));
    WRITES(SEEN_INVALID,
           seen_guard_new(&g, &(seen_guard_options){.misses = ~0ull}, &e));
    WRITES(SEEN_OK, seen_guard_new(&g, NULL, &e));
    WRITES(SEEN_OK, seen_guard_created(g, "a", 1, 1, &e));
    WRITES(SEEN_INVALID, seen_guard_created(NULL, "a", 1, 1, &e));
    WRITES(SEEN_INVALID, seen_guard_swap(NULL, f, &e));
    WRITES(SEEN_OK, seen_guard_swap(g, f, &e));
    f = test_filter(spec);
    WRITES(SEEN_INVALID, seen_guard_swap(g, f, &e)); /* no rebuild before it */
    seen_free(f);
    seen_guard_free(g);
}

static void files(void **state)
{
    (void)state;
    seen_filter *f = test_filter(spec);
    seen_file *file = NULL, *other = NULL;
    const seen_file_options create = {.mode = SEEN_DURABLE, .create = &spec},
                            write = {.mode = SEEN_WRITE};
    seen_info info = {.size = sizeof info}, unset = {0};
    seen_outcome bad = {0};
    WRITES(SEEN_ABSENT, seen_file_open(&file, missing, NULL, NULL, &e));
    WRITES(SEEN_ABSENT, seen_file_open(&file, missing, &write, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_open(NULL, path, NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_open(&file, NULL, NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_open(&file, path, NULL, &bad, &e));
    WRITES(SEEN_INVALID, seen_file_open(&file, "/", NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_open(&file, "/", &write, NULL, &e));
    WRITES(SEEN_IO, seen_file_open(&file, "/no/such/f", &create, NULL, &e));
    WRITES(SEEN_OK, seen_file_open(&file, path, &create, NULL, &e));
    WRITES(SEEN_BUSY, seen_file_open(&other, path, &write, NULL, &e));
    WRITES(SEEN_OK, seen_file_add_many(file, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_file_add_many(file, NONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_add_many(file, BAD, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_add_many(NULL, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_file_visit_many(file, ONE, NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_visit_many(NULL, ONE, NULL, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_file_remove_many(file, ONE, NULL, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_file_advance(file, 1, &e));
    WRITES(SEEN_INVALID, seen_file_advance(NULL, 1, &e));
    WRITES(SEEN_OK, seen_file_sync(file, &e));
    WRITES(SEEN_INVALID, seen_file_sync(NULL, &e));
    WRITES(SEEN_BUSY, seen_file_save(path, f, 0, NULL, &e));
    WRITES(SEEN_OK, seen_file_close(file, &e));
    WRITES(SEEN_OK, seen_file_close(NULL, &e));
    WRITES(SEEN_OK, seen_file_open(&file, path, NULL, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_file_add_many(file, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_file_sync(file, &e));
    WRITES(SEEN_OK, seen_file_close(file, &e));

    WRITES(SEEN_OK, seen_file_look(path, &info, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_look(path, &unset, NULL, &e));
    WRITES(SEEN_ABSENT, seen_file_look(missing, &info, NULL, &e));
    WRITES(SEEN_OK, seen_file_save_over(path, f, 0, &info, NULL, &e));
    WRITES(SEEN_BUSY, seen_file_save_over(path, f, 0, &info, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_save(path, NULL, 0, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_save(path, f, 64, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_save(path, f, SEEN_SECRET_APART, NULL, &e));
    WRITES(SEEN_IO, seen_file_save("/no/such/f", f, 0, NULL, &e));
    WRITES(SEEN_OK, seen_file_verify(path, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_verify("", NULL, &e));
    WRITES(SEEN_OK, seen_file_write(path, "text", 4, NULL, &e));
    WRITES(SEEN_INVALID, seen_file_write(path, NULL, 4, NULL, &e));
    WRITES(SEEN_CORRUPT, seen_file_verify(path, NULL, &e));
    WRITES(SEEN_CORRUPT, seen_file_open(&file, path, NULL, NULL, &e));
    WRITES(SEEN_CORRUPT, seen_file_open(&file, path, &write, NULL, &e));
    WRITES(SEEN_CORRUPT, seen_file_look(path, &info, NULL, &e));
    seen_free(f);
    remove(path);
}

static bool each(void *ctx, const seen_users_entry *entry)
{
    return entry && ctx;
}

static void users(void **state)
{
    (void)state;
    seen_users *u = NULL, *r = NULL;
    const seen_users_options write = {.mode = SEEN_WRITE};
    const seen_key ann = {"ann", 3}, nobody = {"", 0};
    seen_exposure_info info = {.size = sizeof info}, unset = {0};
    seen_users_stats stats = {.size = sizeof stats}, no_stats = {0};
    seen_users_request q = {.user = ann, .items = ONE};
    bool answer;
    size_t at[1], n;
    WRITES(SEEN_INVALID, seen_users_open(NULL, "mem:", NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_open(&u, NULL, NULL, NULL, &e));
    WRITES(SEEN_INVALID,
           seen_users_open(&u, "mem:", NULL, &(seen_outcome){0}, &e));
    WRITES(SEEN_UNSUPPORTED, seen_users_open(&u, "ftp:x", NULL, NULL, &e));
    WRITES(SEEN_OK, seen_users_open(&r, "mem:", NULL, NULL, &e));
    WRITES(SEEN_OK, seen_users_open(&u, "mem:", &write, NULL, &e));

    WRITES(SEEN_OK, seen_users_mark(u, ann, 1, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_users_mark(u, ann, 1, NONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_mark(u, nobody, 1, ONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_mark(u, ann, 1, BAD, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_mark(NULL, ann, 1, ONE, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_users_mark(r, ann, 1, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_users_mark_many(u, 1, &q, 1, &e));
    WRITES(SEEN_OK, seen_users_mark_many(u, 1, NULL, 0, &e));
    WRITES(SEEN_INVALID, seen_users_mark_many(u, 1, NULL, 1, &e));
    WRITES(SEEN_INVALID, seen_users_mark_many(NULL, 1, NULL, 0, &e));
    WRITES(SEEN_OK, seen_users_take(u, ann, 1, ONE, 1, at, &n, &e));
    WRITES(SEEN_INVALID, seen_users_take(u, ann, 1, ONE, 1, at, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_take(u, ann, 1, ONE, 1, NULL, &n, &e));
    WRITES(SEEN_OK, seen_users_take_many(u, 1, &q, 1, &e));
    WRITES(SEEN_UNSUPPORTED, seen_users_take_many(r, 1, &q, 1, &e));

    WRITES(SEEN_OK, seen_users_maybe_many(u, ann, 1, ONE, &answer, &e));
    WRITES(SEEN_INVALID, seen_users_maybe_many(u, ann, 1, ONE, NULL, &e));
    WRITES(SEEN_OK, seen_users_fresh(u, ann, 1, ONE, at, &n, &e));
    WRITES(SEEN_INVALID, seen_users_fresh(u, ann, 1, ONE, NULL, &n, &e));
    WRITES(SEEN_INVALID, seen_users_fresh(u, ann, 1, ONE, at, NULL, &e));
    WRITES(SEEN_OK, seen_users_info_of(u, ann, 1, &info, &e));
    WRITES(SEEN_INVALID, seen_users_info_of(u, ann, 1, &unset, &e));
    WRITES(SEEN_INVALID, seen_users_info_of(u, ann, 1, NULL, &e));
    WRITES(SEEN_ABSENT, seen_users_info_of(r, ann, 1, &info, &e));
    WRITES(SEEN_SHORT, seen_users_record(u, ann, NULL, 0, &n, &e));
    WRITES(SEEN_ABSENT, seen_users_record(r, ann, NULL, 0, &n, &e));
    WRITES(SEEN_INVALID, seen_users_record(u, ann, NULL, 0, NULL, &e));
    WRITES(SEEN_OK, seen_users_each(u, 1, each, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_each(u, 1, NULL, NULL, &e));
    WRITES(SEEN_OK, seen_users_stats_of(u, &stats, &e));
    WRITES(SEEN_INVALID, seen_users_stats_of(u, &no_stats, &e));
    WRITES(SEEN_OK, seen_users_sync(u, &e));
    WRITES(SEEN_OK, seen_users_sync(r, &e));
    WRITES(SEEN_OK, seen_users_sweep(u, 1, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_users_sweep(r, 1, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_users_backup(u, missing, &e));
    WRITES(SEEN_INVALID, seen_users_backup(u, NULL, &e));
    WRITES(SEEN_OK, seen_users_forget(u, ann, 1, ONE, &e));
    WRITES(SEEN_INVALID, seen_users_forget(u, ann, 1, BAD, &e));
    WRITES(SEEN_OK, seen_users_forget_user(u, ann, 1, NULL, &e));
    WRITES(SEEN_INVALID, seen_users_forget_user(u, nobody, 1, NULL, &e));
    WRITES(SEEN_OK, seen_users_close(u, &e));
    WRITES(SEEN_OK, seen_users_close(r, &e));
    WRITES(SEEN_OK, seen_users_close(NULL, &e));
}

/* Nobody listens on port 1. */
static void servers(void **state)
{
    (void)state;
    seen_remote *m = NULL;
    seen_users *u = NULL;
    seen_remote_info unset = {0};
    seen_status out =
        seen_remote_open(&m, "redis://127.0.0.1:1/?key=a", NULL, NULL, NULL);
    if (out == SEEN_UNSUPPORTED) skip(); /* built without hiredis */
    WRITES(SEEN_IO,
           seen_remote_open(&m, "redis://127.0.0.1:1/?key=a", NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_open(NULL, "redis://h/", NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_open(&m, NULL, NULL, NULL, &e));
    WRITES(SEEN_INVALID,
           seen_remote_open(&m, "redis://h:x/?key=a", NULL, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_remote_open(&m, "ftp://h/", NULL, NULL, &e));
    WRITES(SEEN_IO,
           seen_remote_users(&u, "redis://127.0.0.1:1/", NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_users(&u, NULL, NULL, NULL, &e));
    WRITES(SEEN_UNSUPPORTED, seen_remote_users(&u, missing, NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_maybe_many(NULL, NONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_add_many(NULL, NONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_remove_many(NULL, NONE, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_expire(NULL, 1, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_delete(NULL, NULL, &e));
    WRITES(SEEN_INVALID, seen_remote_info_of(NULL, &unset, &e));
}

static int begin(void **state)
{
    (void)state;
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(path, sizeof path, "%s/f", dir);
    snprintf(missing, sizeof missing, "%s/missing", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_tried(calls, "calls");
    return test_scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters), cmocka_unit_test(sets_and_records),
        cmocka_unit_test(guards),  cmocka_unit_test(files),
        cmocka_unit_test(users),   cmocka_unit_test(servers),
    };
    test_announce("errors");
    return cmocka_run_group_tests(tests, begin, end);
}
