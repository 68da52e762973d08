/* cmd_sweep.c - seen sweep: users whose marks have all aged out, out of a
 * store. */
#include "options.h"
#include "output.h"
#include "patience.h"
#include "progress.h"
#include "units.h"
#include "users.h"

static struct {
    bool quiet, json, force;
} opt;

static const struct option options[] = {
    {0, "force", NULL, OPTION_FLAG, &opt.force,
     "trust the clock, or --at in the future"},
    {0, "json", NULL, OPTION_FLAG, &opt.json, "what was done, as JSON"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static void report(const char *name, uint64_t removed, uint64_t left)
{
    struct json j = {.to = stdout};
    char a[UNIT_TEXT], b[UNIT_TEXT];
    if (opt.json) {
        json_open(&j, NULL, '{');
        json_text(&j, "store", name);
        json_number(&j, "removed", (double)removed);
        json_number(&j, "users", (double)left);
        json_number(&j, "seconds", seconds_running());
        json_close(&j, '}');
    } else if (!opt.quiet) {
        note("%s: %s removed, %s left", name,
             show_many(a, (double)removed, "user"),
             show_count(b, (double)left));
    }
}

/* The store looks at all users in one go: how many is all there is to say. */
static const char *doing(struct users *users)
{
    static char text[96];
    seen_users_stats stats = {.size = sizeof stats};
    char n[UNIT_TEXT];
    if (seen_users_stats_of(users->store, &stats, NULL) != SEEN_OK)
        return users->name;
    snprintf(text, sizeof text, "%.60s, %s", users->name,
             show_about(n, (double)stats.users, "user"));
    return text;
}

/* Removing users is for good: not by a time that has not come, nor by a clock
 * that has just leapt. 0: the store knows how far it is believed. */
static uint64_t sweep_time(void)
{
    char ahead[UNIT_TEXT];
    if (users_ahead() && !opt.force)
        fail("--at is %s ahead of this machine's clock: users would be removed "
             "before their items have aged out; add --force to do it",
             show_age(ahead, users_ahead()));
    return users_at_given() || opt.force ? users_now() : 0;
}

static void note_clock(const struct users *users, uint64_t now_ms)
{
    char ahead[UNIT_TEXT];
    seen_users_stats stats = {.size = sizeof stats};
    const bool tells = !opt.quiet && !opt.json;
    if (tells) note_opening(users);
    if (now_ms || seen_users_stats_of(users->store, &stats, NULL) != SEEN_OK)
        return;
    if (stats.clock_ahead && !(tells && stats.clock_leaps)) /* or just said */
        note("%s: this machine's clock has moved %s ahead: users are removed "
             "as of the time before that; if the clock is right, add --force",
             users->name, show_age(ahead, stats.clock_ahead));
}

static int run(char **operands, size_t n)
{
    const char *store = store_operand(operands, n);
    if (n > 1) fail("%s: expected one STORE", operands[1]);
    const uint64_t now_ms = sweep_time();
    struct users users;
    start_work(opt.quiet);
    work_on(store);
    write_users(&users, store, false);
    heed_signals(NULL); /* long, and nothing is lost if it does not happen */
    note_clock(&users, now_ms);
    uint64_t removed;
    seen_users_stats stats = {.size = sizeof stats};
    work_on(doing(&users));
    seen_status s =
        seen_users_sweep(users.store, now_ms, &removed, &users.error);
    if (s == SEEN_OK) s = seen_users_sync(users.store, &users.error);
    if (s == SEEN_OK)
        s = seen_users_stats_of(users.store, &stats, &users.error);
    if (s != SEEN_OK) users_failed(&users);
    end_progress();
    close_users(&users);
    report(store, removed, stats.users);
    finish_output();
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen sweep feed",
    "remove users who have not been shown anything for a whole ttl",
    "seen sweep -q feed",
    "from cron: says nothing unless something is wrong",
    "seen sweep feed --json",
    "how many were removed and how many are left, for scripts",
    NULL,
};

static const struct option *const groups[] = {options, wait_options,
                                              time_options, NULL};

const struct verb verb_sweep = {
    .name = "sweep",
    .summary = "remove users whose items have all aged out",
    .operands = "STORE",
    .text =
        "Items age out after the policy's ttl, by this machine's clock. "
        "Checkpoints\n"
        "remove such users a day later; sweep looks at all users now. If the "
        "clock\n"
        "has just moved ahead by more than a day, or the store was not used "
        "for\n"
        "that long, sweep trusts the clock only with --force, or after a day.",
    .examples = examples,
    .options = groups,
    .run = run,
};
