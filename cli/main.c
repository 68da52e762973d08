/* main.c - the table of verbs. A verb is one file, cmd_<verb>.c, and one row. */
#define _POSIX_C_SOURCE 200809L

#include "options.h"
#include "output.h"

#include <fcntl.h>
#include <seen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VERB(name) extern const struct verb verb_##name;
#include "verbs.def"
#undef VERB

static const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "verbs.def"
#undef VERB
};

#define VERBS (sizeof verbs / sizeof *verbs)

static void print_overview(void)
{
    puts("seen - has this been seen before?\n\n"
         "usage: seen VERB [options] ...\n");
    for (size_t i = 0; i < VERBS; i++)
        printf("  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
    puts("\n`seen VERB --help` explains a verb and shows examples.\n"
         "exit codes: 0 done, 1 nothing found (check), 2 error");
}

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
    check_descriptors();
    signal(SIGPIPE, SIG_IGN); /* a failed write says it better ... */
    signal(SIGXFSZ, SIG_IGN); /* ... also beyond `ulimit -f` */

    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_overview();
        finish_output();
        return argc > 1 ? EXIT_DONE : EXIT_ERROR;
    }
    if (strcmp(name, "--version") == 0) {
        printf("seen %s\n", seen_version());
        finish_output();
        return EXIT_DONE;
    }
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(name, verbs[i]->name) != 0) continue;
        set_verb(verbs[i]->name);
        size_t n = parse_options(verbs[i], argv + 2, (size_t)argc - 2);
        return verbs[i]->run(argv + 2, n);
    }
    fail("%s: no such verb; `seen --help` lists them", name);
}
