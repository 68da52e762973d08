/*
 * workload.c - keys, hashes and raw memory traffic of workload.h. Compiled at
 * -O3 like the library's kernels, so that the limit is not held back.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise, posix_fallocate */

#include "workload.h"

#include "bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOT_THERE (UINT64_C(1) << 62)
#define RING      32
#define HUGE_PAGE ((uint64_t)2 << 20)

/* The number of a key to ask for, and whether it is there. */
static uint64_t pick(uint64_t *random, uint64_t items, enum bench_share share,
                     bool *there)
{
    uint64_t x = bench_mix((*random)++);
    *there = share == BENCH_PRESENT || (share == BENCH_HALF && (x & 1));
    return *there ? bench_below(x, items) : NOT_THERE + (x >> 3);
}

/* ---- Hashes ------------------------------------------------------------- */

seen_hash bench_hash(uint64_t number)
{
    return (seen_hash){bench_mix(number), bench_mix(~number)};
}

void bench_hashes_run(struct bench_hashes *b, uint64_t first, size_t n)
{
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        b->hash[i] = bench_hash(first + i);
        b->there[i] = true;
    }
}

void bench_hashes_ask(struct bench_hashes *b, uint64_t items,
                      enum bench_share share)
{
    b->n = BENCH_HASHES;
    for (size_t i = 0; i < BENCH_HASHES; i++)
        b->hash[i] = bench_hash(pick(&b->random, items, share, &b->there[i]));
}

static void check(const bool *there, const bool *answer, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (there[i] && !answer[i]) bench_die("a key that was added is lost");
}

void bench_hashes_check(const struct bench_hashes *b)
{
    check(b->there, b->answer, b->n);
}

/* ---- Byte keys ---------------------------------------------------------- */

size_t bench_key(uint64_t number, uint8_t *to)
{
    uint64_t x = bench_mix(number);
    size_t len = BENCH_KEY_SHORT + x % BENCH_KEY_LENGTHS;
    for (size_t at = 0; at < len; at += 8) {
        memcpy(to + at, &x, 8);
        x = bench_mix(x);
    }
    return len;
}

static size_t put(struct bench_keys *b, size_t i, size_t at, uint64_t number)
{
    size_t len = bench_key(number, b->bytes + at);
    b->key[i] = (seen_key){b->bytes + at, len};
    return at + len;
}

void bench_keys_run(struct bench_keys *b, uint64_t first, size_t n)
{
    size_t at = 0;
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        at = put(b, i, at, first + i);
        b->there[i] = true;
    }
}

void bench_keys_ask(struct bench_keys *b, uint64_t items,
                    enum bench_share share)
{
    size_t at = 0;
    b->n = BENCH_KEYS;
    for (size_t i = 0; i < BENCH_KEYS; i++)
        at = put(b, i, at, pick(&b->random, items, share, &b->there[i]));
}

void bench_keys_check(const struct bench_keys *b)
{
    check(b->there, b->answer, b->n);
}

/* ---- The machine's limit ------------------------------------------------ */

struct bench_lines bench_lines_new(uint64_t bytes)
{
    struct bench_lines l = {.count = (bytes + 63) / 64};
    uint64_t room = l.count * 64 + HUGE_PAGE;
    uint8_t *raw = mmap(NULL, room, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) bench_die("no memory for %.0f bytes", (double)bytes);
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) madvise(raw, room, MADV_HUGEPAGE);
#endif
    memset(raw, 1, room);
    raw += (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    l.words = (uint64_t *)(void *)raw;
    return l;
}

/* The little before the first huge page goes when the process ends. */
void bench_lines_free(struct bench_lines *l)
{
    munmap(l->words, l->count * 64);
    *l = (struct bench_lines){0};
}

static inline uint64_t *line_of(const struct bench_lines *l, seen_hash h)
{
    return l->words + bench_below(h.lo, l->count) * 8;
}

uint64_t bench_lines_read(const struct bench_lines *l, const seen_hash *hash,
                          size_t n)
{
    const struct bench_lines m = *l;
    size_t i = 0, ringed = n > RING ? n - RING : 0;
    uint64_t sum = 0;
    for (; i < RING && i < n; i++)
        __builtin_prefetch(line_of(&m, hash[i]));
    for (i = 0; i < ringed; i++) {
        __builtin_prefetch(line_of(&m, hash[i + RING]));
        sum += *line_of(&m, hash[i]);
    }
    for (; i < n; i++)
        sum += *line_of(&m, hash[i]);
    return sum;
}

void bench_lines_change(struct bench_lines *l, const seen_hash *hash, size_t n)
{
    const struct bench_lines m = *l;
    size_t i = 0, ringed = n > RING ? n - RING : 0;
    for (; i < RING && i < n; i++)
        __builtin_prefetch(line_of(&m, hash[i]), 1);
    for (i = 0; i < ringed; i++) {
        __builtin_prefetch(line_of(&m, hash[i + RING]), 1);
        *line_of(&m, hash[i]) |= 2;
    }
    for (; i < n; i++)
        *line_of(&m, hash[i]) |= 2;
}

/* ---- The disk's limit --------------------------------------------------- */

double bench_disk(const char *path, size_t bytes, size_t syncs)
{
    char *data = malloc(bytes);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (!data || fd < 0) bench_die("%s: cannot be written", path);
    if (posix_fallocate(fd, 0, (off_t)(bytes * syncs)) != 0 || fsync(fd) != 0)
        bench_die("%s: no space", path);
    memset(data, 0x5a, bytes);
    double began = bench_seconds();
    for (size_t i = 0; i < syncs; i++)
        if (pwrite(fd, data, bytes, (off_t)(i * bytes)) != (ssize_t)bytes ||
            fdatasync(fd) != 0)
            bench_die("%s: cannot be synced", path);
    double took = bench_seconds() - began;
    close(fd);
    unlink(path);
    free(data);
    return took;
}
