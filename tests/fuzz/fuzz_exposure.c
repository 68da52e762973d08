/*
 * fuzz_exposure.c - libFuzzer against the readers of exposure records.
 *
 * The input is a policy, a time and two records of one user. Any bytes: each
 * call gives an error or works, and what it returns can be read again. What
 * seen_exposure_validate() lets through works in every call, keeps its promises
 * and comes out valid. Random bytes rarely have the check of the secret, or as
 * many fingerprints as they say and in order, so each record is tried three
 * times: as it is, with the check made right, and with the fingerprints of its
 * generations made right.
 */
#include "exposure_input.h"

#include "base/base.h"
#include "exposure/record.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define ASKED 40
#define FEW   10
#define TAKEN 3

static void must(bool fact)
{
    if (!fact) abort();
}

/* ---- Memory ------------------------------------------------------------- */

/* Bytes of a record become numbers, eight bytes each; that some rooms hold, at
 * most half as large again as what is in them. */
#define NUMBERS 8

static size_t given; /* bytes of the records */

static seen_status within(seen_status status)
{
    fuzz_memory_within(NUMBERS * (uint64_t)given);
    return status;
}

/* In the place of each function: what it takes is in proportion to records. */
#define MEASURED(call) (fuzz_memory_begin(), within(call))

#define seen_exposure_maybe_many(...)                                          \
    MEASURED(seen_exposure_maybe_many(__VA_ARGS__))
#define seen_exposure_fresh(...)   MEASURED(seen_exposure_fresh(__VA_ARGS__))
#define seen_exposure_mark(...)    MEASURED(seen_exposure_mark(__VA_ARGS__))
#define seen_exposure_take(...)    MEASURED(seen_exposure_take(__VA_ARGS__))
#define seen_exposure_forget(...)  MEASURED(seen_exposure_forget(__VA_ARGS__))
#define seen_exposure_expire(...)  MEASURED(seen_exposure_expire(__VA_ARGS__))
#define seen_exposure_merge(...)   MEASURED(seen_exposure_merge(__VA_ARGS__))
#define seen_exposure_info_of(...) MEASURED(seen_exposure_info_of(__VA_ARGS__))
#define seen_exposure_validate(...)                                            \
    MEASURED(seen_exposure_validate(__VA_ARGS__))

#include "helpers/chosen.h" /* measured, too */

/* ---- The user ----------------------------------------------------------- */

static struct {
    const seen_policy *policy;
    seen_exposure *x;
    uint64_t now;
    struct items items;
} user;

static void open_user(const uint8_t *data)
{
    user.policy = &policies[data[0] % POLICIES];
    user.now = seen_get_le64(data + 1);
    if (!user.items.key[0].data) make_items(&user.items);
    must(seen_exposure_new(&user.x, user.policy, secret, NULL, NULL) ==
         SEEN_OK);
}

/* Are so many items there after they have been marked? */
static bool has_room(size_t n)
{
    return user.policy->items * (user.policy->generations - 1) >= n;
}

/* ---- What comes out ----------------------------------------------------- */

/* Exactly as long as it is, so that one byte too many is seen. */
static seen_record copy_of(seen_record r)
{
    uint8_t *bytes = malloc(r.len ? r.len : 1);
    must(bytes != NULL);
    if (r.len) memcpy(bytes, r.data, r.len);
    return (seen_record){bytes, r.len};
}

static void drop(seen_record r)
{
    free((void *)r.data);
}

static bool same(seen_record a, seen_record b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* An error, or a record that is as good as the one that went in: calls carry
 * generations over that they do not look into. The caller drops it. */
static seen_record check(seen_status status, seen_record result, bool valid)
{
    must(status == SEEN_OK || (status == SEEN_CORRUPT && !valid));
    if (status != SEEN_OK) return copy_of((seen_record){0});
    seen_record kept = copy_of(result), again;
    must(!valid || seen_exposure_validate(kept) == SEEN_OK);
    must(seen_exposure_expire(user.x, kept, user.now, &again) == SEEN_OK);
    must(same(kept, again));
    return kept;
}

/* ---- The calls ---------------------------------------------------------- */

/* Many are looked up in another way than few. */
static void ask(seen_record r, bool valid, bool answers[ASKED])
{
    must(seen_exposure_maybe_many(user.x, r, user.now,
                                  seen_keys_of(user.items.key, ASKED),
                                  answers) == SEEN_OK);
    for (size_t i = 0; valid && i < ASKED; i += FEW) {
        bool few[FEW];
        must(seen_exposure_maybe_many(user.x, r, user.now,
                                      seen_keys_of(user.items.key + i, FEW),
                                      few) == SEEN_OK);
        must(memcmp(few, answers + i, sizeof few) == 0);
    }
}

/* Which item is it? */
static size_t item_number(seen_key item)
{
    return (size_t)seen_get_le64(item.data);
}

/* Fresh ones in their order, and none that has been shown. */
static void must_be_fresh(const seen_key *items, size_t n,
                          const bool answers[ASKED])
{
    for (size_t i = 0; i < n; i++) {
        must(!answers[item_number(items[i])]);
        must(i == 0 || item_number(items[i]) > item_number(items[i - 1]));
    }
}

static void find_fresh(seen_record r, const bool answers[ASKED])
{
    seen_key items[ASKED];
    size_t n, unseen = 0;
    memcpy(items, user.items.key, sizeof items);
    must(test_exposure_fresh(user.x, r, user.now, items, ASKED, &n) == SEEN_OK);
    must_be_fresh(items, n, answers);
    for (size_t i = 0; i < ASKED; i++)
        unseen += !answers[i];
    must(n <= unseen && (n > 0) == (unseen > 0));
}

static void mark(seen_record r, bool valid, const bool answers[ASKED], size_t n)
{
    bool fresh[ASKED], after[ASKED];
    seen_record result;
    seen_status status = seen_exposure_mark(
        user.x, r, user.now, seen_keys_of(user.items.key, n), fresh, &result);
    result = check(status, result, valid);
    if (status == SEEN_OK && valid) {
        ask(result, valid, after);
        must(after[n - 1] && fresh[0] == !answers[0]);
        for (size_t i = 0; i < n; i++)
            must((after[i] || !has_room(n)) && !(fresh[i] && answers[i]));
    }
    drop(result);
}

static void take(seen_record r, bool valid, const bool answers[ASKED])
{
    bool after[ASKED];
    seen_key items[ASKED];
    size_t taken = 0;
    seen_record result;
    memcpy(items, user.items.key, sizeof items);
    seen_status status = test_exposure_take(user.x, r, user.now, items, ASKED,
                                            TAKEN, &taken, &result);
    result = check(status, result, valid);
    must(taken <= TAKEN);
    must_be_fresh(items, taken, answers);
    if (status == SEEN_OK && valid) {
        ask(result, valid, after);
        for (size_t i = 0; i < taken; i++)
            must(after[item_number(items[i])] || !has_room(TAKEN));
    }
    drop(result);
}

static void forget(seen_record r, bool valid)
{
    bool after[ASKED];
    seen_record result;
    seen_status status = seen_exposure_forget(
        user.x, r, user.now, seen_keys_of(user.items.key, ASKED / 2), &result);
    result = check(status, result, valid);
    if (status == SEEN_OK && valid) {
        ask(result, valid, after);
        for (size_t i = 0; i < ASKED / 2; i++)
            must(!after[i]);
    }
    drop(result);
}

static void expire(seen_record r, bool valid)
{
    seen_exposure_info info = {.size = sizeof info};
    seen_record result;
    must(seen_exposure_info_of(user.x, r, user.now, &info) == SEEN_OK);
    must(info.fpp_now >= 0 && info.fpp_now <= 1 && info.bytes == r.len);
    uint64_t items = 0;
    for (uint32_t i = 0; i < info.generations; i++) {
        items += info.generation[i].items;
        must(info.generation[i].first <= info.generation[i].newest);
        must(info.generation[i].newest <= info.newest);
    }
    must(items == info.items && (items > 0) == (info.generations > 0));
    seen_status status = seen_exposure_expire(user.x, r, user.now, &result);
    must(status == SEEN_OK);
    drop(check(status, result, valid));
}

/* Either order: the same bytes, or the same error. */
static void merge(seen_record a, seen_record b, bool valid)
{
    seen_record result;
    seen_status status = seen_exposure_merge(user.x, a, b, user.now, &result);
    seen_record one = check(status, result, valid);
    must(seen_exposure_merge(user.x, b, a, user.now, &result) == status);
    seen_record other = check(status, result, valid);
    must(same(one, other));
    drop(one);
    drop(other);
}

/* ---- One input ---------------------------------------------------------- */

/* Every call fails in the same way, before it has done anything. */
static void must_fail(seen_record r, seen_status expected)
{
    bool answers[ASKED];
    seen_exposure_info info = {.size = sizeof info};
    size_t n;
    seen_record result;
    seen_exposure *x = user.x;
    uint64_t now = user.now;
    seen_key *items = user.items.key;
    must(expected == SEEN_CORRUPT || expected == SEEN_NEWER ||
         expected == SEEN_MISMATCH);
    must(seen_exposure_maybe_many(x, r, now, seen_keys_of(items, 1), answers) ==
         expected);
    must(test_exposure_fresh(x, r, now, items, ASKED, &n) == expected);
    must(seen_exposure_mark(x, r, now, seen_keys_of(items, 1), NULL, &result) ==
         expected);
    must(test_exposure_take(x, r, now, items, 1, 1, &n, &result) == expected);
    must(seen_exposure_forget(x, r, now, seen_keys_of(items, 1), &result) ==
         expected);
    must(seen_exposure_info_of(x, r, now, &info) == expected);
    must(seen_exposure_merge(x, r, r, now, &result) == expected);
}

static seen_status read_status(seen_record r)
{
    seen_record result;
    return seen_exposure_expire(user.x, r, user.now, &result);
}

static void try_record(seen_record r)
{
    const bool valid = seen_exposure_validate(r) == SEEN_OK;
    seen_status status = read_status(r);
    must(!valid || status == SEEN_OK || status == SEEN_MISMATCH);
    if (status != SEEN_OK) {
        must_fail(r, status);
        return;
    }
    bool answers[ASKED];
    ask(r, valid, answers);
    if (valid) find_fresh(r, answers);
    mark(r, valid, answers, FEW);
    mark(r, valid, answers, ASKED);
    if (valid) take(r, valid, answers);
    forget(r, valid);
    expire(r, valid);
    merge(r, r, valid);
}

static void try_both(seen_record a, seen_record b)
{
    try_record(a);
    try_record(b);
    if (read_status(a) == SEEN_OK && read_status(b) == SEEN_OK)
        merge(a, b,
              seen_exposure_validate(a) == SEEN_OK &&
                  seen_exposure_validate(b) == SEEN_OK);
}

/* ---- Making things right ------------------------------------------------ */

static void fix_check(seen_record r)
{
    seen_record one;
    must(seen_exposure_mark(user.x, (seen_record){0}, 0,
                            seen_keys_of(user.items.key, 1), NULL,
                            &one) == SEEN_OK);
    if (r.len >= 3) memcpy((uint8_t *)r.data, one.data, 3);
}

/* n numbers below a bound whose gaps are as wide as these bytes say: none goes
 * beyond, however wide they all are. */
static void fix_run(uint8_t *bytes, const struct seen_generation *g)
{
    const struct seen_sorted run = seen_run_of(g);
    const uint64_t spare = run.below - run.n;
    uint64_t *values = malloc(run.n * sizeof *values), at = 0;
    must(values != NULL);
    for (uint64_t i = 0; i < run.n; i++) {
        at += bytes[i % g->run_len] * spare / (255 * run.n);
        values[i] = at + i;
    }
    seen_sorted_encode(values, run.n, run.below, bytes);
    must(seen_sorted_ok(&run));
    free(values);
}

static void fix_runs(seen_record r)
{
    struct seen_generations g;
    if (seen_record_parse(r, UINT32_MAX, &g) != SEEN_OK) return;
    for (uint32_t i = 0; i < g.count; i++)
        fix_run((uint8_t *)r.data + (g.at[i].run - (const uint8_t *)r.data),
                &g.at[i]);
    must(seen_exposure_validate(r) == SEEN_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < HEADER) return 0;
    given = len;
    open_user(data);
    size_t first = seen_min_size(seen_get_le16(data + 9), len - HEADER);
    seen_record a = copy_of((seen_record){data + HEADER, first});
    seen_record b =
        copy_of((seen_record){data + HEADER + first, len - HEADER - first});
    try_both(a, b);
    fix_check(a);
    fix_check(b);
    try_both(a, b);
    fix_runs(a);
    fix_runs(b);
    try_both(a, b);
    drop(a);
    drop(b);
    seen_exposure_free(user.x);
    return 0;
}
