/* users_model.c - see users_model.h. */
#include "helpers/users_model.h"

#include "helpers/chosen.h"
#include "helpers/clock.h"

#include <stdio.h>
#include <string.h>

#define MOST     6 /* items of a request */
#define REQUESTS 4
#define ITEMS    40
#define DAY      ((uint64_t)24 * 60 * 60 * 1000)
#define TODAY    (20000 * DAY)

const seen_policy model_policies[2] = {
    {.items = 8, .generations = 3, .fpp = 0.01, .ttl_ms = 10000},
    {.items = 12, .generations = 4, .fpp = 0.001, .ttl_ms = 15000},
};

/* ---- Life --------------------------------------------------------------- */

void model_new(struct users_model *m, struct test_rng rng, bool durable)
{
    *m = (struct users_model){.rng = rng, .durable = durable, .now = TODAY};
    model_enter(m);
    for (int i = 0; i < 2; i++)
        assert_int_equal(seen_exposure_new(&m->x[i], &model_policies[i],
                                           test_secret, NULL, NULL),
                         SEEN_OK);
    for (size_t i = 0; i < MODEL_USERS; i++)
        m->user[i].n = 1;
}

void model_free(struct users_model *m)
{
    for (int i = 0; i < 2; i++)
        seen_exposure_free(m->x[i]);
    test_set_time((struct test_time){0});
}

/* ---- Clocks ------------------------------------------------------------- */

void model_enter(const struct users_model *m)
{
    test_set_time((struct test_time){m->now + (uint64_t)m->wrong, m->passed});
}

void model_pass(struct users_model *m, uint64_t ms)
{
    m->now += ms;
    m->passed += ms;
    if (m->wrong && m->now >= m->wrong_until) m->wrong = 0;
    model_enter(m);
}

static uint64_t time_of(const struct users_model *m, size_t user)
{
    return m->now + (uint64_t)m->ahead[user];
}

static int64_t some_leap(struct users_model *m, uint64_t most)
{
    int64_t by = (int64_t)test_below(&m->rng, most);
    return test_below(&m->rng, 2) ? by : -by;
}

/* Seconds pass, sometimes a ttl, sometimes days. Now and then a clock leaps: of a
 * user, by anything up to weeks; or the machine's, until it is set right. */
static void tick(struct users_model *m)
{
    uint64_t ttl = model_policies[1].ttl_ms;
    uint64_t dice = test_below(&m->rng, 60);
    model_pass(m, dice < 3                 ? ttl + 1000
                  : dice == 3 && !m->wrong ? 2 * DAY
                                           : test_below(&m->rng, 400));
    if (dice == 4 || dice == 5)
        m->ahead[test_below(&m->rng, MODEL_USERS)] = some_leap(m, 30 * DAY);
    if (dice == 6 || dice == 7)
        m->ahead[test_below(&m->rng, MODEL_USERS)] = some_leap(m, 2 * ttl);
    if (dice == 8) m->ahead[test_below(&m->rng, MODEL_USERS)] = 0;
    if (dice == 9 && !m->wrong) {
        m->wrong = some_leap(m, 100 * DAY);
        m->wrong_until = m->now + test_below(&m->rng, DAY / 2);
    }
    model_enter(m);
}

seen_key model_name(size_t user)
{
    static char names[MODEL_USERS][64];
    size_t len = 1 + 9 * user;
    memset(names[user], 'u', len);
    names[user][len - 1] = (char)('0' + user);
    return (seen_key){names[user], len};
}

/* ---- States ------------------------------------------------------------- */

static seen_record last(const struct users_model *m, size_t user)
{
    const struct model_user *u = &m->user[user];
    return (seen_record){u->at[u->n - 1].bytes, u->at[u->n - 1].len};
}

static void push(struct users_model *m, size_t user, seen_record r)
{
    struct model_user *u = &m->user[user];
    struct model_state next = {.len = r.len};
    assert_true(r.len <= MODEL_RECORD && u->n < MODEL_STATES);
    if (r.len) memcpy(next.bytes, r.data, r.len);
    u->at[u->n++] = next;
    m->changes++;
}

static void keep_one(struct model_user *u, size_t which)
{
    if (which) u->at[0] = u->at[which];
    u->n = 1;
}

void model_settled(struct users_model *m)
{
    m->policy_before = m->policy;
    for (size_t i = 0; i < MODEL_USERS; i++)
        keep_one(&m->user[i], m->user[i].n - 1);
}

static seen_status acknowledged(struct users_model *m, seen_status status)
{
    if (status == SEEN_OK && m->durable) model_settled(m);
    return status;
}

/* The store's part of a step. A call that fails says why. */
static seen_status told(struct users_model *m, seen_status status)
{
    if (m->around) m->around(false);
    assert_int_equal(m->error.status, status);
    if (status != SEEN_OK) assert_string_not_equal(m->error.text, "");
    return status;
}

static seen_users *store(struct users_model *m, seen_users *u)
{
    if (m->around) m->around(true);
    return u;
}

/* ---- Requests ----------------------------------------------------------- */

struct request {
    size_t user, n, count;
    uint64_t now;
    uint64_t id[MOST];
    seen_key items[MOST], mine[MOST]; /* the store's, and the model's */
    bool asks, fresh[MOST], expected[MOST];
    size_t taken;
};

static void fill(struct users_model *m, struct request *q)
{
    *q = (struct request){.user = test_below(&m->rng, MODEL_USERS),
                          .n = 1 + test_below(&m->rng, MOST),
                          .count = test_below(&m->rng, 4),
                          .asks = test_below(&m->rng, 2)};
    /* Some users come more often. */
    if (test_below(&m->rng, 2)) q->user %= 2;
    q->now = time_of(m, q->user);
    for (size_t i = 0; i < q->n; i++) {
        q->id[i] = test_below(&m->rng, ITEMS);
        q->items[i] = q->mine[i] = (seen_key){&q->id[i], sizeof q->id[i]};
    }
}

static void expect_mark(struct users_model *m, struct request *q)
{
    seen_record r;
    assert_int_equal(seen_exposure_mark(m->x[m->policy], last(m, q->user),
                                        q->now, seen_keys_of(q->mine, q->n),
                                        q->expected, &r),
                     SEEN_OK);
    push(m, q->user, r);
}

static void expect_take(struct users_model *m, struct request *q)
{
    seen_record r;
    assert_int_equal(test_exposure_take(m->x[m->policy], last(m, q->user),
                                        q->now, q->mine, q->n, q->count,
                                        &q->taken, &r),
                     SEEN_OK);
    if (q->taken) push(m, q->user, r);
}

static void check_mark(const struct request *q)
{
    for (size_t i = 0; q->asks && i < q->n; i++)
        assert_int_equal(q->fresh[i], q->expected[i]);
}

static void check_take(const struct request *q, size_t taken)
{
    assert_int_equal(taken, q->taken);
    for (size_t i = 0; i < taken; i++)
        assert_ptr_equal(q->items[i].data, q->mine[i].data);
}

static seen_status mark(struct users_model *m, seen_users *u, struct request *q)
{
    expect_mark(m, q);
    seen_status status =
        told(m, seen_users_mark(store(m, u), model_name(q->user), q->now,
                                seen_keys_of(q->items, q->n),
                                q->asks ? q->fresh : NULL, &m->error));
    if (status == SEEN_OK) check_mark(q);
    return acknowledged(m, status);
}

static seen_status take(struct users_model *m, seen_users *u, struct request *q)
{
    size_t taken;
    expect_take(m, q);
    seen_status status =
        told(m, test_users_take(store(m, u), model_name(q->user), q->now,
                                q->items, q->n, q->count, &taken, &m->error));
    if (status == SEEN_OK) check_take(q, taken);
    return acknowledged(m, status);
}

static seen_status forget(struct users_model *m, seen_users *u,
                          struct request *q)
{
    seen_record r;
    assert_int_equal(seen_exposure_forget(m->x[m->policy], last(m, q->user),
                                          q->now, seen_keys_of(q->mine, q->n),
                                          &r),
                     SEEN_OK);
    push(m, q->user, r);
    return acknowledged(
        m, told(m, seen_users_forget(store(m, u), model_name(q->user), q->now,
                                     seen_keys_of(q->items, q->n), &m->error)));
}

static seen_status forget_user(struct users_model *m, seen_users *u,
                               size_t user)
{
    bool known, nothing = last(m, user).len == 0;
    push(m, user, (seen_record){0});
    seen_status status =
        told(m, seen_users_forget_user(store(m, u), model_name(user),
                                       time_of(m, user), &known, &m->error));
    if (status == SEEN_OK && nothing) assert_false(known);
    return acknowledged(m, status);
}

/* One after the other, as the store would do it. */
static void expect(struct users_model *m, struct request *q, bool takes)
{
    if (takes)
        expect_take(m, q);
    else
        expect_mark(m, q);
}

/* Any of a user's requests may have failed, the others not. */
static void doubt(struct users_model *m, const struct users_model *before,
                  size_t user, const struct request *asked, bool takes)
{
    struct request mine[REQUESTS], again;
    size_t n = 0;
    for (size_t i = 0; i < REQUESTS; i++)
        if (asked[i].user == user) mine[n++] = asked[i];
    m->user[user] = before->user[user];
    for (unsigned set = 1; set < 1u << n; set++) {
        struct users_model maybe = *before;
        for (size_t i = 0; i < n; i++) {
            again = mine[i];
            for (size_t k = 0; k < again.n; k++)
                again.mine[k] = (seen_key){&again.id[k], sizeof again.id[k]};
            if (set >> i & 1) expect(&maybe, &again, takes);
        }
        push(m, user, last(&maybe, user));
    }
}

static seen_status many(struct users_model *m, seen_users *u, bool takes)
{
    struct users_model before = *m;
    struct request q[REQUESTS];
    seen_users_request r[REQUESTS];
    size_t indices[REQUESTS][MOST];
    const uint64_t now = time_of(m, test_below(&m->rng, MODEL_USERS));
    for (size_t i = 0; i < REQUESTS; i++) {
        fill(m, &q[i]);
        q[i].now = now; /* whoever asks for several has one clock */
        expect(m, &q[i], takes);
        r[i] = (seen_users_request){.user = model_name(q[i].user),
                                    .items = seen_keys_of(q[i].items, q[i].n),
                                    .taken = indices[i],
                                    .count = q[i].count,
                                    .fresh = q[i].asks ? q[i].fresh : NULL};
    }
    seen_status status =
        told(m, (takes ? seen_users_take_many : seen_users_mark_many)(
                    store(m, u), now, r, REQUESTS, &m->error));
    for (size_t i = 0; i < REQUESTS; i++) {
        if (status != SEEN_OK)
            doubt(m, &before, q[i].user, q, takes);
        else if (takes) {
            test_move(q[i].items, r[i].taken, r[i].n_taken);
            check_take(&q[i], r[i].n_taken);
        } else
            check_mark(&q[i]);
    }
    return acknowledged(m, status);
}

/* ---- Removed ------------------------------------------------------------ */

static bool aged_out(struct users_model *m, seen_record r)
{
    seen_exposure_info info = {.size = sizeof info};
    assert_int_equal(seen_exposure_info_of(m->x[m->policy], r, m->now, &info),
                     SEEN_OK);
    return info.generations == 0;
}

static struct model_state found(seen_users *u, size_t user)
{
    struct model_state s = {0};
    seen_status status = seen_users_record(u, model_name(user), s.bytes,
                                           sizeof s.bytes, &s.len, NULL);
    if (status == SEEN_ABSENT) s.len = 0;
    if (status != SEEN_OK && status != SEEN_ABSENT)
        fail_msg("user %zu: %s", user, seen_strerror(status));
    return s;
}

/* A user who has aged out may be gone from the running store: what comes is a new
 * record, and not by his clock the same as going on with the old one. */
static void notice_removed(struct users_model *m, seen_users *u)
{
    for (size_t i = 0; i < MODEL_USERS; i++) {
        seen_record r = last(m, i);
        if (r.len && aged_out(m, r) && found(u, i).len == 0)
            push(m, i, (seen_record){0});
    }
}

/* ---- Steps -------------------------------------------------------------- */

seen_status model_mark(struct users_model *m, seen_users *u, size_t user)
{
    struct request q;
    model_enter(m);
    notice_removed(m, u);
    fill(m, &q);
    q.user = user;
    q.now = time_of(m, user);
    return mark(m, u, &q);
}

static seen_status whole(struct users_model *m, seen_status status)
{
    if (status == SEEN_OK) model_settled(m);
    return status;
}

seen_status model_step(struct users_model *m, seen_users *u)
{
    struct request q;
    tick(m);
    notice_removed(m, u);
    fill(m, &q);
    switch (test_below(&m->rng, 20)) {
    case 0:
        return whole(m, told(m, seen_users_sync(store(m, u), &m->error)));
    case 1:
        return test_below(&m->rng, 3)
                   ? SEEN_OK
                   : whole(m, told(m, seen_users_sweep(store(m, u),
                                                       q.asks ? m->now : 0,
                                                       NULL, &m->error)));
    case 2:
        return forget_user(m, u, q.user);
    case 3:
    case 4:
        return forget(m, u, &q);
    case 5:
    case 6:
        return many(m, u, q.asks);
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
        return take(m, u, &q);
    default:
        return mark(m, u, &q);
    }
}

/* ---- Checks ------------------------------------------------------------- */

static void check_one(struct users_model *m, seen_users *u, size_t user,
                      bool lasting)
{
    struct model_user *list = &m->user[user];
    struct model_state s = found(u, user);
    for (size_t i = list->n; i-- > 0;) {
        const struct model_state *may = &list->at[i];
        bool same =
            may->len == s.len && memcmp(may->bytes, s.bytes, s.len) == 0;
        if (!same &&
            (s.len || !aged_out(m, (seen_record){may->bytes, may->len})))
            continue;
        if (lasting) {
            list->at[0] = s;
            list->n = 1;
        }
        return;
    }
    fail_msg("user %zu has a record of %zu bytes that is none of %zu possible "
             "ones, the last of %zu bytes",
             user, s.len, list->n, list->at[list->n - 1].len);
}

static void check_policy(struct users_model *m, seen_users *u, bool lasting)
{
    seen_users_stats stats = {.size = sizeof stats};
    assert_int_equal(seen_users_stats_of(u, &stats, NULL), SEEN_OK);
    unsigned policy = stats.policy.items == model_policies[1].items;
    assert_int_equal(stats.policy.items, model_policies[policy].items);
    assert_true(policy == m->policy || policy == m->policy_before);
    if (lasting) m->policy = m->policy_before = policy;
}

void model_check(struct users_model *m, seen_users *u, bool lasting)
{
    check_policy(m, u, lasting);
    for (size_t i = 0; i < MODEL_USERS; i++)
        check_one(m, u, i, lasting);
}

void model_resume(struct users_model *m, seen_users *u)
{
    model_check(m, u, false);
    for (size_t i = 0; i < MODEL_USERS; i++) {
        struct model_state s = found(u, i);
        push(m, i, (seen_record){s.bytes, s.len});
    }
}
