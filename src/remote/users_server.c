/* users_server.c - see users_server.h. */
#include "remote/users_server.h"

#include "base/error.h"
#include "base/keys.h"

#include <stdlib.h>
#include <string.h>

#define SCAN_COUNT "1000"
#define CURSOR     32 /* bytes of one, with a NUL */

/* ---- Life --------------------------------------------------------------- */

seen_status seen_server_open(struct seen_server *m, const char *where,
                             const char *standard, seen_error *error)
{
    seen_status status = seen_pool_open(&m->pool, where, false, error);
    if (status != SEEN_OK) return status;
    const char *prefix = seen_url_param(&m->pool.url, "prefix");
    if (prefix && strlen(prefix) >= sizeof m->prefix)
        return seen_fail(error, SEEN_INVALID, "url",
                         "URL: a prefix of %zu bytes: expected up to %zu",
                         strlen(prefix), sizeof m->prefix - 1);
    strcpy(m->prefix, prefix ? prefix : standard);
    return SEEN_OK;
}

seen_status seen_server_close(struct seen_users *u, seen_error *error)
{
    (void)error;
    seen_pool_close(&((struct seen_server *)u)->pool);
    free(u);
    return SEEN_OK;
}

/* ---- Commands ----------------------------------------------------------- */

bool seen_command_begin(struct seen_server_command *o,
                        const struct seen_server *m, seen_key user, size_t more)
{
    size_t prefix = strlen(m->prefix);
    o->argv = calloc(SEEN_COMMAND_WORDS + more, sizeof *o->argv);
    o->len = calloc(SEEN_COMMAND_WORDS + more, sizeof *o->len);
    o->key = malloc(prefix + user.len);
    if (!o->argv || !o->len || !o->key) return false;
    memcpy(o->key, m->prefix, prefix);
    memcpy(o->key + prefix, user.data, user.len);
    return true;
}

void seen_command_add(struct seen_server_command *o, const void *bytes,
                      size_t len)
{
    o->argv[o->k.argc] = bytes;
    o->len[o->k.argc++] = len;
}

void seen_command_text(struct seen_server_command *o, const char *text)
{
    seen_command_add(o, text, strlen(text));
}

void seen_command_key(struct seen_server_command *o,
                      const struct seen_server *m, seen_key user)
{
    o->k.key = o->k.argc;
    seen_command_add(o, o->key, strlen(m->prefix) + user.len);
}

seen_status seen_commands_run(struct seen_server *m,
                              struct seen_server_command *o, size_t n,
                              seen_error *error)
{
    struct seen_command *k = calloc(n, sizeof *k);
    for (size_t i = 0; i < n; i++) {
        o[i].k.argv = o[i].argv;
        o[i].k.len = o[i].len;
        o[i].k.status = SEEN_NOMEM; /* until it is sent */
        if (k) k[i] = o[i].k;
    }
    if (!k) return SEEN_NOMEM;
    seen_status status = seen_pool_run(&m->pool, k, n, error);
    for (size_t i = 0; i < n; i++)
        o[i].k = k[i];
    free(k);
    return status;
}

void seen_commands_done(struct seen_server_command *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        seen_redis_done(&o[i].k, 1);
        free(o[i].argv);
        free(o[i].len);
        free(o[i].key);
        free(o[i].packed);
    }
    free(o);
}

/* ---- Items --------------------------------------------------------------- */

bool seen_pairs_make(struct seen_pairs *p, seen_keys items)
{
    *p = (struct seen_pairs){.at = items.data};
    if (items.layout == SEEN_PAIRS || items.n == 0) return true;
    p->made = malloc(items.n * (sizeof *p->made + 8));
    if (!p->made) return false;
    seen_keys_pairs(items, 0, items.n, p->made, (uint8_t *)(p->made + items.n));
    p->at = p->made;
    return true;
}

void seen_pairs_free(struct seen_pairs *p)
{
    free(p->made);
}

/* ---- All users ---------------------------------------------------------- */

/*
 * Primaries are walked one after the other, each by its own cursor, which means
 * nothing to another, and nothing to the same one after a restart: with the
 * connection the walk is lost. So it is if slots move meanwhile: a user may have
 * gone to where we have been already.
 */
struct walk {
    struct seen_server *m;
    uint64_t now_ms;
    bool (*each)(void *ctx, const seen_users_entry *entry);
    void *ctx;
    bool stopped;
    seen_error *error;
    char pattern[2 * SEEN_PREFIX_MAX + 2];
};

/* The users in a page of keys. One without a name is nobody's. */
static seen_status read_names(struct walk *k, const struct redisReply *keys,
                              size_t n, seen_key *user)
{
    const struct seen_server *m = k->m;
    size_t prefix = strlen(m->prefix);
    for (size_t i = 0; i < n; i++) {
        const struct redisReply *name = seen_reply_at(keys, i);
        seen_key key;
        if (!seen_reply_string(name, &key) || key.len < prefix ||
            memcmp(key.data, m->prefix, prefix) != 0)
            return seen_pool_strange("SCAN", name, "a key with the prefix",
                                     k->error);
        user[i] = (seen_key){(const char *)key.data + prefix, key.len - prefix};
    }
    return SEEN_OK;
}

/* The keys of one SCAN: ask for them all in one pipeline. */
static seen_status walk_keys(struct walk *k, const struct redisReply *keys,
                             size_t n)
{
    struct seen_server *m = k->m;
    struct seen_server_command *o = calloc(n + 1, sizeof *o);
    seen_key *user = calloc(n + 1, sizeof *user);
    seen_status status = o && user ? SEEN_OK : SEEN_NOMEM;
    if (status == SEEN_OK) status = read_names(k, keys, n, user);
    for (size_t i = 0; i < n && status == SEEN_OK; i++)
        if (!k->m->reader->put(&o[i], m, user[i])) status = SEEN_NOMEM;
    if (status == SEEN_OK && n)
        (void)seen_commands_run(m, o, n, k->error); /* each has a status */
    for (size_t i = 0; i < n && status == SEEN_OK && !k->stopped; i++) {
        seen_users_entry e = {.user = user[i]};
        status = o[i].k.status;
        if (status != SEEN_OK) break;
        if (e.user.len == 0) continue;
        if (k->m->reader->gone && k->m->reader->gone(o[i].k.reply)) continue;
        k->m->reader->read(m, o[i].k.reply, k->now_ms, &e);
        k->stopped = !k->each(k->ctx, &e);
    }
    if (o) seen_commands_done(o, n);
    free(user);
    return status;
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

/* A page: the users in it, and where the next one begins. */
static seen_status walk_page(struct walk *k, const struct redisReply *reply,
                             char cursor[CURSOR])
{
    size_t parts, n;
    seen_key next;
    uint64_t digits;
    if (!seen_reply_array(reply, &parts) || parts != 2 ||
        !seen_reply_string(seen_reply_at(reply, 0), &next) ||
        next.len >= CURSOR || strlen(next.data) != next.len ||
        !seen_url_digits(next.data, UINT64_MAX, &digits) ||
        !seen_reply_array(seen_reply_at(reply, 1), &n))
        return seen_pool_strange("SCAN", reply, "a cursor and keys", k->error);
    memcpy(cursor, next.data, next.len + 1);
    return walk_keys(k, seen_reply_at(reply, 1), n);
}

static seen_status walk_primary(struct walk *k, seen_redis *client,
                                uint16_t primary)
{
    char cursor[CURSOR] = "0";
    bool first = true;
    seen_status status = SEEN_OK;
    while (status == SEEN_OK && !k->stopped &&
           (first || strcmp(cursor, "0") != 0)) {
        const char *argv[] = {"SCAN",  cursor,     "MATCH", k->pattern,
                              "COUNT", SCAN_COUNT, "TYPE",  k->m->reader->type};
        struct seen_command scan = {
            .argc = 8, .argv = argv, .primary = primary, .repeatable = first};
        status = seen_redis_run(client, &scan, 1, k->error);
        if (status == SEEN_OK) status = walk_page(k, scan.reply, cursor);
        seen_redis_done(&scan, 1);
        first = false;
    }
    return status;
}

static seen_status walk_all(struct walk *k, seen_redis *client)
{
    struct seen_primaries before, after;
    seen_status status = seen_redis_primaries(client, &before, k->error);
    for (size_t i = 0; status == SEEN_OK && !k->stopped && i < before.n; i++)
        status = walk_primary(k, client, before.at[i]);
    if (status == SEEN_OK && !k->stopped)
        status = seen_redis_primaries(client, &after, k->error);
    if (status == SEEN_OK && !k->stopped && after.map != before.map)
        status = seen_fail(k->error, SEEN_BUSY, NULL,
                           "slots of the cluster have moved meanwhile: users "
                           "may be missing: try again");
    return status;
}

seen_status seen_server_each(struct seen_users *u, uint64_t now_ms,
                             bool (*each)(void *ctx,
                                          const seen_users_entry *entry),
                             void *ctx, seen_error *error)
{
    struct seen_server *m = (struct seen_server *)u;
    struct walk k = {
        .m = m, .now_ms = now_ms, .each = each, .ctx = ctx, .error = error};
    struct seen_connection *connection;
    quote(m->prefix, k.pattern);
    seen_status status = seen_pool_take(&m->pool, &connection, error);
    if (status != SEEN_OK) return status;
    status = walk_all(&k, connection->client);
    seen_pool_return(&m->pool, connection);
    return status;
}

/* ---- What the server does by itself ------------------------------------- */

seen_status seen_server_sync(struct seen_users *u, seen_error *error)
{
    (void)u, (void)error;
    return SEEN_OK; /* when a change is on disk is the server's business */
}

seen_status seen_server_sweep(struct seen_users *u, uint64_t now_ms,
                              uint64_t *removed, seen_error *error)
{
    (void)u, (void)now_ms, (void)removed;
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "old users expire on the server: there is nothing to do");
}

seen_status seen_server_backup(struct seen_users *u, const char *dir,
                               seen_error *error)
{
    (void)u, (void)dir;
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "the server makes its own backups: BGSAVE");
}

seen_status seen_server_stats(struct seen_users *u, seen_users_stats *stats,
                              seen_error *error)
{
    (void)error;
    *stats = (seen_users_stats){.policy = ((struct seen_server *)u)->policy};
    return SEEN_OK;
}
