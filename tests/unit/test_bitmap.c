/* test_bitmap.c - edges of bitmaps, and the bytes of a saved one. */
#include "seen_bitmap.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "helpers/failing_alloc.h"
#include "helpers/harness.h"

#include <stdlib.h>
#include <string.h>

static seen_bitmap *bitmap(uint64_t bits)
{
    seen_bitmap *b = NULL;
    assert_int_equal(seen_bitmap_new(&b, bits, NULL, NULL), SEEN_OK);
    assert_int_equal(seen_bitmap_bits(b), bits);
    return b;
}

static void *saved(const seen_bitmap *b, size_t *len)
{
    assert_int_equal(seen_bitmap_save(b, NULL, 0, len), SEEN_SHORT);
    void *buf = malloc(*len);
    assert_non_null(buf);
    assert_int_equal(seen_bitmap_save(b, buf, *len, len), SEEN_OK);
    return buf;
}

/* ---- One integer -------------------------------------------------------- */

static void edge_bits_are_set_and_cleared_alone(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1,   2,   63,  64,   65,
                                      127, 128, 129, 1000, 4096};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t n = bounds[i];
        seen_bitmap *b = bitmap(n);
        for (uint64_t bit = 0; bit < n; bit++) {
            assert_false(seen_bitmap_has(b, bit));
            assert_int_equal(seen_bitmap_set(b, bit), SEEN_OK);
            assert_int_equal(seen_bitmap_set(b, bit), SEEN_OK);
            assert_true(seen_bitmap_has(b, bit));
            assert_int_equal(seen_bitmap_count(b), 1);
            assert_int_equal(seen_bitmap_next_set(b, 0), bit);
            assert_int_equal(seen_bitmap_clear(b, bit), SEEN_OK);
            assert_int_equal(seen_bitmap_clear(b, bit), SEEN_OK);
            assert_int_equal(seen_bitmap_count(b), 0);
        }
        seen_bitmap_free(b);
    }
}

static void beyond_the_bound_is_refused_and_never_a_member(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t n = bounds[i];
        seen_bitmap *b = bitmap(n);
        assert_int_equal(seen_bitmap_set_range(b, 0, n), SEEN_OK);
        const uint64_t outside[] = {n, n + 1, n + 63, n + 64, UINT64_MAX};
        for (size_t j = 0; j < 5; j++) {
            assert_false(seen_bitmap_has(b, outside[j]));
            assert_int_equal(seen_bitmap_set(b, outside[j]), SEEN_INVALID);
            assert_int_equal(seen_bitmap_clear(b, outside[j]), SEEN_INVALID);
            assert_true(seen_bitmap_next_set(b, outside[j]) == SEEN_NO_BIT);
            assert_true(seen_bitmap_next_clear(b, outside[j]) == SEEN_NO_BIT);
            assert_int_equal(seen_bitmap_count_range(b, outside[j], UINT64_MAX),
                             0);
        }
        assert_int_equal(seen_bitmap_count(b), n);
        assert_int_equal(seen_bitmap_count_range(b, 0, UINT64_MAX), n);
        assert_true(seen_bitmap_next_clear(b, 0) == SEEN_NO_BIT);
        seen_bitmap_free(b);
    }
}

static void impossible_bounds_are_refused(void **state)
{
    (void)state;
    seen_bitmap *b = (seen_bitmap *)state;
    const seen_allocator half = {0};
    assert_int_equal(seen_bitmap_new(&b, 0, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_bitmap_new(&b, SEEN_BITMAP_MAX + 1, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_bitmap_new(&b, UINT64_MAX, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_bitmap_new(&b, 10, &half, NULL), SEEN_INVALID);
    assert_int_equal(seen_bitmap_new(NULL, 10, NULL, NULL), SEEN_INVALID);
    assert_ptr_equal(b, state);
    seen_bitmap_free(NULL);
}

/* 2^36 bits are 8 GiB of addresses, of which a few pages are touched. */
static void the_last_bit_of_a_sparse_giant_is_exact(void **state)
{
    (void)state;
    const uint64_t n = (uint64_t)1 << 36;
    seen_bitmap *b = NULL;
    seen_status status = seen_bitmap_new(&b, n, NULL, NULL);
    if (status == SEEN_NOMEM) skip();
    assert_int_equal(status, SEEN_OK);
    assert_int_equal(seen_bitmap_set(b, n - 1), SEEN_OK);
    assert_int_equal(seen_bitmap_set(b, (uint64_t)1 << 32), SEEN_OK);
    assert_int_equal(seen_bitmap_set(b, n), SEEN_INVALID);
    assert_true(seen_bitmap_has(b, n - 1));
    assert_true(seen_bitmap_has(b, (uint64_t)1 << 32));
    assert_false(seen_bitmap_has(b, 0)); /* 2^32 cut to 32 bits */
    assert_false(seen_bitmap_has(b, UINT32_MAX));
    assert_int_equal(seen_bitmap_set_range(b, n - 70, n), SEEN_OK);
    assert_int_equal(seen_bitmap_count_range(b, n - 1000, n), 70);
    assert_true(seen_bitmap_next_set(b, n - 1000) == n - 70);
    assert_true(seen_bitmap_next_clear(b, n - 70) == SEEN_NO_BIT);
    seen_bitmap_free(b);
}

/* ---- Ranges ------------------------------------------------------------- */

static void ranges_touch_exactly_their_bits(void **state)
{
    (void)state;
    enum {
        N = 200
    };
    seen_bitmap *b = bitmap(N);
    for (uint64_t from = 0; from <= N; from++)
        for (uint64_t to = from; to <= N; to++) {
            assert_int_equal(seen_bitmap_clear_range(b, 0, N), SEEN_OK);
            assert_int_equal(seen_bitmap_set_range(b, from, to), SEEN_OK);
            assert_int_equal(seen_bitmap_count(b), to - from);
            if (from == to) continue;
            assert_int_equal(seen_bitmap_next_set(b, 0), from);
            uint64_t end = seen_bitmap_next_clear(b, from);
            assert_true(end == (to < N ? to : SEEN_NO_BIT));
            assert_int_equal(seen_bitmap_count_range(b, from, to), to - from);
            assert_int_equal(seen_bitmap_count_range(b, to, N), 0);
            assert_int_equal(seen_bitmap_count_range(b, 0, from), 0);
            assert_int_equal(seen_bitmap_set_range(b, 0, N), SEEN_OK);
            assert_int_equal(seen_bitmap_clear_range(b, from, to), SEEN_OK);
            assert_int_equal(seen_bitmap_count(b), N - (to - from));
        }
    seen_bitmap_free(b);
}

static void wrong_ranges_change_nothing(void **state)
{
    (void)state;
    seen_bitmap *b = bitmap(100);
    seen_bitmap_set_range(b, 20, 30);
    const uint64_t bad[][2] = {
        {0, 101}, {50, 49}, {101, 101}, {0, UINT64_MAX}, {UINT64_MAX, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(seen_bitmap_set_range(b, bad[i][0], bad[i][1]),
                         SEEN_INVALID);
        assert_int_equal(seen_bitmap_clear_range(b, bad[i][0], bad[i][1]),
                         SEEN_INVALID);
    }
    assert_int_equal(seen_bitmap_set_range(b, 100, 100), SEEN_OK);
    assert_int_equal(seen_bitmap_count(b), 10);
    assert_int_equal(seen_bitmap_count_range(b, 30, 20), 0);
    seen_bitmap_free(b);
}

/* ---- Enumeration -------------------------------------------------------- */

struct visits {
    uint64_t seen[300];
    size_t n, stop_after;
};

static bool note(void *ctx, uint64_t bit)
{
    struct visits *v = ctx;
    v->seen[v->n++] = bit;
    return v->n != v->stop_after;
}

static void each_visits_members_in_order_and_stops_when_told(void **state)
{
    (void)state;
    seen_bitmap *b = bitmap(300);
    static const uint64_t members[] = {0, 1, 62, 63, 64, 127, 128, 255, 299};
    const size_t n = sizeof members / sizeof *members;
    for (size_t i = 0; i < n; i++)
        seen_bitmap_set(b, members[n - 1 - i]);

    struct visits v = {0};
    seen_bitmap_each(b, note, &v);
    assert_int_equal(v.n, n);
    assert_memory_equal(v.seen, members, sizeof members);
    for (size_t stop = 1; stop <= n; stop++) {
        v = (struct visits){.stop_after = stop};
        seen_bitmap_each(b, note, &v);
        assert_int_equal(v.n, stop);
    }

    size_t i = 0;
    for (uint64_t bit = seen_bitmap_next_set(b, 0); bit != SEEN_NO_BIT;
         bit = seen_bitmap_next_set(b, bit + 1))
        assert_int_equal(bit, members[i++]);
    assert_int_equal(i, n);
    seen_bitmap_free(b);
}

/* ---- Two bitmaps -------------------------------------------------------- */

static void bitmaps_of_different_bounds_do_not_mix(void **state)
{
    (void)state;
    seen_bitmap *a = bitmap(100), *b = bitmap(101);
    seen_bitmap_set(a, 5);
    seen_bitmap_set_range(b, 0, 101);
    assert_int_equal(seen_bitmap_or(a, b), SEEN_MISMATCH);
    assert_int_equal(seen_bitmap_and(a, b), SEEN_MISMATCH);
    assert_int_equal(seen_bitmap_andnot(a, b), SEEN_MISMATCH);
    assert_int_equal(seen_bitmap_xor(a, b), SEEN_MISMATCH);
    assert_int_equal(seen_bitmap_count(a), 1);
    assert_false(seen_bitmap_equal(a, b));
    seen_bitmap_free(a);
    seen_bitmap_free(b);
}

static void a_bitmap_with_itself_obeys_the_laws(void **state)
{
    (void)state;
    seen_bitmap *a = bitmap(100), *same = bitmap(100);
    seen_bitmap_set_range(a, 10, 90);
    seen_bitmap_set_range(same, 10, 90);
    assert_int_equal(seen_bitmap_or(a, a), SEEN_OK);
    assert_true(seen_bitmap_equal(a, same));
    assert_int_equal(seen_bitmap_and(a, a), SEEN_OK);
    assert_true(seen_bitmap_equal(a, same));
    assert_int_equal(seen_bitmap_xor(a, a), SEEN_OK);
    assert_int_equal(seen_bitmap_count(a), 0);
    assert_int_equal(seen_bitmap_andnot(same, same), SEEN_OK);
    assert_true(seen_bitmap_equal(a, same));
    seen_bitmap_free(a);
    seen_bitmap_free(same);
}

/* ---- Bytes -------------------------------------------------------------- */

/*
 * 70 bits, members 0, 1, 63, 64 and 69. Written down by a few lines of another
 * language from docs/FORMAT.md; the checksums by the bitwise definition of
 * CRC32C.
 */
/* clang-format off */
static const uint8_t golden_start[] = {
    0x89, 'S', 'E', 'E', 'N', 0x0d, 0x0a, 0x1a, /* magic */
    1, 0, 8, 0, 0, 0, 0, 0,                     /* version, kind, flags */
    70, 0, 0, 0, 0, 0, 0, 0,                    /* capacity */
    70, 0, 0, 0, 0, 0, 0, 0,                    /* bits */
    0, 0, 0, 0, 0, 0, 0, 0,                     /* promised rate */
    1, 0, 0, 0, 0, 0, 0, 0,                     /* hashes, width */
    4, 0, 0, 0, 0, 0, 1, 0,                     /* hash, policy, block size */
    5, 0, 0, 0, 0, 0, 0, 0};                    /* items */
static const uint8_t golden_lengths[] = {
    0x40, 1, 0, 0, 0, 0, 0, 0,                  /* payload offset */
    64, 0, 0, 0, 0, 0, 0, 0,                    /* payload length */
    0, 0, 0, 0, 0, 0, 0, 0,                     /* of state and list */
    0x65, 0x6d, 0xc8, 0xb5};                    /* CRC of the table */
static const uint8_t golden_sums[] = {
    0x9c, 0x91, 0x6b, 0x9a,                     /* CRC of the header */
    0x66, 0x22, 0x1c, 0xd7};                    /* the table: one block */
static const uint8_t golden_payload[] = {
    0x03, 0, 0, 0, 0, 0, 0, 0x80, 0x21, 0, 0, 0, 0, 0, 0, 0};
/* clang-format on */

#define GOLDEN_LEN 384

enum {
    ITEMS_AT = 56,
    TABLE_CRC_AT = 112,
    CRC_AT = 252,
    TABLE = 256,
    AT = 320
};

static void make_golden(uint8_t out[GOLDEN_LEN])
{
    memset(out, 0, GOLDEN_LEN);
    memcpy(out, golden_start, sizeof golden_start);
    memcpy(out + 88, golden_lengths, sizeof golden_lengths);
    memcpy(out + CRC_AT, golden_sums, sizeof golden_sums);
    memcpy(out + AT, golden_payload, sizeof golden_payload);
}

static seen_bitmap *golden_bitmap(void)
{
    seen_bitmap *b = bitmap(70);
    static const uint64_t members[] = {0, 1, 63, 64, 69};
    for (size_t i = 0; i < 5; i++)
        seen_bitmap_set(b, members[i]);
    return b;
}

static void saved_bytes_are_the_golden_ones(void **state)
{
    (void)state;
    uint8_t golden[GOLDEN_LEN];
    make_golden(golden);
    seen_bitmap *b = golden_bitmap(), *loaded = NULL;
    size_t len;
    uint8_t *buf = saved(b, &len);
    assert_int_equal(len, GOLDEN_LEN);
    assert_memory_equal(buf, golden, GOLDEN_LEN);
    assert_int_equal(seen_bitmap_verify(golden, GOLDEN_LEN, NULL), SEEN_OK);
    assert_int_equal(seen_bitmap_load(&loaded, golden, GOLDEN_LEN, NULL, NULL),
                     SEEN_OK);
    assert_true(seen_bitmap_equal(b, loaded));
    free(buf);
    seen_bitmap_free(b);
    seen_bitmap_free(loaded);
}

static void a_short_buffer_is_measured_and_left_alone(void **state)
{
    (void)state;
    seen_bitmap *b = golden_bitmap();
    uint8_t buf[GOLDEN_LEN];
    for (size_t cap = 0; cap < GOLDEN_LEN; cap++) {
        size_t len = 0;
        memset(buf, 0x11, sizeof buf);
        assert_int_equal(seen_bitmap_save(b, cap ? buf : NULL, cap, &len),
                         SEEN_SHORT);
        assert_int_equal(len, GOLDEN_LEN);
        for (size_t i = 0; i < sizeof buf; i++)
            assert_int_equal(buf[i], 0x11);
    }
    size_t len = 77;
    assert_int_equal(seen_bitmap_save(b, NULL, 10, &len), SEEN_INVALID);
    assert_int_equal(seen_bitmap_save(b, buf, 10, NULL), SEEN_INVALID);
    assert_int_equal(len, 77);
    seen_bitmap_free(b);
}

static void a_view_answers_and_refuses_to_change(void **state)
{
    (void)state;
    _Alignas(64) uint8_t buf[GOLDEN_LEN + 8];
    uint8_t golden[GOLDEN_LEN];
    make_golden(golden);
    memcpy(buf, golden, GOLDEN_LEN);
    seen_bitmap *v = NULL, *b = golden_bitmap();
    assert_int_equal(seen_bitmap_view(&v, buf, GOLDEN_LEN, NULL), SEEN_OK);
    assert_true(seen_bitmap_equal(v, b));
    assert_int_equal(seen_bitmap_bits(v), 70);
    assert_int_equal(seen_bitmap_count(v), 5);
    assert_true(seen_bitmap_has(v, 69));
    assert_false(seen_bitmap_has(v, 70));
    assert_int_equal(seen_bitmap_next_set(v, 2), 63);

    assert_int_equal(seen_bitmap_set(v, 5), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_set(v, 0), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_clear(v, 0), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_set_range(v, 0, 70), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_clear_range(v, 0, 70), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_or(v, b), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_and(v, b), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_andnot(v, b), SEEN_UNSUPPORTED);
    assert_int_equal(seen_bitmap_xor(v, b), SEEN_UNSUPPORTED);
    assert_memory_equal(buf, golden, GOLDEN_LEN);

    /* The other operand may be a view; a view saves what it was made of. */
    assert_int_equal(seen_bitmap_xor(b, v), SEEN_OK);
    assert_int_equal(seen_bitmap_count(b), 0);
    size_t len;
    uint8_t *again = saved(v, &len);
    assert_memory_equal(again, golden, GOLDEN_LEN);
    free(again);
    seen_bitmap_free(v);
    seen_bitmap_free(b);
}

static void a_view_wants_alignment_and_a_buffer(void **state)
{
    (void)state;
    _Alignas(64) uint8_t buf[GOLDEN_LEN + 8];
    seen_bitmap *v = (seen_bitmap *)buf;
    for (size_t at = 1; at < 8; at++) {
        make_golden(buf + at);
        assert_int_equal(seen_bitmap_view(&v, buf + at, GOLDEN_LEN, NULL),
                         SEEN_INVALID);
        /* Loading copies, so it does not care. */
        seen_bitmap *b = NULL;
        assert_int_equal(seen_bitmap_load(&b, buf + at, GOLDEN_LEN, NULL, NULL),
                         SEEN_OK);
        assert_int_equal(seen_bitmap_count(b), 5);
        seen_bitmap_free(b);
    }
    make_golden(buf);
    assert_int_equal(seen_bitmap_view(&v, NULL, GOLDEN_LEN, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_bitmap_view(NULL, buf, GOLDEN_LEN, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_bitmap_load(&v, NULL, GOLDEN_LEN, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_bitmap_load(NULL, buf, GOLDEN_LEN, NULL, NULL),
                     SEEN_INVALID);
    assert_int_equal(seen_bitmap_verify(NULL, GOLDEN_LEN, NULL), SEEN_INVALID);
    assert_ptr_equal(v, buf);
}

/* Change a field and make the header's checksum right again, as a program with
 * a bug or an attacker would: the checks behind the checksum must hold. */
static void set_field(uint8_t *buf, size_t at, uint8_t value)
{
    buf[at] = value;
    seen_put_le32(buf + CRC_AT, seen_crc32c(0, buf, CRC_AT));
}

static seen_status expected_of(size_t at, int value)
{
    if (at == 9 || (at == 8 && value > 1)) return SEEN_NEWER;
    if (at == 10 || at == 11) return SEEN_UNSUPPORTED; /* kind */
    if (at == 12 && value == 8) return SEEN_BUSY;      /* journaled */
    return SEEN_CORRUPT;
}

/* A view reads neither the table nor how many bits are set. */
static bool unseen_by_a_view(size_t at)
{
    return (at >= ITEMS_AT && at < ITEMS_AT + 8) ||
           (at >= TABLE_CRC_AT && at < TABLE_CRC_AT + 4);
}

static void lying_headers_are_refused_behind_a_good_checksum(void **state)
{
    (void)state;
    _Alignas(64) uint8_t buf[GOLDEN_LEN];
    seen_bitmap *b = (seen_bitmap *)buf;
    for (size_t at = 0; at < CRC_AT; at++)
        for (int value = 0; value < 256; value++) {
            make_golden(buf);
            if (buf[at] == value) continue;
            set_field(buf, at, (uint8_t)value);
            seen_status expected = expected_of(at, value);
            if (seen_bitmap_load(&b, buf, GOLDEN_LEN, NULL, NULL) != expected ||
                (!unseen_by_a_view(at) &&
                 seen_bitmap_view(&b, buf, GOLDEN_LEN, NULL) != expected) ||
                seen_bitmap_verify(buf, GOLDEN_LEN, NULL) != expected)
                fail_msg("byte %zu = %d", at, value);
        }
    assert_ptr_equal(b, buf);
}

static void make_sums_right(uint8_t *buf)
{
    seen_put_le32(buf + TABLE, seen_crc32c(0, buf + AT, 64));
    seen_put_le32(buf + TABLE_CRC_AT, seen_crc32c(0, buf + TABLE, 4));
    seen_put_le32(buf + CRC_AT, seen_crc32c(0, buf, CRC_AT));
}

static void bits_past_the_end_are_refused(void **state)
{
    (void)state;
    _Alignas(64) uint8_t buf[GOLDEN_LEN];
    seen_bitmap *b = NULL;
    for (size_t bit = 70; bit < 512; bit++) {
        make_golden(buf);
        buf[AT + bit / 8] |= (uint8_t)(1u << bit % 8);
        make_sums_right(buf);
        assert_int_equal(seen_bitmap_load(&b, buf, GOLDEN_LEN, NULL, NULL),
                         SEEN_CORRUPT);
        buf[ITEMS_AT]++;
        make_sums_right(buf);
        assert_int_equal(seen_bitmap_load(&b, buf, GOLDEN_LEN, NULL, NULL),
                         SEEN_CORRUPT);
        /* A view counts nothing; in a word it would use, it sees them. */
        if (bit >= 128) continue;
        assert_int_equal(seen_bitmap_view(&b, buf, GOLDEN_LEN, NULL),
                         SEEN_CORRUPT);
    }
    assert_null(b);
}

/* Above 65536 bytes of payload the table has several entries. */
static void large_bitmaps_have_one_checksum_for_each_block(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {65536 * 8 - 1, 65536 * 8, 65536 * 8 + 1,
                                      3 * 65536 * 8 + 100};
    struct test_rng r = test_rng(24);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        seen_bitmap *b = bitmap(bounds[i]), *again = NULL;
        for (int j = 0; j < 1000; j++)
            seen_bitmap_set(b, test_below(&r, bounds[i]));
        seen_bitmap_set(b, bounds[i] - 1);
        size_t len;
        uint8_t *buf = saved(b, &len);
        assert_int_equal(seen_bitmap_verify(buf, len, NULL), SEEN_OK);
        assert_int_equal(seen_bitmap_load(&again, buf, len, NULL, NULL),
                         SEEN_OK);
        assert_true(seen_bitmap_equal(b, again));
        seen_bitmap_free(again);
        /* One bit anywhere in the payload spoils the load, not the view. */
        uint64_t at = test_below(&r, bounds[i] / 8);
        uint64_t payload = seen_get_le64(buf + 88);
        buf[payload + at] ^= 0x10;
        assert_int_equal(seen_bitmap_verify(buf, len, NULL), SEEN_CORRUPT);
        assert_int_equal(seen_bitmap_load(&again, buf, len, NULL, NULL),
                         SEEN_CORRUPT);
        assert_int_equal(seen_bitmap_view(&again, buf, len, NULL), SEEN_OK);
        seen_bitmap_free(again);
        free(buf);
        seen_bitmap_free(b);
    }
}

static void memory_comes_from_the_given_allocator(void **state)
{
    (void)state;
    struct test_alloc a;
    test_alloc_init(&a);
    seen_bitmap *b = NULL, *again = NULL;
    assert_int_equal(seen_bitmap_new(&b, 1000, &a.as, NULL), SEEN_OK);
    assert_int_equal(seen_bitmap_count(b), 0);
    seen_bitmap_set(b, 999);
    size_t len;
    uint8_t *buf = saved(b, &len);
    assert_int_equal(seen_bitmap_load(&again, buf, len, &a.as, NULL), SEEN_OK);
    assert_true(seen_bitmap_equal(b, again));
    assert_true(a.blocks > 0);
    seen_bitmap_free(b);
    seen_bitmap_free(again);
    assert_int_equal(a.blocks, 0);
    assert_int_equal(a.violations, 0);
    free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edge_bits_are_set_and_cleared_alone),
        cmocka_unit_test(beyond_the_bound_is_refused_and_never_a_member),
        cmocka_unit_test(impossible_bounds_are_refused),
        cmocka_unit_test(the_last_bit_of_a_sparse_giant_is_exact),
        cmocka_unit_test(ranges_touch_exactly_their_bits),
        cmocka_unit_test(wrong_ranges_change_nothing),
        cmocka_unit_test(each_visits_members_in_order_and_stops_when_told),
        cmocka_unit_test(bitmaps_of_different_bounds_do_not_mix),
        cmocka_unit_test(a_bitmap_with_itself_obeys_the_laws),
        cmocka_unit_test(saved_bytes_are_the_golden_ones),
        cmocka_unit_test(a_short_buffer_is_measured_and_left_alone),
        cmocka_unit_test(a_view_answers_and_refuses_to_change),
        cmocka_unit_test(a_view_wants_alignment_and_a_buffer),
        cmocka_unit_test(lying_headers_are_refused_behind_a_good_checksum),
        cmocka_unit_test(bits_past_the_end_are_refused),
        cmocka_unit_test(large_bitmaps_have_one_checksum_for_each_block),
        cmocka_unit_test(memory_comes_from_the_given_allocator),
    };
    test_announce("bitmap");
    return cmocka_run_group_tests_name("bitmap", tests, NULL, NULL);
}
