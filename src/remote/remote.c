/* remote.c - the calls of seen_remote.h: find the kind, connect, ask it. */
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/error.h"
#include "store/outcome.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MOST_BITS ((uint64_t)1 << 32) /* of a string: 512 MB */

static const seen_allocator system_memory;

static const struct seen_remote_ops *const kinds[] = {
#define REMOTE(ops) &ops,
#include "remote/remotes.def"
#undef REMOTE
};

static const struct seen_remote_ops *find(const char *url, const char **rest)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i]->scheme);
        if (strncmp(url, kinds[i]->scheme, len) != 0 || url[len] != ':')
            continue;
        *rest = url + len + 1;
        return kinds[i];
    }
    return NULL;
}

static seen_status find_key(seen_remote *m, seen_error *error)
{
    const char *key = seen_url_param(&m->pool.url, "key");
    if (!key && m->ops->key_in_path) key = m->pool.url.path;
    if (!key || !key[0])
        return seen_fail(error, SEEN_INVALID, NULL, "URL: expected %s",
                         m->ops->key_in_path ? "/NAME or ?key=NAME"
                                             : "?key=NAME");
    memcpy(m->key, key, strlen(key) + 1);
    return SEEN_OK;
}

static seen_status find_bits(seen_remote *m, const seen_spec *create,
                             seen_error *error)
{
    if (!m->ops->bits) return SEEN_OK;
    seen_status status =
        seen_url_number(&m->pool.url, "bits", MOST_BITS,
                        create ? create->bits : 0, &m->bits, error);
    if (status == SEEN_OK && (m->bits == 0 || m->bits > MOST_BITS))
        status = seen_fail(error, SEEN_INVALID, NULL,
                           "URL: expected bits=M, %s", m->ops->bits);
    return status;
}

/* ---- What is there ------------------------------------------------------ */

/* Is `type` what the server calls a key of a module, or what the layout has? */
static bool fits(const struct seen_remote_ops *ops, const char *type)
{
    static const char *const own[] = {"string", "list", "set",
                                      "zset",   "hash", "stream"};
    if (ops->type) return strcmp(type, ops->type) == 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(type, own[i]) == 0) return false;
    return true;
}

static seen_status check_type(seen_remote *m, const char *key)
{
    const char *argv[] = {"TYPE", key};
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, 2, argv, true);
    const char *type = status == SEEN_OK ? seen_reply_status(k.reply) : NULL;
    if (status == SEEN_OK && !type)
        status = seen_pool_strange(&m->pool, "TYPE", k.reply, "a status");
    else if (type && strcmp(type, "none") != 0 && !fits(m->ops, type))
        status =
            seen_pool_say(&m->pool, SEEN_INVALID,
                          "%.100s: is a %.30s on the server, expected %s", key,
                          type, m->ops->type ? "a string" : "a BF filter");
    seen_redis_done(&k, 1);
    return status;
}

/* Another type of key gets a word of its own. Who may not ask for types is told
 * by the commands that follow. */
static seen_status look_at_type(seen_remote *m)
{
    seen_status status = check_type(m, m->key);
    if (status == SEEN_INVALID || status == SEEN_CORRUPT) return status;
    m->pool.problem[0] = '\0';
    return SEEN_OK;
}

/* ---- Life --------------------------------------------------------------- */

seen_status seen_remote_open(seen_remote **out, const char *url,
                             const seen_spec *create, seen_outcome *outcome,
                             seen_error *error)
{
    seen_outcome did = {0};
    const char *rest = NULL;
    seen_error_begin(error);
    if (!out || !url || !seen_outcome_ok(outcome))
        return seen_error_end(error, SEEN_INVALID);
    const struct seen_remote_ops *ops = find(url, &rest);
    if (!ops)
        return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                         strncmp(url, "rediss:", 7) == 0
                             ? "TLS is not offered: use redis:// and a tunnel"
                             : "no filter on a server has such a URL");
    seen_remote *m = seen_alloc_zeroed(&system_memory, sizeof *m);
    if (!m) return SEEN_NOMEM;
    m->ops = ops;
    seen_status status =
        seen_pool_open(&m->pool, rest, ops->key_in_path, error);
    if (status == SEEN_OK) status = find_key(m, error);
    if (status == SEEN_OK) status = find_bits(m, create, error);
    if (status == SEEN_OK) status = seen_url_done(&m->pool.url, error);
    if (status == SEEN_OK) status = look_at_type(m);
    if (status == SEEN_OK && ops->open)
        status = ops->open(m, create, &did, error);
    seen_outcome_tell(outcome, &did);
    if (status != SEEN_OK) {
        seen_fail(error, status, NULL, "%s",
                  m->pool.problem[0] ? m->pool.problem : seen_strerror(status));
        seen_remote_close(m);
        return status;
    }
    *out = m;
    return SEEN_OK;
}

void seen_remote_close(seen_remote *m)
{
    if (!m) return;
    if (m->ops->close && m->own) m->ops->close(m);
    seen_pool_close(&m->pool);
    seen_release(&system_memory, m, sizeof *m);
}

seen_status seen_remote_do(seen_remote *m, struct seen_command *k, int argc,
                           const char **argv, bool repeatable)
{
    size_t len[16];
    assert(argc <= 16);
    for (int i = 0; i < argc; i++)
        len[i] = strlen(argv[i]);
    *k = (struct seen_command){.argc = argc,
                               .argv = argv,
                               .len = len,
                               .key = 1,
                               .repeatable = repeatable};
    seen_status status = seen_pool_run(&m->pool, k, 1);
    k->len = NULL;
    return status;
}

seen_status seen_remote_number(seen_remote *m, const char *command,
                               uint64_t *out)
{
    const char *argv[] = {command, m->key};
    struct seen_command k;
    int64_t number = 0;
    seen_status status = seen_remote_do(m, &k, 2, argv, true);
    if (status == SEEN_OK &&
        !seen_reply_integer(k.reply, 0, INT64_MAX, &number))
        status = seen_pool_strange(&m->pool, command, k.reply, "a number");
    if (status == SEEN_OK) *out = (uint64_t)number;
    seen_redis_done(&k, 1);
    return status;
}

seen_status seen_remote_flag(seen_remote *m, int argc, const char **argv,
                             bool repeatable, bool *out)
{
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, argc, argv, repeatable);
    if (status == SEEN_OK && !seen_reply_flag(k.reply, out))
        status = seen_pool_strange(&m->pool, argv[0], k.reply, "0 or 1");
    seen_redis_done(&k, 1);
    return status;
}

seen_status seen_remote_length(seen_remote *m, uint64_t *len, bool *longer)
{
    seen_status status = seen_remote_number(m, "STRLEN", len);
    if (status == SEEN_OK) *longer = *len > (m->bits + 7) / 8;
    return status;
}

const char *seen_remote_problem(const seen_remote *m)
{
    return seen_home_left(&m->pool.home) ? m->pool.home.sentence
                                         : m->pool.problem;
}

seen_status seen_remote_maybe_many(seen_remote *m, const seen_key *keys,
                                   size_t n, bool *answers)
{
    if (!m || (n && (!keys || !answers))) return SEEN_INVALID;
    return n ? m->ops->send(m, false, keys, n, answers) : SEEN_OK;
}

seen_status seen_remote_add_many(seen_remote *m, const seen_key *keys, size_t n,
                                 bool *fresh)
{
    if (!m || (n && !keys)) return SEEN_INVALID;
    if (n == 0) return SEEN_OK;
    seen_status status = m->ops->send(m, true, keys, n, fresh);
    for (size_t i = 0; status == SEEN_OK && fresh && i < n; i++)
        fresh[i] = !fresh[i];
    return status;
}

seen_status seen_remote_remove_many(seen_remote *m, const seen_key *keys,
                                    size_t n, bool *removed)
{
    if (!m || (n && !keys)) return SEEN_INVALID;
    if (!m->ops->remove)
        return seen_pool_say(&m->pool, SEEN_UNSUPPORTED,
                             "only a bitmap can forget single keys");
    return n ? m->ops->remove(m, keys, n, removed) : SEEN_OK;
}

/* ---- All of it --------------------------------------------------------- */

static bool key_at(const seen_remote *m, uint64_t i, char out[SEEN_REMOTE_KEY])
{
    if (m->ops->key_at) return m->ops->key_at(m, i, out);
    memcpy(out, m->key, strlen(m->key) + 1);
    return i == 0;
}

/* No key is somebody else's: those that are there are of the right type. */
static seen_status check_types(seen_remote *m)
{
    char key[SEEN_REMOTE_KEY];
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; status == SEEN_OK && key_at(m, i, key); i++) {
        status = check_type(m, key);
    }
    return status;
}

/* A command on every key of it, with another argument if that is not NULL. Some
 * may be gone: *known, if one was there. */
static seen_status do_all(seen_remote *m, const char *command,
                          const char *argument, bool repeatable, bool *known)
{
    char key[SEEN_REMOTE_KEY];
    seen_status status = check_types(m);
    bool any = false;
    for (uint64_t i = 0; status == SEEN_OK && key_at(m, i, key); i++) {
        const char *argv[] = {command, key, argument};
        bool there = false;
        status =
            seen_remote_flag(m, argument ? 3 : 2, argv, repeatable, &there);
        any |= there;
    }
    if (status == SEEN_OK && known) *known = any;
    return status;
}

seen_status seen_remote_expire(seen_remote *m, uint64_t ms, bool *known)
{
    char text[24];
    if (!m || ms == 0 || ms > (uint64_t)1 << 48) return SEEN_INVALID;
    snprintf(text, sizeof text, "%llu", (unsigned long long)ms);
    return do_all(m, "PEXPIRE", text, true, known);
}

seen_status seen_remote_delete(seen_remote *m, bool *known)
{
    /* Done again it might remove what somebody has made meanwhile. */
    return m ? do_all(m, "UNLINK", NULL, false, known) : SEEN_INVALID;
}

seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info)
{
    if (!m || !info) return SEEN_INVALID;
    *info = (seen_remote_info){0};
    return m->ops->info(m, info);
}
