/*
 * command.h - the frame around every command, and what INFO counts.
 *
 * A row of commands.def says what a command needs; command_run() does what
 * commands have in common, in this order:
 *
 *     arity             wrong: the server's own error
 *     read              the arguments, before the key is touched: an error is the
 *                       reply
 *     open              the key. Another type: WRONGTYPE
 *     absent, present   there is no value, or there is one: the reply, where the
 *                       row has it
 *     partial           a filter whose chunks have not all come: an error
 *     function          the work of the command, which replies
 *     close             the key
 *     count             items
 */
#ifndef SEEN_MODULE_COMMAND_H
#define SEEN_MODULE_COMMAND_H

#include "seen.h"
#include "seen_allowlist.h"

#include "family.h"
#include "object.h"
#include "policy.h"
#include "redis_api.h"

/*
 * In items, of commands that were not refused:
 *
 *     adds     added or marked, whether they were new or not; not those that were
 *              only asked about on the way (CF.ADDNX, SEEN.TAKE)
 *     checks   asked about, also where there is no such key. SEEN.TAKE asks from
 *              the first one until it has enough
 *     hits     checks whose answer was "maybe"
 */
struct statistics {
    uint64_t adds, checks, hits;
};

extern struct statistics statistics; /* since the module was loaded */

/* ---- What arguments say ------------------------------------------------- */

/* RESERVE and INSERT of BF and CF. */
struct options {
    struct params params;
    bool capacity, error, expansion, secret; /* given */
    bool no_create;
    uint64_t ttl_ms; /* 0: none */
    uint64_t at_ms;  /* 0: now */
    RedisModuleString *like;
    RedisModuleString **items;
    size_t n;
};

/* BF.ALLOW. */
struct listing {
    seen_listed rule; /* 0: as before, NEVER at first */
    bool remove;
    RedisModuleString **items;
    size_t n;
};

/* IMPORT. */
struct import {
    seen_dialect_facts dialect;
    seen_spec spec; /* what the bytes do not say */
};

/* SEEN. */
struct request {
    struct policy *policy; /* NULL until the key is open: that of the user */
    bool own;              /* the user's, not the server's default */
    uint64_t now_ms;
    size_t most; /* LIMIT or COUNT */
    RedisModuleString **items;
    size_t n;
    seen_key ids; /* instead of items, where `width` is not 0 */
    size_t width;
};

/* ---- A call ------------------------------------------------------------- */

struct call {
    RedisModuleCtx *ctx;
    RedisModuleString **argv;
    int argc;
    const struct command *command;
    struct family *family;
    RedisModuleString *name; /* of the key */
    RedisModuleKey *key;     /* may be NULL: none, and the command only reads */
    void *value;             /* of the family; NULL: none */
    struct statistics count; /* of this call */
    union {                  /* by `read` of the command */
        struct options options;
        struct listing listing;
        struct import import;
        struct request request;
        long long iterator;
    };
};

enum keys {
    KEY_NONE,
    KEY_READ,
    KEY_WRITE,
    KEY_LIKE,
    KEYS_MERGE
};

/* What a function or its `read` does that others do not. */
enum with {
    WITH_LIMIT = 1,
    WITH_COUNT = 2,
    WITH_TIME = 4,
    WITH_UNDER = 8,
    WITH_ITEMS = 16, /* one at least */
    WITH_IDS = 32,   /* width and ids instead */
    WITH_NONE = 64,  /* no items */
    WITH_NX = 128    /* CF: only what is not there */
};

struct command {
    const char *name;
    int (*function)(struct call *c); /* what it returns is for the server */
    const char *flags;
    int arity;
    enum keys keys;
    const char *syntax, *summary;
    struct family *family; /* NULL: no key */
    int most;              /* arguments with the name; 0: any number */
    const char *(*read)(struct call *c); /* NULL, or an error; may be NULL */
    unsigned with;                       /* enum with */
    const char *absent, *present;        /* replies; NULL: the function runs */
    bool partial; /* it runs while chunks are missing, too */
};

/* What `read` returns where the server's own error is right. */
extern const char WRONG_ARITY[];

int command_run(const struct command *command, RedisModuleCtx *ctx,
                RedisModuleString **argv, int argc);

/* ---- For commands ------------------------------------------------------- */

/* The value of another key of the family, good until the next key is opened. NULL:
 * there is none, or the reply has been given and *refused is true. */
void *call_other(struct call *c, RedisModuleString *name, bool *refused);

/* The key, open for writing, has this value now; what it had is freed. */
void call_set(struct call *c, void *value);

/* The key has changed: watchers and subscribers are told. */
void call_changed(struct call *c, const char *event);

void count_answers(struct call *c, const bool *answers, size_t n);

/* ---- All of them -------------------------------------------------------- */

#define COMMAND(name, function, flags, arity, keys, syntax, summary, family,   \
                ...)                                                           \
    int function(struct call *c);
#include "commands.def"
#undef COMMAND

const char *bf_read_reserve(struct call *c);
const char *bf_read_insert(struct call *c);
const char *bf_read_allow(struct call *c);
const char *cf_read_reserve(struct call *c);
const char *cf_read_insert(struct call *c);
const char *import_read(struct call *c);
const char *chunk_read_scan(struct call *c);
const char *chunk_read_load(struct call *c);
const char *user_read(struct call *c);
const char *user_read_merge(struct call *c);
const char *user_read_import(struct call *c);

#endif
