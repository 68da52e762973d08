/* keys.c - keys that never repeat. */
#include "helpers/keys.h"

#include <stdlib.h>

#define BATCH 4096

const uint8_t test_secret[16] = {0xc3, 0x5a, 0x91, 0x0f, 0x77, 0xe8,
                                 0x24, 0xb6, 0x1d, 0x60, 0xfa, 0x83,
                                 0x4c, 0x39, 0xd5, 0x02};

uint64_t test_key(uint64_t i)
{
    return test_mix(test_mix(test_seed()) + i);
}

static void put_key(uint8_t *to, uint64_t key)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(key >> (8 * i));
}

void test_batch_fill(struct test_batch *b, uint64_t first, size_t n)
{
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        put_key(b->bytes + 8 * i, test_key(first + i));
        b->keys[i] = (seen_key){b->bytes + 8 * i, 8};
    }
}

static struct test_batch empty_batch(size_t room)
{
    struct test_batch b = {0};
    b.keys = calloc(room + 1, sizeof *b.keys);
    b.bytes = calloc(room + 1, 8);
    b.answers = calloc(room + 1, sizeof *b.answers);
    if (!b.keys || !b.bytes || !b.answers) abort();
    return b;
}

struct test_batch test_batch_new(uint64_t first, size_t n)
{
    struct test_batch b = empty_batch(n);
    test_batch_fill(&b, first, n);
    return b;
}

void test_batch_free(struct test_batch *b)
{
    free(b->keys);
    free(b->bytes);
    free(b->answers);
}

void test_add_members(seen_filter *f, uint64_t first, uint64_t n)
{
    struct test_batch b = empty_batch(n < BATCH ? (size_t)n : BATCH);
    while (n > 0) {
        size_t now = n < BATCH ? (size_t)n : BATCH, added = 0;
        test_batch_fill(&b, first, now);
        assert_int_equal(seen_add_many(f, seen_keys_of(b.keys, now), &added),
                         SEEN_OK);
        assert_int_equal(added, now);
        first += now;
        n -= now;
    }
    test_batch_free(&b);
}

uint64_t test_count_maybe(const seen_filter *f, uint64_t first, uint64_t n)
{
    struct test_batch b = empty_batch(n < BATCH ? (size_t)n : BATCH);
    uint64_t count = 0;
    while (n > 0) {
        size_t now = n < BATCH ? (size_t)n : BATCH;
        test_batch_fill(&b, first, now);
        seen_maybe_many(f, seen_keys_of(b.keys, now), b.answers);
        for (size_t i = 0; i < now; i++)
            count += b.answers[i];
        first += now;
        n -= now;
    }
    test_batch_free(&b);
    return count;
}

seen_info test_info(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    assert_int_equal(seen_measure(f, &info), SEEN_OK);
    return info;
}

seen_filter *test_filter(seen_spec spec)
{
    seen_filter *f = NULL;
    seen_error e;
    if (seen_new(&f, &spec, &e) != SEEN_OK) fail_msg("seen_new: %s", e.text);
    return f;
}

/* What seen.h promises about every error. */
static const char *checked(seen_status status, const seen_error *e)
{
    static char text[sizeof e->text];
    if (e->status != status) fail_msg("%d, not %d", e->status, status);
    if ((status == SEEN_OK) != !*e->text) fail_msg("\"%s\"", e->text);
    if (status == SEEN_OK) return NULL;
    if (e->field && strcmp(e->field, "buf") != 0 &&
        strncmp(e->text, e->field, strlen(e->field)) != 0)
        fail_msg("\"%s\" does not begin with %s", e->text, e->field);
    memcpy(text, e->text, sizeof text);
    return text;
}

const char *test_wrong_spec(const seen_spec *spec)
{
    seen_plan plan = {.size = sizeof plan};
    seen_error e;
    memset(&e, 0x5a, sizeof e);
    seen_status status = seen_plan_for(spec, &plan, &e);
    return checked(status, &e);
}

const char *test_wrong_bytes(const char *dialect, const seen_spec *spec,
                             const void *bytes, size_t len)
{
    seen_filter *f;
    seen_error e;
    memset(&e, 0x5a, sizeof e);
    seen_status status = seen_import(&f, dialect, spec, bytes, len, &e);
    if (status == SEEN_OK) seen_free(f);
    return checked(status, &e);
}

bool test_kind_can(seen_kind kind, uint32_t flags)
{
    seen_spec spec = {.items = 10,
                      .fpp = 0.01,
                      .kind = kind,
                      .last = test_last(kind, 10),
                      .flags = flags,
                      .secret = test_secret};
    seen_plan plan = {.size = sizeof plan};
    return seen_plan_for(&spec, &plan, NULL) == SEEN_OK;
}

bool test_kind_counts(seen_kind kind)
{
    seen_filter *f = test_filter((seen_spec){
        .items = 10, .fpp = 0.01, .kind = kind, .last = test_last(kind, 10)});
    assert_int_equal(seen_add_str(f, "twice"), SEEN_OK);
    assert_int_equal(seen_add_str(f, "twice"), SEEN_OK);
    bool counts = seen_count(f, "twice", 5) == 2;
    seen_free(f);
    return counts;
}

bool test_kind_forgets(seen_kind kind)
{
    return kind == SEEN_WINDOW;
}

uint64_t test_last(seen_kind kind, uint64_t n)
{
    return test_kind_forgets(kind) ? n : 0;
}

/* Planned for one key and given many: what grows shows its order now. */
bool test_kind_is_set(seen_kind kind)
{
    if (test_kind_counts(kind) || test_kind_forgets(kind)) return false;
    const seen_spec spec = {.items = 1, .fpp = 1e-6, .kind = kind};
    seen_filter *up = test_filter(spec), *down = test_filter(spec);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(seen_add_u64(up, test_key(i)), SEEN_OK);
        assert_int_equal(seen_add_u64(down, test_key(19 - i)), SEEN_OK);
    }
    bool equal = seen_equal(up, down);
    seen_free(up);
    seen_free(down);
    return equal;
}

/* Our keys are any 64 bits, and some tests add bytes of other lengths: a bitmap
 * takes only integers below its bound. */
static bool takes_any_key(seen_kind kind)
{
    return kind != SEEN_BITMAP;
}

static bool can_add(seen_kind kind)
{
    seen_filter *f = NULL;
    seen_status status = seen_new(&f,
                                  &(seen_spec){.items = 10,
                                               .fpp = 0.01,
                                               .kind = kind,
                                               .last = test_last(kind, 10)},
                                  NULL);
    seen_free(f);
    return status != SEEN_UNSUPPORTED;
}

seen_kind test_kind_at(size_t index)
{
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        if (takes_any_key(kind) && can_add(kind) && index-- == 0) return kind;
    return SEEN_ANY;
}

seen_kind test_set_kind_at(size_t index)
{
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++)
        if (test_kind_is_set(kind) && index-- == 0) return kind;
    return SEEN_ANY;
}

/* ---- Any kind at all ---------------------------------------------------- */

seen_spec test_spec_for(seen_kind kind, uint64_t items)
{
    if (kind == SEEN_BITMAP)
        return (seen_spec){.kind = kind, .bits = 4 * items};
    return (seen_spec){.kind = kind,
                       .items = items,
                       .fpp = 0.01,
                       .last = test_last(kind, items)};
}

uint64_t test_key_for(seen_kind kind, uint64_t i)
{
    if (takes_any_key(kind)) return test_key(i);
    return i < TEST_STRANGERS ? 2 * i : 2 * (i - TEST_STRANGERS) + 1;
}

struct test_batch test_batch_for(seen_kind kind, uint64_t first, size_t n)
{
    struct test_batch b = test_batch_new(first, n);
    for (size_t i = 0; i < n; i++)
        put_key(b.bytes + 8 * i, test_key_for(kind, first + i));
    return b;
}

seen_filter *test_filled(seen_spec spec, uint64_t first, size_t n)
{
    struct test_batch b = test_batch_for(spec.kind, first, n);
    seen_filter *f = NULL;
    seen_status status = seen_new(&f, &spec, NULL);
    if (status == SEEN_OK)
        status = seen_add_many(f, seen_keys_of(b.keys, n), NULL);
    else if (status == SEEN_UNSUPPORTED)
        status = seen_build(&f, &spec, seen_keys_of(b.keys, n), NULL);
    if (status != SEEN_OK)
        fail_msg("%s: %s", seen_kind_name(spec.kind), seen_strerror(status));
    test_batch_free(&b);
    return f;
}
