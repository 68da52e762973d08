/*
 * prop_concurrent.c - filters made with SEEN_CONCURRENT under real threads.
 * Nothing that was added is lost, nothing appears that nobody added: after the
 * threads are done the filter equals one that a single thread filled. A million
 * adds and more, times SEEN_TEST_SCALE. Clean under the thread sanitizer.
 */
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */

#include "seen.h"

#include "helpers/keys.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS_MAX 4
#define PIECE       500

static const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};

/* What one thread does. Threads do not assert, they count complaints. */
struct job {
    seen_filter *f;
    uint64_t first, n; /* keys of its own */
    uint64_t stream;   /* of random numbers */
    bool *told;        /* what its visits were told */
    uint64_t complaints;
    pthread_barrier_t *barrier;
    const bool *stop;
    pthread_t thread;
};

static void start(struct job *jobs, int n, void *(*work)(void *))
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) != 0) abort();
}

static void finish(struct job *jobs, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(jobs[i].thread, NULL);
    for (int i = 0; i < n; i++)
        assert_int_equal(jobs[i].complaints, 0);
}

static seen_spec spec_of(seen_kind kind, uint64_t items, double fpp)
{
    return (seen_spec){
        .items = items, .fpp = fpp, .kind = kind, .flags = SEEN_CONCURRENT};
}

/* ---- Adding ------------------------------------------------------------- */

/* All four ways, in pieces; after each piece its keys must be there. */
static void *add_all(void *arg)
{
    struct job *j = arg;
    struct test_rng r = test_rng(j->stream);
    struct test_batch b = test_batch_new(0, PIECE);
    for (uint64_t done = 0; done < j->n; done += b.n) {
        uint64_t left = j->n - done;
        test_batch_fill(&b, j->first + done,
                        (size_t)(left < PIECE ? left : PIECE));
        uint64_t way = test_below(&r, 4);
        if (way == 0)
            j->complaints +=
                seen_add_many(j->f, seen_keys_of(b.keys, b.n), NULL) != 0;
        if (way == 1)
            j->complaints += seen_visit_many(j->f, seen_keys_of(b.keys, b.n),
                                             b.answers, NULL) != 0;
        for (size_t i = 0; way >= 2 && i < b.n; i++) {
            bool before;
            j->complaints +=
                (way == 2 ? seen_add(j->f, b.keys[i].data, 8)
                          : seen_visit(j->f, b.keys[i].data, 8, &before)) != 0;
        }
        seen_maybe_many(j->f, seen_keys_of(b.keys, b.n), b.answers);
        for (size_t i = 0; i < b.n; i++)
            j->complaints += !b.answers[i];
    }
    test_batch_free(&b);
    return NULL;
}

static uint64_t added; /* by all threads so far */

/* Thread i adds keys i * stride .. i * stride + n - 1. */
static void check_adding(seen_spec spec, int threads, uint64_t n,
                         uint64_t stride)
{
    seen_filter *f = test_filter(spec), *expected = test_filter(spec);
    struct job jobs[THREADS_MAX] = {0};
    for (int i = 0; i < threads; i++)
        jobs[i] = (struct job){
            .f = f, .first = i * stride, .n = n, .stream = 100 + i};
    start(jobs, threads, add_all);
    for (int i = 0; i < threads; i++)
        test_add_members(expected, i * stride, n);
    finish(jobs, threads);
    assert_true(seen_equal(f, expected));
    added += threads * n;
    uint64_t last = (threads - 1) * stride + n;
    assert_int_equal(test_count_maybe(f, 0, last), last);
    seen_free(f);
    seen_free(expected);
}

static void large_filters_lose_nothing(void **state)
{
    (void)state;
    const uint64_t total = 250000;
    for (uint64_t round = 0; round < test_scale(); round++)
        for (size_t k = 0; k < 2; k++)
            for (int threads = 2; threads <= THREADS_MAX; threads += 2) {
                uint64_t n = total / threads;
                seen_spec spec = spec_of(kinds[k], total, 0.001);
                check_adding(spec, threads, n, n);     /* disjoint */
                check_adding(spec, threads, n, n / 2); /* overlapping */
            }
}

/* A filter of a few lines, so that all threads are in the same words. */
static void crowded_filters_lose_nothing(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 30, 300, 3000};
    for (uint64_t round = 0; round < 10 * test_scale(); round++)
        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                seen_spec spec = spec_of(kinds[k], sizes[i] * 2, 0.01);
                check_adding(spec, 2, sizes[i], sizes[i]);
                check_adding(spec, 4, sizes[i], 0); /* all the same keys */
            }
}

static void keyed_and_wide_filters_lose_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        seen_spec spec = spec_of(kinds[k], 50000, 1e-13);
        check_adding(spec, 2, 25000, 25000);
        spec.flags |= SEEN_KEYED;
        spec.secret = test_secret;
        check_adding(spec, 4, 12500, 10000);
        /* Few bits a line: the kernels' other shapes. */
        spec = spec_of(kinds[k], 50000, 0.2);
        check_adding(spec, 2, 25000, 25000);
    }
    test_tried(added, "adds");
}

/* ---- Visiting ----------------------------------------------------------- */

/* Everybody visits the same keys in the same order, and waits for the others
 * every few keys, so that visits of one key fall together. */
static void *visit_all(void *arg)
{
    struct job *j = arg;
    for (uint64_t i = 0; i < j->n; i++) {
        if (i % 20 == 0) pthread_barrier_wait(j->barrier);
        uint64_t key = test_key(j->first + i);
        j->complaints += seen_visit_u64(j->f, key, &j->told[i]) != 0;
    }
    return NULL;
}

static void check_visits(seen_kind kind, int threads, uint64_t first,
                         uint64_t n)
{
    /* So fine that a stranger is never "seen" by chance. */
    seen_filter *f = test_filter(spec_of(kind, n, 1e-10));
    struct job jobs[THREADS_MAX] = {0};
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, threads), 0);
    for (int i = 0; i < threads; i++)
        jobs[i] = (struct job){.f = f,
                               .first = first,
                               .n = n,
                               .told = calloc(n, sizeof(bool)),
                               .barrier = &barrier};
    start(jobs, threads, visit_all);
    finish(jobs, threads);
    pthread_barrier_destroy(&barrier);

    for (uint64_t i = 0; i < n; i++) {
        int fresh = 0;
        for (int t = 0; t < threads; t++)
            fresh += !jobs[t].told[i];
        assert_true(fresh >= 1); /* never "seen" to all of them */
    }
    assert_int_equal(test_count_maybe(f, first, n), n);
    for (int i = 0; i < threads; i++)
        free(jobs[i].told);
    seen_free(f);
}

static void a_new_key_is_new_to_somebody(void **state)
{
    (void)state;
    const uint64_t n = 50000;
    for (uint64_t round = 0; round < test_scale(); round++)
        for (size_t k = 0; k < 2; k++) {
            check_visits(kinds[k], 2, round * n, n);
            check_visits(kinds[k], 4, round * n, n / 2);
        }
}

/* ---- Everything that is allowed beside adds ----------------------------- */

#define BASE 20000 /* keys that are there before the threads start */

static void *read_all(void *arg)
{
    struct job *j = arg;
    struct test_rng r = test_rng(j->stream);
    uint64_t set = 0;
    do {
        for (int i = 0; i < 2000; i++)
            j->complaints +=
                !seen_maybe_u64(j->f, test_key(test_below(&r, BASE)));
        seen_info info = {.size = sizeof info};
        seen_measure(j->f, &info);
        j->complaints += info.bits_set < set; /* bits never go away */
        set = info.bits_set;
        j->complaints += !(info.fpp_now >= 0 && info.fpp_now <= 1);

        seen_filter *copy = NULL;
        if (seen_copy(&copy, j->f, NULL) != SEEN_OK) {
            j->complaints++;
            continue;
        }
        j->complaints += test_count_maybe(copy, 0, BASE) != BASE;
        (void)seen_equal(j->f, copy); /* either answer is right */
        seen_free(copy);
    } while (!__atomic_load_n(j->stop, __ATOMIC_ACQUIRE));
    return NULL;
}

static void check_readers(seen_kind kind)
{
    const uint64_t n = 100000;
    seen_spec spec = spec_of(kind, 300000, 0.01);
    seen_filter *f = test_filter(spec), *expected = test_filter(spec);
    test_add_members(f, 0, BASE);
    bool stop = false;
    struct job writers[2] = {0}, readers[2] = {0};
    for (int i = 0; i < 2; i++) {
        writers[i] = (struct job){
            .f = f, .first = BASE + i * n, .n = n, .stream = 120 + i};
        readers[i] = (struct job){.f = f, .stream = 130 + i, .stop = &stop};
    }
    start(readers, 2, read_all);
    start(writers, 2, add_all);
    finish(writers, 2);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    finish(readers, 2);
    test_add_members(expected, 0, BASE + 2 * n);
    assert_true(seen_equal(f, expected));
    seen_free(f);
    seen_free(expected);
}

static void readers_are_never_told_never_about_old_keys(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < test_scale(); round++)
        for (size_t k = 0; k < 2; k++)
            check_readers(kinds[k]);
}

/* ---- Bytes -------------------------------------------------------------- */

/* Save and copy while others add: bytes that load, with every key that was
 * there before. */
static void check_saving(seen_kind kind)
{
    const uint64_t total = 100000, old = 10000;
    seen_filter *f = test_filter(spec_of(kind, total, 0.01));
    test_add_members(f, 0, old);
    size_t len = 0;
    assert_int_equal(seen_save(f, 0, NULL, 0, &len), SEEN_SHORT);
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    struct job jobs[2] = {{.f = f, .first = old, .n = 45000, .stream = 180},
                          {.f = f, .first = 55000, .n = 45000, .stream = 181}};
    start(jobs, 2, add_all);
    for (int i = 0; i < 20; i++) {
        seen_filter *saved = NULL, *copy = NULL;
        assert_int_equal(seen_save(f, 0, bytes, len, &len), SEEN_OK);
        assert_int_equal(seen_load(&saved, bytes, len, NULL, NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_copy(&copy, f, NULL), SEEN_OK);
        assert_int_equal(test_count_maybe(saved, 0, old), old);
        assert_int_equal(test_count_maybe(copy, 0, old), old);
        seen_free(saved);
        seen_free(copy);
        /* Pieces of two moments load only if nothing has come in between. */
        size_t half = len / 2;
        assert_int_equal(seen_save_range(f, 0, 0, bytes, half), SEEN_OK);
        assert_int_equal(seen_save_range(f, 0, half, bytes + half, len - half),
                         SEEN_OK);
        saved = NULL;
        seen_status status = seen_load(&saved, bytes, len, NULL, NULL, NULL);
        assert_true(status == SEEN_OK || status == SEEN_CORRUPT);
        if (saved) assert_int_equal(test_count_maybe(saved, 0, old), old);
        seen_free(saved);
    }
    finish(jobs, 2);
    free(bytes);
    seen_free(f);
}

static void a_filter_can_be_saved_while_keys_come_in(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < test_scale(); round++)
        for (size_t k = 0; k < 2; k++)
            check_saving(kinds[k]);
}

/* The first filters of a process choose the kernel at the same moment. */
static void *make_and_use(void *arg)
{
    struct job *j = arg;
    pthread_barrier_wait(j->barrier);
    seen_filter *f = NULL;
    const seen_spec spec = {.items = 1000, .fpp = 0.01};
    if (seen_new(&f, &spec, NULL) != SEEN_OK) {
        j->complaints++;
        return NULL;
    }
    for (uint64_t i = 0; i < 1000; i++) {
        j->complaints += seen_add_u64(f, test_key(i)) != SEEN_OK;
        j->complaints += !seen_maybe_u64(f, test_key(i));
    }
    seen_free(f);
    return NULL;
}

static void filters_can_be_made_by_many_threads_at_once(void **state)
{
    (void)state;
    struct job jobs[THREADS_MAX] = {0};
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS_MAX), 0);
    for (int i = 0; i < THREADS_MAX; i++)
        jobs[i].barrier = &barrier;
    start(jobs, THREADS_MAX, make_and_use);
    finish(jobs, THREADS_MAX);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_can_be_made_by_many_threads_at_once),
        cmocka_unit_test(large_filters_lose_nothing),
        cmocka_unit_test(crowded_filters_lose_nothing),
        cmocka_unit_test(keyed_and_wide_filters_lose_nothing),
        cmocka_unit_test(a_new_key_is_new_to_somebody),
        cmocka_unit_test(readers_are_never_told_never_about_old_keys),
        cmocka_unit_test(a_filter_can_be_saved_while_keys_come_in),
    };
    test_announce("concurrent");
    return cmocka_run_group_tests_name("concurrent", tests, NULL, NULL);
}
