/*
 * redis.c - users on a Redis or Valkey server, or a cluster, that has seen.so:
 *
 *     redis://[user:password@]host[:port][/db]?prefix=P
 *
 * A user is a key, P and his name (P is "seen:" unless told), and every call is
 * a SEEN.* command or two, many of them in one pipeline. The server keeps the
 * secret, removes old users by itself, and its clock counts: `now` is not sent,
 * so that clients need not agree about the time.
 *
 * Items of one width go packed, in one argument, and come back as bits. Others go
 * as arguments of their own; what comes back are some of them, in order.
 *
 * Repeating: asking, marking and forgetting twice does no harm, so these are sent
 * again when a connection breaks. A take is not: the items of an unanswered take
 * may have been taken, and SEEN_IO says that nobody knows.
 */
#define _POSIX_C_SOURCE 200809L

#include "users/users.h"

#include "base/bytes.h"
#include "exposure/exposure.h"
#include "redis/pool.h"
#include "store/report.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define ENVELOPE     48 /* before the record of SEEN.EXPORT */
#define PREFIX_MOST  256
#define WIDTH_MOST   65536
#define FIRST_ITEM   8 /* arguments before the items, at most */
#define SCAN_COUNT   "1000"
#define ANY_SECRET   ((uint32_t)1 << 16) /* a check that fits all records */
#define TYPE_OF_USER "seen-xp-1"

struct remote {
    struct seen_users head;
    struct seen_pool pool;
    char prefix[PREFIX_MOST];
    char policy[128]; /* "" or an argument */
};

/* ---- Commands ----------------------------------------------------------- */

/* A command with its arguments, in memory of its own. */
struct order {
    struct seen_command k;
    const char **argv;
    size_t *len;
    char *key;    /* prefix and user */
    char *packed; /* ids of one width */
    char width[24], count[24];
};

static void free_orders(struct order *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(o[i].argv);
        free(o[i].len);
        free(o[i].key);
        free(o[i].packed);
    }
    free(o);
}

static void add(struct order *o, const void *bytes, size_t len)
{
    o->argv[o->k.argc] = bytes;
    o->len[o->k.argc++] = len;
}

static void add_text(struct order *o, const char *text)
{
    add(o, text, strlen(text));
}

/* The width that all items have, 0: they differ. */
static size_t common_width(const seen_key *items, size_t n)
{
    if (n == 0 || items[0].len > WIDTH_MOST) return 0;
    for (size_t i = 1; i < n; i++)
        if (items[i].len != items[0].len) return 0;
    return items[0].len;
}

/* NAME key; the rest is added behind. */
static bool begin(struct order *o, const struct remote *m, const char *name,
                  seen_key user, size_t items)
{
    size_t prefix = strlen(m->prefix);
    o->argv = calloc(FIRST_ITEM + items, sizeof *o->argv);
    o->len = calloc(FIRST_ITEM + items, sizeof *o->len);
    o->key = malloc(prefix + user.len);
    if (!o->argv || !o->len || !o->key) return false;
    memcpy(o->key, m->prefix, prefix);
    memcpy(o->key + prefix, user.data, user.len);
    add_text(o, name);
    add(o, o->key, prefix + user.len);
    o->k.key = 1;
    return true;
}

static bool add_items(struct order *o, const seen_key *items, size_t n,
                      size_t width)
{
    if (!width) {
        add_text(o, "ITEMS");
        for (size_t i = 0; i < n; i++)
            add(o, items[i].data, items[i].len);
        return true;
    }
    o->packed = malloc(n * width);
    if (!o->packed) return false;
    for (size_t i = 0; i < n; i++)
        memcpy(o->packed + i * width, items[i].data, width);
    snprintf(o->width, sizeof o->width, "%zu", width);
    add_text(o, o->width);
    add(o, o->packed, n * width);
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

static bool put_order(struct order *o, const struct remote *m, enum form form,
                      seen_key user, const seen_key *items, size_t n,
                      size_t count)
{
    size_t width = forms[form].packed ? common_width(items, n) : 0;
    const char *name = width ? forms[form].packed : forms[form].plain;
    if (!begin(o, m, name, user, width ? 0 : n)) return false;
    if (form == TAKE) {
        snprintf(o->count, sizeof o->count, "%zu", count);
        add_text(o, "COUNT");
        add_text(o, o->count);
    }
    if (m->policy[0]) {
        add_text(o, "POLICY");
        add_text(o, m->policy);
    }
    o->k.repeatable = forms[form].repeatable;
    return add_items(o, items, n, width);
}

/* Send them all; the commands of the orders have replies then. */
static seen_status carry_out(struct remote *m, struct order *o, size_t n)
{
    struct seen_command *k = calloc(n, sizeof *k);
    if (!k) return SEEN_NOMEM;
    for (size_t i = 0; i < n; i++) {
        o[i].k.argv = o[i].argv;
        o[i].k.len = o[i].len;
        k[i] = o[i].k;
    }
    seen_status status = seen_pool_run(&m->pool, k, n);
    for (size_t i = 0; i < n; i++)
        o[i].k = k[i];
    free(k);
    return status;
}

static void done(struct order *o, size_t n)
{
    for (size_t i = 0; i < n; i++)
        seen_redis_done(&o[i].k, 1);
    free_orders(o, n);
}

/* ---- Replies ------------------------------------------------------------ */

static seen_status strange(struct remote *m, const char *what)
{
    seen_store_report r = {0};
    seen_report(&r, SEEN_CORRUPT, "a reply to %s is not what was expected",
                what);
    seen_pool_tell(&m->pool, &r);
    return SEEN_CORRUPT;
}

/* SEEN.FRESH, SEEN.TAKE and their packed forms: which items come back? */
static seen_status read_chosen(const redisReply *reply, const seen_key *items,
                               size_t n, bool *chosen)
{
    memset(chosen, 0, n * sizeof *chosen);
    if (reply->type == REDIS_REPLY_STRING) {
        if (reply->len < (n + 7) / 8) return SEEN_CORRUPT;
        for (size_t i = 0; i < n; i++)
            chosen[i] = (uint8_t)reply->str[i / 8] >> (7 - i % 8) & 1;
        return SEEN_OK;
    }
    if (reply->type != REDIS_REPLY_ARRAY) return SEEN_CORRUPT;
    size_t at = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *e = reply->element[i];
        if (e->type != REDIS_REPLY_STRING) return SEEN_CORRUPT;
        while (at < n && (items[at].len != e->len ||
                          memcmp(items[at].data, e->str, e->len) != 0))
            at++;
        if (at == n) return SEEN_CORRUPT;
        chosen[at++] = true;
    }
    return SEEN_OK;
}

/* ---- Asking ------------------------------------------------------------- */

static seen_status ask(struct seen_users *u, seen_key user, uint64_t now,
                       const seen_key *items, size_t n, bool repeats,
                       bool *seen)
{
    struct remote *m = (struct remote *)u;
    (void)now;
    if (n == 0) return SEEN_OK;
    struct order *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    enum form form = repeats ? FRESH : CHECK;
    seen_status status =
        put_order(o, m, form, user, items, n, 0) ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = carry_out(m, o, 1);
    const redisReply *reply = o->k.reply;
    if (status == SEEN_OK && repeats) {
        status = read_chosen(reply, items, n, seen);
        for (size_t i = 0; i < n; i++)
            seen[i] = !seen[i];
    } else if (status == SEEN_OK) {
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n)
            status = SEEN_CORRUPT;
        for (size_t i = 0; status == SEEN_OK && i < n; i++)
            seen[i] = reply->element[i]->integer != 0;
    }
    if (status == SEEN_CORRUPT) status = strange(m, forms[form].plain);
    done(o, 1);
    return status;
}

/* ---- Changing ----------------------------------------------------------- */

/* A mark that asks which are new takes all that are, and marks the others. */
static size_t orders_of(enum seen_users_change kind,
                        const seen_users_request *r)
{
    if (r->n == 0) return 0;
    return kind == SEEN_USERS_MARK && r->fresh ? 2 : 1;
}

static bool put_request(struct order *o, const struct remote *m,
                        enum seen_users_change kind,
                        const seen_users_request *r)
{
    if (r->n == 0) return true;
    if (kind == SEEN_USERS_TAKE)
        return put_order(o, m, TAKE, r->user, r->items, r->n, r->count);
    if (!r->fresh) return put_order(o, m, MARK, r->user, r->items, r->n, 0);
    return put_order(o, m, TAKE, r->user, r->items, r->n, r->n) &&
           put_order(o + 1, m, MARK, r->user, r->items, r->n, 0);
}

static seen_status read_request(const struct order *o,
                                enum seen_users_change kind,
                                seen_users_request *r)
{
    bool *chosen = NULL;
    for (size_t i = 0; i < orders_of(kind, r); i++)
        if (o[i].k.status != SEEN_OK) return o[i].k.status;
    r->taken = 0;
    if (r->n == 0 || (kind == SEEN_USERS_MARK && !r->fresh)) return SEEN_OK;
    chosen = malloc(r->n * sizeof *chosen);
    if (!chosen) return SEEN_NOMEM;
    seen_status status = read_chosen(o->k.reply, r->items, r->n, chosen);
    for (size_t i = 0; status == SEEN_OK && i < r->n; i++) {
        if (kind == SEEN_USERS_MARK)
            r->fresh[i] = chosen[i];
        else if (chosen[i])
            r->items[r->taken++] = r->items[i];
    }
    free(chosen);
    return status;
}

static seen_status change(struct seen_users *u, enum seen_users_change kind,
                          uint64_t now, seen_users_request *r, size_t n)
{
    struct remote *m = (struct remote *)u;
    size_t count = 0, at = 0;
    (void)now;
    for (size_t i = 0; i < n; i++)
        count += orders_of(kind, &r[i]);
    struct order *o = calloc(count + 1, sizeof *o);
    seen_status status = o ? SEEN_OK : SEEN_NOMEM;
    for (size_t i = 0; status == SEEN_OK && i < n; i++) {
        if (!put_request(o + at, m, kind, &r[i])) status = SEEN_NOMEM;
        at += orders_of(kind, &r[i]);
    }
    bool sent = status == SEEN_OK;
    if (sent && count) (void)carry_out(m, o, count); /* each has a status */
    at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t mine = orders_of(kind, &r[i]);
        r[i].status = sent ? read_request(o + at, kind, &r[i]) : status;
        if (r[i].status == SEEN_CORRUPT) r[i].status = strange(m, "SEEN.TAKE");
        at += mine;
    }
    for (size_t i = 0; i < n && status == SEEN_OK; i++)
        status = r[i].status;
    if (o) done(o, count);
    return status;
}

static seen_status forget_some(struct remote *m, seen_key user,
                               const seen_key *items, size_t n, bool *changed)
{
    struct order *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    seen_status status =
        begin(o, m, "SEEN.FORGET", user, n) ? SEEN_OK : SEEN_NOMEM;
    o->k.repeatable = true;
    if (status == SEEN_OK && m->policy[0]) {
        add_text(o, "POLICY");
        add_text(o, m->policy);
    }
    if (status == SEEN_OK && n) (void)add_items(o, items, n, 0);
    if (status == SEEN_OK) status = carry_out(m, o, 1);
    if (status == SEEN_OK) *changed = o->k.reply->integer != 0;
    done(o, 1);
    return status;
}

static seen_status forget(struct seen_users *u, seen_key user, uint64_t now,
                          const seen_key *items, size_t n)
{
    bool changed;
    (void)now;
    return n ? forget_some((struct remote *)u, user, items, n, &changed)
             : SEEN_OK;
}

static seen_status forget_user(struct seen_users *u, seen_key user,
                               uint64_t now, bool *known)
{
    (void)now;
    return forget_some((struct remote *)u, user, NULL, 0, known);
}

/* ---- Records ------------------------------------------------------------ */

/* The record of an envelope (module/exposure.h), and its policy. */
static seen_status open_envelope(const redisReply *reply, seen_record *record,
                                 seen_policy *policy)
{
    static const uint8_t magic[8] = {0x89, 'S', 'E', 'E', 'N', 'X', 'P', 0x1a};
    if (reply->type == REDIS_REPLY_NIL) return SEEN_ABSENT;
    if (reply->type != REDIS_REPLY_STRING || reply->len < ENVELOPE)
        return SEEN_CORRUPT;
    const uint8_t *p = (const uint8_t *)reply->str;
    if (memcmp(p, magic, sizeof magic) != 0) return SEEN_CORRUPT;
    if (seen_get_le32(p + 8) != 1) return SEEN_NEWER;
    uint64_t fpp = seen_get_le64(p + 24);
    *policy = (seen_policy){.items = seen_get_le32(p + 12),
                            .generations = seen_get_le32(p + 16),
                            .ttl = seen_get_le64(p + 32)};
    memcpy(&policy->fpp, &fpp, sizeof fpp);
    if (seen_policy_problem(policy)) return SEEN_CORRUPT;
    *record = (seen_record){p + ENVELOPE, reply->len - ENVELOPE};
    return SEEN_OK;
}

/* What a record holds can be told without its secret. */
static seen_status info_in(const redisReply *reply, uint64_t now,
                           seen_record *record, seen_exposure_info *info)
{
    static const uint8_t none[16];
    seen_policy policy;
    seen_exposure *x;
    seen_status status = open_envelope(reply, record, &policy);
    if (status == SEEN_OK) status = seen_exposure_new(&x, &policy, none, NULL);
    if (status != SEEN_OK) return status;
    x->check = ANY_SECRET;
    status = seen_exposure_info_of(x, *record, now, info);
    if (status == SEEN_OK && info->generations == 0) status = SEEN_ABSENT;
    seen_exposure_free(x);
    return status;
}

static seen_status export(struct remote *m, seen_key user, struct order **out)
{
    struct order *o = calloc(1, sizeof *o);
    if (!o) return SEEN_NOMEM;
    seen_status status =
        begin(o, m, "SEEN.EXPORT", user, 0) ? SEEN_OK : SEEN_NOMEM;
    o->k.repeatable = true;
    if (status == SEEN_OK && m->policy[0]) {
        add_text(o, "POLICY");
        add_text(o, m->policy);
    }
    if (status == SEEN_OK) status = carry_out(m, o, 1);
    if (status == SEEN_OK)
        *out = o;
    else
        done(o, 1);
    return status;
}

static seen_status info_of(struct seen_users *u, seen_key user, uint64_t now,
                           seen_exposure_info *info)
{
    struct order *o;
    seen_record record;
    seen_status status = export((struct remote *)u, user, &o);
    if (status != SEEN_OK) return status;
    status = info_in(o->k.reply, now, &record, info);
    done(o, 1);
    return status;
}

static seen_status copy_record(struct seen_users *u, seen_key user, void *buf,
                               size_t cap, size_t *len)
{
    struct order *o;
    seen_record record;
    seen_policy policy;
    seen_status status = export((struct remote *)u, user, &o);
    if (status != SEEN_OK) return status;
    status = open_envelope(o->k.reply, &record, &policy);
    if (status == SEEN_OK) {
        *len = record.len;
        status = record.len > cap ? SEEN_SHORT : SEEN_OK;
        if (status == SEEN_OK) memcpy(buf, record.data, record.len);
    }
    done(o, 1);
    return status;
}

/* ---- All users ---------------------------------------------------------- */

struct walk {
    struct remote *m;
    uint64_t now;
    bool (*each)(void *ctx, const seen_users_entry *entry);
    void *ctx;
    bool stopped;
    char cursor[32];
};

/* The keys of one SCAN: export them all in one pipeline. */
static seen_status walk_keys(struct walk *k, const redisReply *keys)
{
    struct remote *m = k->m;
    size_t n = keys->elements, prefix = strlen(m->prefix);
    struct order *o = calloc(n + 1, sizeof *o);
    seen_status status = o ? SEEN_OK : SEEN_NOMEM;
    for (size_t i = 0; i < n && status == SEEN_OK; i++) {
        const redisReply *key = keys->element[i];
        bool ours = key->type == REDIS_REPLY_STRING && key->len > prefix;
        seen_key user = {ours ? key->str + prefix : "",
                         ours ? key->len - prefix : 0};
        if (!begin(&o[i], m, "SEEN.EXPORT", user, 0)) status = SEEN_NOMEM;
        o[i].k.repeatable = true;
    }
    if (status == SEEN_OK && n) (void)carry_out(m, o, n);
    for (size_t i = 0; i < n && status == SEEN_OK && !k->stopped; i++) {
        seen_users_entry e = {
            .user = {o[i].key + prefix, o[i].len[1] - prefix}};
        if (o[i].k.status == SEEN_IO) status = SEEN_IO;
        if (o[i].k.status != SEEN_OK || e.user.len == 0 ||
            o[i].k.reply->type == REDIS_REPLY_NIL) /* gone meanwhile */
            continue;
        e.status = info_in(o[i].k.reply, k->now, &e.record, &e.info);
        k->stopped = !k->each(k->ctx, &e);
    }
    if (o) done(o, n);
    return status;
}

static seen_status walk_page(void *ctx, redisReply *reply, uint16_t node)
{
    struct walk *k = ctx;
    (void)node;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[0]->len >= sizeof k->cursor ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return strange(k->m, "SCAN");
    memcpy(k->cursor, reply->element[0]->str, reply->element[0]->len + 1);
    return walk_keys(k, reply->element[1]);
}

/* A pattern that matches the prefix itself. */
static void quote(const char *prefix, char *to)
{
    for (; *prefix; prefix++) {
        if (strchr("*?[]\\", *prefix)) *to++ = '\\';
        *to++ = *prefix;
    }
    *to++ = '*';
    *to = '\0';
}

struct paging {
    struct walk *walk;
    struct seen_pool_link *link;
    uint16_t node, wanted;
    bool found;
};

/* Nodes are walked one after the other: SCAN's cursor is a node's own. */
static seen_status page_of_node(void *ctx, redisReply *reply, uint16_t node)
{
    struct paging *p = ctx;
    if (p->found || node < p->wanted) return SEEN_OK;
    p->found = true;
    p->node = node;
    return walk_page(p->walk, reply, node);
}

static seen_status
each(struct seen_users *u, uint64_t now,
     bool (*each_one)(void *ctx, const seen_users_entry *entry), void *ctx)
{
    struct walk k = {
        .m = (struct remote *)u, .now = now, .each = each_one, .ctx = ctx};
    char pattern[2 * PREFIX_MOST + 2];
    quote(k.m->prefix, pattern);
    seen_store_report r = {0};
    struct paging p = {.walk = &k};
    seen_status status = seen_pool_take(&k.m->pool, &p.link, &r);
    while (status == SEEN_OK && !k.stopped) {
        strcpy(k.cursor, "0");
        do {
            const char *argv[] = {"SCAN",  k.cursor,   "MATCH", pattern,
                                  "COUNT", SCAN_COUNT, "TYPE",  TYPE_OF_USER};
            struct seen_command scan = {.argc = 8, .argv = argv};
            p.found = false;
            status = seen_redis_each_node(p.link->client, &scan, page_of_node,
                                          &p, &r);
            if (p.found) p.wanted = p.node;
        } while (status == SEEN_OK && p.found && !k.stopped &&
                 strcmp(k.cursor, "0") != 0);
        if (!p.found) break;
        p.wanted = (uint16_t)(p.node + 1);
    }
    if (p.link) seen_pool_return(&k.m->pool, p.link);
    if (status != SEEN_OK) seen_pool_tell(&k.m->pool, &r);
    return status;
}

/* ---- The whole store ---------------------------------------------------- */

static seen_status sync_nothing(struct seen_users *u)
{
    (void)u;
    return SEEN_OK; /* when a change is on disk is the server's business */
}

static seen_status sweep(struct seen_users *u, uint64_t now, uint64_t *removed)
{
    seen_store_report r = {0};
    (void)now, (void)removed;
    seen_report(&r, SEEN_UNSUPPORTED, "old users expire on the server");
    seen_pool_tell(&((struct remote *)u)->pool, &r);
    return SEEN_UNSUPPORTED;
}

static seen_status backup(struct seen_users *u, const char *dir,
                          seen_store_report *r)
{
    (void)u, (void)dir;
    return seen_report(r, SEEN_UNSUPPORTED,
                       "the server makes its own backups: BGSAVE");
}

static seen_status stats(struct seen_users *u, seen_users_stats *out)
{
    (void)u;
    *out = (seen_users_stats){0};
    return SEEN_OK;
}

static const char *problem(const struct seen_users *u)
{
    return ((const struct remote *)u)->pool.problem;
}

/* ---- Life --------------------------------------------------------------- */

static seen_status close_remote(struct seen_users *u)
{
    struct remote *m = (struct remote *)u;
    seen_pool_close(&m->pool);
    free(m);
    return SEEN_OK;
}

static const struct seen_users_ops ops = {
    .close = close_remote,
    .problem = problem,
    .ask = ask,
    .change = change,
    .forget = forget,
    .forget_user = forget_user,
    .info_of = info_of,
    .record = copy_record,
    .each = each,
    .sync = sync_nothing,
    .sweep = sweep,
    .backup = backup,
    .stats = stats,
};

static seen_status read_url(struct remote *m, seen_store_report *r)
{
    const char *prefix = seen_url_param(&m->pool.url, "prefix");
    if (prefix && strlen(prefix) >= sizeof m->prefix)
        return seen_report(r, SEEN_INVALID, "URL: the prefix is too long");
    strcpy(m->prefix, prefix ? prefix : "seen:");
    return seen_url_done(&m->pool.url, r);
}

/* Does the server know the commands? */
static seen_status look_for_module(struct remote *m, seen_store_report *r)
{
    const char *argv[] = {"COMMAND", "INFO", "SEEN.TAKE"};
    const size_t len[] = {7, 4, 9};
    struct seen_command k = {
        .argc = 3, .argv = argv, .len = len, .repeatable = true};
    seen_status status = seen_pool_run(&m->pool, &k, 1);
    if (status != SEEN_OK) return seen_report(r, status, "%s", m->pool.problem);
    const redisReply *reply = k.reply;
    bool known = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
                 reply->element[0]->type == REDIS_REPLY_ARRAY;
    seen_redis_done(&k, 1);
    if (known) return SEEN_OK;
    return seen_report(r, SEEN_UNSUPPORTED,
                       "the server has no SEEN.* commands: load seen.so");
}

seen_status seen_users_open_redis(struct seen_users **u, const char *where,
                                  const seen_users_options *options,
                                  seen_store_report *r)
{
    struct remote *m = calloc(1, sizeof *m);
    if (!m) return SEEN_NOMEM;
    m->head.ops = &ops;
    seen_status status = seen_pool_open(&m->pool, where, false, r);
    if (status == SEEN_OK) status = read_url(m, r);
    if (status == SEEN_OK && options->secret)
        status = seen_report(r, SEEN_INVALID,
                             "the server has the secret: secret-file, when "
                             "seen.so is loaded");
    if (status == SEEN_OK && options->policy) {
        const seen_policy *p = options->policy;
        snprintf(m->policy, sizeof m->policy,
                 "items=%u,generations=%u,fpp=%.17g,ttl=%llums",
                 p->items ? p->items : 1000,
                 p->generations ? p->generations : 5,
                 p->fpp != 0 ? p->fpp : 0.001,
                 (unsigned long long)(p->ttl ? p->ttl : 432000000));
    }
    if (status == SEEN_OK) status = look_for_module(m, r);
    if (status == SEEN_OK)
        *u = &m->head;
    else
        close_remote(&m->head);
    return status;
}
