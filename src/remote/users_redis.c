/*
 * users_redis.c - users on a Redis or Valkey server, or a cluster, that has seen.so:
 *
 *     redis://[user:password@]host[:port][/db]?prefix=P
 *
 * A user is a key, P and his name (P is "seen:" unless told), and every call is
 * a SEEN.* command or two, many of them in one pipeline. The server keeps the
 * secret, removes old users by itself, and its clock counts: `now_ms` is not sent,
 * so that clients need not agree about the time. A policy is sent if there is one;
 * the server keeps it with the user for those who send none.
 *
 * Items of one width go packed, in one argument, and come back as bits. Others go
 * as arguments of their own; what comes back are some of them, in order.
 *
 * Repeating: asking and marking twice does no harm, so these are sent again when a
 * connection breaks. A take is not: the items of an unanswered take may have been
 * taken, and SEEN_IO says that nobody knows. Nor is forgetting: somebody may have
 * marked the item again in between.
 */
#include "remote/users_server.h"

#include "base/bytes.h"
#include "base/error.h"
#include "exposure/exposure.h"
#include "redis/decimal.h"

#include <stdio.h>
#include <stdlib.h>

#define ENVELOPE     48 /* before the record of SEEN.EXPORT */
#define WIDTH_MAX    65536
#define TYPE_OF_USER "seen-xp-1"

struct module {
    struct seen_server server;
    char policy[128]; /* "" or an argument */
};

/* ---- Commands ----------------------------------------------------------- */

/* The width that all items have, 0: they differ. */
static size_t common_width(const seen_key *items, size_t n)
{
    if (n == 0 || items[0].len > WIDTH_MAX) return 0;
    for (size_t i = 1; i < n; i++)
        if (items[i].len != items[0].len) return 0;
    return items[0].len;
}

/* NAME key; the rest is added behind. */
static bool begin(struct seen_server_command *o, const struct seen_server *m,
                  const char *name, seen_key user, size_t items)
{
    if (!seen_command_begin(o, m, user, items)) return false;
    seen_command_text(o, name);
    seen_command_key(o, m, user);
    return true;
}

static bool add_items(struct seen_server_command *o, const seen_key *items,
                      size_t n, size_t width)
{
    if (!width) {
        seen_command_text(o, "ITEMS");
        for (size_t i = 0; i < n; i++)
            seen_command_add(o, items[i].data, items[i].len);
        return true;
    }
    o->packed = malloc(n * width);
    if (!o->packed) return false;
    for (size_t i = 0; i < n; i++)
        memcpy(o->packed + i * width, items[i].data, width);
    snprintf(o->number[0], sizeof o->number[0], "%zu", width);
    seen_command_text(o, o->number[0]);
    seen_command_add(o, o->packed, n * width);
    return true;
}

enum form {
    FRESH,
    CHECK,
    MARK,
    TAKE
};

static const struct {
    const char *plain, *packed;
    bool repeatable;
} forms[] = {
    [FRESH] = {"SEEN.FRESH", "SEEN.FRESHP", true},
    [CHECK] = {"SEEN.CHECK", NULL, true},
    [MARK] = {"SEEN.MARK", "SEEN.MARKP", true},
    [TAKE] = {"SEEN.TAKE", "SEEN.TAKEP", false},
};

static bool put_command(struct seen_server_command *o, const struct module *m,
                        enum form form, seen_key user, const seen_key *items,
                        size_t n, size_t count)
{
    size_t width = forms[form].packed ? common_width(items, n) : 0;
    const char *name = width ? forms[form].packed : forms[form].plain;
    if (!begin(o, &m->server, name, user, width ? 0 : n)) return false;
    if (form == TAKE) {
        snprintf(o->number[1], sizeof o->number[1], "%zu", count);
        seen_command_text(o, "COUNT");
        seen_command_text(o, o->number[1]);
    }
    if (m->policy[0]) {
        seen_command_text(o, "POLICY");
        seen_command_text(o, m->policy);
    }
    o->k.repeatable = forms[form].repeatable;
    return add_items(o, items, n, width);
}

/* ---- Replies ------------------------------------------------------------ */

/* SEEN.FRESH, SEEN.TAKE and their packed forms: which items come back? Of items
 * of one width, bits; of others, some of them, in order. At most `most`. */
static bool read_bits(seen_key bits, size_t n, bool *chosen)
{
    if (bits.len != (n + 7) / 8) return false;
    const uint8_t *p = bits.data;
    for (size_t i = 0; i < n; i++)
        chosen[i] = p[i / 8] >> (7 - i % 8) & 1;
    return true;
}

static bool read_items(const struct redisReply *reply, size_t given,
                       const seen_key *items, size_t n, bool *chosen)
{
    size_t at = 0;
    memset(chosen, 0, n * sizeof *chosen);
    for (size_t i = 0; i < given; i++) {
        seen_key e;
        if (!seen_reply_string(seen_reply_at(reply, i), &e)) return false;
        while (at < n && (items[at].len != e.len ||
                          (e.len && memcmp(items[at].data, e.data, e.len))))
            at++;
        if (at == n) return false;
        chosen[at++] = true;
    }
    return true;
}

static seen_status read_chosen(const char *command,
                               const struct redisReply *reply,
                               const seen_key *items, size_t n, size_t most,
                               bool *chosen, seen_error *error)
{
    seen_key bits;
    size_t given, count = 0;
    bool good = seen_reply_string(reply, &bits)
                    ? read_bits(bits, n, chosen)
                    : seen_reply_array(reply, &given) &&
                          read_items(reply, given, items, n, chosen);
    for (size_t i = 0; good && i < n; i++)
        count += chosen[i];
    if (good && count <= most) return SEEN_OK;
    return seen_pool_strange(command, reply, "some of the items", error);
}

/* ---- Asking ------------------------------------------------------------- */

static seen_status read_checks(const struct redisReply *reply, size_t n,
                               bool *seen, seen_error *error)
{
    size_t answers;
    bool good = seen_reply_array(reply, &answers) && answers == n;
    for (size_t i = 0; good && i < n; i++)
        good = seen_reply_flag(seen_reply_at(reply, i), &seen[i]);
    if (good) return SEEN_OK;
    return seen_pool_strange("SEEN.CHECK", reply, "0 or 1 for each item",
                             error);
}

static seen_status ask(struct seen_users *u, seen_key user, uint64_t now_ms,
                       seen_keys items, bool repeats, bool *seen,
                       seen_error *error)
{
    struct module *m = (struct module *)u;
    struct seen_pairs p;
    const size_t n = items.n;
    (void)now_ms;
    if (n == 0) return SEEN_OK;
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    enum form form = repeats ? FRESH : CHECK;
    bool put =
        seen_pairs_make(&p, items) && put_command(o, m, form, user, p.at, n, 0);
    seen_status status = put ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = seen_commands_run(&m->server, o, 1, error);
    if (status == SEEN_OK && repeats) {
        status = read_chosen("SEEN.FRESH", o->k.reply, p.at, n, n, seen, error);
        for (size_t i = 0; i < n; i++)
            seen[i] = !seen[i];
    } else if (status == SEEN_OK) {
        status = read_checks(o->k.reply, n, seen, error);
    }
    seen_pairs_free(&p);
    seen_commands_done(o, 1);
    return status;
}

/* ---- Changing ----------------------------------------------------------- */

/* A mark that asks which are new takes all that are, and marks the others. */
static size_t commands_of(enum seen_users_change kind,
                          const seen_users_request *r)
{
    if (r->items.n == 0) return 0;
    return kind == SEEN_USERS_MARK && r->fresh ? 2 : 1;
}

static bool put_request(struct seen_server_command *o, const struct module *m,
                        enum seen_users_change kind,
                        const seen_users_request *r, const seen_key *items)
{
    const size_t n = r->items.n;
    if (n == 0) return true;
    if (kind == SEEN_USERS_TAKE)
        return put_command(o, m, TAKE, r->user, items, n, r->count);
    if (!r->fresh) return put_command(o, m, MARK, r->user, items, n, 0);
    return put_command(o, m, TAKE, r->user, items, n, n) &&
           put_command(o + 1, m, MARK, r->user, items, n, 0);
}

/* SEEN.MARK and SEEN.FORGET say how many. */
static seen_status read_number(const char *command,
                               const struct redisReply *reply, int64_t *n,
                               seen_error *error)
{
    if (seen_reply_integer(reply, 0, INT64_MAX, n)) return SEEN_OK;
    return seen_pool_strange(command, reply, "a number", error);
}

/* `lost`: why commands have no reply. */
static seen_status read_request(const struct seen_server_command *o,
                                enum seen_users_change kind,
                                seen_users_request *r, const seen_key *items,
                                const seen_error *lost, seen_error *error)
{
    const bool takes = kind == SEEN_USERS_TAKE;
    const size_t commands = commands_of(kind, r), n = r->items.n;
    for (size_t i = 0; i < commands; i++)
        if (o[i].k.status != SEEN_OK)
            return seen_fail_as(error, o[i].k.status, lost);
    if (n == 0) return SEEN_OK;
    if (!takes) { /* the last command is a mark */
        int64_t marked;
        seen_status status =
            read_number("SEEN.MARK", o[commands - 1].k.reply, &marked, error);
        if (status != SEEN_OK || !r->fresh) return status;
    }
    bool *chosen = malloc(n * sizeof *chosen);
    if (!chosen) return SEEN_NOMEM;
    seen_status status = read_chosen("SEEN.TAKE", o->k.reply, items, n,
                                     takes ? r->count : n, chosen, error);
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        if (!takes)
            r->fresh[i] = chosen[i];
        else if (chosen[i])
            r->taken[r->n_taken++] = i;
    }
    free(chosen);
    return status;
}

static seen_status change(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now_ms, seen_users_request *r, size_t n,
                          seen_error *error)
{
    struct module *m = (struct module *)u;
    size_t count = 0, at = 0;
    seen_error lost = {0};
    (void)now_ms;
    for (size_t i = 0; i < n; i++)
        count += commands_of(kind, &r[i]);
    struct seen_server_command *o = calloc(count + 1, sizeof *o);
    struct seen_pairs *items = calloc(n, sizeof *items);
    seen_status status = o && items ? SEEN_OK : SEEN_NOMEM;
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        if (!seen_pairs_make(&items[i], r[i].items) ||
            !put_request(o + at, m, kind, &r[i], items[i].at))
            status = SEEN_NOMEM;
        at += commands_of(kind, &r[i]);
    }
    bool sent = status == SEEN_OK;
    if (sent && count) (void)seen_commands_run(&m->server, o, count, &lost);
    at = 0;
    for (size_t i = 0; i < n; i++) { /* each has a status */
        r[i].n_taken = 0;
        r[i].status =
            sent ? read_request(o + at, kind, &r[i], items[i].at, &lost, error)
                 : status;
        at += commands_of(kind, &r[i]);
    }
    for (size_t i = 0; i < n && status == SEEN_OK; i++)
        status = r[i].status;
    for (size_t i = 0; items && i < n; i++)
        seen_pairs_free(&items[i]);
    free(items);
    if (o) seen_commands_done(o, count);
    return status;
}

static seen_status forget_some(struct module *m, seen_key user,
                               const seen_key *items, size_t n, bool *changed,
                               seen_error *error)
{
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    seen_status status =
        begin(o, &m->server, "SEEN.FORGET", user, n) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK && m->policy[0]) {
        seen_command_text(o, "POLICY");
        seen_command_text(o, m->policy);
    }
    if (status == SEEN_OK && n) (void)add_items(o, items, n, 0);
    if (status == SEEN_OK) status = seen_commands_run(&m->server, o, 1, error);
    int64_t gone = 0;
    if (status == SEEN_OK)
        status = read_number("SEEN.FORGET", o->k.reply, &gone, error);
    if (status == SEEN_OK) *changed = gone != 0;
    seen_commands_done(o, 1);
    return status;
}

static seen_status forget(struct seen_users *u, seen_key user, uint64_t now_ms,
                          seen_keys items, seen_error *error)
{
    struct seen_pairs p;
    bool changed;
    (void)now_ms;
    if (items.n == 0) return SEEN_OK;
    if (!seen_pairs_make(&p, items)) return SEEN_NOMEM;
    seen_status status =
        forget_some((struct module *)u, user, p.at, items.n, &changed, error);
    seen_pairs_free(&p);
    return status;
}

static seen_status forget_user(struct seen_users *u, seen_key user,
                               uint64_t now_ms, bool *known, seen_error *error)
{
    (void)now_ms;
    return forget_some((struct module *)u, user, NULL, 0, known, error);
}

/* ---- Records ------------------------------------------------------------ */

/* The record of an envelope (module/exposure.h), and its policy. */
static seen_status open_envelope(const struct redisReply *reply,
                                 seen_record *record, seen_policy *policy)
{
    static const uint8_t magic[8] = {0x89, 'S', 'E', 'E', 'N', 'X', 'P', 0x1a};
    seen_key bytes;
    if (seen_reply_nil(reply)) return SEEN_ABSENT;
    if (!seen_reply_string(reply, &bytes) || bytes.len < ENVELOPE)
        return SEEN_CORRUPT;
    const uint8_t *p = bytes.data;
    if (memcmp(p, magic, sizeof magic) != 0) return SEEN_CORRUPT;
    if (seen_get_le32(p + 8) != 1) return SEEN_NEWER;
    uint64_t fpp = seen_get_le64(p + 24);
    *policy = (seen_policy){.items = seen_get_le32(p + 12),
                            .generations = seen_get_le32(p + 16),
                            .ttl_ms = seen_get_le64(p + 32)};
    memcpy(&policy->fpp, &fpp, sizeof fpp);
    if (seen_policy_check(policy, NULL) != SEEN_OK) return SEEN_CORRUPT;
    *record = (seen_record){p + ENVELOPE, bytes.len - ENVELOPE};
    return SEEN_OK;
}

/* What a record holds can be told without its secret. */
static seen_status info_in(const struct redisReply *reply, uint64_t now_ms,
                           seen_record *record, seen_exposure_info *info)
{
    static const uint8_t none[16];
    seen_policy policy;
    seen_exposure *x;
    seen_status status = open_envelope(reply, record, &policy);
    if (status == SEEN_OK)
        status = seen_exposure_new(&x, &policy, none, NULL, NULL);
    if (status != SEEN_OK) return status;
    seen_exposure_any_secret(x);
    status = seen_exposure_info_of(x, *record, now_ms, info);
    if (status == SEEN_OK && info->generations == 0) status = SEEN_ABSENT;
    seen_exposure_free(x);
    return status;
}

static bool put_export(struct seen_server_command *o,
                       const struct seen_server *m, seen_key user)
{
    o->k.repeatable = true;
    return begin(o, m, "SEEN.EXPORT", user, 0);
}

static seen_status export(struct module *m, seen_key user,
                          struct seen_server_command **out, seen_error *error)
{
    struct seen_server_command *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    seen_status status = put_export(o, &m->server, user) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK && m->policy[0]) {
        seen_command_text(o, "POLICY");
        seen_command_text(o, m->policy);
    }
    if (status == SEEN_OK) status = seen_commands_run(&m->server, o, 1, error);
    if (status == SEEN_OK)
        *out = o;
    else
        seen_commands_done(o, 1);
    return status;
}

static seen_status info_of(struct seen_users *u, seen_key user, uint64_t now_ms,
                           seen_exposure_info *info, seen_error *error)
{
    struct seen_server_command *o;
    seen_record record;
    seen_status status = export((struct module *)u, user, &o, error);
    if (status != SEEN_OK) return status;
    status = info_in(o->k.reply, now_ms, &record, info);
    seen_commands_done(o, 1);
    return status;
}

static seen_status copy_record(struct seen_users *u, seen_key user, void *buf,
                               size_t cap, size_t *len, seen_error *error)
{
    struct seen_server_command *o;
    seen_record record;
    seen_policy policy;
    seen_status status = export((struct module *)u, user, &o, error);
    if (status != SEEN_OK) return status;
    status = open_envelope(o->k.reply, &record, &policy);
    if (status == SEEN_OK) {
        *len = record.len;
        status = record.len > cap ? SEEN_SHORT : SEEN_OK;
        if (status == SEEN_OK) memcpy(buf, record.data, record.len);
    }
    seen_commands_done(o, 1);
    return status;
}

/* ---- All users ---------------------------------------------------------- */

static void read_export(const struct seen_server *m,
                        const struct redisReply *reply, uint64_t now_ms,
                        seen_users_entry *e)
{
    (void)m;
    seen_exposure_info info = {.size = sizeof info};
    e->status = info_in(reply, now_ms, &e->record, &info);
    seen_users_entry_fill(e, &info);
}

static const struct seen_server_reader reader = {.type = TYPE_OF_USER,
                                                 .put = put_export,
                                                 .gone = seen_reply_nil,
                                                 .read = read_export};

/* ---- Life --------------------------------------------------------------- */

static const struct seen_users_ops ops = {
    SEEN_SERVER_OPS,
    .ask = ask,
    .change = change,
    .forget = forget,
    .forget_user = forget_user,
    .info_of = info_of,
    .record = copy_record,
};

/* Does the server know the commands? */
static seen_status look_for_module(struct module *m, seen_error *error)
{
    const char *argv[] = {"COMMAND", "INFO", "SEEN.TAKE"};
    const size_t len[] = {7, 4, 9};
    struct seen_command k = {
        .argc = 3, .argv = argv, .len = len, .repeatable = true};
    seen_status status = seen_pool_run(&m->server.pool, &k, 1, error);
    if (status != SEEN_OK) return status;
    size_t n = 0, fields;
    bool good = seen_reply_array(k.reply, &n) && n == 1;
    bool known = good && seen_reply_array(seen_reply_at(k.reply, 0), &fields);
    if (!good || (!known && !seen_reply_nil(seen_reply_at(k.reply, 0))))
        status = seen_pool_strange("COMMAND INFO", k.reply, "what a command is",
                                   error);
    seen_redis_done(&k, 1);
    if (status != SEEN_OK || known) return status;
    return seen_fail(error, SEEN_UNSUPPORTED, "url",
                     "the server has no SEEN.* commands: load seen.so");
}

seen_status seen_remote_users_redis(struct seen_users **u, const char *where,
                                    const seen_users_options *options,
                                    seen_outcome *outcome, seen_error *error)
{
    (void)outcome;
    struct module *m = calloc(1, sizeof *m);
    if (!m) return SEEN_NOMEM;
    m->server.head.ops = &ops;
    m->server.reader = &reader;
    seen_status status = seen_server_open(&m->server, where, "seen:", error);
    if (status == SEEN_OK) status = seen_url_done(&m->server.pool.url, error);
    if (status == SEEN_OK && options->secret)
        status = seen_fail(error, SEEN_INVALID, "options.secret",
                           "the server has the secret: secret-file, when "
                           "seen.so is loaded");
    if (status == SEEN_OK && options->policy) {
        const seen_policy p = seen_policy_filled(options->policy);
        char fpp[SEEN_DECIMAL];
        seen_decimal_put(p.fpp, fpp);
        snprintf(m->policy, sizeof m->policy,
                 "items=%u,generations=%u,fpp=%s,ttl=%llums", p.items,
                 p.generations, fpp, (unsigned long long)p.ttl_ms);
    }
    if (status == SEEN_OK) status = look_for_module(m, error);
    if (status == SEEN_OK)
        *u = &m->server.head;
    else
        seen_server_close(&m->server.head, NULL);
    return status;
}
