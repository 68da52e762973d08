/* pool.c - see pool.h. */
#include "redis/pool.h"

#include "base/alloc.h"
#include "store/report.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const seen_allocator system_memory;

seen_status seen_pool_open(struct seen_pool *p, const char *rest,
                           bool key_in_path, seen_store_report *r)
{
    uint64_t db = 0;
    *p = (struct seen_pool){0};
    pthread_mutex_init(&p->lock, NULL);
    seen_status status = seen_url_parse(rest, &p->url, r);
    if (status != SEEN_OK) return status;
    bool is_db = !key_in_path || seen_url_param(&p->url, "key");
    if (is_db && p->url.path[0] && !seen_url_digits(p->url.path, 9999, &db))
        return seen_report(r, SEEN_INVALID,
                           "URL: /%s is not the number of a database",
                           p->url.path);
    p->db = (uint32_t)db;
    struct seen_pool_link *link;
    status = seen_pool_take(p, &link, r);
    if (status != SEEN_OK) return status;
    seen_pool_return(p, link);
    (void)seen_url_param(&p->url, "timeout");
    (void)seen_url_param(&p->url, "patience");
    return SEEN_OK;
}

void seen_pool_close(struct seen_pool *p)
{
    while (p->idle) {
        struct seen_pool_link *link = p->idle;
        p->idle = link->next;
        seen_redis_close(link->client);
        seen_release(&system_memory, link, sizeof *link);
    }
    pthread_mutex_destroy(&p->lock);
}

/* NULL: none is idle. */
static struct seen_pool_link *take_idle(struct seen_pool *p, bool *reached)
{
    pthread_mutex_lock(&p->lock);
    struct seen_pool_link *link = p->idle;
    if (link) p->idle = link->next;
    *reached = p->reached;
    pthread_mutex_unlock(&p->lock);
    return link;
}

/* A server that was there and restarts is waited for, as it is by commands on a
 * connection that broke; meanwhile somebody may give one back. */
seen_status seen_pool_take(struct seen_pool *p, struct seen_pool_link **out,
                           seen_store_report *r)
{
    bool reached;
    *out = take_idle(p, &reached);
    if (*out) return SEEN_OK;
    struct seen_pool_link *link =
        seen_alloc_zeroed(&system_memory, sizeof *link);
    if (!link) return SEEN_NOMEM;
    struct seen_url url = p->url; /* each thread notes what it used */
    uint64_t until = seen_redis_patience(&url);
    seen_status status = seen_redis_open(&link->client, &url, p->db, r);
    while (status == SEEN_IO && reached && seen_redis_rest(until)) {
        *out = take_idle(p, &reached);
        if (*out) break;
        status = seen_redis_open(&link->client, &url, p->db, r);
    }
    if (status == SEEN_OK && !*out) {
        pthread_mutex_lock(&p->lock);
        p->reached = true;
        pthread_mutex_unlock(&p->lock);
        *out = link;
    } else {
        seen_release(&system_memory, link, sizeof *link);
    }
    return *out ? SEEN_OK : status;
}

void seen_pool_return(struct seen_pool *p, struct seen_pool_link *link)
{
    pthread_mutex_lock(&p->lock);
    link->next = p->idle;
    p->idle = link;
    pthread_mutex_unlock(&p->lock);
}

void seen_pool_tell(struct seen_pool *p, const seen_store_report *r)
{
    int before = errno;
    pthread_mutex_lock(&p->lock);
    if (r->problem[0]) memcpy(p->problem, r->problem, sizeof p->problem);
    pthread_mutex_unlock(&p->lock);
    errno = before;
}

seen_status seen_pool_say(struct seen_pool *p, seen_status status,
                          const char *format, ...)
{
    seen_store_report r = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(r.problem, sizeof r.problem, format, args);
    va_end(args);
    seen_pool_tell(p, &r);
    return status;
}

seen_status seen_pool_run(struct seen_pool *p, struct seen_command *k, size_t n)
{
    seen_store_report r = {0};
    struct seen_pool_link *link;
    seen_status status = seen_pool_take(p, &link, &r);
    for (size_t i = 0; i < n; i++) {
        k[i].reply = NULL;
        k[i].status = status; /* of those that are not sent */
    }
    if (status == SEEN_OK) {
        status = seen_redis_run(link->client, k, n, &r);
        seen_pool_return(p, link);
    }
    if (status != SEEN_OK) seen_pool_tell(p, &r);
    return status;
}

seen_status seen_pool_script(struct seen_pool *p, const char *text,
                             char digest[SEEN_DIGEST])
{
    const char *argv[] = {"SCRIPT", "LOAD", text};
    const size_t len[] = {6, 4, strlen(text)};
    struct seen_command k = {
        .argc = 3, .argv = argv, .len = len, .repeatable = true};
    seen_status status = seen_pool_run(p, &k, 1);
    if (status == SEEN_OK && k.reply->len == SEEN_DIGEST - 1)
        memcpy(digest, k.reply->str, SEEN_DIGEST);
    else if (status == SEEN_OK)
        status = SEEN_CORRUPT;
    seen_redis_done(&k, 1);
    return status;
}
