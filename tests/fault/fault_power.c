/*
 * fault_power.c - the power fails at every system call of a writer's life.
 *
 * A writer creates a filter file, adds and removes keys, syncs, closes, opens
 * again. Before each of its system calls, several states are drawn that a disk
 * may be in after a loss of power there (helpers/sim_os.h). Each is opened as
 * it would be after the reboot: no acknowledged key may be missing, none whose
 * removal was acknowledged may be back, nothing torn may be accepted, and the file
 * must go on working.
 */
#include "seen_file.h"

#include "helpers/keys.h"
#include "helpers/sim_os.h"
#include "store/os.h"

#include <stdlib.h>
#include <string.h>

#define FILE_NAME "/d/f.seen"
#define BATCH     64

static struct {
    struct sim *disk;
    struct test_rng rng;
    const seen_spec *spec;
    seen_mode mode;
    uint64_t draws; /* states to draw at each call */

    bool made;      /* the file has been created, as far as anybody was told */
    uint64_t acked; /* keys 0 .. acked-1 must be there */
    uint64_t begun; /* keys up to here may be there */
    uint64_t gone;  /* of them, keys 0 .. gone-1 may have been removed */
    uint64_t removed; /* and keys 0 .. removed-1 must not be there any more */
    uint64_t added;   /* strangers that may have been added after the reboot */

    uint64_t states, recovered, torn, twice, stayed_away;
} run;

/* Kinds whose keys leave again. They count, and what is removed is gone: exactly
 * so in a bitmap; in a cuckoo filter that takes one stranger in 1e8 for a key of
 * its few hundred, not otherwise within the life of this test. */
static bool removes(void)
{
    return run.spec->kind == SEEN_CUCKOO || run.spec->kind == SEEN_BITMAP;
}

static struct test_batch keys(uint64_t first, uint64_t n)
{
    return test_batch_for(run.spec->kind, first, (size_t)n);
}

static uint64_t count_there(const seen_filter *f, uint64_t first, uint64_t n)
{
    struct test_batch b = keys(first, n);
    uint64_t count = 0;
    seen_maybe_many(f, seen_keys_of(b.keys, b.n), b.answers);
    for (size_t i = 0; i < b.n; i++)
        count += b.answers[i];
    test_batch_free(&b);
    return count;
}

static void explain(seen_status status, const seen_error *error)
{
    if (status == SEEN_OK) return;
    fail_msg("%s: %s; kind %s, %llu acknowledged", seen_strerror(status),
             error->text, seen_kind_name(run.spec->kind),
             (unsigned long long)run.acked);
}

static void assert_nothing_lost(const seen_filter *f)
{
    uint64_t first = run.gone, n = run.acked > first ? run.acked - first : 0;
    uint64_t there = count_there(f, first, n);
    if (there != n)
        fail_msg("an acknowledged key is lost: %llu of %llu are there",
                 (unsigned long long)there, (unsigned long long)n);
    /* Not more than was ever written. Of filters that bits are set in, that is an
     * estimate; those that remove keys count them. */
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    assert_true(info.items <= run.begun + 2 * BATCH);
    if (!removes()) return;
    assert_true(info.items <= run.begun - run.removed + run.added);
    assert_true(info.items >= n);
}

static void assert_nothing_is_back(const seen_filter *f)
{
    if (!removes()) return;
    uint64_t back = count_there(f, 0, run.removed);
    if (back)
        fail_msg("%llu of %llu removed keys are back; kind %s",
                 (unsigned long long)back, (unsigned long long)run.removed,
                 seen_kind_name(run.spec->kind));
    run.stayed_away += run.removed;
}

static void assert_as_acknowledged(const seen_filter *f)
{
    assert_nothing_is_back(f);
    assert_nothing_lost(f);
}

static void use_what_is_left(void);

/* The power fails again while the first loss is being made good. */
static void cut_again(void *ctx, const char *call)
{
    struct sim *first = ctx;
    (void)call;
    if (test_below(&run.rng, 20)) return;
    struct sim *after = sim_after_power_loss(first, test_next(&run.rng));
    sim_install(after);
    use_what_is_left();
    sim_free(after);
    sim_install(first);
    run.twice++;
}

/* After the reboot: look, go on writing, look again. */
static void use_what_is_left(void)
{
    seen_outcome outcome = {.size = sizeof outcome};
    seen_error error = {0};
    seen_file *s = NULL;
    seen_file_options read = {.mode = SEEN_READ},
                      write = {.mode = test_below(&run.rng, 2) ? SEEN_DURABLE
                                                               : SEEN_WRITE};
    seen_status status = seen_file_open(&s, FILE_NAME, &read, &outcome, &error);
    if (status == SEEN_ABSENT && !run.made) return;
    explain(status, &error);
    assert_as_acknowledged(seen_file_filter(s));
    seen_file_close(s, NULL);
    explain(seen_file_verify(FILE_NAME, &outcome, &error), &error);

    explain(seen_file_open(&s, FILE_NAME, &write, &outcome, &error), &error);
    run.recovered += outcome.recovered_keys;
    run.torn += outcome.torn_bytes > 0;
    assert_as_acknowledged(seen_file_filter(s));
    struct test_batch b = keys(TEST_STRANGERS, BATCH);
    run.added += BATCH;
    assert_int_equal(
        seen_file_add_many(s, seen_keys_of(b.keys, BATCH), NULL, NULL),
        SEEN_OK);
    assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
    explain(seen_file_open(&s, FILE_NAME, &read, &outcome, &error), &error);
    assert_false(outcome.recovered);
    assert_as_acknowledged(seen_file_filter(s));
    seen_maybe_many(seen_file_filter(s), seen_keys_of(b.keys, BATCH),
                    b.answers);
    for (size_t i = 0; i < BATCH; i++)
        assert_true(b.answers[i]);
    seen_file_close(s, NULL);
    test_batch_free(&b);
    explain(seen_file_verify(FILE_NAME, &outcome, &error), &error);
    run.added -= BATCH; /* the disk that has them is thrown away */
}

static void cut_power(void *ctx, const char *call)
{
    (void)ctx;
    (void)call;
    for (uint64_t i = 0; i < run.draws; i++) {
        struct sim *after = sim_after_power_loss(run.disk, test_next(&run.rng));
        sim_install(after);
        if (test_below(&run.rng, 4) == 0) sim_on_call(after, cut_again, after);
        use_what_is_left();
        assert_int_equal(sim_open_files(after) + sim_mappings(after), 0);
        sim_free(after);
        sim_install(run.disk);
        run.states++;
    }
}

/* Durable: acknowledged when the call returns. Otherwise: after a sync. */
static void add(seen_file *s, uint64_t n)
{
    struct test_batch b = keys(run.begun, n);
    run.begun += n;
    if (run.spec->kind == SEEN_WINDOW) /* nothing leaves: all must be there */
        assert_int_equal(seen_file_advance(s, run.begun, NULL), SEEN_OK);
    assert_int_equal(seen_file_add_many(s, seen_keys_of(b.keys, n), NULL, NULL),
                     SEEN_OK);
    if (run.mode == SEEN_DURABLE) run.acked = run.begun;
    test_batch_free(&b);
}

static void take_away(seen_file *s, uint64_t n)
{
    struct test_batch b = keys(run.gone, n);
    run.gone += n;
    assert_int_equal(seen_file_remove_many(s, seen_keys_of(b.keys, b.n),
                                           b.answers, NULL, NULL),
                     SEEN_OK);
    for (size_t i = 0; i < b.n; i++)
        assert_true(b.answers[i]);
    if (run.mode == SEEN_DURABLE) run.removed = run.gone;
    test_batch_free(&b);
}

/* What was done so far stays done. */
static void acknowledge(void)
{
    run.acked = run.begun;
    run.removed = run.gone;
}

static void sync(seen_file *s)
{
    assert_int_equal(seen_file_sync(s, NULL), SEEN_OK);
    acknowledge();
}

static void live(void)
{
    seen_file_options o = {.mode = run.mode, .create = run.spec};
    for (int life = 0; life < 3; life++) {
        seen_file *s;
        seen_outcome outcome = {.size = sizeof outcome};
        seen_error error = {0};
        explain(seen_file_open(&s, FILE_NAME, &o, &outcome, &error), &error);
        run.made = true;
        add(s, BATCH);
        add(s, 1);
        if (removes()) take_away(s, 10);
        sync(s);
        add(s, 3 * BATCH);
        if (life == 1) sync(s);
        add(s, 7);
        if (removes()) take_away(s, 5);
        assert_int_equal(seen_file_close(s, NULL), SEEN_OK);
        acknowledge();
    }
}

static void run_with(const seen_spec *spec, seen_mode mode, uint64_t draws,
                     uint64_t seed)
{
    run.disk = sim_new(seed);
    run.rng = test_rng(seed);
    run.spec = spec;
    run.mode = mode;
    run.draws = draws;
    run.made = false;
    run.acked = run.begun = run.gone = run.removed = run.added = 0;
    sim_mkdir(run.disk, "/d");
    sim_install(run.disk);
    sim_on_call(run.disk, cut_power, NULL);
    live();
    cut_power(NULL, "end");
    sim_on_call(run.disk, NULL, NULL);
    assert_int_equal(sim_open_files(run.disk) + sim_mappings(run.disk), 0);
    sim_uninstall();
    sim_free(run.disk);
}

static const seen_spec specs[] = {
    {.kind = SEEN_BLOOM, .items = 2000, .fpp = 0.001},
    {.kind = SEEN_BLOCKED, .items = 2000, .fpp = 0.001},
    {.kind = SEEN_BLOCKED, .items = 80000, .fpp = 0.0001},
    {.kind = SEEN_CUCKOO, .items = 2000, .fpp = 1e-8},
    {.kind = SEEN_BITMAP, .bits = 8000},
    {.kind = SEEN_SET},
    {.kind = SEEN_WINDOW, .items = 2000, .fpp = 0.001, .window_ms = 100000},
    {.kind = SEEN_SCALABLE, .items = 100, .fpp = 0.001},
};

#define SPECS (sizeof specs / sizeof *specs)

/* One seed in the quick run, about 8000 states; 40,000 and more with the scale of
 * --full. */
static void no_power_cut_loses_anything(void **state)
{
    (void)state;
    uint64_t wanted = 2000 * test_scale();
    for (uint64_t seed = test_seed(); run.states < wanted; seed++)
        for (size_t i = 0; i < SPECS; i++)
            for (int mode = SEEN_WRITE; mode <= SEEN_DURABLE; mode++)
                run_with(&specs[i], mode, 2, seed);
    test_tried(run.states, "states");
    print_message("%llu of them twice; %llu keys recovered, %llu torn tails\n",
                  (unsigned long long)run.twice,
                  (unsigned long long)run.recovered,
                  (unsigned long long)run.torn);
    test_tried(run.stayed_away, "removed keys");
    assert_true(run.recovered > 0 && run.torn > 0 && run.stayed_away > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_power_cut_loses_anything),
    };
    test_announce("fault_power");
    return cmocka_run_group_tests_name("fault_power", tests, NULL, NULL);
}
