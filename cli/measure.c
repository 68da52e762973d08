/* measure.c - see measure.h. */
#define _DEFAULT_SOURCE /* for madvise() */

#include "measure.h"

#include "memory.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NOT_THERE    ((uint64_t)1 << 62)
#define BATCH        4096
#define ROUNDS       5
#define ROUND_NS     25e6
#define RATE_NS      1e9
#define WRONG_WANT   100.0
#define LEAST_PROBES 1e6
#define PROBES_MAX   1e10 /* beyond hope: then a few will do */
#define AHEAD        32   /* lines under way at once, as the filters have it */

/* Processor time: what else the machine does counts as little as possible. */
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- Keys --------------------------------------------------------------- */

/* splitmix64: no two numbers give the same. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static struct {
    uint8_t *bytes;
    seen_key key[BATCH];
    bool there[BATCH], answer[BATCH];
    size_t len, n;
    uint64_t random;
} keys;

static void keys_new(size_t len)
{
    keys.bytes = must_have(malloc(BATCH * (len + 8)));
    keys.len = len;
    for (size_t i = 0; i < BATCH; i++)
        keys.key[i] = (seen_key){keys.bytes + i * (len + 8), len};
}

static void set_key(size_t i, uint64_t number)
{
    uint8_t *to = keys.bytes + i * (keys.len + 8);
    uint64_t x = mix(number);
    for (size_t at = 0; at < keys.len; at += 8) {
        memcpy(to + at, &x, 8);
        x = mix(x);
    }
    keys.there[i] = number < NOT_THERE;
}

static void keys_run(uint64_t first, uint64_t end)
{
    keys.n = end - first < BATCH ? (size_t)(end - first) : BATCH;
    for (size_t i = 0; i < keys.n; i++)
        set_key(i, first + i);
}

/* Any of those that are there, and as many of the others. */
static void keys_half(uint64_t items)
{
    keys.n = BATCH;
    for (size_t i = 0; i < BATCH; i++) {
        uint64_t x = mix(keys.random++);
        set_key(i, x & 1 ? (x >> 1) % items : NOT_THERE + (x >> 3));
    }
}

static void must_be_there(void)
{
    for (size_t i = 0; i < keys.n; i++)
        if (keys.there[i] && !keys.answer[i])
            fail("a key that was added was not found: this machine, or this "
                 "program, is broken");
}

/* ---- Adding ------------------------------------------------------------- */

static seen_filter *add_all(const seen_spec *spec, uint64_t items, double *ns,
                            measure_progress *progress)
{
    seen_filter *f = NULL;
    seen_builder *builder = NULL;
    seen_status s = seen_kind_built(spec->kind)
                        ? seen_builder_new(&builder, spec, NULL)
                        : seen_new(&f, spec, NULL);
    *ns = 0;
    for (uint64_t done = 0; s == SEEN_OK && done < items; done += keys.n) {
        keys_run(done, items);
        if (done % (64 * BATCH) == 0)
            progress("add", (double)done / (double)items);
        double start = now_ns();
        s = builder
                ? seen_builder_add_many(builder, seen_keys_of(keys.key, keys.n))
                : seen_add_many(f, seen_keys_of(keys.key, keys.n), NULL);
        *ns += now_ns() - start;
    }
    if (s == SEEN_OK && builder) {
        progress("build", 0);
        double start = now_ns();
        s = seen_builder_finish(builder, &f, NULL);
        *ns += now_ns() - start;
    }
    seen_builder_free(builder);
    if (s != SEEN_OK)
        fail("%s: %s; try a smaller -n", seen_kind_name(spec->kind),
             seen_strerror(s));
    *ns /= (double)items;
    return f;
}

/* ---- Asking ------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

static void ask_one_by_one(const seen_filter *f)
{
    for (size_t i = 0; i < keys.n; i++)
        keys.answer[i] = seen_maybe(f, keys.key[i].data, keys.key[i].len);
}

static void ask_batch(const seen_filter *f)
{
    seen_maybe_many(f, seen_keys_of(keys.key, keys.n), keys.answer);
}

static double time_asking(const seen_filter *f, uint64_t items,
                          void (*ask)(const seen_filter *f), const char *what,
                          measure_progress *progress)
{
    double rounds[ROUNDS];
    for (size_t r = 0; r < ROUNDS; r++) {
        double ns = 0;
        uint64_t asked = 0;
        progress(what, (double)r / ROUNDS);
        while (ns < ROUND_NS) {
            keys_half(items);
            double start = now_ns();
            ask(f);
            ns += now_ns() - start;
            asked += keys.n;
            must_be_there();
        }
        rounds[r] = ns / (double)asked;
    }
    return median(rounds, ROUNDS);
}

static void count_wrong(const seen_filter *f, struct measured *m,
                        measure_progress *progress)
{
    double wanted = WRONG_WANT / m->plan.fpp, start = now_ns();
    if (wanted < LEAST_PROBES || wanted > PROBES_MAX) wanted = LEAST_PROBES;
    while ((double)m->probes < wanted && now_ns() - start < RATE_NS) {
        keys_run(NOT_THERE + m->probes, UINT64_MAX);
        ask_batch(f);
        for (size_t i = 0; i < keys.n; i++)
            m->wrong += keys.answer[i];
        m->probes += keys.n;
        if (m->probes % (64 * BATCH) == 0)
            progress("rate", (double)m->probes / wanted);
    }
    m->rate = (double)m->wrong / (double)m->probes;
}

/* ---- The machine's limit ------------------------------------------------ */

#define HUGE_PAGE ((size_t)2 << 20)

/* Cache lines, on large pages where the system has them, as filters are. */
static uint64_t *lines_new(uint64_t lines)
{
    void *words;
    size_t room = (size_t)lines * 64;
    if (posix_memalign(&words, HUGE_PAGE, room) != 0) words = NULL;
    must_have(words);
#ifdef MADV_HUGEPAGE
    if (room >= HUGE_PAGE) madvise(words, room, MADV_HUGEPAGE);
#endif
    memset(words, 1, room);
    return words;
}

static double time_reading(uint64_t bytes, measure_progress *progress)
{
    uint64_t lines = bytes / 64 + 1, number = 0;
    if (lines > UINT32_MAX) lines = UINT32_MAX; /* 256 GiB are memory enough */
    double rounds[ROUNDS];
    uint64_t *words = lines_new(lines);
    for (size_t r = 0; r < ROUNDS; r++) {
        uint64_t at[BATCH + AHEAD], sum = 0, read = 0;
        double ns = 0;
        progress("read", (double)r / ROUNDS);
        while (ns < ROUND_NS / 2) {
            for (size_t i = 0; i < BATCH + AHEAD; i++)
                at[i] = ((mix(number++) >> 32) * lines >> 32) * 8;
            double start = now_ns();
            for (size_t i = 0; i < BATCH; i++) {
                __builtin_prefetch(words + at[i + AHEAD]);
                sum += words[at[i]];
            }
            ns += now_ns() - start;
            read += BATCH;
        }
        if (sum != read * UINT64_C(0x0101010101010101)) /* so that it is read */
            fail("memory has changed by itself: this machine is broken");
        rounds[r] = ns / (double)read;
    }
    free(words);
    return median(rounds, ROUNDS);
}

/* ---- All of it ---------------------------------------------------------- */

struct measured measure(const seen_spec *spec, size_t key_bytes,
                        measure_progress *progress)
{
    struct measured m = {.kind = spec->kind, .plan.size = sizeof m.plan};
    if (seen_plan_for(spec, &m.plan, &m.error) != SEEN_OK) return m;
    uint64_t items = spec->items ? spec->items : m.plan.items;
    keys_new(key_bytes);
    seen_filter *f = add_all(spec, items, &m.add_ns, progress);
    seen_info info = {.size = sizeof info};
    seen_info_of(f, &info);
    m.bytes = info.bytes;
    m.single_ns = time_asking(f, items, ask_one_by_one, "ask", progress);
    m.batch_ns = time_asking(f, items, ask_batch, "ask in batches", progress);
    count_wrong(f, &m, progress);
    seen_free(f);
    m.read_ns = time_reading(m.bytes, progress);
    free(keys.bytes);
    return m;
}
