/*
 * cmd_server.c - seen server: the machine's redis-server or valkey-server with
 * our module in it, to try things or to run them.
 *
 * Here are its options, what is where, and the order of a start; server_node.h
 * has the processes, server_conf.h their configuration, server_cluster.h what
 * makes a cluster of them.
 *
 *     DIR/secret            of the exposure sets, made if it is not there, unless
 *                           --secret-file names another
 *     DIR/unfinished        while a cluster is being made
 *     DIR/PORT/             data of the node at PORT
 *     DIR/PORT/log          its log, and what it prints before it has one: a file
 *                           that it cannot read, a directive that is wrong
 *     DIR/PORT/server.conf  its configuration: server_conf.h
 */
#define _GNU_SOURCE /* realpath */

#include "memory.h"
#include "options.h"
#include "output.h"
#include "secret.h"
#include "server_cluster.h"
#include "server_conf.h"
#include "server_node.h"
#include "spec.h"
#include "users.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUS 10000 /* a cluster's nodes talk at their port + this */

static struct {
    uint64_t port, cluster;
    const char *dir, *module, *server, *bind, *policy, *config;
    bool always, quiet;
} opt;

static const struct option options[] = {
    {0, "port", "P", OPTION_COUNT, &opt.port, "listen at port P (6379)"},
    {0, "bind", "ADDRESS", OPTION_TEXT, &opt.bind,
     "listen at ADDRESS, or several with commas (127.0.0.1)"},
    {0, "dir", "DIR", OPTION_TEXT, &opt.dir,
     "keep data, logs, configuration and the secret in DIR (seen-server)"},
    {0, "policy", "P", OPTION_TEXT, &opt.policy,
     "default policy of exposure sets: items=1000,generations=5,fpp=0.001,"
     "ttl=5d; kept for later starts"},
    {0, "secret-file", "FILE", OPTION_TEXT, &wish.secret_file,
     "secret of the exposure sets (DIR/secret)"},
    {0, "config", "FILE", OPTION_TEXT, &opt.config,
     "more directives of redis.conf; kept for later starts"},
    {0, "cluster", "N", OPTION_COUNT, &opt.cluster,
     "N primaries and N replicas, at P and the ports behind it; 3 or more"},
    {0, "always", NULL, OPTION_FLAG, &opt.always,
     "sync every write to disk before it is acknowledged; kept for later "
     "starts"},
    {0, "server", "FILE", OPTION_TEXT, &opt.server,
     "the server (valkey-server or redis-server)"},
    {0, "module", "FILE", OPTION_TEXT, &opt.module, "the module (seen.so)"},
    {'q', NULL, NULL, OPTION_FLAG, &opt.quiet, "do not say how to connect"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

/* ---- Where things are --------------------------------------------------- */

/* A program in the PATH; NULL: there is none. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        char *file = text_of("%.*s/%s", (int)len, at, name);
        if (access(file, X_OK) == 0) return file;
        free(file);
        at += len + (at[len] == ':');
    }
    return NULL;
}

static const char *find_server(void)
{
    if (opt.server && access(opt.server, X_OK) != 0)
        fail("--server %s: %s; expected a redis-server or valkey-server to "
             "start",
             opt.server, strerror(errno));
    if (opt.server) return opt.server;
    const char *found = find_program("valkey-server");
    if (!found) found = find_program("redis-server");
    if (!found)
        fail("neither valkey-server nor redis-server is in the PATH: install "
             "one, or name it with --server");
    return found;
}

/* Which makes a cluster of nodes. Looked for before there are any. */
static const char *find_client(void)
{
    const char *found = find_program("valkey-cli");
    if (!found) found = find_program("redis-cli");
    if (!found)
        fail("neither valkey-cli nor redis-cli is in the PATH: one of them is "
             "needed to make a cluster");
    return found;
}

/* Beside the program in a build, or where it was installed. */
static const char *find_module(void)
{
    char self[PATH_MAX];
    char *found = opt.module ? realpath(opt.module, NULL) : NULL;
    if (opt.module && !found) fail("%s: %s", opt.module, strerror(errno));
    if (found) return found;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    for (int up = 0; len > 0 && up < 2; up++) { /* build/cli/seen -> build */
        while (len > 0 && self[--len] != '/')
            ;
    }
    if (len > 0) {
        char *beside = text_of("%.*s/module/seen.so", (int)len, self);
        found = realpath(beside, NULL);
        free(beside);
    }
    if (!found) found = realpath(SEEN_MODULE_PATH, NULL);
    if (!found)
        fail("seen.so is neither beside this program nor at %s: name it with "
             "--module, or build it (cmake -S . -B build && cmake --build "
             "build)",
             SEEN_MODULE_PATH);
    return found;
}

static char *make_dir(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        fail("%s: mkdir: %s", path, strerror(errno));
    char *full = realpath(path, NULL);
    if (!full) fail("%s: %s", path, strerror(errno));
    return full;
}

/* ---- What they are started with ------------------------------------------ */

static void check_ports(void)
{
    unsigned last = opt.cluster ? 65535 - BUS : 65535;
    if (opt.port + node_count - 1 > last)
        fail("--port %" PRIu64 ": expected at most %zu with so many nodes",
             opt.port, last + 1 - node_count);
    for (size_t i = 0; i < node_count; i++)
        if (!try_port(nodes[i].port, false))
            fail("%s port %u is in use or not permitted: choose another with "
                 "--port",
                 host.text, nodes[i].port);
}

/* What the node is started with. */
static struct conf_facts configure(struct node *n, const char *addresses,
                                   const char *module, const char *include)
{
    char *port = text_of("%u", n->port);
    char *secret = text_of("secret-file=%s", wish.secret_file);
    char *load = text_of("%s %s", conf_quote(module), conf_quote(secret));
    struct directive ours[16] = {
        {"port", port},
        {"bind", addresses},
        {"dir", conf_quote(n->dir)},
        {"logfile", conf_quote(n->log)},
        {"daemonize", "no"},
        {"cluster-enabled", opt.cluster ? "yes" : "no"},
        {"cluster-config-file", "nodes.conf"},
        {"loadmodule", load},
    };
    const struct directive first[] = {{"save", "\"\""},
                                      {"appendonly", "yes"},
                                      {"appendfsync", "everysec"},
                                      {"cluster-node-timeout", "2000"},
                                      {"repl-diskless-sync-delay", "0"},
                                      {NULL, NULL}};
    size_t more = 8;
    if (opt.always) ours[more++] = (struct directive){"appendfsync", "always"};
    if (opt.policy)
        ours[more++] = (struct directive){"seen.policy", opt.policy};
    return conf_write(n->conf, include, ours, first);
}

/* ---- Policies ----------------------------------------------------------- */

/* The default of a node, as the module shows it; "": it does not tell. */
static void ask_policy(const struct node *n, char *text, size_t cap)
{
    do {
        ask_node(n->port, "SEEN.POLICY default\r\n", "\n", text, cap);
        if (strncmp(text, "-LOADING", 8) != 0) break;
        pause_ms(50);
    } while (!stopping && reap() == node_count);
    if (*text == '+')
        memmove(text, text + 1, strlen(text));
    else
        *text = '\0';
    text[strcspn(text, "\r\n")] = '\0';
}

/* --policy is configuration, and data count more: then say so. */
static void note_policy(const char *wanted)
{
    char text[256];
    for (size_t i = 0; opt.policy && i < node_count && !stopping; i++) {
        ask_policy(&nodes[i], text, sizeof text);
        if (!*text || strcmp(text, wanted) == 0) continue;
        note("--policy has no effect yet: SEEN.POLICY has set the default to "
             "%s; `SEEN.POLICY default RESET` undoes that",
             text);
        return;
    }
}

/* ---- The verb ----------------------------------------------------------- */

static void say_how(bool always)
{
    if (opt.quiet) return;
    bool plain = strcmp(host.text, "127.0.0.1") == 0;
    char *cli = text_of("redis-cli %s%s%s%s-p %u", opt.cluster ? "-c " : "",
                        plain ? "" : "-h ", plain ? "" : host.text,
                        plain ? "" : " ", nodes[0].port);
    char *at = text_of(host.v6 ? "[%s]:%u" : "%s:%u", host.text, nodes[0].port);
    printf("%s at %s", opt.cluster ? "cluster" : "server", at);
    if (node_count > 1) printf(" to %u", nodes[node_count - 1].port);
    printf(", data in %s\n", opt.dir);
    printf("  %s BF.ADD filter item\n", cli);
    printf("  %s SEEN.TAKE seen:user COUNT 2 post1 post2 post3\n", cli);
    printf("  seen take 'redis://%s' user -n 2 posts.txt\n", at);
    printf("%s; ctrl-C stops it.\n",
           always ? "Every write is on disk before it is acknowledged"
                  : "A crash of the machine may lose the last second of "
                    "writes (--always: none)");
    finish_output();
    free(cli);
    free(at);
}

/* Until we are told to stop, or all have ended. A cluster lives on without one
 * of its nodes. */
static void watch(void)
{
    bool told[NODES_MAX] = {false};
    while (!stopping && reap() > 0) {
        for (size_t i = 0; i < node_count; i++)
            if (!nodes[i].pid && !told[i]) {
                note("the node at port %u has ended: %s says why",
                     nodes[i].port, nodes[i].log);
                told[i] = true;
            }
        pause_ms(100);
    }
}

/* Directories of the nodes. true: one has run before. */
static bool make_nodes(void)
{
    bool again = false;
    for (size_t i = 0; i < node_count; i++) {
        char *dir = text_of("%s/%u", opt.dir, nodes[i].port);
        nodes[i].dir = make_dir(dir);
        nodes[i].conf = text_of("%s/server.conf", nodes[i].dir);
        nodes[i].log = text_of("%s/log", nodes[i].dir);
        again = again || access(nodes[i].conf, F_OK) == 0;
        free(dir);
    }
    return again;
}

/* The secret of the exposure sets. Users who were marked under one cannot be read
 * under another, and the AOF would not always show it: so none is made where there
 * was one, and two that differ are a mistake. */
static void find_secret(bool again)
{
    uint8_t ours[16];
    const char *given = wish.secret_file;
    char *own = text_of("%s/secret", opt.dir);
    bool there = access(own, F_OK) == 0;
    if (again && !there && !given)
        fail("%s: the secret of its users is missing: name it with "
             "--secret-file",
             opt.dir);
    if (given) {
        memcpy(ours, given_secret(), sizeof ours);
        wish.secret_file = own;
        if (there && memcmp(given_secret(), ours, sizeof ours) != 0)
            fail("--secret-file %s: %s is another secret, and users marked "
                 "under that cannot be read under this one: leave out "
                 "--secret-file, or choose another --dir",
                 given, own);
        wish.secret_file = realpath(given, NULL);
        if (!wish.secret_file) fail("%s: %s", given, strerror(errno));
        free(own);
        return;
    }
    wish.secret_file = own;
    wish.keyed = true;
    new_secret();
    keep_secret();
}

static void no_password(const char *path)
{
    if (opt.cluster)
        fail("%s: requirepass: --cluster makes nodes without a password: leave "
             "it out",
             path);
}

static int run(char **operands, size_t n)
{
    if (n > 0) fail("%s: expected options only", operands[0]);
    if (opt.cluster && (opt.cluster < 3 || opt.cluster > NODES_MAX / 2))
        fail("--cluster %" PRIu64 ": expected 3 to %d", opt.cluster,
             NODES_MAX / 2);
    if (!opt.port) opt.port = 6379;
    if (opt.port > 65535)
        fail("--port %" PRIu64 ": expected 1 to 65535", opt.port);
    node_count = opt.cluster ? 2 * (size_t)opt.cluster : 1;
    for (size_t i = 0; i < node_count; i++)
        nodes[i].port = (unsigned)(opt.port + i);
    const char *server = find_server(), *module = find_module();
    const char *client = opt.cluster ? find_client() : NULL;
    bool others = false;
    char *addresses = read_bind(opt.bind ? opt.bind : "127.0.0.1", &others);
    char policy[POLICY_TEXT] = "";
    if (opt.policy) opt.policy = server_policy(opt.policy, policy);
    bool password = false;
    const char *include =
        opt.config ? conf_check_own(opt.config, &password) : NULL;
    if (password) no_password(opt.config);
    check_ports();

    opt.dir = make_dir(opt.dir ? opt.dir : "seen-server");
    bool again = make_nodes();
    find_secret(again);
    heed_stop();
    struct conf_facts facts = {.there = false};
    for (size_t i = 0; i < node_count; i++) {
        facts = configure(&nodes[i], addresses, module, include);
        if (facts.password) no_password(nodes[i].conf);
    }
    free(addresses);
    if (others && !facts.password)
        note("no requirepass: clients of other machines are refused (protected "
             "mode) until --config FILE has one");
    for (size_t i = 0; i < node_count; i++)
        start_node(&nodes[i], server);
    wait_up();
    if (opt.cluster && !stopping) make_cluster(client, opt.dir);
    note_policy(policy);
    if (!stopping) say_how(facts.always);
    watch();
    bool died = !stopping;
    stop_all();
    if (died) fail("all servers have ended: the logs in %s say why", opt.dir);
    return EXIT_DONE;
}

static const char *const examples[] = {
    "seen server",
    "a server at 127.0.0.1:6379, data in ./seen-server",
    "seen server --port 7000 --dir /srv/seen --always",
    "every write on disk before it is acknowledged",
    "seen server --port 7000 --policy items=500,ttl=30d",
    "marks of 30 days count, 500 of each 6 days",
    "seen server --cluster 3 --port 7000",
    "three primaries and three replicas, to try what a cluster does",
    NULL,
};

static const struct option *const groups[] = {options, NULL};

const struct verb verb_server = {
    .name = "server",
    .summary = "run the machine's Redis or Valkey with our module",
    .operands = "",
    .text =
        "Starts valkey-server or redis-server with seen.so, which brings "
        "BF.*,\n"
        "CF.* and SEEN.*, listening on this machine only; says how to "
        "connect,\n"
        "and runs until it is told to stop. Data, the secret of the exposure\n"
        "sets and what CONFIG REWRITE writes stay in the directory, for the\n"
        "next time.",
    .examples = examples,
    .options = groups,
    .run = run,
};
