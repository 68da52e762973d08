/*
 * cmd_server.c - seen server: the machine's redis-server or valkey-server with
 * our module in it, to try things or to run them.
 *
 * Nodes are children of this process. They run in groups of their own, so that
 * ctrl-C reaches only us, and we tell them to stop; if we are killed, the system
 * tells them.
 *
 *     DIR/secret            of the exposure sets, made if it is not there, unless
 *                           --secret-file names another
 *     DIR/unfinished        while a cluster is being made
 *     DIR/PORT/             data of the node at PORT
 *     DIR/PORT/log          its log, and what it prints before it has one: a file
 *                           that it cannot read, a directive that is wrong
 *     DIR/PORT/server.conf  its configuration: server_conf.h
 */
#define _GNU_SOURCE /* realpath, asprintf */

#include "memory.h"
#include "options.h"
#include "output.h"
#include "secret.h"
#include "server_conf.h"
#include "spec.h"
#include "users.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define MOST_NODES  64
#define BUS         10000 /* a cluster's nodes talk at their port + this */
#define PATIENCE_MS 60000
#define LAST_LINES  3 /* of a log that are shown; a wrong directive takes 3 */

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

static struct node {
    unsigned port;
    pid_t pid;        /* 0: not running */
    char *dir, *conf; /* its own */
    char *log;        /* and where this run begins in it: */
    off_t log_from;
} nodes[MOST_NODES];

static size_t count;

/* ---- Where things are --------------------------------------------------- */

static char *text_of(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static char *text_of(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) fail("out of memory");
    return text;
}

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
             "--module, or make one (cmake -S . -B build && cmake --build "
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

/* ---- Ports -------------------------------------------------------------- */

/* The first address of --bind, where we reach the nodes; of all addresses of the
 * machine, its loopback. */
static struct {
    char text[INET6_ADDRSTRLEN];
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    bool v6;
} host;

static bool set_host(const char *text)
{
    memset(&host, 0, sizeof host);
    host.v6 = strchr(text, ':') != NULL;
    host.at.any.sa_family = host.v6 ? AF_INET6 : AF_INET;
    void *to =
        host.v6 ? (void *)&host.at.v6.sin6_addr : (void *)&host.at.v4.sin_addr;
    if (inet_pton(host.at.any.sa_family, text, to) != 1) return false;
    if (host.v6 && IN6_IS_ADDR_UNSPECIFIED(&host.at.v6.sin6_addr))
        host.at.v6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
    else if (!host.v6 && host.at.v4.sin_addr.s_addr == htonl(INADDR_ANY))
        host.at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return inet_ntop(host.at.any.sa_family, to, host.text, sizeof host.text);
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* The addresses of --bind, separated by spaces, as the server has them; the first is
 * our host. *others: some are for other machines. */
static char *read_bind(bool *others)
{
    char *list = text_of("%s", opt.bind ? opt.bind : "127.0.0.1");
    for (char *at = list, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (!set_host(at))
            fail("--bind %s: expected IP addresses separated by commas, for "
                 "example 127.0.0.1,10.0.0.5",
                 opt.bind);
        *others = *others || !is_loopback(at);
        if (comma) *comma = ' ';
    }
    char *first = text_of("%.*s", (int)strcspn(list, " "), list);
    set_host(first);
    free(first);
    return list;
}

/* A socket that listens at a port, or one that is connected to it; -1. */
static int socket_at(unsigned port, bool connected)
{
    socklen_t len = host.v6 ? sizeof host.at.v6 : sizeof host.at.v4;
    int one = 1;
    int fd = socket(host.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("socket: %s", strerror(errno));
    if (host.v6)
        host.at.v6.sin6_port = htons((uint16_t)port);
    else
        host.at.v4.sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if ((connected ? connect(fd, &host.at.any, len)
                   : bind(fd, &host.at.any, len)) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool try_port(unsigned port, bool connected)
{
    int fd = socket_at(port, connected);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* A command without arguments of its own, and the reply up to a word that is in
 * it; "" if the node does not answer. */
static void ask_node(unsigned port, const char *command, const char *until,
                     char *reply, size_t cap)
{
    size_t len = 0;
    struct timeval patience = {.tv_sec = 1};
    int fd = socket_at(port, true);
    *reply = '\0';
    if (fd < 0) return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t got = write(fd, command, strlen(command));
    while (got > 0 && len + 1 < cap && !strstr(reply, until)) {
        got = read(fd, reply + len, cap - 1 - len);
        len += got > 0 ? (size_t)got : 0;
        reply[len] = '\0';
    }
    close(fd);
}

/* What a node knows of its cluster. */
struct cluster_info {
    bool ok;    /* all slots are served */
    long slots; /* that somebody has */
    long nodes; /* itself among them; 0: it does not answer */
};

/* The number behind "name:". */
static long number_in(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

static struct cluster_info ask_cluster(unsigned port)
{
    char reply[2048];
    ask_node(port, "CLUSTER INFO\r\n", "cluster_size:", reply, sizeof reply);
    return (struct cluster_info){
        .ok = strstr(reply, "cluster_state:ok") != NULL,
        .slots = number_in(reply, "cluster_slots_assigned:"),
        .nodes = number_in(reply, "cluster_known_nodes:")};
}

static void check_ports(void)
{
    unsigned last = opt.cluster ? 65535 - BUS : 65535;
    if (opt.port + count - 1 > last)
        fail("--port %" PRIu64 ": expected at most %zu with so many nodes",
             opt.port, last + 1 - count);
    for (size_t i = 0; i < count; i++)
        if (!try_port(nodes[i].port, false))
            fail("%s port %u is in use, or not ours to take: choose another "
                 "with --port",
                 host.text, nodes[i].port);
}

/* ---- Nodes -------------------------------------------------------------- */

static volatile sig_atomic_t stopping;

static void stop_soon(int signal)
{
    stopping = signal;
}

static void heed(void)
{
    struct sigaction action = {.sa_handler = stop_soon};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
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

static void start(struct node *n, const char *server)
{
    char *argv[] = {(char *)(uintptr_t)server, n->conf, NULL};
    int log = open(n->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) fail("%s: %s", n->log, strerror(errno));
    n->log_from = lseek(log, 0, SEEK_END);
    n->pid = fork();
    if (n->pid < 0) fail("fork: %s", strerror(errno));
    if (n->pid == 0) {
        setpgid(0, 0);
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
        signal(SIGPIPE, SIG_DFL);
        umask(077); /* CONFIG REWRITE makes a new file, which has passwords */
        dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execv(server, argv);
        dprintf(STDERR_FILENO, "seen server: %s: %s\n", server,
                strerror(errno));
        _exit(127);
    }
    close(log);
}

/* Those that have ended are not running any more. */
static size_t reap(void)
{
    size_t running = 0;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].pid &&
            waitpid(nodes[i].pid, NULL, WNOHANG) == nodes[i].pid)
            nodes[i].pid = 0;
        running += nodes[i].pid != 0;
    }
    return running;
}

/* A server that is writing its first file does not hear; so again and again. */
static void stop_all(void)
{
    for (long waited = 0; reap() > 0; waited += 50) {
        for (size_t i = 0; waited % 1000 == 0 && i < count; i++)
            if (nodes[i].pid) kill(nodes[i].pid, SIGTERM);
        pause_ms(50);
    }
}

__attribute__((format(printf, 1, 2), noreturn)) static void
give_up(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stop_all();
    fail("%s", text);
}

/* What a line of the log says, if it is a warning; "" if it is something else, or
 * of the machine's settings. A line that is not of the log says itself:
 *
 *     5290:C 18 Nov 2026 04:15:38.706 # Fatal error, ...
 */
static const char *warning_in(const char *line)
{
    size_t digits = strspn(line, "0123456789");
    if (!digits || line[digits] != ':') return line;
    const char *mark = strstr(line, " # ");
    if (!mark || strncmp(mark, " # WARNING", 10) == 0) return "";
    return mark + 3;
}

/* What the node has printed and warned of in this run, the last of it. */
static char *last_words(const struct node *n)
{
    char *line = NULL, *last[LAST_LINES];
    size_t cap = 0, kept = 0;
    FILE *log = fopen(n->log, "re");
    for (size_t i = 0; i < LAST_LINES; i++)
        last[i] = text_of("%s", "");
    if (log && fseeko(log, n->log_from, SEEK_SET) != 0) rewind(log);
    while (log && getline(&line, &cap, log) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *said = warning_in(line);
        if (!said[strspn(said, " ")]) continue;
        conf_hide(line);
        free(last[kept % LAST_LINES]);
        last[kept++ % LAST_LINES] = text_of("%.200s: ", said);
    }
    if (log) fclose(log);
    free(line);
    char *words =
        text_of("%s%s%s", last[kept % LAST_LINES],
                last[(kept + 1) % LAST_LINES], last[(kept + 2) % LAST_LINES]);
    for (size_t i = 0; i < LAST_LINES; i++)
        free(last[i]);
    return words;
}

/* Of the node that has ended, or else of the one that is waited for. */
__attribute__((noreturn)) static void give_up_start(const struct node *n)
{
    for (size_t i = 0; i < count; i++)
        if (!nodes[i].pid) {
            n = &nodes[i];
            break;
        }
    give_up("the server at port %u %s: %ssee %s", n->port,
            n->pid ? "does not answer" : "ended at once", last_words(n),
            n->log);
}

static void wait_up(void)
{
    for (size_t i = 0; i < count; i++) {
        long waited = 0;
        for (; !stopping && !try_port(nodes[i].port, true); waited += 20) {
            if (reap() < count || waited > PATIENCE_MS)
                give_up_start(&nodes[i]);
            pause_ms(20);
        }
    }
    pause_ms(50);
    if (!stopping && reap() < count) give_up_start(&nodes[0]);
}

/* ---- A cluster ---------------------------------------------------------- */

#define SLOTS 16384

static char *unfinished; /* the path of that file */

static void begin_making(void)
{
    int fd = open(unfinished, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) give_up("%s: %s", unfinished, strerror(errno));
    close(fd);
}

static struct cluster_info wait_answer(const struct node *n)
{
    struct cluster_info info = ask_cluster(n->port);
    for (long waited = 0; !stopping && !info.nodes; waited += 50) {
        if (reap() < count || waited > PATIENCE_MS) give_up_start(n);
        pause_ms(50);
        info = ask_cluster(n->port);
    }
    return info;
}

/* Nodes of a cluster that nobody was told of begin again, unless one of them has
 * somebody's keys all the same. */
static void reset_nodes(void)
{
    static const struct {
        const char *command, *expected;
    } steps[] = {{"DBSIZE\r\n", ":0\r\n"},
                 {"CLUSTER RESET HARD\r\n", "+OK\r\n"}};
    char reply[256];
    for (size_t i = 0; i < 2 * count && !stopping; i++) {
        const struct node *n = &nodes[i % count];
        ask_node(n->port, steps[i / count].command, "\n", reply, sizeof reply);
        if (strcmp(reply, steps[i / count].expected) != 0)
            give_up("the cluster in %s was never finished, and the node at "
                    "port %u cannot begin again: remove %s/[0-9]*",
                    opt.dir, n->port, opt.dir);
    }
}

/*
 * Is there a cluster? The files of nodes do not tell: they are there as soon as
 * a node has run. So the nodes are asked. None has slots, nor knows another one:
 * no. One knows of all slots and as many nodes: yes. Anything else is a cluster
 * of another size, or one whose making was cut short.
 */
static bool cluster_there(void)
{
    size_t blank = 0;
    long most = 0;
    bool whole = false, cut_short = access(unfinished, F_OK) == 0;
    for (size_t i = 0; i < count && !stopping; i++) {
        struct cluster_info info = wait_answer(&nodes[i]);
        blank += info.slots == 0 && info.nodes == 1;
        whole = whole || (info.slots == SLOTS && info.nodes >= (long)count);
        if (info.nodes > most) most = info.nodes;
    }
    if (stopping || (whole && !cut_short)) return true;
    if (blank == count) return false;
    if (!cut_short)
        give_up("%s has a cluster of %ld nodes, --cluster %" PRIu64
                " means %zu: start it as it was, or remove %s/[0-9]*",
                opt.dir, most, opt.cluster, count, opt.dir);
    reset_nodes();
    return false;
}

static void create_cluster(const char *client)
{
    char *argv[MOST_NODES + 8];
    size_t n = 0;
    argv[n++] = (char *)(uintptr_t)client;
    argv[n++] = "--cluster";
    argv[n++] = "create";
    for (size_t i = 0; i < count; i++)
        argv[n++] = text_of("%s:%u", host.text, nodes[i].port);
    argv[n++] = "--cluster-replicas";
    argv[n++] = "1";
    argv[n++] = "--cluster-yes";
    argv[n] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        execv(client, argv);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!stopping && status != 0)
        give_up("%s --cluster create failed: the logs in %s may say why",
                client, opt.dir);
    for (size_t i = 0; i < count; i++)
        free(argv[3 + i]);
}

static void wait_cluster(void)
{
    long waited = 0;
    for (size_t i = 0; i < count; i++)
        for (; !stopping && !ask_cluster(nodes[i].port).ok; waited += 50) {
            if (reap() < count || waited > PATIENCE_MS)
                give_up("the cluster does not come up: the logs in %s say why",
                        opt.dir);
            pause_ms(50);
        }
    if (!stopping) unlink(unfinished);
}

static void make_cluster(const char *client)
{
    unfinished = text_of("%s/unfinished", opt.dir);
    if (!cluster_there() && !stopping) {
        begin_making();
        create_cluster(client);
    }
    if (!stopping) wait_cluster();
}

/* ---- Policies ----------------------------------------------------------- */

/* The default of a node, as the module shows it; "": it does not tell. */
static void ask_policy(const struct node *n, char *text, size_t cap)
{
    do {
        ask_node(n->port, "SEEN.POLICY default\r\n", "\n", text, cap);
        if (strncmp(text, "-LOADING", 8) != 0) break;
        pause_ms(50);
    } while (!stopping && reap() == count);
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
    for (size_t i = 0; opt.policy && i < count && !stopping; i++) {
        ask_policy(&nodes[i], text, sizeof text);
        if (!*text || strcmp(text, wanted) == 0) continue;
        note("--policy does not count yet: SEEN.POLICY has set the default, "
             "to %s; `SEEN.POLICY default RESET` takes that back",
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
    if (count > 1) printf(" to %u", nodes[count - 1].port);
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
    bool told[MOST_NODES] = {false};
    while (!stopping && reap() > 0) {
        for (size_t i = 0; i < count; i++)
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
    for (size_t i = 0; i < count; i++) {
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
        fail("%s: the secret of its users is not there: name it with "
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
    if (opt.cluster && (opt.cluster < 3 || opt.cluster > MOST_NODES / 2))
        fail("--cluster %" PRIu64 ": expected 3 to %d", opt.cluster,
             MOST_NODES / 2);
    if (!opt.port) opt.port = 6379;
    if (opt.port > 65535)
        fail("--port %" PRIu64 ": expected 1 to 65535", opt.port);
    count = opt.cluster ? 2 * (size_t)opt.cluster : 1;
    for (size_t i = 0; i < count; i++)
        nodes[i].port = (unsigned)(opt.port + i);
    const char *server = find_server(), *module = find_module();
    const char *client = opt.cluster ? find_client() : NULL;
    bool others = false;
    char *addresses = read_bind(&others);
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
    heed();
    struct conf_facts facts = {.there = false};
    for (size_t i = 0; i < count; i++) {
        facts = configure(&nodes[i], addresses, module, include);
        if (facts.password) no_password(nodes[i].conf);
    }
    free(addresses);
    if (others && !facts.password)
        note("no requirepass: clients of other machines are refused (protected "
             "mode) until --config FILE has one");
    for (size_t i = 0; i < count; i++)
        start(&nodes[i], server);
    wait_up();
    if (opt.cluster && !stopping) make_cluster(client);
    note_policy(policy);
    if (!stopping) say_how(facts.always);
    watch();
    bool died = !stopping;
    stop_all();
    if (died) fail("nothing runs any more: the logs in %s say why", opt.dir);
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
