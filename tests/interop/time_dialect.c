/*
 * time_dialect.c - how long our own lookups in a filter of another system take.
 *
 *     time_dialect DIALECT FILE < KEYS      prints ns a key: one by one, in batches
 *
 * Keys are hex, one a line. The machine may be busy, and that only ever adds, so
 * pieces of 2048 keys are timed twenty times and the best of each counts: as the
 * programs beside this one do it for the originals.
 */
#define _POSIX_C_SOURCE 200809L

#include <seen.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST   4000000
#define ROUNDS 20
#define PIECE  2048

static seen_key *keys;
static size_t n;
static bool *answers;

static void *must_have(void *memory)
{
    if (!memory) exit(2);
    return memory;
}

static void read_keys(void)
{
    static char line[4096];
    keys = must_have(calloc(MOST, sizeof *keys));
    while (n < MOST && fgets(line, sizeof line, stdin)) {
        size_t digits = strcspn(line, "\n");
        uint8_t *key = must_have(malloc(digits / 2 + 1));
        for (size_t i = 0; i + 1 < digits; i += 2) {
            char two[3] = {line[i], line[i + 1], 0};
            key[i / 2] = (uint8_t)strtoul(two, NULL, 16);
        }
        keys[n++] = (seen_key){key, digits / 2};
    }
    answers = must_have(calloc(n + 1, 1));
}

static seen_filter *read_filter(const char *dialect, const char *path)
{
    FILE *in = fopen(path, "rb");
    size_t cap = (size_t)1 << 30;
    void *bytes = must_have(malloc(cap));
    size_t len = in ? fread(bytes, 1, cap, in) : 0;
    seen_filter *f = NULL;
    seen_error e;
    if (seen_import(&f, dialect, NULL, bytes, len, &e) != SEEN_OK) {
        fprintf(stderr, "%s: %s\n", path, e.text);
        exit(2);
    }
    free(bytes);
    return f;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void ask(const seen_filter *f, size_t at, size_t end, bool in_batches)
{
    if (in_batches) {
        seen_maybe_many(f, seen_keys_of(keys + at, end - at), answers + at);
        return;
    }
    for (size_t i = at; i < end; i++)
        answers[i] = seen_maybe(f, keys[i].data, keys[i].len);
}

static double measure(const seen_filter *f, bool in_batches)
{
    static double best[MOST / PIECE + 1];
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t at = 0; at < n; at += PIECE) {
            size_t end = at + PIECE < n ? at + PIECE : n;
            double start = now_ns();
            ask(f, at, end, in_batches);
            double took = now_ns() - start;
            if (round == 0 || took < best[at / PIECE]) best[at / PIECE] = took;
        }
    for (size_t at = 0; at < n; at += PIECE)
        sum += best[at / PIECE];
    return sum / (double)n;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    read_keys();
    seen_filter *f = read_filter(argv[1], argv[2]);
    printf("%.1f %.1f\n", measure(f, false), measure(f, true));
    seen_free(f);
}
