/* test_file_store.c - filters in files: modes, locks, recovery, reports. */
#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/sim_os.h"
#include "store/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "/d/f.seen"

static struct sim *disk;

static int new_disk(void **state)
{
    (void)state;
    disk = sim_new(test_seed());
    sim_mkdir(disk, "/d");
    sim_install(disk);
    return 0;
}

static int free_disk(void **state)
{
    (void)state;
    assert_int_equal(sim_open_files(disk), 0);
    assert_int_equal(sim_mappings(disk), 0);
    sim_uninstall();
    sim_free(disk);
    return 0;
}

/* One spec for each kind that a file can change. */
static const seen_spec specs[] = {
    {.kind = SEEN_BLOOM, .items = 3000, .fpp = 0.01},
    {.kind = SEEN_BLOCKED, .items = 20000, .fpp = 0.001},
    {.kind = SEEN_BLOCKED, .items = 3000, .fpp = 1e-9},
    {.kind = SEEN_CUCKOO, .items = 3000, .fpp = 0.001},
    {.kind = SEEN_SET},
    {.kind = SEEN_WINDOW, .last = 3000, .fpp = 0.001},
    {.kind = SEEN_SCALABLE, .items = 100, .fpp = 0.001},
};

#define SPECS (sizeof specs / sizeof *specs)

static seen_file *open_file(seen_mode mode, const seen_spec *create,
                            seen_outcome *outcome, seen_error *error)
{
    seen_file *s = NULL;
    seen_file_options options = {.mode = mode, .create = create};
    seen_status status =
        seen_file_open(&s, FILE_NAME, &options, outcome, error);
    if (status != SEEN_OK) fail_msg("%s", seen_strerror(status));
    return s;
}

static void add(seen_file *s, uint64_t first, size_t n)
{
    struct test_batch b = test_batch_new(first, n);
    size_t added;
    assert_int_equal(
        seen_file_add_many(s, seen_keys_of(b.keys, n), &added, NULL), SEEN_OK);
    assert_int_equal(added, n);
    test_batch_free(&b);
}

static void assert_members(const seen_filter *f, uint64_t n)
{
    assert_int_equal(test_count_maybe(f, 0, n), n);
}

static void what_was_added_is_there_after_closing(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++)
        for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++) {
            seen_outcome outcome = {.size = sizeof outcome};
            seen_error error = {0};
            seen_spec spec = specs[i];
            spec.key_form = (seen_key_form)i;
            seen_file *s = open_file(mode, &spec, &outcome, &error);
            assert_true(outcome.created);
            for (uint64_t at = 0; at < 2000; at += 100)
                add(s, at, 100);
            assert_members(seen_file_filter(s), 2000);
            assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
            assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                             SEEN_OK);

            s = open_file(SEEN_READ, NULL, &outcome, &error);
            assert_false(outcome.created || outcome.recovered);
            assert_members(seen_file_filter(s), 2000);
            seen_info info = {.size = sizeof info};
            seen_measure(seen_file_filter(s), &info);
            assert_in_range(info.items, 1950, 2000);
            assert_int_equal(info.key_form, spec.key_form);
            struct test_batch b = test_batch_new(0, 1);
            assert_int_equal(
                seen_file_add_many(s, seen_keys_of(b.keys, 1), NULL, NULL),
                SEEN_UNSUPPORTED);
            test_batch_free(&b);
            assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
            seen_os->unlink(FILE_NAME);
        }
}

/* A reader beside a writer, and one after the writer died. */
static void readers_know_what_was_acknowledged(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file *w = open_file(SEEN_DURABLE, &specs[i], &outcome, &error);
        for (uint64_t at = 0; at < 1500; at += 500) {
            add(w, at, 500);
            seen_file *r = open_file(SEEN_READ, NULL, &outcome, &error);
            assert_true(outcome.recovered);
            assert_members(seen_file_filter(r), at + 500);
            seen_file_close(r, NULL);
            if (at == 500) assert_int_equal(seen_file_sync(w, NULL), SEEN_OK);
        }
        assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                         SEEN_OK);
        struct sim *after = sim_after_kill(disk);
        sim_install(after);
        seen_file *r = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_members(seen_file_filter(r), 1500);
        seen_file_close(r, NULL);
        seen_file *again = open_file(SEEN_DURABLE, NULL, &outcome, &error);
        assert_true(outcome.recovered);
        assert_int_equal(outcome.recovered_keys, 500);
        assert_members(seen_file_filter(again), 1500);
        assert_int_equal(seen_file_close(again, NULL), SEEN_OK);
        assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                         SEEN_OK);
        sim_install(disk);
        sim_free(after);
        assert_int_equal(seen_file_close(w, NULL), SEEN_OK);
        seen_os->unlink(FILE_NAME);
    }
}

static uint64_t items_of(seen_mode mode)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_info info = {.size = sizeof info};
    seen_file *s = open_file(mode, NULL, &outcome, &error);
    seen_measure(seen_file_filter(s), &info);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    return info.items;
}

/* Killed, its bits are in the file, and a replay finds none of them new; after a
 * loss of power all of them are. */
static void keys_of_the_dead_are_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++)
        for (int power = 0; power < 2; power++) {
            seen_outcome outcome = {.size = sizeof outcome};
            seen_error error = {0};
            seen_file *w = open_file(SEEN_DURABLE, &specs[i], &outcome, &error);
            for (uint64_t at = 0; at < 2500; at += 500) {
                add(w, at, 500);
                if (at == 0) assert_int_equal(seen_file_sync(w, NULL), SEEN_OK);
            }
            struct sim *after =
                power ? sim_after_power_loss(disk, 8) : sim_after_kill(disk);
            sim_install(after);
            assert_in_range(items_of(SEEN_READ), 2425, 2500);
            assert_in_range(items_of(SEEN_DURABLE), 2425, 2500);
            assert_in_range(items_of(SEEN_READ), 2425, 2500);
            sim_install(disk);
            sim_free(after);
            assert_int_equal(seen_file_close(w, NULL), SEEN_OK);
            seen_os->unlink(FILE_NAME);
        }
}

static uint64_t journal_size(struct sim *on)
{
    size_t len = 0;
    sim_get(on, FILE_NAME ".journal-0000000000000001", &len);
    return len;
}

/* Told the same time again and again, a store has nothing to note. */
static void the_time_takes_no_room_until_it_moves(void **state)
{
    (void)state;
    seen_spec spec = {
        .kind = SEEN_WINDOW, .items = 1000, .fpp = 0.001, .window_ms = 1000};
    seen_file *w = open_file(SEEN_WRITE, &spec, NULL, NULL);
    assert_int_equal(seen_file_advance(w, 5000, NULL), SEEN_OK);
    uint64_t size = journal_size(disk);
    assert_true(size > 0);
    for (uint64_t i = 0; i < 50000; i++)
        assert_int_equal(seen_file_advance(w, 5000 - i % 10, NULL), SEEN_OK);
    assert_int_equal(journal_size(disk), size);
    for (uint64_t i = 0; i < 50000; i++)
        assert_int_equal(seen_file_advance(w, 5001 + i, NULL), SEEN_OK);
    assert_true(journal_size(disk) > size);
    assert_int_equal(seen_file_close(w, NULL), SEEN_OK);
}

/* Keys leave a window in time, also for whoever reads it or mends it. */
static void windows_keep_their_time(void **state)
{
    (void)state;
    seen_spec spec = {
        .kind = SEEN_WINDOW, .items = 1000, .fpp = 0.001, .window_ms = 1000};
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *w = open_file(SEEN_DURABLE, &spec, &outcome, &error);
    assert_int_equal(seen_file_advance(w, 5000, NULL), SEEN_OK);
    add(w, 0, 100);
    assert_int_equal(seen_file_advance(w, 5900, NULL), SEEN_OK);
    add(w, 100, 100);
    struct sim *after = sim_after_power_loss(disk, 3);
    sim_install(after);
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
        seen_file *s = open_file(mode, NULL, &outcome, &error);
        assert_members(seen_file_filter(s), 200);
        assert_int_equal(seen_file_advance(s, 6700, NULL), SEEN_OK);
        const seen_filter *f = seen_file_filter(s);
        assert_in_range(test_count_maybe(f, 0, 100), 0, 5);
        assert_int_equal(test_count_maybe(f, 100, 100), 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        if (mode == SEEN_WRITE) break; /* the time is in the file now */
    }
    seen_file *s = open_file(SEEN_DURABLE, NULL, &outcome, &error);
    assert_in_range(test_count_maybe(seen_file_filter(s), 0, 100), 0, 5);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    sim_install(disk);
    sim_free(after);
    assert_int_equal(seen_file_close(w, NULL), SEEN_OK);
    seen_os->unlink(FILE_NAME);
    w = open_file(SEEN_DURABLE, &specs[1], &outcome, &error);
    assert_int_equal(seen_file_advance(w, 1, NULL), SEEN_UNSUPPORTED);
    seen_file_close(w, NULL);
}

static void there_is_one_writer(void **state)
{
    (void)state;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *w = open_file(SEEN_DURABLE, &specs[1], &outcome, &error);
    seen_file *other = NULL;
    for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++) {
        seen_file_options o = {.mode = mode};
        assert_int_equal(
            seen_file_open(&other, FILE_NAME, &o, &outcome, &error), SEEN_BUSY);
        o.wait_ms = 10; /* it has not ended by then */
        assert_int_equal(
            seen_file_open(&other, FILE_NAME, &o, &outcome, &error), SEEN_BUSY);
        assert_string_not_equal(error.text, "");
    }
    assert_int_equal(
        seen_file_save(FILE_NAME, seen_file_filter(w), 0, &outcome, &error),
        SEEN_BUSY);
    assert_null(other);
    seen_file_close(w, NULL);
    w = open_file(SEEN_WRITE, NULL, &outcome, &error);
    seen_file_close(w, NULL);
}

static void removal_is_journaled_too(void **state)
{
    (void)state;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *w = open_file(SEEN_DURABLE, &specs[3], &outcome, &error);
    add(w, 0, 1000);
    struct test_batch b = test_batch_new(0, 400);
    assert_int_equal(seen_file_remove_many(w, seen_keys_of(b.keys, 400),
                                           b.answers, NULL, NULL),
                     SEEN_OK);
    for (size_t i = 0; i < 400; i++)
        assert_true(b.answers[i]);
    test_batch_free(&b);
    struct sim *after = sim_after_power_loss(disk, 7);
    sim_install(after);
    seen_file *r = open_file(SEEN_READ, NULL, &outcome, &error);
    assert_int_equal(test_count_maybe(seen_file_filter(r), 400, 600), 600);
    assert_in_range(test_count_maybe(seen_file_filter(r), 0, 400), 0, 10);
    seen_file_close(r, NULL);
    sim_install(disk);
    sim_free(after);
    seen_file_close(w, NULL);

    w = open_file(SEEN_DURABLE, NULL, &outcome, &error);
    seen_file_close(w, NULL);
    seen_os->unlink(FILE_NAME);
    w = open_file(SEEN_DURABLE, &specs[1], &outcome, &error);
    b = test_batch_new(0, 1);
    assert_int_equal(seen_file_remove_many(w, seen_keys_of(b.keys, 1),
                                           b.answers, NULL, NULL),
                     SEEN_UNSUPPORTED);
    test_batch_free(&b);
    seen_file_close(w, NULL);
}

/* Cuckoo filters count adds; a visit adds only what is not there. */
static void visits_and_adds_are_replayed_as_what_they_were(void **state)
{
    (void)state;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *w = open_file(SEEN_DURABLE, &specs[3], &outcome, &error);
    struct test_batch b = test_batch_new(0, 100);
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen_file_visit_many(w, seen_keys_of(b.keys, 100),
                                              b.answers, NULL, NULL),
                         SEEN_OK);
    assert_int_equal(
        seen_file_add_many(w, seen_keys_of(b.keys, 50), NULL, NULL), SEEN_OK);
    struct sim *after = sim_after_power_loss(disk, 9);
    sim_install(after);
    seen_file *r = open_file(SEEN_READ, NULL, &outcome, &error);
    seen_info info = {.size = sizeof info};
    seen_measure(seen_file_filter(r), &info);
    assert_in_range(info.items, 145, 150);
    assert_true(seen_equal(seen_file_filter(r), seen_file_filter(w)));
    seen_file_close(r, NULL);
    sim_install(disk);
    sim_free(after);
    test_batch_free(&b);
    seen_file_close(w, NULL);
}

static void a_full_filter_says_so_and_recovers_as_it_was(void **state)
{
    (void)state;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_spec small = {.kind = SEEN_CUCKOO, .items = 100, .fpp = 0.001};
    seen_file *w = open_file(SEEN_DURABLE, &small, &outcome, &error);
    struct test_batch b = test_batch_new(0, 1000);
    size_t added;
    assert_int_equal(
        seen_file_add_many(w, seen_keys_of(b.keys, 1000), &added, NULL),
        SEEN_FULL);
    assert_in_range(added, 100, 999);
    struct sim *after = sim_after_power_loss(disk, 8);
    sim_install(after);
    seen_file *r = open_file(SEEN_READ, NULL, &outcome, &error);
    assert_true(seen_equal(seen_file_filter(r), seen_file_filter(w)));
    assert_members(seen_file_filter(r), added);
    seen_file_close(r, NULL);
    sim_install(disk);
    sim_free(after);
    test_batch_free(&b);
    seen_file_close(w, NULL);
}

static void secrets_apart_are_asked_for(void **state)
{
    (void)state;
    static const uint8_t other[16] = {1, 2, 3};
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_spec spec = {
        .items = 1000, .fpp = 0.01, .flags = SEEN_KEYED, .secret = test_secret};
    seen_file_options o = {.mode = SEEN_DURABLE,
                           .flags = SEEN_SECRET_APART,
                           .create = &spec,
                           .secret = test_secret};
    seen_file *s = NULL;
    assert_int_equal(seen_file_open(&s, FILE_NAME, &o, &outcome, &error),
                     SEEN_OK);
    add(s, 0, 500);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    size_t len;
    const uint8_t *bytes = sim_get(disk, FILE_NAME, &len);
    for (size_t i = 0; i + 16 <= len; i++)
        assert_memory_not_equal(bytes + i, test_secret, 16);

    s = NULL;
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
        seen_file_options none = {.mode = mode},
                          wrong = {.mode = mode, .secret = other},
                          right = {.mode = mode, .secret = test_secret};
        assert_int_equal(seen_file_open(&s, FILE_NAME, &none, &outcome, &error),
                         SEEN_NO_SECRET);
        assert_int_equal(
            seen_file_open(&s, FILE_NAME, &wrong, &outcome, &error),
            SEEN_MISMATCH);
        assert_null(s);
        assert_int_equal(
            seen_file_open(&s, FILE_NAME, &right, &outcome, &error), SEEN_OK);
        assert_members(seen_file_filter(s), 500);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        s = NULL;
    }
    assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error), SEEN_OK);
}

/* Bytes that seen_save() made, put into a file by somebody else. */
static void a_saved_filter_becomes_a_journaled_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_filter *f = test_filter(specs[i]);
        test_add_members(f, 0, 700);
        uint8_t *bytes = malloc(1 << 20);
        size_t len;
        assert_int_equal(seen_save(f, 0, bytes, 1 << 20, &len), SEEN_OK);
        sim_put(disk, FILE_NAME, bytes, len);
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file *s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_true(seen_equal(seen_file_filter(s), f));
        seen_file_close(s, NULL);
        s = open_file(SEEN_DURABLE, NULL, &outcome, &error);
        add(s, 700, 300);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_members(seen_file_filter(s), 1000);
        seen_file_close(s, NULL);
        seen_os->unlink(FILE_NAME);
        free(bytes);
        seen_free(f);
    }
}

/* A byte of the file, and back again. */
static void flip(uint8_t *bytes, size_t len, size_t at, uint8_t bits)
{
    bytes[at] ^= bits;
    seen_os->unlink(FILE_NAME);
    sim_put(disk, FILE_NAME, bytes, len);
}

static uint8_t *copy_of_file(size_t *len)
{
    const uint8_t *bytes = sim_get(disk, FILE_NAME, len);
    uint8_t *copy = malloc(*len);
    memcpy(copy, bytes, *len);
    return copy;
}

/* By whoever verifies and whoever opens; and the file stays as it is. */
static void assert_damaged(const uint8_t *bytes, size_t len)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = NULL;
    assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                     SEEN_CORRUPT);
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
        seen_file_options o = {.mode = mode};
        error = (seen_error){0};
        assert_int_equal(seen_file_open(&s, FILE_NAME, &o, &outcome, &error),
                         SEEN_CORRUPT);
        assert_int_equal(error.status, SEEN_CORRUPT);
        assert_string_equal(error.field, "path");
        assert_string_not_equal(error.text, "");
        size_t now;
        const uint8_t *there = sim_get(disk, FILE_NAME, &now);
        assert_int_equal(now, len);
        assert_memory_equal(there, bytes, len);
        assert_int_equal(journal_size(disk), 0);
    }
    assert_null(s);
}

static void damage_is_found_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_file *s = open_file(SEEN_DURABLE, &specs[i], NULL, NULL);
        add(s, 0, 1000);
        seen_file_close(s, NULL);
        size_t len;
        uint8_t *bytes = copy_of_file(&len);
        struct test_rng r = test_rng(200 + i);
        for (int n = 0; n < 100; n++) {
            /* Damage to the spare header is not seen until it is needed. */
            size_t at = 1024 + test_below(&r, len - 1024);
            uint8_t bits = (uint8_t)(1u << test_below(&r, 8));
            flip(bytes, len, at, bits);
            assert_damaged(bytes, len);
            flip(bytes, len, at, bits);
        }
        free(bytes);
        seen_os->unlink(FILE_NAME);
    }
}

/* The page is named, and SEEN_UNVERIFIED answers all the same. */
static void damaged_pages_can_be_asked_on_request(void **state)
{
    (void)state;
    const seen_spec spec = {
        .kind = SEEN_BLOCKED, .items = 200000, .fpp = 0.001};
    seen_file *s = open_file(SEEN_DURABLE, &spec, NULL, NULL);
    add(s, 0, 100000);
    seen_file_close(s, NULL);
    size_t len;
    uint8_t *bytes = copy_of_file(&len);
    memset(bytes + len - 3 * 65536, 0, 4096);
    flip(bytes, len, len - 1, 1);
    seen_error error = {0};
    assert_int_equal(seen_file_open(&s, FILE_NAME, NULL, NULL, &error),
                     SEEN_CORRUPT);
    assert_non_null(strstr(error.text, "does not match its checksum"));
    assert_non_null(strstr(error.text, "page "));
    const seen_file_options quick = {.flags = SEEN_UNVERIFIED};
    assert_int_equal(seen_file_open(&s, FILE_NAME, &quick, NULL, &error),
                     SEEN_OK);
    assert_in_range(test_count_maybe(seen_file_filter(s), 0, 100000), 90000,
                    99999);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    free(bytes);
}

/* Beside the journal of a writer that died, pages differ from their checksums
 * where its frames have set bits. Elsewhere they do not. */
static void damage_beside_a_journal_is_found(void **state)
{
    (void)state;
    static const seen_spec large[] = {
        {.kind = SEEN_BLOOM, .items = 300000, .fpp = 0.01},
        {.kind = SEEN_BLOCKED, .items = 200000, .fpp = 0.001}};
    for (size_t i = 0; i < 2; i++) {
        seen_file *w = open_file(SEEN_DURABLE, &large[i], NULL, NULL);
        assert_int_equal(seen_file_sync(w, NULL), SEEN_OK);
        add(w, 0, 1);
        struct sim *after = sim_after_kill(disk);
        size_t len, now;
        const uint8_t *there = sim_get(after, FILE_NAME, &len);
        uint8_t *bytes = malloc(len);
        memcpy(bytes, there, len);
        sim_install(after);
        struct test_rng r = test_rng(300 + i);
        int found = 0;
        for (int n = 0; n < 50; n++) {
            /* In the payload: some pages are those of the key. */
            size_t at = 4096 + test_below(&r, len - 4096);
            bytes[at] ^= 16;
            seen_os->unlink(FILE_NAME);
            sim_put(after, FILE_NAME, bytes, len);
            seen_file *s = NULL;
            seen_status read = seen_file_open(&s, FILE_NAME, NULL, NULL, NULL);
            assert_int_equal(seen_file_verify(FILE_NAME, NULL, NULL), read);
            found += read == SEEN_CORRUPT;
            if (read == SEEN_OK) {
                assert_members(seen_file_filter(s), 1);
                assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
            }
            for (int mode = SEEN_WRITE;
                 read == SEEN_CORRUPT && mode <= SEEN_DURABLE; mode++) {
                seen_file_options o = {.mode = mode};
                assert_int_equal(seen_file_open(&s, FILE_NAME, &o, NULL, NULL),
                                 SEEN_CORRUPT);
                sim_get(after, FILE_NAME ".journal-0000000000000001", &now);
                assert_true(now > 0);
            }
            bytes[at] ^= 16;
        }
        assert_in_range(found, i ? 35 : 1, 50);
        free(bytes);
        sim_install(disk);
        sim_free(after);
        assert_int_equal(seen_file_close(w, NULL), SEEN_OK);
        seen_os->unlink(FILE_NAME);
    }
}

/* Keys one by one: how many were taken, and how many met the damage. */
static void add_each(seen_file *s, uint64_t first, uint64_t n, uint64_t *taken,
                     uint64_t *refused)
{
    for (uint64_t i = first; i < first + n; i++) {
        struct test_batch b = test_batch_new(i, 1);
        size_t added = 7;
        seen_status status =
            seen_file_add_many(s, seen_keys_of(b.keys, 1), &added, NULL);
        assert_true(status == SEEN_OK || status == SEEN_CORRUPT);
        assert_int_equal(added, status == SEEN_OK);
        *(status == SEEN_OK ? taken : refused) += 1;
        test_batch_free(&b);
    }
}

/* New checksums must not vouch for old damage. */
static void changes_do_not_hide_damage(void **state)
{
    (void)state;
    static const seen_spec large[] = {
        {.kind = SEEN_BLOOM, .items = 300000, .fpp = 0.01},
        {.kind = SEEN_BLOCKED, .items = 200000, .fpp = 0.001}};
    for (size_t i = 0; i < 2; i++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file *s = open_file(SEEN_DURABLE, &large[i], NULL, NULL);
        add(s, 0, 20000);
        seen_file_close(s, NULL);
        size_t len;
        const uint8_t *bytes = sim_get(disk, FILE_NAME, &len);
        uint8_t *bad = malloc(len);
        memcpy(bad, bytes, len);
        memset(bad + len / 2, 0, 4096);
        seen_os->unlink(FILE_NAME);
        sim_put(disk, FILE_NAME, bad, len);
        free(bad);
        assert_int_equal(seen_file_verify(FILE_NAME, NULL, NULL), SEEN_CORRUPT);

        uint64_t taken = 0, refused = 0;
        const seen_file_options quick = {.mode = SEEN_DURABLE,
                                         .flags = SEEN_UNVERIFIED};
        assert_int_equal(seen_file_open(&s, FILE_NAME, &quick, NULL, NULL),
                         SEEN_OK);
        add_each(s, 20000, 100, &taken, &refused);
        assert_true(refused > 0 && (taken > 0 || i == 0));
        assert_int_equal(seen_file_sync(s, NULL), SEEN_OK);
        struct sim *after = sim_after_kill(disk);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                         SEEN_CORRUPT);

        /* Nor when what a dead writer left is made part of the file. */
        sim_install(after);
        seen_file_options o = {.mode = SEEN_WRITE, .flags = SEEN_UNVERIFIED};
        assert_int_equal(seen_file_open(&s, FILE_NAME, &o, &outcome, &error),
                         SEEN_CORRUPT);
        assert_int_equal(seen_file_open(&s, FILE_NAME, &quick, NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                         SEEN_CORRUPT);
        sim_install(disk);
        sim_free(after);
        seen_os->unlink(FILE_NAME);
    }
}

/* A file that was moved away from its journal has lost what is in there. */
static void a_missing_journal_is_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file *w = open_file(SEEN_DURABLE, &specs[i], &outcome, &error);
        add(w, 0, 100);
        struct sim *after = sim_after_kill(disk);
        sim_install(after);
        assert_int_equal(seen_os->rename(FILE_NAME, "/d/moved"), 0);
        seen_file *s = NULL;
        for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
            seen_file_options o = {.mode = mode};
            assert_int_equal(
                seen_file_open(&s, "/d/moved", &o, &outcome, &error),
                SEEN_CORRUPT);
            assert_non_null(strstr(error.text, "journal"));
        }
        assert_int_equal(seen_file_verify("/d/moved", &outcome, &error),
                         SEEN_CORRUPT);
        assert_int_equal(seen_os->rename("/d/moved", FILE_NAME), 0);
        s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_members(seen_file_filter(s), 100);
        seen_file_close(s, NULL);
        sim_install(disk);
        sim_free(after);
        seen_file_close(w, NULL);
        seen_os->unlink(FILE_NAME);
    }
}

/* What a filter was made from must not change before it is put in its place. */
static void a_file_that_changed_is_not_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_info was = {.size = sizeof was};
        seen_filter *copy;
        seen_file *s = open_file(SEEN_DURABLE, &specs[i], &outcome, &error);
        seen_file_close(s, NULL);
        assert_int_equal(seen_file_look(FILE_NAME, &was, NULL, NULL), SEEN_OK);
        s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_int_equal(seen_copy(&copy, seen_file_filter(s), NULL), SEEN_OK);
        seen_file_close(s, NULL);
        s = open_file(SEEN_DURABLE, NULL, &outcome, &error);
        add(s, 0, 100);
        seen_file_close(s, NULL);
        assert_int_equal(
            seen_file_save_over(FILE_NAME, copy, 0, &was, &outcome, &error),
            SEEN_BUSY);
        s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_members(seen_file_filter(s), 100);
        seen_file_close(s, NULL);
        assert_int_equal(seen_file_look(FILE_NAME, &was, NULL, NULL), SEEN_OK);
        assert_int_equal(
            seen_file_save_over(FILE_NAME, copy, 0, &was, &outcome, &error),
            SEEN_OK);
        assert_int_equal(
            seen_file_save_over(FILE_NAME, copy, 0, &was, &outcome, &error),
            SEEN_BUSY);
        seen_os->unlink(FILE_NAME);
        assert_int_equal(
            seen_file_save_over(FILE_NAME, copy, 0, &was, &outcome, &error),
            SEEN_ABSENT);
        seen_free(copy);
    }
}

static void missing_files_are_not_made_up(void **state)
{
    (void)state;
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = NULL;
    for (int mode = SEEN_READ; mode <= SEEN_DURABLE; mode++) {
        seen_file_options o = {.mode = mode};
        assert_int_equal(seen_file_open(&s, FILE_NAME, &o, &outcome, &error),
                         SEEN_ABSENT);
        assert_string_equal(error.text,
                            mode == SEEN_READ
                                ? "no such file"
                                : "no such file: options.create makes one");
        assert_string_equal(error.field, "path");
    }
    seen_file_options bad = {.mode = SEEN_DURABLE,
                             .create = &(seen_spec){.fpp = 2}};
    assert_int_equal(seen_file_open(&s, FILE_NAME, &bad, &outcome, &error),
                     SEEN_INVALID);
    assert_string_equal(error.text, test_wrong_spec(bad.create));
    assert_string_equal(error.field, "fpp");
    assert_null(s);
    assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                     SEEN_ABSENT);
    sim_put(disk, FILE_NAME, "short", 5);
    assert_int_equal(seen_file_verify(FILE_NAME, &outcome, &error),
                     SEEN_CORRUPT);
    seen_file_options o = {.mode = SEEN_READ};
    assert_int_equal(seen_file_open(&s, FILE_NAME, &o, &outcome, &error),
                     SEEN_CORRUPT);
}

/* Two programs find no file. One of them makes it, adds to it and is told that
 * all is well, at any moment of the other's work: that must not replace it. */
static uint64_t calls_left;
static bool made;

static void make_it_first(void *ctx, const char *call)
{
    (void)call;
    if (calls_left == 0 || --calls_left > 0) return;
    seen_file *s = NULL;
    seen_file_options o = {.mode = SEEN_DURABLE, .create = ctx};
    if (seen_file_open(&s, FILE_NAME, &o, NULL, NULL) != SEEN_OK) return;
    add(s, 0, 100);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    made = true;
}

enum way {
    BY_OPENING,
    BY_SAVING,
    BY_WRITING,
    WAYS
};

static bool lose_the_race(const seen_spec *spec, uint64_t at, enum way way)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = NULL;
    seen_file_options o = {.mode = SEEN_DURABLE, .create = spec};
    seen_filter *f = test_filter(*spec);
    calls_left = at;
    made = false;
    sim_on_call(disk, make_it_first, (void *)(uintptr_t)spec);
    seen_status status =
        way == BY_SAVING ? seen_file_save(FILE_NAME, f, 0, &outcome, &error)
        : way == BY_WRITING
            ? seen_file_write(FILE_NAME, "bytes", 5, &outcome, &error)
            : seen_file_open(&s, FILE_NAME, &o, &outcome, &error);
    sim_on_call(disk, NULL, NULL);
    seen_file_close(s, NULL);
    seen_free(f);
    /* A save that came later is a wish to replace it. */
    if (made && (way == BY_OPENING || status == SEEN_BUSY)) {
        s = open_file(SEEN_READ, NULL, &outcome, &error);
        assert_members(seen_file_filter(s), 100);
        seen_file_close(s, NULL);
    }
    if (made && status != SEEN_OK) assert_int_equal(status, SEEN_BUSY);
    bool lost = made && status == SEEN_BUSY;
    seen_os->unlink(FILE_NAME);
    return lost;
}

static void a_file_made_meanwhile_is_not_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++)
        for (int way = 0; way < WAYS; way++) {
            int lost = 0;
            for (uint64_t at = 1; at < 60; at++)
                lost += lose_the_race(&specs[i], at, way);
            assert_in_range(lost, 1, 59);
        }
}

/* An error after the rename: the file is there all the same, and whoever made a
 * secret for it must not throw that away. */
static void a_late_error_says_that_the_file_is_there(void **state)
{
    (void)state;
    seen_filter *f = test_filter(specs[0]);
    struct faults *faults = sim_faults(disk);
    int late = 0;
    for (uint64_t n = 1, fired = 1; fired; n++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        fault_arm(faults, n, EIO, false);
        seen_status status = seen_file_save(FILE_NAME, f, 0, &outcome, &error);
        fired = faults->fired;
        fault_arm(faults, 0, 0, false);
        bool there = seen_file_verify(FILE_NAME, NULL, NULL) == SEEN_OK;
        assert_int_equal(outcome.created, there);
        late += there && status != SEEN_OK;
        seen_os->unlink(FILE_NAME);
    }
    assert_in_range(late, 1, 10);
    seen_free(f);
}

/* What failed, and what to do. */
static void assert_refused(const seen_error *error)
{
    assert_int_equal(error->status, SEEN_IO);
    assert_int_equal(error->os_errno, EIO);
    assert_non_null(strstr(error->text, "sync the "));
    assert_non_null(strstr(error->text, "open it again"));
}

/* Nobody knows what is on disk then, so nothing more is promised. */
static void after_a_failed_sync_the_file_is_read_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPECS; i++) {
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        seen_file *s = open_file(SEEN_DURABLE, &specs[i], &outcome, &error);
        add(s, 0, 100);
        struct faults *f = sim_faults(disk);
        f->only = i % 2 ? "datasync" : "sync";
        fault_arm(f, 1, EIO, false);
        struct test_batch b = test_batch_new(100, 50);
        seen_keys keys = seen_keys_of(b.keys, 50);
        seen_status status = seen_file_add_many(s, keys, NULL, &error);
        if (i % 2 == 0) status = seen_file_sync(s, &error);
        assert_int_equal(status, SEEN_IO);
        assert_int_equal(error.os_errno, EIO);
        assert_non_null(strstr(error.text, "sync the "));
        assert_null(strstr(error.text, "open it again"));
        fault_arm(f, 0, 0, false);
        f->only = NULL;
        assert_int_equal(seen_file_add_many(s, keys, NULL, &error), SEEN_IO);
        assert_refused(&error);
        assert_int_equal(seen_file_sync(s, &error), SEEN_IO);
        assert_refused(&error);
        assert_members(seen_file_filter(s), 100);
        assert_int_equal(seen_file_close(s, &error), SEEN_IO);
        assert_refused(&error);
        test_batch_free(&b);
        struct sim *after = sim_after_power_loss(disk, i);
        sim_install(after);
        s = open_file(SEEN_DURABLE, NULL, &outcome, &error);
        assert_true(outcome.recovered);
        assert_members(seen_file_filter(s), 100);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        sim_install(disk);
        sim_free(after);
        seen_os->unlink(FILE_NAME);
    }
}

/* ---- Arguments ---------------------------------------------------------- */

static void assert_field(seen_status status, seen_status expected,
                         const seen_error *error, const char *field)
{
    assert_int_equal(status, expected);
    assert_int_equal(error->status, expected);
    assert_int_equal(error->os_errno, 0);
    assert_string_equal(error->field, field);
    assert_string_not_equal(error->text, seen_strerror(expected));
}

static void errors_name_the_argument(void **state)
{
    (void)state;
    seen_file *s = NULL;
    seen_error e;
    seen_outcome unset = {.size = 0};
    seen_info info = {.size = sizeof info}, bare = {0};
    seen_plan plan = {0};
    seen_filter *f = test_filter(specs[0]);
    seen_file_options o = {.mode = (seen_mode)3};
#define OPEN(path, outcome, status, field)                                     \
    assert_field(seen_file_open(&s, path, &o, outcome, &e), status, &e, field)
    OPEN(FILE_NAME, NULL, SEEN_INVALID, "mode");
    o = (seen_file_options){.flags = 8};
    OPEN(FILE_NAME, NULL, SEEN_INVALID, "flags");
    o = (seen_file_options){.reserved = {[4] = 1}};
    OPEN(FILE_NAME, NULL, SEEN_INVALID, "reserved");
    o = (seen_file_options){.create = &specs[0]};
    OPEN(FILE_NAME, NULL, SEEN_INVALID, "options.create");
    o = (seen_file_options){.mode = SEEN_WRITE};
    OPEN(NULL, NULL, SEEN_INVALID, "path");
    OPEN("", NULL, SEEN_INVALID, "path");
    OPEN(FILE_NAME, &unset, SEEN_INVALID, "outcome");
    o = (seen_file_options){.mode = SEEN_WRITE,
                            .create = &(seen_spec){.dialect = "guava"}};
    OPEN(FILE_NAME, NULL, SEEN_UNSUPPORTED, "options.create");
#undef OPEN
    assert_field(seen_file_save(NULL, f, 0, NULL, &e), SEEN_INVALID, &e,
                 "path");
    assert_field(seen_file_save(FILE_NAME, NULL, 0, NULL, &e), SEEN_INVALID, &e,
                 "f");
    assert_field(seen_file_save(FILE_NAME, f, 2, NULL, &e), SEEN_INVALID, &e,
                 "flags");
    assert_field(seen_file_save(FILE_NAME, f, SEEN_SECRET_APART, NULL, &e),
                 SEEN_INVALID, &e, "flags");
    assert_field(seen_file_save("/d", f, 0, NULL, &e), SEEN_INVALID, &e,
                 "path");
    assert_field(seen_file_write(FILE_NAME, NULL, 1, NULL, &e), SEEN_INVALID,
                 &e, "bytes");
    assert_field(seen_file_look(FILE_NAME, &bare, NULL, &e), SEEN_INVALID, &e,
                 "info");
    assert_field(seen_file_look(FILE_NAME, NULL, &plan, &e), SEEN_INVALID, &e,
                 "plan");
    assert_field(seen_file_look(FILE_NAME, &info, NULL, &e), SEEN_ABSENT, &e,
                 "path");
    info.size = offsetof(seen_info, epoch);
    assert_field(seen_file_save_over(FILE_NAME, f, 0, &info, NULL, &e),
                 SEEN_INVALID, &e, "was");
    assert_field(seen_file_verify(FILE_NAME, &unset, &e), SEEN_INVALID, &e,
                 "outcome");
    assert_field(seen_file_add_many(NULL, seen_keys_of(NULL, 0), NULL, &e),
                 SEEN_INVALID, &e, "file");
    assert_field(seen_file_sync(NULL, &e), SEEN_INVALID, &e, "file");
    assert_int_equal(seen_file_close(NULL, &e), SEEN_OK);
    assert_string_equal(e.text, "");

    uint64_t key = 1;
    seen_keys one = seen_keys_u64(&key, 1);
    s = open_file(SEEN_DURABLE, &specs[0], NULL, NULL);
    assert_field(seen_file_remove_many(s, one, NULL, NULL, &e),
                 SEEN_UNSUPPORTED, &e, "file");
    assert_field(seen_file_advance(s, 1, &e), SEEN_UNSUPPORTED, &e, "file");
    seen_file_close(s, NULL);
    s = open_file(SEEN_READ, NULL, NULL, NULL);
    assert_field(seen_file_add_many(s, one, NULL, &e), SEEN_UNSUPPORTED, &e,
                 "file");
    seen_file_close(s, NULL);
    seen_free(f);
}

/* ---- Layouts ------------------------------------------------------------ */

#define JOURNAL FILE_NAME ".journal-0000000000000001"

/* Every layout reaches the journal as the same hashes. */
static void keys_come_in_any_layout(void **state)
{
    (void)state;
    enum {
        N = 300
    };
    uint64_t ids[N], offsets64[N + 1], low[N];
    uint32_t offsets32[N + 1];
    seen_key pairs[N];
    seen_hash hashes[N];
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = i * UINT64_C(0x9e3779b97f4a7c15);
        pairs[i] = (seen_key){&ids[i], 8};
        offsets32[i] = 8 * i;
        offsets64[i] = 8 * i;
    }
    offsets32[N] = offsets64[N] = 8 * N;
    for (size_t i = 0; i < SPECS; i++) {
        seen_filter *f = test_filter(specs[i]);
        assert_int_equal(seen_hash_many(f, seen_keys_of(pairs, N), hashes),
                         SEEN_OK);
        seen_free(f);
        for (size_t k = 0; k < N; k++)
            low[k] = hashes[k].lo;
        const seen_keys all[] = {
            seen_keys_of(pairs, N),
            seen_keys_rows(ids, N, 8, 8),
            seen_keys_offsets32(ids, sizeof ids, offsets32, N),
            seen_keys_offsets64(ids, sizeof ids, offsets64, N),
            seen_keys_hashes(hashes, N),
            seen_keys_hashes64(low, N),
        };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            bool before[N], there[N];
            size_t done;
            seen_error e;
            seen_outcome outcome = {.size = sizeof outcome};
            seen_file *s = open_file(SEEN_DURABLE, &specs[i], NULL, NULL);
            seen_status status =
                seen_file_visit_many(s, all[k], before, &done, &e);
            if (all[k].layout == SEEN_HASHES64 && status == SEEN_INVALID) {
                assert_string_equal(e.field, "keys");
                seen_file_close(s, NULL);
                seen_os->unlink(FILE_NAME);
                continue; /* a filter of 128 hash bits */
            }
            assert_int_equal(status, SEEN_OK);
            assert_int_equal(done, N);
            assert_false(before[0]);
            struct sim *after = sim_after_kill(disk);
            sim_install(after);
            seen_file *r = open_file(SEEN_READ, NULL, &outcome, NULL);
            assert_int_equal(outcome.recovered_keys, N);
            assert_int_equal(
                seen_file_maybe_many(r, seen_keys_of(pairs, N), there),
                SEEN_OK);
            for (size_t at = 0; at < N; at++)
                assert_true(there[at]);
            seen_file_close(r, NULL);
            sim_install(disk);
            sim_free(after);
            seen_file_close(s, NULL);
            seen_os->unlink(FILE_NAME);
        }
    }
}

/* Also where the keys before the bad one would make a frame. */
static void a_bad_batch_reaches_nothing(void **state)
{
    (void)state;
    enum {
        MANY = 65537
    };
    static seen_key many[MANY];
    static bool answers[MANY];
    for (size_t i = 0; i < MANY - 1; i++)
        many[i] = (seen_key){&many, 1 + i % 8};
    many[MANY - 1] = (seen_key){NULL, 5};
    uint64_t ids[4] = {1, 2, 3, 4};
    uint32_t backwards[] = {0, 8, 4, 16}, beyond[] = {0, 8, 16, 40};
    seen_keys future = seen_keys_u64(ids, 3), spare = seen_keys_u64(ids, 3);
    future.layout = (seen_layout)99;
    spare.reserved[1] = 1;
    const seen_keys bad[] = {
        seen_keys_of(NULL, 3),
        seen_keys_of(&(seen_key){NULL, 5}, 1),
        seen_keys_of(many, MANY),
        seen_keys_rows(ids, 3, 8, 0),
        seen_keys_offsets32(ids, sizeof ids, backwards, 3),
        seen_keys_offsets32(ids, sizeof ids, beyond, 3),
        seen_keys_u64(ids, SEEN_KEYS_MAX + 1),
        future,
        spare,
    };
    seen_file *s = open_file(SEEN_DURABLE, &specs[3], NULL, NULL);
    seen_file_sync(s, NULL);
    size_t len, now;
    const uint8_t *is = sim_get(disk, JOURNAL, &len);
    uint8_t *was = malloc(len);
    assert_non_null(was);
    memcpy(was, is, len);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t done = 7;
        seen_error e;
        memset(answers, false, sizeof answers);
        assert_field(seen_file_add_many(s, bad[i], &done, &e), SEEN_INVALID, &e,
                     "keys");
        assert_int_equal(done, 0);
        assert_field(seen_file_visit_many(s, bad[i], answers, &done, &e),
                     SEEN_INVALID, &e, "keys");
        assert_int_equal(answers[0], bad[i].n <= MANY); /* maybe */
        assert_field(seen_file_remove_many(s, bad[i], answers, &done, &e),
                     SEEN_INVALID, &e, "keys");
        assert_int_equal(seen_file_maybe_many(s, bad[i], answers),
                         SEEN_INVALID);
    }
    is = sim_get(disk, JOURNAL, &now);
    assert_int_equal(now, len);
    assert_memory_equal(is, was, len);
    free(was);
    seen_info info = {.size = sizeof info};
    seen_measure(seen_file_filter(s), &info);
    assert_int_equal(info.items, 0);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
}

int main(void)
{
#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, new_disk, free_disk)
    const struct CMUnitTest tests[] = {
        ON_DISK(errors_name_the_argument),
        ON_DISK(keys_come_in_any_layout),
        ON_DISK(a_bad_batch_reaches_nothing),
        ON_DISK(what_was_added_is_there_after_closing),
        ON_DISK(readers_know_what_was_acknowledged),
        ON_DISK(keys_of_the_dead_are_counted),
        ON_DISK(the_time_takes_no_room_until_it_moves),
        ON_DISK(windows_keep_their_time),
        ON_DISK(there_is_one_writer),
        ON_DISK(removal_is_journaled_too),
        ON_DISK(visits_and_adds_are_replayed_as_what_they_were),
        ON_DISK(a_full_filter_says_so_and_recovers_as_it_was),
        ON_DISK(secrets_apart_are_asked_for),
        ON_DISK(a_saved_filter_becomes_a_journaled_file),
        ON_DISK(damage_is_found_and_named),
        ON_DISK(damaged_pages_can_be_asked_on_request),
        ON_DISK(damage_beside_a_journal_is_found),
        ON_DISK(changes_do_not_hide_damage),
        ON_DISK(a_missing_journal_is_noticed),
        ON_DISK(a_file_that_changed_is_not_replaced),
        ON_DISK(missing_files_are_not_made_up),
        ON_DISK(a_file_made_meanwhile_is_not_replaced),
        ON_DISK(a_late_error_says_that_the_file_is_there),
        ON_DISK(after_a_failed_sync_the_file_is_read_only),
    };
    test_announce("file_store");
    return cmocka_run_group_tests_name("file_store", tests, NULL, NULL);
}
