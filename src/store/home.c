/* home.c - see home.h. */
#include "store/home.h"

#include "store/os.h"

#include <inttypes.h>
#include <stdio.h>

void seen_home_settle(struct seen_home *h)
{
    h->process = seen_os->process();
    snprintf(h->sentence, sizeof h->sentence,
             "this handle belongs to process %" PRIu64
             "; open it again after fork()",
             h->process);
}

bool seen_home_left(const struct seen_home *h)
{
    return h->process && h->process != seen_os->process();
}
