/*
 * users_model.h - what the records of a few users may be, while a store of them
 * lives through accidents.
 *
 * Each user has a record of his own here, changed by the calls of
 * seen_exposure.h whenever the store is asked to change his. A change that was
 * not acknowledged, or not yet, may have happened or not: so a user has a list
 * of records, the oldest that is possible first, the one that the running store
 * has now last. Acknowledged: only the last is left.
 *
 *     model_new(&m, rng, true);
 *     while (model_step(&m, store) == SEEN_OK) ...
 *     crash, open again
 *     model_check(&m, store, true);    records are compared byte by byte
 *
 * Each user has a clock of his own, which leaps both ways, and the machine has one,
 * which leaps too; it is set right again within a day. The time that really
 * passes is `now`.
 *
 * The only liberty: a user all of whose marks have aged out, by the time that has
 * really passed, may have been removed. No clock that is wrong, no mark at any
 * time, removes another. A model may be copied by assignment; copies share what model_free()
 * frees.
 */
#ifndef SEEN_TEST_USERS_MODEL_H
#define SEEN_TEST_USERS_MODEL_H

#include "seen_users.h"

#include "helpers/keys.h"

#define MODEL_USERS  6
#define MODEL_STATES 48  /* records of one user that are possible at once */
#define MODEL_RECORD 400 /* bytes of one */

struct model_state {
    size_t len;
    uint8_t bytes[MODEL_RECORD];
};

struct model_user {
    size_t n;
    struct model_state at[MODEL_STATES];
};

struct users_model {
    struct test_rng rng;
    bool durable; /* acknowledged is on disk */
    uint64_t now;
    uint64_t passed;                /* what has ticked, see clock.h */
    int64_t wrong;                  /* so far is the machine's clock from now */
    uint64_t wrong_until;           /* then it is set right */
    int64_t ahead[MODEL_USERS];     /* and the clock of each user */
    unsigned policy, policy_before; /* one of these two */
    seen_exposure *x[2];
    struct model_user user[MODEL_USERS];
    uint64_t changes;
    seen_error error;            /* of the last step */
    void (*around)(bool inside); /* may be NULL: before and after each call of
                                    the store by model_step(), model_mark() */
};

extern const seen_policy model_policies[2];

void model_new(struct users_model *m, struct test_rng rng, bool durable);
void model_free(struct users_model *m);

seen_key model_name(size_t user);

/* One operation, drawn at random, on store and model; answers are compared.
 * Gives the store's status. Those that failed are in doubt. */
seen_status model_step(struct users_model *m, seen_users *u);

/* The same, but always this one: mark items that are new. */
seen_status model_mark(struct users_model *m, seen_users *u, size_t user);

/* The machine's clock is this model's from now on: when several live in one
 * program, or another had its turn. */
void model_enter(const struct users_model *m);

/* So much time passes. */
void model_pass(struct users_model *m, uint64_t ms);

/* Everything that was done is on disk. */
void model_settled(struct users_model *m);

/* After a failure: what the running store shows now is where it goes on. */
void model_resume(struct users_model *m, seen_users *u);

/* Every user has one of the records that are possible. `lasting`: and that one
 * only from now on. */
void model_check(struct users_model *m, seen_users *u, bool lasting);

#endif
