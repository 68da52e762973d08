/*
 * bench_window.c - keeping the last N keys, three ways, in the same run.
 *
 * window   SEEN_WINDOW with g generations: the lines of a key in all of them
 *          lie side by side
 * naive    g + 1 SEEN_BLOCKED filters of N / g keys each, the oldest cleared
 *          and used again; a lookup asks all of them. The same bits at 1 %:
 *          what differs is where the lines lie. At 0.1 % the planner gives
 *          each of them two lines a key, a window has one and more memory
 * apbf     an age-partitioned Bloom filter (Shtul, Baquero, Almeida 2020):
 *          k + l slices of bits, an add sets a bit in each of the k newest, a
 *          lookup looks for k set bits in consecutive slices, and every N / l
 *          adds the oldest slice becomes the newest. k and l are the smallest
 *          filter for the rate of those with at most 64 slices
 *
 * All are measured when they have turned over three times and are as full as
 * they get: one key later something leaves. Bits are per key that is promised
 * to be there, N, not per key that happens to be.
 *
 * Keys are hashed beforehand. A round is a million lookups, or adds, in blocks
 * of 65536; the contenders take turns. Large batches are what suits `naive`
 * best: it asks one filter after the other, each small enough for a nearer
 * cache. "One by one" is what a server does, half of the keys present.
 */
#include "seen.h"

#include "bench.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS        9
#define ROUND_BLOCKS  16
#define SINGLE_BLOCKS 4
#define PROBES        4000000
#define SLOTS_MAX     64
#define TURNS         3

static struct bench_hashes block;

static void must(seen_status status)
{
    if (status != SEEN_OK) bench_die("%s", seen_strerror(status));
}

/* ---- A contender -------------------------------------------------------- */

struct contender {
    void *self;
    void (*add)(void *self, const seen_hash *h, size_t n);
    void (*ask)(const void *self, const seen_hash *h, size_t n, bool *answers);
    bool (*ask_one)(const void *self, seen_hash h);
    void (*close)(void *self);
    double bits;   /* per key of the window */
    uint64_t step; /* keys of a generation */
    uint64_t next; /* number of the next key to add */
    struct bench_series absent, present, single, adds;
    double rate;
};

/* ---- SEEN_WINDOW -------------------------------------------------------- */

static void window_add(void *self, const seen_hash *h, size_t n)
{
    must(seen_add_many(self, seen_keys_hashes(h, n), NULL));
}

static void window_ask(const void *self, const seen_hash *h, size_t n,
                       bool *answers)
{
    seen_maybe_many(self, seen_keys_hashes(h, n), answers);
}

static bool window_ask_one(const void *self, seen_hash h)
{
    return seen_maybe_hashed(self, h);
}

static void window_close(void *self)
{
    seen_free(self);
}

static struct contender window_open(uint64_t last, double fpp, uint32_t g)
{
    seen_filter *f;
    seen_info info = {.size = sizeof info};
    must(seen_new(
        &f,
        &(seen_spec){
            .kind = SEEN_WINDOW, .last = last, .fpp = fpp, .generations = g},
        NULL));
    seen_measure(f, &info);
    return (struct contender){.self = f,
                              .add = window_add,
                              .ask = window_ask,
                              .ask_one = window_ask_one,
                              .close = window_close,
                              .bits = (double)info.bits / (double)last,
                              .step = (last + g - 1) / g};
}

/* ---- Rotating filters --------------------------------------------------- */

struct naive {
    uint32_t filters, newest;
    uint64_t share, left; /* keys of a filter; until the next takes over */
    seen_filter *filter[SLOTS_MAX];
};

static void naive_add(void *self, const seen_hash *h, size_t n)
{
    struct naive *w = self;
    while (n > 0) {
        if (w->left == 0) {
            w->newest = (w->newest + 1) % w->filters;
            seen_clear(w->filter[w->newest]);
            w->left = w->share;
        }
        size_t now = n < w->left ? n : (size_t)w->left;
        must(seen_add_many(w->filter[w->newest], seen_keys_hashes(h, now),
                           NULL));
        h += now, n -= now, w->left -= now;
    }
}

static void naive_ask(const void *self, const seen_hash *h, size_t n,
                      bool *answers)
{
    const struct naive *w = self;
    static bool one[BENCH_HASHES];
    memset(answers, 0, n * sizeof *answers);
    for (uint32_t f = 0; f < w->filters; f++) {
        seen_maybe_many(w->filter[f], seen_keys_hashes(h, n), one);
        for (size_t i = 0; i < n; i++)
            answers[i] |= one[i];
    }
}

/* From the newest, which most likely has it. */
static bool naive_ask_one(const void *self, seen_hash h)
{
    const struct naive *w = self;
    for (uint32_t f = 0; f < w->filters; f++)
        if (seen_maybe_hashed(
                w->filter[(w->newest + w->filters - f) % w->filters], h))
            return true;
    return false;
}

static void naive_close(void *self)
{
    struct naive *w = self;
    for (uint32_t f = 0; f < w->filters; f++)
        seen_free(w->filter[f]);
    free(w);
}

static struct contender naive_open(uint64_t last, double fpp, uint32_t g)
{
    struct naive *w = calloc(1, sizeof *w);
    if (!w) bench_die("no memory");
    w->filters = g + 1;
    w->share = (last + g - 1) / g;
    double bits = 0, each = -expm1(log1p(-fpp) / w->filters);
    for (uint32_t f = 0; f < w->filters; f++) {
        seen_info info = {.size = sizeof info};
        must(seen_new(
            &w->filter[f],
            &(seen_spec){.kind = SEEN_BLOCKED, .items = w->share, .fpp = each},
            NULL));
        seen_measure(w->filter[f], &info);
        bits += (double)info.bits;
    }
    return (struct contender){.self = w,
                              .add = naive_add,
                              .ask = naive_ask,
                              .ask_one = naive_ask_one,
                              .close = naive_close,
                              .bits = bits / (double)last,
                              .step = w->share};
}

/* ---- An age-partitioned Bloom filter ------------------------------------ */

struct apbf {
    uint32_t k, l, newest; /* newest: which slice is number 0 */
    uint64_t share, left, m;
    uint64_t *bits; /* k + l slices of m, m a multiple of 64 */
};

/* Its rate just before a shift: slice i has the keys of i + 1 generations, of
 * k at most, and those make half of its bits 1. */
static double apbf_fpp(uint32_t k, uint32_t l)
{
    double run[SLOTS_MAX + 1] = {1};
    for (uint32_t i = 0; i < k + l; i++) {
        double fill = 1 - exp2(-(double)(i + 1 < k ? i + 1 : k) / k);
        double broken = 0;
        run[k] += run[k - 1] * fill;
        for (uint32_t c = k; c-- > 0;) {
            broken += run[c] * (1 - fill);
            run[c] = c ? run[c - 1] * fill : 0;
        }
        run[0] = broken;
    }
    return run[k];
}

static double apbf_bits(uint32_t k, uint32_t l)
{
    return (double)(k + l) * k / (l * log(2));
}

static void apbf_shape(double fpp, uint32_t *best_k, uint32_t *best_l)
{
    *best_k = 0;
    for (uint32_t k = 2; k < SLOTS_MAX; k++)
        for (uint32_t l = 1; k + l <= SLOTS_MAX; l++)
            if (apbf_fpp(k, l) <= fpp &&
                (!*best_k || apbf_bits(k, l) < apbf_bits(*best_k, *best_l)))
                *best_k = k, *best_l = l;
}

/* The bit of a key in slice number i, counted from the newest. */
static inline uint64_t apbf_bit(const struct apbf *f, seen_hash h, uint32_t i)
{
    uint32_t all = f->k + f->l, slice = f->newest + i;
    if (slice >= all) slice -= all;
    return slice * f->m + bench_below(bench_mix(h.lo + slice), f->m);
}

static inline const uint64_t *apbf_word(const struct apbf *f, seen_hash h,
                                        uint32_t i)
{
    return &f->bits[apbf_bit(f, h, i) / 64];
}

static void apbf_shift(struct apbf *f)
{
    f->newest = (f->newest + f->k + f->l - 1) % (f->k + f->l);
    memset(f->bits + f->newest * f->m / 64, 0, f->m / 8);
    f->left = f->share;
}

#define APBF_RING 16

static void apbf_add(void *self, const seen_hash *h, size_t n)
{
    struct apbf *f = self;
    for (size_t i = 0; i < n; i++) {
        if (f->left-- == 0) {
            apbf_shift(f);
            f->left--;
        }
        if (i + APBF_RING < n)
            for (uint32_t s = 0; s < f->k; s++)
                __builtin_prefetch(apbf_word(f, h[i + APBF_RING], s), 1);
        for (uint32_t s = 0; s < f->k; s++) {
            uint64_t bit = apbf_bit(f, h[i], s);
            f->bits[bit / 64] |= (uint64_t)1 << bit % 64;
        }
    }
}

/* The paper's walk: from slice l upwards while bits are set; at a gap go k
 * back, where what was counted above the gap still counts. */
static inline bool apbf_maybe(const struct apbf *f, seen_hash h)
{
    int64_t i = f->l;
    uint32_t before = 0, count = 0;
    while (i >= 0) {
        uint64_t bit = apbf_bit(f, h, (uint32_t)i);
        if (f->bits[bit / 64] >> bit % 64 & 1) {
            i++;
            if (before + ++count == f->k) return true;
        } else {
            i -= f->k;
            before = count;
            count = 0;
        }
    }
    return false;
}

static void apbf_ask(const void *self, const seen_hash *h, size_t n,
                     bool *answers)
{
    const struct apbf *f = self;
    for (size_t i = 0; i < n; i++) {
        if (i + APBF_RING < n) /* where the walk goes if it meets only gaps */
            for (int64_t s = f->l; s >= 0; s -= f->k)
                __builtin_prefetch(apbf_word(f, h[i + APBF_RING], (uint32_t)s));
        answers[i] = apbf_maybe(f, h[i]);
    }
}

static bool apbf_ask_one(const void *self, seen_hash h)
{
    return apbf_maybe(self, h);
}

static void apbf_close(void *self)
{
    struct apbf *f = self;
    free(f->bits);
    free(f);
}

static struct contender apbf_open(uint64_t last, double fpp)
{
    struct apbf *f = calloc(1, sizeof *f);
    if (!f) bench_die("no memory");
    apbf_shape(fpp, &f->k, &f->l);
    f->share = (last + f->l - 1) / f->l;
    f->m = ((uint64_t)((double)f->share * f->k / log(2)) + 63) / 64 * 64;
    f->left = f->share;
    f->bits = calloc((f->k + f->l) * f->m / 64, sizeof *f->bits);
    if (!f->bits) bench_die("no memory");
    return (struct contender){.self = f,
                              .add = apbf_add,
                              .ask = apbf_ask,
                              .ask_one = apbf_ask_one,
                              .close = apbf_close,
                              .bits =
                                  (double)((f->k + f->l) * f->m) / (double)last,
                              .step = f->share};
}

/* ---- Rounds ------------------------------------------------------------- */

/* Add until key number `to`; seconds. */
static double add_until(struct contender *c, uint64_t to)
{
    double spent = 0;
    while (c->next < to) {
        uint64_t left = to - c->next;
        bench_hashes_run(&block, c->next,
                         left < BENCH_HASHES ? (size_t)left : BENCH_HASHES);
        double start = bench_seconds();
        c->add(c->self, block.hash, block.n);
        spent += bench_seconds() - start;
        c->next += block.n;
    }
    return spent;
}

/* As full as it gets: a whole number of generations, less one key. */
static void settle(struct contender *c, uint64_t last)
{
    add_until(c, (TURNS * last / c->step + 1) * c->step - 1);
}

/* The keys of a block that are there become some of the last ones. */
static void make_recent(const struct contender *c, uint64_t last)
{
    for (size_t i = 0; i < block.n; i++)
        if (block.there[i])
            block.hash[i] =
                bench_hash(c->next - 1 - bench_below(block.hash[i].lo, last));
}

/* Keys that were never added, or the last ones that were. */
static double ask_round(struct contender *c, uint64_t last, bool there,
                        uint64_t *wrong, uint64_t blocks)
{
    double spent = 0;
    for (uint64_t i = 0; i < blocks; i++) {
        bench_hashes_ask(&block, last, there ? BENCH_PRESENT : BENCH_ABSENT);
        make_recent(c, last);
        double start = bench_seconds();
        c->ask(c->self, block.hash, block.n, block.answer);
        spent += bench_seconds() - start;
        bench_hashes_check(&block);
        for (size_t j = 0; wrong && j < block.n; j++)
            *wrong += block.answer[j];
    }
    return spent / (double)blocks / BENCH_HASHES * 1e9;
}

static double single_round(struct contender *c, uint64_t last)
{
    double spent = 0;
    for (int i = 0; i < SINGLE_BLOCKS; i++) {
        bench_hashes_ask(&block, last, BENCH_HALF);
        make_recent(c, last);
        double start = bench_seconds();
        for (size_t j = 0; j < block.n; j++)
            block.answer[j] = c->ask_one(c->self, block.hash[j]);
        spent += bench_seconds() - start;
        bench_hashes_check(&block);
    }
    return spent / SINGLE_BLOCKS / BENCH_HASHES * 1e9;
}

static void measure(struct contender *c, size_t n, uint64_t last)
{
    const uint64_t blocks = PROBES / BENCH_HASHES;
    for (size_t i = 0; i < n; i++) {
        uint64_t wrong = 0;
        settle(&c[i], last);
        ask_round(&c[i], last, false, &wrong, blocks);
        c[i].rate = (double)wrong / ((double)blocks * BENCH_HASHES);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            bench_round(&c[i].absent,
                        ask_round(&c[i], last, false, NULL, ROUND_BLOCKS));
            bench_round(&c[i].present,
                        ask_round(&c[i], last, true, NULL, ROUND_BLOCKS));
            bench_round(&c[i].single, single_round(&c[i], last));
        }
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            const uint64_t keys = ROUND_BLOCKS * BENCH_HASHES;
            bench_round(&c[i].adds, add_until(&c[i], c[i].next + keys) /
                                        (double)keys * 1e9);
        }
}

/* ---- Rows --------------------------------------------------------------- */

static void row(const char *what, const char *unit, const char *label,
                const char *peer_name, const struct bench_series *ours,
                const struct bench_series *peer)
{
    char name[80];
    snprintf(name, sizeof name, "%s, %s", what, label);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = unit,
                                    .ours = *ours,
                                    .peer_name = peer_name,
                                    .peer = *peer});
}

static void rows(const char *label, const char *peer_name,
                 const struct contender *ours, const struct contender *peer)
{
    struct bench_series a = bench_once(ours->bits), b = bench_once(peer->bits);
    row("size", "bits/key", label, peer_name, &a, &b);
    a = bench_once(ours->rate * 100), b = bench_once(peer->rate * 100);
    row("rate", "%", label, peer_name, &a, &b);
    row("ask, absent", "ns/key", label, peer_name, &ours->absent,
        &peer->absent);
    row("ask, present", "ns/key", label, peer_name, &ours->present,
        &peer->present);
    row("ask, one by one", "ns/key", label, peer_name, &ours->single,
        &peer->single);
    row("add", "ns/key", label, peer_name, &ours->adds, &peer->adds);
}

static const uint32_t steps[] = {2, 4, 8};
#define STEPS (sizeof steps / sizeof *steps)

static void compare(uint64_t last, const char *size, double fpp)
{
    struct contender c[2 * STEPS + 1];
    for (size_t i = 0; i < STEPS; i++) {
        c[2 * i] = window_open(last, fpp, steps[i]);
        c[2 * i + 1] = naive_open(last, fpp, steps[i]);
    }
    c[2 * STEPS] = apbf_open(last, fpp);
    const struct apbf *f = c[2 * STEPS].self;
    char label[64], peer[64];
    bench_note("last %s at %g%%; apbf k %u, l %u", size, fpp * 100, f->k, f->l);
    snprintf(peer, sizeof peer, "apbf %u+%u", f->k, f->l);

    measure(c, 2 * STEPS + 1, last);
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(label, sizeof label, "%s at %g%%, g %u", size, fpp * 100,
                 steps[i]);
        rows(label, "naive", &c[2 * i], &c[2 * i + 1]);
        if (steps[i] == 4) rows(label, peer, &c[2 * i], &c[2 * STEPS]);
    }
    for (size_t i = 0; i <= 2 * STEPS; i++)
        c[i].close(c[i].self);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "window", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);
    const double rates[] = {0.01, 0.001};
    for (size_t i = 0; i < 2; i++)
        compare(100000, "100k", rates[i]);
    for (size_t i = 0; i < 2; i++)
        compare(o.quick ? 1000000 : 10000000, o.quick ? "1M" : "10M", rates[i]);
    return bench_finish();
}
