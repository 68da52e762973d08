/* users.c - see users.h. */
#define _POSIX_C_SOURCE 200809L

#include "users.h"

#include "login.h"
#include "memory.h"
#include "output.h"
#include "patience.h"
#include "progress.h"
#include "remote.h"
#include "secret.h"
#include "spec.h"
#include "target.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Options ------------------------------------------------------------ */

static struct {
    uint64_t at;
    bool tail, no_create;
    const char *policy, *sync;
} opt;

const struct option time_options[] = {
    {0, "at", "MS", OPTION_COUNT, &opt.at,
     "use this time instead of the clock: milliseconds since 1970"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option tail_options[] = {
    {0, "tail", NULL, OPTION_FLAG, &opt.tail,
     "also read what a writer has not checkpointed yet"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option server_policy_options[] = {
    {0, "policy", "POLICY", OPTION_TEXT, &opt.policy,
     "on a server: the policy for this command, instead of the user's"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

const struct option policy_options[] = {
    {0, "policy", "POLICY", OPTION_TEXT, &opt.policy,
     "of a new store, or a new one for this store, any of\n"
     "items=1000,generations=5,fpp=0.001,ttl=5d"},
    {0, "sync", "batch|none", OPTION_TEXT, &opt.sync,
     "batch (default): on disk before it is acknowledged;\n"
     "none: a loss of power may take the last minute"},
    {0, "no-create", NULL, OPTION_FLAG, &opt.no_create,
     "do not create a store: a missing one is an error"},
    {0, "secret-file", "FILE", OPTION_TEXT, &wish.secret_file,
     "the secret of a new store; created if missing"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

uint64_t users_now(void)
{
    return opt.at ? opt.at : clock_ms();
}

uint64_t users_ahead(void)
{
    uint64_t clock = clock_ms();
    return opt.at > clock ? opt.at - clock : 0;
}

bool users_at_given(void)
{
    return opt.at > 0;
}

static seen_mode write_mode(void)
{
    if (!opt.sync || strcmp(opt.sync, "batch") == 0) return SEEN_DURABLE;
    if (strcmp(opt.sync, "none") == 0) return SEEN_WRITE;
    fail("--sync %s: expected batch or none", opt.sync);
}

/* ---- Policies ----------------------------------------------------------- */

#define DAY_MS ((uint64_t)24 * 60 * 60 * 1000)

static const char *parse_small(const char *text, uint32_t *out)
{
    uint64_t value;
    const char *expected = parse_count(text, &value);
    if (!expected && value > UINT32_MAX) expected = "a smaller number";
    if (!expected) *out = (uint32_t)value;
    return expected;
}

/* "items=1000": one field; zero is what has not been said. */
static void parse_field(const char *text, seen_policy *p)
{
    static const char fields[] = "items=, generations=, fpp= or ttl=";
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : strlen(text);
    const char *value = equals ? equals + 1 : "", *expected;
    bool twice;
    if (equals && len == 5 && memcmp(text, "items", len) == 0) {
        twice = p->items > 0;
        expected = parse_small(value, &p->items);
    } else if (equals && len == 11 && memcmp(text, "generations", len) == 0) {
        twice = p->generations > 0;
        expected = parse_small(value, &p->generations);
    } else if (equals && len == 3 && memcmp(text, "fpp", len) == 0) {
        twice = p->fpp > 0;
        expected = parse_rate(value, &p->fpp);
    } else if (equals && len == 3 && memcmp(text, "ttl", len) == 0) {
        twice = p->ttl_ms > 0;
        expected = parse_time(value, &p->ttl_ms);
    } else {
        fail("--policy %s: expected %s", text, fields);
    }
    if (expected) fail("--policy %s: expected %s", text, expected);
    if (twice) fail("--policy: %.*s is given twice", (int)len, text);
}

static seen_policy parse_policy(const char *text)
{
    seen_policy p = {0};
    char *copy = must_have(strdup(text));
    for (char *field = copy, *comma; field; field = comma) {
        comma = strchr(field, ',');
        if (comma) *comma++ = '\0';
        parse_field(field, &p);
    }
    free(copy);
    return p;
}

const char *show_policy(char buf[POLICY_TEXT], const seen_policy *p)
{
    char ttl[UNIT_TEXT];
    snprintf(buf, POLICY_TEXT, "items=%u,generations=%u,fpp=%.15g,ttl=%s",
             p->items, p->generations, p->fpp, show_time(ttl, p->ttl_ms));
    return buf;
}

static void must_be_policy(const char *text, const seen_policy *p)
{
    seen_error e;
    if (seen_policy_check(p, &e) == SEEN_OK) return;
    const char *why = e.text;
    if (strncmp(why, "policy.", 7) == 0) why += 7; /* as it was typed */
    fail("--policy %s: %s", text, why);
}

const char *server_policy(const char *text, char buf[POLICY_TEXT])
{
    seen_policy p = parse_policy(text);
    must_be_policy(text, &p);
    snprintf(buf, POLICY_TEXT,
             "items=%" PRIu32 ",generations=%" PRIu32 ",fpp=%.17g,ttl=%" PRIu64
             "ms",
             p.items ? p.items : 1000, p.generations ? p.generations : 5,
             p.fpp > 0 ? p.fpp : 0.001,
             p.ttl_ms ? p.ttl_ms : (uint64_t)5 * 86400 * 1000);
    return buf;
}

static bool same_policy(const seen_policy *a, const seen_policy *b)
{
    return a->items == b->items && a->generations == b->generations &&
           a->fpp == b->fpp && a->ttl_ms == b->ttl_ms;
}

/* What --policy does not say stays as it is. */
static void complete(seen_policy *p, const seen_policy *is)
{
    if (!p->items) p->items = is->items;
    if (!p->generations) p->generations = is->generations;
    if (!(p->fpp > 0)) p->fpp = is->fpp;
    if (!p->ttl_ms) p->ttl_ms = is->ttl_ms;
}

/* ---- Stores on servers --------------------------------------------------- */

/* Some things are the server's business. */
static void fit_server(const char *name)
{
    if (!is_server(name)) return;
    if (opt.at)
        fail("%s: the server's clock applies there: leave out --at", name);
    if (opt.sync)
        fail("%s: the server's appendfsync applies there: leave out --sync",
             name);
    if (wait_given())
        fail("%s: the URL's patience= applies there: leave out --wait", name);
}

void check_tail(const char *store, const char *also)
{
    if (!opt.tail) return;
    if ((store && !is_server(store)) || (also && !is_server(also))) return;
    if (!store && !also)
        fail("--tail is for the store of --also, which is missing");
    fail("%s: a server has no journal to read: leave out --tail",
         store ? store : also);
}

void check_policy(const char *store)
{
    if (opt.policy && !is_server(store))
        fail("%s: has a policy of its own, which seen mark and seen take "
             "change: leave out --policy",
             store);
}

bool policy_given(void)
{
    return opt.policy != NULL;
}

void no_store_options(const char *filter)
{
    const char *given = opt.at       ? "--at"
                        : opt.tail   ? "--tail"
                        : opt.policy ? "--policy"
                                     : NULL;
    if (given) fail("%s: is a filter; %s is for stores", filter, given);
}

/* ---- Opening and closing ------------------------------------------------ */

/* A store is open to be changed. A signal that ends the program waits until it is
 * closed; verbs that take long have their own way (flow.c). */
static struct {
    bool open;
    pthread_mutex_t lock;
    pthread_cond_t closed;
} changing = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .closed = PTHREAD_COND_INITIALIZER};

static void set_changing(bool open)
{
    pthread_mutex_lock(&changing.lock);
    changing.open = open;
    pthread_cond_broadcast(&changing.closed);
    pthread_mutex_unlock(&changing.lock);
}

static void wait_until_closed(void)
{
    pthread_mutex_lock(&changing.lock);
    while (changing.open)
        pthread_cond_wait(&changing.closed, &changing.lock);
    pthread_mutex_unlock(&changing.lock);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

__attribute__((noreturn)) static void no_such_store(const struct users *u)
{
    if (has_journal(dir_of(u->name)))
        fail("%s: data.mdb is missing, and its journal is there: restore "
             "data.mdb from a backup",
             u->name);
    char *near = near_store(u->name);
    if (near) fail("%s: no such store; there is one called %s", u->name, near);
    fail("%s: %s%s", u->name,
         is_directory(dir_of(u->name)) ? "is a directory without a store in it"
                                       : "no such store",
         opt.no_create ? "" : "; seen mark and seen take make one");
}

/* Filters have verbs of their own. */
static void not_a_filter(const char *name)
{
    seen_info info = {.size = sizeof info};
    struct stat st;
    const char *path = dir_of(name);
    if (is_server(name) || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        seen_file_look(path, &info, NULL, NULL) != SEEN_OK)
        return;
    fail("%s: is a filter file (of kind %s), not a store of users: seen check "
         "asks it, seen add adds to it",
         name, seen_kind_name(info.kind));
}

static void must_open(struct users *u, seen_status status)
{
    if (status == SEEN_OK) return;
    if (status == SEEN_ABSENT) no_such_store(u);
    if (status == SEEN_MISMATCH)
        fail("%s: the secret in %s is another one", u->name, wish.secret_file);
    fail("%s: %s", u->name,
         *u->error.text ? u->error.text : seen_strerror(status));
}

static void check_policy_given(const seen_policy *policy)
{
    must_be_policy(opt.policy, policy);
}

/* Also URLs that no store has: the library says what it expects. */
static seen_status open_store(seen_users **u, const char *name,
                              const seen_users_options *options,
                              seen_outcome *outcome, seen_error *error)
{
    bool remote = strncmp(name, "redis", 5) == 0 && strstr(name, "://");
    return (remote ? seen_remote_users : seen_users_open)(
        u, real_url(name), options, outcome, error);
}

static void open_to_read(struct users *u, const char *name,
                         const seen_policy *policy)
{
    *u = (struct users){.name = name, .outcome.size = sizeof u->outcome};
    seen_users_options options = {.tail = opt.tail, .policy = policy};
    fit_server(name);
    not_a_filter(name);
    must_open(u, open_store(&u->store, name, &options, &u->outcome, &u->error));
}

void read_users(struct users *u, const char *name)
{
    seen_policy policy;
    check_policy(name);
    if (opt.policy) {
        policy = parse_policy(opt.policy);
        check_policy_given(&policy);
    }
    open_to_read(u, name, opt.policy ? &policy : NULL);
}

void read_also(struct users *u, const char *name)
{
    open_to_read(u, name, NULL);
}

/* false: there is no store of this name yet. */
static bool policy_there(const char *name, seen_policy *is)
{
    seen_users *there;
    seen_users_stats stats = {.size = sizeof stats};
    if (strcmp(name, "mem:") == 0 ||
        open_store(&there, name, &(seen_users_options){0}, NULL, NULL))
        return false;
    seen_status status = seen_users_stats_of(there, &stats, NULL);
    seen_users_close(there, NULL);
    *is = stats.policy;
    return status == SEEN_OK && is->items > 0; /* a server does not tell */
}

/* What a new store makes of this policy: its defaults where nothing is named. */
static void fill_in(seen_policy *policy)
{
    seen_users *made;
    seen_users_stats stats = {.size = sizeof stats};
    check_policy_given(policy);
    seen_users_options options = {
        .mode = SEEN_WRITE, .create = true, .policy = policy};
    if (seen_users_open(&made, "mem:", &options, NULL, NULL) != SEEN_OK) return;
    if (seen_users_stats_of(made, &stats, NULL) == SEEN_OK)
        *policy = stats.policy;
    seen_users_close(made, NULL);
}

void must_hold(const char *name, uint64_t count)
{
    char text[POLICY_TEXT], a[UNIT_TEXT], b[UNIT_TEXT];
    seen_policy is = {0}, policy = {0};
    if (is_server(name)) return;
    if (opt.policy) policy = parse_policy(opt.policy);
    if (policy_there(name, &is))
        complete(&policy, &is);
    else if (opt.policy)
        fill_in(&policy);
    uint64_t most = seen_policy_holds(&policy);
    if (count <= most) return;
    if (!is.items && !opt.policy) /* a store that is not there */
        snprintf(text, sizeof text, "the default policy");
    else
        show_policy(text, &policy);
    fail("-n %s: %s holds %s of a user, and the first ones would be fresh "
         "again: take fewer, or set items= and generations= with --policy",
         show_count(a, (double)count), text,
         show_many(b, (double)most, "item"));
}

/* Waits for another writer. */
static seen_status open_to_write(struct users *u, const char *name,
                                 seen_users_options options)
{
    options.wait_ms = first_wait();
    set_changing(true);
    heed_signals(wait_until_closed);
    seen_status status =
        open_store(&u->store, name, &options, &u->outcome, &u->error);
    if (status != SEEN_OK) set_changing(false);
    if (status != SEEN_BUSY || !wait_on(name)) return status;
    options.wait_ms = second_wait(); /* a signal ends that at once */
    status = open_store(&u->store, name, &options, &u->outcome, &u->error);
    if (status == SEEN_OK) set_changing(true);
    return status;
}

void write_users(struct users *u, const char *name, bool create)
{
    *u = (struct users){.name = name, .outcome.size = sizeof u->outcome};
    seen_users_options options = {.mode = write_mode(),
                                  .create = create && !opt.no_create};
    seen_policy wanted;
    bool there = false;
    fit_server(name);
    not_a_filter(name);
    if (opt.no_create && is_server(name))
        fail("%s: a server has no store to create: leave out --no-create",
             name);
    if (opt.policy) wanted = parse_policy(opt.policy);
    if (opt.policy || wish.secret_file) there = policy_there(name, &u->was);
    if (opt.policy) {
        if (there) complete(&wanted, &u->was);
        check_policy_given(&wanted);
        options.policy = &wanted;
        u->changed = there && !same_policy(&wanted, &u->was);
    }
    options.secret = there ? given_secret() : new_secret();
    keep_secret();
    seen_status status = open_to_write(u, name, options);
    if (status != SEEN_OK && !u->outcome.created) forget_secret();
    if (status == SEEN_BUSY) waited_in_vain(name);
    must_open(u, status);
    u->changing = true;
    if (signal_came()) {
        close_users(u);
        await_end();
    }
}

void note_opening(const struct users *u)
{
    char a[POLICY_TEXT], b[POLICY_TEXT], torn[UNIT_TEXT], frames[UNIT_TEXT];
    seen_users_stats stats = {.size = sizeof stats};
    char *near = u->outcome.created ? near_store(u->name) : NULL;
    if (near)
        note("%s: is a new store; there is one called %s: mistyped? "
             "(--no-create makes none)",
             u->name, near);
    free(near);
    if (u->outcome.recovered_frames || u->outcome.torn_bytes)
        note("%s: was not closed last time: %s recovered from its journal"
             "%s%s%s",
             u->name,
             show_many(frames, (double)u->outcome.recovered_frames, "batch"),
             u->outcome.torn_bytes ? ", " : "",
             u->outcome.torn_bytes
                 ? show_size(torn, (double)u->outcome.torn_bytes)
                 : "",
             u->outcome.torn_bytes ? " of it never finished" : "");
    if (seen_users_stats_of(u->store, &stats, NULL) != SEEN_OK) return;
    if (stats.clock_leaps)
        note("%s: this machine's clock is %s ahead of the last change: the "
             "clock was set, or the store was not used; expired users stay for "
             "a day more, unless seen sweep --force removes them",
             u->name, show_age(a, stats.clock_ahead));
    if (!u->changed) return;
    note("%s: policy changed to %s; it was %s", u->name,
         show_policy(a, &stats.policy), show_policy(b, &u->was));
}

void note_ahead(void)
{
    char ahead[UNIT_TEXT];
    if (users_ahead() > DAY_MS)
        note("--at is %s ahead of this machine's clock: what these users were "
             "shown earlier ages by it, too",
             show_age(ahead, users_ahead()));
}

void close_users(struct users *u)
{
    seen_status status = seen_users_close(u->store, &u->error);
    u->store = NULL;
    if (u->changing) set_changing(false);
    if (status != SEEN_OK && !u->failed) fail("%s: %s", u->name, u->error.text);
}

/* ---- What had to leave --------------------------------------------------- */

/* Marks are worked into records by a checkpoint at the latest, which is due now
 * anyway. */
void count_evicted(struct users *u)
{
    seen_users_stats stats = {.size = sizeof stats};
    if (u->failed || u->damaged || seen_users_sync(u->store, NULL) != SEEN_OK ||
        seen_users_stats_of(u->store, &stats, NULL) != SEEN_OK)
        return;
    u->evicted = stats.evicted;
    u->policy = stats.policy;
}

void note_evicted(const struct users *u)
{
    char gone[UNIT_TEXT], holds[UNIT_TEXT], text[POLICY_TEXT];
    if (u->evicted == 0) return;
    note("%s: %s left before the ttl, pushed out by newer ones: %s holds %s of "
         "a user",
         u->name, show_many(gone, (double)u->evicted, "mark"),
         show_policy(text, &u->policy),
         show_many(holds, (double)seen_policy_holds(&u->policy), "item"));
}

void json_evicted(struct json *j, const struct users *u)
{
    json_number(j, "evicted", u->policy.items ? (double)u->evicted : NAN);
}

/* ---- What went wrong ---------------------------------------------------- */

void users_failed(const struct users *u)
{
    end_progress();
    fail("%s: %s", u->name, u->error.text);
}

/* A corrupt record is a matter of its user; anything else, of all. */
static bool of_one_user(seen_status status)
{
    return status == SEEN_CORRUPT || status == SEEN_NEWER ||
           status == SEEN_MISMATCH;
}

const char *user_reason(const struct users *u, seen_status status,
                        const char *why)
{
    bool plain = of_one_user(status) && !is_remote(u->name);
    return plain || !why ? seen_strerror(status) : why;
}

#define NOTES_MAX 10

/* A server may have answered with nonsense, or the URL may have the wrong n: that
 * is no reason to remove anything there. */
bool blame_user(struct users *u, seen_key user, seen_status status,
                const char *why)
{
    char text[USER_TEXT];
    if (!of_one_user(status)) return false;
    if (u->damaged++ < NOTES_MAX)
        note("%s: user %s: %s%s", u->name, show_user(text, user),
             user_reason(u, status, why),
             is_remote(u->name) ? "" : "; seen forget removes the record");
    return true;
}

int users_exit(const struct users *u)
{
    char more[UNIT_TEXT];
    if (u->damaged > NOTES_MAX)
        note("%s: ... and %s more", u->name,
             show_count(more, (double)(u->damaged - NOTES_MAX)));
    return u->damaged ? EXIT_ERROR : EXIT_DONE;
}

/* ---- Requests ----------------------------------------------------------- */

static bool same_bytes(seen_key a, seen_key b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static seen_users_request *next_request(struct requests *r)
{
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 256;
        r->at = must_have(realloc(r->at, r->cap * sizeof *r->at));
    }
    return &r->at[r->n++];
}

size_t gather(struct requests *r, const struct chunk *c, size_t from,
              size_t most, const seen_key *user)
{
    size_t i = from;
    if (c->n > r->lines) {
        free(r->taken);
        r->taken = must_have(malloc(c->n * sizeof *r->taken));
        r->lines = c->n;
    }
    r->n = 0;
    while (i < c->n && r->n < most) {
        size_t first = i++;
        seen_key who = user ? *user : c->users[first];
        while (i < c->n && (user || same_bytes(c->users[i], who)))
            i++;
        *next_request(r) = (seen_users_request){
            .user = who,
            .items = seen_keys_of(c->keys + first, i - first),
            .taken = r->taken + first};
    }
    return i;
}

/* The library says which request and user it was; here the lines tell. */
static const char *without_request(const char *text)
{
    const char *end =
        strncmp(text, "request ", 8) == 0 ? strstr(text, "\": ") : NULL;
    return end ? end + 3 : text;
}

bool requests_done(struct users *u, seen_status status,
                   const struct requests *r, struct chunk *c)
{
    const char *why = without_request(u->error.text); /* of the first */
    if (status == SEEN_OK) return true;
    for (size_t i = 0; i < r->n; i++) {
        seen_status of = r->at[i].status;
        if (of == SEEN_OK) continue;
        if (of != u->error.status) why = seen_strerror(of);
        if (blame_user(u, r->at[i].user, of, why)) continue;
        u->failed = true;
        snprintf(c->failure, sizeof c->failure, "%.256s: %.463s", u->name, why);
        return false;
    }
    return true;
}
