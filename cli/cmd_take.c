/*
 * cmd_take.c - seen take: candidates that a user has not been shown, and now
 * has.
 *
 * All users of a chunk share one sync; what is printed is on disk.
 */
#include "candidates.h"
#include "options.h"
#include "output.h"
#include "patience.h"

static void open_store(struct users *u, const char *name)
{
    must_hold(name, candidate_wish.count);
    write_users(u, name, true);
    if (candidate_wish.quiet || candidate_wish.json) return;
    note_opening(u);
    note_ahead();
}

static seen_status choose(struct users *u, uint64_t now_ms,
                          seen_users_request *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        r[i].count = (size_t)candidate_wish.count;
    return seen_users_take_many(u->store, now_ms, r, n, &u->error);
}

static int run(char **operands, size_t n)
{
    store_operand(operands, n);
    if (!candidate_wish.count)
        fail("-n COUNT is missing: expected how many items each user gets");
    return run_candidates(operands, n,
                          &(struct chooser){.open = open_store,
                                            .choose = choose,
                                            .found = "taken"});
}

static const char *const examples[] = {
    "rank | seen take feed alice -n 10",
    "ten posts that alice has not been shown; from now on she has",
    "seen take feed -n 10 < candidates.tsv > shown.tsv",
    "many users: lines of a user, a tab and a candidate, grouped by user",
    "seen take feed alice -n 10 --also hidden candidates.txt",
    "leave out those that another store has for her",
    NULL,
};

static const struct option *const groups[] = {
    candidate_options, wait_options, policy_options, tail_options, time_options,
    key_options,       NULL};

const struct verb verb_take = {
    .name = "take",
    .summary = "print candidates that are fresh, and mark them",
    .operands = "STORE [USER [INPUT]] -n COUNT",
    .text =
        "seen fresh, the first COUNT of it, and seen mark, in one step. Lines "
        "are\n"
        "printed when their marks are on disk: what has been printed is never\n"
        "printed again, whatever happens. (On a server: when it has "
        "acknowledged\n"
        "them, and as long as it keeps them.) Without USER, lines on stdin are "
        "a\n"
        "user, a tab and a candidate, those of a user together; each user "
        "gets\n"
        "COUNT. The store is created if missing. --tail is for the store of "
        "--also.",
    .examples = examples,
    .options = groups,
    .run = run,
};
