/*
 * users.h - the store of users that a verb is about: a directory, lmdb:DIR,
 * mem:, redis:// or redis+list://.
 *
 *     read_users()    to ask; never creates
 *     write_users()   to change
 *     read_also()     the store of --also, to ask
 *
 * And requests: what lines of a chunk, or arguments, ask of it. What cannot be
 * done ends the program with a sentence that names the store.
 */
#ifndef CLI_USERS_H
#define CLI_USERS_H

#include "flow.h"
#include "options.h"
#include "output.h"
#include "store_name.h"

#include <seen_remote.h>

/* ---- Options ------------------------------------------------------------ */

/* Rows for all verbs of stores, for those that read, for those that may create,
 * and for the others: a server takes a policy for
 * one command. */
extern const struct option time_options[];
extern const struct option tail_options[];
extern const struct option policy_options[];
extern const struct option server_policy_options[];

/* The machine's clock, or --at. */
uint64_t users_now(void);
/* How far --at is ahead of the machine's clock; 0: it is not, or not given. */
uint64_t users_ahead(void);
bool users_at_given(void);
/* A word if that is far: all that these users have been shown ages by it. */
void note_ahead(void);

/* ---- The store ---------------------------------------------------------- */

struct users {
    const char *name; /* as messages call it */
    seen_users *store;
    seen_outcome outcome;
    seen_error error; /* of the last call that was given it */
    bool changed;     /* --policy is another one than it had: */
    seen_policy was;
    uint64_t damaged; /* requests for users whose record is */
    bool failed;      /* a change did not reach the disk */
    bool changing;    /* it is open to be changed */
    uint64_t evicted; /* marks pushed out by newer ones, see count_evicted() */
    seen_policy policy; /* by which they were; zeros: nobody tells */
};

/* Would --tail, or --policy where server_policy_options are, say nothing to these
 * stores? Then that is the end of the program. NULL: no such store is read. */
void check_tail(const char *store, const char *also);
void check_policy(const char *store);

bool policy_given(void);

/* The same where it is no store at all. */
void no_store_options(const char *filter);

/* The end of the program if a user of this store, or of the one that would be
 * made, cannot hold so many items. A server says so itself. */
void must_hold(const char *name, uint64_t count);

void read_users(struct users *u, const char *name);
void read_also(struct users *u, const char *name);
void write_users(struct users *u, const char *name, bool create);
void close_users(struct users *u);

/* Right before a store is closed that was changed: how many marks have newer ones
 * pushed out? Then a note if it is any, and the member of JSON. */
void count_evicted(struct users *u);
void note_evicted(const struct users *u);
void json_evicted(struct json *j, const struct users *u);

/* What a writer that died has left, and what --policy has changed. */
void note_opening(const struct users *u);

/* The policy as --policy takes it. */
#define POLICY_TEXT 160
const char *show_policy(char buf[POLICY_TEXT], const seen_policy *p);

/* --policy of a server to come, with the defaults of what it leaves out, as its
 * module writes it. */
const char *server_policy(const char *text, char buf[POLICY_TEXT]);

/* A call with u->error failed: the end of the program. */
_Noreturn void users_failed(const struct users *u);

/* What is wrong with a user, to stand behind the name; `why` is the library's. */
const char *user_reason(const struct users *u, seen_status status,
                        const char *why);

/* The exit code: 2 if there were users whose record is damaged. */
int users_exit(const struct users *u);

/* ---- Requests ----------------------------------------------------------- */

struct requests {
    seen_users_request *at;
    size_t n, cap;
    size_t *taken; /* of all requests: room for a line each */
    size_t lines;  /* so many */
};

/* Of the lines of a chunk from `from` on: neighbours of one user are one
 * request, and there are at most so many. Gives the line behind them. The keys are
 * the chunk's, and `taken` of a request that begins with line i is taken + i. With
 * `user`, all lines are of this one. */
size_t gather(struct requests *r, const struct chunk *c, size_t from,
              size_t most, const seen_key *user);

/* After a call with many requests and u->error: false if none of it counts, and the
 * chunk says why. Users whose record is damaged are noted, and the others count. */
bool requests_done(struct users *u, seen_status status,
                   const struct requests *r, struct chunk *c);

/* Is this the trouble of one user alone? Then note it. `why` NULL: as the status
 * says it. */
bool blame_user(struct users *u, seen_key user, seen_status status,
                const char *why);

#endif
