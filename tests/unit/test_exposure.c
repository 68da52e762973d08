/*
 * test_exposure.c - records against an exact reference: lists of generations
 * with their times and the fingerprints in them, kept the slow way.
 */
#include "seen_exposure.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "exposure/exposure.h"
#include "helpers/binomial.h"
#include "helpers/chosen.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"

#include <stdlib.h>
#include <string.h>

/* ---- The reference ------------------------------------------------------ */

#define PRINTS_MAX 600
#define GENS_MAX   16

struct model_gen {
    uint64_t first, newest;
    uint32_t universe;
    size_t n;
    uint64_t print[PRINTS_MAX];
};

struct model {
    size_t count;
    struct model_gen gen[GENS_MAX]; /* newest first */
};

static bool gen_has(const struct model_gen *g, uint64_t print)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->print[i] == print) return true;
    return false;
}

static uint64_t model_time(const struct model *m, uint64_t now)
{
    if (now > SEEN_TIME_MAX) now = SEEN_TIME_MAX;
    return m->count && m->gen[0].newest > now ? m->gen[0].newest : now;
}

static void model_expire(struct model *m, const seen_policy *p, uint64_t now)
{
    while (m->count > p->generations)
        m->count--;
    while (m->count && now - m->gen[m->count - 1].newest > p->ttl_ms)
        m->count--;
}

static bool model_has(const struct model *m, uint64_t h)
{
    for (size_t i = 0; i < m->count; i++)
        if (gen_has(&m->gen[i], seen_print_of(h, m->gen[i].universe)))
            return true;
    return false;
}

static void model_mark(struct model *m, const seen_policy *p, uint32_t universe,
                       uint64_t now, uint64_t h)
{
    uint64_t interval =
        p->generations > 1 ? p->ttl_ms / (p->generations - 1) : p->ttl_ms;
    if (!interval) interval = 1;
    struct model_gen *g = &m->gen[0];
    bool open = m->count && g->universe == universe && g->n < p->items &&
                now - g->first < interval;
    if (!open) {
        if (m->count == p->generations) m->count--;
        memmove(m->gen + 1, m->gen, m->count * sizeof *m->gen);
        m->count++;
        *g = (struct model_gen){
            .first = now, .newest = now, .universe = universe};
    }
    g->newest = now;
    uint64_t print = seen_print_of(h, universe);
    if (!gen_has(g, print)) g->print[g->n++] = print;
}

/* Marks of one call that would push out their own first ones begin a generation. */
static void model_make_way(struct model *m, const seen_policy *p,
                           uint32_t universe, uint64_t now, const uint64_t *h,
                           size_t n)
{
    uint64_t interval =
        p->generations > 1 ? p->ttl_ms / (p->generations - 1) : p->ttl_ms;
    struct model_gen *g = &m->gen[0];
    if (!interval) interval = 1;
    if (!m->count || g->universe != universe || g->n >= p->items ||
        now - g->first >= interval)
        return;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t print = seen_print_of(h[i], universe);
        bool again = gen_has(g, print);
        for (size_t k = 0; k < i; k++)
            again |= h[k] == h[i];
        count += !again;
    }
    if (count <= (size_t)p->items * p->generations - g->n) return;
    if (m->count == p->generations) m->count--;
    memmove(m->gen + 1, m->gen, m->count * sizeof *m->gen);
    m->count++;
    *g = (struct model_gen){.first = now, .newest = now, .universe = universe};
}

static void model_forget(struct model *m, uint64_t h)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct model_gen *g = &m->gen[i];
        uint64_t print = seen_print_of(h, g->universe);
        for (size_t k = 0; k < g->n; k++)
            if (g->print[k] == print) g->print[k--] = g->print[--g->n];
        if (g->n == 0) continue;
        if (kept != i) m->gen[kept] = *g;
        kept++;
    }
    m->count = kept;
}

/* Newest first; 0 if only their fingerprints could decide. */
static int gen_order(const struct model_gen *a, const struct model_gen *b)
{
    if (a->newest != b->newest) return a->newest > b->newest ? -1 : 1;
    if (a->first != b->first) return a->first > b->first ? -1 : 1;
    if (a->universe != b->universe) return a->universe < b->universe ? -1 : 1;
    if (a->n != b->n) return a->n > b->n ? -1 : 1;
    return 0;
}

/* Into `g`, if that has no more than it may or learns nothing new. */
static bool gen_join(struct model_gen *g, const struct model_gen *other,
                     size_t items)
{
    struct model_gen both = *g;
    if (g->universe != other->universe) return false;
    for (size_t i = 0; i < other->n; i++)
        if (!gen_has(g, other->print[i]))
            both.print[both.n++] = other->print[i];
    if (both.n > items && both.n > g->n) return false;
    if (other->first < both.first) both.first = other->first;
    *g = both;
    return true;
}

/* False: two generations cannot be told apart here. */
static bool model_merge(struct model *m, const struct model *from,
                        const seen_policy *p)
{
    static struct model out;
    const struct model_gen *all[2 * SEEN_GENERATIONS_MAX];
    size_t n = m->count + from->count;
    for (size_t i = 0; i < n; i++) {
        const struct model_gen *g =
            i < m->count ? &m->gen[i] : &from->gen[i - m->count];
        size_t k = i;
        for (; k > 0 && gen_order(g, all[k - 1]) <= 0; k--) {
            if (gen_order(g, all[k - 1]) == 0) return false;
            all[k] = all[k - 1];
        }
        all[k] = g;
    }
    out.count = 0;
    for (size_t i = 0; i < n; i++) {
        const struct model_gen *next = all[i];
        if (out.count && gen_join(&out.gen[out.count - 1], next, p->items))
            continue;
        if (out.count == p->generations) break;
        out.gen[out.count++] = *next;
    }
    *m = out;
    return true;
}

/* ---- One user ----------------------------------------------------------- */

struct user {
    seen_policy policy;
    seen_exposure *x;
    uint8_t *bytes; /* exactly as many as there are */
    size_t len;
    struct model m;
};

static const uint8_t secret[16] = {7, 7, 7};

static void open_user(struct user *u, seen_policy policy)
{
    *u = (struct user){.policy = policy};
    assert_int_equal(seen_exposure_new(&u->x, &policy, secret, NULL, NULL),
                     SEEN_OK);
    u->policy = u->x->policy;
}

static void close_user(struct user *u)
{
    free(u->bytes);
    seen_exposure_free(u->x);
}

static seen_record record_of(const struct user *u)
{
    return (seen_record){u->bytes, u->len};
}

static void keep(struct user *u, seen_record result)
{
    uint8_t *bytes = malloc(result.len + 1);
    assert_non_null(bytes);
    uint8_t *exact = result.len ? malloc(result.len) : NULL;
    if (result.len) memcpy(exact, result.data, result.len);
    free(bytes);
    free(u->bytes);
    u->bytes = exact;
    u->len = result.len;
}

static uint64_t hash_of(uint64_t *id)
{
    return seen_hash_siphash13.one(secret, id, sizeof *id).lo;
}

static void assert_same(struct user *u, uint64_t now)
{
    seen_exposure_info info = {.size = sizeof info};
    assert_int_equal(seen_exposure_validate(record_of(u)), SEEN_OK);
    assert_int_equal(seen_exposure_info_of(u->x, record_of(u), now, &info),
                     SEEN_OK);
    struct model live = u->m;
    model_expire(&live, &u->policy, model_time(&u->m, now));
    assert_int_equal(info.generations, live.count);
    for (size_t i = 0; i < live.count; i++) {
        assert_int_equal(info.generation[i].items, live.gen[i].n);
        assert_int_equal(info.generation[i].first, live.gen[i].first);
        assert_int_equal(info.generation[i].newest, live.gen[i].newest);
    }
}

#define BATCH_MAX 60

struct batch {
    size_t n;
    uint64_t id[BATCH_MAX];
    seen_key key[BATCH_MAX];
};

static void fill(struct batch *b, struct test_rng *r, uint64_t ids)
{
    b->n = test_below(r, 4) ? test_below(r, 6) : test_below(r, BATCH_MAX);
    for (size_t i = 0; i < b->n; i++) {
        b->id[i] = test_below(r, ids);
        b->key[i] = (seen_key){&b->id[i], sizeof b->id[i]};
    }
}

static void check_asking(struct user *u, struct batch *b, uint64_t now)
{
    bool answers[BATCH_MAX];
    struct model live = u->m;
    model_expire(&live, &u->policy, model_time(&u->m, now));
    assert_int_equal(seen_exposure_maybe_many(u->x, record_of(u), now,
                                              seen_keys_of(b->key, b->n),
                                              answers),
                     SEEN_OK);
    for (size_t i = 0; i < b->n; i++)
        assert_int_equal(answers[i], model_has(&live, hash_of(&b->id[i])));
}

/* Is item i shown, or the same as an earlier one? */
static bool stale(const struct model *live, struct batch *b, size_t i)
{
    uint64_t h = hash_of(&b->id[i]);
    if (model_has(live, h)) return true;
    for (size_t k = 0; k < i; k++)
        if (h == hash_of(&b->id[k])) return true;
    return false;
}

static void do_mark(struct user *u, struct batch *b, uint64_t now)
{
    bool fresh[BATCH_MAX];
    seen_record result;
    uint64_t time = model_time(&u->m, now);
    model_expire(&u->m, &u->policy, time);
    bool expected[BATCH_MAX];
    for (size_t i = 0; i < b->n; i++)
        expected[i] = !stale(&u->m, b, i);
    assert_int_equal(seen_exposure_mark(u->x, record_of(u), now,
                                        seen_keys_of(b->key, b->n), fresh,
                                        &result),
                     SEEN_OK);
    keep(u, result);
    uint64_t h[BATCH_MAX];
    for (size_t i = 0; i < b->n; i++)
        h[i] = hash_of(&b->id[i]);
    model_make_way(&u->m, &u->policy, u->x->universe, time, h, b->n);
    for (size_t i = 0; i < b->n; i++) {
        assert_int_equal(fresh[i], expected[i]);
        model_mark(&u->m, &u->policy, u->x->universe, time, hash_of(&b->id[i]));
    }
}

static void do_take(struct user *u, struct batch *b, uint64_t now, size_t count)
{
    seen_record result;
    uint64_t time = model_time(&u->m, now);
    model_expire(&u->m, &u->policy, time);
    const seen_key *expected[BATCH_MAX];
    seen_key before[BATCH_MAX];
    size_t wanted = 0, taken = 0;
    memcpy(before, b->key, sizeof before);
    for (size_t i = 0; i < b->n && wanted < count; i++)
        if (!stale(&u->m, b, i)) expected[wanted++] = &before[i];
    assert_int_equal(test_exposure_take(u->x, record_of(u), now, b->key, b->n,
                                        count, &taken, &result),
                     SEEN_OK);
    keep(u, result);
    assert_int_equal(taken, wanted);
    uint64_t h[BATCH_MAX];
    for (size_t i = 0; i < taken; i++) {
        assert_ptr_equal(b->key[i].data, expected[i]->data);
        uint64_t id;
        memcpy(&id, b->key[i].data, sizeof id);
        h[i] = hash_of(&id);
    }
    model_make_way(&u->m, &u->policy, u->x->universe, time, h, taken);
    for (size_t i = 0; i < taken; i++)
        model_mark(&u->m, &u->policy, u->x->universe, time, h[i]);
    /* What one call has taken stays, as much of it as the policy holds. */
    for (size_t i = 0; taken <= seen_policy_holds(&u->policy) && i < taken; i++)
        assert_true(model_has(&u->m, h[i]));
}

static void do_fresh(struct user *u, struct batch *b, uint64_t now)
{
    struct model live = u->m;
    model_expire(&live, &u->policy, model_time(&u->m, now));
    const void *expected[BATCH_MAX];
    size_t wanted = 0, fresh = 0;
    for (size_t i = 0; i < b->n; i++)
        if (!stale(&live, b, i)) expected[wanted++] = b->key[i].data;
    assert_int_equal(
        test_exposure_fresh(u->x, record_of(u), now, b->key, b->n, &fresh),
        SEEN_OK);
    assert_int_equal(fresh, wanted);
    for (size_t i = 0; i < fresh; i++)
        assert_ptr_equal(b->key[i].data, expected[i]);
}

static void do_forget(struct user *u, struct batch *b, uint64_t now)
{
    seen_record result;
    model_expire(&u->m, &u->policy, model_time(&u->m, now));
    assert_int_equal(seen_exposure_forget(u->x, record_of(u), now,
                                          seen_keys_of(b->key, b->n), &result),
                     SEEN_OK);
    keep(u, result);
    for (size_t i = 0; i < b->n; i++)
        model_forget(&u->m, hash_of(&b->id[i]));
}

static void do_expire(struct user *u, uint64_t now)
{
    seen_record result;
    model_expire(&u->m, &u->policy, model_time(&u->m, now));
    assert_int_equal(seen_exposure_expire(u->x, record_of(u), now, &result),
                     SEEN_OK);
    keep(u, result);
    seen_record twice;
    seen_exposure_expire(u->x, record_of(u), now, &twice);
    assert_int_equal(twice.len, u->len);
    if (u->len) assert_memory_equal(twice.data, u->bytes, u->len);
}

/* What `from` knows comes to `u`, who forgets nothing that fits. */
static void do_merge(struct user *u, const struct user *from, uint64_t now)
{
    static struct model mine, its;
    const uint64_t time = model_time(&from->m, model_time(&u->m, now));
    seen_record result;
    mine = u->m;
    its = from->m;
    model_expire(&mine, &u->policy, time);
    model_expire(&its, &u->policy, time);
    if (!model_merge(&mine, &its, &u->policy)) return;
    u->m = mine;
    assert_int_equal(
        seen_exposure_merge(u->x, record_of(u), record_of(from), now, &result),
        SEEN_OK);
    keep(u, result);
}

/* Clocks go on, stand, step back, jump, or are broken. */
static uint64_t next_time(struct test_rng *r, uint64_t now, uint64_t ttl)
{
    switch (test_below(r, 40)) {
    case 0:
        return test_below(r, now | 1);
    case 1:
        return now + test_below(r, 3 * ttl);
    case 2:
        return now + ttl;
    case 3:
        return test_below(r, 400) ? now : UINT64_MAX;
    case 4:
        return 0;
    default:
        return now + test_below(r, 1 + ttl / 40);
    }
}

static void change_policy(struct user *u, struct test_rng *r)
{
    seen_policy p = {.items = 1 + (uint32_t)test_below(r, 40),
                     .generations = 1 + (uint32_t)test_below(r, 6),
                     .fpp = test_below(r, 2) ? 0.01 : 0.2,
                     .ttl_ms = 1 + test_below(r, 100000)};
    seen_exposure_free(u->x);
    assert_int_equal(seen_exposure_new(&u->x, &p, secret, NULL, NULL), SEEN_OK);
    u->policy = u->x->policy;
}

/* A user with two records, which live apart and meet now and then. */
static void change_both(struct user *both, struct test_rng *r)
{
    change_policy(&both[0], r);
    both[1].x = both[0].x;
    both[1].policy = both[0].policy;
}

static void one_life(struct test_rng *r, uint64_t operations)
{
    static struct user both[2];
    open_user(&both[0], (seen_policy){0});
    both[1] = (struct user){0};
    change_both(both, r);
    uint64_t now = test_below(r, 1000000), ids = 20 + test_below(r, 300);
    for (uint64_t i = 0; i < operations; i++) {
        struct user *u = &both[test_below(r, 4) == 0];
        struct batch b;
        fill(&b, r, ids);
        now = next_time(r, now, u->policy.ttl_ms);
        if (now > 1000000000000000) now = test_below(r, 2) ? now : 1;
        switch (test_below(r, 12)) {
        case 0:
            do_take(u, &b, now, test_below(r, 12));
            break;
        case 1:
            do_fresh(u, &b, now);
            break;
        case 2:
            if (b.n > 3) b.n = 3;
            do_forget(u, &b, now);
            break;
        case 3:
            do_expire(u, now);
            break;
        case 4:
            if (test_below(r, 20) == 0)
                change_both(both, r);
            else
                do_merge(u, &both[u == &both[0]], now);
            break;
        case 5:
        case 6:
            check_asking(u, &b, now);
            break;
        default:
            do_mark(u, &b, now);
        }
        assert_same(u, now);
    }
    free(both[1].bytes);
    close_user(&both[0]);
}

/* 5e5 operations in the quick run, 1e7 with the scale of --full. */
static void records_agree_with_the_reference(void **state)
{
    (void)state;
    struct test_rng r = test_rng(500);
    for (uint64_t i = 0; i < 2500 * test_scale(); i++)
        one_life(&r, 200);
    test_tried(2500 * test_scale() * 200, "operations");
}

/* ---- Laws --------------------------------------------------------------- */

/* Marks that are made up for later leave the bytes that they would have left at
 * once: whatever the clocks, also when generations fill up and age in between. */
static void many_marks_in_one_pass_are_the_same(void **state)
{
    (void)state;
    struct test_rng r = test_rng(511);
    for (uint64_t life = 0; life < 3000 * test_scale(); life++) {
        static struct user u;
        open_user(&u, (seen_policy){.items = 10});
        change_policy(&u, &r);
        enum {
            MARKS = 12
        };
        uint64_t now = test_below(&r, 1000000), h[MARKS][BATCH_MAX];
        for (int round = 0; round < 4; round++) {
            struct seen_marks marks[MARKS];
            seen_record one = record_of(&u), all;
            for (size_t i = 0; i < MARKS; i++) {
                now = next_time(&r, now, u.policy.ttl_ms);
                marks[i] = (struct seen_marks){now, h[i], test_below(&r, 20)};
                for (size_t k = 0; k < marks[i].n; k++)
                    h[i][k] = test_below(&r, 60) * 0x9e3779b97f4a7c15;
            }
            for (size_t i = 0; i < MARKS; i++)
                assert_int_equal(
                    seen_exposure_mark_all(u.x, one, &marks[i], 1, &one),
                    SEEN_OK);
            uint8_t *kept = malloc(one.len + 1);
            memcpy(kept, one.data, one.len);
            assert_int_equal(
                seen_exposure_mark_all(u.x, record_of(&u), marks, MARKS, &all),
                SEEN_OK);
            assert_int_equal(all.len, one.len);
            assert_memory_equal(all.data, kept, all.len);
            free(kept);
            keep(&u, all);
        }
        close_user(&u);
    }
}

static void fill_user(struct user *u, uint64_t first, uint64_t n, uint64_t now)
{
    for (uint64_t i = 0; i < n; i += 10) {
        struct test_batch b = test_batch_new(first + i, 10);
        seen_record result;
        assert_int_equal(seen_exposure_mark(u->x, record_of(u), now + i,
                                            seen_keys_of(b.keys, 10), NULL,
                                            &result),
                         SEEN_OK);
        keep(u, result);
        test_batch_free(&b);
    }
}

static void sizes_are_small(void **state)
{
    (void)state;
    static const size_t items[] = {10, 100, 1000, 5000},
                        most[] = {42, 260, 1950, 9400};
    for (int i = 0; i < 4; i++) {
        static struct user u;
        open_user(&u, (seen_policy){0});
        fill_user(&u, 0, items[i], 1790000000000);
        print_message("%zu items: %zu bytes\n", items[i], u.len);
        assert_true(u.len <= most[i]);
        close_user(&u);
    }
}

/* So many probes that a full record, whose universe was rounded up, stays below
 * its promise by more than five deviations. */
static void rates_are_what_the_record_predicts(void **state)
{
    (void)state;
    const uint64_t probes = 4000000 * test_scale();
    for (uint64_t items = 1000; items <= 5000; items += 1000) {
        static struct user u;
        open_user(&u, (seen_policy){0});
        fill_user(&u, 0, items, 1000);
        seen_exposure_info info = {.size = sizeof info};
        seen_exposure_info_of(u.x, record_of(&u), 10000, &info);
        assert_int_equal(info.generations, items / 1000);
        assert_true(info.fpp_now <= 0.001);
        uint64_t wrong = 0;
        struct test_batch b = test_batch_new(0, 10000);
        for (uint64_t at = 0; at < probes; at += b.n) {
            test_batch_fill(&b, TEST_STRANGERS + at, b.n);
            seen_exposure_maybe_many(u.x, record_of(&u), 10000,
                                     seen_keys_of(b.keys, b.n), b.answers);
            for (size_t i = 0; i < b.n; i++)
                wrong += b.answers[i];
        }
        assert_binomial(wrong, probes, info.fpp_now);
        assert_true((double)wrong <= 0.001 * (double)probes);
        test_batch_free(&b);
        close_user(&u);
    }
}

/* ---- Bytes -------------------------------------------------------------- */

/* Ten numbers as items. */
struct ten {
    uint8_t bytes[10][8];
    seen_key key[10];
};

static void ten_from(struct ten *t, uint64_t first)
{
    for (uint64_t i = 0; i < 10; i++) {
        seen_put_le64(t->bytes[i], first + i);
        t->key[i] = (seen_key){t->bytes[i], 8};
    }
}

/* Numbers first .. first + n, ten every second. */
static void mark_numbers(struct user *u, uint64_t first, uint64_t n)
{
    for (uint64_t at = first; at < first + n; at += 10) {
        struct ten t;
        seen_record result;
        ten_from(&t, at);
        assert_int_equal(
            seen_exposure_mark(u->x, record_of(u), 1790000000000 + 100 * at,
                               seen_keys_of(t.key, 10), NULL, &result),
            SEEN_OK);
        keep(u, result);
    }
}

static void assert_bytes(const struct user *u, size_t len, uint32_t sum)
{
    assert_int_equal(u->len, len);
    assert_int_equal(seen_crc32c(0, u->bytes, u->len), sum);
}

/* Records outlive programs: this is how version 1 has always written them. */
static void bytes_stay_as_they_are(void **state)
{
    (void)state;
    static const uint8_t ten[39] = {
        0x01, 0xdf, 0x78, 0x0a, 0x73, 0x80, 0xd8, 0xc1, 0xa2, 0x8c,
        0x34, 0x00, 0x0f, 0xaa, 0x30, 0xb5, 0x53, 0x91, 0xcf, 0xb6,
        0x82, 0xe5, 0x70, 0x7f, 0x45, 0x49, 0xbe, 0x5f, 0x9b, 0x50,
        0x16, 0x88, 0x35, 0x25, 0xec, 0x12, 0x8b, 0x25, 0x0b};
    static struct user a, b, small;
    struct ten t;
    seen_record result;
    open_user(&a, (seen_policy){0});
    open_user(&b, (seen_policy){0});
    open_user(&small, (seen_policy){.items = 64, .generations = 3, .fpp = 0.1});
    mark_numbers(&a, 0, 10);
    assert_bytes(&a, 39, 0x7ed266bb);
    assert_memory_equal(a.bytes, ten, sizeof ten);
    mark_numbers(&a, 10, 90);
    assert_bytes(&a, 235, 0x008fa5d4);
    mark_numbers(&a, 100, 4850);
    assert_bytes(&a, 8922, 0xc7ce3c9a);

    ten_from(&t, 4000);
    assert_int_equal(seen_exposure_forget(a.x, record_of(&a), 0,
                                          seen_keys_of(t.key, 10), &result),
                     SEEN_OK);
    keep(&a, result);
    assert_bytes(&a, 8906, 0x33df9e19);
    mark_numbers(&b, 4500, 700);
    assert_int_equal(
        seen_exposure_merge(a.x, record_of(&a), record_of(&b), 0, &result),
        SEEN_OK);
    keep(&a, result);
    assert_bytes(&a, 8419, 0xb51e59ee);
    keep(&small, record_of(&a)); /* and goes on under another policy */
    mark_numbers(&small, 5200, 100);
    assert_bytes(&small, 1422, 0x6e4a7166);
    close_user(&a);
    close_user(&b);
    close_user(&small);
}

/* ---- Merge -------------------------------------------------------------- */

static seen_record merged(struct user *u, const struct user *a,
                          const struct user *b)
{
    seen_record result;
    assert_int_equal(
        seen_exposure_merge(u->x, record_of(a), record_of(b), 0, &result),
        SEEN_OK);
    return result;
}

static void merging_is_commutative_and_keeps_what_fits(void **state)
{
    (void)state;
    static struct user a, b, u;
    for (uint64_t n = 0; n <= 3000; n += 250) {
        open_user(&a, (seen_policy){0});
        open_user(&b, (seen_policy){0});
        open_user(&u, (seen_policy){0});
        fill_user(&a, 0, n, 1000);
        fill_user(&b, n / 2, n, 1500);
        keep(&u, merged(&u, &a, &b));
        seen_record other = merged(&u, &b, &a);
        assert_int_equal(other.len, u.len);
        if (u.len) assert_memory_equal(other.data, u.bytes, u.len);
        assert_int_equal(seen_exposure_validate(record_of(&u)), SEEN_OK);

        /* Room for 5000: all of both are there. */
        struct test_batch batch = test_batch_new(0, n + n / 2 + 1);
        seen_exposure_maybe_many(u.x, record_of(&u), 0,
                                 seen_keys_of(batch.keys, n + n / 2),
                                 batch.answers);
        for (size_t i = 0; i < n + n / 2 && n <= 2000; i++)
            assert_true(batch.answers[i]);
        test_batch_free(&batch);

        /* A record with itself is itself; with nobody, too. */
        seen_record self = merged(&u, &a, &a);
        assert_int_equal(self.len, a.len);
        if (a.len) assert_memory_equal(self.data, a.bytes, a.len);
        static struct user nobody;
        open_user(&nobody, (seen_policy){0});
        seen_record alone = merged(&u, &a, &nobody);
        assert_true(alone.len <= a.len);
        close_user(&nobody);
        close_user(&a);
        close_user(&b);
        close_user(&u);
    }
}

/* Generations of one mark have one time, and in their record no order by what they
 * hold: they meet again all the same, and none pushes another out. */
static void generations_of_one_time_meet_again(void **state)
{
    (void)state;
    static struct user u;
    open_user(&u, (seen_policy){.items = 10, .generations = 10, .fpp = 1e-6});
    struct test_batch b = test_batch_new(0, 100);
    seen_record result;
    assert_int_equal(seen_exposure_mark(u.x, (seen_record){0}, 5,
                                        seen_keys_of(b.keys, 100), NULL,
                                        &result),
                     SEEN_OK);
    keep(&u, result);
    keep(&u, merged(&u, &u, &u));
    seen_exposure_info info = {.size = sizeof info};
    assert_int_equal(seen_exposure_info_of(u.x, record_of(&u), 5, &info),
                     SEEN_OK);
    assert_int_equal(info.items, 100);
    seen_exposure_maybe_many(u.x, record_of(&u), 5, seen_keys_of(b.keys, 100),
                             b.answers);
    for (size_t i = 0; i < 100; i++)
        assert_true(b.answers[i]);
    seen_record again = merged(&u, &u, &u);
    assert_int_equal(again.len, u.len);
    assert_memory_equal(again.data, u.bytes, u.len);
    test_batch_free(&b);
    close_user(&u);
}

static void another_secret_is_noticed(void **state)
{
    (void)state;
    static struct user u;
    static const uint8_t other[16] = {9};
    open_user(&u, (seen_policy){0});
    fill_user(&u, 0, 50, 5);
    seen_exposure *x;
    seen_record result;
    bool answer;
    seen_key key = {"a", 1};
    assert_int_equal(seen_exposure_new(&x, NULL, other, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_exposure_maybe_many(x, record_of(&u), 0,
                                              seen_keys_of(&key, 1), &answer),
                     SEEN_MISMATCH);
    assert_int_equal(seen_exposure_mark(x, record_of(&u), 0,
                                        seen_keys_of(&key, 1), NULL, &result),
                     SEEN_MISMATCH);
    seen_exposure_free(x);
    close_user(&u);
}

static void policies_are_checked(void **state)
{
    (void)state;
    static const seen_policy bad[] = {{.items = (1 << 20) + 1},
                                      {.generations = 65},
                                      {.fpp = 1e-10},
                                      {.fpp = 0.6},
                                      {.fpp = -1},
                                      {.ttl_ms = (uint64_t)1 << 48},
                                      {.reserved = {1}},
                                      {.items = 1 << 20, .fpp = 1e-7}};
    seen_exposure *x = NULL;
    seen_error e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(seen_policy_check(&bad[i], &e), SEEN_INVALID);
        assert_int_equal(strncmp(e.field, "policy", 6), 0);
        assert_int_equal(strncmp(e.text, e.field, strlen(e.field)), 0);
        assert_int_equal(seen_exposure_new(&x, &bad[i], secret, NULL, NULL),
                         SEEN_INVALID);
    }
    assert_int_equal(seen_policy_check(NULL, &e), SEEN_OK);
    assert_string_equal(e.text, "");
    assert_int_equal(seen_policy_check(&(seen_policy){0}, NULL), SEEN_OK);
    assert_int_equal(seen_exposure_new(&x, NULL, NULL, NULL, NULL),
                     SEEN_INVALID);
    assert_null(x);
}

/* Every flipped bit: an error, or answers; validate knows which bytes a mark
 * could have written. */
static void hostile_records_do_no_harm(void **state)
{
    (void)state;
    static struct user u;
    struct test_rng r = test_rng(501);
    for (int round = 0; round < 30; round++) {
        open_user(&u, (seen_policy){.items = 20, .generations = 3});
        fill_user(&u, 0, 10 * (1 + test_below(&r, 7)), 99);
        for (size_t bit = 0; bit < 8 * u.len; bit++) {
            u.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct test_batch b = test_batch_new(0, 40);
            seen_record result = {0};
            seen_exposure_info info = {.size = sizeof info};
            size_t n;
            seen_status valid = seen_exposure_validate(record_of(&u));
            seen_exposure_maybe_many(u.x, record_of(&u), 5,
                                     seen_keys_of(b.keys, 40), b.answers);
            seen_exposure_info_of(u.x, record_of(&u), 5, &info);
            seen_status marked = seen_exposure_mark(
                u.x, record_of(&u), 5, seen_keys_of(b.keys, 40), NULL, &result);
            if (marked == SEEN_OK && valid == SEEN_OK)
                assert_int_equal(seen_exposure_validate(result), SEEN_OK);
            seen_exposure_forget(u.x, record_of(&u), 5,
                                 seen_keys_of(b.keys, 40), &result);
            seen_exposure_merge(u.x, record_of(&u), record_of(&u), 5, &result);
            test_exposure_take(u.x, record_of(&u), 5, b.keys, 40, 3, &n,
                               &result);
            test_batch_free(&b);
            u.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t len = 1; len < u.len; len++) {
            seen_record cut = {u.bytes, len};
            seen_status status = seen_exposure_validate(cut);
            /* A cut between two generations is a shorter record. */
            assert_true(status == SEEN_CORRUPT || status == SEEN_OK);
        }
        close_user(&u);
    }
}

/* Hashes whose fingerprints, and the hashes themselves, end alike. */
#define ALIKE 100000

static uint64_t *make_alike(const seen_exposure *x)
{
    const uint64_t below = seen_universe_of(x->universe);
    uint64_t *h = malloc(ALIKE * sizeof *h);
    assert_non_null(h);
    assert_true(below >> 19 >= ALIKE);
    for (uint64_t i = 0; i < ALIKE; i++) {
        const uint64_t print = i << 19;
        h[i] = (uint64_t)((((seen_u128)print << 64) + below - 1) / below);
        h[i] += (uint64_t)1 << 20; /* up to the next that ends in zeros */
        h[i] &= ~(((uint64_t)1 << 20) - 1);
        assert_int_equal(seen_print_of(h[i], x->universe) & 0x7ffff, 0);
    }
    return h;
}

/* How often one looks into a table that they are put into, as change.c and ask.c
 * do. */
static uint64_t count_looks(const seen_exposure *x, const uint64_t *values)
{
    const uint64_t places = seen_places_for(ALIKE), mask = places - 1;
    bool *full = calloc(places, sizeof *full);
    assert_non_null(full);
    uint64_t looks = 0;
    for (size_t i = 0; i < ALIKE && looks < 100 * ALIKE; i++) {
        uint64_t at = seen_place_of(x, values[i], mask);
        for (looks++; full[at] && looks < 100 * ALIKE; looks++)
            at = (at + 1) & mask;
        full[at] = true;
    }
    free(full);
    return looks;
}

/* Who knows the secret chooses the items: a table that is a quarter full needs
 * hardly more than one look for each of them all the same. */
static void items_that_end_alike_are_as_quick(void **state)
{
    (void)state;
    const seen_policy p = {.items = ALIKE, .fpp = 1e-6};
    seen_exposure *x, *y;
    assert_int_equal(seen_exposure_new(&x, &p, secret, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_exposure_new(&y, &p, secret, NULL, NULL), SEEN_OK);
    uint64_t *h = make_alike(x), *prints = malloc(ALIKE * sizeof *prints);
    bool *seen = malloc(ALIKE);
    assert_true(prints && seen);
    for (size_t i = 0; i < ALIKE; i++)
        prints[i] = seen_print_of(h[i], x->universe);
    assert_in_range(count_looks(x, h), ALIKE, 2 * ALIKE);
    assert_in_range(count_looks(x, prints), ALIKE, 2 * ALIKE);

    const struct seen_marks m = {.now_ms = 5, .h = h, .n = ALIKE};
    seen_record a, b, none = {0};
    assert_int_equal(seen_exposure_seen(x, none, 5, h, ALIKE, true, seen),
                     SEEN_OK);
    for (size_t i = 0; i < ALIKE; i++)
        assert_false(seen[i]);
    assert_int_equal(seen_exposure_mark_all(x, none, &m, 1, &a), SEEN_OK);
    assert_int_equal(seen_exposure_mark_all(y, none, &m, 1, &b), SEEN_OK);
    assert_int_equal(a.len, b.len); /* wherever x and y are */
    assert_memory_equal(a.data, b.data, a.len);
    assert_int_equal(seen_exposure_seen(y, a, 5, h, ALIKE, false, seen),
                     SEEN_OK);
    for (size_t i = 0; i < ALIKE; i++)
        assert_true(seen[i]);
    free(h);
    free(prints);
    free(seen);
    seen_exposure_free(x);
    seen_exposure_free(y);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    struct test_batch b = test_batch_new(0, 100);
    for (uint64_t fail_at = 1;; fail_at++) {
        struct test_alloc a;
        test_alloc_init(&a);
        test_alloc_arm(&a, fail_at, true);
        seen_exposure *x = NULL;
        seen_record result = {0};
        size_t taken = 0;
        seen_status status = seen_exposure_new(&x, NULL, secret, &a.as, NULL);
        const void *first = b.keys[0].data;
        if (status == SEEN_OK)
            status = test_exposure_take(x, (seen_record){0}, 5, b.keys, 100, 10,
                                        &taken, &result);
        assert_true(status == SEEN_OK || status == SEEN_NOMEM);
        if (status != SEEN_OK) assert_int_equal(taken, 0);
        assert_ptr_equal(b.keys[0].data, first);
        seen_exposure_free(x);
        assert_int_equal(a.blocks, 0);
        if (status == SEEN_OK) break;
    }
    test_batch_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_agree_with_the_reference),
        cmocka_unit_test(many_marks_in_one_pass_are_the_same),
        cmocka_unit_test(sizes_are_small),
        cmocka_unit_test(rates_are_what_the_record_predicts),
        cmocka_unit_test(bytes_stay_as_they_are),
        cmocka_unit_test(merging_is_commutative_and_keeps_what_fits),
        cmocka_unit_test(generations_of_one_time_meet_again),
        cmocka_unit_test(another_secret_is_noticed),
        cmocka_unit_test(policies_are_checked),
        cmocka_unit_test(hostile_records_do_no_harm),
        cmocka_unit_test(items_that_end_alike_are_as_quick),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    test_announce("exposure");
    return cmocka_run_group_tests_name("exposure", tests, NULL, NULL);
}
