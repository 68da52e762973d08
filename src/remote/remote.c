/* remote.c - the calls of seen_remote.h: find the kind, connect, ask it. */
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/out.h"
#include "store/outcome.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BITS_MAX ((uint64_t)1 << 32) /* of a string: 512 MB */
#define TTL_MAX  ((uint64_t)1 << 48) /* milliseconds: 8,900 years */

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
        return seen_fail(error, SEEN_INVALID, "key", "URL: expected %s",
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
        seen_url_number(&m->pool.url, "bits", BITS_MAX,
                        create ? create->bits : 0, &m->bits, error);
    if (status == SEEN_OK && (m->bits == 0 || m->bits > BITS_MAX))
        status = seen_fail(error, SEEN_INVALID, "bits",
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

static seen_status check_type(seen_remote *m, const char *key,
                              seen_error *error)
{
    const char *argv[] = {"TYPE", key};
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, 2, argv, true, error);
    const char *type = status == SEEN_OK ? seen_reply_status(k.reply) : NULL;
    if (status == SEEN_OK && !type)
        status = seen_pool_strange("TYPE", k.reply, "a status", error);
    else if (type && strcmp(type, "none") != 0 && !fits(m->ops, type))
        status =
            seen_fail(error, SEEN_INVALID, "key",
                      "%.100s: is a %.30s on the server, expected %s: "
                      "give another key",
                      key, type, m->ops->type ? "a string" : "a BF filter");
    seen_redis_done(&k, 1);
    return status;
}

/* Another type of key gets a word of its own. Who may not ask for types is told
 * by the commands that follow. */
static seen_status look_at_type(seen_remote *m, seen_error *error)
{
    seen_error found = {0};
    seen_status status = check_type(m, m->key, &found);
    if (status != SEEN_INVALID && status != SEEN_CORRUPT) return SEEN_OK;
    return seen_fail_as(error, status, &found);
}

/* ---- Life --------------------------------------------------------------- */

/* What no filter on a server can be. Which of the other fields one needs, it says
 * itself. */
static seen_status check_spec(const seen_spec *create, seen_error *error)
{
    for (size_t i = 0; i < sizeof create->reserved / sizeof *create->reserved;
         i++)
        if (create->reserved[i])
            return seen_fail(error, SEEN_INVALID, "reserved",
                             "create->reserved[%zu] is not 0: clear the spec "
                             "before you set it",
                             i);
    if (create->flags)
        return seen_fail(error, SEEN_INVALID, "flags",
                         "flags 0x%x: expected 0, the server decides how keys "
                         "are hashed",
                         create->flags);
    if (create->kind != SEEN_ANY)
        return seen_fail(error, SEEN_INVALID, "kind",
                         "kind %d: expected SEEN_ANY, the URL says what kind "
                         "of filter it is",
                         (int)create->kind);
    return SEEN_OK;
}

seen_status seen_remote_open(seen_remote **out, const char *url,
                             const seen_spec *create, seen_outcome *outcome,
                             seen_error *error)
{
    seen_outcome did = {0};
    const char *rest = NULL;
    seen_error_begin(error);
    if (!out || !url || !seen_outcome_ok(outcome))
        return seen_fail(error, SEEN_INVALID,
                         !out   ? "m"
                         : !url ? "url"
                                : "outcome",
                         "expected m and url, and sizeof (seen_outcome) in "
                         "outcome.size");
    const struct seen_remote_ops *ops = find(url, &rest);
    if (!ops)
        return seen_fail(error, SEEN_UNSUPPORTED, "url",
                         strncmp(url, "rediss:", 7) == 0
                             ? "TLS is not offered: use redis:// and a tunnel"
                             : "no filter on a server has such a URL: expected "
                               "redis://, redis+plain://, redis+gozero:// or "
                               "redis+bitmap://");
    seen_status status = create ? check_spec(create, error) : SEEN_OK;
    if (status != SEEN_OK) return status;
    seen_remote *m = seen_alloc_zeroed(&seen_system_memory, sizeof *m);
    if (!m) return seen_error_end(error, SEEN_NOMEM);
    m->ops = ops;
    status = seen_pool_open(&m->pool, rest, ops->key_in_path, error);
    if (status == SEEN_OK) status = find_key(m, error);
    if (status == SEEN_OK) status = find_bits(m, create, error);
    if (status == SEEN_OK) status = seen_url_done(&m->pool.url, error);
    if (status == SEEN_OK) status = look_at_type(m, error);
    if (status == SEEN_OK && ops->open)
        status = ops->open(m, create, &did, error);
    seen_outcome_tell(outcome, &did);
    if (status == SEEN_OK)
        *out = m;
    else
        seen_remote_close(m);
    return seen_error_end(error, status);
}

void seen_remote_close(seen_remote *m)
{
    if (!m) return;
    if (m->ops->close && m->own) m->ops->close(m);
    seen_pool_close(&m->pool);
    seen_release(&seen_system_memory, m, sizeof *m);
}

seen_status seen_remote_do(seen_remote *m, struct seen_command *k, int argc,
                           const char **argv, bool repeatable,
                           seen_error *error)
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
    seen_status status = seen_pool_run(&m->pool, k, 1, error);
    k->len = NULL;
    return status;
}

seen_status seen_remote_number(seen_remote *m, const char *command,
                               uint64_t *out, seen_error *error)
{
    const char *argv[] = {command, m->key};
    struct seen_command k;
    int64_t number = 0;
    seen_status status = seen_remote_do(m, &k, 2, argv, true, error);
    if (status == SEEN_OK &&
        !seen_reply_integer(k.reply, 0, INT64_MAX, &number))
        status = seen_pool_strange(command, k.reply, "a number", error);
    if (status == SEEN_OK) *out = (uint64_t)number;
    seen_redis_done(&k, 1);
    return status;
}

seen_status seen_remote_flag(seen_remote *m, int argc, const char **argv,
                             bool repeatable, bool *out, seen_error *error)
{
    struct seen_command k;
    seen_status status = seen_remote_do(m, &k, argc, argv, repeatable, error);
    if (status == SEEN_OK && !seen_reply_flag(k.reply, out))
        status = seen_pool_strange(argv[0], k.reply, "0 or 1", error);
    seen_redis_done(&k, 1);
    return status;
}

seen_status seen_remote_length(seen_remote *m, uint64_t *len, bool *longer,
                               seen_error *error)
{
    seen_status status = seen_remote_number(m, "STRLEN", len, error);
    if (status == SEEN_OK) *longer = *len > (m->bits + 7) / 8;
    return status;
}

seen_status seen_remote_check_create(const seen_spec *create, seen_error *error)
{
    if (!create->items)
        return seen_fail(error, SEEN_INVALID, "items",
                         "items is 0: expected how many keys it is for");
    if (create->fpp > 0 && create->fpp < 1) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, "fpp",
                     "fpp %g: expected above 0 and below 1", create->fpp);
}

seen_status seen_remote_absent(const seen_remote *m, seen_error *error)
{
    return seen_fail(error, SEEN_ABSENT, "key",
                     "%.100s: no such key on the server: check the name, or "
                     "create the filter",
                     m->key);
}

/* ---- Keys --------------------------------------------------------------- */

static seen_status check(const seen_remote *m, bool there, const char *field,
                         seen_error *error)
{
    seen_error_begin(error);
    if (m && there) return SEEN_OK;
    return seen_fail(error, SEEN_INVALID, m ? field : "m", "%s is NULL",
                     m ? field : "m");
}

static seen_status check_keys(const seen_remote *m, seen_keys keys,
                              seen_error *error)
{
    seen_status status = check(m, true, NULL, error);
    if (status != SEEN_OK) return status;
    if (seen_keys_check(keys) != SEEN_OK)
        return seen_fail(error, SEEN_INVALID, "keys",
                         "keys: expected a layout of seen_keys, with a stride "
                         "above 0, offsets that do not run backwards or beyond "
                         "len, and no NULL where there are bytes");
    if (seen_keys_are_hashes(keys))
        return seen_fail(error, SEEN_UNSUPPORTED, "keys",
                         "keys are hashes: a filter on a server takes the keys "
                         "themselves");
    return SEEN_OK;
}

seen_status seen_remote_maybe_many(seen_remote *m, seen_keys keys,
                                   bool *answers, seen_error *error)
{
    seen_status status = check_keys(m, keys, error);
    if (status == SEEN_OK)
        status = check(m, answers || !keys.n, "answers", error);
    if (status == SEEN_OK && keys.n)
        status = m->ops->send(m, false, keys, answers, error);
    return seen_error_end(error, status);
}

seen_status seen_remote_add_many(seen_remote *m, seen_keys keys, bool *fresh,
                                 seen_error *error)
{
    seen_status status = check_keys(m, keys, error);
    if (status == SEEN_OK && keys.n)
        status = m->ops->send(m, true, keys, fresh, error);
    for (size_t i = 0; status == SEEN_OK && fresh && i < keys.n; i++)
        fresh[i] = !fresh[i];
    return seen_error_end(error, status);
}

seen_status seen_remote_remove_many(seen_remote *m, seen_keys keys,
                                    bool *removed, seen_error *error)
{
    seen_status status = check_keys(m, keys, error);
    if (status == SEEN_OK && !m->ops->remove)
        status = seen_fail(error, SEEN_UNSUPPORTED, "m",
                           "%s: keys cannot be removed one by one, except "
                           "from redis+bitmap://",
                           m->ops->scheme);
    if (status == SEEN_OK && keys.n)
        status = m->ops->remove(m, keys, removed, error);
    return seen_error_end(error, status);
}

/* ---- All of it --------------------------------------------------------- */

static bool key_at(const seen_remote *m, uint64_t i, char out[SEEN_REMOTE_KEY])
{
    if (m->ops->key_at) return m->ops->key_at(m, i, out);
    memcpy(out, m->key, strlen(m->key) + 1);
    return i == 0;
}

/* No key is somebody else's: those that are there are of the right type. */
static seen_status check_types(seen_remote *m, seen_error *error)
{
    char key[SEEN_REMOTE_KEY];
    seen_status status = SEEN_OK;
    for (uint64_t i = 0; status == SEEN_OK && key_at(m, i, key); i++)
        status = check_type(m, key, error);
    return status;
}

/* A command on every key of it, with another argument if that is not NULL. Some
 * may be gone: *known, if one was there. */
static seen_status do_all(seen_remote *m, const char *command,
                          const char *argument, bool repeatable, bool *known,
                          seen_error *error)
{
    char key[SEEN_REMOTE_KEY];
    seen_status status = check_types(m, error);
    bool any = false;
    for (uint64_t i = 0; status == SEEN_OK && key_at(m, i, key); i++) {
        const char *argv[] = {command, key, argument};
        bool there = false;
        status = seen_remote_flag(m, argument ? 3 : 2, argv, repeatable, &there,
                                  error);
        any |= there;
    }
    if (status == SEEN_OK && known) *known = any;
    return status;
}

seen_status seen_remote_expire(seen_remote *m, uint64_t ttl_ms, bool *known,
                               seen_error *error)
{
    char text[24];
    seen_status status = check(m, true, NULL, error);
    if (status == SEEN_OK && (ttl_ms == 0 || ttl_ms > TTL_MAX))
        status = seen_fail(error, SEEN_INVALID, "ttl_ms",
                           "ttl_ms %llu: expected 1 to 2^48",
                           (unsigned long long)ttl_ms);
    snprintf(text, sizeof text, "%llu", (unsigned long long)ttl_ms);
    if (status == SEEN_OK)
        status = do_all(m, "PEXPIRE", text, true, known, error);
    return seen_error_end(error, status);
}

seen_status seen_remote_delete(seen_remote *m, bool *known, seen_error *error)
{
    seen_status status = check(m, true, NULL, error);
    /* Done again it might remove what somebody has made meanwhile. */
    if (status == SEEN_OK)
        status = do_all(m, "UNLINK", NULL, false, known, error);
    return seen_error_end(error, status);
}

seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info,
                                seen_error *error)
{
    seen_remote_info found = {0};
    seen_status status = check(m, info, "info", error);
    if (status == SEEN_OK && !seen_out_ok(&info->size))
        status = seen_fail(error, SEEN_INVALID, "info.size",
                           "info.size %zu: expected sizeof (seen_remote_info)",
                           info->size);
    if (status == SEEN_OK) status = m->ops->info(m, &found, error);
    if (status == SEEN_OK) status = seen_out(&info->size, &found, sizeof found);
    return seen_error_end(error, status);
}
