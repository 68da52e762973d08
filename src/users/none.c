/* none.c - built without hiredis: there are no servers. */
#include "users/users.h"

#include "store/report.h"

seen_status seen_users_open_redis(struct seen_users **u, const char *where,
                                  const seen_users_options *options,
                                  seen_store_report *r)
{
    (void)u, (void)where, (void)options;
    return seen_report(r, SEEN_UNSUPPORTED, "built without hiredis");
}

seen_status seen_users_open_list(struct seen_users **u, const char *where,
                                 const seen_users_options *options,
                                 seen_store_report *r)
{
    return seen_users_open_redis(u, where, options, r);
}
