/* test_plan.c - the public planning calls: what is possible, and what is wrong
 * with what is not. */
#include "seen.h"

#include "helpers/keys.h"

#include <math.h>
#include <string.h>

static seen_plan planned(seen_spec spec)
{
    seen_plan plan = {.size = sizeof plan};
    const char *problem = test_wrong_spec(&spec);
    if (problem) fail_msg("%s", problem);
    assert_int_equal(seen_plan_for(&spec, &plan, NULL), SEEN_OK);
    return plan;
}

/* Refused, for a reason that names `field`, and *plan is as it was. */
static void refused(seen_spec spec, seen_status expected, const char *field)
{
    seen_plan plan = {.size = sizeof plan}, before = {.size = sizeof before};
    memset(&plan, 0x3c, sizeof plan);
    plan.size = sizeof plan;
    memcpy(&before, &plan, sizeof plan);
    seen_status status = seen_plan_for(&spec, &plan, NULL);
    if (status != expected)
        fail_msg("%s: %s instead of %s", field, seen_strerror(status),
                 seen_strerror(expected));
    assert_memory_equal(&plan, &before, sizeof plan);
    const char *problem = test_wrong_spec(&spec);
    assert_non_null(problem);
    if (strncmp(problem, field, strlen(field)) != 0)
        fail_msg("\"%s\" is not about %s", problem, field);

    seen_filter *f = (seen_filter *)&plan;
    assert_int_equal(seen_new(&f, &spec, NULL), expected);
    assert_ptr_equal(f, &plan);
}

static const seen_kind bits_kinds[] = {SEEN_BLOOM, SEEN_BLOCKED};

/* ---- What is possible --------------------------------------------------- */

static void items_and_fpp_give_bits_and_hashes(void **state)
{
    (void)state;
    seen_plan p =
        planned((seen_spec){.items = 1000000, .fpp = 0.01, .kind = SEEN_BLOOM});
    assert_int_equal(p.kind, SEEN_BLOOM);
    assert_int_equal(p.hashes, 7);
    assert_int_equal(p.items, 1000000);
    assert_int_equal(p.lines, 7);
    assert_int_equal(p.hash_bits, 64);
    assert_between((double)p.bits, 9.585e6, 9.6e6);
    assert_between((double)p.bytes, (double)p.bits / 8,
                   (double)p.bits / 8 + 1024);
    assert_between(p.fpp, 0.0099, 0.01);

    p = planned((seen_spec){.items = 1000000, .fpp = 0.01});
    assert_int_equal(p.kind, SEEN_BLOCKED);
    assert_int_equal(p.hashes, 8);
    assert_int_equal(p.lines, 1);
    assert_between((double)p.bits, 9.6e6, 10.2e6);
    assert_between(p.fpp, 0.0099, 0.01);
}

static void items_and_bits_give_the_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        seen_plan p = planned((seen_spec){
            .items = 1000000, .bits = 8000000, .kind = bits_kinds[i]});
        assert_int_equal(p.items, 1000000);
        assert_between((double)p.bits, 8000000 - 511, 8000000);
        assert_between(p.fpp, 0.021, 0.03);
    }
}

static void bits_and_fpp_give_the_capacity(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {.fpp = 0.01, .bits = 10000000, .kind = bits_kinds[i]};
        seen_plan p = planned(spec);
        assert_between((double)p.items, 970000, 1045000);
        assert_true(p.fpp <= 0.01 * (1 + 1e-9));
        /* It is the most: one in a thousand more breaks the promise. */
        assert_true(seen_plan_fpp(&p, p.items + p.items / 1000 + 1) > 0.01);
    }
}

static void a_given_k_is_kept(void **state)
{
    (void)state;
    static const uint32_t ks[] = {1, 2, 4, 8, 16, 24};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            seen_spec spec = {.kind = bits_kinds[i], .hashes = ks[j]};
            spec.items = 10000, spec.fpp = 0.01;
            assert_int_equal(planned(spec).hashes, ks[j]);
            spec.fpp = 0, spec.bits = 200000;
            assert_int_equal(planned(spec).hashes, ks[j]);
            spec.fpp = 0.05, spec.items = 0;
            assert_int_equal(planned(spec).hashes, ks[j]);
        }
    seen_spec odd = {
        .items = 10000, .fpp = 0.01, .kind = SEEN_BLOOM, .hashes = 13};
    assert_int_equal(planned(odd).hashes, 13);
}

static void all_four_are_fine_when_they_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {.items = 10000,
                          .fpp = 0.01,
                          .bits = 120000,
                          .hashes = 8,
                          .kind = bits_kinds[i]};
        seen_plan p = planned(spec);
        assert_int_equal(p.items, 10000);
        assert_int_equal(p.hashes, 8);
        assert_true(p.fpp <= 0.01);
        spec.hashes = 0;
        assert_true(planned(spec).fpp <= 0.01);
        spec.bits = 60000;
        refused(spec, SEEN_INVALID, "bits");
    }
}

static void the_promise_is_kept_by_the_plan_at_every_size(void **state)
{
    (void)state;
    static const double fpps[] = {0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-6, 1e-12};
    static const uint64_t items[] = {1,   2,    3,       10,
                                     100, 5000, 1000000, UINT64_C(10000000000)};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof fpps / sizeof *fpps; j++)
            for (size_t k = 0; k < sizeof items / sizeof *items; k++) {
                seen_spec spec = {
                    .items = items[k], .fpp = fpps[j], .kind = bits_kinds[i]};
                seen_plan p = planned(spec);
                /* The hash may add its thousandth. */
                assert_true(p.fpp <= fpps[j] * 1.0011);
                assert_true(p.items == items[k]);
                assert_true(seen_plan_fpp(&p, p.items) == p.fpp);
                assert_true(seen_plan_fpp(&p, 0) == 0);
                assert_between(seen_plan_fpp(&p, p.items * 10), p.fpp, 1);
            }
}

static void a_plan_is_what_a_filter_becomes(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = test_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 5000,
                          .fpp = 0.01,
                          .kind = kind,
                          .last = test_last(kind, 5000)};
        seen_plan p = planned(spec);
        seen_filter *f = test_filter(spec);
        seen_info info = {.size = sizeof info};
        seen_measure(f, &info);
        assert_int_equal(info.kind, p.kind);
        assert_int_equal(info.bits, p.bits);
        assert_int_equal(info.bytes, p.bytes);
        assert_int_equal(info.hashes, p.hashes);
        assert_int_equal(info.lines, p.lines);
        assert_int_equal(info.items, 0);
        assert_int_equal(info.bits_set, 0);
        assert_true(info.fpp_now == 0);
        seen_free(f);
    }
}

static void limit_allows_exactly_the_bytes_of_the_plan(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 5000,
                          .fpp = 0.01,
                          .kind = kind,
                          .last = test_last(kind, 5000)};
        if (kind == SEEN_BITMAP) spec = (seen_spec){.bits = 999, .kind = kind};
        spec.limit = planned(spec).bytes;
        planned(spec);
        spec.limit--;
        refused(spec, SEEN_INVALID, "limit");
        spec.limit = 1;
        refused(spec, SEEN_INVALID, "limit");
    }
}

static void a_set_needs_no_numbers(void **state)
{
    (void)state;
    seen_plan p = planned((seen_spec){.kind = SEEN_SET});
    assert_int_equal(p.items, 0);
    assert_true(p.bytes < 4096);
    p = planned((seen_spec){.kind = SEEN_SET, .items = 14000000});
    assert_between((double)p.bytes / 14e6, 8, 15.1);
    assert_true(seen_plan_fpp(&p, 1u << 24) == 0x1p-40);
}

static void a_bitmap_needs_its_bound_and_nothing_else(void **state)
{
    (void)state;
    seen_plan p = planned((seen_spec){.kind = SEEN_BITMAP, .bits = 1000000});
    assert_int_equal(p.bits, 1000000);
    assert_int_equal(p.items, 1000000);
    assert_int_equal(p.hashes, 1);
    assert_int_equal(p.lines, 1);
    assert_int_equal(p.hash_bits, 64);
    assert_int_equal(p.width, 0);
    assert_between((double)p.bytes, 125000, 125000 + 1024);
    assert_true(p.fpp == 0 && seen_plan_fpp(&p, UINT64_MAX) == 0);
    planned((seen_spec){.kind = SEEN_BITMAP, .bits = 1});
    planned((seen_spec){.kind = SEEN_BITMAP, .bits = (uint64_t)1 << 40});
    /* A seed is for hashes; nobody is refused for what is never read. */
    planned(
        (seen_spec){.kind = SEEN_BITMAP, .bits = 1000, .secret = test_secret});

    seen_spec spec = {.kind = SEEN_BITMAP};
    refused(spec, SEEN_INVALID, "bits");
    spec.bits = ((uint64_t)1 << 40) + 1;
    refused(spec, SEEN_INVALID, "bits");
    spec.bits = 1000, spec.items = 10;
    refused(spec, SEEN_INVALID, "items");
    spec.items = 0, spec.fpp = 0.01;
    refused(spec, SEEN_INVALID, "fpp");
    spec.fpp = 0, spec.hashes = 1;
    refused(spec, SEEN_INVALID, "hashes");
    spec.hashes = 0, spec.secret = test_secret;
    for (uint32_t flags = 1; flags <= 3; flags++) {
        spec.flags = flags;
        refused(spec, SEEN_UNSUPPORTED, "flags");
    }
}

static void a_scalable_filter_needs_a_rate_and_nothing_else(void **state)
{
    (void)state;
    const seen_kind kind = SEEN_SCALABLE;
    seen_plan p = planned((seen_spec){.kind = kind, .fpp = 0.01});
    assert_int_equal(p.items, 65536);
    assert_int_equal(p.sized, 0);
    assert_true(p.fpp == 0.01);
    assert_true(seen_plan_fpp(&p, 0) == 0);
    double last = 0;
    for (uint64_t n = 1; n < (uint64_t)1 << 39; n *= 3) {
        double fpp = seen_plan_fpp(&p, n);
        assert_true(fpp >= last && fpp <= 0.01);
        last = fpp;
    }
    assert_true(isnan(seen_plan_fpp(&p, (uint64_t)1 << 41)));
    assert_true(isnan(seen_plan_fpp(&p, UINT64_MAX)));
    refused((seen_spec){.kind = kind}, SEEN_INVALID, "fpp");
    refused((seen_spec){.kind = kind, .items = 9}, SEEN_INVALID, "fpp");
    refused((seen_spec){.kind = kind, .fpp = 0.01, .bits = 9000}, SEEN_INVALID,
            "bits");
    refused((seen_spec){.kind = kind, .fpp = 0.01, .hashes = 8}, SEEN_INVALID,
            "hashes");
    refused((seen_spec){.kind = kind, .fpp = 1e-30}, SEEN_INVALID, "fpp");
    refused((seen_spec){.kind = kind, .fpp = 0.01, .items = UINT64_MAX},
            SEEN_INVALID, "items");
    refused((seen_spec){.kind = kind, .fpp = 0.1, .flags = SEEN_CONCURRENT},
            SEEN_UNSUPPORTED, "flags");
    /* 2^40 keys may come: 64 bits are enough for 6e-5 and above. */
    assert_int_equal(p.hash_bits, 64);
    p = planned((seen_spec){.kind = kind, .fpp = 5e-5});
    assert_int_equal(p.hash_bits, 128);
}

static void kinds_are_enumerated_and_named(void **state)
{
    (void)state;
    static const struct {
        seen_kind kind;
        const char *name;
    } rows[] = {{SEEN_BLOOM, "bloom"},   {SEEN_BLOCKED, "blocked"},
                {SEEN_CUCKOO, "cuckoo"}, {SEEN_SCALABLE, "scalable"},
                {SEEN_WINDOW, "window"}, {SEEN_SET, "set"},
                {SEEN_BITMAP, "bitmap"}, {SEEN_SORTED, "sorted"},
                {SEEN_RIBBON, "ribbon"}};
    const size_t n = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(seen_kind_at(i), rows[i].kind);
        assert_string_equal(seen_kind_name(rows[i].kind), rows[i].name);
        assert_int_equal(seen_kind_named(rows[i].name), rows[i].kind);
    }
    assert_int_equal(seen_kind_at(n), SEEN_ANY);
    assert_int_equal(seen_kind_at(SIZE_MAX), SEEN_ANY);
    assert_null(seen_kind_name(SEEN_ANY));
    assert_null(seen_kind_name((seen_kind)99));
    assert_null(seen_kind_name((seen_kind)4)); /* fuse, which was */
    assert_int_equal(seen_kind_named("Bloom"), SEEN_ANY);
    assert_int_equal(seen_kind_named(""), SEEN_ANY);
}

static void a_plan_of_no_known_kind_has_rate_one(void **state)
{
    (void)state;
    seen_plan p = {.size = sizeof p, .kind = (seen_kind)99};
    assert_true(seen_plan_fpp(&p, 1) == 1);
}

/* ---- What is not -------------------------------------------------------- */

static void missing_numbers_are_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        seen_kind kind = bits_kinds[i];
        refused((seen_spec){.kind = kind}, SEEN_INVALID, "items");
        refused((seen_spec){.kind = kind, .fpp = 0.01}, SEEN_INVALID, "items");
        refused((seen_spec){.kind = kind, .items = 5}, SEEN_INVALID, "fpp");
        refused((seen_spec){.kind = kind, .bits = 5000}, SEEN_INVALID, "items");
        refused((seen_spec){.kind = kind, .items = 5, .hashes = 8},
                SEEN_INVALID, "fpp");
    }
}

static void impossible_rates_are_refused(void **state)
{
    (void)state;
    static const double bad[] = {-1, -0.01, -1e-300, 1,        1.0000001,
                                 2,  100,   NAN,     INFINITY, -INFINITY};
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++)
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            seen_spec spec = {.items = 10, .fpp = bad[j], .kind = kind};
            refused(spec, SEEN_INVALID, "fpp");
            if (kind == SEEN_SET || kind == SEEN_SCALABLE) continue;
            spec.bits = 10000;
            refused(spec, SEEN_INVALID, "fpp");
        }
    /* Below what any hash of ours can keep. */
    for (size_t i = 0; i < 2; i++) {
        refused((seen_spec){.items = 1, .fpp = 1e-300, .kind = bits_kinds[i]},
                SEEN_INVALID, "fpp");
        refused((seen_spec){.items = 1, .fpp = 5e-324, .kind = bits_kinds[i]},
                SEEN_INVALID, "fpp");
        refused(
            (seen_spec){.bits = 1 << 26, .fpp = 1e-35, .kind = bits_kinds[i]},
            SEEN_INVALID, "fpp");
    }
    refused((seen_spec){.items = 1000, .fpp = 1e-300, .kind = SEEN_SET},
            SEEN_INVALID, "fpp");
    /* Minus zero is zero: not given. */
    refused((seen_spec){.items = 10, .fpp = -0.0}, SEEN_INVALID, "fpp");
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    const uint64_t huge[] = {(uint64_t)1 << 48, (uint64_t)1 << 63,
                             UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        for (size_t j = 0; j < 2; j++) {
            seen_kind kind = bits_kinds[j];
            refused((seen_spec){.items = huge[i], .fpp = 0.01, .kind = kind},
                    SEEN_INVALID, "items");
            if (huge[i] == (uint64_t)1 << 48) continue;
            refused((seen_spec){.items = 10, .bits = huge[i], .kind = kind},
                    SEEN_INVALID, "bits");
            refused((seen_spec){.fpp = 0.1, .bits = huge[i], .kind = kind},
                    SEEN_INVALID, "bits");
        }
        refused((seen_spec){.items = huge[i], .kind = SEEN_SET}, SEEN_INVALID,
                "items");
    }
    refused((seen_spec){.items = 10, .bits = ((uint64_t)1 << 48) + 1},
            SEEN_INVALID, "bits");
    refused((seen_spec){.items = 1, .bits = 511, .kind = SEEN_BLOCKED},
            SEEN_INVALID, "bits");
    refused((seen_spec){.fpp = 1e-9, .bits = 1, .kind = SEEN_BLOOM},
            SEEN_INVALID, "bits");
    refused((seen_spec){.fpp = 1e-20, .bits = 512, .kind = SEEN_BLOCKED},
            SEEN_INVALID, "bits");
    refused((seen_spec){.items = 9, .bits = 512, .hashes = 16}, SEEN_INVALID,
            "bits");
}

/* More keys than bits is foolish, not impossible. */
static void a_hopeless_rate_is_told_and_not_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        seen_spec spec = {
            .items = (uint64_t)1 << 63, .bits = 1024, .kind = bits_kinds[i]};
        assert_true(planned(spec).fpp > 0.999999);
        spec.items = UINT64_MAX;
        assert_true(planned(spec).fpp > 0.999999);
    }
}

static void wrong_numbers_of_hashes_are_refused(void **state)
{
    (void)state;
    seen_spec spec = {.items = 1000, .fpp = 0.01, .kind = SEEN_BLOOM};
    spec.hashes = 256;
    refused(spec, SEEN_INVALID, "hashes");
    spec.hashes = UINT32_MAX;
    refused(spec, SEEN_INVALID, "hashes");
    spec.kind = SEEN_BLOCKED;
    refused(spec, SEEN_INVALID, "hashes");
    static const uint32_t bad[] = {3, 5, 6, 7, 9, 12, 129, 136};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.hashes = bad[i];
        refused(spec, SEEN_INVALID, "hashes");
    }
    spec.kind = SEEN_SET;
    spec.hashes = 1;
    refused(spec, SEEN_INVALID, "hashes");
    spec.hashes = 0, spec.bits = 100;
    refused(spec, SEEN_INVALID, "bits");
}

static void unknown_flags_kinds_and_reserved_fields_are_refused(void **state)
{
    (void)state;
    const seen_spec good = {.items = 1000, .fpp = 0.01};
    for (uint32_t bit = 8; bit; bit <<= 1) {
        seen_spec spec = good;
        spec.flags = bit;
        refused(spec, SEEN_INVALID, "flags");
    }
    for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++) {
        seen_spec spec = good;
        spec.kind = seen_kind_at(i);
        spec.flags = SEEN_GUESS;
        if (spec.kind == SEEN_SCALABLE)
            assert_int_equal(planned(spec).sized, 0);
        else
            refused(spec, SEEN_UNSUPPORTED, "flags");
    }
    seen_spec foreign = good; /* which has a dialect */
    foreign.kind = SEEN_FOREIGN;
    refused(foreign, SEEN_INVALID, "dialect");
    static const int kinds[] = {4, 12, 99, -1};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        seen_spec spec = good;
        spec.kind = (seen_kind)kinds[i];
        refused(spec, SEEN_UNSUPPORTED, "kind");
    }
    seen_spec noted = good;
    noted.key_form = (seen_key_form)(SEEN_KEYS_UTF16 + 1);
    refused(noted, SEEN_INVALID, "key_form");
    noted.key_form = SEEN_KEYS_HEX;
    assert_null(test_wrong_spec(&noted));
    refused((seen_spec){.kind = SEEN_BITMAP,
                        .bits = 100,
                        .key_form = SEEN_KEYS_U64},
            SEEN_INVALID, "key_form");
    refused((seen_spec){.dialect = "gozero",
                        .bits = 100,
                        .key_form = SEEN_KEYS_TEXT},
            SEEN_INVALID, "key_form");
    for (size_t i = 0; i < sizeof good.reserved / 8; i++) {
        seen_spec spec = good;
        spec.reserved[i] = (uint64_t)1 << 8 * i;
        refused(spec, SEEN_INVALID, "reserved");
    }
}

static void a_keyed_filter_needs_its_key(void **state)
{
    (void)state;
    seen_kind kind;
    for (size_t i = 0; (kind = seen_kind_at(i)) != SEEN_ANY; i++) {
        seen_spec spec = {.items = 1000,
                          .fpp = 0.01,
                          .kind = kind,
                          .last = test_last(kind, 1000),
                          .flags = SEEN_KEYED};
        refused(spec, SEEN_INVALID, "secret");
        if (kind == SEEN_BITMAP) continue; /* hashes nothing */
        spec.secret = test_secret;
        planned(spec);
    }
}

static void a_set_cannot_be_concurrent(void **state)
{
    (void)state;
    refused((seen_spec){.kind = SEEN_SET, .flags = SEEN_CONCURRENT},
            SEEN_UNSUPPORTED, "flags");
}

static void half_an_allocator_is_refused(void **state)
{
    (void)state;
    seen_allocator none = {0};
    refused((seen_spec){.items = 10, .fpp = 0.1, .allocator = &none},
            SEEN_INVALID, "allocator");
}

static void no_spec_is_no_crash(void **state)
{
    (void)state;
    seen_plan plan = {.size = sizeof plan};
    seen_filter *f;
    const seen_spec good = {.items = 1000, .fpp = 0.01};
    assert_int_equal(seen_plan_for(NULL, &plan, NULL), SEEN_INVALID);
    assert_int_equal(seen_plan_for(&good, NULL, NULL), SEEN_INVALID);
    assert_int_equal(seen_new(NULL, &good, NULL), SEEN_INVALID);
    assert_int_equal(seen_new(&f, NULL, NULL), SEEN_INVALID);
    assert_non_null(test_wrong_spec(NULL));
    assert_null(test_wrong_spec(&good));
}

static void random_specs_give_a_plan_or_a_reason(void **state)
{
    (void)state;
    struct test_rng r = test_rng(23);
    for (uint64_t i = 0; i < 5000 * test_scale(); i++) {
        seen_spec spec = {.kind = (seen_kind)test_below(&r, 12)};
        if (test_below(&r, 2)) spec.items = test_next(&r) >> test_below(&r, 64);
        if (test_below(&r, 2)) spec.fpp = pow(10, -20 * test_unit(&r)) * 1.01;
        if (test_below(&r, 2)) spec.bits = test_next(&r) >> test_below(&r, 64);
        if (test_below(&r, 3) == 0) spec.hashes = 1 << test_below(&r, 9);
        if (test_below(&r, 8) == 0) spec.flags = (uint32_t)test_below(&r, 8);
        if (test_below(&r, 2)) spec.secret = test_secret;
        if (spec.kind == SEEN_WINDOW ? test_below(&r, 4) != 0
                                     : test_below(&r, 8) == 0) {
            if (test_below(&r, 2))
                spec.last = test_next(&r) >> test_below(&r, 64);
            if (test_below(&r, 2))
                spec.window_ms = test_next(&r) >> test_below(&r, 64);
            if (test_below(&r, 2))
                spec.generations = (uint32_t)test_below(&r, 70);
        }
        if (test_below(&r, 8) == 0)
            spec.limit = test_next(&r) >> test_below(&r, 64);
        seen_plan p = {.size = sizeof p};
        if (seen_plan_for(&spec, &p, NULL) != SEEN_OK) {
            assert_non_null(test_wrong_spec(&spec));
            continue;
        }
        assert_null(test_wrong_spec(&spec));
        assert_true(p.fpp >= 0 && p.fpp <= 1);
        assert_true(p.hashes >= 1 && p.bits >= 1 && p.bytes >= p.bits / 8);
        assert_true(spec.limit == 0 || p.bytes <= spec.limit);
        assert_true(spec.fpp == 0 || p.fpp <= spec.fpp * 1.0011);
        assert_true(spec.bits == 0 || p.bits <= spec.bits);
        assert_true(spec.items == 0 || spec.last || p.items == spec.items);
        assert_true(spec.hashes == 0 || p.hashes == spec.hashes);
    }
}

static void plans_keep_the_promise_in_every_corner(void **state)
{
    (void)state;
    /* Rates so high that p^(1/k) rounds to 1 still make a filter of a bit. */
    static const double rates[] = {0.9999999999999999,
                                   0.999,
                                   0.5,
                                   1e-3,
                                   5.5e-8,
                                   1e-15,
                                   1e-20,
                                   1e-25,
                                   1e-30};
    static const uint64_t items[] = {1, 2, 10, 1000, 1000000, 1000000000};
    static const uint32_t hashes[] = {0, 1, 4, 8, 64};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t n = 0; n < sizeof items / sizeof *items; n++)
            for (size_t k = 0; k < 2 * sizeof hashes / sizeof *hashes; k++) {
                seen_spec spec = {.kind = k % 2 ? SEEN_BLOOM : SEEN_BLOCKED,
                                  .items = items[n],
                                  .fpp = rates[r],
                                  .hashes = hashes[k / 2]};
                seen_plan plan = {.size = sizeof plan};
                if (seen_plan_for(&spec, &plan, NULL) != SEEN_OK) continue;
                assert_true(plan.bits > 0);
                assert_true(plan.fpp <= rates[r] * (1 + 1e-6));
                assert_true(seen_plan_fpp(&plan, plan.items) == plan.fpp);
                /* And back: these bits hold about that many keys. */
                seen_spec back = {.kind = spec.kind,
                                  .bits = plan.bits,
                                  .fpp = rates[r],
                                  .hashes = plan.hashes};
                seen_plan again = {.size = sizeof again};
                if (rates[r] > 0.5 ||
                    seen_plan_for(&back, &again, NULL) != SEEN_OK)
                    continue;
                assert_true(again.fpp <= rates[r] * (1 + 1e-6));
                assert_true((double)again.items >= 0.9 * (double)items[n] - 1);
            }
}

/* Rates from 0.5 down to 1e-12, fifty in a decade, and more around those where a
 * blocked filter gets its second region. */
static void a_larger_rate_never_takes_a_larger_filter(void **state)
{
    (void)state;
    static const uint64_t items[] = {1, 77, 500, 12345, 1000000, 1000000000};
    uint64_t tried = 0;
    for (size_t k = 0; seen_kind_at(k) != SEEN_ANY; k++) {
        for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
            uint64_t before = 0;
            seen_spec spec = {.kind = seen_kind_at(k), .items = items[i]};
            for (double e = 0.301; e < 12; e += (e > 3 && e < 4) ? .003 : .02) {
                seen_plan plan = {.size = sizeof plan};
                spec.fpp = pow(10, -e);
                if (seen_plan_for(&spec, &plan, NULL) != SEEN_OK) continue;
                tried++;
                assert_true(plan.fpp <= spec.fpp);
                if (plan.bytes < before)
                    fail_msg("%s, %llu keys at %g: %llu bytes, and a larger "
                             "rate takes %llu",
                             seen_kind_name(spec.kind),
                             (unsigned long long)items[i], spec.fpp,
                             (unsigned long long)plan.bytes,
                             (unsigned long long)before);
                before = plan.bytes;
            }
        }
    }
    test_tried(tried, "plans");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_keep_the_promise_in_every_corner),
        cmocka_unit_test(items_and_fpp_give_bits_and_hashes),
        cmocka_unit_test(items_and_bits_give_the_rate),
        cmocka_unit_test(bits_and_fpp_give_the_capacity),
        cmocka_unit_test(a_given_k_is_kept),
        cmocka_unit_test(all_four_are_fine_when_they_agree),
        cmocka_unit_test(the_promise_is_kept_by_the_plan_at_every_size),
        cmocka_unit_test(a_plan_is_what_a_filter_becomes),
        cmocka_unit_test(limit_allows_exactly_the_bytes_of_the_plan),
        cmocka_unit_test(a_set_needs_no_numbers),
        cmocka_unit_test(a_bitmap_needs_its_bound_and_nothing_else),
        cmocka_unit_test(a_scalable_filter_needs_a_rate_and_nothing_else),
        cmocka_unit_test(kinds_are_enumerated_and_named),
        cmocka_unit_test(a_plan_of_no_known_kind_has_rate_one),
        cmocka_unit_test(missing_numbers_are_asked_for),
        cmocka_unit_test(impossible_rates_are_refused),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(a_hopeless_rate_is_told_and_not_refused),
        cmocka_unit_test(wrong_numbers_of_hashes_are_refused),
        cmocka_unit_test(unknown_flags_kinds_and_reserved_fields_are_refused),
        cmocka_unit_test(a_keyed_filter_needs_its_key),
        cmocka_unit_test(a_set_cannot_be_concurrent),
        cmocka_unit_test(half_an_allocator_is_refused),
        cmocka_unit_test(no_spec_is_no_crash),
        cmocka_unit_test(random_specs_give_a_plan_or_a_reason),
        cmocka_unit_test(a_larger_rate_never_takes_a_larger_filter),
    };
    test_announce("plan");
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
