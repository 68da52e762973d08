/* cmd_sweep.c - seen sweep: users whose marks have all aged out, out of a
 * store. */
#include "options.h"
#include "output.h"
#include "progress.h"
#include "units.h"
#include "users.h"

static struct {
    bool quiet, json;
} opt;

static const struct option options[] = {
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
        note("%s: %s users removed, %s left", name,
             show_count(a, (double)removed), show_count(b, (double)left));
    }
}

/* The store looks at all users in one go: how many is all there is to say. */
static const char *doing(struct users *users)
{
    static char text[96];
    seen_users_stats stats;
    char n[UNIT_TEXT];
    if (seen_users_stats_of(users->store, &stats) != SEEN_OK)
        return users->name;
    snprintf(text, sizeof text, "%.60s, %s users", users->name,
             show_short(n, (double)stats.users));
    return text;
}

static int run(char **operands, size_t n)
{
    const char *store = store_operand(operands, n);
    if (n > 1) fail("%s: expected one STORE", operands[1]);
    struct users users;
    start_work(opt.quiet);
    work_on(store);
    write_users(&users, store, false);
    if (!opt.quiet && !opt.json) note_opening(&users);
    uint64_t removed;
    seen_users_stats stats;
    work_on(doing(&users));
    seen_status s = seen_users_sweep(users.store, users_now(), &removed);
    if (s == SEEN_OK) s = seen_users_sync(users.store);
    if (s == SEEN_OK) s = seen_users_stats_of(users.store, &stats);
    if (s != SEEN_OK) users_failed(&users, s);
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

static const struct option *const groups[] = {options, time_options, NULL};

const struct verb verb_sweep = {
    .name = "sweep",
    .summary = "remove users whose items have all aged out",
    .operands = "STORE",
    .text = "Aged out is what the policy's ttl says. Checkpoints remove such "
            "users among\n"
            "those that have changed; this looks at all of them.",
    .examples = examples,
    .options = groups,
    .run = run,
};
