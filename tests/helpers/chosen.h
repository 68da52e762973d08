/* chosen.h - fresh and take as most tests like them: the items that come out are
 * moved to the front of the caller's array. */
#ifndef SEEN_TEST_CHOSEN_H
#define SEEN_TEST_CHOSEN_H

#include "seen_users.h"

#include <assert.h>

#define CHOSEN_MAX 65536

/* Indices rise, so nothing is overwritten before it is moved. */
static inline void test_move(seen_key *items, const size_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert(at[i] >= i && (i == 0 || at[i] > at[i - 1]));
        items[i] = items[at[i]];
    }
}

static inline size_t *test_indices(void)
{
    static _Thread_local size_t at[CHOSEN_MAX];
    return at;
}

static inline seen_status test_users_fresh(seen_users *u, seen_key user,
                                           uint64_t now, seen_key *items,
                                           size_t n, size_t *fresh,
                                           seen_error *error)
{
    size_t *at = test_indices();
    assert(n <= CHOSEN_MAX);
    seen_status status = seen_users_fresh(u, user, now, seen_keys_of(items, n),
                                          at, fresh, error);
    if (status == SEEN_OK) test_move(items, at, *fresh);
    return status;
}

static inline seen_status test_users_take(seen_users *u, seen_key user,
                                          uint64_t now, seen_key *items,
                                          size_t n, size_t count, size_t *taken,
                                          seen_error *error)
{
    size_t *at = test_indices();
    assert(n <= CHOSEN_MAX);
    seen_status status = seen_users_take(u, user, now, seen_keys_of(items, n),
                                         count, at, taken, error);
    if (status == SEEN_OK) test_move(items, at, *taken);
    return status;
}

static inline seen_status test_exposure_fresh(seen_exposure *x,
                                              seen_record record, uint64_t now,
                                              seen_key *items, size_t n,
                                              size_t *fresh)
{
    size_t *at = test_indices();
    assert(n <= CHOSEN_MAX);
    seen_status status =
        seen_exposure_fresh(x, record, now, seen_keys_of(items, n), at, fresh);
    if (status == SEEN_OK) test_move(items, at, *fresh);
    return status;
}

static inline seen_status test_exposure_take(seen_exposure *x,
                                             seen_record record, uint64_t now,
                                             seen_key *items, size_t n,
                                             size_t count, size_t *taken,
                                             seen_record *result)
{
    size_t *at = test_indices();
    assert(n <= CHOSEN_MAX);
    seen_status status = seen_exposure_take(
        x, record, now, seen_keys_of(items, n), count, at, taken, result);
    if (status == SEEN_OK) test_move(items, at, *taken);
    return status;
}

#endif
