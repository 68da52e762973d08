/* none.c - built without hiredis: there are no servers. */
#include "seen_remote.h"

#include "base/error.h"

static seen_status refuse(seen_error *error)
{
    seen_error_begin(error);
    return seen_fail(error, SEEN_UNSUPPORTED, NULL,
                     "built without hiredis: filters and users on servers "
                     "require it");
}

seen_status seen_remote_open(seen_remote **m, const char *url,
                             const seen_spec *create, seen_outcome *outcome,
                             seen_error *error)
{
    (void)m, (void)url, (void)create, (void)outcome;
    return refuse(error);
}

void seen_remote_close(seen_remote *m)
{
    (void)m;
}

seen_status seen_remote_maybe_many(seen_remote *m, seen_keys keys,
                                   bool *answers, seen_error *error)
{
    (void)m, (void)keys, (void)answers;
    return refuse(error);
}

seen_status seen_remote_add_many(seen_remote *m, seen_keys keys, bool *fresh,
                                 seen_error *error)
{
    (void)m, (void)keys, (void)fresh;
    return refuse(error);
}

seen_status seen_remote_remove_many(seen_remote *m, seen_keys keys,
                                    bool *removed, seen_error *error)
{
    (void)m, (void)keys, (void)removed;
    return refuse(error);
}

seen_status seen_remote_expire(seen_remote *m, uint64_t ttl_ms, bool *known,
                               seen_error *error)
{
    (void)m, (void)ttl_ms, (void)known;
    return refuse(error);
}

seen_status seen_remote_delete(seen_remote *m, bool *known, seen_error *error)
{
    (void)m, (void)known;
    return refuse(error);
}

seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info,
                                seen_error *error)
{
    (void)m, (void)info;
    return refuse(error);
}

seen_status seen_remote_users(seen_users **u, const char *url,
                              const seen_users_options *options,
                              seen_outcome *outcome, seen_error *error)
{
    (void)u, (void)url, (void)options, (void)outcome;
    return refuse(error);
}
