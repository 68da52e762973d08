/*
 * server_node.h - the nodes of `seen server`: processes that are started, asked,
 * watched and stopped.
 *
 * Nodes are children of this process. They run in groups of their own, so that
 * ctrl-C reaches only us, and we tell them to stop; if we are killed, the system
 * tells them.
 */
#ifndef CLI_SERVER_NODE_H
#define CLI_SERVER_NODE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define NODES_MAX   64
#define PATIENCE_MS 60000

/* ---- Where they listen --------------------------------------------------- */

/* The first address of --bind, where we reach the nodes; of all addresses of the
 * machine, its loopback. */
extern struct host {
    char text[INET6_ADDRSTRLEN];
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    bool v6;
} host;

/* The addresses of --bind, separated by spaces, as the server has them; the first is
 * our host. *others: some are for other machines. */
char *read_bind(const char *bind, bool *others);

/* Can it be connected to, or else be listened at? */
bool try_port(unsigned port, bool connected);

/* A command without arguments of its own, and the reply up to a word that is in
 * it; "" if the node does not answer. */
void ask_node(unsigned port, const char *command, const char *until,
              char *reply, size_t cap);

/* ---- Processes ----------------------------------------------------------- */

struct node {
    unsigned port;
    pid_t pid;        /* 0: not running */
    char *dir, *conf; /* its own */
    char *log;        /* and where this run begins in it: */
    off_t log_from;
};

extern struct node nodes[NODES_MAX];
extern size_t node_count;

/* The signal that has told us to stop; 0: none, after heed_stop(). */
extern volatile sig_atomic_t stopping;

void heed_stop(void);
void pause_ms(long ms);
void start_node(struct node *n, const char *server);

/* How many run: those that have ended are not running any more. */
size_t reap(void);

/* Until all listen. */
void wait_up(void);
void stop_all(void);

/* All nodes stop, and the program ends with this sentence; or with what the node
 * said that has ended, or else the one that is waited for. */
__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format,
                                                             ...);
__attribute__((noreturn)) void give_up_start(const struct node *n);

#endif
