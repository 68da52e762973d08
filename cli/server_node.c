/* server_node.c - see server_node.h. */
#define _GNU_SOURCE /* IN6_IS_ADDR_UNSPECIFIED, SOCK_CLOEXEC */

#include "server_node.h"

#include "memory.h"
#include "output.h"
#include "server_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define LAST_LINES 3 /* of a log that are shown; a wrong directive takes 3 */

/* ---- Ports -------------------------------------------------------------- */

struct host host;

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

char *read_bind(const char *bind, bool *others)
{
    char *list = text_of("%s", bind);
    for (char *at = list, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (!set_host(at))
            fail("--bind %s: expected IP addresses separated by commas, for "
                 "example 127.0.0.1,10.0.0.5",
                 bind);
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

bool try_port(unsigned port, bool connected)
{
    int fd = socket_at(port, connected);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

void ask_node(unsigned port, const char *command, const char *until,
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

/* ---- Nodes -------------------------------------------------------------- */

struct node nodes[NODES_MAX];
size_t node_count;
volatile sig_atomic_t stopping;

static void stop_soon(int signal)
{
    stopping = signal;
}

void heed_stop(void)
{
    struct sigaction action = {.sa_handler = stop_soon};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

void start_node(struct node *n, const char *server)
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

size_t reap(void)
{
    size_t running = 0;
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i].pid &&
            waitpid(nodes[i].pid, NULL, WNOHANG) == nodes[i].pid)
            nodes[i].pid = 0;
        running += nodes[i].pid != 0;
    }
    return running;
}

/* A server that is writing its first file does not hear; so again and again. */
void stop_all(void)
{
    for (long waited = 0; reap() > 0; waited += 50) {
        for (size_t i = 0; waited % 1000 == 0 && i < node_count; i++)
            if (nodes[i].pid) kill(nodes[i].pid, SIGTERM);
        pause_ms(50);
    }
}

void give_up(const char *format, ...)
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

void give_up_start(const struct node *n)
{
    for (size_t i = 0; i < node_count; i++)
        if (!nodes[i].pid) {
            n = &nodes[i];
            break;
        }
    give_up("the server at port %u %s: %ssee %s", n->port,
            n->pid ? "does not answer" : "ended at once", last_words(n),
            n->log);
}

void wait_up(void)
{
    for (size_t i = 0; i < node_count; i++) {
        long waited = 0;
        for (; !stopping && !try_port(nodes[i].port, true); waited += 20) {
            if (reap() < node_count || waited > PATIENCE_MS)
                give_up_start(&nodes[i]);
            pause_ms(20);
        }
    }
    pause_ms(50);
    if (!stopping && reap() < node_count) give_up_start(&nodes[0]);
}
