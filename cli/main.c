/* main.c - finds the verb; what it can do is in cmd_<verb>.c. */
#define _POSIX_C_SOURCE 200809L

#include "help.h"
#include "login.h"
#include "options.h"
#include "output.h"
#include "verbs.h"

#include <fcntl.h>
#include <seen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A closed stdin or stderr must not hand its number to the next open(); a
 * closed stdout means that the answer would go nowhere. */
static void check_descriptors(void)
{
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) open("/dev/null", O_WRONLY);
    bool no_output = fcntl(STDOUT_FILENO, F_GETFD) < 0;
    if (no_output) open("/dev/null", O_RDONLY);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) open("/dev/null", O_WRONLY);
    if (no_output) fail("stdout is closed");
}

int main(int argc, char **argv)
{
    hide_passwords(argc, argv);
    check_descriptors();
    signal(SIGPIPE, SIG_IGN); /* a failed write says it better ... */
    signal(SIGXFSZ, SIG_IGN); /* ... also beyond `ulimit -f` */

    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_overview();
        finish_output();
        return argc > 1 ? EXIT_DONE : EXIT_ERROR;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
        strcmp(name, "version") == 0) { /* what people type all the same */
        printf("seen %s\n", seen_version());
        finish_output();
        return EXIT_DONE;
    }
    const struct verb *verb = verb_named(name);
    if (!verb) no_such_verb(name);
    set_verb(verb->name);
    size_t n = parse_options(verb, argv + 2, (size_t)argc - 2);
    if (n > 1 && strstr(verb->operands, "USER")) give_back(argv + 3, n - 1);
    return verb->run(argv + 2, n);
}
