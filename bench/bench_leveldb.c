/*
 * bench_leveldb.c - absent keys in a real LevelDB on disk: blocks read and time of
 * a get, without a filter, with LevelDB's own and with ours at the same bits.
 *
 *     bench_leveldb [--json] [--quick] DIRECTORY
 *
 * Three databases of 10M keys are made in DIRECTORY, 16 bytes of key and 100 of
 * value, half of which compresses away, as in LevelDB's own benchmark; they are
 * compacted and take 2 GB, removed at the end. Then random keys that are not there
 * are asked for, the databases taking turns. Blocks read are not kept by LevelDB,
 * but by the kernel, if it has the memory: a block read here is a call, a checksum
 * and a decompression; from a disk it would be a wait as well.
 *
 * random     keys are random hex digits, and so are those asked for
 * numbered   keys are even decimal numbers, asked for are odd ones: the hash of
 *            LevelDB's own filter hardly tells neighbours apart
 * outside    asked for are keys behind all that are there
 */
#include "bench.h"
#include "workload.h"

#include "../tests/helpers/counted_leveldb.h"
#include "seen_leveldb.h"

#include <leveldb/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BITS   10
#define KEY    16
#define VALUE  100
#define MEMORY ((size_t)64 << 20)
#define ROUNDS 5
#define ABSENT ((uint64_t)1 << 62)

enum style {
    RANDOM,
    NUMBERED,
    OUTSIDE
};

struct policy {
    const char *name;
    leveldb_filterpolicy_t *policy;
    struct counted_db *db;
    char path[4096];
};

static uint64_t items, asked, *random_keys; /* ascending */
static struct policy policies[3];

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* In order, so that LevelDB has nothing to rearrange. */
static void make_random_keys(void)
{
    random_keys = malloc(items * sizeof *random_keys);
    if (!random_keys)
        bench_die("no memory for %llu keys", (unsigned long long)items);
    for (uint64_t i = 0; i < items; i++)
        random_keys[i] = bench_mix(i);
    qsort(random_keys, items, sizeof *random_keys, compare);
}

/* Key `number` that is there, or one that is not. */
static void key_of(enum style style, uint64_t number, bool there,
                   char key[KEY + 1])
{
    unsigned long long shown;
    switch (style) {
    case RANDOM:
        shown = there ? random_keys[number] : bench_mix(ABSENT + number);
        snprintf(key, KEY + 1, "%016llx", shown);
        return;
    case NUMBERED:
        shown = 2 * number + !there;
        snprintf(key, KEY + 1, "%016llu", shown);
        return;
    case OUTSIDE: /* behind random ones */
        shown = bench_mix(number) >> 4;
        snprintf(key, KEY + 1, "z%015llx", shown);
        return;
    }
}

static void value_of(uint64_t number, char value[VALUE])
{
    memset(value, 'v', VALUE);
    for (int i = 0; i < VALUE / 2; i++)
        value[i] = (char)(' ' + bench_mix(number * VALUE + (uint64_t)i) % 95);
}

static void fill(enum style style, const char *directory)
{
    for (int i = 0; i < 3; i++) {
        char key[KEY + 1], value[VALUE];
        struct policy *p = &policies[i];
        snprintf(p->path, sizeof p->path, "%s/%d", directory, i);
        bench_note("%llu keys into %s", (unsigned long long)items, p->path);
        p->db = counted_open(p->path, p->policy, MEMORY);
        for (uint64_t n = 0; n < items; n++) {
            key_of(style, n, true, key);
            value_of(n, value);
            counted_put(p->db, key, KEY, value, VALUE);
        }
        counted_compact(p->db);
        /* As it is found the next day: nothing of the making left in memory. */
        counted_close(p->db);
        p->db = counted_open(p->path, p->policy, MEMORY);
    }
}

/* One round of questions: the blocks that were read, and the seconds. */
static uint64_t ask(struct policy *p, enum style style, uint64_t first,
                    double *seconds)
{
    uint64_t before = counted_reads(p->db);
    double start = bench_seconds();
    for (uint64_t i = 0; i < asked; i++) {
        char key[KEY + 1];
        key_of(style, bench_below(bench_mix(first + i), items), false, key);
        if (counted_get(p->db, key, KEY)) bench_die("%s is there", key);
    }
    *seconds = bench_seconds() - start;
    return counted_reads(p->db) - before;
}

static double cost_of_keys(enum style style)
{
    unsigned sum = 0;
    double start = bench_seconds();
    for (uint64_t i = 0; i < asked; i++) {
        char key[KEY + 1];
        key_of(style, bench_below(bench_mix(i), items), false, key);
        sum += (unsigned char)key[15];
    }
    double taken = bench_seconds() - start;
    return sum ? taken : 0;
}

static void present_keys_are_there(enum style style)
{
    for (int i = 0; i < 3; i++)
        for (uint64_t n = 0; n < asked / 10; n++) {
            char key[KEY + 1];
            key_of(style, bench_below(bench_mix(n), items), true, key);
            if (!counted_get(policies[i].db, key, KEY))
                bench_die("%s: %s is lost", policies[i].name, key);
        }
}

static void measure(const char *name, enum style style, double aim)
{
    struct bench_series time[3] = {{0}};
    double reads[3] = {0}, seconds;
    const double making = cost_of_keys(style);
    for (int i = 0; i < 3; i++) /* opens all tables */
        ask(&policies[i], style, 0, &seconds);
    for (uint64_t round = 1; round <= ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            reads[i] +=
                (double)ask(&policies[i], style, round * asked, &seconds) /
                (double)(asked * ROUNDS);
            bench_round(&time[i], (seconds - making) * 1e9 / (double)asked);
        }
    char row[64];
    snprintf(row, sizeof row, "%s, blocks per absent get", name);
    bench_print(&(struct bench_row){
        .name = row,
        .unit = "blocks",
        .ours = bench_once(reads[2]),
        .peer_name = reads[1] > 0 ? "LevelDB's own" : NULL,
        .peer = bench_once(reads[1]),
        .limit_name = reads[0] > 0 ? "no filter" : NULL,
        .limit = bench_once(reads[0]),
        .what = aim > 0 ? BENCH_PEER_AT_LEAST : BENCH_NO_AIM,
        .aim = aim,
        .note = aim > 0 ? "40 % fewer are 1.67" : NULL});
    snprintf(row, sizeof row, "%s, an absent get", name);
    bench_print(&(struct bench_row){.name = row,
                                    .unit = "ns",
                                    .ours = time[2],
                                    .peer_name = "LevelDB's own",
                                    .peer = time[1],
                                    .limit_name = "no filter",
                                    .limit = time[0]});
}

/* ---- Policies by themselves ---------------------------------------------- */

#define BLOCKS  256
#define IN_ONE  36 /* keys of 16 and values of 100 bytes in 4 KB */
#define STREAM  4096
#define REPEATS 8

struct block {
    char key[IN_ONE][KEY + 1];
    char *filter;
    size_t len;
};

static struct block blocks[BLOCKS];
static char absent[STREAM][KEY + 1];

/* Nanoseconds to make the filter of a block. */
static double make_filters(const leveldb_filterpolicy_t *policy)
{
    double start = bench_seconds();
    for (int b = 0; b < BLOCKS; b++) {
        const char *keys[IN_ONE];
        size_t lens[IN_ONE];
        for (int i = 0; i < IN_ONE; i++)
            keys[i] = blocks[b].key[i], lens[i] = KEY;
        free(blocks[b].filter);
        blocks[b].filter =
            counted_filter(policy, keys, lens, IN_ONE, &blocks[b].len);
    }
    return (bench_seconds() - start) * 1e9 / BLOCKS;
}

/* Nanoseconds of a question to a random block, and the share of "maybe". */
static double ask_filters(const leveldb_filterpolicy_t *policy, bool present,
                          double *share)
{
    uint64_t maybe = 0;
    double start = bench_seconds();
    for (int i = 0; i < REPEATS * STREAM; i++) {
        const struct block *b = &blocks[bench_mix((uint64_t)i) % BLOCKS];
        const char *key = present ? b->key[i % IN_ONE] : absent[i % STREAM];
        maybe += counted_may_match(policy, key, KEY, b->filter, b->len);
    }
    *share = (double)maybe / (REPEATS * STREAM);
    return (bench_seconds() - start) * 1e9 / (REPEATS * STREAM);
}

static void measure_policies(void)
{
    struct bench_series never[2] = {{0}}, maybe[2] = {{0}}, make[2] = {{0}};
    double wrong[2], right, bytes[2] = {0};
    for (uint64_t i = 0; i < BLOCKS * IN_ONE; i++)
        key_of(RANDOM, i, true, blocks[i / IN_ONE].key[i % IN_ONE]);
    for (uint64_t i = 0; i < STREAM; i++)
        key_of(RANDOM, i, false, absent[i]);
    for (int round = 0; round < BENCH_MAX_ROUNDS; round++)
        for (int f = 0; f < 2; f++) {
            const leveldb_filterpolicy_t *policy = policies[1 + f].policy;
            bench_round(&make[f], make_filters(policy));
            bench_round(&never[f], ask_filters(policy, false, &wrong[f]));
            bench_round(&maybe[f], ask_filters(policy, true, &right));
            if (right < 1) bench_die("a key is lost");
            bytes[f] = (double)blocks[0].len;
        }
    for (int b = 0; b < BLOCKS; b++)
        free(blocks[b].filter);

    const struct bench_row rows[] = {
        {.name = "a block of 36 keys, question, absent",
         .unit = "ns",
         .ours = never[1],
         .peer = never[0]},
        {.name = "a block of 36 keys, question, present",
         .unit = "ns",
         .ours = maybe[1],
         .peer = maybe[0]},
        {.name = "a block of 36 keys, making the filter",
         .unit = "ns",
         .ours = make[1],
         .peer = make[0]},
        {.name = "a block of 36 keys, wrong answers",
         .unit = "%",
         .ours = bench_once(100 * wrong[1]),
         .peer = bench_once(100 * wrong[0])},
        {.name = "a block of 36 keys, the filter",
         .unit = "bytes",
         .ours = bench_once(bytes[1]),
         .peer = bench_once(bytes[0]),
         .what = BENCH_OURS_AT_MOST,
         .aim = IN_ONE * BITS / 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench_row row = rows[i];
        row.peer_name = "LevelDB's own";
        bench_print(&row);
    }
}

/* ---- All ----------------------------------------------------------------- */

static void remove_all(void)
{
    leveldb_options_t *options = leveldb_options_create();
    for (int i = 0; i < 3; i++) {
        char *error = NULL;
        counted_close(policies[i].db);
        leveldb_destroy_db(options, policies[i].path, &error);
        if (error) bench_die("%s: %s", policies[i].path, error);
    }
    leveldb_options_destroy(options);
}

int main(int argc, char **argv)
{
    struct bench_options o;
    (void)argc;
    char **rest = bench_start(argv, "leveldb", &o);
    if (!rest[0])
        bench_die("usage: bench_leveldb [--json] [--quick] DIRECTORY");
    items = o.quick ? 1000000 : 10000000;
    asked = o.quick ? 100000 : 500000;
    policies[0] = (struct policy){.name = "no filter"};
    policies[1] =
        (struct policy){.name = "LevelDB's own",
                        .policy = leveldb_filterpolicy_create_bloom(BITS)};
    policies[2] = (struct policy){
        .name = "ours", .policy = seen_leveldb_policy(SEEN_BLOCK_SORTED, BITS)};

    make_random_keys();
    measure_policies();
    fill(RANDOM, rest[0]);
    present_keys_are_there(RANDOM);
    measure("random", RANDOM, 1 / 0.6);
    measure("outside", OUTSIDE, 0);
    remove_all();
    fill(NUMBERED, rest[0]);
    present_keys_are_there(NUMBERED);
    measure("numbered", NUMBERED, 0);
    remove_all();
    leveldb_filterpolicy_destroy(policies[1].policy);
    leveldb_filterpolicy_destroy(policies[2].policy);
    free(random_keys);
    return bench_finish();
}
