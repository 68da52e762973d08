/* cmd_forget.c - seen forget: users, or single items of one, out of a store; or
 * all of a filter on a server. */
#include "input.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "patience.h"
#include "progress.h"
#include "remote.h"
#include "units.h"
#include "users.h"

#include <stdlib.h>

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
    {0, "json", NULL, OPTION_FLAG, &opt.json, "what was done, as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static struct users users;

/* `items` were named, `had` of them known. */
static void report(const char *name, size_t items, size_t had, bool known)
{
    struct json j = {.to = stdout};
    char text[USER_TEXT], n[UNIT_TEXT];
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_text(&j, "store", users.name);
        json_text(&j, "user", name);
        json_bool(&j, "known", known);
        json_number(&j, "items", (double)had);
        json_close(&j, '}');
    } else if (!opt.quiet) {
        show_user(text, user_operand(name));
        if (!known)
            note("%s: nothing is known about %s", users.name, text);
        else if (items && !had)
            note("%s: nothing forgotten: %s has been shown none of these",
                 users.name, text);
        else if (had < items)
            note("%s: %zu of %s of %s forgotten, the others were not known",
                 users.name, had, show_many(n, (double)items, "item"), text);
        else if (items)
            note("%s: %s of %s forgotten", users.name,
                 show_many(n, (double)items, "item"), text);
        else
            note("%s: %s forgotten", users.name, text);
    }
}

/* Was there anything to forget, and how many of the items? */
static seen_status forget(seen_key user, const struct chunk *items, bool *known,
                          size_t *had)
{
    seen_exposure_info info = {.size = sizeof info};
    uint64_t now_ms = users_now();
    *had = 0;
    if (items->n == 0)
        return seen_users_forget_user(users.store, user, now_ms, known,
                                      &users.error);
    seen_status s =
        seen_users_info_of(users.store, user, now_ms, &info, &users.error);
    *known = s == SEEN_OK;
    if (s == SEEN_ABSENT) return SEEN_OK;
    if (s != SEEN_OK) return s;
    bool *shown = must_have(calloc(items->n, sizeof *shown));
    s = seen_users_maybe_many(users.store, user, now_ms,
                              seen_keys_of(items->keys, items->n), shown,
                              &users.error);
    for (size_t i = 0; i < items->n; i++)
        *had += shown[i];
    free(shown);
    if (s != SEEN_OK) return s;
    return seen_users_forget(users.store, user, now_ms,
                             seen_keys_of(items->keys, items->n), &users.error);
}

/* ---- A filter ----------------------------------------------------------- */

static int forget_filter(char **operands, size_t n)
{
    struct target target;
    struct json j = {.to = stdout};
    if (n > 1)
        fail("%s: a filter is forgotten as a whole: expected nothing behind it",
             operands[1]);
    no_store_options(operands[0]);
    bool known = find_target(&target, operands[0]);
    if (known) known = delete_remote(&target);
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_text(&j, "file", target.name);
        json_bool(&j, "known", known);
        json_close(&j, '}');
    } else if (!opt.quiet) {
        note("%s: %s", target.name, known ? "forgotten" : "was not there");
    }
    close_target(&target);
    finish_output();
    return EXIT_DONE;
}

/* ---- Run ---------------------------------------------------------------- */

static int run(char **operands, size_t n)
{
    const char *store = store_operand(operands, n);
    if (is_remote(store) && !is_store(store)) return forget_filter(operands, n);
    if (n < 2)
        fail("USER is missing: expected the user to forget, or a user and "
             "items");
    seen_key user = user_operand(operands[1]);
    check_policy(store);
    struct chunk items = {0};
    check_key_format();
    chunk_of(&items, operands + 2, n - 2);
    start_work(opt.quiet);
    write_users(&users, store, false);
    if (!opt.quiet && !opt.json) note_opening(&users);
    bool known;
    size_t had;
    seen_status s = forget(user, &items, &known, &had);
    if (s != SEEN_OK && !blame_user(&users, user, s, users.error.text))
        users_failed(&users);
    end_progress();
    close_users(&users);
    if (!users.damaged) report(operands[1], items.n, had, known);
    free_chunk(&items);
    finish_output();
    return users_exit(&users);
}

static const char *const examples[] = {
    "seen forget feed alice",
    "everything that is known about alice",
    "seen forget feed alice post-17",
    "she may be shown this one again",
    "xargs -n 1 seen forget -q feed < leavers.txt",
    "everything about users who have left, one a line",
    NULL,
};

static const struct option *const groups[] = {
    options,      wait_options, server_policy_options,
    time_options, key_options,  NULL};

const struct verb verb_forget = {
    .name = "forget",
    .summary = "forget a user, or items of one, or a filter on a server",
    .operands = "STORE USER [ITEM...] | URL",
    .text = "Without ITEM, everything about the user is removed, also a "
            "damaged record.\n"
            "With ITEM, an item that looks the same to the record is "
            "forgotten, too;\n"
            "that is as rare as the policy's rate.",
    .examples = examples,
    .options = groups,
    .run = run,
};
