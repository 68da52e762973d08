/*
 * digest.c - two numbers for each shape of filter: a checksum of its answers to
 * fixed questions, and one of its saved bytes. Every processor and every kernel
 * must print the same lines.
 */
#include <seen.h>
#include <seen_bitmap.h>
#include <stdio.h>
#include <stdlib.h>

#define START 0xcbf29ce484222325

static uint64_t checksum(uint64_t sum, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        sum ^= value >> (8 * i) & 0xff;
        sum *= 0x100000001b3;
    }
    return sum;
}

static void must(seen_status status)
{
    if (status == SEEN_OK) return;
    fprintf(stderr, "digest: %s\n", seen_strerror(status));
    exit(1);
}

static uint64_t checksum_of(const uint8_t *bytes, size_t len)
{
    uint64_t sum = START;
    for (size_t i = 0; i < len; i++)
        sum = checksum(sum, bytes[i]);
    return sum;
}

static uint64_t saved_bytes(const seen_filter *f)
{
    size_t len;
    if (seen_save(f, 0, NULL, 0, &len) != SEEN_SHORT) exit(1);
    uint8_t *bytes = malloc(len);
    if (!bytes) exit(1);
    must(seen_save(f, 0, bytes, len, &len));
    uint64_t sum = checksum_of(bytes, len);
    free(bytes);
    return sum;
}

/* A filter planned for `planned` keys gets `items`. */
static void digest_grown(seen_kind kind, uint64_t planned, uint64_t items,
                         double fpp, uint32_t flags)
{
    static const uint8_t key[16] = "portable digest";
    seen_filter *f;
    must(seen_new(&f,
                  &(seen_spec){.items = planned,
                               .fpp = fpp,
                               .kind = kind,
                               .flags = flags,
                               .secret = key},
                  NULL));
    uint64_t sum = START;
    for (uint64_t i = 0; i < items; i++) {
        bool before;
        must(seen_visit_u64(f, i, &before));
        sum = checksum(sum, before);
    }
    enum {
        batch = 1000
    };
    static uint64_t numbers[batch];
    seen_key keys[batch];
    bool answers[batch];
    for (uint64_t first = 0; first < 3 * items; first += batch) {
        for (uint64_t i = 0; i < batch; i++) {
            uint8_t *bytes = (uint8_t *)&numbers[i];
            for (int b = 0; b < 8; b++)
                bytes[b] = (uint8_t)((first + i) >> (8 * b));
            keys[i] = (seen_key){bytes, 8};
        }
        seen_maybe_many(f, seen_keys_of(keys, batch), answers);
        for (int i = 0; i < batch; i++)
            sum = checksum(sum, answers[i]);
    }
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    sum = checksum(sum, info.bits_set);
    sum = checksum(sum, info.items);
    printf("%-8s %7llu %-8g %u %10llu %016llx %016llx\n", seen_kind_name(kind),
           (unsigned long long)items, fpp, flags, (unsigned long long)info.bits,
           (unsigned long long)sum, (unsigned long long)saved_bytes(f));
    seen_free(f);
}

static void digest_filter(seen_kind kind, uint64_t items, double fpp,
                          uint32_t flags)
{
    digest_grown(kind, items, items, fpp, flags);
}

/* Every thousandth key asks about those before it and moves the clock. */
static void digest_window(double fpp, uint32_t generations, uint64_t window_ms,
                          uint32_t flags)
{
    static const uint8_t key[16] = "portable digest";
    seen_filter *f;
    must(seen_new(&f,
                  &(seen_spec){.kind = SEEN_WINDOW,
                               .last = 5000,
                               .window_ms = window_ms,
                               .generations = generations,
                               .fpp = fpp,
                               .flags = flags,
                               .secret = key},
                  NULL));
    uint64_t sum = START;
    for (uint64_t i = 0; i < 30000; i++) {
        bool before;
        must(seen_visit_u64(f, i * i % 20011, &before));
        sum = checksum(sum, before);
        if (i % 1000) continue;
        must(seen_advance(f, i / 1000 % 7 * i / 300));
        for (uint64_t j = 0; j < 20011; j++)
            sum = checksum(sum, seen_maybe_u64(f, j));
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        sum = checksum(sum, info.bits_set);
        sum = checksum(sum, info.items);
    }
    sum = checksum(sum, saved_bytes(f));
    printf("window   %-8g %u %u %4llu %016llx\n", fpp, generations, flags,
           (unsigned long long)window_ms, (unsigned long long)sum);
    seen_free(f);
}

static void digest_built(seen_kind kind, double fpp)
{
    enum {
        items = 5000
    };
    static uint8_t bytes[items][8];
    static seen_key keys[items];
    for (uint64_t i = 0; i < items; i++) {
        for (int b = 0; b < 8; b++)
            bytes[i][b] = (uint8_t)(i >> (8 * b));
        keys[i] = (seen_key){bytes[i], 8};
    }
    seen_filter *f;
    seen_spec spec = {.kind = kind, .fpp = fpp};
    must(seen_build(&f, &spec, seen_keys_of(keys, items), NULL));
    uint64_t sum = START;
    for (uint64_t i = 0; i < 10 * items; i++)
        sum = checksum(sum, seen_maybe_u64(f, i));
    printf("%s %g %016llx %016llx\n", seen_kind_name(kind), fpp,
           (unsigned long long)sum, (unsigned long long)saved_bytes(f));
    seen_free(f);
}

static void digest_bitmap(void)
{
    seen_bitmap *b;
    size_t len;
    must(seen_bitmap_new(&b, 1000003, NULL, NULL));
    for (uint64_t i = 0; i < 1000003; i += 7 + i % 5)
        must(seen_bitmap_set(b, i));
    must(seen_bitmap_set_range(b, 70000, 90001));
    if (seen_bitmap_save(b, NULL, 0, &len) != SEEN_SHORT) exit(1);
    uint8_t *bytes = malloc(len);
    if (!bytes) exit(1);
    must(seen_bitmap_save(b, bytes, len, &len));
    uint64_t sum = checksum_of(bytes, len);
    printf("bitmap   %zu bytes %016llx\n", len, (unsigned long long)sum);
    free(bytes);
    seen_bitmap_free(b);
}

int main(void)
{
    static const double rates[] = {0.3,  0.2,  0.08, 0.01,
                                   1e-3, 1e-5, 1e-9, 1e-16};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        digest_filter(SEEN_BLOCKED, 20000, rates[i], 0);
        digest_filter(SEEN_BLOCKED, 20000, rates[i], SEEN_KEYED);
        digest_filter(SEEN_BLOCKED, 300, rates[i], SEEN_CONCURRENT);
        digest_filter(SEEN_BLOOM, 20000, rates[i], 0);
    }
    digest_filter(SEEN_CUCKOO, 20000, 1e-3, 0);
    digest_filter(SEEN_CUCKOO, 20000, 1e-7, SEEN_KEYED);
    digest_grown(SEEN_SCALABLE, 100, 20000, 0.01, 0);
    digest_grown(SEEN_SCALABLE, 100, 20000, 1e-3, 0);
    digest_grown(SEEN_SCALABLE, 1, 3000, 1e-6, SEEN_KEYED);
    digest_window(0.1, 3, 0, 0);
    digest_window(0.01, 4, 250, 0);
    digest_window(1e-5, 4, 250, SEEN_KEYED);
    digest_filter(SEEN_SET, 50000, 1e-9, 0);
    digest_built(SEEN_RIBBON, 0.3);
    digest_built(SEEN_RIBBON, 0.01);
    digest_built(SEEN_RIBBON, 1e-3);
    digest_built(SEEN_RIBBON, 1e-6);
    digest_built(SEEN_RIBBON, 1e-9);
    digest_built(SEEN_SORTED, 0.01);
    digest_bitmap();
    return 0;
}
