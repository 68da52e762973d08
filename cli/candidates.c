/* candidates.c - see candidates.h. */
#include "candidates.h"

#include "memory.h"
#include "output.h"
#include "progress.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct candidate_wish candidate_wish;

const struct option candidate_options[] = {
    {'n', NULL, "COUNT", OPTION_COUNT, &candidate_wish.count,
     "at most COUNT items of a user"},
    {0, "also", "STORE", OPTION_TEXT, &candidate_wish.also,
     "items in this store count as shown, too"},
    {0, "json", NULL, OPTION_FLAG, &candidate_wish.json,
     "what was done, as JSON on stderr"},
    QUIET_ROW(&candidate_wish.quiet),
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

static struct users users, also;
static struct tally tally;
static struct requests requests;
static const seen_key *user; /* of all candidates; NULL: lines name theirs */
static const struct chooser *chooser;
static uint64_t asked; /* requests */

static seen_filter *met; /* users so far, where lines name theirs */
static uint64_t again;   /* requests of those who had one before */

/* ---- A chunk ------------------------------------------------------------ */

static void remember_users(void)
{
    if (seen_new(&met, &(seen_spec){.kind = SEEN_SET}, NULL) != SEEN_OK)
        fail("out of memory");
}

/* Has this user been seen before? Then his lines do not stand together, and he
 * has got as much twice. 10 bytes a user, and practically exact. */
static void count_again(const struct requests *r)
{
    for (size_t i = 0; i < r->n; i++) {
        bool before;
        seen_key who = r->at[i].user;
        if (seen_visit(met, who.data, who.len, &before) == SEEN_OK)
            again += before;
    }
}

/* With --also: the candidates that are left, and which lines of the chunk they are;
 * those of a request begin where its lines do. */
static struct {
    seen_key *keys;
    size_t *lines, cap;
} left;

static void make_room(size_t n)
{
    if (n <= left.cap) return;
    free(left.keys);
    free(left.lines);
    left.keys = must_have(malloc(n * sizeof *left.keys));
    left.lines = must_have(malloc(n * sizeof *left.lines));
    left.cap = n;
}

/* Items that the other store has are none. Where its record of a user is
 * damaged, nobody knows what has been shown: then nothing is left. */
static bool leave_out(struct chunk *c)
{
    uint64_t now_ms = users_now();
    seen_status first = SEEN_OK;
    seen_error error;
    make_room(c->n);
    for (size_t i = 0; i < requests.n; i++) {
        seen_users_request *r = &requests.at[i];
        size_t n = 0, line = (size_t)(r->taken - requests.taken);
        r->status = seen_users_fresh(also.store, r->user, now_ms, r->items,
                                     r->taken, &n, &error);
        for (size_t k = 0; k < n; k++) {
            left.lines[line + k] = line + r->taken[k];
            left.keys[line + k] = c->keys[line + r->taken[k]];
        }
        r->items = seen_keys_of(left.keys + line, n);
        if (first != SEEN_OK || r->status == SEEN_OK) continue;
        first = r->status;
        also.error = error;
    }
    return requests_done(&also, first, &requests, c);
}

static void find_lines(const seen_users_request *r, bool *answers)
{
    size_t line = (size_t)(r->taken - requests.taken);
    for (size_t k = 0; r->status == SEEN_OK && k < r->n_taken; k++) {
        size_t at = line + r->taken[k];
        answers[also.store ? left.lines[at] : at] = true;
    }
}

/* Where a line is no key, nobody knows all candidates of the user whose it is. A
 * line that names no user is nobody's. */
static void leave_out_bad(const struct chunk *c)
{
    if (!c->bad || requests.n == 0) return;
    seen_users_request *last = &requests.at[requests.n - 1];
    seen_key whose = user ? *user : c->users[c->n];
    if (whose.len == last->user.len &&
        memcmp(whose.data, last->user.data, whose.len) == 0)
        last->items.n = 0;
}

static size_t ask(struct job *job)
{
    struct chunk *c = &job->chunk;
    gather(&requests, c, 0, SIZE_MAX, user);
    if (met) count_again(&requests);
    leave_out_bad(c);
    if (also.store && !leave_out(c)) return 0;
    seen_status s =
        chooser->choose(&users, users_now(), requests.at, requests.n);
    if (!requests_done(&users, s, &requests, c)) return 0;

    if (c->n) memset(job->answers, 0, c->n * sizeof *job->answers);
    for (size_t i = 0; i < requests.n; i++)
        find_lines(&requests.at[i], job->answers);
    asked += requests.n;
    return c->n;
}

/* ---- Run ---------------------------------------------------------------- */

static void close_stores(void *of)
{
    if (also.store) close_users(&also);
    if (!chooser->reads) count_evicted(of);
    close_users(of);
    seen_free(met);
    met = NULL;
}

static void report_json(const char *found)
{
    struct json j = {.to = stderr};
    json_open(&j, NULL, '{');
    json_text(&j, "store", users.name);
    json_number(&j, "requests", (double)asked);
    json_number(&j, "requests_again", (double)again);
    json_number(&j, "candidates", (double)tally.lines);
    json_number(&j, found, (double)tally.found);
    if (!chooser->reads) json_evicted(&j, &users);
    json_number(&j, "damaged", (double)(users.damaged + also.damaged));
    json_number(&j, "seconds", seconds_running());
    json_warnings(&j);
    json_close(&j, '}');
}

static void note_again(void)
{
    char n[UNIT_TEXT];
    if (again)
        note("lines of a user came after those of others %s, and were a "
             "request of their own: sort the lines by user",
             show_many(n, (double)again, "time"));
}

/* Who names a candidate where its file is expected. */
static void check_input(const char *name)
{
    if (strcmp(name, "-") != 0 && access(name, F_OK) != 0 && errno == ENOENT)
        fail("%s: no such file; INPUT has a candidate on each line (stdin, if "
             "it is left out)",
             name);
}

int run_candidates(char **operands, size_t n, const struct chooser *by)
{
    const char *store = store_operand(operands, n);
    seen_key named;
    if (n > 3)
        fail("%s: expected one INPUT, a file of candidates (only seen mark "
             "takes items as arguments)",
             operands[3]);
    if (n > 1) {
        named = user_operand(operands[1]);
        user = &named;
    }
    if (candidate_wish.also) store_operand(&candidate_wish.also, 1);
    if (candidate_wish.also && same_store(store, candidate_wish.also))
        fail("--also %s: is STORE itself: expected another one",
             candidate_wish.also);
    check_tail(by->reads ? store : NULL, candidate_wish.also);
    key_format.users = !user;
    key_format.whole = user ? WHOLE_FILES : WHOLE_USERS;
    check_key_format();
    if (candidate_wish.json) keep_warnings();
    if (n > 2) check_input(operands[2]);
    if (n == 2 && !candidate_wish.quiet && access(operands[1], F_OK) == 0)
        note("%s is taken for a user, though there is such a file: candidates "
             "come from stdin (of many users: < %s)",
             operands[1], operands[1]);
    if (!user && (candidate_wish.json || !candidate_wish.quiet))
        remember_users();
    open_flow(operands + 2, n > 2 ? 1 : 0, false, candidate_wish.quiet);
    if (candidate_wish.also) read_also(&also, candidate_wish.also);
    by->open(&users, store);
    chooser = by;
    run_flow(
        &(struct flow){.of = &users,
                       .tally = &tally,
                       .ask = ask,
                       .close = close_stores,
                       .found = by->found,
                       .tell = !candidate_wish.quiet && !candidate_wish.json,
                       .wanted = true});
    finish_output();
    if (candidate_wish.json)
        report_json(by->found);
    else
        note_again();
    if (users.outcome.created && !candidate_wish.json && !candidate_wish.quiet)
        note("%s: created", users.name);
    if (!candidate_wish.json && !candidate_wish.quiet) note_evicted(&users);
    int code = users_exit(&also);
    return users_exit(&users) | code;
}
