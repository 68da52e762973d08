/* patience.c - see patience.h. */
#include "patience.h"

#include "output.h"
#include "progress.h"
#include "units.h"

/* A verb of a script holds a store for some milliseconds: in ten seconds many of
 * them take their turns, and one that holds it for hours is soon found out. */
#define DEFAULT_WAIT 10000
#define SILENT       1000
#define NOT_GIVEN    UINT64_MAX

static uint64_t given = NOT_GIVEN;

const struct option wait_options[] = {
    {0, "wait", "TIME", OPTION_WAIT, &given,
     "how long to wait for another program that changes it\n"
     "(default 10s); 0: not at all"},
    {0, NULL, NULL, OPTION_FLAG, NULL, NULL},
};

bool wait_given(void)
{
    return given != NOT_GIVEN;
}

static uint64_t all(void)
{
    return wait_given() ? given : DEFAULT_WAIT;
}

uint64_t first_wait(void)
{
    return all() < SILENT ? all() : SILENT;
}

uint64_t second_wait(void)
{
    return all() - first_wait();
}

bool wait_on(const char *name)
{
    char time[UNIT_TEXT];
    if (second_wait() && on_terminal())
        note("%s: another program is changing it: waiting up to %s", name,
             show_time(time, second_wait()));
    return second_wait() > 0;
}

void waited_in_vain(const char *name)
{
    char time[UNIT_TEXT];
    if (all() == 0)
        fail("%s: another program is changing it: try again when it has ended, "
             "or wait for it with --wait",
             name);
    fail("%s: another program is changing it, and still was after %s: try "
         "again when it has ended, or wait longer with --wait",
         name, show_time(time, all()));
}
