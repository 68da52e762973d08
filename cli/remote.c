/* remote.c - see remote.h. */
#include "remote.h"

#include "login.h"
#include "spec.h"
#include "units.h"
#include "users.h"

#include <string.h>

bool is_remote(const char *name)
{
    return strstr(name, "://") != NULL;
}

static void must(const struct target *t, seen_status status)
{
    if (status != SEEN_OK) fail("%s: %s", t->name, t->error.text);
}

bool is_remote_bitmap(const struct target *t)
{
    return strncmp(t->name, "redis+bitmap:", 13) == 0;
}

/* It opens, and something about it is strange. */
static void warn_of(const struct target *t)
{
    if (*t->error.text) note("warning: %s: %s", t->name, t->error.text);
}

bool find_remote(struct target *t)
{
    if (wish.dialect)
        fail("%s: the URL says what it is: leave out --dialect", t->name);
    if (is_store(t->name))
        fail("%s: holds users, whom seen fresh and seen mark are for; a filter "
             "is named by ?key=NAME",
             t->name);
    if (is_remote_bitmap(t)) keys_for_bitmap();
    seen_status status = seen_remote_open(&t->remote, real_url(t->name), NULL,
                                          &t->outcome, &t->error);
    if (status == SEEN_ABSENT) return false;
    must(t, status);
    warn_of(t);
    return true;
}

void create_remote(struct target *t, const seen_spec *create)
{
    must(t, seen_remote_open(&t->remote, real_url(t->name), create, &t->outcome,
                             &t->error));
    warn_of(t);
}

/* To other systems a string that is not there is an empty filter; to somebody who
 * asks it is a wrong name. */
void read_remote(struct target *t)
{
    if (t->outcome.empty)
        warn("%s: nothing is there, so that every key is absent: is the name "
             "right?",
             t->name);
}

void close_remote(struct target *t)
{
    seen_remote_close(t->remote);
    t->remote = NULL;
}

bool expire_remote(struct target *t, uint64_t ttl_ms)
{
    bool known;
    must(t, seen_remote_expire(t->remote, ttl_ms, &known, &t->error));
    return known;
}

bool delete_remote(struct target *t)
{
    bool known;
    must(t, seen_remote_delete(t->remote, &known, &t->error));
    return known;
}

void print_remote(struct target *t, struct json *j)
{
    char a[UNIT_TEXT];
    seen_remote_info info = {.size = sizeof info};
    read_remote(t);
    must(t, seen_remote_info_of(t->remote, &info, &t->error));
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "file", t->name);
        json_text(j, "layout", info.layout);
        json_number(j, "capacity", (double)info.capacity);
        json_number(j, "items", (double)info.items);
        if (info.fpp > 0) json_number(j, "fpp", info.fpp);
        json_number(j, "bytes", (double)info.bytes);
        json_number(j, "parts", (double)info.parts);
        json_close(j, '}');
        return;
    }
    printf("%s\n  layout    %s\n", t->name, info.layout);
    printf("  capacity  %s\n", show_count(a, (double)info.capacity));
    printf("  items     %s\n", show_count(a, (double)info.items));
    if (info.fpp > 0) printf("  rate      %s\n", show_rate(a, info.fpp));
    printf("  size      %s", show_size(a, (double)info.bytes));
    if (info.parts > 1)
        printf(", in %s parts", show_count(a, (double)info.parts));
    putchar('\n');
}
