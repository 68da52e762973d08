/* server_cluster.c - see server_cluster.h. */
#define _GNU_SOURCE /* O_CLOEXEC */

#include "server_cluster.h"

#include "memory.h"
#include "server_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

#define SLOTS 16384

static const char *dir;  /* of the data */
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
        if (reap() < node_count || waited > PATIENCE_MS) give_up_start(n);
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
    for (size_t i = 0; i < 2 * node_count && !stopping; i++) {
        const struct node *n = &nodes[i % node_count];
        ask_node(n->port, steps[i / node_count].command, "\n", reply,
                 sizeof reply);
        if (strcmp(reply, steps[i / node_count].expected) != 0)
            give_up("the cluster in %s was never finished, and the node at "
                    "port %u cannot begin again: remove %s/[0-9]*",
                    dir, n->port, dir);
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
    for (size_t i = 0; i < node_count && !stopping; i++) {
        struct cluster_info info = wait_answer(&nodes[i]);
        blank += info.slots == 0 && info.nodes == 1;
        whole =
            whole || (info.slots == SLOTS && info.nodes >= (long)node_count);
        if (info.nodes > most) most = info.nodes;
    }
    if (stopping || (whole && !cut_short)) return true;
    if (blank == node_count) return false;
    if (!cut_short)
        give_up("%s has a cluster of %ld nodes, --cluster %zu means %zu: start "
                "it as it was, or remove %s/[0-9]*",
                dir, most, node_count / 2, node_count, dir);
    reset_nodes();
    return false;
}

static void create_cluster(const char *client)
{
    char *argv[NODES_MAX + 8];
    size_t n = 0;
    argv[n++] = (char *)(uintptr_t)client;
    argv[n++] = "--cluster";
    argv[n++] = "create";
    for (size_t i = 0; i < node_count; i++)
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
                client, dir);
    for (size_t i = 0; i < node_count; i++)
        free(argv[3 + i]);
}

static void wait_cluster(void)
{
    long waited = 0;
    for (size_t i = 0; i < node_count; i++)
        for (; !stopping && !ask_cluster(nodes[i].port).ok; waited += 50) {
            if (reap() < node_count || waited > PATIENCE_MS)
                give_up("the cluster does not come up: the logs in %s say why",
                        dir);
            pause_ms(50);
        }
    if (!stopping) unlink(unfinished);
}

void make_cluster(const char *client, const char *data)
{
    dir = data;
    unfinished = text_of("%s/unfinished", dir);
    if (!cluster_there() && !stopping) {
        begin_making();
        create_cluster(client);
    }
    if (!stopping) wait_cluster();
}
