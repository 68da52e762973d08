/* fleet.c - see fleet.h. */
#include "fleet.h"

#include "output.h"
#include "units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Measured: `script/bench module`, bench/RESULTS.md ------------------- */

/* Bytes that a user takes in the server, key of 12 bytes and all. */
static const struct {
    double items, bytes;
} measured[] = {{10, 185}, {100, 390}, {1000, 2186}, {5000, 10370}};

#define MEASURED (sizeof measured / sizeof *measured)

/* Processor time of the server's thread, microseconds; user of 1000 items. */
#define CANDIDATE_US 0.139 /* one of SEEN.FRESH */
#define PACKED_US    0.047 /* one of SEEN.FRESHP */
#define TAKE_US      31.25 /* SEEN.TAKE of 10 from 200 ... */
#define TAKE_ITEMS   200 /* ... of which all but the candidates is its start */

#define START_US (TAKE_US - TAKE_ITEMS * CANDIDATE_US)

/* ---- Assumed ------------------------------------------------------------ */

/* The rest of a node's memory is for a copy on write while it saves, for
 * replication and for holes; the rest of a core for bursts. */
#define MEMORY_USED 0.60
#define CORE_USED   0.50

/* What the default policy keeps of a user: 5 generations of 1000. */
#define ITEMS_MAX 5000

/* ---- The wish ----------------------------------------------------------- */

static struct {
    uint64_t users, items, candidates, qps, memory, replicas;
} fleet;

/* None is a number of replicas, too. */
static const char *parse_replicas(const char *text, uint64_t *out)
{
    if (strcmp(text, "0") != 0) return parse_count(text, out);
    *out = 0;
    return NULL;
}

static const struct field {
    const char *name;
    const char *(*parse)(const char *text, uint64_t *out);
    uint64_t *to;
} fields[] = {
    {"users", parse_count, &fleet.users},
    {"items", parse_count, &fleet.items},
    {"candidates", parse_count, &fleet.candidates},
    {"qps", parse_count, &fleet.qps},
    {"memory", parse_size, &fleet.memory},
    {"replicas", parse_replicas, &fleet.replicas},
};

#define FIELDS (sizeof fields / sizeof *fields)

static void parse_field(const char *text, size_t len)
{
    static const char names[] =
        "users=, items=, candidates=, qps=, memory= or replicas=";
    char value[64];
    const char *equals = memchr(text, '=', len);
    size_t name = equals ? (size_t)(equals - text) : len;
    for (size_t i = 0; equals && i < FIELDS; i++) {
        if (strlen(fields[i].name) != name ||
            memcmp(fields[i].name, text, name) != 0)
            continue;
        snprintf(value, sizeof value, "%.*s", (int)(len - name - 1),
                 equals + 1);
        const char *expected = fields[i].parse(value, fields[i].to);
        if (expected)
            fail("--fleet %.*s: expected %s", (int)len, text, expected);
        return;
    }
    fail("--fleet %.*s: expected %s", (int)len, text, names);
}

static void parse_wish(const char *text)
{
    fleet.candidates = 200;
    fleet.qps = 1000;
    fleet.memory = 16000000000;
    fleet.replicas = 1;
    while (*text) {
        size_t len = strcspn(text, ",");
        parse_field(text, len);
        text += len + (text[len] == ',');
    }
    if (!fleet.users || !fleet.items)
        fail("--fleet: expected at least users=100M,items=300: how many users, "
             "and how many items each has been shown");
}

/* ---- The costs ---------------------------------------------------------- */

struct cost {
    size_t below; /* row of `measured` that the straight line begins at */
    double items; /* that are kept */
    double user_bytes, bytes;
    double cores, packed_cores; /* of work, all requests together */
    double by_memory, by_cores, nodes;
};

static double kept_items(void)
{
    return fmin((double)fleet.items, ITEMS_MAX);
}

/* On the line through the two measurements around it. */
static double bytes_of_user(double items, size_t *below)
{
    size_t i = 0;
    while (i + 2 < MEASURED && items > measured[i + 1].items)
        i++;
    double slope = (measured[i + 1].bytes - measured[i].bytes) /
                   (measured[i + 1].items - measured[i].items);
    *below = i;
    return measured[i].bytes + slope * (items - measured[i].items);
}

static double cores(double candidate_us)
{
    double us = START_US + (double)fleet.candidates * candidate_us;
    return (double)fleet.qps * us * 1e-6;
}

static struct cost cost_of(void)
{
    struct cost c = {.items = kept_items()};
    c.user_bytes = bytes_of_user(c.items, &c.below);
    c.bytes = (double)fleet.users * c.user_bytes;
    c.cores = cores(CANDIDATE_US);
    c.packed_cores = cores(PACKED_US);
    c.by_memory = ceil(c.bytes / ((double)fleet.memory * MEMORY_USED));
    c.by_cores = ceil(c.cores / CORE_USED);
    c.nodes = fmax(c.by_memory, c.by_cores);
    return c;
}

/* ---- Text --------------------------------------------------------------- */

static void print_memory(const struct cost *c)
{
    char a[UNIT_TEXT], b[UNIT_TEXT], d[UNIT_TEXT], e[UNIT_TEXT], f[UNIT_TEXT];
    printf("memory    %-10s users x bytes of one = %s x %s\n",
           show_size(a, c->bytes), show_short(b, (double)fleet.users),
           show_count(d, round(c->user_bytes)));
    printf("                     measured: %s bytes at %s items, %s at %s\n",
           show_count(a, measured[c->below].bytes),
           show_count(b, measured[c->below].items),
           show_count(d, measured[c->below + 1].bytes),
           show_count(e, measured[c->below + 1].items));
    if ((double)fleet.items > c->items)
        printf("                     of %s items the default policy keeps the "
               "last 4,000 to %s\n",
               show_count(f, (double)fleet.items), show_count(a, c->items));
}

static void print_cpu(const char *head, double work, double candidate_us,
                      const char *command)
{
    char cores_text[UNIT_TEXT], qps[UNIT_TEXT], candidates[UNIT_TEXT];
    snprintf(cores_text, sizeof cores_text, "%.2f cores", work);
    printf("%-9s %-10s qps x (start + candidates x one)\n", head, cores_text);
    printf("                     = %s x (%.1f us + %s x %.3f us), %s\n",
           show_short(qps, (double)fleet.qps), START_US,
           show_count(candidates, (double)fleet.candidates), candidate_us,
           command);
}

static void print_nodes(const struct cost *c)
{
    char nodes[UNIT_TEXT], a[UNIT_TEXT], b[UNIT_TEXT], d[UNIT_TEXT];
    printf("nodes     %-10s the larger of memory / (%s x %.0f%%) = %s\n",
           show_count(nodes, c->nodes), show_size(a, (double)fleet.memory),
           100 * MEMORY_USED, show_count(b, c->by_memory));
    printf("                     and cores / %.0f%% = %s; with %s of each: "
           "%s in all\n",
           100 * CORE_USED, show_count(a, c->by_cores),
           show_many(b, (double)fleet.replicas, "replica"),
           show_count(d, c->nodes * (1 + (double)fleet.replicas)));
}

static void print_text(const struct cost *c)
{
    char users[UNIT_TEXT], items[UNIT_TEXT], qps[UNIT_TEXT], n[UNIT_TEXT];
    printf("%s who have been shown %s; %s requests/s, each 10 of "
           "%s\n\n",
           show_about(users, (double)fleet.users, "user"),
           show_many(items, (double)fleet.items, "item"),
           show_short(qps, (double)fleet.qps),
           show_many(n, (double)fleet.candidates, "candidate"));
    print_memory(c);
    print_cpu("cpu", c->cores, CANDIDATE_US, "SEEN.TAKE");
    print_cpu("or", c->packed_cores, PACKED_US, "SEEN.TAKEP, packed ids");
    print_nodes(c);
    printf("\n"
           "measured  script/bench module, bench/RESULTS.md: bytes a user, one "
           "candidate of\n"
           "          SEEN.FRESH and of SEEN.FRESHP; start: SEEN.TAKE of 10 "
           "from 200, %.2f us,\n"
           "          less its candidates (a user of 1,000 items; AMD EPYC "
           "Zen 3, redis-server 7)\n"
           "assumed   memory %.0f%% full, cores %.0f%% busy; a node is one "
           "server process\n",
           TAKE_US, 100 * MEMORY_USED, 100 * CORE_USED);
}

static void print_json(const struct cost *c)
{
    struct json j = {.to = stdout};
    json_open(&j, NULL, '{');
    json_number(&j, "users", (double)fleet.users);
    json_number(&j, "items", (double)fleet.items);
    json_number(&j, "candidates", (double)fleet.candidates);
    json_number(&j, "qps", (double)fleet.qps);
    json_number(&j, "node_memory", (double)fleet.memory);
    json_number(&j, "replicas", (double)fleet.replicas);
    json_number(&j, "bytes_per_user", round(c->user_bytes));
    json_number(&j, "bytes", c->bytes);
    json_number(&j, "cores", c->cores);
    json_number(&j, "cores_packed", c->packed_cores);
    json_number(&j, "memory_used", MEMORY_USED);
    json_number(&j, "core_used", CORE_USED);
    json_number(&j, "nodes_for_memory", c->by_memory);
    json_number(&j, "nodes_for_cores", c->by_cores);
    json_number(&j, "primaries", c->nodes);
    json_number(&j, "nodes", c->nodes * (1 + (double)fleet.replicas));
    json_close(&j, '}');
}

void plan_fleet(const char *wish, bool json)
{
    parse_wish(wish);
    struct cost cost = cost_of();
    if (json)
        print_json(&cost);
    else
        print_text(&cost);
}
