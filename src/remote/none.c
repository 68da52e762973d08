/* none.c - built without hiredis: there are no servers. */
#include "seen_remote.h"

#include "base/error.h"

seen_status seen_remote_open(seen_remote **m, const char *url,
                             const seen_spec *create, seen_outcome *outcome,
                             seen_error *error)
{
    (void)m, (void)url, (void)create, (void)outcome;
    seen_error_begin(error);
    return seen_fail(error, SEEN_UNSUPPORTED, NULL, "built without hiredis");
}

void seen_remote_close(seen_remote *m)
{
    (void)m;
}

const char *seen_remote_problem(const seen_remote *m)
{
    (void)m;
    return "";
}

seen_status seen_remote_maybe_many(seen_remote *m, const seen_key *keys,
                                   size_t n, bool *answers)
{
    (void)m, (void)keys, (void)n, (void)answers;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_add_many(seen_remote *m, const seen_key *keys, size_t n,
                                 bool *fresh)
{
    (void)m, (void)keys, (void)n, (void)fresh;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_remove_many(seen_remote *m, const seen_key *keys,
                                    size_t n, bool *removed)
{
    (void)m, (void)keys, (void)n, (void)removed;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_expire(seen_remote *m, uint64_t ms, bool *known)
{
    (void)m, (void)ms, (void)known;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_delete(seen_remote *m, bool *known)
{
    (void)m, (void)known;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_info_of(seen_remote *m, seen_remote_info *info)
{
    (void)m, (void)info;
    return SEEN_UNSUPPORTED;
}

seen_status seen_remote_users(seen_users **u, const char *url,
                              const seen_users_options *options,
                              seen_outcome *outcome, seen_error *error)
{
    (void)u, (void)url, (void)options, (void)outcome;
    seen_error_begin(error);
    return seen_fail(error, SEEN_UNSUPPORTED, NULL, "built without hiredis");
}
