/* survey.c - see survey.h. */
#include "survey.h"

#include "memory.h"
#include "progress.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

/* ---- Adding up ---------------------------------------------------------- */

static void add_to(struct spread *s, uint64_t value)
{
    size_t power = 0;
    while (value >> power > 1)
        power++;
    s->users[power]++;
    s->total += value;
    if (value > s->most) s->most = value;
}

static void add_user(struct survey *s, const seen_users_entry *e)
{
    s->users++;
    add_to(&s->items, e->items);
    add_to(&s->bytes, e->bytes);
    s->rate += e->fpp_now;
    if (e->fpp_now > s->most_rate) s->most_rate = e->fpp_now;
}

struct surveying {
    struct users *u;
    struct survey *s;
};

static bool add_entry(void *ctx, const seen_users_entry *e)
{
    struct surveying *g = ctx;
    work_done(1);
    if (e->status == SEEN_OK)
        add_user(g->s, e);
    else if (e->status == SEEN_ABSENT)
        g->s->aged++;
    else
        (void)blame_user(g->u, e->user, e->status, NULL);
    return true;
}

void take_survey(struct users *u, struct survey *s)
{
    struct surveying g = {u, s};
    *s = (struct survey){.stats.size = sizeof s->stats};
    seen_status status = seen_users_stats_of(u->store, &s->stats, &u->error);
    work_total(s->stats.users, "users");
    if (status == SEEN_OK)
        status =
            seen_users_each(u->store, users_now(), add_entry, &g, &u->error);
    if (status != SEEN_OK) users_failed(u);
    s->damaged = u->damaged;
    if (s->users) s->rate /= (double)s->users;
}

void find_user(struct users *u, seen_key user, seen_exposure_info *info)
{
    char text[USER_TEXT];
    *info = (seen_exposure_info){.size = sizeof *info};
    seen_status s =
        seen_users_info_of(u->store, user, users_now(), info, &u->error);
    if (s == SEEN_OK || s == SEEN_ABSENT) return;
    end_progress();
    fail("%s: user %s: %s", u->name, show_user(text, user),
         user_reason(u, s, u->error.text));
}

/* ---- Text --------------------------------------------------------------- */

static double per(uint64_t total, uint64_t n)
{
    return n ? (double)total / (double)n : 0;
}

/* First and last power of two that somebody has. */
static bool range_of(const struct spread *s, size_t *first, size_t *last)
{
    size_t low = 0, high = 64;
    while (low < 64 && s->users[low] == 0)
        low++;
    while (high > low && s->users[high - 1] == 0)
        high--;
    *first = low;
    *last = high;
    return low < high;
}

#define BAR 40

/* What the users of a power of two have at least and at most. */
#define LOW(i)  ((uint64_t)1 << (i))
#define HIGH(i) (LOW(i) + (LOW(i) - 1))

static void print_spread(const char *what, const struct spread *s)
{
    char from[UNIT_TEXT], to[UNIT_TEXT], users[UNIT_TEXT];
    char bar[BAR + 1];
    size_t first, last;
    if (!range_of(s, &first, &last)) return;
    uint64_t most = 1;
    for (size_t i = first; i < last; i++)
        if (s->users[i] > most) most = s->users[i];
    memset(bar, '#', BAR);
    printf("\n  %24s %12s\n", what, "users");
    for (size_t i = first; i < last; i++) {
        /* Whoever is there is seen, if only as one sign. */
        double share = (double)s->users[i] / (double)most;
        int len = s->users[i] ? 1 + (int)(share * (BAR - 1)) : 0;
        printf("  %10s .. %10s %12s", show_count(from, (double)LOW(i)),
               show_count(to, (double)HIGH(i)),
               show_count(users, (double)s->users[i]));
        printf("%s%.*s\n", len ? "  " : "", len, bar);
    }
}

static void print_users(const struct survey *s)
{
    char users[UNIT_TEXT], aged[UNIT_TEXT], damaged[UNIT_TEXT];
    printf("  users     %s", show_count(users, (double)s->users));
    if (s->aged)
        printf("; %s whose items have all aged out: seen sweep",
               show_count(aged, (double)s->aged));
    if (s->damaged)
        printf("; %s damaged", show_count(damaged, (double)s->damaged));
    putchar('\n');
}

void print_survey(const struct users *u, const struct survey *s)
{
    char policy[POLICY_TEXT], a[UNIT_TEXT], b[UNIT_TEXT];
    const bool local = s->stats.file_bytes || s->stats.journal_bytes;
    printf("%s\n", u->name);
    if (s->stats.policy.items)
        printf("  policy    %s\n", show_policy(policy, &s->stats.policy));
    print_users(s);
    printf("  items     %s; %.1f a user, %s at most\n",
           show_count(a, (double)s->items.total), per(s->items.total, s->users),
           show_count(b, (double)s->items.most));
    printf("  records   %s; %.0f bytes a user, %s at most; %.2f an item\n",
           show_size(a, (double)s->bytes.total), per(s->bytes.total, s->users),
           show_count(b, (double)s->bytes.most),
           per(s->bytes.total, s->items.total));
    printf("  rate      %s on average, %s for the worst user\n",
           s->rate > 0 ? show_rate(a, s->rate) : "0",
           s->most_rate > 0 ? show_rate(b, s->most_rate) : "0");
    if (local)
        printf("  disk      %s, and %s in the journal\n",
               show_size(a, (double)s->stats.file_bytes),
               show_size(b, (double)s->stats.journal_bytes));
    print_spread("items of a user", &s->items);
    print_spread("bytes of a user", &s->bytes);
}

static uint64_t since(uint64_t time)
{
    uint64_t now_ms = users_now();
    return now_ms > time ? now_ms - time : 0;
}

/* Lists of other services do not know most of their times. */
static const char *show_since(char buf[UNIT_TEXT], uint64_t time)
{
    char age[UNIT_TEXT];
    if (!time) return "unknown";
    snprintf(buf, UNIT_TEXT, "%.20s ago", show_age(age, since(time)));
    return buf;
}

void print_user(const struct users *u, seen_key user,
                const seen_exposure_info *info)
{
    char text[USER_TEXT], a[UNIT_TEXT], b[UNIT_TEXT];
    printf("%s\n  user      %s\n", u->name, show_user(text, user));
    printf("  items     %s\n", show_count(a, (double)info->items));
    printf("  record    %s\n", show_many(a, (double)info->bytes, "byte"));
    printf("  rate now  %s\n",
           info->fpp_now > 0 ? show_rate(a, info->fpp_now) : "0");
    if (!info->generations) return;
    printf("\n  generation     items     bytes   first mark    last mark\n");
    for (uint32_t i = 0; i < info->generations; i++) {
        const seen_generation_info *g = &info->generation[i];
        printf("  %10u %9llu %9llu %12s %12s\n", i + 1,
               (unsigned long long)g->items, (unsigned long long)g->bytes,
               show_since(a, g->first), show_since(b, g->newest));
    }
}

/* ---- JSON --------------------------------------------------------------- */

static void json_policy(struct json *j, const seen_policy *p)
{
    json_open(j, "policy", '{');
    json_number(j, "items", p->items);
    json_number(j, "generations", p->generations);
    json_number(j, "fpp", p->fpp);
    json_number(j, "ttl_ms", (double)p->ttl_ms);
    json_close(j, '}');
}

static void json_spread(struct json *j, const char *name,
                        const struct spread *s)
{
    size_t first, last;
    json_open(j, name, '{');
    json_number(j, "total", (double)s->total);
    json_number(j, "most", (double)s->most);
    json_open(j, "histogram", '[');
    range_of(s, &first, &last);
    for (size_t i = first; i < last; i++) {
        json_open(j, NULL, '{');
        json_number(j, "from", (double)LOW(i));
        json_number(j, "to", (double)HIGH(i));
        json_number(j, "users", (double)s->users[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void json_survey(struct json *j, const struct users *u, const struct survey *s)
{
    json_open(j, NULL, '{');
    json_text(j, "store", u->name);
    if (s->stats.policy.items) json_policy(j, &s->stats.policy);
    json_number(j, "users", (double)s->users);
    json_number(j, "aged", (double)s->aged);
    json_number(j, "damaged", (double)s->damaged);
    json_number(j, "fpp_now", s->rate);
    json_number(j, "fpp_now_most", s->most_rate);
    json_number(j, "file_bytes", (double)s->stats.file_bytes);
    json_number(j, "journal_bytes", (double)s->stats.journal_bytes);
    json_spread(j, "items", &s->items);
    json_spread(j, "bytes", &s->bytes);
    json_close(j, '}');
}

void json_user(struct json *j, const struct users *u, const char *user,
               const seen_exposure_info *info)
{
    json_open(j, NULL, '{');
    json_text(j, "store", u->name);
    json_text(j, "user", user);
    json_number(j, "items", (double)info->items);
    json_number(j, "bytes", (double)info->bytes);
    json_number(j, "newest_ms", (double)info->newest);
    json_number(j, "fpp_now", info->fpp_now);
    json_open(j, "generations", '[');
    for (uint32_t i = 0; i < info->generations; i++) {
        const seen_generation_info *g = &info->generation[i];
        json_open(j, NULL, '{');
        json_number(j, "items", (double)g->items);
        json_number(j, "bytes", (double)g->bytes);
        json_number(j, "first_ms", (double)g->first);
        json_number(j, "newest_ms", (double)g->newest);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}
