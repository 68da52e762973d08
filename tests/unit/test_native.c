/*
 * test_native.c - saved filters of every kind: what is read back, what is
 * refused, and that nothing else happens.
 *
 * The laws hold for any kind, so a new one is tested by being in kinds.def
 * (and by test_spec_for(), where it needs a spec of its own):
 *
 *     saving what was loaded gives the same bytes
 *     bytes that are accepted are saved as they are, and work
 *     bytes that are not are refused, within memory in proportion to them
 */
#include "dialect/native.h"

#include "api/bytes.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "bits/packed.h"
#include "filter/filter.h"
#include "helpers/failing_alloc.h"
#include "helpers/keys.h"
#include "seen_allowlist.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS 100
#define ASKED   300 /* members and strangers, each */

enum {
    KIND_AT = 10,
    FLAGS_AT = 12,
    ITEMS_AT = 56,
    TABLE_CRC_AT = 112,
    EXTRA_CRC_AT = 116
};
enum {
    CRC_AT = SEEN_HEADER_SIZE - 4
};

/* ---- Bytes -------------------------------------------------------------- */

struct bytes {
    uint8_t *at; /* aligned for a view */
    size_t len;
};

static struct bytes room(size_t len)
{
    struct bytes b = {aligned_alloc(64, (len + 127) / 64 * 64), len};
    assert_non_null(b.at);
    return b;
}

static struct bytes save_with(const seen_filter *f, uint32_t flags)
{
    size_t len = 0;
    assert_int_equal(seen_save(f, flags, NULL, 0, &len), SEEN_SHORT);
    struct bytes b = room(len);
    assert_int_equal(seen_save(f, flags, b.at, len, &len), SEEN_OK);
    assert_int_equal(len, b.len);
    return b;
}

static struct bytes save(const seen_filter *f)
{
    return save_with(f, 0);
}

static struct bytes duplicate(struct bytes b)
{
    struct bytes copy = room(b.len);
    memcpy(copy.at, b.at, b.len);
    return copy;
}

static void assert_saves_as(const seen_filter *f, struct bytes expected)
{
    struct bytes b = save(f);
    assert_int_equal(b.len, expected.len);
    assert_memory_equal(b.at, expected.at, b.len);
    free(b.at);
}

static struct seen_native header_of(struct bytes b)
{
    struct seen_native h;
    assert_int_equal(seen_native_read(b.at, b.len, &h, NULL), SEEN_OK);
    return h;
}

static void fix_header(uint8_t *header)
{
    seen_put_le32(header + CRC_AT, seen_crc32c(0, header, CRC_AT));
}

/* All checksums of a file with one header, as somebody who means harm would. */
static void fix_sums(struct bytes b)
{
    struct seen_native h = header_of(b);
    uint64_t pages = seen_native_pages(h.payload_len);
    uint8_t *table = b.at + h.table_offset;
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t left = h.payload_len - i * SEEN_PAGE_SIZE;
        uint64_t from = h.payload_offset + i * SEEN_PAGE_SIZE;
        seen_put_le32(table + 4 * i,
                      seen_crc32c(0, b.at + from,
                                  (size_t)seen_min64(left, SEEN_PAGE_SIZE)));
    }
    seen_put_le32(b.at + TABLE_CRC_AT,
                  seen_crc32c(0, table, (size_t)(4 * pages)));
    seen_put_le32(b.at + EXTRA_CRC_AT, seen_crc32c(0, table + 4 * pages,
                                                   h.state_len + h.listed_len));
    fix_header(b.at);
}

static seen_filter *load(struct bytes b)
{
    seen_filter *f = NULL;
    assert_int_equal(seen_load(&f, b.at, b.len, NULL, NULL, NULL), SEEN_OK);
    return f;
}

static seen_filter *view(struct bytes b)
{
    seen_filter *f = NULL;
    assert_int_equal(seen_view(&f, b.at, b.len, NULL, NULL), SEEN_OK);
    return f;
}

/* ---- Every kind --------------------------------------------------------- */

static seen_spec spec_of(seen_kind kind, bool keyed)
{
    seen_spec spec = test_spec_for(kind, MEMBERS);
    spec.flags = keyed ? SEEN_KEYED : 0;
    if (keyed) spec.secret = test_secret;
    return spec;
}

/* Two members and a stranger are always "maybe". */
static void list_some(seen_filter *f, seen_kind kind)
{
    const uint64_t some[] = {0, 1, TEST_STRANGERS};
    seen_allowlist *list = NULL;
    assert_int_equal(seen_allowlist_new(&list, NULL), SEEN_OK);
    for (size_t i = 0; i < 3; i++) {
        uint8_t key[8];
        seen_put_le64(key, test_key_for(kind, some[i]));
        assert_int_equal(seen_allowlist_add(list, key, 8), SEEN_OK);
    }
    assert_int_equal(seen_allow(f, list, SEEN_LISTED_ALWAYS), SEEN_OK);
    seen_allowlist_free(list);
}

enum variant {
    PLAIN,
    WITH_SECRET,
    WITH_LIST,
    VARIANTS
};

/* For a small filter of each kind: plain, with a secret, with a list. */
static void each_kind(void (*check)(const seen_filter *f, struct bytes saved))
{
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (int variant = PLAIN; variant < VARIANTS; variant++) {
            bool keyed = variant == WITH_SECRET;
            if (keyed && !test_kind_can(kind, SEEN_KEYED)) continue;
            seen_filter *f = test_filled(spec_of(kind, keyed), 0, MEMBERS);
            if (variant == WITH_LIST) list_some(f, kind);
            struct bytes saved = save(f);
            check(f, saved);
            free(saved.at);
            seen_free(f);
        }
    /* And one that has grown: four parts. */
    seen_spec small = {.kind = SEEN_SCALABLE, .items = 5, .fpp = 0.01};
    seen_filter *grown = test_filled(small, 0, MEMBERS);
    struct bytes saved = save(grown);
    check(grown, saved);
    free(saved.at);
    seen_free(grown);
}

static void assert_same_answers(const seen_filter *a, const seen_filter *b)
{
    const uint64_t firsts[] = {0, TEST_STRANGERS};
    seen_info info = {.size = sizeof info};
    seen_measure(a, &info);
    for (size_t i = 0; i < 2; i++) {
        struct test_batch keys = test_batch_for(info.kind, firsts[i], ASKED);
        bool many[ASKED];
        seen_maybe_many(b, seen_keys_of(keys.keys, ASKED), many);
        for (size_t j = 0; j < ASKED; j++) {
            const void *key = keys.keys[j].data;
            bool expected = seen_maybe(a, key, 8);
            assert_int_equal(seen_maybe(b, key, 8), expected);
            assert_int_equal(many[j], expected);
            assert_int_equal(seen_count(b, key, 8), seen_count(a, key, 8));
        }
        test_batch_free(&keys);
    }
}

/* ---- Round trips -------------------------------------------------------- */

/* However it is cut, the pieces are the whole, and nothing else is written. */
static void check_pieces(const seen_filter *f, struct bytes saved,
                         struct test_rng *r, size_t most)
{
    struct bytes b = room(saved.len + 1);
    memset(b.at, 0x11, b.len);
    for (size_t at = 0; at < saved.len;) {
        size_t n = (size_t)test_below(r, most + 1);
        if (n > saved.len - at) n = saved.len - at;
        assert_int_equal(seen_save_range(f, 0, at, b.at + at, n), SEEN_OK);
        at += n;
        assert_int_equal(b.at[at], 0x11);
    }
    assert_memory_equal(b.at, saved.at, saved.len);
    free(b.at);
}

/* Field by field: what lies between them is anything. */
static void assert_same_info(const seen_info *a, const seen_info *b)
{
    assert_true(a->kind == b->kind && a->flags == b->flags);
    assert_true(a->hash == b->hash && a->dialect == b->dialect);
    assert_true(a->hashes == b->hashes && a->lines == b->lines);
    assert_true(a->layers == b->layers && a->counted == b->counted);
    assert_true(a->capacity == b->capacity && a->items == b->items);
    assert_true(a->bits == b->bits && a->bits_set == b->bits_set);
    assert_true(a->fpp == b->fpp && a->fpp_now == b->fpp_now);
    assert_true(a->bytes == b->bytes && a->key_form == b->key_form);
}

static void check_kept(const seen_filter *f, struct bytes saved)
{
    assert_int_equal(seen_verify(saved.at, saved.len, NULL), SEEN_OK);
    seen_filter *loaded = load(saved), *viewed = view(saved), *copy = NULL;
    assert_int_equal(seen_copy(&copy, viewed, NULL), SEEN_OK);
    const seen_filter *all[] = {loaded, viewed, copy};
    for (size_t i = 0; i < 3; i++) {
        assert_true(seen_equal(f, all[i]) && seen_equal(all[i], f));
        assert_same_answers(f, all[i]);
        assert_saves_as(all[i], saved);
    }
    struct test_rng r = test_rng(500 + saved.len);
    check_pieces(f, saved, &r, saved.len);
    check_pieces(viewed, saved, &r, saved.len / 20 + 10);
    seen_info a = {.size = sizeof a}, b = {.size = sizeof b};
    seen_measure(f, &a);
    seen_measure(loaded, &b);
    assert_same_info(&a, &b);
    seen_free(loaded);
    seen_free(viewed);
    seen_free(copy);
}

static void saving_what_was_loaded_gives_the_same_bytes(void **state)
{
    (void)state;
    each_kind(check_kept);
}

static void check_case(seen_filter *f)
{
    struct bytes saved = save(f);
    check_kept(f, saved);
    free(saved.at);
    seen_free(f);
}

static void grown_emptied_and_seeded_filters_are_kept(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = spec_of(kind, false);
        check_case(test_filled(spec, 0, 0));
        seen_filter *cleared = test_filled(spec, 0, MEMBERS);
        seen_clear(cleared);
        check_case(cleared);
        seen_filter *removed = test_filled(spec, 0, MEMBERS);
        for (uint64_t j = 0; j < MEMBERS / 2; j++) {
            uint8_t key[8];
            seen_put_le64(key, test_key_for(kind, j));
            seen_remove(removed, key, 8); /* by kinds that can */
        }
        check_case(removed);
        seen_filter *reserved = test_filled(spec, 0, MEMBERS);
        seen_reserve(reserved, 5000);
        check_case(reserved);
        spec.seed = 0x8070605040302010;
        check_case(test_filled(spec, 0, MEMBERS));
    }
    check_case(test_filled((seen_spec){.kind = SEEN_SET}, 0, 20000));
    for (double fpp = 0.1; fpp > 1e-9; fpp /= 20) {
        seen_spec spec = {.kind = SEEN_SCALABLE, .items = 30, .fpp = fpp};
        check_case(test_filled(spec, 0, 20000));
        seen_filter *roomy = test_filter(spec);
        seen_reserve(roomy, 1000); /* another first layer */
        test_add_members(roomy, 0, 20000);
        check_case(roomy);
    }
}

/* More than one checksum page; payloads that end on one and behind one. */
static void large_filters_are_kept(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        seen_filter *f = test_filled(test_spec_for(kind, 200000), 0, 150000);
        struct bytes saved = save(f);
        assert_true(header_of(saved).payload_len > SEEN_PAGE_SIZE);
        check_kept(f, saved);
        struct test_rng r = test_rng(400 + i);
        for (int j = 0; j < 20; j++) {
            uint64_t at = header_of(saved).payload_offset;
            at += test_below(&r, saved.len - at);
            saved.at[at] ^= 0x10;
            seen_filter *none = NULL;
            assert_int_equal(seen_verify(saved.at, saved.len, NULL),
                             SEEN_CORRUPT);
            assert_int_equal(
                seen_load(&none, saved.at, saved.len, NULL, NULL, NULL),
                SEEN_CORRUPT);
            assert_null(none);
            saved.at[at] ^= 0x10;
        }
        free(saved.at);
        seen_free(f);
    }
    const uint64_t edges[] = {SEEN_PAGE_SIZE, SEEN_PAGE_SIZE + 64};
    for (size_t i = 0; i < 2; i++)
        check_case(test_filled(
            (seen_spec){.kind = SEEN_BLOCKED, .bits = 8 * edges[i], .fpp = 0.1},
            0, MEMBERS));
}

/* Concurrent adds count nothing; what was estimated is what is saved. */
static void concurrent_filters_save_an_estimate_of_their_items(void **state)
{
    (void)state;
    const seen_kind kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = test_spec_for(kinds[i], 1000);
        spec.flags = SEEN_CONCURRENT;
        seen_filter *f = test_filled(spec, 0, 1000);
        struct bytes saved = save(f);
        seen_filter *loaded = load(saved);
        seen_info a = {.size = sizeof a}, b = {.size = sizeof b};
        seen_measure(f, &a);
        seen_measure(loaded, &b);
        assert_true(a.items > 900);
        assert_int_equal(b.items, a.items);
        assert_saves_as(loaded, saved);
        free(saved.at);
        seen_free(f);
        seen_free(loaded);
    }
}

static void check_bytewise(const seen_filter *f, struct bytes saved)
{
    struct test_rng r = test_rng(600);
    uint8_t one[2];
    check_pieces(f, saved, &r, 1);
    check_pieces(f, saved, &r, 20);
    assert_int_equal(seen_save_range(f, 0, saved.len, NULL, 0), SEEN_OK);
    assert_int_equal(seen_save_range(f, 0, saved.len, one, 1), SEEN_INVALID);
    assert_int_equal(seen_save_range(f, 0, saved.len - 1, one, 2),
                     SEEN_INVALID);
    assert_int_equal(seen_save_range(f, 0, UINT64_MAX, one, 2), SEEN_INVALID);
    assert_int_equal(seen_save_range(f, 0, 0, NULL, 1), SEEN_INVALID);
    assert_int_equal(seen_save_range(f, 2, 0, one, 1), SEEN_INVALID);
    assert_int_equal(seen_save_range(NULL, 0, 0, one, 1), SEEN_INVALID);
}

static void pieces_are_the_whole_however_it_is_cut(void **state)
{
    (void)state;
    each_kind(check_bytewise);
}

static void check_short(const seen_filter *f, struct bytes saved)
{
    struct bytes b = room(saved.len);
    for (size_t cap = 0; cap < saved.len; cap += 1 + cap / 16) {
        size_t len = 0;
        memset(b.at, 0x11, b.len);
        assert_int_equal(seen_save(f, 0, cap ? b.at : NULL, cap, &len),
                         SEEN_SHORT);
        assert_int_equal(len, saved.len);
        for (size_t i = 0; i < b.len; i++)
            assert_int_equal(b.at[i], 0x11);
    }
    size_t len = 77;
    assert_int_equal(seen_save(NULL, 0, b.at, b.len, &len), SEEN_INVALID);
    assert_int_equal(seen_save(f, 0, b.at, b.len, NULL), SEEN_INVALID);
    assert_int_equal(seen_save(f, 0, NULL, b.len, &len), SEEN_INVALID);
    assert_int_equal(seen_save(f, 2, b.at, b.len, &len), SEEN_INVALID);
    assert_int_equal(len, 77);
    free(b.at);
}

static void a_short_buffer_is_measured_and_left_alone(void **state)
{
    (void)state;
    each_kind(check_short);
}

/* ---- Views -------------------------------------------------------------- */

static void refuse_one(seen_filter *v, const seen_filter *f)
{
    bool before;
    seen_hash h = {1, 2};
    assert_int_equal(seen_add_u64(v, 3), SEEN_UNSUPPORTED);
    assert_int_equal(seen_add_str(v, "a"), SEEN_UNSUPPORTED);
    assert_int_equal(seen_visit_u64(v, 3, &before), SEEN_UNSUPPORTED);
    assert_int_equal(seen_remove(v, "a", 1), SEEN_UNSUPPORTED);
    assert_int_equal(seen_add_hashed(v, h), SEEN_UNSUPPORTED);
    assert_int_equal(seen_visit_hashed(v, h, &before), SEEN_UNSUPPORTED);
    assert_int_equal(seen_remove_hashed(v, h), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(v, f, SEEN_UNION, NULL), SEEN_UNSUPPORTED);
    assert_int_equal(seen_merge(v, v, SEEN_INTERSECTION, NULL),
                     SEEN_UNSUPPORTED);
    assert_int_equal(seen_reserve(v, 100000), SEEN_UNSUPPORTED);
    seen_clear(v);
}

static void refuse_many(seen_filter *v, seen_kind kind)
{
    struct test_batch b = test_batch_for(kind, 0, 3);
    seen_hash h[3];
    bool before[3];
    size_t done = 77;
    seen_hash_many(v, seen_keys_of(b.keys, 3), h);
    assert_int_equal(seen_add_many(v, seen_keys_of(b.keys, 3), &done),
                     SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    done = 77;
    assert_int_equal(seen_visit_many(v, seen_keys_of(b.keys, 3), before, &done),
                     SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    done = 77;
    assert_int_equal(seen_add_many(v, seen_keys_hashes(h, 3), &done),
                     SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    done = 77;
    assert_int_equal(seen_visit_many(v, seen_keys_hashes(h, 3), before, &done),
                     SEEN_UNSUPPORTED);
    assert_int_equal(done, 0);
    test_batch_free(&b);
}

static void check_view(const seen_filter *f, struct bytes saved)
{
    struct bytes before = duplicate(saved);
    seen_filter *v = view(saved);
    refuse_one(v, f);
    refuse_many(v, f->plan.kind);
    assert_memory_equal(saved.at, before.at, saved.len);
    assert_true(seen_equal(f, v));
    seen_free(v);
    assert_memory_equal(saved.at, before.at, saved.len);

    seen_filter *none = NULL;
    memmove(saved.at + 8, saved.at, saved.len);
    assert_int_equal(seen_view(&none, saved.at + 8, saved.len, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(
        seen_load(&none, saved.at + 8, saved.len, NULL, NULL, NULL), SEEN_OK);
    seen_free(none);
    free(before.at);
}

static void views_answer_and_refuse_every_change(void **state)
{
    (void)state;
    each_kind(check_view);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    seen_filter *f = test_filled(spec_of(SEEN_BLOOM, false), 0, MEMBERS);
    struct bytes b = save(f);
    seen_filter *none = NULL;
    seen_allocator half = {0};
    assert_int_equal(seen_load(NULL, b.at, b.len, NULL, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_load(&none, NULL, b.len, NULL, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_load(&none, b.at, b.len, NULL, &half, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_view(NULL, b.at, b.len, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_view(&none, NULL, b.len, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_verify(NULL, b.len, NULL), SEEN_INVALID);
    assert_null(none);
    free(b.at);
    seen_free(f);
}

/* ---- Damage ------------------------------------------------------------- */

static bool in_table(const struct seen_native *h, size_t at)
{
    return at >= h->table_offset &&
           at < h->table_offset + 4 * seen_native_pages(h->payload_len);
}

static bool in_version(size_t at)
{
    return at == 8 || at == 9;
}

static void check_flips(const seen_filter *f, struct bytes saved)
{
    struct seen_native h = header_of(saved);
    seen_filter *none = NULL;
    for (size_t bit = 0; bit < 8 * saved.len; bit++) {
        size_t at = bit / 8;
        saved.at[at] ^= (uint8_t)(1u << bit % 8);
        seen_status loaded =
            seen_load(&none, saved.at, saved.len, NULL, NULL, NULL);
        seen_status viewed = seen_view(&none, saved.at, saved.len, NULL, NULL);
        assert_true(loaded == SEEN_CORRUPT ||
                    (in_version(at) && loaded == SEEN_NEWER));
        assert_int_equal(seen_verify(saved.at, saved.len, NULL), loaded);
        if (at >= h.payload_offset || in_table(&h, at)) {
            /* Not looked at by a view: it has to work all the same. */
            assert_int_equal(viewed, SEEN_OK);
            if (in_table(&h, at)) assert_true(seen_equal(f, none));
            seen_maybe_u64(none, bit);
            seen_count(none, "abc", 3);
            seen_free(none);
            none = NULL;
        } else {
            assert_int_equal(viewed, loaded);
        }
        assert_null(none);
        saved.at[at] ^= (uint8_t)(1u << bit % 8);
    }
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    each_kind(check_flips);
}

static void check_lengths(const seen_filter *f, struct bytes saved)
{
    (void)f;
    seen_filter *none = NULL;
    for (size_t len = 0; len < saved.len + 130; len++) {
        if (len == saved.len) continue;
        /* A block of exactly this length, for the address sanitizer. */
        uint8_t *cut = aligned_alloc(64, (len + 63) / 64 * 64);
        uint8_t *end = calloc(1, len ? len : 1);
        assert_true(cut && end);
        size_t n = len < saved.len ? len : saved.len;
        memcpy(cut, saved.at, n);
        memset(cut + n, 0, len - n);
        memcpy(end, saved.at, n);
        assert_int_equal(seen_load(&none, end, len, NULL, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_verify(end, len, NULL), SEEN_CORRUPT);
        assert_int_equal(seen_view(&none, cut, len, NULL, NULL), SEEN_CORRUPT);
        free(cut);
        free(end);
    }
    assert_null(none);
}

static void every_truncation_and_extension_is_refused(void **state)
{
    (void)state;
    each_kind(check_lengths);
}

static void check_versions(const seen_filter *f, struct bytes saved)
{
    (void)f;
    seen_filter *none = NULL;
    for (int version = 0; version < 65536; version += version < 300 ? 1 : 97) {
        if (version == 1) continue;
        seen_status expected = version ? SEEN_NEWER : SEEN_CORRUPT;
        for (int fixed = 0; fixed < 2; fixed++) {
            seen_put_le16(saved.at + 8, (uint16_t)version);
            if (fixed) fix_header(saved.at);
            assert_int_equal(
                seen_load(&none, saved.at, saved.len, NULL, NULL, NULL),
                expected);
            assert_int_equal(seen_view(&none, saved.at, saved.len, NULL, NULL),
                             expected);
            assert_int_equal(seen_verify(saved.at, saved.len, NULL), expected);
        }
    }
    assert_null(none);
}

static void a_later_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    each_kind(check_versions);
}

/* ---- Lies --------------------------------------------------------------- */

/* Every call there is; what it says hardly matters, coming back does. */
static void use(seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    seen_hash h[8];
    bool answers[8];
    for (uint64_t i = 0; i < 8; i++)
        h[i] = (seen_hash){test_mix(i) >> 8 * i, test_mix(i + 100)};
    seen_maybe_many(f, seen_keys_hashes(h, 8), answers);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(seen_maybe_hashed(f, h[i]), answers[i]);
        assert_int_equal(seen_count_hashed(f, h[i]) > 0, answers[i]);
    }
    seen_filter *copy = NULL;
    if (seen_copy(&copy, f, NULL) == SEEN_OK) {
        assert_true(seen_equal(copy, f));
        for (size_t i = 0; i < 8; i++)
            if (seen_add_hashed(copy, h[i]) == SEEN_OK)
                assert_true(seen_maybe_hashed(copy, h[i]));
        for (size_t i = 0; i < 8; i++)
            seen_remove_hashed(copy, h[i]);
        seen_merge(copy, f, SEEN_UNION, NULL);
        seen_merge(copy, copy, SEEN_INTERSECTION, NULL);
        struct bytes saved = save(copy);
        seen_filter *again = load(saved);
        seen_free(again);
        free(saved.at);
        seen_clear(copy);
    }
    seen_free(copy);
}

/* Bytes of a stranger: an error, or a filter that works and is saved as it
 * came; memory in proportion to the bytes either way. */
static seen_status check_hostile(struct bytes b)
{
    struct test_alloc a;
    test_alloc_init(&a);
    seen_filter *f = NULL;
    seen_status loaded = seen_load(&f, b.at, b.len, NULL, &a.as, NULL);
    assert_true(a.peak < 2 * b.len + 4096);
    if (loaded == SEEN_OK) {
        assert_saves_as(f, b);
        use(f);
        seen_free(f);
    } else {
        assert_null(f);
        assert_true(loaded == SEEN_CORRUPT || loaded == SEEN_UNSUPPORTED ||
                    loaded == SEEN_NEWER || loaded == SEEN_BUSY ||
                    loaded == SEEN_NO_SECRET);
    }
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
    if (seen_view(&f, b.at, b.len, NULL, NULL) == SEEN_OK) {
        use(f);
        seen_free(f);
    } else {
        assert_int_not_equal(loaded, SEEN_OK);
    }
    return loaded;
}

struct field {
    uint32_t at, size;
};

static const struct field fields[] = {
    {0, 8},   {8, 2},   {10, 2},  {12, 4},  {16, 8},  {24, 8},  {32, 8},
    {40, 4},  {44, 4},  {48, 2},  {50, 2},  {52, 4},  {56, 8},  {64, 8},
    {72, 8},  {80, 8},  {88, 8},  {96, 8},  {104, 4}, {108, 4}, {112, 4},
    {116, 4}, {120, 8}, {128, 8}, {136, 8}, {144, 4}, {148, 8}, {244, 8}};

#define FIELDS (sizeof fields / sizeof *fields)

static const uint64_t extremes[] = {0,
                                    1,
                                    2,
                                    8,
                                    (uint64_t)1 << 31,
                                    UINT32_MAX,
                                    (uint64_t)1 << 32,
                                    (uint64_t)1 << 48,
                                    (uint64_t)1 << 63,
                                    UINT64_MAX};

#define EXTREMES (sizeof extremes / sizeof *extremes)

static void put_field(uint8_t *header, struct field f, uint64_t value)
{
    for (uint32_t i = 0; i < f.size; i++)
        header[f.at + i] = (uint8_t)(value >> 8 * i);
}

/* Fields that may say anything a kind can live with; all others are either
 * right or refused. */
static bool free_to_choose(struct field f)
{
    static const uint32_t at[] = {10, 16, 32, 40, 48, 50, 56, 64, 144};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (f.at == at[i]) return true;
    return false;
}

static void check_lies(const seen_filter *f, struct bytes saved)
{
    (void)f;
    for (size_t i = 0; i < FIELDS; i++)
        for (size_t j = 0; j < EXTREMES; j++) {
            struct bytes lie = duplicate(saved);
            put_field(lie.at, fields[i], extremes[j]);
            fix_header(lie.at);
            seen_status status = check_hostile(lie);
            if (memcmp(lie.at, saved.at, CRC_AT) == 0)
                assert_int_equal(status, SEEN_OK);
            else if (!free_to_choose(fields[i]))
                assert_int_not_equal(status, SEEN_OK);
            free(lie.at);
        }
}

static void lying_headers_are_refused_or_harmless(void **state)
{
    (void)state;
    each_kind(check_lies);
}

/* Two fields at once, behind which the first would be found out. */
static void check_pairs(const seen_filter *f, struct bytes saved)
{
    struct test_rng r = test_rng(410 + f->plan.kind);
    for (uint64_t i = 0; i < 20000 * test_scale(); i++) {
        struct bytes lie = duplicate(saved);
        for (int j = 0; j < 2; j++) {
            struct field field = fields[2 + test_below(&r, FIELDS - 2)];
            uint64_t value = extremes[test_below(&r, EXTREMES)];
            put_field(lie.at, field, value + test_below(&r, 3) - 1);
        }
        fix_header(lie.at);
        check_hostile(lie);
        free(lie.at);
    }
    test_tried(20000 * test_scale(), "damaged filters");
}

static void pairs_of_lies_are_refused_or_harmless(void **state)
{
    (void)state;
    each_kind(check_pairs);
}

/* State and list are small: every byte of them. */
static void check_states(const seen_filter *f, struct bytes saved)
{
    (void)f;
    struct seen_native h = header_of(saved);
    size_t at = (size_t)(h.table_offset + 4 * seen_native_pages(h.payload_len));
    for (size_t i = at; i < h.payload_offset && i < at + 256; i++)
        for (int value = 0; value < 256; value++) {
            struct bytes lie = duplicate(saved);
            lie.at[i] = (uint8_t)value;
            seen_put_le32(
                lie.at + EXTRA_CRC_AT,
                seen_crc32c(0, lie.at + at, h.state_len + h.listed_len));
            fix_header(lie.at);
            check_hostile(lie);
            free(lie.at);
        }
}

static void lying_states_are_refused_or_harmless(void **state)
{
    (void)state;
    each_kind(check_states);
}

/* Payloads that nobody wrote, with true checksums; the end of them bit by bit,
 * where there should be nothing but zeros. */
static void check_payloads(const seen_filter *f, struct bytes saved)
{
    struct seen_native h = header_of(saved);
    struct test_rng r = test_rng(420 + f->plan.kind);
    for (size_t bit = 8 * (saved.len - 64); bit < 8 * saved.len; bit++) {
        struct bytes lie = duplicate(saved);
        lie.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        fix_sums(lie);
        check_hostile(lie);
        free(lie.at);
    }
    for (int i = 0; i < 300; i++) {
        struct bytes lie = duplicate(saved);
        uint64_t wounds = 1 + test_below(&r, i < 150 ? 4 : 1000);
        for (uint64_t j = 0; j < wounds; j++)
            lie.at[h.payload_offset + test_below(&r, h.payload_len)] =
                (uint8_t)test_next(&r);
        fix_sums(lie);
        check_hostile(lie);
        free(lie.at);
    }
    const uint8_t fills[] = {0, 1, 0x80, 0xff};
    for (size_t i = 0; i < 4; i++) {
        struct bytes lie = duplicate(saved);
        memset(lie.at + h.payload_offset, fills[i], (size_t)h.payload_len);
        fix_sums(lie);
        check_hostile(lie);
        free(lie.at);
    }
}

static void lying_payloads_are_refused_or_harmless(void **state)
{
    (void)state;
    each_kind(check_payloads);
}

/* Words word, word + 1, ... into the payload, checksums right. */
static void put_words(struct bytes b, uint64_t from, uint64_t n, uint64_t word)
{
    uint8_t *payload = b.at + header_of(b).payload_offset;
    for (uint64_t i = 0; i < n; i++)
        seen_put_le64(payload + 8 * (from + i), word + i);
    fix_sums(b);
}

static void put_items(struct bytes b, uint64_t items)
{
    seen_put_le64(b.at + ITEMS_AT, items);
    fix_header(b.at);
}

static void a_full_set_ends_every_search(void **state)
{
    (void)state;
    seen_filter *f = test_filled((seen_spec){.kind = SEEN_SET}, 0, 0);
    struct bytes b = save(f);
    const uint64_t slots = header_of(b).payload_len / 8;
    const uint64_t claims[] = {0, 1, slots, UINT64_MAX};
    put_words(b, 0, slots, 1);
    for (size_t i = 0; i < 4; i++) {
        put_items(b, claims[i]);
        seen_filter *none = NULL, *v = view(b), *into = NULL;
        assert_int_equal(seen_load(&none, b.at, b.len, NULL, NULL, NULL),
                         SEEN_CORRUPT);
        assert_false(seen_maybe_hashed(v, (seen_hash){UINT64_MAX, 0}));
        assert_true(seen_maybe_hashed(v, (seen_hash){1, 0}));
        use(v);
        /* A copy could be added to, and would not know where. */
        assert_int_equal(seen_copy(&none, v, NULL), SEEN_CORRUPT);
        assert_null(none);
        assert_int_equal(seen_new(&into, &(seen_spec){.kind = SEEN_SET}, NULL),
                         SEEN_OK);
        if (seen_merge(into, v, SEEN_UNION, NULL) == SEEN_OK)
            assert_true(seen_maybe_hashed(into, (seen_hash){slots, 0}));
        seen_free(into);
        seen_free(v);
    }
    free(b.at);
    seen_free(f);
}

/* A fingerprint that no search would find is not in the set. */
static void sets_with_misplaced_fingerprints_are_refused(void **state)
{
    (void)state;
    seen_filter *f = test_filled((seen_spec){.kind = SEEN_SET}, 0, 0), *g;
    struct bytes good = save(f);
    const uint64_t lines = header_of(good).payload_len / 64;
    const uint64_t top = UINT64_MAX - 100; /* at home in the last line */
    struct {
        uint64_t slot, n, word, items;
        seen_status status;
    } cases[] = {
        {0, 1, 5, 1, SEEN_OK},                       /* at home in line 0 */
        {1, 1, 5, 1, SEEN_CORRUPT},                  /* behind an empty slot */
        {8, 1, 5, 1, SEEN_CORRUPT},                  /* line 0 has room */
        {0, 9, 5, 9, SEEN_OK},                       /* line 0 is full */
        {0, 9, 5, 8, SEEN_CORRUPT},                  /* more than it says */
        {0, 16, 5, 16, SEEN_OK},                     /* two full lines */
        {8 * lines - 8, 8, top, 8, SEEN_OK},         /* the last line */
        {0, 1, top, 1, SEEN_CORRUPT},                /* which has room */
        {0, 8 * lines, 1, 8 * lines, SEEN_CORRUPT}}; /* no room at all */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes b = duplicate(good);
        put_words(b, cases[i].slot, cases[i].n, cases[i].word);
        put_items(b, cases[i].items);
        assert_int_equal(check_hostile(b), cases[i].status);
        free(b.at);
    }
    /* Around the end: the last line is full, so its keys go on in line 0. */
    struct bytes b = duplicate(good);
    put_words(b, 8 * lines - 8, 8, top);
    put_words(b, 0, 2, top + 50);
    put_items(b, 10);
    assert_int_equal(check_hostile(b), SEEN_OK);
    g = load(b);
    assert_true(seen_maybe_hashed(g, (seen_hash){top + 51, 0}));
    free(b.at);
    seen_free(g);
    free(good.at);
    seen_free(f);
}

/* ---- Cuckoo filters ------------------------------------------------------ */

/* Where things are in a saved one of at most 2^17 bits. */
struct cuckoo_parts {
    uint8_t *slots, *table;
    uint64_t count; /* slots */
    uint32_t width;
};

static struct cuckoo_parts cuckoo_parts(struct bytes b)
{
    struct seen_native h = header_of(b);
    struct cuckoo_parts p = {.slots = b.at + h.payload_offset,
                             .count = (h.plan.bits - 2048) / h.plan.width,
                             .width = h.plan.width};
    uint64_t len = seen_packed_bytes(p.count, p.width);
    p.table = p.slots + (len + 63) / 64 * 64;
    return p;
}

static uint64_t table_word(struct cuckoo_parts p, uint64_t i)
{
    return seen_get_le64(p.table + 8 * i);
}

/* One empty slot, neither the first nor the last. */
static uint64_t empty_slot(struct cuckoo_parts p)
{
    uint64_t slot = 1;
    while (seen_packed_get(p.slots, p.width, slot))
        slot++;
    assert_true(slot < p.count - 1);
    return slot;
}

static seen_status with_value(struct bytes good, uint64_t slot, uint32_t value,
                              uint64_t items)
{
    struct bytes b = duplicate(good);
    struct cuckoo_parts p = cuckoo_parts(b);
    seen_packed_set(p.slots, p.width, slot, value);
    fix_sums(b);
    put_items(b, items);
    seen_status status = check_hostile(b);
    free(b.at);
    return status;
}

/* Words i and j of the table are changed. */
static seen_status with_words(struct bytes good, uint64_t i, uint64_t first,
                              uint64_t j, uint64_t second)
{
    struct bytes b = duplicate(good);
    struct cuckoo_parts p = cuckoo_parts(b);
    seen_put_le64(p.table + 8 * i, first);
    seen_put_le64(p.table + 8 * j, second);
    fix_sums(b);
    seen_status status = check_hostile(b);
    free(b.at);
    return status;
}

static seen_status with_word(struct bytes good, uint64_t i, uint64_t word)
{
    return with_words(good, i, word, i, word);
}

static void cuckoo_entries_lie_where_they_may(void **state)
{
    (void)state;
    seen_filter *f = test_filled(
        (seen_spec){.kind = SEEN_CUCKOO, .items = 60, .fpp = 0.01}, 0, 40);
    struct bytes good = save(f);
    struct cuckoo_parts p = cuckoo_parts(good);
    const uint64_t hole = empty_slot(p), last = p.count - 1;
    const uint32_t none = ((uint32_t)1 << p.width) - 1;
    assert_int_equal(check_hostile(good), SEEN_OK);
    assert_int_equal(with_value(good, hole, 5, 41), SEEN_OK);
    assert_int_equal(with_value(good, hole, 6, 41), SEEN_OK);
    assert_int_equal(with_value(good, hole, none - 1, 41), SEEN_OK);
    assert_int_equal(with_value(good, hole, none, 41), SEEN_CORRUPT);
    assert_int_equal(with_value(good, hole, 5, 40), SEEN_CORRUPT);
    assert_int_equal(with_value(good, hole, 0, 41), SEEN_CORRUPT);
    /* The first slot is no window's second, the last one no window's first. */
    for (uint32_t value = 1; value < 9; value++) {
        uint64_t first = 40 + !seen_packed_get(p.slots, p.width, 0);
        uint64_t end = 40 + !seen_packed_get(p.slots, p.width, last);
        assert_int_equal(with_value(good, 0, value, first),
                         value % 2 ? SEEN_OK : SEEN_CORRUPT);
        assert_int_equal(with_value(good, last, value, end),
                         value % 2 ? SEEN_CORRUPT : SEEN_OK);
    }
    free(good.at);
    seen_free(f);
}

static void a_table_of_copies_is_in_order(void **state)
{
    (void)state;
    seen_filter *f = test_filled(
        (seen_spec){.kind = SEEN_CUCKOO, .items = 60, .fpp = 0.01}, 0, 3);
    for (uint64_t i = 0; i < 30; i++)
        assert_int_equal(seen_add_u64(f, test_key(i % 3)), SEEN_OK);
    struct bytes good = save(f);
    struct cuckoo_parts p = cuckoo_parts(good);
    assert_int_equal(check_hostile(good), SEEN_OK);
    const uint64_t copies = table_word(p, 0), window = table_word(p, 2);
    const uint64_t pair = table_word(p, 3), other = table_word(p, 4);
    assert_int_equal(table_word(p, 1), 3); /* entries */
    assert_true(copies >= 21 && window < other);

    /* What word 0 says, and how many entries there are. */
    for (uint64_t wrong = 0; wrong < 40; wrong++) {
        if (wrong != copies)
            assert_int_equal(with_word(good, 0, wrong), SEEN_CORRUPT);
        if (wrong != 3)
            assert_int_equal(with_word(good, 1, wrong), SEEN_CORRUPT);
    }
    assert_int_equal(with_word(good, 1, UINT64_MAX), SEEN_CORRUPT);
    assert_int_equal(with_word(good, 0, UINT64_MAX), SEEN_CORRUPT);
    /* Windows and fingerprints that there are not, or not in the slots. */
    const uint64_t windows[] = {0, p.count - 1, p.count, UINT32_MAX,
                                UINT64_MAX};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(with_word(good, 2, windows[i]), SEEN_CORRUPT);
    for (uint64_t print = 0; print < 1 << 10; print++)
        if (print != pair >> 32)
            assert_int_equal(with_word(good, 3, print << 32 | (uint32_t)pair),
                             SEEN_CORRUPT);
    /* Copies: more here are less there, but none is too few. */
    const uint64_t next = table_word(p, 5);
    assert_int_equal(with_words(good, 3, pair + 1, 5, next - 1), SEEN_OK);
    assert_int_equal(
        with_words(good, 3, pair - (uint32_t)pair, 5, next + (uint32_t)pair),
        SEEN_CORRUPT);
    assert_int_equal(with_word(good, 3, pair | UINT32_MAX), SEEN_CORRUPT);
    /* Out of order; twice; and what lies behind the last. */
    struct bytes b = duplicate(good);
    for (int i = 0; i < 2; i++) {
        memcpy(cuckoo_parts(b).table + 16, p.table + 32, 16);
        memcpy(cuckoo_parts(b).table + 32, i ? p.table + 32 : p.table + 16, 16);
        fix_sums(b);
        assert_int_equal(check_hostile(b), SEEN_CORRUPT);
    }
    free(b.at);
    for (uint64_t word = 8; word < 32; word++)
        assert_int_equal(with_word(good, word, 1), SEEN_CORRUPT);
    free(good.at);
    seen_free(f);
}

/* The higher of two windows names the same entry a second time. */
static void an_entry_of_the_table_has_one_name(void **state)
{
    (void)state;
    const seen_spec spec = {.kind = SEEN_CUCKOO, .items = 60, .fpp = 0.01};
    seen_filter *f = test_filled(spec, 0, 1);
    for (int i = 0; i < 9; i++)
        assert_int_equal(seen_add_u64(f, test_key(0)), SEEN_OK);
    struct bytes good = save(f);
    struct cuckoo_parts p = cuckoo_parts(good);
    uint64_t refused = 0;
    for (uint64_t window = 0; window < p.count - 1; window++)
        refused += with_word(good, 2, window) == SEEN_CORRUPT;
    assert_int_equal(refused, p.count - 2);
    free(good.at);
    seen_free(f);
}

/* A view is not checked; a union with it is. */
static void nothing_comes_of_a_view_that_lies(void **state)
{
    (void)state;
    const seen_spec spec = {.kind = SEEN_CUCKOO, .items = 60, .fpp = 0.01};
    seen_filter *into = test_filled(spec, 0, 20);
    struct bytes before = save(into), b = save(into);
    struct cuckoo_parts p = cuckoo_parts(b);
    memset(p.slots, 0xff, p.count * p.width / 8);
    memset(p.table, 0xff, 256);
    fix_sums(b);
    seen_filter *v = view(b), *none = NULL;
    use(v);
    assert_int_equal(seen_merge(into, v, SEEN_UNION, NULL), SEEN_CORRUPT);
    assert_saves_as(into, before);
    assert_int_equal(seen_copy(&none, v, NULL), SEEN_CORRUPT);
    seen_free(v);
    free(b.at);
    free(before.at);
    seen_free(into);
}

/* "alice" and "bob", 2 keys at 1 %, as they were saved before there were
 * windows, in five buckets of four slots. */
static void earlier_cuckoo_filters_are_refused(void **state)
{
    (void)state;
    static const uint8_t lines[][17] = {
        {0x00, 0x89, 'S', 'E', 'E', 'N', '\r', '\n', 0x1a, 1, 0, 3},
        {0x10, 2, 0, 0, 0, 0, 0, 0, 0, 0xc8},
        {0x20, 0xd0, 0x7f, 0x85, 0xd3, 0xa5, 0xa0, 0x49, 0x3f, 8, 0, 0, 0, 10},
        {0x30, 1, 0, 0, 0, 0, 0, 1, 0, 2},
        {0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 1},
        {0x60, 0x40},
        {0x70, 0x55, 0x41, 0xa1, 0x4a},
        {0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x78, 0xc3, 0xb4, 0xf9}};
    struct bytes b = room(0x180);
    memset(b.at, 0, b.len);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        memcpy(b.at + lines[i][0], lines[i] + 1, 16);
    memcpy(b.at + 0x100, (uint8_t[]){0xca, 0x21, 0x18, 0x65}, 4);
    memcpy(b.at + 0x140, (uint8_t[]){0x3e, 0, 0, 0, 0, 0x68}, 6);
    assert_int_equal(seen_verify(b.at, b.len, NULL), SEEN_OK);

    seen_filter *f = NULL;
    seen_error error;
    seen_info info = {.size = sizeof info};
    for (int way = 0; way < 3; way++) {
        seen_status status =
            way == 0   ? seen_load(&f, b.at, b.len, NULL, NULL, &error)
            : way == 1 ? seen_view(&f, b.at, b.len, NULL, &error)
                       : seen_look(b.at, b.len, &info, NULL, &error);
        assert_int_equal(status, SEEN_UNSUPPORTED);
        assert_null(f);
        assert_non_null(strstr(error.text, "earlier layout"));
        assert_non_null(strstr(error.text, "build it again"));
    }
    free(b.at);
}

/* A view may have bits past its end; what it is merged into must not. */
static void bits_past_the_end_stay_out_of_a_union(void **state)
{
    (void)state;
    const seen_spec specs[] = {{.kind = SEEN_BLOOM, .bits = 100, .items = 10},
                               {.kind = SEEN_BITMAP, .bits = 100}};
    for (size_t i = 0; i < 2; i++) {
        seen_filter *into = test_filled(specs[i], 0, 10);
        struct bytes b = save(into), after;
        put_words(b, 1, 1, UINT64_MAX);
        seen_filter *v = view(b);
        for (int op = 1; op >= 0; op--) {
            assert_int_equal(seen_merge(into, v, (seen_merge_op)op, NULL),
                             SEEN_OK);
            after = save(into);
            seen_free(load(after));
            free(after.at);
        }
        seen_free(v);
        seen_free(into);
        free(b.at);
    }
}

static void a_list_needs_a_policy(void **state)
{
    (void)state;
    seen_filter *f = test_filled(spec_of(SEEN_BLOOM, false), 0, MEMBERS);
    struct bytes b = save(f);
    for (uint32_t policy = 0; policy < 4; policy++) {
        /* Four bytes of the padding are a list now, an empty one. */
        put_field(b.at, (struct field){50, 2}, policy);
        put_field(b.at, (struct field){108, 4}, 4);
        put_field(b.at, (struct field){EXTRA_CRC_AT, 4},
                  seen_crc32c(0, (const uint8_t[4]){0}, 4));
        fix_header(b.at);
        assert_int_equal(check_hostile(b),
                         policy == 1 || policy == 2 ? SEEN_OK : SEEN_CORRUPT);
    }
    free(b.at);
    seen_free(f);
}

/* ---- Key forms ----------------------------------------------------------- */

static seen_key_form form_of(const seen_filter *f)
{
    seen_info info = {.size = sizeof info};
    seen_measure(f, &info);
    return info.key_form;
}

static void check_form(const seen_filter *f, struct bytes saved)
{
    (void)f;
    const uint32_t kind = seen_get_le16(saved.at + 10);
    for (uint32_t form = 0; form <= SEEN_KEYS_UTF16 + 1; form++) {
        bool fits = form <= SEEN_KEYS_UTF16 && kind != SEEN_BITMAP;
        struct bytes b = duplicate(saved);
        put_field(b.at, (struct field){144, 4}, form);
        fix_header(b.at);
        assert_int_equal(check_hostile(b),
                         fits || form == 0 ? SEEN_OK : SEEN_CORRUPT);
        if (fits) {
            seen_filter *loaded = load(b), *copy, *view;
            seen_info looked = {.size = sizeof looked};
            assert_int_equal(seen_copy(&copy, loaded, NULL), SEEN_OK);
            assert_int_equal(seen_view(&view, b.at, b.len, NULL, NULL),
                             SEEN_OK);
            assert_int_equal(seen_look(b.at, b.len, &looked, NULL, NULL),
                             SEEN_OK);
            assert_int_equal(form_of(loaded), form);
            assert_int_equal(form_of(copy), form);
            assert_int_equal(form_of(view), form);
            assert_int_equal(looked.key_form, form);
            assert_saves_as(copy, b);
            if (!seen_kind_built((seen_kind)kind)) seen_clear(copy);
            assert_int_equal(form_of(copy), form);
            seen_free(view);
            seen_free(copy);
            seen_free(loaded);
        }
        free(b.at);
    }
}

static void a_key_form_stays_with_its_filter(void **state)
{
    (void)state;
    each_kind(check_form);
}

/* Filters of other systems have none: their own files have no room for it. */
static void a_container_of_others_has_no_key_form(void **state)
{
    (void)state;
    seen_spec spec = {.dialect = "gozero", .bits = 1000};
    seen_filter *f = test_filled(spec, 0, 20);
    struct bytes b = save(f);
    for (uint32_t form = 0; form <= SEEN_KEYS_UTF16 + 1; form++) {
        put_field(b.at, (struct field){144, 4}, form);
        fix_header(b.at);
        seen_filter *g = NULL, *v = NULL;
        seen_status expected = form ? SEEN_CORRUPT : SEEN_OK;
        assert_int_equal(seen_load(&g, b.at, b.len, NULL, NULL, NULL),
                         expected);
        assert_int_equal(seen_view(&v, b.at, b.len, NULL, NULL), expected);
        seen_free(g);
        seen_free(v);
    }
    free(b.at);
    seen_free(f);
}

static void a_new_filter_has_the_key_form_of_its_spec(void **state)
{
    (void)state;
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++) {
        seen_kind kind = seen_kind_at(i);
        if (kind == SEEN_BITMAP) continue;
        seen_spec spec = test_spec_for(kind, MEMBERS);
        spec.key_form = SEEN_KEYS_HEX;
        seen_filter *f = test_filled(spec, 0, MEMBERS);
        assert_int_equal(form_of(f), SEEN_KEYS_HEX);
        seen_free(f);
    }
}

static void key_forms_of_a_union_agree(void **state)
{
    (void)state;
    static const struct {
        seen_key_form a, b;
        seen_status status;
        seen_key_form after;
    } cases[] = {
        {SEEN_KEYS_LOWER, SEEN_KEYS_LOWER, SEEN_OK, SEEN_KEYS_LOWER},
        {SEEN_KEYS_LOWER, SEEN_KEYS_TEXT, SEEN_MISMATCH, SEEN_KEYS_LOWER},
        {SEEN_KEYS_LOWER, SEEN_KEYS_UNKNOWN, SEEN_OK, SEEN_KEYS_UNKNOWN},
        {SEEN_KEYS_UNKNOWN, SEEN_KEYS_HEX, SEEN_OK, SEEN_KEYS_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen_spec spec = spec_of(SEEN_BLOOM, false);
        spec.key_form = cases[i].a;
        seen_filter *a = test_filled(spec, 0, MEMBERS);
        spec.key_form = cases[i].b;
        seen_filter *b = test_filled(spec, MEMBERS, MEMBERS);
        assert_int_equal(seen_merge(a, b, SEEN_UNION, NULL), cases[i].status);
        assert_int_equal(form_of(a), cases[i].after);
        assert_int_equal(test_count_maybe(a, MEMBERS, MEMBERS) == MEMBERS,
                         cases[i].status == SEEN_OK);
        seen_free(a);
        seen_free(b);
    }
}

/* ---- Secrets ------------------------------------------------------------ */

static void check_apart(const seen_filter *f, struct bytes with)
{
    size_t len = 0;
    if (!(f->flags & SEEN_KEYED)) {
        assert_int_equal(seen_save(f, SEEN_SECRET_APART, NULL, 0, &len),
                         SEEN_INVALID);
        seen_filter *none = NULL;
        assert_int_equal(
            seen_load(&none, with.at, with.len, test_secret, NULL, NULL),
            SEEN_MISMATCH);
        return;
    }
    struct bytes apart = save_with(f, SEEN_SECRET_APART);
    uint8_t wrong[16], right[16];
    memcpy(wrong, test_secret, 16);
    memcpy(right, test_secret, 16);
    wrong[15] ^= 1;
    for (size_t i = 0; i + 16 <= apart.len; i++)
        assert_memory_not_equal(apart.at + i, test_secret, 16);
    const struct bytes both[] = {apart, with};
    for (size_t i = 0; i < 2; i++) {
        struct bytes b = both[i];
        seen_status without = i == 0 ? SEEN_NO_SECRET : SEEN_OK;
        seen_filter *g = NULL, *v = NULL;
        assert_int_equal(seen_verify(b.at, b.len, NULL), SEEN_OK);
        assert_int_equal(seen_load(&g, b.at, b.len, wrong, NULL, NULL),
                         SEEN_MISMATCH);
        assert_int_equal(seen_view(&v, b.at, b.len, wrong, NULL),
                         SEEN_MISMATCH);
        assert_int_equal(seen_load(&g, b.at, b.len, NULL, NULL, NULL), without);
        assert_int_equal(seen_view(&v, b.at, b.len, NULL, NULL), without);
        seen_free(g);
        seen_free(v);
        assert_int_equal(seen_load(&g, b.at, b.len, right, NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_view(&v, b.at, b.len, right, NULL), SEEN_OK);
        assert_same_answers(f, g);
        assert_same_answers(f, v);
        assert_saves_as(g, with);
        struct bytes again = save_with(v, SEEN_SECRET_APART);
        assert_memory_equal(again.at, apart.at, apart.len);
        free(again.at);
        seen_free(g);
        seen_free(v);
    }
    free(apart.at);
}

static void a_secret_kept_apart_is_needed_and_checked(void **state)
{
    (void)state;
    each_kind(check_apart);
}

/* ---- Two headers -------------------------------------------------------- */

/* As a filter file is written: the second header two epochs ahead. */
static struct bytes two_headers(const seen_filter *f, uint32_t flags)
{
    struct seen_saved saved;
    assert_int_equal(seen_saved_from(f, SEEN_NATIVE_TWO | flags, &saved),
                     SEEN_OK);
    struct seen_native *h = &saved.header;
    h->id = 99;
    h->epoch = 7;
    struct bytes b = room((size_t)(h->payload_offset + h->payload_len));
    seen_native_head(h, &saved.body, b.at);
    uint8_t *to = b.at + h->payload_offset;
    for (uint32_t i = 0; i < saved.body.count; i++) {
        uint64_t len = seen_part_room(&saved.parts[i]);
        seen_native_put_part(&saved.parts[i], 0, to, len);
        to += len;
    }
    h->epoch = 9;
    h->sequence = 1234;
    seen_native_put(h, b.at + SEEN_HEADER_STRIDE);
    seen_saved_free(&saved);
    return b;
}

static void assert_reads_slot(struct bytes b, const seen_filter *f,
                              uint32_t slot)
{
    struct seen_native h = header_of(b);
    assert_int_equal(h.slot, slot);
    assert_int_equal(h.epoch, slot ? 9 : 7);
    assert_int_equal(h.sequence, slot ? 1234 : 0);
    seen_filter *loaded = load(b), *v = view(b);
    assert_true(seen_equal(loaded, f));
    assert_true(seen_equal(v, f));
    seen_free(loaded);
    seen_free(v);
}

static void check_two(const seen_filter *f, struct bytes saved)
{
    struct bytes b = two_headers(f, 0);
    assert_int_equal(b.len,
                     saved.len + 2 * SEEN_HEADER_STRIDE - SEEN_HEADER_SIZE);
    assert_reads_slot(b, f, 1);
    seen_filter *loaded = load(b), *none = NULL;
    assert_saves_as(loaded, saved); /* saving writes one header */
    seen_free(loaded);

    /* A bit of either header spoils that one only, unless it says "newer";
     * a bit of the gaps spoils the file. */
    for (size_t bit = 0; bit < 8 * 2 * SEEN_HEADER_STRIDE; bit++) {
        size_t at = bit / 8;
        bool second = at >= SEEN_HEADER_STRIDE;
        size_t in = at % SEEN_HEADER_STRIDE;
        b.at[at] ^= (uint8_t)(1u << bit % 8);
        seen_status status = seen_load(&none, b.at, b.len, NULL, NULL, NULL);
        if (status == SEEN_OK) {
            assert_true(in < SEEN_HEADER_SIZE);
            assert_reads_slot(b, f, second ? 0 : 1);
            seen_free(none);
            none = NULL;
        } else {
            assert_true((in_version(in) && status == SEEN_NEWER) ||
                        (in >= SEEN_HEADER_SIZE && status == SEEN_CORRUPT));
        }
        b.at[at] ^= (uint8_t)(1u << bit % 8);
    }
    memset(b.at, 0, SEEN_HEADER_SIZE);
    assert_reads_slot(b, f, 1);
    memset(b.at + SEEN_HEADER_STRIDE, 0xff, SEEN_HEADER_SIZE);
    assert_int_equal(seen_load(&none, b.at, b.len, NULL, NULL, NULL),
                     SEEN_CORRUPT);
    assert_null(none);
    free(b.at);
}

static void
of_two_headers_the_whole_one_of_the_higher_epoch_counts(void **state)
{
    (void)state;
    each_kind(check_two);
}

static void check_journaled(const seen_filter *f, struct bytes saved)
{
    (void)saved;
    struct bytes b = two_headers(f, SEEN_NATIVE_JOURNALED);
    seen_filter *none = NULL;
    assert_int_equal(seen_load(&none, b.at, b.len, NULL, NULL, NULL),
                     SEEN_BUSY);
    assert_int_equal(seen_view(&none, b.at, b.len, NULL, NULL), SEEN_BUSY);
    assert_int_equal(seen_verify(b.at, b.len, NULL), SEEN_BUSY);
    assert_null(none);
    free(b.at);
}

static void files_with_a_journal_are_left_to_the_store(void **state)
{
    (void)state;
    each_kind(check_journaled);
}

/* ---- Memory ------------------------------------------------------------- */

static void check_failing(const seen_filter *f, struct bytes saved)
{
    for (int persistent = 0; persistent < 2; persistent++)
        for (uint64_t nth = 1;; nth++) {
            struct test_alloc a;
            test_alloc_init(&a);
            test_alloc_arm(&a, nth, persistent);
            a.offset = nth * 8 % 64;
            seen_filter *g = NULL;
            seen_status status =
                seen_load(&g, saved.at, saved.len, NULL, &a.as, NULL);
            if (status == SEEN_OK) {
                assert_int_equal(a.failed, 0);
                assert_true(seen_equal(f, g));
            } else {
                assert_int_equal(status, SEEN_NOMEM);
                assert_null(g);
            }
            seen_free(g);
            assert_int_equal(a.blocks, 0);
            assert_int_equal(a.violations, 0);
            if (status == SEEN_OK) break;
        }
}

static void a_load_without_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    each_kind(check_failing);
}

/* ---- Memory and rates ---------------------------------------------------- */

/* A string of go-zero may leave out the zeros at its end; a container says how
 * many bits there were, and must not be believed: 384 bytes might say 2^32, 1,600
 * bytes that are full of ones 2^30. Nor are there more zeros than it would write. */
static void check_said_bits(seen_spec spec, size_t keys)
{
    seen_filter *f = test_filled(spec, 0, keys);
    struct bytes b = save(f);
    seen_filter *same = load(b);
    assert_saves_as(same, b);
    seen_free(same);
    seen_free(f);

    struct seen_native h = header_of(b);
    uint8_t *said =
        b.at + h.table_offset + 4 * seen_native_pages(h.payload_len) + 8;
    for (uint64_t bits = spec.bits / 8; bits <= (uint64_t)1 << 32; bits *= 2) {
        struct test_alloc a;
        test_alloc_init(&a);
        seen_put_le64(said, bits);
        seen_put_le64(b.at + 24, bits);
        fix_header(b.at);
        fix_sums(b);
        seen_filter *g = NULL;
        seen_status status = seen_load(&g, b.at, b.len, NULL, &a.as, NULL);
        assert_int_equal(status, bits == spec.bits ? SEEN_OK : SEEN_CORRUPT);
        assert_true(a.peak <= 8 * b.len + 65536);
        assert_int_equal(a.calls > 0, status == SEEN_OK);
        seen_free(g);
    }
    free(b.at);
}

static void sizes_follow_the_bytes_that_are_there(void **state)
{
    (void)state;
    seen_spec spec = {.dialect = "gozero", .bits = 1000};
    check_said_bits(spec, 0);
    spec.bits = 10240;
    check_said_bits(spec, 0);
    check_said_bits(spec, 1000);
}

/* A kind that went is named, with the one that took its place. */
static void a_fuse_filter_is_refused_with_a_sentence(void **state)
{
    (void)state;
    seen_filter *f = test_filled(spec_of(SEEN_BLOOM, false), 0, MEMBERS);
    struct bytes b = save(f);
    seen_free(f);
    seen_put_le16(b.at + KIND_AT, 4);
    fix_header(b.at);
    seen_filter *none = NULL;
    seen_error e;
    assert_int_equal(seen_load(&none, b.at, b.len, NULL, NULL, &e),
                     SEEN_UNSUPPORTED);
    assert_non_null(strstr(e.text, "fuse"));
    assert_non_null(strstr(e.text, "ribbon"));
    assert_int_equal(seen_view(&none, b.at, b.len, NULL, &e), SEEN_UNSUPPORTED);
    assert_non_null(strstr(e.text, "ribbon"));
    seen_put_le16(b.at + KIND_AT, 99);
    fix_header(b.at);
    assert_int_equal(seen_load(&none, b.at, b.len, NULL, NULL, &e),
                     SEEN_UNSUPPORTED);
    assert_non_null(strstr(e.text, "not one that this version knows"));
    assert_null(none);
    free(b.at);
}

/* Static kinds hold what they were made for. */
static void a_rate_is_a_number(void **state)
{
    (void)state;
    const seen_kind kinds[] = {SEEN_RIBBON, SEEN_SORTED, SEEN_CUCKOO};
    for (size_t i = 0; i < 3; i++) {
        seen_filter *f = test_filled(spec_of(kinds[i], false), 0, MEMBERS);
        struct bytes b = save(f);
        seen_free(f);
        for (uint64_t items = MEMBERS + 1; items; items *= 2) {
            seen_put_le64(b.at + ITEMS_AT, items);
            fix_header(b.at);
            for (int borrowed = 0; borrowed < 2; borrowed++) {
                seen_filter *g = NULL;
                seen_info info = {.size = sizeof info};
                seen_status status =
                    borrowed ? seen_view(&g, b.at, b.len, NULL, NULL)
                             : seen_load(&g, b.at, b.len, NULL, NULL, NULL);
                if (status == SEEN_OK) {
                    seen_measure(g, &info);
                    assert_true(info.fpp_now >= 0 && info.fpp_now <= 1);
                } else {
                    assert_int_equal(status, SEEN_CORRUPT);
                }
                assert_true(status != SEEN_OK || kinds[i] == SEEN_CUCKOO);
                seen_free(g);
            }
        }
        free(b.at);
    }
}

/* No checksum vouches for a view: also ones behind the last bit are counted. */
static void a_view_of_nothing_but_ones_has_a_rate(void **state)
{
    (void)state;
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++) {
        seen_spec spec = test_spec_for(seen_kind_at(i), 100);
        if (spec.kind == SEEN_BLOOM)
            spec = (seen_spec){.kind = SEEN_BLOOM, .items = 100, .bits = 1001};
        seen_filter *f = test_filled(spec, 0, 100), *v = NULL;
        struct bytes b = save(f);
        struct seen_native h = header_of(b);
        memset(b.at + h.payload_offset, 0xff, (size_t)h.payload_len);
        seen_status status = seen_view(&v, b.at, b.len, NULL, NULL);
        assert_true(status == SEEN_OK || status == SEEN_CORRUPT);
        if (spec.kind == SEEN_BLOOM) assert_int_equal(status, SEEN_OK);
        if (status == SEEN_OK) {
            seen_info info = {.size = sizeof info};
            seen_measure(v, &info);
            assert_true(info.fpp_now >= 0 && info.fpp_now <= 1);
        }
        seen_free(v);
        free(b.at);
        seen_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_follow_the_bytes_that_are_there),
        cmocka_unit_test(a_fuse_filter_is_refused_with_a_sentence),
        cmocka_unit_test(a_rate_is_a_number),
        cmocka_unit_test(a_view_of_nothing_but_ones_has_a_rate),
        cmocka_unit_test(saving_what_was_loaded_gives_the_same_bytes),
        cmocka_unit_test(grown_emptied_and_seeded_filters_are_kept),
        cmocka_unit_test(large_filters_are_kept),
        cmocka_unit_test(concurrent_filters_save_an_estimate_of_their_items),
        cmocka_unit_test(pieces_are_the_whole_however_it_is_cut),
        cmocka_unit_test(a_short_buffer_is_measured_and_left_alone),
        cmocka_unit_test(views_answer_and_refuse_every_change),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(every_truncation_and_extension_is_refused),
        cmocka_unit_test(a_later_version_is_told_apart_from_damage),
        cmocka_unit_test(lying_headers_are_refused_or_harmless),
        cmocka_unit_test(pairs_of_lies_are_refused_or_harmless),
        cmocka_unit_test(lying_states_are_refused_or_harmless),
        cmocka_unit_test(lying_payloads_are_refused_or_harmless),
        cmocka_unit_test(a_full_set_ends_every_search),
        cmocka_unit_test(sets_with_misplaced_fingerprints_are_refused),
        cmocka_unit_test(cuckoo_entries_lie_where_they_may),
        cmocka_unit_test(a_table_of_copies_is_in_order),
        cmocka_unit_test(an_entry_of_the_table_has_one_name),
        cmocka_unit_test(nothing_comes_of_a_view_that_lies),
        cmocka_unit_test(earlier_cuckoo_filters_are_refused),
        cmocka_unit_test(bits_past_the_end_stay_out_of_a_union),
        cmocka_unit_test(a_list_needs_a_policy),
        cmocka_unit_test(a_key_form_stays_with_its_filter),
        cmocka_unit_test(a_container_of_others_has_no_key_form),
        cmocka_unit_test(a_new_filter_has_the_key_form_of_its_spec),
        cmocka_unit_test(key_forms_of_a_union_agree),
        cmocka_unit_test(a_secret_kept_apart_is_needed_and_checked),
        cmocka_unit_test(
            of_two_headers_the_whole_one_of_the_higher_epoch_counts),
        cmocka_unit_test(files_with_a_journal_are_left_to_the_store),
        cmocka_unit_test(a_load_without_memory_leaves_nothing_behind),
    };
    test_announce("native");
    return cmocka_run_group_tests_name("native", tests, NULL, NULL);
}
