/* remote.c - the calls of seen_remote.h: find the kind, connect, ask it. */
#include "remote/remote.h"

#include "base/alloc.h"
#include "store/report.h"

#include <string.h>

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

static seen_status find_key(seen_remote *m, seen_store_report *r)
{
    const char *key = seen_url_param(&m->pool.url, "key");
    if (!key || !key[0])
        return seen_report(r, SEEN_INVALID, "URL: expected ?key=NAME");
    memcpy(m->key, key, strlen(key) + 1);
    return SEEN_OK;
}

seen_status seen_remote_open(seen_remote **out, const char *url,
                             const seen_spec *create, seen_store_report *r)
{
    const char *rest = NULL;
    seen_report_begin(r);
    if (!out || !url) return SEEN_INVALID;
    const struct seen_remote_ops *ops = find(url, &rest);
    if (!ops)
        return seen_report(r, SEEN_UNSUPPORTED,
                           strncmp(url, "rediss:", 7) == 0
                               ? "TLS is not offered: use redis:// and a tunnel"
                               : "no filter on a server has such a URL");
    seen_remote *m = seen_alloc_zeroed(&system_memory, sizeof *m);
    if (!m) return SEEN_NOMEM;
    m->ops = ops;
    seen_status status = seen_pool_open(&m->pool, rest, r);
    if (status == SEEN_OK) status = find_key(m, r);
    if (status == SEEN_OK) status = ops->open(m, create, r);
    if (status == SEEN_OK) status = seen_url_done(&m->pool.url, r);
    if (status != SEEN_OK) {
        seen_report(r, status, "%s",
                    m->pool.problem[0] ? m->pool.problem
                                       : seen_strerror(status));
        seen_remote_close(m);
        return status;
    }
    *out = m;
    return SEEN_OK;
}

void seen_remote_close(seen_remote *m)
{
    if (!m) return;
    seen_pool_close(&m->pool);
    seen_release(&system_memory, m, sizeof *m);
}

const char *seen_remote_problem(const seen_remote *m)
{
    return m->pool.problem;
}

seen_status seen_remote_maybe_many(seen_remote *m, const seen_key *keys,
                                   size_t n, bool *answers)
{
    if (!m || (n && (!keys || !answers))) return SEEN_INVALID;
    return n ? m->ops->maybe(m, keys, n, answers) : SEEN_OK;
}

seen_status seen_remote_add_many(seen_remote *m, const seen_key *keys, size_t n,
                                 bool *fresh)
{
    if (!m || (n && !keys)) return SEEN_INVALID;
    return n ? m->ops->add(m, keys, n, fresh) : SEEN_OK;
}

seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info)
{
    if (!m || !info) return SEEN_INVALID;
    *info = (seen_remote_info){0};
    return m->ops->info(m, info);
}
