/* test_look.c - seen_look(): what saved bytes say about themselves. */
#include "seen.h"

#include "helpers/harness.h"

#include <string.h>

static const uint8_t secret[16] = "sixteen secrets";

static size_t save(uint32_t flags, uint32_t how, uint8_t *to, size_t cap)
{
    seen_filter *f;
    size_t len;
    seen_spec spec = {
        .items = 100, .fpp = 0.01, .flags = flags, .secret = secret};
    assert_int_equal(seen_new(&f, &spec, NULL), SEEN_OK);
    assert_int_equal(seen_add_str(f, "key"), SEEN_OK);
    assert_int_equal(seen_save(f, how, to, cap, &len), SEEN_OK);
    seen_free(f);
    return len;
}

static void look_tells_kind_parameters_and_items(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    size_t len = save(0, 0, bytes, sizeof bytes);
    seen_facts facts = {.size = sizeof facts};
    seen_plan plan = {.size = sizeof plan};
    seen_plan_for(&(seen_spec){.items = 100, .fpp = 0.01}, &plan, NULL);
    assert_int_equal(seen_look(bytes, len, &facts, NULL), SEEN_OK);
    assert_int_equal(facts.plan.kind, SEEN_BLOCKED);
    assert_int_equal(facts.plan.items, 100);
    assert_int_equal(facts.plan.bits, plan.bits);
    assert_int_equal(facts.plan.bytes, plan.bytes);
    assert_int_equal(facts.items, 1);
    assert_int_equal(facts.bytes, len);
    assert_string_equal(facts.hash, "xxh3-64");
    assert_false(facts.keyed || facts.secret_apart || facts.journaled);
}

static void look_needs_no_secret(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    seen_facts facts = {.size = sizeof facts};
    seen_filter *f;
    size_t len = save(SEEN_KEYED, SEEN_SECRET_APART, bytes, sizeof bytes);
    assert_int_equal(seen_load(&f, bytes, len, NULL, NULL, NULL),
                     SEEN_NO_SECRET);
    assert_int_equal(seen_look(bytes, len, &facts, NULL), SEEN_OK);
    assert_true(facts.keyed && facts.secret_apart);
    assert_int_equal(facts.items, 1);
    len = save(SEEN_KEYED, 0, bytes, sizeof bytes);
    assert_int_equal(seen_look(bytes, len, &facts, NULL), SEEN_OK);
    assert_true(facts.keyed && !facts.secret_apart);
}

static void look_refuses_what_is_no_filter(void **state)
{
    (void)state;
    uint8_t bytes[4096];
    seen_facts facts = {.size = sizeof facts, .items = 7};
    size_t len = save(0, 0, bytes, sizeof bytes);
    assert_int_equal(seen_look(bytes, len - 1, &facts, NULL), SEEN_CORRUPT);
    assert_int_equal(seen_look(bytes, 0, &facts, NULL), SEEN_CORRUPT);
    bytes[30] ^= 1;
    assert_int_equal(seen_look(bytes, len, &facts, NULL), SEEN_CORRUPT);
    assert_int_equal(seen_look(NULL, len, &facts, NULL), SEEN_INVALID);
    assert_int_equal(facts.items, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_tells_kind_parameters_and_items),
        cmocka_unit_test(look_needs_no_secret),
        cmocka_unit_test(look_refuses_what_is_no_filter),
    };
    test_announce("look");
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
