/*
 * fuzz_dialect.c - libFuzzer against the readers of other systems' filters.
 *
 * The first byte of an input chooses the dialect, the second the parameters that
 * the caller would give; the rest is the filter. Any bytes: an error, or a filter
 * that answers every question, takes keys or says that it does not, and can be
 * exported; and what was exported is read again and gives the same answers. A
 * view says what a copy says. It takes no more memory than seen.h says.
 *
 * Some callers set a limit and some do not: then a header may ask for a next link
 * that is larger than any input, and what has grown so far is left alone.
 */
#include "seen.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define ASKED 8

static void must(bool fact)
{
    if (!fact) abort();
}

/* ---- Parameters --------------------------------------------------------- */

#define LIMIT (1 << 22) /* where growing ends, whatever a header says */

static const seen_spec specs[] = {
    {.limit = LIMIT, .bits = 1000, .hashes = 7},
    {.limit = LIMIT, .bits = 64, .hashes = 1},
    {.limit = LIMIT, .bits = 100000, .hashes = 14},
    {.limit = LIMIT, .items = 100, .fpp = 0.01},
    {.limit = LIMIT, .items = 1000, .fpp = 0.001},
    {.limit = LIMIT, .items = 1, .fpp = 0.9},
    {.limit = LIMIT, .hashes = 255},
    {.limit = LIMIT},
    {.limit = LIMIT, .items = UINT64_MAX, .fpp = 1e-300},
    {.limit = LIMIT, .items = 3, .fpp = -7},
    {.limit = LIMIT, .bits = UINT64_MAX, .hashes = UINT32_MAX},
    {.limit = 1},
    {.limit = 5000, .bits = 1000, .hashes = 7},
    {0},
    {.bits = 1000, .hashes = 7},
    {.bits = 1 << 20, .hashes = 14},
    {.items = 100, .fpp = 0.01},
    {.hashes = 255},
    {.items = UINT64_MAX, .fpp = 1e-300},
    {.bits = UINT64_MAX, .hashes = UINT32_MAX},
};

#define SPECS (sizeof specs / sizeof *specs)

static const char *choose(uint8_t number)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    size_t n = 0;
    while (seen_dialect_at(n, &facts))
        n++;
    must(seen_dialect_at(number % n, &facts));
    return facts.name;
}

/* ---- Use ---------------------------------------------------------------- */

static void make_keys(seen_key keys[ASKED], const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < ASKED; i++) {
        size_t at = len * i / ASKED, size = len - at;
        keys[i] = (seen_key){data + at, size < 5 * i ? size : 5 * i};
    }
}

static void ask(const seen_filter *f, const seen_key keys[ASKED],
                bool answers[ASKED])
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    must(info.fpp_now >= 0 && info.fpp_now <= 1);
    seen_maybe_many(f, seen_keys_of(keys, ASKED), answers);
    for (size_t i = 0; i < ASKED; i++) {
        must(seen_maybe(f, keys[i].data, keys[i].len) == answers[i]);
        must((seen_count(f, keys[i].data, keys[i].len) > 0) == answers[i]);
    }
}

static void must_come_back(const seen_filter *f, const char *dialect,
                           const seen_spec *spec, const seen_key keys[ASKED])
{
    size_t len;
    seen_filter *again = NULL;
    bool a[ASKED], b[ASKED];
    seen_status s = seen_export(f, NULL, NULL, 0, &len, NULL);
    must(s == SEEN_SHORT || (s == SEEN_OK && len == 0));
    uint8_t *bytes = malloc(len + 1);
    must(bytes && seen_export(f, NULL, bytes, len, &len, NULL) == SEEN_OK);
    must(seen_import(&again, dialect, spec, bytes, len, NULL) == SEEN_OK);
    ask(f, keys, a);
    ask(again, keys, b);
    must(memcmp(a, b, sizeof a) == 0);
    free(bytes);
    seen_free(again);
}

static bool too_large(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info.bytes > 4 * LIMIT;
}

static void change(seen_filter *f, const char *dialect, const seen_spec *spec,
                   const seen_key keys[ASKED])
{
    seen_filter *copy = NULL;
    bool before;
    must(seen_copy(&copy, f, NULL) == SEEN_OK && seen_equal(copy, f));
    for (size_t i = 0; i < ASKED; i++) {
        if (seen_visit(copy, keys[i].data, keys[i].len, &before) == SEEN_OK)
            must(seen_maybe(copy, keys[i].data, keys[i].len));
        if (too_large(copy)) break;
    }
    if (too_large(copy)) {
        must(!spec->limit);
        seen_free(copy);
        return;
    }
    must_come_back(copy, dialect, spec, keys);
    seen_merge(copy, f, SEEN_UNION, NULL);
    seen_merge(copy, f, SEEN_INTERSECTION, NULL);
    for (size_t i = 0; i < ASKED; i++)
        seen_remove(copy, keys[i].data, keys[i].len);
    must_come_back(copy, dialect, spec, keys);
    seen_clear(copy);
    must_come_back(copy, dialect, spec, keys);
    seen_add_many(copy, seen_keys_of(keys, ASKED), NULL);
    must_come_back(copy, dialect, spec, keys);
    seen_free(copy);
}

/* What the caller names is as good as given: bits that no byte says. */
static uint64_t spec_bytes(const seen_spec *spec)
{
    return spec->bits <= 8 * LIMIT ? spec->bits / 8 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2) return 0;
    const char *dialect = choose(data[0]), *names[4];
    const seen_spec *spec = &specs[data[1] % SPECS];
    size_t rest = len - 2;
    uint8_t *bytes = malloc(rest ? rest : 1); /* exactly */
    must(bytes != NULL);
    memcpy(bytes, data + 2, rest);
    seen_key keys[ASKED];
    make_keys(keys, data, len);

    seen_sniff(bytes, rest, names, 4);
    seen_filter *f = NULL, *view = NULL;
    bool a[ASKED], b[ASKED];
    fuzz_memory_begin();
    seen_error e;
    seen_status s = seen_import(&f, dialect, spec, bytes, rest, &e);
    fuzz_memory_within(rest + spec_bytes(spec));
    must(e.status == s && (s == SEEN_OK) == !e.text[0]);
    if (s == SEEN_OK) {
        ask(f, keys, a);
        must_come_back(f, dialect, spec, keys);
        change(f, dialect, spec, keys);
    }
    if (seen_import_view(&view, dialect, spec, bytes, rest, NULL) == SEEN_OK) {
        must(s == SEEN_OK && seen_equal(view, f));
        ask(view, keys, b);
        must(memcmp(a, b, sizeof a) == 0);
        must(seen_add(view, "key", 3) == SEEN_UNSUPPORTED);
    }
    seen_free(view);
    seen_free(f);
    free(bytes);
    return 0;
}
