/* test_error_threads.c - errors belong to the caller: threads that fail at once
 * read their own. */
#include "seen.h"

#include "helpers/keys.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 8
#define ROUNDS  2000

struct failing {
    int number;
    int wrong; /* sentences that were not this thread's */
};

/* Each thread has a rate and bytes of its own, which its sentences must name. */
static void *fail_all_the_time(void *arg)
{
    struct failing *t = arg;
    char rate[64], hashes[64];
    double fpp = 2 + t->number;
    uint8_t bytes[7] = {9, 0, 0, 0, 0, 0, 0};
    bytes[0] = (uint8_t)(100 + t->number);
    snprintf(rate, sizeof rate, "fpp %g: expected above 0 and below 1", fpp);
    snprintf(hashes, sizeof hashes, "strategy %d at offset 0", 100 + t->number);
    for (int i = 0; i < ROUNDS; i++) {
        seen_error e, f;
        seen_plan plan = {.size = sizeof plan};
        seen_filter *none = NULL;
        seen_spec spec = {.items = 10, .fpp = fpp};
        seen_plan_for(&spec, &plan, &e);
        seen_import(&none, "guava", NULL, bytes, sizeof bytes, &f);
        t->wrong += e.status != SEEN_INVALID || strcmp(e.field, "fpp") != 0 ||
                    strcmp(e.text, rate) != 0;
        t->wrong += f.status != SEEN_CORRUPT || strcmp(f.field, "buf") != 0 ||
                    strncmp(f.text, hashes, strlen(hashes)) != 0;
        seen_new(&none, &spec, &f);
        t->wrong += memcmp(&e, &f, sizeof e) != 0 || none != NULL;
    }
    return NULL;
}

static void threads_read_their_own_errors(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct failing failing[THREADS];
    for (int i = 0; i < THREADS; i++) {
        failing[i] = (struct failing){.number = i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, fail_all_the_time, &failing[i]),
            0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(failing[i].wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_read_their_own_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
