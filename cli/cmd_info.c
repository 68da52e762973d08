/*
 * cmd_info.c - seen info: what a filter is, what is in it, how it is doing; the
 * same of stores of users (survey.h).
 */
#include "input.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "remote.h"
#include "spec.h"
#include "survey.h"
#include "target.h"
#include "units.h"
#include "users.h"

#include <math.h>
#include <seen_allowlist.h>
#include <stdlib.h>

static struct {
    bool quiet, json;
    const char *user;
} opt;

static const struct option options[] = {
    {0, "user", "USER", OPTION_TEXT, &opt.user,
     "of a store: what this user has been shown"},
    NO_VERIFY_ROW,
    {0, "json", NULL, OPTION_FLAG, &opt.json, "the same as JSON"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet, "no progress on stderr"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- What is known ------------------------------------------------------ */

/* Without its secret a filter is known by its header only. */
static bool opened(const struct target *t)
{
    return t->filter != NULL;
}

static seen_info inspect(struct target *t)
{
    seen_info info = {.size = sizeof info};
    if (!t->info.secret_apart || wish.secret_file) read_target(t);
    if (!opened(t)) return t->info;
    seen_measure(t->filter, &info);
    return info;
}

static double fill(const seen_info *info)
{
    return (double)info->bits_set / (double)info->bits;
}

static const char *secret_place(const seen_info *saved)
{
    return !(saved->flags & SEEN_KEYED) ? "none"
           : saved->secret_apart        ? "apart"
                                        : "in the file";
}

/* ---- Text --------------------------------------------------------------- */

static void print_size(const struct target *t, const seen_info *info)
{
    char file[UNIT_TEXT], memory[UNIT_TEXT];
    printf("  size      %s in the file, %s in memory\n",
           show_size(file, (double)t->info.saved_bytes),
           show_size(memory, (double)info->bytes));
}

static void print_keys(const seen_info *info)
{
    char items[UNIT_TEXT], room[UNIT_TEXT], rate[UNIT_TEXT];
    printf("  keys      %s", show_keys(items, info, NULL));
    if (info->kind == SEEN_BITMAP)
        printf(" of the integers below %s\n",
               show_count(room, (double)info->bits));
    else if (planned_items(info))
        printf("; planned for %s at a rate of %s\n",
               show_count(room, (double)planned_items(info)),
               show_rate(rate, info->fpp));
    else
        printf(", and as many as come, at a rate of %s\n",
               show_rate(rate, info->fpp));
}

static void print_form(seen_key_form form)
{
    const char *phrase = form_phrase(form);
    printf("  key form  %s\n", phrase ? phrase : "not recorded");
}

static void json_form(struct json *j, seen_key_form form)
{
    const char *name = form_name(form);
    if (name)
        json_text(j, "key_form", name);
    else
        json_number(j, "key_form", NAN); /* null */
}

static void print_window(const seen_plan *plan)
{
    char last[UNIT_TEXT];
    if (plan->kind != SEEN_WINDOW) return;
    printf("  window    ");
    if (plan->last)
        printf("the last %s%s", show_many(last, (double)plan->last, "key"),
               plan->window_ms ? ", " : "");
    if (plan->window_ms) printf("%.15g s", (double)plan->window_ms / 1000);
    printf(", in %u generations\n", plan->generations);
}

static void print_rate(const struct target *t, const seen_info *info)
{
    char rate[UNIT_TEXT], bits[UNIT_TEXT];
    if (!opened(t)) {
        printf("  rate now  unknown without its secret: add --secret-file\n");
        return;
    }
    printf("  rate now  %s\n",
           info->fpp_now > 0 ? show_rate(rate, info->fpp_now) : "0");
    printf("  fill      %.1f%% of %s bits\n", 100 * fill(info),
           show_count(bits, (double)info->bits));
}

static void print_hash(const struct target *t, const seen_info *info)
{
    uint32_t width = t->plan.width;
    printf("  hashes    %u in %u cache line%s", info->hashes, info->lines,
           info->lines == 1 ? "" : "s");
    if (width) printf(", fingerprints of %u bits", width);
    printf("; %s", t->info.hash);
    if (t->info.flags & SEEN_KEYED)
        printf(", secret %s", secret_place(&t->info));
    putchar('\n');
}

static void print_journal(const struct target *t)
{
    char keys[UNIT_TEXT];
    if (!t->info.journaled)
        printf("  journal   none: closed properly\n");
    else if (!opened(t))
        printf("  journal   a writer is at work, or died\n");
    else
        printf(
            "  journal   %s: a writer is at work, or died; the next one takes "
            "over\n",
            show_many(keys, (double)t->outcome.recovered_keys, "change"));
}

static void print_list(const struct target *t)
{
    seen_listed rule;
    const seen_allowlist *list =
        opened(t) ? seen_allowed(t->filter, &rule) : NULL;
    char keys[UNIT_TEXT];
    if (list)
        printf("  list      %s, %s in\n",
               show_many(keys, (double)seen_allowlist_count(list), "key"),
               rule == SEEN_LISTED_NEVER ? "never" : "always");
}

/* A filter of another system: whose, and what to know about it. */
static void print_foreign(const struct target *t, const seen_info *info)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    char bits[UNIT_TEXT], keys[UNIT_TEXT], rate[UNIT_TEXT];
    seen_dialect_named(info->dialect, &facts);
    printf("%s\n  dialect   %s: %s\n", t->name, facts.name, facts.system);
    printf("  keys      %s%s", show_count(keys, (double)info->items),
           info->counted ? "" : ", estimated from its bits");
    if (info->capacity)
        printf("; made for %s", show_count(keys, (double)info->capacity));
    if (info->capacity && info->fpp > 0)
        printf(" at %s", show_rate(rate, info->fpp));
    putchar('\n');
    printf("  rate now  %s\n",
           info->fpp_now > 0 ? show_rate(rate, info->fpp_now) : "0");
    printf("  fill      %.1f%% of %s bits%s\n", 100 * fill(info),
           show_count(bits, (double)info->bits),
           info->layers > 1 ? " in several arrays" : "");
    if (info->layers > 1) printf("  arrays    %u\n", info->layers);
    printf("  hashes    %u; %s\n", info->hashes, facts.hash);
    print_size(t, info);
    printf("  weak      %s\n", facts.weakness);
}

static void print_text(const struct target *t, const seen_info *info)
{
    if (info->dialect) {
        print_foreign(t, info);
        return;
    }
    printf("%s\n  kind      %s\n", t->name, seen_kind_name(info->kind));
    print_keys(info);
    if (info->kind != SEEN_BITMAP) print_form(t->info.key_form);
    print_window(&t->plan);
    print_rate(t, info);
    print_hash(t, info);
    print_list(t);
    print_size(t, info);
    print_journal(t);
}

/* ---- JSON --------------------------------------------------------------- */

static void json_list(struct json *j, const struct target *t)
{
    seen_listed rule;
    const seen_allowlist *list =
        opened(t) ? seen_allowed(t->filter, &rule) : NULL;
    if (!list) return;
    json_number(j, "listed", (double)seen_allowlist_count(list));
    json_text(j, "listed_keys",
              rule == SEEN_LISTED_NEVER ? "never in" : "always in");
}

static void json_foreign(struct json *j, const struct target *t,
                         const seen_info *info)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    seen_dialect_named(info->dialect, &facts);
    json_open(j, NULL, '{');
    json_text(j, "file", t->name);
    json_text(j, "kind", seen_kind_name(info->kind));
    json_text(j, "dialect", facts.name);
    json_text(j, "system", facts.system);
    json_number(j, "items", (double)info->items);
    json_bool(j, "items_counted", info->counted);
    json_number(j, "capacity", (double)info->capacity);
    json_number(j, "fpp", info->fpp);
    json_number(j, "fpp_now", info->fpp_now);
    json_number(j, "bits", (double)info->bits);
    json_number(j, "bits_set", (double)info->bits_set);
    json_number(j, "arrays", info->layers);
    json_number(j, "hashes", info->hashes);
    json_text(j, "hash", facts.hash);
    json_number(j, "file_bytes", (double)t->info.saved_bytes);
    json_number(j, "bytes", (double)info->bytes);
    json_text(j, "weakness", facts.weakness);
    json_close(j, '}');
}

static void print_json(struct json *j, const struct target *t,
                       const seen_info *info)
{
    if (info->dialect) {
        json_foreign(j, t, info);
        return;
    }
    const seen_info *saved = &t->info;
    json_open(j, NULL, '{');
    json_text(j, "file", t->name);
    json_text(j, "kind", seen_kind_name(info->kind));
    json_number(j, "items", (double)info->items);
    json_number(j, "capacity", (double)planned_items(info));
    json_form(j, saved->key_form);
    if (info->kind == SEEN_WINDOW) {
        json_number(j, "last", (double)t->plan.last);
        json_number(j, "window_ms", (double)t->plan.window_ms);
    }
    json_number(j, "fpp", info->fpp);
    json_number(j, "fpp_now", info->fpp_now);
    json_number(j, "bits", (double)info->bits);
    json_number(j, "bits_set", opened(t) ? (double)info->bits_set : NAN);
    json_number(j, "hashes", info->hashes);
    json_number(j, "width", t->plan.width);
    json_number(j, "lines", info->lines);
    json_text(j, "hash", saved->hash);
    json_bool(j, "keyed", saved->flags & SEEN_KEYED);
    json_text(j, "secret", secret_place(saved));
    json_list(j, t);
    json_number(j, "file_bytes", (double)saved->saved_bytes);
    json_number(j, "bytes", (double)info->bytes);
    json_bool(j, "journal", saved->journaled);
    json_number(j, "journal_keys", (double)t->outcome.recovered_keys);
    json_number(j, "torn_bytes", (double)t->outcome.torn_bytes);
    json_close(j, '}');
}

/* ---- Run ---------------------------------------------------------------- */

static void print_filters(struct target *targets, size_t n, struct json *j)
{
    for (size_t i = 0; i < n; i++) {
        if (targets[i].on_server) {
            print_remote(&targets[i], opt.json ? j : NULL);
            close_target(&targets[i]);
            continue;
        }
        work_on(targets[i].name);
        seen_info info = inspect(&targets[i]);
        work_on(NULL);
        if (opt.json)
            print_json(j, &targets[i], &info);
        else
            print_text(&targets[i], &info);
        work_done(targets[i].info.saved_bytes);
        close_target(&targets[i]);
    }
}

static void print_store(struct users *u, struct json *j)
{
    struct survey survey;
    work_on(u->name);
    take_survey(u, &survey);
    work_on(NULL);
    if (opt.json)
        json_survey(j, u, &survey);
    else
        print_survey(u, &survey);
}

static void print_one_user(struct users *u, struct json *j)
{
    seen_key user = user_operand(opt.user);
    seen_exposure_info info = {.size = sizeof info};
    find_user(u, user, &info);
    if (opt.json)
        json_user(j, u, opt.user, &info);
    else
        print_user(u, user, &info);
}

/* Stores come behind the filters. */
static int print_stores(struct users *stores, size_t n, struct json *j)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < n; i++) {
        if (opt.user)
            print_one_user(&stores[i], j);
        else
            print_store(&stores[i], j);
        close_users(&stores[i]);
        code |= users_exit(&stores[i]);
    }
    return code;
}

static void open_list(struct json *j, const char *name)
{
    if (opt.json) json_open(j, name, '[');
}

static void close_list(struct json *j)
{
    if (opt.json) json_close(j, ']');
}

/* What is said about stores must be about all of them, and what is said about
 * filters about one at least. */
static void check_options(char **operands, size_t n)
{
    size_t stores = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_store(operands[i])) {
            no_store_options(operands[i]);
            continue;
        }
        stores++;
        check_tail(operands[i], NULL);
        if (!opt.user && policy_given())
            fail("--policy requires --user: without it, users are shown as "
                 "they were marked");
    }
    if (stores == n && (wish_given() || wish.secret_file || key_format.type))
        fail("%s: is a store: leave out the options of filters", operands[0]);
}

static int run(char **operands, size_t n)
{
    if (n == 0)
        fail("TARGET is missing: expected filter files, -, stores or URLs");
    if (opt.user && (n > 1 || !is_store(operands[0])))
        fail("--user: expected one STORE: a directory, redis://... or mem:");
    check_key_format();
    check_options(operands, n);
    struct target *targets = must_have(calloc(n, sizeof *targets));
    struct users *stores = must_have(calloc(n, sizeof *stores));
    size_t filters = 0, all_stores = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        if (is_store(operands[i]))
            read_users(&stores[all_stores++], operands[i]);
        else if (!find_target(&targets[filters++], operands[i]))
            target_missing(&targets[filters - 1]);

    struct json j = {.to = stdout};
    start_work(opt.quiet);
    for (size_t i = 0; i < filters; i++)
        bytes += targets[i].info.saved_bytes;
    work_total(bytes, NULL);
    if (opt.json) json_open(&j, NULL, '{');
    if (filters) {
        open_list(&j, "filters");
        print_filters(targets, filters, &j);
        close_list(&j);
    }
    int code = EXIT_DONE;
    if (all_stores) {
        open_list(&j, "stores");
        code = print_stores(stores, all_stores, &j);
        close_list(&j);
    }
    if (opt.json) json_close(&j, '}');
    end_progress();
    free(targets);
    free(stores);
    finish_output();
    return code;
}

static const char *const examples[] = {
    "seen info urls.seen",
    "kind, parameters, keys, current rate, size, journal",
    "seen info --json *.seen | jq '.filters[] | select(.fpp_now > .fpp).file'",
    "which filters hold more than they were made for?",
    "seen build -n 1e6 -o - keys.txt | seen info -",
    "a filter that comes through a pipe",
    "seen info feed",
    "a store: its policy, and how many items and bytes users have",
    "seen info feed --user alice",
    "her generations: items, bytes, ages",
    NULL,
};

static const struct option *const groups[] = {
    options,      tail_options,   server_policy_options,
    time_options, secret_options, dialect_options,
    NULL};

const struct verb verb_info = {
    .name = "info",
    .summary = "describe a filter or a store: keys, rate, size",
    .operands = "TARGET...",
    .text = "Reads every bit of a filter to tell its current rate, after a "
            "comparison with\n"
            "its checksums. A filter whose secret is kept apart is described "
            "as far as\n"
            "its header goes. A filter of another system is recognised by its "
            "bytes, or\n"
            "named with --dialect. About a filter on a server, it asks the "
            "server. A\n"
            "directory, redis://... or redis+list://... is a store: it reads "
            "all users.",
    .examples = examples,
    .options = groups,
    .run = run,
};
