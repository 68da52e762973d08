/* test_abi.c - what a program that was compiled yesterday relies on: sizes and
 * offsets of structs, numbers, and structs of other sizes than today's. */
#include "seen.h"
#include "seen_allowlist.h"
#include "seen_bitmap.h"
#include "seen_exposure.h"
#include "seen_file.h"
#include "seen_guard.h"
#include "seen_inline.h"
#include "seen_remote.h"
#include "seen_users.h"

#include "helpers/keys.h"
#include "helpers/scratch.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Layout, on 64-bit machines ------------------------------------------ */

#define AT(type, member, offset)                                               \
    {                                                                          \
#type "." #member, offsetof(type, member), offset                      \
    }
#define SIZE(type, size)                                                       \
    {                                                                          \
        "sizeof " #type, sizeof(type), size                                    \
    }

static void structs_lie_as_they_did(void **state)
{
    (void)state;
    if (sizeof(void *) != 8) skip();
    static const struct {
        const char *what;
        size_t is, was;
    } rows[] = {
        SIZE(seen_error, 512),
        AT(seen_error, status, 0),
        AT(seen_error, os_errno, 4),
        AT(seen_error, field, 8),
        AT(seen_error, text, 16),
        AT(seen_error, reserved, 480),
        SIZE(seen_allocator, 24),
        AT(seen_allocator, alloc, 0),
        AT(seen_allocator, release, 8),
        AT(seen_allocator, ctx, 16),
        SIZE(seen_spec, 136),
        AT(seen_spec, items, 0),
        AT(seen_spec, fpp, 8),
        AT(seen_spec, limit, 16),
        AT(seen_spec, kind, 24),
        AT(seen_spec, flags, 28),
        AT(seen_spec, bits, 32),
        AT(seen_spec, hashes, 40),
        AT(seen_spec, generations, 44),
        AT(seen_spec, secret, 48),
        AT(seen_spec, seed, 56),
        AT(seen_spec, allocator, 64),
        AT(seen_spec, last, 72),
        AT(seen_spec, window_ms, 80),
        AT(seen_spec, dialect, 88),
        AT(seen_spec, bits_per_key, 96),
        AT(seen_spec, key_form, 104),
        AT(seen_spec, reserved, 112),
        SIZE(seen_plan, 88),
        AT(seen_plan, size, 0),
        AT(seen_plan, kind, 8),
        AT(seen_plan, hashes, 12),
        AT(seen_plan, items, 16),
        AT(seen_plan, bits, 24),
        AT(seen_plan, bytes, 32),
        AT(seen_plan, fpp, 40),
        AT(seen_plan, lines, 48),
        AT(seen_plan, hash_bits, 52),
        AT(seen_plan, width, 56),
        AT(seen_plan, generations, 60),
        AT(seen_plan, last, 64),
        AT(seen_plan, window_ms, 72),
        AT(seen_plan, line, 80),
        AT(seen_plan, sized, 84),
        SIZE(seen_key, 16),
        AT(seen_key, data, 0),
        AT(seen_key, len, 8),
        SIZE(seen_keys, 64),
        AT(seen_keys, data, 0),
        AT(seen_keys, n, 8),
        AT(seen_keys, offsets, 16),
        AT(seen_keys, len, 24),
        AT(seen_keys, width, 32),
        AT(seen_keys, stride, 40),
        AT(seen_keys, layout, 48),
        AT(seen_keys, reserved, 52),
        SIZE(seen_hash, 16),
        AT(seen_hash, lo, 0),
        AT(seen_hash, hi, 8),
        SIZE(seen_info, 136),
        AT(seen_info, size, 0),
        AT(seen_info, kind, 8),
        AT(seen_info, flags, 12),
        AT(seen_info, hash, 16),
        AT(seen_info, dialect, 24),
        AT(seen_info, key_form, 32),
        AT(seen_info, hashes, 36),
        AT(seen_info, lines, 40),
        AT(seen_info, layers, 44),
        AT(seen_info, growth, 48),
        AT(seen_info, grows, 52),
        AT(seen_info, counted, 53),
        AT(seen_info, secret_apart, 54),
        AT(seen_info, journaled, 55),
        AT(seen_info, items, 56),
        AT(seen_info, capacity, 64),
        AT(seen_info, fpp, 72),
        AT(seen_info, bits, 80),
        AT(seen_info, bytes, 88),
        AT(seen_info, bits_set, 96),
        AT(seen_info, fpp_now, 104),
        AT(seen_info, saved_bytes, 112),
        AT(seen_info, id, 120),
        AT(seen_info, epoch, 128),
        SIZE(seen_dialect_facts, 56),
        AT(seen_dialect_facts, size, 0),
        AT(seen_dialect_facts, name, 8),
        AT(seen_dialect_facts, system, 16),
        AT(seen_dialect_facts, hash, 24),
        AT(seen_dialect_facts, needs, 32),
        AT(seen_dialect_facts, weakness, 40),
        AT(seen_dialect_facts, can, 48),
        SIZE(seen_policy, 56),
        AT(seen_policy, items, 0),
        AT(seen_policy, generations, 4),
        AT(seen_policy, fpp, 8),
        AT(seen_policy, ttl_ms, 16),
        AT(seen_policy, reserved, 24),
        SIZE(seen_record, 16),
        AT(seen_record, data, 0),
        AT(seen_record, len, 8),
        SIZE(seen_generation_info, 32),
        AT(seen_generation_info, items, 0),
        AT(seen_generation_info, first, 8),
        AT(seen_generation_info, newest, 16),
        AT(seen_generation_info, bytes, 24),
        SIZE(seen_exposure_info, 2128),
        AT(seen_exposure_info, size, 0),
        AT(seen_exposure_info, items, 8),
        AT(seen_exposure_info, bytes, 16),
        AT(seen_exposure_info, newest, 24),
        AT(seen_exposure_info, fpp_now, 32),
        AT(seen_exposure_info, generations, 40),
        AT(seen_exposure_info, reserved, 48),
        AT(seen_exposure_info, generation, 80),
        SIZE(seen_file_options, 72),
        AT(seen_file_options, mode, 0),
        AT(seen_file_options, flags, 4),
        AT(seen_file_options, secret, 8),
        AT(seen_file_options, create, 16),
        AT(seen_file_options, wait_ms, 24),
        AT(seen_file_options, reserved, 32),
        SIZE(seen_outcome, 40),
        AT(seen_outcome, size, 0),
        AT(seen_outcome, recovered_frames, 8),
        AT(seen_outcome, recovered_keys, 16),
        AT(seen_outcome, torn_bytes, 24),
        AT(seen_outcome, created, 32),
        AT(seen_outcome, recovered, 33),
        AT(seen_outcome, empty, 34),
        SIZE(seen_users_options, 96),
        AT(seen_users_options, mode, 0),
        AT(seen_users_options, create, 4),
        AT(seen_users_options, tail, 5),
        AT(seen_users_options, policy, 8),
        AT(seen_users_options, secret, 16),
        AT(seen_users_options, checkpoint_bytes, 24),
        AT(seen_users_options, journal_bytes, 32),
        AT(seen_users_options, checkpoint_ms, 40),
        AT(seen_users_options, wait_ms, 48),
        AT(seen_users_options, reserved, 56),
        SIZE(seen_users_request, 144),
        AT(seen_users_request, user, 0),
        AT(seen_users_request, items, 16),
        AT(seen_users_request, fresh, 80),
        AT(seen_users_request, count, 88),
        AT(seen_users_request, taken, 96),
        AT(seen_users_request, n_taken, 104),
        AT(seen_users_request, status, 112),
        AT(seen_users_request, reserved, 116),
        SIZE(seen_users_entry, 72),
        AT(seen_users_entry, record, 16),
        AT(seen_users_entry, status, 32),
        AT(seen_users_entry, generations, 36),
        AT(seen_users_entry, items, 40),
        AT(seen_users_entry, bytes, 48),
        AT(seen_users_entry, newest, 56),
        AT(seen_users_entry, fpp_now, 64),
        SIZE(seen_users_stats, 168),
        AT(seen_users_stats, size, 0),
        AT(seen_users_stats, policy, 8),
        AT(seen_users_stats, users, 64),
        AT(seen_users_stats, changed, 72),
        AT(seen_users_stats, memory, 80),
        AT(seen_users_stats, journal_bytes, 88),
        AT(seen_users_stats, file_bytes, 96),
        AT(seen_users_stats, checkpoints, 104),
        AT(seen_users_stats, checkpoint_ms, 112),
        AT(seen_users_stats, stall_us, 120),
        AT(seen_users_stats, expired, 128),
        AT(seen_users_stats, sequence, 136),
        AT(seen_users_stats, clock_ahead, 144),
        AT(seen_users_stats, clock_leaps, 152),
        AT(seen_users_stats, evicted, 160),
        SIZE(seen_guard_options, 72),
        AT(seen_guard_options, misses, 0),
        AT(seen_guard_options, miss_ms, 8),
        AT(seen_guard_options, closed, 16),
        AT(seen_guard_options, reserved, 24),
        SIZE(seen_guard_stats, 112),
        AT(seen_guard_stats, size, 0),
        AT(seen_guard_stats, asked, 8),
        AT(seen_guard_stats, passed, 16),
        AT(seen_guard_stats, open, 24),
        AT(seen_guard_stats, absent, 32),
        AT(seen_guard_stats, remembered, 40),
        AT(seen_guard_stats, missed, 48),
        AT(seen_guard_stats, created, 56),
        AT(seen_guard_stats, swaps, 64),
        AT(seen_guard_stats, misses_now, 72),
        AT(seen_guard_stats, wrong_share, 80),
        AT(seen_guard_stats, fpp_measured, 88),
        AT(seen_guard_stats, fpp_promised, 96),
        AT(seen_guard_stats, has_filter, 104),
        AT(seen_guard_stats, rebuild, 105),
        SIZE(seen_remote_info, 56),
        AT(seen_remote_info, size, 0),
        AT(seen_remote_info, layout, 8),
        AT(seen_remote_info, capacity, 16),
        AT(seen_remote_info, items, 24),
        AT(seen_remote_info, fpp, 32),
        AT(seen_remote_info, bytes, 40),
        AT(seen_remote_info, parts, 48),
        SIZE(seen_inline, 64),
        AT(seen_inline, words, 24),
        AT(seen_inline, lines, 32),
        AT(seen_inline, at, 16),
        AT(seen_inline, filter, 8),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is != rows[i].was)
            fail_msg("%s is %zu, was %zu", rows[i].what, rows[i].is,
                     rows[i].was);
}

#define NUMBER(name, number)                                                   \
    {                                                                          \
#name, (int64_t)(name), number                                         \
    }

static void numbers_are_permanent(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int64_t is, was;
    } rows[] = {
        NUMBER(SEEN_OK, 0),
        NUMBER(SEEN_NOMEM, -1),
        NUMBER(SEEN_INVALID, -2),
        NUMBER(SEEN_FULL, -3),
        NUMBER(SEEN_UNSUPPORTED, -4),
        NUMBER(SEEN_ABSENT, -5),
        NUMBER(SEEN_CORRUPT, -6),
        NUMBER(SEEN_NEWER, -7),
        NUMBER(SEEN_SHORT, -8),
        NUMBER(SEEN_IO, -9),
        NUMBER(SEEN_BUSY, -10),
        NUMBER(SEEN_MISMATCH, -11),
        NUMBER(SEEN_NO_SECRET, -12),
        NUMBER(SEEN_ANY, 0),
        NUMBER(SEEN_BLOOM, 1),
        NUMBER(SEEN_BLOCKED, 2),
        NUMBER(SEEN_CUCKOO, 3),
        NUMBER(SEEN_RIBBON, 11),
        NUMBER(SEEN_SCALABLE, 5),
        NUMBER(SEEN_WINDOW, 6),
        NUMBER(SEEN_SET, 7),
        NUMBER(SEEN_BITMAP, 8),
        NUMBER(SEEN_FOREIGN, 9),
        NUMBER(SEEN_SORTED, 10),
        NUMBER(SEEN_KEYS_UNKNOWN, 0),
        NUMBER(SEEN_KEYS_TEXT, 1),
        NUMBER(SEEN_KEYS_LOWER, 2),
        NUMBER(SEEN_KEYS_HEX, 3),
        NUMBER(SEEN_KEYS_U64, 4),
        NUMBER(SEEN_KEYS_I32, 5),
        NUMBER(SEEN_KEYS_UTF16, 6),
        NUMBER(SEEN_PAIRS, 0),
        NUMBER(SEEN_ROWS, 1),
        NUMBER(SEEN_OFFSETS32, 2),
        NUMBER(SEEN_OFFSETS64, 3),
        NUMBER(SEEN_INTEGERS, 4),
        NUMBER(SEEN_HASHES, 5),
        NUMBER(SEEN_HASHES64, 6),
        NUMBER(SEEN_UNION, 0),
        NUMBER(SEEN_INTERSECTION, 1),
        NUMBER(SEEN_LISTED_NEVER, 1),
        NUMBER(SEEN_LISTED_ALWAYS, 2),
        NUMBER(SEEN_CONCURRENT, 1),
        NUMBER(SEEN_KEYED, 2),
        NUMBER(SEEN_SECRET_APART, 1),
        NUMBER(SEEN_CAN_ADD, 1),
        NUMBER(SEEN_CAN_REMOVE, 2),
        NUMBER(SEEN_CAN_SNIFF, 4),
        NUMBER(SEEN_CAN_VIEW, 8),
        NUMBER(SEEN_INT_BIG, 16),
        NUMBER(SEEN_REFRESHES, 32),
        NUMBER(SEEN_UNVERIFIED, 2),
        NUMBER(SEEN_READ, 0),
        NUMBER(SEEN_WRITE, 1),
        NUMBER(SEEN_DURABLE, 2),
        NUMBER(SEEN_ASK, 0),
        NUMBER(SEEN_REJECT, 1),
        NUMBER(SEEN_REASON_MAYBE, 0),
        NUMBER(SEEN_REASON_LISTED, 1),
        NUMBER(SEEN_REASON_CREATED, 2),
        NUMBER(SEEN_REASON_LOADING, 3),
        NUMBER(SEEN_REASON_ABSENT, 4),
        NUMBER(SEEN_REASON_MISSED, 5),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is != rows[i].was)
            fail_msg("%s is %lld, was %lld", rows[i].what,
                     (long long)rows[i].is, (long long)rows[i].was);
}

/* ---- Other sizes --------------------------------------------------------- */

/* A call that fills a struct of the caller, in a buffer that is larger. */
typedef seen_status filling(void *out);

static seen_filter *filter;
static uint8_t saved[65536];
static size_t saved_len;

static seen_status fill_plan(void *out)
{
    return seen_plan_for(&(seen_spec){.items = 1000, .fpp = 0.01}, out, NULL);
}

static seen_status fill_own_plan(void *out)
{
    return seen_plan_of(filter, out);
}

static seen_status fill_looked_plan(void *out)
{
    return seen_look(saved, saved_len, NULL, out, NULL);
}

static seen_status fill_info(void *out)
{
    return seen_info_of(filter, out);
}

static seen_status fill_measured(void *out)
{
    return seen_measure(filter, out);
}

static seen_status fill_looked(void *out)
{
    return seen_look(saved, saved_len, out, NULL, NULL);
}

static seen_status fill_dialect(void *out)
{
    return seen_dialect_named("guava", out) ? SEEN_OK : SEEN_INVALID;
}

static seen_status fill_exposure(void *out)
{
    static const uint8_t secret[16] = {1};
    seen_exposure *x;
    assert_int_equal(seen_exposure_new(&x, NULL, secret, NULL, NULL), SEEN_OK);
    seen_status status = seen_exposure_info_of(x, (seen_record){0}, 5, out);
    seen_exposure_free(x);
    return status;
}

static seen_users *users;

static seen_status fill_user(void *out)
{
    return seen_users_info_of(users, (seen_key){"ann", 3}, 5, out, NULL);
}

static seen_status fill_users(void *out)
{
    return seen_users_stats_of(users, out, NULL);
}

static seen_status fill_users_outcome(void *out)
{
    seen_users *u = NULL;
    seen_users_options o = {.mode = SEEN_WRITE};
    seen_status status = seen_users_open(&u, "mem:", &o, out, NULL);
    seen_users_close(u, NULL);
    return status;
}

/* The same for seen_file_open(), _save(), _save_over(), _write() and _verify(). */
static char path[600];

static seen_status fill_opened(void *out)
{
    seen_file *file = NULL;
    const seen_spec spec = {.items = 1000, .fpp = 0.01};
    seen_file_options o = {.mode = SEEN_WRITE, .create = &spec};
    seen_status status = seen_file_open(&file, path, &o, out, NULL);
    seen_file_close(file, NULL);
    remove(path);
    return status;
}

static seen_status fill_saved(void *out)
{
    seen_status status = seen_file_save(path, filter, 0, out, NULL);
    remove(path);
    return status;
}

static seen_status fill_written(void *out)
{
    seen_status status = seen_file_write(path, "a", 1, out, NULL);
    remove(path);
    return status;
}

static seen_status fill_verified(void *out)
{
    assert_int_equal(seen_file_save(path, filter, 0, NULL, NULL), SEEN_OK);
    return seen_file_verify(path, out, NULL);
}

static seen_status fill_file(void *out)
{
    return seen_file_look(path, out, NULL,
                          NULL); /* what fill_verified() saved */
}

static seen_status fill_guard(void *out)
{
    seen_guard *g;
    assert_int_equal(seen_guard_new(&g, NULL, NULL), SEEN_OK);
    seen_guard_ask(g, "a", 1, 1, NULL);
    seen_status status = seen_guard_stats_of(g, out);
    seen_guard_free(g);
    return status;
}

static const struct {
    const char *what;
    filling *fill;
    size_t size;
    bool optional; /* NULL: not wanted */
} structs[] = {
    {"seen_plan", fill_plan, sizeof(seen_plan), false},
    {"seen_plan of a filter", fill_own_plan, sizeof(seen_plan), false},
    {"seen_plan of bytes", fill_looked_plan, sizeof(seen_plan), true},
    {"seen_info", fill_info, sizeof(seen_info), false},
    {"seen_info, measured", fill_measured, sizeof(seen_info), false},
    {"seen_info of bytes", fill_looked, sizeof(seen_info), true},
    {"seen_dialect_facts", fill_dialect, sizeof(seen_dialect_facts), true},
    {"seen_exposure_info", fill_exposure, sizeof(seen_exposure_info), false},
    {"seen_exposure_info", fill_user, sizeof(seen_exposure_info), false},
    {"seen_users_stats", fill_users, sizeof(seen_users_stats), false},
    {"seen_outcome", fill_users_outcome, sizeof(seen_outcome), true},
    {"seen_outcome", fill_opened, sizeof(seen_outcome), true},
    {"seen_outcome", fill_saved, sizeof(seen_outcome), true},
    {"seen_outcome", fill_written, sizeof(seen_outcome), true},
    {"seen_outcome", fill_verified, sizeof(seen_outcome), true},
    {"seen_info of a file", fill_file, sizeof(seen_info), true},
    {"seen_guard_stats", fill_guard, sizeof(seen_guard_stats), false}};

#define STRUCTS (sizeof structs / sizeof *structs)
#define ROOM    70000

/* Bytes 8 to n as a caller of this size gets them; nothing behind is touched. */
static void filled(size_t i, size_t n, uint8_t *to)
{
    memset(to, 0xa5, ROOM);
    memcpy(to, &n, sizeof n);
    seen_status status = structs[i].fill(to);
    if (status != SEEN_OK)
        fail_msg("%s of %zu bytes: %s", structs[i].what, n,
                 seen_strerror(status));
    assert_memory_equal(to, &n, sizeof n);
    for (size_t at = n; at < ROOM; at++)
        if (to[at] != 0xa5)
            fail_msg("%s of %zu bytes: byte %zu written", structs[i].what, n,
                     at);
}

static void old_and_future_sizes_are_filled(void **state)
{
    (void)state;
    static uint8_t whole[ROOM] __attribute__((aligned(64))),
        part[ROOM] __attribute__((aligned(64)));
    for (size_t i = 0; i < STRUCTS; i++) {
        size_t size = structs[i].size;
        filled(i, size, whole);
        for (size_t n = 16; n <= size + 64; n += n < 512 ? 8 : 64) {
            filled(i, n, part);
            for (size_t at = 8; at < n; at++) {
                uint8_t expected = at < size ? whole[at] : 0;
                if (part[at] != expected)
                    fail_msg("%s of %zu bytes: byte %zu", structs[i].what, n,
                             at);
            }
        }
        filled(i, 65536, part);
        for (size_t at = size; at < 65536; at++)
            if (part[at]) fail_msg("%s: byte %zu", structs[i].what, at);
    }
}

static void sizes_that_nobody_can_mean_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 8, 15, 65537, SIZE_MAX};
    static uint8_t out[4096], before[4096];
    for (size_t i = 0; i < STRUCTS; i++) {
        assert_int_equal(structs[i].fill(NULL),
                         structs[i].optional ? SEEN_OK : SEEN_INVALID);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            memset(out, 0xa5, sizeof out);
            memcpy(out, &sizes[k], sizeof sizes[k]);
            memcpy(before, out, sizeof out);
            assert_int_equal(structs[i].fill(out), SEEN_INVALID);
            assert_memory_equal(out, before, sizeof out);
        }
    }
    seen_plan plan = {.size = 8};
    seen_error e;
    seen_plan_for(&(seen_spec){.items = 10, .fpp = 0.1}, &plan, &e);
    assert_string_equal(e.field, "plan");
    assert_string_equal(e.text, "plan.size 8: expected its sizeof");
    assert_true(seen_plan_fpp(&plan, 10) != seen_plan_fpp(&plan, 10)); /* NaN */
}

static void what_is_reserved_must_be_zero(void **state)
{
    (void)state;
    seen_filter *f = NULL;
    seen_plan plan = {.size = sizeof plan};
    seen_error e;
    for (size_t i = 0; i < 3; i++) {
        seen_spec spec = {.items = 10, .fpp = 0.1};
        spec.reserved[i] = 1;
        assert_int_equal(seen_plan_for(&spec, &plan, &e), SEEN_INVALID);
        assert_string_equal(e.field, "reserved");
        assert_int_equal(seen_new(&f, &spec, NULL), SEEN_INVALID);
        assert_int_equal(seen_import(&f, "leveldb", &spec, "ab", 2, &e),
                         SEEN_INVALID);
        assert_string_equal(e.field, "reserved");
        assert_int_equal(seen_build(&f, &spec, seen_keys_of(NULL, 0), NULL),
                         SEEN_INVALID);
    }
    for (size_t i = 0; i < 4; i++) {
        seen_policy policy = {0};
        policy.reserved[i] = (uint64_t)1 << 63;
        assert_int_equal(seen_policy_check(&policy, &e), SEEN_INVALID);
        assert_string_equal(e.field, "policy.reserved");
    }
    assert_null(f);
}

/* In the options of handles, too, before anything is opened or made. */
static void reserved_options_must_be_zero(void **state)
{
    (void)state;
    seen_error e;
    seen_file *file = NULL;
    seen_users *u = NULL;
    seen_guard *g = NULL;
    seen_remote *m = NULL;
    const seen_spec spec = {.items = 1000, .fpp = 0.01};
    remove(path);
    for (size_t i = 0; i < 5; i++) {
        seen_file_options o = {.mode = SEEN_WRITE, .create = &spec};
        o.reserved[i] = (uint64_t)1 << (12 * i);
        assert_int_equal(seen_file_open(&file, path, &o, NULL, &e),
                         SEEN_INVALID);
        assert_string_equal(e.field, "reserved");
        assert_int_equal(seen_file_verify(path, NULL, NULL), SEEN_ABSENT);
    }
    for (size_t i = 0; i < 5; i++) {
        seen_users_options o = {.mode = SEEN_WRITE};
        o.reserved[i] = (uint64_t)1 << (12 * i);
        assert_int_equal(seen_users_open(&u, "mem:", &o, NULL, &e),
                         SEEN_INVALID);
        assert_string_equal(e.field, "options.reserved");
    }
    for (size_t i = 0; i < 6; i++) {
        seen_guard_options o = {0};
        o.reserved[i] = (uint64_t)1 << (12 * i);
        assert_int_equal(seen_guard_new(&g, &o, &e), SEEN_INVALID);
        assert_string_equal(e.field, "reserved");
    }
    /* Nobody listens on port 1, and nobody is asked. */
    seen_remote_users(&u, "redis://127.0.0.1:1/", NULL, NULL, &e);
    bool servers = e.status != SEEN_UNSUPPORTED; /* built with hiredis */
    for (size_t i = 0; servers && i < 5; i++) {
        seen_users_options o = {0};
        o.reserved[i] = (uint64_t)1 << (12 * i);
        assert_int_equal(
            seen_remote_users(&u, "redis://127.0.0.1:1/", &o, NULL, &e),
            SEEN_INVALID);
        assert_string_equal(e.field, "options.reserved");
    }
    for (size_t i = 0; servers && i < 3; i++) {
        seen_spec create = spec;
        create.reserved[i] = (uint64_t)1 << (12 * i);
        assert_int_equal(seen_remote_open(&m, "redis://127.0.0.1:1/?key=a",
                                          &create, NULL, &e),
                         SEEN_INVALID);
        assert_string_equal(e.field, "reserved");
    }
    assert_null(file);
    assert_null(u);
    assert_null(g);
    assert_null(m);
}

static int begin(void **state)
{
    (void)state;
    const seen_users_options o = {.mode = SEEN_WRITE};
    const seen_key item = {"post", 4};
    const char *dir = test_scratch();
    if (!dir) return -1;
    snprintf(path, sizeof path, "%s/f", dir);
    filter = test_filter((seen_spec){.items = 1000, .fpp = 0.01});
    test_add_members(filter, 0, 100);
    if (seen_users_open(&users, "mem:", &o, NULL, NULL) != SEEN_OK ||
        seen_users_mark(users, (seen_key){"ann", 3}, 5, seen_keys_of(&item, 1),
                        NULL, NULL) != SEEN_OK)
        return -1;
    return seen_save(filter, 0, saved, sizeof saved, &saved_len);
}

static int end(void **state)
{
    (void)state;
    seen_free(filter);
    seen_users_close(users, NULL);
    return test_scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_lie_as_they_did),
        cmocka_unit_test(numbers_are_permanent),
        cmocka_unit_test(old_and_future_sizes_are_filled),
        cmocka_unit_test(sizes_that_nobody_can_mean_are_refused),
        cmocka_unit_test(what_is_reserved_must_be_zero),
        cmocka_unit_test(reserved_options_must_be_zero),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
