/* pool.c - see pool.h. */
#include "redis/pool.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* The first line of a file, without what ends it. */
static seen_status read_password(struct seen_url *url, seen_error *error)
{
    const char *path = seen_url_param(url, "password-file");
    if (!path) return SEEN_OK;
    if (url->password[0])
        return seen_fail(error, SEEN_INVALID, "url",
                         "URL: a password and a password-file: give one");
    FILE *f = fopen(path, "re");
    if (!f) return seen_fail_io(error, "url", path);
    char line[sizeof url->password + 2];
    size_t len = fread(line, 1, sizeof line, f);
    bool failed = ferror(f);
    fclose(f);
    if (failed) return seen_fail_io(error, "url", path);
    const char *end = memchr(line, '\n', len);
    if (end) len = (size_t)(end - line);
    if (len && line[len - 1] == '\r') len--;
    if (len == 0 || len >= sizeof url->password || memchr(line, '\0', len))
        return seen_fail(error, SEEN_INVALID, "url",
                         "%.100s: expected a password of 1 to %zu bytes, in "
                         "a line",
                         path, sizeof url->password - 1);
    memcpy(url->password, line, len);
    url->password[len] = '\0';
    return SEEN_OK;
}

seen_status seen_pool_open(struct seen_pool *p, const char *rest,
                           bool key_in_path, seen_error *error)
{
    uint64_t db = 0;
    *p = (struct seen_pool){0};
    pthread_mutex_init(&p->lock, NULL);
    seen_home_settle(&p->home);
    seen_status status = seen_url_parse(rest, &p->url, error);
    if (status == SEEN_OK) status = read_password(&p->url, error);
    if (status != SEEN_OK) return status;
    bool is_db = !key_in_path || seen_url_param(&p->url, "key");
    if (is_db && p->url.path[0] && !seen_url_digits(p->url.path, 9999, &db))
        return seen_fail(error, SEEN_INVALID, "url",
                         "URL: /%s is not the number of a database: "
                         "expected 0 to 9999",
                         p->url.path);
    p->db = (uint32_t)db;
    struct seen_connection *connection;
    status = seen_pool_take(p, &connection, error);
    if (status != SEEN_OK) return status;
    seen_pool_return(p, connection);
    (void)seen_url_param(&p->url, "timeout");
    (void)seen_url_param(&p->url, "patience");
    return SEEN_OK;
}

void seen_pool_close(struct seen_pool *p)
{
    while (p->idle) {
        struct seen_connection *connection = p->idle;
        p->idle = connection->next;
        seen_redis_close(connection->client);
        seen_release(&seen_system_memory, connection, sizeof *connection);
    }
    if (!seen_home_left(&p->home)) pthread_mutex_destroy(&p->lock);
}

/* NULL: none is idle. */
static struct seen_connection *take_idle(struct seen_pool *p, bool *reached)
{
    pthread_mutex_lock(&p->lock);
    struct seen_connection *connection = p->idle;
    if (connection) p->idle = connection->next;
    *reached = p->reached;
    pthread_mutex_unlock(&p->lock);
    return connection;
}

/* A server that was there and restarts is waited for, as it is by commands on a
 * connection that broke; meanwhile somebody may give one back. */
seen_status seen_pool_take(struct seen_pool *p, struct seen_connection **out,
                           seen_error *error)
{
    bool reached;
    if (seen_home_left(&p->home))
        return seen_fail(error, SEEN_INVALID, NULL, "%s", p->home.sentence);
    *out = take_idle(p, &reached);
    if (*out) return SEEN_OK;
    struct seen_connection *connection =
        seen_alloc_zeroed(&seen_system_memory, sizeof *connection);
    if (!connection) return SEEN_NOMEM;
    struct seen_url url = p->url; /* each thread notes what it used */
    uint64_t until = seen_redis_patience(&url);
    seen_error last; /* of what was tried */
    seen_status status;
    do {
        seen_error_begin(&last);
        status = seen_redis_open(&connection->client, &url, p->db, &last);
        if (status != SEEN_IO || !reached || !seen_redis_rest(until)) break;
        *out = take_idle(p, &reached);
    } while (!*out);
    if (status == SEEN_OK && !*out) {
        pthread_mutex_lock(&p->lock);
        p->reached = true;
        pthread_mutex_unlock(&p->lock);
        *out = connection;
    } else {
        seen_release(&seen_system_memory, connection, sizeof *connection);
    }
    return *out ? SEEN_OK : seen_fail_as(error, status, &last);
}

void seen_pool_return(struct seen_pool *p, struct seen_connection *connection)
{
    pthread_mutex_lock(&p->lock);
    connection->next = p->idle;
    p->idle = connection;
    pthread_mutex_unlock(&p->lock);
}

seen_status seen_pool_strange(const char *command,
                              const struct redisReply *reply,
                              const char *expected, seen_error *error)
{
    char is[SEEN_REPLY_TEXT];
    seen_reply_describe(reply, is);
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "the reply to %s is %s, expected %s: is it the right "
                     "server and key?",
                     command, is, expected);
}

seen_status seen_pool_run(struct seen_pool *p, struct seen_command *k, size_t n,
                          seen_error *error)
{
    struct seen_connection *connection;
    seen_status status = seen_pool_take(p, &connection, error);
    for (size_t i = 0; i < n; i++) {
        k[i].reply = NULL;
        k[i].status = status; /* of those that are not sent */
    }
    if (status != SEEN_OK) return status;
    status = seen_redis_run(connection->client, k, n, error);
    seen_pool_return(p, connection);
    return status;
}

seen_status seen_pool_script(struct seen_pool *p, const char *text,
                             char digest[SEEN_DIGEST], seen_error *error)
{
    const char *argv[] = {"SCRIPT", "LOAD", text};
    const size_t len[] = {6, 4, strlen(text)};
    struct seen_command k = {
        .argc = 3, .argv = argv, .len = len, .repeatable = true};
    seen_status status = seen_pool_run(p, &k, 1, error);
    seen_key hex;
    if (status == SEEN_OK && seen_reply_string(k.reply, &hex) &&
        hex.len == SEEN_DIGEST - 1)
        memcpy(digest, hex.data, SEEN_DIGEST);
    else if (status == SEEN_OK)
        status = seen_pool_strange("SCRIPT LOAD", k.reply, "a digest", error);
    seen_redis_done(&k, 1);
    return status;
}
