/*
 * bench_store.c - durable adds to a filter file, against what the disk can do.
 *
 * A round opens a file for 10M keys at 0.1 %, adds 200,000 keys in batches of
 * 1000, each batch on disk before the call returns, and closes it. The limit is
 * the disk's own: the same number of bytes appended to a file that has its
 * space already, and synced, as often. The two take turns.
 */
#define _POSIX_C_SOURCE 200809L

#include "seen_file.h"

#include "bench.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS  5
#define BATCH   1000
#define BATCHES 200

static char path[4096];

static uint64_t next_key; /* no key comes twice */

static void fill(uint64_t *values, seen_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = next_key++;
        keys[i] = (seen_key){&values[i], sizeof values[i]};
    }
}

static void must(seen_status status, const char *what)
{
    if (status != SEEN_OK) bench_die("%s: %s", what, seen_strerror(status));
}

/* Seconds for the adds; opening and closing are not part of it. */
static double add_round(seen_kind kind, size_t batch, size_t batches)
{
    static uint64_t values[65536];
    static seen_key keys[65536];
    seen_spec spec = {.kind = kind, .items = 10000000, .fpp = 0.001};
    seen_file_options o = {.mode = SEEN_DURABLE, .create = &spec};
    seen_file *s;
    unlink(path);
    must(seen_file_open(&s, path, &o, NULL, NULL), "open");
    double began = bench_seconds();
    for (size_t i = 0; i < batches; i++) {
        fill(values, keys, batch);
        must(seen_file_add_many(s, seen_keys_of(keys, batch), NULL, NULL),
             "add");
    }
    double took = bench_seconds() - began;
    must(seen_file_close(s, NULL), "close");
    must(seen_file_verify(path, NULL, NULL), "verify");
    unlink(path);
    return took;
}

static void row(seen_kind kind, size_t batch, size_t batches, bool target)
{
    struct bench_series ours = {0}, disk = {0};
    const double keys = (double)(batch * batches);
    for (int i = 0; i < ROUNDS; i++) {
        bench_round(&ours, add_round(kind, batch, batches) / keys * 1e9);
        bench_round(&disk, bench_disk(path, batch * 8, batches) / keys * 1e9);
    }
    char name[96], note[96];
    snprintf(name, sizeof name, "durable adds, %s, batch %zu",
             seen_kind_name(kind), batch);
    snprintf(note, sizeof note, "%.0fk keys/s; the disk: %.0f fdatasync/s",
             1e6 / bench_best(&ours), 1e9 / bench_best(&disk) / (double)batch);
    double limit = bench_best(&disk);
    bench_print(&(struct bench_row){
        .name = name,
        .unit = "ns/key",
        .ours = ours,
        .limit_name = "disk alone",
        .limit = disk,
        .what = target ? BENCH_OURS_AT_MOST : BENCH_NO_AIM,
        .aim = limit > 2000 ? limit : 2000, /* 500k keys/s, or the disk's */
        .note = note});
}

/* A filter of a gigabyte is opened and closed, once compared with its checksums
 * and once without reading a byte of it. */
static void open_rows(void)
{
    seen_spec spec = {.items = 550000000, .fpp = 0.001};
    seen_file_options create = {.mode = SEEN_DURABLE, .create = &spec},
                      read = {.mode = SEEN_READ};
    seen_file *s;
    must(seen_file_open(&s, path, &create, NULL, NULL), "create");
    must(seen_file_close(s, NULL), "close");
    for (int quick = 0; quick < 2; quick++) {
        struct bench_series ours = {0};
        read.flags = quick ? SEEN_UNVERIFIED : 0;
        for (int i = 0; i < (quick ? 20 : 5); i++) {
            double began = bench_seconds();
            must(seen_file_open(&s, path, &read, NULL, NULL), "open");
            bool answer;
            seen_file_maybe_many(s, seen_keys_of(&(seen_key){"a", 1}, 1),
                                 &answer);
            must(seen_file_close(s, NULL), "close");
            bench_round(&ours, (bench_seconds() - began) * 1e6);
        }
        bench_print(&(struct bench_row){
            .name = quick ? "open 1.1 GB, unverified, ask once, close"
                          : "open 1.1 GB, ask once, close",
            .unit = "us",
            .ours = ours});
    }
    unlink(path);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct bench_options o;
    char **rest = bench_start(argv, "store", &o);
    if (!*rest || rest[1]) bench_die("expected the name of a scratch file");
    snprintf(path, sizeof path, "%s", *rest);
    row(SEEN_BLOCKED, BATCH, o.quick ? 20 : BATCHES, true);
    row(SEEN_CUCKOO, BATCH, o.quick ? 20 : BATCHES, false);
    row(SEEN_BLOCKED, 65536, o.quick ? 2 : 20, false);
    if (!o.quick) open_rows();
    return bench_finish();
}
