/*
 * cmd_mark.c - seen mark: what users have been shown, into a store.
 *
 * Events come as they happened, one a line. Neighbours of one user make one
 * request, up to a thousand requests share one sync, and then they count.
 */
#include "flow.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "patience.h"
#include "progress.h"
#include "units.h"
#include "users.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint64_t batch;
    bool ack, count_new, quiet, json;
} opt;

static const struct option options[] = {
    {0, "batch", "N", OPTION_COUNT, &opt.batch,
     "sync after at most N changes of users (default 1000)"},
    {0, "ack", NULL, OPTION_FLAG, &opt.ack,
     "print after each batch how many events are safe: on disk,\n"
     "or acknowledged by the server"},
    {0, "new", NULL, OPTION_FLAG, &opt.count_new,
     "count the events that were new, too: slower"},
    {0, "json", NULL, OPTION_FLAG, &opt.json,
     "what was done, as JSON (with --ack: on stderr)"},
    QUIET_ROW(&opt.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* Requests that share one sync. */
#define DEFAULT_BATCH 1000

static struct users users;
static struct tally tally;
static struct requests requests;
static const seen_key *user; /* of all items; NULL: lines name theirs */
static uint64_t refused;     /* marks, by damaged records */

/* To say what is new takes a look at all generations of a record, event by
 * event: six times as slow. */
static void ask_for_news(bool *answers, size_t n)
{
    memset(answers, false, n);
    if (!opt.count_new) return;
    for (size_t i = 0; i < requests.n; i++) {
        requests.at[i].fresh = answers;
        answers += requests.at[i].items.n;
    }
}

static size_t mark(struct job *job)
{
    struct chunk *c = &job->chunk;
    size_t done = 0;
    while (done < c->n) {
        size_t end = gather(&requests, c, done, (size_t)opt.batch, user);
        ask_for_news(job->answers + done, end - done);
        seen_status s = seen_users_mark_many(
            users.store, users_now(), requests.at, requests.n, &users.error);
        if (!requests_done(&users, s, &requests, c)) break;
        for (size_t i = 0; i < requests.n && s != SEEN_OK; i++)
            if (requests.at[i].status != SEEN_OK)
                refused += requests.at[i].items.n;
        done = end;
        if (opt.ack) acknowledge(tally.lines + done);
    }
    return done;
}

static void open_store(const char *name)
{
    write_users(&users, name, true);
    if (!opt.quiet && !opt.json) note_opening(&users);
    if (!opt.quiet && !opt.json) note_ahead();
}

static void close_store(void *of)
{
    count_evicted(of);
    close_users(of);
}

static void mark_events(const char *store)
{
    key_format.users = true;
    check_key_format();
    open_flow(NULL, 0, false, opt.quiet);
    open_store(store);
    run_flow(&(struct flow){.of = &users,
                            .tally = &tally,
                            .ask = mark,
                            .tell = !opt.quiet && !opt.json,
                            .close = close_store,
                            .found = opt.count_new ? "new" : NULL,
                            .so_far = "marked",
                            .silent = true});
}

static void mark_arguments(const char *store, char **items, size_t n)
{
    opt.count_new = true; /* there are not many */
    struct job job = {.answers = must_have(calloc(n, sizeof(bool)))};
    check_key_format();
    chunk_of(&job.chunk, items, n);
    start_work(opt.quiet);
    open_store(store);
    mark(&job);
    if (*job.chunk.failure) fail("%s", job.chunk.failure);
    tally.lines = n;
    for (size_t i = 0; i < n; i++)
        tally.found += job.answers[i];
    end_progress();
    close_store(&users);
    free_chunk(&job.chunk);
    free(job.answers);
}

/* ---- Run ---------------------------------------------------------------- */

static void report_json(FILE *to)
{
    struct json j = {.to = to};
    json_open(&j, NULL, '{');
    json_text(&j, "store", users.name);
    json_bool(&j, "created", users.outcome.created);
    json_number(&j, "marks", (double)(tally.lines - refused));
    json_number(&j, "new", opt.count_new ? (double)tally.found : NAN);
    json_evicted(&j, &users);
    json_number(&j, "damaged", (double)users.damaged);
    json_number(&j, "recovered_batches",
                (double)users.outcome.recovered_frames);
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

static void report_text(void)
{
    char marks[UNIT_TEXT], fresh[UNIT_TEXT];
    note("%s: %s%s%s%s%s", users.name, users.outcome.created ? "created; " : "",
         show_many(marks, (double)(tally.lines - refused), "mark"),
         opt.count_new ? ", " : "",
         opt.count_new ? show_count(fresh, (double)tally.found) : "",
         opt.count_new ? " of them new" : "");
    note_evicted(&users);
}

static int run(char **operands, size_t n)
{
    const char *store = store_operand(operands, n);
    if (n == 2 && access(operands[1], F_OK) == 0)
        fail("%s is taken for a user, though there is such a file, and ITEM is "
             "missing: events come from stdin (seen mark %s < %s)",
             operands[1], store, operands[1]);
    if (n == 2)
        fail("ITEM is missing: expected USER ITEM..., or neither of them and "
             "events on stdin");
    if (!opt.batch) opt.batch = DEFAULT_BATCH;
    if (opt.json) keep_warnings();
    if (n == 1) {
        mark_events(store);
    } else {
        seen_key named = user_operand(operands[1]);
        user = &named;
        if (n == 3 && !opt.quiet && !opt.json && access(operands[2], F_OK) == 0)
            note("%s is taken for an item, though there is such a file: events "
                 "come from stdin, a user, a tab and an item on each line",
                 operands[2]);
        mark_arguments(store, operands + 2, n - 2);
    }
    if (opt.json)
        report_json(opt.ack ? stderr : stdout);
    else if (!opt.quiet)
        report_text();
    finish_output();
    return users_exit(&users);
}

static const char *const examples[] = {
    "seen mark feed alice post-17 post-23",
    "alice has been shown two posts; the store is created if missing",
    "seen mark feed --policy items=500,ttl=2d < shown.tsv",
    "events, one a line: a user, a tab, an item",
    "consume | seen mark feed --ack",
    "learn how many events would survive a loss of power",
    NULL,
};

static const struct option *const groups[] = {
    options, wait_options, policy_options, time_options, key_options, NULL};

const struct verb verb_mark = {
    .name = "mark",
    .summary = "remember what users have been shown",
    .operands = "STORE [USER ITEM...]",
    .text = "Without USER, events come from stdin, one a line: a user, a tab, "
            "an item.\n"
            "STORE is a directory, created if missing, and marks are on disk "
            "when it\n"
            "ends; or redis://..., where marks are as safe as what the server\n"
            "acknowledges.\n"
            "Marking an item again renews it: it is remembered for a whole ttl "
            "from\n"
            "then on. --policy also changes the policy of an existing store; "
            "what it\n"
            "does not name stays. Key options apply to items.",
    .examples = examples,
    .options = groups,
    .run = run,
};
