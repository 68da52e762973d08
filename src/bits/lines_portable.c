/* lines_portable.c - the reference kernel: plain C, always built. */
#include "bits/lines.h"

static bool always(void)
{
    return true;
}

#define KERNEL seen_kernel_portable
#define NAME   "portable"
#define USABLE always
#define TARGET
#define TEST     seen_line_maybe
#define CHANGE   seen_line_visit
#define RUN_TEST seen_run_maybe
#include "bits/lines_kernel.h"
