/*
 * bench_kinds.c - the other kinds beside the blocked filter, at the same rate
 * and for the same keys.
 *
 * size       bits per key, and false positives among 1e7 absent keys
 * lookup     seen_maybe_many() of hashes for absent and for present keys, against
 *            a blocked filter that was planned for exactly these keys, in turns
 * build      seen_build() of a ribbon filter from 8-byte keys, one core
 *
 * A scalable filter starts with room for 1/128 of the keys, as a guess, and is
 * measured when its layers are full, and right after it opened the next one; the
 * blocked filter beside it knew the number of keys. "Sized" ones were told that
 * number, or a hundredth of it.
 *
 * A round is 65536 lookups with hashes made outside the time: so short that even
 * on a busy machine some rounds go through undisturbed.
 */
#include "seen.h"

#include "bench.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 60
#define PROBES 10000000

static struct bench_hashes block;

/* A ribbon filter is built from keys and not from hashes. While it is measured,
 * the numbers that serve the others as hashes are its keys, 8 bytes each, and
 * this is the filter that hashes them. NULL: none. */
static const seen_filter *hasher;

static void hash_block(void)
{
    static seen_key keys[BENCH_HASHES];
    static uint64_t numbers[BENCH_HASHES];
    if (!hasher) return;
    for (size_t i = 0; i < block.n; i++) {
        numbers[i] = block.hash[i].lo;
        keys[i] = (seen_key){&numbers[i], 8};
    }
    seen_hash_many(hasher, seen_keys_of(keys, block.n), block.hash);
}

static void run_block(uint64_t first, uint64_t left)
{
    bench_hashes_run(&block, first, left < BENCH_HASHES ? left : BENCH_HASHES);
    hash_block();
}

static void ask_block(uint64_t items, enum bench_share share)
{
    bench_hashes_ask(&block, items, share);
    hash_block();
}

/* ---- Filters ------------------------------------------------------------ */

static void must(seen_status status, const char *what)
{
    if (status != SEEN_OK) bench_die("%s: %s", what, seen_strerror(status));
}

static seen_filter *make_with(seen_spec spec)
{
    seen_filter *f;
    must(seen_new(&f, &spec, NULL), seen_kind_name(spec.kind));
    return f;
}

static seen_filter *make(seen_kind kind, uint64_t items, double fpp)
{
    return make_with((seen_spec){.items = items, .fpp = fpp, .kind = kind});
}

/* Adds keys from .. to. */
static void fill(seen_filter *f, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i += BENCH_HASHES) {
        run_block(i, to - i);
        must(seen_add_many(f, seen_keys_hashes(block.hash, block.n), NULL),
             "add");
    }
}

static seen_info info_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info;
}

/* ---- Measuring ---------------------------------------------------------- */

static double lookup_round(const seen_filter *f, uint64_t items,
                           enum bench_share share)
{
    ask_block(items, share);
    double start = bench_seconds();
    seen_maybe_many(f, seen_keys_hashes(block.hash, block.n), block.answer);
    double spent = bench_seconds() - start;
    bench_hashes_check(&block);
    return spent / BENCH_HASHES * 1e9;
}

static double false_positives(const seen_filter *f, uint64_t items)
{
    uint64_t wrong = 0;
    for (uint64_t done = 0; done < PROBES; done += block.n) {
        ask_block(items, BENCH_ABSENT);
        if (block.n > PROBES - done) block.n = (size_t)(PROBES - done);
        seen_maybe_many(f, seen_keys_hashes(block.hash, block.n), block.answer);
        for (size_t i = 0; i < block.n; i++)
            wrong += block.answer[i];
    }
    return (double)wrong;
}

/* What is measured, and what the issue asks of it; 0: nothing. */
struct measured {
    const char *name;
    double fpp;
    uint64_t items;         /* keys in it */
    double bits;            /* per key at most, or: */
    double times;           /* as many as the blocked filter has */
    double absent, present; /* times the blocked filter's time */
};

static void size_rows(const seen_filter *f, const struct measured *m)
{
    seen_info info = info_of(f);
    seen_plan plan = {.size = sizeof plan};
    must(seen_plan_for(&(seen_spec){.items = m->items, .fpp = m->fpp}, &plan,
                       NULL),
         "plan");
    char name[80], note[64];
    snprintf(name, sizeof name, "%s, size", m->name);
    bench_print(&(struct bench_row){
        .name = name,
        .unit = "bits/key",
        .ours = bench_once((double)info.bits / (double)m->items),
        .limit_name = "blocked",
        .limit = bench_once((double)plan.bits / (double)m->items),
        .what = m->bits > 0    ? BENCH_OURS_AT_MOST
                : m->times > 0 ? BENCH_LIMIT_AT_MOST
                               : BENCH_NO_AIM,
        .aim = m->bits > 0 ? m->bits : m->times});
    snprintf(name, sizeof name, "%s, wrong of 1e7", m->name);
    snprintf(note, sizeof note, "from its bits %.0f",
             info.fpp_now * (double)PROBES);
    bench_print(&(struct bench_row){
        .name = name,
        .unit = "keys",
        .ours = bench_once(false_positives(f, m->items)),
        .limit_name = "promise",
        .limit = bench_once(m->fpp * (double)PROBES),
        .what = BENCH_LIMIT_AT_MOST,
        .aim = 1.03, /* chance may add three deviations at 0.1 % */
        .note = note});
}

static void lookup_row(const struct measured *m, const char *what,
                       const struct bench_series *ours,
                       const struct bench_series *blocked, double aim)
{
    char name[80];
    snprintf(name, sizeof name, "%s, lookup %s", m->name, what);
    bench_print(&(struct bench_row){.name = name,
                                    .unit = "ns/key",
                                    .ours = *ours,
                                    .limit_name = "blocked",
                                    .limit = *blocked,
                                    .what = aim > 0 ? BENCH_LIMIT_AT_MOST
                                                    : BENCH_NO_AIM,
                                    .aim = aim});
}

static void lookup_rows(const seen_filter *f, const struct measured *m)
{
    seen_filter *blocked = make(SEEN_BLOCKED, m->items, m->fpp);
    struct bench_series ours[2] = {0}, its[2] = {0};
    fill(blocked, 0, m->items);
    for (int i = 0; i < ROUNDS; i++)
        for (int present = 0; present < 2; present++) {
            enum bench_share share = present ? BENCH_PRESENT : BENCH_ABSENT;
            bench_round(&ours[present], lookup_round(f, m->items, share));
            bench_round(&its[present], lookup_round(blocked, m->items, share));
        }
    lookup_row(m, "absent", &ours[0], &its[0], m->absent);
    lookup_row(m, "present", &ours[1], &its[1], m->present);
    seen_free(blocked);
}

/* ---- Kinds -------------------------------------------------------------- */

static void cuckoo_rows(uint64_t items, const char *label)
{
    char name[64];
    snprintf(name, sizeof name, "cuckoo, %s at 0.1%%", label);
    struct measured m = {.name = name,
                         .fpp = 0.001,
                         .items = items,
                         .bits = 13.9,
                         .absent = 4,
                         .present = 4};
    seen_filter *f = make(SEEN_CUCKOO, items, m.fpp);
    fill(f, 0, items);
    size_rows(f, &m);
    lookup_rows(f, &m);
    seen_free(f);
}

/* Seconds of the best of several builds. */
static seen_filter *build(uint64_t items, double fpp, struct bench_series *ns)
{
    uint64_t *numbers = malloc(items * sizeof *numbers);
    seen_key *keys = malloc(items * sizeof *keys);
    if (!numbers || !keys) bench_die("no memory for keys");
    for (uint64_t i = 0; i < items; i++) {
        numbers[i] = bench_hash(i).lo;
        keys[i] = (seen_key){&numbers[i], 8};
    }
    seen_filter *f = NULL;
    for (int i = 0; i < 5; i++) {
        seen_free(f);
        double start = bench_seconds();
        must(seen_build(&f,
                        &(seen_spec){
                            .kind = SEEN_RIBBON,
                            .fpp = fpp,
                        },
                        seen_keys_of(keys, items), NULL),
             "build");
        bench_round(ns, (bench_seconds() - start) / (double)items * 1e9);
    }
    free(keys);
    free(numbers);
    return f;
}

static void ribbon_rows(uint64_t items, const char *label, double fpp,
                        const char *rate, double bits)
{
    char name[64], row[80];
    struct bench_series ns = {0};
    seen_filter *f = build(items, fpp, &ns);
    snprintf(name, sizeof name, "ribbon, %s at %s", label, rate);
    snprintf(row, sizeof row, "%s, build", name);
    bench_print(&(struct bench_row){.name = row,
                                    .unit = "ns/key",
                                    .ours = ns,
                                    .what = BENCH_OURS_AT_MOST,
                                    .aim = 200,
                                    .note = "5M keys/s on one core"});
    const double times = items <= 1000000 ? 5 : 4.5; /* in the cache, or not */
    struct measured m = {.name = name,
                         .fpp = fpp,
                         .items = items,
                         .bits = bits,
                         .absent = times,
                         .present = times};
    hasher = f;
    size_rows(f, &m);
    lookup_rows(f, &m);
    hasher = NULL;
    seen_free(f);
}

/* Add keys until the filter takes more memory; how many it has then. */
static uint64_t grow(seen_filter *f, uint64_t items)
{
    const uint64_t bits = info_of(f).bits, step = items / 500 + 1;
    while (info_of(f).bits == bits) {
        fill(f, items, items + step);
        items += step;
    }
    return items;
}

static void scalable_rows(uint64_t items, const char *label, double fpp)
{
    char name[64];
    struct measured m = {
        .name = name, .fpp = fpp, .times = 1.5, .absent = 6, .present = 2.5};
    bench_note("scalable, %s at %g%%", label, fpp * 100);
    seen_filter *f = make_with((seen_spec){.kind = SEEN_SCALABLE,
                                           .items = items / 128,
                                           .fpp = fpp,
                                           .flags = SEEN_GUESS});
    fill(f, 0, items / 128 * 128);
    m.items = items / 128 * 128;
    snprintf(name, sizeof name, "scalable, %s at %g%%, full", label, fpp * 100);
    size_rows(f, &m);
    lookup_rows(f, &m);

    m.items = grow(f, m.items);
    m.times = 2.7;
    snprintf(name, sizeof name, "scalable, %s at %g%%, grown", label,
             fpp * 100);
    size_rows(f, &m);
    lookup_rows(f, &m);
    seen_free(f);
}

/* With the number of keys that come, and with a hundredth of it. */
static void sized_rows(uint64_t items, const char *label, double fpp)
{
    char name[64];
    struct measured m = {.name = name, .fpp = fpp, .items = items};
    for (uint64_t times = 1; times <= 100; times *= 100) {
        snprintf(name, sizeof name, "sized, %s at %g%%, at %ux", label,
                 fpp * 100, (unsigned)times);
        bench_note("%s", name);
        m.times = times == 1 ? 1.06 : fpp < 0.01 ? 1.9 : 2.3;
        m.absent = times == 1 ? 1.1 : 8;
        m.present = times == 1 ? 1.1 : 3;
        seen_filter *f = make(SEEN_SCALABLE, items / times, fpp);
        fill(f, 0, items);
        size_rows(f, &m);
        lookup_rows(f, &m);
        seen_free(f);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "kinds", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);

    static const struct {
        uint64_t items;
        const char *label;
    } sizes[] = {{100000, "100k"}, {1000000, "1M"}, {100000000, "100M"}},
      fixed[] = {{100000, "100k"}, {1000000, "1M"}, {20000000, "20M"}};
    for (size_t i = 0; i < 2; i++)
        cuckoo_rows(sizes[i].items, sizes[i].label);
    for (size_t i = 0; i < (o.quick ? 2 : 3); i++) {
        ribbon_rows(fixed[i].items, fixed[i].label, 0.01, "1%", 7.1);
        ribbon_rows(fixed[i].items, fixed[i].label, 0.001, "0.1%", 10.1);
    }
    for (size_t i = 0; i < (o.quick ? 2 : 3); i++) {
        scalable_rows(sizes[i].items, sizes[i].label, 0.01);
        scalable_rows(sizes[i].items, sizes[i].label, 0.001);
        sized_rows(sizes[i].items, sizes[i].label, 0.01);
        sized_rows(sizes[i].items, sizes[i].label, 0.001);
    }
    return bench_finish();
}
