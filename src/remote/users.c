/* users.c - users on servers: find the kind of store; users/users.c does the rest. */
#include "remote/users_server.h"

#include "base/error.h"

#include <string.h>

static const struct seen_users_kind kinds[] = {
    {"redis", seen_remote_users_redis},
    {"redis+list", seen_remote_users_list},
};

seen_status seen_remote_users(seen_users **u, const char *url,
                              const seen_users_options *options,
                              seen_outcome *outcome, seen_error *error)
{
    const char *rest = NULL;
    seen_error_begin(error);
    if (!u || !url)
        return seen_fail(error, SEEN_INVALID, u ? "url" : "u", "%s is NULL",
                         u ? "url" : "u");
    const struct seen_users_kind *kind =
        seen_users_kind_of(kinds, sizeof kinds / sizeof *kinds, url, &rest);
    return seen_users_open_kind(
        u, kind, rest, options, "url",
        strncmp(url, "rediss:", 7) == 0
            ? "TLS is not offered: use redis:// and a tunnel"
            : "no store on a server has such a URL: expected redis:// or "
              "redis+list://",
        outcome, error);
}
