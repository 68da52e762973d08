/* server.c - see server.h. */
#define _GNU_SOURCE

#include "server.h"

#include "bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32

static pid_t server;
static char directory[] = P_tmpdir "/seen-bench.XXXXXX";

static void stop(void)
{
    char command[128];
    if (server <= 0) return;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
    snprintf(command, sizeof command, "rm -rf %s", directory);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", directory);
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        bench_die("no free port");
    close(fd);
    return ntohs(a.sin_port);
}

int bench_server_start(const char *const *more)
{
    if (!mkdtemp(directory)) bench_die("%s: cannot be made", directory);
    int port = free_port();
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    const char *argv[ARGUMENTS_MAX] = {"redis-server", "--port",    number,
                                       "--bind",       "127.0.0.1", "--dir",
                                       directory,      "--save",    ""};
    for (size_t n = 9; *more && n + 1 < ARGUMENTS_MAX; n++)
        argv[n] = *more++;
    server = fork();
    if (server == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    atexit(stop);
    return port;
}
