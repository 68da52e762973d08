/* policy.c - see policy.h. */
#include "policy.h"

#include "arguments.h"
#include "memory.h"
#include "secret.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_POLICIES 64 /* with a name, or used lately */
#define MOST_NAMES    32 /* so that there is always place for a primary's */

static struct policy policies[MOST_POLICIES];
static size_t count;
static uint64_t clock_;
static uint64_t dropped; /* by policies that are gone */

/* ---- Room to work in; belongs to no key ---------------------------------- */

static void *take_room(void *context, size_t size)
{
    (void)context;
    return try_alloc(size);
}

static void give_room_back(void *context, void *at, size_t size)
{
    (void)context;
    (void)size;
    RedisModule_Free(at);
}

static const seen_allocator room = {take_room, give_room_back, NULL};

/* ---- Text --------------------------------------------------------------- */

static bool read_time(const char *text, uint64_t *ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1},     {"s", 1e3},     {"m", 60e3},
                 {"h", 3600e3}, {"d", 86400e3}, {"w", 7 * 86400e3}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value > 0)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && value * units[i].ms < 1e14) {
            *ms = (uint64_t)(value * units[i].ms + 0.5);
            return *ms > 0;
        }
    return false;
}

static const char *read_number(const char *name, const char *value,
                               seen_policy *p)
{
    long long n;
    bool whole = text_to_number(value, &n) && n > 0 && n <= UINT32_MAX;
    if (!strcmp(name, "items") && whole)
        p->items = (uint32_t)n;
    else if (!strcmp(name, "generations") && whole)
        p->generations = (uint32_t)n;
    else if (!strcmp(name, "fpp") && text_to_double(value, &p->fpp) &&
             p->fpp > 0)
        ;
    else if (!strcmp(name, "ttl") && read_time(value, &p->ttl))
        ;
    else
        return "a policy: items=1000,generations=5,fpp=0.001,ttl=5d (units of "
               "ttl: ms s m h d w)";
    return NULL;
}

static const char *read_policy(const char *text, seen_policy *p)
{
    char copy[POLICY_TEXT], *rest = copy;
    *p = (seen_policy){.items = 1000,
                       .generations = 5,
                       .fpp = 0.001,
                       .ttl = (uint64_t)5 * 86400 * 1000};
    if (strlen(text) >= sizeof copy) return "a policy of at most 127 letters";
    strcpy(copy, text);
    while (rest) {
        char *part = rest, *comma = strchr(rest, ',');
        rest = comma ? comma + 1 : NULL;
        if (comma) *comma = 0;
        char *equals = strchr(part, '=');
        if (equals) *equals = 0;
        const char *problem = read_number(part, equals ? equals + 1 : "", p);
        if (problem) return problem;
    }
    return seen_policy_problem(p);
}

/* ---- The table ---------------------------------------------------------- */

static struct policy *named(const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(policies[i].name) == len && len > 0 &&
            !memcmp(policies[i].name, name, len))
            return &policies[i];
    return NULL;
}

/* A new place, or that of the one without a name that was used longest ago. */
static struct policy *place(void)
{
    struct policy *oldest = NULL;
    if (count < MOST_POLICIES) return &policies[count++];
    for (size_t i = 0; i < count; i++)
        if (!policies[i].name[0] &&
            (!oldest || policies[i].used < oldest->used))
            oldest = &policies[i];
    return oldest;
}

/* In the place `p`, or in one of its own if that is NULL. */
static struct policy *put(struct policy *p, const char *name, const char *text,
                          const char **problem)
{
    seen_policy policy;
    *problem = read_policy(text, &policy);
    if (*problem) return NULL;
    if (!p && (!*name || !policy_at(MOST_NAMES - 1))) p = place();
    if (!p) {
        *problem = "fewer policies: 32 have names";
        return NULL;
    }
    dropped += seen_exposure_dropped(p->x);
    seen_exposure_free(p->x);
    *p = (struct policy){.policy = policy, .used = ++clock_};
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->text, sizeof p->text,
             "items=%" PRIu32 ",generations=%" PRIu32 ",fpp=%.17g,ttl=%" PRIu64
             "ms",
             policy.items, policy.generations, policy.fpp, policy.ttl);
    return p;
}

/* The secret is known, whatever the order of the arguments was. */
static struct policy *ready(struct policy *p, const char **problem)
{
    if (p->x ||
        seen_exposure_new(&p->x, &p->policy, exposure_secret, &room) == SEEN_OK)
        return p;
    *problem = "ERR no memory for another policy";
    return NULL;
}

const char *policy_set(const char *name, const char *text)
{
    const char *problem;
    size_t len = strlen(name);
    if (len < 1 || len >= sizeof policies->name || strpbrk(name, "=, "))
        return "a name of 1 to 31 letters without = and comma";
    return put(named(name, len), name, text, &problem) ? NULL : problem;
}

static struct policy *with_numbers(const char *at, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(policies[i].text) == len &&
            !memcmp(policies[i].text, at, len)) {
            policies[i].used = ++clock_;
            return &policies[i];
        }
    return NULL;
}

struct policy *policy_find(const char *at, size_t len, const char **problem)
{
    char text[POLICY_TEXT];
    struct policy *p = named(at, len);
    if (!p) p = with_numbers(at, len);
    if (p) return ready(p, problem);
    if (!memchr(at, '=', len)) {
        *problem = "ERR no policy has that name: see SEEN.POLICY";
        return NULL;
    }
    if (len < sizeof text && !memchr(at, 0, len)) {
        memcpy(text, at, len);
        text[len] = 0;
        p = put(NULL, "", text, problem);
        if (p) return ready(p, problem);
    }
    *problem = "ERR expected a policy: items=1000,generations=5,fpp=0.001,"
               "ttl=5d (units of ttl: ms s m h d w)";
    return NULL;
}

const struct policy *policy_at(size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (policies[i].name[0] && n-- == 0) return &policies[i];
    return NULL;
}

uint64_t policy_dropped(void)
{
    uint64_t sum = dropped;
    for (size_t i = 0; i < count; i++)
        sum += seen_exposure_dropped(policies[i].x);
    return sum;
}
