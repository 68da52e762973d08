/* policy.c - see policy.h. */
#include "policy.h"

#include "arguments.h"
#include "memory.h"
#include "secret.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX    32 /* that are configured, and as many that are set */
#define POLICIES_MAX 96 /* with a name, or used lately */
#define ROOM_MAX     ((size_t)64 << 20) /* of all that are not in use */
#define IN_USE       4                  /* policies that one command can have */

static struct policy policies[POLICIES_MAX];
static size_t count;
static uint64_t clock_;
static uint64_t dropped; /* by policies that are gone */

static const char FORM[] = "a policy: items=1000,generations=5,fpp=0.001,"
                           "ttl=5d (units of ttl: ms s m h d w)";

/* ---- Room to work in; belongs to no key ---------------------------------- */

static size_t room_bytes;

static void *take_room(void *context, size_t size)
{
    (void)context;
    void *at = try_alloc(size);
    if (at) room_bytes += size;
    return at;
}

static void give_room_back(void *context, void *at, size_t size)
{
    (void)context;
    if (at) room_bytes -= size;
    RedisModule_Free(at);
}

static const seen_allocator room = {take_room, give_room_back, NULL};

uint64_t policy_bytes(void)
{
    return room_bytes;
}

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
    else if (!strcmp(name, "ttl") && read_time(value, &p->ttl_ms))
        ;
    else
        return FORM;
    return NULL;
}

static const char *read_policy(const char *text, size_t len, seen_policy *p)
{
    char copy[POLICY_TEXT], *rest = copy;
    *p = (seen_policy){.items = 1000,
                       .generations = 5,
                       .fpp = 0.001,
                       .ttl_ms = (uint64_t)5 * 86400 * 1000};
    if (len >= sizeof copy) return "a policy of at most 127 letters";
    if (memchr(text, 0, len)) return FORM;
    memcpy(copy, text, len);
    copy[len] = 0;
    while (rest) {
        char *part = rest, *comma = strchr(rest, ',');
        rest = comma ? comma + 1 : NULL;
        if (comma) *comma = 0;
        char *equals = strchr(part, '=');
        if (equals) *equals = 0;
        const char *problem = read_number(part, equals ? equals + 1 : "", p);
        if (problem) return problem;
    }
    static char ranges[160];
    seen_error error;
    if (seen_policy_check(p, &error) == SEEN_OK) return NULL;
    const char *why = error.text;
    if (strncmp(why, "policy.", 7) == 0) why += 7; /* as it was typed */
    snprintf(ranges, sizeof ranges, "a policy within its ranges: %.120s", why);
    return ranges;
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
    if (count < POLICIES_MAX) return &policies[count++];
    for (size_t i = 0; i < count; i++)
        if (!policies[i].name[0] &&
            (!oldest || policies[i].used < oldest->used))
            oldest = &policies[i];
    return oldest;
}

static void close_room(struct policy *p)
{
    dropped += seen_exposure_dropped(p->x);
    seen_exposure_free(p->x);
    p->x = NULL;
}

static void become(struct policy *p, const seen_policy *policy)
{
    close_room(p);
    p->policy = *policy;
    p->used = ++clock_;
    snprintf(p->text, sizeof p->text,
             "items=%" PRIu32 ",generations=%" PRIu32 ",fpp=%.17g,ttl=%" PRIu64
             "ms",
             policy->items, policy->generations, policy->fpp, policy->ttl_ms);
}

/* A place of its own: there is always one, POLICIES_MAX being larger than what
 * names can take. */
static struct policy *add(const char *name, size_t len)
{
    struct policy *p = place();
    close_room(p);
    *p = (struct policy){.used = 0};
    memcpy(p->name, name, len);
    return p;
}

/* The room of a policy is made for its items, up to 60 MB: a few bytes that name
 * many such policies must not take gigabytes. Those used longest ago give theirs
 * back; not the latest, which the command at hand may be using. */
static void close_rooms(void)
{
    while (room_bytes > ROOM_MAX) {
        struct policy *oldest = NULL;
        for (size_t i = 0; i < count; i++)
            if (policies[i].x && policies[i].used + IN_USE <= clock_ &&
                (!oldest || policies[i].used < oldest->used))
                oldest = &policies[i];
        if (!oldest) return;
        close_room(oldest);
    }
}

void policy_rest(struct policy *p)
{
    if (p && room_bytes > ROOM_MAX) close_room(p);
}

/* The secret is known, whatever the order of the arguments was. */
static struct policy *ready(struct policy *p, const char **problem)
{
    if (p->used != clock_) p->used = ++clock_;
    close_rooms();
    if (p->x) return p;
    if (seen_exposure_new(&p->x, &p->policy, exposure_secret, &room, NULL) !=
        SEEN_OK) {
        p->x = NULL;
        *problem = "ERR no memory for another policy";
        return NULL;
    }
    return p;
}

/* ---- Names -------------------------------------------------------------- */

static bool name_right(const char *name, size_t len)
{
    if (len < 1 || len >= sizeof policies->name) return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] <= ' ' || strchr("=,\x7f", name[i]))
            return false;
    return true;
}

/* How many names SEEN.POLICY has set; or how many are configured. */
static size_t names(bool set)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += set ? policies[i].set : policies[i].configured;
    return n;
}

static const char *give(const char *name, size_t len, const char *text,
                        size_t text_len, bool set, bool *changed)
{
    seen_policy policy;
    *changed = false;
    if (!name_right(name, len))
        return "a name of 1 to 31 letters without =, comma and spaces";
    const char *problem = read_policy(text, text_len, &policy);
    if (problem) return problem;
    struct policy *p = named(name, len);
    bool known = p && (set ? p->set : p->configured);
    if (!known && names(set) == NAMES_MAX)
        return set ? "fewer policies: 32 are set, and SEEN.POLICY name RESET "
                     "takes one back"
                   : "fewer policies: 32 are configured";
    if (!p) p = add(name, len);
    *changed = !known || !policy_same(&p->policy, &policy);
    if (set) {
        p->set = true;
    } else {
        p->configured = true;
        p->base = policy;
    }
    if (set == p->set) become(p, &policy);
    return NULL;
}

const char *policy_configure(const char *name, const char *text)
{
    bool changed;
    return give(name, strlen(name), text, strlen(text), false, &changed);
}

const char *policy_set(const char *name, size_t len, const char *text,
                       size_t text_len, bool *changed)
{
    return give(name, len, text, text_len, true, changed);
}

/* What is configured holds again; if nothing is, the policy has no name any more. */
static void take_back(struct policy *p)
{
    p->set = false;
    if (p->configured)
        become(p, &p->base);
    else
        memset(p->name, 0, sizeof p->name);
}

bool policy_reset(const char *name, size_t len)
{
    struct policy *p = named(name, len);
    if (!p || !p->set) return false;
    take_back(p);
    return true;
}

void policy_reset_all(void)
{
    for (size_t i = 0; i < count; i++)
        if (policies[i].set) take_back(&policies[i]);
}

const struct policy *policy_named(const char *name, size_t len)
{
    return named(name, len);
}

const struct policy *policy_set_at(size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (policies[i].set && n-- == 0) return &policies[i];
    return NULL;
}

/* ---- Finding ------------------------------------------------------------ */

bool policy_same(const seen_policy *a, const seen_policy *b)
{
    return a->items == b->items && a->generations == b->generations &&
           a->fpp == b->fpp && a->ttl_ms == b->ttl_ms;
}

struct policy *policy_of(const seen_policy *numbers, const char **problem)
{
    for (size_t i = 0; i < count; i++)
        if (policy_same(&policies[i].policy, numbers))
            return ready(&policies[i], problem);
    struct policy *p = add("", 0);
    become(p, numbers);
    return ready(p, problem);
}

struct policy *policy_find(const char *at, size_t len, const char **problem)
{
    static char refusal[192];
    seen_policy numbers;
    struct policy *p = named(at, len);
    if (p) return ready(p, problem);
    if (!memchr(at, '=', len)) {
        *problem = "ERR no policy has that name: see SEEN.POLICY";
        return NULL;
    }
    const char *expected = read_policy(at, len, &numbers);
    if (!expected) return policy_of(&numbers, problem);
    snprintf(refusal, sizeof refusal, "ERR expected %s", expected);
    *problem = refusal;
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
