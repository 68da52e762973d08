/* block_portable.c - the reference kernel: plain C, always built. */
#include "bits/block.h"

static bool always(void)
{
    return true;
}

#define NO_TARGET
SEEN_DEFINE_KERNEL(portable, always, NO_TARGET, seen_line_maybe,
                   seen_line_visit, seen_run_maybe);
