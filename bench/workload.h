/*
 * workload.h - what the benchmarks ask for: hashes, byte keys, and the bare
 * minimum of memory traffic to compare with.
 *
 * Key number i is the same everywhere. Numbers below `items` are put into the
 * filter, numbers from 2^62 up are not. Keys are made in blocks, outside the
 * time that is measured, and half of those asked for are there unless said
 * otherwise, in random order: neither answer can be guessed.
 */
#ifndef SEEN_BENCH_WORKLOAD_H
#define SEEN_BENCH_WORKLOAD_H

#include "seen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* splitmix64's finaliser over a Weyl sequence: a bijection, so different
 * numbers give different hashes. */
static inline uint64_t bench_mix(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    i = (i ^ i >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    i = (i ^ i >> 27) * UINT64_C(0x94D049BB133111EB);
    return i ^ i >> 31;
}

/* floor(x * n / 2^64): a random number below n from a random x. */
static inline uint64_t bench_below(uint64_t x, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)x * n) >> 64);
}

enum bench_share {
    BENCH_ABSENT,
    BENCH_HALF,
    BENCH_PRESENT
};

/* ---- Hashes ------------------------------------------------------------- */

#define BENCH_HASHES 65536 /* 1 MiB of them: larger than most second caches */

struct bench_hashes {
    uint64_t random; /* state */
    size_t n;
    seen_hash hash[BENCH_HASHES];
    bool there[BENCH_HASHES];
    bool answer[BENCH_HASHES];
};

seen_hash bench_hash(uint64_t number);

/* Hashes of the keys first .. first + n, n at most BENCH_HASHES. */
void bench_hashes_run(struct bench_hashes *b, uint64_t first, size_t n);

/* A full block of random ones. */
void bench_hashes_ask(struct bench_hashes *b, uint64_t items,
                      enum bench_share share);

/* Dies if a key that is there was not found. */
void bench_hashes_check(const struct bench_hashes *b);

/* ---- Byte keys ---------------------------------------------------------- */

#define BENCH_KEYS        16384
#define BENCH_KEY_SHORT   16
#define BENCH_KEY_LONG    40
#define BENCH_KEY_LENGTHS (BENCH_KEY_LONG - BENCH_KEY_SHORT + 1)

struct bench_keys {
    uint64_t random;
    size_t n;
    seen_key key[BENCH_KEYS];
    bool there[BENCH_KEYS];
    bool answer[BENCH_KEYS];
    uint8_t bytes[BENCH_KEYS * BENCH_KEY_LONG + 8]; /* packed, like lines */
};

/* Writes key `number`, 16 to 40 random bytes, and up to 7 more that do not
 * count; returns its length. */
size_t bench_key(uint64_t number, uint8_t *to);

void bench_keys_run(struct bench_keys *b, uint64_t first, size_t n);
void bench_keys_ask(struct bench_keys *b, uint64_t items,
                    enum bench_share share);
void bench_keys_check(const struct bench_keys *b);

/* ---- The machine's limit ------------------------------------------------ */

/* As many 64-byte lines as a filter has, in memory of the same kind: anonymous,
 * huge pages asked for from 2 MiB up, every page touched. */
struct bench_lines {
    uint64_t *words;
    uint64_t count;
};

struct bench_lines bench_lines_new(uint64_t bytes);
void bench_lines_free(struct bench_lines *l);

/* Reads one word of the line each hash chooses, 32 prefetches ahead, and
 * returns the sum: what no filter with a random line per key can beat. */
uint64_t bench_lines_read(const struct bench_lines *l, const seen_hash *hash,
                          size_t n);

/* The same with a read-modify-write: the limit of adding. */
void bench_lines_change(struct bench_lines *l, const seen_hash *hash, size_t n);

/* Seconds that the disk takes to have so many bytes appended to a file and synced,
 * so often; the file has its space already, and is gone afterwards. */
double bench_disk(const char *path, size_t bytes, size_t syncs);

#endif
