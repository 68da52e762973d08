/*
 * bench_single.c - questions one by one, through the shared library, and
 * integers as they lie.
 *
 * hashed     seen_maybe_hashed() in a loop over hashes made beforehand, against
 *            seen_maybe_many() of the same hashes in turn with it
 * inline     the same with seen_inline.h; bench_inline.c is compiled for AVX2
 * byte keys  seen_maybe() of keys of 16 to 40 bytes, against what it is made of:
 *            the hashed question, XXH3 and 2 ns
 * integers   one seen_add_many() of all integers, against hashing them block by
 *            block and adding the hashes
 *
 * The questions do not depend on each other, as in a loop over records. What is
 * compared takes turns, piece by piece, each with keys of its own; a round counts
 * with its best piece. Adding integers takes its second: it is measured in
 * processor time.
 */
#include "seen.h"

#include "bench.h"
#include "bench_inline.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROUNDS 60
#define BLOCKS 6 /* in a round */
#define PIECE                                                                  \
    4096 /* questions that are timed together: some ten microseconds,
                       so that on a busy machine, too, many are not disturbed */

static struct bench_hashes block;
static struct bench_keys keys;
static seen_hash key_hash[BENCH_KEYS];
static uint64_t sink;
static volatile uint64_t no_seed; /* not to be folded into XXH3 */

static void must(seen_status status, const char *what)
{
    if (status != SEEN_OK) bench_die("%s: %s", what, seen_strerror(status));
}

static seen_filter *make(uint64_t items)
{
    seen_filter *f;
    must(seen_new(&f, &(seen_spec){.items = items, .fpp = 0.01}, NULL), "new");
    return f;
}

/* ---- Hashes ------------------------------------------------------------- */

typedef void ask_fn(const seen_filter *f, const seen_hash *h, size_t n,
                    bool *answers);

static void ask_many(const seen_filter *f, const seen_hash *h, size_t n,
                     bool *answers)
{
    must(seen_maybe_many(f, seen_keys_hashes(h, n), answers), "ask");
}

static void ask_single(const seen_filter *f, const seen_hash *h, size_t n,
                       bool *answers)
{
    for (size_t i = 0; i < n; i++)
        answers[i] = seen_maybe_hashed(f, h[i]);
}

/* ns per key of n ways to ask, their best pieces. */
static void ask_round(ask_fn *const *ask, size_t n, const seen_filter *f,
                      uint64_t items, double *best)
{
    size_t turn = 0;
    for (size_t k = 0; k < n; k++)
        best[k] = INFINITY;
    for (int i = 0; i < BLOCKS; i++) {
        bench_hashes_ask(&block, items, BENCH_HALF);
        for (size_t at = 0; at < block.n; at += PIECE, turn++) {
            double start = bench_seconds();
            ask[turn % n](f, block.hash + at, PIECE, block.answer + at);
            best[turn % n] = fmin(best[turn % n], bench_seconds() - start);
        }
        bench_hashes_check(&block);
    }
    for (size_t k = 0; k < n; k++)
        best[k] *= 1e9 / PIECE;
}

static void row(const char *name, const char *size,
                const struct bench_series *ours, const char *limit_name,
                const struct bench_series *limit, double aim)
{
    char full[96];
    snprintf(full, sizeof full, "%s, %s", name, size);
    bench_print(&(struct bench_row){.name = full,
                                    .unit = "ns/key",
                                    .ours = *ours,
                                    .limit_name = limit_name,
                                    .limit = *limit,
                                    .what = BENCH_LIMIT_AT_MOST,
                                    .aim = aim});
}

static void hashed_rows(uint64_t items, const char *size, double single_aim,
                        double inline_aim)
{
    seen_filter *f = make(items);
    for (uint64_t i = 0; i < items; i += BENCH_HASHES) {
        uint64_t left = items - i;
        bench_hashes_run(&block, i, left < BENCH_HASHES ? left : BENCH_HASHES);
        must(seen_add_many(f, seen_keys_hashes(block.hash, block.n), NULL),
             "add");
    }
    struct bench_series many = {0}, single = {0}, inlined = {0};
    ask_fn *const ask[] = {ask_many, ask_single, bench_inline_ask};
    for (int i = 0; i < ROUNDS; i++) {
        double best[3];
        ask_round(ask, bench_inline_usable() ? 3 : 2, f, items, best);
        bench_round(&many, best[0]);
        bench_round(&single, best[1]);
        if (bench_inline_usable()) bench_round(&inlined, best[2]);
    }
    row("lookup single, hashed, shared library", size, &single, "batch", &many,
        single_aim);
    if (bench_inline_usable())
        row("lookup single, hashed, seen_inline.h", size, &inlined, "batch",
            &many, inline_aim);
    seen_free(f);
}

/* ---- Byte keys ---------------------------------------------------------- */

/* ns per key: of the whole question, of its hashed half, of XXH3. */
static void keys_round(const seen_filter *f, uint64_t items, double *best)
{
    const uint64_t seed = no_seed;
    size_t turn = 0;
    best[0] = best[1] = best[2] = INFINITY;
    for (int i = 0; i < 4 * BLOCKS; i++) {
        bench_keys_ask(&keys, items, BENCH_HALF);
        must(seen_hash_many(f, seen_keys_of(keys.key, keys.n), key_hash),
             "hash");
        for (size_t at = 0; at < keys.n; at += PIECE, turn++) {
            const seen_key *key = keys.key + at;
            double start = bench_seconds();
            if (turn % 3 == 0)
                for (size_t k = 0; k < PIECE; k++)
                    keys.answer[at + k] =
                        seen_maybe(f, key[k].data, key[k].len);
            else if (turn % 3 == 1)
                ask_single(f, key_hash + at, PIECE, keys.answer + at);
            else
                for (size_t k = 0; k < PIECE; k++)
                    sink += XXH3_64bits_withSeed(key[k].data, key[k].len, seed);
            best[turn % 3] = fmin(best[turn % 3], bench_seconds() - start);
            if (turn % 3 == 2)
                ask_single(f, key_hash + at, PIECE, keys.answer + at);
        }
        bench_keys_check(&keys);
    }
    for (size_t k = 0; k < 3; k++)
        best[k] *= 1e9 / PIECE;
}

static void keys_row(uint64_t items, const char *size)
{
    seen_filter *f = make(items);
    for (uint64_t i = 0; i < items; i += BENCH_KEYS) {
        uint64_t left = items - i;
        bench_keys_run(&keys, i, left < BENCH_KEYS ? left : BENCH_KEYS);
        must(seen_add_many(f, seen_keys_of(keys.key, keys.n), NULL), "add");
    }
    struct bench_series single = {0}, hashed = {0}, hashing = {0};
    for (int i = 0; i < ROUNDS; i++) {
        double best[3];
        keys_round(f, items, best);
        bench_round(&single, best[0]);
        bench_round(&hashed, best[1]);
        bench_round(&hashing, best[2]);
    }
    struct bench_series sum =
        bench_once(bench_best(&hashed) + bench_best(&hashing) + 2);
    row("lookup single, byte keys, shared library", size, &single,
        "hashed + XXH3 + 2 ns", &sum, 1);
    seen_free(f);
}

/* ---- Integers ----------------------------------------------------------- */

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static double add_integers(seen_filter *f, const uint64_t *integers, size_t n)
{
    double start = processor_seconds();
    must(seen_add_many(f, seen_keys_u64(integers, n), NULL), "add");
    return (processor_seconds() - start) / (double)n * 1e9;
}

/* The same with hashes made before, a block at a time so that they stay in the
 * cache. */
static double add_hashed(seen_filter *f, const uint64_t *integers, size_t n)
{
    double start = processor_seconds();
    for (size_t at = 0; at < n; at += BENCH_HASHES) {
        size_t now = n - at < BENCH_HASHES ? n - at : BENCH_HASHES;
        must(seen_hash_many(f, seen_keys_u64(integers + at, now), block.hash),
             "hash");
        must(seen_add_many(f, seen_keys_hashes(block.hash, now), NULL), "add");
    }
    return (processor_seconds() - start) / (double)n * 1e9;
}

static void integers_row(size_t items, const char *size)
{
    uint64_t *integers = malloc(items * sizeof *integers);
    if (!integers) bench_die("no memory for %s integers", size);
    for (size_t i = 0; i < items; i++)
        integers[i] = bench_mix(i);
    seen_filter *f = make(items);
    struct bench_series whole = {0}, parts = {0};
    for (int i = 0; i < 7; i++) {
        bench_round(&whole, add_integers(f, integers, items));
        bench_round(&parts, add_hashed(f, integers, items));
    }
    row("add, 64-bit integers in one call", size, &whole,
        "hashing + hashed batch", &parts, 1.1);
    seen_free(f);
    free(integers);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "single", &o);
    if (*rest) bench_die("%s: expected --json or --quick", *rest);
    const size_t large = o.quick ? 10000000 : 100000000;
    const char *size = o.quick ? "10M" : "100M";
    hashed_rows(1000000, "1M", 2.5, 1.7);
    hashed_rows(large, size, 3.5, 2.5);
    keys_row(1000000, "1M");
    integers_row(large, size);
    if (sink == 1) bench_note("unlikely");
    return bench_finish();
}
