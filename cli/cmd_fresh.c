/* cmd_fresh.c - seen fresh: which candidates has a user not been shown? */
#include "candidates.h"
#include "options.h"

static seen_status choose(struct users *u, uint64_t now_ms,
                          seen_users_request *r, size_t n)
{
    seen_status first = SEEN_OK;
    seen_error error;
    for (size_t i = 0; i < n; i++) {
        r[i].status = seen_users_fresh(u->store, r[i].user, now_ms, r[i].items,
                                       r[i].taken, &r[i].n_taken, &error);
        if (candidate_wish.count && candidate_wish.count < r[i].n_taken)
            r[i].n_taken = (size_t)candidate_wish.count;
        if (first != SEEN_OK || r[i].status == SEEN_OK) continue;
        first = r[i].status;
        u->error = error;
    }
    return first;
}

static int run(char **operands, size_t n)
{
    return run_candidates(operands, n,
                          &(struct chooser){.open = read_users,
                                            .choose = choose,
                                            .found = "fresh",
                                            .reads = true});
}

static const char *const examples[] = {
    "seen fresh feed alice candidates.txt",
    "the lines that alice has not been shown, in their order",
    "rank | seen fresh feed alice -n 10",
    "the first ten of them",
    "seen fresh feed --also old-feed < candidates.tsv",
    "many users: lines of a user, a tab and a candidate, grouped by user",
    NULL,
};

static const struct option *const groups[] = {
    candidate_options, tail_options, server_policy_options,
    time_options,      key_options,  NULL};

const struct verb verb_fresh = {
    .name = "fresh",
    .summary = "print the candidates that a user has not been shown",
    .operands = "STORE [USER [INPUT]]",
    .text = "A line that was marked for the user is never printed; one that "
            "was not is\n"
            "withheld as rarely as the store's policy says (0.1%). A line that "
            "comes\n"
            "twice is printed once. Without USER, lines on stdin are a user, a "
            "tab and\n"
            "a candidate, those of a user together; they come out the same "
            "way. fresh\n"
            "changes nothing. While another program changes the store, fresh "
            "sees what\n"
            "it held at its last checkpoint, at most a minute ago; with "
            "--tail, all that\n"
            "was acknowledged.",
    .examples = examples,
    .options = groups,
    .run = run,
};
