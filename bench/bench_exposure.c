/*
 * bench_exposure.c - what one user has been shown, three ways, in the same run.
 *
 * record   seen_exposure.h under the default policy: 5 generations of 1000
 *          items, 0.1 % in all, bytes in and bytes out
 * filters  a list of classic Bloom filters of 1000 items that share the same
 *          0.1 %, as many as the items need. Candidates are hashed once for all
 *          of them. They are asked and changed in place: what it costs to read
 *          them from bytes and to write them again is left out
 * plain    the ids themselves, 14 bytes each, sorted: asked by bisection; marks
 *          are merged into a new list
 *
 * size     bytes of a user
 * rate     wrong answers of 1e7, against the binomial interval around the rate
 *          that the record predicts of itself
 * fresh    which of 200 candidates, half of them shown, are new; us for a call
 * mark     10 new items, and which of them are new: with a newest generation
 *          that has room for just them (the dearest moment), and with one that
 *          is full (a new one begins)
 * take     10 of 200 candidates, half of them shown
 *
 * A round is one call for each of 64 users. The contenders take turns, and the
 * plain ids are 4.5 MB: records have left the nearer caches when it is their turn,
 * as they have in a server. The limit is the keyed hashing of the same items
 * alone, of 128 bits as filters need it; a record needs 64.
 */
#include "seen_exposure.h"

#include "bench.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS        64
#define ROUNDS       60
#define PROBES       10000000
#define ID_LEN       14
#define GENERATIONS  5
#define ITEMS        1000 /* of a generation */
#define FPP          0.001
#define NOW          UINT64_C(1790000000000)
#define ITEMS_MAX    (GENERATIONS * ITEMS)
#define ASKED_MAX    10000
#define MARKED       10
#define SHOWN_BEFORE UINT64_C(0)
#define NEVER_SHOWN  (UINT64_C(1) << 31)

static const uint8_t secret[16] = "no secret at all";

static void must(seen_status status)
{
    if (status != SEEN_OK) bench_die("%s", seen_strerror(status));
}

static void *room(size_t size)
{
    void *p = malloc(size);
    if (!p) bench_die("no memory");
    return p;
}

/* ---- Ids ---------------------------------------------------------------- */

typedef struct id {
    char text[ID_LEN];
} id;

/* Item `number` of a user, as 14 hexadecimal digits. */
static id id_of(uint64_t user, uint64_t number)
{
    char text[17];
    id out;
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)bench_mix(user << 32 | number));
    memcpy(out.text, text, ID_LEN);
    return out;
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, ID_LEN);
}

struct ids {
    size_t n;
    id *id;
    seen_key *key, *lent; /* in order; and for a call that moves them */
};

static struct ids ids_new(size_t n)
{
    struct ids b = {n, room(n * sizeof(id)), room(n * sizeof(seen_key)),
                    room(n * sizeof(seen_key))};
    for (size_t i = 0; i < n; i++)
        b.key[i] = (seen_key){b.id[i].text, ID_LEN};
    return b;
}

static void ids_free(struct ids *b)
{
    free(b->id);
    free(b->key);
    free(b->lent);
}

static seen_key *lend(struct ids *b)
{
    memcpy(b->lent, b->key, b->n * sizeof *b->key);
    return b->lent;
}

/* ---- Users -------------------------------------------------------------- */

struct user {
    uint8_t *record;
    size_t len;
    size_t n_plain;
    id *plain; /* sorted */
    uint32_t n_filters;
    seen_filter *filter[GENERATIONS];
    struct ids asked, marked;
};

static struct user users[USERS];
static seen_exposure *x;
static id *merged;        /* room for what becomes of a plain list */
static seen_hash *hashes; /* and for hashes and answers */
static bool *answers, *more;
static size_t *indices;

static seen_record record_of(const struct user *u)
{
    return (seen_record){u->record, u->len};
}

/* Shown ten at a time, as feeds do. */
static void make_record(struct user *u, struct ids *shown)
{
    u->record = room(2 * ITEMS_MAX + 64);
    u->len = 0;
    for (size_t i = 0; i < shown->n; i += MARKED) {
        seen_record after;
        must(seen_exposure_mark(x, record_of(u), NOW + i,
                                seen_keys_of(shown->key + i, MARKED), NULL,
                                &after));
        memcpy(u->record, after.data, after.len);
        u->len = after.len;
    }
}

static seen_spec filter_spec(void)
{
    return (seen_spec){.kind = SEEN_BLOOM,
                       .items = ITEMS,
                       .fpp = FPP / GENERATIONS,
                       .flags = SEEN_KEYED,
                       .secret = secret};
}

static void make_filters(struct user *u, struct ids *shown)
{
    const seen_spec spec = filter_spec();
    u->n_filters = 0;
    for (size_t i = 0; i < shown->n; i += ITEMS) {
        size_t n = shown->n - i < ITEMS ? shown->n - i : ITEMS;
        seen_filter **f = &u->filter[u->n_filters++];
        must(seen_new(f, &spec, NULL));
        must(seen_add_many(*f, seen_keys_of(shown->key + i, n), NULL));
    }
}

static void make_user(uint64_t number, size_t items, size_t candidates)
{
    struct user *u = &users[number];
    struct ids shown = ids_new(items);
    for (size_t i = 0; i < items; i++)
        shown.id[i] = id_of(number, SHOWN_BEFORE + i);
    make_record(u, &shown);
    make_filters(u, &shown);
    u->plain = room(items * sizeof *u->plain);
    u->n_plain = items;
    memcpy(u->plain, shown.id, items * sizeof *u->plain);
    qsort(u->plain, items, sizeof *u->plain, by_id);
    ids_free(&shown);

    u->asked = ids_new(candidates);
    for (size_t i = 0; i < candidates; i++) {
        uint64_t random = bench_mix(number << 40 | i);
        u->asked.id[i] = random & 1 ? id_of(number, bench_below(random, items))
                                    : id_of(number, NEVER_SHOWN + i);
    }
    u->marked = ids_new(MARKED);
    for (size_t i = 0; i < MARKED; i++)
        u->marked.id[i] = id_of(number, NEVER_SHOWN + candidates + i);
}

static void make_users(size_t items, size_t candidates)
{
    for (uint64_t i = 0; i < USERS; i++)
        make_user(i, items, candidates);
}

static void free_users(void)
{
    for (int i = 0; i < USERS; i++) {
        struct user *u = &users[i];
        for (uint32_t k = 0; k < u->n_filters; k++)
            seen_free(u->filter[k]);
        free(u->record);
        free(u->plain);
        ids_free(&u->asked);
        ids_free(&u->marked);
    }
}

/* ---- Contenders --------------------------------------------------------- */

/* How many are left of the candidates, or have been taken; 0 for marks. */
struct contender {
    const char *name;
    size_t (*fresh)(struct user *u, seen_key *items, size_t n);
    void (*mark)(struct user *u, const seen_key *items, size_t n);
    size_t (*take)(struct user *u, seen_key *items, size_t n);
};

static size_t record_fresh(struct user *u, seen_key *items, size_t n)
{
    size_t fresh;
    must(seen_exposure_fresh(x, record_of(u), NOW + ITEMS_MAX,
                             seen_keys_of(items, n), indices, &fresh));
    return fresh;
}

static void record_mark(struct user *u, const seen_key *items, size_t n)
{
    seen_record after;
    must(seen_exposure_mark(x, record_of(u), NOW + ITEMS_MAX,
                            seen_keys_of(items, n), answers, &after));
}

static size_t record_take(struct user *u, seen_key *items, size_t n)
{
    size_t taken;
    seen_record after;
    must(seen_exposure_take(x, record_of(u), NOW + ITEMS_MAX,
                            seen_keys_of(items, n), MARKED, indices, &taken,
                            &after));
    return taken;
}

static size_t filters_fresh(struct user *u, seen_key *items, size_t n)
{
    size_t fresh = 0;
    seen_hash_many(u->filter[0], seen_keys_of(items, n), hashes);
    seen_maybe_many(u->filter[0], seen_keys_hashes(hashes, n), answers);
    for (uint32_t k = 1; k < u->n_filters; k++) {
        seen_maybe_many(u->filter[k], seen_keys_hashes(hashes, n), more);
        for (size_t i = 0; i < n; i++)
            answers[i] |= more[i];
    }
    for (size_t i = 0; i < n; i++)
        if (!answers[i]) items[fresh++] = items[i];
    return fresh;
}

static void filters_mark(struct user *u, const seen_key *items, size_t n)
{
    must(seen_add_many(u->filter[u->n_filters - 1], seen_keys_of(items, n),
                       NULL));
}

/* Marks others than it has found: these would be gone in the next round. */
static size_t filters_take(struct user *u, seen_key *items, size_t n)
{
    size_t fresh = filters_fresh(u, items, n);
    if (fresh > MARKED) fresh = MARKED;
    filters_mark(u, u->marked.key, fresh);
    return fresh;
}

static size_t plain_fresh(struct user *u, seen_key *items, size_t n)
{
    size_t fresh = 0;
    for (size_t i = 0; i < n; i++)
        if (!bsearch(items[i].data, u->plain, u->n_plain, ID_LEN, by_id))
            items[fresh++] = items[i];
    return fresh;
}

/* Sorts a copy of the new ones and merges from the end. */
static void plain_mark(struct user *u, const seen_key *items, size_t n)
{
    id added[MARKED];
    for (size_t i = 0; i < n; i++)
        memcpy(&added[i], items[i].data, ID_LEN);
    qsort(added, n, sizeof *added, by_id);
    size_t left = u->n_plain;
    for (size_t k = n; k-- > 0;) {
        size_t low = 0, high = left;
        while (low < high) {
            size_t half = low + (high - low) / 2;
            if (by_id(&u->plain[half], &added[k]) < 0)
                low = half + 1;
            else
                high = half;
        }
        memcpy(merged + low + k + 1, u->plain + low,
               (left - low) * sizeof *merged);
        merged[low + k] = added[k];
        left = low;
    }
    memcpy(merged, u->plain, left * sizeof *merged);
}

static size_t plain_take(struct user *u, seen_key *items, size_t n)
{
    size_t fresh = plain_fresh(u, items, n);
    if (fresh > MARKED) fresh = MARKED;
    plain_mark(u, items, fresh);
    return fresh;
}

static const struct contender contenders[] = {
    {"record", record_fresh, record_mark, record_take},
    {"filters", filters_fresh, filters_mark, filters_take},
    {"plain ids", plain_fresh, plain_mark, plain_take},
};
#define CONTENDERS (sizeof contenders / sizeof *contenders)

/* ---- Measuring ---------------------------------------------------------- */

enum what {
    FRESH,
    MARK,
    TAKE
};

/* us of a call. */
static double round_of(const struct contender *c, enum what what)
{
    size_t sum = 0, n = users[0].asked.n;
    for (int i = 0; i < USERS; i++)
        lend(&users[i].asked);
    double start = bench_seconds();
    for (int i = 0; i < USERS; i++) {
        struct user *u = &users[i];
        if (what == FRESH)
            sum += c->fresh(u, u->asked.lent, n);
        else if (what == MARK)
            c->mark(u, u->marked.key, MARKED);
        else
            sum += c->take(u, u->asked.lent, n);
    }
    double spent = bench_seconds() - start;
    /* About half are fresh, some of them withheld; ten are always found. */
    if ((what == FRESH && (sum < USERS * n / 3 || sum > USERS * n * 2 / 3)) ||
        (what == TAKE && sum != USERS * MARKED))
        bench_die("%s: wrong answers", c->name);
    return spent / USERS * 1e6;
}

static double hash_round(enum what what)
{
    double start = bench_seconds();
    for (int i = 0; i < USERS; i++) {
        struct ids *b = what == MARK ? &users[i].marked : &users[i].asked;
        seen_hash_many(users[i].filter[0], seen_keys_of(b->key, b->n), hashes);
    }
    return (bench_seconds() - start) / USERS * 1e6;
}

static void measure(const char *name, enum what what, double aim)
{
    struct bench_series us[CONTENDERS] = {0}, hashing = {0};
    const size_t n = what == MARK ? MARKED : users[0].asked.n;
    char note[64];
    for (int i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < CONTENDERS; k++)
            bench_round(&us[k], round_of(&contenders[k], what));
        bench_round(&hashing, hash_round(what));
    }
    snprintf(note, sizeof note, "%.1f ns/%s", bench_best(&us[0]) / n * 1e3,
             what == MARK ? "item" : "candidate");
    for (size_t k = 1; k < CONTENDERS; k++)
        bench_print(&(struct bench_row){
            .name = name,
            .unit = "us",
            .ours = us[0],
            .peer_name = contenders[k].name,
            .peer = us[k],
            .limit_name = "hashing",
            .limit = hashing,
            .what = k == 1 && aim > 0 ? BENCH_OURS_AT_MOST : BENCH_NO_AIM,
            .aim = aim,
            .note = k == 1 ? note : NULL});
}

/* ---- Rows --------------------------------------------------------------- */

static void size_rows(void)
{
    static const struct {
        size_t items;
        double aim;
    } sizes[] = {{10, 42}, {100, 260}, {1000, 1950}, {5000, 9400}};
    const seen_spec spec = filter_spec();
    seen_plan plan = {.size = sizeof plan};
    must(seen_plan_for(&spec, &plan, NULL));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i].items;
        const double filters = ceil((double)n / ITEMS);
        char name[64];
        make_user(0, n, 1);
        snprintf(name, sizeof name, "size, %zu items", n);
        struct bench_row row = {
            .name = name,
            .unit = "bytes",
            .ours = bench_once((double)users[0].len),
            .peer_name = "filters",
            .peer = bench_once(filters * ceil((double)plan.bits / 8)),
            .limit_name = "log2(5/p)",
            .limit = bench_once((double)n * log2(GENERATIONS / FPP) / 8),
            .what = BENCH_OURS_AT_MOST,
            .aim = sizes[i].aim};
        bench_print(&row);
        row.peer_name = "plain ids";
        row.peer = bench_once((double)(n * ID_LEN));
        row.what = BENCH_NO_AIM;
        bench_print(&row);
        free_users();
        memset(users, 0, sizeof users);
    }
}

static uint64_t wrong_answers(const struct user *u, uint64_t probes)
{
    struct ids b = ids_new(ASKED_MAX);
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < probes; at += b.n) {
        for (size_t i = 0; i < b.n; i++)
            b.id[i] = id_of(0, NEVER_SHOWN + at + i);
        must(seen_exposure_maybe_many(x, record_of(u), NOW + ITEMS_MAX,
                                      seen_keys_of(b.key, b.n), answers));
        for (size_t i = 0; i < b.n; i++)
            wrong += answers[i];
    }
    ids_free(&b);
    return wrong;
}

static void rate_rows(uint64_t probes)
{
    for (uint32_t g = 1; g <= GENERATIONS; g++) {
        seen_exposure_info info = {.size = sizeof info};
        char name[64], note[64];
        make_user(0, (size_t)g * ITEMS, 1);
        must(seen_exposure_info_of(x, record_of(&users[0]), NOW + ITEMS_MAX,
                                   &info));
        if (info.generations != g) bench_die("not %u generations", g);
        const double n = (double)probes, p = info.fpp_now;
        const double wrong = (double)wrong_answers(&users[0], probes);
        snprintf(name, sizeof name, "wrong of %.0e, %u generation%s", n, g,
                 g > 1 ? "s" : "");
        snprintf(note, sizeof note, "the record says %.6f", p);
        bench_print(&(struct bench_row){.name = name,
                                        .unit = "items",
                                        .ours = bench_once(wrong),
                                        .limit_name = "predicted",
                                        .limit = bench_once(n * p),
                                        .what = BENCH_OURS_WITHIN,
                                        .aim_low = bench_least(n, p),
                                        .aim = bench_most(n, p),
                                        .note = note});
        if (g == GENERATIONS)
            bench_print(&(struct bench_row){.name = name,
                                            .unit = "items",
                                            .ours = bench_once(wrong),
                                            .limit_name = "promise",
                                            .limit = bench_once(n * FPP),
                                            .what = BENCH_LIMIT_AT_MOST,
                                            .aim = 1});
        free_users();
        memset(users, 0, sizeof users);
    }
}

static void time_rows(void)
{
    make_users(ITEMS_MAX, 200);
    measure("fresh, 200 candidates, 5000 items", FRESH, 20);
    measure("take 10 of 200, 5000 items", TAKE, 0);
    measure("mark 10, 5000 items, a new generation", MARK, 15);
    free_users();
    make_users(ITEMS_MAX - MARKED, 200);
    measure("mark 10, 4990 items", MARK, 15);
    measure("take 10 of 200, 4990 items", TAKE, 0);
    free_users();
    make_users(100, 200);
    measure("fresh, 200 candidates, 100 items", FRESH, 5);
    measure("mark 10, 100 items", MARK, 0);
    free_users();
    make_users(ITEMS_MAX, ASKED_MAX);
    measure("fresh, 10,000 candidates, 5000 items", FRESH, 0);
    free_users();
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "exposure", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);
    must(seen_exposure_new(&x, NULL, secret, NULL, NULL));
    merged = room((ITEMS_MAX + MARKED) * sizeof *merged);
    hashes = room(ASKED_MAX * sizeof *hashes);
    answers = room(ASKED_MAX * sizeof *answers);
    more = room(ASKED_MAX * sizeof *more);
    indices = room(ASKED_MAX * sizeof *indices);
    size_rows();
    rate_rows(o.quick ? PROBES / 10 : PROBES);
    time_rows();
    free(merged);
    free(hashes);
    free(answers);
    free(more);
    free(indices);
    seen_exposure_free(x);
    return bench_finish();
}
